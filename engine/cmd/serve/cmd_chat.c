/*
 * engine/cmd/serve/cmd_chat.c - t0-qwen3 chat: a conversation in a terminal, or
 * of lines of a file.
 *
 * The cache keeps what it has of the turn before; of the next one only tokens
 * behind what both begin with are computed.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/serve/cmd_chat.h"

struct chat {
	struct qwen_cmd *c;
	struct qwen_session s;
	struct qwen_state *state;
	struct qwen_encoder *encoder;
	struct chat_lines *lines;
	struct chat_talk talk;
	struct qwen_ids held; /* tokens that the cache has */
	uint64_t answers;     /* so far: each has a seed of its own */
	bool quit;
};

/* ---- signals ---- */

/* What ends an answer; all but Ctrl-C in a terminal end the program, too. */
static _Atomic int interrupted;
static bool keeps_on; /* after SIGINT */
static struct sigaction before[_NSIG];

static void on_signal(int sig)
{
	interrupted = sig;
	if (sig != SIGINT || !keeps_on)
		before[sig].sa_handler(sig);
}

/* Calls that read a line end, too. */
static void catch_signals(void)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGALRM };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		bool stays = all[i] == SIGINT && keeps_on;
		const struct sigaction sa = {
			.sa_handler = on_signal,
			.sa_flags = stays ? 0 : (int)SA_RESETHAND,
		};
		sigaction(all[i], NULL, &before[all[i]]);
		if (before[all[i]].sa_handler != SIG_IGN &&
		    before[all[i]].sa_handler != SIG_DFL)
			sigaction(all[i], &sa, NULL);
	}
}

/* ---- an answer ---- */

struct answer {
	struct qwen_ids prompt, out;
	struct qwen_sampler sampler;
	struct qwen_detokenizer decoder;
	struct buf text;
	struct chat_show show;
	size_t found;	   /* tokens of the prompt that the cache had */
	const char *ended; /* why; NULL: it goes on */
	uint64_t begin_ns, first_ns;
};

/* Cuts the cache to what it and the prompt begin with. */
static void keep_cache(struct chat *ch, struct answer *a)
{
	while (a->found + 1 < a->prompt.n && a->found < ch->held.n &&
	       a->prompt.v[a->found] == ch->held.v[a->found])
		a->found++;
	qwen_state_truncate(ch->state, 0, (uint32_t)a->found);
}

/* After passes, whole or not: what the cache has now. */
static void note_cache(struct chat *ch, const struct answer *a)
{
	const size_t n = qwen_state_length(ch->state, 0);

	ch->held.n = 0;
	for (size_t i = 0; i < n; i++)
		qwen_ids_add(&ch->held, i < a->prompt.n ?
						a->prompt.v[i] :
						a->out.v[i - a->prompt.n]);
}

/* A token of the answer; a stop is none. */
static void take_token(struct chat *ch, struct answer *a, uint32_t id)
{
	const size_t from = a->text.len;

	qwen_ids_add(&a->out, id);
	qwen_sampler_see(&a->sampler, id);
	qwen_detokenize(&a->decoder, ch->s.tok, id, &a->text);
	chat_show_text(&a->show, a->text.data ? a->text.data + from : "",
		       a->text.len - from);
	if (a->out.n >= ch->c->answer)
		a->ended = "token limit";
	else if (a->prompt.n + a->out.n >= ch->c->context)
		a->ended = "context full";
	else if (interrupted)
		a->ended = "interrupted";
}

static bool write_answer(struct chat *ch, struct answer *a, struct err *e)
{
	size_t rest = a->prompt.n - a->found;
	uint32_t id, row = (uint32_t)((rest - 1) % ch->c->chunk);

	if (!qwen_feed(ch->c, ch->state, a->prompt.v + a->found, rest, NULL,
		       NULL, e))
		return false;
	a->first_ns = time_mono_ns();
	while (!a->ended) {
		struct qwen_token one = { .logits = true };
		if (!qwen_sample(&a->sampler, qwen_logits(ch->state, row), &id,
				 e))
			return false;
		if (qwen_config_stops(&ch->s.model.config, id)) {
			a->ended = "stop token";
			break;
		}
		take_token(ch, a, id);
		one.id = id;
		if (!a->ended && !qwen_forward(ch->state, &one, 1, e))
			return false;
		row = 0;
	}
	return true;
}

static void end_answer(struct chat *ch, struct answer *a)
{
	const size_t from = a->text.len;
	struct chat_turn *turn;

	qwen_detokenize_end(&a->decoder, &a->text);
	chat_show_text(&a->show, a->text.data ? a->text.data + from : "",
		       a->text.len - from);
	chat_show_end(&a->show);
	fputs("\n", stdout);
	fflush(stdout);
	turn = chat_talk_add(&ch->talk, "assistant",
			     a->text.data ? a->text.data : "", a->text.len);
	turn->ids = a->out;
	a->out = (struct qwen_ids){ 0 };
}

