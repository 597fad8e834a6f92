/*
 * Kernels of training that take f32 and round their result to what products
 * take, against double precision, which is rounded nowhere.
 */
#include "tests/kernels/kernel-run.h"
#include "tests/ref/grad.h"

#define EPS 1e-6
#define THETA 1e4

enum { HEADS = 3, POSITIONS = 50 };

static uint64_t seed = 23;
static struct cc_dev dev;

/* `rows` rows of n elements, forward; weights x[1] may be of one row. */
struct job {
	size_t rows, n;
	struct arr in[3], out[2];
	double *x[3], *want[2];
	uint32_t position[64];
	void (*row)(const struct job *j, size_t r, double *y);
};

static void job_new(struct job *j, size_t rows, size_t n, bool one_row)
{
	size_t all = rows * n, count[3] = { all, one_row ? n : all, all };

	*j = (struct job){ .rows = rows, .n = n };
	for (int i = 0; i < 3; i++) {
		j->in[i] = arr_random(SSA_F32, count[i], 2, &seed);
		j->x[i] = calloc(count[i], sizeof(double));
		for (size_t k = 0; k < count[i]; k++)
			j->x[i][k] = arr_get(&j->in[i], k);
	}
	for (int i = 0; i < 2; i++) {
		j->out[i] = arr_stale(SSA_BF16, all);
		j->want[i] = calloc(all, sizeof(double));
	}
}

static void job_fini(struct job *j)
{
	for (int i = 0; i < 3; i++) {
		free(j->in[i].bits);
		free(j->x[i]);
	}
	for (int i = 0; i < 2; i++) {
		free(j->out[i].bits);
		free(j->want[i]);
	}
}

/* The sum of all results, weighted with x[2]. */
static double sum_weighted(void *ctx)
{
	const struct job *j = ctx;
	double *y = calloc(j->n, sizeof(*y)), sum = 0;

	for (size_t r = 0; r < j->rows; r++) {
		j->row(j, r, y);
		for (size_t i = 0; i < j->n; i++)
			sum += j->x[2][r * j->n + i] * y[i];
	}
	free(y);
	return sum;
}

static void want_forward(struct job *j)
{
	for (size_t r = 0; r < j->rows; r++)
		j->row(j, r, j->want[0] + r * j->n);
}

static void want_slopes(struct job *j)
{
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < j->in[i].n; k++)
			j->want[i][k] = grad_slope(sum_weighted, j,
						   &j->x[i][k]);
}

/* A result whose lower bits were cut off, not rounded. */
static bool is_cut_noticed(const struct arr *got, const double *want,
			   const double *tol)
{
	struct arr cut = arr_new(SSA_F32, got->n);
	size_t wrong = 0;

	for (size_t i = 0; i < cut.n; i++) {
		uint32_t bits;

		arr_set(&cut, i, want[i]);
		memcpy(&bits, cut.bits + 4 * i, 4);
		bits &= 0xffff0000;
		memcpy(cut.bits + 4 * i, &bits, 4);
		wrong += !close_enough(arr_get(&cut, i), want[i], tol[i]);
	}
	free(cut.bits);
	return wrong > 0;
}

/* Half a unit in the last place, and what f32 loses before. */
static void judge_result(const struct arr *got, const double *want,
			 const char *name, int which)
{
	double *tol = calloc(got->n, sizeof(*tol)), most = 0;

	for (size_t i = 0; i < got->n; i++)
		most = fmax(most, fabs(want[i]));
	for (size_t i = 0; i < got->n; i++)
		tol[i] = .51 * ulp_of(got->kind) * fabs(want[i]) + 2e-6 * most;
	is_u64(judge(got, want, tol), 0, "%s: result %d", name, which);
	is_u64(mutants_missed(got, want, tol), 0,
	       "%s: mutants of %d are noticed", name, which);
	if (got->kind == SSA_BF16 && got->n > 30)
		ok(is_cut_noticed(got, want, tol), "%s: so is one that is cut",
		   name);
	free(tol);
}

static void run_job(struct job *j, const char *name, struct ssa_call *c,
		    uint64_t units, int results)
{
	struct lib l;

	ok(lib_open(&l, name, DSL_NONE, DSL_BF16) &&
		   lib_run(&dev, &l, c, kernel_groups(l.entry, &l.shape, units),
			   1),
	   "%s of %zu rows of %zu", name, j->rows, j->n);
	for (int i = 0; i < results; i++)
		judge_result(&j->out[i], j->want[i], name, i);
	lib_close(&l);
	job_fini(j);
}

/* ---- swiglu ---- */

static void row_swiglu(const struct job *j, size_t r, double *y)
{
	for (size_t i = 0; i < j->n; i++)
		y[i] = grad_silu(j->x[0][r * j->n + i]) * j->x[1][r * j->n + i];
}

