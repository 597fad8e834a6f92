/*
 * Our own blocks of 6 and 3 bits: what their bits mean, by a reader of bits
 * that knows nothing else; scales, by one that tries many more; products, in
 * double precision; and files of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"
#include "engine/model/model.h"
#include "tests/tap.h"

static const struct own {
	enum qwen_weights type;
	const char *name, *stored;
	uint32_t values, bits, bytes;
} own[] = {
	{ QWEN_W_I6_32, "int6_32", "I6_32", 32, 6, 26 },
	{ QWEN_W_I6_64, "int6_64", "I6_64", 64, 6, 50 },
	{ QWEN_W_I6_128, "int6_128", "I6_128", 128, 6, 98 },
	{ QWEN_W_I6_256, "int6_256", "I6_256", 256, 6, 194 },
	{ QWEN_W_I3_32, "int3_32", "I3_32", 32, 3, 14 },
	{ QWEN_W_I3_64, "int3_64", "I3_64", 64, 3, 26 },
	{ QWEN_W_I3_128, "int3_128", "I3_128", 128, 3, 50 },
	{ QWEN_W_I3_256, "int3_256", "I3_256", 256, 3, 98 },
};

static uint64_t seed = 2631;

static float draw_uniform(void)
{
	return (float)(random_next(&seed) >> 40) * 0x1p-23f - 1;
}

/* Near zero mostly, as weights are. */
static float weight_like(void)
{
	return draw_uniform() * draw_uniform() * draw_uniform();
}

/* Bit n of the bytes at p. */
static unsigned bit(const uint8_t *p, unsigned n)
{
	return p[n / 8] >> n % 8 & 1;
}

/* Value i of a block. */
static double value_of(const struct own *o, const uint8_t *b, uint32_t i)
{
	const unsigned size = 32 * o->bits / 8, k = i % 32;
	const uint8_t *g = b + 2 + i / 32 * size;
	const unsigned two = k % 8 * 8 + k / 8 * 2; /* its first bit */
	_Float16 d;
	int code;

	memcpy(&d, b, 2);
	if (o->bits == 3) {
		code = (int)(bit(g, two) | bit(g, two + 1) << 1 |
			     bit(g + 8, k) << 2) -
		       4;
		return (double)d * code;
	}
	code = 0;
	for (unsigned j = 0; j < 4; j++)
		code |= (int)(bit(g, k % 16 * 8 + k / 16 * 4 + j) << j);
	code |= (int)(bit(g + 16, two) << 4 | bit(g + 16, two + 1) << 5);
	return (double)d * (code - 32);
}

static struct qwen_matrix blocks_random(const struct own *o, uint32_t rows,
					uint32_t cols)
{
	const size_t n = (size_t)rows * cols / o->values * o->bytes;
	uint8_t *data = xmalloc(n);

	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)random_next(&seed);
	for (size_t i = 0; i < n; i += o->bytes) {
		_Float16 d = (_Float16)(draw_uniform() * 0.1f);
		memcpy(data + i, &d, 2);
	}
	return (struct qwen_matrix){ o->type, rows, cols, data, NULL };
}

static double value_at(const struct own *o, const struct qwen_matrix *m,
		       uint32_t row, uint32_t col)
{
	const uint8_t *b = m->data;

	b += ((size_t)row * m->cols + col) / o->values * o->bytes;
	return value_of(o, b, col % o->values);
}

static void test_unpack(const struct own *o)
{
	struct qwen_matrix m = blocks_random(o, 3, 1024);
	float v[1024];
	size_t wrong = 0;

	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k; k++)
		for (uint32_t r = 0; r < m.rows; r++) {
			(*k)->unpack(&m, r, 0, m.cols, v);
			for (uint32_t c = 0; c < m.cols; c++)
				wrong += v[c] != (float)value_at(o, &m, r, c);
			(*k)->unpack(&m, r, 96, 160, v);
			for (uint32_t c = 0; c < 160; c++)
				wrong += v[c] !=
					 (float)value_at(o, &m, r, 96 + c);
		}
	is_u64(wrong, 0, "%s: every value is what its bits say", o->name);
	is_u64(qwen_matrix_bytes(&m), 3 * 1024 / o->values * o->bytes,
	       "%s: its bytes", o->name);
	free((void *)m.data);
}

/* Of the best of very many scales; codes nearest. */
static double least_error(const struct own *o, const float *x)
{
	const int least = -(1 << (o->bits - 1)), most = -least - 1;
	double top = 0, best = INFINITY;

	for (uint32_t i = 0; i < o->values; i++)
		top = fmax(top, fabs((double)x[i]));
	for (int s = 0; s < 4000; s++) {
		double d = top / least * (0.5 + s % 2000 * 0.0005), sum = 0;

		d = s < 2000 ? d : -d;
		for (uint32_t i = 0; i < o->values; i++) {
			double q = fmin(
				fmax(nearbyint((double)x[i] / d), least), most);
			sum += ((double)x[i] - d * q) * ((double)x[i] - d * q);
		}
		best = fmin(best, sum);
	}
	return best;
}

