/*
 * ref-vector - what a vector instruction does to a state, by rows of
 * tests/ref/valu.def: operands with all that their kinds and modifiers mean,
 * one lane's arithmetic, output modifiers, masks.
 *
 *	expect(&in, &rows[in.op], 32, mode, &old, &got, &want);
 */
#ifndef T0_TESTS_REF_VECTOR_H
#define T0_TESTS_REF_VECTOR_H

#include "isa/code/code.h"
#include "tests/ref/dpp.h"
#include "tests/ref/lane.h"
#include "tests/ref/state.h"

/* ---------------------------------------------------------- references ---- */

typedef uint64_t lane_fn(struct ref_lane *l);

#define R(name, flags, ...) \
	static uint64_t ref_##name(struct ref_lane *l) \
	{ \
		uint64_t a = l->s[0], b = l->s[1], c = l->s[2], d; \
		bool clamp = l->clamp, ieee = l->mode & SOFT_MODE_IEEE; \
		bool in = l->in, out = l->out; \
		int nan = ieee ? 0 : REF_SIGNAL; \
		int rs = (l->mode & 3) | nan | \
			 (l->mode & 0x20 ? 0 : REF_FLUSH); \
		int rh = (l->mode >> 2 & 3) | nan | \
			 (l->mode & 0x80 ? 0 : REF_FLUSH); \
		long double x = 0; \
\
		d = (uint64_t)(__VA_ARGS__); \
		(void)a, (void)b, (void)c, (void)clamp, (void)ieee; \
		(void)in, (void)rs, (void)rh, (void)nan, (void)x; \
		l->out |= out; \
		return d; \
	}
#include "tests/ref/valu.def"

static const struct row {
	lane_fn *fn;
	unsigned flags;
} rows[ISA_OP_COUNT] = {
#define R(name, flags, ...) [ISA_##name] = { ref_##name, flags },
#include "tests/ref/valu.def"
};

/* --------------------------------------------------------------- lanes ---- */

/*
 * An inline constant as the operand's register would hold it (RDNA3 ISA 5.4,
 * 7.1): a double for 64 bits.  A 16-bit operand, integers among them, has the
 * half in bits 15:0 and zeros above, and so has an f16 pair (AMD on gfx10 to
 * gfx12, llvm-project pull request 198005); in dual issue the pair has it in
 * both places, and a bf16 pair has the upper half of the 32-bit constant there
 * (measured on gfx1100 by AMD's rocjitsu).  All others, pairs of integers among
 * them, see the 32-bit constant.
 */
static inline uint64_t inline_constant(const struct isa_inst *in,
				       const struct isa_operand *o)
{
	static const double number[] = { 0.5, -0.5, 1, -1, 2, -2, 4, -4 };
	const struct isa_type_info *t = isa_type_info(o->type);
	const bool is_float = o->reg >= 240;
	const bool half = o->type == ISA_T_MIX ?
				  o->mods & ISA_M_HI_HI :
				  t->bits == 16 &&
					  (t->count == 1 || t->kind == 'F');
	uint64_t u64, u32, u16;

	if (!is_float) {
		const int64_t n = o->reg <= 192 ? o->reg - 128 : 192 - o->reg;

		u64 = (uint64_t)n, u32 = (uint32_t)n, u16 = (uint32_t)n;
	} else if (o->reg == 248) { /* 1 / (2 pi) */
		u64 = 0x3fc45f306dc9c882, u32 = 0x3e22f983, u16 = 0x3118;
	} else {
		memcpy(&u64, &number[o->reg - 240], sizeof(u64));
		u32 = ref_convert(&F32, &F64, u64, REF_EVEN);
		u16 = ref_convert(&F16, &F64, u64, REF_EVEN);
	}
	if (o->dwords == 2)
		return u64;
	if (t->kind == 'G')
		return t->count == 2 ? (u32 >> 16) * 0x10001 :
		       is_float	     ? u32 >> 16 :
				       u32;
	if (half && t->count == 2 && in->fmt == ISA_FMT_VOPD)
		return (u16 & 0xffff) * 0x10001;
	return half ? u16 : u32;
}

/* Bits of a source of one lane, before modifiers. */
static inline uint64_t raw_source(const struct state *s,
				  const struct isa_inst *in,
				  const struct isa_operand *o, int lane, int j)
{
	const struct isa_type_info *t = isa_type_info(o->type);

	switch (o->kind) {
	case ISA_K_VGPR:
		return s->v[lane / 32][o->reg + j][lane % 32];
	case ISA_K_SGPR:
		return o->reg == ISA_R_NULL ? 0 : s->s[o->reg + j];
	case ISA_K_SPECIAL:
		return o->reg == ISA_R_SCC && !j ? s->scc : 0;
	case ISA_K_INLINE:
		return inline_constant(in, o) >> 32 * j & UINT32_MAX;
	case ISA_K_LITERAL:
		if (t->bits == 64 && t->kind == 'F')
			return j ? o->value : 0;
		if (j && t->kind == 'I')
			return (int32_t)o->value < 0 ? UINT32_MAX : 0;
		return j ? 0 : o->value;
	}
	return 0;
}

