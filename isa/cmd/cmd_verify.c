/*
 * isa/cmd/cmd_verify.c - t0-isa verify.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "isa/cmd/cmd.h"
#include "isa/verify/verify.h"
#include "results/db/results.h"

/* Where --db keeps what was found. */
struct keeping {
	struct res_record rows;
	const char *file;
	char object[RES_IDENTITY];
};

static bool keep_finding(struct keeping *k, const struct verify_finding *f,
			 struct err *e)
{
	json_t *o = json_pack("{s:s, s:s, s:I, s:s}", "object", k->object,
			      "rule", verify_rule_name(f->rule), "address",
			      (json_int_t)f->addr, "instruction", f->text);
	char *detail = json_dumps(o, JSON_COMPACT);
	bool ok = res_record_verdict(&k->rows, RES_FAIL, f->what, detail, e);

	free(detail);
	json_decref(o);
	return ok;
}

static bool keep_pass(struct keeping *k, struct err *e)
{
	char detail[RES_IDENTITY + 16];

	snprintf(detail, sizeof(detail), "{\"object\":\"%s\"}", k->object);
	return res_record_verdict(&k->rows, RES_PASS, "nothing found", detail,
				  e);
}

/* Every rule has its number, so that the first finding is a change. */
static bool keep_report(void *ctx, const char *kernel,
			const struct verify_report *r, struct err *e)
{
	int of_rule[VERIFY_RULE_COUNT] = { 0 };
	const char *base = strrchr(((struct keeping *)ctx)->file, '/');
	struct keeping *k = ctx;
	char params[256];

	res_params(params, sizeof(params), "object:s",
		   base ? base + 1 : k->file);
	bool ok = res_record_case(&k->rows, "verify", kernel, params, e) &&
		  res_record_exact(&k->rows, "findings", "1", r->n, RES_LOWER,
				   e);
	for (int i = 0; ok && i < r->n; i++) {
		of_rule[r->v[i].rule]++;
		ok = keep_finding(k, &r->v[i], e);
	}
	for (int i = 0; ok && i < VERIFY_RULE_COUNT; i++)
		if (of_rule[i])
			ok = res_record_exact(&k->rows, verify_rule_name(i),
					      "1", of_rule[i], RES_LOWER, e);
	return ok && (r->n || keep_pass(k, e));
}

static bool verify_file(const struct isa_cmd *o, const char *path,
			struct verify_show *show, struct err *e)
{
	struct buf file = { 0 }, bytes = { 0 };
	bool ok = file_read(path, 0, &file, e);

	if (show->ctx) {
		struct keeping *k = show->ctx;
		k->file = path;
		res_identity(file.data, file.len, k->object);
	}
	if (ok && o->hex)
		ok = isa_parse_hex(file.data, file.len, &bytes, e) &&
		     verify_show_code(show, o->target, bytes.data, bytes.len,
				      e);
	else if (ok && o->raw)
		ok = verify_show_code(show, o->target, file.data, file.len, e);
	else if (ok)
		ok = verify_show_object(show, file.data, file.len, e);
	if (!ok)
		err_wrap(e, "%s", path);
	buf_fini(&file);
	buf_fini(&bytes);
	return ok;
}

bool isa_cmd_verify(struct cmd *c, struct err *e)
{
	const struct isa_cmd *o = (struct isa_cmd *)c;
	struct table table;
	struct verify_show show = {
		.out = c->out, .kernel = o->kernel, .allow = &o->allow,
		.chip = o->chip, .wave = o->wave,
		.table = c->format == TABLE_TEXT ? NULL : &table,
	};
	struct keeping keeping = { 0 };
	const struct res_start run = { .tool = "t0-isa verify",
				       .argc = c->line_argc,
				       .argv = c->line_argv };
	bool ok = !o->db || res_record_begin(&keeping.rows, o->db, &run, e);

	if (o->db) {
		show.verified = keep_report;
		show.ctx = &keeping;
	}
	table_init(&table, VERIFY_COLUMNS);
	for (int i = 0; ok && i < c->argc; i++)
		ok = verify_file(o, c->argv[i], &show, e);
	if (ok && show.table)
		ok = cmd_table(c, &table, e);
	ok = res_record_end(&keeping.rows, ok, e);
	c->status = show.found ? EXIT_NO : EXIT_YES;
	table_fini(&table);
	return ok;
}
