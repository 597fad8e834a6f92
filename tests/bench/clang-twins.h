/*
 * clang-twins - what tests/bench/clang.c runs: each kernel of the library with
 * its arguments, and where its twin in OpenCL C is.
 */
#ifndef T0_TESTS_CLANG_TWINS_H
#define T0_TESTS_CLANG_TWINS_H

#include "compiler/ssa/ssa.h"

/* Of the library's shape; other types are those of enum ssa_kind. */
#define OF_SHAPE ((enum ssa_kind)250)
#define OF_TO ((enum ssa_kind)251)
/* Vectors of the cache; n, or a number, counts elements without scales. */
#define OF_CACHE ((enum ssa_kind)252)

enum role { END, OUT, IN, INTS, STEPS, F32, I32, I64 };

enum { MAX_PARAMS = 24 };

struct param {
	enum role role;
	enum ssa_kind kind;
	size_t n;      /* elements */
	double x;      /* IN: +-x; INTS: below x; STEPS: the step; a number */
	double within; /* OUT: how far apart, beyond one unit of its type;
			* STEPS: the first */
};

/* Sizes.  Rows are those of a model of 0.6e9 to 2e9 parameters. */
enum {
	COUNT = (1 << 19) - 2, /* elements; two of the last vector are not */
	N = 2048, ROWS = 768, VOCAB = 2000, SIDE = 1000,
	HEADS = 16, KV = 8, HEAD = 128, TOKENS = 256, WEIGHTS = 4096,
	KV_LD = KV * HEAD, Q_LD = HEADS * HEAD, POSITIONS = 512,
	BATCH = 16, KEYS = 400, SPLITS = 8, CHUNK = 128, LONG = 1000,
	LOGITS = 8192, BEST = 40,
};
#define EPS 0x1p-23

/* Results, then what was there before or zero. */
#define TO_ELEMS(n, within) { OUT, OF_SHAPE, n, 0, within }
#define UPDATED(kind, n, x, within) { OUT, kind, n, x, within }
#define FROM(kind, n, x) { IN, kind, n, x, 0 }
#define BELOW(kind, n, x) { INTS, kind, n, x, 0 }
#define KEPT(n, within) { OUT, OF_CACHE, n, 0, within }
#define SAME(n, x) { STEPS, SSA_I32, n, 0, x }
#define COUNTED(n, step) { STEPS, SSA_I32, n, step, 0 }
#define NUM(x) { F32, SSA_F32, 1, x, 0 }
#define INT(x) { I32, SSA_I32, 1, x, 0 }
#define WIDE(x) { I64, SSA_I64, 1, x, 0 }
#define X FROM(OF_SHAPE, COUNT, 4)
#define XROWS FROM(OF_SHAPE, ROWS * N, 4)

/*
 * Bounds of results that are not rounded alike: sums of n terms of size s in
 * another order differ by sqrt(n) EPS s, products that are fused or not and
 * functions by a few EPS of the result.
 */
static const struct twin {
	const char *kernel, *source;
	struct param p[MAX_PARAMS];
	uint32_t gx, gy; /* workgroups */
	/* Of the elements; with a cache of i8 they are f32. */
	enum { F32_ONLY, BOTH, BF16_ONLY, BOTH_CACHED, BF16_CACHED } types;
} twins[] = {
#define EACH(name, bound, ...) \
	{ #name, "elementwise", { TO_ELEMS(COUNT, bound), __VA_ARGS__, \
	  INT(COUNT) }, (COUNT + 1023) / 1024, 1, BOTH },
	EACH(add, 0, X, X)
	EACH(sub, 0, X, X)
	EACH(mul, 0, X, X)
	EACH(scale, 0, X, NUM(.37))
	EACH(affine, 4 * EPS, X, NUM(.37), NUM(1.5))
	EACH(axpy, 4 * EPS, X, X, NUM(.37))
	EACH(fma, 16 * EPS, X, X, X)
	EACH(relu, 0, X)
	EACH(sigmoid, EPS, X)
	EACH(silu, 4 * EPS, X)
	EACH(gelu, 8 * EPS, X)
	EACH(exp, 60 * EPS, X)
	EACH(tanh, 2 * EPS, X)
	EACH(swiglu, 16 * EPS, X, X)
	EACH(add_relu, 0, X, X)
