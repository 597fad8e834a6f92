/* Logits of the CPU backend against tests/ref/qwen.h. */
#include <unistd.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "engine/model/model.h"
#include "tests/ref/qwen.h"

#define N    23
#define LONG 330 /* more than attend together */
static uint32_t ids[LONG];
static struct threads *threads;

static struct qwen_model open_model(const char *dir, bool convert,
				    enum qwen_weights w)
{
	struct qwen_load how = { .convert = convert, .weights = w };
	struct qwen_model m;
	struct err e = { 0 };

	if (!qwen_model_load(&m, dir, &how, threads, &e))
		diag("%s", e.msg);
	return m;
}

/* Feeds ids[0..total) in pieces of `chunk`; the worst error of all tokens. */
static double run_some(const struct qwen_model *m, struct qwen_kinds cache,
		       uint32_t total, uint32_t chunk, const double *want)
{
	struct qwen_shape shape = { 2, total + 41, total, cache, NULL, 0 };
	struct qwen_token t[LONG];
	struct err e = { 0 };
	double most = 0;
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	for (uint32_t i = 0; i < total; i++)
		t[i] = (struct qwen_token){ ids[i], 1, true, false, false };
	for (uint32_t at = 0; at < total; at += chunk) {
		uint32_t n = at + chunk < total ? chunk : total - at;
		if (!qwen_forward(s, t + at, n, &e)) {
			diag("%s", e.msg);
			return INFINITY;
		}
		for (uint32_t i = 0; i < n; i++)
			most = fmax(most, worst(qwen_logits(s, i),
						want + (size_t)(at + i) *
								m->config.vocab,
						(int)m->config.vocab));
	}
	qwen_state_free(s);
	return most;
}

static double run(const struct qwen_model *m, enum qwen_weights cache,
		  uint32_t chunk, const double *want)
{
	return run_some(m, qwen_both(cache), N, chunk, want);
}

/* ---- tests ---- */

static char root[] = "/tmp/t0-logits-XXXXXX";

static const char *model(const char *name, enum qwen_weights w, bool tied,
			 uint32_t shards)
{
	static char path[128];
	struct qwen_synthetic how = { .weights = w,
				      .seed = 7,
				      .shards = shards };
	struct err e = { 0 };

	qwen_shape_find("tiny", &how.config, &e);
	how.config.tied = tied;
	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (!ok(qwen_synthetic_write(path, &how, &e),
		"a tiny model is made: %s", name))
		diag("%s", e.msg);
	return path;
}

/*
 * Bounds: f32 as the issue of the engine has it; for types of b bits of
 * mantissa, errors of 2^-b in each of a few dozen products add up like their
 * square root; integer groups of 32 have steps of 1/254 and 1/16 of their
 * largest value, and values of f8 of 1/16 of their own.
 */
static void test_types(void)
{
	struct ref r = { 0 };
	const char *dir = model("f32", QWEN_W_F32, true, 1);

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	struct qwen_model m = open_model(dir, false, 0);
	close_to(run(&m, QWEN_W_F32, N, want), 1e-4, "f32, one pass");
	close_to(run(&m, QWEN_W_F32, 1, want), 1e-4, "f32, token by token");
	close_to(run(&m, QWEN_W_F32, 5, want), 1e-4, "f32, chunks of 5");
	close_to(run(&m, QWEN_W_F16, 4, want), 1e-2, "cache of f16");
	close_to(run(&m, QWEN_W_BF16, 4, want), 6e-2, "cache of bf16");
	close_to(run(&m, QWEN_W_INT8, 4, want), 8e-2, "cache of int8");
	close_to(run(&m, QWEN_W_F8, 4, want), 0.5, "cache of f8");
	close_to(run(&m, QWEN_W_INT4, 4, want), 1.5, "cache of int4");
	close_to(run(&m, QWEN_W_INT4R, 4, want), 1.5, "cache of int4r");
	qwen_model_close(&m);
	m = open_model(dir, true, QWEN_W_F16);
	close_to(run(&m, QWEN_W_F32, 5, want), 1e-2, "converted to f16");
	qwen_model_close(&m);
	m = open_model(dir, true, QWEN_W_BF16);
	close_to(run(&m, QWEN_W_F32, 5, want), 8e-2, "converted to bf16");
	qwen_model_close(&m);
	m = open_model(dir, true, QWEN_W_INT8);
	close_to(run(&m, QWEN_W_F32, 5, want), 0.15, "converted to int8");
	qwen_model_close(&m);
	m = open_model(dir, true, QWEN_W_INT4);
	close_to(run(&m, QWEN_W_F32, 5, want), 1.5, "converted to int4");
	qwen_model_close(&m);
	free(want);
	ref_close(&r);
}

