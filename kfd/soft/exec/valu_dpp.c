/*
 * kfd/soft/exec/valu_dpp.c - data-parallel primitives (DPP).
 *
 * Lane permutations of SRC0 (RDNA3 ISA 15.4.4 and 15.4.5).  A row is 16 lanes,
 * a bank 4.
 */
#include "kfd/soft/exec/valu.h"

/* dpp_ctrl of DPP16; the low four bits are the operand where there is one. */
enum {
	DPP_QUAD_PERM_LAST = 0xff,
	DPP_ROW_SHL = 0x100,
	DPP_ROW_SHR = 0x110,
	DPP_ROW_ROR = 0x120,
	DPP_ROW_MIRROR = 0x140,
	DPP_ROW_HALF_MIRROR = 0x141,
	DPP_ROW_SHARE = 0x150,
	DPP_ROW_XMASK = 0x160,
};

/* The lane that lane `i` reads, or -1: outside its row. */
static int source_lane(unsigned ctrl, int i)
{
	int n = ctrl & 15, row = i & ~15, at = i & 15;

	if (ctrl <= DPP_QUAD_PERM_LAST)
		return (i & ~3) | (ctrl >> (2 * (i & 3)) & 3);
	if (ctrl == DPP_ROW_MIRROR)
		return row | (15 - at);
	if (ctrl == DPP_ROW_HALF_MIRROR)
		return row | (at & 8) | (7 - (at & 7));
	switch (ctrl & ~15u) {
	case DPP_ROW_SHL:
		return at + n < 16 ? i + n : -1;
	case DPP_ROW_SHR:
		return at >= n ? i - n : -1;
	case DPP_ROW_ROR:
		return row | ((at - n) & 15);
	case DPP_ROW_SHARE:
		return row | n;
	case DPP_ROW_XMASK:
		return row | (at ^ n);
	}
	return -1; /* reserved controls read nothing */
}

static uint32_t apply_dpp16(const struct isa_dpp *dpp, uint32_t exec,
			    const uint32_t *src, uint32_t *dst)
{
	uint32_t writes = 0;

	LANES(i)
	{
		int from = source_lane(dpp->ctrl, i);
		bool valid = from >= 0 && (dpp->fi || exec >> from & 1);
		bool enabled = dpp->row_mask >> (i >> 4) & 1 &&
			       dpp->bank_mask >> (i >> 2 & 3) & 1;

		dst[i] = valid ? src[from] : 0;
		if (enabled && (valid || dpp->bound_ctrl))
			writes |= 1u << i;
	}
	return writes;
}

/* Inactive lanes read as zero unless fetched; every lane is written. */
static uint32_t apply_dpp8(const struct isa_dpp *dpp, uint32_t exec,
			   const uint32_t *src, uint32_t *dst)
{
	LANES(i)
	{
		int from = (i & ~7) | (dpp->sel >> (3 * (i & 7)) & 7);

		dst[i] = dpp->fi || exec >> from & 1 ? src[from] : 0;
	}
	return ~0u;
}

uint32_t soft_dpp(const struct isa_inst *in, uint32_t exec, const uint32_t *src,
		  uint32_t *dst)
{
	return in->form == ISA_FORM_DPP8 ?
		       apply_dpp8(&in->dpp, exec, src, dst) :
		       apply_dpp16(&in->dpp, exec, src, dst);
}
