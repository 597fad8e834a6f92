/*
 * engine/cmd/cmd_model.c - t0-qwen3 info, make and check.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/cmd.h"

/* ---- info ---- */

static void add_fact(struct table *t, const char *what, const char *fmt, ...)
	T0_PRINTF(3, 4);
static void add_fact(struct table *t, const char *what, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_row(t);
	table_cell(t, 0, "%s", what);
	table_cell(t, 1, "%s", text);
}

struct size_text {
	char text[32];
};

/* Bytes as a reader counts them; programs get them all. */
static struct size_text size_of(const struct qwen_cmd *c, uint64_t bytes)
{
	const bool all = c->cmd.format == TABLE_JSON ||
			 c->cmd.format == TABLE_CSV;
	const char *scaled = "bytes";
	const double by = all ? 1 : unit_scale((double)bytes, "B", &scaled);
	struct size_text out;

	snprintf(out.text, sizeof(out.text), "%.*g %s", all ? 17 : 4,
		 (double)bytes * by, scaled);
	return out;
}

static void add_cache(const struct qwen_cmd *c, const struct qwen_config *m,
		      struct qwen_kinds kinds, struct table *t)
{
	const uint64_t one = qwen_position_bytes(kinds, m);
	const uint64_t n = c->context < m->max_positions ? c->context :
							   m->max_positions;
	char text[QWEN_KINDS_TEXT];

	add_fact(t, "cache", "%s: %s a token, %s for %llu",
		 qwen_kinds_print(kinds, text), size_of(c, one).text,
		 size_of(c, one * n).text, (unsigned long long)n);
}

static void add_facts(const struct qwen_cmd *r, const struct qwen_session *s,
		      struct table *t)
{
	const struct qwen_model *m = &s->model;
	const struct qwen_config *c = &m->config;

	add_fact(t, "layers", "%u", c->layers);
	add_fact(t, "hidden size", "%u", c->hidden);
	add_fact(t, "query heads", "%u of %u", c->heads, c->head_dim);
	add_fact(t, "key-value heads", "%u", c->kv_heads);
	add_fact(t, "feed-forward size", "%u", c->ffn);
	if (c->experts.n)
		add_fact(t, "experts", "%u, of which a token uses %u",
			 c->experts.n, c->experts.used);
	add_fact(t, "vocabulary", "%u", c->vocab);
	add_fact(t, "context", "%u", c->max_positions);
	add_fact(t, "rotary base", "%g", c->rope_theta);
	add_fact(t, "output layer", "%s",
		 c->tied ? "the embedding" : "its own");
	add_fact(t, "parameters", "%llu",
	     (unsigned long long)qwen_config_params(c));
	add_fact(t, "weights", "%s", qwen_weights_name(m->layer[0].q.type));
	add_fact(t, "files", "%zu, %s of tensors", m->tensors.n_maps,
		 size_of(r, m->tensors.total_bytes).text);
	add_fact(t, "read per token", "%s", size_of(r, m->token_bytes).text);
	add_fact(t, "tokenizer", "%s", s->tok ? "there" : "none");
	add_fact(t, "kernels", "%s, %u threads", m->kernels->name,
	     threads_count(s->threads));
}

bool qwen_cmd_info(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct qwen_kinds kinds = qwen_both(QWEN_W_F16);
	struct qwen_session s;
	struct table t;

	c->mapped = true;
	if ((c->cache && !qwen_kinds_parse(c->cache, &kinds, e)) ||
	    !qwen_session_open(&s, c, QWEN_WORDS_IF_THERE, e))
		return false;
	table_init(&t, "fact,value");
	add_facts(c, &s, &t);
	add_cache(c, &s.model.config, kinds, &t);
	bool ok = cmd_table(&c->cmd, &t, e);
	table_fini(&t);
	qwen_session_close(&s);
	return ok;
}

/* ---- make ---- */

