/*
 * isa/code/occupancy.c - wave slots, registers, LDS and barriers against a
 * kernel's needs.
 */
#include <string.h>

#include "base/base.h"
#include "isa/code/code.h"

#define MAX_VGPRS 256

static int round_up(int v, int to)
{
	return (v + to - 1) / to * to;
}

static int min_of(int a, int b)
{
	return a < b ? a : b;
}

/* Waves per SIMD of `groups` workgroups, rounded up, and at most `slots`. */
static int waves_per_simd(int groups, int waves_per_group, int simds, int slots)
{
	return min_of((groups * waves_per_group + simds - 1) / simds, slots);
}

static void choose_limit(struct isa_occupancy *o)
{
	o->waves = o->by_slots;
	o->limit = "waves";
	if (o->by_vgprs < o->waves) {
		o->waves = o->by_vgprs;
		o->limit = "vgprs";
	}
	if (o->by_lds < o->waves) {
		o->waves = o->by_lds;
		o->limit = "lds";
	}
	if (o->by_workgroups < o->waves) {
		o->waves = o->by_workgroups;
		o->limit = "workgroups";
	}
}

bool isa_occupancy(const char *name, const struct isa_resources *r,
		   struct isa_occupancy *o)
{
	const struct isa_chip *chip = isa_chip_find(name);
	const int cus = r->wgp_mode ? 2 : 1, share = r->wave == 64 ? 2 : 1;

	memset(o, 0, sizeof(*o));
	if (!chip || (r->wave != 32 && r->wave != 64) || r->vgprs < 0 ||
	    r->vgprs > MAX_VGPRS || r->workgroup_size < 1 ||
	    r->workgroup_size > 1024)
		return false;
	const struct isa_gen_info *g = isa_gen_info(chip->gen);
	const int slots = (int)g->waves_per_simd, lds = (int)g->lds_bytes;
	const int simds = (int)g->simds_per_cu * cus;
	const int barriers = cus * (int)g->barriers_per_cu;
	const int waves = (r->workgroup_size + r->wave - 1) / r->wave;

	/* A workgroup has as much LDS as a CU. */
	if (r->lds_bytes > g->lds_bytes)
		return false;
	o->by_slots = o->by_lds = o->by_workgroups = slots;
	o->vgprs_allocated = round_up(r->vgprs ? r->vgprs : 1,
				      (int)isa_chip_granule(chip) / share);
	o->by_vgprs =
		min_of((int)chip->vgprs / share / o->vgprs_allocated, slots);
	o->workgroups = o->by_vgprs * simds / waves;
	o->lds_allocated_bytes =
		(uint32_t)round_up((int)r->lds_bytes, (int)g->lds_granule);
	if (o->lds_allocated_bytes) {
		const int groups = cus * lds / (int)o->lds_allocated_bytes;

		o->by_lds = waves_per_simd(groups, waves, simds, slots);
		o->workgroups = min_of(o->workgroups, groups);
	}
	if (waves > 1) {
		o->by_workgroups =
			waves_per_simd(barriers, waves, simds, slots);
		o->workgroups = min_of(o->workgroups, barriers);
	}
	choose_limit(o);
	return true;
}
