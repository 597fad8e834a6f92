/*
 * autotune/card/products.c - the products of the kit: compiled, and simulated
 * under many costs at once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card_int.h"
#include "base/threads.h"

static const struct card_gemm gemms[] = {
#define GEMM(dtype, m, n, k, config) { dtype, m, n, k, config },
#include "autotune/card/design.def"
#undef GEMM
};
_Static_assert(ARRAY_SIZE(gemms) <= CARD_GEMMS_MAX, "card_data has room");

const struct card_gemm *card_gemms(int *n)
{
	*n = (int)ARRAY_SIZE(gemms);
	return gemms;
}

bool card_compile(const struct card_gemm *g, struct card_code *out,
		  struct err *e)
{
	struct cost_model m;
	const struct cc_options o = { .chip = TUNE_CHIP, .level = 2,
				      .costs = &m };

	*out = (struct card_code){ 0 };
	if (!tune_op_parse(g->dtype, NULL, NULL, &out->problem.op, e) ||
	    !gemm_config_parse(g->config, &out->config, e))
		return false;
	out->problem.m = g->m;
	out->problem.n = g->n;
	out->problem.k = g->k;
	out->problem.batch = 1;
	cost_init(&m, TUNE_CHIP);
	bool ok = gemm_compile(&out->problem.op, &out->config, &o, &out->code,
			       e);
	cost_fini(&m);
	if (ok)
		tune_object_digest(&out->code, out->object);
	return ok || err_wrap(e, "%s of %ux%ux%u", g->config, g->m, g->n, g->k);
}

void card_code_fini(struct card_code *c)
{
	gemm_code_fini(&c->code);
}

bool card_simulate(const struct card_code *c, const struct cost_model *m,
		   double *seconds, struct err *e)
{
	struct tune_simulation s;
	bool ok = tune_simulate(&c->problem, &c->config, &c->code, m, false,
				&s, e);

	/* One launch follows the other, as they are measured. */
	if (ok)
		*seconds = s.time_s + cost_value(m, COST_LAUNCH) * 1e-6;
	tune_simulation_fini(&s);
	return ok;
}

struct grid {
	const struct card_code *code;
	const struct cost_model *m;
	size_t n_codes, n;
	double *seconds;
	const _Atomic int *stop;
	struct progress bar;
	pthread_mutex_t lock;
	struct err *e;
	bool failed;
};

static void simulate_part(void *ctx, struct threads *t, unsigned thread)
{
	struct grid *g = ctx;
	struct threads_deal deal;
	struct err e = { 0 };
	size_t from, to;

	threads_deal(&deal, t, thread, g->n, 1);
	while (threads_take(&deal, &from, &to))
		for (size_t i = from; i < to; i++) {
			const bool go = !g->failed && !(g->stop && *g->stop);
			const bool ok = !go ||
					card_simulate(&g->code[i % g->n_codes],
						      &g->m[i / g->n_codes],
						      &g->seconds[i], &e);

			pthread_mutex_lock(&g->lock);
			progress_step(&g->bar, 1);
			if (!ok && !g->failed) {
				g->failed = true;
				*g->e = e;
			}
			pthread_mutex_unlock(&g->lock);
		}
}

bool card_simulate_all(const struct card_code *code, size_t n_codes,
		       const struct cost_model *m, size_t n_models,
		       const struct card_fit_how *how, double *seconds,
		       struct err *e)
{
	struct grid g = { .code = code, .m = m, .n_codes = n_codes,
			  .n = n_codes * n_models, .seconds = seconds,
			  .stop = how->stop, .e = e };
	struct threads *t = threads_new(how->jobs, e);

	if (!t)
		return false;
	pthread_mutex_init(&g.lock, NULL);
	progress_init(&g.bar, "simulating products", g.n, how->quiet);
	threads_run(t, simulate_part, &g);
	progress_fini(&g.bar);
	pthread_mutex_destroy(&g.lock);
	threads_free(t);
	if (!g.failed && how->stop && *how->stop)
		return err_set(e, ERR_STOPPED, "not at its end");
	return !g.failed;
}
