/*
 * kfd/soft/exec/gfx10/unify.c - instructions of gfx10 in the fields of gfx11.
 *
 * RDNA2 ISA 13.  Whatever differs is settled here, when an instruction is
 * decoded, so that what executes it need not ask for the generation.
 */
#include "kfd/soft/exec/mem.h"

/* ------------------------------------------------------------ formats ---- */

/* gfx10 has more typed formats, and so other numbers from 30 on. */
static const uint8_t unified[128] = {
#define SAME(n) [n] = n
	SAME(1),   SAME(2),  SAME(3),  SAME(4),	 SAME(5),  SAME(6),
	SAME(7),   SAME(8),  SAME(9),  SAME(10), SAME(11), SAME(12),
	SAME(13),  SAME(14), SAME(15), SAME(16), SAME(17), SAME(18),
	SAME(19),  SAME(20), SAME(21), SAME(22), SAME(23), SAME(24),
	SAME(25),  SAME(26), SAME(27), SAME(28), SAME(29),
#undef SAME
	[36] = 30,     /* 10_11_11_FLOAT */
	[43] = 31,     /* 11_11_10_FLOAT */
	[44] = 32, 33, /* 10_10_10_2_UNORM, SNORM */
	[48] = 34, 35, /* 10_10_10_2_UINT, SINT */
	[50] = 36, 37,	     38,       39,	 40,	   41, /* 2_10_10_10 */
	[56] = 42, 43,	     44,       45,	 46,	   47, /* 8_8_8_8 */
	[62] = 48, 49,	     50,			       /* 32_32 */
	[65] = 51, 52,	     53,       54,	 55,	   56,
	57,			 /* 16_16_16_16 */
	[72] = 58, 59,	     60, /* 32_32_32 */
	[75] = 61, 62,	     63, /* 32_32_32_32 */
};

uint32_t soft_unify_format(enum isa_gen gen, uint32_t format)
{
	return gen < ISA_GFX11 ? unified[format & 127] : format & 63;
}

/* ------------------------------------------------------------- fields ---- */

/*
 * 12 bits with a sign become 13; those of FLAT have none, and gfx10_1 ignores
 * them (LLVM's FeatureFlatSegmentOffsetBug).
 */
static uint32_t widen_offset(const struct isa_inst *in)
{
	const uint32_t v = in->f[ISA_F_OFFSET];

	if (in->fmt != ISA_FMT_FLAT)
		return v | (v & 0x800) << 1;
	return in->gen == ISA_GFX10_1 ? 0 : v & 0x7ff;
}

/*
 * An address of scratch memory is in a VGPR, or in an SGPR instead, or there is
 * none.
 */
static void unify_scratch(struct isa_inst *in)
{
	uint32_t *saddr = &in->f[ISA_F_SADDR];

	in->f[ISA_F_SVE] = *saddr == ISA_R_NULL;
	if (*saddr == isa_inst_absent_saddr(in))
		*saddr = ISA_R_NULL;
}

static void unify_gfx10(struct isa_inst *in)
{
	switch (in->fmt) {
	case ISA_FMT_SCRATCH:
		unify_scratch(in);
		in->f[ISA_F_OFFSET] = widen_offset(in);
		return;
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
		in->f[ISA_F_OFFSET] = widen_offset(in);
		return;
	case ISA_FMT_VOP1:
	case ISA_FMT_VOP2:
		in->f[ISA_F_CLAMP] = in->sdwa.clamp;
		in->f[ISA_F_OMOD] = in->sdwa.omod;
		return;
	}
}

void soft_unify(struct isa_inst *in)
{
	if (in->gen < ISA_GFX11)
		unify_gfx10(in);
}
