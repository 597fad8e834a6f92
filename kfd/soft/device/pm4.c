/*
 * kfd/soft/device/pm4.c - PM4: compute queues of type 0, and the indirect
 * buffers of AQL vendor packets.
 *
 * The packets that compute programs use are executed, in order and one at a
 * time, so that cache and pipeline events have nothing to wait for; any other
 * is refused by name.
 *
 * A packet that waits is looked at again later: position and registers live
 * in struct soft_pm4, which a queue gets with its first packet.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

#define BODY_MAX_DW 0x4000u
#define IB_MAX_DW 65536u
#define IB_DEPTH 2 /* a buffer may call one more */

/* Registers that SET_SH_REG writes, as dword offsets from SH_BASE. */
#define SH_BASE 0x2c00u
#define SH_COUNT 0x400u
#define SH(reg) ((reg) - SH_BASE)
enum {
	START_X = SH(0x2e04),
	NUM_THREAD_X = SH(0x2e07),
	PGM_LO = SH(0x2e0c),
	PGM_HI = SH(0x2e0d),
	SCRATCH_BASE_LO = SH(0x2e10),
	SCRATCH_BASE_HI = SH(0x2e11),
	PGM_RSRC1 = SH(0x2e12),
	PGM_RSRC2 = SH(0x2e13),
	TMPRING_SIZE = SH(0x2e18),
	PGM_RSRC3 = SH(0x2e28),
	USER_DATA_0 = SH(0x2e40),
};
/* DISPATCH_INITIATOR */
#define INIT_COMPUTE_SHADER_EN (1u << 0)
#define INIT_FORCE_START_AT_000 (1u << 2)
#define INIT_USE_THREAD_DIMENSIONS (1u << 5)
#define INIT_W32 (1u << 15)

struct soft_pm4 {
	uint32_t sh[SH_COUNT];
	/* Where the next packet stands; [0] is the outermost buffer. */
	struct {
		uint64_t va;
		uint32_t left_dw;
	} ib[IB_DEPTH];
	unsigned depth; /* 0: in the ring */
	bool begun;	/* of an AQL packet's buffer */
	uint32_t h;	/* the packet in work, and its body */
	uint32_t n_dw, dw[BODY_MAX_DW];
	/* A dispatch that it starts once the map is released. */
	bool dispatch;
	struct soft_regs regs;
	struct aql_dispatch launch;
};

static struct soft_pm4 *pm4_state(struct soft_queue *q)
{
	if (!q->pm4)
		q->pm4 = xcalloc(1, sizeof(*q->pm4));
	return q->pm4;
}

void soft_pm4_free(struct soft_queue *q)
{
	free(q->pm4);
	q->pm4 = NULL;
}

static enum soft_done refuse_pm4(struct soft_queue *q, const char *why)
{
	return soft_packet_refuse(q, KFD_EC_PACKET_VENDOR, KFD_INACTIVE_VENDOR,
				  0, "PM4 packet 0x%08x at %" PRIu64 ": %s",
				  q->pm4->h, q->read_index, why);
}

static uint64_t join_address(uint32_t lo, uint32_t hi, uint32_t align)
{
	return (uint64_t)hi << 32 | (lo & ~(align - 1));
}

/* ------------------------------------------------------------- packets -- */

static enum soft_done set_sh_reg(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t at = p->dw[0] & 0xffff;

	if (at + p->n_dw - 1 > SH_COUNT)
		return refuse_pm4(q, "SET_SH_REG beyond the shader registers");
	memcpy(&p->sh[at], &p->dw[1], (p->n_dw - 1) * 4);
	return SOFT_DONE;
}

/* dst_sel 2 (L2) and 5 (memory) are memory here. */
static enum soft_done write_data(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t dst = p->dw[0] >> 8 & 0xf, same = p->dw[0] >> 16 & 1;
	const uint64_t va = p->n_dw > 3 ? join_address(p->dw[1], p->dw[2], 4) :
					  0;
	const uint32_t n = p->n_dw - 3;

	if (p->n_dw < 4 || (dst != 2 && dst != 5))
		return refuse_pm4(q,
				  "WRITE_DATA to something other than memory");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *to = soft_cp_at(q, va + (same ? 0 : i * 4ull), 4,
					  SOFT_MEM_WRITE,
					  "destination of WRITE_DATA");

		if (!to)
			return SOFT_REFUSED;
		__atomic_store_n(to, p->dw[3 + i], __ATOMIC_RELEASE);
	}
	return SOFT_DONE;
}

