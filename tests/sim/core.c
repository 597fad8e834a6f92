/*
 * The simulator's core against cycle counts worked out by hand from the costs:
 * a vector instruction that issues at 0 executes at 8 and its dependent one at
 * 13; trans, matrix, double and scalar pipes; waits, LDS, barriers, branches.
 */
#include <stdlib.h>

#include "tests/sim/sim-code.h"

/* `n` copies of a line; free it. */
static char *copies(const char *line, int n)
{
	struct buf b = { 0 };

	for (int i = 0; i < n; i++)
		buf_printf(&b, "%s\n", line);
	return b.data;
}

/* Cycles from the first issue to the k-th of wave 0. */
static uint64_t after(const struct ran *x, int k)
{
	return x->at[0][k] - x->at[0][0];
}

static void run_plain(struct ran *x, const char *text)
{
	run_code(x, text, NULL, NULL, 32, 0, false);
}

/* Text, which instruction, when it issues after the first. */
static const struct {
	const char *name, *text;
	int k;
	uint64_t want;
} counted[] = {
	{ "a dependent pair with s_delay_alu: 5",
	  "v_add_f32 v0, v0, v1\n"
	  "s_delay_alu instid0(VALU_DEP_1)\n"
	  "v_add_f32 v0, v0, v1\ns_endpgm\n", 2, 5 },
	{ "s_delay_alu on the instruction before the last: 5 from there",
	  "v_add_f32 v0, v0, v1\nv_add_f32 v2, v2, v1\n"
	  "s_delay_alu instid0(VALU_DEP_2)\n"
	  "v_add_f32 v0, v0, v1\ns_endpgm\n", 3, 5 },
	{ "the second half of s_delay_alu comes two instructions later",
	  "v_add_f32 v0, v0, v1\n"
	  "s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | "
	  "instid1(VALU_DEP_1)\n"
	  "v_add_f32 v0, v0, v1\nv_add_f32 v0, v0, v1\ns_endpgm\n", 3, 10 },
	{ "without a hint dependent instructions queue: 1",
	  "v_add_f32 v0, v0, v1\nv_add_f32 v0, v0, v1\ns_endpgm\n", 1, 1 },
	{ "transcendentals: 4", "v_exp_f32 v0, v1\nv_exp_f32 v2, v3\n"
	  "s_endpgm\n", 1, 4 },
	{ "the vector ALU beside one: 1", "v_exp_f32 v0, v1\n"
	  "v_add_f32 v2, v3, v3\ns_endpgm\n", 1, 1 },
	{ "doubles: 32", "v_add_f64 v[0:1], v[2:3], v[4:5]\n"
	  "v_add_f32 v6, v7, v8\ns_endpgm\n", 1, 32 },
	{ "two passes: 2", "v_lshlrev_b64 v[0:1], 2, v[2:3]\n"
	  "v_mov_b32 v6, v7\ns_endpgm\n", 1, 2 },
	{ "vector result to a memory address: 18", "v_mov_b32 v0, v1\n"
	  "ds_load_b32 v2, v0\ns_endpgm\n", 1, 18 },
	{ "vector mask to a scalar reader: 16", "v_cmp_eq_u32 s0, v0, v1\n"
	  "s_mov_b32 s1, s0\ns_endpgm\n", 1, 16 },
	{ "scalar result to the vector ALU: 9", "s_mov_b32 s0, 1\n"
	  "v_mov_b32 v0, s0\ns_endpgm\n", 1, 9 },
	{ "scalar ALU, then a scalar load: 9", "s_mov_b32 s0, 1\n"
	  "s_load_b32 s1, s[2:3], null\ns_endpgm\n", 1, 9 },
	{ "s_nop 5: 6", "s_nop 5\ns_mov_b32 s0, 1\ns_endpgm\n", 1, 6 },
	{ "s_nop 20: 21", "s_nop 20\ns_mov_b32 s0, 1\ns_endpgm\n", 1, 21 },
	{ "s_nop 10 behind a vector instruction: 3 and 11", "v_mov_b32 v1, v0\n"
	  "s_nop 10\ns_mov_b32 s0, 1\ns_endpgm\n", 2, 14 },
	{ "s_nop 11: 4 and 12", "v_mov_b32 v1, v0\n"
	  "s_nop 11\ns_mov_b32 s0, 1\ns_endpgm\n", 2, 16 },
	{ "s_nop behind a store of a dword: 8", "global_store_b32 v0, v2, "
	  "s[0:1]\ns_nop 0\ns_endpgm\n", 1, 8 },
	{ "s_nop behind one of four at a long address: 12",
	  "global_store_b128 v[0:1], v[4:7], off\ns_nop 0\ns_endpgm\n", 1,
	  12 },
	{ "a store, something else, s_nop: 3 and 1", "global_store_b32 v0, v2, "
	  "s[0:1]\ns_mov_b32 s0, 1\ns_nop 0\ns_endpgm\n", 2, 2 },
	{ "s_sleep 4: 256 and its own", "s_sleep 4\ns_mov_b32 s0, 1\n"
	  "s_endpgm\n", 1, 257 },
	{ "a wait behind a vector instruction: 3", "v_mov_b32 v0, v1\n"
	  "s_waitcnt vmcnt(0)\ns_endpgm\n", 1, 3 },
	{ "ds_load_b32 and its reader: 33", "ds_load_b32 v2, v0\n"
	  "s_waitcnt lgkmcnt(0)\nv_mov_b32 v3, v2\ns_endpgm\n", 2, 33 },
	{ "lgkmcnt(1) waits for the first of two", "ds_load_b32 v2, v0\n"
	  "ds_load_b32 v3, v0 offset:128\ns_waitcnt lgkmcnt(1)\n"
	  "v_mov_b32 v4, v2\ns_endpgm\n", 3, 33 },
	{ "lgkmcnt(0) for the second, a cycle later", "ds_load_b32 v2, v0\n"
	  "ds_load_b32 v3, v0 offset:128\ns_waitcnt lgkmcnt(0)\n"
	  "v_mov_b32 v4, v2\ns_endpgm\n", 3, 34 },
	{ "vmcnt(63) waits for nothing but the 3", "global_load_b32 v2, v0, "
	  "s[0:1]\ns_waitcnt vmcnt(63)\ns_endpgm\n", 1, 3 },
	/* v0 is the lane: 35 bytes, one request. */
	{ "a load from L2 and its reader: 230", "global_load_b32 v2, v0, "
	  "s[0:1]\ns_waitcnt vmcnt(0)\nv_mov_b32 v3, v2\ns_endpgm\n", 2, 230 },
	{ "a store and the wait for it: 250", "global_store_b32 v0, v2, "
	  "s[0:1]\ns_waitcnt_vscnt null, 0\ns_mov_b32 s0, 1\ns_endpgm\n", 2,
	  250 },
	{ "a branch not taken: 3", "s_cbranch_scc0 1\ns_mov_b32 s0, 1\n"
	  "s_endpgm\n", 1, 3 },
	{ "a branch taken: 27", "s_branch 1\ns_mov_b32 s0, 1\n"
	  "s_mov_b32 s1, 1\ns_endpgm\n", 1, 27 },
	{ "s_barrier of a single wave: 1", "s_barrier\ns_mov_b32 s0, 1\n"
	  "s_endpgm\n", 1, 1 },
};

