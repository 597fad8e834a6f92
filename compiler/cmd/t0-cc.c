/*
 * compiler/cmd/t0-cc.c - compile kernels.
 *
 * A C source that uses the DSL, SSA text, or one of the built-in library, to a
 * code object or to assembly.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cmd.h"
#include "compiler/cost/cost.h"
#include "compiler/driver/cc.h"
#include "compiler/dsl/dsl.h"
#include "compiler/kernels/kernels.h"
#include "compiler/sim/sim.h"
#include "isa/object/object.h"
#include "results/db/results.h"
#include "results/stats/stats.h"

struct options {
	struct cmd cmd;
	struct cc_options cc;
	const char *dump;
	const char *kernel, *type, *to, *cache, *weights;
	bool level[4], assembly, stats, verify, wgp, cu, list, wide, paged, turned;
	bool pack, cached, explain;
	bool library;
	const char *db;
	int repeat;
	struct cli_list set;
	struct cost_model costs;
	struct res_record rows; /* where --db asks for some */
	uint64_t max_vgprs, waves, group, head, ratio, tokens;
};

static void show_stage(void *ctx, const char *stage, const char *text)
{
	const struct options *o = ctx;

	if (!strcmp(o->dump, "all") || !strcmp(o->dump, stage) ||
	    (!strncmp(stage, o->dump, strlen(o->dump)) &&
	     stage[strlen(o->dump)] == ':'))
		fprintf(stderr, "; --- %s\n%s", stage, text);
}

/*
 * Cycles of one workgroup alone on a WGP, caches warm, every loop once: the
 * simulator without a description (t0-sim takes traces).
 */
static bool predict_cycles(const struct cc_object *obj,
			   const struct cost_model *m, uint64_t *cycles,
			   struct err *e)
{
	struct sim_config c = { .cost = m, .warmth = SIM_WARM,
				.warm_code = true };
	struct sim_result r = { 0 };
	struct sim_source src = { 0 };
	const struct co_kernel *k;
	struct co co;
	uint32_t items = 1;
	bool good;

	if (!co_parse(&co, obj->bytes.data, obj->bytes.len, e))
		return false;
	k = &co.kernels[0];
	for (int d = 0; d < 3; d++)
		items *= k->reqd_workgroup_size[d];
	src.wave_size = (int)k->wave_size;
	src.waves_per_group = (int)((items + k->wave_size - 1) / k->wave_size);
	src.n_groups = 1;
	good = sim_affine_open(&src, k->code, k->code_bytes, k->entry_vaddr,
			       "", k->name, e);
	if (good) {
		src.vgprs = co_descriptor_vgprs(&k->desc);
		src.lds_bytes = k->desc.group_segment_bytes;
		src.cu_mode = !(k->desc.rsrc1 >> 29 & 1);
		src.group_sgpr = co_descriptor_user_sgprs(&k->desc);
		good = sim_run(&src, &c, &r, e);
		*cycles = r.cycles;
		sim_fini(&r);
		sim_affine_close(&src);
	}
	co_fini(&co);
	return good;
}

static bool show_stats(const struct options *o, const char *name,
		       const struct cc_object *obj, struct err *e)
{
	const struct cc_stats *s = &obj->stats;
	uint64_t cycles = 0;
	struct table t;
	bool good;

	if (!predict_cycles(obj, &o->costs, &cycles, e))
		return err_wrap(e, "predicting its time");
	table_init(&t, "kernel,#vgprs,#sgprs,#waves,#lds,#scratch,#spills,"
		       "#bytes,#insts,#valu,#vopd,#wmma,#salu,#vmem,#smem,"
		       "#ds,#waits,#branches,#cycles");
	table_row(&t);
	table_cell(&t, 0, "%s", name);
	const uint32_t v[] = { s->vgprs, s->sgprs, s->waves_per_simd,
			       s->lds_bytes, s->scratch_bytes, s->spills,
			       s->code_bytes, s->insts, s->valu, s->vopd,
			       s->wmma, s->salu, s->vmem, s->smem, s->lds,
			       s->waits, s->branches, (uint32_t)cycles };

	for (size_t k = 0; k < ARRAY_SIZE(v); k++)
		table_cell(&t, (int)k + 1, "%u", v[k]);
	good = cmd_table(&o->cmd, &t, e);
	table_fini(&t);
	return good;
}

