/*
 * Mixtures of experts, many tokens at once, against double precision: pairs
 * sorted by expert and cut into tiles, their products, and the sum of a
 * token's.
 */
#include "tests/ref/streamed.h"

static struct cc_dev dev;

static bool opened(struct lib *l, const char *name, enum dsl_type weights)
{
	struct cc_options o;
	struct err e = { 0 };

	*l = (struct lib){ .entry = kernel_find(name),
			   .shape = { .type = DSL_F32, .weights = weights } };
	cc_test_options(&o);
	l->f = kernel_build(l->entry, &l->shape, &e);
	if (ok(l->f && cc_compile(l->f, &o, &l->obj, &e), "%s compiles", name))
		return true;
	diag("%s", e.msg);
	ssa_func_free(l->f);
	return false;
}

/* ---- pairs by expert ---- */

/* Every pair once, in tiles of its expert, of which only the last is short. */
static bool sorted_well(const struct arr *order, const struct arr *tile,
			const struct arr *expert, size_t tiles)
{
	size_t at = 0, last = 0;
	bool *seen = calloc(expert->n + 1, sizeof(*seen)), good = true;

	for (size_t t = 0; good && t < tiles; t++) {
		const double e = arr_get(tile, 3 * t);
		const double count = arr_get(tile, 3 * t + 2);
		const bool same = t && e == arr_get(tile, 3 * t - 3);

		if (count == 0) {
			last = last ? last : t;
			continue;
		}
		good = !last && count > 0 && count <= KERNEL_EXPERT_TILE &&
		       arr_get(tile, 3 * t + 1) == (double)at &&
		       (!t || e > arr_get(tile, 3 * t - 3) ||
			(same &&
			 arr_get(tile, 3 * t - 1) == KERNEL_EXPERT_TILE));
		for (size_t i = 0; good && i < (size_t)count; i++, at++) {
			const double p = arr_get(order, at);
			good = p >= 0 && p < (double)expert->n &&
			       !seen[(size_t)p] &&
			       arr_get(expert, (size_t)p) == e;
			seen[good ? (size_t)p : 0] = true;
		}
	}
	free(seen);
	return good && at == expert->n;
}

static size_t tiles_of(size_t pairs, size_t experts)
{
	return pairs / KERNEL_EXPERT_TILE + (pairs < experts ? pairs : experts);
}

static void test_sort(void)
{
	static const size_t shape[][2] = {
		/* pairs, experts */
		{ 1, 1 },      { 31, 1 },     { 32, 1 },     { 33, 1 },
		{ 70, 3 },     { 256, 128 },  { 1000, 128 }, { 999, 300 },
		{ 4096, 128 }, { 500, 4096 },
	};
	struct lib l;

	if (!opened(&l, "expert_sort", DSL_F32))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		const size_t pairs = shape[s][0], experts = shape[s][1];
		const size_t tiles = tiles_of(pairs, experts);
		struct arr order = arr_stale(SSA_I32, pairs);
		struct arr tile = arr_stale(SSA_I32, tiles * 3);
		struct arr expert = arr_new(SSA_I32, pairs);
		struct ssa_call c = { 0 };

		for (size_t i = 0; i < pairs; i++)
			arr_set(&expert, i,
				(double)(test_random(&seed) % experts /
					 (s % 2 + 1)));
		call_arr(&c, &order);
		call_arr(&c, &tile);
		call_arr(&c, &expert);
		call_u32(&c, (uint32_t)pairs);
		call_u32(&c, (uint32_t)experts);
		call_u32(&c, (uint32_t)tiles);
		ok(lib_run(&dev, &l, &c, 1, 1) &&
			   sorted_well(&order, &tile, &expert, tiles),
		   "%zu pairs of %zu experts", pairs, experts);
		free(order.bits);
		free(tile.bits);
		free(expert.bits);
	}
	lib_close(&l);
}

/* ---- products ---- */

/* tokens, used, experts, rows, n, and pairs of a tile at most */
static const size_t shapes[][6] = {
	{ 1, 1, 1, 1, 32, 1 },	   { 4, 3, 5, 17, 64, 5 },
	{ 40, 2, 3, 40, 96, 32 },  { 9, 4, 4, 130, 160, 7 },
	{ 33, 1, 2, 64, 512, 20 },
};

/* Products of pairs that stand in tiles. */
struct tiled {
	size_t tokens, used, experts, rows, n, pairs, tiles;
	struct matrix m;
	struct arr a, y, order, tile;
	double *expert; /* [pairs] */
	struct num *want;
	struct ssa_call c;
};

