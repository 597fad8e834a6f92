/*
 * Folders as FP8, GPTQ and AWQ checkpoints are published: packed here by the
 * layouts' own definitions, then logits against tests/ref/qwen.h on the values
 * that the codes stand for.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/float.h"
#include "engine/model/model.h"
#include "tests/ref/qwen.h"

#define N 23
static struct threads *threads;
static char root[] = "/tmp/t0-foreign-XXXXXX";

/* What is written: the packed tensors, and the plain ones of their values. */
struct folder {
	struct qwen_tensor t[512];
	const void *data[512];
	size_t n;
};

struct packing {
	const char *name, *config;
	bool fp8, awq, order;
	int bits, more, group; /* more: that zeros are stored less */
	double bound;	       /* of f16 */
};

static const void *bytes_of(void *ctx, size_t i, struct err *e)
{
	(void)e;
	return ((const struct folder *)ctx)->data[i];
}

static void *add_tensor(struct folder *f, const char *name, const char *end,
			enum qwen_dtype type, uint32_t n_dims, uint64_t rows,
			uint64_t cols)
{
	struct qwen_tensor *t = &f->t[f->n];
	char *s = xcalloc(1, 160);

	snprintf(s, 160, "%.*s%s", (int)(strlen(name) - strlen("weight")), name,
		 end);
	*t = (struct qwen_tensor){ .name = s, .dtype = type, .n_dims = n_dims,
				   .shape = { rows, cols } };
	return (void *)(f->data[f->n++] = xcalloc(1, qwen_tensor_bytes(t)));
}

static void folder_write(struct folder *f, const char *path)
{
	struct err e = { 0 };

	if (!ok(qwen_tensors_write(path, f->t, f->n, bytes_of, f, &e),
		"tensors are written"))
		diag("%s", e.msg);
	for (size_t i = 0; i < f->n; i++) {
		free((void *)f->t[i].name);
		free((void *)f->data[i]);
	}
	f->n = 0;
}

/* 1.m 2^(e - 7), or 0.m 2^-6; 127 is no number. */
static double e4m3(int code)
{
	int e = code >> 3 & 15, m = code & 7;
	double v = e ? ldexp(1 + m / 8.0, e - 7) : ldexp(m / 8.0, -6);

	return code & 128 ? -v : v;
}

static double nearest_e4m3(double v, uint8_t *code)
{
	double best = INFINITY;

	for (int i = 0; i < 256; i++)
		if ((i & 127) != 127 && fabs(e4m3(i) - v) < fabs(best - v)) {
			best = e4m3(i);
			*code = (uint8_t)i;
		}
	return best;
}

enum { BLOCK_ROWS = 48, BLOCK_COLS = 40 };

static void pack_fp8(struct folder *f, const char *name, const float *w,
		     int rows, int cols, float *value)
{
	int nr = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
	int nc = (cols + BLOCK_COLS - 1) / BLOCK_COLS;
	uint8_t *code =
		add_tensor(f, name, "weight", QWEN_F8_E4M3, 2, rows, cols);
	uint16_t *scale =
		add_tensor(f, name, "weight_scale_inv", QWEN_BF16, 2, nr, nc);
	for (int b = 0; b < nr * nc; b++)
		scale[b] = (uint16_t)float_bits(0.0005 * (1 + b % 3), 8, 7);
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < cols; c++) {
			double s = float_value(scale[r / BLOCK_ROWS * nc +
						     c / BLOCK_COLS], 8, 7);
			int i = r * cols + c;
			value[i] = (float)(s * nearest_e4m3(w[i] / s,
							    &code[i]));
		}
}

/* Puts `bits` of v at the place of `at` in a row of words. */
static void put_bits(uint32_t *word, int bits, int at, uint32_t v)
{
	word[at * bits / 32] |= v << at * bits % 32;
}

