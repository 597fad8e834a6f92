/*
 * engine/train/muon.c - Newton-Schulz iterations.
 */
#include <math.h>
#include <string.h>

#include "engine/train/kernels.h"

/*
 * The published polynomial a x + b x^3 + c x^5: five of it take every singular
 * value above 1e-3 near to 1, none of them exactly.
 */
#define ROUNDS 5
static const float poly[3] = { 3.4445f, -4.7750f, 2.0315f };

struct square {
	uint32_t m, n; /* the smaller side, the larger one */
	struct cpu_gemm_scratch *gemm;
	unsigned thread, threads;
};

/* c [m][cols] = alpha a [m][k] b + beta c */
static void multiply_parts(const struct square *s, const float *a,
			   const float *b, bool by_n, uint32_t cols, uint32_t k,
			   float alpha, float beta, float *c)
{
	struct cpu_gemm g = {
		.m = s->m, .n = cols, .k = k, .alpha = alpha, .beta = beta,
		.a = a, .lda = k, .b = b, .ldb = by_n ? k : cols,
		.b_type = CPU_GEMM_F32, .b_by_n = by_n, .coarse = true,
		.c = c, .ldc = cols,
	};

	cpu_gemm_part(&g, s->gemm, s->thread, s->threads);
}

/* Every thread sums all: the same bits, and no barrier. */
static float shrink_of(const float *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i += 4096)
		sum += train_kernels_best()->square_sum(
			x + i, n - i < 4096 ? n - i : 4096);
	return (float)(1 / (sqrt(sum) + 1e-7));
}

void train_orthogonalize(float *x, uint32_t rows, uint32_t cols,
			 float *const space[4], struct cpu_gemm_scratch *gemm,
			 struct threads *t, unsigned thread)
{
	const struct train_kernels *k = train_kernels_best();
	bool tall = rows > cols;
	struct square s = { tall ? cols : rows, tall ? rows : cols, gemm,
			    thread, threads_count(t) };
	float *now = space[0], *next = space[1];
	size_t n = (size_t)rows * cols, from, to;
	float shrink = shrink_of(x, n);

	threads_part(t, thread, s.m, 1, &from, &to);
	if (tall)
		k->turn(x + from, cols, rows, to - from, now + from * rows,
			rows);
	else
		memcpy(now + from * cols, x + from * cols,
		       (to - from) * cols * sizeof(*x));
	k->multiply_by(shrink, (to - from) * s.n, now + from * s.n);
	threads_barrier(t);
	for (int i = 0; i < ROUNDS; i++) {
		multiply_parts(&s, now, now, true, s.m, s.n, 1, 0, space[2]);
		threads_barrier(t);
		/* b A + c A A: shares of rows, each begins with b A. */
		threads_part(t, thread, s.m, 1, &from, &to);
		memcpy(space[3] + from * s.m, space[2] + from * s.m,
		       (to - from) * s.m * sizeof(*x));
		memcpy(next + from * s.n, now + from * s.n,
		       (to - from) * s.n * sizeof(*x));
		threads_barrier(t);
		multiply_parts(&s, space[2], space[2], false, s.m, s.m,
			       poly[2], poly[1], space[3]);
		threads_barrier(t);
		multiply_parts(&s, space[3], now, false, s.n, s.m, 1, poly[0],
			       next);
		threads_barrier(t);
		float *was = now;
		now = next;
		next = was;
	}
	threads_part(t, thread, rows, 1, &from, &to);
	if (tall)
		k->turn(now + from, rows, cols, to - from, x + from * cols,
			cols);
	else
		memcpy(x + from * cols, now + from * cols,
		       (to - from) * cols * sizeof(*x));
	threads_barrier(t);
}
