/*
 * Texts by a grammar: what JSON schemas take and what they do not, and random
 * texts of random schemas, which parse and satisfy them.
 */
#include <math.h>

#include "engine/grammar/grammar.h"
#include "engine/model/model.h"
#include "tests/serve/schema.h"
#include "tests/tap.h"
#include <unistd.h>

static struct qwen_tokenizer *tok;
static struct qwen_lexicon *lexicon;
static uint32_t vocab, byte_id[256];

static void find_bytes(void)
{
	for (uint32_t id = 0; id < vocab; id++) {
		size_t len;
		const char *s = qwen_token_bytes(tok, id, &len, NULL);
		if (s && len == 1)
			byte_id[(unsigned char)*s] = id;
	}
}

static bool take_text(struct qwen_matcher *m, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!qwen_matcher_take(m, byte_id[(unsigned char)s[i]]))
			return false;
	return true;
}

static bool accepts(const struct qwen_grammar *g, const char *s)
{
	struct qwen_matcher *m = qwen_matcher_new(g, lexicon);
	bool good = take_text(m, s, strlen(s)) && qwen_matcher_can_end(m);

	qwen_matcher_free(m);
	return good;
}

static struct qwen_grammar *load_schema(const char *text, struct err *e)
{
	json_t *s = json_loads(text, JSON_DECODE_ANY, NULL);
	struct qwen_grammar *g = qwen_grammar_schema(s, e);

	json_decref(s);
	return g;
}

static const struct {
	const char *schema, *yes[8], *no[10];
} by_hand[] = {
	{ "{}",
	  { "1", "\"\"", "[1, {\"a\": null}]", "-0.5e-7", "{\n    }",
	    "\"\\ud7ff\\u0001\xf0\x9f\x99\x82\"" },
	  { "", "01", "1.", "\"\\ud800\"", "\"\xff\"", "\"\xc0\x80\"", "\"\n\"",
	    "\"\\u0000\"", "[1,]", " 1" } },
	{ "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
	  "\"b\":true},\"required\":[\"a\"]}",
	  { "{\"a\":1}", "{ \"a\" : -20 , \"b\" : [] }", "{\"a\":0}" },
	  { "{}", "{\"b\":1}", "{\"a\":1.5}", "{\"a\":1,}", "{\"a\":1,\"c\":2}",
	    "{\"a\":\"1\"}", "{,\"a\":1}", "{\"a\":1}}" } },
	{ "{\"type\":\"object\",\"properties\":{\"ab\":{\"type\":\"null\"}},"
	  "\"additionalProperties\":{\"type\":\"boolean\"}}",
	  { "{}", "{\"ab\":null}", "{\"a\":true}", "{\"abc\":true,\"\":false}",
	    "{\"ab\":null,\"b\":true}" },
	  { "{\"ab\":true}", "{\"a\":null}", "{\"\\u0061b\":true}" } },
	{ "{\"type\":\"integer\",\"minimum\":-12,\"exclusiveMaximum\":130}",
	  { "-12", "-9", "0", "99", "100", "129" },
	  { "-13", "-0", "130", "007", "1e1", "200", "-" } },
	{ "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
	  { "\"ab\"", "\"\xe2\x82\xac\\n\\u00e9\"" },
	  { "\"a\"", "\"abcd\"", "ab", "\"a" } },
	{ "{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"enum\":[2,3]}],"
	  "\"items\":{\"type\":\"null\"},\"minItems\":1,\"maxItems\":3}",
	  { "[1]", "[1,3]", "[ 1 , 2 , null ]" },
	  { "[]", "[2]", "[1,1]", "[1,2,3]", "[1,2,null,null]" } },
	{ "{\"type\":\"array\",\"items\":false}", { "[]", "[ ]" }, { "[1]" } },
	{ "{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/n~1o\"}],"
	  "\"$defs\":{\"n/o\":{\"type\":\"object\",\"properties\":{\"o\":"
	  "{\"$ref\":\"#\"}},\"required\":[\"o\"]}}}",
	  { "null", "{\"o\":null}", "{\"o\":{\"o\":{\"o\":null}}}" },
	  { "{}", "{\"o\":1}", "{\"o\":null" } },
	{ "{\"type\":[\"string\",\"number\"]}",
	  { "1.5", "\"x\"", "-0.0", "1E+5" },
	  { "null", "1e", "1e999", "1234567890123456" } },
};

