/*
 * probes/micro - costs of a gfx11 device, by running kernels on it: the manual.
 *
 * The counter is SHADER_CYCLES: 20 bits, a difference of two readings modulo
 * 2^20, so every timed loop is shorter than half of that.  gfx10_1 has none and
 * gives as many bits of s_memtime.  The kernel reads the 100 MHz clock, too,
 * which gives the shader clock of every pair.
 *
 *	setup; for each repetition:
 *		init; time of [ n copies] * iterations; store time and values
 *		init; time of [2n copies] * iterations; store time and values
 *
 * The first repetition of each dispatch warms up and is not looked at.  All
 * loops stay below the instruction cache (but for those that measure it).
 * Values left in the result registers are compared with plain C.
 *
 * Devices: kfd (a card), sim[:CHIP] (the soft device timed by the pipeline
 * simulator, probes/common/common.h).  Kernels are texts for gfx11; what a chip
 * does not have is left out.  The soft device alone has no time: ERR_UNSUPPORTED.
 */
#ifndef T0_PROBES_MICRO_H
#define T0_PROBES_MICRO_H

#include "compiler/cost/cost.h"
#include "probes/common/common.h"
#include "probes/micro/micro.h"

/* ----------------------------------------------------- micro_kernel.c --- */

enum {
	MICRO_LANES = 32,
	MICRO_REPS_MAX = 12,	 /* with the one that warms up */
	MICRO_WAVE_BYTES = 4096, /* of results, per wave */
	MICRO_REC_BYTES = 64,	 /* of a repetition; from offset 0 */
	MICRO_VALUES_AT = 1024,	 /* [2][2][lanes]: loop, low and high dword */
	MICRO_WAVES_MAX = 32,
};

/*
 * A kernel as text; all but `loop` may be NULL.  Several waves start each loop
 * together and end it together, by barriers: else the oldest would run first,
 * and each would measure itself alone.
 */
struct micro_text {
	const char *setup, *init;
	const char *loop[2];  /* bodies of the two loops */
	const char *wait;     /* before the second reading of the counter */
	const char *lo, *hi;  /* registers that hold the result: "v32", "s33" */
	uint32_t lds_bytes;
	uint32_t vgprs;	      /* 0 = 128 */
	uint32_t waves;	      /* of the workgroup; 0 = 1 */
};


/* Machine code of a chip; *e shows the line that was not understood. */
bool micro_kernel_assemble(const char *chip, const struct micro_text *t,
			   struct buf *code, struct err *e);

/*
 * Append `text` with %d, %e, %q and %h replaced by register number `reg`, the
 * next, the fourth and the eighth, and a newline.
 */
void micro_expand(struct buf *out, const char *text, int reg);

/* ----------------------------------------------------- micro_device.c --- */

struct micro_device {
	const struct probe_opts *o;
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_mem *out, *data;
	struct kfd_lock lock;
	struct cost_model costs; /* of the simulator, or to compare with */
	struct probe_timed *timed; /* NULL: a card, or what passes for one */
	bool brief; /* its time is modelled: short loops say all, once */
	uint64_t first; /* cycle that the simulator begins with */
	struct probe_run run;
	struct table table;
	struct probe_rejects rejects; /* of its rows */
	unsigned compared, agreed, wrong;
};

/*
 * Opens the device of o->device, a run of the database and a table.  On sim,
 * o->set (NAME=VALUE) changes the simulator's costs.
 */
bool micro_device_open(struct micro_device *d, const struct probe_opts *o,
		       const char *verb, const char *columns, struct err *e);
/* Ends the run, prints the table; exit code. */
int micro_device_close(struct micro_device *d, bool good, struct err *e);

struct micro_inst;

/* One thing that is measured. */
struct micro_probe {
	struct micro_device *d;
	const struct kfd_kernel *kernel;
	struct buf code;
	uint32_t waves, iterations, warm, reps;
	uint32_t groups; /* the first one is looked at */
	double copies;	    /* by which a pass of the two loops differs */
	const struct micro_inst *inst; /* NULL: a kernel of its own */
	const struct micro_inst *second; /* mixed with it, or NULL */
	bool stream;
	/* What the loops have to leave, by lane; valid if has_values. */
	bool has_values, right;
	uint32_t want[2][2][MICRO_LANES]; /* [loop][low, high] */
	/* Pairs of the last dispatch that were not taken yet. */
	struct probe_pair pair[MICRO_REPS_MAX];
	uint32_t n_pairs, next;
	double clock_hz;
	struct probe_series series;
};

