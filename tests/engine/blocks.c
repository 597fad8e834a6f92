/*
 * Blocks of GGUF files: every value of random ones is the published one, to the
 * bit, at every level of the instruction set; products with them, and blocks
 * made of floats.  `blocks TYPE` turns blocks from stdin into floats on stdout,
 * `blocks pack TYPE` floats into blocks, for comparison with other programs.
 */
#include <stdio.h>
#include <string.h>

#include "engine/weights/weights.h"
#include "tests/ref/blocks.h"
#include "tests/tap.h"

enum { BLOCKS = 1200, MOST_BYTES = BLOCKS * 210, MOST = BLOCKS * 256 };

/* Equal to the bit; of what is no number, only that. */
static bool same_bits(float a, float b)
{
	uint32_t x, y;

	memcpy(&x, &a, 4);
	memcpy(&y, &b, 4);
	return x == y || (a != a && b != b);
}

static void fill_random(uint8_t *p, size_t n, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(random_next(seed) >> 32);
}

static void test_type(const struct ref_type *t, uint64_t *seed)
{
	static uint8_t data[MOST_BYTES];
	static float want[MOST], got[MOST];
	struct qwen_matrix w = { .rows = 4,
				 .cols = (uint32_t)(BLOCKS / 4 * t->values),
				 .data = data };
	struct err e = { 0 };

	if (!ok(qwen_weights_parse(t->name, &w.type, &e), "%s is known",
		t->name))
		return;
	is_u64(qwen_matrix_bytes(&w), (uint64_t)(BLOCKS * t->bytes),
	       "%s: its bytes", t->name);
	fill_random(data, (size_t)(BLOCKS * t->bytes), seed);
	for (int i = 0; i < BLOCKS * t->values; i++)
		want[i] = ref_value(t, data + i / t->values * t->bytes,
				    i % t->values);
	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k;
	     k++) {
		uint64_t wrong = 0;
		for (uint32_t r = 0; r < w.rows; r++)
			(*k)->unpack(&w, r, 0, w.cols, got + r * w.cols);
		for (int i = 0; i < BLOCKS * t->values; i++)
			wrong += !same_bits(got[i], want[i]);
		is_u64(wrong, 0, "%s, %s: the values of %d blocks", t->name,
		       (*k)->name, BLOCKS);
		/* From the middle of a block into the one after the next. */
		(*k)->unpack(&w, 1, 96, 544, got);
		wrong = 0;
		for (int i = 0; i < 544; i++)
			wrong += !same_bits(got[i], want[w.cols + 96 + i]);
		is_u64(wrong, 0, "%s, %s: and of a part of a row", t->name,
		       (*k)->name);
	}
}

/* ---- products ---- */

/* Scales between 2^-9 and 2^-5, of both signs: sums stay finite. */
static void tame_scales(const struct ref_type *t, uint8_t *b)
{
	for (int i = 0; i < 2; i++)
		if (t->half[i] >= 0)
			b[t->half[i] + 1] = (uint8_t)(
				(b[t->half[i] + 1] & 0x83) | (6 + i) << 2);
	if (strcmp(t->name, "mxfp4") == 0)
		b[0] = (uint8_t)(120 + b[0] % 8);
}

enum { ROWS = 5, TOKENS = 3, COLS = 1280 };

/* The largest difference from sums in double, by the sum of sizes. */
static double worst_product(const struct qwen_kernels *k,
			    const struct qwen_matrix *w,
			    const struct ref_type *t,
			    const struct qwen_quants *x)
{
	static float y[TOKENS * ROWS];
	double worst = 0;

	for (int i = 0; i < TOKENS * ROWS; i++)
		y[i] = 1;
	k->product_int(w, 0, 2, x, TOKENS, y, ROWS, true);
	k->product_int(w, 2, ROWS, x, TOKENS, y, ROWS, true);
	for (uint32_t r = 0; r < ROWS; r++)
		for (uint32_t n = 0; n < TOKENS; n++) {
			const uint8_t *b = (const uint8_t *)w->data +
				r * (w->cols / t->values) * t->bytes;
			double sum = 1, size = 1;
			for (uint32_t c = 0; c < w->cols; c++) {
				double v = ref_value(t, b + c / t->values *
							t->bytes,
						     (int)c % t->values) *
					   ((double)x[n].q[c] *
					    x[n].d[c / QWEN_GROUP]);
				sum += v;
				size += fabs(v);
			}
			worst = fmax(worst, fabs(y[n * ROWS + r] - sum) / size);
		}
	return worst;
}

