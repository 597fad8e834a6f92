/* Twins of compiler/kernels/expert_tiles.c, weights of bf16. */
#include "lib.h"
#include "wmma.h"

enum { TILE = 32, SIDE = 16, STEPS = 2, PITCH = 4 * 32 + 8 };

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
	const int l = COLUMN, top = tile[group_y() * 3] * rows;

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
	const int from = lid() % 4 * 8 * steps, l = COLUMN;
	FRAGMENT w[STEPS][2][2];
	s8 x[STEPS];

	for (int s = 0; s < steps; s++)
		for (int b = 0; b < 2; b++)
			for (int i = 0; i < 2; i++)
				w[s][b][i] = FRAGMENT_OF((global const s8 *)(
					t->w[b] + k + s * 32 + i * SIDE));
	for (int s = 0; s < steps; s++)
		x[s] = *(global const s8 *)(t->a + k + from + s * 8);
	barrier_lds();
	for (int s = 0; s < steps; s++)
		*(local s8 *)(t->lds + lid() / 4 * PITCH + from + s * 8) = x[s];
	barrier_lds();
	for (int s = 0; s < steps; s++)
		for (int m = 0; m < 2; m++)
			for (int i = 0; i < 2; i++) {
				const FRAGMENT v = tile_of(
					t->lds + (l + m * SIDE) * PITCH +
					s * 32 + i * SIDE);

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
			const int i = m * SIDE + RESULT_ROW(j);
			const int c = t.column + COLUMN;

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
			const int i = m * SIDE + RESULT_ROW(j);

			for (int b = 0; b < 2; b++) {
				const int c = t.column + b * SIDE + COLUMN;

				if (i < t.count && c < rows)
					y[(long)order[t.first + i] * rows +
					  c] = t.sum[m][b][j] * by;
			}
		}
}
