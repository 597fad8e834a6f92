/*
 * hipfire's files: written here by their layout's own words, then blocks
 * against the definition, and logits against tests/ref/qwen.h on what the codes
 * stand for.  Hadamard matrices are taken by their entries, not by steps.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/float.h"
#include "engine/model/model.h"
#include "engine/text/text.h"
#include "tests/ref/qwen.h"

enum { N = 23, VOCAB = 512, GROUP = 256, BLOCKS = 1000 };
static struct threads *threads;
static char root[] = "/tmp/t0-hfq-XXXXXX";
static uint64_t seed = 29;

/* Numbers, values and bytes of a block, bits of a code, and is it turned? */
static const struct kind {
	int number;
	enum qwen_dtype type;
	int n, bytes, bits;
	bool turned;
} kinds[] = {
	{ 0, QWEN_Q4F16G64, 64, 36, 4, false },
	{ 6, QWEN_HFQ4G256, 256, 136, 4, false },
	{ 7, QWEN_HFQ4G128, 128, 72, 4, false },
	{ 8, QWEN_HFQ6G256, 256, 200, 6, false },
	{ 9, QWEN_HFQ2G256, 256, 72, 2, false },
	{ 10, QWEN_HFQ2G128, 128, 40, 2, false },
	{ 11, QWEN_HFQ3G256, 256, 104, 3, false },
	{ 12, QWEN_HFQ3G128, 128, 56, 3, false },
	{ 13, QWEN_MQ4G256, 256, 136, 4, true },
	{ 14, QWEN_MQ8G256, 256, 258, 8, true },
	{ 15, QWEN_MQ6G256, 256, 200, 6, true },
};

static uint32_t draw_word(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33);
}

/* ---- the layouts ---- */

static void sign_lists(double s[2][GROUP])
{
	for (int k = 0; k < 2; k++) {
		uint32_t x = k ? 1042 : 42;
		for (int i = 0; i < GROUP; i++) {
			x = (uint32_t)((x * 1103515245ull + 12345) %
				       2147483648u);
			s[k][i] = x / 65536 % 2 ? 1 : -1;
		}
	}
}

/* Times signs `before`, the Hadamard matrix / 16, and signs `after`. */
static void turn_block(const double *x, const double *before,
		       const double *after, double *y)
{
	for (int j = 0; j < GROUP; j++) {
		double sum = 0;
		for (int i = 0; i < GROUP; i++)
			sum += __builtin_parity((unsigned)(i & j)) ?
				       -x[i] * before[i] :
				       x[i] * before[i];
		y[j] = sum / 16 * after[j];
	}
}

static void half_put(uint8_t *p, double v)
{
	const uint32_t h = (uint32_t)float_bits(v, 5, 10);

	p[0] = (uint8_t)h;
	p[1] = (uint8_t)(h >> 8);
}

/* Code i of a block: the bits one by one. */
static void code_put(const struct kind *k, uint8_t *b, int i, unsigned q)
{
	const int head = k->number == 0 ? 4 : 8;

	if (k->number == 0) {
		b[head + i % 32] |= (uint8_t)(q << i / 32 * 4);
		return;
	}
	for (int j = 0; j < k->bits; j++)
		if (q >> j & 1) {
			int at = i * k->bits + j;
			b[head + at / 8] |= (uint8_t)(1 << at % 8);
		}
}

