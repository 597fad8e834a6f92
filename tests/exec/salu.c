/*
 * Scalar instructions, one row each or more: every SOP1, SOP2, SOPC and SOPK
 * mnemonic, and program control, with results worked out by hand from RDNA3
 * ISA 16.1..16.5.
 */
#include "tests/exec/wave.h"
#include "tests/tap.h"

/*
 * s[2:3] = a, s[4:5] = b, s[6:7] = d and SCC = scc before; afterwards s[6:7]
 * is `want` and SCC is `scc_want`.
 */
static const struct row {
	const char *text;
	uint64_t a, b, d;
	bool scc;
	uint64_t want;
	bool scc_want;
} rows[] = {
	/* clang-format off */
	{ "s_add_u32 s6, s2, s4",
	  0xffffffff, 2, 0, 0, 1, 1 },
	{ "s_add_u32 s6, s2, s4",
	  5, 2, 0, 1, 7, 0 },
	{ "s_sub_u32 s6, s2, s4",
	  3, 5, 0, 0, 0xfffffffe, 1 },
	{ "s_add_i32 s6, s2, s4",
	  0x7fffffff, 1, 0, 0, 0x80000000, 1 },
	{ "s_add_i32 s6, s2, s4",
	  0xffffffff, 1, 0, 1, 0, 0 },
	{ "s_sub_i32 s6, s2, s4",
	  0x80000000, 1, 0, 0, 0x7fffffff, 1 },
	{ "s_addc_u32 s6, s2, s4",
	  0xffffffff, 0, 0, 1, 0, 1 },
	{ "s_addc_u32 s6, s2, s4",
	  7, 8, 0, 1, 0x10, 0 },
	{ "s_subb_u32 s6, s2, s4",
	  5, 5, 0, 1, 0xffffffff, 1 },
	{ "s_subb_u32 s6, s2, s4",
	  9, 5, 0, 1, 3, 0 },
	{ "s_absdiff_i32 s6, s2, s4",
	  3, 0xa, 0, 0, 7, 1 },
	{ "s_absdiff_i32 s6, s2, s4",
	  0xa, 0xa, 0, 1, 0, 0 },
	{ "s_lshl_b32 s6, s2, s4",
	  3, 0x21, 0, 0, 6, 1 },
	{ "s_lshl_b64 s[6:7], s[2:3], s4",
	  0x80000001, 0x41, 0, 0, 0x100000002, 1 },
	{ "s_lshr_b32 s6, s2, s4",
	  0x80000000, 0x1f, 0, 0, 1, 1 },
	{ "s_lshr_b32 s6, s2, s4",
	  1, 1, 0, 1, 0, 0 },
	{ "s_lshr_b64 s[6:7], s[2:3], s4",
	  0x8000000000000000, 0x20, 0, 0, 0x80000000, 1 },
	{ "s_ashr_i32 s6, s2, s4",
	  0x80000000, 4, 0, 0, 0xf8000000, 1 },
	{ "s_ashr_i64 s[6:7], s[2:3], s4",
	  0x8000000000000000, 8, 0, 0, 0xff80000000000000, 1 },
	{ "s_lshl1_add_u32 s6, s2, s4",
	  0x80000000, 5, 0, 0, 5, 1 },
	{ "s_lshl2_add_u32 s6, s2, s4",
	  3, 5, 0, 1, 0x11, 0 },
	{ "s_lshl3_add_u32 s6, s2, s4",
	  3, 5, 0, 1, 0x1d, 0 },
	{ "s_lshl4_add_u32 s6, s2, s4",
	  0xfffffff, 0x10, 0, 0, 0, 1 },
	{ "s_min_i32 s6, s2, s4",
	  0xffffffff, 1, 0, 0, 0xffffffff, 1 },
	{ "s_min_i32 s6, s2, s4",
	  4, 4, 0, 1, 4, 0 },
	{ "s_min_u32 s6, s2, s4",
	  0xffffffff, 1, 0, 1, 1, 0 },
	{ "s_max_i32 s6, s2, s4",
	  0xffffffff, 1, 0, 1, 1, 0 },
	{ "s_max_i32 s6, s2, s4",
	  4, 4, 0, 0, 4, 1 },
	{ "s_max_u32 s6, s2, s4",
	  0xffffffff, 1, 0, 0, 0xffffffff, 1 },
	{ "s_and_b32 s6, s2, s4",
	  0xff00ff00, 0xff00ff0, 0, 0, 0xf000f00, 1 },
	{ "s_and_b64 s[6:7], s[2:3], s[4:5]",
	  0xf000000000000000, 0xfffffffffffffff, 0, 1, 0, 0 },
	{ "s_or_b32 s6, s2, s4",
	  0xf0, 0xf, 0, 0, 0xff, 1 },
	{ "s_or_b64 s[6:7], s[2:3], s[4:5]",
	  0x8000000000000000, 1, 0, 0, 0x8000000000000001, 1 },
	{ "s_xor_b32 s6, s2, s4",
	  0xff, 0xf, 0, 0, 0xf0, 1 },
	{ "s_xor_b64 s[6:7], s[2:3], s[4:5]",
	  0x1122334455667788, 0x1122334455667788, 0, 1, 0, 0 },
	{ "s_nand_b32 s6, s2, s4",
	  0xffffffff, 0xffff0000, 0, 0, 0xffff, 1 },
	{ "s_nand_b64 s[6:7], s[2:3], s[4:5]",
	  0xffffffffffffffff, 0xffffffffffffffff, 0, 1, 0, 0 },
	{ "s_nor_b32 s6, s2, s4",
	  0xff000000, 0xff0000, 0, 0, 0xffff, 1 },
	{ "s_nor_b64 s[6:7], s[2:3], s[4:5]",
	  0xffffffff00000000, 0xffff0000, 0, 0, 0xffff, 1 },
	{ "s_xnor_b32 s6, s2, s4",
	  0xffff0000, 0xffff0000, 0, 0, 0xffffffff, 1 },
	{ "s_xnor_b64 s[6:7], s[2:3], s[4:5]",
	  0xff, 0xffffffffffffff00, 0, 1, 0, 0 },
	{ "s_and_not1_b32 s6, s2, s4",
	  0xff, 0xf, 0, 0, 0xf0, 1 },
	{ "s_and_not1_b64 s[6:7], s[2:3], s[4:5]",
	  0xffffffffffffffff, 0xff, 0, 0, 0xffffffffffffff00, 1 },
	{ "s_or_not1_b32 s6, s2, s4",
	  1, 0xfffffff0, 0, 0, 0xf, 1 },
	{ "s_or_not1_b64 s[6:7], s[2:3], s[4:5]",
	  0, 0xffffffffffffffff, 0, 1, 0, 0 },
	{ "s_bfe_u32 s6, s2, s4",
	  0x12345678, 0x80008, 0, 0, 0x56, 1 },
	{ "s_bfe_u32 s6, s2, s4",
	  0x12345678, 0x400004, 0, 0, 0x1234567, 1 },
	{ "s_bfe_i32 s6, s2, s4",
	  0xf00, 0x40008, 0, 0, 0xffffffff, 1 },
	{ "s_bfe_i32 s6, s2, s4",
	  0x12345678, 8, 0, 1, 0, 0 },
	{ "s_bfe_u64 s[6:7], s[2:3], s4",
	  0x123456789abcdef0, 0x100020, 0, 0, 0x5678, 1 },
	{ "s_bfe_i64 s[6:7], s[2:3], s4",
	  0x8000000000, 0x80020, 0, 0, 0xffffffffffffff80, 1 },
	{ "s_bfm_b32 s6, s2, s4",
	  8, 4, 0, 1, 0xff0, 1 },
	{ "s_bfm_b64 s[6:7], s2, s4",
	  8, 0x3c, 0, 0, 0xf000000000000000, 0 },
	{ "s_mul_i32 s6, s2, s4",
	  0x10001, 0x10001, 0, 1, 0x20001, 1 },
	{ "s_mul_hi_u32 s6, s2, s4",
	  0xffffffff, 0xffffffff, 0, 0, 0xfffffffe, 0 },
	{ "s_mul_hi_i32 s6, s2, s4",
	  0xffffffff, 2, 0, 0, 0xffffffff, 0 },
	{ "s_cselect_b32 s6, s2, s4",
	  1, 2, 0, 1, 1, 1 },
	{ "s_cselect_b32 s6, s2, s4",
	  1, 2, 0, 0, 2, 0 },
	{ "s_cselect_b64 s[6:7], s[2:3], s[4:5]",
	  0x100000001, 0x200000002, 0, 0, 0x200000002, 0 },
	{ "s_pack_ll_b32_b16 s6, s2, s4",
	  0x11112222, 0x33334444, 0, 0, 0x44442222, 0 },
	{ "s_pack_lh_b32_b16 s6, s2, s4",
	  0x11112222, 0x33334444, 0, 0, 0x33332222, 0 },
	{ "s_pack_hh_b32_b16 s6, s2, s4",
	  0x11112222, 0x33334444, 0, 0, 0x33331111, 0 },
	{ "s_pack_hl_b32_b16 s6, s2, s4",
	  0x11112222, 0x33334444, 0, 0, 0x44441111, 0 },
	{ "s_mov_b32 s6, s2",
	  0x2a, 0, 0, 1, 0x2a, 1 },
	{ "s_mov_b32 s6, 0x12345678",
	  0, 0, 0, 0, 0x12345678, 0 },
	{ "s_mov_b32 s6, 1.0",
	  0, 0, 0, 0, 0x3f800000, 0 },
	{ "s_mov_b64 s[6:7], s[2:3]",
	  0x123456789, 0, 0, 0, 0x123456789, 0 },
	{ "s_mov_b64 s[6:7], -1",
	  0, 0, 0, 0, 0xffffffffffffffff, 0 },
	{ "s_mov_b64 s[6:7], 0x80000000",
	  0, 0, 0, 0, 0x80000000, 0 },
	{ "s_mov_b64 s[6:7], 1.0",
	  0, 0, 0, 0, 0x3ff0000000000000, 0 },
	{ "s_mov_b32 s6, null",
	  0, 0, 5, 0, 0, 0 },
	{ "s_mov_b64 s[6:7], src_shared_base",
	  0, 0, 0, 0, 0x1000000000000, 0 },
	{ "s_mov_b64 s[6:7], src_private_limit",
	  0, 0, 0, 0, 0x20000ffffffff, 0 },
	{ "s_mov_b32 s6, src_scc",
	  0, 0, 0, 1, 1, 1 },
	{ "s_cmov_b32 s6, s2",
	  0x2a, 0, 7, 0, 7, 0 },
	{ "s_cmov_b32 s6, s2",
	  0x2a, 0, 7, 1, 0x2a, 1 },
	{ "s_cmov_b64 s[6:7], s[2:3]",
	  0x4200000042, 0, 7, 1, 0x4200000042, 1 },
	{ "s_brev_b32 s6, s2",
	  5, 0, 0, 0, 0xa0000000, 0 },
	{ "s_brev_b64 s[6:7], s[2:3]",
	  5, 0, 0, 0, 0xa000000000000000, 0 },
	{ "s_ctz_i32_b32 s6, s2",
	  0x100, 0, 0, 0, 8, 0 },
	{ "s_ctz_i32_b32 s6, s2",
	  0, 0, 0, 0, 0xffffffff, 0 },
	{ "s_ctz_i32_b64 s6, s[2:3]",
	  0x10000000000, 0, 0, 0, 0x28, 0 },
	{ "s_clz_i32_u32 s6, s2",
	  0xff0000, 0, 0, 0, 8, 0 },
	{ "s_clz_i32_u32 s6, s2",
	  0, 0, 0, 0, 0xffffffff, 0 },
	{ "s_clz_i32_u64 s6, s[2:3]",
	  1, 0, 0, 0, 0x3f, 0 },
	{ "s_cls_i32 s6, s2",
	  0xfff00000, 0, 0, 0, 0xc, 0 },
	{ "s_cls_i32 s6, s2",
	  0x7fffffff, 0, 0, 0, 1, 0 },
	{ "s_cls_i32 s6, s2",
	  0xffffffff, 0, 0, 0, 0xffffffff, 0 },
	{ "s_cls_i32_i64 s6, s[2:3]",
	  0xffff800000000000, 0, 0, 0, 0x11, 0 },
	{ "s_sext_i32_i8 s6, s2",
	  0x1234ff80, 0, 0, 0, 0xffffff80, 0 },
	{ "s_sext_i32_i16 s6, s2",
	  0x12348001, 0, 0, 0, 0xffff8001, 0 },
	{ "s_bitset0_b32 s6, s2",
	  0x24, 0, 0xff, 0, 0xef, 0 },
	{ "s_bitset0_b64 s[6:7], s2",
	  0x3f, 0, 0xffffffffffffffff, 0, 0x7fffffffffffffff, 0 },
	{ "s_bitset1_b32 s6, s2",
	  4, 0, 1, 0, 0x11, 0 },
	{ "s_bitset1_b64 s[6:7], s2",
	  0x28, 0, 1, 0, 0x10000000001, 0 },
	{ "s_bitreplicate_b64_b32 s[6:7], s2",
	  0x80000005, 0, 0, 0, 0xc000000000000033, 0 },
	{ "s_abs_i32 s6, s2",
	  0xfffffffb, 0, 0, 0, 5, 1 },
	{ "s_abs_i32 s6, s2",
	  0x80000000, 0, 0, 0, 0x80000000, 1 },
	{ "s_bcnt0_i32_b32 s6, s2",
	  0xffffffff, 0, 0, 1, 0, 0 },
	{ "s_bcnt0_i32_b64 s6, s[2:3]",
	  0xff, 0, 0, 0, 0x38, 1 },
	{ "s_bcnt1_i32_b32 s6, s2",
	  0xf0f0, 0, 0, 0, 8, 1 },
	{ "s_bcnt1_i32_b64 s6, s[2:3]",
	  0x8000000000000001, 0, 0, 0, 2, 1 },
	{ "s_quadmask_b32 s6, s2",
	  0x10000f01, 0, 0, 0, 0x85, 1 },
	{ "s_quadmask_b64 s[6:7], s[2:3]",
	  0x8000000000000001, 0, 0, 0, 0x8001, 1 },
	{ "s_wqm_b32 s6, s2",
	  0x10000200, 0, 0, 0, 0xf0000f00, 1 },
	{ "s_wqm_b64 s[6:7], s[2:3]",
	  0x4000000000000000, 0, 0, 0, 0xf000000000000000, 1 },
	{ "s_not_b32 s6, s2",
	  0xffffffff, 0, 0, 1, 0, 0 },
	{ "s_not_b64 s[6:7], s[2:3]",
	  0xffffffff, 0, 0, 0, 0xffffffff00000000, 1 },
	{ "s_movk_i32 s6, 0x8000",
	  0, 0, 0, 0, 0xffff8000, 0 },
	{ "s_cmovk_i32 s6, 0x5",
	  0, 0, 7, 0, 7, 0 },
	{ "s_cmovk_i32 s6, 0x5",
	  0, 0, 7, 1, 5, 1 },
	{ "s_addk_i32 s6, 0x1",
	  0, 0, 0x7fffffff, 0, 0x80000000, 1 },
	{ "s_addk_i32 s6, 0xffff",
	  0, 0, 1, 1, 0, 0 },
	{ "s_mulk_i32 s6, 0xfffe",
	  0, 0, 3, 1, 0xfffffffa, 1 },
	{ "s_cmp_eq_i32 s2, s4",
	  5, 5, 0, 0, 0, 1 },
	{ "s_cmp_lg_i32 s2, s4",
	  5, 5, 0, 1, 0, 0 },
	{ "s_cmp_gt_i32 s2, s4",
	  0xffffffff, 1, 0, 1, 0, 0 },
	{ "s_cmp_ge_i32 s2, s4",
	  5, 5, 0, 0, 0, 1 },
	{ "s_cmp_lt_i32 s2, s4",
	  0xffffffff, 1, 0, 0, 0, 1 },
	{ "s_cmp_le_i32 s2, s4",
	  2, 1, 0, 1, 0, 0 },
	{ "s_cmp_eq_u32 s2, s4",
	  5, 5, 0, 0, 0, 1 },
	{ "s_cmp_lg_u32 s2, s4",
	  5, 6, 0, 0, 0, 1 },
	{ "s_cmp_gt_u32 s2, s4",
	  0xffffffff, 1, 0, 0, 0, 1 },
	{ "s_cmp_ge_u32 s2, s4",
	  0, 1, 0, 1, 0, 0 },
	{ "s_cmp_lt_u32 s2, s4",
	  0xffffffff, 1, 0, 1, 0, 0 },
	{ "s_cmp_le_u32 s2, s4",
	  1, 1, 0, 0, 0, 1 },
	{ "s_cmp_eq_u64 s[2:3], s[4:5]",
	  0x100000000, 0, 0, 1, 0, 0 },
	{ "s_cmp_lg_u64 s[2:3], s[4:5]",
	  0x100000000, 0, 0, 0, 0, 1 },
	{ "s_bitcmp0_b32 s2, s4",
	  0x10, 0x24, 0, 1, 0, 0 },
	{ "s_bitcmp1_b32 s2, s4",
	  0x10, 4, 0, 0, 0, 1 },
	{ "s_bitcmp0_b64 s[2:3], s4",
	  0x10, 0x24, 0, 0, 0, 1 },
	{ "s_bitcmp1_b64 s[2:3], s4",
	  0x1000000000, 0x24, 0, 0, 0, 1 },
	{ "s_cmpk_eq_i32 s2, 0xffff",
	  0xffffffff, 0, 0, 0, 0, 1 },
	{ "s_cmpk_lg_i32 s2, 0xffff",
	  0xffffffff, 0, 0, 1, 0, 0 },
	{ "s_cmpk_gt_i32 s2, 0xffff",
	  0, 0, 0, 0, 0, 1 },
	{ "s_cmpk_ge_i32 s2, 0x1",
	  0xffffffff, 0, 0, 1, 0, 0 },
	{ "s_cmpk_lt_i32 s2, 0x1",
	  0xffffffff, 0, 0, 0, 0, 1 },
	{ "s_cmpk_le_i32 s2, 0x1",
	  1, 0, 0, 0, 0, 1 },
	{ "s_cmpk_eq_u32 s2, 0xffff",
	  0xffff, 0, 0, 0, 0, 1 },
	{ "s_cmpk_lg_u32 s2, 0xffff",
	  0xffffffff, 0, 0, 0, 0, 1 },
	{ "s_cmpk_gt_u32 s2, 0xffff",
	  0, 0, 0, 1, 0, 0 },
	{ "s_cmpk_ge_u32 s2, 0x1",
	  0xffffffff, 0, 0, 0, 0, 1 },
	{ "s_cmpk_lt_u32 s2, 0x1",
	  0xffffffff, 0, 0, 1, 0, 0 },
	{ "s_cmpk_le_u32 s2, 0x1",
	  2, 0, 0, 1, 0, 0 },
	{ "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 5; "
	  "s_getreg_b32 s6, hwreg(HW_REG_MODE, 0, 12)",
	  0, 0, 0, 0, 0x350, 0 },
	{ "s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s2; "
	  "s_getreg_b32 s6, hwreg(HW_REG_MODE)",
	  7, 0, 0, 0, 0x3c3, 0 },
	{ "s_round_mode 0x6; s_getreg_b32 s6, hwreg(HW_REG_MODE)",
	  0, 0, 0, 0, 0x3c6, 0 },
	{ "s_denorm_mode 3; s_getreg_b32 s6, hwreg(HW_REG_MODE)",
	  0, 0, 0, 0, 0x330, 0 },
	{ "s_getreg_b32 s6, hwreg(HW_REG_STATUS, 0, 12)",
	  0, 0, 0, 1, 0x401, 1 },
	{ "s_getreg_b32 s6, hwreg(HW_REG_FLAT_SCR_LO)",
	  0, 0, 0, 0, 0x34500000, 0 },
	{ "s_getreg_b32 s6, hwreg(HW_REG_FLAT_SCR_HI)",
	  0, 0, 0, 0, 0x7f12, 0 },
	{ "s_getreg_b32 s6, hwreg(HW_REG_SH_MEM_BASES)",
	  0, 0, 0, 0, 0x10002, 0 },
	{ "s_getreg_b32 s6, hwreg(HW_REG_HW_ID1)",
	  0, 0, 0, 0, 0x1234, 0 },
	{ "s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME)",
	  0, 0, 0, 0, 0x123456789a, 0 },
	{ "s_sendmsg_rtn_b32 s6, sendmsg(MSG_RTN_GET_TBA)",
	  0, 0, 9, 0, 0, 0 },
	{ "s_getpc_b64 s[6:7]",
	  0, 0, 0, 0, 0x7f0000010004, 0 },
	{ "s_mov_b32 m0, 3; s_movrels_b32 s6, s2",
	  1, 0x99000000aa, 0, 0, 0x99, 0 },
	{ "s_mov_b32 m0, 2; s_movrels_b64 s[6:7], s[2:3]",
	  1, 0x99000000aa, 0, 0, 0x99000000aa, 0 },
	{ "s_mov_b32 m0, 4; s_movreld_b32 s2, s4",
	  1, 0x4d, 0, 0, 0x4d, 0 },
	{ "s_mov_b32 m0, 4; s_movreld_b64 s[2:3], s[4:5]",
	  1, 0x700000008, 0, 0, 0x700000008, 0 },
	{ "s_mov_b32 m0, 0x20001; s_movrelsd_2_b32 s4, s2",
	  0x2200000011, 0, 0, 0, 0x22, 0 },
	{ "s_cmp_eq_u32 s2, s4; s_cbranch_scc1 1; s_mov_b32 s6, 9; s_nop 0",
	  5, 5, 1, 0, 1, 1 },
	{ "s_cmp_eq_u32 s2, s4; s_cbranch_scc0 1; s_mov_b32 s6, 9; s_nop 0",
	  5, 5, 1, 0, 9, 1 },
	{ "s_cbranch_vccz 1; s_mov_b32 s6, 9; s_nop 0",
	  0, 0, 1, 0, 1, 0 },
	{ "s_mov_b32 vcc_lo, 4; s_cbranch_vccnz 1; s_mov_b32 s6, 9; s_nop 0",
	  0, 0, 1, 0, 1, 0 },
	{ "s_cbranch_execz 1; s_mov_b32 s6, 9; s_nop 0",
	  0, 0, 1, 0, 9, 0 },
	{ "s_cbranch_execnz 1; s_mov_b32 s6, 9; s_nop 0",
	  0, 0, 1, 0, 1, 0 },
	{ "s_branch 1; s_mov_b32 s6, 9; s_nop 0",
	  0, 0, 1, 0, 1, 0 },
	{ "s_call_b64 s[6:7], 1; s_mov_b64 s[6:7], 0; s_nop 0",
	  0, 0, 1, 0, 0x7f0000010004, 0 },
	{ "s_getpc_b64 s[2:3]; "
	  "s_add_u32 s2, s2, 16; "
	  "s_setpc_b64 s[2:3]; "
	  "s_mov_b32 s6, 9; "
	  "s_nop 0",
	  0, 0, 1, 0, 1, 0 },
	{ "s_getpc_b64 s[2:3]; "
	  "s_add_u32 s2, s2, 16; "
	  "s_swappc_b64 s[6:7], s[2:3]; "
	  "s_mov_b32 s6, 9; "
	  "s_nop 0",
	  0, 0, 1, 0, 0x7f000001000c, 0 },
	{ "s_movk_i32 s4, 0; "
	  "s_add_u32 s6, s6, s2; "
	  "s_add_u32 s4, s4, 1; "
	  "s_cmp_lt_u32 s4, 10; "
	  "s_cbranch_scc1 -4",
	  3, 0, 0, 0, 0x1e, 0 },
	{ "s_nop 7; "
	  "s_sleep 1; "
	  "s_setprio 3; "
	  "s_clause 1; "
	  "s_delay_alu instid0(VALU_DEP_1); "
	  "s_waitcnt 0; "
	  "s_waitcnt_depctr 0; "
	  "s_waitcnt_vscnt null, 0; "
	  "s_wait_idle; "
	  "s_sethalt 0; "
	  "s_barrier; "
	  "s_icache_inv; "
	  "s_mov_b32 s6, 3; "
	  "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)",
	  0, 0, 0, 0, 3, 0 },
	/* clang-format on */
};

