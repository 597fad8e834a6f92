/*
 * kfd/soft/exec/fast/native_mem.c - loads and stores of lines as host code.
 *
 * A line is one, two or four dwords of each of 32 lanes in a row, or halves to
 * be loaded, which may also be those of 16 lanes for both rows.  Where its
 * bytes are in this process, memory microops have written down in cache->line[]
 * when they did the same; LDS is where the workgroup says.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native.h"

enum where { NOT, SADDR, VADDR, LDS };

static enum where place_of(const struct soft_microop *m)
{
	const struct soft_mem_microops *f = soft_simd_v4.mem;

	return soft_is_scattered(m)		  ? NOT :
	       m->fn == f->move[SOFT_AT_SADDR][0] ? SADDR :
	       m->fn == f->move[SOFT_AT_VADDR][0] ? VADDR :
	       m->fn == f->move[SOFT_AT_LDS][0]	  ? LDS :
						    NOT;
}

/* Of unsigned halves, to all of a register or to one half of it. */
static bool is_half_load(const struct soft_microop *m)
{
	soft_move_fn *const *move = soft_simd_v4.moves->move;
	const uintptr_t fn = m->b;

	return fn == (uintptr_t)move[SOFT_MOVE_load_u16] ||
	       fn == (uintptr_t)move[SOFT_MOVE_load_low_16] ||
	       fn == (uintptr_t)move[SOFT_MOVE_load_high_16];
}

bool soft_native_moves_some(const struct soft_microop *m)
{
	return place_of(m) != NOT && m->mods[0] == 4;
}

/* In LDS anything but a dword is mostly part of a matrix, and no line. */
bool soft_native_moves(const struct soft_microop *m)
{
	const enum where where = place_of(m);

	return where != NOT &&
	       (m->mods[0] == 4 ||
		(where != LDS && (m->mods[0] == 8 || m->mods[0] == 16 ||
				  is_half_load(m))));
}

/* Of its lanes, step bytes apart. */
static size_t bytes_of(unsigned step)
{
	return step * (size_t)SOFT_LANES;
}

/* log2 of how many halves apart they are. */
static int size_of(unsigned step)
{
	return __builtin_ctz(step / 2);
}

/* Where not all lanes were equal. */
static size_t jump_unequal(struct soft_native_run *r)
{
	soft_host_kor(r->code, SOFT_K_N, SOFT_K_N, SOFT_K_OTHER);
	return soft_host_jump_mask(r->code, SOFT_K_N);
}

/* How far lanes are from the first one, to pair V. */
static void find_distances(struct soft_native_run *r, int pair)
{
	const int u = 2 * SOFT_PAIR_U, v = 2 * SOFT_PAIR_V;

	soft_host_op(r->code, SOFT_HOST_BROADCASTD, u, 0, 0, 2 * pair, 0);
	for (int i = 0; i < 2; i++)
		soft_host_op(r->code, SOFT_HOST_SUBD, v + i, 0, 2 * pair + i, u,
			     0);
}

/* The mask of lanes 16 i to 16 i + 15 that count. */
static int lanes_of(const struct soft_native_run *r, int i)
{
	return r->masked ? SOFT_K_EXEC + i : 0;
}

/* Jumps if these are not those of a constant. */
static size_t jump_off(struct soft_native_run *r, int at)
{
	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_CMPD,
				 i ? SOFT_K_OTHER : SOFT_K_N, lanes_of(r, i),
				 2 * SOFT_PAIR_V + i,
				 soft_native_at(at + 16 * i), false, 4);
	return jump_unequal(r);
}

/* Jumps if they are not `step` bytes from one to the next. */
static size_t jump_off_line(struct soft_native_run *r, unsigned step)
{
	return jump_off(r, SOFT_NATIVE_LINE + size_of(step) * SOFT_LANES);
}

/* Leave unless all lanes of a vreg are the same. */
static void check_same(struct soft_native_run *r, int pair, size_t skip)
{
	const int u = 2 * SOFT_PAIR_U;

	soft_host_op(r->code, SOFT_HOST_BROADCASTD, u, 0, 0, 2 * pair, 0);
	for (int i = 0; i < 2; i++)
		soft_host_op(r->code, SOFT_HOST_CMPD,
			     i ? SOFT_K_OTHER : SOFT_K_N, lanes_of(r, i),
			     2 * pair + i, u, 4);
	soft_native_bail(r, jump_unequal(r), skip);
}

/* rcx = the offset of lane 0, of which the line must not wrap. */
static void load_first(struct soft_native_run *r, struct soft_host_mem vreg,
		       size_t bytes, size_t skip)
{
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_RCX, vreg);
	soft_host_int_const(r->code, SOFT_HOST_CMP, SOFT_RCX,
			    (uint32_t)(UINT32_MAX - bytes));
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
}