/* Rows of whole steps of 256, and of some blocks more. */
static void test_products(const struct ref_type *t, uint64_t *seed)
{
	static uint8_t data[ROWS * COLS / 32 * 210];
	static float x[COLS];
	static _Alignas(64) uint8_t mem[TOKENS][8 * COLS];
	struct qwen_quants q[TOKENS];
	struct qwen_matrix w = { .rows = ROWS, .data = data };
	struct err e = { 0 };

	qwen_weights_parse(t->name, &w.type, &e);
	fill_random(data, sizeof(data), seed);
	for (size_t i = 0; i + t->bytes <= sizeof(data); i += t->bytes)
		tame_scales(t, data + i);
	for (const struct qwen_kernels *const *k = qwen_kernels_all(); *k;
	     k++) {
		for (int n = 0; n < TOKENS; n++) {
			for (int i = 0; i < COLS; i++)
				x[i] = (float)(int32_t)random_next(seed) *
				       0x1p-31f;
			memset(mem[n], 0, sizeof(mem[n]));
			qwen_quants_place(&q[n], COLS, mem[n]);
			(*k)->quantize(x, COLS, &q[n]);
		}
		for (int less = 0; less < 2; less++) {
			w.cols = COLS - (t->values == 32 ? 96u * less :
							   256u * less);
			double worst = worst_product(*k, &w, t, q);
			ok(worst < 1e-6, "%s, %s: products of %u columns "
			   "differ by %.2g", t->name, (*k)->name, w.cols,
			   worst);
		}
	}
}

/* ---- blocks made of floats ---- */

/*
 * Of uniform numbers: the root of the mean squared error by that of the numbers
 * themselves.  A step of 2 / n of the range leaves 1 / n; scales in few bits
 * and steps that do not fit take some more.
 */
static void test_packed(const struct ref_type *t, uint64_t *seed)
{
	static const struct {
		const char *name;
		double most;
	} bound[] = {
		{ "q8_0", 0.005 }, { "q5_1", 0.04 },   { "q5_0", 0.04 },
		{ "q4_1", 0.075 }, { "q4_0", 0.08 },   { "iq4_nl", 0.09 },
		{ "mxfp4", 0.14 }, { "q6_k", 0.02 },   { "q5_k", 0.04 },
		{ "q4_k", 0.08 },  { "iq4_xs", 0.09 }, { "q3_k", 0.16 },
		{ "q2_k", 0.32 },
	};
	static float x[256 * 64];
	static uint8_t b[64 * 8 * 34], again[sizeof(b)];
	enum qwen_weights type = 0;
	struct err e = { 0 };
	double error = 0, size = 0;

	qwen_weights_parse(t->name, &type, &e);
	for (int i = 0; i < 256 * 64; i++)
		x[i] = (float)(int32_t)random_next(seed) * 0x1p-36f;
	memset(x, 0, 256 * sizeof(*x));
	qwen_pack_row(type, x, 256 * 64, b);
	qwen_pack_row(type, x, 256 * 64, again);
	ok(memcmp(b, again, sizeof(b)) == 0, "%s: the same bytes twice",
	   t->name);
	for (int i = 0; i < 256 * 64; i++) {
		double off = ref_value(t, b + i / t->values * t->bytes,
				       i % t->values) - (double)x[i];
		error += off * off;
		size += (double)x[i] * x[i];
		if (i == 255 && !ok(error == 0, "%s: zeros stay", t->name))
			error = 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(bound); i++)
		if (strcmp(bound[i].name, t->name) == 0)
			ok(sqrt(error / size) < bound[i].most,
			   "%s: made of floats, off by %.4f, bound %g",
			   t->name, sqrt(error / size), bound[i].most);
}

/* ---- for other programs ---- */

static int pack_stdin(const char *name)
{
	static float x[256];
	static uint8_t b[8 * 34];
	enum qwen_weights type;
	struct err e = { 0 };

	if (!qwen_weights_parse(name, &type, &e) || !qwen_is_block(type)) {
		fprintf(stderr, "blocks: %s\n", e.msg);
		return 2;
	}
	const struct qwen_layout l = qwen_layout(type);
	while (fread(x, sizeof(*x), 256, stdin) == 256) {
		qwen_pack_row(type, x, 256, b);
		fwrite(b, l.bytes, 256 / l.values, stdout);
	}
	return ferror(stdin) || fflush(stdout) != 0;
}

static int convert_stdin(const char *name)
{
	static uint8_t b[210];
	static float y[256];
	struct qwen_matrix w = { .rows = 1, .data = b };
	struct err e = { 0 };

	if (!qwen_weights_parse(name, &w.type, &e) || !qwen_is_block(w.type)) {
		fprintf(stderr, "blocks: %s\n", e.msg);
		return 2;
	}
	w.cols = qwen_layout(w.type).values;
	while (fread(b, qwen_layout(w.type).bytes, 1, stdin) == 1) {
		qwen_kernels_best()->unpack(&w, 0, 0, w.cols, y);
		fwrite(y, sizeof(*y), w.cols, stdout);
	}
	return ferror(stdin) || fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = 2612;

	if (argc > 2)
		return pack_stdin(argv[2]);
	if (argc > 1)
		return convert_stdin(argv[1]);
	diag("seed %llu", (unsigned long long)seed);
	for (size_t i = 0; i < ARRAY_SIZE(ref_type); i++)
		test_type(&ref_type[i], &seed);
	for (size_t i = 0; i < ARRAY_SIZE(ref_type); i++)
		test_products(&ref_type[i], &seed);
	for (size_t i = 0; i < ARRAY_SIZE(ref_type); i++)
		test_packed(&ref_type[i], &seed);
	return plan_done();
}
