/*
 * Twins of compiler/kernels/optimizer.c, packed.c and of what rows.c,
 * elementwise.c, norm.c and rope.c have for training.  TO is what is rounded.
 */
#include "lib.h"

typedef float g4 __attribute__((ext_vector_type(4), aligned(4)));

INLINE uint first4(void)
{
	return 4 * (group_x() * 256 + lid());
}

#define EACH(name, out_t, in_t, params, value)                              \
	KERNEL(256) name(global out_t *out, PARAMS params, uint n)                 \
	{                                                                   \
		typedef out_t o4 __attribute__((ext_vector_type(4),         \
						aligned(sizeof(out_t))));   \
		typedef in_t v4 __attribute__((ext_vector_type(4),          \
					       aligned(sizeof(in_t))));     \
		const uint i = first4();                                    \
		if (i + 4 <= n) {                                           \
			const f4 x = __builtin_convertvector(               \
				*(global const v4 *)(xs + i), f4);          \
			const f4 y = __builtin_convertvector(               \
				*(global const v4 *)(ys + i), f4);          \
			f4 r;                                               \
			for (int k = 0; k < 4; k++)                         \
				r[k] = value(x[k], y[k]);                   \
			*(global o4 *)(out + i) =                           \
				__builtin_convertvector(r, o4);             \
			return;                                             \
		}                                                           \
		for (uint k = i; k < n; k++)                                \
			out[k] = (out_t)value((float)xs[k], (float)ys[k]);  \
	}
#define PARAMS(...) __VA_ARGS__
#define LERP(x, y) FMA((y) - (x), a, x)
#define SWIGLU(x, y) (silu_of(x) * (y))
EACH(lerp, ELEM, ELEM,
     (global const ELEM *xs, global const ELEM *ys, float a), LERP)
EACH(swiglu_narrow, ELEM, float,
     (global const float *xs, global const float *ys), SWIGLU)

KERNEL(256) round_bf16(global ELEM *out, global const ELEM *xs, uint n)
{
	typedef __bf16 b4 __attribute__((ext_vector_type(4)));
	const uint i = first4();

	if (i + 4 <= n) {
		const f4 x = __builtin_convertvector(
			*(global const elem4 *)(xs + i), f4);
		const b4 b = __builtin_convertvector(x, b4);
		*(global elem4 *)(out + i) = __builtin_convertvector(
			__builtin_convertvector(b, f4), elem4);
		return;
	}
	for (uint k = i; k < n; k++)
		out[k] = (ELEM)(float)(__bf16)(float)xs[k];
}

KERNEL(256) swiglu_back_narrow(global ELEM *dx, global ELEM *dy,
			       global const float *xs, global const float *ys,
			       global const float *gs, uint n)
{
	const uint i = first4();

	if (i + 4 <= n) {
		const f4 x = *(global const g4 *)(xs + i);
		const f4 y = *(global const g4 *)(ys + i);
		const f4 g = *(global const g4 *)(gs + i);
		elem4 a, b;

		for (int k = 0; k < 4; k++) {
			const float sig = sigmoid_of(x[k]);

			a[k] = (ELEM)(g[k] * y[k] *
				      (sig * FMA(x[k], 1 - sig, 1)));
			b[k] = (ELEM)(g[k] * (x[k] * sig));
		}
		*(global elem4 *)(dx + i) = a;
		*(global elem4 *)(dy + i) = b;
		return;
	}
	for (uint k = i; k < n; k++) {
		const float x = xs[k], y = ys[k], g = gs[k];
		const float sig = sigmoid_of(x);

		dx[k] = (ELEM)(g * y * (sig * FMA(x, 1 - sig, 1)));
		dy[k] = (ELEM)(g * (x * sig));
	}
}

/* ---- norms and turns ---- */

KERNEL(128) rms_norm_narrow(global ELEM *out, global const float *in,
			    global const float *restrict w, float eps, int n)
{
	local float part[32];
	global const float *x = in + (ulong)group_x() * n;
	global ELEM *y = out + (ulong)group_x() * n;
	float sum = 0;

	for (int i = lid(); i < n; i += 128)
		sum = FMA(x[i], x[i], sum);
	sum = group_sum(sum, 128, part);
	const float r = 1 / __builtin_sqrtf(sum / (float)n + eps);
	for (int i = lid(); i < n; i += 128)
		y[i] = (ELEM)(x[i] * r * w[i]);
}

