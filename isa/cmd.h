/*
 * cmd - commands of t0-isa that are more than a few lines.
 */
#ifndef T0_ISA_CMD_H
#define T0_ISA_CMD_H

#include "base/base.h"
#include "isa/isa.h"

struct isa_cmd {
	const char *chip, *kernel; /* NULL: not given */
	const char *output;	   /* asm: the file to write */
	int wave, version;	   /* 0: not given */
	bool lines, json, csv;
	struct isa_target target; /* of --chip and --wave */
	FILE *out;
};

/* --------------------------------------------------------- cmd_asm.c ---- */

/* Assemble files to code objects, or lines to hex. */
bool isa_cmd_asm(const struct isa_cmd *c, int n, char **path, struct err *e);

/* -------------------------------------------------------- cmd_diff.c ---- */

/* Print what the instruction sets of two chips do not share. */
bool isa_cmd_diff(const struct isa_cmd *c, int n, char **chip, struct err *e);

/* -------------------------------------------------------- cmd_meta.c ---- */

/* Print what kernels of code objects need, and how many fit. */
bool isa_cmd_meta(const struct isa_cmd *c, int n, char **path, struct err *e);

#endif
