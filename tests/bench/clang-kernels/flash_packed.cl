/*
 * Twins of compiler/kernels/flash_packed.c for heads of 128 elements of bf16:
 * 64 tokens per workgroup.  See there for who holds what.
 */
#include "lib.h"
#include "wmma.h"

enum { HEAD = 128, TILE = 16, TILES = HEAD / TILE, PITCH = HEAD + 8,
       OWN = 64 };
#define LOG2_E 0x1.715476p0f
#define exp2_of(x) __builtin_amdgcn_exp2f(x)

typedef int i8 __attribute__((ext_vector_type(8)));
typedef __bf16 b8 __attribute__((ext_vector_type(8)));

/* Tokens [base, base + block) as rows and turned; NULL: not so. */
INLINE void stage(local short *rows, local short *turned, int block,
		  global const short *p, uint stride, int base, int tokens)
{
	const int steps = block / 2 * HEAD / 8 / 128, pitch = block + 8;
	s8 x[2][2];

	for (int s = 0; s < steps; s++) {
		const int u = lid() + s * 128, two = u % (block / 2) * 2;

		for (int i = 0; i < 2; i++) {
			const int t = base + two + i;

			x[s][i] = t < tokens ?
				*(global const s8 *)(p + (uint)t * stride +
						     u / (block / 2) * 8) :
				(s8)0;
		}
	}
	for (int s = 0; s < steps; s++) {
		const int u = lid() + s * 128, two = u % (block / 2) * 2;
		const int piece = u / (block / 2) * 8;

		for (int i = 0; rows && i < 2; i++)
			*(local s8 *)(rows + (two + i) * PITCH + piece) =
				x[s][i];
		for (int j = 0; turned && j < 8; j++)
			*(local short2 *)(turned + (piece + j) * pitch + two) =
				(short2)(x[s][0][j], x[s][1][j]);
	}
}

INLINE FRAGMENT weights(f8 p)
{
	return fragment_of(__builtin_astype(__builtin_convertvector(p, b8),
					    s8));
}

INLINE f8 multiply(const local short *rows, int g, const FRAGMENT *own)
{
	f8 s = 0;

	for (int c = 0; c < TILES; c++)
		s = WMMA(tile_of(rows + (ROW + g * TILE) * PITCH + c * TILE),
			 own[c], s);
	return s;
}

INLINE f8 multiply_lds(const local short *rows, const local short *own)
{
	f8 s = 0;

	for (int c = 0; c < TILES; c++)
		s = WMMA(tile_of(rows + ROW * PITCH + c * TILE),
			 tile_of(own + (wave() * TILE + COLUMN) * PITCH +
				 c * TILE), s);
	return s;
}

INLINE void add_to(f8 *acc, const local short *turned, int block, int g,
		   FRAGMENT w)
{
	for (int c = 0; c < TILES; c++)
		acc[c] = WMMA(tile_of(turned + (ROW + c * TILE) * (block + 8) +
				      g * TILE), w, acc[c]);
}

INLINE void own_load(FRAGMENT *x, global const short *p, uint at, bool in)
{
	for (int c = 0; c < TILES; c++)
		x[c] = in ? FRAGMENT_OF((global const s8 *)(p + at +
							    c * TILE)) :
			    (FRAGMENT)0;
}

/* The group's head and tokens, and this lane's. */
#define FIND(heads, block_of)                                                \
	const int block = group_x() / (heads), head = group_x() % (heads);   \
	const int first = (block_of) * OWN;                                  \
	const int wave_first = first + wave() * TILE;                        \
	const int own = wave_first + COLUMN;                                 \
	const bool in = own < tokens;                                        \
	const int start = own - (in ? position[own] : 0);
#define LAST_FIRST(heads) ((int)(groups_x() / (heads)) - 1 - block)
#define END (first + OWN < tokens ? first + OWN : tokens)

