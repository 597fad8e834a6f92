/* The generator's published sequence, and the level of the processor. */
#include <stdlib.h>

#include "base/base.h"
#include "tests/tap.h"

int main(void)
{
	/* Vigna's splitmix64.c from seed 1234567. */
	static const uint64_t wanted[] = {
		6457827717110365317u, 3203168211198807973u,
		9817491932198370423u, 4593380528125082431u,
		16408922859458223821u,
	};
	uint64_t state = 1234567;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		is_u64(random_next(&state), wanted[i], "value %zu", i);
	setenv("T0_TEST_LEVEL", "v2", 1);
	is_u64((uint64_t)cpu_level("T0_TEST_LEVEL"), 2,
	       "every processor can be made to do with less");
	setenv("T0_TEST_LEVEL", "v9", 1);
	is_u64((uint64_t)cpu_level("T0_TEST_LEVEL"),
	       (uint64_t)cpu_level("T0_TEST_NONE"), "none with more");
	ok(cpu_level("T0_TEST_NONE") >= 2 && cpu_level("T0_TEST_NONE") <= 4,
	   "the level is one of three");
	return plan_done();
}