static void test_counted(void)
{
	struct ran x;

	for (size_t i = 0; i < ARRAY_SIZE(counted); i++) {
		run_plain(&x, counted[i].text);
		is_u64(after(&x, counted[i].k), counted[i].want, "%s",
		       counted[i].name);
		ran_fini(&x);
	}
}

/* What nobody describes ends: the branch out of it is taken the second time. */
static void test_endless(void)
{
	struct ran x;

	/* again: leave if scc0; s_mov; go to again */
	run_plain(&x, "s_cbranch_scc0 2\ns_mov_b32 s0, 1\ns_branch -3\n"
		      "s_endpgm\n");
	ok(x.ok, "a loop that is left at its beginning ends");
	is_i64(x.n[0], 5, "after one time round");
	ran_fini(&x);
}

/* Cold code, after the first instruction's arrival. */
static void run_cold(struct ran *x, const char *line, int n)
{
	static uint8_t code[65536];
	char *text = copies(line, n);
	struct err e = { 0 };
	struct sim_source s = { .vgprs = 32 };
	struct sim_config c = { .cost = &x->m, .warmth = SIM_WARM,
				.issued = ran_issue, .ctx = x };
	size_t bytes = assemble(text, code, sizeof(code));

	bytes += assemble("s_endpgm", code + bytes, 64);
	memset(x, 0, sizeof(*x));
	cost_init(&x->m, "gfx1100");
	ok(sim_affine_open(&s, code, bytes, 0x10000, "", "affine", &e) &&
	   sim_run(&s, &c, &x->r, &e), "cold code: %s", e.msg);
	sim_affine_close(&s);
	free(text);
}

