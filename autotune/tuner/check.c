/*
 * autotune/tuner/check.c - products against a reference in double precision.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"

/* How far a random walk of K roundings may get, in its standard deviations. */
#define CHECK_EPS 8.0
/* Of exp and erf in an epilogue, relative. */
#define EPILOGUE_EPS 0x1p-19

/* FLOP up to which all of C is compared, and all of the product is run. */
#define COMPARE_ALL 3e8
#define RUN_ALL	    2e11

enum { PANEL = 16, LINES = 6 };

/* A block of C in the making. */
struct block {
	const struct tune_bench *r;
	const struct gemm_config *c;
	const struct tune_view *v;
	uint32_t batch;		 /* which product */
	struct tune_check_result *out;
};

/* ---- operands ---- */

static double element_a(const struct block *b, uint64_t i, uint64_t k)
{
	const struct gemm_shape *s = &b->r->shape;
	uint64_t at = b->r->p.op.a_trans ? k * s->lda + b->v->row + i
					 : (b->v->row + i) * s->lda + k;

	return tune_read_element(b->r->p.op.in, b->r->a->cpu,
				 at + b->batch * s->stride_a);
}

static double element_b(const struct block *b, uint64_t k, uint64_t j)
{
	const struct gemm_shape *s = &b->r->shape;
	uint64_t at = b->r->p.op.b_trans ? (b->v->column + j) * s->ldb + k
					 : k * s->ldb + b->v->column + j;

	const struct gemm_op *op = &b->r->p.op;

	at += b->batch * s->stride_b;
	return op->weights ? tune_read_weight(op->weights, op->in, b->r->b->cpu,
					      b->r->scale->cpu, at)
			   : tune_read_element(op->in, b->r->b->cpu, at);
}

static uint64_t index_c(const struct block *b, uint64_t i, uint64_t j)
{
	const struct gemm_shape *s = &b->r->shape;

	return b->batch * s->stride_c + (b->v->row + i) * s->ldc +
	       b->v->column + j;
}

/* ---- the epilogue ---- */

struct sum {
	double value, slack; /* and how far off it may be */
};

static double bias_of(const struct block *b, uint64_t j)
{
	return b->r->bias ? tune_read_element(b->r->p.op.out, b->r->bias->cpu,
					      b->v->column + j) : 0;
}

static double logistic_of(double x)
{
	return 1 / (1 + exp(-x));
}

static double activate_value(uint32_t epilogue, double x)
{
	if (epilogue & GEMM_RELU)
		return fmax(x, 0);
	if (epilogue & GEMM_SILU)
		return x * logistic_of(x);
	if (epilogue & GEMM_GELU)
		return 0.5 * x * (1 + erf(x * M_SQRT1_2));
	return x;
}

static void apply_linear(const struct block *b, struct sum *x, double before,
			 double add)
{
	const struct gemm_op *op = &b->r->p.op;

	if (op->epilogue & GEMM_SCALE) {
		x->value *= TUNE_ALPHA;
		x->slack *= fabs(TUNE_ALPHA);
	}
	if (op->beta)
		x->value += TUNE_BETA * before;
	x->value += add;
	x->slack += 0x1p-22 * (fabs(x->value) + fabs(before) + fabs(add));
}

/* `before` is what C held, where beta reads it. */
static struct sum finish_element(const struct block *b, uint64_t i, uint64_t j,
				 struct sum x, struct sum other, double before)
{
	const struct gemm_op *op = &b->r->p.op;
	uint32_t ep = op->epilogue;
	const double slope = 1.13; /* of silu and gelu, at most */

