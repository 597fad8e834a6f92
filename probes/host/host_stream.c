/*
 * probes/host/host_stream.c - bandwidth of the host's caches and memory.
 */
#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "probes/host/host.h"

#define THREADS_MAX   64
#define WINDOW	      (2ull << 20) /* bytes of one timed go, all threads */

enum kind { READ, WRITE, COPY, KINDS };
static const char *const kind_name[KINDS] = { "read", "write", "copy" };

struct worker {
	pthread_t thread;
	atomic_uint *waiting; /* threads that are not ready yet */
	enum kind kind;
	uint8_t *p;
	uint64_t bytes; /* of its part */
	int rounds;
	uint64_t from, to; /* ticks */
	double cpu_ns;
	uint64_t sum; /* of what was read, for the check */
};

/*
 * The sum of all 64-bit words, in four parts so that additions do not wait for
 * each other; bytes is a multiple of 128.
 */
#define READ_ALL(name, target, vec, load, add, step)                       \
	target static uint64_t name(const uint8_t *p, uint64_t bytes)      \
	{                                                                  \
		vec a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };            \
		uint64_t sum = 0, word[sizeof(vec) / 8];                   \
                                                                           \
		for (uint64_t i = 0; i < bytes; i += 4 * step) {           \
			const vec *v = (const vec *)(p + i);               \
                                                                           \
			a = add(a, load(v));                               \
			b = add(b, load(v + 1));                           \
			c = add(c, load(v + 2));                           \
			d = add(d, load(v + 3));                           \
		}                                                          \
		a = add(add(a, b), add(c, d));                             \
		memcpy(word, &a, sizeof(word));                            \
		for (size_t i = 0; i < ARRAY_SIZE(word); i++)              \
			sum += word[i];                                    \
		return sum;                                                \
	}
READ_ALL(read_sse2, , __m128i, _mm_load_si128, _mm_add_epi64, 16)
READ_ALL(read_avx2, __attribute__((target("avx2"))), __m256i,
	 _mm256_load_si256, _mm256_add_epi64, 32)

static void stream_once(struct worker *w)
{
	const uint64_t half = w->bytes / 2;

	if (w->kind == READ)
		w->sum = host_has(HOST_AVX2) ? read_avx2(w->p, w->bytes) :
					       read_sse2(w->p, w->bytes);
	else if (w->kind == WRITE)
		memset(w->p, 0x5a, w->bytes);
	else
		memcpy(w->p + half, w->p, half);
	__asm__ volatile("" ::: "memory");
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	/* Spinning: whoever leaves this loop has a processor. */
	atomic_fetch_sub(w->waiting, 1);
	while (atomic_load(w->waiting))
		_mm_pause();
	const double cpu = host_thread_ns();
	w->from = __builtin_ia32_rdtsc();
	for (int i = 0; i < w->rounds; i++)
		stream_once(w);
	w->to = __builtin_ia32_rdtsc();
	w->cpu_ns = host_thread_ns() - cpu;
	return NULL;
}

struct stream {
	struct host_session *h;
	uint8_t *p;
	enum kind kind;
	unsigned threads;
	uint64_t bytes; /* of all threads */
	uint64_t at;	/* of the window, in a thread's part */
};

static bool value_right(const struct worker *w)
{
	const uint64_t word = 0x5a5a5a5a5a5a5a5aull;

	if (w->kind == READ)
		return w->sum == word * (w->bytes / 8);
	return w->p[0] == 0x5a && w->p[w->bytes - 1] == 0x5a &&
	       w->p[w->bytes / 2] == 0x5a;
}

static bool run_workers(struct worker *w, unsigned n, struct err *e)
{
	unsigned made = 1;
	int err = 0;

	for (; made < n && !err; made++)
		err = pthread_create(&w[made].thread, NULL, run_worker,
				     &w[made]);
	if (err) {
		/* Those that wait are not waited for: they go when we do. */
		atomic_store(w->waiting, 1);
		return err_sys(e, ERR_NOMEM, err, "thread %u of %u", made, n);
	}
	run_worker(&w[0]);
	for (unsigned i = 1; i < n; i++)
		pthread_join(w[i].thread, NULL);
	return true;
}

/*
 * One go: every thread goes over a window of its part, the next one each
 * time, or round and round a part that is smaller than the window.
 */
