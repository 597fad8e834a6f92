/*
 * engine/cmd/cmd_forecast_train.c - t0-qwen3 forecast --train.
 *
 * A training step on a card, simulated: what each kernel takes, tokens per
 * second, the share of what the matrix units could do, and the memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune.h"
#include "compiler/cost/cost.h"
#include "engine/cmd/cmd.h"
#include "engine/train/gpu/gpu.h"
#include "results/db/results.h"

struct step {
	const struct qwen_cmd *c;
	struct train_how how;
	struct train_graph g;
	struct train_forecast f;
	double all_s; /* of the step */
	uint32_t devices; /* that share its batches */
	double links_s;	  /* of these: to add up gradients */
	double limit; /* FLOP/s of all matrix units */
	struct table table;
	struct res_record rows; /* where --db names a database */
};

/* Launches that take as long are one row. */
static bool is_same(const struct gpu_share *a, const struct gpu_share *b)
{
	return strcmp(a->kernel, b->kernel) == 0 &&
	       fabs(a->each_s - b->each_s) <= 1e-3 * a->each_s;
}

static size_t merge_shares(struct gpu_share *s, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < kept && !is_same(&s[k], &s[i]))
			k++;
		if (k < kept)
			s[k].launches += s[i].launches;
		else
			s[kept++] = s[i];
	}
	return kept;
}

static void add_row(struct step *s, const char *part, const char *kernel,
		    uint32_t launches, double all_s)
{
	struct table *t = &s->table;

	table_row(t);
	table_cell(t, 0, "%s", part);
	table_cell(t, 1, "%s", kernel);
	table_cell(t, 2, "%u", launches);
	table_cell(t, 4, "%.3f", all_s * 1e3);
	table_cell(t, 5, "%.1f", 100 * all_s / s->all_s);
}

static void add_part(struct step *s, const char *part, struct gpu_forecast *f)
{
	f->n = merge_shares(f->share, f->n);
	for (size_t i = 0; i < f->n; i++) {
		const struct gpu_share *x = &f->share[i];

		add_row(s, part, x->kernel, x->launches,
			x->launches * x->each_s);
		table_cell(&s->table, 3, "%.2f", x->each_s * 1e6);
		table_cell(&s->table, 7, "%.1f",
			   100 * x->flop / x->each_s / s->limit);
		table_cell(&s->table, 9, "%s", x->limit);
		table_cell(&s->table, 10, "%s", x->chosen);
	}
	add_row(s, part, "(launches)", f->packets, f->launches_s);
}

static double part_seconds(const struct gpu_forecast *f)
{
	return f->kernels_s + f->launches_s;
}

static double tokens_per_second(const struct step *s)
{
	return (double)s->c->accumulate * s->how.rows * s->how.length /
	       s->all_s;
}

/* Of what the matrix units of all devices could do. */
static double share_of_limit(const struct step *s)
{
	return (double)s->c->accumulate * train_flop(&s->g) / s->all_s /
	       s->limit / s->devices;
}

enum { MEETINGS = 2 }; /* behind the sums, and behind what is fetched */

/* Each sums a share of all gradients, which the others have and fetch. */
static double find_links(const struct step *s, const struct cost_model *costs)
{
	const double others = s->devices - 1;
	double bytes = 0;

	for (uint32_t i = 0; i < s->g.n_params; i++)
		if (s->g.param[i].gradient != TRAIN_NONE)
			bytes += sizeof(float) * (double)s->g.param[i].rows *
				 s->g.param[i].cols;
	return s->devices == 1 ?
		       0 :
		       2 * bytes * others / s->devices /
				       cost_value(costs, COST_LINK_BW) +
			       MEETINGS * 1e-9 * cost_value(costs, COST_LINK_LAT);
}

static void fill_table(struct step *s)
{
	struct train_forecast *f = &s->f;

	s->all_s = part_seconds(&f->batches) + part_seconds(&f->update) +
		   s->links_s;
	add_part(s, "batch", &f->batches);
	if (s->devices > 1)
		add_row(s, "update", "(links)", MEETINGS, s->links_s);
	add_part(s, "update", &f->update);
	add_row(s, "step", "(all)", f->batches.packets + f->update.packets,
		s->all_s);
	table_cell(&s->table, 6, "%.1f", tokens_per_second(s));
	table_cell(&s->table, 7, "%.1f", 100 * share_of_limit(s));
	table_cell(&s->table, 8, "%.3f", (double)f->bytes * 1e-9);
}

/* ---- rows ---- */

static const char *const again_name[] = { "nothing", "attention", "ffn",
					  "all" };

static const char *name_model(const struct step *s)
{
	return s->c->model ? qwen_cmd_name(s->c->model) : s->c->shape;
}

static bool begin_rows(struct step *s, const struct cost_model *costs,
		       struct err *e)
{
	const struct qwen_cmd *c = s->c;
	char inputs[QWEN_INPUTS], digest[COST_DIGEST];

