/*
 * Attention of decoding and what brings heads into the cache: all head sizes,
 * ratios of heads, types, orders of the cache and lengths; empty sequences, NaN
 * and infinities, against double precision.
 */
#include <stdlib.h>

#include "tests/ref/attention.h"

static uint64_t seed = 2530;
static struct cc_dev dev;

static const enum dsl_type types[] = { DSL_F32, DSL_F16, DSL_BF16 };
static const char *const type_name[] = { "f32", "f16", "bf16" };

static struct arr numbers(const uint32_t *v, size_t n)
{
	struct arr a = arr_new(SSA_I32, n);

	for (size_t i = 0; i < n; i++)
		arr_set(&a, i, v[i]);
	return a;
}

/* -------------------------------------------------------- attention ---- */

enum { TOKENS = 3, SLOTS = 4, CHUNK = 48 };

/* What one call of attention has. */
struct attention {
	struct attn_shape s;
	enum ssa_kind kind, cache_kind;
	struct attn_cache c;
	struct arr q, length, slot, out;
	struct arr begin; /* of a paged cache */
	float scale;
	double *want, *tol;
};

static void special(struct attention *a)
{
	/* A weight of 0, values of infinity and NaN. */
	size_t k = cache_place(&a->c, (uint32_t)arr_get(&a->slot, 0), 0, 1);
	size_t v = cache_place(&a->c, (uint32_t)arr_get(&a->slot, 1), 0, 2);

	if (!cache_is_scaled(a->cache_kind))
		arr_set(&a->c.k, k, arr_get(&a->q, 0) > 0 ? -INFINITY :
							    INFINITY);
	else if (a->s.heads_first)
		cache_spoil(&a->c.k, k, a->s.head, 0, NAN);
	cache_spoil(&a->c.v, v, a->s.head, 0, INFINITY);
	if (a->s.head > 1)
		cache_spoil(&a->c.v, v, a->s.head, 1, NAN);
}

/* What the table begins with; behind the last key's block, of no block. */
static void begin_new(struct attention *a, const uint32_t *length)
{
	const uint32_t most = KERNEL_TABLE_BEGIN;

	a->begin = arr_new(SSA_I32, TOKENS * most);
	for (uint32_t i = 0; i < TOKENS * most; i++) {
		const uint32_t t = i / most, b = i % most;
		const size_t at = (size_t)arr_get(&a->slot, t) + b;

		arr_set(&a->begin, i, b * 16 < length[t] ?
					      arr_get(&a->c.table, at) :
					      1 << 20);
	}
}

static void attention_new(struct attention *a, const uint32_t *length)
{
	static const uint32_t slot[TOKENS] = { 2, 0, 3 };
	size_t n = (size_t)TOKENS * a->s.heads * a->s.head;

	a->c = cache_new(a->cache_kind, &a->s);
	for (uint32_t t = 0; t < TOKENS; t++)
		cache_fill(&a->c, &a->s, slot[t], length[t], &seed);
	a->q = arr_random(a->kind, n, 2, &seed);
	a->out = arr_stale(a->kind, n);
	a->length = numbers(length, TOKENS);
	a->slot = numbers(slot, TOKENS);
	a->scale = 1 / sqrtf((float)a->s.head);
	a->want = calloc(n + 1, sizeof(double));
	a->tol = calloc(n + 1, sizeof(double));
	if (length[0] > 8 && length[1] > 8)
		special(a);
	for (uint32_t t = 0; t < TOKENS; t++)
		arr_set(&a->slot, t, cache_slot(&a->c, slot[t]));
	if (a->c.pages)
		begin_new(a, length);
	for (uint32_t r = 0; r < TOKENS * a->s.heads; r++) {
		uint32_t t = r / a->s.heads, h = r % a->s.heads;
		const struct attn_query q = {
			.q = &a->q, .q_at = (size_t)r * a->s.head,
			.slot = slot[t], .n = length[t],
			.kv_head = h / (a->s.heads / a->s.kv_heads),
			.scale = (double)a->scale,
		};
		attn_reference(&q, &a->c, a->s.head,
			       a->want + r * a->s.head,
			       a->tol + r * a->s.head, a->kind);
	}
}

static void attention_fini(struct attention *a)
{
	free(a->q.bits);
	free(a->length.bits);
	free(a->slot.bits);
	free(a->begin.bits);
	free(a->out.bits);
	free(a->want);
	free(a->tol);
	cache_fini(&a->c);
}

