/*
 * kfd/soft/exec/fast/microop_mem_simd.c - where the lanes of a memory instruction are, and
 * the steps that move them (step_mem.h).
 */
#include "kfd/soft/exec/fast/microop_mem.h"
#include "kfd/soft/exec/fast/microop_lanes.h"

/* A half whose lanes are placed; `offset` is for those that make their own. */
struct placed {
	struct soft_move m;
	uint32_t *offset; /* [SOFT_LANES] */
	uint32_t low;	  /* of the address to which offsets are added */
};

typedef bool place_fn(struct soft_wave *w, const struct soft_step *s,
		      const uintptr_t *base, int h, struct placed *p);
#define PLACE(name)                                                            \
	static inline bool name(struct soft_wave *w,                           \
				const struct soft_step *s,                     \
				const uintptr_t *base, int h,                  \
				struct placed *p)
#define ALWAYS static inline __attribute__((always_inline))

static inline const uint32_t *address_plane(const struct soft_step *s,
					    const uintptr_t *base, int h)
{
	return (const uint32_t *)(base[h] + s->a);
}

/* ---------------------------------------------------------- GPU memory ---- */

static inline const struct soft_range *find(struct soft_wave *w, uint64_t va)
{
	const struct soft_range *r = w->group->code->recent;

	for (int i = 0; i < SOFT_RECENT; i++, r++)
		if (va - r->va < r->size_bytes)
			return r;
	return soft_step_find(w, va);
}

/*
 * Lanes at `at` plus their 32-bit offsets: all in the mapping of the first one
 * that executes?
 */
static inline bool reach(struct soft_wave *w, const struct soft_step *s,
			 uint64_t at, uint32_t bytes, struct placed *p,
			 const struct soft_range **range)
{
	const uint32_t *off = p->m.offset;
	uint64_t va = at + off[__builtin_ctz(p->m.exec)];
	const struct soft_range *r = find(w, va);
	uint64_t low, high;

	if (!r || (r->flags & s->mods[1]) != s->mods[1] ||
	    r->size_bytes < bytes)
		return false;
	/*
	 * Offsets from low to high are good; neither need fit 32 bits.  `at`
	 * may be below the range or, as addresses wrap, beyond its end.
	 */
	low = (int64_t)(r->va - at) > 0 ? r->va - at : 0;
	high = r->va + (r->size_bytes - bytes) - at;
	if (low > UINT32_MAX || (int64_t)high < 0)
		return false;
	high = high > UINT32_MAX ? UINT32_MAX : high;
	if (high < low || (lanes_outside(off, (uint32_t)low,
					 (uint32_t)(high - low)) & p->m.exec))
		return false;
	/* Counted in integers: `at` itself need not be in the mapping. */
	p->m.host = (uint8_t *)((uintptr_t)r->host + (uintptr_t)(at - r->va));
	p->low = (uint32_t)at;
	*range = r;
	return true;
}

/* imm: the signed offset. */
PLACE(at_saddr)
{
	uint64_t at = w->s[s->c] | (uint64_t)w->s[s->c + 1] << 32;
	const struct soft_range *r;

	p->m.offset = address_plane(s, base, h);
	at += (uint64_t)(int64_t)(int32_t)s->imm;
	return reach(w, s, at, s->mods[0], p, &r);
}

/* Lanes with different upper halves of their addresses are not for us. */
static inline bool at_pair(struct soft_wave *w, const struct soft_step *s,
			   const uintptr_t *base, int h, struct placed *p,
			   const struct soft_range **r)
{
	const uint32_t *low = address_plane(s, base, h);
	const uint32_t *high = low + SOFT_LANES;
	uint32_t any = high[__builtin_ctz(p->m.exec)];
	uint64_t at = (uint64_t)any << 32;

	p->m.offset = low;
	if (lanes_differ(high, any) & p->m.exec)
		return false;
	at += (uint64_t)(int64_t)(int32_t)s->imm;
	return reach(w, s, at, s->mods[0], p, r);
}

PLACE(at_vaddr)
{
	const struct soft_range *r;

	return at_pair(w, s, base, h, p, &r);
}

