/*
 * Trap handlers on the bare ABI: s_trap, what the handler finds and may do,
 * address watches, and how debugger and runtime hear of it.
 *
 * The oracles are the kernel's first-level handler for gfx11, whose registers
 * the program's handler gets (cwsr_trap_handler_gfx10.asm), kfd_debug.c and
 * amdgpu_amdkfd_gfx_v11.c in Linux 6.12.  Kernels and handlers are in traps.s.
 */
#include <poll.h>
#include <unistd.h>

#include "tests/code.h"
#include "tests/soft/said.h"
#include "tests/soft/softdev.h"

#define EC(name) KFD_EC_MASK(KFD_EC_##name)
#define SLOT 512 /* bytes for each of `labels`, behind the descriptor's */
#define WATCHED 4096 /* in the second page of the results */

static struct sd s;
static struct sd_queue q;
static struct sd_mem code, arg, out;
static struct amd_signal *done;
static uint32_t *result;
static const char *const labels[] = { "trapping", "recording", "halting",
				      "touching", "counting" };

/* Where it stands in the page of code. */
static uint32_t code_at(const char *label)
{
	uint32_t i = 0;

	while (strcmp(labels[i], label))
		i++;
	return (i + 1) * SLOT;
}

static void begin_kernel(const struct soft_options *o)
{
	uint64_t *kernarg;

	s = sd_open(o);
	code = sd_alloc(&s, 4096, VRAM_FLAGS);
	arg = sd_alloc(&s, 4096, GTT_FLAGS);
	out = sd_alloc(&s, 8192, GTT_FLAGS);
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		const struct code c = code_of("tests/soft/traps.s", labels[i]);

		memcpy((uint8_t *)code.p + code_at(labels[i]), c.dw,
		       c.size_bytes);
	}
	kernarg = arg.p;
	result = out.p;
	kernarg[0] = sd_ptr(result);
	kernarg[1] = sd_ptr(out.p) + WATCHED;
}

static void begin_queue(void)
{
	q = sd_queue(&s, 64);
	done = (void *)((uint8_t *)q.sig.p + 1024);
	done->kind = AMD_SIGNAL_USER;
}

static int set_handler(const char *label, uint64_t tma)
{
	struct kfd_ioc_set_trap_handler a = {
		label ? sd_ptr(code.p) + code_at(label) : 0, tma, SOFT_GPU_ID, 0
	};

	return sd_ioctl(&s, KFD_IOC_SET_TRAP_HANDLER, &a);
}

static void submit_kernel(const char *label)
{
	struct amd_kernel_descriptor *kd = code.p;
	const struct aql_dispatch p = {
		.header = AQL_HEADER(AQL_KERNEL_DISPATCH, 1, 2, 2),
		.setup = 1,
		.workgroup_size = { 1, 1, 1 },
		.grid_size = { 1, 1, 1 },
		.kernel_object = sd_ptr(kd),
		.kernarg_address = sd_ptr(arg.p),
		.completion_signal = sd_ptr(done),
	};

	memset(result, 0, 8192);
	*kd = (struct amd_kernel_descriptor){
		.kernel_code_entry_byte_offset = code_at(label),
		.kernel_code_properties = AMD_PROP_WAVE32 |
					  AMD_PROP_KERNARG_PTR,
		.compute_pgm_rsrc1 = 1, /* 16 VGPRs */
		.compute_pgm_rsrc2 = 2u << 1,
	};
	done->value = 1;
	sd_submit(&s, &q, &p);
}

/* ------------------------------------------------------------ debugger -- */

static int call_debug(uint32_t op, struct kfd_ioc_dbg_trap *a)
{
	a->pid = (uint32_t)getpid();
	a->op = op;
	return sd_ioctl(&s, KFD_IOC_DBG_TRAP, a);
}

static int attach_debugger(int fd, uint64_t mask)
{
	struct kfd_debug_runtime info;
	struct kfd_ioc_dbg_trap a = { .enable = {
		mask, sd_ptr(&info), sizeof(info), (uint32_t)fd } };

	return call_debug(KFD_DBG_ENABLE, &a);
}

static int detach_debugger(void)
{
	struct kfd_ioc_dbg_trap a = { 0 };

	return call_debug(KFD_DBG_DISABLE, &a);
}

