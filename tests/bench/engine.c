/*
 * How fast the engine runs a model of the 0.6B shape: decoding as a share of
 * the memory bandwidth, a prompt of 512 as a share of the multiply-adds that
 * the same threads reach, both measured in turn with what is compared with
 * them.
 *
 *	tests/bench/engine [MODEL [WEIGHTS [THREADS [decode|prefill]]]]
 *
 * Without MODEL one is made, 1.2 GB in TMPDIR or /tmp, and removed afterwards.
 * Weights are copied into large pages; T0_BENCH_MAPPED=1 leaves them mapped.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/cpu/gemm.h"
#include "engine/cpu/cpu.h"
#include "engine/model/model.h"
#include "results/stats/stats.h"

enum { ROUNDS = 6, DECODE = 8, PREFILL = 512, READS = 4 };

struct series {
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

static void line(const char *weights, unsigned threads, const char *what,
		 const struct series *s, const char *unit)
{
	double rate[ROUNDS], percent[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		rate[r] = s->ours[r] * s->work[r];
		percent[r] = 100 * rate[r] / s->limit[r];
	}
	struct res_interval p = res_median(percent, ROUNDS);
	printf("%-5s %u thread%s %-8s %8.2f tok/s %8.2f of %8.2f %-7s "
	       "%5.1f %% [%.1f %.1f]\n",
	       weights, threads, threads > 1 ? "s" : " ", what,
	       res_median(s->ours, ROUNDS).value,
	       res_median(rate, ROUNDS).value * 1e-9,
	       res_median(s->limit, ROUNDS).value * 1e-9, unit, p.value, p.lo,
	       p.hi);
	fflush(stdout);
}

/* What the share of a prompt is a share of, and what its products run on. */
static void products_line(struct qwen_roofline *peak)
{
	double amx = qwen_roofline_amx(peak);

	printf("      of the FMA peak in f32; products in %s",
	       cpu_gemm_unit(cpu_gemm_level()));
	if (amx > 0)
		printf(", whose peak is %.0f GFLOP/s of bf16: 3 of them for "
		       "one of f32 with bf16 or integers, 6 for one of f32",
		       amx * 1e-9);
	printf("\n");
	fflush(stdout);
}

static void bench_decode(const struct qwen_model *m, const char *weights,
			 struct qwen_state *s, struct qwen_roofline *peak)
{
	struct series d;

	for (int r = 0; r < ROUNDS; r++)
		decode(s, peak, (double)m->token_bytes, &d, r);
	line(weights, threads_count(m->threads), "decode", &d, "GB/s");
	printf("      the limit reads %s\n", qwen_roofline_pattern(peak));
}

static void bench_prefill(const struct qwen_model *m, const char *weights,
			  struct qwen_state *s, struct qwen_roofline *peak)
{
	struct qwen_token t[PREFILL] = { { .id = 0 } };
	struct series p;

	for (uint32_t i = 0; i < PREFILL; i++)
		t[i] = (struct qwen_token){ .id = i * 7919 % m->config.vocab,
					    .best = i + 1 == PREFILL };
	/* The first pass is the first to write what passes share. */
	for (int r = -1; r < ROUNDS; r++) {
		double v[READS], seconds = prefill(s, t);
		if (r < 0)
			continue;
		for (int i = 0; i < READS; i++)
			v[i] = qwen_roofline_fma(peak);
		p.ours[r] = PREFILL / seconds;
		p.limit[r] = res_median(v, READS).value;
		p.work[r] = qwen_config_flop(&m->config, PREFILL) / PREFILL;
	}
	line(weights, threads_count(m->threads), "prefill", &p, "GFLOP/s");
	products_line(peak);
}

/* One phase, or both where none is named. */
static void bench(const struct qwen_model *m, const char *weights,
		  const char *phase)
{
	struct qwen_shape shape = { 1, PREFILL, PREFILL, QWEN_W_F32, NULL };
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);
	struct qwen_roofline *peak = qwen_roofline_new(m->threads, m->kernels,
						       m->token_bytes, &e);

	if (!s || !peak)
		BUG("%s", e.msg);
	if (!phase || !strcmp(phase, "decode"))
		bench_decode(m, weights, s, peak);
	if (!phase || !strcmp(phase, "prefill"))
		bench_prefill(m, weights, s, peak);
	qwen_roofline_free(peak);
	qwen_state_free(s);
}

static void one(const char *dir, const char *weights, unsigned n,
		const char *phase)
{
	struct qwen_load how = { .convert = true,
				 .copy = !getenv("T0_BENCH_MAPPED") };
	struct err e = { 0 };
	struct threads *t = threads_new(n, &e);
	struct qwen_model m;

	if (!t || !qwen_weights_parse(weights, &how.weights, &e) ||
	    !qwen_model_load(&m, dir, &how, t, &e))
		BUG("%s", e.msg);
	bench(&m, weights, phase);
	qwen_model_close(&m);
	threads_free(t);
}

static const char *made(char *dir, struct err *e)
{
	struct qwen_synthetic how = { .weights = QWEN_W_BF16, .seed = 1 };

	return qwen_shape_find("0.6b", &how.config, e) && mkdtemp(dir) &&
	       qwen_synthetic_write(dir, &how, e) ? dir : NULL;
}

int main(int argc, char **argv)
{
	static const char *const types[] = { "bf16", "int8", "int4" };
	const char *tmp = getenv("TMPDIR");
	char name[4096], remove[4200];
	struct err e = { 0 };

	snprintf(name, sizeof(name), "%s/t0-engine-XXXXXX", tmp ? tmp : "/tmp");
	const char *dir = argc > 1 ? argv[1] : made(name, &e);
	if (!dir)
		return err_report("bench-engine", &e);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	for (size_t w = 0; w < ARRAY_SIZE(types); w++) {
		if (argc > 2 && strcmp(argv[2], types[w]) != 0)
			continue;
		for (unsigned n = 1; n <= 2 && n <= cpus; n++)
			if (argc < 4 || n == (unsigned)atoi(argv[3]))
				one(dir, types[w], n,
				    argc > 4 ? argv[4] : NULL);
	}
	if (argc > 1)
		return 0;
	snprintf(remove, sizeof(remove), "rm -r '%s'", name);
	return system(remove) == 0 ? 0 : EXIT_TROUBLE;
}
