/*
 * isa/cmd - the commands of t0-isa.
 */
#ifndef T0_ISA_CMD_H
#define T0_ISA_CMD_H

#include "base/cmd.h"
#include "isa/object/object.h"
#include "isa/tables/tables.h"

struct isa_cmd {
	struct cmd cmd;
	const char *chip, *kernel, *db; /* NULL: not given */
	int wave, version;	   /* 0: not given */
	bool hex, raw, lines, true16;
	struct cli_list allow;	  /* rules that verify does not report */
	struct isa_target target; /* of --chip and --wave */
};

/* --------------------------------------------------------- cmd_asm.c ---- */

/* Assemble files to code objects, or lines to hex. */
bool isa_cmd_asm(struct cmd *c, struct err *e);

/* --------------------------------------------------------- cmd_dis.c ---- */

/* Disassemble code objects, machine code, hex, or hex line by line. */
bool isa_cmd_dis(struct cmd *c, struct err *e);
/*
 * Hex text to bytes in memory order: pairs of digits, with optional "0x",
 * commas, brackets and white space between bytes.
 */
bool isa_parse_hex(const char *s, size_t len, struct buf *out, struct err *e);

/* -------------------------------------------------------- dis_meta.c ---- */

/* The object's metadata as the .amdgpu_metadata that makes it. */
void isa_print_metadata(FILE *out, const struct co *co);

/* -------------------------------------------------------- cmd_info.c ---- */

/* Print what the table knows of instructions; print all of a generation. */
bool isa_cmd_info(struct cmd *c, struct err *e);
bool isa_cmd_list(struct cmd *c, struct err *e);

/* -------------------------------------------------------- cmd_diff.c ---- */

/* Print what the instruction sets of two chips do not share. */
bool isa_cmd_diff(struct cmd *c, struct err *e);

/* -------------------------------------------------------- cmd_meta.c ---- */

/* Print what kernels of code objects need, and how many fit. */
bool isa_cmd_meta(struct cmd *c, struct err *e);

/* ------------------------------------------------------ cmd_verify.c ---- */

/* Print the faults of machine code; there are some: the answer is "no". */
bool isa_cmd_verify(struct cmd *c, struct err *e);

#endif
