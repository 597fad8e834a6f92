/*
 * engine/serve - many users of one model: the manual.
 *
 * Keys and values live in blocks of QWEN_BLOCK positions that sequences share
 * where their texts begin alike (pages.c).  A batch (batch.c) mixes pieces of
 * prompts with texts that are being written, of which guess.c says how many
 * tokens are proposed.
 */
#ifndef T0_ENGINE_SERVE_H
#define T0_ENGINE_SERVE_H

#include "engine/grammar/grammar.h"
#include "engine/speculate/speculate.h"

/* ----------------------------------------------------------- pages.c ---- */

/*
 * Who has which block of a paged cache.  Only numbers: the blocks' memory is
 * the backend's (qwen_state_map()).
 *
 * A block is free, held by some tables, or remembered: held by none, but full
 * and with a name, so that a text that begins the same finds it.  A name is the
 * block's ids and the name of the block before it, compared and not only
 * hashed, so what is found is never another text's.  Where no block is free,
 * the remembered one that was let go longest ago is given out again; a block
 * goes before the one that stands before it.
 *
 * Every function costs O(blocks of the table), or less.  One thread at a time.
 */
struct qwen_pages;

/* The blocks of one sequence, in order.  Zero-initialise. */
struct qwen_table {
	uint32_t *block; /* [n] */
	uint64_t *name;	 /* [named]: of its first blocks */
	uint32_t n, cap, named;
	uint32_t length; /* positions that have room, of 16 n */
};

/* Block `to` becomes what `from` is before anything is written. */
struct qwen_copy {
	bool wanted;
	uint32_t from, to;
};

/* `blocks` is 1 .. UINT32_MAX - 1. */
struct qwen_pages *qwen_pages_new(uint32_t blocks);
void qwen_pages_free(struct qwen_pages *p); /* tables are dropped before */
/* Blocks that an extension could have: free ones and remembered ones. */
uint32_t qwen_pages_left(const struct qwen_pages *p);

/*
 * An empty table gets the remembered or held blocks that ids[n] begin with;
 * returns how many positions those are, a multiple of QWEN_BLOCK.
 */
uint32_t qwen_pages_find(struct qwen_pages *p, struct qwen_table *t,
			 const uint32_t *ids, uint32_t n);
/*
 * Room for n > 0 more positions, and a block of its own for each of them: copy
 * on write.  False: too few blocks are left, and nothing has changed.
 */
bool qwen_pages_extend(struct qwen_pages *p, struct qwen_table *t, uint32_t n,
		       struct qwen_copy *copy);
/*
 * All of the table's positions have been written, for ids[t->length]: its full
 * blocks get names.  Where another block has the name, the table takes that one
 * and lets go its own.  They end before one that is shared without a name: so
 * who holds a block with a name holds those before it.
 */
void qwen_pages_name(struct qwen_pages *p, struct qwen_table *t,
		     const uint32_t *ids);
/* An empty table becomes another's equal; all blocks are shared. */
void qwen_pages_fork(struct qwen_pages *p, struct qwen_table *to,
		     const struct qwen_table *from);
/* Only the first n positions stay. */
void qwen_pages_truncate(struct qwen_pages *p, struct qwen_table *t,
			 uint32_t n);
/* Lets go of everything and frees the arrays; the table is empty. */
void qwen_pages_drop(struct qwen_pages *p, struct qwen_table *t);

/* ----------------------------------------------------------- guess.c ---- */

/*
 * How many tokens of a text a batch proposes: as many as give the most tokens a
 * second, by what passes and proposals were seen to cost and by how often the
 * text's were right.  At most twice as many as before where those were all
 * right, half of them where none was.
 *
 * Where none pays, the text rests.  It is looked at again with one proposal
 * after at least 32 passes, and after so many that the look is a fiftieth of
 * their time, with all that the proposer has to read of what was said
 * meanwhile.  So proposals that are always wrong are some 3 % of a text's
 * tokens, and a proposer that costs more than it brings is hardly ever asked.
 */
struct qwen_guess_costs { /* of a batch; zero-initialise */
	double pass[QWEN_FEW + 1]; /* seconds, of so many tokens; 0: unknown */
	double propose;		   /* seconds, of one token of several in a row */
	double read; /* of a token that the proposer has not seen */
	uint32_t since; /* passes with proposals since one without */
	bool steady;	/* what is right alone decides; the caller's */
};
struct qwen_guessing { /* of a text */
	double right;	 /* of proposals whose predecessors were */
	uint32_t most;	 /* that may come next; 0: none was right */
	uint32_t rested; /* passes without any */
	uint32_t behind; /* tokens that the proposer has not seen */
};
/* A text of so many tokens is admitted. */
void qwen_guess_begin(struct qwen_guessing *g, uint32_t behind);
/* How many for one of so many texts of a pass, of which `room` have room. */
uint32_t qwen_guess_length(const struct qwen_guess_costs *c,
			   const struct qwen_guessing *g, uint32_t texts,
			   uint32_t room);
/* The proposer gave n, in so many seconds. */
void qwen_guess_asked(struct qwen_guess_costs *c, struct qwen_guessing *g,
		      uint32_t n, double seconds);
