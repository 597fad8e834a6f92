/*
 * kfd/soft/exec/fast/native_mem.c - loads and stores of all lanes as host code.
 *
 * Lanes that are evenly apart are moved 16 dwords at a time where that is
 * possible, all others one by one: where each is stands in the code.  A host
 * without zmm, to which it is dear to put 16 dwords in another order, moves two
 * dwords and more at most 16 bytes at a time.  rcx is the first lane in memory.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/exec/fast/native_move.h"

static struct soft_host_mem byte_at(int32_t at)
{
	return (struct soft_host_mem){ SOFT_RCX, at };
}

static void emit_op(struct soft_native_run *r, enum soft_host_op op, int d,
		    int s1, int s2)
{
	soft_host_op(r->code, op, d, 0, s1, s2, 0);
}

static void emit_at(struct soft_native_run *r, enum soft_host_op op, int d,
		    int s1, int32_t at, uint8_t imm)
{
	soft_host_op_mem(r->code, op, d, 0, s1, byte_at(at), false, imm);
}

static void load_zmm(struct soft_native_run *r, int d, int32_t at)
{
	emit_at(r, SOFT_HOST_MOVD, d, 0, at, 0);
}

static void store_zmm(struct soft_native_run *r, int s, int32_t at)
{
	emit_at(r, SOFT_HOST_STORED, s, 0, at, 0);
}

static void copy_zmm(struct soft_native_run *r, int d, int s)
{
	emit_op(r, SOFT_HOST_MOVD, d, 0, s);
}

/* A pair with the constants of both zmm. */
static int take_constant(struct soft_native_run *r, int constant)
{
	const int pair = soft_native_take(r);

	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_MOVD, 2 * pair + i, 0, 0,
				 soft_native_at(constant + 16 * i), false, 0);
	return pair;
}

/* Word q of block b of from[b'] is word b' of block b of to[q]. */
static void transpose_4x4(struct soft_native_run *r, const int to[4],
			  const int from[4])
{
	const int t[4] = { 2 * SOFT_PAIR_U, 2 * SOFT_PAIR_U + 1,
			   2 * SOFT_PAIR_V, 2 * SOFT_PAIR_V + 1 };

	emit_op(r, SOFT_HOST_UNPCKLD, t[0], from[0], from[1]);
	emit_op(r, SOFT_HOST_UNPCKLD, t[1], from[2], from[3]);
	emit_op(r, SOFT_HOST_UNPCKHD, t[2], from[0], from[1]);
	emit_op(r, SOFT_HOST_UNPCKHD, t[3], from[2], from[3]);
	emit_op(r, SOFT_HOST_UNPCKLQ, to[0], t[0], t[1]);
	emit_op(r, SOFT_HOST_UNPCKHQ, to[1], t[0], t[1]);
	emit_op(r, SOFT_HOST_UNPCKLQ, to[2], t[2], t[3]);
	emit_op(r, SOFT_HOST_UNPCKHQ, to[3], t[2], t[3]);
	for (int i = 0; i < 4; i++)
		soft_host_forget(r->code, t[i]);
}

/* ----------------------------------------------------------- fetching ---- */

/* Those for which the wave has a place in last_load[]. */
static bool keeps_last_load(const struct soft_native_move *v)
{
	return v->where == SOFT_AT_SADDR || v->where == SOFT_AT_VADDR ||
	       v->where == SOFT_AT_FLAT;
}

static void fetch_line(struct soft_native_run *r, int32_t at)
{
	soft_host_prefetch(r->code, byte_at(at));
}

#define LINE 64 /* bytes, of the host's caches */

/* Is that a constant distance, for the lines that are loaded? */
static bool is_fetched_ahead(const struct soft_native_move *v)
{
	return keeps_last_load(v) &&
	       (soft_native_is_line(v, 16) || soft_native_is_line(v, 32));
}

/*
 * Fetches each lane's line as far ahead of rcx as it is from the last time, if
 * it is.
 */
