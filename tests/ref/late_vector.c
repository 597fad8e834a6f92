/*
 * tests/ref/late_vector.c - the late executor: the vector ALU, by the rows of
 * tests/ref/vector.h and tests/ref/cross.h.
 */
#include "tests/ref/late_int.h"

#include "tests/ref/cross.h"
#include "tests/ref/vector.h"

static check_fn *const crosses[ISA_OP_COUNT] = {
#define X(name) [ISA_##name] = check_##name,
#include "tests/ref/cross.def"
};

static void run_cross(struct late_wave *w, const struct isa_inst *in)
{
	static _Thread_local struct state old;
	struct program p = { *in, w->lanes, &old, &w->s };

	old = w->s;
	crosses[in->op](&p);
	w->s.s[ISA_R_NULL] = 0;
}

/* The arithmetic that most instructions are, without the slow reference. */
static bool quick_lane(const struct isa_inst *in, uint32_t mode,
		       const struct ref_lane *l, uint64_t *d)
{
	float a, b, c, r;
	const uint32_t bits[3] = { (uint32_t)l->s[0], (uint32_t)l->s[1],
				   (uint32_t)l->s[2] };

	memcpy(&a, &bits[0], 4);
	memcpy(&b, &bits[1], 4);
	memcpy(&c, &bits[2], 4);
	if (mode & 3)
		return false;
	switch (in->op) {
	case ISA_v_add_f32:
		r = a + b;
		break;
	case ISA_v_sub_f32:
		r = a - b;
		break;
	case ISA_v_mul_f32:
		r = a * b;
		break;
	case ISA_v_fma_f32:
	case ISA_v_fmac_f32:
	case ISA_v_fmamk_f32:
	case ISA_v_fmaak_f32:
		r = fmaf(a, b, c);
		break;
	default:
		return false;
	}
	if (!isfinite(r) || fabsf(r) < 0x1p-120f)
		return false;
	memcpy(d, &r, 4);
	return true;
}

/* All lanes are computed before one is written. */
struct result {
	struct ref_lane l[64];
	uint64_t d[64], done, mask;
};

static void compute_lanes(const struct late_wave *w, const struct isa_inst *in,
			  const struct sorted *o, struct result *r)
{
	const struct row *row = &rows[in->op];

	r->done = r->mask = 0;
	for (int lane = 0; lane < w->lanes; lane++) {
		struct ref_lane *l = &r->l[lane];

		if (!(w->s.s[ISA_R_EXEC_LO + lane / 32] >> lane % 32 & 1) ||
		    first_lane(in, &w->s, lane) == NOT_WRITTEN)
			continue;
		*l = (struct ref_lane){ .lane = lane,
					.mode = w->mode,
					.clamp = in->f[ISA_F_CLAMP] };
		l->in = mask_bit(&w->s, o->mask_in, lane);
		lane_sources(&w->s, in, o, row->flags, l);
		r->d[lane] = 0;
		if (!quick_lane(in, w->mode, l, &r->d[lane]))
			r->d[lane] = run_row(row, l);
		r->done |= UINT64_C(1) << lane;
		r->mask |= (uint64_t)l->out << lane;
	}
}

/* Where the manual is silent the reference's own value is as good as any. */
static void write_lanes(struct late_wave *w, const struct isa_inst *in,
			const struct sorted *o, struct result *r)
{
	const bool to_exec = isa_op_info((enum isa_op)in->op)->flags &
			     ISA_WEXEC;
	struct row row = rows[in->op];

	row.flags &= ~(unsigned)(TRANS | DOT);
	for (int lane = 0; lane < w->lanes && o->dst; lane++) {
		if (!(r->done >> lane & 1))
			continue;
		r->l[lane].skip = false;
		lane_result(in, &row, o->dst, &r->l[lane], r->d[lane], &w->s,
			    &w->s);
	}
	for (int h = 0; h < w->lanes / 32; h++)
		if (to_exec)
			w->s.s[ISA_R_EXEC_LO + h] =
				(uint32_t)(r->mask >> 32 * h);
		else if (o->mask_out && o->mask_out->reg != ISA_R_NULL)
			w->s.s[o->mask_out->reg + h] =
				(uint32_t)(r->mask >> 32 * h);
}

static struct isa_inst half_of(const struct isa_inst *in, bool y)
{
	struct isa_inst h = *in;

	h.op_y = ISA_OP_NONE;
	h.n_opnd = in->n_opnd_x;
	if (!y)
		return h;
	h.op = in->op_y;
	h.n_opnd = (uint8_t)(in->n_opnd - in->n_opnd_x);
	memmove(h.opnd, in->opnd + in->n_opnd_x,
		h.n_opnd * sizeof(h.opnd[0]));
	return h;
}

static bool run_dual(struct late_wave *w, const struct isa_inst *in)
{
	static _Thread_local struct result rx, ry;
	const struct isa_inst x = half_of(in, false), y = half_of(in, true);
	const struct sorted ox = sort_operands(&x), oy = sort_operands(&y);

	if (!rows[x.op].fn || !rows[y.op].fn)
		return false;
	compute_lanes(w, &x, &ox, &rx);
	compute_lanes(w, &y, &oy, &ry);
	write_lanes(w, &x, &ox, &rx);
	write_lanes(w, &y, &oy, &ry);
	return true;
}

bool late_vector(struct late_wave *w, const struct isa_inst *in)
{
	static _Thread_local struct result r;
	struct sorted o;

	if (in->fmt == ISA_FMT_VOPD)
		return run_dual(w, in);
	if (crosses[in->op]) {
		run_cross(w, in);
		return true;
	}
	if (!rows[in->op].fn)
		return false;
	o = sort_operands(in);
	compute_lanes(w, in, &o, &r);
	write_lanes(w, in, &o, &r);
	return true;
}
