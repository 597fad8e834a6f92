/*
 * The kernels of attention against doubles: every level, type of cache and
 * number of heads, sizes of heads that fill no vector, and any number of rows;
 * and what a cache makes of vectors.
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

static const enum qwen_weights types[] = {
	QWEN_W_F32, QWEN_W_F16, QWEN_W_BF16, QWEN_W_F8, QWEN_W_INT8, QWEN_W_INT4
};

static const char *name_of(enum qwen_weights w)
{
	static char text[QWEN_KINDS_TEXT];

	return qwen_kinds_print(qwen_both(w), text);
}

static bool is_scaled(enum qwen_weights w)
{
	return w == QWEN_W_INT8 || w == QWEN_W_INT4;
}

/* 1.m 2^(e - 7), or 0.m 2^-6; 127 is no number. */
static double e4m3(int code)
{
	int e = code >> 3 & 15, m = code & 7;
	double v = e ? ldexp(1 + m / 8.0, e - 7) : ldexp(m / 8.0, -6);

	return (code & 127) == 127 ? NAN : code & 128 ? -v : v;
}

/* Of the nearest two the even one. */
static int nearest_e4m3(double x)
{
	int best = x < 0 ? 128 : 0;

	for (int i = best; i < (best | 126); i++) {
		double d = fabs(x - e4m3(i + 1)) - fabs(x - e4m3(best));
		if (d < 0 || (d == 0 && best & 1))
			best = i + 1;
	}
	return best;
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
		if (i % QWEN_GROUP == 0 && is_scaled(type))
			in->scale[i / QWEN_GROUP] = (uint16_t)float_bits(
				fabsf(draw(seed)) / 127, 5, 10);
		if (type == QWEN_W_F32) {
			memcpy(in->data + 4 * i, &x, 4);
			*to = x;
		} else if (type == QWEN_W_INT8) {
			int8_t q = (int8_t)(random_next(seed) % 255 - 127);
			in->data[i] = (uint8_t)q;
			*to = q * float_value(in->scale[i / QWEN_GROUP], 5, 10);
		} else if (type == QWEN_W_INT4) {
			uint8_t q = random_next(seed) & 15, g = i % QWEN_GROUP;
			uint8_t *at = &in->data[i / QWEN_GROUP * 16 + g % 16];
			*at = g < 16 ? q : (uint8_t)(*at | q << 4);
			*to = (q - 8) *
			      float_value(in->scale[i / QWEN_GROUP], 5, 10);
		} else if (type == QWEN_W_F8) {
			do
				in->data[i] = (uint8_t)random_next(seed);
			while ((in->data[i] & 127) == 127);
			*to = e4m3(in->data[i]);
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
 * The largest error as a share of what rounding explains: of sums in f32, and
 * of queries in 8 bits, half a step of a 127th of the largest of their group.
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
			worst = fmax(worst,
				     fabs(s[h * MOST_ROWS + r] - sum) / bound);
		}
	return worst;
}

/*
 * What shares of 16 bits may be wrong by, of a column of INT8: half a step of a
 * 65,280th of the largest, with its scale.
 */
static double round_bound(const struct qwen_matrix *m, const struct input *in,
			  const float *share, uint32_t column)
{
	const uint32_t groups = m->cols / QWEN_GROUP;
	double largest = 0, sum = 0;

	for (uint32_t r = 0; r < m->rows; r++) {
		for (uint32_t g = 0; g < groups; g++)
			largest = fmax(largest,
				       share[r] * float_value(
							  in->scale[r * groups +
								    g],
							  5, 10));
		sum += abs((int8_t)in->data[r * m->cols + column]);
	}
	return sum * largest / 65280 / 2;
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
			const float *share = in->share + h * MOST_ROWS;
			double sum = 1, size = 1, bound;
			for (uint32_t r = 0; r < m->rows; r++) {
				double v = in->value[r][i] * share[r];
				sum += v;
				size += fabs(v);
			}
			bound = size * 0x1p-20;
			if (m->type == QWEN_W_INT8)
				bound += round_bound(m, in, share, i);
			worst = fmax(worst,
				     fabs(y[h * m->cols + i] - sum) / bound);
		}
	return worst;
}

