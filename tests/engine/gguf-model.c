/*
 * Models in GGUF files: logits of every type against tests/ref/qwen.h on the
 * values that the blocks stand for, and what conversion keeps.
 */
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/text/text.h"
#include "tests/ref/qwen.h"

#define N 23
static struct threads *threads;
static char root[] = "/tmp/t0-gguf-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[4][128];
	static int next;

	snprintf(path[next = (next + 1) % 4], sizeof(*path), "%s/%s", root,
		 name);
	return path[next];
}

/* Rows of whole blocks of every type. */
static void make_folder(const char *name, bool tied)
{
	struct qwen_synthetic how = {
		.config = { .layers = 2, .hidden = 256, .heads = 4,
			    .kv_heads = 2, .head_dim = 64, .ffn = 512,
			    .vocab = 512, .tied = tied, .max_positions = 4096,
			    .rope_theta = 1e6, .norm_eps = 1e-6 },
		.weights = QWEN_W_BF16,
		.seed = 26,
	};
	struct err e = { 0 };

	if (!ok(qwen_synthetic_write(path_of(name), &how, &e),
		"a model is made: %s", name))
		diag("%s", e.msg);
}

static bool convert_model(const char *from, const char *to, const char *type)
{
	struct qwen_conversion how = { .from = from, .to = to,
				       .threads = threads,
				       .typed = type != NULL };
	struct err e = { 0 };

	if ((!type || qwen_weights_parse(type, &how.type, &e)) &&
	    qwen_model_convert(&how, &e))
		return true;
	diag("%s", e.msg);
	return false;
}

/* The worst error of all logits, passes of `chunk` tokens. */
static double logits_error(const struct qwen_model *m, uint32_t chunk,
			   const double *want)
{
	struct qwen_shape shape = { 1, N, N, qwen_both(QWEN_W_F32), NULL, 0 };
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);
	double most = 0;

	for (uint32_t at = 0; at < N; at += chunk) {
		uint32_t n = at + chunk < N ? chunk : N - at;
		struct qwen_token t[N];
		for (uint32_t i = 0; i < n; i++)
			t[i] = (struct qwen_token){ (at + i) * 37 % 512, 0,
						    true, false, false };
		if (!qwen_forward(s, t, n, &e))
			return INFINITY;
		for (uint32_t i = 0; i < n; i++)
			most = fmax(most, worst(qwen_logits(s, i),
						want + (size_t)(at + i) * 512,
						512));
	}
	qwen_state_free(s);
	return most;
}

/*
 * The blocks' values are those that the folder of f32 has, which the reference
 * reads by itself.  Wide passes then differ by rounding alone, where tiles do
 * not round to bf16; narrow ones round activations to 8 bits, which is as much
 * for every type.
 */
static void test_type(const char *type)
{
	const char *file = path_of("x.gguf"), *dir = path_of("back");
	struct qwen_load how = { .activations = QWEN_AS_F32 };
	struct qwen_model m;
	struct ref r = { 0 };
	struct err e = { 0 };
	uint32_t ids[N];
	char what[64];

	for (uint32_t i = 0; i < N; i++)
		ids[i] = i * 37 % 512;
	if (!ok(convert_model(path_of("model"), file, type) &&
			convert_model(file, dir, "f32") &&
			qwen_model_load(&m, file, &how, threads, &e),
		"a file of %s", type)) {
		diag("%s", e.msg);
		return;
	}
	is_str(qwen_weights_name(m.layer[0].q.type), type,
	       "it is computed with as it is");
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	const bool integer = qwen_is_integer(m.layer[0].q.type);
	snprintf(what, sizeof(what), "%s, one pass", type);
	close_to(logits_error(&m, N, want), integer ? 1e-2 : 1e-3, what);
	snprintf(what, sizeof(what), "%s, token by token", type);
	close_to(logits_error(&m, 1, want), integer ? 0.12 : 1e-3, what);
	free(want);
	ref_close(&r);
	qwen_model_close(&m);
}