static void enable_runtime(void)
{
	struct kfd_ioc_runtime_enable a = { 0x1234, 3, 0 };

	is_i64(sd_ioctl(&s, KFD_IOC_RUNTIME_ENABLE, &a), 0, "the runtime");
}

/* ---------------------------------------------------------------- traps -- */

/* `pc`: of s_trap, the sixth instruction of `trapping` with literal. */
static void check_registers(uint64_t tma, bool debugger)
{
	const uint64_t at = sd_ptr(code.p) + code_at("trapping") + 8 + 4 + 4 +
			    8 + 4;
	const uint32_t *t = &result[4];

	is_u64(t[0], (uint32_t)at, "TTMP0 is the low PC of s_trap");
	is_u64(t[1], (uint32_t)(at >> 32) | 5u << 16,
	       "TTMP1 its high PC and the trap's number");
	is_u64(t[2], q.next - 1, "TTMP6 is the packet");
	is_u64(t[3], 0, "TTMP8 the workgroup");
	is_u64(t[4], (debugger ? 1u << 23 : 0) | 1u << 6,
	       "TTMP11 is the wave, without scratch, %s debugger",
	       debugger ? "with a" : "without");
	is_u64(t[5] & 0x2021, 1, "TTMP12 is STATUS before the trap: SCC, "
				 "neither PRIV nor HALT");
	is_u64(t[6] | (uint64_t)t[7] << 32, tma, "TTMP14 and 15 its memory");
	is_u64(result[2], 77, "the kernel goes on behind s_trap");
	is_u64(result[3], 1, "with the SCC that it had");
}

static void test_runtime(void)
{
	struct kfd_cwsr_header *h = q.cwsr.p;
	uint64_t *payload = (uint64_t *)((uint8_t *)arg.p + 1024);
	struct kfd_ioc_create_event e;

	sd_event(&s, KFD_EVENT_SIGNAL, true, 0, &e);
	h->err_payload_addr = sd_ptr(payload);
	h->err_event_id = e.event_id;
	is_i64(set_handler("recording", 0x123456789abc), 0, "a trap handler");
	submit_kernel("trapping");
	ok(sd_wait_value(done, 0, 5000), "a kernel with s_trap completes");
	check_registers(0x123456789abc, false);
	is_u64(*payload, EC(WAVE_TRAP), "the runtime hears of it");
}

static void test_debugger(int fd[2])
{
	struct kfd_ioc_dbg_trap a = { .event = { EC(WAVE_TRAP), 9, 9 } };
	struct pollfd f = { .fd = fd[0], .events = POLLIN };

	is_i64(attach_debugger(fd[1], EC(WAVE_TRAP)), 0, "a debugger attaches");
	submit_kernel("trapping");
	is_i64(poll(&f, 1, 5000), 1, "it is told of the trap");
	is_i64(call_debug(KFD_DBG_QUERY_DEBUG_EVENT, &a), 0, "and asks");
	is_u64(a.event.exception_mask & EC(WAVE_TRAP), EC(WAVE_TRAP),
	       "a wave's trap");
	is_u64(a.event.queue_id, q.a.queue_id, "of this queue");
	ok(sd_wait_value(done, 0, 5000), "the kernel completes");
	check_registers(0x123456789abc, true);
	is_i64(detach_debugger(), 0, "it leaves");
}

static void test_halt(void)
{
	set_handler("halting", 0);
	submit_kernel("trapping");
	ok(sd_stays(done, 1, 600), "a halted wave never completes");
	ok(said("halted: queue 0 (AQL): the program's trap handler"),
	   "who runs the device is told");
	is_i64(sd_queue_destroy(&s, &q), 0, "its queue can be destroyed");
	sd_queue_buffers_free(&s, &q);
	begin_queue();
	is_i64(set_handler("recording", 0), 0,
	       "which was no hang of the card: work goes on");
	submit_kernel("trapping");
	ok(sd_wait_value(done, 0, 5000), "in another queue");
}

static void test_without(void)
{
	set_handler(NULL, 0);
	submit_kernel("trapping");
	for (int i = 0; i < 500 && !said("without a trap"); i++)
		sd_stays(done, 1, 10);
	ok(said("s_trap 5 without a trap handler"),
	   "without a handler it is a fault");
}

