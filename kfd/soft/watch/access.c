/*
 * kfd/soft/watch/access.c - the memory accesses that an instruction is about
 * to make, lane by lane.
 *
 * Addresses of FLAT and buffer instructions come from their executors; those
 * of LDS and scalar loads are simple enough to be computed here once more.
 */
#include <string.h>

#include "kfd/soft/watch/watch_int.h"

/* ------------------------------------------------------------- sites ---- */

static bool has_part(const struct site *s, const char *part)
{
	return strstr(s->info->name, part);
}

/* "format_xyz": 3. */
static uint8_t count_components(const struct site *s)
{
	const char *f = strstr(s->info->name, "format_");

	return f ? (uint8_t)strspn(f + 7, "xyzw") : 0;
}

/* s_and_b32, s_or_not1_saveexec_b64, s_nand_b64, ... */
static enum site_bits bits_of(const char *name)
{
	static const struct {
		const char *start;
		int bits;
	} table[] = {
		{ "s_and_", BITS_AND },
		{ "s_or_", BITS_OR },
		{ "s_xor_", BITS_XOR },
		{ "s_nand_", BITS_AND | BITS_INVERT },
		{ "s_nor_", BITS_OR | BITS_INVERT },
		{ "s_xnor_", BITS_XOR | BITS_INVERT },
	};
	int bits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!strncmp(name, table[i].start, strlen(table[i].start)))
			bits = table[i].bits;
	if (!bits)
		return BITS_NONE;
	bits |= strstr(name, "_not0_") ? BITS_NOT0 : 0;
	bits |= strstr(name, "_not1_") ? BITS_NOT1 : 0;
	bits |= strstr(name, "_saveexec_") ? BITS_SAVE : 0;
	bits |= strstr(name, "_wrexec_") ? BITS_WRITE : 0;
	return (enum site_bits)bits;
}

static void init_lds(struct site *s, const void *row)
{
	switch (s->u.in.op) {
	case ISA_ds_permute_b32:
	case ISA_ds_bpermute_b32:
	case ISA_ds_swizzle_b32:
		s->kind = SITE_LANES;
		s->u.fn = soft_lds_handler(&s->u.in, &s->u.op);
		return;
	case ISA_ds_nop:
		s->kind = SITE_ALU;
		return;
	}
	s->kind = SITE_LDS;
	s->access = *(const struct soft_access *)row;
	if (s->u.in.op == ISA_ds_condxchg32_rtn_b64)
		s->access.bytes = 8;
	s->n_addr = has_part(s, "_2addr") ? 2 : 1;
	s->stride = has_part(s, "_stride64") ? 64 : 1;
	s->returns = s->access.returns || s->u.in.op == ISA_ds_append ||
		     s->u.in.op == ISA_ds_consume ||
		     s->u.in.op == ISA_ds_condxchg32_rtn_b64;
}

/* v_mov_b32_dpp v1, v0 with this instruction's lane pattern. */
static void init_mov(struct site *s, const struct isa_target *t)
{
	const struct isa_inst *in = &s->u.in;
	const uint32_t src0 = in->form == ISA_FORM_DPP16 ? 250 :
			      in->dpp.fi		 ? 234 :
							   233;
	/* Bits 7:0 name the source, 23:20 its modifiers. */
	const uint32_t words[2] = { 0x7e020200u | src0,
				    in->form == ISA_FORM_DPP16 ?
					    in->extra[0] & 0xff0fff00 :
					    in->extra[0] & 0xffffff00 };

	if (!isa_decode(t, words, sizeof(words), &s->mov.in))
		s->mov.fn = soft_valu_handler(&s->mov.in, &s->mov.op);
}

