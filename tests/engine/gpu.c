/*
 * The gfx1100 backend on the device in software, in checked mode, against
 * tests/ref/qwen.h and the CPU backend.
 */
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/gpu/gpu_int.h"
#include "engine/state/state.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"
#include "tests/ref/qwen.h"

#define N 23
static uint32_t ids[N];
static struct threads *threads;
static bool watched; /* checked mode: ten times slower */
static char root[] = "/tmp/t0-gpu-XXXXXX";

/* A model on a device of its own. */
struct on {
	struct qwen_model m;
	struct kfd_driver *driver;
	bool open;
};

static bool on_open(struct on *o, const char *dir, bool convert,
		    enum qwen_weights w)
{
	const struct soft_watch_options w_check = { .check = watched };
	struct qwen_load how = { .convert = convert, .weights = w,
				 .backend = &qwen_gpu };
	struct err e = { 0 };

	o->driver = how.driver = kfd_soft_new(NULL, &e);
	o->open = soft_watch_attach(o->driver, &w_check, &e) &&
		  qwen_model_load(&o->m, dir, &how, threads, &e);
	if (!o->open)
		diag("%s", e.msg);
	return o->open;
}

static void on_close(struct on *o, const char *what)
{
	struct buf found = { 0 };

	if (!o->open)
		return;
	if (watched)
		is_u64(soft_watch_findings(o->driver, &found), 0,
		       "%s: checked mode finds nothing", what);
	if (found.len)
		diag("%.2000s", found.data);
	buf_fini(&found);
	qwen_model_close(&o->m);
}

static struct qwen_token token(uint32_t id, uint32_t sequence)
{
	return (struct qwen_token){ id, sequence, true, true, false };
}

static bool best_is_largest(const struct qwen_state *s, uint32_t i,
			    uint32_t vocab)
{
	const float *v = qwen_logits(s, i);
	uint32_t at = 0;

	for (uint32_t k = 1; k < vocab; k++)
		at = v[k] > v[at] ? k : at;
	return qwen_argmax(s, i) == at;
}

/* Feeds ids[0..N) in pieces of `chunk`; the worst error over all tokens. */
static double run(const struct qwen_model *m, enum qwen_weights cache,
		  uint32_t chunk, const double *want)
{
	struct qwen_shape shape = { 2, 64, N, qwen_both(cache), NULL, 0 };
	uint32_t vocab = m->config.vocab, at, i, n;
	struct qwen_token t[N];
	struct err e = { 0 };
	double most = 0;
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	for (i = 0; i < N; i++)
		t[i] = token(ids[i], 1);
	for (at = 0; s && at < N; at += n) {
		n = at + chunk < N ? chunk : N - at;
		if (!qwen_forward(s, t + at, n, &e))
			break;
		for (i = 0; i < n; i++) {
			most = fmax(most, worst(qwen_logits(s, i), want +
						(size_t)(at + i) * vocab,
						(int)vocab));
			if (!best_is_largest(s, i, vocab))
				most = INFINITY;
		}
	}
	qwen_state_free(s);
	if (at >= N)
		return most;
	diag("%s", e.msg);
	return INFINITY;
}

/* `wide`: rows are whole blocks of 64 columns. */
static void make_model(const char *dir, enum qwen_weights w, bool tied, bool wide)
{
	struct qwen_synthetic how = { .weights = w, .seed = 7, .shards = 1 };
	struct err e = { 0 };

	qwen_shape_find("tiny", &how.config, &e);
	how.config.tied = tied;
	if (wide)
		how.config.ffn = 192;
	if (!ok(qwen_synthetic_write(dir, &how, &e),
		"a tiny model of %s is made", qwen_weights_name(w)))
		diag("%s", e.msg);
}

/*
 * A prompt that is long enough for products of tiles: their inputs are rounded
 * to the weights' type as well; with a cache of 16 bits attention's, too.
 */
static void test_tiles(const struct qwen_model *m, double bound,
		       const double *want)
{
	close_to(run(m, QWEN_W_F32, N, want), 1.5 * bound, "in tiles");
	close_to(run(m, QWEN_W_F32, N - 4, want), 1.5 * bound,
		 "in tiles, then token by token");
	close_to(run(m, QWEN_W_F32, 16, want), 1.5 * bound,
		 "in tiles for few tokens");
	close_to(run(m, QWEN_W_BF16, N, want), 1.5 * bound + 6e-2,
		 "in tiles, cache of bf16");
	close_to(run(m, QWEN_W_INT8, N, want), 1.5 * bound + 8e-2,
		 "in tiles, cache of int8");
	close_to(run(m, QWEN_W_INT8, N - 5, want), 1.5 * bound + 8e-2,
		 "then token by token");
}

