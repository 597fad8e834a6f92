/*
 * engine/weights/rope.c - angles of the rotary position embedding.
 */
#include <math.h>

#include "engine/weights/weights.h"

void qwen_angles(const struct qwen_config *c, uint32_t positions,
		 float *cosine, float *sine)
{
	uint32_t half = c->head_dim / 2;

	for (uint32_t i = 0; i < half; i++) {
		double step = pow(c->rope_theta, -2.0 * i / c->head_dim);
		for (uint32_t p = 0; p < positions; p++) {
			cosine[(size_t)p * half + i] = (float)cos(p * step);
			sine[(size_t)p * half + i] = (float)sin(p * step);
		}
	}
}
