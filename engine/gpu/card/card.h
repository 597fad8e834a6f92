/*
 * engine/gpu/card - a device as the backends use it: the manual.
 *
 * A card has its kernels, each once: those of the library (compiler/kernels),
 * compiled when first asked for, and products of tiles (compiler/gemm), whose
 * configuration the tuner chooses where there is a database.
 *
 *	gpu_card_open(&card, &how, &e)
 *	k = gpu_kernel(&card, "add", &shape, &e)
 *	arg_va(&a, out) ... arg_u32(&a, n)
 *	l = kernel_launch(k, &a, groups_of(k, n), 1)
 *	kfd_put(queue, &l, &ticket, &e)
 *
 * What it hands out lives as long as the card.  One thread at a time.  The same
 * launches, recorded instead, become a forecast of what they take.
 */
#ifndef T0_ENGINE_GPU_CARD_H
#define T0_ENGINE_GPU_CARD_H

#include <string.h>

#include "autotune/tuner/tune.h"
#include "compiler/gemm/gemm.h"
#include "compiler/kernels/kernels.h"
#include "kfd/kfd.h"

/* Of a machine, that work together: sum_parts adds what each of them has. */
#define GPU_CARDS_MAX (KERNEL_MAX_PARTS - 1)

/* A kernel on the device, and the object that it came from. */
struct gpu_code {
	const struct kfd_kernel *kernel;
	const void *object;
	size_t object_bytes;
	bool uneven; /* the later a group, the more it does: causal attention */
	char label[TUNE_TEXT]; /* for people: its name, or configuration */
	char chosen[240];      /* and where that comes from, or "" */
};

/* A kernel of the library, ready to launch. */
struct gpu_kernel {
	const struct kernel_entry *entry;
	struct kernel_shape shape; /* defaults filled in */
	struct cache_object object;
	struct gpu_code code;
};

/* A product of tiles, ready to launch: c[m][n] of k. */
struct gpu_tiles {
	struct gemm_op op;
	uint32_t m, n, k;
	bool any; /* of any size, rather */
	struct gemm_config config;
	struct gpu_code code[GEMM_KERNELS];
	struct gemm_code objects;
};

/* What a product of a size is computed with. */
struct gpu_choice {
	struct gemm_op op;
	uint32_t m, n, k;
	const struct gpu_tiles *tiles;
};

struct gpu_card {
	struct kfd_dev *dev;
	struct object_cache objects;
	struct cost_model costs;
	struct tune_opts tune;
	struct tune_selector *selector; /* NULL: there is no database */
	struct gpu_kernel **kernel;	/* [n_kernels]: each once */
	size_t n_kernels, cap_kernels;
	struct gpu_tiles **tiles; /* [n_tiles]: each once */
	size_t n_tiles, cap_tiles;
	struct gpu_choice *choice; /* [n_choices]: made once */
	size_t n_choices, cap_choices;
};

struct gpu_card_how {
	const char *device;	   /* as kfd_open() has it */
	struct kfd_driver *driver; /* or NULL: instead of device; taken over */
	uint32_t cards; /* that will be opened in all; 0: one */
	/* Or NULL: the next one of the machine that this card, opened before,
	 * belongs to; it is closed first. */
	struct gpu_card *first;
	/* Of the cache of objects (compiler/driver/cc.h); or NULL. */
	void (*warn)(void *ctx, const char *text);
	void *ctx;
};

/* ------------------------------------------------------------ card.c ---- */

/* End with gpu_card_close(), also after a failure. */
bool gpu_card_open(struct gpu_card *g, const struct gpu_card_how *how,
		   struct err *e);
void gpu_card_close(struct gpu_card *g);
/*
 * Where memory lies that kernels of all of n cards of a machine read: on the
 * device, where there are links to it from every other; else in the host's.
 */
enum kfd_domain gpu_shared_domain(struct gpu_card *const *card, uint32_t n);
/*
 * Until packets of all of 1 to GPU_CARDS_MAX devices are done; an error names
 * the device whose it is, rather than one that waits for it.
 */
bool gpu_wait_all(const struct kfd_after *on, uint32_t n, uint64_t deadline_ns,
		  struct err *e);
/* Made when first asked for; they live as long as g.  NULL and *e if not. */
const struct gpu_kernel *gpu_kernel(struct gpu_card *g, const char *name,
				    const struct kernel_shape *shape,
				    struct err *e);
/*
 * For m rows what tune_select() says; where that knows nothing, or for `any`
 * number of rows, about m, gemm_default_for().
 */
