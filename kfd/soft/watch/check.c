/*
 * kfd/soft/watch/check.c - checked mode: the checks of an instruction, and the
 * reports of findings.
 *
 * watch.h has the rules (soft_watch_findings()); registers and waits are in
 * check_wait.c, uninitialised values in check_init.c, memory in check_mem.c,
 * the order of memory accesses in check_hb.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/text/text.h"
#include "kfd/soft/watch/watch_int.h"

#define REPORTS_MAX 500

static const char *const rule_name[CHECK_COUNT] = {
	[CHECK_HAZARD] = "hazard",	  [CHECK_RACE] = "race",
	[CHECK_UNINIT] = "uninitialised", [CHECK_BOUNDS] = "bounds",
	[CHECK_ALIGN] = "alignment",	  [CHECK_BARRIER] = "barrier",
	[CHECK_WMMA] = "wmma",
};

/* ----------------------------------------------------------- reports ---- */

void check_where(const struct soft_watch *t, const struct site *s,
		 struct buf *out)
{
	const struct isa_target target = { s->u.in.gen, s->wide ? 64 : 32,
					   true };
	char text[ISA_TEXT_MAX];

	isa_print(&target, &s->u.in, text, sizeof(text));
	buf_printf(out, "%s at ", text);
	watch_place(t, s->pc, out);
}

bool check_known(struct soft_watch *t, enum check_rule rule, uint64_t pc,
		 uint64_t other_pc)
{
	for (size_t i = 0; i < t->n_reports; i++) {
		struct report *r = &t->report[i];

		if (r->rule == rule && r->pc == pc && r->other_pc == other_pc) {
			r->count++;
			t->n_findings++;
			return true;
		}
	}
	t->n_findings += t->n_reports == REPORTS_MAX;
	return t->n_reports == REPORTS_MAX;
}

static void put_headline(const struct actor *a, enum check_rule rule, int lane,
			 struct buf *out)
{
	const uint64_t kd = a->sh->l->packet.kernel_object;
	const char *kernel = watch_kernel(a->t, kd);
	const uint32_t *g = a->w->group->id;

	buf_printf(out, "%s: kernel ", rule_name[rule]);
	if (kernel)
		buf_adds(out, kernel);
	else
		buf_printf(out, "0x%llx", (unsigned long long)kd);
	buf_printf(out, ", workgroup %u,%u,%u, wave %d", g[0], g[1], g[2],
		   a->w->index);
	if (lane >= 0)
		buf_printf(out, ", lane %d", lane);
	buf_adds(out, "\n  ");
	check_where(a->t, a->s, out);
	buf_adds(out, "\n  ");
}

void check_report(struct actor *a, enum check_rule rule, int lane,
		  uint64_t other_pc, const char *fmt, ...)
{
	struct soft_watch *t = a->t;
	struct buf text = { 0 };
	char what[1024];
	va_list ap;

	if (check_known(t, rule, a->s->pc, other_pc))
		return;
	put_headline(a, rule, lane, &text);
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	buf_printf(&text, "%s\n", what);
	VEC_GROW(t->report, t->n_reports, 1, t->cap_reports);
	t->report[t->n_reports++] = (struct report){
		.rule = rule,
		.pc = a->s->pc,
		.other_pc = other_pc,
		.count = 1,
		.text = text.data,
	};
	t->n_findings++;
}

/* ------------------------------------------------- groups, barriers ---- */

void check_group_start(struct soft_watch *t, struct shadow *sh)
{
	const struct soft_launch *l = sh->l;

	(void)t;
	memset(sh->lds_valid, 0, l->lds_bytes / 8 + 1);
	memset(sh->lds_race.cell, 0,
	       lds_blocks(l) * RACE_BLOCK * sizeof(*sh->lds_race.cell));
	memset(sh->lds_race.split, 0, lds_blocks(l) / 8 + 1);
	for (int i = 0; i < sh->n_waves; i++) {
		struct shadow_wave *sw = &sh->wave[i];
		uint8_t *scratch = sw->scratch;

		memset(scratch, 0, l->scratch_wave_bytes / 8 + 1);
		clocks_fini(&sw->known);
		clocks_fini(&sw->acquired);
		memset(sw, 0, sizeof(*sw));
		sw->scratch = scratch;
		sw->number = (uint32_t)(sh->index * l->waves_per_group) +
			     (uint32_t)i;
		init_wave(sh, sw, &sh->run->g.wave[i]);
	}
}

