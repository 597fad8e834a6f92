/*
 * trace - what waves executed: instructions in order, with the addresses of
 * their memory accesses.  The emulator writes traces, the simulator of the
 * pipeline and scripts read them.
 *
 * The file is 8 bytes of magic and then records.  A record is a tag byte and
 * numbers.  Numbers are unsigned LEB128 (7 bits a byte, low bits first, bit 7
 * set in all but the last byte) unless said otherwise; "signed" ones are
 * zigzag coded first: 0, -1, 1, -2 are 0, 1, 2, 3.  Text is its length and
 * its bytes.
 *
 *   magic  "T0TRACE" and the version, 1
 *   'D'  a dispatch begins:
 *        number from 1 on, name of the kernel (text), address of the first
 *        instruction, lanes of a wave (32 or 64), workgroups in x y z,
 *        work-items of a workgroup in x y z, bytes of LDS of a workgroup,
 *        bytes of scratch of a lane, VGPRs of a wave;
 *        address of the code, and the code (text), which holds all that the
 *        dispatch can execute
 *   'W'  what follows is of this wave: workgroup x y z, wave in it
 *   'I'  an instruction: a byte of flags (enum trace_flag), then
 *        without TRACE_NEXT: address, signed, from the record before, in units
 *        of 4 bytes; then always its size, in units of 4 bytes
 *        with TRACE_EXEC: EXEC, which differs from that of the record before
 *        with TRACE_ACCESS: a byte of kind (enum trace_kind), bytes of one
 *        access, number of accesses, then for each of them: lane of the wave
 *        plus 1 (0: scalar), and address, signed, from the access before in
 *        the file.  Addresses in LDS are offsets in the workgroup's LDS, those
 *        in scratch offsets in the lane's scratch.
 *   'B'  all waves of the current workgroup pass a barrier
 *   'E'  the current wave has ended
 *   'Z'  the end of the file; a file without it is incomplete
 *
 * After 'D' and 'W' the record before has address 0 and EXEC 0.  TRACE_NEXT:
 * the instruction directly follows, in memory, the one of the record before.
 * So every record is as short as the code is regular: 3 bytes in straight code.
 *
 * Waves of a workgroup run one after the other on the emulator, some thousand
 * instructions at a time; only barriers order them.
 */
#ifndef T0_ISA_TRACE_H
#define T0_ISA_TRACE_H

#include "base/base.h"

#define TRACE_ACCESSES_MAX 256

enum trace_flag {
	TRACE_NEXT = 1,
	TRACE_EXEC = 2,
	TRACE_ACCESS = 4,
};
enum trace_kind {
	TRACE_MEMORY = 0, /* GPU memory */
	TRACE_LDS = 1,
	TRACE_SCRATCH = 2,
	TRACE_SPACE = 3, /* mask of the above */
	TRACE_WRITE = 4,
	TRACE_ATOMIC = 8,
};

struct trace_dispatch {
	uint64_t number;
	char kernel[128];
	uint64_t entry_va, code_va;
	const uint8_t *code; /* the reader's, until the next 'D' */
	size_t code_bytes;
	uint32_t wave_size, n_groups[3], group_size[3];
	uint32_t lds_bytes, scratch_bytes, vgprs;
};
struct trace_access {
	int16_t lane; /* -1: scalar */
	uint64_t at;
};
enum trace_type {
	TRACE_DISPATCH,
	TRACE_INST,
	TRACE_BARRIER,
	TRACE_WAVE_END,
};
struct trace_event {
	enum trace_type type;
	uint32_t group[3], wave; /* not of TRACE_DISPATCH */
	struct trace_dispatch dispatch;
	/* TRACE_INST */
	uint64_t pc, exec;
	uint8_t kind; /* enum trace_kind, when there are accesses */
	uint32_t access_bytes;
	uint32_t n_accesses;
	struct trace_access access[TRACE_ACCESSES_MAX];
};

/* ----------------------------------------------------------- trace.c ---- */

/* NULL and *e when the file cannot be made. */
struct trace_writer *trace_create(const char *path, struct err *e);
void trace_put_dispatch(struct trace_writer *w, const struct trace_dispatch *d);
/*
 * `size_bytes` of the instruction in memory; group, wave, pc, exec and the
 * accesses of *ev count.
 */
void trace_put_inst(struct trace_writer *w, const struct trace_event *ev,
		    uint32_t size_bytes);
void trace_put_barrier(struct trace_writer *w, const uint32_t group[3]);
void trace_put_end(struct trace_writer *w, const uint32_t group[3],
		   uint32_t wave);
/* Ends the file and frees the writer; false and *e when a write failed. */
bool trace_finish(struct trace_writer *w, struct err *e);

/* ------------------------------------------------------ trace_read.c ---- */

/* A reader over a whole file in memory, which stays the caller's. */
struct trace_reader {
	const uint8_t *at, *end, *begin;
	struct trace_dispatch dispatch; /* the last one */
	uint32_t group[3], wave;
	uint64_t next_pc, last_pc, last_exec, last_at;
	bool over;
};
/* false: no trace, or of another version. */
bool trace_reader_init(struct trace_reader *r, const void *bytes, size_t len,
		       struct err *e);
/*
 * The next event: true.  false at the end of the file, with e->code ERR_NONE,
 * or when it is malformed.
 */
bool trace_next(struct trace_reader *r, struct trace_event *ev, struct err *e);

#endif
