/*
 * Which GPU is taken, more than one of them, device time, and the lock.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdlib.h>

#include "tests/runtime/kfd-fake.h"
#include "tests/tap.h"

#define MS 1000000ull

/* gfx1036, 7900 XT, 7900 XTX, each with an id of its own. */
static struct fake *machine(void)
{
	struct fake *f = fake_new();

	fake_gpu(f, 1, 1001, 100306, 2, 1);
	fake_gpu(f, 2, 1002, 110000, 84, 12);
	fake_gpu(f, 3, 1003, 110000, 96, 12);
	fake_gpu(f, 4, 1004, 110002, 32, 4);
	for (int n = 1; n <= 4; n++) {
		char path[64];
		struct buf b = { 0 };

		snprintf(path, sizeof(path), "nodes/%d/properties", n);
		for (int i = 0; i < f->n_files; i++)
			if (!strcmp(f->file[i].path, path))
				buf_adds(&b, f->file[i].text);
		char *id = strstr(b.data, "unique_id");
		/* 12345678901234567890 is replaced by 2561, 2562, ... */
		snprintf(id, b.len - (size_t)(id - b.data), "unique_id %d\n",
			 0xa00 + n);
		fake_file(f, path, b.data);
		buf_fini(&b);
	}
	return f;
}

/* Opens with this spec: CUs of the GPU taken, 0 = refused. */
static unsigned cus(const char *spec, struct err *e,
		    char out_spec[KFD_SPEC_BYTES])
{
	struct kfd_dev *dev;
	unsigned n = 0;

	*e = (struct err){ 0 };
	if (kfd_open_on(&dev, &machine()->drv, spec, "test", e)) {
		n = kfd_info(dev)->node.cu_count;
		snprintf(out_spec, KFD_SPEC_BYTES, "%s", kfd_info(dev)->spec);
	}
	kfd_close(dev);
	return n;
}

static void test_rocr(void)
{
	/* Its reader stops at the first entry that it does not know. */
	static const char *const rocr[][2] = {
		{ "1,0", "kfd@1,0" },
		{ "GPU-7430736f66743030", "kfd@GPU-7430736f66743030" },
		{ "0,-1,1", "kfd@0" },
		{ "0,x,1", "kfd@0" },
		{ "", "kfd@4294967295" },
		{ "-1", "kfd@4294967295" },
		{ " 1 ,0x2", "kfd@1,2" },
		{ "010,08,1", "kfd@8" },
		{ "gpu-A0,GPU-0123456789abcdef0", "kfd@GPU-A0" },
		{ "1 0", "kfd@4294967295" },
	};
	char spec[256];

	unsetenv("T0_VISIBLE_DEVICES");
	for (size_t i = 0; i < ARRAY_SIZE(rocr); i++) {
		setenv("ROCR_VISIBLE_DEVICES", rocr[i][0], 1);
		is_str(kfd_spec_asked("kfd", spec), rocr[i][1],
		       "ROCR_VISIBLE_DEVICES \"%s\"", rocr[i][0]);
	}
	setenv("T0_VISIBLE_DEVICES", "1", 1);
	is_str(kfd_spec_asked("kfd", spec), "kfd@1", "our own one wins");
	unsetenv("T0_VISIBLE_DEVICES");
	unsetenv("ROCR_VISIBLE_DEVICES");
}