#undef EACH
	{ "swiglu_back", "elementwise",
	  { TO_ELEMS(COUNT, 64 * EPS), TO_ELEMS(COUNT, 64 * EPS), X, X, X,
	    INT(COUNT) }, (COUNT + 1023) / 1024, 1, BOTH },
	{ "convert", "elementwise",
	  { { OUT, OF_TO, COUNT, 0, 0 }, X, INT(COUNT) },
	  (COUNT + 1023) / 1024, 1, BOTH },
	{ "adamw", "elementwise",
	  { UPDATED(OF_SHAPE, COUNT, 4, 4 * EPS), X,
	    UPDATED(SSA_F32, COUNT, 1, 8 * EPS),
	    UPDATED(SSA_F32, COUNT, 0, 32 * EPS), NUM(1e-3), NUM(.9),
	    NUM(.95), NUM(1e-8), NUM(.1), NUM(.5), NUM(.3), INT(COUNT) },
	  (COUNT + 1023) / 1024, 1, BOTH },
#define ROW(name, ...) { #name, "rows", { __VA_ARGS__ }, ROWS, 1, BOTH },
#define LABELS BELOW(SSA_I32, ROWS, N)
	ROW(softmax, TO_ELEMS(ROWS * N, EPS), XROWS, INT(N))
	ROW(log_softmax, TO_ELEMS(ROWS * N, 64 * EPS), XROWS, INT(N))
	ROW(rms_norm, TO_ELEMS(ROWS * N, 200 * EPS), XROWS,
	    FROM(OF_SHAPE, N, 2), NUM(1e-6), INT(N))
	ROW(rms_norm_back, TO_ELEMS(ROWS * N, 1000 * EPS),
	    UPDATED(SSA_F32, N, 0, 28 * 100 * EPS), XROWS, FROM(OF_SHAPE, N, 2),
	    XROWS, NUM(1e-6), INT(N))
	ROW(cross_entropy, { OUT, SSA_F32, ROWS, 0, 64 * EPS }, XROWS, LABELS,
	    INT(N))
	ROW(cross_entropy_back, TO_ELEMS(ROWS * N, EPS), XROWS, LABELS,
	    NUM(.5), INT(N))
	ROW(row_sum, { OUT, SSA_F32, ROWS, 0, 45 * 4 * EPS }, XROWS, INT(N))
	ROW(row_max, { OUT, SSA_F32, ROWS, 0, 0 }, XROWS, INT(N))
	ROW(row_min, { OUT, SSA_F32, ROWS, 0, 0 }, XROWS, INT(N))
	ROW(argmax, { OUT, SSA_I32, ROWS, 0, 0 }, XROWS, INT(N))
#undef ROW
	{ "rms_norm_rows", "rows",
	  { TO_ELEMS(ROWS * N, 200 * EPS), FROM(SSA_F32, ROWS * N, 4),
	    FROM(SSA_F32, N, 2), BELOW(SSA_I32, ROWS, ROWS), NUM(1e-6),
	    INT(N) }, ROWS, 1, BF16_ONLY },
#define MOVE(name, ...) { #name, "move", { __VA_ARGS__ }, ROWS, 1, BOTH },
	MOVE(causal_mask, TO_ELEMS(ROWS * N, 0), XROWS, INT(N), INT(256),
	     INT(N - 256))
	MOVE(embed, TO_ELEMS(ROWS * N, 0), FROM(OF_SHAPE, VOCAB * N, 4),
	     BELOW(SSA_I32, ROWS, VOCAB + 9), INT(VOCAB), INT(N))
	MOVE(embed_back, UPDATED(SSA_F32, VOCAB * N, 0, 8 * EPS), XROWS,
	     BELOW(SSA_I32, ROWS, VOCAB + 9), INT(VOCAB), INT(N))
