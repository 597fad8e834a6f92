/*
 * Kernels of training: a loss in chunks, packed attention with its gradients,
 * optimizers and clipping, against double precision.
 */
#include "tests/kernels/kernel-run.h"
#include "tests/ref/grad.h"

static uint64_t seed = 20;
static struct cc_dev dev;

/* Judged, and the judge, too. */
static void test_within(const struct arr *got, const double *want,
			const double *tol, const char *name)
{
	is_u64(judge(got, want, tol), 0, "%s", name);
	is_u64(mutants_missed(got, want, tol), 0, "%s: mutants are noticed",
	       name);
}

/* Everything within `rel` of the largest. */
static void test_close(const struct arr *got, const double *want, double rel,
		       const char *name)
{
	double *tol = calloc(got->n + 1, sizeof(*tol)), most = 0;

	for (size_t i = 0; i < got->n; i++)
		most = fmax(most, fabs(want[i]));
	for (size_t i = 0; i < got->n; i++)
		tol[i] = rel * most + 0x1p-126;
	test_within(got, want, tol, name);
	free(tol);
}

static struct arr arr_counts(size_t n, uint32_t below)
{
	struct arr a = arr_new(SSA_I32, n);

	for (size_t i = 0; i < n; i++)
		arr_set(&a, i, (double)(random_next(&seed) % below));
	return a;
}

/* ---- the loss ---- */

enum { ROWS = 7, ALL = 301, MOST_CHUNK = 301 };

static void run_chunk(struct lib *l, struct arr *loss, struct arr *lse,
		      const struct arr *x, const struct arr *target,
		      uint32_t at, uint32_t n)
{
	struct ssa_call c = { 0 };

	call_arr(&c, loss);
	call_arr(&c, lse);
	call_arr(&c, x);
	call_arr(&c, target);
	call_u32(&c, at);
	call_u32(&c, n);
	call_u32(&c, ALL);
	ok(lib_run(&dev, l, &c, ROWS, 1), "a chunk of %u at %u", n, at);
}

static void run_chunk_back(struct lib *l, struct arr *x, const struct arr *lse,
			   const struct arr *target, uint32_t at, uint32_t n,
			   float a)
{
	struct ssa_call c = { 0 };

	call_arr(&c, x);
	call_arr(&c, lse);
	call_arr(&c, target);
	call_u32(&c, at);
	call_u32(&c, n);
	call_u32(&c, ALL);
	call_f32(&c, a);
	ok(lib_run(&dev, l, &c, ROWS, 1), "the gradient of %u at %u", n, at);
}

static struct arr chunk_of(const struct arr *x, uint32_t at, uint32_t n)
{
	struct arr a = arr_new(SSA_F32, (size_t)ROWS * n);

	for (uint32_t r = 0; r < ROWS; r++)
		for (uint32_t i = 0; i < n; i++)
			arr_set(&a, (size_t)r * n + i,
				arr_get(x, (size_t)r * ALL + at + i));
	return a;
}

static double lse_of(const struct arr *x, uint32_t row)
{
	double sum = 0;

	for (uint32_t i = 0; i < ALL; i++)
		sum += exp(arr_get(x, (size_t)row * ALL + i));
	return log(sum);
}

static void test_loss(uint32_t chunk)
{
	struct arr x = arr_random(SSA_F32, (size_t)ROWS * ALL, 9, &seed);
	struct arr target = arr_counts(ROWS, ALL);
	struct arr loss = arr_stale(SSA_F32, ROWS);
	struct arr lse = arr_stale(SSA_F32, ROWS);
	double want[ROWS], sums[ROWS];
	struct lib fore, back;

	arr_set(&target, 0, ALL - 1);
	arr_set(&target, 1, 0);
	arr_set(&target, 3, -1); /* nothing is learnt */
	ok(lib_open(&fore, "loss_chunk", 0, 0) &&
		   lib_open(&back, "loss_chunk_back", 0, 0),
	   "compile");
	for (uint32_t at = 0; at < ALL; at += chunk) {
		uint32_t n = ALL - at < chunk ? ALL - at : chunk;
		struct arr part = chunk_of(&x, at, n);
		run_chunk(&fore, &loss, &lse, &part, &target, at, n);
		free(part.bits);
	}
	for (uint32_t r = 0; r < ROWS; r++) {
		double t = arr_get(&target, r);
		sums[r] = lse_of(&x, r);
		want[r] = t < 0 ? 0 :
				  sums[r] - arr_get(&x, r * ALL + (size_t)t);
	}
	test_close(&loss, want, 1e-6, "losses");
	test_close(&lse, sums, 1e-6, "logs of sums");
	for (uint32_t at = 0; at < ALL; at += chunk) {
		uint32_t n = ALL - at < chunk ? ALL - at : chunk;
		struct arr part = chunk_of(&x, at, n);
		double *d = calloc(part.n, sizeof(*d));

		run_chunk_back(&back, &part, &lse, &target, at, n, .25f);
		for (uint32_t i = 0; i < part.n; i++) {
			uint32_t r = i / n, c = at + i % n;
			double t = arr_get(&target, r);
			double p = exp(arr_get(&x, r * ALL + c) - sums[r]);
			d[i] = t < 0 ? 0 : .25 * (p - (t == c));
		}
		test_close(&part, d, 2e-6, "gradients of logits");
		free(part.bits);
		free(d);
	}
	lib_close(&fore);
	lib_close(&back);
	free(x.bits);
	free(target.bits);
	free(loss.bits);
	free(lse.bits);
}

