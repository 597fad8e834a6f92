/*
 * kfd/soft/exec/valu.c - vector instructions: fetch, compute, finish (valu.h).
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "kfd/soft/exec/valu_mods.h"

/* MODE[7:0]: round to nearest even, keep every denormal. */
#define MODE_PLAIN   0xf0u
#define MODE_DENORMS (SOFT_MODE_DENORM_F32 | SOFT_MODE_DENORM_F16_F64)

/* Everything one half of one instruction needs while it is executed. */
struct half {
	struct soft_lanes x;
	const struct soft_lane_op *row;
	const struct isa_operand *dst, *mask; /* NULL if there is none */
	_Alignas(64) uint32_t src[3][SOFT_OPND_DWORDS][SOFT_LANES];
	_Alignas(64) uint32_t dpp[SOFT_LANES];
	_Alignas(64) uint32_t d[SOFT_OPND_DWORDS][SOFT_LANES];
};

uint32_t *soft_vgpr(struct soft_wave *w, int half, unsigned reg, int dwords)
{
	if (reg + dwords <= (unsigned)w->n_vgprs)
		return w->v[half][reg];
	soft_raise(w, SOFT_FAULT_ILLEGAL,
		   "v%u is used, but the wave has %d vector registers",
		   reg + dwords - 1, w->n_vgprs);
	return NULL;
}

/* Asked once. */
const struct soft_simd *soft_simd(void)
{
	static const struct soft_simd *_Atomic known;
	const struct soft_simd *s =
		atomic_load_explicit(&known, memory_order_relaxed);
	int level;

	if (s)
		return s;
	level = cpu_level("T0_SOFT_SIMD");
	s = level == 4 ? &soft_simd_v4 :
	    level == 3 ? &soft_simd_v3 :
			 &soft_simd_v2;
	atomic_store_explicit(&known, s, memory_order_relaxed);
	return s;
}

/* ---------------------------------------------------------------- fetch ----
 */

/* Lanes of a mask operand (MASK type) of one half: 32 bits. */
static uint32_t read_mask(struct soft_wave *w, const struct soft_uop *u,
			  const struct isa_operand *o, int half)
{
	if (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL)
		return w->s[(o->reg + half) & 127];
	return soft_read_scalar(w, o, &u->in) >> (32 * half);
}

static void broadcast_value(uint32_t *p, uint32_t v)
{
	LANES(i) p[i] = v;
}

/*
 * An inline constant of a packed operand.  bf16 takes the upper half of the
 * 32-bit constant for both; f16 has it in the low half only, but in VOPD in
 * both (measured on gfx1100 by AMD: rocjitsu, "InlineSourcesMatchHardware").
 */
uint32_t soft_constant(const struct soft_uop *u, const struct isa_operand *o)
{
	bool integer = o->reg <= 208;
	uint32_t v = o->value;

	if (o->kind != ISA_K_INLINE)
		return v;
	if (o->type == ISA_T_V2BF16)
		v = integer ? v >> 16 : v & 0xffff;
	else if (o->type != ISA_T_V2F16 || u->in.fmt != ISA_FMT_VOPD)
		return v;
	return (v & 0xffff) | v << 16;
}

static void fetch_scalar(struct soft_wave *w, const struct soft_uop *u,
			 const struct isa_operand *o, uint32_t *tmp)
{
	uint64_t v;

	if (o->dwords <= 1 && o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL)
		v = w->s[o->reg & 127];
	else if (o->dwords <= 1 &&
		 (o->kind == ISA_K_INLINE || o->kind == ISA_K_LITERAL))
		v = soft_constant(u, o);
	else
		v = soft_read_scalar(w, o, &u->in);
	broadcast_value(tmp, v);
	if (o->dwords > 1)
		broadcast_value(tmp + SOFT_LANES, v >> 32);
}