/*
 * Bounds as in 5050; integer weights are exact products here, so that only
 * the weights' own rounding counts.
 */
static void test_weights(const char *dir)
{
	static const double bound[] = { 1e-4, 1e-2, 8e-2, .15, 1.5 };
	struct ref r = { 0 };
	struct on o;
	char what[64];

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	for (int w = 0; w <= QWEN_W_INT4; w++) {
		const char *name = qwen_weights_name((enum qwen_weights)w);
		watched = w == QWEN_W_BF16 || w == QWEN_W_INT4;
		if (!ok(on_open(&o, dir, true, (enum qwen_weights)w),
			"weights of %s are on the device", name))
			continue;
		snprintf(what, sizeof(what), "%s, chunks of 5", name);
		close_to(run(&o.m, QWEN_W_F32, 5, want), bound[w], what);
		if (w != QWEN_W_F32)
			test_tiles(&o.m, bound[w], want);
		on_close(&o, name);
	}
	free(want);
	ref_close(&r);
}

/* Logits of all of ids, of the processor with inputs as they are. */
static double *cpu_logits(const char *dir, enum qwen_weights w)
{
	const struct qwen_load how = { .convert = true, .weights = w,
				       .activations = QWEN_AS_F32 };
	const struct qwen_shape shape = { 1, 64, N, qwen_both(QWEN_W_F32),
					  NULL, 0 };
	struct qwen_token t[N];
	struct qwen_model m;
	struct err e = { 0 };
	double *out = NULL;

	for (uint32_t i = 0; i < N; i++)
		t[i] = token(ids[i], 0);
	if (!qwen_model_load(&m, dir, &how, threads, &e))
		return NULL;
	const size_t vocab = m.config.vocab;
	struct qwen_state *s = qwen_state_new(&m, &shape, &e);
	if (s && qwen_forward(s, t, N, &e)) {
		out = calloc(N * vocab, sizeof(*out));
		for (size_t i = 0; i < N * vocab; i++)
			out[i] = (double)qwen_logits(s, (uint32_t)(i / vocab))
				[i % vocab];
	}
	qwen_state_free(s);
	qwen_model_close(&m);
	return out;
}

/*
 * Our own blocks: packed on the device, also where tiles make f16 of them.  With
 * the reference differ the weights, with the processor only orders of sums.
 */
static void test_own(const char *dir)
{
	static const struct {
		enum qwen_weights w;
		double bound;
	} of[] = { { QWEN_W_I6_64, .5 }, { QWEN_W_I3_32, 5 } };
	struct ref r = { 0 };
	struct on o;

	watched = true;
	make_model(dir, QWEN_W_F32, true, true);
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	for (size_t i = getenv("T0_SLOW") ? 0 : 1; i < ARRAY_SIZE(of); i++) {
		const char *name = qwen_weights_name(of[i].w);
		if (!ok(on_open(&o, dir, true, of[i].w),
			"weights of %s are on the device", name))
			continue;
		double *cpu = cpu_logits(dir, of[i].w);
		close_to(run(&o.m, QWEN_W_F32, 5, want), of[i].bound, name);
		if (ok(cpu != NULL, "%s on the processor", name)) {
			close_to(run(&o.m, QWEN_W_F32, 3, cpu), 1e-4,
				 "streams are as on the processor");
			test_tiles(&o.m, 1e-2, cpu);
		}
		free(cpu);
		on_close(&o, name);
	}
	free(want);
	ref_close(&r);
}

