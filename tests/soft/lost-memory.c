/*
 * Memory of the program that the GPU was given and that is taken away, or that
 * was never there: user pointers, SVM ranges, arguments of ioctls.  A kernel
 * that goes there faults with an event, and the program lives.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/code.h"
#include "tests/soft/softdev.h"

#define PAGE 4096u
#define SIZE (4 * PAGE)

enum given { BY_USERPTR, BY_SVM };

struct rig {
	struct sd s;
	struct sd_mem kernel, args;
	struct sd_queue q;
	struct kfd_event_data event;
};

static struct rig rig_open(void)
{
	const struct soft_options o = { .threads = 2 };
	struct rig r = { .s = sd_open(&o) };
	struct kfd_ioc_create_event e;

	r.kernel = sd_alloc(&r.s, PAGE, VRAM_FLAGS);
	r.args = sd_alloc(&r.s, PAGE, GTT_FLAGS);
	r.q = sd_queue(&r.s, 64);
	sd_event(&r.s, KFD_EVENT_MEMORY, false, 0, &e);
	r.event.event_id = e.event_id;
	return r;
}

static void start_kernel(struct rig *r, const char *name, uint64_t at)
{
	const struct code c = code_of("tests/soft/lost-memory.s", name);
	struct amd_kernel_descriptor *kd = r->kernel.p;
	const struct aql_dispatch p = {
		.header = AQL_HEADER(AQL_KERNEL_DISPATCH, 1, 2, 2),
		.setup = 1,
		.workgroup_size = { 1, 1, 1 },
		.grid_size = { 1, 1, 1 },
		.kernel_object = sd_ptr(kd),
		.kernarg_address = sd_ptr(r->args.p),
	};

	memcpy((uint8_t *)r->kernel.p + 256, c.dw, c.size_bytes);
	kd->kernel_code_entry_byte_offset = 256;
	kd->compute_pgm_rsrc1 = 0xc0000;
	kd->compute_pgm_rsrc2 = 2u << 1;
	kd->kernel_code_properties = AMD_PROP_WAVE32 | AMD_PROP_KERNARG_PTR;
	memcpy(r->args.p, &at, 8);
	sd_submit(&r->s, &r->q, &p);
}

/* To the GPU, at the address that it has. */
static uint8_t *give(struct rig *r, enum given how, uint8_t *at)
{
	struct {
		struct kfd_ioc_svm a;
		struct kfd_svm_attr attr[2];
	} svm = {
		{ sd_ptr(at), SIZE, KFD_SVM_OP_SET, 2 },
		{ { KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID },
		  { KFD_SVM_ATTR_SET_FLAGS, KFD_SVM_FLAG_ALWAYS_MAPPED } },
	};
	struct kfd_ioc_alloc_memory a = {
		.va_addr = sd_ptr(at), .size = SIZE, .gpu_id = SOFT_GPU_ID,
		.mmap_offset = sd_ptr(at),
		.flags = KFD_MEM_USERPTR | KFD_MEM_WRITABLE,
	};
	int ret;

	if (how == BY_SVM) {
		ret = sd_ioctl(&r->s, KFD_IOC_SVM(2), &svm);
	} else {
		ret = sd_ioctl(&r->s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a);
		if (!ret)
			ret = sd_map(&r->s, a.handle, true);
	}
	if (ret)
		diag("giving memory: %s", strerror(-ret));
	return ret ? NULL : at;
}

/* ------------------------------------------------- ways to lose memory -- */

static char file[64];
static int file_fd;

/* Far from where the kernel places what others map: holes stay holes. */
static void *lonely_place(void)
{
	static uintptr_t next = 0x7eb000000000;

	next += 1 << 20;
	return (void *)next;
}

static uint8_t *map_anonymous(void)
{
	return mmap(lonely_place(), SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE |
			    MAP_FIXED_NOREPLACE, -1, 0);
}

static uint8_t *map_file(void)
{
	if (ftruncate(file_fd, SIZE))
		return MAP_FAILED;
	return mmap(lonely_place(), SIZE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_POPULATE | MAP_FIXED_NOREPLACE, file_fd,
		    0);
}

/* Behind the device's back, as a system call of the program would do it. */
static void lose_unmap(uint8_t *at)
{
	munmap(at, SIZE);
}

static void lose_protect(uint8_t *at)
{
	mprotect(at, SIZE, PROT_NONE);
}

