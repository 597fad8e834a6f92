/*
 * Logits with a paged cache against those of the dense one, to the bit: every
 * type of cache, short passes and long ones, texts of several runs, sequences
 * side by side, blocks in any order, shared and copied ones.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/serve/serve.h"
#include "tests/tap.h"

enum { SEQUENCES = 3, POSITIONS = 640, MOST = 150, BLOCKS = 160 };

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
	uint32_t n = 0, most = wide ? MOST / SEQUENCES : 2;

	for (uint32_t s = 0; s < SEQUENCES; s++) {
		uint32_t some = (uint32_t)(random_next(&p->seed) % most) + 1;
		if (p->table[s].length + some > POSITIONS ||
		    !extend_pair(p, s, some))
			continue;
		while (some--)
			t[n++] = (struct qwen_token){
				(uint32_t)(random_next(&p->seed) % p->vocab), s,
				true, false, false };
	}
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

static const char *const types[] = { "f32",  "f16",   "bf16",	 "f8",
				     "int8", "int4r", "int4,f16" };

static void test_cache(const struct qwen_model *m, const char *type)
{
	struct qwen_shape shape = { .sequences = SEQUENCES,
				    .positions = POSITIONS,
				    .max_tokens = MOST };
	struct pair p = { .seed = 5 + strlen(type), .vocab = m->config.vocab };
	struct err e = { 0 };
	bool same = true;

	if (!qwen_kinds_parse(type, &shape.cache, &e))
		BUG("%s", e.msg);
	p.dense = qwen_state_new(m, &shape, &e);
	shape.blocks = BLOCKS;
	p.paged = qwen_state_new(m, &shape, &e);
	p.pages = qwen_pages_new(BLOCKS);
	/* Blocks of no order: texts of single blocks, dropped across. */
	for (uint32_t i = 0; i < 31; i++)
		for (uint32_t s = 0; s < SEQUENCES; s++)
			same = extend_pair(&p, s, 1 + (i * 5 + s * 11) % 16) && same;
	for (uint32_t s = 0; s < SEQUENCES; s++)
		qwen_pages_drop(p.pages, &p.table[s]);
	for (int i = 0; i < 40 && same; i++)
		same = same_pass(&p, i % 3 == 0);
	ok(same, "%s, %s: paged logits are the dense ones to the bit",
	   m->kernels->name, type);
	ok(same_fork(&p, &shape), "%s, %s: two go on from one text",
	   m->kernels->name, type);
	for (uint32_t s = 0; s < SEQUENCES; s++)
		qwen_pages_drop(p.pages, &p.table[s]);
	qwen_pages_free(p.pages);
	qwen_state_free(p.dense);
	qwen_state_free(p.paged);
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
