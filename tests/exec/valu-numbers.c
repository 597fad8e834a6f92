/*
 * Numbers in bulk: halves against exact integer arithmetic in all roundings,
 * transcendentals against long double, and the three instruction-set levels
 * against each other.
 */
#include <math.h>

#include "tests/exec/valu.h"

static uint64_t state = 0x5eed0422;

static uint32_t random32(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 32;
}

/* --------------------------------------------------------------- halves ----
 */

/* A finite half as a multiple of 2^-24. */
static __int128 half_units(uint32_t h)
{
	int exp = h >> 10 & 31;
	__int128 m = h & 0x3ff;

	if (exp)
		m = (m + 1024) << (exp - 1);
	return h & 0x8000 ? -m : m;
}

/*
 * v * 2^-48 as a half: the neighbours are found by search over all halves,
 * which are in order as integers.  `round` as in MODE.
 */
static uint32_t round_half(__int128 v, int round, bool zero_sign)
{
	__int128 a = v < 0 ? -v : v, low, high, twice;
	uint32_t sign = v < 0 || (!v && zero_sign) ? 0x8000 : 0;
	uint32_t lo = 0, hi = 0x7c00; /* 0x7c00 stands for 65536 */
	bool up;

	while (hi - lo > 1) {
		uint32_t mid = (lo + hi) / 2;

		if (half_units(mid) << 24 <= a)
			lo = mid;
		else
			hi = mid;
	}
	low = half_units(lo) << 24;
	high = hi == 0x7c00 ? (__int128)1 << 64 : half_units(hi) << 24;
	twice = 2 * (a - low) - (high - low);
	if (a == low)
		up = false;
	else if (round == 0)
		up = twice > 0 || (twice == 0 && lo & 1);
	else
		up = (round == 1 && !sign) || (round == 2 && sign);
	return sign | (up ? hi : lo);
}

static uint32_t random_half(void)
{
	uint32_t h;

	do
		h = random32() & 0xffff;
	while ((h & 0x7c00) == 0x7c00);
	/* Often near each other, so that sums cancel and tie. */
	return random32() & 3 ? h : (h & 0x83ff) | 0x3c00;
}

static void test_half(enum isa_op op, const char *what)
{
	int bad = 0;

	for (int n = 0; n < 4000; n++) {
		int r = n & 3;
		struct machine m;

		machine_init(&m, 32);
		m.w.mode |= r << 2;
		for (int i = 0; i < SOFT_LANES; i++)
			for (int k = 0; k < 3; k++)
				m.v[0][k][i] = random_half();
		struct machine old = m;

		RUN(&m, op, S0(VREG(1)), VS1(2), D(0));
		for (int i = 0; i < SOFT_LANES; i++) {
			uint32_t a = old.v[0][1][i], b = old.v[0][2][i];
			uint32_t c = old.v[0][0][i], want;
			__int128 ua = half_units(a), ub = half_units(b), v;

			if (op == ISA_v_add_f16)
				v = (ua + ub) * (1 << 24);
			else
				v = ua * ub;
			if (op == ISA_v_fmac_f16)
				v += half_units(c) * (1 << 24);
			if (!v)
				continue; /* signs of zero: tested by hand */
			want = round_half(v, r, false);
			if (m.v[0][0][i] != want && !bad++)
				diag("%s %#x %#x %#x rounding %d: got %#x, "
				     "wanted %#x",
				     what, a, b, c, r, m.v[0][0][i], want);
		}
	}
	is_u64(bad, 0, "128000 random %s of halves are exact", what);
}

