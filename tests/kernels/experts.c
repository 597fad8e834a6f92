/*
 * Mixtures of experts, against double precision: who computes what, ties and
 * all, and the products of decoding with the rows of chosen experts.
 */
#include "tests/ref/streamed.h"

static struct cc_dev dev;

static bool opened(struct lib *l, const char *name, enum dsl_type weights)
{
	struct cc_options o;
	struct err e = { 0 };

	*l = (struct lib){ .entry = kernel_find(name),
			   .shape = { .type = DSL_F32, .weights = weights } };
	cc_test_options(&o);
	l->f = kernel_build(l->entry, &l->shape, &e);
	if (ok(l->f && cc_compile(l->f, &o, &l->obj, &e), "%s compiles", name))
		return true;
	diag("%s", e.msg);
	ssa_func_free(l->f);
	return false;
}

/* ---- who computes what ---- */

/* Of equals the first; a score that is no number is the smallest. */
static void choose(const struct arr *score, size_t at, size_t n, size_t used,
		   bool normed, double *expert, double *share)
{
	double top = -INFINITY, all = 0, part = 0;
	bool *taken = calloc(n, sizeof(*taken));

	for (size_t i = 0; i < n; i++)
		top = fmax(top, arr_get(score, at + i));
	for (size_t i = 0; i < n; i++)
		all += exp(arr_get(score, at + i) - top);
	for (size_t k = 0; k < used; k++) {
		size_t most = n;
		for (size_t i = 0; i < n; i++) {
			double v = arr_get(score, at + i);
			if (!taken[i] &&
			    (most == n || v > arr_get(score, at + most) ||
			     (!isnan(v) && isnan(arr_get(score, at + most)))))
				most = i;
		}
		taken[most] = true;
		expert[k] = (double)most;
		share[k] = exp(arr_get(score, at + most) - top);
		part += share[k];
	}
	for (size_t k = 0; k < used; k++)
		share[k] /= normed ? part : all;
	free(taken);
}

static void test_route(void)
{
	enum { TOKENS = 5 };
	const size_t shape[][2] = {
		/* n, used */
		{ 1, 1 },    { 5, 5 },	  { 12, 3 },  { 67, 1 },   { 128, 8 },
		{ 129, 64 }, { 512, 10 }, { 64, 64 },
		{ getenv("T0_SLOW") ? 4096 : 1100, 8 },
	};
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!opened(&l, "route", DSL_F32))
		return;
	for (size_t s = 0; s < 2 * ARRAY_SIZE(shape); s++) {
		const size_t n = shape[s / 2][0], used = shape[s / 2][1];
		struct arr score = arr_random(SSA_F32, TOKENS * n, 4, &seed);
		struct arr share = arr_stale(SSA_F32, TOKENS * used);
		struct arr expert = arr_stale(SSA_I32, TOKENS * used);
		double *at = calloc(expert.n, sizeof(*at));
		double *none = calloc(expert.n, sizeof(*none));
		double *want = calloc(share.n, sizeof(*want));
		double *tol = calloc(share.n, sizeof(*tol));
		struct ssa_call c = { 0 };

		for (size_t i = n; i < TOKENS * n; i++) /* ties */
			arr_set(&score, i,
				i / n == 2 ? .5 :
				i / n == 3 ? floor(arr_get(&score, i)) :
				i / n == 4 && i % 2 ? arr_get(&score, i - 1) :
						      arr_get(&score, i));
		if (n > 9) {
			arr_set(&score, n + 3, -INFINITY);
			arr_set(&score, n + 4, -0.0);
			arr_set(&score, n + 5, 0.0);
		}
		for (size_t t = 0; t < TOKENS; t++)
			choose(&score, t * n, n, used, s % 2, at + t * used,
			       want + t * used);
		for (size_t i = 0; i < share.n; i++)
			tol[i] = want[i] * 0x1p-23 * (16 + sqrt((double)n));
		call_arr(&c, &share);
		call_arr(&c, &expert);
		call_arr(&c, &score);
		call_u32(&c, (uint32_t)n);
		call_u32(&c, (uint32_t)used);
		call_u32(&c, s % 2);
		wrong += !lib_run(&dev, &l, &c, TOKENS, 1);
		wrong += judge(&share, want, tol) + judge(&expert, at, none);
		missed += mutants_missed(&expert, at, none);
		free(score.bits);
		free(share.bits);
		free(expert.bits);
		free(at);
		free(none);
		free(want);
		free(tol);
	}
	is_u64(wrong, 0, "route");
	is_u64(missed, 0, "route: mutants are noticed");
	lib_close(&l);
}

/* A row of scores that are no numbers: experts that exist, no shares. */
static void test_broken(void)
{
	struct arr score = arr_new(SSA_F32, 12);
	struct arr share = arr_stale(SSA_F32, 3);
	struct arr expert = arr_stale(SSA_I32, 3);
	struct ssa_call c = { 0 };
	struct lib l;

	if (!opened(&l, "route", DSL_F32))
		return;
	for (size_t i = 0; i < 12; i++)
		arr_set(&score, i, NAN);
	call_arr(&c, &share);
	call_arr(&c, &expert);
	call_arr(&c, &score);
	call_u32(&c, 12);
	call_u32(&c, 3);
	call_u32(&c, 1);
	ok(lib_run(&dev, &l, &c, 1, 1), "scores that are no numbers");
	for (size_t i = 0; i < 3; i++)
		ok(isnan(arr_get(&share, i)) &&
			   arr_get(&expert, i) == (double)i,
		   "choose the first experts, without a share");
	free(score.bits);
	free(share.bits);
	free(expert.bits);
	lib_close(&l);
}

