/*
 * engine/train/gpu/storage.c - which values are of 16 bits in memory, and
 * which gradients need no zeros.
 *
 * A value is f32 for the graph.  Here one that only products and the matrix
 * units' attention read, which round what they take, is stored as that, in half
 * of its place: nothing is rounded twice, and nothing is converted before each
 * product.  All who write it must be able to, and all who read it.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/train/gpu/gpu_int.h"

/*
 * Of every kind, what its operands may be: f f32 only; n of 16 bits, too; r the same
 * where the operation rounds; w where its weight is that; y as w where nothing
 * is added; p as r, all of these or none; g all of these or none, and with
 * flash attention only.
 */
static const char *const role[TRAIN_KINDS] = {
	[TRAIN_EMBED] = "fff",
	[TRAIN_EMBED_BACK] = "fff",
	[TRAIN_NORM] = "ffrf",
	[TRAIN_NORM_BACK] = "fffffff",
	[TRAIN_TURN] = "fffffnf",
	[TRAIN_TURN_BACK] = "fffffffrff",
	[TRAIN_LINEAR] = "wffy",
	[TRAIN_LINEAR_DX] = "wfy",
	[TRAIN_LINEAR_DW] = "nnff",
	[TRAIN_ATTENTION] = "gggfgf",
	[TRAIN_ATTENTION_BACK] = "gggggffffgf",
	[TRAIN_ENGRAM] = "ffffffff",
	[TRAIN_ENGRAM_BACK] = "fffffffffff",
	[TRAIN_SWIGLU] = "ffr",
	[TRAIN_SWIGLU_BACK] = "fffpp",
	[TRAIN_LOSS] = "wfffff",
	[TRAIN_LOSS_BACK] = "wfffffff",
	[TRAIN_ROUND] = "fn",
};

static bool is_added(const struct train_op *op)
{
	return op->add || (op->kind == TRAIN_LINEAR && op->v[2] != TRAIN_NONE);
}

static bool can_narrow(const struct train_gpu *s, const struct train_op *op,
		       unsigned i)
{
	bool weight = operand_of(s, op, 1)->width == 2;

	switch (role[op->kind][i]) {
	case 'n':
		return true;
	case 'r':
	case 'p':
		return op->round;
	case 'w':
		return weight;
	case 'y':
		return weight && !is_added(op);
	case 'g':
		return train_has_flash(s);
	default:
		return false;
	}
}

static bool must_agree(const struct train_op *op, unsigned i)
{
	return role[op->kind][i] == 'g' || role[op->kind][i] == 'p';
}

/* Is one of those f32 that must agree?  Then all are. */
static bool is_split(const struct train_gpu *s, const struct train_op *op)
{
	for (unsigned i = 0; role[op->kind][i]; i++)
		if (must_agree(op, i) && !s->narrow[op->v[i]])
			return true;
	return false;
}

/* Takes from the candidates what this operation rules out: has it? */
static bool widen_operands(struct train_gpu *s, const struct train_op *op)
{
	bool split = is_split(s, op), changed = false;

	for (unsigned i = 0; role[op->kind][i]; i++) {
		uint32_t v = op->v[i];

		if (v == TRAIN_NONE || !s->narrow[v])
			continue;
		s->narrow[v] = can_narrow(s, op, i) &&
			       !(split && must_agree(op, i));
		changed |= !s->narrow[v];
	}
	return changed;
}

void train_find_storage(struct train_gpu *s)
{
	bool half = s->half != DSL_F32, changed = half;

	free(s->narrow);
	s->narrow = xcalloc(s->g->n_values, sizeof(*s->narrow));
	for (uint32_t i = 0; half && i < s->g->n_values; i++)
		s->narrow[i] = s->g->value[i].home == TRAIN_PASSING;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < s->g->n_ops; i++)
			changed |= widen_operands(s, &s->g->op[i]);
	}
}

/* ---- gradients that are written first ---- */

/* The gradient of a weight that an operation makes, all of it; or NONE. */
static uint32_t gradient_made(const struct train_op *op)
{
	return op->kind == TRAIN_LINEAR_DW ? op->v[2] :
	       op->kind == TRAIN_LOSS_BACK ? op->v[5] :
					     TRAIN_NONE;
}

static bool has_operand(const struct train_op *op, uint32_t value)
{
	for (unsigned i = 0; role[op->kind][i]; i++)
		if (op->v[i] == value)
			return true;
	return false;
}

/* Does a product make it, before anything adds to it? */
static bool is_made_first(const struct train_graph *g, uint32_t gradient)
{
	for (uint32_t i = 0; i < g->n_ops; i++)
		if (has_operand(&g->op[i], gradient))
			return gradient_made(&g->op[i]) == gradient;
	return false;
}

void train_step_begin(struct train_gpu *s)
{
	memcpy(s->fresh, s->whole, s->g->n_values * sizeof(*s->fresh));
}

void train_find_whole(struct train_gpu *s)
{
	const struct train_graph *g = s->g;

	free(s->whole);
	free(s->fresh);
	s->whole = xcalloc(g->n_values, sizeof(*s->whole));
	s->fresh = xcalloc(g->n_values, sizeof(*s->fresh));
	for (uint32_t i = 0; i < g->n_params; i++)
		if (g->param[i].gradient != TRAIN_NONE)
			s->whole[g->param[i].gradient] =
				is_made_first(g, g->param[i].gradient);
	train_step_begin(s);
}
