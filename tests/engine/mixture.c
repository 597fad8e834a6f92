/* Mixtures of experts on the CPU backend, against tests/ref/qwen.h. */
#include <sys/stat.h>
#include <unistd.h>

#include "engine/cpu/cpu.h"
#include "tests/engine/mixture.h"

#define N 70
static uint32_t ids[N];
static struct threads *threads;
static char root[] = "/tmp/t0-mixture-XXXXXX";

static struct qwen_model open_model(const char *dir, const struct qwen_load *how)
{
	struct qwen_model m;
	struct err e = { 0 };

	if (!qwen_model_load(&m, dir, how, threads, &e))
		diag("%s", e.msg);
	return m;
}

/* Logits of all tokens of `ids`, fed in pieces; the caller frees them. */
static float *logits_of(const struct qwen_model *m, uint32_t chunk)
{
	const struct qwen_shape shape = { .sequences = 2, .positions = N + 8,
					  .max_tokens = N };
	const uint32_t vocab = m->config.vocab;
	float *out = calloc((size_t)N * vocab, sizeof(*out));
	struct qwen_token t[N];
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	for (uint32_t i = 0; i < N; i++)
		t[i] = (struct qwen_token){ ids[i], 1, true, false, false };
	for (uint32_t at = 0; at < N; at += chunk) {
		uint32_t n = at + chunk < N ? chunk : N - at;
		if (!qwen_forward(s, t + at, n, &e))
			diag("%s", e.msg);
		for (uint32_t i = 0; i < n; i++)
			memcpy(out + (size_t)(at + i) * vocab,
			       qwen_logits(s, i), vocab * sizeof(*out));
	}
	qwen_state_free(s);
	return out;
}

static void test_close(const struct qwen_model *m, uint32_t chunk,
		       const double *want, double bound, const char *what)
{
	float *got = logits_of(m, chunk);
	double most = 0;

	for (size_t i = 0; i < N; i++)
		most = fmax(most, worst(got + i * m->config.vocab,
					want + i * m->config.vocab,
					(int)m->config.vocab));
	close_to(most, bound, what);
	free(got);
}

static void test_against_reference(void)
{
	static const struct {
		const char *name;
		uint32_t n, used;
		bool normed;
	} test[] = {
		{ "twelve, three of them", 12, 3, true },
		{ "shares that are not normed", 12, 3, false },
		{ "all of them", 5, 5, true },
		{ "one of many", 67, 1, true },
		{ "an expert alone", 1, 1, true },
	};
	static const uint32_t chunk[] = { 1, 7, 25, N };
	const struct qwen_load plain = { 0 };
	char what[96];

	for (size_t i = 0; i < ARRAY_SIZE(test); i++) {
		struct ref r = { 0 };
		const char *dir = mixture_make(root, test[i].name,
					       QWEN_W_F32, test[i].n,
					test[i].used, test[i].normed);
		ref_open(&r, dir);
		double *want = ref_logits(&r, ids, N);
		struct qwen_model m = open_model(dir, &plain);
		for (size_t k = 0; k < ARRAY_SIZE(chunk); k++) {
			snprintf(what, sizeof(what), "%s, %u at once",
				 test[i].name, chunk[k]);
			test_close(&m, chunk[k], want, 1e-4, what);
		}
		qwen_model_close(&m);
		free(want);
		ref_close(&r);
	}
}

