/*
 * kfd/soft/device/group.c - workgroups: memory for their waves, and initial
 * registers.
 *
 * Scalar registers are filled in the order of the descriptor's property bits,
 * then nothing up to USER_SGPR_COUNT, then the workgroup ids: on gfx1100 the
 * compiler pads wave32 kernels so that the id of X lands in s15.  Behind them
 * gfx10 has the offset of the wave's scratch memory.  Those of gfx12 are in
 * TTMP9 and, Y below Z, in TTMP7.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

/* Bytes of one wave's vector registers: [halves][n_vgprs][32 lanes]. */
static size_t vgpr_bytes(const struct soft_launch *l)
{
	return (size_t)l->wave_size / SOFT_LANES * l->n_vgprs * SOFT_LANES * 4;
}

/*
 * Zeros that share no cache line (nor the next one, which is fetched along)
 * with what another thread writes.
 */
static void *own_lines(size_t bytes)
{
	const size_t size = (bytes + 127) & ~(size_t)127;

	return memset(xaligned(128, size), 0, size);
}

static uint32_t *put_words(uint32_t *s, uint64_t v)
{
	s[0] = (uint32_t)v;
	s[1] = (uint32_t)(v >> 32);
	return s + 2;
}

static void user_sgprs(uint32_t *s, const struct soft_launch *l)
{
	const uint32_t props = l->kd.kernel_code_properties;

	if (props & AMD_PROP_PRIVATE_SEGMENT_BUFFER) {
		memcpy(s, l->scratch_descriptor, 16);
		s += 4;
	}
	if (props & AMD_PROP_DISPATCH_PTR)
		s = put_words(s, l->packet_va);
	if (props & AMD_PROP_QUEUE_PTR)
		s = put_words(s, l->queue_va);
	if (props & AMD_PROP_KERNARG_PTR)
		s = put_words(s, l->packet.kernarg_address);
	if (props & AMD_PROP_DISPATCH_ID)
		s = put_words(s, l->q->began_index);
	if (props & AMD_PROP_FLAT_SCRATCH_INIT)
		s = put_words(s, l->scratch_va);
	if (props & AMD_PROP_PRIVATE_SEGMENT_SIZE)
		*s = l->packet.private_segment_size;
}

/* What a trap handler finds of the dispatch, as SPI leaves it. */
static void trap_state(struct soft_wave *w, const struct soft_launch *l)
{
	uint32_t *ttmp = &w->s[ISA_R_TTMP0];

	ttmp[6] = (uint32_t)l->q->began_index & 0x1ffffff;
	if (!soft_gen(l->q->card)->ids_in_ttmp)
		memcpy(&ttmp[8], w->group->id, sizeof(w->group->id));
	ttmp[11] = ((uint32_t)w->index & 0x3f) |
		   (l->scratch_wave_bytes ? 0 : 1u << 6);
}

static void scalar_state(struct soft_wave *w, const struct soft_launch *l)
{
	const uint32_t rsrc2 = l->kd.compute_pgm_rsrc2;
	const struct soft_group *g = w->group;
	uint32_t *s = &w->s[AMD_RSRC2_USER_SGPRS(rsrc2)];

	memset(w->s, 0, sizeof(w->s));
	if (l->regs)
		memcpy(w->s, l->regs->user,
		       AMD_RSRC2_USER_SGPRS(rsrc2) > 16 ?
			       sizeof(l->regs->user) :
			       AMD_RSRC2_USER_SGPRS(rsrc2) * 4);
	else
		user_sgprs(w->s, l);
	if (soft_gen(l->q->card)->ids_in_ttmp) {
		w->s[ISA_R_TTMP0 + 9] = g->id[0];
		w->s[ISA_R_TTMP0 + 7] = (g->id[1] & 0xffff) | g->id[2] << 16;
		return;
	}
	if (rsrc2 & AMD_RSRC2_WORKGROUP_ID_X)
		*s++ = g->id[0];
	if (rsrc2 & AMD_RSRC2_WORKGROUP_ID_Y)
		*s++ = g->id[1];
	if (rsrc2 & AMD_RSRC2_WORKGROUP_ID_Z)
		*s++ = g->id[2];
	if (rsrc2 & AMD_RSRC2_WORKGROUP_INFO)
		*s++ = (uint32_t)(w->index == 0) << 31 | (uint32_t)g->n_waves;
	if (rsrc2 & AMD_RSRC2_PRIVATE_SEGMENT &&
	    !soft_gen(l->q->card)->own_scratch)
		*s = (uint32_t)(w->scratch_va - l->scratch_va);
}

