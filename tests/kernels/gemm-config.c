/*
 * Configurations of matrix products: names, refusals, banks of LDS, launches.
 */
#include <string.h>

#include "compiler/gemm/gemm_int.h"
#include "isa/object/object.h"
#include "tests/kernels/gemm-sim.h"
#include "tests/tap.h"

static const struct gemm_op bf16 = { .in = DSL_BF16, .out = DSL_F32,
				     .b_trans = true };

static void test_op_names(void)
{
	static const char *const names[] = {
		"bf16_nt_f32", "f16_tn_f16+beta", "i8_nn_i32",
		"f32_tt_f32+scale+bias+gelu+residual", "bf16_nn_bf16+swiglu",
		"f16w4_nt_f32+beta", "bf16w8_nt_bf16+swiglu",
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
	ok(!gemm_op_parse("f16_nt_f16w4", &op, &e),
	   "results of integers with scales are refused");
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
	refused("64x64x48_w2x2_b2_p1_u1_g0_pad_wgp", "f16w4_nt_f32",
		"multiple of 32");
	refused("64x64x64_w2x2_b2_p1_u1_g0_pad_wgp", "f16w8_nn_f32", "N x K");
	refused("64x64x64_w2x2_b2_p1_u1_g0_pad_wgp_direct", "bf16w4_nt_f32",
		"without scales");
}

static void unfit(struct gemm_shape s, const char *why)
{
	struct gemm_config c = gemm_default(&bf16);
	struct err e = { 0 };

	c.even = true;
	ok(!gemm_fits(&bf16, &c, &s, &e), "%s: does not fit", why);
	has_str(e.msg, why, "%s: says so", why);
}

/* Integers that share a scale are not torn apart. */
static void test_groups(void)
{
	const struct gemm_op op = { .in = DSL_F16, .out = DSL_F32,
				    .weights = DSL_U8, .b_trans = true };
	const struct gemm_config c = gemm_default(&op);
	struct gemm_shape s = { .m = 3, .n = 5, .k = 96 };
	struct gemm_operands x = { .b = 0x1000 };
	struct gemm_launch l;
	struct err e = { 0 };

	ok(gemm_fits(&op, &c, &s, &e), "three groups of K fit");
	ok(gemm_launch(&op, &c, &s, &x, &l, &e), "and are launched");
	x.b += 8;
	ok(!gemm_launch(&op, &c, &s, &x, &l, &e), "B at 8 bytes is refused");
	has_str(e.msg, "multiple of 16 bytes", "with what is wanted");
	s.ldb = 112;
	ok(!gemm_fits(&op, &c, &s, &e), "rows of three and a half do not");
	has_str(e.msg, "share a scale", "and it says why");
	s = (struct gemm_shape){ .m = 3, .n = 5, .k = 80 };
	ok(!gemm_fits(&op, &c, &s, &e), "two groups and a half do not fit");
}

/*
 * That no store of B reaches the buffer that other waves read follows only
 * from how far `byte & ~15` goes.
 */
static void test_accepted(void)
{
	static const char *const names[][2] = {
		{ "bf16w4_nt_f32", "64x64x64_w4x4_b3_p1_u3_g0_pad_wgp_even" },
		{ "f16w4_nt_f32", "64x64x64_w4x4_b3_p0_u3_g0_pad_wgp_even" },
	};

	for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
		struct gemm_config c;
		struct gemm_code code;
		struct gemm_op op;
		struct err e = { 0 };

		if (ok(gemm_op_parse(names[k][0], &op, &e) &&
			       gemm_config_parse(names[k][1], &c, &e) &&
			       gemm_compile(&op, &c, NULL, &code, &e),
		       "%s %s is built (%s)", names[k][0], names[k][1], e.msg))
			gemm_code_fini(&code);
	}
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

/* Runs of neighbouring lanes in the same 64 bytes, and lines of 128 in all. */
static void count_lines(const struct gemm_side *s, uint32_t *runs,
			uint32_t *lines)
{
	uint32_t line[32], last = UINT32_MAX;

	*runs = *lines = 0;
	for (uint32_t l = 0; l < 32; l++) {
		const struct gemm_block b = gemm_block_of(s, l);
		const uint32_t at = b.major * s->turn * 4096 +
				    b.minor * s->vec * 2;
		uint32_t k = 0;

		*runs += at / 64 != last;
		last = at / 64;
		while (k < *lines && line[k] != at / 128)
			k++;
		if (k == *lines)
			line[(*lines)++] = at / 128;
	}
}

/* Every block of a turned tile is somebody's, and nobody's twice. */
static uint32_t blocks_missed(const struct gemm_side *s)
{
	const uint32_t across = s->minor / s->vec;
	const uint32_t n = s->major / s->turn * across;
	uint8_t seen[4096] = { 0 };
	uint32_t missed = 0;

	for (uint32_t v = 0; v < n; v++) {
		const struct gemm_block b = gemm_block_of(s, v);

		if (b.minor < across && b.major < s->major / s->turn)
			seen[b.major * across + b.minor]++;
	}
	for (uint32_t v = 0; v < n; v++)
		missed += seen[v] != 1;
	return missed;
}

/*
 * A and B that are turned, both: each load of a wave takes whole lines, stores
 * take no more cycles than their bytes do (128 a cycle), fragments four.
 */
static void test_turned(const char *config, uint32_t runs, uint32_t lines,
			uint32_t store)
{
	const struct gemm_op tn = { .in = DSL_BF16, .out = DSL_BF16,
				    .a_trans = true };
	struct gemm_config c;
	struct gemm_plan p;
	struct err e = { 0 };
	uint32_t at[32], got[2];

	if (!ok(gemm_config_parse(config, &c, &e) &&
		gemm_plan(&tn, &c, &p, &e), "%s: %s", config, e.msg))
		return;
	const struct gemm_side *const side[] = { &p.a, &p.b };
	for (int i = 0; i < 2; i++) {
		const struct gemm_side *s = side[i];

		is_u64(blocks_missed(s), 0, "all blocks of %c are loaded once",
		       'A' + i);
		count_lines(s, &got[0], &got[1]);
		ok(got[0] == runs && got[1] == lines, "a load of %c: %u "
		   "sectors of %u lines", 'A' + i, got[0], got[1]);
		for (uint32_t l = 0; l < 32; l++) {
			const struct gemm_block b = gemm_block_of(s, l);

			at[l] = b.minor * s->pitch * 2 + b.major * s->turn * 2;
		}
		is_u64(gemm_lds_cycles(at, 32, s->turn * 2), store,
		       "stored without conflicts");
		for (uint32_t l = 0; l < 32; l++) {
			const uint32_t r = i ? gemm_frag_row(l % 16) : l % 16;

			at[l] = (r / s->group * s->pitch +
				 r % s->group * s->plane) * 2;
		}
		is_u64(gemm_lds_cycles(at, 32, 16), 4, "read so, too");
	}
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

/* ---- the K loop, as machine code ---- */

enum { MOST = 8000 };
struct code_line {
	uint16_t op;
	uint32_t word; /* the first of its encoding */
	int at;
};
struct loop {
	struct code_line line[MOST];
	int n;
};

static bool has_pipe(const struct code_line *l, enum isa_pipe pipe)
{
	return isa_op_info(l->op)->pipe == pipe;
}

/* Of a branch: SIMM16 counts dwords from the next instruction. */
static int target_of(const struct code_line *l)
{
	return l->at + 4 + 4 * (int16_t)l->word;
}

static int decode_all(const struct co_kernel *k, struct code_line *out)
{
	const struct isa_target t = { ISA_GFX11, 32, false };
	int n = 0;

	for (size_t off = 0; off < k->code_bytes && n < MOST; n++) {
		struct isa_inst in;

		if (isa_decode(&t, k->code + off, k->code_bytes - off, &in))
			return 0;
		out[n] = (struct code_line){ .op = in.op, .at = (int)off };
		memcpy(&out[n].word, k->code + off, 4);
		off += in.size_bytes;
	}
	return n;
}

/* The first loop that loads from memory and multiplies. */
static bool find_loop(const struct co_kernel *k, struct loop *l)
{
	static struct code_line all[MOST];
	const int n = decode_all(k, all);

	for (int e = 0; e < n; e++) {
		int b = 0, loads = 0, products = 0;

		if (!has_pipe(&all[e], ISA_PIPE_BRANCH) ||
		    target_of(&all[e]) >= all[e].at)
			continue;
		while (b < e && all[b].at < target_of(&all[e]))
			b++;
		for (l->n = 0; b <= e; b++) {
			loads += all[b].op == ISA_global_load_b128;
			products += has_pipe(&all[b], ISA_PIPE_WMMA);
			l->line[l->n++] = all[b];
		}
		if (loads && products)
			return true;
	}
	return false;
}

/*
 * The next tile is asked for before this one's products begin, and arrives
 * piece by piece: no wait for all loads of memory stands between, and waits for
 * LDS leave later fragments outstanding.
 */
static void test_overlap(void)
{
	static struct loop l;
	struct gemm_config c;
	struct gemm_code code;
	struct err e = { 0 };
	struct co co;
	int first = 0, late_loads = 0, early_waits = 0, graded = 0, stores = 0;

	if (!ok(gemm_config_parse("128x128x32_w2x2_b2_p1_u1_g8_swz_wgp_even",
				  &c, &e) &&
			gemm_compile(&bf16, &c, NULL, &code, &e) &&
			co_parse(&co, code.object[0].bytes.data,
				 code.object[0].bytes.len, &e),
		"a tile of 128x128x32 compiles"))
		return;
	is_u64(code.object[0].stats.spills, 0, "nothing is spilled");
	if (!ok(find_loop(&co.kernels[0], &l), "its K loop is found"))
		return;
	while (!has_pipe(&l.line[first], ISA_PIPE_WMMA))
		first++;
	for (int i = 0; i < l.n; i++) {
		const bool wait = l.line[i].op == ISA_s_waitcnt;
		const int vm = l.line[i].word >> 10 & 63;
		const int lgkm = l.line[i].word >> 4 & 63;

		late_loads += i > first &&
			      l.line[i].op == ISA_global_load_b128;
		early_waits += i < first && wait && vm < 8;
		graded += wait && lgkm > 0 && lgkm < 63;
		stores += l.line[i].op == ISA_ds_store_b128;
	}
	is_i64(late_loads, 0, "all loads of the next tile stand before the "
	       "first product");
	is_i64(early_waits, 0, "no product waits for them");
	ok(graded >= 2, "%d waits leave fragments outstanding", graded);
	is_i64(stores, 8, "the next tile goes to LDS in the same loop");
	co_fini(&co);
	gemm_code_fini(&code);
}

/* Simulated seconds of a square product. */
static double square_s(const struct cost_model *m, const char *op_name,
		       const struct gemm_config *c, uint32_t n)
{
	const struct gemm_shape s = { .m = n, .n = n, .k = n };
	struct sim_forecast f;
	struct gemm_code code;
	struct gemm_op op;
	struct err e = { 0 };
	double seconds;

	if (!gemm_op_parse(op_name, &op, &e) ||
	    !gemm_compile(&op, c, NULL, &code, &e) ||
	    !gemm_sim_ours(m, &op, c, &code, &s, &seconds, &f, &e))
		BUG("%s", e.msg);
	sim_forecast_fini(&f);
	gemm_code_fini(&code);
	return seconds;
}

/* Rows of odd length begin anywhere; they take vectors all the same. */
static void test_odd(void)
{
	static const char *const ops[] = { "bf16_nt_bf16", "f16_nn_f16" };
	const struct gemm_config c = gemm_default_for(&bf16, 512, 512, 512);
	struct cost_model m;

	cost_init(&m, "gfx1100");
	for (size_t k = 0; k < ARRAY_SIZE(ops); k++) {
		const double odd = square_s(&m, ops[k], &c, 511);
		const double even = square_s(&m, ops[k], &c, 512);

		ok(odd < 2 * even, "%s: 511 takes %.2f times as long as 512, "
		   "less than twice", ops[k], odd / even);
	}
	cost_fini(&m);
}

/*
 * What many loads ahead of their uses would cost: the queue of LDS is short.  At
 * the clock of a kernel that is not repeated.
 */
static void test_default_time(void)
{
	const struct gemm_config c = gemm_default_for(&bf16, 1024, 1024, 1024);
	struct cost_model m;
	struct err e = { 0 };
	double s;

	cost_init(&m, "gfx1100");
	ok(cost_set(&m, "clock", cost_value(&m, COST_CLOCK_SHORT), COST_DEFAULT,
		    &e), "one clock: %s", e.msg);
	s = square_s(&m, "bf16_nt_bf16", &c, 1024);
	ok(s < 24e-6, "the default for 1024 takes %.1f us", s * 1e6);
	cost_fini(&m);
}

/* Of thousands of rows, in every layout of a training step. */
static void test_large(void)
{
	static const char *const ops[] = { "bf16_nt_f32", "bf16_nn_f32",
					   "bf16_tn_f32" };
	struct cost_model m;
	struct err e = { 0 };

	cost_init(&m, "gfx1100");
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct gemm_op op;

		if (!gemm_op_parse(ops[i], &op, &e))
			BUG("%s", e.msg);
		const struct gemm_config c =
			gemm_default_for(&op, 2048, 2048, 2048);
		const struct gemm_config any = gemm_default(&op);
		double ratio = square_s(&m, ops[i], &c, 2048) /
			       square_s(&m, ops[i], &any, 2048);

		ok(ratio < 0.97, "%s: the default for 2048 takes %.3f of the "
		   "time of that for any", ops[i], ratio);
		for (uint32_t n = 2048; n < 8000; n += 1000) {
			const struct gemm_shape s = { .m = n + 1, .n = n,
						      .k = 2056 };
			struct gemm_config odd =
				gemm_default_for(&op, s.m, s.n, s.k);
			ok(gemm_check(&op, &odd, &e) &&
				   gemm_fits(&op, &odd, &s, &e) && !odd.even,
			   "%s: %u x %u fits (%s)", ops[i], s.m, s.n, e.msg);
		}
	}
	cost_fini(&m);
}

int main(void)
{
	test_op_names();
	test_config_names();
	test_refusals();
	test_fits();
	test_groups();
	test_accepted();
	test_banks();
	test_pitch();
	test_turned("128x128x32_w2x2_b2_p1_u1_g0_pad_wgp", 8, 4, 2);
	test_turned("128x128x64_w2x2_b1_p1_u1_g8_swz_wgp", 8, 4, 4);
	test_launch();
	test_overlap();
	test_odd();
	test_default_time();
	test_large();
	return plan_done();
}