/* ---- rows ---- */

/* What the compiler made of it, to be held against what it makes later. */
static bool keep_object(struct options *o, const char *kernel,
			const struct cc_object *obj, struct err *e)
{
	const struct cc_stats *s = &obj->stats;
	const struct {
		const char *metric, *unit;
		double value;
		enum res_better better;
	} row[] = {
		{ "vgprs", "1", s->vgprs, RES_LOWER },
		{ "sgprs", "1", s->sgprs, RES_LOWER },
		{ "waves", "1", s->waves_per_simd, RES_HIGHER },
		{ "lds", "B", s->lds_bytes, RES_LOWER },
		{ "scratch", "B", s->scratch_bytes, RES_LOWER },
		{ "spills", "1", s->spills, RES_LOWER },
		{ "insts", "1", s->insts, RES_LOWER },
		{ "bytes", "B", s->code_bytes, RES_LOWER },
	};
	char params[96];
	uint64_t cycles;

	res_params(params, sizeof(params), "chip:s level:d",
		   o->cc.chip, o->cc.level);
	bool ok = res_record_case(&o->rows, "compile", kernel, params, e) &&
		  predict_cycles(obj, &o->costs, &cycles, e) &&
		  res_record_exact(&o->rows, "cycles", "cycle", (double)cycles,
				   RES_LOWER, e);
	for (size_t i = 0; ok && i < ARRAY_SIZE(row); i++)
		ok = res_record_exact(&o->rows, row[i].metric, row[i].unit,
				      row[i].value, row[i].better, e);
	return ok && res_record_verdict(&o->rows, RES_PASS,
					"the verifier found nothing", NULL, e);
}

/* How long compiling takes: the same again, each time a sample. */
static bool keep_time(struct options *o, const struct ssa_func *f,
		      struct err *e)
{
	double *s = xcalloc((size_t)o->repeat, sizeof(*s));
	bool ok = true;

	for (int i = 0; ok && i < o->repeat; i++) {
		struct cc_object obj = { 0 };
		uint64_t start = time_mono_ns();
		ok = cc_compile(f, &o->cc, &obj, e);
		s[i] = (double)(time_mono_ns() - start) * 1e-9;
		cc_object_fini(&obj);
	}
	struct res_interval m = res_median(s, (size_t)o->repeat);
	struct res_result x = {
		.run = o->rows.run, .case_id = o->rows.case_id,
		.metric = "time", .unit = "s", .value = m.value, .lo = m.lo,
		.hi = m.hi, .n = o->repeat, .clock_hz = NAN,
		.better = RES_LOWER, .origin = RES_HARDWARE, .samples = s,
		.n_samples = (size_t)o->repeat,
	};
	ok = ok && res_result_add(o->rows.db, &x, NULL, e);
	free(s);
	return ok;
}

static bool begin_rows(struct options *o, struct err *e)
{
	char digest[COST_DIGEST], inputs[128];

	cost_digest(&o->costs, digest);
	res_params(inputs, sizeof(inputs), "costs:s max_vgprs:u waves:u wgp:b "
		   "cu:b", digest, o->cc.max_vgprs, o->cc.waves, o->cc.wgp,
		   o->cc.cu);
	const struct res_start run = { .tool = "t0-cc", .inputs = inputs,
				       .argc = o->cmd.line_argc,
				       .argv = o->cmd.line_argv };
	return res_record_begin(&o->rows, o->db, &run, e);
}

static bool compile_function(struct options *o, const struct ssa_func *f,
			     struct err *e)
{
	struct cc_object obj = { 0 };
	struct buf text = { 0 };
	bool good;

