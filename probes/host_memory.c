/*
 * The host's caches and memory: latency by working set through a pointer
 * chase, bandwidth by working set and threads.
 *
 * The chase visits every cache line of the working set once per round, in one
 * random cycle, so that neither prefetchers nor the order of pages help.  Its
 * memory asks for huge pages: with 4 KiB pages the larger working sets measure
 * page walks as well, and those are shown as a column of their own.
 */
#include <errno.h>
#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/host.h"

#define LINE	      64
#define MIN_BYTES     4096
#define MAX_BYTES     (1ull << 30)
#define SMALL_PAGES_MAX (256ull << 20)
#define SAMPLES	      9
#define THREADS_MAX   64
#define STEPS_MIN     40000
#define HUGE	      (2ull << 20)

struct area {
	uint8_t *p;
	uint64_t bytes;
};

static bool area_init(struct area *a, uint64_t bytes, bool huge, struct err *e)
{
	uint8_t *p;

	a->bytes = bytes + HUGE;
	p = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return err_sys(e, ERR_NOMEM, errno, "mapping %llu bytes; try "
			       "a smaller --max-bytes",
			       (unsigned long long)a->bytes);
	madvise(p, a->bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	a->p = p;
	return true;
}

/* The first byte that a huge page can start at. */
static uint8_t *area_start(const struct area *a)
{
	return (uint8_t *)(((uint64_t)a->p + HUGE - 1) & ~(HUGE - 1));
}

static void area_fini(struct area *a)
{
	if (a->p)
		munmap(a->p, a->bytes);
	a->p = NULL;
}

/* ------------------------------------------------------------- latency -- */

struct line {
	struct line *next;
	uint64_t number; /* of the line, for the check */
	uint64_t fill[6];
};

struct chase {
	struct line *line;
	uint64_t lines, steps;
	struct line *at;
	uint64_t fastest;
	double tsc_hz;
	const volatile int *stop;
	struct micro_series series;
	uint64_t bytes;
};

/* Every line once, in one random cycle. */
static void chase_link(struct chase *c, uint64_t seed)
{
	uint32_t *next = xmalloc(c->lines * sizeof(*next));

	micro_cycle(next, (uint32_t)c->lines, seed);
	for (uint64_t i = 0; i < c->lines; i++) {
		c->line[i].next = &c->line[next[i]];
		c->line[i].number = i;
	}
	c->at = c->line;
	free(next);
}

static struct line *walk(struct line *p, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i += 8)
		p = p->next->next->next->next->next->next->next->next;
	return p;
}

/* A round of the cycle comes back to where it began, and not before. */
static bool chase_check(const struct chase *c)
{
	const struct line *p = c->line;

	for (uint64_t i = 1; i < c->lines; i++) {
		p = p->next;
		if (p == c->line)
			return false;
	}
	return p->next == c->line;
}

static uint64_t chase_time(struct chase *c, uint64_t steps)
{
	unsigned cpu;

	_mm_lfence();
	const uint64_t start = __builtin_ia32_rdtsc();
	_mm_lfence();
	c->at = walk(c->at, steps);
	__asm__ volatile("" ::"r"(c->at));
	const uint64_t end = __builtin_ia32_rdtscp(&cpu);
	_mm_lfence();
	return end - start;
}

/* A pair is two walks, one of twice as many steps; in nanoseconds. */
static bool read_chase(void *ctx, struct micro_pair *p, struct err *e)
{
	struct chase *c = ctx;
	const double ns = 1e9 / c->tsc_hz;

	(void)e;
	p->before = p->after = 1; /* memory has a clock of its own */
	p->shorter = (double)chase_time(c, c->steps) * ns;
	p->longer = (double)chase_time(c, 2 * c->steps) * ns;
	p->copies = (double)c->steps;
	return true;
}

static bool chase_measure(struct chase *c, struct host_session *h,
			  struct err *e)
{
	const struct micro_plan plan = { .samples = h->o->samples ?
							    h->o->samples :
							    SAMPLES,
					 .pairs = 3, .seed = h->o->seed,
					 .stop = h->o->stop };
	struct micro_series *s = &c->series;

