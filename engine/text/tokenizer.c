/*
 * engine/text/tokenizer.c - a tokenizer from its files.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/vec.h"
#include "engine/text/text_int.h"

#define MAX_TOKENS (1u << 22)
#define MAX_FILE_BYTES (256u << 20)

/*
 * Qwen2's split, as published, with white space written out: what a library
 * calls \s differs (U+180E), and the published tokenizer means White_Space.
 */
#define SPACE "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}" \
	      "\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
static const char split_pattern[] =
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
	"|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
	"|\\p{N}"
	"| ?[^" SPACE "\\p{L}\\p{N}]+[\\r\\n]*"
	"|[" SPACE "]*[\\r\\n]+"
	"|[" SPACE "]+(?![^" SPACE "])"
	"|[" SPACE "]+";

void qwen_ids_add(struct qwen_ids *ids, uint32_t id)
{
	vec_push(ids, id);
}

void qwen_ids_fini(struct qwen_ids *ids)
{
	free(ids->v);
	*ids = (struct qwen_ids){ 0 };
}

/* ---- the letters that stand for bytes in the files ---- */

/* Bytes that stand for themselves; the other 68 follow from U+0100 on. */
static bool is_itself(unsigned b)
{
	return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
}

void qwen_letters(char of[256][3])
{
	unsigned next = 256;

	for (unsigned b = 0; b < 256; b++) {
		unsigned c = is_itself(b) ? b : next++;
		of[b][0] = (char)(c < 0x80 ? c : 0xc0 | c >> 6);
		of[b][1] = (char)(c < 0x80 ? 0 : 0x80 | (c & 0x3f));
		of[b][2] = '\0';
	}
}

/* of[code point] = byte + 1, 0 where the code point stands for no byte. */
static void letters_init(uint16_t of[512])
{
	unsigned next = 256;

	memset(of, 0, 512 * sizeof(*of));
	for (unsigned b = 0; b < 256; b++)
		of[is_itself(b) ? b : next++] = (uint16_t)(b + 1);
}

/*
 * Turns letters (UTF-8, one or two bytes each) into the bytes that they stand
 * for; returns their number, -1 if a letter stands for none.
 */
static long letters_to_bytes(const uint16_t of[512], const char *s, size_t len,
			     char *out)
{
	long n = 0;

	for (size_t i = 0; i < len; n++) {
		unsigned c = (unsigned char)s[i++];
		if (c >= 0xc0 && i < len)
			c = (c & 0x1f) << 6 | ((unsigned char)s[i++] & 0x3f);
		if (c >= 512 || !of[c])
			return -1;
		out[n] = (char)(of[c] - 1);
	}
	return n;
}

/* ---- building ---- */

/* While the files are read: content to id, for merges. */
struct builder {
	struct qwen_tokenizer *t;
	uint16_t byte_of[512];
	uint32_t *slot; /* hash of token bytes to id */
	uint32_t slot_mask;
	struct buf text;
};

static uint32_t slots_for(size_t n)
{
	uint32_t size = 16;

	while (size < 2 * n)
		size *= 2;
	return size;
}

static uint32_t content_find(const struct builder *b, const char *s, size_t len)
{
	for (uint32_t i = (uint32_t)XXH3_64bits(s, len);; i++) {
		uint32_t id = b->slot[i & b->slot_mask];
		if (id == NO_TOKEN)
			return NO_TOKEN;
		const struct token *t = &b->t->token[id];
		if (t->len == len && memcmp(t->bytes, s, len) == 0)
			return id;
	}
}

static void content_put(struct builder *b, uint32_t id)
{
	const struct token *t = &b->t->token[id];
	uint32_t i = (uint32_t)XXH3_64bits(t->bytes, t->len);

	while (b->slot[i & b->slot_mask] != NO_TOKEN)
		i++;
	b->slot[i & b->slot_mask] = id;
}

static bool token_grow(struct qwen_tokenizer *t, uint64_t id, struct err *e)
{
	if (id >= MAX_TOKENS)
		return err_set(e, ERR_INPUT, "a token has id %llu; at most %u "
			       "are allowed", (unsigned long long)id,
			       MAX_TOKENS - 1);
	if (id < t->n_tokens)
		return true;
	if (id >= t->cap_tokens) {
		size_t cap = 2 * (id + 1);
		t->token = xrealloc(t->token, cap * sizeof(*t->token));
		memset(t->token + t->cap_tokens, 0,
		       (cap - t->cap_tokens) * sizeof(*t->token));
		t->cap_tokens = (uint32_t)cap;
	}
	t->n_tokens = (uint32_t)id + 1;
	return true;
}

