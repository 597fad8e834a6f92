/*
 * kfd/soft/exec/lds.c - LDS: loads, stores, atomics and lane permutation.
 *
 * RDNA3 ISA 12.  A workgroup's waves run on one thread, so LDS needs no host
 * atomics.  Addresses may be unaligned, as compute queues are set up; atomics
 * must be aligned.  What lies outside of the workgroup's LDS reads 0, ignores
 * writes, and sets MEM_VIOL in TRAPSTS; or it is a fault if the environment says
 * so (lds_faults).
 */
#include <string.h>

#include "kfd/soft/exec/mem.h"

#define TRAPSTS_MEM_VIOL 0x100

struct row {
	struct soft_access a;
	uint8_t n;	  /* addresses: 1, or 2 with an offset each */
	uint8_t stride;	  /* of those offsets, in units of a.bytes */
	bool data1;	  /* atomics: operand b is DATA1 */
};

/* Byte offset of address k within the instruction. */
static uint32_t byte_offset(const struct soft_uop *u, const struct row *r,
			    int k)
{
	const uint32_t *f = u->in.f;

	if (r->n == 2)
		return f[k ? ISA_F_OFFSET1 : ISA_F_OFFSET0] * r->a.bytes *
		       r->stride;
	return f[ISA_F_OFFSET0] | f[ISA_F_OFFSET1] << 8;
}

static uint8_t *lds_at(struct soft_wave *w, uint32_t addr, uint32_t size_bytes)
{
	uint8_t *p = soft_lds_at(w, addr, size_bytes);

	if (p)
		return p;
	w->trapsts |= TRAPSTS_MEM_VIOL;
	if (w->group->env->lds_faults)
		soft_raise(w, SOFT_FAULT_APERTURE,
			   "LDS access at byte %u, but the workgroup has %u "
			   "bytes of it",
			   addr, w->group->lds_size_bytes);
	return NULL;
}

/* ---------------------------------------------------- loads, stores ---- */

static void read_lds(struct soft_wave *w, uint32_t addr, uint32_t *value,
		     uint32_t size_bytes)
{
	const uint8_t *p = lds_at(w, addr, size_bytes);

	memset(value, 0, (size_bytes + 3) & ~3u);
	if (p)
		memcpy(value, p, size_bytes);
}

static void run_load(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	uint32_t vdst = u->in.f[ISA_F_VDST], addr = u->in.f[ISA_F_ADDR];
	uint32_t off[2] = { byte_offset(u, r, 0), byte_offset(u, r, 1) };
	uint32_t step = (r->a.bytes + 3u) / 4;

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h)) {
			uint32_t base = w->v[h][addr][lane], value[4];

			for (int k = 0; k < r->n; k++) {
				read_lds(w, base + off[k], value, r->a.bytes);
				soft_put_lane(w, &r->a, h, lane,
					      vdst + k * step, value);
			}
		}
	}
}

static void run_store(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	uint32_t addr = u->in.f[ISA_F_ADDR];
	uint32_t data[2] = { u->in.f[ISA_F_DATA0], u->in.f[ISA_F_DATA1] };
	uint32_t off[2] = { byte_offset(u, r, 0), byte_offset(u, r, 1) };

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h)) {
			uint32_t base = w->v[h][addr][lane], value[4];

			for (int k = 0; k < r->n; k++) {
				uint8_t *p =
					lds_at(w, base + off[k], r->a.bytes);

				soft_get_lane(w, &r->a, h, lane, data[k],
					      value);
				if (p)
					memcpy(p, value, r->a.bytes);
			}
		}
	}
}

/* M0[15:0] + offset + 4 * lane: no address register. */
static uint32_t addtid_address(const struct soft_wave *w,
			       const struct soft_uop *u, int h, uint32_t lane)
{
	return (w->s[ISA_R_M0] & 0xffff) + byte_offset(u, u->op, 0) +
	       4 * (h * SOFT_LANES + lane);
}