bool qwen_cmd_make(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct qwen_synthetic how = { .weights = QWEN_W_BF16, .seed = c->seed,
				 .shards = (uint32_t)c->shards,
				 .tokenizer = c->tokenizer,
				 .stop = c->stop };
	struct progress bar;
	bool ok;

	if (!c->model)
		return err_set(e, ERR_USAGE, "--model names no folder to "
			       "write");
	if (c->shards > 999)
		return err_set(e, ERR_USAGE, "--shards %llu: wanted 1 to 999",
			       (unsigned long long)c->shards);
	if (!qwen_shape_find(c->shape, &how.config, e) ||
	    (c->weights && !qwen_weights_parse(c->weights, &how.weights, e)))
		return false;
	progress_init(&bar, "tensors", 11 * how.config.layers + 2, r->quiet);
	how.progress = &bar;
	ok = qwen_synthetic_write(c->model, &how, e);
	progress_fini(&bar);
	return ok;
}

/* ---- check ---- */

static void check_table(const struct qwen_coherence *r,
			const struct qwen_limits *l, struct table *t)
{
	table_init(t, "check,#value,#limit,verdict,what");
	for (int i = 0; i < QWEN_LIMITS; i++) {
		table_row(t);
		table_cell(t, 0, "%s", qwen_limit_name((enum qwen_limit)i));
		if (!isnan(r->value[i]))
			table_cell(t, 1, "%.4g", r->value[i]);
		table_cell(t, 2, "%.4g", l->v[i]);
		table_cell(t, 3, "%s", r->broken[i] ? "fail" :
			   isnan(r->value[i]) ? "too few tokens" : "pass");
		table_cell(t, 4, "%s", qwen_limit_what((enum qwen_limit)i));
	}
}

/* That it passed says little of a text that is too short for some limits. */
static void say_unjudged(const struct qwen_cmd *c,
			 const struct qwen_coherence *r, size_t tokens)
{
	int n = 0;

	for (int i = 0; i < QWEN_LIMITS; i++)
		n += isnan(r->value[i]) && !r->broken[i];
	if (n)
		cmd_remark(&c->cmd, "%zu tokens are too few for %d of %d "
			   "limits, which judge nothing here", tokens, n,
			   QWEN_LIMITS);
}

static bool stream_load(const struct qwen_cmd *c, const struct qwen_config *m,
			const struct qwen_tokenizer *tok, struct qwen_ids *ids,
			struct err *e)
{
	struct qwen_session s = { .tok = (struct qwen_tokenizer *)tok };

	s.model.config = *m;
	return qwen_cmd_prompt(c, &s, ids, e);
}

/* Exit 1: the text is not coherent; 2: it could not be judged. */
bool qwen_cmd_check(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct qwen_tokenizer *tok = NULL;
	struct qwen_limits limits;
	struct qwen_coherence found = { 0 };
	struct qwen_ids ids = { 0 };
	struct qwen_config m;
	struct table t;

	if (!qwen_coherence_selftest(e))
		return false;
	if (!c->model)
		return err_set(e, ERR_USAGE, "--model names no folder with a "
			       "tokenizer");
	qwen_limits_init(&limits);
	bool ok = qwen_config_load(&m, c->model, e) &&
		  (tok = qwen_tokenizer_load(c->model, e)) != NULL &&
		  (!c->limits || qwen_limits_load(&limits, c->limits, e)) &&
		  stream_load(c, &m, tok, &ids, e);
	if (ok) {
		struct qwen_stream s = { ids.v, ids.n, m.stop, m.n_stops,
					 !c->no_think };
		qwen_coherence_check(&found, &s, tok, &limits);
		check_table(&found, &limits, &t);
		ok = cmd_table(&c->cmd, &t, e);
		table_fini(&t);
		say_unjudged(c, &found, ids.n);
	}
	qwen_ids_fini(&ids);
	qwen_tokenizer_free(tok);
	r->status = found.passed ? EXIT_YES : EXIT_NO;
	return ok;
}