/* A block of x[n], and the values that it stands for. */
static void pack_block(const struct kind *k, const float *x, uint8_t *b,
		       float *value)
{
	static double sign[2][GROUP];
	double y[GROUP] = { 0 }, z[GROUP], lo = INFINITY, hi = -INFINITY,
	       most = 0;
	float d, m;

	if (sign[0][0] == 0)
		sign_lists(sign);
	memset(b, 0, (size_t)k->bytes);
	for (int i = 0; i < k->n; i++)
		y[i] = x[i];
	if (k->turned)
		turn_block(y, sign[0], sign[1], z);
	for (int i = 0; i < k->n; i++) {
		y[i] = k->turned ? z[i] : y[i];
		lo = fmin(lo, y[i]);
		hi = fmax(hi, y[i]);
		most = fmax(most, fabs(y[i]));
	}
	d = (float)((hi - lo) / ((1 << k->bits) - 1));
	m = (float)lo;
	if (k->number == 0 || k->number == 14) {
		d = (float)float_value(
			float_bits(k->number ? most / 127 : d, 5, 10), 5, 10);
		m = (float)float_value(float_bits(m, 5, 10), 5, 10);
		half_put(b, d);
		if (k->number == 0)
			half_put(b + 2, m);
	} else {
		memcpy(b, &d, 4);
		memcpy(b + 4, &m, 4);
	}
	for (int i = 0; i < k->n; i++) {
		double q = rint((y[i] - m) / d);
		if (k->number == 14) {
			q = fmin(fmax(rint(y[i] / d), -128), 127);
			b[2 + i] = (uint8_t)(int)q;
			y[i] = d * (float)q;
			continue;
		}
		q = fmin(fmax(q, 0), (1 << k->bits) - 1);
		code_put(k, b, i, (unsigned)q);
		volatile float product = d * (float)q;
		y[i] = product + m;
	}
	if (k->turned)
		turn_block(y, sign[1], sign[0], z);
	for (int i = 0; i < k->n; i++)
		value[i] = (float)(k->turned ? z[i] : y[i]);
}

static void test_blocks(const struct kind *k)
{
	const struct qwen_tensor t = { .dtype = k->type,
				       .n_dims = 2,
				       .shape = { BLOCKS, (uint64_t)k->n } };
	uint8_t *b = xcalloc(BLOCKS, (size_t)k->bytes);
	float *want = xcalloc(BLOCKS * (size_t)k->n, sizeof(*want));
	float x[GROUP], got[GROUP];
	double off = 0;
	int differ = 0;

	is_i64(qwen_dtype_values(k->type), k->n, "type %d: values", k->number);
	is_i64(qwen_dtype_bytes(k->type), k->bytes, "type %d: bytes",
	       k->number);
	for (int i = 0; i < BLOCKS; i++) {
		float by = ldexpf(1, (int)(draw_word() % 20) - 14);
		for (int c = 0; c < k->n; c++)
			x[c] = by * (float)((double)draw_word() / 0x1p30 - 1);
		pack_block(k, x, b + (size_t)i * k->bytes,
			   want + (size_t)i * k->n);
	}
	struct qwen_tensor all = t;
	all.data = b;
	for (int i = 0; i < BLOCKS; i++) {
		double most = 0;
		qwen_packed_row(&all, (size_t)i, got);
		for (int c = 0; c < k->n; c++)
			most = fmax(most, fabs(want[i * k->n + c]));
		for (int c = 0; c < k->n; c++) {
			float w = want[i * k->n + c];
			differ += got[c] != w;
			off = fmax(off, fabs((double)got[c] - w) / most);
		}
	}
	if (k->turned)
		ok(off < 1e-6, "type %d: %d blocks within %.2g of the largest",
		   k->number, BLOCKS, off);
	else
		is_i64(differ, 0, "type %d: %d blocks to the bit", k->number,
		       BLOCKS);
	free(b);
	free(want);
}

/* ---- a file ---- */

static void put_number(struct buf *b, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_addc(b, (char)(v >> 8 * i));
}

struct parts {
	struct buf index, data;
	uint32_t n;
	bool gguf; /* dimensions as one made of a GGUF file has them */
};

static void tensor_put(struct parts *p, const struct qwen_tensor *t, int type,
		       uint32_t group, const void *data, size_t bytes)
{
	put_number(&p->index, strlen(t->name), 2);
	buf_adds(&p->index, t->name);
	put_number(&p->index, (uint64_t)type, 1);
	put_number(&p->index, t->n_dims, 1);
	for (uint32_t i = 0; i < t->n_dims; i++)
		put_number(&p->index, t->shape[p->gguf ? t->n_dims - 1 - i : i],
			   4);
	put_number(&p->index, group, 4);
	put_number(&p->index, bytes, 8);
	buf_add(&p->data, data, bytes);
	p->n++;
}