static void test_caches(const char *dir)
{
	struct ref r = { 0 };
	struct on o;

	watched = false;
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	if (ok(on_open(&o, dir, false, 0), "a model of f32")) {
		close_to(run(&o.m, QWEN_W_F32, N, want), 1e-4, "one pass");
		close_to(run(&o.m, QWEN_W_F32, 1, want), 1e-4,
			 "token by token");
		close_to(run(&o.m, QWEN_W_F16, 4, want), 1e-2, "cache of f16");
		close_to(run(&o.m, QWEN_W_BF16, 4, want), 6e-2,
			 "cache of bf16");
		close_to(run(&o.m, QWEN_W_INT8, N, want), 8e-2,
			 "cache of int8, one pass");
		close_to(run(&o.m, QWEN_W_INT8, 4, want), 8e-2,
			 "in chunks of 4");
		close_to(run(&o.m, QWEN_W_INT8, 1, want), 8e-2,
			 "token by token");
		close_to(run(&o.m, QWEN_W_F8, N, want), 0.5,
			 "cache of f8, one pass");
		close_to(run(&o.m, QWEN_W_F8, 1, want), 0.5, "token by token");
		close_to(run(&o.m, QWEN_W_INT4, N, want), 1,
			 "cache of int4, one pass");
		close_to(run(&o.m, QWEN_W_INT4, 1, want), 1, "token by token");
		close_to(run(&o.m, QWEN_W_INT4R, N, want), 1.2,
			 "cache of int4r, one pass");
		close_to(run(&o.m, QWEN_W_INT4R, 1, want), 1.2,
			 "token by token");
	}
	on_close(&o, "caches");
	free(want);
	ref_close(&r);
}

static void test_stored(const char *dir)
{
	struct ref r = { 0 };
	struct on o;

	make_model(dir, QWEN_W_BF16, false, false);
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	if (ok(on_open(&o, dir, false, 0), "an untied model of bf16"))
		close_to(run(&o.m, QWEN_W_F32, 7, want), 1e-4,
			 "with the weights that it has");
	on_close(&o, "untied");
	free(want);
	ref_close(&r);
}

/* A context that is split over groups, reached by a long prompt. */
static void test_long(const char *dir, enum qwen_weights cache, double bound)
{
	enum { LONG = 301 };
	struct qwen_shape shape = { 1, 600, LONG, qwen_both(cache), NULL, 0 };
	struct qwen_token t[LONG];
	uint32_t id[LONG];
	struct err e = { 0 };
	struct ref r = { 0 };
	struct on o;

	for (uint32_t i = 0; i < LONG; i++) {
		id[i] = (i * i * 13 + 7 * i + 5) % 512;
		t[i] = (struct qwen_token){ .id = id[i] };
	}
	ref_open(&r, dir);
	double *want = ref_logits(&r, id, LONG);
	if (!ok(on_open(&o, dir, false, 0), "a model for a long text"))
		return;
	struct qwen_state *s = qwen_state_new(&o.m, &shape, &e);
	ok(qwen_forward(s, t, LONG - 1, &e), "a prompt of %d", LONG - 1);
	t[LONG - 1].logits = true;
	ok(qwen_forward(s, t + LONG - 1, 1, &e), "and one more token");
	close_to(worst(qwen_logits(s, 0), want + (LONG - 1) * 512, 512), bound,
		 "attention in splits");
	qwen_state_free(s);
	on_close(&o, "long");
	free(want);
	ref_close(&r);
}

/*
 * Two sequences, interleaved, then a cut: as each alone on the CPU.  With bytes
 * the last bit of a sum may decide to which side a key's element is rounded,
 * and with int8 the CPU alone rounds queries to 8 bits.
 */
static void test_batch(const char *dir, enum qwen_weights cache, double bound)
{
	struct qwen_shape shape = { 2, 64, 2 * N, qwen_both(cache), NULL, 0 };
	struct qwen_load how = { 0 };
	struct qwen_token t[2 * N];
	struct qwen_model cpu;
	struct err e = { 0 };
	double most = 0;
	struct on o;

	watched = true;
	for (uint32_t i = 0; i < N; i++) {
		t[2 * i] = token(ids[i], 0);
		t[2 * i + 1] = token(ids[N - 1 - i], 1);
	}
	ok(qwen_model_load(&cpu, dir, &how, threads, &e) &&
	   on_open(&o, dir, false, 0), "a model on both backends");
	struct qwen_state *a = qwen_state_new(&cpu, &shape, &e);
	struct qwen_state *b = qwen_state_new(&o.m, &shape, &e);
	for (int round = 0; round < 2; round++) {
		ok(qwen_forward(a, t, 2 * N, &e) &&
		   qwen_forward(b, t, 2 * N, &e), "two sequences in one pass");
		for (uint32_t i = 0; i < 2 * N; i++)
			for (uint32_t k = 0; k < 512; k++)
				most = fmax(most, fabs(qwen_logits(a, i)[k] -
						       qwen_logits(b, i)[k]));
		for (uint32_t q = 0; q < 2; q++) {
			qwen_state_truncate(a, q, 9 * q);
			qwen_state_truncate(b, q, 9 * q);
		}
	}
	close_to(most, bound, "a batch is as on the CPU");
	qwen_state_free(a);
	qwen_state_free(b);
	qwen_model_close(&cpu);
	on_close(&o, "batch");
}

