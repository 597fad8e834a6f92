/*
 * The twin of compiler/kernels/flash.c for heads of 128 elements of bf16, or of
 * i8 that become f16: the products K Q' and V' P' by the matrix units, 64
 * queries per workgroup, 32 keys in LDS at a time.  See there for who holds
 * what.
 */
#include "lib.h"
#include "wmma.h"

enum { HEAD = 128, TILE = 16, TILES = HEAD / TILE, KEYS = 32, GROUPS = 2,
       K_PITCH = HEAD + 8, V_PITCH = KEYS + 8 };

typedef ELEM elem8 __attribute__((ext_vector_type(8)));

#ifdef CACHE_I8
typedef half PRODUCT;
typedef char c8 __attribute__((ext_vector_type(8)));
#define MULTIPLY WMMA_F16
#else
typedef __bf16 PRODUCT;
#define MULTIPLY WMMA
#endif
typedef PRODUCT product8 __attribute__((ext_vector_type(8)));
typedef PRODUCT products __attribute__((ext_vector_type(sizeof(FRAGMENT) / 2)));
#define exp2_of(x) __builtin_amdgcn_exp2f(x)

struct tiles {
	short k[KEYS * K_PITCH] __attribute__((aligned(16)));
	short v[HEAD * V_PITCH] __attribute__((aligned(16)));
};

/* Eight elements as they lie in the cache; behind the last key that again. */
struct raw {
#ifdef CACHE_I8
	c8 x;
	float scale;
#else
	s8 x;
#endif
};

INLINE struct raw raw_load(global const CACHED *p, int key, int number, int ld,
			   int length)
{
	const uint at = (uint)((key < length ? key : length - 1) * ld);

#ifdef CACHE_I8
	return (struct raw){ *(global const c8 *)(p + at + number * 8),
			     SCALE_OF(p + at, HEAD, number * 8) };
#else
	return (struct raw){ *(global const s8 *)(p + at + number * 8) };
#endif
}

/* In the type of products; 0 unless `in`. */
INLINE s8 raw_value(struct raw r, bool in)
{
#ifdef CACHE_I8
	const f8 x = __builtin_convertvector(r.x, f8) * (in ? r.scale : 0);

	return __builtin_astype(__builtin_convertvector(x, product8), s8);
#else
	return in ? r.x : (s8)0;
#endif
}

INLINE void stage(local struct tiles *t, global const CACHED *kc,
		  global const CACHED *vc, int base, int ld, int length)
{
	enum { K_STEPS = KEYS * HEAD / 8 / 128, V_STEPS = K_STEPS / 2 };
	struct raw k[K_STEPS], v[V_STEPS][2];

	for (int s = 0; s < K_STEPS; s++) {
		const int u = lid() + s * 128;

		k[s] = raw_load(kc, base + u / 16, u % 16, ld, length);
	}
	for (int s = 0; s < V_STEPS; s++) {
		const int u = lid() + s * 128, key = base + u % 16 * 2;

		v[s][0] = raw_load(vc, key, u / 16, ld, length);
		v[s][1] = raw_load(vc, key + 1, u / 16, ld, length);
	}
	for (int s = 0; s < K_STEPS; s++) {
		const int u = lid() + s * 128;

		*(local s8 *)(t->k + u / 16 * K_PITCH + u % 16 * 8) =
			raw_value(k[s], true);
	}
	for (int s = 0; s < V_STEPS; s++) {
		const int u = lid() + s * 128, two = u % 16 * 2;
		const s8 x = raw_value(v[s][0], base + two < length);
		const s8 y = raw_value(v[s][1], base + two + 1 < length);
		local short *to = t->v + u / 16 * 8 * V_PITCH + two;

		for (int j = 0; j < 8; j++)
			*(local short2 *)(to + j * V_PITCH) =
				(short2)(x[j], y[j]);
	}
}

INLINE s8 products_of(f8 p)
{
	return __builtin_astype(__builtin_convertvector(p, product8), s8);
}

struct state {
	FRAGMENT q[TILES];
	f8 acc[TILES];
	float max, sum;
};

