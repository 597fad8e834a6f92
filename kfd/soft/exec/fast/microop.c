/*
 * kfd/soft/exec/fast/microop.c - makes stretches of steps, and runs them (step.h).
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/exec/fast/microop_mem.h"
#include "kfd/soft/exec/mem.h"

#define PLANE_BYTES (SOFT_LANES * sizeof(uint32_t))
#define MAX_PLANES  256

/* ------------------------------------------------------------- steps ---- */

static void step_end(struct soft_wave *w, const struct soft_step *s,
		     const uintptr_t *base)
{
	(void)base;
	w->pc = ((const struct soft_node *)s->u)->next_pc;
}

/* The last one: what follows is where its PC says. */
static void step_last(struct soft_wave *w, const struct soft_step *s,
		      const uintptr_t *base)
{
	struct soft_node *n = (struct soft_node *)s->u;

	(void)base;
	w->group->code->cur = n;
	w->pc = n->next_pc;
	n->u.fn(w, &n->u);
}

void soft_step_checked(struct soft_wave *w, const struct soft_step *s,
		       const uintptr_t *base)
{
	struct soft_node *n = (struct soft_node *)s->u;

	w->group->code->cur = n;
	w->pc = n->next_pc;
	n->u.fn(w, &n->u);
	if (w->state != SOFT_READY)
		w->n_insts -= s->left;
	else
		SOFT_NEXT(w, s, base);
}

/* Handlers that neither fault nor look at the PC. */
static void step_call(struct soft_wave *w, const struct soft_step *s,
		      const uintptr_t *base)
{
	s->u->fn(w, s->u);
	SOFT_NEXT(w, s, base);
}

struct soft_node *soft_stretch_go(const struct soft_stretch *t,
				  struct soft_wave *w,
				  struct soft_code_cache *c)
{
	const uintptr_t base[] = { (uintptr_t)w->v[0], (uintptr_t)w->v[1], 0 };
	struct soft_node *last = t->last;

	w->n_insts += t->n_insts;
	t->step->fn(w, t->step, base);
	c->cur = last;
	return last;
}

/* ------------------------------------------------------------- maker ---- */

struct soft_step *soft_maker_add(struct soft_maker *m, soft_step_fn *fn,
				 const struct soft_uop *u)
{
	struct soft_step s = { .fn = fn, .u = u, .mask_in = ISA_R_VCC_LO,
			       .mask_out = SOFT_STEP_NO_MASK };

	/* Counted from the front until the end is known. */
	s.left = (uint16_t)m->n_insts;
	buf_add(&m->steps, &s, sizeof(s));
	return (struct soft_step *)(m->steps.data + m->steps.len) - 1;
}

uint8_t *soft_maker_planes(struct soft_maker *m, int n)
{
	uint8_t *p = m->plane + m->n_planes * PLANE_BYTES;

	if (m->n_planes + n > m->max_planes)
		return NULL;
	m->n_planes += n;
	return p;
}

/* Registers may have changed: what was broadcast must be so again. */
static void forget_scalars(struct soft_maker *m)
{
	for (int i = 0; i < m->n_known; i++)
		if (m->known[i].scalar)
			m->known[i].valid = false;
}

static void add(struct soft_maker *m, struct soft_node *n)
{
	switch (n->u.in.fmt) {
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
	case ISA_FMT_SOPP:
		if (soft_control_is_nothing(&n->u.in))
			return;
		soft_maker_add(m, step_call, &n->u);
		break;
	default:
		if (soft_step_valu(m, &n->u) || soft_step_memory(m, &n->u) ||
		    soft_step_wmma(m, &n->u) || soft_step_cross(m, &n->u)) {
			soft_maker_written(m, &n->u);
			return;
		}
		soft_maker_add(m, soft_step_checked, &n->u);
		m->n_fragments = 0;
	}
	forget_scalars(m);
}

/* Branches and whatever else looks at or moves the PC, or ends the wave. */
static bool ends(const struct soft_node *n)
{
	switch (n->u.in.fmt) {
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
	case ISA_FMT_SOPP:
		return soft_control_handler(&n->u.in) &&
		       !soft_control_is_nothing(&n->u.in);
	}
	return false;
}

static struct soft_node *walk(struct soft_maker *m, struct soft_node *n,
			      int *n_vgprs)
{
	struct soft_node *last = NULL;

	for (; n && n->sound; n = n->next) {
		last = n;
		m->n_insts++;
		*n_vgprs = n->n_vgprs > *n_vgprs ? n->n_vgprs : *n_vgprs;
		if (ends(n)) {
			soft_maker_add(m, step_last, &n->u);
			return n;
		}
		add(m, n);
		if (m->n_insts == SOFT_STRETCH_INSTS)
			break;
	}
	if (last)
		soft_maker_add(m, step_end, &last->u);
	return last;
}

void soft_stretch_make(struct soft_code_cache *c, struct soft_node *n,
		       uint32_t mode)
{
	struct soft_maker m = { .mode = mode & 0xff, .wide = n->key & 1,
				.max_planes = MAX_PLANES };
	struct soft_stretch *t = xcalloc(1, sizeof(*t));
	struct soft_step *s;

	m.plane = aligned_alloc(64, MAX_PLANES * PLANE_BYTES);
	if (!m.plane)
		BUG("no memory for %d planes", MAX_PLANES);
	t->last = walk(&m, n, &t->n_vgprs);
	t->n_insts = m.n_insts;
	t->mode = m.mode;
	t->plane = m.plane;
	t->step = s = aligned_alloc(64, m.steps.len);
	if (!s)
		BUG("no memory for %zu bytes of steps", m.steps.len);
	memcpy(s, m.steps.data, m.steps.len);
	for (size_t i = 0; i < m.steps.len / sizeof(*s); i++)
		s[i].left = (uint16_t)(m.n_insts - s[i].left);
	buf_fini(&m.steps);
	t->older = c->fast;
	c->fast = t;
	n->fast = t;
}

void soft_stretches_free(struct soft_code_cache *c)
{
	while (c->fast) {
		struct soft_stretch *older = c->fast->older;

		free(c->fast->plane);
		free(c->fast->step);
		free(c->fast);
		c->fast = older;
	}
}
