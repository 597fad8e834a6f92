/*
 * engine/cmd/cmd_forecast.c - t0-qwen3 forecast.
 *
 * Tokens per second of a card, simulated.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost.h"
#include "compiler/sim/sim.h"
#include "engine/cmd/cmd_forecast.h"
#include "engine/gpu/gpu.h"

struct forecast {
	struct qwen_cmd *c;
	struct qwen_config config;
	struct cost_model costs;
	struct gpu_question q; /* weights and cache */
	struct table table;
	struct res_record rows; /* where --db names a database */
};

/* Rows of forecasts and what others published are gfx1100's. */
static bool is_other(const struct forecast *f)
{
	return strcmp(f->costs.chip, COST_CHIP) != 0;
}

static bool costs_read(struct forecast *f, struct err *e)
{
	const char *chip = f->c->chip ? f->c->chip : COST_CHIP;
	const struct isa_chip *c = isa_chip_find(chip);

	if (!c || !c->device_id)
		return err_set(e, ERR_USAGE, "--chip %s: there is no such chip "
			       "in software; t0-device list shows all", chip);
	if (strcmp(chip, COST_CHIP) && (f->c->db || f->c->train))
		return err_set(e, ERR_UNSUPPORTED, "--chip %s: %s is of gfx1100 "
			       "alone; go without", chip,
			       f->c->db ? "what --db stores" : "--train");
	return cost_open(&f->costs, chip, f->c->db, f->c->db, COST_HARDWARE,
			 NULL, e);
}

static bool config_read(struct forecast *f, struct err *e)
{
	const struct qwen_cmd *c = f->c;

	f->q.devices = (uint32_t)c->devices;
	f->q.weights = QWEN_W_BF16;
	f->q.cache = qwen_both(QWEN_W_BF16);
	return qwen_cmd_devices(c, false, e) &&
	       (c->model ? qwen_config_load(&f->config, c->model, e) :
			   qwen_shape_find(c->shape, &f->config, e)) &&
	       (!c->weights || qwen_weights_parse(c->weights, &f->q.weights,
						  e)) &&
	       (!c->cache || qwen_kinds_parse(c->cache, &f->q.cache, e)) &&
	       (!qwen_is_block(f->q.weights) || qwen_is_own(f->q.weights) ||
		err_set(e, ERR_UNSUPPORTED, "--weights %s: the gfx1100 has no "
			"kernels for it; wanted f32, f16, bf16, int8, int4, "
			"int6_N or int3_N",
			c->weights));
}

static void add_row(struct forecast *f, const char *pass, const char *kernel,
		uint32_t launches, double each_s, double all_s)
{
	struct table *t = &f->table;

	table_row(t);
	table_cell(t, 0, "%s", pass);
	table_cell(t, 1, "%s", kernel);
	table_cell(t, 2, "%u", launches);
	if (each_s > 0)
		table_cell(t, 3, "%.2f", each_s * 1e6);
	table_cell(t, 4, "%.3f", all_s * 1e3);
}

/* ---- rows ---- */

static bool begin_rows(struct forecast *f, struct err *e)
{
	const struct qwen_cmd *c = f->c;
	char inputs[QWEN_INPUTS], digest[COST_DIGEST];
	char cache[QWEN_KINDS_TEXT];

	cost_digest(&f->costs, digest);
	res_params(inputs, sizeof(inputs), "costs:s model:s weights:s cache:s "
		   "devices:u", digest, c->model ? c->model : c->shape,
		   qwen_weights_name(f->q.weights),
		   qwen_kinds_print(f->q.cache, cache),
		   f->q.devices);
	const struct res_start run = { .tool = "t0-qwen3 forecast",
				       .inputs = inputs,
				       .argc = c->cmd.line_argc,
				       .argv = c->cmd.line_argv };
	return res_record_begin(&f->rows, c->db, &run, e) &&
	       cost_store_peaks(&f->costs, f->rows.db, f->rows.run, e);
}

