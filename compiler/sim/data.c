/*
 * compiler/sim/data.c - the flow of data out of memory, for runs without serial
 * waits: waits of the code are passed over, and each register remembers when
 * its value can be there at the earliest.
 */
#include "compiler/sim/sim_int.h"

uint64_t sim_data_ready(const struct wave *w)
{
	const struct info *i = w->info;
	uint64_t t = 0;

	SIM_EACH_REG(k, r, i->vsrc, i->n_vsrc)
		t = sim_max(t, w->v_data[r]);
	SIM_EACH_REG(k, r, i->ssrc, i->n_ssrc)
		t = sim_max(t, w->s_data[r]);
	return t;
}

void sim_data_put(struct wave *w, uint64_t at)
{
	const struct info *i = w->info;
	const uint64_t t = sim_max(at, sim_data_ready(w));

	SIM_EACH_REG(k, r, i->vdst, i->n_vdst)
		w->v_data[r] = t;
	SIM_EACH_REG(k, r, i->sdst, i->n_sdst)
		w->s_data[r] = t;
}