/* Machines in software: which of its cards, by its place in the topology. */
static void test_soft_specs(void)
{
	static const struct {
		const char *spec;
		unsigned node;
		const char *is;
	} good[] = {
		{ "soft", 1, "soft" },
		{ "soft:gfx1100", 1, "soft" },
		{ "soft:0", 1, "soft" },
		{ "soft*1", 1, "soft" },
		{ "soft*2", 1, "soft*2:0" },
		{ "soft*2:1", 2, "soft*2:1" },
		{ "soft:gfx1100*8:7", 8, "soft*8:7" },
		{ "soft*3:0x7430736f66743032", 3, "soft*3:2" },
		{ "soft*3:gfx1100", 1, "soft*3:0" },
		{ "soft*3@2,0", 3, "soft*3:2" },
		{ "soft*3:1@2,0", 1, "soft*3:0" },
		{ "soft:gfx1102", 1, "soft:gfx1102" },
		{ "soft:gfx1102*2:1", 2, "soft:gfx1102*2:1" },
		{ "soft,soft:gfx1103*2:2", 3, "soft,soft:gfx1103*2:2" },
		{ "soft:gfx1101,soft:gfx1102:gfx1102", 2,
		  "soft:gfx1101,soft:gfx1102:1" },
		{ "soft,soft:1", 2, "soft*2:1" },
	};
	static const struct {
		const char *spec;
		enum err_code code;
		const char *says;
	} bad[] = {
		{ "soft*0", ERR_USAGE, "wanted the number of cards, 1..8" },
		{ "soft*9", ERR_USAGE, "wanted the number of cards, 1..8" },
		{ "soft*", ERR_USAGE, "wanted the number of cards, 1..8" },
		{ "soft*2*2", ERR_USAGE, "wanted the number of cards, 1..8" },
		{ "soft:gfx1036", ERR_USAGE,
		  "there is no gfx1036 in software; "
		  "there is gfx1010, gfx1030, gfx1100, " },
		{ "soft:gfx110*2", ERR_USAGE, "there is no gfx110 in" },
		{ "soft:gfx1105", ERR_USAGE, "did you mean gfx1100?" },
		{ "soft*8,soft", ERR_USAGE, "9 cards; wanted 1 to 8" },
		{ "soft,kfd", ERR_USAGE, "after the comma" },
		{ "soft:", ERR_USAGE, "wanted soft, kfd" },
		{ "softy", ERR_USAGE, "wanted soft, kfd" },
		{ "soft:1", ERR_NODEV, "no GPU of that number among the 1" },
		{ "soft*2:2", ERR_NODEV, "(soft*2:0 is gfx1100, soft*2:1 is" },
	};
	struct kfd_dev *dev;
	char gfx[16];
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ok(kfd_find_chip(good[i].spec, gfx, &e), "\"%s\": of a chip",
		   good[i].spec);
		if (!ok(kfd_open(&dev, good[i].spec, &e), "\"%s\" opens",
			good[i].spec))
			continue;
		is_u64((uint64_t)kfd_info(dev)->node.index, good[i].node,
		       "\"%s\": that node", good[i].spec);
		is_str(kfd_info(dev)->spec, good[i].is, "\"%s\": it is %s",
		       good[i].spec, good[i].is);
		is_str(gfx, kfd_info(dev)->gfx, "\"%s\": the same when open",
		       good[i].spec);
		kfd_close(dev);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		e = (struct err){ 0 };
		ok(!kfd_find_chip(bad[i].spec, gfx, &e) &&
			   e.code == bad[i].code,
		   "\"%s\": no chip", bad[i].spec);
		e = (struct err){ 0 };
		ok(!kfd_open(&dev, bad[i].spec, &e) && e.code == bad[i].code,
		   "\"%s\": refused", bad[i].spec);
		has_str(e.msg, bad[i].says, "\"%s\": the message",
			bad[i].spec);
	}
}

