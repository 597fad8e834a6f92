/*
 * kfd/cmd/job.h - one kernel of a code object with arguments from a command
 * line: what t0-run does, by steps.
 *
 * The caller fills what the command line gave, and parses operands; then, each
 * resting on those before:
 *
 *	launch_load(&j->l, &e)	the file and the kernel (isa/launch/launch.h)
 *	launch_check(&j->l, &e)	arguments and shape against its metadata
 *	kfd_open(&j->dev, ...)	which the caller does
 *	kfd_job_run(j, &e)	buffers, arguments, launches
 *	kfd_job_show(j, &e)	what was written
 *	kfd_job_fini(j)
 *
 * Everything that can be checked without a device is checked before one is
 * opened.
 */
#ifndef T0_KFD_JOB_H
#define T0_KFD_JOB_H

#include "base/cmd.h"
#include "isa/launch/launch.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"

struct kfd_job {
	/* The command line. */
	struct cmd cmd;
	bool list, dry_run;
	const char *device;
	uint64_t repeat, print;
	uint64_t deadline_ns; /* of each dispatch */
	struct cli_list dump;
	struct soft_watch_options watch;
	const char *trace_group_text, *stop_wave_text;

	struct launch_plan l;

	/* The run. */
	struct kfd_dev *dev;
	struct kfd_driver *watched;    /* the device's, if it watches */
	struct kfd_mem *mem[LAUNCH_ARGS_MAX]; /* of buffers */
	uint64_t *device_ns;	       /* [n_done], of repeat */
	uint64_t n_done;
	double simulated_s; /* on the whole chip, without a launch; 0: unknown */
};

/* -------------------------------------------------------- cmd_run.c ---- */

bool kfd_job_run(struct kfd_job *j, struct err *e);
void kfd_job_fini(struct kfd_job *j);

/* ----------------------------------------------------- cmd_run_time.c ---- */

/* Middle of the sorted times of the dispatches (lower one of two). */
uint64_t kfd_job_median_ns(const struct kfd_job *j);
/*
 * After kfd_job_run() on the device in software: what the pipeline simulator
 * says of the same launch, as far as it can follow it and it takes no time that
 * one would notice.
 */
void kfd_job_simulate(struct kfd_job *j);

/* ------------------------------------------------------- cmd_run_show.c ---- */

/* The kernels of the file and their arguments, or of the kernel alone. */
bool kfd_job_list(const struct kfd_job *j, struct err *e);
/* Results to j->cmd.out; buffers to their files. */
bool kfd_job_show(const struct kfd_job *j, struct err *e);

#endif
