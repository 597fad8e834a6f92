/*
 * sim - the timing of machine code, cycle by cycle: of gfx1100's, and of other
 * chips' with the costs of those.
 *
 * The simulator takes decoded machine code and the addresses it touches from a
 * *wave source*, and the costs of everything from a struct cost_model
 * (compiler/cost/cost.h).  It knows no values: a source says where each wave
 * goes.  Sources are a trace file of the soft device (sim_trace_open()), an
 * affine description of loops and addresses (sim_affine_open()), a recorded
 * hardware trace (compiler/sim/examine/examine.h), or anything else that fills
 * struct sim_source, such as the soft device itself, one instruction at a time.
 *
 * What is simulated is one workgroup processor (WGP): two compute units (CU)
 * of two SIMDs each, its caches, and its share of what the GPU shares: L1, L2,
 * Infinity Cache, DRAM.  Workgroups wait in a line and enter as slots, VGPRs,
 * LDS and barriers allow.  sim_gpu() makes a time for the whole GPU of it.
 *
 * Model, in the words of cost.def:
 * - A SIMD issues, per cycle, at most one instruction of each kind (vector ALU,
 *   scalar, branch, LDS, vector memory, export, special), from different waves,
 *   by priority (s_setprio) and age; a wave issues at most one.
 * - Vector ALU instructions issue into a queue and execute behind it in order,
 *   `valu.start` later at the earliest; a result is forwarded for a while and
 *   then read from the register file.  s_delay_alu holds a wave back so that
 *   its instruction does not block the queue.
 * - LDS, vector and scalar memory are pipes with a rate and a latency;
 *   counters count their returns in order (scalar memory: out of order).
 * - Nothing is drawn by chance: the same input gives the same cycles.
 *
 * Every cycle of every wave is either an issue or a stall with one reason, so
 * for each wave  issues + stalls = end - start.
 */
#ifndef T0_SIM_H
#define T0_SIM_H

#include "base/base.h"
#include "compiler/cost/cost.h"
#include "isa/code/code.h"
#include "isa/object/object.h"
#include "isa/trace/trace.h"

#define SIM_SIMDS 4
#define SIM_WAVES_MAX 64   /* resident on a WGP */
#define SIM_NEVER UINT64_MAX
#define SIM_TRIPS 8 /* sim_config.trips, when time matters */

/* Why a wave did not issue in a cycle. */
enum sim_stall {
	SIM_ISSUE,	/* it did */
#define STALL(id, name, text) SIM_##id,
#include "compiler/sim/stall.def"
	SIM_STALL_COUNT
};

/* What an instruction occupies: the limiting one is the most busy. */
enum sim_pipe {
#define PIPE(id, name, text) SIM_PIPE_##id,
#include "compiler/sim/stall.def"
	SIM_PIPE_COUNT
};

/* ------------------------------------------------------- wave sources ---- */

/* What one executed instruction did, valid until the next call. */
struct sim_step {
	uint64_t exec;	/* EXEC it ran under */
	uint8_t kind;	/* enum trace_kind, when there are accesses */
	uint32_t access_bytes; /* of each */
	uint32_t n_accesses;
	const struct trace_access *access; /* [n_accesses] */
};

/*
 * How many workgroups fetch a line at the same time, this one included, as far
 * as the simulated caches do not see it: on the whole GPU, for which memory is
 * asked once, and in the shader array, whose L1 asks L2 once.
 */
struct sim_sharing {
	double gpu, array;
};

/*
 * Waves have numbers: wave = group * waves_per_group + wave in the group, for
 * `n_groups` groups in the order of their dispatch.  Calls for one wave come in
 * program order: begin() of its group once, then pc(), step(), pc(), step() ...
 * until pc() says that it has ended.  Between s_barrier's step() and the next
 * pc() of a wave all other waves of the group have stepped their barrier or
 * ended.  Calls for different waves interleave as the simulator decides.
 */