#undef MOVE
	{ "transpose", "move",
	  { TO_ELEMS(SIDE * SIDE, 0), FROM(OF_SHAPE, SIDE * SIDE, 4), INT(SIDE),
	    INT(SIDE) }, (SIDE + 31) / 32, (SIDE + 31) / 32, BOTH },
#define ROPE(name) \
	{ #name, "rope", { TO_ELEMS(TOKENS * HEADS * HEAD, 8 * EPS), \
	  FROM(OF_SHAPE, TOKENS * HEADS * HEAD, 4), \
	  FROM(SSA_F32, TOKENS * HEAD / 2, 1), \
	  FROM(SSA_F32, TOKENS * HEAD / 2, 1), \
	  BELOW(SSA_I32, TOKENS, TOKENS), INT(HEADS), INT(HEAD), \
	  INT(TOKENS * HEADS), NUM(1) }, TOKENS * HEADS / 4, 1, BOTH },
	ROPE(rope)
	ROPE(rope_pairs)
#undef ROPE
#define Y { OUT, SSA_F32, WEIGHTS, 0, 45 * 8 * 4 * EPS }
#define VECTOR FROM(SSA_F32, N, 4), INT(WEIGHTS), INT(N)
#define SCALES FROM(SSA_F16, WEIGHTS * N / 32, .1)
	{ "gemv", "gemv", { Y, FROM(OF_SHAPE, WEIGHTS * N, 4), VECTOR },
	  WEIGHTS / 4, 1, BOTH },
	{ "gemv_int8", "gemv", { Y, BELOW(SSA_I8, WEIGHTS * N, 127), SCALES,
	  VECTOR }, WEIGHTS / 4, 1, F32_ONLY },
	{ "gemv_int4", "gemv", { Y, BELOW(SSA_I8, WEIGHTS * N / 2, 127), SCALES,
	  VECTOR }, WEIGHTS / 4, 1, F32_ONLY },
#define OWN_SCALES FROM(SSA_F16, WEIGHTS * N / 64, .1)
	{ "gemv_int6", "gemv", { Y, BELOW(SSA_I8, WEIGHTS * N / 2, 127),
	  BELOW(SSA_I8, WEIGHTS * N / 4, 127), OWN_SCALES, VECTOR, INT(6) },
	  WEIGHTS / 4, 1, F32_ONLY },
	{ "gemv_int3", "gemv", { Y, BELOW(SSA_I8, WEIGHTS * N / 4, 127),
	  BELOW(SSA_I8, WEIGHTS * N / 8, 127), OWN_SCALES, VECTOR, INT(6) },
	  WEIGHTS / 4, 1, F32_ONLY },
	{ "topk", "topk",
	  { TO_ELEMS(96 * BEST, 0), { OUT, SSA_I32, 96 * BEST, 0, 0 },
	    FROM(OF_SHAPE, 96 * LOGITS, 9), INT(LOGITS), INT(BEST) },
	  96, 1, BOTH },
#define HEAD_ROWS (TOKENS * HEADS)
#define HEAD_X FROM(OF_SHAPE, HEAD_ROWS * HEAD, 4)
	{ "qk_norm", "heads",
	  { TO_ELEMS(HEAD_ROWS * HEAD, 64 * EPS), HEAD_X,
	    FROM(OF_SHAPE, HEAD, 2), NUM(1e-6), INT(HEAD), INT(HEAD_ROWS) },
	  HEAD_ROWS / 4, 1, BOTH },
	{ "turn_heads", "heads",
	  { UPDATED(OF_SHAPE, HEAD_ROWS * HEAD, 4, 16 * 12 * EPS),
	    INT(HEAD_ROWS) }, HEAD_ROWS / 4, 1, BOTH },
	{ "qk_norm_back", "heads",
	  { TO_ELEMS(HEAD_ROWS * HEAD, 256 * EPS),
	    UPDATED(SSA_F32, HEAD, 0, 64 * 200 * EPS), HEAD_X,
	    FROM(OF_SHAPE, HEAD, 2), HEAD_X, NUM(1e-6), INT(HEAD),
	    INT(HEAD_ROWS) },
	  HEAD_ROWS / 4, 1, BOTH },
	/* The cache: [sequences][positions][heads][elements]. */
