/*
 * kfd/soft/exec/fast/native_ymm.c - instructions on zmm and mask registers as
 * AVX2 has them, on ymm registers.
 *
 * host.def says how each is done.  Where a zmm is the low half of what an
 * instruction makes or takes, as for 16 halves of 16 floats, that is the low
 * half of either of its two values: what comes from them or goes to them is in
 * the same order (Intel 64 SDM volume 2, VEX forms).
 */
#include "kfd/soft/exec/fast/native_ymm.h"

/* ---------------------------------------------------------- one by one ---- */

/* Register t becomes a value of zmm d, in lanes of mask register k. */
static void put_value(struct soft_code *code, int d, int k, int half, int t)
{
	if (k)
		blend(code, t, zmm_reg(code, d, half), in_reg(t),
		      soft_value_get(code, soft_mask_value(k, half)));
	soft_value_bind(code, soft_zmm_value(d, half), t);
}

/* The same of a mask. */
static void put_mask(struct soft_code *code, int d, int k, int half, int t)
{
	if (k)
		emit(code, AND, t, t,
		     soft_value_source(code, soft_mask_value(k, half)));
	soft_value_bind(code, soft_mask_value(d, half), t);
}

static void do_each(struct soft_code *code, enum soft_host_op op, int d, int k,
		    int s1, const struct soft_ymm_source *s, uint8_t imm,
		    int half)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const int value = soft_zmm_value(d, half),
		  has_imm = soft_host_has_imm(op);
	const int vvvv = h->shape == THREE ? zmm_reg(code, s1, half) : 0;
	struct soft_ymm_operand rm = h->shape == SHIFT ?
					     in_reg(source_reg(code, s, half)) :
					     source_of(code, s, half);
	int to;

	if (op == SOFT_HOST_CMPPS) {
		put_mask(code, d, k, half,
			 make_imm(code, COMPARE_PS, vvvv, rm, imm));
		return;
	}
	if (h->ymm == FUSED && k)
		to = make(code, MOVE, 0, in_reg(zmm_reg(code, d, half)));
	else if (h->ymm == FUSED)
		to = soft_value_change(code, value);
	else
		to = k ? soft_value_free(code) : soft_value_set(code, value);
	if (h->shape == SHIFT)
		soft_host_vex(code, h->map & 7, h->prefix, h->opcode,
			      h->map >> 4, to, rm, 1);
	else
		soft_host_vex(code, h->map, h->prefix, h->opcode, to, vvvv, rm,
			      has_imm);
	if (has_imm)
		soft_host_byte(code, imm);
	if (k)
		put_value(code, d, k, half, to);
}

/* A copy, which may be left to whoever reads it. */
static void do_move(struct soft_code *code, int d, int k,
		    const struct soft_ymm_source *s, int half)
{
	const int value = soft_zmm_value(d, half);
	struct soft_ymm_operand from;

	if (k && s->kind == MEMORY) {
		put_value(code, d, k, half,
			  make(code, LOAD_WHERE,
			       soft_value_get(code, soft_mask_value(k, half)),
			       source_of(code, s, half)));
		return;
	}
	from = source_of(code, s, half);
	if (k)
		put_value(code, d, k, half, make(code, MOVE, 0, from));
	else if (from.reg != SOFT_NOWHERE ||
		 !soft_value_is_at(code, value, from.at))
		emit(code, MOVE, soft_value_set(code, value), 0, from);
}

static void do_store(struct soft_code *code, int s, int k,
		     struct soft_host_mem to, int half)
{
	const int value = soft_zmm_value(s, half);
	const struct soft_ymm_operand at =
		in_memory(to, half * SOFT_VALUE_BYTES);

	if (k) {
		emit(code, STORE_WHERE, soft_value_get(code, value),
		     soft_value_get(code, soft_mask_value(k, half)), at);
		return;
	}
	soft_value_stores(code, value, at.at);
	emit(code, STORE_ALL, soft_value_get(code, value), 0, at);
	soft_value_stored(code, value, at.at);
}

