/*
 * kfd/soft/exec/fast/microop_mem_simd.c - microops of memory instructions.
 *
 * They find out where the lanes are; what moves them is in microop_move_simd.c.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/microop_atomic.h"
#include "kfd/soft/exec/fast/microop_line.h"

/* A half whose lanes are placed; `offset` is for those that make their own. */
struct placed {
	struct soft_move m;
	uint32_t *offset; /* [SOFT_LANES] */
	uint32_t low;	  /* of the address to which offsets are added */
	const struct soft_range *range; /* of memory that they are in */
};

typedef bool place_fn(struct soft_wave *w, const struct soft_microop *m,
		      const uintptr_t *base, int h, struct placed *p);
#define ALWAYS static inline __attribute__((always_inline))

static inline const uint32_t *address_vreg(const struct soft_microop *m,
					   const uintptr_t *base, int h)
{
	return (const uint32_t *)(base[h] + m->a);
}

/* ---------------------------------------------------------- GPU memory ---- */

static inline const struct soft_range *recent_range(struct soft_wave *w,
						    uint64_t va)
{
	const struct soft_range *r = w->group->code->recent;

	for (int i = 0; i < SOFT_RECENT; i++, r++)
		if (va - r->va < r->size_bytes)
			return r;
	return soft_find_range(w, va);
}

/*
 * Lanes at `at` plus their 32-bit offsets: all in the mapping of the first one
 * that executes?
 */