static void call_attention(struct ssa_call *c, const struct attention *a)
{
	call_arr(c, &a->q);
	call_arr(c, &a->c.k);
	call_arr(c, &a->c.v);
	call_arr(c, &a->length);
	call_arr(c, &a->slot);
	call_u32(c, a->s.heads);
	call_u32(c, a->s.kv_heads);
	call_u32(c, a->s.heads * a->s.head);
	call_cache(c, &a->c);
	call_u32(c, CHUNK);
	call_f32(c, a->scale);
}

/* The kernels of one shape. */
struct kernels {
	struct lib decode, split, join;
	uint32_t ratio;
};

static size_t run_whole(struct attention *a, struct kernels *l)
{
	struct ssa_call c = { 0 };

	call_arr(&c, &a->out);
	if (a->c.pages)
		call_arr(&c, &a->begin);
	call_attention(&c, a);
	return !lib_run(&dev, &l->decode, &c, 1,
			TOKENS * a->s.heads / l->ratio);
}

static size_t run_split(struct attention *a, struct kernels *l)
{
	uint32_t rows = TOKENS * a->s.heads, n = a->s.head;
	uint32_t splits = (a->s.positions + CHUNK - 1) / CHUNK;
	struct arr part = arr_stale(SSA_F32, (size_t)rows * splits * n);
	struct arr top = arr_stale(SSA_F32, (size_t)rows * splits * 2);
	struct ssa_call c = { 0 }, d = { 0 };
	size_t wrong;

	call_arr(&c, &part);
	call_arr(&c, &top);
	call_attention(&c, a);
	wrong = !lib_run(&dev, &l->split, &c, splits, rows / l->ratio);
	call_arr(&d, &a->out);
	call_arr(&d, &part);
	call_arr(&d, &top);
	call_u32(&d, splits);
	call_u32(&d, n);
	call_u32(&d, rows);
	wrong += !lib_run(&dev, &l->join, &d,
			  kernel_groups(l->join.entry, &l->join.shape, rows),
			  1);
	free(part.bits);
	free(top.bits);
	return wrong;
}

static const uint32_t lengths[][TOKENS] = {
	{ 1, 2, 3 }, { 0, 31, 32 }, { 33, 63, 0 }, { 64, 65, 100 },
	{ 128, 9, 129 }, { 47, 48, 49 }, { 150, 1, 95 }, { 16, 17, 96 },
	{ 0, 0, 0 }, { 149, 148, 147 },
};

static void test_shape(struct kernels *l, const struct kernel_shape *shape,
		       uint32_t kv_heads, size_t n, size_t *wrong,
		       size_t *missed)
{
	for (size_t i = 0; i < n; i++) {
		struct attention a = {
			.s = { TOKENS, kv_heads * shape->ratio, kv_heads,
			       shape->head, SLOTS, 150, i % 2, shape->paged },
			.kind = kind_of(shape->type),
			.cache_kind = kind_of(shape->cache),
		};
		attention_new(&a, lengths[i]);
		*wrong += run_whole(&a, l);
		*wrong += judge(&a.out, a.want, a.tol);
		for (size_t j = 0; j < a.out.n; j++)
			arr_set(&a.out, j, STALE);
		*wrong += run_split(&a, l);
		*wrong += judge(&a.out, a.want, a.tol);
		*missed += mutants_missed(&a.out, a.want, a.tol);
		attention_fini(&a);
	}
}

static void test_attention(const struct kernel_shape *shape, uint32_t kv_heads,
			   size_t n)
{
	struct kernels l = { .ratio = shape->ratio };
	size_t wrong = 0, missed = 0;

	if (ok(lib_open_shape(&l.decode, "attn_decode", shape) &&
	       lib_open_shape(&l.split, "attn_split", shape) &&
	       lib_open_shape(&l.join, "attn_join", shape),
	       "attention with heads of %u compiles", shape->head))
		test_shape(&l, shape, kv_heads, n, &wrong, &missed);
	is_u64(wrong, 0, "heads of %u, %u in a group, type %d, %scache %d",
	       shape->head, shape->ratio, shape->type,
	       shape->paged ? "paged " : "", shape->cache);
	is_u64(missed, 0, "and mutants are noticed");
	lib_close(&l.decode);
	lib_close(&l.split);
	lib_close(&l.join);
}

