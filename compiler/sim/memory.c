/*
 * compiler/sim/memory.c - vector and scalar memory.
 *
 * Accesses reserve bandwidth on their way in the order in which instructions
 * issue, and wait for earlier reservations.
 */
#include <math.h>
#include <string.h>

#include "compiler/sim/sim_int.h"

enum { BURST_GAP = 8 };

void pending_add(struct pending *p, uint64_t at, enum sim_stall stall)
{
	int k = p->n;

	if (p->n == SIM_PENDING) { /* the wait for room was overtaken */
		memmove(p->at, p->at + 1, (SIM_PENDING - 1) * sizeof(*p->at));
		memmove(p->stall, p->stall + 1, SIM_PENDING - 1);
		k = --p->n;
	}
	for (; k && p->at[k - 1] > at; k--) {
		p->at[k] = p->at[k - 1];
		p->stall[k] = p->stall[k - 1];
	}
	p->at[k] = at;
	p->stall[k] = (uint8_t)stall;
	p->n++;
}

void pending_drop(struct pending *p, uint64_t now)
{
	int done = 0;

	while (done < p->n && p->at[done] <= now)
		done++;
	if (!done)
		return;
	p->n -= done;
	memmove(p->at, p->at + done, (size_t)p->n * sizeof(*p->at));
	memmove(p->stall, p->stall + done, (size_t)p->n);
}

/*
 * Take `bytes` through a channel; the cycle in which that begins.  Latencies
 * are those of an idle machine and have the passage of one line in them.
 */
static uint64_t reserve_bandwidth(double *free, uint64_t t, double bytes,
				  double rate)
{
	double begin = *free > (double)t ? *free : (double)t;

	*free = begin + bytes / rate;
	return (uint64_t)ceil(begin);
}

/* ---- caches ---- */

static const struct sim_sharing alone = { 1, 1 };

static struct sim_sharing sharing_of(struct sim *s, uint64_t pc)
{
	struct sim_sharing n = alone;

	if (s->src->sharing)
		s->src->sharing(s->src, pc, &n);
	n.gpu = n.gpu < 1 ? 1 : n.gpu;
	n.array = n.array < 1 ? 1 : n.array;
	return n;
}

/*
 * The first access to a page waits for its translation, the very first one
 * also for the directories above it.
 */
static uint64_t translate_page(struct sim *s, uint64_t addr, uint64_t t)
{
	bool hit;

	if (s->c->warmth != SIM_COLD)
		return t;
	uint64_t *ready = cache_find(&s->tlb, addr / sim_cycles(s,
						COST_TLB_PAGE), &hit);
	if (!hit) {
		*ready = t + sim_cycles(s, COST_TLB_LAT);
		if (!s->walked)
			*ready += sim_cycles(s, COST_WALK_LAT) +
				  sim_ns(s, COST_WALK_NS);
		s->walked = true;
	}
	return sim_max(t, *ready);
}

/* Time from L2 to memory or Infinity Cache and back. */
static uint64_t home_latency(const struct sim *s, enum sim_level home)
{
	if (home < SIM_IC)
		return 0;
	return sim_ns(s, home == SIM_IC ? COST_IC_LAT : COST_DRAM_LAT);
}

static bool is_cold(const struct sim *s, uint64_t line)
{
	for (int i = 0; i < s->c->n_cold; i++)
		if (line * LINE - s->c->cold[i].at < s->c->cold[i].bytes)
			return true;
	return false;
}

/* Where a line comes from that no cache of ours has. */
static enum sim_level find_home(struct sim *s, uint64_t line)
{
	bool hit = false;

	if (is_cold(s, line))
		return SIM_DRAM;
	if (s->mall.sets)
		cache_find(&s->mall, line, &hit);
	return hit ? SIM_IC : s->home;
}

/*
 * Data that no cache of ours has.  Of `n` workgroups of the GPU that want the
 * line now, one waits for memory, the others find it in L2.
 */
