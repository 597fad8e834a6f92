/*
 * Soak: four threads with a queue each on one device, and everything that can
 * go wrong going wrong at random.  Whatever the runtime says is complete must
 * have the right results, every failure must be a known one, and after each
 * device nothing may be left.
 *
 * 5,000 dispatches; 100,000 with T0_SLOW=1.  T0_SEED repeats a run.
 */
#include <pthread.h>

#include "tests/runtime/inject.h"

#define QUEUES 4
#define BATCH  16
#define WORDS  32 /* per dispatch */

struct tally {
	uint64_t sent, complete, wrong, failed, strange, stuck;
	uint64_t dead_queues;
};

struct worker {
	struct rig *r;
	struct kfd_queue *q;
	struct kfd_mem *out;
	uint64_t quota, random;
	struct tally t;
	struct err e; /* the last strange one */
};

static uint32_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return (uint32_t)(*s >> 32);
}

/* Rates are of packets; the seed decides which. */
static void add_rules(struct kfd_driver *d, uint64_t seed)
{
	const struct soft_inject rule[] = {
		{ .what = SOFT_INJECT_ILLEGAL, .one_in = 1500 },
		{ .what = SOFT_INJECT_REFUSE, .one_in = 2500 },
		{ .what = SOFT_INJECT_FAULT, .one_in = 4000, .va = 0x5000000 },
		{ .what = SOFT_INJECT_RESET, .one_in = 9000 },
		{ .what = SOFT_INJECT_RESET_MUTE, .one_in = 40000 },
		{ .what = SOFT_INJECT_ECC, .one_in = 12000 },
		{ .what = SOFT_INJECT_HANG, .one_in = 9000, .ns = 5 * MS },
		{ .what = SOFT_INJECT_SLOW, .one_in = 300, .ns = MS / 2 },
		{ .what = SOFT_INJECT_PAUSE, .one_in = 4000, .ns = 3 * MS },
		{ .what = SOFT_INJECT_LOST_IRQ, .one_in = 3000 },
		{ .what = SOFT_INJECT_SPURIOUS, .one_in = 1000,
		  .ns = MS / 20 },
		{ .what = SOFT_INJECT_IOCTL, .nr = KFD_NR_WAIT_EVENTS,
		  .err = EINTR, .one_in = 7 },
		{ .what = SOFT_INJECT_IOCTL, .nr = KFD_NR_MAP_MEMORY_TO_GPU,
		  .err = EINTR, .one_in = 5 },
		{ .what = SOFT_INJECT_IOCTL, .nr = KFD_NR_ALLOC_MEMORY_OF_GPU,
		  .err = EAGAIN, .one_in = 5 },
		{ .what = SOFT_INJECT_IOCTL, .nr = KFD_NR_CREATE_QUEUE,
		  .err = EINTR, .one_in = 3 },
		{ .what = SOFT_INJECT_IOCTL, .nr = KFD_NR_DESTROY_QUEUE,
		  .err = EAGAIN, .one_in = 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rule); i++) {
		struct soft_inject r = rule[i];

		r.seed = seed * 1000003 + i * 7919 + 1;
		soft_inject(d, &r);
	}
}

static bool is_right(const struct worker *w, unsigned slot, uint32_t add)
{
	const volatile uint32_t *p = (uint32_t *)w->out->cpu + slot * WORDS;

	for (uint32_t i = 0; i < WORDS; i++)
		if (p[i] != add + i)
			return false;
	return true;
}

/* A batch of 1..BATCH packets; false = the device is lost. */
static bool batch(struct worker *w)
{
	const unsigned n = next_random(&w->random) % BATCH + 1;
	const uint32_t base = next_random(&w->random);
	const uint64_t deadline = time_mono_ns() + 20000 * MS;
	uint64_t ticket[BATCH];
	struct err e = { 0 };
	unsigned sent = 0;

	memset(w->out->cpu, 0, BATCH * WORDS * 4);
	for (; sent < n; sent++) {
		const struct rig_args a = { w->out->va + sent * WORDS * 4,
					    base + sent * 1000 };
		const struct kfd_launch l = { .kernel = w->r->store,
					      .grid = { WORDS },
					      .wg = { 32 },
					      .args = &a,
					      .args_bytes = sizeof(a),
					      .deadline_ns = deadline,
					      .quiet = sent + 1 < n };

		if (!kfd_put(w->q, &l, &ticket[sent], &e))
			break;
	}
	kfd_flush(w->q);
	w->t.sent += sent;
	for (unsigned i = 0; i < sent; i++) {
		e = (struct err){ 0 };
		if (kfd_wait(w->q, ticket[i], deadline, NULL, &e)) {
			w->t.complete++;
			w->t.wrong += !is_right(w, i, base + i * 1000);
			continue;
		}
		w->t.failed++;
		w->t.stuck += e.code == ERR_TIMEOUT;
		if (e.code != ERR_DEVICE) {
			w->t.strange++;
			w->e = e;
		}
	}
	if (!e.code)
		return true;
	if (kfd_lost(w->r->dev, NULL))
		return false;
	/* Only the queue has died: another takes its place. */
	w->t.dead_queues++;
	e = (struct err){ 0 };
	kfd_queue_free(w->q, NULL);
	if (kfd_queue_new(w->r->dev, NULL, &w->q, &e))
		return true;
	w->q = NULL;
	if (!kfd_lost(w->r->dev, NULL) && e.code != ERR_DEVICE) {
		w->t.strange++;
		w->e = e;
	}
	return false;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	while (w->t.sent < w->quota && batch(w))
		;
	return NULL;
}