static void fetch_next(struct soft_native_run *r, const struct soft_microop *m,
		       const struct soft_native_move *v)
{
	const struct soft_host_mem last = {
		SOFT_RDI, (int32_t)offsetof(struct soft_wave, last_load) +
				  m->mask_in * (int32_t)sizeof(uintptr_t)
	};
	int32_t fetched = -LINE;
	size_t same;

	soft_host_int64(r->code, SOFT_HOST_MOV, SOFT_R10, last);
	soft_host_int64(r->code, SOFT_HOST_PUT, SOFT_RCX, last);
	soft_host_int_regs(r->code, SOFT_HOST_CMP, true, SOFT_RCX, SOFT_R10);
	same = soft_host_jump_if(r->code, SOFT_HOST_ZERO);
	soft_host_int_regs(r->code, SOFT_HOST_MOV, true, SOFT_R11, SOFT_RCX);
	soft_host_int_regs(r->code, SOFT_HOST_ADD, true, SOFT_RCX, SOFT_RCX);
	soft_host_int_regs(r->code, SOFT_HOST_SUB, true, SOFT_RCX, SOFT_R10);
	for (int i = 0; i < (v->rows ? SOFT_LANES / 2 : SOFT_LANES); i++) {
		if (abs(v->distance[i] - fetched) < LINE)
			continue;
		fetched = v->distance[i];
		fetch_line(r, fetched);
	}
	soft_host_int_regs(r->code, SOFT_HOST_MOV, true, SOFT_RCX, SOFT_R11);
	soft_host_here(r->code, same);
}

/* -------------------------------------------------------------- loads ---- */

/* The halves of lanes that are twice as far apart. */
#define FIRST_HALVES 0x88

/* Four dwords of lanes 4 k to 4 k + 3 of 16, to zmm z[k]. */
static void get_row(struct soft_native_run *r, const struct soft_native_move *v,
		    const int z[4], int32_t at)
{
	const bool half = v->step == 32;

	for (int k = 0; k < 4; k++, at += half ? 128 : 64) {
		load_zmm(r, z[k], at);
		if (half)
			emit_at(r, SOFT_HOST_SHUF64X2, z[k], z[k], at + 64,
				FIRST_HALVES);
		if (is_fetched_ahead(v))
			fetch_line(r, at + SOFT_AHEAD_BYTES);
	}
}

/* The same of lanes k, k + 4, k + 8 and k + 12, which are at d[] from `at`. */
static void get_fours(struct soft_native_run *r,
		      const struct soft_native_move *v, const int z[4],
		      const int32_t *d, int32_t at)
{
	if (is_fetched_ahead(v))
		for (int k = 0; k < 16; k += LINE / (int)v->step)
			fetch_line(r, at + d[k] + SOFT_AHEAD_BYTES);
	for (int i = 0; i < 16; i++)
		emit_at(r, i < 4 ? SOFT_HOST_LOAD128 : SOFT_HOST_INSERT32X4,
			z[i % 4], z[i % 4], at + d[i], (uint8_t)(i / 4));
}

/* Two dwords of eight lanes, two of every `step` of them, to zmm z. */
static void get_twos(struct soft_native_run *r, int z, const int32_t *d,
		     int step, int32_t at)
{
	const int u = 2 * SOFT_PAIR_U;

	for (int b = 0; b < 4; b++, d += step) {
		const int to = b ? u : z;

		if (d[1] == d[0] + 8) {
			emit_at(r, b ? SOFT_HOST_INSERT32X4 : SOFT_HOST_LOAD128,
				z, z, at + d[0], (uint8_t)b);
			continue;
		}
		emit_at(r, SOFT_HOST_LOAD64, to, 0, at + d[0], 0);
		emit_at(r, SOFT_HOST_LOADH64, to, to, at + d[1], 0);
		if (b)
			soft_host_op(r->code, SOFT_HOST_INSERT32X4, z, 0, z, u,
				     (uint8_t)b);
	}
}

/* One dword of each of 16 lanes. */
static void get_ones(struct soft_native_run *r, int z, const int32_t *d,
		     int32_t at)
{
	const int u = 2 * SOFT_PAIR_U;

	for (int i = 0; i < 16; i++) {
		const int to = i < 4 ? z : u;

		emit_at(r, i % 4 ? SOFT_HOST_INSERTD : SOFT_HOST_LOAD32, to, to,
			at + d[i], (uint8_t)(i % 4));
		if (i > 4 && i % 4 == 3)
			soft_host_op(r->code, SOFT_HOST_INSERT32X4, z, 0, z, u,
				     (uint8_t)(i / 4));
	}
}

/* Dwords of two sources that SHUFPS puts behind each other. */
#define EVEN_DWORDS 0x88
#define ODD_DWORDS  0xdd