static bool token_set(struct qwen_tokenizer *t, uint32_t id, const char *s,
		      size_t len, struct err *e)
{
	struct token *x = &t->token[id];

	if (x->bytes)
		return err_set(e, ERR_INPUT, "id %u is given to two tokens",
			       id);
	char *copy = arena_alloc(&t->mem, len + 1);
	memcpy(copy, s, len);
	x->bytes = copy;
	x->len = (uint32_t)len;
	return true;
}

static bool vocab_entry(struct builder *b, const char *letters,
			const json_t *id, struct err *e)
{
	size_t len = strlen(letters);
	long n;

	if (!json_is_integer(id) || json_integer_value(id) < 0)
		return err_set(e, ERR_INPUT, "token \"%s\" has no id", letters);
	if (!token_grow(b->t, (uint64_t)json_integer_value(id), e))
		return false;
	buf_reset(&b->text);
	buf_add(&b->text, letters, len);
	n = letters_to_bytes(b->byte_of, letters, len, b->text.data);
	if (n < 0) /* not byte-level: kept as it is, found by nobody */
		n = (long)len;
	return token_set(b->t, (uint32_t)json_integer_value(id), b->text.data,
			 (size_t)n, e);
}

static bool vocab_read(struct builder *b, json_t *vocab, struct err *e)
{
	const char *letters;
	json_t *id;

	if (!json_is_object(vocab) || !json_object_size(vocab))
		return err_set(e, ERR_INPUT, "the vocabulary is not an object "
			       "of token to id");
	json_object_foreach(vocab, letters, id)
		if (!vocab_entry(b, letters, id, e))
			return false;
	b->slot_mask = slots_for(b->t->n_tokens) - 1;
	b->slot = xmalloc((b->slot_mask + (size_t)1) * sizeof(*b->slot));
	memset(b->slot, 0xff, (b->slot_mask + (size_t)1) * sizeof(*b->slot));
	for (uint32_t i = 0; i < b->t->n_tokens; i++)
		if (b->t->token[i].bytes)
			content_put(b, i);
	for (int i = 0; i < 256; i++) {
		char c = (char)i;
		b->t->of_byte[i] = content_find(b, &c, 1);
		if (b->t->of_byte[i] == NO_TOKEN)
			return err_set(e, ERR_INPUT, "byte 0x%02x has no token "
				       "of its own", i);
	}
	return true;
}

static uint32_t pair_hash(uint32_t left, uint32_t right)
{
	uint64_t h = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15;

	return (uint32_t)(h >> 32);
}

const struct merge *qwen_merge_find(const struct qwen_tokenizer *t,
				    uint32_t left, uint32_t right)
{
	for (uint32_t i = pair_hash(left, right);; i++) {
		const struct merge *m = &t->merge[i & t->merge_mask];
		if (m->into == NO_TOKEN)
			return NULL;
		if (m->left == left && m->right == right)
			return m;
	}
}

static void merges_init(struct qwen_tokenizer *t, size_t n)
{
	t->merge_mask = slots_for(n) - 1;
	t->merge = xmalloc((t->merge_mask + (size_t)1) * sizeof(*t->merge));
	memset(t->merge, 0xff, (t->merge_mask + (size_t)1) * sizeof(*t->merge));
}

/* One rule: `left` and `right` in letters. */
static bool merge_add(struct builder *b, uint32_t rank, const char *left,
		      size_t left_len, const char *right, size_t right_len,
		      struct err *e)
{
	struct qwen_tokenizer *t = b->t;
	struct merge m = { .rank = rank };