static void run_load_addtid(struct soft_wave *w, const struct soft_uop *u)
{
	uint32_t vdst = u->in.f[ISA_F_VDST];

	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
	read_lds(w, addtid_address(w, u, h, lane), &w->v[h][vdst][lane], 4);
}

static void run_store_addtid(struct soft_wave *w, const struct soft_uop *u)
{
	uint32_t data = u->in.f[ISA_F_DATA0];

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h)) {
			uint8_t *p =
				lds_at(w, addtid_address(w, u, h, lane), 4);

			if (p)
				memcpy(p, &w->v[h][data][lane], 4);
		}
	}
}

/* ----------------------------------------------------------- atomics ---- */

static uint64_t atomic_operand(const struct soft_wave *w, const struct row *r,
			       int h, uint32_t lane, uint32_t reg)
{
	uint64_t v = w->v[h][reg][lane];

	if (r->a.bytes == 8)
		v |= (uint64_t)w->v[h][reg + 1][lane] << 32;
	return v;
}

static bool require_aligned(struct soft_wave *w, uint32_t addr,
			    uint32_t size_bytes, uint32_t lane)
{
	if (!(addr & (size_bytes - 1)))
		return true;
	soft_raise(w, SOFT_FAULT_ALIGN,
		   "LDS atomic of %u bytes at offset 0x%x: not aligned",
		   size_bytes, addr);
	soft_fault_at(w, addr, true, (int)lane);
	return false;
}

/* One operation of one lane; what was there goes to `old`. */
static bool modify_lane(struct soft_wave *w, const struct row *r, uint32_t addr,
			uint64_t a, uint64_t b, uint32_t lane, uint64_t *old)
{
	uint8_t *p = lds_at(w, addr, r->a.bytes);
	uint64_t new;

	*old = 0;
	if (!require_aligned(w, addr, r->a.bytes, lane))
		return false;
	if (!p)
		return true;
	memcpy(old, p, r->a.bytes);
	new = r->a.fn(*old, a, b, w->mode);
	memcpy(p, &new, r->a.bytes);
	return true;
}

/* All of a lane's operations, before its results are written. */
static bool atomic_lane(struct soft_wave *w, const struct soft_uop *u, int h,
			uint32_t lane)
{
	const struct row *r = u->op;
	const uint32_t *f = u->in.f;
	uint32_t base = w->v[h][f[ISA_F_ADDR]][lane];
	uint64_t a = atomic_operand(w, r, h, lane, f[ISA_F_DATA0]), b = 0,
		 old[2];

	if (r->data1 || r->n == 2)
		b = atomic_operand(w, r, h, lane, f[ISA_F_DATA1]);
	if (!modify_lane(w, r, base + byte_offset(u, r, 0), a, b,
			 h * SOFT_LANES + lane, &old[0]))
		return false;
	if (r->n == 2 && !modify_lane(w, r, base + byte_offset(u, r, 1), b, 0,
				      h * SOFT_LANES + lane, &old[1]))
		return false;
	if (!r->a.returns)
		return true;
	for (int k = 0; k < r->n; k++) {
		uint32_t value[2] = { (uint32_t)old[k],
				      (uint32_t)(old[k] >> 32) };

		soft_put_lane(w, &r->a, h, lane,
			      f[ISA_F_VDST] + k * (r->a.bytes / 4u), value);
	}
	return true;
}

static void run_atomic(struct soft_wave *w, const struct soft_uop *u)
{
	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
			if (!atomic_lane(w, u, h, lane))
				return;
}

/*
 * Two dwords at an address rounded down to 8: each is replaced by bits 30:0
 * of its operand if bit 31 of that is set.
 */
static uint32_t exchange_if(struct soft_wave *w, uint32_t addr, uint32_t data)
{
	uint8_t *p = lds_at(w, addr, 4);
	uint32_t old = 0;

	if (!p)
		return 0;
	memcpy(&old, p, 4);
	data ^= 0x80000000;
	if (!(data & 0x80000000))
		memcpy(p, &data, 4);
	return old;
}

