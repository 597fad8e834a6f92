/*
 * kfd/soft/device/launch_check.c - from a dispatch packet and its kernel
 * descriptor to a launch.
 *
 * All that the packet processor checks, with the codes of its refusals.
 */
#include <inttypes.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

/* Register bytes of all workgroups in flight. */
#define RESIDENT_MAX_BYTES (256u << 20)

static uint32_t min_u32(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static enum soft_done refuse_dims(struct soft_queue *q,
				  const struct aql_dispatch *p)
{
	return soft_packet_refuse(
		q, KFD_EC_PACKET_DISPATCH_DIM, KFD_INACTIVE_DIM,
		p->kernel_object,
		"dispatch packet %" PRIu64 " has bad dimensions: setup %u, "
		"workgroup %ux%ux%u, grid %ux%ux%u; accepted: used ones of "
		"at least 1, others of exactly 1",
		q->read_index, p->setup, p->workgroup_size[0],
		p->workgroup_size[1], p->workgroup_size[2], p->grid_size[0],
		p->grid_size[1], p->grid_size[2]);
}

static enum soft_done check_packet(struct soft_queue *q,
				   const struct aql_dispatch *p)
{
	const unsigned dims = p->setup & 3;
	uint64_t size = 1;

	if (!dims)
		return refuse_dims(q, p);
	for (unsigned i = 0; i < 3; i++) {
		const uint32_t wg = p->workgroup_size[i], n = p->grid_size[i];

		if (!wg || !n || (i >= dims && (wg != 1 || n != 1)))
			return refuse_dims(q, p);
		size *= wg;
	}
	if (size > SOFT_GROUP_MAX)
		return soft_packet_refuse(
			q, KFD_EC_PACKET_WORK_GROUP_SIZE,
			KFD_INACTIVE_WORK_GROUP_SIZE, p->kernel_object,
			"dispatch packet %" PRIu64 " has workgroups of %" PRIu64
			" work-items; accepted: at most %u",
			q->read_index, size, SOFT_GROUP_MAX);
	if (p->group_segment_size > soft_gen(q->card)->lds_bytes)
		return soft_packet_refuse(
			q, KFD_EC_PACKET_GROUP_SEGMENT,
			KFD_INACTIVE_GROUP_SEGMENT, p->kernel_object,
			"dispatch packet %" PRIu64 " wants %u bytes of LDS; "
			"accepted: at most %u",
			q->read_index, p->group_segment_size,
			soft_gen(q->card)->lds_bytes);
	return SOFT_DONE;
}

static enum soft_done refuse_code(struct soft_queue *q, uint64_t kernel,
				  const char *why)
{
	return soft_packet_refuse(q, KFD_EC_PACKET_DISPATCH_CODE,
				  KFD_INACTIVE_CODE, kernel,
				  "dispatch packet %" PRIu64
				  ": the kernel descriptor at 0x%" PRIx64 " %s",
				  q->read_index, kernel, why);
}

/* The descriptor that the registers amount to. */
static void take_registers(struct soft_launch *l)
{
	const struct soft_regs *r = l->regs;

	l->entry = r->entry;
	l->kd = (struct amd_kernel_descriptor){
		.compute_pgm_rsrc1 = r->rsrc1,
		.compute_pgm_rsrc2 = r->rsrc2,
		.compute_pgm_rsrc3 = r->rsrc3,
		.kernel_code_properties = r->wave32 ? AMD_PROP_WAVE32 : 0,
	};
}

/* With a slice held. */
static enum soft_done read_descriptor(struct soft_queue *q,
				      struct soft_launch *l)
{
	const uint64_t va = l->packet.kernel_object;
	const struct amd_kernel_descriptor *kd;

	if (l->regs) {
		take_registers(l);
		return SOFT_DONE;
	}
	if (!va || va % sizeof(*kd))
		return refuse_code(q, va, "is null or not 64-byte aligned");
	kd = soft_cp_at(q, va, sizeof(*kd), SOFT_MEM_READ, "kernel descriptor");
	if (!kd)
		return SOFT_REFUSED;
	l->kd = *kd;
	l->kd.compute_pgm_rsrc1 &= ~AMD_RSRC1_PRIV;
	l->entry = va + (uint64_t)kd->kernel_code_entry_byte_offset;
	if (l->entry % 256)
		return refuse_code(q, va,
				   "has an entry point that is not "
				   "256-byte aligned");
	return SOFT_DONE;
}

/* Waves of the kernel that a SIMD can hold at a time, by their registers. */
static uint32_t waves_per_simd(const struct soft_launch *l)
{
	const bool wide = l->wave_size == 64;

	return min_u32(soft_gen(l->q->card)->waves_per_simd,
		       l->q->card->chip->vgprs / (wide ? 2 : 1) /
			       l->n_vgprs_allocated);
}

/* A workgroup stays in one CU, or in WGP mode in a pair of them. */
static uint32_t count_simds(const struct soft_launch *l)
{
	const uint32_t n = soft_gen(l->q->card)->simds_per_cu;

	return l->kd.compute_pgm_rsrc1 & AMD_RSRC1_WGP_MODE ? 2 * n : n;
}

/* Do the registers of one workgroup fit its CU or WGP? */
static enum soft_done check_registers(struct soft_queue *q,
				      struct soft_launch *l)
{
	const uint32_t r1 = l->kd.compute_pgm_rsrc1;
	const uint32_t unit = l->wave_size == 64 ? 4 : 8;
	const uint32_t granule = isa_chip_granule(q->card->chip) * unit / 8;
	const uint32_t declared = (AMD_RSRC1_VGPRS(r1) + 1) * unit;
	const uint32_t allocated = (declared + granule - 1) / granule * granule;

	l->n_vgprs_allocated = allocated;
	l->n_vgprs = min_u32(allocated, 256);
	if (declared <= 256 &&
	    l->waves_per_group <= count_simds(l) * waves_per_simd(l))
		return SOFT_DONE;
	return soft_packet_refuse(
		q, KFD_EC_PACKET_REGISTER, KFD_INACTIVE_REGISTERS,
		l->packet.kernel_object,
		"dispatch packet %" PRIu64 ": %u waves with %u VGPRs do not "
		"fit %u SIMDs",
		q->read_index, l->waves_per_group, declared, count_simds(l));
}

/*
 * Workgroups that the card holds at a time: a CU has 64 KiB of LDS, a WGP the
 * same twice, which its workgroups share in WGP mode (RDNA3 ISA 2.3, 12.1).
 */
static uint32_t card_holds(const struct soft_launch *l)
{
	const struct soft_card *c = l->q->card;
	const uint32_t n = count_simds(l);
	const uint32_t cus = n / soft_gen(c)->simds_per_cu;
	const uint32_t units = isa_chip_cus(c->chip) / cus;
	uint32_t each = n * waves_per_simd(l) / l->waves_per_group;

	if (l->lds_bytes)
		each = min_u32(each,
			       cus * soft_gen(c)->lds_bytes / l->lds_bytes);
	return units * each;
}

/* Of TMPRING_SIZE: bytes of a wave, and waves of the card. */
static uint32_t ring_wave_bytes(const struct soft_card *c, uint32_t tmpring)
{
	return AMD_TMPRING_WAVESIZE(tmpring) *
	       (soft_gen(c)->own_scratch ? 256 : 1024);
}

static uint64_t ring_waves(const struct soft_card *c, uint32_t tmpring)
{
	return (uint64_t)AMD_TMPRING_WAVES(tmpring) *
	       (soft_gen(c)->own_scratch ? c->chip->n_se : 1);
}

/* The queue's descriptor with the distance of a lane's dwords: the wave's
 * lanes. */
static void make_descriptor(struct soft_launch *l, const struct amd_queue *aq)
{
	uint32_t *d = l->scratch_descriptor;

	memcpy(d, aq->scratch_resource_descriptor, 16);
	if (!soft_gen(l->q->card)->own_scratch)
		d[3] = (d[3] & ~(3u << 21)) | (l->wave_size == 64 ? 3u : 2u)
						      << 21;
}

/*
 * Scratch comes from the queue; when it is too small the CP asks for more
 * through the inactive signal and tries again once the signal is 0.
 */
static enum soft_done find_scratch(struct soft_queue *q, struct soft_launch *l,
				   const struct amd_queue *aq, uint32_t *slots)
{
	const uint32_t wave_bytes =
		ring_wave_bytes(q->card, aq->compute_tmpring_size);
	const uint64_t all = ring_waves(q->card, aq->compute_tmpring_size);
	const uint64_t need =
		(uint64_t)l->packet.private_segment_size * l->wave_size;
	const uint32_t code = l->wave_size == 64 ? KFD_INACTIVE_SCRATCH_WAVE64 :
						   KFD_INACTIVE_SCRATCH_WAVE32;
	const struct amd_signal *s;

	*slots = UINT32_MAX;
	if (!(l->kd.compute_pgm_rsrc2 & AMD_RSRC2_PRIVATE_SEGMENT))
		return SOFT_DONE;
	l->scratch_va = aq->scratch_backing_memory_location;
	l->scratch_wave_bytes = wave_bytes;
	make_descriptor(l, aq);
	*slots = !wave_bytes ?
			 0 :
			 min_u32(all, aq->scratch_backing_memory_byte_size /
					      wave_bytes);
	*slots /= l->waves_per_group;
	if (!need)
		l->scratch_wave_bytes = 0, *slots = UINT32_MAX;
	if (!need || (need <= wave_bytes && *slots))
		return SOFT_DONE;
	if (!aq->queue_inactive_signal)
		return SOFT_LATER;
	s = soft_cp_at(q, aq->queue_inactive_signal, sizeof(*s), SOFT_MEM_READ,
		       "inactive signal");
	if (s && !__atomic_load_n(&s->value, __ATOMIC_ACQUIRE))
		soft_queue_inactive(q, code);
	return s ? SOFT_LATER : SOFT_REFUSED;
}

/* PM4 gives no size but the number of waves: accesses beyond it fault. */
static void registers_scratch(struct soft_launch *l, uint32_t *slots)
{
	const struct soft_regs *r = l->regs;
	const uint64_t waves = ring_waves(l->q->card, r->tmpring);

	*slots = UINT32_MAX;
	l->scratch_wave_bytes = ring_wave_bytes(l->q->card, r->tmpring);
	if (!(r->rsrc2 & AMD_RSRC2_PRIVATE_SEGMENT) || !l->scratch_wave_bytes ||
	    waves < l->waves_per_group) {
		l->scratch_wave_bytes = 0;
		return;
	}
	l->scratch_va = r->scratch_va;
	*slots = (uint32_t)(waves / l->waves_per_group);
}

/* Of what the card holds, the share of the queue's CUs; one at least. */
static uint32_t queue_holds(const struct soft_queue *q,
			    const struct soft_launch *l)
{
	const uint32_t cus = __atomic_load_n(&q->cus, __ATOMIC_RELAXED);
	const uint64_t n =
		(uint64_t)card_holds(l) * cus / isa_chip_cus(q->card->chip);

	return n ? (uint32_t)n : 1;
}

enum soft_done soft_launch_check(struct soft_queue *q, struct soft_launch *l)
{
	const struct aql_dispatch *p = &l->packet;
	const struct amd_queue *aq;
	const uint32_t granule = soft_gen(q->card)->lds_granule;
	uint32_t size, slots;
	enum soft_done r = check_packet(q, p);

	if (r == SOFT_DONE)
		r = read_descriptor(q, l);
	if (r != SOFT_DONE)
		return r;
	l->wave_size = l->kd.kernel_code_properties & AMD_PROP_WAVE32 ? 32 : 64;
	size = (uint32_t)p->workgroup_size[0] * p->workgroup_size[1] *
	       p->workgroup_size[2];
	l->waves_per_group = (size + l->wave_size - 1) / l->wave_size;
	l->lds_bytes =
		(p->group_segment_size + granule - 1) / granule * granule;
	r = check_registers(q, l);
	if (r != SOFT_DONE)
		return r;
	if (l->regs) {
		registers_scratch(l, &slots);
	} else {
		aq = soft_cp_queue(q, &l->queue_va);
		if (!aq)
			return SOFT_REFUSED;
		r = find_scratch(q, l, aq, &slots);
	}
	l->total = 1;
	for (int i = 0; i < 3; i++) {
		l->n_groups[i] = (uint32_t)(((uint64_t)p->grid_size[i] +
					     p->workgroup_size[i] - 1) /
					    p->workgroup_size[i]);
		/* Nobody lives to see the end of so many. */
		if (__builtin_mul_overflow(l->total, l->n_groups[i], &l->total))
			l->total = UINT64_MAX;
	}
	l->max_resident = min_u32(slots, queue_holds(q, l));
	l->max_resident = min_u32(
		l->max_resident,
		1 + RESIDENT_MAX_BYTES / (l->waves_per_group * l->n_vgprs *
					  l->wave_size * 4));
	return r;
}