static void test_by_hand(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(by_hand); i++) {
		struct err e = { 0 };
		struct qwen_grammar *g = load_schema(by_hand[i].schema, &e);
		if (!ok(g, "a grammar: %s", by_hand[i].schema)) {
			diag("%s", e.msg);
			continue;
		}
		for (size_t k = 0; k < 8 && by_hand[i].yes[k]; k++)
			ok(accepts(g, by_hand[i].yes[k]), "%zu takes %zu", i,
			   k);
		for (size_t k = 0; k < 10 && by_hand[i].no[k]; k++)
			ok(!accepts(g, by_hand[i].no[k]), "%zu refuses %zu", i,
			   k);
		qwen_grammar_free(g);
	}
}

static void test_refused(void)
{
	static const char *const row[][2] = {
		{ "{\"type\":\"string\",\"pattern\":\"a\"}", "\"pattern\"" },
		{ "{\"not\":{}}", "\"not\"" },
		{ "{\"type\":\"number\",\"minimum\":1}", "\"minimum\"" },
		{ "{\"type\":\"thing\"}", "\"type\"" },
		{ "{\"$ref\":\"#/$defs/none\"}", "\"$ref\"" },
		{ "{\"$ref\":\"#\"}", "without end" },
		{ "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}}"
		  ",\"required\":[\"a\"]}",
		  "without end" },
		{ "{\"enum\":[]}", "\"enum\"" },
		{ "{\"enum\":[1],\"type\":\"string\"}", "\"enum\"" },
		{ "{\"type\":\"object\",\"required\":[\"a\"]}",
		  "\"required\"" },
		{ "{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}",
		  "\"minItems\"" },
		{ "{\"type\":\"string\",\"maxLength\":100000}",
		  "\"maxLength\"" },
		{ "{\"type\":\"array\",\"uniqueItems\":true}",
		  "\"uniqueItems\"" },
		{ "3", "no object" },
		{ "{\"properties\":{\"a\":false}}", "no object" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct err e = { 0 };
		ok(!load_schema(row[i][0], &e) && strstr(e.msg, row[i][1]),
		   "refused: %s", row[i][0]);
		if (!strstr(e.msg, row[i][1]))
			diag("%s", e.msg);
	}
}

/* Names and alternatives without end cost little until they are refused. */
static void test_large(void)
{
	json_t *s = json_pack("{s:s,s:{},s:{s:s}}", "type", "object",
			      "properties", "additionalProperties", "type",
			      "null");
	json_t *p = json_object_get(s, "properties");
	struct err e = { 0 };
	char name[20001];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	json_object_set_new(p, name, json_true());
	ok(!qwen_grammar_schema(s, &e) && strstr(e.msg, "too large"),
	   "a name of 20000 bytes beside others is refused");
	json_object_clear(p);
	json_object_del(s, "additionalProperties");
	for (int i = 0; i < 40000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		json_object_set_new(p, name, json_true());
	}
	e = (struct err){ 0 };
	ok(!qwen_grammar_schema(s, &e) && strstr(e.msg, "too large"),
	   "and 40000 properties");
	json_decref(s);
}

/* A token by chance of those that the mask leaves; UINT32_MAX: none. */
static uint32_t draw_token(struct qwen_matcher *m, uint32_t left,
			   uint64_t *seed, float *logits)
{
	uint32_t n = 0, id = UINT32_MAX;

	memset(logits, 0, vocab * sizeof(*logits));
	qwen_matcher_mask(m, left, logits, vocab, NULL, 0);
	for (uint32_t i = 0; i < vocab; i++)
		if (!isinf(logits[i]) && !below(seed, ++n))
			id = i;
	return id;
}

/* Writes a text in at most `left` tokens; false: it did not end. */
static bool write_text(const struct qwen_grammar *g, uint32_t left,
		       uint64_t *seed, struct buf *out)
{
	struct qwen_matcher *m = qwen_matcher_new(g, lexicon);
	float *logits = xcalloc(vocab, sizeof(*logits));

	while (left && !qwen_matcher_is_whole(m)) {
		uint32_t id = draw_token(m, left--, seed, logits);
		size_t len;
		if (id == UINT32_MAX || !qwen_matcher_take(m, id))
			break;
		const char *s = qwen_token_bytes(tok, id, &len, NULL);
		buf_add(out, s, len);
	}
	bool good = qwen_matcher_can_end(m);
	buf_adds(out, "");
	free(logits);
	qwen_matcher_free(m);
	return good;
}

static void test_random(uint32_t schemas)
{
	uint64_t seed = 20;
	uint32_t made = 0, texts = 0, ended = 0, parsed = 0, valid = 0;
	size_t bytes = 0;

	for (uint32_t i = 0; i < schemas; i++) {
		json_t *s = random_root(&seed);
		struct err e = { 0 };
		struct qwen_grammar *g = qwen_grammar_schema(s, &e);
		for (int k = 0; g && k < 4; k++, texts++) {
			struct buf b = { 0 };
			json_t *v;
			ended += write_text(
				g, qwen_grammar_least(g) + below(&seed, 80),
				&seed, &b);
			v = json_loads(b.data, 0, NULL);
			parsed += v != NULL;
			valid += v && is_valid(s, s, v);
			if (!v || !is_valid(s, s, v))
				diag("%s", b.data);
			bytes += b.len;
			json_decref(v);
			buf_fini(&b);
		}
		if (!g)
			diag("%s", e.msg);
		made += g != NULL;
		qwen_grammar_free(g);
		json_decref(s);
	}
	is_u64(made, schemas, "random schemas become grammars");
	is_u64(ended, texts, "all texts end in the tokens that are left");
	is_u64(parsed, texts, "and parse");
	is_u64(valid, texts, "and satisfy their schema");
	diag("%u texts of %zu bytes together", texts, bytes);
}

/* What the mask leaves is what single bytes lead on by, from the beginning. */
static void test_masks(void)
{
	uint64_t seed = 3;
	uint32_t wrong = 0, looked = 0;
	float *logits = xcalloc(vocab, sizeof(*logits));

	for (int i = 0; i < 12; i++) {
		json_t *s = random_root(&seed);
		struct err e = { 0 };
		struct qwen_grammar *g = qwen_grammar_schema(s, &e);
		struct qwen_matcher *m = qwen_matcher_new(g, lexicon);
		struct buf text = { 0 };
		for (uint32_t n = below(&seed, 12) + 1; n; n--) {
			size_t len;
			uint32_t id = draw_token(m, 1000, &seed, logits);
			if (id == UINT32_MAX)
				break;
			const char *b = qwen_token_bytes(tok, id, &len, NULL);
			qwen_matcher_take(m, id);
			buf_add(&text, b, len);
		}
		draw_token(m, 1000, &seed, logits);
		for (uint32_t id = 0; id < vocab; id++) {
			size_t len;
			bool special;
			const char *b =
				qwen_token_bytes(tok, id, &len, &special);
			struct qwen_matcher *other =
				qwen_matcher_new(g, lexicon);
			bool may = b && !special && len &&
				   take_text(other, text.data, text.len) &&
				   take_text(other, b, len);
			wrong += may != !isinf(logits[id]);
			looked++;
			qwen_matcher_free(other);
		}
		buf_fini(&text);
		qwen_matcher_free(m);
		qwen_grammar_free(g);
		json_decref(s);
	}
	is_u64(wrong, 0, "%u tokens are masked as their bytes say", looked);
	free(logits);
}

/* Stop tokens come where the text may end, and only there. */
static void test_stops(void)
{
	struct err e = { 0 };
	struct qwen_grammar *g =
		load_schema("{\"type\":\"integer\",\"minimum\":10}", &e);
	struct qwen_matcher *m = qwen_matcher_new(g, lexicon);
	const uint32_t stop = (uint32_t)qwen_token_find(tok, "<|im_end|>");
	float *logits = xcalloc(vocab, sizeof(*logits));

	qwen_matcher_mask(m, 9, logits, vocab, &stop, 1);
	ok(isinf(logits[stop]), "no stop before the beginning");
	take_text(m, "1", 1);
	qwen_matcher_mask(m, 9, logits, vocab, &stop, 1);
	ok(isinf(logits[stop]) && !qwen_matcher_can_end(m),
	   "nor where it is no value yet");
	take_text(m, "2", 1);
	memset(logits, 0, vocab * sizeof(*logits));
	qwen_matcher_mask(m, 9, logits, vocab, &stop, 1);
	ok(!isinf(logits[stop]) && !isinf(logits[byte_id['5']]) &&
		   qwen_matcher_can_end(m) && !qwen_matcher_is_whole(m),
	   "where it is one, it may stop or go on");
	ok(!qwen_matcher_take(m, stop), "a special token is no text");
	free(logits);
	qwen_matcher_free(m);
	qwen_grammar_free(g);
}

/* Of more states than are kept, and of depth without end. */
static void test_long(void)
{
	struct qwen_grammar *g = qwen_grammar_json();
	uint64_t seed = 8;
	struct buf b = { 0 };
	json_t *v;

	ok(write_text(g, 3000, &seed, &b), "a long object ends");
	v = json_loads(b.data, 0, NULL);
	ok(json_is_object(v), "and is one, of %zu bytes", b.len);
	json_decref(v);
	buf_reset(&b);
	for (int i = 0; i < 2000; i++)
		buf_adds(&b, "[");
	struct qwen_matcher *m = qwen_matcher_new(g, lexicon);
	float *logits = xcalloc(vocab, sizeof(*logits));
	take_text(m, "{\"a\":", 5);
	take_text(m, b.data, 1019);
	memset(logits, 0, vocab * sizeof(*logits));
	qwen_matcher_mask(m, 100000, logits, vocab, NULL, 0);
	ok(!isinf(logits[byte_id['[']]), "it goes 1020 deep");
	take_text(m, b.data, 6);
	memset(logits, 0, vocab * sizeof(*logits));
	qwen_matcher_mask(m, 100000, logits, vocab, NULL, 0);
	ok(isinf(logits[byte_id['[']]) && !isinf(logits[byte_id[']']]),
	   "and no deeper than 1025");
	free(logits);
	qwen_matcher_free(m);
	buf_fini(&b);
	qwen_grammar_free(g);
}

int main(void)
{
	char dir[] = "/tmp/t0-grammar-XXXXXX", command[64];
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 3 };
	struct err e = { 0 };

	if (!mkdtemp(dir) || !qwen_shape_find("tiny", &how.config, &e) ||
	    !qwen_synthetic_write(dir, &how, &e) ||
	    !(tok = qwen_tokenizer_load(dir, &e)))
		skip_all("no tokenizer: %s", e.msg);
	vocab = qwen_tokenizer_size(tok);
	lexicon = qwen_lexicon_new(tok);
	find_bytes();
	test_by_hand();
	test_refused();
	test_large();
	test_stops();
	test_masks();
	test_long();
	test_random(getenv("T0_SLOW") ? 5000 : 150);
	qwen_lexicon_free(lexicon);
	qwen_tokenizer_free(tok);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the model is gone");
	return plan_done();
}