/*
 * The buffer is 104 bytes ahead, so the instruction with byte 24 asks for the
 * next window of 256, which is there 356 later.
 */
static void test_fetch(void)
{
	struct ran x;

	run_cold(&x, "v_mov_b32 v0, v1", 130);
	is_u64(after(&x, 31), 31, "an instruction a cycle in the first line");
	is_u64(after(&x, 32), 34, "the second arrives 34 behind it");
	is_u64(after(&x, 64), 6 + 356, "the next window");
	is_u64(after(&x, 128) - after(&x, 64), 6 + 356, "and the next one");
	ran_fini(&x);
	/* Of 8 bytes and 4 cycles: the fourth has byte 24. */
	run_cold(&x, "v_mul_lo_u32 v0, v1, v2", 40);
	is_u64(after(&x, 31), 124, "slow code does not wait in a window");
	is_u64(after(&x, 32), 9 + 356, "and no longer in all than quick code");
	ran_fini(&x);
}

static void check_repeated(const char *line, int n, uint64_t want,
			   const char *name)
{
	char *text = copies(line, n);
	struct buf b = { 0 };
	struct ran x;

	buf_printf(&b, "%ss_endpgm\n", text);
	run_plain(&x, b.data);
	is_u64(after(&x, n - 1), want, "%s", name);
	ran_fini(&x);
	buf_fini(&b);
	free(text);
}

static void test_streams(void)
{
	/* Executions at 8, 13, ...: the 40th issues with the 28th's. */
	check_repeated("v_add_f32 v0, v0, v1", 40, 143,
		       "40 dependent adds: 12 in the queue, then 5 each");
	check_repeated("v_add_f32 v0, v1, v2", 40, 39,
		       "40 independent adds: 1");
	/* At 5, 7, ...; six wait: the 40th issues with the 34th's. */
	check_repeated("s_add_u32 s0, s0, s1", 40, 71,
		       "40 dependent scalar adds: 6 in the queue, then 2 each");
	check_repeated("v_mul_lo_u32 v0, v1, v2", 10, 36, "10 multiplies: 4");
	/* Executions at 10, 42, 74, ...: the 16th issues 3 before the 9th's. */
	check_repeated("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[17:24], 0",
		       16, 10 + 8 * 32 - 3,
		       "16 matrix products: 8 in the queue, then 32");
	check_repeated("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], "
		       "v[0:7]", 16, 10 + 8 * 34 - 3,
		       "dependent or banked ones: 34");
	check_repeated("v_wmma_i32_16x16x16_iu4 v[0:7], v[8:9], v[10:11], 0",
		       16, 26 + 8 * 16 - 3, "4-bit ones: 16");
}

