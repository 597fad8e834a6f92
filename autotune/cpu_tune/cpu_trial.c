/*
 * autotune/cpu_tune/cpu_trial.c - one problem with operands: run, checked,
 * timed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "base/float.h"

/* So many rows and columns are looked at, or all if there are no more. */
enum { LOOK_ROWS = 16, LOOK_COLUMNS = 24 };

struct cpu_trial {
	struct cpu_gemm g;
	unsigned n_threads;
	struct threads *threads;
	struct cpu_gemm_scratch *scratch;
	size_t n_rows, n_columns;
	size_t row[LOOK_ROWS], column[LOOK_COLUMNS];
	struct cpu_gemm_ints ints; /* B, where it is of integers, which are */
	void *b;		   /* there */
	double wanted[LOOK_ROWS][LOOK_COLUMNS], bound[LOOK_ROWS][LOOK_COLUMNS];
};

/* Box and Muller's, from two uniform values in (0, 1]. */
static double draw_normal(uint64_t *seed)
{
	double a = ((double)(random_next(seed) >> 11) + 1) * 0x1p-53;
	double b = (double)(random_next(seed) >> 11) * 0x1p-53;

	return sqrt(-2 * log(a)) * cos(2 * 3.14159265358979323846 * b);
}

enum { GROUP = 32 };

/* Integers have their scales behind them; of CHANNEL8 there are fewer. */
static size_t operand_bytes(enum cpu_gemm_type type, size_t n)
{
	switch (type) {
	case CPU_GEMM_F32:
		n *= 4;
		break;
	case CPU_GEMM_INT8:
	case CPU_GEMM_INT4:
		n = n / (type == CPU_GEMM_INT4 ? 2 : 1) + n / GROUP * 2;
		break;
	case CPU_GEMM_CHANNEL8:
		n += n / GROUP * sizeof(float);
		break;
	default:
		n *= 2;
	}
	return (n + 64) / 64 * 64;
}

/* Groups of integers of any size, with scales about 1 / 64. */
static void fill_ints(uint8_t *p, enum cpu_gemm_type type, size_t n,
		      uint64_t *seed)
{
	size_t bytes = n / (type == CPU_GEMM_INT4 ? 2 : 1);

	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)random_next(seed);
	for (size_t i = 0; i < n / GROUP; i++) {
		uint16_t h = (uint16_t)(0x2400 + random_next(seed) % 0x400);
		float f = (float)float_value(h, 5, 10);
		if (type == CPU_GEMM_CHANNEL8)
			memcpy(p + bytes + sizeof(f) * i, &f, sizeof(f));
		else
			memcpy(p + bytes + sizeof(h) * i, &h, sizeof(h));
	}
}

static void fill_operand(void *p, enum cpu_gemm_type type, size_t n,
			 uint64_t *seed)
{
	if (type >= CPU_GEMM_MADE) {
		fill_ints(p, type, n, seed);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		double v = draw_normal(seed);
		if (type == CPU_GEMM_F32)
			((float *)p)[i] = (float)v;
		else
			((uint16_t *)p)[i] =
				(uint16_t)(type == CPU_GEMM_F16 ?
						   float_bits(v, 5, 10) :
						   float_bits(v, 8, 7));
	}
}

/* All before any is filled: that takes long where they are large. */
static bool alloc_operands(struct cpu_gemm *g, struct err *e)
{
	const double there = (double)sysconf(_SC_PHYS_PAGES) *
			     (double)sysconf(_SC_PAGESIZE);
	const size_t a = operand_bytes(CPU_GEMM_F32, g->m * g->k);
	const size_t b = operand_bytes(g->b_type, g->n * g->k);
	const size_t c = operand_bytes(CPU_GEMM_F32, g->m * g->n);
	const double wanted = (double)a + (double)b + (double)c;

	if (wanted > there)
		return err_set(e, ERR_NOMEM, "%zux%zux%zu: its operands take "
			       "%.1f GB; this machine has %.1f GB", g->m, g->n,
			       g->k, wanted * 1e-9, there * 1e-9);
	g->a = aligned_alloc(64, a);
	g->b = aligned_alloc(64, b);
	g->c = aligned_alloc(64, c);
	return (g->a && g->b && g->c) ||
	       err_set(e, ERR_NOMEM, "%zux%zux%zu: no memory for its operands, "
		       "which take %.1f GB", g->m, g->n, g->k, wanted * 1e-9);
}

