/*
 * autotune/tuner/bench_device.c - one product on one device.
 */
#include <string.h>

#include "autotune/tuner/tune_int.h"

/* Emulating the largest product takes a minute; a card needs milliseconds. */
#define DEADLINE_NS 300000000000ull

bool tune_bench_open(struct tune_bench *r, const char *device,
		     const struct tune_clock *clock, const _Atomic int *stop,
		     struct err *e)
{
	const struct kfd_queue_opts o = { .stop = stop };

	r->clock = clock;
	r->stop = stop;
	return (clock ? clock->open(clock->ctx, &r->dev, e) :
			kfd_open(&r->dev, device, e)) &&
	       kfd_queue_new(r->dev, &o, &r->q, e);
}

static void drop_operands(struct tune_bench *r)
{
	struct kfd_mem **all[] = { &r->a, &r->b, &r->c, &r->bias,
				   &r->residual, &r->scale, &r->work };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		kfd_mem_free(r->dev, *all[i]);
		*all[i] = NULL;
	}
	r->p = (struct tune_problem){ 0 };
}

void tune_bench_drop(struct tune_bench *r)
{
	if (!r->dev)
		return;
	kfd_queue_free(r->q, NULL);
	r->q = NULL;
	drop_operands(r);
}

void tune_bench_close(struct tune_bench *r)
{
	tune_bench_drop(r);
	if (r->dev)
		kfd_close(r->dev);
	*r = (struct tune_bench){ 0 };
}

bool tune_bench_load(struct tune_bench *r, const struct gemm_code *code,
		     struct tune_loaded *out, struct err *e)
{
	*out = (struct tune_loaded){ .n = 0 };
	for (int i = 0; i < code->n; i++) {
		if (!kfd_code_load(r->dev, code->object[i].bytes.data,
				   code->object[i].bytes.len, &out->code[i],
				   e)) {
			tune_bench_unload(out);
			return err_wrap(e, "kernel %d", i);
		}
		out->n = i + 1;
		out->kernel[i] = kfd_code_at(out->code[i], 0);
		out->code_bytes[i] = code->object[i].stats.code_bytes;
	}
	return true;
}

void tune_bench_unload(struct tune_loaded *l)
{
	for (int i = 0; i < l->n; i++)
		kfd_code_unload(l->code[i]);
	l->n = 0;
}

/* ---- operands ---- */

/* Bytes; 0: the product has none. */
struct operand_bytes {
	uint64_t a, b, scale, c, bias, residual;
};

static struct operand_bytes operand_bytes(const struct tune_problem *p)
{
	const struct gemm_op *op = &p->op;
	const struct gemm_shape s = tune_shape(p);
	uint64_t in = tune_type_bytes(op->in), out = tune_type_bytes(op->out);
	uint64_t all_b = s.stride_b * p->batch;
	uint64_t all_c = s.stride_c * p->batch * out;

	return (struct operand_bytes){
		.a = s.stride_a * p->batch * in,
		.b = op->weights == DSL_U8 ? all_b / 2 :
		     op->weights	   ? all_b :
					     all_b * in,
		.scale = op->weights ? all_b / GEMM_GROUP * 2 : 0,
		.c = all_c,
		.bias = op->epilogue & GEMM_BIAS ? tune_columns(p) * out : 0,
		.residual = op->epilogue & GEMM_RESIDUAL ? all_c : 0,
	};
}

bool tune_bench_has_room(struct tune_bench *r, const struct tune_problem *p,
			 struct err *e)
{
	const struct operand_bytes s = operand_bytes(p);
	const double wanted = (double)s.a + (double)s.b + (double)s.scale +
			      (double)s.c + (double)s.bias +
			      (double)s.residual;
	uint64_t there;

	if (!kfd_vram_available(r->dev, &there, NULL))
		there = kfd_info(r->dev)->node.vram_bytes;
	return wanted <= (double)there ||
	       err_set(e, ERR_NOMEM, "%ux%ux%u: its operands take %.1f GB; the "
		       "device has %.1f GB", p->m, p->n, p->k, wanted * 1e-9,
		       (double)there * 1e-9);
}

