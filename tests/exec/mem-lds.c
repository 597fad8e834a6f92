/*
 * LDS instructions: every mnemonic, with results worked out by hand from RDNA3
 * ISA 12 and 16.15.
 */
#include "tests/exec/wave.h"
#include "tests/tap.h"

/*
 * v0 = 8 * lane, operands a in v[2:3] and b in v[4:5], result in v[6:7]; the
 * address is 16 behind v0.  Lanes 0 and 5 execute.
 */
static const struct atomic {
	const char *text;
	int bytes;
	uint64_t mem, a, b, want;
	const char *code[2]; /* without and with return */
} atomics[] = {
	/* clang-format off */
	{ "ds_add_u32", 4, 0xffffffff, 2, 0, 1,
	  { "ds_add_u32 v0, v2 offset:16",
	    "ds_add_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_add_u64", 8, 0xffffffffffffffff, 2, 0, 1,
	  { "ds_add_u64 v0, v[2:3] offset:16",
	    "ds_add_rtn_u64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_sub_u32", 4, 1, 2, 0, 0xffffffff,
	  { "ds_sub_u32 v0, v2 offset:16",
	    "ds_sub_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_sub_u64", 8, 0x100000000, 1, 0, 0xffffffff,
	  { "ds_sub_u64 v0, v[2:3] offset:16",
	    "ds_sub_rtn_u64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_rsub_u32", 4, 1, 5, 0, 4,
	  { "ds_rsub_u32 v0, v2 offset:16",
	    "ds_rsub_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_rsub_u64", 8, 1, 0x100000000, 0, 0xffffffff,
	  { "ds_rsub_u64 v0, v[2:3] offset:16",
	    "ds_rsub_rtn_u64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_inc_u32", 4, 7, 7, 0, 0,
	  { "ds_inc_u32 v0, v2 offset:16",
	    "ds_inc_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_inc_u32", 4, 6, 7, 0, 7,
	  { "ds_inc_u32 v0, v2 offset:16",
	    "ds_inc_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_inc_u64", 8, 0xffffffff, 0x100000000, 0, 0x100000000,
	  { "ds_inc_u64 v0, v[2:3] offset:16",
	    "ds_inc_rtn_u64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_dec_u32", 4, 0, 7, 0, 7,
	  { "ds_dec_u32 v0, v2 offset:16",
	    "ds_dec_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_dec_u32", 4, 9, 7, 0, 7,
	  { "ds_dec_u32 v0, v2 offset:16",
	    "ds_dec_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_dec_u32", 4, 5, 7, 0, 4,
	  { "ds_dec_u32 v0, v2 offset:16",
	    "ds_dec_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_dec_u64", 8, 0x100000000, 0x100000001, 0, 0xffffffff,
	  { "ds_dec_u64 v0, v[2:3] offset:16",
	    "ds_dec_rtn_u64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_min_i32", 4, 1, 0xffffffff, 0, 0xffffffff,
	  { "ds_min_i32 v0, v2 offset:16",
	    "ds_min_rtn_i32 v6, v0, v2 offset:16" } },
	{ "ds_min_i64", 8, 1, 0xffffffffffffffff, 0, 0xffffffffffffffff,
	  { "ds_min_i64 v0, v[2:3] offset:16",
	    "ds_min_rtn_i64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_max_i32", 4, 1, 0xffffffff, 0, 1,
	  { "ds_max_i32 v0, v2 offset:16",
	    "ds_max_rtn_i32 v6, v0, v2 offset:16" } },
	{ "ds_max_i64", 8, 1, 0x8000000000000000, 0, 1,
	  { "ds_max_i64 v0, v[2:3] offset:16",
	    "ds_max_rtn_i64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_min_u32", 4, 1, 0xffffffff, 0, 1,
	  { "ds_min_u32 v0, v2 offset:16",
	    "ds_min_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_min_u64", 8, 0x100000000, 0xffffffff, 0, 0xffffffff,
	  { "ds_min_u64 v0, v[2:3] offset:16",
	    "ds_min_rtn_u64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_max_u32", 4, 1, 0xffffffff, 0, 0xffffffff,
	  { "ds_max_u32 v0, v2 offset:16",
	    "ds_max_rtn_u32 v6, v0, v2 offset:16" } },
	{ "ds_max_u64", 8, 0x100000000, 0xffffffff, 0, 0x100000000,
	  { "ds_max_u64 v0, v[2:3] offset:16",
	    "ds_max_rtn_u64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_and_b32", 4, 0xff00, 0xff0, 0, 0xf00,
	  { "ds_and_b32 v0, v2 offset:16",
	    "ds_and_rtn_b32 v6, v0, v2 offset:16" } },
	{ "ds_and_b64", 8, 0xff00000000000001, 0xf00000000000003,
	  0, 0xf00000000000001,
	  { "ds_and_b64 v0, v[2:3] offset:16",
	    "ds_and_rtn_b64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_or_b32", 4, 0xff00, 0xff0, 0, 0xfff0,
	  { "ds_or_b32 v0, v2 offset:16",
	    "ds_or_rtn_b32 v6, v0, v2 offset:16" } },
	{ "ds_or_b64", 8, 0x8000000000000000, 1, 0, 0x8000000000000001,
	  { "ds_or_b64 v0, v[2:3] offset:16",
	    "ds_or_rtn_b64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_xor_b32", 4, 0xff00, 0xff0, 0, 0xf0f0,
	  { "ds_xor_b32 v0, v2 offset:16",
	    "ds_xor_rtn_b32 v6, v0, v2 offset:16" } },
	{ "ds_xor_b64", 8, 0xff00000000000000, 0xf000000000000001,
	  0, 0xf00000000000001,
	  { "ds_xor_b64 v0, v[2:3] offset:16",
	    "ds_xor_rtn_b64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_mskor_b32", 4, 0x12345678, 0xff00, 0xab00, 0x1234ab78,
	  { "ds_mskor_b32 v0, v2, v4 offset:16",
	    "ds_mskor_rtn_b32 v6, v0, v2, v4 offset:16" } },
	{ "ds_mskor_b64", 8, 0x1111111111111111, 0xff00000000000000,
	  0x2200000000000000, 0x2211111111111111,
	  { "ds_mskor_b64 v0, v[2:3], v[4:5] offset:16",
	    "ds_mskor_rtn_b64 v[6:7], v0, v[2:3], v[4:5] offset:16" } },
	{ "ds_cmpstore_b32", 4, 5, 9, 5, 9,
	  { "ds_cmpstore_b32 v0, v2, v4 offset:16",
	    "ds_cmpstore_rtn_b32 v6, v0, v2, v4 offset:16" } },
	{ "ds_cmpstore_b32", 4, 5, 9, 6, 5,
	  { "ds_cmpstore_b32 v0, v2, v4 offset:16",
	    "ds_cmpstore_rtn_b32 v6, v0, v2, v4 offset:16" } },
	{ "ds_cmpstore_b64", 8, 0x500000005, 9, 0x500000005, 9,
	  { "ds_cmpstore_b64 v0, v[2:3], v[4:5] offset:16",
	    "ds_cmpstore_rtn_b64 v[6:7], v0, v[2:3], v[4:5] offset:16" } },
	{ "ds_cmpstore_f32", 4, 0x80000000, 0x3f800000, 0, 0x3f800000,
	  { "ds_cmpstore_f32 v0, v2, v4 offset:16",
	    "ds_cmpstore_rtn_f32 v6, v0, v2, v4 offset:16" } },
	{ "ds_cmpstore_f64", 8, 0x8000000000000000, 0x3ff0000000000000,
	  0, 0x3ff0000000000000,
	  { "ds_cmpstore_f64 v0, v[2:3], v[4:5] offset:16",
	    "ds_cmpstore_rtn_f64 v[6:7], v0, v[2:3], v[4:5] offset:16" } },
	{ "ds_min_f32", 4, 0x3f800000, 0xbf800000, 0, 0xbf800000,
	  { "ds_min_f32 v0, v2 offset:16",
	    "ds_min_rtn_f32 v6, v0, v2 offset:16" } },
	{ "ds_min_f32", 4, 0x3f800000, 0x7fc00000, 0, 0x3f800000,
	  { "ds_min_f32 v0, v2 offset:16",
	    "ds_min_rtn_f32 v6, v0, v2 offset:16" } },
	{ "ds_max_f32", 4, 0x3f800000, 0x40000000, 0, 0x40000000,
	  { "ds_max_f32 v0, v2 offset:16",
	    "ds_max_rtn_f32 v6, v0, v2 offset:16" } },
	{ "ds_min_f64", 8, 0x3ff0000000000000, 0xbff0000000000000,
	  0, 0xbff0000000000000,
	  { "ds_min_f64 v0, v[2:3] offset:16",
	    "ds_min_rtn_f64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_max_f64", 8, 0x3ff0000000000000, 0xbff0000000000000,
	  0, 0x3ff0000000000000,
	  { "ds_max_f64 v0, v[2:3] offset:16",
	    "ds_max_rtn_f64 v[6:7], v0, v[2:3] offset:16" } },
	{ "ds_add_f32", 4, 0x3fc00000, 0x40100000, 0, 0x40700000,
	  { "ds_add_f32 v0, v2 offset:16",
	    "ds_add_rtn_f32 v6, v0, v2 offset:16" } },
	{ "ds_wrap_b32", 4, 0xa, 7, 5, 3,
	  { NULL,
	    "ds_wrap_rtn_b32 v6, v0, v2, v4 offset:16" } },
	{ "ds_wrap_b32", 4, 3, 7, 5, 8,
	  { NULL,
	    "ds_wrap_rtn_b32 v6, v0, v2, v4 offset:16" } },
	{ "ds_storexchg_b32", 4, 1, 2, 0, 2,
	  { NULL,
	    "ds_storexchg_rtn_b32 v6, v0, v2 offset:16" } },
	{ "ds_storexchg_b64", 8, 0x100000001, 0x200000002, 0, 0x200000002,
	  { NULL,
	    "ds_storexchg_rtn_b64 v[6:7], v0, v[2:3] offset:16" } },
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

static uint32_t lds32(const struct bench *b, unsigned at)
{
	uint32_t v;

	memcpy(&v, b->group.lds + at, 4);
	return v;
}

static void lds_fill(struct bench *b)
{
	pattern_put(b->group.lds, 4096);
}

static void test_atomic(const struct atomic *t, bool returns)
{
	uint64_t mask = t->bytes == 8 ? UINT64_MAX : UINT32_MAX, got;
	uint64_t old[3];
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	w->s[ISA_R_EXEC_LO] = 0x21;
	for (int l = 0; l < 32; l++) {
		w->v[0][0][l] = 8 * (uint32_t)l;
		put64(w->v[0], 2, l, t->a);
		put64(w->v[0], 4, l, t->b);
		memcpy(b.group.lds + 16 + 8 * l, &t->mem, (size_t)t->bytes);
	}
	bench_text(&b, t->code[returns]);
	for (int i = 0; i < 3; i++) {
		got = 0;
		memcpy(&got, b.group.lds + 16 + 8 * (unsigned[]){ 0, 5, 1 }[i],
		       (size_t)t->bytes);
		old[i] = got;
	}
	ok(w->state == SOFT_ENDED && old[0] == t->want && old[1] == t->want &&
		   old[2] == t->mem,
	   "%s of 0x%llx and 0x%llx, %s return: lanes 0 and 5 modify", t->text,
	   (unsigned long long)t->mem, (unsigned long long)t->a,
	   returns ? "with" : "without");
	is_u64(get64(w->v[0], 6, 5) & mask, returns ? t->mem : 0,
	       "%s of 0x%llx and 0x%llx: %s", t->text,
	       (unsigned long long)t->mem, (unsigned long long)t->a,
	       returns ? "returns" : "does not return");
	bench_fini(&b);
}

/* Wide and narrow loads from odd addresses. */
static void test_loads(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	uint32_t(*v)[SOFT_LANES];

	bench_init(&b, 32, 1);
	v = w->v[0];
	lds_fill(&b);
	w->s[ISA_R_EXEC_LO] = 8;
	v[0][3] = 37;
	v[20][3] = v[21][3] = v[22][3] = 0xaaaabbbb;
	v[23][3] = v[24][3] = v[25][3] = 0xaaaabbbb;
	bench_text(&b, "ds_load_b32 v1, v0\n"
		       "ds_load_b64 v[2:3], v0 offset:3\n"
		       "ds_load_b96 v[4:6], v0 offset:100\n"
		       "ds_load_b128 v[8:11], v0\n"
		       "ds_load_u8 v12, v0 offset:2\n"
		       "ds_load_i8 v13, v0 offset:2\n"
		       "ds_load_u16 v14, v0 offset:4\n"
		       "ds_load_i16 v15, v0 offset:300\n"
		       "ds_load_u8_d16 v20, v0 offset:2\n"
		       "ds_load_i8_d16 v21, v0 offset:2\n"
		       "ds_load_u16_d16 v22, v0\n"
		       "ds_load_u8_d16_hi v23, v0 offset:2\n"
		       "ds_load_i8_d16_hi v24, v0 offset:2\n"
		       "ds_load_u16_d16_hi v25, v0");
	is_u64(v[1][3], pattern(37, 4), "ds_load_b32 at an odd address");
	is_u64(get64(v, 2, 3), pattern(40, 8), "ds_load_b64 at an offset");
	is_u64(v[6][3], pattern(145, 4), "ds_load_b96, last dword");
	is_u64(v[8][3], pattern(37, 4), "ds_load_b128, first dword");
	is_u64(v[11][3], pattern(49, 4), "ds_load_b128, last dword");
	/* 39 * 7 + 1 = 274 = 0x12; */
	is_u64(v[12][3], 0x12, "ds_load_u8");
	is_u64(v[13][3], 0x12, "ds_load_i8 of a positive byte");
	is_u64(v[14][3], pattern(41, 2), "ds_load_u16");
	/* 337 * 7 + 1 = 2360 = 0x38, 338 * 7 + 1 = 0x3f. */
	is_u64(v[15][3], 0x3f38, "ds_load_i16");
	is_u64(v[20][3], 0xaaaa0012, "ds_load_u8_d16 keeps the high half");
	is_u64(v[21][3], 0xaaaa0012, "ds_load_i8_d16");
	/* 37 * 7 + 1 = 260 = 0x04, 38 * 7 + 1 = 0x0b. */
	is_u64(v[22][3], 0xaaaa0b04, "ds_load_u16_d16");
	is_u64(v[23][3], 0x0012bbbb, "ds_load_u8_d16_hi keeps the low half");
	is_u64(v[24][3], 0x0012bbbb, "ds_load_i8_d16_hi");
	is_u64(v[25][3], 0x0b04bbbb, "ds_load_u16_d16_hi");
	is_u64(v[1][2], 0, "lanes that do not execute load nothing");
	b.group.lds[39] = 0x80;
	bench_text(&b, "ds_load_i8 v13, v0 offset:2\n"
		       "ds_load_i16 v15, v0 offset:1\n"
		       "ds_load_i8_d16 v21, v0 offset:2\n"
		       "ds_load_u8 v12, v0 offset:2");
	is_u64(v[13][3], 0xffffff80, "ds_load_i8 extends the sign");
	is_u64(v[15][3], 0xffff800b, "ds_load_i16 extends the sign");
	is_u64(v[21][3], 0xaaaaff80, "ds_load_i8_d16 extends to 16 bits");
	is_u64(v[12][3], 0x80, "ds_load_u8 does not");
	bench_fini(&b);
}

static void test_stores(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_init(&b, 32, 1);
	w->s[ISA_R_EXEC_LO] = 2;
	for (int i = 0; i < 4; i++)
		w->v[0][2 + i][1] = 0x11223344u + 0x11111111u * (unsigned)i;
	bench_text(&b, "ds_store_b8 v0, v2\n"
		       "ds_store_b16 v0, v2 offset:4\n"
		       "ds_store_b8_d16_hi v0, v2 offset:8\n"
		       "ds_store_b16_d16_hi v0, v2 offset:12\n"
		       "ds_store_b32 v0, v2 offset:17\n"
		       "ds_store_b64 v0, v[2:3] offset:24\n"
		       "ds_store_b96 v0, v[2:4] offset:32\n"
		       "ds_store_b128 v0, v[2:5] offset:48");
	is_u64(lds32(&b, 0), 0x44, "ds_store_b8");
	is_u64(lds32(&b, 4), 0x3344, "ds_store_b16");
	is_u64(lds32(&b, 8), 0x22, "ds_store_b8_d16_hi");
	is_u64(lds32(&b, 12), 0x1122, "ds_store_b16_d16_hi");
	is_u64(lds32(&b, 17), 0x11223344, "ds_store_b32 at an odd address");
	is_u64(lds32(&b, 28), 0x22334455, "ds_store_b64");
	is_u64(lds32(&b, 40), 0x33445566, "ds_store_b96, last dword");
	is_u64(lds32(&b, 44), 0, "ds_store_b96, nothing behind it");
	is_u64(lds32(&b, 60), 0x44556677, "ds_store_b128, last dword");
	bench_fini(&b);
}

static void test_two_addresses(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	uint32_t(*v)[SOFT_LANES];

	bench_init(&b, 32, 1);
	v = w->v[0];
	w->s[ISA_R_EXEC_LO] = 1;
	v[0][0] = 8;
	for (int i = 0; i < 4; i++)
		v[2 + i][0] = 0x100u + (unsigned)i;
	bench_text(
		&b,
		"ds_store_2addr_b32 v0, v2, v3 offset0:1 offset1:3\n"
		"ds_store_2addr_b64 v0, v[2:3], v[4:5] offset0:4 offset1:6\n"
		"ds_store_2addr_stride64_b32 v0, v4, v5 offset0:1 offset1:2\n"
		"ds_store_2addr_stride64_b64 v0, v[2:3], v[4:5] offset0:2 offset1:3\n"
		"ds_load_2addr_b32 v[10:11], v0 offset0:3 offset1:1\n"
		"ds_load_2addr_b64 v[12:15], v0 offset0:6 offset1:4\n"
		"ds_load_2addr_stride64_b32 v[16:17], v0 offset0:1 offset1:2\n"
		"ds_load_2addr_stride64_b64 v[20:23], v0 offset0:2 offset1:3\n"
		"ds_storexchg_2addr_rtn_b32 v[24:25], v0, v4, v5 offset0:1 offset1:3");
	is_u64(lds32(&b, 56), 0x102, "offset 6 of b64 is 48 bytes on");
	is_u64(lds32(&b, 8 + 256), 0x102, "stride64 of b32 is 256 bytes");
	is_u64(lds32(&b, 8 + 1536), 0x102, "stride64 of b64 is 512 bytes");
	is_u64(get64(v, 10, 0), UINT64_C(0x10000000101),
	       "ds_load_2addr_b32 loads a dword from each");
	is_u64(get64(v, 12, 0), UINT64_C(0x10300000102), "_b64: first");
	is_u64(get64(v, 14, 0), UINT64_C(0x10100000100), "_b64: second");
	is_u64(get64(v, 16, 0), UINT64_C(0x10300000102), "_stride64_b32");
	is_u64(get64(v, 22, 0), UINT64_C(0x10300000102), "_stride64_b64");
	is_u64(get64(v, 24, 0), UINT64_C(0x10100000100),
	       "ds_storexchg_2addr_rtn_b32 returns both");
	is_u64(lds32(&b, 12), 0x102, "... and stores the first");
	is_u64(lds32(&b, 20), 0x103, "... and the second");
	bench_fini(&b);
}

/* A base register may be an address that the offset makes valid, or not. */
static void test_range(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	uint32_t(*v)[SOFT_LANES];

	bench_init(&b, 32, 1);
	v = w->v[0];
	b.group.lds_size_bytes = 512;
	w->s[ISA_R_EXEC_LO] = 3;
	v[0][0] = 508;
	v[0][1] = 509;
	v[2][0] = v[2][1] = 7;
	v[1][0] = v[1][1] = 99;
	bench_text(&b, "ds_store_b32 v0, v2\n"
		       "ds_load_b32 v1, v0");
	is_u64(v[1][0], 7, "the last dword of LDS");
	is_u64(v[1][1], 0, "a load that leaves LDS reads 0");
	is_u64(b.group.lds[512], 0, "a store that leaves LDS is lost");
	ok(w->trapsts & 0x100, "... and sets MEM_VIOL");
	is_u64(w->state, SOFT_ENDED, "... without stopping the wave");
	v[0][0] = 0xfffffffc;
	w->s[ISA_R_EXEC_LO] = 1;
	bench_text(&b, "ds_store_b32 v0, v2 offset:8\n"
		       "ds_load_b32 v1, v0");
	is_u64(lds32(&b, 4), 7, "addresses wrap at 32 bits");
	v[0][0] = 2;
	bench_text(&b, "ds_add_u32 v0, v2");
	is_u64(w->fault.kind, SOFT_FAULT_ALIGN, "atomics have to be aligned");
	is_u64((uint64_t)w->fault.lane, 0, "... and the lane is named");
	bench_fini(&b);
}

static void test_special(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	uint32_t(*v)[SOFT_LANES];

	bench_init(&b, 32, 1);
	v = w->v[0];
	w->s[ISA_R_EXEC_LO] = 0xe;
	w->s[ISA_R_M0] = 0xffff0100;
	b.group.lds[0x108] = 40;
	for (int l = 0; l < 4; l++) {
		v[2][l] = 0x70u + (unsigned)l;
		v[4][l] = 0x80000005;
		v[5][l] = 0x00000006;
		v[3][l] = 0x207 + 8 * (unsigned)l;
	}
	bench_text(&b, "ds_append v1 offset:8\n"
		       "ds_append v10 offset:8\n"
		       "ds_consume v11 offset:8\n"
		       "ds_store_addtid_b32 v2 offset:64\n"
		       "ds_load_addtid_b32 v12 offset:64\n"
		       "ds_nop\n"
		       "ds_condxchg32_rtn_b64 v[14:15], v3, v[4:5]");
	is_u64(v[1][2], 40, "ds_append returns the old count to lanes");
	is_u64(v[10][3], 43, "... and adds the number of active lanes");
	is_u64(v[11][1], 46, "ds_consume returns the old count");
	is_u64(lds32(&b, 0x108), 43, "... and subtracts");
	is_u64(v[1][0], 0, "... inactive lanes get nothing");
	is_u64(lds32(&b, 0x140 + 12), 0x73, "ds_store_addtid_b32 by lane");
	is_u64(v[12][2], 0x72, "ds_load_addtid_b32 by lane");
	is_u64(lds32(&b, 0x208), 5, "ds_condxchg32_rtn_b64 stores if bit 31");
	is_u64(lds32(&b, 0x20c), 0, "... and otherwise does not");
	bench_text(&b, "ds_condxchg32_rtn_b64 v[14:15], v3, v[4:5]");
	is_u64(get64(v, 14, 1), 5, "... and returns what was there");
	bench_text(&b, "ds_add_u32 v0, v2 gds");
	is_u64(w->fault.kind, SOFT_FAULT_UNSUPPORTED, "GDS is not there");
	has_str(w->fault.text, "ds_add_u32", "... by name");
	bench_fini(&b);
}

/* Global wave sync and ordered append: refused by name, with the reason. */
static void test_gds_only(void)
{
	static const struct {
		const char *text, *name, *reason;
	} t[] = {
		{ "ds_gws_sema_release_all gds", "ds_gws_sema_release_all",
		  "GWS" },
		{ "ds_gws_init v1 gds", "ds_gws_init", "GWS" },
		{ "ds_gws_sema_v gds", "ds_gws_sema_v", "GWS" },
		{ "ds_gws_sema_br v1 gds", "ds_gws_sema_br", "GWS" },
		{ "ds_gws_sema_p gds", "ds_gws_sema_p", "GWS" },
		{ "ds_gws_barrier v1 gds", "ds_gws_barrier", "GWS" },
		{ "ds_ordered_count v1, v2 gds", "ds_ordered_count", "GDS" },
	};
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const struct soft_wave *w;

		bench_init(&b, 32, 1);
		w = &b.wave[0];
		bench_text(&b, t[i].text);
		is_u64(w->fault.kind, SOFT_FAULT_UNSUPPORTED, "%s faults",
		       t[i].name);
		has_str(w->fault.text, t[i].name, "... by name");
		has_str(w->fault.text, t[i].reason, "... with the reason");
		bench_fini(&b);
	}
}

/* v1 = 100 + lane; lane 7 does not execute. */
static void permute_init(struct bench *b, int wave_size)
{
	bench_init(b, wave_size, 1);
	for (int h = 0; h < wave_size / 32; h++)
		for (int l = 0; l < 32; l++)
			b->wave[0].v[h][1][l] =
				100u + 32u * (unsigned)h + (unsigned)l;
	b->wave[0].s[ISA_R_EXEC_LO] = 0xffffff7f;
}

static void test_swizzle(void)
{
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	permute_init(&b, 32);
	v = b.wave[0].v[0];
	bench_text(&b,
		   "ds_swizzle_b32 v2, v1 offset:swizzle(QUAD_PERM,3,2,1,0)\n"
		   "ds_swizzle_b32 v3, v1 offset:swizzle(SWAP,16)\n"
		   "ds_swizzle_b32 v4, v1 offset:swizzle(BROADCAST,8,2)\n"
		   "ds_swizzle_b32 v5, v1 offset:swizzle(REVERSE,32)\n"
		   "ds_swizzle_b32 v6, v1 offset:49184\n"
		   "ds_swizzle_b32 v7, v1 offset:50280\n"
		   "ds_swizzle_b32 v8, v1 offset:57344\n"
		   "ds_swizzle_b32 v9, v1 offset:57360");
	is_u64(v[2][8], 111, "QUAD_PERM 3,2,1,0 reverses four lanes");
	is_u64(v[2][4], 0, "a lane that does not execute gives 0");
	is_u64(v[2][7], 0, "... and receives nothing");
	is_u64(v[3][3], 119, "SWAP 16 crosses the halves");
	is_u64(v[4][30], 126, "BROADCAST 8, 2");
	is_u64(v[5][1], 130, "REVERSE 32");
	is_u64(v[6][31], 100, "rotate by 1: lane 31 reads lane 0");
	is_u64(v[6][3], 104, "rotate by 1: lane 3 reads lane 4");
	/* To the left by 3, mask 8: bit 3 of the lane stays. */
	is_u64(v[7][1], 122, "rotate -3 with mask 8: 1 - 3 = 30, bit 3 kept");
	is_u64(v[8][1], 116, "FFT 0: bit-reversed, lane 1 reads lane 16");
	is_u64(v[8][6], 112, "FFT 0: lane 6 = 00110 reads 01100 = 12");
	/* One mask bit: the reversed number is shifted by one, mask bits stay.
	 */
	is_u64(v[9][17], 124, "FFT 16: lane 17 reads 16 | 17r >> 1 = 24");
	bench_fini(&b);
}

static void test_permute(void)
{
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	permute_init(&b, 32);
	v = b.wave[0].v[0];
	for (unsigned l = 0; l < 32; l++)
		v[0][l] = 4 * ((l + 3) % 32) + 1 + 128 * l;
	v[0][9] = 4 * 11;
	bench_text(&b, "ds_permute_b32 v2, v0, v1\n"
		       "ds_bpermute_b32 v3, v0, v1\n"
		       "ds_bpermute_b32 v4, v0, v1 offset:4");
	is_u64(v[2][3], 100, "ds_permute_b32: lane 0 sends to lane 3");
	is_u64(v[2][11], 109, "ds_permute_b32: the highest lane wins");
	is_u64(v[2][10], 0, "ds_permute_b32: nothing from a masked lane");
	is_u64(v[3][0], 103, "ds_bpermute_b32: lane 0 reads lane 3");
	is_u64(v[3][31], 102, "ds_bpermute_b32: lane numbers wrap at 32");
	is_u64(v[3][4], 0, "ds_bpermute_b32: 0 from a masked lane");
	is_u64(v[4][0], 104, "ds_bpermute_b32: the offset is added");
	is_u64(v[3][7], 0, "ds_bpermute_b32: a masked lane is not written");
	bench_fini(&b);
}

static void test_wave64(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	permute_init(&b, 64);
	for (int h = 0; h < 2; h++)
		for (unsigned l = 0; l < 32; l++)
			w->v[h][0][l] = 4 * (31 - l);
	bench_text(&b, "ds_bpermute_b32 v2, v0, v1\n"
		       "ds_store_addtid_b32 v1\n"
		       "ds_append v5 offset:2048");
	is_u64(w->v[1][2][0], 163, "wave64: the halves permute on their own");
	is_u64(w->v[0][2][1], 130, "wave64: and so does the low one");
	is_u64(lds32(&b, 4 * 40), 140, "wave64: lane 40 stores its own");
	is_u64(lds32(&b, 2048), 63, "wave64: ds_append counts both halves");
	bench_fini(&b);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(atomics); i++)
		for (int r = 0; r < 2; r++)
			if (atomics[i].code[r])
				test_atomic(&atomics[i], r);
	test_loads();
	test_stores();
	test_two_addresses();
	test_range();
	test_special();
	test_gds_only();
	test_swizzle();
	test_permute();
	test_wave64();
	return plan_done();
}