/* Four dwords: one zmm of each pair. */
static void load_4(struct soft_native_run *r, const struct soft_native_move *v,
		   const int *pair, int index, int i, int32_t at)
{
	int z[4];

	for (int k = 0; k < 4; k++)
		z[k] = 2 * pair[k] + i;
	if (index == SOFT_NOWHERE)
		get_fours(r, v, z, v->distance + 16 * i, at);
	else
		get_row(r, v, z, at + v->distance[16 * i]);
	transpose_4x4(r, z, z);
	for (int k = 0; index != SOFT_NOWHERE && k < 4; k++)
		emit_op(r, SOFT_HOST_PERMD, z[k], 2 * index, z[k]);
}

static void load_2(struct soft_native_run *r, const struct soft_native_move *v,
		   const int *pair, int index, int i, int32_t at)
{
	const int low = 2 * pair[0] + i, high = 2 * pair[1] + i;
	const int second = 2 * SOFT_PAIR_V;
	const int32_t *d = v->distance + 16 * i;

	if (index == SOFT_NOWHERE) {
		get_twos(r, high, d, 4, at);
		get_twos(r, second, d + 2, 4, at);
		soft_host_op(r->code, SOFT_HOST_SHUFPS, low, 0, high, second,
			     EVEN_DWORDS);
		soft_host_op(r->code, SOFT_HOST_SHUFPS, high, 0, high, second,
			     ODD_DWORDS);
		return;
	}
	if (soft_native_is_line(v, 8)) {
		load_zmm(r, low, at + d[0]);
		load_zmm(r, second, at + d[8]);
	} else if (soft_native_is_line(v, 16)) {
		load_zmm(r, low, at + d[0]);
		emit_at(r, SOFT_HOST_UNPCKLQ, low, low, at + d[4], 0);
		load_zmm(r, second, at + d[8]);
		emit_at(r, SOFT_HOST_UNPCKLQ, second, second, at + d[12], 0);
	} else {
		get_twos(r, low, d, 2, at);
		get_twos(r, second, d + 8, 2, at);
	}
	copy_zmm(r, high, low);
	emit_op(r, SOFT_HOST_PERMT2D, low, 2 * index, second);
	emit_op(r, SOFT_HOST_PERMT2D, high, 2 * index + 1, second);
}

static void load_1(struct soft_native_run *r, const struct soft_native_move *v,
		   const int *pair, int i, int32_t at)
{
	const int32_t *d = v->distance + 16 * i;

	if (soft_native_is_line(v, 4))
		load_zmm(r, 2 * pair[0] + i, at + d[0]);
	else
		get_ones(r, 2 * pair[0] + i, d, at);
}

/* The constant whose order is needed, if any. */
static int take_index(struct soft_native_run *r,
		      const struct soft_native_move *v, int n)
{
	if (r->code->ymm)
		return SOFT_NOWHERE;
	if (n == 2)
		return take_constant(r, soft_native_is_line(v, 16) ?
						SOFT_NATIVE_PAIRS_APART :
						SOFT_NATIVE_APART);
	return n > 2 && (soft_native_is_line(v, 16) ||
			 soft_native_is_line(v, 32)) ?
		       take_constant(r, SOFT_NATIVE_BLOCKS) :
		       SOFT_NOWHERE;
}

/* 16 lanes of each dword to their vregs. */
static void store_results(struct soft_native_run *r, const struct soft_piece *p,
			  const int *pair, int i)
{
	for (int k = 0; k < p->n; k++)
		soft_native_store_half(r, pair[k],
				       soft_native_vreg(r, 0, p->vreg[k]), i);
}

static void load_lanes(struct soft_native_run *r,
		       const struct soft_native_move *v,
		       const struct soft_piece *p, const int *pair)
{
	const int index = take_index(r, v, p->n);

	for (int i = 0; i < 2; i++) {
		if (i && v->even && v->rows)
			for (int k = 0; k < p->n; k++)
				copy_zmm(r, 2 * pair[k] + 1, 2 * pair[k]);
		else if (p->n == 1)
			load_1(r, v, pair, i, p->at);
		else
			(p->n == 2 ? load_2 : load_4)(r, v, pair, index, i,
						      p->at);
		store_results(r, p, pair, i);
	}
}