#define STRIDES(positions) { I32, OF_CACHE, 1, KV_LD, 0 }, \
	{ I32, OF_CACHE, 1, HEAD, 0 }, \
	{ I64, OF_CACHE, 1, (positions) * KV_LD, 0 }
#define CACHE STRIDES(POSITIONS)
#define CACHED KEPT(POSITIONS * KV_LD, 64 * EPS)
	{ "qk_norm_rope", "heads",
	  { TO_ELEMS(128 * Q_LD, 64 * EPS), CACHED, CACHED,
	    FROM(OF_SHAPE, 128 * Q_LD, 4), FROM(OF_SHAPE, 128 * KV_LD, 4),
	    FROM(OF_SHAPE, 128 * KV_LD, 4), FROM(OF_SHAPE, HEAD, 2),
	    FROM(OF_SHAPE, HEAD, 2), FROM(SSA_F32, POSITIONS * HEAD / 2, 1),
	    FROM(SSA_F32, POSITIONS * HEAD / 2, 1), COUNTED(128, 1),
	    SAME(128, 0), INT(HEADS), INT(KV), INT(Q_LD), INT(KV_LD), CACHE,
	    INT(128), NUM(1e-6) },
	  128 * (HEADS + 2 * KV) / 4, 1, BOTH_CACHED },
	{ "kv_store", "heads",
	  { CACHED, CACHED, FROM(OF_SHAPE, POSITIONS * KV_LD, 4),
	    FROM(OF_SHAPE, POSITIONS * KV_LD, 4), COUNTED(POSITIONS, 1),
	    SAME(POSITIONS, 0), INT(KV), INT(KV_LD), CACHE, INT(POSITIONS) },
	  POSITIONS * KV / 4, 1, BOTH_CACHED },
	{ "kv_gather", "heads",
	  { TO_ELEMS(4 * 1024 * KV_LD, 0),
	    FROM(OF_SHAPE, 128 * 16 * KV_LD, 4), BELOW(SSA_I32, 4 * 64, 130),
	    SAME(4, 1001), INT(KV_LD), INT(16), INT(64), INT(128),
	    WIDE(1024 * KV_LD) }, 1024 / 4, 4, BOTH },
#define KV_OF(n, length) \
	FROM(OF_CACHE, (n) * (length) * KV_LD, 1), \
	FROM(OF_CACHE, (n) * (length) * KV_LD, 1)
#define DECODE(n, length, chunk) \
	FROM(OF_SHAPE, (n) * Q_LD, 1), KV_OF(n, length), SAME(n, length), \
	COUNTED(n, 1), INT(HEADS), INT(KV), INT(Q_LD), STRIDES(length), \
	INT(chunk), NUM(.088)
	{ "attn_decode", "decode",
	  { TO_ELEMS(BATCH * Q_LD, 64 * EPS), DECODE(BATCH, KEYS, 0) },
	  1, BATCH * KV, BOTH_CACHED },
	{ "attn_split", "decode",
	  { { OUT, SSA_F32, 2 * Q_LD * SPLITS, 0, 512 * EPS },
	    { OUT, SSA_F32, 2 * HEADS * SPLITS * 2, 0, 512 * EPS },
	    DECODE(2, LONG, CHUNK) }, SPLITS, 2 * KV, BOTH_CACHED },
	{ "attn_join", "decode",
	  { TO_ELEMS(64 * Q_LD, 16 * EPS),
	    FROM(SSA_F32, 64 * Q_LD * SPLITS, 4),
	    { INTS, SSA_F32, 64 * HEADS * SPLITS * 2, 9, 0 }, INT(SPLITS),
	    INT(HEAD), INT(64 * HEADS) }, 64 * HEADS / 4, 1, BOTH },
