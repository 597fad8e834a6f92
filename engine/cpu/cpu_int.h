/*
 * engine/cpu/cpu_int.h - what decode and prefill of the CPU backend share
 * (cpu_forward.c says how they differ).
 */
#ifndef T0_ENGINE_CPU_INT_H
#define T0_ENGINE_CPU_INT_H

#include <stdatomic.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "engine/cpu/cpu.h"

/* Tokens of a narrow pass, at most. */
#define NARROW QWEN_FEW
/*
 * Tokens of one sequence in a wide pass that attend together, at most; all their
 * queries of a key-value head are few enough for the second cache.
 */
#define TOGETHER      128
#define TOGETHER_ROWS 256

struct cpu {
	const struct qwen_model *m;
	struct qwen_shape shape;
	struct qwen_cache cache;
	float *cosine, *sine; /* [positions][head_dim / 2] */
	uint32_t angles;      /* positions that have theirs */
	uint32_t together;    /* tokens */
	bool pairs; /* of few tokens, inputs of weights of bf16 are bf16, too */
	struct arena mem;
	struct worker *worker; /* [threads] */
	/* Of one pass; [max_tokens] rows each. */
	const struct qwen_pass *p;
	float *x;	  /* [hidden]: the residual stream */
	float *h;	  /* [hidden]: normalized; of wide passes */
	float *q, *k, *v; /* [heads][head_dim], [kv_heads][head_dim] */
	float *a;	  /* [heads][head_dim]: attention's result */
	float *gate, *up; /* [each][ffn] */
	uint32_t each;	  /* feed-forward networks of a token */
	struct experts *experts; /* NULL: there are none (cpu_experts.c) */
	struct run *run;  /* [n_runs] */
	uint32_t n_runs;
	bool stopped; /* set by thread 0 before a barrier */
	/* [NARROW][kv_heads]: how much of each has been done; narrow passes */
	_Atomic uint32_t *there;
	uint32_t item[NARROW + 1]; /* of each token, and all: runs of heads */
	/* Of each: the first run that it attends to as soon as it is stored. */
	uint32_t at_once[NARROW];
	/* [layers][NARROW][keys, values][kv_heads][head_dim], of a tree's */
	float *stored;
	/* What a run adds to heads [heads of a kv head]: */
	float *sums;	   /* [items][those][head_dim] */
	struct part *part; /* [items][those] */
};

/* Of a run of positions: the largest score, and the sum of exp(score - top). */
struct part {
	float top;
	double sum;
};

/* Tokens of one sequence at positions that follow each other. */
struct run {
	uint32_t first, n;
};

/* How products of a size are done; k is 0 where there is none yet. */
struct choice {
	size_t m, n, k;
	enum cpu_gemm_type b_type, a_as;
	bool tuned; /* else the list's default */
	struct cpu_gemm_config config;
};
#define CHOICES 8

/* One thread, and what it has for itself. */
struct worker {
	struct cpu *s;
	struct threads *t;
	unsigned thread;
	/* [queries of a kv head][QWEN_RUN] */
	float *score;
	/* Those queries themselves and their sums [head_dim]; wide passes. */
	float *query, *sum;
	struct part *part;
	float *wide; /* [QWEN_RUN][head_dim]: keys or values of bytes or blocks */
	struct cpu_gemm_scratch gemm;
	struct choice choice[CHOICES]; /* the latest */
	unsigned n_choices;
	float *h; /* [NARROW][hidden] */
	struct qwen_quants *xq; /* [NARROW][each] */
	uint16_t *xp; /* [NARROW][each][widest]: as bf16 */
	float *xr; /* [NARROW][each][widest]: rounded otherwise */
	float *row; /* [widest]: of integer weights, as f32 */
	struct best {
		float logit;
		uint32_t id;
	} *best; /* [max_tokens]: of the logits that this thread computed */
};

/* One of several products of the same input: rows r0 .. r1 of a matrix. */
#define MOST_ROWS 3
struct rows {
	const struct qwen_matrix *w;
	size_t r0, r1;
	float *y; /* [tokens][all rows] */
	bool add;
};

/* ----------------------------------------------------- cpu_forward.c ---- */

/* x[n] becomes what bf16 or f16 have of it. */
void cpu_round(enum qwen_activations as, float *x, size_t n);
/* The thread's part of all rows. */
struct rows cpu_part(const struct worker *w, const struct qwen_matrix *m,
		     float *y, bool add);
/* Norms and turns one query head of token n, as the cache's keys are turned. */
void cpu_q_turn(struct cpu *s, uint32_t layer, uint32_t n, uint32_t h);
/* One head's result, of values that the cache may have turned. */
void cpu_turn_back(const struct cpu *s, float *a);
/* Norms and turns one key-value head of token n, and stores it; a tree's too. */
void cpu_kv_turn(struct cpu *s, uint32_t layer, uint32_t n, uint32_t h);

/* ------------------------------------------------------ cpu_decode.c ---- */

/*
 * Before products of few tokens x [n][cols] with some matrices: rounds them to
 * what these take.
 */
void cpu_input(struct worker *w, const float *x, uint32_t n,
	       const struct rows *r, int n_rows);
/* Rows of a matrix that are dealt out at once, at least. */
size_t cpu_grain(const struct qwen_matrix *m);
/*
 * One of them, of n tokens from the first one, without waiting for anybody; r->y
 * is theirs.
 */
void cpu_product(struct worker *w, const float *x, uint32_t first, uint32_t n,
		 const struct rows *r);
/* Norms of all tokens into the thread's own h; returns that. */
const float *cpu_norm_tokens(struct worker *w, const float *norm);
/* Before a pass: what of attention is dealt out. */
void cpu_decode_init(struct cpu *s);
/* Halves of a layer, of all threads; each ends in a barrier. */
void cpu_decode_attention(struct worker *w, uint32_t layer);
void cpu_decode_ffn(struct worker *w, uint32_t layer);

/* ----------------------------------------------------- cpu_prefill.c ---- */

/*
 * Products of many tokens, split over the threads; x may be rounded.  Ends in a
 * barrier.
 */
void cpu_prefill_products(struct worker *w, float *x, uint32_t n,
			  const struct rows *r, int n_rows);
void cpu_prefill_attention(struct worker *w, uint32_t layer);
void cpu_prefill_ffn(struct worker *w, uint32_t layer);
/* h = norm(x) for every token; ends in a barrier. */
void cpu_wide_norms(struct worker *w, const float *norm);

/* ------------------------------------------------------ cpu_engram.c ---- */

/* Of the thread's tokens: rows are asked for; and added, which ends in a
   barrier. */
void cpu_engram_fetch(const struct worker *w);
void cpu_engram_add(struct worker *w);

/* ----------------------------------------------------- cpu_experts.c ---- */

/* Buffers of a mixture, if the model is one. */
void cpu_experts_init(struct cpu *s);
/* The half of a layer that has experts, of few tokens or many. */
void cpu_experts_ffn(struct worker *w, uint32_t layer);

#endif
