/*
 * Instructions that gfx10 has and gfx11 has not, or in other words: SDWA, dot
 * products, compare-and-store in LDS, offsets of 12 bits, clocks.  Random
 * values against C's arithmetic, by the manual's words (RDNA2 ISA 12 and 13).
 */
#include "tests/chips/gfx10.h"

enum { TRIES = 60 };

static uint64_t seed = 1030;

/* Corners of bytes, words and dwords as often as anything. */
static uint32_t draw(void)
{
	static const uint32_t corner[] = { 0,	       1,	   0x7f,
					   0x80,       0xff,	   0x7fff,
					   0x8000,     0xffff,	   0x7fffffff,
					   0x80000000, 0xffffffff, 0x80008000,
					   0x80808080, 0x88888888, 0x7f7f7f7f };
	const uint64_t r = lanes_random(&seed);

	return r & 1 ? (uint32_t)(r >> 32) :
		       corner[(r >> 8) % ARRAY_SIZE(corner)];
}

static bool run_text(struct lanes *t, const char *text)
{
	return run_lines(t, "gfx1030", text);
}

/* ---------------------------------------------------- vector arithmetic ----
 */

static int64_t dot_element(uint32_t v, int i, int bits, bool has_sign)
{
	const uint32_t u = v << (32 - bits * (i + 1)) >> (32 - bits);

	if (!has_sign)
		return u;
	return (int32_t)(u << (32 - bits)) >> (32 - bits);
}

static int64_t dot(uint32_t a, uint32_t b, int bits, bool has_sign)
{
	int64_t sum = 0;

	for (int i = 0; i < 32 / bits; i++)
		sum += dot_element(a, i, bits, has_sign) *
		       dot_element(b, i, bits, has_sign);
	return sum;
}

static uint32_t sat_signed(int64_t v)
{
	return v > INT32_MAX ? INT32_MAX :
	       v < INT32_MIN ? 0x80000000 :
			       (uint32_t)v;
}

