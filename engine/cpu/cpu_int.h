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
#define NARROW 8
/* Tokens of one sequence in a wide pass that attend together, at most. */
#define TOGETHER 256

struct cpu {
	const struct qwen_model *m;
	struct qwen_shape shape;
	struct qwen_cache cache;
	float *cosine, *sine; /* [positions][head_dim / 2] */
	struct arena mem;
	struct worker *worker; /* [threads] */
	/* Of one pass; [max_tokens] rows each. */
	const struct qwen_pass *p;
	float *x;	  /* [hidden]: the residual stream */
	float *h;	  /* [hidden]: normalized; of wide passes */
	float *q, *k, *v; /* [heads][head_dim], [kv_heads][head_dim] */
	float *a;	  /* [heads][head_dim]: attention's result */
	float *gate, *up; /* [ffn] */
	struct run *run;  /* [n_runs] */
	uint32_t n_runs;
	bool stopped; /* set by thread 0 before a barrier */
	/* [kv_heads]: how much of each has its products; narrow passes */
	_Atomic uint32_t *there;
};

/* Tokens of one sequence at positions that follow each other. */
struct run {
	uint32_t first, n; /* at most TOGETHER */
};

/* How products of a size are done; k is 0 where there is none yet. */
struct choice {
	size_t m, n, k;
	enum cpu_gemm_type b_type;
	bool tuned; /* else the list's default */
	struct cpu_gemm_config config;
};
#define CHOICES 8

/* One thread, and what it has for itself. */
struct worker {
	struct cpu *s;
	struct threads *t;
	unsigned thread;
	/* [heads per kv head][positions] or [TOGETHER][score_ld(positions)] */
	float *score;
	float *space; /* grows: keys or values as f32 */
	size_t space_floats;
	struct cpu_gemm_scratch gemm;
	struct choice choice[CHOICES]; /* the latest */
	unsigned n_choices;
	float *h; /* [NARROW][hidden] */
	struct qwen_quants xq[NARROW];
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

/*
 * Floats of a row: an odd number of cache lines, so that sets are not shared.
 */
static inline size_t score_ld(size_t positions)
{
	return ((positions + 15) / 16 | 1) * 16;
}

/* ----------------------------------------------------- cpu_forward.c ---- */

/* The thread's own memory, contents undefined, until the next call. */
float *cpu_space(struct worker *w, size_t floats);
/* The thread's part of all rows. */
struct rows cpu_part(const struct worker *w, const struct qwen_matrix *m,
		     float *y, bool add);
/* Norms and turns one query head of token n. */
void cpu_q_turn(struct cpu *s, uint32_t layer, uint32_t n, uint32_t h);
/* Norms and turns one key-value head of token n, and stores it. */
void cpu_kv_turn(struct cpu *s, uint32_t layer, uint32_t n, uint32_t h);

/* ------------------------------------------------------ cpu_decode.c ---- */

/*
 * Before products of few tokens x [n][cols] with some matrices: quantizes them
 * if one of these is of integers.
 */
void cpu_input(struct worker *w, const float *x, uint32_t n,
	       const struct rows *r, int n_rows);
/* Rows of a matrix that are dealt out at once, at least. */
size_t cpu_grain(const struct qwen_matrix *m);
/* One of them, without waiting for anybody. */
void cpu_product(struct worker *w, const float *x, uint32_t n,
		 const struct rows *r);
/* Halves of a layer, of all threads; each ends in a barrier. */
void cpu_decode_attention(struct worker *w, uint32_t layer);
void cpu_decode_ffn(struct worker *w, uint32_t layer);

/* ----------------------------------------------------- cpu_prefill.c ---- */

/* Products of many tokens, split over the threads.  Ends in a barrier. */
void cpu_prefill_products(struct worker *w, const float *x, uint32_t n,
			  const struct rows *r, int n_rows);
void cpu_prefill_attention(struct worker *w, uint32_t layer);
void cpu_prefill_ffn(struct worker *w, uint32_t layer);

#endif
