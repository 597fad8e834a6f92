/* GGUF files: what is read, and what is refused and how. */
#include <stdlib.h>
#include <string.h>

#include "engine/files/files.h"
#include "tests/tap.h"

/* ---- files, byte by byte from the published layout ---- */

static void put_int(struct buf *b, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_addc(b, (char)(v >> 8 * i));
}

static void put_text(struct buf *b, const char *s)
{
	put_int(b, strlen(s), 8);
	buf_adds(b, s);
}

static void put_head(struct buf *b, uint32_t version, uint64_t tensors,
		     uint64_t keys)
{
	buf_adds(b, "GGUF");
	put_int(b, version, 4);
	put_int(b, tensors, 8);
	put_int(b, keys, 8);
}

static void put_key(struct buf *b, const char *key, uint32_t type)
{
	put_text(b, key);
	put_int(b, type, 4);
}

static void put_tensor(struct buf *b, const char *name, uint64_t cols,
		       uint64_t rows, uint32_t type, uint64_t offset)
{
	put_text(b, name);
	put_int(b, rows ? 2 : 1, 4);
	put_int(b, cols, 8);
	if (rows)
		put_int(b, rows, 8);
	put_int(b, type, 4);
	put_int(b, offset, 8);
}

static void put_data(struct buf *b, size_t align, size_t bytes)
{
	while (b->len % align)
		buf_addc(b, 0);
	for (size_t i = 0; i < bytes; i++)
		buf_addc(b, (char)i);
}

static const struct qwen_gguf_value *find_value(const struct qwen_gguf *g,
						const char *key)
{
	const struct qwen_gguf_value *v = qwen_gguf_find(g, key);

	ok(v != NULL, "%s is there", key);
	return v;
}

/* ---- what is read ---- */

static void test_values(void)
{
	static const struct {
		const char *key;
		uint32_t type;
		uint64_t bits;
		int bytes;
		int64_t want;
	} whole[] = {
		{ "a", 0, 0xff, 1, 255 },      { "b", 1, 0xff, 1, -1 },
		{ "c", 2, 0xfffe, 2, 65534 },  { "d", 3, 0xfffe, 2, -2 },
		{ "e", 4, 0xffffffff, 4, 4294967295 },
		{ "f", 5, 0x80000000, 4, -2147483648 },
		{ "g", 7, 1, 1, 1 },	       { "h", 10, 7, 8, 7 },
		{ "i", 11, UINT64_MAX, 8, -1 },
	};
	struct buf b = { 0 };
	struct qwen_gguf g;
	struct err e = { 0 };
	int64_t n;
	double x;

	put_head(&b, 3, 0, ARRAY_SIZE(whole) + 3);
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		put_key(&b, whole[i].key, whole[i].type);
		put_int(&b, whole[i].bits, whole[i].bytes);
	}
	put_key(&b, "eps", 6);
	put_int(&b, 0x358637bd, 4); /* the f32 next to 1e-6 */
	put_key(&b, "half", 12);
	put_int(&b, 0x3fe0000000000000, 8);
	put_key(&b, "big", 10);
	put_int(&b, UINT64_MAX, 8);
	if (!ok(qwen_gguf_parse(&g, "f", b.data, b.len, &e),
		"numbers of every type are read"))
		diag("%s", e.msg);
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		ok(qwen_gguf_int(find_value(&g, whole[i].key), 0, &n) &&
			   n == whole[i].want,
		   "type %u is %lld", whole[i].type, (long long)whole[i].want);
	ok(!qwen_gguf_int(find_value(&g, "big"), 0, &n),
	   "2^64 - 1 is too large");
	ok(qwen_gguf_real(find_value(&g, "eps"), 0, &x) && x == 1e-6,
	   "an f32 is the decimal it was written for");
	ok(qwen_gguf_real(find_value(&g, "half"), 0, &x) && x == 0.5, "an f64");
	ok(qwen_gguf_real(find_value(&g, "d"), 0, &x) && x == -2,
	   "a whole one");
	ok(!qwen_gguf_int(find_value(&g, "half"), 0, &n),
	   "a half is not whole");
	ok(!qwen_gguf_find(&g, "z"), "what is not there is not found");
	qwen_gguf_close(&g);
	buf_fini(&b);
}

