/*
 * The wave source that follows a code object (compiler/sim/machine.h), in step
 * with the soft device, which executes the same kernels: every instruction of
 * every wave must be the same, and touch the same bytes.
 */
#include "compiler/sim/sim.h"
#include "isa/asm/asm.h"
#include "isa/text/text.h"
#include "kfd/abi.h"
#include "kfd/soft/watch/watch.h"
#include "tests/kernels/kernel-run.h"

static uint64_t seed = 2460;

/* What is compared, and how it went. */
struct twin {
	struct co co;
	const char *kernel;
	uint64_t insts, accesses, wrong, unknown;
	bool followed; /* until the end */
	struct err why;
	/* Pages of memory: where they are, and where a client sees them. */
	struct {
		uint64_t there, seen;
	} page[64];
	size_t n_pages;
};

static struct twin *twin;

/* ---- one instruction ---- */

/* Each page is seen at one address, and at each address one page. */
static bool same_place(uint64_t there, uint64_t seen)
{
	if (there % KFD_PAGE_BYTES != seen % KFD_PAGE_BYTES)
		return false;
	there /= KFD_PAGE_BYTES;
	seen /= KFD_PAGE_BYTES;
	for (size_t i = 0; i < twin->n_pages; i++)
		if (twin->page[i].there == there || twin->page[i].seen == seen)
			return twin->page[i].there == there &&
			       twin->page[i].seen == seen;
	if (twin->n_pages == ARRAY_SIZE(twin->page))
		return false;
	twin->page[twin->n_pages].there = there;
	twin->page[twin->n_pages++].seen = seen;
	return true;
}

static bool same_access(const struct soft_timed_inst *a,
			const struct sim_step *b)
{
	bool memory = (a->kind & TRACE_SPACE) == TRACE_MEMORY;

	if (a->n_accesses != b->n_accesses || a->kind != b->kind ||
	    a->access_bytes != b->access_bytes || a->exec != b->exec)
		return false;
	for (uint32_t i = 0; i < a->n_accesses; i++)
		if (a->access[i].lane != b->access[i].lane ||
		    (memory ? !same_place(b->access[i].at, a->access[i].at) :
			      b->access[i].at != a->access[i].at))
			return false;
	return true;
}

static void report(const struct soft_timed_inst *in, uint64_t off,
		   uint64_t pc, const struct sim_step *st)
{
	struct isa_target t = { ISA_GFX11, 32, false };
	char text[ISA_TEXT_MAX];

	if (twin->wrong++)
		return;
	isa_print(&t, in->in, text, sizeof(text));
	diag("%s+0x%llx: %s: pc 0x%llx, %u accesses of %u bytes kind %u, "
	     "device %u of %u kind %u, first 0x%llx, device 0x%llx",
	     twin->kernel, (unsigned long long)off, text,
	     (unsigned long long)pc, st->n_accesses, st->access_bytes,
	     st->kind, in->n_accesses, in->access_bytes, in->kind,
	     (unsigned long long)(st->n_accesses ? st->access[0].at : 0),
	     (unsigned long long)(in->n_accesses ? in->access[0].at : 0));
}

static bool one_step(struct soft_timed *t, struct soft_run *r,
		     struct sim_source *s, const struct soft_timed_dispatch *d,
		     int group, int w, enum soft_timed_state *state)
{
	static struct soft_timed_inst in;
	struct sim_step st = { 0 };
	uint64_t pc, off;

	if (!soft_timed_look(t, r, w, &in))
		return false;
	off = in.pc - d->entry_va;
	if (!s->pc(s, group * s->waves_per_group + w, &pc) ||
	    pc - s->code_va != off) {
		report(&in, off, pc - s->code_va, &st);
		return false;
	}
	if (!s->step(s, group * s->waves_per_group + w, 0, &st, &twin->why)) {
		report(&in, off, pc - s->code_va, &st);
		return false;
	}
	twin->insts++;
	twin->accesses += in.n_accesses > 0;
	/* Scalar loads read arguments, which lie elsewhere. */
	if (in.n_accesses && in.access[0].lane >= 0 && !same_access(&in, &st))
		report(&in, off, pc - s->code_va, &st);
	*state = soft_timed_step(t, r, w, twin->insts).state;
	return *state != SOFT_TIMED_STOP;
}

