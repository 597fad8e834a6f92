/*
 * kfd/soft/exec/buffer.c - MUBUF and MTBUF: memory through a buffer descriptor.
 *
 * RDNA3 ISA 9.  The descriptor gives base, stride, number of records, swizzling
 * and how to check the range.  What is out of range reads 0 and is not written.
 */
#include <string.h>

#include "kfd/soft/exec/mem.h"

struct row {
	struct soft_access a;
	uint8_t n;   /* components of typed accesses, else 0 */
	bool d16;    /* they are packed two to a register */
	bool to_lds; /* loads: the destination is LDS */
};

void soft_buffer_init(struct soft_buffer *b, struct soft_wave *w,
		      const struct soft_uop *u)
{
	const uint32_t *d = &w->s[u->in.f[ISA_F_SRSRC] * 4];
	static const uint8_t gfx10[4] = { 0, 0, 4, 4 },
			     gfx11[4] = { 0, 4, 8, 16 };
	static const uint8_t *const element[ISA_GEN_COUNT] = {
		[ISA_GFX10_1] = gfx10,
		[ISA_GFX10_3] = gfx10,
		[ISA_GFX11] = gfx11,
		[ISA_GFX11_5] = gfx11,
		[ISA_GFX12] = gfx11,
	};

	b->base = soft_canonical(d[0] | (uint64_t)(d[1] & 0xffff) << 32);
	b->stride = d[1] >> 16 & 0x3fff;
	b->element = element[u->in.gen][d[1] >> 30];
	b->records = d[2];
	for (int i = 0; i < 4; i++)
		b->sel[i] = d[3] >> 3 * i & 7;
	b->format = d[3] >> 12 & 0x7f;
	b->index_stride = 8u << (d[3] >> 21 & 3);
	b->add_tid = d[3] >> 23 & 1;
	b->oob = d[3] >> 28 & 3;
	if (b->add_tid) /* the format's low bits are the stride's high ones */
		b->stride |= (b->format & 15) << 14;
	if (u->in.fmt == ISA_FMT_MTBUF)
		b->format = u->in.f[ISA_F_FORMAT];
	b->format = soft_unify_format(u->in.gen, b->format);
	b->soffset = 0;
	for (int i = 0; i < u->in.n_opnd; i++)
		if (u->in.opnd[i].slot == ISA_SLOT_SOFFSET)
			b->soffset = (uint32_t)soft_read_scalar(
				w, &u->in.opnd[i], &u->in);
}

/* One lane's position in a buffer. */
struct spot {
	uint32_t index, offset;
};

static struct spot find_spot(const struct soft_wave *w,
			     const struct soft_uop *u,
			     const struct soft_buffer *b, int h, uint32_t lane)
{
	const uint32_t *f = u->in.f;
	uint32_t reg = f[ISA_F_ADDR];
	struct spot s = { 0, f[ISA_F_OFFSET] };

	if (f[ISA_F_IDXEN])
		s.index = w->v[h][reg++][lane];
	if (f[ISA_F_OFFEN])
		s.offset += w->v[h][reg][lane];
	if (b->add_tid)
		s.index += h * SOFT_LANES + lane;
	return s;
}

static uint64_t buffer_address(const struct soft_buffer *b, struct spot s)
{
	uint64_t at;

	if (b->element) {
		uint64_t block = s.index / b->index_stride;
		uint64_t unit = s.offset / b->element;

		at = (block * b->stride + unit * b->element) * b->index_stride +
		     (uint64_t)(s.index % b->index_stride) * b->element +
		     s.offset % b->element;
	} else {
		at = (uint64_t)s.index * b->stride + s.offset;
	}
	return b->base + b->soffset + at;
}

static bool in_range(const struct soft_buffer *b, struct spot s, uint32_t bytes)
{
	uint64_t end = (uint64_t)s.offset + bytes;

	switch (b->oob) {
	case SOFT_OOB_INDEX_AND_OFFSET:
		return s.index < b->records && (!b->stride || end <= b->stride);
	case SOFT_OOB_INDEX:
		return s.index < b->records;
	case SOFT_OOB_NO_RECORDS:
		return b->records != 0;
	case SOFT_OOB_RAW:
		break;
	}
	if (b->element && b->stride && end > b->stride)
		return false;
	return (uint64_t)s.index * b->stride + end +
		       (b->element ? 0 : b->soffset) <=
	       b->records;
}

