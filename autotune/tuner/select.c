/*
 * autotune/tuner/select.c - the configuration to launch, never an unproven
 * one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"

/* How far another state of the caches is; winners of each kind looked at. */
#define OTHER_CACHES 1.0
enum { LOOK = 6 };

struct tune_selector {
	const struct tune_opts *o;
	struct tune_store store;
	struct tune_bench bench;
	bool may_check;
};

struct tune_selector *tune_selector_open(const struct tune_opts *o,
					 struct err *e)
{
	struct tune_selector *s = xcalloc(1, sizeof(*s));

	s->o = o;
	s->may_check = o->device != NULL;
	bool ok = s->may_check ? tune_store_open(&s->store, o, e)
		: (s->store.db = res_open(o->db, RES_READ, e)) != NULL;
	if (ok)
		return s;
	tune_selector_close(s);
	return NULL;
}

void tune_selector_close(struct tune_selector *s)
{
	struct err e = { 0 };

	if (!s)
		return;
	tune_bench_close(&s->bench);
	tune_store_close(&s->store, true, false, &e);
	free(s);
}

void tune_choice_fini(struct tune_choice *c)
{
	gemm_code_fini(&c->code);
}

/* ---- proof ---- */

static bool check_now(struct tune_selector *s, const struct tune_problem *p,
		      const struct tune_choice *c, struct res_tune_check *row,
		      int *answer, struct err *e)
{
	struct tune_check_result x;

	if (!s->bench.dev && !tune_bench_open(&s->bench, s->o->device, NULL,
					      s->o->stop, e))
		return false;
	if (!tune_check(&s->bench, p, &c->config, &c->code, s->o->seed, &x, e))
		return false;
	row->pass = x.pass;
	row->worst = x.worst;
	row->compared = (int64_t)x.compared;
	row->seed = x.seed;
	row->detail = x.detail;
	*answer = x.pass ? 1 : -1;
	return res_tune_check_put(s->store.db, s->store.run, row, e);
}

/* Has any machine code of this configuration passed for the class? */
static bool is_known(struct tune_selector *s, const char *op,
		     const char *config, const char *class, bool *known,
		     struct err *e)
{
	int64_t n = 0;
	bool ok = res_query_int(s->store.db, &n, e, "SELECT count(*) FROM "
				"v_tune_checks WHERE target = ? AND op = ? AND "
				"config = ? AND class = ? AND verdict = 'pass'",
				"tttt", s->o->costs->chip, op, config, class);

	*known = n > 0;
	return ok;
}

/*
 * Compile c->config and ask whether this code is right for p.  false and *e:
 * neither could be found out.
 */
static bool prove_code(struct tune_selector *s, const struct tune_problem *p,
		       struct tune_choice *c, bool *proven, struct err *e)
{
	char op[TUNE_TEXT], config[TUNE_TEXT], class[TUNE_TEXT], object[20];
	struct gemm_shape shape = tune_shape(p);
	struct cc_options options;
	bool known = true;
	int answer = 0;

	*proven = false;
	cc_options_init(&options);
	options.costs = s->o->costs;
	options.chip = s->o->costs->chip;
	gemm_op_name(&p->op, op, sizeof(op));
	gemm_config_name(&c->config, config, sizeof(config));
	tune_class(p, &c->config, class);
	if (!s->may_check && !is_known(s, op, config, class, &known, e))
		return false;
	if (!known || !gemm_fits(&p->op, &c->config, &shape, NULL) ||
	    !(s->o->compile ? s->o->compile(&p->op, &c->config, &options,
					    &c->code, NULL) :
			      gemm_object(s->o->objects, &p->op, &c->config,
					  &options, &c->code, NULL)))
		return true;
	tune_object_digest(&c->code, object);
	struct res_tune_check row = {
		.target = s->o->costs->chip, .op = op, .config = config,
		.object = object, .class = class,
	};
	bool ok = res_tune_checked(s->store.db, &row, &answer, e) &&
		  (answer || !s->may_check ||
		   check_now(s, p, c, &row, &answer, e));
	*proven = ok && answer > 0;
	if (!*proven)
		gemm_code_fini(&c->code);
	return ok;
}

/* ---- winners ---- */

struct found {
	char config[TUNE_TEXT], shape[TUNE_TEXT];
	double far, time_s;
	enum res_origin origin;
};
struct finding {
	const struct tune_problem *p;
	struct found v[LOOK]; /* [n] the nearest first */
	int n;
};

