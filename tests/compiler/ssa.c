/*
 * The SSA form: text that reads back, what the verifier refuses, dominators,
 * loops, layout and uniformity of functions worked out by hand.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/opt/pass.h"
#include "tests/compiler/ssa-run.h"

/* Every part of the syntax once: syntax.ssa. */
static char *all_syntax;

static struct ssa_func *parse(const char *text)
{
	struct err e = { 0 };
	struct ssa_func *f = ssa_parse(text, &e);

	if (!f) {
		diag("%s", e.msg);
		exit(1);
	}
	return f;
}

static void test_round_trip(void)
{
	struct err e = { 0 };
	struct buf out = { 0 };
	struct ssa_func *f = parse(all_syntax);

	ssa_print(f, &out);
	is_str(out.data, all_syntax, "text reads back to itself");
	ok(ssa_check(f, &e), "and is a valid function%s%s", e.code ? ": " : "",
	   e.msg);
	is_u64(f->arg[1].offset, 8, "an i32 follows a pointer");
	is_u64(f->arg[2].offset, 16, "a pointer is aligned behind an i32");

	struct ssa_func *g = ssa_func_copy(f);

	ssa_func_free(f);
	buf_reset(&out);
	ssa_print(g, &out);
	is_str(out.data, all_syntax, "a copy is the same and stands alone");
	ok(ssa_check(g, &e), "the copy is valid");
	ssa_func_free(g);
	buf_fini(&out);
}

/* The text with its first `from` replaced must be refused with `why`. */
static void refused(const char *from, const char *to, const char *why)
{
	const char *at = strstr(all_syntax, from);
	struct buf text = { 0 };
	struct err e = { 0 };

	if (!at) {
		ok(false, "the text has no '%s'", from);
		return;
	}
	buf_add(&text, all_syntax, (size_t)(at - all_syntax));
	buf_adds(&text, to);
	buf_adds(&text, at + strlen(from));
	struct ssa_func *f = ssa_parse(text.data, &e);
	const bool good = f && ssa_check(f, &e);

	ok(!good, "refused: '%s' for '%s'", to, from);
	has_str(e.msg, why, "it says so: '%s' for '%s'", to, from);
	ssa_func_free(f);
	buf_fini(&text);
}

static const struct {
	const char *from, *to, *why;
} mutants[] = {
	{ "%13 = sub", "%12 = sub", "defined twice" },
	{ "b3(%17", "b1(%17", "defined twice" },
	{ "fma", "fmaa", "no such operation" },
	{ "icmp.slt", "icmp", "wrong kind" },
	{ "icmp.slt", "icmp.folt", "no such predicate" },
	{ "f32x4", "f32x17", "no such type" },
	{ "f32x4", "q32", "no such type" },
	{ "align 16 inv", "align 3 inv", "power of two" },
	{ "barrier", "barrier 3", "wanted a flag" },
	{ "\tret\n", "", "ends a block" },
	{ "\tret\n", "\tret\n\tret\n", "ends a block" },
	{ "%1, %17 0", "%1, %17 1", "no such format" },
	{ "arg i32 1", "arg i32 3", "no such kernel argument" },
	{ "arg i32 1", "arg f32 1", "type differs from the argument" },
	{ "f32 %7 3", "f32 %7 4", "no such element" },
	{ "f32 %7 3", "i32 %7 3", "type is not the element's" },
	{ "fma f32 %11, %8, %5", "fma f32 %11, %8, %3", "types differ" },
	{ "fma f32 %11, %8, %5", "fma f32 %11, %8",
	  "wrong number of operands" },
	{ "sub i32 %10", "sub f32 %10", "type differs from operand 0" },
	{ "load f32x4 %0, %3", "load f32x4 %1, %3", "not of this type" },
	{ "load f32x4 %0, %3", "load f32x4 %0, %5", "offset is not i32" },
	{ "load f32x4 %0, %3", "load f32x4 %0, %3, %4", "mask is not i1" },
	{ "load f32x4 %0, %3", "load i1 %0, %3", "not kept in memory" },
	{ "b3(%5) merge", "b3 merge", "0 arguments for b3, wanted 1" },
	{ "b3(%5) merge", "b3(%3) merge", "a wrong type" },
	{ "b3(%5) merge", "b3(%16) merge", "not defined on every way" },
	{ "%2, %3, %17", "%2, %3, %16", "not defined on every way" },
	{ "reduce.fadd f32 %15", "reduce.fadd f32 %12", "without a parameter" },
	{ "reduce.fadd", "reduce.xchg", "no such combining" },
	{ "reduce.fadd", "reduce.add", "wanted an integer" },
	{ " merge b3", "", "has no merge" },
	{ " merge b3", " merge b2", "where just its sides meet" },
	{ "b1(%13, %12)\nb2", "b1(%13, %12) merge b2\nb2", "b2" },
	{ "jump b3(%16)", "ret", "" },
	{ "branch %14, b2(%12), b1(%13, %12)", "jump b1(%13, %12)", "" },
	{ "wave 32", "wave 16", "wanted 32 or 64" },
	{ "group 64", "group 0", "group" },
	{ "waves 8", "waves 17", "17" },
	{ "const i32 0x0", "const i32 0x100000000", "above the type" },
	{ "\tjump b3(%16)", "\tjump b9", "not defined" },
	{ "%12 = fma", "%12 = fma f32", "wanted" },
	{ "local_id i32 0", "local_id i32 3", "dimension" },
};