/* -------------------------------------------------- untyped accesses ---- */

/* Dwords are checked one by one: a wide access may be half inside. */
static bool load_raw(struct soft_wave *w, const struct soft_buffer *b,
		     struct spot s, uint32_t bytes, uint32_t *value, int lane)
{
	uint32_t step = bytes < 4 ? bytes : 4;

	for (uint32_t i = 0; i < bytes; i += step, s.offset += step) {
		value[i / 4] = 0;
		if (in_range(b, s, step) &&
		    !soft_load(w, buffer_address(b, s), &value[i / 4], step,
			       lane))
			return false;
	}
	return true;
}

static bool store_raw(struct soft_wave *w, const struct soft_buffer *b,
		      struct spot s, uint32_t bytes, const uint32_t *value,
		      int lane)
{
	uint32_t step = bytes < 4 ? bytes : 4;

	for (uint32_t i = 0; i < bytes; i += step, s.offset += step)
		if (in_range(b, s, step) &&
		    !soft_store(w, buffer_address(b, s), &value[i / 4], step,
				lane))
			return false;
	return true;
}

/* ---------------------------------------------------- typed accesses ---- */

/* MUBUF takes components as the descriptor says; MTBUF in their order. */
static uint32_t select_component(const struct soft_buffer *b,
				 const uint32_t *value, int sel, bool d16)
{
	if (sel >= 4)
		return value[sel - 4];
	return sel == 1 ? soft_format_one(b->format, d16) : 0;
}

static bool load_typed(struct soft_wave *w, const struct soft_uop *u,
		       const struct soft_buffer *b, struct spot s,
		       uint32_t *value, int lane)
{
	const struct row *r = u->op;
	bool mubuf = u->in.fmt == ISA_FMT_MUBUF;
	uint32_t bytes = soft_format_bytes(b->format, mubuf ? 4 : r->n);
	uint32_t all[4] = { 0 };
	uint8_t mem[16] = { 0 };

	memset(value, 0, 16);
	if (!bytes || !in_range(b, s, bytes))
		return true;
	if (!soft_load(w, buffer_address(b, s), mem, bytes, lane))
		return false;
	soft_format_load(b->format, r->d16, mem, all);
	for (int i = 0; i < 4; i++)
		value[i] = mubuf ? select_component(b, all, b->sel[i], r->d16) :
				   all[i];
	return true;
}

/* Only the bytes of the components given are written. */
static bool store_typed(struct soft_wave *w, const struct soft_uop *u,
			const struct soft_buffer *b, struct spot s,
			const uint32_t *value, int lane)
{
	const struct row *r = u->op;
	uint32_t bytes = soft_format_bytes(b->format, r->n);
	uint8_t mem[16] = { 0 };

	if (!bytes || !in_range(b, s, soft_format_bytes(b->format, 4)))
		return true;
	soft_format_store(b->format, r->d16, value, mem);
	return soft_store(w, buffer_address(b, s), mem, bytes, lane);
}

/* ---------------------------------------------- components, registers ---- */

/* n components: a register each, or two to a register. */
static void put_components(struct soft_wave *w, const struct row *r, int h,
			   uint32_t lane, uint32_t reg, const uint32_t *value)
{
	struct soft_access half = { .bytes = 4, .part = SOFT_LOW };

	for (int i = 0; i < r->n; i++) {
		if (!r->d16) {
			w->v[h][reg + i][lane] = value[i];
			continue;
		}
		half.part = r->a.part == SOFT_HIGH || i & 1 ? SOFT_HIGH :
							      SOFT_LOW;
		soft_put_lane(w, &half, h, lane, reg + i / 2, &value[i]);
	}
}

static void get_components(const struct soft_wave *w, const struct row *r,
			   int h, uint32_t lane, uint32_t reg, uint32_t *value)
{
	memset(value, 0, 16);
	for (int i = 0; i < r->n; i++) {
		if (!r->d16) {
			value[i] = w->v[h][reg + i][lane];
			continue;
		}
		value[i] = w->v[h][reg + i / 2][lane];
		if (r->a.part == SOFT_HIGH || i & 1)
			value[i] >>= 16;
		value[i] &= 0xffff;
	}
}

/* ---------------------------------------------------------- handlers ---- */

