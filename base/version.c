#include "base/base.h"

const char *t0_commit(void)
{
	return T0_COMMIT;
}