	if (o->assembly) {
		good = cc_assembly(f, &o->cc, &text, e);
		/* The runner looks whether stdout took it. */
		if (good && !o->cmd.output)
			fwrite(text.data, 1, text.len, stdout);
		else
			good = good && file_write_atomic(o->cmd.output,
							 text.data, text.len,
							 e);
		buf_fini(&text);
		return good;
	}
	good = cc_compile(f, &o->cc, &obj, e);
	if (good && o->verify)
		fold_printf(stderr, 2,
			    "t0-cc: %s: %u bytes of code pass the "
			    "verifier\n",
			    f->name, obj.stats.code_bytes);
	if (good && o->cmd.output)
		good = file_write_atomic(o->cmd.output, obj.bytes.data,
					 obj.bytes.len, e);
	if (good && o->rows.db)
		good = keep_object(o, f->name, &obj, e) &&
		       (!o->repeat || keep_time(o, f, e));
	if (good && o->stats)
		good = show_stats(o, f->name, &obj, e);
	cc_object_fini(&obj);
	return good;
}

static bool compile_file(struct options *o, const char *path, struct err *e)
{
	struct buf text = { 0 };
	struct ssa_func *f;
	bool good = file_read(path, 0, &text, e);

	if (!good)
		return false;
	buf_addc(&text, 0);
	f = ssa_parse(text.data, e);
	good = f && compile_function(o, f, e);
	if (!good)
		err_wrap(e, "%s", path);
	if (f)
		ssa_func_free(f);
	buf_fini(&text);
	return good;
}

/* The kernels of a C source: all, or the one that --kernel names. */
static bool compile_source(struct options *o, const char *path, struct err *e)
{
	struct cc_source s;
	const struct dsl_kernel *only = NULL;
	bool good = true;

	if (!cc_source_open(&s, path, e))
		return false;
	if (o->kernel)
		only = cc_source_find(&s, o->kernel);
	if (o->kernel && !only)
		good = err_set(e, ERR_USAGE, "%s has no kernel '%s'", path,
			       o->kernel);
	else if (!only && s.n_kernels > 1 && (o->cmd.output || o->assembly))
		good = err_set(e, ERR_USAGE, "%s has %zu kernels, '%s' and "
			       "others; --kernel chooses", path, s.n_kernels,
			       s.kernel[0].name);
	for (size_t i = 0; good && i < s.n_kernels; i++) {
		struct ssa_func *f;

		if (only && only != &s.kernel[i])
			continue;
		f = cc_source_build(&s, &s.kernel[i], e);
		good = f && (compile_function(o, f, e) ||
			     err_wrap(e, "%s: %s", path, s.kernel[i].name));
		ssa_func_free(f);
	}
	cc_source_close(&s);
	return good;
}

static bool is_source(const char *path)
{
	size_t n = strlen(path);

	return n > 2 && !strcmp(path + n - 2, ".c");
}

/* ------------------------------------------------------------- library ---- */

static bool parse_type(const char *text, enum dsl_type *out, struct err *e)
{
	static const struct {
		const char *name;
		enum dsl_type type;
	} known[] = { { "f32", DSL_F32 }, { "f16", DSL_F16 },
		      { "bf16", DSL_BF16 }, { "i8", DSL_I8 },
		      { "u8", DSL_U8 },	  { "u32", DSL_U32 },
		      { "i16", DSL_I16 } };

	for (size_t i = 0; text && i < ARRAY_SIZE(known); i++)
		if (!strcmp(text, known[i].name)) {
			*out = known[i].type;
			return true;
		}
	return !text || err_set(e, ERR_USAGE,
				"type '%s'; wanted f32, f16, bf16, i8, u8, u32 "
				"or i16",
				text);
}

static void print_source(void *ctx, const char *text)
{
	(void)ctx;
	fold_printf(stderr, 2, "t0-cc: %s\n", text);
}

/* As programs get it that use the library. */
static bool fetch_kernel(struct options *o, const struct kernel_entry *k,
			 const struct kernel_shape *s, struct err *e)
{
	struct cache_object obj;
	struct object_cache j;
	bool good;

	object_cache_init(&j, print_source, NULL);
	good = kernel_object(&j, k, s, &o->cc, &obj, e);
	if (good) {
		printf("%zu bytes, %s\n", obj.len, object_from_name(obj.from));
		if (o->cmd.output)
			good = file_write_atomic(o->cmd.output, obj.bytes,
						 obj.len, e);
		cache_object_fini(&obj);
	}
	object_cache_fini(&j);
	return good;
}

