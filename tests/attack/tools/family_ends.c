/*
 * How a run may end early, and who else uses its database.
 */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"

static const char old_text[] = "what was here before\n";

/* What was there under the names of its outputs. */
static void put_old(struct attack *a)
{
	for (size_t i = 0; i < a->outputs.n; i++) {
		char path[512];

		snprintf(path, sizeof(path), "%s/%s", a->folder,
			 a->outputs.v[i]);
		FILE *f = fopen(path, "w");
		if (f) {
			fputs(old_text, f);
			fclose(f);
			chmod(path, 0666);
		}
	}
}

static void signal_at_random(struct attack *a, int signal,
			     const struct reference *r)
{
	a->signal = signal;
	a->signal_us = below(a, (uint64_t)(r->seconds * 1.2e6) + 1000);
}

/* ---- signals ---- */

void attack_signals(struct attack *a)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGINT };
	struct outcome o;

	recipe_take(a, recipe_any(a, 0, 0));
	const struct reference *r = recipe_reference(a);
	const bool old = one_in(a, 2);

	if (old)
		put_old(a);
	const int64_t before = db_runs(a);
	signal_at_random(a, signals[below(a, ARRAY_SIZE(signals))], r);
	launch(a, &o);
	judge(a, &o);
	if (r->works && !o.killed && !(o.status == 128 + a->signal) &&
	    o.status != r->status && a->recipe->status != o.status)
		fault(a, "ends with status %d after signal %d, wanted %d",
		      o.status, a->signal, r->status);
	judge_db(a, a->recipe->flags & CUTS ? -1 : before);
	judge_outputs(a, old ? old_text : NULL,
		      !o.killed && o.status == r->status);
	outcome_fini(&o);
}

/* A writer is killed; the next one goes on. */
void attack_killed(struct attack *a)
{
	struct outcome o;

	recipe_take(a, recipe_any(a, STORES, RUNS));
	const struct reference *r = recipe_reference(a);
	put_old(a);
	const int64_t before = db_runs(a);
	signal_at_random(a, SIGKILL, r);
	launch(a, &o);
	judge(a, &o);
	judge_db(a, a->recipe->flags & CUTS ? -1 : before);
	judge_outputs(a, old_text, false);
	outcome_fini(&o);
	if (a->fault.len || !r->works || a->recipe->flags & CUTS)
		return;
	a->signal = 0;
	launch(a, &o);
	judge_exact(a, &o, r->status, NULL);
	judge_db(a, before + r->runs);
	judge_outputs(a, NULL, true);
	outcome_fini(&o);
}

/* ---- two at once ---- */

void attack_shared(struct attack *a)
{
	enum { MOST = 3 };
	struct attack other[MOST];
	struct launched l[MOST];
	struct outcome o;
	size_t n = 2 + below(a, MOST - 1), begun = 0;
	int64_t wanted = 0;

	if (!seed_copy(a, "t0.db"))
		fault(a, "the campaign cannot copy t0.db");
	const int64_t before = db_runs(a);
	for (size_t i = 0; i < n; i++) {
		other[i] = *a;
		other[i].recipe = NULL;
		memset(&other[i].words, 0, sizeof(other[i].words));
		memset(&other[i].inputs, 0, sizeof(other[i].inputs));
		memset(&other[i].outputs, 0, sizeof(other[i].outputs));
		other[i].mem = (struct arena){ 0 };
		other[i].random = random_next(&a->random);
		other[i].recipe = recipe_any(&other[i], STORES,
					     RUNS | CUTS | SLOW);
		/* Rows from elsewhere come once. */
		if (!strstr(other[i].recipe->line, "import") &&
		    !strstr(other[i].recipe->line, "merge"))
			wanted += recipe_reference(&other[i])->runs;
		recipe_take(&other[i], other[i].recipe);
	}
	if (!seed_copy(a, "t0.db"))
		fault(a, "the campaign cannot copy t0.db");
	for (begun = 0; begun < n; begun++)
		if (!launch_begin(&other[begun], &l[begun], (int)begun))
			break;
	for (size_t i = 0; i < begun; i++) {
		launch_end(&other[i], &l[i], &o);
		judge_exact(&other[i], &o, other[i].recipe->status, NULL);
		if (other[i].fault.len)
			fault(a, "%s %s, beside another: %s", other[i].tool,
			      other[i].recipe->line, other[i].fault.data);
		outcome_fini(&o);
		buf_fini(&other[i].fault);
		vec_fini(&other[i].words);
		vec_fini(&other[i].inputs);
		vec_fini(&other[i].outputs);
	}
	judge_db(a, before + wanted);
	for (size_t i = 0; i < n; i++)
		arena_fini(&other[i].mem);
}

/* ---- a full disk ---- */

/* All but some pages of the small file system are taken. */
static void fill_disk(struct attack *a, const char *ballast)
{
	const size_t leave = log_uniform(a, 1, 512 << 10);
	struct buf b = { 0 };
	char block[4096] = { 0 };
	FILE *f = fopen(ballast, "w");

	while (f && fwrite(block, 1, sizeof(block), f) == sizeof(block) &&
	       fflush(f) == 0)
		;
	if (f)
		fclose(f);
	struct stat s;
	if (stat(ballast, &s) == 0 && (size_t)s.st_size > leave &&
	    truncate(ballast, s.st_size - (off_t)leave))
		fault(a, "the campaign cannot shorten %s", ballast);
	buf_fini(&b);
}

void attack_disk(struct attack *a)
{
	char ballast[200];
	struct outcome o;
	const bool real = *a->c->disk && one_in(a, 2);

	snprintf(ballast, sizeof(ballast), "%s/ballast", a->c->disk);
	if (real) {
		snprintf(a->folder, sizeof(a->folder), "%s/in", a->c->disk);
		mkdir(a->folder, 0777);
		chmod(a->folder, 0777);
		environ_set(a, "HOME=%s", a->folder);
		environ_set(a, "TMPDIR=%s", a->folder);
		environ_set(a, "XDG_CACHE_HOME=%s/cache", a->folder);
	}
	do {
		a->words.n = a->inputs.n = a->outputs.n = 0;
		const struct recipe *r = recipe_any(a, 0, RUNS | STREAMS);

		if (r->flags & STORES || strchr(r->line, '%'))
			recipe_take(a, r);
	} while (!a->recipe);
	const struct reference *r = recipe_reference(a);
	put_old(a);
	const int64_t before = db_runs(a);
	if (real)
		fill_disk(a, ballast);
	else
		limit_set(a, RLIMIT_FSIZE, log_uniform(a, 8192, 1 << 20));
	launch(a, &o);
	if (real)
		unlink(ballast);
	judge(a, &o);
	if (r->works && !o.killed && o.status != r->status && o.status != 2)
		fault(a, "ends with status %d on a full disk", o.status);
	judge_db(a, a->recipe->flags & CUTS ? -1 : before);
	judge_outputs(a, old_text, !o.killed && o.status == r->status &&
		      r->status < 2);
	if (!o.killed && o.status == r->status && o.status == 0 &&
	    !(a->recipe->flags & CUTS))
		judge_db(a, before + r->runs);
	outcome_fini(&o);
}
