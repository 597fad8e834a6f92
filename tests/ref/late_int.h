/*
 * late_int - what the files of the late executor share.
 */
#ifndef T0_TESTS_REF_LATE_INT_H
#define T0_TESTS_REF_LATE_INT_H

#define REF_VGPRS 256
#include "isa/code/code.h"
#include "tests/ref/late.h"
#include "tests/ref/state.h"

/* Counters, as bits. */
enum late_counter { LATE_VM = 1, LATE_VS = 2, LATE_LDS = 4, LATE_SMEM = 8 };
enum late_space { LATE_MEMORY, LATE_SHARED, LATE_SCRATCH };

/* A memory operation that is issued: its addresses and data are taken. */
struct late_op {
	const struct isa_inst *in;
	uint8_t need;	/* counters that have not covered it */
	uint8_t space;	/* enum late_space */
	bool performed; /* memory is read and written; data[] is the result */
	bool loads, stores;
	uint64_t exec;
	uint32_t n_parts, part_bytes; /* accesses of a lane */
	uint64_t at[64][4];
	bool outside[64]; /* a buffer's bound: loads 0, stores nothing */
	uint32_t data[64][16];
	/* Images: whose, and how much of each part a sample has. */
	uint32_t descriptor[8];
	bool linear;
	float weight[64][4];
};

enum late_state { LATE_READY, LATE_AT_BARRIER, LATE_ENDED };

struct late_wave {
	struct state s;
	struct late_group *group;
	uint64_t pc;
	enum late_state state;
	uint32_t mode;
	int lanes; /* 32 or 64 */
	uint8_t *scratch; /* [lane][scratch_bytes] */
	struct late_op **op; /* outstanding, oldest first */
	int n_ops, cap_ops;
};

struct late_group {
	struct late_grid *grid;
	uint32_t id[3];
	uint8_t *lds;
	struct late_wave *wave;
	int n_waves;
};

struct late_grid {
	struct late_run *run;
	struct isa_inst **inst; /* decoded, by dword of the code */
	struct late_op **left;	/* stores of waves that ended */
	int n_left, cap_left;
	uint64_t seed;
	bool down; /* LATE_FLIP: now */
	struct err *e;
};

/* ----------------------------------------------------------- late.c ---- */

/* ERR_DEVICE at the wave's instruction.  Returns false. */
bool late_fail(const struct late_wave *w, const char *fmt, ...)
	T0_PRINTF(2, 3);
/* Host bytes of an address; NULL: not the kernel's. */
uint8_t *late_bytes(const struct late_run *r, uint64_t va, size_t n);

/* ------------------------------------------------------ late_code.c ---- */

/* One instruction. */
bool late_step(struct late_wave *w);

/* ---------------------------------------------------- late_vector.c ---- */

/* The vector ALU; false if there is no reference. */
bool late_vector(struct late_wave *w, const struct isa_inst *in);

/* ----------------------------------------------------- late_image.c ---- */

bool late_is_image(const struct isa_inst *in);
/* Addresses and data of op, whose exec is set; false: no reference. */
bool late_issue_image(struct late_wave *w, const struct isa_inst *in,
		      struct late_op *op);
/* Parts to the registers of one lane. */
void late_deliver_image(struct late_wave *w, const struct late_op *op,
			int lane);

/* ---------------------------------------------------- late_memory.c ---- */

bool late_is_memory(const struct isa_inst *in);
bool late_issue(struct late_wave *w, const struct isa_inst *in);
/* At most n operations of the counters are outstanding from now on. */
bool late_wait(struct late_wave *w, unsigned counters, int n);
/* Touch memory now; of an operation whose wave has ended, too. */
bool late_perform(struct late_wave *w, struct late_op *op);

#endif
