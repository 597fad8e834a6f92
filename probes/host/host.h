/*
 * probes/host - the host's own processor, measured the same way: the manual.
 *
 * A GPU may be missing; the processor that runs T0 never is.  It is silicon
 * whose figures others have published, so measuring it proves the method
 * (probes/common/common.h): where ours and theirs agree, the method works.
 *
 * host.def lists the instructions, host_published.def what others found for
 * them.  The code of a loop is made at run time from pieces
 * of machine code in the binary: a beginning that loads the registers, copies
 * of the instruction, a jump back, an end that saves the registers.
 */
#ifndef T0_PROBES_HOST_H
#define T0_PROBES_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "probes/common/common.h"

/* ------------------------------------------------------- host_cpu.c ----- */

/* What an instruction needs of the processor. */
enum host_need {
	HOST_BASE, HOST_SSE2, HOST_SSSE3, HOST_SSE41, HOST_SSE42, HOST_POPCNT,
	HOST_LZCNT, HOST_BMI, HOST_BMI2, HOST_PCLMUL, HOST_AVX, HOST_AVX2,
	HOST_FMA, HOST_F16C, HOST_AVX512F, HOST_AVX512BW, HOST_AVX512DQ,
	HOST_AVX512CD, HOST_AVX512VNNI, HOST_AVX512VPOPCNT, HOST_NEEDS
};
bool host_has(enum host_need need);

/* Microarchitectures that there are published figures of. */
enum host_arch {
	HOST_OTHER,
	HOST_ZEN3,
	HOST_ZEN4,
	HOST_SKX, /* Skylake-X, Cascade Lake */
	HOST_ICX, /* Ice Lake, Sunny Cove */
	HOST_GLC, /* Golden Cove: Sapphire Rapids, Emerald Rapids */
	HOST_RWC, /* Redwood Cove: Granite Rapids */
	HOST_ARCHES
};

#define HOST_CACHES_MAX 4

struct host_cpu {
	char name[64];		/* as CPUID says */
	enum host_arch arch;
	char why[160];		/* how that was found out */
	uint64_t tsc_hz;	/* of the time-stamp counter, measured */
	bool invariant;		/* it runs at one rate in all states */
	uint64_t cache_bytes[HOST_CACHES_MAX]; /* data, by level; 0 = none */
	int n_caches;
	bool virtual_machine;	/* caches are shared with others' */
	unsigned cpus;		/* that this process may use */
};
void host_cpu_read(struct host_cpu *c);
const char *host_arch_name(enum host_arch a);

/* What identifies a microarchitecture: a hypervisor may hide the model. */
struct host_facts {
	char vendor[13];
	unsigned family, model;
	bool avx512f, avx512_fp16, amx, gfni;
	uint64_t l1i_bytes, l1d_bytes;
};
enum host_arch host_arch_of(const struct host_facts *f, char why[160]);

/* ------------------------------------------------------ host_step.c ----- */

/* One vector register, or the first 8 bytes for an integer one. */
union host_reg {
	uint8_t u8[64];
	int8_t i8[64];
	uint16_t u16[32];
	int16_t i16[32];
	uint32_t u32[16];
	int32_t i32[16];
	uint64_t u64[8];
	int64_t i64[8];
	_Float16 f16[32];
	float f32[16];
	double f64[8];
};

/* What a loop starts from and what it leaves; laid out for host_code.c. */
struct host_state {
	uint64_t data;		/*   0 %rdi */
	uint64_t a, b, c;	/*   8 %rsi, %rdx, %rcx */
	uint64_t x;		/*  32 %r8..%r15 */
	uint64_t out;		/*  40 %r8 afterwards */
	uint64_t unused[2];
	union host_reg vx;	/*  64 registers 0 and 4.. */
	union host_reg va, vb, vk; /* 128, 192, 256: 1, 2, 3 */
	union host_reg vout;	/* 320 register 4 afterwards */
} __attribute__((aligned(64)));

enum { HOST_DATA_BYTES = 8192, HOST_STORES_AT = 4096 };

enum host_set { HOST_G64, HOST_X, HOST_Y, HOST_Z, HOST_ZF };

struct host_inst {
	const char *name;
	enum host_need need;
	enum host_set set;
	char init; /* G P N F D I, see host.def */
	/* One step in C: *x is before, then after. */
	void (*step)(union host_reg *x, const struct host_state *s);
	void (*stream_step)(union host_reg *x, const struct host_state *s);
	/* Machine code of one copy, and of one round of the registers. */
	const uint8_t *chain, *chain_end, *stream, *stream_end;
};
/* All rows of host.def. */
const struct host_inst *host_insts(size_t *n);
const struct host_inst *host_inst_find(const char *name);
/* Registers that a stream goes round. */
int host_set_size(enum host_set set);