/* Attention in blocks: whole, cut anywhere, and of caches that are widened. */
static void test_long(void)
{
	static const struct {
		const char *cache;
		uint32_t chunk;
		double bound;
	} test[] = {
		{ "f32", LONG, 1e-4 },	    { "f32", 150, 1e-4 },
		{ "f32", 65, 1e-4 },	    { "bf16", 150, 6e-2 },
		{ "int8", LONG, 8e-2 },	    { "int8", 150, 8e-2 },
		{ "f32", 1, 1e-4 },	    { "f16", 8, 1e-2 },
		{ "int8", 3, 8e-2 },	    { "f8", LONG, 0.5 },
		{ "f8", 5, 0.5 },	    { "int4", 150, 1.5 },
		{ "int4", 7, 1.5 },	    { "int4r", LONG, 1.5 },
		{ "int4r", 3, 1.5 },	    { "f16,int8", 8, 8e-2 },
		{ "int8,f8", 150, 0.5 },    { "int4r,f16", 5, 1.2 },
		{ "f32,int4r", LONG, 1.2 }, { "f32,int4r", 9, 1.2 },
	};
	struct ref r = { 0 };
	char dir[128], what[64];

	snprintf(dir, sizeof(dir), "%s/f32", root);
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, LONG);
	struct qwen_model m = open_model(dir, false, 0);
	for (size_t i = 0; i < ARRAY_SIZE(test); i++) {
		struct qwen_kinds kinds;
		struct err e = { 0 };
		snprintf(what, sizeof(what), "%d tokens, %u at once, cache %s",
			 LONG, test[i].chunk, test[i].cache);
		if (!qwen_kinds_parse(test[i].cache, &kinds, &e))
			BUG("%s", e.msg);
		close_to(run_some(&m, kinds, LONG, test[i].chunk, want),
			 test[i].bound, what);
	}
	qwen_model_close(&m);
	free(want);
	ref_close(&r);
}

/* Logits that are all the same: the best is the first, whoever found it. */
static void test_equals(struct qwen_model *m, struct qwen_state *s)
{
	float *zero = xcalloc(m->config.hidden, sizeof(*zero));
	struct qwen_token t = { .id = 5, .best = true };
	const float *norm = m->norm;
	struct err e = { 0 };

	m->norm = zero;
	qwen_state_truncate(s, 0, 3);
	ok(qwen_forward(s, &t, 1, &e) && qwen_argmax(s, 0) == 0,
	   "the best of equals is the lowest");
	m->norm = norm;
	free(zero);
}

/*
 * The logits of a prompt's last token and of tokens behind it do not depend on
 * who computes what, nor does the best of them.
 */
