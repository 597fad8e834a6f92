/*
 * What is around a tool: environment, streams, limits.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"

/* ---- the environment ---- */

/* None of them changes what a tool prints; TMPDIR and PATH unless it RUNS. */
static const char *const idle_names[] = {
	"HOME", "XDG_CACHE_HOME", "LANG", "LC_ALL", "LC_NUMERIC", "TZ", "TERM",
	"COLUMNS", "NO_COLOR", "USER", "SHELL", "PWD", "LANGUAGE",
	"POSIXLY_CORRECT", "T0_UNHEARD_OF", "", "SQLITE_TMPDIR", "LINES",
};
static const char *const other_names[] = {
	"T0_DB", "T0_DEVICE", "T0_DEBUG", "T0_CACHE", "T0_SOFT_CHECK",
	"T0_SOFT_OPTIONS", "T0_SOFT_ROOT", "T0_VISIBLE_DEVICES", "CC",
	"T0_SERIES", "T0_SIDE", "T0_HOST_SIMD", "T0_CPU",
};

/* A folder that cannot be written, and names of what is none. */
static const char *folder_word(struct attack *a)
{
	static const char *const folders[] = {
		"locked", "file", "no/such", "/dev/null", "/proc/none", ".", "",
		"/", "locked/in",
	};

	return folders[below(a, ARRAY_SIZE(folders))];
}

static void put_variable(struct attack *a, const char *name)
{
	switch (below(a, 4)) {
	case 0:
		environ_set(a, "%s", name);
		break;
	case 1:
		environ_set(a, "%s=%s", name, folder_word(a));
		break;
	case 2:
		environ_set(a, "%s=%s/%s", name, a->folder, folder_word(a));
		break;
	default:
		environ_set(a, "%s=%s", name, hostile_word(a));
		break;
	}
}

static void make_locked(struct attack *a)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/locked", a->folder);
	mkdir(path, 0500);
	snprintf(path, sizeof(path), "%s/file", a->folder);
	FILE *f = fopen(path, "w");
	if (f)
		fclose(f);
}

void attack_environ(struct attack *a)
{
	const bool idle = one_in(a, 2);
	struct outcome o;

	recipe_take(a, recipe_any(a, 0, 0));
	recipe_reference(a);
	make_locked(a);
	for (uint64_t n = 1 + below(a, 4); n; n--)
		put_variable(a, idle ? idle_names[below(a,
						ARRAY_SIZE(idle_names))] :
				one_in(a, 6) ? one_in(a, 2) ? "PATH" :
							      "TMPDIR" :
				other_names[below(a, ARRAY_SIZE(other_names))]);
	const int64_t before = db_runs(a);
	a->may_last = !idle;
	launch(a, &o);
	if (idle && !(a->recipe->flags & RUNS))
		judge_work(a, &o, false);
	else
		judge(a, &o);
	judge_db(a, a->recipe->flags & CUTS ? -1 : before);
	outcome_fini(&o);
}

/* ---- streams ---- */

void attack_streams(struct attack *a)
{
	struct outcome o;

	recipe_take(a, recipe_any(a, 0, 0));
	const struct reference *r = recipe_reference(a);
	for (int i = 0; i < 3; i++)
		if (one_in(a, 2))
			a->stream[i] = (enum stream)below(a, 5);
	launch(a, &o);
	judge(a, &o);
	if (!r->works || status_is_free(a))
		goto out;
	if (a->stream[1] == STREAM_USUAL || !r->out.len) {
		/* Nobody hears a remark: the work is done all the same. */
		if (a->stream[2] != STREAM_GONE)
			judge_work(a, &o, a->recipe->flags & READS &&
				   a->stream[0] != STREAM_USUAL);
	} else if (!o.killed && o.status != 2) {
		fault(a, "ends with status %d although its output is lost",
		      o.status);
	}
out:
	outcome_fini(&o);
}

/* ---- limits ---- */

static void lower_limit(struct attack *a)
{
	/* Leaks are looked for by a process, in all of the address space. */
	switch (below(a, a->c->sanitized ? 2 : 5)) {
	case 0:
		limit_set(a, RLIMIT_FSIZE, log_uniform(a, 8192, 4 << 20));
		break;
	case 1:
		limit_set(a, RLIMIT_NOFILE, log_uniform(a, 3, 64));
		break;
	case 2:
		limit_set(a, RLIMIT_NPROC, below(a, 8));
		break;
	case 3:
		limit_set(a, RLIMIT_STACK, log_uniform(a, 256 << 10, 8 << 20));
		break;
	case 4:
		limit_set(a, RLIMIT_AS, log_uniform(a, 16 << 20,
						    UINT64_C(2) << 30));
		break;
	}
}

/* Can it be started at all with so little? */
static bool starts_tool(struct attack *a)
{
	struct attack idle = *a;
	struct outcome o;

	memset(&idle.words, 0, sizeof(idle.words));
	memset(&idle.fault, 0, sizeof(idle.fault));
	idle.mem = (struct arena){ 0 };
	word_add(&idle, "--version");
	launch(&idle, &o);
	const bool ok = !o.killed && o.status == 0;
	outcome_fini(&o);
	vec_fini(&idle.words);
	arena_fini(&idle.mem);
	return ok;
}

void attack_limits(struct attack *a)
{
	struct outcome o;

	recipe_take(a, recipe_any(a, 0, RUNS));
	recipe_reference(a);
	const int64_t before = db_runs(a);
	for (uint64_t n = 1 + below(a, 2); n; n--)
		lower_limit(a);
	launch(a, &o);
	if (starts_tool(a))
		judge_work(a, &o, true);
	judge_db(a, a->recipe->flags & CUTS ? -1 : before);
	judge_outputs(a, NULL, false);
	outcome_fini(&o);
}