static void run_condxchg32(struct soft_wave *w, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h)) {
			uint32_t addr = (w->v[h][f[ISA_F_ADDR]][lane] +
					 byte_offset(u, u->op, 0)) &
					0xfff8;
			uint32_t d0 = w->v[h][f[ISA_F_DATA0]][lane];
			uint32_t d1 = w->v[h][f[ISA_F_DATA0] + 1][lane];

			d0 = exchange_if(w, addr, d0);
			d1 = exchange_if(w, addr + 4, d1);
			w->v[h][f[ISA_F_VDST]][lane] = d0;
			w->v[h][f[ISA_F_VDST] + 1][lane] = d1;
		}
	}
}

/* gfx10_1: LDS[A] becomes LDS[A] op LDS[B] (RDNA ISA 1.0, 12). */
static void run_src2(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	const uint32_t addr = u->in.f[ISA_F_ADDR], off = byte_offset(u, r, 0);

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			const struct isa_src2 at =
				isa_lds_src2(w->v[h][addr][lane], off);
			uint32_t b[2] = { 0 };
			uint64_t old;

			read_lds(w, at.b, b, r->a.bytes);
			if (!modify_lane(w, r, at.a,
					 b[0] | (uint64_t)b[1] << 32, 0,
					 h * SOFT_LANES + lane, &old))
				return;
		}
	}
}

/* The wave's active lanes are counted once; every lane gets the old value. */
static void count_lanes(struct soft_wave *w, const struct soft_uop *u, int sign)
{
	uint32_t addr = (w->s[ISA_R_M0] & 0xffff) + byte_offset(u, u->op, 0);
	uint32_t old = 0, new, lanes = 0;
	uint8_t *p = lds_at(w, addr, 4);

	if (!require_aligned(w, addr, 4, 0))
		return;
	for (int h = 0; h < soft_halves(w); h++)
		lanes += (uint32_t)__builtin_popcount(soft_exec(w, h));
	if (p) {
		memcpy(&old, p, 4);
		new = sign > 0 ? old + lanes : old - lanes;
		memcpy(p, &new, 4);
	}
	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
			w->v[h][u->in.f[ISA_F_VDST]][lane] = old;
}

static void run_append(struct soft_wave *w, const struct soft_uop *u)
{
	count_lanes(w, u, 1);
}

static void run_consume(struct soft_wave *w, const struct soft_uop *u)
{
	count_lanes(w, u, -1);
}

/* ------------------------------------------------------- permutation ---- */

/*
 * Lanes move within each 32; a lane that does not execute gives 0 and
 * receives nothing.
 */
static void write_lanes(struct soft_wave *w, const struct soft_uop *u, int h,
			const uint32_t *value)
{
	uint32_t *d = w->v[h][u->in.f[ISA_F_VDST]];

	FOR_LANES(lane, soft_exec(w, h))
		d[lane] = value[lane];
}

static void run_permute(struct soft_wave *w, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;

	for (int h = 0; h < soft_halves(w); h++) {
		uint32_t value[SOFT_LANES] = { 0 };

		FOR_LANES(lane, soft_exec(w, h)) {
			uint32_t to = w->v[h][f[ISA_F_ADDR]][lane] +
				      byte_offset(u, u->op, 0);

			value[to / 4 % SOFT_LANES] =
				w->v[h][f[ISA_F_DATA0]][lane];
		}
		write_lanes(w, u, h, value);
	}
}

static void run_bpermute(struct soft_wave *w, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;

	for (int h = 0; h < soft_halves(w); h++) {
		uint32_t value[SOFT_LANES] = { 0 };

		FOR_LANES(lane, soft_exec(w, h)) {
			uint32_t from = (w->v[h][f[ISA_F_ADDR]][lane] +
					 byte_offset(u, u->op, 0)) /
					4 % SOFT_LANES;

			if (soft_exec(w, h) >> from & 1)
				value[lane] = w->v[h][f[ISA_F_DATA0]][from];
		}
		write_lanes(w, u, h, value);
	}
}

