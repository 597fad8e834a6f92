/*
 * Fuzz target: programs for the emulator; see tests/exec/soft-fuzz.h.
 */
#include "tests/exec/soft-fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	static struct soft_fuzz *z;

	if (!z)
		z = soft_fuzz_new();
	if (!soft_fuzz_run(z, data, size_bytes))
		BUG("the fast form differs");
	return 0;
}