	buf_reset(&b->text);
	buf_add(&b->text, left, left_len);
	buf_add(&b->text, right, right_len);
	char *s = b->text.data;
	long l = letters_to_bytes(b->byte_of, left, left_len, s);
	long r = l < 0 ? -1 : letters_to_bytes(b->byte_of, right, right_len,
					       s + l);
	if (l < 1 || r < 1 ||
	    (m.left = content_find(b, s, (size_t)l)) == NO_TOKEN ||
	    (m.right = content_find(b, s + l, (size_t)r)) == NO_TOKEN ||
	    (m.into = content_find(b, s, (size_t)(l + r))) == NO_TOKEN)
		return err_set(e, ERR_INPUT, "merge %u, \"%.*s %.*s\": a part "
			       "or the whole is not in the vocabulary", rank,
			       (int)left_len, left, (int)right_len, right);
	if (qwen_merge_find(t, m.left, m.right))
		return true; /* the first, lower rank counts */
	uint32_t i = pair_hash(m.left, m.right);
	while (t->merge[i & t->merge_mask].into != NO_TOKEN)
		i++;
	t->merge[i & t->merge_mask] = m;
	return true;
}

static bool merge_text(struct builder *b, uint32_t rank, const char *s,
		       size_t len, struct err *e)
{
	const char *gap = memchr(s, ' ', len);

	if (!gap || memchr(gap + 1, ' ', len - (size_t)(gap + 1 - s)))
		return err_set(e, ERR_INPUT, "merge %u, \"%.*s\": wanted two "
			       "parts with a space between", rank, (int)len, s);
	return merge_add(b, rank, s, (size_t)(gap - s), gap + 1,
			 len - (size_t)(gap + 1 - s), e);
}

/* A list of "a b", or of ["a", "b"]. */
static bool merges_json(struct builder *b, const json_t *list, struct err *e)
{
	const json_t *m;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > MAX_TOKENS)
		return err_set(e, ERR_INPUT, "\"merges\" is not a list");
	merges_init(b->t, json_array_size(list));
	json_array_foreach(list, i, m) {
		const char *left = json_string_value(json_array_get(m, 0));
		const char *right = json_string_value(json_array_get(m, 1));
		bool ok;
		if (json_is_string(m))
			ok = merge_text(b, (uint32_t)i, json_string_value(m),
					json_string_length(m), e);
		else if (left && right && json_array_size(m) == 2)
			ok = merge_add(b, (uint32_t)i, left, strlen(left),
				       right, strlen(right), e);
		else
			ok = err_set(e, ERR_INPUT, "merge %zu is neither a "
				     "string nor a pair", i);
		if (!ok)
			return false;
	}
	return true;
}

static bool merges_lines(struct builder *b, const char *s, struct err *e)
{
	uint32_t lines = 1, rank = 0;

	for (const char *p = s; *p; p++)
		lines += *p == '\n';
	merges_init(b->t, lines);
	for (bool first = true; *s; first = false) {
		size_t len = strcspn(s, "\n");
		size_t text = len && s[len - 1] == '\r' ? len - 1 : len;
		bool version = first && strncmp(s, "#version", 8) == 0;
		if (text && !version && !merge_text(b, rank++, s, text, e))
			return false;
		s += len + (s[len] == '\n');
	}
	return true;
}

/* ---- added tokens ---- */

static bool added_put(struct qwen_tokenizer *t, const char *content,
		      const json_t *id, bool special, struct err *e)
{
	if (!content || !*content || !json_is_integer(id) ||
	    json_integer_value(id) < 0)
		return err_set(e, ERR_INPUT, "an added token has no content or "
			       "no id");
	if (!token_grow(t, (uint64_t)json_integer_value(id), e))
		return err_wrap(e, "added token %s", content);
	uint32_t n = (uint32_t)json_integer_value(id);
	const struct token *was = &t->token[n];
	/* It may stand in the vocabulary, too. */
	if (was->bytes && (was->len != strlen(content) ||
			   memcmp(was->bytes, content, was->len) != 0))
		return err_set(e, ERR_INPUT, "added token %s has id %u, which "
			       "is another token's", content, n);
	if (!was->bytes && !token_set(t, n, content, strlen(content), e))
		return false;
	t->added_first[(unsigned char)*content] = true;
	t->token[n].special = special;
	VEC_GROW(t->added, t->n_added, 1, t->cap_added);
	if (!t->token[n].added)
		t->added[t->n_added++] = n;
	t->token[n].added = true;
	return true;
}

/* Of a list, or of an object id to entry ("added_tokens_decoder"). */
static bool added_entry(struct qwen_tokenizer *t, const json_t *x,
			const json_t *id, struct err *e)
{
	return added_put(t, json_string_value(json_object_get(x, "content")),
			 id ? id : json_object_get(x, "id"),
			 json_is_true(json_object_get(x, "special")), e);
}

