/*
 * results/cmd/experiments.c - the list of changes to try, and the rows of what
 * came of them.
 */
#include "results/cmd/experiment.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static const char *const kinds[] = { "commit", "patch", "env", "args" };

const char *change_kind_name(enum change_kind k)
{
	return kinds[k];
}

/* ------------------------------------------------------------- the list -- */

static char *trim_blanks(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	size_t len = strlen(s);
	while (len && isspace((unsigned char)s[len - 1]))
		s[--len] = 0;
	return s;
}

static bool read_patch(struct changes *l, struct change *c, struct err *e)
{
	struct buf b = { 0 };
	bool ok = file_read(c->what, 16 << 20, &b, e);

	if (ok)
		c->content = arena_strdup(&l->mem, b.len ? b.data : "");
	buf_fini(&b);
	return ok;
}

static bool take_line(struct changes *l, char *line, struct err *e)
{
	char *hypothesis = strstr(line, " : ");
	size_t kind = 0;

	if (hypothesis) {
		*hypothesis = 0;
		hypothesis += 3;
	}
	line = trim_blanks(line);
	size_t len = strcspn(line, " \t");
	while (kind < ARRAY_SIZE(kinds) &&
	       (strlen(kinds[kind]) != len || strncmp(kinds[kind], line, len)))
		kind++;
	const char *what = trim_blanks(line + len);
	if (kind == ARRAY_SIZE(kinds) || !*what)
		return err_set(e, ERR_INPUT, "got \"%s\", wanted \"commit "
			       "HASH\", \"patch FILE\", \"env NAME=VALUE...\" "
			       "or \"args WORD...\", and \" : \" before the "
			       "hypothesis", line);
	struct change *c = vec_add(l);
	c->kind = (enum change_kind)kind;
	c->what = arena_strdup(&l->mem, what);
	c->content = c->what;
	c->hypothesis = arena_strdup(&l->mem, hypothesis ?
				     trim_blanks(hypothesis) : "");
	return c->kind != CHANGE_PATCH || read_patch(l, c, e);
}

bool changes_read(struct changes *l, const char *path, struct err *e)
{
	struct file_lines lines;
	char *line;
	size_t len;
	bool ok = file_lines_open(&lines, path, 1 << 16, e);

	if (!ok)
		return false;
	while (ok && (ok = file_lines_next(&lines, &line, &len, e)) && line) {
		line = trim_blanks(line);
		if (*line && *line != '#' && !take_line(l, line, e))
			ok = err_wrap(e, "%s:%llu", path,
				      (unsigned long long)lines.line);
	}
	file_lines_close(&lines);
	return ok && (l->n || err_set(e, ERR_INPUT, "%s: no change is listed",
				      path));
}

void changes_fini(struct changes *l)
{
	vec_fini(l);
	arena_fini(&l->mem);
}

/* ----------------------------------------------------------------- rows -- */

static double number_or_nan(const char *s)
{
	return s ? strtod(s, NULL) : NAN;
}

bool experiment_find(struct res_db *db, const struct experiment_key *key,
		     const struct change *c, struct arena *mem,
		     struct outcome *o, struct err *e)
{
	struct table t;

	table_init(&t, "verdict,reason,row,gain,lo,hi,p");
	bool ok = res_query(db, &t, 0, e, "SELECT verdict, reason, measured, "
			    "gain, lo, hi, p FROM experiments WHERE "
			    "evaluator = ? AND base = ? AND processes = ? AND "
			    "kind = ? AND content = ? ORDER BY id DESC LIMIT 1",
			    "ttitt", key->evaluator, key->base,
			    (int64_t)key->processes, kinds[c->kind],
			    c->content);
	if (ok && t.n_rows) {
		const char **r = t.row[0];
		*o = (struct outcome){ arena_strdup(mem, r[0]),
				       arena_strdup(mem, r[1]),
				       arena_strdup(mem, r[2]),
				       number_or_nan(r[3]),
				       number_or_nan(r[4]),
				       number_or_nan(r[5]),
				       number_or_nan(r[6]), true };
	}
	table_fini(&t);
	return ok;
}

bool experiment_store(struct res_db *db, const struct experiment_key *key,
		      const struct change *c, const struct outcome *o,
		      struct err *e)
{
	int64_t host, build;
	char uuid[33];

	return res_uuid(uuid, e) && res_host_self(db, &host, e) &&
	       res_build_self(db, &build, e) && res_exec(db, e,
		"INSERT INTO experiments(uuid, created_ns, host, build, "
		"evaluator, base, processes, kind, what, content, hypothesis, "
		"verdict, reason, measured, gain, lo, hi, p) VALUES(?, ?, ?, "
		"?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		"tiiittittttttsdddd", uuid, (int64_t)time_wall_ns(), host,
		build, key->evaluator, key->base, (int64_t)key->processes,
		kinds[c->kind], c->what, c->content, c->hypothesis, o->verdict,
		o->reason, o->row, o->gain, o->lo, o->hi, o->p);
}
