/*
 * The kernels of attention against doubles: every level, type of cache and
 * number of heads, sizes of heads that fill no vector, and any number of rows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float.h"
#include "engine/weights/weights.h"
#include "tests/tap.h"

enum { MOST_D = 320, MOST_ROWS = 70, MOST_HEADS = 7 };

struct input {
	uint8_t data[MOST_ROWS * MOST_D * 4];
	uint16_t scale[MOST_ROWS * MOST_D / QWEN_GROUP];
	double value[MOST_ROWS][MOST_D]; /* what is stored there */
	float q[MOST_HEADS * MOST_D], share[MOST_HEADS * MOST_ROWS];
};

static float draw(uint64_t *seed)
{
	return (float)((int32_t)random_next(seed) * 0x1p-30);
}

/* Stored values, and what they stand for by their published definition. */
static void fill(struct input *in, enum qwen_weights type, uint32_t d,
		 uint64_t *seed)
{
	for (uint32_t i = 0; i < MOST_ROWS * d; i++) {
		float x = draw(seed);
		double *to = &in->value[i / d][i % d];
		uint16_t h = (uint16_t)(type == QWEN_W_F16 ?
						float_bits(x, 5, 10) :
						float_bits(x, 8, 7));
		if (i % QWEN_GROUP == 0 && type == QWEN_W_INT8)
			in->scale[i / QWEN_GROUP] = (uint16_t)float_bits(
				fabsf(draw(seed)) / 127, 5, 10);
		if (type == QWEN_W_F32) {
			memcpy(in->data + 4 * i, &x, 4);
			*to = x;
		} else if (type == QWEN_W_INT8) {
			int8_t q = (int8_t)(random_next(seed) % 255 - 127);
			in->data[i] = (uint8_t)q;
			*to = q * float_value(in->scale[i / QWEN_GROUP], 5, 10);
		} else {
			memcpy(in->data + 2 * i, &h, 2);
			*to = type == QWEN_W_F16 ? float_value(h, 5, 10) :
						   float_value(h, 8, 7);
		}
	}
	for (int i = 0; i < MOST_HEADS * MOST_D; i++)
		in->q[i] = draw(seed);
	for (int i = 0; i < MOST_HEADS * MOST_ROWS; i++)
		in->share[i] = fabsf(draw(seed));
}

/*
 * The largest error as a share of what rounding explains: of sums in f32, and of
 * queries in 8 bits, half a step of a 127th of the largest of their group.
 */
static double scores_worst(const struct qwen_kernels *k,
			   const struct qwen_matrix *m, const struct input *in,
			   uint32_t heads)
{
	float s[MOST_HEADS * MOST_ROWS];
	double worst = 0;

	k->scores(m, in->q, heads, s, MOST_ROWS);
	for (uint32_t h = 0; h < heads; h++)
		for (uint32_t r = 0; r < m->rows; r++) {
			double sum = 0, size = 0, bound;
			for (uint32_t i = 0; i < m->cols; i++) {
				double v = in->value[r][i] *
					   in->q[h * m->cols + i];
				sum += v;
				size += fabs(v);
			}
			bound = size * 0x1p-20 + 1e-30;
			for (uint32_t i = 0; m->scale && i < m->cols; i++)
				bound += fabs(in->value[r][i]) * 2 / 254;
			worst = fmax(worst, fabs(s[h * MOST_ROWS + r] - sum) /
						    bound);
		}
	return worst;
}

static double mix_worst(const struct qwen_kernels *k,
			const struct qwen_matrix *m, const struct input *in,
			uint32_t heads)
{
	float y[MOST_HEADS * MOST_D];
	double worst = 0;

	for (uint32_t i = 0; i < heads * m->cols; i++)
		y[i] = 1;
	k->mix(m, in->share, MOST_ROWS, heads, y);
	for (uint32_t h = 0; h < heads; h++)
		for (uint32_t i = 0; i < m->cols; i++) {
			double sum = 1, size = 1;
			for (uint32_t r = 0; r < m->rows; r++) {
				double v = in->value[r][i] *
					   in->share[h * MOST_ROWS + r];
				sum += v;
				size += fabs(v);
			}
			worst = fmax(worst, fabs(y[h * m->cols + i] - sum) /
						    (size * 0x1p-20));
		}
	return worst;
}