#define SCALE_NONE FROM(SSA_F16, 32, 1)
#define NORMED(n) FROM(SSA_F32, n, 4), FROM(SSA_F32, N, 2), NUM(1e-6)
	{ "stream_add", "stream",
	  { UPDATED(SSA_F32, WEIGHTS, 4, 45 * 16 * EPS),
	    FROM(OF_SHAPE, WEIGHTS * N, 1), SCALE_NONE, FROM(SSA_F32, N, 4),
	    INT(WEIGHTS), INT(N) }, WEIGHTS / 2, 1, BOTH },
	{ "stream_norm", "stream",
	  { { OUT, SSA_F32, WEIGHTS, 0, 45 * 16 * EPS },
	    FROM(OF_SHAPE, WEIGHTS * N, 1), SCALE_NONE, NORMED(N), SAME(1, 0),
	    INT(WEIGHTS), INT(N) }, WEIGHTS / 16, 1, BOTH },
	/* The product of two such products, up to 100 each. */
	{ "stream_swiglu", "stream",
	  { { OUT, SSA_F32, WEIGHTS / 2, 0, 100 * 45 * 16 * EPS },
	    FROM(OF_SHAPE, WEIGHTS * N, 1), SCALE_NONE, NORMED(N),
	    INT(WEIGHTS / 2), INT(N) }, WEIGHTS / 16, 1, BOTH },
	{ "stream_heads", "stream",
	  { { OUT, SSA_F32, 4 * Q_LD, 0, 16 * EPS }, CACHED,
	    KEPT(POSITIONS * KV_LD, 45 * 16 * EPS),
	    FROM(OF_SHAPE, (Q_LD + 2 * KV_LD) * N, 1), SCALE_NONE,
	    NORMED(4 * N), FROM(SSA_F32, HEAD, 2), FROM(SSA_F32, HEAD, 2),
	    FROM(SSA_F32, POSITIONS * HEAD / 2, 1),
	    FROM(SSA_F32, POSITIONS * HEAD / 2, 1), COUNTED(4, 1), SAME(4, 0),
	    INT(HEADS), INT(KV), INT(HEAD), INT(N), CACHE },
	  HEADS + 2 * KV, 4, BOTH_CACHED },
	{ "stream_embed", "stream",
	  { { OUT, SSA_F32, ROWS * N, 0, 0 }, FROM(OF_SHAPE, VOCAB * N, 4),
	    SCALE_NONE, BELOW(SSA_I32, ROWS, VOCAB + 9), INT(VOCAB), INT(N) },
	  ROWS, 1, BOTH },
	{ "stream_widen", "stream",
	  { { OUT, SSA_F16, ROWS * N, 0, 0 }, FROM(OF_SHAPE, ROWS * N, 4),
	    SCALE_NONE, INT(ROWS), INT(N) }, ROWS, 1, BOTH },
