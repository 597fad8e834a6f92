/*
 * kfd/soft/inject/parse.c - a rule as text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kfd/soft/inject/inject.h"

static const struct {
	const char *name;
	enum soft_inject_what what;
	uint64_t ns;
} kinds[] = {
	{ "fault", SOFT_INJECT_FAULT, 0 },
	{ "illegal", SOFT_INJECT_ILLEGAL, 0 },
	{ "memory", SOFT_INJECT_ECC, 0 },
	{ "refuse", SOFT_INJECT_REFUSE, 0 },
	{ "hang", SOFT_INJECT_HANG, 0 },
	{ "reset", SOFT_INJECT_RESET, 0 },
	{ "slow", SOFT_INJECT_SLOW, UINT64_C(200000000) },
};

bool soft_inject_parse(const char *text, struct soft_inject *out,
		       unsigned long *process, struct err *e)
{
	const char *at = strchr(text, '@');
	const size_t n = at ? (size_t)(at - text) : 0;
	unsigned long packet = 0;
	char *end = NULL;
	size_t k = 0;

	while (k < ARRAY_SIZE(kinds) &&
	       (strlen(kinds[k].name) != n ||
		strncmp(text, kinds[k].name, n) != 0))
		k++;
	*process = at ? strtoul(at + 1, &end, 10) : 0;
	if (*process && *end == '.')
		packet = strtoul(end + 1, &end, 10);
	if (k == ARRAY_SIZE(kinds) || !packet || *end)
		return err_set(e, ERR_USAGE, "--inject %.60s: wanted "
			       "WHAT@PROCESS.PACKET with fault, illegal, "
			       "memory, refuse, hang, reset or slow", text);
	*out = (struct soft_inject){ .what = kinds[k].what,
				     .ns = kinds[k].ns, .va = 0xdead000,
				     .after = packet - 1 };
	return true;
}
