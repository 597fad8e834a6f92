/*
 * Instructions that came with gfx12, against plain C from the manual's words
 * (RDNA4 ISA 16): minima and maxima, 8-bit floats, 64-bit scalars, atomics,
 * lanes, barriers in parts, and matrices, whose registers are as AMD's matrix
 * instruction calculator lays them out.
 */
#include <math.h>

#include "isa/asm/asm.h"
#include "tests/exec/lanes.h"
#include "tests/exec/wave.h"

#define LANES_EACH(l) for (int l = 0; l < 32; l++)

static uint64_t seed = 0x12015eed;

static uint32_t draw_word(void)
{
	return (uint32_t)(lanes_random(&seed) >> 16);
}

static size_t assemble_text(const char *text, int wave, uint32_t *dw,
			    size_t max)
{
	struct isa_asm_options options = { .chip = "gfx1201", .wave = wave };
	struct isa_object o;
	struct err e = { 0 };
	size_t n;

	isa_object_init(&o);
	if (!isa_assemble(&o, "text", text, strlen(text), &options, &e)) {
		printf("Bail out! %s: %s\n", text, e.msg);
		exit(2);
	}
	n = isa_section_at(&o, 1)->data.len / 4;
	if (n > max)
		exit(2);
	memcpy(dw, isa_section_at(&o, 1)->data.data, 4 * n);
	isa_object_fini(&o);
	return n;
}

static struct lanes *new_lanes(int wave)
{
	struct lanes *t = lanes_new(wave);

	t->env.gen = ISA_GFX12;
	t->w.mode |= soft_fixed_mode(ISA_GFX12);
	return t;
}

static bool run_text(struct lanes *t, const char *text)
{
	uint32_t code[64];

	return lanes_run(t, code,
			 (int)assemble_text(text, t->w.wave_size, code, 64));
}

static uint32_t bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

static float number(uint32_t u)
{
	float f;

	memcpy(&f, &u, 4);
	return f;
}

/* ---------------------------------------------------- minimum, maximum ---- */

static const uint32_t specials[] = {
	0,	    0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
	0xff800000, 0x7fc00000, 0xffc01234, 0x7f800001, 0xff812345,
	0x00000001, 0x80000001, 0x7f7fffff, 0x40490fdb,
};

static bool is_signal(uint32_t u)
{
	return isnan(number(u)) && !(u & 0x400000);
}

static bool is_less(uint32_t a, uint32_t b)
{
	return number(a) < number(b) ||
	       (number(a) == 0 && number(b) == 0 && a >> 31 && !(b >> 31));
}

/* V_MIN_NUM_F32 and V_MAX_NUM_F32. */
static uint32_t num(uint32_t a, uint32_t b, bool most)
{
	if (isnan(number(a)) && isnan(number(b)))
		return a | 0x400000;
	if (isnan(number(a)))
		return b;
	if (isnan(number(b)))
		return a;
	return (most ? is_less(b, a) : is_less(a, b)) ? a : b;
}

/* V_MINIMUM_F32 and V_MAXIMUM_F32. */
static uint32_t extreme(uint32_t a, uint32_t b, bool most)
{
	if (is_signal(a))
		return a | 0x400000;
	if (is_signal(b))
		return b | 0x400000;
	if (isnan(number(a)))
		return a;
	if (isnan(number(b)))
		return b;
	return (most ? is_less(b, a) : is_less(a, b)) ? a : b;
}

static uint32_t med3(uint32_t a, uint32_t b, uint32_t c)
{
	const uint32_t top = num(num(a, b, true), c, true);

	if (isnan(number(a)) || isnan(number(b)) || isnan(number(c)))
		return num(num(a, b, false), c, false);
	return number(top) == number(a) ? num(b, c, true) :
	       number(top) == number(b) ? num(a, c, true) :
					  num(a, b, true);
}

