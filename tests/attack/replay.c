/*
 * Runs a fuzz target over its corpus without a fuzzer: every file given, or
 * those of tests/corpus/NAME when the program is called fuzz-NAME.  What once
 * broke a parser is kept there, so it cannot break it again.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/tap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void replay(const char *path)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	if (!file_read(path, 0, &b, &e)) {
		ok(false, "%s", e.msg);
		return;
	}
	/* Exactly as long as the input, so that a sanitizer sees any overrun.
	 */
	uint8_t *data = xmalloc(b.len);
	memcpy(data, b.data, b.len);
	LLVMFuzzerTestOneInput(data, b.len);
	ok(true, "survives %s", path);
	free(data);
	buf_fini(&b);
}

static int not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void replay_folder(const char *folder)
{
	struct dirent **entry;
	int n = scandir(folder, &entry, not_hidden, alphasort);

	ok(n > 0, "%s has files", folder);
	for (int i = 0; i < n; i++) {
		struct buf path = { 0 };
		buf_printf(&path, "%s/%s", folder, entry[i]->d_name);
		replay(path.data);
		buf_fini(&path);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];

	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	if (argc == 1 && strncmp(name, "fuzz-", 5) == 0) {
		struct buf folder = { 0 };
		buf_printf(&folder, "tests/corpus/%s", name + 5);
		replay_folder(folder.data);
		buf_fini(&folder);
	}
	/* An empty input is in no corpus and breaks most. */
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	ok(true, "survives an empty input");
	return plan_done();
}