/* ---- products of pairs ---- */

/* tokens, used, experts, rows, n */
static const size_t shapes[][5] = {
	{ 1, 1, 1, 1, 32 },   { 2, 3, 5, 7, 64 },   { 3, 2, 4, 17, 96 },
	{ 1, 8, 9, 6, 160 },  { 2, 11, 11, 5, 64 }, { 1, 4, 6, 33, 512 },
	{ 1, 3, 7, 9, 1056 },
};

/* A product of chosen experts' rows. */
struct chosen {
	size_t tokens, used, experts, rows, n, pairs;
	struct matrix m;
	struct arr x, y, expert, share;
	struct num *want;
	struct ssa_call c;
};

static void chosen_new(struct chosen *p, const size_t *s, enum dsl_type w,
		       bool down)
{
	*p = (struct chosen){ .tokens = s[0], .used = s[1], .experts = s[2],
			      .rows = s[3], .n = s[4], .pairs = s[0] * s[1] };
	p->m = matrix_random(w, p->experts * p->rows * (down ? 1 : 2), p->n);
	p->x = arr_random(SSA_F32, (down ? p->pairs : p->tokens) * p->n, 1,
			  &seed);
	p->y = down ? arr_random(SSA_F32, p->tokens * p->rows, 1, &seed) :
		      arr_stale(SSA_F32, p->pairs * p->rows);
	p->share = arr_random(SSA_F32, p->pairs, 1, &seed);
	p->expert = arr_new(SSA_I32, p->pairs);
	for (size_t i = 0; i < p->pairs; i++)
		arr_set(&p->expert, i, (double)((i * 7 + 3) % p->experts));
	p->want = calloc(p->y.n, sizeof(*p->want));
	call_arr(&p->c, &p->y);
	call_matrix(&p->c, &p->m);
	call_arr(&p->c, &p->x);
}

/* Its last arguments; frees the case. */
static void chosen_judge(struct chosen *p, struct lib *l, struct tally *all,
			 size_t groups, size_t others)
{
	call_arr(&p->c, &p->expert);
	call_u32(&p->c, (uint32_t)p->used);
	call_u32(&p->c, (uint32_t)p->rows);
	call_u32(&p->c, (uint32_t)p->n);
	all->wrong += !lib_run(&dev, l, &p->c, groups, others);
	tally(all, &p->y, p->want);
	matrix_free(&p->m);
	free(p->x.bits);
	free(p->y.bits);
	free(p->share.bits);
	free(p->expert.bits);
	free(p->want);
}

static size_t row_at(const struct chosen *p, size_t pair, size_t each)
{
	return (size_t)arr_get(&p->expert, pair) * each;
}

static void test_swiglu(size_t kind)
{
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, "expert_swiglu", kinds[kind].type))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		struct chosen p;

		chosen_new(&p, shapes[s], kinds[kind].type, false);
		struct arr gain = arr_random(SSA_F32, p.n, 2, &seed);
		for (size_t i = 0; i < p.y.n; i++) {
			const size_t pair = i / p.rows, t = pair / p.used;
			const size_t top = row_at(&p, pair, 2 * p.rows);
			const double part = arr_get(&p.share, pair);
			struct num v = gated(
				product(&p.m, top + i % p.rows, &p.x, t, &gain),
				product(&p.m, top + p.rows + i % p.rows, &p.x,
					t, &gain));
			p.want[i].v = part * v.v;
			p.want[i].tol =
				fabs(part) * v.tol + 0x1p-23 * fabs(part * v.v);
		}
		call_arr(&p.c, &gain);
		call_f32(&p.c, (float)EPS);
		call_arr(&p.c, &p.share);
		chosen_judge(&p, &l, &all,
			     kernel_groups(l.entry, &l.shape, p.rows), p.pairs);
		free(gain.bits);
	}
	is_u64(all.wrong, 0, "expert_swiglu of %s", kinds[kind].name);
	is_u64(all.missed, 0, "expert_swiglu of %s: mutants are noticed",
	       kinds[kind].name);
	lib_close(&l);
}

static void test_add(size_t kind)
{
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, "expert_add", kinds[kind].type))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		struct chosen p;

		chosen_new(&p, shapes[s], kinds[kind].type, true);
		for (size_t i = 0; i < p.y.n; i++) {
			struct num *want = &p.want[i];
			want->v = arr_get(&p.y, i);
			want->tol = 0x1p-21 * fabs(want->v);
			for (size_t k = 0; k < p.used; k++) {
				const size_t pair = i / p.rows * p.used + k;
				struct num v = product(
					&p.m,
					row_at(&p, pair, p.rows) + i % p.rows,
					&p.x, pair, NULL);
				want->v += v.v;
				want->tol += v.tol + 0x1p-22 * fabs(v.v);
			}
		}
		chosen_judge(&p, &l, &all,
			     (p.rows + KERNEL_EXPERT_ROWS - 1) /
				     KERNEL_EXPERT_ROWS,
			     p.tokens);
	}
	is_u64(all.wrong, 0, "expert_add of %s", kinds[kind].name);
	is_u64(all.missed, 0, "expert_add of %s: mutants are noticed",
	       kinds[kind].name);
	lib_close(&l);
}

int main(void)
{
	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	test_route();
	test_broken();
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		test_swiglu(k);
		test_add(k);
	}
	cc_dev_close(&dev);
	return plan_done();
}