/* rcx: the address in GPU memory to that in this process. */
static void find_host(struct soft_native_run *r, const struct soft_microop *m,
		      unsigned step, size_t skip)
{
	const struct soft_line *l = soft_line_of(r->cache, m);
#define AT(field) \
	((struct soft_host_mem){ SOFT_R11, offsetof(struct soft_line, field) })

	soft_host_set64(r->code, SOFT_R11, (uintptr_t)l);
	soft_host_int64(r->code, SOFT_HOST_SUB, SOFT_RCX, AT(va));
	soft_host_int64(r->code, SOFT_HOST_CMP, SOFT_RCX,
			AT(n[size_of(step)]));
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_NOT_BELOW),
			 skip);
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX, AT(host));
#undef AT
}

static void find_saddr(struct soft_native_run *r, const struct soft_microop *m,
		       unsigned step, size_t skip)
{
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX,
			soft_host_sgpr((int)m->c));
	if (m->imm)
		soft_host_int64_const(r->code, SOFT_HOST_ADD, SOFT_RCX,
				      (int32_t)m->imm);
	find_host(r, m, step, skip);
}

static void find_vaddr(struct soft_native_run *r, const struct soft_microop *m,
		       unsigned step, size_t skip)
{
	struct soft_host_mem high = soft_native_vreg(r, 0,
						     m->a + SOFT_VREG_BYTES);

	check_same(r, soft_native_load(r, high), skip);
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_R10, high);
	soft_host_shift_const(r->code, SOFT_HOST_SHL, SOFT_R10, 32);
	soft_host_int_regs(r->code, SOFT_HOST_ADD, true, SOFT_RCX, SOFT_R10);
	if (m->imm)
		soft_host_int64_const(r->code, SOFT_HOST_ADD, SOFT_RCX,
				      (int32_t)m->imm);
	find_host(r, m, step, skip);
}

static void find_lds(struct soft_native_run *r, const struct soft_microop *m,
		     unsigned step, size_t skip)
{
#define AT(base, type, field) \
	((struct soft_host_mem){ base, offsetof(struct type, field) })

	soft_host_int64(r->code, SOFT_HOST_MOV, SOFT_R11,
			AT(SOFT_RDI, soft_wave, group));
	soft_host_int64_const(r->code, SOFT_HOST_ADD, SOFT_RCX,
			      (int32_t)(m->imm + bytes_of(step)));
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_R10,
		      AT(SOFT_R11, soft_group, lds_size_bytes));
	soft_host_int_regs(r->code, SOFT_HOST_CMP, true, SOFT_RCX, SOFT_R10);
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX,
			AT(SOFT_R11, soft_group, lds));
	soft_host_int64_const(r->code, SOFT_HOST_SUB, SOFT_RCX,
			      (int32_t)bytes_of(step));
#undef AT
}

/* ------------------------------------------------- more than a dword ---- */

static struct soft_host_mem piece(int i)
{
	return (struct soft_host_mem){ SOFT_RCX, 64 * i };
}

static void op(struct soft_native_run *r, enum soft_host_op op, int d, int s1,
	       int s2)
{
	soft_host_op(r->code, op, d, 0, s1, s2, 0);
}

static void get(struct soft_native_run *r, int d, struct soft_host_mem m)
{
	soft_host_op_mem(r->code, SOFT_HOST_MOVD, d, 0, 0, m, false, 0);
}

static void put(struct soft_native_run *r, int s, struct soft_host_mem m)
{
	soft_host_op_mem(r->code, SOFT_HOST_STORED, s, 0, 0, m, false, 0);
}

/* Indices of both zmm. */
static int take_indices(struct soft_native_run *r, int constant)
{
	const int pair = soft_native_take(r);

	for (int i = 0; i < 2; i++)
		get(r, 2 * pair + i, soft_native_at(constant + 16 * i));
	return pair;
}

/* Word q of block b of from[b'] is word b' of block b of to[q]. */
static void transpose_4x4(struct soft_native_run *r, const int to[4],
			  const int from[4])
{
	const int t[4] = { 2 * SOFT_PAIR_U, 2 * SOFT_PAIR_U + 1,
			   2 * SOFT_PAIR_V, 2 * SOFT_PAIR_V + 1 };

	op(r, SOFT_HOST_UNPCKLD, t[0], from[0], from[1]);
	op(r, SOFT_HOST_UNPCKLD, t[1], from[2], from[3]);
	op(r, SOFT_HOST_UNPCKHD, t[2], from[0], from[1]);
	op(r, SOFT_HOST_UNPCKHD, t[3], from[2], from[3]);
	op(r, SOFT_HOST_UNPCKLQ, to[0], t[0], t[1]);
	op(r, SOFT_HOST_UNPCKHQ, to[1], t[0], t[1]);
	op(r, SOFT_HOST_UNPCKLQ, to[2], t[2], t[3]);
	op(r, SOFT_HOST_UNPCKHQ, to[3], t[2], t[3]);
}

