/*
 * The gfx1100 backend with a paged cache against itself with a dense one: every
 * type of cache (in checked mode without T0_SLOW those of a byte); products of
 * tiles with attention of many queries, and of streams; texts of several runs,
 * sequences side by side, blocks in any order, shared and copied ones.  Sums have
 * the same order up to SPLIT_KEYS keys: there logits are equal to the bit.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/gpu/gpu.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"
#include "tests/serve/paged.h"

enum { POSITIONS = 240, LONG = 700, MOST = 72 };

static void test_cache(const struct qwen_model *m, enum qwen_weights type,
		       int passes)
{
	const struct qwen_shape shape = { .sequences = SEQUENCES,
					  .positions = POSITIONS,
					  .max_tokens = MOST,
					  .cache = qwen_both(type) };
	char name[QWEN_KINDS_TEXT];
	struct pair p;
	bool same = pair_open(&p, m, shape, 14);

	qwen_kinds_print(shape.cache, name);
	/* Few tokens of many sequences are not in tiles where it is paged. */
	for (int i = 0; i < passes && same; i++)
		same = i % 3 ? pair_pass(&p, 1, 2, 0) :
			       pair_pass(&p, 8, 16, QWEN_FEW);
	ok(same, "%s: paged logits are the dense ones to the bit", name);
	ok(same && pair_fork(&p), "%s: two go on from one text", name);
	pair_close(&p);
}

/* The largest difference, in units of the largest logit. */
static double differ_by(const struct pair *p, uint32_t i)
{
	const float *a = qwen_logits(p->dense, i),
		    *b = qwen_logits(p->paged, i);
	double most = 0, scale = 0;

	for (uint32_t j = 0; j < p->vocab; j++) {
		most = fmax(most, fabs((double)a[j] - (double)b[j]));
		scale = fmax(scale, fabs((double)a[j]));
	}
	return most / scale;
}

/* Longer than SPLIT_KEYS: other chunks than the dense cache's. */
static void test_long(const struct qwen_model *m)
{
	const struct qwen_shape shape = { SEQUENCES,   LONG, MOST,
					  qwen_both(QWEN_W_BF16), NULL, 0 };
	struct qwen_token t[MOST] = { 0 };
	struct pair p;
	struct err e = { 0 };
	bool good = pair_open(&p, m, shape, 14);
	double most = 0;

	for (uint32_t at = 0; good && at < LONG;) {
		uint32_t n = at < LONG - MOST ? MOST : 1;
		for (uint32_t i = 0; i < n; i++)
			t[i] = (struct qwen_token){ (at + i) * 7 % p.vocab, 1,
						    i + 1 == n, false, false };
		good = pair_extend(&p, 1, n) &&
		       qwen_forward(p.dense, t, n, &e) &&
		       qwen_forward(p.paged, t, n, &e);
		most = good ? fmax(most, differ_by(&p, n - 1)) : INFINITY;
		at += n > 1 ? n : 20;
	}
	ok(most < 1e-4, "a text of several splits: within 1e-4 (%g)", most);
	pair_close(&p);
}

static void test_model(enum qwen_weights weights, bool watched, int passes)
{
	char dir[] = "/tmp/t0-paged-gpu-XXXXXX", command[64];
	struct qwen_synthetic how = { .weights = weights, .seed = 3 };
	const struct soft_watch_options check = { .check = watched };
	struct qwen_load load = { .backend = &qwen_gpu };
	struct threads *threads;
	struct buf found = { 0 };
	struct err e = { 0 };
	struct qwen_model m;

	threads = threads_new(1, &e);
	load.driver = kfd_soft_new(NULL, &e);
	if (!ok(mkdtemp(dir) && qwen_shape_find("tiny", &how.config, &e) &&
			qwen_synthetic_write(dir, &how, &e) &&
			soft_watch_attach(load.driver, &check, &e) &&
			qwen_model_load(&m, dir, &load, threads, &e),
		"a model of %s%s", qwen_weights_name(weights),
		watched ? ", checked" : ""))
		diag("%s", e.msg);
	const bool all = !watched || getenv("T0_SLOW");
	for (int type = all ? 0 : QWEN_W_INT8; type <= QWEN_W_INT8; type++)
		test_cache(&m, (enum qwen_weights)type, passes);
	test_cache(&m, QWEN_W_F8, passes);
	if (!watched)
		test_long(&m);
	if (watched)
		is_u64(soft_watch_findings(load.driver, &found), 0,
		       "checked mode finds nothing");
	if (found.len)
		diag("%.2000s", found.data);
	buf_fini(&found);
	qwen_model_close(&m);
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the model is gone");
}

int main(void)
{
	if (getenv("T0_SLOW"))
		test_model(QWEN_W_F32, false, 24);
	test_model(QWEN_W_BF16, false, 24);
	test_model(QWEN_W_BF16, true, 5);
	return plan_done();
}
