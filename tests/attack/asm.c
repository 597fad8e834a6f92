/*
 * Fuzz target: assembly text.  Any text may be given to isa_parse(), line by
 * line, and to isa_assemble(); what they accept must encode to what decodes to
 * the same fields and operands, and objects must be readable again.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/asm/asm.h"
#include "isa/code/code.h"
#include "isa/object/object.h"
#include "isa/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

enum { MAX_BYTES = 65536 };

static void one_line(const struct isa_target *t, const char *line)
{
	uint8_t code[ISA_MAX_SIZE_BYTES], again[ISA_MAX_SIZE_BYTES];
	struct isa_inst in, back;
	const char *why = isa_assemble_line(t, line, NULL, NULL, &in, code);
	int n;

	if (why) {
		if (!*why)
			BUG("refused without a reason");
		return;
	}
	n = isa_encode(&in, again);
	if (n <= 0 || n != in.size_bytes || memcmp(code, again, n))
		BUG("'%s': %d bytes, wanted %d", line, n, in.size_bytes);
	if (isa_decode(t, code, n, &back) || memcmp(&in, &back, sizeof(in)))
		BUG("'%s' does not decode to itself", line);
}

/* Each line in memory of its own, so that a sanitizer sees where it ends. */
static void lines(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data, *end = p + size;

	while (p < end) {
		const char *nl = memchr(p, '\n', end - p);
		size_t len = (nl ? nl : end) - p;
		char *line = strndup(p, len);

		for (int gen = 0; gen < ISA_GEN_COUNT; gen++)
			for (int wave = 32; wave <= 64; wave += 32) {
				struct isa_target t = { gen, wave, false };

				if (isa_gen_known(gen))
					one_line(&t, line);
			}
		free(line);
		p += len + 1;
	}
}

static void whole(const uint8_t *data, size_t size)
{
	struct isa_asm_options options = { 0 };
	struct isa_object o;
	struct buf elf = { 0 };
	struct err e = { 0 };
	struct co co;

	isa_object_init(&o);
	if (isa_assemble(&o, "fuzz.s", (const char *)data, size, &options,
			 &e)) {
		if (co_write(&o, &elf, &e)) {
			/* Metadata may be anything, so a refusal is fine. */
			co_parse(&co, elf.data, elf.len, &e);
			co_fini(&co);
		}
	} else if (e.code == ERR_NONE || !e.msg[0]) {
		BUG("refused without a reason");
	}
	isa_object_fini(&o);
	buf_fini(&elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	if (size_bytes > MAX_BYTES)
		return 0;
	lines(data, size_bytes);
	whole(data, size_bytes);
	return 0;
}