/* The halves of lanes that are twice as far apart. */
#define FIRST_HALVES 0x88

/* Lanes 4 k to 4 k + 3, to zmm z. */
static void get_4(struct soft_native_run *r, int z, int k, bool half)
{
	struct soft_host_mem next = piece(half ? 2 * k : k);

	get(r, z, next);
	if (half)
		soft_host_op_mem(r->code, SOFT_HOST_SHUF64X2, z, 0, z,
				 piece(2 * k + 1), false, FIRST_HALVES);
	next.offset += SOFT_AHEAD_BYTES;
	soft_host_prefetch(r->code, next);
}

/* Lanes 16 i to 16 i + 15 of each pair. */
static void load_4(struct soft_native_run *r, const int *pair, int index, int i,
		   bool half)
{
	int z[4];

	for (int k = 0; k < 4; k++) {
		z[k] = 2 * pair[k] + i;
		get_4(r, z[k], 4 * i + k, half);
	}
	transpose_4x4(r, z, z);
	for (int k = 0; k < 4; k++)
		op(r, SOFT_HOST_PERMD, z[k], 2 * index, z[k]);
}

static void load_2(struct soft_native_run *r, const int *pair, int index, int i)
{
	const int low = 2 * pair[0] + i, high = 2 * pair[1] + i;
	const int second = 2 * SOFT_PAIR_U;

	get(r, low, piece(2 * i));
	get(r, second, piece(2 * i + 1));
	op(r, SOFT_HOST_MOVD, high, 0, low);
	op(r, SOFT_HOST_PERMT2D, low, 2 * index, second);
	op(r, SOFT_HOST_PERMT2D, high, 2 * index + 1, second);
}

static void store_4(struct soft_native_run *r, const int *pair, int index,
		    int i)
{
	const int a = soft_native_take(r), b = soft_native_take(r);
	const int z[4] = { 2 * a, 2 * a + 1, 2 * b, 2 * b + 1 };

	for (int k = 0; k < 4; k++)
		op(r, SOFT_HOST_PERMD, z[k], 2 * index, 2 * pair[k] + i);
	transpose_4x4(r, z, z);
	for (int k = 0; k < 4; k++)
		put(r, z[k], piece(4 * i + k));
}

static void store_2(struct soft_native_run *r, const int *pair, int index,
		    int i)
{
	const int low = 2 * pair[0] + i, high = 2 * pair[1] + i;

	for (int k = 0; k < 2; k++) {
		const int z = 2 * SOFT_PAIR_U + k;

		op(r, SOFT_HOST_MOVD, z, 0, low);
		op(r, SOFT_HOST_PERMT2D, z, 2 * index + k, high);
		put(r, z, piece(2 * i + k));
	}
}

/* What several dwords of a lane are in. */
struct several {
	struct soft_host_mem vreg[4];
	int n, pair[4], index; /* the zmm of indices */
	bool store;
};

static struct several take_several(struct soft_native_run *r,
				   struct soft_host_mem data, int n, bool store)
{
	struct several s = { .n = n, .store = store };

	s.index = take_indices(r, n == 4 ? SOFT_NATIVE_BLOCKS :
				  store	 ? SOFT_NATIVE_MIXED :
					   SOFT_NATIVE_APART);
	for (int k = 0; k < n; k++) {
		s.vreg[k] = data;
		s.vreg[k].offset += k * (int)SOFT_VREG_BYTES;
		s.pair[k] = store ? soft_native_load(r, s.vreg[k]) :
				    soft_native_take(r);
	}
	return s;
}

static void move_several(struct soft_native_run *r, const struct several *s,
			 bool half)
{
	for (int i = 0; i < 2; i++)
		if (s->store)
			(s->n == 2 ? store_2 : store_4)(r, s->pair, s->index,
							i);
		else if (s->n == 2)
			load_2(r, s->pair, s->index, i);
		else
			load_4(r, s->pair, s->index, i, half);
	for (int k = 0; !s->store && k < s->n; k++)
		soft_native_store(r, s->pair[k], s->vreg[k]);
}

static void hold_several(struct soft_native_run *r, const struct several *s)
{
	for (int k = 0; !s->store && k < s->n; k++)
		soft_native_hold(r, s->pair[k], s->vreg[k]);
}

/* --------------------------------------------------------------- moves ---- */

/* Lanes that do not execute keep what they have. */
static void move_one(struct soft_native_run *r, struct soft_host_mem data,
		     bool store)
{
	const int pair = store || r->masked ? soft_native_load(r, data) :
					      soft_native_take(r);

	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, store ? SOFT_HOST_STORED :
						  SOFT_HOST_MOVD, 2 * pair + i,
				 lanes_of(r, i), 0, piece(i), false, 0);
	if (store)
		return;
	soft_native_store(r, pair, data);
	soft_native_hold(r, pair, data);
}

