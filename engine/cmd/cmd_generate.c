/*
 * engine/cmd/cmd_generate.c - t0-qwen3 generate: text, as it comes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/cmd.h"

/* What one generation has come to. */
struct talk {
	struct qwen_cmd *c;
	const struct qwen_session *s;
	struct qwen_state *state;
	struct qwen_sampler sampler;
	struct qwen_detokenizer decoder;
	struct qwen_ids prompt, out;
	struct buf text; /* for --output and --json */
	uint64_t load_ns, begin_ns, first_ns, end_ns;
	const char *ended; /* why */
};

static bool is_stop(const struct qwen_config *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n_stops; i++)
		if (c->stop[i] == id)
			return true;
	return false;
}

/* Text goes out as soon as its characters are whole. */
static void print_token(struct talk *t, uint32_t id, bool end)
{
	size_t from = t->text.len;

	if (!t->s->tok) {
		buf_printf(&t->text, "%s%u", t->out.n > 1 ? "," : "", id);
	} else {
		qwen_detokenize(&t->decoder, t->s->tok, id, &t->text);
		if (end)
			qwen_detokenize_end(&t->decoder, &t->text);
	}
	if (!t->c->cmd.output && t->c->cmd.format == TABLE_TEXT &&
	    t->text.len > from) {
		fwrite(t->text.data + from, 1, t->text.len - from, stdout);
		fflush(stdout);
	}
}

/* One more token from the logits; false ends the text, or on an error. */
static bool sample_next(struct talk *t, const float *logits, uint32_t *id,
		 struct err *e)
{
	const struct qwen_config *m = &t->s->model.config;

	if (!qwen_sample(&t->sampler, logits, id, e))
		return false;
	if (!t->out.n)
		t->first_ns = time_mono_ns();
	qwen_ids_add(&t->out, *id);
	qwen_sampler_see(&t->sampler, *id);
	if (is_stop(m, *id))
		t->ended = "stop token";
	else if (t->out.n == t->c->tokens)
		t->ended = "token limit";
	else if (t->prompt.n + t->out.n >= t->c->context)
		t->ended = "context full";
	else if (*t->c->stop)
		t->ended = "signal";
	if (!is_stop(m, *id))
		print_token(t, *id, t->ended != NULL);
	return !t->ended;
}

static bool talk_run(struct talk *t, struct err *e)
{
	uint32_t id;

	t->begin_ns = time_mono_ns();
	if (!qwen_feed(t->c, t->state, t->prompt.v, t->prompt.n, NULL, NULL,
		       e))
		return false;
	const float *logits = qwen_logits(t->state,
		(uint32_t)((t->prompt.n - 1) % t->c->chunk));
	while (sample_next(t, logits, &id, e)) {
		struct qwen_token one = { .id = id, .logits = true };
		if (!qwen_forward(t->state, &one, 1, e)) {
			if (!*t->c->stop)
				return false;
			*e = (struct err){ 0 };
			t->ended = "signal";
			break;
		}
		logits = qwen_logits(t->state, 0);
	}
	t->end_ns = time_mono_ns();
	return !e->code;
}

/* A rate of less time than this says more of the clock than of the model. */
static const double least_timed_s = 0.05;

static double decode_seconds(const struct talk *t)
{
	return (double)(t->end_ns - t->first_ns) * 1e-9;
}

static bool has_rate(const struct talk *t)
{
	return t->out.n > 1 && decode_seconds(t) >= least_timed_s;
}

static void fill_summary(const struct talk *t, struct table *out)
{
	double first = (double)(t->first_ns - t->begin_ns) * 1e-9;

	table_init(out, "ended,#prompt_tokens,#tokens,#first_token_s,"
			"#decode_tokens_per_s,text");
	table_row(out);
	table_cell(out, 0, "%s", t->ended);
	table_cell(out, 1, "%zu", t->prompt.n);
	table_cell(out, 2, "%zu", t->out.n);
	table_cell(out, 3, "%.4f", first);
	if (has_rate(t))
		table_cell(out, 4, "%.4g",
			   (double)(t->out.n - 1) / decode_seconds(t));
	table_cell(out, 5, "%s", t->text.data ? t->text.data : "");
}

