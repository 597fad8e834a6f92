/*
 * Measured costs change what the compiler does next: the same kernel, compiled
 * without a database and with one in which a multiply was measured as slow.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/cost/cost.h"
#include "compiler/driver/cc.h"
#include "results/db/results.h"
#include "tests/tap.h"

/* Two chains: two multiplies (16 cycles by default), six adds (30). */
static const char kernel[] =
	"kernel k group 64 1 1 wave 32\n"
	"arg x ptr i32 noalias readonly\n"
	"arg out ptr i32 noalias\n"
	"b0:\n"
	"\t%0 = local_id i32 0\n"
	"\t%1 = const i32 8\n"
	"\t%2 = mul i32 %0, %1\n"
	"\t%3 = arg ptr 0\n"
	"\t%4 = arg ptr 1\n"
	"\t%5 = load f32 %3, %2 align 4\n"
	"\t%6 = load i32 %3, %2 +4 align 4\n"
	"\t%7 = fadd f32 %5, %5\n"
	"\t%8 = fadd f32 %7, %5\n"
	"\t%9 = fadd f32 %8, %7\n"
	"\t%10 = fadd f32 %9, %8\n"
	"\t%11 = fadd f32 %10, %9\n"
	"\t%12 = fadd f32 %11, %10\n"
	"\t%13 = mul i32 %6, %6\n"
	"\t%14 = mul i32 %13, %6\n"
	"\tstore %4, %2, %12 align 4\n"
	"\tstore %4, %2, %14 +4 align 4\n"
	"\tret\n";

static char *compile(const struct cost_model *m)
{
	struct err e = { 0 };
	struct cc_options o;
	struct buf b = { 0 };
	struct ssa_func *f = ssa_parse(kernel, &e);

	cc_options_init(&o);
	o.costs = m;
	if (!f || !cc_assembly(f, &o, &b, &e)) {
		diag("%s", e.msg);
		exit(1);
	}
	ssa_func_free(f);
	return b.data;
}

/* Behind the first load: is the multiply or the add first? */
static bool multiplies_first(const char *text)
{
	const char *wait = strstr(text, "vmcnt(");
	const char *mul = wait ? strstr(wait, "v_mul_lo_u32") : NULL;
	const char *add = wait ? strstr(wait, "v_add_f32") : NULL;

	if (!mul || !add)
		BUG("the kernel has lost its multiply or its add:\n%s", text);
	return mul < add;
}

static bool measure(struct res_db *db, double latency, struct err *e)
{
	struct res_start s = { .tool = "t0-test" };
	struct res_device d = { .name = "card", .gfx = "gfx1100", .uid = "1",
				.origin = RES_HARDWARE };
	struct res_result r = {
		.metric = "latency", .unit = "cycle", .value = latency,
		.lo = latency, .hi = latency, .n = 9, .clock_hz = NAN,
		.better = RES_LOWER, .origin = RES_HARDWARE,
	};

	return res_host_self(db, &s.host, e) &&
	       res_build_self(db, &s.build, e) &&
	       res_device_id(db, &d, &s.device, e) &&
	       res_run_begin(db, &s, &r.run, e) &&
	       res_case_id(db, "cost", "v_mul_lo_u32", NULL, &r.case_id, e) &&
	       res_result_add(db, &r, NULL, e) &&
	       res_run_finish(db, r.run, RES_COMPLETE, 0, NULL, e);
}

int main(void)
{
	char path[] = "/tmp/t0-cost-cc-XXXXXX";
	struct cost_model plain, measured;
	struct err e = { 0 };

	close(mkstemp(path));
	unlink(path);
	struct res_db *db = res_open(path, RES_WRITE, &e);
	cost_init(&plain, "gfx1100");
	cost_init(&measured, "gfx1100");
	ok(db && measure(db, 90, &e), "a multiply was measured: %s", e.msg);
	ok(db && cost_load(&measured, db, COST_HARDWARE, &e),
	   "its cost is loaded: %s", e.msg);
	char *before = compile(&plain), *again = compile(&plain);
	char *after = compile(&measured);
	is_str(again, before, "the same costs give the same code");
	ok(strcmp(before, after) != 0, "a measured cost gives other code");
	ok(!multiplies_first(before), "by default the longer adds go first");
	ok(multiplies_first(after), "with slow multiplies those do");
	free(before);
	free(again);
	free(after);
	cost_fini(&plain);
	cost_fini(&measured);
	res_close(db);
	unlink(path);
	return plan_done();
}