static inline bool meets(const struct soft_range *r, uint64_t first,
			 uint64_t last)
{
	return r->va <= last && r->va + r->size_bytes > first;
}

/* LDS and scratch begin where nothing is mapped. */
PLACE(at_flat)
{
	const struct soft_env *env = w->group->env;
	const struct soft_range *r;

	return at_pair(w, s, base, h, p, &r) &&
	       !meets(r, env->shared_base, env->shared_limit) &&
	       !meets(r, env->private_base, env->private_limit);
}

/*
 * Raw and linear: no index, an offset in bytes that is checked against the
 * number of records (buffer.c).
 */
PLACE(at_buffer)
{
	const uint32_t *d = &w->s[s->c];
	const struct isa_operand *o = s->u->in.opnd;
	uint32_t soffset = 0, bytes = s->mods[0];
	const struct soft_range *r;
	uint64_t at;

	while (o->slot != ISA_SLOT_SOFFSET)
		o++;
	soffset = (uint32_t)soft_read_scalar(w, o, &s->u->in);
	/* Swizzled; or indexed by the lane; or checked in another way. */
	if (d[1] >> 30 || d[3] >> 23 & 1 || (d[3] >> 28 & 3) != 3 ||
	    (uint64_t)bytes + soffset > d[2])
		return false;
	p->m.offset = p->offset;
	if (s->part)
		LANES(i) p->offset[i] = address_plane(s, base, h)[i] + s->imm;
	else
		LANES(i) p->offset[i] = s->imm;
	if (lanes_outside(p->offset, 0, d[2] - bytes - soffset) & p->m.exec)
		return false;
	at = (d[0] | (uint64_t)(d[1] & 0xffff) << 32) + soffset;
	return reach(w, s, at, bytes, p, &r);
}

/* ----------------------------------------------------- LDS and scratch ---- */

static inline bool in_lds(const struct soft_wave *w, const uint32_t *off,
			  uint32_t imm, uint32_t bytes, uint32_t exec)
{
	uint64_t size = w->group->lds_size_bytes, need = (uint64_t)imm + bytes;

	return need <= size &&
	       !(lanes_outside(off, 0, (uint32_t)(size - need)) & exec);
}

PLACE(at_lds)
{
	p->m.offset = address_plane(s, base, h);
	p->m.host = w->group->lds + s->imm;
	p->low = s->imm;
	return in_lds(w, p->m.offset, s->imm, s->mods[0], p->m.exec);
}

/* The addresses are copied: the first load may overwrite them. */
PLACE(at_lds2)
{
	uint32_t second = (uint32_t)s->c;
	uint32_t last = s->imm > second ? s->imm : second;

	memcpy(p->offset, address_plane(s, base, h), SOFT_LANES * 4);
	p->m.offset = p->offset;
	p->m.host = w->group->lds + s->imm;
	return in_lds(w, p->offset, last, s->mods[0], p->m.exec);
}

#define MOST_SCRATCH (1u << 26) /* of a lane, for offsets of 32 bits */

/* [lane][scratch_lane_bytes]; offsets wrap in 32 bits. */
PLACE(at_scratch)
{
	const uint32_t n = w->scratch_lane_bytes, bytes = s->mods[0];
	uint32_t at = s->imm;

	if (n < bytes || n > MOST_SCRATCH)
		return false;
	if (s->c != ISA_R_NULL)
		at += w->s[s->c];
	p->m.offset = p->offset;
	p->m.host = w->scratch + (uint64_t)h * SOFT_LANES * n;
	if (s->part)
		LANES(i) p->offset[i] = address_plane(s, base, h)[i] + at;
	else
		LANES(i) p->offset[i] = at;
	if (lanes_outside(p->offset, 0, n - bytes) & p->m.exec)
		return false;
	LANES(i) p->offset[i] += lanes_number[i] * n;
	return true;
}

/* --------------------------------------------------------------- steps ---- */

