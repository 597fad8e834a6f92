/*
 * results/cmd/cmd_push.c - the lines of an export, to and from a shared store.
 *
 * Lines go in batches, each a transaction of its own.  Where the connection is
 * lost nobody knows whether the last batch was stored, so it is sent again: the
 * store knows lines by a hash of their content and takes each once.
 */
#include "results/cmd/import.h"
#include "results/store/store.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define BATCH_LINES 1000
#define BATCH_BYTES ((size_t)1 << 20)
#define FETCH	    "FETCH 1000 FROM lines"
#define TRIES	    20 /* of a whole pull */

struct push {
	struct show *s;
	struct store *store;
	struct buf batch;
	int lines;
	char run[64]; /* uuid of the run that lines belong to; "": of none */
	int64_t seq, same; /* line of the run; how often the last one came */
	XXH128_hash_t last;
	int64_t sent, added;
};

static const char insert_sql[] =
	"INSERT INTO t0_rows(hash, kind, run, seq, schema, line) "
	"SELECT hash, kind, run, seq, schema, line FROM json_to_recordset("
	"$1::json) AS r(hash text, kind text, run text, seq bigint, "
	"schema integer, line text) ON CONFLICT DO NOTHING";

static bool send_batch(struct push *p, struct err *e)
{
	bool lost = false;

	if (!p->lines)
		return true;
	buf_addc(&p->batch, ']');
	for (;;) {
		struct store_rows *r = store_query(p->store, insert_sql,
						   p->batch.data, &lost, e);
		if (r) {
			p->added += store_added(r);
			store_rows_free(r);
			break;
		}
		if (!lost || !store_reconnect(p->store, p->s->cmd.stop, e))
			return false;
		*e = (struct err){ 0 };
	}
	p->sent += p->lines;
	p->lines = 0;
	buf_reset(&p->batch);
	return true;
}

/* Runs begin with themselves; what is behind the last one's names its own. */
static void enter_line(struct push *p, const char *kind, const json_t *body)
{
	static const char *const of_run[] = { "run", "result", "verdict",
					      "slot" };
	const char *uuid = json_string_value(json_object_get(body, "uuid"));
	bool belongs = false;

	for (size_t i = 0; i < ARRAY_SIZE(of_run); i++)
		belongs |= !strcmp(kind, of_run[i]);
	if (!strcmp(kind, "run"))
		snprintf(p->run, sizeof(p->run), "%s", uuid ? uuid : "");
	if (!strcmp(kind, "run") || !belongs)
		p->seq = 0;
	if (!belongs)
		*p->run = 0;
	p->seq++;
}

/* Lines that are the same twice in a row of one run are two. */
static void hash_line(struct push *p, const char *line, size_t len,
		      char out[33])
{
	XXH3_state_t *x = XXH3_createState();

	if (!x)
		mem_ran_out(576, MEM_HERE);
	XXH3_128bits_reset(x);
	XXH3_128bits_update(x, p->run, strlen(p->run) + 1);
	XXH3_128bits_update(x, line, len);
	XXH128_hash_t h = XXH3_128bits_digest(x);
	p->same = XXH128_isEqual(h, p->last) ? p->same + 1 : 0;
	p->last = h;
	XXH3_128bits_update(x, &p->same, sizeof(p->same));
	h = XXH3_128bits_digest(x);
	XXH3_freeState(x);
	snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.high64,
		 (unsigned long long)h.low64);
}

static bool add_line(struct push *p, const json_t *object, const char *line,
		     size_t len, struct err *e)
{
	json_t *o = (json_t *)(uintptr_t)object;
	const char *kind = json_object_iter_key(json_object_iter(o));
	char hash[33];

	if (!kind || !strcmp(kind, "t0"))
		return true;
	enter_line(p, kind, json_object_get(object, kind));
	hash_line(p, line, len, hash);
	json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:i, s:s%}", "hash", hash,
				"kind", kind, "run", p->run, "seq",
				(json_int_t)p->seq, "schema",
				res_schema_version(), "line", line, len);
	char *text = row ? json_dumps(row, JSON_COMPACT) : NULL;
	buf_addc(&p->batch, p->lines++ ? ',' : '[');
	if (text)
		buf_adds(&p->batch, text);
	free(text);
	json_decref(row);
	if (!text)
		return err_set(e, ERR_INPUT, "a line that is not UTF-8");
	return (p->lines < BATCH_LINES && p->batch.len < BATCH_BYTES) ||
	       send_batch(p, e);
}

