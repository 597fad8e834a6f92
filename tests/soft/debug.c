/*
 * The debugger's call, and what else may be asked of a queue: CU masks, global
 * wave sync, wave state; on the bare ABI.
 *
 * The oracle is Linux 6.12 (kfd_chardev.c, kfd_debug.c, the queue managers):
 * which errno each refusal has, what queues, device and process report, and
 * that a queue which is still new cannot be suspended.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/soft/softdev.h"

#define EC(name) KFD_EC_MASK(KFD_EC_##name)

static struct sd s;

static int dbg(uint32_t op, struct kfd_ioc_dbg_trap *a)
{
	a->pid = (uint32_t)getpid();
	a->op = op;
	return sd_ioctl(&s, KFD_IOC_DBG_TRAP, a);
}

static int call_simple(uint32_t op)
{
	struct kfd_ioc_dbg_trap a = { 0 };

	return dbg(op, &a);
}

static int enable(int fd, uint64_t mask, struct kfd_debug_runtime *info)
{
	struct kfd_ioc_dbg_trap a = { .enable = {
		mask, sd_ptr(info), sizeof(*info), (uint32_t)fd } };

	return dbg(KFD_DBG_ENABLE, &a);
}

static int enable_runtime(uint32_t mode)
{
	struct kfd_ioc_runtime_enable a = { 0x1234, mode, 0 };

	return sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, &a);
}

static uint64_t query(uint64_t clear, uint32_t *queue, uint32_t *gpu, int *ret)
{
	struct kfd_ioc_dbg_trap a = { .event = { clear, 9, 9 } };

	*ret = dbg(KFD_DBG_QUERY_DEBUG_EVENT, &a);
	*queue = a.event.queue_id;
	*gpu = a.event.gpu_id;
	return a.event.exception_mask;
}

static void test_attach(int fd)
{
	struct kfd_debug_runtime info = { 9, 9, 9 };
	struct kfd_ioc_dbg_trap a = { .pid = 999999999 };
	const uint32_t hw[] = { 4, 5, 6, 7, 8, 9, 10 };

	is_i64(sd_ioctl(&s, KFD_IOC_DBG_TRAP, &a), -ESRCH,
	       "a process that is not there");
	is_i64(call_simple(KFD_DBG_SET_EXCEPTIONS_ENABLED), -EINVAL,
	       "nothing works on a process without debugger");
	is_i64(enable(9999, 0, &info), -EBADF, "no file for the exceptions");
	is_i64(enable(fd, 0, (void *)16), -EFAULT, "a bad pointer");
	is_i64(enable(fd, 0, &info), 0, "the debugger attaches");
	ok(info.runtime_state == 0 && info.r_debug == 0 && !info.ttmp_setup,
	   "the runtime is disabled");
	is_i64(enable(fd, 0, &info), -EALREADY, "once");
	for (size_t i = 0; i < ARRAY_SIZE(hw); i++)
		is_i64(call_simple(hw[i]), -EPERM,
		       "operation %u needs the runtime", hw[i]);
	is_i64(call_simple(15), -EINVAL, "there is no operation 15");
	is_i64(call_simple(KFD_DBG_DISABLE), 0, "the debugger leaves");
	is_i64(call_simple(KFD_DBG_DISABLE), -EINVAL, "once");
}

static void test_hardware(void)
{
	struct kfd_ioc_dbg_trap a = { .launch_override = { 2, 0, 0, 0 } };

	is_i64(dbg(KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE, &a), -EPERM,
	       "an override that is neither or nor replace");
	a.launch_override.override_mode = 0;
	a.launch_override.support_request_mask = 1u << 30;
	is_i64(dbg(KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE, &a), -EACCES,
	       "gfx1100 has no trap at the start of waves");
	is_u64(a.launch_override.support_request_mask, 0x80,
	       "and what is supported is told");
	a.launch_mode.launch_mode = 2;
	is_i64(dbg(KFD_DBG_SET_WAVE_LAUNCH_MODE, &a), -EINVAL,
	       "an unknown way to launch waves");
	a.launch_mode.launch_mode = 0;
	is_i64(dbg(KFD_DBG_SET_WAVE_LAUNCH_MODE, &a), 0, "the normal one");
	a.flags.flags = 2;
	is_i64(dbg(KFD_DBG_SET_FLAGS, &a), -EACCES,
	       "gfx1100 has no precise ALU operations");
	a.flags.flags = 1;
	is_i64(dbg(KFD_DBG_SET_FLAGS, &a), 0, "but of memory");
	is_u64(a.flags.flags, 0, "which was not so before");
	is_i64(dbg(KFD_DBG_SET_FLAGS, &a), 0, "no flag is fine");
	is_u64(a.flags.flags, 1, "and was");
	a.watch.gpu_id = 1;
	is_i64(dbg(KFD_DBG_SET_NODE_ADDRESS_WATCH, &a), -ENODEV,
	       "a watch on a GPU that is not there");
	a.unwatch.gpu_id = SOFT_GPU_ID;
	a.unwatch.id = 0;
	is_i64(dbg(KFD_DBG_CLEAR_NODE_ADDRESS_WATCH, &a), -EINVAL,
	       "a watch that is not there");
}

static uint32_t queue_snapshot(struct kfd_queue_snapshot *to, uint32_t room,
			       uint64_t clear)
{
	struct kfd_ioc_dbg_trap a = { .snapshot = { clear, sd_ptr(to), room,
						    sizeof(*to) } };

	is_i64(dbg(KFD_DBG_GET_QUEUE_SNAPSHOT, &a), 0, "a snapshot of queues");
	return a.snapshot.count;
}

static int suspend_queues(uint32_t op, uint32_t *id, uint32_t n)
{
	struct kfd_ioc_dbg_trap a = { 0 };

	if (op == KFD_DBG_SUSPEND_QUEUES)
		a.suspend.queue_array_ptr = sd_ptr(id), a.suspend.num_queues = n;
	else
		a.resume.queue_array_ptr = sd_ptr(id), a.resume.num_queues = n;
	return dbg(op, &a);
}

static void test_suspend(struct sd_queue *q)
{
	struct amd_signal *done = (void *)((uint8_t *)q->sig.p + 1024);
	struct aql_barrier b = sd_barrier(AQL_BARRIER_AND, done);
	struct kfd_queue_snapshot snap[2] = { { 0 } };
	uint32_t id[2] = { q->a.queue_id, 77 };

	is_i64(suspend_queues(KFD_DBG_SUSPEND_QUEUES, id, 2), 0,
	       "a new queue is not suspended");
	ok(id[0] == (q->a.queue_id | KFD_DBG_QUEUE_INVALID) &&
		   id[1] == (77 | KFD_DBG_QUEUE_INVALID),
	   "nor one that is not there, and both are marked");
	is_u64(queue_snapshot(snap, 0, EC(QUEUE_NEW)), 1,
	       "without room queues are counted");
	is_u64(queue_snapshot(snap, 2, EC(QUEUE_NEW)), 1, "there is one");
	ok(snap[0].queue_id == q->a.queue_id &&
		   snap[0].gpu_id == SOFT_GPU_ID &&
		   snap[0].ring_base == q->a.ring_base &&
		   snap[0].ring_size == q->a.ring_size &&
		   snap[0].wptr_addr == q->a.wptr_addr &&
		   snap[0].rptr_addr == q->a.rptr_addr &&
		   snap[0].cwsr_addr == q->a.cwsr_addr &&
		   snap[0].cwsr_size == q->a.cwsr_size &&
		   snap[0].type == KFD_QUEUE_COMPUTE_AQL,
	   "it is described as it was made");
	is_u64(snap[0].exception_status, EC(QUEUE_NEW), "and is new");
	queue_snapshot(snap, 2, 0);
	is_u64(snap[0].exception_status, 0, "no longer, as that was cleared");
	id[0] = q->a.queue_id;
	is_i64(suspend_queues(KFD_DBG_SUSPEND_QUEUES, id, 1), 1, "now it is");
	is_u64(id[0], q->a.queue_id, "and not marked");
	done->value = 1;
	sd_submit(&s, q, &b);
	ok(sd_stays(done, 1, 50), "a suspended queue takes no packet");
	is_i64(suspend_queues(KFD_DBG_RESUME_QUEUES, id, 1), 1, "it is resumed");
	ok(sd_wait_value(done, 0, 5000), "and goes on");
	is_i64(suspend_queues(KFD_DBG_SUSPEND_QUEUES, NULL, 1), -EINVAL,
	       "queues without an array");
	is_i64(suspend_queues(KFD_DBG_SUSPEND_QUEUES, (void *)16, 1), -EFAULT,
	       "a bad array");
	suspend_queues(KFD_DBG_SUSPEND_QUEUES, id, 1);
}

static void test_exception(struct sd_queue *q, int fd)
{
	struct kfd_ioc_dbg_trap a = { .enabled = { EC(PACKET_UNSUPPORTED) } };
	struct aql_barrier bad = sd_barrier(AQL_AGENT_DISPATCH, NULL);
	struct pollfd f = { .fd = fd, .events = POLLIN };
	uint32_t queue, gpu, info = 0;
	char byte;
	int ret;

	query(0, &queue, &gpu, &ret);
	is_i64(ret, -EAGAIN, "nothing has happened");
	is_i64(dbg(KFD_DBG_SET_EXCEPTIONS_ENABLED, &a), 0, "packets matter");
	a.info = (__typeof__(a.info)){ sd_ptr(&info), 4, q->a.queue_id,
				       KFD_EC_PACKET_UNSUPPORTED, 0 };
	is_i64(dbg(KFD_DBG_QUERY_EXCEPTION_INFO, &a), -ENODATA,
	       "there is no such exception yet");
	sd_submit(&s, q, &bad);
	is_i64(poll(&f, 1, 5000), 1, "the debugger's file becomes readable");
	is_i64(read(fd, &byte, 1), 1, "of one byte");
	is_u64(query(EC(PACKET_UNSUPPORTED), &queue, &gpu, &ret),
	       EC(PACKET_UNSUPPORTED), "the exception");
	ok(!ret && queue == q->a.queue_id && gpu == SOFT_GPU_ID,
	   "of this queue");
	query(0, &queue, &gpu, &ret);
	is_i64(ret, -EAGAIN, "is cleared");
	is_i64(q->inactive->value, 0,
	       "the runtime does not hear of what a debugger takes");
	a.info.source_id = 77;
	is_i64(dbg(KFD_DBG_QUERY_EXCEPTION_INFO, &a), -EINVAL,
	       "information about a queue that is not there");
	a.info.exception_code = 40;
	is_i64(dbg(KFD_DBG_QUERY_EXCEPTION_INFO, &a), -EINVAL,
	       "and of an exception that is none");
}

static void test_device(struct sd_queue *q, int fd)
{
	struct kfd_ioc_dbg_trap a = { .enabled = {
		EC(DEVICE_MEMORY_VIOLATION) } };
	struct aql_barrier b = sd_barrier(AQL_BARRIER_AND, (void *)0x700000000);
	struct kfd_memory_exception m = { 0 };
	struct kfd_device_snapshot snap = { 0 };
	struct pollfd f = { .fd = fd, .events = POLLIN };
	uint32_t queue, gpu;
	int ret;

	dbg(KFD_DBG_SET_EXCEPTIONS_ENABLED, &a);
	sd_submit(&s, q, &b);
	is_i64(poll(&f, 1, 5000), 1, "a page fault is told");
	is_u64(query(0, &queue, &gpu, &ret), EC(DEVICE_MEMORY_VIOLATION),
	       "as the device's");
	is_u64(gpu, SOFT_GPU_ID, "of this GPU");
	a.info = (__typeof__(a.info)){ sd_ptr(&m), sizeof(m), SOFT_GPU_ID,
				       KFD_EC_DEVICE_MEMORY_VIOLATION, 0 };
	is_i64(dbg(KFD_DBG_QUERY_EXCEPTION_INFO, &a), 0, "with information");
	ok(m.va == 0x700000000 && m.not_present && m.gpu_id == SOFT_GPU_ID,
	   "where it was and why");
	a.snapshot = (__typeof__(a.snapshot)){ ~0ull, sd_ptr(&snap), 4,
					       sizeof(snap) };
	is_i64(dbg(KFD_DBG_GET_DEVICE_SNAPSHOT, &a), 0, "the device");
	ok(a.snapshot.count == 1 && snap.gpu_id == SOFT_GPU_ID &&
		   snap.exception_status == EC(DEVICE_MEMORY_VIOLATION) &&
		   snap.device_id == 0x744c && snap.vendor_id == 0x1002 &&
		   snap.gfx_target_version == 110000 && snap.simd_count == 192 &&
		   snap.location_id == 0x300 && snap.num_xcc == 1,
	   "is described");
	query(0, &queue, &gpu, &ret);
	is_i64(ret, -EAGAIN, "its exceptions were cleared by that");
}

static void test_cu_mask(struct sd_queue *q)
{
	uint32_t mask[32] = { 0xf };
	struct kfd_ioc_set_cu_mask a = { q->a.queue_id, 32, sd_ptr(mask) };

	is_i64(sd_ioctl(&s, KFD_IOC_SET_CU_MASK, &a), 0, "a CU mask");
	mask[0] = 0xd;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_CU_MASK, &a), -EINVAL,
	       "half a WGP");
	mask[0] = 3;
	a.num_cu_mask = 0;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_CU_MASK, &a), -EINVAL, "no bits");
	a.num_cu_mask = 33;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_CU_MASK, &a), -EINVAL,
	       "not a multiple of 32");
	a.num_cu_mask = 4096;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_CU_MASK, &a), 0,
	       "a long mask is cut to 1024 bits");
	a.cu_mask_ptr = 16;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_CU_MASK, &a), -EFAULT, "a bad mask");
	a.cu_mask_ptr = sd_ptr(mask);
	a.queue_id = 77;
	is_i64(sd_ioctl(&s, KFD_IOC_SET_CU_MASK, &a), -EFAULT,
	       "a queue that is not there");
}

static void test_gws(struct sd_queue *q)
{
	struct kfd_ioc_alloc_queue_gws a = { 77, 1, 9, 0 };

	is_i64(sd_ioctl(&s, KFD_IOC_ALLOC_QUEUE_GWS, &a), -EINVAL,
	       "global wave sync for a queue that is not there");
	a.queue_id = q->a.queue_id;
	a.num_gws = 0;
	is_i64(sd_ioctl(&s, KFD_IOC_ALLOC_QUEUE_GWS, &a), -EINVAL,
	       "given back without having it");
	a.num_gws = 64;
	is_i64(sd_ioctl(&s, KFD_IOC_ALLOC_QUEUE_GWS, &a), 0, "taken");
	is_u64(a.first_gws, 0, "from the first on");
	is_i64(sd_ioctl(&s, KFD_IOC_ALLOC_QUEUE_GWS, &a), -EBUSY,
	       "by one queue of the process");
	a.num_gws = 0;
	is_i64(sd_ioctl(&s, KFD_IOC_ALLOC_QUEUE_GWS, &a), 0, "given back");
}

static void test_wave_state(struct sd_queue *q)
{
	uint32_t head[4] = { 9, 9, 9, 9 };
	struct kfd_ioc_get_queue_wave_state a = { sd_ptr(head), 9, 9,
						  q->a.queue_id, 0 };
	struct kfd_ioc_update_queue u = { 0, q->a.queue_id, 0, 0, 7 };
	const uint32_t top = q->a.ctl_stack_size;

	is_i64(sd_ioctl(&s, KFD_IOC_GET_QUEUE_WAVE_STATE, &a), -EINVAL,
	       "an active queue has no saved waves");
	sd_ioctl(&s, KFD_IOC_UPDATE_QUEUE, &u);
	is_i64(sd_ioctl(&s, KFD_IOC_GET_QUEUE_WAVE_STATE, &a), 0,
	       "a disabled one may have");
	ok(!a.ctl_stack_used_size && !a.save_area_used_size &&
		   head[0] == top && !head[1] && head[2] == top && !head[3],
	   "none, where both areas begin");
	a.ctl_stack_address = 16;
	is_i64(sd_ioctl(&s, KFD_IOC_GET_QUEUE_WAVE_STATE, &a), -EFAULT,
	       "a bad address");
	a.queue_id = 77;
	is_i64(sd_ioctl(&s, KFD_IOC_GET_QUEUE_WAVE_STATE, &a), -EFAULT,
	       "a queue that is not there");
	u.ring_base = q->a.ring_base;
	u.ring_size = q->a.ring_size;
	u.percentage = 100;
	is_i64(sd_ioctl(&s, KFD_IOC_UPDATE_QUEUE, &u), 0, "it is enabled");
}

/* RUNTIME_ENABLE waits until the debugger has heard of it. */
static void *allow_runtime(void *arg)
{
	struct pollfd f = { .fd = *(int *)arg, .events = POLLIN };
	struct kfd_ioc_dbg_trap a = { .event = { EC(PROCESS_RUNTIME), 0, 0 } };
	uint32_t queue, gpu;
	int ret = -1;

	if (poll(&f, 1, 5000) == 1 &&
	    query(EC(PROCESS_RUNTIME), &queue, &gpu, &ret) ==
		    EC(PROCESS_RUNTIME))
		ret = dbg(KFD_DBG_SEND_RUNTIME_EVENT, &a);
	return ret ? NULL : arg;
}