/* data_sel of RELEASE_MEM */
enum { DATA_NONE, DATA_32, DATA_64, DATA_CLOCK };

static enum soft_done release_mem(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t data = p->dw[1] >> 29, irq = p->dw[1] >> 24 & 7;
	const uint64_t va = join_address(p->dw[2], p->dw[3], 4);
	const uint64_t value = data == DATA_CLOCK ?
				       soft_gpu_clock() :
				       join_address(p->dw[4], p->dw[5], 1);
	void *to = NULL;

	if (p->n_dw < 7 || data > DATA_CLOCK)
		return refuse_pm4(q, "RELEASE_MEM with an unknown data_sel");
	if (data != DATA_NONE) {
		to = soft_cp_at(q, va, data == DATA_32 ? 4 : 8, SOFT_MEM_WRITE,
				"destination of RELEASE_MEM");
		if (!to)
			return SOFT_REFUSED;
	}
	if (data == DATA_32)
		__atomic_store_n((uint32_t *)to, (uint32_t)value,
				 __ATOMIC_SEQ_CST);
	else if (to)
		__atomic_store_n((uint64_t *)to, value, __ATOMIC_SEQ_CST);
	if (irq)
		soft_event_interrupt(q->dev, p->dw[6]);
	soft_wake_all(q->dev);
	return SOFT_DONE;
}

bool soft_compare(unsigned function, uint64_t value, uint64_t reference)
{
	switch (function) {
	case 0: /* always */
		return true;
	case 1:
		return value < reference;
	case 2:
		return value <= reference;
	case 3:
		return value == reference;
	case 4:
		return value != reference;
	case 5:
		return value >= reference;
	default:
		return value > reference;
	}
}

static enum soft_done wait_reg_mem(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint64_t va = join_address(p->dw[1], p->dw[2], 4);
	const uint32_t *at;

	if (p->n_dw < 6 || (p->dw[0] >> 4 & 3) != 1)
		return refuse_pm4(q, "WAIT_REG_MEM for something other than "
				     "memory");
	at = soft_cp_at(q, va, 4, SOFT_MEM_READ, "word of WAIT_REG_MEM");
	if (!at)
		return SOFT_REFUSED;
	return soft_compare(p->dw[0] & 7,
			    __atomic_load_n(at, __ATOMIC_SEQ_CST) & p->dw[4],
			    p->dw[3]) ? SOFT_DONE : SOFT_LATER;
}

static enum soft_done indirect_buffer(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t n = p->dw[2] & 0xfffff;
	const bool chain = p->dw[2] >> 20 & 1;

	if (p->n_dw < 3 || n > IB_MAX_DW)
		return refuse_pm4(q, "INDIRECT_BUFFER is too long");
	/* A chained buffer takes the place of the one that names it. */
	if (chain && p->depth)
		p->depth--;
	if (p->depth == IB_DEPTH)
		return refuse_pm4(q, "INDIRECT_BUFFER is nested too deeply");
	p->ib[p->depth].va = join_address(p->dw[0], p->dw[1], 4);
	p->ib[p->depth++].left_dw = n;
	return SOFT_DONE;
}

