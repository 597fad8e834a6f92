/*
 * What the device refuses is said in one line that names call or packet, field,
 * why, and what would be accepted; and who waits is told.
 */
#include <amdgpu_drm.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/soft/said.h"
#include "tests/soft/softdev.h"

#define HEAD(op, body_dw) (0xc0000000u | ((body_dw) - 1u) << 16 | (op) << 8)
#define AT(p) (uint32_t)sd_ptr(p), (uint32_t)(sd_ptr(p) >> 32)

static _Atomic unsigned unheard;

static void count_unheard(void)
{
	unheard++;
}

static struct sd open_device(void)
{
	const struct soft_options o = { .threads = 1, .kfd_minor = 14,
					.report = said_keep,
					.unheard = count_unheard };

	said_forget();
	unheard = 0;
	return sd_open(&o);
}

/* A line came that has all of these texts. */
static void check_said(const char *a, const char *b, const char *c, const char *what)
{
	bool found = false;
	char *all = said_copy(), *copy = strdup(all), *save = NULL;

	for (char *l = strtok_r(copy, "\n", &save); l;
	     l = strtok_r(NULL, "\n", &save))
		found |= strstr(l, a) && strstr(l, b) && strstr(l, c);
	if (!ok(found, "%s", what))
		diag("wanted %s, %s, %s in:\n%s", a, b, c, all);
	free(copy);
	free(all);
}

static void test_calls(void)
{
	struct sd s = open_device();
	struct sd_queue q;
	struct kfd_ioc_alloc_memory a = { .va_addr = 0x10000000,
					  .gpu_id = SOFT_GPU_ID,
					  .flags = KFD_MEM_VRAM };
	struct kfd_ioc_acquire_vm vm = { (uint32_t)s.kfd, SOFT_GPU_ID };
	union drm_amdgpu_cs cs = { 0 };
	uint32_t none = 0;

	ok(said_nothing(), "what goes well is not said");
	sd_queue_prepare(&s, &q, 64);
	q.a.ring_size = 3000;
	is_i64(sd_queue_create(&s, &q), -EINVAL, "a ring of 3000 bytes");
	check_said("ioctl CREATE_QUEUE", "ring_size is 3000",
	     "accepted: a power of two", "call, field and wanted");
	q.a.ring_size = 4096;
	q.a.type = 3;
	is_i64(sd_queue_create(&s, &q), -EINVAL, "a queue of type 3");
	check_said("CREATE_QUEUE", "type is 3", "accepted: 0 (PM4)", "is named");
	q.a.type = KFD_QUEUE_COMPUTE_AQL;
	q.a.wptr_addr += 8192;
	is_i64(sd_queue_create(&s, &q), -EINVAL, "a write pointer nowhere");
	check_said("CREATE_QUEUE", "Invalid argument", "accepted: the write pointer",
	     "is what is left to say");
	is_i64(sd_ioctl(&s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a), -EINVAL,
	       "no bytes");
	check_said("ALLOC_MEMORY_OF_GPU", "size is 0", "accepted: 1 byte",
	     "is named");
	a.size = 4096;
	a.flags = KFD_MEM_VRAM | KFD_MEM_GTT;
	is_i64(sd_ioctl(&s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a), -EINVAL,
	       "two places");
	check_said("ALLOC_MEMORY_OF_GPU", "flags is 3", "accepted: one of VRAM",
	     "are named");
	is_i64(sd_map(&s, 12345, true), -EINVAL, "a handle of nothing");
	check_said("MAP_MEMORY_TO_GPU", "handle is 12345", "ALLOC_MEMORY_OF_GPU",
	     "is named");
	is_i64(sd_ioctl(&s, KFD_IOC_ACQUIRE_VM, &vm), -EINVAL, "no DRM file");
	check_said("ACQUIRE_VM", "drm_fd is", "accepted: a descriptor of /dev/dri",
	     "is named");
	is_i64(sd_ioctl(&s, KFD_REQUEST(KFD_DIR_WR, 8, 0x82), &none), -ENOTTY,
	       "a number that KFD has not");
	check_said("0xc0084b82", "not there in KFD 1.14", "accepted:", "is named");
	is_i64(s.d->ioctl(s.d, s.drm,
			  DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_CS,
				   union drm_amdgpu_cs), &cs),
	       -EINVAL, "command submission without a context");
	check_said("AMDGPU_CS", "Invalid argument", "accepted: IB chunks",
	     "is named, and what is taken");
	is_i64(sd_ioctl(&s, KFD_IOC_CREATE_QUEUE, NULL), -EFAULT, "no struct");
	is_i64(sd_ioctl(&s, KFD_IOC_CREATE_QUEUE, (void *)16), -EFAULT,
	       "a bad pointer");
	check_said("CREATE_QUEUE", "Bad address", "accepted: addresses",
	     "is named");
	said_forget();
	is_i64(sd_map(&s, 12345, true), -EINVAL, "the same once more");
	ok(said_nothing(), "is not said again");
	sd_close(&s);
}

