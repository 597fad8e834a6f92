/*
 * occupancy - how many waves of a kernel fit a SIMD at once, and what stops
 * more.
 *
 * A SIMD has 16 wave slots and a VGPR file that waves share in granules; a
 * compute unit (CU) has two SIMDs and 64 KiB of LDS, a workgroup processor
 * (WGP) two CUs.  A workgroup lives in one CU or, in WGP mode, in one WGP, and
 * takes its LDS in granules of 512 bytes and, if it has more than one wave,
 * one of 16 barriers per CU (RDNA3 ISA 3.5; LLVM's AMDGPU subtargets).
 *
 * gfx1100, 1101, 1151, 1200 and 1201 have 1536 VGPRs per SIMD in wave32 and
 * give them out in 24s, others 1024 in 16s; wave64 has half of each.
 */
#ifndef T0_ISA_OCCUPANCY_H
#define T0_ISA_OCCUPANCY_H

#include <stdbool.h>
#include <stdint.h>

struct isa_resources {
	int wave;	    /* 32 or 64 */
	int vgprs;	    /* per work-item, as the wave needs them */
	uint32_t lds_bytes; /* per workgroup, static and dynamic */
	int workgroup_size; /* work-items */
	bool wgp_mode;
};

struct isa_occupancy {
	int waves;	   /* per SIMD: the least of the four below */
	const char *limit; /* "waves", "vgprs", "lds" or "workgroups" */
	int by_slots, by_vgprs, by_lds, by_workgroups;
	int vgprs_allocated; /* per work-item, whole granules */
	uint32_t lds_allocated_bytes;
	int workgroups; /* that fit a CU (WGP) as a whole */
};

/* False for chips whose sizes are not known, and for impossible needs. */
bool isa_occupancy(const char *chip, const struct isa_resources *r,
		   struct isa_occupancy *o);

#endif