	apply_linear(b, &x, before, bias_of(b, j));
	if (ep & GEMM_SWIGLU) {
		double gate = x.value * logistic_of(x.value);

		apply_linear(b, &other, 0, bias_of(b, j + b->v->n));
		x.slack = fabs(gate) * other.slack + slope * x.slack *
			  (fabs(other.value) + other.slack);
		x.value = gate * other.value;
	} else if (ep & GEMM_ACTIVATIONS) {
		x.value = activate_value(ep, x.value);
		x.slack *= slope;
	}
	if (ep & (GEMM_ACTIVATIONS & ~(uint32_t)GEMM_RELU))
		x.slack += EPILOGUE_EPS * (fabs(x.value) + 0x1p-10);
	if (ep & GEMM_SHRINK) {
		x.value /= GEMM_SHRINK_BY;
		x.slack /= GEMM_SHRINK_BY;
	}
	if (ep & GEMM_RESIDUAL)
		x.value += tune_read_element(op->out, b->r->residual->cpu,
					     index_c(b, i, j));
	return x;
}

/* ---- comparing ---- */

/* Half a unit in the last place, of a subnormal's at least. */
static double half_ulp(enum dsl_type t, double v)
{
	switch (t) {
	case DSL_BF16:
		return fmax(fabs(v) * 0x1p-8, 0x1p-134);
	case DSL_F16:
		return fmax(fabs(v) * 0x1p-11, 0x1p-25);
	case DSL_F32:
		return fmax(fabs(v) * 0x1p-24, 0x1p-149);
	default:
		return 0;
	}
}

static void compare_element(const struct block *b, uint64_t i, uint64_t j,
			    struct sum want)
{
	enum dsl_type t = b->r->p.op.out;
	double got = tune_read_element(t, b->r->c->cpu, index_c(b, i, j));
	double allowed = want.slack + half_ulp(t, fabs(want.value) +
					       want.slack);
	double error = fabs(got - want.value);
	double share = allowed > 0 ? error / allowed : error > 0 ? 1e9 : 0;
	struct tune_check_result *out = b->out;

	if (!(share <= 1) || isnan(got)) {
		if (!out->wrong++)
			snprintf(out->detail, sizeof(out->detail), "element "
				 "(%llu, %llu) of %ux%ux%u is %.9g, wanted "
				 "%.9g within %.3g", (unsigned long long)i +
				 b->v->row, (unsigned long long)j +
				 b->v->column, b->r->p.m, b->r->p.n, b->r->p.k,
				 got, want.value, allowed);
		share = isnan(share) ? 1e9 : share;
	}
	out->worst = fmax(out->worst, share);
	out->compared++;
}

/* What beta read: the fill that tune_bench_stale() gave C, drawn once more. */
struct before {
	void *c;
};

static struct before before_of(const struct tune_bench *r, uint64_t seed)
{
	struct before x = { NULL };
	enum dsl_type t = r->p.op.out;

	if (!r->p.op.beta)
		return x;
	x.c = xmalloc(r->c->size_bytes + 1);
	tune_fill_operand(TUNE_NORMAL, t, x.c,
			  r->c->size_bytes / tune_type_bytes(t), seed + 3);
	return x;
}

/* ---- sums ---- */

/* K by PANEL columns of B (or rows of A) as numbers, and their lengths. */
struct panel {
	double *v; /* [k][PANEL] */
	double length[PANEL];
};

static void gather_lines(const struct block *b, bool of_b, uint64_t first,
			 int n, struct panel *p)
{
	uint32_t k_n = b->v->k;

	memset(p->length, 0, sizeof(p->length));
	for (uint64_t k = 0; k < k_n; k++)
		for (int j = 0; j < PANEL; j++) {
			double x = j >= n ? 0
				: of_b ? element_b(b, k, first + (uint64_t)j)
				       : element_a(b, first + (uint64_t)j, k);

			p->v[k * PANEL + (uint64_t)j] = x;
			p->length[j] += x * x;
		}
	for (int j = 0; j < PANEL; j++)
		p->length[j] = sqrt(p->length[j]);
}

