/*
 * engine/cmd/cmd_retrieve.c - t0-qwen3 embed and rerank: models that search.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/cmd/cmd.h"

/* ---- texts ---- */

/* One of the command line, of a file, or of standard input. */
struct text {
	const char *s;
	size_t n;
	bool query;
};

struct texts {
	VEC(struct text) all;
	struct buf file;      /* whose lines some are */
	struct qwen_ids *ids; /* [all.n], with what is put around them */
};

static void texts_fini(struct texts *t)
{
	for (size_t i = 0; t->ids && i < t->all.n; i++)
		qwen_ids_fini(&t->ids[i]);
	free(t->ids);
	vec_fini(&t->all);
	buf_fini(&t->file);
}

static void add_text(struct texts *t, const char *s, bool query)
{
	vec_push(&t->all, (struct text){ s, strlen(s), query });
}

/* A text a line, as many as there are lines. */
static bool lines_add(struct texts *t, const char *path, struct err *e)
{
	if (!file_read(path, 0, &t->file, e))
		return false;
	const char *at = t->file.data, *end = at + t->file.len;
	for (const char *next; t->file.len && at < end; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next : end;
		vec_push(&t->all,
			 (struct text){ at, (size_t)(next - at), false });
	}
	return true;
}

/* Documents: operands from `first` on and --texts, or standard input. */
static bool documents_add(struct texts *t, const struct qwen_cmd *c, int first,
			  bool any, struct err *e)
{
	const struct cmd *r = &c->cmd;

	for (int i = first; i < r->argc; i++)
		add_text(t, r->argv[i], false);
	if (c->texts || (!any && first >= r->argc))
		return lines_add(t, c->texts ? c->texts : "-", e);
	return true;
}

/* The longest of them, in tokens; 0: there is none, or it does not fit. */
static uint32_t longest_text(const struct texts *t, const struct qwen_cmd *c,
			     const struct qwen_config *m, struct err *e)
{
	const size_t most = c->context < m->max_positions ? c->context :
							    m->max_positions;
	size_t longest = 0;

	for (size_t i = 0; i < t->all.n; i++) {
		longest = t->ids[i].n > longest ? t->ids[i].n : longest;
		if (longest > most) {
			err_set(e, ERR_USAGE,
				"text %zu has %zu tokens with "
				"what is put around it; the context has %zu "
				"(--context; the model knows %u)",
				i + 1, longest, most, m->max_positions);
			return 0;
		}
	}
	if (!longest)
		err_set(e, ERR_USAGE, "there is no text");
	return (uint32_t)longest;
}

/* The beginning of a text on a line, for tables. */
static void shown_cell(struct table *t, int column, const struct text *x)
{
	enum { SHOWN = 48 };
	struct buf b = { 0 };
	size_t n = x->n;

	if (n > SHOWN)
		for (n = SHOWN; n && ((unsigned char)x->s[n] & 0xc0) == 0x80;)
			n--;
	for (size_t i = 0; i < n; i++)
		buf_addc(&b, (unsigned char)x->s[i] < ' ' ? ' ' : x->s[i]);
	table_cell(t, column, "%.*s%s", (int)b.len, b.len ? b.data : "",
		   n < x->n ? "..." : "");
	buf_fini(&b);
}

static unsigned text_flags(const struct qwen_cmd *c)
{
	return c->plain ? QWEN_PLAIN : 0;
}

static const char *instruction_of(const struct qwen_cmd *c)
{
	return c->instruct ? c->instruct : QWEN_SEARCH_INSTRUCTION;
}

/* ---- embed ---- */

