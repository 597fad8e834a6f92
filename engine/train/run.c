/*
 * engine/train/run.c - a list of operations is run: memory and threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/train/kernels.h"

struct train {
	const struct train_graph *g;
	const struct train_backend *backend;
	struct threads *threads;
	struct train_worker *worker; /* [threads] */
	char *arena;
	float scale, loss_scale;
	bool changed;	   /* the host has written what is always there */
	uint32_t from, to; /* of the run at hand */
};

const struct train_backend train_cpu = {
	.name = "cpu",
	.run = {
		[TRAIN_EMBED] = train_embed,
		[TRAIN_EMBED_BACK] = train_embed_back,
		[TRAIN_NORM] = train_norm,
		[TRAIN_NORM_BACK] = train_norm_back,
		[TRAIN_TURN] = train_turn,
		[TRAIN_TURN_BACK] = train_turn_back,
		[TRAIN_LINEAR] = train_linear,
		[TRAIN_LINEAR_DX] = train_linear_dx,
		[TRAIN_LINEAR_DW] = train_linear_dw,
		[TRAIN_ATTENTION] = train_attention,
		[TRAIN_ATTENTION_BACK] = train_attention_back,
		[TRAIN_ENGRAM] = train_engram,
		[TRAIN_ENGRAM_BACK] = train_engram_back,
		[TRAIN_SWIGLU] = train_swiglu,
		[TRAIN_SWIGLU_BACK] = train_swiglu_back,
		[TRAIN_LOSS] = train_loss,
		[TRAIN_LOSS_BACK] = train_loss_back,
		[TRAIN_ROUND] = train_round,
	},
};

extern const struct train_kernels train_kernels_v2, train_kernels_v3,
	train_kernels_v4;

const struct train_kernels *train_kernels_best(void)
{
	static const struct train_kernels *const all[] = {
		&train_kernels_v2, &train_kernels_v3, &train_kernels_v4,
	};

	return all[cpu_level("T0_ENGINE_SIMD") - 2];
}

/* ---- memory ---- */

uint64_t train_memory_free(void)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	uint64_t kib = 0;

	if (file_read("/proc/meminfo", 1 << 16, &text, &e) && text.data) {
		const char *at = strstr(text.data, "MemAvailable:");
		kib = at ? strtoull(at + 13, NULL, 10) : 0;
	}
	buf_fini(&text);
	return kib ? kib * 1024 :
		     (uint64_t)sysconf(_SC_AVPHYS_PAGES) *
			     (uint64_t)sysconf(_SC_PAGESIZE);
}

static char *map_arena(size_t bytes, struct err *e)
{
	uint64_t there = train_memory_free();

	if (bytes > there) {
		err_set(e, ERR_NOMEM, "a step needs %.1f MiB of memory; %.1f "
			"MiB are free; wanted a smaller batch, more that is "
			"made again (--recompute), or a smaller model",
			(double)bytes / 0x1p20, (double)there / 0x1p20);
		return NULL;
	}
	char *p = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		err_sys(e, ERR_NOMEM, errno, "%.1f MiB of memory for a step",
			(double)bytes / 0x1p20);
		return NULL;
	}
	madvise(p, bytes + 1, MADV_HUGEPAGE);
	return p;
}

static void fill_angles(struct train *x)
{
	const struct train_graph *g = x->g;

	if (g->cosine != g->sine)
		qwen_angles(&g->config, 0,
			    (uint32_t)g->value[g->cosine].rows,
			    train_data(x, g->cosine), train_data(x, g->sine));
}

static bool open_arena(const struct train_graph *g,
		       const struct train_backend *b, char **arena,
		       struct err *e)
{
	if (!b->device)
		return (*arena = map_arena(g->bytes, e)) != NULL;
	if (b->device->open(b->ctx, g, arena, e))
		return true;
	b->device->close(b->ctx);
	return false;
}

struct train *train_new(const struct train_graph *g, struct threads *t,
			const struct train_backend *b, struct err *e)
{
	char *arena;

	b = b ? b : &train_cpu;
	if (!open_arena(g, b, &arena, e))
		return NULL;
	struct train *x = xcalloc(1, sizeof(*x));
	*x = (struct train){ .g = g, .backend = b, .threads = t,
			     .arena = arena, .scale = 1, .loss_scale = 1,
			     .changed = true };
	unsigned n = threads_count(t);
	x->worker = xcalloc(n, sizeof(*x->worker));
	for (unsigned i = 0; i < n; i++)
		x->worker[i] = (struct train_worker){
			.x = x, .g = g, .t = t, .thread = i, .threads = n };
	fill_angles(x);
	return x;
}

