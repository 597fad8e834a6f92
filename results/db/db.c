/*
 * results/db/db.c - opening the database: what is refused, and how it is set
 * up.
 */
#include "results/db/res.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "results/stats/stats.h"

const char *res_path(const char *arg)
{
	const char *env = getenv("T0_DB");

	if (arg && *arg)
		return arg;
	return env && *env ? env : "t0.db";
}

const char *res_db_path(const struct res_db *db)
{
	return db->path;
}

static uint32_t read_be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static bool has_log(const char *path)
{
	static const char *const suffix[] = { "-wal", "-journal" };
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(suffix) && !found; i++) {
		struct buf name = { 0 };
		struct stat s;

		buf_printf(&name, "%s%s", path, suffix[i]);
		found = stat(name.data, &s) == 0 && s.st_size > 0;
		buf_fini(&name);
	}
	return found;
}

void res_remove(const char *path)
{
	static const char *const suffix[] = { "", "-wal", "-shm", "-journal" };

	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
		struct buf name = { 0 };

		buf_printf(&name, "%s%s", path, suffix[i]);
		unlink(name.data);
		buf_fini(&name);
	}
}

static bool check_file(const char *path, enum res_mode mode, struct err *e)
{
	struct stat s;

	if (stat(path, &s)) {
		if (errno != ENOENT)
			return err_sys(e, errno == EACCES ? ERR_PERM : ERR_IO,
				       errno, "%s", path);
		if (mode == RES_WRITE)
			return true;
		return err_set(e, ERR_IO,
			       "%s: there is no such database; a measuring "
			       "tool (t0-probe) creates it, --db or T0_DB "
			       "names another", path);
	}
	return S_ISREG(s.st_mode) ||
	       err_set(e, ERR_INPUT,
		       "%s: not a regular file; a database was wanted", path);
}

/* The first 100 bytes of a file: sqlite.org/fileformat.html, "Header". */
static bool check_magic(const char *path, const unsigned char *h,
			int64_t size_bytes, struct err *e)
{
	bool magic = !memcmp(h, "SQLite format 3", 16);

	if (magic && size_bytes >= 100)
		return true;
	return err_set(e, ERR_INPUT,
		       "%s: not a T0 database (%s); name another file with "
		       "--db or T0_DB", path,
		       magic ? "cut short in its header" : "no sqlite header");
}

/*
 * Page size at 16, change counter at 24, page count at 28, the counter for
 * which that count holds at 92.  sqlite itself notices a cut file only when it
 * happens to need a missing page.
 */
static bool check_size(const char *path, const unsigned char *h,
		       int64_t size_bytes, struct err *e)
{
	int64_t page = (int64_t)h[16] << 8 | h[17];

	if (page == 1) /* 64 KiB does not fit the field */
		page = 65536;
	if (read_be32(h + 24) != read_be32(h + 92) ||
	    size_bytes >= page * read_be32(h + 28))
		return true;
	return err_set(e, ERR_INPUT,
		       "%s: damaged: cut short, %lld bytes of %lld; restore a "
		       "copy, or save what is left: "
		       "sqlite3 '%s' .recover | sqlite3 new.db", path,
		       (long long)size_bytes,
		       (long long)(page * read_be32(h + 28)), path);
}

/*
 * Reads through sqlite's own descriptor: closing another one of the same file
 * would drop the POSIX locks of every handle that this process has on it.
 */
static bool check_header(struct res_db *db, struct err *e)
{
	unsigned char head[100] = { 0 };
	sqlite3_file *f = NULL;
	sqlite3_int64 size_bytes = 0;

	sqlite3_file_control(db->sq, "main", SQLITE_FCNTL_FILE_POINTER, &f);
	if (!f || !f->pMethods)
		return res_sql_err(db, SQLITE_CANTOPEN, e, "opening");
	int rc = f->pMethods->xFileSize(f, &size_bytes);
	if (rc == SQLITE_OK && !size_bytes)
		return true;
	if (rc == SQLITE_OK)
		rc = f->pMethods->xRead(f, head, sizeof(head), 0);
	/*
	 * While there is a log the file may still be shorter than it says; the
	 * log goes when the file is whole, so look for it before the size.
	 */
	bool log = has_log(db->path);
	if (rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ)
		rc = f->pMethods->xFileSize(f, &size_bytes);
	if (rc != SQLITE_OK)
		return res_sql_err(db, rc, e, "reading the header");
	return check_magic(db->path, head, size_bytes, e) &&
	       (log || check_size(db->path, head, size_bytes, e));
}

