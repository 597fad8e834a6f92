/*
 * Machine code that the other tests take from the product's assembler: the
 * bytes are those that LLVM 19 made of the same text.
 *
 * tests/data/asm/kernels.txt has a line for each tests/AREA/NAME.s: its path
 * and its code in hexadecimal.  Where llvm-mc-19 is, it is asked again; then
 * `tests/isa/code record` prints the file anew.
 *
 * tests/data/asm/exec.txt has one for each instruction that stands as text in
 * tests/exec/NAME.c: wave size, its code, itself.
 * `tests/isa/code instructions` prints "WAVE<tab>TEXT" of all of them.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "isa/text/text.h"
#include "tests/code.h"
#include "tests/tap.h"

static void hex(struct buf *out, const void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%02x", ((const uint8_t *)data)[i]);
}

/* What the command prints, as hexadecimal; "" if it fails. */
static char *output_hex(const char *command)
{
	struct buf out = { 0 };
	uint8_t part[4096];
	FILE *p = popen(command, "r");
	size_t n;

	buf_printf(&out, "%s", "");
	while (p && (n = fread(part, 1, sizeof(part), p)) > 0)
		hex(&out, part, n);
	if (p && pclose(p))
		out.data[0] = 0;
	return out.data;
}

static char *llvm_hex(const char *path)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "d=$(mktemp -d) && llvm-mc-19 -triple=amdgcn -mcpu=gfx1100 "
		 "%s -filetype=obj -o \"$d/o\" '%s' && llvm-objcopy-19 -O binary "
		 "--only-section=.text \"$d/o\" \"$d/text\" && cat \"$d/text\"; "
		 "s=$?; rm -r \"$d\"; exit $s",
		 strstr(path, "wave64") ? "-mattr=+wavefrontsize64" : "", path);
	return output_hex(command);
}

static char *product_hex(const char *path)
{
	const struct code c = code_file(path);
	struct buf out = { 0 };

	buf_printf(&out, "%s", "");
	hex(&out, c.dw, c.size_bytes);
	return out.data;
}

/* The stored line of `path`, without it; NULL if there is none. */
static const char *stored_hex(const char *stored, const char *path)
{
	const char *line = strstr(stored, path);

	return line && line[strlen(path)] == '\t' ? line + strlen(path) + 1 :
						   NULL;
}

static void check(const char *stored, const char *path, bool llvm)
{
	const char *wanted = stored_hex(stored, path);
	char *got = product_hex(path);

	if (!ok(wanted, "%s is stored", path))
		return;
	ok(strlen(got) == strcspn(wanted, "\n") &&
		   !strncmp(got, wanted, strlen(got)),
	   "%s: assembled as LLVM did", path);
	if (llvm) {
		char *again = llvm_hex(path);

		is_str(got, again, "%s: and as LLVM does", path);
		free(again);
	}
	free(got);
}

/* ---- instructions in the text of tests/exec ---- */

/* 32 or 64, the waves in which it is an instruction; 0: in none. */
static int wave_of(const char *text, struct isa_inst *in)
{
	for (int wave = 32; wave <= 64; wave += 32) {
		struct isa_target t = { ISA_GFX11, wave, false };

		if (strchr(text, '_') && !isa_parse(&t, text, NULL, NULL, in))
			return wave;
	}
	return 0;
}

/* LLVM 19 drops the halves of v_alignbit's and v_alignbyte's shift. */
static bool is_newer(const char *text)
{
	return !strncmp(text, "v_alignb", 8) &&
	       (strstr(text, "op_sel") || strstr(text, ".h"));
}

struct tally {
	const char *stored; /* NULL: print instead */
	int n, wrong;
};

static void check_instruction(struct tally *t, const char *text)
{
	char line[512];
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	int wave = wave_of(text, &in), at, n;

	if (!wave || is_newer(text))
		return;
	t->n++;
	if (!t->stored) {
		printf("%d\t%s\n", wave, text);
		return;
	}
	at = snprintf(line, sizeof(line), "\n%d\t", wave);
	n = isa_encode(&in, code);
	for (int i = 0; i < n; i++)
		at += snprintf(line + at, sizeof(line) - (size_t)at, "%02x",
			       code[i]);
	snprintf(line + at, sizeof(line) - (size_t)at, "\t%s\n", text);
	if (!strstr(t->stored, line)) {
		t->wrong++;
		diag("LLVM did not say:%.*s", (int)strlen(line) - 1, line);
	}
}

/* Every part of a string of C that is one instruction. */
static void check_strings(struct tally *t, const char *c)
{
	char text[256];
	size_t n = 0;
	bool inside = false;

	for (; *c; c++) {
		bool ends = *c == '"' || *c == ';' ||
			    (c[0] == '\\' && c[1] == 'n');

		if (inside && ends) {
			text[n] = 0;
			check_instruction(t, text);
		}
		if (*c == '"')
			inside = !inside;
		if (*c == '\\')
			c++;
		if (ends || !inside)
			n = 0;
		else if (n < sizeof(text) - 1 && (n || *c != ' '))
			text[n++] = *c;
	}
}

static void check_exec(const char *stored)
{
	struct tally t = { .stored = stored };
	glob_t g;

	/* gfxN.c are about other chips, whose words tests/isa/generations.c asks LLVM about. */
	glob("tests/exec/[!g]*.[ch]", 0, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct buf c = { 0 };
		struct err e = { 0 };

		if (file_read(g.gl_pathv[i], 0, &c, &e)) {
			buf_add(&c, "", 1);
			check_strings(&t, c.data);
		}
		buf_fini(&c);
	}
	globfree(&g);
	if (stored)
		ok(t.n >= 500 && !t.wrong,
		   "%d instructions of tests/exec are as LLVM encodes them",
		   t.n);
}

int main(int argc, char **argv)
{
	const bool llvm = !system("command -v llvm-mc-19 >/dev/null &&"
				  "command -v llvm-objcopy-19 >/dev/null");
	struct buf stored = { 0 }, lines = { 0 };
	struct err e = { 0 };
	glob_t g;
	const bool found = !glob("tests/*/*.s", 0, NULL, &g);

	if (found && argc > 1 && !strcmp(argv[1], "record")) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			printf("%s\t%s\n", g.gl_pathv[i],
			       llvm_hex(g.gl_pathv[i]));
		return 0;
	}
	if (argc > 1) {
		check_exec(NULL);
		return 0;
	}
	if (!ok(found, "there are kernels"))
		return plan_done();
	if (!ok(file_read("tests/data/asm/exec.txt", 0, &lines, &e),
		"what LLVM said of instructions is stored (%s)", e.msg))
		return plan_done();
	buf_add(&lines, "", 1);
	check_exec(lines.data);
	buf_fini(&lines);
	if (!ok(file_read("tests/data/asm/kernels.txt", 0, &stored, &e),
		"what LLVM said is stored (%s)", e.msg))
		return plan_done();
	buf_add(&stored, "", 1);
	if (!llvm)
		skip("llvm-mc-19 is not installed: only what it once said");
	for (size_t i = 0; i < g.gl_pathc; i++)
		check(stored.data, g.gl_pathv[i], llvm);
	globfree(&g);
	buf_fini(&stored);
	return plan_done();
}