static uint32_t sat_unsigned(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static uint32_t clear_sign(uint32_t u) /* |x| of a number */
{
	return u & 0x7fffffff;
}

/*
 * v3 of v0, v1, v2 and the old v3 as a, b, c, d.  Floats are kept away from NaN
 * and denormals by their exponents.
 */
#define ROWS \
	R("v_dot2_i32_i16 v3, v0, v1, v2", dot(a, b, 16, true) + (int32_t)c) \
	R("v_dot2_i32_i16 v3, v0, v1, v2 clamp", \
	  sat_signed(dot(a, b, 16, true) + (int32_t)c)) \
	R("v_dot2_u32_u16 v3, v0, v1, v2", dot(a, b, 16, false) + c) \
	R("v_dot2_u32_u16 v3, v0, v1, v2 clamp", \
	  sat_unsigned((uint64_t)dot(a, b, 16, false) + c)) \
	R("v_dot4_i32_i8 v3, v0, v1, v2", dot(a, b, 8, true) + (int32_t)c) \
	R("v_dot4_i32_i8 v3, v0, v1, v2 clamp", \
	  sat_signed(dot(a, b, 8, true) + (int32_t)c)) \
	R("v_dot4_u32_u8 v3, v0, v1, v2", dot(a, b, 8, false) + c) \
	R("v_dot8_i32_i4 v3, v0, v1, v2", dot(a, b, 4, true) + (int32_t)c) \
	R("v_dot8_u32_u4 v3, v0, v1, v2 clamp", \
	  sat_unsigned((uint64_t)dot(a, b, 4, false) + c)) \
	R("v_dot4c_i32_i8 v3, v0, v1", dot(a, b, 8, true) + (int32_t)d) \
	R("v_mov_b32_sdwa v3, v0 dst_sel:DWORD dst_unused:UNUSED_PAD " \
	  "src0_sel:BYTE_2", \
	  a >> 16 & 255) \
	R("v_mov_b32_sdwa v3, sext(v0) dst_sel:DWORD dst_unused:UNUSED_PAD " \
	  "src0_sel:BYTE_3", \
	  (int32_t)a >> 24) \
	R("v_mov_b32_sdwa v3, sext(v0) dst_sel:DWORD dst_unused:UNUSED_PAD " \
	  "src0_sel:WORD_0", \
	  (int16_t)a) \
	R("v_add_nc_u32_sdwa v3, v0, sext(v1) dst_sel:BYTE_1 " \
	  "dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:BYTE_0", \
	  (d & 0xffff00ff) | (((a >> 16) + (uint32_t)(int8_t)b) & 255) << 8) \
	R("v_lshlrev_b32_sdwa v3, v0, v1 dst_sel:WORD_1 " \
	  "dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:BYTE_1", \
	  ((b >> 8 & 255) << (a & 31)) << 16) \
	R("v_and_b32_sdwa v3, v0, v1 dst_sel:BYTE_2 dst_unused:UNUSED_SEXT " \
	  "src0_sel:DWORD src1_sel:DWORD", \
	  (int32_t)((a & b) << 24) >> 8) \
	R("v_mul_f32_sdwa v3, -v0, |v1| dst_sel:DWORD dst_unused:UNUSED_PAD " \
	  "src0_sel:DWORD src1_sel:DWORD", \
	  bits_of(-float_of(a) * float_of(clear_sign(b)))) \
	R("v_add_f32_sdwa v3, v0, v1 clamp dst_sel:DWORD " \
	  "dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", \
	  clamped(float_of(a) + float_of(b))) \
	R("v_cvt_f32_u32_sdwa v3, v0 dst_sel:DWORD dst_unused:UNUSED_PAD " \
	  "src0_sel:BYTE_1", \
	  bits_of((float)(a >> 8 & 255)))

static uint32_t clamped(float f)
{
	return bits_of(f > 1 ? 1 : f > 0 ? f : 0);
}

static const char *const texts[] = {
#define R(text, expr) text,
	ROWS
#undef R
};

static uint32_t compute(size_t row, uint32_t a, uint32_t b, uint32_t c,
			uint32_t d)
{
	size_t i = 0;

#define R(text, expr) \
	if (row == i++) \
		return (uint32_t)(expr);
	ROWS
#undef R
		return 0;
}

static void test_vector(struct lanes *t, size_t row)
{
	const bool floats = strstr(texts[row], "_f32_sdwa v3, -") ||
			    strstr(texts[row], "add_f32");
	int bad = 0;

	for (int k = 0; k < TRIES && !bad; k++) {
		uint32_t in[4][2][SOFT_LANES];

		for (int r = 0; r < 4; r++)
			for (int i = 0; i < t->w.wave_size; i++) {
				uint32_t u = draw();

				if (floats && r < 2)
					u = (u & 0x80ffffff) | 0x3f000000;
				in[r][i / 32][i % 32] = u;
				t->v[i / 32][r][i % 32] = u;
			}
		t->w.s[ISA_R_EXEC_LO] = k % 2 ? ~0u : draw();
		const uint32_t exec = t->w.s[ISA_R_EXEC_LO];
		bad += !run_text(t, texts[row]);
		for (int i = 0; i < t->w.wave_size && !bad; i++) {
			const int h = i / 32, l = i % 32;
			uint32_t want = compute(row, in[0][h][l], in[1][h][l],
						in[2][h][l], in[3][h][l]);

			if (!h && !(exec >> l & 1))
				want = in[3][h][l];
			if (t->v[h][3][l] == want)
				continue;
			diag("lane %d of 0x%x 0x%x 0x%x 0x%x: got 0x%x, wanted "
			     "0x%x",
			     i, in[0][h][l], in[1][h][l], in[2][h][l],
			     in[3][h][l], t->v[h][3][l], want);
			bad++;
		}
	}
	is_i64(bad, 0, "wave%d: %s", t->w.wave_size, texts[row]);
}

/* A compare's parts, and its mask in a register of its own. */
static void test_compare(struct lanes *t)
{
	uint64_t want = 0;

	t->w.s[ISA_R_EXEC_LO] = ~0u;
	for (int i = 0; i < t->w.wave_size; i++) {
		const uint32_t a = draw(), b = i % 3 ? draw() : a >> 8;

		t->v[i / 32][0][i % 32] = a;
		t->v[i / 32][1][i % 32] = b;
		want |= (uint64_t)((a >> 8 & 255) == (b & 255)) << i;
	}
	ok(run_text(t, "v_cmp_eq_u32_sdwa s[6:7], v0, v1 src0_sel:BYTE_1 "
		       "src1_sel:BYTE_0") ||
		   t->w.wave_size == 32,
	   "a compare of bytes runs");
	if (t->w.wave_size == 64)
		is_u64(t->w.s[6] | (uint64_t)t->w.s[7] << 32, want,
		       "and gives lanes where they are equal");
}

/* -------------------------------------------------------------- scalar ---- */

static void test_scalar(struct lanes *t)
{
	int bad = 0;

	for (int k = 0; k < TRIES; k++) {
		const uint32_t a = draw(), b = draw();
		int first = -1, first64 = -1;

		for (int i = 63; i >= 0; i--) {
			const uint32_t w = i < 32 ? a : b;

			if (w >> i % 32 & 1)
				continue;
			first64 = i;
			first = i < 32 ? i : first;
		}
		t->w.s[4] = a;
		t->w.s[5] = b;
		bad += !run_text(t, "s_ff0_i32_b32 s6, s4; "
				    "s_ff0_i32_b64 s7, s[4:5]");
		bad += t->w.s[6] != (uint32_t)first ||
		       t->w.s[7] != (uint32_t)first64;
	}
	is_i64(bad, 0, "the first zero of 32 and of 64 bits");
	t->w.start_clock = 5000;
	ok(run_text(t, "s_memtime s[8:9]; s_waitcnt lgkmcnt(0); s_nop 0; "
		       "s_memtime s[10:11]; s_waitcnt lgkmcnt(0)"),
	   "the clock is read");
	is_u64(t->w.s[10] - t->w.s[8], 3, "it goes on by instructions");
	is_u64(t->w.s[9], 0, "and has 64 bits");
}

/* -------------------------------------------------------------- memory ---- */

/* Offsets of 12 bits have a sign; FLAT's have none. */
static void test_offsets(struct lanes *t)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(memory); i++)
		memory[i] = i * 3;
	t->w.s[ISA_R_EXEC_LO] = ~0u;
	t->w.s[4] = (uint32_t)MEMORY_VA;
	t->w.s[5] = (uint32_t)(MEMORY_VA >> 32);
	lanes_set(t, 0, 2048);
	lanes_set64(t, 2, MEMORY_VA + 2048);
	ok(run_text(t, "global_load_dword v1, v0, s[4:5] offset:-2048; "
		       "global_load_dword v4, v0, s[4:5] offset:2044; "
		       "global_load_dword v5, v[2:3], off offset:-4; "
		       "flat_load_dword v6, v[2:3] offset:2044; "
		       "s_waitcnt vmcnt(0) lgkmcnt(0)"),
	   "loads with offsets run");
	is_u64(t->v[0][1][0], 0, "-2048 of an SGPR and a VGPR");
	is_u64(t->v[0][4][9], 1023 * 3, "2044");
	is_u64(t->v[0][5][31], 511 * 3, "-4 of a pair of VGPRs");
	is_u64(t->v[0][6][31], 1023 * 3, "2044 of FLAT");
}

