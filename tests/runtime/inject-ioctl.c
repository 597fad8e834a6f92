/*
 * Ioctls that fail: each that the runtime makes, at each of its calls, with
 * each errno that a kernel may give.  Whatever happens, the runtime either
 * gets by or says which call failed and what to do, and leaves nothing.
 */
#include "tests/runtime/inject.h"

static const struct {
	unsigned nr;
	const char *name;
	int calls; /* how often the scenario makes it, at least */
} ioctls[] = {
	{ KFD_NR_GET_VERSION, "GET_VERSION", 1 },
	{ KFD_NR_GET_PROCESS_APERTURES_NEW, "GET_PROCESS_APERTURES_NEW", 2 },
	{ KFD_NR_ACQUIRE_VM, "ACQUIRE_VM", 1 },
	{ KFD_NR_ALLOC_MEMORY_OF_GPU, "ALLOC_MEMORY_OF_GPU", 10 },
	{ KFD_NR_MAP_MEMORY_TO_GPU, "MAP_MEMORY_TO_GPU", 10 },
	{ KFD_NR_CREATE_EVENT, "CREATE_EVENT", 5 },
	{ KFD_NR_RUNTIME_ENABLE, "RUNTIME_ENABLE", 1 },
	{ KFD_NR_GET_CLOCK_COUNTERS, "GET_CLOCK_COUNTERS", 1 },
	{ KFD_NR_CREATE_QUEUE, "CREATE_QUEUE", 1 },
	{ KFD_NR_WAIT_EVENTS, "WAIT_EVENTS", 1 },
	{ KFD_NR_DESTROY_QUEUE, "DESTROY_QUEUE", 1 },
	{ KFD_NR_DESTROY_EVENT, "DESTROY_EVENT", 5 },
	{ KFD_NR_UNMAP_MEMORY_FROM_GPU, "UNMAP_MEMORY_FROM_GPU", 8 },
	{ KFD_NR_FREE_MEMORY_OF_GPU, "FREE_MEMORY_OF_GPU", 8 },
};

/* Open, run a kernel that sleeps a little first, and close. */
static bool scenario(struct rig *r, const struct soft_inject *rule, int n)
{
	return rig_open(r, NULL, rule, n) && rig_run(r, 5, 5000);
}

/*
 * A pause before each packet makes the wait sleep, not spin, also where the
 * waiting thread itself gets no processor for some milliseconds.
 */
static const struct soft_inject slow = { .what = SOFT_INJECT_SLOW,
					 .ns = 10 * MS, .times = UINT64_MAX };

static void test_again(int err, const char *name)
{
	unsigned bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ioctls); i++) {
		struct soft_inject rule[] = { { .what = SOFT_INJECT_IOCTL,
						.nr = ioctls[i].nr,
						.err = err, .times = 3 },
					      slow };
		struct rig r;
		const bool good = scenario(&r, rule, 2);
		const uint64_t n = r.d ? soft_injected(r.d, SOFT_INJECT_IOCTL) :
					 0;
		const char *left = rig_end(&r, 0);

		/* What comes at the close only is not counted yet. */
		if (good && !left && (n == 3 || i >= 10))
			continue;
		bad++;
		diag("%s %s: %s, struck %d times, left: %s", ioctls[i].name,
		     name, r.e.msg, (int)n, left ? left : "nothing");
	}
	is_u64(bad, 0, "%s from any ioctl, three times: nobody notices", name);
}

/* A signal may come at every second call of everything. */
static void test_storm(void)
{
	struct soft_inject rule[ARRAY_SIZE(ioctls) + 1];
	struct rig r;

	for (size_t i = 0; i < ARRAY_SIZE(ioctls); i++)
		rule[i] = (struct soft_inject){ .what = SOFT_INJECT_IOCTL,
						.nr = ioctls[i].nr,
						.err = i % 2 ? EINTR : EAGAIN,
						.one_in = 2, .seed = i + 1 };
	rule[ARRAY_SIZE(ioctls)] = slow;
	ok(rig_open(&r, NULL, rule, ARRAY_SIZE(rule)), "a storm of signals: "
	   "the device opens (%s)", r.e.msg);
	unsigned good = 0;
	for (uint32_t i = 0; r.q && i < 50; i++)
		good += rig_run(&r, i, 5000);
	is_u64(good, 50, "a storm of signals: 50 kernels run rightly (%s)",
	       r.e.msg);
	rig_close(&r, 10000, "storm of signals");
}

struct tally {
	unsigned cases, survived, mute, leaked, slow, unnamed;
};

static void one_failure(size_t i, int err, uint64_t at, struct tally *t)
{
	const struct soft_inject rule[] = { { .what = SOFT_INJECT_IOCTL,
					      .nr = ioctls[i].nr, .err = err,
					      .after = at },
					    slow };
	/* What cannot be freed is left, and nothing else. */
	const bool freeing = ioctls[i].nr == KFD_NR_FREE_MEMORY_OF_GPU ||
			     ioctls[i].nr == KFD_NR_UNMAP_MEMORY_FROM_GPU ||
			     ioctls[i].nr == KFD_NR_DESTROY_EVENT;
	const bool queue = ioctls[i].nr == KFD_NR_DESTROY_QUEUE;
	struct rig r;
	const bool good = scenario(&r, rule, 2);
	const char *left = rig_end(&r, freeing ? 1 : queue ? 8 : 0);

	t->cases++;
	t->survived += good;
	t->mute += !good && !r.e.msg[0];
	t->leaked += left != NULL;
	t->slow += time_mono_ns() - r.began_ns > 4000 * MS;
	/* ENOMEM of ALLOC is told in words of memory. */
	const bool named = good || strstr(r.e.msg, ioctls[i].name) ||
			   (err == ENOMEM && strstr(r.e.msg, "bytes of"));
	t->unnamed += !named;
	if (left || !named)
		diag("%s errno %d at call %d: \"%s\", left: %s",
		     ioctls[i].name, err, (int)at, r.e.msg,
		     left ? left : "nothing");
}

