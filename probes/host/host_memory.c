/*
 * probes/host/host_memory.c - latency of the host's caches and memory.
 *
 * A pointer chase, by working set; host_stream.c has the bandwidth.  It visits
 * every cache line of the working set once per round, in one random cycle, so
 * that neither prefetchers nor the order of pages help.  Its memory asks for
 * huge pages: with 4 KiB pages the larger working sets measure page walks as
 * well, and those are shown as a column of their own.
 */
#include <errno.h>
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "probes/host/host.h"

#define LINE	      64
#define MIN_BYTES     4096
#define MAX_BYTES     (1ull << 30)
#define QUICK_BYTES   (64ull << 20)
#define SMALL_PAGES_MAX (64ull << 20) /* measured with 4 KiB pages, too */
#define CHECK_MAX     (64ull << 20)   /* every step of the cycle is checked */
#define STREAM_MAX    (256ull << 20)
/*
 * Everything is measured in passes: what others do to the caches meanwhile is
 * then in the spread of every figure.  Setting up large sets takes long: once.
 */
#define SAMPLES	      9
#define PASSES_MAX    (64ull << 20)
#define PAIRS	      3
#define STEPS	      2048 /* of the shorter walk: below a millisecond */
#define HUGE_PAGE     (2ull << 20)

bool host_area_init(struct host_area *a, uint64_t bytes, bool huge,
		    struct err *e)
{
	uint8_t *p;

	a->bytes = bytes + HUGE_PAGE;
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
uint8_t *host_area_start(const struct host_area *a)
{
	return (uint8_t *)(((uint64_t)a->p + HUGE_PAGE - 1) &
			   ~(HUGE_PAGE - 1));
}

void host_area_fini(struct host_area *a)
{
	if (a->p)
		munmap(a->p, a->bytes);
	a->p = NULL;
}

/* ------------------------------------------------------------- latency -- */

struct line {
	struct line *next;
	uint64_t unused[7];
};

struct chase {
	struct line *line;
	uint64_t lines, bytes;
	struct line *at;
	double tsc_hz;
	struct probe_series series;
};

/* Every line once, in one random cycle. */
static void chase_link(struct chase *c, uint64_t seed)
{
	uint32_t *next = xmalloc(c->lines * sizeof(*next));

	probe_random_cycle(next, (uint32_t)c->lines, seed);
	for (uint64_t i = 0; i < c->lines; i++)
		c->line[i] = (struct line){ .next = &c->line[next[i]] };
	c->at = c->line;
	free(next);
}

static struct line *walk_chain(struct line *p, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i += 8)
		p = p->next->next->next->next->next->next->next->next;
	return p;
}

/* A round of the cycle comes back to where it began, and not before. */
static bool chase_check(const struct chase *c)
{
	const struct line *p = c->line;
	const uint64_t n = c->bytes <= CHECK_MAX ? c->lines :
						   CHECK_MAX / LINE;

	for (uint64_t i = 1; i < n; i++) {
		p = p->next;
		if (p == c->line)
			return false;
	}
	return n < c->lines || p->next == c->line;
}

double host_thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* In nanoseconds; *cut when the thread was not running all the time. */
static double chase_time(struct chase *c, uint64_t steps, bool *cut)
{
	const double cpu = host_thread_ns();
	unsigned id;

	_mm_lfence();
	const uint64_t start = __builtin_ia32_rdtsc();
	_mm_lfence();
	c->at = walk_chain(c->at, steps);
	__asm__ volatile("" ::"r"(c->at));
	const uint64_t end = __builtin_ia32_rdtscp(&id);
	_mm_lfence();
	const double ns = (double)(end - start) * 1e9 / c->tsc_hz;
	*cut |= ns > (host_thread_ns() - cpu) * HOST_CUT_SHARE + HOST_CUT_NS;
	return ns;
}

/*
 * A pair is two walks, one of twice as many steps.  A set that fits into a
 * core's own caches is walked once before: others may have run in between.
 */
