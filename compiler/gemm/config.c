/*
 * compiler/gemm/config.c - which configurations are valid.
 */
#include <stdlib.h>

#include "compiler/gemm/gemm_int.h"

enum { LDS_BYTES = 65536, MAX_WAVES = 32, MAX_SUMS = 200 };

struct gemm_config gemm_default(const struct gemm_op *op)
{
	struct gemm_config c = { .m = 64, .n = 64, .k = 32, .waves_m = 2,
				 .waves_n = 2, .buffers = 2, .prefetch = 1,
				 .unroll = 1, .split = 1 };

	if (op->in == DSL_F32)
		c.k = 8;
	else if (op->in == DSL_I8)
		c.k = 64;
	return c;
}

/*
 * A few rows are rather waited for than computed: small tiles, and parts of K
 * until there are some for every SIMD.
 */
static void few_rows(struct gemm_config *c, uint32_t n, uint32_t k, bool pair)
{
	const uint32_t tiles = n / 32 + 1;

	c->m = 16;
	c->n = pair ? 64 : 32;
	c->k = 64;
	c->waves_m = 1;
	while (!pair && c->split < 4 && tiles * c->split < 512 &&
	       k / c->split >= 1024)
		c->split *= 2;
}

/*
 * Products of thousands of rows, as a training step has them in all layouts: by
 * the tuner, for 2048 tokens of a model of 2048 by 6144.  The first row that
 * has the layout and is no larger is taken; `even` where tiles divide the sides.
 */
static const struct {
	bool a_trans, b_trans;
	uint32_t m, n; /* at least */
	uint16_t tile[3];
	uint8_t waves_m, waves_n, buffers, unroll, order;
	enum gemm_lds lds;
} large[] = {
	{ false, true, 2048, 6144, { 128, 128, 32 }, 2, 2, 2, 1, 0,
	  GEMM_LDS_SWIZZLE },
	{ false, true, 2048, 4096, { 64, 64, 64 }, 2, 2, 1, 1, 0,
	  GEMM_LDS_SWIZZLE },
	{ false, true, 2048, 2048, { 64, 128, 64 }, 2, 4, 1, 2, 8,
	  GEMM_LDS_PAD },
	{ false, true, 2048, 1024, { 128, 128, 64 }, 2, 4, 1, 1, 8,
	  GEMM_LDS_PAD },
	{ false, false, 2048, 6144, { 256, 128, 16 }, 4, 2, 2, 2, 8,
	  GEMM_LDS_PAD },
	{ false, false, 2048, 2048, { 128, 64, 32 }, 4, 1, 1, 1, 0,
	  GEMM_LDS_SWIZZLE },
	{ true, false, 6144, 2048, { 256, 128, 16 }, 4, 2, 1, 2, 0,
	  GEMM_LDS_PAD },
	{ true, false, 4096, 2048, { 128, 128, 16 }, 1, 4, 1, 1, 16,
	  GEMM_LDS_PAD },
	{ true, false, 2048, 6144, { 256, 64, 16 }, 4, 2, 2, 2, 8,
	  GEMM_LDS_PAD },
	{ true, false, 1024, 2048, { 64, 64, 32 }, 2, 1, 1, 1, 16,
	  GEMM_LDS_PAD },
};

static bool is_large(const struct gemm_op *op, uint32_t m, uint32_t n,
		     uint32_t k, struct gemm_config *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(large) && k >= 1024; i++) {
		if (op->a_trans != large[i].a_trans ||
		    op->b_trans != large[i].b_trans || m < large[i].m ||
		    n < large[i].n)
			continue;
		c->m = large[i].tile[0];
		c->n = large[i].tile[1];
		c->k = large[i].tile[2];
		c->waves_m = large[i].waves_m;
		c->waves_n = large[i].waves_n;
		c->buffers = large[i].buffers;
		c->unroll = large[i].unroll;
		c->order = large[i].order;
		c->lds = large[i].lds;
		c->even = m % c->m == 0 && n % c->n == 0 && k % c->k == 0;
		return true;
	}
	return false;
}

struct gemm_config gemm_default_for(const struct gemm_op *op, uint32_t m,
				    uint32_t n, uint32_t k)
{
	const bool pair = op->epilogue & GEMM_SWIGLU;
	const uint64_t tiles = (uint64_t)((m + 63) / 64) *
			       (((uint64_t)n * (1 + pair) + 63) / 64);
	struct gemm_config c = gemm_default(op);

	if (op->in != DSL_BF16 && op->in != DSL_F16)
		return c;
	if (!pair && !op->weights && is_large(op, m, n, k, &c))
		return c;
	if (m <= 16) {
		few_rows(&c, n, k, pair);
	} else if (m <= 64 || tiles < 96) {
		c.m = 32;
		c.k = 64;
	} else if (tiles >= 384 && (op->weights || pair)) {
		c.m = 128;
		c.buffers = 1;
	} else if (tiles < 384 && !pair) {
		c.m = 128;
		c.n = 32;
		c.k = 64;
		c.waves_m = 4;
		c.waves_n = 1;
		c.buffers = 1;
	}
	return c;
}