#define BEHIND 9
static void test_threads(enum qwen_weights w)
{
	struct qwen_shape shape = { 1,	  LONG + BEHIND,
				    LONG, qwen_both(QWEN_W_F32),
				    NULL, 0 };
	struct qwen_token t[LONG];
	struct threads *all = threads;
	struct err e = { 0 };
	char dir[128];
	float first[1 + BEHIND][512];
	uint32_t best[BEHIND];

	snprintf(dir, sizeof(dir), "%s/f32", root);
	for (uint32_t i = 0; i < LONG; i++)
		t[i] = (struct qwen_token){ ids[i], 0, i + 1 == LONG, false,
					    false };
	for (unsigned n = 1; n <= 5; n++) {
		threads = threads_new(n, &e);
		struct qwen_model m = open_model(dir, true, w);
		struct qwen_state *s = qwen_state_new(&m, &shape, &e);
		bool same = qwen_forward(s, t, LONG, &e);
		for (uint32_t i = 0, at = LONG - 1; i <= BEHIND; i++, at = 0) {
			const float *l = qwen_logits(s, at);
			struct qwen_token one = { ids[i], 0, true, true,
						  false };
			if (n == 1)
				memcpy(first[i], l, sizeof(first[i]));
			same &= !memcmp(l, first[i], sizeof(first[i]));
			if (i && n == 1)
				best[i - 1] = qwen_argmax(s, 0);
			same &= !i || best[i - 1] == qwen_argmax(s, 0);
			same &= i == BEHIND || qwen_forward(s, &one, 1, &e);
		}
		ok(same, "%s, %u threads compute the same bits as one",
		   qwen_weights_name(w), n);
		test_equals(&m, s);
		qwen_state_free(s);
		qwen_model_close(&m);
		threads_free(threads);
	}
	threads = all;
}

/* What the files hold is computed with exactly as it is. */
static void test_stored(enum qwen_weights w, bool tied, const char *name)
{
	struct ref r = { 0 };
	const char *dir = model(name, w, tied, 1);
	char what[64];

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	struct qwen_model m = open_model(dir, false, 0);
	m.activations = QWEN_AS_F32;
	snprintf(what, sizeof(what), "a model of %s", name);
	close_to(run(&m, QWEN_W_F32, 7, want), 1e-4, what);
	ok(m.blocks.n == 0, "%s: nothing is copied", name);
	qwen_model_close(&m);
	struct qwen_load how = { .copy = true };
	struct err e = { 0 };
	ok(qwen_model_load(&m, dir, &how, threads, &e) && m.blocks.n == 0,
	   "%s: nor is it twice in memory where a copy is wanted", name);
	m.activations = QWEN_AS_F32;
	close_to(run(&m, QWEN_W_F32, 7, want), 1e-4, what);
	qwen_model_close(&m);
	free(want);
	ref_close(&r);
}

static void test_levels(void)
{
	struct ref r = { 0 };
	char dir[128], what[64];

	snprintf(dir, sizeof(dir), "%s/f32", root);
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k; k++)
		for (int w = 0; w <= QWEN_W_INT4; w++) {
			static const double bound[] = { 1e-4, 1e-2, 8e-2, .15,
							1.5 };
			struct qwen_model m =
				open_model(dir, true, (enum qwen_weights)w);
			m.kernels = *k;
			snprintf(what, sizeof(what), "%s, %s, narrow and wide",
				 (*k)->name,
				 qwen_weights_name((enum qwen_weights)w));
			close_to(run(&m, QWEN_W_F32, 3, want), bound[w], what);
			close_to(run(&m, QWEN_W_INT8, N, want),
				 fmax(bound[w], 8e-2) * 1.5, what);
			qwen_model_close(&m);
		}
	free(want);
	ref_close(&r);
}

/*
 * What products round their inputs to: each way of each type of weights agrees
 * with the reference, one piece and few tokens at a time.  Weights of bf16 and
 * integers err as they did, so that the bounds are theirs and the roundings'.
 */
