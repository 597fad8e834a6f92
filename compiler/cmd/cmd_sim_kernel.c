/*
 * compiler/cmd/cmd_sim_kernel.c - t0-sim FILE KERNEL ARGUMENT...
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "compiler/cmd/cmd_sim.h"
#include "results/db/results.h"

struct job {
	const struct sim_cmd *o;
	struct launch_plan *l;
	struct buf trace;
	struct cost_model m;
	struct sim_source src;
	struct sim_config c;
	struct sim_result r;
	struct sim_gpu gpu;
	struct sim_timeline line;
	struct sim_plan plan;
	struct sim_gain gain[SIM_CHANGES];
	int n_gains;
	uint64_t grid; /* workgroups of the dispatch; 0: not known */
	double flop;   /* of the dispatch; 0: not known */
	bool has_trace, has_affine;
};

/* ---- what is asked for ---- */

/* Is all said that a launch needs?  Else waves only go through the code. */
static bool is_launch(const struct sim_cmd *o)
{
	const struct co_kernel *k = o->launch.kernel;

	return o->launch.n_args || (o->launch.grid_text && !o->trace &&
				    !o->affine && k->has_metadata &&
				    !k->n_user_args);
}

/* What waves did when is asked for in some form. */
static bool wants_timeline(const struct sim_cmd *o)
{
	return o->timeline || o->html || o->waves;
}

static bool check_options(const struct sim_cmd *o, struct err *e)
{
	if (o->what_if && (o->trace || o->affine || o->groups))
		return err_set(e, ERR_USAGE, "--what-if simulates a launch "
			       "again: wanted arguments, as t0-run takes them");
	if (o->trace && o->affine)
		return err_set(e, ERR_USAGE, "--trace and --affine both say "
			       "where waves go; wanted one of them");
	if (o->launch.n_args && (o->trace || o->affine || o->groups))
		return err_set(e, ERR_USAGE, "arguments say where waves go, "
			       "and how many there are; wanted none with %s",
			       o->trace ? "--trace" :
			       o->affine ? "--affine" : "--groups");
	if (o->compare && o->cmd.json)
		return err_set(e, ERR_USAGE, "--compare is a line of text; "
			       "with --json run twice, with --costs");
	if (o->clock < 0 || o->clock > 10000)
		return err_set(e, ERR_USAGE, "--clock %g: wanted MHz",
			       o->clock);
	if (o->groups > 65536)
		return err_set(e, ERR_USAGE, "--groups up to 65536");
	return true;
}

/* Nothing is executed, so there is nothing to write. */
static void say_unsaved(const struct sim_cmd *o)
{
	for (int i = 0; i < o->launch.n_args; i++)
		if (o->launch.arg[i].save)
			cmd_remark(&o->cmd, "nothing is executed: %s is not "
				   "written", o->launch.arg[i].save);
}

static bool open_plan(struct sim_cmd *o, struct err *e)
{
	struct launch_plan *l = &o->launch;

	l->chip = o->chip;
	if (!launch_parse(l, o->cmd.argc, o->cmd.argv, e) ||
	    !check_options(o, e) || !launch_load(l, false, e))
		return false;
	bool good = is_launch(o) ? launch_check(l, e) : launch_shape(l, e);
	if (l->remarks.len)
		cmd_remark(&o->cmd, "%s", l->remarks.data);
	say_unsaved(o);
	return good;
}

/* ---- waves of a trace, of a description, of the code alone ---- */

static void from_descriptor(struct job *j)
{
	const struct launch_plan *l = j->l;
	const struct co_descriptor *d = &l->kernel->desc;
	uint32_t items = l->block[0] * l->block[1] * l->block[2], n[3];
	int wave = co_descriptor_wave_size(d);

	j->src.chip = l->kernel->chip;
	j->src.wave_size = wave;
	j->src.waves_per_group = ((int)items + wave - 1) / wave;
	j->src.vgprs = co_descriptor_vgprs(d);
	j->src.lds_bytes = d->group_segment_bytes + l->lds_bytes;
	j->src.cu_mode = !(d->rsrc1 >> 29 & 1);
	j->src.group_sgpr = co_descriptor_user_sgprs(d);
	j->src.n_groups = (int)(j->o->groups ? j->o->groups : 1);
	j->grid = l->grid_text ? launch_groups(l, n) : 0;
}