static uint64_t from_home(struct sim *s, uint64_t line, uint64_t t,
			  uint32_t bytes, double n)
{
	enum sim_level home = find_home(s, line);
	double rate = home == SIM_IC ? s->ic_rate : s->dram_rate;

	s->r->bytes[n > 1 ? SIM_L2 : home] += bytes;
	if (home < SIM_IC)
		return t;
	s->r->exchanged_bytes += bytes / n;
	s->memory_busy += bytes / n / rate;
	s->from_memory = true;
	return reserve_bandwidth(&s->memory_free, t, bytes / n, rate) +
	       (uint64_t)((double)home_latency(s, home) / n);
}

/*
 * A line below L0; the cycle in which it is back from there.  Caches pass whole
 * lines on, memory only the sectors that were asked for.
 */
static uint64_t below_l0(struct sim *s, uint64_t line, int sectors, uint64_t t,
			 uint64_t l0, const struct sim_sharing *n)
{
	uint32_t bytes = LINE;
	uint64_t l1 = sim_cycles(s, COST_L1_LAT) - l0;
	uint64_t l2 = sim_cycles(s, COST_L2_LAT) - l0;
	bool hit;
	uint64_t *ready = cache_find(&s->l1, line, &hit);

	t = reserve_bandwidth(&s->l1_free, t, bytes, s->l1_rate);
	if (hit) {
		s->r->bytes[SIM_L1] += bytes;
		return sim_max(t + l1, *ready);
	}
	uint64_t *ready2 = cache_find(&s->l2, line, &hit);
	/* One of the array's WGPs asks L2, the others find it on its way. */
	t = reserve_bandwidth(&s->l2_free, t, bytes / n->array, s->l2_rate);
	s->l2_busy += bytes / n->array / s->l2_rate;
	if (hit) {
		s->r->bytes[SIM_L2] += bytes;
		return *ready = sim_max(t + l2, *ready2);
	}
	t = translate_page(s, line * bytes, t);
	*ready = *ready2 = from_home(s, line, t, SECTOR * (uint32_t)sectors,
				     n->gpu) +
			   l2;
	return *ready;
}

/* ---- shared paths ---- */

uint64_t sim_export_path(struct sim *s, struct wave *w)
{
	struct cu *cu = &s->cu[w->cu];
	uint32_t n = w->info->store || w->info->atomic
			     ? w->info->export_cycles : 1;
	uint64_t t = sim_max(s->now + sim_cycles(s, COST_LDS_START) - 1,
			     cu->export_free);

	cu->export_free = t + n;
	if (w->info->store)
		w->store_read = t + n;
	ring_put(w->info->kind == KIND_LDS ? &cu->lds_queue : &cu->vmem_queue,
		 t);
	return t + 1;
}

/* Cycles between an issue and its data path, and one for the wait. */
static uint64_t issue_to_path(const struct sim *s)
{
	return sim_cycles(s, COST_LDS_START) + 1;
}

/* ---- vector memory ---- */

/* Lines that an access touches, which sectors of them, and in all `n` times. */
struct segments {
	uint64_t line[128];
	uint8_t sectors[128]; /* bit 0: the lower half, bit 1: the upper */
	int n_lines, n;
};

static void add_segment(struct segments *g, uint64_t *last, uint64_t seg)
{
	if (seg == *last)
		return;
	*last = seg;
	g->n++;
	for (int k = g->n_lines; k-- > 0;)
		if (g->line[k] == seg / 2) {
			g->sectors[k] |= 1 << seg % 2;
			return;
		}
	if (g->n_lines == (int)ARRAY_SIZE(g->line))
		return;
	g->sectors[g->n_lines] = (uint8_t)(1 << seg % 2);
	g->line[g->n_lines++] = seg / 2;
}

static uint64_t scratch_at(const struct wave *w, const struct trace_access *a)
{
	/* Scratch of a wave is interleaved by dwords of its lanes. */
	return (UINT64_C(1) << 56) + ((uint64_t)w->id << 24) +
	       (a->at / 4 * 32 + (uint64_t)(a->lane < 0 ? 0 : a->lane)) * 4;
}

