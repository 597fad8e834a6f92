; The kernel of tests/soft/sensors.c.

busy:
	s_mov_b32 s0, 3000000
.Lloop:
	s_sub_u32 s0, s0, 1
	s_cmp_lg_u32 s0, 0
	s_cbranch_scc1 .Lloop
	s_endpgm
