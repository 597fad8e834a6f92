/*
 * compiler/sim/core.c - the loop over cycles.  Waves sleep until the earliest
 * cycle in which they can issue; cycles in which all sleep are skipped.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/sim_int.h"
#include "isa/code/code.h"

static const struct {
	const char *name, *text;
} stalls[SIM_STALL_COUNT] = {
	{ "issue", "instructions issued" },
#define STALL(id, name, text) { name, text },
#include "compiler/sim/stall.def"
};

static const char *const pipes[SIM_PIPE_COUNT] = {
#define PIPE(id, name, text) name,
#include "compiler/sim/stall.def"
};

const char *sim_stall_name(enum sim_stall s)
{
	return stalls[s].name;
}

const char *sim_stall_text(enum sim_stall s)
{
	return stalls[s].text;
}

const char *sim_pipe_name(enum sim_pipe p)
{
	return pipes[p];
}

/* On one WGP in one run: 8192 times its slots' worth of work. */
enum { WAVES_MAX = 1 << 19 };

/* ---- one wave ---- */

/* From s->now up to `to` the wave waits for `why`. */
static void stall_wave(struct sim *s, struct wave *w, uint64_t to,
		       enum sim_stall why)
{
	uint64_t n = to - s->now;

	w->stall[why] += n;
	s->count[w->info->line].stall[why] += n;
	if (n > w->longest_cycles) {
		w->longest_cycles = n;
		w->longest = (uint8_t)why;
	}
	s->ready[w->place] = to;
}

/* Learn where the wave is; a jump refills its instruction buffer. */
static bool next_instruction(struct sim *s, struct wave *w)
{
	uint64_t pc;

	if (!s->src->pc(s->src, w->id, &pc)) {
		/* A trace that was cut: no s_endpgm. */
		w->ended = true;
		w->end = s->ready[w->place] = s->now;
		return true;
	}
	if (w->branch && w->branch == w->pc)
		sim_steady_jumped(w, pc != w->next_pc);
	if (w->info && pc != w->next_pc) {
		w->hold = w->issued + sim_cycles(s, COST_BRANCH_TAKEN);
		w->hold_why = SIM_BRANCH;
	}
	if (!w->info && s->c->start)
		sim_fetched(s, pc);
	w->pc = pc;
	w->info = sim_info(s, pc);
	w->have_pc = true;
	w->since = s->now;
	w->longest = SIM_ISSUE;
	w->longest_cycles = 0;
	if (w->info)
		w->next_pc = pc + w->info->in.size_bytes;
	return w->info;
}

static void report_issue(struct sim *s, const struct wave *w)
{
	struct sim_event ev = {
		.cycle = s->now,
		.pc = w->pc,
		.ready = w->since,
		.wave = w->id,
		.simd = w->simd,
		.stall = w->longest,
		.pipe = w->info->pipe,
		.busy = w->busy,
		.in = &w->info->in,
	};

	s->c->issued(s->c->ctx, &ev);
}

static bool do_issue(struct sim *s, struct wave *w)
{

	w->issues_here++;
	w->issued = s->now;
	s->ready[w->place] = s->now + 1;
	w->have_pc = false;
	w->stall[SIM_ISSUE]++;
	s->count[w->info->line].stall[SIM_ISSUE]++;
	s->r->issues++;
	if (!sim_issue(s, w))
		return false;
	if (s->c->issued)
		report_issue(s, w);
	return true;
}

/* One wave in one cycle; `taken` are the kinds that older ones issued. */
static bool try_wave(struct sim *s, struct wave *w, unsigned *taken)
{
	enum sim_stall why;
	bool ok = true;

	do {
		if (!w->have_pc && !next_instruction(s, w))
			return false;
		if (w->ended)
			return true;
	} while (sim_spill_left_out(s, w) && (ok = sim_spill_pass(s, w)));
	if (!ok)
		return false;
	uint64_t t = sim_earliest(s, w, &why);
	unsigned kind = 1u << w->info->kind;
	if (t > s->now) {
		/* The port is busy because an older wave just took it. */
		stall_wave(s, w, t,
			   why == SIM_PIPE && *taken & kind ? SIM_OLDER : why);
		return true;
	}
	if (*taken & kind && w->info->kind != KIND_DELAY) {
		stall_wave(s, w, s->now + 1, SIM_OLDER);
		return true;
	}
	*taken |= kind;
	return do_issue(s, w);
}

/* ---- all waves ---- */