	*s = (struct micro_series){ .name = "chase", .read = read_chase,
				    .ctx = c };
	if (!chase_check(c)) {
		s->rejected[MICRO_VALUE]++;
		return true;
	}
	walk(c->at, c->lines + c->steps);
	return micro_run(&plan, &s, 1, e);
}

static bool store_latency(struct host_session *h, const struct chase *c,
			  bool huge, struct err *e)
{
	struct micro_series s = c->series;
	char params[64];

	for (size_t i = 0; i < s.n; i++)
		s.v[i] *= 1e-9;
	snprintf(params, sizeof(params), "{\"bytes\":%llu}",
		 (unsigned long long)c->bytes);
	return host_store(h, "memory", huge ? "chase" : "chase, 4 KiB pages",
			  params, "latency", "s", &s, NAN, e);
}

static bool one_chase(struct host_session *h, struct chase *c,
		      const struct area *a, uint64_t bytes, bool huge,
		      struct err *e)
{
	c->bytes = bytes;
	c->line = (struct line *)area_start(a);
	c->lines = bytes / LINE;
	c->steps = c->lines < STEPS_MIN ? STEPS_MIN : c->lines;
	if (c->steps > 4 * STEPS_MIN)
		c->steps = 4 * STEPS_MIN;
	c->steps &= ~7ull;
	c->tsc_hz = (double)h->cpu.tsc_hz;
	chase_link(c, h->o->seed + bytes);
	return chase_measure(c, h, e) && store_latency(h, c, huge, e);
}

/* --------------------------------------------------------- cache steps -- */

int host_plateaus(const struct host_chase *c, size_t n, uint64_t *at,
		  double *ns, int max)
{
	int found = 0;

	for (size_t i = 0; i + 1 < n && found < max; i++) {
		if (c[i + 1].ns > c[i].ns * 1.12)
			continue;
		const double level = c[i].ns;
		const bool climbs = !found || level > ns[found - 1] * 1.4;
		size_t k = i;

		while (k + 1 < n && c[k + 1].ns < level * 1.12)
			k++;
		if (climbs)
			ns[found++] = level;
		at[found - 1] = c[k].bytes;
		i = k;
	}
	return found;
}

/* Sizes in half steps of powers of two: 4, 6, 8, 12, 16 KiB ... */
static size_t sizes(uint64_t max, uint64_t out[64])
{
	size_t n = 0;

	for (uint64_t b = MIN_BYTES; b <= max && n < 62; b *= 2) {
		out[n++] = b;
		if (b + b / 2 <= max)
			out[n++] = b + b / 2;
	}
	return n;
}

/* Of the latency at half of each cache, the next is clearly slower. */
static void say_steps(struct host_session *h, const struct host_chase *c,
		      size_t n)
{
	uint64_t at[8];
	double ns[8];
	const int found = host_plateaus(c, n, at, ns, 8);

	if (h->o->quiet)
		return;
	fprintf(stderr, "t0-probe: %d plateaus:", found);
	for (int i = 0; i < found; i++)
		fprintf(stderr, " %.1f ns up to %llu KiB%s", ns[i],
			(unsigned long long)at[i] / 1024,
			i + 1 < found ? "," : "\n");
	fprintf(stderr, "t0-probe: caches by CPUID:");
	for (int i = 0; i < h->cpu.n_caches; i++)
		fprintf(stderr, " L%d %llu KiB%s", i + 1,
			(unsigned long long)h->cpu.cache_bytes[i] / 1024,
			i + 1 < h->cpu.n_caches ? "," : "\n");
}

static bool latencies(struct host_session *h, const uint64_t *size, size_t n,
		      struct err *e)
{
	struct host_chase curve[64];
	struct area big = { 0 }, small = { 0 };
	struct chase *c = xcalloc(1, sizeof(*c));
	bool good = area_init(&big, size[n - 1], true, e) &&
		    area_init(&small, size[n - 1], false, e);
	size_t done = 0;

