/*
 * kfd/soft/device/smi.c - SMI events: lines of text about what the driver does,
 * for monitors.
 *
 * The program's descriptor is one end of a socket: it writes the mask of the
 * events that it wants and reads lines.  The mask is fetched when an event
 * comes.  As in the kernel, lines for which there is no room are lost, and a
 * read without lines is EAGAIN.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "kfd/soft/device/dev.h"

#define MAX_LINE 96

uint64_t soft_boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int soft_ioc_smi_events(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_smi_events *a = arg;
	struct soft_card *c = soft_card_by_id(d, a->gpu_id);
	int fd[2];

	if (!c)
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		       fd))
		return -errno;
	/* The kernel's is not closed by exec. */
	fcntl(fd[0], F_SETFD, 0);
	pthread_mutex_lock(&d->smi_lock);
	vec_push(&d->smi, ((struct soft_smi){ c, fd[1], 0 }));
	pthread_mutex_unlock(&d->smi_lock);
	a->anon_fd = (uint32_t)fd[0];
	return 0;
}

/* Fetch the last mask; false: the program closed its end. */
static bool update_mask(struct soft_smi *s)
{
	uint64_t mask;
	ssize_t n;

	while ((n = recv(s->fd, &mask, sizeof(mask), MSG_DONTWAIT)) > 0)
		if (n == sizeof(mask))
			s->mask = mask;
	return n < 0 && errno == EAGAIN;
}

void soft_smi_event(struct soft_card *c, enum kfd_smi event,
		    const char *fmt, ...)
{
	struct soft_dev *d = c->dev;
	char line[MAX_LINE];
	va_list ap;
	int n;

	n = snprintf(line, sizeof(line), "%x ", (unsigned)event);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&d->smi_lock);
	for (size_t i = d->smi.n; i-- > 0;) {
		struct soft_smi *s = &d->smi.v[i];

		if (!update_mask(s)) {
			close(s->fd);
			*s = d->smi.v[--d->smi.n];
		} else if (s->card == c && s->mask >> (event - 1) & 1) {
			(void)!send(s->fd, line, strlen(line),
				    MSG_DONTWAIT | MSG_NOSIGNAL);
		}
	}
	pthread_mutex_unlock(&d->smi_lock);
}

void soft_smi_end(struct soft_dev *d)
{
	pthread_mutex_lock(&d->smi_lock);
	for (size_t i = 0; i < d->smi.n; i++)
		close(d->smi.v[i].fd);
	vec_fini(&d->smi);
	pthread_mutex_unlock(&d->smi_lock);
}