KERNEL(128) flash_packed(global ELEM *restrict out, global float *restrict lse,
			 global const short *restrict q,
			 global const short *restrict k,
			 global const short *restrict v,
			 global const int *restrict position, int heads,
			 int kv_heads, int tokens, float scale)
{
	enum { BLOCK = 32 };
	local short rows[BLOCK * PITCH] __attribute__((aligned(16)));
	local short turned[HEAD * (BLOCK + 8)] __attribute__((aligned(16)));
	FIND(heads, LAST_FIRST(heads))
	const int kv = head / (heads / kv_heads);
	const uint q_ld = heads * HEAD, kv_ld = kv_heads * HEAD;
	float max = -FLOAT_MAX, sum = 0;
	f8 acc[TILES] = { 0 };
	FRAGMENT mine[TILES];

	k += kv * HEAD;
	v += kv * HEAD;
	own_load(mine, q + head * HEAD, own * q_ld, in);
	for (int j = first - position[first]; j < END; j += BLOCK) {
		f8 s[2];
		float m = max;

		barrier_lds();
		stage(rows, 0, BLOCK, k, kv_ld, j, tokens);
		stage(0, turned, BLOCK, v, kv_ld, j, tokens);
		barrier_lds();
		if (j > wave_first + TILE - 1)
			continue;
		for (int g = 0; g < 2; g++) {
			s[g] = multiply(rows, g, mine) * scale * LOG2_E;
			for (int i = 0; i < 8; i++) {
				const int key = j + HALF * 8 + g * TILE + i;

				s[g][i] = key <= own && key >= start ?
						  s[g][i] : -FLOAT_MAX;
				m = max_of(m, s[g][i]);
			}
		}
		m = max_of(m, other(m));
		if (__builtin_amdgcn_ballot_w32(m > max)) {
			const float by = exp2_of(max - m);

			sum *= by;
			for (int c = 0; c < TILES; c++)
				acc[c] *= by;
			max = m;
		}
		for (int g = 0; g < 2; g++) {
			f8 p;

			for (int i = 0; i < 8; i++) {
				const int key = j + HALF * 8 + g * TILE + i;

				p[i] = key <= own && key >= start ?
					       exp2_of(s[g][i] - max) : 0;
				sum += p[i];
			}
			add_to(acc, turned, BLOCK, g, weights(p));
		}
	}
	const float total = sum + other(sum);

	if (!in)
		return;
	for (int c = 0; c < TILES; c++)
		*(global b8 *)(out + own * q_ld + head * HEAD + c * TILE +
			       HALF * 8) =
			__builtin_convertvector(acc[c] * (1 / total), b8);
	if (HALF == 0)
		lse[own * heads + head] =
			(max + __builtin_amdgcn_logf(total)) * 0x1.62e43p-1f;
}

INLINE float dots_of(global const short *a, global const short *b)
{
	float sum = 0;

	for (int c = 0; c < TILES; c++) {
		const b8 x = *(global const b8 *)(a + c * TILE + HALF * 8);
		const b8 y = *(global const b8 *)(b + c * TILE + HALF * 8);

		for (int i = 0; i < 8; i++)
			sum = FMA((float)x[i], (float)y[i], sum);
	}
	return sum;
}

KERNEL(128) flash_packed_dq(global float *restrict dq,
			    global float *restrict dots,
			    global const short *restrict dy,
			    global const short *restrict y,
			    global const float *restrict lse,
			    global const short *restrict q,
			    global const short *restrict k,
			    global const short *restrict v,
			    global const int *restrict position, int heads,
			    int kv_heads, int tokens, float scale)
{
	enum { BLOCK = 32 };
	local short keys[BLOCK * PITCH] __attribute__((aligned(16)));
	local short values[BLOCK * PITCH] __attribute__((aligned(16)));
	local short turned[HEAD * (BLOCK + 8)] __attribute__((aligned(16)));
	FIND(heads, LAST_FIRST(heads))
	const int kv = head / (heads / kv_heads);
	const uint q_ld = heads * HEAD, kv_ld = kv_heads * HEAD;
	const uint at = own * q_ld + head * HEAD;
	f8 acc[TILES] = { 0 };
	FRAGMENT mine[TILES], back[TILES];

	k += kv * HEAD;
	v += kv * HEAD;
	own_load(mine, q, at, in);
	own_load(back, dy, at, in);
	const float all = in ? lse[own * heads + head] * LOG2_E : 0;
	float dot = in ? dots_of(dy + at, y + at) : 0;

	dot += other(dot);
	for (int j = first - position[first]; j < END; j += BLOCK) {
		barrier_lds();
		stage(keys, turned, BLOCK, k, kv_ld, j, tokens);
		stage(values, 0, BLOCK, v, kv_ld, j, tokens);
		barrier_lds();
		if (j > wave_first + TILE - 1)
			continue;
		for (int g = 0; g < 2; g++) {
			const f8 s = multiply(keys, g, mine);
			const f8 dw = multiply(values, g, back);
			f8 ds;

			for (int i = 0; i < 8; i++) {
				const int key = j + HALF * 8 + g * TILE + i;
				const float p = key <= own && key >= start ?
					exp2_of(s[i] * scale * LOG2_E - all) :
					0;

				ds[i] = p * (dw[i] - dot) * scale;
			}
			add_to(acc, turned, BLOCK, g, weights(ds));
		}
	}
	if (!in)
		return;
	for (int c = 0; c < TILES; c++)
		*(global f8 *)(dq + at + c * TILE + HALF * 8) = acc[c];
	if (HALF == 0)
		dots[own * heads + head] = dot;
}

