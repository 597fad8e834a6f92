/*
 * engine/gpu/gpu_int.h - what the files of the gfx1100 backend share: the state
 * of a queue, and packets on it.
 */
#ifndef T0_ENGINE_GPU_INT_H
#define T0_ENGINE_GPU_INT_H

#include <string.h>

#include "base/vec.h"
#include "engine/gpu/card/card.h"
#include "engine/gpu/gpu.h"

/* A matrix in device memory, as struct qwen_matrix has it. */
struct gpu_matrix {
	enum qwen_weights type;
	uint32_t rows, cols;
	uint64_t w, scale; /* device addresses; without a scale: w */
};

/* Of a mixture `both` and `down` are those of all experts, one after another. */
struct gpu_layer {
	struct gpu_matrix heads; /* queries, keys, values */
	struct gpu_matrix out, both /* gate, up */, down;
	struct gpu_matrix router; /* of a mixture; f32 */
	uint64_t attn_norm, ffn_norm, q_norm, k_norm; /* f32 */
};

/* What a model's `device` is: the devices that share it, or one. */
struct gpu_team {
	uint32_t n;    /* that the model is cut for */
	uint32_t open; /* of them; of a forecast the first only */
	struct gpu *device[GPU_CARDS_MAX];
	size_t one_shot_bytes; /* sums of more take two shots */
	enum kfd_domain shared; /* where that lies which all of them read */
};

struct gpu {
	struct gpu_card card;
	const struct gpu_team *team;
	uint32_t number; /* of the team's */
	uint32_t first_ffn; /* element of the feed forward network here */
	uint32_t first_kv;  /* head of keys and values here */
	/* Sizes are what this device has of them: of one, the model's own. */
	const struct qwen_model *m;
	struct qwen_model own; /* of several */
	struct kfd_mem **mem; /* [n_mem]: what holds the weights */
	size_t n_mem, cap_mem;
	struct gpu_matrix embed, head;
	uint64_t norm;
	struct gpu_layer *layer; /* [config.layers] */
};

/* ------------------------------------------------------------- gpu.c ---- */

/*
 * The library's name for it; F32, F16, BF16, I8, U8 for INT4, and for our own
 * blocks U32 and I16; then columns that share a scale, 0: as usual.
 */
enum dsl_type gpu_type(enum qwen_weights w);
uint32_t gpu_span(enum qwen_weights w);
enum dsl_type gpu_cache_type(enum qwen_weights w); /* of keys and values */
/* Of a matrix without its scales. */
size_t gpu_weight_bytes(const struct qwen_matrix *w);
/* The first `open` of how->devices devices; end with qwen_gpu.close(). */
bool gpu_open(struct qwen_model *m, const struct qwen_load *how, uint32_t open,
	      struct err *e);

/* -------------------------------------------------------- gpu_pass.c ---- */

void *gpu_state_new(const struct qwen_model *m, const struct qwen_shape *shape,
		    struct err *e);
void gpu_state_free(void *state);
uint64_t gpu_cache_bytes(const void *state);
bool gpu_forward(void *state, const struct qwen_pass *p, struct err *e);
void gpu_counts(const void *state, struct qwen_counts *out);

/* --------------------------------------------------------- the state ---- */

/* Longer contexts are split over groups of about so many keys, or twice. */
#define SPLIT_KEYS 256
/* Passes of more tokens have groups enough without splits. */
#define SPLIT_TOKENS 8
/*
 * From so many tokens on, products are of tiles: each weight is read once.  For
 * fewer, but more than KERNEL_MAX_TOKENS, where streaming would read so many
 * weights again: by the simulator the tiles' further packets take as long.
 */
#define TILE_TOKENS 16
#define TILE_WEIGHTS 48000000
/* Up to so many there are tiles of their own. */
#define TILE_FEW 16
/* Runs of so many queries are worth a tile of them. */
#define FLASH_RUN 8

/*
 * Words per token that the host writes; of tokens of one sequence that stand
 * together (a run), RUN's.  ROW counts from 0, for ever.  BEGIN has the first
 * blocks of each token's sequence, [max_tokens][KERNEL_TABLE_BEGIN].
 */
enum gpu_word {
	GPU_ID, GPU_POSITION, GPU_SLOT, GPU_LENGTH, GPU_PICK, GPU_ROW,
	GPU_RUN_FIRST, GPU_RUN_LENGTH, GPU_RUN_SLOT, GPU_BEGIN,
	GPU_WORDS = GPU_BEGIN + KERNEL_TABLE_BEGIN
};