void watch_site_init(struct site *s, const struct isa_target *t)
{
	const struct isa_inst *in = &s->u.in;
	const void *row = NULL;
	s->info = isa_op_info(in->op);
	isa_use(t, in, &s->use);
	s->bits = bits_of(s->info->name);
	s->is_load = s->info->flags & ISA_LOAD;
	s->is_store = s->info->flags & ISA_STORE;
	s->is_atomic = s->info->flags & ISA_ATOMIC;
	s->by_buffer = has_part(s, "buffer");
	s->by_id = has_part(s, "_addtid_");
	s->two_sources = has_part(s, "_src2_");
	s->replaces = (has_part(s, "swap_b") && !has_part(s, "cmpswap")) ||
		      has_part(s, "storexchg") || has_part(s, "write_src2");
	if (in->form == ISA_FORM_DPP16 || in->form == ISA_FORM_DPP8)
		init_mov(s, t);
	if (in->op == ISA_v_permlane16_b32 || in->op == ISA_v_permlanex16_b32 ||
	    in->op == ISA_v_permlane64_b32)
		s->u.fn = soft_valu_handler(in, &s->u.op);
	switch (in->fmt) {
	case ISA_FMT_SMEM:
		if (s->is_load) {
			s->kind = SITE_SMEM;
			s->access.bytes = (uint8_t)(in->opnd[0].dwords * 4);
		}
		return;
	case ISA_FMT_DS:
		if (soft_lds_handler(in, &row))
			init_lds(s, row);
		return;
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
		s->kind = SITE_FLAT;
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		s->kind = SITE_BUFFER;
		s->n_comps = count_components(s);
		break;
	case ISA_FMT_MIMG:
		s->kind = soft_vmem_handler(in, &row) ? SITE_IMAGE : SITE_ALU;
		s->returns = s->is_atomic && in->f[ISA_F_GLC];
		return;
	default:
		return;
	}
	if (!soft_vmem_handler(in, &row) ||
	    !(s->is_load || s->is_store || s->is_atomic)) {
		s->kind = SITE_ALU; /* refused, or an invalidation */
		return;
	}
	s->access = *(const struct soft_access *)row;
	s->returns = s->is_atomic && (s->access.returns || in->f[ISA_F_GLC]);
}

/* ---------------------------------------------------------- accesses ---- */

static void add_access(struct soft_watch *t, const struct site *s,
		       enum soft_space space, uint64_t at, uint32_t size,
		       int lane, int part)
{
	struct access *x = &t->access[t->n_accesses];

	if (t->n_accesses == WATCH_ACCESSES_MAX || !size)
		return;
	t->n_accesses++;
	*x = (struct access){ .at = at,
			      .size_bytes = (uint16_t)size,
			      .space = (uint8_t)space,
			      .lane = (int8_t)lane,
			      .part = (uint8_t)part,
			      .write = s->is_store || s->is_atomic,
			      .atomic = s->is_atomic };
}

/* Bits 1:0 of every part of the address are ignored (RDNA3 ISA 8). */
static void access_smem(struct soft_watch *t, struct soft_wave *w,
			const struct site *s)
{
	const uint32_t *f = s->u.in.f, *base = &w->s[f[ISA_F_SBASE] * 2];
	const int32_t imm = (int32_t)f[ISA_F_OFFSET];
	const uint32_t soff =
		f[ISA_F_SOFFSET] == ISA_R_NULL ? 0 : w->s[f[ISA_F_SOFFSET]];
	uint64_t at = (uint64_t)(int64_t)(imm & ~3) + (soff & ~3u);
	uint64_t va = base[0] & ~3u, stride, size;

	if (!s->by_buffer) {
		va |= (uint64_t)base[1] << 32;
		add_access(t, s, SOFT_SPACE_MEMORY, va + at, s->access.bytes,
			   -1, 0);
		return;
	}
	va = soft_canonical(va | (uint64_t)(base[1] & 0xffff) << 32);
	stride = base[1] >> 16 & 0x3fff;
	size = base[2] * (stride ? stride : 1);
	for (int i = 0; i < s->access.bytes / 4; i++, at += 4)
		if (at < size && size - at >= 4)
			add_access(t, s, SOFT_SPACE_MEMORY, va + at, 4, -1, i);
}

static void flat_lane(struct soft_watch *t, struct soft_wave *w,
		      const struct site *s, int h, uint32_t lane)
{
	const uint32_t *f = s->u.in.f;
	struct soft_place p = { SOFT_SPACE_MEMORY, 0,
				h * SOFT_LANES + (int)lane };

	if (s->by_id) {
		p.at = (uint64_t)(int64_t)(int32_t)f[ISA_F_OFFSET] +
		       4 * (uint64_t)p.lane;
		if (f[ISA_F_SADDR] != ISA_R_NULL)
			p.at += w->s[f[ISA_F_SADDR]] +
				((uint64_t)w->s[f[ISA_F_SADDR] + 1] << 32);
	} else {
		soft_find_place(w, &s->u, h, lane, &p);
	}
	if (p.space == SOFT_SPACE_SWIZZLED)
		p.space = SOFT_SPACE_SCRATCH;
	add_access(t, s, p.space, p.at, s->access.bytes, p.lane, 0);
}

