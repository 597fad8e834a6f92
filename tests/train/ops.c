/*
 * Gradients of every operation of a training step, against slopes of double
 * precision (tests/ref/grad.h); and that an error in any of them is seen.
 */
#include "base/float.h"
#include "tests/train/jobs.h"

#define BOUND 1e-5

static struct threads *threads;

#define ROUNDS 4 /* shapes of each */

static void test_gradients(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(job_table); i++) {
		const char *name = job_table[i].name;
		double value = 0, slope = 0;

		for (int round = 0; round < ROUNDS; round++) {
			struct job j;

			job_table[i].make(&j);
			struct train *x = job_run(&j, threads, NULL);
			value = fmax(value, forward_error(&j, x));
			slope = fmax(slope, back_error(&j, x));
			train_free(x);
			job_fini(&j);
		}
		ok(value <= BOUND, "%s: values", name);
		ok(slope <= BOUND, "%s: gradients", name);
		diag("%s: values %.2e, gradients %.2e", name, value, slope);
	}
}

/* Bits are those of one thread, however many there are. */
static void test_threads(void)
{
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(job_table); i++) {
		bool same = true;
		struct job j;

		job_table[i].make(&j);
		struct train *want = job_run(&j, threads, NULL);
		for (unsigned n = 1; n < 5; n += 2) {
			struct threads *some = threads_new(n, &e);
			struct train *x = job_run(&j, some, NULL);
			for (unsigned k = 0; k < j.n_inputs; k++)
				same &= !memcmp(train_data(x, j.gradient[k]),
						train_data(want, j.gradient[k]),
						j.n[k] * 4);
			train_free(x);
			threads_free(some);
		}
		ok(same, "%s: 1, 2 and 3 threads give the same bits",
		   job_table[i].name);
		train_free(want);
		job_fini(&j);
	}
}

/* A defect in operand `planted` of an operation of a kind. */
static unsigned planted;
static int defect;
static float *before; /* of the operand; the first thread's */

static void run_planted(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *v = &w->g->value[op->v[planted]];
	float *out = train_data(w->x, op->v[planted]);
	size_t bytes = v->rows * v->cols * sizeof(*out);

	if (!w->thread) {
		before = malloc(bytes);
		memcpy(before, out, bytes);
	}
	threads_barrier(w->t);
	train_cpu.run[op->kind](w, op);
	threads_barrier(w->t);
	if (w->thread)
		return;
	plant_defect(defect, is_added(op, planted), before, v, out);
	free(before);
}

static bool is_tried[TRAIN_KINDS];

/* Of one operation, all defects in all gradients that it makes. */
static void try_defects(struct job *j, const struct train_op *op,
			unsigned *tried, unsigned *seen)
{
	const char *how = train_kind_operands(op->kind);

	for (unsigned k = 0; how[k]; k++) {
		if (!strchr("waAx", how[k]) ||
		    j->g.value[op->v[k]].home != TRAIN_GRADIENT)
			continue;
		is_tried[op->kind] = true;
		for (defect = 0; defect < DEFECTS; defect++) {
			struct train_backend bad = train_cpu;

			planted = k;
			bad.run[op->kind] = run_planted;
			struct train *x = job_run(j, threads, &bad);
			*seen += back_error(j, x) > BOUND;
			++*tried;
			train_free(x);
		}
	}
}

/* Is a defect in every result of every operation of the way back seen? */
static void test_mutants(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(job_table); i++) {
		unsigned tried = 0, seen = 0;
		struct job j;

		job_table[i].make(&j);
		for (uint32_t o = 1; o < j.g.n_ops; o++)
			try_defects(&j, &j.g.op[o], &tried, &seen);
		if (!ok(tried && seen == tried, "%s: every defect is seen",
			job_table[i].name))
			diag("%u of %u", seen, tried);
		job_fini(&j);
	}
	for (int k = 0; k < TRAIN_KINDS; k++) {
		const char *name = train_kind_name((enum train_kind)k);
		if (strstr(name, "_BACK") || strstr(name, "_D"))
			ok(is_tried[k], "%s had defects", name);
	}
}

/* ---- 16 bits ---- */

static float round_float(enum qwen_weights type, float x)
{
	return type == QWEN_W_BF16 ?
		       f32_value((uint32_t)float_bits(x, 8, 7) << 16) :
		       (float)float_value(float_bits(x, 5, 10), 5, 10);
}

