/*
 * cc-run - compile SSA functions and run them on the soft device in checked
 * mode, for tests that compare with the interpreter.
 */
#ifndef T0_TESTS_CC_RUN_H
#define T0_TESTS_CC_RUN_H

#include <stdlib.h>
#include <string.h>

#include "compiler/driver/cc.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"
#include "tests/compiler/ssa-run.h"

/* For one kernel: other work may keep the machine busy. */
#define CC_PATIENCE_NS 300000000000u

struct cc_dev {
	struct kfd_driver *driver;
	struct kfd_dev *dev;
	struct kfd_queue *queue;
	uint64_t findings;
};

/* The chip of the tests: T0_TEST_CHIP, else gfx1100. */
static inline const struct isa_chip *cc_chip(void)
{
	const char *name = getenv("T0_TEST_CHIP");

	return isa_chip_find(name ? name : "gfx1100");
}

static inline void cc_test_options(struct cc_options *o)
{
	cc_options_init(o);
	o->chip = cc_chip()->name;
}

static inline bool cc_dev_open(struct cc_dev *d, bool check, struct err *e)
{
	struct soft_watch_options w = { .check = check };
	struct soft_options o = { .deterministic = true,
				  .deadline_ns = CC_PATIENCE_NS,
				  .chip = { cc_chip() } };

	memset(d, 0, sizeof(*d));
	d->driver = kfd_soft_new(&o, e);
	return d->driver && soft_watch_attach(d->driver, &w, e) &&
	       kfd_open_driver(&d->dev, d->driver, -1, "test", e) &&
	       kfd_queue_new(d->dev, NULL, &d->queue, e);
}

/* For main(): a checking device, or the program ends and has failed. */
static inline void cc_dev_begin(struct cc_dev *d)
{
	struct err e = { 0 };

	if (!cc_dev_open(d, true, &e)) {
		diag("%s", e.msg);
		exit(1);
	}
}

static inline void cc_dev_close(struct cc_dev *d)
{
	kfd_close(d->dev);
}

/* Arguments as they lie in memory; buffers are on the device. */
static inline size_t cc_pack(const struct ssa_func *f, const struct ssa_call *c,
			     struct kfd_mem **mem, uint8_t *out)
{
	uint32_t k = 0;
	size_t end = 0;

	for (uint32_t a = 0; a < f->n_args; a++) {
		uint64_t v = c->arg[a];
		uint32_t n = ssa_type_bytes(f->arg[a].type);

		if (f->arg[a].type.kind == SSA_PTR)
			v = mem[k++]->va;
		memcpy(out + f->arg[a].offset, &v, n);
		end = f->arg[a].offset + n;
	}
	return end;
}

/* Runs and copies the buffers back; findings of the checked mode fail. */
static inline bool cc_launch(struct cc_dev *d, const struct ssa_func *f,
			     const struct cc_object *obj,
			     const struct ssa_call *c, uint32_t gx, uint32_t gy,
			     struct err *e)
{
	struct kfd_mem *mem[SSA_RUN_ARGS] = { 0 };
	const struct kfd_kernel *k;
	struct kfd_code *code = NULL;
	uint8_t args[1024] = { 0 };
	struct buf found = { 0 };
	struct kfd_launch l = { .args = args };
	bool good = true;
	uint64_t n;

	for (uint32_t b = 0; good && b < c->n_ranges; b++) {
		good = kfd_mem_alloc(d->dev, KFD_VRAM, c->range[b].size_bytes,
				     "buffer", &mem[b], e) &&
		       kfd_write(d->dev, mem[b], 0, c->range[b].base,
				 c->range[b].size_bytes, e);
	}
	good = good && kfd_code_load(d->dev, obj->bytes.data, obj->bytes.len,
				     &code, e) &&
	       kfd_code_kernel(code, f->name, &k, e);
	if (good) {
		l.kernel = k;
		l.args_bytes = cc_pack(f, c, mem, args);
		l.args_bytes = k->explicit_bytes;
		for (int x = 0; x < 3; x++)
			l.wg[x] = f->group[x] ? f->group[x] : 1;
		l.grid[0] = gx * l.wg[0];
		l.grid[1] = gy * l.wg[1];
		l.grid[2] = l.wg[2];
		l.deadline_ns = time_mono_ns() + CC_PATIENCE_NS;
		good = kfd_run(d->queue, &l, NULL, e);
	}
	for (uint32_t b = 0; good && b < c->n_ranges; b++)
		good = kfd_read(d->dev, c->range[b].base, mem[b], 0,
				c->range[b].size_bytes, e);
	n = soft_watch_findings(d->driver, &found);
	if (good && n != d->findings)
		good = err_set(e, ERR_DEVICE, "%.900s",
			       found.data ? found.data : "");
	d->findings = n;
	buf_fini(&found);
	kfd_code_unload(code);
	for (uint32_t b = 0; b < c->n_ranges; b++)
		kfd_mem_free(d->dev, mem[b]);
	return good;
}

/* Compile and run; `o` may be NULL. */
static inline bool cc_try(struct cc_dev *d, const struct ssa_func *f,
			  const struct cc_options *o, const struct ssa_call *c,
			  uint32_t gx, uint32_t gy, struct cc_stats *stats,
			  struct err *e)
{
	struct cc_options standard;
	struct cc_object obj;
	bool good;

	cc_test_options(&standard);
	if (!cc_compile(f, o ? o : &standard, &obj, e))
		return false;
	if (stats)
		*stats = obj.stats;
	good = cc_launch(d, f, &obj, c, gx, gy, e);
	cc_object_fini(&obj);
	return good;
}

#endif