static void matrix_put(struct parts *p, const struct qwen_tensor *t,
		       const struct kind *k, float *value)
{
	const size_t blocks = t->count / (size_t)k->n;
	uint8_t *b = xcalloc(blocks, (size_t)k->bytes);

	for (size_t i = 0; i < blocks; i++)
		pack_block(k, (const float *)t->data + i * (size_t)k->n,
			   b + i * (size_t)k->bytes, value + i * (size_t)k->n);
	tensor_put(p, t, k->number, (uint32_t)k->n, b,
		   blocks * (size_t)k->bytes);
	free(b);
}

/* f16, as norms are, or blocks of 32 of f16 d, i8 q[32], as embeddings are. */
static void other_put(struct parts *p, const struct qwen_tensor *t,
		      float *value)
{
	const bool matrix = t->n_dims == 2;
	const float *x = t->data;
	struct buf b = { 0 };
	uint8_t two[2];

	for (uint64_t i = 0; i < t->count && !matrix; i++) {
		half_put(two, x[i]);
		buf_add(&b, two, 2);
		value[i] = (float)float_value(float_bits(x[i], 5, 10), 5, 10);
	}
	for (uint64_t i = 0; i < t->count && matrix; i += 32) {
		float most = 0;
		for (int j = 0; j < 32; j++)
			most = fmaxf(most, fabsf(x[i + j]));
		double d = float_value(float_bits(most / 127, 5, 10), 5, 10);
		half_put(two, d);
		buf_add(&b, two, 2);
		for (int j = 0; j < 32; j++) {
			int q = (int)fmin(fmax(rint(x[i + j] / d), -127), 127);
			buf_addc(&b, (char)q);
			value[i + j] = (float)(d * q);
		}
	}
	tensor_put(p, t, matrix ? 3 : 1, matrix ? 32 : 0, b.data, b.len);
	buf_fini(&b);
}

static void file_put(const char *path, const struct parts *p, const char *words)
{
	const uint64_t end = 32 + strlen(words) + 4 + p->index.len;
	const uint64_t data = (end + 4095) / 4096 * 4096;
	struct buf b = { 0 };
	struct err e = { 0 };

	buf_adds(&b, "HFQM");
	put_number(&b, 1, 4);
	put_number(&b, 1, 4);
	put_number(&b, p->n, 4);
	put_number(&b, 32, 8);
	put_number(&b, data, 8);
	buf_adds(&b, words);
	put_number(&b, p->n, 4);
	buf_add(&b, p->index.data, p->index.len);
	while (b.len < data)
		buf_addc(&b, 0);
	buf_add(&b, p->data.data, p->data.len);
	ok(file_write_atomic(path, b.data, b.len, &e), "%s is written", path);
	buf_fini(&b);
}

struct plain {
	struct qwen_tensor t[64];
	const void *data[64];
	size_t n;
};

static const void *bytes_of(void *ctx, size_t i, struct err *e)
{
	(void)e;
	return ((const struct plain *)ctx)->data[i];
}

/* A file of the model in `from`, and the folder of what it stands for. */
static void write_both(const char *from, const char *file, const char *plain,
		       bool gguf, const char *words)
{
	struct plain to = { .n = 0 };
	struct parts p = { .gguf = gguf };
	struct qwen_tensors all;
	struct err e = { 0 };
	char path[200];
	size_t kind = 0;

	qwen_tensors_open(&all, from, &e);
	for (size_t i = 0; i < all.n_tensors; i++) {
		const struct qwen_tensor *t = &all.tensor[i];
		float *v = xcalloc(t->count, sizeof(*v));
		if (t->n_dims == 1 || strstr(t->name, "embed"))
			other_put(&p, t, v);
		else
			matrix_put(&p, t, &kinds[kind++ % ARRAY_SIZE(kinds)],
				   v);
		to.t[to.n] = *t;
		to.data[to.n++] = v;
	}
	ok(kind > ARRAY_SIZE(kinds), "every type is there");
	file_put(file, &p, words);
	snprintf(path, sizeof(path), "%s/model.safetensors", plain);
	ok(qwen_tensors_write(path, to.t, to.n, bytes_of, &to, &e),
	   "and what it stands for");
	for (size_t i = 0; i < to.n; i++)
		free((void *)to.data[i]);
	buf_fini(&p.index);
	buf_fini(&p.data);
	qwen_tensors_close(&all);
}