static void test_attentions(void)
{
	const bool slow = getenv("T0_SLOW");
	static const struct kernel_shape shape[] = {
		{ .head = 128, .ratio = 2, .type = DSL_F32, .cache = DSL_BF16 },
		{ .head = 64, .ratio = 4, .type = DSL_BF16, .cache = DSL_BF16 },
		{ .head = 128, .ratio = 1, .type = DSL_F32, .cache = DSL_F32 },
		{ .head = 80, .ratio = 5, .type = DSL_F16, .cache = DSL_F16 },
		{ .head = 256, .ratio = 8, .type = DSL_F32, .cache = DSL_F16 },
		{ .head = 33, .ratio = 3, .type = DSL_F32, .cache = DSL_BF16 },
		{ .head = 1, .ratio = 1, .type = DSL_F32, .cache = DSL_F32 },
		{ .head = 8, .ratio = 2, .type = DSL_F32, .cache = DSL_F32 },
		{ .head = 250, .ratio = 1, .type = DSL_F32, .cache = DSL_F32 },
		{ .head = 128, .ratio = 2, .type = DSL_F32, .cache = DSL_BF16,
		  .group = 32 },
		{ .head = 128, .ratio = 2, .type = DSL_F32, .cache = DSL_I8 },
		{ .head = 64, .ratio = 5, .type = DSL_BF16, .cache = DSL_I8 },
		{ .head = 32, .ratio = 1, .type = DSL_F32, .cache = DSL_I8 },
		{ .head = 96, .ratio = 3, .type = DSL_F16, .cache = DSL_I8 },
		{ .head = 256, .ratio = 8, .type = DSL_F32, .cache = DSL_I8 },
		{ .head = 128, .ratio = 2, .type = DSL_F32, .cache = DSL_U8 },
		{ .head = 33, .ratio = 3, .type = DSL_F32, .cache = DSL_U8 },
		{ .head = 64, .ratio = 4, .type = DSL_BF16, .cache = DSL_U8 },
		{ .head = 128, .ratio = 2, .type = DSL_F32, .cache = DSL_U32 },
		{ .head = 96, .ratio = 3, .type = DSL_F16, .cache = DSL_U32 },
		{ .head = 256, .ratio = 8, .type = DSL_F32, .cache = DSL_U32 },
		{ .head = 32, .ratio = 1, .type = DSL_F32, .cache = DSL_U32 },
	};

	/* Both kinds of cache for every shape, or one after the other. */
	for (size_t i = 0; i < 2 * ARRAY_SIZE(shape); i += slow ? 1 : 2) {
		struct kernel_shape s = shape[i / 2];

		s.paged = slow ? i % 2 : i / 2 % 2;
		test_attention(&s, i / 2 % 2 ? 1 : 2,
			       i < 4 || i / 2 == 10 ? ARRAY_SIZE(lengths) : 4);
	}
}

/* ------------------------------------------------------------ qk_norm ---- */

static void norm_want(const struct arr *x, const struct arr *w, size_t rows,
		      size_t n, double *want, double *rel)
{
	for (size_t r = 0; r < rows; r++) {
		double sum = 0;

		for (size_t i = 0; i < n; i++)
			sum += arr_get(x, r * n + i) * arr_get(x, r * n + i);
		for (size_t i = 0; i < n; i++)
			want[r * n + i] = arr_get(x, r * n + i) *
					  arr_get(w, i) /
					  sqrt(sum / (double)n + (double)1e-6f);
	}
	*rel = 0x1p-23 * (4 + sqrt(n));
}

