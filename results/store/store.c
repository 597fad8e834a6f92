/*
 * results/store/store.c - a connection to PostgreSQL by libpq, and its schema.
 */
#include "results/store/store.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS   UINT64_C(30000000000)
#define OPEN_TRIES    20
#define CONNECT_TRIES 3

/* libpq's interface, of which the names and numbers have not changed since 7.
 */
enum { CONNECTED = 0, COMMAND_OK = 1, TUPLES_OK = 2 };
#define FUNCTIONS(X) \
	X(connectdb, void *, (const char *conninfo)) \
	X(status, int, (const void *conn)) \
	X(errorMessage, char *, (const void *conn)) \
	X(finish, void, (void *conn)) \
	X(exec, void *, (void *conn, const char *sql)) \
	X(execParams, void *, \
	  (void *conn, const char *sql, int n, const unsigned *types, \
	   const char *const *values, const int *lengths, const int *formats, \
	   int result_format)) \
	X(resultStatus, int, (const void *result)) \
	X(resultErrorField, char *, (const void *result, int field)) \
	X(ntuples, int, (const void *result)) \
	X(getvalue, char *, (const void *result, int row, int column)) \
	X(cmdTuples, char *, (void *result)) \
	X(clear, void, (void *result))

struct store {
	void *lib, *conn;
	char *url;
	bool lost; /* the connection, while a statement ran */
#define POINTER(name, type, args) type(*name) args;
	FUNCTIONS(POINTER)
#undef POINTER
};

struct store_rows {
	struct store *s;
	void *result;
};

/* ---- connection ---- */

