/*
 * sim_int - what the files of the simulator's core share.
 *
 * Times are cycles; "time" of something is the first cycle in which it holds.
 * All times of returns are known when an instruction issues (resources are
 * booked ahead), but for barriers, so a wave knows the earliest cycle of its
 * next issue unless another wave takes the slot.
 */
#ifndef T0_SIM_INT_H
#define T0_SIM_INT_H

#include "compiler/sim/sim.h"

#define SIM_VGPRS 256
#define SIM_SGPRS 129 /* 0..127 and SCC */
#define SIM_SCC 128
#define SIM_RING 32   /* most instructions remembered of a wave */
#define CODE_BYTES_MAX (64u << 20)
#define SIM_PENDING 64 /* most accesses of one counter in flight */
#define SIM_TRIPS_MAX  64 /* most that are looked at (steady_state.c) */

/*
 * Caches keep and pass on whole lines (rocminfo says 128); memory is asked for
 * sectors (AMD's profiler counts requests of 64; a trace of scattered cold
 * loads has their rate).
 */
#define LINE 128
#define SECTOR 64

/* Of these a SIMD issues one per cycle each. */
enum issue_kind {
	KIND_VALU,
	KIND_SALU,
	KIND_BRANCH,
	KIND_SMEM,
	KIND_LDS,
	KIND_VMEM,
	KIND_EXPORT,
	KIND_SPECIAL,
	KIND_DELAY, /* s_delay_alu: takes no slot */
};

/* Each register `r` of the ranges list[0..count); `k` is the range's index. */
#define SIM_EACH_REG(k, r, list, count)                                 \
	for (int k = 0; k < (count); k++)                               \
		for (int r = (list)[k].reg, end_ = r + (list)[k].n; r < end_; \
		     r++)

/* What is known of an instruction address before it runs. */
struct info {
	bool valid, end;
	uint8_t kind, pipe; /* enum issue_kind, enum sim_pipe */
	uint8_t class;	    /* enum cost_class */
	bool trans, wmma, back, store, load, atomic;
	uint8_t lds_dwords; /* that a lane moves through LDS */
	uint8_t export_cycles; /* of the VGPR read path */
	uint32_t latency, issue;
	uint8_t start;	   /* VALU: from issue to execution */
	uint8_t bank_stall;
	uint8_t n_vsrc, n_vdst, n_ssrc, n_sdst;
	struct { uint8_t reg, n; } vsrc[6], vdst[4];
	struct { uint8_t reg, n; } ssrc[8], sdst[4];
	uint8_t accum; /* WMMA: index in vsrc of C, 255: none */
	uint32_t line; /* index in the result */
	/* The last pattern of lanes in LDS, and what it costs. */
	uint64_t lds_pattern;
	uint32_t lds_cycles, lds_extra;
	struct isa_inst in; /* large, and looked at once: behind the rest */
};

/* What a line of the result counts. */
struct line_count {
	uint64_t stall[SIM_STALL_COUNT], conflicts, lines;
};

/* Results that VALU instructions will have had. */
struct ring {
	uint64_t at[SIM_RING];
	uint32_t n; /* ever */
};

/* Accesses in flight of one counter, ascending by return. */
struct pending {
	uint64_t at[SIM_PENDING];
	uint8_t stall[SIM_PENDING]; /* enum sim_stall of a wait for it */
	int n;
};

