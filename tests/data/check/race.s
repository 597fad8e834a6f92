// Accesses that nothing orders.  "!" marks the instruction that a finding
// names, "?" the earlier one.  Buffers hold 64 dwords or more.
.include "gpu.inc"
.text

// v1 = 4 * work-item, s[2:3] = buffer
.macro begin
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
.endm

// The other wave's dword in LDS without a barrier.
kernel lds_no_barrier
	begin
	ds_store_b32 v1, v0				// ? lds_no_barrier
	s_waitcnt lgkmcnt(0)
	v_xor_b32 v2, 128, v1
	ds_load_b32 v3, v2				// ! lds_no_barrier
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v3, s[2:3]
done lds_no_barrier, 256

// A barrier that the store did not wait for.
kernel lds_no_wait
	begin
	ds_store_b32 v1, v0				// ? lds_no_wait
	s_barrier
	v_xor_b32 v2, 128, v1
	ds_load_b32 v3, v2				// ! lds_no_wait
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v3, s[2:3]
done lds_no_wait, 256

kernel lds_write_write
	begin
	v_mov_b32 v2, 0
	ds_store_b32 v2, v0				// ! lds_write_write
	s_waitcnt lgkmcnt(0)
	s_barrier
done lds_write_write, 256

// Memory between waves, with a barrier but no wait for the store.
kernel memory_no_wait
	begin
	global_store_b32 v1, v0, s[2:3]			// ? memory_no_wait
	s_barrier
	v_xor_b32 v2, 128, v1
	global_load_b32 v3, v2, s[2:3]			// ! memory_no_wait
	s_waitcnt vmcnt(0)
done memory_no_wait

// Two workgroups and one dword.
kernel groups
	begin
	v_mov_b32 v2, 0
	global_store_b32 v2, v1, s[2:3]			// ! groups
done groups

kernel groups_read
	begin
	v_mov_b32 v2, s15
	v_lshlrev_b32 v3, 2, v2
	v_sub_nc_u32 v4, 4, v3
	global_load_b32 v5, v4, s[2:3]			// ? groups_read
	s_waitcnt vmcnt(0)
	v_cmp_eq_u32 vcc_lo, 0, v0
	s_and_saveexec_b32 s4, vcc_lo
	global_store_b32 v3, v2, s[2:3]			// ! groups_read
done groups_read

// An atomic of one workgroup and a plain load of the other.
kernel atomic_plain
	begin
	v_mov_b32 v2, 0
	v_mov_b32 v3, 1
	s_cmp_eq_u32 s15, 0
	s_cbranch_scc0 .Lload
	global_atomic_add_u32 v2, v3, s[2:3]		// ? atomic_plain
	s_endpgm
.Lload:
	global_load_b32 v4, v2, s[2:3]			// ! atomic_plain
	s_waitcnt vmcnt(0)
done atomic_plain

// The flag is taken, but buffer_gl0_inv is missing: the data may be stale.
kernel no_invalidate
	begin
	v_mov_b32 v2, 0
	v_mov_b32 v3, 1
	s_cmp_eq_u32 s15, 0
	s_cbranch_scc0 .Lwait
	global_store_b32 v2, v3, s[2:3] offset:128	// ? no_invalidate
	s_waitcnt_vscnt null, 0
	global_atomic_add_u32 v2, v3, s[2:3]
	s_endpgm
.Lwait:
	global_load_b32 v4, v2, s[2:3] glc
	s_waitcnt vmcnt(0)
	v_readfirstlane_b32 s4, v4
	s_cmp_eq_u32 s4, 0
	s_cbranch_scc1 .Lwait
	global_load_b32 v5, v2, s[2:3] offset:128	// ! no_invalidate
	s_waitcnt vmcnt(0)
done no_invalidate

