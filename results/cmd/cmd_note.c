/*
 * results/cmd/cmd_note.c - the ledger of experiments.
 *
 * What was tried, and what came of it.
 */
#include "results/cmd/cmd.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "5%", "0.05", "1.05x": a gain as a share; NULL = not known. */
static bool parse_gain(const char *s, double *out, struct err *e)
{
	char *end;

	*out = NAN;
	if (!s)
		return true;
	double v = strtod(s, &end);
	if (end != s && isfinite(v)) {
		while (*end == ' ')
			end++;
		if (!strcmp(end, "%"))
			v /= 100;
		else if (!strcmp(end, "x"))
			v -= 1;
		if (!*end || !strcmp(end, "%") || !strcmp(end, "x")) {
			*out = v;
			return true;
		}
	}
	return err_set(e, ERR_USAGE, "\"%s\" is no gain; wanted a share or "
		       "ratio like 5%%, -0.05 or 1.05x", s);
}

/* ---- the same thing tried again ---- */

/* The words of four letters and more, each between blanks, in lower case. */
static void words_of(const char *s, struct buf *out)
{
	buf_addc(out, ' ');
	while (*s) {
		size_t len = 0;
		while (isalnum((unsigned char)s[len]) || s[len] == '_')
			len++;
		for (size_t i = 0; len >= 4 && i < len; i++)
			buf_addc(out, (char)tolower((unsigned char)s[i]));
		if (len >= 4)
			buf_addc(out, ' ');
		s += len ? len : 1;
	}
}

/* How many words of a are in b, and how many a has. */
static void count_common(const char *a, const char *b, int *common, int *total)
{
	*common = *total = 0;
	for (const char *p = a; p[0] && p[1];) {
		char word[72];
		size_t len = strcspn(p + 1, " ");
		snprintf(word, sizeof(word), " %.*s ",
			 len < 64 ? (int)len : 64, p + 1);
		*total += 1;
		*common += strstr(b, word) != NULL;
		p += len + 1;
	}
}

/* Half of the shorter one's words, and at least two, are in the other. */
static bool is_alike(const char *a, const char *b)
{
	struct buf wa = { 0 }, wb = { 0 };
	int ab, na, ba, nb;

	words_of(a, &wa);
	words_of(b, &wb);
	count_common(wa.data, wb.data, &ab, &na);
	count_common(wb.data, wa.data, &ba, &nb);
	buf_fini(&wa);
	buf_fini(&wb);
	int common = na < nb ? ab : ba, shorter = na < nb ? na : nb;
	return common >= 2 && 2 * common >= shorter;
}

#define NOTE_SQL \
	"SELECT note, created, status, CASE WHEN expected IS NOT NULL " \
	"THEN printf('%+.3g%%', 100 * expected) END, " \
	"CASE WHEN measured IS NOT NULL THEN printf('%+.3g%%', " \
	"100 * measured) END, about, hypothesis, git_commit, remark " \
	"FROM v_notes "
static const char note_columns[] =
	"#note,created,status,expected,measured,about,hypothesis,commit,remark";

static bool tell_earlier(struct show *s, struct err *e)
{
	const char *about = s->o.about;
	struct table t;
	bool any = false;

	table_init(&t, note_columns);
	bool ok = res_query(s->db, &t, 0, e,
			    NOTE_SQL "WHERE current ORDER BY note", "");
	for (int i = 0; ok && i < t.n_rows; i++) {
		const char **r = t.row[i];
		if (!is_alike(s->o.hypothesis, r[6]) &&
		    !(about && *about && !strcmp(about, r[5])))
			continue;
		cmd_remark(&s->cmd,
			   "tried before: note %s, %.10s, %s, measured "
			   "%s: %s%s%s",
			   r[0], r[1], r[2], r[4] ? r[4] : "nothing", r[6],
			   *r[8] ? "; " : "", r[8]);
		any = true;
	}
	if (ok && any)
		cmd_remark(&s->cmd, "(`t0-results note show N` has the rest)");
	table_fini(&t);
	return ok;
}

/* ---- verbs ---- */