static bool read_chase(void *ctx, struct probe_pair *p, struct err *e)
{
	struct chase *c = ctx;

	(void)e;
	if (c->lines <= 4 * STEPS)
		c->at = walk_chain(c->at, c->lines & ~7ull);
	p->before = p->after = 1; /* memory has a clock of its own */
	p->shorter = chase_time(c, STEPS, &p->cut);
	p->longer = chase_time(c, 2 * STEPS, &p->cut);
	p->copies = STEPS;
	return true;
}

/* More samples of `s`: all of them, or those of one pass. */
bool host_measure(struct host_session *h, struct probe_series *s, bool once,
		  struct err *e)
{
	const size_t all = h->o->samples ? h->o->samples : SAMPLES;
	const struct probe_plan plan = {
		.samples = once ? all : (all + HOST_PASSES - 1) / HOST_PASSES,
		.pairs = PAIRS,
		.seed = h->o->seed,
		.stop = h->o->stop
	};

	if (s->n + plan.samples > PROBE_SAMPLES_MAX)
		return true;
	s->gave_up = false;
	return probe_measure(&plan, &s, 1, e);
}

/* One pass over one working set. */
static bool chase_pass(struct host_session *h, struct chase *c,
		       const struct host_area *a, uint64_t bytes, struct err *e)
{
	struct probe_series *s = &c->series;

	c->bytes = bytes;
	c->line = (struct line *)host_area_start(a);
	c->lines = bytes / LINE;
	c->tsc_hz = (double)h->cpu.tsc_hz;
	s->name = "chase";
	s->read = read_chase;
	s->ctx = c;
	chase_link(c, h->o->seed + bytes);
	if (chase_check(c))
		return host_measure(h, s, bytes > PASSES_MAX, e);
	s->rejected[PROBE_PAIR_VALUE]++;
	return true;
}