/* The kernels of a matrix's product depend on its type. */
struct gpu_products {
	const struct gpu_kernel *embed;
	/* For so many tokens of a group; but for one made when needed. */
	struct gpu_streams {
		const struct gpu_kernel *heads, *add, *swiglu, *norm;
	} stream[KERNEL_MAX_TOKENS + 1];
	/* Of tiles; NULL for f32.  For max_tokens, for fewer, for few. */
	struct gpu_layer_tiles {
		const struct gpu_tiles *heads, *out, *both, *down;
	} full, part, few;
	const struct gpu_kernel *narrow, *rms_norm; /* from f32 */
	const struct gpu_kernel *widen; /* of our own blocks, for tiles */
	/* Of a mixture; the last two NULL for f32. */
	const struct gpu_kernel *expert_swiglu, *expert_add;
	const struct gpu_kernel *expert_tiles_swiglu, *expert_tiles;
};

/* Block `to` becomes what `from` is. */
struct gpu_copy {
	uint32_t from, to;
};

struct gpu_state {
	struct gpu *g;
	struct qwen_shape shape;
	struct kfd_queue *queue;
	struct gpu_products of[QWEN_WEIGHTS];
	const struct gpu_kernel *attend, *split, *join, *argmax, *copy;
	const struct gpu_kernel *turn, *flash; /* with tiles */
	const struct gpu_kernel *back; /* of a cache that is turned */
	uint32_t ratio, splits; /* heads of a group of attention; at most */
	struct kfd_mem *key, *value; /* [layers][sequences][kv][positions] */
	uint32_t vector; /* elements of one there: kernel_cache_row() */
	uint32_t element; /* bytes */
	/* Of a paged cache, [layers][blocks][kv][QWEN_BLOCK]: entries of a
	 * sequence in the table; 0: it is dense. */
	uint32_t pages;
	struct kfd_mem *table;	 /* [sequences][pages], and gpu_pages.c's own */
	const uint32_t **mapped; /* [sequences]: the caller's */
	VEC(struct gpu_copy) copies; /* that the next pass begins with */
	const struct gpu_kernel *move;
	size_t layer_bytes; /* of one layer's keys */
	struct kfd_mem *cosine, *sine;
	struct kfd_mem *words; /* [GPU_WORDS][max_tokens + 1] i32, host */
	struct kfd_mem *x, *q, *a, *ffn, *part, *top;
	struct kfd_mem *narrow, *qkv, *workspace; /* with tiles */
	struct kfd_mem *wide; /* one of our own blocks' matrices, as f16 */
	struct kfd_mem *logits, *best; /* [cap_wanted] rows */
	struct kfd_mem *out;	       /* the same in host memory */
	struct kfd_mem *shown; /* [cap_shown] rows of x in host memory */
	/* Of a team: parts of the layers' sums, of attention, of feed forward;
	 * on its first device all of the logits. */
	struct kfd_mem *delta[2], *whole;
	const struct gpu_kernel *sum;
	/* Of a mixture: [max_tokens][experts] f32; [max_tokens][used]. */
	struct kfd_mem *score, *share, *expert;
	const struct gpu_kernel *route, *sort, *join_pairs;
	/* With tiles: [pairs]; [gpu_expert_tiles()][3]; [pairs][hidden]. */
	struct kfd_mem *order, *tile, *pairs;
	uint32_t cap_wanted, cap_shown;
	struct qwen_counts counts;
	uint64_t ticket; /* of the last packet */
	uint64_t mark;	 /* of the last loud one */
	bool loud;	 /* the next one is: it can be waited for */
	uint64_t deadline_ns; /* of the pass; CLOCK_MONOTONIC */
	/* Of a forecast: packets go here; there is no queue.  Or NULL. */
	struct gpu_record *record;
};

/* The states of a team: one that the host puts passes to. */
struct gpu_run {
	const struct gpu_team *team;
	struct gpu_state *rank[GPU_CARDS_MAX]; /* [n] */
	uint32_t n;
	bool dirty;  /* deltas have to be cleared */
	bool broken; /* a device was lost */
	/* Of a forecast: how often devices met, and what they then fetched. */
	uint64_t meetings, linked_bytes;
};

/* As gpu_state_new(), on one device and without a queue. */
struct gpu_state *gpu_state_make(struct gpu *g, const struct qwen_shape *shape,
				 struct err *e);
