/*
 * isa/cmd/t0-isa.c - assemble, disassemble, verify and explain machine code.
 */
#include "isa/cmd/cmd.h"

static struct isa_cmd o;

static const struct cmd_spec commands[] = {
	{ "asm", "FILE...", "assemble files to code objects, lines to hex",
	  isa_cmd_asm, 1, CMD_MANY, .flags = CMD_OUTPUT | CMD_OWN_OUTPUT },
	{ "diff", "CHIP CHIP", "what the instruction sets of two chips do not "
	  "share", isa_cmd_diff, 2, 2, .flags = CMD_TABLE },
	{ "dis", "FILE...", "disassemble code objects, machine code or hex",
	  isa_cmd_dis, 1, CMD_MANY, .flags = CMD_TABLE },
	{ "info", "INSTRUCTION...", "what is known of an instruction", isa_cmd_info,
	  1, CMD_MANY, .flags = CMD_TABLE },
	{ "list", NULL, "all instructions of a chip", isa_cmd_list, 0, 0,
	  .flags = CMD_TABLE },
	{ "meta", "FILE...", "what kernels need, and how many waves fit",
	  isa_cmd_meta, 1, CMD_MANY, .flags = CMD_TABLE },
	{ "verify", "FILE...", "find faults in machine code; exit 1 if there "
	  "are some", isa_cmd_verify, 1, CMD_MANY, .flags = CMD_TABLE },
	{ 0 },
};
static const struct cli_opt options[] = {
	CLI_OF("asm dis info list meta verify"),
	{ "chip", 0, CLI_STR, &o.chip, "NAME",
	  "read the code as NAME's (default: the object's, gfx1100)" },
	CLI_OF("asm dis verify"),
	{ "wave", 0, CLI_INT, &o.wave, "N",
	  "wave size 32 or 64 (default: the kernel's, else 32)" },
	CLI_OF("dis meta verify"),
	{ "kernel", 'k', CLI_STR, &o.kernel, "NAME", "only this kernel" },
	CLI_OF("dis verify"),
	{ "hex", 0, CLI_FLAG, &o.hex, NULL,
	  "the input is hex text, bytes in memory order" },
	{ "raw", 0, CLI_FLAG, &o.raw, NULL, "the input is bare machine code" },
	CLI_OF("asm dis"),
	{ "lines", 0, CLI_FLAG, &o.lines, NULL,
	  "one instruction per line, text (asm) or hex (dis); one answer per "
	  "line" },
	CLI_OF("dis"),
	{ "true16", 0, CLI_FLAG, &o.true16, NULL,
	  "name halves of VGPRs: v1.l, v1.h" },
	CLI_OF("asm"),
	{ "code-object-version", 0, CLI_INT, &o.version, "N",
	  "write version 4, 5 or 6 (default: the file's, 5)" },
	CLI_OF("verify"),
	{ "allow", 0, CLI_LIST, &o.allow, "RULE",
	  "do not report this rule (repeatable)" },
	{ "db", 0, CLI_STR, &o.db, "FILE",
	  "keep what is found in this database, for compare and gate" },
	{ 0 },
};

static bool check_target(struct cmd *c, struct err *e)
{
	const char *chip = o.chip ? o.chip : "gfx1100";

	(void)c;
	if (o.wave && o.wave != 32 && o.wave != 64)
		return err_set(e, ERR_USAGE, "--wave: got %d, wanted 32 or 64",
			       o.wave);
	if (!isa_chip_parse(chip, &o.target.gen))
		return err_set(e, ERR_USAGE,
			       "--chip: '%s' is not known; wanted a name such "
			       "as gfx1100",
			       chip);
	if (!isa_gen_known(o.target.gen))
		return err_set(e, ERR_UNSUPPORTED,
			       "--chip: the encodings of %s are not in the "
			       "table; those of gfx1100 are",
			       chip);
	o.target.wave = o.wave ? o.wave : 32;
	return true;
}

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-isa",
		.summary = "assemble, disassemble and explain RDNA machine "
			   "code",
		.commands = commands,
		.options = options,
		.notes = "FILE is a code object or offload bundle, - is stdin.",
		.check = check_target,
	};

	return cmd_main(&o.cmd, &tool, argc, argv);
}
