/*
 * engine/cmd/serve/cmd_load.c - t0-qwen3 load: throughput and latency of a
 * server, ours or another of OpenAI's interface, against the rate at which
 * requests come.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include <xxhash.h>

#include "base/vec.h"
#include "engine/cmd/serve/cmd_load.h"
#include "results/stats/stats.h"

struct load {
	struct qwen_cmd *c;
	struct load_plan plan;
	struct buf prompt;
	double *rate; /* [n_rates]; of a trace one, NAN */
	size_t n_rates;
	struct load_run *run; /* [n_rates][samples] */
	struct load_sum *sum; /* [samples] of the rate that is measured */
	struct load_client *client;
	struct load_store *store;
	struct qwen_tokenizer *tok; /* NULL: texts are not judged */
	struct table out, log;
	uint64_t failed;
};

/* ---- what is asked for ---- */

static bool rates_read(struct load *l, struct err *e)
{
	struct {
		double *v;
		size_t n, cap;
	} all = { 0 };

	if (l->c->trace)
		vec_push(&all, (double)NAN);
	for (const char *at = l->c->request_rate; !l->c->trace && *at;) {
		char *end;
		double v = strtod(at, &end);
		if (end == at || (*end && *end != ',') ||
		    !(v > 0 && v <= 1e6)) {
			vec_fini(&all);
			return err_set(e, ERR_USAGE,
				       "--request-rate, at "
				       "\"%.20s\": wanted rates up to 1e6 with "
				       "commas between",
				       at);
		}
		vec_push(&all, v);
		at = end + (*end == ',');
	}
	l->rate = all.v;
	l->n_rates = all.n;
	return all.n || err_set(e, ERR_USAGE, "--request-rate names none");
}

static bool options_check(const struct qwen_cmd *c, struct err *e)
{
	const struct qwen_option all[] = {
		{ "requests", c->requests, 1, 1 << 20 },
		{ "samples", c->samples, 1, 1000 },
		{ "tokens", c->tokens, 1, INT32_MAX },
		{ "words", c->words, 1, 1 << 20 },
		{ "timeout", c->timeout, 1, 1000000 },
	};

	if (!qwen_options_check(all, ARRAY_SIZE(all), e))
		return false;
	if (!(c->within_first > 0) || !(c->within_token > 0))
		return err_set(e, ERR_USAGE,
			       "--within-first %g --within-token "
			       "%g; wanted seconds above 0",
			       c->within_first, c->within_token);
	if (strncmp(c->url, "http://", 7) && strncmp(c->url, "https://", 8))
		return err_set(e, ERR_USAGE,
			       "--url %s; wanted http://HOST or "
			       "https://HOST",
			       c->url);
	return !c->prompt || !c->prompt_file ||
	       err_set(e, ERR_USAGE, "--prompt and --prompt-file; wanted one");
}

static bool prompt_read(struct load *l, struct err *e)
{
	const struct qwen_cmd *c = l->c;
	const char *bad = NULL;

	if (c->prompt)
		buf_adds(&l->prompt, c->prompt);
	else if (c->prompt_file && !file_read(c->prompt_file, 0, &l->prompt, e))
		return false;
	if (!c->prompt && !c->prompt_file)
		return true;
	buf_adds(&l->prompt, "");
	for (size_t i = 0; i < l->prompt.len && !bad;) {
		utf8proc_int32_t code;
		utf8proc_ssize_t n = utf8proc_iterate(
			(const utf8proc_uint8_t *)l->prompt.data + i,
			(utf8proc_ssize_t)(l->prompt.len - i), &code);
		if (n <= 0 || !code)
			bad = l->prompt.data + i;
		i += (size_t)(n > 0 ? n : 1);
	}
	l->plan.text = l->prompt.data;
	return !bad || err_set(e, ERR_INPUT,
			       "the prompt is no UTF-8 text, at "
			       "byte %zu",
			       (size_t)(bad - l->prompt.data));
}

/*
 * All runs, before any of them: their prompts are part of what is compared.
 * Samples have the same times, as chance is not what is measured, and prompts
 * of their own, as servers remember them.
 */
