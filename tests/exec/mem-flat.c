/*
 * Scalar loads and FLAT, GLOBAL and SCRATCH instructions, with results worked
 * out by hand from RDNA3 ISA 8, 10, 11 and 16.16.  Atomics of buffers too.
 */
#include <pthread.h>

#include "tests/exec/wave.h"
#include "tests/tap.h"

/*
 * Each lane works at BENCH_DATA + 64 + 8 * lane: through s[2:3] and v0 by
 * GLOBAL, v[0:1] by FLAT, the buffer in s[8:11] and v0.  Operand a is in v2
 * on, b behind it, the result in v[6:7], of buffers in v[2:3].
 */
static const struct atomic {
	const char *text;
	int bytes;
	uint64_t mem, a, b, want;
	const char
		*code[6]; /* global, flat, buffer; each without and with glc */
} atomics[] = {
	/* clang-format off */
	{ "add_u32", 4, 0xffffffff, 2, 0, 1,
	  { "global_atomic_add_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_add_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_add_u32 v[0:1], v2 offset:16",
	    "flat_atomic_add_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_add_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_add_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "add_u64", 8, 0xffffffffffffffff, 2, 0, 1,
	  { "global_atomic_add_u64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_add_u64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_add_u64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_add_u64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_add_u64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_add_u64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "sub_u32", 4, 1, 2, 0, 0xffffffff,
	  { "global_atomic_sub_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_sub_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_sub_u32 v[0:1], v2 offset:16",
	    "flat_atomic_sub_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_sub_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_sub_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "sub_u64", 8, 0x100000000, 1, 0, 0xffffffff,
	  { "global_atomic_sub_u64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_sub_u64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_sub_u64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_sub_u64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_sub_u64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_sub_u64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "inc_u32", 4, 7, 7, 0, 0,
	  { "global_atomic_inc_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_inc_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_inc_u32 v[0:1], v2 offset:16",
	    "flat_atomic_inc_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_inc_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_inc_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "inc_u32", 4, 6, 7, 0, 7,
	  { "global_atomic_inc_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_inc_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_inc_u32 v[0:1], v2 offset:16",
	    "flat_atomic_inc_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_inc_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_inc_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "inc_u64", 8, 0xffffffff, 0x100000000, 0, 0x100000000,
	  { "global_atomic_inc_u64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_inc_u64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_inc_u64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_inc_u64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_inc_u64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_inc_u64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "dec_u32", 4, 0, 7, 0, 7,
	  { "global_atomic_dec_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_dec_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_dec_u32 v[0:1], v2 offset:16",
	    "flat_atomic_dec_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_dec_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_dec_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "dec_u32", 4, 9, 7, 0, 7,
	  { "global_atomic_dec_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_dec_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_dec_u32 v[0:1], v2 offset:16",
	    "flat_atomic_dec_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_dec_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_dec_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "dec_u32", 4, 5, 7, 0, 4,
	  { "global_atomic_dec_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_dec_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_dec_u32 v[0:1], v2 offset:16",
	    "flat_atomic_dec_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_dec_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_dec_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "dec_u64", 8, 0x100000000, 0x100000001, 0, 0xffffffff,
	  { "global_atomic_dec_u64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_dec_u64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_dec_u64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_dec_u64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_dec_u64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_dec_u64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "min_i32", 4, 1, 0xffffffff, 0, 0xffffffff,
	  { "global_atomic_min_i32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_min_i32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_min_i32 v[0:1], v2 offset:16",
	    "flat_atomic_min_i32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_min_i32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_min_i32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "min_i64", 8, 1, 0xffffffffffffffff, 0, 0xffffffffffffffff,
	  { "global_atomic_min_i64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_min_i64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_min_i64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_min_i64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_min_i64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_min_i64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "max_i32", 4, 1, 0xffffffff, 0, 1,
	  { "global_atomic_max_i32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_max_i32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_max_i32 v[0:1], v2 offset:16",
	    "flat_atomic_max_i32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_max_i32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_max_i32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "max_i64", 8, 1, 0x8000000000000000, 0, 1,
	  { "global_atomic_max_i64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_max_i64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_max_i64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_max_i64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_max_i64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_max_i64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "min_u32", 4, 1, 0xffffffff, 0, 1,
	  { "global_atomic_min_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_min_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_min_u32 v[0:1], v2 offset:16",
	    "flat_atomic_min_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_min_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_min_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "min_u64", 8, 0x100000000, 0xffffffff, 0, 0xffffffff,
	  { "global_atomic_min_u64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_min_u64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_min_u64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_min_u64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_min_u64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_min_u64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "max_u32", 4, 1, 0xffffffff, 0, 0xffffffff,
	  { "global_atomic_max_u32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_max_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_max_u32 v[0:1], v2 offset:16",
	    "flat_atomic_max_u32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_max_u32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_max_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "max_u64", 8, 0x100000000, 0xffffffff, 0, 0x100000000,
	  { "global_atomic_max_u64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_max_u64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_max_u64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_max_u64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_max_u64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_max_u64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "and_b32", 4, 0xff00, 0xff0, 0, 0xf00,
	  { "global_atomic_and_b32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_and_b32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_and_b32 v[0:1], v2 offset:16",
	    "flat_atomic_and_b32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_and_b32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_and_b32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "and_b64", 8, 0xff00000000000001, 0xf00000000000003,
	  0, 0xf00000000000001,
	  { "global_atomic_and_b64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_and_b64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_and_b64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_and_b64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_and_b64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_and_b64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "or_b32", 4, 0xff00, 0xff0, 0, 0xfff0,
	  { "global_atomic_or_b32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_or_b32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_or_b32 v[0:1], v2 offset:16",
	    "flat_atomic_or_b32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_or_b32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_or_b32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "or_b64", 8, 0x8000000000000000, 1, 0, 0x8000000000000001,
	  { "global_atomic_or_b64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_or_b64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_or_b64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_or_b64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_or_b64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_or_b64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "xor_b32", 4, 0xff00, 0xff0, 0, 0xf0f0,
	  { "global_atomic_xor_b32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_xor_b32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_xor_b32 v[0:1], v2 offset:16",
	    "flat_atomic_xor_b32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_xor_b32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_xor_b32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "xor_b64", 8, 0xff00000000000000, 0xf000000000000001,
	  0, 0xf00000000000001,
	  { "global_atomic_xor_b64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_xor_b64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_xor_b64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_xor_b64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_xor_b64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_xor_b64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "min_f32", 4, 0x3f800000, 0xbf800000, 0, 0xbf800000,
	  { "global_atomic_min_f32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_min_f32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_min_f32 v[0:1], v2 offset:16",
	    "flat_atomic_min_f32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_min_f32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_min_f32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "min_f32", 4, 0x3f800000, 0x7fc00000, 0, 0x3f800000,
	  { "global_atomic_min_f32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_min_f32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_min_f32 v[0:1], v2 offset:16",
	    "flat_atomic_min_f32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_min_f32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_min_f32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "max_f32", 4, 0x3f800000, 0x40000000, 0, 0x40000000,
	  { "global_atomic_max_f32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_max_f32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_max_f32 v[0:1], v2 offset:16",
	    "flat_atomic_max_f32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_max_f32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_max_f32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "add_f32", 4, 0x3fc00000, 0x40100000, 0, 0x40700000,
	  { "global_atomic_add_f32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_add_f32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_add_f32 v[0:1], v2 offset:16",
	    "flat_atomic_add_f32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_add_f32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_add_f32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "swap_b32", 4, 1, 2, 0, 2,
	  { "global_atomic_swap_b32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_swap_b32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_swap_b32 v[0:1], v2 offset:16",
	    "flat_atomic_swap_b32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_swap_b32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_swap_b32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "swap_b64", 8, 0x100000001, 0x200000002, 0, 0x200000002,
	  { "global_atomic_swap_b64 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_swap_b64 v[6:7], v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_swap_b64 v[0:1], v[2:3] offset:16",
	    "flat_atomic_swap_b64 v[6:7], v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_swap_b64 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_swap_b64 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "cmpswap_b32", 4, 5, 9, 5, 9,
	  { "global_atomic_cmpswap_b32 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_cmpswap_b32 v6, v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_cmpswap_b32 v[0:1], v[2:3] offset:16",
	    "flat_atomic_cmpswap_b32 v6, v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_cmpswap_b32 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_cmpswap_b32 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "cmpswap_b32", 4, 5, 9, 6, 5,
	  { "global_atomic_cmpswap_b32 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_cmpswap_b32 v6, v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_cmpswap_b32 v[0:1], v[2:3] offset:16",
	    "flat_atomic_cmpswap_b32 v6, v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_cmpswap_b32 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_cmpswap_b32 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "cmpswap_b64", 8, 0x500000005, 9, 0x500000005, 9,
	  { "global_atomic_cmpswap_b64 v0, v[2:5], s[2:3] offset:-16",
	    "global_atomic_cmpswap_b64 v[6:7], v0, v[2:5], s[2:3] offset:-16 glc",
	    "flat_atomic_cmpswap_b64 v[0:1], v[2:5] offset:16",
	    "flat_atomic_cmpswap_b64 v[6:7], v[0:1], v[2:5] offset:16 glc",
	    "buffer_atomic_cmpswap_b64 v[2:5], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_cmpswap_b64 v[2:5], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "cmpswap_b64", 8, 0x500000005, 9, 5, 0x500000005,
	  { "global_atomic_cmpswap_b64 v0, v[2:5], s[2:3] offset:-16",
	    "global_atomic_cmpswap_b64 v[6:7], v0, v[2:5], s[2:3] offset:-16 glc",
	    "flat_atomic_cmpswap_b64 v[0:1], v[2:5] offset:16",
	    "flat_atomic_cmpswap_b64 v[6:7], v[0:1], v[2:5] offset:16 glc",
	    "buffer_atomic_cmpswap_b64 v[2:5], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_cmpswap_b64 v[2:5], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "cmpswap_f32", 4, 0x80000000, 0x3f800000, 0, 0x3f800000,
	  { "global_atomic_cmpswap_f32 v0, v[2:3], s[2:3] offset:-16",
	    "global_atomic_cmpswap_f32 v6, v0, v[2:3], s[2:3] offset:-16 glc",
	    "flat_atomic_cmpswap_f32 v[0:1], v[2:3] offset:16",
	    "flat_atomic_cmpswap_f32 v6, v[0:1], v[2:3] offset:16 glc",
	    "buffer_atomic_cmpswap_f32 v[2:3], v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_cmpswap_f32 v[2:3], v0, s[8:11], 0 offen offset:16 glc" } },
	{ "add_f32", 4, 1, 1, 0, 0,
	  { "global_atomic_add_f32 v0, v2, s[2:3] offset:-16",
	    "global_atomic_add_f32 v6, v0, v2, s[2:3] offset:-16 glc",
	    "flat_atomic_add_f32 v[0:1], v2 offset:16",
	    "flat_atomic_add_f32 v6, v[0:1], v2 offset:16 glc",
	    "buffer_atomic_add_f32 v2, v0, s[8:11], 0 offen offset:16",
	    "buffer_atomic_add_f32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "csub_u32", 4, 5, 9, 0, 0,
	  { NULL,
	    "global_atomic_csub_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    NULL,
	    NULL,
	    NULL,
	    "buffer_atomic_csub_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	{ "csub_u32", 4, 9, 5, 0, 4,
	  { NULL,
	    "global_atomic_csub_u32 v6, v0, v2, s[2:3] offset:-16 glc",
	    NULL,
	    NULL,
	    NULL,
	    "buffer_atomic_csub_u32 v2, v0, s[8:11], 0 offen offset:16 glc" } },
	/* clang-format on */
};

static void put64(uint32_t (*v)[SOFT_LANES], int reg, int lane, uint64_t x)
{
	v[reg][lane] = (uint32_t)x;
	v[reg + 1][lane] = (uint32_t)(x >> 32);
}

static uint64_t get64(uint32_t (*v)[SOFT_LANES], int reg, int lane)
{
	return v[reg][lane] | (uint64_t)v[reg + 1][lane] << 32;
}

static void put_s64(struct soft_wave *w, int reg, uint64_t x)
{
	w->s[reg] = (uint32_t)x;
	w->s[reg + 1] = (uint32_t)(x >> 32);
}

/* A raw buffer over the data page. */
static void put_buffer(struct soft_wave *w, int reg)
{
	put_s64(w, reg, BENCH_DATA);
	w->s[reg + 2] = BENCH_PAGE;
	w->s[reg + 3] = 3u << 28 | 22 << 12 | 0xfac;
}

static void test_atomic(const struct atomic *t, int form)
{
	static const char *const space[] = { "global", "flat", "buffer" };
	uint64_t mask = t->bytes == 8 ? UINT64_MAX : UINT32_MAX, want_reg;
	bool flat = form / 2 == 1, buffer = form / 2 == 2, good = true;
	bool returns = form & 1;
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	char name[80];

	snprintf(name, sizeof(name), "%s_atomic_%s%s of 0x%llx, 0x%llx",
		 space[form / 2], t->text, returns ? " glc" : "",
		 (unsigned long long)t->mem, (unsigned long long)t->a);
	bench_init(&b, 32, 1);
	w->s[ISA_R_EXEC_LO] = 0x21;
	put_s64(w, 2, BENCH_DATA + 80);
	put_buffer(w, 8);
	for (int l = 0; l < 32; l++) {
		uint64_t at = 8 * (uint64_t)l;

		put64(w->v[0], 0, l,
		      flat   ? BENCH_DATA + 48 + at :
		      buffer ? 48 + at :
			       at);
		put64(w->v[0], 2, l, t->a);
		put64(w->v[0], 2 + t->bytes / 4, l, t->b);
		memcpy(&b.mem->u64[8 + l], &t->mem, (size_t)t->bytes);
	}
	bench_text(&b, t->code[form]);
	for (int l = 0; l < 7; l++)
		good = good && b.mem->u64[8 + l] ==
				       (l == 0 || l == 5 ? t->want : t->mem);
	ok(w->state == SOFT_ENDED && good, "%s, 0x%llx: memory", name,
	   (unsigned long long)t->b);
	want_reg = returns ? t->mem : buffer ? t->a : 0;
	is_u64(get64(w->v[0], buffer ? 2 : 6, 5) & mask, want_reg,
	       "%s, 0x%llx: register", name, (unsigned long long)t->b);
	bench_fini(&b);
}

static void test_scalar_loads(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	bench_fill(&b);
	put_s64(w, 2, BENCH_DATA + 64 + 3);
	w->s[4] = 33;
	bench_text(&b, "s_load_b32 s5, s[2:3], 0x10\n"
		       "s_load_b64 s[6:7], s[2:3], -0x20\n"
		       "s_load_b128 s[8:11], s[2:3], s4 offset:0x8\n"
		       "s_load_b256 s[16:23], s[2:3], null\n"
		       "s_load_b512 s[32:47], s[2:3], 0x100\n"
		       "s_load_b32 vcc_lo, s[2:3], 0x2\n"
		       "s_load_b32 null, s[2:3], null\n"
		       "s_gl1_inv\n"
		       "s_dcache_inv");
	is_u64(w->s[5], pattern(80, 4), "s_load_b32: bits 1:0 do not count");
	is_u64(w->s[7], pattern(36, 4), "s_load_b64 with a negative offset");
	is_u64(w->s[8], pattern(104, 4), "s_load_b128 with both offsets");
	is_u64(w->s[11], pattern(116, 4), "... to its fourth register");
	is_u64(w->s[23], pattern(92, 4), "s_load_b256");
	is_u64(w->s[47], pattern(64 + 256 + 60, 4), "s_load_b512");
	is_u64(w->s[ISA_R_VCC_LO], pattern(64, 4), "a load to VCC");
	is_u64(w->s[ISA_R_NULL], 0, "a load to null changes nothing");
	put_s64(w, 2, BENCH_CONST + BENCH_PAGE - 4);
	bench_text(&b, "s_load_b64 s[6:7], s[2:3], null");
	is_u64(w->fault.kind, SOFT_FAULT_MEMORY, "a load off the end faults");
	is_u64(w->fault.va, BENCH_CONST + BENCH_PAGE,
	       "... with the first address that is not there");
	is_u64((uint64_t)(int64_t)w->fault.lane, UINT64_MAX, "... no lane");
	bench_fini(&b);
}

static void test_scalar_buffers(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	bench_fill(&b);
	put_buffer(w, 8);
	w->s[10] = 24; /* bytes */
	w->s[20] = 16;
	bench_text(&b, "s_buffer_load_b32 s0, s[8:11], 0x14\n"
		       "s_buffer_load_b64 s[2:3], s[8:11], 0x14\n"
		       "s_buffer_load_b128 s[4:7], s[8:11], s20\n"
		       "s_buffer_load_b256 s[24:31], s[8:11], null\n"
		       "s_buffer_load_b512 s[32:47], s[8:11], 0x18");
	is_u64(w->s[0], pattern(20, 4), "s_buffer_load_b32, the last dword");
	is_u64(w->s[2], pattern(20, 4), "a dword inside is loaded");
	is_u64(w->s[3], 0, "... and 0 for the one outside");
	is_u64(w->s[5], pattern(20, 4), "an offset register");
	is_u64(w->s[29], pattern(20, 4), "s_buffer_load_b256");
	is_u64(w->s[30], 0, "... beyond the end");
	is_u64(w->s[32], 0, "s_buffer_load_b512 outside is all 0");
	w->s[9] |= 8u << 16; /* 24 records of 8 bytes */
	bench_text(&b, "s_buffer_load_b32 s0, s[8:11], 0xbc\n"
		       "s_buffer_load_b32 s1, s[8:11], 0xc0");
	is_u64(w->s[0], pattern(188, 4), "with a stride records are counted");
	is_u64(w->s[1], 0, "... and end at 192 bytes");
	bench_fini(&b);
}

static void test_global_loads(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	uint32_t(*v)[SOFT_LANES];

	bench_init(&b, 32, 1);
	bench_fill(&b);
	v = w->v[0];
	w->s[ISA_R_EXEC_LO] = 0x14;
	put64(v, 0, 4, BENCH_DATA + 37);
	put64(v, 0, 2, BENCH_DATA + 64);
	for (int i = 20; i < 26; i++)
		v[i][4] = 0xaaaabbbb;
	b.mem->u8[39] = 0x92;
	bench_text(&b, "global_load_b32 v2, v[0:1], off\n"
		       "global_load_b64 v[4:5], v[0:1], off offset:3\n"
		       "global_load_b96 v[6:8], v[0:1], off offset:100\n"
		       "global_load_b128 v[8:11], v[0:1], off offset:-37\n"
		       "global_load_u8 v12, v[0:1], off offset:2\n"
		       "global_load_i8 v13, v[0:1], off offset:2\n"
		       "global_load_u16 v14, v[0:1], off offset:1\n"
		       "global_load_i16 v15, v[0:1], off offset:1\n"
		       "global_load_d16_u8 v20, v[0:1], off offset:2\n"
		       "global_load_d16_i8 v21, v[0:1], off offset:2\n"
		       "global_load_d16_b16 v22, v[0:1], off\n"
		       "global_load_d16_hi_u8 v23, v[0:1], off offset:2\n"
		       "global_load_d16_hi_i8 v24, v[0:1], off offset:2\n"
		       "global_load_d16_hi_b16 v25, v[0:1], off\n"
		       "flat_load_b32 v30, v[0:1]\n"
		       "flat_load_b64 v[32:33], v[0:1] offset:3\n"
		       "flat_load_b128 v[36:39], v[0:1]\n"
		       "flat_load_u8 v40, v[0:1]\n"
		       "flat_load_i16 v41, v[0:1] offset:1");
	is_u64(v[2][4], 0x19920b04, "global_load_b32 at an odd address");
	is_u64(get64(v, 4, 4), pattern(40, 8), "global_load_b64");
	is_u64(v[7][4], pattern(141, 4), "global_load_b96");
	is_u64(v[8][4], pattern(0, 4), "global_load_b128, negative offset");
	is_u64(v[11][4], pattern(12, 4), "... to its fourth register");
	is_u64(v[12][4], 0x92, "global_load_u8");
	is_u64(v[13][4], 0xffffff92, "global_load_i8");
	is_u64(v[14][4], 0x920b, "global_load_u16");
	is_u64(v[15][4], 0xffff920b, "global_load_i16");
	is_u64(v[20][4], 0xaaaa0092, "global_load_d16_u8");
	is_u64(v[21][4], 0xaaaaff92, "global_load_d16_i8");
	is_u64(v[22][4], 0xaaaa0b04, "global_load_d16_b16");
	is_u64(v[23][4], 0x0092bbbb, "global_load_d16_hi_u8");
	is_u64(v[24][4], 0xff92bbbb, "global_load_d16_hi_i8");
	is_u64(v[25][4], 0x0b04bbbb, "global_load_d16_hi_b16");
	is_u64(v[30][4], 0x19920b04, "flat_load_b32");
	is_u64(get64(v, 32, 4), pattern(40, 8), "flat_load_b64");
	is_u64(v[39][4], pattern(49, 4), "flat_load_b128");
	is_u64(v[40][2], pattern(64, 1), "flat_load_u8 of another lane");
	is_u64(v[41][4], 0xffff920b, "flat_load_i16");
	is_u64(v[2][3], 0, "lanes that do not execute load nothing");
	bench_fini(&b);
}

static void test_global_stores(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	w->s[ISA_R_EXEC_LO] = 2;
	put_s64(w, 2, BENCH_DATA - 64);
	w->v[0][1][1] = 64;
	for (int i = 0; i < 4; i++)
		w->v[0][2 + i][1] = 0x11223344u + 0x11111111u * (unsigned)i;
	bench_text(&b, "global_store_b8 v1, v2, s[2:3]\n"
		       "global_store_b16 v1, v2, s[2:3] offset:4\n"
		       "global_store_d16_hi_b8 v1, v2, s[2:3] offset:8\n"
		       "global_store_d16_hi_b16 v1, v2, s[2:3] offset:12\n"
		       "global_store_b32 v1, v2, s[2:3] offset:17\n"
		       "global_store_b64 v1, v[2:3], s[2:3] offset:24\n"
		       "global_store_b96 v1, v[2:4], s[2:3] offset:32\n"
		       "global_store_b128 v1, v[2:5], s[2:3] offset:48\n"
		       "global_store_addtid_b32 v2, s[2:3] offset:256\n"
		       "global_load_addtid_b32 v8, s[2:3] offset:256\n"
		       "global_load_b32 v9, v1, s[2:3] offset:48");
	is_u64(b.mem->u32[0], 0x44, "global_store_b8");
	is_u64(b.mem->u32[1], 0x3344, "global_store_b16");
	is_u64(b.mem->u32[2], 0x22, "global_store_d16_hi_b8");
	is_u64(b.mem->u32[3], 0x1122, "global_store_d16_hi_b16");
	is_u64(b.mem->u64[2], UINT64_C(0x1122334400),
	       "global_store_b32 at an odd address");
	is_u64(b.mem->u32[7], 0x22334455, "global_store_b64");
	is_u64(b.mem->u32[10], 0x33445566, "global_store_b96");
	is_u64(b.mem->u32[11], 0, "... and no more");
	is_u64(b.mem->u32[15], 0x44556677, "global_store_b128");
	is_u64(b.mem->u32[49], 0x11223344, "global_store_addtid_b32: lane 1");
	is_u64(w->v[0][8][1], 0x11223344, "global_load_addtid_b32");
	is_u64(w->v[0][9][1], 0x11223344, "SADDR and VADDR are added");
	bench_fini(&b);
}

/* Each lane has BENCH_SCRATCH bytes of its own. */
static void test_scratch(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	uint32_t(*v)[SOFT_LANES];

	bench_init(&b, 64, 1);
	v = w->v[1];
	w->s[ISA_R_EXEC_LO] = 1;
	w->s[ISA_R_EXEC_HI] = 0x80000001;
	w->s[5] = 32;
	for (int h = 0; h < 2; h++)
		for (unsigned l = 0; l < 32; l++) {
			w->v[h][0][l] = 4;
			w->v[h][1][l] = (uint32_t)-8;
			w->v[h][2][l] = 0x8000u + 32 * (unsigned)h + l;
		}
	bench_text(&b, "scratch_store_b32 off, v2, off offset:8\n"
		       "scratch_store_b32 v0, v2, off offset:12\n"
		       "scratch_store_b16 off, v2, s5 offset:-8\n"
		       "scratch_store_b8 v0, v2, s5 offset:1\n"
		       "scratch_load_b64 v[4:5], v1, off offset:16\n"
		       "scratch_load_u16 v6, off, s5 offset:-8\n"
		       "scratch_load_i16 v7, off, s5 offset:-8\n"
		       "scratch_load_u8 v8, v0, s5 offset:1\n"
		       "scratch_store_b64 off, v[4:5], off offset:41\n"
		       "scratch_load_b96 v[10:12], off, off offset:37\n"
		       "scratch_store_d16_hi_b16 off, v2, off offset:60\n"
		       "scratch_load_d16_hi_b16 v0, off, off offset:8");
	is_u64(v[4][31], 0x803f, "scratch: the lane's own value, by offset");
	is_u64(v[4][0], 0x8020, "scratch: another lane has another");
	is_u64(v[6][31], 0x803f, "scratch: SADDR and a negative offset");
	is_u64(v[7][31], 0xffff803f, "scratch_load_i16");
	is_u64(v[8][31], 0x3f, "scratch: VADDR and SADDR");
	is_u64(v[11][31], 0x803f, "scratch: unaligned b64 and b96");
	is_u64(v[0][31], 0x803f0004, "scratch_load_d16_hi_b16");
	is_u64(v[4][5], 0, "scratch: lanes that do not execute");
	w->s[ISA_R_EXEC_HI] = 2;
	w->s[ISA_R_EXEC_LO] = 0;
	bench_text(&b, "scratch_load_b32 v4, off, off offset:1021");
	is_u64(w->fault.kind, SOFT_FAULT_APERTURE, "scratch ends");
	is_u64((uint64_t)w->fault.lane, 33, "... the lane is named");
	is_u64(w->fault.va, 1021, "... and the offset");
	bench_fini(&b);
}

static void test_apertures(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	uint32_t(*v)[SOFT_LANES];

	bench_init(&b, 32, 1);
	v = w->v[0];
	w->s[ISA_R_EXEC_LO] = 3;
	put64(v, 0, 0, BENCH_LDS_VA + 0x100);
	put64(v, 0, 1, BENCH_SCRATCH_VA + 8);
	v[2][0] = v[2][1] = 77;
	v[3][0] = v[3][1] = 5;
	bench_text(&b, "flat_store_b32 v[0:1], v2 offset:4\n"
		       "flat_atomic_add_u32 v4, v[0:1], v3 offset:4 glc\n"
		       "flat_load_b32 v5, v[0:1] offset:4");
	is_u64(b.group.lds[0x104], 82, "FLAT reaches LDS");
	is_u64(w->scratch[BENCH_SCRATCH + 12], 82, "FLAT reaches scratch");
	is_u64(v[4][0], 77, "FLAT atomic in LDS");
	is_u64(v[5][1], 82, "FLAT load from scratch");
	put64(v, 0, 0, BENCH_LDS_VA + BENCH_LDS - 2);
	bench_text(&b, "flat_load_b32 v5, v[0:1]");
	is_u64(w->fault.kind, SOFT_FAULT_APERTURE, "FLAT beyond LDS faults");
	has_str(w->fault.text, "LDS, which has 65536 bytes", "... says so");
	bench_fini(&b);
}

static void test_faults(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	w->s[ISA_R_EXEC_LO] = 0x30;
	put64(w->v[0], 0, 4, BENCH_DATA);
	put64(w->v[0], 0, 5, 0x1000);
	bench_text(&b, "s_nop 0\n"
		       "global_load_b32 v2, v[0:1], off");
	is_u64(w->fault.kind, SOFT_FAULT_MEMORY,
	       "an address that is not there");
	is_u64(w->fault.va, 0x1000, "... is named");
	is_u64((uint64_t)w->fault.lane, 5, "... with its lane");
	is_u64(w->fault.pc, BENCH_CODE + 4, "... and its instruction");
	is_u64((uint64_t)w->fault.code_bytes, 8, "... of 8 bytes");
	ok(!w->fault.write, "... a read");
	put64(w->v[0], 0, 5, BENCH_CONST);
	bench_text(&b, "global_store_b32 v[0:1], v2, off");
	has_str(w->fault.text, "read only", "a store to read-only memory");
	ok(w->fault.write, "... is a write");
	put64(w->v[0], 0, 5, BENCH_DATA + 2);
	bench_text(&b, "global_atomic_add_u32 v[0:1], v2, off");
	is_u64(w->fault.kind, SOFT_FAULT_ALIGN, "atomics have to be aligned");
	/* Two mappings side by side: half of the dword in each. */
	put64(w->v[0], 0, 5, BENCH_CONST - 2);
	memcpy(b.mem->u8 + BENCH_PAGE - 2, "\x11\x22\x33\x44", 4);
	bench_text(&b, "global_load_b32 v2, v[0:1], off");
	is_u64(w->v[0][2][5], 0x44332211, "a load across two mappings");
	put64(w->v[0], 0, 5, UINT64_MAX - 1);
	bench_text(&b, "global_load_b128 v[2:5], v[0:1], off");
	is_u64(w->fault.kind, SOFT_FAULT_MEMORY, "the end of address space");
	bench_fini(&b);
}

/* ------------------------------------------------- several host threads ----
 */

#define ADDS 20000

struct racer {
	struct bench own;
	pthread_t thread;
};

/* v2 = 1: ADDS times 32 lanes add 1 to one address. */
static void *race(void *arg)
{
	struct racer *r = arg;
	struct soft_wave *w = &r->own.wave[0];

	w->s[4] = ADDS;
	put_s64(w, 2, BENCH_DATA);
	for (int l = 0; l < 32; l++)
		w->v[0][2][l] = 1;
	BENCH_RUN(&r->own,
		  /* global_atomic_add_u32 v0, v2, s[2:3] */
		  0xdcd60000, 0x00020200,
		  /* s_sub_u32 s4, s4, 1 */
		  0x80848104,
		  /* s_cmp_lg_u32 s4, 0 */
		  0xbf078004,
		  /* s_cbranch_scc1 -5 */
		  0xbfa2fffb);
	return NULL;
}

static void test_threads(void)
{
	static struct racer r[3];
	struct bench b;

	bench_init(&b, 32, 1);
	for (int i = 0; i < 3; i++) {
		bench_init(&r[i].own, 32, 1);
		free(r[i].own.mem);
		r[i].own.mem = b.mem;
		pthread_create(&r[i].thread, NULL, race, &r[i]);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(r[i].thread, NULL);
	is_u64(b.mem->u32[0], 3u * 32 * ADDS,
	       "atomics of waves on three host threads lose nothing");
	for (int i = 0; i < 3; i++) {
		r[i].own.mem = NULL;
		bench_fini(&r[i].own);
	}
	bench_fini(&b);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(atomics); i++)
		for (int form = 0; form < 6; form++)
			if (atomics[i].code[form])
				test_atomic(&atomics[i], form);
	test_scalar_loads();
	test_scalar_buffers();
	test_global_loads();
	test_global_stores();
	test_scratch();
	test_apertures();
	test_faults();
	test_threads();
	return plan_done();
}