static void test_runtime(int pipe_fd[2])
{
	struct kfd_debug_runtime info;
	pthread_t t;
	void *good = NULL;
	char byte;

	is_i64(enable(pipe_fd[1], EC(PROCESS_RUNTIME), &info), 0,
	       "a debugger before the runtime");
	pthread_create(&t, NULL, allow_runtime, &pipe_fd[0]);
	is_i64(enable_runtime(1), 0, "the runtime waits for it");
	pthread_join(t, &good);
	ok(good, "the debugger was told first");
	is_i64(enable_runtime(1), -EBUSY, "the runtime is there once");
	is_i64(read(pipe_fd[0], &byte, 1), 1, "by one byte");
	is_i64(call_simple(KFD_DBG_DISABLE), 0, "the debugger leaves");
	is_i64(enable(pipe_fd[1], 0, &info), 0, "and comes back");
	ok(info.runtime_state == 1 && info.r_debug == 0x1234,
	   "to a runtime that is enabled");
}

int main(void)
{
	struct kfd_ioc_set_xnack_mode xnack = { 0 };
	struct kfd_ioc_criu criu = { .op = 9 };
	struct sd_queue q, q2;
	int fd[2];

	s = sd_open(NULL);
	if (pipe(fd))
		return 1;
	is_i64(sd_ioctl(&s, KFD_IOC_CRIU_OP, &criu),
	       geteuid() ? -EACCES : -EINVAL, "processes are not saved");
	test_attach(fd[1]);
	test_runtime(fd);
	test_hardware();
	q = sd_queue(&s, 64);
	is_i64(enable_runtime(1), -EBUSY, "enabling twice is EBUSY before EEXIST");
	is_i64(sd_ioctl(&s, KFD_IOC_SET_XNACK_MODE, &xnack), -EBUSY,
	       "XNACK does not change under queues");
	test_cu_mask(&q);
	test_gws(&q);
	test_wave_state(&q);
	test_suspend(&q);
	is_i64(call_simple(KFD_DBG_DISABLE), 0, "leaving resumes what is suspended");
	{
		struct kfd_debug_runtime info;

		is_i64(enable(fd[1], 0, &info), 0, "the debugger is back");
	}
	test_exception(&q, fd[0]);
	q2 = sd_queue(&s, 64);
	test_device(&q2, fd[0]);
	sd_close(&s);
	return plan_done();
}
