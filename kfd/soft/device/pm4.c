/*
 * kfd/soft/device/pm4.c - PM4: compute queues of type 0, and the indirect
 * buffers of AQL vendor packets.
 *
 * The packets that compute programs use are executed, in order and one at a
 * time, so that cache and pipeline events have nothing to wait for; any other
 * is refused by name.  pm4_data.c has those that move data and wait.
 *
 * A packet that waits is looked at again later: position and registers live
 * in struct soft_pm4, which a queue gets with its first packet.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/device/pm4.h"

#define IB_MAX_DW 65536u

/* Registers that SET_SH_REG writes, as dword offsets from PM4_SH_BASE. */
#define SH(reg) ((reg) - PM4_SH_BASE)
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
	PERFCOUNT_ENABLE = SH(0x2e0b),
	USER_DATA_0 = SH(0x2e40),
};
/* DISPATCH_INITIATOR */
#define INIT_COMPUTE_SHADER_EN (1u << 0)
#define INIT_FORCE_START_AT_000 (1u << 2)
#define INIT_USE_THREAD_DIMENSIONS (1u << 5)
#define INIT_W32 (1u << 15)

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

bool soft_pm4_counts(const struct soft_queue *q)
{
	return q->pm4 && q->pm4->sh[PERFCOUNT_ENABLE] & 1;
}

static const char *packet_name(uint32_t h);

enum soft_done pm4_refuse(struct soft_queue *q, const char *fmt, ...)
{
	const struct soft_pm4 *p = q->pm4;
	char why[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return soft_packet_refuse(q, KFD_EC_PACKET_VENDOR, KFD_INACTIVE_VENDOR,
				  0, "PM4 packet %s (0x%08x) at %s%" PRIu64
				  ": %s", packet_name(p->h), p->h,
				  p->depth ? "an indirect buffer of " : "",
				  q->read_index, why);
}

/* ------------------------------------------------------------- packets -- */

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

static enum soft_done indirect_buffer(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t n = p->dw[2] & 0xfffff;
	const bool chain = p->dw[2] >> 20 & 1;

	if (p->n_dw < 3 || n > IB_MAX_DW)
		return pm4_refuse(q, "INDIRECT_BUFFER is too long");
	/* A chained buffer takes the place of the one that names it. */
	if (chain && p->depth)
		p->depth--;
	if (p->depth == PM4_IB_DEPTH)
		return pm4_refuse(q, "INDIRECT_BUFFER is nested too deeply");
	p->ib[p->depth].va = pm4_address(p->dw[0], p->dw[1], 4);
	p->ib[p->depth++].left_dw = n;
	return SOFT_DONE;
}

/* From the registers to what a dispatch packet and its descriptor say. */
static enum soft_done prepare_dispatch(struct soft_queue *q, struct soft_pm4 *p,
				       const uint32_t size[3], uint32_t init)
{
	const uint32_t *sh = p->sh;
	struct soft_regs *r = &p->regs;

	if (!(init & INIT_COMPUTE_SHADER_EN))
		return pm4_refuse(q, "initiator 0x%x; accepted: with bit 0, "
				     "COMPUTE_SHADER_EN", init);
	if (!(init & INIT_FORCE_START_AT_000) &&
	    (sh[START_X] | sh[START_X + 1] | sh[START_X + 2]))
		return pm4_refuse(q, "COMPUTE_START is %u, %u, %u; accepted: "
				     "0, 0, 0, or FORCE_START_AT_000",
				  sh[START_X], sh[START_X + 1],
				  sh[START_X + 2]);
	p->launch = (struct aql_dispatch){ .setup = 3 };
	for (int i = 0; i < 3; i++) {
		const uint32_t n = sh[NUM_THREAD_X + i] & 0xffff;
		const uint64_t items =
			(uint64_t)size[i] *
			(init & INIT_USE_THREAD_DIMENSIONS ? 1 : n);

		if (items > UINT32_MAX)
			return pm4_refuse(q, "%u workgroups of %u work-items "
					     "in one dimension; accepted: "
					     "2^32 - 1 work-items", size[i], n);
		p->launch.workgroup_size[i] = (uint16_t)n;
		p->launch.grid_size[i] = (uint32_t)items;
		if (!items)
			return SOFT_DONE; /* no workgroup: nothing to do */
	}
	p->launch.group_segment_size = AMD_RSRC2_LDS_BYTES(sh[PGM_RSRC2]);
	*r = (struct soft_regs){
		.entry = soft_canonical(pm4_address(sh[PGM_LO], sh[PGM_HI], 1)
					<< 8),
		.rsrc1 = sh[PGM_RSRC1],
		.rsrc2 = sh[PGM_RSRC2],
		.rsrc3 = sh[PGM_RSRC3],
		.wave32 = init & INIT_W32,
		.scratch_va = soft_canonical(pm4_address(sh[SCRATCH_BASE_LO],
							 sh[SCRATCH_BASE_HI], 1)
					     << 8),
		.tmpring = sh[TMPRING_SIZE],
	};
	memcpy(r->user, &sh[USER_DATA_0], sizeof(r->user));
	p->dispatch = true;
	return SOFT_DONE;
}

static enum soft_done dispatch_direct(struct soft_queue *q, struct soft_pm4 *p)
{
	if (p->n_dw < 4)
		return pm4_refuse(q, "%u dwords; accepted: 4", p->n_dw);
	return prepare_dispatch(q, p, p->dw, p->dw[3]);
}

/* The sizes stand in memory. */
static enum soft_done dispatch_indirect(struct soft_queue *q,
					struct soft_pm4 *p)
{
	const uint64_t va = pm4_address(p->dw[0], p->dw[1], 4);
	uint32_t size[3];