KERNEL(128) qk_norm_back_narrow(global ELEM *dx, global float *dw,
				global const float *in,
				global const float *restrict w,
				global const float *grad, float eps, int n,
				int rows)
{
	const int row = wave_row();
	const ulong at = (ulong)row * n;
	float sum = 0, dot = 0;

	if (row >= rows)
		return;
	for (int i = lane(); i < n; i += 32)
		sum = FMA(in[at + i], in[at + i], sum);
	const float r = 1 / __builtin_sqrtf(wave_sum(sum) / (float)n + eps);
	for (int i = lane(); i < n; i += 32)
		dot = FMA(in[at + i] * w[i], grad[at + i], dot);
	const float m = r * r * (wave_sum(dot) / (float)n);
	for (int i = lane(); i < n; i += 32) {
		const float x = in[at + i], g = grad[at + i];

		dx[at + i] = (ELEM)(r * (w[i] * g - x * m));
		add_float(dw + i, g * x * r);
	}
}

KERNEL(128) rope_narrow(global ELEM *out, global const float *in,
			global const float *restrict cosine,
			global const float *restrict sine,
			global const int *restrict position, int heads, int n,
			int rows, float turn)
{
	const int row = wave_row(), half_n = n >> 1;

	if (row >= rows)
		return;
	const int p = position[row / heads];
	global const float *c = cosine + (long)p * half_n;
	global const float *d = sine + (long)p * half_n;
	global const float *x = in + (long)row * n;
	global ELEM *y = out + (long)row * n;

	for (int i = lane(); i < half_n; i += 32) {
		const float a = x[i], b = x[i + half_n];
		const float ci = c[i], di = d[i] * turn;

		y[i] = (ELEM)(a * ci - b * di);
		y[i + half_n] = (ELEM)FMA(b, ci, a * di);
	}
}

/* ---- the loss ---- */

KERNEL(128) loss_chunk(global float *loss, global float *lse,
		       global const float *restrict in,
		       global const int *restrict target, uint at, uint n,
		       uint all)
{
	local float part[64];
	global const float *x = in + (ulong)group_x() * n;
	float max = -FLOAT_MAX, sum = 0;

	for (uint i = lid(); i < n; i += 128) {
		const float v = x[i], m = max_of(max, v);

		sum = FMA(sum, exp_of(max - m), exp_of(v - m));
		max = m;
	}
	const float top = group_max(max, 128, part);
	sum = group_sum(sum * exp_of(max - top), 128, part + 32);
	if (lid())
		return;
	const uint row = group_x(), which = target[row], place = which - at;
	const float was = at ? lse[row] : -INFINITE;
	const float now = top + log_of(sum), high = max_of(was, now);
	const float joined = high + log_of(exp_of(was - high) +
					   exp_of(now - high));
	const float logit = place < n ? x[place] : at ? loss[row] : 0;

	lse[row] = joined;
	loss[row] = at + n < all ? logit : which < all ? joined - logit : 0;
}

KERNEL(128) loss_chunk_back(global float *in, global const float *restrict lse,
			    global const int *restrict target, uint at, uint n,
			    uint all, float a)
{
	const uint row = group_x(), which = target[row], place = which - at;
	global float *x = in + (ulong)row * n;
	const float sum = lse[row];

	for (uint i = lid(); i < n; i += 128) {
		const float p = exp_of(x[i] - sum);
		const float d = a * (i == place ? p - 1 : p);

		x[i] = which < all ? d : 0;
	}
}

/* ---- optimizers ---- */

KERNEL(256) square_sum(global float *restrict out,
		       global const float *restrict in, uint n)
{
	enum { SPAN = 4096 };
	local float part[32];
	float sum = 0;

	for (uint s = 0; s < SPAN; s += 1024) {
		const uint i = group_x() * SPAN + 4 * lid() + s;

		if (i + 4 <= n) {
			const f4 x = *(global const g4 *)(in + i);

			for (int k = 0; k < 4; k++)
				sum = FMA(x[k], x[k], sum);
			continue;
		}
		for (uint k = i; k < n; k++)
			sum = FMA(in[k], in[k], sum);
	}
	sum = group_sum(sum, 256, part);
	if (lid() == 0)
		out[group_x()] = sum;
}

KERNEL(256) clip_norm(global float *restrict out,
		      global const float *restrict in, int n, float clip,
		      float scale)
{
	local float part[32];
	float sum = 0;

	for (int i = lid(); i < n; i += 256)
		sum += in[i];
	const float norm = __builtin_sqrtf(group_sum(sum, 256, part)) * scale;
	if (lid())
		return;
	out[0] = norm;
	out[1] = norm - norm != 0 ?
			 0 :
			 (clip > 0 && norm > clip ? clip / norm : 1) * scale;
}

