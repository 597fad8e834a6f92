/*
 * engine/serve - many users of one model: the manual.
 *
 * Keys and values live in blocks of QWEN_BLOCK positions that sequences share
 * where their texts begin alike (pages.c).
 */
#ifndef T0_ENGINE_SERVE_H
#define T0_ENGINE_SERVE_H

#include "engine/state/state.h"

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

#endif
