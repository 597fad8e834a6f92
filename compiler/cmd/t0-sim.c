/*
 * t0-sim - how long machine code takes on a 7900 XTX, and why, without one.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/cmd/cmd_sim_show.h"
#include "compiler/sim/examine/examine.h"
#include "isa/object/object.h"
#include "isa/tables/tables.h"
#include "results/db/results.h"

#define TOOL "t0-sim"

struct options {
	const char *trace, *affine, *costs, *timeline, *plot, *db, *output;
	const char *traces, *perf, *compare;
	struct cli_list set;
	uint64_t dispatch, groups, grid, workgroup, footprint;
	double clock;
	bool annotate, json, csv, cold, mca, rows, quiet, make_db;
	uint64_t seed; /* accepted everywhere; nothing here is random */
	FILE *out;
};

/* ---- costs ---- */

static bool costs_wanted(const struct options *o, enum cost_origin *most,
			 struct err *e)
{
	for (int k = COST_DEFAULT; k <= COST_HARDWARE; k++)
		if (!strcmp(o->costs, cost_origin_name(k))) {
			*most = (enum cost_origin)k;
			return true;
		}
	return err_set(e, ERR_USAGE, "--costs %s: wanted hardware, published "
		       "or default", o->costs);
}

static bool is_there(const char *db)
{
	return access(res_path(db), F_OK) == 0;
}

static bool set_costs(struct cost_model *m, const struct cli_list *set,
		      struct err *e)
{
	for (int i = 0; i < set->n; i++) {
		char name[64], *end;
		const char *eq = strchr(set->v[i], '=');

		if (!eq || eq - set->v[i] >= (long)sizeof(name))
			return err_set(e, ERR_USAGE, "--set %s: wanted "
				       "NAME=VALUE", set->v[i]);
		snprintf(name, sizeof(name), "%.*s", (int)(eq - set->v[i]),
			 set->v[i]);
		double v = strtod(eq + 1, &end);
		if (end == eq + 1 || *end)
			return err_set(e, ERR_USAGE, "--set %s: wanted a "
				       "number behind '='", set->v[i]);
		if (!cost_set(m, name, v, COST_DEFAULT, e))
			return false;
	}
	return true;
}

static bool load_costs(const struct options *o, struct cost_model *m,
		       struct err *e)
{
	enum cost_origin most = COST_DEFAULT;

	cost_init(m, "gfx1100");
	if (!costs_wanted(o, &most, e))
		return false;
	/* With make_db this run is going to make it. */
	struct res_db *db = NULL;
	bool read = most > COST_DEFAULT && (!o->make_db || is_there(o->db));
	bool ok = (!read || res_open_if(o->db, &db, e)) &&
		  (!db || cost_load(m, db, most, e));
	res_close(db);
	if (ok && m->n_ignored && !o->quiet)
		fprintf(stderr, TOOL ": warning: %d rows of area cost are no "
			"costs that this build knows\n", m->n_ignored);
	return ok && set_costs(m, &o->set, e);
}

static bool cmd_costs(const struct options *o, struct err *e)
{
	struct cost_model m;
	struct table t;
	char text[128];
	bool ok = load_costs(o, &m, e);

	table_init(&t, COST_COLUMNS);
	cost_list(&m, &t);
	ok = ok && table_print(&t, o->json ? TABLE_JSON : o->csv ? TABLE_CSV
						: TABLE_TEXT, o->out, e);
	cost_summary(&m, text, sizeof(text));
	if (ok && !o->quiet)
		fprintf(stderr, TOOL ": %s\n", text);
	table_fini(&t);
	cost_fini(&m);
	return ok;
}

static bool cmd_import(const struct options *o, const char *path,
		       struct err *e)
{
	struct cost_import done;
	struct res_db *db = res_open(o->db, RES_WRITE, e);
	bool ok = db && cost_import(db, path, &done, e);

	if (ok)
		fprintf(o->out, "%d published costs taken, %d rows are none "
			"of ours\n", done.taken, done.skipped);
	res_close(db);
	return ok;
}

/* ---- one kernel ---- */

struct job {
	const struct options *o;
	struct buf object, trace;
	struct co co;
	const struct co_kernel *kernel;
	struct cost_model m;
	struct sim_source src;
	struct sim_config c;
	struct sim_result r;
	struct sim_gpu gpu;
	struct sim_timeline line;
	uint64_t grid; /* workgroups of the dispatch; 0: not known */
	bool has_co, has_trace, has_affine;
};