/* EXEC = 0xff00ff00f0f0f0f0 before, s[2:3] = 0x0ff00ff0ffff0000. */
static const struct exec_row {
	const char *text;
	uint64_t exec, want; /* EXEC and s[6:7] afterwards */
	bool scc;
} exec_rows[] = {
	{ "s_and_saveexec_b64 s[6:7], s[2:3]", 0x0f000f00f0f00000,
	  0xff00ff00f0f0f0f0, true },
	{ "s_and_saveexec_b32 s6, s2", 0xff00ff00f0f00000, 0xf0f0f0f0, true },
	{ "s_or_saveexec_b64 s[6:7], s[2:3]", 0xfff0fff0fffff0f0,
	  0xff00ff00f0f0f0f0, true },
	{ "s_or_saveexec_b32 s6, s2", 0xff00ff00fffff0f0, 0xf0f0f0f0, true },
	{ "s_xor_saveexec_b64 s[6:7], s[2:3]", 0xf0f0f0f00f0ff0f0,
	  0xff00ff00f0f0f0f0, true },
	{ "s_xor_saveexec_b32 s6, s2", 0xff00ff000f0ff0f0, 0xf0f0f0f0, true },
	{ "s_nand_saveexec_b64 s[6:7], s[2:3]", 0xf0fff0ff0f0fffff,
	  0xff00ff00f0f0f0f0, true },
	{ "s_nand_saveexec_b32 s6, s2", 0xff00ff000f0fffff, 0xf0f0f0f0, true },
	{ "s_nor_saveexec_b64 s[6:7], s[2:3]", 0x000f000f00000f0f,
	  0xff00ff00f0f0f0f0, true },
	{ "s_nor_saveexec_b32 s6, s2", 0xff00ff0000000f0f, 0xf0f0f0f0, true },
	{ "s_xnor_saveexec_b64 s[6:7], s[2:3]", 0x0f0f0f0ff0f00f0f,
	  0xff00ff00f0f0f0f0, true },
	{ "s_xnor_saveexec_b32 s6, s2", 0xff00ff00f0f00f0f, 0xf0f0f0f0, true },
	{ "s_and_not0_saveexec_b64 s[6:7], s[2:3]", 0xf000f0000000f0f0,
	  0xff00ff00f0f0f0f0, true },
	{ "s_and_not0_saveexec_b32 s6, s2", 0xff00ff000000f0f0, 0xf0f0f0f0,
	  true },
	{ "s_or_not0_saveexec_b64 s[6:7], s[2:3]", 0xff0fff0ff0f0ffff,
	  0xff00ff00f0f0f0f0, true },
	{ "s_or_not0_saveexec_b32 s6, s2", 0xff00ff00f0f0ffff, 0xf0f0f0f0,
	  true },
	{ "s_and_not1_saveexec_b64 s[6:7], s[2:3]", 0x00f000f00f0f0000,
	  0xff00ff00f0f0f0f0, true },
	{ "s_and_not1_saveexec_b32 s6, s2", 0xff00ff000f0f0000, 0xf0f0f0f0,
	  true },
	{ "s_or_not1_saveexec_b64 s[6:7], s[2:3]", 0x0fff0fffffff0f0f,
	  0xff00ff00f0f0f0f0, true },
	{ "s_or_not1_saveexec_b32 s6, s2", 0xff00ff00ffff0f0f, 0xf0f0f0f0,
	  true },
	{ "s_and_not0_wrexec_b64 s[6:7], s[2:3]", 0xf000f0000000f0f0,
	  0xf000f0000000f0f0, true },
	{ "s_and_not0_wrexec_b32 s6, s2", 0xff00ff000000f0f0, 0xf0f0, true },
	{ "s_and_not1_wrexec_b64 s[6:7], s[2:3]", 0x00f000f00f0f0000,
	  0xf000f00f0f0000, true },
	{ "s_and_not1_wrexec_b32 s6, s2", 0xff00ff000f0f0000, 0xf0f0000, true },
};

