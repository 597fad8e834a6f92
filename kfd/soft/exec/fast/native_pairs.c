/*
 * kfd/soft/exec/fast/native_pairs.c - what zmm registers hold while a run is
 * made.
 */
#include "kfd/soft/exec/fast/native.h"

struct soft_host_mem soft_native_half(struct soft_host_mem vreg, int i)
{
	vreg.offset += i * (int32_t)SOFT_VREG_BYTES / 2;
	return vreg;
}

struct soft_host_mem soft_native_vreg(const struct soft_native_run *r, int base,
				      uintptr_t at)
{
	if (base == SOFT_BASE_ABSOLUTE)
		return (struct soft_host_mem){
			SOFT_R8, (int32_t)(at - (uintptr_t)r->temp)
		};
	return (struct soft_host_mem){ base ? SOFT_R9 : SOFT_RAX, (int32_t)at };
}

static int find_pair(const struct soft_native_run *r, struct soft_host_mem vreg)
{
	for (int i = 0; i < SOFT_NATIVE_PAIRS; i++)
		if (r->pair[i].used && r->pair[i].vreg.base == vreg.base &&
		    r->pair[i].vreg.offset == vreg.offset)
			return i;
	return SOFT_NOWHERE;
}

static void forget_pair(struct soft_native_run *r, int pair)
{
	for (int i = 0; i < 2; i++)
		soft_host_forget(r->code, 2 * pair + i);
}

void soft_native_forget_free(struct soft_native_run *r)
{
	for (int i = 0; i < SOFT_NATIVE_PAIRS; i++)
		if (!r->pair[i].used)
			forget_pair(r, i);
	forget_pair(r, SOFT_PAIR_U);
	forget_pair(r, SOFT_PAIR_V);
	soft_host_forget_mask(r->code, SOFT_K_OTHER);
	soft_host_forget_mask(r->code, SOFT_K_N);
	for (int i = 0; i < 2; i++)
		soft_host_forget_mask(r->code, SOFT_K_IN + i);
}

/* One that holds nothing, or what was not needed for longest. */
int soft_native_take(struct soft_native_run *r)
{
	int best = 0;

	for (int i = 0; i < SOFT_NATIVE_PAIRS; i++)
		if (r->pair[i].last < r->pair[best].last)
			best = i;
	if (r->pair[best].last == r->now)
		BUG("a microop needs more than %d registers",
		    SOFT_NATIVE_PAIRS);
	forget_pair(r, best);
	r->pair[best].used = false;
	r->pair[best].last = r->now;
	return best;
}

void soft_native_hold(struct soft_native_run *r, int pair,
		      struct soft_host_mem vreg)
{
	int old = find_pair(r, vreg);

	if (old != SOFT_NOWHERE)
		r->pair[old].used = false;
	r->pair[pair].vreg = vreg;
	r->pair[pair].used = true;
	r->pair[pair].last = r->now;
}

int soft_native_load(struct soft_native_run *r, struct soft_host_mem vreg)
{
	int pair = find_pair(r, vreg);

	if (pair != SOFT_NOWHERE) {
		r->pair[pair].last = r->now;
		return pair;
	}
	pair = soft_native_take(r);
	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_MOVD, 2 * pair + i, 0, 0,
				 soft_native_half(vreg, i), false, 0);
	soft_native_hold(r, pair, vreg);
	return pair;
}

void soft_native_store_half(struct soft_native_run *r, int pair,
			    struct soft_host_mem vreg, int i)
{
	const int old = find_pair(r, vreg);

	if (old != SOFT_NOWHERE && old != pair) {
		r->pair[old].used = false;
		forget_pair(r, old);
	}
	soft_host_op_mem(r->code, SOFT_HOST_STORED, 2 * pair + i, 0, 0,
			 soft_native_half(vreg, i), false, 0);
}

void soft_native_store(struct soft_native_run *r, int pair,
		       struct soft_host_mem vreg)
{
	for (int i = 0; i < 2; i++)
		soft_native_store_half(r, pair, vreg, i);
}

void soft_native_put(struct soft_native_run *r, int t,
		     struct soft_host_mem vreg)
{
	if (r->masked) {
		int old = soft_native_load(r, vreg);

		for (int i = 0; i < 2; i++)
			soft_host_op(r->code, SOFT_HOST_MOVD, 2 * old + i,
				     SOFT_K_EXEC + i, 0, 2 * t + i, 0);
		t = old;
	}
	soft_native_store(r, t, vreg);
	soft_native_hold(r, t, vreg);
}

int soft_native_active(struct soft_native_run *r, int pair)
{
	const int t = soft_native_take(r);

	for (int i = 0; i < 2; i++) {
		const int z = 2 * t + i;

		soft_host_op(r->code, SOFT_HOST_XORD, z, 0, z, z, 0);
		soft_host_op(r->code, SOFT_HOST_MOVD, z, SOFT_K_EXEC + i, 0,
			     2 * pair + i, 0);
	}
	return t;
}

void soft_native_merge_half(struct soft_native_run *r, int t,
			    struct soft_host_mem vreg, bool high)
{
	const int old = soft_native_load(r, vreg);

	for (int i = 0; i < 2; i++) {
		const int z = 2 * t + i;

		if (high)
			soft_host_op(r->code, SOFT_HOST_SLLD, z, 0, 0, z, 16);
		soft_host_op_mem(r->code, SOFT_HOST_TERNLOGD, z, 0, 2 * old + i,
				 soft_native_at(high ? SOFT_NATIVE_LOW_HALF :
						       SOFT_NATIVE_HIGH_HALF),
				 true, 0xd8);
	}
}
