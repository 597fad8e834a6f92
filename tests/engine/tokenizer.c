/*
 * The tokenizer against published vectors, against values worked out by hand,
 * and against a slow second implementation: a split written out by hand over
 * code points, and merging by looking at all pairs again and again.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

#include "engine/text/text.h"
#include "tests/tap.h"

#define QWEN "../shared/vectors/qwen/"

/* ---- small vocabularies ---- */

static void utf8_add(struct buf *b, int32_t c)
{
	utf8proc_uint8_t s[4];

	buf_add(b, s, (size_t)utf8proc_encode_char(c, s));
}

/* The letter of a byte: GPT-2's published map. */
static int32_t letter(unsigned byte)
{
	int32_t next = 256;

	for (unsigned b = 0; b < 256; b++) {
		bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) ||
			      b >= 174;
		if (b == byte)
			return itself ? (int32_t)b : next;
		next += !itself;
	}
	return 0;
}

/* Ids as GPT-2 orders bytes: those that are themselves first. */
static json_t *byte_vocab(void)
{
	json_t *v = json_object();

	for (int pass = 0; pass < 2; pass++)
		for (unsigned b = 0; b < 256; b++) {
			struct buf s = { 0 };
			if ((letter(b) < 256) != !pass)
				continue;
			utf8_add(&s, letter(b));
			json_object_set_new(v, s.data,
					    json_integer((json_int_t)
						json_object_size(v)));
			buf_fini(&s);
		}
	return v;
}

static struct qwen_tokenizer *with_vocab(json_t *vocab, const char *merges,
					 const char *added)
{
	struct err e = { 0 };
	char *text = json_dumps(vocab, 0);
	struct qwen_source s = { .vocab = text, .merges = merges,
				 .added = added };
	struct qwen_tokenizer *t = qwen_tokenizer_parse(&s, &e);

	if (!t)
		diag("%s", e.msg);
	free(text);
	return t;
}

static void ids_text(const struct qwen_ids *ids, struct buf *b)
{
	buf_reset(b);
	buf_adds(b, "");
	for (size_t i = 0; i < ids->n; i++)
		buf_printf(b, "%s%u", i ? " " : "", ids->v[i]);
}

static void encodes(const struct qwen_tokenizer *t, const char *text,
		    size_t len, unsigned flags, const char *wanted,
		    const char *name)
{
	struct qwen_encoder *x = qwen_encoder_new(t);
	struct qwen_ids ids = { 0 };
	struct buf got = { 0 };
	struct err e = { 0 };

	if (!ok(qwen_encode(x, text, len, flags, &ids, &e), "%s: encodes",
		name))
		diag("%s", e.msg);
	ids_text(&ids, &got);
	is_str(got.len ? got.data : "", wanted, "%s", name);
	buf_fini(&got);
	qwen_ids_fini(&ids);
	qwen_encoder_free(x);
}

/* ab, abc and bc with ranks so that the order of merging shows. */
static void test_by_hand(void)
{
	json_t *v = byte_vocab();
	const char *more[] = { "bc", "ab", "abc", "\xc4\xa0" "a" }; /* "Ġa" */

	for (int i = 0; i < 4; i++)
		json_object_set_new(v, more[i], json_integer(256 + i));
	struct qwen_tokenizer *t = with_vocab(v,
		"#version: 0.2\nb c\na b\nab c\n\xc4\xa0 a\n",
		"[{\"id\":300,\"content\":\"<x>\",\"special\":true},"
		"{\"id\":301,\"content\":\"<xy>\",\"special\":false}]");
	ok(t, "a vocabulary of bytes and four merges");
	is_u64(qwen_tokenizer_size(t), 302, "ids are counted to the largest");
	/* 'a' is 97 - 33 = 64; "bc" has the lowest rank and takes b away. */
	encodes(t, "abc", 3, 0, "64 256", "the lowest rank merges first");
	encodes(t, "ab", 2, 0, "257", "ab");
	encodes(t, "abbc", 4, 0, "257 256", "both merges in one word");
	encodes(t, " a", 2, 0, "259", "a word takes the space before it");
	encodes(t, "  a", 3, 0, "220 259", "but only one");
	encodes(t, "a<x>b", 5, 0, "64 300 65", "an added token is one id");
	encodes(t, "a<xy>", 5, 0, "64 301", "the longest added token wins");
	encodes(t, "a<x>", 4, QWEN_PLAIN, "64 27 87 29", "or it is text");
	encodes(t, "", 0, 0, "", "nothing");
	/* 188 bytes are themselves: 0xff is the last of them, 0 comes next. */
	encodes(t, "a\xff""b", 3, 0, "64 187 65", "a byte that is not UTF-8");
	encodes(t, "a\0b", 3, 0, "64 188 65", "a zero byte is text");
	is_i64(qwen_token_find(t, "<xy>"), 301, "an added token is found");
	is_i64(qwen_token_find(t, "ab"), -1, "others are not added");
	qwen_tokenizer_free(t);
	json_decref(v);
}