struct sim_source {
	void *ctx;
	/* Whose code it is; NULL: that of the chip that the costs are of. */
	const char *chip;
	const uint8_t *code; /* all that may execute */
	uint64_t code_va;
	size_t code_bytes;
	int wave_size;	     /* 32 or 64 */
	int waves_per_group;
	int n_groups;	     /* that this WGP executes */
	uint32_t lds_bytes;  /* of a group */
	int vgprs;	     /* of a wave, not rounded */
	bool cu_mode;	     /* a group stays in one CU */
	/* Of the GPU, and WGPs of each; sim_run() sets them. */
	int arrays, array_wgps;
	int group_sgpr;	     /* register of the workgroup's x; 0: none */
	uint64_t unknown;    /* accesses so far that it knew no address of */

	/* Waves of `group` come to life at `cycle`.  May be NULL. */
	bool (*begin)(struct sim_source *s, int group, uint64_t cycle,
		      struct err *e);
	/* The address of the wave's next instruction; false: it has ended. */
	bool (*pc)(struct sim_source *s, int wave, uint64_t *pc);
	/*
	 * Execute it: the simulator issues it in `cycle`, which is what
	 * SHADER_CYCLES reads there.  false and *e on failure.
	 */
	bool (*step)(struct sim_source *s, int wave, uint64_t cycle,
		     struct sim_step *out, struct err *e);
	/*
	 * Who else fetches the lines of the instruction at pc at that time;
	 * *out holds ones.  NULL: nobody.
	 */
	void (*sharing)(struct sim_source *s, uint64_t pc,
			struct sim_sharing *out);
	/*
	 * How often the wave, which is in the loop that ends with the branch
	 * at pc, will take that branch before it does not.
	 */
	bool (*trips)(struct sim_source *s, int wave, uint64_t pc,
		      uint64_t *left, struct err *e);
	/*
	 * The wave is about to execute a conditional backward branch.  Go on,
	 * untimed, until that branch is next again and has been taken `most`
	 * times, or will not be taken; *taken says how often it was.  NULL:
	 * this source cannot.
	 */
	bool (*jump)(struct sim_source *s, int wave, uint64_t most,
		     uint64_t *taken, struct err *e);
};

/* --------------------------------------------------------- simulation ---- */

/* Where data lies before the first access. */
enum sim_warmth {
	SIM_COLD, /* in DRAM, pages not in the TLB; code not in caches */
	SIM_WARM, /* in the smallest level that holds `footprint_bytes` */
	SIM_EMPTY, /* in DRAM, but pages are in the TLB: what caches hold is
		    * what the kernel has brought into them */
};

/*
 * Memory that lies in DRAM whatever the warmth, for the first `rounds` of the
 * fullest WGP: what these bring into caches, later ones find there.  0: always.
 */
struct sim_cold {
	uint64_t at, bytes;
	int rounds;
};
enum { SIM_COLD_MOST = 2 };

/* An instruction issues: what observers see, in order of cycles. */
struct sim_event {
	uint64_t cycle, pc;
	uint64_t ready;	 /* when the wave could first look at it */
	int wave, simd, slot;
	enum sim_stall stall; /* the longest wait since `ready` */
	enum sim_pipe pipe;
	uint32_t busy;	      /* cycles of its pipe */
	const struct isa_inst *in;
};

/*
 * What a run does without, to see what it costs (what_if.c): as if its code had
 * been mended there, and all else stayed as it is.
 */
enum sim_without {
	SIM_NO_CONFLICTS = 1,	/* lanes never meet in a bank of LDS */
	SIM_NO_SCATTER = 2,	/* lanes of an access are neighbours in memory */
	SIM_NO_SPILLS = 4,	/* nothing goes to scratch */
	SIM_NO_SERIAL_WAITS = 8, /* loads are waited for where memory, a barrier
				  * or a branch needs what they bring */
	SIM_NO_VGPR_LIMIT = 16, /* on the waves of a SIMD */
	SIM_NO_LDS_LIMIT = 32,	/* on the workgroups of a CU */
	SIM_NO_BARRIERS = 64,	/* nobody waits for other waves */
};

