/*
 * Each pass of the middle on texts written by hand: what it makes of them, and
 * what it must leave alone.
 *
 * Both texts are brought to one form before they are compared: what nothing
 * needs goes, constants stand at the start, values and blocks are numbered as
 * they come.
 */
#include <stdlib.h>

#include "compiler/opt/pass.h"
#include "tests/compiler/ssa-run.h"

/* What the values of every case begin with. */
static const char head[] =
	"kernel t group 64 1 1 wave 32\n"
	"arg p ptr i32 noalias\narg q ptr i32 noalias\narg r ptr i32\n"
	"arg n i32\narg x f32\n"
	"lds s 1024 align 16\nlds t 1024 align 16\n"
	"b0:\n"
	"%0 = arg ptr 0\n%1 = arg ptr 1\n%2 = arg ptr 2\n%3 = arg i32 3\n"
	"%4 = arg f32 4\n%5 = local_id i32 0\n%6 = lds lds 0\n%7 = lds lds 1\n"
	"%10 = const i32 0\n%11 = const i32 1\n%12 = const i32 2\n"
	"%13 = const i32 4\n%14 = const i32 8\n%15 = const i32 7\n"
	"%16 = const f32 0x3f800000\n%17 = const f32 0\n"
	"%18 = const f32 0x80000000\n%19 = const i32 0xffffffff\n"
	"%20 = const i1 1\n%21 = const i64 16\n%22 = const i32 3\n";