static void test_qk_norm(size_t t)
{
	static const size_t sizes[][2] = { { 1, 1 }, { 5, 2 }, { 4, 31 },
		{ 3, 32 }, { 1, 33 }, { 9, 64 }, { 7, 80 }, { 6, 128 },
		{ 2, 255 }, { 3, 256 }, { 0, 128 } };
	enum ssa_kind k = kind_of(types[t]);
	size_t wrong = 0, missed = 0;
	struct lib l;

	if (!ok(lib_open(&l, "qk_norm", types[t], 0), "qk_norm of %s compiles",
		type_name[t]))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		size_t rows = sizes[s][0], n = sizes[s][1];
		struct arr x = arr_random(k, rows * n, 3, &seed);
		struct arr w = arr_random(k, n, 2, &seed);
		struct arr out = arr_stale(k, rows * n);
		double *want = calloc(rows * n + 1, sizeof(*want));
		double *tol = calloc(rows * n + 1, sizeof(*tol)), rel;
		struct ssa_call c = { 0 };
		if (rows > 4) {
			arr_set(&x, n + 1, NAN);
			arr_set(&x, 2 * n + 1, INFINITY);
		}
		call_arr(&c, &out);
		call_arr(&c, &x);
		call_arr(&c, &w);
		call_f32(&c, 1e-6f);
		call_u32(&c, (uint32_t)n);
		call_u32(&c, (uint32_t)rows);
		wrong += !lib_run(&dev, &l, &c,
				  kernel_groups(l.entry, &l.shape, rows), 1);
		norm_want(&x, &w, rows, n, want, &rel);
		for (size_t i = 0; i < rows * n; i++)
			tol[i] = fabs(want[i]) * (.51 * ulp_of(k) + rel) +
				 step_of(k);
		wrong += judge(&out, want, tol);
		missed += mutants_missed(&out, want, tol);
		struct arr *all[] = { &x, &w, &out };
		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			free(all[i]->bits);
		free(want);
		free(tol);
	}
	is_u64(wrong, 0, "qk_norm of %s", type_name[t]);
	is_u64(missed, 0, "qk_norm of %s: mutants are noticed", type_name[t]);
	lib_close(&l);
}

/* ---------------------------------------------- norm, turn and store ---- */

enum { HEADS = 3, KV = 2, POSITIONS = 20 };

/* Angles as the tables hold them. */
static void tables(struct arr *cosine, struct arr *sine, uint32_t half)
{
	*cosine = arr_new(SSA_F32, POSITIONS * half);
	*sine = arr_new(SSA_F32, POSITIONS * half);
	for (uint32_t i = 0; i < POSITIONS * half; i++) {
		double a = i / half * pow(1e4, -1.0 * (i % half) / half);

		arr_set(cosine, i, cos(a));
		arr_set(sine, i, sin(a));
	}
}

/*
 * Heads of x [rows][n], normed by w and turned to `position`; not yet rounded
 * to where they go.
 */
static void turned(const struct arr *x, const struct arr *w, size_t rows,
		   uint32_t n, const uint32_t *position, uint32_t heads,
		   double *want, double *tol)
{
	double *y = calloc(rows * n + 1, sizeof(*y)), rel;

	norm_want(x, w, rows, n, y, &rel);
	for (size_t i = 0; i < rows * n; i++) {
		uint32_t half = n / 2, at = (uint32_t)(i % n), p = at % half;
		size_t a = i / n * n + p, b = a + half;
		double g = position[i / n / heads] *
			   pow(1e4, -1.0 * p / half);
		want[i] = at < half ? y[a] * cos(g) - y[b] * sin(g) :
				      y[b] * cos(g) + y[a] * sin(g);
		tol[i] = (rel + 0x1p-22) * (fabs(y[a]) + fabs(y[b]));
	}
	free(y);
}

/* What should have come into the cache: `want` [tokens][KV][n], or NaN. */
static size_t cache_judge(const struct arr *got, const struct attn_cache *c,
			  const uint32_t *slot, const uint32_t *position,
			  size_t tokens, uint32_t n, const double *want,
			  const double *tol, size_t *missed)
{
	size_t wrong = 0;
	struct arr x = cache_numbers(got, n, 0xff, &wrong);
	double *all = calloc(x.n + 1, sizeof(*all));
	double *bound = calloc(x.n + 1, sizeof(*bound));

	for (size_t i = 0; i < x.n; i++)
		all[i] = NAN;
	for (size_t i = 0; i < tokens * KV * n; i++) {
		size_t t = i / n / KV, h = i / n % KV;
		size_t at = cache_place(c, slot[t], (uint32_t)h, position[t]) /
			    cache_row_of(got->kind, n) * n + i % n;
		all[at] = want[i];
		bound[at] = tol[i];
	}
	wrong += judge(&x, all, bound);
	*missed += tokens ? mutants_missed(&x, all, bound) : 0;
	free(x.bits);
	free(all);
	free(bound);
	return wrong;
}

