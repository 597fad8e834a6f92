/*
 * kfd/soft/step_mem.c - loads and stores of dwords as steps (step_mem.h).
 */
#include <string.h>

#include "kfd/soft/step_mem.h"
#include "kfd/soft/valu.h"

#define PLANE_BYTES (SOFT_LANES * sizeof(uint32_t))

static const struct soft_movers *movers(void)
{
	const struct soft_vrow *rows = soft_vrows();

	return rows == soft_vrows_v4 ? &soft_movers_v4 :
	       rows == soft_vrows_v3 ? &soft_movers_v3 :
				       &soft_movers_v2;
}

static bool holds(const struct soft_range *r, uint64_t va, uint64_t size)
{
	return va >= r->va && size <= r->size_bytes &&
	       va - r->va <= r->size_bytes - size;
}

/* A mapping that holds all of it and allows `need`, else NULL. */
static const struct soft_range *reach(struct soft_wave *w, uint64_t va,
				      uint64_t size, uint32_t need)
{
	const struct soft_env *env = w->group->env;
	struct soft_code_cache *c = w->group->code;
	struct soft_range *r = c->recent;

	while (r < c->recent + SOFT_RECENT && !holds(r, va, size))
		r++;
	if (r == c->recent + SOFT_RECENT) {
		r = &c->recent[c->n_found++ % SOFT_RECENT];
		if (!env->find(env->ctx, va, r) || !holds(r, va, size)) {
			memset(r, 0, sizeof(*r));
			return NULL;
		}
	}
	return (r->flags & need) == need ? r : NULL;
}

/* One half of an instruction, once its lanes are known. */
static void set_half(const struct soft_wave *w, const struct soft_step *s,
		     int half, const uintptr_t *base, struct soft_move *m)
{
	(void)w;
	m->offset = (const uint32_t *)(base[half] + s->a);
	m->data = (uint32_t *)(base[half] + s->d);
	m->exec = w->s[ISA_R_EXEC_LO + half];
	m->dwords = s->mods[0];
}

enum space { IN_GLOBAL, IN_FLAT, IN_LDS };

static bool meets(uint64_t low, uint64_t high, uint64_t first, uint64_t last)
{
	return low <= last && high >= first;
}

/* Not memory: LDS or scratch through FLAT. */
static bool in_aperture(const struct soft_env *env, uint64_t low, uint64_t high)
{
	return meets(low, high, env->shared_base, env->shared_limit) ||
	       meets(low, high, env->private_base, env->private_limit);
}

/* Do all lanes share the upper half of their 64-bit addresses? */
static bool common_high(const struct soft_move *m, uint64_t *high)
{
	const uint32_t *p = m->offset + SOFT_LANES;
	uint32_t any = p[__builtin_ctz(m->exec)], differ = 0;

	LANES(i) differ |= (p[i] ^ any) & (0 - (m->exec >> i & 1));
	*high = (uint64_t)any << 32;
	return !differ;
}

/* imm: the signed offset; c: SADDR, or ISA_R_NULL for 64-bit addresses. */
static bool place_memory(struct soft_wave *w, const struct soft_step *s,
			 const struct soft_movers *f, struct soft_move *m)
{
	uint32_t need = s->mods[2] ? SOFT_MEM_WRITE : SOFT_MEM_READ;
	uint64_t at = 0, first, size;
	const struct soft_range *r;

	if (s->c != ISA_R_NULL)
		at = w->s[s->c] | (uint64_t)w->s[s->c + 1] << 32;
	else if (!common_high(m, &at))
		return false;
	at += (uint64_t)(int64_t)(int32_t)s->imm;
	f->bounds(m);
	first = at + m->low;
	size = (uint64_t)m->high - m->low + 4 * (uint64_t)m->dwords;
	if (first + size < first ||
	    (s->mods[1] == IN_FLAT &&
	     in_aperture(w->group->env, first, first + size - 1)))
		return false;
	r = reach(w, first, size, need);
	if (!r)
		return false;
	/* Counted in integers: `at` itself need not be in the mapping. */
	m->host = (uint8_t *)((uintptr_t)r->host + (uintptr_t)(at - r->va));
	return true;
}

