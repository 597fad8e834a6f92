/*
 * How fast the engine runs a model of the 0.6B shape: decoding as a share of
 * the memory bandwidth, a prompt of 512 as a share of what the best unit for
 * the weights' type does with the same threads, both measured in turn with what
 * is compared with them.  PHASE is decode, prefill or loading.  Loading is
 * decoding with weights as the file has them, as they lie without an option by
 * turns with --copy.
 */
#include "autotune/cpu/gemm.h"
#include "engine/cpu/cpu.h"
#include "results/stats/stats.h"
#include "tests/bench/models.h"

enum { ROUNDS = 6, DECODE = 8, PREFILL = 512, READS = 4 };

struct series {
	unsigned n;	      /* rounds */
	double ours[ROUNDS];  /* tokens per second */
	double limit[ROUNDS]; /* in the unit of the limit */
	double work[ROUNDS];  /* that a token takes of it */
};

static double seconds_since(uint64_t from)
{
	return (double)(time_mono_ns() - from) * 1e-9;
}

/* Seconds of one greedy token. */
static double decode_one(struct qwen_state *s, struct qwen_token *t)
{
	struct err e = { 0 };
	uint64_t from = time_mono_ns();

	if (!qwen_forward(s, t, 1, &e))
		BUG("%s", e.msg);
	t->id = qwen_argmax(s, 0);
	return seconds_since(from);
}

/*
 * Greedy tokens behind one, each in turn with a read of the limit's buffer:
 * what disturbs the machine disturbs both, and either finds the caches full of
 * the other's bytes.  A token reads the weights, and the keys and values of the
 * positions so far.
 */
static void decode(struct qwen_state *s, struct qwen_roofline *peak,
		   double bytes, struct series *d, int r)
{
	struct qwen_token t = { .id = 1, .best = true };
	double seconds = 0, reads = 0, cache = 0;

	qwen_state_truncate(s, 0, 0);
	decode_one(s, &t);
	for (uint32_t i = 0; i < DECODE; i++) {
		reads += 1 / qwen_roofline_read(peak);
		seconds += decode_one(s, &t);
		cache += (double)qwen_state_bytes(s) / PREFILL *
			 qwen_state_length(s, 0);
	}
	d->ours[r] = DECODE / seconds;
	d->limit[r] = DECODE / reads;
	d->work[r] = bytes + cache / DECODE;
}

static double prefill(struct qwen_state *s, const struct qwen_token *t)
{
	struct err e = { 0 };

	qwen_state_truncate(s, 0, 0);
	uint64_t from = time_mono_ns();
	if (!qwen_forward(s, t, PREFILL, &e))
		BUG("%s", e.msg);
	return seconds_since(from);
}

/* What is measured, and where it goes. */
/* `unit` of the limit; printed in 1e9 of it, as `shown`. */
static void report_line(struct bench_models *b, const char *what,
			const struct series *s, const char *unit,
			const char *shown, const char *limit)
{
	double rate[ROUNDS], share[ROUNDS];
	struct bench_rows *r = &b->rows;
	char params[96];

	for (unsigned i = 0; i < s->n; i++) {
		rate[i] = s->ours[i] * s->work[i];
		share[i] = rate[i] / s->limit[i];
	}
	res_params(params, sizeof(params), "weights:s threads:u", b->weights,
		   b->threads);
	bench_case(r, limit, params);
	const double most = bench_rate(r, unit, s->limit, s->n);
	bench_case(r, what, params);
	printf("%-5s %u thread%s %-8s %8.2f tok/s %8.2f of %8.2f %-7s ",
	       b->weights, b->threads, b->threads > 1 ? "s" : " ", what,
	       bench_rate(r, "token/s", s->ours, s->n),
	       res_median(rate, s->n).value * 1e-9, most * 1e-9, shown);
	struct res_interval p = res_median(share, s->n);
	printf("%5.1f %% [%.1f %.1f]\n",
	       100 * bench_ratio(r, limit, RES_HIGHER, share, s->n), 100 * p.lo,
	       100 * p.hi);
	fflush(stdout);
}

/* What the share of a prompt is a share of, and what its products run on. */
static void products_line(enum qwen_weights w)
{
	printf("      of the peak of %s\n", qwen_roofline_unit(w));
	fflush(stdout);
}

static void bench_decode(struct bench_models *b, const struct qwen_model *m,
			 struct qwen_state *s, struct qwen_roofline *peak)
{
	struct series d = { .n = b->rounds };

	for (unsigned r = 0; r < d.n; r++)
		decode(s, peak, (double)m->token_bytes, &d, (int)r);
	report_line(b, "decode", &d, "B/s", "GB/s", "memory bandwidth");
	printf("      the limit reads %s\n", qwen_roofline_pattern(peak));
}

static void bench_prefill(struct bench_models *b, const struct qwen_model *m,
			  struct qwen_state *s, struct qwen_roofline *peak)
{
	struct qwen_token t[PREFILL] = { { .id = 0 } };
	struct series p = { .n = b->rounds };

