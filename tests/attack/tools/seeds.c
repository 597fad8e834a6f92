/*
 * The inputs of recipes: seeds.sh makes them with the tools, and here are
 * databases as every version of the schema made them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"

static const struct {
	int version;
	const char *sql;
} schema[] = {
#define SQL(version, ...) { version, #__VA_ARGS__ },
#include "results/db/schema.def"
#undef SQL
};

static bool run_sql(sqlite3 *db, const char *sql, struct err *e)
{
	char *said = NULL;
	bool ok = sqlite3_exec(db, sql, NULL, NULL, &said) == SQLITE_OK ||
		  err_set(e, ERR_INPUT, "%s: %.60s", said ? said : "?", sql);

	sqlite3_free(said);
	return ok;
}

/* A run, a case and a result, as version `last` had them. */
static bool make_version(const char *path, int last, struct err *e)
{
	sqlite3 *db;
	char sql[128];
	bool ok = sqlite3_open(path, &db) == SQLITE_OK ||
		  err_set(e, ERR_IO, "%s: cannot open", path);

	for (size_t i = 0; ok && i < ARRAY_SIZE(schema); i++)
		if (schema[i].version <= last)
			ok = run_sql(db, schema[i].sql, e);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d; "
		 "PRAGMA application_id = 0x54306462", last);
	ok = ok && run_sql(db, sql, e) &&
	     run_sql(db,
		"INSERT INTO hosts VALUES(1, 'm', 'c', 'k', 1, 2);"
		"INSERT INTO builds VALUES(1, '0', 'abc', 0, 'gcc', '', 'b');"
		"INSERT INTO runs(id, uuid, host, build, tool, argv, inputs, "
		"seed, start_ns, end_ns, state, exit_code, owner) VALUES(1, "
		"'u', 1, 1, 't', 't', '{}', 7, 5, 6, 'complete', 0, '');"
		"INSERT INTO cases(id, area, name, params) VALUES(1, 'a', 'n', "
		"'{}');", e);
	sqlite3_close(db);
	return ok;
}

static bool make_versions(const struct campaign *c, struct err *e)
{
	int newest = 0;
	bool ok = true;

	for (size_t i = 0; i < ARRAY_SIZE(schema); i++)
		if (schema[i].version > newest)
			newest = schema[i].version;
	for (int v = 1; ok && v <= newest; v++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/seeds/v%d.db", c->scratch, v);
		ok = make_version(path, v, e);
	}
	return ok;
}

bool seeds_make(struct campaign *c, struct err *e)
{
	struct buf line = { 0 };

	buf_printf(&line, "mkdir -p '%s/seeds' && cd '%s/seeds' && "
		   "T0_BUILD='%s' T0_SRC='%s' sh '%s/tests/attack/tools/"
		   "seeds.sh'", c->scratch, c->scratch, c->build, c->source,
		   c->source);
	bool ok = system(line.data) == 0 ||
		  err_set(e, ERR_INPUT, "seeds.sh failed");
	buf_fini(&line);
	return ok && make_versions(c, e);
}

/* ---- into an attack's folder ---- */

static bool copy_file(const char *from, const char *to)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	bool ok = file_read(from, 0, &text, &e);
	int fd = ok ? open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;

	ok = fd >= 0 && write(fd, text.data ? text.data : "", text.len) ==
				(ssize_t)text.len;
	if (fd >= 0) {
		fchmod(fd, 0666);
		close(fd);
	}
	buf_fini(&text);
	return ok;
}

static bool copy_tree(const char *from, const char *to)
{
	DIR *d = opendir(from);
	bool ok = true;

	if (!d)
		return errno == ENOTDIR && copy_file(from, to);
	if (mkdir(to, 0777) || chmod(to, 0777))
		ok = errno == EEXIST;
	for (struct dirent *f; ok && (f = readdir(d));) {
		char a[512], b[512];

		if (f->d_name[0] == '.')
			continue;
		snprintf(a, sizeof(a), "%s/%s", from, f->d_name);
		snprintf(b, sizeof(b), "%s/%s", to, f->d_name);
		ok = copy_tree(a, b);
	}
	closedir(d);
	return ok;
}

bool seed_copy(struct attack *a, const char *name)
{
	char from[256], to[512];

	snprintf(from, sizeof(from), "%s/seeds/%s", a->c->scratch, name);
	snprintf(to, sizeof(to), "%s/%s", a->folder, name);
	return copy_tree(from, to);
}

static int not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

const char *seed_any(struct attack *a)
{
	/* The same list all the time, in every worker. */
	static struct dirent **entry;
	static int n;
	char path[128];

	snprintf(path, sizeof(path), "%s/seeds", a->c->scratch);
	if (!n)
		n = scandir(path, &entry, not_hidden, alphasort);
	return n > 0 ? entry[below(a, (uint64_t)n)]->d_name : "saxpy.co";
}

void remove_tree(const char *path)
{
	struct stat s;

	if (lstat(path, &s))
		return;
	if (!S_ISDIR(s.st_mode)) {
		unlink(path);
		return;
	}
	chmod(path, 0700);
	DIR *d = opendir(path);
	for (struct dirent *f; d && (f = readdir(d));) {
		char *one = NULL;

		if (!strcmp(f->d_name, ".") || !strcmp(f->d_name, ".."))
			continue;
		if (asprintf(&one, "%s/%s", path, f->d_name) > 0)
			remove_tree(one);
		free(one);
	}
	if (d)
		closedir(d);
	rmdir(path);
}