static uint32_t reverse_bits5(uint32_t v)
{
	return (v & 1) << 4 | (v & 2) << 2 | (v & 4) | (v & 8) >> 2 |
	       (v & 16) >> 4;
}

/* RDNA3 ISA 12.5.1. */
uint32_t soft_swizzle_from(uint32_t i, uint32_t imm)
{
	uint32_t mask = imm & 31, by = imm >> 5 & 31;

	if (imm >= 0xe000) /* butterflies of an FFT */
		return (reverse_bits5(i) >> __builtin_popcount(mask)) |
		       (i & mask);
	if (imm >= 0xc000) { /* rotate, bit 10: to the left */
		uint32_t to = imm & 0x400 ? i - by : i + by;

		return (i & mask) | (to & ~mask & 31);
	}
	if (imm >= 0x8000) /* within four */
		return (i & ~3u) | (imm >> 2 * (i & 3) & 3);
	return ((i & mask) | by) ^ (imm >> 10 & 31);
}

static void run_swizzle(struct soft_wave *w, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;
	uint32_t imm = f[ISA_F_OFFSET0] | f[ISA_F_OFFSET1] << 8;

	for (int h = 0; h < soft_halves(w); h++) {
		uint32_t value[SOFT_LANES] = { 0 };

		FOR_LANES(lane, soft_exec(w, h)) {
			uint32_t from = soft_swizzle_from(lane, imm);

			if (soft_exec(w, h) >> from & 1)
				value[lane] = w->v[h][f[ISA_F_ADDR]][from];
		}
		write_lanes(w, u, h, value);
	}
}

/* ------------------------------------------------------------- table ---- */

/* clang-format off */
/*
 * Rows of the table: a handler and its struct row.  LOAD(u8, 1, 0, SOFT_WHOLE)
 * and INTEGER(add, u, add), of which it is the first of four, are
 *
 *	[ISA_ds_load_u8] = { run_load, { { .bytes = 1, .is_signed = 0,
 *					   .part = SOFT_WHOLE }, 1, 1, 0 } },
 *	[ISA_ds_add_u32] = { run_atomic, { { .bytes = 4,
 *					     .fn = soft_atomic_add_32,
 *					     .returns = false },
 *					   1, 1, false } },
 */
#define ONE(b, sgn, prt) \
	{ { .bytes = b, .is_signed = sgn, .part = prt }, 1, 1, 0 }