static void test_nfc(void)
{
	json_t *v = byte_vocab();
	struct qwen_tokenizer *t = with_vocab(v, "", NULL);

	/*
	 * U+00E9 is C3 A9.  Bytes below that are not themselves do not count:
	 * 33 controls and the space, 34 from DEL to A0, and AD.
	 */
	struct buf one = { 0 };
	buf_printf(&one, "%d %d", 0xc3 - 33 - 34 - 1, 0xa9 - 33 - 34);
	encodes(t, "e\xcc\x81", 3, 0, one.data,
		"e and a combining accent become one character");
	encodes(t, "\xc3\xa9", 2, 0, one.data, "which is the same as itself");
	/* U+AC00 U+11A7 is EA B0 80 E1 86 A7; 0x80 is the 67th other byte. */
	buf_reset(&one);
	buf_printf(&one, "%d %d %d %d %d %d", 0xea - 33 - 34 - 1,
		   0xb0 - 33 - 34 - 1, 188 + 33 + 1, 0xe1 - 33 - 34 - 1,
		   188 + 33 + 7, 0xa7 - 33 - 34);
	encodes(t, "\xea\xb0\x80\xe1\x86\xa7", 6, 0, one.data,
		"a syllable's neighbour that is no consonant stays");
	/* U+0301 is of class 230, U+0316 of 220 and is first: CC 81, CC 96. */
	buf_reset(&one);
	for (int i = 0; i < 4; i++)
		buf_printf(&one, "%s%d %d", i ? " " : "", 0xcc - 33 - 34 - 1,
			   188 + 33 + (i < 2 ? 0x96 : 0x81) - 0x7f);
	encodes(t, "\xcc\x81\xcc\x96\xcc\x81\xcc\x96", 8, 0, one.data,
		"marks stand in the order of their class");
	buf_fini(&one);
	qwen_tokenizer_free(t);
	json_decref(v);
}

/* Neighbours swapped one by one would take minutes. */
static void test_many_marks(void)
{
	json_t *v = byte_vocab();
	struct qwen_tokenizer *t = with_vocab(v, "", NULL);
	struct qwen_encoder *x = qwen_encoder_new(t);
	struct qwen_ids ids = { 0 };
	struct buf text = { 0 };
	struct err e = { 0 };

	for (int i = 0; i < 250000; i++)
		buf_adds(&text, "\xcc\x81\xcc\x96");
	clock_t from = clock();
	ok(qwen_encode(x, text.data, text.len, 0, &ids, &e),
	   "a megabyte of marks out of order");
	ok(clock() - from < 20 * CLOCKS_PER_SEC, "takes no minutes");
	is_u64(ids.n, text.len, "nothing is lost");
	ok(ids.v[1] == ids.v[499999] && ids.v[1] != ids.v[500001],
	   "the lower class is before the other");
	buf_fini(&text);
	qwen_ids_fini(&ids);
	qwen_encoder_free(x);
	qwen_tokenizer_free(t);
	json_decref(v);
}