/* ---- what it says ---- */

static char *text_of(const char *dir, const char *name)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!file_read(path, 0, &b, &e))
		diag("%s", e.msg);
	buf_addc(&b, '\0');
	return b.data;
}

static void add_json(struct buf *b, const char *text, size_t len)
{
	json_t *j = json_stringn(text, len);
	char *s = json_dumps(j, JSON_ENCODE_ANY);

	buf_adds(b, s);
	free(s);
	json_decref(j);
}

/* As files made of folders have it. */
static void folder_words(const char *dir, struct buf *out)
{
	char *config = text_of(dir, "config.json");
	char *tokenizer = text_of(dir, "tokenizer.json");
	struct buf quoted = { 0 };

	add_json(&quoted, tokenizer, strlen(tokenizer));
	buf_printf(out,
		   "{\"architecture\":\"qwen3\",\"config\":%s,"
		   "\"tokenizer\":%s,\"tokenizer_config\":"
		   "{\"chat_template\":\"{{ it }}\"}}",
		   config, quoted.data);
	buf_addc(out, '\0');
	buf_fini(&quoted);
	free(config);
	free(tokenizer);
}

/* As files made of GGUF files have it: less in "config", lists of tokens. */
static void gguf_words(const char *gguf, struct buf *out)
{
	struct qwen_gguf g;
	struct qwen_config c;
	struct err e = { 0 };
	const char *comma = "";

	ok(qwen_gguf_open(&g, gguf, &e) && qwen_gguf_config(&c, &g, &e),
	   "a GGUF file is read");
	buf_printf(out,
		   "{\"architecture\":\"qwen3\",\"source\":\"gguf\","
		   "\"config\":{\"model_type\":\"qwen3\",\"hidden_size\":%u,"
		   "\"num_hidden_layers\":%u,\"num_attention_heads\":%u,"
		   "\"num_key_value_heads\":%u,\"intermediate_size\":%u,"
		   "\"vocab_size\":%u,\"max_position_embeddings\":%u,"
		   "\"rope_theta\":%.17g,\"rms_norm_eps\":%.17g,"
		   "\"head_dim\":%u,\"bos_token_id\":1,\"eos_token_id\":%u},"
		   "\"gguf_meta\":{",
		   c.hidden, c.layers, c.heads, c.kv_heads, c.ffn, c.vocab,
		   c.max_positions, c.rope_theta, c.norm_eps, c.head_dim,
		   c.stop[0]);
	for (size_t i = 0; i < g.n_values; i++) {
		const struct qwen_gguf_value *v = &g.value[i];
		const uint8_t *at = NULL;
		const char *s, *and = "";
		int64_t whole;
		size_t len;

		if (strncmp(v->key, "tokenizer.", 10) != 0)
			continue;
		buf_printf(out, "%s\"%s\":%s", comma, v->key,
			   v->array ? "[" : "");
		comma = ",";
		while (qwen_gguf_text(v, &at, &s, &len)) {
			buf_adds(out, and);
			add_json(out, s, len);
			and = ",";
		}
		for (uint64_t k = 0; qwen_gguf_int(v, k, &whole); k++)
			buf_printf(out, "%s%lld", k ? "," : "",
				   (long long)whole);
		buf_adds(out, v->array ? "]" : "");
	}
	buf_adds(out, "}}");
	buf_addc(out, '\0');
	qwen_gguf_close(&g);
}

