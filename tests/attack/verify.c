/*
 * Machine code from anywhere: the verifier must end, stay inside its input,
 * and give findings that are complete.  The first byte chooses the wave size.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/verify/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct isa_target t = {
		.gen = ISA_GFX11,
		.wave = size && *data & 1 ? 64 : 32,
	};
	struct verify_report r = { 0 };
	struct verify_input in;
	uint8_t *copy;

	if (size < 5 || size > 65536)
		return 0;
	/* Exactly as long as declared, so that sanitizers see the end. */
	size = (size - 1) & ~(size_t)3;
	copy = xmalloc(size);
	memcpy(copy, data + 1, size);
	verify_input_raw(&in, t, copy, size);
	in.vgprs = 32;
	in.sgprs = 32;
	in.lds_bytes = 512;
	in.scratch_bytes = 64;
	if (isa_verify(&in, &r, NULL))
		for (int i = 0; i < r.n; i++)
			if (!r.v[i].text || !r.v[i].what || r.v[i].addr >= size)
				BUG("finding %d is not complete", i);
	verify_report_fini(&r);
	free(copy);
	return 0;
}
