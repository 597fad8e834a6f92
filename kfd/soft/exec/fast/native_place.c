/*
 * kfd/soft/exec/fast/native_place.c - where lanes are, found by host code.
 *
 * The bytes of all lanes lie in one mapping, whose place in this process memory
 * microops have written down in cache->line[][][] when they did the same; LDS
 * is where the workgroup says.  Whatever is unusual is left to the microop.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native_move.h"

enum soft_where soft_native_where(const struct soft_microop *m)
{
	const struct soft_mem_microops *f = soft_simd()->mem;
	enum soft_where where = 0;

	while (where < SOFT_AT_COUNT && m->fn != f->move[where][0])
		where++;
	return where;
}

#define AT(base, type, field) \
	((struct soft_host_mem){ base, offsetof(struct type, field) })

/* -------------------------------------------------------------- lanes ---- */

/* Where not all lanes were equal. */
static size_t jump_unequal(struct soft_native_run *r)
{
	soft_host_kor(r->code, SOFT_K_N, SOFT_K_N, SOFT_K_OTHER);
	return soft_host_jump_mask(r->code, SOFT_K_N);
}

/* The mask of lanes 16 i to 16 i + 15 that count. */
static int lanes_of(const struct soft_native_run *r, int i)
{
	return r->masked ? SOFT_K_EXEC + i : 0;
}

static int load_address(struct soft_native_run *r, const struct soft_microop *m)
{
	return soft_native_load(r, soft_native_vreg(r, 0, m->a));
}

void soft_native_measure(struct soft_native_run *r,
			 const struct soft_microop *m)
{
	soft_host_op(r->code, SOFT_HOST_BROADCASTD, 2 * SOFT_PAIR_U, 0, 0,
		     2 * load_address(r, m), 0);
}

/* Is there a constant of these distances, and which? */
static bool find_constant(const struct soft_native_move *v, int *at)
{
	if (!soft_native_is_line(v, v->step) || !v->step ||
	    v->step & (v->step - 1) || v->step > 32)
		return false;
	*at = SOFT_NATIVE_LINE + __builtin_ctz(v->step) * SOFT_LANES;
	return true;
}

size_t soft_native_jump_elsewhere(struct soft_native_run *r,
				  const struct soft_microop *m,
				  const struct soft_native_move *v)
{
	const int address = load_address(r, m);
	struct soft_host_mem from = { SOFT_R11, 0 };
	int at = 0;

	if (find_constant(v, &at))
		from = soft_native_at(at);
	else
		soft_host_set64(r->code, SOFT_R11, (uintptr_t)v->expected);
	for (int i = 0; i < 2; i++) {
		const int z = 2 * SOFT_PAIR_V + i;

		soft_host_op_mem(r->code, SOFT_HOST_ADDD, z, 0, 2 * SOFT_PAIR_U,
				 soft_native_half(from, i), false, 0);
		soft_host_op(r->code, SOFT_HOST_DIFFERD,
			     i ? SOFT_K_OTHER : SOFT_K_N, lanes_of(r, i), z,
			     2 * address + i, 4);
	}
	return jump_unequal(r);
}

/* Leave unless all lanes of a vreg are the same. */
static void check_same(struct soft_native_run *r, int pair, size_t skip)
{
	const int u = 2 * SOFT_PAIR_U;

	soft_host_op(r->code, SOFT_HOST_BROADCASTD, u, 0, 0, 2 * pair, 0);
	for (int i = 0; i < 2; i++)
		soft_host_op(r->code, SOFT_HOST_DIFFERD,
			     i ? SOFT_K_OTHER : SOFT_K_N, lanes_of(r, i), u,
			     2 * pair + i, 4);
	soft_native_bail(r, jump_unequal(r), skip);
}

/* ---------------------------------------------------------- addresses ---- */

static void add_const(struct soft_native_run *r, uint32_t value)
{
	if (value)
		soft_host_int64_const(r->code, SOFT_HOST_ADD, SOFT_RCX,
				      (int32_t)value);
}

/*
 * rcx, the first lane's address in GPU memory, becomes the end of what is
 * touched in this process.
 */
