/*
 * Products with weights in floating-point types, the sums of attention, and
 * the yardsticks that they are measured by.
 */
#include "engine/kernels_simd.h"

/*
 * A row at a time, so that the weights are one long stream; SUMS sums side by
 * side, since one would wait for itself; several tokens at once where there are
 * several, as many as the registers hold.
 */
#define SUMS 4
#if LANES == 16
#define TOKENS 4
#else
#define TOKENS 2
#endif

/* One kernel for each stored type; nt tokens, a constant where it is inlined. */
#define ROW(type, elem, one)                                                   \
	static inline __attribute__((always_inline)) void row_##type(          \
		const elem *w, uint32_t n, const float *x, size_t ldx,         \
		float *y, size_t ldy, bool add, int nt)                        \
	{                                                                      \
		vf s[TOKENS][SUMS] = { 0 };                                    \
		uint32_t c = 0;                                                \
                                                                               \
		for (; c + SUMS * LANES <= n; c += SUMS * LANES) {             \
			for (size_t b = 0; b < SUMS * LANES * sizeof(*w);      \
			     b += 64)                                          \
				fetch((const char *)(w + c) + b);              \
			for (int i = 0; i < SUMS; i++) {                       \
				vf v = load_##type(w + c + i * LANES);         \
				for (int t = 0; t < nt; t++)                   \
					s[t][i] = fma_(v, load(x + t * ldx +   \
							       c + i * LANES), \
						       s[t][i]);               \
			}                                                      \
		}                                                              \
		for (; c + LANES <= n; c += LANES) {                           \
			vf v = load_##type(w + c);                             \
			for (int t = 0; t < nt; t++)                           \
				s[t][0] = fma_(v, load(x + t * ldx + c),       \
					       s[t][0]);                       \
		}                                                              \
		for (int t = 0; t < nt; t++) {                                 \
			float v = sum((s[t][0] + s[t][1]) +                    \
				      (s[t][2] + s[t][3]));                    \
			for (uint32_t k = c; k < n; k++)                       \
				v += one(w[k]) * x[t * ldx + k];               \
			y[t * ldy] = add ? y[t * ldy] + v : v;                 \
		}                                                              \
	}                                                                      \
                                                                               \
	static void product_##type(const struct qwen_matrix *m, uint32_t r0,   \
				   uint32_t r1, const float *x, size_t ldx,    \
				   uint32_t n, float *y, size_t ldy, bool add) \
	{                                                                      \
		for (uint32_t r = r0; r < r1; r++) {                           \
			const elem *w = (const elem *)m->data +                \
					(size_t)r * m->cols;                   \
			uint32_t t = 0;                                        \
			for (; t + TOKENS <= n; t += TOKENS)                   \
				row_##type(w, m->cols, x + t * ldx, ldx,       \
					   y + t * ldy + r, ldy, add, TOKENS); \
			for (; t < n; t++)                                     \
				row_##type(w, m->cols, x + t * ldx, ldx,       \
					   y + t * ldy + r, ldy, add, 1);      \
		}                                                              \
	}

ROW(f32, float, f32_one)
ROW(f16, uint16_t, f16_one)
ROW(bf16, uint16_t, bf16_one)

void LEVEL(qwen_product_)(const struct qwen_matrix *w, uint32_t r0, uint32_t r1,
			  const float *x, size_t ldx, uint32_t n, float *y,
			  size_t ldy, bool add)
{
	if (w->type == QWEN_W_F32)
		product_f32(w, r0, r1, x, ldx, n, y, ldy, add);
	else if (w->type == QWEN_W_F16)
		product_f16(w, r0, r1, x, ldx, n, y, ldy, add);
	else
		product_bf16(w, r0, r1, x, ldx, n, y, ldy, add);
}

/* ---- values of attention ---- */

/* One head, and so many vectors of the head's dimension, kept in registers. */
#define WIDE 4

static inline vf load_any(enum qwen_weights type, const void *v, size_t i)
{
	if (type == QWEN_W_F32)
		return load_f32((const float *)v + i);
	return type == QWEN_W_F16 ? load_f16((const uint16_t *)v + i) :
				    load_bf16((const uint16_t *)v + i);
}

