; Kernels of tests/sim/machine.c.

few_registers:
	v_mov_b32 v5, 7
	v_readfirstlane_b32 s1, v5
	v_mov_b32 v200, 7
	v_readfirstlane_b32 s0, v200
	v_lshlrev_b64 v[63:64], 0, 7
	v_readfirstlane_b32 s2, v63
	v_readfirstlane_b32 s3, v64
	s_endpgm

spill:
	v_writelane_b32 v5, 7, 0
	v_writelane_b32 v5, s4, 3
	v_readlane_b32 s1, v5, 0
	v_readlane_b32 s2, v5, 3
	v_readlane_b32 s3, v5, 1
	v_writelane_b32 v5, 7, 1
	v_mov_b32 v5, v10
	v_readlane_b32 s6, v5, 0
	v_mov_b32 v5, 8
	v_writelane_b32 v5, s4, 3
	v_readlane_b32 s7, v5, 0
	v_readlane_b32 s8, v5, 3
	s_endpgm

fields:
	v_mov_b32 v1, 0xf0e1d2c3
	v_mov_b32 v2, 0x00000007
	v_mov_b32 v3, 0x12345678
	v_bfe_i32 v4, v1, 4, 8
	v_readfirstlane_b32 s1, v4
	v_bfe_i32 v4, v1, 8, 0
	v_readfirstlane_b32 s2, v4
	v_bfe_i32 v4, v1, 24, 20
	v_readfirstlane_b32 s3, v4
	v_bfm_b32 v4, v2, 5
	v_readfirstlane_b32 s4, v4
	v_min3_u32 v4, v1, v2, v3
	v_readfirstlane_b32 s5, v4
	v_max3_u32 v4, v3, v2, v1
	v_readfirstlane_b32 s6, v4
	v_alignbyte_b32 v4, v1, v3, 3
	v_readfirstlane_b32 s7, v4
	s_mov_b32 s20, 0xf0e1d2c3
	s_mov_b32 s21, 0x12345678
	s_bfe_i32 s8, s20, 0x00080004
	s_nand_b32 s9, s20, s21
	s_nor_b32 s10, s20, s21
	s_xnor_b32 s11, s20, s21
	s_nor_b64 s[12:13], s[20:21], 0
	s_cmp_lg_u64 s[20:21], s[12:13]
	s_cselect_b32 s14, 1, 0
	s_cmp_lg_u64 s[20:21], s[20:21]
	s_cselect_b32 s15, 1, 0
	s_endpgm

; v8 and v9 are never known, nor is what carries into the upper half.
low_sum:
	v_mov_b32 v0, 5
	s_mov_b32 s20, 7
	v_mad_u64_u32 v[4:5], s30, s20, 100, v[0:1]
	v_readfirstlane_b32 s1, v4
	v_readfirstlane_b32 s2, v5
	v_mad_u64_u32 v[4:5], s30, s20, 100, v[8:9]
	v_readfirstlane_b32 s3, v4
	v_mad_u64_u32 v[4:5], s30, s21, 100, v[0:1]
	v_readfirstlane_b32 s4, v4
	s_endpgm
