/*
 * Fuzz target: machine code.  The first byte chooses wave size, leniency and
 * generation; the rest is decoded from front to back.  What decodes must encode
 * to the same bytes, print within any buffer and name registers that exist.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "isa/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void check_text(const struct isa_target *t, const struct isa_inst *in,
		       size_t room)
{
	char full[ISA_TEXT_MAX], *part = xmalloc(room);
	int len = isa_print(t, in, full, sizeof(full));
	struct isa_inst again;

	if (len <= 0 || (size_t)len != strlen(full))
		BUG("text of %d characters", len);
	if (isa_print(t, in, part, room) != len ||
	    strncmp(part, full, room - 1))
		BUG("'%s' is cut badly", full);
	/* Text for people need not be text for the parser. */
	isa_parse(t, full, NULL, NULL, &again);
	if (isa_print_name(in, part, room) > len)
		BUG("'%s' is shorter than its name", full);
	free(part);
}

static void check_use(const struct isa_target *t, const struct isa_inst *in)
{
	struct isa_use use;

	isa_use(t, in, &use);
	if (use.n < 0 || use.n > (int)ARRAY_SIZE(use.reg))
		BUG("%d register uses", use.n);
	for (int i = 0; i < use.n; i++) {
		unsigned last = use.reg[i].reg + use.reg[i].count;
		unsigned limit = use.reg[i].file == ISA_K_VGPR ? 256 : 128;

		if (!use.reg[i].count || last > limit)
			BUG("register %u..%u", use.reg[i].reg, last - 1);
		if (!use.reg[i].role)
			BUG("register %u is neither read nor written",
			    use.reg[i].reg);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	static const uint8_t gens[] = { ISA_GFX11, ISA_GFX10_3, ISA_GFX11_5,
					ISA_GFX12, ISA_GFX10_1 };
	struct isa_target t = { .wave = 32 };
	uint8_t again[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;

	if (!size_bytes)
		return 0;
	t.wave = *data & 1 ? 64 : 32;
	t.lax = *data & 2;
	t.gen = gens[*data >> 2 & 3];
	for (size_t at = 1; at < size_bytes;) {
		const char *why =
			isa_decode(&t, data + at, size_bytes - at, &in);

		if (why) {
			at += 4;
			continue;
		}
		if (!in.size_bytes || in.size_bytes > size_bytes - at)
			BUG("%d bytes of %zu", in.size_bytes, size_bytes - at);
		if (isa_encode(&in, again) != in.size_bytes ||
		    memcmp(again, data + at, in.size_bytes))
			BUG("encoding differs");
		check_text(&t, &in, 1 + *data % 200);
		check_use(&t, &in);
		at += in.size_bytes;
	}
	return 0;
}