/*
 * A probe for the kernel `t`.  `copies`: of what is measured, in the shorter
 * body; iterations: of both loops, 0 = as many as make them long enough.
 */
bool micro_probe_init(struct micro_probe *p, struct micro_device *d,
		      const struct micro_text *t, const char *name,
		      double copies, uint32_t iterations, struct err *e);
void micro_probe_fini(struct micro_probe *p);
/* Measure n of them, interleaved. */
bool micro_probe_run(struct micro_probe *p, size_t n, struct err *e);
/*
 * Store the median, its interval and samples, and the verdict on values.
 * scale: from cycles of one copy to the unit.
 */
bool micro_probe_store(struct micro_probe *p, const char *area,
		       const char *name, const char *params,
		       const char *metric, const char *unit, double scale,
		       struct err *e);

/* ------------------------------------------------------- micro_inst.c --- */

enum micro_set { MICRO_V1, MICRO_V2, MICRO_V4, MICRO_V8, MICRO_S1, MICRO_S2 };

/* One lane's result and operands. */
union micro_value {
	uint32_t u[2];
	float f[2];
	uint64_t w;
	double d;
};

struct micro_inst {
	const char *name;
	enum micro_set set;
	char init;
	unsigned copies;
	/* A copy of the chain takes per * latency + extra; 0: 1. */
	unsigned per, extra;
	const char *latency, *interval; /* rows of cost.def, "" */
	const char *chain, *stream;
	unsigned burst; /* copies of the stream, or 0: as of the chain */
	const char *end; /* text behind these, or NULL */
	void (*step)(union micro_value x[MICRO_LANES],
		     const union micro_value *a, const union micro_value *b);
};
const struct micro_inst *micro_insts(size_t *n);
/* Does the chip have all that it is made of? */
bool micro_inst_on(const struct micro_inst *i, const char *chip);
/*
 * A row for any vector or scalar ALU instruction of the table, with operands
 * made from its slots; no C (step NULL).  NULL and *e where the operands are
 * of other kinds.  `mem` owns it.
 */
const struct micro_inst *micro_inst_make(const char *mnemonic,
					 struct arena *mem, struct err *e);

/* A probe for the chain, or the stream, of `i`, in so many waves. */
bool micro_inst_probe(struct micro_probe *p, struct micro_device *d,
		      const struct micro_inst *i, bool stream, uint32_t waves,
		      struct err *e);
/*
 * Fills p->want with what C makes of p->inst and p->iterations; of p->second
 * instead of the high dword, if there is one.
 */
void micro_inst_want(struct micro_probe *p);
/* The first result register, "v32": of the second set, too. */
void micro_inst_result(const struct micro_inst *i, bool second, char name[16]);
/*
 * Append the copy number k of a stream; `second`: on registers that no stream
 * has which is not `second`, so that two can be mixed.
 */
void micro_inst_copy(const struct micro_inst *i, int k, bool second,
		     struct buf *out);
/* Text that fills the registers of `i` before a loop, appended. */
void micro_inst_init(const struct micro_inst *i, bool second,
		     struct buf *setup, struct buf *init);

/* -------------------------------------------------------- dispatch.c ---- */

/* What a launch costs; exit code. */
int probe_dispatch(const struct probe_opts *o, struct err *e);

/* ------------------------------------------------------ micro_cost.c ---- */

/* t0-probe latency, throughput; exit codes. */
int micro_latency(const struct probe_opts *o, struct err *e);
int micro_throughput(const struct probe_opts *o, struct err *e);

/* ---------------------------------------------------- micro_memory.c ---- */

int micro_memory(const struct probe_opts *o, struct err *e);

/* ------------------------------------------------------- micro_lds.c ---- */

int micro_lds(const struct probe_opts *o, struct err *e);

/* ----------------------------------------------------- micro_clock.c ---- */

/* t0-probe clock: the clock by the share of the time under load. */
int micro_clock(const struct probe_opts *o, struct err *e);

/* ------------------------------------------------------- micro_mix.c ---- */

int micro_overlap(const struct probe_opts *o, struct err *e);
int micro_branch(const struct probe_opts *o, struct err *e);
int micro_fetch(const struct probe_opts *o, struct err *e);
int micro_waves(const struct probe_opts *o, struct err *e);

#endif