static void test_kernels(const struct qwen_kernels *k, struct input *in)
{
	static const uint32_t dim[] = { 128, 64, 32, 96, 320, 80, 33, 7 };
	static const uint32_t rows[] = { 1, 3, 15, 16, 33, 70 };
	uint64_t seed = 77;

	for (int type = 0; type <= QWEN_W_INT8; type++) {
		double scores = 0, mix = 0;
		for (size_t i = 0; i < ARRAY_SIZE(dim); i++) {
			struct qwen_matrix m = { (enum qwen_weights)type, 0,
						 dim[i], in->data, NULL };
			if (type == QWEN_W_INT8 && dim[i] % QWEN_GROUP)
				continue;
			m.scale = type == QWEN_W_INT8 ? in->scale : NULL;
			fill(in, m.type, dim[i], &seed);
			for (uint32_t n = 0; n < 6 * MOST_HEADS; n++) {
				m.rows = rows[n % 6];
				scores = fmax(scores, scores_worst(
					k, &m, in, 1 + n / 6));
				mix = fmax(mix, mix_worst(k, &m, in,
							  1 + n / 6));
			}
		}
		diag("%s, %s: scores %.2f, values %.2f of what is allowed",
		     k->name, qwen_weights_name((enum qwen_weights)type),
		     scores, mix);
		ok(scores <= 1 && mix <= 1, "%s: attention with a cache of %s",
		   k->name, qwen_weights_name((enum qwen_weights)type));
	}
}

/* What is infinite or no number in a vector stays so, in its group alone. */
static void test_put(const struct qwen_kernels *k)
{
	struct qwen_cache c = { .type = QWEN_W_INT8, .layers = 2,
				.sequences = 3, .positions = 300,
				.kv_heads = 2, .head_dim = 64, .k = k };
	struct qwen_place p = { QWEN_VALUES, 1, 2, 1 };
	struct err e = { 0 };
	float x[64], y[64];
	double worst = 0;
	uint64_t seed = 5;

	ok(qwen_cache_init(&c, &e), "%s: a cache of int8", k->name);
	is_u64(c.size_bytes, 2ull * 2 * 3 * 300 * 2 * (64 + 4),
	       "%s: has a byte for a value and two for a scale of 32",
	       k->name);
	for (uint32_t at = 0; at < 300; at += 299) {
		for (int i = 0; i < 64; i++)
			x[i] = ldexpf(draw(&seed), i < 32 ? -9 : 3);
		qwen_cache_put(&c, &p, at, x);
		struct qwen_matrix m = qwen_cache_rows(&c, &p, at / QWEN_RUN * QWEN_RUN,
						       at % QWEN_RUN + 1);
		k->unpack(&m, at % QWEN_RUN, 0, 64, y);
		for (int i = 0; i < 64; i++) /* half a step, and the scale's */
			worst = fmax(worst, fabs((double)x[i] - y[i]) /
				(ldexp(2, i < 32 ? -9 : 3) / 254 * 1.1));
	}
	ok(worst <= 1, "%s: whose values are within half a step (%.2f)", k->name,
	   worst);
	x[3] = NAN;
	x[40] = INFINITY;
	qwen_cache_put(&c, &p, 7, x);
	struct qwen_matrix m = qwen_cache_rows(&c, &p, 0, 8);
	k->unpack(&m, 7, 0, 64, y);
	ok(isnan(y[3]) && !isfinite(y[40]), "%s: and what is no number is none",
	   k->name);
	qwen_cache_fini(&c);
}

int main(void)
{
	struct input *in = xcalloc(1, sizeof(*in));

	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k; k++) {
		test_kernels(*k, in);
		test_put(*k);
	}
	free(in);
	return plan_done();
}