/* All lanes from one place. */
static void load_same(struct soft_native_run *r, const struct soft_piece *p,
		      const int *pair)
{
	for (int k = 0; k < p->n; k++) {
		emit_at(r, SOFT_HOST_BROADCASTD, 2 * pair[k], 0, p->at + 4 * k,
			0);
		copy_zmm(r, 2 * pair[k] + 1, 2 * pair[k]);
	}
	for (int i = 0; i < 2; i++)
		store_results(r, p, pair, i);
}

/* `pair`: where results go, besides their vregs. */
static void load_piece(struct soft_native_run *r,
		       const struct soft_native_move *v,
		       const struct soft_piece *p, const int *pair)
{
	if (v->even && !v->step)
		load_same(r, p, pair);
	else
		load_lanes(r, v, p, pair);
}

/* More than is wanted: whole lines, dwords, or sixteen bytes at once. */
uint32_t soft_native_touched(const struct soft_native_move *v)
{
	const struct soft_move_type *t = v->type;
	const int n = v->piece[0].n;

	if (!t->dwords)
		return soft_native_is_line(v, 4) && !t->store ? 4 :
								t->bits / 8u;
	if (t->store)
		return 4u * (uint32_t)n;
	if ((n == 2 && soft_native_is_line(v, 16)) ||
	    (n > 2 && soft_native_is_line(v, 32)))
		return v->step;
	return n == 3 ? 16 : 4u * (uint32_t)n;
}

/* ------------------------------------------------------------- stores ---- */

static void store_4(struct soft_native_run *r, const struct soft_native_move *v,
		    const int *pair, int index, int i, int32_t at)
{
	const int a = soft_native_take(r), b = soft_native_take(r);
	const int z[4] = { 2 * a, 2 * a + 1, 2 * b, 2 * b + 1 };
	const int32_t *d = v->distance + 16 * i;
	const bool line = index != SOFT_NOWHERE;

	for (int k = 0; k < 4; k++)
		if (line)
			emit_op(r, SOFT_HOST_PERMD, z[k], 2 * index,
				2 * pair[k] + i);
		else
			copy_zmm(r, z[k], 2 * pair[k] + i);
	transpose_4x4(r, z, z);
	for (int k = 0; line && k < 4; k++)
		store_zmm(r, z[k], at + d[4 * k]);
	for (int n = 0; !line && n < 16; n++)
		emit_at(r, SOFT_HOST_EXTRACT32X4, z[n % 4], 0, at + d[n],
			(uint8_t)(n / 4));
}

/* Lanes in a line. */
static void store_2_line(struct soft_native_run *r, const int *pair, int index,
			 int i, int32_t at)
{
	for (int k = 0; k < 2; k++) {
		const int z = 2 * SOFT_PAIR_U + k;

		copy_zmm(r, z, 2 * pair[0] + i);
		emit_op(r, SOFT_HOST_PERMT2D, z, 2 * index + k,
			2 * pair[1] + i);
		store_zmm(r, z, at + 64 * k);
	}
}

/* Two dwords of every four, which are in the mask IN. */
#define TWO_OF_FOUR 0x3333

static void store_2_apart(struct soft_native_run *r, const int *pair, int i,
			  int32_t at)
{
	const int z = 2 * SOFT_PAIR_U, index = 2 * SOFT_PAIR_V;

	soft_host_op_mem(r->code, SOFT_HOST_MOVD, index, 0, 0,
			 soft_native_at(SOFT_NATIVE_PAIRS_MIXED), false, 0);
	for (int k = 0; k < 4; k++) {
		copy_zmm(r, z, 2 * pair[0] + i);
		emit_op(r, SOFT_HOST_PERMT2D, z, index, 2 * pair[1] + i);
		soft_host_op_mem(r->code, SOFT_HOST_STORED, z, SOFT_K_IN, 0,
				 byte_at(at + 64 * k), false, 0);
		if (k < 3)
			soft_host_op_mem(r->code, SOFT_HOST_ADDD, index, 0,
					 index, soft_native_at(SOFT_NATIVE_4),
					 true, 0);
	}
}

