/*
 * engine/weights/kernels_float_simd.c - products with floating-point weights.
 *
 * Beside them the yardsticks that the engine is measured by.
 */
#include "engine/weights/kernels_simd.h"

/*
 * Two rows at a time that lie STREAMS_APART, so that the weights are two long
 * streams: the hardware's prefetcher works in pages, and with one stream it
 * waits at the end of each.  SUMS sums of a row side by side, since one would
 * wait for itself; several tokens at once where there are several, as many as
 * the registers hold.  A row's sum has one order, whatever it is paired with.
 */
#define SUMS 2
#if LANES == 16
#define TOKENS 4
#else
#define TOKENS 2
#endif

/*
 * One kernel for each stored type; nr rows, `apart` elements apart, and nt
 * tokens; both are constants where it is inlined.
 */
#define ROW(type, elem, one) \
	static inline __attribute__((always_inline)) void rows_##type( \
		const elem *w, size_t apart, uint32_t n, const float *x, \
		size_t ldx, float *y, size_t ldy, size_t next, bool add, \
		int nr, int nt) \
	{ \
		const uint32_t line = 64 / sizeof(*w); \
		const uint32_t step = line > SUMS * LANES ? line : \
							    SUMS * LANES; \
		vf s[2][TOKENS][SUMS]; \
		uint32_t c = 0; \
\
		UNROLL for (int r = 0; r < nr; r++) \
			UNROLL for (int t = 0; t < nt; t++) \
				UNROLL for (int i = 0; i < SUMS; i++) \
					s[r][t][i] = splat(0); \
\
		for (; c + step <= n; c += step) \
			UNROLL for (uint32_t i = 0; i < step; i += LANES) \
			{ \
				vf v[2]; \
				UNROLL for (int r = 0; r < nr; r++) \
				{ \
					const elem *p = w + r * apart + c + i; \
					if (i % line == 0) \
						prefetch_line(p); \
					v[r] = load_##type(p); \
				} \
				const uint32_t k = i / LANES % SUMS; \
				UNROLL for (int t = 0; t < nt; t++) \
				{ \
					vf z = load(x + c + i + t * ldx); \
					UNROLL for (int r = 0; r < nr; r++) \
						s[r][t][k] = fma_(v[r], z, \
								  s[r][t][k]); \
				} \
			} \
		for (; c + LANES <= n; c += LANES) \
			UNROLL for (int r = 0; r < nr; r++) \
			{ \
				vf v = load_##type(w + r * apart + c); \
				UNROLL for (int t = 0; t < nt; t++) \
					s[r][t][0] = \
						fma_(v, load(x + t * ldx + c), \
						     s[r][t][0]); \
			} \
		UNROLL for (int r = 0; r < nr; r++) \
			UNROLL for (int t = 0; t < nt; t++) \
		{ \
			float *to = y + t * ldy + r * next; \
			float v = sum_lanes(s[r][t][0] + s[r][t][1]); \
			for (uint32_t k = c; k < n; k++) \
				v += one(w[r * apart + k]) * x[t * ldx + k]; \
			*to = add ? *to + v : v; \
		} \
	} \
\
	static inline void pair_##type( \
		const struct qwen_matrix *m, struct pair p, const float *x, \
		size_t ldx, float *y, size_t ldy, bool add, uint32_t nt) \
	{ \
		const elem *w = \
			(const elem *)m->data + (size_t)p.row * m->cols; \
		const size_t apart = (size_t)p.apart * m->cols; \
		float *to = y + p.row; \
\
		if (p.apart && nt == TOKENS) \
			rows_##type(w, apart, m->cols, x, ldx, to, ldy, \
				    p.apart, add, 2, TOKENS); \
		else if (p.apart) \
			rows_##type(w, apart, m->cols, x, ldx, to, ldy, \
				    p.apart, add, 2, 1); \
		else \
			for (uint32_t t = 0; t < nt; t++) \
				rows_##type(w, 0, m->cols, x + t * ldx, ldx, \
					    to + t * ldy, ldy, 0, add, 1, 1); \
	} \
\
	static void product_##type(const struct qwen_matrix *m, uint32_t r0, \
				   uint32_t r1, const float *x, size_t ldx, \
				   uint32_t n, float *y, size_t ldy, bool add) \
	{ \
		struct pair pair[PAIRS_TOGETHER]; \
		struct pairs p; \
		uint32_t some; \
\
		pairs_init(&p, r0, r1, m->cols * sizeof(elem)); \
		while ((some = pairs_some(&p, pair))) \
			for (uint32_t t = 0, nt; t < n; t += nt) { \
				nt = n - t < TOKENS ? 1 : TOKENS; \
				for (uint32_t i = 0; i < some; i++) \
					pair_##type(m, pair[i], x + t * ldx, \
						    ldx, y + t * ldy, ldy, \
						    add, nt); \
			} \
	}

ROW(f32, float, f32_one)
ROW(f16, uint16_t, f16_one)
ROW(bf16, uint16_t, bf16_one)

void SIMD(qwen_product)(const struct qwen_matrix *w, uint32_t r0, uint32_t r1,
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

/* ---- yardsticks ---- */

typedef uint64_t vq __attribute__((vector_size(4 * LANES)));

/* Whole lines, `streams` of them side by side, a constant where inlined. */
static inline __attribute__((always_inline)) uint64_t
read_lines(const uint8_t *p, size_t bytes, size_t streams, size_t near,
	   size_t far)
{
	size_t part = bytes / streams / 64 * 64;
	vq s[4] = { 0 };
	uint64_t word[LANES / 2], total = 0;

	for (size_t i = 0; i < part; i += 64)
		for (size_t k = 0; k < streams; k++) {
			const uint8_t *at = p + k * part + i;
			if (far)
				__builtin_prefetch(at + far, 0, 2);
			if (near)
				__builtin_prefetch(at + near);
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

uint64_t SIMD(qwen_read)(const void *p, size_t size_bytes, unsigned streams,
			 size_t near_bytes, size_t far_bytes)
{
	switch (streams) {
	case 1:
		return read_lines(p, size_bytes, 1, near_bytes, far_bytes);
	case 2:
		return read_lines(p, size_bytes, 2, near_bytes, far_bytes);
	case 4:
		return read_lines(p, size_bytes, 4, near_bytes, far_bytes);
	default:
		return read_lines(p, size_bytes, 8, near_bytes, far_bytes);
	}
}

/* Enough sums, each in its register, that the latency of one does not count. */
#define CHAINS	12
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

double SIMD(qwen_fma)(uint64_t rounds)
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
	volatile float keep = sum_lanes(all);
	(void)keep;
	return 2.0 * LANES * CHAINS * (double)rounds;
}