static void lose_write(uint8_t *at)
{
	mprotect(at, SIZE, PROT_READ);
}

static void lose_file(uint8_t *at)
{
	(void)at;
	if (ftruncate(file_fd, 0))
		diag("ftruncate failed");
}

static void lose_move(uint8_t *at)
{
	void *to = sd_reserve(SIZE);

	mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

static const struct {
	const char *name;
	uint8_t *(*map)(void);
	void (*lose)(uint8_t *at);
	bool readable; /* still */
} losses[] = {
	{ "unmapped", map_anonymous, lose_unmap, false },
	{ "protected", map_anonymous, lose_protect, false },
	{ "read only", map_anonymous, lose_write, true },
	{ "truncated", map_file, lose_file, false },
	{ "moved", map_anonymous, lose_move, false },
};

/* One kernel at lost memory: the memory event says where. */
static void test_loss(size_t loss, enum given how, const char *kernel)
{
	const char *given = how == BY_SVM ? "SVM" : "user pointer";
	const bool reads = !strcmp(kernel, "load") || !strcmp(kernel, "scalar");
	struct rig r = rig_open();
	uint8_t *at = losses[loss].map();
	uint32_t result = 0;
	struct soft_fault f = { 0 };

	if (at == MAP_FAILED || !give(&r, how, at)) {
		ok(false, "memory is given");
		return;
	}
	losses[loss].lose(at);
	start_kernel(&r, kernel, sd_ptr(at) + PAGE);
	if (reads && losses[loss].readable) {
		is_i64(sd_wait_event(&r.s, &r.event, 20, &result), 0,
		       "%s, %s, %s: waiting works", given, losses[loss].name,
		       kernel);
		is_u64(result, KFD_WAIT_TIMEOUT, "%s, %s, %s: no fault", given,
		       losses[loss].name, kernel);
	} else {
		sd_wait_event(&r.s, &r.event, 5000, &result);
		is_u64(result, KFD_WAIT_COMPLETE, "%s, %s, %s: a memory event",
		       given, losses[loss].name, kernel);
		is_u64(r.event.memory.va, sd_ptr(at) + PAGE,
		       "%s, %s, %s: with the page", given, losses[loss].name,
		       kernel);
		ok(soft_last_fault(r.s.d, &f) &&
			   f.kind == SOFT_FAULT_MEMORY &&
			   (f.write == !reads || !strcmp(kernel, "atomic")),
		   "%s, %s, %s: and the direction (%s)", given,
		   losses[loss].name, kernel, f.text);
	}
	sd_queue_destroy(&r.s, &r.q);
	sd_close(&r.s);
}

/* Under a kernel that is at work there. */
static void test_under_kernel(void)
{
	for (int i = 0; i < 4; i++) {
		struct rig r = rig_open();
		uint8_t *at = map_file();
		uint32_t result = 0;

		give(&r, i % 2 ? BY_SVM : BY_USERPTR, at);
		start_kernel(&r, "busy", sd_ptr(at) + PAGE);
		usleep(2000);
		if (i < 2)
			lose_file(at);
		else
			lose_protect(at);
		sd_wait_event(&r.s, &r.event, 5000, &result);
		is_u64(result, KFD_WAIT_COMPLETE,
		       "%d: memory lost under a kernel is an event", i);
		sd_queue_destroy(&r.s, &r.q);
		sd_close(&r.s);
		munmap(at, SIZE);
	}
}

/* The packet processor's own accesses: kernel arguments no, but signals. */
static void test_packets(void)
{
	struct rig r = rig_open();
	uint8_t *at = map_anonymous();
	struct aql_barrier b = sd_barrier(AQL_BARRIER_AND, NULL);
	struct soft_fault f = { 0 };
	uint32_t result = 0;

	give(&r, BY_USERPTR, at);
	b.completion_signal = sd_ptr(at) + PAGE;
	lose_protect(at);
	sd_submit(&r.s, &r.q, &b);
	sd_wait_event(&r.s, &r.event, 5000, &result);
	is_u64(result, KFD_WAIT_COMPLETE, "a lost signal is a memory event");
	ok(soft_last_fault(r.s.d, &f), "which is recorded");
	has_str(f.text, "memory of the program", "and says whose it was");
	is_i64(sd_queue_destroy(&r.s, &r.q), 0, "the queue can be destroyed");
	sd_close(&r.s);
	munmap(at, SIZE);
}

/* ------------------------------------------------------ signals of others */

static volatile sig_atomic_t own_signals;

static void on_own(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	own_signals++;
	mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1)),
		 PAGE, PROT_READ | PROT_WRITE);
}

