/*
 * engine/cmd/cmd_quantize.c - t0-qwen3 quantize: a smaller copy of a model.
 *
 * And what it costs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/cmd_quantize.h"
#include "results/stats/stats.h"

/*
 * Tokens that are compared where no text is given; of speed, what is decoded
 * first, how often it is measured, and how deep.
 */
enum { COMPARED = 129, WARM = 4, SAMPLES = 6, POSITIONS = 512 };
enum { FORMAT_NAME = 32 };
/* A rate of less time than this says more of the clock than of the model. */
static const uint64_t least_timed_ns = 50000000;

static bool write_quantized(const struct qwen_cmd *c, enum qwen_weights to,
			    const char *out, struct err *e)
{
	struct qwen_cmd as = *c;
	struct qwen_session s;

	as.weights = c->calibrate ? NULL : qwen_weights_name(to);
	if (!qwen_session_open(&s, &as,
			       c->calibrate ? QWEN_WORDS : QWEN_WORDS_NO, e))
		return false;
	bool ok = (!c->calibrate ||
		   qwen_calibrate_session(c, &s, to, c->bits, true, e)) &&
		  qwen_quantized_write(&s.model, c->model, out, e);
	qwen_session_close(&s);
	return ok;
}

bool qwen_quality_text(const struct qwen_cmd *c, const struct qwen_session *s,
		       struct qwen_ids *ids, struct err *e)
{
	uint64_t seed = c->seed;

	if (c->ids || c->prompt || c->prompt_file || c->messages) {
		if (!qwen_cmd_prompt(c, s, ids, e))
			return false;
	} else {
		const uint32_t most = s->model.config.max_positions;

		for (uint32_t i = 0; i < COMPARED && i < most; i++)
			qwen_ids_add(ids, (uint32_t)(random_next(&seed) %
						     s->model.config.vocab));
	}
	if (ids->n < 2)
		return err_set(e, ERR_USAGE, "a text of one token predicts "
			       "nothing; wanted at least 2");
	return c->context >= 2 ||
	       err_set(e, ERR_USAGE, "--context %llu predicts nothing; wanted "
		       "at least 2", (unsigned long long)c->context);
}

bool qwen_quality_of(const struct qwen_cmd *c, const struct qwen_model *a,
		     const struct qwen_model *b, const struct qwen_ids *ids,
		     struct qwen_quality *q, struct err *e)
{
	struct qwen_sample_text text = { ids->v, ids->n,
					 a->config.max_positions };

	if (text.window > c->context)
		text.window = (uint32_t)c->context;
	if (text.window > ids->n)
		text.window = (uint32_t)ids->n;
	return qwen_quality(a, b, &text, c->stop, q, e);
}

/* ---- speed ---- */

struct decoding {
	struct qwen_state *st;
	uint32_t last; /* token */
	double rate[SAMPLES];
};

static bool decode_one(struct decoding *d, struct err *e)
{
	struct qwen_token t = { .id = d->last, .best = true };
	const bool ok = qwen_forward(d->st, &t, 1, e);

	d->last = ok ? qwen_argmax(d->st, 0) : 0;
	return ok;
}

/* Greedy tokens, at the start again where the cache is full. */
static bool decode_sample(struct decoding *d, uint32_t positions, double *rate,
			  struct err *e)
{
	const uint64_t from = time_mono_ns();
	uint64_t took = 0;
	bool ok = true;
	int n = 0;

	qwen_state_truncate(d->st, 0, 0);
	for (; ok && took < least_timed_ns; n++) {
		if (qwen_state_length(d->st, 0) == positions)
			qwen_state_truncate(d->st, 0, 0);
		ok = decode_one(d, e);
		took = time_mono_ns() - from;
	}
	*rate = n / ((double)took * 1e-9);
	return ok;
}

/* Both models by turns, so that what the machine does meanwhile is in both. */
static bool decode_rates(const struct qwen_cmd *c,
			 const struct qwen_session *const s[2],
			 struct res_interval rate[2], struct err *e)
{
	const uint32_t most = s[0]->model.config.max_positions,
		       positions = most < POSITIONS ? most : POSITIONS;
	struct decoding d[2] = { { .st = NULL }, { .st = NULL } };
	bool ok = true;

