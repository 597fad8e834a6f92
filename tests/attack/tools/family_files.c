/*
 * Files: valid ones that were damaged, and what is no file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"

/* A recipe with inputs, and the path of one of them; in a folder, of a file. */
static bool choose_input(struct attack *a, unsigned without, char *path,
			 size_t size)
{
	do {
		a->words.n = a->inputs.n = a->outputs.n = 0;
		const struct recipe *r = recipe_any(a, 0, without);

		if (strchr(r->line, '@'))
			recipe_take(a, r);
	} while (!a->inputs.n);
	const char *name = a->inputs.v[below(a, a->inputs.n)];
	snprintf(path, size, "%s/%s", a->folder, name);
	return !strcmp(name, "t0.db");
}

static int not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void choose_inside(struct attack *a, char *path, size_t size)
{
	struct dirent **entry;
	int n = scandir(path, &entry, not_hidden, alphasort);
	size_t len = strlen(path);

	if (n <= 0)
		return;
	snprintf(path + len, size - len, "/%s",
		 entry[below(a, (uint64_t)n)]->d_name);
	for (int i = 0; i < n; i++)
		free(entry[i]);
	free(entry);
}

void attack_files(struct attack *a)
{
	char path[512];
	struct outcome o;
	const bool is_db = choose_input(a, MEANS, path, sizeof(path));

	choose_inside(a, path, sizeof(path));
	damage_file(a, path);
	/* A run that is damaged into one that takes long is none to wait for. */
	a->may_last = true;
	const int64_t before = is_db ? -1 : db_runs(a);
	launch(a, &o);
	judge(a, &o);
	if (!is_db)
		judge_db(a, a->recipe->flags & CUTS ? -1 : before);
	outcome_fini(&o);
}

/* ---- what is no file ---- */

/* Somebody opens the other end of a pipe, and writes a little. */
static pid_t feed_fifo(const char *path)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(60);
	int fd = open(path, O_WRONLY);
	if (fd >= 0 && write(fd, "\177ELF", 4) < 0)
		_exit(1);
	_exit(0);
}

/* Must it be trouble, whatever the file is for? */
static bool is_hopeless(enum special kind)
{
	return kind == SPECIAL_FOLDER || kind == SPECIAL_LOOP ||
	       kind == SPECIAL_NOWHERE;
}

void attack_specials(struct attack *a)
{
	const enum special kind = (enum special)below(a, SPECIAL_KINDS);
	char path[512];
	struct outcome o;
	pid_t feeder = 0;
	const bool is_db = choose_input(a, 0, path, sizeof(path));

	if (one_in(a, 2))
		choose_inside(a, path, sizeof(path));
	special_file(path, kind);
	if (kind == SPECIAL_FIFO)
		feeder = feed_fifo(path);
	a->may_last = kind == SPECIAL_FIFO || kind == SPECIAL_ZERO;
	launch(a, &o);
	if (feeder > 0)
		kill(feeder, SIGKILL), waitpid(feeder, NULL, 0);
	judge(a, &o);
	/* A model has files that it can do without. */
	if (is_hopeless(kind) && !o.killed && !strstr(path, "/model") &&
	    o.status != 2)
		fault(a, "ends with status %d where it cannot read %s",
		      o.status, strrchr(path, '/') + 1);
	if (!is_db)
		judge_db(a, -1);
	outcome_fini(&o);
}