static void put64(uint32_t *s, uint64_t v)
{
	s[0] = (uint32_t)v;
	s[1] = (uint32_t)(v >> 32);
}

static uint64_t get64(const uint32_t *s)
{
	return s[0] | (uint64_t)s[1] << 32;
}

static void test_row(const struct row *r, int number)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	b.time = UINT64_C(0x123456789a);
	w->hw_id1 = 0x1234;
	put64(&w->s[2], r->a);
	put64(&w->s[4], r->b);
	put64(&w->s[6], r->d);
	w->scc = r->scc;
	bench_text(&b, r->text);
	is_u64(w->state, SOFT_ENDED, "%d: %s ends", number, r->text);
	is_u64(get64(&w->s[6]), r->want, "%d: %s gives its result", number,
	       r->text);
	is_u64(w->scc, r->scc_want, "%d: %s leaves SCC", number, r->text);
	bench_fini(&b);
}

static void test_exec(const struct exec_row *r)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 64, 1);
	put64(&w->s[ISA_R_EXEC_LO], UINT64_C(0xff00ff00f0f0f0f0));
	put64(&w->s[2], UINT64_C(0x0ff00ff0ffff0000));
	bench_text(&b, r->text);
	is_u64(get64(&w->s[ISA_R_EXEC_LO]), r->exec, "%s: EXEC", r->text);
	is_u64(get64(&w->s[6]), r->want, "%s: destination", r->text);
	is_u64(w->scc, r->scc, "%s: SCC", r->text);
	bench_fini(&b);
}