	for (int k = 0; ok && k < 2; k++) {
		qwen_settling_wait(s[k]->model.settling);
		ok = qwen_cmd_state(c, s[k], 1, positions, &d[k].st, e);
		for (uint32_t i = 0; ok && i < WARM && i < positions; i++)
			ok = decode_one(&d[k], e);
	}
	for (int i = 0; ok && i < 2 * SAMPLES; i++)
		ok = decode_sample(&d[i % 2], positions, &d[i % 2].rate[i / 2],
				   e);
	for (int k = 0; k < 2; k++) {
		rate[k] = res_median(d[k].rate, SAMPLES);
		qwen_state_free(d[k].st);
	}
	return ok;
}

/* ---- the table ---- */

static void add_line(struct table *t, const char *format,
		     const struct qwen_model *m,
		     const struct res_interval *rate, double perplexity,
		     const struct qwen_quality *q)
{
	table_row(t);
	table_cell(t, 0, "%s", format);
	table_cell(t, 1, "%llu", (unsigned long long)m->token_bytes);
	table_cell(t, 2, "B");
	table_cell(t, 3, "%.4g", rate->value);
	table_cell(t, 4, "%.6g", perplexity);
	table_cell(t, 9, "%.4g", rate->lo);
	table_cell(t, 10, "%.4g", rate->hi);
	table_cell(t, 11, "%llu", (unsigned long long)m->tensors.total_bytes);
	if (!q)
		return;
	table_cell(t, 5, "%.6g", q->kl);
	table_cell(t, 6, "%.6g", q->kl_worst);
	table_cell(t, 7, "%.4f", q->same_best);
	table_cell(t, 8, "%u", q->tokens);
	table_cell(t, 12, "%.6g", q->kl - q->kl_off);
	table_cell(t, 13, "%.6g", q->kl + q->kl_off);
}

/* ---- rows, where --db names a database ---- */

static bool divergence_store(struct res_record *r, const struct qwen_quality *q,
			     struct err *e)
{
	const struct res_result x = {
		.run = r->run, .case_id = r->case_id, .metric = "mean_kl",
		.unit = "1", .value = q->kl, .lo = q->kl - q->kl_off,
		.hi = q->kl + q->kl_off, .n = q->tokens, .clock_hz = NAN,
		.better = RES_LOWER, .origin = r->origin,
	};

	return res_result_add(r->db, &x, NULL, e);
}

bool qwen_quality_store(struct res_record *r, const char *name,
			const char *format, uint64_t token_bytes,
			const struct qwen_quality *q, struct err *e)
{
	char params[64];

	res_params(params, sizeof(params), "weights:s", format);
	return res_record_case(r, "quantize", name, params, e) &&
	       res_record_exact(r, "bytes_per_token", "B", (double)token_bytes,
				RES_LOWER, e) &&
	       res_record_exact(r, "perplexity", "1", q->perplexity_b,
				RES_LOWER, e) &&
	       divergence_store(r, q, e) &&
	       res_record_exact(r, "worst_kl", "1", q->kl_worst, RES_LOWER,
				e) &&
	       res_record_exact(r, "same_best", "1", q->same_best, RES_HIGHER,
				e);
}

/* What a row calls a model: its type, that and "_fit", or "mix_" and bits. */
static const char *format_of(const struct qwen_cmd *c,
			     const struct qwen_model *m, bool made, char *room)
{
	const char *type = qwen_weights_name(m->layer[0].q.type);

	if (made && c->bits > 0)
		snprintf(room, FORMAT_NAME, "mix_%g", c->bits);
	else
		snprintf(room, FORMAT_NAME, "%s%s", type,
			 made && c->calibrate ? "_fit" : "");
	return room;
}

