/*
 * How fast products of one token read weights of every type: as a share of what
 * memory gives, both measured by turns, and of what the same instructions do
 * with weights in a cache.
 *
 *	weights [TYPE [THREADS]]
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "autotune/cpu/gemm.h"
#include "engine/cpu/cpu.h"
#include "results/stats/stats.h"
#include "tests/bench/rows.h"

enum {
	ROUNDS = 9,
	COLS = 1024,
	MEMORY_BYTES = 192 << 20,
	CACHE_BYTES = 192 << 10, /* of each thread */
	DEALT_ROWS = 64,
};

struct bench {
	struct bench_rows rows;
	unsigned rounds, n_threads;
	struct threads *threads;
	const struct qwen_kernels *k;
	/* One token: as it is, as bf16, as bytes. */
	float x[COLS];
	uint16_t pairs[COLS];
	struct qwen_quants quants;
	/* The product at hand. */
	const struct qwen_matrix *m;
	unsigned times; /* that each thread does all of it; 0: it is shared */
	float *y;	/* [threads][rows] */
};

static uint64_t row_bytes(enum qwen_weights w)
{
	const struct qwen_matrix row = { .type = w, .rows = 1, .cols = COLS };

	return qwen_matrix_bytes(&row);
}

static void multiply_rows(const struct bench *b, size_t r0, size_t r1, float *y)
{
	const struct qwen_matrix *m = b->m;
	const uint32_t from = (uint32_t)r0, to = (uint32_t)r1;

	if (qwen_is_integer(m->type))
		b->k->product_int(m, from, to, &b->quants, 1, y, m->rows,
				  false);
	else if (m->type == QWEN_W_BF16 && b->k->product_pairs &&
		 cpu_gemm_may(CPU_LEVEL_BF16))
		b->k->product_pairs(m, from, to, b->pairs, COLS, 1, y, m->rows,
				    false);
	else
		b->k->product(m, from, to, b->x, COLS, 1, y, m->rows, false);
}

static void multiply_part(void *ctx, struct threads *t, unsigned thread)
{
	const struct bench *b = ctx;
	struct threads_deal d;
	size_t from, to;

	for (unsigned i = 0; i < b->times; i++)
		multiply_rows(b, 0, b->m->rows,
			      b->y + (size_t)thread * b->m->rows);
	if (b->times)
		return;
	threads_deal(&d, t, thread, b->m->rows, DEALT_ROWS);
	while (threads_take(&d, &from, &to))
		multiply_rows(b, from, to, b->y);
}

/* Bytes of weights a second, of one product or `times` of each thread. */
static double product_rate(struct bench *b, const struct qwen_matrix *m,
			   unsigned times)
{
	const uint64_t bytes = qwen_matrix_bytes(m);
	uint64_t from = time_mono_ns();

	b->m = m;
	b->times = times;
	threads_run(b->threads, multiply_part, b);
	return (double)bytes * (times ? times * b->n_threads : 1) /
	       ((double)(time_mono_ns() - from) * 1e-9);
}

static void report_type(struct bench *b, const char *type, const double *rate,
			const double *share, const double *cached)
{
	struct bench_rows *r = &b->rows;
	char params[96];

	res_params(params, sizeof(params), "weights:s threads:u", type,
		   b->n_threads);
	bench_case(r, "product in cache", params);
	const double most = bench_rate(r, "B/s", cached, b->rounds);
	bench_case(r, "product", params);
	const double v = bench_rate(r, "B/s", rate, b->rounds);
	const struct res_interval p = res_median(share, b->rounds);
	bench_ratio(r, "memory bandwidth", RES_HIGHER, share, b->rounds);
	printf("%-8s %u thread%s %7.2f GB/s, of memory %5.1f %% [%.1f %.1f], "
	       "in a cache %7.2f GB/s, of that %5.1f %%\n",
	       type, b->n_threads, b->n_threads > 1 ? "s" : " ", v * 1e-9,
	       100 * p.value, 100 * p.lo, 100 * p.hi, most * 1e-9,
	       100 * bench_ratio_one(r, "product in cache", RES_HIGHER,
				     v / most));
	fflush(stdout);
}

/* `data` is MEMORY_BYTES of weights, and scales behind them. */
static void bench_type(struct bench *b, enum qwen_weights w,
		       const uint8_t *data, struct qwen_roofline *peak)
{
	const uint64_t row = row_bytes(w);
	struct qwen_matrix all = { .type = w,
				   .rows = (uint32_t)(MEMORY_BYTES / row),
				   .cols = COLS,
				   .data = data };
	double rate[ROUNDS], share[ROUNDS], cached[ROUNDS];

	if (qwen_is_integer(w) && !qwen_is_block(w))
		all.scale = (const uint16_t *)(data + MEMORY_BYTES);
	struct qwen_matrix few = all;
	few.rows = (uint32_t)(CACHE_BYTES / row);
	b->y = xcalloc(all.rows > b->n_threads * few.rows ?
			       all.rows :
			       b->n_threads * few.rows,
		       sizeof(*b->y));
	product_rate(b, &all, 0);
	for (unsigned i = 0; i < b->rounds; i++) {
		const double before = qwen_roofline_read(peak);
		rate[i] = product_rate(b, &all, 0);
		share[i] = 2 * rate[i] / (before + qwen_roofline_read(peak));
		product_rate(b, &few, 1);
		cached[i] = product_rate(b, &few, 256);
	}
	report_type(b, qwen_weights_name(w), rate, share, cached);
	free(b->y);
}

/* All types, or one. */
static bool bench_types(struct bench *b, enum qwen_weights only,
			const uint8_t *data, struct err *e)
{
	struct qwen_roofline *peak = NULL;

	b->threads = threads_new(b->n_threads, e);
	if (b->threads)
		peak = qwen_roofline_new(b->threads, b->k, MEMORY_BYTES, e);
	for (int w = 0; w < QWEN_WEIGHTS && peak; w++)
		if (only == QWEN_WEIGHTS || (int)only == w)
			bench_type(b, (enum qwen_weights)w, data, peak);
	const bool good = peak != NULL;
	qwen_roofline_free(peak);
	threads_free(b->threads);
	return good;
}

static void inputs_init(struct bench *b)
{
	void *mem = xaligned(64, qwen_quants_place(&b->quants, COLS, NULL));

	memset(mem, 0, qwen_quants_place(&b->quants, COLS, mem));
	for (int i = 0; i < COLS; i++)
		b->x[i] = (float)(i % 7) - 3;
	b->k->quantize(b->x, COLS, &b->quants);
	b->k->narrow(QWEN_W_BF16, b->x, COLS, b->pairs);
}

int main(int argc, char **argv)
{
	struct bench b = { .rounds = bench_rounds(ROUNDS),
			   .k = qwen_kernels_best() };
	const size_t bytes = MEMORY_BYTES + MEMORY_BYTES / 8;
	uint8_t *data = xaligned(2 << 20, bytes);
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	enum qwen_weights only = QWEN_WEIGHTS;
	struct err e = { 0 };

	bench_open(&b.rows, "weights", argc, argv);
	bool good = argc < 2 || qwen_weights_parse(argv[1], &only, &e);
	inputs_init(&b);
	madvise(data, bytes, MADV_HUGEPAGE);
	memset(data, 0x33, bytes);
	for (b.n_threads = 1; good && b.n_threads <= 2 && b.n_threads <= cpus;
	     b.n_threads++)
		if (argc < 3 || b.n_threads == (unsigned)atoi(argv[2]))
			good = bench_types(&b, only, data, &e);
	free(b.quants.q);
	free(data);
	return bench_close(&b.rows, good, &e);
}
