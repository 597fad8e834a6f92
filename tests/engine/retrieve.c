/*
 * Vectors of texts and judgements against tests/ref/qwen.h, on folders as
 * Qwen3-Embedding (names without "model.", no output layer) and Qwen3-Reranker
 * have them.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "tests/ref/qwen.h"

enum { TEXTS = 9, HIDDEN = 64, POSITIONS = 400 };

static char root[] = "/tmp/t0-retrieve-XXXXXX";
static struct threads *threads;

static const char *at(const char *name)
{
	static char path[4][128];
	static int n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof(path[n]), "%s/%s", root, name);
	return path[n];
}

static void write_text(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	fwrite(text, 1, n, f);
	fclose(f);
}

/* A tokenizer that has both answers as tokens, as the published one. */
static void make_words(void)
{
	struct buf text = { 0 }, out = { 0 };
	struct err e = { 0 };

	for (int i = 0; i < 50; i++)
		buf_adds(&text, "yes\nno\nDocument Query Instruct answer\n");
	mkdir(at("words"), 0777);
	ok(qwen_bpe_train(text.data, text.len, 300, &out, &e),
	   "a tokenizer is learnt");
	write_text(at("words/tokenizer.json"), out.data, out.len);
	buf_fini(&text);
	buf_fini(&out);
}

static void make_model(const char *name, bool tied)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32,
				      .seed = 3,
				      .tokenizer = at("words") };
	struct err e = { 0 };

	qwen_shape_find("tiny", &how.config, &e);
	how.config.tied = tied;
	if (!ok(qwen_synthetic_write(at(name), &how, &e), "%s is made", name))
		diag("%s", e.msg);
}

static const void *bytes_of(void *ctx, size_t i, struct err *e)
{
	(void)e;
	return ((const struct qwen_tensor *)ctx)[i].data;
}

/* The same without "model." and the output layer. */
static void make_headless(void)
{
	struct qwen_tensor t[64];
	struct qwen_tensors all;
	struct err e = { 0 };
	size_t n = 0;

	make_model("headless", false);
	if (!qwen_tensors_open(&all, at("headless"), &e))
		diag("%s", e.msg);
	for (size_t i = 0; i < all.n_tensors; i++)
		if (strncmp(all.tensor[i].name, "model.", 6) == 0) {
			t[n] = all.tensor[i];
			t[n++].name += 6;
		}
	ok(qwen_tensors_write(at("x"), t, n, bytes_of, t, &e) &&
		   rename(at("x"), at("headless/model.safetensors")) == 0,
	   "a folder without an output layer");
	qwen_tensors_close(&all);
}

static struct qwen_model open_model(const char *dir, bool headless)
{
	struct qwen_load how = { .headless = headless };
	struct qwen_model m;
	struct err e = { 0 };

	if (!ok(qwen_model_load(&m, dir, &how, threads, &e), "it loads"))
		diag("%s", e.msg);
	return m;
}

/* ---- vectors ---- */

/* The worst distance of a vector from that of the reference. */
static double vectors_worst(const struct ref *r, const struct qwen_ids *text,
			    const float *v, uint32_t n)
{
	double most = 0;

	for (int i = 0; i < TEXTS; i++, v += n) {
		double *h = ref_hidden(r, text[i].v, (int)text[i].n);
		double *last = h + (text[i].n - 1) * HIDDEN, square = 0;
		for (uint32_t k = 0; k < n; k++)
			square += last[k] * last[k];
		for (uint32_t k = 0; k < n; k++)
			most = fmax(most, fabs(v[k] - last[k] / sqrt(square)));
		free(h);
	}
	return most;
}

static void test_shape(const struct qwen_model *m, const struct ref *r,
		       const struct qwen_ids *text, uint32_t sequences,
		       uint32_t max_tokens, uint32_t n)
{
	const struct qwen_shape shape = { .sequences = sequences,
					  .positions = POSITIONS,
					  .max_tokens = max_tokens };
	struct err e = { 0 };
	struct qwen_embedding how = { qwen_state_new(m, &shape, &e), sequences,
				      max_tokens, n };
	float *v = xcalloc(TEXTS * n, sizeof(*v));
	char what[96];

	snprintf(what, sizeof(what),
		 "%u values, %u texts and %u tokens at "
		 "once",
		 n, sequences, max_tokens);
	if (!ok(qwen_embed(&how, text, TEXTS, v, &e), "%s", what))
		diag("%s", e.msg);
	close_to(vectors_worst(r, text, v, n), 1e-5, what);
	qwen_state_free(how.state);
	free(v);
}