/* A wave that ended leaves the others alone at their barrier. */
static void check_ended(struct soft_watch *t, struct shadow *sh,
			const struct shadow_wave *ended, int index)
{
	struct soft_wave *w = sh->run->g.wave;
	struct buf text = { 0 };
	int i = 0;

	while (i < sh->n_waves && w[i].state != SOFT_AT_BARRIER)
		i++;
	if (i == sh->n_waves || !sh->wave[i].last)
		return;
	check_where(t, ended->last, &text);
	check_report(&(struct actor){ t, sh, &w[i], &sh->wave[i],
				      sh->wave[i].last },
		     CHECK_BARRIER, -1, ended->last->pc,
		     "waits for all waves of the workgroup, but wave %d "
		     "ended without coming here:\n  %s", index, text.data);
	buf_fini(&text);
}

void check_barrier(struct soft_watch *t, struct shadow *sh)
{
	for (int i = 0; i < sh->n_waves; i++) {
		struct shadow_wave *sw = &sh->wave[i];

		const struct soft_wave *w = &sh->run->g.wave[i];

		if (w->signalled) {
			memcpy(sw->at_barrier, sw->arrived,
			       sizeof(sw->at_barrier));
			continue;
		}
		for (int c = 0; c < CLASS_COUNT; c++)
			sw->at_barrier[c] = sw->seq;
		if (sw->last)
			check_ended(t, sh, sw, i);
	}
	hb_barrier(sh);
}

/* ------------------------------------------------------- instructions ---- */

static void check_wmma(struct actor *a)
{
	for (int h = 0; h < soft_halves(a->w); h++)
		if (soft_exec(a->w, h) != UINT32_MAX) {
			check_report(a, CHECK_WMMA, -1, 0,
				     "EXEC is 0x%x%s: the result of a matrix "
				     "instruction with lanes switched off is "
				     "undefined", soft_exec(a->w, h),
				     h ? " in lanes 63:32" : "");
			return;
		}
}

/* Which counters the instruction is going to use: bits of watch_class. */
static uint8_t counter_classes(const struct actor *a)
{
	const struct site *s = a->s;
	uint8_t c = s->is_load || s->returns ? 1 << CLASS_VM : 1 << CLASS_VS;
	bool lds = false, other = a->t->n_accesses == 0;

	if (s->kind == SITE_SMEM)
		return (uint8_t)(1 << check_scalar_class(a));
	if (s->kind == SITE_LDS || s->kind == SITE_LANES)
		return 1 << CLASS_LDS;
	if (s->u.in.fmt != ISA_FMT_FLAT)
		return c;
	/* FLAT counts on both, but data come from where the lanes go. */
	for (int i = 0; i < a->t->n_accesses; i++) {
		lds |= a->t->access[i].space == SOFT_SPACE_LDS;
		other |= a->t->access[i].space != SOFT_SPACE_LDS;
	}
	return (uint8_t)((lds ? 1 << CLASS_ANY : 0) | (other ? c : 0));
}

static bool keeps_release(const struct site *s)
{
	return s->info->pipe == ISA_PIPE_SPECIAL;
}

void check_instruction(struct actor *a)
{
	struct shadow_wave *sw = a->sw;
	const struct site *s = a->s;
	const bool memory = s->kind != SITE_ALU;
	const bool message = s->u.in.op == ISA_s_sendmsg_rtn_b32 ||
			     s->u.in.op == ISA_s_sendmsg_rtn_b64;

	if (s->info->pipe == ISA_PIPE_WMMA)
		check_wmma(a);
	check_hazards(a);
	check_values(a);
	if (memory || message) {
		const uint32_t seq = check_issue(
			a, message ? (uint8_t)(1 << check_scalar_class(a)) :
				     counter_classes(a));

		if (a->t->n_accesses)
			check_memory(a, seq);
		if (memory)
			check_moved(a);
	}
	if (s->u.in.op == ISA_buffer_gl0_inv || s->u.in.op == ISA_global_inv)
		hb_invalidate(a);
	if (s->u.in.op == ISA_s_barrier || s->u.in.op == ISA_s_barrier_signal ||
	    s->u.in.op == ISA_s_barrier_signal_isfirst)
		for (int c = 0; c < CLASS_COUNT; c++)
			sw->arrived[c] = check_done(sw, c);
	if ((s->u.in.op == ISA_s_waitcnt_vscnt ||
	     s->u.in.op == ISA_s_wait_storecnt ||
	     s->u.in.op == ISA_s_wait_storecnt_dscnt) &&
	    !(s->u.in.f[ISA_F_SIMM16] & ~0x3fu))
		sw->released = true;
	else if (!keeps_release(s))
		sw->released = false;
	sw->last = s;
}
