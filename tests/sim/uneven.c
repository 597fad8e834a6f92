/*
 * Attention of a prompt, whose workgroups differ in length: every WGP gets its
 * share of short and long ones, and a forecast counts them all.
 */
#include <string.h>

#include "compiler/kernels/kernels.h"
#include "compiler/sim/sim.h"
#include "tests/tap.h"

enum { HEADS = 16, KV_HEADS = 8, HEAD = 128, TILE = 64, WGPS = 48 };
#define DATA_VA (UINT64_C(9) << 40)

/* As the builder of `attention` lists them. */
struct args {
	uint64_t out, q, kc, vc, first, length, slot;
	int32_t heads, kv_heads, q_ld, row, head;
	int64_t sequence;
	int32_t causal;
	float scale;
	uint8_t hidden[64];
};

struct prompt {
	struct cache_object object;
	struct co co;
	struct args args;
	int32_t data[4]; /* first[2], length, slot */
	struct sim_memory memory;
	struct sim_launch l;
};

static bool attention_object(struct cache_object *out, struct err *e)
{
	const struct kernel_shape shape = { .cache = DSL_BF16, .head = HEAD };
	struct object_cache j;

	object_cache_init(&j, NULL, NULL);
	bool good = kernel_object(&j, kernel_find("attention"), &shape, NULL,
				  out, e);
	object_cache_fini(&j);
	return good;
}

static void groups_tell(struct prompt *p)
{
	const struct co_kernel *k = p->l.kernel;

	for (uint32_t i = 0; i < k->n_args; i++) {
		int dim = (int)k->args[i].kind - CO_ARG_HIDDEN_BLOCK_COUNT_X;
		if (dim >= 0 && dim < 3)
			memcpy((char *)&p->args + k->args[i].offset,
			       &p->l.groups[dim], 4);
	}
}

static bool prompt_new(struct prompt *p, int32_t n, struct err *e)
{
	memset(p, 0, sizeof(*p));
	p->data[1] = p->data[2] = n;
	p->args = (struct args){
		.out = UINT64_C(1) << 40, .q = UINT64_C(2) << 40,
		.kc = UINT64_C(3) << 40, .vc = UINT64_C(4) << 40,
		.first = DATA_VA, .length = DATA_VA + 8, .slot = DATA_VA + 12,
		.heads = HEADS, .kv_heads = KV_HEADS, .q_ld = HEADS * HEAD,
		.row = HEAD, .head = n * HEAD,
		.sequence = (int64_t)KV_HEADS * n * HEAD, .causal = 1,
		.scale = .088f,
	};
	if (!attention_object(&p->object, e) ||
	    !co_parse(&p->co, p->object.bytes, p->object.len, e))
		return false;
	p->memory = (struct sim_memory){ DATA_VA, p->data, sizeof(p->data) };
	p->l = (struct sim_launch){
		.kernel = &p->co.kernels[0],
		.kernarg = &p->args, .kernarg_bytes = sizeof(p->args),
		.groups = { HEADS, (uint32_t)n / TILE, 1 },
		.group_size = { 2 * TILE, 1, 1 },
		.memory = &p->memory, .n_memory = 1,
		.guess = true, .uneven = true,
	};
	groups_tell(p);
	return true;
}

static void prompt_fini(struct prompt *p)
{
	co_fini(&p->co);
	cache_object_fini(&p->object);
}

static double time_of(const struct cost_model *m, const struct prompt *p,
		      struct err *e)
{
	struct sim_forecast f;

	if (!sim_object_forecast(m, &p->l, UINT64_C(1) << 30, &f, e))
		return 0;
	double s = f.time_s;
	sim_forecast_fini(&f);
	return s;
}

/* Operations of both products, of keys up to each query alone. */
static double peak_of(int32_t n)
{
	return 4.0 * n * n / 2 * HEAD * HEADS / 123e12;
}

static void test_shares(const struct cost_model *m, int32_t n)
{
	double least = 1, most = 0, sum = 0;
	struct err e = { 0 };
	struct prompt p;
	int seen = 0;

	if (!ok(prompt_new(&p, n, &e), "a prompt of %d %s", n, e.msg))
		return;
	for (p.l.first = 0; p.l.first < WGPS; p.l.first += 5, seen++) {
		double s = time_of(m, &p, &e);
		least = s < least ? s : least;
		most = s > most ? s : most;
		sum += s;
	}
	diag("%d: %.1f to %.1f us, %.1f at the peak", n, least * 1e6,
	     most * 1e6, peak_of(n) * 1e6);
	ok(least > 0 && most < 1.25 * sum / seen,
	   "no WGP has a quarter more than most");
	ok(sum / seen > peak_of(n), "none is faster than the matrix units");
	prompt_fini(&p);
}

/* Of many workgroups some are looked at, of all sizes. */
static void test_many(const struct cost_model *m)
{
	struct err e = { 0 };
	struct prompt p;
	double s[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		ok(prompt_new(&p, 3072 << i, &e), "%d: %s", 3072 << i, e.msg);
		s[i] = time_of(m, &p, &e);
		prompt_fini(&p);
	}
	ok(s[1] > 3.4 * s[0] && s[1] < 4.6 * s[0],
	   "twice the prompt takes four times as long: %.2f", s[1] / s[0]);
}

int main(void)
{
	struct cost_model m;

	cost_init(&m, "gfx1100");
	test_shares(&m, 512);
	test_shares(&m, 1024);
	test_many(&m);
	cost_fini(&m);
	return plan_done();
}