static inline const struct ref_fmt *format_of(const struct isa_type_info *t)
{
	return t->kind == 'G' ? &BF16 :
	       t->kind != 'F' ? NULL :
	       t->bits == 64  ? &F64 :
	       t->bits == 32  ? &F32 :
				&F16;
}

static inline uint64_t signs_of(uint64_t u, unsigned mods, uint64_t sign)
{
	if (mods & ISA_M_ABS)
		u &= ~sign;
	return mods & ISA_M_NEG ? u ^ sign : u;
}

/*
 * The lane that the first source comes from under DPP: `lane` without it, -1 if
 * it reads zero, NOT_WRITTEN if the lane keeps what it has.
 */
enum { NOT_WRITTEN = -2 };

static inline int first_lane(const struct isa_inst *in, const struct state *s,
			     int lane)
{
	const uint32_t dpp = in->extra[0];
	const bool fi = in->form == ISA_FORM_DPP8 ? in->f[ISA_F_SRC0] == 234 :
						    dpp >> 18 & 1;
	int from;

	if (in->form == ISA_FORM_PLAIN)
		return lane;
	if (in->form == ISA_FORM_DPP8)
		from = lane / 8 * 8 + (int)(dpp >> (8 + lane % 8 * 3) & 7);
	else
		from = ref_dpp_lane(dpp >> 8 & 511, lane);
	if (from >= 0 && !fi &&
	    !(s->s[ISA_R_EXEC_LO + from / 32] >> from % 32 & 1))
		from = -1;
	if (in->form == ISA_FORM_DPP8)
		return from;
	if (!(dpp >> 28 & 1u << lane / 16 % 2) ||
	    !(dpp >> 24 & 1u << lane % 16 / 4) ||
	    (from < 0 && !(dpp >> 19 & 1)))
		return NOT_WRITTEN;
	return from;
}

/* A source of mixed math as f32; denormals are flushed as what they are. */
static inline uint64_t mixed(uint64_t u, unsigned mods, uint32_t mode)
{
	if (mods & ISA_M_HI_HI) {
		u = (mods & ISA_M_HI ? u >> 16 : u) & 0xffff;
		u = mode >> 6 & 1 ? u : ref_flush(&F16, u);
		u = ref_convert(&F32, &F16, u, REF_SIGNAL);
	} else {
		u = mode >> 4 & 1 ? u : ref_flush(&F32, u);
	}
	return signs_of(u, mods, ref_sign(&F32));
}

/* One source with everything that its modifiers do. */
static inline uint64_t source(const struct state *s, const struct isa_inst *in,
			      const struct isa_operand *o, uint32_t mode,
			      int lane)
{
	const struct isa_type_info *t = isa_type_info(o->type);
	uint64_t u = lane < 0 ? 0 : raw_source(s, in, o, lane, 0), low, high;
	bool has_sign = t->kind == 'F' || t->kind == 'G' || t->kind == 'B';

	if (o->type == ISA_T_MIX)
		return mixed(u, o->mods, mode);
	if (o->dwords >= 2)
		return signs_of(u | raw_source(s, in, o, lane, 1) << 32,
				has_sign ? o->mods : 0, ref_sign(&F64));
	if (t->bits == 32)
		return signs_of(u, has_sign ? o->mods : 0, ref_sign(&F32));
	if (t->bits == 16 && t->count == 1)
		return signs_of((o->mods & ISA_M_HI ? u >> 16 : u) & 0xffff,
				has_sign ? o->mods : 0, ref_sign(&F16));
	if (t->bits != 16)
		return u;
	if (in->fmt != ISA_FMT_VOP3P)
		return signs_of(u, o->mods & (ISA_M_NEG | ISA_M_ABS),
				0x80008000);
	low = o->mods & ISA_M_HI ? u >> 16 : u & 0xffff;
	high = o->mods & ISA_M_HI_HI ? u >> 16 : u & 0xffff;
	if (t->kind == 'F' || t->kind == 'G') {
		low ^= o->mods & ISA_M_NEG ? 0x8000 : 0;
		high ^= o->mods & ISA_M_NEG_HI ? 0x8000 : 0;
	}
	return low | high << 16;
}

/* MODE's denormal bit for this type; every other type keeps them. */
static inline bool flushes(const struct ref_fmt *f, uint32_t mode, bool output)
{
	return f && f != &BF16 && !(mode >> (f == &F32 ? 4 : 6) >> output & 1);
}

