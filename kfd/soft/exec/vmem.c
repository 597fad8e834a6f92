/*
 * kfd/soft/exec/vmem.c - FLAT, GLOBAL and SCRATCH instructions.
 *
 * Loads, stores and atomics of one address per lane.  RDNA3 ISA 10 and 11.
 * Buffers are in buffer.c.  Any alignment is allowed but for atomics, as
 * compute queues are set up.
 */
#include <string.h>

#include "kfd/soft/exec/mem.h"

/* ------------------------------------------------ values of one lane ---- */

void soft_put_lane(struct soft_wave *w, const struct soft_access *a, int half,
		   uint32_t lane, uint32_t reg, const uint32_t *value)
{
	uint32_t *d = &w->v[half][reg][lane];
	uint32_t v = soft_extend(a, value[0]);

	switch (a->part) {
	case SOFT_LOW:
		*d = (*d & 0xffff0000) | (v & 0xffff);
		return;
	case SOFT_HIGH:
		*d = (*d & 0xffff) | v << 16;
		return;
	}
	*d = v;
	for (int i = 1; i < a->bytes / 4; i++)
		w->v[half][reg + i][lane] = value[i];
}

void soft_get_lane(const struct soft_wave *w, const struct soft_access *a,
		   int half, uint32_t lane, uint32_t reg, uint32_t *value)
{
	value[0] = w->v[half][reg][lane] >> (a->part == SOFT_HIGH ? 16 : 0);
	for (int i = 1; i < a->bytes / 4; i++)
		value[i] = w->v[half][reg + i][lane];
}

/* --------------------------------------------------------- addresses ---- */

/* Up to gfx11_5 the offset of FLAT is unsigned, and its top bit is ignored. */
void soft_extend_offset(struct isa_inst *in)
{
	const bool wide = in->gen == ISA_GFX12;
	uint32_t *offset = &in->f[ISA_F_OFFSET];
	int unused = 0;

	switch (in->fmt) {
	case ISA_FMT_FLAT:
		if (!wide)
			*offset &= 0xfff;
		unused = wide ? 8 : 0;
		break;
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
		unused = wide ? 8 : 19;
		break;
	case ISA_FMT_SMEM:
		unused = wide ? 8 : 11;
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		unused = wide ? 8 : 0;
		break;
	}
	*offset = (uint32_t)((int32_t)(*offset << unused) >> unused);
}

static int32_t signed_offset(const struct soft_uop *u)
{
	return (int32_t)u->in.f[ISA_F_OFFSET];
}

static uint64_t vgpr_pair(const uint32_t (*v)[SOFT_LANES], uint32_t reg,
			  uint32_t lane)
{
	return v[reg][lane] | (uint64_t)v[reg + 1][lane] << 32;
}

static uint64_t global_address(const struct soft_wave *w,
			       const struct soft_uop *u, int h, uint32_t lane)
{
	const uint32_t *f = u->in.f;
	uint32_t saddr = f[ISA_F_SADDR];
	uint64_t at = (uint64_t)(int64_t)signed_offset(u);

	if (saddr == ISA_R_NULL)
		return at +
		       vgpr_pair((const void *)w->v[h], f[ISA_F_ADDR], lane);
	return at + w->s[saddr] + ((uint64_t)w->s[saddr + 1] << 32) +
	       w->v[h][f[ISA_F_ADDR]][lane];
}

/* SADDR + offset + 4 * lane: no address register. */
static uint64_t addtid_address(const struct soft_wave *w,
			       const struct soft_uop *u, int lane)
{
	uint32_t saddr = u->in.f[ISA_F_SADDR];
	uint64_t at = (uint64_t)(int64_t)signed_offset(u) + 4 * (uint64_t)lane;

	if (saddr == ISA_R_NULL)
		return at;
	return at + w->s[saddr] + ((uint64_t)w->s[saddr + 1] << 32);
}

static enum soft_space scratch_space(const struct soft_wave *w)
{
	return SOFT_SPACE_SCRATCH + w->group->env->swizzles_scratch;
}

static void flat_place(const struct soft_wave *w, const struct soft_uop *u,
		       enum soft_space scratch, int h, uint32_t lane,
		       struct soft_place *p)
{
	const struct soft_env *env = w->group->env;
	uint64_t at =
		vgpr_pair((const void *)w->v[h], u->in.f[ISA_F_ADDR], lane) +
		(uint64_t)(int64_t)signed_offset(u);

	p->space = SOFT_SPACE_MEMORY;
	p->at = at;
	if (at >= env->shared_base && at <= env->shared_limit) {
		p->space = SOFT_SPACE_LDS;
		p->at = at - env->shared_base;
	} else if (at >= env->private_base && at <= env->private_limit) {
		p->space = scratch;
		p->at = at - env->private_base;
	}
}