static void pack_words(struct folder *f, const char *name, const float *w,
		       int rows, int cols, const struct packing *p,
		       float *value)
{
	/* Columns of AWQ's words, from the low bits on. */
	static const int awq_order[] = { 0, 2, 4, 6, 1, 3, 5, 7 };
	const int per = 32 / p->bits, groups = cols / p->group;
	const int most = (1 << p->bits) - 1;
	uint32_t *code = add_tensor(f, name, "qweight", QWEN_I32, 2,
				    p->awq ? cols : cols / per,
				    p->awq ? rows / per : rows);
	uint32_t *zeros =
		add_tensor(f, name, "qzeros", QWEN_I32, 2, groups, rows / per);
	uint16_t *scale =
		add_tensor(f, name, "scales", QWEN_F16, 2, groups, rows);
	int32_t *order =
		p->order ? add_tensor(f, name, "g_idx", QWEN_I32, 1, cols, 0) :
			   NULL;
	int place[8];

	for (int i = 0; i < 8; i++)
		place[awq_order[i]] = i;
	for (int c = 0; order && c < cols; c++)
		order[c] = c * 7 % cols / p->group;
	for (int r = 0; r < rows; r++) {
		int in = p->awq ? r / 8 * 8 + place[r % 8] : r;
		for (int g = 0; g < groups; g++) {
			int zero = 1 + (r * 5 + g * 3) % (most - 1);
			scale[g * rows + r] = (uint16_t)float_bits(
				0.35 / most * (1 + g % 2), 5, 10);
			put_bits(zeros + g * (rows / per), p->bits, in,
				 (uint32_t)(zero - p->more));
		}
		for (int c = 0; c < cols; c++) {
			int g = order ? order[c] : c / p->group, i = r * cols + c;
			int zero = 1 + (r * 5 + g * 3) % (most - 1);
			double s = float_value(scale[g * rows + r], 5, 10);
			int q = (int)fmin(fmax(rint(w[i] / s) + zero, 0), most);
			value[i] = (float)(s * (q - zero));
			if (p->awq)
				put_bits(code + c * (rows / 8), 4, in,
					 (uint32_t)q);
			else
				code[c / per * rows + r] |= (uint32_t)q
					<< c % per * p->bits;
		}
	}
}

/* config.json with one key more. */
static void config_write(const char *from, const char *to, const char *key)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	char path[160];

	snprintf(path, sizeof(path), "%s/config.json", from);
	file_read(path, 0, &text, &e);
	text.len -= 1; /* the brace */
	buf_printf(&text, ", \"quantization_config\": %s}", key);
	snprintf(path, sizeof(path), "%s/config.json", to);
	ok(file_make_folders(to, &e) &&
	   file_write_atomic(path, text.data, text.len, &e), "a configuration");
	buf_fini(&text);
}

/* Writes `packed` and `plain` of the model in `from`. */
static void write_both(const char *from, const char *packed,
		       const char *plain, const struct packing *p)
{
	static struct folder a, b;
	struct qwen_tensors all;
	struct err e = { 0 };
	char path[160];

	qwen_tensors_open(&all, from, &e);
	for (size_t i = 0; i < all.n_tensors; i++) {
		const struct qwen_tensor *t = &all.tensor[i];
		int rows = (int)t->shape[0], cols = (int)t->shape[1];
		float *v = add_tensor(&b, t->name, "weight", QWEN_F32,
				      t->n_dims, t->shape[0], t->shape[1]);
		if (t->n_dims == 1 || strstr(t->name, "embed") ||
		    strstr(t->name, "mlp.gate.")) { /* a router */
			memcpy(v, t->data, t->size_bytes);
			memcpy(add_tensor(&a, t->name, "weight", QWEN_F32,
					  t->n_dims, t->shape[0], t->shape[1]),
			       t->data, t->size_bytes);
		} else if (p->fp8) {
			pack_fp8(&a, t->name, t->data, rows, cols, v);
		} else {
			pack_words(&a, t->name, t->data, rows, cols, p, v);
		}
	}
	config_write(from, packed, p->config);
	config_write(from, plain, "null");
	snprintf(path, sizeof(path), "%s/model.safetensors", packed);
	folder_write(&a, path);
	snprintf(path, sizeof(path), "%s/model.safetensors", plain);
	folder_write(&b, path);
	qwen_tensors_close(&all);
}

static double logits_error(const char *dir, bool convert, const double *want)
{
	struct qwen_load how = { .convert = convert, .weights = QWEN_W_F32 };
	struct qwen_shape shape = { 1, N, N, qwen_both(QWEN_W_F32), NULL, 0 };
	struct qwen_token t[N];
	struct qwen_model m;
	struct err e = { 0 };
	double most = 0;

	if (!ok(qwen_model_load(&m, dir, &how, threads, &e), "it loads")) {
		diag("%s", e.msg);
		return INFINITY;
	}
	struct qwen_state *s = qwen_state_new(&m, &shape, &e);
	for (uint32_t i = 0; i < N; i++)
		t[i] = (struct qwen_token){ i * 37 % 512, 0, true, false, false };
	if (!qwen_forward(s, t, N, &e))
		most = INFINITY;
	for (uint32_t i = 0; i < N && isfinite(most); i++)
		most = fmax(most, worst(qwen_logits(s, i), want + i * 512,
					512));
	qwen_state_free(s);
	qwen_model_close(&m);
	return most;
}