/* One after the other, which may be in one place. */
static void store_2_each(struct soft_native_run *r, const int *pair, int i,
			 const int32_t *d, int32_t at)
{
	const int low = 2 * pair[0] + i, high = 2 * pair[1] + i;
	const int u = 2 * SOFT_PAIR_U, two = 2 * SOFT_PAIR_V;

	emit_op(r, SOFT_HOST_UNPCKLD, u, low, high);
	emit_op(r, SOFT_HOST_UNPCKHD, u + 1, low, high);
	for (int n = 0; n < 16; n += 2) {
		if (d[n + 1] == d[n] + 8) {
			emit_at(r, SOFT_HOST_EXTRACT32X4, u + n / 2 % 2, 0,
				at + d[n], (uint8_t)(n / 4));
			continue;
		}
		soft_host_op(r->code, SOFT_HOST_EXTRACT32X4, two, 0, 0,
			     u + n / 2 % 2, (uint8_t)(n / 4));
		emit_at(r, SOFT_HOST_STORE64, two, 0, at + d[n], 0);
		emit_at(r, SOFT_HOST_STOREH64, two, 0, at + d[n + 1], 0);
	}
}

static void store_2(struct soft_native_run *r, const struct soft_native_move *v,
		    const int *pair, int index, int i, int32_t at)
{
	const int32_t *d = v->distance + 16 * i;

	if (index != SOFT_NOWHERE)
		store_2_line(r, pair, index, i, at + d[0]);
	else if (soft_native_is_line(v, 16) && !r->code->ymm)
		store_2_apart(r, pair, i, at + d[0]);
	else
		store_2_each(r, pair, i, d, at);
}

/* A dword or a part of every lane by itself, from where its vreg is. */
static void store_each(struct soft_native_run *r,
		       const struct soft_native_move *v,
		       const struct soft_piece *p)
{
	struct soft_host_mem from = soft_native_vreg(r, 0, p->vreg[0]);
	const int bits = v->type->dwords ? 32 : v->type->bits;

	if (v->type->part == SOFT_HIGH)
		from.offset += 2;
	for (int i = 0; i < SOFT_LANES; i++, from.offset += 4) {
		soft_host_int(r->code,
			      bits == 32 ? SOFT_HOST_MOV :
			      bits == 16 ? SOFT_HOST_MOVZXW :
					   SOFT_HOST_MOVZXB,
			      SOFT_R10, from);
		soft_host_put(r->code, bits, SOFT_R10,
			      byte_at(p->at + v->distance[i]));
	}
}

/* `pair`: what is stored. */
static void store_piece(struct soft_native_run *r,
			const struct soft_native_move *v,
			const struct soft_piece *p, const int *pair)
{
	int index = SOFT_NOWHERE;

	if (p->n == 1 && !soft_native_is_line(v, 4)) {
		store_each(r, v, p);
		return;
	}
	if (r->code->ymm)
		index = SOFT_NOWHERE;
	else if (p->n == 4 && soft_native_is_line(v, 16))
		index = take_constant(r, SOFT_NATIVE_BLOCKS);
	else if (p->n == 2 && soft_native_is_line(v, 8))
		index = take_constant(r, SOFT_NATIVE_MIXED);
	for (int i = 0; i < 2; i++)
		if (p->n == 1)
			store_zmm(r, 2 * pair[0] + i,
				  p->at + v->distance[16 * i]);
		else
			(p->n == 2 ? store_2 : store_4)(r, v, pair, index, i,
							p->at);
}

/* -------------------------------------------------------------- parts ---- */

/* Are dwords moved of which they are parts, or do they follow each other? */
static bool is_even_part(const struct soft_native_move *v)
{
	return soft_native_is_line(v, 4) ||
	       soft_native_is_line(v, v->type->bits / 8u) ||
	       (v->even && v->rows && v->step == v->type->bits / 8u &&
		!v->type->store);
}

/* What is in the low bits of 16 dwords, extended. */
static void extend_parts(struct soft_native_run *r,
			 const struct soft_move_type *t, int z)
{
	const uint8_t by = (uint8_t)(32 - t->bits);

	soft_host_op(r->code, SOFT_HOST_SLLD, z, 0, 0, z, by);
	soft_host_op(r->code, t->is_signed ? SOFT_HOST_SRAD : SOFT_HOST_SRLD, z,
		     0, 0, z, by);
}

static void get_even_parts(struct soft_native_run *r,
			   const struct soft_native_move *v, int z, int32_t at)
{
	static const enum soft_host_op extends[2][2] = {
		/* [16 bits][signed] */
		{ SOFT_HOST_MOVZXBD, SOFT_HOST_MOVSXBD },
		{ SOFT_HOST_MOVZXWD, SOFT_HOST_MOVSXWD },
	};
	const struct soft_move_type *t = v->type;

	if (v->step == 4) {
		load_zmm(r, z, at);
		extend_parts(r, t, z);
	} else {
		emit_at(r, extends[t->bits == 16][t->is_signed], z, 0, at, 0);
	}
}