/* Of equal scores the first experts are taken. */
static void test_ties(void)
{
	const struct router_tie *tie = router_ties;
	const struct qwen_load plain = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(router_ties); i++) {
		struct ref r = { 0 };
		const char *dir = mixture_make(root, tie[i].name,
					       QWEN_W_F32, 12, 3, true);
		mixture_change(dir, 0, tie[i].how);
		mixture_change(dir, 1, tie[i].how);
		ref_open(&r, dir);
		double *want = ref_logits(&r, ids, N);
		struct qwen_model m = open_model(dir, &plain);
		test_close(&m, 1, want, 1e-4, tie[i].name);
		test_close(&m, N, want, 1e-4, tie[i].name);
		qwen_model_close(&m);
		free(want);
		ref_close(&r);
	}
	const char *dir = mixture_make(root, "no numbers", QWEN_W_F32, 12, 3, true);
	mixture_change(dir, 1, router_broken);
	struct qwen_model m = open_model(dir, &plain);
	for (uint32_t chunk = 1; chunk <= N; chunk += N - 1) {
		float *got = logits_of(&m, chunk);
		ok(isnan(got[0]), "scores that are no numbers give none");
		free(got);
	}
	qwen_model_close(&m);
}

static void test_types(void)
{
	struct ref r = { 0 };
	const char *dir = mixture_make(root, "bf16", QWEN_W_BF16, 12, 3, true);
	struct qwen_load how = { .activations = QWEN_AS_F32 };

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	struct qwen_model m = open_model(dir, &how);
	ok(m.layer[0].router.type == QWEN_W_F32, "the router is f32");
	test_close(&m, N, want, 1e-4, "bf16");
	test_close(&m, 1, want, 1e-4, "bf16, token by token");
	ok(m.token_bytes < 0.6 * (double)qwen_config_params(&m.config) * 2,
	   "a token reads the experts that it uses");
	qwen_model_close(&m);
	free(want);
	ref_close(&r);
	/*
	 * Integers before a router may make it choose other experts where scores
	 * nearly tie: where all are used they cannot.
	 */
	dir = mixture_make(root, "bytes", QWEN_W_BF16, 5, 5, true);
	ref_open(&r, dir);
	want = ref_logits(&r, ids, N);
	how = (struct qwen_load){ .convert = true, .weights = QWEN_W_INT8 };
	m = open_model(dir, &how);
	test_close(&m, 1, want, 0.15, "int8, token by token");
	test_close(&m, N, want, 0.15, "int8");
	qwen_model_close(&m);
	how.weights = QWEN_W_INT4;
	m = open_model(dir, &how);
	test_close(&m, N, want, 1.5, "int4");
	qwen_model_close(&m);
	free(want);
	ref_close(&r);
}

/* Neither threads nor what else is in the pass change a token. */
static void test_alone(void)
{
	struct err e = { 0 };
	const char *dir = mixture_make(root, "alone", QWEN_W_F32, 12, 3, true);
	const struct qwen_load plain = { 0 };
	float *first = NULL;

	for (unsigned n = 1; n <= 3; n++) {
		struct threads *before = threads;
		threads = threads_new(n, &e);
		struct qwen_model m = open_model(dir, &plain);
		const size_t size = (size_t)N * m.config.vocab * sizeof(float);
		float *got = logits_of(&m, N);
		if (first)
			ok(!memcmp(first, got, size), "%u threads, the same bits",
			   n);
		else
			first = got;
		if (got != first)
			free(got);
		const struct qwen_shape shape = { 4, 8, 4, qwen_both(QWEN_W_F32), NULL, 0 };
		struct qwen_state *s = qwen_state_new(&m, &shape, &e);
		struct qwen_token t[4];
		float alone[512];
		for (uint32_t i = 0; i < 4; i++)
			t[i] = (struct qwen_token){ ids[i], i, true, false, false };
		qwen_forward(s, t + 2, 1, &e);
		memcpy(alone, qwen_logits(s, 0), sizeof(alone));
		qwen_state_free(s);
		s = qwen_state_new(&m, &shape, &e);
		qwen_forward(s, t, 4, &e);
		ok(!memcmp(alone, qwen_logits(s, 2), sizeof(alone)),
		   "%u threads: a token alone is that among others", n);
		qwen_state_free(s);
		qwen_model_close(&m);
		threads_free(threads);
		threads = before;
	}
	free(first);
}

/* ---- a GGUF file, as its specification has it ---- */

static void put(struct buf *b, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_addc(b, (char)(v >> 8 * i));
}