#define LOAD(name, b, sgn, prt) \
	[ISA_ds_load_##name] = { run_load, ONE(b, sgn, prt) },
#define STORE(name, b, prt) \
	[ISA_ds_store_##name] = { run_store, ONE(b, 0, prt) },
#define PAIR(b, bits)                                                      \
	[ISA_ds_load_2addr_b##bits] =                                      \
		{ run_load, { { .bytes = b }, 2, 1, 0 } },                 \
	[ISA_ds_load_2addr_stride64_b##bits] =                             \
		{ run_load, { { .bytes = b }, 2, 64, 0 } },                \
	[ISA_ds_store_2addr_b##bits] =                                     \
		{ run_store, { { .bytes = b }, 2, 1, 0 } },                \
	[ISA_ds_store_2addr_stride64_b##bits] =                            \
		{ run_store, { { .bytes = b }, 2, 64, 0 } },
#define ATOM(b, f, rtn, count, stride, d1)                                 \
	{ run_atomic,                                                      \
	  { { .bytes = b, .fn = soft_atomic_##f, .returns = rtn },         \
	    count, stride, d1 } }
/* Without and with return: ds_NAME_TYPE, ds_NAME_rtn_TYPE. */
#define ATOMIC2(name, type, b, f, d1)                                      \
	[ISA_ds_##name##_##type] = ATOM(b, f, false, 1, 1, d1),            \
	[ISA_ds_##name##_rtn_##type] = ATOM(b, f, true, 1, 1, d1),
#define INTEGER(name, k, f)                                                \
	ATOMIC2(name, k##32, 4, f##_32, false)                             \
	ATOMIC2(name, k##64, 8, f##_64, false)
#define EXCHANGE(b, bits)                                                  \
	[ISA_ds_storexchg_rtn_b##bits] =                                   \
		ATOM(b, swap_##bits, true, 1, 1, false),                   \
	[ISA_ds_storexchg_2addr_rtn_b##bits] =                             \
		ATOM(b, swap_##bits, true, 2, 1, false),                   \
	[ISA_ds_storexchg_2addr_stride64_rtn_b##bits] =                    \
		ATOM(b, swap_##bits, true, 2, 64, false),
#define SRC2(name, b, f)                                                   \
	[ISA_ds_##name] = { run_src2,                                      \
			    { { .bytes = b, .fn = soft_atomic_##f },       \
			      1, 1, false } },
#define TWO_SRC2(name, k, f)                                               \
	SRC2(name##_src2_##k##32, 4, f##_32)                               \
	SRC2(name##_src2_##k##64, 8, f##_64)
#define OTHER(name, f) [ISA_ds_##name] = { f, ONE(4, 0, SOFT_WHOLE) },

static const struct {
	soft_handler *fn;
	struct row row;
} table[ISA_OP_COUNT] = {
	LOAD(b32, 4, 0, SOFT_WHOLE)
	LOAD(b64, 8, 0, SOFT_WHOLE)
	LOAD(b96, 12, 0, SOFT_WHOLE)
	LOAD(b128, 16, 0, SOFT_WHOLE)
	LOAD(u8, 1, 0, SOFT_WHOLE)
	LOAD(i8, 1, 1, SOFT_WHOLE)
	LOAD(u16, 2, 0, SOFT_WHOLE)
	LOAD(i16, 2, 1, SOFT_WHOLE)
	LOAD(u8_d16, 1, 0, SOFT_LOW)
	LOAD(i8_d16, 1, 1, SOFT_LOW)
	LOAD(u16_d16, 2, 0, SOFT_LOW)
	LOAD(u8_d16_hi, 1, 0, SOFT_HIGH)
	LOAD(i8_d16_hi, 1, 1, SOFT_HIGH)
	LOAD(u16_d16_hi, 2, 0, SOFT_HIGH)
	STORE(b8, 1, SOFT_WHOLE)
	STORE(b16, 2, SOFT_WHOLE)
	STORE(b8_d16_hi, 1, SOFT_HIGH)
	STORE(b16_d16_hi, 2, SOFT_HIGH)
	STORE(b32, 4, SOFT_WHOLE)
	STORE(b64, 8, SOFT_WHOLE)
	STORE(b96, 12, SOFT_WHOLE)
	STORE(b128, 16, SOFT_WHOLE)
	PAIR(4, 32)
	PAIR(8, 64)
	INTEGER(add, u, add)
	INTEGER(sub, u, sub)
	INTEGER(rsub, u, rsub)
	INTEGER(inc, u, inc)
	INTEGER(dec, u, dec)
	INTEGER(min, i, min_i)
	INTEGER(max, i, max_i)
	INTEGER(min, u, min_u)
	INTEGER(max, u, max_u)
	INTEGER(and, b, and)
	INTEGER(or, b, or)
	INTEGER(xor, b, xor)
	ATOMIC2(mskor, b32, 4, mskor_32, true)
	ATOMIC2(mskor, b64, 8, mskor_64, true)
	ATOMIC2(cmpstore, b32, 4, cmpswap_32, true)
	ATOMIC2(cmpstore, b64, 8, cmpswap_64, true)
	ATOMIC2(cmpstore, f32, 4, cmpswap_f_32, true)
	ATOMIC2(cmpstore, f64, 8, cmpswap_f_64, true)
	ATOMIC2(cmpst, b32, 4, cmpst_32, true)
	ATOMIC2(cmpst, b64, 8, cmpst_64, true)
	ATOMIC2(cmpst, f32, 4, cmpst_f_32, true)
	ATOMIC2(cmpst, f64, 8, cmpst_f_64, true)
	ATOMIC2(min, f32, 4, min_f_32, false)
	ATOMIC2(max, f32, 4, max_f_32, false)
	ATOMIC2(min, f64, 8, min_f_64, false)
	ATOMIC2(max, f64, 8, max_f_64, false)
	ATOMIC2(add, f32, 4, add_f32_lds, false)
	ATOMIC2(min_num, f32, 4, min_num_32, false)
	ATOMIC2(max_num, f32, 4, max_num_32, false)
	ATOMIC2(min_num, f64, 8, min_num_64, false)
	ATOMIC2(max_num, f64, 8, max_num_64, false)
	ATOMIC2(cond_sub, u32, 4, cond_sub_32, false)
	ATOMIC2(sub_clamp, u32, 4, csub_32, false)
	ATOMIC2(pk_add, f16, 4, pk_add_f16, false)
	ATOMIC2(pk_add, bf16, 4, pk_add_bf16, false)
	[ISA_ds_wrap_rtn_b32] = ATOM(4, wrap_32, true, 1, 1, true),
	EXCHANGE(4, 32)
	EXCHANGE(8, 64)
	TWO_SRC2(add, u, add)
	TWO_SRC2(sub, u, sub)
	TWO_SRC2(rsub, u, rsub)
	TWO_SRC2(inc, u, inc)
	TWO_SRC2(dec, u, dec)
	TWO_SRC2(min, i, min_i)
	TWO_SRC2(max, i, max_i)
	TWO_SRC2(min, u, min_u)
	TWO_SRC2(max, u, max_u)
	TWO_SRC2(and, b, and)
	TWO_SRC2(or, b, or)
	TWO_SRC2(xor, b, xor)
	TWO_SRC2(write, b, swap)
	TWO_SRC2(min, f, min_f)
	TWO_SRC2(max, f, max_f)
	SRC2(add_src2_f32, 4, add_f32_lds)
	OTHER(condxchg32_rtn_b64, run_condxchg32)
	OTHER(append, run_append)
	OTHER(consume, run_consume)
	OTHER(load_addtid_b32, run_load_addtid)
	OTHER(store_addtid_b32, run_store_addtid)
	OTHER(permute_b32, run_permute)
	OTHER(bpermute_b32, run_bpermute)
	OTHER(swizzle_b32, run_swizzle)
	OTHER(nop, soft_run_nothing)
};
/* clang-format on */

const struct soft_access *soft_lds_plain(const struct soft_uop *u, bool *store,
					 uint32_t off[2])
{
	const struct row *r = u->op;

	*store = u->fn == run_store;
	off[0] = off[1] = 0;
	/* An equal second offset cannot be told from none; nobody wants it. */
	if ((u->fn != run_load && !*store) ||
	    (r->n == 2 && !u->in.f[ISA_F_OFFSET1]))
		return NULL;
	off[0] = byte_offset(u, r, 0);
	off[1] = r->n == 2 ? byte_offset(u, r, 1) : 0;
	return &r->a;
}

const struct soft_access *soft_lds_atomic(const struct soft_uop *u)
{
	const struct row *r = u->op;

	return u->fn == run_atomic && r->n == 1 && !r->data1 ? &r->a : NULL;
}

soft_handler *soft_lds_handler(const struct isa_inst *in, const void **op)
{
	*op = &table[in->op].row;
	return in->f[ISA_F_GDS] ? NULL : table[in->op].fn;
}