/* Waves take turns, each until its end or a barrier. */
static bool one_group(struct soft_timed *t, struct sim_source *s,
		      const struct soft_timed_dispatch *d, int group)
{
	struct soft_run *r = soft_timed_start(t, (uint64_t)group);
	int ended = 0, n = r ? soft_timed_waves(r) : 0;
	bool over[64] = { false };

	s->begin(s, group, 0, &twin->why);
	while (ended < n)
		for (int w = 0; w < n; w++) {
			enum soft_timed_state state = SOFT_TIMED_READY;

			while (!over[w] && state == SOFT_TIMED_READY)
				if (!one_step(t, r, s, d, group, w, &state))
					return over[w];
			if (!over[w] && state == SOFT_TIMED_END) {
				over[w] = true;
				ended++;
			}
		}
	return n > 0;
}

static void on_dispatch(void *ctx, struct soft_timed *t,
			const struct soft_timed_dispatch *d)
{
	struct sim_launch l = { .kernel = &twin->co.kernels[0] };
	struct sim_source s;

	(void)ctx;
	memcpy(l.groups, d->n_groups, sizeof(l.groups));
	memcpy(l.group_size, d->group_size, sizeof(l.group_size));
	l.lds_bytes = d->lds_bytes - l.kernel->desc.group_segment_bytes;
	l.kernarg = (const void *)(uintptr_t)d->kernarg_va;
	l.kernarg_bytes = l.kernel->desc.kernarg_bytes;
	if (!sim_object_open(&s, &l, (int)d->total, 1, &twin->why))
		return;
	twin->followed = true;
	for (int g = 0; g < (int)d->total && twin->followed; g++)
		twin->followed = one_group(t, &s, d, g);
	twin->unknown = s.unknown;
	sim_object_close(&s);
}

/* ---- kernels ---- */

static struct cc_dev dev;

static bool open_device(void)
{
	const struct soft_timing client = { NULL, on_dispatch };
	struct soft_options o = { .deterministic = true };
	struct err e = { 0 };

	dev.driver = kfd_soft_new(&o, &e);
	return dev.driver && soft_set_timing(dev.driver, &client, &e) &&
	       kfd_open_driver(&dev.dev, dev.driver, -1, "test", &e) &&
	       kfd_queue_new(dev.dev, NULL, &dev.queue, &e);
}

static void judge_twin(const char *name)
{
	ok(twin->followed, "%s: followed to its end: %s", name,
	   twin->why.msg);
	ok(twin->insts > 0 && !twin->wrong, "%llu instructions, %llu wrong",
	   (unsigned long long)twin->insts, (unsigned long long)twin->wrong);
	ok(twin->accesses > 0, "%llu with accesses",
	   (unsigned long long)twin->accesses);
	is_u64(twin->unknown, 0, "all addresses are known");
}

/* A kernel of the library that takes `arrays`, then a float, then numbers. */
static const struct {
	const char *name;
	enum dsl_type type;
	int arrays;
	bool number;
	uint32_t arg[3];
	int n_args;
	uint64_t gx, gy;
} kernels[] = {
	{ "add", DSL_BF16, 3, false, { 2500 }, 1, 3, 1 },
	{ "gelu", DSL_F32, 2, false, { 1021 }, 1, 1, 1 },
	{ "softmax", DSL_F16, 2, false, { 700 }, 1, 3, 1 },
	{ "rms_norm", DSL_F32, 3, true, { 1023 }, 1, 3, 1 },
	{ "transpose", DSL_BF16, 2, false, { 65, 40 }, 2, 2, 3 },
};

static void test_library(size_t k)
{
	struct twin t = { .kernel = kernels[k].name };
	struct arr a[4] = { 0 };
	struct ssa_call c = { 0 };
	struct err e = { 0 };
	struct lib l;

	if (!ok(lib_open(&l, kernels[k].name, kernels[k].type, 0), "%s",
		kernels[k].name))
		return;
	ok(co_parse(&t.co, l.obj.bytes.data, l.obj.bytes.len, &e), "parses");
	twin = &t;
	for (int i = 0; i < kernels[k].arrays; i++) {
		a[i] = arr_random(kind_of(kernels[k].type), 8192, 2, &seed);
		call_arr(&c, &a[i]);
	}
	if (kernels[k].number)
		call_f32(&c, 1e-6f);
	for (int i = 0; i < kernels[k].n_args; i++)
		call_u32(&c, kernels[k].arg[i]);
	ok(lib_run(&dev, &l, &c, kernels[k].gx, kernels[k].gy), "runs");
	judge_twin(kernels[k].name);
	for (int i = 0; i < kernels[k].arrays; i++)
		free(a[i].bits);
	co_fini(&t.co);
	lib_close(&l);
}

int main(void)
{
	diag("seed %llu", (unsigned long long)seed);
	if (!ok(open_device(), "a soft device"))
		return plan_done();
	for (size_t k = 0; k < ARRAY_SIZE(kernels); k++)
		test_library(k);
	cc_dev_close(&dev);
	return plan_done();
}
