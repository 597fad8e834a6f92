/*
 * A pass of few tokens gives each of them the logits that it has alone, to the
 * bit: what speculation, and a batch of many texts, stand on.  For every type
 * of weights and of caches, in contexts of one run of positions and of several.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "tests/tap.h"

enum { MOST = 8, POSITIONS = 600 };
static const uint32_t depths[] = { 1, 37, 255, 510 };

static char dir[] = "/tmp/t0-few-XXXXXX";
static struct threads *threads;

static bool feed(struct qwen_state *s, const uint32_t *ids, uint32_t n,
		 bool logits)
{
	struct qwen_token t[POSITIONS] = { 0 };
	struct err e = { 0 };

	for (uint32_t i = 0; i < n; i++)
		t[i] = (struct qwen_token){ .id = ids[i], .logits = logits };
	return qwen_forward(s, t, n, &e);
}

/* Passes of 2 to MOST tokens behind a depth, against one by one. */
static bool is_same(struct qwen_state *s, const struct qwen_model *m,
		    uint32_t depth)
{
	const size_t bytes = m->config.vocab * sizeof(float);
	uint32_t ids[POSITIONS];
	uint8_t *alone = xmalloc(MOST * bytes);
	uint64_t seed = depth;
	bool good;

	for (uint32_t i = 0; i < depth + MOST; i++)
		ids[i] = (uint32_t)(random_next(&seed) % m->config.vocab);
	qwen_state_truncate(s, 0, 0);
	good = feed(s, ids, depth, false);
	for (uint32_t i = 0; i < MOST && good; i++) {
		good = feed(s, ids + depth + i, 1, true);
		memcpy(alone + i * bytes, qwen_logits(s, 0), bytes);
	}
	for (uint32_t n = 2; n <= MOST && good; n++) {
		qwen_state_truncate(s, 0, depth);
		good = feed(s, ids + depth, n, true);
		for (uint32_t i = 0; i < n && good; i++)
			good = !memcmp(qwen_logits(s, i), alone + i * bytes,
				       bytes);
		if (!good)
			diag("%u tokens behind %u", n, depth);
	}
	free(alone);
	return good;
}

static void test_model(const char *path, const struct qwen_load *how,
		       const char *name)
{
	static const enum qwen_weights caches[] = { QWEN_W_F32,	 QWEN_W_F16,
						    QWEN_W_BF16, QWEN_W_INT8,
						    QWEN_W_F8,	 QWEN_W_INT4,
						    QWEN_W_INT4R };
	static size_t models;
	struct qwen_model m;
	struct err e = { 0 };
	bool good = qwen_model_load(&m, path, how, threads, &e);

	models++;
	if (!ok(good, "%s loads", name)) {
		diag("%s", e.msg);
		return;
	}
	ok(m.backend->few >= MOST, "%s: the backend says %u", name,
	   m.backend->few);
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		const struct qwen_shape shape = { .sequences = 1,
						  .positions = POSITIONS,
						  .max_tokens = POSITIONS,
						  .cache = qwen_both(
							  caches[i]) };
		char kind[QWEN_KINDS_TEXT];
		/* Of the first model all; of others half of them, by turns. */
		if (models > 1 && (models + i) % 2 && !getenv("T0_SLOW"))
			continue;
		struct qwen_state *s = qwen_state_new(&m, &shape, &e);
		good = s != NULL;
		for (size_t d = 0; d < ARRAY_SIZE(depths) && good; d++)
			good = is_same(s, &m, depths[d]);
		ok(good, "%s with a cache of %s: few as alone", name,
		   qwen_kinds_print(shape.cache, kind));
		qwen_state_free(s);
	}
	qwen_model_close(&m);
}

/* Types that a file alone has. */
static void test_file(const char *from, enum qwen_weights type)
{
	struct qwen_conversion how = {
		.from = from, .typed = true, .type = type, .threads = threads
	};
	struct qwen_load load = { 0 };
	char to[64];
	struct err e = { 0 };

	snprintf(to, sizeof(to), "%s/%s.gguf", dir, qwen_weights_name(type));
	how.to = to;
	ok(qwen_model_convert(&how, &e), "a file of %s",
	   qwen_weights_name(type));
	test_model(to, &load, qwen_weights_name(type));
}

int main(void)
{
	static const enum qwen_weights made[] = { QWEN_W_F32, QWEN_W_F16,
						  QWEN_W_BF16, QWEN_W_INT8,
						  QWEN_W_INT4 };
	static const enum qwen_weights files[] = { QWEN_W_Q4_K, QWEN_W_Q6_K,
						   QWEN_W_Q8_0, QWEN_W_Q4_0 };
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 5 };
	struct qwen_load load = { 0 };
	struct err e = { 0 };
	char path[64], moe[64], command[64];

	threads = threads_new(2, &e);
	if (!mkdtemp(dir) || !qwen_shape_find("tiny", &how.config, &e))
		skip_all("no model: %s", e.msg);
	snprintf(path, sizeof(path), "%s/model", dir);
	snprintf(moe, sizeof(moe), "%s/moe", dir);
	how.config.hidden = 256; /* blocks of 256 */
	how.config.ffn = 512;
	how.config.max_positions = POSITIONS;
	how.config.heads = 8;
	how.config.kv_heads = 2;
	ok(qwen_synthetic_write(path, &how, &e), "a model: %s", e.msg);
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		load = (struct qwen_load){ .convert = true,
					   .weights = made[i] };
		test_model(path, &load, qwen_weights_name(made[i]));
	}
	for (enum qwen_activations as = QWEN_AS_F32; as <= QWEN_AS_F16; as++) {
		load = (struct qwen_load){ .convert = true,
					   .weights = QWEN_W_INT8,
					   .activations = as };
		test_model(path, &load, "int8 with other activations");
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		test_file(path, files[i]);
	ok(qwen_shape_find("tiny-moe", &how.config, &e) &&
		   qwen_synthetic_write(moe, &how, &e),
	   "a mixture");
	load = (struct qwen_load){ 0 };
	test_model(moe, &load, "a mixture");
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the models are gone");
	return plan_done();
}