/* Waves of one priority, the oldest first. */
static bool try_level(struct sim *s, unsigned *taken, int level)
{
	for (int i = 0; i < s->n_waves; i++) {
		struct wave *w = s->wave[i];

		if (s->ready[i] <= s->now && !w->ended &&
		    w->priority == level &&
		    !try_wave(s, w, &taken[w->simd]))
			return false;
	}
	return true;
}

static bool try_simds(struct sim *s)
{
	unsigned taken[SIM_SIMDS] = { 0 };
	bool ok = true;

	for (int level = s->priorities ? 3 : 0; ok && level >= 0; level--)
		ok = try_level(s, taken, level);
	return ok;
}

static bool retire_ended(struct sim *s)
{
	bool any = false;

	for (int i = s->n_waves; i-- > 0;)
		if (s->ready[i] <= s->now && s->wave[i]->ended) {
			sim_retire(s, s->wave[i]);
			any = true;
		}
	return !any || sim_launch(s);
}

static uint64_t next_cycle(const struct sim *s)
{
	uint64_t t = SIM_NEVER;

	for (int i = 0; i < s->n_waves; i++)
		t = s->ready[i] < t ? s->ready[i] : t;
	return t;
}

static bool run_cycles(struct sim *s)
{
	uint64_t most = s->c->max_cycles ? s->c->max_cycles : 1000000000;

	while (s->n_waves) {
		uint64_t t = next_cycle(s);

		if (t == SIM_NEVER)
			return err_set(s->e, ERR_INPUT, "all waves wait at a "
				       "barrier that the others do not reach");
		if (t > most)
			return err_set(s->e, ERR_TIMEOUT, "not at its end "
				       "after %llu cycles",
				       (unsigned long long)most);
		s->now = t;
		if (!retire_ended(s) || !try_simds(s))
			return false;
	}
	return true;
}

/* ---- set-up and result ---- */

static bool check_source(const struct sim_source *src, struct err *e)
{
	if (src->waves_per_group < 1 || src->waves_per_group > SIM_WAVES_MAX)
		return err_set(e, ERR_INPUT, "%d waves in a workgroup: wanted "
			       "1 to %d", src->waves_per_group, SIM_WAVES_MAX);
	if (src->n_groups < 1 ||
	    src->n_groups > WAVES_MAX / src->waves_per_group)
		return err_set(e, ERR_INPUT, "%d workgroups of %d waves on one "
			       "WGP: wanted 1 to %d waves", src->n_groups,
			       src->waves_per_group, WAVES_MAX);
	if (src->wave_size != 32 && src->wave_size != 64)
		return err_set(e, ERR_INPUT, "waves of %d lanes: wanted 32 or "
			       "64", src->wave_size);
	if (src->code_bytes < 4 || src->code_bytes > CODE_BYTES_MAX)
		return err_set(e, ERR_INPUT, "%zu bytes of code: wanted 4 to "
			       "%u", src->code_bytes, CODE_BYTES_MAX);
	return true;
}

static bool find_resources(struct sim *s)
{
	const struct sim_source *src = s->src;
	struct isa_resources need = {
		.wave = src->wave_size,
		.vgprs = src->vgprs,
		.lds_bytes = src->lds_bytes,
		.workgroup_size = src->waves_per_group * src->wave_size,
		.wgp_mode = !src->cu_mode,
	};
	struct isa_occupancy o;

	if (!isa_occupancy(s->m->chip, &need, &o))
		return err_set(s->e, ERR_INPUT, "%s cannot hold a workgroup of "
			       "%d waves with %d VGPRs and %u bytes of LDS",
			       s->m->chip, src->waves_per_group, src->vgprs,
			       src->lds_bytes);
	s->vgpr_need = o.vgprs_allocated * src->wave_size / 32;
	s->lds_need = o.lds_allocated_bytes;
	s->r->slots = o.waves;
	s->r->occupancy_limit = o.limit;
	return true;
}

/* Code and costs are of one generation: others' numbers say nothing of it. */
static bool find_chip(struct sim *s)
{
	const char *name = s->src->chip;
	const struct isa_chip *of = name ? isa_chip_of_code(name) : NULL;

	s->chip = isa_chip_find(s->m->chip);
	if (!s->chip)
		return err_set(s->e, ERR_UNSUPPORTED, "costs of %s: that chip "
			       "is not known", s->m->chip);
	if (of && of->gen != s->chip->gen &&
	    strcmp(name, isa_gen_info(s->chip->gen)->generic))
		return err_set(s->e, ERR_INPUT, "code of %s, costs of %s: "
			       "wanted both of one generation",
			       of->name, s->chip->name);
	return true;
}

