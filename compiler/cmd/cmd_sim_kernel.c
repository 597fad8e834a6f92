/*
 * compiler/cmd/cmd_sim_kernel.c - t0-sim FILE.co KERNEL.
 */
#include <string.h>

#include "compiler/cmd/cmd_sim.h"
#include "isa/object/object.h"
#include "results/db/results.h"

struct job {
	const struct sim_cmd *o;
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

static bool simulate_job(struct job *j, struct err *e)
{
	const struct sim_cmd *o = j->o;

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

static bool show_job(struct job *j, const char *file, struct err *e)
{
	const struct sim_cmd *o = j->o;
	struct show_sim s = {
		.file = file, .kernel = j->kernel->name, .r = &j->r,
		.c = &j->c, .gpu = j->grid ? &j->gpu : NULL, .m = &j->m,
		.src = &j->src, .costs = o->costs,
	};

	if (o->timeline && !sim_timeline_write(&j->line, &j->r, o->timeline, e))
		return false;
	if (j->line.full)
		cmd_remark(&o->cmd, "warning: the timeline ends after %d "
			   "instructions", SIM_TIMELINE_MAX);
	if (o->plot && !plot_sim(&s, o->plot, e))
		return false;
	if (o->cmd.json)
		return show_json(&s, o->annotate, o->cmd.out, e);
	return show_text(&s, o->cmd.out, e) &&
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
	if (j->has_co)
		co_fini(&j->co);
	cost_fini(&j->m);
	buf_fini(&j->object);
	buf_fini(&j->trace);
}

static bool job_run(struct job *j, const char *file, const char *kernel,
		    struct err *e)
{
	if (!sim_load_costs(j->o, true, &j->m, e) ||
	    !open_object(j, file, kernel, e))
		return false;
	from_descriptor(j);
	return (j->o->trace ? open_trace(j, e) : open_affine(j, e)) &&
	       simulate_job(j, e);
}

/* The same with the costs of another origin, as a line behind the result. */
static bool compare_costs(const struct job *j, const char *file, struct err *e)
{
	struct sim_cmd other = *j->o;
	struct job k = { .o = &other };

	other.costs = j->o->compare;
	other.timeline = NULL;
	bool ok = job_run(&k, file, j->kernel->name, e);
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

static bool check_options(const struct sim_cmd *o, struct err *e)
{
	if (o->trace && o->affine)
		return err_set(e, ERR_USAGE, "--trace and --affine both say "
			       "where waves go; wanted one of them");
	if (o->compare && o->cmd.json)
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

/* With --db a prediction is kept: other costs are another question. */
static bool keep_job(const struct job *j, const char *file, struct err *e)
{
	const struct sim_cmd *o = j->o;
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
		   "workgroup:U", base ? base + 1 : file, j->src.n_groups,
		   j->grid, items_of(j));
	const struct res_start run = { .tool = "t0-sim", .inputs = inputs,
				       .argc = o->cmd.line_argc,
				       .argv = o->cmd.line_argv };
	bool ok = res_record_begin(&rows, o->db, &run, e) &&
		  res_record_case(&rows, "sim", j->kernel->name, params, e) &&
		  res_record_exact(&rows, "cycles", "cycle",
				   (double)j->r.cycles, RES_LOWER, e) &&
		  res_record_exact(&rows, "time", "s", j->grid ?
				   j->gpu.time_s : j->r.time_s, RES_LOWER, e);
	return res_record_end(&rows, ok, e);
}

bool sim_cmd_kernel(struct cmd *c, struct err *e)
{
	const struct sim_cmd *o = (struct sim_cmd *)c;
	const char *file = c->argv[0];
	struct job j = { .o = o };
	bool ok = check_options(o, e) && job_run(&j, file, c->argv[1], e) &&
		  show_job(&j, file, e) &&
		  (!o->compare || compare_costs(&j, file, e)) &&
		  keep_job(&j, file, e);

	job_fini(&j);
	return ok;
}