/* rcx = where lane 0 is in this process. */
static void find(struct soft_native_run *r, const struct soft_microop *m,
		 unsigned step, size_t skip)
{
	const enum where where = place_of(m);

	load_first(r, soft_native_vreg(r, 0, m->a), bytes_of(step), skip);
	(where == SADDR ? find_saddr :
	 where == VADDR ? find_vaddr :
			  find_lds)(r, m, step, skip);
}

/* Loads of four dwords: also from the first half of twice as many. */
static void move_either(struct soft_native_run *r, const struct soft_microop *m,
			const struct several *s, size_t skip)
{
	const unsigned step = m->mods[0];
	size_t other = jump_off_line(r, step), end;

	find(r, m, step, skip);
	move_several(r, s, false);
	end = soft_host_jump(r->code);
	soft_host_here(r->code, other);
	soft_native_bail(r, jump_off_line(r, 2 * step), skip);
	find(r, m, 2 * step, skip);
	move_several(r, s, true);
	soft_host_here(r->code, end);
}

/* 16 words as dwords. */
static void get_words(struct soft_native_run *r, int z, int at)
{
	soft_host_op_mem(r->code, SOFT_HOST_MOVZXWD, z, 0, 0,
			 (struct soft_host_mem){ SOFT_RCX, at }, false, 0);
}

/* Fetches as far ahead of rcx, which is lost, as it is from the last time. */
static void fetch_next(struct soft_native_run *r, const struct soft_microop *m)
{
	const struct soft_host_mem last = {
		SOFT_RDI, (int32_t)offsetof(struct soft_wave, last_load) +
				  m->mask_in * (int32_t)sizeof(uintptr_t)
	};

	soft_host_int64(r->code, SOFT_HOST_MOV, SOFT_R10, last);
	soft_host_int64(r->code, SOFT_HOST_PUT, SOFT_RCX, last);
	soft_host_int_regs(r->code, SOFT_HOST_ADD, true, SOFT_RCX, SOFT_RCX);
	soft_host_int_regs(r->code, SOFT_HOST_SUB, true, SOFT_RCX, SOFT_R10);
	soft_host_prefetch(r->code, (struct soft_host_mem){ SOFT_RCX, 0 });
}

static void move_halves(struct soft_native_run *r, const struct soft_microop *m,
			struct soft_host_mem data, size_t skip)
{
	soft_move_fn *const *move = soft_simd_v4.moves->move;
	const int t = soft_native_take(r), low = 2 * t, high = low + 1;
	size_t other = jump_off_line(r, 2), end;

	find(r, m, 2, skip);
	get_words(r, low, 0);
	get_words(r, high, 32);
	end = soft_host_jump(r->code);
	soft_host_here(r->code, other);
	soft_native_bail(r, jump_off(r, SOFT_NATIVE_ROWS), skip);
	find(r, m, 2, skip);
	get_words(r, low, 0);
	op(r, SOFT_HOST_MOVD, high, 0, low);
	soft_host_here(r->code, end);
	fetch_next(r, m);
	if (m->b != (uintptr_t)move[SOFT_MOVE_load_u16])
		soft_native_merge_half(
			r, t, data,
			m->b == (uintptr_t)move[SOFT_MOVE_load_high_16]);
	soft_native_store(r, t, data);
	soft_native_hold(r, t, data);
}

void soft_native_move(struct soft_native_run *r, const struct soft_microop *m,
		      size_t skip)
{
	const struct soft_host_mem data = soft_native_vreg(r, 0, m->d);
	const bool store = m->mods[1] & SOFT_MEM_WRITE;
	const int n = m->mods[0] / 4;
	struct several s;

	if (r->masked) {
		/* The line begins at lane 0. */
		soft_native_bail(r, soft_host_jump_no_bits(
					    r->code,
					    soft_host_sgpr(ISA_R_EXEC_LO), 1),
				 skip);
		soft_native_exec(r, 0);
	}
	if (place_of(m) == VADDR) /* in both ways */
		soft_native_load(r, soft_native_vreg(r, 0, m->a +
						     SOFT_VREG_BYTES));
	find_distances(r, soft_native_load(r, soft_native_vreg(r, 0, m->a)));
	if (n > 1)
		s = take_several(r, data, n, store);
	if (!n) {
		move_halves(r, m, data, skip);
	} else if (n == 4 && !store) {
		move_either(r, m, &s, skip);
	} else {
		soft_native_bail(r, jump_off_line(r, m->mods[0]), skip);
		find(r, m, m->mods[0], skip);
		if (n > 1)
			move_several(r, &s, false);
		else
			move_one(r, data, store);
	}
	if (n > 1)
		hold_several(r, &s);
}
