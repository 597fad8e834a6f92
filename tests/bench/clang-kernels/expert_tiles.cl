/* Twins of compiler/kernels/expert_tiles.c, weights of bf16. */
#include "lib.h"

enum { TILE = 32, SIDE = 16, STEPS = 2, PITCH = 4 * 32 + 8 };

typedef float f8 __attribute__((ext_vector_type(8)));
typedef short s8 __attribute__((ext_vector_type(8)));
typedef short s16 __attribute__((ext_vector_type(16)));
#define WMMA(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c)

INLINE s16 load16(global const short *p)
{
	const s8 low = *(global const s8 *)p, high = *(global const s8 *)(p + 8);

	return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
				       10, 11, 12, 13, 14, 15);
}

struct tile {
	global const short *w[2], *a;
	local short *lds;
	f8 sum[2][2];
	int first, count, column;
};

INLINE bool tile_open(struct tile *t, global const short *w,
		      global const short *a, global const int *order,
		      global const int *tile, int used, int rows, int n,
		      bool pair)
{
	const int l = lane() % SIDE, top = tile[group_y() * 3] * rows;

	t->first = tile[group_y() * 3 + 1];
	t->count = tile[group_y() * 3 + 2];
	t->column = wave_row() * (pair ? SIDE : 2 * SIDE);
	if (t->count <= 0)
		return false;
	for (int b = 0; b < 2; b++) {
		int r = t->column + l + (pair ? 0 : b * SIDE);

		r = r < rows ? r : rows - 1;
		r += pair ? 2 * top + b * rows : top;
		t->w[b] = w + (long)r * n;
	}
	const int mine = (int)lid() / 4;
	const int p = order[t->first + (mine < t->count ? mine : t->count - 1)];

	t->a = a + (long)(pair ? p / used : p) * n;
	return true;
}

/* Some steps of 32: inputs by way of LDS, four work-items to a row. */
INLINE void tile_steps(struct tile *t, int k, const int steps)
{
	const int from = lid() % 4 * 8 * steps, l = lane() % SIDE;
	s16 w[STEPS][2][2];
	s8 x[STEPS];

	for (int s = 0; s < steps; s++)
		for (int b = 0; b < 2; b++)
			for (int i = 0; i < 2; i++)
				w[s][b][i] = load16(t->w[b] + k + s * 32 +
						    i * SIDE);
	for (int s = 0; s < steps; s++)
		x[s] = *(global const s8 *)(t->a + k + from + s * 8);
	barrier_lds();
	for (int s = 0; s < steps; s++)
		*(local s8 *)(t->lds + lid() / 4 * PITCH + from + s * 8) = x[s];
	barrier_lds();
	for (int s = 0; s < steps; s++)
		for (int m = 0; m < 2; m++)
			for (int i = 0; i < 2; i++) {
				local const short *at = t->lds +
							(l + m * SIDE) * PITCH +
							s * 32 + i * SIDE;
				const s8 low = *(local const s8 *)at;
				const s8 high = *(local const s8 *)(at + 8);
				const s16 v = __builtin_shufflevector(
					low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
					10, 11, 12, 13, 14, 15);

				for (int b = 0; b < 2; b++)
					t->sum[m][b] = WMMA(v, w[s][b][i],
							    t->sum[m][b]);
			}
}

INLINE void tile_multiply(struct tile *t, int n)
{
	const int each = 32 * STEPS;
	int k = 0;

	for (int m = 0; m < 2; m++)
		for (int b = 0; b < 2; b++)
			t->sum[m][b] = 0;
	for (; k + each <= n; k += each)
		tile_steps(t, k, STEPS);
	for (; k < n; k += 32)
		tile_steps(t, k, 1);
}

#define OPERANDS(out)                                                         \
	global out *restrict y, global const short *restrict w,               \
		global const half *restrict scale,                            \
		global const short *restrict a,                               \
		global const int *restrict order,                             \
		global const int *restrict tile, int used, int rows, int n,   \
		float by

KERNEL(128) expert_tiles_swiglu(OPERANDS(__bf16))
{
	local short inputs[TILE * PITCH] __attribute__((aligned(16)));
	struct tile t = { .lds = inputs };

	if (!tile_open(&t, w, a, order, tile, used, rows, n, true))
		return;
	tile_multiply(&t, n);
	for (int m = 0; m < 2; m++)
		for (int j = 0; j < 8; j++) {
			const int i = m * SIDE + 2 * j + lane() / SIDE;
			const int c = t.column + lane() % SIDE;

			if (i < t.count && c < rows)
				y[(long)order[t.first + i] * rows + c] =
					(__bf16)(silu_of(t.sum[m][0][j]) *
						 t.sum[m][1][j] * by);
		}
}

KERNEL(128) expert_tiles(OPERANDS(float))
{
	local short inputs[TILE * PITCH] __attribute__((aligned(16)));
	struct tile t = { .lds = inputs };

	if (!tile_open(&t, w, a, order, tile, used, rows, n, false))
		return;
	tile_multiply(&t, n);
	for (int m = 0; m < 2; m++)
		for (int j = 0; j < 8; j++) {
			const int i = m * SIDE + 2 * j + lane() / SIDE;

			for (int b = 0; b < 2; b++) {
				const int c = t.column + b * SIDE +
					      lane() % SIDE;

				if (i < t.count && c < rows)
					y[(long)order[t.first + i] * rows +
					  c] = t.sum[m][b][j] * by;
			}
		}
}
