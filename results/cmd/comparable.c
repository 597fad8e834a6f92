/*
 * results/cmd/comparable.c - what is compared with what, and what may not be.
 */
#include "results/cmd/cmd.h"

#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------- comparability -- */

static bool is_allowed(const struct cli_list *allow, const char *field)
{
	for (int i = 0; allow && i < allow->n; i++)
		if (!strcmp(allow->v[i], field) || !strcmp(allow->v[i], "all"))
			return true;
	return false;
}

/* Records the difference, if it is one. */
static bool is_same(const char *field, const char *a, const char *b,
		 const struct cli_list *allow, struct mismatch *m)
{
	a = a ? a : "absent";
	b = b ? b : "absent";
	if (!strcmp(a, b) || is_allowed(allow, field))
		return true;
	snprintf(m->field, sizeof(m->field), "%s", field);
	snprintf(m->a, sizeof(m->a), "%s", a);
	snprintf(m->b, sizeof(m->b), "%s", b);
	m->remedy = "";
	return false;
}

static bool is_same_identity(const char *field, const char *a, const char *b,
			     const struct cli_list *allow, struct mismatch *m)
{
	if (is_same(field, a, b, allow, m))
		return true;
	if (!res_is_same_algorithm(a, b))
		m->remedy = "; they were hashed by different algorithms, so "
			    "that they may be the same: measure again";
	return false;
}

static char *json_text(const json_t *v)
{
	return v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT |
			      JSON_SORT_KEYS) : NULL;
}

/* Only words and truths of the conditions count: numbers always vary. */
static bool is_word(const json_t *v)
{
	return !v || json_is_string(v) || json_is_boolean(v);
}

static bool same_keys(const char *what, json_t *a, json_t *b, bool words_only,
		      const struct cli_list *allow, struct mismatch *m)
{
	const char *key;
	json_t *va;
	bool ok = true;

	json_object_foreach(a, key, va) {
		char field[128];
		json_t *vb = json_object_get(b, key);
		if (words_only && (!is_word(va) || !is_word(vb)))
			continue;
		if (!strcmp(key, "shard")) /* which machine, not what */
			continue;
		snprintf(field, sizeof(field), "%s.%s", what, key);
		char *ta = json_text(va), *tb = json_text(vb);
		ok = is_same(field, ta, tb, allow, m);
		free(ta);
		free(tb);
		if (!ok)
			break;
	}
	return ok;
}

static bool same_json(const char *what, const char *a, const char *b,
		      bool words_only, const struct cli_list *allow,
		      struct mismatch *m)
{
	if (!strcmp(a, b))
		return true;
	json_t *ja = json_loads(a, 0, NULL), *jb = json_loads(b, 0, NULL);
	struct mismatch back;
	bool ok = same_keys(what, ja, jb, words_only, allow, m);

	if (ok && !same_keys(what, jb, ja, words_only, allow, &back)) {
		*m = back; /* found from the other side: turn it round */
		memcpy(m->a, back.b, sizeof(m->a));
		memcpy(m->b, back.a, sizeof(m->b));
		ok = false;
	}
	json_decref(ja);
	json_decref(jb);
	return ok;
}

bool pieces_comparable(const struct piece *a, const struct piece *b,
		       bool strict, const struct cli_list *allow,
		       struct mismatch *m)
{
	const struct facts *fa = a->facts, *fb = b->facts;
	bool measured = strcmp(a->origin, "published");

	return is_same("origin", a->origin, b->origin, allow, m) &&
	       is_same("unit", a->unit, b->unit, allow, m) &&
	       is_same("better", a->better, b->better, allow, m) &&
	       is_same("device", fa->device, fb->device, allow, m) &&
	       is_same("gfx", fa->gfx, fb->gfx, allow, m) &&
	       is_same("uid", fa->uid, fb->uid, allow, m) &&
	       (!strict ||
		is_same("driver", fa->driver, fb->driver, allow, m)) &&
	       (!measured ||
		is_same_identity("host", fa->machine, fb->machine, allow, m)) &&
	       same_json("inputs", fa->inputs, fb->inputs, false, allow, m) &&
	       same_json("conditions", fa->conditions, fb->conditions, true,
			 allow, m);
}

