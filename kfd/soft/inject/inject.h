/*
 * kfd/soft/inject - make the soft device misbehave as cards do: the manual.
 *
 * For tests of what stands above the driver seam.  A rule says what goes
 * wrong and at which of the calls or packets that it concerns:
 *
 *	struct soft_inject r = { .what = SOFT_INJECT_IOCTL,
 *				 .nr = KFD_NR_MAP_MEMORY_TO_GPU,
 *				 .err = EINTR, .after = 2, .times = 3 };
 *	soft_inject(driver, &r);
 *
 * lets the 3rd, 4th and 5th MAP_MEMORY_TO_GPU fail with EINTR.  With `one_in`
 * a rule fires at random instead, as often as that says; the same seed gives
 * the same choices for the same calls.  Rules are tried in the order in which
 * they were given, and the first that fires is applied.
 *
 * Lacks and oddities of the machine that last (a small BAR, an old driver,
 * another GPU before this one, a hidden node) are soft_options instead.
 */
#ifndef T0_KFD_SOFT_INJECT_H
#define T0_KFD_SOFT_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "kfd/driver.h"

enum soft_inject_what {
	/* open() of `path` (NULL = /dev/kfd) fails with `err`. */
	SOFT_INJECT_OPEN,
	/* KFD ioctl number `nr` fails with `err` and does nothing. */
	SOFT_INJECT_IOCTL,
	/* It does its work and then says `err`; MAP and UNMAP: n_success is
	 * one less than n_devices, as if the last device had failed. */
	SOFT_INJECT_IOCTL_DONE,
	/* mmap() fails with `err`: `nr` is KFD_MMAP_TYPE_* of /dev/kfd, 0 also
	 * all of the render node. */
	SOFT_INJECT_MMAP,

	/* The others strike at packets, before they run. */
	SOFT_INJECT_FAULT,	/* page fault at `va` */
	SOFT_INJECT_ILLEGAL,	/* an illegal instruction */
	SOFT_INJECT_ECC,	/* memory poison: MEMORY and HW_EXCEPTION */
	SOFT_INJECT_REFUSE,	/* the packet processor refuses it */
	SOFT_INJECT_HANG,	/* never ends; `ns` > 0: reset after that */
	SOFT_INJECT_RESET,	/* of somebody else's making */
	SOFT_INJECT_RESET_MUTE, /* memory is lost, and no event says so */
	SOFT_INJECT_PAUSE,	/* all queues are evicted for `ns` */
	SOFT_INJECT_SLOW,	/* starts `ns` later */
	SOFT_INJECT_LOST_IRQ,	/* value written, no interrupt */
	SOFT_INJECT_SPURIOUS,	/* interrupts without a value, `ns` apart */
};

struct soft_inject {
	enum soft_inject_what what;
	unsigned nr;	  /* KFD_NR_* */
	int err;	  /* positive errno */
	const char *path; /* must live as long as the device */
	uint64_t va, ns;
	uint64_t after;	 /* matches to let pass first */
	uint64_t times;	 /* then strike so often; 0 = once, ~0 = always */
	uint32_t one_in; /* > 0: strike at random, once in so many matches */
	uint64_t seed;
};

/* Add a rule.  At any time, from any thread. */
void soft_inject(struct kfd_driver *d, const struct soft_inject *rule);
/*
 * "WHAT@PROCESS.PACKET": fault, illegal, memory, refuse, hang, reset or slow at
 * the packet of this number (from 1), of the process of this number.
 */
bool soft_inject_parse(const char *text, struct soft_inject *out,
		       unsigned long *process, struct err *e);
/* How often any rule of this kind has struck. */
uint64_t soft_injected(struct kfd_driver *d, enum soft_inject_what what);
/*
 * What the process holds of the device now, so that a test can prove that
 * nothing is left: open files, buffer objects with their bytes, queues and
 * events.
 */
struct soft_census {
	unsigned files, objects, queues, events;
	uint64_t vram_bytes;
};
void soft_census(struct kfd_driver *d, struct soft_census *out);
/*
 * Fill *out when the last handle of /dev/kfd is closed, before the device
 * takes everything back by itself: what it counts was left open.
 */
void soft_census_at_close(struct kfd_driver *d, struct soft_census *out);

#endif