/* A program that catches its own SIGSEGV goes on doing so. */
static void test_own_handler(void)
{
	const struct sigaction own = { .sa_sigaction = on_own,
				       .sa_flags = SA_SIGINFO };
	pid_t pid = fork();
	int status = 0;

	if (!pid) { /* before any device of this process */
		sigaction(SIGSEGV, &own, NULL);
		struct rig r = rig_open();
		uint8_t *at = map_anonymous();
		uint32_t result = 0;

		give(&r, BY_USERPTR, at);
		mprotect(at, PAGE, PROT_NONE);
		*(volatile uint8_t *)at = 1;
		if (own_signals != 1)
			_exit(1);
		lose_protect(at);
		start_kernel(&r, "store", sd_ptr(at) + PAGE);
		sd_wait_event(&r.s, &r.event, 5000, &result);
		if (result != KFD_WAIT_COMPLETE || own_signals != 1)
			_exit(2);
		signal(SIGSEGV, SIG_DFL);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	is_i64(status, 0, "the program's handler gets its own faults only");
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL); /* not a sanitizer's */
		struct rig r = rig_open();
		uint8_t *at = map_anonymous();

		give(&r, BY_USERPTR, at);
		mprotect(at, PAGE, PROT_NONE);
		*(volatile uint8_t *)at = 1;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
	   "and without a handler it dies of them");
}

/* ------------------------------------------------- what was never there -- */

static void test_refused_ranges(void)
{
	struct rig r = rig_open();
	uint8_t *at = map_anonymous(), *hole = map_anonymous();
	const struct {
		uint64_t start, size;
		int want;
		const char *name;
	} t[] = {
		{ sd_ptr(hole), SIZE, -EFAULT, "not mapped" },
		{ sd_ptr(at), 0, -EINVAL, "empty" },
		{ sd_ptr(at) + 8, PAGE, -EINVAL, "misaligned" },
		{ sd_ptr(at), PAGE + 8, -EINVAL, "of half a page" },
		{ 0x7fffffff0000, 0x20000, -EFAULT, "beyond the addresses" },
		{ UINT64_MAX - PAGE + 1, PAGE, -EOVERFLOW, "at the very end" },
		{ sd_ptr(at), UINT64_MAX - PAGE + 1, -EOVERFLOW, "that wraps" },
		{ PAGE, 0x7ffffffee000, -EFAULT, "of everything" },
	};

	munmap(hole, SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct kfd_ioc_svm a = { t[i].start, t[i].size,
					 KFD_SVM_OP_SET, 0 };

		is_i64(sd_ioctl(&r.s, KFD_IOC_SVM(0), &a), t[i].want,
		       "an SVM range %s is refused", t[i].name);
	}
	struct {
		struct kfd_ioc_svm a;
		struct kfd_svm_attr attr[4];
	} many = { { sd_ptr(at), SIZE, KFD_SVM_OP_SET, UINT32_MAX }, { { 0 } } };

	is_i64(sd_ioctl(&r.s, KFD_IOC_SVM(4), &many), -EINVAL,
	       "more attributes than were passed are refused");
	sd_queue_destroy(&r.s, &r.q);
	sd_close(&r.s);
	munmap(at, SIZE);
}

/* munmap() calls that the kernel refuses leave the GPU's memory alone. */
static void test_refused_unmaps(void)
{
	struct rig r = rig_open();
	uint8_t *at = map_anonymous();
	uint32_t result = 0, *word;

	give(&r, BY_USERPTR, at);
	is_i64(r.s.d->munmap(r.s.d, at + 8, PAGE), -EINVAL, "misaligned");
	is_i64(r.s.d->munmap(r.s.d, at, 0), -EINVAL, "of nothing");
#ifdef __SANITIZE_THREAD__
	skip("the sanitizer believes that munmap() worked");
#else
	is_i64(r.s.d->munmap(r.s.d, at - PAGE, SIZE_MAX - 64), -EINVAL,
	       "of more than there is");
#endif
	word = (uint32_t *)(at + PAGE);
	*word = 0xff;
	start_kernel(&r, "store", sd_ptr(word));
	for (int i = 0; i < 10000 && __atomic_load_n(word, __ATOMIC_ACQUIRE);
	     i++)
		usleep(1000);
	is_u64(__atomic_load_n(word, __ATOMIC_ACQUIRE), 0,
	       "the kernel reached its memory");
	is_i64(sd_wait_event(&r.s, &r.event, 0, &result), 0, "waiting works");
	is_u64(result, KFD_WAIT_TIMEOUT, "there is no fault");
	sd_queue_destroy(&r.s, &r.q);
	sd_close(&r.s);
	munmap(at, SIZE);
}