static void test_refusals(void)
{
	for (size_t k = 0; k < sizeof(mutants) / sizeof(mutants[0]); k++)
		refused(mutants[k].from, mutants[k].to, mutants[k].why);
}

static struct ssa_block *block(const struct ssa_func *f, uint32_t id)
{
	struct ssa_block *b = f->first;

	while (b && b->id != id)
		b = b->next;
	return b;
}

static struct ssa_inst *value(const struct ssa_func *f, uint32_t id)
{
	for (struct ssa_block *b = f->first; b; b = b->next) {
		for (uint32_t k = 0; k < b->n_params; k++)
			if (b->param[k]->id == id)
				return b->param[k];
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if (i->id == id)
				return i;
	}
	return NULL;
}

static void test_nest(void)
{
	static const struct {
		uint32_t id, idom, loop, depth;
	} want[] = { { 1, 0, 1, 1 }, { 2, 1, 2, 2 }, { 3, 2, 2, 2 },
		     { 4, 3, 2, 2 }, { 5, 3, 2, 2 }, { 6, 3, 2, 2 },
		     { 7, 2, 1, 1 }, { 8, 1, 99, 0 } };
	struct err e = { 0 };
	char *text = ssa_read("nest.ssa");
	struct ssa_func *f = parse(text);
	struct buf order = { 0 };

	ok(ssa_check(f, &e), "nested loops are valid: '%s'", e.msg);
	for (struct ssa_block *b = f->first; b; b = b->next)
		buf_printf(&order, "%u ", b->id);
	is_str(order.data, "0 1 2 3 4 5 6 7 8 ",
	       "layout: loops adjacent, first sides first, no dead blocks");
	for (size_t k = 0; k < 8; k++) {
		const struct ssa_block *b = block(f, want[k].id);

		is_u64(b->idom->id, want[k].idom, "b%u is dominated", b->id);
		is_u64(b->loop ? b->loop->id : 99, want[k].loop,
		       "b%u is in its loop", b->id);
		is_u64(b->loop_depth, want[k].depth, "b%u has a depth", b->id);
	}
	ok(ssa_dominates(block(f, 2), block(f, 7)), "b2 dominates b7");
	ok(!ssa_dominates(block(f, 4), block(f, 6)), "b4 does not dominate b6");
	ok(ssa_loop_has(block(f, 1), block(f, 5)), "the outer loop has b5");

	/* Uniform: inside a loop a counter is; behind one that lanes leave
	 * one by one (bound %3 = lane) it is not; the branch on it is not. */
	static const uint8_t uniform[] = { 0, 1, 2, 10, 11, 12, 4, 15, 7, 6 };
	static const uint8_t divergent[] = { 3, 14, 5 };

	ssa_uniform(f);
	for (size_t k = 0; k < sizeof(uniform); k++)
		ok(k == 9 ? !(value(f, 6)->flags & SSA_UNIFORM) :
			    value(f, uniform[k])->flags & SSA_UNIFORM,
		   "%%%u is %s", uniform[k],
		   k == 9 ? "not, behind" : "uniform");
	for (size_t k = 0; k < sizeof(divergent); k++)
		ok(!(value(f, divergent[k])->flags & SSA_UNIFORM),
		   "%%%u differs between lanes", divergent[k]);
	ok(!(block(f, 2)->last->flags & SSA_UNIFORM), "b2 branches by lane");
	ok(block(f, 1)->last->flags & SSA_UNIFORM, "b1 branches for all");
	buf_fini(&order);
	free(text);
	ssa_func_free(f);
}

static void test_pass_names(void)
{
	struct err e = { 0 };
	bool changed;
	struct ssa_func *f = parse(all_syntax);

	ok(!ssa_pass_run(f, "dcee", &changed, &e),
	   "an unknown pass is refused");
	is_u64(e.code, ERR_USAGE, "as a usage error");
	has_str(e.msg, " dce", "that lists those there are");
	ssa_func_free(f);
}

int main(void)
{
	all_syntax = ssa_read("syntax.ssa");
	test_round_trip();
	test_refusals();
	test_nest();
	test_pass_names();
	free(all_syntax);
	return plan_done();
}