static bool open_affine(struct job *j, struct err *e)
{
	const struct co_kernel *k = j->l->kernel;
	struct buf text = { 0 };
	const char *name = j->o->affine ? j->o->affine : "(no description)";
	bool ok = !j->o->affine || file_read(j->o->affine, 1 << 20, &text, e);

	ok = ok && sim_affine_open(&j->src, k->code, k->code_bytes,
				   k->entry_vaddr, text.data ? text.data : "",
				   name, e);
	j->has_affine = ok;
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
	if (!strcmp(sim_trace_kernel(&j->src), j->l->kernel->name))
		return true;
	return err_set(e, ERR_USAGE, "%s: the dispatch is of kernel %s, not "
		       "%s; --dispatch chooses another", j->o->trace,
		       sim_trace_kernel(&j->src), j->l->kernel->name);
}

static bool simulate_waves(struct job *j, struct err *e)
{
	const struct sim_cmd *o = j->o;

	from_descriptor(j);
	if (!(o->trace ? open_trace(j, e) : open_affine(j, e)))
		return false;
	j->c = (struct sim_config){
		.cost = &j->m, .clock_mhz = o->clock,
		.warmth = o->cold ? SIM_COLD : SIM_WARM,
		.footprint_bytes = o->footprint,
		.warm_code = !o->cold,
		.issued = wants_timeline(o) ? sim_timeline_issue : NULL,
		.ctx = &j->line,
	};
	if (!sim_run(&j->src, &j->c, &j->r, e))
		return false;
	if (j->grid)
		sim_gpu(&j->r, &j->c, j->src.n_groups, j->grid, &j->gpu);
	return true;
}

/* ---- a launch ---- */

/* What people are told, of a round that stands for the grid. */
static void from_forecast(struct job *j, struct sim_forecast *f)
{
	uint32_t items = j->l->block[0] * j->l->block[1] * j->l->block[2];
	uint32_t wave;

	j->r = f->round; /* its owner from here on */
	wave = (uint32_t)j->r.wave_size;
	j->src.wave_size = (int)wave;
	j->src.code_va = j->l->kernel->entry_vaddr;
	j->src.waves_per_group = (int)((items + wave - 1) / wave);
	j->src.n_groups = j->r.n_waves / j->src.waves_per_group;
	j->grid = j->plan.groups;
	j->flop = sim_flop(&j->r) * (double)j->grid / j->src.n_groups;
	j->gpu = (struct sim_gpu){
		.groups = j->grid, .wgps = (int)cost_value(&j->m, COST_N_WGP),
		.groups_per_wgp = f->at_once, .full_rounds = f->rounds,
		.cycles = f->cycles, .time_s = f->time_s,
		.launch_s = f->launch_s, .limit = f->limit,
	};
	if (f->unknown)
		cmd_remark(&j->o->cmd, "%llu accesses have addresses that only "
			   "executing the kernel computes; a line of memory "
			   "each is assumed", (unsigned long long)f->unknown);
}

static bool simulate_launch(struct job *j, struct err *e)
{
	const struct sim_cmd *o = j->o;
	struct sim_dispatch how = {
		.cost = &j->m, .clock_mhz = o->clock, .trips = SIM_TRIPS,
		.warmth = o->cold ? SIM_COLD : SIM_WARM,
		.footprint_bytes = o->footprint,
	};
	struct sim_forecast f;

	if (!sim_plan_init(&j->plan, j->l, e))
		return false;
	if (!how.footprint_bytes)
		how.footprint_bytes = j->plan.buffer_bytes;
	if (!sim_plan_forecast(&how, &j->plan, &f, e))
		return false;
	if (o->what_if || o->html) {
		if (!sim_what_if(&how, &j->plan, &f, j->gain, &j->n_gains, e)) {
			sim_forecast_fini(&f);
			return false;
		}
	}
	if (wants_timeline(o)) { /* again, at the clock that it came to */
		how.clock_mhz = f.clock_mhz;
		how.issued = sim_timeline_issue;
		how.issued_ctx = &j->line;
		sim_forecast_fini(&f);
		if (!sim_object_forecast_as(&how, &j->plan.launch, &f, e))
			return false;
	}
	from_forecast(j, &f);
	return true;
}

/* ---- the whole ---- */

