/*
 * autotune/card/read.c - what a card measured, from a file of `t0-results
 * export` or a database.
 *
 * Of one case the newest row counts; rows of runs that did not end well, and
 * those whose values were wrong, do not.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card.h"
#include "base/vec.h"

/* A row, from wherever. */
struct row {
	const char *area, *name, *params, *metric, *origin, *device;
	struct card_value v;
};

struct reader {
	struct card_data *d;
	struct card_list list;
	bool any; /* d->origin is set */
};

/* ---- cases ---- */

/* Is the value of `key` in the params this text? */
static bool has_value(const json_t *params, const char *key, size_t key_len,
		      const char *want, size_t want_len)
{
	char name[48], text[48] = "";

	snprintf(name, sizeof(name), "%.*s", (int)key_len, key);
	const json_t *v = json_object_get(params, name);

	if (json_is_integer(v))
		snprintf(text, sizeof(text), "%lld",
			 (long long)json_integer_value(v));
	else if (json_is_string(v))
		snprintf(text, sizeof(text), "%.47s", json_string_value(v));
	return strlen(text) == want_len && !memcmp(text, want, want_len);
}

/* "key=value key=value", all of which have to be so. */
static bool is_where(const char *where, const json_t *params)
{
	while (*where) {
		const size_t n = strcspn(where, " ");
		const size_t key = strcspn(where, "=");

		if (!has_value(params, where, key, where + key + 1,
			       n - key - 1))
			return false;
		where += n + strspn(where + n, " ");
	}
	return true;
}

static void take_points(struct reader *r, const struct row *x,
			const json_t *params)
{
	for (int i = 0; i < r->list.n; i++) {
		const struct card_point *p = &r->list.v[i];

		if (!strcmp(p->area, x->area) && !strcmp(p->name, x->name) &&
		    !strcmp(p->metric, x->metric) &&
		    (*p->where ? is_where(p->where, params) :
				 !json_object_size(params)))
			r->d->point[i] = x->v;
	}
}

static void take_load(struct card_data *d, const struct row *x,
		      const json_t *params)
{
	const int pause = (int)json_integer_value(
		json_object_get(params, "pause_percent"));
	int i = 0;

	while (i < d->n_loads && d->load[i].pause_percent != pause)
		i++;
	if (i == (int)ARRAY_SIZE(d->load))
		return;
	if (i == d->n_loads)
		d->load[d->n_loads++] = (struct card_load){
			.pause_percent = pause };
	if (!strcmp(x->metric, "clock"))
		d->load[i].clock = x->v;
	else if (!strcmp(x->metric, "share"))
		d->load[i].share = x->v;
}

static void take_gemm(struct card_data *d, const struct row *x,
		      const json_t *params)
{
	const char *object = json_string_value(json_object_get(params,
							       "object"));
	const json_int_t i = json_integer_value(json_object_get(params,
								"number"));

	if (i < 1 || i > CARD_GEMMS_MAX || strcmp(x->metric, "time") != 0)
		return;
	d->gemm[i - 1] = x->v;
	snprintf(d->object[i - 1], sizeof(d->object[i - 1]), "%s",
		 object ? object : "");
}

/* Rows of several origins never meet: those of the first one count. */
static bool take_origin(struct reader *r, const struct row *x)
{
	struct card_data *d = r->d;
	enum res_origin o = RES_HARDWARE;

	while (o < RES_PUBLISHED && strcmp(res_origin_name(o), x->origin) != 0)
		o++;
	if (!r->any) {
		r->any = true;
		d->origin = o;
		snprintf(d->device, sizeof(d->device), "%s",
			 x->device ? x->device : "");
	}
	d->mixed += o != d->origin;
	return o == d->origin;
}

static bool is_of_kit(const struct row *x)
{
	static const char *const areas[] = { "cost", "memory", "lds", "branch",
					     "dispatch", "clock", "card" };

	for (size_t i = 0; i < ARRAY_SIZE(areas); i++)
		if (!strcmp(areas[i], x->area))
			return strcmp(x->origin, "hardware") == 0 ||
			       strcmp(x->origin, "simulated") == 0;
	return false;
}

static void take_row(struct reader *r, const struct row *x)
{
	json_t *params;

	if (!is_of_kit(x) || !(x->v.value > 0) || !take_origin(r, x))
		return;
	params = json_loads(x->params, 0, NULL);
	if (!strcmp(x->area, "clock"))
		take_load(r->d, x, params);
	else if (!strcmp(x->area, "card"))
		take_gemm(r->d, x, params);
	else
		take_points(r, x, params);
	json_decref(params);
}

/* ---- a database ---- */

static const char query[] =
	"SELECT area, name, params, metric, origin, coalesce(device_name, ''), "
	"value, coalesce(lo, value), coalesce(hi, value), coalesce(clock_hz, "
	"0), n, coalesce(correct, '') FROM v_results "
	"WHERE state = 'complete' AND area IN ('cost', 'memory', 'lds', "
	"'branch', 'dispatch', 'clock', 'card') "
	"AND origin IN ('hardware', 'simulated') ORDER BY origin, start_ns, "
	"result";
