/*
 * kfd/soft/exec/fast/native_mem.c - loads and stores of lines as host code.
 *
 * A line is 32 dwords in a row, a lane each, as microop_line.h has it.  Where
 * its bytes are in this process, memory microops have written down in
 * cache->line[] when they did the same; LDS is where the workgroup says.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native.h"

enum where { NOT, SADDR, VADDR, LDS };

static enum where place_of(const struct soft_microop *m)
{
	const struct soft_mem_microops *f = soft_simd_v4.mem;

	return m->fn == f->move[SOFT_AT_SADDR][0] ? SADDR :
	       m->fn == f->move[SOFT_AT_VADDR][0] ? VADDR :
	       m->fn == f->move[SOFT_AT_LDS][0]	  ? LDS :
						    NOT;
}

bool soft_native_moves(const struct soft_microop *m)
{
	return place_of(m) != NOT && m->mods[2];
}

static void bail_unequal(struct soft_native_run *r, size_t skip)
{
	soft_host_kor(r->code, SOFT_K_N, SOFT_K_N, SOFT_K_OTHER);
	soft_native_bail(r, soft_host_jump_mask(r->code, SOFT_K_N), skip);
}

/* Leave unless the vreg's lanes are dwords in a row; are all the same. */
static void check_line(struct soft_native_run *r, int pair, size_t skip)
{
	const int u = 2 * SOFT_PAIR_U, v = 2 * SOFT_PAIR_V;

	soft_host_op(r->code, SOFT_HOST_BROADCASTD, u, 0, 0, 2 * pair, 0);
	for (int i = 0; i < 2; i++) {
		struct soft_host_mem at = soft_native_at(SOFT_NATIVE_LINE +
							 16 * i);

		soft_host_op(r->code, SOFT_HOST_SUBD, v + i, 0, 2 * pair + i, u,
			     0);
		soft_host_op_mem(r->code, SOFT_HOST_CMPD,
				 i ? SOFT_K_OTHER : SOFT_K_N, 0, v + i, at,
				 false, 4);
	}
	bail_unequal(r, skip);
}

static void check_same(struct soft_native_run *r, int pair, size_t skip)
{
	const int u = 2 * SOFT_PAIR_U;

	soft_host_op(r->code, SOFT_HOST_BROADCASTD, u, 0, 0, 2 * pair, 0);
	for (int i = 0; i < 2; i++)
		soft_host_op(r->code, SOFT_HOST_CMPD,
			     i ? SOFT_K_OTHER : SOFT_K_N, 0, 2 * pair + i, u,
			     4);
	bail_unequal(r, skip);
}

/* rcx = the offset of lane 0, of which the line must not wrap. */
static void load_first(struct soft_native_run *r, struct soft_host_mem vreg,
		       size_t skip)
{
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_RCX, vreg);
	soft_host_int_const(r->code, SOFT_HOST_CMP, SOFT_RCX,
			    (uint32_t)(UINT32_MAX - SOFT_VREG_BYTES));
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
}

/* rcx: the address in GPU memory to that in this process. */
static void find_host(struct soft_native_run *r, const struct soft_microop *m,
		      size_t skip)
{
	const struct soft_line *l = soft_line_of(r->cache, m);
#define AT(field) \
	((struct soft_host_mem){ SOFT_R11, offsetof(struct soft_line, field) })

	soft_host_set64(r->code, SOFT_R11, (uintptr_t)l);
	soft_host_int64(r->code, SOFT_HOST_SUB, SOFT_RCX, AT(va));
	soft_host_int64(r->code, SOFT_HOST_CMP, SOFT_RCX, AT(n));
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_NOT_BELOW),
			 skip);
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX, AT(host));
#undef AT
}

static void find_saddr(struct soft_native_run *r, const struct soft_microop *m,
		       size_t skip)
{
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX,
			soft_host_sgpr((int)m->c));
	if (m->imm)
		soft_host_int64_const(r->code, SOFT_HOST_ADD, SOFT_RCX,
				      (int32_t)m->imm);
	find_host(r, m, skip);
}

static void find_vaddr(struct soft_native_run *r, const struct soft_microop *m,
		       size_t skip)
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
	find_host(r, m, skip);
}

static void find_lds(struct soft_native_run *r, const struct soft_microop *m,
		     size_t skip)
{
#define AT(base, type, field) \
	((struct soft_host_mem){ base, offsetof(struct type, field) })

	soft_host_int64(r->code, SOFT_HOST_MOV, SOFT_R11,
			AT(SOFT_RDI, soft_wave, group));
	soft_host_int64_const(r->code, SOFT_HOST_ADD, SOFT_RCX,
			      (int32_t)(m->imm + SOFT_VREG_BYTES));
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_R10,
		      AT(SOFT_R11, soft_group, lds_size_bytes));
	soft_host_int_regs(r->code, SOFT_HOST_CMP, true, SOFT_RCX, SOFT_R10);
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX,
			AT(SOFT_R11, soft_group, lds));
	soft_host_int64_const(r->code, SOFT_HOST_SUB, SOFT_RCX,
			      (int32_t)SOFT_VREG_BYTES);
#undef AT
}

void soft_native_move(struct soft_native_run *r, const struct soft_microop *m,
		      size_t skip)
{
	const struct soft_host_mem offsets = soft_native_vreg(r, 0, m->a);
	const struct soft_host_mem data = soft_native_vreg(r, 0, m->d);
	const struct soft_host_mem line = { SOFT_RCX, 0 };
	const bool store = m->mods[1] & SOFT_MEM_WRITE;
	const enum where where = place_of(m);
	int pair;

	check_line(r, soft_native_load(r, offsets), skip);
	load_first(r, offsets, skip);
	(where == SADDR ? find_saddr :
	 where == VADDR ? find_vaddr :
			  find_lds)(r, m, skip);
	pair = store ? soft_native_load(r, data) : soft_native_take(r);
	if (store) {
		soft_native_store(r, pair, line);
		return;
	}
	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_MOVD, 2 * pair + i, 0, 0,
				 soft_native_half(line, i), false, 0);
	soft_native_store(r, pair, data);
	soft_native_hold(r, pair, data);
}