static bool write_pack(const struct options *o, struct err *e)
{
	struct buf pack = { 0 };
	bool good;

	if (!o->cmd.output)
		return err_set(e, ERR_USAGE, "--pack needs --output FILE");
	good = kernel_pack(&pack, e) &&
	       file_write_atomic(o->cmd.output, pack.data, pack.len, e);
	if (good)
		printf("%u code objects of the library: %zu bytes\n",
		       prebuilt_count(&(struct prebuilt){ (uint8_t *)pack.data,
							  pack.len }),
		       pack.len);
	buf_fini(&pack);
	return good;
}

static bool no_kernel(const char *name, struct err *e)
{
	struct cmd_near near = { .name = name };

	for (size_t i = 0; i < kernel_count; i++)
		cmd_near_try(&near, kernel_table[i].name);
	if (near.meant)
		return err_set(e, ERR_USAGE, "the library has no kernel '%s': "
			       "did you mean %s?  --list has all", name,
			       near.meant);
	return err_set(e, ERR_USAGE, "the library has no kernel '%s'; --list "
		       "names them", name);
}

static bool compile_kernel(struct options *o, struct err *e)
{
	const struct kernel_entry *k = kernel_find(o->kernel);
	struct kernel_shape s = { .group = (uint32_t)o->group,
				  .head = (uint32_t)o->head,
				  .ratio = (uint32_t)o->ratio,
				  .tokens = (uint32_t)o->tokens,
				  .wide = o->wide,
				  .paged = o->paged,
				  .turned = o->turned };
	struct ssa_func *f;
	bool good;

	if (!k)
		return no_kernel(o->kernel, e);
	if (!parse_type(o->type, &s.type, e) || !parse_type(o->to, &s.to, e) ||
	    !parse_type(o->cache, &s.cache, e) ||
	    !parse_type(o->weights, &s.weights, e) ||
	    !kernel_shape_check(k, &s, e))
		return false;
	if (o->cached)
		return fetch_kernel(o, k, &s, e);
	f = kernel_build(k, &s, e);
	if (!f)
		return err_wrap(e, "%s", k->name);
	good = compile_function(o, f, e);
	ssa_func_free(f);
	return good;
}

/* Every kernel in its usual shape, as DIR/NAME.co where --output names DIR. */
static bool compile_library(struct options *o, struct err *e)
{
	const char *dir = o->cmd.output;
	bool good = true;

	for (size_t i = 0; good && i < kernel_count; i++) {
		struct kernel_shape s = { 0 };
		struct buf path = { 0 };
		struct ssa_func *f;

		kernel_usual(&kernel_table[i], 0, &s);
		good = kernel_shape_check(&kernel_table[i], &s, e);
		f = good ? kernel_build(&kernel_table[i], &s, e) : NULL;
		buf_printf(&path, "%s/%s.co", dir ? dir : "",
			   kernel_table[i].name);
		o->cmd.output = dir ? path.data : NULL;
		good = f && compile_function(o, f, e);
		ssa_func_free(f);
		buf_fini(&path);
	}
	o->cmd.output = dir;
	return good;
}

/* How many shapes are in the pack, and what a shape has. */
static void list_shapes(struct table *t, const struct kernel_entry *k)
{
	static const char *const name[] = { "type",  "to",    "cache", "head",
					    "ratio", "wide", "weights",
					    "tokens", "bytes", "narrow", "paged",
					    "turned" };
	struct kernel_shape s;
	struct buf text = { 0 };
	uint32_t n = 0;

	while (kernel_usual(k, n, &s))
		n++;
	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		if (k->uses >> i & 1)
			buf_printf(&text, "%s%s", text.len ? " " : "", name[i]);
	table_cell(t, 2, "%u", n);
	table_cell(t, 3, "%s", text.len ? text.data : "-");
	buf_fini(&text);
}

