/*
 * One wave that runs code from its beginning, and whether host code
 * (kfd/soft/exec/fast/native.h) did so alone.
 */
#ifndef T0_TESTS_EXEC_HOST_CODE_H
#define T0_TESTS_EXEC_HOST_CODE_H

#include "kfd/soft/exec/code.h"
#include "kfd/soft/exec/fast/native.h"
#include "tests/bench/machine.h"

/* From the beginning, with registers as they are. */
static inline void run_code(struct bench_machine *m, const struct soft_wave *as)
{
	struct soft_wave *w = &m->w;

	memcpy(w->s, as->s, sizeof(w->s));
	w->mode = as->mode;
	w->scc = as->scc;
	w->pc = CODE_VA;
	w->state = SOFT_READY;
	memset(&w->last, 0, sizeof(w->last));
	while (w->state == SOFT_READY)
		soft_wave_run(w, 4096);
}

/* What a superblock's microops were, before watch_device(). */
static soft_microop_fn *watched[32];
static const struct soft_microop *watched_first;
static unsigned n_left; /* by host code, for one of them, so often */

static void note_and_run(struct soft_wave *w, const struct soft_microop *m,
			 const uintptr_t *base)
{
	n_left++;
	watched[m - watched_first](w, m, base);
}

static bool is_native(const struct bench_machine *m, soft_microop_fn *fn)
{
	for (const struct soft_native *n = m->group.code->native; n;
	     n = n->older)
		if ((uintptr_t)fn - (uintptr_t)n->code < n->size_bytes)
			return true;
	return false;
}

/* Note from now on when one of the code's microops runs that are in its
 * superblock behind host code; false: there is none. */
static inline bool watch_device(struct bench_machine *m)
{
	const struct soft_superblock *b = m->group.code->fast;
	struct soft_microop *at;

	while (b && ((const struct soft_node *)b->microop->u)->pc != CODE_VA)
		b = b->older;
	at = b ? b->microop : NULL;
	watched_first = at;
	if (!at || !is_native(m, at->fn))
		return false;
	while (!((const struct soft_node *)(++at)->u)->branches) {
		/* The microop before the end of DPP looks for it. */
		if (is_native(m, at->fn) || at->fn == soft_simd()->row->dpp_end)
			continue;
		watched[at - watched_first] = at->fn;
		at->fn = note_and_run;
	}
	return true;
}

#endif
