/*
 * cmd - commands of t0-isa that are more than a few lines.
 */
#ifndef T0_ISA_CMD_H
#define T0_ISA_CMD_H

#include "base/base.h"
#include "isa/tables/tables.h"

struct isa_cmd {
	const char *chip, *kernel; /* NULL: not given */
	const char *output;	   /* asm: the file to write */
	int wave, version;	   /* 0: not given */
	bool hex, raw, lines, json, csv;
	struct cli_list allow;	  /* rules that verify does not report */
	struct isa_target target; /* of --chip and --wave */
	FILE *out;
};

/* --------------------------------------------------------- cmd_asm.c ---- */

/* Assemble files to code objects, or lines to hex. */
bool isa_cmd_asm(const struct isa_cmd *c, int n, char **path, struct err *e);

/* --------------------------------------------------------- cmd_dis.c ---- */

/* Disassemble code objects, machine code, hex, or hex line by line. */
bool isa_cmd_dis(const struct isa_cmd *c, int n, char **path, struct err *e);
/*
 * Hex text to bytes in memory order: pairs of digits, with optional "0x",
 * commas, brackets and white space between bytes.
 */
bool isa_cmd_hex(const char *s, size_t len, struct buf *out, struct err *e);

/* -------------------------------------------------------- cmd_info.c ---- */

/* Print what the table knows of instructions; print all of a generation. */
bool isa_cmd_info(const struct isa_cmd *c, int n, char **name, struct err *e);
bool isa_cmd_list(const struct isa_cmd *c, struct err *e);

/* -------------------------------------------------------- cmd_diff.c ---- */

/* Print what the instruction sets of two chips do not share. */
bool isa_cmd_diff(const struct isa_cmd *c, int n, char **chip, struct err *e);

/* -------------------------------------------------------- cmd_meta.c ---- */

/* Print what kernels of code objects need, and how many fit. */
bool isa_cmd_meta(const struct isa_cmd *c, int n, char **path, struct err *e);

#endif