INLINE void block(struct state *f, const local struct tiles *t, int base,
		  int whole, int limit, float scale)
{
	float m = -INFINITE;
	f8 s[GROUPS];
	FRAGMENT w[GROUPS];

	for (int g = 0; g < GROUPS; g++) {
		s[g] = 0;
		for (int c = 0; c < TILES; c++)
			s[g] = MULTIPLY(tile_of(t->k + (ROW + g * TILE) *
						K_PITCH + c * TILE),
					f->q[c], s[g]);
		if (base + KEYS > whole)
			for (int j = 0; j < 8; j++)
				if (base + HALF * 8 + g * TILE + j >= limit)
					s[g][j] = -INFINITE;
		for (int j = 0; j < 8; j++)
			m = max_of(m, s[g][j]);
	}
	m = max_of(f->max, max_of(m, other(m)) * scale);
	if (__builtin_amdgcn_ballot_w32(m > f->max)) {
		const float by = exp2_of(f->max - m);

		f->sum *= by;
		for (int c = 0; c < TILES; c++)
			f->acc[c] *= by;
		f->max = m;
	}
	for (int g = 0; g < GROUPS; g++) {
		f8 p;

		for (int j = 0; j < 8; j++) {
			p[j] = exp2_of(FMA(s[g][j], scale, -f->max));
			f->sum += p[j];
		}
		w[g] = fragment_of(products_of(p));
	}
	for (int c = 0; c < TILES; c++)
		for (int g = 0; g < GROUPS; g++)
			f->acc[c] = MULTIPLY(tile_of(t->v + (ROW + c * TILE) *
						     V_PITCH + g * TILE),
					     w[g], f->acc[c]);
}

INLINE FRAGMENT query_of(global const ELEM *p)
{
	return __builtin_astype(__builtin_convertvector(
		FRAGMENT_OF((global const elem8 *)p), products), FRAGMENT);
}

KERNEL(128) attention(global ELEM *restrict out,
		      global const ELEM *restrict q,
		      global const CACHED *restrict kc,
		      global const CACHED *restrict vc,
		      global const int *restrict first,
		      global const int *restrict lengths,
		      global const int *restrict slots, int heads,
		      int kv_heads, int q_ld, int row_ld, int head_ld,
		      long sequence, int causal, float scale)
{
	local struct tiles t;
	const int b = group_x() / heads, h = group_x() - b * heads;
	const int begin = first[b], n = first[b + 1] - begin;
	const int length = lengths[b], mine = (groups_y() - 1 - group_y()) * 64;
	const int base = mine + wave() * TILE, i = base + COLUMN;
	const int token = begin + (i < n ? i : n - 1);
	struct state f = { .max = -FLOAT_MAX };

	if (mine >= n)
		return;
#define SEEN(i) (length - causal * (n - 1 - (i)))
#define WITHIN(i) ((i) < n ? (i) : n - 1)
	const long at = slots[b] * sequence +
			(long)(h / (heads / kv_heads)) * head_ld;
	const int end = SEEN(WITHIN(mine + 63));
	const int last = SEEN(WITHIN(base + TILE - 1));

	q += (long)token * q_ld + h * HEAD;
	scale *= 0x1.715476p0f;
	for (int c = 0; c < TILES; c++) {
		f.q[c] = query_of(q + c * TILE);
		f.acc[c] = 0;
	}
	for (int j = 0; j < end; j += KEYS) {
		barrier_lds();
		stage(&t, kc + at, vc + at, j, row_ld, length);
		barrier_lds();
		if (j < last)
			block(&f, &t, j, SEEN(base), SEEN(i), scale);
	}
	const float sum = f.sum + other(f.sum);
	const float by = sum == 0 ? 0 : 1 / sum;

	if (i >= n)
		return;
	out += ((long)token * heads + h) * HEAD + HALF * 8;
	for (int c = 0; c < TILES; c++)
		*(global elem8 *)(out + c * TILE) =
			__builtin_convertvector(f.acc[c] * by, elem8);
}