static void find_host(struct soft_native_run *r, const struct soft_microop *m,
		      const struct soft_native_move *v, size_t skip)
{
	const struct soft_line *l = soft_line_of(r->cache, m);

	soft_host_set64(r->code, SOFT_R11, (uintptr_t)l);
	soft_host_int64(r->code, SOFT_HOST_SUB, SOFT_RCX,
			AT(SOFT_R11, soft_line, va));
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_BELOW), skip);
	soft_host_int64_const(r->code, SOFT_HOST_ADD, SOFT_RCX,
			      (int32_t)v->span_bytes);
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_BELOW), skip);
	soft_host_int64(r->code, SOFT_HOST_CMP, SOFT_RCX,
			AT(SOFT_R11, soft_line, size_bytes));
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX,
			AT(SOFT_R11, soft_line, host));
}

static void find_saddr(struct soft_native_run *r, const struct soft_microop *m,
		       const struct soft_native_move *v, size_t skip)
{
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX,
			soft_host_sgpr((int)m->c));
	add_const(r, m->imm);
	find_host(r, m, v, skip);
}

static void find_vaddr(struct soft_native_run *r, const struct soft_microop *m,
		       const struct soft_native_move *v, size_t skip)
{
	struct soft_host_mem high =
		soft_native_vreg(r, 0, m->a + SOFT_VREG_BYTES);

	check_same(r, soft_native_load(r, high), skip);
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_R10, high);
	soft_host_shift_const(r->code, SOFT_HOST_SHL, SOFT_R10, 32);
	soft_host_int_regs(r->code, SOFT_HOST_ADD, true, SOFT_RCX, SOFT_R10);
	add_const(r, m->imm);
	find_host(r, m, v, skip);
}

static void find_lds(struct soft_native_run *r, const struct soft_microop *m,
		     const struct soft_native_move *v, size_t skip)
{
	(void)m;
	soft_host_int64(r->code, SOFT_HOST_MOV, SOFT_R11,
			AT(SOFT_RDI, soft_wave, group));
	add_const(r, v->span_bytes);
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_R10,
		      AT(SOFT_R11, soft_group, lds_size_bytes));
	soft_host_int_regs(r->code, SOFT_HOST_CMP, true, SOFT_RCX, SOFT_R10);
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX,
			AT(SOFT_R11, soft_group, lds));
}

/* ------------------------------------------------------------ buffers ---- */

#define IS_SWIZZLED (3u << 30) /* of dword 1 */
#define BY_LANE	    (1u << 23) /* of dword 3 */
#define IS_RAW	    28	       /* two bits of it */

static const struct isa_operand *soffset_of(const struct soft_microop *m)
{
	const struct isa_operand *o = m->u->in.opnd;

	while (o->slot != ISA_SLOT_SOFFSET)
		o++;
	return o;
}

bool soft_native_knows_buffer(const struct soft_microop *m)
{
	const struct isa_operand *o = soffset_of(m);

	return m->part &&
	       (o->kind == ISA_K_INLINE || o->kind == ISA_K_LITERAL ||
		(o->kind == ISA_K_SGPR &&
		 (o->reg < ISA_R_TTMP0 || o->reg == ISA_R_M0 ||
		  o->reg == ISA_R_NULL)));
}

/* rcx += the scalar offset */
static void add_soffset(struct soft_native_run *r, const struct soft_microop *m)
{
	const struct isa_operand *o = soffset_of(m);

	if (o->kind == ISA_K_SGPR && o->reg == ISA_R_NULL)
		return;
	if (o->kind == ISA_K_SGPR)
		soft_host_int(r->code, SOFT_HOST_MOV, SOFT_R10,
			      soft_host_sgpr(o->reg));
	else
		soft_host_set32(r->code, SOFT_R10,
				(uint32_t)soft_read_scalar(NULL, o, &m->u->in));
	soft_host_int_regs(r->code, SOFT_HOST_ADD, true, SOFT_RCX, SOFT_R10);
}