struct sim_config {
	const struct cost_model *cost;
	double clock_mhz;     /* 0: the model's "clock" */
	enum sim_warmth warmth;
	uint64_t footprint_bytes; /* of the dispatch, for SIM_WARM */
	const struct sim_cold *cold; /* [n_cold] none of it is in a cache */
	int n_cold;
	int busy_wgps;	      /* that share L2 and memory; 0: all */
	bool warm_code;	      /* the instruction cache holds the code */
	bool lax;	      /* code may hold what no table knows: recorded
			       * programs that try everything */
	bool scattered;	      /* accesses without addresses: a line per lane */
	uint64_t max_cycles;  /* 0: 10^9; more is an error */
	/*
	 * Loops in a steady state are jumped over: see steady_state.c.  0:
	 * never; SIM_TRIPS is a good number.
	 */
	int trips;
	/* Given times of the waves' first issue, [waves], or NULL. */
	const uint64_t *start;
	const int *simd;      /* [waves] their SIMDs, or NULL */
	void (*issued)(void *ctx, const struct sim_event *ev); /* or NULL */
	void *ctx;
	unsigned without; /* enum sim_without */
};

/* Of one instruction address. */
struct sim_line {
	uint64_t pc;
	struct isa_inst in;
	uint64_t issues;	/* times executed, over all waves */
	uint64_t stall[SIM_STALL_COUNT]; /* cycles before issue; [0] = issues */
	uint64_t conflicts;	/* LDS cycles beyond the first of a phase */
	uint64_t lines;		/* cache lines asked for */
};
struct sim_wave_times {
	uint64_t start, end;
	uint64_t stall[SIM_STALL_COUNT]; /* [0]: issues */
	int simd;
};
/* Waves resident from this cycle on. */
struct sim_occupancy {
	uint64_t cycle;
	int waves;
};
enum sim_level { SIM_L0, SIM_L1, SIM_L2, SIM_IC, SIM_DRAM, SIM_LEVELS };

/* Zero-initialise; end with sim_fini(). */
struct sim_result {
	uint64_t cycles;    /* of the WGP, first start to last end */
	uint64_t skipped;   /* of these, not simulated but extrapolated */
	double clock_mhz, time_s;
	uint64_t issues;    /* wave-instructions */
	int wave_size;
	uint64_t stall[SIM_STALL_COUNT]; /* sum over the waves */
	uint64_t busy[SIM_PIPE_COUNT];	 /* cycles, summed over SIMDs or CUs */
	double share[SIM_PIPE_COUNT];	 /* of what the pipe could do */
	enum sim_pipe limit;		 /* the busiest */
	uint64_t bytes[SIM_LEVELS];	 /* served by each level */
	double exchanged_bytes;		 /* with DRAM or IC, sharing counted */
	struct sim_line *line; /* [n_lines] ascending by pc */
	int n_lines;
	struct sim_wave_times *wave; /* [n_waves] */
	int n_waves;
	int resident;	    /* waves on the WGP at most */
	int slots;	    /* waves that fit a SIMD */
	const char *occupancy_limit; /* isa/code/code.h */
	struct sim_occupancy *occupancy; /* [n_occupancy] ascending */
	int n_occupancy;
};

/* ------------------------------------------------------------ core.c ---- */

/*
 * false and *e: a source that failed, code that does not decode or is another
 * chip's than the costs, too long.
 */
bool sim_run(struct sim_source *s, const struct sim_config *c,
	     struct sim_result *r, struct err *e);
void sim_fini(struct sim_result *r);

const char *sim_stall_name(enum sim_stall s);
const char *sim_stall_text(enum sim_stall s); /* a line for people */
const char *sim_pipe_name(enum sim_pipe p);

/* -------------------------------------------------------- timeline.c ---- */

/* Issues and stalls of all waves in the order of cycles.  Zero-initialise. */
struct sim_timeline {
	struct sim_timeline_event {
		uint64_t cycle, ready;
		uint32_t busy;
		uint16_t op;
		int16_t wave;
		uint8_t simd, stall, pipe;
		uint64_t pc;
	} *v;
	size_t n, cap;
	bool full; /* SIM_TIMELINE_MAX reached */
};
#define SIM_TIMELINE_MAX 2000000

/* A sim_config.issued; ctx is the timeline. */
void sim_timeline_issue(void *ctx, const struct sim_event *ev);
/* Trace-event JSON, which Perfetto opens; one cycle is one microsecond. */
bool sim_timeline_write(const struct sim_timeline *t,
			const struct sim_result *r, const char *path,
			struct err *e);