struct store {
	struct attn_shape s;
	struct attn_cache c;
	struct arr k, v, place, slot;
	uint32_t slots[8], positions[8];
	bool turned;
};

static void store_new(struct store *o, enum ssa_kind kind, enum ssa_kind cache,
		      uint32_t n, uint32_t tokens)
{
	/* What E4M3 has no number for, ties, and what is next to nothing. */
	static const double odd[] = { NAN, INFINITY, -INFINITY, 500, -6e4,
				      1.0625, -1.1875, 0x1p-10, 0x1.8p-10 };

	o->s = (struct attn_shape){ tokens, HEADS, KV, n, 3, POSITIONS,
				    tokens % 2, false };
	o->c = cache_new(cache, &o->s);
	o->k = arr_random(kind, (size_t)tokens * KV * n, 2, &seed);
	o->v = arr_random(kind, (size_t)tokens * KV * n, 2, &seed);
	for (size_t i = 0; cache == ARR_F8 && tokens && i < ARRAY_SIZE(odd); i++)
		arr_set(&o->v, i, odd[i]);
	for (uint32_t t = 0; t < tokens; t++) {
		o->slots[t] = t % 3;
		o->positions[t] = (t * 7 + 5) % POSITIONS;
	}
	o->slot = numbers(o->slots, tokens);
	o->place = numbers(o->positions, tokens);
}

static void store_fini(struct store *o)
{
	struct arr *all[] = { &o->k, &o->v, &o->place, &o->slot };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]->bits);
	cache_fini(&o->c);
}

/* Values are copied: rounded to the cache's type, i8 to the last bit. */
static size_t copy_judge(const struct store *o, const struct arr *from,
			 const struct arr *got, size_t *missed)
{
	double *x = calloc(from->n + 1, sizeof(*x));
	double *want = calloc(from->n + 1, sizeof(*want));
	double *tol = calloc(from->n + 1, sizeof(*tol));
	size_t wrong;

	for (size_t i = 0; i < from->n; i++)
		x[i] = arr_get(from, i);
	for (size_t i = 0; i < from->n; i += o->s.head) {
		vector_want(got->kind, x + i, o->s.head, want + i, tol + i);
		if (!o->turned)
			continue;
		memcpy(want + i, x + i, o->s.head * sizeof(*x));
		memset(tol + i, 0, o->s.head * sizeof(*tol));
		vector_turn(want + i, tol + i, o->s.head);
		vector_round(got->kind, want + i, o->s.head, tol + i);
	}
	wrong = cache_judge(got, &o->c, o->slots, o->positions, o->s.tokens,
			    o->s.head, want, tol, missed);
	free(x);
	free(want);
	free(tol);
	return wrong;
}

static size_t run_norm_rope(struct lib *l, enum ssa_kind kind,
			    enum ssa_kind cache, uint32_t tokens,
			    size_t *missed)
{
	const uint32_t n = l->shape.head;
	size_t rows = (size_t)tokens * HEADS, wrong;
	struct arr q = arr_random(kind, rows * n, 2, &seed);
	struct arr out = arr_stale(kind, rows * n), cosine, sine;
	struct arr qw = arr_random(kind, n, 1, &seed);
	struct arr kw = arr_random(kind, n, 1, &seed);
	double *want = calloc(rows * n + 1, sizeof(*want));
	double *tol = calloc(rows * n + 1, sizeof(*tol));
	struct ssa_call c = { 0 };
	struct store o;

	store_new(&o, kind, cache, n, tokens);
	o.turned = l->shape.turned;
	tables(&cosine, &sine, n / 2);
	struct arr *all[] = { &out, &o.c.k, &o.c.v, &q, &o.k, &o.v, &qw, &kw,
			      &cosine, &sine, &o.place, &o.slot };
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		call_arr(&c, all[i]);
	call_u32(&c, HEADS);
	call_u32(&c, KV);
	call_u32(&c, HEADS * n);
	call_u32(&c, KV * n);
	call_cache(&c, &o.c);
	call_u32(&c, tokens);
	call_f32(&c, 1e-6f);
	wrong = !lib_run(&dev, l, &c, kernel_groups(l->entry, &l->shape,
			 (uint64_t)tokens * (HEADS + 2 * KV)), 1);
	turned(&q, &qw, rows, n, o.positions, HEADS, want, tol);
	for (size_t r = 0; r < rows; r++) {
		if (o.turned)
			vector_turn(want + r * n, tol + r * n, n);
		vector_round(kind, want + r * n, n, tol + r * n);
	}
	wrong += judge(&out, want, tol);
	*missed += mutants_missed(&out, want, tol);
	turned(&o.k, &kw, (size_t)tokens * KV, n, o.positions, KV, want, tol);
	for (size_t r = 0; r < tokens * KV; r++) {
		if (o.turned)
			vector_turn(want + r * n, tol + r * n, n);
		vector_round(cache, want + r * n, n, tol + r * n);
	}
	wrong += cache_judge(&o.c.k, &o.c, o.slots, o.positions, tokens, n,
			     want, tol, missed);
	wrong += copy_judge(&o, &o.v, &o.c.v, missed);
	struct arr *mine[] = { &out, &q, &qw, &kw, &cosine, &sine };
	for (size_t i = 0; i < ARRAY_SIZE(mine); i++)
		free(mine[i]->bits);
	free(want);
	free(tol);
	store_fini(&o);
	return wrong;
}