static void remark_answer(const struct chat *ch, const struct answer *a,
			  size_t n)
{
	struct buf b = { 0 };

	buf_printf(&b,
		   "%s after %zu tokens; prompt of %zu tokens, of which "
		   "%zu were there, in ",
		   a->ended, n, a->prompt.n, a->found);
	unit_print(&b, (double)(a->first_ns - a->begin_ns) * 1e-9, "s");
	buf_adds(&b, ", then ");
	unit_print(&b, (double)(time_mono_ns() - a->first_ns) * 1e-9, "s");
	cmd_remark(&ch->c->cmd, "%s", b.data);
	buf_fini(&b);
}

static bool answer_open(struct chat *ch, struct answer *a, struct err *e)
{
	const struct qwen_config *m = &ch->s.model.config;
	struct qwen_sampling how = qwen_cmd_sampling(ch->c, m);

	a->show.to = stdout;
	a->show.paint = paint_wanted(stdout);
	how.seed += ch->answers++;
	if (!chat_thinking_parse(ch->c->thinking, &a->show.how, e) ||
	    !chat_talk_ids(&ch->talk, ch->encoder, ch->c->no_think, &a->prompt,
			   e))
		return false;
	if (a->prompt.n >= ch->c->context)
		return err_set(e, ERR_USAGE,
			       "the conversation has %zu tokens; "
			       "a context of %llu leaves no room (/reset, or "
			       "--context, at most %u)",
			       a->prompt.n, (unsigned long long)ch->c->context,
			       m->max_positions);
	for (size_t i = 0; i < a->prompt.n; i++)
		if (a->prompt.v[i] >= m->vocab)
			return err_set(e, ERR_INPUT,
				       "the tokenizer gives "
				       "token %u, but the model has %u",
				       a->prompt.v[i], m->vocab);
	if (!qwen_sampler_init(&a->sampler, &how, m->vocab, e))
		return false;
	for (size_t i = 0; i < a->prompt.n; i++)
		qwen_sampler_see(&a->sampler, a->prompt.v[i]);
	return true;
}

/* Answers the last turn; an interruption keeps what there is. */
static bool answer_turn(struct chat *ch, struct err *e)
{
	struct answer a = { .begin_ns = time_mono_ns() };
	bool ok;

	interrupted = 0;
	ok = answer_open(ch, &a, e);
	if (ok) {
		a.first_ns = a.begin_ns;
		keep_cache(ch, &a);
		ok = write_answer(ch, &a, e);
		if (!ok && interrupted) {
			*e = (struct err){ 0 };
			a.ended = "interrupted";
			ok = true;
		}
		note_cache(ch, &a);
	}
	if (ok) {
		const size_t n = a.out.n;
		end_answer(ch, &a);
		remark_answer(ch, &a, n);
	}
	buf_fini(&a.show.held);
	buf_fini(&a.text);
	qwen_sampler_fini(&a.sampler);
	qwen_ids_fini(&a.prompt);
	qwen_ids_fini(&a.out);
	return ok;
}

/* ---- what a user says ---- */

static bool run_reset(struct chat *ch, const char *text, struct err *e)
{
	(void)text;
	(void)e;
	chat_talk_truncate(&ch->talk,
			   ch->talk.n && !strcmp(ch->talk.v[0].role, "system"));
	return true;
}

static bool run_system(struct chat *ch, const char *text, struct err *e)
{
	(void)e;
	chat_talk_system(&ch->talk, text);
	return true;
}

/* Turns before the last one of the user's. */
static bool find_last(const struct chat *ch, size_t *n, struct err *e)
{
	for (*n = ch->talk.n; *n && strcmp(ch->talk.v[*n - 1].role, "user");)
		--*n;
	if (!*n)
		return err_set(e, ERR_USAGE, "there is no turn yet");
	--*n;
	return true;
}

static bool run_undo(struct chat *ch, const char *text, struct err *e)
{
	size_t n;

	(void)text;
	if (!find_last(ch, &n, e))
		return false;
	chat_talk_truncate(&ch->talk, n);
	return true;
}

/* Another answer: its seed is new, so greedy it is the same. */
static bool run_retry(struct chat *ch, const char *text, struct err *e)
{
	size_t n;

	(void)text;
	if (!find_last(ch, &n, e))
		return false;
	chat_talk_truncate(&ch->talk, n + 1);
	return answer_turn(ch, e);
}

static bool is_named(const char *text, const char *command, struct err *e)
{
	return *text ||
	       err_set(e, ERR_USAGE, "%s: wanted a file's name", command);
}

static bool run_save(struct chat *ch, const char *text, struct err *e)
{
	return is_named(text, "/save", e) && chat_talk_save(&ch->talk, text, e);
}

static bool run_load(struct chat *ch, const char *text, struct err *e)
{
	return is_named(text, "/load", e) && chat_talk_load(&ch->talk, text, e);
}

static bool run_set(struct chat *ch, const char *text, struct err *e)
{
	return chat_set(ch->c, &ch->s.model.config, text, e);
}

static bool run_quit(struct chat *ch, const char *text, struct err *e)
{
	(void)text;
	(void)e;
	ch->quit = true;
	return true;
}

