/*
 * kfd/soft/exec/fast/microop_atomic.h - what atomic operations of one half do,
 * where its lanes are known.
 *
 * Private to microop_mem_simd.c.  Those of LDS are seen by one thread only;
 * those of memory by all, in as few exchanges of the host as there can be.
 */
#ifndef T0_KFD_SOFT_MICROOP_ATOMIC_H
#define T0_KFD_SOFT_MICROOP_ATOMIC_H

#include "kfd/soft/exec/fast/microop_lanes.h"
#include "kfd/soft/exec/fast/translate.h"

static inline uint32_t apply_32(const struct soft_wave *w, soft_atomic_fn *fn,
				uint32_t old, uint32_t a)
{
	return fn == soft_atomic_add_32 ? old + a :
					  (uint32_t)fn(old, a, 0, w->mode);
}

/* LDS belongs to one thread, memory to all. */
static inline uint64_t apply_atomic(const struct soft_wave *w,
				    soft_atomic_fn *fn, uint8_t *p, int bytes,
				    uint64_t a, bool lds)
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

/* An addition of floats that sums of NaN and tiny ones are none of. */
static inline bool is_odd_sum(uint32_t u)
{
	const uint32_t size = u & 0x7fffffff;

	return size > 0x7f800000 || (size < 0x00800000 && size);
}

static inline soft_atomic_fn *operation_of(const struct soft_microop *m)
{
	return (soft_atomic_fn *)m->b;
}

/* Sums of floats of all lanes, which are mostly numbers. */
static inline void add_floats(const struct soft_wave *w,
			      const struct soft_microop *m, const uint32_t *old,
			      const uint32_t *a, uint32_t *r)
{
	const bool flush = m->kb == SOFT_LANES_ADD_F32_MEM ||
			   !(w->mode & SOFT_MODE_DENORM_F32);
	uint32_t odd = 0;

	LANES(i)
	r[i] = f32_bits(f32_value(flush ? soft_flush_f32(old[i]) : old[i]) +
			f32_value(flush ? soft_flush_f32(a[i]) : a[i]));
	LANES(i) odd |= is_odd_sum(r[i]);
	if (odd)
		LANES(i) r[i] = apply_32(w, operation_of(m), old[i], a[i]);
}

/*
 * All lanes at once; the simple ones as vector code.
 * LANES_32(add_32, uint32_t, m + a) becomes
 *
 *	case SOFT_LANES_add_32:
 *		LANES(i) {
 *			const uint32_t m = (uint32_t)old[i];
 *			const uint32_t a = (uint32_t)by[i];
 *
 *			r[i] = (uint32_t)(m + a);
 *		}
 *		break;
 */
static inline void apply_lanes(const struct soft_wave *w,
			       const struct soft_microop *op,
			       const uint32_t *old, const uint32_t *by,
			       uint32_t *r)
{
	switch (op->kb) {
#define ATOMIC(name, type, expr)
#define LANES_32(name, type, expr) \
	case SOFT_LANES_##name: \
		LANES(i) \
		{ \
			const type m = (type)old[i], a = (type)by[i]; \
			(void)m, (void)a; \
			r[i] = (uint32_t)(expr); \
		} \
		break;
#include "kfd/soft/exec/atomic.def"
	case SOFT_LANES_ADD_F32_LDS:
	case SOFT_LANES_ADD_F32_MEM:
		add_floats(w, op, old, by, r);
		break;
	default:
		LANES(i) r[i] = apply_32(w, operation_of(op), old[i], by[i]);
	}
}

#define AT_ONCE 4 /* dwords that the host exchanges atomically */
typedef unsigned __int128 dwords4;

/* Lanes i to i + 3, whose dwords follow each other from p on. */
static __attribute__((noinline)) void modify_four(const struct soft_wave *w,
						  soft_atomic_fn *fn,
						  uint8_t *p, const uint32_t *a,
						  uint32_t *old)
{
	dwords4 *at = (dwords4 *)(void *)p, was, is, will;
	uint32_t v[AT_ONCE];

	memcpy(&is, at, sizeof(is));
	do {
		was = is;
		memcpy(old, &was, sizeof(was));
		for (int i = 0; i < AT_ONCE; i++)
			v[i] = apply_32(w, fn, old[i], a[i]);
		memcpy(&will, v, sizeof(will));
		is = __sync_val_compare_and_swap(at, was, will);
	} while (is != was);
}

/* All lanes, whose dwords follow each other from p on. */
static inline void modify_line(const struct soft_wave *w,
			       const struct soft_microop *m, uint8_t *p,
			       const uint32_t *a, uint32_t *old)
{
	_Alignas(64) uint32_t new[SOFT_LANES];

	memcpy(old, p, SOFT_VREG_BYTES);
	apply_lanes(w, m, old, a, new);
	for (int i = 0; i < SOFT_LANES; i += AT_ONCE) {
		dwords4 *at = (dwords4 *)(void *)(p + 4 * i), was, will;

		memcpy(&was, old + i, sizeof(was));
		memcpy(&will, new + i, sizeof(will));
		/* Somebody else was here meanwhile. */
		if (__builtin_expect(
			    !__sync_bool_compare_and_swap(at, was, will), 0))
			modify_four(w, operation_of(m), p + 4 * i, a + i,
				    old + i);
	}
}