/* Pairs backwards, so many in a tile, tile t of expert t modulo all. */
static void tiled_new(struct tiled *p, const size_t *s, enum dsl_type w,
		      bool down)
{
	const enum dsl_type in = w == DSL_BF16 ? w : DSL_F16;
	const size_t each = s[5];

	*p = (struct tiled){ .tokens = s[0],
			     .used = s[1],
			     .experts = s[2],
			     .rows = s[3],
			     .n = s[4],
			     .pairs = s[0] * s[1] };
	p->tiles = (p->pairs + each - 1) / each;
	p->m = matrix_random(w, p->experts * p->rows * (down ? 1 : 2), p->n);
	p->a = arr_random(kind_of(in), (down ? p->pairs : p->tokens) * p->n, 1,
			  &seed);
	p->y = arr_stale(down ? SSA_F32 : kind_of(in), p->pairs * p->rows);
	p->order = arr_new(SSA_I32, p->pairs);
	p->tile = arr_new(SSA_I32, (p->tiles + 1) * 3);
	p->expert = calloc(p->pairs, sizeof(*p->expert));
	p->want = calloc(p->y.n, sizeof(*p->want));
	for (size_t i = 0; i < p->pairs; i++) {
		const size_t t = i / each, pair = p->pairs - 1 - i;
		arr_set(&p->order, i, (double)pair);
		arr_set(&p->tile, 3 * t, (double)(t % p->experts));
		arr_set(&p->tile, 3 * t + 1, (double)(t * each));
		arr_set(&p->tile, 3 * t + 2, (double)(i % each + 1));
		p->expert[pair] = (double)(t % p->experts);
	}
	call_arr(&p->c, &p->y);
	call_matrix(&p->c, &p->m);
	call_arr(&p->c, &p->a);
	call_arr(&p->c, &p->order);
	call_arr(&p->c, &p->tile);
	call_u32(&p->c, (uint32_t)p->used);
	call_u32(&p->c, (uint32_t)p->rows);
	call_u32(&p->c, (uint32_t)p->n);
}

/* Integers are rounded to f16. */
static struct num tile_product(const struct tiled *p, size_t r, size_t at,
			       enum dsl_type w)
{
	struct num v = product(&p->m, r, &p->a, at, NULL);
	double size = 0;

	for (size_t i = 0; i < p->n; i++)
		size += fabs(p->m.v[r * p->n + i] *
			     arr_get(&p->a, at * p->n + i));
	v.tol *= 2;
	if (w == DSL_I8 || w == DSL_U8)
		v.tol += size * 0x1p-11;
	return v;
}

static void tiled_judge(struct tiled *p, struct lib *l, struct tally *all,
			size_t each)
{
	all->wrong += !lib_run(&dev, l, &p->c, (p->rows + each - 1) / each,
			       p->tiles + 1);
	tally(all, &p->y, p->want);
	matrix_free(&p->m);
	free(p->a.bits);
	free(p->y.bits);
	free(p->order.bits);
	free(p->tile.bits);
	free(p->expert);
	free(p->want);
}

static void test_products(size_t kind, bool down)
{
	const char *name = down ? "expert_tiles" : "expert_tiles_swiglu";
	const enum dsl_type w = kinds[kind].type;
	const double by = down ? 3 : .25;
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, name, w))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		struct tiled p;

		tiled_new(&p, shapes[s], w, down);
		for (size_t i = 0; i < p.y.n; i++) {
			const size_t pair = i / p.rows, row = i % p.rows;
			const size_t top = (size_t)p.expert[pair] * p.rows;
			const size_t up = 2 * top + p.rows + row;
			const size_t t = pair / p.used;
			struct num v =
				down ? tile_product(&p, top + row, pair, w) :
				       gated(tile_product(&p, 2 * top + row, t,
							  w),
					     tile_product(&p, up, t, w));
			const double last = w == DSL_BF16 ? 0x1p-8 : 0x1p-10;
			p.want[i].v = by * v.v;
			p.want[i].tol =
				by * v.tol +
				(down ? 0 : last * fabs(by * v.v) + 0x1p-24);
		}
		call_f32(&p.c, (float)by);
		tiled_judge(&p, &l, &all, down ? 128 : 64);
	}
	is_u64(all.wrong, 0, "%s of %s", name, kinds[kind].name);
	is_u64(all.missed, 0, "%s of %s: mutants are noticed", name,
	       kinds[kind].name);
	lib_close(&l);
}

static void test_join(void)
{
	static const size_t shape[][3] = {
		/* tokens, used, n */
		{ 1, 1, 1 },
		{ 3, 2, 100 },
		{ 2, 8, 300 },
		{ 5, 3, 256 },
	};
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, "expert_join", DSL_F32))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		const size_t tokens = shape[s][0], used = shape[s][1];
		const size_t n = shape[s][2];
		struct arr x = arr_random(SSA_F32, tokens * n, 2, &seed);
		struct arr y = arr_random(SSA_F32, tokens * used * n, 2, &seed);
		struct arr share = arr_random(SSA_F32, tokens * used, 1, &seed);
		struct num *want = calloc(x.n, sizeof(*want));
		struct ssa_call c = { 0 };

		for (size_t i = 0; i < x.n; i++) {
			want[i].v = arr_get(&x, i);
			want[i].tol = 0x1p-20 * (1 + fabs(want[i].v));
			for (size_t k = 0; k < used; k++) {
				const size_t p = i / n * used + k;
				want[i].v += arr_get(&share, p) *
					     arr_get(&y, p * n + i % n);
			}
		}
		call_arr(&c, &x);
		call_arr(&c, &y);
		call_arr(&c, &share);
		call_u32(&c, (uint32_t)used);
		call_u32(&c, (uint32_t)n);
		all.wrong += !lib_run(&dev, &l, &c, tokens, 1);
		tally(&all, &x, want);
		free(x.bits);
		free(y.bits);
		free(share.bits);
		free(want);
	}
	is_u64(all.wrong, 0, "expert_join");
	is_u64(all.missed, 0, "expert_join: mutants are noticed");
	lib_close(&l);
}

int main(void)
{
	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	test_sort();
	for (size_t k = 1; k < INT6; k++) {
		test_products(k, false);
		test_products(k, true);
	}
	test_join();
	cc_dev_close(&dev);
	return plan_done();
}