static bool alloc_operand(struct tune_bench *r, struct kfd_mem **m,
			  const char *name, uint64_t bytes, struct err *e)
{
	return !bytes || kfd_mem_alloc(r->dev, KFD_VRAM, bytes, name, m, e);
}

static bool alloc_all(struct tune_bench *r, struct err *e)
{
	const struct operand_bytes s = operand_bytes(&r->p);

	return alloc_operand(r, &r->a, "A", s.a, e) &&
	       alloc_operand(r, &r->b, "B", s.b, e) &&
	       alloc_operand(r, &r->scale, "scales", s.scale, e) &&
	       alloc_operand(r, &r->c, "C", s.c, e) &&
	       alloc_operand(r, &r->bias, "bias", s.bias, e) &&
	       alloc_operand(r, &r->residual, "residual", s.residual, e);
}

static void fill_operand(struct kfd_mem *m, enum tune_fill f,
			 enum dsl_type t, uint64_t seed)
{
	if (m)
		tune_fill_operand(f, t, m->cpu,
				  m->size_bytes / tune_type_bytes(t), seed);
}

void tune_bench_stale(struct tune_bench *r, uint64_t seed)
{
	if (r->p.op.beta)
		fill_operand(r->c, TUNE_NORMAL, r->p.op.out, seed + 3);
	else
		memset(r->c->cpu, 0xff, r->c->size_bytes); /* NaN, or -1 */
	kfd_mem_flush(r->dev);
}

static bool same_problem(const struct tune_problem *a,
			 const struct tune_problem *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k &&
	       a->batch == b->batch && !memcmp(&a->op, &b->op, sizeof(a->op));
}

bool tune_bench_set(struct tune_bench *r, const struct tune_problem *p,
		    enum tune_fill f, uint64_t seed, struct err *e)
{
	if (!r->c || !same_problem(&r->p, p)) {
		drop_operands(r);
		r->p = *p;
		r->shape = tune_shape(p);
		if (!alloc_all(r, e)) {
			drop_operands(r);
			return err_wrap(e, "operands of %ux%ux%u", p->m, p->n,
					p->k);
		}
	}
	fill_operand(r->a, f, p->op.in, seed);
	if (p->op.weights)
		tune_fill_weights(f, p->op.weights, r->b->cpu, r->scale->cpu,
				  r->shape.stride_b * p->batch, seed + 1);
	else
		fill_operand(r->b, f, p->op.in, seed + 1);
	fill_operand(r->bias, f, p->op.out, seed + 2);
	fill_operand(r->residual, f, p->op.out, seed + 4);
	tune_bench_stale(r, seed);
	return true;
}

/* ---- runs ---- */

struct tune_view tune_view_all(const struct tune_problem *p)
{
	return (struct tune_view){ .m = p->m, .n = p->n, .k = p->k };
}

static uint64_t element_va(const struct kfd_mem *m, uint64_t elements,
			   enum dsl_type t)
{
	return m ? m->va + elements * tune_type_bytes(t) : 0;
}

/* Of B, and the scales of integers; element `first` is one of a group. */
static void operand_b(const struct tune_bench *r, uint64_t first,
		      struct gemm_operands *x)
{
	const enum dsl_type w = r->p.op.weights;

	x->b = element_va(r->b, first, r->p.op.in);
	if (!w)
		return;
	x->b = r->b->va + (w == DSL_U8 ? first / 2 : first);
	x->scale = r->scale->va + first / GEMM_GROUP * 2;
}

/* Addresses of a block of C, and of what makes it. */
static struct gemm_operands view_operands(const struct tune_bench *r,
					  const struct tune_view *v)
{
	const struct gemm_op *op = &r->p.op;
	const struct gemm_shape *s = &r->shape;
	uint64_t c = v->row * s->ldc + v->column;

	struct gemm_operands x = {
		.a = element_va(r->a, op->a_trans ? v->row : v->row * s->lda,
				op->in),
		.c = element_va(r->c, c, op->out),
		.bias = element_va(r->bias, v->column, op->out),
		.residual = element_va(r->residual, c, op->out),
		.workspace = r->work ? r->work->va : 0,
		.alpha = TUNE_ALPHA,
		.beta = TUNE_BETA,
	};

	operand_b(r, op->b_trans ? v->column * s->ldb : v->column, &x);
	return x;
}