/* Sums of v and the lanes so far, in their order: what each one finds. */
static inline uint32_t add_in_order(uint32_t v, const uint32_t *a,
				    uint32_t exec, uint32_t *old)
{
	if (exec == ~0u)
		for (int i = 0; i < SOFT_LANES; i++) {
			old[i] = v;
			v += a[i];
		}
	else
		FOR_LANES(i, exec)
		{
			old[i] = v;
			v += a[i];
		}
	return v;
}

/* The same of floats; false: it is not so simple. */
static inline bool add_floats_in_order(uint32_t *v, const uint32_t *a,
				       uint32_t *old)
{
	_Alignas(64) uint32_t sum[SOFT_LANES], by[SOFT_LANES];
	uint32_t first = soft_flush_f32(*v), odd = 0;
	float f = f32_value(first);

	LANES(i) by[i] = soft_flush_f32(a[i]);
	for (int i = 0; i < SOFT_LANES; i++) {
		f += f32_value(by[i]);
		sum[i] = f32_bits(f);
	}
	LANES(i) odd |= is_odd_sum(sum[i]);
	if (odd)
		return false;
	old[0] = *v;
	memcpy(old + 1, sum, SOFT_VREG_BYTES - sizeof(*old));
	*v = sum[SOFT_LANES - 1];
	return true;
}

static inline uint32_t sum_of(const uint32_t *a, uint32_t exec)
{
	uint32_t sum = 0;

	LANES(i) sum += exec & soft_lane_bit[i] ? a[i] : 0;
	return sum;
}

/* All lanes that execute at one dword: one after the other, seen at once. */
static inline void modify_one(const struct soft_wave *w, soft_atomic_fn *fn,
			      uint8_t *p, const uint32_t *a, uint32_t exec,
			      uint32_t *old)
{
	uint32_t *at = (uint32_t *)(void *)p;
	uint32_t was = __atomic_load_n(at, __ATOMIC_RELAXED), v;
	const bool floats = fn == soft_atomic_add_f32_mem && exec == ~0u;

	do {
		v = was;
		if (fn == soft_atomic_add_32)
			v = add_in_order(v, a, exec, old);
		else if (!floats || !add_floats_in_order(&v, a, old))
			FOR_LANES(i, exec)
			{
				old[i] = v;
				v = apply_32(w, fn, v, a[i]);
			}
	} while (!__atomic_compare_exchange_n(
		at, &was, v, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* Memory: as few exchanges of the host as there can be. */
static inline void modify_memory(const struct soft_wave *w,
				 const struct soft_microop *op,
				 const struct soft_move *m, uint32_t *old)
{
	soft_atomic_fn *fn = operation_of(op);
	const uint32_t first = m->offset[__builtin_ctz(m->exec)];
	const bool one = !(lanes_differ(m->offset, first) & m->exec);
	const bool returns = op->mods[2];
	uint8_t *p = m->host + first;

	if (one && fn == soft_atomic_add_32 && !returns) {
		__atomic_fetch_add((uint32_t *)(void *)p,
				   sum_of(m->data, m->exec), __ATOMIC_SEQ_CST);
	} else if (one) {
		modify_one(w, fn, p, m->data, m->exec, old);
	} else if (m->exec == ~0u && !((uintptr_t)p % sizeof(dwords4)) &&
		   !lanes_off_line(m->offset, 4)) {
		modify_line(w, op, p, m->data, old);
	} else {
		FOR_LANES(i, m->exec)
		old[i] = (uint32_t)apply_atomic(w, fn, m->host + m->offset[i],
						4, m->data[i], false);
	}
}

/* LDS, which no other thread sees. */
static inline void modify_lds(const struct soft_wave *w,
			      const struct soft_microop *op,
			      const struct soft_move *m, uint32_t *old)
{
	_Alignas(64) uint32_t new[SOFT_LANES];

	if (m->exec == ~0u && !lanes_off_line(m->offset, 4)) {
		uint8_t *p = m->host + m->offset[0];

		memcpy(old, p, SOFT_VREG_BYTES);
		apply_lanes(w, op, old, m->data, new);
		memcpy(p, new, SOFT_VREG_BYTES);
		return;
	}
	FOR_LANES(i, m->exec)
	{
		uint8_t *p = m->host + m->offset[i];
		uint32_t v;

		memcpy(&v, p, 4);
		old[i] = v;
		v = apply_32(w, operation_of(op), v, m->data[i]);
		memcpy(p, &v, 4);
	}
}

#endif
