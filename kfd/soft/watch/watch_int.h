/*
 * kfd/soft/watch/watch_int.h - what the files that watch waves share.
 *
 * A struct soft_watch is a hook of the device (struct soft_hook), through which
 * the launcher runs waves: single_step.c looks at every instruction before
 * soft_wave_run() executes it, and drives the others.  Each of them sees an
 * instruction as a struct site (decoded once per address) and its memory
 * accesses as struct access.  All state is guarded by soft_watch.lock, held
 * while a wave runs: watched waves take turns.
 *
 * What is watched has two lifetimes.  Sites, reports and counts stay until
 * the device goes.  Shadow state (struct shadow: a workgroup's registers, LDS
 * and scratch; struct memory_shadow: GPU memory) lives as long as a dispatch.
 */
#ifndef T0_KFD_SOFT_WATCH_INT_H
#define T0_KFD_SOFT_WATCH_INT_H

#include <pthread.h>

#include "isa/object/object.h"
#include "isa/trace/trace.h"
#include "kfd/soft/device/dev.h"
#include "kfd/soft/exec/mem.h"
#include "kfd/soft/watch/watch.h"

#define WATCH_ACCESSES_MAX 256
#define COUNTER_MAX	   63 /* the hardware does not issue more */

/* ------------------------------------------------------------- sites ---- */

/* What a memory instruction counts on: the wait counters of RDNA3 ISA 4.4. */
enum watch_class {
	CLASS_VM,   /* vector loads, returning atomics: in order */
	CLASS_VS,   /* vector stores, other atomics: in order */
	CLASS_LDS,  /* lgkm, in order among themselves */
	CLASS_ANY,  /* lgkm, any order: scalar loads, messages, LDS by FLAT */
	CLASS_KM,   /* of chips that count scalar loads and messages apart */
	CLASS_COUNT
};

enum site_kind {
	SITE_ALU, /* and all else that touches no memory */
	SITE_SMEM,
	SITE_FLAT, /* FLAT, GLOBAL, SCRATCH */
	SITE_BUFFER,
	SITE_IMAGE, /* MIMG: waited for, but what it touches is not seen */
	SITE_LDS,
	SITE_LANES, /* the LDS instructions that only permute lanes */
};

/* Scalar bitwise instructions: the operation, and what is around it. */
enum site_bits {
	BITS_NONE,
	BITS_AND,
	BITS_OR,
	BITS_XOR,
	BITS_OP = 3,
	BITS_NOT0 = 4,	 /* of the inverted first source */
	BITS_NOT1 = 8,	 /* of the inverted second source */
	BITS_INVERT = 16, /* the result is inverted */
	BITS_SAVE = 32,	 /* ..._saveexec: with EXEC, to EXEC; its old value */
	BITS_WRITE = 64, /* ..._wrexec: with EXEC, to EXEC and a register */
};

/* An instruction at an address. */
struct site {
	uint64_t pc;
	bool wide; /* wave64 */
	uint32_t id, epoch;
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct soft_uop u; /* bound only if it permutes lanes */
	const struct isa_op_info *info;
	struct isa_use use;
	enum site_kind kind;
	enum site_bits bits;
	struct soft_access access; /* memory: size and kind */
	uint8_t n_addr;		   /* LDS: addresses per lane */
	uint8_t stride;		   /* of their offsets, in access.bytes */
	uint8_t n_comps;	   /* typed buffer accesses */
	bool is_load, is_store, is_atomic, returns;
	bool by_buffer; /* SMEM: the address is that of a descriptor */
	bool by_id;	/* ..._addtid: the lane's number is part of the address */
	bool two_sources; /* ds_*_src2: the second operand lies in LDS, too */
	bool replaces;	  /* atomic: the result is none of the old value's */
	struct soft_uop mov; /* DPP: v_mov_b32 with the same lane pattern */
	uint64_t count;	     /* executed */
	uint64_t lanes;	     /* active lanes, summed */
};

/* One access of one lane. */
struct access {
	uint64_t at; /* address, or offset in LDS or in the lane's scratch */
	uint16_t size_bytes;
	uint8_t space; /* enum soft_space */
	int8_t lane;   /* -1: scalar */
	uint8_t part;  /* dword of the data where it begins */
	bool write, atomic;
};

/* ------------------------------------------------------ shadow state ---- */

/* Where a value that nobody initialised comes from. */
struct origin {
	enum { ORIGIN_NONE, ORIGIN_VGPR, ORIGIN_SGPR, ORIGIN_LOAD } kind;
	uint16_t reg;
	uint8_t space;		 /* ORIGIN_LOAD: enum soft_space */
	const struct site *site; /* that loaded it; NULL: never written */
	uint64_t at;
};