/* 128 bits of a register, of which the others are anything then. */
static void do_low(struct soft_code *code, enum soft_host_op op, int d, int s1,
		   const struct soft_ymm_source *s, uint8_t imm)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const struct soft_ymm_operand rm =
		s->kind == MEMORY ? in_memory(s->at, 0) : in_reg(s->zmm);
	const bool store = h->shape == STORE;
	const int vvvv = h->shape == THREE ? zmm_reg(code, s1, 0) : 0;
	const int to = store ? zmm_reg(code, d, 0) :
			       soft_value_set(code, soft_zmm_value(d, 0));

	soft_host_vex(code, h->map, h->prefix, h->opcode, to, vvvv, rm,
		      soft_host_has_imm(op));
	if (soft_host_has_imm(op))
		soft_host_byte(code, imm);
}

/* From half as many bytes; of bytes that become dwords from a quarter. */
static void do_long(struct soft_code *code, enum soft_host_op op, int d, int k,
		    const struct soft_ymm_source *s, int half)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const bool quarter = op == SOFT_HOST_MOVZXBD || op == SOFT_HOST_MOVSXBD;
	const struct soft_ymm_operand rm =
		s->kind == MEMORY ?
			in_memory(s->at, half * (quarter ? 8 : 16)) :
			source_of(code, s, half);
	const int to = k ? soft_value_free(code) :
			   soft_value_set(code, soft_zmm_value(d, half));

	emit(code, h->map, h->prefix, h->opcode, to, 0, rm);
	if (k)
		put_value(code, d, k, half, to);
}

/* To half as many. */
static void do_short(struct soft_code *code, enum soft_host_op op, int d,
		     const struct soft_ymm_source *s, uint8_t imm, int half)
{
	const struct soft_host_inst *h = &soft_host_inst[op];
	const int from = source_reg(code, s, half);
	const int to = soft_value_set(code, soft_zmm_value(d, half));
	const bool store = h->shape == STORE;

	soft_host_vex(code, h->map, h->prefix, h->opcode, store ? from : to, 0,
		      in_reg(store ? to : from), soft_host_has_imm(op));
	if (soft_host_has_imm(op))
		soft_host_byte(code, imm);
}

/* -------------------------------------------------------- lanes moved ---- */

static struct soft_ymm_source zmm_source(int z)
{
	return (struct soft_ymm_source){ .kind = ZMM, .zmm = z };
}

static void do_permute(struct soft_code *code, int d, int k, int index,
		       const struct soft_ymm_source *table)
{
	int t[2];

	for (int h = 0; h < 2; h++)
		t[h] = soft_ymm_look_up(code, zmm_reg(code, index, h), table);
	for (int h = 0; h < 2; h++)
		put_value(code, d, k, h, t[h]);
}

/* Of 32 lanes in two tables. */
static void do_permute_two(struct soft_code *code, int d, int index,
			   const struct soft_ymm_source *first,
			   const struct soft_ymm_source *second)
{
	int t[2];

	for (int h = 0; h < 2; h++) {
		const int i = zmm_reg(code, index, h);
		int u;

		t[h] = soft_ymm_look_up(code, i, first);
		u = soft_ymm_look_up(code, i, second);
		blend(code, t[h], t[h], in_reg(u), by_bit(code, i, 4));
		soft_value_begin(code);
		soft_value_keep(code, t[h]);
	}
	for (int h = 0; h < 2; h++)
		put_value(code, d, 0, h, t[h]);
}

/* 128 bits of zmm s to memory or to the low ones of zmm d. */
static void extract_block(struct soft_code *code, int d, int s,
			  struct soft_ymm_operand to, unsigned block)
{
	const int from = zmm_reg(code, s, (int)block / 2);

	if (to.reg == SOFT_NOWHERE)
		emit_imm(code, EXTRACT_128, from, 0, to, block % 2);
	else
		emit_imm(code, EXTRACT_128, from, 0,
			 in_reg(soft_value_set(code, soft_zmm_value(d, 0))),
			 block % 2);
}

