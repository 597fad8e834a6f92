/*
 * kfd/soft/device/refusal.c - what the device refuses, in words: one line for
 * each, for who runs it.
 *
 * The program gets the errno, event or error code that the kernel would give;
 * a person needs to know which field was it, and what would have been taken.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "kfd/soft/device/dev.h"

#define LINE_BYTES 800

/* Programs repeat what fails: the same line once is enough. */
static bool is_new(struct soft_dev *d, const char *line)
{
	const uint64_t h = XXH3_64bits(line, strlen(line));
	bool found = false;

	pthread_mutex_lock(&d->fault_lock);
	for (unsigned i = 0; i < SOFT_SAID; i++)
		found |= d->said[i] == h;
	if (!found)
		d->said[d->n_said++ % SOFT_SAID] = h;
	pthread_mutex_unlock(&d->fault_lock);
	return !found;
}

void soft_report(struct soft_dev *d, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list ap;

	if (!d->o.report)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (is_new(d, line))
		d->o.report(line);
}

int soft_refuse(struct soft_dev *d, const char *call, int err_no,
		const char *accepted, const char *fmt, ...)
{
	char why[LINE_BYTES / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	soft_report(d, "refused ioctl %s: %s; accepted: %s (%s)", call, why,
		    accepted, strerror(err_no));
	return -(err_no + SOFT_REPORTED);
}

int soft_refused(struct soft_dev *d, const char *call, unsigned long request,
		 int ret)
{
	if (ret >= 0)
		return ret;
	if (-ret >= SOFT_REPORTED)
		return ret + SOFT_REPORTED;
	soft_report(d, "refused ioctl %s (request 0x%08lx): %s", call, request,
		    strerror(-ret));
	return ret;
}