/* ---- attention ---- */

struct packed {
	struct grad_shape s;
	int tokens;
	struct arr position, in[3], dy, y, lse, dots, out[3];
	double *x[3], *c;
	uint32_t *at;
};

static double weighted_sum(void *ctx)
{
	struct packed *p = ctx;
	int n = p->s.heads * p->s.dim;
	double *y = calloc((size_t)n, sizeof(*y)), sum = 0;

	for (int t = 0; t < p->tokens; t++) {
		grad_attend(&p->s, p->x[0], p->x[1], p->x[2], p->at, t, y);
		for (int i = 0; i < n; i++)
			sum += p->c[(size_t)t * n + i] * y[i];
	}
	free(y);
	return sum;
}

static void packed_new(struct packed *p, int tokens, int heads, int kv, int dim)
{
	*p = (struct packed){
		.s = { .heads = heads, .kv_heads = kv, .dim = dim },
		.tokens = tokens
	};
	size_t q = (size_t)tokens * heads * dim, k = (size_t)tokens * kv * dim;

	p->position = arr_new(SSA_I32, (size_t)tokens);
	p->at = calloc((size_t)tokens, sizeof(*p->at));
	for (int t = 1; t < tokens; t++) {
		p->at[t] = random_next(&seed) % 40 ? p->at[t - 1] + 1 : 0;
		arr_set(&p->position, (size_t)t, p->at[t]);
	}
	for (int i = 0; i < 3; i++) {
		size_t n = i ? k : q;
		p->in[i] = arr_random(SSA_F32, n, 1.5, &seed);
		p->out[i] = arr_stale(SSA_F32, n);
		p->x[i] = calloc(n, sizeof(double));
		for (size_t j = 0; j < n; j++)
			p->x[i][j] = arr_get(&p->in[i], j);
	}
	p->dy = arr_random(SSA_F32, q, 1, &seed);
	p->y = arr_stale(SSA_F32, q);
	p->lse = arr_stale(SSA_F32, (size_t)tokens * heads);
	p->dots = arr_stale(SSA_F32, (size_t)tokens * heads);
	p->c = calloc(q, sizeof(double));
	for (size_t j = 0; j < q; j++)
		p->c[j] = arr_get(&p->dy, j);
}

static void packed_fini(struct packed *p)
{
	struct arr *const all[] = { &p->position, &p->dy, &p->y, &p->lse,
				    &p->dots };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]->bits);
	for (int i = 0; i < 3; i++) {
		free(p->in[i].bits);
		free(p->out[i].bits);
		free(p->x[i]);
	}
	free(p->c);
	free(p->at);
}

/* first[n]: what comes before the arguments that all three have. */
static void run_packed(struct packed *p, const char *name,
		       struct arr *const *first, int n, int heads)
{
	const struct kernel_shape shape = { .head = (uint32_t)p->s.dim };
	uint64_t rows = (uint64_t)p->tokens * heads;
	struct ssa_call c = { 0 };
	struct lib l;

