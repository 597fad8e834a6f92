/*
 * compiler/opt/pass.c - runs the passes of compiler/opt/pass.def.
 */
#include <string.h>

#include "compiler/opt/pass.h"

static const struct pass {
	const char *name;
	bool (*run)(struct ssa_func *f);
} pass_table[] = {
#define PASS(name) { #name, ssa_pass_##name },
#include "compiler/opt/pass.def"
};

enum pass_id {
#define PASS(name) PASS_##name,
#include "compiler/opt/pass.def"
};

/* In the order of running. */
static const struct run {
	uint8_t pass, level;
} run_table[] = {
#define RUN(name, level) { PASS_##name, level },
#include "compiler/opt/pass.def"
};

static bool checked_run(struct ssa_func *f, const struct pass *pass,
			bool *changed, struct err *e)
{
	*changed = pass->run(f);
	return ssa_check(f, e) || err_wrap(e, "after the pass %s", pass->name);
}

bool ssa_optimize(struct ssa_func *f, int level, ssa_dump_fn *dump, void *ctx,
		  struct err *e)
{
	bool changed;

	if (!ssa_check(f, e))
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(run_table); k++) {
		const struct pass *pass = &pass_table[run_table[k].pass];

		if (run_table[k].level > level)
			continue;
		if (!checked_run(f, pass, &changed, e))
			return false;
		if (dump)
			dump(ctx, pass->name, f);
	}
	ssa_uniform(f);
	return true;
}

static bool no_such_pass(const char *name, struct err *e)
{
	struct buf names = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(pass_table); k++)
		buf_printf(&names, " %s", pass_table[k].name);
	err_set(e, ERR_USAGE, "no pass '%s'; there are:%s", name, names.data);
	buf_fini(&names);
	return false;
}

bool ssa_pass_run(struct ssa_func *f, const char *pass, bool *changed,
		  struct err *e)
{
	for (size_t k = 0; k < ARRAY_SIZE(pass_table); k++)
		if (!strcmp(pass_table[k].name, pass))
			return ssa_check(f, e) &&
			       checked_run(f, &pass_table[k], changed, e);
	return no_such_pass(pass, e);
}
