/*
 * Models with an Engram: logits of passes of any length, and of trees, against
 * double precision (tests/ref/qwen.h) and single tokens; what is no such model.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/gpu/gpu.h"
#include "engine/model/model.h"
#include "tests/ref/qwen.h"

enum { N = 40 };

static char root[] = "/tmp/t0-engram-XXXXXX";
static struct threads *threads;
static uint32_t ids[N];

static struct qwen_state *state_new(const struct qwen_model *m)
{
	const struct qwen_shape shape = { .sequences = 2,
					  .positions = N,
					  .max_tokens = N,
					  .cache = qwen_both(QWEN_W_F32) };
	struct err e = { 0 };

	return qwen_state_new(m, &shape, &e);
}

/* The text in pieces, as sequence 1; the worst error of all tokens. */
static double run_pieces(const struct qwen_model *m, uint32_t piece,
			 const double *want)
{
	struct qwen_state *s = state_new(m);
	struct qwen_token t[N];
	struct err e = { 0 };
	double most = 0;

	for (uint32_t at = 0; at < N; at += piece) {
		const uint32_t n = at + piece < N ? piece : N - at;
		for (uint32_t i = 0; i < n; i++)
			t[i] = (struct qwen_token){ .id = ids[at + i],
						    .sequence = 1,
						    .logits = true };
		if (!qwen_forward(s, t, n, &e))
			return INFINITY;
		for (uint32_t i = 0; i < n; i++)
			most = fmax(most, worst(qwen_logits(s, i),
						want + (size_t)(at + i) *
								m->config.vocab,
						(int)m->config.vocab));
	}
	qwen_state_free(s);
	return most;
}

static void test_types(const char *dir, const double *want)
{
	static const struct {
		enum qwen_weights w;
		double bound;
	} of[] = { { QWEN_W_F32, 1e-4 },
		   { QWEN_W_BF16, 0.1 },
		   { QWEN_W_INT8, 0.2 } };
	static const uint32_t piece[] = { 1, 3, 17, N };

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		const struct qwen_load how = { .convert = true,
					       .weights = of[i].w };
		struct qwen_model m;
		struct err e = { 0 };
		char what[64];
		if (!ok(qwen_model_load(&m, dir, &how, threads, &e),
			"a model as %s: %s", qwen_weights_name(of[i].w), e.msg))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(piece); k++) {
			snprintf(what, sizeof(what), "%s, pieces of %u",
				 qwen_weights_name(of[i].w), piece[k]);
			close_to(run_pieces(&m, piece[k], want), of[i].bound,
				 what);
		}
		qwen_model_close(&m);
	}
}

/* Single tokens: what they say of `id` behind the text and n others. */
static bool is_said(const struct qwen_model *m, const uint32_t *more,
		    uint32_t n, const float *got)
{
	struct qwen_state *s = state_new(m);
	struct err e = { 0 };
	bool good = true;

	for (uint32_t i = 0; i < N / 2 + n && good; i++) {
		const struct qwen_token t = { .id = i < N / 2 ? ids[i] :
								more[i - N / 2],
					      .logits = true };
		good = qwen_forward(s, &t, 1, &e);
	}
	good = good &&
	       !memcmp(got, qwen_logits(s, 0), m->config.vocab * sizeof(*got));
	qwen_state_free(s);
	return good;
}

/*
 * Behind half of the text, in each of two sequences: a root with children a
 * and b, b with child c.  Then b and c are taken, and a token follows.
 */