static const struct {
	const char *text;
	char kind[3]; /* n or N: num; m or M: extreme; - none; d: med3 */
} orders[] = {
	{ "v_min_num_f32 v3, v0, v1", "n-" },
	{ "v_max_num_f32 v3, v0, v1", "N-" },
	{ "v_minimum_f32 v3, v0, v1", "m-" },
	{ "v_maximum_f32 v3, v0, v1", "M-" },
	{ "v_min3_num_f32 v3, v0, v1, v2", "nn" },
	{ "v_max3_num_f32 v3, v0, v1, v2", "NN" },
	{ "v_minimum3_f32 v3, v0, v1, v2", "mm" },
	{ "v_maximum3_f32 v3, v0, v1, v2", "MM" },
	{ "v_minmax_num_f32 v3, v0, v1, v2", "nN" },
	{ "v_maxmin_num_f32 v3, v0, v1, v2", "Nn" },
	{ "v_minimummaximum_f32 v3, v0, v1, v2", "mM" },
	{ "v_maximumminimum_f32 v3, v0, v1, v2", "Mm" },
	{ "v_med3_num_f32 v3, v0, v1, v2", "d-" },
};

static uint32_t step_of(char kind, uint32_t a, uint32_t b)
{
	return kind == 'n' || kind == 'N' ? num(a, b, kind == 'N') :
					    extreme(a, b, kind == 'M');
}

static uint32_t draw_special(void)
{
	return draw_word() % 4 ? specials[draw_word() % ARRAY_SIZE(specials)] :
				 draw_word();
}

/* The same by handlers and, run often, by what is made of them. */
static void test_orders(void)
{
	struct lanes *t = new_lanes(32);

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		const char *k = orders[i].kind;
		int wrong = 0;

		for (int n = 0; n < 40; n++) {
			LANES_EACH(l)
			for (int r = 0; r < 3; r++)
				t->v[0][r][l] = draw_special();
			run_text(t, orders[i].text);
			LANES_EACH(l)
			{
				const uint32_t a = t->v[0][0][l];
				const uint32_t b = t->v[0][1][l];
				const uint32_t c = t->v[0][2][l];
				uint32_t want = k[0] == 'd' ?
							med3(a, b, c) :
							step_of(k[0], a, b);

				if (k[1] != '-')
					want = step_of(k[1], want, c);
				if (t->v[0][3][l] != want && !wrong++)
					diag("%x %x %x: %x, wanted %x", a, b, c,
					     t->v[0][3][l], want);
			}
		}
		is_u64((uint64_t)wrong, 0, "%s", orders[i].text);
	}
	lanes_free(t);
}

/* ------------------------------------------------------- 8-bit floats ---- */

/* OCP's E4M3 and E5M2. */
static double value8(uint32_t u, bool bf8)
{
	const int f = bf8 ? 2 : 3, bias = bf8 ? 15 : 7;
	const int e = (u & 0x7f) >> f, m = u & ((1 << f) - 1);
	double v = e ? ldexp(m + (1 << f), e - bias - f) :
		       ldexp(m, 1 - bias - f);

	if (bf8 && e == 31)
		v = m ? NAN : INFINITY;
	if (!bf8 && (u & 0x7f) == 0x7f)
		v = NAN;
	return u & 0x80 ? -v : v;
}

/* The nearest, of two the even one; beyond the largest what overflow gives. */
static uint32_t nearest8(float f, bool bf8, bool saturates)
{
	const uint32_t top = bf8 ? 0x7b : 0x7e, sign = signbit(f) ? 0x80 : 0;
	const double a = fabs((double)f);
	const double limit = value8(top, bf8) +
			     (value8(top, bf8) - value8(top - 1, bf8)) / 2;
	uint32_t best = 0;

	if (isnan(f))
		return sign | (bf8 ? 0x7e : 0x7f);
	if (isinf(f) || a > limit || (a == limit && top & 1))
		return sign | (saturates ? top : top + 1);
	for (uint32_t u = 1; u <= top; u++) {
		const double d = fabs(value8(u, bf8) - a);
		const double old = fabs(value8(best, bf8) - a);

		if (d < old || (d == old && !(u & 1)))
			best = u;
	}
	return sign | best;
}

static float random_small(void)
{
	return ldexpf((float)(int32_t)draw_word(),
		      (int)(draw_word() % 40) - 55);
}