static void test_specs(void)
{
	static const struct {
		const char *spec;
		unsigned cus;
		const char *is; /* the spec that it is known by */
	} good[] = {
		{ NULL, 84, "kfd:1" },	     { "kfd", 84, "kfd:1" },
		{ "kfd:2", 96, "kfd:2" },    { "kfd:gfx1102", 32, "kfd:3" },
		{ "kfd:0xa03", 96, "kfd:2" }, { "kfd@2", 96, "kfd:2" },
		{ "@0xa04", 32, "kfd:3" },   { "kfd@3,1", 32, "kfd:3" },
		{ "kfd:1@3,1", 84, "kfd:1" }, { "kfd@GPU-a03", 96, "kfd:2" },
		{ "kfd@0,2,99", 96, "kfd:2" },
		{ "kfd:1@3,2,2,1", 96, "kfd:2" },
	};
	static const struct {
		const char *spec;
		enum err_code code;
		const char *says;
	} bad[] = {
		{ "kfd:0", ERR_NODEV, "gfx1036; wanted gfx11" },
		{ "kfd:9", ERR_NODEV, "no GPU of that number among the 4" },
		{ "kfd:0xbad", ERR_NODEV, "no GPU with unique id 0xbad" },
		{ "kfd:gfx1200", ERR_NODEV, "no gfx1200 GPU" },
		{ "kfd@0", ERR_NODEV, "visible are only 0" },
		{ "kfd@99,1", ERR_NODEV, "visible are only 99,1" },
		{ "kfd:2@2,1,1,3", ERR_NODEV, "no GPU of that number" },
		{ "kfd:2@1,2", ERR_NODEV, "no GPU of that number" },
		{ "kfd@1,x", ERR_USAGE, "'x' is neither" },
		{ "kfd:gfx", ERR_NODEV, "no gfx GPU" },
		{ "kfd?", ERR_USAGE, "wanted soft, kfd" },
		{ "kfd:0x", ERR_USAGE, "wanted soft, kfd" },
	};
	char spec[256], is[KFD_SPEC_BYTES];
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		is_u64(cus(good[i].spec, &e, is), good[i].cus,
		       "\"%s\": the GPU with %u CUs (%s)",
		       good[i].spec ? good[i].spec : "", good[i].cus, e.msg);
		is_str(is, good[i].is, "\"%s\": it is %s",
		       good[i].spec ? good[i].spec : "", good[i].is);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {

		is_u64(cus(bad[i].spec, &e, is), 0, "\"%s\": refused",
		       bad[i].spec);
		is_u64(e.code, bad[i].code, "\"%s\": the class of the error",
		       bad[i].spec);
		has_str(e.msg, bad[i].says, "\"%s\": the message",
			bad[i].spec);
	}
	is_str(kfd_spec("kfd", "1,2", spec), "kfd@1,2", "a spec and a filter");
	is_str(kfd_spec(NULL, "", spec), "", "neither");
	is_str(kfd_spec("soft", NULL, spec), "soft", "a spec alone");
	is_str(kfd_spec("soft", "1", spec), "soft",
	       "a card in software is not filtered");
	is_str(kfd_spec("soft*2", "1", spec), "soft*2@1", "several are");
	test_rocr();
	test_soft_specs();
}

/* Topology without any GPU: the kernel has refused the card. */
static void test_no_gpu(void)
{
	struct fake *f = fake_new();
	struct kfd_dev *dev;
	struct err e = { 0 };

	fake_file(f, "nodes/1/gpu_id", "0\n");
	ok(!kfd_open_on(&dev, &f->drv, NULL, "test", &e) &&
		   e.code == ERR_NODEV,
	   "a driver without GPUs is refused");
	has_str(e.msg, "PCI rejects atomics", "with the usual reason");
}