/* Each half of a wave64 in turn. */
static void test_subvector_loop(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 64, 1);
	put64(&w->s[ISA_R_EXEC_LO], UINT64_C(0x0000000200000001));
	bench_text(&b,
		   "s_subvector_loop_begin s20, 6\n"
		   "s_add_u32 s8, s8, 1\n"
		   "s_cmp_eq_u32 s8, 1\n"
		   "s_cselect_b32 s9, exec_lo, s9\n"
		   "s_mov_b64 s[10:11], exec\n"
		   "s_nop 0\n"
		   "s_subvector_loop_end s20, 65530"); /* s_subvector_loop_end
							      s20, -6 */
	is_u64(w->s[8], 2, "s_subvector_loop runs its body twice");
	is_u64(w->s[9], 1, "... first with the low half alone");
	is_u64(get64(&w->s[10]), UINT64_C(0x0000000200000000),
	       "... then with the high half alone");
	is_u64(get64(&w->s[ISA_R_EXEC_LO]), UINT64_C(0x0000000200000001),
	       "... and restores EXEC");
	bench_fini(&b);
}

static void test_fault(const char *what, uint32_t word, int kind,
		       const char *text)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	/* s_mov_b32 s0, 1; the word; s_mov_b32 s0, 2 */
	BENCH_RUN(&b, 0xbe800081, word, 0xbe800082);
	is_u64(w->state, SOFT_FAULTED, "%s stops the wave", what);
	is_u64(w->fault.kind, (uint64_t)kind, "%s: kind of fault", what);
	is_u64(w->fault.pc, BENCH_CODE + 4, "%s: its own address", what);
	is_mem(w->fault.code, &word, 4, "%s: its own word", what);
	has_str(w->fault.text, text, "%s says what is wrong", what);
	is_u64(w->s[0], 1, "%s: nothing behind it runs", what);
	bench_fini(&b);
}

