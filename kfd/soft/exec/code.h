/*
 * kfd/soft/exec/code.h - decoded code of one thread.
 *
 * Private to wave.c and fast/.  Code is decoded once per thread into nodes that
 * are linked in the order of execution, so that straight code and loops that
 * were seen before cost no look-up.  A node that is reached often becomes the
 * top of a superblock (fast.h).  Where code may have changed, each node, and all
 * of a superblock, is compared with memory before it runs again.
 */
#ifndef T0_KFD_SOFT_CODE_H
#define T0_KFD_SOFT_CODE_H

#include "kfd/soft/exec/exec.h"

struct soft_kept;
struct soft_native;
struct soft_seen;
struct soft_superblock;

/*
 * Where host code expects the lanes of a move, in bytes from lane 0.  At first
 * they are as far apart as they are long; where they were seen in another way
 * some times, by handlers or by microops, that is expected from then on, and so
 * are a few other ways, since waves and trips of a loop have their own.
 */
#define SOFT_WAYS 4
struct soft_pattern {
	uint8_t version; /* counts what was expected; SOFT_SCATTERED: nothing */
	uint8_t n_ways;
	uint8_t n_misses; /* seen in a new way so often, since one was learned */
	const int32_t *way[SOFT_WAYS]; /* [SOFT_LANES], which never change */
	struct soft_seen *seen; /* or NULL */
};
#define SOFT_SCATTERED 0xff

struct soft_node {
	struct soft_uop u;
	uint64_t key; /* pc, and bit 0: wave64 */
	uint64_t pc, next_pc;
	struct soft_node *next;	    /* at next_pc, once it was executed */
	struct soft_node *jump;	    /* where it went last otherwise */
	struct soft_superblock *fast; /* from here on, or NULL */
	uint32_t n_entries; /* executed so often, and not the one before it */
	int n_vgprs;		    /* the highest VGPR it names, plus 1 */
	bool sound;		    /* an instruction that is executed */
	bool moves; /* lanes, to or from where a VGPR says, as host code may */
	struct soft_pattern pattern; /* of a move */
	bool branches; /* looks at or moves the PC, or ends the wave */
	uint8_t code[ISA_MAX_SIZE_BYTES]; /* that it was decoded from */
	uint32_t epoch; /* of the cache when that was last what memory has */
};

struct soft_chunk;

#define SOFT_RECENT 4 /* mappings */

/* Bytes of memory, and where they are in this process. */
struct soft_line {
	uint64_t va, size_bytes;
	uintptr_t host;
};
#define SOFT_LINES 64 /* for each kind of move */

struct soft_code_cache {
	struct soft_node **slot; /* [n_slots], open addressing */
	size_t n_slots, n_used;
	struct soft_chunk *chunk;
	int n_in_chunk;
	struct soft_superblock *fast; /* all of them, to be freed */
	struct soft_kept *kept; /* by patterns, likewise */
	struct soft_native *native;   /* their host code */
	struct soft_node *cur;	    /* being executed; NULL while fetching */
	struct soft_range recent[SOFT_RECENT]; /* found in this slice */
	struct soft_line line[SOFT_LINES][2][2]; /* [][flat][store] */
	unsigned n_lines; /* microops that were given one */
	unsigned n_loads; /* microops that fetch ahead */
	unsigned n_found;
	uint32_t epoch; /* how often code may have changed */
	bool again; /* the superblock that ran is to be translated anew */
	enum soft_form most;
};

#endif
