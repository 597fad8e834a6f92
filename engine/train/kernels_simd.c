/*
 * engine/train/kernels_simd.c - kernels of one level of the instruction set
 * (kernels.h says what each computes).
 */
#include <math.h>

#include "engine/train/kernels.h"
#include "engine/weights/kernels_simd.h"

/* ---- small products: a tile of sums stays in registers ---- */

#define MOST_ROWS 6
#if LANES == 16
#define MOST_VECS 4
#else
#define MOST_VECS 2
#endif

struct small {
	size_t k;
	const float *a;
	size_t a_row, a_col;
	const float *b;
	size_t ldb;
	float *c;
	size_t ldc;
	bool add;
};

static ALWAYS void run_small(const struct small *s, const int rows,
			     const int vecs)
{
	vf sum[MOST_ROWS][MOST_VECS];

	for (int i = 0; i < rows; i++)
		for (int j = 0; j < vecs; j++)
			sum[i][j] = s->add ?
				load(s->c + i * s->ldc + j * LANES) : splat(0);
	for (size_t p = 0; p < s->k; p++) {
		const float *b = s->b + p * s->ldb, *a = s->a + p * s->a_col;
		for (int i = 0; i < rows; i++) {
			vf x = splat(a[i * s->a_row]);
			for (int j = 0; j < vecs; j++)
				sum[i][j] = fma_(x, load(b + j * LANES),
						 sum[i][j]);
		}
	}
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < vecs; j++)
			store(s->c + i * s->ldc + j * LANES, sum[i][j]);
}

#define ROWS_OF(rows, vecs)                                              \
	static void small_##rows##_##vecs(const struct small *s)         \
	{                                                                \
		run_small(s, rows, vecs);                                \
	}
#define TILES(vecs)                                                      \
	ROWS_OF(1, vecs) ROWS_OF(2, vecs) ROWS_OF(3, vecs)               \
	ROWS_OF(4, vecs) ROWS_OF(5, vecs) ROWS_OF(6, vecs)
#define NAMES(v)                                                         \
	{ small_1_##v, small_2_##v, small_3_##v, small_4_##v,            \
	  small_5_##v, small_6_##v }
TILES(1)
TILES(2)
#if MOST_VECS > 2
TILES(3)
TILES(4)
#endif
static void (*const small[MOST_VECS][MOST_ROWS])(const struct small *s) = {
	NAMES(1), NAMES(2),
#if MOST_VECS > 2
	NAMES(3), NAMES(4),
#endif
};

static void multiply_block(size_t m, size_t n, size_t k, const float *a,
		     size_t a_row, size_t a_col, const float *b, size_t ldb,
		     float *c, size_t ldc, bool add)
{
	for (size_t j = 0, vecs; j < n; j += vecs * LANES) {
		vecs = (n - j) / LANES;
		vecs = vecs > MOST_VECS ? MOST_VECS : vecs;
		for (size_t i = 0, rows; i < m; i += rows) {
			rows = m - i > MOST_ROWS ? MOST_ROWS : m - i;
			const struct small s = {
				k, a + i * a_row, a_row, a_col, b + j, ldb,
				c + i * ldc + j, ldc, add,
			};
			small[vecs - 1][rows - 1](&s);
		}
	}
}

#if LANES == 16
#define EACH(f, s) \
	f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), \
	f(7, s), f(8, s), f(9, s), f(10, s), f(11, s), f(12, s), f(13, s), \
	f(14, s), f(15, s)
#elif LANES == 8
#define EACH(f, s) \
	f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s)
#else
#define EACH(f, s) f(0, s), f(1, s), f(2, s), f(3, s)
#endif
/* Lane k of a row, and of the row s below, from the lanes of both. */
#define UPPER(k, s) ((k) & (s) ? LANES + (k) - (s) : (k))
#define LOWER(k, s) ((k) & (s) ? LANES + (k) : (k) + (s))
#define TURN(s) \
	_Pragma("GCC unroll 16") \
	for (int i = 0; i < LANES; i++) { \
		if (i & (s)) \
			continue; \
		vf x = r[i], y = r[i + (s)]; \
		r[i] = __builtin_shufflevector(x, y, EACH(UPPER, s)); \
		r[i + (s)] = __builtin_shufflevector(x, y, EACH(LOWER, s)); \
	}

/*
 * A square of vectors, turned: blocks of 1, 2, 4 ... lanes change places with
 * those of the row as many below.
 */