static bool plan_all(struct load *l, struct err *e)
{
	const size_t samples = l->c->samples;
	bool ok = true;

	l->plan.words = l->c->words;
	l->plan.tokens = (uint32_t)l->c->tokens;
	l->plan.requests = l->c->requests;
	l->plan.seed = l->c->seed;
	l->run = xcalloc(l->n_rates * samples, sizeof(*l->run));
	l->sum = xcalloc(samples, sizeof(*l->sum));
	for (size_t i = 0; ok && i < l->n_rates * samples; i++) {
		uint64_t state = l->c->seed + i % samples;
		l->plan.words_seed = random_next(&state);
		if (l->c->trace)
			ok = load_plan_trace(&l->run[i], &l->plan, l->c->trace,
					     e);
		else
			load_plan_chance(&l->run[i], &l->plan,
					 l->rate[i / samples]);
	}
	return ok;
}

static uint64_t prompts_hash(const struct load *l)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < l->n_rates * l->c->samples; i++)
		for (size_t k = 0; k < l->run[i].n; k++) {
			const struct load_request *r = &l->run[i].v[k];
			hash = XXH3_64bits_withSeed(r->prompt,
						    strlen(r->prompt), hash);
		}
	return hash;
}

/* ---- what came of it ---- */

static void log_run(struct load *l, double rate, size_t sample,
		    const struct load_run *r)
{
	for (size_t i = 0; l->c->log && i < r->n; i++) {
		const struct load_request *q = &r->v[i];
		struct buf gaps = { 0 };
		table_row(&l->log);
		if (!isnan(rate))
			table_cell(&l->log, 0, "%g", rate);
		table_cell(&l->log, 1, "%zu", sample);
		table_cell(&l->log, 2, "%.9f", q->at);
		table_cell(&l->log, 3, "%.9f", q->sent);
		if (!isnan(q->first))
			table_cell(&l->log, 4, "%.9f", q->first);
		table_cell(&l->log, 5, "%.9f", q->last);
		table_cell(&l->log, 6, "%u", q->got);
		table_cell(&l->log, 7, "%s", load_end_name(q->end));
		for (size_t k = 0; k < q->gaps.n; k++)
			buf_printf(&gaps, "%s%.9f", k ? " " : "", q->gaps.v[k]);
		table_cell(&l->log, 8, "%s", gaps.data ? gaps.data : "");
		table_cell(&l->log, 9, "%s", q->why);
		buf_fini(&gaps);
	}
}

/* Looks at a text that is long enough. */
static void judge_text(const struct load *l, struct qwen_encoder *x,
		       const struct buf *text, struct load_case *k)
{
	struct qwen_ids ids = { 0 };
	struct qwen_coherence judged = { 0 };
	struct qwen_limits limits;
	struct err ignored = { 0 };
	bool read = qwen_encode(x, text->data, text->len, 0, &ids, &ignored);

	qwen_limits_init(&limits);
	if (read && ids.n >= QWEN_LEAST_JUDGED) {
		const struct qwen_stream s = { .id = ids.v, .n = ids.n };
		qwen_coherence_check(&judged, &s, l->tok, &limits);
		k->judged++;
		k->broken += !judged.passed;
	}
	qwen_ids_fini(&ids);
}

static void judge_texts(const struct load *l, const struct load_run *runs,
			struct load_case *k)
{
	struct qwen_encoder *x = l->tok ? qwen_encoder_new(l->tok) : NULL;

	for (size_t i = 0; x && i < l->c->samples; i++)
		for (size_t r = 0; r < runs[i].n; r++)
			if (runs[i].v[r].end == LOAD_ANSWERED)
				judge_text(l, x, &runs[i].v[r].text, k);
	qwen_encoder_free(x);
}

/* The median of the samples, or nothing. */
static void put_median(struct load *l, size_t column, enum load_metric metric)
{
	double *v = xcalloc(l->c->samples, sizeof(*v));
	bool all = true;

	for (size_t i = 0; i < l->c->samples; i++) {
		v[i] = l->sum[i].v[metric];
		all = all && isfinite(v[i]);
	}
	if (all)
		table_cell(&l->out, column, "%.5g",
			   res_median(v, l->c->samples).value);
	free(v);
}

static void put_row(struct load *l, double rate, const struct load_run *runs)
{
	static const enum load_metric shown[] = {
		LOAD_THROUGHPUT, LOAD_ANSWERS,	LOAD_GOODPUT,  LOAD_FIRST_50,
		LOAD_FIRST_90,	 LOAD_FIRST_99, LOAD_TOKEN_50, LOAD_TOKEN_90,
		LOAD_TOKEN_99,	 LOAD_LATE_99,
	};
	struct buf errors = { 0 };

	table_row(&l->out);
	if (!isnan(rate))
		table_cell(&l->out, 0, "%g", rate);
	table_cell(&l->out, 1, "%llu",
		   (unsigned long long)(runs[0].n * l->c->samples));
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		put_median(l, 2 + i, shown[i]);
	for (int end = LOAD_ANSWERED + 1; end < LOAD_ENDS; end++) {
		uint32_t n = 0;
		for (size_t i = 0; i < l->c->samples; i++)
			n += l->sum[i].ends[end];
		if (n)
			buf_printf(&errors, "%s%s %u", errors.len ? ", " : "",
				   load_end_name((enum load_end)end), n);
		l->failed += n;
	}
	table_cell(&l->out, 12, "%s", errors.len ? errors.data : "none");
	buf_fini(&errors);
}