/* 40 tokens, each the best after the last; returns a hash of them. */
static uint64_t greedy(const struct qwen_model *m, enum qwen_weights cache,
		       struct qwen_counts *c)
{
	struct qwen_shape shape = { 1, 64, 4, qwen_both(cache), NULL, 0 };
	struct qwen_token t[4] = { { .id = 1 }, { .id = 2 },
				   { .id = 3, .best = true } };
	struct qwen_counts before;
	struct err e = { 0 };
	uint64_t hash = 0;
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	ok(qwen_forward(s, t, 3, &e), "a prompt of three");
	t[0].id = qwen_argmax(s, 2);
	t[0].best = true;
	qwen_state_counts(s, &before);
	for (int i = 0; i < 40; i++) {
		hash = hash * 1000003 + t[0].id;
		if (!qwen_forward(s, t, 1, &e))
			diag("%s", e.msg);
		t[0].id = qwen_argmax(s, 0);
	}
	qwen_state_counts(s, c);
	c->packets -= before.packets;
	c->copies -= before.copies;
	c->copied_bytes -= before.copied_bytes;
	qwen_state_free(s);
	return hash;
}

static void test_greedy(const char *dir, enum qwen_weights cache)
{
	struct qwen_load how = { 0 };
	struct qwen_counts c, none;
	struct qwen_model cpu;
	struct err e = { 0 };
	struct on o;

	watched = false;
	ok(qwen_model_load(&cpu, dir, &how, threads, &e) &&
	   on_open(&o, dir, false, 0), "a model on both backends");
	is_u64(greedy(&o.m, cache, &c), greedy(&cpu, cache, &none),
	       "greedy tokens are the same on both, cache of %s",
	       qwen_weights_name(cache));
	/* Embedding, five for each layer, logits, argmax. */
	is_u64(c.packets, 40 * (5 * cpu.config.layers + 3),
	       "five packets for a layer");
	is_u64(c.copies, 40 * 2, "two copies for a token");
	is_u64(c.copied_bytes, 40 * (5 + 1) * 4, "of six words");
	is_u64(none.packets, 0, "the CPU has no packets");
	qwen_model_close(&cpu);
	on_close(&o, "greedy");
}

/* A hash of the 20 best tokens behind ids[0..N-1), fed in pieces. */
static uint64_t behind_prompt(const struct qwen_model *m, uint32_t chunk)
{
	struct qwen_shape shape = { 1, 64, chunk, qwen_both(QWEN_W_F32), NULL, 0 };
	struct qwen_token t[N];
	struct err e = { 0 };
	uint32_t at, n = 0;
	uint64_t hash = 0;
	bool good = true;
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	for (at = 0; s && good && at < N - 1; at += n) {
		n = at + chunk < N - 1 ? chunk : N - 1 - at;
		for (uint32_t i = 0; i < n; i++)
			t[i] = token(ids[at + i], 0);
		good = qwen_forward(s, t, n, &e);
	}
	for (int i = 0; s && good && i < 20; i++) {
		t[0] = token(qwen_argmax(s, n - 1), 0);
		hash = hash * 1000003 + t[0].id;
		n = 1;
		good = qwen_forward(s, t, 1, &e);
	}
	if (!s || !good)
		diag("%s", e.msg);
	qwen_state_free(s);
	return hash;
}

/* Tiles of integers say the same as the CPU, and as weights that stream. */
static void test_greedy_tiles(const char *dir)
{
	watched = false;
	for (int w = QWEN_W_INT8; w <= QWEN_W_INT4; w++) {
		const char *name = qwen_weights_name((enum qwen_weights)w);
		struct qwen_load how = { .convert = true,
					 .weights = (enum qwen_weights)w };
		struct qwen_model cpu;
		struct err e = { 0 };
		struct on o;

		if (!ok(qwen_model_load(&cpu, dir, &how, threads, &e) &&
			on_open(&o, dir, true, (enum qwen_weights)w),
			"%s on both backends", name))
			continue;
		uint64_t tiles = behind_prompt(&o.m, N);
		is_u64(tiles, behind_prompt(&o.m, 5),
		       "%s: tokens behind tiles and behind streams", name);
		is_u64(tiles, behind_prompt(&cpu, N),
		       "%s: greedy tokens are the same on both", name);
		qwen_model_close(&cpu);
		on_close(&o, name);
	}
}