static double log_ratio(double a, double b)
{
	return fabs(log2((a > 0 ? a : 0.5) / (b > 0 ? b : 0.5)));
}

double tune_distance(const struct tune_problem *p, const struct res_tune_key *k)
{
	if ((p->batch > 1) != (k->batch > 1))
		return INFINITY;
	return log_ratio(p->m, (double)k->m) + log_ratio(p->n, (double)k->n) +
	       log_ratio(p->k, (double)k->k) +
	       (strcmp(k->caches, tune_caches_name(p->caches)) ? OTHER_CACHES
							       : 0);
}

/* Nearer, or as near and measured where the other is simulated. */
static bool is_better(const struct found *a, const struct found *b)
{
	return a->far != b->far ? a->far < b->far
		: a->origin == RES_HARDWARE && b->origin != RES_HARDWARE;
}

static bool consider_winner(void *ctx, const struct res_tune_winner *w)
{
	struct finding *f = ctx;
	struct found x = {
		.far = tune_distance(f->p, &w->key), .time_s = w->tune.time_s,
		.origin = w->key.origin,
	};
	int at = f->n;

	if (x.far > TUNE_NEAREST_FAR)
		return true;
	snprintf(x.config, sizeof(x.config), "%s", w->tune.config);
	snprintf(x.shape, sizeof(x.shape), "%lldx%lldx%lld %s",
		 (long long)w->key.m, (long long)w->key.n,
		 (long long)w->key.k, w->key.caches);
	while (at > 0 && is_better(&x, &f->v[at - 1]))
		at--;
	if (at == LOOK)
		return true;
	f->n += f->n < LOOK;
	memmove(&f->v[at + 1], &f->v[at],
		(size_t)(f->n - 1 - at) * sizeof(x));
	f->v[at] = x;
	return true;
}

static bool from_winners(struct tune_selector *s, const struct tune_problem *p,
			 struct tune_choice *out, bool *found, struct err *e)
{
	struct finding f = { .p = p };
	char op[TUNE_TEXT];

	gemm_op_name(&p->op, op, sizeof(op));
	if (!res_tune_winners(s->store.db, s->o->costs->chip, op, consider_winner, &f,
			      e))
		return false;
	for (int i = 0; i < f.n && !*found; i++) {
		const struct found *x = &f.v[i];

		if (!gemm_config_parse(x->config, &out->config, NULL))
			continue;
		if (!prove_code(s, p, out, found, e))
			return false;
		out->how = x->far > 0 ? TUNE_NEAREST : TUNE_EXACT;
		out->time_s = x->far > 0 ? NAN : x->time_s;
		snprintf(out->why, sizeof(out->why), "%s %s: the %s winner of "
			 "%s", x->far > 0 ? "nearest" : "exact", x->config,
			 res_origin_name(x->origin), x->shape);
	}
	return true;
}

/* ---- the model ---- */

static bool from_model(struct tune_selector *s, const struct tune_problem *p,
		       struct tune_choice *out, bool *found, struct err *e)
{
	struct tune_space space;
	bool ok = true;
	size_t most = s->may_check ? LOOK : SIZE_MAX;

	tune_space_init(&space, p, s->o->costs);
	for (size_t i = 0; ok && !*found && i < space.legal && i < most; i++) {
		char config[TUNE_TEXT];

		out->config = space.v[i].config;
		out->how = TUNE_MODEL;
		out->time_s = NAN;
		ok = prove_code(s, p, out, found, e);
		gemm_config_name(&out->config, config, sizeof(config));
		snprintf(out->why, sizeof(out->why), "model %s: about %.2f us, "
			 "number %zu of %zu by the estimate; no winner is near",
			 config, space.v[i].estimate_s * 1e6, i + 1,
			 space.legal);
	}
	tune_space_fini(&space);
	return ok;
}

bool tune_select(struct tune_selector *s, const struct tune_problem *p,
		 struct tune_choice *out, struct err *e)
{
	bool found = false;

	*out = (struct tune_choice){ .time_s = NAN };
	if (!from_winners(s, p, out, &found, e) ||
	    (!found && !from_model(s, p, out, &found, e)))
		return err_wrap(e, "choosing for %ux%ux%u", p->m, p->n, p->k);
	return found ||
	       err_set(e, ERR_UNSUPPORTED, "no configuration is proven right "
		       "for %ux%ux%u; run t0-tune --shapes %ux%ux%u", p->m,
		       p->n, p->k, p->m, p->n, p->k);
}