static bool open_object(struct job *j, const char *path, const char *kernel,
			struct err *e)
{
	const void *bytes;
	size_t len;

	if (!file_read(path, 0, &j->object, e))
		return false;
	if (!co_unbundle(j->object.data, j->object.len, "gfx1100", &bytes,
			 &len, e) || !co_parse(&j->co, bytes, len, e))
		return err_wrap(e, "%s", path);
	j->has_co = true;
	j->kernel = co_kernel_require(&j->co, kernel, e);
	return j->kernel;
}

static uint64_t items_of(const struct job *j)
{
	const struct co_kernel *k = j->kernel;
	uint64_t required = (uint64_t)k->reqd_workgroup_size[0] *
			    k->reqd_workgroup_size[1] *
			    k->reqd_workgroup_size[2];

	if (j->o->workgroup)
		return j->o->workgroup;
	return required ? required : 256;
}

static void from_descriptor(struct job *j)
{
	const struct co_kernel *k = j->kernel;
	const struct co_descriptor *d = &k->desc;
	int wave = co_descriptor_wave_size(d);

	j->src.wave_size = wave;
	j->src.waves_per_group = (int)((items_of(j) + (uint64_t)wave - 1) /
				       (uint64_t)wave);
	j->src.vgprs = co_descriptor_vgprs(d);
	j->src.lds_bytes = d->group_segment_bytes;
	j->src.cu_mode = !(d->rsrc1 >> 29 & 1);
	j->src.group_sgpr = co_descriptor_user_sgprs(d);
	j->src.n_groups = (int)(j->o->groups ? j->o->groups : 1);
}

static bool open_affine(struct job *j, struct err *e)
{
	struct buf text = { 0 };
	const char *name = j->o->affine ? j->o->affine : "(no description)";
	bool ok = !j->o->affine || file_read(j->o->affine, 1 << 20, &text, e);

	ok = ok && sim_affine_open(&j->src, j->kernel->code,
				   j->kernel->code_bytes,
				   j->kernel->entry_vaddr,
				   text.data ? text.data : "", name, e);
	j->has_affine = ok;
	j->grid = j->o->grid;
	buf_fini(&text);
	return ok;
}

static bool open_trace(struct job *j, struct err *e)
{
	if (!file_read(j->o->trace, 0, &j->trace, e) ||
	    !sim_trace_open(&j->src, j->trace.data, j->trace.len,
			    j->o->dispatch, (int)j->o->groups, e))
		return err_wrap(e, "%s", j->o->trace);
	j->has_trace = true;
	j->grid = sim_trace_groups(&j->src);
	if (!strcmp(sim_trace_kernel(&j->src), j->kernel->name))
		return true;
	return err_set(e, ERR_USAGE, "%s: the dispatch is of kernel %s, not "
		       "%s; --dispatch chooses another", j->o->trace,
		       sim_trace_kernel(&j->src), j->kernel->name);
}

static bool simulate(struct job *j, struct err *e)
{
	const struct options *o = j->o;

	j->c = (struct sim_config){
		.cost = &j->m, .clock_mhz = o->clock,
		.warmth = o->cold ? SIM_COLD : SIM_WARM,
		.footprint_bytes = o->footprint,
		.warm_code = !o->cold,
		.issued = o->timeline ? sim_timeline_issue : NULL,
		.ctx = &j->line,
	};
	if (!sim_run(&j->src, &j->c, &j->r, e))
		return false;
	if (j->grid)
		sim_gpu(&j->r, &j->c, j->src.n_groups, j->grid, &j->gpu);
	return true;
}

static bool show(struct job *j, const char *file, struct err *e)
{
	const struct options *o = j->o;
	struct show_sim s = {
		.file = file, .kernel = j->kernel->name, .r = &j->r,
		.c = &j->c, .gpu = j->grid ? &j->gpu : NULL, .m = &j->m,
		.src = &j->src, .costs = o->costs,
	};

	if (o->timeline && !sim_timeline_write(&j->line, &j->r, o->timeline, e))
		return false;
	if (j->line.full && !o->quiet)
		fprintf(stderr, TOOL ": warning: the timeline ends after %d "
			"instructions\n", SIM_TIMELINE_MAX);
	if (o->plot && !plot_sim(&s, o->plot, e))
		return false;
	if (o->json)
		return show_json(&s, o->annotate, o->out, e);
	return show_text(&s, o->out, e) &&
	       (!o->annotate || show_annotated(&s, o->out, e));
}

