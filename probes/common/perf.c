/*
 * probes/common/perf.c - the host's performance counters around a piece of
 * code.
 *
 * Cycles and instructions where the kernel has them, else task time and
 * context switches, and always the time-stamp counter.
 *
 * Only perf_event_open() decides what there is: libpfm knows the processor's
 * events, not the kernel's.  A file of its own, since libpfm's headers
 * redefine those of Linux.
 */
#include <errno.h>
#include <perfmon/pfmlib_perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/common/common.h"

static const char *const hardware[] = { "PERF_COUNT_HW_CPU_CYCLES",
					"PERF_COUNT_HW_INSTRUCTIONS" };
static const char *const software[] = { "PERF_COUNT_SW_TASK_CLOCK",
					"PERF_COUNT_SW_CONTEXT_SWITCHES" };

/* A descriptor, or -errno. */
static int open_event(const char *name, int group)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };

	if (pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT, &arg))
		return -ENOENT;
	attr.disabled = group < 0;
	attr.exclude_kernel = 1; /* needs no privilege */
	attr.exclude_hv = 1;
	attr.read_format = PERF_FORMAT_GROUP |
			   PERF_FORMAT_TOTAL_TIME_ENABLED |
			   PERF_FORMAT_TOTAL_TIME_RUNNING;
	int fd = (int)syscall(__NR_perf_event_open, &attr, 0, -1, group, 0ul);
	return fd < 0 ? -errno : fd;
}

static int open_pair(struct probe_perf *p, const char *const name[2])
{
	p->fd[0] = open_event(name[0], -1);
	if (p->fd[0] < 0)
		return p->fd[0];
	p->fd[1] = open_event(name[1], p->fd[0]);
	if (p->fd[1] >= 0)
		return 0;
	close(p->fd[0]);
	p->fd[0] = -1;
	return p->fd[1];
}

static const char *why_not(int err)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		return "not permitted: sysctl kernel.perf_event_paranoid=2 or "
		       "less";
	case EBUSY:
	case EMFILE:
	case ENOSPC:
		return "all taken by others";
	default:
		return "no PMU in this kernel or virtual machine";
	}
}

void probe_perf_open(struct probe_perf *p)
{
	int err;

	*p = (struct probe_perf){ .fd = { -1, -1 } };
	if (pfm_initialize() != PFM_SUCCESS) {
		snprintf(p->what, sizeof(p->what),
			 "host: time-stamp counter only (libpfm does not know "
			 "this processor)");
		return;
	}
	err = open_pair(p, hardware);
	p->hardware = !err;
	if (!err) {
		snprintf(p->what, sizeof(p->what),
			 "host: cycles and instructions by hardware counters");
		return;
	}
	p->software = !open_pair(p, software);
	snprintf(p->what, sizeof(p->what),
		 "host: hardware counters unavailable (%s); %s and the "
		 "time-stamp counter instead",
		 why_not(err), p->software ? "software events" : "no events");
}

void probe_perf_close(struct probe_perf *p)
{
	for (int i = 1; i >= 0; i--)
		if (p->fd[i] >= 0)
			close(p->fd[i]);
	p->fd[0] = p->fd[1] = -1;
}

void probe_perf_start(struct probe_perf *p)
{
	if (p->fd[0] >= 0) {
		ioctl(p->fd[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
		ioctl(p->fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	}
	p->tsc = __builtin_ia32_rdtsc();
}

bool probe_perf_stop(struct probe_perf *p, struct probe_perf_count *c)
{
	struct {
		uint64_t n, enabled, running, value[2];
	} r;

	*c = (struct probe_perf_count){ .tsc = __builtin_ia32_rdtsc() -
					       p->tsc };
	if (p->fd[0] < 0)
		return false;
	ioctl(p->fd[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	if (read(p->fd[0], &r, sizeof(r)) < (ssize_t)sizeof(r) || !r.running)
		return false;
	/* Shared with others: scaled to the whole time. */
	const double scale = (double)r.enabled / (double)r.running;
	c->multiplexed = r.running < r.enabled;
	c->value[0] = (double)r.value[0] * scale;
	c->value[1] = (double)r.value[1] * scale;
	return true;
}