static void test_faults(void)
{
	test_fault("s_trap 2", 0xbf900002, SOFT_FAULT_TRAP, "s_trap 2");
	test_fault("s_code_end", 0xbf9f0000, SOFT_FAULT_ILLEGAL, "end of");
	test_fault("an empty opcode slot", 0xbfff0000, SOFT_FAULT_ILLEGAL,
		   "unknown opcode");
	test_fault("s_rfe_b64 s[0:1]", 0xbe804a00, SOFT_FAULT_ILLEGAL,
		   "trap handler");
	test_fault("s_sethalt 1", 0xbf820001, SOFT_FAULT_HANG, "s_sethalt");
	test_fault("s_wait_event 0", 0xbf8b0000, SOFT_FAULT_UNSUPPORTED,
		   "s_wait_event");
	test_fault("s_sendmsg 9", 0xbfb60009, SOFT_FAULT_UNSUPPORTED,
		   "message 9");
}

static void test_vgpr_limit(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	w->n_vgprs = 128;
	bench_text(&b, "v_mov_b32 v128, 0"); /* v_mov_b32 v128, 0 */
	is_u64(w->fault.kind, SOFT_FAULT_ILLEGAL,
	       "a VGPR beyond the allocation is illegal");
	has_str(w->fault.text, "v128 is used, but the wave has allocated 128",
		"... and named");
	bench_fini(&b);
}

