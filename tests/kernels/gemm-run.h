/*
 * gemm-run - random matrix products on the soft device in checked mode, and
 * their reference in double precision.
 */
#ifndef T0_TESTS_GEMM_RUN_H
#define T0_TESTS_GEMM_RUN_H

#include "compiler/gemm/gemm.h"
#include "tests/kernels/kernel-run.h"

/* A product with its operands. */
struct gemm_case {
	struct gemm_op op;
	struct gemm_config c;
	struct gemm_shape s;
	float alpha, beta;
	struct arr a, b, out, bias, residual; /* out: before the launch C */
	struct arr scale;		      /* of weights */
	double *want, *tol;		      /* [out.n]; stale places, too */
};

static inline enum ssa_kind gemm_kind(enum dsl_type t)
{
	return t == DSL_I8 ? SSA_I8 : t == DSL_I32 ? SSA_I32 : kind_of(t);
}

static inline uint64_t dense(uint64_t ld, uint64_t least)
{
	return ld ? ld : least;
}

static inline uint32_t gemm_columns(const struct gemm_case *x)
{
	return x->s.n * (x->op.epilogue & GEMM_SWIGLU ? 2 : 1);
}

static inline uint32_t gemm_batch(const struct gemm_case *x)
{
	return x->s.batch ? x->s.batch : 1;
}

/* Leading dimensions and what they count. */
struct gemm_dims {
	uint64_t lda, ldb, ldc, a, b, c;
};
static inline struct gemm_dims gemm_dims(const struct gemm_case *x)
{
	const struct gemm_shape *s = &x->s;
	struct gemm_dims d;

	d.lda = dense(s->lda, x->op.a_trans ? s->m : s->k);
	d.ldb = dense(s->ldb, x->op.b_trans ? s->k : gemm_columns(x));
	d.ldc = dense(s->ldc, s->n);
	d.a = d.lda * (x->op.a_trans ? s->k : s->m);
	d.b = d.ldb * (x->op.b_trans ? gemm_columns(x) : s->k);
	d.c = d.ldc * s->m;
	return d;
}

/* Small integers for i8, where sums are exact; else uniform in +-1. */
static inline struct arr gemm_random(enum dsl_type t, size_t n, uint64_t *seed)
{
	return arr_random(gemm_kind(t), n, t == DSL_I8 ? 127 : 1, seed);
}

static inline double act_of(uint32_t epilogue, double x, double gate)
{
	if (epilogue & GEMM_RELU)
		return x > 0 ? x : 0;
	if (epilogue & GEMM_SILU)
		return x / (1 + exp(-x));
	if (epilogue & GEMM_GELU)
		return 0.5 * x * (1 + erf(x * sqrt(0.5)));
	if (epilogue & GEMM_SWIGLU)
		return x * gate / (1 + exp(-gate));
	return x;
}

/* Element `at` of B; of weights rounded to the type of A. */
static inline double gemm_b(const struct gemm_case *x, uint64_t at)
{
	const enum ssa_kind kind = gemm_kind(x->op.in);
	double q;

	if (!x->op.weights)
		return arr_get(&x->b, at);
	if (x->op.weights == DSL_I8)
		q = (int8_t)x->b.bits[at];
	else
		q = (x->b.bits[at / 32 * 16 + at % 16] >> at % 32 / 16 * 4 &
		     15) - 8;
	return ssa_bits_to_f64(kind, ssa_f64_to_bits(
		kind, q * arr_get(&x->scale, at / 32)));
}

/* Sum of products, and that of their magnitudes. */
static inline double gemm_dot(const struct gemm_case *x,
			      const struct gemm_dims *d, uint64_t batch,
			      uint64_t i, uint64_t j, double *size)
{
	const uint64_t a0 = batch * x->s.stride_a, b0 = batch * x->s.stride_b;
	double sum = 0;

	*size = 0;
	for (uint64_t k = 0; k < x->s.k; k++) {
		double p = arr_get(&x->a, a0 + (x->op.a_trans ? k * d->lda + i :
							i * d->lda + k)) *
			   gemm_b(x, b0 + (x->op.b_trans ? j * d->ldb + k :
							   k * d->ldb + j));
		sum += p;
		*size += p * p;
	}
	return sum;
}

/*
 * The bound: products add like a random walk, so sqrt(K) roundings of f32 of
 * the size of the sum's spread (8 of them), through an epilogue that magnifies
 * by less than 2 and the other factor's size; one rounding to the type of C.
 */
