/*
 * probes/discover - what every opcode slot does, found by running it: the
 * manual.
 *
 * Discovery visits every opcode slot of every encoding of the device's
 * generation, also those that no table knows, builds a small kernel around each,
 * runs it through an AQL queue as a black box, and says what happened:
 *
 *	prologue   registers, LDS, scratch and memory get known values, and a
 *		   control result is stored ("before")
 *	slot	   the instruction, then four markers of one dword each, which
 *		   show how many dwords it consumed or jumped over
 *	epilogue   everything is stored, and another control result ("after")
 *
 * A verdict rests on the two controls: known-good instructions of the same
 * kernel whose results the host computes for itself.  Without "before" nothing
 * is said of the slot; without "after" it did not execute, unless ending the
 * program is its purpose.  Every slot runs twice; what differs between the two
 * runs is shown as "~".
 *
 * The layers, from below: slots.c lists what to run, slot_words.c writes the
 * words of each, kernel.c writes the kernel and the initial state, session.c
 * runs one slot on an open device, signature.c says what changed, batch.c runs many slots in child processes
 * and survives what they do, oracle.c asks a disassembler, verdict.c compares,
 * discover.c is the whole run against the database, report.c prints it.
 */
#ifndef T0_PROBES_DISCOVER_H
#define T0_PROBES_DISCOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/code/code.h"
#include "probes/common/common.h"

#define PROBE_WORDS_MAX 3

/* ----------------------------------------------------------- slots.c ---- */

struct probe_slot {
	enum isa_gen gen;
	const char *encoding; /* "VOP2", "VOPDX", "SEG3", "RESERVED" */
	int opcode;
	enum isa_fmt fmt; /* ISA_FMT_NONE for reserved encodings */
	enum isa_op op;	  /* of the table, or ISA_OP_NONE */
	const char *name; /* mnemonic, or NULL */
	bool graphics;	  /* not run: needs what a compute wave lacks */
	bool last;	  /* may hang or end the wave: run after the rest */
	int n_words;
	uint32_t word[PROBE_WORDS_MAX];
};

struct probe_slots {
	struct probe_slot *v;
	int n;
};

/*
 * All slots of a generation in the order of encodings and opcodes, or those of
 * the named encodings.  ERR_USAGE with the list of names for an unknown one.
 */
bool probe_slots_init(struct probe_slots *s, enum isa_gen gen,
		      const struct cli_list *encodings, struct err *e);
/* Drops what is not in the shard that `o` asks for. */
void probe_slots_keep(struct probe_slots *s, const struct probe_opts *o);
void probe_slots_fini(struct probe_slots *s);
/* "VOP2:3" or "VOP2:0x3"; NULL with *e if there is no such slot. */
const struct probe_slot *probe_slot_parse(const struct probe_slots *s,
					  const char *text, struct err *e);
/* "SOPP:0=0xbfa0ffff": run these words in that slot's place. */
bool probe_slot_replace(struct probe_slots *s, const char *text, struct err *e);
/*
 * Other words for the same slot, i = 0, 1, ...: a disassembler that knows the
 * opcode may refuse one choice of operands.  Returns the number of words, 0
 * when there are no more.
 */
int probe_slot_variant(const struct probe_slot *slot, int i,
		       uint32_t word[PROBE_WORDS_MAX]);

/* ---------------------------------------------------------- kernel.c ---- */

enum {
	PROBE_LANES = 32,
	PROBE_VGPRS = 48, /* watched */
	PROBE_SGPRS = 44, /* watched */
	PROBE_LDS_DW = 512,
	PROBE_SCRATCH_DW = 16, /* per lane */
	PROBE_MEM_DW = 4096,   /* memory; the slot's pointer is its middle */
	PROBE_MARKERS = 4,     /* s40..s43 */
};

/* Registers of the initial state that operands point to. */
enum {
	PROBE_V_DST = 0,
	PROBE_V_SRC0 = 8,
	PROBE_V_SRC1 = 16,
	PROBE_V_SRC2 = 24,
	PROBE_V_ADDR = 32,    /* v[32:33]: memory + 64 * lane */
	PROBE_V_LDS = 34,     /* 16 * lane */
	PROBE_V_OFFSET = 35,  /* 64 * lane */
	PROBE_V_SCRATCH = 38, /* 64 */
	PROBE_S_DST = 0,
	PROBE_S_SRC0 = 16,
	PROBE_S_SRC1 = 20,
	PROBE_S_RSRC = 28, /* s[28:31]: memory as a buffer, also a pointer */
	PROBE_S_NEXT = 36, /* s[36:37]: address of the second marker */
	PROBE_S_MARK = 40,
	PROBE_M0 = 4,
};

/* All that a slot may read or change. */
struct probe_state {
	uint32_t v[PROBE_VGPRS][PROBE_LANES];
	uint32_t s[PROBE_SGPRS];
	uint32_t scc, exec[2], vcc[2], m0, mode;
	uint32_t lds[PROBE_LDS_DW];
	uint32_t scratch[PROBE_SCRATCH_DW][PROBE_LANES];
	uint32_t mem[PROBE_MEM_DW];
};

/* The state before the slot; mem_va is the address of mem[]. */
void probe_state_init(struct probe_state *st, enum isa_gen gen, uint64_t seed,
		      uint64_t mem_va);

