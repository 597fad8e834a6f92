/*
 * kfd/soft/device/launch.h - a dispatch in work; private to launch.c and timed.c.
 *
 * Workgroups come from soft_dispatch_take() and go back by
 * soft_dispatch_put(), both with dispatch.lock held; whoever has one is alone
 * with it.
 */
#ifndef T0_KFD_SOFT_LAUNCH_H
#define T0_KFD_SOFT_LAUNCH_H

#include "kfd/soft/device/dev.h"

#define SOFT_BACK_MAX 64
/* Workgroups [next, end). */
struct soft_indices {
	uint64_t next, end;
};

struct soft_dispatch {
	struct soft_launch l;
	struct soft_job job;
	uint64_t deadline_ns;
	uint64_t patience_ns; /* how far each workgroup's end moves it */
	uint64_t end_ts;      /* for the completion signal; 0: now */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t next, ended;
	uint32_t resident;
	struct soft_run *waiting, **waiting_end; /* set aside, oldest first */
	struct soft_run *spare; /* memory to use again */
	uint8_t *started; /* a bit per workgroup of the client's, or NULL */
	bool failed;
	/*
	 * Workgroups that end soon are taken some at a time, to be run one
	 * after the other; if one of them does not end soon after all, the
	 * others are given back.
	 */
	uint32_t batch; /* so many, as the last ones took that long */
	struct soft_indices back[SOFT_BACK_MAX];
	uint32_t n_back;
};

/* What working on a workgroup led to. */
enum soft_turn { SOFT_TURN_ENDED, SOFT_TURN_MORE, SOFT_TURN_FAILED };

/* ----------------------------------------------------------- launch.c ---- */

/* Lock held: memory for workgroup `index`, whose start is still to be done. */
struct soft_run *soft_dispatch_take(struct soft_dispatch *dp, uint64_t index);
/* Lock held: SOFT_TURN_MORE sets it aside. */
void soft_dispatch_put(struct soft_dispatch *dp, struct soft_run *r,
		       enum soft_turn t);
/* Set up its registers, and what watches it. */
void soft_dispatch_start(struct soft_dispatch *dp, struct soft_run *r);
/* Run one wave for up to n instructions: false when the dispatch is over. */
bool soft_dispatch_slice(struct soft_dispatch *dp, struct soft_run *r,
			 struct soft_wave *w, struct soft_worker *k,
			 uint64_t n);
/* Count the waves; true: the barrier opened, as all that live had arrived. */
bool soft_dispatch_barrier(struct soft_dispatch *dp, struct soft_run *r);
/* Has the dispatch passed its deadline?  Then *r is what hangs. */
bool soft_dispatch_hangs(struct soft_dispatch *dp, const struct soft_run *r);
/* Sleep while the queue is paused. */
void soft_dispatch_pause(struct soft_dispatch *dp);

/* ------------------------------------------------------------ timed.c ---- */

/* Let the device's client run the dispatch, or a part of it. */
void soft_timed_run(struct soft_dispatch *dp);
/* Sleep until the clock has come to dp->end_ts. */
void soft_timed_wait(struct soft_dispatch *dp);

#endif
