/*
 * kfd/soft/exec/gfx10/sdwa.c - sub-dword addressing: bytes and words of
 * registers as sources and results (RDNA2 ISA 13.3.6 and 13.3.7).
 */
#include "kfd/soft/exec/valu.h"

/* Where a part begins, and its bits. */
static int part_shift(unsigned sel)
{
	return sel < ISA_SDWA_WORD_0  ? 8 * (int)sel :
	       sel == ISA_SDWA_WORD_1 ? 16 :
					0;
}

static int part_bits(unsigned sel)
{
	return sel < ISA_SDWA_WORD_0 ? 8 : sel < ISA_SDWA_DWORD ? 16 : 32;
}

void soft_sdwa_select(const struct isa_inst *in, int k, const uint32_t *src,
		      uint32_t *dst)
{
	const unsigned sel = in->sdwa.sel[k];
	const int above = 32 - part_bits(sel), left = above - part_shift(sel);

	if (in->sdwa.sext[k])
		LANES(i)
	dst[i] = (uint32_t)((int32_t)(src[i] << left) >> above);
	else LANES(i) dst[i] = src[i] << left >> above;
}

void soft_sdwa_put(const struct isa_inst *in, uint32_t exec,
		   const uint32_t *result, uint32_t *reg)
{
	const unsigned sel = in->sdwa.dst_sel;
	const int bits = part_bits(sel), shift = part_shift(sel);
	const uint32_t mask = UINT32_MAX >> (32 - bits) << shift;

	FOR_LANES(i, exec)
	{
		uint32_t v = result[i] << shift & mask;

		if (in->sdwa.dst_unused == ISA_SDWA_PRESERVE)
			v |= reg[i] & ~mask;
		else if (in->sdwa.dst_unused == ISA_SDWA_SIGN)
			v = (uint32_t)((int32_t)(v << (32 - bits - shift)) >>
				       (32 - bits - shift));
		reg[i] = v;
	}
}
