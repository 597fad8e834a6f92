/*
 * Fuzz target: a launch as a command line and Triton's JSON beside an object
 * describe it.  The first line is the command line's arguments; the rest, if
 * there is any, the JSON.  A plan that is accepted has arguments that fit.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "isa/launch/launch.h"
#include "tests/attack/driver/driver.h"

enum { WORDS = 16 };

static char object[96], json[96];

static void write_object(void)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	snprintf(object, sizeof(object), "%s/saxpy.co", work_folder());
	snprintf(json, sizeof(json), "%s/saxpy.json", work_folder());
	if (!file_read("tests/data/kernels/saxpy.co", 0, &b, &e) ||
	    !file_write_unsynced(object, b.data, b.len, &e))
		BUG("%s", e.msg);
	buf_fini(&b);
}

/* Large buffers are as their user asked; files may be any. */
static bool is_modest(const char *s)
{
	for (; *s; s++)
		if (strspn(s, "0123456789") > 4 || strchr("kKMGxX>", *s) ||
		    !strncmp(s, "file", 4))
			return false;
	return true;
}

static void plan(struct launch_plan *l, int argc, char **argv)
{
	struct err e = { 0 };
	bool good = launch_parse(l, argc, argv, &e) &&
		    launch_load(l, false, &e) && launch_check(l, &e);

	if (!good && (e.code == ERR_NONE || !e.msg[0]))
		BUG("refused without a reason");
	if (!good)
		return;
	uint64_t va[LAUNCH_ARGS_MAX] = { 0 };
	uint32_t groups[3];

	if (!launch_groups(l, groups) || !l->kernel)
		BUG("a plan of nothing");
	if (launch_arguments(l, va, &e) &&
	    l->explicit_bytes > l->kernarg_bytes)
		BUG("%u bytes of %u", l->explicit_bytes, l->kernarg_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct launch_plan l;
	char *argv[WORDS + 1] = { object };
	struct err e = { 0 };
	int argc = 1;

	if (!*object)
		write_object();
	if (size > 4096)
		return 0;
	char *text = xmalloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	char *end = strchr(text, '\n');
	if (end) {
		*end++ = '\0';
		if (!file_write_unsynced(json, end, text + size - end, &e))
			BUG("%s", e.msg);
	} else {
		remove(json);
	}
	if (is_modest(text)) {
		l = (struct launch_plan)LAUNCH_DEFAULTS;
		for (char *save, *w = strtok_r(text, " ", &save);
		     w && argc < WORDS; w = strtok_r(NULL, " ", &save))
			argv[argc++] = w;
		plan(&l, argc, argv);
		launch_fini(&l);
	}
	free(text);
	return 0;
}