struct wave {
	int id, group, simd, cu;
	bool have_pc, at_barrier, ended;
	bool spilled;	   /* spill.c: it passed one, and no wait since */
	uint8_t priority;  /* s_setprio: 3 goes before 0, then age */
	uint32_t busy;	   /* cycles of its pipe that the last issue took */
	uint64_t start, end;
	uint64_t pc, next_pc; /* next in memory */
	struct info *info;
	int place;	   /* in the order of age, of s->ready too */
	uint64_t since;	   /* first cycle it could have issued `info` */
	uint64_t fetched;  /* code of `pc` is there */
	uint64_t fetch_line; /* last line looked up, +1 */
	bool fetch_next;   /* the window behind it was asked for */
	uint64_t issued;   /* last issue */
	uint64_t issues_here; /* executions by this wave so far */
	uint64_t hold;	   /* s_nop, s_sleep, a taken branch */
	uint8_t hold_why;  /* enum sim_stall */
	uint64_t last_vector; /* issue, if the instruction before was one */
	uint64_t store_read; /* if that was a store: its registers are read */
	uint64_t last_salu;
	uint8_t longest;   /* enum sim_stall since `since` */
	uint64_t longest_cycles;
	uint64_t valu_done; /* all results written */
	uint64_t salu_done;
	uint64_t salu_exec;
	uint32_t n_valu;
	struct ring valu, trans, valu_exec, salu_execs;
	struct ring wmma_exec; /* as valu_exec, 0 for all but matrix products */
	uint64_t delay;	   /* s_delay_alu: earliest issue of the next one */
	uint8_t delay_id, delay_skip; /* its second half, and when */
	/* km: of scalar memory where it has a counter of its own (gfx12). */
	struct pending vm, vs, lgkm, km, exp;
	uint64_t order_lds, order_vm, order_vs;
	uint64_t burst_issue; /* of its last vector load */
	int burst;	   /* loads up to that, one behind the other, since the
			    * first one that memory has to bring */
	uint64_t stall[SIM_STALL_COUNT];
	/* steady_state.c */
	uint64_t branch;   /* of the loop it is in; 0: none */
	uint64_t trips;	   /* times it came to that */
	uint64_t jump;	   /* to make at the next branch */
	double owed;	   /* parts of trips that jumps left out */
	uint64_t arrival[SIM_TRIPS_MAX]; /* [trip % SIM_TRIPS_MAX] */
	/* Vector ALU: when results can be forwarded to an execution. */
	uint64_t v_ready[SIM_VGPRS], v_exec[SIM_VGPRS];
	uint32_t v_seq[SIM_VGPRS]; /* number of the writing instruction */
	uint64_t v_wmma[SIM_VGPRS]; /* ready as A, B or for VALU; 0 */
	uint64_t v_read[SIM_VGPRS]; /* read by memory until then */
	/*
	 * Scalar registers: earliest issue of scalar readers of a vector result
	 * and of vector readers of a scalar result; earliest execution of
	 * readers in the unit that wrote it; last read by the vector ALU.
	 */
	uint64_t s_for_salu[SIM_SGPRS], s_for_valu[SIM_SGPRS];
	uint64_t s_in_salu[SIM_SGPRS], s_in_valu[SIM_SGPRS];
	uint64_t s_read[SIM_SGPRS];
	/* data.c: when what a register holds has come out of memory. */
	uint64_t v_data[SIM_VGPRS], s_data[SIM_SGPRS];
};

struct simd {
	uint64_t valu_free;  /* issue port */
	uint64_t trans_free;
	uint64_t exec_free;  /* execution, in order */
	uint64_t trans_exec;
	uint64_t sgpr_free;  /* for results in scalar registers */
	uint64_t salu_exec;
	int waves, vgprs;    /* in use, VGPRs in granules' registers */
};

/* A set-associative cache of lines, least recently used. */
struct cache {
	uint64_t *tag;	 /* [sets * ways], line + 1 */
	uint64_t *ready; /* [sets * ways], when the line has arrived */
	uint32_t *used;
	uint32_t sets, ways, clock;
};

struct cu {
	uint64_t lds_free;    /* data path of the half */
	uint64_t export_free; /* VGPR reads of LDS and stores */
	double l0_free;
	double vm_order;      /* loads return in order over all waves */
	struct ring lds_queue, vmem_queue; /* leave for the data path */
	struct ring lds_data; /* have had their data cycles */
	struct cache l0;
	uint32_t lds_bytes;   /* allocated */
	int groups;
};