static bool uuid_of(struct show *s, const char *name, struct buf *out,
		    struct err *e)
{
	struct table t;
	uint64_t n;

	if (!cli_u64(name, &n, e))
		return err_wrap(e, "note (its number from `note list`)");
	table_init(&t, "uuid");
	bool ok = res_query(s->db, &t, 0, e,
			    "SELECT uuid FROM notes WHERE id = ?", "i",
			    (int64_t)n);
	if (ok && !t.n_rows)
		ok = err_set(e, ERR_INPUT, "%s: there is no note %s",
			     res_db_path(s->db), name);
	if (ok)
		buf_adds(out, t.row[0][0]);
	table_fini(&t);
	return ok;
}

static bool add_note(struct show *s, struct err *e)
{
	const struct show_opts *o = &s->o;
	struct buf replaces = { 0 };
	double expected, measured;
	char uuid[33];

	if (!o->hypothesis || !o->status)
		return err_set(e, ERR_USAGE, "note add needs --hypothesis TEXT "
			       "and --status keep, discard, null, crash or "
			       "retracted");
	bool ok = parse_gain(o->expected, &expected, e) &&
		  parse_gain(o->measured, &measured, e) &&
		  (!o->replaces || uuid_of(s, o->replaces, &replaces, e)) &&
		  (s->cmd.quiet || tell_earlier(s, e)) && res_uuid(uuid, e) &&
		  res_exec(s->db, e,
			"INSERT INTO notes(uuid, created_ns, hypothesis, "
			"about, expected, measured, status, git_commit, patch, "
			"remark, replaces) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
			"titsddtssst", uuid, (int64_t)time_wall_ns(),
			o->hypothesis, o->about, expected, measured, o->status,
			o->commit, o->patch, o->remark, replaces.data);
	buf_fini(&replaces);
	return ok;
}

static bool list_notes(struct show *s, const char *text, struct err *e)
{
	struct table t;

	table_init(&t, note_columns);
	bool ok = res_query(s->db, &t, show_digits(s), e,
		NOTE_SQL "WHERE (current OR ?1) AND instr(lower(hypothesis "
		"|| ' ' || about || ' ' || remark || ' ' || patch || ' ' || "
		"git_commit || ' ' || status), lower(?2)) > 0 ORDER BY note",
		"it", (int64_t)s->o.all, text) &&
		cmd_table(&s->cmd, &t, e);

	if (ok && !t.n_rows)
		cmd_remark(&s->cmd, "%s holds no such notes; note add "
			   "--hypothesis TEXT writes one", res_db_path(s->db));
	table_fini(&t);
	return ok;
}

static bool show_note(struct show *s, const char *name, struct err *e)
{
	struct table t;
	struct buf uuid = { 0 };

	table_init(&t, "#note,uuid,created,hypothesis,about,#expected,"
		       "#measured,status,commit,patch,remark,replaces,"
		       "#current");
	bool ok = uuid_of(s, name, &uuid, e) &&
		  res_query(s->db, &t, show_digits(s), e,
			"SELECT note, uuid, created, hypothesis, about, "
			"expected, measured, status, git_commit, patch, "
			"remark, replaces, current FROM v_notes "
			"WHERE uuid = ?", "t", uuid.data);
	if (ok && s->cmd.format == TABLE_TEXT)
		ok = show_facts(s, &t, e);
	else if (ok)
		ok = cmd_table(&s->cmd, &t, e);
	buf_fini(&uuid);
	table_fini(&t);
	return ok;
}

bool res_cmd_note(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	const char *verb = c->argc ? c->argv[0] : "list";

	if (!strcmp(verb, "add") && c->argc == 1)
		return add_note(s, e);
	if (!strcmp(verb, "list") && c->argc <= 2)
		return list_notes(s, c->argc > 1 ? c->argv[1] : "", e);
	if (!strcmp(verb, "show") && c->argc == 2)
		return show_note(s, c->argv[1], e);
	return err_set(e, ERR_USAGE, "note: got \"%s\" with %d operands; "
		       "wanted add, list [TEXT] or show N", verb,
		       c->argc > 1 ? c->argc - 1 : 0);
}