static void test_failures(void)
{
	static const int errs[] = { ENOMEM, EPERM, EBUSY, EIO, EINVAL };
	struct tally t = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(ioctls); i++)
		for (size_t k = 0; k < ARRAY_SIZE(errs); k++)
			for (int at = 0; at < ioctls[i].calls; at++)
				one_failure(i, errs[k], (uint64_t)at, &t);
	diag("%u failures, %u of them survived", t.cases, t.survived);
	ok(t.cases > 250, "hundreds of single failures were made");
	ok(t.survived > 50 && t.survived < t.cases / 2 + 50,
	   "those that do not matter do no harm");
	is_u64(t.mute, 0, "every other one gives a message");
	is_u64(t.unnamed, 0, "which names the call");
	is_u64(t.leaked, 0, "nothing is left by any");
	is_u64(t.slow, 0, "none of them hangs");
}

static void test_map_part(void)
{
	struct soft_inject rule = { .what = SOFT_INJECT_IOCTL_DONE,
				    .nr = KFD_NR_MAP_MEMORY_TO_GPU,
				    .err = EINTR, .after = 2, .times = 2 };
	struct rig r;

	ok(scenario(&r, &rule, 1), "MAP done in part, EINTR: gone on with (%s)",
	   r.e.msg);
	rig_close(&r, 3000, "MAP in part, EINTR");
	rule.err = ENOMEM;
	rule.times = 1;
	ok(!scenario(&r, &rule, 1), "MAP done in part, ENOMEM: refused");
	rig_error(&r.e, ERR_NOMEM, 2, "MAP in part, ENOMEM",
		  "MAP_MEMORY_TO_GPU", "free memory");
	rig_close(&r, 3000, "MAP in part, ENOMEM");
}

static void test_words(void)
{
	const struct {
		const char *name;
		struct soft_inject rule;
		enum err_code code;
		int exit;
		const char *what, *remedy;
	} t[] = {
		{ "system memory limit",
		  { .what = SOFT_INJECT_IOCTL, .err = ENOMEM,
		    .nr = KFD_NR_ALLOC_MEMORY_OF_GPU, .times = ~0ull },
		  ERR_NOMEM, 2, "limit on pinned system memory",
		  "use smaller buffers" },
		{ "VM taken",
		  { .what = SOFT_INJECT_IOCTL, .err = EBUSY,
		    .nr = KFD_NR_ACQUIRE_VM },
		  ERR_BUSY, 2, "ACQUIRE_VM", "still uses it" },
		{ "scheduler hangs",
		  { .what = SOFT_INJECT_IOCTL, .err = EIO,
		    .nr = KFD_NR_CREATE_QUEUE },
		  ERR_DEVICE, 3, "CREATE_QUEUE", "kernel log" },
		{ "too many queues",
		  { .what = SOFT_INJECT_IOCTL, .err = ENOSPC,
		    .nr = KFD_NR_CREATE_QUEUE },
		  ERR_NOMEM, 2, "CREATE_QUEUE", "used up" },
		{ "doorbells cannot be mapped",
		  { .what = SOFT_INJECT_MMAP, .err = EINVAL,
		    .nr = KFD_MMAP_TYPE_DOORBELL },
		  ERR_IO, 2, "mapping the doorbells", "Invalid argument" },
		{ "unplugged",
		  { .what = SOFT_INJECT_IOCTL, .err = ENODEV,
		    .nr = KFD_NR_WAIT_EVENTS, .times = ~0ull },
		  ERR_DEVICE, 3, "WAIT_EVENTS", "the device is gone" },
		{ "old driver",
		  { .what = SOFT_INJECT_IOCTL, .err = ENOTTY,
		    .nr = KFD_NR_GET_PROCESS_APERTURES_NEW },
		  ERR_UNSUPPORTED, 2, "APERTURES", "too old" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const struct soft_inject rule[] = { t[i].rule, slow };
		struct rig r;

		ok(!scenario(&r, rule, 2), "%s: refused", t[i].name);
		rig_error(&r.e, t[i].code, t[i].exit, t[i].name, t[i].what,
			  t[i].remedy);
		rig_close(&r, 4000, t[i].name);
	}
}

/* After ENODEV the device is lost, for everything and at once. */
static void test_gone(void)
{
	const struct soft_inject rule[] = { { .what = SOFT_INJECT_IOCTL,
					      .err = ENODEV,
					      .nr = KFD_NR_WAIT_EVENTS },
					    slow };
	struct kfd_fault f = { 0 };
	struct kfd_mem *m;
	struct rig r;

	ok(!scenario(&r, rule, 2) && kfd_lost(r.dev, NULL),
	   "unplugged: the device is lost");
	ok(kfd_lost_fault(r.dev, &f) && f.kind == KFD_FAULT_GONE &&
		   f.device_lost,
	   "unplugged: the fault says so to programs");
	ok(f.has_packet && f.packet == 0 && !strcmp(f.kernel, "store"),
	   "unplugged: with packet and kernel");
	ok(!kfd_mem_alloc(r.dev, KFD_GTT, 4096, "x", &m, &r.e),
	   "unplugged: no further call is tried");
	rig_close(&r, 3000, "unplugged");
}

int main(void)
{
	test_again(EINTR, "EINTR");
	test_again(EAGAIN, "EAGAIN");
	test_storm();
	test_failures();
	test_map_part();
	test_words();
	test_gone();
	return plan_done();
}
