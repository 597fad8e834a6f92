/*
 * t0-isa - assemble, disassemble, verify and explain RDNA machine code.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "isa/cmd/cmd.h"
#include "isa/tables/tables.h"
#include "isa/verify/verify.h"

#define TOOL "t0-isa"

/* ------------------------------------------------------------- verify ---- */

static bool verify_file(const struct isa_cmd *o, const char *path,
			struct verify_show *show, struct err *e)
{
	struct buf file = { 0 }, bytes = { 0 };
	bool ok = file_read(path, 0, &file, e);

	if (ok && o->hex)
		ok = isa_cmd_hex(file.data, file.len, &bytes, e) &&
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

/* *found: were there findings?  Then the answer is "no". */
static bool verify(const struct isa_cmd *o, int n, char **path, bool *found,
		   struct err *e)
{
	struct table table;
	struct verify_show show = {
		.out = o->out, .kernel = o->kernel, .allow = &o->allow,
		.chip = o->chip, .wave = o->wave,
		.table = o->json || o->csv ? &table : NULL,
	};
	bool ok = true;

	if (!n)
		return err_set(e, ERR_USAGE,
			       "verify: no file given; wanted FILE or - "
			       "(stdin)");
	table_init(&table, VERIFY_COLUMNS);
	for (int i = 0; ok && i < n; i++)
		ok = verify_file(o, path[i], &show, e);
	if (ok && show.table)
		ok = table_print(&table, o->json ? TABLE_JSON : TABLE_CSV,
				 o->out, e);
	*found = show.found > 0;
	table_fini(&table);
	return ok;
}

/* --------------------------------------------------------------- main ---- */

static bool check_target(struct isa_cmd *o, struct err *e)
{
	const char *chip = o->chip ? o->chip : "gfx1100";

	if (o->wave && o->wave != 32 && o->wave != 64)
		return err_set(e, ERR_USAGE, "--wave: got %d, wanted 32 or 64",
			       o->wave);
	if (!isa_chip_parse(chip, &o->target.gen))
		return err_set(e, ERR_USAGE,
			       "--chip: '%s' is not known; wanted a name such "
			       "as gfx1100",
			       chip);
	if (!isa_gen_known(o->target.gen))
		return err_set(e, ERR_UNSUPPORTED,
			       "--chip: the encodings of %s are not in the "
			       "table; those of gfx1100 are",
			       chip);
	o->target.wave = o->wave ? o->wave : 32;
	return true;
}

static bool run(struct isa_cmd *o, int n, char **arg, bool *no, struct err *e)
{
	if (!check_target(o, e))
		return false;
	if (!n)
		return err_set(e, ERR_USAGE,
			       "no command given; wanted asm, diff, dis, info, "
			       "list, meta or verify (see --help)");
	if (!strcmp(arg[0], "asm"))
		return isa_cmd_asm(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "meta"))
		return isa_cmd_meta(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "diff"))
		return isa_cmd_diff(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "dis"))
		return isa_cmd_dis(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "info"))
		return isa_cmd_info(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "list"))
		return isa_cmd_list(o, e);
	if (!strcmp(arg[0], "verify"))
		return verify(o, n - 1, arg + 1, no, e);
	return err_set(e, ERR_USAGE,
		       "unknown command '%s'; wanted asm, diff, dis, info, "
		       "list, meta or verify",
		       arg[0]);
}

int main(int argc, char **argv)
{
	struct isa_cmd o = { .out = stdout };
	const struct cli_opt opts[] = {
		{ "chip", 0, CLI_STR, &o.chip, "NAME",
		  "read the code as NAME's (default: the object's, gfx1100)" },
		{ "wave", 0, CLI_INT, &o.wave, "N",
		  "wave size 32 or 64 (default: the kernel's, else 32)" },
		{ "kernel", 'k', CLI_STR, &o.kernel, "NAME",
		  "disassemble only this kernel" },
		{ "hex", 0, CLI_FLAG, &o.hex, NULL,
		  "the input is hex text, bytes in memory order" },
		{ "raw", 0, CLI_FLAG, &o.raw, NULL,
		  "the input is bare machine code" },
		{ "lines", 0, CLI_FLAG, &o.lines, NULL,
		  "one instruction per line, text (asm) or hex (dis); one "
		  "answer per line" },
		{ "code-object-version", 0, CLI_INT, &o.version, "N",
		  "asm: write version 4, 5 or 6 (default: the file's, 5)" },
		{ "allow", 0, CLI_LIST, &o.allow, "RULE",
		  "verify: do not report this rule (repeatable)" },
		{ "json", 0, CLI_FLAG, &o.json, NULL, "print JSON" },
		{ "csv", 0, CLI_FLAG, &o.csv, NULL, "print CSV" },
		{ "output", 'o', CLI_STR, &o.output, "FILE",
		  "write there instead of stdout" },
		{ 0 },
	};
	const struct cli_tool tool = {
		.name = TOOL,
		.summary = "assemble, disassemble and explain RDNA "
			   "machine code",
		.usage = "asm [options] FILE...\n"
			 "diff [options] CHIP CHIP\n"
			 "dis [options] FILE...\n"
			 "info [options] NAME...\n"
			 "list [options]\n"
			 "meta [options] FILE...\n"
			 "verify [options] FILE...",
		.opt = opts,
		.notes = "FILE is a code object or offload bundle, - is stdin."
			 "\n",
	};
	struct err e = { 0 };
	bool done = false, no = false, ok;
	int first;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		return err_report(TOOL, &e);
	if (done)
		return EXIT_YES;
	/* Assembling writes a whole file or none. */
	if (o.output && (o.lines || first == argc ||
			 strcmp(argv[first], "asm"))) {
		o.out = fopen(o.output, "w");
		if (!o.out) {
			err_sys(&e, ERR_IO, errno, "%s", o.output);
			return err_report(TOOL, &e);
		}
	}
	ok = run(&o, argc - first, argv + first, &no, &e);
	cli_list_fini(&o.allow);
	if (!ok)
		return err_report(TOOL, &e);
	if (o.out != stdout && fclose(o.out)) {
		err_sys(&e, ERR_IO, errno, "%s", o.output);
		return err_report(TOOL, &e);
	}
	if (!stdout_check(&e))
		return err_report(TOOL, &e);
	return no ? EXIT_NO : EXIT_YES;
}