static bool check_op(const struct gemm_op *op, struct err *e)
{
	const uint32_t act = op->epilogue & GEMM_ACTIVATIONS;
	const bool whole = op->in == DSL_I8 && op->out == DSL_I32;

	if (op->in != DSL_BF16 && op->in != DSL_F16 && op->in != DSL_I8 &&
	    op->in != DSL_F32)
		return err_set(e, ERR_UNSUPPORTED,
			       "products of type %d; wanted "
			       "bf16, f16, i8 or f32",
			       op->in);
	if (op->out != DSL_F32 && op->out != DSL_BF16 && op->out != DSL_F16 &&
	    !whole)
		return err_set(e, ERR_UNSUPPORTED, "results of type %d; wanted "
			       "f32, bf16 or f16, of i8 also i32", op->out);
	if (op->weights && ((op->in != DSL_BF16 && op->in != DSL_F16) ||
			    (op->weights != DSL_I8 && op->weights != DSL_U8) ||
			    !op->b_trans))
		return err_set(e, ERR_UNSUPPORTED, "B of integers of type %d; "
			       "wanted i8 or u8, N x K in memory, with A of "
			       "bf16 or f16", op->weights);
	if (act & (act - 1))
		return err_set(e, ERR_UNSUPPORTED, "more than one activation");
	if (whole && (op->epilogue || op->beta))
		return err_set(e, ERR_UNSUPPORTED,
			       "an epilogue or beta of i32; "
			       "let the results be f32");
	if (act == GEMM_SWIGLU && op->beta)
		return err_set(e, ERR_UNSUPPORTED, "beta of a SwiGLU pair; use "
			       "the residual");
	return true;
}

static bool check_numbers(const struct gemm_config *c, struct err *e)
{
	const int waves = c->waves_m * c->waves_n;

	if (c->buffers < 1 || c->buffers > 3 || c->prefetch > 2 ||
	    c->unroll < 1 || c->unroll > 4 || !c->split)
		return err_set(e, ERR_UNSUPPORTED, "%u buffers, prefetch %u, "
			       "unroll %u, split %u; wanted 1 to 3, 0 to 2, 1 "
			       "to 4, 1 or more", c->buffers, c->prefetch,
			       c->unroll, c->split);
	if (c->order & (c->order - 1))
		return err_set(e, ERR_UNSUPPORTED, "bands of %u rows of tiles; "
			       "wanted a power of two", c->order);
	if (waves < 1 || waves > MAX_WAVES)
		return err_set(e, ERR_UNSUPPORTED, "%d waves; wanted 1 to %d",
			       waves, MAX_WAVES);
	return true;
}

static bool check_plan(const struct gemm_op *op, const struct gemm_config *c,
		       const struct gemm_plan *p, struct err *e)
{
	const uint32_t lds = p->buffer * c->buffers * p->elem_bytes;
	const uint32_t sums = p->frags_m * p->frags_n * (p->wmma ? 8 : 1);

	if (lds > LDS_BYTES)
		return err_set(e, ERR_UNSUPPORTED, "%u bytes of LDS; a "
			       "workgroup has %d", lds, LDS_BYTES);
	if (sums > MAX_SUMS)
		return err_set(e, ERR_UNSUPPORTED,
			       "%u registers of sums alone; "
			       "a lane has 256 in all",
			       sums);
	if (c->b_direct && (!op->b_trans || !p->wmma || op->weights ||
			    p->frags_n * p->slices > GEMM_MAX_FRAGS))
		return err_set(e, ERR_UNSUPPORTED, "%u fragments of B straight "
			       "from memory; wanted N x K in memory, not f32, "
			       "without scales, and at most %d",
			       p->frags_n * p->slices, GEMM_MAX_FRAGS);
	if (p->frags_m > GEMM_MAX_FRAGS || p->frags_n > GEMM_MAX_FRAGS)
		return err_set(e, ERR_UNSUPPORTED, "%ux%u of a wave's tile; "
			       "wanted at most %d", p->frags_m, p->frags_n,
			       GEMM_MAX_FRAGS);
	if (op->epilogue & GEMM_SWIGLU && p->wave_n % 32)
		return err_set(e, ERR_UNSUPPORTED, "a SwiGLU pair wants waves "
			       "that are multiples of 32 columns wide; got %u",
			       p->wave_n);
	return true;
}

bool gemm_check(const struct gemm_op *op, const struct gemm_config *c,
		struct err *e)
{
	struct gemm_plan p;

	return check_op(op, e) && check_numbers(c, e) &&
	       gemm_plan(op, c, &p, e) && check_plan(op, c, &p, e);
}

struct gemm_checker {
	struct gemm_op op;
	struct gemm_config of; /* whose plan is known */
	struct gemm_plan plan;
	bool known;
};

struct gemm_checker *gemm_checker_new(const struct gemm_op *op)
{
	struct gemm_checker *k = xcalloc(1, sizeof(*k));