static void test_float8(bool bf8, bool saturates)
{
	const char *name = bf8 ? "bf8" : "fp8";
	struct lanes *t = new_lanes(32);
	int narrow = 0, wide = 0, random = 0;
	char text[256];

	if (saturates)
		t->w.mode |= SOFT_MODE_FP16_OVFL;
	for (int n = 0; n < 60; n++) {
		LANES_EACH(l)
		{
			t->v[0][0][l] = n % 8 ? bits(random_small()) :
						draw_special();
			t->v[0][1][l] = bits(random_small());
			t->v[0][2][l] = 0x55aa55aa;
			t->v[0][4][l] = draw_word();
			t->v[0][6][l] = 0;
			t->v[0][7][l] = n * 32 + l < 256 ?
						(uint32_t)(n * 32 + l) << 16 :
						0;
			t->v[0][10][l] = UINT32_MAX;
		}
		snprintf(text, sizeof(text),
			 "v_cvt_pk_%s_f32 v2, v0, v1 op_sel:[0,0,1]\n"
			 "v_cvt_sr_%s_f32 v6, v0, v10 byte_sel:1\n"
			 "v_mov_b32 v10, 0\n"
			 "v_cvt_sr_%s_f32 v6, v0, v10 byte_sel:3\n"
			 "v_cvt_f32_%s_e64 v8, v7 byte_sel:2\n",
			 name, name, name, name);
		run_text(t, text);
		LANES_EACH(l)
		{
			const float a = number(t->v[0][0][l]);
			const float b = number(t->v[0][1][l]);
			const uint32_t want = nearest8(a, bf8, saturates)
						      << 16 |
					      nearest8(b, bf8, saturates) << 24;
			const double low = value8(t->v[0][6][l] >> 24, bf8);
			const double high =
				value8(t->v[0][6][l] >> 8 & 0xff, bf8);
			const double in = value8(t->v[0][7][l] >> 16, bf8);
			const double out = (double)number(t->v[0][8][l]);

			narrow += t->v[0][2][l] != (want | 0x55aa);
			wide += isnan(in) ? !isnan(out) : in != out;
			/* Cut, and with all bits added, rounded away. */
			if (fabsf(a) < 400)
				random += fabs(low) > fabs((double)a);
			if (fabsf(a) < 400 && fabsf(a) > 0x1p-6f)
				random += fabs(high) < fabs((double)a);
		}
	}
	is_u64((uint64_t)narrow, 0, "v_cvt_pk_%s_f32%s", name,
	       saturates ? ", saturated" : "");
	is_u64((uint64_t)random, 0, "v_cvt_sr_%s_f32 cuts and adds", name);
	is_u64((uint64_t)wide, 0, "v_cvt_f32_%s", name);
	lanes_free(t);
}

/* -------------------------------------------------------------- matrices ----
 */

enum type { F16, BF16, FP8, BF8, IU8, IU4 };
static const int type_bits[] = { 16, 16, 8, 8, 8, 4 };

static const struct matrix {
	const char *name;
	enum type a, b;
	char acc; /* f: f32, h: f16, b: bf16, i: i32 */
	int k;
	bool sparse;
} matrices[] = {
	{ "wmma_f32_16x16x16_f16", F16, F16, 'f', 16, false },
	{ "wmma_f32_16x16x16_bf16", BF16, BF16, 'f', 16, false },
	{ "wmma_f16_16x16x16_f16", F16, F16, 'h', 16, false },
	{ "wmma_bf16_16x16x16_bf16", BF16, BF16, 'b', 16, false },
	{ "wmma_i32_16x16x16_iu8", IU8, IU8, 'i', 16, false },
	{ "wmma_i32_16x16x16_iu4", IU4, IU4, 'i', 16, false },
	{ "wmma_i32_16x16x32_iu4", IU4, IU4, 'i', 32, false },
	{ "wmma_f32_16x16x16_fp8_fp8", FP8, FP8, 'f', 16, false },
	{ "wmma_f32_16x16x16_fp8_bf8", FP8, BF8, 'f', 16, false },
	{ "wmma_f32_16x16x16_bf8_fp8", BF8, FP8, 'f', 16, false },
	{ "wmma_f32_16x16x16_bf8_bf8", BF8, BF8, 'f', 16, false },
	{ "swmmac_f32_16x16x32_f16", F16, F16, 'f', 32, true },
	{ "swmmac_f32_16x16x32_bf16", BF16, BF16, 'f', 32, true },
	{ "swmmac_f16_16x16x32_f16", F16, F16, 'h', 32, true },
	{ "swmmac_bf16_16x16x32_bf16", BF16, BF16, 'b', 32, true },
	{ "swmmac_i32_16x16x32_iu8", IU8, IU8, 'i', 32, true },
	{ "swmmac_i32_16x16x32_iu4", IU4, IU4, 'i', 32, true },
	{ "swmmac_i32_16x16x64_iu4", IU4, IU4, 'i', 64, true },
	{ "swmmac_f32_16x16x32_fp8_fp8", FP8, FP8, 'f', 32, true },
	{ "swmmac_f32_16x16x32_fp8_bf8", FP8, BF8, 'f', 32, true },
	{ "swmmac_f32_16x16x32_bf8_fp8", BF8, FP8, 'f', 32, true },
	{ "swmmac_f32_16x16x32_bf8_bf8", BF8, BF8, 'f', 32, true },
};