static void test_tree(const struct qwen_model *m)
{
	static const uint32_t parent[] = { QWEN_ROOT, 0, 0, 2 };
	static const uint32_t id[] = { 7, 8, 9, 10 }, last = 11;
	static const uint32_t path[][4] = {
		{ 7 }, { 7, 8 }, { 7, 9 }, { 7, 9, 10 }
	};
	static const uint32_t deep[] = { 1, 2, 2, 3 };
	const uint32_t whole[] = { 7, 9, 10, last };
	struct qwen_state *s = state_new(m);
	struct qwen_token t[N] = { 0 };
	struct err e = { 0 };
	uint32_t same = 0;

	for (uint32_t i = 0; i < N / 2; i++) {
		t[0].id = ids[i];
		qwen_forward(s, t, 1, &e);
	}
	for (uint32_t i = 0; i < 4; i++)
		t[i] = (struct qwen_token){ .id = id[i], .logits = true };
	ok(qwen_forward_tree(s, t, parent, 4, &e), "a tree: %s", e.msg);
	for (uint32_t i = 0; i < 4; i++)
		same += is_said(m, path[i], deep[i], qwen_logits(s, i));
	is_u64(same, 4, "each token of it has its own ancestors, to the bit");
	qwen_state_take(s, 3);
	t[0] = (struct qwen_token){ .id = last, .logits = true };
	ok(qwen_forward(s, t, 1, &e) && is_said(m, whole, 4, qwen_logits(s, 0)),
	   "and what follows knows those that were taken");
	qwen_state_free(s);
}

static void test_refuses(const char *dir)
{
	static const struct {
		const char *engram, *why;
	} row[] = {
		{ "{\"rows\": 0, \"layer\": 1}", "\"rows\" is 0" },
		{ "{\"rows\": 5, \"layer\": 9}", "\"layer\" is 9" },
		{ "{\"rows\": 5}", "\"layer\" is missing" },
		{ "7", "\"rows\"" },
	};
	const struct qwen_load gpu = { .backend = &qwen_gpu, .device = "soft" };
	struct buf text = { 0 };
	struct qwen_config c;
	struct qwen_model m;
	struct err e = { 0 };
	char path[128];

	ok(!qwen_model_load(&m, dir, &gpu, threads, &e) &&
		   e.code == ERR_UNSUPPORTED,
	   "the gfx1100 refuses it");
	has_str(e.msg, "--backend cpu has", "and says who does not");
	snprintf(path, sizeof(path), "%s/config.json", dir);
	e = (struct err){ 0 };
	ok(file_read(path, 0, &text, &e), "its configuration");
	buf_adds(&text, "");
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		json_t *j = json_loads(text.data, 0, NULL);
		json_object_set_new(
			j, "t0_engram",
			json_loads(row[i].engram, JSON_DECODE_ANY, NULL));
		char *changed = json_dumps(j, 0);
		e = (struct err){ 0 };
		ok(!qwen_config_parse(&c, changed, NULL, &e),
		   "refused: an Engram %s", row[i].engram);
		has_str(e.msg, row[i].why, "for what it is");
		free(changed);
		json_decref(j);
	}
	buf_fini(&text);
}

int main(void)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 4 };
	const struct qwen_load as_is = { 0 };
	struct err e = { 0 };
	struct qwen_model m;
	struct ref r;
	char command[64], dir[64];

	if (!mkdtemp(root))
		skip_all("no folder");
	threads = threads_new(2, &e);
	snprintf(dir, sizeof(dir), "%s/model", root);
	qwen_shape_find("tiny", &how.config, &e);
	how.config.engram = (struct qwen_engram){ .rows = 37, .layer = 1 };
	/* Runs of tokens come again. */
	for (uint32_t i = 0; i < N; i++)
		ids[i] = i % 11 + i / 29;
	if (!ok(qwen_synthetic_write(dir, &how, &e) &&
			qwen_model_load(&m, dir, &as_is, threads, &e),
		"a model with a table: %s", e.msg))
		return plan_done();
	is_u64(m.engram.rows, 2 * 37, "of runs of two tokens and of three");
	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	test_types(dir, want);
	test_tree(&m);
	test_refuses(dir);
	free(want);
	ref_close(&r);
	qwen_model_close(&m);
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ok(system(command) == 0, "the model is gone");
	return plan_done();
}