/* Loading, the prompt and what follows it, apart. */
static void remark_speed(const struct talk *t)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s after %zu tokens (%s%s); loaded in ", t->ended,
		   t->out.n, t->s->model.backend->name,
		   qwen_is_emulated(&t->s->model) ? ", emulated" : "");
	unit_print(&b, (double)t->load_ns * 1e-9, "s");
	buf_printf(&b, ", prompt of %zu tokens in ", t->prompt.n);
	unit_print(&b, (double)(t->first_ns - t->begin_ns) * 1e-9, "s");
	if (t->out.n > 1) {
		buf_printf(&b, ", then %zu in ", t->out.n - 1);
		unit_print(&b, decode_seconds(t), "s");
	}
	if (has_rate(t))
		buf_printf(&b, ": %.4g tokens/s",
			   (double)(t->out.n - 1) / decode_seconds(t));
	cmd_remark(&t->c->cmd, "%s", b.data);
	buf_fini(&b);
}

static bool print_report(const struct talk *t, struct err *e)
{
	struct table out;
	bool ok = true;

	fill_summary(t, &out);
	if (t->c->cmd.format != TABLE_TEXT)
		ok = cmd_table(&t->c->cmd, &out, e);
	else if (t->c->cmd.output)
		fwrite(t->text.data, 1, t->text.len, t->c->cmd.out);
	else
		fputs(isatty(STDOUT_FILENO) ? "\n\n" : "\n", stdout);
	remark_speed(t);
	table_fini(&out);
	return ok;
}

static bool talk_open(struct talk *t, struct err *e)
{
	const struct qwen_config *m = &t->s->model.config;
	struct qwen_sampling how = qwen_cmd_sampling(t->c, m);

	if (t->c->context > m->max_positions)
		t->c->context = m->max_positions;
	if (!qwen_cmd_prompt(t->c, t->s, &t->prompt, e))
		return false;
	if (t->prompt.n >= t->c->context)
		return err_set(e, ERR_USAGE, "the prompt has %zu tokens; a "
			       "context of %llu leaves no room (--context, at "
			       "most %u)", t->prompt.n,
			       (unsigned long long)t->c->context,
			       m->max_positions);
	if (!qwen_cmd_state(t->c, t->s, 1, (uint32_t)t->c->context, &t->state,
			    e) ||
	    !qwen_sampler_init(&t->sampler, &how, m->vocab, e))
		return false;
	for (size_t i = 0; i < t->prompt.n; i++)
		qwen_sampler_see(&t->sampler, t->prompt.v[i]);
	return true;
}

bool qwen_cmd_generate(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct qwen_session s;
	struct talk t = { .c = c, .s = &s };
	bool ok;

	if (!c->tokens)
		err_set(e, ERR_USAGE, "--tokens 0: wanted at least 1");
	else if (c->no_think && !c->chat && !c->messages)
		err_set(e, ERR_USAGE, "--no-think without --chat or "
			"--messages");
	if (e->code)
		return false;
	const uint64_t from = time_mono_ns();
	if (!qwen_session_open(&s, c, c->ids ? QWEN_WORDS_IF_THERE :
					       QWEN_WORDS, e))
		return false;
	t.load_ns = time_mono_ns() - from;
	ok = talk_open(&t, e) && talk_run(&t, e) && print_report(&t, e);
	qwen_state_free(t.state);
	qwen_sampler_fini(&t.sampler);
	qwen_ids_fini(&t.prompt);
	qwen_ids_fini(&t.out);
	buf_fini(&t.text);
	qwen_session_close(&s);
	return ok;
}
