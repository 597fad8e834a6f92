/*
 * engine/gpu/card/sums.c - arrays that several cards add up: each its span.
 */
#include "engine/gpu/card/card.h"

struct gpu_span gpu_span_of(uint64_t all, uint32_t number, uint32_t cards)
{
	/* Whole vectors, so that every span begins with one. */
	const uint64_t each = (all / cards + KERNEL_VECTOR - 1) /
			      KERNEL_VECTOR * KERNEL_VECTOR;
	const uint64_t from = number * each < all ? number * each : all;
	const uint64_t left = all - from;

	return (struct gpu_span){
		from, number + 1 == cards || left < each ? left : each
	};
}

void gpu_sum_args(struct gpu_args *a, struct gpu_span span, uint64_t out,
		  const uint64_t *part, uint32_t n, uint64_t clear)
{
	const uint64_t at = span.from * sizeof(float);

	arg_va(a, out + at);
	arg_va(a, (clear ? clear : out) + at);
	for (uint32_t i = 0; i < KERNEL_MAX_PARTS; i++)
		arg_va(a, part[i < n ? i : 0] + at);
	arg_u32(a, n);
	arg_u32(a, clear != 0);
	arg_u32(a, (uint32_t)span.n);
}
