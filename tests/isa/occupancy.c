/*
 * How many waves fit a SIMD: register files and granules of the chips, LDS and
 * workgroups, against numbers worked out by hand.
 */
#include <string.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "tests/tap.h"

static struct isa_occupancy of(const char *chip, int wave, int vgprs,
			       uint32_t lds_bytes, int size, bool wgp)
{
	struct isa_resources r = { wave, vgprs, lds_bytes, size, wgp };
	struct isa_occupancy o;

	if (!isa_occupancy(chip, &r, &o))
		memset(&o, 0, sizeof(o));
	return o;
}

/* Waves per SIMD by VGPRs: floor(file / granule * ceil(vgprs / granule)). */
static const struct {
	const char *chip;
	int wave, vgprs, waves, allocated;
} vgprs[] = {
	{ "gfx1100", 32, 0, 16, 24 },	 { "gfx1100", 32, 24, 16, 24 },
	{ "gfx1100", 32, 25, 16, 48 },	 { "gfx1100", 32, 96, 16, 96 },
	{ "gfx1100", 32, 97, 12, 120 },	 { "gfx1100", 32, 120, 12, 120 },
	{ "gfx1100", 32, 128, 10, 144 }, { "gfx1100", 32, 148, 9, 168 },
	{ "gfx1100", 32, 168, 9, 168 },	 { "gfx1100", 32, 192, 8, 192 },
	{ "gfx1100", 32, 216, 7, 216 },	 { "gfx1100", 32, 240, 6, 240 },
	{ "gfx1100", 32, 256, 5, 264 },	 { "gfx1101", 32, 256, 5, 264 },
	{ "gfx1151", 32, 128, 10, 144 }, { "gfx1102", 32, 64, 16, 64 },
	{ "gfx1102", 32, 65, 12, 80 },	 { "gfx1102", 32, 128, 8, 128 },
	{ "gfx1102", 32, 148, 6, 160 },	 { "gfx1103", 32, 256, 4, 256 },
	{ "gfx1150", 32, 192, 5, 192 },	 { "gfx1100", 64, 48, 16, 48 },
	{ "gfx1100", 64, 49, 12, 60 },	 { "gfx1100", 64, 128, 5, 132 },
	{ "gfx1102", 64, 128, 4, 128 },	 { "gfx1030", 32, 128, 8, 128 },
	{ "gfx1201", 32, 128, 10, 144 }, { "gfx1010", 32, 84, 11, 88 },
	{ "gfx1010", 64, 84, 6, 84 },	 { "gfx1010", 32, 255, 4, 256 },
};

static void by_vgprs(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(vgprs); i++) {
		struct isa_occupancy o = of(vgprs[i].chip, vgprs[i].wave,
					    vgprs[i].vgprs, 0, 256, true);

		is_i64(o.waves, vgprs[i].waves, "%s wave%d, %d VGPRs: waves",
		       vgprs[i].chip, vgprs[i].wave, vgprs[i].vgprs);
		is_i64(o.vgprs_allocated, vgprs[i].allocated,
		       "%s wave%d, %d VGPRs: allocated", vgprs[i].chip,
		       vgprs[i].wave, vgprs[i].vgprs);
		is_str(o.limit, vgprs[i].waves < 16 ? "vgprs" : "waves",
		       "%s wave%d, %d VGPRs: limit", vgprs[i].chip,
		       vgprs[i].wave, vgprs[i].vgprs);
	}
}

static void by_lds(void)
{
	/* CU: 64 KiB, two SIMDs; 256 work-items are 8 waves, 4 per SIMD. */
	struct isa_occupancy o = of("gfx1100", 32, 24, 32768, 256, false);

	is_i64(o.by_lds, 8, "two workgroups in a CU are 8 waves per SIMD");
	is_str(o.limit, "lds", "LDS limits");
	is_i64(o.workgroups, 2, "two workgroups fit");
	o = of("gfx1100", 32, 24, 32769, 256, false);
	is_i64(o.lds_allocated_bytes, 33280, "LDS comes in 512 bytes");
	is_i64(o.by_lds, 4, "then one workgroup fits");
	/* WGP: 128 KiB, four SIMDs; 8 waves are 2 per SIMD. */
	o = of("gfx1100", 32, 24, 32768, 256, true);
	is_i64(o.by_lds, 8, "four workgroups in a WGP are 8 waves per SIMD");
	o = of("gfx1100", 32, 24, 65536, 64, true);
	is_i64(o.by_lds, 1, "two workgroups of two waves: one per SIMD");
	o = of("gfx1100", 32, 256, 65536, 1024, true);
	is_i64(o.waves, 5, "VGPRs limit where LDS would allow 16");
}

static void by_workgroups(void)
{
	/* 16 workgroups of 2 waves in a CU: 16 waves per SIMD. */
	struct isa_occupancy o = of("gfx1100", 32, 24, 0, 64, false);

	is_i64(o.waves, 16, "two waves per workgroup fill a CU");
	is_i64(o.workgroups, 16, "with 16 workgroups");
	o = of("gfx1100", 64, 24, 0, 64, false);
	is_i64(o.waves, 16, "single waves need no barrier");
	is_i64(o.workgroups, 32, "and 32 of them fit");
	o = of("gfx1100", 64, 24, 0, 1024, true);
	is_i64(o.workgroups, 4, "16-wave workgroups: four fit a WGP");
}

static void refused(void)
{
	struct isa_occupancy o;
	struct isa_resources r = { 32, 24, 0, 64, true };

	ok(!isa_occupancy("gfx906", &r, &o), "unknown chips are refused");
	r.vgprs = 257;
	ok(!isa_occupancy("gfx1100", &r, &o), "257 VGPRs are refused");
	r = (struct isa_resources){ 32, 24, 65537, 64, true };
	ok(!isa_occupancy("gfx1100", &r, &o), "too much LDS is refused");
	r = (struct isa_resources){ 16, 24, 0, 64, true };
	ok(!isa_occupancy("gfx1100", &r, &o), "wave16 is refused");
	r = (struct isa_resources){ 32, 24, 0, 1025, true };
	ok(!isa_occupancy("gfx1100", &r, &o), "1025 work-items are refused");
}

int main(void)
{
	by_vgprs();
	by_lds();
	by_workgroups();
	refused();
	return plan_done();
}