static inline uint64_t flush_all(const struct ref_fmt *f, uint64_t u, int count)
{
	if (count == 2)
		return pair(ref_flush(f, u & 0xffff), ref_flush(f, u >> 16));
	return ref_flush(f, u);
}

/*
 * omod and clamp of one float (RDNA3 ISA 7.2).  What underflows in omod keeps
 * its sign (measured on gfx1100: AMD, rocjitsu).
 */
static inline uint64_t finish(const struct ref_fmt *f,
			      const struct isa_inst *in, unsigned flags,
			      uint32_t mode, uint64_t u)
{
	static const int times[] = { 0, 1, 2, -1 };
	const bool none = flags & OMOD || flushes(f, mode, true);
	const int round = flags & TRANS ? 0 : mode >> (f == &F32 ? 0 : 2) & 3;
	const bool inf = ref_mag(f, u) == ref_inf(f);

	if (in->f[ISA_F_OMOD] && none && !(mode & SOFT_MODE_IEEE) &&
	    !ref_is_nan(f, u)) {
		u = !ref_mag(f, ref_flush(f, u)) ?
			    0 :
			    ref_flush(f, ref_scale(f, u,
						   times[in->f[ISA_F_OMOD]],
						   round | REF_FLUSH));
		if (f == &F16 && mode & SOFT_MODE_FP16_OVFL && !inf &&
		    ref_mag(f, u) == ref_inf(f))
			u--;
	}
	if (!in->f[ISA_F_CLAMP])
		return u;
	if (ref_is_nan(f, u))
		return mode & SOFT_MODE_DX10_CLAMP ? 0 : u;
	if (u & ref_sign(f))
		return 0;
	return u > ref_one(f) ? ref_one(f) : u;
}

struct sorted {
	const struct isa_operand *dst, *mask_in, *mask_out, *src[4];
	int n;
};

static inline struct sorted sort_operands(const struct isa_inst *in)
{
	struct sorted r = { 0 };

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->slot == ISA_SLOT_CI)
			r.mask_in = o;
		else if (o->slot == ISA_SLOT_CO || o->slot == ISA_SLOT_CD)
			r.mask_out = o;
		else if (o->role & ISA_DST)
			r.dst = o;
		else
			r.src[r.n++] = o;
	}
	if (r.dst && r.dst->role & ISA_SRC && r.n < 3)
		r.src[r.n++] = r.dst;
	return r;
}

static inline uint64_t run_row(const struct row *row, struct ref_lane *l)
{
	struct ref_lane half = *l;
	uint64_t low, high;

	if (!(row->flags & PAIR))
		return row->fn(l);
	for (int i = 0; i < 3; i++)
		half.s[i] = l->s[i] & 0xffff;
	/* Each half has overflows of its own. */
	half.any_inf = false;
	for (int i = 0; i < 3; i++)
		half.any_inf |= ref_mag(&F16, half.s[i]) == ref_inf(&F16);
	low = row->fn(&half);
	half.any_inf = false;
	for (int i = 0; i < 3; i++) {
		half.s[i] = l->s[i] >> 16 & 0xffff;
		half.any_inf |= ref_mag(&F16, half.s[i]) == ref_inf(&F16);
	}
	high = row->fn(&half);
	return pair(low, high);
}

/*
 * The lane that source k comes from: interpolation takes P0, P10 and P20 from
 * lanes 0, 1 and 2 of the quad (RDNA3 ISA 12.3).
 */
static inline int source_lane_of(const struct isa_inst *in,
				 const struct state *s, int k, int lane)
{
	const int quad = lane / 4 * 4;

	if (in->fmt != ISA_FMT_VINTERP)
		return k ? lane : first_lane(in, s, lane);
	switch (in->op) {
	case ISA_v_interp_p2_f32:
	case ISA_v_interp_p2_f16_f32:
	case ISA_v_interp_p2_rtz_f16_f32:
		return k ? lane : quad + 2;
	default:
		return k == 1 ? lane : k ? quad : quad + 1;
	}
}

static inline void lane_sources(const struct state *s,
				const struct isa_inst *in,
				const struct sorted *o, unsigned flags,
				struct ref_lane *l)
{
	for (int k = 0; k < o->n; k++) {
		const struct isa_type_info *t = isa_type_info(o->src[k]->type);
		const struct ref_fmt *f = format_of(t);

		l->mods[k] = o->src[k]->mods;
		l->s[k] = source(s, in, o->src[k], l->mode,
				 source_lane_of(in, s, k, l->lane));
		if (o->src[k]->dwords == 4)
			for (int j = 0; j < 4; j++)
				l->wide[j] = (uint32_t)raw_source(
					s, in, o->src[k], l->lane, j);
		if (f && flushes(f, l->mode, false) && !(flags & MIX))
			l->s[k] = flush_all(f, l->s[k], t->count);
		if (f)
			l->any_inf |= ref_mag(f, l->s[k]) == ref_inf(f);
	}
}