static bool texts_encode(struct texts *t, const struct qwen_cmd *c,
			 const struct qwen_session *s, struct err *e)
{
	struct qwen_encoder *x;
	bool ok = true;
	uint32_t end;

	if (!qwen_search_end(s->tok, s->model.config.vocab, &end, e))
		return err_wrap(e, "%s", c->model);
	x = qwen_encoder_new(s->tok);
	qwen_encoder_stop(x, c->stop);
	t->ids = xcalloc(t->all.n + 1, sizeof(*t->ids));
	for (size_t i = 0; ok && i < t->all.n; i++) {
		const struct text *text = &t->all.v[i];
		ok = qwen_search_encode(
			x, text->query ? instruction_of(c) : NULL, text->s,
			text->n, text_flags(c), end, &t->ids[i], e);
	}
	qwen_encoder_free(x);
	return ok;
}

/* A line of JSON for each text. */
static void print_vectors(const struct texts *t, const float *v, uint32_t n,
			  FILE *out)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < t->all.n; i++, v += n) {
		buf_reset(&b);
		buf_printf(&b,
			   "{\"index\": %zu, \"query\": %s, \"tokens\": "
			   "%zu, \"embedding\": [",
			   i, t->all.v[i].query ? "true" : "false",
			   t->ids[i].n);
		for (uint32_t k = 0; k < n; k++)
			buf_printf(&b, "%s%.9g", k ? ", " : "", (double)v[k]);
		buf_adds(&b, "]}\n");
		fwrite(b.data, 1, b.len, out);
	}
	buf_fini(&b);
}

static double dot_of(const float *a, const float *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)a[i] * b[i];
	return sum;
}

/* Of each query with each document, or without one of these of each pair. */
static bool print_cosines(const struct qwen_cmd *c, const struct texts *t,
			  const float *v, uint32_t n, struct err *e)
{
	const size_t queries = (size_t)c->queries.n, all = t->all.n;
	const bool pairs = !queries || queries == all;
	struct table out;

	table_init(&out, "#a,#b,#cosine,text_a,text_b");
	for (size_t i = 0; i < (pairs ? all : queries); i++)
		for (size_t k = pairs ? i + 1 : queries; k < all; k++) {
			table_row(&out);
			table_cell(&out, 0, "%zu", i);
			table_cell(&out, 1, "%zu", k);
			table_cell(&out, 2, "%.6f",
				   dot_of(v + i * n, v + k * n, n));
			shown_cell(&out, 3, &t->all.v[i]);
			shown_cell(&out, 4, &t->all.v[k]);
		}
	bool ok = cmd_table(&c->cmd, &out, e);
	table_fini(&out);
	return ok;
}

static bool embed_texts(const struct qwen_cmd *c, const struct qwen_session *s,
			struct texts *t, struct err *e)
{
	enum { TOGETHER = 16 };
	const struct qwen_config *m = &s->model.config;
	struct qwen_embedding how = {
		.max_tokens = (uint32_t)c->chunk,
		.sequences = t->all.n < TOGETHER ? (uint32_t)t->all.n :
						   TOGETHER,
		.dimensions = c->dimensions ? (uint32_t)c->dimensions :
					      m->hidden,
	};
	const uint32_t longest = longest_text(t, c, m, e), n = how.dimensions;
	float *v;
	bool ok;

	if (!longest ||
	    !qwen_cmd_state(c, s, how.sequences, longest, &how.state, e))
		return false;
	v = xcalloc(t->all.n * n, sizeof(*v));
	ok = qwen_embed(&how, t->ids, (uint32_t)t->all.n, v, e);
	if (ok && c->cosine)
		ok = print_cosines(c, t, v, n, e);
	else if (ok)
		print_vectors(t, v, n, c->cmd.out);
	free(v);
	qwen_state_free(how.state);
	return ok;
}

static bool dimensions_check(const struct qwen_cmd *c,
			     const struct qwen_config *m, struct err *e)
{
	return c->dimensions <= m->hidden ||
	       err_set(e, ERR_USAGE, "--dimensions %llu: the model has %u",
		       (unsigned long long)c->dimensions, m->hidden);
}