static void test_activations(void)
{
	static const struct {
		enum qwen_weights weights;
		enum qwen_activations as;
		double bound;
	} test[] = {
		{ QWEN_W_F32, QWEN_AS_BF16, 8e-2 },
		{ QWEN_W_F32, QWEN_AS_F16, 1e-2 },
		{ QWEN_W_BF16, QWEN_AS_AUTO, 0.12 },
		{ QWEN_W_BF16, QWEN_AS_F32, 8e-2 },
		{ QWEN_W_BF16, QWEN_AS_BF16, 0.12 },
		{ QWEN_W_INT8, QWEN_AS_F32, 0.15 },
		{ QWEN_W_INT8, QWEN_AS_BF16, 0.2 },
		{ QWEN_W_INT8, QWEN_AS_INT8, 0.2 },
		{ QWEN_W_INT4, QWEN_AS_F32, 1.5 },
		{ QWEN_W_INT4, QWEN_AS_INT8, 1.5 },
	};
	static const char *const level[] = { "", "v3", "v3+vnni", "v4+bf16" };
	struct ref r = { 0 };
	char dir[128], what[96];

	snprintf(dir, sizeof(dir), "%s/f32", root);
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	for (size_t i = 0; i < ARRAY_SIZE(test) * ARRAY_SIZE(level); i++) {
		const size_t t = i / ARRAY_SIZE(level);
		const char *simd = level[i % ARRAY_SIZE(level)];
		setenv("T0_HOST_SIMD", simd, 1);
		struct qwen_model m = open_model(dir, true, test[t].weights);
		m.activations = test[t].as;
		snprintf(what, sizeof(what), "%s, activations %s, %s",
			 qwen_weights_name(test[t].weights),
			 qwen_activations_name(test[t].as),
			 *simd ? simd : "best");
		close_to(fmax(run(&m, QWEN_W_F16, N, want),
			      run(&m, QWEN_W_F16, 4, want)),
			 test[t].bound, what);
		qwen_model_close(&m);
	}
	unsetenv("T0_HOST_SIMD");
	free(want);
	ref_close(&r);
}

/* A group as it is to be: nearest even, and nothing hides that is no number. */
static uint32_t group_wrong(const float *x, const int8_t *q, float d)
{
	float top = 0;
	uint32_t wrong = 0;
	bool finite = true;

	for (int i = 0; i < QWEN_GROUP; i++) {
		finite &= isfinite(x[i]) != 0;
		top = fmaxf(top, fabsf(x[i]));
	}
	if (finite && d != top / 127)
		return 1;
	for (int i = 0; i < QWEN_GROUP; i++)
		wrong += finite ? q[i] != (d > 0 ? rintf(x[i] * (1 / d)) : 0) :
				  !isnan(d * (float)q[i]);
	return wrong;
}

static void test_quantize(void)
{
	enum { GROUPS = 64, ALL = GROUPS * QWEN_GROUP };
	static const float odd[] = { NAN, INFINITY, -INFINITY, -NAN };
	static float x[ALL], d[GROUPS], sum[GROUPS];
	static int8_t q[ALL];
	const struct qwen_quants out = { .q = q, .d = d, .sum = sum };
	uint64_t seed = 5050;

	diag("seed %llu", (unsigned long long)seed);
	for (int i = 0; i < ALL; i++) {
		int g = i / QWEN_GROUP;
		x[i] = g == 1 ? 0 :
		       g == 2 ? (float)(i % 8) - 3.5f :
				ldexpf((float)(int32_t)random_next(&seed),
				       g - 71);
	}
	for (int k = 0; k < 16; k++) /* in each lane, one or several */
		x[(8 + k) * QWEN_GROUP + 2 * k + k / 8] = odd[k % 4];
	x[20 * QWEN_GROUP] = NAN;
	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k;
	     k++) {
		uint32_t wrong = 0;
		(*k)->quantize(x, ALL, &out);
		for (int g = 0; g < GROUPS; g++)
			wrong += group_wrong(x + g * QWEN_GROUP,
					     q + g * QWEN_GROUP, d[g]);
		is_u64(wrong, 0, "%s: groups of int8", (*k)->name);
	}
}