static bool list_kernels(const struct cmd *c, struct err *e)
{
	struct table t;
	bool good;

	table_init(&t, "kernel,#group,#prebuilt,shape,computes");
	for (size_t i = 0; i < kernel_count; i++) {
		table_row(&t);
		table_cell(&t, 0, "%s", kernel_table[i].name);
		table_cell(&t, 1, "%u", kernel_table[i].group);
		list_shapes(&t, &kernel_table[i]);
		table_cell(&t, 4, "%s", kernel_table[i].what);
	}
	good = cmd_table(c, &t, e);
	table_fini(&t);
	return good;
}

static void apply_options(struct options *o)
{
	for (int k = 0; k < 4; k++)
		if (o->level[k])
			o->cc.level = k;
	o->cc.max_vgprs = (uint32_t)o->max_vgprs;
	o->cc.waves = (uint32_t)o->waves;
	o->cc.wgp = o->wgp;
	o->cc.cu = o->cu;
	if (o->dump) {
		o->cc.dump = show_stage;
		o->cc.dump_ctx = o;
	}
}

/* On stderr: stdout may be the assembly. */
static bool explain_costs(const struct options *o, struct err *e)
{
	char origins[COST_ORIGINS], summary[128];
	struct table t;

	cost_origins(&o->costs, origins);
	cost_summary(&o->costs, summary, sizeof(summary));
	fold_printf(stderr, 2, "costs %s\nread from %s: %s\n", origins,
		    res_path(o->db), summary);
	table_init(&t, COST_COLUMNS);
	cost_list_changed(&o->costs, &t);
	bool ok = !t.n_rows || table_print(&t, TABLE_TEXT, stderr, e);
	table_fini(&t);
	return ok;
}

static bool open_costs(struct options *o, struct err *e)
{
	if (!cost_open(&o->costs, o->cc.chip, o->db, true, COST_HARDWARE,
		       &o->set, e))
		return false;
	o->cc.costs = &o->costs;
	if (o->repeat < 0 || o->repeat > 100000 || (o->repeat && !o->db))
		return err_set(e, ERR_USAGE, "--repeat %d: wanted up to 100000 "
			       "times, and --db to keep them", o->repeat);
	return (!o->explain || explain_costs(o, e)) &&
	       (!o->db || begin_rows(o, e));
}

static bool run_compiler(struct cmd *c, struct err *e)
{
	struct options *o = (struct options *)c;
	const bool source = c->argc == 1 && is_source(c->argv[0]);
	const bool none = (o->kernel && !source) || o->list || o->pack ||
			  o->library;
	const int files = none ? 0 : 1;

	if (c->argc != files)
		return err_set(e, ERR_USAGE, "%d files; wanted %d", c->argc,
			       files);
	apply_options(o);
	if (!o->list && !o->pack && !open_costs(o, e))
		return false;
	bool good = source     ? compile_source(o, c->argv[0], e) :
		    o->list    ? list_kernels(c, e) :
		    o->pack    ? write_pack(o, e) :
		    o->library ? compile_library(o, e) :
		    o->kernel  ? compile_kernel(o, e) :
				 compile_file(o, c->argv[0], e);
	good = res_record_end(&o->rows, good, e);
	cost_fini(&o->costs);
	return good;
}

/* ---- options ---- */

static struct options o;