/* Nothing is known of the addresses: lanes in a row, nobody else's data. */
static void unknown_lines(const struct sim *s, const struct wave *w,
			  struct segments *g)
{
	uint32_t bytes = 4u * (w->info->lds_dwords ? w->info->lds_dwords : 1);
	uint64_t last = UINT64_MAX;
	uint64_t at = (UINT64_C(1) << 57) + ((uint64_t)w->info->line << 30) +
		      ((uint64_t)w->id << 14) + w->issues_here * 8192;
	uint32_t step = s->c->scattered ? 128 : bytes;

	for (int lane = 0; lane < s->src->wave_size; lane++)
		add_segment(g, &last, (at + (uint64_t)lane * step) / SECTOR);
}

/*
 * As many sectors as the bytes fill, from where the first lane is; what lanes
 * share, they share still.
 */
static void neighbour_lines(const struct wave *w, const struct sim_step *st,
			    struct segments *g)
{
	struct segments own = { 0 };
	uint64_t last = UINT64_MAX;
	uint32_t bytes = st->access_bytes * st->n_accesses;
	const uint64_t fresh = (UINT64_C(1) << 57) +
			       ((uint64_t)w->info->line << 40) +
			       ((uint64_t)w->id << 24);

	for (uint32_t k = 0; k < st->n_accesses; k++)
		add_segment(&own, &last, st->access[k].at / SECTOR);
	/* One more where the first lane begins inside a sector. */
	if ((uint32_t)own.n <= (bytes + SECTOR - 1) / SECTOR + 1) {
		*g = own;
		return;
	}
	last = UINT64_MAX;
	for (uint32_t at = 0; at < bytes; at += SECTOR)
		add_segment(g, &last, (fresh + (w->issues_here *
						(uint64_t)bytes) + at) / SECTOR);
}

static void find_segments(const struct sim *s, const struct wave *w,
			  const struct sim_step *st, struct segments *g)
{
	uint64_t last = UINT64_MAX;

	g->n = g->n_lines = 0;
	if (s->c->without & SIM_NO_SCATTER && st->n_accesses &&
	    (st->kind & TRACE_SPACE) != TRACE_SCRATCH) {
		neighbour_lines(w, st, g);
		return;
	}
	if (!st->n_accesses && st->exec)
		unknown_lines(s, w, g);
	for (uint32_t k = 0; k < st->n_accesses; k++) {
		uint64_t at = (st->kind & TRACE_SPACE) == TRACE_SCRATCH
				      ? scratch_at(w, &st->access[k])
				      : st->access[k].at;

		add_segment(g, &last, at / SECTOR);
		add_segment(g, &last, (at + st->access_bytes - 1) / SECTOR);
	}
}

static int sectors_of(const struct segments *g, int k)
{
	return g->sectors[k] == 3 ? 2 : 1;
}

static uint64_t load_lines(struct sim *s, struct wave *w,
			   const struct segments *g, uint64_t t)
{
	uint64_t l0 = sim_cycles(s, COST_L0_LAT), at;
	struct sim_sharing n = sharing_of(s, w->pc);

	/* Latencies count from the issue to the end of the wait. */
	l0 -= l0 > issue_to_path(s) ? issue_to_path(s) : l0;
	at = t + l0;
	for (int k = 0; k < g->n_lines; k++) {
		bool hit;
		uint64_t *ready = cache_find(&s->cu[w->cu].l0, g->line[k],
					     &hit);

		if (!hit)
			*ready = below_l0(s, g->line[k], sectors_of(g, k), t,
					  sim_cycles(s, COST_L0_LAT), &n) + l0;
		else
			s->r->bytes[SIM_L0] += SECTOR *
					       (uint64_t)sectors_of(g, k);
		at = sim_max(at, *ready);
	}
	return at;
}