/* What DPP or SDWA make of it. */
static __attribute__((noinline)) const uint32_t *
select_lanes(const struct soft_uop *u, struct half *h,
	     const struct isa_operand *o, int k, const uint32_t *p)
{
	if (u->in.form == ISA_FORM_SDWA && !(o->role & ISA_DST)) {
		soft_sdwa_select(&u->in, k, p, h->src[k][1]);
		return h->src[k][1];
	}
	if (k)
		return p;
	h->x.exec &= soft_dpp(&u->in, h->x.exec, p, h->dpp);
	return h->dpp;
}

/* Operand `o` as source number k; false after a fault. */
static bool fetch_operand(struct soft_wave *w, const struct soft_uop *u,
			  struct half *h, int half, const struct isa_operand *o,
			  int k)
{
	const uint32_t **to[3] = { &h->x.a, &h->x.b, &h->x.c };
	uint32_t *tmp = h->src[k][0];
	const uint32_t *p = tmp;
	uint32_t mode = soft_row_mode(h->row, w->mode);
	bool flushes = (mode & MODE_DENORMS) != MODE_DENORMS &&
		       !(h->row->flags & SOFT_V_KEEP) &&
		       mods_flush(o->type, mode, false);

	if (o->kind == ISA_K_VGPR) {
		p = soft_vgpr(w, half, o->reg, o->dwords);
		if (!p)
			return false;
	} else {
		fetch_scalar(w, u, o, tmp);
	}
	if (__builtin_expect(u->in.form != ISA_FORM_PLAIN, false))
		p = select_lanes(u, h, o, k, p);
	h->x.mods[k] = o->mods;
	if (!o->mods && !flushes && u->in.fmt != ISA_FMT_VOP3P)
		*to[k] = p;
	else
		*to[k] = mods_apply(o, u->in.fmt, flushes, p, tmp);
	return true;
}

/* Sources, masks and the old destination of operands [from, to). */
static bool fetch_all(struct soft_wave *w, const struct soft_uop *u,
		      struct half *h, int half, int from, int to)
{
	const struct isa_operand *o = u->in.opnd;
	int k = 0;

	h->dst = h->mask = NULL;
	/* Some read sources that they have not, and do not use them. */
	h->x.a = h->x.b = h->x.c = h->src[0][0];
	h->x.d = h->d[0];
	h->x.mode = w->mode;
	h->x.clamp = u->in.f[ISA_F_CLAMP];
	h->x.half = half;
	h->x.exec = soft_exec(w, half);
	h->x.mask_in = w->s[ISA_R_VCC_LO + half];
	h->x.mask_out = 0;
	for (int i = from; i < to; i++) {
		if (o[i].slot == ISA_SLOT_CI)
			h->x.mask_in = read_mask(w, u, &o[i], half);
		else if (o[i].slot == ISA_SLOT_CO || o[i].slot == ISA_SLOT_CD)
			h->mask = &o[i];
		else if (o[i].role & ISA_DST)
			h->dst = &o[i];
		else if (!fetch_operand(w, u, h, half, &o[i], k++))
			return false;
	}
	if (!h->dst)
		return true;
	if (!(h->dst->role & ISA_SRC) || k == 3)
		return soft_vgpr(w, half, h->dst->reg, h->dst->dwords);
	return fetch_operand(w, u, h, half, h->dst, k);
}

/* -------------------------------------------------------------- compute ----
 */

static void compute_half(struct half *h)
{
	mods_compute(h->row, h->dst ? h->dst->type : ISA_T_F32,
		     soft_row_mode(h->row, h->x.mode), &h->x);
}

/* --------------------------------------------------------------- finish ----
 */

/* omod, clamp and denormals of a float. */
static inline __attribute__((always_inline)) void
finish_float(const struct soft_wave *w, const struct soft_uop *u,
	     struct half *h)
{
	const uint32_t mode = soft_row_mode(h->row, w->mode);

	if (isa_type_info(h->dst->type)->kind == 'F' &&
	    (u->in.f[ISA_F_CLAMP] || u->in.f[ISA_F_OMOD] ||
	     (mode & MODE_DENORMS) != MODE_DENORMS))
		mods_finish(&u->in, h->dst->type, mode, h->row->flags, h->d[0]);
}

