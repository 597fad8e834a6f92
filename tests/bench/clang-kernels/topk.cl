/* The twin of compiler/kernels/topk.c: radix selection, order by counting. */
#include "lib.h"

enum { BINS = 256, MOST = 64 };

struct shared {
	int bins[BINS];
	int bin, need, size, count;
	uint keys[MOST];
	int places[MOST];
	int sums[8];
};

INLINE uint key_of(float v)
{
	const uint bits = __builtin_astype(v == 0 ? 0.0f : v, uint);

	return v != v ? 0 : bits ^ ((int)bits >= 0 ? 0x80000000u :
						     0xffffffffu);
}

/* x of the lane `by` lower in its row of 16, 0 where there is none. */
#define ROW_SHR(x, by) \
	__builtin_amdgcn_update_dpp(0, x, 0x110 + (by), 0xf, 0xf, true)

/* Sum of the work-items up to this one. */
INLINE int group_scan(int x, local int *sums)
{
	x += ROW_SHR(x, 1);
	x += ROW_SHR(x, 2);
	x += ROW_SHR(x, 4);
	x += ROW_SHR(x, 8);
	const int row = __builtin_amdgcn_readlane(x, 15);

	x += lane() >= 16 ? row : 0;
	if (lane() == 31)
		sums[wave()] = x;
	barrier_lds();
	for (int w = 0; w < BINS / 32; w++)
		x += w < (int)wave() ? sums[w] : 0;
	return x;
}

struct choice {
	uint bits;
	int need, size;
};

/* `equal`: of equal keys, by places; lower ones are larger. */
INLINE void step(local struct shared *s, global const ELEM *x, int n,
		 struct choice *c, uint shift, bool places, uint equal)
{
	const int me = lid(), bin = BINS - 1 - me;

	s->bins[me] = 0;
	barrier_lds();
	for (int i = me; i < n; i += BINS) {
		uint key = key_of((float)x[i]);
		bool in = !places || key == equal;

		key = places ? ~(uint)i : key;
		if (shift < 24)
			in = in && (key ^ c->bits) >> (shift + 8) == 0;
		if (in)
			__opencl_atomic_fetch_add(
				(local atomic_int *)&s->bins[key >> shift &
							     (BINS - 1)], 1,
				__ATOMIC_RELAXED,
				__OPENCL_MEMORY_SCOPE_WORK_GROUP);
	}
	barrier_lds();
	const int size = s->bins[bin], upto = group_scan(size, s->sums);

	if (upto - size < c->need && c->need <= upto) {
		s->bin = bin;
		s->need = c->need - (upto - size);
		s->size = size;
	}
	barrier_lds();
	c->bits |= (uint)s->bin << shift;
	c->need = s->need;
	c->size = s->size;
	barrier_lds();
}

KERNEL(256) topk(global ELEM *value, global int *place,
		 global const ELEM *restrict in, int n, int many)
{
	local struct shared s;
	const int me = lid();
	global const ELEM *x = in + (ulong)group_x() * n;
	global ELEM *v = value + (ulong)group_x() * many;
	global int *p = place + (ulong)group_x() * many;
	int some = many < n ? many : n;

	some = some < MOST ? some : MOST;
	if (some > 0) {
		struct choice c = { 0, some, 0 }, q = { 0, 0, 0 };
		int from = 0x7fffffff;

		for (int shift = 24; shift >= 0; shift -= 8)
			step(&s, x, n, &c, shift, false, 0);
		if (c.need < c.size) {
			q.need = c.need;
			for (int shift = 24; shift >= 0; shift -= 8)
				step(&s, x, n, &q, shift, true, c.bits);
			from = (int)~q.bits;
		}
		if (me == 0)
			s.count = 0;
		barrier_lds();
		for (int i = me; i < n; i += BINS) {
			const uint key = key_of((float)x[i]);

			if (key > c.bits || (key == c.bits && i <= from)) {
				const int at = __opencl_atomic_fetch_add(
					(local atomic_int *)&s.count, 1,
					__ATOMIC_RELAXED,
					__OPENCL_MEMORY_SCOPE_WORK_GROUP);

				s.keys[at] = key;
				s.places[at] = i;
			}
		}
		barrier_lds();
		if (me < some) {
			const uint a = s.keys[me];
			const int i = s.places[me];
			int rank = 0;

			for (int j = 0; j < some; j++)
				rank += s.keys[j] > a ||
					(s.keys[j] == a && s.places[j] < i);
			v[rank] = x[i];
			p[rank] = i;
		}
	}
	if (me >= some && me < many) {
		v[me] = (ELEM)-INFINITE;
		p[me] = -1;
	}
}