static bool added_object(struct qwen_tokenizer *t, json_t *object,
			 struct err *e)
{
	const char *key;
	json_t *v;

	json_object_foreach(object, key, v) {
		if (json_is_integer(v)) { /* content: id */
			if (!added_put(t, key, v, true, e))
				return false;
			continue;
		}
		char *end;
		long long n = strtoll(key, &end, 10);
		if (*end || end == key)
			return err_set(e, ERR_INPUT, "added token \"%s\" is "
				       "not a number", key);
		json_t *id = json_integer(n);
		bool ok = added_entry(t, v, id, e);
		json_decref(id);
		if (!ok)
			return false;
	}
	return true;
}

static bool added_read(struct qwen_tokenizer *t, json_t *added, struct err *e)
{
	const json_t *x;
	size_t i;

	if (json_is_object(added))
		return added_object(t, added, e);
	if (added && !json_is_array(added) && !json_is_null(added))
		return err_set(e, ERR_INPUT,
			       "the added tokens are not a list or an object");
	json_array_foreach(added, i, x)
		if (!added_entry(t, x, NULL, e))
			return false;
	return true;
}

static int longest_first(const void *a, const void *b, void *ctx)
{
	const struct token *token = ctx;
	uint32_t x = token[*(const uint32_t *)a].len;
	uint32_t y = token[*(const uint32_t *)b].len;

	return (x < y) - (x > y);
}

/* ---- the whole ---- */

bool qwen_split_compile(struct qwen_tokenizer *t, struct err *e)
{
	PCRE2_SIZE at;
	int code;

	t->split = pcre2_compile((PCRE2_SPTR)split_pattern,
				 PCRE2_ZERO_TERMINATED,
				 PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK,
				 &code, &at, NULL);
	if (!t->split)
		return err_set(e, ERR_UNSUPPORTED, "this libpcre2 cannot "
			       "compile the split pattern (error %d)", code);
	/* Without a JIT compiler the interpreter does the same, slower. */
	pcre2_jit_compile(t->split, PCRE2_JIT_COMPLETE);
	return true;
}

static json_t *json_text(const char *text, const char *what, struct err *e)
{
	json_error_t je;
	json_t *j = json_loads(text, 0, &je);

	if (!j)
		err_set(e, ERR_INPUT, "%s:%d: %s", what, je.line, je.text);
	return j;
}

/* The pattern of split_pattern[], as tokenizer.json has it. */
static const char published_pattern[] =
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* Another model's tokenizer would give other tokens: refused. */
static bool kind_check(const json_t *j, struct err *e)
{
	const json_t *form = json_object_get(j, "normalizer"), *step;
	const char *type = json_string_value(json_object_get(form, "type"));
	size_t i;

	if (json_is_object(form) && (!type || strcmp(type, "NFC") != 0))
		return err_set(e, ERR_UNSUPPORTED, "\"normalizer\" is %s; "
			       "wanted NFC", type ? type : "of no type");
	json_array_foreach(json_object_get(json_object_get(j, "pre_tokenizer"),
					   "pretokenizers"), i, step) {
		const char *s = json_string_value(json_object_get(
			json_object_get(step, "pattern"), "Regex"));
		if (s && strcmp(s, published_pattern) != 0)
			return err_set(e, ERR_UNSUPPORTED, "\"pre_tokenizer\" "
				       "splits by \"%s\"; wanted Qwen's \"%s\"",
				       s, published_pattern);
	}
	return true;
}

static bool parse_json(struct builder *b, const char *text, struct err *e)
{
	json_t *j = json_text(text, "tokenizer.json", e);
	json_t *model = json_object_get(j, "model");
	const char *type = json_string_value(json_object_get(model, "type"));
	bool ok = false;

	if (!j)
		return false;
	if (type && strcmp(type, "BPE") != 0)
		err_set(e, ERR_UNSUPPORTED, "the model is \"%s\"; wanted BPE",
			type);
	else
		ok = kind_check(j, e) &&
		     vocab_read(b, json_object_get(model, "vocab"), e) &&
		     merges_json(b, json_object_get(model, "merges"), e) &&
		     added_read(b->t, json_object_get(j, "added_tokens"), e);
	json_decref(j);
	return ok || err_wrap(e, "tokenizer.json");
}

