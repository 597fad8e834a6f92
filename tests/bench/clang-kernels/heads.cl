/* Twins of compiler/kernels/heads.c and norm.c: a wave has a head of 128. */
#include "lib.h"

enum { HEAD = 128, HALF = HEAD / 2 };

typedef float f2 __attribute__((ext_vector_type(2)));
typedef float f8 __attribute__((ext_vector_type(8)));
typedef ELEM elem2 __attribute__((ext_vector_type(2)));
typedef ELEM elem8 __attribute__((ext_vector_type(8)));
typedef TO to8 __attribute__((ext_vector_type(8)));

INLINE float norm_scale(global const ELEM *x, int n, float eps)
{
	float sum = 0;

	for (int i = lane(); i < n; i += 32) {
		const float v = x[i];

		sum = FMA(v, v, sum);
	}
	return 1 / __builtin_sqrtf(wave_sum(sum) / (float)n + eps);
}

KERNEL(128) qk_norm(global ELEM *out, global const ELEM *in,
		    global const ELEM *restrict w, float eps, int n, int rows)
{
	const int row = wave_row();
	global const ELEM *x = in + (long)row * n;
	global ELEM *y = out + (long)row * n;

	if (row >= rows)
		return;
	const float r = norm_scale(x, n, eps);

	for (int i = lane(); i < n; i += 32)
		y[i] = (ELEM)((float)x[i] * r * (float)w[i]);
}

KERNEL(128) qk_norm_back(global ELEM *dx, global float *dw,
			 global const ELEM *in, global const ELEM *restrict w,
			 global const ELEM *grad, float eps, int n, int rows)
{
	const int row = wave_row();
	global const ELEM *x = in + (long)row * n, *g = grad + (long)row * n;
	global ELEM *y = dx + (long)row * n;
	float dot = 0;

	if (row >= rows)
		return;
	const float r = norm_scale(x, n, eps);

	for (int i = lane(); i < n; i += 32)
		dot = FMA((float)x[i] * (float)w[i], (float)g[i], dot);
	const float back = r * r * (wave_sum(dot) / (float)n);

	for (int i = lane(); i < n; i += 32) {
		const float xi = x[i], gi = g[i];

		y[i] = (ELEM)(r * ((float)w[i] * gi - xi * back));
		add_float(dw + i, gi * xi * r);
	}
}

/* Two neighbours, of which a lane has one pair in each half of a head. */
#define PAIR(p, i) \
	__builtin_convertvector(*(global const elem2 *)((p) + (i)), f2)
#define PUT_PAIR(p, i, v) \
	(*(global elem2 *)((p) + (i)) = __builtin_convertvector(v, elem2))

/* Sums and differences of elements a power of two apart. */
INLINE f2 turn(f2 x)
{
	x = (f2)(x[0] + x[1], x[0] - x[1]);
#define LANES(m) \
	x = (f2)(float_b(ROW_XOR(bits_f(x[0]), m)), \
		 float_b(ROW_XOR(bits_f(x[1]), m))) + \
	    x * (lane() & (m) ? -1.0f : 1.0f)
	LANES(1);
	LANES(2);
	LANES(4);
	LANES(8);
#undef LANES
	f2 other = { float_b(OTHER_ROW(bits_f(x[0]))),
		     float_b(OTHER_ROW(bits_f(x[1]))) };

	HERE(other[0]);
	HERE(other[1]);
	return other + x * (lane() & 16 ? -1.0f : 1.0f);
}

KERNEL(128) turn_heads(global ELEM *restrict in, int rows)
{
	const int row = wave_row(), i = lane() * 2;
	global ELEM *x = in + (long)row * HEAD;

	if (row >= rows)
		return;
	const f2 a = PAIR(x, i), b = PAIR(x, i + HALF);
	const float size = 0.08838834764831845f;

	PUT_PAIR(x, i, turn(a + b) * size);
	PUT_PAIR(x, i + HALF, turn(a - b) * size);
}

/* Half of a head, 16 lanes of which have a group. */
INLINE void keep_half(global CACHED *y, uint i, f2 v)
{
#ifdef CACHE_I8
	typedef char c2 __attribute__((ext_vector_type(2)));
	int top = most_of(size_bits(v.x), size_bits(v.y));

	top = most_of(top, ROW_XOR(top, 1));
	top = most_of(top, ROW_XOR(top, 2));
	top = most_of(top, ROW_XOR(top, 4));
	top = most_of(top, ROW_XOR(top, 8));
	const struct quant q = quant_of(top);

	*(global c2 *)(y + i) = (c2)(quant(q, v.x), quant(q, v.y));
	if (i % 32 == 0)
		SCALES(y, HEAD)[i / 32] = q.scale;
#else
	PUT_PAIR(y, i, v);
#endif
}