/* Of the devices that are open, without queues; they are the caller's. */
bool gpu_run_make(struct gpu_run *run, const struct qwen_model *m,
		  const struct qwen_shape *shape, struct err *e);
void gpu_run_fini(struct gpu_run *run);

/*
 * Weights of f32 have no tiles, so that a token's sums are the same in any few
 * tokens; with a cache of blocks those of attention are, too.
 */
static inline bool gpu_is_exact(const struct gpu_state *s)
{
	return s->pages && s->g->layer[0].heads.type == QWEN_W_F32;
}

/* Are queries, keys and values multiplied by Hadamard's matrix? */
static inline bool gpu_is_turned(const struct gpu_state *s)
{
	return s->shape.cache.keys == QWEN_W_INT4R;
}

/* What the layers need to know of a pass. */
struct gpu_pass {
	uint32_t n;	  /* tokens */
	uint32_t each;	  /* of them that a group of streamed rows takes */
	uint32_t longest; /* keys of the token that has most */
	uint32_t runs;	  /* 0: tokens of a sequence do not stand together */
	uint32_t run_most; /* tokens of the longest run */
};

/* -------------------------------------------------------- gpu_pass.c ---- */

/* One packet, on the queue or, in a forecast, to the record. */
bool gpu_put(struct gpu_state *s, const struct gpu_code *c,
	     const struct kfd_launch *l, struct err *e);
/* All packets of a pass; what it computes is then on its way. */
bool gpu_put_pass(struct gpu_run *run, const struct qwen_pass *p,
		  struct err *e);

/* The next packet ends what others of a team wait for. */
static inline void gpu_ends(struct gpu_state *s)
{
	s->loud |= s->g->team->n > 1;
}

/* Where a layer's products with rows of x go: each half has one at its end. */
enum gpu_half { GPU_ATTENTION, GPU_FEED };
static inline const struct kfd_mem *gpu_sum(const struct gpu_state *s,
					    enum gpu_half half)
{
	return s->g->team->n > 1 ? s->delta[half] : s->x;
}

static inline void arg_matrix(struct gpu_args *a, const struct gpu_matrix *w)
{
	arg_va(a, w->w);
	arg_va(a, w->scale);
}

static inline void arg_word(struct gpu_args *a, const struct gpu_state *s,
			    enum gpu_word w)
{
	arg_va(a, s->words->va + (uint64_t)w * (s->shape.max_tokens + 1) *
					 sizeof(int32_t));
}

/* One of the arrays that the kernels read. */
static inline int32_t *host_words(const struct gpu_state *s, enum gpu_word w)
{
	return (int32_t *)s->words->cpu + w * (s->shape.max_tokens + 1);
}

/*
 * Strides of the cache, in elements: of a position, a head, a sequence or a
 * block; and the table.
 */
static inline void arg_strides(struct gpu_args *a, const struct gpu_state *s)
{
	const struct qwen_config *c = &s->g->m->config;
	uint32_t head = (s->pages ? QWEN_BLOCK : s->shape.positions) *
			s->vector;

	arg_u32(a, s->vector);
	arg_u32(a, head);
	arg_va(a, (uint64_t)c->kv_heads * head);
	if (s->pages)
		arg_mem(a, s->table);
}

static inline bool put_kernel(struct gpu_state *s, const struct gpu_kernel *k,
			      const struct gpu_args *a, uint64_t gx,
			      uint64_t gy, struct err *e)
{
	const struct kfd_launch l = kernel_launch(k, a, gx, gy);

	return gpu_put(s, &k->code, &l, e);
}

/* ------------------------------------------------------- gpu_pages.c ---- */

/* All but map and copy do nothing where the cache is dense. */
bool gpu_pages_init(struct gpu_state *s, struct err *e);
void gpu_pages_fini(struct gpu_state *s);
/* The tables of a pass's sequences. */
void gpu_pages_write(struct gpu_state *s, const struct qwen_pass *p);
/* The copies that wait. */
bool gpu_pages_copy(struct gpu_state *s, struct err *e);
void gpu_map(void *state, uint32_t sequence, const uint32_t *block);
void gpu_copy(void *state, uint32_t from, uint32_t to);

/* ------------------------------------------------------ gpu_hidden.c ---- */

/* Behind the layers: copies of the rows that a pass shows, and their norm. */
bool gpu_hidden_put(struct gpu_state *s, const struct qwen_pass *p,
		    struct err *e);
