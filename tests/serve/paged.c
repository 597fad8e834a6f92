/*
 * Logits with a paged cache against those of the dense one, to the bit: every
 * type of cache, short passes and long ones, texts of several runs, sequences
 * side by side, blocks in any order, shared and copied ones.
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/serve/paged.h"

enum { POSITIONS = 640 };

static const char *const types[] = { "f32",  "f16",   "bf16",	 "f8",
				     "int8", "int4r", "int4,f16" };

static void test_cache(const struct qwen_model *m, const char *type)
{
	struct qwen_shape shape = { .sequences = SEQUENCES,
				    .positions = POSITIONS,
				    .max_tokens = MOST_TOKENS };
	struct pair p;
	struct err e = { 0 };

	if (!qwen_kinds_parse(type, &shape.cache, &e))
		BUG("%s", e.msg);
	bool same = pair_open(&p, m, shape, 31);
	for (int i = 0; i < 40 && same; i++)
		same = pair_pass(&p, 1, i % 3 ? 2 : MOST_TOKENS / SEQUENCES, 0);
	ok(same, "%s, %s: paged logits are the dense ones to the bit",
	   m->kernels->name, type);
	ok(same && pair_fork(&p), "%s, %s: two go on from one text",
	   m->kernels->name, type);
	pair_close(&p);
}

int main(void)
{
	char dir[] = "/tmp/t0-paged-XXXXXX";
	char command[64];
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 3 };
	struct err e = { 0 };
	struct threads *threads = threads_new(2, &e);

	if (!mkdtemp(dir) || !qwen_shape_find("tiny", &how.config, &e) ||
	    !qwen_synthetic_write(dir, &how, &e))
		skip_all("no model: %s", e.msg);
	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k;
	     k++) {
		struct qwen_load load = { 0 };
		struct qwen_model m;
		setenv("T0_ENGINE_SIMD", (*k)->name, 1);
		if (!ok(qwen_model_load(&m, dir, &load, threads, &e),
			"%s: a model", (*k)->name))
			break;
		for (size_t i = 0; i < ARRAY_SIZE(types); i++)
			test_cache(&m, types[i]);
		qwen_model_close(&m);
	}
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the model is gone");
	return plan_done();
}