static bool begin_run(struct sim *s)
{
	struct sim_source *src = s->src;
	struct sim_result *r = s->r;

	if (!check_source(src, s->e) || !find_chip(s) || !find_resources(s))
		return false;
	src->arrays = (int)cost_value(s->m, COST_N_ARRAY);
	src->array_wgps = (int)ceil(cost_value(s->m, COST_N_WGP) /
				    cost_value(s->m, COST_N_ARRAY));
	r->n_waves = src->n_groups * src->waves_per_group;
	r->wave = xcalloc((size_t)r->n_waves, sizeof(*r->wave));
	s->group = xcalloc((size_t)src->n_groups, sizeof(*s->group));
	s->info = xcalloc(src->code_bytes / 4 + 1, sizeof(*s->info));
	s->storage = xcalloc(SIM_WAVES_MAX, sizeof(*s->storage));
	for (int i = 0; i < SIM_WAVES_MAX; i++)
		s->storage[i].id = -1;
	sim_memory_init(s);
	sim_spill_init(s);
	sim_steady_init(s);
	return sim_launch(s);
}

static int by_pc(const void *a, const void *b)
{
	const struct sim_line *x = a, *y = b;

	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static void make_lines(struct sim *s)
{
	struct sim_result *r = s->r;

	r->line = xcalloc((size_t)r->n_lines + 1, sizeof(*r->line));
	for (size_t k = s->info_from; k < s->info_end; k++) {
		const struct info *i = &s->info[k];
		const struct line_count *c = &s->count[i->line];
		struct sim_line *l = &r->line[i->line];

		if (!i->valid)
			continue;
		l->pc = s->src->code_va + k * 4;
		l->in = i->in;
		l->issues = c->stall[SIM_ISSUE];
		memcpy(l->stall, c->stall, sizeof(l->stall));
		l->conflicts = c->conflicts;
		l->lines = c->lines;
	}
	qsort(r->line, (size_t)r->n_lines, sizeof(*r->line), by_pc);
}

/* How many of each pipe a WGP has. */
static int pipe_count(enum sim_pipe p)
{
	switch (p) {
	case SIM_PIPE_LDS:
	case SIM_PIPE_VMEM:
	case SIM_PIPE_EXPORT:
		return 2;
	case SIM_PIPE_SMEM:
	case SIM_PIPE_L2:
	case SIM_PIPE_MEMORY:
		return 1;
	default:
		return SIM_SIMDS;
	}
}

static void add_up(struct sim *s)
{
	struct sim_result *r = s->r;
	uint64_t first = SIM_NEVER, last = 0;

	for (int i = 0; i < r->n_waves; i++) {
		first = r->wave[i].start < first ? r->wave[i].start : first;
		last = sim_max(last, r->wave[i].end);
		for (int k = 0; k < SIM_STALL_COUNT; k++)
			r->stall[k] += r->wave[i].stall[k];
	}
	r->cycles = last - first;
	r->clock_mhz = s->mhz;
	r->time_s = (double)r->cycles / (s->mhz * 1e6);
	r->busy[SIM_PIPE_L2] = (uint64_t)s->l2_busy;
	r->busy[SIM_PIPE_MEMORY] = (uint64_t)s->memory_busy;
	for (int p = 0; p < SIM_PIPE_COUNT; p++) {
		r->share[p] = (double)r->busy[p] / pipe_count(p) /
			      (double)r->cycles;
		/* Waits and hints occupy nothing that could limit. */
		if (p != SIM_PIPE_SPECIAL && r->share[p] > r->share[r->limit])
			r->limit = (enum sim_pipe)p;
	}
	make_lines(s);
}

bool sim_run(struct sim_source *src, const struct sim_config *c,
	     struct sim_result *r, struct err *e)
{
	struct sim s = { .src = src, .c = c, .m = c->cost, .r = r, .e = e };

	*r = (struct sim_result){ .wave_size = src->wave_size };
	for (int k = 0; k < COST_ROW_COUNT; k++)
		s.cycles[k] = (uint64_t)(cost_value(c->cost, k) + 0.5);
	s.mhz = c->clock_mhz ? c->clock_mhz : cost_value(c->cost, COST_CLOCK);
	bool ok = begin_run(&s) && run_cycles(&s);
	sim_steady_fini(&s);
	if (ok)
		add_up(&s);
	else
		sim_fini(r);
	sim_memory_fini(&s);
	sim_spill_fini(&s);
	free(s.group);
	free(s.info);
	free(s.count);
	free(s.storage);
	return ok;
}

void sim_fini(struct sim_result *r)
{
	free(r->line);
	free(r->wave);
	free(r->occupancy);
	memset(r, 0, sizeof(*r));
}