static inline void gemm_element(struct gemm_case *x, const struct gemm_dims *d,
				uint64_t batch, uint64_t i, uint64_t j)
{
	const uint64_t at = batch * x->s.stride_c + i * d->ldc + j;
	const uint32_t ep = x->op.epilogue;
	const bool pair = ep & GEMM_SWIGLU;
	const enum ssa_kind kind = gemm_kind(x->op.out);
	double scale = ep & GEMM_SCALE ? (double)x->alpha : 1;
	double size, gate_size = 0, gate = 0, v, err;

	v = scale * gemm_dot(x, d, batch, i, j + (pair ? x->s.n : 0), &size);
	if (pair)
		gate = scale * gemm_dot(x, d, batch, i, j, &gate_size);
	if (ep & GEMM_BIAS) {
		v += arr_get(&x->bias, j + (pair ? x->s.n : 0));
		gate += pair ? arr_get(&x->bias, j) : 0;
	}
	if (x->op.beta)
		v += (double)x->beta * arr_get(&x->out, at);
	err = 8 * 0x1p-24 * sqrt((double)x->s.k + 1) *
	      fabs(scale) * (sqrt(size) + sqrt(gate_size) + 1);
	err += 0x1p-21 * (fabs(v) + fabs(gate));
	err *= 2 + (pair ? fabs(gate) + fabs(v) : 0);
	v = act_of(ep, v, gate) / (ep & GEMM_SHRINK ? 64 : 1);
	if (ep & GEMM_RESIDUAL)
		v += arr_get(&x->residual, at);
	x->want[at] = v;
	x->tol[at] = kind == SSA_I32 ? 0 :
		     err + ulp_of(kind) * fabs(v) * (kind == SSA_F32 ? 2 : 1) +
			     step_of(kind);
}

static inline void gemm_reference(struct gemm_case *x)
{
	const struct gemm_dims d = gemm_dims(x);

	x->want = calloc(x->out.n + 1, sizeof(double));
	x->tol = calloc(x->out.n + 1, sizeof(double));
	for (size_t i = 0; i < x->out.n; i++)
		x->want[i] = arr_get(&x->out, i);
	for (uint64_t b = 0; b < gemm_batch(x); b++)
		for (uint64_t i = 0; i < x->s.m; i++)
			for (uint64_t j = 0; j < x->s.n; j++)
				gemm_element(x, &d, b, i, j);
}

/* Any integers, and scales that make them less than about 1. */
static inline void gemm_weights_fill(struct gemm_case *x, size_t n,
				     uint64_t *seed)
{
	const bool small = x->op.weights == DSL_U8;

	x->scale = arr_random(SSA_F16, x->op.weights ? n / 32 : 0,
			      small ? 0.1 : 0.01, seed);
	if (!x->op.weights)
		return;
	free(x->b.bits);
	x->b = arr_new(SSA_I8, small ? n / 2 : n);
	for (size_t i = 0; i < x->b.n; i++)
		x->b.bits[i] = (uint8_t)(test_random(seed) >> 40);
}

static inline void gemm_case_fill(struct gemm_case *x, uint64_t *seed)
{
	const struct gemm_dims d = gemm_dims(x);
	const uint64_t last = gemm_batch(x) - 1;

	x->a = gemm_random(x->op.in, d.a + last * x->s.stride_a, seed);
	x->b = gemm_random(x->op.in, d.b + last * x->s.stride_b, seed);
	gemm_weights_fill(x, d.b + last * x->s.stride_b, seed);
	x->out = gemm_random(x->op.out == DSL_I32 ? DSL_I8 : x->op.out,
			     0, seed);
	free(x->out.bits);
	x->out = arr_random(gemm_kind(x->op.out), d.c + last * x->s.stride_c,
			    x->op.out == DSL_I32 ? 99 : 1, seed);
	x->bias = arr_random(gemm_kind(x->op.out), gemm_columns(x), 1, seed);
	x->residual = arr_random(gemm_kind(x->op.out), x->out.n, 1, seed);
}

static inline void gemm_case_free(struct gemm_case *x)
{
	free(x->a.bits);
	free(x->b.bits);
	free(x->scale.bits);
	free(x->out.bits);
	free(x->bias.bits);
	free(x->residual.bits);
	free(x->want);
	free(x->tol);
}

static inline bool gemm_put(struct cc_dev *d, const struct arr *a,
			    struct kfd_mem **m, uint64_t *va, struct err *e)
{
	size_t n = a->n * arr_bytes(a);

	if (!kfd_mem_alloc(d->dev, KFD_VRAM, n ? n : 1, "operand", m, e))
		return false;
	*va = (*m)->va;
	return !n || kfd_write(d->dev, *m, 0, a->bits, n, e);
}

/* The kernels of a product on the device. */
struct gemm_loaded {
	struct kfd_code *code[GEMM_KERNELS];
	const struct kfd_kernel *kernel[GEMM_KERNELS];
};

