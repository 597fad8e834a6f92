/*
 * kfd/soft/exec/fast/microop_mem.c - loads and stores as steps (step_mem.h).
 */
#include <string.h>

#include "kfd/soft/exec/fast/microop_mem.h"
#include "kfd/soft/exec/valu.h"

#define PLANE_BYTES (SOFT_LANES * sizeof(uint32_t))

static bool holds(const struct soft_range *r, uint64_t va)
{
	return va >= r->va && va - r->va < r->size_bytes;
}

const struct soft_range *soft_step_find(struct soft_wave *w, uint64_t va)
{
	const struct soft_env *env = w->group->env;
	struct soft_code_cache *c = w->group->code;
	struct soft_range *r = &c->recent[c->n_found++ % SOFT_RECENT];

	if (env->find(env->ctx, va, r) && holds(r, va))
		return r;
	memset(r, 0, sizeof(*r));
	return NULL;
}

/* -------------------------------------------------------------- make ---- */

#define LEVEL(name)                                                          \
	(soft_vrows() == soft_vrows_v4 ? &name##_v4 :                        \
	 soft_vrows() == soft_vrows_v3 ? &name##_v3 :                        \
					 &name##_v2)

static enum soft_move_kind whole(bool store, int bytes)
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

static soft_move_fn *mover(const struct soft_access *a, bool store)
{
	enum soft_move_kind k = a->bytes >= 4 ? whole(store, a->bytes) :
				store	      ? part_store(a) :
						part_load(a);

	return LEVEL(soft_moves)->move[k];
}

static struct soft_step *add(struct soft_maker *m, const struct soft_uop *u,
			     enum soft_where where,
			     const struct soft_access *a, bool store)
{
	soft_step_fn *fn = LEVEL(soft_mem_steps)->step[where][m->wide];
	struct soft_step *s = soft_maker_add(m, fn, u);

	s->b = (uintptr_t)mover(a, store);
	s->mods[0] = a->bytes;
	s->mods[1] = store ? SOFT_MEM_WRITE : SOFT_MEM_READ;
	return s;
}

static struct soft_step *add_atomic(struct soft_maker *m,
				    const struct soft_uop *u,
				    enum soft_where where,
				    const struct soft_access *a)
{
	soft_step_fn *fn = LEVEL(soft_mem_steps)->atomic[where][m->wide];
	struct soft_step *s = soft_maker_add(m, fn, u);

	s->a = u->in.f[ISA_F_ADDR] * PLANE_BYTES;
	s->b = (uintptr_t)a->fn;
	s->d = u->in.f[ISA_F_DATA0] * PLANE_BYTES;
	s->mods[0] = a->bytes;
	s->mods[1] = SOFT_MEM_READ | SOFT_MEM_WRITE;
	s->mods[2] = a->returns || u->in.f[ISA_F_GLC];
	s->mask_in = (uint8_t)u->in.f[ISA_F_VDST];
	return s;
}

static bool add_lds_atomic(struct soft_maker *m, const struct soft_uop *u)
{
	const struct soft_access *a = soft_lds_atomic(u);
	struct soft_step *s;

	if (!a)
		return false;
	s = add_atomic(m, u, SOFT_AT_LDS, a);
	s->mods[2] = a->returns;
	s->imm = u->in.f[ISA_F_OFFSET0] | u->in.f[ISA_F_OFFSET1] << 8;
	return true;
}

static bool add_lds(struct soft_maker *m, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;
	uint32_t off[2];
	bool store;
	const struct soft_access *a = soft_lds_plain(u, &store, off);
	enum soft_where where = off[1] ? SOFT_AT_LDS2 : SOFT_AT_LDS;
	struct soft_step *s;
	uint64_t next;

	if (!a)
		return add_lds_atomic(m, u);
	s = add(m, u, where, a, store);
	s->a = f[ISA_F_ADDR] * PLANE_BYTES;
	s->d = f[store ? ISA_F_DATA0 : ISA_F_VDST] * PLANE_BYTES;
	s->imm = off[0];
	if (where == SOFT_AT_LDS)
		return true;
	next = (store ? f[ISA_F_DATA1] : f[ISA_F_VDST] + a->bytes / 4u) *
	       PLANE_BYTES;
	s->c = off[1] | next << 32;
	return true;
}

static bool add_buffer(struct soft_maker *m, const struct soft_uop *u)
{
	bool store;
	const struct soft_access *a = soft_buffer_plain(u, &store);
	const uint32_t *f = u->in.f;
	struct soft_step *s;

	if (!a || f[ISA_F_IDXEN])
		return false;
	s = add(m, u, SOFT_AT_BUFFER, a, store);
	s->a = f[ISA_F_ADDR] * PLANE_BYTES;
	s->d = f[ISA_F_VDATA] * PLANE_BYTES;
	s->c = f[ISA_F_SRSRC] * 4;
	s->imm = f[ISA_F_OFFSET];
	s->part = f[ISA_F_OFFEN] != 0;
	return true;
}

static enum soft_where where_is(const struct isa_inst *in)
{
	if (in->fmt == ISA_FMT_FLAT)
		return SOFT_AT_FLAT;
	if (in->fmt == ISA_FMT_SCRATCH)
		return SOFT_AT_SCRATCH;
	return in->f[ISA_F_SADDR] == ISA_R_NULL ? SOFT_AT_VADDR : SOFT_AT_SADDR;
}

static bool add_memory(struct soft_maker *m, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;
	bool store, flat = u->in.fmt == ISA_FMT_FLAT;
	const struct soft_access *a = soft_vmem_plain(u, &store);
	const struct soft_access *atomic = soft_vmem_atomic(u);
	enum soft_where where = where_is(&u->in);
	struct soft_step *s;

	if (!a && !atomic)
		return false;
	s = a ? add(m, u, where, a, store) : add_atomic(m, u, where, atomic);
	s->a = f[ISA_F_ADDR] * PLANE_BYTES;
	if (a)
		s->d = f[store ? ISA_F_DATA0 : ISA_F_VDST] * PLANE_BYTES;
	s->c = flat ? ISA_R_NULL : f[ISA_F_SADDR];
	s->imm = flat ? f[ISA_F_OFFSET] & 0xfff :
			(uint32_t)((int32_t)(f[ISA_F_OFFSET] << 19) >> 19);
	if (where == SOFT_AT_SCRATCH)
		s->part = f[ISA_F_SVE] != 0;
	return true;
}

bool soft_step_memory(struct soft_maker *m, const struct soft_uop *u)
{
#if defined(__SANITIZE_THREAD__)
	return false; /* it takes the host's wide accesses for data races */
#endif
	switch (u->in.fmt) {
	case ISA_FMT_DS:
		return add_lds(m, u);
	case ISA_FMT_MUBUF:
		return add_buffer(m, u);
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
		return add_memory(m, u);
	}
	return false;
}