static void test_decode(void)
{
	json_t *v = byte_vocab();
	struct qwen_tokenizer *t = with_vocab(v, "",
		"[{\"id\":300,\"content\":\"<x>\",\"special\":true}]");
	struct qwen_encoder *x = qwen_encoder_new(t);
	struct qwen_detokenizer d = { 0 };
	struct qwen_ids ids = { 0 };
	struct buf out = { 0 };
	struct err e = { 0 };

	qwen_encode(x, "\xe2\x82\xac!\xf0\x9f", 6, 0, &ids, &e);
	qwen_detokenize(&d, t, ids.v[0], &out);
	qwen_detokenize(&d, t, ids.v[1], &out);
	is_u64(out.len, 0, "two bytes of three are held back");
	qwen_detokenize(&d, t, ids.v[2], &out);
	is_str(out.data, "\xe2\x82\xac", "until the character is whole");
	for (size_t i = 3; i < ids.n; i++)
		qwen_detokenize(&d, t, ids.v[i], &out);
	is_str(out.data, "\xe2\x82\xac!", "what never becomes whole waits");
	qwen_detokenize_end(&d, &out);
	is_mem(out.data, "\xe2\x82\xac!\xf0\x9f", 6, "and comes at the end");
	buf_reset(&out);
	d.skip_special = true;
	qwen_detokenize(&d, t, 300, &out);
	qwen_detokenize(&d, t, 299, &out);
	qwen_detokenize(&d, t, 1u << 31, &out);
	is_u64(out.len, 0, "special tokens can be left out, no id is no text");
	buf_fini(&out);
	qwen_ids_fini(&ids);
	qwen_encoder_free(x);
	qwen_tokenizer_free(t);
	json_decref(v);
}

static void refused(const struct qwen_source *s, const char *part,
		    const char *name)
{
	struct err e = { 0 };
	struct qwen_tokenizer *t = qwen_tokenizer_parse(s, &e);

	ok(!t && e.code == ERR_INPUT, "%s is refused", name);
	has_str(e.msg, part, "%s: the message says why", name);
	qwen_tokenizer_free(t);
}

/* tokenizer.json of bytes alone, with this split pattern and normalizer. */
static struct qwen_tokenizer *of_kind(const char *pattern, const char *form,
				      struct err *e)
{
	json_t *j = json_pack(
		"{s:{s:s}, s:{s:s, s:[{s:s, s:{s:s}}, {s:s}]}, "
		"s:{s:s, s:o, s:[]}}",
		"normalizer", "type", form, "pre_tokenizer", "type", "Sequence",
		"pretokenizers", "type", "Split", "pattern", "Regex", pattern,
		"type", "ByteLevel", "model", "type", "BPE", "vocab",
		byte_vocab(), "merges");
	char *text = json_dumps(j, 0);
	struct qwen_source s = { .json = text };
	struct qwen_tokenizer *t = qwen_tokenizer_parse(&s, e);

	free(text);
	json_decref(j);
	return t;
}

/* Patterns as Qwen3 and Llama 3 publish them; the latter keeps three digits. */
static void test_kinds(void)
{
	static const char qwen[] =
		"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
		"\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
		"\\s+(?!\\S)|\\s+";
	static const char llama[] =
		"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
		"\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
		"\\s+(?!\\S)|\\s+";
	struct err e = { 0 };
	struct qwen_tokenizer *t = of_kind(qwen, "NFC", &e);

	if (!ok(t, "Qwen's own split"))
		diag("%s", e.msg);
	qwen_tokenizer_free(t);
	ok(!of_kind(llama, "NFC", &e) && e.code == ERR_UNSUPPORTED,
	   "another split would give other tokens and is refused");
	has_str(e.msg, "\\p{N}{1,3}", "with what it is");
	ok(!of_kind(qwen, "NFKC", &e) && e.code == ERR_UNSUPPORTED,
	   "and so is another form");
	has_str(e.msg, "\"normalizer\" is NFKC; wanted NFC", "by name");
}