/* ---- the model ---- */

static double logits_error(const char *dir, bool convert, const double *want)
{
	struct qwen_load how = { .convert = convert, .weights = QWEN_W_F32 };
	struct qwen_shape shape = { 1, N, N, qwen_both(QWEN_W_F32), NULL, 0 };
	struct qwen_token t[N];
	struct qwen_model m;
	struct err e = { 0 };
	double most = 0;

	if (!ok(qwen_model_load(&m, dir, &how, threads, &e), "%s loads", dir)) {
		diag("%s", e.msg);
		return INFINITY;
	}
	m.activations = QWEN_AS_F32; /* of an output layer of bytes, too */
	struct qwen_state *s = qwen_state_new(&m, &shape, &e);
	for (uint32_t i = 0; i < N; i++)
		t[i] = (struct qwen_token){ i * 37 % VOCAB, 0, true, false,
					    false };
	if (!qwen_forward(s, t, N, &e))
		most = INFINITY;
	for (uint32_t i = 0; i < N && isfinite(most); i++)
		most = fmax(most,
			    worst(qwen_logits(s, i), want + i * VOCAB, VOCAB));
	qwen_state_free(s);
	qwen_model_close(&m);
	return most;
}

/* Tokens of a text by the tokenizers of both. */
static void test_words(const char *a, const char *b)
{
	static const char text[] = "It's a test of 12 words, and so on.";
	const char *const from[2] = { a, b };
	struct qwen_ids ids[2] = { { 0 }, { 0 } };
	struct err e = { 0 };

	for (int i = 0; i < 2; i++) {
		struct qwen_tokenizer *t = qwen_tokenizer_load(from[i], &e);
		struct qwen_encoder *x = t ? qwen_encoder_new(t) : NULL;
		if (!ok(x && qwen_encode(x, text, strlen(text), 0, &ids[i], &e),
			"%s has a tokenizer", from[i]))
			diag("%s", e.msg);
		qwen_encoder_free(x);
		qwen_tokenizer_free(t);
	}
	ok(ids[0].n && ids[0].n == ids[1].n &&
		   !memcmp(ids[0].v, ids[1].v, ids[0].n * sizeof(*ids[0].v)),
	   "the same tokens");
	qwen_ids_fini(&ids[0]);
	qwen_ids_fini(&ids[1]);
}

static void test_converted(const char *file, const char *to, const double *want)
{
	struct qwen_conversion how = { .from = file,
				       .to = to,
				       .threads = threads };
	struct err e = { 0 };

	if (!ok(qwen_model_convert(&how, &e), "it becomes %s", to))
		diag("%s", e.msg);
	close_to(logits_error(to, false, want), 1e-4, to);
	test_words(file, to);
}

static void test_model(const char *from, const char *file, const char *plain,
		       bool gguf, const char *words)
{
	char to[2][160];
	uint32_t ids[N];
	struct ref r = { 0 };

	write_both(from, file, plain, gguf, words);
	for (uint32_t i = 0; i < N; i++)
		ids[i] = i * 37 % VOCAB;
	ref_open(&r, plain);
	double *want = ref_logits(&r, ids, N);
	close_to(logits_error(file, true, want), 1e-4, "as f32");
	close_to(logits_error(file, false, want), 1e-2, "as it comes, in f16");
	test_words(from, file);
	snprintf(to[0], sizeof(to[0]), "%s.gguf", file);
	snprintf(to[1], sizeof(to[1]), "%s.folder", file);
	for (int i = 0; i < 2; i++)
		test_converted(file, to[i], want);
	free(want);
	ref_close(&r);
}

/* ---- refused ---- */

/* Cut off anywhere it is no model, and no harm is done. */
static void test_cut(const char *file)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	struct qwen_hfq h;
	int taken = 0;

	file_read(file, 0, &b, &e);
	for (size_t n = 0; n < b.len; n += n < 8192 ? 1 : 7919) {
		uint8_t *copy = xmalloc(n + 1);
		memcpy(copy, b.data, n);
		e = (struct err){ 0 };
		if (qwen_hfq_parse(&h, "cut", copy, n, &e)) {
			taken++;
			qwen_hfq_close(&h);
		}
		free(copy);
	}
	is_i64(taken, 0, "cut off it is refused");
	buf_fini(&b);
}