/* A buffer that others hold as a file cannot be cut off by them. */
static void test_exported(void)
{
	struct rig r = rig_open();
	struct sd_mem m = sd_alloc(&r.s, SIZE, VRAM_FLAGS);
	struct kfd_ioc_export_dmabuf x = { .handle = m.handle };

	is_i64(sd_ioctl(&r.s, KFD_IOC_EXPORT_DMABUF, &x), 0, "exported");
	is_i64(ftruncate((int)x.dmabuf_fd, 0), -1, "it keeps its size");
	is_i64(ftruncate((int)x.dmabuf_fd, 100 * SIZE), -1, "in both ways");
	((volatile uint32_t *)m.p)[5] = 6;
	is_u64(((volatile uint32_t *)m.p)[5], 6, "and its pages");
	close((int)x.dmabuf_fd);
	sd_queue_destroy(&r.s, &r.q);
	sd_close(&r.s);
}

/* Every ioctl, with structures and arrays that are not there. */
static void test_pointers(void)
{
	struct rig r = rig_open();
	uint8_t *bad = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	uint8_t *edge = map_anonymous();
	struct kfd_ioc_map_memory map = { r.args.handle, sd_ptr(bad), 1, 0 };
	struct kfd_ioc_wait_events w = { sd_ptr(bad), 1, 0, 0, 0 };
	struct kfd_ioc_get_process_apertures_new ap = { sd_ptr(bad), 2, 0 };
	unsigned asked = 0, refused = 0;

	munmap(edge + PAGE, PAGE);
	for (unsigned nr = 1; nr < 0x30; nr++)
		for (unsigned size = 1; size < 200; size += 33)
			for (int i = 0; i < 2; i++) {
				const unsigned long q =
					_IOC(_IOC_READ | _IOC_WRITE, 'K', nr,
					     size);
				void *p = i ? bad : edge + PAGE - size / 2;
				const int ret = sd_ioctl(&r.s, q, p);

				if (ret == -ENOTTY)
					continue;
				asked++;
				refused += ret == -EFAULT;
			}
	ok(asked > 200, "ioctls were asked (%u)", asked);
	is_u64(refused, asked, "structures that are not there are EFAULT");
	is_i64(sd_ioctl(&r.s, KFD_IOC_MAP_MEMORY_TO_GPU, &map), -EFAULT,
	       "and so are device ids");
	is_i64(sd_ioctl(&r.s, KFD_IOC_WAIT_EVENTS, &w), -EFAULT,
	       "and the events of a wait");
	is_i64(sd_ioctl(&r.s, KFD_IOC_GET_PROCESS_APERTURES_NEW, &ap), -EFAULT,
	       "and room for apertures");
	for (unsigned nr = 0; nr < 0x50; nr++)
		for (unsigned size = 8; size < 200; size += 48)
			r.s.d->ioctl(r.s.d, r.s.drm,
				     _IOC(_IOC_READ | _IOC_WRITE, 'd', nr,
					  size),
				     edge + PAGE - size / 2);
	ok(true, "DRM's ioctls are survived");
	sd_queue_destroy(&r.s, &r.q);
	sd_close(&r.s);
	munmap(bad, PAGE);
}

int main(void)
{
	static const char *const kernels[] = { "load", "store", "atomic",
					       "scalar" };

	snprintf(file, sizeof(file), "/tmp/t0-lost-XXXXXX");
	file_fd = mkstemp(file);
	unlink(file);
	test_own_handler();
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
		for (int how = 0; how < 2; how++)
			for (size_t k = 0; k < ARRAY_SIZE(kernels); k++)
				test_loss(i, (enum given)how, kernels[k]);
	test_under_kernel();
	test_packets();
	test_refused_ranges();
	test_refused_unmaps();
	test_exported();
	test_pointers();
	return plan_done();
}
