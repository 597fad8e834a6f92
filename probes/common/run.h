/*
 * probes/common/run.h - one run in the database: what tiers and dispatch share.
 */
#ifndef T0_PROBES_RUN_H
#define T0_PROBES_RUN_H

#include "kfd/kfd.h"
#include "probes/discover/probes.h"
#include "results/db/results.h"

struct probe_reading {
	bool good; /* else nothing could be read */
	struct res_sensors s;
	bool counts_evicted;
	uint64_t evicted_ms;
};
struct probe_run {
	struct res_db *db;
	int64_t id;
	enum res_origin origin;
	struct arena mem;
	/* Around what is stored next: read them when it is measured. */
	struct probe_reading before, after;
};
/* Zero-initialise first.  device: NULL = it could not be opened. */
bool probe_run_begin(struct probe_run *r, const struct probe_opts *o,
		     const char *tool, const struct kfd_info *device,
		     const char *inputs, struct err *e);
bool probe_run_verdict(struct probe_run *r, const char *area, const char *name,
		       enum res_answer answer, const char *reason,
		       struct err *e);
/* The device's sensors now, for the database. */
struct probe_reading probe_reading(struct kfd_dev *dev);
/*
 * Were our queues taken off the card in between?  Says so on stderr: what was
 * measured is not the card's fault.
 */
bool probe_was_evicted(const struct probe_reading *before,
		       const struct probe_reading *after);
/* One metric with its raw samples; the value is their median. */
bool probe_run_samples(struct probe_run *r, const char *area, const char *name,
		       const char *params, const char *metric,
		       const char *unit, enum res_better better,
		       const double *v, size_t n, struct err *e);
/* Ends and frees it; when not good, *e is the reason. */
bool probe_run_end(struct probe_run *r, bool good, int code, struct err *e);

/* What the database keeps of a device; strings live in `mem`. */
void probe_device_row(const struct kfd_info *in, struct arena *mem,
		      struct res_device *d);
/* The q-quantile (0..1) of n > 0 values. */
double probe_quantile(const double *v, size_t n, double q);
/* The GPU's lock, waiting up to 2 minutes and saying so on stderr. */
bool probe_lock(const struct kfd_info *info, struct kfd_lock *l,
		struct err *e);

#endif