void sim_timeline_fini(struct sim_timeline *t);

/* ------------------------------------------------------------- gpu.c ---- */

/* A dispatch on the whole GPU, from simulated workgroups of one WGP. */
struct sim_gpu {
	uint64_t groups;	/* of the dispatch */
	int wgps;		/* of the GPU */
	int groups_per_wgp;	/* that fit at once */
	double full_rounds;	/* of the fullest WGP */
	double cycles, time_s;	/* without the launch */
	double launch_s;
	const char *limit;	/* "wgp", "memory", "dispatch" */
};
/*
 * Time of `groups` workgroups, of which `r` simulated `simulated` on one WGP.
 * Workgroups go round robin over the WGPs, so the fullest decides: rounds of
 * as many groups as fit, the last of them partly filled (the tail).
 */
void sim_gpu(const struct sim_result *r, const struct sim_config *c,
	     int simulated, uint64_t groups, struct sim_gpu *out);

/* -------------------------------------------------------- flop.c --------- */

/*
 * Floating-point operations of what was simulated, as if no lane were masked:
 * a fused multiply-add is two, a function (exp, rcp) one.  Products of integers
 * count as those of numbers.
 */
double sim_flop(const struct sim_result *r);

/* ----------------------------------------------------- predict.c -------- */

/*
 * The whole GPU's time of a dispatch in one call.  The fullest WGP decides: it
 * gets every 48th workgroup (gpu.wgps) and holds `at_once` of them, so it works
 * through whole rounds of so many and one of the rest.  A round of each kind
 * is simulated with all that it shares: L1 with the WGPs of its array, L2 and
 * memory with all that are busy, lines that several workgroups of the GPU
 * fetch at the same time once.  Loops in a steady state are jumped over.
 */
struct sim_dispatch {
	const struct cost_model *cost;
	uint64_t groups;	  /* workgroups of the grid */
	uint64_t footprint_bytes; /* that the dispatch goes over, once each */
	enum sim_warmth warmth;
	const struct sim_cold *cold; /* [n_cold], SIM_COLD_MOST at most */
	int n_cold;
	int trips;		  /* as in sim_config */
	/* Workgroups differ in length: simulated is all that the WGP gets. */
	bool uneven;
	/*
	 * 0: what the power limit leaves (cost_clock()), where dispatches like
	 * this one follow each other with idle_s between, 0: "dispatch.launch".
	 */
	double clock_mhz, idle_s;
	/* As in sim_config, of the first round; clock_mhz has to be given. */
	void (*issued)(void *ctx, const struct sim_event *ev);
	void *issued_ctx;
	/* A source of the first `n` workgroups of a WGP: 0, 48, 96, ... */
	bool (*open)(void *ctx, struct sim_source *s, int n, struct err *e);
	void (*close)(struct sim_source *s);
	void *ctx;
	unsigned without; /* as in sim_config */
};
struct sim_forecast {
	double time_s;	   /* on the GPU, with neither launch nor copies */
	double launch_s;   /* of one more in a row, from a queue */
	double cycles, clock_mhz;
	int groups;	   /* of the fullest WGP */
	int at_once;	   /* that it holds */
	double rounds;
	const char *limit; /* name of the busiest pipe, or "dispatch" */
	struct sim_result round; /* a full one, the only one, or all */
	uint64_t unknown;  /* accesses without addresses, of those simulated */
};
/* false and *e: a kernel that does not fit, or what the source says. */
bool sim_forecast(const struct sim_dispatch *d, struct sim_forecast *out,
		  struct err *e);
void sim_forecast_fini(struct sim_forecast *f);

/* ---------------------------------------------------- object_source.c --- */

/* Bytes that scalar loads may read: arguments, and what waves branch on. */
struct sim_memory {
	uint64_t va;
	const void *bytes;
	uint64_t size_bytes;
};