/* The `row`-th kernel of a pass; a kernel may be there in several sizes. */
static bool store_kernel(struct forecast *f, const struct gpu_question *q,
			 const struct gpu_share *s, size_t row, struct err *e)
{
	struct res_record *r = &f->rows;
	char params[192];

	res_params(params, sizeof(params), "model:s sequences:u tokens:u "
		   "positions:u row:U",
		   f->c->model ? f->c->model : f->c->shape, q->sequences,
		   q->tokens, q->positions, (uint64_t)row);
	return res_record_case(r, "kernel", s->kernel, params, e) &&
	       res_record_exact(r, "time", "s", s->each_s, RES_LOWER, e) &&
	       res_record_exact(r, "flops", "FLOP/s", s->flop / s->each_s,
				RES_HIGHER, e) &&
	       res_record_exact(r, "far_bytes", "B", s->far_bytes, RES_LOWER,
				e) &&
	       (!(s->far_bytes > 0) ||
		res_record_exact(r, "intensity", "FLOP/B",
				 s->flop / s->far_bytes, RES_NEITHER, e));
}

/* ---- passes ---- */

/* Columns of a whole pass; the table has them in this order. */
enum {
	RATE = 6,
	DRAM,
	LIMIT,
	CHOSEN,
	RATE_LO,
	RATE_HI,
	NEAR,
	NEAR_OF,
	PRODUCT
};

/* A pass's tokens per second, their range, and what others published. */
static bool add_rate(struct forecast *f, const struct gpu_question *q,
		     const struct gpu_forecast *x, double all, struct err *e)
{
	const struct sim_range *off =
		sim_range(SIM_RANGE_TIMES, f->costs.chip);
	const struct qwen_published us = {
		.decode = q->tokens == 1, .tokens = q->tokens,
		.behind = q->positions - q->tokens,
		.parameters = (double)qwen_config_params(&f->config),
		.weight_bytes = (double)x->weight_bytes,
		.rate = q->sequences * q->tokens / all,
	};
	const struct qwen_published *near =
		q->sequences == 1 && !is_other(f) ? qwen_published_near(&us) :
						    NULL;
	struct table *t = &f->table;

	table_cell(t, RATE, "%.1f", us.rate);
	if (off) {
		table_cell(t, RATE_LO, "%.1f", us.rate / off->most);
		table_cell(t, RATE_HI, "%.1f", us.rate / off->least);
	}
	if (near) {
		table_cell(t, NEAR, "%.1f", near->rate);
		table_cell(t, NEAR_OF, "%s, %s", near->model, near->source);
	}
	return !f->rows.db || q->sequences != 1 ||
	       qwen_forecast_store(&f->rows, f->c->model ? f->c->model :
				   f->c->shape, &us, near, e);
}

/* Which product of a layer, or of the whole, has weights of this size? */
static const char *product_name(const struct qwen_config *m,
				const struct gpu_share *s)
{
	const uint32_t heads = m->heads * m->head_dim;
	const uint32_t both = heads + 2 * m->kv_heads * m->head_dim;
	const struct {
		const char *name;
		uint32_t outputs, inputs;
	} products[] = {
		{ "qkv", both, m->hidden },
		{ "o", m->hidden, heads },
		{ "gate+up", m->ffn, m->hidden },
		{ "gate+up", 2 * m->ffn, m->hidden },
		{ "down", m->hidden, m->ffn },
		{ "vocabulary", m->vocab, m->hidden },
	};

	for (size_t i = 0; i < ARRAY_SIZE(products) && s->inputs; i++)
		if (s->outputs == products[i].outputs &&
		    s->inputs == products[i].inputs)
			return products[i].name;
	return NULL;
}

