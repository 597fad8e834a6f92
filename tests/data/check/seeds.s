// Right kernels, one instruction of which a test replaces to put a fault in:
//
//	... // @ NAME: INSTRUCTION	becomes this instruction
//	... // ! NAME			is what the finding names
//	... // ? NAME			is what it conflicts with
//
// One instruction a line; marks of several faults are separated by "; ".
.include "gpu.inc"
.text

// Each kind of load, each with its wait.
kernel waits
	s_load_b64 s[2:3], s[0:1], null			// ? smem_wait
	v_lshlrev_b32 v1, 2, v0
	s_waitcnt lgkmcnt(0)				// @ smem_wait: s_nop 0
	global_load_b32 v2, v1, s[2:3]			// ! smem_wait
	global_load_b64 v[4:5], v1, s[2:3] offset:8	// ? vm_second; ? vm_over
	s_waitcnt vmcnt(1)
	v_mov_b32 v3, v2				// @ vm_over: v_mov_b32 v5, v2; ! vm_over
	s_waitcnt vmcnt(0)				// @ vm_second: s_waitcnt vmcnt(1)
	v_add_nc_u32 v6, v4, v5				// ! vm_second
	v_mov_b32 v7, 1
	global_atomic_add_u32 v8, v1, v7, s[2:3] glc	// ? vm_atomic
	s_waitcnt vmcnt(0)				// @ vm_atomic: s_nop 0
	v_add_nc_u32 v6, v6, v8				// ! vm_atomic
	s_load_b32 s4, s[2:3], null			// ? smem_order
	s_load_b32 s5, s[2:3], 0x4			// ? smem_branch
	s_waitcnt lgkmcnt(0)				// @ smem_order: s_waitcnt lgkmcnt(1); @ smem_branch: s_nop 0
	s_cmp_eq_u32 s5, 0				// ! smem_branch
	s_add_u32 s6, s4, 1				// ! smem_order
	ds_store_b32 v1, v6
	ds_load_b32 v9, v1				// ? lds_count
	ds_load_b32 v10, v1				// ? lds_wait
	s_waitcnt lgkmcnt(1)				// @ lds_count: s_waitcnt lgkmcnt(2)
	v_add_nc_u32 v9, 1, v9				// ! lds_count
	s_waitcnt lgkmcnt(0)				// @ lds_wait: s_nop 0
	v_add_nc_u32 v9, v9, v10			// ! lds_wait
	ds_bpermute_b32 v11, v1, v9			// ? permute_wait
	s_waitcnt lgkmcnt(0)				// @ permute_wait: s_nop 0
	v_xor_b32 v11, 1, v11				// ! permute_wait
	v_add_co_u32 v12, s7, v1, s2
	v_add_co_ci_u32 v13, s7, 0, s3, s7
	flat_load_b32 v14, v[12:13]			// ? flat_vm; ? flat_both
	s_waitcnt vmcnt(0) lgkmcnt(0)			// @ flat_vm: s_waitcnt lgkmcnt(0); @ flat_both: s_nop 0
	v_add_nc_u32 v11, v11, v14			// ! flat_vm; ! flat_both
	s_mov_b64 s[8:9], src_shared_base
	v_mov_b32 v15, v1
	v_mov_b32 v16, s9
	flat_load_b32 v14, v[15:16]			// ? flat_lgkm
	s_waitcnt vmcnt(0) lgkmcnt(0)			// @ flat_lgkm: s_waitcnt vmcnt(0)
	v_add_nc_u32 v11, v11, v14			// ! flat_lgkm
	v_add_nc_u32 v11, s6, v11
	global_store_b32 v1, v11, s[2:3]
done waits, 128

