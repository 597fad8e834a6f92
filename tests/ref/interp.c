/*
 * The reference interpreter: grids, groups, waves and blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"

bool interp_fail(const struct interp_wave *w, const struct ssa_inst *i,
		 uint64_t lane, const char *fmt, ...)
{
	const struct ssa_func *f = w->m->f;
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(w->m->e, ERR_DEVICE,
		       "%s:%u: %%%u = %s in group %u,%u,%u, wave %u, "
		       "lane %llu: %s", f->file ? f->file : f->name, i->line,
		       i->id, ssa_op_info(i->op)->name, w->m->group[0],
		       w->m->group[1], w->m->group[2], w->id,
		       (unsigned long long)lane, text);
}

/* -------------------------------------------------------------- leaves -- */

static uint64_t local_id(const struct interp_wave *w, uint64_t dim,
			 uint64_t lane)
{
	const uint32_t *g = w->m->f->group;
	const uint64_t n = (uint64_t)w->id * w->m->f->wave + lane;

	return dim == 0 ? n % g[0] :
	       dim == 1 ? n / g[0] % g[1] :
			  n / g[0] / g[1];
}

static uint64_t leaf(const struct interp_wave *w, const struct ssa_inst *i,
		     uint64_t lane)
{
	switch (i->op) {
	case SSA_arg:
		return ssa_bits_cut(i->type.kind, w->m->run->arg[i->imm]);
	case SSA_local_id:
		return local_id(w, i->imm, lane);
	case SSA_group_id:
		return w->m->group[i->imm];
	case SSA_num_groups:
		return w->m->run->groups[i->imm];
	case SSA_lane:
		return lane;
	case SSA_wave:
		return w->id;
	case SSA_lds:
		return w->m->lds_base[i->imm];
	case SSA_clock:
		return w->m->steps & 0xfffff;
	default: /* const; undef is 0, too */
		return i->imm;
	}
}

static void run_leaf(struct interp_wave *w, const struct ssa_inst *i)
{
	const uint32_t words = interp_words(i->type);

	INTERP_EACH(lane, w->mask) {
		const uint64_t v = leaf(w, i, lane);

		for (uint32_t k = 0; k < words; k++)
			*interp_word(w, i, k, lane) = k ? 0 : v;
	}
}

/* ------------------------------------------------------- pure operations -- */

static void run_vector(struct interp_wave *w, const struct ssa_inst *i)
{
	uint8_t from[SSA_MAX_LANES * 8], to[SSA_MAX_LANES * 8];
	const uint32_t size = ssa_type_bytes(ssa_type(i->type.kind, 1));

	INTERP_EACH(lane, w->mask) {
		if (i->op == SSA_extract) {
			interp_get(w, i->arg[0], lane, from);
			interp_put(w, i, lane, from + i->imm * size);
			continue;
		}
		for (uint32_t k = 0; k < i->n_args; k++)
			memcpy(to + k * size,
			       interp_word(w, i->arg[k], 0, lane), size);
		interp_put(w, i, lane, to);
	}
}

/* bitcast and select of what is longer than a word. */
static void run_move(struct interp_wave *w, const struct ssa_inst *i)
{
	const uint32_t words = interp_words(i->type);

	INTERP_EACH(lane, w->mask) {
		const struct ssa_inst *from =
			i->op == SSA_bitcast	     ? i->arg[0] :
			interp_arg(w, i, 0, lane) ? i->arg[1] :
						     i->arg[2];

		for (uint32_t k = 0; k < words; k++)
			*interp_word(w, i, k, lane) =
				*interp_word(w, from, k, lane);
	}
}

static void run_pure(struct interp_wave *w, const struct ssa_inst *i)
{
	if (i->op == SSA_pack || i->op == SSA_extract) {
		run_vector(w, i);
		return;
	}
	if (i->op == SSA_bitcast || i->op == SSA_select) {
		run_move(w, i);
		return;
	}
	INTERP_EACH(lane, w->mask) {
		uint64_t arg[3], out;

		for (uint32_t k = 0; k < i->n_args; k++)
			arg[k] = interp_arg(w, i, k, lane);
		if (!ssa_eval(i, arg, &out))
			BUG("no value of %s", ssa_op_info(i->op)->name);
		*interp_word(w, i, 0, lane) = out;
	}
}

/* --------------------------------------------------------------- edges -- */

