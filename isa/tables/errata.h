/*
 * isa/tables/errata.h - slots about which table, disassembler and chip do not agree.
 *
 * A row of isa/tables/errata.def explains one opcode slot: what running it is known
 * to do, and why that is not what a reader of the table or of a disassembly
 * would expect.  Whoever compares the three asks here before reporting.
 */
#ifndef T0_ISA_ERRATA_H
#define T0_ISA_ERRATA_H

/* What a kernel that reaches the slot is known to do. */
enum isa_outcome {
	ISA_OUTCOME_ANY, /* nothing is known, or it depends */
	ISA_OUTCOME_EXECUTES,
	ISA_OUTCOME_ILLEGAL,
	ISA_OUTCOME_FAULTS,
	ISA_OUTCOME_HANGS,
};

struct isa_erratum {
	const char *encoding; /* as t0-probe names it: "VOP1", "VOPDX" */
	int opcode;
	enum isa_outcome outcome;
	const char *name;   /* mnemonic, or what the slot looks like */
	const char *reason; /* a sentence, with its source */
};

/* The row of a slot, or NULL. */
const struct isa_erratum *isa_erratum_at(const char *encoding, int opcode);

#endif