static void put_text(struct buf *b, const char *s)
{
	put(b, strlen(s), 8);
	buf_adds(b, s);
}

static void put_size(struct buf *b, const char *key, uint32_t v)
{
	char name[96];

	snprintf(name, sizeof(name), "qwen3moe.%s", key);
	put_text(b, name);
	put(b, 4, 4); /* uint32 */
	put(b, v, 4);
}

struct gguf {
	struct buf head, data;
	uint64_t tensors;
};

/* `n` tensors of a folder, joined, as F32; of one the outer size is left out. */
static void put_tensor(struct gguf *g, const struct ref *r, const char *name,
		       const char *from, int n, uint64_t rows, uint64_t cols)
{
	put_text(&g->head, name);
	put(&g->head, n > 1 ? 3 : rows ? 2 : 1, 4);
	put(&g->head, cols, 8);
	if (rows)
		put(&g->head, rows, 8);
	if (n > 1)
		put(&g->head, (uint64_t)n, 8);
	put(&g->head, 0, 4); /* F32 */
	put(&g->head, g->data.len, 8);
	for (int i = 0; i < n; i++) {
		char text[96];
		snprintf(text, sizeof(text), from, i);
		double *v = ref_tensor(r, text);
		for (uint64_t k = 0; k < (rows ? rows : 1) * cols; k++) {
			float x = (float)v[k];
			buf_add(&g->data, &x, sizeof(x));
		}
		free(v);
	}
	while (g->data.len % 32)
		buf_addc(&g->data, 0);
	g->tensors++;
}

static void put_layer(struct gguf *g, const struct ref *r, int l)
{
	const uint64_t q = (uint64_t)r->heads * (uint64_t)r->dim;
	const uint64_t kv = (uint64_t)r->kv_heads * (uint64_t)r->dim;
	const uint64_t hidden = (uint64_t)r->hidden, ffn = (uint64_t)r->ffn;
	const struct {
		const char *gguf, *folder;
		int n;
		uint64_t rows, cols;
	} part[] = {
		{ "attn_norm", "input_layernorm", 1, 0, hidden },
		{ "attn_q", "self_attn.q_proj", 1, q, hidden },
		{ "attn_k", "self_attn.k_proj", 1, kv, hidden },
		{ "attn_v", "self_attn.v_proj", 1, kv, hidden },
		{ "attn_q_norm", "self_attn.q_norm", 1, 0, (uint64_t)r->dim },
		{ "attn_k_norm", "self_attn.k_norm", 1, 0, (uint64_t)r->dim },
		{ "attn_output", "self_attn.o_proj", 1, hidden, q },
		{ "ffn_norm", "post_attention_layernorm", 1, 0, hidden },
		{ "ffn_gate_inp", "mlp.gate", 1, (uint64_t)r->experts, hidden },
		{ "ffn_gate_exps", "mlp.experts.%d.gate_proj", r->experts, ffn,
		  hidden },
		{ "ffn_up_exps", "mlp.experts.%d.up_proj", r->experts, ffn,
		  hidden },
		{ "ffn_down_exps", "mlp.experts.%d.down_proj", r->experts,
		  hidden, ffn },
	};

	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		char name[64], from[96];
		snprintf(name, sizeof(name), "blk.%d.%s.weight", l,
			 part[i].gguf);
		snprintf(from, sizeof(from), "model.layers.%d.%s.weight", l,
			 part[i].folder);
		put_tensor(g, r, name, from, part[i].n, part[i].rows,
			   part[i].cols);
	}
}

