/*
 * kfd/soft/exec/fast/translate_mem.c - loads, stores and atomics to microops.
 */
#include <string.h>

#include "kfd/soft/exec/fast/translate.h"

static bool range_holds(const struct soft_range *r, uint64_t va)
{
	return va >= r->va && va - r->va < r->size_bytes;
}

const struct soft_range *soft_find_range(struct soft_wave *w, uint64_t va)
{
	const struct soft_env *env = w->group->env;
	struct soft_code_cache *c = w->group->code;
	struct soft_range *r = &c->recent[c->n_found++ % SOFT_RECENT];

	if (env->find(env->ctx, va, r) && range_holds(r, va))
		return r;
	memset(r, 0, sizeof(*r));
	return NULL;
}

/* --------------------------------------------------------- translate ---- */

static enum soft_move_kind whole_move(bool store, int bytes)
{
	enum soft_move_kind first = store ? SOFT_MOVE_store_32 :
					    SOFT_MOVE_load_32;

	return first + (enum soft_move_kind)(bytes / 4 - 1);
}

static enum soft_move_kind part_load(const struct soft_access *a)
{
	static const enum soft_move_kind kind[3][2][2] = {
		/* [part][bytes - 1][signed] */
		{ { SOFT_MOVE_load_u8, SOFT_MOVE_load_i8 },
		  { SOFT_MOVE_load_u16, SOFT_MOVE_load_i16 } },
		{ { SOFT_MOVE_load_low_u8, SOFT_MOVE_load_low_i8 },
		  { SOFT_MOVE_load_low_16, SOFT_MOVE_load_low_16 } },
		{ { SOFT_MOVE_load_high_u8, SOFT_MOVE_load_high_i8 },
		  { SOFT_MOVE_load_high_16, SOFT_MOVE_load_high_16 } },
	};

	return kind[a->part][a->bytes - 1][a->is_signed];
}

static enum soft_move_kind part_store(const struct soft_access *a)
{
	if (a->part == SOFT_HIGH)
		return a->bytes == 1 ? SOFT_MOVE_store_high_8 :
				       SOFT_MOVE_store_high_16;
	return a->bytes == 1 ? SOFT_MOVE_store_8 : SOFT_MOVE_store_16;
}

static soft_move_fn *find_move(const struct soft_translator *t,
			       const struct soft_access *a, bool store)
{
	enum soft_move_kind k = a->bytes >= 4 ? whole_move(store, a->bytes) :
				store	      ? part_store(a) :
						part_load(a);

	return t->simd->moves->move[k];
}

static struct soft_microop *add_move(struct soft_translator *t,
				     const struct soft_uop *u,
				     enum soft_where where,
				     const struct soft_access *a, bool store)
{
	soft_microop_fn *fn = t->simd->mem->move[where][t->wide];
	struct soft_microop *m = soft_translator_emit(t, fn, u);

	m->b = (uintptr_t)find_move(t, a, store);
	m->mods[0] = a->bytes;
	m->mods[1] = store ? SOFT_MEM_WRITE : SOFT_MEM_READ;
	m->mods[2] = a->bytes == 4;
	soft_pattern_settle(t->cache, soft_pattern_of(m), a->bytes);
	m->ka = soft_pattern_of(m)->version;
	return m;
}

/* The operation as one of all lanes. */
static enum soft_atomic_lanes lanes_of(soft_atomic_fn *fn)
{
	static soft_atomic_fn *const of[SOFT_LANES_COUNT] = {
		[SOFT_LANES_ADD_F32_LDS] = soft_atomic_add_f32_lds,
		[SOFT_LANES_ADD_F32_MEM] = soft_atomic_add_f32_mem,
#define ATOMIC(name, type, expr)
#define LANES_32(name, type, expr) [SOFT_LANES_##name] = soft_atomic_##name,
#include "kfd/soft/exec/atomic.def"
	};
	enum soft_atomic_lanes i = SOFT_LANES_COUNT - 1;

	while (i && of[i] != fn)
		i--;
	return i;
}

static struct soft_microop *add_atomic(struct soft_translator *t,
				       const struct soft_uop *u,
				       enum soft_where where,
				       const struct soft_access *a)
{
	soft_microop_fn *fn = t->simd->mem->atomic[where][t->wide];
	struct soft_microop *m = soft_translator_emit(t, fn, u);

	m->a = u->in.f[ISA_F_ADDR] * SOFT_VREG_BYTES;
	m->b = (uintptr_t)a->fn;
	m->kb = (uint8_t)lanes_of(a->fn);
	m->d = u->in.f[ISA_F_DATA0] * SOFT_VREG_BYTES;
	m->mods[0] = a->bytes;
	m->mods[1] = SOFT_MEM_READ | SOFT_MEM_WRITE;
	m->mods[2] = a->returns || u->in.f[ISA_F_GLC];
	m->mask_in = (uint8_t)u->in.f[ISA_F_VDST];
	return m;
}

static bool add_lds_atomic(struct soft_translator *t, const struct soft_uop *u)
{
	const struct soft_access *a = soft_lds_atomic(u);
	struct soft_microop *m;

	if (!a)
		return false;
	m = add_atomic(t, u, SOFT_AT_LDS, a);
	m->mods[2] = a->returns;
	m->imm = u->in.f[ISA_F_OFFSET0] | u->in.f[ISA_F_OFFSET1] << 8;
	return true;
}