/* A pass of so many tokens. */
void qwen_guess_pass(struct qwen_guess_costs *c, uint32_t tokens, bool proposed,
		     double seconds);
/* Of n proposals so many were right, none where n is 0. */
void qwen_guess_see(struct qwen_guessing *g, uint32_t n, uint32_t right);

/* ----------------------------------------------------------- batch.c ---- */

/*
 * Many texts at once.  A step gives every text that is being written one more
 * token, then computes pieces of prompts as far as its budget goes.
 *
 * A text's tokens do not depend on the others, to the bit, whatever the types
 * (on a gfx1100 of weights of f32; QWEN_FEW says what the others are within):
 * prompts are cut at multiples of `chunk` and a piece has a pass of its own;
 * tokens that follow go in passes of few, whose sums do not depend on how many
 * there are; only whole pieces are shared.  So a text is what one sequence with
 * the same chunk gives (t0-qwen3 generate --chunk).
 *
 * With `speculate` tokens are proposed and verified (engine/speculate): they
 * stay the same, whoever proposes, as proposals are chosen and not drawn.  They
 * only fill passes of few that texts leave room in, as many as pay.
 *
 * A request is admitted where blocks for its text are left: of the user who has
 * had the fewest tokens, the earliest.  Where blocks run out, the latest
 * request gives its own back and computes them again later; the earliest never
 * does, so all end.
 *
 * A request may also want one vector of its text (engine/state's hidden).
 *
 * One thread at a time.
 */
struct qwen_batch;

struct qwen_batch_shape {
	uint32_t sequences; /* that run at once */
	uint32_t positions; /* of a text, at most */
	uint32_t blocks;    /* of the cache */
	uint32_t chunk;	    /* tokens of a piece of a prompt */
	uint32_t budget;    /* tokens of a step; a piece more at most */
	struct qwen_kinds cache;
	uint32_t speculate; /* tokens of a text proposed at once, at most */
	/*
	 * Or NULL: lookup.  Who proposes for the texts that a sequence of the
	 * state has, one after the other; the batch's, and as long as the state
	 * is there.  None may draw, nor propose a tree.
	 */
	struct qwen_proposer *(*proposer_new)(void *ctx,
					      struct qwen_state *state,
					      uint32_t sequence, struct err *e);
	void *proposer_ctx;
	bool steady; /* whatever proposals cost; no clock decides then */
};

/* One vector of a text, instead of tokens that follow. */
enum qwen_pool {
	QWEN_POOL_NONE,
	QWEN_POOL_MEAN, /* of all its tokens' */
	QWEN_POOL_LAST	/* its last token's */
};

struct qwen_ask {
	const uint32_t *ids; /* [n], n at least 1; copied */
	uint32_t n;
	uint32_t tokens; /* that follow, at most; at least 1, pooled: 0 */
	struct qwen_sampling how;
	uint64_t user; /* any number that users differ by */
	void *who;     /* the caller's */
	enum qwen_pool pool;
	/*
	 * Or NULL: what the text is to be, with the tokens of the model.  They
	 * are the caller's and stay until the request is gone.
	 */
	const struct qwen_grammar *grammar;
	const struct qwen_lexicon *lexicon;
};

enum qwen_end {
	QWEN_GOES_ON,
	QWEN_END_STOP,	 /* the token is one of the model's stops */
	QWEN_END_LENGTH, /* of what was asked for */
	QWEN_END_WHOLE,	 /* nothing may follow, by the grammar */
	QWEN_END_POOLED, /* no token: the vector */
	QWEN_END_BROKEN	 /* no token: logits are no numbers */
};
/* A request's next token. */
struct qwen_news {
	enum qwen_end end;
	uint32_t token;
	const float *logits;  /* [vocab], of the model; NULL: no token */
	const double *vector; /* [hidden] of qwen_hidden()'s, where pooled */
};
/*
 * False: nobody wants more of it.  It is gone after that, and after an end.
 * Must not call the batch; the news are gone when it returns.
 */
typedef bool qwen_heard_fn(void *ctx, void *who, const struct qwen_news *news);

struct qwen_batch_counts {
	uint32_t running, waiting, blocks_left;
	uint64_t steps, preempted;
	uint64_t prompt_tokens, found_tokens; /* computed; found in the cache */
	uint64_t tokens;		      /* sampled */
	uint64_t proposed, right;
};

struct qwen_batch *qwen_batch_new(const struct qwen_model *m,
				  const struct qwen_batch_shape *shape,
				  struct err *e);
void qwen_batch_free(struct qwen_batch *b);
/*
 * Queues a request; ERR_USAGE: it has no tokens, one that is not in the
 * vocabulary, a sampling out of range, too few that may follow for its
 * grammar, or would never fit.
 */
bool qwen_batch_add(struct qwen_batch *b, const struct qwen_ask *ask,
		    struct err *e);
/* Forgets the requests of `who`. */
void qwen_batch_cancel(struct qwen_batch *b, const void *who);
/* One step; false on an error of the backend.  Without requests: nothing. */
bool qwen_batch_step(struct qwen_batch *b, qwen_heard_fn *heard, void *ctx,
		     struct err *e);
void qwen_batch_count(const struct qwen_batch *b,
		      struct qwen_batch_counts *out);

#endif