static ALWAYS void turn_square(const float *in, size_t ldi, float *out,
			       size_t ldo)
{
	vf r[LANES];

	for (int i = 0; i < LANES; i++)
		r[i] = load(in + i * ldi);
	TURN(1)
	TURN(2)
#if LANES > 4
	TURN(4)
#endif
#if LANES > 8
	TURN(8)
#endif
	for (int i = 0; i < LANES; i++)
		store(out + i * ldo, r[i]);
}

static void turn_some(const float *in, size_t ldi, size_t rows, size_t cols,
		      float *out, size_t ldo)
{
	for (size_t j = 0; j < cols; j++)
		for (size_t i = 0; i < rows; i++)
			out[j * ldo + i] = in[i * ldi + j];
}

static void turn_block(const float *in, size_t ldi, size_t rows, size_t cols,
		       float *out, size_t ldo)
{
	size_t whole = cols / LANES * LANES, i = 0;

	for (; i + LANES <= rows; i += LANES) {
		for (size_t j = 0; j < whole; j += LANES)
			turn_square(in + i * ldi + j, ldi, out + j * ldo + i,
				    ldo);
		turn_some(in + i * ldi + whole, ldi, LANES, cols - whole,
			  out + whole * ldo + i, ldo);
	}
	turn_some(in + i * ldi, ldi, rows - i, cols, out + i, ldo);
}

/* ---- rows ---- */

static float square_sum(const float *x, uint32_t n)
{
	vf s = { 0 };
	uint32_t i = 0;

	for (; i + LANES <= n; i += LANES)
		s = fma_(load(x + i), load(x + i), s);
	float v = sum_lanes(s);
	for (; i < n; i++)
		v += x[i] * x[i];
	return v;
}

static float norm_row(const float *x, const float *w, uint32_t n, float eps,
		  float *y)
{
	float scale = 1 / sqrtf(square_sum(x, n) / (float)n + eps);

	for (uint32_t i = 0; i < n; i++)
		y[i] = x[i] * scale * w[i];
	return scale;
}

static float dot_of_three(const float *a, const float *b, const float *c,
			  uint32_t n)
{
	vf s = { 0 };
	uint32_t i = 0;

	for (; i + LANES <= n; i += LANES)
		s = fma_(load(a + i) * load(b + i), load(c + i), s);
	float v = sum_lanes(s);
	for (; i < n; i++)
		v += a[i] * b[i] * c[i];
	return v;
}

static void norm_back(const float *dy, const float *x, const float *w,
		      uint32_t n, float scale, bool add, float *dx, float *dw)
{
	float mean = dot_of_three(dy, w, x, n) * scale * scale / (float)n;

	if (add)
		for (uint32_t i = 0; i < n; i++)
			dx[i] += scale * (dy[i] * w[i] - x[i] * mean);
	else
		for (uint32_t i = 0; i < n; i++)
			dx[i] = scale * (dy[i] * w[i] - x[i] * mean);
	for (uint32_t i = 0; i < n; i++)
		dw[i] += dy[i] * x[i] * scale;
}

static void swiglu_back(const float *dy, const float *gate, const float *up,
			size_t n, float *dgate, float *dup)
{
	float g[LANES] = { 0 }, u[LANES] = { 0 }, d[LANES] = { 0 };

	for (size_t i = 0; i < n; i += LANES) {
		size_t some = n - i < LANES ? n - i : LANES;
		bool all = some == LANES;
		if (!all) {
			memcpy(g, gate + i, some * sizeof(*g));
			memcpy(u, up + i, some * sizeof(*u));
			memcpy(d, dy + i, some * sizeof(*d));
		}
		vf x = load(all ? gate + i : g), y = load(all ? dy + i : d);
		vf s = 1 / (1 + exp_(-x));
		vf by_up = y * x * s;
		vf by_gate = y * load(all ? up + i : u) * s *
			     (1 + x * (1 - s));
		store(all ? dgate + i : g, by_gate);
		store(all ? dup + i : u, by_up);
		if (!all) {
			memcpy(dgate + i, g, some * sizeof(*g));
			memcpy(dup + i, u, some * sizeof(*u));
		}
	}
}

static float exp_row(float *x, uint32_t from, uint32_t to, uint32_t n,
		     float scale, float shift)
{
	vf sum = { 0 };

	for (uint32_t i = 0; i < n; i += LANES)
		store(x + i, exp_(fma_(load(x + i), splat(scale),
				       splat(-shift))));
	memset(x, 0, from * sizeof(*x));
	memset(x + to, 0, (n - to) * sizeof(*x));
	for (uint32_t i = 0; i < n; i += LANES)
		sum += load(x + i);
	return sum_lanes(sum);
}

