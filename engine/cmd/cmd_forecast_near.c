/*
 * engine/cmd/cmd_forecast_near.c - t0-qwen3 forecast: what others published of
 * the nearest pass, and how far simulated times are off.
 */
#include <math.h>
#include <string.h>

#include "compiler/sim/sim.h"
#include "engine/cmd/cmd_forecast.h"

static const struct qwen_published published[] = {
#define PREFILL false
#define DECODE	true
#define PUBLISHED(phase, model, parameters, weight_bytes, tokens, behind, \
		  rate, source) \
	{ \
		phase,	model,	parameters, weight_bytes, \
		tokens, behind, rate,	    source \
	},
#include "engine/cmd/published.def"
#undef PREFILL
#undef DECODE
};

/*
 * How far apart two passes are, or INFINITY where a figure of one says nothing
 * of the other.  Decoding reads weights: it goes by their bytes.  A prompt
 * computes: it goes by the parameters, whatever holds them.
 */
static double distance(const struct qwen_published *a,
		       const struct qwen_published *b)
{
	const double size =
		a->decode ? fabs(log(a->weight_bytes / b->weight_bytes)) :
			    fabs(log(a->parameters / b->parameters));
	const double length = fabs(log((double)a->tokens / b->tokens));
	const double depth = fabs((double)a->behind - b->behind);

	return a->decode != b->decode || size > log(1.25) || length > log(4) ||
			       depth > 1024 ?
		       INFINITY :
		       size + 0.1 * length + depth * 1e-4;
}

const struct qwen_published *qwen_published_near(const struct qwen_published *a)
{
	const struct qwen_published *best = NULL;
	double least = INFINITY;

	for (size_t i = 0; i < ARRAY_SIZE(published); i++)
		if (distance(a, &published[i]) < least) {
			least = distance(a, &published[i]);
			best = &published[i];
		}
	return best;
}

bool qwen_forecast_store(struct res_record *r, const char *model,
			 const struct qwen_published *x,
			 const struct qwen_published *near, struct err *e)
{
	const struct sim_range *off = sim_range(SIM_RANGE_TIMES, COST_CHIP);
	struct res_result row = { .run = r->run,
				  .metric = "tokens_per_s",
				  .unit = "token/s",
				  .better = RES_HIGHER,
				  .value = x->rate, .clock_hz = NAN,
				  .lo = x->rate / off->most,
				  .hi = x->rate / off->least,
				  .origin = RES_SIMULATED };
	char params[192];

	res_params(params, sizeof(params), "phase:s tokens:u behind:u",
		   x->decode ? "decode" : "prefill", x->tokens, x->behind);
	if (!res_case_id(r->db, "forecast", model, params, &row.case_id, e) ||
	    !res_result_add(r->db, &row, NULL, e))
		return false;
	if (!near)
		return true;
	row.lo = row.hi = row.value;
	row.better = RES_NEITHER;
	row.metric = "predicted";
	if (!res_case_id(r->db, "predict", model, params, &row.case_id, e) ||
	    !res_result_add(r->db, &row, NULL, e))
		return false;
	row.metric = "reference";
	row.value = row.lo = row.hi = near->rate;
	row.origin = RES_PUBLISHED;
	char source[160];
	snprintf(source, sizeof(source), "%s, %s", near->model, near->source);
	row.source = source;
	return res_result_add(r->db, &row, NULL, e);
}