static void fill_operands(struct cpu_gemm *g, uint64_t *seed)
{
	fill_operand((void *)(uintptr_t)g->a, CPU_GEMM_F32, g->m * g->k, seed);
	fill_operand((void *)(uintptr_t)g->b, g->b_type, g->n * g->k, seed);
	fill_operand(g->c, CPU_GEMM_F32, g->m * g->n, seed);
}

static double b_at(const struct cpu_gemm *g, size_t k, size_t j)
{
	size_t i = g->b_by_n ? j * g->ldb + k : k * g->ldb + j;
	const struct cpu_gemm_ints *m = g->b;
	const uint8_t *q;
	uint16_t h;
	float f;

	switch (g->b_type) {
	case CPU_GEMM_CHANNEL8:
		memcpy(&f, m->scale + j * m->scale_row, sizeof(f));
		return f * (double)(int8_t)m->q[j * m->q_row + k];
	case CPU_GEMM_INT8:
	case CPU_GEMM_INT4:
		q = m->q + j * m->q_row + k / GROUP * m->q_group;
		memcpy(&h, m->scale + j * m->scale_row +
			   k / GROUP * m->scale_group, sizeof(h));
		k %= GROUP;
		return float_value(h, 5, 10) *
		       (g->b_type == CPU_GEMM_INT8 ? (int8_t)q[k] :
			k < 16 ? (q[k] & 15) - 8 : (q[k - 16] >> 4) - 8);
	case CPU_GEMM_F16:
		return float_value(((const uint16_t *)g->b)[i], 5, 10);
	case CPU_GEMM_BF16:
		return float_value(((const uint16_t *)g->b)[i], 8, 7);
	default:
		return ((const float *)g->b)[i];
	}
}

/* First, last and random ones of n; all in order if they are few. */
static size_t choose_lines(size_t n, size_t most, size_t *at, uint64_t *seed)
{
	for (size_t i = 0; i < most && i < n; i++)
		at[i] = n <= most ? i :
			i == 0	  ? 0 :
			i == 1	  ? n - 1 :
				    (size_t)(random_next(seed) % n);
	return n < most ? n : most;
}

/* What rounding a value of A may change in it, at most. */
static double rounding(const struct cpu_gemm *g, const float *a, size_t k)
{
	const size_t group = g->b_type == CPU_GEMM_CHANNEL8 ? g->k : GROUP;
	const size_t from = k / group * group;
	double most = 0;

	if (g->a_as != CPU_GEMM_INT8)
		return g->a_as == CPU_GEMM_BF16 ? fabs(a[k]) * 0x1p-8 : 0;
	for (size_t i = from; i < g->k && i < from + group; i++)
		most = fmax(most, fabs(a[i]));
	return most / 254;
}

static void compute_reference(struct cpu_trial *t, size_t i, size_t j)
{
	const struct cpu_gemm *g = &t->g;
	const float *a = g->a + t->row[i] * g->lda;
	double sum = 0, size = 0, rounded = 0;

	for (size_t k = 0; k < g->k; k++) {
		double b = b_at(g, k, t->column[j]), v = (double)a[k] * b;
		double r = rounding(g, a, k) * b;
		sum += v;
		size += v * v;
		rounded += r * r;
	}
	t->wanted[i][j] = sum;
	t->bound[i][j] = 4 * 0x1p-23 * sqrt((double)g->k) * sqrt(size) +
			  4 * sqrt(rounded) + 1e-37;
}