/*
 * Two sequences, interleaved, `step` of each per pass.  A narrow pass computes
 * each as if it were alone, to the bit; a wide one to within rounding.
 */
static void test_batch(uint32_t step, double bound, const char *what)
{
	struct qwen_shape shape = {
		2, 64, 2 * N, qwen_both(QWEN_W_F32), NULL, 0
	};
	struct qwen_token t[2 * N];
	struct err e = { 0 };
	char dir[128];
	double most = 0;

	snprintf(dir, sizeof(dir), "%s/f32", root);
	struct qwen_model m = open_model(dir, false, 0);
	struct qwen_state *both = qwen_state_new(&m, &shape, &e);
	struct qwen_state *one = qwen_state_new(&m, &shape, &e);
	for (uint32_t i = 0; i < N; i++) {
		t[2 * i] = (struct qwen_token){ ids[i], 0, true, false, false };
		t[2 * i + 1] = (struct qwen_token){ ids[N - 1 - i], 1, i != 0,
						    false, false };
	}
	for (uint32_t i = 0; i < N; i++) {
		struct qwen_token x = { ids[N - 1 - i], 0, true, false, false };
		uint32_t at = i % step, n = N - i < step ? N - i : step;
		if (at == 0)
			qwen_forward(both, t + 2 * i, 2 * n, &e);
		qwen_forward(one, &x, 1, &e);
		const float *a = qwen_logits(both, 2 * at + 1);
		const float *b = qwen_logits(one, 0);
		if (i == 0)
			ok(!a && qwen_logits(both, 0),
			   "%s: logits are there "
			   "where they were wanted",
			   what);
		for (uint32_t k = 0; i && k < m.config.vocab; k++)
			most = fmax(most, fabs((double)a[k] - b[k]));
	}
	close_to(most, bound, what);
	qwen_state_free(both);
	qwen_state_free(one);
	qwen_model_close(&m);
}

static _Atomic int stop;

/* `s` has 8 of 8 positions. */
static void test_stops(struct qwen_state *s)
{
	struct qwen_token t = { .id = 3, .best = true, .logits = true };
	struct err e = { 0 };
	uint32_t at = 0;

	qwen_state_truncate(s, 0, 7);
	stop = 1;
	ok(!qwen_forward(s, &t, 1, &e) && e.code == ERR_STOPPED,
	   "a signal ends a pass");
	is_u64(qwen_state_length(s, 0), 7, "which never was");
	stop = 0;
	ok(qwen_forward(s, &t, 1, &e), "afterwards it goes on");
	const float *v = qwen_logits(s, 0);
	for (uint32_t i = 1; i < 512; i++)
		at = v[i] > v[at] ? i : at;
	is_u64(qwen_argmax(s, 0), at, "the best is the largest logit");
}

static void test_refuses(void)
{
	struct qwen_shape shape = { 1, 8, 16, qwen_both(QWEN_W_F32), &stop, 0 };
	struct qwen_token t[17] = { { 0, 0, false, false, false } };
	struct err e = { 0 };
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/f32", root);
	struct qwen_model m = open_model(dir, false, 0);
	struct qwen_state *s = qwen_state_new(&m, &shape, &e);
	ok(!qwen_forward(s, t, 9, &e) && e.code == ERR_USAGE,
	   "more tokens than the context are refused");
	has_str(e.msg, "its context has 8", "with its size");
	is_u64(qwen_state_length(s, 0), 0, "and nothing has changed");
	ok(!qwen_forward(s, t, 17, &e), "too many tokens at once, too");
	t[0].id = 512;
	ok(!qwen_forward(s, t, 1, &e), "and an id beyond the vocabulary");
	t[0] = (struct qwen_token){ 1, 1, false, false, false };
	ok(!qwen_forward(s, t, 1, &e), "and a sequence that is not there");
	t[0].sequence = 0;
	ok(qwen_forward(s, t, 8, &e), "what fits is done");
	qwen_state_truncate(s, 0, 5);
	ok(qwen_forward(s, t, 3, &e), "after a cut there is room again");
	ok(qwen_forward(s, t, 0, &e), "no token is no work");
	test_stops(s);
	qwen_state_free(s);
	shape.positions = 1u << 30;
	ok(!qwen_state_new(&m, &shape, &e),
	   "more positions than the model knows are refused");
	qwen_model_close(&m);
	struct qwen_load how = { .stop = &stop };
	stop = 1;
	ok(!qwen_model_load(&m, dir, &how, threads, &e) &&
		   e.code == ERR_STOPPED,
	   "loading ends at a signal");
	has_str(e.msg, "0 of 2 layers", "and says where");
	stop = 0;
}