/* People see it behind the kernel, programs in a column of its own. */
static void add_product(struct forecast *f, const struct gpu_share *s)
{
	const enum table_format as = f->c->cmd.format;
	const char *name = product_name(&f->config, s);

	if (name && as != TABLE_TEXT && as != TABLE_MARKDOWN)
		table_cell(&f->table, PRODUCT, "%s", name);
	else if (name)
		table_cell(&f->table, 1, "%s (%s)", s->kernel, name);
}

/* One pass; rows of its kernels, then of the whole. */
static bool forecast_pass(struct forecast *f, const char *name,
		 const struct gpu_question *q, struct err *e)
{
	double rate = cost_value(&f->costs, COST_DRAM_BW), all;
	struct gpu_forecast x;

	bool ok = true;

	if (!gpu_forecast(&f->config, q, &f->costs, &x, e))
		return err_wrap(e, "%s", name);
	all = x.kernels_s + x.launches_s + x.links_s;
	for (size_t i = 0; i < x.n; i++) {
		const struct gpu_share *s = &x.share[i];
		add_row(f, name, s->kernel, s->launches, s->each_s,
		    s->launches * s->each_s);
		table_cell(&f->table, 5, "%.1f",
			   100 * s->launches * s->each_s / all);
		table_cell(&f->table, LIMIT, "%s", s->limit);
		if (*s->chosen)
			table_cell(&f->table, CHOSEN, "%s", s->chosen);
		add_product(f, s);
		ok = ok && (!f->rows.db || store_kernel(f, q, s, i, e));
	}
	add_row(f, name, "(launches)", x.packets, x.launches_s / x.packets,
	    x.launches_s);
	table_cell(&f->table, 5, "%.1f", 100 * x.launches_s / all);
	if (x.meetings) {
		add_row(f, name, "(links)", (uint32_t)x.meetings,
			x.links_s / (double)x.meetings, x.links_s);
		table_cell(&f->table, 5, "%.1f", 100 * x.links_s / all);
	}
	add_row(f, name, "(all)", x.packets, 0, all);
	ok = ok && add_rate(f, q, &x, all, e);
	table_cell(&f->table, DRAM, "%.1f",
		   100 * (double)x.weight_bytes / rate / all);
	free(x.share);
	return ok;
}

static bool sizes_ok(const struct forecast *f, uint64_t tokens,
		     uint64_t sequences, struct err *e)
{
	uint32_t most = f->config.max_positions;

	if (tokens && tokens <= most && sequences && sequences <= 1024)
		return true;
	return err_set(e, ERR_USAGE, "%llu tokens of %llu sequences; wanted 1 "
		       "to %u tokens (the model's context) of 1 to 1024",
		       (unsigned long long)tokens,
		       (unsigned long long)sequences, most);
}

static bool forecast_decodes(struct forecast *f, struct err *e)
{
	uint64_t *v, context = f->c->context;
	struct gpu_question q = f->q;
	bool ok = true;
	char name[64];
	size_t n;

	if (!cli_sweep(f->c->batch, &v, &n, e))
		return false;
	if (context > f->config.max_positions)
		context = f->config.max_positions;
	for (size_t i = 0; ok && i < n; i++) {
		ok = sizes_ok(f, context, v[i], e);
		q.sequences = (uint32_t)v[i];
		q.tokens = 1;
		q.positions = (uint32_t)context;
		snprintf(name, sizeof(name), "decode %u behind %u",
			 q.sequences, q.positions - 1);
		ok = ok && forecast_pass(f, name, &q, e);
	}
	free(v);
	return ok;
}

static bool forecast_prefills(struct forecast *f, struct err *e)
{
	struct gpu_question q = f->q;
	bool ok = true;
	uint64_t *v;
	char name[64];
	size_t n;

	if (!cli_sweep(f->c->prefill, &v, &n, e))
		return false;
	for (size_t i = 0; ok && i < n; i++) {
		ok = sizes_ok(f, v[i], 1, e);
		q.sequences = 1;
		q.tokens = q.positions = (uint32_t)v[i];
		snprintf(name, sizeof(name), "prompt of %u", q.tokens);
		ok = ok && forecast_pass(f, name, &q, e);
	}
	free(v);
	return ok;
}