/* Lanes `stride` dwords apart meet in a bank as often as the factor says. */
static void test_lds(void)
{
	static const struct {
		const char *op;
		int stride; /* bytes */
		int extra;  /* cycles beyond one of 32 dwords */
	} known[] = {
		{ "ds_load_b32 v4, v0", 0, 0 },	   /* one address: broadcast */
		{ "ds_load_b32 v4, v0", 4, 0 },
		{ "ds_load_b32 v4, v0", 8, 1 },
		{ "ds_load_b32 v4, v0", 12, 0 },   /* odd strides meet nobody */
		{ "ds_load_b32 v4, v0", 16, 3 },
		{ "ds_load_b32 v4, v0", 32, 7 },
		{ "ds_load_b32 v4, v0", 64, 15 },
		{ "ds_load_b32 v4, v0", 128, 31 },
		{ "ds_load_b32 v4, v0", 132, 0 },
		{ "ds_add_rtn_u32 v4, v0, v1", 4, 1 },  /* one cycle more */
		{ "ds_add_rtn_u32 v4, v0, v1", 0, 32 }, /* one by one */
		{ "ds_load_b64 v[4:5], v0", 8, 1 },
		{ "ds_load_b64 v[4:5], v0", 16, 3 },
		{ "ds_load_b128 v[4:7], v0", 16, 3 },
		{ "ds_load_b128 v[4:7], v0", 32, 7 },
		{ "ds_load_b128 v[4:7], v0", 128, 31 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		char text[128], affine[64];
		struct ran x;

		snprintf(text, sizeof(text), "%s\ns_waitcnt lgkmcnt(0)\n"
			 "v_mov_b32 v1, v4\ns_endpgm\n", known[i].op);
		snprintf(affine, sizeof(affine), "at 0 lane=%d",
			 known[i].stride);
		run_code(&x, text, affine, NULL, 32, 0, false);
		is_u64(after(&x, 2), 33 + (uint64_t)known[i].extra,
		       "%s, lanes %d bytes apart", known[i].op,
		       known[i].stride);
		ran_fini(&x);
	}
}

/* Addresses that follow from the code: lanes 128 bytes apart, then 4. */
static void test_guessed(void)
{
	struct ran x;

	run_plain(&x, "v_lshlrev_b32 v0, 7, v0\nds_load_b32 v1, v0\n"
		  "s_waitcnt lgkmcnt(0)\nv_mov_b32 v2, v1\ns_endpgm\n");
	is_u64(x.at[0][3] - x.at[0][1], 33 + 31, "32 lanes meet in a bank");
	ran_fini(&x);
	run_plain(&x, "v_mul_u32_u24 v0, 4, v0\nv_add_nc_u32 v0, 64, v0\n"
		  "ds_load_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n"
		  "v_mov_b32 v2, v1\ns_endpgm\n");
	is_u64(x.at[0][4] - x.at[0][2], 33, "or in none");
	ran_fini(&x);
	/* Lanes in different lines: 32 requests instead of 2. */
	run_plain(&x, "v_lshlrev_b32 v0, 7, v0\n"
		  "global_load_b32 v1, v0, s[0:1]\ns_endpgm\n");
	is_u64(x.r.busy[SIM_PIPE_VMEM], 32, "32 lines keep L0 busy for 32");
	ran_fini(&x);
	run_plain(&x, "v_lshlrev_b32 v0, 2, v0\n"
		  "global_load_b32 v1, v0, s[0:1]\ns_endpgm\n");
	is_u64(x.r.busy[SIM_PIPE_VMEM], 2, "128 bytes in a row for 2");
	ran_fini(&x);
}

/*
 * Streams: 32 waves read 512 bytes a time, each its own; the GPU's 48 WGPs get
 * what the costs say of Infinity Cache and DRAM, however it is bound before.
 */
static void test_streams_of_memory(void)
{
	static const struct {
		const char *name;
		uint64_t footprint;
		double rate; /* bytes per second of the GPU */
	} level[] = {
		{ "DRAM", 1 << 30, 960e9 * 0.9 },
		{ "Infinity Cache", 64 << 20, 3.0e12 },
	};
	static const char text[] =
		"global_load_b128 v[4:7], v0, s[0:1]\n"
		"global_load_b128 v[8:11], v0, s[0:1]\n"
		"s_waitcnt vmcnt(0)\ns_add_u32 s2, s2, 1\n"
		"s_cmp_lt_u32 s2, s3\ns_cbranch_scc1 -8\ns_endpgm\n";
	static const char affine[] =
		"groups 32\nloop 28 199\n"
		"at 0 lane=16 group=1048576 step=1024\n"
		"at 8 base=512 lane=16 group=1048576 step=1024\n";

	for (size_t i = 0; i < ARRAY_SIZE(level); i++) {
		struct ran x;

		run_from(&x, text, affine, level[i].footprint);
		double rate = 48 * 32.0 * 200 * 1024 / x.r.time_s;
		ok(rate < 1.01 * level[i].rate && rate > 0.9 * level[i].rate,
		   "%s: %.0f GB/s of %.0f", level[i].name, rate / 1e9,
		   level[i].rate / 1e9);
		is_u64(x.r.bytes[i ? SIM_IC : SIM_DRAM], 32u * 200 * 1024,
		       "all of it from there");
		ran_fini(&x);
	}
}

/* 64 workgroups of a wave fill a WGP; 48 WGPs. */
/* The waits of two loads of 512 bytes each from DRAM, cycles. */
static double two_loads(const char *between, uint64_t *first, uint64_t *second)
{
	char text[256];
	struct ran x;

	snprintf(text, sizeof(text), "global_load_b128 v[4:7], v0, s[0:1]\n%s"
		 "global_load_b128 v[8:11], v0, s[0:1]\n"
		 "s_waitcnt vmcnt(1)\ns_waitcnt vmcnt(0)\ns_endpgm\n",
		 between);
	const char *affine = *between ? "at 0 lane=16\nat 12 base=512 lane=16\n"
				      : "at 0 lane=16\nat 8 base=512 lane=16\n";

	run_from(&x, text, affine, 1 << 30);
	*first = x.r.line[x.r.n_lines - 3].stall[SIM_VMCNT];
	*second = x.r.line[x.r.n_lines - 2].stall[SIM_VMCNT];
	const double mhz = x.r.clock_mhz;
	ran_fini(&x);
	return mhz;
}

/*
 * A WGP's share of DRAM is 18 GB/s.  Traces: of loads one behind the other the
 * first returns when nearly all has come, the next 16 cycles later where both
 * SIMDs of a CU load 512 bytes at a time.
 */
static void test_bursts(void)
{
	uint64_t first, second;
	double mhz = two_loads("", &first, &second);
	const double line = 128 / (960e9 * 0.9 / 48 / (mhz * 1e6));
	const double idle = 230 + 0.112 * mhz;

	ok((double)first > idle + 6 * line && (double)first < idle + 8 * line,
	   "the first of a burst waits for eight lines of memory: %llu cycles, "
	   "idle %.0f, a line %.0f", (unsigned long long)first, idle, line);
	ok(second <= 16, "the second has come with it: %llu cycles",
	   (unsigned long long)second);
	two_loads("s_nop 15\n", &first, &second);
	ok((double)first < idle + 4 * line && (double)second > 2 * line,
	   "loads that are apart do not: %llu cycles, and %llu",
	   (unsigned long long)first, (unsigned long long)second);
}

static void test_gpu(void)
{
	struct sim_config c = { 0 };
	struct sim_gpu g;
	struct ran x;

	run_code(&x, "s_sleep 100\ns_endpgm\n", "groups 64", NULL, 32, 0,
		 false);
	c.cost = &x.m;
	sim_gpu(&x.r, &c, 64, 48 * 64, &g);
	is_i64(g.groups_per_wgp, 64, "64 at once");
	is_f64(g.cycles, (double)x.r.cycles, "48 x 64: one round");
	sim_gpu(&x.r, &c, 64, 48 * 64 + 1, &g);
	is_f64(g.cycles, 2.0 * (double)x.r.cycles, "one more: two rounds");
	is_f64(g.time_s, g.cycles / (x.r.clock_mhz * 1e6), "at the clock");
	/* 6 engines start a wave a cycle each. */
	x.r.cycles = 100;
	sim_gpu(&x.r, &c, 64, 48 * 64, &g);
	is_f64(g.cycles, 48 * 64 / 6.0, "short ones wait for the dispatcher");
	is_str(g.limit, "dispatch", "and say so");
	ran_fini(&x);
}

static void test_barrier(void)
{
	struct ran x;
	const char *text = "s_mov_b32 s0, 1\ns_barrier\ns_mov_b32 s0, 1\n"
			   "s_endpgm\n";

	run_code(&x, text, "waves 2", NULL, 32, 0, false);
	/* Wave 1 starts 8 cycles later, the rate of a WGP of 8 in an engine. */
	is_u64(x.at[1][0] - x.at[0][0], 8, "waves start 8 cycles apart");
	is_u64(x.at[0][2] - x.at[1][1], 15, "the last arrival frees wave 0");
	is_u64(x.at[1][2] - x.at[1][1], 15, "and itself after 15");
	ran_fini(&x);
	run_code(&x, text, "waves 8", NULL, 32, 0, false);
	is_u64(x.at[0][2] - x.at[7][1], 17, "two waves on a SIMD: 17");
	ran_fini(&x);
}

/* Two waves on one SIMD: kinds overlap, equal kinds take turns by age. */
static void test_arbitration(void)
{
	struct buf b = { 0 };
	struct ran x;
	char *adds = copies("v_add_f32 v0, v1, v2", 40);

	buf_printf(&b, "%ss_endpgm\n", adds);
	run_code(&x, b.data, "groups 8", NULL, 32, 0, false);
	is_u64(x.r.share[SIM_PIPE_VALU] > 0.5, 1, "two streams fill a SIMD");
	ok(x.at[4][0] > x.at[0][0] && x.at[4][39] > x.at[0][39],
	   "the older one goes first");
	is_u64(x.at[0][39] - x.at[0][0], 39, "and is not held up");
	ok(x.r.wave[4].stall[SIM_OLDER] > 0, "the younger one is");
	ran_fini(&x);
	buf_fini(&b);
	free(adds);
}

/*
 * The older of two waves of a SIMD comes to its second part first, in which it
 * has no priority: the younger one goes on before it.
 */
static void test_priority(void)
{
	struct buf b = { 0 };
	struct ran x, y;
	char *adds = copies("v_add_f32 v0, v1, v2", 200);

	buf_printf(&b, "s_setprio 3\n%ss_setprio 0\n%ss_endpgm\n", adds, adds);
	run_code(&x, b.data, "groups 8", NULL, 32, 0, false);
	ok(x.at[4][200] < x.at[0][300], "the younger one goes first");
	b.len = 0;
	buf_printf(&b, "s_setprio 0\n%ss_setprio 0\n%ss_endpgm\n", adds, adds);
	run_code(&y, b.data, "groups 8", NULL, 32, 0, false);
	ok(y.at[4][200] > y.at[0][300], "with equal priorities the older one");
	ran_fini(&x);
	ran_fini(&y);
	buf_fini(&b);
	free(adds);
}

static void test_occupancy(void)
{
	/* VGPRs of a wave -> waves of a SIMD (AMD's table for 1536 VGPRs). */
	static const int known[][2] = {
		{ 96, 16 }, { 97, 12 }, { 120, 12 }, { 121, 10 }, { 144, 10 },
		{ 145, 9 }, { 168, 9 }, { 192, 8 }, { 216, 7 }, { 240, 6 },
		{ 241, 5 }, { 256, 5 },
	};
	struct ran x;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		run_code(&x, "s_sleep 100\ns_endpgm\n", "groups 70", NULL,
			 known[i][0], 0, false);
		is_i64(x.r.resident, 4 * known[i][1] > 64 ? 64
							   : 4 * known[i][1],
		       "%d VGPRs: %d waves a SIMD", known[i][0], known[i][1]);
		ran_fini(&x);
	}
	for (int kib = 4; kib <= 64; kib *= 2) {
		run_code(&x, "s_sleep 100\ns_endpgm\n", "groups 70", NULL, 32,
			 (uint32_t)kib * 1024, true);
		is_i64(x.r.resident, 128 / kib, "%d KiB of LDS: %d workgroups",
		       kib, 128 / kib);
		ran_fini(&x);
	}
}