/* -------------------------------------------------------------- watches -- */

static int set_watch(uint32_t mode, uint64_t at, uint32_t mask, uint32_t *id)
{
	struct kfd_ioc_dbg_trap a = { .watch = { at, mode, mask, SOFT_GPU_ID,
						 99 } };
	const int ret = call_debug(KFD_DBG_SET_NODE_ADDRESS_WATCH, &a);

	*id = a.watch.id;
	return ret;
}

static int clear_watch(uint32_t id)
{
	struct kfd_ioc_dbg_trap a = { .unwatch = { SOFT_GPU_ID, id } };

	return call_debug(KFD_DBG_CLEAR_NODE_ADDRESS_WATCH, &a);
}

/* How often a load, a store and an atomic trap, and TRAPSTS. */
static void traps_are(uint32_t times, uint32_t trapsts, const char *what)
{
	submit_kernel("touching");
	ok(sd_wait_value(done, 0, 5000) && result[0] == times &&
		   result[1] == trapsts,
	   "%s: %u traps, TRAPSTS 0x%x (0x%x)", what, result[0], result[1],
	   trapsts);
}

static void test_modes(void)
{
	static const struct {
		const char *what;
		uint32_t mode, times;
	} t[] = {
		{ "a watch for reads: the load", 0, 1 },
		{ "for others: store and atomic", 1, 2 },
		{ "for atomics: one", 2, 1 },
		{ "for all: three", 3, 3 },
	};
	const uint64_t at = sd_ptr(out.p) + WATCHED;
	uint32_t id;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		is_i64(set_watch(t[i].mode, at, UINT32_MAX, &id), 0,
		       "a watch");
		is_u64(id, 0, "the first");
		traps_are(t[i].times, 0x80, t[i].what);
		is_i64(clear_watch(id), 0, "is given back");
	}
	is_i64(clear_watch(0), -EINVAL, "once");
	is_i64(clear_watch(4), -EINVAL, "there are four");
}

static void test_masks(void)
{
	const uint64_t at = sd_ptr(out.p) + WATCHED;
	uint32_t id;

	set_watch(0, at + 100, UINT32_MAX, &id);
	traps_are(1, 0x80, "bits 6:0 do not count");
	set_watch(0, at + 128, UINT32_MAX, &id);
	traps_are(1, 0x80, "the next 128 bytes are others");
	clear_watch(0);
	traps_are(0, 0, "so that they see nothing");
	set_watch(0, at, UINT32_MAX & ~0x80u, &id);
	is_u64(id, 0, "the lowest that is free is taken");
	set_watch(0, at + 128, UINT32_MAX & ~0x80u, &id);
	traps_are(1, 0x80 | 1 << 13, "unless the mask says so");
	set_watch(0, at, UINT32_MAX, &id);
	is_u64(id, 3, "a fourth");
	is_i64(set_watch(0, at, UINT32_MAX, &id), -ENOMEM, "there are no five");
	traps_are(1, 0x80 | 3 << 13, "each has its bit");
}

static void test_watches(int fd[2])
{
	struct kfd_ioc_dbg_trap a = { .launch_override = { 0, 0x80, 0x80, 0 } };
	uint32_t id;

	set_handler("counting", 0);
	is_i64(attach_debugger(fd[1], 0), 0, "a debugger for watches");
	set_watch(3, sd_ptr(out.p) + WATCHED, UINT32_MAX, &id);
	traps_are(0, 0, "a watch traps where that is wanted");
	clear_watch(id);
	is_i64(call_debug(KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE, &a), 0,
	       "as from now on");
	is_u64(a.launch_override.enable_mask, 0, "it was not before");
	test_modes();
	test_masks();
	is_i64(detach_debugger(), 0, "the debugger leaves");
	traps_are(0, 0, "and takes its watches along");
}

int main(void)
{
	const struct soft_options o = { .deadline_ns = 200000000,
					.report = said_keep };
	int fd[2];

	if (pipe(fd))
		return 1;
	begin_kernel(&o);
	enable_runtime();
	begin_queue();
	test_runtime();
	test_debugger(fd);
	test_watches(fd);
	test_halt();
	test_without();
	sd_close(&s);
	return plan_done();
}
