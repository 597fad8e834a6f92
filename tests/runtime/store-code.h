/* store-code - a kernel by hand, for tests that need no compiler. */
#ifndef T0_TESTS_STORE_CODE_H
#define T0_TESTS_STORE_CODE_H

#include <stdint.h>

/* out[i] = add + i for each work-item i, workgroups of 32. */
static const uint32_t store_code[] = {
	0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], 0x0 */
	0xf4000180, 0xf8000008, /* s_load_b32 s6, s[0:1], 0x8 */
	0x360000ff, 0x000003ff, /* v_and_b32 v0, 0x3ff, v0 */
	0xd6460001, 0x04010a02, /* v_lshl_add_u32 v1, s2, 5, v0 */
	0x30040282,		/* v_lshlrev_b32 v2, 2, v1 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0x4a060206,		/* v_add_nc_u32 v3, s6, v1 */
	0xdc6a0000, 0x00040302, /* global_store_b32 v2, v3, s[4:5] */
	0xbfb00000,		/* s_endpgm */
};

#endif