/* Something of everything; eight waves in two groups. */
static const char mixed[] =
	"s_load_b64 s[0:1], s[4:5], null\n"
	"v_lshlrev_b32 v0, 4, v0\n"
	"s_waitcnt lgkmcnt(0)\n"
	"global_load_b128 v[4:7], v0, s[0:1]\n"
	"v_exp_f32 v1, v2\n"
	"s_waitcnt vmcnt(0)\n"
	"ds_store_b128 v0, v[4:7]\n"
	"s_waitcnt lgkmcnt(0)\n"
	"s_barrier\n"
	"ds_load_b128 v[8:11], v0\n"
	"s_waitcnt lgkmcnt(0)\n"
	"v_fma_f32 v12, v8, v9, v12\n"
	"v_dual_mul_f32 v13, v8, v9 :: v_dual_add_f32 v14, v10, v11\n"
	"s_add_u32 s2, s2, 1\n"
	"s_cmp_lt_u32 s2, s3\n"
	"s_cbranch_scc1 -14\n"
	"global_store_b32 v0, v12, s[0:1]\n"
	"s_endpgm\n";
#define MIXED_LOOP "waves 4\ngroups 2\nloop 92 5\n"

static void test_conservation(void)
{
	struct ran x, y;
	uint64_t sum = 0, issues = 0, lines = 0;

	run_code(&x, mixed, MIXED_LOOP, NULL, 32, 16384, false);
	run_code(&y, mixed, MIXED_LOOP, NULL, 32, 16384, false);
	for (int w = 0; w < x.r.n_waves; w++) {
		const struct sim_wave_times *t = &x.r.wave[w];

		for (int k = 0; k < SIM_STALL_COUNT; k++)
			sum += t->stall[k];
		sum -= t->end - t->start;
		issues += t->stall[SIM_ISSUE];
	}
	is_u64(sum, 0, "stalls and issues of each wave are its cycles");
	is_u64(issues, x.r.issues, "issues of the waves are those of all");
	for (int i = 0; i < x.r.n_lines; i++)
		lines += x.r.line[i].issues;
	is_u64(lines, x.r.issues, "and of the addresses");
	ok(x.r.cycles == y.r.cycles && !memcmp(x.at, y.at, sizeof(x.at)),
	   "the same input gives the same cycles");
	ran_fini(&x);
	ran_fini(&y);
}