static const struct kernel_shape store_shape[] = {
	{ .head = 128, .type = DSL_F32, .cache = DSL_BF16 },
	{ .head = 128, .type = DSL_BF16, .cache = DSL_BF16 },
	{ .head = 64, .type = DSL_F16, .cache = DSL_F16 },
	{ .head = 256, .type = DSL_F32, .cache = DSL_F32 },
	{ .head = 2, .type = DSL_F32, .cache = DSL_F16 },
	{ .head = 80, .type = DSL_F32, .cache = DSL_BF16 },
	{ .head = 66, .type = DSL_F32, .cache = DSL_F32 },
	{ .head = 250, .type = DSL_BF16, .cache = DSL_F16 },
	{ .head = 192, .type = DSL_F32, .cache = DSL_BF16 },
	{ .head = 32, .type = DSL_F16, .cache = DSL_F32 },
	{ .head = 128, .type = DSL_F32, .cache = DSL_I8 },
	{ .head = 32, .type = DSL_F32, .cache = DSL_I8 },
	{ .head = 96, .type = DSL_BF16, .cache = DSL_I8 },
	{ .head = 64, .type = DSL_F16, .cache = DSL_I8 },
	{ .head = 160, .type = DSL_F32, .cache = DSL_I8 },
	{ .head = 256, .type = DSL_F32, .cache = DSL_I8 },
	{ .head = 224, .type = DSL_F32, .cache = DSL_I8 },
	{ .head = 128, .type = DSL_F32, .cache = DSL_U8 },
	{ .head = 64, .type = DSL_BF16, .cache = DSL_U8 },
	{ .head = 66, .type = DSL_F16, .cache = DSL_U8 },
	{ .head = 128, .type = DSL_F32, .cache = DSL_U32 },
	{ .head = 32, .type = DSL_F32, .cache = DSL_U32 },
	{ .head = 96, .type = DSL_BF16, .cache = DSL_U32 },
	{ .head = 64, .type = DSL_F16, .cache = DSL_U32 },
	{ .head = 256, .type = DSL_F32, .cache = DSL_U32 },
	{ .head = 224, .type = DSL_F32, .cache = DSL_U32 },
	/* Turned: in the cache's type, and before it is rounded in f32. */
	{ .head = 128, .type = DSL_F32, .cache = DSL_F32, .turned = true },
	{ .head = 64, .type = DSL_F32, .cache = DSL_F32, .turned = true },
	{ .head = 32, .type = DSL_F16, .cache = DSL_F32, .turned = true },
	{ .head = 256, .type = DSL_F32, .cache = DSL_U32, .turned = true },
};

static void test_norm_rope(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(store_shape); i++) {
		const struct kernel_shape *s = &store_shape[i];
		size_t wrong = 0, missed = 0;
		struct lib l;

		if (!ok(lib_open_shape(&l, "qk_norm_rope", s),
			"qk_norm_rope with heads of %u compiles", s->head))
			continue;
		for (uint32_t tokens = 0; tokens <= 4; tokens++)
			wrong += run_norm_rope(&l, kind_of(s->type),
					       kind_of(s->cache), tokens,
					       &missed);
		is_u64(wrong, 0, "norm, turn and store heads of %u", s->head);
		is_u64(missed, 0, "and mutants are noticed");
		lib_close(&l);
	}
}

