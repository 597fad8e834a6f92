/* The soft device's ioctls: what it answers, and what it refuses and how. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/soft/softdev.h"

static void test_open(void)
{
	const struct soft_options locked = { .open_errno = EACCES };
	struct err e = { 0 };
	struct kfd_driver *d = kfd_soft_new(&locked, &e);

	is_str(d->name, "soft", "the driver is called soft");
	is_str(d->origin, "emulated", "its figures are emulated");
	is_i64(d->open(d, "/dev/kfd", O_RDWR), -EACCES,
	       "open fails as the options say");
	is_i64(d->open(d, "/dev/dri/renderD129", O_RDWR), -ENOENT,
	       "there is one render node only");
	is_i64(d->open(d, "/etc/passwd", O_RDWR), -ENOENT,
	       "other files are not there");
	d->free(d);
}

static void test_dispatch(void)
{
	struct sd s = sd_open(NULL);
	uint32_t v[4] = { 9, 9, 9, 9 };

	is_i64(sd_ioctl(&s, KFD_IOC_GET_VERSION, v), 0, "GET_VERSION works");
	ok(v[0] == 1 && v[1] == 17, "the version is 1.17 by default");
	v[1] = 9;
	is_i64(sd_ioctl(&s, KFD_REQUEST(KFD_DIR_R, 4, 1), v), 0,
	       "a shorter structure is accepted");
	is_u64(v[1], 9, "and nothing is written behind it");
	is_i64(sd_ioctl(&s, KFD_REQUEST(KFD_DIR_R, 16, 1), v), 0,
	       "a longer structure is accepted");
	ok(v[1] == 17 && v[2] == 0 && v[3] == 0, "its rest reads as zero");
	is_i64(sd_ioctl(&s, KFD_REQUEST(0, 0, 1), v), 0,
	       "the number alone chooses the call");
	is_i64(sd_ioctl(&s, KFD_REQUEST(KFD_DIR_WR, 8, 0x82), v), -ENOTTY,
	       "an unknown number is ENOTTY");
	for (unsigned i = 0; i < 4; i++)
		is_i64(sd_ioctl(&s, KFD_IOC_DBG_DEPRECATED(i), v), -EPERM,
		       "call 0x%02x of old debuggers is EPERM", 0x0d + i);
	is_i64(sd_ioctl(&s, KFD_REQUEST(KFD_DIR_WR, 8, 0), v), -ENOTTY,
	       "number 0 is ENOTTY");
	is_i64(sd_ioctl(&s, 0x80084c01, v), -ENOTTY,
	       "another type byte is ENOTTY");
	is_i64(sd_ioctl(&s, KFD_IOC_GET_VERSION, NULL), -EFAULT,
	       "a null argument is EFAULT");
	is_i64(s.d->ioctl(s.d, s.drm, KFD_IOC_GET_VERSION, v), -ENOTTY,
	       "the render node has no KFD calls");
	is_i64(s.d->ioctl(s.d, 9999, KFD_IOC_GET_VERSION, v), -EBADF,
	       "a handle that is not open is EBADF");
	is_i64(s.d->close(s.d, 9999), -EBADF, "closing it too");
	sd_close(&s);
}

static void test_minor(void)
{
	const struct soft_options old = { .kfd_minor = 4 };
	struct sd s = sd_open(&old);
	uint32_t v[8] = { 0 };

	sd_ioctl(&s, KFD_IOC_GET_VERSION, v);
	is_u64(v[1], 4, "an older kernel can be asked for");
	is_i64(sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, v), -ENOTTY,
	       "1.4 has no RUNTIME_ENABLE");
	is_i64(sd_ioctl(&s, KFD_IOC_AVAILABLE_MEMORY, v), -ENOTTY,
	       "1.4 has no AVAILABLE_MEMORY");
	is_i64(sd_ioctl(&s, KFD_IOC_SVM(0), v), -ENOTTY, "1.4 has no SVM");
	sd_close(&s);
}

static void test_fork(void)
{
	struct sd s = sd_open(NULL);
	struct kfd_ioc_get_version v;
	int status = 0;
	const pid_t child = fork();

	if (!child) {
		const int a = sd_ioctl(&s, KFD_IOC_GET_VERSION, &v);
		int e = 0;
		void *p = s.d->mmap(s.d, NULL, 8192, PROT_READ, MAP_SHARED,
				    s.kfd, KFD_MMAP_OFFSET(3, SOFT_GPU_ID), &e);

		_exit(a == -EBADF && p == MAP_FAILED && e == EBADF ? 0 : 1);
	}
	waitpid(child, &status, 0);
	is_i64(status, 0, "a forked child gets EBADF from ioctl and mmap");
	is_i64(sd_ioctl(&s, KFD_IOC_GET_VERSION, &v), 0,
	       "the parent goes on");
	sd_close(&s);
}

static void test_apertures(void)
{
	struct sd s = sd_open(NULL);
	struct kfd_aperture ap[2];
	struct kfd_ioc_get_process_apertures_new n = { 0 };
	struct kfd_ioc_get_process_apertures old;

	memset(ap, 0, sizeof(ap));
	is_i64(sd_ioctl(&s, KFD_IOC_GET_PROCESS_APERTURES_NEW, &n), 0,
	       "a null array asks for the count");
	is_u64(n.num_of_nodes, 1, "there is one GPU");
	n.apertures_ptr = sd_ptr(ap);
	n.num_of_nodes = 2;
	sd_ioctl(&s, KFD_IOC_GET_PROCESS_APERTURES_NEW, &n);
	is_u64(n.num_of_nodes, 1, "the count comes back");
	is_u64(ap[0].gpu_id, SOFT_GPU_ID, "with the GPU's id");
	is_u64(ap[0].lds_base, 0x0001000000000000, "LDS aperture");
	is_u64(ap[0].scratch_limit, 0x00020000ffffffff, "scratch aperture");
	is_u64(ap[0].gpuvm_base, 0x1000000, "first GPU address");
	is_u64(ap[0].gpuvm_limit, 0x7fffffffffff, "last GPU address");
	is_u64(ap[1].gpu_id, 0, "nothing is written behind the count");
	is_i64(sd_ioctl(&s, KFD_IOC_GET_PROCESS_APERTURES, &old), 0,
	       "the old call works too");
	ok(old.num_of_nodes == 1 && old.node[0].lds_base == ap[0].lds_base,
	   "and says the same");
	sd_close(&s);
}

static void test_vm(void)
{
	struct sd s = sd_open(NULL);
	const int other = s.d->open(s.d, "/dev/dri/renderD128", O_RDWR);
	struct kfd_ioc_acquire_vm a = { (uint32_t)s.drm, SOFT_GPU_ID };

	is_i64(sd_ioctl(&s, KFD_IOC_ACQUIRE_VM, &a), 0,
	       "the same render file may be acquired again");
	a.drm_fd = (uint32_t)other;
	is_i64(sd_ioctl(&s, KFD_IOC_ACQUIRE_VM, &a), -EBUSY,
	       "another render file is EBUSY");
	a.drm_fd = (uint32_t)s.kfd;
	is_i64(sd_ioctl(&s, KFD_IOC_ACQUIRE_VM, &a), -EINVAL,
	       "/dev/kfd is no render file");
	a = (struct kfd_ioc_acquire_vm){ (uint32_t)s.drm, 1 };
	is_i64(sd_ioctl(&s, KFD_IOC_ACQUIRE_VM, &a), -EINVAL,
	       "an unknown GPU is EINVAL");
	s.d->close(s.d, other);
	sd_close(&s);
}

static void test_clocks(void)
{
	struct sd s = sd_open(NULL);
	struct kfd_ioc_get_clock_counters a = { .gpu_id = SOFT_GPU_ID };
	struct kfd_ioc_get_clock_counters b = a;
	const struct timespec nap = { 0, 20000000 };
	uint64_t gpu_ns, host_ns;

	sd_ioctl(&s, KFD_IOC_GET_CLOCK_COUNTERS, &a);
	nanosleep(&nap, NULL);
	sd_ioctl(&s, KFD_IOC_GET_CLOCK_COUNTERS, &b);
	gpu_ns = (b.gpu_clock - a.gpu_clock) * 10;
	host_ns = b.system_clock - a.system_clock;
	is_u64(a.system_freq, 1000000000, "the system clock counts ns");
	ok(gpu_ns >= 19000000, "20 ms are 2,000,000 GPU ticks (%llu ns)",
	   (unsigned long long)gpu_ns);
	ok(host_ns >= 19000000, "the system clock runs alike");
	sd_close(&s);
}

static void test_small_calls(void)
{
	struct sd s = sd_open(NULL);
	struct kfd_ioc_set_memory_policy p = { .gpu_id = SOFT_GPU_ID,
					       .default_policy = 1 };
	struct kfd_ioc_set_scratch_backing_va v = { 0, SOFT_GPU_ID, 0 };
	struct kfd_ioc_set_trap_handler t = { 0, 0, SOFT_GPU_ID, 0 };
	struct kfd_ioc_get_tile_config c = { .gpu_id = SOFT_GPU_ID };
	int32_t xnack = -1;

	is_i64(sd_ioctl(&s, KFD_IOC_SET_MEMORY_POLICY, &p), 0,
	       "SET_MEMORY_POLICY is accepted");
	p.default_policy = 7;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_MEMORY_POLICY, &p), -EINVAL,
	       "a policy that does not exist is EINVAL");
	is_i64(sd_ioctl(&s, KFD_IOC_SET_SCRATCH_BACKING_VA, &v), 0,
	       "SET_SCRATCH_BACKING_VA is accepted");
	is_i64(sd_ioctl(&s, KFD_IOC_SET_TRAP_HANDLER, &t), 0,
	       "SET_TRAP_HANDLER is accepted");
	t.gpu_id = 5;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_TRAP_HANDLER, &t), -EINVAL,
	       "for this GPU only");
	is_i64(sd_ioctl(&s, KFD_IOC_GET_TILE_CONFIG, &c), 0,
	       "GET_TILE_CONFIG works");
	is_u64(c.gb_addr_config, 0x545, "GB_ADDR_CONFIG of a 7900 XTX");
	is_i64(sd_ioctl(&s, KFD_IOC_SET_XNACK_MODE, &xnack), 0,
	       "XNACK can be asked");
	is_i64(xnack, 0, "gfx11 has none");
	xnack = 1;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_XNACK_MODE, &xnack), -EPERM,
	       "and cannot get it");
	sd_close(&s);
}

/* Each works with the card's id, and with the next one finds no card. */
static void test_unknown_gpu(void)
{
	struct sd s = sd_open(NULL);
	struct kfd_ioc_set_memory_policy policy = { 0 };
	struct kfd_ioc_set_scratch_backing_va scratch = { 0 };
	struct kfd_ioc_set_trap_handler trap = { 0 };
	struct kfd_ioc_get_tile_config tile = { 0 };
	struct kfd_ioc_available_memory room = { 0 };
	struct kfd_ioc_acquire_vm vm = { .drm_fd = (uint32_t)s.drm };
	struct kfd_ioc_smi_events smi = { 0 };
	const struct {
		const char *name;
		unsigned long request;
		void *arg;
		uint32_t *gpu_id;
	} t[] = {
		{ "SET_MEMORY_POLICY", KFD_IOC_SET_MEMORY_POLICY, &policy,
		  &policy.gpu_id },
		{ "SET_SCRATCH_BACKING_VA", KFD_IOC_SET_SCRATCH_BACKING_VA,
		  &scratch, &scratch.gpu_id },
		{ "SET_TRAP_HANDLER", KFD_IOC_SET_TRAP_HANDLER, &trap,
		  &trap.gpu_id },
		{ "GET_TILE_CONFIG", KFD_IOC_GET_TILE_CONFIG, &tile,
		  &tile.gpu_id },
		{ "AVAILABLE_MEMORY", KFD_IOC_AVAILABLE_MEMORY, &room,
		  &room.gpu_id },
		{ "ACQUIRE_VM", KFD_IOC_ACQUIRE_VM, &vm, &vm.gpu_id },
		{ "SMI_EVENTS", KFD_IOC_SMI_EVENTS, &smi, &smi.gpu_id },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		*t[i].gpu_id = SOFT_GPU_ID;
		is_i64(sd_ioctl(&s, t[i].request, t[i].arg), 0,
		       "%s of the card", t[i].name);
		*t[i].gpu_id = SOFT_GPU_ID + 1;
		is_i64(sd_ioctl(&s, t[i].request, t[i].arg), -EINVAL,
		       "%s of no card is EINVAL", t[i].name);
	}
	close((int)smi.anon_fd);
	sd_close(&s);
}