/* Memory instructions of a class that no wait has covered yet, by age. */
struct outstanding {
	uint32_t seq[COUNTER_MAX + 1]; /* a ring */
	uint32_t first, n;
};
/* One of them that will write registers. */
struct owner {
	const struct site *site;
	uint32_t seq;
	uint8_t need;	/* bits of enum watch_class still to come */
	uint8_t file;	/* ISA_K_*; 0: it was reported */
	uint8_t halves; /* enum isa_half */
	uint16_t reg, count;
};

/* How far a wave's memory instructions had completed, by class. */
struct clock {
	uint32_t wave; /* number within the dispatch */
	uint32_t done[CLASS_COUNT];
};
/* What a wave knows of others: sorted by wave. */
struct clocks {
	struct clock *v;
	uint32_t n, cap;
};

struct shadow_wave {
	uint32_t number; /* within the dispatch */
	uint32_t vgpr[2][256]; /* initialised lanes */
	uint32_t sgpr[128];    /* initialised bits */
	bool scc;
	struct origin vorigin[256], sorigin[128], scc_origin;
	uint8_t *scratch; /* a bit per byte: initialised */
	struct outstanding outstanding[CLASS_COUNT];
	struct owner owner[COUNTER_MAX * CLASS_COUNT];
	int n_owners;
	uint32_t seq; /* of the next memory instruction */
	/* done[] when the workgroup's last barrier opened, and at arrival. */
	uint32_t at_barrier[CLASS_COUNT], arrived[CLASS_COUNT];
	struct clocks known;	/* what happened before, by atomics */
	uint64_t learnt;	/* how often it grew */
	struct clocks acquired; /* the same, once buffer_gl0_inv comes */
	bool released;		/* the last instruction waited for stores */
	const struct site *last; /* instruction executed */
};

/* The last accesses of a dword, for races. */
struct race_slot {
	uint32_t wave; /* number + 1, 0: empty */
	uint32_t seq;
	uint32_t site;
	uint8_t mask; /* of its bytes */
	int8_t lane;
	uint8_t cls;
	uint8_t flags; /* enum race_flag */
};
enum race_flag { RACE_WRITE = 1, RACE_ATOMIC = 2, RACE_SYNC = 4 };
#define RACE_SLOTS 4
struct race_cell {
	struct race_slot slot[RACE_SLOTS];
};
/* A cell for every dword; that of the first one of four, which are 16 bytes,
 * stands for all of them until some are accessed without the others. */
#define RACE_BLOCK 4
struct race_cells {
	struct race_cell *cell;
	uint8_t *split; /* a bit for each block */
};

/* A workgroup under watch. */
struct shadow {
	const struct soft_launch *l;
	struct soft_run *run;
	uint64_t index;		    /* of the workgroup */
	uint8_t *lds_valid;	    /* a bit per byte */
	struct race_cells lds_race;
	uint32_t lds_bytes;	    /* exactly as asked for */
	struct shadow_wave *wave; /* [l->waves_per_group] */
	int n_waves;
};

static inline size_t lds_blocks(const struct soft_launch *l)
{
	return l->lds_bytes / (4 * RACE_BLOCK) + 1;
}

/* From addresses to pointers, which are the caller's; {0} is empty. */
struct addr_entry {
	uint64_t key;
	void *value; /* NULL: the slot is free */
};
struct addr_table {
	struct addr_entry *slot; /* [n_slots], a power of two */
	size_t n_slots, n;
};

#define PAGE_CELLS (KFD_PAGE_BYTES / 4)
struct shadow_page {
	bool tracked; /* was never written when the dispatch met it */
	uint8_t valid[KFD_PAGE_BYTES / 8]; /* tracked: a bit per byte */
	struct race_cells race;
	struct race_cell cell[PAGE_CELLS];
	uint8_t split[PAGE_CELLS / RACE_BLOCK / 8];
};

struct memory_shadow {
	struct addr_table page; /* struct shadow_page; the first PAGES_MAX */
	/*
	 * Atomic locations, by address or for LDS by bit 63, workgroup and
	 * offset: struct location, what those who wrote it had done before.
	 */
	struct addr_table released;
};

/* --------------------------------------------------------- the watch ---- */

/* What the runtime said about an allocation or a code object. */
struct watch_object {
	uint64_t va, size_bytes;
	char name[48];
	bool is_code;
	uint8_t *elf; /* own copy; code only */
	size_t elf_bytes;
	struct co co;
	struct co_lines *lines; /* NULL: no line table */
};

