/*
 * Attention of many queries: causal or not, sequences and chunks of any length,
 * all head sizes, ratios and types, empty sequences, NaN and infinities,
 * against double precision.
 */
#include <stdlib.h>

#include "tests/ref/attention.h"

enum { SEQUENCES = 3, SLOTS = 4, POSITIONS = 150 };

static uint64_t seed = 2540;
static struct cc_dev dev;

struct attention {
	struct attn_shape s;
	enum ssa_kind kind, cache_kind;
	struct attn_cache c;
	struct arr q, first, length, slot, out;
	uint32_t most; /* queries of the longest sequence */
	float scale;
	bool causal;
	double *want, *tol;
};

/* Queries and keys of each sequence. */
struct lengths {
	bool causal;
	uint32_t n[SEQUENCES], keys[SEQUENCES];
};

static const struct lengths lengths[] = {
	{ true, { 1, 2, 3 }, { 1, 2, 3 } },
	{ true, { 16, 17, 0 }, { 16, 17, 5 } },
	{ true, { 64, 65, 33 }, { 64, 65, 33 } },
	{ true, { 1, 5, 20 }, { 150, 100, 33 } },
	{ false, { 7, 1, 40 }, { 31, 64, 33 } },
	{ true, { 100, 0, 1 }, { 140, 9, 32 } },
	{ false, { 3, 64, 2 }, { 0, 129, 1 } },
	{ true, { 31, 32, 48 }, { 47, 48, 49 } },
	{ true, { 9, 1, 1 }, { 4, 0, 1 } },
	{ false, { 129, 15, 16 }, { 15, 16, 17 } },
};

static uint32_t seen(const struct lengths *l, uint32_t b, uint32_t i)
{
	uint32_t hidden = l->causal ? l->n[b] - 1 - i : 0;

	return l->keys[b] > hidden ? l->keys[b] - hidden : 0;
}

static void attention_want(struct attention *a, const struct lengths *l)
{
	for (uint32_t b = 0, t = 0; b < SEQUENCES; b++)
		for (uint32_t i = 0; i < l->n[b]; i++, t++)
			for (uint32_t h = 0; h < a->s.heads; h++) {
				size_t at = ((size_t)t * a->s.heads + h) *
					    a->s.head;
				/* Elements of bytes are rounded, too. */
				double unit = a->cache_kind == SSA_F32 ? 0 :
					      a->cache_kind == SSA_I8 ||
					      a->cache_kind == ARR_F8 ||
					      a->cache_kind == ARR_U4 ?
					      ulp_of(SSA_F16) :
					      ulp_of(a->cache_kind) / 2;
				const struct attn_query q = {
					.q = &a->q, .q_at = at,
					.slot = (b + 2) % SLOTS,
					.n = seen(l, b, i),
					.kv_head = h / (a->s.heads /
							a->s.kv_heads),
					.scale = (double)a->scale,
					.precision = unit,
					.q_precision = a->kind ==
						a->cache_kind ? 0 : unit,
				};
				attn_reference(&q, &a->c, a->s.head,
					       a->want + at, a->tol + at,
					       a->kind);
			}
}

static void attention_new(struct attention *a, const struct lengths *l)
{
	uint32_t tokens = 0;

	a->c = cache_new(a->cache_kind, &a->s);
	a->first = arr_new(SSA_I32, SEQUENCES + 1);
	a->length = arr_new(SSA_I32, SEQUENCES);
	a->slot = arr_new(SSA_I32, SEQUENCES);
	for (uint32_t b = 0; b < SEQUENCES; b++) {
		uint32_t slot = (b + 2) % SLOTS;
		arr_set(&a->slot, b, cache_slot(&a->c, slot));
		arr_set(&a->length, b, l->keys[b]);
		arr_set(&a->first, b, tokens);
		cache_fill(&a->c, &a->s, slot, l->keys[b], &seed);
		tokens += l->n[b];
		a->most = l->n[b] > a->most ? l->n[b] : a->most;
	}
	arr_set(&a->first, SEQUENCES, tokens);
	size_t n = (size_t)tokens * a->s.heads * a->s.head;
	a->q = arr_random(a->kind, n, 2, &seed);
	a->out = arr_stale(a->kind, n);
	a->scale = 1 / sqrtf((float)a->s.head);
	a->causal = l->causal;
	a->want = calloc(n + 1, sizeof(double));
	a->tol = calloc(n + 1, sizeof(double));
	/* The first key and value are seen by all queries. */
	if (l->keys[1] > 8 && l->n[1])
		cache_spoil(&a->c.v, cache_place(&a->c, 3, 0, 0), a->s.head, 0,
			    INFINITY);
	if (l->keys[2] > 8 && a->s.head > 1)
		cache_spoil(&a->c.v, cache_place(&a->c, 0, 0, 0), a->s.head, 1,
			    NAN);
	attention_want(a, l);
}

static void attention_fini(struct attention *a)
{
	struct arr *all[] = { &a->q, &a->first, &a->length, &a->slot, &a->out };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]->bits);
	free(a->want);
	free(a->tol);
	cache_fini(&a->c);
}

static size_t attention_run(struct attention *a, struct lib *l)
{
	struct arr *all[] = { &a->out, &a->q, &a->c.k, &a->c.v, &a->first,
			      &a->length, &a->slot };
	uint32_t each = (l->shape.group ? l->shape.group : l->entry->group) / 2;
	struct ssa_call c = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		call_arr(&c, all[i]);
	call_u32(&c, a->s.heads);
	call_u32(&c, a->s.kv_heads);
	call_u32(&c, a->s.heads * a->s.head);
	call_cache(&c, &a->c);
	call_u32(&c, a->causal);
	call_f32(&c, a->scale);
	return !lib_run(&dev, l, &c, SEQUENCES * a->s.heads,
			(a->most + each - 1) / each);
}