static void test_kernels(const struct qwen_kernels *k, struct input *in)
{
	static const uint32_t dim[] = { 128, 64, 32, 96, 320, 80, 33, 7 };
	static const uint32_t rows[] = { 1, 3, 15, 16, 33, 70 };
	uint64_t seed = 77;

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		double scores = 0, mix = 0;
		for (size_t i = 0; i < ARRAY_SIZE(dim); i++) {
			struct qwen_matrix m = { types[t], 0, dim[i], in->data,
						 NULL };
			if (is_scaled(m.type) && dim[i] % QWEN_GROUP)
				continue;
			m.scale = is_scaled(m.type) ? in->scale : NULL;
			fill(in, m.type, dim[i], &seed);
			for (uint32_t n = 0; n < 6 * MOST_HEADS; n++) {
				m.rows = rows[n % 6];
				scores = fmax(scores, scores_worst(k, &m, in,
								   1 + n / 6));
				mix = fmax(mix,
					   mix_worst(k, &m, in, 1 + n / 6));
			}
		}
		diag("%s, %s: scores %.2f, values %.2f of what is allowed",
		     k->name, name_of(types[t]), scores, mix);
		ok(scores <= 1 && mix <= 1, "%s: attention with a cache of %s",
		   k->name, name_of(types[t]));
	}
}

/* ---- what a cache makes of vectors ---- */

/* Every code, and every value between two of them. */
static void test_f8(const struct qwen_kernels *k)
{
	uint8_t code[256], back[256];
	float x[256];
	uint32_t wrong = 0, n = 0;
	uint64_t seed = 8;

	for (int i = 0; i < 256; i++)
		code[i] = (uint8_t)i;
	k->widen(QWEN_W_F8, code, 256, x);
	for (int i = 0; i < 256; i++)
		wrong += isnan(e4m3(i)) ? !isnan(x[i]) : x[i] != e4m3(i);
	is_u64(wrong, 0, "%s: the 256 values of E4M3", k->name);
	for (int round = 0; round < 400; round++) {
		n = 1 + (uint32_t)(random_next(&seed) % 256);
		for (uint32_t i = 0; i < n; i++) {
			int low = (int)(random_next(&seed) % 126);
			double a = e4m3(low), b = e4m3(low + 1);
			x[i] = (float)(round % 2 ?
					       (a + b) / 2 :
					       a + (b - a) * fabs(draw(&seed)) /
							       2);
			x[i] = random_next(&seed) & 1 ? x[i] : -x[i];
		}
		k->narrow(QWEN_W_F8, x, n, back);
		for (uint32_t i = 0; i < n; i++)
			wrong += back[i] != nearest_e4m3(x[i]) &&
				 !(x[i] == 0 && (back[i] & 127) == 0);
	}
	is_u64(wrong, 0, "%s: what is between goes to the nearest, or even one",
	       k->name);
	const float odd[] = { 449, -1e30f, INFINITY, -NAN, 0x1p-10f, 0x1p-11f };
	const uint8_t want[] = { 126, 254, 127, 255, 0, 0 };
	k->narrow(QWEN_W_F8, odd, 6, back);
	is_mem(back, want, 6, "%s: what is too large is the largest", k->name);
}

static void test_turn(const struct qwen_kernels *k)
{
	static const uint32_t dim[] = { 32, 64, 96, 128, 224, 256 };
	double worst = 0, twice = 0;
	uint64_t seed = 6;

	for (size_t t = 0; t < ARRAY_SIZE(dim); t++) {
		uint32_t n = dim[t], block = n & -n;
		float x[256], y[256];
		for (uint32_t i = 0; i < n; i++)
			x[i] = y[i] = draw(&seed);
		k->turn(y, n);
		for (uint32_t i = 0; i < n; i++) {
			double sum = 0; /* entries are (-1)^(bits of i & j) */
			for (uint32_t j = 0; j < block; j++)
				sum += (__builtin_popcount(i % block & j) & 1 ?
						-1 :
						1) *
				       x[i / block * block + j];
			worst = fmax(worst, fabs(y[i] - sum / sqrt(block)));
		}
		k->turn(y, n);
		for (uint32_t i = 0; i < n; i++)
			twice = fmax(twice, fabs(y[i] - x[i]));
	}
	ok(worst < 1e-6 && twice < 1e-6,
	   "%s: Hadamard's matrix (%.1e), and "
	   "twice nothing (%.1e)",
	   k->name, worst, twice);
}

