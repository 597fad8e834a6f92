/*
 * autotune/cmd/t0-tune.c - the best configuration of matrix products, proven
 * right.
 */
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card.h"
#include "autotune/cmd/cmd.h"
#include "autotune/tuner/tune.h"
#include "base/cmd.h"
#include "isa/launch/launch.h"
#include "kfd/kfd.h"

struct options {
	struct cmd cmd;
	struct tune_opts o;
	const char *sizes, *shapes, *model, *dtype, *layout, *epilogue, *caches;
	const char *budget, *shard;
	struct res_shard part; /* of `shard` */
	struct buf work;       /* of all its shards */
	enum tune_caches state; /* if `caches` is given */
	struct cli_list set;
	bool explain, list, measure, tui;
	uint64_t jobs;
	enum tune_fill fill;
	struct launch_plan launch; /* of compare */
};

/* ---- what is asked for ---- */

static bool is_host(const struct options *x)
{
	return x->o.device && !strcmp(x->o.device, "host");
}

/* The products of one type. */
static bool add_type(const struct options *x, const char *dtype,
		     struct tune_problems *l, struct err *e)
{
	struct gemm_op op;

	if (!tune_op_parse(dtype, x->layout, x->epilogue, &op, e))
		return false;
	return (!x->sizes || tune_problems_sizes(l, &op, x->sizes, e)) &&
	       (!x->shapes || tune_problems_shapes(l, &op, x->shapes, e)) &&
	       (!x->model || tune_problems_model(l, &op, x->model, e));
}

static bool add_problems(const struct options *x, struct tune_problems *l,
			 struct err *e)
{
	const char *at = x->dtype ? x->dtype : "bf16";
	char dtype[TUNE_TEXT];
	bool ok = true;

	l->caches = x->caches ? &x->state : NULL;
	if (!x->sizes && !x->shapes && !x->model)
		return err_set(e, ERR_USAGE, "which products?  Wanted --sizes "
			       "256..8192, --shapes MxNxK or --shapes-from "
			       "qwen3-0.6b");
	for (bool more = true; ok && more; at++) {
		const size_t len = strcspn(at, ",");

		snprintf(dtype, sizeof(dtype), "%.*s", (int)len, at);
		ok = add_type(x, dtype, l, e);
		at += len;
		more = *at == ',';
	}
	return ok;
}

/*
 * Leaves the products of this shard; what names the work is all of them, and how
 * they are searched.
 */
static void keep_shard(struct options *x, struct tune_problems *l)
{
	struct buf name = { 0 };
	char op[TUNE_TEXT];
	size_t n = 0;

	if (!x->part.count)
		return;
	for (size_t i = 0; i < l->n; i++) {
		const struct tune_problem *p = &l->v[i];
		gemm_op_name(&p->op, op, sizeof(op));
		buf_reset(&name);
		buf_printf(&name, "gemm/%ux%ux%ux%u %s %s", p->m, p->n, p->k,
			   p->batch, op, tune_caches_name(p->caches));
		buf_printf(&x->work, "%s\n", name.data);
		if (res_shard_has(&x->part, name.data))
			l->v[n++] = *p;
	}
	l->n = n;
	buf_printf(&x->work, "%s %g %s %llu", x->o.budget.name,
		   x->o.budget.seconds, x->o.operands,
		   (unsigned long long)x->o.samples);
	for (int i = 0; i < x->set.n; i++)
		buf_printf(&x->work, " %s", x->set.v[i]);
	x->o.shard = &x->part;
	x->o.work = x->work.data;
	buf_fini(&name);
}

static bool check_options(struct cmd *c, struct err *e)
{
	struct options *x = (struct options *)c;

	if (!x->o.device)
		x->o.device = getenv("T0_DEVICE");
	if (is_host(x) && (x->list || x->explain || x->caches || x->tui))
		return err_set(e, ERR_USAGE,
			       "--device host knows no --list, "
			       "--explain, --caches or --tui");
	if (x->measure && !is_host(x))
		return err_set(e, ERR_USAGE, "--measure: wanted --device host; "
			       "on a card every search measures");
	if (x->jobs > 1024)
		return err_set(e, ERR_USAGE, "--jobs %llu: wanted 1..1024, or "
			       "0 for one per processor",
			       (unsigned long long)x->jobs);
	if (x->o.samples && (x->o.samples < 10 || x->o.samples > 10000))
		return err_set(e, ERR_USAGE, "--samples %llu: wanted 10..10000",
			       (unsigned long long)x->o.samples);
	x->o.jobs = (unsigned)x->jobs;
	x->o.quiet = c->quiet;
	x->o.argc = c->line_argc;
	x->o.argv = c->line_argv;
	c->kept = "the same command goes on with what is missing";
	x->o.stop = cmd_catch_signals(c);
	return res_shard_parse(x->shard, &x->part, e) &&
	       (!x->caches || tune_caches_parse(x->caches, &x->state, e)) &&
	       tune_fill_parse(x->o.operands, &x->fill, e) &&
	       tune_budget_parse(x->budget, &x->o.budget, e);
}