/* Where scratch memory is swizzled, buffer instructions access it, too. */
static bool is_scratch(const struct soft_wave *w, uint64_t va)
{
	return w->group->env->swizzles_scratch && va >= w->scratch_va &&
	       va - w->scratch_va <
		       (uint64_t)w->scratch_lane_bytes * (uint32_t)w->wave_size;
}

static void add_buffer_access(struct soft_watch *t, const struct soft_wave *w,
			      const struct site *s, uint64_t va, uint32_t size,
			      int lane, int part)
{
	const uint64_t at = va - w->scratch_va;

	if (!is_scratch(w, va)) {
		add_access(t, s, SOFT_SPACE_MEMORY, va, size, lane, part);
		return;
	}
	add_access(t, s, SOFT_SPACE_SCRATCH,
		   at / 4 / (uint32_t)w->wave_size * 4 + at % 4, size,
		   (int)(at / 4 % (uint32_t)w->wave_size), part);
}

/* Dwords of an untyped access are checked one by one, typed ones at once. */
static void buffer_lane(struct soft_watch *t, struct soft_wave *w,
			const struct site *s, const struct soft_buffer *b,
			int h, uint32_t lane)
{
	const int l = h * SOFT_LANES + (int)lane;
	uint32_t n = s->access.bytes, step = n;
	uint64_t va;

	if (s->n_comps)
		step = n = soft_format_bytes(
			b->format, s->is_load && s->u.in.fmt == ISA_FMT_MUBUF ?
					   4 :
					   s->n_comps);
	else if (!s->is_atomic && n > 4)
		step = 4;
	for (uint32_t i = 0; i < n; i += step)
		if (soft_buffer_at(b, w, &s->u, h, lane, i, step, &va))
			add_buffer_access(t, w, s, va, step, l,
					  s->n_comps ? 0 : (int)(i / 4));
}

static void lds_lane(struct soft_watch *t, struct soft_wave *w,
		     const struct site *s, int h, uint32_t lane)
{
	const uint32_t *f = s->u.in.f, bytes = s->access.bytes;
	const int l = h * SOFT_LANES + (int)lane;
	uint32_t base = w->v[h][f[ISA_F_ADDR]][lane];

	if (s->n_addr == 2) {
		const uint32_t unit = bytes * s->stride;

		add_access(t, s, SOFT_SPACE_LDS, base + f[ISA_F_OFFSET0] * unit,
			   bytes, l, 0);
		add_access(t, s, SOFT_SPACE_LDS, base + f[ISA_F_OFFSET1] * unit,
			   bytes, l, (int)(bytes + 3) / 4);
		return;
	}
	if (s->two_sources) {
		const struct isa_src2 at = isa_lds_src2(
			base, f[ISA_F_OFFSET0] | f[ISA_F_OFFSET1] << 8);

		add_access(t, s, SOFT_SPACE_LDS, at.a, bytes, l, 0);
		add_access(t, s, SOFT_SPACE_LDS, at.b, bytes, l, 0);
		t->access[t->n_accesses - 1].write = false;
		return;
	}
	if (s->by_id || s->u.in.op == ISA_ds_append ||
	    s->u.in.op == ISA_ds_consume)
		base = w->s[ISA_R_M0] & 0xffff;
	if (s->by_id)
		base += 4 * (uint32_t)l;
	base += f[ISA_F_OFFSET0] | f[ISA_F_OFFSET1] << 8;
	if (s->u.in.op == ISA_ds_condxchg32_rtn_b64)
		base &= 0xfff8;
	add_access(t, s, SOFT_SPACE_LDS, base, bytes, l, 0);
}

void watch_find_accesses(struct soft_watch *t, struct soft_wave *w,
			 const struct site *s)
{
	struct soft_buffer b;

	if (s->kind == SITE_SMEM) {
		access_smem(t, w, s);
		return;
	}
	if (s->kind == SITE_BUFFER)
		soft_buffer_init(&b, w, &s->u);
	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			if (s->kind == SITE_FLAT)
				flat_lane(t, w, s, h, lane);
			else if (s->kind == SITE_BUFFER)
				buffer_lane(t, w, s, &b, h, lane);
			else if (s->kind == SITE_LDS)
				lds_lane(t, w, s, h, lane);
			if (s->u.in.op == ISA_ds_append ||
			    s->u.in.op == ISA_ds_consume)
				return; /* once for the wave */
		}
	}
}