static bool add_lds(struct soft_translator *t, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;
	uint32_t off[2];
	bool store;
	const struct soft_access *a = soft_lds_plain(u, &store, off);
	enum soft_where where = off[1] ? SOFT_AT_LDS2 : SOFT_AT_LDS;
	struct soft_microop *m;
	uint64_t next;

	if (!a)
		return add_lds_atomic(t, u);
	m = add_move(t, u, where, a, store);
	m->a = f[ISA_F_ADDR] * SOFT_VREG_BYTES;
	m->d = f[store ? ISA_F_DATA0 : ISA_F_VDST] * SOFT_VREG_BYTES;
	m->imm = off[0];
	if (where == SOFT_AT_LDS)
		return true;
	next = (store ? f[ISA_F_DATA1] : f[ISA_F_VDST] + a->bytes / 4u) *
	       SOFT_VREG_BYTES;
	m->c = off[1] | next << 32;
	return true;
}

static bool add_buffer(struct soft_translator *t, const struct soft_uop *u)
{
	bool store;
	const struct soft_access *a = soft_buffer_plain(u, &store);
	const uint32_t *f = u->in.f;
	struct soft_microop *m;

	if (!a || f[ISA_F_IDXEN])
		return false;
	m = add_move(t, u, SOFT_AT_BUFFER, a, store);
	m->a = f[ISA_F_ADDR] * SOFT_VREG_BYTES;
	m->d = f[ISA_F_VDATA] * SOFT_VREG_BYTES;
	m->c = f[ISA_F_SRSRC] * 4;
	m->imm = f[ISA_F_OFFSET];
	m->part = f[ISA_F_OFFEN] != 0;
	return true;
}

static enum soft_where where_is(const struct isa_inst *in)
{
	if (in->fmt == ISA_FMT_FLAT)
		return SOFT_AT_FLAT;
	if (in->fmt == ISA_FMT_SCRATCH)
		return isa_gen_info(in->gen)->own_scratch ? SOFT_AT_SCRATCH :
							    SOFT_AT_SWIZZLED;
	return in->f[ISA_F_SADDR] == ISA_R_NULL ? SOFT_AT_VADDR : SOFT_AT_SADDR;
}

/*
 * A microop for each dword.  Where one leaves it to the handler, so do the
 * others: the same again, unless it has overwritten its address.
 */
static bool add_swizzled(struct soft_translator *t, const struct soft_uop *u,
			 const struct soft_access *a, bool store)
{
	const struct soft_access dword = { .bytes = 4 };
	const uint32_t *f = u->in.f;
	const uint32_t reg = f[store ? ISA_F_DATA0 : ISA_F_VDST];
	const uint32_t n = a->bytes < 4 ? 1 : a->bytes / 4u;

	if (n > 1 && !store && f[ISA_F_SVE] && f[ISA_F_ADDR] - reg < n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct soft_microop *m = add_move(t, u, SOFT_AT_SWIZZLED,
						  n > 1 ? &dword : a, store);

		m->mods[0] = a->bytes;
		m->mask_in = (uint8_t)i;
		m->a = f[ISA_F_ADDR] * SOFT_VREG_BYTES;
		m->d = (reg + i) * SOFT_VREG_BYTES;
		m->c = f[ISA_F_SADDR];
		m->imm = f[ISA_F_OFFSET];
		m->part = f[ISA_F_SVE] != 0;
	}
	return true;
}

static bool add_memory(struct soft_translator *t, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;
	bool store, flat = u->in.fmt == ISA_FMT_FLAT;
	const struct soft_access *a = soft_vmem_plain(u, &store);
	const struct soft_access *atomic = soft_vmem_atomic(u);
	enum soft_where where = where_is(&u->in);
	struct soft_microop *m;

	if (!a && !atomic)
		return false;
	if (where == SOFT_AT_SWIZZLED)
		return add_swizzled(t, u, a, store);
	m = a ? add_move(t, u, where, a, store) :
		add_atomic(t, u, where, atomic);
	if (a && !store)
		m->mask_in = (uint8_t)(t->n_loads++ % SOFT_LOADS);
	m->a = f[ISA_F_ADDR] * SOFT_VREG_BYTES;
	if (a)
		m->d = f[store ? ISA_F_DATA0 : ISA_F_VDST] * SOFT_VREG_BYTES;
	m->c = flat ? ISA_R_NULL : f[ISA_F_SADDR];
	m->imm = f[ISA_F_OFFSET];
	if (where == SOFT_AT_SCRATCH)
		m->part = f[ISA_F_SVE] != 0;
	return true;
}

bool soft_translate_scalar_load(struct soft_translator *t,
				const struct soft_uop *u)
{
	const int dwords = soft_smem_dwords(u);
	const uint32_t *f = u->in.f;
	struct soft_microop *m;

	/* Those of trap handlers may not be writable, null never is. */
	if (!dwords || u->in.opnd[0].reg + dwords > ISA_R_TTMP0)
		return false;
	m = soft_translator_emit(t, t->simd->mem->scalar_load, u);
	m->c = f[ISA_F_SBASE] * 2;
	m->d = u->in.opnd[0].reg;
	m->imm = f[ISA_F_OFFSET] & ~3u;
	m->mask_in = (uint8_t)f[ISA_F_SOFFSET];
	m->mods[0] = (uint8_t)dwords;
	return true;
}

bool soft_translate_memory(struct soft_translator *t, const struct soft_uop *u)
{
#if defined(__SANITIZE_THREAD__)
	return false; /* it takes the host's wide accesses for data races */
#endif
	switch (u->in.fmt) {
	case ISA_FMT_DS:
		return add_lds(t, u);
	case ISA_FMT_MUBUF:
		return add_buffer(t, u);
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
		return add_memory(t, u);
	}
	return false;
}