static void texts_make(struct qwen_ids *text, uint32_t vocab)
{
	uint64_t seed = 11;

	for (uint32_t i = 0; i < TEXTS; i++)
		for (uint32_t k = 0; k < (i == 4 ? 1 : 1 + 7 * i); k++)
			qwen_ids_add(&text[i],
				     (uint32_t)(random_next(&seed) % vocab));
}

static void test_vectors(const char *dir, const char *of)
{
	struct qwen_ids text[TEXTS] = { 0 };
	struct ref r = { 0 };
	struct qwen_model m = open_model(dir, true);

	texts_make(text, m.config.vocab);
	ref_open(&r, at(of));
	test_shape(&m, &r, text, 1, 128, HIDDEN);
	test_shape(&m, &r, text, 1, 5, HIDDEN);
	test_shape(&m, &r, text, 3, 16, 20);
	test_shape(&m, &r, text, 16, 40, 1);
	test_shape(&m, &r, text, 16, 512, HIDDEN);
	for (int i = 0; i < TEXTS; i++)
		qwen_ids_fini(&text[i]);
	ref_close(&r);
	qwen_model_close(&m);
}

static void test_headless(void)
{
	const struct qwen_load how = { 0 };
	struct qwen_conversion to = { .from = at("headless"),
				      .to = at("headless.gguf"),
				      .threads = threads };
	struct qwen_model m;
	struct err e = { 0 };

	ok(!qwen_model_load(&m, at("headless"), &how, threads, &e) &&
		   e.code == ERR_INPUT,
	   "without an output layer nothing is predicted");
	has_str(e.msg, "t0-qwen3 embed", "but there is a use");
	if (!ok(qwen_model_convert(&to, &e), "it becomes a file"))
		diag("%s", e.msg);
	test_vectors(at("headless.gguf"), "headless");
}

static void test_broken(void)
{
	const struct qwen_shape shape = { .sequences = 1,
					  .positions = 8,
					  .max_tokens = 8 };
	struct qwen_model m = open_model(at("headless"), true);
	struct qwen_ids text = { 0 };
	struct err e = { 0 };
	float *no = xcalloc(HIDDEN, sizeof(*no)), v[HIDDEN];
	const float *norm = m.norm;
	struct qwen_embedding how = { qwen_state_new(&m, &shape, &e), 1, 8,
				      HIDDEN };

	m.norm = no;
	qwen_ids_add(&text, 7);
	ok(!qwen_embed(&how, &text, 1, v, &e) && e.code == ERR_DEVICE,
	   "a vector without a direction is an error");
	m.norm = norm;
	free(no);
	qwen_ids_fini(&text);
	qwen_state_free(how.state);
	qwen_model_close(&m);
}

/* ---- questions ---- */

#define JUDGE(instruction, query, document) \
	"<|im_start|>system\nJudge whether the Document meets the " \
	"requirements based on the Query and the Instruct provided. Note " \
	"that the answer can only be \"yes\" or \"no\".<|im_end|>\n" \
	"<|im_start|>user\n<Instruct>: " instruction "\n<Query>: " query \
	"\n<Document>: " document "<|im_end|>\n<|im_start|>assistant\n" \
	"<think>\n\n</think>\n\n"

static void is_encoded(struct qwen_encoder *x, const struct qwen_ids *got,
		       const char *text, const char *what)
{
	struct qwen_ids want = { 0 };
	struct err e = { 0 };

	qwen_encode(x, text, strlen(text), 0, &want, &e);
	ok(got->n == want.n &&
		   memcmp(got->v, want.v, want.n * sizeof(*want.v)) == 0,
	   "%s is as published", what);
	qwen_ids_fini(&want);
}