INLINE uint mix(uint x)
{
	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

INLINE ELEM store_of(float x, uint i, uint salt)
{
	if (sizeof(ELEM) == 4)
		return (ELEM)x;
	const uint u = __builtin_astype(x, uint) + (mix(i ^ salt) >> 16);

	return (ELEM)__builtin_astype(u & 0xffff0000, float);
}

struct rule {
	float by, rate, keep, beta1, beta2, eps, c1, c2;
};

INLINE float adamw_of(const struct rule *r, float p, float g, float *m,
		      float *v)
{
	g *= r->by;
	*m = FMA(*m, r->beta1, g * (1 - r->beta1));
	*v = FMA(*v, r->beta2, g * g * (1 - r->beta2));
	return p * r->keep - r->rate * (*m * r->c1 /
					(__builtin_sqrtf(*v * r->c2) +
					 r->eps));
}

KERNEL(256) learn_adamw(global ELEM *restrict p, global float *restrict g,
			global float *restrict m, global float *restrict v,
			global const float *restrict norm, float rate,
			float keep, float beta1, float beta2, float eps,
			float c1, float c2, uint salt, uint n)
{
	const struct rule r = { norm[1], rate, keep, beta1, beta2, eps, c1,
				c2 };
	const uint i = first4();

	if (i + 4 <= n) {
		if (r.by > 0) {
			const f4 w = __builtin_convertvector(
				*(global const elem4 *)(p + i), f4);
			const f4 gs = *(global g4 *)(g + i);
			f4 ms = *(global g4 *)(m + i), vs = *(global g4 *)(v +
									   i);
			elem4 to;

			for (int k = 0; k < 4; k++) {
				float mk = ms[k], vk = vs[k];

				to[k] = store_of(adamw_of(&r, w[k], gs[k], &mk,
							  &vk), i + k, salt);
				ms[k] = mk;
				vs[k] = vk;
			}
			*(global g4 *)(m + i) = ms;
			*(global g4 *)(v + i) = vs;
			*(global elem4 *)(p + i) = to;
		}
		*(global g4 *)(g + i) = 0;
		return;
	}
	for (uint k = i; k < n; k++) {
		if (r.by > 0) {
			float mk = m[k], vk = v[k];

			p[k] = store_of(adamw_of(&r, (float)p[k], g[k], &mk,
						 &vk), k, salt);
			m[k] = mk;
			v[k] = vk;
		}
		g[k] = 0;
	}
}

KERNEL(256) learn_momentum(global ELEM *restrict p, global float *restrict g,
			   global float *restrict m,
			   global const float *restrict norm, float rate,
			   float keep, float beta1, uint salt, uint n)
{
	const float by = norm[1];
	const uint i = first4();

	if (i + 4 <= n) {
		if (by > 0) {
			const f4 w = __builtin_convertvector(
				*(global const elem4 *)(p + i), f4);
			const f4 gs = *(global g4 *)(g + i) * by;
			f4 ms = *(global g4 *)(m + i);
			elem4 to;

			for (int k = 0; k < 4; k++) {
				ms[k] = FMA(ms[k], beta1, gs[k]);
				to[k] = store_of(w[k] * keep - rate * ms[k],
						 i + k, salt);
			}
			*(global g4 *)(m + i) = ms;
			*(global elem4 *)(p + i) = to;
		}
		*(global g4 *)(g + i) = 0;
		return;
	}
	for (uint k = i; k < n; k++) {
		if (by > 0) {
			m[k] = FMA(m[k], beta1, g[k] * by);
			p[k] = store_of((float)p[k] * keep - rate * m[k], k,
					salt);
		}
		g[k] = 0;
	}
}

KERNEL(256) learn_direction(global ELEM *restrict p, global float *restrict g,
			    global const __bf16 *restrict d,
			    global const float *restrict norm, float rate,
			    float keep, uint salt, uint n)
{
	typedef __bf16 b4 __attribute__((ext_vector_type(4), aligned(2)));
	const float by = norm[1];
	const uint i = first4();

	if (i + 4 <= n) {
		if (by > 0) {
			const f4 w = __builtin_convertvector(
				*(global const elem4 *)(p + i), f4);
			const f4 ds = __builtin_convertvector(
				*(global const b4 *)(d + i), f4);
			elem4 to;

			for (int k = 0; k < 4; k++)
				to[k] = store_of(w[k] * keep - rate * ds[k],
						 i + k, salt);
			*(global elem4 *)(p + i) = to;
		}
		*(global g4 *)(g + i) = 0;
		return;
	}
	for (uint k = i; k < n; k++) {
		if (by > 0)
			p[k] = store_of((float)p[k] * keep -
						rate * (float)d[k], k, salt);
		g[k] = 0;
	}
}

KERNEL(256) learn_nesterov(global float *restrict g, global float *restrict m,
			   global const float *restrict norm, float beta1,
			   uint n)
{
	const float by = norm[1];
	const uint i = first4();

	if (!(by > 0))
		return;
	if (i + 4 <= n) {
		f4 gs = *(global g4 *)(g + i) * by;
		f4 ms = *(global g4 *)(m + i);

		for (int k = 0; k < 4; k++) {
			ms[k] = FMA(ms[k], beta1, gs[k]);
			gs[k] = FMA(ms[k], beta1, gs[k]);
		}
		*(global g4 *)(m + i) = ms;
		*(global g4 *)(g + i) = gs;
		return;
	}
	for (uint k = i; k < n; k++) {
		m[k] = FMA(m[k], beta1, g[k] * by);
		g[k] = FMA(m[k], beta1, g[k] * by);
	}
}

KERNEL(256) over_length(global ELEM *restrict out,
			global const float *restrict x,
			global const float *restrict norm, uint n)
{
	const float by = 1 / (norm[0] + 1e-7f);
	const uint i = first4();

	if (i + 4 <= n) {
		*(global elem4 *)(out + i) = __builtin_convertvector(
			*(global const g4 *)(x + i) * by, elem4);
		return;
	}
	for (uint k = i; k < n; k++)
		out[k] = (ELEM)(x[k] * by);
}

KERNEL(256) learn_average(global float *restrict m,
			  global const ELEM *restrict p,
			  global const float *restrict norm, float share,
			  uint n)
{
	const uint i = first4();

	if (!(norm[1] > 0))
		return;
	if (i + 4 <= n) {
		const f4 w = __builtin_convertvector(
			*(global const elem4 *)(p + i), f4);
		f4 ms = *(global g4 *)(m + i);

		for (int k = 0; k < 4; k++)
			ms[k] = FMA(w[k] - ms[k], share, ms[k]);
		*(global g4 *)(m + i) = ms;
		return;
	}
	for (uint k = i; k < n; k++)
		m[k] = FMA((float)p[k] - m[k], share, m[k]);
}

KERNEL(256) sum_parts(global float *out, global float *clear,
		      global const float *x0, global const float *x1,
		      global const float *x2, global const float *x3,
		      global const float *x4, global const float *x5,
		      global const float *x6, global const float *x7,
		      global const float *x8, int parts, int clears, uint n)
{
	global const float *const x[] = { x0, x1, x2, x3, x4, x5, x6, x7, x8 };
	const uint i = first4();

	if (i + 4 <= n) {
		f4 sum = *(global const g4 *)(x0 + i);

#pragma unroll
		for (int p = 1; p < 9; p++)
			if (p < parts)
				sum += *(global const g4 *)(x[p] + i);
		*(global g4 *)(out + i) = sum;
		if (clears)
			*(global g4 *)(clear + i) = 0;
		return;
	}
	for (uint k = i; k < n; k++) {
		float sum = x0[k];

#pragma unroll
		for (int p = 1; p < 9; p++)
			if (p < parts)
				sum += x[p][k];
		out[k] = sum;
		if (clears)
			clear[k] = 0;
	}
}

/* ---- packed attention ---- */

enum { HEAD = 128, PIECES = HEAD / 32 };

INLINE float dot_of(global const float *a, global const float *b)
{
	float sum = 0;

	for (int i = 0; i < HEAD; i += 4) {
		const f4 x = *(global const g4 *)(a + i);
		const f4 y = *(global const g4 *)(b + i);

		for (int k = 0; k < 4; k++)
			sum = FMA(x[k], y[k], sum);
	}
	return sum;
}

#define LANE_OF(x, j) float_b(__builtin_amdgcn_readlane(bits_f(x), j))
#define KEYS_OF(p, token) ((p) + ((long)(token) * kv_heads + kv) * HEAD)
#define HEADS_OF(p, token) ((p) + ((long)(token) * heads + h) * HEAD)

INLINE void add_to(float *acc, float w, global const float *x)
{
	for (int c = 0; c < PIECES; c++)
		acc[c] = FMA(w, x[c * 32 + lane()], acc[c]);
}

INLINE void put_sums(global float *to, const float *acc)
{
	for (int c = 0; c < PIECES; c++)
		to[c * 32 + lane()] = acc[c];
}

KERNEL(128) attn_packed(global float *restrict out, global float *restrict lse,
			global const float *restrict q,
			global const float *restrict k,
			global const float *restrict v,
			global const int *restrict position, int heads,
			int kv_heads, int tokens, float scale)
{
	const int row = wave_row(), t = row / heads, h = row - t * heads;
	const int kv = h / (heads / kv_heads);
	float max = -FLOAT_MAX, total = 0, acc[PIECES] = { 0 };

	if (t >= tokens)
		return;
	global const float *mine = HEADS_OF(q, t);
	for (int base = t - position[t]; base <= t; base += 32) {
		const int key = base + lane();
		const bool in = key <= t;
		float s = in ? dot_of(mine, KEYS_OF(k, key)) * scale :
			       -FLOAT_MAX;
		const float top = max_of(max, wave_max(s));
		const float shrink = exp_of(max - top);
		const float w = in ? exp_of(s - top) : 0;
		const int n = t + 1 - base < 32 ? t + 1 - base : 32;

		total = FMA(total, shrink, wave_sum(w));
		max = top;
		for (int c = 0; c < PIECES; c++)
			acc[c] *= shrink;
		for (int j = 0; j < n; j++)
			add_to(acc, LANE_OF(w, j), KEYS_OF(v, base + j));
	}
	for (int c = 0; c < PIECES; c++)
		acc[c] *= 1 / total;
	put_sums(HEADS_OF(out, t), acc);
	if (lane() == 0)
		lse[(long)t * heads + h] = max + log_of(total);
}

KERNEL(128) attn_packed_dq(global float *restrict dq,
			   global float *restrict dots,
			   global const float *restrict dy,
			   global const float *restrict y,
			   global const float *restrict lse,
			   global const float *restrict q,
			   global const float *restrict k,
			   global const float *restrict v,
			   global const int *restrict position, int heads,
			   int kv_heads, int tokens, float scale)
{
	const int row = wave_row(), t = row / heads, h = row - t * heads;
	const int kv = h / (heads / kv_heads);
	float acc[PIECES] = { 0 };

	if (t >= tokens)
		return;
	const float all = lse[(long)t * heads + h];
	const float dot = dot_of(HEADS_OF(dy, t), HEADS_OF(y, t));
	for (int base = t - position[t]; base <= t; base += 32) {
		const int key = base + lane();
		const int n = t + 1 - base < 32 ? t + 1 - base : 32;
		float ds = 0;

		if (key <= t) {
			const float s = dot_of(HEADS_OF(q, t), KEYS_OF(k, key));
			const float dw = dot_of(HEADS_OF(dy, t),
						KEYS_OF(v, key));

			ds = exp_of(s * scale - all) * (dw - dot) * scale;
		}
		for (int j = 0; j < n; j++)
			add_to(acc, LANE_OF(ds, j), KEYS_OF(k, base + j));
	}
	put_sums(HEADS_OF(dq, t), acc);
	if (lane() == 0)
		dots[(long)t * heads + h] = dot;
}

KERNEL(128) attn_packed_dkv(global float *restrict dk,
			    global float *restrict dv,
			    global const float *restrict dots,
			    global const float *restrict dy,
			    global const float *restrict lse,
			    global const float *restrict q,
			    global const float *restrict k,
			    global const float *restrict v,
			    global const int *restrict position, int heads,
			    int kv_heads, int tokens, float scale)
{
	const int row = wave_row(), t = row / kv_heads;
	const int kv = row - t * kv_heads, ratio = heads / kv_heads;
	float by_k[PIECES] = { 0 }, by_v[PIECES] = { 0 };

	if (t >= tokens)
		return;
	for (int base = t; base < tokens && base - position[base] <= t;
	     base += 32) {
		const int i = base + lane();
		const bool in = i < tokens && i - position[i] <= t;
		const int n = tokens - base < 32 ? tokens - base : 32;

		for (int h = kv * ratio; h < (kv + 1) * ratio; h++) {
			float w = 0, ds = 0;

			if (in) {
				const long at = (long)i * heads + h;
				const float s = dot_of(KEYS_OF(k, t),
						       HEADS_OF(q, i));
				const float dw = dot_of(KEYS_OF(v, t),
							HEADS_OF(dy, i));

				w = exp_of(s * scale - lse[at]);
				ds = w * (dw - dots[at]) * scale;
			}
			for (int j = 0; j < n; j++) {
				add_to(by_k, LANE_OF(ds, j),
				       HEADS_OF(q, base + j));
				add_to(by_v, LANE_OF(w, j),
				       HEADS_OF(dy, base + j));
			}
		}
	}
	put_sums(KEYS_OF(dk, t), by_k);
	put_sums(KEYS_OF(dv, t), by_v);
}
