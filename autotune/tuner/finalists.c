/*
 * autotune/tuner/finalists.c - the finalists of a problem, on a device with a
 * clock.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"

/* A row per finalist; one without a possible time has failed. */
static bool put_row(struct decider *j, const struct candidates *h, size_t i,
		    const struct tune_arm *a, struct err *e)
{
	char op[TUNE_TEXT];
	struct res_tune_key key = tune_store_key(j->s, h->p, j->origin,
						 j->operands, op);
	struct res_tune t = candidate_row(&h->v[i]);

	t.state = a->good ? RES_TUNE_TIMED : RES_TUNE_FAILED;
	t.reason = a->why;
	t.time_s = a->good ? a->time_s.value : NAN;
	t.lo_s = a->good ? a->time_s.lo : NAN;
	t.hi_s = a->good ? a->time_s.hi : NAN;
	t.clock_hz = a->clock_hz;
	t.samples = (int64_t)a->n;
	return res_tune_put(j->s->db, j->s->run, &key, &t, e);
}

/* The samples with what the sensors showed: area "tune" of results.h. */
static bool put_samples(struct decider *j, const struct candidates *h, size_t i,
			const struct tune_arm *a, struct err *e)
{
	const struct tune_problem *p = h->p;
	char op[TUNE_TEXT], params[400];
	struct res_result r = {
		.run = j->s->run, .metric = "time", .unit = "s",
		.value = a->time_s.value, .lo = a->time_s.lo,
		.hi = a->time_s.hi, .n = (int64_t)a->n,
		.clock_hz = a->clock_hz, .origin = j->origin,
		.samples = a->sample, .n_samples = a->n,
		.before = a->sensors ? &a->before : NULL,
		.after = a->sensors ? &a->after : NULL,
	};

	gemm_op_name(&p->op, op, sizeof(op));
	res_params(params, sizeof(params), "m:u n:u k:u batch:u type:s "
		   "config:s operands:s caches:s", p->m, p->n, p->k, p->batch,
		   op, h->v[i].config, j->o->operands,
		   tune_caches_name(p->caches));
	return res_case_id(j->s->db, "tune", "t0-tune", params, &r.case_id,
			   e) &&
	       res_result_add(j->s->db, &r, NULL, e);
}

static void describe_measured(const struct candidates *h, size_t i,
			      const struct tune_arm *a,
			      struct tune_outcome *out)
{
	const struct candidate *x = &h->v[i];

	out->found = true;
	out->time_s = a->time_s.value;
	out->lo_s = a->time_s.lo;
	out->hi_s = a->time_s.hi;
	out->samples = (int64_t)a->n;
	out->clock_hz = a->clock_hz;
	out->bound_s = x->c.bound_s;
	snprintf(out->config, TUNE_TEXT, "%s", x->config);
	snprintf(out->limit, sizeof(out->limit), "%s", x->limit);
	tune_class(h->p, &x->c.config, out->class);
}

static void choose_fastest(const struct candidates *h, const size_t *v,
			   size_t n, const struct tune_arm *arm,
			   struct tune_outcome *out)
{
	size_t best = n, second = n;

	for (size_t i = 0; i < n; i++) {
		if (!arm[i].good)
			continue;
		if (best == n ||
		    arm[i].time_s.value < arm[best].time_s.value) {
			second = best;
			best = i;
		} else if (second == n ||
			   arm[i].time_s.value < arm[second].time_s.value) {
			second = i;
		}
	}
	if (best == n) {
		snprintf(out->why, sizeof(out->why), "nothing could be "
			 "measured: %.120s", n ? arm[0].why
					       : "no configuration is right");
		return;
	}
	describe_measured(h, v[best], &arm[best], out);
	if (second < n) {
		snprintf(out->second, TUNE_TEXT, "%s", h->v[v[second]].config);
		out->second_s = arm[second].time_s.value;
	}
}

static bool measure_arms(struct decider *j, struct candidates *h,
			 const size_t *v, size_t n, struct tune_arm *arm,
			 struct err *e)
{
	const struct tune_opts *o = j->o;
	enum tune_fill fill;
	const struct tune_protocol p = {
		.samples = o->samples, .caches = h->p->caches, .seed = o->seed,
		.costs = o->costs, .stop = o->stop, .quiet = o->quiet,
	};
	bool ok = tune_fill_parse(o->operands, &fill, e) &&
		  tune_bench_set(&j->bench, h->p, fill, o->seed, e);

	for (size_t i = 0; ok && i < n; i++) {
		arm[i].config = &h->v[v[i]].c.config;
		arm[i].code = code_get(j->codes, &h->p->op, arm[i].config, e);
		ok = arm[i].code != NULL;
	}
	return ok && tune_measure(&j->bench, arm, n, &p, e);
}

bool measure_finalists(struct decider *j, struct candidates *h, const size_t *v,
		       size_t n, struct tune_outcome *out, struct err *e)
{
	struct tune_arm *arm = xcalloc(n + 1, sizeof(*arm));
	bool ok = measure_arms(j, h, v, n, arm, e);

	for (size_t i = 0; ok && i < n; i++)
		ok = put_row(j, h, v[i], &arm[i], e) &&
		     (!arm[i].good || put_samples(j, h, v[i], &arm[i], e));
	if (ok)
		choose_fastest(h, v, n, arm, out);
	for (size_t i = 0; i < n; i++)
		tune_arm_fini(&arm[i]);
	free(arm);
	return ok;
}