enum check_rule {
	CHECK_HAZARD, CHECK_RACE, CHECK_UNINIT, CHECK_BOUNDS, CHECK_ALIGN,
	CHECK_BARRIER, CHECK_WMMA,
	CHECK_COUNT
};
struct report {
	enum check_rule rule;
	uint64_t pc, other_pc;
	uint64_t count;
	char *text;
};

struct soft_watch {
	struct soft_hook hook;
	pthread_mutex_t lock;
	struct soft_watch_options o;

	struct watch_object *object; /* sorted by va */
	size_t n_objects, cap_objects;

	struct site **site; /* by id, from 1 */
	size_t n_sites, cap_sites;
	struct addr_table at; /* struct site by pc, bit 0: wave64 */
	uint32_t epoch, n_invalidated;

	uint64_t n_dispatches;
	struct memory_shadow mem;
	struct access access[WATCH_ACCESSES_MAX];
	int n_accesses;

	struct report *report;
	size_t n_reports, cap_reports;
	uint64_t n_findings;
	/* A wave of its own for lane permutations of shadow values. */
	uint32_t (*lane_plane)[SOFT_LANES]; /* [2 * 256] */

	struct trace_writer *trace; /* NULL: no trace */
	struct trace_event event;
	struct buf dump;
	unsigned n_dumps;
};

/* ------------------------------------------------------ single_step.c ---- */

/* Not attached yet.  NULL and *e when the trace file cannot be opened. */
struct soft_watch *watch_new(const struct soft_watch_options *o,
			     struct err *e);
void watch_free(struct soft_watch *t);
/* The one that is attached, or NULL. */
struct soft_watch *watch_find(const struct soft_dev *d);
/* Is *drv a soft device that nobody has opened yet? */
bool watch_can_attach(struct kfd_driver *drv, const char *what, struct err *e);
/* The wave's next instruction; false: none there.  Slice held. */
bool watch_look(struct soft_watch *t, struct soft_wave *w,
		struct soft_timed_inst *out);
/* Name of the kernel whose descriptor is at `va` into out[128], or "". */
void watch_kernel_name(struct soft_watch *t, uint64_t va, char out[128]);

/* The site with this number, as race_slot.site has it. */
static inline const struct site *watch_site(const struct soft_watch *t,
					    uint32_t id)
{
	return t->site[id];
}

/* ----------------------------------------------------------- access.c ---- */

/* Fill what the decoder does not say: kind, access, flags. */
void watch_site_init(struct site *s, const struct isa_target *t);
/*
 * The accesses that the instruction is about to make, into t->access.  Lanes
 * that a buffer descriptor turns away make none.
 */
void watch_find_accesses(struct soft_watch *t, struct soft_wave *w,
			 const struct site *s);

/* ---------------------------------------------------------- objects.c ---- */

/* Takes the lock. */
void watch_note(struct soft_watch *t, const struct kfd_note *n);
void watch_objects_fini(struct soft_watch *t);
const struct watch_object *watch_object_at(const struct soft_watch *t,
					   uint64_t va);
/* Nearest allocation below va; NULL if there is none. */
const struct watch_object *watch_object_below(const struct soft_watch *t,
					      uint64_t va);
/* "saxpy+0x34 (saxpy.cl:12)", or the address alone. */
void watch_place(const struct soft_watch *t, uint64_t pc, struct buf *out);
/* The name of the kernel whose descriptor is at `va`, or NULL. */
const char *watch_kernel(const struct soft_watch *t, uint64_t va);
/* "ADDRESS", an address in device memory or in its file, or "SYMBOL+OFF". */
bool watch_resolve(const struct soft_watch *t, const char *text, uint64_t *va);

/* ------------------------------------------------------------ check.c ---- */

/* Who is at an instruction, for reports. */
struct actor {
	struct soft_watch *t;
	struct shadow *sh;
	struct soft_wave *w;
	struct shadow_wave *sw;
	const struct site *s;
};
void check_group_start(struct soft_watch *t, struct shadow *sh);
void check_instruction(struct actor *a);
/* All waves that live have arrived, and the barrier is about to open. */
void check_barrier(struct soft_watch *t, struct shadow *sh);
/* What scalar loads and messages count on. */
static inline uint8_t check_scalar_class(const struct actor *a)
{
	return isa_gen_info(a->s->u.in.gen)->split_counters ? CLASS_KM :
							      CLASS_ANY;
}
/*
 * Report once for each pair of instructions; other_pc 0: there is no partner.
 * The text is "what happened", with lines for the partner after it.
 */