	if (p->n_dw < 3)
		return pm4_refuse(q, "%u dwords; accepted: 3", p->n_dw);
	for (unsigned i = 0; i < 3; i++) {
		const uint32_t *at = soft_cp_at(q, va + i * 4, 4, SOFT_MEM_READ,
						"size of DISPATCH_INDIRECT");

		if (!at)
			return SOFT_REFUSED;
		size[i] = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	}
	return prepare_dispatch(q, p, size, p->dw[2]);
}

/* Flushes have nothing to wait for; with an address it samples counters. */
static enum soft_done event_write(struct soft_queue *q, struct soft_pm4 *p)
{
	if (p->n_dw > 1)
		return pm4_refuse(q, "event %u with an address: there are no "
				     "counters to sample; accepted: events "
				     "of 1 dword", p->dw[0] & 0x3f);
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
	__atomic_add_fetch(&q->card->map.code_epoch, 1, __ATOMIC_RELAXED);
	return SOFT_DONE;
}

static const struct {
	unsigned op;
	const char *name;
	pm4_packet *fn;
} packets[] = {
	{ PM4_NOP, "NOP", ignore_packet },
	{ PM4_CLEAR_STATE, "CLEAR_STATE", ignore_packet },
	{ PM4_DISPATCH_DIRECT, "DISPATCH_DIRECT", dispatch_direct },
	{ PM4_DISPATCH_INDIRECT, "DISPATCH_INDIRECT", dispatch_indirect },
	{ PM4_ATOMIC_MEM, "ATOMIC_MEM", pm4_atomic_mem },
	{ PM4_COND_EXEC, "COND_EXEC", pm4_cond_exec },
	{ PM4_PRED_EXEC, "PRED_EXEC", pm4_pred_exec },
	{ PM4_WRITE_DATA, "WRITE_DATA", pm4_write_data },
	{ PM4_WAIT_REG_MEM, "WAIT_REG_MEM", pm4_wait_reg_mem },
	{ PM4_INDIRECT_BUFFER, "INDIRECT_BUFFER", indirect_buffer },
	{ PM4_COPY_DATA, "COPY_DATA", pm4_copy_data },
	{ PM4_PFP_SYNC_ME, "PFP_SYNC_ME", ignore_packet },
	{ PM4_EVENT_WRITE, "EVENT_WRITE", event_write },
	{ PM4_RELEASE_MEM, "RELEASE_MEM", pm4_release_mem },
	{ PM4_DMA_DATA, "DMA_DATA", pm4_dma_data },
	{ PM4_ACQUIRE_MEM, "ACQUIRE_MEM", acquire_mem },
	{ PM4_SET_SH_REG, "SET_SH_REG", pm4_set_sh_reg },
	{ PM4_SET_UCONFIG_REG, "SET_UCONFIG_REG", pm4_set_uconfig_reg },
	{ PM4_WAIT_REG_MEM64, "WAIT_REG_MEM64", pm4_wait_reg_mem64 },
	{ PM4_SET_SH_REG_INDEX, "SET_SH_REG_INDEX", pm4_set_sh_reg },
};

static const char *packet_name(uint32_t h)
{
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++)
		if (h >> 30 == 3 && packets[i].op == PM4_OP(h))
			return packets[i].name;
	return "of unknown opcode";
}

