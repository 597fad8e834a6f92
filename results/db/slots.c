/*
 * results/db/slots.c - what discovery found, an opcode slot a row.
 */
#include "results/db/res.h"

#include <string.h>

#define COLUMNS \
	"encoding, opcode, form, mnemonic, verdict, signature, reason, " \
	"expected, oracle, emulated_ok, difference, errata"

bool res_slot_put(struct res_db *db, int64_t run, const struct res_slot *s,
		  struct err *e)
{
	if (!res_write_begin(db, e))
		return false;
	/* emulated_ok + 1 makes -1 NULL ('k'); SQL takes the 1 off again. */
	bool ok = res_exec(db, e,
		"INSERT INTO slot_verdicts(run, " COLUMNS ") "
		"VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? - 1, ?, ?) "
		"ON CONFLICT(run, encoding, opcode, form) DO UPDATE SET "
		"mnemonic = excluded.mnemonic, verdict = excluded.verdict, "
		"signature = excluded.signature, reason = excluded.reason, "
		"expected = excluded.expected, oracle = excluded.oracle, "
		"emulated_ok = excluded.emulated_ok, "
		"difference = excluded.difference, errata = excluded.errata",
		"ksisttssttkss", run, s->encoding, s->opcode, s->form,
		s->mnemonic, res_slot_verdict_name(s->verdict), s->signature,
		s->reason, s->expected, s->oracle,
		(int64_t)s->emulated_ok + 1, s->difference, s->errata);
	return res_write_end(db, ok, e) ||
	       err_wrap(e, "slot %s %lld of run %lld",
			s->encoding ? s->encoding : "", (long long)s->opcode,
			(long long)run);
}

static enum res_slot_verdict verdict_of(const char *word)
{
	for (int v = RES_SLOT_EXECUTES; v <= RES_SLOT_UNPROVEN; v++)
		if (word && !strcmp(word, res_slot_verdict_name(v)))
			return v;
	BUG("slot verdict '%s' passed the schema", word ? word : "NULL");
}

static const char *column_text(sqlite3_stmt *st, int col)
{
	return (const char *)sqlite3_column_text(st, col);
}

static void slot_load(struct res_slot *s, sqlite3_stmt *st)
{
	*s = (struct res_slot){
		.encoding = column_text(st, 0),
		.opcode = sqlite3_column_int64(st, 1),
		.form = column_text(st, 2),
		.mnemonic = column_text(st, 3),
		.verdict = verdict_of(column_text(st, 4)),
		.signature = column_text(st, 5),
		.reason = column_text(st, 6),
		.expected = column_text(st, 7),
		.oracle = column_text(st, 8),
		.emulated_ok = sqlite3_column_type(st, 9) == SQLITE_NULL ? -1 :
			       sqlite3_column_int(st, 9),
		.difference = column_text(st, 10),
		.errata = column_text(st, 11),
	};
}

/* One run's slots, in order, one at a time. */
struct cursor {
	sqlite3_stmt *st;
	struct res_slot slot;
	bool more;
};

static bool cursor_next(struct res_db *db, struct cursor *c, struct err *e)
{
	bool ok;

	c->more = res_step(db, c->st, &ok, e);
	if (c->more)
		slot_load(&c->slot, c->st);
	return ok;
}

static bool cursor_open(struct res_db *db, struct cursor *c, int64_t run,
			struct err *e)
{
	c->more = false;
	c->st = res_stmt(db, e,
			 "SELECT " COLUMNS " FROM slot_verdicts WHERE run = ? "
			 "ORDER BY encoding, opcode, form", "i", run);
	return c->st && cursor_next(db, c, e);
}

static void cursor_close(struct cursor *c)
{
	if (c->st)
		res_stmt_done(c->st);
}

bool res_slot_each(struct res_db *db, int64_t run,
		   bool (*fn)(void *ctx, const struct res_slot *s), void *ctx,
		   struct err *e)
{
	struct cursor c = { 0 };
	bool ok = cursor_open(db, &c, run, e);

	while (ok && c.more && fn(ctx, &c.slot))
		ok = cursor_next(db, &c, e);
	cursor_close(&c);
	return ok;
}

/* < 0: a comes first; a cursor at its end comes last. */
static int cursor_cmp(const struct cursor *a, const struct cursor *b)
{
	if (!a->more || !b->more)
		return b->more - a->more;
	int d = strcmp(a->slot.encoding, b->slot.encoding);
	if (d)
		return d;
	if (a->slot.opcode != b->slot.opcode)
		return a->slot.opcode < b->slot.opcode ? -1 : 1;
	return strcmp(a->slot.form, b->slot.form);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_finding(const struct res_slot *a, const struct res_slot *b)
{
	return a->verdict == b->verdict &&
	       same_text(a->signature, b->signature) &&
	       same_text(a->expected, b->expected) &&
	       same_text(a->difference, b->difference);
}

/* Signatures end in "#NAME:HEX" of all that the slot changed. */
static bool check_algorithms(struct res_db *db, int64_t old_run,
			     int64_t new_run, struct err *e)
{
	int64_t n;

	if (!res_query_int(db, &n, e,
			   "SELECT count(DISTINCT substr(hash, 1, "
			   "instr(hash, ':'))) FROM (SELECT substr(signature, "
			   "instr(signature, '#')) AS hash FROM slot_verdicts "
			   "WHERE run IN(?, ?) AND signature LIKE '%#%:%')",
			   "ii", old_run, new_run))
		return false;
	return n < 2 ||
	       err_set(e, ERR_UNSUPPORTED, "runs %lld and %lld hashed what "
		       "slots changed by different algorithms, so that it "
		       "cannot be compared; measure the older again",
		       (long long)old_run, (long long)new_run);
}

bool res_slot_diff(struct res_db *db, int64_t old_run, int64_t new_run,
		   bool (*fn)(void *ctx, const struct res_slot *was,
			      const struct res_slot *is),
		   void *ctx, struct err *e)
{
	struct cursor a = { 0 }, b = { 0 };
	bool go_on = true;

	if (!check_algorithms(db, old_run, new_run, e))
		return false;
	bool ok = cursor_open(db, &a, old_run, e) &&
		  cursor_open(db, &b, new_run, e);

	while (ok && go_on && (a.more || b.more)) {
		int d = cursor_cmp(&a, &b);
		if (d || !same_finding(&a.slot, &b.slot))
			go_on = fn(ctx, d <= 0 ? &a.slot : NULL,
				   d >= 0 ? &b.slot : NULL);
		if (d <= 0)
			ok = cursor_next(db, &a, e);
		if (ok && d >= 0)
			ok = cursor_next(db, &b, e);
	}
	cursor_close(&a);
	cursor_close(&b);
	return ok;
}
