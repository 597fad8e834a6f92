/*
 * Fuzz target: the text of SSA.  Any text may be given to ssa_parse(); what
 * ssa_check() accepts prints and reads back, and every level of optimisation
 * leaves a function that it accepts, too.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/opt/pass.h"
#include "compiler/ssa/ssa.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

enum { MAX_BYTES = 16384 };

static void read_back(const struct ssa_func *f)
{
	struct buf a = { 0 }, b = { 0 };
	struct err e = { 0 };

	ssa_print(f, &a);
	struct ssa_func *g = ssa_parse(a.data, &e);

	if (!g)
		BUG("printed text is refused: %s\n%s", e.msg, a.data);
	ssa_print(g, &b);
	if (strcmp(a.data, b.data))
		BUG("printed text differs:\n%s\n%s", a.data, b.data);
	ssa_func_free(g);
	buf_fini(&a);
	buf_fini(&b);
}

static void optimize(const struct ssa_func *f)
{
	for (int level = 0; level <= 3; level++) {
		struct ssa_func *g = ssa_func_copy(f);
		struct err e = { 0 };

		if (!ssa_optimize(g, level, NULL, NULL, &e))
			BUG("-O%d: %s", level, e.msg);
		ssa_func_free(g);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct err e = { 0 };

	if (size_bytes > MAX_BYTES)
		return 0;
	char *text = strndup((const char *)data, size_bytes);
	struct ssa_func *f = ssa_parse(text, &e);

	if (!f && !e.msg[0])
		BUG("refused without a reason");
	if (f && ssa_check(f, &e)) {
		read_back(f);
		optimize(f);
	}
	ssa_func_free(f);
	free(text);
	return 0;
}