static inline float any_one(enum qwen_weights type, const void *v, size_t i)
{
	if (type == QWEN_W_F32)
		return ((const float *)v)[i];
	return type == QWEN_W_F16 ? f16_one(((const uint16_t *)v)[i]) :
				    bf16_one(((const uint16_t *)v)[i]);
}

static inline __attribute__((always_inline)) void
mix(enum qwen_weights type, const void *v, uint32_t d, uint32_t n,
    const float *s, float *y)
{
	uint32_t i = 0;

	for (; i + WIDE * LANES <= d; i += WIDE * LANES) {
		vf a[WIDE];
		for (int k = 0; k < WIDE; k++)
			a[k] = load(y + i + k * LANES);
		for (uint32_t p = 0; p < n; p++)
			for (int k = 0; k < WIDE; k++)
				a[k] = fma_(splat(s[p]),
					    load_any(type, v, (size_t)p * d +
						     i + k * LANES), a[k]);
		for (int k = 0; k < WIDE; k++)
			store(y + i + k * LANES, a[k]);
	}
	for (; i < d; i++)
		for (uint32_t p = 0; p < n; p++)
			y[i] += s[p] * any_one(type, v, (size_t)p * d + i);
}

void LEVEL(qwen_mix_)(enum qwen_weights type, const void *v, uint32_t d,
		      uint32_t n, const float *s, size_t lds, uint32_t heads,
		      float *y, size_t ldy)
{
	for (uint32_t h = 0; h < heads; h++) {
		if (type == QWEN_W_F32)
			mix(QWEN_W_F32, v, d, n, s + h * lds, y + h * ldy);
		else if (type == QWEN_W_F16)
			mix(QWEN_W_F16, v, d, n, s + h * lds, y + h * ldy);
		else
			mix(QWEN_W_BF16, v, d, n, s + h * lds, y + h * ldy);
	}
}

/* ---- yardsticks ---- */

typedef uint64_t vq __attribute__((vector_size(4 * LANES)));

/* Whole lines, `streams` of them side by side, a constant where inlined. */
static inline __attribute__((always_inline)) uint64_t
read_lines(const uint8_t *p, size_t bytes, size_t streams, size_t ahead)
{
	size_t part = bytes / streams / 64 * 64;
	vq s[4] = { 0 };
	uint64_t word[LANES / 2], total = 0;

	for (size_t i = 0; i < part; i += 64)
		for (size_t k = 0; k < streams; k++) {
			const uint8_t *at = p + k * part + i;
			if (ahead == FETCH_FAR_BYTES)
				fetch(at);
			else if (ahead)
				__builtin_prefetch(at + ahead);
			for (size_t b = 0; b < 64; b += sizeof(vq)) {
				vq v;
				memcpy(&v, at + b, sizeof(v));
				s[(b / sizeof(vq) + k) % 4] += v;
			}
		}
	vq all = s[0] + s[1] + s[2] + s[3];
	memcpy(word, &all, sizeof(word));
	for (int i = 0; i < LANES / 2; i++)
		total += word[i];
	return total;
}

uint64_t LEVEL(qwen_read_)(const void *p, size_t size_bytes, unsigned streams,
			   size_t ahead_bytes)
{
	switch (streams) {
	case 1:
		return read_lines(p, size_bytes, 1, ahead_bytes);
	case 2:
		return read_lines(p, size_bytes, 2, ahead_bytes);
	case 4:
		return read_lines(p, size_bytes, 4, ahead_bytes);
	default:
		return read_lines(p, size_bytes, 8, ahead_bytes);
	}
}

/* Enough sums, each in its register, that the latency of one does not count. */
#define CHAINS 12
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

double LEVEL(qwen_fma_)(uint64_t rounds)
{
	vf a = splat(0.999f), b = splat(1e-3f);
#define INIT(i) vf s##i = splat((float)i);
	EACH(INIT)
	for (uint64_t r = 0; r < rounds; r++) {
		/* The empty text keeps the compiler from skipping rounds. */
#define STEP(i) \
	s##i = fma_(s##i, a, b); \
	__asm__ volatile("" : "+v"(s##i));
		EACH(STEP)
	}
	vf all = { 0 };
#define SUM(i) all += s##i;
	EACH(SUM)
	volatile float keep = sum(all);
	(void)keep;
	return 2.0 * LANES * CHAINS * (double)rounds;
}