static void test_cvt_half(void)
{
	int bad = 0, bad_back = 0;
	struct machine m;

	for (uint32_t h = 0; h < 0x8000; h += SOFT_LANES) {
		machine_init(&m, 32);
		for (int i = 0; i < SOFT_LANES; i++)
			m.v[0][1][i] = h + i;
		RUN(&m, ISA_v_cvt_f32_f16, S0(VREG(1)), D(2));
		RUN(&m, ISA_v_cvt_f16_f32, S0(VREG(2)), D(3));
		for (int i = 0; i < SOFT_LANES; i++) {
			float f = f32_value(m.v[0][2][i]);

			if (h + i < 0x7c00)
				bad += f !=
				       ldexp((double)half_units(h + i), -24);
			if (h + i <= 0x7c00)
				bad_back += m.v[0][3][i] != h + i;
		}
	}
	is_u64(bad, 0, "every half becomes the right float");
	is_u64(bad_back, 0, "and back");
	bad = 0;
	for (int n = 0; n < 4000; n++) {
		machine_init(&m, 32);
		m.w.mode |= (n & 3) << 2;
		for (int i = 0; i < SOFT_LANES; i++) /* 2^-27 .. 2^17 */
			m.v[0][1][i] = (100 + random32() % 44) << 23 |
				       (random32() & 0x807ff000) |
				       (n & 4 ? random32() & 0xfff : 0);
		RUN(&m, ISA_v_cvt_f16_f32, S0(VREG(1)), D(3));
		for (int i = 0; i < SOFT_LANES; i++) {
			double f = f32_value(m.v[0][1][i]);
			__int128 v = (__int128)ldexp(f, 62);

			/* 2^-62 units, all exact; to 2^-48 with a sticky bit.
			 */
			bool neg = v < 0;
			__int128 a = neg ? -v : v, t = a >> 14;

			t |= (a & 0x3fff) != 0;
			bad += m.v[0][3][i] !=
			       round_half(neg ? -t : t, n & 3, neg);
		}
	}
	is_u64(bad, 0, "128000 floats are rounded to halves exactly");
}

/* ------------------------------------------------------ transcendentals ----
 */

static long double ideal(enum isa_op op, long double x)
{
	static const long double two_pi = 6.283185307179586476925286766559L;

	switch (op) {
	case ISA_v_exp_f32:
		return exp2l(x);
	case ISA_v_log_f32:
		return log2l(x);
	case ISA_v_rcp_f32:
		return 1 / x;
	case ISA_v_rsq_f32:
		return 1 / sqrtl(x);
	case ISA_v_sqrt_f32:
		return sqrtl(x);
	case ISA_v_sin_f32:
		return sinl((x - rintl(x)) * two_pi);
	default:
		return cosl((x - rintl(x)) * two_pi);
	}
}

/* Distance in units of the last place of the wanted float. */
static double ulps(float got, long double wanted)
{
	int exp;

	frexpl(wanted, &exp);
	return (double)fabsl((got - wanted) / ldexpl(1, exp - 24));
}

static void test_trans(enum isa_op op, float min, float max)
{
	double worst = 0;
	struct machine m;

	for (int n = 0; n < 2000; n++) {
		machine_init(&m, 32);
		for (int i = 0; i < SOFT_LANES; i++)
			m.v[0][1][i] = f32_bits(
				min + (max - min) * (random32() * 0x1p-32f));
		RUN(&m, op, S0(VREG(1)), D(0));
		for (int i = 0; i < SOFT_LANES; i++) {
			float x = f32_value(m.v[0][1][i]);
			long double want = ideal(op, x);

			/* Below this, the turn's rounding in `ideal` shows. */
			if (fabsl(want) < 1e-9L)
				continue;
			double u = ulps(f32_value(m.v[0][0][i]), want);

			worst = u > worst ? u : worst;
		}
	}
	ok(worst < 0.501, "%s is within 0.501 ulp in [%g, %g] (%.6f)",
	   isa_op_info(op)->name, min, max, worst);
}

/* --------------------------------------------------------------- levels ----
 */