static const struct cmd_spec commands[] = {
	{ NULL, "FILE.ssa\nFILE.c [--kernel NAME]\n--kernel NAME\n--list",
	  NULL, run_compiler, 0, CMD_MANY,
	  .flags = CMD_JSON | CMD_OWN_OUTPUT },
	{ 0 },
};
static const struct cli_opt options[] = {
	{ "output", 'o', CLI_STR, &o.cmd.output, "FILE",
	  "where the code object, or the assembly, goes" },
	{ "assembly", 'S', CLI_FLAG, &o.assembly, NULL,
	  "assembly text instead of an object" },
	{ "O0", 0, CLI_FLAG, &o.level[0], NULL, "no optimisation" },
	{ "O1", 0, CLI_FLAG, &o.level[1], NULL, "cheap passes" },
	{ "O2", 0, CLI_FLAG, &o.level[2], NULL, "all passes" },
	{ "O3", 0, CLI_FLAG, &o.level[3], NULL,
	  "all passes and unrolling (the default)" },
	{ "kernel", 'k', CLI_STR, &o.kernel, "NAME",
	  "one of the built-in library, or of FILE.c" },
	{ "type", 0, CLI_STR, &o.type, "TYPE",
	  "of its elements: f32, f16, bf16" },
	{ "to", 0, CLI_STR, &o.to, "TYPE",
	  "of the results of convert" },
	{ "group", 0, CLI_U64, &o.group, "N",
	  "its work-items per workgroup" },
	{ "weights", 0, CLI_STR, &o.weights, "TYPE",
	  "of the matrices of stream kernels: also i8, u8 for pairs of "
	  "4 bits, u32 and i16 for codes of 6 and 3" },
	{ "cache", 0, CLI_STR, &o.cache, "TYPE",
	  "of keys and values in attention's cache: also i8" },
	{ "head", 0, CLI_U64, &o.head, "N",
	  "elements of a head of attention, to 256" },
	{ "ratio", 0, CLI_U64, &o.ratio, "N",
	  "heads that a group of attn_decode takes" },
	{ "tokens", 0, CLI_U64, &o.tokens, "N",
	  "that a group of stream kernels takes, 1 to 4" },
	{ "wide", 0, CLI_FLAG, &o.wide, NULL,
	  "rows of gemv and kv_gather begin at multiples of 16 bytes" },
	{ "paged", 0, CLI_FLAG, &o.paged, NULL,
	  "the cache of keys and values has a table of blocks" },
	{ "turned", 0, CLI_FLAG, &o.turned, NULL,
	  "heads are multiplied by Hadamard's matrix before they are rounded" },
	{ "cached", 0, CLI_FLAG, &o.cached, NULL,
	  "take it prebuilt or from the cache if it is there, else "
	  "compile it and keep it; and say which" },
	{ "pack", 0, CLI_FLAG, &o.pack, NULL,
	  "write the library's prebuilt objects, as the build does" },
	{ "list", 0, CLI_FLAG, &o.list, NULL,
	  "list the library: prebuilt objects, options of a shape" },
	{ "chip", 0, CLI_STR, &o.cc.chip, "NAME",
	  "gfx1010, gfx1030, gfx1100 to gfx1103, gfx1150, gfx1151, gfx1200, "
	  "gfx1201" },
	{ "wgp", 0, CLI_FLAG, &o.wgp, NULL,
	  "groups over both CUs of a WGP" },
	{ "cu", 0, CLI_FLAG, &o.cu, NULL,
	  "groups in one CU; neither: as their size and LDS ask for" },
	{ "max-vgprs", 0, CLI_U64, &o.max_vgprs, "N",
	  "at most N vector registers per lane" },
	{ "waves", 0, CLI_U64, &o.waves, "N",
	  "aim at N waves per SIMD" },
	{ "library", 0, CLI_FLAG, &o.library, NULL,
	  "all of the library in usual shapes, into the folder --output" },
	{ "db", 0, CLI_STR, &o.db, "FILE",
	  "the database of costs; named, it gets what was compiled, as rows" },
	{ "repeat", 0, CLI_INT, &o.repeat, "N",
	  "with --db: compile N more times, and keep how long it took" },
	{ "set", 0, CLI_LIST, &o.set, "NAME=VALUE",
	  "change a cost (compiler/cost/cost.def)" },
	{ "explain-costs", 0, CLI_FLAG, &o.explain, NULL,
	  "say on stderr which costs make the object" },
	{ "dump", 0, CLI_STR, &o.dump, "STAGE",
	  "print a stage on stderr: ssa:PASS, select, schedule, "
	  "allocate, final, all" },
	{ "stats", 0, CLI_FLAG, &o.stats, NULL,
	  "registers, occupancy, instruction mix and predicted cycles "
	  "of one workgroup whose loops run once" },
	{ "verify", 0, CLI_FLAG, &o.verify, NULL,
	  "say on stderr that the object passed the verifier, as each "
	  "has to" },
	{ 0 },
};

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-cc",
		.summary = "compile kernels: in C, in SSA form, of the library",
		.commands = commands,
		.options = options,
	};

	cc_options_init(&o.cc);
	return cmd_main(&o.cmd, &tool, argc, argv);
}
