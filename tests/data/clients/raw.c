/*
 * A client without any library: every call is a system call of its own, and
 * its threads are made by clone(), as in programs of Go.
 *
 *	raw run      the squares of 0..63 plus 1000 by a kernel, one a line; a
 *	             thread dispatches, the first waits for the event and is
 *	             sent signals meanwhile; ends by exit() of each thread, 9
 *	raw fork     what an inherited node says in the child, then `raw version`
 *	             executed by a child with an empty environment
 *	raw version  "1.MINOR" of KFD
 *	raw pages    the same squares, with the program's own pages: output is a
 *	             user pointer, arguments are an SVM range; then what the
 *	             handler of SIGSEGV sees of a fault of the program
 *	raw killed   by SIGTERM
 *
 * Exit: 0, 9 after `run`, 1 with the name of what failed.
 */
#include <asm/signal.h>
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/sched.h>

#include "kfd/abi.h"

#define GPU 0xa37cu
#define LANES 64
#define THREAD_BYTES 65536
#define READ_WRITE (PROT_READ | PROT_WRITE)
#define ANY (KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE | KFD_MEM_NO_SUBSTITUTE)
#define GTT (ANY | KFD_MEM_GTT | KFD_MEM_COHERENT | KFD_MEM_UNCACHED)
#define VRAM (ANY | KFD_MEM_VRAM | KFD_MEM_PUBLIC)

typedef uint64_t u64;