struct group {
	int left;     /* waves that did not end */
	bool alone;   /* one wave: s_barrier is nothing */
	int arrived;  /* at the barrier */
	int half;     /* its LDS lies in this CU's half */
	uint64_t last; /* arrival */
};

struct sim {
	struct sim_source *src;
	const struct sim_config *c;
	const struct cost_model *m;
	const struct isa_chip *chip;
	struct sim_result *r;
	struct err *e;
	double mhz;
	uint64_t now;
	uint64_t cycles[COST_ROW_COUNT]; /* rows, rounded */
	struct info *info; /* [code dwords] */
	size_t info_from, info_end; /* those looked at lie in between */
	struct line_count *count; /* [r->n_lines] */
	uint32_t *gone; /* [code dwords] bytes before that go to scratch, or NULL */
	struct simd simd[SIM_SIMDS];
	struct cu cu[2];
	struct group *group;
	struct wave *wave[SIM_WAVES_MAX]; /* resident, oldest first */
	/* Look at them again then; those that have ended are gone then. */
	uint64_t ready[SIM_WAVES_MAX];
	int n_waves;
	struct wave *storage; /* [SIM_WAVES_MAX], id -1: not in use */
	int next_group;
	uint64_t next_launch;
	uint64_t slot_free; /* of the last wave that ended */
	/* Shared levels: this WGP's part. */
	struct cache l1, l2, mall, scalar, icache, tlb;
	double l1_free, l2_free, memory_free, l2_busy, memory_busy;
	double l1_rate, l2_rate, ic_rate, dram_rate; /* B per cycle, ours */
	uint8_t priorities;  /* all that any wave ever had, or'ed */
	bool walked;	     /* page directories have been read */
	bool from_memory;    /* a line of the access comes from there */
	enum sim_level home; /* where untouched data lies */
	int vgpr_need;	     /* of a wave, whole granules */
	int slots;	     /* waves of a SIMD */
	uint32_t lds_need;   /* of a group, whole granules */
	int next_cu;
	uint32_t cap_lines;
	uint32_t cap_occupancy;
	struct steady *steady; /* NULL: everything is simulated */
	uint64_t skew;	     /* cycles that were jumped over */
};

/* Cycles that a row costs, rounded; nanoseconds at the clock. */
static inline uint64_t sim_cycles(const struct sim *s, enum cost_row row)
{
	return s->cycles[row];
}
static inline uint64_t sim_ns(const struct sim *s, enum cost_row row)
{
	return (uint64_t)(cost_value(s->m, row) * s->mhz / 1e3 + 0.5);
}
/* What counts accesses of scalar memory. */
static inline struct pending *sim_scalar_counter(const struct sim *s,
						 struct wave *w)
{
	return isa_gen_info(s->chip->gen)->split_counters ? &w->km : &w->lgkm;
}
static inline uint64_t sim_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
static inline void ring_put(struct ring *r, uint64_t at)
{
	r->at[r->n++ % SIM_RING] = at;
}
/* The value put `back` puts ago, 1 = the last; 0 if there was none. */
static inline uint64_t ring_get(const struct ring *r, uint32_t back)
{
	return back && back <= r->n && back <= SIM_RING
		       ? r->at[(r->n - back) % SIM_RING] : 0;
}

/* ------------------------------------------------------------ info.c ---- */

/* The facts of the instruction at pc, decoded once; NULL and *e on failure. */
struct info *sim_info(struct sim *s, uint64_t pc);

/* The operand in a slot of the row, or NULL. */
const struct isa_operand *sim_operand(const struct isa_inst *in,
				      enum isa_slot slot);

/* ------------------------------------------------------------ data.c ---- */

/*
 * Without serial waits, what an instruction makes is there when all that it is
 * made of is.
 */
