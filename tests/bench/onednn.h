/*
 * Products of bf16 and of bytes by oneDNN, for bench-host-gemm: its matmul of A
 * [m][k] and B stored [n][k], both in that type already, C in f32 or int32.  T0
 * gets A in f32 and rounds it in the same time, so its reorder primitive rounds
 * A for it, too, in turns of their own; T0's bytes have scales, theirs none.
 * The library is loaded where it is installed (libdnnl-dev), nothing is linked
 * with it.
 */
#ifndef T0_TESTS_BENCH_ONEDNN_H
#define T0_TESTS_BENCH_ONEDNN_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float.h"

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#endif

#if defined(DNNL_VERSION_MAJOR) && DNNL_VERSION_MAJOR == 2
#define ONEDNN_FUNCTIONS(DO) \
	DO(engine_create) DO(stream_create) DO(memory_desc_init_by_strides) \
	DO(matmul_desc_init) DO(primitive_desc_create) DO(primitive_create) \
	DO(memory_create) DO(primitive_execute) DO(stream_wait) \
	DO(reorder_primitive_desc_create) DO(primitive_destroy) DO(primitive_desc_destroy) DO(memory_destroy)
struct onednn {
	void *handle;
#define ONEDNN_FIELD(name) __typeof__(dnnl_##name) *name;
	ONEDNN_FUNCTIONS(ONEDNN_FIELD)
	void (*set_threads)(int n);
	dnnl_engine_t engine;
	dnnl_stream_t stream;
};

/* One product, and the rounding of an A in f32 to what it takes. */
struct onednn_product {
	const struct onednn *d;
	dnnl_primitive_desc_t desc, round_desc;
	dnnl_primitive_t run, round;
	dnnl_exec_arg_t arg[3], round_arg[2];
	void *data[3];
};

static bool onednn_open(struct onednn *d)
{
	*d = (struct onednn){ .handle = dlopen("libdnnl.so.2", RTLD_NOW) };
	if (!d->handle)
		return false;
#define ONEDNN_FIND(name) \
	d->name = (__typeof__(d->name))dlsym(d->handle, "dnnl_" #name);
	ONEDNN_FUNCTIONS(ONEDNN_FIND)
	d->set_threads = (void (*)(int))dlsym(d->handle, "omp_set_num_threads");
	return d->engine_create(&d->engine, dnnl_cpu, 0) == dnnl_success &&
	       d->stream_create(&d->stream, d->engine,
				dnnl_stream_default_flags) == dnnl_success;
}

/* From `a` in f32 to the memory of A that the product has. */
static bool onednn_round_init(struct onednn_product *p, const float *a,
			      const dnnl_memory_desc_t *to)
{
	const struct onednn *d = p->d;
	dnnl_memory_desc_t wide;

	if (d->memory_desc_init_by_strides(&wide, 2, to->dims, dnnl_f32,
					   to->format_desc.blocking.strides) !=
		    dnnl_success ||
	    d->reorder_primitive_desc_create(&p->round_desc, &wide, d->engine,
					     to, d->engine, NULL) !=
		    dnnl_success ||
	    d->primitive_create(&p->round, p->round_desc) != dnnl_success)
		return false;
	p->round_arg[0].arg = DNNL_ARG_FROM;
	d->memory_create(&p->round_arg[0].memory, &wide, d->engine,
			 (void *)(uintptr_t)a);
	p->round_arg[1].arg = DNNL_ARG_TO;
	p->round_arg[1].memory = p->arg[0].memory;
	return true;
}

/* `bytes`: s8 and s32, else bf16 and f32. */
static bool onednn_init(struct onednn_product *p, const struct onednn *d,
			bool bytes, const float *a, const float *b, long m,
			long n, long k)
{
	const dnnl_data_type_t in = bytes ? dnnl_s8 : dnnl_bf16;
	const dnnl_dims_t dims[] = { { m, k }, { k, n }, { m, n } };
	const dnnl_dims_t strides[] = { { k, 1 }, { 1, k }, { n, 1 } };
	const float *from[] = { a, b };
	dnnl_memory_desc_t md[3];
	dnnl_matmul_desc_t what;

	*p = (struct onednn_product){ .d = d };
	for (int i = 0; i < 3; i++) {
		size_t count = (size_t)(dims[i][0] * dims[i][1]);
		p->data[i] = aligned_alloc(64, (count * 4 + 63) / 64 * 64);
		d->memory_desc_init_by_strides(
			&md[i], 2, dims[i],
			i < 2 ? in : bytes ? dnnl_s32 : dnnl_f32, strides[i]);
		for (size_t j = 0; i < 2 && j < count; j++)
			if (bytes)
				((int8_t *)p->data[i])[j] =
					(int8_t)(from[i][j] * 127);
			else
				((uint16_t *)p->data[i])[j] = (uint16_t)
					float_bits(from[i][j], 8, 7);
	}
	d->matmul_desc_init(&what, &md[0], &md[1], NULL, &md[2]);
	if (d->primitive_desc_create(&p->desc, &what, NULL, d->engine, NULL) !=
		    dnnl_success ||
	    d->primitive_create(&p->run, p->desc) != dnnl_success)
		return false;
	for (int i = 0; i < 3; i++) {
		p->arg[i].arg = i == 0 ? DNNL_ARG_SRC :
				i == 1 ? DNNL_ARG_WEIGHTS :
					 DNNL_ARG_DST;
		d->memory_create(&p->arg[i].memory, &md[i], d->engine,
				 p->data[i]);
	}
	return onednn_round_init(p, a, &md[0]);
}

static void onednn_round(const struct onednn_product *p)
{
	p->d->primitive_execute(p->round, p->d->stream, 2, p->round_arg);
	p->d->stream_wait(p->d->stream);
}

static void onednn_run(const struct onednn_product *p)
{
	p->d->primitive_execute(p->run, p->d->stream, 3, p->arg);
	p->d->stream_wait(p->d->stream);
}

static void onednn_fini(struct onednn_product *p)
{
	for (int i = 0; i < 3; i++) {
		if (p->arg[i].memory)
			p->d->memory_destroy(p->arg[i].memory);
		free(p->data[i]);
	}
	if (p->round_arg[0].memory)
		p->d->memory_destroy(p->round_arg[0].memory);
	if (p->round)
		p->d->primitive_destroy(p->round);
	if (p->round_desc)
		p->d->primitive_desc_destroy(p->round_desc);
	if (p->run)
		p->d->primitive_destroy(p->run);
	if (p->desc)
		p->d->primitive_desc_destroy(p->desc);
}

#else

struct onednn {
	void (*set_threads)(int n);
};
struct onednn_product {
	void *data[3];
};
static bool onednn_open(struct onednn *d)
{
	(void)d;
	return false;
}
static bool onednn_init(struct onednn_product *p, const struct onednn *d,
			bool bytes, const float *a, const float *b, long m,
			long n, long k)
{
	(void)p, (void)d, (void)bytes, (void)a, (void)b, (void)m, (void)n;
	(void)k;
	return false;
}
static void onednn_run(const struct onednn_product *p)
{
	(void)p;
}
static void onednn_round(const struct onednn_product *p)
{
	(void)p;
}
static void onednn_fini(struct onednn_product *p)
{
	(void)p;
}
#endif

#endif
