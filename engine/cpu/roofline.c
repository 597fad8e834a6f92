/*
 * engine/cpu/roofline.c - bandwidth and FLOP/s of this processor, measured.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "autotune/cpu/gemm.h"
#include "engine/cpu/cpu.h"

/* The buffer is read in blocks, each in streams side by side. */
#define BLOCK_BYTES ((size_t)2 << 20)

struct pattern {
	unsigned streams;
	size_t near_bytes, far_bytes;
};

struct qwen_roofline {
	struct threads *t;
	const struct qwen_kernels *k;
	uint8_t *data;
	size_t size_bytes;
	struct pattern pattern;
	char name[64];
	uint64_t rounds; /* of the multiply-adds */
	unsigned unit;	 /* that does them */
	uint64_t *sum;	 /* [threads]: of what was read */
	uint64_t *busy_ns; /* [threads]: the processor's time for that */
	double *flop;	 /* [threads] */
};

static void fill_part(void *ctx, struct threads *t, unsigned thread)
{
	struct qwen_roofline *p = ctx;
	size_t from, to;

	threads_part(t, thread, p->size_bytes, BLOCK_BYTES, &from, &to);
	memset(p->data + from, 1, to - from);
}

static void read_part(void *ctx, struct threads *t, unsigned thread)
{
	struct qwen_roofline *p = ctx;
	struct threads_deal d;
	size_t from, to;
	uint64_t sum = 0, since = time_thread_ns();

	threads_deal(&d, t, thread, p->size_bytes, BLOCK_BYTES);
	while (threads_take(&d, &from, &to))
		for (; from < to; from += BLOCK_BYTES)
			sum += p->k->read(p->data + from, BLOCK_BYTES,
					  p->pattern.streams,
					  p->pattern.near_bytes,
					  p->pattern.far_bytes);
	p->sum[thread] = sum;
	p->busy_ns[thread] = time_thread_ns() - since;
}

static void spin_part(void *ctx, struct threads *t, unsigned thread)
{
	struct qwen_roofline *p = ctx;

	(void)t;
	p->flop[thread] = cpu_gemm_spin(p->unit, p->rounds);
}

double qwen_roofline_read(struct qwen_roofline *p)
{
	uint64_t sum = 0, from = time_mono_ns();

	threads_run(p->t, read_part, p);
	double seconds = (double)(time_mono_ns() - from) * 1e-9;
	for (unsigned i = 0; i < threads_count(p->t); i++)
		sum += p->sum[i];
	if (sum != p->size_bytes / 8 * 0x0101010101010101)
		BUG("the yardstick of reads has not read everything");
	return (double)p->size_bytes / seconds;
}

static double flop_once(struct qwen_roofline *p, double *seconds)
{
	double flop = 0;
	uint64_t from = time_mono_ns();

	threads_run(p->t, spin_part, p);
	*seconds = (double)(time_mono_ns() - from) * 1e-9;
	for (unsigned i = 0; i < threads_count(p->t); i++)
		flop += p->flop[i];
	return flop / *seconds;
}

static unsigned unit_of(enum qwen_weights w)
{
	return cpu_gemm_best(w == QWEN_W_F32  ? CPU_GEMM_F32 :
			     w == QWEN_W_F16  ? CPU_GEMM_F16 :
			     w == QWEN_W_BF16 ? CPU_GEMM_BF16 :
						CPU_GEMM_INT8);
}

const char *qwen_roofline_unit(enum qwen_weights w)
{
	return cpu_gemm_unit(unit_of(w));
}

double qwen_roofline_product(struct qwen_roofline *p, enum qwen_weights w)
{
	double seconds, rate;

	p->unit = unit_of(w);
	rate = flop_once(p, &seconds);
	for (; seconds < 0.01; rate = flop_once(p, &seconds))
		p->rounds *= 2;
	return rate;
}

double qwen_roofline_fma(struct qwen_roofline *p)
{
	return qwen_roofline_product(p, QWEN_W_F32);
}

/* Bytes ahead into the first cache, and into the second. */
static const size_t ahead[][2] = { { 0, 0 },	 { 512, 0 },	{ 1024, 0 },
				   { 2048, 0 },	 { 0, 1024 },	{ 0, 6144 },
				   { 768, 3072 }, { 768, 4096 } };
#define STREAMS	 4 /* 1, 2, 4, 8 */
#define PATTERNS (STREAMS * ARRAY_SIZE(ahead))

#define ROUNDS	 4

/* Bytes of a processor's second, which other programs take none of. */
static double read_busy(struct qwen_roofline *p)
{
	uint64_t ns = 0;

	qwen_roofline_read(p);
	for (unsigned i = 0; i < threads_count(p->t); i++)
		ns += p->busy_ns[i];
	return (double)p->size_bytes / (double)ns;
}

/*
 * The fastest on average of some rounds, among those that one round shows to
 * be no slower than by a quarter.  Not the fastest ever: a lucky moment of a
 * slow pattern would make a low limit.
 */
static void pattern_choose(struct qwen_roofline *p)
{
	struct {
		struct pattern pattern;
		double first, total;
	} tried[PATTERNS] = { 0 }, *best = tried;
	double most = 0;

	for (size_t i = 0; i < PATTERNS * (1 + ROUNDS); i++) {
		size_t which = i % PATTERNS;
		const size_t *at = ahead[which / STREAMS];
		if (i >= PATTERNS && tried[which].first < 0.75 * most)
			continue;
		p->pattern = (struct pattern){ 1u << which % STREAMS, at[0],
					       at[1] };
		tried[which].pattern = p->pattern;
		double rate = read_busy(p);
		if (i < PATTERNS) {
			tried[which].first = rate;
			most = fmax(most, rate);
		} else {
			tried[which].total += rate;
		}
	}
	for (size_t i = 0; i < PATTERNS; i++)
		if (tried[i].total > best->total)
			best = &tried[i];
	p->pattern = best->pattern;
	snprintf(p->name, sizeof(p->name),
		 "%u stream%s, %zu and %zu bytes ahead", p->pattern.streams,
		 p->pattern.streams > 1 ? "s" : "", p->pattern.near_bytes,
		 p->pattern.far_bytes);
}

struct qwen_roofline *qwen_roofline_new(struct threads *t,
					const struct qwen_kernels *k,
					uint64_t size_bytes, struct err *e)
{
	struct qwen_roofline *p = xcalloc(1, sizeof(*p));

	p->t = t;
	p->k = k;
	p->rounds = 100000;
	p->size_bytes = (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES *
			BLOCK_BYTES;
	p->data = mmap(NULL, p->size_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->data == MAP_FAILED) {
		err_set(e, ERR_NOMEM, "no memory for %zu bytes to measure "
			"memory with", p->size_bytes);
		free(p);
		return NULL;
	}
	madvise(p->data, p->size_bytes, MADV_HUGEPAGE);
	p->sum = xcalloc(threads_count(t), sizeof(*p->sum));
	p->busy_ns = xcalloc(threads_count(t), sizeof(*p->busy_ns));
	p->flop = xcalloc(threads_count(t), sizeof(*p->flop));
	threads_run(t, fill_part, p);
	pattern_choose(p);
	return p;
}

void qwen_roofline_free(struct qwen_roofline *p)
{
	if (!p)
		return;
	munmap(p->data, p->size_bytes);
	free(p->sum);
	free(p->busy_ns);
	free(p->flop);
	free(p);
}

const char *qwen_roofline_pattern(const struct qwen_roofline *p)
{
	return p->name;
}