static bool same_files(const char *a, const char *b, const char *name)
{
	struct buf x = { 0 }, y = { 0 };
	struct err e = { 0 };
	char path[2][256];

	snprintf(path[0], sizeof(path[0]), "%s%s", a, name);
	snprintf(path[1], sizeof(path[1]), "%s%s", b, name);
	bool same = file_read(path[0], 0, &x, &e) &&
		    file_read(path[1], 0, &y, &e) && x.len == y.len &&
		    memcmp(x.data, y.data, x.len) == 0;
	buf_fini(&x);
	buf_fini(&y);
	return same;
}

/* There and back, and once more. */
static void test_round(const char *name)
{
	static const char *const part[] = {
		"/model.safetensors", "/config.json", "/generation_config.json",
		"/tokenizer.json",
	};
	const char *dir = path_of(name), *file = path_of("a.gguf");
	const char *back = path_of("round"), *again = path_of("b.gguf");

	ok(convert_model(dir, file, NULL) && convert_model(file, back, NULL) &&
		   convert_model(back, again, NULL),
	   "%s: there and back", name);
	for (size_t i = 0; i < ARRAY_SIZE(part); i++)
		ok(same_files(dir, back, part[i]), "%s: the same %s", name,
		   part[i]);
	ok(same_files(file, again, ""), "%s: and the same file", name);
	ok(convert_model(file, again, NULL) && same_files(file, again, ""),
	   "%s: a file as a file is the same", name);
	ok(convert_model(file, again, "q5_1") &&
		   convert_model(again, path_of("c.gguf"), NULL) &&
		   same_files(again, path_of("c.gguf"), ""),
	   "%s: so is one of blocks", name);
}

static void test_tokenizer(void)
{
	struct err e = { 0 };
	struct qwen_tokenizer *a = qwen_tokenizer_load(path_of("model"), &e);
	struct qwen_tokenizer *b = qwen_tokenizer_load(path_of("a.gguf"), &e);
	struct qwen_ids x = { 0 }, y = { 0 };
	struct buf text = { 0 };
	uint32_t differ = 0;

	if (!ok(a && b, "both have a tokenizer"))
		diag("%s", e.msg);
	for (uint32_t i = 0; i < qwen_tokenizer_size(a); i++) {
		size_t la = 0, lb = 0;
		bool sa = false, sb = false;
		const char *s = qwen_token_bytes(a, i, &la, &sa);
		const char *t = qwen_token_bytes(b, i, &lb, &sb);
		differ += !s != !t || la != lb || sa != sb ||
			  (s && memcmp(s, t, la) != 0);
	}
	is_u64(differ, 0, "of the same tokens");
	is_u64(qwen_tokenizer_size(a), qwen_tokenizer_size(b), "as many");
	buf_adds(&text, "<|im_start|>user\n<think>\xc3\xa9 It's 42;  \n\n");
	ok(file_read("LICENSE", 0, &text, &e), "a text");
	struct qwen_encoder *xa = qwen_encoder_new(a);
	struct qwen_encoder *xb = qwen_encoder_new(b);
	ok(qwen_encode(xa, text.data, text.len, 0, &x, &e) &&
	   qwen_encode(xb, text.data, text.len, 0, &y, &e) && x.n == y.n &&
	   x.n > 100 && memcmp(x.v, y.v, x.n * sizeof(*x.v)) == 0,
	   "and a text has the same ids");
	qwen_encoder_free(xa);
	qwen_encoder_free(xb);
	qwen_tokenizer_free(a);
	qwen_tokenizer_free(b);
	qwen_ids_fini(&x);
	qwen_ids_fini(&y);
	buf_fini(&text);
}

/*
 * YaRN changes the logits as published, in a folder and in a file; of so few
 * positions that it does within N.
 */
