/*
 * late - the reference executor that delivers as late as it may.
 *
 * A card finishes memory operations when it likes, within what the counters
 * promise: s_waitcnt lets a load's registers be read, a barrier says where the
 * other waves are.  The software device finishes each at once, and so runs code
 * that lacks a wait as if it had one.  This executor does the opposite: an
 * operation touches memory and registers only when a wait forces it, or when
 * its wave's later operations need it before; what a wave has stored when it
 * ends lands when the dispatch ends; and waves go as far as barriers let them
 * in the order that the run asks for.  Code whose waits and barriers suffice
 * computes in every order what it should; code that lacks one that matters
 * computes something else in some order.
 *
 * What instructions compute comes from the other references of this folder.
 * Caches, and hazards that the hardware does not interlock, are not modelled.
 */
#ifndef T0_TESTS_REF_LATE_H
#define T0_TESTS_REF_LATE_H

#include "base/base.h"
#include "isa/object/object.h"

/* Bytes that the kernel may touch, at an address of the run's choice. */
struct late_memory {
	uint64_t va;
	uint8_t *host;
	size_t size_bytes;
};

enum late_order {
	LATE_UP,     /* the wave of the lowest number first, to its barrier */
	LATE_DOWN,   /* the highest */
	LATE_FLIP,   /* lowest and highest, by turns, from barrier to barrier */
	LATE_MIXED,  /* random turns of random length */
	LATE_ORDER_COUNT
};

struct late_run {
	const struct co_kernel *kernel;
	struct late_memory *memory; /* code, arguments and buffers among it */
	int n_memory;
	uint64_t code_va; /* of the image's first byte, and its size */
	uint64_t code_bytes;
	uint64_t kernarg_va, packet_va; /* packet 0: there is none */
	uint32_t grid[3], block[3];	/* work-items */
	uint32_t lds_bytes, scratch_bytes;
	enum late_order order;
	uint64_t max_steps; /* instructions; 0: no limit */
	uint64_t steps;	    /* executed */
};

/*
 * False with ERR_DEVICE for an access outside of the memory, a wave that
 * executes no instruction, waves that wait for ever; ERR_UNSUPPORTED for an
 * instruction that has no reference.
 */
bool late_run(struct late_run *r, struct err *e);

#endif