/* ---- for people: a heading and a table for each pass ---- */

/* "decode 1 behind 63: 26768 tokens/s (16038 to 30246), ..." */
static void print_heading(const struct forecast *f, const char *const *all)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s: %s tokens/s", all[0], all[RATE]);
	if (all[RATE_LO])
		buf_printf(&text, " (%s to %s)", all[RATE_LO], all[RATE_HI]);
	buf_printf(&text, ", %s ms", all[4]);
	if (all[DRAM])
		buf_printf(&text, ", %s %% of what memory gives", all[DRAM]);
	if (all[NEAR])
		buf_printf(&text, "; published: %s (%s)", all[NEAR],
			   all[NEAR_OF]);
	fold_printf(f->c->cmd.out, 2, "%s\n", text.data);
	buf_fini(&text);
}

/* Rows from `from` to the one of the whole pass, which `to` is. */
static bool print_pass(const struct forecast *f, int from, int to,
		       struct err *e)
{
	static const int shown[] = { 1, 2, 3, 4, 5, LIMIT, CHOSEN };
	struct table t;

	print_heading(f, f->table.row[to]);
	table_init(&t, "kernel,#launches,#\xc2\xb5s each,#ms,#%,limit,chosen");
	for (int r = from; r < to; r++) {
		table_row(&t);
		for (int i = 0; i < (int)ARRAY_SIZE(shown); i++)
			if (f->table.row[r][shown[i]])
				table_cell(&t, i, "%s",
					   f->table.row[r][shown[i]]);
	}
	bool ok = table_print(&t, f->c->cmd.format, f->c->cmd.out, e);
	table_fini(&t);
	return ok;
}

static bool print_passes(const struct forecast *f, struct err *e)
{
	const struct table *t = &f->table;
	bool ok = true;

	if (f->c->cmd.format != TABLE_TEXT &&
	    f->c->cmd.format != TABLE_MARKDOWN)
		return cmd_table(&f->c->cmd, t, e);
	for (int r = 0, from = 0; ok && r < t->n_rows; r++)
		if (!strcmp(t->row[r][1], "(all)")) {
			if (from)
				fputc('\n', f->c->cmd.out);
			ok = print_pass(f, from, r, e);
			from = r + 1;
		}
	return ok;
}

static bool forecast_all(struct forecast *f, struct err *e)
{
	const struct qwen_cmd *c = f->c;
	bool ok = (!c->db || begin_rows(f, e)) && forecast_decodes(f, e) &&
		  forecast_prefills(f, e);

	return res_record_end(&f->rows, ok, e) && print_passes(f, e);
}

bool qwen_cmd_forecast(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct forecast f = { .c = c };
	char text[128];
	bool ok;

	table_init(&f.table,
		   "pass,kernel,#launches,#us_each,#ms,#share_percent,"
		   "#tokens_per_s,#dram_percent,limit,chosen,#from,"
		   "#to,#published,published_by,product");
	ok = config_read(&f, e) && costs_read(&f, e) &&
	     (c->train ? qwen_forecast_step(c, &f.config, &f.costs, e) :
			 forecast_all(&f, e));
	cost_summary(&f.costs, text, sizeof(text));
	if (ok && is_other(&f))
		cmd_remark(r, "simulated for %s from costs: %s; how far it is "
			   "off is not known", f.costs.chip, text);
	else if (ok)
		cmd_remark(r, "simulated for gfx1100 from costs: %s; from and to "
			   "are where 80 %% of %s lie", text,
			   sim_range(SIM_RANGE_TIMES, COST_CHIP)->of);
	table_fini(&f.table);
	cost_fini(&f.costs);
	return ok;
}