/* ---- what is done ---- */

static void say_known(const struct options *x, const struct tune_outcome *out,
		      size_t n)
{
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		known += out[i].stored;
	if (known)
		cmd_remark(&x->cmd, "%zu of %zu products were tuned before%s",
			   known, n, known == n ? ": nothing to do" : "");
}

static bool search_all(struct options *x, const struct tune_report *r,
		       const struct tune_problems *l, struct err *e)
{
	bool all = true, ok;

	if (is_host(x)) {
		ok = x->measure ? tune_measure_host(&x->o, l, r, &all, e) :
				  tune_on_host(&x->o, l, r, &all, e);
	} else {
		struct tune_outcome *out = xcalloc(l->n, sizeof(*out));

		ok = strcmp(x->o.costs->chip, TUNE_CHIP) ||
		     published_store(x->o.db, x->o.costs, x->o.shard, e);
		struct tune_watch *w = ok && x->tui ? tune_watch_open(&x->o) :
						      NULL;
		ok = ok && tune_search(&x->o, l, out, e);
		tune_watch_close(w);
		if (ok)
			say_known(x, out, l->n);
		ok = ok && tune_report(r, out, l->n, e);
		for (size_t i = 0; i < l->n; i++)
			all = all && out[i].found;
		free(out);
	}
	x->cmd.status = all ? EXIT_YES : EXIT_NO;
	return ok;
}

/* Of the device. */
static bool find_chip(const struct options *x, char chip[16], struct err *e)
{
	snprintf(chip, 16, "%s", TUNE_CHIP);
	if (is_host(x))
		return true;
	if (!kfd_find_chip(x->o.device, chip, e))
		return false;
	return isa_chip_find(chip) ||
	       err_set(e, ERR_UNSUPPORTED, "device %s is %s, whose code is "
		       "not known", x->o.device, chip);
}

static bool run_tuner(struct cmd *c, struct err *e)
{
	struct options *x = (struct options *)c;
	struct tune_problems l = { 0 };
	struct cost_model costs;
	struct tune_report r = {
		.format = c->format, .out = c->out, .quiet = c->quiet,
		.explain = x->explain, .db = res_path(x->o.db),
		.costs = &costs,
	};
	char spec[256], chip[16];

	if (!is_host(x))
		x->o.device = kfd_spec_asked(x->o.device, spec);
	x->o.costs = &costs;
	bool ok = add_problems(x, &l, e) && find_chip(x, chip, e);
	if (ok) {
		keep_shard(x, &l);
		ok = cost_open(&costs, chip, x->o.db, !x->list,
			       COST_HARDWARE, &x->set, e) &&
		     (x->list ? tune_report_space(&r, &l, e) :
				search_all(x, &r, &l, e));
		cost_fini(&costs);
	}
	tune_problems_fini(&l);
	buf_fini(&x->work);
	return ok;
}

/* ---- a product of others ---- */

static bool compare_one(struct options *x, const struct tune_problem *p,
			const struct cost_model *costs, struct err *e)
{
	struct launch_plan *l = &x->launch;
	struct tune_foreign f;
	struct tune_comparison what = {
		.problem = p, .foreign = &f, .db = x->o.db,
		.device = x->o.device, .costs = costs, .seed = x->o.seed,
	};
	struct table t = { 0 };
	struct buf remarks = { 0 };
	bool complete = false;

	if (!tune_foreign_init(&f, l, p, e))
		return false;
	what.kernel = l->kernel->name;
	bool ok = tune_compare(&what, &t, &complete, &remarks, e) &&
		  cmd_table(&x->cmd, &t, e);
	if (ok && remarks.len)
		cmd_remark(&x->cmd, "%.*s", (int)remarks.len - 1, remarks.data);
	x->cmd.status = complete ? EXIT_YES : EXIT_NO;
	table_fini(&t);
	buf_fini(&remarks);
	return ok;
}

