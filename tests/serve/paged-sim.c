/*
 * In the simulator a kernel that reads or writes a paged cache takes at most 5
 * % longer than with a dense one: decoding of short texts and long ones, several
 * sequences, prompts, and every type of cache (without T0_SLOW half of it for
 * most types).
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost.h"
#include "engine/gpu/gpu.h"
#include "engine/model/model.h"
#include "tests/tap.h"

#define BOUND 1.05

/* The kernels that know where a cache lies. */
static const char *const kernels[] = { "attn_decode", "attn_split", "attention",
				       "stream_heads", "qk_norm_rope" };

static double seconds_of(const struct gpu_forecast *f, const char *kernel)
{
	double all = 0;

	for (size_t i = 0; i < f->n; i++)
		if (strstr(f->share[i].kernel, kernel))
			all += f->share[i].launches * f->share[i].each_s;
	return all;
}

static void test_pass(const struct qwen_config *c, const struct cost_model *m,
		      struct gpu_question q)
{
	struct gpu_forecast dense = { 0 }, paged = { 0 };
	char cache[QWEN_KINDS_TEXT];
	struct err e = { 0 };
	uint32_t n = 0;

	if (!gpu_forecast(c, &q, m, &dense, &e))
		diag("%s", e.msg);
	q.paged = true;
	if (!gpu_forecast(c, &q, m, &paged, &e))
		diag("%s", e.msg);
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		double was = seconds_of(&dense, kernels[i]);
		double is = seconds_of(&paged, kernels[i]);

		if (!was || !is)
			continue;
		n++;
		ok(is <= BOUND * was,
		   "%s, cache of %s, %u x %u tokens of %u: %.3f of dense's %.2f us",
		   kernels[i], qwen_kinds_print(q.cache, cache), q.sequences,
		   q.tokens, q.positions, is / was, was * 1e6);
	}
	ok(n >= 2, "%u kernels are compared; all of the pass: %.3f", n,
	   paged.kernels_s / dense.kernels_s);
	free(dense.share);
	free(paged.share);
}

int main(void)
{
	static const enum qwen_weights caches[] = { QWEN_W_F16, QWEN_W_BF16,
						    QWEN_W_INT8, QWEN_W_F32,
						    QWEN_W_F8 };
	static const struct gpu_question passes[] = {
		{ .sequences = 1, .tokens = 1, .positions = 10 },
		{ .sequences = 1, .tokens = 1, .positions = 64 },
		{ .sequences = 1, .tokens = 1, .positions = 101 },
		{ .sequences = 1, .tokens = 1, .positions = 200 },
		{ .sequences = 1, .tokens = 1, .positions = 255 },
		{ .sequences = 5, .tokens = 1, .positions = 130 },
		{ .sequences = 1, .tokens = 1, .positions = 4096 },
		{ .sequences = 8, .tokens = 1, .positions = 1024 },
		{ .sequences = 1, .tokens = 512, .positions = 512 },
		{ .sequences = 1, .tokens = 256, .positions = 4096 },
	};
	struct qwen_config c;
	struct cost_model m;
	struct err e = { 0 };

	if (!qwen_shape_find("0.6b", &c, &e) ||
	    !cost_open(&m, "gfx1100", NULL, NULL, COST_HARDWARE, NULL, &e))
		skip_all("no costs: %s", e.msg);
	c.layers = 1; /* all are the same */
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++)
		for (size_t j = 0; j < ARRAY_SIZE(passes); j++) {
			struct gpu_question q = passes[j];

			if (j % 2 != i % 2 && i > 1 && !getenv("T0_SLOW"))
				continue;
			q.weights = QWEN_W_BF16;
			q.cache = qwen_both(caches[i]);
			test_pass(&c, &m, q);
		}
	cost_fini(&m);
	return plan_done();
}
