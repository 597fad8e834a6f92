/*
 * t0-tune - the best configuration of matrix products, proven right.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cmd/report.h"
#include "autotune/tuner/tune.h"
#include "kfd/kfd.h"

static volatile int stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

struct options {
	struct tune_opts o;
	const char *sizes, *shapes, *model, *dtype, *layout, *epilogue, *caches;
	const char *budget, *output;
	enum tune_caches state; /* if `caches` is given */
	struct cli_list set;
	bool json, csv, explain, list;
	uint64_t jobs;
	enum tune_fill fill;
};

/* ---- what is asked for ---- */

static bool is_host(const struct options *x)
{
	return x->o.device && !strcmp(x->o.device, "host");
}

static bool problems(const struct options *x, struct tune_problems *l,
		     struct err *e)
{
	struct gemm_op op;

	l->caches = x->caches ? &x->state : NULL;
	if (!tune_op_parse(x->dtype, x->layout, x->epilogue, &op, e))
		return false;
	if (!x->sizes && !x->shapes && !x->model)
		return err_set(e, ERR_USAGE, "which products?  Wanted --sizes "
			       "256..8192, --shapes MxNxK or --shapes-from "
			       "qwen3-0.6b");
	return (!x->sizes || tune_problems_sizes(l, &op, x->sizes, e)) &&
	       (!x->shapes || tune_problems_shapes(l, &op, x->shapes, e)) &&
	       (!x->model || tune_problems_model(l, &op, x->model, e));
}

static bool check(struct options *x, int argc, int first, struct err *e)
{
	if (first < argc)
		return err_set(e, ERR_USAGE, "operands are not taken; sizes "
			       "follow --sizes or --shapes");
	if (x->json && x->csv)
		return err_set(e, ERR_USAGE, "--json and --csv exclude each "
			       "other");
	if (is_host(x) && (x->list || x->explain || x->caches))
		return err_set(e, ERR_USAGE, "--device host knows no --list, "
			       "--explain or --caches");
	if (x->jobs > 1024)
		return err_set(e, ERR_USAGE, "--jobs %llu: wanted 1..1024, or "
			       "0 for one per processor",
			       (unsigned long long)x->jobs);
	if (x->o.samples && (x->o.samples < 10 || x->o.samples > 10000))
		return err_set(e, ERR_USAGE, "--samples %llu: wanted 10..10000",
			       (unsigned long long)x->o.samples);
	x->o.jobs = (unsigned)x->jobs;
	return (!x->caches || tune_caches_parse(x->caches, &x->state, e)) &&
	       tune_fill_parse(x->o.operands, &x->fill, e) &&
	       tune_budget_parse(x->budget, &x->o.budget, e);
}

/* Costs of the database over the defaults, and --set over both. */
static bool load_costs(const struct options *x, struct cost_model *m,
		       struct err *e)
{
	struct res_db *db = res_open(x->o.db, RES_WRITE, e);
	bool ok = db && cost_load(m, db, COST_HARDWARE, e);

	res_close(db);
	for (int i = 0; ok && i < x->set.n; i++) {
		const char *eq = strchr(x->set.v[i], '=');
		char name[64];
		char *end;

		snprintf(name, sizeof(name), "%.*s",
			 eq ? (int)(eq - x->set.v[i]) : 0, x->set.v[i]);
		double v = eq ? strtod(eq + 1, &end) : 0;
		if (!eq || end == eq + 1 || *end)
			return err_set(e, ERR_USAGE, "--set %s: wanted "
				       "NAME=VALUE", x->set.v[i]);
		ok = cost_set(m, name, v, COST_DEFAULT, e);
	}
	return ok;
}

/* ---- what is done ---- */

static bool search(struct options *x, const struct tune_report *r,
		   const struct tune_problems *l, int *code, struct err *e)
{
	bool all;

	if (is_host(x)) {
		bool good = tune_on_host(&x->o, l, r, &all, e);

		*code = good && !all ? EXIT_NO : *code;
		return good;
	}
	struct tune_outcome *out = xcalloc(l->n, sizeof(*out));
	bool ok = tune_search(&x->o, l, out, e) && tune_report(r, out, l->n, e);

	for (size_t i = 0; i < l->n; i++)
		if (!out[i].found)
			*code = EXIT_NO;
	free(out);
	return ok;
}

static bool print(struct options *x, const struct tune_report *how,
		  const struct tune_problems *l, int *code, struct err *e)
{
	struct tune_report r = *how;
	char *text = NULL;
	size_t len = 0;
	bool ok;

	r.out = x->output ? open_memstream(&text, &len) : stdout;
	if (!r.out)
		return err_set(e, ERR_NOMEM, "no memory for the result");
	ok = x->list ? tune_report_space(&r, l, e) : search(x, &r, l, code, e);
	if (!x->output)
		return ok && stdout_check(e);
	fclose(r.out);
	ok = ok && file_write_atomic(x->output, text, len, e);
	free(text);
	return ok;
}

static int run(struct options *x, struct err *e)
{
	struct tune_problems l = { 0 };
	struct cost_model costs;
	struct tune_report r = {
		.format = x->json ? TABLE_JSON :
			  x->csv ? TABLE_CSV : TABLE_TEXT,
		.quiet = x->o.quiet, .explain = x->explain,
		.db = res_path(x->o.db), .costs = &costs,
	};
	int code = EXIT_YES;

	cost_init(&costs, TUNE_CHIP);
	x->o.costs = &costs;
	if (!problems(x, &l, e) || (!x->list && !load_costs(x, &costs, e)) ||
	    !print(x, &r, &l, &code, e))
		code = err_exit_code(e);
	tune_problems_fini(&l);
	cost_fini(&costs);
	return code;
}