static bool place_lds(struct soft_wave *w, const struct soft_step *s,
		      const struct soft_movers *f, struct soft_move *m)
{
	const struct soft_group *g = w->group;

	f->bounds(m);
	m->host = g->lds + s->imm;
	return (uint64_t)m->high + s->imm + 4 * (uint64_t)m->dwords <=
	       g->lds_size_bytes;
}

/* All halves, before any of them moves. */
static bool place(struct soft_wave *w, const struct soft_step *s,
		  const uintptr_t *base, const struct soft_movers *f,
		  struct soft_move m[2])
{
	for (int h = 0; h < soft_halves(w); h++) {
		set_half(w, s, h, base, &m[h]);
		if (m[h].exec && !(s->mods[1] == IN_LDS ?
					   place_lds(w, s, f, &m[h]) :
					   place_memory(w, s, f, &m[h])))
			return false;
	}
	return true;
}

static void step_load(struct soft_wave *w, const struct soft_step *s,
		      const uintptr_t *base)
{
	const struct soft_movers *f = (const struct soft_movers *)s->b;
	struct soft_move m[2];
	bool good = place(w, s, base, f, m);

	for (int h = 0; good && h < soft_halves(w); h++)
		if (m[h].exec)
			f->load(&m[h]);
	if (good)
		SOFT_NEXT(w, s, base);
	else
		soft_step_checked(w, s, base);
}

static void step_store(struct soft_wave *w, const struct soft_step *s,
		       const uintptr_t *base)
{
	const struct soft_movers *f = (const struct soft_movers *)s->b;
	struct soft_move m[2];
	bool good = place(w, s, base, f, m);

	for (int h = 0; good && h < soft_halves(w); h++)
		if (m[h].exec)
			f->store(&m[h]);
	if (good)
		SOFT_NEXT(w, s, base);
	else
		soft_step_checked(w, s, base);
}

/* -------------------------------------------------------------- make ---- */

/* The dwords that it moves, and whether to memory; 0: not a plain move. */
static int dwords(enum isa_op op, bool *store)
{
	*store = false;
	switch (op) {
#define MOVE(n, name, b)                       \
	case ISA_##name##_load_b##b:           \
		return n;                      \
	case ISA_##name##_store_b##b:          \
		*store = true;                 \
		return n
#define MOVES(name)         \
	MOVE(1, name, 32);  \
	MOVE(2, name, 64);  \
	MOVE(3, name, 96);  \
	MOVE(4, name, 128)
		MOVES(global);
		MOVES(flat);
		MOVES(ds);
	default:
		return 0;
	}
}

bool soft_step_memory(struct soft_maker *m, const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;
	bool store, lds = u->in.fmt == ISA_FMT_DS;
	int n = dwords(u->in.op, &store);
	struct soft_step *s;

#if defined(__SANITIZE_THREAD__)
	n = 0; /* it takes the host's wide accesses for data races */
#endif
	if (!n || (lds && f[ISA_F_GDS]))
		return false;
	s = soft_maker_add(m, store ? step_store : step_load, u);
	s->a = f[ISA_F_ADDR] * PLANE_BYTES;
	s->b = (uintptr_t)movers();
	s->d = f[store ? ISA_F_DATA0 : ISA_F_VDST] * PLANE_BYTES;
	s->c = u->in.fmt == ISA_FMT_GLOBAL ? f[ISA_F_SADDR] : ISA_R_NULL;
	s->mods[0] = (uint8_t)n;
	s->mods[1] = lds ? IN_LDS :
		     u->in.fmt == ISA_FMT_FLAT ? IN_FLAT : IN_GLOBAL;
	s->mods[2] = store;
	s->imm = lds ? f[ISA_F_OFFSET0] | f[ISA_F_OFFSET1] << 8 :
		 u->in.fmt == ISA_FMT_FLAT ? f[ISA_F_OFFSET] & 0xfff :
		 (uint32_t)((int32_t)(f[ISA_F_OFFSET] << 19) >> 19);
	return true;
}