static long call(long nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	register u64 r10 __asm__("r10") = d;
	register u64 r8 __asm__("r8") = e;
	register u64 r9 __asm__("r9") = f;
	long ret = nr;

	__asm__ volatile("syscall"
			 : "+a"(ret)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

void *memset(void *to, int c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile char *)to)[i] = (char)c;
	return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

static u64 address(const volatile void *p)
{
	return (u64)(uintptr_t)p;
}

static void say(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	call(__NR_write, 1, address(s), n, 0, 0, 0);
}

static void say_number(u64 v, const char *after)
{
	char text[24];
	int at = sizeof(text);

	text[--at] = 0;
	do
		text[--at] = (char)('0' + v % 10);
	while (v /= 10);
	say(text + at);
	say(after);
}

static long check(long ret, const char *what)
{
	if (ret >= 0)
		return ret;
	say(what);
	say(": errno ");
	say_number((u64)-ret, "\n");
	call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
	return ret;
}

/* -------------------------------------------------------------- device -- */

static int kfd, drm;

static void open_nodes(void)
{
	kfd = (int)check(call(__NR_openat, (u64)AT_FDCWD, address("/dev/kfd"),
			      O_RDWR | O_CLOEXEC, 0, 0, 0), "open /dev/kfd");
	drm = (int)check(call(__NR_open, address("/dev/dri/renderD128"), O_RDWR,
			      0, 0, 0, 0), "open renderD128");
}

static long request(u64 number, void *arg)
{
	return call(__NR_ioctl, (u64)kfd, number, address(arg), 0, 0, 0);
}

static void *allocate(u64 size, uint32_t flags, u64 *handle)
{
	struct kfd_ioc_alloc_memory a = { .size = size, .gpu_id = GPU,
					  .flags = flags };
	uint32_t gpu = GPU;
	struct kfd_ioc_map_memory m = { 0, address(&gpu), 1, 0 };

	a.va_addr = (u64)check(call(__NR_mmap, 0, size, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS, (u64)-1, 0),
			       "reserve");
	check(request(KFD_IOC_ALLOC_MEMORY_OF_GPU, &a), "allocate");
	check(call(__NR_mmap, a.va_addr, size, READ_WRITE,
		   MAP_SHARED | MAP_FIXED, (u64)drm, a.mmap_offset), "mmap");
	m.handle = a.handle;
	check(request(KFD_IOC_MAP_MEMORY_TO_GPU, &m), "map");
	if (handle)
		*handle = a.handle;
	return (void *)(uintptr_t)a.va_addr;
}

/* out[lane] = lane * lane + the third word of the arguments. */
static const uint32_t code[] = {
	0xf4080100, 0xf8000000, /* s_load_b128 s[4:7], s[0:1], 0x0 */
	0x360000ff, 0x000003ff, /* v_and_b32 v0, 0x3ff, v0 */
	0x30020082,		/* v_lshlrev_b32 v1, 2, v0 */
	0xd72c0000, 0x00020100, /* v_mul_lo_u32 v0, v0, v0 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0x4a000006,		/* v_add_nc_u32 v0, s6, v0 */
	0xdc6a0000, 0x00040001, /* global_store_b32 v1, v0, s[4:5] */
	0xbfb00000,		/* s_endpgm */
};

static struct {
	struct amd_queue *queue;
	struct aql_dispatch *ring;
	volatile u64 *doorbell;
	struct amd_signal *done;
	uint32_t *out;
	u64 *arguments;
	struct amd_kernel_descriptor *kernel;
	uint32_t event;
	int first_thread;
} g;

static void make_queue(void)
{
	const struct kfd_cwsr c = kfd_cwsr_sizes(96, 110000, 1);
	struct kfd_ioc_create_queue a = {
		.ring_size = 4096, .gpu_id = GPU,
		.type = KFD_QUEUE_COMPUTE_AQL, .percentage = 100,
		.priority = KFD_QUEUE_PRIORITY_NORMAL,
		.eop_size = KFD_EOP_BYTES, .cwsr_size = c.cwsr_bytes,
		.ctl_stack_size = c.ctl_stack_bytes,
	};
	struct amd_signal *inactive = allocate(4096, GTT, NULL);

	inactive->kind = AMD_SIGNAL_USER;
	g.queue = allocate(4096, GTT, NULL);
	g.ring = allocate(4096, GTT, NULL);
	for (int i = 0; i < 64; i++)
		g.ring[i].header = AQL_INVALID;
	g.queue->base_address = address(g.ring);
	g.queue->size = 64;
	g.queue->read_dispatch_id_field_base_byte_offset = 0x80;
	g.queue->queue_properties = AMD_QUEUE_PROP_PTR64;
	g.queue->queue_inactive_signal = address(inactive);
	a.ring_base = address(g.ring);
	a.wptr_addr = address(&g.queue->write_dispatch_id);
	a.rptr_addr = address(&g.queue->read_dispatch_id);
	a.eop_addr = address(allocate(4096, VRAM, NULL));
	a.cwsr_addr = address(allocate(c.area_bytes, GTT, NULL));
	check(request(KFD_IOC_CREATE_QUEUE, &a), "create queue");
	g.doorbell = (volatile u64 *)(uintptr_t)(
		check(call(__NR_mmap, 0, 8192, READ_WRITE, MAP_SHARED, (u64)kfd,
			   a.doorbell_offset & ~0x1fffull), "doorbell") +
		(long)(a.doorbell_offset & 0x1fff));
}

/* An event that the completion signal raises. */
static void make_event(void)
{
	struct kfd_ioc_create_event e = { .event_type = KFD_EVENT_SIGNAL,
					  .auto_reset = 1 };
	u64 *page = allocate(KFD_EVENT_PAGE_BYTES, GTT, &e.event_page_offset);

	check(request(KFD_IOC_CREATE_EVENT, &e), "create event");
	g.event = e.event_id;
	g.done = allocate(4096, GTT, NULL);
	g.done->kind = AMD_SIGNAL_USER;
	g.done->value = 1;
	g.done->event_id = e.event_id;
	g.done->event_mailbox_ptr = address(&page[e.event_slot_index]);
}

static void make_kernel(void)
{
	uint8_t *p = allocate(4096, VRAM, NULL);

	g.out = allocate(4096, VRAM, NULL);
	g.arguments = allocate(4096, GTT, NULL);
	g.arguments[0] = address(g.out);
	g.arguments[1] = 1000;
	memcpy(p + 256, code, sizeof(code));
	g.kernel = (void *)p;
	g.kernel->kernel_code_entry_byte_offset = 256;
	g.kernel->kernel_code_properties = AMD_PROP_KERNARG_PTR |
					   AMD_PROP_WAVE32;
	g.kernel->compute_pgm_rsrc1 = 1 | AMD_RSRC1_WGP_MODE;
	g.kernel->compute_pgm_rsrc2 = 2u << 1;
}

static void dispatch(void)
{
	struct aql_dispatch *p = &g.ring[0];
	const uint32_t head = AQL_HEADER(AQL_KERNEL_DISPATCH, 1, 2, 2) |
			      1u << 16;

	p->workgroup_size[0] = LANES;
	p->workgroup_size[1] = p->workgroup_size[2] = 1;
	p->grid_size[0] = LANES;
	p->grid_size[1] = p->grid_size[2] = 1;
	p->kernel_object = address(g.kernel);
	p->kernarg_address = address(g.arguments);
	p->completion_signal = address(g.done);
	g.queue->write_dispatch_id = 1;
	__atomic_store_n((uint32_t *)p, head, __ATOMIC_RELEASE);
	__atomic_store_n(g.doorbell, 0, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------- threads -- */

static volatile int handled;
static u64 thread_stack;

static void on_signal(int sig)
{
	(void)sig;
	/* A handler makes calls, too: this one is trapped. */
	if (call(__NR_access, address("/dev/kfd"), 6, 0, 0, 0, 0) == 0)
		handled++;
}

__asm__(".text\n"
	"restore:\n"
	"	mov	$15, %eax\n"
	"	syscall\n"
	"start_thread:\n" /* (flags, stack): runs thread_main on it */
	"	mov	$56, %eax\n"
	"	xor	%edx, %edx\n"
	"	xor	%r10d, %r10d\n"
	"	xor	%r8d, %r8d\n"
	"	syscall\n"
	"	test	%rax, %rax\n"
	"	jz	1f\n"
	"	ret\n"
	"1:	xor	%ebp, %ebp\n"
	"	call	thread_main\n"
	"	hlt\n"
	"unmap_and_exit:\n" /* (stack, size): as musl's threads end */
	"	mov	$11, %eax\n"
	"	syscall\n"
	"	mov	$3, %edi\n"
	"	mov	$60, %eax\n"
	"	syscall\n"
	".globl _start\n"
	"_start:\n"
	"	mov	%rsp, %rdi\n"
	"	and	$-16, %rsp\n"
	"	call	begin\n"
	"	hlt\n");
void restore(void);
long start_thread(u64 flags, u64 stack);
void unmap_and_exit(u64 stack, u64 size);
void thread_main(void);
void begin(u64 *stack);

static void nap(long ms)
{
	const long t[2] = { 0, ms * 1000000 };

	call(__NR_nanosleep, address(t), 0, 0, 0, 0, 0);
}

void thread_main(void)
{
	for (int i = 0; i < 3; i++) {
		nap(20);
		call(__NR_tkill, (u64)g.first_thread, SIGUSR1, 0, 0, 0, 0);
		while (handled == i) /* two that wait would be one */
			nap(5);
	}
	nap(20);
	dispatch();
	nap(60); /* outlives the first thread, most times */
	unmap_and_exit(thread_stack, THREAD_BYTES);
}

static void prepare(void)
{
	struct kfd_ioc_acquire_vm vm = { 0, GPU };

	open_nodes();
	vm.drm_fd = (uint32_t)drm;
	check(request(KFD_IOC_ACQUIRE_VM, &vm), "acquire VM");
	make_event();
	make_queue();
	make_kernel();
}

static void run(void)
{
	const u64 action[4] = { address(on_signal),
				0x04000000 /* SA_RESTORER */ | SA_RESTART,
				address(restore), ~0ull };
	const u64 none = 0, all = ~0ull;
	u64 mask = 0;
	struct kfd_event_data d = { 0 };
	struct kfd_ioc_wait_events w = { address(&d), 1, 1, 60000, 0 };

	prepare();
	check(call(__NR_rt_sigaction, SIGUSR1, address(action), 0, 8, 0, 0),
	      "sigaction");
	/* Even with all blocked, calls are answered. */
	check(call(__NR_rt_sigprocmask, SIG_SETMASK, address(&all), 0, 8, 0, 0),
	      "block");
	g.first_thread = (int)call(__NR_getpid, 0, 0, 0, 0, 0, 0);
	thread_stack = (u64)check(call(__NR_mmap, 0, THREAD_BYTES, READ_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, (u64)-1,
				       0), "stack");
	check(start_thread(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				   CLONE_THREAD | CLONE_SYSVSEM,
			   thread_stack + THREAD_BYTES),
	      "clone");
	check(call(__NR_rt_sigprocmask, SIG_SETMASK, address(&none),
		   address(&mask), 8, 0, 0), "unblock");
	say(mask & 1 << (SIGUSR1 - 1) ? "blocked\n" : "not blocked\n");
	d.event_id = g.event;
	check(request(KFD_IOC_WAIT_EVENTS, &w), "wait");
	say(w.wait_result == KFD_WAIT_COMPLETE && !g.done->value ?
		    "complete\n" : "not complete\n");
	say_number((u64)handled, " signals\n");
	for (int i = 0; i < LANES; i++)
		say_number(g.out[i], "\n");
	call(__NR_exit, 9, 0, 0, 0, 0, 0);
}

/* ---------------------------------------------------------------- rest -- */

static void version(void)
{
	struct kfd_ioc_get_version v = { 0, 0 };

	open_nodes();
	check(request(KFD_IOC_GET_VERSION, &v), "version");
	say_number(v.major, ".");
	say_number(v.minor, "\n");
}

static int ended(long pid)
{
	int status = -1;

	check(call(__NR_wait4, (u64)pid, address(&status), 0, 0, 0, 0), "wait");
	return status;
}

static void fork_both(const char *self)
{
	struct kfd_ioc_get_version v = { 0, 0 };
	const char *argv[] = { self, "version", 0 };
	const char *environment[] = { 0 };
	long pid;

	open_nodes();
	pid = check(call(__NR_fork, 0, 0, 0, 0, 0, 0), "fork");
	if (!pid) {
		say_number((u64)-request(KFD_IOC_GET_VERSION, &v), "\n");
		call(__NR_exit, 5, 0, 0, 0, 0, 0);
	}
	say_number((u64)ended(pid) >> 8, "\n");
	pid = check(call(__NR_vfork, 0, 0, 0, 0, 0, 0), "vfork");
	if (!pid) {
		call(__NR_execve, address(self), address(argv),
		     address(environment), 0, 0, 0);
		call(__NR_exit_group, 6, 0, 0, 0, 0, 0);
	}
	say_number((u64)ended(pid) >> 8, "\n");
}

static void on_fault(int sig)
{
	say_number((u64)sig, " is the signal of a fault\n");
	call(__NR_exit_group, 0, 0, 0, 0, 0, 0);
}

static void own_pages(void)
{
	const u64 action[4] = { address(on_fault), 0x04000000, address(restore),
				0 };
	struct kfd_ioc_alloc_memory a = { .size = 4096, .gpu_id = GPU,
					  .flags = ANY | KFD_MEM_USERPTR };
	uint32_t gpu = GPU;
	struct kfd_ioc_map_memory m = { 0, address(&gpu), 1, 0 };
	const u64 pages = (u64)check(
		call(__NR_mmap, 0, 8192, READ_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, (u64)-1, 0), "pages");
	struct {
		struct kfd_ioc_svm to;
		struct kfd_svm_attr attribute;
	} svm = { { pages + 4096, 4096, KFD_SVM_OP_SET, 1 },
		  { KFD_SVM_ATTR_ACCESS, GPU } };

	prepare();
	check(call(__NR_rt_sigaction, SIGSEGV, address(action), 0, 8, 0, 0),
	      "sigaction");
	a.va_addr = a.mmap_offset = pages;
	check(request(KFD_IOC_ALLOC_MEMORY_OF_GPU, &a), "user pointer");
	m.handle = a.handle;
	check(request(KFD_IOC_MAP_MEMORY_TO_GPU, &m), "map");
	check(request(KFD_IOC_SVM(1), &svm), "SVM");
	g.out = (void *)(uintptr_t)pages;
	g.arguments = (void *)(uintptr_t)(pages + 4096);
	g.arguments[0] = address(g.out);
	g.arguments[1] = 2000;
	dispatch();
	for (int i = 0; *(volatile int64_t *)&g.done->value && i < 500; i++)
		nap(20);
	for (int i = 0; i < LANES; i++)
		say_number(g.out[i], "\n");
	check(call(__NR_munmap, pages, 4096, 0, 0, 0, 0), "munmap");
	*(volatile uint32_t *)g.out = 1;
	say("no fault\n");
}

void begin(u64 *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);
	const char what = stack[0] > 1 ? argv[1][0] : 0;

	if (what == 'r' && argv[1][1] == 'u')
		run();
	else if (what == 'v')
		version();
	else if (what == 'f')
		fork_both(argv[0]);
	else if (what == 'p')
		own_pages();
	else if (what == 'k')
		call(__NR_kill, (u64)call(__NR_getpid, 0, 0, 0, 0, 0, 0),
		     SIGTERM, 0, 0, 0, 0);
	call(__NR_exit_group, what ? 0 : 2, 0, 0, 0, 0, 0);
}
