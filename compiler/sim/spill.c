/*
 * compiler/sim/spill.c - runs without spills: the code as if nothing in it went
 * to scratch.  Such instructions take no bytes, no port and no cycle; so does
 * the wait behind them, where it waits for nothing else.
 */
#include <stdlib.h>

#include "compiler/sim/sim_int.h"

void sim_spill_init(struct sim *s)
{
	const struct isa_target t = { s->chip->gen, s->src->wave_size, false };
	const size_t n = s->src->code_bytes;
	uint32_t gone = 0;

	if (!(s->c->without & SIM_NO_SPILLS))
		return;
	s->gone = xcalloc(n / 4 + 1, sizeof(*s->gone));
	for (size_t at = 0; at + 4 <= n;) {
		struct isa_inst in;
		const char *why =
			isa_decode(&t, s->src->code + at, n - at, &in);
		const size_t size = why ? 4 : in.size_bytes;

		for (size_t k = at; k < at + size; k += 4)
			s->gone[k / 4] = gone;
		if (!why && in.fmt == ISA_FMT_SCRATCH)
			gone += (uint32_t)size;
		at += size;
	}
}

void sim_spill_fini(struct sim *s)
{
	free(s->gone);
}

bool sim_spill_left_out(const struct sim *s, const struct wave *w)
{
	if (!(s->c->without & SIM_NO_SPILLS))
		return false;
	return w->info->in.fmt == ISA_FMT_SCRATCH ||
	       (w->spilled && sim_waits_for_nothing(s, w));
}

bool sim_spill_pass(struct sim *s, struct wave *w)
{
	struct sim_step st = { 0 };

	w->spilled = w->info->in.fmt == ISA_FMT_SCRATCH;
	w->issues_here++;
	w->have_pc = false;
	return s->src->step(s->src, w->id, s->now, &st, s->e) ||
	       err_wrap(s->e, "wave %d at 0x%llx", w->id,
			(unsigned long long)w->pc);
}
