/*
 * The method of the probes against what others published for this processor:
 * how many latencies and intervals agree within 5 % or 0.1 cycle, and how many
 * of a second run lie within the intervals of the first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "probes/host/host.h"

int main(void)
{
	static const volatile int stop = 0;
	char name[] = "bench-host", *argv[] = { name, NULL };
	char db[] = "/tmp/t0-bench-host-XXXXXX";
	const int fd = mkstemp(db);
	const struct probe_opts o = { .device = "host", .db = db, .seed = 1,
				      .argc = 1, .argv = argv, .stop = &stop,
				      .format_out = "/dev/null" };
	struct err e = { 0 };
	int code = 0;

	/* sqlite wants to make the file itself. */
	if (fd < 0 || close(fd) || unlink(db))
		return EXIT_TROUBLE;
	for (int i = 0; i < 2 && !code; i++)
		code = host_latency(&o, &e);
	for (int i = 0; i < 2 && !code; i++)
		code = host_throughput(&o, &e);
	unlink(db);
	return code ? err_report("bench-host", &e) : 0;
}