bool check_known(struct soft_watch *t, enum check_rule rule, uint64_t pc,
		 uint64_t other_pc);
void check_report(struct actor *a, enum check_rule rule, int lane,
		  uint64_t other_pc, const char *fmt, ...) T0_PRINTF(5, 6);
/* "global_load_b32 v1, v0, s[0:1] at saxpy+0x20 (saxpy.cl:3)" */
void check_where(const struct soft_watch *t, const struct site *s,
		 struct buf *out);

/* ------------------------------------------------------- check_wait.c ---- */

/* Registers that loads still own; then what this instruction waits for. */
void check_hazards(struct actor *a);
/* The instruction is issued: its number and what will complete it. */
uint32_t check_issue(struct actor *a, uint8_t classes);
/* All memory instructions of the class before this number are complete. */
uint32_t check_done(const struct shadow_wave *sw, int cls);

/* ------------------------------------------------------- check_init.c ---- */

void init_wave(struct shadow *sh, struct shadow_wave *sw, struct soft_wave *w);
/* Sinks, and how the instruction passes validity on; not its memory. */
void check_values(struct actor *a);
/* "`what` depends on ...": a finding. */
void check_uninit(struct actor *a, int lane, const char *what,
		  const struct origin *o);

/* ----------------------------------------------------- check_scalar.c ---- */

struct scalar {
	uint32_t v[2], ok[2]; /* value, initialised bits */
	struct origin from;   /* of what is not */
};
struct scalar check_read_scalar(struct actor *a, const struct isa_operand *o);
/* To n registers; EXEC is a sink. */
void check_write_scalar(struct actor *a, int reg, int n,
			const struct scalar *s);
void check_scalar(struct actor *a);

/* ----------------------------------------------------- check_vector.c ---- */

void check_vector(struct actor *a);
/* An instruction that only moves lanes; index_reg -1: by a fixed pattern. */
void check_permute(struct actor *a, int src_reg, int dst_reg, int index_reg);

/* ------------------------------------------------------- check_move.c ---- */

/* What loads bring into registers, and stores take to memory. */
void check_moved(struct actor *a);

/* -------------------------------------------------------- check_mem.c ---- */

void memory_reset(struct soft_watch *t);
/* Bounds, alignment and races of t->access. */
void check_memory(struct actor *a, uint32_t seq);
/* Are all n bytes, from `first` of the access on, initialised? */
bool memory_valid(struct actor *a, const struct access *x, uint32_t first,
		  uint32_t n);
void memory_set_valid(struct actor *a, const struct access *x, uint32_t first,
		      uint32_t n, bool valid);

/* ----------------------------------------------------- check_guess.c ---- */

/*
 * Is one of them the plain load that a loop of compare and exchange begins
 * with, and the other an atomic access?  What such a load brings is only a
 * guess, which the exchange compares: atomic operations that the hardware does
 * not have are compiled so.
 */
bool check_guess(struct actor *a, const struct race_slot *old,
		 const struct race_slot *new);

/* -------------------------------------------------------- check_hb.c ---- */

/* Did access (wave, class, seq) happen before what `a` does now? */
bool hb_before(const struct actor *a, uint32_t wave, int cls, uint32_t seq);
/* A wave releases and, with `acquire`, acquires by an atomic access. */
void hb_atomic(struct actor *a, uint64_t key, bool acquire, bool release);
void hb_invalidate(struct actor *a); /* buffer_gl0_inv */
void hb_barrier(struct shadow *sh);
void hb_fini(struct memory_shadow *m);
void clocks_fini(struct clocks *c);

/* ----------------------------------------------------- watch_trace.c ---- */

/* To t->trace (isa/trace/trace.h). */
void watch_trace_dispatch(struct soft_watch *t, const struct soft_launch *l);
void watch_trace_inst(struct soft_watch *t, const struct soft_wave *w,
		      const struct site *s);
/* An access as traces have it, and what all of an instruction share. */
struct trace_access watch_trace_access(const struct access *x, uint8_t *kind,
				       uint32_t *bytes);

/* ------------------------------------------------------- addr_table.c ---- */

void *addr_table_get(const struct addr_table *t, uint64_t key);
void addr_table_put(struct addr_table *t, uint64_t key, void *value);
void addr_table_fini(struct addr_table *t);

/* ---------------------------------------------------------- profile.c ---- */

void profile_print(const struct soft_watch *t, struct buf *out);
/* All registers of a wave, as text. */
void dump_wave(const struct soft_wave *w, struct buf *out);

#endif