bool tune_bench_launch(struct tune_bench *r, const struct gemm_config *c,
		       const struct tune_view *v, struct gemm_launch *out,
		       struct err *e)
{
	struct gemm_operands x = view_operands(r, v);
	struct gemm_shape s = r->shape;

	s.m = v->m;
	s.n = v->n;
	s.k = v->k;
	if (!gemm_launch(&r->p.op, c, &s, &x, out, e))
		return false;
	if (out->workspace_bytes &&
	    (!r->work || r->work->size_bytes < out->workspace_bytes)) {
		kfd_mem_free(r->dev, r->work);
		r->work = NULL;
		if (!alloc_operand(r, &r->work, "workspace",
				   out->workspace_bytes, e))
			return false;
	}
	x = view_operands(r, v);
	return gemm_launch(&r->p.op, c, &s, &x, out, e);
}

bool tune_bench_submit(struct tune_bench *r, const struct tune_loaded *code,
		       const struct gemm_launch *l, int i, uint64_t *ticket,
		       struct err *e)
{
	struct kfd_launch x = {
		.kernel = code->kernel[i], .args = l->step[i].args,
		.args_bytes = l->step[i].args_bytes,
		.wg = { l->step[i].group_size, 1, 1 },
		.deadline_ns = time_mono_ns() + DEADLINE_NS,
	};

	for (int d = 0; d < 3; d++)
		x.grid[d] = l->step[i].groups[d] * x.wg[d];
	return kfd_submit(r->q, &x, ticket, e);
}

static bool wait_for(struct tune_bench *r, uint64_t ticket,
		     struct kfd_timing *t, struct err *e)
{
	return kfd_wait(r->q, ticket, time_mono_ns() + DEADLINE_NS, t, e);
}

/* A simulated clock must know each kernel before, so one at a time. */
static bool run_timed(struct tune_bench *r, const struct tune_loaded *code,
		      const struct gemm_launch *l, double *device_s,
		      struct err *e)
{
	const struct tune_clock *c = r->clock;
	double sum = 0;

	for (int i = 0; i < l->n; i++) {
		struct kfd_timing t;
		uint64_t ticket;

		c->about(c->ctx, code->kernel[i], code->code_bytes[i]);
		if (!tune_bench_submit(r, code, l, i, &ticket, e) ||
		    !wait_for(r, ticket, &t, e) || !c->check(c->ctx, e))
			return err_wrap(e, "%s", l->step[i].kernel);
		sum += (double)(t.end_ticks - t.start_ticks);
	}
	if (device_s)
		*device_s = sum / kfd_clock_hz(r->dev);
	return true;
}

static bool has_work(const struct gemm_launch *l, int i)
{
	return l->step[i].groups[0] && l->step[i].groups[1] &&
	       l->step[i].groups[2];
}

bool tune_bench_run(struct tune_bench *r, const struct tune_loaded *code,
		    const struct gemm_launch *l, double *device_s,
		    struct err *e)
{
	uint64_t ticket[GEMM_KERNELS], first = 0, last = 0;
	struct kfd_timing t;

	if (r->clock)
		return run_timed(r, code, l, device_s, e);
	for (int i = 0; i < l->n; i++)
		if (has_work(l, i) &&
		    !tune_bench_submit(r, code, l, i, &ticket[i], e))
			return false;
	for (int i = 0; i < l->n; i++) {
		if (!has_work(l, i))
			continue;
		if (!wait_for(r, ticket[i], &t, e))
			return err_wrap(e, "%s", l->step[i].kernel);
		first = first ? first : t.start_ticks;
		last = t.end_ticks;
	}
	if (device_s)
		*device_s = (double)(last - first) / kfd_clock_hz(r->dev);
	return true;
}