bool soft_load_to_lds(struct soft_wave *w, const struct soft_uop *u,
		      uint32_t value, int lane)
{
	uint64_t at = (w->s[ISA_R_M0] & 0xffff) + u->in.f[ISA_F_OFFSET] +
		      4 * (uint64_t)lane;
	uint8_t *p = soft_lds_at(w, at, 4);

	if (p) {
		memcpy(p, &value, 4);
		return true;
	}
	soft_raise(w, SOFT_FAULT_APERTURE,
		   "write at offset 0x%llx of LDS, which has %u bytes",
		   (unsigned long long)at, w->group->lds_size_bytes);
	return false;
}

static bool load_lane(struct soft_wave *w, const struct soft_uop *u,
		      const struct soft_buffer *b, int h, uint32_t lane)
{
	const struct row *r = u->op;
	struct spot s = find_spot(w, u, b, h, lane);
	int l = h * SOFT_LANES + (int)lane;
	uint32_t value[4] = { 0 };

	if (r->n ? !load_typed(w, u, b, s, value, l) :
		   !load_raw(w, b, s, r->a.bytes, value, l))
		return false;
	if (r->to_lds) {
		value[0] = soft_extend(&r->a, value[0]);
		return soft_load_to_lds(w, u, value[0], l);
	}
	if (r->n)
		put_components(w, r, h, lane, u->in.f[ISA_F_VDATA], value);
	else
		soft_put_lane(w, &r->a, h, lane, u->in.f[ISA_F_VDATA], value);
	return true;
}

static bool store_lane(struct soft_wave *w, const struct soft_uop *u,
		       const struct soft_buffer *b, int h, uint32_t lane)
{
	const struct row *r = u->op;
	struct spot s = find_spot(w, u, b, h, lane);
	int l = h * SOFT_LANES + (int)lane;
	uint32_t value[4];

	if (r->n) {
		get_components(w, r, h, lane, u->in.f[ISA_F_VDATA], value);
		return store_typed(w, u, b, s, value, l);
	}
	soft_get_lane(w, &r->a, h, lane, u->in.f[ISA_F_VDATA], value);
	return store_raw(w, b, s, r->a.bytes, value, l);
}

/* Where an atomic works, or NULL after raising a fault. */
static void *atomic_host(struct soft_wave *w, uint64_t va, uint32_t bytes,
			 int lane)
{
	if (!(va & (bytes - 1)))
		return soft_host_address(w, va, bytes,
					 SOFT_MEM_READ | SOFT_MEM_WRITE, lane);
	soft_raise(w, SOFT_FAULT_ALIGN,
		   "buffer atomic of %u bytes at 0x%llx: not aligned", bytes,
		   (unsigned long long)va);
	soft_fault_at(w, va, true, lane);
	return NULL;
}

static bool atomic_lane(struct soft_wave *w, const struct soft_uop *u,
			const struct soft_buffer *b, int h, uint32_t lane)
{
	const struct soft_access *a = &((const struct row *)u->op)->a;
	struct spot s = find_spot(w, u, b, h, lane);
	uint32_t reg = u->in.f[ISA_F_VDATA];
	uint64_t x, y, old = 0;

	soft_get_operands(w, a, h, lane, reg, &x, &y);
	if (in_range(b, s, a->bytes)) {
		void *host = atomic_host(w, buffer_address(b, s), a->bytes,
					 h * SOFT_LANES + (int)lane);

		if (!host)
			return false;
		old = soft_atomic_apply(host, a->bytes, a->fn, x, y, w->mode);
	}
	if (u->in.f[ISA_F_GLC])
		soft_put_old(w, a, h, lane, reg, old);
	return true;
}

typedef bool lane_fn(struct soft_wave *w, const struct soft_uop *u,
		     const struct soft_buffer *b, int h, uint32_t lane);

/* Every lane that executes, until one faults. */
static inline void run_lanes(struct soft_wave *w, const struct soft_uop *u,
			     lane_fn *fn)
{
	struct soft_buffer b;

	soft_buffer_init(&b, w, u);
	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
	if (!fn(w, u, &b, h, lane))
		return;
}

static void run_load(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, load_lane);
}

static void run_store(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, store_lane);
}

static void run_atomic(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, atomic_lane);
}

/*
 * Nothing is cached here, but what other threads stored before has to be
 * seen after: an exchange orders loads behind stores on every host.
 */
void soft_run_invalidate(struct soft_wave *w, const struct soft_uop *u)
{
	int fence = 0;

	(void)w;
	(void)u;
	__atomic_exchange_n(&fence, 1, __ATOMIC_SEQ_CST);
}