/* What the second start takes from the cache the first has compiled. */
static void test_starts(const char *dir)
{
	struct qwen_shape shape = { 4, 64, N, qwen_both(QWEN_W_F16), NULL, 0 };
	struct err e = { 0 };
	char cache[64];

	watched = false;
	snprintf(cache, sizeof(cache), "%s/cache", root);
	setenv("T0_CACHE", cache, 1);
	for (int turn = 0; turn < 2; turn++) {
		struct qwen_token t[N];
		struct on o;

		ok(on_open(&o, dir, true, QWEN_W_BF16), "a start");
		struct qwen_state *s = qwen_state_new(&o.m, &shape, &e);
		for (uint32_t i = 0; i < N; i++)
			t[i] = token(ids[i], 0);
		bool good = qwen_forward(s, t, N, &e);
		for (uint32_t i = 0; i < 4; i++)
			t[i] = token(ids[i], i);
		ok(good && qwen_forward(s, t, 4, &e), "a prompt, and a batch");
		const struct gpu_team *team = o.m.device;
		const struct gpu *g = team->device[0];
		ok(turn ? !g->card.objects.compiled :
			  g->card.objects.compiled > 0,
		   "%s: %u objects are compiled", turn ? "second" : "first",
		   g->card.objects.compiled);
		qwen_state_free(s);
		on_close(&o, "start");
	}
	unsetenv("T0_CACHE");
}

static _Atomic int stop;

static void test_refuses(const char *dir)
{
	const struct qwen_kinds apart = { QWEN_W_INT4, QWEN_W_F16 };
	struct qwen_shape shape = { 1, 8, 4, apart, &stop, 0 };
	struct qwen_load how = { .backend = &qwen_gpu, .device = "kfd:99" };
	struct qwen_token t = token(3, 0);
	struct qwen_model m;
	struct err e = { 0 };
	struct on o;

	ok(!qwen_model_load(&m, dir, &how, threads, &e),
	   "a device that is not there is an error");
	ok(on_open(&o, dir, false, 0), "a model");
	e = (struct err){ 0 };
	ok(!qwen_state_new(&o.m, &shape, &e) && e.code == ERR_UNSUPPORTED,
	   "a cache of two types is refused");
	shape.cache = qwen_both(QWEN_W_F16);
	struct qwen_state *s = qwen_state_new(&o.m, &shape, &e);
	stop = 1;
	e = (struct err){ 0 };
	ok(!qwen_forward(s, &t, 1, &e) && e.code == ERR_STOPPED,
	   "a signal ends a pass");
	is_u64(qwen_state_length(s, 0), 0, "which never was");
	stop = 0;
	ok(qwen_forward(s, &t, 1, &e), "afterwards it goes on");
	qwen_state_free(s);
	on_close(&o, "refusals");
}

int main(void)
{
	struct err e = { 0 };
	char dir[64], untied[64], wide[64];

	if (!mkdtemp(root))
		return 2;
	for (uint32_t i = 0; i < N; i++)
		ids[i] = (i * i * 37 + 11 * i + 3) % 512;
	threads = threads_new(2, &e);
	snprintf(dir, sizeof(dir), "%s/f32", root);
	snprintf(untied, sizeof(untied), "%s/bf16", root);
	snprintf(wide, sizeof(wide), "%s/wide", root);
	make_model(dir, QWEN_W_F32, true, false);
	test_weights(dir);
	test_own(wide);
	test_caches(dir);
	test_stored(untied);
	test_long(dir, QWEN_W_F32, 1e-4);
	test_long(dir, QWEN_W_INT8, 8e-2);
	test_long(dir, QWEN_W_F8, 0.5);
	test_long(dir, QWEN_W_INT4R, 1);
	test_batch(dir, QWEN_W_F32, 1e-4);
	test_batch(dir, QWEN_W_F8, 0.1);
	if (getenv("T0_SLOW")) {
		test_batch(dir, QWEN_W_INT8, 1e-2);
		test_batch(dir, QWEN_W_INT4R, 0.2);
	}
	test_greedy(dir, QWEN_W_F32);
	test_greedy(dir, QWEN_W_F16);
	test_greedy_tiles(dir);
	test_starts(dir);
	test_refuses(dir);
	threads_free(threads);
	char cmd[64];
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", root);
	ok(system(cmd) == 0, "the folder goes");
	return plan_done();
}