bool qwen_cmd_embed(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct texts t = { 0 };
	struct qwen_session s;
	bool ok;

	if (r->format == TABLE_CSV && !c->cosine)
		return err_set(e, ERR_USAGE,
			       "--csv without --cosine: vectors "
			       "are lines of JSON");
	if (c->instruct && !c->queries.n)
		return err_set(e, ERR_USAGE,
			       "--instruct without --query: only "
			       "queries have an instruction");
	c->headless = true;
	if (!qwen_session_open(&s, c, QWEN_WORDS, e))
		return false;
	for (int i = 0; i < c->queries.n; i++)
		add_text(&t, c->queries.v[i], true);
	ok = dimensions_check(c, &s.model.config, e) &&
	     documents_add(&t, c, 0, c->queries.n > 0, e) &&
	     texts_encode(&t, c, &s, e) && embed_texts(c, &s, &t, e);
	texts_fini(&t);
	qwen_session_close(&s);
	return ok;
}

/* ---- rerank ---- */

struct judged {
	size_t document;
	double score;
};

/* The best first, of equals the first. */
static int by_score(const void *a, const void *b)
{
	const struct judged *x = a, *y = b;

	return x->score != y->score ?
		       (x->score < y->score) - (x->score > y->score) :
		       (x->document > y->document) -
			       (x->document < y->document);
}

static bool print_scores(const struct qwen_cmd *c, const struct texts *t,
			 const double *score, struct err *e)
{
	struct judged *list = xcalloc(t->all.n, sizeof(*list));
	struct table out;

	for (size_t i = 0; i < t->all.n; i++)
		list[i] = (struct judged){ i, score[i] };
	qsort(list, t->all.n, sizeof(*list), by_score);
	table_init(&out, "#document,#score,text");
	for (size_t i = 0; i < t->all.n; i++) {
		table_row(&out);
		table_cell(&out, 0, "%zu", list[i].document);
		table_cell(&out, 1, "%.6f", list[i].score);
		shown_cell(&out, 2, &t->all.v[list[i].document]);
	}
	bool ok = cmd_table(&c->cmd, &out, e);
	table_fini(&out);
	free(list);
	return ok;
}

static bool prompts_encode(struct texts *t, const struct qwen_cmd *c,
			   struct qwen_encoder *x, struct err *e)
{
	bool ok = true;

	t->ids = xcalloc(t->all.n + 1, sizeof(*t->ids));
	for (size_t i = 0; ok && i < t->all.n; i++)
		ok = qwen_judge_encode(x, instruction_of(c), c->cmd.argv[0],
				       t->all.v[i].s, t->all.v[i].n,
				       text_flags(c), &t->ids[i], e);
	return ok;
}

static bool judge_texts(const struct qwen_cmd *c, const struct qwen_session *s,
			struct texts *t, struct err *e)
{
	struct qwen_judging how = { .max_tokens = (uint32_t)c->chunk };
	struct qwen_encoder *x = qwen_encoder_new(s->tok);
	double *score = xcalloc(t->all.n + 1, sizeof(*score));
	uint32_t longest = 0;

	qwen_encoder_stop(x, c->stop);
	bool ok = qwen_judge_words(x, &how.yes, &how.no, e) &&
		  prompts_encode(t, c, x, e) &&
		  (longest = longest_text(t, c, &s->model.config, e)) &&
		  qwen_cmd_state(c, s, 1, longest, &how.state, e) &&
		  qwen_judge(&how, t->ids, (uint32_t)t->all.n, score, e) &&
		  print_scores(c, t, score, e);

	qwen_state_free(how.state);
	qwen_encoder_free(x);
	free(score);
	return ok;
}

bool qwen_cmd_rerank(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct texts t = { 0 };
	struct qwen_session s;

	if (!qwen_session_open(&s, c, QWEN_WORDS, e))
		return false;
	bool ok = documents_add(&t, c, 1, false, e) &&
		  judge_texts(c, &s, &t, e);
	texts_fini(&t);
	qwen_session_close(&s);
	return ok;
}