static void ints_init(struct cpu_trial *t)
{
	struct cpu_gemm *g = &t->g;
	size_t bytes = g->b_type == CPU_GEMM_INT4 ? GROUP / 2 : GROUP;
	size_t groups = g->k / GROUP;
	uint8_t *q = (void *)(uintptr_t)g->b;

	if (g->b_type < CPU_GEMM_MADE)
		return;
	t->ints = (struct cpu_gemm_ints){ q, q + g->n * groups * bytes,
					  groups * bytes, bytes, groups * 2, 2 };
	if (g->b_type == CPU_GEMM_CHANNEL8) {
		t->ints.scale_row = sizeof(float);
		t->ints.scale_group = 0;
	}
	t->b = q;
	g->b = &t->ints;
}

struct cpu_trial *cpu_trial_new(const struct cpu_problem *p,
				unsigned threads, uint64_t seed,
				struct err *e)
{
	struct cpu_trial *t = xcalloc(1, sizeof(*t));
	struct cpu_gemm *g = &t->g;

	*g = (struct cpu_gemm){ .m = p->m,
				.n = p->n,
				.k = p->k,
				.alpha = 1,
				.lda = p->k,
				.ldb = p->b_by_n ? p->k : p->n,
				.ldc = p->n,
				.b_type = p->b_type,
				.b_by_n = p->b_by_n,
				.a_as = p->a_as };
	t->n_threads = threads;
	t->scratch = xcalloc(threads, sizeof(*t->scratch));
	t->threads = threads_new(threads, e);
	if (!t->threads || !alloc_operands(g, e)) {
		cpu_trial_free(t);
		return NULL;
	}
	fill_operands(g, &seed);
	ints_init(t);
	t->n_rows = choose_lines(p->m, LOOK_ROWS, t->row, &seed);
	t->n_columns = choose_lines(p->n, LOOK_COLUMNS, t->column, &seed);
	for (size_t i = 0; i < t->n_rows; i++)
		for (size_t j = 0; j < t->n_columns; j++)
			compute_reference(t, i, j);
	return t;
}

void cpu_trial_free(struct cpu_trial *t)
{
	if (!t)
		return;
	threads_free(t->threads);
	for (unsigned i = 0; i < t->n_threads; i++)
		cpu_gemm_scratch_fini(&t->scratch[i]);
	free(t->scratch);
	free((void *)(uintptr_t)t->g.a);
	free(t->b ? t->b : (void *)(uintptr_t)t->g.b);
	free(t->g.c);
	free(t);
}

void cpu_trial_run(struct cpu_trial *t, const struct cpu_gemm_config *c)
{
	t->g.config = c;
	cpu_gemm(&t->g, t->scratch, t->threads);
}

float *cpu_trial_c(struct cpu_trial *t)
{
	return t->g.c;
}

double cpu_trial_worst(const struct cpu_trial *t, size_t *compared)
{
	double worst = 0;

	*compared = t->n_rows * t->n_columns;
	for (size_t i = 0; i < t->n_rows; i++)
		for (size_t j = 0; j < t->n_columns; j++) {
			double got =
				t->g.c[t->row[i] * t->g.ldc + t->column[j]];
			double error =
				fabs(got - t->wanted[i][j]) / t->bound[i][j];
			if (isnan(error))
				return INFINITY;
			worst = error > worst ? error : worst;
		}
	return worst;
}

/* One thread's own time leaves out what else the machine does. */
static double clock_s(unsigned threads)
{
	struct timespec t;

	clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
		      &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double cpu_trial_time(struct cpu_trial *t, const struct cpu_gemm_config *c)
{
	double from = clock_s(t->n_threads), passed;
	unsigned runs = 0;

	do {
		cpu_trial_run(t, c);
		runs++;
		passed = clock_s(t->n_threads) - from;
	} while (passed < 1e-3);
	return passed / runs;
}
