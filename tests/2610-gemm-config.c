/*
 * Configurations of matrix products: names, refusals, banks of LDS, launches.
 */
#include <string.h>

#include "compiler/gemm/gemm_int.h"
#include "tests/tap.h"

static const struct gemm_op bf16 = { .in = DSL_BF16, .out = DSL_F32,
				     .b_trans = true };

static void test_op_names(void)
{
	static const char *const names[] = {
		"bf16_nt_f32", "f16_tn_f16+beta", "i8_nn_i32",
		"f32_tt_f32+scale+bias+gelu+residual", "bf16_nn_bf16+swiglu",
	};

	for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
		struct gemm_op op;
		struct err e = { 0 };
		char back[100] = "";

		if (gemm_op_parse(names[k], &op, &e))
			gemm_op_name(&op, back, sizeof(back));
		is_str(back, names[k], "%s is read and written", names[k]);
	}
	struct gemm_op op;
	struct err e = { 0 };

	ok(!gemm_op_parse("bf16_nx_f32", &op, &e), "a layout of x is refused");
	has_str(e.msg, "nx_f32", "where it stops making sense is named");
	ok(!gemm_op_parse("bf16_nt_f32+", &op, &e), "an empty word is refused");
}

static void test_config_names(void)
{
	static const char *const names[] = {
		"128x128x32_w2x2_b2_p1_u1_g8_pad_wgp_even",
		"64x32x64_w4x1_b3_p2_u4_g0_swz_cu",
		"256x128x16_w4x2_b1_p0_u2_g16_swz_wgp_direct_sk_split96",
		"64x64x32_w2x2_b2_p1_u1_g1_pad_cu_split4_even",
	};

	for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
		struct gemm_config c;
		struct err e = { 0 };
		char back[100] = "";

		if (gemm_config_parse(names[k], &c, &e))
			gemm_config_name(&c, back, sizeof(back));
		is_str(back, names[k], "%s is read and written", names[k]);
	}
	struct gemm_config c;
	struct err e = { 0 };

	ok(!gemm_config_parse("64x64_w2x2", &c, &e), "two sides are refused");
	ok(!gemm_config_parse("99999x64x32_w2x2_b2_p1_u1_g0_pad", &c, &e),
	   "a tile beyond 16 bits is refused");
	ok(!gemm_config_parse("64x64x32_w2x2_b2_p1_u1_g0_pad_evenly", &c, &e),
	   "an unknown word is refused");
}

static void refused(const char *config, const char *op_name, const char *why)
{
	struct gemm_config c;
	struct gemm_op op;
	struct err e = { 0 };

	if (!ok(gemm_config_parse(config, &c, &e) &&
			gemm_op_parse(op_name, &op, &e),
		"%s of %s is read", config, op_name))
		return;
	ok(!gemm_check(&op, &c, &e), "%s of %s is refused", config, op_name);
	has_str(e.msg, why, "%s of %s says why", config, op_name);
}

static void test_refusals(void)
{
	/* Three times 512 rows of at least 64 bytes are 98304. */
	refused("256x256x32_w4x4_b3_p1_u1_g0_pad_wgp", "bf16_nt_f32", "LDS");
	refused("256x128x16_w1x1_b1_p1_u1_g0_pad_wgp", "bf16_nt_f32",
		"registers");
	refused("64x64x24_w2x2_b2_p1_u1_g0_pad_wgp", "bf16_nt_f32",
		"multiple of 16");
	refused("64x64x32_w2x2_b4_p1_u1_g0_pad_wgp", "bf16_nt_f32",
		"4 buffers");
	refused("64x64x32_w2x2_b2_p1_u1_g6_pad_wgp", "bf16_nt_f32",
		"power of two");
	refused("64x64x32_w2x2_b2_p1_u1_g0_pad_wgp_direct", "bf16_nn_f32",
		"N x K");
	refused("64x64x32_w2x4_b2_p1_u1_g0_pad_wgp", "bf16_nt_f32+swiglu",
		"32 columns");
	refused("64x64x32_w2x2_b2_p1_u1_g0_pad_wgp", "i8_nt_i32+bias",
		"i32");
	refused("64x64x32_w2x2_b2_p1_u1_g0_pad_wgp", "bf16_nt_f32+relu+silu",
		"one activation");
	refused("80x64x32_w2x2_b2_p1_u1_g0_pad_wgp", "bf16_nt_f32", "waves");
}

static void unfit(struct gemm_shape s, const char *why)
{
	struct gemm_config c = gemm_default(&bf16);
	struct err e = { 0 };

	c.even = true;
	ok(!gemm_fits(&bf16, &c, &s, &e), "%s: does not fit", why);
	has_str(e.msg, why, "%s: says so", why);
}