/* Reads one vector back as f32, as it was given. */
static void vector_read(const struct qwen_cache *c, const struct qwen_place *p,
			uint32_t at, float *y)
{
	const uint32_t from = at / c->together * c->together;
	const struct qwen_matrix m =
		qwen_cache_rows(c, p, from, at % c->together + 1);
	const uint32_t row = at % c->together, n = c->head_dim;
	const enum qwen_weights w = p->part == QWEN_KEYS ? c->type.keys :
							   c->type.values;

	if (m.scale)
		c->k->unpack(&m, row, 0, n, y);
	else
		c->k->widen(w,
			    (const uint8_t *)m.data +
				    row * qwen_matrix_bytes(&m) / m.rows,
			    n, y);
	if (w == QWEN_W_INT4R)
		c->k->turn(y, n);
}

/*
 * Bytes of a vector of 64, and the largest error as a share of what stands
 * out most within 32 values: half a step, and what the scale rounds.  Int4's
 * steps are an eighth, and its largest code is 7.
 */
static const struct {
	enum qwen_weights type;
	uint64_t bytes;
	double bound;
} kept[] = {
	{ QWEN_W_F32, 256, 0 },		{ QWEN_W_F16, 128, 0x1p-11 },
	{ QWEN_W_BF16, 128, 0x1p-8 },	{ QWEN_W_F8, 64, 0x1p-4 },
	{ QWEN_W_INT8, 68, 1.1 / 254 }, { QWEN_W_INT4, 36, 1.01 / 8 },
	{ QWEN_W_INT4R, 36, 0.2 }, /* of the vector's length */
};

static double put_worst(const struct qwen_cache *c, const struct qwen_place *p,
			uint32_t at, uint64_t *seed)
{
	const bool turned =
		(p->part == QWEN_KEYS ? c->type.keys : c->type.values) ==
		QWEN_W_INT4R;
	float x[64], y[64];
	double worst = 0, square = 0;

	for (int i = 0; i < 64; i++) {
		x[i] = ldexpf(draw(seed), i < 32 ? -3 : 3);
		square += (double)x[i] * x[i];
	}
	qwen_cache_put(c, p, at, x);
	vector_read(c, p, at, y);
	for (int g = 0; g < 64; g += 32) {
		double most = 0, error = 0;
		for (int i = g; i < g + 32; i++) {
			most = fmax(most, fabs(x[i]));
			error = fmax(error, fabs((double)x[i] - y[i]));
		}
		worst = fmax(worst, error / (turned ? sqrt(square) : most));
	}
	return worst;
}

/* What turning is for: one value that stands out does not blur the others. */
static void test_outlier(const struct qwen_kernels *k)
{
	double error[2] = { 0 };
	uint64_t seed = 12;

	for (int turned = 0; turned < 2; turned++) {
		struct qwen_cache c = {
			.type = qwen_both(turned ? QWEN_W_INT4R : QWEN_W_INT4),
			.layers = 1,
			.sequences = 1,
			.positions = 50,
			.kv_heads = 1,
			.head_dim = 128,
			.k = k
		};
		struct qwen_place p = { QWEN_KEYS, 0, 0, 0 };
		struct err e = { 0 };
		float x[128], y[128];

		ok(qwen_cache_init(&c, &e), "%s: a cache", k->name);
		for (uint32_t at = 0; at < 50; at++) {
			for (int i = 0; i < 128; i++)
				x[i] = draw(&seed) * (i % 32 == 7 ? 15 : 1);
			qwen_cache_put(&c, &p, at, x);
			vector_read(&c, &p, at, y);
			for (int i = 0; i < 128; i++)
				error[turned] += pow((double)x[i] - y[i], 2);
		}
		qwen_cache_fini(&c);
	}
	ok(error[1] < error[0] / 2,
	   "%s: turned int4 errs less where values "
	   "stand out (%.0f, not %.0f)",
	   k->name, error[1], error[0]);
}

