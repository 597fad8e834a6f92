/*
 * Recorded instructions and their text, on which T0 and LLVM 19 agreed when
 * tests/data/isa/gfx1100.tsv was written (tests/isa/llvm SEED COUNT record):
 * wave size, bytes in memory order, text or "-" where both refuse.  Needs no
 * LLVM.
 */
#include <stdlib.h>

#include "isa/text/text.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

static int hex_bytes(const char *s, size_t len, uint8_t *out)
{
	int n = 0;

	for (size_t i = 0; i + 1 < len && n < ISA_MAX_SIZE_BYTES; i += 2) {
		char two[3] = { s[i], s[i + 1], 0 };

		out[n++] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

/* Does this line hold?  Otherwise says why not. */
static bool holds(const char *line)
{
	const char *hex = strchr(line, '\t'), *text;
	struct isa_target t = { .gen = ISA_GFX11, .wave = atoi(line) };
	uint8_t code[ISA_MAX_SIZE_BYTES], again[ISA_MAX_SIZE_BYTES];
	char ours[ISA_TEXT_MAX] = "-";
	struct isa_inst in;
	const char *why;
	int n;

	if (!hex++ || !(text = strchr(hex, '\t')))
		return false;
	n = hex_bytes(hex, (size_t)(text - hex), code);
	text++;
	why = isa_decode(&t, code, (size_t)n, &in);
	if (!why)
		isa_print(&t, &in, ours, sizeof(ours));
	if (!strcmp(ours, text) &&
	    (why || (in.size_bytes == n && isa_encode(&in, again) == n &&
		     !memcmp(code, again, (size_t)n))))
		return true;
	diag("%s: got %s%s%s", line, ours, why ? ", " : "", why ? why : "");
	return false;
}

int main(void)
{
	struct buf file = { 0 };
	struct err e = { 0 };
	bool seen[ISA_OP_COUNT] = { false };
	int n = 0, wrong = 0, rows = 0, missing = 0;

	if (!ok(file_read("tests/data/isa/gfx1100.tsv", 0, &file, &e),
		"the recorded vectors are there: %s", e.msg))
		return plan_done();
	for (char *p = file.data; p && *p;) {
		char *end = strchr(p, '\n'), name[80] = "";

		if (end)
			*end++ = 0;
		wrong += !holds(p);
		n++;
		sscanf(strrchr(p, '\t') + 1, "%79s", name);
		seen[isa_op_find(name)] = true;
		p = end;
	}
	is_u64((uint64_t)wrong, 0, "%d recorded instructions decode to their "
				   "text, and back", n);
	ok(n > 3000, "there are more than 3000");
	for (int op = 1; op < ISA_OP_COUNT; op++) {
		if (isa_op_info((enum isa_op)op)->opcode[ISA_GFX11] < 0)
			continue;
		rows++;
		missing += !seen[op];
		if (!seen[op])
			diag("not recorded: %s",
			     isa_op_info((enum isa_op)op)->name);
	}
	/* The two that LLVM 19 lacks, and one that needs all fields zero. */
	ok(missing <= 3, "all but %d of %d instructions are among them",
	   missing, rows);
	buf_fini(&file);
	return plan_done();
}