/* From the registers to what a dispatch packet and its descriptor say. */
static enum soft_done prepare_dispatch(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t *sh = p->sh, init = p->dw[3];
	struct soft_regs *r = &p->regs;

	if (p->n_dw < 4 || !(init & INIT_COMPUTE_SHADER_EN))
		return refuse_pm4(q,
				  "DISPATCH_DIRECT without a compute shader");
	if (!(init & INIT_FORCE_START_AT_000) &&
	    (sh[START_X] | sh[START_X + 1] | sh[START_X + 2]))
		return refuse_pm4(q,
				  "DISPATCH_DIRECT that starts at a workgroup "
				  "other than 0,0,0");
	p->launch = (struct aql_dispatch){ .setup = 3 };
	for (int i = 0; i < 3; i++) {
		const uint32_t n = sh[NUM_THREAD_X + i] & 0xffff;

		p->launch.workgroup_size[i] = (uint16_t)n;
		p->launch.grid_size[i] = p->dw[i];
		if (!(init & INIT_USE_THREAD_DIMENSIONS))
			p->launch.grid_size[i] *= n;
		if (!p->launch.grid_size[i])
			return SOFT_DONE; /* no workgroup: nothing to do */
	}
	p->launch.group_segment_size = AMD_RSRC2_LDS_BYTES(sh[PGM_RSRC2]);
	*r = (struct soft_regs){
		.entry = join_address(sh[PGM_LO], sh[PGM_HI], 1) << 8,
		.rsrc1 = sh[PGM_RSRC1],
		.rsrc2 = sh[PGM_RSRC2],
		.rsrc3 = sh[PGM_RSRC3],
		.wave32 = init & INIT_W32,
		.scratch_va = join_address(sh[SCRATCH_BASE_LO],
					   sh[SCRATCH_BASE_HI], 1)
			      << 8,
		.tmpring = sh[TMPRING_SIZE],
	};
	memcpy(r->user, &sh[USER_DATA_0], sizeof(r->user));
	p->dispatch = true;
	return SOFT_DONE;
}

static enum soft_done ignore_packet(struct soft_queue *q, struct soft_pm4 *p)
{
	(void)q, (void)p;
	return SOFT_DONE;
}

/* Caches are always clean here; decoded code is not. */
static enum soft_done acquire_mem(struct soft_queue *q, struct soft_pm4 *p)
{
	(void)p;
	__atomic_add_fetch(&q->dev->map.code_epoch, 1, __ATOMIC_RELAXED);
	return SOFT_DONE;
}

static const struct {
	unsigned op;
	enum soft_done (*fn)(struct soft_queue *q, struct soft_pm4 *p);
} packets[] = {
	{ PM4_NOP, ignore_packet },
	{ PM4_CLEAR_STATE, ignore_packet },
	{ PM4_DISPATCH_DIRECT, prepare_dispatch },
	{ PM4_WRITE_DATA, write_data },
	{ PM4_WAIT_REG_MEM, wait_reg_mem },
	{ PM4_INDIRECT_BUFFER, indirect_buffer },
	{ PM4_EVENT_WRITE, ignore_packet },
	{ PM4_RELEASE_MEM, release_mem },
	{ PM4_ACQUIRE_MEM, acquire_mem },
	{ PM4_SET_SH_REG, set_sh_reg },
};

/* ---------------------------------------------------------------- fetch -- */

/* Dword `i` from here on, in the buffer or the ring; false: a page fault. */
static bool fetch_dword(struct soft_queue *q, const struct soft_pm4 *p,
			uint32_t i, uint32_t *out)
{
	const uint64_t va = p->depth ?
				    p->ib[p->depth - 1].va + i * 4ull :
				    q->ring_base + (q->read_index + i) * 4 %
							   q->ring_bytes;
	const uint32_t *at = soft_cp_at(q, va, 4, SOFT_MEM_READ,
					p->depth ? "indirect buffer" : "ring");

	if (at)
		*out = __atomic_load_n(at, __ATOMIC_RELAXED);
	return at;
}

/* Dwords that are there to be read. */
static uint64_t count_available(const struct soft_queue *q,
				const struct soft_pm4 *p)
{
	return p->depth ? p->ib[p->depth - 1].left_dw :
			  q->stream_end - q->read_index;
}

static void advance_ring(struct soft_queue *q, struct soft_pm4 *p,
			 unsigned depth, uint32_t n)
{
	uint64_t *rptr;

	if (depth) {
		p->ib[depth - 1].va += n * 4ull;
		p->ib[depth - 1].left_dw -= n;
		return;
	}
	q->read_index += n;
	rptr = soft_cp_at(q, q->rptr_va, 8, SOFT_MEM_WRITE, "read index");
	if (rptr)
		__atomic_store_n(rptr, q->read_index, __ATOMIC_RELEASE);
}