/* Of LDS: what is compared is the first operand, what is stored the second. */
static void test_compare_store(struct lanes *t)
{
	static uint8_t lds[512];
	uint32_t got[2];

	t->group.lds = lds;
	t->group.lds_size_bytes = sizeof(lds);
	memcpy(lds, (uint32_t[]){ 7, 8 }, 8);
	t->w.s[ISA_R_EXEC_LO] = 1;
	lanes_set(t, 0, 0);
	lanes_set(t, 1, 7);
	lanes_set(t, 2, 70);
	ok(run_text(t, "ds_cmpst_rtn_b32 v3, v0, v1, v2; "
		       "ds_cmpst_rtn_b32 v4, v0, v1, v2 offset:4; "
		       "s_waitcnt lgkmcnt(0)"),
	   "compare and store runs");
	memcpy(got, lds, 8);
	is_u64(got[0], 70, "what was equal is replaced");
	is_u64(got[1], 8, "what was not stays");
	is_u64(t->v[0][3][0], 7, "the old value comes back");
	is_u64(t->v[0][4][0], 8, "in both");
	memcpy(lds, (double[]){ -0.0, 2.0 }, 16);
	lanes_set64(t, 6, 0);
	lanes_set64(t, 8, UINT64_C(0x4008000000000000));
	ok(run_text(t, "ds_cmpst_f64 v0, v[6:7], v[8:9]; s_waitcnt lgkmcnt(0)"),
	   "that of doubles runs");
	is_i64(lds[7], 0x40, "-0 equals 0");
}