/* Raising any latency never makes one wave faster. */
static void test_monotony(void)
{
	struct ran x, y;
	int faster = 0;

	run_code(&x, mixed, "loop 92 5", NULL, 32, 16384, false);
	for (int i = 0; i < COST_ROW_COUNT; i++) {
		const struct cost_row_info *row = cost_row_info(i);
		char set[96];

		if (strcmp(row->unit, "cycle"))
			continue;
		snprintf(set, sizeof(set), "%s=%g", row->name, row->value + 16);
		run_code(&y, mixed, "loop 92 5", set, 32, 16384, false);
		if (y.r.cycles < x.r.cycles) {
			diag("%s: %llu instead of %llu cycles", set,
			     (unsigned long long)y.r.cycles,
			     (unsigned long long)x.r.cycles);
			faster++;
		}
		ran_fini(&y);
	}
	is_i64(faster, 0, "no higher latency makes a wave faster");
	ran_fini(&x);
}

int main(void)
{
	test_counted();
	test_endless();
	test_fetch();
	test_streams();
	test_lds();
	test_guessed();
	test_gpu();
	test_streams_of_memory();
	test_bursts();
	test_barrier();
	test_arbitration();
	test_priority();
	test_occupancy();
	test_conservation();
	test_monotony();
	return plan_done();
}