static void test_refuses(void)
{
	json_t *v = byte_vocab();
	char *bytes = json_dumps(v, 0);
	char *id = strstr(bytes, ": 7,");

	refused(&(struct qwen_source){ .json = "{" }, "tokenizer.json:1:",
		"half a file");
	refused(&(struct qwen_source){ .json = "{\"model\":{\"vocab\":[]}}" },
		"not an object", "a vocabulary that is a list");
	refused(&(struct qwen_source){ .vocab = "{\"a\": -1}", .merges = "" },
		"has no id", "a negative id");
	refused(&(struct qwen_source){ .vocab = "{\"a\": 1e9}", .merges = "" },
		"has no id", "an id that is not whole");
	refused(&(struct qwen_source){ .vocab = "{\"a\":99999999}",
				       .merges = "" },
		"at most", "an id beyond reason");
	refused(&(struct qwen_source){ .vocab = "{\"a\": 1}", .merges = "" },
		"no token of its own", "a vocabulary without all bytes");
	refused(&(struct qwen_source){ .vocab = bytes, .merges = "a b\n" },
		"merge 0", "a merge into nothing");
	refused(&(struct qwen_source){ .vocab = bytes, .merges = "ab\n" },
		"two parts", "a merge of one part");
	refused(&(struct qwen_source){ .vocab = bytes, .merges = "",
				       .added = "[{\"id\": 3}]" },
		"no content", "an added token without content");
	refused(&(struct qwen_source){ .vocab = bytes, .merges = "",
				       .added = "[{\"id\": 3, \"content\": "
						"\"<x>\"}]" },
		"another token's", "an added token in another's place");
	memcpy(id, ": 8,", 4);
	refused(&(struct qwen_source){ .vocab = bytes, .merges = "" },
		"two tokens", "an id given twice");
	free(bytes);
	json_decref(v);
}

/* ---- the slow reference ---- */

struct slow {
	json_t *rank; /* "left right" in letters: rank */
	json_t *id;   /* letters: id */
};