#define CHOOSE 8
	/* Scores that all differ: which tie is taken is not the question. */
	{ "route", "experts",
	  { { OUT, SSA_F32, TOKENS * CHOOSE, 0, 16 * EPS },
	    { OUT, SSA_I32, TOKENS * CHOOSE, 0, 0 },
	    FROM(SSA_F32, TOKENS * 128, 4), INT(128), INT(CHOOSE), INT(1) },
	  TOKENS, 1, F32_ONLY },
	{ "expert_swiglu", "experts",
	  { { OUT, SSA_F32, 2 * CHOOSE * ROWS, 0, 100 * 45 * 16 * EPS },
	    FROM(OF_SHAPE, 4 * 2 * ROWS * N, 1), SCALE_NONE,
	    FROM(SSA_F32, 2 * N, 4), FROM(SSA_F32, N, 2), NUM(1e-6),
	    FROM(SSA_F32, 2 * CHOOSE, 1), BELOW(SSA_I32, 2 * CHOOSE, 4),
	    INT(CHOOSE), INT(ROWS), INT(N) }, ROWS / 8, 2 * CHOOSE, BOTH },
	{ "expert_add", "experts",
	  { UPDATED(SSA_F32, 2 * N, 4, 90 * 16 * EPS),
	    FROM(OF_SHAPE, 4 * N * ROWS, 1), SCALE_NONE,
	    FROM(SSA_F32, 2 * CHOOSE * ROWS, 4),
	    BELOW(SSA_I32, 2 * CHOOSE, 4), INT(CHOOSE), INT(N), INT(ROWS) },
	  N / 2, 2, BOTH },
	/* Pairs of an expert in any order; tiles of 16 pairs of expert 16. */
	{ "expert_sort", "expert_sort",
	  { { OUT, SSA_I32, TOKENS * CHOOSE, 0, TOKENS * CHOOSE },
	    { OUT, SSA_I32, 3 * (TOKENS * CHOOSE / 32 + 128), 0, 0 },
	    BELOW(SSA_I32, TOKENS * CHOOSE, 128), INT(TOKENS * CHOOSE),
	    INT(128), INT(TOKENS * CHOOSE / 32 + 128) }, 1, 1, F32_ONLY },
#define TILED(n) SCALE_NONE, FROM(OF_SHAPE, 64 * (n), 1), COUNTED(64, 1), 	SAME(8 * 3, 16), INT(1), INT(256), INT(n)
	{ "expert_tiles_swiglu", "expert_tiles",
	  { TO_ELEMS(64 * 256, 0x1p-8), FROM(OF_SHAPE, 17 * 512 * 512, 1),
	    TILED(512), NUM(.01) }, 256 / 64, 8, BF16_ONLY },
	{ "expert_tiles", "expert_tiles",
	  { { OUT, SSA_F32, 64 * 256, 0, 45 * 4 * EPS },
	    FROM(OF_SHAPE, 17 * 256 * 512, 1), TILED(512), NUM(1) },
	  256 / 128, 8, BF16_ONLY },
	{ "expert_join", "expert_sort",
	  { UPDATED(SSA_F32, TOKENS * N, 4, 64 * EPS),
	    FROM(SSA_F32, TOKENS * CHOOSE * N, 4),
	    FROM(SSA_F32, TOKENS * CHOOSE, 1), INT(CHOOSE), INT(N) },
	  TOKENS, 1, F32_ONLY },
	/* Weights are rounded to bf16, where the last bit may differ. */
	{ "attention", "flash",
	  { TO_ELEMS(POSITIONS * Q_LD, 0x1p-9),
	    FROM(OF_SHAPE, POSITIONS * Q_LD, 1), KV_OF(1, POSITIONS),
	    COUNTED(2, POSITIONS), SAME(1, POSITIONS), SAME(1, 0), INT(HEADS),
	    INT(KV), INT(Q_LD), CACHE, INT(1), NUM(.088) },
	  HEADS, POSITIONS / 64, BF16_CACHED },