static bool parse_added(struct qwen_tokenizer *t, const char *text,
			const char *file, const char *key, struct err *e)
{
	json_t *j = json_text(text, file, e);
	bool ok = j && (added_read(t, key ? json_object_get(j, key) : j, e) ||
			err_wrap(e, "%s", file));

	json_decref(j);
	return ok;
}

static bool parse_files(struct builder *b, const struct qwen_source *s,
			struct err *e)
{
	json_t *vocab = json_text(s->vocab, "vocab.json", e);
	bool ok = vocab && (vocab_read(b, vocab, e) ||
			    err_wrap(e, "vocab.json"));

	json_decref(vocab);
	if (!ok)
		return false;
	if (!merges_lines(b, s->merges, e))
		return err_wrap(e, "merges.txt");
	if (s->config)
		return parse_added(b->t, s->config, "tokenizer_config.json",
				   "added_tokens_decoder", e);
	return !s->added ||
	       parse_added(b->t, s->added, "added_tokens.json", NULL, e);
}

struct qwen_tokenizer *qwen_tokenizer_parse(const struct qwen_source *s,
					    struct err *e)
{
	struct qwen_tokenizer *t = xcalloc(1, sizeof(*t));
	struct builder b = { .t = t };
	bool ok;

	letters_init(b.byte_of);
	ok = (s->json ? parse_json(&b, s->json, e) : parse_files(&b, s, e)) &&
	     qwen_split_compile(t, e);
	free(b.slot);
	buf_fini(&b.text);
	if (!ok) {
		qwen_tokenizer_free(t);
		return NULL;
	}
	if (t->n_added)
		qsort_r(t->added, t->n_added, sizeof(*t->added), longest_first,
			t->token);
	return t;
}

/* *text stays NULL where there is no such file and it is not required. */
static bool read_one(struct arena *mem, const char *dir, const char *name,
		     bool required, const char **text, struct err *e)
{
	char *path = arena_printf(mem, "%s/%s", dir, name);
	struct buf b = { 0 };

	if (!required && access(path, F_OK) != 0)
		return true;
	if (!file_read(path, MAX_FILE_BYTES, &b, e))
		return false;
	buf_addc(&b, '\0');
	*text = memcpy(arena_alloc(mem, b.len), b.data, b.len);
	buf_fini(&b);
	return true;
}

struct qwen_tokenizer *qwen_tokenizer_load(const char *dir, struct err *e)
{
	struct qwen_tokenizer *t = NULL;
	struct qwen_source s = { 0 };
	struct arena mem = { 0 };

	if (qwen_is_hfq(dir))
		return qwen_hfq_tokenizer_load(dir, e);
	if (qwen_is_file(dir))
		return qwen_gguf_tokenizer_load(dir, e);
	if (read_one(&mem, dir, "tokenizer.json", false, &s.json, e) &&
	    (s.json ||
	     (read_one(&mem, dir, "vocab.json", true, &s.vocab, e) &&
	      read_one(&mem, dir, "merges.txt", true, &s.merges, e) &&
	      read_one(&mem, dir, "added_tokens.json", false, &s.added, e) &&
	      read_one(&mem, dir, "tokenizer_config.json", false, &s.config,
		       e)))) {
		t = qwen_tokenizer_get(&s, e);
		if (!t)
			err_wrap(e, "%s", dir);
	}
	arena_fini(&mem);
	return t;
}

void qwen_tokenizer_free(struct qwen_tokenizer *t)
{
	if (!t)
		return;
	pcre2_code_free(t->split);
	free(t->token);
	if (t->map)
		munmap(t->map, t->map_bytes);
	else
		free(t->merge);
	free(t->added);
	arena_fini(&t->mem);
	free(t);
}

/* ---- questions ---- */

uint32_t qwen_tokenizer_size(const struct qwen_tokenizer *t)
{
	return t->n_tokens;
}

int64_t qwen_token_find(const struct qwen_tokenizer *t, const char *content)
{
	for (uint32_t i = 0; i < t->n_added; i++)
		if (strcmp(t->token[t->added[i]].bytes, content) == 0)
			return t->added[i];
	return -1;
}

const char *qwen_token_bytes(const struct qwen_tokenizer *t, uint32_t id,
			     size_t *len_bytes, bool *special)
{
	if (id >= t->n_tokens || !t->token[id].bytes)
		return NULL;
	*len_bytes = t->token[id].len;
	if (special)
		*special = t->token[id].special;
	return t->token[id].bytes;
}