/* Both addresses of a lane before the next lane's, as in the handler. */
static inline void store_pairs(const struct soft_move *m, uint8_t *other,
			       const uint32_t *data, uint32_t dwords)
{
	for (uint32_t rest = m->exec; rest; rest &= rest - 1) {
		int i = __builtin_ctz(rest);
		uint8_t *p = m->host + m->offset[i], *q = other + m->offset[i];

		for (uint32_t j = 0; j < dwords; j++)
			memcpy(p + 4 * j, &m->data[j * SOFT_LANES + i], 4);
		for (uint32_t j = 0; j < dwords; j++)
			memcpy(q + 4 * j, &data[j * SOFT_LANES + i], 4);
	}
}

static inline void move(const struct soft_wave *w, const struct soft_step *s,
			const uintptr_t *base, int h, bool two,
			struct placed *p)
{
	soft_move_fn *fn = (soft_move_fn *)s->b;
	uint32_t *data;
	uint8_t *host;

	if (!p->m.exec)
		return;
	p->m.data = (uint32_t *)(base[h] + s->d);
	if (!two) {
		fn(&p->m);
		return;
	}
	host = w->group->lds + (uint32_t)s->c;
	data = (uint32_t *)(base[h] + (s->c >> 32));
	if (s->mods[1] & SOFT_MEM_WRITE) {
		store_pairs(&p->m, host, data, s->mods[0] / 4);
		return;
	}
	fn(&p->m);
	p->m.host = host;
	p->m.data = data;
	fn(&p->m);
}

/*
 * All halves are placed before any of them moves; unrolled, for a loop would
 * have to look up in memory what is known of a place.
 */
ALWAYS bool move_all(struct soft_wave *w, const struct soft_step *s,
		     const uintptr_t *base, place_fn *where, bool wide,
		     bool two)
{
	_Alignas(64) uint32_t own[2][SOFT_LANES];
	struct placed p[2];

#pragma GCC unroll 2
	for (int h = 0; h <= wide; h++) {
		p[h].m.exec = w->s[ISA_R_EXEC_LO + h];
		p[h].offset = own[h];
		if (p[h].m.exec && !where(w, s, base, h, &p[h]))
			return false;
	}
#pragma GCC unroll 2
	for (int h = 0; h <= wide; h++)
		move(w, s, base, h, two, &p[h]);
	return true;
}

/* ------------------------------------------------------------- atomics ---- */

static inline bool is_aligned(const struct placed *p, uint32_t bytes)
{
	uint32_t odd = 0;

	LANES(i)
	odd |= (p->m.offset[i] + p->low) & (p->m.exec & step_bit[i] ? ~0u : 0);
	return !(odd & (bytes - 1));
}

/* LDS belongs to one thread, memory to all. */
static inline uint64_t apply(const struct soft_wave *w, soft_atomic_fn *fn,
			     uint8_t *p, int bytes, uint64_t a, bool lds)
{
	uint64_t old = 0, new;

	if (!lds && fn == soft_atomic_add_32)
		return __atomic_fetch_add((uint32_t *)(void *)p, (uint32_t)a,
					  __ATOMIC_SEQ_CST);
	if (!lds)
		return soft_atomic_apply(p, bytes, fn, a, 0, w->mode);
	memcpy(&old, p, (size_t)bytes);
	new = fn == soft_atomic_add_32 ? old + a : fn(old, a, 0, w->mode);
	memcpy(p, &new, (size_t)bytes);
	return old;
}

/* b: what is done; mods[2]: the old values go to VGPR mask_in. */
static inline void modify_32(struct soft_wave *w, const struct soft_step *s,
			     const uintptr_t *base, int h, bool lds,
			     struct placed *p)
{
	soft_atomic_fn *fn = (soft_atomic_fn *)s->b;
	const uint32_t *data = (const uint32_t *)(base[h] + s->d);
	uint32_t *to = (uint32_t *)base[h] + s->mask_in * SOFT_LANES;

	for (uint32_t rest = p->m.exec; rest; rest &= rest - 1) {
		int i = __builtin_ctz(rest);
		uint64_t old = apply(w, fn, p->m.host + p->m.offset[i], 4,
				     data[i], lds);

		if (s->mods[2])
			to[i] = (uint32_t)old;
	}
}