	if (!ok(lib_open_shape(&l, name, &shape), "%s compiles", name))
		return;
	for (int i = 0; i < n; i++)
		call_arr(&c, first[i]);
	for (int i = 0; i < 3; i++)
		call_arr(&c, &p->in[i]);
	call_arr(&c, &p->position);
	call_u32(&c, (uint32_t)p->s.heads);
	call_u32(&c, (uint32_t)p->s.kv_heads);
	call_u32(&c, (uint32_t)p->tokens);
	call_f32(&c, (float)(1 / sqrt(p->s.dim)));
	if (l.entry->per == KERNEL_GRID)
		rows = (uint64_t)((p->tokens + KERNEL_PACKED_ROWS - 1) /
				  KERNEL_PACKED_ROWS) *
		       heads;
	ok(lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, rows), 1),
	   "%s runs", name);
	lib_close(&l);
}

/* By f32, or by products of bf16. */
static void test_packed(int tokens, int heads, int kv, int dim, bool flash)
{
	static const char *const kernel[2][3] = {
		{ "attn_packed", "attn_packed_dq", "attn_packed_dkv" },
		{ "flash_packed", "flash_packed_dq", "flash_packed_dkv" },
	};
	double bound = flash ? 1.5e-2 : 2e-6;
	struct packed p;

	packed_new(&p, tokens, heads, kv, dim);
	size_t n = p.y.n;
	double *want = calloc(n, sizeof(*want));
	struct arr *const fore[] = { &p.y, &p.lse };
	struct arr *const by_q[] = { &p.out[0], &p.dots, &p.dy, &p.y, &p.lse };
	struct arr *const by_kv[] = { &p.out[1], &p.out[2], &p.dots, &p.dy,
				      &p.lse };

	diag("%d tokens, %d heads of %d, %d of keys", tokens, heads, dim, kv);
	run_packed(&p, kernel[flash][0], fore, 2, heads);
	for (int t = 0; t < tokens; t++)
		grad_attend(&p.s, p.x[0], p.x[1], p.x[2], p.at, t,
			    want + (size_t)t * heads * dim);
	test_close(&p.y, want, bound, "values");
	run_packed(&p, kernel[flash][1], by_q, 5, heads);
	run_packed(&p, kernel[flash][2], by_kv, 5, kv);
	for (int i = 0; i < 3; i++) {
		static const char *const name[] = { "dq", "dk", "dv" };
		for (size_t k = 0; k < p.out[i].n; k++)
			want[k] = grad_slope(weighted_sum, &p, &p.x[i][k]);
		test_close(&p.out[i], want, bound, name[i]);
	}
	free(want);
	packed_fini(&p);
}

/* ---- optimizers ---- */

/* Sums of squares of all spans; without its last element one is wrong. */
static double test_spans(const struct arr *part, const struct arr *g)
{
	double *want = calloc(part->n, sizeof(*want)), all = 0;
	double *tol = calloc(part->n, sizeof(*tol));
	double last = arr_get(g, g->n - 1);

	for (size_t i = 0; i < g->n; i++)
		want[i / KERNEL_SPAN] += arr_get(g, i) * arr_get(g, i);
	for (size_t i = 0; i < part->n; i++) {
		all += want[i];
		tol[i] = isfinite(want[i]) ? 1e-6 * want[i] : 0;
	}
	test_within(part, want, tol, "sums of squares");
	ok(last * last > 2 * tol[part->n - 1] || !isfinite(all),
	   "a lost element would be noticed");
	free(want);
	free(tol);
	return all;
}

/* norm: the root of `all`, and what clips it; nothing where that is none. */
static void test_clip(const struct arr *norm, double all, double clip,
		      double scale)
{
	double root = sqrt(all) * scale;
	double by = (clip > 0 && root > clip ? clip / root : 1) * scale;
	const double want[2] = { root, isfinite(root) ? by : 0 };
	const double tol[2] = { isfinite(root) ? 1e-6 * root : 0,
				1e-6 * want[1] };

	test_within(norm, want, tol, "length and clip");
}

