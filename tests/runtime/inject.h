/*
 * inject - the soft device with something wrong with it, and the counts that
 * prove that nothing is left behind.
 *
 * A test of one failure is: rig_open() with options and rules, do the thing,
 * look at the error, rig_close(), which checks for leaks and for the time it
 * all took.  The kernel used throughout is out[i] = add + i.
 */
#ifndef T0_TESTS_INJECT_H
#define T0_TESTS_INJECT_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kfd/abi.h"
#include "kfd/kfd.h"
#include "kfd/soft/inject/inject.h"
#include "kfd/soft/soft.h"
#include "tests/code.h"
#include "tests/tap.h"

#define MS 1000000ull

struct rig_args {
	uint64_t out;
	uint32_t add;
} __attribute__((packed));

struct rig {
	struct kfd_driver *d;
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_mem *out;
	const struct kfd_kernel *store;
	struct err e;
	struct rig_args args;
	struct soft_census left; /* at the last close of /dev/kfd */
	unsigned fds, maps;	 /* before it all */
	uint64_t began_ns;
};

static inline unsigned rig_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Mappings of the device's memory file. */
static inline unsigned rig_count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "t0-soft") != NULL;
	if (f)
		fclose(f);
	return n;
}

/*
 * Addresses that the runtime reserves: counted at the driver seam, since the
 * C library's own reservations come and go.
 */
static struct {
	void *(*mmap)(struct kfd_driver *, void *, size_t, int, int, int,
		      uint64_t, int *);
	int (*munmap)(struct kfd_driver *, void *, size_t);
	int64_t bytes; /* atomic */
} rig_va;

static inline void *rig_mmap(struct kfd_driver *d, void *at, size_t n, int prot,
			     int flags, int fd, uint64_t offset, int *err)
{
	void *p = rig_va.mmap(d, at, n, prot, flags, fd, offset, err);

	if (p != MAP_FAILED && !(flags & MAP_FIXED))
		__atomic_add_fetch(&rig_va.bytes, (int64_t)n,
				   __ATOMIC_RELAXED);
	return p;
}

static inline int rig_munmap(struct kfd_driver *d, void *at, size_t n)
{
	__atomic_sub_fetch(&rig_va.bytes, (int64_t)n, __ATOMIC_RELAXED);
	return rig_va.munmap(d, at, n);
}

static inline void rig_count_va(struct kfd_driver *d)
{
	rig_va.bytes = 0;
	rig_va.mmap = d->mmap;
	rig_va.munmap = d->munmap;
	d->mmap = rig_mmap;
	d->munmap = rig_munmap;
}

/* The driver with its rules, and the counts before it. */
static inline bool rig_begin(struct rig *r, const struct soft_options *o,
			     const struct soft_inject *rule, int n_rules)
{
	*r = (struct rig){ .fds = rig_count_fds(), .maps = rig_count_maps(),
			   .began_ns = time_mono_ns() };
	r->d = kfd_soft_new(o, &r->e);
	for (int i = 0; r->d && i < n_rules; i++)
		soft_inject(r->d, &rule[i]);
	if (r->d) {
		soft_census_at_close(r->d, &r->left);
		rig_count_va(r->d);
	}
	return r->d;
}

static inline bool rig_kernel(struct rig *r, const char *name,
			      const uint32_t *code, size_t bytes,
			      const struct kfd_kernel **k)
{
	const struct kfd_raw_desc d = {
		.name = name,
		.rsrc1 = 0x60af0000, /* 8 VGPRs, WGP mode */
		.rsrc2 = 0x84,	     /* 2 user SGPRs, group id X */
		.properties = 0x408, /* wave32, kernargs */
		.kernarg_bytes = sizeof(struct rig_args),
	};

	return kfd_code_raw(r->dev, code, bytes, &d, k, &r->e);
}

/* Device, output in GTT (which small BARs have, too), kernel and queue. */
static inline bool rig_device(struct rig *r)
{
	const struct code store = code_of("tests/runtime/kernels.s", "store");

	return kfd_open_driver(&r->dev, r->d, -1, "test", &r->e) &&
	       kfd_mem_alloc(r->dev, KFD_GTT, 65536, "out", &r->out, &r->e) &&
	       rig_kernel(r, "store", store.dw, store.size_bytes,
			  &r->store) &&
	       kfd_queue_new(r->dev, NULL, &r->q, &r->e);
}

static inline bool rig_open(struct rig *r, const struct soft_options *o,
			    const struct soft_inject *rule, int n_rules)
{
	return rig_begin(r, o, rule, n_rules) && rig_device(r);
}

static inline struct kfd_launch rig_launch(struct rig *r, uint32_t n,
					   uint32_t add, uint64_t deadline_ms)
{
	r->args = (struct rig_args){ r->out->va, add };
	return (struct kfd_launch){
		.kernel = r->store,
		.grid = { n },
		.wg = { 32 },
		.args = &r->args,
		.args_bytes = sizeof(r->args),
		.deadline_ns = time_mono_ns() + deadline_ms * MS,
	};
}

static inline unsigned rig_wrong(const struct kfd_mem *m, uint32_t n,
				 uint32_t add)
{
	const volatile uint32_t *p = m->cpu;
	unsigned wrong = 0;

	for (uint32_t i = 0; i < n; i++)
		wrong += p[i] != add + i;
	return wrong;
}

/* One dispatch with its result checked. */
static inline bool rig_run(struct rig *r, uint32_t add, uint64_t deadline_ms)
{
	struct kfd_launch l = rig_launch(r, 64, add, deadline_ms);

	memset(r->out->cpu, 0xee, 256);
	return kfd_run(r->q, &l, NULL, &r->e) && !rig_wrong(r->out, 64, add);
}

/*
 * Close, and say what is left in one word: NULL = nothing.  The event page
 * cannot be freed before the process ends; `more` further objects may be left
 * where the failure itself was of freeing them.
 */
static inline const char *rig_end(struct rig *r, unsigned more)
{
	kfd_close(r->dev);
	if (rig_count_fds() != r->fds)
		return "file descriptors";
	if (rig_count_maps() != r->maps)
		return "mappings";
	if (rig_va.bytes)
		return "addresses";
	if (r->left.queues && !more)
		return "queues";
	if (r->left.objects > 1 + more)
		return "buffer objects";
	if (r->left.events && !more)
		return "events";
	return NULL;
}

/* The checks that every row of the failure table gets. */
static inline void rig_close(struct rig *r, uint64_t limit_ms,
			     const char *name)
{
	const char *left = rig_end(r, 0);

	is_str(left ? left : "nothing", "nothing", "%s: what is left behind",
	       name);
	const uint64_t took = time_mono_ns() - r->began_ns;
	if (!ok(took < limit_ms * MS, "%s: it does not hang", name))
		diag("%.3f s, limit %.3f s", (double)took * 1e-9,
		     (double)limit_ms * 1e-3);
}

/* An error has its code, the tool's exit code, and these words. */
static inline void rig_error(const struct err *e, enum err_code code, int exit,
			     const char *name, const char *word1,
			     const char *word2)
{
	is_u64(e->code, code, "%s: the error's code", name);
	is_u64((uint64_t)err_exit_code(e), (uint64_t)exit,
	       "%s: the exit code", name);
	if (word1)
		has_str(e->msg, word1, "%s: the message says what", name);
	if (word2)
		has_str(e->msg, word2, "%s: and what to do", name);
	diag("%s: %s", name, e->msg);
}

#endif
