/*
 * isa/code/occupancy.c - wave slots, registers, LDS and barriers against a
 * kernel's needs.
 */
#include <string.h>

#include "base/base.h"
#include "isa/code/code.h"

enum {
	MAX_WAVES = 16, /* per SIMD */
	LDS_GRANULE = 512,
	LDS_BYTES = 65536,	 /* per CU */
	LDS_GROUP_BYTES = 65536, /* one workgroup may have */
	BARRIERS = 16,		 /* per CU */
	MAX_VGPRS = 256,
};

static int round_up(int v, int to)
{
	return (v + to - 1) / to * to;
}

static int min_of(int a, int b)
{
	return a < b ? a : b;
}

/* Waves per SIMD of `groups` workgroups, rounded up. */
static int waves_per_simd(int groups, int waves_per_group, int simds)
{
	return min_of((groups * waves_per_group + simds - 1) / simds,
		      MAX_WAVES);
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

bool isa_occupancy(const char *chip, const struct isa_resources *r,
		   struct isa_occupancy *o)
{
	int vgprs = isa_chip_vgprs(chip); /* 24 and 16 are their granules */
	int cus = r->wgp_mode ? 2 : 1, simds = 2 * cus;
	int share = r->wave == 64 ? 2 : 1;
	int granule = vgprs / 64 / share;
	int file = vgprs / share;
	int waves, groups;

	memset(o, 0, sizeof(*o));
	if (!vgprs || (r->wave != 32 && r->wave != 64) || r->vgprs < 0 ||
	    r->vgprs > MAX_VGPRS || r->workgroup_size < 1 ||
	    r->workgroup_size > 1024 || r->lds_bytes > LDS_GROUP_BYTES)
		return false;
	waves = (r->workgroup_size + r->wave - 1) / r->wave;
	o->by_slots = o->by_lds = o->by_workgroups = MAX_WAVES;
	o->vgprs_allocated = round_up(r->vgprs ? r->vgprs : 1, granule);
	o->by_vgprs = min_of(file / o->vgprs_allocated, MAX_WAVES);
	o->workgroups = o->by_vgprs * simds / waves;
	o->lds_allocated_bytes = round_up(r->lds_bytes, LDS_GRANULE);
	if (o->lds_allocated_bytes) {
		groups = cus * LDS_BYTES / o->lds_allocated_bytes;
		o->by_lds = waves_per_simd(groups, waves, simds);
		o->workgroups = min_of(o->workgroups, groups);
	}
	if (waves > 1) {
		o->by_workgroups = waves_per_simd(cus * BARRIERS, waves, simds);
		o->workgroups = min_of(o->workgroups, cus * BARRIERS);
	}
	choose_limit(o);
	return true;
}