/* A kernel of a code object, launched. */
struct sim_launch {
	const struct co_kernel *kernel;
	const void *kernarg; /* all of it, hidden arguments too */
	size_t kernarg_bytes;
	uint32_t groups[3];	/* workgroups of the grid */
	uint32_t group_size[3]; /* work-items of a workgroup */
	/* Of the grid, where the last workgroups are partial; 0: all whole. */
	uint32_t grid[3];
	uint32_t lds_bytes;	/* dynamic, beyond the descriptor's */
	/* Buffers whose contents kernels branch on, as lengths are. */
	const struct sim_memory *memory; /* [n_memory], the caller's */
	int n_memory;
	struct sim_cold cold[SIM_COLD_MOST]; /* [n_cold] of a forecast */
	int n_cold;
	/* Number of the WGP's first workgroup: which WGP is looked at. */
	uint32_t first;
	/*
	 * Where a branch would skip code depending on data, follow the path
	 * that skips nothing, instead of giving up.
	 */
	bool guess;
	bool uneven; /* as in sim_dispatch */
};

/*
 * Waves of a kernel from its code and arguments alone: real addresses, real
 * trips of loops, without executing it (compiler/sim/machine.h says what can
 * be followed; kernels that branch on data that they load cannot).  Workgroup
 * k is number first + k * every of the grid; x runs fastest.
 */
bool sim_object_open(struct sim_source *s, const struct sim_launch *l,
		     int n_groups, int every, struct err *e);
void sim_object_close(struct sim_source *s);

/*
 * sim_forecast() of it (predict.c):
 *
 *	struct sim_launch l = {
 *		.kernel = co_kernel_require(&co, "gemm", &e),
 *		.kernarg = args, .kernarg_bytes = sizeof(args),
 *		.groups = { 32, 32, 1 }, .group_size = { 128, 1, 1 },
 *	};
 *	struct sim_forecast f;
 *
 *	if (!sim_object_forecast(&costs, &l, footprint_bytes, &f, &e))
 *		return err_wrap(&e, "gemm");
 *	printf("%.1f us, limited by %s\n", f.time_s * 1e6, f.limit);
 *	sim_forecast_fini(&f);
 */
bool sim_object_forecast(const struct cost_model *m,
			 const struct sim_launch *l, uint64_t footprint_bytes,
			 struct sim_forecast *out, struct err *e);
/* The same with *how's costs, footprint, warmth, trips, clock and observer. */
bool sim_object_forecast_as(const struct sim_dispatch *how,
			    const struct sim_launch *l,
			    struct sim_forecast *out, struct err *e);

/* ------------------------------------------------------ plan_launch.c --- */

struct launch_plan; /* isa/launch/launch.h */

/*
 * A plan that launch_check() passed, to simulate: buffers lie far apart, hold
 * what the operands say, and hidden arguments are those of a queue.
 */
struct sim_plan {
	struct sim_launch launch;
	struct sim_memory *memory; /* owned */
	uint64_t groups;	   /* workgroups of the grid */
	uint64_t buffer_bytes;	   /* of all buffers */
};
/* The plan has to stay; end with sim_plan_fini(), whatever came of it. */
bool sim_plan_init(struct sim_plan *p, struct launch_plan *l, struct err *e);
/*
 * sim_object_forecast_as() of the WGP that has the first workgroup, or of that
 * with the last, where masks and partial workgroups are: of the slower, whose
 * number is in launch.first then.
 */
bool sim_plan_forecast(const struct sim_dispatch *how, struct sim_plan *p,
		       struct sim_forecast *out, struct err *e);
void sim_plan_fini(struct sim_plan *p);

/* -------------------------------------------------------- what_if.c ---- */

/* A change that somebody could make to a kernel. */
struct sim_change {
	unsigned without; /* enum sim_without */
	const char *name, *what, *how; /* what is wrong, and what to do */
};
struct sim_gain {
	const struct sim_change *change;
	double times; /* so many times as fast */
};
enum { SIM_CHANGES = 7 };
/*
 * The same dispatch again with each change made, at the clock of `before`: those
 * that gain one percent or more, the best first.
 */
bool sim_what_if(const struct sim_dispatch *how, struct sim_plan *p,
		 const struct sim_forecast *before,
		 struct sim_gain out[SIM_CHANGES], int *n, struct err *e);

/* ---------------------------------------------------- trace_source.c ---- */

