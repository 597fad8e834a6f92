/*
 * What holds for every run of every tool, whatever it was given.
 */
#include <jansson.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"

void fault(struct attack *a, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (a->fault.len)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_adds(&a->fault, text);
}

/* ---- how it ended ---- */

static bool has_text(const struct buf *b, const char *text)
{
	return b->len && memmem(b->data, b->len, text, strlen(text));
}

/* 0 yes, 1 no, 2 trouble, 3 fault, 77 no device: base/base.h. */
static bool is_usual(int status)
{
	return (status >= 0 && status <= 3) || status == 77;
}

bool status_is_free(const struct attack *a)
{
	const char *command = "";

	for (size_t i = 0; i < a->words.n; i++)
		if (!strcmp(a->words.v[i], "run") ||
		    !strcmp(a->words.v[i], "bisect"))
			command = a->words.v[i];
	return (!strcmp(a->tool, "t0-soft") && !strcmp(command, "run")) ||
	       (!strcmp(a->tool, "t0-results") && !strcmp(command, "bisect"));
}

static bool may_die(const struct attack *a, const struct outcome *o)
{
	if (o->status == a->signal || (o->stopped && o->status == SIGTERM))
		return true;
	return o->status == SIGPIPE && (a->stream[1] == STREAM_GONE ||
					a->stream[2] == STREAM_GONE);
}

static void judge_end(struct attack *a, const struct outcome *o)
{
	if (o->hung)
		fault(a, "does not end");
	else if (o->killed && !may_die(a, o))
		fault(a, "dies of signal %d (%s)", o->status,
		      strsignal(o->status));
	if (o->killed || o->hung)
		return;
	const bool by_signal =
		(a->signal && o->status == 128 + a->signal) ||
		(o->stopped && o->status == 128 + SIGTERM);
	if (!is_usual(o->status) && !by_signal && !status_is_free(a))
		fault(a, "ends with status %d", o->status);
}

/* ---- what it said ---- */

static const char *const confessions[] = {
	"Sanitizer", "runtime error:", "t0: bug at", "terminate called",
	"malloc():", "free():", "double free", "corrupted size",
	"stack smashing", "Assertion `", "pure virtual",
};

/* A terminal obeys it: C0 but newline and tab, DEL, and C1 as UTF-8. */
static bool is_control(const unsigned char *s, size_t left)
{
	return (*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f ||
	       (*s == 0xc2 && left > 1 && s[1] >= 0x80 && s[1] < 0xa0);
}

static void judge_controls(struct attack *a, const struct buf *b,
			   const char *where)
{
	for (size_t i = 0; i < b->len; i++)
		if (is_control((const unsigned char *)b->data + i,
			       b->len - i)) {
			fault(a, "%s holds the control byte 0x%02x",
			      where, (unsigned char)b->data[i]);
			return;
		}
}

/* Does a line begin with the tool's name? */
static bool names_tool(const struct attack *a, const struct buf *err)
{
	size_t len = strlen(a->tool);

	for (const char *s = err->data; s && *s;) {
		if (!strncmp(s, a->tool, len) && s[len] == ':')
			return true;
		s = strchr(s, '\n');
		s = s ? s + 1 : NULL;
	}
	return false;
}

static bool has_word(const struct attack *a, const char *word)
{
	for (size_t i = 0; i < a->words.n; i++)
		if (!strcmp(a->words.v[i], word))
			return true;
	return false;
}

/* A file that the recipe or a hostile word names gets what is said. */
static bool has_output(const struct attack *a)
{
	for (size_t i = 0; i < a->words.n; i++)
		if (!strncmp(a->words.v[i], "--output", 8) ||
		    !strncmp(a->words.v[i], "-o", 2))
			return true;
	return a->outputs.n;
}

static void judge_words(struct attack *a, const struct outcome *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(confessions); i++)
		if (has_text(&o->err, confessions[i]) &&
		    !status_is_free(a))
			fault(a, "says \"%s\"", confessions[i]);
	if (!status_is_free(a))
		judge_controls(a, &o->err, "stderr");
	if (o->killed || o->hung || a->stream[2] != STREAM_USUAL ||
	    status_is_free(a))
		return;
	if (o->status >= 2 && !names_tool(a, &o->err))
		fault(a, "ends with status %d and does not say why",
		      o->status);
	if (o->status == 1 && !o->out.len && !o->err.len &&
	    a->stream[1] == STREAM_USUAL && !has_output(a))
		fault(a, "says no without a word");
}

/* What prints tables, and no bytes of its inputs as they are. */
static bool prints_tables(const struct attack *a)
{
	static const char *const raw[] = {
		"asm", "generate", "run", "--csv", "--pack", "export", "bench",
		"bench-commits", "--term",
	};

	for (size_t i = 0; i < ARRAY_SIZE(raw); i++)
		if (has_word(a, raw[i]))
			return false;
	return strcmp(a->tool, "t0-cc") && a->stream[1] == STREAM_USUAL;
}