static void add_tally(struct tally *a, const struct tally *b)
{
	a->sent += b->sent;
	a->complete += b->complete;
	a->wrong += b->wrong;
	a->failed += b->failed;
	a->strange += b->strange;
	a->stuck += b->stuck;
	a->dead_queues += b->dead_queues;
}

/* One device's life; returns what was left behind, or NULL. */
static const char *life(uint64_t quota, uint64_t seed, struct tally *sum,
			bool *opened)
{
	static const uint32_t priority[QUEUES] = { 7, 11, 3, 15 };
	const struct soft_options o = { .deadline_ns = 2000 * MS };
	struct worker w[QUEUES] = { 0 };
	pthread_t thread[QUEUES];
	struct rig r;

	*opened = rig_begin(&r, &o, NULL, 0) && rig_device(&r);
	for (int i = 0; *opened && i < QUEUES; i++) {
		struct kfd_queue_opts qo = { .priority = priority[i],
					     .ring_packets = 64 };

		w[i] = (struct worker){ .r = &r, .quota = quota / QUEUES,
					.random = seed * 77 + (uint64_t)i + 1 };
		*opened = kfd_queue_new(r.dev, &qo, &w[i].q, &r.e) &&
			  kfd_mem_alloc(r.dev, i % 2 ? KFD_VRAM : KFD_GTT,
					BATCH * WORDS * 4, "soak", &w[i].out,
					&r.e);
	}
	if (!*opened)
		diag("%s", r.e.msg);
	if (*opened) {
		add_rules(r.d, seed);
		for (int i = 0; i < QUEUES; i++)
			pthread_create(&thread[i], NULL, worker_main, &w[i]);
		for (int i = 0; i < QUEUES; i++) {
			pthread_join(thread[i], NULL);
			add_tally(sum, &w[i].t);
			if (w[i].t.strange)
				diag("strange: %s", w[i].e.msg);
		}
	}
	return rig_end(&r, 0);
}

int main(void)
{
	const bool slow = getenv("T0_SLOW") && *getenv("T0_SLOW");
	const uint64_t wanted = slow ? 100000 : 5000;
	const char *s = getenv("T0_SEED");
	uint64_t seed = s ? strtoull(s, NULL, 0) : 20240607;
	struct tally t = { 0 };
	unsigned lives = 0, leaks = 0, unopened = 0;
	const uint64_t start = time_mono_ns();

	diag("seed %llu", (unsigned long long)seed);
	while (t.sent < wanted && lives < 5000) {
		bool opened;
		const char *left = life(wanted - t.sent + QUEUES, seed + lives,
					&t, &opened);

		lives++;
		unopened += !opened;
		leaks += left != NULL;
		if (left)
			diag("life %u: left %s", lives, left);
	}
	diag("%llu dispatches in %.1f s: %llu complete, %llu failed, "
	     "%u devices, %llu dead queues",
	     (unsigned long long)t.sent,
	     (double)(time_mono_ns() - start) * 1e-9,
	     (unsigned long long)t.complete, (unsigned long long)t.failed,
	     lives, (unsigned long long)t.dead_queues);
	ok(t.sent >= wanted, "%d dispatches were sent", (int)wanted);
	is_u64(t.sent, t.complete + t.failed, "each has completed or failed");
	is_u64(t.wrong, 0, "every completed one has the right result");
	is_u64(t.stuck, 0, "none ran into its deadline");
	is_u64(t.strange, 0, "every failure is the device's");
	is_u64(unopened, 0, "every new device opens");
	is_u64(leaks, 0, "nothing is left of any");
	ok(lives > 1 && t.dead_queues > 0 && t.complete > wanted / 2,
	   "there were faults, and not too many");
	return plan_done();
}