/* --------------------------------------------------------------- specs -- */

static bool is_number(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

static bool is_commit(const char *s)
{
	size_t len = strspn(s, "0123456789abcdef");

	return len >= 7 && (!s[len] || !strcmp(s + len, "+"));
}

static bool load_commit(struct show *s, const char *spec, struct pieces *out,
			struct err *e)
{
	char hash[80];
	size_t len = strcspn(spec, "+");
	int64_t dirty = spec[len] == '+';

	snprintf(hash, sizeof(hash), "%.*s", (int)len, spec);
	return pieces_of_results(s->db, out, e,
		"r.state = 'complete' AND b.dirty = ?2 "
		"AND length(b.git_commit) >= 7 AND "
		"(substr(b.git_commit, 1, length(?1)) = ?1 OR "
		"substr(?1, 1, length(b.git_commit)) = b.git_commit)",
		"ti", hash, dirty);
}

static bool load_here(struct show *s, const char *spec, struct pieces *out,
		      struct err *e)
{
	int64_t run;

	if (!strcmp(spec, "baseline"))
		return pieces_of_baselines(s->db, out, e, "active", "");
	if (!strncmp(spec, "commit:", 7))
		return load_commit(s, spec + 7, out, e);
	if (!strncmp(spec, "run:", 4))
		return show_find_run(s->db, spec + 4, &run, e) &&
		       pieces_of_results(s->db, out, e, "r.id = ?", "i", run);
	if (!is_number(spec) && is_commit(spec))
		return load_commit(s, spec, out, e);
	return show_find_run(s->db, spec, &run, e) &&
	       pieces_of_results(s->db, out, e, SIDE_OF_RUN, "i", run);
}

static bool load_other(struct show *s, const char *path, const char *spec,
		       struct pieces *out, struct err *e)
{
	struct show other = *s;

	other.db = res_open(path, RES_READ, e);
	bool ok = other.db && load_here(&other, spec, out, e);
	res_close(other.db);
	return ok;
}

static int by_measurement(const void *a, const void *b)
{
	const struct piece *pa = a, *pb = b;
	int c = piece_order(pa, pb);

	if (c)
		return c;
	c = (pa->facts->run > pb->facts->run) -
	    (pa->facts->run < pb->facts->run);
	return c ? c : (pa->id > pb->id) - (pa->id < pb->id);
}

void pieces_sort(struct pieces *p)
{
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_measurement);
}

/* --only and --metric: the pieces that match move to the front. */
static void keep_wanted(const struct show_opts *o, struct pieces *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct buf name = { 0 };
		const struct piece *v = &p->v[i];
		buf_printf(&name, "%s/%s", v->area, v->name);
		if ((!o->metric || !strcmp(o->metric, v->metric)) &&
		    (!o->only || !strcmp(o->only, v->name) ||
		     !fnmatch(o->only, name.data, 0)))
			p->v[n++] = *v;
		buf_fini(&name);
	}
	p->n = n;
}

bool side_load(struct show *s, const char *spec, struct pieces *out,
	       struct err *e)
{
	const char *colon = strrchr(spec, ':');
	char *path = xstrdup(spec);
	bool ok;

	if (colon)
		path[colon - spec] = 0;
	if (colon && access(path, F_OK) == 0)
		ok = load_other(s, path, colon + 1, out, e);
	else
		ok = load_here(s, spec, out, e);
	free(path);
	if (ok)
		keep_wanted(&s->o, out);
	if (ok && !out->n)
		ok = err_set(e, ERR_INPUT, "%s holds no such results; wanted a "
			     "run from `list`, \"last\", a commit of seven "
			     "digits or more (with \"+\" for a changed tree), "
			     "\"baseline\", or FILE.db:RUN", spec);
	if (!ok)
		return err_wrap(e, "side \"%s\"", spec);
	pieces_sort(out);
	return true;
}