static const struct test {
	const char *pass, *name, *before, *after; /* NULL: unchanged */
} tests[] = {
	{ "dce", "an unused value goes, a store stays",
	  "%30 = add i32 %3, %5\n%31 = mul i32 %30, %5\n"
	  "%32 = load i32 %0, %5\nstore %0, %5, %30 align 4\nret\n",
	  "%30 = add i32 %3, %5\nstore %0, %5, %30 align 4\nret\n" },
	{ "dce", "a parameter that only feeds itself goes",
	  "jump b1(%10, %10)\nb1(%30 i32, %31 i32):\n"
	  "%32 = icmp.slt i1 %30, %3\nbranch %32, b2, b3\nb2:\n"
	  "%33 = add i32 %30, %11\n%34 = add i32 %31, %30\n"
	  "jump b1(%33, %34)\nb3:\nret\n",
	  "jump b1(%10)\nb1(%30 i32):\n%32 = icmp.slt i1 %30, %3\n"
	  "branch %32, b2, b3\nb2:\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n" },
	{ "dce", "a volatile load stays",
	  "%30 = load i32 %0, %5 volatile\nret\n", NULL },

	{ "copy_prop", "a parameter with one value is that value",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2(%3, %5) merge b2\n"
	  "b1:\njump b2(%3, %11)\nb2(%31 i32, %32 i32):\n"
	  "store %0, %31, %32\nret\n",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2(%5) merge b2\n"
	  "b1:\njump b2(%11)\nb2(%32 i32):\nstore %0, %3, %32\nret\n" },
	{ "copy_prop", "what leaves a loop keeps its parameter",
	  "jump b1(%10)\nb1(%30 i32):\n%32 = icmp.slt i1 %30, %3\n"
	  "branch %32, b2, b3(%30)\nb2:\n%33 = add i32 %30, %11\n"
	  "jump b1(%33)\nb3(%34 i32):\nstore %0, %10, %34\nret\n",
	  NULL },

	{ "simplify", "constants fold",
	  "%30 = mul i32 %13, %14\n%31 = sub i32 %30, %11\n"
	  "store %0, %10, %31\nret\n",
	  "%30 = const i32 31\nstore %0, %10, %30\nret\n" },
	{ "simplify", "division by zero is all ones",
	  "%30 = div_u i32 %13, %10\nstore %0, %10, %30\nret\n",
	  "store %0, %10, %19\nret\n" },
	{ "simplify", "sums and products of constants meet",
	  "%30 = add i32 %11, %5\n%31 = add i32 %30, %15\n"
	  "%32 = mul i32 %31, %14\nstore %0, %10, %32\nret\n",
	  "%30 = const i32 64\n%31 = shl i32 %5, %22\n"
	  "%32 = add i32 %31, %30\nstore %0, %10, %32\nret\n" },
	{ "simplify", "a shift of a sum is not said not to wrap if it may",
	  "%30 = add i32 %3, %11\n%31 = shl i32 %30, %12 nuw\n"
	  "store %0, %10, %31\nret\n",
	  "%30 = shl i32 %3, %12\n%31 = add i32 %30, %13\n"
	  "store %0, %10, %31\nret\n" },
	{ "simplify", "a mask over all that there is goes",
	  "%30 = const i32 63\n%31 = and i32 %5, %30\n"
	  "store %0, %10, %31\nret\n",
	  "store %0, %10, %5\nret\n" },
	{ "simplify", "a smaller mask stays",
	  "%30 = const i32 31\n%31 = and i32 %5, %30\n"
	  "store %0, %10, %31\nret\n",
	  NULL },
	{ "simplify", "signed division of what is positive",
	  "%31 = div_s i32 %5, %14\n%32 = rem_s i32 %5, %14\n"
	  "%33 = add i32 %31, %32\nstore %0, %10, %33\nret\n",
	  "%31 = shr_u i32 %5, %22\n%32 = and i32 %5, %15\n"
	  "%33 = add i32 %31, %32\nstore %0, %10, %33\nret\n" },
	{ "simplify", "signed division of what may be negative stays",
	  "%31 = div_s i32 %3, %14\nstore %0, %10, %31\nret\n", NULL },
	{ "simplify", "bounds decide a comparison",
	  "%30 = const i32 64\n%31 = icmp.slt i1 %5, %30\n"
	  "%32 = select i32 %31, %3, %5\nstore %0, %10, %32\nret\n",
	  "store %0, %10, %3\nret\n" },
	{ "simplify", "x + 0 keeps -0, x - 0 and x * 1 are x",
	  "%30 = fadd f32 %4, %17\n%31 = fsub f32 %30, %17\n"
	  "%32 = fmul f32 %31, %16\n%33 = fadd f32 %32, %18\n"
	  "store %0, %10, %33\nret\n",
	  "%30 = fadd f32 %4, %17\nstore %0, %10, %30\nret\n" },
	{ "simplify", "x * 0 and x - x are not 0: x may be infinite",
	  "%30 = fmul f32 %4, %17\n%31 = fsub f32 %4, %4\n"
	  "%32 = fadd f32 %30, %31\nstore %0, %10, %32\nret\n",
	  NULL },
	{ "simplify", "a division by a power of two is a product",
	  "%30 = const f32 0x41000000\n%31 = fdiv f32 %4, %30\n"
	  "store %0, %10, %31\nret\n",
	  "%30 = const f32 0x3e000000\n%31 = fmul f32 %4, %30\n"
	  "store %0, %10, %31\nret\n" },
	{ "simplify", "a division by three stays",
	  "%30 = const f32 0x40400000\n%31 = fdiv f32 %4, %30\n"
	  "store %0, %10, %31\nret\n",
	  NULL },
	{ "simplify", "not of a comparison takes NaN to the other side",
	  "%30 = fcmp.folt i1 %4, %16\n%31 = not i1 %30\n"
	  "store %0, %10, %3, %31\nret\n",
	  "%31 = fcmp.fuge i1 %4, %16\nstore %0, %10, %3, %31\nret\n" },
	{ "simplify", "f16 to f32 and back, a pack of extracts",
	  "%30 = load f16x2 %0, %10\n%31 = extract f16 %30 0\n"
	  "%32 = extract f16 %30 1\n%33 = fcvt f32 %31\n%34 = fcvt f16 %33\n"
	  "%35 = pack f16x2 %34, %32\nstore %1, %10, %35\nret\n",
	  "%30 = load f16x2 %0, %10\nstore %1, %10, %30\nret\n" },
	{ "simplify", "sign extension of what is positive",
	  "%30 = sext i64 %5\n%31 = ptradd ptr %0, %30\n"
	  "store %31, %10, %3\nret\n",
	  "%30 = zext i64 %5\n%31 = ptradd ptr %0, %30\n"
	  "store %31, %10, %3\nret\n" },

	{ "cse", "the same is computed once, in any order of operands",
	  "%30 = add i32 %3, %5\n%31 = add i32 %5, %3\n"
	  "%32 = mul i32 %30, %31\nstore %0, %10, %32\nret\n",
	  "%30 = add i32 %3, %5\n%32 = mul i32 %30, %30\n"
	  "store %0, %10, %32\nret\n" },
	{ "cse", "weaker flags remain",
	  "%30 = add i32 %3, %5 nuw nsw\n%31 = add i32 %3, %5 nsw\n"
	  "%32 = mul i32 %30, %31\nstore %0, %10, %32\nret\n",
	  "%30 = add i32 %3, %5 nsw\n%32 = mul i32 %30, %30\n"
	  "store %0, %10, %32\nret\n" },
	{ "cse", "of two sides none is for the other",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2 merge b3\n"
	  "b1:\n%31 = add i32 %3, %5\nstore %0, %5, %31\njump b3\n"
	  "b2:\n%32 = add i32 %3, %5\nstore %1, %5, %32\njump b3\nb3:\nret\n",
	  NULL },
	{ "cse", "a load is read once, a store forwarded",
	  "%30 = load i32 %0, %5\n%31 = load i32 %0, %5\n"
	  "%32 = add i32 %30, %31\nstore %1, %5, %32\n"
	  "%33 = load i32 %1, %5\n%34 = load i32 %0, %5\n"
	  "%35 = add i32 %33, %34\nstore %1, %5, %35 +4\nret\n",
	  "%30 = load i32 %0, %5\n%32 = add i32 %30, %30\n"
	  "store %1, %5, %32\n%35 = add i32 %32, %30\n"
	  "store %1, %5, %35 +4\nret\n" },
	{ "cse", "a store through a pointer that may be the same hides it",
	  "%30 = load i32 %0, %5\nstore %2, %5, %3\n%31 = load i32 %0, %5\n"
	  "%32 = add i32 %30, %31\nstore %1, %5, %32\nret\n",
	  NULL },
	{ "cse", "a barrier and a fence end what is known",
	  "store %6, %5, %3\nbarrier\n%30 = load i32 %6, %5\n"
	  "%31 = load i32 %0, %5\nfence\n%32 = load i32 %0, %5\n"
	  "%33 = add i32 %31, %32\n%34 = add i32 %33, %30\n"
	  "store %1, %5, %34\nret\n",
	  NULL },
	{ "cse", "two LDS arrays and adjacent words are apart",
	  "store %6, %5, %3\nstore %7, %5, %11\nstore %6, %5, %12 +4\n"
	  "%30 = load i32 %6, %5\nstore %1, %5, %30\nret\n",
	  "store %6, %5, %3\nstore %7, %5, %11\nstore %6, %5, %12 +4\n"
	  "store %1, %5, %3\nret\n" },
	{ "cse", "words that overlap are not apart",
	  "store %6, %5, %3\nstore %6, %5, %12 +2\n"
	  "%30 = load i32 %6, %5\nstore %1, %5, %30\nret\n",
	  NULL },
	{ "cse", "between lanes only within a block",
	  "%30 = reduce.add i32 %3\n%31 = reduce.add i32 %3\n"
	  "%32 = add i32 %30, %31\nstore %0, %5, %32\n"
	  "%33 = icmp.slt i1 %5, %3\nbranch %33, b1, b2 merge b2\n"
	  "b1:\n%34 = reduce.add i32 %3\nstore %0, %5, %34 +4\njump b2\n"
	  "b2:\nret\n",
	  "%30 = reduce.add i32 %3\n%32 = add i32 %30, %30\n"
	  "store %0, %5, %32\n%33 = icmp.slt i1 %5, %3\n"
	  "branch %33, b1, b2 merge b2\n"
	  "b1:\n%34 = reduce.add i32 %3\nstore %0, %5, %34 +4\njump b2\n"
	  "b2:\nret\n" },
	{ "cse", "a clock is read each time",
	  "%30 = clock i32\n%31 = clock i32\n%32 = sub i32 %31, %30\n"
	  "store %0, %5, %32\nret\n",
	  NULL },

	{ "simplify_cfg", "a branch on a constant goes one way",
	  "branch %20, b1, b2 merge b3\nb1:\nstore %0, %5, %3\njump b3\n"
	  "b2:\nstore %1, %5, %3\njump b3\nb3:\nret\n",
	  "store %0, %5, %3\nret\n" },
	{ "simplify_cfg", "a loop that is never entered goes",
	  "%30 = const i1 0\njump b1(%10)\nb1(%31 i32):\n"
	  "branch %30, b2, b3(%31)\nb2:\n%32 = add i32 %31, %11\n"
	  "jump b1(%32)\nb3(%33 i32):\nstore %0, %5, %33\nret\n",
	  "store %0, %5, %10\nret\n" },

	{ "merge_branches", "two IFs of one condition are one",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2(%3) merge b2\nb1:\n"
	  "%31 = load i32 %0, %5\njump b2(%31)\nb2(%32 i32):\n"
	  "%33 = add i32 %32, %11\nbranch %30, b3, b4 merge b5\nb3:\n"
	  "store %1, %5, %33\njump b5\nb4:\njump b5\nb5:\n"
	  "store %0, %5, %33 +4\nret\n",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b7 merge b5\n"
	  "b1:\n%31 = load i32 %0, %5\njump b6\n"
	  "b6:\n%33 = add i32 %31, %11\njump b3\n"
	  "b3:\nstore %1, %5, %33\njump b5(%33)\n"
	  "b7:\n%34 = add i32 %3, %11\njump b4\n"
	  "b4:\njump b5(%34)\nb5(%35 i32):\n"
	  "store %0, %5, %35 +4\nret\n" },
	{ "merge_branches", "not around what talks to other lanes",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2(%3) merge b2\nb1:\n"
	  "%31 = load i32 %0, %5\njump b2(%31)\nb2(%32 i32):\n"
	  "%33 = reduce.add i32 %32\nbranch %30, b3, b5 merge b5\nb3:\n"
	  "store %1, %5, %33\njump b5\nb5:\nret\n",
	  NULL },

	{ "correlated", "a condition is true on its own side, and behind as it was",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2 merge b3\nb1:\n"
	  "store %0, %5, %3, %30\njump b3\nb2:\nstore %1, %5, %3, %30\n"
	  "jump b3\nb3:\nstore %0, %5, %11, %30 +4\nret\n",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2 merge b3\nb1:\n"
	  "store %0, %5, %3, %20\njump b3\nb2:\njump b3\nb3:\n"
	  "store %0, %5, %11, %30 +4\nret\n" },
	{ "correlated", "in a loop, for this trip only",
	  "%29 = load i32 %0, %5\n%30 = icmp.slt i1 %29, %3\n"
	  "jump b1(%10, %30)\nb1(%31 i32, %32 i1):\n"
	  "branch %32, b2, b3\nb2:\nstore %1, %31, %3, %32\n"
	  "%33 = add i32 %31, %11\n%34 = icmp.slt i1 %33, %3\n"
	  "jump b1(%33, %34)\nb3:\nstore %1, %5, %3, %30\nret\n",
	  "%29 = load i32 %0, %5\n%30 = icmp.slt i1 %29, %3\n"
	  "jump b1(%10, %30)\nb1(%31 i32, %32 i1):\n"
	  "branch %32, b2, b3\nb2:\nstore %1, %31, %3, %20\n"
	  "%33 = add i32 %31, %11\n%34 = icmp.slt i1 %33, %3\n"
	  "jump b1(%33, %34)\nb3:\nstore %1, %5, %3, %30\nret\n" },
	{ "simplify", "masks that are constants",
	  "%30 = const i1 0\n%31 = load i32 %0, %5, %20\n"
	  "%32 = load i32 %0, %3, %30\n%33 = sub i32 %31, %32\n"
	  "store %1, %5, %33, %20\nret\n",
	  "%31 = load i32 %0, %5\nstore %1, %5, %31\nret\n" },

	{ "ifconv", "a small IF is a selection",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2(%3) merge b2\n"
	  "b1:\n%31 = add i32 %3, %11\njump b2(%31)\nb2(%32 i32):\n"
	  "store %0, %5, %32\nret\n",
	  "%30 = icmp.slt i1 %5, %3\n%31 = add i32 %3, %11\n"
	  "%32 = select i32 %30, %31, %3\njump b2(%32)\nb2(%33 i32):\n"
	  "store %0, %5, %33\nret\n" },
	{ "ifconv", "a side that writes or divides stays",
	  "%30 = icmp.slt i1 %5, %3\nbranch %30, b1, b2(%3) merge b2\n"
	  "b1:\n%31 = div_s i32 %3, %5\njump b2(%31)\nb2(%32 i32):\n"
	  "branch %30, b3, b4 merge b4\nb3:\nstore %0, %5, %32\njump b4\n"
	  "b4:\nret\n",
	  NULL },

	{ "licm", "what does not change is computed before",
	  "jump b1(%10)\nb1(%30 i32):\n%31 = icmp.slt i1 %30, %3\n"
	  "branch %31, b2, b3\nb2:\n%32 = mul i32 %3, %5\n"
	  "store %0, %30, %32\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n",
	  "%32 = mul i32 %3, %5\njump b1(%10)\nb1(%30 i32):\n"
	  "%31 = icmp.slt i1 %30, %3\nbranch %31, b2, b3\nb2:\n"
	  "store %0, %30, %32\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n" },
	{ "licm", "a load of the body may trap if there is no trip",
	  "jump b1(%10)\nb1(%30 i32):\n%31 = icmp.slt i1 %30, %3\n"
	  "branch %31, b2, b3\nb2:\n%32 = load i32 %1, %5 invariant\n"
	  "store %0, %30, %32\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n",
	  NULL },
	{ "licm", "a load of the header moves, unless the loop writes there",
	  "jump b1(%10)\nb1(%30 i32):\n%34 = load i32 %1, %5\n"
	  "%35 = load i32 %0, %5\n%36 = add i32 %34, %35\n"
	  "%31 = icmp.slt i1 %30, %36\nbranch %31, b2, b3\nb2:\n"
	  "store %0, %30, %3\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n",
	  "%34 = load i32 %1, %5\njump b1(%10)\nb1(%30 i32):\n"
	  "%35 = load i32 %0, %5\n%36 = add i32 %34, %35\n"
	  "%31 = icmp.slt i1 %30, %36\nbranch %31, b2, b3\nb2:\n"
	  "store %0, %30, %3\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n" },
	{ "licm", "a reduction stays with its lanes",
	  "jump b1(%10)\nb1(%30 i32):\n%31 = icmp.slt i1 %30, %5\n"
	  "branch %31, b2, b3\nb2:\n%32 = reduce.add i32 %3\n"
	  "store %0, %30, %32\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n",
	  NULL },

	{ "unroll_full", "two known trips",
	  "jump b1(%10)\nb1(%30 i32):\n%31 = icmp.slt i1 %30, %12\n"
	  "branch %31, b2, b3(%30)\nb2:\nstore %0, %30, %5\n"
	  "%33 = add i32 %30, %11\njump b1(%33)\nb3(%34 i32):\n"
	  "store %1, %34, %5\nret\n",
	  "jump b4\nb4:\nstore %0, %10, %5\n%33 = add i32 %10, %11\njump b5\n"
	  "b5:\nstore %0, %33, %5\n%35 = add i32 %33, %11\njump b3(%35)\n"
	  "b3(%34 i32):\nstore %1, %34, %5\nret\n" },
	{ "unroll", "four trips at a time, then the rest",
	  "jump b1(%10)\nb1(%30 i32):\n%31 = icmp.slt i1 %30, %3\n"
	  "branch %31, b2, b3\nb2:\nstore %0, %30, %5\n"
	  "%33 = add i32 %30, %11\njump b1(%33)\nb3:\nret\n",
	  "%40 = const i32 0x80000003\n%41 = max_s i32 %3, %40\n"
	  "%42 = sub i32 %41, %22\njump b4(%10)\nb4(%43 i32):\n"
	  "%44 = icmp.slt i1 %43, %42\nbranch %44, b5, b6(%43)\n"
	  "b5:\njump b7\nb7:\nstore %0, %43, %5\n%45 = add i32 %43, %11\n"
	  "jump b8\nb8:\nstore %0, %45, %5\n%46 = add i32 %45, %11\njump b9\n"
	  "b9:\nstore %0, %46, %5\n%47 = add i32 %46, %11\njump b10\n"
	  "b10:\nstore %0, %47, %5\n%48 = add i32 %47, %11\njump b4(%48)\n"
	  "b6(%49 i32):\njump b1(%49)\nb1(%30 i32):\n"
	  "%31 = icmp.slt i1 %30, %3\nbranch %31, b2, b3\nb2:\n"
	  "store %0, %30, %5\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n" },
	{ "unroll", "lanes that leave apart, and talk, are left alone",
	  "jump b1(%10)\nb1(%30 i32):\n%31 = icmp.slt i1 %30, %5\n"
	  "branch %31, b2, b3\nb2:\n%32 = reduce.add i32 %3\n"
	  "store %0, %30, %32\n%33 = add i32 %30, %11\njump b1(%33)\n"
	  "b3:\nret\n",
	  NULL },

	{ "strength", "a product of the counter is added up",
	  "jump b1(%11)\nb1(%30 i32):\n%31 = icmp.slt i1 %30, %3\n"
	  "branch %31, b2, b3\nb2:\n%32 = mul i32 %30, %5\n"
	  "store %0, %32, %3\n%33 = add i32 %30, %12\njump b1(%33)\n"
	  "b3:\nret\n",
	  "%40 = mul i32 %11, %5\n%41 = mul i32 %12, %5\njump b1(%11, %40)\n"
	  "b1(%30 i32, %42 i32):\n%31 = icmp.slt i1 %30, %3\n"
	  "branch %31, b2, b3\nb2:\nstore %0, %42, %3\n"
	  "%33 = add i32 %30, %12\n%43 = add i32 %42, %41\n"
	  "jump b1(%33, %43)\nb3:\nret\n" },

	{ "fma", "a product and a sum are one",
	  "%30 = fmul f32 %4, %4 contract\n%31 = fadd f32 %30, %16 contract\n"
	  "%32 = fmul f32 %4, %31 contract\n%33 = fsub f32 %16, %32 contract\n"
	  "store %0, %5, %33\nret\n",
	  "%31 = fma f32 %4, %4, %16 contract\n%40 = fneg f32 %4\n"
	  "%33 = fma f32 %40, %31, %16 contract\nstore %0, %5, %33\nret\n" },
	{ "fma", "not without leave, and not if the product is used twice",
	  "%30 = fmul f32 %4, %4\n%31 = fadd f32 %30, %16 contract\n"
	  "%32 = fmul f32 %4, %31 contract\n%33 = fadd f32 %32, %32 contract\n"
	  "%34 = fmul f32 %33, %4 contract\n%35 = fadd f32 %34, %16\n"
	  "store %0, %5, %35\nret\n",
	  NULL },

	{ "address", "a constant moves into the offset",
	  "%30 = shl i32 %5, %12\n%31 = add i32 %30, %13\n"
	  "store %0, %31, %3 +8\nstore %0, %14, %3\nret\n",
	  "%30 = shl i32 %5, %12\nstore %0, %30, %3 +12\n"
	  "store %0, %10, %3 +8\nret\n" },
	{ "address", "not if the sum may wrap",
	  "%30 = add i32 %3, %13\nstore %0, %30, %3\nret\n", NULL },
	{ "address", "nor if the field is too small",
	  "%30 = const i32 4096\n%31 = add i32 %5, %30\nstore %0, %31, %3\n"
	  "ret\n",
	  NULL },
	{ "address",
	  "what is uniform goes to the pointer, the lane's to the offset",
	  "%30 = zext i64 %5\n%31 = sext i64 %3\n%32 = add i64 %30, %31\n"
	  "%33 = const i64 2\n%34 = shl i64 %32, %33\n"
	  "%35 = ptradd ptr %0, %34\nstore %35, %10, %3\nret\n",
	  "%31 = sext i64 %3\n%33 = const i64 2\n%36 = shl i32 %5, %12 nuw\n"
	  "%34 = shl i64 %31, %33\n%35 = ptradd ptr %0, %34\n"
	  "store %35, %36, %3\nret\n" },
	{ "address", "a distance of the lane that may be negative stays",
	  "%29 = load i32 %1, %5\n%30 = sext i64 %29\n"
	  "%35 = ptradd ptr %0, %30\nstore %35, %10, %3\nret\n",
	  NULL },

	{ "vectorize", "four loads and four stores",
	  "%30 = load i32 %0, %5 +4 align 4\n%31 = load i32 %0, %5 align 4\n"
	  "%32 = load i32 %0, %5 +12 align 4\n"
	  "%33 = load i32 %0, %5 +8 align 4\n"
	  "store %1, %5, %31 align 4\nstore %1, %5, %30 +4 align 4\n"
	  "store %1, %5, %33 +8 align 4\nstore %1, %5, %32 +12 align 4\nret\n",
	  "%40 = load i32x4 %0, %5 align 4\n%41 = extract i32 %40 0\n"
	  "%42 = extract i32 %40 1\n%43 = extract i32 %40 2\n"
	  "%44 = extract i32 %40 3\n%45 = pack i32x4 %41, %42, %43, %44\n"
	  "store %1, %5, %45 align 4\nret\n" },
	{ "vectorize", "not over a store that may be the same",
	  "%30 = load i32 %0, %5 align 4\nstore %2, %5, %3 align 4\n"
	  "%31 = load i32 %0, %5 +4 align 4\n%32 = add i32 %30, %31\n"
	  "store %1, %5, %32 align 4\nret\n",
	  NULL },
	{ "vectorize", "not over a barrier, nor with a hole",
	  "%30 = load i32 %6, %5 align 4\nbarrier\n"
	  "%31 = load i32 %6, %5 +4 align 4\n%33 = load i32 %0, %5 align 4\n"
	  "%34 = load i32 %0, %5 +8 align 4\n%32 = add i32 %30, %31\n"
	  "%35 = add i32 %33, %34\n%36 = add i32 %32, %35\n"
	  "store %1, %5, %36 align 4\nret\n",
	  NULL },
	{ "vectorize", "LDS only where the alignment is known",
	  "%29 = shl i32 %5, %22\n%30 = load i32 %6, %29 align 4\n"
	  "%31 = load i32 %6, %29 +4 align 4\n"
	  "%33 = load i32 %7, %5 align 4\n%34 = load i32 %7, %5 +4 align 4\n"
	  "%32 = add i32 %30, %31\n%35 = add i32 %33, %34\n"
	  "%36 = add i32 %32, %35\nstore %1, %5, %36 align 4\nret\n",
	  "%29 = shl i32 %5, %22\n%40 = load i32x2 %6, %29 align 8\n"
	  "%30 = extract i32 %40 0\n%31 = extract i32 %40 1\n"
	  "%33 = load i32 %7, %5 align 4\n%34 = load i32 %7, %5 +4 align 4\n"
	  "%32 = add i32 %30, %31\n%35 = add i32 %33, %34\n"
	  "%36 = add i32 %32, %35\nstore %1, %5, %36 align 4\nret\n" },
	{ "vectorize", "two halves of a word need its alignment",
	  "%30 = load f16 %0, %5 align 2\n%31 = load f16 %0, %5 +2 align 2\n"
	  "%32 = fadd f16 %30, %31\nstore %1, %5, %32 align 2\nret\n",
	  NULL },

	{ "dse", "an overwritten store goes",
	  "store %0, %5, %3\nstore %0, %5, %11\nret\n",
	  "store %0, %5, %11\nret\n" },
	{ "dse", "not if it is read, masked, or seen behind a barrier",
	  "%30 = icmp.slt i1 %5, %3\nstore %0, %5, %3\nstore %0, %5, %11, %30\n"
	  "store %6, %5, %3\n%31 = load i32 %6, %3\nstore %6, %5, %31\n"
	  "barrier\nstore %6, %5, %11\nret\n",
	  NULL },
};