static void job_fini(struct job *j)
{
	sim_fini(&j->r);
	sim_timeline_fini(&j->line);
	if (j->has_trace)
		sim_trace_close(&j->src);
	if (j->has_affine)
		sim_affine_close(&j->src);
	if (j->has_co)
		co_fini(&j->co);
	cost_fini(&j->m);
	buf_fini(&j->object);
	buf_fini(&j->trace);
}

static bool job_run(struct job *j, const char *file, const char *kernel,
		    struct err *e)
{
	if (!load_costs(j->o, &j->m, e) || !open_object(j, file, kernel, e))
		return false;
	from_descriptor(j);
	return (j->o->trace ? open_trace(j, e) : open_affine(j, e)) &&
	       simulate(j, e);
}

/* The same with the costs of another origin, as a line behind the result. */
static bool compare(const struct job *j, const char *file, struct err *e)
{
	struct options other = *j->o;
	struct job k = { .o = &other };

	other.costs = j->o->compare;
	other.timeline = NULL;
	bool ok = job_run(&k, file, j->kernel->name, e);
	if (ok)
		fprintf(j->o->out, "\nwith %s costs: %llu cycles instead of "
			"%llu, %+.1f %%\n", other.costs,
			(unsigned long long)k.r.cycles,
			(unsigned long long)j->r.cycles,
			100 * ((double)k.r.cycles / (double)j->r.cycles - 1));
	job_fini(&k);
	return ok;
}

static bool cmd_kernel(const struct options *o, const char *file,
		       const char *kernel, struct err *e)
{
	struct job j = { .o = o };
	bool ok = job_run(&j, file, kernel, e) && show(&j, file, e) &&
		  (!o->compare || compare(&j, file, e));

	job_fini(&j);
	return ok;
}

/* ---- the command line ---- */

static bool cmd_validate(const struct options *o, struct err *e)
{
	struct validate v = {
		.traces = o->traces, .perf = o->perf, .db = o->db,
		.plot = o->plot, .draw = plot_validation, .mca = o->mca,
		.rows = o->rows,
		.format = o->json ? TABLE_JSON : o->csv ? TABLE_CSV
							: TABLE_TEXT,
		.out = o->out, .tool = TOOL, .quiet = o->quiet,
	};
	struct cost_model m;
	bool ok = load_costs(o, &m, e) && validate_run(&v, &m, e);

	cost_fini(&m);
	return ok;
}

static bool check(const struct options *o, struct err *e)
{
	if (o->trace && o->affine)
		return err_set(e, ERR_USAGE, "--trace and --affine both say "
			       "where waves go; wanted one of them");
	if (o->compare && o->json)
		return err_set(e, ERR_USAGE, "--compare is a line of text; "
			       "with --json run twice, with --costs");
	if (o->clock < 0 || o->clock > 10000)
		return err_set(e, ERR_USAGE, "--clock %g: wanted MHz",
			       o->clock);
	if (o->groups > 65536 || o->workgroup > 1024)
		return err_set(e, ERR_USAGE, "--groups up to 65536, "
			       "--workgroup up to 1024");
	return true;
}

static bool run(const struct options *o, int argc, char **argv, struct err *e)
{
	if (!check(o, e))
		return false;
	if (argc == 1 && !strcmp(argv[0], "costs"))
		return cmd_costs(o, e);
	if (argc == 1 && !strcmp(argv[0], "validate")) {
		struct options with_db = *o;

		with_db.make_db = true;
		return cmd_validate(&with_db, e);
	}
	if (argc == 2 && !strcmp(argv[0], "import"))
		return cmd_import(o, argv[1], e);
	if (argc == 2)
		return cmd_kernel(o, argv[0], argv[1], e);
	return err_set(e, ERR_USAGE, "wanted FILE.co KERNEL, costs, "
		       "import FILE.csv or validate; see --help");
}

static const char notes[] =
	"Every number is simulated, from the costs that `t0-sim costs` lists: "
	"those of t0.db (hardware over published) over the defaults of "
	"compiler/cost/cost.def.\n"
	"import stores published costs: a CSV file with name, value, unit, "
	"source.\n"
	"Waves follow a --trace of the soft device (t0-run --trace), an "
	"--affine description (compiler/sim/sim.h), or, without either, the "
	"code from top to bottom, with addresses guessed from it.";

