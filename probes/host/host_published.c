/*
 * probes/host/host_published.c - published figures of the host's instructions
 * (host_published.def).
 */
#include <math.h>
#include <string.h>

#include "probes/host/host.h"

#define NO NAN
static const struct row {
	enum host_arch arch;
	const char *inst;
	struct host_published p;
} rows[] = {
#define PUBLISHED(arch_, inst_, latency_, interval_, source_)          \
	{ HOST_##arch_, #inst_, { .latency = latency_,                 \
				  .interval = interval_,               \
				  .source = source_ } },
#include "probes/host/host_published.def"
};

bool host_published_find(enum host_arch a, const char *inst,
			 struct host_published *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].arch == a && !strcmp(rows[i].inst, inst)) {
			*out = rows[i].p;
			return true;
		}
	/* Redwood Cove is Golden Cove but for the rows it has itself. */
	return a == HOST_RWC && host_published_find(HOST_GLC, inst, out);
}

bool host_agrees(double ours, double theirs)
{
	const double off = fabs(ours - theirs);

	return off <= 0.1 || off <= 0.05 * theirs;
}