static inline bool sim_waits_for_data(const struct sim *s)
{
	return s->c->without & SIM_NO_SERIAL_WAITS;
}
/* When the operands have come out of memory; 0: they are not from there. */
uint64_t sim_data_ready(const struct wave *w);
/* The results are there at `at`, or when the operands are, if that is later. */
void sim_data_put(struct wave *w, uint64_t at);

/* ------------------------------------------------------------ wait.c ---- */

/*
 * The earliest cycle from s->now on in which the wave can issue what `w->info`
 * is, if no other wave is in the way; *why is the reason to wait for it.
 */
uint64_t sim_earliest(struct sim *s, struct wave *w, enum sim_stall *why);
/* Is this a wait for memory that is over at once? */
bool sim_waits_for_nothing(const struct sim *s, const struct wave *w);

/* ----------------------------------------------------------- spill.c ---- */

void sim_spill_init(struct sim *s);
void sim_spill_fini(struct sim *s);
/* Is `w->info` not in the code of a run without spills?  Then pass it. */
bool sim_spill_left_out(const struct sim *s, const struct wave *w);
bool sim_spill_pass(struct sim *s, struct wave *w);
/* Where what lies at pc would lie. */
static inline uint64_t sim_spill_pc(const struct sim *s, uint64_t pc)
{
	return s->gone ? pc - s->gone[(pc - s->src->code_va) / 4] : pc;
}

/* ------------------------------------------------------------ exec.c ---- */

/* Issue `w->info` in this cycle: reserve what it takes. */
bool sim_issue(struct sim *s, struct wave *w);

/* ---------------------------------------------------- steady_state.c ---- */

void sim_steady_init(struct sim *s);
void sim_steady_fini(struct sim *s);
/* A wave is about to execute a conditional backward branch. */
bool sim_steady_branch(struct sim *s, struct wave *w);
/* It has; behind it the wave `jumped` or did not. */
void sim_steady_jumped(struct wave *w, bool jumped);

/* ---------------------------------------------------------- memory.c ---- */

void sim_memory_init(struct sim *s);
void sim_memory_fini(struct sim *s);
/* Book an access; the return is counted in the wave's pending lists. */
void sim_vmem(struct sim *s, struct wave *w, const struct sim_step *st);
void sim_smem(struct sim *s, struct wave *w, const struct sim_step *st);
void pending_add(struct pending *p, uint64_t at, enum sim_stall stall);
/* Forget what has returned. */
void pending_drop(struct pending *p, uint64_t now);
/*
 * An instruction takes the VGPR read path, which LDS and vector memory share in
 * a CU; the cycle behind which its data go on.
 */
uint64_t sim_export_path(struct sim *s, struct wave *w);

/* ------------------------------------------------------------- lds.c ---- */

/* As those of memory.c. */
void sim_lds(struct sim *s, struct wave *w, const struct sim_step *st);

/* ----------------------------------------------------------- fetch.c ---- */

/* When the whole instruction is in the buffer of a wave that wants it now. */
uint64_t sim_fetch(struct sim *s, struct wave *w);
/* The wave's first instructions have been fetched for it by now. */
void sim_fetched(struct sim *s, uint64_t pc);

/* ----------------------------------------------------------- cache.c ---- */

void cache_init(struct cache *c, uint64_t bytes, uint32_t line, uint32_t ways);
void cache_fini(struct cache *c);
/*
 * Look a line up and take it in.  Returns where the cycle of its arrival is
 * kept, for the caller to set unless *hit.
 */
uint64_t *cache_find(struct cache *c, uint64_t line, bool *hit);

/* ---------------------------------------------------------- groups.c ---- */

/* Let groups that fit start; false and *e if one never can. */
bool sim_launch(struct sim *s);
/* A wave has ended at w->end: frees what it held. */
void sim_retire(struct sim *s, struct wave *w);
void sim_arrive(struct sim *s, struct wave *w);

#endif