static uint32_t scratch_offset(const struct soft_wave *w,
			       const struct soft_uop *u, int h, uint32_t lane)
{
	const uint32_t *f = u->in.f;
	uint32_t at = (uint32_t)signed_offset(u);

	if (f[ISA_F_SVE])
		at += w->v[h][f[ISA_F_ADDR]][lane];
	if (f[ISA_F_SADDR] != ISA_R_NULL)
		at += w->s[f[ISA_F_SADDR]];
	return at;
}

/* `scratch` is scratch_space(), which no lane has to ask for again. */
static inline void find_place(const struct soft_wave *w,
			      const struct soft_uop *u, enum soft_space scratch,
			      int h, uint32_t lane, struct soft_place *p)
{
	p->lane = h * SOFT_LANES + (int)lane;
	if (u->in.fmt == ISA_FMT_GLOBAL) {
		p->space = SOFT_SPACE_MEMORY;
		p->at = global_address(w, u, h, lane);
	} else if (u->in.fmt == ISA_FMT_SCRATCH) {
		p->space = scratch;
		p->at = scratch_offset(w, u, h, lane);
	} else {
		flat_place(w, u, scratch, h, lane, p);
	}
}

void soft_find_place(const struct soft_wave *w, const struct soft_uop *u, int h,
		     uint32_t lane, struct soft_place *p)
{
	find_place(w, u, scratch_space(w), h, lane, p);
}

static void raise_outside(struct soft_wave *w, const struct soft_place *p,
			  bool write)
{
	bool lds = p->space == SOFT_SPACE_LDS;

	soft_raise(w, SOFT_FAULT_APERTURE,
		   "%s at offset 0x%llx of %s, which "
		   "has %u bytes%s",
		   write ? "write" : "read", (unsigned long long)p->at,
		   lds ? "LDS" : "scratch",
		   lds ? w->group->lds_size_bytes : w->scratch_lane_bytes,
		   lds ? "" : " per lane");
	soft_fault_at(w, p->at, write, p->lane);
}

/* Bytes in LDS or scratch, NULL after raising a fault. */
static inline __attribute__((always_inline)) uint8_t *
local_bytes(struct soft_wave *w, const struct soft_place *p,
	    uint32_t size_bytes, bool write)
{
	uint8_t *host = NULL;
	uint64_t n = w->scratch_lane_bytes;

	if (p->space == SOFT_SPACE_LDS)
		host = soft_lds_at(w, p->at, size_bytes);
	else if (size_bytes <= n && p->at <= n - size_bytes)
		host = w->scratch + n * (uint64_t)p->lane + p->at;
	if (!host)
		raise_outside(w, p, write);
	return host;
}

/* ---------------------------------------------------- loads, stores ---- */

/* The same where parts of dwords lie apart; false after raising a fault. */
static __attribute__((noinline)) bool
move_swizzled(struct soft_wave *w, const struct soft_place *p, void *value,
	      uint32_t size_bytes, bool write)
{
	const uint64_t end = p->at + size_bytes, wave = (uint64_t)w->wave_size;
	uint8_t *to = value;

	if (!local_bytes(w, p, size_bytes, write))
		return false;
	for (uint64_t at = p->at; at < end;) {
		const uint64_t next = at / 4 * 4 + 4;
		const size_t n = (size_t)((next < end ? next : end) - at);
		uint8_t *host = w->scratch +
				(at / 4 * wave + (uint64_t)p->lane) * 4 +
				at % 4;

		memcpy(write ? host : to, write ? to : host, n);
		to += n, at += n;
	}
	return true;
}

static bool load_lane(struct soft_wave *w, const struct soft_place *p,
		      uint32_t *value, uint32_t size_bytes)
{
	const uint8_t *host;

	if (p->space == SOFT_SPACE_MEMORY)
		return soft_load(w, p->at, value, size_bytes, p->lane);
	if (p->space == SOFT_SPACE_SWIZZLED)
		return move_swizzled(w, p, value, size_bytes, false);
	host = local_bytes(w, p, size_bytes, false);
	if (host)
		memcpy(value, host, size_bytes);
	return host;
}

static bool store_lane(struct soft_wave *w, const struct soft_place *p,
		       const uint32_t *value, uint32_t size_bytes)
{
	uint8_t *host;

	if (p->space == SOFT_SPACE_MEMORY)
		return soft_store(w, p->at, value, size_bytes, p->lane);
	if (p->space == SOFT_SPACE_SWIZZLED)
		return move_swizzled(w, p, (void *)(uintptr_t)value, size_bytes,
				     true);
	host = local_bytes(w, p, size_bytes, true);
	if (host)
		memcpy(host, value, size_bytes);
	return host;
}

