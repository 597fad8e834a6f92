/*
 * tests/bench/rows.c - what a benchmark prints, as rows of the database.
 */
#include "tests/bench/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/stats/stats.h"

unsigned bench_rounds(unsigned n)
{
	const char *text = getenv("T0_BENCH_ROUNDS");
	int wanted = text ? atoi(text) : 0;

	return wanted > 0 && (unsigned)wanted < n ? (unsigned)wanted : n;
}

/* ---------------------------------------------------------------- run ---- */

static const char *words_of(struct buf *b, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		buf_printf(b, "%s%s", i > 1 ? " " : "", argv[i]);
	return b->len ? b->data : NULL;
}

static bool begin_run(struct bench_rows *r, int argc, char **argv)
{
	struct buf words = { 0 };
	char tool[64], inputs[1024];
	struct res_start s = { .tool = tool, .argc = argc, .argv = argv,
			       .inputs = inputs };

	snprintf(tool, sizeof(tool), "bench-%s", r->program);
	res_params(inputs, sizeof(inputs), "?args:s ?rounds:s ?simd:s ?mapped:s",
		   words_of(&words, argc, argv), getenv("T0_BENCH_ROUNDS"),
		   getenv("T0_HOST_SIMD"), getenv("T0_BENCH_MAPPED"));
	buf_fini(&words);
	return res_host_self(r->db, &s.host, &r->e) &&
	       res_build_self(r->db, &s.build, &r->e) &&
	       res_run_begin(r->db, &s, &r->run, &r->e);
}

void bench_open(struct bench_rows *r, const char *program, int argc,
		char **argv)
{
	const char *path = getenv("T0_DB");

	*r = (struct bench_rows){ .program = program };
	if (!path || !*path)
		return;
	r->db = res_open(path, RES_WRITE, &r->e);
	if (r->db)
		begin_run(r, argc, argv);
}

int bench_close(struct bench_rows *r, bool good, struct err *e)
{
	char tool[64];

	if (good)
		good = stdout_check(e);
	if (good && r->e.code) {
		*e = r->e;
		good = false;
	}
	if (r->run)
		good = res_run_finish(r->db, r->run,
				      good ? RES_COMPLETE : RES_FAILED,
				      good ? 0 : err_exit_code(e),
				      good ? NULL : e->msg, good ? e : NULL) &&
		       good;
	res_close(r->db);
	snprintf(tool, sizeof(tool), "bench-%s", r->program);
	return good ? EXIT_YES : err_report(tool, e);
}

/* --------------------------------------------------------------- rows ---- */

void bench_case(struct bench_rows *r, const char *name, const char *params)
{
	if (snprintf(r->name, sizeof(r->name), "%s/%s", r->program, name) >=
	    (int)sizeof(r->name))
		BUG("'%s': a long name", name);
	snprintf(r->params, sizeof(r->params), "%s", params ? params : "{}");
}

static bool can_store(const struct bench_rows *r)
{
	return r->run && !r->e.code;
}

/* Of the case with these parameters. */
static void store_samples(struct bench_rows *r, const char *params,
		  const struct res_result *x)
{
	struct res_result row = *x;

	if (!can_store(r))
		return;
	row.run = r->run;
	row.clock_hz = NAN;
	row.origin = r->origin;
	if (res_case_id(r->db, "bench", r->name, params, &row.case_id, &r->e))
		res_result_add(r->db, &row, NULL, &r->e);
}

/* The median of v, in its own unit, stored as so many of `unit`. */
static double store_median(struct bench_rows *r, const char *params,
			   struct res_result x, const double *v, size_t n,
			   double scale)
{
	const struct res_interval m = res_median(v, n);
	const bool exact = r->origin == RES_SIMULATED;
	double *samples = xmalloc(n * sizeof(*samples));

	for (size_t i = 0; i < n; i++)
		samples[i] = v[i] * scale;
	x.value = m.value * scale;
	x.lo = exact ? x.value : m.lo * scale;
	x.hi = exact ? x.value : m.hi * scale;
	x.n = (int64_t)n;
	x.samples = n > 1 ? samples : NULL;
	x.n_samples = n > 1 ? n : 0;
	store_samples(r, params, &x);
	free(samples);
	return m.value;
}

double bench_time(struct bench_rows *r, const double *v, size_t n,
		  double unit_s)
{
	const struct res_result x = { .metric = "time", .unit = "s",
				      .better = RES_LOWER };

	return store_median(r, r->params, x, v, n, unit_s);
}

double bench_cpu_time(struct bench_rows *r, const double *v, size_t n,
		      double unit_s)
{
	const struct res_result x = { .metric = "cpu_time", .unit = "s",
				      .better = RES_LOWER };

	return store_median(r, r->params, x, v, n, unit_s);
}

double bench_rate(struct bench_rows *r, const char *unit, const double *v,
		  size_t n)
{
	const struct res_result x = { .metric = "rate", .unit = unit,
				      .better = RES_HIGHER };

	return store_median(r, r->params, x, v, n, 1);
}

double bench_rate_one(struct bench_rows *r, const char *unit, double v)
{
	return bench_rate(r, unit, &v, 1);
}

double bench_ratio(struct bench_rows *r, const char *to,
		   enum res_better better, const double *v, size_t n)
{
	const struct res_result x = { .metric = "ratio", .unit = "1",
				      .better = better };
	char yardstick[128], params[sizeof(r->params) + sizeof(yardstick)];
	size_t len = strlen(r->params) - 1; /* without the brace */

	res_params(yardstick, sizeof(yardstick), "to:s", to);
	snprintf(params, sizeof(params), "%.*s%s%s", (int)len, r->params,
		 len > 1 ? "," : "", yardstick + 1);
	return store_median(r, params, x, v, n, 1);
}

double bench_ratio_one(struct bench_rows *r, const char *to,
		       enum res_better better, double v)
{
	return bench_ratio(r, to, better, &v, 1);
}

double bench_cycles(struct bench_rows *r, double cycles)
{
	const struct res_result x = { .metric = "time", .unit = "cycle",
				      .better = RES_LOWER };

	return store_median(r, r->params, x, &cycles, 1, 1);
}

void bench_checked(struct bench_rows *r, bool right, const char *with)
{
	struct res_verdict v = { .run = r->run, .kind = RES_CORRECTNESS,
				 .answer = right ? RES_PASS : RES_FAIL,
				 .reason = with };

	if (can_store(r) && res_case_id(r->db, "bench", r->name, r->params,
					&v.case_id, &r->e))
		res_verdict_add(r->db, &v, &r->e);
}