int main(int argc, char **argv)
{
	struct options o = { .costs = "hardware", .out = stdout };
	const struct cli_opt opt[] = {
		{ "trace", 't', CLI_STR, &o.trace, "FILE",
		  "instructions and addresses that the soft device recorded" },
		{ "dispatch", 0, CLI_U64, &o.dispatch, "N",
		  "this dispatch of the trace, from 1 (default: the last)" },
		{ "affine", 0, CLI_STR, &o.affine, "FILE",
		  "loops and addresses as a description" },
		{ "costs", 0, CLI_STR, &o.costs, "ORIGIN",
		  "use costs up to hardware (default), published or default" },
		{ "compare", 0, CLI_STR, &o.compare, "ORIGIN",
		  "also say how long it takes with those costs" },
		{ "set", 0, CLI_LIST, &o.set, "NAME=VALUE",
		  "change one cost; may be repeated" },
		{ "clock", 0, CLI_F64, &o.clock, "MHZ",
		  "shader clock (default: the cost \"clock\")" },
		{ "groups", 0, CLI_U64, &o.groups, "N",
		  "workgroups that one WGP executes" },
		{ "grid", 0, CLI_U64, &o.grid, "N",
		  "workgroups of the whole dispatch" },
		{ "workgroup", 0, CLI_U64, &o.workgroup, "N",
		  "work-items of a workgroup (default: the object's, or 256)" },
		{ "cold", 0, CLI_FLAG, &o.cold, NULL,
		  "caches, TLB and instruction cache are empty" },
		{ "footprint", 0, CLI_U64, &o.footprint, "BYTES",
		  "data of the dispatch: where it lies when caches are warm" },
		{ "annotate", 'a', CLI_FLAG, &o.annotate, NULL,
		  "the code with issues and stalls" },
		{ "timeline", 0, CLI_STR, &o.timeline, "FILE",
		  "write a timeline for trace viewers (Perfetto)" },
		{ "plot", 0, CLI_STR, &o.plot, "FILE",
		  "draw occupancy, pipes and stalls: FILE.svg or FILE.png" },
		{ "traces", 0, CLI_STR, &o.traces, "FILE",
		  "validate: recorded instruction traces (JSON lines)" },
		{ "perf", 0, CLI_STR, &o.perf, "FILE",
		  "validate: published GEMM rows (CSV)" },
		{ "rows", 0, CLI_FLAG, &o.rows, NULL,
		  "validate: every row, not only the summary" },
		{ "mca", 0, CLI_FLAG, &o.mca, NULL,
		  "validate: llvm-mca's prediction beside ours" },
		{ "json", 0, CLI_FLAG, &o.json, NULL, "print JSON" },
		{ "csv", 0, CLI_FLAG, &o.csv, NULL, "print CSV (tables)" },
		{ "output", 'o', CLI_STR, &o.output, "FILE",
		  "print into FILE" },
		{ "db", 0, CLI_STR, &o.db, "FILE",
		  "database (default: $T0_DB or t0.db)" },
		{ "seed", 0, CLI_U64, &o.seed, "N",
		  "accepted; nothing is random here" },
		{ "quiet", 'q', CLI_FLAG, &o.quiet, NULL, "no warnings" },
		{ NULL },
	};
	const struct cli_tool tool = {
		TOOL, "predict the time of machine code and say what limits it",
		"[options] FILE.co KERNEL\ncosts [options]\n"
		"import FILE.csv [--db FILE]\n"
		"validate [--traces FILE.jsonl] [--perf FILE.csv] [options]",
		opt, notes,
	};
	struct err e = { 0 };
	bool done = false;
	int first;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		return err_report(TOOL, &e);
	if (done)
		return EXIT_YES;
	bool ok = true;
	if (o.output && !(o.out = fopen(o.output, "w")))
		ok = err_set(&e, ERR_IO, "%s: cannot be written", o.output);
	ok = ok && run(&o, argc - first, argv + first, &e) && stdout_check(&e);
	if (o.output && o.out && fclose(o.out) && ok)
		ok = err_set(&e, ERR_IO, "%s: cannot be written", o.output);
	cli_list_fini(&o.set);
	return ok ? EXIT_YES : err_report(TOOL, &e);
}