static bool load_foreign(struct options *x, const char *chip, struct err *e)
{
	struct launch_plan *l = &x->launch;

	l->seed = x->o.seed;
	if (!l->chip)
		l->chip = chip;
	if (!launch_parse(l, x->cmd.argc, x->cmd.argv, e) ||
	    !launch_load(l, false, e))
		return false;
	bool ok = launch_check(l, e);
	if (l->remarks.len)
		cmd_remark(&x->cmd, "%s", l->remarks.data);
	return ok;
}

static bool run_compare(struct cmd *c, struct err *e)
{
	struct options *x = (struct options *)c;
	struct tune_problems l = { 0 };
	struct cost_model costs;
	char spec[256], chip[16];

	if (is_host(x))
		return err_set(e, ERR_USAGE, "--device host runs no code "
			       "objects");
	x->o.device = kfd_spec_asked(x->o.device, spec);
	bool ok = add_problems(x, &l, e) && find_chip(x, chip, e);
	if (ok && l.n != 1)
		ok = err_set(e, ERR_USAGE, "--shapes: %zu products, wanted the "
			     "one that FILE computes", l.n);
	ok = ok && load_foreign(x, chip, e);
	if (ok) {
		ok = cost_open(&costs, chip, x->o.db, true, COST_HARDWARE,
			       &x->set, e) &&
		     compare_one(x, &l.v[0], &costs, e);
		cost_fini(&costs);
	}
	tune_problems_fini(&l);
	launch_fini(&x->launch);
	return ok;
}

/* ---- the kit ---- */

static bool parse_numbers(const struct cmd *c, int *number, struct err *e)
{
	int most;

	card_gemms(&most);
	for (int i = 0; i < c->argc; i++) {
		char *end;
		const long v = strtol(c->argv[i], &end, 10);

		if (end == c->argv[i] || *end || v < 1 || v > most)
			return err_set(e, ERR_USAGE, "%s: wanted the number of "
				       "a product, 1..%d", c->argv[i], most);
		number[i] = (int)v;
	}
	return true;
}

static bool run_card(struct cmd *c, struct err *e)
{
	struct options *x = (struct options *)c;
	char spec[256];
	const struct probe_opts o = {
		.device = is_host(x) ? x->o.device :
				       kfd_spec_asked(x->o.device, spec),
		.db = x->o.db, .seed = x->o.seed, .quiet = c->quiet,
		.argc = c->line_argc, .argv = c->line_argv, .stop = x->o.stop,
	};
	int *number = xcalloc((size_t)c->argc + 1, sizeof(*number));
	bool right = true, ok = parse_numbers(c, number, e);
	struct table t = { 0 };

	if (ok && is_host(x))
		ok = err_set(e, ERR_USAGE, "--device host runs no code "
			     "objects");
	if (ok && c->argc)
		ok = tune_card_measure(&o, number, (size_t)c->argc, &t, &right,
				       e);
	else if (ok)
		tune_card_list(&t);
	ok = ok && cmd_table(c, &t, e);
	c->status = right ? EXIT_YES : EXIT_NO;
	table_fini(&t);
	free(number);
	return ok;
}

/* ---- options ---- */

static struct options x = {
	.o = { .operands = "normal", .seed = 1 },
	.budget = "standard",
	.launch = LAUNCH_DEFAULTS,
};

static const char operand_notes[] =
	"FILE is a code object, whose operands, grid and LDS are given as to "
	"t0-run; its first three buffers are A, B and C, dense, of the one "
	"product that --shapes, --dtype and --layout name.  It is run once with "
	"normal operands and compared with double precision, and simulated as "
	"our winner of the database is: same costs, clock, rule of occupancy, "
	"warm caches.\n"
	"Exit: 0 compared, 1 theirs is wrong or there is no winner.\n";