/* Where an element is: register behind the first, lane, lowest bit. */
struct at {
	int reg, lane, bit;
};

/* A of WMMA, and B of both (without the row or column). */
static struct at dense_at(enum type t, int k_all, bool sparse, int wave, int k)
{
	const bool wide = wave == 64;

	if (t <= BF16 && !sparse)
		return (struct at){ wide ? k / 2 % 2 : 2 * (k / 8) + k / 2 % 2,
				    16 * (k / 4 % 2) +
					    (wide ? 32 * (k / 8) : 0),
				    16 * (k % 2) };
	if (t <= BF16)
		return (struct at){ wide ? k / 2 % 4 : 4 * (k / 16) + k / 2 % 4,
				    wide ? 16 * (k / 8) : 16 * (k / 8 % 2),
				    16 * (k % 2) };
	if (t != IU4 && !sparse)
		return (struct at){ wide ? 0 : k / 4 % 2,
				    16 * (k / 8) +
					    (wide ? 32 * (k / 4 % 2) : 0),
				    8 * (k % 4) };
	if (t != IU4)
		return (struct at){ wide ? k / 4 % 2 : k / 4 % 4,
				    16 * (k / 16) +
					    (wide ? 32 * (k / 8 % 2) : 0),
				    8 * (k % 4) };
	if (k_all == 16)
		return (struct at){ 0, 16 * (k / 8), 4 * (k % 8) };
	if (k_all == 32)
		return (struct at){ wide ? 0 : k / 8 % 2,
				    16 * (k / 16) +
					    (wide ? 32 * (k / 8 % 2) : 0),
				    4 * (k % 8) };
	return (struct at){ wide ? k / 8 % 2 : k / 8 % 4,
			    16 * (k / 32) + (wide ? 32 * (k / 16 % 2) : 0),
			    4 * (k % 8) };
}

/* The first of two elements that stand for those from k on, and their index. */
static struct at sparse_at(enum type t, int k_all, int wave, int k,
			   struct at *index)
{
	const bool wide = wave == 64;

	if (t <= BF16) {
		const int lane = wide ? 16 * (k / 8) : 16 * (k / 8 % 2);

		*index = (struct at){
			0, lane, (wide ? 0 : 8 * (k / 16)) + 4 * (k / 4 % 2)
		};
		return (struct at){ (wide ? 0 : 2 * (k / 16)) + k / 4 % 2, lane,
				    0 };
	}
	if (t != IU4) {
		const int lane = 16 * (k / 16) + (wide ? 32 * (k / 8 % 2) : 0);

		*index = (struct at){ 0, lane, 4 * (k / 4 % (wide ? 2 : 4)) };
		return (struct at){ wide ? 0 : k / 8 % 2, lane,
				    16 * (k / 4 % 2) };
	}
	if (k_all == 32) {
		*index = (struct at){ 0, 16 * (k / 16), 4 * (k / 4 % 4) };
		return (struct at){ 0, 16 * (k / 16), 8 * (k / 4 % 4) };
	}
	*index = (struct at){ 0, 16 * (k / 32) + (wide ? 32 * (k / 16 % 2) : 0),
			      4 * (k / 4 % (wide ? 4 : 8)) };
	return (struct at){ wide ? 0 : k / 16 % 2, index->lane,
			    8 * (k / 4 % 4) };
}

static uint32_t *word_of(struct lanes *t, int first, struct at x, int low)
{
	return &t->v[(x.lane + low) / 32][first + x.reg][(x.lane + low) % 32];
}

/* A small integer, which all types hold; unsigned where they are. */
static uint32_t element_bits(enum type t, int v)
{
	static const uint8_t fp8[] = { 0, 0x38, 0x40, 0x44, 0x48 },
			     bf8[] = { 0, 0x3c, 0x40, 0x42, 0x44 };

	switch (t) {
	case F16:
		return v ? (uint32_t)((v < 0 ? 0x8000 : 0) |
				      (bf8[abs(v)] << 8)) :
			   0;
	case BF16:
		return bits((float)v) >> 16;
	case FP8:
		return fp8[abs(v)] | (v < 0 ? 0x80 : 0);
	case BF8:
		return bf8[abs(v)] | (v < 0 ? 0x80 : 0);
	case IU8:
		return (uint32_t)v & 0xff;
	default:
		return (uint32_t)v & 15;
	}
}