	for (uint32_t i = 0; i < PREFILL; i++)
		t[i] = (struct qwen_token){ .id = i * 7919 % m->config.vocab,
					    .best = i + 1 == PREFILL };
	/* The first pass is the first to write what passes share. */
	for (int r = -1; r < (int)p.n; r++) {
		double v[READS], seconds = prefill(s, t);
		if (r < 0)
			continue;
		for (int i = 0; i < READS; i++)
			v[i] = qwen_roofline_product(peak, m->layer[0].q.type);
		p.ours[r] = PREFILL / seconds;
		p.limit[r] = res_median(v, READS).value;
		p.work[r] = qwen_config_flop(&m->config, PREFILL) / PREFILL;
	}
	report_line(b, "prefill", &p, "FLOP/s", "GFLOP/s", "unit's peak");
	products_line(m->layer[0].q.type);
}

/* One phase, or both where none is named. */
static void bench_phases(struct bench_models *b, const struct qwen_model *m)
{
	struct qwen_shape shape = { .sequences = 1,
				    .positions = PREFILL,
				    .max_tokens = PREFILL };
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);
	struct qwen_roofline *peak =
		qwen_roofline_new(m->threads, m->kernels, m->token_bytes, &e);

	if (!s || !peak)
		BUG("%s", e.msg);
	if (!b->phase || !strcmp(b->phase, "decode"))
		bench_decode(b, m, s, peak);
	if (!b->phase || !strcmp(b->phase, "prefill"))
		bench_prefill(b, m, s, peak);
	qwen_roofline_free(peak);
	qwen_state_free(s);
}

/* ---- loading ---- */

enum way { PLAIN, COPIED, STILL, WAYS };

enum { TOKENS = 16 * ROUNDS };

/* Tokens per second, of one. */
static double decode_way(struct qwen_state *s)
{
	struct qwen_token t = { .id = 1, .best = true };

	qwen_state_truncate(s, 0, 0);
	return 1 / decode_one(s, &t);
}

/* The same weights in ways that they may lie, a token of each by turns. */
static void bench_loading(struct bench_models *b, const char *dir,
			  struct threads *threads)
{
	static const char *const name[WAYS] = { "default", "--copy", "mapped" };
	const struct qwen_shape shape = { .sequences = 1,
					  .positions = PREFILL,
					  .max_tokens = 1 };
	struct qwen_state *s[WAYS];
	struct qwen_model m[WAYS];
	double rate[WAYS][TOKENS], ratio[TOKENS];
	const unsigned n = TOKENS / ROUNDS * b->rounds;
	struct err e = { 0 };
	char params[96];

	for (int w = 0; w < WAYS; w++) {
		const struct qwen_load how = { .copy = w == COPIED,
					       .mapped = w == STILL };
		if (!qwen_model_load(&m[w], dir, &how, threads, &e) ||
		    !(s[w] = qwen_state_new(&m[w], &shape, &e)))
			BUG("%s", e.msg);
		qwen_settling_wait(m[w].settling);
		decode_way(s[w]);
	}
	for (unsigned r = 0; r < n; r++)
		for (int w = 0; w < WAYS; w++)
			rate[w][r] = decode_way(s[w]);
	for (int w = 0; w < WAYS; w++) {
		res_params(params, sizeof(params), "weights:s threads:u way:s",
			   qwen_weights_name(m[w].layer[0].q.type), b->threads,
			   name[w]);
		bench_case(&b->rows, "loading", params);
		for (unsigned r = 0; r < n; r++)
			ratio[r] = rate[w][r] / rate[COPIED][r];
		struct res_interval p = res_median(ratio, n);
		printf("%-5s %u thread%s %-8s %8.2f tok/s, %.3f of --copy [%.3f %.3f]\n",
		       qwen_weights_name(m[w].layer[0].q.type), b->threads,
		       b->threads > 1 ? "s" : " ", name[w],
		       bench_rate(&b->rows, "token/s", rate[w], n),
		       bench_ratio(&b->rows, "--copy", RES_HIGHER, ratio, n),
		       p.lo, p.hi);
		qwen_state_free(s[w]);
		qwen_model_close(&m[w]);
	}
	fflush(stdout);
}

static void load_and_bench(struct bench_models *b, const char *dir)
{
	const bool loading = b->phase && !strcmp(b->phase, "loading");
	struct qwen_load how = { .convert = true };
	struct err e = { 0 };
	struct threads *t = threads_new(b->threads, &e);
	struct qwen_model m;

	if (!t || !qwen_weights_parse(b->weights, &how.weights, &e))
		BUG("%s", e.msg);
	if (!loading) {
		if (!qwen_model_load(&m, dir, &how, t, &e))
			BUG("%s", e.msg);
		qwen_settling_wait(m.settling);
		bench_phases(b, &m);
		qwen_model_close(&m);
	}
	if (how.weights == QWEN_W_BF16 || loading)
		bench_loading(b, dir, t);
	threads_free(t);
}

int main(int argc, char **argv)
{
	struct bench_models b = { .rounds = bench_rounds(ROUNDS) };

	return bench_each(&b, "engine", argc, argv, load_and_bench);
}
