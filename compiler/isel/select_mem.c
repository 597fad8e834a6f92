/*
 * compiler/isel/select_mem.c - loads and stores.
 *
 * Global memory is addressed as saddr + voffset + constant where the base is
 * uniform, which is how the SSA form writes addresses; LDS as an offset and a
 * constant.  A mask narrows EXEC around the access.
 */
#include "compiler/isel/select.h"

/* -------------------------------------------------------------- pieces ---- */

/* By dwords, 0 for a byte, 5 for 16 bits. */
static int access_op(bool lds, bool store, int bytes)
{
#define BOTH(kind) \
	{ \
		{ ISA_global_load_##kind, ISA_global_store_##kind }, \
		{ \
			ISA_ds_load_##kind, ISA_ds_store_##kind \
		} \
	}
	static const uint16_t op[][2][2] = {
		{ { ISA_global_load_u8, ISA_global_store_b8 },
		  { ISA_ds_load_u8, ISA_ds_store_b8 } },
		BOTH(b32),
		BOTH(b64),
		BOTH(b96),
		BOTH(b128),
		{ { ISA_global_load_u16, ISA_global_store_b16 },
		  { ISA_ds_load_u16, ISA_ds_store_b16 } },
	};
#undef BOTH

	return op[bytes == 2 ? 5 : bytes / 4][lds][store];
}

/* Memory that nobody writes while the kernel runs. */
static bool never_written(const struct sel *s, const struct ssa_inst *i)
{
	const struct ssa_inst *p = i->arg[0];

	if (i->flags & SSA_VOLATILE)
		return false;
	if (i->flags & SSA_INVARIANT)
		return true;
	while (p->op == SSA_ptradd)
		p = p->arg[0];
	return p->op == SSA_arg && s->f->arg[p->imm].readonly &&
	       s->f->arg[p->imm].noalias;
}

void sel_note(struct sel_access *a, struct mir_inst *m, int at, int bytes)
{
	m->off = a->off + at;
	m->tail = a->tail;
	m->bytes = (uint8_t)bytes;
	m->align = a->i->align;
	if (a->lds)
		m->flags |= MIR_LDS;
	if (a->partial && !a->store)
		m->flags |= MIR_PARTIAL;
	if (a->i->flags & SSA_VOLATILE)
		m->flags |= MIR_ORDERED | MIR_KEEP;
	if (!a->store && !a->lds && never_written(a->s, a->i))
		m->flags |= MIR_CONST;
}

static void one_piece(struct sel *s, struct sel_access *a, int at, int bytes,
		      struct mir_opnd data)
{
	const int op = access_op(a->lds, a->store, bytes);
	struct mir_inst *m;

	if (a->upper && a->lds)
		m = sel_raw(s, ISA_ds_store_b16_d16_hi, a->addr, data);
	else if (a->upper)
		m = sel_raw(s, ISA_global_store_d16_hi_b16, a->addr, data,
			    a->base);
	else if (a->lds && a->store)
		m = sel_raw(s, op, a->addr, data);
	else if (a->lds)
		m = sel_raw(s, op, data, a->addr);
	else if (a->store)
		m = sel_raw(s, op, a->addr, data, a->base);
	else
		m = sel_raw(s, op, data, a->addr, a->base);
	sel_note(a, m, at, bytes);
}

/* Two registers or pairs that lie side by side, less aligned than together. */
static void two_pieces(struct sel *s, struct sel_access *a, int at, int bytes)
{
	struct mir_opnd d = mir_part(a->data, at / 4, bytes / 4);
	int unit = bytes / 2, at_unit = (a->off + at) / unit;
	struct mir_inst *m;
	bool wide = unit == 8;

	if (a->store)
		m = sel_raw(s, wide ? ISA_ds_store_2addr_b64 :
				      ISA_ds_store_2addr_b32,
			    a->addr, mir_part(d, 0, unit / 4),
			    mir_part(d, unit / 4, unit / 4));
	else
		m = sel_raw(s, wide ? ISA_ds_load_2addr_b64 :
				      ISA_ds_load_2addr_b32,
			    d, a->addr);
	sel_note(a, m, at, bytes);
	m->off = 0;
	m->tail = arena_printf(s->m->arena, " offset0:%d offset1:%d", at_unit,
			       at_unit + 1);
}

static bool pairs_up(const struct sel_access *a, int at, int bytes, int align)
{
	int unit = bytes / 2, off = a->off + at;

	return a->lds && align >= unit && unit >= 4 && off % unit == 0 &&
	       off / unit + 1 < 256;
}

/* One register out of bytes or halves. */
static void gather_register(struct sel *s, struct sel_access *a, int at,
			    int bytes, int unit)
{
	struct mir_opnd d = mir_part(a->data, at / 4, 1), acc = { 0 };

	for (int k = 0; k < bytes; k += unit) {
		struct mir_opnd t = sel_new_v(s, 1), u;

		if (a->store) {
			if (k)
				sel_v(s, ISA_v_lshrrev_b32, t,
				      mir_imm(8u * (uint32_t)k), d);
			one_piece(s, a, at + k, unit, k ? t : d);
			continue;
		}
		one_piece(s, a, at + k, unit, t);
		if (!k) {
			acc = t;
			continue;
		}
		u = k + unit >= bytes ? d : sel_new_v(s, 1);
		sel_v(s, ISA_v_lshl_or_b32, u, t, mir_imm(8u * (uint32_t)k),
		      acc);
		acc = u;
	}
}

/*
 * The widest access from `at` on that the alignment allows.  Compute queues run
 * with unaligned accesses allowed: vectors of 16-bit elements need only 2.
 */
static int piece_bytes(const struct sel_access *a, int left, int align)
{
	bool any = !a->lds && (align >= 4 || (align >= 2 && left >= 8));
	int max = any ? 16 : align;

	if (left >= 16 && max >= 16)
		return 16;
	if (left >= 12 && max >= 16)
		return 12;
	if (left >= 8 && max >= 8)
		return 8;
	if (left >= 4 && max >= 4)
		return 4;
	return left >= 2 && max >= 2 ? 2 : 1;
}

static void split_access(struct sel *s, struct sel_access *a, int bytes)
{
	for (int at = 0; at < bytes;) {
		int left = bytes - at, n;
		int align = 1 << (a->i->align > 4 ? 4 : a->i->align);

		/* What the constant part of the place adds to the alignment. */
		while (align > 1 && at % align)
			align /= 2;
		n = piece_bytes(a, left, align);
		if (n < 4 && left >= n * 2) {
			int word = left < 4 ? left : 4;

			gather_register(s, a, at, word, n);
			at += word;
		} else if (n < 16 && left >= 2 * n &&
			   pairs_up(a, at, 2 * n, align)) {
			two_pieces(s, a, at, 2 * n);
			at += 2 * n;
		} else {
			one_piece(s, a, at, n,
				  mir_part(a->data, at / 4, (n + 3) / 4));
			at += n;
		}
	}
}

/* ----------------------------------------------------------- addresses ---- */

static struct mir_opnd zero_vreg(struct sel *s)
{
	if (s->zero_in != s->b) {
		s->zero = sel_new_v(s, 1);
		s->zero_in = s->b;
		sel_copy(s, s->zero, mir_imm(0));
	}
	return s->zero;
}

/* Offsets have 13 bits and a sign, in gfx10 12. */
static int64_t global_reach(const struct sel *s)
{
	return s->m->gen < ISA_GFX11 ? 2048 : 4096;
}

static bool fits_global(const struct sel *s, int64_t off)
{
	return off >= -global_reach(s) && off < global_reach(s);
}

/* A constant that the instruction cannot hold goes to the base. */
static struct mir_opnd add_const(struct sel *s, struct mir_opnd base,
				 int64_t c)
{
	struct mir_opnd d = mir_is_s(s->m, &base) ? sel_new_s(s, 2) :
						    sel_new_v(s, 2);
	struct mir_opnd k = mir_is_s(s->m, &base) ? sel_new_s(s, 2) :
						    sel_new_v(s, 2);

	sel_copy(s, mir_part(k, 0, 1), mir_imm((uint32_t)c));
	sel_copy(s, mir_part(k, 1, 1), mir_imm((uint32_t)((uint64_t)c >> 32)));
	sel_add64(s, d, base, k);
	return d;
}

/*
 * The same sum for all accesses of a block that differ by a constant only: one
 * of its own for each would wait until the access before has read its.
 */
static struct mir_opnd add_address(struct sel *s, struct mir_opnd base,
				   struct mir_opnd off, bool lds)
{
	struct sel_address *a;

	for (unsigned i = 0; i < ARRAY_SIZE(s->address); i++) {
		a = &s->address[i];
		if (a->in == s->b && mir_same(&a->base, &base) &&
		    mir_same(&a->off, &off))
			return a->sum;
	}
	a = &s->address[s->n_addresses++ % ARRAY_SIZE(s->address)];
	*a = (struct sel_address){ s->b, base, off, sel_new_v(s, lds ? 1 : 2) };
	if (lds)
		sel_v(s, ISA_v_add_nc_u32, a->sum, base, off);
	else
		sel_add64_u32(s, a->sum, base, off);
	return a->sum;
}

static void scalar_base(struct sel *s, struct sel_access *a,
			struct mir_opnd base, struct mir_opnd off)
{
	int64_t c = a->i->off;

	a->base = base;
	if (off.kind == MIR_IMM) {
		c += off.imm;
		if (fits_global(s, c)) {
			a->addr = zero_vreg(s);
			a->off = (int32_t)c;
			return;
		}
		if (c >= 0 && c <= UINT32_MAX) {
			a->addr = sel_new_v(s, 1);
			a->off = (int32_t)(c % global_reach(s));
			sel_copy(s, a->addr, mir_imm((uint32_t)(c - a->off)));
			return;
		}
		a->base = add_const(s, base, c);
		a->addr = zero_vreg(s);
		return;
	}
	if (!fits_global(s, c)) {
		a->base = add_const(s, base, c);
		c = 0;
	}
	a->addr = sel_to_v(s, off);
	a->off = (int32_t)c;
}

static void vector_base(struct sel *s, struct sel_access *a,
			struct mir_opnd base, struct mir_opnd off)
{
	int64_t c = a->i->off;

	a->base = mir_off();
	if (off.kind == MIR_IMM)
		c += off.imm;
	else
		base = add_address(s, base, off, false);
	if (!fits_global(s, c)) {
		base = add_const(s, base, c);
		c = 0;
	}
	a->addr = base;
	a->off = (int32_t)c;
}

/* A constant LDS address folds into the offset. */
static void lds_address(struct sel *s, struct sel_access *a)
{
	const struct ssa_inst *i = a->i;
	struct mir_opnd base = sel_get(s, i->arg[0]);
	struct mir_opnd off = sel_get(s, i->arg[1]);
	int64_t c = i->off;

	if (base.kind == MIR_IMM)
		c += base.imm;
	if (off.kind == MIR_IMM)
		c += off.imm;
	if (base.kind == MIR_IMM && off.kind == MIR_IMM) {
		a->addr = zero_vreg(s);
	} else if (base.kind == MIR_IMM || off.kind == MIR_IMM) {
		a->addr = sel_to_v(s, base.kind == MIR_IMM ? off : base);
	} else {
		a->addr = add_address(s, base, off, true);
	}
	/* Room for the last piece of a wide access. */
	if (c < 0 || c > 65535 - 64) {
		struct mir_opnd t = sel_v1(s, ISA_v_add_nc_u32,
					   mir_imm((uint32_t)c), a->addr);
		a->addr = t;
		c = 0;
	}
	a->off = (int32_t)c;
}

void sel_address(struct sel *s, struct sel_access *a)
{
	struct mir_opnd base, off;

	a->lds = a->i->arg[0]->type.kind == SSA_LDS;
	if (a->lds) {
		lds_address(s, a);
		return;
	}
	base = sel_get(s, a->i->arg[0]);
	off = sel_get(s, a->i->arg[1]);
	if (base.kind == MIR_IMM)
		base = sel_to_s(s, base);
	if (mir_is_s(s->m, &base))
		scalar_base(s, a, base, off);
	else
		vector_base(s, a, base, off);
}

static const char *cache_policy(const struct ssa_inst *i, bool store)
{
	if (i->arg[0]->type.kind == SSA_LDS)
		return "";
	if (i->flags & SSA_VOLATILE)
		return store ? " dlc" : " glc dlc";
	if (i->flags & SSA_STREAM)
		return store ? " glc slc dlc" : " slc dlc";
	return "";
}

/* ---------------------------------------------------------- load, store ----
 */

struct mir_opnd sel_mask_begin(struct sel *s, const struct ssa_inst *mask)
{
	struct mir_opnd save = { 0 };

	if (!mask)
		return save;
	save = sel_new_mask(s);
	sel_raw(s, sel_mop(s, s_and_saveexec), save, sel_get(s, mask));
	s->glue = true;
	return save;
}

void sel_mask_end(struct sel *s, struct mir_opnd save)
{
	if (save.kind == MIR_VREG)
		sel_raw(s, s->mask == 2 ? ISA_s_mov_b64 : ISA_s_mov_b32,
			sel_exec(s), save);
	s->glue = false;
}

bool sel_load_scalar(const struct sel *s, const struct ssa_inst *i)
{
	int n = sel_dwords(s, i->type);

	return i->arg[0]->type.kind == SSA_PTR && i->n_args == 2 &&
	       i->type.kind != SSA_I1 && ssa_type_bytes(i->type) % 4 == 0 &&
	       i->align >= 2 && (n == 1 || n == 2 || n == 4 || n == 8) &&
	       never_written(s, i) && sel_is_s(s, i->arg[0]) &&
	       sel_is_s(s, i->arg[1]);
}

static void load_scalar(struct sel *s, const struct ssa_inst *i)
{
	static const uint16_t op[] = { 0, ISA_s_load_b32, ISA_s_load_b64, 0,
				       ISA_s_load_b128, 0, 0, 0,
				       ISA_s_load_b256 };
	struct mir_opnd d = sel_def(s, i), base = sel_get_s(s, i->arg[0]);
	struct mir_opnd off = sel_get(s, i->arg[1]);
	int64_t c = i->off;
	struct mir_inst *m;

	if (off.kind == MIR_IMM) {
		c += off.imm;
		off = mir_off();
	}
	/* 21 bits, signed; with a register only positive ones are clear. */
	if (c > 0xfffff || c < (off.kind == MIR_OFF ? -0x100000 : 0)) {
		base = add_const(s, base, c);
		c = 0;
	}
	if (off.kind == MIR_OFF) {
		m = sel_raw(s, op[d.n], d, base, mir_imm((uint32_t)c));
	} else {
		m = sel_raw(s, op[d.n], d, base, off);
		m->off = (int32_t)c;
	}
	m->bytes = (uint8_t)(d.n * 4);
}

/* A byte that is 0 or 1. */
static void load_mask(struct sel *s, const struct ssa_inst *i,
		      struct mir_opnd byte)
{
	sel_v(s, ISA_v_cmp_ne_u32, sel_def(s, i), mir_imm(0), byte);
}

void sel_load(struct sel *s, const struct ssa_inst *i)
{
	struct sel_access a = { .s = s,
				.i = i,
				.tail = cache_policy(i, false) };
	const struct ssa_inst *mask = i->n_args > 2 ? i->arg[2] : NULL;
	bool i1 = i->type.kind == SSA_I1;
	struct mir_opnd save;

	s->mem = i;
	if (s->val[i->id].cls == SEL_S && !i1) {
		load_scalar(s, i);
		s->mem = NULL;
		return;
	}
	a.data = i1 ? sel_new_v(s, 1) : sel_def(s, i);
	a.partial = mask;
	sel_address(s, &a);
	if (mask)
		sel_copy(s, a.data, mir_imm(0));
	save = sel_mask_begin(s, mask);
	split_access(s, &a, (int)ssa_type_bytes(i->type));
	sel_mask_end(s, save);
	s->mem = NULL;
	if (i1)
		load_mask(s, i, a.data);
}

static struct mir_opnd store_data(struct sel *s, const struct ssa_inst *v)
{
	if (v->type.kind != SSA_I1)
		return sel_get_v(s, v);
	return sel_v1(s, ISA_v_cndmask_b32, mir_imm(0), mir_imm(1),
		      sel_get(s, v));
}

void sel_store(struct sel *s, const struct ssa_inst *i)
{
	struct sel_access a = {
		.s = s, .i = i, .store = true, .tail = cache_policy(i, true)
	};
	struct mir_opnd save;

	s->mem = i;
	a.data = store_data(s, i->arg[2]);
	a.upper = s->val[i->arg[2]->id].upper.kind == MIR_VREG &&
		  i->align >= 1;
	if (a.upper)
		a.data = s->val[i->arg[2]->id].upper;
	sel_address(s, &a);
	save = sel_mask_begin(s, i->n_args > 3 ? i->arg[3] : NULL);
	split_access(s, &a, (int)ssa_type_bytes(i->arg[2]->type));
	sel_mask_end(s, save);
	s->mem = NULL;
}
