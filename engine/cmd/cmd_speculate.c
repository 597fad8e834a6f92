/*
 * engine/cmd/cmd_speculate.c - what --speculate, --draft and --heads ask
 * for.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/cmd_speculate.h"

static const char *of_draft(const struct qwen_cmd *c)
{
	return c->draft;
}

static const char *of_heads(const struct qwen_cmd *c)
{
	return c->heads_dir;
}

/* The proposers, and the option that names what they are of. */
static const struct qwen_guess_kind {
	const char *name, *option;
	const char *(*of)(const struct qwen_cmd *c);
	const char *what;
} kinds[] = {
	{ "lookup", NULL, NULL, NULL },
	{ "wrong", NULL, NULL, NULL },
	{ "draft", "--draft", of_draft, "the smaller model" },
	{ "medusa", "--heads", of_heads, "its heads" },
	{ "eagle", "--heads", of_heads, "its heads" },
};

/* What is named without a name says which one it is of. */
const char *qwen_guess_name(const struct qwen_cmd *c)
{
	return c->speculate ? c->speculate :
	       c->draft	    ? "draft" :
	       c->heads_dir ? "medusa" :
			      NULL;
}

static bool options_check(const struct qwen_cmd *c,
			  const struct qwen_guess_kind *k, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].of && kinds[i].of != k->of && kinds[i].of(c))
			return err_set(e, ERR_USAGE,
				       "%s with --speculate %s, which has no "
				       "such folder; wanted one of both",
				       kinds[i].option, k->name);
	return !k->of || k->of(c) ||
	       err_set(e, ERR_USAGE, "--speculate %s without %s DIR, %s",
		       k->name, k->option, k->what);
}

/* "NAME" or "NAME:N". */
static bool how_parse(const struct qwen_cmd *c,
		      const struct qwen_guess_kind **kind, uint32_t *most,
		      struct err *e)
{
	const char *text = qwen_guess_name(c);
	const size_t len = strcspn(text, ":");
	unsigned long n = 0;
	char *end = NULL;

	*kind = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == len &&
		    strncmp(kinds[i].name, text, len) == 0)
			*kind = &kinds[i];
	if (text[len])
		n = strtoul(text + len + 1, &end, 10);
	if (!*kind || (text[len] && (!n || n > QWEN_PROPOSED || *end)))
		return err_set(e, ERR_USAGE,
			       "--speculate %s: wanted lookup, draft, medusa, "
			       "eagle or wrong, and for fewer tokens at once "
			       ":1 to :%d behind it",
			       text, QWEN_PROPOSED);
	*most = (uint32_t)n;
	return true;
}

static bool is_same_token(const struct qwen_tokenizer *a,
			  const struct qwen_tokenizer *b, uint32_t id)
{
	size_t n = 0, m = 0;
	const char *x = qwen_token_bytes(a, id, &n, NULL);
	const char *y = qwen_token_bytes(b, id, &m, NULL);

	return x && y ? n == m && memcmp(x, y, n) == 0 : x == y;
}

/* A token means the same to both models. */
static bool vocabulary_check(const struct qwen_cmd *c,
			     const struct qwen_session *s,
			     const struct qwen_model *draft, struct err *e)
{
	const uint32_t mine = s->model.config.vocab;
	struct qwen_tokenizer *tok;
	uint32_t id = 0;

	if (draft->config.vocab != mine)
		return err_set(e, ERR_INPUT,
			       "%s: a vocabulary of %u tokens; "
			       "the model has %u: wanted a draft with the same "
			       "tokenizer",
			       c->draft, draft->config.vocab, mine);
	if (!s->tok || !qwen_tokenizer_there(c->draft))
		return true;
	tok = qwen_tokenizer_load(c->draft, e);
	if (!tok)
		return false;
	while (id < mine && is_same_token(s->tok, tok, id))
		id++;
	qwen_tokenizer_free(tok);
	return id == mine ||
	       err_set(e, ERR_INPUT,
		       "%s: token %u is another one than the "
		       "model's; wanted a draft with the same tokenizer",
		       c->draft, id);
}