/* The state that `i` starts from; data: HOST_DATA_BYTES, aligned to 64. */
void host_state_init(struct host_state *s, const struct host_inst *i,
		     uint8_t *data);
/*
 * Are the registers and memory in `s` what `steps` steps of C make of it?
 * `stream`: of the first of its registers.  with: another instruction whose
 * streams take turns with i's on the same registers, or NULL.
 */
bool host_state_check(const struct host_state *s, const struct host_inst *i,
		      const struct host_inst *with, bool stream,
		      uint64_t steps);

/* ------------------------------------------------------ host_code.c ----- */

struct host_code; /* executable memory */
typedef void host_loop_fn(struct host_state *s, uint64_t iterations);

struct host_code *host_code_new(struct err *e);
void host_code_free(struct host_code *c);
/*
 * A loop over `copies` times the bytes at piece; `second` (may be empty) is
 * put behind each copy.  The beginning is aligned to 64 bytes.  NULL: no room.
 */
host_loop_fn *host_code_loop(struct host_code *c, enum host_need level,
			     const uint8_t *piece, size_t piece_bytes,
			     const uint8_t *second, size_t second_bytes,
			     unsigned copies);
/* After the last loop was made and before the first is run. */
bool host_code_seal(struct host_code *c, struct err *e);

/* Ticks of the time-stamp counter that one call takes. */
uint64_t host_time(host_loop_fn *f, struct host_state *s, uint64_t iterations);

/* ------------------------------------------------------ host_cost.c ----- */

enum host_what { HOST_LATENCY, HOST_THROUGHPUT, HOST_OVERLAP };

/* t0-probe latency, throughput, overlap --device host; exit codes. */
int host_latency(const struct probe_opts *o, struct err *e);
int host_throughput(const struct probe_opts *o, struct err *e);
int host_overlap(const struct probe_opts *o, struct err *e);

/* -------------------------------------------------- host_published.c ---- */

/* NaN where nothing was published. */
struct host_published {
	double latency, interval;
	const char *source;
};
bool host_published_find(enum host_arch a, const char *inst,
			 struct host_published *out);
/* Within 5 % or 0.1 cycle? */
bool host_agrees(double ours, double theirs);

/* ---------------------------------------------------- host_memory.c ----- */

/* t0-probe memory --device host; exit code. */
int host_memory(const struct probe_opts *o, struct err *e);

/* Memory that asks for huge pages, or for none. */
struct host_area {
	uint8_t *p;
	uint64_t bytes;
};
bool host_area_init(struct host_area *a, uint64_t bytes, bool huge,
		    struct err *e);
/* Its first byte that a huge page can start at. */
uint8_t *host_area_start(const struct host_area *a);
void host_area_fini(struct host_area *a);

/* Processor time of this thread: less than has passed when it had to wait. */
double host_thread_ns(void);
/* A run was interrupted when more than so much more time passed. */
#define HOST_CUT_SHARE 1.02
#define HOST_CUT_NS    2000

#define HOST_PASSES 3
/* More samples of `s`: all of them, or those of one pass. */
struct host_session;
bool host_measure(struct host_session *h, struct probe_series *s, bool once,
		  struct err *e);

/* One working set of the pointer chase. */
struct host_chase {
	uint64_t bytes;
	double ns;
};
/*
 * Where a curve of latencies climbs: *at[i] is the last working set of plateau
 * i and ns[i] its latency; returns the number of plateaus, at most `max`.  A
 * plateau is at least two points within 12 % of each other, and the next one
 * is at least 1.4 times as slow.
 */
int host_plateaus(const struct host_chase *c, size_t n, uint64_t *at,
		  double *ns, int max);

/* ---------------------------------------------------- host_stream.c ----- */

/* Bandwidths of working sets up to max bytes, into table and database. */
bool host_bandwidths(struct host_session *h, uint64_t max, struct err *e);

/* ------------------------------------------------------ host_run.c ------ */

/* The host as a device of the database, and what measured: shared. */
struct host_session {
	const struct probe_opts *o;
	struct host_cpu cpu;
	struct probe_perf perf;
	struct probe_run run;
	struct table table;
	struct probe_rejects rejects; /* of its rows */
};
bool host_begin(struct host_session *h, const struct probe_opts *o,
		const char *verb, const char *columns, struct err *e);
/* Stores one series under area and name; false on a database error. */
bool host_store(struct host_session *h, const char *area, const char *name,
		const char *params, const char *metric, const char *unit,
		const struct probe_series *s, double clock_hz, struct err *e);
/* How many results lie within the intervals of the run before; a line. */
bool host_again(struct host_session *h, struct err *e);
int host_end(struct host_session *h, bool good, int code, struct err *e);

#endif