static uint32_t sum_bits(char acc, double v)
{
	return acc == 'f' ? bits((float)v) :
	       acc == 'b' ? bits((float)v) >> 16 :
	       acc == 'i' ? (uint32_t)(int32_t)v :
			    0;
}

/* Register, lane and bit of C and D. */
static struct at sum_at(char acc, int wave, int row)
{
	const int n = wave == 64 ? row % 4 : row % 8;
	const int lane = 16 * (row / 8) + (wave == 64 ? 32 * (row / 4 % 2) : 0);

	return acc == 'h' || acc == 'b' ?
		       (struct at){ n / 2, lane, 16 * (n % 2) } :
		       (struct at){ n, lane, 0 };
}

static double half_value(uint32_t h)
{
	const int e = h >> 10 & 31, m = h & 0x3ff;

	return (h & 0x8000 ? -1 : 1) *
	       ldexp(e ? m | 0x400 : m, (e ? e : 1) - 25);
}

enum { A = 0, B = 16, C = 32, INDEX = 48 };

static void put_element(struct lanes *t, int first, struct at x, int low,
			uint32_t v)
{
	*word_of(t, first, x, low) |= v << x.bit;
}

static void fill_a(struct lanes *t, const struct matrix *m, double (*a)[64])
{
	const int wave = t->w.wave_size;

	for (int i = 0; i < 16; i++)
		for (int k = 0; k < m->k; k += m->sparse ? 4 : 1) {
			struct at x, index = { 0 };
			int v = (int)(draw_word() % 9) - 4,
			    w = (int)(draw_word() % 9) - 4;
			const int p = (int)(draw_word() % 3);
			const int q =
				p + 1 + (int)(draw_word() % (3 - (unsigned)p));
			const bool repeats =
				wave == 64 && m->a == IU4 &&
				(m->k == 16 || (m->sparse && m->k == 32));

			for (int copy = 0; copy <= repeats; copy++) {
				x = m->sparse ? sparse_at(m->a, m->k, wave, k,
							  &index) :
						dense_at(m->a, m->k, false,
							 wave, k);
				x.lane += 32 * copy, index.lane += 32 * copy;
				put_element(t, A, x, i, element_bits(m->a, v));
				if (!m->sparse)
					continue;
				if (type_bits[m->a] == 16)
					x.bit = 16;
				else
					x.bit += type_bits[m->a];
				put_element(t, A, x, i, element_bits(m->a, w));
				put_element(t, INDEX, index, i,
					    (uint32_t)(p | q << 2));
			}
			if (m->sparse)
				a[i][k + p] = v, a[i][k + q] = w;
			else
				a[i][k] = v;
		}
}

static void fill_b(struct lanes *t, const struct matrix *m, double (*b)[64])
{
	const int wave = t->w.wave_size;

	for (int j = 0; j < 16; j++)
		for (int k = 0; k < m->k; k++) {
			struct at x = dense_at(m->b, m->k, m->sparse, wave, k);
			const int v = (int)(draw_word() % 9) - 4;

			put_element(t, B, x, j, element_bits(m->b, v));
			if (wave == 64 && m->b == IU4 && m->k == 16) {
				x.lane += 32;
				put_element(t, B, x, j, element_bits(m->b, v));
			}
			b[j][k] = v;
		}
}

static int registers_of(enum type t, int k, int wave)
{
	const int n = k * type_bits[t] * 16 / 32 / wave;

	return n ? n : 1;
}

static void print_range(char *out, int first, int n)
{
	if (n == 1)
		sprintf(out, "v%d", first);
	else
		sprintf(out, "v[%d:%d]", first, first + n - 1);
}

static void matrix_text(const struct matrix *m, int wave, char out[256])
{
	const bool half = m->acc == 'h' || m->acc == 'b';
	const int sums = 256 / wave / (half ? 2 : 1);
	char a[24], b[24], c[24];

	print_range(a, A,
		    registers_of(m->a, m->sparse ? m->k / 2 : m->k, wave));
	print_range(b, B, registers_of(m->b, m->k, wave));
	print_range(c, C, sums);
	sprintf(out, "v_%s %s, %s, %s, %s%s\n", m->name, c, a, b,
		m->sparse ? "v48" : c, m->acc != 'i' ? "" : " neg_lo:[1,1,0]");
}

