/*
 * kfd/soft/exec/fast/microop_line.h - dwords of lanes that follow each other.
 *
 * Private to microop_mem_simd.c.  Loads and stores of one, two or four dwords
 * by all lanes of a wave32, to or from bytes in a row, are the usual case and
 * made quick, and so are loads of halves; for anything else these functions do
 * nothing and say so.
 */
#ifndef T0_KFD_SOFT_MICROOP_LINE_H
#define T0_KFD_SOFT_MICROOP_LINE_H

#include "kfd/soft/exec/fast/microop_lanes.h"
#include "kfd/soft/exec/fast/translate.h"

/*
 * How far apart lanes are that follow each other, as 32-bit offsets say, 0: they
 * do not.  Four dwords may be loaded from the first half of twice as many, and
 * halves twice by 16 lanes each.
 */
static inline uint32_t line_step(const struct soft_microop *m,
				 const uint32_t *off)
{
	const uint32_t bytes = m->mods[0], apart = off[1] - off[0];
	const bool loads = !(m->mods[1] & SOFT_MEM_WRITE);
	const bool part = bytes == 16 && apart == 2 * bytes && loads;
	const uint32_t step = part ? apart : bytes;

	if (bytes != 4 && bytes != 8 && bytes != 16 && !(bytes == 2 && loads))
		return 0;
	return off[0] <= UINT32_MAX - step * SOFT_LANES &&
			       (!lanes_off_line(off, step) ||
				(bytes == 2 && lanes_repeat_line(off, bytes))) ?
		       step :
		       0;
}

/* For the microop's host code (native_place.c). */
static inline void keep_line(struct soft_wave *w, const struct soft_microop *m,
			     const struct soft_range *r)
{
	*soft_line_of(w->group->code, m) = (struct soft_line){
		.va = r->va,
		.size_bytes = r->size_bytes,
		.host = (uintptr_t)r->host,
	};
}

/* The same bytes in this process; NULL: somewhere else, or unusual. */
static inline uint8_t *line_in_memory(struct soft_wave *w,
				      const struct soft_microop *m, uint64_t va,
				      uint32_t bytes)
{
	const struct soft_range *r = w->group->code->recent;

	for (int i = 0; i < SOFT_RECENT; i++, r++) {
		if (va - r->va >= r->size_bytes)
			continue;
		if (r->size_bytes - (va - r->va) < bytes ||
		    (r->flags & m->mods[1]) != m->mods[1])
			return NULL;
		keep_line(w, m, r);
		return r->host + (va - r->va);
	}
	return NULL;
}

static inline uint8_t *line_saddr(struct soft_wave *w,
				  const struct soft_microop *m,
				  const uint32_t *off, uint32_t bytes)
{
	const uint64_t at = w->s[m->c] | (uint64_t)w->s[m->c + 1] << 32;

	return line_in_memory(
		w, m, at + (uint64_t)(int64_t)(int32_t)m->imm + off[0], bytes);
}

static inline uint8_t *line_vaddr(struct soft_wave *w,
				  const struct soft_microop *m,
				  const uint32_t *off, uint32_t bytes)
{
	const uint32_t *high = off + SOFT_LANES;

	if (lanes_differ(high, high[0]))
		return NULL;
	return line_in_memory(w, m,
			      (off[0] | (uint64_t)high[0] << 32) +
				      (uint64_t)(int64_t)(int32_t)m->imm,
			      bytes);
}

static inline uint8_t *line_lds(struct soft_wave *w,
				const struct soft_microop *m,
				const uint32_t *off, uint32_t bytes)
{
	const uint64_t at = (uint64_t)off[0] + m->imm;

	return at + bytes <= w->group->lds_size_bytes ?
		       w->group->lds + at :
		       NULL;
}

static inline uint8_t *line_nowhere(struct soft_wave *w,
				    const struct soft_microop *m,
				    const uint32_t *off, uint32_t bytes)
{
	(void)w, (void)m, (void)off, (void)bytes;
	return NULL;
}

#define line_flat     line_nowhere
#define line_lds2     line_nowhere
#define line_scratch  line_nowhere
#define line_swizzled line_nowhere
#define line_buffer   line_nowhere

static inline void copy_line(bool store, uint8_t *p, uint32_t *data)
{
	uint8_t *to = store ? p : (uint8_t *)data;
	const uint8_t *from = store ? (uint8_t *)data : p;

#pragma GCC unroll 8
	for (int i = 0; i < SOFT_PIECES; i++)
		memcpy(to + i * SOFT_PIECE_BYTES, from + i * SOFT_PIECE_BYTES,
		       SOFT_PIECE_BYTES);
}

typedef uint8_t *line_fn(struct soft_wave *w, const struct soft_microop *m,
			 const uint32_t *off, uint32_t bytes);

/* Of more or less than a dword; it has locals in memory. */
static __attribute__((noinline)) void
move_other_line(const struct soft_microop *m, const uintptr_t *base, uint8_t *p)
{
	const uint32_t *off = (const uint32_t *)(base[0] + m->a);
	const struct soft_move move = {
		.host = p - off[0],
		.offset = off,
		.data = (uint32_t *)(base[0] + m->d),
		.exec = ~0u,
	};

	((soft_move_fn *)m->b)(&move);
}

static inline __attribute__((always_inline)) bool
move_line(struct soft_wave *w, const struct soft_microop *m,
	  const uintptr_t *base, line_fn *where)
{
	const uint32_t *off = (const uint32_t *)(base[0] + m->a);
	uint32_t step;
	uint8_t *p;

	/* In LDS anything but a dword is mostly part of a matrix. */
	if ((where == line_lds && !m->mods[2]) || where == line_nowhere ||
	    w->s[ISA_R_EXEC_LO] != ~0u || soft_is_scattered(m))
		return false;
	step = line_step(m, off);
	p = step ? where(w, m, off, step * SOFT_LANES) : NULL;
	if (!p)
		return false;
	if (m->mods[2])
		copy_line(m->mods[1] & SOFT_MEM_WRITE, p,
			  (uint32_t *)(base[0] + m->d));
	else
		move_other_line(m, base, p);
	return true;
}

#endif
