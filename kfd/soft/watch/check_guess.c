/*
 * kfd/soft/watch/check_guess.c - plain loads whose value an atomic compare and
 * exchange of the same address checks.
 */
#include <string.h>

#include "kfd/soft/watch/watch_int.h"

/* The exchange is in the same loop, or before it. */
#define LOOK_AHEAD_BYTES 512

static bool is_exchange(const struct isa_inst *in)
{
	const char *name = isa_op_info((enum isa_op)in->op)->name;

	return strstr(name, "cmpswap") || strstr(name, "cmpstore");
}

/* Do both name their address by the same registers and offset? */
static bool is_same_address(const struct isa_inst *load,
			    const struct isa_inst *swap)
{
	static const uint8_t fields[] = {
		ISA_F_ADDR, ISA_F_SADDR, ISA_F_OFFSET, ISA_F_OFFSET0,
		ISA_F_OFFSET1, ISA_F_SRSRC, ISA_F_SOFFSET, ISA_F_OFFEN,
		ISA_F_IDXEN,
	};

	if (load->fmt == ISA_FMT_SMEM)
		return swap->fmt == ISA_FMT_GLOBAL &&
		       load->f[ISA_F_SBASE] * 2 == swap->f[ISA_F_SADDR] &&
		       load->f[ISA_F_OFFSET] == swap->f[ISA_F_OFFSET];
	if (load->fmt != swap->fmt)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (load->f[fields[i]] != swap->f[fields[i]])
			return false;
	return true;
}

static bool is_guess(const struct actor *a, const struct site *load)
{
	const struct soft_env *env = a->w->group->env;
	const struct isa_target t = { load->u.in.gen, a->w->wave_size, true };
	uint64_t at = load->pc + load->u.in.size_bytes;
	const uint64_t end = at + LOOK_AHEAD_BYTES;
	struct soft_range r;
	struct isa_inst in;

	if (!env->find(env->ctx, load->pc, &r))
		return false;
	while (at < end && at - r.va < r.size_bytes &&
	       !isa_decode(&t, r.host + (at - r.va), r.size_bytes - (at - r.va),
			   &in)) {
		soft_extend_offset(&in);
		if (is_exchange(&in) && is_same_address(&load->u.in, &in))
			return true;
		at += in.size_bytes;
	}
	return false;
}

bool check_guess(struct actor *a, const struct race_slot *old,
		 const struct race_slot *new)
{
	if (old->flags & RACE_ATOMIC)
		return !(new->flags & RACE_WRITE) && is_guess(a, a->s);
	return new->flags & RACE_ATOMIC && !(old->flags & RACE_WRITE) &&
	       is_guess(a, watch_site(a->t, old->site));
}