/* Is the result where gfx11's accumulators have it? */
static bool fits_gfx11(struct lanes *t, double (*c)[16])
{
	bool same = true;

	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++)
			same &= (double)number(t->v[0][C + i / 2]
						   [i % 2 * 16 + j]) ==
				c[i][j];
	return same;
}

static void test_matrix(const struct matrix *m, int wave)
{
	struct lanes *t = new_lanes(wave);
	double a[16][64] = { 0 }, b[16][64] = { 0 }, c[16][16];
	char text[256];
	int wrong = 0;

	fill_a(t, m, a);
	fill_b(t, m, b);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++) {
			c[i][j] = m->acc == 'h' ? 0 :
						  (int)(draw_word() % 64) - 32;
			put_element(t, C, sum_at(m->acc, wave, i), j,
				    sum_bits(m->acc, c[i][j]));
		}
	matrix_text(m, wave, text);
	run_text(t, text);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++) {
			const struct at x = sum_at(m->acc, wave, i);
			const uint32_t got = *word_of(t, C, x, j) >> x.bit;
			double v;

			for (int k = 0; k < m->k; k++)
				c[i][j] += a[i][k] * b[j][k];
			v = m->acc == 'f' ? (double)number(got) :
			    m->acc == 'i' ? (double)(int32_t)got :
			    m->acc == 'b' ? (double)number(got << 16) :
					    half_value(got & 0xffff);
			/* Eight bits of bf16. */
			if (m->acc == 'b' ?
				    fabs(v - c[i][j]) > fabs(c[i][j]) / 256 :
				    v != c[i][j]) {
				if (!wrong++)
					diag("row %d, column %d: %g, wanted %g",
					     i, j, v, c[i][j]);
			}
		}
	is_u64((uint64_t)wrong, 0, "v_%s, wave%d", m->name, wave);
	if (m->acc == 'f' && wave == 32)
		ok(!fits_gfx11(t, c), "v_%s: not where gfx11 has it", m->name);
	lanes_free(t);
}

/* ------------------------------------------------------ scalars, lanes ---- */

static void test_scalars(void)
{
	struct lanes *t = new_lanes(32);

	t->w.s[2] = 0xffffffff, t->w.s[3] = 7, t->w.s[4] = 2, t->w.s[5] = 1;
	t->w.s[20] = bits(4.0f);
	run_text(t, "s_add_nc_u64 s[6:7], s[2:3], s[4:5]\n"
		    "s_sub_nc_u64 s[8:9], s[4:5], s[2:3]\n"
		    "s_mul_u64 s[10:11], s[2:3], s[4:5]\n"
		    "s_add_co_u32 s12, s2, s4\n"
		    "s_add_co_ci_u32 s13, s3, s5\n"
		    "s_min_num_f32 s14, 0x7fc00000, 2.0\n"
		    "s_maximum_f32 s15, 0x7fc00000, 2.0\n"
		    "v_s_rcp_f32 s16, -s20\n"
		    "v_s_sqrt_f32 s17, s20\n");
	is_u64(t->w.s[6], 1, "s_add_nc_u64");
	is_u64(t->w.s[7], 9, "and its carry");
	is_u64(t->w.s[8], 3, "s_sub_nc_u64");
	is_u64(t->w.s[9], 0xfffffff9, "and its borrow");
	is_u64(t->w.s[10] | (uint64_t)t->w.s[11] << 32,
	       0x7ffffffffull * 0x100000002ull, "s_mul_u64");
	is_u64(t->w.s[12], 1, "s_add_co_u32");
	is_u64(t->w.s[13], 9, "s_add_co_ci_u32");
	is_u64(t->w.s[14], bits(2.0f), "s_min_num_f32 prefers numbers");
	is_u64(t->w.s[15], 0x7fc00000, "s_maximum_f32 does not");
	is_u64(t->w.s[16], bits(-0.25f), "v_s_rcp_f32");
	is_u64(t->w.s[17], bits(2.0f), "v_s_sqrt_f32");
	lanes_free(t);
}

