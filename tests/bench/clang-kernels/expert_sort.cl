/* Twins of compiler/kernels/expert_tiles.c: what stands around its products. */
#include "lib.h"

enum { TILE = 32, SORT_GROUP = 256, EXPERTS_MAX = 4096 };

/* The sum of those before; *all is that of all. */
INLINE int group_before(int v, int *all, local int *part)
{
	int upto = v, before = 0;

	for (int d = 1; d < 32; d *= 2) {
		const int low = __builtin_amdgcn_ds_bpermute(
			(lane() - d) * 4, upto);

		upto += (int)lane() >= d ? low : 0;
	}
	if (lane() == 31)
		part[wave()] = upto;
	barrier_lds();
	*all = 0;
	for (int i = 0; i < SORT_GROUP / 32; i++) {
		before += i < (int)wave() ? part[i] : 0;
		*all += part[i];
	}
	barrier_lds();
	return before + upto - v;
}

INLINE int count_one(local int *at)
{
	return __opencl_atomic_fetch_add((local atomic_int *)at, 1,
					 __ATOMIC_RELAXED,
					 __OPENCL_MEMORY_SCOPE_WORK_GROUP);
}

KERNEL(256) expert_sort(global int *restrict order, global int *restrict tile,
			global const int *restrict expert, int pairs,
			int experts, int tiles)
{
	local int first[EXPERTS_MAX], cut[EXPERTS_MAX], part[32];
	int place = 0, end = 0, all;

	for (int i = lid(); i < experts; i += SORT_GROUP)
		first[i] = 0;
	barrier_lds();
	for (int i = lid(); i < pairs; i += SORT_GROUP)
		count_one(&first[expert[i]]);
	barrier_lds();
	for (int from = 0; from < experts; from += SORT_GROUP) {
		const int i = from + (int)lid();
		const int n = i < experts ? first[i] : 0;
		const int at = place + group_before(n, &all, part);

		place += all;
		const int to = end + group_before((n + TILE - 1) / TILE, &all,
						  part);
		end += all;
		if (i < experts) {
			first[i] = at;
			cut[i] = to;
		}
	}
	barrier_lds();
	for (int t = lid(); t < tiles; t += SORT_GROUP) {
		int e = 0;

		for (int step = EXPERTS_MAX / 2; step; step /= 2)
			if (e + step < experts && cut[e + step] <= t)
				e += step;
		const int last = e + 1 < experts ? first[e + 1] : pairs;
		const int from = first[e] + (t - cut[e]) * TILE;

		tile[t * 3] = e;
		tile[t * 3 + 1] = from;
		tile[t * 3 + 2] = t >= end	   ? 0 :
				  last - from < TILE ? last - from : TILE;
	}
	barrier_lds();
	for (int i = lid(); i < pairs; i += SORT_GROUP)
		order[count_one(&first[expert[i]])] = i;
}

KERNEL(256) expert_join(global float *restrict x,
			global const float *restrict y,
			global const float *restrict share, int used, int n)
{
	for (int i = lid(); i < n; i += SORT_GROUP) {
		float sum = x[(long)group_x() * n + i];

		for (int j = 0; j < used; j++) {
			const int p = group_x() * used + j;

			sum = FMA(share[p], y[(long)p * n + i], sum);
		}
		x[(long)group_x() * n + i] = sum;
	}
}