static const struct cmd_spec commands[] = {
	{ NULL, "--sizes 256..8192\n--shapes MxNxK,...\n"
	  "--shapes-from qwen3-0.6b", NULL, run_tuner, 0, 0,
	  .flags = CMD_TABLE | CMD_QUIET },
	{ "compare", "FILE [KERNEL] [ARGUMENT...]", "a product of others beside "
	  "our winner, both simulated now", run_compare, 1, CMD_MANY,
	  .flags = CMD_TABLE | CMD_QUIET,
	  .notes = operand_notes },
	{ "card", "[NUMBER...]", "the products of make card, checked and "
	  "measured", run_card, 0, 64,
	  .flags = CMD_TABLE | CMD_QUIET,
	  .notes = "Without numbers it lists them.  A product is launched over "
		   "and over without a pause, and its time is that from one "
		   "launch to the next.  `t0-sim fit` makes costs of it.\n"
		   "Exit: 0 all are right, 1 one is wrong.\n" },
	{ 0 },
};
static const struct cli_opt options[] = {
	{ "shapes", 0, CLI_STR, &x.shapes, "MxNxK[xBATCH],...",
	  "products of these sizes" },
	{ "dtype", 0, CLI_STR, &x.dtype, "IN[:OUT],...",
	  "bf16, f16, i8, f32 (bf16); bf16w8, bf16w4, f16w8, f16w4: B "
	  "of integers with scales" },
	{ "layout", 0, CLI_STR, &x.layout, "AB",
	  "n or t for each of A and B; t: A is KxM, B is NxK (nn)" },
	{ "epilogue", 0, CLI_STR, &x.epilogue, "LIST",
	  "bias, scale, relu, silu, gelu, swiglu, shrink, residual, "
	  "beta" },
	{ "device", 0, CLI_STR, &x.o.device, "SPEC",
	  "soft[:CHIP], soft*N:M, kfd, kfd:N, or host for this processor; "
	  "default: $T0_DEVICE, else the first gfx11 GPU, else soft" },
	{ "db", 0, CLI_STR, &x.o.db, "FILE", RES_DB_HELP },
	{ "set", 0, CLI_LIST, &x.set, "NAME=VALUE",
	  "change a cost of the simulator (compiler/cost/cost.def)" },
	{ "seed", 0, CLI_U64, &x.o.seed, "N",
	  "of operands and samples of checks (1)" },
	CLI_OF("-"),
	{ "sizes", 0, CLI_STR, &x.sizes, "SWEEP",
	  "square products of these sizes; A..B doubles" },
	{ "shapes-from", 0, CLI_STR, &x.model, "MODEL",
	  "what this model needs for decoding and prompts: "
	  "qwen3-0.6b" },
	{ "budget", 0, CLI_STR, &x.budget, "B",
	  "quick, standard, exhaustive, or seconds (standard)" },
	{ "shard", 0, CLI_STR, &x.shard, "I/N", RES_SHARD_HELP "; of each "
	  "product alone: none follows what its neighbours found" },
	{ "jobs", 'j', CLI_U64, &x.jobs, "N",
	  "threads; 0: one per processor (0)" },
	{ "operands", 0, CLI_STR, &x.o.operands, "KIND",
	  "what matrices hold while a card is timed: normal, uniform, "
	  "zero, constant (normal)" },
	{ "samples", 0, CLI_U64, &x.o.samples, "N",
	  "of each configuration timed on a card, at least 10 (10; with "
	  "--measure 30)" },
	{ "caches", 0, CLI_STR, &x.caches, "STATE",
	  "before a product: warm, cold-b (B in memory, as weights), "
	  "cold (A and B); default: cold-b with --shapes-from, else "
	  "warm" },
	{ "explain", 0, CLI_FLAG, &x.explain, NULL,
	  "why each winner wins: pipes and stalls" },
	{ "tui", 0, CLI_FLAG, &x.tui, NULL,
	  "full screen on a terminal: progress and the best so far" },
	{ "measure", 0, CLI_FLAG, &x.measure, NULL,
	  "with --device host: do not search, time what the database has" },
	{ "list", 0, CLI_FLAG, &x.list, NULL,
	  "the whole space, ranked; times and stores nothing" },
	{ "dry-run", 0, CLI_FLAG, &x.list, NULL, "same as --list" },
	CLI_OF("compare"),
	LAUNCH_OPTIONS(x.launch),
	LAUNCH_CHIP_OPTION(x.launch),
	{ 0 },
};

static const char notes[] =
	"Ranks thousands of configurations per product by a model, compiles "
	"and simulates the best, runs the fastest against a reference in "
	"double precision, and stores every decision.  --device host measures "
	"this processor's own products instead.  A search that was killed goes "
	"on with what is missing.\n"
	"A configuration such as 128x64x32_w2x2_b2_p1_u1_g8_pad_wgp_even: a "
	"workgroup's tile of MxN, K at a time; w waves along M and N; b "
	"buffers in LDS; p tiles ahead in registers; u times unrolled; bands of "
	"g rows of tiles; LDS padded or swizzled (swz); WGP or CU mode; for "
	"sizes that tiles divide (even).\n"
	"Exit: 0 all found, 1 a product without a right configuration, 2 "
	"trouble, 3 device lost, 77 no device.\n";

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-tune",
		.summary = "find the best configuration of matrix products",
		.commands = commands,
		.options = options,
		.notes = notes,
		.check = check_options,
	};

	return cmd_main(&x.cmd, &tool, argc, argv);
}