static void test_permlane(void)
{
	struct lanes *t = new_lanes(64);
	int wrong = 0;

	for (int l = 0; l < 64; l++) {
		t->v[l / 32][0][l % 32] = (uint32_t)l;
		t->v[l / 32][1][l % 32] = draw_word();
	}
	run_text(t, "v_permlane16_var_b32 v2, v0, v1\n"
		    "v_permlanex16_var_b32 v3, v0, v1\n");
	for (int l = 0; l < 64; l++) {
		const uint32_t to = t->v[l / 32][1][l % 32] & 15;

		wrong += t->v[l / 32][2][l % 32] != ((uint32_t)l & ~15u) + to;
		wrong += t->v[l / 32][3][l % 32] !=
			 (((uint32_t)l & ~15u) ^ 16) + to;
	}
	is_u64((uint64_t)wrong, 0, "v_permlane16_var_b32 and its kin");
	lanes_free(t);
}

/* ---------------------------------------------------------------- memory ----
 */

static void bench_new(struct bench *b, int wave, int waves)
{
	bench_init(b, wave, waves);
	b->env.gen = ISA_GFX12;
	for (int i = 0; i < waves; i++) {
		b->wave[i].s[2] = (uint32_t)BENCH_DATA;
		b->wave[i].s[3] = (uint32_t)(BENCH_DATA >> 32);
	}
}

static void bench_run12(struct bench *b, const char *text)
{
	uint32_t code[128];

	bench_load(b, code,
		   4 * assemble_text(text, b->wave[0].wave_size, code, 128));
	for (int n = 0; n < 8; n++) {
		for (int i = 0; i < b->group.n_waves; i++)
			soft_wave_run(&b->wave[i], 100000);
		soft_open_barrier(&b->group, NULL, NULL);
	}
}

static void test_memory(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];

	bench_new(&b, 32, 1);
	b.mem->u32[0] = 0x807fff01, b.mem->u32[1] = 10, b.mem->u32[2] = 10;
	b.mem->u32[3] = 0x3c007bff, b.mem->u32[4] = 0x3f804000;
	b.mem->u32[5] = 0x7fc00000;
	b.mem->u32[500] = 77;
	w->s[ISA_R_EXEC_LO] = 1;
	w->v[0][1][0] = 4, w->v[0][2][0] = 11;
	w->v[0][3][0] = 0x3c003c00, w->v[0][4][0] = 0x3f803f80;
	w->v[0][5][0] = bits(3.0f), w->v[0][10][0] = 0x100000;
	bench_run12(
		&b,
		"s_load_u8 s8, s[2:3], 0x2\n"
		"s_load_i8 s9, s[2:3], 0x1\n"
		"s_load_i16 s10, s[2:3], 0x2\n"
		"s_load_b96 s[12:14], s[2:3], 0x0\n"
		"global_atomic_cond_sub_u32 v20, v0, v1, s[2:3] offset:4 th:TH_ATOMIC_RETURN\n"
		"global_atomic_sub_clamp_u32 v21, v0, v2, s[2:3] offset:8 th:TH_ATOMIC_RETURN\n"
		"global_atomic_pk_add_f16 v0, v3, s[2:3] offset:12\n"
		"global_atomic_pk_add_bf16 v0, v4, s[2:3] offset:16\n"
		"global_atomic_min_num_f32 v0, v5, s[2:3] offset:20\n"
		"global_load_b32 v22, v10, s[2:3] offset:-1046576\n");
	is_u64(w->s[8], 0x7f, "s_load_u8");
	is_u64(w->s[9], 0xffffffff, "s_load_i8");
	is_u64(w->s[10], 0xffff807f, "s_load_i16");
	is_u64(w->s[14], 10, "s_load_b96");
	is_u64(b.mem->u32[1], 6, "cond_sub: 10 - 4");
	is_u64(w->v[0][20][0], 10, "and what was there");
	is_u64(b.mem->u32[2], 0, "sub_clamp: 10 - 11");
	is_u64(b.mem->u32[3], 0x40007bff, "pk_add_f16: 1 + 1, 65504 + 1");
	is_u64(b.mem->u32[4], 0x40004040, "pk_add_bf16: 1 + 1, 2 + 1");
	is_u64(b.mem->u32[5], bits(3.0f), "min_num_f32: a number and a NaN");
	is_u64(w->v[0][22][0], 77, "offsets of 24 bits");
	bench_fini(&b);
}