// Wave 1 reads from memory what wave 0 wrote, and from LDS.
kernel stores
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_xor_b32 v2, 0x80, v1
	s_waitcnt lgkmcnt(0)
	s_mov_b64 s[8:9], s[2:3]
	s_movk_i32 s10, 0x200
	s_mov_b32 s11, 0x31016fac
	global_store_b32 v1, v0, s[2:3]			// ? vs_global; ? race_barrier
	s_waitcnt_vscnt null, 0x0			// @ vs_global: s_nop 0
	s_barrier					// @ race_barrier: s_nop 0
	buffer_gl0_inv
	global_load_b32 v3, v2, s[2:3]			// ! vs_global; ! race_barrier
	s_waitcnt vmcnt(0)
	s_barrier
	buffer_store_b32 v0, v1, s[8:11], 0 offen	// ? vs_buffer
	s_waitcnt_vscnt null, 0x0			// @ vs_buffer: s_nop 0
	s_barrier
	buffer_gl0_inv
	global_load_b32 v4, v2, s[2:3]			// ! vs_buffer
	s_waitcnt vmcnt(0)
	s_barrier
	global_atomic_add_u32 v1, v0, s[2:3]		// ? vs_atomic
	s_waitcnt_vscnt null, 0x0			// @ vs_atomic: s_nop 0
	s_barrier
	buffer_gl0_inv
	global_load_b32 v5, v2, s[2:3]			// ! vs_atomic
	s_waitcnt vmcnt(0)
	s_barrier
	ds_store_b32 v1, v3				// ? lds_barrier; ? lds_wait_store
	s_waitcnt lgkmcnt(0)				// @ lds_wait_store: s_nop 0
	s_barrier					// @ lds_barrier: s_nop 0
	ds_load_b32 v6, v2				// ! lds_barrier; ! lds_wait_store
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_mov_b32 v7, v1				// @ lds_same: v_and_b32 v7, 60, v1
	ds_store_b32 v7, v6				// ! lds_same; ? lds_same
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v6, s[2:3]
done stores, 256

// A workgroup of 32 each, and a counter for all of them behind 128 words.
kernel groups
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	s_lshl_b32 s4, s15, 7				// @ group_index: s_mov_b32 s4, 0
	v_add_nc_u32 v1, s4, v1
	v_mov_b32 v2, 1
	v_mov_b32 v3, 0x100
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v0, s[2:3]			// ! group_index; ? group_index
	global_atomic_add_u32 v3, v2, s[2:3]		// @ group_plain: global_store_b32 v3, v2, s[2:3]; ! group_plain; ? group_plain
done groups

// A value of each kind of register and memory, all of which are stored.
kernel stored
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_mov_b32 v2, 1					// @ store_vgpr: v_mov_b32 v12, 1
	s_mov_b32 s4, 2					// @ store_sgpr: s_mov_b32 s5, 2
	ds_store_b32 v1, v0				// @ store_lds: ds_store_b32 v1, v0 offset:128
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v0, s[2:3]			// @ store_memory: global_store_b32 v1, v0, s[2:3] offset:128
	s_waitcnt_vscnt null, 0x0
	ds_load_b32 v3, v1				// ? store_lds
	global_load_b32 v4, v1, s[2:3]			// ? store_memory
	s_waitcnt vmcnt(0) lgkmcnt(0)
	global_store_b32 v1, v2, s[2:3] offset:256	// ! store_vgpr
	v_mov_b32 v5, s4
	global_store_b32 v1, v5, s[2:3] offset:256	// ! store_sgpr
	global_store_b32 v1, v3, s[2:3] offset:256	// ! store_lds
	global_store_b32 v1, v4, s[2:3] offset:256	// ! store_memory
done stored, 256

// The same as addresses.
kernel addressed
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_mov_b32 v2, 4					// @ address_vgpr: v_mov_b32 v12, 4
	s_mov_b32 s4, 8					// @ address_sgpr: s_mov_b32 s5, 8
	ds_store_b32 v1, v0				// @ address_lds: ds_store_b32 v1, v0 offset:128
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v0, s[2:3]			// @ address_memory: global_store_b32 v1, v0, s[2:3] offset:128
	s_waitcnt_vscnt null, 0x0
	ds_load_b32 v3, v1				// ? address_lds
	global_load_b32 v4, v1, s[2:3]			// ? address_memory
	s_waitcnt vmcnt(0) lgkmcnt(0)
	v_and_b32 v2, 60, v2
	s_and_b32 s4, s4, 60
	v_and_b32 v3, 60, v3
	v_and_b32 v4, 60, v4
	global_load_b32 v5, v2, s[2:3]			// ! address_vgpr
	s_load_b32 s6, s[2:3], s4			// ! address_sgpr
	global_load_b32 v6, v3, s[2:3]			// ! address_lds
	global_load_b32 v7, v4, s[2:3]			// ! address_memory
	s_waitcnt vmcnt(0) lgkmcnt(0)
done addressed, 256

// The same in branches.
kernel branched
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_mov_b32 v2, 1					// @ branch_vgpr: v_mov_b32 v12, 1
	s_mov_b32 s4, 2					// @ branch_sgpr: s_mov_b32 s5, 2
	ds_store_b32 v1, v0				// @ branch_lds: ds_store_b32 v1, v0 offset:128
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v0, s[2:3]			// @ branch_memory: global_store_b32 v1, v0, s[2:3] offset:128
	s_waitcnt_vscnt null, 0x0
	ds_load_b32 v3, v1				// ? branch_lds
	global_load_b32 v4, v1, s[2:3]			// ? branch_memory
	s_waitcnt vmcnt(0) lgkmcnt(0)
	v_cmp_eq_u32 vcc_lo, 1, v2
	s_cbranch_vccz .Lend				// ! branch_vgpr
	s_cmp_eq_u32 s4, 9
	s_cbranch_scc1 .Lend				// ! branch_sgpr
	v_cmp_eq_u32 vcc_lo, 77, v3
	s_cbranch_vccnz .Lend				// ! branch_lds
	v_readfirstlane_b32 s7, v4
	s_cmp_eq_u32 s7, 50
	s_cbranch_scc1 .Lend				// ! branch_memory
	s_nop 0