/* Stores go through to L2. */
static uint64_t store_lines(struct sim *s, struct wave *w,
			    const struct segments *g, uint64_t t)
{
	uint64_t at = t;
	double bytes = 0;
	double rate = s->dram_rate * cost_value(s->m, COST_DRAM_WRITE_EFF) /
		      cost_value(s->m, COST_DRAM_READ_EFF);

	for (int k = 0; k < g->n_lines; k++) {
		at = sim_max(at, translate_page(s, g->line[k] * LINE, t));
		bytes += SECTOR * sectors_of(g, k);
	}
	at = reserve_bandwidth(&s->l2_free, at, bytes, s->l2_rate);
	s->l2_busy += bytes / s->l2_rate;
	s->r->bytes[SIM_L2] += (uint64_t)bytes;
	if (s->home == SIM_DRAM) {
		/* Written back after the store has returned. */
		reserve_bandwidth(&s->memory_free, at, bytes, rate);
		s->memory_busy += bytes / rate;
		s->r->exchanged_bytes += bytes;
	}
	return at + w->info->latency - issue_to_path(s);
}

static void read_until(struct wave *w, uint64_t t)
{
	const struct info *i = w->info;

	SIM_EACH_REG(k, r, i->vsrc, i->n_vsrc)
		w->v_read[r] = sim_max(w->v_read[r], t);
}

static void count_vmem(struct sim *s, struct wave *w, uint64_t at, bool load)
{
	if (load) {
		at = w->order_vm = sim_max(at, w->order_vm);
		pending_drop(&w->vm, s->now);
		pending_add(&w->vm, at, SIM_VMCNT);
	} else {
		at = w->order_vs = sim_max(at, w->order_vs);
		pending_drop(&w->vs, s->now);
		pending_add(&w->vs, at, SIM_VSCNT);
	}
	if (isa_op_info(w->info->in.op)->pipe == ISA_PIPE_FLAT) {
		pending_drop(&w->lgkm, s->now);
		pending_add(&w->lgkm, at, SIM_VMCNT);
	}
}

/*
 * Memory brings the lines of loads that follow each other at once in whatever
 * order: the first has all of its own hardly before the last has, and then they
 * return as L0 passes them on.
 */
static void return_together(struct sim *s, struct wave *w, uint64_t at,
			    uint64_t cycles)
{
	struct pending *p = &w->vm;

	if (s->now - w->burst_issue > BURST_GAP)
		w->burst = 0;
	pending_drop(p, s->now);
	for (int k = 1; k <= w->burst && k <= p->n; k++)
		p->at[p->n - k] = sim_max(p->at[p->n - k],
					  at - (uint64_t)k * cycles);
	w->burst += w->burst || s->from_memory;
	w->burst_issue = s->now;
}

void sim_vmem(struct sim *s, struct wave *w, const struct sim_step *st)
{
	struct cu *cu = &s->cu[w->cu];
	const struct info *i = w->info;
	struct segments g;
	bool load = i->load && !i->atomic;
	double width;

	s->from_memory = false;
	find_segments(s, w, st, &g);
	width = fmax((double)g.n * SECTOR / cost_value(s->m, COST_L0_BW),
		     i->issue);
	uint64_t begin = reserve_bandwidth(&cu->l0_free, sim_export_path(s, w),
					   width, 1), at;
	uint64_t cycles = (uint64_t)ceil(width);
	uint64_t more = cycles > 2 ? cycles - 2 : 0; /* than a dword a lane */
	if (load) { /* in order over all waves of the CU */
		at = load_lines(s, w, &g, begin) + more;
		cu->vm_order = fmax((double)at, cu->vm_order + width);
		at = (uint64_t)ceil(cu->vm_order);
		return_together(s, w, at, cycles);
	} else {
		at = store_lines(s, w, &g, begin + more);
	}
	if (sim_waits_for_data(s)) {
		const uint64_t ready = sim_data_ready(w);

		/* A store is as late as its data, in nobody's way. */
		if (!load && ready > s->now)
			at += ready - s->now;
		sim_data_put(w, at);
	}
	count_vmem(s, w, at, i->load);
	/* Each access of a clause waits for those before it to be read. */
	read_until(w, begin + sim_cycles(s, COST_VMEM_WAR) / 2);
	s->count[i->line].lines += (uint64_t)g.n_lines;
	w->busy = (uint32_t)cycles;
}

/* ---- scalar memory ---- */