	k->op = *op;
	return k;
}

void gemm_checker_free(struct gemm_checker *k)
{
	free(k);
}

/* Have they the same plan? */
static bool is_alike(const struct gemm_config *a, const struct gemm_config *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k &&
	       a->waves_m == b->waves_m && a->waves_n == b->waves_n &&
	       a->lds == b->lds && a->b_direct == b->b_direct;
}

bool gemm_checker_check(struct gemm_checker *k, const struct gemm_config *c,
			struct err *e)
{
	if (!check_op(&k->op, e) || !check_numbers(c, e))
		return false;
	if (!k->known || !is_alike(&k->of, c)) {
		k->of = *c;
		k->known = gemm_plan(&k->op, c, &k->plan, e);
	}
	return k->known && check_plan(&k->op, c, &k->plan, e);
}

/* --------------------------------------------------------------- shape -- */

/* Offsets in a tile are 32 bits, as sizes are. */
static bool check_stride(const char *what, uint64_t ld, uint64_t least,
			 uint64_t rows, uint32_t elem_bytes, bool even,
			 struct err *e)
{
	if (ld && ld < least)
		return err_set(e, ERR_USAGE, "a leading dimension of %llu for "
			       "%s; wanted at least %llu",
			       (unsigned long long)ld, what,
			       (unsigned long long)least);
	ld = ld ? ld : least;
	if (ld > INT32_MAX || ld * rows * elem_bytes > INT32_MAX)
		return err_set(e, ERR_UNSUPPORTED, "a tile of %s covers %llu "
			       "bytes; wanted less than 2 GiB", what,
			       (unsigned long long)(ld * rows * elem_bytes));
	if (even && ld * elem_bytes % 16)
		return err_set(e, ERR_UNSUPPORTED, "rows of %s of %llu bytes; "
			       "wanted a multiple of 16 (config.even)", what,
			       (unsigned long long)(ld * elem_bytes));
	return true;
}

static bool check_groups(const struct gemm_op *op, const struct gemm_shape *s,
			 struct err *e)
{
	if (!op->weights ||
	    (s->k | s->ldb | s->stride_b) % GEMM_GROUP == 0)
		return true;
	return err_set(e, ERR_UNSUPPORTED, "K of %u, rows of B of %llu and "
		       "products %llu apart; wanted multiples of %d, which "
		       "share a scale", s->k, (unsigned long long)s->ldb,
		       (unsigned long long)s->stride_b, GEMM_GROUP);
}

bool gemm_fits(const struct gemm_op *op, const struct gemm_config *c,
	       const struct gemm_shape *s, struct err *e)
{
	const uint32_t in = op->in == DSL_F32 ? 4 : op->in == DSL_I8 ? 1 : 2;
	const uint32_t out = op->out == DSL_F32 || op->out == DSL_I32 ? 4 : 2;
	const bool pair = op->epilogue & GEMM_SWIGLU;
	const uint64_t columns = (uint64_t)s->n * (1 + pair);
	const uint32_t tile_n = pair ? c->n / 2 : c->n;

	if (s->m > INT32_MAX / 2 || columns > INT32_MAX / 2 ||
	    s->k > INT32_MAX / 2)
		return err_set(e, ERR_UNSUPPORTED, "a product of %ux%ux%u; "
			       "wanted sides below 2^30", s->m, s->n, s->k);
	if (s->batch > 65535)
		return err_set(e, ERR_UNSUPPORTED,
			       "%u products; wanted at most "
			       "65535",
			       s->batch);
	if (c->even && (s->m % c->m || s->n % tile_n || s->k % c->k))
		return err_set(e, ERR_UNSUPPORTED, "%ux%ux%u is not made of "
			       "tiles of %ux%ux%u, as config.even promises",
			       s->m, s->n, s->k, c->m, tile_n, c->k);
	const uint64_t work = (uint64_t)(s->m / c->m + 1) *
			      (s->n / tile_n + 1) * (s->k / c->k + 1) *
			      (s->batch ? s->batch : 1);

	if (gemm_has_parts(c) && work * c->split > INT32_MAX)
		return err_set(e, ERR_UNSUPPORTED, "%llu tiles in %u parts; "
			       "wanted less than 2^31",
			       (unsigned long long)work, c->split);
	if (c->even && s->batch > 1 && ((s->stride_a | s->stride_b) * in % 16 ||
					s->stride_c * out % 16))
		return err_set(e, ERR_UNSUPPORTED,
			       "products that do not lie at "
			       "multiples of 16 bytes (config.even)");
	return check_groups(op, s, e) &&
	       check_stride("A", s->lda, op->a_trans ? s->m : s->k,
			    op->a_trans ? c->k : c->m, in, c->even, e) &&
	       check_stride("B", s->ldb, op->b_trans ? s->k : columns,
			    op->b_trans ? (pair ? s->n + c->n : c->n) : c->k,
			    in, c->even, e) &&
	       check_stride("C", s->ldc, s->n, c->m, out, c->even, e);
}
