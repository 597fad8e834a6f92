; The kernels of tests/soft/lost-memory.c; s[0:1] = kernel arguments, whose
; first is the address.

load:
	s_load_b64 s[2:3], s[0:1], null
	v_mov_b32 v0, 0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v1, v0, s[2:3]
	s_waitcnt vmcnt(0)
	s_endpgm

store:
	s_load_b64 s[2:3], s[0:1], null
	v_mov_b32 v0, 0
	s_waitcnt lgkmcnt(0)
	global_store_b32 v0, v0, s[2:3]
	s_endpgm

atomic:
	s_load_b64 s[2:3], s[0:1], null
	v_mov_b32 v0, 0
	v_mov_b32 v1, 1
	s_waitcnt lgkmcnt(0)
	global_atomic_add_u32 v0, v1, s[2:3]
	s_endpgm

scalar:
	s_load_b64 s[2:3], s[0:1], null
	s_waitcnt lgkmcnt(0)
	s_load_b32 s4, s[2:3], null
	s_waitcnt lgkmcnt(0)
	s_endpgm

; Stores until it is stopped.
busy:
	s_load_b64 s[2:3], s[0:1], null
	v_mov_b32 v0, 0
	s_waitcnt lgkmcnt(0)
.Lagain:
	global_store_b32 v0, v0, s[2:3]
	s_branch .Lagain
