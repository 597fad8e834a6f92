/*
 * kfd/soft/exec/fast/native_move.h - moves of all lanes, for host code.
 *
 * Private to native_pattern.c, which says what a move is and how its lanes lie,
 * native_place.c, which finds them, and native_mem.c, which moves them.
 */
#ifndef T0_KFD_SOFT_NATIVE_MOVE_H
#define T0_KFD_SOFT_NATIVE_MOVE_H

#include "kfd/soft/exec/fast/native.h"

/* What is moved: `dwords`, or 0: a part of one, of so many bits. */
struct soft_move_type {
	uint8_t dwords;
	uint8_t bits;
	bool is_signed, store;
	enum soft_part part;
};

/* Dwords of a lane that follow each other, `at` bytes behind where it is. */
struct soft_piece {
	int n;
	int32_t at;
	uintptr_t vreg[4];
};

/*
 * A move whose lanes are at distance[] from the first one of them in memory. If
 * they are `even` that is `step` bytes from one to the next; in two equal
 * `rows` of 16, or all.
 */
struct soft_native_move {
	const struct soft_move_type *type;
	enum soft_where where;
	struct soft_piece piece[2];
	int n_pieces;
	int32_t distance[SOFT_LANES];
	bool even, rows;
	uint32_t step;
	const int32_t *expected; /* of the pattern */
	uint32_t before_bytes;	 /* lane 0 */
	uint32_t lane_bytes;	 /* that are touched of each lane */
	uint32_t span_bytes;	 /* and from the first lane on */
};

/* Do lanes follow each other, `step` bytes apart? */
static inline bool soft_native_is_line(const struct soft_native_move *v,
				       uint32_t step)
{
	return v->even && !v->rows && v->step == step;
}

/* ------------------------------------------------- native_pattern.c ---- */

/* What a microop is in each of the ways that are expected; how many. */
int soft_native_find_moves(struct soft_native_move v[SOFT_WAYS],
			   const struct soft_microop *m);

/* Dwords of lanes that follow each other: some of them may be moved. */
static inline bool soft_native_is_dword_line(const struct soft_native_move *v)
{
	return v->type->dwords == 1 && soft_native_is_line(v, 4) &&
	       v->n_pieces == 1 && v->piece[0].n == 1;
}

/* --------------------------------------------------- native_place.c ---- */

/* Where its lanes are, of a wave32; SOFT_AT_COUNT: it moves nothing. */
enum soft_where soft_native_where(const struct soft_microop *m);
/* Of one in a buffer: could host code find it? */
bool soft_native_knows_buffer(const struct soft_microop *m);
/* Where the first lane is, to pair U. */
void soft_native_measure(struct soft_native_run *r,
			 const struct soft_microop *m);
/* Jumps if lanes lie in another way. */
size_t soft_native_jump_elsewhere(struct soft_native_run *r,
				  const struct soft_microop *m,
				  const struct soft_native_move *v);
/*
 * rcx = where the first lane in memory is in this process; leaves if that is
 * not known.
 */
void soft_native_place(struct soft_native_run *r, const struct soft_microop *m,
		       const struct soft_native_move *v, size_t skip);

/* ----------------------------------------------------- native_mem.c ---- */

/* Bytes of each lane that its code reads or writes, of one piece. */
uint32_t soft_native_touched(const struct soft_native_move *v);

#endif