static inline bool place_in_range(struct soft_wave *w,
				  const struct soft_microop *m, uint64_t at,
				  uint32_t bytes, struct placed *p)
{
	const uint32_t *off = p->m.offset;
	uint64_t va = at + off[__builtin_ctz(p->m.exec)];
	const struct soft_range *r = recent_range(w, va);
	uint64_t low, high;

	if (!r || (r->flags & m->mods[1]) != m->mods[1] ||
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
	p->range = r;
	return true;
}

/*
 * Four dwords, of lanes in no line: fetches what the next trip loads if it goes
 * on as this one did since the last, if at all.  Rows of a matrix are too far
 * apart for the host to see.
 */
static inline void fetch_next(struct soft_wave *w, const struct soft_microop *m,
			      const struct placed *p)
{
	const uint32_t *off = p->m.offset;
	const int step = off[1] - off[0] == 16 ? 4 : 1; /* to the next line */
	const int lanes = off[16] == off[0] ? 16 : SOFT_LANES;
	uintptr_t host = (uintptr_t)p->m.host, next;
	uintptr_t *last = &w->last_load[m->mask_in];

	if (m->mods[0] != 16 || m->mods[1] != SOFT_MEM_READ ||
	    *last == host + off[0])
		return;
	next = host + (host + off[0] - *last);
	*last = host + off[0];
	for (int i = 0; i < lanes; i += step)
		__builtin_prefetch((const void *)(next + off[i]));
}

/* imm: the signed offset. */
static inline bool place_saddr(struct soft_wave *w,
			       const struct soft_microop *m,
			       const uintptr_t *base, int h, struct placed *p)
{
	uint64_t at = w->s[m->c] | (uint64_t)w->s[m->c + 1] << 32;

	p->m.offset = address_vreg(m, base, h);
	at += (uint64_t)(int64_t)(int32_t)m->imm;
	if (!place_in_range(w, m, at, m->mods[0], p))
		return false;
	fetch_next(w, m, p);
	return true;
}

/* Lanes with different upper halves of their addresses are not for us. */
static inline bool place_pair(struct soft_wave *w, const struct soft_microop *m,
			      const uintptr_t *base, int h, struct placed *p)
{
	const uint32_t *low = address_vreg(m, base, h);
	const uint32_t *high = low + SOFT_LANES;
	uint32_t any = high[__builtin_ctz(p->m.exec)];
	uint64_t at = (uint64_t)any << 32;

	p->m.offset = low;
	if (lanes_differ(high, any) & p->m.exec)
		return false;
	at += (uint64_t)(int64_t)(int32_t)m->imm;
	return place_in_range(w, m, at, m->mods[0], p);
}

static inline bool place_vaddr(struct soft_wave *w,
			       const struct soft_microop *m,
			       const uintptr_t *base, int h, struct placed *p)
{
	if (!place_pair(w, m, base, h, p))
		return false;
	fetch_next(w, m, p);
	return true;
}

static inline bool overlaps_aperture(const struct soft_range *r, uint64_t first,
				     uint64_t last)
{
	return r->va <= last && r->va + r->size_bytes > first;
}

/* LDS and scratch begin where nothing is mapped. */
static inline bool place_flat(struct soft_wave *w, const struct soft_microop *m,
			      const uintptr_t *base, int h, struct placed *p)
{
	const struct soft_env *env = w->group->env;

	return place_pair(w, m, base, h, p) &&
	       !overlaps_aperture(p->range, env->shared_base,
				  env->shared_limit) &&
	       !overlaps_aperture(p->range, env->private_base,
				  env->private_limit);
}

#define MOST_SCRATCH (1u << 26) /* of a lane, for offsets of 32 bits */

/*
 * Scratch memory of chips that have no other way to it: swizzled by dwords, of
 * which those of all lanes follow each other, and not bounded (buffer.c).
 */
static inline bool place_lanes(struct soft_wave *w, const struct soft_microop *m,
			       const uintptr_t *base, int h, struct placed *p)
{
	const uint32_t bytes = m->mods[0];
	struct soft_buffer b;

	soft_buffer_init(&b, w, m->u);
	if (bytes > 4 || b.element != 4 || b.oob != SOFT_OOB_NO_RECORDS ||
	    !b.records || b.index_stride < (uint32_t)w->wave_size)
		return false;
	p->m.offset = p->offset;
	LANES(i)
	p->offset[i] = (m->part ? address_vreg(m, base, h)[i] : 0) + m->imm;
	if (lanes_outside(p->offset, 0, MOST_SCRATCH / 4) & p->m.exec)
		return false;
	LANES(i)
	p->offset[i] = (p->offset[i] & ~3u) * b.index_stride +
		       (p->offset[i] & 3) +
		       4 * ((uint32_t)h * SOFT_LANES + lanes_number[i]);
	return place_in_range(w, m, b.base + b.soffset, bytes, p);
}

/*
 * Raw and linear: no index, an offset in bytes that is checked against the
 * number of records (buffer.c).
 */
static inline bool place_buffer(struct soft_wave *w,
				const struct soft_microop *m,
				const uintptr_t *base, int h, struct placed *p)
{
	const uint32_t *d = &w->s[m->c];
	const struct isa_operand *o = m->u->in.opnd;
	uint32_t soffset = 0, bytes = m->mods[0];
	uint64_t at;

	if (d[1] >> 30 && d[3] >> 23 & 1)
		return place_lanes(w, m, base, h, p);
	while (o->slot != ISA_SLOT_SOFFSET)
		o++;
	soffset = (uint32_t)soft_read_scalar(w, o, &m->u->in);
	/* Swizzled; or indexed by the lane; or checked in another way. */
	if (d[1] >> 30 || d[3] >> 23 & 1 || (d[3] >> 28 & 3) != 3 ||
	    (uint64_t)bytes + soffset > d[2])
		return false;
	p->m.offset = p->offset;
	if (m->part)
		LANES(i) p->offset[i] = address_vreg(m, base, h)[i] + m->imm;
	else
		LANES(i) p->offset[i] = m->imm;
	if (lanes_outside(p->offset, 0, d[2] - bytes - soffset) & p->m.exec)
		return false;
	at = soft_canonical(d[0] | (uint64_t)(d[1] & 0xffff) << 32) + soffset;
	return place_in_range(w, m, at, bytes, p);
}

/* ----------------------------------------------------- LDS and scratch ---- */

static inline bool in_lds(const struct soft_wave *w, const uint32_t *off,
			  uint32_t imm, uint32_t bytes, uint32_t exec)
{
	uint64_t size = w->group->lds_size_bytes, need = (uint64_t)imm + bytes;

	return need <= size &&
	       !(lanes_outside(off, 0, (uint32_t)(size - need)) & exec);
}

static inline bool place_lds(struct soft_wave *w, const struct soft_microop *m,
			     const uintptr_t *base, int h, struct placed *p)
{
	p->m.offset = address_vreg(m, base, h);
	p->m.host = w->group->lds + m->imm;
	p->low = m->imm;
	return in_lds(w, p->m.offset, m->imm, m->mods[0], p->m.exec);
}

/* The addresses are copied: the first load may overwrite them. */
static inline bool place_lds2(struct soft_wave *w, const struct soft_microop *m,
			      const uintptr_t *base, int h, struct placed *p)
{
	uint32_t second = (uint32_t)m->c;
	uint32_t last = m->imm > second ? m->imm : second;

	memcpy(p->offset, address_vreg(m, base, h), SOFT_LANES * 4);
	p->m.offset = p->offset;
	p->m.host = w->group->lds + m->imm;
	return in_lds(w, p->offset, last, m->mods[0], p->m.exec);
}

/* Where the lanes' bytes begin in their own; offsets wrap in 32 bits. */
static inline bool find_scratch(struct soft_wave *w,
				const struct soft_microop *m,
				const uintptr_t *base, int h, struct placed *p)
{
	const uint32_t n = w->scratch_lane_bytes, bytes = m->mods[0];
	uint32_t at = m->imm;

	if (n < bytes || n > MOST_SCRATCH)
		return false;
	if (m->c != ISA_R_NULL)
		at += w->s[m->c];
	p->m.offset = p->offset;
	if (m->part)
		LANES(i) p->offset[i] = address_vreg(m, base, h)[i] + at;
	else
		LANES(i) p->offset[i] = at;
	return !(lanes_outside(p->offset, 0, n - bytes) & p->m.exec);
}

/* [lane][scratch_lane_bytes] */
static inline bool place_scratch(struct soft_wave *w,
				 const struct soft_microop *m,
				 const uintptr_t *base, int h, struct placed *p)
{
	const uint32_t n = w->scratch_lane_bytes;

	if (!find_scratch(w, m, base, h, p))
		return false;
	p->m.host = w->scratch + (uint64_t)h * SOFT_LANES * n;
	LANES(i) p->offset[i] += lanes_number[i] * n;
	return true;
}

/* [scratch_lane_bytes / 4][lane of the wave][4], none across two dwords */
static inline bool place_swizzled(struct soft_wave *w,
				  const struct soft_microop *m,
				  const uintptr_t *base, int h,
				  struct placed *p)
{
	const uint32_t most = m->mods[0] < 4 ? 4u - m->mods[0] : 0;
	const uint32_t line = 4 * (uint32_t)w->wave_size;
	uint32_t odd = 0;

	if (!find_scratch(w, m, base, h, p))
		return false;
	LANES(i)
	odd |= (p->offset[i] & 3) > most ? p->m.exec & soft_lane_bit[i] : 0;
	if (odd)
		return false;
	p->m.host =
		w->scratch + (uint64_t)h * SOFT_LANES * 4 + m->mask_in * line;
	LANES(i)
	p->offset[i] = p->offset[i] / 4 * line + 4 * lanes_number[i] +
		       p->offset[i] % 4;
	return true;
}

/* ------------------------------------------------------------ microops ---- */

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

/* Lanes in a line that no other lane's second address touches: any order. */
static inline bool is_apart(const struct soft_move *m, const uint8_t *other,
			    uint32_t bytes)
{
	ptrdiff_t distance = other - m->host;

	return m->exec == ~0u && !lanes_off_line(m->offset, bytes) &&
	       (distance >= (ptrdiff_t)(SOFT_LANES * bytes) ||
		-distance >= (ptrdiff_t)(SOFT_LANES * bytes));
}

static inline void move_half(const struct soft_wave *w,
			     const struct soft_microop *m,
			     const uintptr_t *base, int h, bool two,
			     struct placed *p)
{
	soft_move_fn *fn = (soft_move_fn *)m->b;
	uint32_t *data;
	uint8_t *host;

	if (!p->m.exec)
		return;
	p->m.data = (uint32_t *)(base[h] + m->d);
	if (!two) {
		fn(&p->m);
		return;
	}
	host = w->group->lds + (uint32_t)m->c;
	data = (uint32_t *)(base[h] + (m->c >> 32));
	if (m->mods[1] & SOFT_MEM_WRITE && !is_apart(&p->m, host, m->mods[0])) {
		store_pairs(&p->m, host, data, m->mods[0] / 4);
		return;
	}
	fn(&p->m);
	p->m.host = host;
	p->m.data = data;
	fn(&p->m);
}

#if defined(__AVX2__)
static inline bool are_expected(const struct soft_microop *m,
				const uint32_t *off)
{
	const struct soft_pattern *p = soft_pattern_of(m);

	if (!p->n_ways) /* three dwords are no line */
		return m->mods[0] != 12 && !lanes_off_line(off, m->mods[0]);
	for (int i = 0; i < p->n_ways; i++)
		if (!lanes_elsewhere(off, p->way[i]))
			return true;
	return false;
}
#endif

/* Where lanes are that host code, if it ever moves them, expects elsewhere. */
static inline void note_lanes(struct soft_wave *w, const struct soft_microop *m,
			      const uint32_t *off)
{
#if defined(__AVX2__)
	if (!soft_is_scattered(m) &&
	    (m->ka != soft_pattern_of(m)->version || !are_expected(m, off)))
		soft_pattern_learn(w->group->code, m, off);
#else
	(void)w, (void)m, (void)off;
#endif
}

/*
 * All halves are placed before any of them moves; unrolled, for a loop would
 * have to look up in memory what is known of a place.
 */
ALWAYS bool move_all(struct soft_wave *w, const struct soft_microop *m,
		     const uintptr_t *base, place_fn *where, bool wide,
		     bool two)
{
	_Alignas(64) uint32_t own[2][SOFT_LANES];
	struct placed p[2];

#pragma GCC unroll 2
	for (int h = 0; h <= wide; h++) {
		p[h].m.exec = w->s[ISA_R_EXEC_LO + h];
		p[h].offset = own[h];
		p[h].range = NULL;
		if (p[h].m.exec && !where(w, m, base, h, &p[h]))
			return false;
	}
	if (!wide && p[0].m.exec == ~0u)
		note_lanes(w, m, p[0].m.offset);
	if (!wide && p[0].range)
		keep_line(w, m, p[0].range);
#pragma GCC unroll 2
	for (int h = 0; h <= wide; h++)
		move_half(w, m, base, h, two, &p[h]);
	return true;
}

/* ------------------------------------------------------------- atomics ---- */

static inline bool is_aligned(const struct placed *p, uint32_t bytes)
{
	uint32_t odd = 0;

	LANES(i)
	odd |= (p->m.offset[i] + p->low) &
	       (p->m.exec & soft_lane_bit[i] ? ~0u : 0);
	return !(odd & (bytes - 1));
}

/* b: what is done; mods[2]: the old values go to VGPR mask_in. */
static inline void modify_32(struct soft_wave *w, const struct soft_microop *m,
			     const uintptr_t *base, int h, bool lds,
			     struct placed *p)
{
	_Alignas(64) uint32_t old[SOFT_LANES];

	if (!p->m.exec)
		return;
	p->m.data = (uint32_t *)(base[h] + m->d);
	if (lds)
		modify_lds(w, m, &p->m, old);
	else
		modify_memory(w, m, &p->m, old);
	if (m->mods[2])
		soft_put_vreg((uint32_t *)base[h] + m->mask_in * SOFT_LANES,
			      old, p->m.exec);
}

static inline void modify_64(struct soft_wave *w, const struct soft_microop *m,
			     const uintptr_t *base, int h, bool lds,
			     struct placed *p)
{
	soft_atomic_fn *fn = operation_of(m);
	const uint32_t *data = (const uint32_t *)(base[h] + m->d);
	uint32_t *to = (uint32_t *)base[h] + m->mask_in * SOFT_LANES;

	for (uint32_t rest = p->m.exec; rest; rest &= rest - 1) {
		int i = __builtin_ctz(rest);
		uint64_t old = apply_atomic(w, fn, p->m.host + p->m.offset[i],
					    8, soft_get64(data, i), lds);

		if (m->mods[2])
			soft_put64(to, i, old);
	}
}

static inline void modify_half(struct soft_wave *w,
			       const struct soft_microop *m,
			       const uintptr_t *base, int h, bool lds,
			       struct placed *p)
{
	if (m->mods[0] == 4)
		modify_32(w, m, base, h, lds, p);
	else
		modify_64(w, m, base, h, lds, p);
}

/* The registers of results may be those of addresses: lanes are independent. */
ALWAYS bool modify_all(struct soft_wave *w, const struct soft_microop *m,
		       const uintptr_t *base, place_fn *where, bool wide,
		       bool lds)
{
	struct placed p[2];

	for (int h = 0; h <= wide; h++) {
		p[h].m.exec = w->s[ISA_R_EXEC_LO + h];
		if (p[h].m.exec && (!where(w, m, base, h, &p[h]) ||
				    !is_aligned(&p[h], m->mods[0])))
			return false;
	}
	for (int h = 0; h <= wide; h++)
		modify_half(w, m, base, h, lds, &p[h]);
	return true;
}

/* ------------------------------------------------------------- scalar ---- */

static void microop_scalar_load(struct soft_wave *w,
				const struct soft_microop *m,
				const uintptr_t *base)
{
	const uint64_t at = (w->s[m->c] & ~3u) |
			    (uint64_t)w->s[m->c + 1] << 32;
	const uint64_t va = at + (uint64_t)(int64_t)(int32_t)m->imm +
			    (w->s[m->mask_in] & ~3u);
	const struct soft_range *r = recent_range(w, va);
	const uint32_t *from;

	if (!r || !(r->flags & SOFT_MEM_READ) ||
	    r->size_bytes - (va - r->va) < 4u * m->mods[0]) {
		soft_microop_checked(w, m, base);
		return;
	}
	from = (const uint32_t *)(const void *)(r->host + (va - r->va));
	for (int i = 0; i < m->mods[0]; i++)
		w->s[m->d + (unsigned)i] =
			__atomic_load_n(&from[i], __ATOMIC_RELAXED);
	SOFT_NEXT(w, m, base);
}

/* --------------------------------------------------------------- table ---- */

/* X(WHERE, where, flag): flag is `two` of moves and `lds` of atomics. */
#define ALL_MOVES(X) \
	X(SADDR, saddr, false) \
	X(VADDR, vaddr, false) \
	X(FLAT, flat, false) X(LDS, lds, false) X(LDS2, lds2, true) \
		X(SCRATCH, scratch, false) X(SWIZZLED, swizzled, false) \
			X(BUFFER, buffer, false)
#define ALL_ATOMICS(X) \
	X(SADDR, saddr, false) \
	X(VADDR, vaddr, false) X(FLAT, flat, false) X(LDS, lds, true)

/*
 * MICROOP(all, where, wide, flag) is the microop of move_all() or modify_all()
 * for one place_fn, and calls the handler where they cannot.  What has locals
 * in memory is a function of its own: a microop with such could not jump to the
 * next one, and the host's stack would grow by each microop of a superblock.
 * MICROOP(move_all, lds, 0, false) is
 *
 *	static __attribute__((noinline)) bool move_all_lds_0(
 *		struct soft_wave *w, const struct soft_microop *m,
 *		const uintptr_t *base)
 *	{
 *		return move_all(w, m, base, place_lds, 0, false);
 *	}
 *	static void microop_move_all_lds_0(struct soft_wave *w,
 *					   const struct soft_microop *m,
 *					   const uintptr_t *base)
 *	{
 *		if (move_line(w, m, base, line_lds) ||
 *		    __builtin_expect(move_all_lds_0(w, m, base), 1))
 *			(m)[1].fn(w, m + 1, base);
 *		else
 *			soft_microop_checked(w, m, base);
 *	}
 */
#define MICROOP(all, where, wide, flag) \
	static __attribute__((noinline)) bool all##_##where##_##wide( \
		struct soft_wave *w, const struct soft_microop *m, \
		const uintptr_t *base) \
	{ \
		return all(w, m, base, place_##where, wide, flag); \
	} \
	static void microop_##all##_##where##_##wide( \
		struct soft_wave *w, const struct soft_microop *m, \
		const uintptr_t *base) \
	{ \
		if (LINE_##all(where, wide, w, m, base) || \
		    __builtin_expect(all##_##where##_##wide(w, m, base), 1)) \
			SOFT_NEXT(w, m, base); \
		else \
			soft_microop_checked(w, m, base); \
	}
#define LINE_move_all(where, wide, w, m, base) \
	(!(wide) && move_line(w, m, base, line_##where))
#define LINE_modify_all(where, wide, w, m, base) false
/* Of a wave32 and of a wave64, and their row of the table. */
#define MOVE(at, where, flag) \
	MICROOP(move_all, where, 0, flag) MICROOP(move_all, where, 1, flag)
#define MODIFY(at, where, flag) \
	MICROOP(modify_all, where, 0, flag) MICROOP(modify_all, where, 1, flag)
#define ENTRY(all, at, where) \
	[SOFT_AT_##at] = { microop_##all##_##where##_0, \
			   microop_##all##_##where##_1 },
#define MOVE_ENTRY(at, where, flag)   ENTRY(move_all, at, where)
#define MODIFY_ENTRY(at, where, flag) ENTRY(modify_all, at, where)
ALL_MOVES(MOVE)
ALL_ATOMICS(MODIFY)

const struct soft_mem_microops SIMD(soft_mem_microops) = {
	.scalar_load = microop_scalar_load,
	.move = { ALL_MOVES(MOVE_ENTRY) },
	.atomic = { ALL_ATOMICS(MODIFY_ENTRY) },
};