/* What the lane's destination becomes; `got` is taken where it is as good. */
static inline void lane_result(const struct isa_inst *in, const struct row *row,
			       const struct isa_operand *dst,
			       struct ref_lane *l, uint64_t d,
			       const struct state *got, struct state *want)
{
	const struct isa_type_info *t = isa_type_info(dst->type);
	const struct ref_fmt *f = format_of(t);
	uint32_t(*v)[SOFT_LANES] = &want->v[l->lane / 32][dst->reg];
	const uint32_t(*g)[SOFT_LANES] = &got->v[l->lane / 32][dst->reg];
	int i = l->lane % 32;
	bool high = dst->mods & ISA_M_HI || in->op == ISA_v_fma_mixhi_f16;
	uint64_t gd = g[0][i];

	if (dst->dwords == 2)
		gd |= (uint64_t)g[1][i] << 32;
	if (t->bits == 16 && t->count == 1)
		gd = (high ? gd >> 16 : gd) & 0xffff;
	if (f && row->flags & (ARITH | MIX | TRANS) &&
	    flushes(f, l->mode, true))
		d = flush_all(f, d, t->count);
	if (f && f != &BF16 && t->count == 2)
		d = pair(finish(f, in, row->flags, l->mode, d & 0xffff),
			 finish(f, in, row->flags, l->mode, d >> 16));
	else if (f && f != &BF16)
		d = finish(f, in, row->flags, l->mode, d);
	if (l->skip)
		d = gd;
	if (row->flags & TRANS &&
	    (ref_ulps(f, gd, d) <= 1 ||
	     (ref_mag(f, gd) >> f->frac_bits <= 1 &&
	      ref_mag(f, d) >> f->frac_bits <= 1 && f == &F32)) &&
	    !ref_is_nan(f, d))
		d = gd;
	if (row->flags & DOT && !in->f[ISA_F_CLAMP] &&
	    fabsl(ref_value(&F32, gd) - ref_value(&F32, d)) <= l->tolerance)
		d = gd;
	if (row->flags & DOT && in->f[ISA_F_CLAMP])
		d = gd; /* the tolerance says nothing after it */
	if (dst->dwords == 4)
		for (int j = 0; j < 4; j++)
			v[j][i] = l->wide[j];
	else if (t->bits == 16 && t->count == 1)
		v[0][i] = high ? (v[0][i] & 0xffff) | (uint32_t)d << 16 :
				 (v[0][i] & 0xffff0000) | (d & 0xffff);
	else
		v[0][i] = (uint32_t)d;
	if (dst->dwords == 2)
		v[1][i] = d >> 32;
}

static inline bool mask_bit(const struct state *s, const struct isa_operand *o,
			    int lane)
{
	int reg = o ? o->reg : ISA_R_VCC_LO;

	return s->s[reg + lane / 32] >> lane % 32 & 1;
}

/* The state after the instruction, as the reference has it. */
static inline void expect(const struct isa_inst *in, const struct row *row,
			  int wave, uint32_t mode, const struct state *old,
			  const struct state *got, struct state *want)
{
	const bool to_exec = isa_op_info(in->op)->flags & ISA_WEXEC;
	struct sorted o = sort_operands(in);
	uint64_t mask = 0;

	*want = *old;
	for (int lane = 0; lane < wave; lane++) {
		struct ref_lane l = { .lane = lane,
				      .mode = mode,
				      .clamp = in->f[ISA_F_CLAMP] };
		uint64_t d;

		if (row->flags & NODEN)
			l.mode &= ~(uint32_t)SOFT_MODE_DENORM_F32;

		if (!(old->s[ISA_R_EXEC_LO + lane / 32] >> lane % 32 & 1) ||
		    first_lane(in, old, lane) == NOT_WRITTEN)
			continue;
		l.in = mask_bit(old, o.mask_in, lane);
		lane_sources(old, in, &o, row->flags, &l);
		d = run_row(row, &l);
		/* Where the manual is silent, the mask is as it came. */
		if (l.skip && o.mask_out)
			l.out = mask_bit(got, o.mask_out, lane);
		mask |= (uint64_t)l.out << lane;
		if (o.dst)
			lane_result(in, row, o.dst, &l, d, got, want);
	}
	for (int h = 0; h < wave / 32; h++)
		if (to_exec)
			want->s[ISA_R_EXEC_LO + h] = (uint32_t)(mask >> 32 * h);
		else if (o.mask_out)
			want->s[o.mask_out->reg + h] =
				(uint32_t)(mask >> 32 * h);
}

#endif