KERNEL(128) flash_packed_dkv(global float *restrict dk,
			     global ELEM *restrict dv,
			     global const float *restrict dots,
			     global const short *restrict dy,
			     global const float *restrict lse,
			     global const short *restrict q,
			     global const short *restrict k,
			     global const short *restrict v,
			     global const int *restrict position, int heads,
			     int kv_heads, int tokens, float scale)
{
	enum { BLOCK = 16 };
	local short keys[OWN * PITCH] __attribute__((aligned(16)));
	local short values[OWN * PITCH] __attribute__((aligned(16)));
	local short qs[BLOCK * PITCH] __attribute__((aligned(16)));
	local short dys[BLOCK * PITCH] __attribute__((aligned(16)));
	local short q_turned[HEAD * (BLOCK + 8)] __attribute__((aligned(16)));
	local short dy_turned[HEAD * (BLOCK + 8)] __attribute__((aligned(16)));
	local float all[BLOCK] __attribute__((aligned(16)));
	local float dot[BLOCK] __attribute__((aligned(16)));
	local int from[BLOCK] __attribute__((aligned(16)));
	FIND(kv_heads, block)
	const int ratio = heads / kv_heads;
	const int last = first + OWN - 1 < tokens - 1 ? first + OWN - 1 :
							tokens - 1;
	const uint q_ld = heads * HEAD, kv_ld = kv_heads * HEAD;
	f8 by_k[TILES] = { 0 }, by_v[TILES] = { 0 };

	(void)start;
	for (int i = 0; i < OWN; i += BLOCK) {
		stage(keys + i * PITCH, 0, BLOCK, k + head * HEAD, kv_ld,
		      first + i, tokens);
		stage(values + i * PITCH, 0, BLOCK, v + head * HEAD, kv_ld,
		      first + i, tokens);
	}
	for (int h = head * ratio; h < (head + 1) * ratio; h++)
		for (int j = first; j < tokens; j += BLOCK) {
			if (j - position[j] > last)
				continue;
			barrier_lds();
			stage(qs, q_turned, BLOCK, q + h * HEAD, q_ld, j,
			      tokens);
			stage(dys, dy_turned, BLOCK, dy + h * HEAD, q_ld, j,
			      tokens);
			if (lid() < BLOCK) {
				const int t = j + lid();
				const bool there = t < tokens;

				all[lid()] = there ? lse[t * heads + h] *
							     LOG2_E : 0;
				dot[lid()] = there ? dots[t * heads + h] : 0;
				from[lid()] = there ? t - position[t] :
						      0x7fffffff;
			}
			barrier_lds();
			const f8 s = multiply_lds(qs, keys);
			const f8 dw = multiply_lds(dys, values);
			const f8 a = *(local f8 *)(all + HALF * 8);
			const f8 d = *(local f8 *)(dot + HALF * 8);
			const i8 b = *(local i8 *)(from + HALF * 8);
			f8 p, ds;

			for (int i = 0; i < 8; i++) {
				const bool sees = j + HALF * 8 + i >= own &&
						  b[i] <= own;

				p[i] = sees ? exp2_of(s[i] * scale * LOG2_E -
						      a[i]) : 0;
				ds[i] = p[i] * (dw[i] - d[i]) * scale;
			}
			add_to(by_v, dy_turned, BLOCK, 0, weights(p));
			add_to(by_k, q_turned, BLOCK, 0, weights(ds));
		}
	if (!in)
		return;
	for (int c = 0; c < TILES; c++) {
		const uint to = own * kv_ld + head * HEAD + c * TILE +
				HALF * 8;

		*(global f8 *)(dk + to) = by_k[c];
		*(global b8 *)(dv + to) = __builtin_convertvector(by_v[c], b8);
	}
}