static void write_gguf(const char *path, const struct ref *r)
{
	const uint64_t hidden = (uint64_t)r->hidden;
	struct gguf g = { { 0 }, { 0 }, 0 };
	struct buf out = { 0 }, keys = { 0 };
	struct err e = { 0 };
	const struct {
		const char *key;
		int v;
	} size[] = {
		{ "block_count", r->layers }, { "context_length", 4096 },
		{ "embedding_length", r->hidden },
		{ "feed_forward_length", 4 * r->ffn },
		{ "attention.head_count", r->heads },
		{ "attention.head_count_kv", r->kv_heads },
		{ "attention.key_length", r->dim },
		{ "expert_count", r->experts },
		{ "expert_used_count", r->used },
		{ "expert_feed_forward_length", r->ffn },
	};

	put_text(&keys, "general.architecture");
	put(&keys, 8, 4); /* string */
	put_text(&keys, "qwen3moe");
	for (size_t i = 0; i < ARRAY_SIZE(size); i++)
		put_size(&keys, size[i].key, (uint32_t)size[i].v);
	put_text(&keys, "qwen3moe.rope.freq_base");
	put(&keys, 6, 4); /* float32 */
	float theta = (float)r->theta;
	buf_add(&keys, &theta, 4);
	put_tensor(&g, r, "token_embd.weight", "model.embed_tokens.weight", 1,
		   (uint64_t)r->vocab, hidden);
	put_tensor(&g, r, "output.weight", "lm_head.weight", 1,
		   (uint64_t)r->vocab, hidden);
	put_tensor(&g, r, "output_norm.weight", "model.norm.weight", 1, 0,
		   hidden);
	for (int l = 0; l < r->layers; l++)
		put_layer(&g, r, l);
	buf_adds(&out, "GGUF");
	put(&out, 3, 4);
	put(&out, g.tensors, 8);
	put(&out, ARRAY_SIZE(size) + 2, 8);
	buf_add(&out, keys.data, keys.len);
	buf_add(&out, g.head.data, g.head.len);
	while (out.len % 32)
		buf_addc(&out, 0);
	buf_add(&out, g.data.data, g.data.len);
	if (!file_write_atomic(path, out.data, out.len, &e))
		BUG("%s", e.msg);
	buf_fini(&out);
	buf_fini(&keys);
	buf_fini(&g.head);
	buf_fini(&g.data);
}

/* A folder's mixture as a file: the folder's logits, and stable bytes. */
static void test_written(const char *dir, const float *want, size_t size)
{
	struct err e = { 0 };
	char file[2][160];
	struct buf bytes[2] = { { 0 }, { 0 } };
	const struct qwen_load plain = { 0 };

	for (int i = 0; i < 2; i++) {
		snprintf(file[i], sizeof(file[i]), "%s/written%d.gguf", root, i);
		const struct qwen_conversion how = {
			.from = i ? file[0] : dir, .to = file[i],
			.threads = threads,
		};
		if (!ok(qwen_model_convert(&how, &e) &&
			file_read(file[i], 0, &bytes[i], &e),
			"a file is made of a %s", i ? "file" : "folder"))
			diag("%s", e.msg);
	}
	ok(bytes[0].len == bytes[1].len &&
	   !memcmp(bytes[0].data, bytes[1].data, bytes[0].len),
	   "files of the same mixture are the same");
	struct qwen_model m = open_model(file[0], &plain);
	float *got = logits_of(&m, N);
	ok(m.config.experts.n == 12 && m.config.experts.used == 3 &&
	   m.config.ffn == 96, "it says what a mixture it is");
	ok(!memcmp(got, want, size), "and gives the folder's bits");
	free(got);
	qwen_model_close(&m);
	buf_fini(&bytes[0]);
	buf_fini(&bytes[1]);
	/* What these files cannot say. */
	const struct qwen_conversion how = {
		.from = mixture_make(root, "not normed", QWEN_W_F32, 4, 2, false),
		.to = file[0], .threads = threads,
	};
	ok(!qwen_model_convert(&how, &e) && strstr(e.msg, "norm_topk_prob"),
	   "shares that are not normed are refused");
}

