/*
 * kfd/soft/exec/gfx12/barrier.c - barriers.
 *
 * A wave signals that it came to a barrier and waits until all others have;
 * s_barrier does both, on gfx12 these are two instructions (RDNA4 ISA 4.5,
 * S_BARRIER_SIGNAL).  The workgroup's barrier, -1, opens between slices
 * (soft_open_barrier()).  In a workgroup of one wave all of them do nothing.
 *
 * Named barriers, 1 to 16, belong to as many waves as s_barrier_init says in
 * M0[22:16]; a wave waits at the one that it joined (LLVM, gfx12; the card has
 * them where the kernel was given some).  -2, of traps, and 0 do nothing.
 */
#include "kfd/soft/exec/mem.h"

bool soft_open_barrier(struct soft_group *g, void (*before)(void *ctx),
		       void *ctx)
{
	int signalled = 0;

	g->n_ended = g->n_waiting = 0;
	for (int i = 0; i < g->n_waves; i++) {
		const struct soft_wave *w = &g->wave[i];

		g->n_ended += w->state == SOFT_ENDED;
		g->n_waiting += w->state == SOFT_AT_BARRIER;
		signalled += w->signalled && w->state != SOFT_ENDED;
	}
	if (!signalled || g->n_ended + signalled < g->n_waves)
		return false;
	if (before)
		before(ctx);
	for (int i = 0; i < g->n_waves; i++) {
		struct soft_wave *w = &g->wave[i];

		w->signalled = false;
		w->opened = w->state != SOFT_AT_BARRIER;
		if (w->state == SOFT_AT_BARRIER)
			w->state = SOFT_READY;
	}
	g->n_waiting = 0;
	return true;
}

static void run_s_barrier(struct soft_wave *w, const struct soft_uop *u)
{
	(void)u;
	if (w->group->n_waves < 2)
		return;
	w->signalled = true;
	w->state = SOFT_AT_BARRIER;
}

/* ------------------------------------------------------ signal and wait ----
 */

/* M0 names no negative ones; 0: none that counts. */
static int barrier_number(struct soft_wave *w, const struct isa_operand *o,
			  const struct isa_inst *in)
{
	const int32_t v = (int32_t)soft_read_scalar(w, o, in);
	const bool m0 = o->kind == ISA_K_SGPR && o->reg == ISA_R_M0;
	const int n = m0 ? v & 31 : v;

	return w->group->n_waves < 2 || n < -1 || n > SOFT_NAMED_BARRIERS ? 0 :
									    n;
}

/* Waves that joined it go on, or will when they come to wait. */
static void open_named(struct soft_group *g, int n)
{
	g->named[n - 1].signals = 0;
	for (int i = 0; i < g->n_waves; i++) {
		struct soft_wave *w = &g->wave[i];

		if (w->joined != n)
			continue;
		w->named_opened = true;
		if (w->state == SOFT_AT_NAMED_BARRIER)
			w->state = SOFT_READY, w->named_opened = false;
	}
}

/* Is the wave the first that signals? */
static bool signal_barrier(struct soft_wave *w, int n)
{
	struct soft_group *g = w->group;
	bool first = true;

	if (n == -1) {
		for (int i = 0; i < g->n_waves; i++)
			first &= !g->wave[i].signalled;
		w->signalled = true;
		return first;
	}
	if (!n)
		return false;
	first = !g->named[n - 1].signals++;
	if (g->named[n - 1].signals >= g->named[n - 1].members)
		open_named(g, n);
	return first;
}

static void run_signal(struct soft_wave *w, const struct soft_uop *u)
{
	signal_barrier(w, barrier_number(w, &u->in.opnd[0], &u->in));
}

static void run_signal_isfirst(struct soft_wave *w, const struct soft_uop *u)
{
	w->scc = signal_barrier(w, barrier_number(w, &u->in.opnd[0], &u->in));
}

static void run_wait(struct soft_wave *w, const struct soft_uop *u)
{
	const int n = (int16_t)u->in.f[ISA_F_SIMM16];

	if (w->group->n_waves < 2)
		return;
	if (n == -1 && !w->opened)
		w->state = SOFT_AT_BARRIER;
	else if (n == -1)
		w->opened = false;
	else if (n > 0 && w->joined && !w->named_opened)
		w->state = SOFT_AT_NAMED_BARRIER;
	else if (n > 0)
		w->named_opened = false;
}

/* ------------------------------------------------------- named barriers ----
 */

static void run_init(struct soft_wave *w, const struct soft_uop *u)
{
	const int n = barrier_number(w, &u->in.opnd[0], &u->in);

	if (n > 0)
		w->group->named[n - 1] = (struct soft_barrier){
			.members = w->s[ISA_R_M0] >> 16 & 0x7f,
		};
}

static void run_join(struct soft_wave *w, const struct soft_uop *u)
{
	const int n = barrier_number(w, &u->in.opnd[0], &u->in);

	w->joined = (uint8_t)(n > 0 ? n : 0);
	w->named_opened = false;
}

/* SCC: it belonged to one, which has one member less. */
static void run_leave(struct soft_wave *w, const struct soft_uop *u)
{
	struct soft_barrier *b;

	(void)u;
	w->scc = w->joined;
	if (!w->joined)
		return;
	b = &w->group->named[w->joined - 1];
	b->members -= b->members > 0;
	if (b->signals && b->signals >= b->members)
		open_named(w->group, w->joined);
	w->joined = 0;
}

/* Bits 22:16 signals, 10:4 members, 0 valid. */
static void run_get_state(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_group *g = w->group;
	const int n = barrier_number(w, &u->in.opnd[1], &u->in);
	uint32_t signals = 0, members = 0;

	if (n == -1) {
		for (int i = 0; i < g->n_waves; i++) {
			members += g->wave[i].state != SOFT_ENDED;
			signals += g->wave[i].signalled;
		}
	} else if (n) {
		members = g->named[n - 1].members;
		signals = g->named[n - 1].signals;
	}
	soft_write_scalar(w, &u->in.opnd[0],
			  signals << 16 | members << 4 | (members != 0));
}

soft_handler *soft_barrier_handler(const struct isa_inst *in)
{
	switch (in->op) {
	case ISA_s_barrier:
		return run_s_barrier;
	case ISA_s_barrier_signal:
		return run_signal;
	case ISA_s_barrier_signal_isfirst:
		return run_signal_isfirst;
	case ISA_s_barrier_wait:
		return run_wait;
	case ISA_s_barrier_init:
		return run_init;
	case ISA_s_barrier_join:
		return run_join;
	case ISA_s_barrier_leave:
		return run_leave;
	case ISA_s_get_barrier_state:
		return run_get_state;
	case ISA_s_wakeup_barrier: /* nobody sleeps */
		return soft_run_nothing;
	}
	return NULL;
}