static void alive_function(sqlite3_context *ctx, int argc, sqlite3_value **v)
{
	(void)argc;
	const char *owner = (const char *)sqlite3_value_text(v[0]);
	sqlite3_result_int(ctx, owner && res_owner_alive(owner));
}

/* What t0_outliers() has seen; sqlite zeroes and frees it. */
struct seen {
	double *v;
	size_t n;
};

static void outliers_step(sqlite3_context *ctx, int argc, sqlite3_value **v)
{
	struct seen *x = sqlite3_aggregate_context(ctx, sizeof(*x));

	(void)argc;
	if (!x)
		return;
	x->v = xrealloc(x->v, (x->n + 1) * sizeof(*x->v));
	x->v[x->n++] = sqlite3_value_double(v[0]);
}

/* NULL of no samples. */
static void outliers_final(sqlite3_context *ctx)
{
	struct seen *x = sqlite3_aggregate_context(ctx, 0);

	if (!x)
		return;
	sqlite3_result_int64(ctx, (int64_t)res_outliers(x->v, x->n).outside);
	free(x->v);
}

static bool open_handle(struct res_db *db, const char *name, int flags,
			struct err *e)
{
	int rc = sqlite3_open_v2(name, &db->sq, flags, NULL);

	if (!db->sq)
		return err_set(e, ERR_NOMEM, "%s: no memory", db->path);
	if (rc == SQLITE_OK) {
		sqlite3_extended_result_codes(db->sq, 1);
		sqlite3_busy_timeout(db->sq, RES_BUSY_MS);
		rc = sqlite3_exec(db->sq, "PRAGMA foreign_keys = ON", NULL,
				  NULL, NULL);
	}
	if (rc == SQLITE_OK)
		rc = sqlite3_create_function(db->sq, "t0_alive", 1, SQLITE_UTF8,
					     NULL, alive_function, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_create_function(db->sq, "t0_outliers", 1,
					     SQLITE_UTF8, NULL, NULL,
					     outliers_step, outliers_final);
	if (rc != SQLITE_OK)
		return res_sql_err(db, rc, e, "opening");
	return check_header(db, e);
}

/* "file:/real/path?immutable=1": read without -shm and without locks. */
static char *immutable_name(const char *path)
{
	struct buf b = { 0 };
	char *real = realpath(path, NULL);

	buf_adds(&b, "file:");
	for (const char *p = real ? real : path; *p; p++) {
		if (strchr("%?#", *p))
			buf_printf(&b, "%%%02x", (unsigned char)*p);
		else
			buf_addc(&b, *p);
	}
	buf_adds(&b, "?immutable=1");
	free(real);
	return b.data;
}

static void drop_handle(struct res_db *db)
{
	for (int i = 0; i < db->n_stmt; i++)
		sqlite3_finalize(db->stmt[i]);
	db->n_stmt = 0;
	sqlite3_close(db->sq);
	db->sq = NULL;
}

/*
 * A reader of a WAL file needs FILE-shm, which it cannot create in a folder
 * that it may not write.  Without a log nobody is writing either, so the file
 * can be read as it lies.
 */
static bool open_read(struct res_db *db, int *version, struct err *e)
{
	struct err first = { 0 };

	db->read_only = true;
	if (!open_handle(db, db->path, SQLITE_OPEN_READONLY, e))
		return false;
	if (res_schema_check(db, version, &first))
		return true;
	if (first.code != ERR_PERM || has_log(db->path)) {
		if (e)
			*e = first;
		return false;
	}
	drop_handle(db);
	char *name = immutable_name(db->path);
	bool ok = open_handle(db, name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
			      e);
	free(name);
	return ok && res_schema_check(db, version, e);
}

/* sqlite does not wait for the lock here, so this does. */
static bool set_wal(struct res_db *db, struct err *e)
{
	uint64_t deadline_ns = time_mono_ns() + RES_BUSY_MS * 1000000ull;
	int rc;

	for (;;) {
		sqlite3_stmt *st = NULL;
		const char *mode = "";
		rc = sqlite3_prepare_v2(db->sq, "PRAGMA journal_mode = WAL", -1,
					&st, NULL);
		if (rc == SQLITE_OK)
			rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			mode = (const char *)sqlite3_column_text(st, 0);
		bool done = mode && !strcmp(mode, "wal");
		sqlite3_finalize(st);
		if (done)
			return true;
		if ((rc & 0xff) != SQLITE_BUSY || time_mono_ns() > deadline_ns)
			break;
		usleep(2000);
	}
	if (rc != SQLITE_ROW)
		return res_sql_err(db, rc, e, "opening for writing");
	return err_set(e, ERR_IO,
		       "%s: its file system cannot share memory between "
		       "processes, which a database needs; name a file on a "
		       "local disk with --db or T0_DB", db->path);
}

static bool open_write(struct res_db *db, int *version, struct err *e)
{
	if (!open_handle(db, db->path,
			 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e))
		return false;
	if (sqlite3_db_readonly(db->sq, "main") == 1)
		return err_set(e, ERR_PERM,
			       "%s: the file is read-only; make it writable "
			       "or name another with --db or T0_DB", db->path);
	/* Refuse foreign and newer files before changing a byte of them. */
	if (!res_schema_check(db, version, e))
		return false;
	/* FULL: a commit that was reported survives a power cut. */
	if (!set_wal(db, e) ||
	    !res_exec(db, e, "PRAGMA synchronous = FULL", ""))
		return false;
	if (*version == res_schema_version())
		return true;
	if (!res_schema_upgrade(db, e))
		return false;
	*version = res_schema_version();
	return true;
}

static struct res_db *open_once(const char *path, enum res_mode mode,
				int *version, struct err *e)
{
	if (!check_file(path, mode, e))
		return NULL;
	struct res_db *db = xcalloc(1, sizeof(*db));
	db->path = xstrdup(path);
	if (mode == RES_WRITE ? open_write(db, version, e)
			      : open_read(db, version, e))
		return db;
	res_close(db);
	return NULL;
}

/*
 * Readers cannot undo what a writer left half-done in a file that is not in WAL
 * mode (a copy by .recover, say), and sqlite tells them that it is read-only.
 */
static struct res_db *open_undone(const char *path, enum res_mode mode,
				  int *version, struct err *e)
{
	struct err first = { 0 };
	struct res_db *db = open_once(path, mode, version, &first);

	if (!db && mode == RES_READ && first.code == ERR_PERM &&
	    has_log(path)) {
		res_close(open_once(path, RES_WRITE, version, NULL));
		first = (struct err){ 0 };
		db = open_once(path, mode, version, &first);
	}
	if (!db && e)
		*e = first;
	return db;
}

struct res_db *res_open(const char *path, enum res_mode mode, struct err *e)
{
	int version = 0;

	path = res_path(path);
	struct res_db *db = open_undone(path, mode, &version, e);
	if (!db || version == res_schema_version())
		return db;
	/* Readers need today's views: bring the file forward, read again. */
	res_close(db);
	db = open_once(path, RES_WRITE, &version, e);
	if (!db) {
		err_wrap(e, "bringing schema %d forward to %d", version,
			 res_schema_version());
		return NULL;
	}
	res_close(db);
	return open_once(path, RES_READ, &version, e);
}

bool res_open_if(const char *path, struct res_db **out, struct err *e)
{
	bool named = path || getenv("T0_DB");

	*out = NULL;
	if (!named && access(res_path(path), F_OK) != 0 && errno == ENOENT)
		return true;
	*out = res_open(path, RES_READ, e);
	return *out != NULL;
}

void res_close(struct res_db *db)
{
	if (!db)
		return;
	drop_handle(db); /* rolls back what is not committed */
	free(db->stmt);
	free(db->path);
	free(db);
}