static bool show_page(const struct job *j, struct show_sim *s, struct err *e)
{
	struct co_lines *lines = co_lines_new(j->l->co.bytes, j->l->co.len);

	s->lines = lines;
	bool ok = show_html(s, j->o->html, e);
	s->lines = NULL;
	co_lines_free(lines);
	return ok;
}

static bool print_waves(const struct show_sim *s, FILE *out)
{
	enum { COLUMNS = 78 };
	struct buf text = { 0 };

	show_waves(s, COLUMNS, &text);
	fprintf(out, "\n%s", text.data);
	buf_fini(&text);
	return true;
}

static bool show_job(struct job *j, const char *file, struct err *e)
{
	const struct sim_cmd *o = j->o;
	struct show_sim s = {
		.file = file, .kernel = j->l->kernel->name, .r = &j->r,
		.c = &j->c, .gpu = j->grid ? &j->gpu : NULL, .m = &j->m,
		.src = &j->src, .costs = o->costs, .flop = j->flop,
		.timeline = &j->line, .gain = j->gain, .n_gains = j->n_gains,
	};

	if (o->timeline && !sim_timeline_write(&j->line, &j->r, o->timeline, e))
		return false;
	if (j->line.full)
		cmd_remark(&o->cmd, "warning: the timeline ends after %d "
			   "instructions", SIM_TIMELINE_MAX);
	if (o->plot && !plot_sim(&s, o->plot, e))
		return false;
	if (o->html && !show_page(j, &s, e))
		return false;
	if (o->cmd.json)
		return show_json(&s, o->annotate, o->cmd.out, e);
	return show_text(&s, o->cmd.out, e) &&
	       (!o->what_if || show_gains(&s, o->cmd.out, e)) &&
	       (!o->waves || print_waves(&s, o->cmd.out)) &&
	       (!o->annotate || show_annotated(&s, o->cmd.out, e));
}

static void job_fini(struct job *j)
{
	sim_fini(&j->r);
	sim_timeline_fini(&j->line);
	if (j->has_trace)
		sim_trace_close(&j->src);
	if (j->has_affine)
		sim_affine_close(&j->src);
	sim_plan_fini(&j->plan);
	cost_fini(&j->m);
	buf_fini(&j->trace);
}

static bool job_run(struct job *j, struct err *e)
{
	const struct isa_chip *chip = isa_chip_of_code(j->l->co.chip);
	struct sim_cmd o = *j->o;

	if (!o.chip && chip)
		o.chip = chip->name;
	return sim_load_costs(&o, true, &j->m, e) &&
	       (is_launch(j->o) ? simulate_launch(j, e) : simulate_waves(j, e));
}

/* The same with the costs of another origin, as a line behind the result. */
static bool compare_costs(const struct job *j, struct err *e)
{
	struct sim_cmd other = *j->o;
	struct job k = { .o = &other, .l = j->l };

	other.costs = j->o->compare;
	other.timeline = NULL;
	bool ok = job_run(&k, e);
	if (ok)
		fprintf(j->o->cmd.out,
			"\nwith %s costs: %llu cycles instead of "
			"%llu, %+.1f %%\n",
			other.costs, (unsigned long long)k.r.cycles,
			(unsigned long long)j->r.cycles,
			100 * ((double)k.r.cycles / (double)j->r.cycles - 1));
	job_fini(&k);
	return ok;
}

/* ---- guesses ---- */

static double time_of(const struct job *j)
{
	return j->grid ? j->gpu.time_s : j->r.time_s;
}

/* With one cost changed: how many times as long it takes. */
static bool run_with(const struct job *j, enum cost_row row, double value,
		     double *ratio, struct err *e)
{
	struct sim_cmd other = *j->o;
	struct job k = { .o = &other, .l = j->l };
	const size_t n = (size_t)other.set.n;
	const char **set = xcalloc(n + 1, sizeof(*set));
	char text[96];

	snprintf(text, sizeof(text), "%s=%.17g", cost_row_info(row)->name,
		 value);
	for (size_t i = 0; i < n; i++)
		set[i] = other.set.v[i];
	set[n] = text;
	other.set.v = set;
	other.set.n++;
	other.timeline = NULL;
	bool ok = job_run(&k, e);
	if (ok)
		*ratio = time_of(&k) / time_of(j);
	job_fini(&k);
	free(set);
	return ok;
}