#define GPTQ "{\"quant_method\": \"gptq\", \"group_size\": 32, "
static const struct packing packings[] = {
	{ "FP8", "{\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", "
		 "\"weight_block_size\": [48, 40]}", .fp8 = true },
	{ "GPTQ", GPTQ "\"bits\": 4}", .bits = 4, .more = 1, .group = 32 },
	{ "GPTQ in order of activations", GPTQ "\"bits\": 4, \"desc_act\": "
	  "true, \"checkpoint_format\": \"gptq\"}",
	  .bits = 4, .more = 1, .group = 32, .order = true },
	{ "GPTQ of the second form", GPTQ "\"bits\": 4, "
	  "\"checkpoint_format\": \"gptq_v2\"}", .bits = 4, .group = 32 },
	{ "GPTQ of 8 bits", GPTQ "\"bits\": 8}", .bits = 8, .more = 1,
	  .group = 32 },
	{ "AWQ", "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 32, "
		 "\"version\": \"gemm\", \"zero_point\": true}",
	  .bits = 4, .awq = true, .group = 32 },
};

/* Its file of f32 has the values, too. */
static void test_converted(const char *packed, const double *want)
{
	struct qwen_conversion how = { .from = packed, .threads = threads };
	struct err e = { 0 };
	char file[128];

	snprintf(file, sizeof(file), "%s/x.gguf", root);
	how.to = file;
	if (!ok(qwen_model_convert(&how, &e), "it becomes a file"))
		diag("%s", e.msg);
	close_to(logits_error(file, false, want), 1e-4, "the file");
}

static void test_packing(const char *from, const struct packing *p)
{
	char packed[128], plain[128], what[128];
	uint32_t ids[N];
	struct ref r = { 0 };

	snprintf(packed, sizeof(packed), "%s/packed", root);
	snprintf(plain, sizeof(plain), "%s/plain", root);
	diag("%s", p->name);
	write_both(from, packed, plain, p);
	for (uint32_t i = 0; i < N; i++)
		ids[i] = i * 37 % 512;
	ref_open(&r, plain);
	double *want = ref_logits(&r, ids, N);
	snprintf(what, sizeof(what), "%s as f32", p->name);
	close_to(logits_error(packed, true, want), 1e-4, what);
	snprintf(what, sizeof(what), "%s as it comes", p->name);
	close_to(logits_error(packed, false, want), 1e-2, what);
	test_converted(packed, want);
	free(want);
	ref_close(&r);
}

static void test_refused(const char *from)
{
	static const struct {
		const char *what, *config, *part;
	} bad[] = {
		{ "another method", "{\"quant_method\": \"hqq\"}",
		  "knows fp8, gptq and awq" },
		{ "no method", "{}", "that is missing" },
		{ "fp8 of one scale", "{\"quant_method\": \"fp8\"}",
		  "\"weight_block_size\" is not" },
		{ "fp8 of another format", "{\"quant_method\": \"fp8\", \"fmt\": "
		  "\"e5m2\", \"weight_block_size\": [128, 128]}",
		  "\"fmt\" is \"e5m2\"" },
		{ "three bits", GPTQ "\"bits\": 3}", "\"bits\" is 3" },
		{ "five bits", GPTQ "\"bits\": 5}", "\"bits\" is 5" },
		{ "no group", "{\"quant_method\": \"awq\", \"group_size\": 0}",
		  "\"group_size\" is 0" },
		{ "AWQ in another order", "{\"quant_method\": \"awq\", "
		  "\"version\": \"gemv\"}", "\"version\" is \"gemv\"" },
		{ "groups that do not fit", "{\"quant_method\": \"gptq\", "
		  "\"group_size\": 48}", "tensor model.layers.0." },
	};
	struct qwen_load how = { 0 };
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/packed", root);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct qwen_model m;
		struct err e = { 0 };
		config_write(from, dir, bad[i].config);
		ok(!qwen_model_load(&m, dir, &how, threads, &e),
		   "%s is refused", bad[i].what);
		has_str(e.msg, bad[i].part, "%s: says what", bad[i].what);
	}
}

int main(void)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 8 };
	struct err e = { 0 };
	char dir[128], cmd[64];

	if (!mkdtemp(root))
		return 2;
	threads = threads_new(2, &e);
	snprintf(dir, sizeof(dir), "%s/model", root);
	qwen_shape_find("tiny", &how.config, &e);
	ok(qwen_synthetic_write(dir, &how, &e), "a model is made");
	for (size_t i = 0; i < ARRAY_SIZE(packings); i++)
		test_packing(dir, &packings[i]);
	test_refused(dir);
	/* A mixture's experts are packed one by one; a file has them together. */
	snprintf(dir, sizeof(dir), "%s/mixture", root);
	qwen_shape_find("tiny-moe", &how.config, &e);
	ok(qwen_synthetic_write(dir, &how, &e), "a mixture is made");
	for (size_t i = 0; i < ARRAY_SIZE(packings); i++)
		if (!strstr(packings[i].name, " of "))
			test_packing(dir, &packings[i]);
	threads_free(threads);
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", root);
	ok(system(cmd) == 0, "the folder goes");
	return plan_done();
}
