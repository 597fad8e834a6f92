/*
 * engine/cmd/serve/cmd_load_store.c - rows of t0-qwen3 load.
 *
 * A sample of a metric is a whole run of requests.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/serve/cmd_load.h"
#include "results/db/results.h"
#include "results/stats/stats.h"

struct load_store {
	const struct qwen_cmd *c;
	const char *model;
	struct res_db *db;
	int64_t run;
};

/* The host of an address: ports differ from start to start. */
static void host_of(const char *url, char out[static 256])
{
	const char *at = strstr(url, "://");

	at = at ? at + 3 : url;
	snprintf(out, 256, "%.*s", (int)strcspn(at, ":/"), at);
}

struct load_store *load_store_open(const struct qwen_cmd *c, const char *model,
				   uint64_t prompts, struct err *e)
{
	struct load_store *s = xcalloc(1, sizeof(*s));
	struct res_start start = { .tool = "t0-qwen3 load",
				   .argc = c->cmd.line_argc,
				   .argv = c->cmd.line_argv,
				   .seed = c->seed };
	char inputs[1024], host[256], limits[64];

	host_of(c->url, host);
	snprintf(limits, sizeof(limits), "%g %g", c->within_first,
		 c->within_token);
	res_params(inputs, sizeof(inputs),
		   "host:s prompts:X tokens:U chat:b within:s", host, prompts,
		   c->tokens, c->chat, limits);
	start.inputs = inputs;
	s->c = c;
	s->model = model;
	s->db = res_open(c->db, RES_WRITE, e);
	if (s->db && res_host_self(s->db, &start.host, e) &&
	    res_build_self(s->db, &start.build, e) &&
	    res_run_begin(s->db, &start, &s->run, e))
		return s;
	res_close(s->db);
	free(s);
	return NULL;
}

bool load_store_close(struct load_store *s, bool ok, struct err *e)
{
	const int stop = *s->c->cmd.stop;
	const int code = ok ? 0 : stop ? cmd_stop_status(stop) : EXIT_TROUBLE;
	struct err late = { 0 };
	bool done = res_run_finish(s->db, s->run,
				   ok	? RES_COMPLETE :
				   stop ? RES_INTERRUPTED :
					  RES_FAILED,
				   code, ok ? NULL : e->msg, &late);

	res_close(s->db);
	free(s);
	if (ok && !done)
		*e = late;
	return ok && done;
}

static const struct {
	const char *name, *unit;
	enum res_better better;
} metrics[LOAD_METRICS] = {
	[LOAD_THROUGHPUT] = { "throughput", "token/s", RES_HIGHER },
	[LOAD_ANSWERS] = { "answers", "1/s", RES_HIGHER },
	[LOAD_GOODPUT] = { "goodput", "1/s", RES_HIGHER },
	[LOAD_FIRST_50] = { "first_token", "s", RES_LOWER },
	[LOAD_FIRST_90] = { "first_token_p90", "s", RES_LOWER },
	[LOAD_FIRST_99] = { "first_token_p99", "s", RES_LOWER },
	[LOAD_TOKEN_50] = { "inter_token", "s", RES_LOWER },
	[LOAD_TOKEN_90] = { "inter_token_p90", "s", RES_LOWER },
	[LOAD_TOKEN_99] = { "inter_token_p99", "s", RES_LOWER },
	[LOAD_ANSWER_50] = { "answer", "s", RES_LOWER },
	[LOAD_ANSWER_99] = { "answer_p99", "s", RES_LOWER },
	[LOAD_LATE_99] = { "late_p99", "s", RES_NEITHER },
};