/* 16 lanes at d[] from `at`. */
static void get_parts(struct soft_native_run *r,
		      const struct soft_native_move *v, int z, const int32_t *d,
		      int32_t at)
{
	static const unsigned extends[2][2] = {
		/* [16 bits][signed] */
		{ SOFT_HOST_MOVZXB, SOFT_HOST_MOVSXB },
		{ SOFT_HOST_MOVZXW, SOFT_HOST_MOVSXW },
	};
	const int u = 2 * SOFT_PAIR_U;

	for (int i = 0; i < 16; i++) {
		const int to = i < 4 ? z : u;

		soft_host_int(r->code,
			      extends[v->type->bits == 16][v->type->is_signed],
			      SOFT_R10, byte_at(at + d[i]));
		soft_host_op(r->code,
			     i % 4 ? SOFT_HOST_INSERTD : SOFT_HOST_LOAD32, to,
			     0, to, SOFT_R10, (uint8_t)(i % 4));
		if (i > 4 && i % 4 == 3)
			soft_host_op(r->code, SOFT_HOST_INSERT32X4, z, 0, z, u,
				     (uint8_t)(i / 4));
	}
}

static void load_part(struct soft_native_run *r,
		      const struct soft_native_move *v, int t)
{
	const struct soft_piece *p = &v->piece[0];
	const struct soft_host_mem to = soft_native_vreg(r, 0, p->vreg[0]);

	for (int i = 0; i < 2; i++) {
		const int32_t *d = v->distance + 16 * i;

		if (i && v->even && v->rows)
			copy_zmm(r, 2 * t + 1, 2 * t);
		else if (is_even_part(v))
			get_even_parts(r, v, 2 * t + i, p->at + d[0]);
		else
			get_parts(r, v, 2 * t + i, d, p->at);
	}
	if (v->type->part != SOFT_WHOLE)
		soft_native_merge_half(r, t, to, v->type->part == SOFT_HIGH);
	soft_native_store(r, t, to);
}

/* Of every dword so much is stored: bits of a byte or word each, to N. */
static void mask_parts(struct soft_native_run *r, bool word)
{
	const int u = 2 * SOFT_PAIR_U;

	soft_host_op_mem(r->code, SOFT_HOST_BROADCASTD, u, 0, 0,
			 soft_native_at(word ? SOFT_NATIVE_LOW_HALF :
					       SOFT_NATIVE_LOW_BYTE),
			 false, 0);
	soft_host_op(r->code, word ? SOFT_HOST_TESTMW : SOFT_HOST_TESTMB,
		     SOFT_K_N, 0, u, u, 0);
}

static void store_part(struct soft_native_run *r,
		       const struct soft_native_move *v, int s)
{
	const bool word = v->type->bits == 16,
		   dwords = soft_native_is_line(v, 4);

	if (!is_even_part(v) || (dwords && r->code->ymm)) {
		store_each(r, v, &v->piece[0]);
		return;
	}
	if (dwords)
		mask_parts(r, word);
	for (int i = 0; i < 2; i++) {
		const int32_t at = v->piece[0].at + v->distance[16 * i];
		int z = 2 * s + i;

		if (v->type->part == SOFT_HIGH) {
			soft_host_op(r->code, SOFT_HOST_SRLD, 2 * SOFT_PAIR_V,
				     0, 0, z, 16);
			z = 2 * SOFT_PAIR_V;
		}
		if (dwords)
			soft_host_op_mem(r->code,
					 word ? SOFT_HOST_STOREW :
						SOFT_HOST_STOREB,
					 z, SOFT_K_N, 0, byte_at(at), false, 0);
		else
			emit_at(r, word ? SOFT_HOST_MOVDW : SOFT_HOST_MOVDB, z,
				0, at, 0);
	}
}

/* -------------------------------------------------------------- moves ---- */