static void on_warning(void *ctx, const char *text)
{
	(void)ctx;
	has_str(text, "not tuned", "a damaged database is told of");
}

/* The worst error of a wide pass, with what the database says. */
static double run_tuned(const double *want)
{
	struct qwen_load how = { .warn = on_warning };
	struct qwen_model m;
	struct err e = { 0 };
	char dir[128];
	double worst;

	snprintf(dir, sizeof(dir), "%s/f32", root);
	if (!ok(qwen_model_load(&m, dir, &how, threads, &e), "loaded"))
		return INFINITY;
	worst = run(&m, QWEN_W_F32, N, want);
	qwen_model_close(&m);
	return worst;
}

/*
 * A winner that was tuned for a lower level than the default's rounds
 * otherwise: other bits show that it is in use.
 */
static void test_tuned(const char *db)
{
	struct ref r = { 0 };
	struct cpu_tune_opts o = {
		.db = db, .threads = 3, .level = 2, .seconds = .05, .seed = 1
	};
	struct cpu_outcome out;
	struct err e = { 0 };
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/f32", root);
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	struct qwen_model m = open_model(dir, false, 0);
	struct cpu_problem p = {
		N,    m.layer[0].down.rows, m.layer[0].down.cols, CPU_GEMM_F32,
		true, CPU_GEMM_F32
	};
	qwen_model_close(&m);
	double before = run_tuned(want);
	ok(cpu_tune(&o, &p, 1, &out, &e) && out.found, "a product is tuned");
	double after = run_tuned(want);
	close_to(after, 1e-4, "with a winner from the database");
	if (cpu_gemm_level() > 2)
		ok(after != before, "which is what the engine does now");
	FILE *f = fopen(db, "w");
	fputs("no database, and longer than the header of one would have to be "
	      "to be read as such: it is refused\n",
	      f);
	fclose(f);
	ok(run_tuned(want) == before, "without it, as before");
	unlink(db);
	free(want);
	ref_close(&r);
}

int main(void)
{
	struct err e = { 0 };
	char db[64];

	if (!mkdtemp(root))
		return 2;
	snprintf(db, sizeof(db), "%s/t0.db", root);
	setenv("T0_DB", db, 1);
	for (uint32_t i = 0; i < LONG; i++)
		ids[i] = (i * i * 37 + 11 * i + 3) % 512;
	threads = threads_new(3, &e);
	test_types();
	test_long();
	test_threads(QWEN_W_BF16);
	test_threads(QWEN_W_INT8);
	test_threads(QWEN_W_INT4);
	test_stored(QWEN_W_BF16, true, "bf16");
	test_stored(QWEN_W_F16, false, "f16");
	test_levels();
	test_activations();
	test_quantize();
	test_batch(3, 0, "a narrow batch");
	test_batch(N, 1e-5, "a wide batch");
	test_refuses();
	test_tuned(db);
	threads_free(threads);
	char cmd[64];
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", root);
	ok(system(cmd) == 0, "the folder goes");
	return plan_done();
}