#define BLOCKS (COUNT + 1023) / 1024
#define F32S(n, x) FROM(SSA_F32, n, x)
#define RESULT(n, within) { OUT, SSA_F32, n, 0, within }
#define EQUAL(n, x) { STEPS, SSA_F32, n, 0, x }
	{ "lerp", "train", { TO_ELEMS(COUNT, 8 * EPS), X, X, NUM(.37),
			     INT(COUNT) }, BLOCKS, 1, BOTH },
	{ "round_bf16", "train", { TO_ELEMS(COUNT, 0), X, INT(COUNT) }, BLOCKS,
	  1, BOTH },
	{ "swiglu_narrow", "train",
	  { TO_ELEMS(COUNT, 16 * EPS), F32S(COUNT, 4), F32S(COUNT, 4),
	    INT(COUNT) }, BLOCKS, 1, BF16_ONLY },
	{ "swiglu_back_narrow", "train",
	  { TO_ELEMS(COUNT, 64 * EPS), TO_ELEMS(COUNT, 64 * EPS),
	    F32S(COUNT, 4), F32S(COUNT, 4), F32S(COUNT, 4), INT(COUNT) },
	  BLOCKS, 1, BF16_ONLY },
	{ "rms_norm_narrow", "train",
	  { TO_ELEMS(ROWS * N, 200 * EPS), F32S(ROWS * N, 4), F32S(N, 2),
	    NUM(1e-6), INT(N) }, ROWS, 1, BF16_ONLY },
	{ "qk_norm_back_narrow", "train",
	  { TO_ELEMS(TOKENS * Q_LD, 1000 * EPS),
	    UPDATED(SSA_F32, HEAD, 0, 64 * 100 * EPS), F32S(TOKENS * Q_LD, 4),
	    F32S(HEAD, 2), F32S(TOKENS * Q_LD, 4), NUM(1e-6), INT(HEAD),
	    INT(TOKENS * HEADS) }, TOKENS * HEADS / 4, 1, BF16_ONLY },
	{ "rope_narrow", "train",
	  { TO_ELEMS(TOKENS * Q_LD, 8 * EPS), F32S(TOKENS * Q_LD, 4),
	    F32S(TOKENS * HEAD / 2, 1), F32S(TOKENS * HEAD / 2, 1),
	    BELOW(SSA_I32, TOKENS, TOKENS), INT(HEADS), INT(HEAD),
	    INT(TOKENS * HEADS), NUM(1) }, TOKENS * HEADS / 4, 1, BF16_ONLY },
	{ "loss_chunk", "train",
	  { UPDATED(SSA_F32, ROWS, 2, 64 * EPS),
	    UPDATED(SSA_F32, ROWS, 2, 64 * EPS), F32S(ROWS * N, 4),
	    BELOW(SSA_I32, ROWS, 3 * N), INT(N), INT(N), INT(2 * N) }, ROWS, 1,
	  F32_ONLY },
	{ "loss_chunk_back", "train",
	  { UPDATED(SSA_F32, ROWS * N, 4, 500 * EPS), F32S(ROWS, 2),
	    BELOW(SSA_I32, ROWS, 3 * N), INT(N), INT(N), INT(2 * N), NUM(.5) },
	  ROWS, 1, F32_ONLY },
	{ "square_sum", "train",
	  { RESULT(COUNT / 4096 + 1, 64 * 16 * EPS), F32S(COUNT, 4),
	    INT(COUNT) }, COUNT / 4096 + 1, 1, F32_ONLY },
	{ "clip_norm", "train",
	  { RESULT(2, 64 * EPS), EQUAL(N, 3), INT(N), NUM(1.5), NUM(.25) }, 1,
	  1, F32_ONLY },
#define LEARN { UPDATED(OF_SHAPE, COUNT, 4, 16 * EPS), \
		UPDATED(SSA_F32, COUNT, 1, 8 * EPS), \
		UPDATED(SSA_F32, COUNT, 1, 8 * EPS)
	{ "learn_momentum", "train",
	  LEARN, EQUAL(2, 1), NUM(1e-3), NUM(.9), NUM(.95), INT(77), INT(COUNT) },
	  BLOCKS, 1, BOTH },
	{ "learn_adamw", "train",
	  LEARN, UPDATED(SSA_F32, COUNT, 0, 32 * EPS), EQUAL(2, 1), NUM(1e-3),
	  NUM(.9), NUM(.95), NUM(.95), NUM(1e-8), NUM(2), NUM(3), INT(77),
	  INT(COUNT) }, BLOCKS, 1, BOTH },
