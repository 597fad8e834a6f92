/*
 * engine/cmd/cmd_generate.c - t0-qwen3 generate: text, as it comes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/cmd_speculate.h"

/* What one generation has come to. */
struct talk {
	struct qwen_cmd *c;
	const struct qwen_session *s;
	struct qwen_state *state;
	struct qwen_sampler sampler;
	struct qwen_guess guess;
	struct qwen_detokenizer decoder;
	struct qwen_ids ids; /* the prompt, and what follows */
	size_t n_prompt, n_out;
	struct buf text; /* for --output and --json */
	uint64_t load_ns, begin_ns, first_ns, end_ns;
	const char *ended; /* why */
};

/* Text goes out as soon as its characters are whole. */
static void print_token(struct talk *t, uint32_t id, bool end)
{
	size_t from = t->text.len;

	if (!t->s->tok) {
		buf_printf(&t->text, "%s%u", t->n_out > 1 ? "," : "", id);
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

/* One more token of those that are there; false ends the text. */
static bool say_next(struct talk *t)
{
	const uint32_t id = t->ids.v[t->n_prompt + t->n_out];
	const bool stops = qwen_config_stops(&t->s->model.config, id);

	if (!t->n_out++)
		t->first_ns = time_mono_ns();
	if (stops)
		t->ended = "stop token";
	else if (t->n_out == t->c->tokens)
		t->ended = "token limit";
	else if (t->n_prompt + t->n_out >= t->c->context)
		t->ended = "context full";
	else if (*t->c->stop)
		t->ended = "signal";
	if (!stops)
		print_token(t, id, t->ended != NULL);
	return !t->ended;
}

/* The prompt, and the first token behind it. */
static bool begin_text(struct talk *t, struct err *e)
{
	uint32_t id;

	if (!qwen_feed(t->c, t->state, t->ids.v, t->n_prompt, NULL, NULL, e) ||
	    !qwen_sample(&t->sampler,
			 qwen_logits(t->state, (uint32_t)((t->n_prompt - 1) %
							  t->c->chunk)),
			 &id, e) ||
	    !qwen_speculation_begin(&t->guess.s, &t->ids, e))
		return false;
	qwen_ids_add(&t->ids, id);
	qwen_sampler_see(&t->sampler, id);
	return true;
}

/* Tokens that the text may still get. */
static uint32_t room_of(const struct talk *t)
{
	uint64_t tokens = t->c->tokens - t->n_out;
	uint64_t context = t->c->context - t->ids.n;

	tokens = tokens < context ? tokens : context;
	return tokens < UINT32_MAX ? (uint32_t)tokens : UINT32_MAX;
}

static bool talk_run(struct talk *t, struct err *e)
{
	t->begin_ns = time_mono_ns();
	if (!begin_text(t, e))
		return false;
	while (say_next(t)) {
		if (t->n_prompt + t->n_out < t->ids.n ||
		    qwen_speculate(&t->guess.s, &t->ids, room_of(t), e))
			continue;
		if (!*t->c->stop)
			return false;
		*e = (struct err){ 0 };
		t->ended = "signal";
		break;
	}
	t->end_ns = time_mono_ns();
	return true;
}

/* A rate of less time than this says more of the clock than of the model. */
static const double least_timed_s = 0.05;

static double decode_seconds(const struct talk *t)
{
	return (double)(t->end_ns - t->first_ns) * 1e-9;
}

static bool has_rate(const struct talk *t)
{
	return t->n_out > 1 && decode_seconds(t) >= least_timed_s;
}

/* Tokens of a pass, and the share of proposals that were right. */
static double tokens_per_pass(const struct talk *t)
{
	const struct qwen_speculated *s = &t->guess.s.counts;

	return s->passes ? (double)s->tokens / (double)s->passes : NAN;
}

static double share_right(const struct talk *t)
{
	const struct qwen_speculated *s = &t->guess.s.counts;

	return s->proposed ? (double)s->right / (double)s->proposed : NAN;
}

static void fill_summary(const struct talk *t, struct table *out)
{
	double first = (double)(t->first_ns - t->begin_ns) * 1e-9;

	table_init(out, "ended,#prompt_tokens,#tokens,#first_token_s,"
			"#decode_tokens_per_s,text,#tokens_per_pass,#right");
	table_row(out);
	table_cell(out, 0, "%s", t->ended);
	table_cell(out, 1, "%zu", t->n_prompt);
	table_cell(out, 2, "%zu", t->n_out);
	table_cell(out, 3, "%.4f", first);
	if (has_rate(t))
		table_cell(out, 4, "%.4g",
			   (double)(t->n_out - 1) / decode_seconds(t));
	table_cell(out, 5, "%s", t->text.data ? t->text.data : "");
	if (!isnan(tokens_per_pass(t)))
		table_cell(out, 6, "%.4g", tokens_per_pass(t));
	if (!isnan(share_right(t)))
		table_cell(out, 7, "%.4g", share_right(t));
}

/* Loading, the prompt and what follows it, apart. */
static void remark_speed(const struct talk *t)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s after %zu tokens (%s%s); loaded in ", t->ended,
		   t->n_out, t->s->model.backend->name,
		   qwen_is_emulated(&t->s->model) ? ", emulated" : "");
	unit_print(&b, (double)t->load_ns * 1e-9, "s");
	buf_printf(&b, ", prompt of %zu tokens in ", t->n_prompt);
	unit_print(&b, (double)(t->first_ns - t->begin_ns) * 1e-9, "s");
	if (t->n_out > 1) {
		buf_printf(&b, ", then %zu in ", t->n_out - 1);
		unit_print(&b, decode_seconds(t), "s");
	}
	if (has_rate(t))
		buf_printf(&b, ": %.4g tokens/s",
			   (double)(t->n_out - 1) / decode_seconds(t));
	if (t->guess.s.proposer) {
		buf_printf(&b, "; %s: %.3g tokens a pass",
			   t->guess.s.proposer->name, tokens_per_pass(t));
		if (!isnan(share_right(t)))
			buf_printf(&b, ", %.0f %% of what it proposed right",
				   100 * share_right(t));
	}
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
	if (!qwen_cmd_prompt(t->c, t->s, &t->ids, e))
		return false;
	t->n_prompt = t->ids.n;
	if (t->n_prompt >= t->c->context)
		return err_set(e, ERR_USAGE, "the prompt has %zu tokens; a "
			       "context of %llu leaves no room (--context, at "
			       "most %u)", t->n_prompt,
			       (unsigned long long)t->c->context,
			       m->max_positions);
	if (!qwen_cmd_state(t->c, t->s, 1, (uint32_t)t->c->context, &t->state,
			    e) ||
	    !qwen_sampler_init(&t->sampler, &how, m->vocab, e) ||
	    !qwen_guess_open(&t->guess, t->c, t->s, t->state,
			     (uint32_t)t->c->context, &how, e))
		return false;
	t->guess.s.state = t->state;
	t->guess.s.sampler = &t->sampler;
	for (size_t i = 0; i < t->n_prompt; i++)
		qwen_sampler_see(&t->sampler, t->ids.v[i]);
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
	qwen_guess_close(&t.guess);
	qwen_state_free(t.state);
	qwen_sampler_fini(&t.sampler);
	qwen_ids_fini(&t.ids);
	buf_fini(&t.text);
	qwen_session_close(&s);
	return ok;
}