/* A dword of some lanes: those that do not execute keep what they have. */
static void move_some(struct soft_native_run *r, const struct soft_microop *m,
		      const struct soft_native_move *v, size_t skip)
{
	const struct soft_host_mem data =
		soft_native_vreg(r, 0, v->piece[0].vreg[0]);
	const bool store = v->type->store;
	int pair;

	/* The line begins at lane 0. */
	soft_native_bail(r,
			 soft_host_jump_no_bits(
				 r->code, soft_host_sgpr(ISA_R_EXEC_LO), 1),
			 skip);
	soft_native_exec(r, 0);
	pair = soft_native_load(r, data);
	soft_native_measure(r, m);
	soft_native_bail(r, soft_native_jump_elsewhere(r, m, v), skip);
	soft_native_place(r, m, v, skip);
	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code,
				 store ? SOFT_HOST_STORED : SOFT_HOST_MOVD,
				 2 * pair + i, SOFT_K_EXEC + i, 0,
				 byte_at(v->piece[0].at + 64 * i), false, 0);
	if (store)
		return;
	soft_native_store(r, pair, data);
	soft_native_hold(r, pair, data);
}

typedef int data_pairs[2][4]; /* of pieces: what is stored, or loaded */

static void take_data(struct soft_native_run *r,
		      const struct soft_native_move *v, data_pairs pair)
{
	for (int i = 0; i < v->n_pieces; i++)
		for (int k = 0; k < v->piece[i].n; k++) {
			const struct soft_host_mem vreg =
				soft_native_vreg(r, 0, v->piece[i].vreg[k]);

			pair[i][k] = v->type->store ?
					     soft_native_load(r, vreg) :
					     soft_native_take(r);
		}
	if (v->piece[0].n == 3) /* the fourth dword is loaded, too */
		pair[0][3] = soft_native_take(r);
}

static void hold_results(struct soft_native_run *r,
			 const struct soft_native_move *v, data_pairs pair)
{
	for (int i = 0; !v->type->store && i < v->n_pieces; i++)
		for (int k = 0; k < v->piece[i].n; k++)
			soft_native_hold(
				r, pair[i][k],
				soft_native_vreg(r, 0, v->piece[i].vreg[k]));
}

static void load_all(struct soft_native_run *r,
		     const struct soft_native_move *v,
		     const struct soft_microop *m, data_pairs pair)
{
	if (!v->type->dwords)
		load_part(r, v, pair[0][0]);
	for (int i = 0; v->type->dwords && i < v->n_pieces; i++)
		load_piece(r, v, &v->piece[i], pair[i]);
	if (keeps_last_load(v) &&
	    (v->type->bits == 16 ||
	     (v->type->dwords == 4 && !is_fetched_ahead(v))))
		fetch_next(r, m, v);
}

static void store_all(struct soft_native_run *r,
		      const struct soft_native_move *v, data_pairs pair)
{
	for (int i = 0; i < v->n_pieces; i++)
		if (v->type->dwords)
			store_piece(r, v, &v->piece[i], pair[i]);
		else
			store_part(r, v, pair[0][0]);
}

/* Pairs that one of the ways leaves as they were not. */
static void note_changed(const struct soft_native_run *r,
			 const struct soft_native_pair *before,
			 bool changed[SOFT_NATIVE_PAIRS])
{
	for (int i = 0; i < SOFT_NATIVE_PAIRS; i++)
		changed[i] |= r->pair[i].used != before[i].used ||
			      r->pair[i].vreg.base != before[i].vreg.base ||
			      r->pair[i].vreg.offset != before[i].vreg.offset;
}

/* What each of several ways leaves is in the same places. */
static void meet_others(struct soft_native_run *r,
			const struct soft_native_move *v, data_pairs pair)
{
	struct soft_native_pair kept[SOFT_NATIVE_PAIRS];

	memcpy(kept, r->pair, sizeof(kept));
	for (int i = 0; i < v->n_pieces; i++)
		for (int k = 0; k < v->piece[i].n; k++)
			r->pair[pair[i][k]].used = true;
	soft_native_forget_free(r);
	memcpy(r->pair, kept, sizeof(kept));
	soft_host_settle(r->code);
}