/* With a slice held: the next packet, but for the dispatch that it starts. */
static enum soft_done run_packet(struct soft_queue *q, struct soft_pm4 *p)
{
	const unsigned depth = p->depth;
	enum soft_done done = SOFT_DONE;
	size_t k = 0;

	p->n_dw = 0;
	if (!fetch_dword(q, p, 0, &p->h))
		return SOFT_REFUSED;
	if (p->h >> 30 == 2) { /* filler */
		advance_ring(q, p, depth, 1);
		return SOFT_DONE;
	}
	if (p->h >> 30 != 3)
		return refuse_pm4(q, "not a packet of type 3");
	/* A NOP with the largest count is one dword long. */
	if (p->h >> 16 != 0xffff)
		p->n_dw = PM4_BODY_DW(p->h);
	if (p->n_dw >= count_available(q, p))
		return refuse_pm4(q, "longer than what was submitted");
	for (uint32_t i = 0; i < p->n_dw; i++)
		if (!fetch_dword(q, p, 1 + i, &p->dw[i]))
			return SOFT_REFUSED;
	while (k < ARRAY_SIZE(packets) && packets[k].op != PM4_OP(p->h))
		k++;
	if (k == ARRAY_SIZE(packets))
		return refuse_pm4(q, "this device does not know its opcode");
	/* A chained buffer replaces the place that would be moved on. */
	if (PM4_OP(p->h) == PM4_INDIRECT_BUFFER)
		advance_ring(q, p, depth, 1 + p->n_dw);
	done = packets[k].fn(q, p);
	if (done == SOFT_DONE && PM4_OP(p->h) != PM4_INDIRECT_BUFFER)
		advance_ring(q, p, depth, 1 + p->n_dw);
	return done;
}

/* One packet, its dispatch included. */
static enum soft_done run_with_dispatch(struct soft_queue *q,
					struct soft_pm4 *p)
{
	enum soft_done done;

	p->dispatch = false;
	soft_map_hold(q->dev);
	done = run_packet(q, p);
	while (p->depth && !p->ib[p->depth - 1].left_dw)
		p->depth--;
	soft_map_release(q->dev);
	if (done == SOFT_DONE && p->dispatch)
		done = soft_dispatch(q, &p->launch, &p->regs);
	return done;
}

enum soft_done soft_pm4_buffer(struct soft_queue *q, uint64_t va, uint32_t n_dw)
{
	struct soft_pm4 *p = pm4_state(q);
	enum soft_done done = SOFT_DONE;

	if (!p->begun) {
		p->ib[0].va = va;
		p->ib[0].left_dw = n_dw;
		p->depth = n_dw != 0;
		p->begun = true;
	}
	while (done == SOFT_DONE && p->depth)
		done = run_with_dispatch(q, p);
	p->begun = done == SOFT_LATER;
	return done;
}

enum soft_done soft_pm4_run(struct soft_queue *q)
{
	struct soft_pm4 *p = pm4_state(q);

	q->began_index = q->read_index;
	if (!q->again)
		q->began_ts = soft_gpu_clock();
	return run_with_dispatch(q, p);
}

/* ----------------------------------------------------------- readiness -- */

bool soft_stream_ready(struct soft_queue *q)
{
	const uint64_t bell = __atomic_load_n(q->doorbell, __ATOMIC_SEQ_CST);
	const uint64_t ring = q->type == KFD_QUEUE_COMPUTE ? q->ring_bytes / 4 :
							     q->ring_bytes;

	if (bell != q->doorbell_seen) {
		q->doorbell_seen = bell;
		/* Programs that wrap their write pointer at the ring's end. */
		q->stream_end =
			bell < q->read_index ?
				q->read_index +
					((bell - q->read_index) & (ring - 1)) :
				bell;
	}
	return q->read_index != q->stream_end || (q->pm4 && q->pm4->depth);
}