static void test_runtime_enable(void)
{
	struct sd s = sd_open(NULL);
	struct kfd_ioc_runtime_enable on = { .mode_mask = 1 }, off = { 0 };
	struct sd_queue q;

	is_i64(sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, &on), 0,
	       "RUNTIME_ENABLE before the first queue works");
	is_i64(sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, &on), -EBUSY,
	       "twice is EBUSY");
	is_i64(sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, &off), 0,
	       "it can be switched off");
	q = sd_queue(&s, 64);
	is_i64(sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, &on), -EEXIST,
	       "after a queue it is EEXIST");
	sd_queue_destroy(&s, &q);
	is_i64(sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, &on), 0,
	       "when the queue is gone it works again");
	sd_queue_buffers_free(&s, &q);
	sd_close(&s);
}

/* A device freed with everything still open must free it all (asan). */
static void test_abandon(void)
{
	struct sd s = sd_open(NULL);
	struct kfd_ioc_create_event e;
	struct sd_queue q = sd_queue(&s, 64);

	sd_event(&s, KFD_EVENT_SIGNAL, true, 0, &e);
	is_u64(e.event_id, 1, "an event and a queue are left behind");
	s.d->munmap(s.d, q.doorbells, KFD_DOORBELL_SLICE_BYTES);
	s.d->free(s.d);
	ok(true, "and free() ends them");
}

static void test_reopen(void)
{
	struct sd s = sd_open(NULL);
	struct kfd_ioc_available_memory a = { .gpu_id = SOFT_GPU_ID };
	struct kfd_ioc_acquire_vm vm = { 0, SOFT_GPU_ID };

	sd_alloc(&s, 1 << 20, VRAM_FLAGS);
	s.d->close(s.d, s.kfd);
	s.kfd = s.d->open(s.d, "/dev/kfd", O_RDWR);
	sd_ioctl(&s, KFD_IOC_AVAILABLE_MEMORY, &a);
	is_u64(a.available, 25753026560, "closing /dev/kfd frees all memory");
	vm.drm_fd = (uint32_t)s.drm;
	is_i64(sd_ioctl(&s, KFD_IOC_ACQUIRE_VM, &vm), 0,
	       "and the device can be set up again");
	sd_close(&s);
}

int main(void)
{
	test_open();
	test_dispatch();
	test_minor();
	test_fork();
	test_apertures();
	test_vm();
	test_clocks();
	test_small_calls();
	test_unknown_gpu();
	test_runtime_enable();
	test_abandon();
	test_reopen();
	return plan_done();
}