static void test_fits(void)
{
	const struct gemm_config c = gemm_default(&bf16);
	struct err e = { 0 };
	const struct gemm_shape odd = { .m = 1, .n = 7, .k = 0 };

	ok(gemm_fits(&bf16, &c, &odd, &e), "any shape fits without even");
	unfit((struct gemm_shape){ .m = 65, .n = 64, .k = 32 }, "tiles");
	unfit((struct gemm_shape){ .m = 64, .n = 64, .k = 32, .lda = 36 },
	      "multiple of 16");
	unfit((struct gemm_shape){ .m = 64, .n = 64, .k = 32, .lda = 31 },
	      "leading dimension of 31");
	unfit((struct gemm_shape){ .m = 64, .n = 64, .k = 32, .batch = 2,
				   .stride_a = 2049 },
	      "multiples of 16 bytes");
	unfit((struct gemm_shape){ .m = 64, .n = 64, .k = 32,
				   .lda = UINT64_C(1) << 25 },
	      "2 GiB");
}

/* Cycles by hand: 32 banks of 4 bytes; 8 lanes of 16 bytes fill them. */
static void test_banks(void)
{
	uint32_t a[32];

	for (uint32_t l = 0; l < 32; l++)
		a[l] = l * 4;
	is_u64(gemm_lds_cycles(a, 32, 4), 1, "a row of dwords takes 1 cycle");
	for (uint32_t l = 0; l < 32; l++)
		a[l] = l * 128;
	is_u64(gemm_lds_cycles(a, 32, 4), 32, "a column of one bank takes 32");
	for (uint32_t l = 0; l < 32; l++)
		a[l] = 64;
	is_u64(gemm_lds_cycles(a, 32, 4), 1, "one word for all takes 1");
	for (uint32_t l = 0; l < 32; l++)
		a[l] = l * 16;
	is_u64(gemm_lds_cycles(a, 32, 16), 4, "512 bytes in a row take 4");
	for (uint32_t l = 0; l < 32; l++)
		a[l] = l * 64;
	/* 4 phases; of 8 lanes every other meets the same 4 banks. */
	is_u64(gemm_lds_cycles(a, 32, 16), 16, "rows of 64 bytes take 16");
	for (uint32_t l = 0; l < 32; l++)
		a[l] = l * 80;
	is_u64(gemm_lds_cycles(a, 32, 16), 4, "rows of 80 bytes take 4");
}

/* What the plan makes of rows of 32 bf16: 64 bytes would conflict. */
static void test_pitch(void)
{
	struct gemm_config c = gemm_default(&bf16);
	struct gemm_plan p;
	struct err e = { 0 };
	uint32_t a[32];

	ok(gemm_plan(&bf16, &c, &p, &e), "the default has a plan");
	for (uint32_t l = 0; l < 32; l++)
		a[l] = l % 16 * p.a.pitch * 2;
	is_u64(gemm_lds_cycles(a, 32, 16), 4,
	       "a fragment is read without conflicts, padded");
	c.lds = GEMM_LDS_SWIZZLE;
	ok(gemm_plan(&bf16, &c, &p, &e), "a swizzle has a plan");
	is_u64(p.a.pitch, 32, "a swizzle needs no padding");
	for (uint32_t l = 0; l < 32; l++) {
		const uint32_t row = l % 16;

		a[l] = row * 64 +
		       (row >> p.a.chunk_shift & p.a.chunk_mask) * 16;
	}
	is_u64(gemm_lds_cycles(a, 32, 16), 4,
	       "a fragment is read without conflicts, swizzled");
}

static void test_launch(void)
{
	struct gemm_config c = gemm_default(&bf16);
	const struct gemm_shape s = { .m = 130, .n = 65, .k = 100, .batch = 3 };
	const struct gemm_operands x = { .a = 4096, .b = 8192, .c = 12288 };
	struct gemm_launch l;
	struct err e = { 0 };

	ok(gemm_launch(&bf16, &c, &s, &x, &l, &e), "a launch is made");
	is_u64(l.n, 1, "without parts there is one kernel");
	is_u64(l.step[0].groups[0], 2, "two columns of tiles of 64");
	is_u64(l.step[0].groups[1], 3, "three rows of them");
	is_u64(l.step[0].groups[2], 3, "three products");
	is_u64(l.step[0].group_size, 128, "four waves");
	is_u64(l.workspace_bytes, 0, "no workspace");
	c.split = 4;
	ok(gemm_launch(&bf16, &c, &s, &x, &l, &e), "a split launch is made");
	is_u64(l.n, 2, "a split product has a second kernel");
	is_u64(l.step[0].groups[2], 12, "four parts of three products");
	is_u64(l.workspace_bytes, 18 * 4 * 64 * 64 * 4,
	       "a slot for each part of 18 tiles");
	c.stream_k = true;
	c.split = 7;
	ok(gemm_launch(&bf16, &c, &s, &x, &l, &e), "a stream-K launch is made");
	is_u64(l.step[0].groups[0], 7, "seven workgroups");
	is_u64(l.workspace_bytes, 14 * 64 * 64 * 4, "two slots for each");
	const struct gemm_shape none = { .m = 0, .n = 65, .k = 100 };

	ok(gemm_launch(&bf16, &c, &none, &x, &l, &e), "nothing is launched, ");
	is_u64(l.step[0].groups[0], 0, "where there are no rows");
}

int main(void)
{
	test_op_names();
	test_config_names();
	test_refusals();
	test_fits();
	test_banks();
	test_pitch();
	test_launch();
	return plan_done();
}
