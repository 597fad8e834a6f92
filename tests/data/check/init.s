// Values that nobody wrote.  "!" marks where one decides something, "?" the
// load that brought it from memory.
.include "gpu.inc"
.text

.macro begin
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
.endm

kernel vgpr_stored
	begin
	v_add_nc_u32 v3, 1, v2
	global_store_b32 v1, v3, s[2:3]			// ! vgpr_stored
done vgpr_stored

// Only lanes 0..15 are written.
kernel lanes_stored
	begin
	s_mov_b32 exec_lo, 0xffff
	v_mov_b32 v2, 1
	s_mov_b32 exec_lo, -1
	global_store_b32 v1, v2, s[2:3]			// ! lanes_stored
done lanes_stored

kernel vgpr_address
	begin
	v_add_nc_u32 v3, v1, v4
	v_and_b32 v3, 60, v3
	global_load_b32 v5, v3, s[2:3]			// ! vgpr_address
	s_waitcnt vmcnt(0)
done vgpr_address

kernel sgpr_branch
	begin
	s_cmp_eq_u32 s9, 0
	s_cbranch_scc1 .Lzero				// ! sgpr_branch
	s_nop 0
.Lzero:
done sgpr_branch

kernel exec_mask
	begin
	v_cmp_gt_u32 vcc_lo, v3, v0
	s_and_saveexec_b32 s4, vcc_lo			// ! exec_mask
	global_store_b32 v1, v0, s[2:3]
done exec_mask

kernel lds_stored
	begin
	ds_load_b32 v2, v1				// ? lds_stored
	s_waitcnt lgkmcnt(0)
	v_lshlrev_b32 v3, 1, v2
	global_store_b32 v1, v3, s[2:3]			// ! lds_stored
done lds_stored, 128

kernel scratch_stored
	begin
	scratch_load_b32 v2, off, off offset:8		// ? scratch_stored
	s_waitcnt vmcnt(0)
	global_store_b32 v1, v2, s[2:3]			// ! scratch_stored
done scratch_stored, 0, 16

// The first argument's memory was never written (=none).
kernel memory_address
	begin
	global_load_b32 v2, v1, s[2:3]			// ? memory_address
	s_waitcnt vmcnt(0)
	v_and_b32 v2, 60, v2
	global_load_b32 v3, v2, s[2:3]			// ! memory_address
	s_waitcnt vmcnt(0)
done memory_address

// Undefined values that decide nothing, and masks of which only the defined
// bits are used.
kernel clean
	begin
	v_add_nc_u32 v3, 1, v2
	v_mov_b32 v4, v3
	s_mov_b32 exec_lo, 0xff
	v_mov_b32 v5, 1
	s_mov_b32 exec_lo, -1
	v_cmp_gt_u32 vcc_lo, 8, v0
	v_cndmask_b32 v6, 0, v5, vcc_lo
	v_cmp_eq_u32 s5, v5, v6
	s_and_b32 s5, s5, 0xff
	s_and_saveexec_b32 s4, s5
	s_cbranch_execz .Lnone
	global_store_b32 v1, v5, s[2:3]
.Lnone:
	s_mov_b32 exec_lo, s4
	global_store_b32 v1, v6, s[2:3] offset:128
	v_xor_b32 v7, v7, v7
	v_mov_b32_dpp v8, v0 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
	v_writelane_b32 v9, s2, 3
	v_readlane_b32 s6, v9, 3
	v_add_nc_u32 v8, v8, v7
	v_add_nc_u32 v8, s6, v8
	global_store_b32 v1, v8, s[2:3] offset:256
done clean
