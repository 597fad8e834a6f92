/*
 * kfd/soft/exec/trap.c - how waves come into their trap handler: s_trap, and
 * accesses to watched addresses.
 *
 * A card enters the kernel's handler, which saves waves and calls the
 * program's.  Waves need no saving here, so the program's is entered at once,
 * with the registers as the kernel's leaves them to it.
 */
#include "kfd/soft/exec/mem.h"

enum status {
	STATUS_SCC = 1 << 0,
	STATUS_PRIV = 1 << 5,
	STATUS_EXECZ = 1 << 9,
	STATUS_VCCZ = 1 << 10,
	STATUS_IN_TG = 1 << 11,
	STATUS_HALT = 1 << 13,
	STATUS_VALID = 1 << 16,
};

uint32_t soft_status(const struct soft_wave *w)
{
	return STATUS_VALID | (w->scc ? STATUS_SCC : 0) |
	       (w->privileged ? STATUS_PRIV : 0) |
	       (soft_is_execz(w) ? STATUS_EXECZ : 0) |
	       (soft_is_vccz(w) ? STATUS_VCCZ : 0) |
	       (w->group->n_waves > 1 ? STATUS_IN_TG : 0) |
	       (w->halt ? STATUS_HALT : 0);
}

void soft_set_status(struct soft_wave *w, uint32_t mask, uint32_t value)
{
	if (mask & STATUS_SCC)
		w->scc = value & STATUS_SCC;
	if (mask & STATUS_HALT)
		w->halt = value & STATUS_HALT;
}

static void put_address(uint32_t *ttmp, uint64_t va)
{
	ttmp[0] = (uint32_t)va;
	ttmp[1] = (uint32_t)(va >> 32);
}

bool soft_trap_enter(struct soft_wave *w, uint64_t pc, unsigned id)
{
	const struct soft_traps *t = w->group->env->traps;
	const uint32_t debugger = 1u << 23;
	uint32_t *ttmp = &w->s[ISA_R_TTMP0];

	if (!t || !t->tba)
		return false;
	/* 48 bits of PC, and above them the trap. */
	put_address(ttmp, (pc & 0xffffffffffff) | (uint64_t)id << 48);
	put_address(ttmp + 2, t->tba);
	ttmp[11] = (ttmp[11] & ~debugger) | (t->debugger ? debugger : 0);
	ttmp[12] = soft_status(w);
	put_address(ttmp + 14, t->tma);
	w->privileged = true;
	w->pc = t->tba;
	return true;
}

/* ------------------------------------------------------------- watches -- */

bool soft_is_watched(const struct soft_wave *w)
{
	const struct soft_traps *t = w->group->env->traps;

	if (!t || !(w->mode & SOFT_MODE_TRAP_WATCH))
		return false;
	for (int i = 0; i < SOFT_WATCHES; i++)
		if (t->watch[i].on)
			return true;
	return false;
}

/* Bit 7 of TRAPSTS for the first, 12 to 14 for the others. */
static uint32_t match_bytes(const struct soft_traps *t, uint32_t flags,
			    uint64_t va, uint32_t bytes)
{
	const uint32_t kinds = flags & ISA_ATOMIC ? 1u << SOFT_WATCH_NONREAD |
						    1u << SOFT_WATCH_ATOMIC :
			       flags & ISA_STORE  ? 1u << SOFT_WATCH_NONREAD :
						    1u << SOFT_WATCH_READ;
	uint32_t found = 0;

	for (int i = 0; i < SOFT_WATCHES; i++) {
		const struct soft_address_watch *x = &t->watch[i];

		if (x->on && (kinds | 1u << SOFT_WATCH_ALL) >> x->mode & 1 &&
		    (!((va ^ x->va) & x->mask) ||
		     !(((va + bytes - 1) ^ x->va) & x->mask)))
			found |= i ? 1u << (11 + i) : 1u << 7;
	}
	return found;
}

static uint32_t match_lane(struct soft_wave *w, const struct soft_uop *u,
			   int half, uint32_t lane, uint32_t flags)
{
	const struct soft_traps *t = w->group->env->traps;
	const struct soft_access *a = u->op;
	struct soft_buffer b;
	struct soft_place p;
	uint64_t va;

	if (!a->bytes)
		return 0;
	switch (u->in.fmt) {
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
		soft_find_place(w, u, half, lane, &p);
		return p.space == SOFT_SPACE_MEMORY ?
			       match_bytes(t, flags, p.at, a->bytes) : 0;
	case ISA_FMT_MUBUF:
		soft_buffer_init(&b, w, u);
		return soft_buffer_at(&b, w, u, half, lane, 0, a->bytes,
				      &va) ?
			       match_bytes(t, flags, va, a->bytes) : 0;
	}
	return 0;
}

uint32_t soft_watch_match(struct soft_wave *w, const struct soft_uop *u)
{
	const uint32_t flags = isa_op_info(u->in.op)->flags;
	uint32_t found = 0;

	/* Typed formats, images and ..._addtid are not looked at. */
	if (!u->op || !(flags & (ISA_LOAD | ISA_STORE | ISA_ATOMIC)) ||
	    u->in.op == ISA_global_load_addtid_b32 ||
	    u->in.op == ISA_global_store_addtid_b32)
		return 0;
	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
			found |= match_lane(w, u, h, lane, flags);
	return found;
}
