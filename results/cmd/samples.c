/*
 * results/cmd/samples.c - results and baselines with their samples and facts.
 */
#include "base/vec.h"
#include "results/cmd/cmd.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct piece *add_piece(struct pieces *p)
{
	return vec_add(p);
}

void pieces_fini(struct pieces *p)
{
	free(p->v);
	arena_fini(&p->mem);
	*p = (struct pieces){ 0 };
}

/* Reads the columns of a row one after the other. */
struct cursor {
	sqlite3_stmt *st;
	struct arena *mem;
	int col;
};

static const char *next_text(struct cursor *c)
{
	const char *s = (const char *)sqlite3_column_text(c->st, c->col++);

	return s ? arena_strdup(c->mem, s) : NULL;
}

static int64_t next_integer(struct cursor *c)
{
	return sqlite3_column_int64(c->st, c->col++);
}

static double next_real(struct cursor *c)
{
	int col = c->col++;

	return sqlite3_column_type(c->st, col) == SQLITE_NULL ?
		       NAN : sqlite3_column_double(c->st, col);
}

/* ------------------------------------------------------------- columns -- */

/* In the order of struct facts' assignments below; ALIAS.column each. */
#define RUN_FACTS \
	"r.id, r.start_ns, r.uuid, r.tool, r.inputs, r.conditions, " \
	"h.machine, h.cpu, h.kernel, d.name, d.gfx, d.uid, d.driver, " \
	"d.firmware, b.git_commit, b.compiler, b.flags, b.binary, " \
	"coalesce(r.series, ''), coalesce(r.side, ''), b.dirty"
#define BASELINE_FACTS \
	"0, start_ns, run_uuid, tool, inputs, conditions, " \
	"machine, cpu, kernel, device_name, gfx, uid, driver, " \
	"firmware, git_commit, compiler, flags, binary, '', '', dirty"
#define N_FACTS 21

static const struct facts *read_facts(struct cursor *c)
{
	struct facts *f = arena_alloc(c->mem, sizeof(*f));

	f->run = next_integer(c);
	f->start_ns = next_integer(c);
	const char **word[] = {
		&f->uuid, &f->tool, &f->inputs, &f->conditions, &f->machine,
		&f->cpu, &f->kernel, &f->device, &f->gfx, &f->uid, &f->driver,
		&f->firmware, &f->commit, &f->compiler, &f->flags, &f->binary,
		&f->series, &f->side,
	};
	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		*word[i] = next_text(c);
	f->dirty = next_integer(c);
	return f;
}

static void read_piece(struct cursor *c, struct piece *p)
{
	p->id = next_integer(c);
	p->case_id = next_integer(c);
	const char **word[] = {
		&p->area, &p->name, &p->params, &p->metric, &p->unit,
		&p->better, &p->origin, &p->source, &p->correct, &p->coherent,
	};
	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		*word[i] = next_text(c);
	p->value = next_real(c);
	p->lo = next_real(c);
	p->hi = next_real(c);
	p->clock_hz = next_real(c);
	p->n = next_integer(c);
}

/* ------------------------------------------------------------- results -- */

/* Runs come one after the other, so only the last one's facts are needed. */
static const struct facts *facts_of_run(struct cursor *c,
					const struct facts *last)
{
	if (last && last->run == sqlite3_column_int64(c->st, 0)) {
		c->col = N_FACTS;
		return last;
	}
	return read_facts(c);
}

static bool read_results(struct res_db *db, struct pieces *p, sqlite3_stmt *st,
			 struct err *e)
{
	const struct facts *last = NULL;
	bool ok;

	while (res_step(db, st, &ok, e)) {
		struct cursor c = { st, &p->mem, 0 };
		struct piece *new = add_piece(p);
		new->facts = last = facts_of_run(&c, last);
		read_piece(&c, new);
	}
	res_stmt_done(st);
	return ok;
}

static bool read_samples(struct res_db *db, struct pieces *p, struct piece *v,
			 struct err *e)
{
	size_t cap = v->n > 0 && v->n < 1 << 20 ? (size_t)v->n : 16;
	double *x = xmalloc(cap * sizeof(*x));
	bool ok;
	sqlite3_stmt *st = res_stmt(db, e,
		"SELECT value FROM samples WHERE result = ? ORDER BY idx", "i",
		v->id);

	for (v->n_samples = 0; st && res_step(db, st, &ok, e);) {
		VEC_GROW(x, v->n_samples, 1, cap);
		x[v->n_samples++] = sqlite3_column_double(st, 0);
	}
	ok = st && ok;
	if (st)
		res_stmt_done(st);
	if (ok && v->n_samples) {
		v->samples = arena_alloc(&p->mem, v->n_samples * sizeof(*x));
		memcpy(v->samples, x, v->n_samples * sizeof(*x));
	}
	free(x);
	return ok;
}

