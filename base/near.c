/*
 * base/near.c - which of several names was probably meant.
 */
#include <string.h>

#include "base/cmd.h"
#include "base/cmd_int.h"

void cmd_near_try(struct cmd_near *n, const char *candidate)
{
	const size_t len = strlen(n->name);
	const size_t distance = cli_distance(n->name, len, candidate);

	if (distance >= (n->meant ? n->distance : cli_near(len)))
		return;
	n->meant = candidate;
	n->distance = distance;
}