static void test_arrays(void)
{
	const uint8_t *at = NULL;
	struct buf b = { 0 };
	struct qwen_gguf g;
	struct err e = { 0 };
	const char *s;
	int64_t n;
	size_t len;

	put_head(&b, 2, 0, 2);
	put_key(&b, "tokens", 9);
	put_int(&b, 8, 4);
	put_int(&b, 3, 8);
	put_text(&b, "one");
	put_text(&b, "");
	put_text(&b, "three");
	put_key(&b, "types", 9);
	put_int(&b, 5, 4);
	put_int(&b, 2, 8);
	put_int(&b, 4, 4);
	put_int(&b, UINT32_MAX, 4);
	ok(qwen_gguf_parse(&g, "f", b.data, b.len, &e),
	   "arrays are read, in version 2");
	const struct qwen_gguf_value *v = find_value(&g, "tokens");
	ok(v->array && v->n == 3 && v->type == QWEN_GGUF_STRING, "of strings");
	ok(qwen_gguf_text(v, &at, &s, &len) && len == 3 &&
	   memcmp(s, "one", 3) == 0 && qwen_gguf_text(v, &at, &s, &len) &&
	   len == 0 && qwen_gguf_text(v, &at, &s, &len) && len == 5 &&
	   memcmp(s, "three", 5) == 0, "in their order");
	ok(!qwen_gguf_text(v, &at, &s, &len), "and no more");
	ok(!qwen_gguf_int(v, 0, &n), "a string is no number");
	v = find_value(&g, "types");
	ok(qwen_gguf_int(v, 1, &n) && n == -1 && !qwen_gguf_int(v, 2, &n),
	   "of numbers");
	at = NULL;
	ok(!qwen_gguf_text(v, &at, &s, &len), "a number is no string");
	qwen_gguf_close(&g);
	buf_fini(&b);
}

static void test_tensors(void)
{
	struct buf b = { 0 };
	struct qwen_gguf g;
	struct err e = { 0 };

	put_head(&b, 3, 3, 1);
	put_key(&b, "general.alignment", 4);
	put_int(&b, 64, 4);
	put_tensor(&b, "z", 3, 2, 0, 0);
	put_tensor(&b, "q", 256, 2, 12, 64);
	put_tensor(&b, "h", 5, 0, 30, 64 + 320);
	put_data(&b, 64, 64 + 320 + 10);
	if (!ok(qwen_gguf_parse(&g, "f", b.data, b.len, &e),
		"tensors are read"))
		diag("%s", e.msg);
	const struct qwen_tensor *q = qwen_tensor_find(&g.t, "q");
	ok(q && q->dtype == QWEN_Q4_K && q->n_dims == 2 && q->shape[0] == 2 &&
	   q->shape[1] == 256, "shapes are outermost first");
	is_u64(q->size_bytes, 288, "blocks of 144 bytes");
	is_mem(q->data, "\x40\x41\x42", 3, "at their place");
	const struct qwen_tensor *h = qwen_tensor_find(&g.t, "h");
	ok(h && h->dtype == QWEN_BF16 && h->n_dims == 1 && h->shape[0] == 5,
	   "and a vector");
	is_u64(g.t.total_bytes, 24 + 288 + 10, "bytes without what pads them");
	qwen_gguf_close(&g);
	/* One byte less, and any number of them. */
	uint32_t taken = 0;
	for (size_t n = 0; n < b.len; n++) {
		uint8_t *part = memcpy(xmalloc(n + 1), b.data, n);
		taken += qwen_gguf_parse(&g, "f", part, n, &e);
		free(part);
	}
	is_u64(taken, 0, "no shorter file is taken");
	buf_fini(&b);
}

/* ---- what is refused ---- */

/* What follows a head of one key, or of one tensor and no key. */
static void check_refusal(const char *what, bool tensor, const struct buf *rest,
			  const char *part)
{
	struct buf b = { 0 };
	struct qwen_gguf g;
	struct err e = { 0 };

	put_head(&b, 3, tensor, !tensor);
	buf_add(&b, rest->data, rest->len);
	put_data(&b, 32, 64);
	ok(!qwen_gguf_parse(&g, "x.gguf", b.data, b.len, &e) &&
	   (e.code == ERR_INPUT || e.code == ERR_UNSUPPORTED), "%s is refused",
	   what);
	has_str(e.msg, part, "%s: says what", what);
	has_str(e.msg, "x.gguf: ", "%s: names the file", what);
	buf_fini(&b);
}

static void refuse_key(const char *what, const char *key, uint32_t type,
		       uint64_t bits, int bytes, const char *part)
{
	struct buf b = { 0 };

	put_key(&b, key, type);
	put_int(&b, bits, bytes);
	check_refusal(what, false, &b, part);
	buf_fini(&b);
}

static void refuse_array(const char *what, uint32_t type, uint64_t n,
			 const char *part)
{
	struct buf b = { 0 };

	put_key(&b, "k", 9);
	put_int(&b, type, 4);
	put_int(&b, n, 8);
	check_refusal(what, false, &b, part);
	buf_fini(&b);
}

static void refuse_tensor(const char *what, const char *name, uint64_t cols,
			  uint64_t rows, uint32_t type, uint64_t offset,
			  const char *part)
{
	struct buf b = { 0 };

	put_tensor(&b, name, cols, rows, type, offset);
	check_refusal(what, true, &b, part);
	buf_fini(&b);
}