/* The first error of a run tells most. */
static void remark_error(const struct load *l, const struct load_run *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].end != LOAD_ANSWERED) {
			cmd_remark(&l->c->cmd, "request %zu: %s: %s", i + 1,
				   load_end_name(r->v[i].end), r->v[i].why);
			return;
		}
}

static bool measure_rate(struct load *l, size_t rate, struct progress *bar,
			 struct err *e)
{
	const size_t samples = l->c->samples;
	struct load_run *runs = l->run + rate * samples;
	struct load_case k = { .rate = l->rate[rate],
			       .requests = runs[0].n,
			       .sum = l->sum,
			       .n = samples };

	for (size_t i = 0; i < samples; i++) {
		if (!load_client_run(l->client, &runs[i], e))
			return false;
		load_sum_up(&l->sum[i], &runs[i], l->c->within_first,
			    l->c->within_token);
		log_run(l, l->rate[rate], i, &runs[i]);
		progress_step(bar, 1);
	}
	for (size_t i = 0; i < samples; i++)
		remark_error(l, &runs[i]);
	judge_texts(l, runs, &k);
	put_row(l, l->rate[rate], runs);
	return load_store_case(l->store, &k, e);
}

static bool write_log(const struct load *l, struct err *e)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f;
	bool ok;

	if (!l->c->log)
		return true;
	f = open_memstream(&text, &n);
	if (!f)
		mem_ran_out(n, "the log");
	ok = table_print(&l->log, TABLE_CSV, f, e);
	if (fclose(f))
		mem_ran_out(n, "the log");
	ok = ok && file_write_atomic(l->c->log, text, n, e);
	free(text);
	return ok;
}

static bool measure_all(struct load *l, struct err *e)
{
	struct progress bar;
	bool ok = true;

	l->store = load_store_open(l->c, load_client_model(l->client),
				   prompts_hash(l), e);
	if (!l->store)
		return false;
	progress_init(&bar, "samples", l->n_rates * l->c->samples,
		      l->c->cmd.quiet);
	for (size_t i = 0; ok && i < l->n_rates; i++)
		ok = measure_rate(l, i, &bar, e);
	progress_fini(&bar);
	return load_store_close(l->store, ok, e);
}

bool qwen_cmd_load(struct cmd *r, struct err *e)
{
	struct load l = { .c = (struct qwen_cmd *)r };
	const struct qwen_cmd *c = l.c;
	struct err why = { 0 };
	bool ok;

	table_init(&l.out, "#rate,#requests,#tokens_per_s,#answers_per_s,"
			   "#goodput,#first_p50_s,#first_p90_s,#first_p99_s,"
			   "#token_p50_s,#token_p90_s,#token_p99_s,#late_p99_s,"
			   "errors");
	table_init(&l.log, "#rate,#sample,#due,#sent,#first,#last,#tokens,end,"
			   "gaps,why");
	ok = options_check(c, e) &&
	     (!c->log || file_check_writable(c->log, e)) && rates_read(&l, e) && prompt_read(&l, e) &&
	     plan_all(&l, e);
	if (ok && c->tokenizer)
		ok = (l.tok = qwen_tokenizer_load(c->tokenizer, e));
	ok = ok && (l.client = load_client_new(c, e)) && measure_all(&l, e);
	/* After a signal, too: what was answered before. */
	if ((ok || e->code == ERR_STOPPED) && l.out.n_rows + l.log.n_rows > 0 &&
	    !(write_log(&l, &why) && cmd_table(r, &l.out, &why))) {
		*e = why;
		ok = false;
	}
	if (ok && l.failed)
		r->status = EXIT_NO;
	for (size_t i = 0; l.run && i < l.n_rates * c->samples; i++)
		load_run_free(&l.run[i]);
	load_client_free(l.client);
	qwen_tokenizer_free(l.tok);
	table_fini(&l.out);
	table_fini(&l.log);
	buf_fini(&l.prompt);
	free(l.rate);
	free(l.run);
	free(l.sum);
	return ok;
}
