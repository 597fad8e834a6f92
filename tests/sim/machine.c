/*
 * What a followed wave knows of its registers (compiler/sim/machine.h).  The
 * encodings are llvm-mc 19's.
 */
#include "compiler/sim/machine.h"
#include "tests/tap.h"

static const uint32_t code[] = {
	0x7e0a0287,		/* v_mov_b32 v5, 7 */
	0x7e020505,		/* v_readfirstlane_b32 s1, v5 */
	0x7f900287,		/* v_mov_b32 v200, 7 */
	0x7e0005c8,		/* v_readfirstlane_b32 s0, v200 */
	0xd73c003f, 0x00010e80, /* v_lshlrev_b64 v[63:64], 0, 7 */
	0x7e04053f,		/* v_readfirstlane_b32 s2, v63 */
	0x7e060540,		/* v_readfirstlane_b32 s3, v64 */
	0xbfb00000,		/* s_endpgm */
};

/* Follows a wave of 64 VGPRs to its end; returns how many steps that took. */
static int follow(struct machine_code *c, struct machine *m,
		  const uint32_t *words, size_t n)
{
	struct err e = { 0 };
	int steps = 0;

	*c = (struct machine_code){ .code = (const uint8_t *)words, .va = 4096,
				    .size_bytes = n * sizeof(*words),
				    .wave_size = 32, .vgprs = 64 };
	machine_code_init(c);
	machine_init(c, m);
	while (!m->ended && machine_step(c, m, NULL, &e))
		steps++;
	return steps;
}

/* A wave of 64 registers whose code names others, as damaged objects do. */
static void test_few_registers(void)
{
	struct machine_code c;
	struct machine m;

	is_i64(follow(&c, &m, code, ARRAY_SIZE(code)), 8,
	       "the wave is followed");
	ok(machine_knows_s(&m, 1, 1), "what goes through v5 is known");
	is_u64(m.s[1], 7, "and is 7");
	ok(!machine_knows_s(&m, 0, 1), "v200 is never known");
	ok(!machine_knows_v(&m, 200, 1), "not after it was written either");
	ok(machine_knows_s(&m, 2, 1), "of a pair, v63 is known");
	is_u64(m.s[2], 7, "and holds the lower half");
	ok(!machine_knows_s(&m, 3, 1), "and v64 is not");
	machine_fini(&m);
	machine_code_fini(&c);
}

static const uint32_t spill[] = {
	0xd7610005, 0x00010087, /* v_writelane_b32 v5, 7, 0 */
	0xd7610005, 0x00010604, /* v_writelane_b32 v5, s4, 3 */
	0xd7600001, 0x00010105, /* v_readlane_b32 s1, v5, 0 */
	0xd7600002, 0x00010705, /* v_readlane_b32 s2, v5, 3 */
	0xd7600003, 0x00010305, /* v_readlane_b32 s3, v5, 1 */
	0xd7610005, 0x00010287, /* v_writelane_b32 v5, 7, 1 */
	0x7e0a030a,		/* v_mov_b32 v5, v10 */
	0xd7600006, 0x00010105, /* v_readlane_b32 s6, v5, 0 */
	0x7e0a0288,		/* v_mov_b32 v5, 8 */
	0xd7610005, 0x00010604, /* v_writelane_b32 v5, s4, 3 */
	0xd7600007, 0x00010105, /* v_readlane_b32 s7, v5, 0 */
	0xd7600008, 0x00010705, /* v_readlane_b32 s8, v5, 3 */
	0xbfb00000,		/* s_endpgm */
};

/* Scalars that were spilled come back; s4 and v10 are never known. */
static void test_spilled_scalars(void)
{
	static const bool known[9] = { [1] = true, [7] = true };
	struct machine_code c;
	struct machine m, copy = { 0 };

	is_i64(follow(&c, &m, spill, ARRAY_SIZE(spill)), 13,
	       "the wave with spills is followed");
	for (int r = 1; r <= 8; r++)
		if (r != 4 && r != 5)
			is_u64(machine_knows_s(&m, r, 1), known[r],
			       "is s%d known", r);
	is_u64(m.s[1], 7, "s1 has what lane 0 held");
	is_u64(m.s[7], 8, "s7 has what the move left in lane 0");
	machine_copy(&c, &copy, &m);
	is_u64(copy.know_lane[5], ~UINT64_C(8), "a copy knows as much");
	machine_fini(&copy);
	machine_fini(&m);
	machine_code_fini(&c);
}

int main(void)
{
	test_few_registers();
	test_spilled_scalars();
	return plan_done();
}