void train_free(struct train *x)
{
	if (!x)
		return;
	for (unsigned i = 0; i < threads_count(x->threads); i++) {
		cpu_gemm_scratch_fini(&x->worker[i].gemm);
		free(x->worker[i].space);
	}
	free(x->worker);
	if (x->backend->device)
		x->backend->device->close(x->backend->ctx);
	else
		munmap(x->arena, x->g->bytes + 1);
	free(x);
}

void *train_data(const struct train *x, uint32_t value)
{
	return x->arena + x->g->value[value].offset;
}

void train_changed(struct train *x)
{
	x->changed = true;
}

bool train_fetch(const struct train *x, struct err *e)
{
	const struct train_backend *b = x->backend;

	/* What is not there yet is the host's. */
	return !b->device || x->changed || b->device->fetch(b->ctx, e);
}

void train_scale(struct train *x, float scale)
{
	x->scale = scale;
}

void train_loss_scale(struct train *x, float scale)
{
	x->loss_scale = scale;
}

struct threads *train_threads(const struct train *x)
{
	return x->threads;
}

const struct train_graph *train_graph_of(const struct train *x)
{
	return x->g;
}

/* ---- for the operations ---- */

void *train_at(const struct train_worker *w, const struct train_op *op,
	       unsigned i)
{
	return train_data(w->x, op->v[i]);
}

const struct train_value *train_operand(const struct train_worker *w,
					const struct train_op *op, unsigned i)
{
	return &w->g->value[op->v[i]];
}

float *train_space(struct train_worker *w, size_t floats)
{
	if (floats > w->space_floats) {
		free(w->space);
		w->space = xaligned(64, (floats + 15) / 16 * 64);
		w->space_floats = floats;
	}
	return w->space;
}

struct train_worker *train_worker_of(struct train *x, unsigned thread)
{
	return &x->worker[thread];
}

float train_scale_of(const struct train_worker *w)
{
	return w->x->scale * w->x->loss_scale;
}

float train_loss_scale_of(const struct train *x)
{
	return x->loss_scale;
}

enum qwen_weights train_type_of(const struct train_graph *g,
				const struct train_value *v)
{
	return v->width == 2 ? g->type : QWEN_W_F32;
}

/* ---- running ---- */

static void run_list(void *ctx, struct threads *t, unsigned thread)
{
	struct train *x = ctx;

	for (uint32_t i = x->from; i < x->to; i++) {
		const struct train_op *op = &x->g->op[i];

		x->backend->run[op->kind](&x->worker[thread], op);
		threads_barrier(t);
	}
}

static bool send_changes(struct train *x, struct err *e)
{
	if (x->changed && !x->backend->device->send(x->backend->ctx, e))
		return false;
	x->changed = false;
	return true;
}

bool train_run(struct train *x, uint32_t from, uint32_t to, struct err *e)
{
	const struct train_backend *b = x->backend;

	if (b->device)
		return send_changes(x, e) &&
		       b->device->run(b->ctx, from, to,
				      x->scale * x->loss_scale, e);
	x->from = from;
	x->to = to;
	threads_run(x->threads, run_list, x);
	return true;
}

uint32_t train_lanes(const struct train *x)
{
	const struct train_backend *b = x->backend;

	return b->device && b->device->lanes ? b->device->lanes(b->ctx) : 1;
}

/* What has begun ends, whatever happens. */
static bool run_lanes(struct train *x, const struct train_batches *b,
		      uint64_t first, uint32_t lanes, struct err *e)
{
	const struct train_backend *on = x->backend;
	uint32_t begun = 0;
	bool ok = true;

	while (ok && begun < lanes) {
		b->put(b->ctx, first + begun);
		ok = on->device->begin(on->ctx, begun, 0, x->g->n_ops,
				       x->scale * x->loss_scale, e);
		begun += ok;
	}
	for (uint32_t i = 0; i < begun; i++) {
		ok = on->device->end(on->ctx, i, ok ? e : NULL) && ok;
		if (ok)
			b->done(b->ctx, first + i);
	}
	return ok;
}

bool train_run_batches(struct train *x, const struct train_batches *b,
		       struct err *e)
{
	const uint32_t lanes = train_lanes(x);

	if (lanes > 1 && !send_changes(x, e))
		return false;
	for (uint64_t i = 0; i < b->n; i += lanes) {
		if (lanes > 1) {
			if (!run_lanes(x, b, i, lanes, e))
				return false;
			continue;
		}
		b->put(b->ctx, i);
		if (!train_run(x, 0, x->g->n_ops, e))
			return false;
		b->done(b->ctx, i);
	}
	return true;
}

bool train_update(struct train *x, const struct train_rule *r, uint64_t step,
		  double *norm, struct err *e)
{
	const struct train_backend *b = x->backend;

	if (b->device)
		return send_changes(x, e) &&
		       b->device->update(b->ctx, r, step, x->loss_scale, norm,
					 e);
	*norm = train_update_host(x, r, step);
	return true;
}
