/*
 * The gfx1100 backend with a paged cache against itself with a dense one, in
 * checked mode: every type of cache; products of tiles with attention of many
 * queries, and of streams; texts of several runs, sequences side by side,
 * blocks in any order, shared and copied ones.  Sums have the same order up to
 * SPLIT_KEYS keys: there logits are equal to the bit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/gpu/gpu.h"
#include "engine/model/model.h"
#include "engine/serve/serve.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"
#include "tests/tap.h"

enum { SEQUENCES = 3, POSITIONS = 240, LONG = 700, MOST = 72, BLOCKS = 160 };

struct pair {
	struct qwen_state *dense, *paged;
	struct qwen_pages *pages;
	struct qwen_table table[SEQUENCES];
	uint64_t seed;
	uint32_t vocab;
};

static bool extend_pair(struct pair *p, uint32_t sequence, uint32_t n)
{
	struct qwen_table *t = &p->table[sequence];
	struct qwen_copy copy;
	uint32_t was = t->length;

	if (!qwen_pages_extend(p->pages, t, n, &copy))
		return false;
	if (copy.wanted)
		qwen_state_copy(p->paged, copy.from, copy.to);
	qwen_state_map(p->paged, sequence, t->block, was);
	return true;
}

/* One pass of random tokens of all sequences; are their logits the same? */
static bool same_pass(struct pair *p, bool wide)
{
	struct qwen_token t[MOST];
	struct err e = { 0 };
	uint32_t n = 0, least = wide ? 8 : 1, most = wide ? 16 : 2;

	for (uint32_t s = 0; s < SEQUENCES; s++) {
		uint32_t some =
			(uint32_t)(random_next(&p->seed) % most) + least;
		if (p->table[s].length + some > POSITIONS ||
		    !extend_pair(p, s, some))
			continue;
		while (some--)
			t[n++] = (struct qwen_token){
				(uint32_t)(random_next(&p->seed) % p->vocab), s,
				true, false, false };
	}
	/* Few tokens of many sequences are not in tiles where it is paged. */
	if (wide && n <= QWEN_FEW)
		return true;
	if (!qwen_forward(p->dense, t, n, &e) ||
	    !qwen_forward(p->paged, t, n, &e)) {
		diag("%s", e.msg);
		return false;
	}
	for (uint32_t i = 0; i < n; i++)
		if (memcmp(qwen_logits(p->dense, i), qwen_logits(p->paged, i),
			   p->vocab * sizeof(float)) != 0) {
			diag("token %u of %u at length %u differs", i, n,
			     qwen_state_length(p->paged, t[i].sequence));
			return false;
		}
	return true;
}

/* A text that goes on in another sequence, block by block shared. */
static bool same_fork(struct pair *p, const struct qwen_shape *shape)
{
	struct qwen_token a[20], b[20];
	struct err e = { 0 };
	bool same = true;

	for (uint32_t s = 0; s < SEQUENCES; s++) {
		qwen_pages_drop(p->pages, &p->table[s]);
		qwen_state_truncate(p->dense, s, 0);
	}
	for (uint32_t i = 0; i < 20; i++) {
		a[i] = (struct qwen_token){ .id = i * 7 % p->vocab,
					    .logits = true };
		b[i] = a[i];
		b[i].sequence = 1;
	}
	same = extend_pair(p, 0, 20) && qwen_forward(p->paged, a, 20, &e) &&
	       qwen_forward(p->dense, a, 20, &e) &&
	       qwen_forward(p->dense, b, 20, &e);
	qwen_pages_fork(p->pages, &p->table[1], &p->table[0]);
	for (uint32_t i = 0; i < 9 && same; i++) {
		struct qwen_token two[] = { { i, 0, true, false, false },
					    { 9 - i, 1, true, false, false } };
		same = extend_pair(p, 0, 1) && extend_pair(p, 1, 1) &&
		       qwen_forward(p->paged, two, 2, &e) &&
		       qwen_forward(p->dense, two, 2, &e);
		for (uint32_t j = 0; j < 2 && same; j++)
			same = !memcmp(qwen_logits(p->dense, j),
				       qwen_logits(p->paged, j),
				       p->vocab * sizeof(float));
	}
	return same && qwen_pages_left(p->pages) == shape->blocks - 3;
}

static void drop_all(struct pair *p)
{
	for (uint32_t s = 0; s < SEQUENCES; s++)
		qwen_pages_drop(p->pages, &p->table[s]);
}

/* Blocks of no order: texts of single blocks, dropped across. */
static bool pair_open(struct pair *p, const struct qwen_model *m,
		      struct qwen_shape shape)
{
	struct err e = { 0 };
	bool good = true;

	*p = (struct pair){ .seed = 5 + shape.cache.keys, .vocab = m->config.vocab };
	p->dense = qwen_state_new(m, &shape, &e);
	shape.blocks = BLOCKS;
	p->paged = qwen_state_new(m, &shape, &e);
	p->pages = qwen_pages_new(BLOCKS);
	if (!p->dense || !p->paged) {
		diag("%s", e.msg);
		return false;
	}
	for (uint32_t i = 0; i < 14; i++)
		for (uint32_t s = 0; s < SEQUENCES; s++)
			good = extend_pair(p, s, 1 + (i * 5 + s * 11) % 16) &&
			       good;
	drop_all(p);
	return good;
}

static void pair_close(struct pair *p)
{
	drop_all(p);
	qwen_pages_free(p->pages);
	qwen_state_free(p->dense);
	qwen_state_free(p->paged);
}

static void test_cache(const struct qwen_model *m, enum qwen_weights type,
		       int passes)
{
	const struct qwen_shape shape = { .sequences = SEQUENCES,
					  .positions = POSITIONS,
					  .max_tokens = MOST,
					  .cache = qwen_both(type) };
	char name[QWEN_KINDS_TEXT];
	struct pair p;
	bool same = pair_open(&p, m, shape);

	qwen_kinds_print(shape.cache, name);
	for (int i = 0; i < passes && same; i++)
		same = same_pass(&p, i % 3 == 0);
	ok(same, "%s: paged logits are the dense ones to the bit", name);
	ok(same && same_fork(&p, &(struct qwen_shape){ .blocks = BLOCKS }),
	   "%s: two go on from one text", name);
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
	bool good = pair_open(&p, m, shape);
	double most = 0;

	for (uint32_t at = 0; good && at < LONG;) {
		uint32_t n = at < LONG - MOST ? MOST : 1;
		for (uint32_t i = 0; i < n; i++)
			t[i] = (struct qwen_token){ (at + i) * 7 % p.vocab, 1,
						    i + 1 == n, false, false };
		good = extend_pair(&p, 1, n) &&
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
	for (int type = 0; type <= QWEN_W_INT8; type++)
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
	test_model(QWEN_W_F32, false, 24);
	test_model(QWEN_W_BF16, false, 24);
	test_model(QWEN_W_BF16, true, 5);
	return plan_done();
}