/* ------------------------------------------------------- the common form -- */

static int by_kind(const void *a, const void *b)
{
	const struct ssa_inst *x = *(struct ssa_inst *const *)a;
	const struct ssa_inst *y = *(struct ssa_inst *const *)b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->type.kind != y->type.kind)
		return x->type.kind < y->type.kind ? -1 : 1;
	return x->imm < y->imm ? -1 : x->imm > y->imm;
}

/* Leaves of the entry in one order, at its start. */
static void sort_leaves(struct ssa_func *f)
{
	struct ssa_inst *leaf[256];
	size_t n = 0;

	for (struct ssa_inst *i = f->first->first; i != f->first->last;
	     i = i->next)
		if (!i->n_args && ssa_op_info(i->op)->flags & SSA_OP_PURE)
			leaf[n++] = i;
	qsort(leaf, n, sizeof(*leaf), by_kind);
	for (size_t k = n; k-- > 0;) {
		ssa_unlink(leaf[k]);
		ssa_insert_before(f->first->first, leaf[k]);
	}
}

static void renumber(struct ssa_func *f)
{
	f->n_insts = f->n_blocks = 0;
	for (struct ssa_block *b = f->first; b; b = b->next) {
		b->id = f->n_blocks++;
		for (uint32_t k = 0; k < b->n_params; k++)
			b->param[k]->id = f->n_insts++;
		for (struct ssa_inst *i = b->first; i; i = i->next)
			i->id = f->n_insts++;
	}
}

