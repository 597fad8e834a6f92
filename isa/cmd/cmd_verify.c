/*
 * isa/cmd/cmd_verify.c - t0-isa verify.
 */
#include "isa/cmd/cmd.h"
#include "isa/verify/verify.h"

static bool verify_file(const struct isa_cmd *o, const char *path,
			struct verify_show *show, struct err *e)
{
	struct buf file = { 0 }, bytes = { 0 };
	bool ok = file_read(path, 0, &file, e);

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
	bool ok = true;

	table_init(&table, VERIFY_COLUMNS);
	for (int i = 0; ok && i < c->argc; i++)
		ok = verify_file(o, c->argv[i], &show, e);
	if (ok && show.table)
		ok = cmd_table(c, &table, e);
	c->status = show.found ? EXIT_NO : EXIT_YES;
	table_fini(&table);
	return ok;
}