/* All arguments are read before the first parameter is written. */
static void take_edge(struct interp_wave *w, const struct ssa_edge *e,
		      uint64_t mask)
{
	uint64_t *to = w->m->edge;

	for (uint32_t k = 0; k < e->n_args; k++)
		for (uint32_t j = 0; j < interp_words(e->arg[k]->type); j++) {
			INTERP_EACH(lane, mask)
				to[lane] = *interp_word(w, e->arg[k], j, lane);
			to += INTERP_LANES;
		}
	to = w->m->edge;
	for (uint32_t k = 0; k < e->n_args; k++)
		for (uint32_t j = 0; j < interp_words(e->arg[k]->type); j++) {
			INTERP_EACH(lane, mask)
				*interp_word(w, e->to->param[k], j, lane) =
					to[lane];
			to += INTERP_LANES;
		}
	INTERP_EACH(lane, mask)
		w->at[lane] = e->to->rpo;
}

static void run_end(struct interp_wave *w, const struct ssa_inst *i)
{
	uint64_t yes = w->mask;

	w->pc = NULL;
	if (i->op == SSA_ret) {
		INTERP_EACH(lane, w->mask)
			w->at[lane] = INTERP_DONE;
		return;
	}
	if (i->op == SSA_branch) {
		yes = 0;
		INTERP_EACH(lane, w->mask)
			yes |= interp_arg(w, i, 0, lane) << lane;
		take_edge(w, &i->edge[1], w->mask & ~yes);
	}
	take_edge(w, &i->edge[0], yes);
}

/* --------------------------------------------------------------- waves -- */

static bool check_assume(struct interp_wave *w, const struct ssa_inst *i)
{
	INTERP_EACH(lane, w->mask)
		if (!interp_arg(w, i, 0, lane))
			return interp_fail(w, i, lane, "is false");
	return true;
}

static bool run_inst(struct interp_wave *w, const struct ssa_inst *i)
{
	const struct ssa_op_info *info = ssa_op_info(i->op);

	if (info->flags & SSA_OP_ENDS)
		run_end(w, i);
	else if (!i->n_args && i->type.kind != SSA_VOID)
		run_leaf(w, i);
	else if (info->flags & SSA_OP_PURE || i->op == SSA_ptradd)
		run_pure(w, i);
	else if (i->op == SSA_assume)
		return check_assume(w, i);
	else if (i->op == SSA_printf)
		interp_printf(w, i);
	else if (i->op == SSA_wmma)
		interp_wmma(w, i);
	else if (i->op >= SSA_load && i->op <= SSA_cmpxchg)
		return interp_access(w, i);
	else if (i->op != SSA_fence)
		interp_lanes(w, i);
	return true;
}

static uint64_t live_lanes(const struct interp_wave *w)
{
	uint64_t live = 0;

	for (uint32_t lane = 0; lane < w->m->f->wave; lane++)
		live |= (uint64_t)(w->at[lane] != INTERP_DONE) << lane;
	return live;
}

/* The first block in layout order that a lane waits at; false: all are done. */
static bool choose_block(struct interp_wave *w)
{
	uint32_t first = INTERP_DONE;

	for (uint32_t lane = 0; lane < w->m->f->wave; lane++)
		first = w->at[lane] < first ? w->at[lane] : first;
	if (first == INTERP_DONE)
		return false;
	w->mask = 0;
	for (uint32_t lane = 0; lane < w->m->f->wave; lane++)
		w->mask |= (uint64_t)(w->at[lane] == first) << lane;
	w->pc = w->m->block[first]->first;
	return true;
}

/* Up to the next barrier or the end. */
static bool run_wave(struct interp_wave *w)
{
	const uint64_t limit = w->m->run->max_steps;

	while (!w->waiting && (w->pc || choose_block(w))) {
		struct ssa_inst *i = w->pc;

		if (limit && w->m->steps >= limit)
			return err_set(w->m->e, ERR_TIMEOUT,
				       "%s: more than %llu steps",
				       w->m->f->name,
				       (unsigned long long)limit);
		w->m->steps++;
		if (i->op == SSA_barrier || i->op == SSA_group_reduce) {
			if (w->mask != live_lanes(w))
				return interp_fail(w, i, 0, "not all lanes of "
						   "the wave come here");
			w->waiting = true;
			break;
		}
		w->pc = i->next;
		if (!run_inst(w, i))
			return false;
	}
	return true;
}

/* -------------------------------------------------------------- groups -- */

