/*
 * What the verifier knows of a value (bounds, zeros at its end, the distance
 * of what two lanes have) holds for all that the registers can be: random
 * sums, products and masks against plain arithmetic, and bounds of masked
 * values against all there are.
 */
#include "isa/verify/verify_int.h"
#include "tests/tap.h"

enum { ROOTS = 4, STEPS = 24, SAMPLES = 16 };

static uint64_t seed = 1402;

static uint32_t pick(uint32_t n)
{
	return (uint32_t)(random_next(&seed) >> 33) % n;
}

/* A value, and what it is in each sample. */
struct known {
	uint32_t node, is[SAMPLES];
};

static struct known random_root(struct values *s, int i)
{
	const uint32_t lo = pick(3) ? 0 : pick(1u << 10);
	const uint32_t hi = lo + pick(1u << (1 + pick(20)));
	struct known x = { .node = val_bound(s, val_insn(s, i, 0, 0), lo, hi) };

	for (int k = 0; k < SAMPLES; k++)
		x.is[k] = k ? lo + pick(hi - lo + 1) : hi;
	return x;
}

static uint32_t random_mask(void)
{
	switch (pick(4)) {
	case 0:
		return UINT32_MAX << pick(12);
	case 1:
		return (1u << pick(20)) - 1;
	case 2:
		return pick(1u << 16);
	default:
		return (uint32_t)random_next(&seed);
	}
}

static struct known random_step(struct values *s, const struct known *x,
				const struct known *y)
{
	const uint32_t what = pick(4), mask = random_mask();
	const uint32_t by = pick(3) ? 1u << pick(6) : pick(2) ? -1u : pick(50);
	struct known z;

	z.node = what == 0 ? val_add(s, x->node, y->node) :
		 what == 1 ? val_scale(s, x->node, by) :
		 what == 2 ? val_add(s, x->node, val_const(s, mask)) :
			     val_and(s, x->node, mask);
	for (int k = 0; k < SAMPLES; k++)
		z.is[k] = what == 0 ? x->is[k] + y->is[k] :
			  what == 1 ? x->is[k] * by :
			  what == 2 ? x->is[k] + mask :
				      x->is[k] & mask;
	return z;
}

/* Differences may be modulo 2^32: of the stride only a power of two tells. */
static int lies(const struct values *s, const struct known *x)
{
	const uint32_t zeros = val_zeros(s, x->node);
	uint32_t stride = val_stride(s, x->node, 0);
	int n = 0;

	stride &= -stride;
	for (int k = 0; k < SAMPLES; k++) {
		n += x->is[k] < s->v[x->node].lo || x->is[k] > s->v[x->node].hi;
		n += zeros && x->is[k] << (32 - zeros);
		n += stride ? (x->is[k] - x->is[0]) % stride != 0 :
			      x->is[k] != x->is[0];
	}
	return n;
}

static void test_random_values(void)
{
	uint64_t wrong = 0, bounded = 0, total = 0;

	for (int run = 0; run < 2000; run++) {
		struct known x[ROOTS + STEPS];
		struct values s;

		val_init(&s);
		for (int i = 0; i < ROOTS; i++)
			x[i] = random_root(&s, i);
		for (uint32_t i = ROOTS; i < ROOTS + STEPS; i++) {
			x[i] = random_step(&s, &x[pick(i)], &x[pick(i)]);
			wrong += lies(&s, &x[i]) != 0;
			bounded += s.v[x[i].node].hi < UINT32_MAX;
			total++;
		}
		val_fini(&s);
	}
	is_u64(wrong, 0, "all that is known of %llu values is true",
	       (unsigned long long)total);
	ok(bounded * 2 > total, "of %llu something is known",
	   (unsigned long long)bounded);
}

/* All intervals within 0..63, with masks of their bits and of those above. */
static void test_bounds(void)
{
	uint64_t wrong = 0, n = 0;
	struct values s;

	val_init(&s);
	for (uint32_t lo = 0; lo < 64; lo++)
		for (uint32_t hi = lo; hi < 64; hi++)
			for (uint32_t m = 0; m < 64; m++) {
				const uint32_t k = m | (n % 2 ? -64u : 0);
				uint32_t root = val_insn(&s, (int)n, 0, 0);
				uint32_t least = UINT32_MAX, most = 0, x;

				for (uint32_t i = lo; i <= hi; i++) {
					least = (i & k) < least ? i & k : least;
					most = (i & k) > most ? i & k : most;
				}
				x = val_and(&s, val_bound(&s, root, lo, hi), k);
				wrong += s.v[x].lo > least || s.v[x].hi < most;
				n += 1;
				wrong += s.v[x].lo < least || s.v[x].hi > most;
			}
	is_u64(wrong, 0, "bounds of x & k are the least and the most of %llu",
	       (unsigned long long)n);
	val_fini(&s);
}

static void test_aligned(void)
{
	struct values s;

	val_init(&s);
	const uint32_t root = val_bound(&s, val_insn(&s, 0, 0, 0), 0, 3);
	const uint32_t byte =
		val_add(&s, val_scale(&s, root, 8), val_const(&s, 1024));
	const uint32_t x = val_and(&s, byte, -16u);
	const uint32_t twice = val_scale(&s, x, 2);

	is_u64(s.v[x].lo, 1024, "(1024..1048) & ~15 is not less than 1024");
	is_u64(s.v[x].hi, 1040, "nor more than 1040");
	is_u64(val_zeros(&s, x), 4, "it is a multiple of 16");
	is_u64(val_stride(&s, twice, 0), 32, "twice it steps by 32");
	is_u64(val_and(&s, x, -16u), x, "once more it stays as it is");
	is_u64(val_and(&s, byte, -8u), byte, "so does a multiple of 8 & ~7");
	is_u64(val_and(&s, byte, 7), val_const(&s, 0), "of which & 7 is 0");
	is_u64(val_and(&s, byte, 0x7ff), byte, "what has no other bits stays");
	val_fini(&s);
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	test_random_values();
	test_bounds();
	test_aligned();
	return plan_done();
}