/* A queue of the type whose first packet is dw; the lines it leads to. */
static void run_packet(uint32_t type, const uint32_t *dw, size_t n,
		       const char *packet, const char *why,
		       const char *accepted)
{
	struct sd s = open_device();
	struct sd_queue q;
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	uint32_t result = 99;

	sd_event(&s, KFD_EVENT_HW_EXCEPTION, false, 0, &e);
	d.event_id = e.event_id;
	sd_queue_prepare(&s, &q, 64);
	memset(q.ring, 0, 4096);
	q.a.type = type;
	if (type == KFD_QUEUE_SDMA)
		q.a.eop_addr = q.a.eop_size = q.a.cwsr_addr = q.a.cwsr_size =
			q.a.ctl_stack_size = 0;
	is_i64(sd_queue_create(&s, &q), 0, "a queue for %s", packet);
	memcpy(q.ring, dw, n * 4);
	q.q->write_dispatch_id = type == KFD_QUEUE_SDMA ? n * 4 : n;
	s.d->ring(s.d, q.doorbell, q.q->write_dispatch_id);
	is_i64(sd_wait_event(&s, &d, 10000, &result), 0, "the wait ends");
	is_u64(result, 0, "before its time");
	is_u64(d.hw.memory_lost, 1, "with a reset");
	check_said(packet, why, accepted, "and the packet is named");
	is_u64(unheard, 0, "the program heard of it");
	is_i64(sd_queue_create(&s, &q), -EIO, "no queue can be made then");
	check_said("CREATE_QUEUE", "Input/output error", "open /dev/kfd anew",
	     "which is said, too");
	sd_queue_destroy(&s, &q);
	sd_close(&s);
}
#define RUN_PACKET(type, packet, why, accepted, ...)                   \
	run_packet(type, (const uint32_t[]){ __VA_ARGS__ },            \
		   sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4, packet, \
		   why, accepted)

static void test_packets(void)
{
	const uint32_t pm4 = KFD_QUEUE_COMPUTE, sdma = KFD_QUEUE_SDMA;

	RUN_PACKET(pm4, "PM4 packet of unknown opcode", "opcode 0x2f",
		   "accepted: NOP", HEAD(0x2f, 1), 0);
	RUN_PACKET(pm4, "PM4 packet SET_UCONFIG_REG", "writes register 0xd844",
		   "accepted: COMPUTE_*", HEAD(0x79, 2), 0x1844, 1);
	RUN_PACKET(pm4, "PM4 packet SET_UCONFIG_REG", "event is not counted",
		   "there are no cycles", HEAD(0x79, 2), 0x19c0, 3);
	RUN_PACKET(pm4, "PM4 packet COPY_DATA", "src_sel 6",
		   "accepted: 0 (a register)", HEAD(0x40, 5), 6 | 5u << 8, 0, 0,
		   0, 0);
	RUN_PACKET(pm4, "PM4 packet WAIT_REG_MEM", "would not end",
		   "register 0xc040 is 0x0", HEAD(0x3c, 6), 3, 0xc040, 0, 1,
		   1, 4);
	RUN_PACKET(pm4, "PM4 packet RELEASE_MEM", "data_sel 5",
		   "accepted: data_sel 0..3", HEAD(0x49, 7), 0x514, 5u << 29,
		   0, 0, 0, 0, 0);
	RUN_PACKET(pm4, "PM4 packet EVENT_WRITE", "no counters to sample",
		   "accepted: events of 1 dword", HEAD(0x46, 3), 0x238, 0, 0);
	RUN_PACKET(pm4, "PM4 packet DISPATCH_DIRECT", "initiator 0x0",
		   "accepted: with bit 0", HEAD(0x15, 4), 1, 1, 1, 0);
	RUN_PACKET(sdma, "SDMA packet of unknown opcode", "opcode 99",
		   "accepted: NOP", 99);
	RUN_PACKET(sdma, "SDMA packet ATOMIC", "atomic 1;",
		   "accepted: 7, 8 and 15..25", 10 | 1u << 25, 0, 0, 0, 0, 0,
		   0, 0);
	RUN_PACKET(sdma, "SDMA packet COPY", "9 dwords, but only 7",
		   "were submitted", 1 | 1u << 27, 3, 0, 0, 0, 0, 0);
}

/* An AQL packet of type 4, which no GPU takes. */
static void test_aql(bool signal, bool event)
{
	struct sd s = open_device();
	struct sd_queue q = sd_queue(&s, 64);
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	uint32_t result = 99;

	if (!signal)
		q.q->queue_inactive_signal = 0;
	if (event) {
		sd_event(&s, KFD_EVENT_HW_EXCEPTION, false, 0, &e);
		d.event_id = e.event_id;
	}
	*(volatile uint16_t *)q.ring = AQL_AGENT_DISPATCH;
	q.q->write_dispatch_id = 1;
	s.d->ring(s.d, q.doorbell, 0);
	if (event)
		is_i64(sd_wait_event(&s, &d, 10000, &result), 0,
		       "who has an event is told of a reset");
	for (int i = 0; i < 10000 && !(signal ? q.inactive->value != 0 :
				       event  ? result == 0 :
						unheard); i++)
		usleep(1000);
	if (signal)
		ok(q.inactive->value, "the queue's signal says that it ended");
	else if (event)
		is_u64(d.hw.memory_lost, 1, "which lost memory");
	is_u64(unheard, !signal && !event,
	       "who can be told by nothing is known");
	check_said("queue 0 (AQL)", "unsupported type 4", "accepted:",
	     "and the packet is named");
	sd_queue_destroy(&s, &q);
	sd_close(&s);
}

int main(void)
{
	test_calls();
	test_packets();
	test_aql(true, false);
	test_aql(false, true);
	test_aql(false, false);
	return plan_done();
}