/* One JSON value behind another, all whole. */
static void judge_json(struct attack *a, const struct buf *b)
{
	size_t at = 0;

	while (at < b->len) {
		json_error_t why;
		json_t *j = json_loadb(b->data + at, b->len - at,
				       JSON_DISABLE_EOF_CHECK |
				       JSON_DECODE_ANY, &why);

		if (!j) {
			fault(a, "prints no JSON: %s", why.text);
			return;
		}
		json_decref(j);
		at += (size_t)why.position;
		at += strspn(b->data + at, " \n");
	}
}

static void judge_output(struct attack *a, const struct outcome *o)
{
	if (!prints_tables(a))
		return;
	judge_controls(a, &o->out, "stdout");
	/* The option may be another's value; a tool that fails is half done. */
	if (has_word(a, "--json") && !o->killed && o->status == 0 &&
	    o->out.len && (*o->out.data == '[' || *o->out.data == '{'))
		judge_json(a, &o->out);
}

void judge(struct attack *a, const struct outcome *o)
{
	judge_end(a, o);
	judge_words(a, o);
	judge_output(a, o);
}

void judge_exact(struct attack *a, const struct outcome *o, int status,
		 const char *text)
{
	judge(a, o);
	if (o->killed || o->status != status)
		fault(a, "ends with %s %d, wanted status %d",
		      o->killed ? "signal" : "status", o->status, status);
	if (text && !has_text(&o->err, text))
		fault(a, "does not say \"%s\"", text);
}

/* ---- what it did ---- */

static void judge_files(struct attack *a, const struct reference *r)
{
	struct buf files = { 0 };

	for (size_t i = 0; i < a->outputs.n; i++) {
		char path[512];
		struct err e = { 0 };

		snprintf(path, sizeof(path), "%s/%s", a->folder,
			 a->outputs.v[i]);
		file_read(path, 0, &files, &e);
		buf_addc(&files, '\0');
	}
	if (files.len != r->files.len ||
	    (files.len && memcmp(files.data, r->files.data, files.len)))
		fault(a, "writes another file than without the attack");
	buf_fini(&files);
}

void judge_work(struct attack *a, const struct outcome *o, bool or_trouble)
{
	const struct reference *r = recipe_reference(a);

	judge(a, o);
	if (!r->works || o->killed)
		return;
	if (or_trouble && o->status == 2 && r->status != 2)
		return;
	if (o->status != r->status)
		fault(a, "ends with status %d, wanted %d", o->status,
		      r->status);
	if (a->stream[1] == STREAM_USUAL && !(a->recipe->flags & VARIES) &&
	    (o->out.len != r->out.len ||
	     memcmp(o->out.data, r->out.data, r->out.len)))
		fault(a, "prints something else than without the attack");
	if (!(a->recipe->flags & STREAMS))
		judge_files(a, r);
}

void judge_outputs(struct attack *a, const char *old, bool complete)
{
	const struct reference *r = recipe_reference(a);
	size_t at = 0;

	if (!r->works || a->recipe->flags & STREAMS)
		return;
	for (size_t i = 0; i < a->outputs.n; i++) {
		char path[512];
		struct buf got = { 0 };
		struct err e = { 0 };
		const char *whole = r->files.data + at;
		size_t len = 0;

		/* Files may hold zeros; a single one has all up to the last. */
		len = a->outputs.n == 1 ? r->files.len - 1 : strlen(whole);
		at += len + 1;
		snprintf(path, sizeof(path), "%s/%s", a->folder,
			 a->outputs.v[i]);
		const bool there = access(path, F_OK) == 0 &&
				   file_read(path, 0, &got, &e);
		const bool is_whole = there && got.len == len &&
				      !memcmp(got.data ? got.data : "", whole,
					      len);
		const bool is_old = old ? there && got.len == strlen(old) &&
					  got.len && !memcmp(got.data, old,
							     got.len) :
					  !there;
		if (!is_whole && (complete || !is_old))
			fault(a, "leaves %s %s: %zu bytes of %zu",
			      a->outputs.v[i], there ? "half" : "out", got.len,
			      len);
		buf_fini(&got);
	}
}

/* ---- its database ---- */

static int64_t ask_number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	int64_t n = -2;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		n = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return n;
}

int64_t db_runs(struct attack *a)
{
	char path[256];
	sqlite3 *db;
	int64_t runs = -2;

	snprintf(path, sizeof(path), "%s/t0.db", a->folder);
	if (access(path, F_OK))
		return -1;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) ==
	    SQLITE_OK) {
		sqlite3_busy_timeout(db, 60000);
		if (ask_number(db, "SELECT count(*) = 1 FROM "
			       "pragma_integrity_check WHERE "
			       "integrity_check = 'ok'") == 1 &&
		    ask_number(db, "SELECT count(*) FROM "
			       "pragma_foreign_key_check") == 0)
			runs = ask_number(db, "SELECT count(*) FROM "
					  "sqlite_schema WHERE name = 'runs'");
		if (runs == 1)
			runs = ask_number(db, "SELECT count(*) FROM runs");
	}
	sqlite3_close(db);
	return runs;
}

void judge_db(struct attack *a, int64_t least_runs)
{
	const int64_t runs = db_runs(a);

	if (runs == -2)
		fault(a, "leaves a broken database");
	else if (runs < least_runs)
		fault(a, "leaves %jd runs of %jd in the database",
		      (intmax_t)runs, (intmax_t)least_runs);
}
