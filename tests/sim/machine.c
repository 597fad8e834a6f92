/*
 * What a followed wave knows of its registers (compiler/sim/machine.h).
 */
#include "compiler/sim/machine.h"
#include "tests/code.h"
#include "tests/tap.h"

/* Follows a wave of machine.s to its end: in how many steps. */
static int follow(struct machine_code *c, struct machine *m,
		  const char *label)
{
	const struct code code = code_of("tests/sim/machine.s", label);
	struct err e = { 0 };
	int steps = 0;

	*c = (struct machine_code){ .code = (const uint8_t *)code.dw,
				    .va = 4096,
				    .size_bytes = code.size_bytes,
				    .wave_size = 32, .vgprs = 64,
				    .gen = ISA_GFX11 };
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

	is_i64(follow(&c, &m, "few_registers"), 8,
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

/* Scalars that were spilled come back; s4 and v10 are never known. */
static void test_spilled_scalars(void)
{
	static const bool known[9] = { [1] = true, [7] = true };
	struct machine_code c;
	struct machine m, copy = { 0 };

	is_i64(follow(&c, &m, "spill"), 13,
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

/* Worked out by hand: 0xf0e1d2c3 is ...1101 0010 1100 0011 at its low end. */
static void test_fields(void)
{
	static const uint32_t wanted[16] = {
		[1] = 0x0000002c, [2] = 0, [3] = 0xfffffff0,
		[4] = 0x00000fe0, [5] = 7, [6] = 0xf0e1d2c3,
		[7] = 0xe1d2c312, [8] = 0x0000002c, [9] = 0xefdfadbf,
		[10] = 0x0d0a2904, [11] = 0x1d2a7b44, [12] = 0x0f1e2d3c,
		[13] = 0xedcba987, [14] = 1, [15] = 0,
	};
	struct machine_code c;
	struct machine m;

	is_i64(follow(&c, &m, "fields"), 29, "the wave with fields");
	for (int r = 1; r < 16; r++) {
		ok(machine_knows_s(&m, r, 1), "s%d is known", r);
		is_u64(m.s[r], wanted[r], "and right");
	}
	machine_fini(&m);
	machine_code_fini(&c);
}

/* What the lower half of a sum is does not depend on upper halves. */
static void test_low_sum(void)
{
	struct machine_code c;
	struct machine m;

	is_i64(follow(&c, &m, "low_sum"), 10, "the wave with sums");
	ok(machine_knows_s(&m, 1, 1), "the lower half is known");
	is_u64(m.s[1], 705, "and right");
	ok(!machine_knows_s(&m, 2, 1), "the upper one is not");
	ok(!machine_knows_s(&m, 30, 1), "nor the carry");
	ok(!machine_knows_s(&m, 3, 1), "nor a sum of what is unknown");
	ok(!machine_knows_s(&m, 4, 1), "nor one of an unknown product");
	machine_fini(&m);
	machine_code_fini(&c);
}

int main(void)
{
	test_low_sum();
	test_fields();
	test_few_registers();
	test_spilled_scalars();
	return plan_done();
}
