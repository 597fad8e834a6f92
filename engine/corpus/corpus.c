/*
 * engine/corpus/corpus.c - texts, conversations and shards become tokens.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/vec.h"
#include "engine/corpus/corpus.h"

struct reader {
	struct corpus *c;
	const struct qwen_tokenizer *t;
	struct qwen_encoder *encoder;
	uint32_t vocab;
	const char *path;
	/* Instead of tokens: texts, up to so many bytes. */
	struct buf *text;
	size_t most_bytes;
};

void corpus_fini(struct corpus *c)
{
	free(c->token);
	free(c->skipped);
	*c = (struct corpus){ 0 };
}

/* ---- tokens ---- */

/* `skipped`: NULL, all are learnt. */
static bool add_tokens(struct reader *r, const uint32_t *id, size_t n,
		       const uint8_t *skipped, struct err *e)
{
	struct corpus *c = r->c;
	size_t had = c->cap;

	for (size_t i = 0; i < n; i++)
		if (id[i] >= r->vocab)
			return err_set(e, ERR_INPUT, "%s: token %zu is %u; the "
				       "model has %u", r->path, i, id[i],
				       r->vocab);
	if (!n)
		return true;
	VEC_GROW(c->token, c->n, n, c->cap);
	if (skipped || c->skipped) {
		bool first = !c->skipped;
		if (first || had != c->cap)
			c->skipped = xrealloc(c->skipped, c->cap);
		if (first)
			memset(c->skipped, 0, c->n);
		if (skipped)
			memcpy(c->skipped + c->n, skipped, n);
		else
			memset(c->skipped + c->n, 0, n);
	}
	memcpy(c->token + c->n, id, n * sizeof(*id));
	c->n += n;
	c->hash = XXH64(id, n * sizeof(*id), c->hash);
	return true;
}

/*
 * Of a conversation in tokens: what the assistant says and its end.  The
 * template writes a turn as a mark, the role and a newline.
 */
static uint8_t *skip_others(const struct reader *r, const struct qwen_ids *ids)
{
	int64_t start = qwen_token_find(r->t, "<|im_start|>");
	int64_t end = qwen_token_find(r->t, "<|im_end|>");
	uint8_t *skipped = xmalloc(ids->n + 1);
	static const char spoken[] = "assistant\n";
	bool learnt = false, role = false;
	struct buf said = { 0 };

	for (size_t i = 0; i < ids->n; i++) {
		size_t n = 0;
		const char *s = qwen_token_bytes(r->t, ids->v[i], &n, NULL);

		skipped[i] = !learnt;
		if (ids->v[i] == start) {
			role = true;
			buf_reset(&said);
		} else if (role) {
			if (s)
				buf_add(&said, s, n);
			role = !s || !memchr(s, '\n', n);
			learnt = said.len == sizeof(spoken) - 1 &&
				 !memcmp(said.data, spoken, said.len);
		} else if (ids->v[i] == end) {
			learnt = false;
		}
	}
	skipped[ids->n] = 0;
	buf_fini(&said);
	return skipped;
}

/* One document, and the token that ends it. */
static bool add_document(struct reader *r, const char *text, size_t n,
			 bool talk, struct err *e)
{
	struct qwen_ids ids = { 0 };
	uint8_t *skipped = NULL;

	if (r->text) {
		size_t room = r->most_bytes - r->text->len;
		buf_add(r->text, text, n < room ? n : room);
		return true;
	}
	if (!r->encoder)
		return err_set(e, ERR_USAGE, "%s: is text, and the model has "
			       "no tokenizer; wanted shards of tokens (.bin)",
			       r->path);
	bool ok = qwen_encode(r->encoder, text, n, talk ? 0 : QWEN_PLAIN, &ids,
			      e);
	if (ok && talk)
		skipped = skip_others(r, &ids);
	qwen_ids_add(&ids, r->c->end);
	ok = ok && add_tokens(r, ids.v, ids.n, skipped, e);
	qwen_ids_fini(&ids);
	free(skipped);
	return ok;
}

/* ---- JSON lines ---- */

static bool add_object(struct reader *r, const json_t *j, struct err *e)
{
	const json_t *text = json_object_get(j, "text");
	const json_t *talk = json_object_get(j, "messages");
	struct buf out = { 0 };

	if (json_is_string(text))
		return add_document(r, json_string_value(text),
				    json_string_length(text), false, e);
	if (!json_is_array(talk))
		return err_set(e, ERR_INPUT, "wanted an object with \"text\" "
			       "or \"messages\"");
	char *s = json_dumps(talk, JSON_COMPACT);
	bool ok = qwen_chat(s, NULL, 0, &out, e) &&
		  add_document(r, out.data, out.len, true, e);
	free(s);
	buf_fini(&out);
	return ok;
}

#define LINE_BYTES ((size_t)64 << 20)