/* The function as text in the common form; frees it. */
static void common_form(struct ssa_func *f, struct buf *out)
{
	struct err e = { 0 };
	bool changed;

	buf_reset(out);
	if (!ssa_pass_run(f, "dce", &changed, &e))
		buf_adds(out, e.msg);
	/* Equal constants are one. */
	for (struct ssa_inst *i = f->first->first, *next; i; i = next) {
		next = i->next;
		for (struct ssa_inst *j = f->first->first;
		     i->op == SSA_const && j != i; j = j->next)
			if (j->op == SSA_const && j->imm == i->imm &&
			    ssa_type_eq(j->type, i->type)) {
				ssa_replace(f, i, j);
				ssa_unlink(i);
				break;
			}
	}
	sort_leaves(f);
	renumber(f);
	ssa_print(f, out);
	ssa_func_free(f);
}

static struct ssa_func *parse(const char *body)
{
	struct buf text = { 0 };

	buf_adds(&text, head);
	buf_adds(&text, body);
	struct ssa_func *f = ssa_text(text.data);

	buf_fini(&text);
	return f;
}

static void run_test(const struct test *t)
{
	struct buf got = { 0 }, want = { 0 };
	struct ssa_func *f = parse(t->before);
	struct err e = { 0 };
	bool changed = false;

	ok(ssa_pass_run(f, t->pass, &changed, &e), "%s: %s: runs%s", t->pass,
	   t->name, e.msg);
	common_form(f, &got);
	/* Leaves that nothing needs are no matter. */
	common_form(parse(t->after ? t->after : t->before), &want);
	is_str(got.data, want.data, "%s: %s", t->pass, t->name);
	buf_fini(&got);
	buf_fini(&want);
}

