/*
 * base/memory.c - how much memory a process may use.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* The number in a group's file; UINT64_MAX: there is none. */
static uint64_t limit_read(const char *root, const char *group,
			   const char *name)
{
	unsigned long long v = UINT64_MAX;
	char path[4400];

	snprintf(path, sizeof(path), "%s%s/%s", root, group, name);
	FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &v) != 1)
		v = UINT64_MAX; /* "max" */
	if (f)
		fclose(f);
	return v;
}

/* The least of a group's and those that it is in; `group` is cut on the way. */
static uint64_t limit_of(const char *root, char *group, const char *name)
{
	uint64_t least = UINT64_MAX;
	char *end;

	do {
		uint64_t v = limit_read(root, group, name);
		least = v < least ? v : least;
		end = strrchr(group, '/');
		if (end)
			*end = 0;
	} while (end);
	return least;
}

uint64_t memory_limit_bytes(void)
{
	uint64_t least = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			 (uint64_t)sysconf(_SC_PAGESIZE),
		 v;
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4200], *at;

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "0::/", 4) == 0)
			v = limit_of("/sys/fs/cgroup", line + 3, "memory.max");
		else if ((at = strstr(line, ":memory:/")) != NULL)
			v = limit_of("/sys/fs/cgroup/memory", at + 8,
				     "memory.limit_in_bytes");
		else
			continue;
		least = v < least ? v : least;
	}
	if (f)
		fclose(f);
	return least;
}