/* Values that matter, in every format: the low half is a half, too. */
static uint32_t interesting(void)
{
	static const uint32_t t[] = {
		0,	    0x80000000, 1,	    0x80000001, 0x7fffff,
		0x800000,   0x3f800000, 0xbf800000, 0x7f7fffff, 0x7f800000,
		0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, 0x4f000000,
		0xcf000000, 0x4f800000, 0x7fffffff, 0xffffffff, 0x3c003c00,
		0x7c017e00, 0xfc007c00, 0x00010400, 0x7bff7bff, 0x3fe00000,
		0x7ff00000, 0x7ff80000, 0x41e00000, 0x000fffff, 0x33000000,
		0x477fefff, 0x38800000,
	};
	uint32_t r = random32();

	return r & 1 ? t[r >> 8 & 31] : random32();
}

static void run_level(const struct soft_lane_op *row, struct soft_lanes *x,
		      uint32_t *d)
{
	memset(d, 0, SOFT_OPND_DWORDS * SOFT_LANES * 4);
	x->d = d;
	x->mask_out = 0;
	row->fn(x);
}

static bool same_at(int op, const struct soft_lane_op *const *level, int n)
{
	static uint32_t s[3][SOFT_OPND_DWORDS * SOFT_LANES];
	static uint32_t d[3][SOFT_OPND_DWORDS * SOFT_LANES];

	for (int round = 0; round < 60; round++) {
		struct soft_lanes x = { .a = s[0],
					.b = s[1],
					.c = s[2],
					.exec = ~0u,
					.mask_in = random32(),
					.mode = MODE_USUAL ^
						(random32() & 0x200),
					.clamp = round & 1 };
		uint32_t mask[3];

		for (int k = 0; k < 3; k++)
			for (int i = 0; i < SOFT_OPND_DWORDS * SOFT_LANES; i++)
				s[k][i] = interesting();
		for (int k = 0; k < n; k++) {
			run_level(&level[k][op], &x, d[k]);
			mask[k] = x.mask_out;
			if (memcmp(d[k], d[0], sizeof(d[0])) ||
			    mask[k] != mask[0])
				return false;
		}
	}
	return true;
}

static void test_levels(void)
{
	const struct soft_lane_op *level[3] = { soft_simd_v2.ops };
	int n = 1, bad = 0, rows = 0;

	if (soft_simd()->ops != soft_simd_v2.ops)
		level[n++] = soft_simd_v3.ops;
	if (soft_simd()->ops == soft_simd_v4.ops)
		level[n++] = soft_simd_v4.ops;
	if (n == 1) {
		skip("this processor has one level only");
		return;
	}
	for (int op = 1; op < ISA_OP_COUNT; op++) {
		if (!level[0][op].fn)
			continue;
		rows++;
		if (!same_at(op, level, n)) {
			bad++;
			diag("%s differs", isa_op_info(op)->name);
		}
	}
	is_u64(bad, 0, "%d instructions give the same bits at %d levels", rows,
	       n);
}

int main(void)
{
	diag("seed %#llx", (unsigned long long)state);
	test_cvt_half();
	test_half(ISA_v_add_f16, "sums");
	test_half(ISA_v_mul_f16, "products");
	test_half(ISA_v_fmac_f16, "fused multiply-adds");
	test_trans(ISA_v_exp_f32, -126, 127);
	test_trans(ISA_v_exp_f32, -1e-3f, 1e-3f);
	test_trans(ISA_v_log_f32, 1e-6f, 1e6f);
	test_trans(ISA_v_log_f32, 0.999f, 1.001f);
	test_trans(ISA_v_rcp_f32, 1e-6f, 1e6f);
	test_trans(ISA_v_rsq_f32, 1e-6f, 1e6f);
	test_trans(ISA_v_sqrt_f32, 1e-6f, 1e6f);
	test_trans(ISA_v_sin_f32, -256, 256);
	test_trans(ISA_v_sin_f32, -0.01f, 0.01f);
	test_trans(ISA_v_cos_f32, -256, 256);
	test_levels();
	return plan_done();
}