void gpu_hidden_read(struct gpu_state *s, const struct qwen_pass *p);

/* ------------------------------------------------------ gpu_decode.c ---- */

/* Of n tokens, those that a group of streamed rows takes. */
uint32_t gpu_stream_tokens(uint32_t n);
/* The kernels for them. */
bool gpu_stream_kernels(struct gpu_state *s, enum qwen_weights w,
			uint32_t tokens, struct err *e);
/* Packets of half a layer, for any tokens. */
bool gpu_layer(struct gpu_state *s, uint32_t layer, enum gpu_half half,
	       const struct gpu_pass *p, struct err *e);
/* Attention of each token for itself: s->a from s->q and the cache. */
bool gpu_attend(struct gpu_state *s, uint32_t layer, const struct gpu_pass *p,
		struct err *e);
/* s->a of n tokens as it is without Hadamard's matrix, where there is one. */
bool gpu_turn_back(struct gpu_state *s, uint32_t n, struct err *e);

/* ----------------------------------------------------- gpu_experts.c ---- */

/* Of models that are no mixtures these two do nothing. */
bool gpu_expert_kernels(struct gpu_state *s, struct err *e);
bool gpu_expert_buffers(struct gpu_state *s, struct err *e);
/* Tiles that pairs of n tokens make at most. */
uint32_t gpu_expert_tiles(const struct qwen_config *c, uint32_t n);
/* The second half of a layer of a mixture, for any tokens. */
bool gpu_expert_feed(struct gpu_state *s, uint32_t layer,
		     const struct gpu_pass *p, struct err *e);

/* ----------------------------------------------------- gpu_prefill.c ---- */

/* The same in products of tiles; all of the layer's weights have one type. */
bool gpu_tile_layer(struct gpu_state *s, uint32_t layer, enum gpu_half half,
		    const struct gpu_pass *p, struct err *e);
/* Is that there for this layer, and better for n tokens? */
bool gpu_tile_pays(const struct gpu_state *s, uint32_t layer, uint32_t n);
/* Has this type of weights tiles here? */
bool gpu_tile_is_there(const struct gpu_state *s, enum qwen_weights w);
/* s->narrow = norm(x) of the n rows that `rows` names, for such weights. */
bool gpu_tile_norm(struct gpu_state *s, enum qwen_weights w, uint64_t gain,
		   enum gpu_word rows, uint32_t n, struct err *e);
/* Logits of the n rows that GPU_PICK names. */
bool gpu_tile_logits(struct gpu_state *s, uint32_t n, struct err *e);
bool gpu_tile_logits_pays(const struct gpu_state *s, uint32_t n);
/* Kernels and buffers for it. */
bool gpu_tile_kernels(struct gpu_state *s, enum qwen_weights w, struct err *e);
bool gpu_tile_buffers(struct gpu_state *s, struct err *e);

/* -------------------------------------------------------- gpu_team.c ---- */

/* Can it be cut for n devices? */
bool gpu_team_check(const struct qwen_config *c, uint32_t n, struct err *e);
/* g->m: what one of n has of it. */
void gpu_team_share(struct gpu *g, const struct qwen_model *m, uint32_t n);

/* A device's part of a layer. */
struct gpu_part {
	struct qwen_layer layer; /* its `expert` is the part's, too */
	void **own; /* what was copied for it */
	size_t n_own, cap_own;
};
void gpu_part_take(struct gpu_part *p, const struct gpu *g,
		   const struct qwen_layer *l);
void gpu_part_drop(struct gpu_part *p);
/* Rows of the output layer: from the first of a device, to the next's. */
uint32_t gpu_first_id(const struct gpu *g, uint32_t number);
struct qwen_matrix gpu_part_head(const struct gpu *g);

/* All of these do nothing where there is one device. */
bool gpu_team_state(struct gpu_state *s, struct err *e);
bool gpu_team_join(struct gpu_run *run, struct err *e);
bool gpu_team_ready(struct gpu_run *run, struct err *e);
/* x of every device, plus the products of all. */
bool gpu_team_sum(struct gpu_run *run, bool feed, uint32_t tokens,
		  struct err *e);
/* rank[0]->whole: rows of all logits. */
bool gpu_team_logits(struct gpu_run *run, uint32_t rows, struct err *e);
/* All that was put; an error names the device. */
bool gpu_team_wait(struct gpu_run *run, uint64_t deadline_ns, struct err *e);

#endif