static void test_questions(void)
{
	struct err e = { 0 };
	struct qwen_tokenizer *tok = qwen_tokenizer_load(at("words"), &e);
	struct qwen_encoder *x = qwen_encoder_new(tok);
	uint32_t end = (uint32_t)qwen_token_find(tok, QWEN_SEARCH_END);
	struct qwen_ids ids = { 0 };

	qwen_search_encode(x, NULL, "Hi", 2, 0, end, &ids, &e);
	is_encoded(x, &ids, "Hi<|endoftext|>", "a text");
	ids.n = 0;
	qwen_search_encode(x, "Find it", "the answer", 10, 0, end, &ids, &e);
	is_encoded(x, &ids, "Instruct: Find it\nQuery:the answer<|endoftext|>",
		   "a query");
	ids.n = 0;
	qwen_judge_encode(x, QWEN_SEARCH_INSTRUCTION, "who?", "Document no", 11,
			  0, &ids, &e);
	is_encoded(x, &ids,
		   JUDGE("Given a web search query, retrieve relevant "
			 "passages that answer the query",
			 "who?", "Document no"),
		   "a judgement");
	ids.n = 0;
	qwen_judge_encode(x, "i", "q", "<|im_end|>", 10, QWEN_PLAIN, &ids, &e);
	size_t ends = 0;
	for (size_t i = 0; i < ids.n; i++)
		ends += (int64_t)ids.v[i] == qwen_token_find(tok, "<|im_end|>");
	is_u64(ends, 2, "a document ends no turn where it is plain text");
	qwen_ids_fini(&ids);
	qwen_encoder_free(x);
	qwen_tokenizer_free(tok);
}

/* ---- judgements ---- */

static void test_judged(uint32_t max_tokens)
{
	static const char *const document[] = {
		"no",
		"yes yes",
		"yes yes no",
		"yes yes",
		"",
		"yes",
		"Query Document answer, and a longer text behind it.",
	};
	enum { N = ARRAY_SIZE(document) };
	const struct qwen_shape shape = { .sequences = 1,
					  .positions = POSITIONS,
					  .max_tokens = max_tokens };
	struct err e = { 0 };
	struct qwen_model m = open_model(at("judge"), false);
	struct qwen_tokenizer *tok = qwen_tokenizer_load(at("judge"), &e);
	struct qwen_encoder *x = qwen_encoder_new(tok);
	struct qwen_judging how = { qwen_state_new(&m, &shape, &e), max_tokens,
				    0, 0 };
	struct qwen_ids prompt[N] = { 0 };
	double score[N], most = 0;
	struct ref r = { 0 };

	ok(qwen_judge_words(x, &how.yes, &how.no, &e), "there are answers");
	for (int i = 0; i < N; i++)
		qwen_judge_encode(x, "i", "q", document[i], strlen(document[i]),
				  0, &prompt[i], &e);
	if (!ok(qwen_judge(&how, prompt, N, score, &e), "%d are judged", N))
		diag("%s", e.msg);
	ref_open(&r, at("judge"));
	for (int i = 0; i < N; i++) {
		double *l = ref_logits(&r, prompt[i].v, (int)prompt[i].n);
		const double *last = l + (prompt[i].n - 1) * m.config.vocab;
		double yes = exp(last[how.yes]), no = exp(last[how.no]);
		most = fmax(most, fabs(score[i] - yes / (yes + no)));
		free(l);
		qwen_ids_fini(&prompt[i]);
	}
	close_to(most, 1e-5, "probabilities of yes");
	ok(score[1] != score[0] && fabs(score[1] - score[3]) < 1e-6,
	   "the same document has the same score");
	ref_close(&r);
	qwen_state_free(how.state);
	qwen_encoder_free(x);
	qwen_tokenizer_free(tok);
	qwen_model_close(&m);
}

static void test_no_words(void)
{
	struct err e = { 0 };
	struct qwen_synthetic how = { .weights = QWEN_W_F32 };
	struct qwen_encoder *x;
	uint32_t yes, no;

	qwen_shape_find("tiny", &how.config, &e);
	ok(qwen_synthetic_write(at("other"), &how, &e), "another model");
	struct qwen_tokenizer *tok = qwen_tokenizer_load(at("other"), &e);
	x = qwen_encoder_new(tok);
	ok(!qwen_judge_words(x, &yes, &no, &e), "has no such answers");
	has_str(e.msg, "\"yes\" is 2 tokens", "which is said");
	qwen_encoder_free(x);
	qwen_tokenizer_free(tok);
}

int main(void)
{
	struct err e = { 0 };
	char command[96];

	threads = threads_new(2, &e);
	if (!mkdtemp(root))
		BUG("no folder in /tmp");
	make_words();
	make_headless();
	make_model("judge", true);
	test_vectors(at("headless"), "headless");
	test_vectors(at("judge"), "judge");
	test_headless();
	test_broken();
	test_questions();
	test_judged(400);
	test_judged(7);
	test_no_words();
	snprintf(command, sizeof(command), "rm -r %s", root);
	if (system(command) != 0)
		diag("%s stays", root);
	threads_free(threads);
	return plan_done();
}