/* PANEL sums of one line against a panel; lanes, so that it vectorises. */
static void dot_panel(const double *line, const struct panel *p, uint32_t k_n,
		      double out[PANEL])
{
	double acc[PANEL] = { 0 };

	for (uint64_t k = 0; k < k_n; k++)
		for (int j = 0; j < PANEL; j++)
			acc[j] += line[k] * p->v[k * PANEL + (uint64_t)j];
	memcpy(out, acc, sizeof(acc));
}

/* Errors of sqrt(K) additions of f32, relative to |a||b|/sqrt(K). */
static double sum_tolerance(const struct block *b, double length_a,
			    double length_b)
{
	enum dsl_type in = b->r->p.op.in;

	return in == DSL_I8 ? 0 : CHECK_EPS * 0x1p-24 * length_a * length_b;
}

struct lines {
	uint64_t at[LINES];
	int n;
	double *v;	  /* [n][k] */
	double length[LINES];
};

static void load_lines(const struct block *b, bool of_a, struct lines *l)
{
	uint32_t k_n = b->v->k;

	for (int i = 0; i < l->n; i++) {
		l->length[i] = 0;
		for (uint64_t k = 0; k < k_n; k++) {
			double x = of_a ? element_a(b, l->at[i], k)
					: element_b(b, k, l->at[i]);

			l->v[(uint64_t)i * k_n + k] = x;
			l->length[i] += x * x;
		}
		l->length[i] = sqrt(l->length[i]);
	}
}

static double before_at(const struct block *b, const struct before *x,
			uint64_t i, uint64_t j)
{
	return x->c ? tune_read_element(b->r->p.op.out, x->c,
					index_c(b, i, j)) :
		      0;
}

/* Whole rows of C. */
static void compare_rows(const struct block *b, struct lines *l,
			 const struct before *old)
{
	uint32_t k_n = b->v->k, n = b->v->n;
	bool pair = b->r->p.op.epilogue & GEMM_SWIGLU;
	struct panel p[2];
	double x[2][PANEL] = { { 0 } };

	load_lines(b, true, l);
	for (int s = 0; s < 2; s++)
		p[s].v = xmalloc(((size_t)k_n + 1) * PANEL * sizeof(double));
	for (uint64_t j = 0; j < n; j += PANEL) {
		int wide = n - j < PANEL ? (int)(n - j) : PANEL;

		for (int s = 0; s <= pair; s++)
			gather_lines(b, true, j + (uint64_t)s * n, wide, &p[s]);
		for (int i = 0; i < l->n; i++) {
			for (int s = 0; s <= pair; s++)
				dot_panel(l->v + (uint64_t)i * k_n, &p[s], k_n,
					  x[s]);
			for (int q = 0; q < wide; q++) {
				struct sum v[2];

				for (int s = 0; s < 2; s++)
					v[s] = (struct sum){ x[s][q],
						sum_tolerance(b, l->length[i],
							      p[s].length[q]) };
				compare_element(
					b, l->at[i], j + (uint64_t)q,
					finish_element(
						b, l->at[i], j + (uint64_t)q,
						v[0], v[1],
						before_at(b, old, l->at[i],
							  j + (uint64_t)q)));
			}
		}
	}
	free(p[0].v);
	free(p[1].v);
}

/* Whole columns of C; not of SwiGLU, where rows have to do. */
static void compare_columns(const struct block *b, struct lines *l,
			    const struct before *old)
{
	uint32_t k_n = b->v->k, m = b->v->m;
	struct panel p;
	double x[PANEL];

	if (b->r->p.op.epilogue & GEMM_SWIGLU)
		return;
	load_lines(b, false, l);
	p.v = xmalloc(((size_t)k_n + 1) * PANEL * sizeof(double));
	for (uint64_t i = 0; i < m; i += PANEL) {
		int high = m - i < PANEL ? (int)(m - i) : PANEL;

		gather_lines(b, false, i, high, &p);
		for (int c = 0; c < l->n; c++) {
			dot_panel(l->v + (uint64_t)c * k_n, &p, k_n, x);
			for (int q = 0; q < high; q++) {
				uint64_t at = i + (uint64_t)q;
				struct sum v = { x[q],
						 sum_tolerance(b, p.length[q],
							       l->length[c]) };

				compare_element(
					b, at, l->at[c],
					finish_element(b, at, l->at[c], v,
						       (struct sum){ 0, 0 },
						       before_at(b, old, at,
								 l->at[c])));
			}
		}
	}
	free(p.v);
}