static bool load_library(struct store *s, struct err *e)
{
	s->lib = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
	if (!s->lib)
		return err_set(e, ERR_UNSUPPORTED,
			       "no libpq: %s; Debian's "
			       "package is libpq5",
			       dlerror());
#define LOAD(name, type, args) \
	*(void **)&s->name = dlsym(s->lib, "PQ" #name); \
	if (!s->name) \
		return err_set(e, ERR_UNSUPPORTED, "libpq has no PQ" #name);
	FUNCTIONS(LOAD)
#undef LOAD
	return true;
}

/* Without the password that a URL may hold. */
static bool connect_error(struct store *s, struct err *e)
{
	char text[400];
	size_t len;

	snprintf(text, sizeof(text), "%s", s->errorMessage(s->conn));
	len = strlen(text);
	while (len && text[len - 1] == '\n')
		text[--len] = 0;
	return err_set(e, ERR_IO, "the store does not answer: %s", text);
}

static bool connect_once(struct store *s, struct err *e)
{
	if (s->conn)
		s->finish(s->conn);
	s->conn = s->connectdb(s->url);
	s->lost = false;
	if (!s->conn)
		return err_set(e, ERR_NOMEM, "no connection to the store");
	return s->status(s->conn) == CONNECTED || connect_error(s, e);
}

bool store_reconnect(struct store *s, const _Atomic int *stop, struct err *e)
{
	uint64_t end_ns = time_mono_ns() + PATIENCE_NS;
	struct timespec pause = { 0, 20000000 };

	for (;;) {
		*e = (struct err){ 0 };
		if (connect_once(s, e))
			return true;
		if (time_mono_ns() > end_ns || *stop)
			return false;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 500000000)
			pause.tv_nsec *= 2;
	}
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (s->conn)
		s->finish(s->conn);
	/* Not dlclose(): libraries behind libpq keep threads' data. */
	free(s->url);
	free(s);
}

/* ---- statements ---- */

static bool query_error(struct store *s, const void *result, bool *lost,
			struct err *e)
{
	const char *state = s->resultErrorField(result, 'C');
	const char *text = s->resultErrorField(result, 'M');
	bool gone = s->status(s->conn) != CONNECTED ||
		    (state && !strncmp(state, "57P0", 4));

	s->lost |= gone;
	if (lost)
		*lost = gone;
	if (state && !strcmp(state, "42501"))
		return err_set(e, ERR_PERM,
			       "the store: %s; pushing needs the "
			       "role t0_runner, pulling t0_reader",
			       text);
	if (gone)
		return err_set(e, ERR_IO,
			       "the connection to the store was "
			       "lost");
	return err_set(
		e, state && !strncmp(state, "53", 2) ? ERR_IO : ERR_INPUT,
		"the store: %s%s%s%s", text ? text : s->errorMessage(s->conn),
		state ? " (" : "", state ? state : "", state ? ")" : "");
}

struct store_rows *store_query(struct store *s, const char *sql,
			       const char *param, bool *lost, struct err *e)
{
	void *result = param ? s->execParams(s->conn, sql, 1, NULL, &param,
					     NULL, NULL, 0) :
			       s->exec(s->conn, sql);
	int status = s->resultStatus(result);

	if (lost)
		*lost = false;
	if (status != COMMAND_OK && status != TUPLES_OK) {
		query_error(s, result, lost, e);
		s->clear(result);
		return NULL;
	}
	struct store_rows *r = xcalloc(1, sizeof(*r));
	*r = (struct store_rows){ s, result };
	return r;
}

int store_count(const struct store_rows *r)
{
	return r->s->ntuples(r->result);
}

const char *store_text(const struct store_rows *r, int row)
{
	return r->s->getvalue(r->result, row, 0);
}

int64_t store_added(const struct store_rows *r)
{
	return strtoll(r->s->cmdTuples(r->result), NULL, 10);
}

void store_rows_free(struct store_rows *r)
{
	if (!r)
		return;
	r->s->clear(r->result);
	free(r);
}

static bool run(struct store *s, const char *sql, struct err *e)
{
	struct store_rows *r = store_query(s, sql, NULL, NULL, e);
	bool ok = r != NULL;

	store_rows_free(r);
	return ok;
}

static bool query_number(struct store *s, const char *sql, int64_t *out,
			 struct err *e)
{
	struct store_rows *r = store_query(s, sql, NULL, NULL, e);

	*out = r && store_count(r) ? strtoll(store_text(r, 0), NULL, 10) : 0;
	bool ok = r != NULL;
	store_rows_free(r);
	return ok;
}

/* ---- schema ---- */

static const struct {
	int version;
	const char *sql;
} schema[] = {
#define STORE(version, ...) { version, #__VA_ARGS__ },
#include "results/store/store.def"
#undef STORE
};

static int newest_version(void)
{
	return schema[ARRAY_SIZE(schema) - 1].version;
}

/* 0: there is no schema. */
static bool read_version(struct store *s, int64_t *version, struct err *e)
{
	int64_t there;

	*version = 0;
	return query_number(s,
			    "SELECT (to_regclass('t0_schema') IS NOT NULL)"
			    "::int",
			    &there, e) &&
	       (!there || query_number(s, "SELECT max(version) FROM t0_schema",
				       version, e));
}

static bool apply(struct store *s, int64_t from, struct err *e)
{
	char number[96];

	for (size_t i = 0; i < ARRAY_SIZE(schema); i++)
		if (schema[i].version > from && !run(s, schema[i].sql, e))
			return false;
	snprintf(number, sizeof(number), "INSERT INTO t0_schema VALUES(%d)",
		 newest_version());
	return run(s, number, e);
}

/* One at a time: others wait at the lock, and find it done. */
static bool upgrade(struct store *s, struct err *e)
{
	int64_t version;
	bool ok = run(s, "BEGIN", e) &&
		  run(s, "SELECT pg_advisory_xact_lock(5587938120)", e) &&
		  run(s,
		      "CREATE TABLE IF NOT EXISTS t0_schema("
		      "version integer PRIMARY KEY)",
		      e) &&
		  read_version(s, &version, e) &&
		  (version >= newest_version() || apply(s, version, e));

	if (ok)
		return run(s, "COMMIT", e);
	run(s, "ROLLBACK", &(struct err){ 0 });
	return err_wrap(e,
			"the store has no schema of version %d yet; whoever "
			"owns the database makes it with one push",
			newest_version());
}

static bool check_schema(struct store *s, struct err *e)
{
	int64_t version;

	if (!run(s, "SET client_min_messages = warning", e) ||
	    !read_version(s, &version, e))
		return false;
	if (version > newest_version())
		return err_set(e, ERR_INPUT,
			       "the store has schema %lld, this "
			       "build knows %d; use the newer build",
			       (long long)version, newest_version());
	return version == newest_version() || upgrade(s, e);
}

/* Who is cut while a server greets is told as little as where there is none. */
static bool connect_first(struct store *s, struct err *e)
{
	const struct timespec pause = { 0, 50000000 };

	for (int tries = 1; !connect_once(s, e); tries++) {
		if (tries == CONNECT_TRIES)
			return false;
		*e = (struct err){ 0 };
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Whoever loses the connection in here begins anew; what was done stays. */
static bool open_schema(struct store *s, struct err *e)
{
	static const _Atomic int never;

	for (int tries = 1; !check_schema(s, e); tries++) {
		if (!s->lost || tries == OPEN_TRIES ||
		    !store_reconnect(s, &never, e))
			return false;
		*e = (struct err){ 0 };
	}
	return true;
}

struct store *store_open(const char *url, struct err *e)
{
	struct store *s = xcalloc(1, sizeof(*s));

	s->url = xstrdup(url);
	if (load_library(s, e) && connect_first(s, e) && open_schema(s, e))
		return s;
	store_close(s);
	return NULL;
}