static void test_refused(void)
{
	static const struct {
		const char *what, *words;
		int type, rows, cols;
		size_t bytes;
		const char *part;
	} bad[] = {
		{ "scales apart", "{}", 5, 2, 32, 256, "type 5 of hipfire" },
		{ "a type to come", "{}", 17, 2, 32, 68, "type 17 of hipfire" },
		{ "rows of half blocks", "{}", 6, 2, 128, 136, "no whole" },
		{ "too few bytes", "{}", 6, 2, 256, 271, "271 bytes" },
		{ "no texts", "[]", 1, 1, 1, 2, "not a JSON object" },
		{ "broken texts", "{\"a\"", 1, 1, 1, 2, "not a JSON object" },
		{ "no configuration", "{}", 1, 1, 1, 2, "\"config\"" },
		{ "another model", "{\"config\":{\"model_type\":\"qwen3_5\"}}",
		  1, 1, 1, 2, "qwen3_5" },
	};
	char path[160];

	snprintf(path, sizeof(path), "%s/bad.hfq", root);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct parts p = { .n = 0 };
		const struct qwen_tensor t = {
			.name = "x",
			.n_dims = 2,
			.shape = { (uint64_t)bad[i].rows,
				   (uint64_t)bad[i].cols }
		};
		uint8_t *zero = xcalloc(1, bad[i].bytes);
		struct qwen_config c;
		struct err e = { 0 };

		tensor_put(&p, &t, bad[i].type, 0, zero, bad[i].bytes);
		file_put(path, &p, bad[i].words);
		ok(!qwen_config_load(&c, path, &e), "%s is refused",
		   bad[i].what);
		has_str(e.msg, bad[i].part, "%s: says what", bad[i].what);
		free(zero);
		buf_fini(&p.index);
		buf_fini(&p.data);
	}
}

int main(void)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 8 };
	char model[128], file[128], plain[128], gguf[128], path[160], cmd[64];
	struct buf words = { 0 };
	struct err e = { 0 };

	if (!mkdtemp(root))
		return 2;
	threads = threads_new(2, &e);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		test_blocks(&kinds[i]);

	snprintf(model, sizeof(model), "%s/model", root);
	snprintf(plain, sizeof(plain), "%s/plain", root);
	snprintf(gguf, sizeof(gguf), "%s/model.gguf", root);
	qwen_shape_find("tiny", &how.config, &e);
	how.config.hidden = 256;
	how.config.ffn = 512;
	how.config.heads = 4;
	how.config.kv_heads = 2;
	how.config.head_dim = 64;
	ok(qwen_synthetic_write(model, &how, &e), "a model is made");
	char *config = text_of(model, "config.json");
	snprintf(path, sizeof(path), "%s/config.json", plain);
	ok(file_make_folders(plain, &e) &&
		   file_write_atomic(path, config, strlen(config), &e),
	   "beside it what it stands for");
	free(config);

	diag("made of a folder");
	folder_words(model, &words);
	snprintf(file, sizeof(file), "%s/a.hfq", root);
	test_model(model, file, plain, false, words.data);
	test_cut(file);

	diag("made of a GGUF file");
	const struct qwen_conversion to = { .from = model,
					    .to = gguf,
					    .threads = threads };
	ok(qwen_model_convert(&to, &e), "a GGUF file is made");
	buf_reset(&words);
	gguf_words(gguf, &words);
	snprintf(file, sizeof(file), "%s/b.hfq", root);
	test_model(model, file, plain, true, words.data);

	test_refused();
	buf_fini(&words);
	threads_free(threads);
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", root);
	ok(system(cmd) == 0, "the folder goes");
	return plan_done();
}
