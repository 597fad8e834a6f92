/*
 * probes/cmd - the commands of t0-probe.
 */
#ifndef T0_PROBES_CMD_H
#define T0_PROBES_CMD_H

#include "base/cmd.h"
#include "probes/discover/discover.h"

struct probe_cmd {
	struct cmd cmd;
	struct probe_opts o;
	const char *slot, *shard;
	bool list;
};

/* As probe_discover(), or what --list and --slot ask for instead. */
int probe_cmd_discover(const struct probe_cmd *x, struct err *e);

#endif