static inline void gemm_unload(struct gemm_loaded *loaded)
{
	for (int k = 0; k < GEMM_KERNELS; k++)
		kfd_code_unload(loaded->code[k]);
	*loaded = (struct gemm_loaded){ 0 };
}

/* The caller unloads them, anyway. */
static inline bool gemm_load(struct cc_dev *d, const struct gemm_code *code,
			     const struct gemm_launch *l,
			     struct gemm_loaded *loaded, struct err *e)
{
	bool good = true;

	for (int k = 0; good && k < l->n; k++)
		good = kfd_code_load(d->dev, code->object[k].bytes.data,
				     code->object[k].bytes.len,
				     &loaded->code[k], e) &&
		       kfd_code_kernel(loaded->code[k], l->step[k].kernel,
				       &loaded->kernel[k], e);
	return good;
}

static inline bool gemm_steps(struct cc_dev *d,
			      const struct gemm_loaded *loaded,
			      const struct gemm_launch *l, struct err *e)
{
	bool good = true;

	for (int k = 0; good && k < l->n; k++) {
		/* Long enough where many share the processors. */
		struct kfd_launch go = { .kernel = loaded->kernel[k],
					 .args = l->step[k].args,
					 .args_bytes = l->step[k].args_bytes,
					 .deadline_ns = time_mono_ns() +
						UINT64_C(120000000000) };

		if (!l->step[k].groups[0] || !l->step[k].groups[1] ||
		    !l->step[k].groups[2])
			continue;
		go.wg[0] = l->step[k].group_size;
		go.grid[0] = l->step[k].groups[0] * go.wg[0];
		go.grid[1] = l->step[k].groups[1];
		go.grid[2] = l->step[k].groups[2];
		good = kfd_run(d->queue, &go, NULL, e);
	}
	return good;
}

/* Runs the case with the code; C comes back in x->out. */
static inline bool gemm_case_run(struct cc_dev *d, struct gemm_case *x,
				 const struct gemm_code *code, struct err *e)
{
	enum { A, B, C, BIAS, RESIDUAL, SCALE, WORK, BUFFERS };
	struct kfd_mem *m[BUFFERS] = { 0 };
	struct gemm_operands o = { .alpha = x->alpha, .beta = x->beta };
	struct gemm_loaded loaded = { 0 };
	struct gemm_launch l;
	struct buf found = { 0 };
	uint64_t n;
	bool good;

	good = gemm_put(d, &x->a, &m[A], &o.a, e) &&
	       gemm_put(d, &x->b, &m[B], &o.b, e) &&
	       gemm_put(d, &x->out, &m[C], &o.c, e) &&
	       gemm_put(d, &x->bias, &m[BIAS], &o.bias, e) &&
	       gemm_put(d, &x->residual, &m[RESIDUAL], &o.residual, e) &&
	       gemm_put(d, &x->scale, &m[SCALE], &o.scale, e) &&
	       gemm_launch(&x->op, &x->c, &x->s, &o, &l, e);
	if (good && l.workspace_bytes) {
		good = kfd_mem_alloc(d->dev, KFD_VRAM, l.workspace_bytes,
				     "workspace", &m[WORK], e);
		o.workspace = good ? m[WORK]->va : 0;
		good = good && gemm_launch(&x->op, &x->c, &x->s, &o, &l, e);
	}
	good = good && gemm_load(d, code, &l, &loaded, e) &&
	       gemm_steps(d, &loaded, &l, e) &&
	       (!x->out.n || kfd_read(d->dev, x->out.bits, m[C], 0,
				      x->out.n * arr_bytes(&x->out), e));
	gemm_unload(&loaded);
	n = soft_watch_findings(d->driver, &found);
	if (good && n != d->findings)
		good = err_set(e, ERR_DEVICE, "%.900s",
			       found.data ? found.data : "");
	d->findings = n;
	buf_fini(&found);
	for (int k = 0; k < BUFFERS; k++)
		if (m[k])
			kfd_mem_free(d->dev, m[k]);
	return good;
}

static inline void gemm_case_name(const struct gemm_case *x, char *out,
				  size_t size)
{
	char op[100], c[120];

	gemm_op_name(&x->op, op, sizeof(op));
	gemm_config_name(&x->c, c, sizeof(c));
	snprintf(out, size, "%ux%ux%u x%u %s %s lda %llu ldb %llu ldc %llu",
		 x->s.m, x->s.n, x->s.k, gemm_batch(x), op, c,
		 (unsigned long long)x->s.lda, (unsigned long long)x->s.ldb,
		 (unsigned long long)x->s.ldc);
}

#endif
