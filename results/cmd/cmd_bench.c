/*
 * results/cmd/cmd_bench.c - a command in fresh processes, and beside another
 * build of it.
 */
#include "results/cmd/series.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "results/process/process.h"

/* The other build: a program, or the folder that has one of the same name. */
static char *find_other(const char *other, const char *program, struct err *e)
{
	struct buf path = { 0 };
	struct stat st;

	buf_adds(&path, other);
	if (!stat(other, &st) && S_ISDIR(st.st_mode))
		buf_printf(&path, "/%s", strrchr(program, '/') + 1);
	char *found = program_find(path.data, e);
	buf_fini(&path);
	return found;
}

static bool compare_sides(struct series *x, struct err *e)
{
	char name[2][24];
	char *argv[] = { name[0], name[1], NULL };
	struct show *s = x->s;
	int64_t run;

	for (size_t i = 0; i < 2; i++) {
		if (!series_first_run(x, i, &run, e))
			return false;
		snprintf(name[i], sizeof(name[i]), "%lld", (long long)run);
	}
	s->cmd.argc = 2;
	s->cmd.argv = argv;
	return res_cmd_compare(&s->cmd, e);
}

static bool tell_run(struct series *x, struct err *e)
{
	int64_t run;

	if (!series_first_run(x, 0, &run, e))
		return false;
	fprintf(x->s->cmd.out, "run %lld stands for %zu processes\n",
		(long long)run, x->processes);
	return true;
}

bool res_cmd_bench(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct series_side side[2] = { { .name = "a" }, { .name = "b" } };
	struct series x = { .s = s, .argv = (const char *const *)c->argv,
			    .side = side,
			    .n_sides = s->o.against ? 2 : 1 };

	if (!series_processes(s, &x.processes, e))
		return false;
	char *program = program_find(c->argv[0], e), *other = NULL;
	if (!program)
		return false;
	if (s->o.against && !(other = find_other(s->o.against, program, e))) {
		free(program);
		return err_wrap(e, "--against");
	}
	side[0].program = program;
	side[1].program = other;
	bool ok = series_run(&x, e);
	if (ok)
		ok = other ? compare_sides(&x, e) : tell_run(&x, e);
	free(program);
	free(other);
	return ok;
}