/* ------------------------------------------------------------- division -- */

/* Quotient and remainder of many numbers by d, with and without the pass. */
static int division_wrong(uint32_t d, bool is_signed)
{
	enum { N = 256 };
	static uint32_t in[N], out[2 * N];
	uint64_t seed = d;
	char text[512];
	struct ssa_call c = { 0 };
	struct err e = { 0 };
	int wrong = 0;
	bool changed;

	snprintf(text, sizeof(text),
		 "kernel d group %d 1 1 wave 32\narg i ptr i32\narg o ptr i32\n"
		 "b0:\n%%0 = arg ptr 0\n%%1 = arg ptr 1\n%%2 = const i32 %u\n"
		 "%%3 = local_id i32 0\n%%4 = const i32 2\n"
		 "%%5 = shl i32 %%3, %%4\n%%6 = load i32 %%0, %%5\n"
		 "%%7 = div_%c i32 %%6, %%2\n%%8 = rem_%c i32 %%6, %%2\n"
		 "store %%1, %%5, %%7\nstore %%1, %%5, %%8 +%d\nret\n",
		 N, d, is_signed ? 's' : 'u', is_signed ? 's' : 'u', N * 4);
	struct ssa_func *f = ssa_text(text);

	for (uint32_t k = 0; k < N; k++) /* near multiples, and any */
		in[k] = k < 128 ? (uint32_t)test_random(&seed) / d * d +
					  (k & 3) - 2 :
		k < 192 ? (uint32_t)test_random(&seed) : 0x7fffffe0u + k - 192;
	call_buffer(&c, in, sizeof(in));
	call_buffer(&c, out, sizeof(out));
	if (!ssa_pass_run(f, "magic_div", &changed, &e) || !changed ||
	    !call_run(f, &c, 1, 1, NULL, &e)) {
		diag("divide by %u: %s", d, e.msg);
		return 1;
	}
	for (uint32_t k = 0; k < N; k++) {
		const int64_t a = is_signed ? (int32_t)in[k] : (int64_t)in[k];

		wrong += out[k] != (uint32_t)(a / (int64_t)d);
		wrong += out[N + k] != (uint32_t)(a % (int64_t)d);
	}
	ssa_func_free(f);
	return wrong;
}

static void test_division(void)
{
	static const uint32_t large[] = { 0x7fffffff, 0x80000000, 0x80000001,
					  0xffffffff, 0x40000000, 0x10001,
					  641, 1000000007, 0x55555556 };
	int wrong = 0, wrong_s = 0;

	for (uint32_t d = 2; d < 300; d++) {
		wrong += division_wrong(d, false);
		wrong_s += division_wrong(d, true);
	}
	for (size_t k = 0; k < ARRAY_SIZE(large); k++) {
		wrong += division_wrong(large[k], false);
		if (large[k] < 0x80000000)
			wrong_s += division_wrong(large[k], true);
	}
	is_i64(wrong, 0, "divide: unsigned quotients and remainders");
	is_i64(wrong_s, 0, "divide: signed quotients and remainders");
}

int main(void)
{
	for (size_t k = 0; k < ARRAY_SIZE(tests); k++)
		run_test(&tests[k]);
	test_division();
	return plan_done();
}