static bool draft_load(const struct qwen_cmd *c, const struct qwen_session *s,
		       struct qwen_model *draft, bool *loaded, struct err *e)
{
	const struct qwen_load load = { .copy = c->copy, .stop = c->stop };

	*loaded = qwen_model_load(draft, c->draft, &load, s->threads, e);
	return *loaded && vocabulary_check(c, s, draft, e);
}

static struct qwen_proposer *
draft_new(const struct qwen_cmd *c, const struct qwen_model *draft,
	  uint32_t positions, const struct qwen_sampling *how, struct err *e)
{
	struct qwen_shape shape = {
		1,	 positions, (uint32_t)c->chunk, qwen_both(QWEN_W_F16),
		c->stop, 0
	};

	return c->cache && !qwen_kinds_parse(c->cache, &shape.cache, e) ?
		       NULL :
		       qwen_draft_new(draft, &shape, how, e);
}

/* Of a kind that is no draft. */
static struct qwen_proposer *
other_new(const struct qwen_guess_kind *k, const struct qwen_cmd *c,
	  const struct qwen_session *s, uint32_t positions, bool tree,
	  struct qwen_state *state, uint32_t sequence, struct err *e)
{
	if (strcmp(k->name, "medusa") == 0)
		return qwen_medusa_new(c->heads_dir, &s->model, tree, state,
				       sequence, e);
	if (strcmp(k->name, "eagle") == 0)
		return qwen_eagle_new(c->heads_dir, &s->model, positions, state,
				      sequence, e);
	return strcmp(k->name, "lookup") == 0 ?
		       qwen_lookup_new() :
		       qwen_wrong_new(s->model.config.vocab);
}

bool qwen_guesses_open(struct qwen_guesses *g, const struct qwen_cmd *c,
		       const struct qwen_session *s, uint32_t positions,
		       uint32_t *most, struct err *e)
{
	*g = (struct qwen_guesses){ .c = c, .s = s, .positions = positions };
	*most = 0;
	if (!qwen_guess_name(c))
		return true;
	if (!how_parse(c, &g->kind, most, e) || !options_check(c, g->kind, e))
		return false;
	*most = *most ? *most : QWEN_PROPOSED;
	return strcmp(g->kind->name, "draft") != 0 ||
	       draft_load(c, s, &g->draft, &g->loaded, e);
}

struct qwen_proposer *qwen_guesses_new(void *ctx, struct qwen_state *state,
				       uint32_t sequence, struct err *e)
{
	/* Chosen, not drawn: texts are those without. */
	static const struct qwen_sampling greedy = { .top_p = 1,
						     .repetition_penalty = 1 };
	const struct qwen_guesses *g = ctx;

	if (g->loaded)
		return draft_new(g->c, &g->draft, g->positions, &greedy, e);
	return other_new(g->kind, g->c, g->s, g->positions, false, state,
			 sequence, e);
}

void qwen_guesses_close(struct qwen_guesses *g)
{
	if (g->loaded)
		qwen_model_close(&g->draft);
	*g = (struct qwen_guesses){ 0 };
}

bool qwen_guess_open(struct qwen_guess *g, const struct qwen_cmd *c,
		     const struct qwen_session *s, struct qwen_state *state,
		     uint32_t positions, const struct qwen_sampling *how,
		     struct err *e)
{
	const struct qwen_guess_kind *kind;
	uint32_t most = 0;

	*g = (struct qwen_guess){ 0 };
	if (!qwen_guess_name(c))
		return true;
	if (!how_parse(c, &kind, &most, e) || !options_check(c, kind, e) ||
	    !qwen_speculation_init(&g->s, &s->model, most, e))
		return false;
	if (strcmp(kind->name, "draft") == 0)
		g->s.proposer =
			draft_load(c, s, &g->draft, &g->loaded, e) ?
				draft_new(c, &g->draft, positions, how, e) :
				NULL;
	else
		g->s.proposer =
			other_new(kind, c, s, positions, true, state, 0, e);
	return g->s.proposer != NULL;
}

void qwen_guess_close(struct qwen_guess *g)
{
	qwen_proposer_free(g->s.proposer);
	if (g->loaded)
		qwen_model_close(&g->draft);
	*g = (struct qwen_guess){ 0 };
}