static void test_peers(void)
{
	struct fake *f = machine();
	struct kfd_dev *dev, *peer, *third;
	struct kfd_mem *m;
	struct err e = { 0 };
	bool gone = false;

	f->gone = &gone;
	if (!ok(kfd_open_on(&dev, &f->drv, "kfd:1", "test", &e), "the first"))
		return;
	ok(kfd_open_peer(&peer, dev, "kfd:2", &e), "a second GPU (%s)", e.msg);
	is_u64((uint64_t)fake_count(f, KFD_NR_GET_VERSION), 1,
	       "one handle of the driver serves both");
	is_u64((uint64_t)fake_count(f, KFD_NR_ACQUIRE_VM), 2,
	       "each has an address space");
	is_u64(fake_call(f, KFD_NR_ACQUIRE_VM, 1)->vm.gpu_id, 1003,
	       "the second one's is its own");
	int pages = 0;
	for (int i = 0; i < f->n_log; i++)
		pages += f->log[i].nr == KFD_NR_CREATE_EVENT &&
			 f->log[i].event.event_page_offset;
	is_u64((uint64_t)pages, 1, "the event page is handed over once");
	ok(!kfd_open_peer(&third, dev, "kfd:1", &e) && e.code == ERR_BUSY,
	   "a GPU is not opened twice");
	is_str(kfd_info(peer)->spec, "kfd:2", "the peer's spec");
	const int maps = fake_count(f, KFD_NR_MAP_MEMORY_TO_GPU);
	ok(kfd_mem_alloc(dev, KFD_GTT, 4096, "both", &m, &e) &&
		   kfd_mem_share(m, dev, peer, &e),
	   "memory for both (%s)", e.msg);
	is_u64((uint64_t)(fake_count(f, KFD_NR_MAP_MEMORY_TO_GPU) - maps), 2,
	       "is mapped to each");
	kfd_mem_free(dev, m);
	struct fake_call *last = NULL;
	for (int i = 0; i < f->n_log; i++)
		if (f->log[i].nr == KFD_NR_UNMAP_MEMORY_FROM_GPU)
			last = &f->log[i];
	is_u64(last ? last->map.n_devices : 0, 2, "and unmapped from both");
	f->fault_va = 0x5000;
	kfd_close(dev);
	ok(gone, "closing the first closes all, once");
}

/* ------------------------------------------------------------- clocks -- */

static struct fake *with_clock(uint64_t gpu, uint64_t cpu)
{
	struct fake *f = fake_new();

	f->gpu_clock = gpu;
	f->cpu_clock = cpu;
	return f;
}

static void test_clock(void)
{
	struct fake *f = with_clock(1000000, 50000000000);
	const struct timespec gap = { 1, 20 * MS };
	struct kfd_dev *dev;
	struct err e = { 0 };
	uint64_t ns = 0;

	if (!ok(kfd_open_on(&dev, &f->drv, NULL, "test", &e), "a clock"))
		return;
	ok(kfd_clock_ns(dev, 1000100, &ns, &e), "a stamp is converted");
	is_u64(ns, 50000001000, "100 ticks of 10 ns after the reading");
	ok(kfd_clock_ns(dev, 999900, &ns, &e), "one from before the reading");
	is_u64(ns, 49999999000, "is before it");
	/* 10 s later by the host, and 50 ppm more ticks. */
	f->gpu_clock = 1000000 + 1000050000;
	f->cpu_clock = 60000000000;
	nanosleep(&gap, NULL);
	ok(kfd_clock_ns(dev, 1000000 + 500025000, &ns, &e),
	   "after a second it is read again");
	is_u64(ns, 55000000000, "the line goes through both readings");
	ok(kfd_clock_hz(dev) > 100004900 && kfd_clock_hz(dev) < 100005100,
	   "the measured rate is 50 ppm high");
	/* Suspend: the device's clock stood for an hour. */
	f->gpu_clock += 100000000;
	f->cpu_clock += 3600000000000;
	nanosleep(&gap, NULL);
	ok(kfd_clock_ns(dev, f->gpu_clock - 100, &ns, &e),
	   "after a jump the calibration is new");
	is_u64(ns, f->cpu_clock - 1000, "and right");
	ok(!kfd_clock_ns(dev, 2000000, &ns, &e) && e.code == ERR_DEVICE,
	   "stamps from before the jump are refused");
	/* Reset: it starts at 0. */
	const uint64_t old = f->gpu_clock;
	f->gpu_clock = 5000;
	f->cpu_clock += 2000000000;
	nanosleep(&gap, NULL);
	ok(kfd_clock_ns(dev, 5100, &ns, &e) && ns == f->cpu_clock + 1000,
	   "a clock that went back is begun anew");
	ok(!kfd_clock_ns(dev, old, &ns, &e),
	   "stamps from before that lie in the future: refused");
	is_f64(kfd_clock_hz(dev), 1e8, "at the nominal rate");
	kfd_close(dev);
}