/* `scale`: one over what the loss was multiplied with. */
static void test_norm(size_t n, double clip, double scale, bool broken)
{
	size_t spans = (n + KERNEL_SPAN - 1) / KERNEL_SPAN;
	struct arr g = arr_random(SSA_F32, n, 2, &seed);
	struct arr part = arr_stale(SSA_F32, spans);
	struct arr norm = arr_stale(SSA_F32, 2);
	struct ssa_call squares = { 0 }, root = { 0 };
	struct lib sum, by;

	arr_set(&g, n - 1, 1.5);
	if (broken)
		arr_set(&g, n / 2, INFINITY);
	ok(lib_open(&sum, "square_sum", 0, 0) &&
		   lib_open(&by, "clip_norm", 0, 0),
	   "compile");
	call_arr(&squares, &part);
	call_arr(&squares, &g);
	call_u32(&squares, (uint32_t)n);
	call_arr(&root, &norm);
	call_arr(&root, &part);
	call_u32(&root, (uint32_t)spans);
	call_f32(&root, (float)clip);
	call_f32(&root, (float)scale);
	ok(lib_run(&dev, &sum, &squares, spans, 1) &&
		   lib_run(&dev, &by, &root, 1, 1),
	   "%zu elements, clipped to %g", n, clip);
	test_clip(&norm, test_spans(&part, &g), clip, scale);
	lib_close(&sum);
	lib_close(&by);
	free(g.bits);
	free(part.bits);
	free(norm.bits);
}

struct learner {
	struct arr p, g, m, v, norm;
	double *want[3]; /* p, m, v */
};

static const struct {
	float rate, keep, beta1, beta2, eps, c1, c2;
} rule = { .01f, .99f, .9f, .95f, 1e-8f, 1.5f, 2.5f };

static void learner_new(struct learner *l, enum dsl_type type, size_t n,
			double by, bool adamw)
{
	l->p = arr_random(kind_of(type), n, 1, &seed);
	l->g = arr_random(SSA_F32, n, 1, &seed);
	l->m = arr_random(SSA_F32, n, 1, &seed);
	l->v = arr_random(SSA_F32, n, 1, &seed);
	l->norm = arr_stale(SSA_F32, 2);
	arr_set(&l->norm, 1, by);
	for (int i = 0; i < 3; i++)
		l->want[i] = calloc(n, sizeof(double));
	for (size_t i = 0; i < n; i++) {
		double g = arr_get(&l->g, i) * by, m = arr_get(&l->m, i);
		double v = fabs(arr_get(&l->v, i)), p = arr_get(&l->p, i);

		arr_set(&l->v, i, v);
		if (by > 0 && adamw) {
			m = rule.beta1 * m + (1 - rule.beta1) * g;
			v = rule.beta2 * v + (1 - rule.beta2) * g * g;
			p = rule.keep * p -
			    rule.rate * m * rule.c1 /
				    (sqrt(v * rule.c2) + rule.eps);
		} else if (by > 0) {
			m = rule.beta1 * m + g;
			p = rule.keep * p - rule.rate * m;
		}
		l->want[0][i] = p;
		l->want[1][i] = m;
		l->want[2][i] = v;
	}
}

static void learner_fini(struct learner *l)
{
	struct arr *const all[] = { &l->p, &l->g, &l->m, &l->v, &l->norm };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]->bits);
	for (int i = 0; i < 3; i++)
		free(l->want[i]);
}

static void run_learner(struct learner *x, struct lib *l, bool adamw)
{
	struct ssa_call c = { 0 };

	call_arr(&c, &x->p);
	call_arr(&c, &x->g);
	call_arr(&c, &x->m);
	if (adamw)
		call_arr(&c, &x->v);
	call_arr(&c, &x->norm);
	call_f32(&c, rule.rate);
	call_f32(&c, rule.keep);
	call_f32(&c, rule.beta1);
	if (adamw) {
		call_f32(&c, rule.beta2);
		call_f32(&c, rule.eps);
		call_f32(&c, rule.c1);
		call_f32(&c, rule.c2);
	}
	call_u32(&c, 12345);
	call_u32(&c, (uint32_t)x->p.n);
	ok(lib_run(&dev, l, &c, kernel_groups(l->entry, &l->shape, x->p.n), 1),
	   "%s runs", l->entry->name);
}

static bool is_zero(const struct arr *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (arr_get(a, i) != 0)
			return false;
	return true;
}

/*
 * Of bf16 a result is one of the two next to what is wanted: the farther one as
 * often as the other is near, so that the mean is right.  Both counts of n are
 * within 4 deviations.
 */
static bool is_by_chance(const struct arr *p, const double *want)
{
	double sum = 0, far = 0, all = 0;
	size_t wide = 0;

	for (size_t i = 0; i < p->n; i++) {
		double ulp = exp2(floor(log2(fabs(want[i]))) - 7);
		double off = (arr_get(p, i) - want[i]) / ulp;
		double up = want[i] / ulp - floor(want[i] / ulp);

		wide += !(fabs(off) < 1.001);
		sum += off;
		far += (fabs(off) > .5) - fmin(up, 1 - up);
		all += up * (1 - up);
	}
	return !wide && fabs(sum) < 4 * sqrt(all) && fabs(far) < 4 * sqrt(all);
}