bool pieces_of_results(struct res_db *db, struct pieces *p, struct err *e,
		       const char *where, const char *binds, ...)
{
	struct buf sql = { 0 };
	size_t from = p->n;
	va_list ap;

	buf_printf(&sql,
		   "SELECT " RUN_FACTS ", x.id, x.case_id, c.area, c.name, "
		   "c.params, x.metric, x.unit, x.better, x.origin, x.source, "
		   "w.correct, w.coherent, x.value, x.lo, x.hi, x.clock_hz, "
		   "x.n FROM runs r JOIN hosts h ON h.id = r.host "
		   "JOIN builds b ON b.id = r.build "
		   "LEFT JOIN devices d ON d.id = r.device "
		   "JOIN results x ON x.run = r.id "
		   "JOIN cases c ON c.id = x.case_id "
		   "JOIN v_results w ON w.result = x.id "
		   "WHERE %s ORDER BY r.id DESC, x.id", where);
	va_start(ap, binds);
	sqlite3_stmt *st = res_stmt_v(db, e, sql.data, binds, ap);
	va_end(ap);
	buf_fini(&sql);
	bool ok = st && read_results(db, p, st, e);
	for (size_t i = from; ok && i < p->n; i++)
		ok = read_samples(db, p, &p->v[i], e);
	return ok;
}

/* ----------------------------------------------------------- baselines -- */

static bool parse_samples(struct pieces *p, struct piece *v, const char *json,
			  struct err *e)
{
	json_t *a = json_loads(json, JSON_DECODE_INT_AS_REAL, NULL);

	if (!json_is_array(a)) {
		json_decref(a);
		return err_set(e, ERR_INPUT, "baseline %lld: its samples are "
			       "not a JSON array", (long long)v->id);
	}
	v->n_samples = json_array_size(a);
	v->samples = arena_alloc(&p->mem, v->n_samples * sizeof(double) + 1);
	for (size_t i = 0; i < v->n_samples; i++)
		v->samples[i] = json_real_value(json_array_get(a, i));
	json_decref(a);
	return true;
}

bool pieces_of_baselines(struct res_db *db, struct pieces *p, struct err *e,
			 const char *where, const char *binds, ...)
{
	struct buf sql = { 0 };
	bool ok;
	va_list ap;

	buf_printf(&sql,
		   "SELECT " BASELINE_FACTS ", baseline, case_id, area, name, "
		   "params, metric, unit, better, origin, source, correct, "
		   "coherent, value, lo, hi, clock_hz, n, uuid, created, "
		   "reason, samples, processes, loss_limit, required FROM v_baselines WHERE %s "
		   "ORDER BY created_ns DESC, baseline DESC", where);
	va_start(ap, binds);
	sqlite3_stmt *st = res_stmt_v(db, e, sql.data, binds, ap);
	va_end(ap);
	buf_fini(&sql);
	if (!st)
		return false;
	while (res_step(db, st, &ok, e)) {
		struct cursor c = { st, &p->mem, 0 };
		struct piece *v = add_piece(p);
		v->facts = read_facts(&c);
		read_piece(&c, v);
		v->baseline_uuid = next_text(&c);
		v->created = next_text(&c);
		v->reason = next_text(&c);
		ok = parse_samples(p, v, next_text(&c), e);
		v->n_processes = next_integer(&c);
		v->limit = next_real(&c);
		v->required = next_integer(&c);
		if (!ok)
			break;
	}
	res_stmt_done(st);
	return ok;
}

/* --------------------------------------------------------------- names -- */

int piece_order(const struct piece *a, const struct piece *b)
{
	const char *const pa[] = { a->area, a->name, a->params, a->metric };
	const char *const pb[] = { b->area, b->name, b->params, b->metric };
	int c = 0;

	for (size_t i = 0; !c && i < ARRAY_SIZE(pa); i++)
		c = strcmp(pa[i], pb[i]);
	return (c > 0) - (c < 0);
}

void piece_name(const struct piece *p, struct buf *out)
{
	buf_printf(out, "%s/%s", p->area, p->name);
	if (strcmp(p->params, "{}"))
		buf_printf(out, " %s", p->params);
}

void piece_title(const struct piece *p, struct buf *out)
{
	json_t *params = json_loads(p->params, 0, NULL), *value;
	const char *key;

	buf_printf(out, "%s/%s", p->area, p->name);
	json_object_foreach(params, key, value) {
		char *text = json_is_string(value) ? NULL :
			     json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
					       JSON_REAL_PRECISION(6));

		buf_printf(out, " %s=%s", key,
			   text ? text : json_string_value(value));
		free(text);
	}
	json_decref(params);
}