static bool read_stream(void *ctx, struct probe_pair *p, struct err *e)
{
	struct stream *s = ctx;
	struct worker w[THREADS_MAX];
	atomic_uint waiting = s->threads;
	uint64_t from = UINT64_MAX, to = 0;
	const double tick_ns = 1e9 / (double)s->h->cpu.tsc_hz;
	const uint64_t part = s->bytes / s->threads & ~255ull,
		       want = WINDOW / s->threads & ~255ull,
		       len = part < want ? part : want;

	if (s->at + len > part)
		s->at = 0;
	for (unsigned i = 0; i < s->threads; i++)
		w[i] = (struct worker){ .waiting = &waiting, .kind = s->kind,
					.p = s->p + i * part + s->at,
					.bytes = len,
					.rounds = (int)(want / len) };
	const bool good = run_workers(w, s->threads, e);
	for (unsigned i = 0; i < s->threads && good; i++) {
		from = w[i].from < from ? w[i].from : from;
		to = w[i].to > to ? w[i].to : to;
		p->wrong |= !value_right(&w[i]);
		p->cut |= (double)(w[i].to - w[i].from) * tick_ns >
			  w[i].cpu_ns * HOST_CUT_SHARE + HOST_CUT_NS;
	}
	/* And they must have run together. */
	p->cut |= (double)(to - from) >
		  1.1 * (double)(w[0].to - w[0].from) + HOST_CUT_NS;
	s->at += len;
	p->before = p->after = 1;
	p->longer = (double)(to - from) * tick_ns;
	p->copies = (double)len * (int)(want / len) * s->threads;
	return good;
}

static void stream_row(struct stream *s, const struct probe_series *m)
{
	struct table *t = &s->h->table;

	table_row(t);
	probe_bytes_cell(s->h->o, t, 0, s->bytes);
	table_cell(t, 1, "%s", kind_name[s->kind]);
	table_cell(t, 2, "%u", s->threads);
	if (m->n)
		table_cell(t, 3, "%.2f", probe_series_median(m).value * 1e-9);
	table_cell(t, 4, "GB/s");
}

/* What could not be measured is a row only for programs. */
static bool store_stream(struct stream *s, struct probe_series *m,
			 struct err *e)
{
	const bool row = m->n || !probe_is_for_people(s->h->o);
	char params[64];

	for (size_t i = 0; i < m->n; i++)
		m->v[i] = 1e9 / m->v[i]; /* ns per byte to B/s */
	if (row)
		stream_row(s, m);
	probe_rejects_add(&s->h->rejects, m, row ? &s->h->table : NULL);
	res_params(params, sizeof(params), "bytes:U threads:u",
		   (uint64_t)s->bytes, s->threads);
	return host_store(s->h, "memory", kind_name[s->kind], params,
			  "bandwidth", "B/s", m, NAN, e);
}

struct bandwidth {
	struct stream stream;
	struct probe_series series;
};

/* 16 KiB to `max`, one thread and all of them. */
static size_t list_streams(struct host_session *h, uint8_t *p, uint64_t max,
			   struct bandwidth *out)
{
	const unsigned cpus = h->cpu.cpus < THREADS_MAX ? h->cpu.cpus :
							  THREADS_MAX;
	size_t n = 0;

	for (uint64_t bytes = 16384; bytes <= max; bytes *= 4)
		for (unsigned v = 0; v < (cpus > 1 ? 2 : 1) * KINDS; v++) {
			struct bandwidth *b = &out[n++];

			b->stream = (struct stream){
				.h = h, .p = p, .kind = v % KINDS,
				.threads = v < KINDS ? 1 : cpus, .bytes = bytes
			};
			b->series = (struct probe_series){
				.name = kind_name[v % KINDS],
				.read = read_stream, .ctx = &b->stream
			};
		}
	return n;
}

bool host_bandwidths(struct host_session *h, uint64_t max, struct err *e)
{
	enum { SIZES = 16 };
	struct bandwidth *b = xcalloc(SIZES * 2 * KINDS, sizeof(*b));
	struct host_area a = { 0 };
	bool good = host_area_init(&a, max, true, e);
	const size_t n = good ? list_streams(h, host_area_start(&a), max, b) :
				0;

	if (good)
		memset(host_area_start(&a), 0x5a, max);
	for (int pass = 0; pass < HOST_PASSES; pass++)
		for (size_t i = 0; i < n && good && !*h->o->stop; i++)
			good = host_measure(h, &b[i].series, false, e);
	for (size_t i = 0; i < n && good; i++)
		good = store_stream(&b[i].stream, &b[i].series, e);
	host_area_fini(&a);
	free(b);
	return good;
}