static void test_store(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(store_shape); i++) {
		struct kernel_shape s = store_shape[i];
		size_t wrong = 0, missed = 0;
		struct lib l;

		if (!s.turned && !cache_is_scaled(kind_of(s.cache)))
			s.head -= i % 2; /* odd ones, too */
		if (!ok(lib_open_shape(&l, "kv_store", &s),
			"kv_store with heads of %u compiles", s.head))
			continue;
		for (uint32_t tokens = 0; tokens <= 5; tokens++) {
			struct ssa_call c = { 0 };
			struct store o;
			store_new(&o, kind_of(s.type), kind_of(s.cache),
				  s.head, tokens);
			o.turned = s.turned;
			if (tokens > 1 && !s.turned) {
				arr_set(&o.k, 0, INFINITY);
				arr_set(&o.v, 1, NAN);
			}
			struct arr *all[] = { &o.c.k, &o.c.v, &o.k, &o.v,
					      &o.place, &o.slot };
			for (size_t j = 0; j < ARRAY_SIZE(all); j++)
				call_arr(&c, all[j]);
			call_u32(&c, KV);
			call_u32(&c, KV * s.head);
			call_cache(&c, &o.c);
			call_u32(&c, tokens);
			wrong += !lib_run(&dev, &l, &c, kernel_groups(l.entry,
					  &l.shape, tokens * KV), 1);
			wrong += copy_judge(&o, &o.k, &o.c.k, &missed) +
				 copy_judge(&o, &o.v, &o.c.v, &missed);
			store_fini(&o);
		}
		is_u64(wrong, 0, "kv_store with heads of %u", s.head);
		is_u64(missed, 0, "and mutants are noticed");
		lib_close(&l);
	}
}

static void test_turn(void)
{
	static const struct kernel_shape shape[] = {
		{ .head = 32, .type = DSL_F32 }, { .head = 64, .type = DSL_F16 },
		{ .head = 128, .type = DSL_F32 }, { .head = 256, .type = DSL_BF16 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(shape); i++) {
		const uint32_t n = shape[i].head, rows = 5;
		const enum ssa_kind kind = kind_of(shape[i].type);
		struct arr x = arr_random(kind, (size_t)rows * n, 3, &seed);
		double *want = calloc(x.n, sizeof(*want));
		double *tol = calloc(x.n, sizeof(*tol));
		struct ssa_call c = { 0 };
		struct lib l;

		if (!ok(lib_open_shape(&l, "turn_heads", &shape[i]),
			"turn_heads of %u compiles", n))
			continue;
		for (size_t r = 0; r < x.n; r++)
			want[r] = arr_get(&x, r);
		for (size_t r = 0; r < x.n; r += n) {
			vector_turn(want + r, tol + r, n);
			vector_round(kind, want + r, n, tol + r);
		}
		call_arr(&c, &x);
		call_u32(&c, rows);
		bool ran = lib_run(&dev, &l, &c,
				   kernel_groups(l.entry, &l.shape, rows), 1);
		is_u64(!ran + judge(&x, want, tol), 0,
		       "heads of %u are turned", n);
		is_u64(mutants_missed(&x, want, tol), 0,
		       "and mutants are noticed");
		lib_close(&l);
		free(x.bits);
		free(want);
		free(tol);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *name, *says;
		struct kernel_shape s;
	} bad[] = {
		{ "kv_store", "heads of 96 elements are not turned",
		  { .type = DSL_F32, .head = 96, .cache = DSL_U32,
		    .turned = true } },
		{ "attn_decode", "heads of 80 elements in a cache of u32",
		  { .type = DSL_F32, .head = 80, .cache = DSL_U32 } },
		{ "turn_heads", "heads of 80 elements are not turned",
		  { .type = DSL_F32, .head = 80 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = { 0 };

		ok(!kernel_build(kernel_find(bad[i].name), &bad[i].s, &e),
		   "%s refuses it", bad[i].name);
		has_str(e.msg, bad[i].says, "and says what");
	}
}

int main(void)
{
	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	test_attentions();
	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		test_qk_norm(t);
	test_norm_rope();
	test_store();
	test_turn();
	test_refused();
	cc_dev_close(&dev);
	return plan_done();
}