static bool store_latency(struct host_session *h, const struct chase *c,
			  bool huge, struct err *e)
{
	struct probe_series s = c->series;
	char params[64];

	for (size_t i = 0; i < s.n; i++)
		s.v[i] *= 1e-9;
	res_params(params, sizeof(params), "bytes:U", (uint64_t)c->bytes);
	return host_store(h, "memory", huge ? "chase" : "chase, 4 KiB pages",
			  params, "latency", "s", &s, NAN, e);
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

/* In half steps of powers of two up to 16 MiB: 4, 6, 8, 12 KiB ... */
static size_t list_sizes(uint64_t max, uint64_t out[64])
{
	size_t n = 0;

	for (uint64_t b = MIN_BYTES; b <= max && n < 62; b *= 2) {
		out[n++] = b;
		if (b + b / 2 <= max && b < 16ull << 20)
			out[n++] = b + b / 2;
	}
	return n;
}

static double latency_at(const struct host_chase *c, size_t n, uint64_t bytes)
{
	for (size_t i = n; i-- > 0;)
		if (c[i].bytes <= bytes)
			return c[i].ns;
	return NAN;
}

/* Is memory beyond a cache clearly slower than what is in it? */
static void say_cache(const struct host_cpu *cpu, int level,
		      const struct host_chase *c, size_t n)
{
	const uint64_t size = cpu->cache_bytes[level];
	const double in = latency_at(c, n, size / 2);

	const double out = latency_at(c, n, 2 * size);
	struct buf text = { 0 };

	buf_printf(&text, "t0-probe: L%d, ", level + 1);
	unit_print(&text, (double)size, "B");
	buf_printf(&text, " by CPUID: %.2f ns in half of it", in);
	if (!size || c[n - 1].bytes < 2 * size)
		buf_adds(&text, "; twice its size was not measured");
	else
		buf_printf(&text, ", %.2f ns in twice its size: %s", out,
			   out > 1.4 * in	? "a step" :
			   cpu->virtual_machine ? "no step (a virtual "
						  "machine's share of it may "
						  "be smaller)" :
						  "no step");
	fold_printf(stderr, 2, "%s\n", text.data);
	buf_fini(&text);
}

static void say_steps(struct host_session *h, const struct host_chase *c,
		      size_t n)
{
	uint64_t at[8];
	double ns[8];

	if (h->o->quiet || !n)
		return;
	const int found = host_plateaus(c, n, at, ns, 8);
	for (int i = 0; i < found; i++) {
		struct buf size = { 0 };

		unit_print(&size, (double)at[i], "B");
		fprintf(stderr, "t0-probe: plateau %d: %.2f ns up to %s\n",
			i + 1, ns[i], size.data);
		buf_fini(&size);
	}
	for (int i = 0; i < h->cpu.n_caches; i++)
		say_cache(&h->cpu, i, c, n);
}

/* With huge pages and without. */
struct point {
	struct chase chase[2];
};

static bool chase_passes(struct host_session *h, const uint64_t *size, size_t n,
			 struct point *p, struct err *e)
{
	struct host_area a[2] = { { 0 }, { 0 } };
	const uint64_t small = size[n - 1] < SMALL_PAGES_MAX ? size[n - 1] :
							       SMALL_PAGES_MAX;
	bool good = host_area_init(&a[0], size[n - 1], true, e) &&
		    host_area_init(&a[1], small, false, e);

	for (int pass = 0; pass < HOST_PASSES; pass++)
		for (size_t i = 0; i < n && good && !*h->o->stop; i++) {
			if (pass && size[i] > PASSES_MAX)
				continue;
			good = chase_pass(h, &p[i].chase[0], &a[0], size[i], e);
			if (good && size[i] <= small)
				good = chase_pass(h, &p[i].chase[1], &a[1],
						  size[i], e);
		}
	host_area_fini(&a[0]);
	host_area_fini(&a[1]);
	return good;
}

static bool latency_row(struct host_session *h, const struct point *p,
			struct err *e)
{
	struct table *t = &h->table;
	const struct chase *c = &p->chase[0];
	bool good = true;

	table_row(t);
	probe_bytes_cell(h->o, t, 0, c->bytes);
	table_cell(t, 1, "latency");
	table_cell(t, 2, "1");
	table_cell(t, 4, "ns");
	for (int k = 0; k < 2 && good; k++) {
		if (!p->chase[k].series.n)
			continue;
		table_cell(t, k ? 5 : 3, "%.3f",
			   probe_series_median(&p->chase[k].series).value);
		good = store_latency(h, &p->chase[k], !k, e);
	}
	probe_rejects_add(&h->rejects, &c->series, t);
	return good;
}

static bool measure_latencies(struct host_session *h, const uint64_t *size,
			      size_t n, struct err *e)
{
	struct host_chase curve[64] = { { 0 } };
	struct point *p = xcalloc(n, sizeof(*p));
	bool good = chase_passes(h, size, n, p, e);
	size_t done = 0;

	for (size_t i = 0; i < n && good; i++) {
		if (!p[i].chase[0].series.n)
			continue;
		curve[done++] = (struct host_chase){
			size[i],
			probe_series_median(&p[i].chase[0].series).value
		};
		good = latency_row(h, &p[i], e);
	}
	if (good)
		say_steps(h, curve, done);
	free(p);
	return good;
}

int host_memory(const struct probe_opts *o, struct err *e)
{
	struct host_session h;
	uint64_t size[64];
	const uint64_t max = o->max_bytes ? o->max_bytes :
			     o->quick	  ? QUICK_BYTES :
					    MAX_BYTES;
	const size_t n = list_sizes(max, size);
	bool good = host_begin(&h, o, "memory",
			       "#bytes,what,#threads,#value,unit,"
			       "#with_4KiB_pages,rejected", e);

	if (good && n < 2)
		good = err_set(e, ERR_USAGE, "--max-bytes %llu: wanted at "
			       "least 8192", (unsigned long long)max);
	good = good && measure_latencies(&h, size, n, e) &&
	       host_bandwidths(&h, max < STREAM_MAX ? max : STREAM_MAX, e) &&
	       host_again(&h, e);
	return host_end(&h, good, EXIT_YES, e);
}