static void finish_half(struct soft_wave *w, const struct soft_uop *u,
			struct half *h, int half)
{
	const struct isa_type_info *t;
	uint32_t *to;

	if (!h->dst)
		return;
	t = isa_type_info(h->dst->type);
	to = w->v[half][h->dst->reg];
	finish_float(w, u, h);
	if (t->bits == 16 && t->count == 1) {
		/* Its op_sel belongs to the sources: the opcode says which. */
		bool high = h->dst->mods & ISA_M_HI ||
			    u->in.op == ISA_v_fma_mixhi_f16;

		soft_put_vreg16(to, h->d[0], h->x.exec, high);
		return;
	}
	for (int j = 0; j < h->dst->dwords; j++)
		soft_put_vreg(to + j * SOFT_LANES, h->d[j], h->x.exec);
}

/* Masks are written when both halves have read their sources. */
static void write_mask(struct soft_wave *w, const struct soft_uop *u,
		       const struct isa_operand *o, const uint32_t mask[2])
{
	int halves = w->wave_size / SOFT_LANES;

	if (isa_op_info(u->in.op)->flags & ISA_WEXEC)
		memcpy(&w->s[ISA_R_EXEC_LO], mask, halves * sizeof(*mask));
	else if (o && soft_is_writable(w, o->reg))
		memcpy(&w->s[o->reg], mask, halves * sizeof(*mask));
}

/* ------------------------------------------------------------- handlers ----
 */

typedef void finish_fn(struct soft_wave *w, const struct soft_uop *u,
		       struct half *h, int half);

/* `finish` is a constant where it is inlined. */
static inline __attribute__((always_inline)) void
run_halves(struct soft_wave *w, const struct soft_uop *u, finish_fn *finish)
{
	const struct isa_operand *mask = NULL;
	uint32_t out[2] = { 0, 0 };
	struct half h;

	h.row = u->op;
	for (int half = 0; half < w->wave_size / SOFT_LANES; half++) {
		if (!fetch_all(w, u, &h, half, 0, u->in.n_opnd))
			return;
		compute_half(&h);
		out[half] = h.x.mask_out & h.x.exec;
		mask = h.mask;
		finish(w, u, &h, half);
	}
	write_mask(w, u, mask, out);
}

void soft_valu_run(struct soft_wave *w, const struct soft_uop *u)
{
	run_halves(w, u, finish_half);
}

void soft_valu_run_part(struct soft_wave *w, const struct soft_uop *u, int half,
			enum soft_dual part)
{
	bool y = part == SOFT_PART_Y;
	struct half h;

	h.row = u->op;
	if (y)
		h.row = h.row - u->in.op + u->in.op_y;
	if (!fetch_all(w, u, &h, half, y ? u->in.n_opnd_x : 0,
		       part == SOFT_PART_X ? u->in.n_opnd_x : u->in.n_opnd))
		return;
	compute_half(&h);
	finish_half(w, u, &h, half);
}

static void finish_sdwa(struct soft_wave *w, const struct soft_uop *u,
			struct half *h, int half)
{
	if (!h->dst)
		return;
	finish_float(w, u, h);
	soft_sdwa_put(&u->in, h->x.exec, h->d[0], w->v[half][h->dst->reg]);
}

/* gfx10's SDWA: results of up to 32 bits, or a mask. */
static void valu_sdwa(struct soft_wave *w, const struct soft_uop *u)
{
	run_halves(w, u, finish_sdwa);
}

/* Both halves of the pair read before either writes (RDNA3 ISA 7.6). */
static void valu_dual(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_lane_op *row = u->op;
	struct half x, y;

	x.row = row;
	y.row = row - u->in.op + u->in.op_y;
	if (!fetch_all(w, u, &x, 0, 0, u->in.n_opnd_x) ||
	    !fetch_all(w, u, &y, 0, u->in.n_opnd_x, u->in.n_opnd))
		return;
	compute_half(&x);
	compute_half(&y);
	finish_half(w, u, &x, 0);
	finish_half(w, u, &y, 0);
}