/*
 * Dispatch `number` (0: the last) of a trace of the soft device; groups beyond
 * `max_groups` (0: as many as one WGP gets of them) are left out.
 */
bool sim_trace_open(struct sim_source *s, const void *bytes, size_t len,
		    uint64_t number, int max_groups, struct err *e);
/* Workgroups of the dispatch, and the name of its kernel. */
uint64_t sim_trace_groups(const struct sim_source *s);
const char *sim_trace_kernel(const struct sim_source *s);
void sim_trace_close(struct sim_source *s);

/* --------------------------------------------------- affine_source.c ---- */

/*
 * Code with an affine description instead of a trace: a text of lines
 *
 *	groups N            workgroups of this WGP (default 1)
 *	waves N             of a workgroup
 *	exec MASK           of all instructions, hex (default: all lanes)
 *	loop OFFSET N       the backward branch at OFFSET is taken N times in
 *			    a row, then once not (default: never taken)
 *	taken OFFSET        the forward branch at OFFSET is always taken
 *	at OFFSET [base=B] [lane=L] [fold=F] [row=R] [wave=W] [group=G]
 *	   [step=S] [share=N] [near=N]
 *
 * Where there is no line of any branch, those that are met again are taken: a
 * loop that is left at its beginning goes round once.
 *
 * OFFSET is in bytes from the kernel's first instruction.  The address of lane
 * l in the i-th execution of that memory instruction by wave w of group g is
 *	base + (l % F)*L + (l / F)*R + w*W + g*G + i*S
 * with F = 64 where it is not given; addresses of LDS instructions are offsets
 * in LDS.  `share` and `near` are struct sim_sharing.  For memory instructions
 * without a line they are guessed from the code (lanes.c).
 */
bool sim_affine_open(struct sim_source *s, const uint8_t *code, size_t bytes,
		     uint64_t code_va, const char *text, const char *name,
		     struct err *e);
void sim_affine_close(struct sim_source *s);

/* ----------------------------------------------------------- lanes.c ---- */

/*
 * Guesses addresses from code: which bytes each lane of a wave touches when
 * nobody recorded it.  Evaluated are the integer instructions that compilers
 * make addresses of, from v0 = number of the lane.  What is not known
 * (arguments, workgroup ids, loaded data) is 0, and pointers that are loaded
 * are far from each other, so the pattern of the lanes is right where the code
 * follows from it, and the place in memory is not.
 */
#define SIM_LANES 32

struct sim_lanes {
	uint32_t v[256][SIM_LANES];
	uint32_t s[128];
	bool carry[SIM_LANES]; /* what v_add_co left, whatever the register */
	uint32_t region;       /* pointers handed out */
	uint32_t id;	       /* tells the pointers of waves apart */
	struct trace_access access[SIM_LANES];
};

/* `id` tells waves apart whose pointers must differ; equal ones share data. */
void sim_lanes_init(struct sim_lanes *l, uint32_t id);
/* The accesses of a memory instruction, before sim_lanes_exec() of it. */
void sim_lanes_access(struct sim_lanes *l, const struct isa_inst *in,
		      struct sim_step *out);
/* Evaluate an instruction; one it does not know leaves its result as it was. */
void sim_lanes_exec(struct sim_lanes *l, const struct isa_inst *in);
/* Bytes that a lane moves: the widest vector register but the address. */
uint32_t sim_access_bytes(const struct isa_inst *in);

/* ----------------------------------------------------------- range.c ---- */

enum sim_range_id {
#define TIME_RANGE(id, least, most, rows, of) SIM_RANGE_##id,
#include "compiler/sim/range.def"
};
struct sim_range {
	double least, most; /* measured over simulated, of 80 % */
	int rows;	    /* that it was made of */
	const char *of;
};
/* NULL of a chip of which no measured times are published. */
const struct sim_range *sim_range(enum sim_range_id id, const char *chip);

/* ------------------------------------------------------------ info.c ---- */

/*
 * Decode what hardware would accept, stray bits and all; *t has generation and
 * wave size, and becomes what it was decoded as.  NULL, or why it is no instruction.
 */
const char *sim_decode(const uint8_t *code, size_t left, struct isa_target *t,
		       struct isa_inst *in);

#endif