bool soft_move_lane(struct soft_wave *w, const struct soft_place *p,
		    const struct soft_access *a, uint32_t *value, bool store)
{
	return store ? store_lane(w, p, value, a->bytes) :
		       load_lane(w, p, value, a->bytes);
}

static void run_load(struct soft_wave *w, const struct soft_uop *u)
{
	const enum soft_space scratch = scratch_space(w);
	const struct soft_access *a = u->op;
	struct soft_place p;
	uint32_t value[4] = { 0 };

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			find_place(w, u, scratch, h, lane, &p);
			if (!load_lane(w, &p, value, a->bytes))
				return;
			soft_put_lane(w, a, h, lane, u->in.f[ISA_F_VDST],
				      value);
		}
	}
}

/* gfx10's loads to LDS. */
static void run_to_lds(struct soft_wave *w, const struct soft_uop *u)
{
	const enum soft_space scratch = scratch_space(w);
	const struct soft_access *a = u->op;
	struct soft_place p;
	uint32_t value = 0;

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			find_place(w, u, scratch, h, lane, &p);
			if (!load_lane(w, &p, &value, a->bytes) ||
			    !soft_load_to_lds(w, u, soft_extend(a, value),
					      p.lane))
				return;
		}
	}
}

static void run_store(struct soft_wave *w, const struct soft_uop *u)
{
	const enum soft_space scratch = scratch_space(w);
	const struct soft_access *a = u->op;
	struct soft_place p;
	uint32_t value[4];

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			find_place(w, u, scratch, h, lane, &p);
			soft_get_lane(w, a, h, lane, u->in.f[ISA_F_DATA0],
				      value);
			if (!store_lane(w, &p, value, a->bytes))
				return;
		}
	}
}

static void run_load_addtid(struct soft_wave *w, const struct soft_uop *u)
{
	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			int l = h * SOFT_LANES + (int)lane;

			if (!soft_load(w, addtid_address(w, u, l),
				       &w->v[h][u->in.f[ISA_F_VDST]][lane], 4,
				       l))
				return;
		}
	}
}

static void run_store_addtid(struct soft_wave *w, const struct soft_uop *u)
{
	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			int l = h * SOFT_LANES + (int)lane;

			if (!soft_store(w, addtid_address(w, u, l),
					&w->v[h][u->in.f[ISA_F_DATA0]][lane], 4,
					l))
				return;
		}
	}
}

/* ----------------------------------------------------------- atomics ---- */

/* Where an atomic works, or NULL after raising a fault. */
static void *atomic_host(struct soft_wave *w, const struct soft_place *p,
			 uint32_t size_bytes)
{
	if (p->at & (size_bytes - 1)) {
		soft_raise(w, SOFT_FAULT_ALIGN,
			   "atomic of %u bytes at 0x%llx: not aligned",
			   size_bytes, (unsigned long long)p->at);
		soft_fault_at(w, p->at, true, p->lane);
		return NULL;
	}
	if (p->space == SOFT_SPACE_MEMORY)
		return soft_host_address(w, p->at, size_bytes,
					 SOFT_MEM_READ | SOFT_MEM_WRITE,
					 p->lane);
	return local_bytes(w, p, size_bytes, true);
}

/* LDS and scratch may be unaligned on the host, and belong to one thread. */
static uint64_t apply_local(struct soft_wave *w, const struct soft_place *p,
			    void *host, const struct soft_access *a, uint64_t x,
			    uint64_t y)
{
	const bool apart = p->space == SOFT_SPACE_SWIZZLED;
	uint64_t old = 0, new;

	if (apart)
		move_swizzled(w, p, &old, a->bytes, false);
	else
		memcpy(&old, host, a->bytes);
	new = a->fn(old, x, y, w->mode);
	if (apart)
		move_swizzled(w, p, &new, a->bytes, true);
	else
		memcpy(host, &new, a->bytes);
	return old;
}

void soft_get_operands(const struct soft_wave *w, const struct soft_access *a,
		       int half, uint32_t lane, uint32_t reg, uint64_t *x,
		       uint64_t *y)
{
	struct soft_access all = { .bytes = a->two ? 2 * a->bytes : a->bytes };
	uint32_t v[4] = { 0 };

	soft_get_lane(w, &all, half, lane, reg, v);
	*x = a->bytes == 8 ? v[0] | (uint64_t)v[1] << 32 : v[0];
	*y = a->bytes == 8 ? v[2] | (uint64_t)v[3] << 32 : v[1];
}

void soft_put_old(struct soft_wave *w, const struct soft_access *a, int half,
		  uint32_t lane, uint32_t reg, uint64_t old)
{
	uint32_t value[2] = { (uint32_t)old, (uint32_t)(old >> 32) };

	soft_put_lane(w, a, half, lane, reg, value);
}

