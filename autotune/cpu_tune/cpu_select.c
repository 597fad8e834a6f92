/*
 * autotune/cpu_tune/cpu_select.c - the winners of the database, for an engine.
 */
#include <cpuid.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "base/vec.h"
#include "results/db/tunes.h"

#define NEAREST 2.0

struct row {
	struct cpu_problem problem;
	struct cpu_gemm_config config;
};

struct cpu_table {
	struct row *v; /* [n] */
	size_t n, cap;
};

void cpu_target(unsigned threads, char out[CPU_GEMM_TEXT])
{
	unsigned r[12] = { 0 };
	char brand[49] = "", *name = brand;

	for (unsigned i = 0; i < 3; i++)
		__get_cpuid(0x80000002 + i, &r[4 * i], &r[4 * i + 1],
			    &r[4 * i + 2], &r[4 * i + 3]);
	memcpy(brand, r, sizeof(r));
	name += strspn(name, " ");
	snprintf(out, CPU_GEMM_TEXT, "%s, %u thread%s", name, threads,
		 threads == 1 ? "" : "s");
}

/* ---- the table ---- */

struct loading {
	struct cpu_table *t;
	struct cpu_problem kind;
};

/* The newest come first; an older one of the same problem is never found. */
static bool load_winner(void *ctx, const struct res_tune_winner *w)
{
	struct loading *l = ctx;
	struct row r = { .problem = l->kind };

	r.problem.m = (size_t)w->key.m;
	r.problem.n = (size_t)w->key.n;
	r.problem.k = (size_t)w->key.k;
	if (!cpu_gemm_config_parse(w->tune.config, &r.config, NULL))
		return true; /* of another version of T0 */
	vec_push(l->t, r);
	return true;
}

static bool load_all(struct cpu_table *t, struct res_db *db, unsigned threads,
		     struct err *e)
{
	char target[CPU_GEMM_TEXT], op[CPU_GEMM_TEXT];
	bool ok = true;

	cpu_target(threads, target);
	static const struct cpu_problem kind[] = {
		{ .b_type = CPU_GEMM_F32 },
		{ .b_type = CPU_GEMM_F32, .b_by_n = true },
		{ .b_type = CPU_GEMM_F16 },
		{ .b_type = CPU_GEMM_F16, .b_by_n = true },
		{ .b_type = CPU_GEMM_BF16 },
		{ .b_type = CPU_GEMM_BF16, .b_by_n = true },
		{ .b_type = CPU_GEMM_BF16, .a_as = CPU_GEMM_BF16 },
		{ .b_type = CPU_GEMM_BF16, .b_by_n = true,
		  .a_as = CPU_GEMM_BF16 },
		{ .b_type = CPU_GEMM_INT8, .b_by_n = true,
		  .a_as = CPU_GEMM_INT8 },
		{ .b_type = CPU_GEMM_INT4, .b_by_n = true,
		  .a_as = CPU_GEMM_INT8 },
		{ .b_type = CPU_GEMM_CHANNEL8, .b_by_n = true,
		  .a_as = CPU_GEMM_INT8 },
	};
	for (size_t i = 0; ok && i < ARRAY_SIZE(kind); i++) {
		struct loading l = { t, kind[i] };
		cpu_problem_op(&l.kind, op);
		ok = res_tune_winners(db, target, op, load_winner, &l, e);
	}
	return ok;
}

struct cpu_table *cpu_table_open(const char *path, unsigned threads,
				 struct err *e)
{
	struct cpu_table *t = xcalloc(1, sizeof(*t));
	struct res_db *db;
	bool ok;

	if (access(res_path(path), F_OK) != 0)
		return t;
	db = res_open(path, RES_READ, e);
	ok = db && load_all(t, db, threads, e);
	res_close(db);
	if (ok)
		return t;
	cpu_table_free(t);
	return NULL;
}

void cpu_table_free(struct cpu_table *t)
{
	if (t)
		free(t->v);
	free(t);
}

/* ---- the choice ---- */

static double log_ratio(size_t a, size_t b)
{
	return fabs(log2(a ? (double)a : .5) - log2(b ? (double)b : .5));
}

/* How far a row is from a product; INFINITY: it says nothing about it. */
static double row_distance(const struct row *r, const struct cpu_gemm *g)
{
	const char *why;

	/* T0_HOST_SIMD may ask for less than the processor has. */
	if (!cpu_gemm_may(r->config.level) ||
	    r->problem.b_type != g->b_type || r->problem.a_as != g->a_as ||
	    r->problem.b_by_n != g->b_by_n ||
	    !cpu_gemm_legal(g, &r->config, &why))
		return INFINITY;
	return log_ratio(r->problem.m, g->m) + log_ratio(r->problem.n, g->n) +
	       log_ratio(r->problem.k, g->k);
}

enum cpu_choice cpu_select(const struct cpu_table *t, const struct cpu_gemm *g,
			   struct cpu_gemm_config *c)
{
	const struct row *best = NULL;
	double least = INFINITY;

	for (size_t i = 0; t && i < t->n; i++) {
		double far = row_distance(&t->v[i], g);
		if (far < least) {
			least = far;
			best = &t->v[i];
		}
	}
	if (!best || least > NEAREST) {
		cpu_gemm_default(g, c);
		return CPU_DEFAULT;
	}
	*c = best->config;
	return least == 0 ? CPU_EXACT : CPU_NEAREST;
}