	for (size_t i = 0; i < n && good && !*h->o->stop; i++) {
		struct table *t = &h->table;

		good = one_chase(h, c, &big, size[i], true, e);
		if (!good || !c->series.n)
			break;
		const struct res_interval r = micro_result(&c->series);
		curve[done++] = (struct host_chase){ size[i], r.value };
		table_row(t);
		table_cell(t, 0, "%llu", (unsigned long long)size[i]);
		table_cell(t, 1, "latency");
		table_cell(t, 2, "1");
		table_cell(t, 3, "%.3f", r.value);
		table_cell(t, 4, "ns");
		if (size[i] > SMALL_PAGES_MAX)
			continue;
		good = one_chase(h, c, &small, size[i], false, e);
		if (good && c->series.n)
			table_cell(t, 5, "%.3f",
				   micro_result(&c->series).value);
	}
	if (good)
		say_steps(h, curve, done);
	area_fini(&big);
	area_fini(&small);
	free(c);
	return good;
}

/* ----------------------------------------------------------- bandwidth -- */

enum kind { READ, WRITE, COPY, KINDS };
static const char *const kind_name[KINDS] = { "read", "write", "copy" };

struct worker {
	pthread_t thread;
	pthread_barrier_t *start;
	enum kind kind;
	uint8_t *p;
	uint64_t bytes; /* of its part */
	int rounds;
	uint64_t from, to; /* ticks */
	uint64_t sum;	   /* of what was read, for the check */
};

/*
 * 16-byte operations in plain C; the compiler keeps them apart, and four sums
 * hide the additions.  Returns the sum of all 64-bit words.
 */
static uint64_t read_all(const uint8_t *p, uint64_t bytes)
{
	__m128i s[4] = { 0 };

	for (uint64_t i = 0; i < bytes; i += 64)
		for (int k = 0; k < 4; k++)
			s[k] = _mm_add_epi64(
				s[k], _mm_load_si128((const __m128i *)(p + i) +
						     k));
	s[0] = _mm_add_epi64(_mm_add_epi64(s[0], s[1]),
			     _mm_add_epi64(s[2], s[3]));
	return (uint64_t)_mm_cvtsi128_si64(s[0]) +
	       (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(s[0], s[0]));
}

/* The same with the registers that every processor since 2013 has. */
__attribute__((target("avx2"))) static uint64_t read_avx2(const uint8_t *p,
							   uint64_t bytes)
{
	__m256i s[4] = { 0 };
	uint64_t v[4];

	for (uint64_t i = 0; i + 128 <= bytes; i += 128)
		for (int k = 0; k < 4; k++)
			s[k] = _mm256_add_epi64(
				s[k],
				_mm256_load_si256((const __m256i *)(p + i) + k));
	s[0] = _mm256_add_epi64(_mm256_add_epi64(s[0], s[1]),
				_mm256_add_epi64(s[2], s[3]));
	_mm256_storeu_si256((__m256i *)v, s[0]);
	return v[0] + v[1] + v[2] + v[3];
}

static void once(struct worker *w)
{
	const uint64_t half = w->bytes / 2;

	if (w->kind == READ)
		w->sum = host_has(HOST_AVX2) ? read_avx2(w->p, w->bytes) :
					       read_all(w->p, w->bytes);
	else if (w->kind == WRITE)
		memset(w->p, 0x5a, w->bytes);
	else
		memcpy(w->p + half, w->p, half);
	__asm__ volatile("" ::: "memory");
}

static void *work(void *arg)
{
	struct worker *w = arg;

	once(w);
	pthread_barrier_wait(w->start);
	w->from = __builtin_ia32_rdtsc();
	for (int i = 0; i < w->rounds; i++)
		once(w);
	w->to = __builtin_ia32_rdtsc();
	return NULL;
}

struct stream {
	struct host_session *h;
	const struct area *area;
	enum kind kind;
	unsigned threads;
	uint64_t bytes; /* of all threads */
	bool right;
};

static bool values_right(const struct stream *s, const struct worker *w)
{
	const uint64_t word = 0x5a5a5a5a5a5a5a5aull;

	if (s->kind == READ)
		return w->sum == word * (w->bytes / 8);
	return w->p[0] == 0x5a && w->p[w->bytes - 1] == 0x5a &&
	       w->p[w->bytes / 2] == 0x5a;
}

