/*
 * probes/tiers - how far a device comes, tier by tier: the manual.
 */
#ifndef T0_PROBES_TIERS_H
#define T0_PROBES_TIERS_H

#include "probes/common/common.h"

#define TIERS_CHECKS_MAX  64
#define TIERS_SAMPLES_MAX 16

struct tiers_check {
	int tier;
	const char *name, *reason;
	enum res_answer answer;
};
struct tiers {
	const struct probe_opts *o;
	int tier, reached;
	bool opened, emulated;
	struct err open_error;
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_found *found;
	int n_found;
	struct tiers_check check[TIERS_CHECKS_MAX];
	int n;
	struct {
		const char *name, *metric, *unit;
		double v[TIERS_SAMPLES_MAX];
		size_t n;
		struct probe_reading before, after;
	} speed[4];
	int n_speeds;
	struct probe_reading before; /* the measurement in work */
	struct table table;
	struct arena mem;
};

/* Tell of one check: true and false respectively. */
bool tiers_pass(struct tiers *t, const char *check, const char *fmt, ...)
	T0_PRINTF(3, 4);
bool tiers_fail(struct tiers *t, const char *check, const char *fmt, ...)
	T0_PRINTF(3, 4);
/* `good` with its reason, else the error's message. */
bool tiers_verdict(struct tiers *t, const char *check, bool good,
		   const struct err *e, const char *reason);

/*
 * How far the device comes; exit code as probe_discover(), 1 below o->require.
 */
int probe_tiers(const struct probe_opts *o, struct err *e);

/* tiers_memory.c */
bool tiers_memory(struct tiers *t);

/* tiers_compute.c */
bool tiers_kernel(struct tiers *t);
bool tiers_wmma(struct tiers *t);
bool tiers_speed(struct tiers *t);
/*
 * What a wrong result of D = A * B with D[i][j] = 16 * i + j looks like: which
 * element each lane and register holds, as a pattern, appended to `out`.
 * got[vgpr][lane]; false = it is right.  halves: rows lie as gfx12 has them,
 * row v and v + 8 in register v, else as gfx11, 2v and 2v + 1.
 */
bool tiers_wmma_pattern(const float got[8][32], bool halves,
			struct buf *out);

#endif