static void test_shape(const struct kernel_shape *shape, uint32_t heads,
		       uint32_t kv_heads, size_t n)
{
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open_shape(&l, "attention", shape),
		"attention with heads of %u compiles", shape->head))
		return;
	for (size_t i = 0; i < n; i++) {
		struct attention a = {
			.s = { 0, heads, kv_heads, shape->head, SLOTS,
			       POSITIONS, i % 2, shape->paged },
			.kind = kind_of(shape->type),
			.cache_kind = kind_of(shape->cache),
		};
		attention_new(&a, &lengths[i]);
		size_t was = wrong;
		wrong += attention_run(&a, &l);
		wrong += judge(&a.out, a.want, a.tol);
		if (wrong != was)
			diag("lengths %zu", i);
		missed += mutants_missed(&a.out, a.want, a.tol);
		attention_fini(&a);
	}
	is_u64(wrong, 0, "heads of %u, type %d, %scache %d, groups of %u",
	       shape->head, shape->type, shape->paged ? "paged " : "",
	       shape->cache, l.shape.group);
	is_u64(missed, 0, "and mutants are noticed");
	lib_close(&l);
}

/* A key of infinity: a weight of 0 for queries on its other side, else NaN. */
static void test_keys(void)
{
	static const struct kernel_shape shape = { .head = 64,
		.type = DSL_BF16, .cache = DSL_BF16 };
	struct attention a = { .s = { 0, 2, 1, 64, SLOTS, POSITIONS, true,
				     false },
			       .kind = SSA_BF16, .cache_kind = SSA_BF16 };
	const struct lengths *n = &lengths[3];
	struct lib l;

	if (!ok(lib_open_shape(&l, "attention", &shape), "attention compiles"))
		return;
	attention_new(&a, n);
	arr_set(&a.c.k, cache_place(&a.c, 2, 0, 17), INFINITY);
	arr_set(&a.c.k, cache_place(&a.c, 0, 0, 3) + 5, NAN);
	arr_set(&a.c.k, cache_place(&a.c, 3, 0, 40), -INFINITY);
	attention_want(&a, n);
	is_u64(attention_run(&a, &l) + judge(&a.out, a.want, a.tol), 0,
	       "keys of infinity and NaN");
	attention_fini(&a);
	lib_close(&l);
}

int main(void)
{
	const bool slow = getenv("T0_SLOW");
	static const struct {
		struct kernel_shape shape;
		uint32_t heads, kv_heads;
	} test[] = {
		{ { .head = 128, .type = DSL_BF16, .cache = DSL_BF16 }, 4, 2 },
		{ { .head = 64, .type = DSL_F16, .cache = DSL_F16 }, 2, 2 },
		{ { .head = 128, .type = DSL_F32, .cache = DSL_BF16 }, 2, 1 },
		{ { .head = 256, .type = DSL_F32, .cache = DSL_F16 }, 1, 1 },
		{ { .head = 80, .type = DSL_BF16, .cache = DSL_F16 }, 3, 1 },
		{ { .head = 33, .type = DSL_F32, .cache = DSL_BF16 }, 2, 1 },
		{ { .head = 1, .type = DSL_F16, .cache = DSL_F16 }, 1, 1 },
		{ { .head = 200, .type = DSL_BF16, .cache = DSL_BF16 }, 1, 1 },
		{ { .head = 64, .type = DSL_BF16, .cache = DSL_BF16,
		    .group = 32 }, 2, 1 },
		{ { .head = 24, .type = DSL_F32, .cache = DSL_F32 }, 2, 1 },
		{ { .head = 128, .type = DSL_BF16, .cache = DSL_F32 }, 1, 1 },
		{ { .head = 128, .type = DSL_F32, .cache = DSL_I8 }, 4, 2 },
		{ { .head = 32, .type = DSL_F32, .cache = DSL_I8 }, 2, 2 },
		{ { .head = 96, .type = DSL_BF16, .cache = DSL_I8 }, 3, 1 },
		{ { .head = 256, .type = DSL_F16, .cache = DSL_I8 }, 1, 1 },
		{ { .head = 128, .type = DSL_F32, .cache = DSL_U8 }, 4, 2 },
		{ { .head = 80, .type = DSL_BF16, .cache = DSL_U8 }, 3, 1 },
		{ { .head = 33, .type = DSL_F32, .cache = DSL_U8 }, 2, 1 },
		{ { .head = 128, .type = DSL_F32, .cache = DSL_U32 }, 4, 2 },
		{ { .head = 96, .type = DSL_BF16, .cache = DSL_U32 }, 3, 1 },
		{ { .head = 256, .type = DSL_F16, .cache = DSL_U32 }, 1, 1 },
	};

	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	/* Both kinds of cache for every shape, or one after the other. */
	for (size_t j = 0; j < 2 * ARRAY_SIZE(test); j += slow ? 1 : 2) {
		const size_t i = j / 2;
		struct kernel_shape s = test[i].shape;

		s.paged = slow ? j % 2 : i % 2;
		test_shape(&s, test[i].heads, test[i].kv_heads,
			   i < 2 || i == 9 || i == 11 ? ARRAY_SIZE(lengths) :
							5);
	}
	test_keys();
	cc_dev_close(&dev);
	return plan_done();
}
