/*
 * base/version.c - the commit that this was built from.
 */
#include "base/base.h"

const char *t0_commit(void)
{
	return T0_COMMIT;
}
