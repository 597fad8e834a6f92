/*
 * Every vector instruction is executed, and the code for x86-64-v2, -v3 and
 * -v4 computes the same bits: lane functions run on random and special numbers
 * under random modes.
 */
#include "kfd/soft/exec/valu.h"
#include "tests/exec/lanes.h"

static const struct soft_simd *const simd[] = { &soft_simd_v2, &soft_simd_v3,
						&soft_simd_v4 };

static int levels(void)
{
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
	    !__builtin_cpu_supports("bmi2"))
		return 1;
	return __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512dq") ? 3 : 2;
}

/* Words that are interesting as integers, f32, halves of f64, and f16. */
static uint32_t random_word(uint64_t *seed)
{
	static const uint32_t special[] = {
		0, 1, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
		0x7f800001, 0xff812345, 0x3f800000, 0x00800000, 0x007fffff,
		0x7f7fffff, 0x7ff00000, 0x7ff80000, 0x7ff00001, 0x3ff00000,
		0xffffffff, 0x7fffffff, 0x7c007c00, 0x7e01fc00, 0x7d008001,
		0x3c003c00, 0x03ff0400, 0x7bfffbff, 0x4b000000, 0x4f000000,
	};
	uint64_t u = lanes_random(seed);

	if (u >> 62 == 0)
		return special[u % ARRAY_SIZE(special)];
	return (uint32_t)(u >> 20);
}

/* Runs one row in all tables; false at the first difference. */
static bool same_bits(enum isa_op op, int n_levels, uint64_t *seed)
{
	static _Alignas(64) uint32_t src[3][SOFT_OPND_DWORDS * SOFT_LANES];
	static _Alignas(64) uint32_t d[3][SOFT_OPND_DWORDS * SOFT_LANES];
	uint32_t mask = 0;
	uint64_t mode = lanes_random(seed), more = lanes_random(seed);

	for (int k = 0; k < 3; k++)
		for (size_t i = 0; i < ARRAY_SIZE(src[k]); i++)
			src[k][i] = random_word(seed);
	for (int l = 0; l < n_levels; l++) {
		struct soft_lanes x = {
			.a = src[0], .b = src[1], .c = src[2], .d = d[l],
			.exec = ~0u, .mask_in = (uint32_t)more,
			/* MXCSR is not set up here: nearest even. */
			.mode = (mode & 0x8003f0) | SOFT_MODE_DX10_CLAMP,
			.half = more >> 40 & 1, .clamp = more >> 41 & 1,
			.mods = { more >> 42 & 31, more >> 47 & 31,
				  more >> 52 & 31 },
		};

		memset(d[l], 0, sizeof(d[l]));
		simd[l]->ops[op].fn(&x);
		if (l && (x.mask_out != mask ||
			  memcmp(d[l], d[0], sizeof(d[l])))) {
			for (size_t i = 0; i < ARRAY_SIZE(d[l]); i++)
				if (d[l][i] != d[0][i]) {
					diag("level %d, word %zu: %08x, %08x "
					     "of %08x %08x %08x", l, i,
					     d[l][i], d[0][i], src[0][i],
					     src[1][i], src[2][i]);
					break;
				}
			return false;
		}
		mask = x.mask_out;
	}
	return true;
}

static void test_levels(uint64_t seed)
{
	int n = levels();

	diag("seed %llu, %d levels", (unsigned long long)seed, n);
	for (int op = 1; op < ISA_OP_COUNT; op++) {
		bool same = true;

		if (!soft_simd_v2.ops[op].fn)
			continue;
		for (int round = 0; round < 30 && same; round++)
			same = same_bits(op, n, &seed);
		ok(same, "%s: the same bits at every level",
		   isa_op_info(op)->name);
	}
}

static void test_executed(void)
{
	int missing = 0;

	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const struct isa_op_info *info = isa_op_info(op);
		struct isa_inst in = { .op = op, .fmt = info->fmt };
		const void *row;
		bool vop3 = info->fmt == ISA_FMT_VOP3 ||
			    info->fmt == ISA_FMT_VOP3SD ||
			    info->fmt == ISA_FMT_VOP3P;

		if (!vop3 || info->opcode[ISA_GFX11] < 0)
			continue;
		if (soft_valu_handler(&in, &row))
			continue;
		diag("%s is not executed", info->name);
		missing++;
	}
	is_u64(missing, 0, "every VOP3 and VOP3P instruction is executed");
}

int main(void)
{
	test_executed();
	test_levels(77);
	return plan_done();
}