/* A file's experts, all in one tensor, are those of a folder; and back. */
static void test_gguf(void)
{
	struct ref r = { 0 };
	struct err e = { 0 };
	char path[160], back[160];
	const struct qwen_load plain = { 0 };
	const char *dir = mixture_make(root, "folder", QWEN_W_F32, 12, 3, true);

	ref_open(&r, dir);
	snprintf(path, sizeof(path), "%s/mixture.gguf", root);
	snprintf(back, sizeof(back), "%s/back", root);
	write_gguf(path, &r);
	ref_close(&r);
	struct qwen_model a = open_model(dir, &plain);
	struct qwen_model b = open_model(path, &plain);
	const size_t size = (size_t)N * a.config.vocab * sizeof(float);
	ok(b.config.experts.n == 12 && b.config.experts.used == 3 &&
	   b.config.ffn == 96, "a file says what a mixture it is");
	float *x = logits_of(&a, N), *y = logits_of(&b, N);
	ok(!memcmp(x, y, size), "a GGUF file gives the folder's bits");
	const struct qwen_conversion how = { .from = path, .to = back,
					     .threads = threads };
	if (!ok(qwen_model_convert(&how, &e), "a folder is made of it"))
		diag("%s", e.msg);
	struct qwen_model c = open_model(back, &plain);
	float *z = logits_of(&c, N);
	ok(!memcmp(x, z, size), "which gives them, too");
	test_written(dir, x, size);
	free(x);
	free(y);
	free(z);
	qwen_model_close(&a);
	qwen_model_close(&b);
	qwen_model_close(&c);
}

static void test_refused(void)
{
	static const struct {
		const char *what, *with, *says;
	} bad[] = {
		{ "no experts", "\"num_experts\":0", "\"num_experts\" is 0" },
		{ "a mixture without a number of them", "\"x\":0",
		  "\"num_experts\" is missing" },
		{ "more used than there are",
		  "\"num_experts\":4,\"num_experts_per_tok\":5,"
		  "\"moe_intermediate_size\":8",
		  "is 5; wanted 1 to the 4 of" },
		{ "too many used",
		  "\"num_experts\":400,\"num_experts_per_tok\":65,"
		  "\"moe_intermediate_size\":8", "is 65; wanted 1 to 64" },
		{ "layers without experts",
		  "\"decoder_sparse_step\":2", "is 2; wanted 1" },
		{ "some layers without", "\"mlp_only_layers\":[1]",
		  "\"mlp_only_layers\" is [1]; wanted []" },
		{ "a width of words",
		  "\"num_experts\":4,\"num_experts_per_tok\":2,"
		  "\"moe_intermediate_size\":\"8\"", "wanted a whole number" },
		{ "shares that are neither",
		  "\"num_experts\":4,\"num_experts_per_tok\":2,"
		  "\"moe_intermediate_size\":8,\"norm_topk_prob\":1",
		  "wanted true or false" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct qwen_config c;
		struct err e = { 0 };
		struct buf text = { 0 };
		buf_printf(&text, "{\"model_type\":\"qwen3_moe\","
			   "\"hidden_act\":\"silu\",\"num_hidden_layers\":1,"
			   "\"hidden_size\":8,\"num_attention_heads\":1,"
			   "\"num_key_value_heads\":1,\"head_dim\":8,"
			   "\"intermediate_size\":8,\"vocab_size\":9,"
			   "\"max_position_embeddings\":9,%s}", bad[i].with);
		if (!ok(!qwen_config_parse(&c, text.data, NULL, &e) &&
			strstr(e.msg, bad[i].says), "refused: %s", bad[i].what))
			diag("%s", e.msg);
		buf_fini(&text);
	}
}

int main(void)
{
	struct err e = { 0 };
	uint64_t seed = 11;

	if (!mkdtemp(root))
		BUG("no temporary folder");
	setenv("T0_DB", "/dev/null/none", 1);
	for (int i = 0; i < N; i++)
		ids[i] = (uint32_t)(random_next(&seed) % 512);
	threads = threads_new(2, &e);
	test_against_reference();
	test_ties();
	test_types();
	test_alone();
	test_gguf();
	test_refused();
	threads_free(threads);
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		diag("%s is left", root);
	return plan_done();
}