/* Keys in one type, values in another; runs, or blocks in any order. */
static void test_put(const struct qwen_kernels *k, size_t keys, size_t values,
		     uint32_t blocks)
{
	static const uint32_t table[] = { 7,  2,  19, 4,  0,  5,  6,  1,  8, 9,
					  10, 11, 12, 13, 14, 15, 16, 17, 18 };
	struct qwen_cache c = { .type = { kept[keys].type, kept[values].type },
				.layers = 2,
				.sequences = 3,
				.positions = 300,
				.kv_heads = 2,
				.head_dim = 64,
				.k = k,
				.blocks = blocks };
	struct qwen_place p = { QWEN_KEYS, 1, 2, 1 };
	struct err e = { 0 };
	double worst[2] = { 0 };
	char what[64], text[QWEN_KINDS_TEXT];
	uint64_t seed = 5;

	snprintf(what, sizeof(what), "%s: %s%s", k->name,
		 qwen_kinds_print(c.type, text), blocks ? " in blocks" : "");
	if (!ok(qwen_cache_init(&c, &e), "%s", what))
		diag("%s", e.msg);
	for (uint32_t s = 0; s < 3 && blocks; s++)
		c.table[s] = table;
	is_u64(c.size_bytes,
	       2 * 2 * (kept[keys].bytes + kept[values].bytes) *
		       (blocks ? blocks * QWEN_BLOCK : 3 * 300),
	       "%s: has so many bytes", what);
	for (uint32_t at = 0; at < 300; at++)
		for (int part = 0; part < 2; part++) {
			p.part = (enum qwen_part_of)part;
			worst[part] =
				fmax(worst[part], put_worst(&c, &p, at, &seed));
		}
	ok(worst[0] <= kept[keys].bound && worst[1] <= kept[values].bound,
	   "%s: vectors are what they were (%.4f, %.4f)", what, worst[0],
	   worst[1]);
	qwen_cache_fini(&c);
}

/* What is infinite or no number in a vector stays so, in its group alone. */
static void test_broken(const struct qwen_kernels *k)
{
	for (size_t t = 0; t < ARRAY_SIZE(kept); t++) {
		struct qwen_cache c = { .type = qwen_both(kept[t].type),
					.layers = 1,
					.sequences = 1,
					.positions = 9,
					.kv_heads = 1,
					.head_dim = 64,
					.k = k };
		struct qwen_place p = { QWEN_VALUES, 0, 0, 0 };
		const bool apart = kept[t].type != QWEN_W_INT4R;
		struct err e = { 0 };
		float x[64], y[64];

		ok(qwen_cache_init(&c, &e), "%s: a cache of %s", k->name,
		   name_of(kept[t].type));
		for (int i = 0; i < 64; i++)
			x[i] = 1;
		x[3] = NAN;
		qwen_cache_put(&c, &p, 7, x);
		vector_read(&c, &p, 7, y);
		ok(isnan(y[3]) && (!apart || fabsf(y[40] - 1) < .01),
		   "%s: what is no number is none", k->name);
		x[3] = 1;
		x[40] = INFINITY;
		qwen_cache_put(&c, &p, 7, x);
		vector_read(&c, &p, 7, y);
		ok(!isfinite(y[40]) && (!apart || fabsf(y[3] - 1) < .01),
		   "%s: and what is infinite is no number", k->name);
		qwen_cache_fini(&c);
	}
}

static void test_kinds(void)
{
	static const char *const good[] = { "f16", "int8,int4r", "f8,f32" };
	static const char *const bad[] = { "",	"q4_0",	       "f16,", "int4,x",
					   ",", "f16,f16,f16", "int" };
	char text[QWEN_KINDS_TEXT];
	struct qwen_kinds kinds;
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ok(qwen_kinds_parse(good[i], &kinds, &e), "%s is known",
		   good[i]);
		is_str(qwen_kinds_print(kinds, text), good[i], "as what it is");
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ok(!qwen_kinds_parse(bad[i], &kinds, &e) && e.code == ERR_USAGE,
		   "\"%s\" is not", bad[i]);
	has_str(e.msg, "int4r", "and what is known is said");
}

int main(void)
{
	struct input *in = xcalloc(1, sizeof(*in));

	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k;
	     k++) {
		test_kernels(*k, in);
		test_f8(*k);
		test_turn(*k);
		for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
			test_put(*k, i, (i + 3) % ARRAY_SIZE(kept), 0);
			test_put(*k, i, (i + 3) % ARRAY_SIZE(kept), 20);
		}
		test_broken(*k);
		test_outlier(*k);
	}
	test_kinds();
	free(in);
	return plan_done();
}