/* What else weights of bf16 could be: all of it is noticed. */
enum { ZEROS, TAIL, NEIGHBOURS, CUT, NEAREST, MUTANTS };

static void make_mutant(struct arr *x, const struct arr *good,
			const double *want, int how)
{
	for (size_t i = 0; i < x->n; i++) {
		double ulp = exp2(floor(log2(fabs(want[i]))) - 7);
		double is = arr_get(good, i);

		arr_set(x, i, how == ZEROS ? 0 :
			how == TAIL ? (i + 1 < x->n ? is : STALE) :
			how == NEIGHBOURS ? arr_get(good, i ^ 1) :
			how == CUT ? trunc(want[i] / ulp) * ulp : want[i]);
	}
}

static void test_chance(const struct learner *x)
{
	struct arr bad = arr_new(x->p.kind, x->p.n);

	ok(is_by_chance(&x->p, x->want[0]), "bf16: rounded by chance");
	for (int how = 0; how < MUTANTS; how++) {
		make_mutant(&bad, &x->p, x->want[0], how);
		ok(!is_by_chance(&bad, x->want[0]), "bf16: mutant %d is "
		   "noticed", how);
	}
	free(bad.bits);
}

static void test_learn(const char *name, enum dsl_type type, size_t n,
		       double by)
{
	bool adamw = strcmp(name, "learn_adamw") == 0;
	struct learner x;
	struct lib l;

	learner_new(&x, type, n, by, adamw);
	if (!ok(lib_open(&l, name, type, 0), "%s compiles", name))
		return;
	run_learner(&x, &l, adamw);
	if (type == DSL_BF16)
		test_chance(&x);
	else
		test_close(&x.p, x.want[0], 1e-6, "weights");
	test_close(&x.m, x.want[1], 1e-6, "first state");
	test_close(&x.v, x.want[2], 1e-6, "second state");
	ok(is_zero(&x.g), "the gradient is 0 then");
	lib_close(&l);
	learner_fini(&x);
}

/* ---- Muon ---- */

/* p = keep p - rate d, or nothing where norm[1] is 0; g is 0 then. */
static void test_direction(enum dsl_type type, size_t n, double by)
{
	struct learner x;
	struct arr d = arr_random(SSA_BF16, n, 1, &seed);
	struct ssa_call c = { 0 };
	struct lib l;

	learner_new(&x, type, n, 0, false);
	arr_set(&x.norm, 1, by);
	for (size_t i = 0; by > 0 && i < n; i++)
		x.want[0][i] = rule.keep * x.want[0][i] -
			       rule.rate * arr_get(&d, i);
	call_arr(&c, &x.p);
	call_arr(&c, &x.g);
	call_arr(&c, &d);
	call_arr(&c, &x.norm);
	call_f32(&c, rule.rate);
	call_f32(&c, rule.keep);
	call_u32(&c, 12345);
	call_u32(&c, (uint32_t)n);
	ok(lib_open(&l, "learn_direction", type, 0) &&
		   lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, n),
			   1),
	   "learn_direction runs");
	if (type == DSL_BF16 && by > 0)
		test_chance(&x);
	else
		test_close(&x.p, x.want[0], by > 0 ? 1e-6 : 0, "weights");
	ok(is_zero(&x.g), "the gradient is 0 then");
	lib_close(&l);
	learner_fini(&x);
	free(d.bits);
}

/* m = beta1 m + by g; g = by g + beta1 m; nothing where norm[1] is 0. */
static void test_nesterov(size_t n, double by)
{
	struct learner x;
	struct ssa_call c = { 0 };
	struct lib l;

	learner_new(&x, DSL_F32, n, by, false);
	for (size_t i = 0; i < n; i++) /* in the place of p's */
		x.want[0][i] = by > 0 ? arr_get(&x.g, i) * by +
						rule.beta1 * x.want[1][i] :
					arr_get(&x.g, i);
	call_arr(&c, &x.g);
	call_arr(&c, &x.m);
	call_arr(&c, &x.norm);
	call_f32(&c, rule.beta1);
	call_u32(&c, (uint32_t)n);
	ok(lib_open(&l, "learn_nesterov", 0, 0) &&
		   lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, n),
			   1),
	   "learn_nesterov runs");
	test_close(&x.m, x.want[1], by > 0 ? 1e-6 : 0, "momentum");
	test_close(&x.g, x.want[0], by > 0 ? 1e-6 : 0, "where it will be");
	lib_close(&l);
	learner_fini(&x);
}