static void test_pack(const struct own *o)
{
	enum { N = 2048 };
	float x[N];
	uint8_t b[N];
	double sum = 0, best = 0, plain = 0;

	for (int i = 0; i < N; i++)
		x[i] = i < 256 ? 0 : weight_like();
	qwen_pack_row(o->type, x, N, b);
	for (uint32_t at = 0; at < N; at += o->values) {
		const uint8_t *block = b + at / o->values * o->bytes;
		double top = 0, d;

		for (uint32_t i = 0; i < o->values; i++) {
			double off = (double)x[at + i] - value_of(o, block, i);
			sum += off * off;
			top = fmax(top, fabs((double)x[at + i]));
		}
		best += top > 0 ? least_error(o, x + at) : 0;
		d = top / ((1 << (o->bits - 1)) - 1);
		for (uint32_t i = 0; i < o->values && d > 0; i++) {
			double off = (double)x[at + i] -
				     d * nearbyint((double)x[at + i] / d);
			plain += off * off;
		}
	}
	ok(sum <= best * 1.05, "%s: the scale is searched: %.4g, at best %.4g",
	   o->name, sum, best);
	ok(sum < plain, "%s: that pays: %.4g without", o->name, plain);
	size_t wrong = 0;
	for (uint32_t i = 0; i < 256; i++)
		wrong += value_of(o, b + i / o->values * o->bytes,
				  i % o->values) != 0;
	is_u64(wrong, 0, "%s: zeros stay zeros", o->name);
}

static void test_product(const struct own *o)
{
	enum { ROWS = 7, COLS = 768, TOKENS = 2 };
	struct qwen_matrix m = blocks_random(o, ROWS, COLS);
	struct qwen_quants q[TOKENS], other;
	void *mem[TOKENS];
	float x[COLS], y[TOKENS * ROWS];
	double want[TOKENS][ROWS] = { { 0 } }, size[TOKENS][ROWS] = { { 0 } };
	const size_t bytes = qwen_quants_place(&other, COLS, NULL);

	for (int t = 0; t < TOKENS; t++) {
		mem[t] = xcalloc(1, bytes);
		qwen_quants_place(&q[t], COLS, mem[t]);
		for (int i = 0; i < COLS; i++)
			x[i] = draw_uniform();
		qwen_kernels_best()->quantize(x, COLS, &q[t]);
		for (uint32_t r = 0; r < ROWS; r++)
			for (uint32_t c = 0; c < COLS; c++) {
				double v = value_at(o, &m, r, c) * q[t].q[c] *
					   (double)q[t].d[c / 32];
				want[t][r] += v;
				/* Codes are more than their numbers. */
				size[t][r] += fabs(v) +
					      fabs(v) * (o->bits == 6 ? 32 : 4);
			}
	}
	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k;
	     k++) {
		size_t wrong = 0;

		for (int i = 0; i < TOKENS * ROWS; i++)
			y[i] = 1;
		(*k)->product_int(&m, 1, ROWS, q, TOKENS, y, ROWS, true);
		for (int t = 0; t < TOKENS; t++)
			for (int r = 0; r < ROWS; r++) {
				double w = r ? 1 + want[t][r] : 1;
				wrong += !(fabs((double)y[t * ROWS + r] - w) <=
					   0x1p-20 * (1 + size[t][r]));
			}
		is_u64(wrong, 0, "%s by %s: products", o->name, (*k)->name);
	}
	for (int t = 0; t < TOKENS; t++)
		free(mem[t]);
	free((void *)m.data);
}

static char *file_bytes(const char *header, size_t data_bytes, size_t *n)
{
	const uint64_t len = strlen(header);
	char *f = xcalloc(1, 8 + len + data_bytes);

	memcpy(f, &len, 8);
	memcpy(f + 8, header, len);
	*n = 8 + len + data_bytes;
	return f;
}

static void test_file(const struct own *o)
{
	const struct {
		uint32_t cols, bytes;
		const char *says;
	} t[] = { { 2 * o->values, 6 * o->bytes, NULL },
		  { 2 * o->values, 6 * o->bytes - 1, "but its shape needs" },
		  { 2 * o->values + 8, 6 * o->bytes, "no whole number of" } };

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct qwen_tensors in;
		struct err e = { 0 };
		char header[160];
		size_t n;

		snprintf(header, sizeof(header),
			 "{\"x\":{\"dtype\":\"%s\","
			 "\"shape\":[3,%u],\"data_offsets\":[0,%u]}}",
			 o->stored, t[i].cols, t[i].bytes);
		char *f = file_bytes(header, t[i].bytes, &n);
		bool good = qwen_tensors_parse(&in, "f", f, n, &e);
		ok(good == !t[i].says, "%s in a file, %zu", o->name, i);
		if (t[i].says)
			has_str(e.msg, t[i].says, "is refused");
		if (good)
			qwen_tensors_close(&in);
		free(f);
	}
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		enum qwen_weights w;
		struct err e = { 0 };

		ok(qwen_weights_parse(own[i].name, &w, &e) &&
			   w == own[i].type && qwen_is_own(w) &&
			   qwen_is_block(w),
		   "%s", own[i].name);
		test_unpack(&own[i]);
		test_pack(&own[i]);
		test_product(&own[i]);
		test_file(&own[i]);
	}
	return plan_done();
}