static bool add_lines(struct reader *r, struct err *e)
{
	struct file_lines l;
	char *line;
	size_t n;

	if (!file_lines_open(&l, r->path, LINE_BYTES, e))
		return false;
	bool ok = true;
	while (ok && (ok = file_lines_next(&l, &line, &n, e)) && line) {
		json_error_t why;
		if (!n)
			continue;
		json_t *j = json_loadb(line, n, 0, &why);
		ok = j ? add_object(r, j, e) :
			 err_set(e, ERR_INPUT, "%s", why.text);
		json_decref(j);
		if (!ok)
			err_wrap(e, "%s:%llu", r->path,
				 (unsigned long long)l.line);
	}
	file_lines_close(&l);
	return ok;
}

/* ---- shards ---- */

/* llm.c's headers say what follows; nanoGPT has none. */
#define LLM_HEADER_BYTES 1024
#define LLM_UINT16	 20240520
#define LLM_UINT32	 20240801

static bool shard_header(const struct reader *r, const struct buf *b,
			 size_t *from, size_t *width, struct err *e)
{
	uint32_t head[3] = { 0 };

	*from = 0;
	*width = 2;
	if (b->len >= sizeof(head))
		memcpy(head, b->data, sizeof(head));
	if (head[0] == LLM_UINT16 || head[0] == LLM_UINT32) {
		*from = LLM_HEADER_BYTES;
		*width = head[0] == LLM_UINT16 ? 2 : 4;
		if (b->len < *from || (b->len - *from) / *width != head[2])
			return err_set(e, ERR_INPUT, "%s: has %zu bytes; its "
				       "header says %u tokens of %zu", r->path,
				       b->len, head[2], *width);
	}
	return (b->len - *from) % *width == 0 ||
	       err_set(e, ERR_INPUT, "%s: %zu bytes are no whole number of "
		       "tokens of %zu", r->path, b->len - *from, *width);
}

static bool add_shard(struct reader *r, struct err *e)
{
	struct buf b = { 0 };
	size_t from, width;
	bool ok = !r->text || err_set(e, ERR_USAGE, "%s: tokens are no text "
				      "to train a tokenizer on; wanted a "
				      "model with one", r->path);

	ok = ok && file_read(r->path, (size_t)16 << 30, &b, e) &&
	     shard_header(r, &b, &from, &width, e);
	size_t n = ok ? (b.len - from) / width : 0;
	uint32_t *id = xcalloc(n + 1, sizeof(*id));
	for (size_t i = 0; i < n; i++)
		memcpy(id + i, b.data + from + i * width, width);
	ok = ok && add_tokens(r, id, n, NULL, e);
	free(id);
	buf_fini(&b);
	return ok;
}

/* ---- paths ---- */

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static bool add_file(struct reader *r, struct err *e)
{
	struct buf b = { 0 };

	if (ends_with(r->path, ".bin"))
		return add_shard(r, e);
	if (ends_with(r->path, ".jsonl"))
		return add_lines(r, e);
	bool ok = file_read(r->path, (size_t)4 << 30, &b, e) &&
		  add_document(r, b.data ? b.data : "", b.len, false, e);
	buf_fini(&b);
	return ok;
}

/* Regular files, not links to them: nothing is learnt twice. */
static bool add_folder(struct reader *r, const char *path, struct err *e)
{
	struct dirent **name;
	int n = scandir(path, &name, NULL, alphasort);
	bool ok = true;

	if (n < 0)
		return err_sys(e, ERR_IO, errno, "%s", path);
	for (int i = 0; i < n; i++) {
		struct buf file = { 0 };
		struct stat st;

		buf_printf(&file, "%s/%s", path, name[i]->d_name);
		r->path = file.data;
		if (ok && lstat(file.data, &st) == 0 && S_ISREG(st.st_mode))
			ok = add_file(r, e);
		buf_fini(&file);
		free(name[i]);
	}
	free(name);
	return ok;
}

static bool add_path(struct reader *r, const char *path, struct err *e)
{
	struct stat st;

	r->path = path;
	if (stat(path, &st) != 0)
		return err_sys(e, ERR_IO, errno, "%s", path);
	if (S_ISFIFO(st.st_mode))
		return err_set(e, ERR_INPUT, "%s is a pipe, and texts are read "
			       "more than once; wanted a file or a folder",
			       path);
	return S_ISDIR(st.st_mode) ? add_folder(r, path, e) : add_file(r, e);
}

bool corpus_add(struct corpus *c, const char *path,
		const struct qwen_tokenizer *t, uint32_t vocab, struct err *e)
{
	struct reader r = { .c = c, .t = t, .vocab = vocab,
			    .encoder = t ? qwen_encoder_new(t) : NULL };

	if (r.encoder)
		qwen_encoder_stop(r.encoder, c->stop);
	bool ok = add_path(&r, path, e);
	if (r.encoder)
		qwen_encoder_free(r.encoder);
	return ok;
}

bool corpus_text(const char *path, size_t most_bytes, struct buf *out,
		 struct err *e)
{
	struct corpus none = { 0 };
	struct reader r = { .c = &none, .text = out,
			    .most_bytes = most_bytes };

	return add_path(&r, path, e);
}