/* Those that are executed, for who sent another. */
static enum soft_done refuse_opcode(struct soft_queue *q)
{
	char names[512] = "";
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(packets) && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s",
				      i ? ", " : "", packets[i].name);
	return pm4_refuse(q, "opcode 0x%02x; accepted: %s",
			  PM4_OP(q->pm4->h), names);
}

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
	/* The hardware's is an index into the ring. */
	rptr = soft_cp_at(q, q->rptr_va, 8, SOFT_MEM_WRITE, "read index");
	if (rptr)
		__atomic_store_n(rptr, q->read_index % (q->ring_bytes / 4),
				 __ATOMIC_RELEASE);
}

/* What COND_EXEC and PRED_EXEC exclude. */
static enum soft_done skip_dwords(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint64_t there = count_available(q, p);
	const uint32_t n = p->skip_dw < there ? p->skip_dw : (uint32_t)there;

	/* It ends with the buffer that it began in. */
	p->skip_dw = p->depth ? 0 : p->skip_dw - n;
	advance_ring(q, p, p->depth, n);
	return SOFT_DONE;
}

/* The next packet, but for the dispatch that it starts. */
static enum soft_done run_packet(struct soft_queue *q, void *arg)
{
	struct soft_pm4 *p = arg;
	const unsigned depth = p->depth;
	enum soft_done done = SOFT_DONE;
	size_t k = 0;
	bool early;

	p->n_dw = 0;
	if (p->skip_dw)
		return skip_dwords(q, p);
	if (!fetch_dword(q, p, 0, &p->h))
		return SOFT_REFUSED;
	if (p->h >> 30 == 2) { /* filler */
		advance_ring(q, p, depth, 1);
		return SOFT_DONE;
	}
	if (p->h >> 30 != 3)
		return pm4_refuse(q, "type %u; accepted: packets of type 3, "
				     "and of type 2 as filler", p->h >> 30);
	/* A NOP with the largest count is one dword long. */
	if (p->h >> 16 != 0xffff)
		p->n_dw = PM4_BODY_DW(p->h);
	if (p->n_dw >= count_available(q, p))
		return pm4_refuse(q, "%u dwords follow, but only %" PRIu64
				     " were submitted", p->n_dw,
				  count_available(q, p) - 1);
	for (uint32_t i = 0; i < p->n_dw; i++)
		if (!fetch_dword(q, p, 1 + i, &p->dw[i]))
			return SOFT_REFUSED;
	while (k < ARRAY_SIZE(packets) && packets[k].op != PM4_OP(p->h))
		k++;
	if (k == ARRAY_SIZE(packets))
		return refuse_opcode(q);
	/*
	 * A chained buffer replaces the place that would be moved on.  What
	 * RELEASE_MEM does comes at the end of the pipe, when it was read.
	 */
	early = PM4_OP(p->h) == PM4_INDIRECT_BUFFER ||
		PM4_OP(p->h) == PM4_RELEASE_MEM;
	if (early)
		advance_ring(q, p, depth, 1 + p->n_dw);
	done = packets[k].fn(q, p);
	if (done == SOFT_DONE && !early)
		advance_ring(q, p, depth, 1 + p->n_dw);
	return done;
}

/* One packet, its dispatch included. */
static enum soft_done run_with_dispatch(struct soft_queue *q,
					struct soft_pm4 *p)
{
	enum soft_done done;

	p->dispatch = false;
	done = soft_cp_step(q, run_packet, p);
	while (p->depth && !p->ib[p->depth - 1].left_dw)
		p->depth--;
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
	/* Buffers that chain to each other for ever end with their queue. */
	while (done == SOFT_DONE && p->depth)
		switch (soft_queue_go(q)) {
		case SOFT_GO:
			done = run_with_dispatch(q, p);
			break;
		case SOFT_PAUSE:
			done = SOFT_LATER;
			break;
		case SOFT_STOP:
			done = SOFT_REFUSED;
		}
	p->begun = done == SOFT_LATER;
	return done;
}

enum soft_done soft_pm4_run(struct soft_queue *q)
{
	struct soft_pm4 *p = pm4_state(q);

	q->began_index = q->read_index;
	if (!q->again)
		q->began_ts = soft_gpu_clock(q->card);
	return run_with_dispatch(q, p);
}

/* ----------------------------------------------------------- readiness -- */

bool soft_stream_ready(struct soft_queue *q)
{
	const uint64_t bell = __atomic_load_n(q->doorbell, __ATOMIC_SEQ_CST);
	const uint64_t ring = q->type == KFD_QUEUE_COMPUTE ? q->ring_bytes / 4 :
							     q->ring_bytes;

	order_acquire();
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