/* Its median, where every run has it. */
static bool store_metric(struct load_store *s, int64_t id,
			 const struct load_case *k, int metric, struct err *e)
{
	double *v = xcalloc(k->n, sizeof(*v));
	bool all = true, ok;

	for (size_t i = 0; i < k->n; i++) {
		v[i] = k->sum[i].v[metric];
		all = all && isfinite(v[i]);
	}
	const struct res_interval m = all ? res_median(v, k->n) :
					    (struct res_interval){ 0 };
	const struct res_result r = {
		.run = s->run,
		.case_id = id,
		.metric = metrics[metric].name,
		.unit = metrics[metric].unit,
		.value = m.value,
		.lo = m.lo,
		.hi = m.hi,
		.n = (int64_t)k->n,
		.clock_hz = NAN,
		.better = metrics[metric].better,
		.origin = RES_HARDWARE,
		.samples = v,
		.n_samples = k->n,
	};
	ok = !all || res_result_add(s->db, &r, NULL, e);
	free(v);
	return ok;
}

static bool store_ends(struct load_store *s, int64_t id,
		       const struct load_case *k, struct err *e)
{
	bool ok = true;

	for (int end = LOAD_ANSWERED + 1; ok && end < LOAD_ENDS; end++) {
		char name[64];
		double n = 0;
		for (size_t i = 0; i < k->n; i++)
			n += k->sum[i].ends[end];
		snprintf(name, sizeof(name), "errors_%s",
			 load_end_name((enum load_end)end));
		const struct res_result r = {
			.run = s->run,
			.case_id = id,
			.metric = name,
			.unit = "1",
			.value = n,
			.lo = n,
			.hi = n,
			.n = 1,
			.clock_hz = NAN,
			.better = RES_LOWER,
			.origin = RES_HARDWARE,
		};
		ok = res_result_add(s->db, &r, NULL, e);
	}
	return ok;
}

static bool store_verdicts(struct load_store *s, int64_t id,
			   const struct load_case *k, struct err *e)
{
	uint64_t failed = 0, wrong = 0;
	char text[2][96];

	for (size_t i = 0; i < k->n; i++) {
		failed += k->requests - k->sum[i].ends[LOAD_ANSWERED];
		wrong += k->sum[i].wrong;
	}
	snprintf(text[0], sizeof(text[0]),
		 "%llu requests without an answer, "
		 "%llu with another number of tokens",
		 (unsigned long long)failed, (unsigned long long)wrong);
	if (k->judged)
		snprintf(text[1], sizeof(text[1]), "%u of %u texts are broken",
			 k->broken, k->judged);
	else
		snprintf(text[1], sizeof(text[1]),
			 s->c->tokenizer ?
				 "no text has the %d tokens of a judgement" :
				 "no --tokenizer to judge %d tokens with",
			 QWEN_LEAST_JUDGED);
	const struct res_verdict v[] = {
		{ .run = s->run,
		  .case_id = id,
		  .kind = RES_CORRECTNESS,
		  .answer = failed || wrong ? RES_FAIL : RES_PASS,
		  .reason = text[0] },
		{ .run = s->run,
		  .case_id = id,
		  .kind = RES_COHERENCE,
		  .answer = !k->judged ? RES_NODATA :
			    k->broken  ? RES_FAIL :
					 RES_PASS,
		  .reason = text[1] },
	};
	return res_verdict_add(s->db, &v[0], e) &&
	       res_verdict_add(s->db, &v[1], e);
}

bool load_store_case(struct load_store *s, const struct load_case *k,
		     struct err *e)
{
	char params[160], rate[32];
	int64_t id;
	bool ok;

	snprintf(rate, sizeof(rate), "%g", k->rate);
	res_params(params, sizeof(params), "?rate:s ?trace:s requests:U",
		   isnan(k->rate) ? NULL : rate,
		   isnan(k->rate) ? qwen_cmd_name(s->c->trace) : NULL,
		   k->requests);
	ok = res_case_id(s->db, "load", s->model, params, &id, e);
	for (int i = 0; ok && i < LOAD_METRICS; i++)
		ok = store_metric(s, id, k, i, e);
	return ok && store_ends(s, id, k, e) && store_verdicts(s, id, k, e);
}