/* A typed format that has another number in gfx11: 8_8_8_8_UINT. */
static void test_format(struct lanes *t)
{
	memory[0] = 0x04030201;
	t->w.s[ISA_R_EXEC_LO] = 1;
	t->w.s[8] = (uint32_t)MEMORY_VA;
	t->w.s[9] = (uint32_t)(MEMORY_VA >> 32);
	t->w.s[10] = sizeof(memory);
	t->w.s[11] = 0xfac | 60 << 12 | 3u << 28;
	ok(run_text(t, "buffer_load_format_xyzw v[4:7], off, s[8:11], 0; "
		       "tbuffer_load_format_xy v[8:9], off, s[8:11], 0 "
		       "format:[BUF_FMT_16_16_16_16_UINT]; s_waitcnt vmcnt(0)"),
	   "typed loads run");
	for (uint32_t i = 0; i < 4; i++)
		is_u64(t->v[0][4 + i][0], i + 1, "byte %u", i);
	is_u64(t->v[0][8][0], 0x0201, "a word by the instruction's format");
}

/* LDS as the target of a load: at M0, the lanes one behind the other. */
static void test_to_lds(struct lanes *t)
{
	static uint8_t lds[512];
	uint32_t got[40];

	t->group.lds = lds;
	t->group.lds_size_bytes = sizeof(lds);
	for (uint32_t i = 0; i < ARRAY_SIZE(memory); i++)
		memory[i] = 1000 + i;
	t->w.s[ISA_R_EXEC_LO] = ~0u;
	t->w.s[ISA_R_M0] = 16;
	for (uint32_t i = 0; i < 32; i++)
		t->v[0][0][i] = 4 * i;
	t->w.s[4] = (uint32_t)MEMORY_VA;
	t->w.s[5] = (uint32_t)(MEMORY_VA >> 32);
	ok(run_text(t, "global_load_dword v0, s[4:5] offset:8 lds; "
		       "s_waitcnt vmcnt(0)"),
	   "a load to LDS runs");
	memcpy(got, lds, sizeof(got));
	is_u64(got[(16 + 8) / 4], 1002, "the first lane's");
	is_u64(got[(16 + 8) / 4 + 31], 1033, "the last lane's");
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	for (int wave = 32; wave <= 64; wave += 32) {
		struct lanes *t = lanes_new(wave);

		t->env.gen = ISA_GFX10_3;
		t->env.find = find_memory;
		for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
			test_vector(t, i);
		if (wave == 64) {
			test_compare(t);
			lanes_free(t);
			continue;
		}
		test_scalar(t);
		test_offsets(t);
		test_compare_store(t);
		test_format(t);
		test_to_lds(t);
		lanes_free(t);
	}
	return plan_done();
}
