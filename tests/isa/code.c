/*
 * The kernels of the tests (tests/AREA/NAME.s), which the other tests take from
 * the product's assembler: the bytes are those that LLVM 19 made of the same
 * text.  They are stored in tests/data/asm/kernels.txt, a line a file: its path
 * and its code in hexadecimal.  Where llvm-mc-19 is, it is asked again; then
 * `tests/isa/code record` prints the file anew.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
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
		 "%s -filetype=obj -o $d/o %s && llvm-objcopy-19 -O binary "
		 "--only-section=.text $d/o $d/text && cat $d/text; "
		 "s=$?; rm -r $d; exit $s",
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

int main(int argc, char **argv)
{
	const bool llvm = !system("command -v llvm-mc-19 >/dev/null &&"
				  "command -v llvm-objcopy-19 >/dev/null");
	struct buf stored = { 0 };
	struct err e = { 0 };
	glob_t g;

	if (glob("tests/*/*.s", 0, NULL, &g))
		skip_all("no kernels here");
	if (argc > 1 && !strcmp(argv[1], "record")) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			printf("%s\t%s\n", g.gl_pathv[i],
			       llvm_hex(g.gl_pathv[i]));
		return 0;
	}
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