.Lend:
done branched, 256

// An argument of 100 bytes; LDS of 64, scratch of 20 bytes a lane.
kernel inside
	s_load_b64 s[2:3], s[0:1], null
	v_and_b32 v1, 15, v0
	v_lshlrev_b32 v1, 2, v1
	v_mov_b32 v2, 7
	s_waitcnt lgkmcnt(0)
	global_load_b32 v3, v1, s[2:3]			// @ past_load: global_load_b32 v3, v1, s[2:3] offset:64; ! past_load
	s_waitcnt vmcnt(0)
	global_load_b64 v[4:5], v1, s[2:3]		// @ past_part: global_load_b64 v[4:5], v1, s[2:3] offset:36; ! past_part
	s_waitcnt vmcnt(0)
	s_load_b32 s4, s[2:3], 0x60			// @ past_scalar: s_load_b32 s4, s[2:3], 0x64; ! past_scalar
	s_waitcnt lgkmcnt(0)
	ds_store_b32 v1, v2				// @ past_lds: ds_store_b32 v1, v2 offset:32; ! past_lds
	scratch_store_b32 off, v2, off offset:16	// @ past_scratch: scratch_store_b32 off, v2, off offset:20; ! past_scratch
	s_waitcnt lgkmcnt(0)
	s_waitcnt_vscnt null, 0x0
	s_barrier
	v_mov_b32 v6, 0x48
	s_mov_b32 exec_lo, 1
	global_store_b32 v6, v2, s[2:3]			// @ past_store: global_store_b32 v6, v2, s[2:3] offset:28; ! past_store
done inside, 64, 20

// Multiples of the size.
kernel aligned
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	v_lshlrev_b32 v2, 1, v0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v3, v1, s[2:3]			// @ odd_load: global_load_b32 v3, v1, s[2:3] offset:2; ! odd_load
	s_waitcnt vmcnt(0)
	ds_store_b32 v1, v0				// @ odd_lds: ds_store_b32 v1, v0 offset:2; ! odd_lds
	s_waitcnt lgkmcnt(0)
	global_store_b16 v2, v0, s[2:3]			// @ odd_store: global_store_b16 v2, v0, s[2:3] offset:1; ! odd_store
	s_waitcnt_vscnt null, 0x0
	s_load_b32 s4, s[2:3], null
	s_waitcnt lgkmcnt(0)
done aligned, 160

// Both waves come to all three barriers.
kernel together
	v_readfirstlane_b32 s4, v0
	s_movk_i32 s5, 100
	s_cmp_gt_u32 s4, 48				// @ first_skips: s_cmp_lt_u32 s4, 16; @ second_skips: s_cmp_gt_u32 s4, 16
	s_cbranch_scc1 .Lout
	s_barrier					// ! first_skips; ! second_skips
	s_nop 0
	s_barrier
	s_cmp_gt_u32 s4, s5				// @ last_skips: s_cmp_eq_u32 s4, 0
	s_cbranch_scc1 .Lout
	s_barrier					// ! last_skips
.Lout:
done together						// ? first_skips; ? second_skips; ? last_skips

// All lanes are on.
kernel matrix
	v_mov_b32 v2, 0
	v_mov_b32 v3, 0
	v_mov_b32 v4, 0
	v_mov_b32 v5, 0
	v_mov_b32 v6, 0
	v_mov_b32 v7, 0
	v_mov_b32 v8, 0
	v_mov_b32 v9, 0
	v_mov_b32 v10, 0
	v_mov_b32 v11, 0
	v_mov_b32 v12, 0
	v_mov_b32 v13, 0
	v_mov_b32 v14, 0
	v_mov_b32 v15, 0
	v_mov_b32 v16, 0
	v_mov_b32 v17, 0
	s_mov_b32 exec_lo, -1				// @ one_lane: s_mov_b32 exec_lo, 1; @ one_off: s_bitset0_b32 exec_lo, 31; @ compared: v_cmpx_gt_u32 7, v0
	v_wmma_f32_16x16x16_f16 v[10:17], v[2:9], v[2:9], v[10:17]	// ! one_lane; ! one_off; ! compared
done matrix