/* --------------------------------------------------------------- lock -- */

static void on_wait(void *ctx, const char *holder)
{
	snprintf(ctx, 128, "%s", holder);
}

static void test_lock(void)
{
	struct kfd_info info = { .origin = "hardware",
				 .node.render_minor = 128 };
	char dir[] = "/tmp/t0-lock-XXXXXX", told[128] = "", path[300];
	struct kfd_lock_opts o = { .dir = mkdtemp(dir), .waiting = on_wait,
				   .ctx = told };
	struct kfd_lock l, other;
	struct stat node;
	struct err e = { 0 };
	int fd[2], status;
	char c;

	snprintf(path, sizeof(path), "%s/renderD128", dir);
	close(open(path, O_CREAT | O_WRONLY, 0440));
	ok(kfd_lock_take(&info, &o, &l, &e), "a free GPU is locked (%s)",
	   e.msg);
	is_str(l.path, path, "by its render node");
	ok(!stat(path, &node) && node.st_size == 0, "which nobody writes to");
	ok(!kfd_lock_take(&info, &o, &other, &e) && e.code == ERR_BUSY,
	   "a second one does not get it");
	snprintf(path, sizeof(path), "process %d (choice)", (int)getpid());
	has_str(e.msg, path, "the message says who has it");
	kfd_lock_drop(&l);
	ok(kfd_lock_take(&info, &o, &other, &e), "once dropped it is free");
	kfd_lock_drop(&other);
	/* A holder that is killed. */
	ok(pipe(fd) == 0, "a pipe");
	fflush(NULL);
	const pid_t pid = fork();
	if (!pid) {
		if (kfd_lock_take(&info, &o, &l, &e) && write(fd[1], "x", 1))
			pause();
		_exit(1);
	}
	ok(read(fd[0], &c, 1) == 1, "another process has the lock");
	o.timeout_ns = 150 * MS;
	const uint64_t start = time_mono_ns();
	e = (struct err){ 0 };
	ok(!kfd_lock_take(&info, &o, &l, &e) && e.code == ERR_BUSY,
	   "waiting for it ends at the timeout");
	ok(time_mono_ns() - start >= 150 * MS, "not before");
	has_str(told, "process", "who waits is told for whom");
	snprintf(path, sizeof(path), "process %d ", (int)pid);
	has_str(told, path, "by its number");
	kill(pid, SIGKILL);
	o.timeout_ns = 5000 * MS;
	ok(kfd_lock_take(&info, &o, &l, &e),
	   "when its holder dies the lock is free (%s)", e.msg);
	waitpid(pid, &status, 0);
	kfd_lock_drop(&l);
	info.origin = "emulated";
	ok(kfd_lock_take(&info, &o, &l, &e) && l.fd < 0,
	   "the emulated device needs none");
	info.origin = "hardware";
	o.dir = "/nonexistent";
	ok(!kfd_lock_take(&info, &o, &l, &e), "a folder that is not there");
	has_str(e.msg, "/nonexistent/renderD128", "is named");
	info.node.render_minor = -1;
	e = (struct err){ 0 };
	ok(!kfd_lock_take(&info, &o, &l, &e) && e.code == ERR_UNSUPPORTED,
	   "a GPU without a render node is refused (%s)", e.msg);
	snprintf(path, sizeof(path), "%s/renderD128", dir);
	unlink(path);
	rmdir(dir);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	test_specs();
	test_no_gpu();
	test_peers();
	test_clock();
	test_lock();
	return plan_done();
}