/* What it is compared with loses nothing. */
static bool store_models(const struct qwen_cmd *c, const struct qwen_model *a,
			 const struct qwen_model *b, const struct qwen_ids *ids,
			 const struct qwen_quality *q, struct err *e)
{
	const char *name = qwen_cmd_name(c->model);
	const struct qwen_quality itself = { .tokens = q->tokens,
					     .same_best = 1,
					     .perplexity_b = q->perplexity_a };
	char inputs[QWEN_INPUTS], text[RES_IDENTITY], room[2][FORMAT_NAME];
	struct res_record r = { 0 };

	if (!c->db)
		return true;
	res_identity(ids->v, ids->n * sizeof(*ids->v), text);
	res_params(inputs, sizeof(inputs), "model:s to:s text:s", name,
		   format_of(c, b, true, room[1]), text);
	const struct res_start run = { .tool = "t0-qwen3 quantize",
				       .inputs = inputs,
				       .argc = c->cmd.line_argc,
				       .argv = c->cmd.line_argv };
	bool ok = res_record_begin(&r, c->db, &run, e) &&
		  qwen_quality_store(&r, name, format_of(c, a, false, room[0]),
				     a->token_bytes, &itself, e) &&
		  qwen_quality_store(&r, name, room[1], b->token_bytes, q, e);
	return res_record_end(&r, ok, e);
}

static bool compare_models(const struct qwen_cmd *c, const char *out,
			   struct err *e)
{
	struct qwen_cmd of_out = *c;
	struct qwen_session a, b = { 0 };
	struct qwen_ids ids = { 0 };
	struct qwen_quality q;
	struct res_interval rate[2];
	char room[FORMAT_NAME];
	struct table t;

	of_out.model = out;
	if (!qwen_session_open(&a, c, QWEN_WORDS_IF_THERE, e))
		return false;
	table_init(&t, "weights,~bytes_per_token,unit,#decode_tokens_per_s,"
		       "#perplexity,#mean_kl,#worst_kl,#same_best,#tokens,"
		       "#decode_lo,#decode_hi,~bytes,#kl_lo,#kl_hi");
	bool ok = qwen_session_open(&b, &of_out, QWEN_WORDS_NO, e) &&
		  qwen_quality_text(c, &a, &ids, e) &&
		  decode_rates(c, (const struct qwen_session *[]){ &a, &b },
			       rate, e) &&
		  qwen_quality_of(c, &a.model, &b.model, &ids, &q, e);
	if (ok) {
		add_line(&t, format_of(c, &a.model, false, room), &a.model,
			 &rate[0], q.perplexity_a, NULL);
		add_line(&t, format_of(c, &b.model, true, room), &b.model,
			 &rate[1], q.perplexity_b, &q);
		ok = store_models(c, &a.model, &b.model, &ids, &q, e) &&
		     cmd_table(&c->cmd, &t, e);
	}
	table_fini(&t);
	qwen_ids_fini(&ids);
	if (b.loaded)
		qwen_session_close(&b);
	qwen_session_close(&a);
	return ok;
}

static bool mixed_check(const struct qwen_cmd *c, struct err *e)
{
	if (c->to)
		return err_set(e, ERR_USAGE, "--bits with --to %s: types are "
			       "chosen of each matrix", c->to);
	return c->calibrate ||
	       err_set(e, ERR_USAGE, "--bits without --calibrate: wanted a "
		       "text to choose types by");
}

/* A folder has our own types, a file those of GGUF. */
static bool is_file(const char *to)
{
	const size_t n = strlen(to);

	return n > 5 && strcmp(to + n - 5, ".gguf") == 0;
}

bool qwen_cmd_quantize(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	enum qwen_weights to = QWEN_W_INT8;

	if (c->frontier)
		return qwen_frontier(c, e);
	if (r->argc != 2)
		return err_set(e, ERR_USAGE,
			       "quantize: %d arguments; wanted "
			       "FROM INTO",
			       r->argc);
	c->model = r->argv[0];
	if (c->bits > 0)
		return mixed_check(c, e) &&
		       (is_file(r->argv[1]) ?
				qwen_fitted_write(c, to, c->bits, r->argv[1],
						  e) :
				write_quantized(c, to, r->argv[1], e)) &&
		       compare_models(c, r->argv[1], e);
	if (!c->to)
		return err_set(e, ERR_USAGE,
			       "quantize: no --to; wanted --to "
			       "int8, int4, int6_N or int3_N, --bits, or "
			       "--frontier");
	if (!qwen_weights_parse(c->to, &to, e))
		return false;
	if (to != QWEN_W_INT8 && to != QWEN_W_INT4 && !qwen_is_own(to))
		return err_set(e, ERR_USAGE, "--to %s: wanted int8 or int4, or "
			       "int6_N or int3_N for N of 32, 64, 128 or 256",
			       c->to);
	return write_quantized(c, to, r->argv[1], e) &&
	       compare_models(c, r->argv[1], e);
}