static void test_yarn(const char *more)
{
	const char *dir = path_of("yarn"), *file = path_of("yarn.gguf");
	struct qwen_load how = { .convert = true, .weights = QWEN_W_F32 };
	struct buf text = { 0 };
	struct ref r = { 0 };
	struct err e = { 0 };
	uint32_t ids[N];
	char path[160];

	make_folder("yarn", true);
	snprintf(path, sizeof(path), "%s/config.json", dir);
	file_read(path, 0, &text, &e);
	buf_addc(&text, '\0');
	static const char none[] = "\"rope_scaling\": null";
	char *at = strstr(text.data, none);
	struct buf out = { 0 };
	buf_printf(&out, "%.*s\"rope_scaling\": {\"rope_type\": \"yarn\", "
		   "\"factor\": 4.0, \"original_max_position_embeddings\": "
		   "256%s}%s", (int)(at - text.data), text.data, more,
		   at + strlen(none));
	file_write_atomic(path, out.data, out.len, &e);
	for (uint32_t i = 0; i < N; i++)
		ids[i] = i * 37 % 512;
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	ok(convert_model(dir, file, NULL), "YaRN%s: a file", more);
	for (int i = 0; i < 2; i++) {
		struct qwen_model m;
		if (!ok(qwen_model_load(&m, i ? file : dir, &how, threads, &e),
			"YaRN%s: it loads", more)) {
			diag("%s", e.msg);
			continue;
		}
		is_u64(m.config.max_positions, 4096, "its context");
		close_to(logits_error(&m, N, want), 1e-4,
			 i ? "YaRN of a file" : "YaRN of a folder");
		qwen_model_close(&m);
	}
	r.factor = 0;
	double *without = ref_logits(&r, ids, N);
	double most = 0;
	for (int i = 0; i < N * 512; i++)
		most = fmax(most, fabs(want[i] - without[i]));
	ok(most > 0.1, "YaRN%s: it changes something", more);
	ref_close(&r);
	free(want);
	free(without);
	buf_fini(&text);
	buf_fini(&out);
}

/* Texts get as long as it is for. */
static void test_yarn_length(void)
{
	struct qwen_config c;
	struct err e = { 0 };

	ok(qwen_config_parse(&c, "{\"model_type\":\"qwen3\",\"hidden_act\":"
		"\"silu\",\"num_hidden_layers\":1,\"hidden_size\":8,"
		"\"num_attention_heads\":1,\"num_key_value_heads\":1,"
		"\"head_dim\":8,\"intermediate_size\":8,\"vocab_size\":8,"
		"\"max_position_embeddings\":40960,\"rope_scaling\":"
		"{\"rope_type\":\"yarn\",\"factor\":4.0,"
		"\"original_max_position_embeddings\":32768}}", NULL, &e),
	   "Qwen3's own setting");
	is_u64(c.max_positions, 131072, "of 131072 positions");
	ok(fabs(c.yarn.attention - 1.1386294361119891) < 1e-12,
	   "and its factor of attention");
}

int main(void)
{
	struct err e = { 0 };
	char cmd[64];

	if (!mkdtemp(root))
		return 2;
	threads = threads_new(2, &e);
	make_folder("model", true);
	for (int w = 0; w < QWEN_WEIGHTS; w++)
		if (w != QWEN_W_INT8 && w != QWEN_W_INT4 &&
		    !qwen_is_own((enum qwen_weights)w))
			test_type(qwen_weights_name((enum qwen_weights)w));
	test_round("model");
	test_tokenizer();
	test_yarn("");
	test_yarn(", \"beta_fast\": 8.0, \"beta_slow\": 0.5, "
		  "\"attention_factor\": 1.25");
	test_yarn_length();
	make_folder("untied", false);
	test_round("untied");
	threads_free(threads);
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", root);
	ok(system(cmd) == 0, "the folder goes");
	return plan_done();
}