enum { AREA, NAME, PARAMS, METRIC, ORIGIN, DEVICE, VALUE, LO, HI, CLOCK, N,
       CORRECT };

static void take_cells(struct reader *r, const char *const *c)
{
	const struct row x = {
		.area = c[AREA], .name = c[NAME], .params = c[PARAMS],
		.metric = c[METRIC], .origin = c[ORIGIN], .device = c[DEVICE],
		.v = { strtod(c[VALUE], NULL), strtod(c[LO], NULL),
		       strtod(c[HI], NULL), strtod(c[CLOCK], NULL),
		       strtoll(c[N], NULL, 10) },
	};

	if (!strcmp(c[CORRECT], "fail"))
		r->d->failed++;
	else
		take_row(r, &x);
}

bool card_read_db(struct card_data *d, struct res_db *db, struct err *e)
{
	struct reader r = { .d = d };
	struct table t;

	*d = (struct card_data){ 0 };
	card_list_init(&r.list);
	table_init(&t, "area,name,params,metric,origin,device,value,lo,hi,"
		       "clock,n,correct");
	bool ok = res_query(db, &t, 0, e, query, "");

	for (int i = 0; ok && i < t.n_rows; i++)
		take_cells(&r, t.row[i]);
	table_fini(&t);
	return ok;
}

/* ---- an export ---- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static double number_of(const json_t *o, const char *key, double none)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : none;
}

/* The lines of one run, kept until it is known which were wrong. */
struct run {
	bool complete;
	char device[96];
	json_t **result; /* [n] */
	size_t n, cap;
	json_t *wrong; /* an array of cases */
};

static bool is_wrong(const struct run *run, json_t *of)
{
	size_t i;
	json_t *v;

	json_array_foreach(run->wrong, i, v)
		if (json_equal(v, of))
			return true;
	return false;
}

static void take_run(struct reader *r, struct run *run)
{
	for (size_t i = 0; i < run->n; i++) {
		json_t *x = run->result[i], *of = json_object_get(x, "case");
		const double value = number_of(x, "value", NAN);
		const struct row row = {
			.area = text_of(of, "area"),
			.name = text_of(of, "name"),
			.params = text_of(of, "params"),
			.metric = text_of(x, "metric"),
			.origin = text_of(x, "origin"),
			.device = run->device,
			.v = { value, number_of(x, "lo", value),
			       number_of(x, "hi", value),
			       number_of(x, "clock_hz", 0),
			       (int64_t)number_of(x, "n", 0) },
		};

		if (run->complete && is_wrong(run, of))
			r->d->failed++;
		else if (run->complete)
			take_row(r, &row);
		json_decref(x);
	}
	run->n = 0;
	json_array_clear(run->wrong);
}

static bool take_line(struct reader *r, struct run *run, const char *at,
		      size_t len, const char *where, struct err *e)
{
	json_error_t why;
	json_t *line = json_loadb(at, len, 0, &why);
	json_t *x = json_object_get(line, "run");

	if (!line)
		return err_set(e, ERR_INPUT, "%s: %s; wanted a line of "
			       "`t0-results export`", where, why.text);
	if (x) {
		take_run(r, run);
		run->complete = !strcmp(text_of(x, "state"), "complete");
		snprintf(run->device, sizeof(run->device), "%s",
			 text_of(json_object_get(x, "device"), "name"));
	} else if ((x = json_object_get(line, "result"))) {
		VEC_GROW(run->result, run->n, 1, run->cap);
		run->result[run->n++] = json_incref(x);
	} else if ((x = json_object_get(line, "verdict")) &&
		   !strcmp(text_of(x, "kind"), "correctness") &&
		   !strcmp(text_of(x, "verdict"), "fail")) {
		json_array_append(run->wrong, json_object_get(x, "case"));
	}
	json_decref(line);
	return true;
}

static bool read_export(struct card_data *d, const struct buf *b,
			const char *path, struct err *e)
{
	struct reader r = { .d = d };
	struct run run = { .wrong = json_array() };
	bool ok = true;
	int number = 0;

	card_list_init(&r.list);
	for (const char *at = b->data, *end = b->data + b->len; ok && at < end;) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		const size_t len = (size_t)((next ? next : end) - at);
		char where[300];

		snprintf(where, sizeof(where), "%.250s:%d", path, ++number);
		ok = !len || take_line(&r, &run, at, len, where, e);
		at += len + 1;
	}
	take_run(&r, &run);
	json_decref(run.wrong);
	free(run.result);
	return ok;
}

/* A database of sqlite begins so. */
static bool is_database(const struct buf *b)
{
	static const char magic[] = "SQLite format 3";

	return b->len >= sizeof(magic) &&
	       !memcmp(b->data, magic, sizeof(magic));
}

bool card_read(struct card_data *d, const char *path, struct err *e)
{
	struct buf b = { 0 };
	struct res_db *db = NULL;

	*d = (struct card_data){ 0 };
	if (!file_read(path, 0, &b, e))
		return false;
	bool ok;
	if (is_database(&b)) {
		db = res_open(path, RES_READ, e);
		ok = db && card_read_db(d, db, e);
	} else {
		ok = read_export(d, &b, path, e);
	}
	res_close(db);
	buf_fini(&b);
	return ok;
}