static bool is_letter(int32_t c)
{
	utf8proc_category_t k = utf8proc_category(c);

	return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

static bool is_number(int32_t c)
{
	utf8proc_category_t k = utf8proc_category(c);

	return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

/* Unicode's property White_Space. */
static bool is_space(int32_t c)
{
	return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xa0 ||
	       c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
	       c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static bool is_break(int32_t c)
{
	return c == '\r' || c == '\n';
}

static int32_t fold(int32_t c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c == 0x17f ? 's' : c;
}

static size_t contraction(const int32_t *c, size_t n)
{
	static const char *const tail[] = { "s", "t", "re", "ve", "m", "ll",
					    "d" };

	if (c[0] != '\'')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(tail); i++) {
		size_t k = 0;
		while (tail[i][k] && 1 + k < n && fold(c[1 + k]) == tail[i][k])
			k++;
		if (!tail[i][k])
			return 1 + k;
	}
	return 0;
}

static bool is_mark(int32_t c)
{
	return !is_space(c) && !is_letter(c) && !is_number(c);
}

static size_t spaces(const int32_t *c, size_t n)
{
	size_t run = 0, broken = 0;

	while (run < n && is_space(c[run]))
		if (is_break(c[run++]))
			broken = run;
	if (broken)
		return broken;
	return run == n || run == 1 ? run : run - 1;
}

/* Code points of the first piece of c[0..n). */
static size_t slow_split(const int32_t *c, size_t n)
{
	size_t k = contraction(c, n);

	if (k)
		return k;
	k = !is_break(c[0]) && !is_letter(c[0]) && !is_number(c[0]);
	if (k < n && is_letter(c[k])) {
		while (k < n && is_letter(c[k]))
			k++;
		return k;
	}
	if (is_number(c[0]))
		return 1;
	k = c[0] == ' ';
	if (k < n && is_mark(c[k])) {
		while (k < n && is_mark(c[k]))
			k++;
		while (k < n && is_break(c[k]))
			k++;
		return k;
	}
	return spaces(c, n);
}

static json_int_t slow_rank(const struct slow *s, const char *a, const char *b)
{
	char key[4096];

	snprintf(key, sizeof(key), "%s %s", a, b);
	json_t *r = json_object_get(s->rank, key);
	return r ? json_integer_value(r) : -1;
}

static void slow_piece(const struct slow *s, const uint8_t *bytes, size_t n,
		       struct qwen_ids *ids)
{
	char **part = xcalloc(n + 1, sizeof(*part));

	for (size_t i = 0; i < n; i++) {
		struct buf b = { 0 };
		utf8_add(&b, letter(bytes[i]));
		part[i] = b.data;
	}
	for (;;) {
		json_int_t best = -1;
		size_t at = 0;
		for (size_t i = 0; i + 1 < n; i++) {
			json_int_t r = slow_rank(s, part[i], part[i + 1]);
			if (r >= 0 && (best < 0 || r < best)) {
				best = r;
				at = i;
			}
		}
		if (best < 0)
			break;
		struct buf b = { 0 };
		buf_printf(&b, "%s%s", part[at], part[at + 1]);
		free(part[at]);
		free(part[at + 1]);
		part[at] = b.data;
		memmove(part + at + 1, part + at + 2,
			(n - at - 2) * sizeof(*part));
		n--;
	}
	for (size_t i = 0; i < n; i++) {
		qwen_ids_add(ids, (uint32_t)json_integer_value(
			json_object_get(s->id, part[i])));
		free(part[i]);
	}
	free(part);
}

static void slow_encode(const struct slow *s, const char *text,
			struct qwen_ids *ids)
{
	utf8proc_uint8_t *nfc = utf8proc_NFC((const utf8proc_uint8_t *)text);
	size_t len = strlen((char *)nfc), n = 0;
	int32_t *c = xcalloc(len + 1, sizeof(*c));
	size_t *at = xcalloc(len + 1, sizeof(*at));

	for (size_t i = 0; i < len; n++) {
		at[n] = i;
		i += (size_t)utf8proc_iterate(nfc + i, -1, &c[n]);
	}
	at[n] = len;
	for (size_t i = 0, k; i < n; i += k) {
		k = slow_split(c + i, n - i);
		slow_piece(s, nfc + at[i], at[i + k] - at[i], ids);
	}
	free(c);
	free(at);
	free(nfc);
}

/* ---- strings of many scripts ---- */

static const struct {
	int32_t from, to;
} range[] = {
	{ 'a', 'z' }, { 'A', 'Z' }, { '0', '9' }, { ' ', '/' }, { ':', '@' },
	{ ' ', ' ' }, { '\t', '\r' }, { '\'', '\'' }, { 's', 't' },
	{ 0x80, 0xff }, { 0x100, 0x17f }, { 0x300, 0x36f }, /* combining */
	{ 0x391, 0x3c9 }, { 0x410, 0x44f }, { 0x5d0, 0x5ea }, { 0x621, 0x64a },
	{ 0x660, 0x669 }, { 0x904, 0x94d }, { 0xe01, 0xe3a },
	{ 0x1100, 0x1175 },
	{ 0x1780, 0x17b3 }, { 0x180b, 0x180e }, { 0x2000, 0x200f },
	{ 0x2028, 0x202f }, { 0x2150, 0x218b }, { 0x3000, 0x3002 },
	{ 0x3041, 0x3096 }, { 0x4e00, 0x9fff }, { 0xac00, 0xd7a3 },
	{ 0xfe00, 0xfe0f }, { 0x1f300, 0x1f64f }, { 0x1f1e6, 0x1f1ff },
	{ 0x20000, 0x2a6df }, { 1, 31 },
};

static void random_text(uint64_t *seed, struct buf *b)
{
	size_t n = random_next(seed) % 40;
	size_t home = random_next(seed) % ARRAY_SIZE(range);

	buf_reset(b);
	buf_adds(b, "");
	for (size_t i = 0; i < n; i++) {
		size_t r = random_next(seed) % 3 ? home :
			   random_next(seed) % ARRAY_SIZE(range);
		uint64_t span = (uint64_t)(range[r].to - range[r].from + 1);
		utf8_add(b, range[r].from +
				    (int32_t)(random_next(seed) % span));
		if (random_next(seed) % 8 == 0)
			home = random_next(seed) % ARRAY_SIZE(range);
	}
}

/* `count` strings on which both agree, and which come back as NFC. */
static void agrees(const struct qwen_tokenizer *t, const struct slow *s,
		   unsigned count, uint64_t seed, const char *name)
{
	struct qwen_encoder *x = qwen_encoder_new(t);
	struct qwen_ids fast = { 0 }, slow = { 0 };
	struct buf text = { 0 }, back = { 0 };
	unsigned differ = 0, lost = 0;
	struct err e = { 0 };

	diag("%s: seed %llu", name, (unsigned long long)seed);
	for (unsigned i = 0; i < count; i++) {
		random_text(&seed, &text);
		fast.n = slow.n = 0;
		const char *c = text.len ? text.data : "";
		qwen_encode(x, c, text.len, QWEN_PLAIN, &fast, &e);
		slow_encode(s, c, &slow);
		if (fast.n != slow.n ||
		    (fast.n && memcmp(fast.v, slow.v, fast.n * 4) != 0)) {
			if (!differ++)
				diag("first difference: %s", c);
		}
		struct qwen_detokenizer d = { 0 };
		buf_reset(&back);
		buf_adds(&back, "");
		for (size_t k = 0; k < fast.n; k++)
			qwen_detokenize(&d, t, fast.v[k], &back);
		utf8proc_uint8_t *nfc =
			utf8proc_NFC((const utf8proc_uint8_t *)c);
		lost += strcmp(back.len ? back.data : "", (char *)nfc) != 0;
		free(nfc);
	}
	is_u64(differ, 0, "%s: %u strings as the slow reference has them",
	       name, count);
	is_u64(lost, 0, "%s: and decoding gives them back", name);
	qwen_ids_fini(&fast);
	qwen_ids_fini(&slow);
	buf_fini(&text);
	buf_fini(&back);
	qwen_encoder_free(x);
}

/* Any bytes come back, also those that are no text. */
static void test_bytes(const struct qwen_tokenizer *t)
{
	struct qwen_encoder *x = qwen_encoder_new(t);
	struct qwen_ids ids = { 0 };
	struct buf back = { 0 };
	struct err e = { 0 };
	uint64_t seed = 5;
	unsigned lost = 0;

	for (int i = 0; i < 2000; i++) {
		struct qwen_detokenizer d = { 0 };
		char text[64];
		size_t n = random_next(&seed) % sizeof(text);
		for (size_t k = 0; k < n; k++)
			text[k] = (char)random_next(&seed);
		ids.n = 0;
		buf_reset(&back);
		qwen_encode(x, text, n, QWEN_NO_NFC, &ids, &e);
		for (size_t k = 0; k < ids.n; k++)
			qwen_detokenize(&d, t, ids.v[k], &back);
		qwen_detokenize_end(&d, &back);
		lost += back.len != n || memcmp(back.data, text, n) != 0;
	}
	is_u64(lost, 0, "2000 strings of random bytes come back");
	qwen_ids_fini(&ids);
	buf_fini(&back);
	qwen_encoder_free(x);
}

/*
 * A vocabulary of random merges over the bytes of the ranges above: ranks and
 * overlaps of every kind.
 */
static void test_random_merges(void)
{
	struct slow s = { json_object(), byte_vocab() };
	uint64_t seed = 20251;
	struct buf merges = { 0 }, both = { 0 }, text = { 0 };
	char *token[2000];
	size_t n = 0;

	for (unsigned b = 0; b < 256; b++) {
		struct buf l = { 0 };
		utf8_add(&l, letter(b));
		token[n++] = l.data;
	}
	for (int i = 0; i < 60000 && n < ARRAY_SIZE(token); i++) {
		const char *l = token[random_next(&seed) % n];
		const char *r = token[random_next(&seed) % n];
		/* of lower-case letters, mostly */
		if (random_next(&seed) % 4) {
			l = token['a' + random_next(&seed) % 26];
			r = token['a' + random_next(&seed) % 26];
		}
		buf_reset(&both);
		buf_printf(&both, "%s%s", l, r);
		if (json_object_get(s.id, both.data) || both.len > 24)
			continue;
		json_object_set_new(s.id, both.data,
				    json_integer((json_int_t)n));
		buf_printf(&merges, "%s %s\n", l, r);
		struct buf key = { 0 };
		buf_printf(&key, "%s %s", l, r);
		json_object_set_new(s.rank, key.data,
				    json_integer((json_int_t)
						 json_object_size(s.rank)));
		buf_fini(&key);
		token[n++] = xstrdup(both.data);
	}
	struct qwen_tokenizer *t = with_vocab(s.id, merges.data, NULL);
	agrees(t, &s, 2500, 77, "random merges");
	test_bytes(t);
	for (size_t i = 0; i < n; i++)
		free(token[i]);
	qwen_tokenizer_free(t);
	json_decref(s.rank);
	json_decref(s.id);
	buf_fini(&merges);
	buf_fini(&both);
	buf_fini(&text);
}

/* ---- published vectors ---- */

static char *slurp(const char *path)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	if (!file_read(path, 0, &b, &e))
		return NULL;
	buf_addc(&b, '\0');
	return b.data;
}

static void one_vector(const struct qwen_tokenizer *t, unsigned flags,
		       const char *json, const char *wanted, int line)
{
	json_t *text = json_loads(json, JSON_DECODE_ANY, NULL);
	char name[64];

	snprintf(name, sizeof(name), "published vector, line %d", line);
	encodes(t, json_string_value(text), json_string_length(text), flags,
		wanted, name);
	json_decref(text);
}

static struct qwen_tokenizer *toy(const char *vocab, const char *merges)
{
	json_t *v = byte_vocab(), *more = json_loads(vocab, 0, NULL);
	json_t *rules = json_loads(merges, 0, NULL), *x;
	struct buf lines = { 0 };
	size_t i;

	json_array_foreach(more, i, x)
		json_object_set_new(v, json_string_value(x),
				    json_integer((json_int_t)(256 + i)));
	json_array_foreach(rules, i, x)
		buf_printf(&lines, "%s\n", json_string_value(x));
	struct qwen_tokenizer *t = with_vocab(v, lines.data,
		"[{\"id\":270,\"content\":\"<|endoftext|>\","
		"\"special\":true}]");
	buf_fini(&lines);
	json_decref(v);
	json_decref(more);
	json_decref(rules);
	return t;
}

static void all_vectors(const struct qwen_tokenizer *t, char *text)
{
	struct qwen_tokenizer *small = NULL;
	char *vocab = NULL, *save, *line;
	int n = 0;

	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *f[5] = { 0 };
		n++;
		for (int i = 0; line && i < 5; i++)
			f[i] = strsep(&line, "\t");
		if (*f[0] == '#' || !f[2])
			continue;
		if (strcmp(f[0], "plain") == 0)
			one_vector(t, QWEN_PLAIN, f[2], f[3] ? f[3] : "", n);
		else if (strcmp(f[0], "encode") == 0)
			one_vector(t, 0, f[2], f[3], n);
		else if (strcmp(f[0], "toyvocab") == 0)
			vocab = f[2];
		else if (strcmp(f[0], "toymerges") == 0)
			small = toy(vocab, f[2]);
		else
			one_vector(small, 0, f[2], f[3], n);
	}
	qwen_tokenizer_free(small);
}