/* In each of n ways; of scratch there is one, which is not to be asked for. */
static void move_all(struct soft_native_run *r, const struct soft_microop *m,
		     const struct soft_native_move *v, int n, data_pairs pair,
		     size_t skip)
{
	struct soft_native_pair before[SOFT_NATIVE_PAIRS];
	bool changed[SOFT_NATIVE_PAIRS] = { false };
	size_t end[SOFT_WAYS], other = 0;
	struct soft_ymm *at_jump = NULL;

	memcpy(before, r->pair, sizeof(before));
	for (int i = 0; i < n; i++) {
		if (v->where != SOFT_AT_SCRATCH)
			other = soft_native_jump_elsewhere(r, m, &v[i]);
		if (other && i == n - 1)
			soft_native_bail(r, other, skip);
		if (i < n - 1)
			at_jump = soft_host_save(r->code);
		soft_native_place(r, m, &v[i], skip);
		soft_native_forget_free(r);
		if (v->type->store)
			store_all(r, &v[i], pair);
		else
			load_all(r, &v[i], m, pair);
		note_changed(r, before, changed);
		memcpy(r->pair, before, sizeof(before));
		if (n > 1)
			meet_others(r, v, pair);
		if (i == n - 1)
			break;
		end[i] = soft_host_jump(r->code);
		soft_host_here(r->code, other);
		soft_host_restore(r->code, at_jump);
	}
	for (int i = 0; i < n - 1; i++)
		soft_host_here(r->code, end[i]);
	for (int i = 0; i < SOFT_NATIVE_PAIRS; i++)
		r->pair[i].used &= !changed[i];
}

/* Does store_2_apart() need its mask? */
static bool is_apart(const struct soft_native_run *r,
		     const struct soft_native_move *v)
{
	return v->type->store && v->piece[0].n == 2 &&
	       soft_native_is_line(v, 16) && !r->code->ymm;
}

void soft_native_move(struct soft_native_run *r, const struct soft_microop *m,
		      size_t skip)
{
	struct soft_native_move v[SOFT_WAYS];
	int n = soft_native_find_moves(v, m);
	data_pairs pair;
	bool apart = false;

	if (r->masked) {
		int i = 0;

		while (!soft_native_is_dword_line(&v[i]))
			i++;
		move_some(r, m, &v[i], skip);
		return;
	}
	if (v->where == SOFT_AT_SCRATCH) {
		v[0] = v[n - 1];
		n = 1;
	}
	take_data(r, v, pair);
	for (int i = 0; i < n; i++)
		apart |= is_apart(r, &v[i]);
	if (apart)
		soft_host_kset16(r->code, SOFT_K_IN, TWO_OF_FOUR);
	if (v->where != SOFT_AT_SCRATCH)
		soft_native_measure(r, m);
	move_all(r, m, v, n, pair, skip);
	hold_results(r, v, pair);
}

/* One of a group, which begins `by` bytes behind its first lane. */
static void move_next(struct soft_native_run *r, const struct soft_microop *m,
		      struct soft_native_move *v, int32_t by)
{
	data_pairs pair;

	r->now++;
	soft_native_forget_free(r);
	for (int i = 0; i < v->n_pieces; i++)
		v->piece[i].at += by;
	take_data(r, v, pair);
	if (v->type->store)
		store_all(r, v, pair);
	else
		load_all(r, v, m, pair);
	hold_results(r, v, pair);
}

/* The offset that is part of an address, and not of pieces. */
static int32_t offset_of(const struct soft_microop *m)
{
	return soft_native_in_memory(m) ? (int32_t)m->imm : 0;
}

void soft_native_move_group(struct soft_native_run *r,
			    const struct soft_microop *m, size_t n, size_t skip)
{
	struct soft_native_move all, v[SOFT_WAYS];
	struct soft_microop first = *m;
	int32_t low = offset_of(m), end = 0;
	bool apart = false;

	r->now++;
	soft_native_forget_free(r);
	for (size_t i = 1; i < n; i++)
		low = offset_of(&m[i]) < low ? offset_of(&m[i]) : low;
	for (size_t i = 0; i < n; i++) {
		const int32_t by = offset_of(&m[i]) - low;

		soft_native_find_moves(v, &m[i]);
		if (by + (int32_t)v->span_bytes > end)
			end = by + (int32_t)v->span_bytes;
		apart |= is_apart(r, v);
		all = i ? all : *v;
	}
	if (soft_native_in_memory(m))
		first.imm = (uint32_t)low;
	all.span_bytes = (uint32_t)end;
	if (apart)
		soft_host_kset16(r->code, SOFT_K_IN, TWO_OF_FOUR);
	soft_native_measure(r, &first);
	soft_native_bail(r, soft_native_jump_elsewhere(r, &first, &all), skip);
	soft_native_place(r, &first, &all, skip);
	for (size_t i = 0; i < n; i++) {
		soft_native_find_moves(v, &m[i]);
		move_next(r, &m[i], v, offset_of(&m[i]) - low);
	}
}
