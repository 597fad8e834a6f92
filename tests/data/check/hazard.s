// Registers used while a load still owns them.  "!" marks the instruction
// that a finding names, "?" the outstanding one.
.include "gpu.inc"
.text

kernel vmem_read
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v1, v0, s[2:3]			// ? vmem_read
	v_add_nc_u32 v2, 1, v1				// ! vmem_read
	s_waitcnt vmcnt(0)
	global_store_b32 v0, v2, s[2:3]
done vmem_read

kernel vmem_count
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v1, v0, s[2:3]
	global_load_b32 v2, v0, s[2:3] offset:128	// ? vmem_count
	s_waitcnt vmcnt(1)
	v_add_nc_u32 v1, v1, v1
	v_mov_b32 v3, v2				// ! vmem_count
	global_store_b32 v0, v3, s[2:3]
done vmem_count

kernel vmem_overwrite
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_b64 v[2:3], v0, s[2:3]		// ? vmem_overwrite
	v_mov_b32 v3, 7					// ! vmem_overwrite
	s_waitcnt vmcnt(0)
	global_store_b32 v0, v3, s[2:3]
done vmem_overwrite

kernel smem_address
	s_load_b64 s[2:3], s[0:1], null			// ? smem_address
	v_lshlrev_b32 v0, 2, v0
	v_mov_b32 v1, 5
	global_store_b32 v0, v1, s[2:3]			// ! smem_address
	s_waitcnt lgkmcnt(0)
done smem_address

// Scalar loads return in any order: a count above 0 covers none of them.
kernel smem_order
	s_load_b64 s[2:3], s[0:1], null			// ? smem_order
	s_load_b32 s4, s[0:1], 8
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(1)
	v_mov_b32 v1, s2				// ! smem_order
	s_waitcnt lgkmcnt(0)
	global_store_b32 v0, v1, s[2:3]
done smem_order

kernel lds_read
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	v_mov_b32 v1, 3
	ds_store_b32 v0, v1
	ds_load_b32 v2, v0				// ? lds_read
	v_xor_b32 v3, 1, v2				// ! lds_read
	s_waitcnt lgkmcnt(0)
	global_store_b32 v0, v3, s[2:3]
done lds_read, 128

kernel permute_read
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	ds_swizzle_b32 v1, v0 offset:swizzle(SWAP,1)	// ? permute_read
	global_store_b32 v0, v1, s[2:3]			// ! permute_read
	s_waitcnt lgkmcnt(0)
done permute_read

kernel atomic_read
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	v_mov_b32 v1, 1
	s_waitcnt lgkmcnt(0)
	global_atomic_add_u32 v2, v0, v1, s[2:3] glc	// ? atomic_read
	v_mov_b32 v3, v2				// ! atomic_read
	s_waitcnt vmcnt(0)
done atomic_read

// Loads return in order, so these waits are enough: nothing to find.
kernel clean
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v1, v0, s[2:3]
	global_load_b32 v2, v0, s[2:3] offset:128
	ds_store_b32 v0, v0
	ds_load_b32 v3, v0
	ds_load_b32 v4, v0
	s_waitcnt vmcnt(1)
	v_add_nc_u32 v1, 1, v1
	s_waitcnt lgkmcnt(1)
	v_add_nc_u32 v1, v1, v3
	global_store_b32 v0, v1, s[2:3]
	v_mov_b32 v1, 0
	s_waitcnt vmcnt(0) lgkmcnt(0)
	v_add_nc_u32 v2, v2, v4
	global_store_b32 v0, v2, s[2:3] offset:128
done clean, 128

// Each half is read when it is there; the other one is still loaded.
kernel half_clean
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_d16_b16 v1, v0, s[2:3]
	global_load_d16_hi_b16 v1, v0, s[2:3] offset:2
	s_waitcnt vmcnt(1)
	global_store_b16 v0, v1, s[2:3]
	v_add_f16 v2, v1, v1
	s_waitcnt vmcnt(0)
	global_store_d16_hi_b16 v0, v1, s[2:3] offset:2
done half_clean

kernel half_read
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_d16_b16 v1, v0, s[2:3]
	global_load_d16_hi_b16 v1, v0, s[2:3] offset:2	// ? half_read
	s_waitcnt vmcnt(1)
	global_store_d16_hi_b16 v0, v1, s[2:3] offset:2	// ! half_read
	s_waitcnt vmcnt(0)
done half_read

kernel half_written
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32 v0, 2, v0
	s_waitcnt lgkmcnt(0)
	global_load_d16_hi_b16 v1, v0, s[2:3]		// ? half_written
	v_mov_b32 v1, 0					// ! half_written
	s_waitcnt vmcnt(0)
	global_store_b32 v0, v1, s[2:3]
done half_written