// The same with it, barriers with waits, atomics with atomics: all in order.
kernel clean
	begin
	v_mov_b32 v2, 0
	v_mov_b32 v3, 1
	ds_store_b32 v1, v0
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_xor_b32 v6, 128, v1
	ds_load_b32 v7, v6
	s_waitcnt lgkmcnt(0)
	global_atomic_add_u32 v2, v7, s[2:3] offset:4
	s_cmp_eq_u32 s15, 0
	s_cbranch_scc0 .Lclean
	v_cmp_eq_u32 vcc_lo, 0, v0
	s_and_saveexec_b32 s4, vcc_lo
	s_cbranch_execz .Lover
	global_store_b32 v2, v3, s[2:3] offset:128
	s_waitcnt_vscnt null, 0
	global_atomic_add_u32 v2, v3, s[2:3]
.Lover:
	s_endpgm
.Lclean:
	global_load_b32 v4, v2, s[2:3] glc
	s_waitcnt vmcnt(0)
	buffer_gl0_inv
	v_readfirstlane_b32 s4, v4
	s_cmp_eq_u32 s4, 0
	s_cbranch_scc1 .Lclean
	global_load_b32 v5, v2, s[2:3] offset:128
	s_waitcnt vmcnt(0)
done clean, 256

// All waves store the same bytes: in any order they are the same.
kernel same_bytes
	begin
	v_and_b32 v4, 31, v0
	v_lshlrev_b32 v4, 2, v4
	v_mov_b32 v2, 0x12345
	ds_store_b32 v4, v2
	ds_store_b16_d16_hi v4, v2 offset:128
	v_mov_b32 v3, 0x54321
	ds_store_2addr_b32 v4, v2, v3 offset0:64 offset1:96
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_load_b32 v3, v4
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v3, s[2:3]
done same_bytes, 1024

// The second value differs from what the other wave stores there.
kernel other_bytes
	begin
	v_and_b32 v4, 31, v0
	v_lshlrev_b32 v4, 2, v4
	v_mov_b32 v2, 0x12345
	ds_store_2addr_b32 v4, v2, v0 offset0:64 offset1:96 // ! other_bytes
	s_waitcnt lgkmcnt(0)
	s_barrier
done other_bytes, 1024

// Addition by compare and exchange: the first load is a guess.
kernel exchange_loop
	begin
	v_mov_b32 v2, 0
	v_cmp_eq_u32 vcc_lo, 0, v0
	s_and_saveexec_b32 s4, vcc_lo
	s_cbranch_execz .Lnothing
	global_load_b32 v5, v2, s[2:3] offset:4
	s_waitcnt vmcnt(0)
.Lagain:
	v_add_nc_u32 v4, 1, v5
	global_atomic_cmpswap_b32 v6, v2, v[4:5], s[2:3] offset:4 glc
	s_waitcnt vmcnt(0)
	v_cmp_ne_u32 vcc_lo, v6, v5
	v_mov_b32 v5, v6
	s_and_b32 exec_lo, exec_lo, vcc_lo
	s_cbranch_execnz .Lagain
.Lnothing:
	s_mov_b32 exec_lo, s4
done exchange_loop

// The exchange is elsewhere: nothing checks the load.
kernel exchange_elsewhere
	begin
	v_mov_b32 v2, 0
	v_mov_b32 v4, 1
	v_mov_b32 v5, 0
	s_cmp_eq_u32 s15, 0
	s_cbranch_scc0 .Lplain
	global_atomic_cmpswap_b32 v2, v[4:5], s[2:3] offset:4 // ? exchange_elsewhere
	s_endpgm
.Lplain:
	global_load_b32 v5, v2, s[2:3] offset:4		// ! exchange_elsewhere
	global_atomic_cmpswap_b32 v6, v2, v[4:5], s[2:3] offset:8 glc
	s_waitcnt vmcnt(0)
done exchange_elsewhere

// Waits for the turn of the workgroup, one of eight: s5, which is not in order.
// v2 = 0, v3 = 1; EXEC has a work-item for each turn before it.
.macro take_turn
	v_mov_b32 v2, 0
	v_mov_b32 v3, 1
	s_mul_i32 s5, s15, 13
	s_and_b32 s5, s5, 7
