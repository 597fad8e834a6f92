/*
 * kfd/soft/exec/fast/superblock.c - makes superblocks of microops, and runs
 * them.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/exec/fast/native.h"

/* ---------------------------------------------------------- microops ---- */

static void leave_superblock(struct soft_wave *w, const struct soft_microop *m,
			     const uintptr_t *base)
{
	(void)base;
	w->pc = ((const struct soft_node *)m->u)->next_pc;
}

/* The last one: what follows is where its PC says. */
static void run_last(struct soft_wave *w, const struct soft_microop *m,
		     const uintptr_t *base)
{
	struct soft_node *n = (struct soft_node *)m->u;

	(void)base;
	w->group->code->cur = n;
	w->pc = n->next_pc;
	n->u.fn(w, &n->u);
}

void soft_microop_checked(struct soft_wave *w, const struct soft_microop *m,
			  const uintptr_t *base)
{
	struct soft_node *n = (struct soft_node *)m->u;

	w->group->code->cur = n;
	w->pc = n->next_pc;
	n->u.fn(w, &n->u);
	if (w->state != SOFT_READY)
		w->n_insts -= m->left;
	else
		SOFT_NEXT(w, m, base);
}

void soft_microop_call(struct soft_wave *w, const struct soft_microop *m,
		       const uintptr_t *base)
{
	m->u->fn(w, m->u);
	SOFT_NEXT(w, m, base);
}

struct soft_node *soft_superblock_run(const struct soft_superblock *b,
				      struct soft_wave *w,
				      struct soft_code_cache *c)
{
	const uintptr_t base[] = { (uintptr_t)w->v[0], (uintptr_t)w->v[1], 0 };
	struct soft_node *last = b->last;

	w->n_insts += b->n_insts;
	b->microop->fn(w, b->microop, base);
	c->cur = last;
	return last;
}

/* -------------------------------------------------------- translator ---- */

struct soft_microop *soft_translator_emit(struct soft_translator *t,
					  soft_microop_fn *fn,
					  const struct soft_uop *u)
{
	struct soft_microop m = { .fn = fn,
				  .u = u,
				  .mask_in = ISA_R_VCC_LO,
				  .mask_out = SOFT_NO_MASK };

	/* Counted from the front until the end is known. */
	m.left = (uint16_t)t->n_insts;
	buf_add(&t->microops, &m, sizeof(m));
	return (struct soft_microop *)(t->microops.data + t->microops.len) - 1;
}

uint8_t *soft_translator_temps(struct soft_translator *t, int n)
{
	uint8_t *p = t->temp + t->n_temps * SOFT_VREG_BYTES;

	if (t->n_temps + n > t->max_temps)
		return NULL;
	t->n_temps += n;
	return p;
}

/* Registers may have changed: what was broadcast must be so again. */
static void forget_scalars(struct soft_translator *t)
{
	for (int i = 0; i < t->n_known; i++)
		if (t->known[i].scalar)
			t->known[i].valid = false;
}

/* The same after an instruction that writes at most its destination. */
static void forget_destination(struct soft_translator *t,
			       const struct soft_microop *m)
{
	for (int i = 0; i < t->n_known; i++)
		for (int k = 0; t->known[i].scalar && k < t->known[i].dwords;
		     k++)
			if (soft_native_writes(m, (int)t->known[i].lo + k))
				t->known[i].valid = false;
}

static void translate_inst(struct soft_translator *t, struct soft_node *n)
{
	const struct soft_microop *m;

	switch (n->u.in.fmt) {
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
	case ISA_FMT_SOPP:
		if (soft_control_is_nothing(&n->u.in))
			return;
		m = soft_translator_emit(t, soft_microop_call, &n->u);
		if (soft_native_is_scalar(m)) {
			forget_destination(t, m);
			return;
		}
		break;
	case ISA_FMT_SMEM:
		if (soft_translate_scalar_load(t, &n->u))
			break;
		/* fall through */
	default:
		if (soft_translate_valu(t, &n->u) ||
		    soft_translate_memory(t, &n->u) ||
		    soft_translate_wmma(t, &n->u) ||
		    soft_translate_cross(t, &n->u)) {
			soft_translator_forget_written(t, &n->u);
			return;
		}
		m = soft_translate_lane(t, &n->u);
		if (m) {
			forget_destination(t, m);
			soft_translator_forget_written(t, &n->u);
			return;
		}
		soft_translator_emit(t, soft_microop_checked, &n->u);
		t->n_fragments = 0;
	}
	forget_scalars(t);
}

static struct soft_node *translate_all(struct soft_translator *t,
				       struct soft_node *n, int *n_vgprs)
{
	struct soft_node *last = NULL;

	for (; n && n->sound; n = n->next) {
		last = n;
		t->n_insts++;
		*n_vgprs = n->n_vgprs > *n_vgprs ? n->n_vgprs : *n_vgprs;
		if (n->branches) {
			soft_translator_emit(t, run_last, &n->u);
			return n;
		}
		translate_inst(t, n);
		if (t->n_insts == SOFT_SUPERBLOCK_INSTS)
			break;
	}
	if (last)
		soft_translator_emit(t, leave_superblock, &last->u);
	return last;
}

void soft_superblock_translate(struct soft_code_cache *c, struct soft_node *n,
			       uint32_t mode)
{
	struct soft_translator t = { .simd = soft_simd(),
				     .cache = c,
				     .mode = mode & 0xff,
				     .wide = n->key & 1,
				     .n_loads = c->n_loads,
				     .max_temps = SOFT_MAX_TEMPS };
	struct soft_superblock *b = xcalloc(1, sizeof(*b));
	struct soft_microop *m;
	size_t n_microops;

	t.temp = xaligned(64, SOFT_NATIVE_HOMES + SOFT_NATIVE_HOMES_BYTES);
	b->last = translate_all(&t, n, &b->n_vgprs);
	b->n_insts = t.n_insts;
	b->mode = t.mode;
	b->temp = t.temp;
	c->n_loads = t.n_loads;
	m = (struct soft_microop *)(void *)t.microops.data;
	n_microops = t.microops.len / sizeof(*m);
	for (size_t i = 0; i < n_microops; i++)
		m[i].left = (uint16_t)(t.n_insts - m[i].left);
	b->microop = soft_native_fuse(c, m, n_microops, t.temp, t.mode);
	buf_fini(&t.microops);
	b->older = c->fast;
	c->fast = b;
	n->fast = b;
}

void soft_superblocks_free(struct soft_code_cache *c)
{
	while (c->fast) {
		struct soft_superblock *older = c->fast->older;

		free(c->fast->temp);
		free(c->fast->microop);
		free(c->fast);
		c->fast = older;
	}
	soft_native_free(c->native);
	c->native = NULL;
}
