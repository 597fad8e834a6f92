/*
 * autotune/tuner/measure.h - how long products take on a device with a clock.
 *
 * The protocol, each point for a mistake that has been made elsewhere:
 *   - one program at a time measures on a card (kfd_lock_take());
 *   - warm-up until the time of a product stands still, so that the clock does;
 *   - completion is a signal, time is what the device stamped into it, never
 *     the queue's read pointer or the host's clock;
 *   - all configurations are sampled in rounds, in an order shuffled anew for
 *     each: drift lies in everyone's spread, not in the difference;
 *   - the state of the caches is the same before each sample, and named: the
 *     product itself runs once for a warm one; for a cold one other data goes
 *     through all of them, and then A, where only B is to be cold;
 *   - ten samples at least, of launches that together take SAMPLE_S or more;
 *   - sensors are read around each sample; one during which the driver took
 *     the card away is taken again;
 *   - a time that implies more than the peak is an error, not a record.
 *
 * Results are `hardware` from a card.  The soft device has no clock and is
 * refused, but with a struct tune_clock it is the pipeline simulator's, and its
 * results are `simulated`.
 */
#ifndef T0_AUTOTUNE_MEASURE_H
#define T0_AUTOTUNE_MEASURE_H

#include "autotune/tuner/bench_device.h"
#include "results/stats/stats.h"

#define TUNE_SAMPLES_LEAST 10

/* One configuration that is measured. */
struct tune_arm {
	const struct gemm_config *config;
	const struct gemm_code *code;
	/* What came out. */
	double *sample;	   /* [n] seconds, in the order measured */
	size_t n, retaken; /* samples; those taken again */
	struct res_interval time_s;
	double clock_hz, power_w; /* means of the readings; NAN: none */
	struct res_sensors before, after; /* of the last sample */
	bool sensors;
	bool good;	   /* else `why` */
	char why[160];
	/* Private. */
	struct tune_loaded loaded;
	struct gemm_launch launch;
	unsigned repeat, readings;
};

struct tune_protocol {
	size_t samples;		/* 0: TUNE_SAMPLES_LEAST */
	enum tune_caches caches; /* before each sample */
	double warm_least_s, warm_most_s; /* 0: 1 and 20 */
	uint64_t seed;		/* of the order */
	const struct cost_model *costs; /* for the peak */
	const volatile int *stop;
	bool quiet;
};

/* Do times of this rig mean something?  *origin is what they are. */
bool tune_rig_has_clock(const struct tune_rig *r, enum res_origin *origin,
			struct err *e);
/*
 * Measure all arms for the product that tune_rig_set() put there.  An arm that
 * cannot be run, or whose time cannot be, is marked, and the others go on.
 * Free the samples with tune_arm_fini().
 */
bool tune_measure(struct tune_rig *r, struct tune_arm *arm, size_t n,
		  const struct tune_protocol *p, struct err *e);
void tune_arm_fini(struct tune_arm *a);
/* The peak that a time is held against, or NULL: it is possible. */
const char *tune_is_impossible(const struct tune_problem *p, double time_s,
			       const struct cost_model *m, double max_hz);

#endif
