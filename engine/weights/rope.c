/*
 * engine/weights/rope.c - angles of the rotary position embedding.
 */
#include <math.h>

#include "engine/weights/weights.h"

/* The pair that makes so many turns in the positions of the training. */
static double turning_pair(const struct qwen_config *c, double turns)
{
	return c->head_dim * log(c->yarn.positions / (turns * 2 * M_PI)) /
	       (2 * log(c->rope_theta));
}

/*
 * How much of pair i's step is stretched, as YaRN has it: pairs that turn often
 * tell neighbours apart and stay, those that turn less than once are stretched,
 * and between them it goes evenly.
 */
static double stretched_share(const struct qwen_config *c, uint32_t i)
{
	double low = fmax(floor(turning_pair(c, c->yarn.fast)), 0);
	double high = fmin(ceil(turning_pair(c, c->yarn.slow)),
			   c->head_dim - 1.0);

	if (high == low)
		high += 0.001;
	return fmin(fmax((i - low) / (high - low), 0), 1);
}

void qwen_angles(const struct qwen_config *c, uint32_t from, uint32_t to,
		 float *cosine, float *sine)
{
	uint32_t half = c->head_dim / 2;
	double size = 1;

	for (uint32_t i = 0; i < half; i++) {
		double step = pow(c->rope_theta, -2.0 * i / c->head_dim);
		if (c->yarn.factor > 0) {
			double share = stretched_share(c, i);
			step *= share / c->yarn.factor + (1 - share);
			size = c->yarn.attention;
		}
		for (uint32_t p = from; p < to; p++) {
			size_t at = (size_t)p * half + i;
			cosine[at] = (float)(size * cos(p * step));
			sine[at] = (float)(size * sin(p * step));
		}
	}
}
