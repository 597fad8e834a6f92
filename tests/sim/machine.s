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