#undef LEARN
	{ "learn_direction", "train",
	  { UPDATED(OF_SHAPE, COUNT, 4, 16 * EPS),
	    UPDATED(SSA_F32, COUNT, 1, 8 * EPS), FROM(SSA_BF16, COUNT, 1),
	    EQUAL(2, 1), NUM(1e-3), NUM(.9), INT(77), INT(COUNT) }, BLOCKS, 1,
	  BOTH },
	{ "learn_nesterov", "train",
	  { UPDATED(SSA_F32, COUNT, 1, 8 * EPS),
	    UPDATED(SSA_F32, COUNT, 1, 8 * EPS), EQUAL(2, 1), NUM(.95),
	    INT(COUNT) }, BLOCKS, 1, F32_ONLY },
	{ "over_length", "train",
	  { TO_ELEMS(COUNT, 8 * EPS), F32S(COUNT, 4), EQUAL(2, 3),
	    INT(COUNT) }, BLOCKS, 1, BF16_ONLY },
	{ "sum_parts", "train",
	  { RESULT(COUNT, 8 * EPS), UPDATED(SSA_F32, COUNT, 4, 0),
	    F32S(COUNT, 4), F32S(COUNT, 4), F32S(COUNT, 4), F32S(COUNT, 4),
	    F32S(COUNT, 4), F32S(COUNT, 4), F32S(COUNT, 4), F32S(COUNT, 4),
	    F32S(COUNT, 4), INT(5), INT(1), INT(COUNT) }, BLOCKS, 1,
	  F32_ONLY },
	{ "learn_average", "train",
	  { UPDATED(SSA_F32, COUNT, 4, 8 * EPS), FROM(OF_SHAPE, COUNT, 4),
	    EQUAL(2, 1), NUM(.1), INT(COUNT) }, BLOCKS, 1, BOTH },
#define PACKED(of) FROM(of, TOKENS * Q_LD, 1), FROM(of, TOKENS * KV_LD, 1), \
	FROM(of, TOKENS * KV_LD, 1), COUNTED(TOKENS, 1), INT(HEADS), INT(KV), \
	INT(TOKENS), NUM(.088)
#define STATS F32S(TOKENS * HEADS, 1)
	{ "attn_packed", "train",
	  { RESULT(TOKENS * Q_LD, 64 * EPS), RESULT(TOKENS * HEADS, 64 * EPS),
	    PACKED(SSA_F32) }, TOKENS * HEADS / 4, 1, F32_ONLY },
	{ "attn_packed_dq", "train",
	  { RESULT(TOKENS * Q_LD, 4000 * EPS),
	    RESULT(TOKENS * HEADS, 400 * EPS), F32S(TOKENS * Q_LD, 1),
	    F32S(TOKENS * Q_LD, 1), STATS, PACKED(SSA_F32) },
	  TOKENS * HEADS / 4, 1, F32_ONLY },
	{ "attn_packed_dkv", "train",
	  { RESULT(TOKENS * KV_LD, 8000 * EPS),
	    RESULT(TOKENS * KV_LD, 8000 * EPS), STATS, F32S(TOKENS * Q_LD, 1),
	    STATS, PACKED(SSA_F32) }, TOKENS * KV / 4, 1, F32_ONLY },
	/* Weights and gradients of scores are rounded to bf16. */
	{ "flash_packed", "flash_packed",
	  { TO_ELEMS(TOKENS * Q_LD, 0x1p-9),
	    RESULT(TOKENS * HEADS, 400 * EPS), PACKED(OF_SHAPE) },
	  HEADS * TOKENS / 64, 1, BF16_ONLY },
	{ "flash_packed_dq", "flash_packed",
	  { RESULT(TOKENS * Q_LD, 0x1p-4), RESULT(TOKENS * HEADS, 400 * EPS),
	    FROM(OF_SHAPE, TOKENS * Q_LD, 1), FROM(OF_SHAPE, TOKENS * Q_LD, 1),
	    STATS, PACKED(OF_SHAPE) }, HEADS * TOKENS / 64, 1, BF16_ONLY },
	{ "flash_packed_dkv", "flash_packed",
	  { RESULT(TOKENS * KV_LD, 0x1p-4), TO_ELEMS(TOKENS * KV_LD, 0x1p-4),
	    STATS, FROM(OF_SHAPE, TOKENS * Q_LD, 1), STATS,
	    PACKED(OF_SHAPE) }, KV * TOKENS / 64, 1, BF16_ONLY },
};

#endif