static void test_refused(void)
{
	refuse_key("a type of value that is not there", "k", 13, 0, 8,
		   "k: type 13 is unknown");
	refuse_key("a string longer than the file", "k", 8, 1u << 20, 8,
		   "k: a string needs 1048576 bytes");
	refuse_key("a string longer than everything", "k", 8, UINT64_MAX, 8,
		   "needs 18446744073709551615 bytes");
	refuse_key("a key without a name", "", 4, 0, 4, "key 0: a key has 0");
	refuse_key("an alignment of 7", "general.alignment", 4, 7, 4,
		   "general.alignment is 7; wanted a power of two");
	refuse_key("an alignment of 0", "general.alignment", 4, 0, 4,
		   "general.alignment is 0");
	refuse_key("a part of a model", "split.count", 2, 3, 2,
		   "split into 3 files");
	refuse_array("an array of arrays", 9, 1, "an array of arrays");
	refuse_array("an array longer than the file", 4, 1000, "u32 needs 4000");
	refuse_array("an array whose size overflows", 10, UINT64_MAX / 4,
		     "u64 needs");
	refuse_array("strings without end", 8, UINT64_MAX, "a string needs");
	refuse_tensor("a type of tensor that is not there", "t", 32, 2, 16, 0,
		      "tensor t: type 16 of ggml is not known");
	refuse_tensor("rows of broken blocks", "t", 33, 2, 8, 0,
		      "has rows of 33 values; Q8_0 comes in blocks of 32");
	refuse_tensor("rows of broken super-blocks", "t", 128, 2, 12, 0,
		      "rows of 128 values; Q4_K comes in blocks of 256");
	refuse_tensor("a shape that overflows", "t", 1ull << 40, 1ull << 40, 0,
		      0, "dimensions are too large");
	refuse_tensor("a byte count that overflows", "t", 1ull << 61, 2, 0, 0,
		      "dimensions are too large");
	refuse_tensor("a place that is not the next", "t", 4, 2, 0, 32,
		      "lies at byte 32 of the data; behind the one before it "
		      "comes 0");
	refuse_tensor("data beyond the file", "t", 32, 2, 0, 0,
		      "tensor t needs 256 bytes from byte 0 of the data on, "
		      "which has 64");
	refuse_tensor("a tensor without a name", "", 4, 2, 0, 0,
		      "tensor 0: a tensor's name has 0 bytes");
}

/* Heads: a mark, a version, numbers that the file cannot hold. */
static void test_heads(void)
{
	static const struct {
		const char *what, *mark;
		uint64_t version, tensors, keys;
		const char *part;
	} bad[] = {
		{ "another format", "GGML", 3, 0, 0, "begins with 47 47 4d" },
		{ "version 1", "GGUF", 1, 0, 0, "GGUF version 1; wanted 2" },
		{ "version 4", "GGUF", 4, 0, 0, "GGUF version 4" },
		{ "the other byte order", "GGUF", 3u << 24, 0, 0,
		  "big-endian" },
		{ "too many keys", "GGUF", 3, 0, UINT64_MAX, "keys do not fit" },
		{ "too many tensors", "GGUF", 3, UINT64_MAX, 0,
		  "tensors do not fit" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct buf b = { 0 };
		struct qwen_gguf g;
		struct err e = { 0 };
		buf_adds(&b, bad[i].mark);
		put_int(&b, bad[i].version, 4);
		put_int(&b, bad[i].tensors, 8);
		put_int(&b, bad[i].keys, 8);
		ok(!qwen_gguf_parse(&g, "x.gguf", b.data, b.len, &e),
		   "%s is refused", bad[i].what);
		has_str(e.msg, bad[i].part, "%s: says what", bad[i].what);
		buf_fini(&b);
	}
}

static void test_twice(void)
{
	struct buf b = { 0 };
	struct qwen_gguf g;
	struct err e = { 0 };

	put_head(&b, 3, 0, 2);
	for (int i = 0; i < 2; i++) {
		put_key(&b, "k", 0);
		put_int(&b, 1, 1);
	}
	ok(!qwen_gguf_parse(&g, "f", b.data, b.len, &e), "a key that is twice");
	has_str(e.msg, "key k is there twice", "is refused");
	buf_reset(&b);
	put_head(&b, 3, 2, 0);
	put_tensor(&b, "t", 8, 0, 0, 0);
	put_tensor(&b, "t", 8, 0, 0, 32);
	put_data(&b, 32, 64);
	ok(!qwen_gguf_parse(&g, "f", b.data, b.len, &e), "a tensor, too");
	has_str(e.msg, "tensor t", "is named");
	buf_fini(&b);
}

int main(void)
{
	test_values();
	test_arrays();
	test_tensors();
	test_refused();
	test_heads();
	test_twice();
	return plan_done();
}