static void test_swiglu(size_t n)
{
	struct ssa_call c = { 0 };
	struct job j;

	job_new(&j, 1, n, false);
	j.row = row_swiglu;
	want_forward(&j);
	call_arr(&c, &j.out[0]);
	call_arr(&c, &j.in[0]);
	call_arr(&c, &j.in[1]);
	call_u32(&c, (uint32_t)n);
	run_job(&j, "swiglu_narrow", &c, n, 1);
}

static void test_swiglu_back(size_t n)
{
	struct ssa_call c = { 0 };
	struct job j;

	job_new(&j, 1, n, false);
	j.row = row_swiglu;
	want_slopes(&j);
	for (int i = 0; i < 2; i++)
		call_arr(&c, &j.out[i]);
	for (int i = 0; i < 3; i++)
		call_arr(&c, &j.in[i]);
	call_u32(&c, (uint32_t)n);
	run_job(&j, "swiglu_back_narrow", &c, n, 2);
}

/* ---- norms ---- */

static void row_norm(const struct job *j, size_t r, double *y)
{
	grad_norm(j->x[0] + r * j->n, j->x[1], (int)j->n, EPS, y);
}

static void test_norm(size_t rows, size_t n)
{
	struct ssa_call c = { 0 };
	struct job j;

	job_new(&j, rows, n, true);
	j.row = row_norm;
	want_forward(&j);
	call_arr(&c, &j.out[0]);
	call_arr(&c, &j.in[0]);
	call_arr(&c, &j.in[1]);
	call_f32(&c, (float)EPS);
	call_u32(&c, (uint32_t)n);
	run_job(&j, "rms_norm_narrow", &c, rows, 1);
}

/* The gradient of the weights stays f32, and is added to. */
static void test_norm_back(size_t rows, size_t n)
{
	struct ssa_call c = { 0 };
	struct job j;

	job_new(&j, rows, n, true);
	j.row = row_norm;
	want_slopes(&j);
	free(j.out[1].bits);
	j.out[1] = arr_random(SSA_F32, n, 1, &seed);
	for (size_t i = 0; i < n; i++)
		j.want[1][i] += arr_get(&j.out[1], i);
	for (int i = 0; i < 2; i++)
		call_arr(&c, &j.out[i]);
	for (int i = 0; i < 3; i++)
		call_arr(&c, &j.in[i]);
	call_f32(&c, (float)EPS);
	call_u32(&c, (uint32_t)n);
	call_u32(&c, (uint32_t)rows);
	run_job(&j, "qk_norm_back_narrow", &c, rows, 2);
}

/* ---- rope ---- */

static void row_rope(const struct job *j, size_t r, double *y)
{
	memcpy(y, j->x[0] + r * j->n, j->n * sizeof(*y));
	grad_rope(y, (int)j->n, THETA, j->position[r / HEADS]);
}

/* Tables of POSITIONS rows: cosines, or sines. */
static struct arr table_new(size_t half, bool sine)
{
	struct arr a = arr_new(SSA_F32, POSITIONS * half);

	for (size_t i = 0; i < a.n; i++) {
		double angle = (double)(i / half) *
			       pow(THETA, -(double)(i % half) / (double)half);
		arr_set(&a, i, sine ? sin(angle) : cos(angle));
	}
	return a;
}

static void test_rope(size_t tokens, size_t n, double turn)
{
	struct arr cosine = table_new(n / 2, false);
	struct arr sine = table_new(n / 2, true);
	struct arr position = arr_new(SSA_I32, tokens);
	struct ssa_call c = { 0 };
	struct job j;

	job_new(&j, tokens * HEADS, n, false);
	for (size_t t = 0; t < tokens; t++) {
		j.position[t] = (uint32_t)(random_next(&seed) % POSITIONS);
		arr_set(&position, t, j.position[t]);
	}
	j.row = row_rope;
	if (turn > 0) {
		want_forward(&j);
		call_arr(&c, &j.out[0]);
		call_arr(&c, &j.in[0]);
	} else { /* the gradient of what x[2] weights */
		want_slopes(&j);
		call_arr(&c, &j.out[0]);
		call_arr(&c, &j.in[2]);
	}
	call_arr(&c, &cosine);
	call_arr(&c, &sine);
	call_arr(&c, &position);
	call_u32(&c, HEADS);
	call_u32(&c, (uint32_t)n);
	call_u32(&c, (uint32_t)(tokens * HEADS));
	call_f32(&c, (float)turn);
	run_job(&j, "rope_narrow", &c, tokens * HEADS, 1);
	free(cosine.bits);
	free(sine.bits);
	free(position.bits);
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	cc_dev_begin(&dev);
	test_swiglu(1);
	test_swiglu(1027);
	test_swiglu_back(5);
	test_swiglu_back(259);
	test_norm(1, 3);
	test_norm(7, 130);
	test_norm_back(1, 4);
	test_norm_back(6, 36);
	test_rope(1, 2, 1);
	test_rope(5, 34, 1);
	test_rope(3, 16, -1);
	cc_dev_close(&dev);
	return plan_done();
}