/*
 * The common case, made quick: 32-bit operands without modifiers, one VGPR
 * destination, and MODE at its usual setting.
 */
static void valu_plain(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_lane_op *row = u->op;
	const struct isa_operand *o = u->in.opnd;
	_Alignas(64) uint32_t tmp[3][SOFT_LANES], d[SOFT_LANES];
	const uint32_t *src[3] = { tmp[0], tmp[1], tmp[2] };

	if ((w->mode & 0xff) != MODE_PLAIN) {
		soft_valu_run(w, u);
		return;
	}
	for (int half = 0; half < w->wave_size / SOFT_LANES; half++) {
		uint32_t exec = soft_exec(w, half);
		int n = u->in.n_opnd, k = 0;
		uint32_t *to = soft_vgpr(w, half, o[0].reg, 1);

		for (int i = 1; i < n; i++, k++) {
			if (o[i].kind != ISA_K_VGPR)
				fetch_scalar(w, u, &o[i], tmp[k]);
			else
				src[k] = soft_vgpr(w, half, o[i].reg, 1);
			if (!src[k])
				return;
		}
		if (!to)
			return;
		if (o[0].role & ISA_SRC)
			src[k] = to;
		struct soft_lanes x = { .a = src[0],
					.b = src[1],
					.c = src[2],
					.d = d,
					.exec = exec,
					.mode = w->mode,
					.half = half,
					.mask_in = w->s[ISA_R_VCC_LO + half] };
		row->fn(&x);
		soft_put_vreg(to, d, exec);
	}
}

/* No modifier; a packed operand's high half comes from the high half. */
static bool is_plain_source(const struct isa_inst *in,
			    const struct isa_operand *o)
{
	const struct isa_type_info *t = isa_type_info(o->type);
	bool packed = in->fmt == ISA_FMT_VOP3P && t->bits == 16;

	return o->role == ISA_SRC && o->dwords <= 1 && t->kind != 'M' &&
	       o->mods == (packed ? ISA_M_HI_HI : 0) && o->type != ISA_T_MIX &&
	       o->kind != ISA_K_IMM && o->kind != ISA_K_OFF;
}

static bool is_plain(const struct isa_inst *in)
{
	const struct isa_operand *o = in->opnd;
	const struct isa_type_info *t = isa_type_info(o[0].type);
	bool reads_dst = o[0].role & ISA_SRC;

	if (in->form != ISA_FORM_PLAIN || in->op_y || in->f[ISA_F_CLAMP] ||
	    in->f[ISA_F_OMOD] || in->n_opnd < 2 || in->n_opnd + reads_dst > 4 ||
	    !(o[0].role & ISA_DST) || o[0].kind != ISA_K_VGPR || o[0].mods ||
	    o[0].dwords != 1 || t->bits * t->count != 32)
		return false;
	for (int i = 1; i < in->n_opnd; i++)
		if (!is_plain_source(in, &o[i]))
			return false;
	return true;
}

soft_handler *soft_valu_handler(const struct isa_inst *in, const void **op)
{
	const struct soft_lane_op *rows = soft_simd()->ops,
				  *row = &rows[in->op];

	*op = row;
	if (in->fmt == ISA_FMT_VINTERP)
		return soft_interp_run;
	if (!row->fn) {
		soft_handler *fn = soft_float8_handler(in, op);

		fn = fn ? fn : soft_scalar_float(in, op);
		fn = fn ? fn : soft_matrix_handler(in, op);
		fn = fn ? fn : soft_vop1_special(in);
		return fn ? fn : soft_vop3_special(in);
	}
	if (in->form == ISA_FORM_SDWA)
		return valu_sdwa;
	if (in->op_y)
		return rows[in->op_y].fn ? valu_dual : NULL;
	return is_plain(in) && !(row->flags & SOFT_V_FLUSH) ? valu_plain :
							      soft_valu_run;
}

bool soft_is_lane_op(const struct soft_uop *u)
{
	return u->fn == soft_valu_run || u->fn == valu_plain ||
	       u->fn == valu_dual;
}
