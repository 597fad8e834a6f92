/*
 * kfd/soft/exec/gfx10/scalar.c - scalar stores and atomics, scratch memory by
 * SGPRs, numbers of waves: gfx10_1 alone has them (RDNA ISA 1.0, 8).
 */
#include <string.h>

#include "kfd/soft/exec/mem.h"

struct row {
	uint8_t dwords; /* of memory */
	bool buffer, scratch;
	soft_atomic_fn *fn;
};

/* Where it is; of a buffer, whose `size` counts, no dword is beyond its end. */
struct place {
	uint64_t base, at, size;
};

static struct place find_place(const struct soft_wave *w,
			       const struct soft_uop *u)
{
	const struct row *r = u->op;
	const uint32_t *s = &w->s[u->in.f[ISA_F_SBASE] * 2];
	const uint32_t reg = u->in.f[ISA_F_SOFFSET];
	const uint64_t stride = s[1] >> 16 & 0x3fff;
	struct place p = { .at = soft_scalar_offset(w, u) };

	if (r->buffer) {
		p.base = soft_canonical((s[0] & ~3u) | (uint64_t)(s[1] & 0xffff)
							       << 32);
		p.size = s[2] * (stride ? stride : 1);
		return p;
	}
	p.base = (s[0] & ~3u) | (uint64_t)s[1] << 32;
	p.size = ~UINT64_C(0);
	/* In scratch memory registers count 64 bytes. */
	if (r->scratch && reg != ISA_R_NULL)
		p.at += (w->s[reg] & ~3u) * UINT64_C(63);
	return p;
}

static bool is_inside(const struct place *p, uint64_t at, uint32_t size_bytes)
{
	return p->size == ~UINT64_C(0) ||
	       (at < p->size && p->size - at >= size_bytes);
}

static void run_scratch_load(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	const struct place p = find_place(w, u);
	uint32_t value[4];

	if (soft_load(w, p.base + p.at, value, r->dwords * 4u, -1))
		soft_put_sgprs(w, u, value, r->dwords);
}

static void run_store(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	const struct place p = find_place(w, u);
	const uint32_t *value = &w->s[u->in.opnd[0].reg];

	for (uint32_t i = 0; i < r->dwords; i++)
		if (is_inside(&p, p.at + 4 * i, 4) &&
		    !soft_store(w, p.base + p.at + 4 * i, &value[i], 4, -1))
			return;
}

static void run_atomic(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	const struct place p = find_place(w, u);
	const uint64_t va = p.base + p.at;
	const uint32_t *s = &w->s[u->in.opnd[0].reg], n = r->dwords;
	uint64_t v[2] = { 0 }, old = 0;
	uint32_t out[2];

	memcpy(&v[0], s, n * 4);
	if (u->in.opnd[0].dwords > n) /* what it is compared with */
		memcpy(&v[1], s + n, n * 4);
	if (is_inside(&p, p.at, n * 4)) {
		void *host;

		if (va & (n * 4 - 1)) {
			soft_raise(w, SOFT_FAULT_ALIGN,
				   "scalar atomic of %u bytes at 0x%llx: not "
				   "aligned",
				   n * 4, (unsigned long long)va);
			soft_fault_at(w, va, true, -1);
			return;
		}
		host = soft_host_address(w, va, n * 4,
					 SOFT_MEM_READ | SOFT_MEM_WRITE, -1);
		if (!host)
			return;
		old = soft_atomic_apply(host, n * 4, r->fn, v[0], v[1],
					w->mode);
	}
	memcpy(out, &old, sizeof(out));
	if (u->in.f[ISA_F_GLC])
		soft_put_sgprs(w, u, out, (int)n);
}

static void run_waveid(struct soft_wave *w, const struct soft_uop *u)
{
	const uint32_t id = (uint32_t)(w - w->group->wave);

	soft_put_sgprs(w, u, &id, 1);
}

static const struct {
	soft_handler *fn;
	struct row row;
} table[ISA_OP_COUNT] = {
#define MOVES(suffix, n) \
	[ISA_s_scratch_load_dword##suffix] = { run_scratch_load, \
					       { .dwords = n, \
						 .scratch = true } }, \
	[ISA_s_scratch_store_dword## \
		suffix] = { run_store, { .dwords = n, .scratch = true } }, \
	[ISA_s_store_dword##suffix] = { run_store, { .dwords = n } }, \
	[ISA_s_buffer_store_dword## \
		suffix] = { run_store, { .dwords = n, .buffer = true } },
#define ATOMICS(name, fn_name) \
	ATOMIC_OF(s_atomic_##name, false, 1, fn_name##_32) \
	ATOMIC_OF(s_atomic_##name##_x2, false, 2, fn_name##_64) \
	ATOMIC_OF(s_buffer_atomic_##name, true, 1, fn_name##_32) \
	ATOMIC_OF(s_buffer_atomic_##name##_x2, true, 2, fn_name##_64)
#define ATOMIC_OF(op, is_buffer, n, fn_name) \
	[ISA_##op] = { run_atomic, \
		       { .dwords = n, \
			 .buffer = is_buffer, \
			 .fn = soft_atomic_##fn_name } },
	MOVES(, 1) MOVES(x2, 2) MOVES(x4, 4) ATOMICS(swap, swap) ATOMICS(
		cmpswap, cmpswap) ATOMICS(add, add) ATOMICS(sub, sub)
		ATOMICS(smin, min_i) ATOMICS(umin, min_u) ATOMICS(
			smax, max_i) ATOMICS(umax, max_u) ATOMICS(and, and)
			ATOMICS(or, or) ATOMICS(xor, xor) ATOMICS(
				inc, inc) ATOMICS(dec, dec)
				[ISA_s_get_waveid_in_workgroup] = { run_waveid,
								    { 0 } },
};

soft_handler *soft_scalar_store_handler(const struct isa_inst *in,
					const void **op)
{
	*op = &table[in->op].row;
	return table[in->op].fn;
}