static void score_back(const float *p, const float *dp, uint32_t n, float dot,
		       float scale, float *ds)
{
	for (uint32_t i = 0; i < n; i += LANES)
		store(ds + i, load(p + i) * (load(dp + i) - dot) * scale);
}

static void add_row(const float *x, size_t n, float *y)
{
	for (size_t i = 0; i < n; i++)
		y[i] += x[i];
}

static void multiply_by(float a, size_t n, float *y)
{
	for (size_t i = 0; i < n; i++)
		y[i] *= a;
}

/* To nearest, ties to even; NaN stays one. */
static void round_row(const float *x, size_t n, float *y)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t u;

		memcpy(&u, x + i, sizeof(u));
		u = (u & 0x7fffffff) > 0x7f800000 ?
			    u | 0x400000 :
			    u + 0x7fff + (u >> 16 & 1);
		u &= 0xffff0000;
		memcpy(y + i, &u, sizeof(u));
	}
}

/* ---- optimizers ---- */

static double square_sum_double(const float *x, size_t n)
{
	double sum = 0;

	/* Pieces whose f32 sums lose nothing that matters. */
	for (size_t i = 0; i < n; i += 256)
		sum += square_sum(x + i, (uint32_t)(n - i < 256 ? n - i : 256));
	return sum;
}

static inline vf root(vf x)
{
#if LANES == 16
	return (vf)_mm512_maskz_sqrt_ps(0xffff, (__m512)x);
#elif LANES == 8
	return (vf)_mm256_sqrt_ps((__m256)x);
#else
	return (vf)_mm_sqrt_ps((__m128)x);
#endif
}

/* LANES weights, and what is kept of them. */
static ALWAYS void step_of_adamw(const struct train_adam *a, const float *g,
				 float *w, float *m, float *v)
{
	vf x = load(g) * splat(a->clip);
	vf first = fma_(splat(a->beta1), load(m), splat(1 - a->beta1) * x);
	vf second = fma_(splat(a->beta2), load(v),
			 splat(1 - a->beta2) * x * x);
	vf by = root(second * splat(a->correct2)) + splat(a->epsilon);

	store(m, first);
	store(v, second);
	store(w, load(w) * splat(a->keep) -
			 splat(a->rate) * (first * splat(a->correct1)) / by);
}

static void adamw(const struct train_adam *a, size_t n, const float *g,
		  float *w, float *m, float *v)
{
	const struct train_adam how = *a;
	float last[4][LANES] = { 0 };
	size_t i = 0, rest;

	for (; i + LANES <= n; i += LANES)
		step_of_adamw(&how, g + i, w + i, m + i, v + i);
	if (i == n)
		return;
	rest = (n - i) * sizeof(float);
	memcpy(last[0], g + i, rest);
	memcpy(last[1], w + i, rest);
	memcpy(last[2], m + i, rest);
	memcpy(last[3], v + i, rest);
	step_of_adamw(&how, last[0], last[1], last[2], last[3]);
	memcpy(w + i, last[1], rest);
	memcpy(m + i, last[2], rest);
	memcpy(v + i, last[3], rest);
}

static void run_momentum(const struct train_adam *a, size_t n, const float *g,
			 float *w, float *m)
{
	for (size_t i = 0; i < n; i++) {
		m[i] = a->momentum * m[i] + a->clip * g[i];
		w[i] = w[i] * a->keep - a->rate * m[i];
	}
}

/* A hash whose upper bits are as good as chance. */
static inline uint32_t mix_bits(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	return x ^ x >> 16;
}

static void round_by_chance(const float *x, size_t n, uint32_t at,
			    uint32_t salt, uint16_t *y)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t u, chance = mix_bits((at + (uint32_t)i) ^ salt) >> 16;

		memcpy(&u, x + i, sizeof(u));
		y[i] = (uint16_t)((u + chance) >> 16);
	}
}

static void approach(const float *x, size_t n, float share, float *y)
{
	for (size_t i = 0; i < n; i++)
		y[i] += (x[i] - y[i]) * share;
}

extern const struct train_kernels SIMD(train_kernels);
const struct train_kernels SIMD(train_kernels) = {
	.multiply = multiply_block,
	.turn = turn_block,
	.norm = norm_row,
	.norm_back = norm_back,
	.swiglu_back = swiglu_back,
	.exp_row = exp_row,
	.score_back = score_back,
	.add = add_row,
	.multiply_by = multiply_by,
	.round = round_row,
	.square_sum = square_sum_double,
	.adamw = adamw,
	.momentum = run_momentum,
	.round_by_chance = round_by_chance,
	.approach = approach,
};