/* Offsets in bytes into the buffers of a kernel. */
enum {
	PROBE_IN_SGPR = 0,
	PROBE_IN_LDS = 0x400,
	PROBE_IN_VGPR = 0x1000,
	PROBE_IN_BYTES = 0x3000,
	PROBE_OUT_BEFORE = 0,
	PROBE_OUT_AFTER = 0x80,
	PROBE_OUT_S0 = 0x100,  /* s0..s31 */
	PROBE_OUT_S32 = 0x180, /* s32..s43, then scc exec vcc m0 mode */
	PROBE_OUT_LDS = 0x200,
	PROBE_OUT_SCRATCH = 0xa00,
	PROBE_OUT_VGPR = 0x2000,
	PROBE_OUT_BYTES = 0x4000,
};

struct probe_kernel {
	enum isa_gen gen;
	struct buf code;
	uint32_t slot_at;  /* byte offset of the slot */
	uint32_t marks_at; /* of the first marker */
};
/* Of the generation of the slot. */
void probe_kernel_init(struct probe_kernel *k, const struct probe_slot *slot);
void probe_kernel_fini(struct probe_kernel *k);
/* The descriptor that goes with it. */
struct kfd_raw_desc probe_kernel_desc(enum isa_gen gen, const char *name);
/* The controls' results as the host computes them. */
uint32_t probe_control(bool after, uint32_t lane);

/* --------------------------------------------------------- session.c ---- */

/* One open device with what a slot needs; belongs to one thread. */
struct probe_session;

/* The generation of a device's chip, ERR_NODEV for one that no table covers. */
bool probe_gen_of(const char *gfx, enum isa_gen *gen, struct err *e);

struct probe_result {
	enum res_slot_verdict verdict;
	bool unsupported; /* unproven because the device lacks it */
	char reason[256]; /* empty for `executes` */
	char signature[320];
};

struct probe_session *probe_session_open(const char *device, uint64_t seed,
					 uint64_t deadline_ns, struct err *e);
void probe_session_close(struct probe_session *s);
/*
 * Run one slot.  Faults and hangs are results; false and *e only when the
 * device could not be brought back, or memory is short.
 */
bool probe_session_run(struct probe_session *s, const struct probe_slot *slot,
		       struct probe_result *r, struct err *e);
/* Does the control kernel still run?  After a slot that may do lasting harm. */
bool probe_session_check(struct probe_session *s, struct err *e);
/* State before and after the last slot that executed; owned by the session. */
const struct probe_state *probe_session_before(const struct probe_session *s);
const struct probe_state *probe_session_after(const struct probe_session *s);

/* ------------------------------------------------------- signature.c ---- */

/*
 * What changed, compactly, as "v0=3f800000 s3=.. scc=0 mem:12 #hash": first
 * lane of each register, counts of dwords for memories, and a hash of all of
 * it.  `again` is the state after a second run: what differs there is shown
 * as "~" and left out of the hash.  pc: address of the slot; register pairs
 * that point near it print relative to it, so that the text is the same
 * wherever the kernel lies.
 */
void probe_signature(const struct probe_state *was,
		     const struct probe_state *is,
		     const struct probe_state *again, uint64_t pc, char *out,
		     size_t size);
/* The same in full: a row per changed dword or register. */
void probe_signature_table(const struct probe_state *was,
			   const struct probe_state *is, struct table *t);

/* ----------------------------------------------------------- batch.c ---- */

struct probe_batch_opts {
	const char *device;
	uint64_t seed;
	uint64_t deadline_ns; /* of one slot */
	int slots_per_child;
	/* Before a child is made: commit what must survive.  false stops. */
	bool (*idle)(void *ctx);
	/* Tells of a slot; again, if there is a better verdict. */
	bool (*done)(void *ctx, int slot, const struct probe_result *r);
	void *ctx;
	const _Atomic int *stop; /* set by a signal handler */
};
/*
 * Run slots[todo[0..n-1]] in child processes.  A child that dies or stops
 * answering costs only the slot that it was at: that one runs again alone, and
 * what happens then is its verdict.  false when a callback or *stop said so
 * (*e is theirs), or with *e when no child can be made or gets the device.
 */
bool probe_batch(const struct probe_slots *slots, const int *todo, int n,
		 const struct probe_batch_opts *o, struct err *e);

/* ---------------------------------------------------------- oracle.c ---- */

/*
 * Ask a disassembler (llvm-mc, command `tool`) about every slot, as code of
 * `chip`.  names[i] is
 * what it calls slot i, "" where it refuses all variants; strings live in
 * `mem`.  *asked is false when the tool is not installed: then nothing is set.
 */
bool probe_oracle(const struct probe_slots *slots, const char *tool,
		  const char *chip, const char **names, struct arena *mem,
		  bool *asked, struct err *e);

/* --------------------------------------------------------- verdict.c ---- */

/*
 * Compare what was observed with table, errata, oracle (NULL = not asked) and
 * emulation (NULL = not run), and fill the database row.  The row points into
 * the arguments and `mem`.
 */
void probe_verdict_row(const struct probe_slot *slot,
		       const struct probe_result *r, const char *oracle,
		       const struct probe_result *emulated, struct arena *mem,
		       struct res_slot *row);

/* -------------------------------------------------------- discover.c ---- */

/* The whole run; returns the exit code, having filled *e unless it is 0. */
int probe_discover(const struct probe_opts *o, struct err *e);

/* ---------------------------------------------------------- report.c ---- */

/* Print a stored run: differences, counts per encoding, what is unproven. */
bool probe_report(struct res_db *db, int64_t run, FILE *out, struct err *e);
/* What changed since the previous complete run of the same kind. */
bool probe_report_changes(struct res_db *db, int64_t run, FILE *out,
			  struct err *e);
/* Every slot of a run as JSON or CSV. */
bool probe_report_slots(struct res_db *db, int64_t run, enum table_format f,
			FILE *out, struct err *e);

#endif
