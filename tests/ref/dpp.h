/*
 * ref-dpp - where data-parallel primitives look (RDNA3 ISA 15.4.4).
 */
#ifndef T0_TESTS_REF_DPP_H
#define T0_TESTS_REF_DPP_H

/* The lane that lane `lane` reads, by DPP16's control; -1: outside its row. */
static inline int ref_dpp_lane(int ctrl, int lane)
{
	int row = lane / 16, col = lane % 16, want;

	if (ctrl < 0x100) {
		int quad = col / 4, sel[4];

		for (int i = 0; i < 4; i++)
			sel[i] = ctrl /
				 (i == 0 ? 1 :
				  i == 1 ? 4 :
				  i == 2 ? 16 :
					   64) %
				 4;
		return row * 16 + quad * 4 + sel[col % 4];
	}
	if (ctrl <= 0x10f) {
		want = col + (ctrl - 0x100); /* shift left: from higher lanes */
		return want > 15 ? -1 : row * 16 + want;
	}
	if (ctrl <= 0x11f) {
		want = col - (ctrl - 0x110);
		return want < 0 ? -1 : row * 16 + want;
	}
	if (ctrl <= 0x12f) {
		want = col - (ctrl - 0x120);
		return row * 16 + (want < 0 ? want + 16 : want);
	}
	if (ctrl == 0x140)
		return row * 16 + 15 - col;
	if (ctrl == 0x141)
		return row * 16 + (col < 8 ? 7 - col : 23 - col);
	if (ctrl >= 0x150 && ctrl <= 0x15f)
		return row * 16 + ctrl - 0x150;
	return row * 16 + (col ^ (ctrl - 0x160));
}

#endif