.Lturn\@:
	s_sleep 1
	global_load_b32 v4, v2, s[2:3] glc
	s_waitcnt vmcnt(0)
	buffer_gl0_inv
	v_readfirstlane_b32 s4, v4
	s_cmp_eq_u32 s4, s5
	s_cbranch_scc0 .Lturn\@
	v_cmp_gt_u32 vcc_lo, s5, v0
	s_and_saveexec_b32 s6, vcc_lo
.endm

// Workgroups take turns, in an order of their own; each reads what all that had
// theirs stored, most of which it knows of from others only.
kernel chain
	begin
	take_turn
	global_load_b32 v5, v1, s[2:3] offset:128
	s_waitcnt vmcnt(0)
	s_mov_b32 exec_lo, 1
	v_mov_b32 v6, s5
	v_lshlrev_b32 v6, 2, v6
	global_store_b32 v6, v3, s[2:3] offset:128
	s_waitcnt_vscnt null, 0
	global_atomic_add_u32 v2, v3, s[2:3]
done chain

// None waits for its store before it passes on.
kernel chain_no_wait
	begin
	take_turn
	global_load_b32 v5, v1, s[2:3] offset:128	// ! chain_no_wait
	s_waitcnt vmcnt(0)
	s_mov_b32 exec_lo, 1
	v_mov_b32 v6, s5
	v_lshlrev_b32 v6, 2, v6
	global_store_b32 v6, v3, s[2:3] offset:128	// ? chain_no_wait
	global_atomic_add_u32 v2, v3, s[2:3]
done chain_no_wait

// 16 bytes at once, and a part of them by the other wave.
kernel block_then_part
	begin
	v_lshlrev_b32 v2, 4, v0
	v_mov_b32 v4, v0
	v_mov_b32 v5, v0
	v_mov_b32 v6, v0
	v_mov_b32 v7, v0
	ds_store_b128 v2, v[4:7]			// ? block_then_part
	s_waitcnt lgkmcnt(0)
	v_xor_b32 v3, 512, v2
	ds_load_u8 v8, v3 offset:9			// ! block_then_part
	s_waitcnt lgkmcnt(0)
done block_then_part, 1024

// A part, and all of the 16 bytes by the other wave.
kernel part_then_block
	begin
	v_lshlrev_b32 v2, 4, v0
	ds_store_b32 v2, v0 offset:12			// ? part_then_block
	s_waitcnt lgkmcnt(0)
	v_xor_b32 v3, 512, v2
	ds_load_b128 v[4:7], v3				// ! part_then_block
	s_waitcnt lgkmcnt(0)
done part_then_block, 1024

// Parts of the same 16 bytes that have nothing in common, then all of them.
kernel parts_apart
	begin
	v_lshrrev_b32 v2, 5, v0
	v_lshlrev_b32 v2, 3, v2
	ds_store_b16 v2, v0
	ds_store_b8 v2, v0 offset:3
	ds_store_b32 v2, v0 offset:4
	ds_load_u16 v4, v2
	ds_load_u8 v5, v2 offset:7
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_mov_b32 v2, 0
	ds_load_b128 v[4:7], v2
	s_waitcnt lgkmcnt(0)
done parts_apart, 1024

// What was read before another wave stored there is not as it was.
kernel read_again
	begin
	v_mov_b32 v2, 0
	s_mov_b32 s5, 2
.Lread:
	ds_load_b128 v[4:7], v2				// ! read_again
	s_waitcnt lgkmcnt(0)
	s_barrier
	v_cmp_gt_u32 vcc_lo, 32, v0
	s_and_saveexec_b32 s6, vcc_lo
	ds_store_b32 v2, v0 offset:8			// ? read_again
	s_mov_b32 exec_lo, s6
	s_sub_u32 s5, s5, 1
	s_cmp_lg_u32 s5, 0
	s_cbranch_scc1 .Lread
done read_again, 1024