static void test_fetch(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	w->s[2] = (uint32_t)BENCH_DATA;
	w->s[3] = BENCH_DATA >> 32;
	bench_text(&b, "s_setpc_b64 s[2:3]"); /* s_setpc_b64 s[2:3] */
	is_u64(w->fault.kind, SOFT_FAULT_MEMORY,
	       "a jump to data without execute rights faults");
	is_u64(w->fault.va, BENCH_DATA, "... with the address");
	has_str(w->fault.text, "not executable", "... and the reason");
	w->s[3] = 0;
	bench_text(&b, "s_setpc_b64 s[2:3]");
	has_str(w->fault.text, "not mapped", "a jump to nowhere faults");
	bench_fini(&b);
}

static void test_limits(void)
{
	static const uint32_t loop = 0xbfa0ffff; /* s_branch -1 */
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	bench_load(&b, &loop, 4);
	soft_wave_run(w, 1000);
	is_u64(w->state, SOFT_READY, "an endless loop stays ready");
	is_u64(w->n_insts, 1000, "... after as many instructions as allowed");
	bench_fini(&b);
}

/* Wave 0 waits until wave 1 has arrived. */
static void test_barrier(void)
{
	static const char code[] = "s_barrier\n"
				   "s_mov_b32 s0, 5";
	struct bench b;

	bench_init(&b, 32, 2);
	bench_load_text(&b, code);
	soft_wave_run(&b.wave[0], 100);
	is_u64(b.wave[0].state, SOFT_AT_BARRIER, "s_barrier stops a wave");
	is_u64(b.wave[0].s[0], 0, "... before what follows");
	bench_go(&b);
	is_u64(b.wave[0].s[0], 5, "... which runs when all have arrived");
	is_u64(b.wave[1].s[0], 5, "... in every wave");
	bench_fini(&b);
}