static bool atomic_lane(struct soft_wave *w, const struct soft_uop *u, int h,
			uint32_t lane)
{
	const struct soft_access *a = u->op;
	struct soft_place p;
	uint64_t x, y, old;
	void *host;

	soft_find_place(w, u, h, lane, &p);
	host = atomic_host(w, &p, a->bytes);
	if (!host)
		return false;
	soft_get_operands(w, a, h, lane, u->in.f[ISA_F_DATA0], &x, &y);
	if (p.space == SOFT_SPACE_MEMORY)
		old = soft_atomic_apply(host, a->bytes, a->fn, x, y, w->mode);
	else
		old = apply_local(w, &p, host, a, x, y);
	if (u->in.f[ISA_F_GLC])
		soft_put_old(w, a, h, lane, u->in.f[ISA_F_VDST], old);
	return true;
}

static void run_atomic(struct soft_wave *w, const struct soft_uop *u)
{
	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
	if (!atomic_lane(w, u, h, lane))
		return;
}

/* ------------------------------------------------------------- table ---- */

/* clang-format off */
/*
 * LOAD(u8, 1, 0, SOFT_WHOLE) makes three rows, of which the first is
 *
 *	[ISA_flat_load_u8] = { run_load, { .bytes = 1, .is_signed = 0,
 *					   .part = SOFT_WHOLE } },
 */
#define LOAD_AT(space, name, b, sgn, prt)                                 \
	[ISA_##space##_load_##name] = { run_load, { .bytes = b,           \
		.is_signed = sgn, .part = prt } },
#define STORE_AT(space, name, b, prt)                                     \
	[ISA_##space##_store_##name] = { run_store, { .bytes = b,         \
		.part = prt } },
#define ATOMIC_AT(space, name, b, f, pair)                                \
	[ISA_##space##_atomic_##name] = { run_atomic, { .bytes = b,       \
		.fn = soft_atomic_##f, .two = pair } },
#define TO_LDS(name, b, sgn)                                              \
	[ISA_global_load_lds_##name] = { run_to_lds, { .bytes = b,            \
		.is_signed = sgn } },                                     \
	[ISA_scratch_load_lds_##name] = { run_to_lds, { .bytes = b,           \
		.is_signed = sgn } },
#define LOAD(...)                                                         \
	LOAD_AT(flat, __VA_ARGS__)                                        \
	LOAD_AT(global, __VA_ARGS__)                                      \
	LOAD_AT(scratch, __VA_ARGS__)
#define STORE(...)                                                        \
	STORE_AT(flat, __VA_ARGS__)                                       \
	STORE_AT(global, __VA_ARGS__)                                     \
	STORE_AT(scratch, __VA_ARGS__)
#define ATOMIC_ROW(...)                                                   \
	ATOMIC_AT(flat, __VA_ARGS__)                                      \
	ATOMIC_AT(global, __VA_ARGS__)

static const struct {
	soft_handler *fn;
	struct soft_access access;
} table[ISA_OP_COUNT] = {
#include "kfd/soft/exec/vmem.def"
	ATOMIC_AT(global, csub_u32, 4, csub_32, false)
	TO_LDS(u8, 1, false)
	TO_LDS(i8, 1, true)
	TO_LDS(u16, 2, false)
	TO_LDS(i16, 2, true)
	TO_LDS(b32, 4, false)
	[ISA_global_load_addtid_b32] = { run_load_addtid, { .bytes = 4 } },
	[ISA_global_store_addtid_b32] = { run_store_addtid, { .bytes = 4 } },
	/* What is written is seen at once. */
	[ISA_global_wb] = { soft_run_nothing, { 0 } },
	[ISA_global_inv] = { soft_run_invalidate, { 0 } },
	[ISA_global_wbinv] = { soft_run_invalidate, { 0 } },
};
/* clang-format on */

const struct soft_access *soft_vmem_plain(const struct soft_uop *u, bool *store)
{
	*store = u->fn == run_store;
	return u->fn == run_load || *store ? u->op : NULL;
}

const struct soft_access *soft_vmem_atomic(const struct soft_uop *u)
{
	const struct soft_access *a = u->op;

	return u->fn == run_atomic && !a->two ? a : NULL;
}

soft_handler *soft_vmem_handler(const struct isa_inst *in, const void **op)
{
	if (in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF)
		return soft_buffer_handler(in, op);
	if (in->fmt == ISA_FMT_MIMG)
		return soft_image_handler(in);
	*op = &table[in->op].access;
	return table[in->op].fn ? table[in->op].fn :
				  soft_gfx12_vmem_handler(in, op);
}