/* What operations write for products. */
static const struct {
	enum train_kind kind;
	unsigned operand;
} rounded[] = {
	{ TRAIN_NORM, 2 }, { TRAIN_TURN_BACK, 7 }, { TRAIN_ATTENTION, 4 },
	{ TRAIN_ATTENTION_BACK, 9 }, { TRAIN_SWIGLU, 2 },
	{ TRAIN_SWIGLU_BACK, 3 }, { TRAIN_SWIGLU_BACK, 4 },
	{ TRAIN_LOSS_BACK, 6 },
};

/* Values that are not of the type. */
static size_t count_odd(const struct train *x, uint32_t value,
			enum qwen_weights type)
{
	const struct train_value *v = &train_graph_of(x)->value[value];
	const float *f = train_data(x, value);
	size_t odd = 0;

	for (size_t i = 0; i < v->rows * v->cols; i++)
		odd += round_float(type, f[i]) != f[i];
	return odd;
}

static void test_rounded(enum qwen_weights type)
{
	bool found[ARRAY_SIZE(rounded)] = { false };
	size_t odd[ARRAY_SIZE(rounded)] = { 0 };
	double far = 0;

	for (size_t i = 0; i < ARRAY_SIZE(job_table); i++) {
		struct job j;

		job_table[i].make(&j);
		j.g.type = type;
		for (uint32_t o = 0; o < j.g.n_ops; o++)
			j.g.op[o].round = true;
		struct train *x = job_run(&j, threads, NULL);
		far = fmax(far, forward_error(&j, x));
		for (uint32_t o = 0; o < j.g.n_ops; o++)
			for (size_t k = 0; k < ARRAY_SIZE(rounded); k++) {
				const struct train_op *op = &j.g.op[o];
				if (op->kind != rounded[k].kind)
					continue;
				found[k] = true;
				odd[k] += count_odd(
					x, op->v[rounded[k].operand], type);
			}
		train_free(x);
		job_fini(&j);
	}
	for (size_t k = 0; k < ARRAY_SIZE(rounded); k++)
		ok(found[k] && !odd[k], "%s: operand %u of %s is of it",
		   qwen_weights_name(type), rounded[k].operand,
		   train_kind_name(rounded[k].kind));
	/* Half a unit in the last place of 8 or 11 bits. */
	ok(far < (type == QWEN_W_BF16 ? 0x1p-8 : 0x1p-11) && far > 1e-6,
	   "%s: results are rounded to nearest", qwen_weights_name(type));
}

/* The operation that does nothing else; with ties and what overflows. */
static void test_round(enum qwen_weights type)
{
	static const float some[] = { 1 + 0x1p-8f, 1 + 0x3p-8f, 1 + 0x1p-11f,
				      1 + 0x3p-11f, 65519, 65520, -1e6f,
				      0x1p-24f, 0x1p-25f, -0x1.8p-25f, 0,
				      INFINITY, -3.4e38f };
	struct train_graph g = { .type = type, .rows = 1, .length = 1 };
	uint32_t in = train_value_add(&g, TRAIN_INPUT, 1, 700, 4);
	uint32_t out = train_value_add(&g, TRAIN_INPUT, 1, 700, 4);
	struct err e = { 0 };
	size_t same = 0;

	TRAIN_OP(&g, ROUND, in, out);
	train_memory_plan(&g, &e);
	struct train *x = train_new(&g, threads, NULL, &e);
	float *from = train_data(x, in), *to = train_data(x, out);
	for (size_t i = 0; i < 700; i++)
		from[i] = i < ARRAY_SIZE(some) ?
				  some[i] :
				  (float)ldexp(random_unit(),
					       (int)(i % 40) - 26);
	train_run(x, 0, 1, NULL);
	for (size_t i = 0; i < 700; i++)
		same += to[i] == round_float(type, from[i]);
	is_u64(same, 700, "%s: ROUND is to nearest, ties to even",
	       qwen_weights_name(type));
	train_free(x);
	train_graph_fini(&g);
}

int main(void)
{
	struct err e = { 0 };

	diag("seed %llu", (unsigned long long)seed);
	threads = threads_new(2, &e);
	test_gradients();
	test_threads();
	test_mutants();
	test_rounded(QWEN_W_BF16);
	test_rounded(QWEN_W_F16);
	test_round(QWEN_W_BF16);
	test_round(QWEN_W_F16);
	threads_free(threads);
	return plan_done();
}