struct halves {
	f2 a, b;
};

INLINE struct halves norm_turn(global const ELEM *x, global const ELEM *w,
			       global const float *cosine,
			       global const float *sine, float eps)
{
	const uint i = 2 * lane();
	const f2 a = PAIR(x, i), b = PAIR(x, i + HALF);
	float sum = a.x * a.x;

	sum = FMA(a.y, a.y, sum);
	sum = FMA(b.x, b.x, sum);
	sum = FMA(b.y, b.y, sum);
	sum = wave_sum(sum) * (1.0f / HEAD);
	const float r = 1 / __builtin_sqrtf(sum + eps);
	const f2 c = *(global const f2 *)(cosine + i);
	const f2 d = *(global const f2 *)(sine + i);
	const f2 u = a * r * PAIR(w, i), v = b * r * PAIR(w, i + HALF);

	return (struct halves){ u * c - v * d,
				__builtin_elementwise_fma(v, c, u * d) };
}

KERNEL(128) qk_norm_rope(global ELEM *out, global CACHED *kc,
			 global CACHED *vc,
			 global const ELEM *q, global const ELEM *ki,
			 global const ELEM *vi, global const ELEM *restrict qw,
			 global const ELEM *restrict kw,
			 global const float *restrict cosine,
			 global const float *restrict sine,
			 global const int *restrict position,
			 global const int *restrict slot, int heads, int kv,
			 int q_ld, int kv_ld, int row_ld, int head_ld,
			 long sequence, int tokens, float eps)
{
	const int row = wave_row(), each = heads + 2 * kv;

	if (row >= tokens * each)
		return;
	const int token = row / each, h = row - token * each;
	const int at = position[token];
	global const float *c = cosine + (long)at * HALF;
	global const float *d = sine + (long)at * HALF;

	const uint i = 2 * lane();

	if (h < heads) {
		global ELEM *y = out + ((long)token * heads + h) * HEAD;
		const struct halves t = norm_turn(q + (long)token * q_ld +
						  h * HEAD, qw, c, d, eps);

		PUT_PAIR(y, i, t.a);
		PUT_PAIR(y, i + HALF, t.b);
		return;
	}
	const int g = h - heads, n = g < kv ? g : g - kv;
	const long to = slot[token] * sequence + (long)n * head_ld +
			(long)at * row_ld;
	const long from = (long)token * kv_ld + n * HEAD;

	if (g < kv) {
		const struct halves t = norm_turn(ki + from, kw, c, d, eps);

		keep_half(kc + to, i, t.a);
		keep_half(kc + to, i + HALF, t.b);
		return;
	}
	keep_half(vc + to, i, PAIR(vi + from, i));
	keep_half(vc + to, i + HALF, PAIR(vi + from, i + HALF));
}

KERNEL(128) kv_store(global CACHED *kc, global CACHED *vc,
		     global const ELEM *restrict ki,
		     global const ELEM *restrict vi,
		     global const int *restrict position,
		     global const int *restrict slot, int kv, int kv_ld,
		     int row_ld, int head_ld, long sequence, int tokens)
{
	const int row = wave_row();

	if (row >= tokens * kv)
		return;
	const int token = row / kv, h = row - token * kv;
	const long to = slot[token] * sequence + (long)h * head_ld +
			(long)position[token] * row_ld;
	const long from = (long)token * kv_ld + h * HEAD;

	for (int i = lane(); i < HEAD; i += 32) {
		cache_put(kc + to, HEAD, i, ki[from + i]);
		cache_put(vc + to, HEAD, i, vi[from + i]);
	}
}

KERNEL(128) kv_gather(global TO *restrict out,
		      global const ELEM *restrict pool,
		      global const int *restrict table,
		      global const int *restrict length, int n, int page,
		      int pages, uint pool_pages, long sequence)
{
	const int row = wave_row(), b = group_y();

	if (row >= length[b])
		return;
	const int which = row / page, id = table[b * pages + which];
	global const ELEM *x = pool + (long)id * (n * page) +
			       (long)(row - which * page) * n;
	global TO *y = out + b * sequence + (long)row * n;

	if ((uint)id < pool_pages) {
		for (int i = 8 * lane(); i < n; i += 256)
			*(global to8 *)(y + i) = __builtin_convertvector(
				__builtin_convertvector(
					*(global const elem8 *)(x + i), f8),
				to8);
	} else {
		for (int i = lane(); i < n; i += 32)
			y[i] = (TO)0.0f;
	}
}