/* Code that changed is seen after s_icache_inv, and not before. */
static void test_icache(void)
{
	static const char code[] = "s_mov_b32 s0, 1\n"
				   "s_icache_inv\n"
				   "s_barrier\n"
				   "s_branch 65532";
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 2);
	bench_load_text(&b, code);
	soft_wave_run(w, 100);
	is_u64(w->s[0], 1, "the first value is moved");
	b.code[0] = 0x82; /* now s_mov_b32 s0, 2 */
	w->state = SOFT_READY;
	soft_wave_run(w, 100);
	is_u64(w->s[0], 2, "s_icache_inv makes changed code seen");
	bench_fini(&b);
}

static void test_shader_cycles(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	w->start_clock = 0xffffe;
	/* s_getreg_b32 s0 and s1, hwreg(HW_REG_SHADER_CYCLES, 0, 20) */
	bench_text(&b, "s_getreg_b32 s0, hwreg(HW_REG_SHADER_CYCLES, 0, 20)\n"
		       "s_nop 0\n"
		       "s_getreg_b32 s1, hwreg(HW_REG_SHADER_CYCLES, 0, 20)");
	ok(w->s[0] <= 0xfffff && w->s[1] <= 0xfffff,
	   "SHADER_CYCLES has 20 bits");
	is_u64((w->s[1] - w->s[0]) & 0xfffff, 2,
	       "SHADER_CYCLES advances through its wrap");
	bench_fini(&b);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		test_row(&rows[i], (int)i);
	for (size_t i = 0; i < ARRAY_SIZE(exec_rows); i++)
		test_exec(&exec_rows[i]);
	test_subvector_loop();
	test_faults();
	test_vgpr_limit();
	test_fetch();
	test_limits();
	test_barrier();
	test_icache();
	test_shader_cycles();
	return plan_done();
}
