; The kernel of tests/soft/pm4.c.

; out[id] = id for ids of 32-wide workgroups; s[0:1] = out, s2 = group.
store_ids:
	v_and_b32 v0, 0x3ff, v0
	s_lshl_b32 s3, s2, 5
	v_add_nc_u32 v2, s3, v0
	v_lshlrev_b32 v1, 2, v2
	global_store_b32 v1, v2, s[0:1]
	s_endpgm
