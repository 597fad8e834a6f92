/*
 * probes/host/perf.h - counters of the host; see perf.c.
 */
#ifndef T0_PROBES_PERF_H
#define T0_PROBES_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct probe_perf {
	int fd[2];     /* a group; -1 = not there */
	bool hardware; /* value[] are cycles and instructions */
	bool software; /* value[] are task nanoseconds and context switches */
	char what[160]; /* one line for people */
	uint64_t tsc;
};
struct probe_perf_count {
	double value[2];
	uint64_t tsc;
	bool multiplexed;
};

/* Never fails: p->what says what there is.  Of the calling thread. */
void probe_perf_open(struct probe_perf *p);
void probe_perf_close(struct probe_perf *p);
void probe_perf_start(struct probe_perf *p);
/* false: only the time-stamp counter was read. */
bool probe_perf_stop(struct probe_perf *p, struct probe_perf_count *c);

#endif