/* What each cost that is a guess does to the time, at half and at twice. */
static bool print_guesses(const struct job *j, struct err *e)
{
	struct table t;
	bool ok = true;

	table_init(&t, "guess,#value,unit,#half_percent,#twice_percent");
	for (int row = 0; ok && row < COST_ROW_COUNT; row++) {
		const struct cost_row_info *info = cost_row_info(row);
		const double v = cost_value(&j->m, row);
		double half = 1, twice = 1;

		if (j->m.base[row].confidence != 'L' ||
		    j->m.row[row].origin > COST_DEFAULT)
			continue;
		ok = run_with(j, row, v / 2, &half, e) &&
		     run_with(j, row, v * 2, &twice, e);
		if (!ok || (half == 1 && twice == 1))
			continue;
		table_row(&t);
		table_cell(&t, 0, "%s", info->name);
		table_cell(&t, 1, "%g", v);
		table_cell(&t, 2, "%s", info->unit);
		table_cell(&t, 3, "%+.1f", 100 * (half - 1));
		table_cell(&t, 4, "%+.1f", 100 * (twice - 1));
	}
	if (ok && t.n_rows) {
		fprintf(j->o->cmd.out, "\n");
		ok = table_print(&t, TABLE_TEXT, j->o->cmd.out, e);
	} else if (ok) {
		fprintf(j->o->cmd.out, "\nno guess changes its time\n");
	}
	table_fini(&t);
	return ok;
}

/* Another launch is another question; 0: none, waves follow the code. */
static uint64_t digest_launch(const struct sim_cmd *o)
{
	const struct launch_plan *l = &o->launch;
	struct buf text = { 0 };

	if (!is_launch(o))
		return 0;
	buf_printf(&text, "%u,%u,%u %u,%u,%u %u %llu", l->grid[0], l->grid[1],
		   l->grid[2], l->block[0], l->block[1], l->block[2],
		   l->lds_bytes, (unsigned long long)l->seed);
	for (int i = 0; i < l->n_args; i++)
		buf_printf(&text, " %s", l->arg[i].text);
	uint64_t digest = XXH3_64bits(text.data, text.len);
	buf_fini(&text);
	return digest;
}

/* With --db a prediction is kept: other costs are another question. */
static bool keep_job(const struct job *j, const char *file, struct err *e)
{
	const struct sim_cmd *o = j->o;
	const struct launch_plan *l = j->l;
	const char *base = strrchr(file, '/');
	char inputs[160], params[320], digest[COST_DIGEST];
	struct res_record rows = { 0 };

	if (!o->db)
		return true;
	cost_digest(&j->m, digest);
	res_params(inputs, sizeof(inputs), "costs:s cold:b footprint:U "
		   "?trace:s ?affine:s", digest, o->cold, o->footprint,
		   o->trace ? "given" : NULL, o->affine ? "given" : NULL);
	res_params(params, sizeof(params), "object:s groups:d grid:U "
		   "workgroup:U ?launch:X", base ? base + 1 : file,
		   j->src.n_groups, j->grid, (uint64_t)l->block[0] *
		   l->block[1] * l->block[2], digest_launch(o));
	const struct res_start run = { .tool = "t0-sim", .inputs = inputs,
				       .argc = o->cmd.line_argc,
				       .argv = o->cmd.line_argv };
	bool ok = res_record_begin(&rows, o->db, &run, e) &&
		  res_record_case(&rows, "sim", l->kernel->name, params, e) &&
		  res_record_exact(&rows, "cycles", "cycle",
				   (double)j->r.cycles, RES_LOWER, e) &&
		  res_record_exact(&rows, "time", "s", j->grid ?
				   j->gpu.time_s : j->r.time_s, RES_LOWER, e);
	return res_record_end(&rows, ok, e);
}

bool sim_cmd_kernel(struct cmd *c, struct err *e)
{
	struct sim_cmd *o = (struct sim_cmd *)c;
	const char *file = c->argv[0];
	struct job j = { .o = o, .l = &o->launch };
	bool ok = open_plan(o, e) && job_run(&j, e) && show_job(&j, file, e) &&
		  (!o->compare || compare_costs(&j, e)) &&
		  (!o->guesses || o->cmd.json || print_guesses(&j, e)) &&
		  keep_job(&j, file, e);

	job_fini(&j);
	launch_fini(&o->launch);
	return ok;
}