/* Lets all waves go on from where they wait; *over if none does. */
static bool release(struct interp_wave *wave, uint32_t n, bool *over)
{
	uint32_t waiting = 0, first = 0;

	for (uint32_t k = 0; k < n; k++)
		if (wave[k].waiting && !waiting++)
			first = k;
	*over = !waiting;
	if (*over)
		return true;
	struct ssa_inst *i = wave[first].pc;

	for (uint32_t k = 0; k < n; k++)
		if (!wave[k].waiting || wave[k].pc != i)
			return interp_fail(&wave[first], i, 0,
					   "wave %u does not come here", k);
	if (i->op == SSA_group_reduce)
		interp_group_reduce(wave, n, i);
	for (uint32_t k = 0; k < n; k++) {
		wave[k].waiting = false;
		wave[k].pc = i->next;
	}
	return true;
}

static void start_wave(struct interp *m, struct interp_wave *w, uint32_t id)
{
	const struct ssa_func *f = m->f;
	const uint32_t items = f->group[0] * f->group[1] * f->group[2];

	w->m = m;
	w->id = id;
	w->pc = NULL;
	w->waiting = false;
	for (uint32_t lane = 0; lane < f->wave; lane++)
		w->at[lane] = id * f->wave + lane < items ? 0 : INTERP_DONE;
}

static bool run_group(struct interp *m, struct interp_wave *wave, uint32_t n)
{
	bool over = false;

	memset(m->lds, 0xa5, m->lds_bytes);
	for (uint32_t k = 0; k < n; k++)
		start_wave(m, &wave[k], k);
	while (!over) {
		for (uint32_t k = 0; k < n; k++)
			if (!run_wave(&wave[k]))
				return false;
		if (!release(wave, n, &over))
			return false;
	}
	return true;
}

static bool run_grid(struct interp *m, struct interp_wave *wave, uint32_t n)
{
	const uint32_t *g = m->run->groups;

	for (m->group[2] = 0; m->group[2] < g[2]; m->group[2]++)
		for (m->group[1] = 0; m->group[1] < g[1]; m->group[1]++)
			for (m->group[0] = 0; m->group[0] < g[0];
			     m->group[0]++)
				if (!run_group(m, wave, n))
					return false;
	return true;
}

/* --------------------------------------------------------------- start -- */

static void place_value(struct interp *m, const struct ssa_inst *i)
{
	m->slot[i->id] = m->n_words;
	m->n_words += interp_words(i->type);
}

static void place_values(struct interp *m)
{
	uint32_t n = 0;

	for (struct ssa_block *b = m->f->first; b; b = b->next) {
		m->block[n++] = b;
		for (uint32_t k = 0; k < b->n_params; k++)
			place_value(m, b->param[k]);
		for (struct ssa_inst *i = b->first; i; i = i->next)
			place_value(m, i);
	}
}

static void place_lds(struct interp *m)
{
	for (uint32_t k = 0; k < m->f->n_lds; k++) {
		const uint32_t align = m->f->lds[k].align_bytes;

		m->lds_bytes = (m->lds_bytes + align - 1) / align * align;
		m->lds_base[k] = m->lds_bytes;
		m->lds_bytes += m->f->lds[k].size_bytes;
	}
}

bool ssa_interpret(struct ssa_func *f, const struct ssa_run *run, struct err *e)
{
	struct interp m = { .f = f, .run = run, .e = e };
	const uint32_t items = f->group[0] * f->group[1] * f->group[2];
	const uint32_t n = (items + f->wave - 1) / f->wave;

	if (!ssa_check(f, e))
		return false;
	m.block = xcalloc(f->n_blocks, sizeof(*m.block));
	m.slot = xcalloc(f->n_insts, sizeof(*m.slot));
	m.lds_base = xcalloc(f->n_lds + 1, sizeof(*m.lds_base));
	place_values(&m);
	place_lds(&m);
	m.lds = xcalloc(m.lds_bytes + 1, 1);
	m.edge = xcalloc((size_t)(m.n_words + 1) * INTERP_LANES, 8);
	struct interp_wave *wave = xcalloc(n, sizeof(*wave));

	for (uint32_t k = 0; k < n; k++)
		wave[k].v = xcalloc((size_t)(m.n_words + 1) * INTERP_LANES, 8);
	const bool good = run_grid(&m, wave, n);

	for (uint32_t k = 0; k < n; k++)
		free(wave[k].v);
	free(wave);
	free(m.block);
	free(m.slot);
	free(m.lds_base);
	free(m.lds);
	free(m.edge);
	return good;
}
