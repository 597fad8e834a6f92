/*
 * compiler/backend/hazards.c - dependencies that gfx11 does not interlock (the rules
 * are those of isa/verify/verify.def).
 *
 * A transcendental result may be read too early by one of the next five VALU
 * instructions (gfx11.0), or arrive behind the result of one that writes the
 * same register; s_waitcnt_depctr va_vdst(0) before the reader, or a memory
 * instruction on the way, makes it safe.  A matrix result may not be A
 * or B of the very next VALU instruction.  In wave64 a VALU instruction must
 * not read sources from both sides of a write of EXEC, nor a lane mask that
 * was overwritten while in use.
 */
#include "compiler/backend/backend.h"

#include <stdlib.h>
#include <string.h>

enum { FAR = 255, REACH = 6 };

struct state {
	uint8_t valus[256]; /* VALU instructions since a TRANS wrote it */
	uint8_t trans[256]; /* TRANS among them */
	uint8_t matrix[256]; /* 0: the last VALU was a matrix that wrote it */
};

struct finder {
	struct mir_func *m;
	struct state *out;
	bool *seen;
	bool insert;
};

static bool is_trans(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_TRANS || mir_pipe(i) == ISA_PIPE_TRANS64;
}

static bool drains(const struct mir_inst *i)
{
	return mir_is_vmem(i) || mir_is_ds(i);
}

static void join(struct state *a, const struct state *b)
{
	uint8_t *x = (uint8_t *)a;
	const uint8_t *y = (const uint8_t *)b;

	for (size_t k = 0; k < sizeof(*a); k++)
		x[k] = x[k] < y[k] ? x[k] : y[k];
}

static bool pending(const struct finder *f, const struct state *s,
		    const struct mir_inst *i, const uint8_t *age, int limit)
{
	struct mir_touch t;

	(void)s;
	mir_touches(f->m, i, &t);
	for (int k = 0; k < t.n; k++)
		for (int j = 0; t.t[k].file == MIR_V && t.t[k].read &&
				j < t.t[k].n; j++)
			if (age[t.t[k].reg + j] < limit)
				return true;
	return false;
}

/* A or B of a matrix instruction. */
static bool matrix_reads(const struct finder *f, const struct state *s,
			 const struct mir_inst *i)
{
	for (int k = 1; k < 3; k++)
		for (int j = 0; mir_is_v(f->m, &i->o[k]) && j < i->o[k].n; j++)
			if (!s->matrix[mir_phys(f->m, &i->o[k]) + j])
				return true;
	return false;
}

static void clear(struct state *s)
{
	memset(s->valus, FAR, sizeof(s->valus));
	memset(s->trans, FAR, sizeof(s->trans));
}

static void step(const struct finder *f, struct state *s,
		 const struct mir_inst *i)
{
	bool trans = is_trans(i);

	for (int r = 0; r < 256; r++) {
		s->valus[r] += s->valus[r] < REACH;
		if (s->trans[r] < 2)
			s->trans[r] += trans;
		if (s->valus[r] >= REACH || s->trans[r] >= 2)
			s->valus[r] = s->trans[r] = FAR;
	}
	memset(s->matrix, FAR, sizeof(s->matrix));
	for (int k = 0; k < i->n_def; k++)
		for (int j = 0; mir_is_v(f->m, &i->o[k]) && j < i->o[k].n;
		     j++) {
			int r = mir_phys(f->m, &i->o[k]) + j;

			if (trans)
				s->valus[r] = s->trans[r] = 0;
			if (mir_pipe(i) == ISA_PIPE_WMMA)
				s->matrix[r] = 0;
		}
}

static void walk(struct finder *f, struct mir_block *b, struct state *s)
{
	for (struct mir_inst *i = b->first; i; i = i->next) {
		if (drains(i))
			clear(s);
		if (!mir_is_valu(i))
			continue;
		if (pending(f, s, i, s->valus, REACH)) {
			if (f->insert)
				mir_special(f->m, i, ISA_s_waitcnt_depctr,
					    " 0xfff");
			clear(s);
		}
		if (mir_pipe(i) == ISA_PIPE_WMMA && matrix_reads(f, s, i) &&
		    f->insert)
			mir_special(f->m, i, ISA_v_nop, "");
		step(f, s, i);
	}
}

static void entry_state(const struct finder *f, const struct mir_block *b,
			struct state *s)
{
	memset(s, FAR, sizeof(*s));
	for (uint32_t k = 0; k < b->n_preds; k++)
		if (f->seen[b->pred[k]->order])
			join(s, &f->out[b->pred[k]->order]);
}

/* -------------------------------------------------------------- wave64 ---- */

static bool writes_mask(const struct mir_func *m, const struct mir_inst *i)
{
	if (!mir_is_salu(i))
		return false;
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].n == m->wave / 32 && mir_is_s(m, &i->o[k]))
			return true;
	return false;
}

/* What was issued before is done before EXEC or a mask changes. */
static void wide_waves(struct mir_func *m)
{
	for (uint32_t b = 0; b < m->n_order; b++)
		for (struct mir_inst *i = m->order[b]->first; i; i = i->next) {
			if (mir_writes_exec(i))
				mir_special(m, i, ISA_s_waitcnt_depctr,
					    " 0xfff");
			if (i->prev && writes_mask(m, i->prev))
				mir_special(m, i, ISA_s_waitcnt_depctr,
					    " 0xfffe");
		}
}

void mir_hazards(struct mir_func *m)
{
	struct finder f = { .m = m };
	struct state s;
	bool changed = true;

	mir_number(m);
	f.out = xcalloc(m->n_order, sizeof(*f.out));
	f.seen = xcalloc(m->n_order, sizeof(*f.seen));
	while (changed) {
		changed = false;
		for (uint32_t b = 0; b < m->n_order; b++) {
			entry_state(&f, m->order[b], &s);
			walk(&f, m->order[b], &s);
			if (f.seen[b] && !memcmp(&s, &f.out[b], sizeof(s)))
				continue;
			f.seen[b] = true;
			f.out[b] = s;
			changed = true;
		}
	}
	f.insert = true;
	for (uint32_t b = 0; b < m->n_order; b++) {
		entry_state(&f, m->order[b], &s);
		walk(&f, m->order[b], &s);
	}
	if (m->wave == 64)
		wide_waves(m);
	free(f.out);
	free(f.seen);
}
