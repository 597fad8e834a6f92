/*
 * engine/train/gpu/storage.c - which values are bf16 in memory.
 *
 * A value is f32 for the graph.  Here one that only products and the matrix
 * units' attention read, which round what they take, is stored as bf16, in half
 * of its place: nothing is rounded twice, and nothing is converted before each
 * product.  All who write it must be able to, and all who read it.
 */
#include <stdlib.h>

#include "engine/train/gpu/gpu_int.h"

/*
 * Of every kind, what its operands may be: f f32 only; n bf16, too; r the same
 * where the operation rounds; w where its weight is bf16; y as w where nothing
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
	bool changed = s->bf16;

	free(s->narrow);
	s->narrow = xcalloc(s->g->n_values, sizeof(*s->narrow));
	for (uint32_t i = 0; s->bf16 && i < s->g->n_values; i++)
		s->narrow[i] = s->g->value[i].home == TRAIN_PASSING;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < s->g->n_ops; i++)
			changed |= widen_operands(s, &s->g->op[i]);
	}
}