/* v0 of lanes [from, from + n): id and those that follow it. */
static void put_row(struct soft_wave *w, uint32_t from, uint32_t n, uint32_t id)
{
	for (uint32_t i = from; i < from + n;) {
		const uint32_t at = i % SOFT_LANES;
		const uint32_t left = from + n - i;
		const uint32_t m = left < SOFT_LANES - at ? left :
							    SOFT_LANES - at;
		uint32_t *v = &w->v[i / SOFT_LANES][0][at];
		const uint32_t first = id + i - from;

		if (m == SOFT_LANES) /* mostly, and a loop of vectors */
			for (uint32_t k = 0; k < SOFT_LANES; k++)
				v[k] = first + k;
		else
			for (uint32_t k = 0; k < m; k++)
				v[k] = first + k;
		i += m;
	}
}

/* The same lanes of v1 and v2, as far as the kernel asks for them. */
static void put_ids(struct soft_wave *w, uint32_t from, uint32_t n, uint32_t y,
		    uint32_t z, const struct soft_launch *l)
{
	const uint32_t ids = AMD_RSRC2_WORKITEM_ID(l->kd.compute_pgm_rsrc2);

	for (uint32_t i = from; i < from + n; i++) {
		uint32_t(*v)[SOFT_LANES] = w->v[i / SOFT_LANES];

		if (ids > 0 && w->n_vgprs > 1)
			v[1][i % SOFT_LANES] = y;
		if (ids > 1 && w->n_vgprs > 2)
			v[2][i % SOFT_LANES] = z;
	}
}

/* A work-item of a workgroup of `size`. */
struct item {
	uint32_t id[3];
	uint32_t left; /* with those behind it */
};

/*
 * Work-item ids: 10 bits each of v0, or v0 to v2; and EXEC.  From `at` on,
 * which comes to the next wave's first.
 */
static void vector_state(struct soft_wave *w, const struct soft_launch *l,
			 const uint32_t size[3], struct item *at)
{
	const bool packed = soft_gen(l->q->card)->packed_ids;
	const uint32_t lanes = (uint32_t)w->wave_size;
	const uint32_t n = at->left < lanes ? at->left : lanes;
	const uint64_t exec = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	uint32_t *id = at->id;

	at->left -= n;
	w->s[ISA_R_EXEC_LO] = (uint32_t)exec;
	w->s[ISA_R_EXEC_HI] = (uint32_t)(exec >> 32);
	for (uint32_t i = 0; i < n;) {
		const uint32_t left = size[0] - id[0];
		const uint32_t row = left < n - i ? left : n - i;

		put_row(w, i, row,
			packed ? id[0] | id[1] << 10 | id[2] << 20 : id[0]);
		if (!packed)
			put_ids(w, i, row, id[1], id[2], l);
		i += row;
		id[0] += row;
		if (id[0] < size[0])
			continue;
		id[0] = 0;
		if (++id[1] < size[1])
			continue;
		id[1] = 0;
		id[2]++;
	}
}

/* Which exceptions trap: bits 20:12 of MODE. */
static uint32_t exceptions_of(const struct soft_launch *l)
{
	const uint32_t r2 = l->kd.compute_pgm_rsrc2;
	const uint32_t own = AMD_RSRC2_FP_EXCEPTIONS(r2) |
			     AMD_RSRC2_MEM_EXCEPTIONS(r2) << 7;

	return (own & l->trap_keep) | l->trap_mask;
}

static uint32_t mode_of(const struct soft_launch *l)
{
	const uint32_t r1 = l->kd.compute_pgm_rsrc1;
	uint32_t mode = r1 >> 12 & 0xff; /* rounding and denormals */

	if (r1 & AMD_RSRC1_DX10_CLAMP)
		mode |= SOFT_MODE_DX10_CLAMP;
	if (r1 & AMD_RSRC1_IEEE_MODE)
		mode |= SOFT_MODE_IEEE;
	if (r1 & AMD_RSRC1_FP16_OVFL)
		mode |= SOFT_MODE_FP16_OVFL;
	/* gfx12 has other things in the place of two of these. */
	mode &= ~(SOFT_MODE_DX10_CLAMP | SOFT_MODE_IEEE) |
		~soft_fixed_mode(l->env.gen);
	mode |= soft_fixed_mode(l->env.gen);
	return mode | exceptions_of(l) << 12;
}

/* HW_ID1 and HW_ID2 (RDNA3 ISA 3.5): a place on the card for this wave. */
static void hw_id(struct soft_wave *w, const struct soft_run *r,
		  const struct soft_launch *l)
{
	const uint32_t queue_id = l->q->id;
	const struct isa_chip *chip = l->q->card->chip;
	const uint32_t cu = r->slot % isa_chip_cus(chip);
	const uint32_t wgp = cu / 2, per_sa = chip->cus_per_sa / 2;

	w->hw_id1 = ((uint32_t)w->index / 4 & 0x1f) | /* wave of the SIMD */
		    ((uint32_t)w->index & 3) << 8 |   /* SIMD */
		    (wgp % per_sa) << 10 |	      /* WGP of the SA */
		    (wgp / per_sa % chip->sa_per_se) << 16 |
		    (wgp / per_sa / chip->sa_per_se % chip->n_se) << 18;
	w->hw_id2 = (queue_id & 7) | (queue_id / 8 & 3) << 4 | 1u << 8;
}