const struct gpu_tiles *gpu_tiles(struct gpu_card *g, const struct gemm_op *op,
				  uint32_t m, uint32_t n, uint32_t k, bool any,
				  struct err *e);

/* --------------------------------------------------------- launches ---- */

/* Arguments of a launch, each at a multiple of its size. */
struct gpu_args {
	uint8_t bytes[256];
	size_t n;
};

static inline void arg_bytes(struct gpu_args *a, const void *v, size_t size)
{
	a->n = (a->n + size - 1) / size * size;
	memcpy(a->bytes + a->n, v, size);
	a->n += size;
}

static inline void arg_va(struct gpu_args *a, uint64_t va)
{
	arg_bytes(a, &va, sizeof(va));
}

static inline void arg_mem(struct gpu_args *a, const struct kfd_mem *m)
{
	arg_va(a, m->va);
}

static inline void arg_u32(struct gpu_args *a, uint32_t v)
{
	arg_bytes(a, &v, sizeof(v));
}

static inline void arg_f32(struct gpu_args *a, double x)
{
	float v = (float)x;

	arg_bytes(a, &v, sizeof(v));
}

static inline struct kfd_launch kernel_launch(const struct gpu_kernel *k,
					      const struct gpu_args *a,
					      uint64_t gx, uint64_t gy)
{
	uint32_t wg = k->shape.group;

	return (struct kfd_launch){
		.kernel = k->code.kernel,
		.grid = { (uint32_t)gx * wg, (uint32_t)gy, 1 },
		.wg = { wg, 1, 1 },
		.args = a->bytes,
		.args_bytes = a->n,
	};
}

static inline uint64_t groups_of(const struct gpu_kernel *k, uint64_t n)
{
	return kernel_groups(k->entry, &k->shape, n);
}

/* ------------------------------------------------------------ sums.c ---- */

/* n elements of an array from element `from` on. */
struct gpu_span {
	uint64_t from, n;
};
/* That of `all` elements which card `number` adds up; the last may be empty. */
struct gpu_span gpu_span_of(uint64_t all, uint32_t number, uint32_t cards);
/*
 * Arguments of sum_parts: a span of `out` = the sum of those of part[n], and the
 * span of `clear`, if it is not 0, becomes 0.  All are addresses of whole arrays
 * of f32.
 */
void gpu_sum_args(struct gpu_args *a, struct gpu_span span, uint64_t out,
		  const uint64_t *part, uint32_t n, uint64_t clear);

/* -------------------------------------------------------- forecast.c ---- */

#define GPU_KNOWN_MAX 3

/* Launches as they would be put on a queue, each kind and size once. */
struct gpu_record {
	struct gpu_launch *v; /* [n] */
	size_t n, cap;
	uint32_t more; /* what comes next counts so often; 0: once */
	/* What kernels may branch on, and what all of it works on. */
	const struct kfd_mem *words; /* with a CPU view */
	const struct kfd_mem *table; /* the same; or NULL */
	/* And what kernels of the pass would have written. */
	struct gpu_known {
		uint64_t va;
		const void *bytes; /* the caller's */
		uint64_t size_bytes;
	} known[GPU_KNOWN_MAX]; /* those behind the last are 0 */
	uint64_t footprint_bytes;
};
void gpu_record_launch(struct gpu_record *r, const struct gpu_code *c,
		       const struct kfd_launch *l);
void gpu_record_fini(struct gpu_record *r);

/* Launches of the same kernel with the same sizes. */
struct gpu_share {
	char kernel[TUNE_TEXT];
	/* Of a product with weights: their rows, and how long one is; or 0. */
	uint32_t outputs, inputs;
	uint32_t launches;
	double each_s; /* on the GPU */
	/* Of each: operations, and bytes between L2 and what is beyond it. */
	double flop, far_bytes;
	char limit[16];	  /* the busiest pipe */
	char chosen[240]; /* why this kernel, where there was a choice */
};
struct gpu_forecast {
	struct gpu_share *share; /* [n]; the caller's, free() */
	size_t n;
	uint32_t packets;
	/* Their sum is all.  links_s: of several devices, to meet and fetch. */
	double kernels_s, launches_s, links_s;
	uint64_t meetings;
	uint64_t weight_bytes;	      /* that a pass reads at least; or 0 */
};
/*
 * Every launch through the pipeline simulator, from its code, its arguments and
 * the costs.  ERR_UNSUPPORTED names a kernel that it cannot follow; then there
 * are no shares.
 */
bool gpu_record_simulate(const struct gpu_record *r, const struct cost_model *m,
			 struct gpu_forecast *out, struct err *e);

#endif
