/*
 * compiler/cmd/t0-sim.c - how long machine code takes, and why.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/cmd/cmd_sim.h"
#include "results/db/results.h"

static struct sim_cmd o = { .costs = "hardware", .launch = LAUNCH_DEFAULTS };

static const struct cmd_spec commands[] = {
	{ NULL, "FILE [KERNEL] [ARGUMENT...]", "predict a kernel's time and "
	  "say what limits it", sim_cmd_kernel, 1, CMD_MANY,
	  .flags = CMD_JSON | CMD_OUTPUT | CMD_QUIET },
	{ "costs", NULL, "list the costs", sim_cmd_costs, 0, 0,
	  .flags = CMD_TABLE | CMD_QUIET },
	{ "import", "FILE.csv", "store published costs", sim_cmd_import, 1, 1,
	  .flags = CMD_OUTPUT | CMD_QUIET,
	  .notes = "A CSV file with name, value, unit, source." },
	{ "validate", NULL, "compare predictions with what others measured",
	  sim_cmd_validate, 0, 0, .flags = CMD_TABLE | CMD_QUIET },
	{ "fit", "FILE", "costs from what a card measured", sim_cmd_fit, 1, 1,
	  .flags = CMD_TABLE | CMD_QUIET,
	  .notes = "FILE is what `make card` wrote (t0-results export), or a "
		   "database.  Found: the data say it; unknown: they do not, "
		   "and no product of the kit changes by more than "
		   "effect_percent over its whole range; odd: measured, but "
		   "the simulator comes to no such figure." },
	{ "design", NULL, "choose the products of the kit", sim_cmd_design, 0,
	  0, .flags = CMD_OUTPUT | CMD_QUIET },
	{ 0 },
};
static const struct cli_opt options[] = {
	{ "db", 0, CLI_STR, &o.db, "FILE", "the database of costs ($T0_DB, "
	  "else t0.db); named, it gets predictions as rows" },
	{ "seed", 0, CLI_U64, &o.launch.seed, "N", LAUNCH_SEED_HELP },
	CLI_OF("- costs validate"),
	CLI_OF("fit"),
	{ "all", 0, CLI_FLAG, &o.all, NULL,
	  "also parameters that are stated and not looked for" },
	{ "products", 0, CLI_FLAG, &o.products, NULL,
	  "the kit's products instead: measured, simulated before and after, "
	  "and which is the fastest of its size" },
	{ "write", 0, CLI_STR, &o.write, "FILE",
	  "the costs as lines NAME=VALUE, as t0-soft run --costs takes them" },
	CLI_OF("fit design"),
	{ "jobs", 'j', CLI_U64, &o.jobs, "N",
	  "threads; 0: one per processor (0)" },
	{ "number", 'n', CLI_U64, &o.number, "N",
	  "so many products: fit: the first of them (all); design: chosen (60)"
	},
	CLI_OF("- costs import"),
	{ "chip", 0, CLI_STR, &o.chip, "CHIP",
	  "whose costs, and which object of an offload bundle (default: the "
	  "code object's, gfx1100)" },
	CLI_OF("- costs validate"),
	{ "costs", 0, CLI_STR, &o.costs, "ORIGIN",
	  "use costs up to hardware (default), published or default" },
	{ "set", 0, CLI_LIST, &o.set, "NAME=VALUE",
	  "change one cost; may be repeated" },
	CLI_OF("-"),
	{ "trace", 't', CLI_STR, &o.trace, "FILE",
	  "instructions and addresses that the soft device recorded" },
	{ "dispatch", 0, CLI_U64, &o.dispatch, "N",
	  "this dispatch of the trace, from 1 (default: the last)" },
	{ "affine", 0, CLI_STR, &o.affine, "FILE",
	  "loops and addresses as a description" },
	{ "compare", 0, CLI_STR, &o.compare, "ORIGIN",
	  "also say how long it takes with those costs" },
	{ "clock", 0, CLI_F64, &o.clock, "MHZ",
	  "shader clock (default: the cost \"clock\")" },
	LAUNCH_OPTIONS(o.launch),
	{ "groups", 0, CLI_U64, &o.groups, "N",
	  "workgroups that one WGP executes, without arguments" },
	{ "cold", 0, CLI_FLAG, &o.cold, NULL,
	  "caches, TLB and instruction cache are empty" },
	{ "footprint", 0, CLI_U64, &o.footprint, "BYTES",
	  "data of the dispatch: where it lies when caches are warm "
	  "(default: all buffers among the arguments)" },
	{ "guesses", 0, CLI_FLAG, &o.guesses, NULL,
	  "what the time becomes with each cost that is a guess at half and at "
	  "twice its value" },
	{ "annotate", 'a', CLI_FLAG, &o.annotate, NULL,
	  "the code with issues and stalls" },
	{ "timeline", 0, CLI_STR, &o.timeline, "FILE",
	  "write a timeline for trace viewers (Perfetto)" },
	{ "waves", 0, CLI_FLAG, &o.waves, NULL,
	  "what the first waves do over time, as text" },
	{ "what-if", 0, CLI_FLAG, &o.what_if, NULL,
	  "what would help: the launch again, with one flaw mended each time" },
	{ "html", 0, CLI_STR, &o.html, "FILE",
	  "write a page: what would help, waves over time, code with its "
	  "waits" },
	{ "plot", 0, CLI_STR, &o.plot, "FILE",
	  "draw occupancy, pipes and stalls: FILE.svg or FILE.png" },
	CLI_OF("validate"),
	{ "traces", 0, CLI_LIST, &o.traces, "FILE",
	  "recorded instruction traces (JSON lines); may be repeated" },
	{ "perf", 0, CLI_LIST, &o.perf, "FILE",
	  "published rows (CSV); may be repeated" },
	{ "rows", 0, CLI_FLAG, &o.rows, NULL,
	  "every row, not only the summary" },
	{ "fits", 0, CLI_FLAG, &o.fits, NULL,
	  "the fitted parameters: from everything, and without each kernel "
	  "and source" },
	{ "ranges", 0, CLI_FLAG, &o.ranges, NULL,
	  "the range of measured over predicted that holds 80 %, from all other "
	  "kernels and sources, and what share of each lies in it" },
	{ "order", 0, CLI_FLAG, &o.order, NULL,
	  "which products of a source, of those that differ by more than a "
	  "tenth, are in the order that was published" },
	{ "mca", 0, CLI_FLAG, &o.mca, NULL,
	  "llvm-mca's prediction beside ours" },
	{ "plot", 0, CLI_STR, &o.plot, "FILE",
	  "draw predictions over references: FILE.svg or FILE.png" },
	{ 0 },
};

static const char notes[] =
	"Every number is simulated, from the costs that `t0-sim costs` lists: "
	"those of t0.db (hardware over published) over the defaults of "
	"compiler/cost/cost.def.\n"
	"import stores published costs: a CSV file with name, value, unit, "
	"source.\n"
	"With arguments, as t0-run takes them, waves go where this launch "
	"sends them, as many at once as the chip holds; data that only "
	"executing a kernel computes is not known.  Else they follow a --trace "
	"of the soft device (t0-run --trace), an --affine description "
	"(compiler/sim/sim.h), or the code from top to bottom, with addresses "
	"guessed from it.\n\n";

int main(int argc, char **argv)
{
	char *help = xmalloc(strlen(operand_help) + sizeof(notes));
	const struct cmd_tool tool = {
		.name = "t0-sim",
		.summary = "predict the time of machine code and say what "
			   "limits it",
		.commands = commands,
		.options = options,
		.notes = help,
	};

	strcpy(help, notes);
	strcat(help, operand_help);
	const int status = cmd_main(&o.cmd, &tool, argc, argv);
	free(help);
	return status;
}