static void compare_one(const struct block *b, uint64_t i, uint64_t j,
			const struct before *old)
{
	struct sum x = { 0, 0 };
	double la = 0, lb = 0;

	for (uint64_t k = 0; k < b->v->k; k++) {
		double p = element_a(b, i, k), q = element_b(b, k, j);

		x.value += p * q;
		la += p * p;
		lb += q * q;
	}
	x.slack = sum_tolerance(b, sqrt(la), sqrt(lb));
	compare_element(b, i, j,
			finish_element(b, i, j, x, (struct sum){ 0, 0 },
				       before_at(b, old, i, j)));
}

/* An element of every tile: a tile that nobody wrote, or at another's place. */
static void compare_tiles(const struct block *b, uint64_t *state,
			  const struct before *old)
{
	uint32_t tm = b->c->m, tn = b->c->n;

	if (b->r->p.op.epilogue & GEMM_SWIGLU)
		return;
	for (uint64_t i = 0; i < b->v->m; i += tm)
		for (uint64_t j = 0; j < b->v->n; j += tn) {
			uint64_t h = b->v->m - i < tm ? b->v->m - i : tm;
			uint64_t w = b->v->n - j < tn ? b->v->n - j : tn;
			uint64_t x = random_next(state);

			compare_one(b, i + x % h, j + (x >> 32) % w, old);
		}
}

/* First, last, the seam of two tiles, and random ones. */
static void pick_lines(struct lines *l, uint64_t size, uint64_t tile,
		       uint64_t *state)
{
	uint64_t want[LINES] = { 0, size - 1, tile - 1, tile,
				 random_next(state) % size,
				 random_next(state) % size };

	l->n = 0;
	for (int i = 0; i < LINES; i++) {
		bool there = want[i] >= size;

		for (int k = 0; k < l->n && !there; k++)
			there = l->at[k] == want[i];
		if (!there)
			l->at[l->n++] = want[i];
	}
}

static void sample_tiles(const struct block *b, uint64_t *state,
			 const struct before *old)
{
	struct lines l = { .n = 0 };

	l.v = xmalloc(((size_t)b->v->k + 1) * LINES * sizeof(double));
	pick_lines(&l, b->v->m, b->c->m, state);
	compare_rows(b, &l, old);
	pick_lines(&l, b->v->n, b->c->n, state);
	compare_columns(b, &l, old);
	compare_tiles(b, state, old);
	free(l.v);
}

static void compare_all(const struct block *b, const struct before *old)
{
	struct lines l = { .n = 0 };

	l.v = xmalloc(((size_t)b->v->k + 1) * LINES * sizeof(double));
	for (uint64_t i = 0; i < b->v->m; i += LINES) {
		for (l.n = 0; l.n < LINES && i + (uint64_t)l.n < b->v->m;
		     l.n++)
			l.at[l.n] = i + (uint64_t)l.n;
		compare_rows(b, &l, old);
	}
	free(l.v);
}

void tune_check_block(struct tune_bench *r, const struct gemm_config *c,
		      const struct tune_view *v, bool all,
		      struct tune_check_result *out)
{
	struct before old = before_of(r, out->seed);
	uint64_t state = out->seed;
	uint32_t last = r->p.batch - 1;

	for (uint32_t b = 0; v->m && v->n && b <= last;
	     b += all || !last ? 1 : last) {
		struct block x = { .r = r, .c = c, .v = v, .batch = b,
				   .out = out };

		if (all)
			compare_all(&x, &old);
		else
			sample_tiles(&x, &state, &old);
	}
	free(old.c);
}