/* x over a length, of bf16: half a unit in the last of 8 bits. */
static void test_over_length(size_t n)
{
	const struct kernel_shape shape = { .to = DSL_BF16 };
	struct arr x = arr_random(SSA_F32, n, 1, &seed);
	struct arr out = arr_stale(SSA_BF16, n), norm = arr_stale(SSA_F32, 2);
	double *want = calloc(n, sizeof(*want)), *tol = calloc(n, sizeof(*tol));
	struct ssa_call c = { 0 };
	struct lib l;

	arr_set(&norm, 0, 3);
	for (size_t i = 0; i < n; i++) {
		want[i] = arr_get(&x, i) / (3 + 1e-7);
		tol[i] = fabs(want[i]) * 0x1.01p-8;
	}
	call_arr(&c, &out);
	call_arr(&c, &x);
	call_arr(&c, &norm);
	call_u32(&c, (uint32_t)n);
	ok(lib_open_shape(&l, "over_length", &shape) &&
		   lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, n),
			   1),
	   "over_length runs");
	test_within(&out, want, tol, "over a length");
	lib_close(&l);
	free(x.bits);
	free(out.bits);
	free(norm.bits);
	free(want);
	free(tol);
}

/* average += share (p - average), or nothing where norm[1] is 0. */
static void test_average(enum dsl_type type, size_t n, double by)
{
	struct arr m = arr_random(SSA_F32, n, 1, &seed);
	struct arr p = arr_random(kind_of(type), n, 1, &seed);
	struct arr norm = arr_stale(SSA_F32, 2);
	double *want = calloc(n, sizeof(*want));
	struct ssa_call c = { 0 };
	struct lib l;

	arr_set(&norm, 1, by);
	for (size_t i = 0; i < n; i++) {
		double was = arr_get(&m, i), share = by > 0 ? .125 : 0;

		want[i] = was + share * (arr_get(&p, i) - was);
	}
	call_arr(&c, &m);
	call_arr(&c, &p);
	call_arr(&c, &norm);
	call_f32(&c, .125f);
	call_u32(&c, (uint32_t)n);
	ok(lib_open(&l, "learn_average", type, 0) &&
		   lib_run(&dev, &l, &c, kernel_groups(l.entry, &l.shape, n),
			   1),
	   "learn_average runs");
	test_close(&m, want, by > 0 ? 1e-6 : 0, "average");
	lib_close(&l);
	free(want);
	free(m.bits);
	free(p.bits);
	free(norm.bits);
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	cc_dev_begin(&dev);
	test_loss(MOST_CHUNK);
	test_loss(100);
	test_loss(43);
	test_packed(70, 4, 2, 6, false);
	test_packed(37, 3, 1, 36, false);
	test_packed(3, 1, 1, 7, false);
	test_packed(5, 1, 1, 128, true);
	test_packed(70, 4, 2, 16, true);
	test_packed(getenv("T0_SLOW") ? 200 : 100, 2, 1, 16, true);
	test_packed(64, 1, 1, 48, true);
	test_norm(1, 0, 1, false);
	test_norm(9000, 2, 1, false);
	test_norm(20500, 30, 1, false);
	test_norm(4096, 1e6, 1, false);
	test_norm(5000, 1, 1, true);
	test_norm(9000, 2, 0x1p-4, false);
	test_norm(9000, 2, 0x1p-16, false);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "learn_adamw" : "learn_momentum";
		test_learn(name, DSL_F32, 1027, 0.5);
		test_learn(name, DSL_F32, 3, 1);
		test_learn(name, DSL_F32, 100, 0);
		test_learn(name, DSL_BF16, 20004, 0.5);
	}
	test_direction(DSL_F32, 1027, .5);
	test_direction(DSL_F32, 100, 0);
	test_direction(DSL_BF16, 20004, .5);
	test_nesterov(1027, .5);
	test_nesterov(3, 1);
	test_nesterov(100, 0);
	test_over_length(1030);
	test_average(DSL_F32, 1027, .5);
	test_average(DSL_F32, 100, 0);
	test_average(DSL_BF16, 3, 1);
	test_average(DSL_BF16, 1030, .5);
	cc_dev_close(&dev);
	return plan_done();
}