/* Raw ones, that is neither swizzled nor indexed. */
static void find_buffer(struct soft_native_run *r, const struct soft_microop *m,
			const struct soft_native_move *v, size_t skip)
{
	const int d = (int)m->c;

	soft_native_bail(r,
			 soft_host_jump_bits(r->code, soft_host_sgpr(d + 1),
					     IS_SWIZZLED),
			 skip);
	soft_native_bail(
		r, soft_host_jump_bits(r->code, soft_host_sgpr(d + 3), BY_LANE),
		skip);
	for (int i = 0; i < 2; i++)
		soft_native_bail(r,
				 soft_host_jump_no_bits(r->code,
							soft_host_sgpr(d + 3),
							1u << (IS_RAW + i)),
				 skip);
	add_const(r, m->imm + v->span_bytes);
	add_soffset(r, m);
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_R10, soft_host_sgpr(d + 2));
	soft_host_int_regs(r->code, SOFT_HOST_CMP, true, SOFT_RCX, SOFT_R10);
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
	soft_host_int64_const(r->code, SOFT_HOST_SUB, SOFT_RCX,
			      (int32_t)v->span_bytes);
	soft_host_int64(r->code, SOFT_HOST_MOV, SOFT_R10, soft_host_sgpr(d));
	soft_host_shift_const(r->code, SOFT_HOST_SHL, SOFT_R10, 16);
	soft_host_shift_const(r->code, SOFT_HOST_SAR, SOFT_R10, 16);
	soft_host_int_regs(r->code, SOFT_HOST_ADD, true, SOFT_RCX, SOFT_R10);
	find_host(r, m, v, skip);
}

/* ------------------------------------------------------------ scratch ---- */

/* rcx = the offset in a lane's own bytes, of which each has as many as from one
 * lane to the next; it wraps in 32 bits. */
static void find_scratch(struct soft_native_run *r,
			 const struct soft_microop *m,
			 const struct soft_native_move *v, size_t skip)
{
	const uint32_t most = v->step - v->lane_bytes;

	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_R10,
		      AT(SOFT_RDI, soft_wave, scratch_lane_bytes));
	soft_host_int64_const(r->code, SOFT_HOST_CMP, SOFT_R10,
			      (int32_t)v->step);
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_NOT_ZERO),
			 skip);
	soft_host_set32(r->code, SOFT_RCX, m->imm);
	if (m->c != ISA_R_NULL)
		soft_host_int(r->code, SOFT_HOST_ADD, SOFT_RCX,
			      soft_host_sgpr((int)m->c));
	if (m->part)
		soft_host_int(r->code, SOFT_HOST_ADD, SOFT_RCX,
			      soft_native_vreg(r, 0, m->a));
	soft_host_int_const(r->code, SOFT_HOST_CMP, SOFT_RCX, most);
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
	soft_host_int64(r->code, SOFT_HOST_ADD, SOFT_RCX,
			AT(SOFT_RDI, soft_wave, scratch));
}

/* --------------------------------------------------------------- find ---- */

/*
 * rcx = the offset of the first lane in memory: no lane's may wrap.  If what is
 * before lane 0 makes it wrap it is too large, as well.
 */
static void find_first(struct soft_native_run *r, struct soft_host_mem vreg,
		       const struct soft_native_move *v, size_t skip)
{
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_RCX, vreg);
	if (v->before_bytes)
		soft_host_int_const(r->code, SOFT_HOST_SUB, SOFT_RCX,
				    v->before_bytes);
	soft_host_int_const(r->code, SOFT_HOST_CMP, SOFT_RCX,
			    UINT32_MAX - v->span_bytes);
	soft_native_bail(r, soft_host_jump_if(r->code, SOFT_HOST_ABOVE), skip);
}

void soft_native_place(struct soft_native_run *r, const struct soft_microop *m,
		       const struct soft_native_move *v, size_t skip)
{
	static void (*const find[SOFT_AT_COUNT])(
		struct soft_native_run * r, const struct soft_microop *m,
		const struct soft_native_move *v, size_t skip) = {
		[SOFT_AT_SADDR] = find_saddr, [SOFT_AT_VADDR] = find_vaddr,
		[SOFT_AT_FLAT] = find_vaddr,  [SOFT_AT_LDS] = find_lds,
		[SOFT_AT_LDS2] = find_lds,    [SOFT_AT_BUFFER] = find_buffer,
	};
	const struct soft_host_mem vreg = soft_native_vreg(r, 0, m->a);

	if (v->where == SOFT_AT_SCRATCH) {
		if (m->part)
			check_same(r, soft_native_load(r, vreg), skip);
		find_scratch(r, m, v, skip);
		return;
	}
	find_first(r, vreg, v, skip);
	find[v->where](r, m, v, skip);
	soft_host_int64_const(r->code, SOFT_HOST_SUB, SOFT_RCX,
			      (int32_t)v->span_bytes);
}