/* What stays as it is in all workgroups that are at this place. */
static void place_wave(struct soft_run *r, int index,
		       const struct soft_launch *l)
{
	struct soft_wave *w = &r->g.wave[index];
	const size_t half = vgpr_bytes(l) / 2;
	uint8_t *regs = (uint8_t *)r->memory + 2 * half * (size_t)index;

	w->group = &r->g;
	w->index = index;
	w->wave_size = (int)l->wave_size;
	w->n_vgprs = (int)l->n_vgprs;
	w->v[0] = (void *)regs;
	w->v[1] = l->wave_size == SOFT_LANES ? NULL : (void *)(regs + half);
	w->scratch_lane_bytes = l->scratch_wave_bytes / l->wave_size;
	w->scratch_va =
		l->scratch_va +
		((uint64_t)r->slot * l->waves_per_group + (uint32_t)index) *
			l->scratch_wave_bytes;
	hw_id(w, r, l);
}

struct soft_run *soft_run_new(const struct soft_launch *l, uint32_t slot)
{
	const size_t waves = l->waves_per_group, regs = vgpr_bytes(l);
	struct soft_run *r = own_lines(sizeof(*r));

	r->slot = slot;
	r->mode = mode_of(l);
	r->g.env = &l->env;
	r->g.wave = own_lines(waves * sizeof(*r->g.wave));
	r->memory = xaligned(64, waves * regs + l->lds_bytes + 64);
	r->g.lds = (uint8_t *)r->memory + waves * regs;
	r->g.lds_size_bytes = l->lds_bytes;
	for (size_t i = 0; i < waves; i++)
		place_wave(r, (int)i, l);
	return r;
}

void soft_run_free(struct soft_run *r)
{
	free(r->memory);
	free(r->g.wave);
	free(r);
}

static void wave_start(struct soft_run *r, int index,
		       const struct soft_launch *l, uint64_t clock)
{
	struct soft_wave *w = &r->g.wave[index];

	w->pc = l->entry;
	w->scc = false;
	w->mode = r->mode;
	w->halt = false;
	w->privileged = l->kd.compute_pgm_rsrc1 & AMD_RSRC1_PRIV;
	w->trapsts = 0;
	w->scratch = NULL;
	w->state = SOFT_READY;
	w->signalled = w->opened = w->named_opened = false;
	w->joined = 0;
	w->fault.kind = SOFT_FAULT_NONE; /* the rest follows with a kind */
	w->n_insts = 0;
	w->start_clock = clock;
	scalar_state(w, l);
	if (l->env.traps)
		trap_state(w, l);
}

static void start_counts(struct soft_run *r, uint32_t items)
{
	r->g.counts = r->counts;
	memset(r->counts, 0, sizeof(r->counts));
	r->counts[SOFT_COUNT_WAVES] = (uint32_t)r->g.n_waves;
	r->counts[SOFT_COUNT_ITEMS] = items;
}

/* The workgroup of this number, x fastest. */
static void put_id(struct soft_group *g, uint64_t number,
		   const uint32_t n_groups[3])
{
	const uint64_t row = number / n_groups[0];

	g->id[0] = (uint32_t)(number - row * n_groups[0]);
	g->id[1] = (uint32_t)row;
	g->id[2] = 0;
	if (row < n_groups[1])
		return;
	g->id[1] = (uint32_t)(row % n_groups[1]);
	g->id[2] = (uint32_t)(row / n_groups[1]);
}

void soft_run_start(struct soft_run *r, const struct soft_launch *l,
		    uint64_t clock)
{
	struct soft_group *g = &r->g;
	uint32_t size[3];
	struct item at = { .left = 1 };

	put_id(g, r->index, l->n_groups);
	/* The last workgroup of each dimension may be partial. */
	for (int i = 0; i < 3; i++) {
		const uint32_t first = g->id[i] * l->packet.workgroup_size[i];

		size[i] = l->packet.grid_size[i] - first;
		if (size[i] > l->packet.workgroup_size[i])
			size[i] = l->packet.workgroup_size[i];
		at.left *= size[i];
	}
	g->n_waves = (int)((at.left + l->wave_size - 1) / l->wave_size);
	g->n_ended = 0;
	g->n_waiting = 0;
	memset(g->named, 0, sizeof(g->named));
	if (l->counted)
		start_counts(r, at.left);
	/* Hardware leaves them as they are; zero makes runs repeatable. */
	memset(r->memory, 0, l->waves_per_group * vgpr_bytes(l) + l->lds_bytes);
	for (int i = 0; i < g->n_waves; i++) {
		wave_start(r, i, l, clock);
		vector_state(&g->wave[i], l, size, &at);
	}
}