static inline void modify_64(struct soft_wave *w, const struct soft_step *s,
			     const uintptr_t *base, int h, bool lds,
			     struct placed *p)
{
	soft_atomic_fn *fn = (soft_atomic_fn *)s->b;
	const uint32_t *data = (const uint32_t *)(base[h] + s->d);
	uint32_t *to = (uint32_t *)base[h] + s->mask_in * SOFT_LANES;

	for (uint32_t rest = p->m.exec; rest; rest &= rest - 1) {
		int i = __builtin_ctz(rest);
		uint64_t old = apply(w, fn, p->m.host + p->m.offset[i], 8,
				     soft_get64(data, i), lds);

		if (s->mods[2])
			soft_put64(to, i, old);
	}
}

static inline void modify(struct soft_wave *w, const struct soft_step *s,
			  const uintptr_t *base, int h, bool lds,
			  struct placed *p)
{
	if (s->mods[0] == 4)
		modify_32(w, s, base, h, lds, p);
	else
		modify_64(w, s, base, h, lds, p);
}

/* The registers of results may be those of addresses: lanes are independent. */
ALWAYS bool modify_all(struct soft_wave *w, const struct soft_step *s,
		       const uintptr_t *base, place_fn *where, bool wide,
		       bool lds)
{
	struct placed p[2];

	for (int h = 0; h <= wide; h++) {
		p[h].m.exec = w->s[ISA_R_EXEC_LO + h];
		if (p[h].m.exec && (!where(w, s, base, h, &p[h]) ||
				    !is_aligned(&p[h], s->mods[0])))
			return false;
	}
	for (int h = 0; h <= wide; h++)
		modify(w, s, base, h, lds, &p[h]);
	return true;
}

/* --------------------------------------------------------------- table ---- */

/* X(where, name, flag): flag is `two` of moves and `lds` of atomics. */
#define ALL_MOVES(X)                                                           \
	X(SADDR, at_saddr, false) X(VADDR, at_vaddr, false)                    \
	X(FLAT, at_flat, false) X(LDS, at_lds, false) X(LDS2, at_lds2, true)   \
	X(SCRATCH, at_scratch, false) X(BUFFER, at_buffer, false)
#define ALL_ATOMICS(X)                                                         \
	X(SADDR, at_saddr, false) X(VADDR, at_vaddr, false)                    \
	X(FLAT, at_flat, false) X(LDS, at_lds, true)

/*
 * A step, or the handler where that is not possible.  What has locals in memory
 * is a function of its own: a step with such could not jump to the next one,
 * and stretches would nest as deep as they are long.
 */
#define STEP(all, where, wide, flag)                                           \
	static __attribute__((noinline)) bool all##_##where##_##wide(          \
		struct soft_wave *w, const struct soft_step *s,                \
		const uintptr_t *base)                                         \
	{                                                                      \
		return all(w, s, base, where, wide, flag);                     \
	}                                                                      \
	static void step_##all##_##where##_##wide(struct soft_wave *w,         \
						  const struct soft_step *s,   \
						  const uintptr_t *base)       \
	{                                                                      \
		if (__builtin_expect(all##_##where##_##wide(w, s, base), 1))   \
			SOFT_NEXT(w, s, base);                                 \
		else                                                           \
			soft_step_checked(w, s, base);                         \
	}
#define MOVE(at, where, flag)                                                  \
	STEP(move_all, where, 0, flag) STEP(move_all, where, 1, flag)
#define MODIFY(at, where, flag)                                                \
	STEP(modify_all, where, 0, flag) STEP(modify_all, where, 1, flag)
ALL_MOVES(MOVE)
ALL_ATOMICS(MODIFY)

#define MOVE_ROW(at, where, flag)                                              \
	[SOFT_AT_##at] = { step_move_all_##where##_0,                          \
			   step_move_all_##where##_1 },
#define MODIFY_ROW(at, where, flag)                                            \
	[SOFT_AT_##at] = { step_modify_all_##where##_0,                        \
			   step_modify_all_##where##_1 },
const struct soft_mem_steps SIMD(soft_mem_steps) = {
	.step = { ALL_MOVES(MOVE_ROW) },
	.atomic = { ALL_ATOMICS(MODIFY_ROW) },
};