static void real_reference(const struct qwen_tokenizer *t, const char *vocab,
			   char *merges)
{
	struct slow s = { json_object(), json_loads(vocab, 0, NULL) };
	json_int_t rank = 0;
	char *save;

	for (char *line = strtok_r(merges, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (*line != '#' || rank)
			json_object_set_new(s.rank, line, json_integer(rank++));
	agrees(t, &s, 2500, 4711, "Qwen's vocabulary");
	json_decref(s.rank);
	json_decref(s.id);
}

static void test_published(void)
{
	struct qwen_source s = { 0 };
	struct err e = { 0 };
	char *text = slurp(QWEN "vectors.tsv");
	char *vocab = slurp(QWEN "vocab.json");
	char *merges = slurp(QWEN "merges.txt");
	char *added = slurp(QWEN "added_tokens.json");

	if (!text || !vocab || !merges || !added) {
		diag("NO VECTORS: " QWEN " is not there, so the real Qwen "
		     "tokenizer was not checked");
		skip("no published vectors");
	} else {
		s = (struct qwen_source){ .vocab = vocab, .merges = merges,
					  .added = added };
		struct qwen_tokenizer *t = qwen_tokenizer_parse(&s, &e);
		if (ok(t, "Qwen's own files are read")) {
			all_vectors(t, text);
			real_reference(t, vocab, merges);
		} else {
			diag("%s", e.msg);
		}
		qwen_tokenizer_free(t);
	}
	free(text);
	free(vocab);
	free(merges);
	free(added);
}

int main(void)
{
	test_by_hand();
	test_nfc();
	test_many_marks();
	test_decode();
	test_kinds();
	test_refuses();
	test_random_merges();
	test_published();
	return plan_done();
}