/* Zmm s1 with 128 bits that are the source's low ones, to zmm d. */
static void insert_block(struct soft_code *code, int d, int s1,
			 const struct soft_ymm_source *s, unsigned block)
{
	const int half = (int)block / 2, other = 1 - half;
	const struct soft_ymm_operand from = source_of(code, s, 0);
	const int value = soft_zmm_value(d, half);

	if (block % 2 || soft_value_is_set(code, soft_zmm_value(s1, half))) {
		const int base = zmm_reg(code, s1, half);

		emit_imm(code, INSERT_128, soft_value_set(code, value), base,
			 from, block % 2);
	} else {
		emit(code, LOAD_128, soft_value_set(code, value), 0, from);
	}
	if (d != s1)
		emit(code, MOVE, soft_value_set(code, soft_zmm_value(d, other)),
		     0, in_reg(zmm_reg(code, s1, other)));
}

/* Where host.def has no other way. */
static void do_own(struct soft_code *code, enum soft_host_op op, int d, int k,
		   int s1, const struct soft_ymm_source *s, uint8_t imm,
		   int half)
{
	const int t = soft_ymm_make(code, op, d, k, s1, s, imm, half);

	if (soft_host_inst[op].ymm == MASK)
		put_mask(code, d, k, half, t);
	else
		put_value(code, d, op == SOFT_HOST_BLENDMD ? 0 : k, half, t);
}

/* Both values at once. */
static bool do_across(struct soft_code *code, enum soft_host_op op, int d,
		      int k, int s1, const struct soft_ymm_source *s,
		      uint8_t imm)
{
	struct soft_ymm_source other;
	int t[2];

	switch (op) {
	case SOFT_HOST_PERMD:
		do_permute(code, d, k, s1, s);
		return true;
	case SOFT_HOST_PERMT2D:
		other = zmm_source(d);
		do_permute_two(code, d, s1, &other, s);
		return true;
	case SOFT_HOST_PERMI2D:
		other = zmm_source(s1);
		do_permute_two(code, d, d, &other, s);
		return true;
	case SOFT_HOST_SHUF64X2: /* even blocks of both */
		t[0] = make_imm(code, PERMUTE_128, zmm_reg(code, s1, 0),
				in_reg(zmm_reg(code, s1, 1)), 0x20);
		t[1] = make_imm(code, PERMUTE_128, source_reg(code, s, 0),
				source_of(code, s, 1), 0x20);
		for (int h = 0; h < 2; h++)
			put_value(code, d, 0, h, t[h]);
		return true;
	case SOFT_HOST_INSERT32X4:
		insert_block(code, d, s1, s, imm);
		return true;
	default:
		return false;
	}
}

static void do_op(struct soft_code *code, enum soft_host_op op, int d, int k,
		  int s1, const struct soft_ymm_source *s, uint8_t imm)
{
	const enum soft_ymm_way way = soft_host_inst[op].ymm;

	if (way == NOTHING)
		return;
	if (way == LOW) {
		do_low(code, op, d, s1, s, imm);
		return;
	}
	if (do_across(code, op, d, k, s1, s, imm))
		return;
	for (int h = 0; h < 2; h++) {
		if (h && s->kind != SPREAD)
			soft_value_begin(code);
		if (op == SOFT_HOST_MOVD)
			do_move(code, d, k, s, h);
		else if (way == EACH || way == FUSED)
			do_each(code, op, d, k, s1, s, imm, h);
		else if (way == LONG)
			do_long(code, op, d, k, s, h);
		else if (way == SHORT)
			do_short(code, op, d, s, imm, h);
		else
			do_own(code, op, d, k, s1, s, imm, h);
	}
}

void soft_ymm_op(struct soft_code *code, enum soft_host_op op, int d, int k,
		 int s1, int s2, uint8_t imm)
{
	const struct soft_ymm_source s = zmm_source(s2);

	soft_value_begin(code);
	if (op == SOFT_HOST_EXTRACT32X4)
		extract_block(code, d, s2, in_reg(0), imm);
	else
		do_op(code, op, d, k, s1, &s, imm);
}

/* Words and bytes of zmm s to memory. */
static void store_short(struct soft_code *code, bool word, int s,
			struct soft_host_mem to, int half)
{
	const int from = zmm_reg(code, s, half);

	if (word)
		emit(code, STORE_128, soft_ymm_low_words(code, from), 0,
		     in_memory(to, 16 * half));
	else
		emit(code, STORE_64, soft_ymm_low_bytes(code, from), 0,
		     in_memory(to, 8 * half));
}

