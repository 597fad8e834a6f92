/*
 * engine/train/heads/target.c - what heads should say, and how often they do.
 */
#include "engine/train/heads/heads.h"

void train_heads_target(uint32_t ahead, const uint32_t *position,
			const uint32_t *target, size_t n, uint32_t *out)
{
	for (size_t i = 0; i < n; i++) {
		const size_t at = i + 1 + ahead;
		out[i] = at < n && position[at] == position[i] + 1 + ahead ?
				 target[at] :
				 TRAIN_IGNORE;
	}
}

uint32_t train_heads_likeliest(const float *logits, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++)
		best = logits[i] > logits[best] ? i : best;
	return (uint32_t)best;
}

static void count_right(struct train_heads_sum *sum, uint32_t head,
			const struct tensor *logits, const struct tensor *loss,
			const uint32_t *target)
{
	const size_t n = logits->shape.dim[logits->shape.n - 1];
	const size_t rows = n ? tape_count(logits) / n : 0;
	uint64_t targets = 0;

	for (size_t i = 0; i < rows; i++) {
		sum->right[head] += train_heads_likeliest(logits->data + i * n,
							  n) == target[i];
		targets += target[i] != TRAIN_IGNORE;
	}
	sum->targets[head] += targets;
	sum->loss[head] += (double)targets * (double)loss->data[0];
}

bool train_heads_lose(struct train_heads_sum *sum, uint32_t head,
		      struct tensor *logits, const uint32_t *target,
		      struct tensor **all)
{
	struct tensor *loss = tape_cross_entropy(logits, target);

	if (!loss)
		return false;
	count_right(sum, head, logits, loss, target);
	*all = *all ? tape_add(*all, loss) : loss;
	return *all;
}