	cost_digest(costs, digest);
	res_params(inputs, sizeof(inputs), "costs:s model:s precision:s "
		   "masters:b optimizer:s average:b rank:u recompute:s "
		   "?devices:u",
		   digest, name_model(s), qwen_weights_name(s->how.type),
		   s->how.masters, train_method_name(s->how.method),
		   s->how.average, s->how.rank, again_name[s->how.again],
		   s->devices > 1 ? s->devices : 0);
	const struct res_start run = { .tool = "t0-qwen3 forecast --train",
				       .inputs = inputs,
				       .argc = c->cmd.line_argc,
				       .argv = c->cmd.line_argv };
	return res_record_begin(&s->rows, c->db, &run, e) &&
	       cost_store_peaks(costs, s->rows.db, s->rows.run, e);
}

/* A case of the step; of a kernel, the `row`-th of a part. */
static bool begin_case(struct step *s, const char *part, const char *kernel,
		       size_t row, struct err *e)
{
	char params[TUNE_TEXT + 192];

	res_params(params, sizeof(params), "rows:u length:u accumulate:U "
		   "?part:s ?kernel:s ?row:U", s->how.rows, s->how.length,
		   s->c->accumulate, part, kernel, (uint64_t)row);
	return res_record_case(&s->rows, "step", name_model(s), params, e);
}

static bool store_share(struct step *s, double all_s, struct err *e)
{
	return res_record_exact(&s->rows, "share", "1", all_s / s->all_s,
				RES_NEITHER, e);
}

static bool store_part(struct step *s, const char *part,
		       const struct gpu_forecast *f, struct err *e)
{
	struct res_record *r = &s->rows;
	bool ok = true;

	for (size_t i = 0; ok && i < f->n; i++) {
		const struct gpu_share *x = &f->share[i];

		ok = begin_case(s, part, x->kernel, i + 1, e) &&
		     store_share(s, x->launches * x->each_s, e) &&
		     res_record_exact(r, "time", "s", x->each_s, RES_LOWER,
				      e) &&
		     res_record_exact(r, "flops", "FLOP/s",
				      x->flop / x->each_s, RES_HIGHER, e) &&
		     res_record_exact(r, "far_bytes", "B", x->far_bytes,
				      RES_LOWER, e);
	}
	return ok && begin_case(s, part, "(launches)", 0, e) &&
	       store_share(s, f->launches_s, e);
}

static bool store_step(struct step *s, const struct cost_model *costs,
		       struct err *e)
{
	const struct train_forecast *f = &s->f;
	struct res_record *r = &s->rows;
	bool ok = begin_rows(s, costs, e) && begin_case(s, NULL, NULL, 0, e) &&
		  res_record_exact(r, "speed", "token/s", tokens_per_second(s),
				   RES_HIGHER, e) &&
		  res_record_exact(r, "limit_share", "1", share_of_limit(s),
				   RES_HIGHER, e) &&
		  res_record_exact(r, "memory", "B", (double)f->bytes,
				   RES_LOWER, e) &&
		  store_part(s, "batch", &f->batches, e) &&
		  store_part(s, "update", &f->update, e);

	return res_record_end(r, ok, e);
}

/* A step that does not fit is tried again, with more that is made again. */
static bool find_step(struct step *s, const struct qwen_config *m,
		      const struct cost_model *costs, struct err *e)
{
	const unsigned all = TRAIN_AGAIN_ATTENTION | TRAIN_AGAIN_FFN;
	struct train_rule r;

	train_rule_init(&r);
	r.method = s->how.method;
	for (;;) {
		if (!train_qwen3(&s->g, m, &s->how, e))
			return false;
		if (train_gpu_forecast(&s->g, &r,
				       (uint32_t)s->c->accumulate / s->devices,
				       costs, &s->f, e)) {
			s->links_s = find_links(s, costs);
			return true;
		}
		if (e->code != ERR_NOMEM || s->how.again == all)
			return false;
		*e = (struct err){ 0 };
		s->how.again = s->how.again == 0 ? TRAIN_AGAIN_FFN : all;
		train_graph_fini(&s->g);
	}
}

bool qwen_forecast_step(const struct qwen_cmd *c, const struct qwen_config *m,
			const struct cost_model *costs, struct err *e)
{
	const struct tune_problem p = { .op = { .in = DSL_BF16 } };
	struct step s = { .c = c, .devices = (uint32_t)c->devices,
			  .limit = tune_peak_flops(
				  &p, costs, cost_value(costs, COST_CLOCK) *
						     1e6) };

	if (!qwen_cmd_batches(c, e))
		return false;
	table_init(&s.table, "part,kernel,#launches,#us_each,#ms,#share,"
			     "#tokens_per_s,#wmma_share,#gb,limit,chosen");
	bool ok = qwen_cmd_how(c, &s.how, e) && find_step(&s, m, costs, e);
	if (ok) {
		fill_table(&s);
		cmd_remark(&c->cmd, "%.3f of %.3f GB; made again: %s",
			   (double)s.f.bytes * 1e-9,
			   (double)s.f.room_bytes * 1e-9, again_name[s.how.again]);
		ok = (!c->db || store_step(&s, costs, e)) &&
		     cmd_table(&c->cmd, &s.table, e);
	}
	train_forecast_fini(&s.f);
	train_graph_fini(&s.g);
	table_fini(&s.table);
	return ok;
}