/* ---- which products are run ---- */

/* A fault or a hang of the kernel is a wrong answer; the device is reopened. */
static bool take_crash(struct tune_bench *r, const struct err *why,
		       struct tune_check_result *out, struct err *e)
{
	const struct tune_clock *clock = r->clock;
	const _Atomic int *stop = r->stop;
	char spec[KFD_SPEC_BYTES];

	if (why->code != ERR_DEVICE && why->code != ERR_TIMEOUT) {
		*e = *why;
		return false;
	}
	snprintf(spec, sizeof(spec), "%s", kfd_info(r->dev)->spec);
	out->wrong++;
	out->worst = fmax(out->worst, 1e9);
	snprintf(out->detail, sizeof(out->detail), "%.180s", why->msg);
	tune_bench_close(r);
	return tune_bench_open(r, spec, clock, stop, e);
}

static bool run_view(struct tune_bench *r, const struct gemm_config *c,
		     const struct gemm_code *code, const struct tune_view *v,
		     bool all, struct tune_check_result *out, struct err *e)
{
	struct tune_loaded loaded;
	struct gemm_launch l;
	struct err why = { 0 };

	tune_bench_stale(r, out->seed);
	if (!tune_bench_load(r, code, &loaded, &why))
		return take_crash(r, &why, out, e);
	if (!tune_bench_launch(r, c, v, &l, &why) ||
	    !tune_bench_run(r, &loaded, &l, NULL, &why))
		return take_crash(r, &why, out, e);
	tune_check_block(r, c, v, all, out);
	tune_bench_unload(&loaded);
	return true;
}

static bool check_all(struct tune_bench *r, const struct tune_problem *p,
		      const struct gemm_config *c, const struct gemm_code *code,
		      bool all, struct tune_check_result *out, struct err *e)
{
	struct tune_view v = tune_view_all(p);

	return tune_bench_set(r, p, TUNE_NORMAL, out->seed, e) &&
	       run_view(r, c, code, &v, all, out, e);
}

/* The last tiles of C with all of K, then all of C with a short one. */
static bool check_parts(struct tune_bench *r, const struct tune_problem *p,
			const struct gemm_config *c,
			const struct gemm_code *code,
			struct tune_check_result *out, struct err *e)
{
	struct tune_problem less = tune_reduced(p, c);
	struct tune_view v = tune_view_all(p);
	bool pair = p->op.epilogue & GEMM_SWIGLU; /* halves of B lie N apart */

	v.k = less.k;
	if (!tune_bench_set(r, p, TUNE_NORMAL, out->seed, e) ||
	    !run_view(r, c, code, &v, false, out, e) || out->wrong)
		return !out->wrong ? false : true;
	v = tune_view_all(p);
	v.m = less.m;
	v.row = p->m - less.m;
	if (!pair) {
		v.n = less.n;
		v.column = p->n - less.n;
	}
	return run_view(r, c, code, &v, false, out, e);
}

bool tune_check(struct tune_bench *r, const struct tune_problem *p,
		const struct gemm_config *c, const struct gemm_code *code,
		uint64_t seed, struct tune_check_result *out, struct err *e)
{
	struct tune_problem less = tune_reduced(p, c);
	bool small = tune_flop(p) <= COMPARE_ALL, ok;

	*out = (struct tune_check_result){ .seed = seed };
	ok = check_all(r, small ? p : &less, c, code, true, out, e);
	if (ok && !small && !out->wrong)
		ok = tune_flop(p) <= RUN_ALL
			     ? check_all(r, p, c, code, false, out, e)
			     : check_parts(r, p, c, code, out, e);
	out->pass = ok && !out->wrong && out->compared;
	if (out->pass)
		snprintf(out->detail, sizeof(out->detail), "%s%ux%ux%u",
			 small ? "all of " : "all of a small one, rows, "
			 "columns and tiles of ", p->m, p->n, p->k);
	return ok;
}
