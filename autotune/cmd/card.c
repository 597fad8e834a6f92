/*
 * autotune/cmd/card.c - t0-tune card: a product of the kit, measured.
 */
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card.h"
#include "autotune/cmd/cmd.h"
#include "probes/common/common.h"

static void list_one(struct table *t, int i, const struct card_gemm *g)
{
	table_row(t);
	table_cell(t, 0, "%d", i + 1);
	table_cell(t, 1, "%s", g->dtype);
	table_cell(t, 2, "%ux%ux%u", g->m, g->n, g->k);
	table_cell(t, 3, "%s", g->config);
}

void tune_card_list(struct table *t)
{
	int n;
	const struct card_gemm *g = card_gemms(&n);

	table_init(t, "#number,types,product,configuration");
	for (int i = 0; i < n; i++)
		list_one(t, i, &g[i]);
}

static bool store_time(struct probe_run *r, int number,
		       const struct card_code *c,
		       const struct tune_chain_time *x, struct err *e)
{
	char name[TUNE_TEXT], params[256];
	struct res_verdict v = {
		.run = r->id, .kind = RES_CORRECTNESS,
		.answer = x->right ? RES_PASS : RES_FAIL, .reason = x->detail,
	};

	gemm_config_name(&c->config, name, sizeof(name));
	res_params(params, sizeof(params), "number:d m:u n:u k:u object:s",
		   number, c->problem.m, c->problem.n, c->problem.k, c->object);
	r->before = x->before;
	r->after = x->after;
	return probe_run_samples(r, "card", name, params, "time", "s",
				 RES_LOWER, x->sample, x->n, e) &&
	       res_case_id(r->db, "card", name, params, &v.case_id, e) &&
	       res_verdict_add(r->db, &v, e);
}

static void add_row(struct table *t, int number, const struct card_gemm *g,
		    const struct tune_chain_time *x, const char *origin)
{
	list_one(t, number - 1, g);
	table_cell(t, 4, "%.3f", probe_quantile(x->sample, x->n, 0.5) * 1e6);
	table_cell(t, 5, "%zu", x->n);
	table_cell(t, 6, "%s", origin);
	table_cell(t, 7, "%s", x->right ? "right" : x->detail);
}

static bool time_one(const struct probe_opts *o, struct kfd_dev *dev,
		     struct probe_run *r, int number, struct table *t,
		     bool *right, struct err *e)
{
	int n;
	const struct card_gemm *g = card_gemms(&n);
	struct tune_chain_time x;
	struct card_code code;
	bool ok = card_compile(&g[number - 1], &code, e);
	const struct tune_chain chain = { .problem = &code.problem,
					  .config = &code.config,
					  .code = &code.code, .seed = o->seed,
					  .stop = o->stop };

	ok = ok && tune_chain_time(&chain, dev, &x, e) &&
	     store_time(r, number, &code, &x, e);
	if (ok) {
		add_row(t, number, &g[number - 1], &x, kfd_info(dev)->origin);
		*right &= x.right;
	}
	card_code_fini(&code);
	return ok || err_wrap(e, "product %d of the kit", number);
}

bool tune_card_measure(const struct probe_opts *o, const int *number, size_t n,
		       struct table *t, bool *right, struct err *e)
{
	struct probe_run r = { 0 };
	struct kfd_dev *dev = NULL;
	bool ok = kfd_open(&dev, o->device, e) &&
		  probe_run_begin(&r, o, "t0-tune card", kfd_info(dev), NULL,
				  e);

	*right = true;
	table_init(t, "#number,types,product,configuration,#us,#samples,origin,"
		      "values");
	for (size_t i = 0; ok && i < n && !probe_stopped(o); i++)
		ok = time_one(o, dev, &r, number[i], t, right, e);
	kfd_close(dev);
	return probe_run_end(&r, o, ok, ok ? EXIT_YES : err_exit_code(e), e);
}
