#include <cpuid.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/cpu/gemm.h"
#include "results/db/tunes.h"

#define NEAREST 2.0

struct row {
	struct host_problem problem;
	struct host_gemm_config config;
};

struct host_table {
	struct row *v; /* [n] */
	size_t n;
};

void host_target(unsigned threads, char out[HOST_GEMM_TEXT])
{
	unsigned r[12] = { 0 };
	char brand[49] = "", *name = brand;

	for (unsigned i = 0; i < 3; i++)
		__get_cpuid(0x80000002 + i, &r[4 * i], &r[4 * i + 1],
			    &r[4 * i + 2], &r[4 * i + 3]);
	memcpy(brand, r, sizeof(r));
	name += strspn(name, " ");
	snprintf(out, HOST_GEMM_TEXT, "%s, %u thread%s", name, threads,
		 threads == 1 ? "" : "s");
}

/* ---- the table ---- */

struct loading {
	struct host_table *t;
	struct host_problem kind;
};

/* The newest come first; an older one of the same problem is never found. */
static bool load(void *ctx, const struct res_tune_winner *w)
{
	struct loading *l = ctx;
	struct row r = { .problem = l->kind };

	r.problem.m = (size_t)w->key.m;
	r.problem.n = (size_t)w->key.n;
	r.problem.k = (size_t)w->key.k;
	if (!host_gemm_config_parse(w->tune.config, &r.config, NULL))
		return true; /* of another version of T0 */
	l->t->v = xrealloc(l->t->v, (l->t->n + 1) * sizeof(*l->t->v));
	l->t->v[l->t->n++] = r;
	return true;
}

static bool load_all(struct host_table *t, struct res_db *db, unsigned threads,
		     struct err *e)
{
	char target[HOST_GEMM_TEXT], op[HOST_GEMM_TEXT];
	bool ok = true;

	host_target(threads, target);
	for (int i = 0; ok && i < 6; i++) {
		struct loading l = { t,
				     { .b_type = (enum host_gemm_type)(i / 2),
				       .b_by_n = i % 2 } };
		host_problem_op(&l.kind, op);
		ok = res_tune_winners(db, target, op, load, &l, e);
	}
	return ok;
}

struct host_table *host_table_open(const char *path, unsigned threads,
				   struct err *e)
{
	struct host_table *t = xcalloc(1, sizeof(*t));
	struct res_db *db;
	bool ok;

	if (access(res_path(path), F_OK) != 0)
		return t;
	db = res_open(path, RES_READ, e);
	ok = db && load_all(t, db, threads, e);
	res_close(db);
	if (ok)
		return t;
	host_table_free(t);
	return NULL;
}

void host_table_free(struct host_table *t)
{
	if (t)
		free(t->v);
	free(t);
}

/* ---- the choice ---- */

static double apart(size_t a, size_t b)
{
	return fabs(log2(a ? (double)a : .5) - log2(b ? (double)b : .5));
}

/* How far a row is from a product; INFINITY: it says nothing about it. */
static double distance(const struct row *r, const struct host_gemm *g)
{
	const char *why;

	/* T0_HOST_SIMD may ask for less than the processor has. */
	if (r->config.level > host_gemm_level() ||
	    r->problem.b_type != g->b_type ||
	    r->problem.b_by_n != g->b_by_n ||
	    !host_gemm_legal(g, &r->config, &why))
		return INFINITY;
	return apart(r->problem.m, g->m) + apart(r->problem.n, g->n) +
	       apart(r->problem.k, g->k);
}

enum host_how host_select(const struct host_table *t, const struct host_gemm *g,
			  struct host_gemm_config *c)
{
	const struct row *best = NULL;
	double least = INFINITY;

	for (size_t i = 0; t && i < t->n; i++) {
		double far = distance(&t->v[i], g);
		if (far < least) {
			least = far;
			best = &t->v[i];
		}
	}
	if (!best || least > NEAREST) {
		host_gemm_default(g, c);
		return HOST_DEFAULT;
	}
	*c = best->config;
	return least == 0 ? HOST_EXACT : HOST_NEAREST;
}