/* 16 x 16 of 16 bits: lane l has row l % 16, columns from 8 * (l / 16) on. */
static void test_transposed(void)
{
	struct bench b;
	struct soft_wave *w = &b.wave[0];
	int wrong = 0;

	bench_new(&b, 32, 1);
	for (int i = 0; i < 256; i++)
		memcpy(&b.mem->u8[2 * i], &(uint16_t){ (uint16_t)(i * 257) },
		       2);
	for (uint32_t l = 0; l < 32; l++)
		w->v[0][0][l] = l % 16 * 32 + l / 16 * 16;
	bench_run12(&b, "global_load_tr_b128 v[4:7], v0, s[2:3]\n");
	for (uint32_t l = 0; l < 32; l++)
		for (uint32_t e = 0; e < 8; e++) {
			const uint32_t row = 8 * (l / 16) + e, col = l % 16;

			wrong += (w->v[0][4 + e / 2][l] >> 16 * (e % 2) &
				  0xffff) != (uint16_t)((row * 16 + col) * 257);
		}
	is_u64((uint64_t)wrong, 0, "global_load_tr_b128");
	bench_fini(&b);
}

/* -------------------------------------------------------------- barriers ----
 */

static void test_barriers(void)
{
	struct bench b;

	bench_new(&b, 32, 2);
	b.wave[0].s[8] = 0, b.wave[1].s[8] = 1;
	/* Wave 0 goes on behind its signal, and waits for what wave 1 stores.
	 */
	bench_run12(&b, "s_cmp_eq_u32 s8, 0\n"
			"s_cbranch_scc0 other\n"
			"s_barrier_signal -1\n"
			"s_mov_b32 s9, 5\n"
			"s_barrier_wait 0xffff\n"
			"s_load_b32 s10, s[2:3], 0x0\n"
			"s_barrier_signal -1\n"
			"s_barrier_wait 0xffff\n"
			"s_endpgm\n"
			"other:\n"
			"v_mov_b32 v0, 0\n"
			"v_mov_b32 v1, 42\n"
			"global_store_b32 v0, v1, s[2:3]\n"
			"s_barrier_signal_isfirst -1\n"
			"s_cselect_b32 s11, 1, 2\n"
			"s_barrier_wait 0xffff\n"
			"s_get_barrier_state s12, -1\n"
			"s_barrier_signal -1\n"
			"s_barrier_wait 0xffff\n");
	is_u64(b.wave[0].s[9], 5, "a wave goes on behind its signal");
	is_u64(b.wave[0].s[10], 42, "and waits for the other");
	is_u64(b.wave[1].s[11], 2, "which was not the first");
	is_u64(b.wave[1].s[12] >> 4 & 0x7f, 2, "of two members");
	is_u64(b.wave[0].state, SOFT_ENDED, "all end");
	is_u64(b.wave[1].state, SOFT_ENDED, "the other one, too");
	bench_fini(&b);

	bench_new(&b, 32, 2);
	b.wave[0].s[8] = 0, b.wave[1].s[8] = 1;
	bench_run12(&b, "s_cmp_eq_u32 s8, 0\n"
			"s_cbranch_scc0 other\n"
			"s_mov_b32 m0, 0x20000\n"
			"s_barrier_init 3\n"
			"s_barrier_join 3\n"
			"s_barrier_signal 3\n"
			"s_barrier_wait 3\n"
			"s_load_b32 s10, s[2:3], 0x4\n"
			"s_endpgm\n"
			"other:\n"
			"v_mov_b32 v0, 4\n"
			"v_mov_b32 v1, 43\n"
			"global_store_b32 v0, v1, s[2:3]\n"
			"s_barrier_join 3\n"
			"s_barrier_leave\n"
			"s_cselect_b32 s11, 1, 2\n");
	is_u64(b.wave[0].state, SOFT_ENDED, "a named barrier opens");
	is_u64(b.wave[0].s[10], 43, "when the other leaves it");
	is_u64(b.wave[1].s[11], 1, "which belonged to it");
	bench_fini(&b);
}

int main(void)
{
	test_orders();
	for (int i = 0; i < 4; i++)
		test_float8(i & 1, i & 2);
	for (size_t i = 0; i < ARRAY_SIZE(matrices); i++) {
		test_matrix(&matrices[i], 32);
		test_matrix(&matrices[i], 64);
	}
	test_scalars();
	test_permlane();
	test_memory();
	test_transposed();
	test_barriers();
	return plan_done();
}
