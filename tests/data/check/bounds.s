// Accesses outside of what was allocated, or misaligned, and waves or lanes
// that are missing.  "!" marks the instruction that a finding names.
.include "gpu.inc"
.text

.macro begin
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
.endm

// The buffer has 100 bytes; its page has more.
kernel past_end
	begin
	global_load_b32 v2, v1, s[2:3]			// ! past_end
	s_waitcnt vmcnt(0)
done past_end

kernel across_end
	begin
	v_mov_b32 v2, 96
	v_mov_b32 v4, 0
	v_mov_b32 v5, 0
	global_store_b64 v2, v[4:5], s[2:3]		// ! across_end
done across_end

kernel scalar_past_end
	begin
	s_load_b32 s4, s[2:3], 0x80			// ! scalar_past_end
	s_waitcnt lgkmcnt(0)
done scalar_past_end

kernel lds_past_end
	begin
	ds_store_b32 v1, v0 offset:64			// ! lds_past_end
	s_waitcnt lgkmcnt(0)
done lds_past_end, 128

kernel scratch_past_end
	begin
	scratch_store_b32 off, v0, off offset:20	// ! scratch_past_end
	s_waitcnt_vscnt null, 0
done scratch_past_end, 0, 20

kernel odd_load
	begin
	global_load_b32 v2, v0, s[2:3]			// ! odd_load
	s_waitcnt vmcnt(0)
done odd_load

kernel odd_store
	begin
	v_lshlrev_b32 v2, 1, v0
	global_store_b16 v2, v0, s[2:3] offset:1	// ! odd_store
done odd_store

kernel odd_lds
	begin
	v_lshlrev_b32 v2, 1, v0
	ds_load_b32 v3, v2				// ! odd_lds
	s_waitcnt lgkmcnt(0)
done odd_lds, 128

// Wave 1 ends, wave 0 goes on to the barrier.
kernel early_end
	begin
	v_cmp_gt_u32 vcc_lo, 32, v0
	s_cbranch_vccz .Lend				// wave 1
	s_barrier					// ! early_end
.Lend:
done early_end

kernel second_barrier
	begin
	s_barrier
	v_cmp_gt_u32 vcc_lo, 32, v0
	s_cbranch_vccnz .Lend2				// wave 0
	s_nop 0
	s_barrier					// ! second_barrier
.Lend2:
done second_barrier

kernel loop_barrier
	begin
	v_readfirstlane_b32 s4, v0
	s_lshr_b32 s4, s4, 5
	s_add_u32 s4, s4, 1				// wave 0 once, wave 1 twice
.Lagain:
	s_barrier					// ! loop_barrier
	s_sub_u32 s4, s4, 1
	s_cmp_lg_u32 s4, 0
	s_cbranch_scc1 .Lagain
done loop_barrier

.macro zero16
	v_mov_b32 v2, 0
	.irp r, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25
	v_mov_b32 v\r, 0
	.endr
.endm

kernel wmma_half
	zero16
	s_mov_b32 exec_lo, 0xffff
	v_wmma_f32_16x16x16_f16 v[18:25], v[2:9], v[10:17], v[18:25] // ! wmma_half
done wmma_half

kernel wmma_branch
	zero16
	v_cmp_lt_u32 vcc_lo, 2, v0
	s_and_saveexec_b32 s4, vcc_lo
	v_wmma_f32_16x16x16_bf16 v[18:25], v[2:9], v[10:17], v[18:25] // ! wmma_branch
done wmma_branch

kernel wmma_one
	zero16
	s_mov_b32 exec_lo, 0x7fffffff
	v_wmma_i32_16x16x16_iu8 v[18:25], v[2:5], v[6:9], v[18:25] // ! wmma_one
done wmma_one

kernel clean
	begin
	v_cmp_gt_u32 vcc_lo, 25, v0
	s_and_saveexec_b32 s4, vcc_lo
	global_load_b32 v2, v1, s[2:3]
	s_waitcnt vmcnt(0)
	s_mov_b32 exec_lo, s4
	s_load_b64 s[6:7], s[2:3], 0x60			// half of it unused
	s_waitcnt lgkmcnt(0)
	s_add_u32 s6, s6, 1
	ds_store_b32 v1, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	zero16
	v_wmma_f32_16x16x16_f16 v[18:25], v[2:9], v[10:17], v[18:25]
done clean, 256