void sim_smem(struct sim *s, struct wave *w, const struct sim_step *st)
{
	const struct info *i = w->info;
	uint64_t bytes = st->n_accesses ? st->access_bytes * st->n_accesses : 4;
	uint64_t at = st->n_accesses ? st->access[0].at
				     : UINT64_C(1) << 58; /* arguments */
	uint64_t back = s->now + i->latency - 1;

	for (uint64_t line = at / LINE; line <= (at + bytes - 1) / LINE;
	     line++) {
		bool hit;
		uint64_t *ready = cache_find(&s->scalar, line, &hit);

		if (!hit)
			*ready = below_l0(s, line, 1, s->now, 0, &alone) - 1;
		back = sim_max(back, *ready);
	}
	if (sim_waits_for_data(s))
		sim_data_put(w, back);
	if (i->n_sdst || !i->in.n_opnd) {
		pending_drop(sim_scalar_counter(s, w), s->now);
		pending_add(sim_scalar_counter(s, w), back, SIM_SMEMCNT);
	}
	w->busy = i->issue;
}

/* ---- set-up ---- */

static double busy_wgps(const struct sim *s)
{
	return s->c->busy_wgps ? s->c->busy_wgps
			       : cost_value(s->m, COST_N_WGP);
}

/* Busy WGPs that share an L1. */
static double in_array(const struct sim *s)
{
	return ceil(busy_wgps(s) / cost_value(s->m, COST_N_ARRAY));
}

/* What this WGP gets of what it shares with others, in bytes a cycle. */
static void share_rates(struct sim *s)
{
	double hz = s->mhz * 1e6, busy = busy_wgps(s);

	s->l1_rate = cost_value(s->m, COST_L1_BW) / in_array(s);
	s->l2_rate = cost_value(s->m, COST_L2_BW) / busy;
	s->ic_rate = cost_value(s->m, COST_MALL_BW) / hz / busy;
	s->dram_rate = cost_value(s->m, COST_DRAM_BW) *
		       cost_value(s->m, COST_DRAM_READ_EFF) / hz / busy;
	/* No WGP takes more than L1 gives one. */
	if (s->l2_rate > s->l1_rate)
		s->l2_rate = s->l1_rate;
}

static enum sim_level home_of(const struct sim *s)
{
	uint64_t bytes = s->c->footprint_bytes;

	if (s->c->warmth != SIM_WARM)
		return SIM_DRAM;
	if (bytes <= sim_cycles(s, COST_L2_BYTES))
		return SIM_L2;
	return bytes <= sim_cycles(s, COST_MALL_BYTES) ? SIM_IC : SIM_DRAM;
}

void sim_memory_init(struct sim *s)
{
	share_rates(s);
	s->home = home_of(s);
	for (int i = 0; i < 2; i++)
		cache_init(&s->cu[i].l0, sim_cycles(s, COST_L0_BYTES), LINE, 8);
	/* The other WGPs of the array fill the rest of L1. */
	cache_init(&s->l1, (uint64_t)((double)sim_cycles(s, COST_L1_BYTES) /
				      in_array(s)), LINE, 16);
	/* Other WGPs fill their share of empty caches. */
	double others = s->c->warmth == SIM_EMPTY ? busy_wgps(s) : 1;

	cache_init(&s->l2, (uint64_t)(cost_value(s->m, COST_L2_BYTES) /
				      others), LINE, 16);
	if (s->c->warmth != SIM_WARM)
		cache_init(&s->mall, (uint64_t)(cost_value(s->m,
				COST_MALL_BYTES) / others), LINE, 16);
	cache_init(&s->scalar, sim_cycles(s, COST_K_BYTES), LINE, 4);
	cache_init(&s->icache, sim_cycles(s, COST_IC_BYTES),
		   (uint32_t)sim_cycles(s, COST_IC_LINE), 8);
	cache_init(&s->tlb, 1024, 1, 16);
}

void sim_memory_fini(struct sim *s)
{
	for (int i = 0; i < 2; i++)
		cache_fini(&s->cu[i].l0);
	cache_fini(&s->l1);
	cache_fini(&s->l2);
	cache_fini(&s->mall);
	cache_fini(&s->scalar);
	cache_fini(&s->icache);
	cache_fini(&s->tlb);
}