bool soft_buffer_at(const struct soft_buffer *b, const struct soft_wave *w,
		    const struct soft_uop *u, int half, uint32_t lane,
		    uint32_t skip, uint32_t bytes, uint64_t *va)
{
	struct spot s = find_spot(w, u, b, half, lane);

	s.offset += skip;
	*va = buffer_address(b, s);
	return in_range(b, s, bytes);
}

/* ------------------------------------------------------------- table ---- */

/* clang-format off */
/*
 * Rows of vmem.def, loads to LDS, and typed accesses of `count` components.
 * TYPED2(buffer, d16_format_xy, true, SOFT_WHOLE, 2) makes two rows, of which
 * the first is
 *
 *	[ISA_buffer_load_d16_format_xy] = { run_load, {
 *		.a = { .part = SOFT_WHOLE }, .n = 2, .d16 = true } },
 */
#define LOAD(name, b, sgn, prt)                                            \
	[ISA_buffer_load_##name] = { run_load, { .a = { .bytes = b,        \
		.is_signed = sgn, .part = prt } } },
#define TO_LDS(name, b, sgn, count)                                        \
	[ISA_buffer_load_lds_##name] = { run_load, { .a = { .bytes = b,    \
		.is_signed = sgn }, .n = count, .to_lds = true } },
#define STORE(name, b, prt)                                                \
	[ISA_buffer_store_##name] = { run_store, { .a = { .bytes = b,      \
		.part = prt } } },
#define TYPED2(insn, comps, half, prt, count)                              \
	[ISA_##insn##_load_##comps] = { run_load, { .a = { .part = prt },  \
		.n = count, .d16 = half } },                               \
	[ISA_##insn##_store_##comps] = { run_store, { .a = { .part = prt },\
		.n = count, .d16 = half } },
#define TYPED(insn)                                                        \
	TYPED2(insn, format_x, false, SOFT_WHOLE, 1)                       \
	TYPED2(insn, format_xy, false, SOFT_WHOLE, 2)                      \
	TYPED2(insn, format_xyz, false, SOFT_WHOLE, 3)                     \
	TYPED2(insn, format_xyzw, false, SOFT_WHOLE, 4)                    \
	TYPED2(insn, d16_format_x, true, SOFT_WHOLE, 1)                    \
	TYPED2(insn, d16_format_xy, true, SOFT_WHOLE, 2)                   \
	TYPED2(insn, d16_format_xyz, true, SOFT_WHOLE, 3)                  \
	TYPED2(insn, d16_format_xyzw, true, SOFT_WHOLE, 4)
#define ATOMIC_ROW(name, b, f, pair)                                       \
	[ISA_buffer_atomic_##name] = { run_atomic, { .a = { .bytes = b,    \
		.fn = soft_atomic_##f, .two = pair } } },

static const struct {
	soft_handler *fn;
	struct row row;
} table[ISA_OP_COUNT] = {
#include "kfd/soft/exec/vmem.def"
	TO_LDS(u8, 1, 0, 0)
	TO_LDS(i8, 1, 1, 0)
	TO_LDS(u16, 2, 0, 0)
	TO_LDS(i16, 2, 1, 0)
	TO_LDS(b32, 4, 0, 0)
	TO_LDS(format_x, 4, 0, 1)
	TYPED(buffer)
	TYPED(tbuffer)
	TYPED2(buffer, d16_hi_format_x, true, SOFT_HIGH, 1)
	[ISA_buffer_atomic_csub_u32] = { run_atomic, {
		.a = { .bytes = 4, .fn = soft_atomic_csub_32 } } },
	[ISA_buffer_gl0_inv] = { soft_run_invalidate, { .n = 0 } },
	[ISA_buffer_gl1_inv] = { soft_run_invalidate, { .n = 0 } },
};
/* clang-format on */

const struct soft_access *soft_buffer_plain(const struct soft_uop *u,
					    bool *store)
{
	const struct row *r = u->op;

	*store = u->fn == run_store;
	if ((u->fn != run_load && !*store) || r->n || r->to_lds)
		return NULL;
	return &r->a;
}

/* Status of partially resident textures (TFE) is not there. */
soft_handler *soft_buffer_handler(const struct isa_inst *in, const void **op)
{
	*op = &table[in->op].row;
	return in->f[ISA_F_TFE] ? NULL : table[in->op].fn;
}