static bool run_help(struct chat *ch, const char *text, struct err *e);

static const struct order {
	const char *name, *operand, *help;
	bool (*run)(struct chat *ch, const char *text, struct err *e);
} orders[] = {
	{ "help", "", "this", run_help },
	{ "reset", "", "forget the conversation, but for the system's turn",
	  run_reset },
	{ "system", " [TEXT]",
	  "what the model is told first; without TEXT "
	  "nothing",
	  run_system },
	{ "undo", "", "take the last turn and its answer back", run_undo },
	{ "retry", "", "another answer to the last turn", run_retry },
	{ "save", " FILE", "the conversation, as generate --messages takes it",
	  run_save },
	{ "load", " FILE", "go on with such a one", run_load },
	{ "set", " [NAME VALUE]", "an option: temperature, tokens, thinking...",
	  run_set },
	{ "quit", "", "end; so does Ctrl-D", run_quit },
};

static bool run_help(struct chat *ch, const char *text, struct err *e)
{
	(void)ch;
	(void)text;
	(void)e;
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		int n = printf("/%s%s", orders[i].name, orders[i].operand);
		printf("%*s%s\n", n < 20 ? 20 - n : 1, "", orders[i].help);
	}
	puts("A line that ends with \\ goes on in the next; // begins one with "
	     "a slash.");
	return true;
}

/* `text` is behind the slash. */
static bool run_order(struct chat *ch, const char *text, struct err *e)
{
	size_t n = strcspn(text, " \n");
	struct cmd_near near = { .name = text };
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)(n < 31 ? n : 31), text);
	near.name = name;
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		if (strcmp(orders[i].name, name) == 0)
			return orders[i].run(
				ch, text + n + strspn(text + n, " \n"), e);
		cmd_near_try(&near, orders[i].name);
	}
	return near.meant ? err_set(e, ERR_USAGE,
				    "/%s is no command; is /%s "
				    "meant?",
				    name, near.meant) :
			    err_set(e, ERR_USAGE,
				    "/%s is no command; /help "
				    "has them",
				    name);
}

static bool hear_line(struct chat *ch, const char *text, struct err *e)
{
	size_t n = ch->talk.n;

	if (text[0] == '/' && text[1] != '/')
		return run_order(ch, text + 1, e);
	text += text[0] == '/';
	if (!text[strspn(text, " \t\n")])
		return true;
	chat_talk_add(&ch->talk, "user", text, strlen(text));
	if (answer_turn(ch, e))
		return true;
	chat_talk_truncate(&ch->talk, n);
	return false;
}

/* In a terminal a mistake is said, and the conversation goes on. */
static bool chat_run(struct chat *ch, struct err *e)
{
	const bool terminal = chat_lines_terminal(ch->lines);
	const char *text;
	enum chat_line got;

	if (terminal)
		cmd_remark(&ch->c->cmd, "/help has the commands; Ctrl-C stops "
					"an answer, Ctrl-D ends");
	while (!ch->quit && !*ch->c->cmd.stop &&
	       (got = chat_lines_next(ch->lines, &text, e)) != CHAT_LINE_END) {
		if (got == CHAT_LINE_FAILED)
			return false;
		if (got == CHAT_LINE_STOPPED || hear_line(ch, text, e))
			continue;
		if (!terminal ||
		    (e->code != ERR_USAGE && e->code != ERR_INPUT &&
		     e->code != ERR_IO && e->code != ERR_PERM))
			return false;
		err_report(ch->c->cmd.tool->name, e);
		*e = (struct err){ 0 };
	}
	return true;
}

static bool options_check(const struct qwen_cmd *c, struct err *e)
{
	enum chat_thinking how;

	if (!c->answer)
		return err_set(e, ERR_USAGE, "--tokens 0: wanted at least 1");
	return chat_thinking_parse(c->thinking, &how, e) ||
	       err_wrap(e, "--thinking");
}

bool qwen_cmd_chat(struct cmd *r, struct err *e)
{
	struct chat ch = { .c = (struct qwen_cmd *)r };
	struct qwen_cmd *c = ch.c;
	bool ok;

	if (!options_check(c, e) || !qwen_session_open(&ch.s, c, QWEN_WORDS, e))
		return false;
	if (c->context > ch.s.model.config.max_positions)
		c->context = ch.s.model.config.max_positions;
	c->stop = &interrupted;
	ch.encoder = qwen_encoder_new(ch.s.tok);
	ok = qwen_cmd_state(c, &ch.s, 1, (uint32_t)c->context, &ch.state, e);
	if (ok) {
		chat_talk_system(&ch.talk, c->system ? c->system : "");
		ch.lines = chat_lines_open(r, c->history);
		keeps_on = chat_lines_terminal(ch.lines);
		catch_signals();
		ok = chat_run(&ch, e);
	}
	chat_lines_close(ch.lines);
	chat_talk_fini(&ch.talk);
	qwen_ids_fini(&ch.held);
	qwen_state_free(ch.state);
	qwen_encoder_free(ch.encoder);
	qwen_session_close(&ch.s);
	return ok;
}