static bool do_store_op(struct soft_code *code, enum soft_host_op op, int s,
			int k, struct soft_host_mem to, uint8_t imm)
{
	if (op == SOFT_HOST_EXTRACT32X4) {
		extract_block(code, 0, s, in_memory(to, 0), imm);
		return true;
	}
	if (op != SOFT_HOST_STORED && op != SOFT_HOST_MOVDW &&
	    op != SOFT_HOST_MOVDB)
		return false;
	for (int h = 0; h < 2; h++) {
		soft_value_begin(code);
		if (op == SOFT_HOST_STORED)
			do_store(code, s, k, to, h);
		else
			store_short(code, op == SOFT_HOST_MOVDW, s, to, h);
	}
	return true;
}

void soft_ymm_op_mem(struct soft_code *code, enum soft_host_op op, int d, int k,
		     int s1, struct soft_host_mem s2, bool spread, uint8_t imm)
{
	struct soft_ymm_source s = { .kind = spread ? SPREAD : MEMORY,
				     .at = s2 };
	const struct soft_ymm_operand at = in_memory(s2, 0);

	soft_value_begin(code);
	if (soft_host_inst[op].shape == STORE &&
	    do_store_op(code, op, d, k, s2, imm))
		return;
	if (spread)
		s.spread = soft_host_inst[op].prefix & HOST_W1 ?
				   make(code, SPREAD_Q, 0, at) :
				   make(code, SPREAD_D, 0, at);
	do_op(code, op, d, k, s1, &s, imm);
}

/* --------------------------------------------------------------- masks ---- */

/* Register t has all 16 bits in each dword. */
static void masks_of(struct soft_code *code, int k, int t)
{
	for (int h = 0; h < 2; h++) {
		const struct soft_ymm_operand bits =
			constant(SOFT_NATIVE_LANE_BITS, h);
		const int u = make(code, AND, t, bits);

		emit(code, EQUAL_D, u, u, bits);
		soft_value_bind(code, soft_mask_value(k, h), u);
	}
}

void soft_ymm_kload16(struct soft_code *code, int k, struct soft_host_mem m)
{
	soft_value_begin(code);
	masks_of(code, k, make(code, SPREAD_W, 0, in_memory(m, 0)));
}

void soft_ymm_kset16(struct soft_code *code, int k)
{
	int t;

	soft_value_begin(code);
	t = make(code, FROM_INT, 0, in_reg(SOFT_RCX));
	emit(code, SPREAD_D, t, 0, in_reg(t));
	masks_of(code, k, t);
}

void soft_ymm_kmove16(struct soft_code *code, int k, int from)
{
	soft_value_begin(code);
	for (int h = 0; h < 2; h++)
		soft_value_bind(code, soft_mask_value(k, h),
				make(code, MOVE, 0,
				     soft_value_source(
					     code, soft_mask_value(from, h))));
}

void soft_ymm_kor(struct soft_code *code, int k, int a, int b)
{
	soft_value_begin(code);
	for (int h = 0; h < 2; h++) {
		const int s = soft_value_get(code, soft_mask_value(a, h));

		soft_value_bind(
			code, soft_mask_value(k, h),
			make(code, OR, s,
			     soft_value_source(code, soft_mask_value(b, h))));
	}
}

/* To words, to bytes, and these in their order. */
void soft_ymm_mask_bits(struct soft_code *code, int k)
{
	int words[2], t;

	soft_value_begin(code);
	for (int i = 0; i < 2; i++)
		words[i] = make(
			code, PACK_DW,
			soft_value_get(code, soft_mask_value(k + i, 0)),
			soft_value_source(code, soft_mask_value(k + i, 1)));
	t = make(code, PACK_WB, words[0], in_reg(words[1]));
	emit(code, PERMUTE_D, t,
	     make(code, MOVE, 0, constant(SOFT_NATIVE_FOURTHS, 0)), in_reg(t));
	emit(code, SIGN_BITS, SOFT_RCX, 0, in_reg(t));
}

void soft_ymm_test_mask(struct soft_code *code, int k)
{
	int t;

	soft_value_begin(code);
	t = make(code, OR, soft_value_get(code, soft_mask_value(k, 0)),
		 soft_value_source(code, soft_mask_value(k, 1)));
	emit(code, TEST, t, 0, in_reg(t));
	soft_host_forget_mask(code, k);
}