static bool put_line(void *ctx, const char *line, size_t len, struct err *e)
{
	struct push *p = ctx;
	json_error_t je;
	json_t *o = json_loadb(line, len, JSON_ALLOW_NUL, &je);
	bool ok = !*p->s->cmd.stop && o && add_line(p, o, line, len, e);

	json_decref(o);
	if (!ok && !o)
		return err_set(e, ERR_INPUT, "%s", je.text);
	if (*p->s->cmd.stop)
		return err_set(e, ERR_STOPPED, "the same command goes on with "
			       "what is missing");
	return ok;
}

bool res_cmd_push(struct cmd *c, struct err *e)
{
	struct push p = { .s = (struct show *)c };

	p.store = store_open(c->argv[0], e);
	bool ok = p.store && res_export(p.s->db, false, put_line, &p, e) &&
		  send_batch(&p, e);
	store_close(p.store);
	buf_fini(&p.batch);
	if (ok)
		cmd_remark(c, "%lld of %lld rows were new to the store",
			   (long long)p.added, (long long)p.sent);
	return ok;
}

/* ---- pull ---- */

/* Of each run what was said of it last, then all that belongs to it. */
static const char lines_sql[] =
	"DECLARE lines NO SCROLL CURSOR FOR "
	"SELECT line FROM t0_rows x WHERE kind <> 'run' OR id IN "
	"(SELECT id FROM t0_runs) ORDER BY CASE kind WHEN 'baseline' THEN 1 "
	"WHEN 'note' THEN 2 WHEN 'calibration' THEN 3 WHEN 'experiment' THEN 4 "
	"WHEN 'check' THEN 5 WHEN 'tune' THEN 6 ELSE 0 END, run, "
	"kind <> 'run', seq, id";

static bool begin_pull(struct store *s, bool *lost, struct err *e)
{
	const char *const sql[] = {
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", lines_sql
	};
	struct store_rows *r = store_query(s, "SELECT coalesce(max(schema), 0) "
					   "FROM t0_rows", NULL, lost, e);
	int64_t schema = r ? strtoll(store_text(r, 0), NULL, 10) : 0;
	bool ok = r != NULL;

	store_rows_free(r);
	if (ok && schema > res_schema_version())
		return err_set(e, ERR_INPUT, "the store has rows of schema "
			       "%lld, this build knows %d; use the newer build",
			       (long long)schema, res_schema_version());
	for (size_t i = 0; ok && i < ARRAY_SIZE(sql); i++) {
		r = store_query(s, sql[i], NULL, lost, e);
		ok = r != NULL;
		store_rows_free(r);
	}
	return ok;
}

static bool take_lines(struct store *s, struct res_import *im, bool *lost,
		       const _Atomic int *stop, struct err *e)
{
	for (;;) {
		struct store_rows *r = store_query(s, FETCH, NULL, lost, e);
		int n = r ? store_count(r) : 0;
		bool ok = r != NULL;
		for (int i = 0; ok && i < n; i++) {
			const char *line = store_text(r, i);
			ok = import_line(im, line, strlen(line), e);
		}
		store_rows_free(r);
		if (ok && *stop)
			ok = err_set(e, ERR_STOPPED, "nothing was taken");
		if (!ok || !n)
			return ok;
	}
}

/* All of it in one transaction of ours. */
static bool pull_once(struct show *s, struct store *store, int64_t *runs,
		      int64_t *known, bool *lost, struct err *e)
{
	struct res_import *im = import_new(s->db, e);
	char head[64];

	if (!im)
		return false;
	snprintf(head, sizeof(head), "{\"t0\":{\"export\":1,\"schema\":%d}}",
		 res_schema_version());
	bool ok = import_line(im, head, strlen(head), e) &&
		  begin_pull(store, lost, e) &&
		  take_lines(store, im, lost, s->cmd.stop, e);
	ok = import_end(im, ok, runs, known, e) && ok;
	store_rows_free(store_query(store, "ROLLBACK", NULL, NULL,
				    &(struct err){ 0 }));
	return ok;
}

static bool pull_all(struct show *s, struct store *store, int64_t *runs,
		     int64_t *known, struct err *e)
{
	for (int tries = 1;; tries++) {
		bool lost = false;
		if (pull_once(s, store, runs, known, &lost, e))
			return true;
		if (!lost || tries == TRIES ||
		    !store_reconnect(store, s->cmd.stop, e))
			return false;
		*e = (struct err){ 0 };
	}
}

bool res_cmd_pull(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	int64_t runs, known, joined;
	struct store *store = store_open(c->argv[0], e);
	bool ok = store && pull_all(s, store, &runs, &known, e) &&
		  res_shards_join(s->db, &joined, e);

	store_close(store);
	if (ok)
		cmd_remark(c, "%lld new runs, %lld were here already",
			   (long long)runs, (long long)known);
	return ok;
}
