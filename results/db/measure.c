/*
 * results/db/measure.c - cases, results with their samples, verdicts.
 */
#include "results/db/res.h"

#include <string.h>

/* A string as JSON has it. */
static void add_text(struct buf *b, const char *s)
{
	buf_addc(b, '"');
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			buf_printf(b, "\\%c", *s);
		else if ((unsigned char)*s < ' ')
			buf_printf(b, "\\u%04x", *s);
		else
			buf_addc(b, *s);
	buf_addc(b, '"');
}

/* One value of `type`; false: it is NULL, 0 or false. */
static bool add_param(struct buf *b, char type, va_list *ap)
{
	const char *s = type == 's' ? va_arg(*ap, const char *) : NULL;
	uint64_t n = type == 'U' || type == 'X' ? va_arg(*ap, uint64_t) :
		     type == 's' ? 0 : va_arg(*ap, unsigned);

	switch (type) {
	case 's':
		add_text(b, s ? s : "");
		break;
	case 'd':
		buf_printf(b, "%d", (int)n);
		break;
	case 'b':
		buf_adds(b, n ? "true" : "false");
		break;
	case 'u':
	case 'U':
		buf_printf(b, "%llu", (unsigned long long)n);
		break;
	case 'X':
		buf_printf(b, "\"%016llx\"", (unsigned long long)n);
		break;
	default:
		BUG("a parameter of type '%c'", type);
	}
	return s || n;
}

void res_params(char *out, size_t size_bytes, const char *keys, ...)
{
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, keys);
	for (const char *key = keys; *key;) {
		bool may_lack = *key == '?';
		size_t before = b.len;
		int len = (int)strcspn(key += may_lack, ":");

		buf_printf(&b, "%c\"%.*s\":", b.len ? ',' : '{', len, key);
		if (!add_param(&b, key[len + 1], &ap) && may_lack)
			b.data[b.len = before] = 0;
		key += len + 2;
		key += *key == ' ';
	}
	va_end(ap);
	buf_adds(&b, b.len ? "}" : "{}");
	if (b.len >= size_bytes)
		BUG("%zu bytes of parameters: %s", b.len, b.data);
	memcpy(out, b.data, b.len + 1);
	buf_fini(&b);
}

bool res_case_id(struct res_db *db, const char *area, const char *name,
		 const char *params, int64_t *id, struct err *e)
{
	return res_upsert(db, id, e,
		"SELECT id FROM cases WHERE area = ? AND name = ? "
		"AND params = ?",
		"INSERT INTO cases(area, name, params) VALUES(?, ?, ?) "
		"ON CONFLICT DO NOTHING",
		"sss", area, name, params ? params : "{}") ||
	       err_wrap(e, "case %s %s", area ? area : "", name ? name : "");
}

static bool add_samples(struct res_db *db, int64_t result,
			const struct res_result *r, struct err *e)
{
	for (size_t i = 0; i < r->n_samples; i++)
		if (!res_exec(db, e,
			      "INSERT INTO samples(result, idx, value) "
			      "VALUES(?, ?, ?)",
			      "iid", result, (int64_t)i, r->samples[i]))
			return err_wrap(e, "sample %zu", i);
	return true;
}

static bool add_sensors(struct res_db *db, int64_t result, const char *moment,
			const struct res_sensors *s, struct err *e)
{
	return !s ||
	       res_exec(db, e,
			"INSERT INTO sensors(result, moment, sclk_hz, mclk_hz, "
			"load, power_w, edge_c, junction_c, memory_c) "
			"VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
			"itddddddd", result, moment, s->sclk_hz, s->mclk_hz,
			s->load, s->power_w, s->edge_c, s->junction_c,
			s->memory_c);
}

static bool add_result(struct res_db *db, const struct res_result *r,
		       int64_t *id, struct err *e)
{
	if (!res_exec(db, e,
		      "INSERT INTO results(run, case_id, metric, unit, value, "
		      "lo, hi, n, clock_hz, better, origin, source) "
		      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		      "kkssdddidtts", r->run, r->case_id, r->metric, r->unit,
		      r->value, r->lo, r->hi, r->n, r->clock_hz,
		      res_better_name(r->better), res_origin_name(r->origin),
		      r->source))
		return false;
	*id = sqlite3_last_insert_rowid(db->sq);
	return add_samples(db, *id, r, e) &&
	       add_sensors(db, *id, "before", r->before, e) &&
	       add_sensors(db, *id, "after", r->after, e);
}

bool res_result_add(struct res_db *db, const struct res_result *r, int64_t *id,
		    struct err *e)
{
	int64_t new_id = 0;

	if (!res_write_begin(db, e))
		return false;
	bool ok = add_result(db, r, &new_id, e);
	if (!res_write_end(db, ok, e))
		return err_wrap(e, "result %s of case %lld, run %lld",
				r->metric ? r->metric : "",
				(long long)r->case_id, (long long)r->run);
	if (id)
		*id = new_id;
	return true;
}

bool res_verdict_add(struct res_db *db, const struct res_verdict *v,
		     struct err *e)
{
	if (!res_write_begin(db, e))
		return false;
	bool ok = res_exec(db, e,
		"INSERT INTO verdicts(run, case_id, result, kind, verdict, "
		"reason, detail) VALUES(?, ?, ?, ?, ?, ?, ?)",
		"kkkttss", v->run, v->case_id, v->result,
		res_kind_name(v->kind), res_answer_name(v->answer), v->reason,
		v->detail ? v->detail : "{}");
	return res_write_end(db, ok, e) ||
	       err_wrap(e, "verdict %s on run %lld", res_kind_name(v->kind),
			(long long)v->run);
}