/* Bytes per second of one go, all threads together. */
static bool stream_once(struct stream *s, double *bytes_s, struct err *e)
{
	struct worker w[THREADS_MAX];
	pthread_barrier_t start;
	uint64_t from = UINT64_MAX, to = 0;
	unsigned made = 0;
	const uint64_t part = s->bytes / s->threads & ~255ull;
	const int rounds = (int)((32ull << 20) / part) + 1;

	pthread_barrier_init(&start, NULL, s->threads);
	for (; made < s->threads; made++) {
		w[made] = (struct worker){ .start = &start, .kind = s->kind,
					   .p = area_start(s->area) +
						made * part,
					   .bytes = part, .rounds = rounds };
		if (made && pthread_create(&w[made].thread, NULL, work,
					   &w[made]))
			BUG("a thread could not be made");
	}
	work(&w[0]);
	for (unsigned i = 1; i < made; i++)
		pthread_join(w[i].thread, NULL);
	for (unsigned i = 0; i < made; i++) {
		from = w[i].from < from ? w[i].from : from;
		to = w[i].to > to ? w[i].to : to;
		s->right &= values_right(s, &w[i]);
	}
	pthread_barrier_destroy(&start);
	(void)e;
	*bytes_s = (double)part * s->threads * rounds *
		   (double)s->h->cpu.tsc_hz / (double)(to - from);
	return true;
}

static bool store_stream(struct stream *s, struct micro_series *m,
			 struct err *e)
{
	struct table *t = &s->h->table;
	const struct res_interval r = micro_result(m);
	char params[64];

	table_row(t);
	table_cell(t, 0, "%llu", (unsigned long long)s->bytes);
	table_cell(t, 1, "%s", kind_name[s->kind]);
	table_cell(t, 2, "%u", s->threads);
	table_cell(t, 3, "%.2f", r.value * 1e-9);
	table_cell(t, 4, "GB/s");
	snprintf(params, sizeof(params), "{\"bytes\":%llu,\"threads\":%u}",
		 (unsigned long long)s->bytes, s->threads);
	return host_store(s->h, "memory", kind_name[s->kind], params,
			  "bandwidth", "B/s", m, NAN, e);
}

static bool bandwidths(struct host_session *h, uint64_t max, struct err *e)
{
	struct area a = { 0 };
	const unsigned cpus = h->cpu.cpus < THREADS_MAX ? h->cpu.cpus :
							  THREADS_MAX;
	bool good = area_init(&a, max, true, e);

	if (good)
		memset(area_start(&a), 0x5a, max);
	for (uint64_t bytes = 16384; bytes <= max && good; bytes *= 4)
		for (unsigned v = 0; v < 2 * KINDS && good; v++) {
			struct stream s = { .h = h, .area = &a,
					    .kind = v % KINDS,
					    .threads = v < KINDS ? 1 : cpus,
					    .bytes = bytes, .right = true };
			struct micro_series m = { .name = "stream" };

			if (*h->o->stop || (v >= KINDS && cpus == 1))
				continue;
			for (m.n = 0; m.n < SAMPLES && good; m.n++)
				good = stream_once(&s, &m.v[m.n], e);
			m.rejected[MICRO_VALUE] = !s.right;
			good = good && store_stream(&s, &m, e);
		}
	area_fini(&a);
	return good;
}

int host_memory(const struct probe_opts *o, struct err *e)
{
	struct host_session h;
	uint64_t size[64];
	const uint64_t max = o->max_bytes ? o->max_bytes : MAX_BYTES;
	const size_t n = sizes(max, size);
	bool good = host_begin(&h, o, "memory",
			       "#bytes,what,#threads,#value,unit,"
			       "#with_4KiB_pages", e);

	if (good && n < 2)
		good = err_set(e, ERR_USAGE, "--max-bytes %llu: wanted at "
			       "least 8192", (unsigned long long)max);
	good = good && latencies(&h, size, n, e) &&
	       bandwidths(&h, size[n - 1] & ~65535ull, e) && host_again(&h, e);
	return host_end(&h, good, EXIT_YES, e);
}