static const char notes[] =
	"Ranks thousands of configurations per product by a model, compiles "
	"and simulates the best, runs the fastest against a reference in "
	"double precision, and stores every decision.  --device host measures "
	"this processor's own products instead.  A search that was killed goes "
	"on with what is missing.\n"
	"Exit: 0 all found, 1 a product without a right configuration, 2 "
	"trouble, 3 device lost, 77 no device.\n";

int main(int argc, char **argv)
{
	char spec[256];
	struct options x = {
		.o = { .device = getenv("T0_DEVICE"), .operands = "normal",
		       .seed = 1, .argc = argc, .argv = argv, .stop = &stop },
		.budget = "standard",
	};
	const struct cli_opt opt[] = {
		{ "sizes", 0, CLI_STR, &x.sizes, "SWEEP",
		  "square products of these sizes; A..B doubles" },
		{ "shapes", 0, CLI_STR, &x.shapes, "MxNxK[xBATCH],...",
		  "products of these sizes" },
		{ "shapes-from", 0, CLI_STR, &x.model, "MODEL",
		  "what this model needs for decoding and prompts: "
		  "qwen3-0.6b" },
		{ "dtype", 0, CLI_STR, &x.dtype, "IN[:OUT]",
		  "bf16, f16, i8, f32 (bf16); bf16w8, bf16w4, f16w8, f16w4: B "
		  "of integers with scales" },
		{ "layout", 0, CLI_STR, &x.layout, "AB",
		  "n or t for each of A and B; t: A is KxM, B is NxK (nn)" },
		{ "epilogue", 0, CLI_STR, &x.epilogue, "LIST",
		  "bias, scale, relu, silu, gelu, swiglu, shrink, residual, "
		  "beta" },
		{ "budget", 0, CLI_STR, &x.budget, "B",
		  "quick, standard, exhaustive, or seconds (standard)" },
		{ "jobs", 'j', CLI_U64, &x.jobs, "N",
		  "threads; 0: one per processor (0)" },
		{ "operands", 0, CLI_STR, &x.o.operands, "KIND",
		  "what matrices hold while a card is timed: normal, uniform, "
		  "zero, constant (normal)" },
		{ "samples", 0, CLI_U64, &x.o.samples, "N",
		  "of each configuration timed on a card, at least 10 (10)" },
		{ "caches", 0, CLI_STR, &x.caches, "STATE",
		  "before a product: warm, cold-b (B in memory, as weights), "
		  "cold (A and B); default: cold-b with --shapes-from, else "
		  "warm" },
		{ "device", 0, CLI_STR, &x.o.device, "SPEC",
		  "soft, kfd, kfd:N, or host for this processor; default: "
		  "$T0_DEVICE, else the first gfx11 GPU, else soft" },
		{ "db", 0, CLI_STR, &x.o.db, "FILE",
		  "database; default: $T0_DB, else t0.db" },
		{ "set", 0, CLI_LIST, &x.set, "NAME=VALUE",
		  "change a cost of the simulator (compiler/cost/cost.def)" },
		{ "seed", 0, CLI_U64, &x.o.seed, "N",
		  "of operands and samples of checks (1)" },
		{ "explain", 0, CLI_FLAG, &x.explain, NULL,
		  "why each winner wins: pipes and stalls" },
		{ "list", 0, CLI_FLAG, &x.list, NULL,
		  "the whole space, ranked; times and stores nothing" },
		{ "dry-run", 0, CLI_FLAG, &x.list, NULL, "same as --list" },
		{ "json", 0, CLI_FLAG, &x.json, NULL, "everything as JSON" },
		{ "csv", 0, CLI_FLAG, &x.csv, NULL, "everything as CSV" },
		{ "output", 'o', CLI_STR, &x.output, "FILE",
		  "write the result there instead of to stdout" },
		{ "quiet", 'q', CLI_FLAG, &x.o.quiet, NULL,
		  "no progress and no notes" },
		{ 0 },
	};
	const struct cli_tool tool = {
		.name = "t0-tune",
		.summary = "find the best configuration of matrix products",
		.usage = "--sizes 256..8192 [options]\n"
			 "--shapes MxNxK,... [options]\n"
			 "--shapes-from qwen3-0.6b [options]",
		.opt = opt,
		.notes = notes,
	};
	struct err e = { 0 };
	bool done;
	int first, code;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		code = EXIT_TROUBLE;
	else if (done)
		code = EXIT_YES;
	else if (!check(&x, argc, first, &e))
		code = EXIT_TROUBLE;
	else {
		const struct sigaction sa = { .sa_handler = on_signal };

		sigaction(SIGINT, &sa, NULL);
		sigaction(SIGTERM, &sa, NULL);
		if (!is_host(&x))
			x.o.device = kfd_spec(x.o.device,
					      getenv("T0_VISIBLE_DEVICES"),
					      spec);
		code = run(&x, &e);
	}
	cli_list_fini(&x.set);
	if (code && *e.msg)
		err_report("t0-tune", &e);
	return code;
}
