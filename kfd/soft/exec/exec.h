/*
 * kfd/soft/exec/exec.h - execution of gfx1100 machine code, one wave at a time.
 *
 * The manual of this room; every other header here is private to it.  valu.h
 * says how vector instructions are executed, mem.h how memory is accessed, and
 * kfd/soft/exec/fast/fast.h what happens to code that is executed often.
 *
 * The device side (launch.c) fills a struct soft_group with its waves' initial
 * state and calls soft_wave_run() for each wave until all have ended; this side
 * knows nothing of queues, packets or ioctls.  It can be driven without a
 * device: a test supplies a struct soft_env of its own.
 *
 * A vreg is what one half of a vector register holds: a row of 32 dwords, a
 * lane each.  The wave's are v[half][register][lane].  A wave32 has one half; a
 * wave64 has two, and every vector instruction runs once per half, as on the
 * hardware.  Scalar registers, VCC (106, 107), M0 (125) and EXEC (126, 127)
 * live in s[] at their encoded numbers.
 */
#ifndef T0_KFD_SOFT_EXEC_H
#define T0_KFD_SOFT_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "isa/code/code.h"

#define SOFT_LANES 32
#define SOFT_VREG_BYTES (SOFT_LANES * sizeof(uint32_t))

enum soft_mem_flag {
	SOFT_MEM_READ = 1,
	SOFT_MEM_WRITE = 2,
	SOFT_MEM_EXEC = 4,
};

/*
 * An address of which registers and descriptors hold 48 bits: bit 47 stands for
 * those above, too.
 */
static inline uint64_t soft_canonical(uint64_t va)
{
	return (uint64_t)((int64_t)(va << 16) >> 16);
}

/* A piece of GPU address space and where it lives in this process. */
struct soft_range {
	uint64_t va, size_bytes;
	uint8_t *host;
	uint32_t flags; /* enum soft_mem_flag */
};

/* What the counters show while somebody models time (timing.h). */
struct soft_now {
	uint64_t cycle;	   /* of the shader's clock */
	uint64_t realtime; /* of the 100 MHz clock */
};

/* What a wave sees of the device around it. */
struct soft_env {
	enum isa_gen gen; /* whose code is executed; soft_executes() it */
	void *ctx;
	/* The range that holds `va`, or false: not mapped for this GPU. */
	bool (*find)(void *ctx, uint64_t va, struct soft_range *out);
	/* Ranges that it found stay so until soft_code_cache_stale(). */
	bool ranges_stay;
	/* 100 MHz counter, the same as GET_CLOCK_COUNTERS. */
	uint64_t (*realtime)(void *ctx);
	uint64_t shared_base, shared_limit;   /* LDS aperture */
	uint64_t private_base, private_limit; /* scratch aperture */
	/*
	 * A lane's dwords of scratch memory lie a wave apart, as buffer
	 * descriptors have them; else they lie together.
	 */
	bool swizzles_scratch;
	bool lds_faults; /* beyond a workgroup's; false: reads 0 */
	const struct soft_now *now; /* NULL: realtime(), and no pipeline */
	/*
	 * s_sendmsg interrupts the host with the low 24 bits of M0: an event's
	 * number, or what a trap handler has to say.  NULL: nobody cares.
	 */
	void (*interrupt)(const struct soft_env *env, uint32_t m0,
			  bool from_handler);
	const struct soft_traps *traps; /* NULL: there is no trap handler */
	uint32_t doorbell; /* of the queue, as trap handlers name it */
};

/* What an address watch looks for (KFD_IOC_DBG_TRAP). */
enum soft_watch_mode {
	SOFT_WATCH_READ,
	SOFT_WATCH_NONREAD,
	SOFT_WATCH_ATOMIC,
	SOFT_WATCH_ALL,
};
#define SOFT_WATCHES 4

/*
 * The trap handler that a program gave its waves, and what makes them enter it
 * besides s_trap.  It changes only while no wave runs.
 */
struct soft_traps {
	uint64_t tba, tma; /* its code, 0: none; and its memory */
	bool debugger;	   /* is attached: told in TTMP11 */
	/* Vector accesses to va, as far as the bits of `mask` go. */
	struct soft_address_watch {
		bool on;
		uint8_t mode; /* enum soft_watch_mode */
		uint64_t va, mask;
	} watch[SOFT_WATCHES];
};

/* Of a wave, and of the packet processor that starts it (kfd/soft/soft.h). */
enum soft_fault_kind {
	SOFT_FAULT_NONE,
	SOFT_FAULT_ILLEGAL,	/* illegal instruction */
	SOFT_FAULT_UNSUPPORTED, /* known to the ISA, not executed yet */
	SOFT_FAULT_MEMORY,	/* not mapped, read only, or not executable */
	SOFT_FAULT_APERTURE,	/* outside LDS or scratch through FLAT */
	SOFT_FAULT_ALIGN,
	SOFT_FAULT_TRAP,   /* s_trap without a handler */
	SOFT_FAULT_HANG,   /* deadline or deadlock at a barrier */
	SOFT_FAULT_PACKET, /* refused by the packet processor */
};

/* The first fault of a wave; `text` is a sentence without the location. */
struct soft_fault_info {
	enum soft_fault_kind kind;
	uint64_t pc; /* of the instruction */
	uint64_t va; /* memory faults: the address */
	bool write;
	int lane;    /* -1: scalar */
	uint8_t code[ISA_MAX_SIZE_BYTES];
	int code_bytes;
	char text[160];
};

struct soft_wave;
struct soft_uop;
/* Executes one decoded instruction; advances nothing but the state. */
typedef void soft_handler(struct soft_wave *w, const struct soft_uop *u);

/* A decoded instruction bound to its handler. */
struct soft_uop {
	soft_handler *fn;
	const void *op; /* the handler's own table row, or NULL */
	struct isa_inst in;
};

/* Decoded instructions by address; private to one host thread. */
struct soft_code_cache;
struct soft_code_cache *soft_code_cache_new(void);
/* Can waves of this generation be executed? */
bool soft_executes(enum isa_gen gen);
/* Code may have changed, and ranges: what is executed is compared first. */
void soft_code_cache_stale(struct soft_code_cache *c);
/* Empties it. */
void soft_code_cache_reset(struct soft_code_cache *c);
void soft_code_cache_free(struct soft_code_cache *c);

/*
 * What is made of code that is executed often, at most, from now on.  A new
 * cache allows all; host code needs AVX2 and a system that lets a process make
 * code (kfd/soft/exec/fast/native.h).  All give the same bits: the others
 * are what one is measured and tested against.
 */
enum soft_form { SOFT_HANDLERS, SOFT_MICROOPS, SOFT_HOST_CODE };
void soft_code_cache_limit(struct soft_code_cache *c, enum soft_form most);

/* Bits of the MODE register (hwreg 1), RDNA3 ISA 3.3. */
enum soft_mode {
	SOFT_MODE_ROUND_F32 = 0x3,
	SOFT_MODE_ROUND_F16_F64 = 0xc,
	SOFT_MODE_DENORM_F32 = 0x30,	 /* 3: keep, 0: flush in and out */
	SOFT_MODE_DENORM_F16_F64 = 0xc0,
	SOFT_MODE_DX10_CLAMP = 1 << 8,
	SOFT_MODE_IEEE = 1 << 9,
	SOFT_MODE_TRAP_WATCH = 1 << 19, /* traps when a watch matches */
	SOFT_MODE_FP16_OVFL = 1 << 23,
	SOFT_MODE_OMOD = 1u << 31, /* of this file: omod counts with IEEE, too */
};
/*
 * Bits that no program can change or see: gfx12 has no choice of IEEE and
 * DX10_CLAMP, and omod.
 */
static inline uint32_t soft_fixed_mode(enum isa_gen gen)
{
	static const uint32_t fixed[ISA_GEN_COUNT] = {
		[ISA_GFX12] = SOFT_MODE_DX10_CLAMP | SOFT_MODE_IEEE |
			      SOFT_MODE_OMOD,
	};

	return fixed[gen];
}

/* What performance counters count: instructions by enum isa_pipe, and more. */
enum soft_count {
	SOFT_COUNT_TAKEN = ISA_PIPE_COUNT, /* conditional branches */
	SOFT_COUNT_NOT_TAKEN,
	SOFT_COUNT_LOADS, /* of vector memory, and atomics that return */
	SOFT_COUNT_STORES,
	SOFT_COUNT_DELAYS, /* s_delay_alu */
	SOFT_COUNT_WAVES,
	SOFT_COUNT_ITEMS,
	SOFT_COUNT_COUNT
};

/* A barrier of its own, as s_barrier_init makes one. */
#define SOFT_NAMED_BARRIERS 16
struct soft_barrier {
	uint8_t members, signals;
};

/* A workgroup, and what its waves share. */
struct soft_group {
	const struct soft_env *env;
	struct soft_code_cache *code;
	uint8_t *lds;
	uint32_t lds_size_bytes; /* a multiple of 512 */
	uint32_t id[3];		 /* workgroup id */
	struct soft_wave *wave;
	int n_waves;
	int n_ended, n_waiting;	 /* waves that ended; that are at a barrier */
	struct soft_barrier named[SOFT_NAMED_BARRIERS]; /* gfx12's 1 to 16 */
	uint64_t *counts; /* [SOFT_COUNT_COUNT] that grow, or NULL */
};

enum soft_state {
	SOFT_READY,
	SOFT_AT_BARRIER,
	SOFT_AT_NAMED_BARRIER, /* another wave makes it ready again */
	SOFT_ENDED,
	SOFT_FAULTED,
	SOFT_HALTED, /* by its trap handler, for ever */
};

#define SOFT_LOADS 64 /* whose last addresses a wave knows */

struct soft_wave {
	struct soft_group *group;
	uint64_t pc;
	uint32_t s[128];
	bool scc;
	bool privileged; /* may write TTMPs and return by s_rfe_b64 */
	bool halt;	 /* STATUS.HALT: stops once it is not privileged */
	uint32_t mode;		/* enum soft_mode */
	uint32_t trapsts, hw_id1, hw_id2;
	int wave_size;		/* 32 or 64 */
	int n_vgprs;		/* allocated; beyond is an illegal access */
	int index;		/* wave number in the workgroup */
	uint32_t (*v[2])[SOFT_LANES]; /* [half][n_vgprs][lane] */
	/*
	 * This wave's, [lane][scratch_lane_bytes], or where the device swizzles
	 * it [scratch_lane_bytes / 4][lane][4].
	 */
	uint8_t *scratch;
	uint32_t scratch_lane_bytes;
	uint64_t scratch_va;	/* for faults and FLAT_SCRATCH reads */
	enum soft_state state;
	/*
	 * At the workgroup's barrier, or a named one that it joined (its number,
	 * else 0): has the wave signalled, has the barrier opened since?
	 */
	bool signalled, opened;
	bool named_opened;
	uint8_t joined;
	struct soft_fault_info fault;
	struct soft_range last; /* last range found: most accesses hit it */
	uint64_t n_insts;	/* executed so far */
	uint64_t start_clock;
	uint32_t mxcsr;		/* of the host's thread that runs it */
	/* Where some loads were in this process: they fetch as far ahead. */
	uintptr_t last_load[SOFT_LOADS];
};

/* Lanes of one half, lowest first. */
#define FOR_LANES(lane, mask)                                              \
	for (uint32_t rest_ = (mask), lane = 0;                            \
	     rest_ && (lane = (uint32_t)__builtin_ctz(rest_), true);       \
	     rest_ &= rest_ - 1)

/* Vector registers hold 32 lanes; a wave64 has them twice. */
static inline int soft_halves(const struct soft_wave *w)
{
	return w->wave_size / SOFT_LANES;
}

/* EXEC of one half. */
static inline uint32_t soft_exec(const struct soft_wave *w, int half)
{
	return w->s[ISA_R_EXEC_LO + half];
}

/* ------------------------------------------------------------ wave.c ---- */

/*
 * Run until the wave ends, reaches a barrier (state SOFT_AT_BARRIER; the
 * caller sets it READY again when all have arrived), faults, or has executed
 * `max_insts` more instructions (state stays READY).
 */
void soft_wave_run(struct soft_wave *w, uint64_t max_insts);

/*
 * Count the group's waves that ended and that wait; where all that live have
 * signalled, `before` is called and those that wait are ready again.  True: it
 * opened.
 */
bool soft_open_barrier(struct soft_group *g, void (*before)(void *ctx),
		       void *ctx);

/* Raise a fault at the current instruction; the wave stops. */
void soft_raise(struct soft_wave *w, enum soft_fault_kind kind,
		const char *fmt, ...) T0_PRINTF(3, 4);

/* ---------------------------------------------------------- trap.c ------ */

/*
 * Enter the trap handler, which returns to `pc`: by s_trap `id`, or with 0 for
 * what TRAPSTS tells.  False: there is none.  TTMPs are as the kernel's first
 * handler leaves them to the program's: 0 and 1 PC and trap, 11 bit 23 whether
 * there is a debugger, 12 STATUS, 14 and 15 its memory.
 */
bool soft_trap_enter(struct soft_wave *w, uint64_t pc, unsigned id);
/* STATUS, as s_getreg_b32 reads it. */
uint32_t soft_status(const struct soft_wave *w);
/* What a trap handler can change of it, where `mask` has ones: SCC and HALT. */
void soft_set_status(struct soft_wave *w, uint32_t mask, uint32_t value);
/* Are its accesses watched?  Then they go one by one. */
bool soft_is_watched(const struct soft_wave *w);
/*
 * The bits of TRAPSTS that this instruction will set, when it has been
 * executed, by the addresses that it accesses.
 */
uint32_t soft_watch_match(struct soft_wave *w, const struct soft_uop *u);

/* ---------------------------------------------------------- memory ------ */

/*
 * Host address of [va, va + size) for this access, or NULL after raising the
 * fault.  `need` is SOFT_MEM_READ, SOFT_MEM_WRITE or SOFT_MEM_EXEC.
 */
void *soft_host_address(struct soft_wave *w, uint64_t va, uint32_t size_bytes,
		     uint32_t need, int lane);

/* ---------------------------------------------- handlers by family ------ */

/*
 * The handler of an instruction, and its table row in *op; NULL when this
 * family does not execute it (the wave then raises SOFT_FAULT_UNSUPPORTED).
 */
soft_handler *soft_salu_handler(const struct isa_inst *in, const void **op);
soft_handler *soft_smem_handler(const struct isa_inst *in, const void **op);
soft_handler *soft_lds_handler(const struct isa_inst *in, const void **op);
soft_handler *soft_vmem_handler(const struct isa_inst *in, const void **op);
soft_handler *soft_valu_handler(const struct isa_inst *in, const void **op);

/* Scalar sources (also SCC, VCCZ, EXECZ, apertures, inline, literal). */
uint64_t soft_read_scalar(struct soft_wave *w, const struct isa_operand *o,
			  const struct isa_inst *in);
/* Trap registers belong to the trap handler: writes by others are lost. */
bool soft_is_writable(const struct soft_wave *w, int reg);
void soft_write_scalar(struct soft_wave *w, const struct isa_operand *o,
		       uint64_t value);

/* --------------------------------------- what an access will do ---------- */

/*
 * What an atomic operation leaves in memory.  `m` is the value there, `a` and
 * `b` the first and second operand, `mode` the MODE register; 32-bit
 * operations use the low halves.
 */
typedef uint64_t soft_atomic_fn(uint64_t m, uint64_t a, uint64_t b,
				uint32_t mode);

/* How a load, store or atomic moves bytes between memory and registers. */
struct soft_access {
	uint8_t bytes;	     /* in memory; of an atomic, of one operand */
	bool is_signed;	     /* sub-dword loads */
	uint8_t part;	     /* enum soft_part */
	soft_atomic_fn *fn;  /* atomics */
	bool two;	     /* atomics: operand b follows a in DATA */
	bool returns;	     /* atomics: always, not only with GLC */
};
enum soft_part {
	SOFT_WHOLE, /* whole registers */
	SOFT_LOW,   /* bits 15:0 of one register, the others stay */
	SOFT_HIGH,  /* bits 31:16 */
};

/* Where one lane's access goes. */
enum soft_space {
	SOFT_SPACE_MEMORY,
	SOFT_SPACE_LDS,
	SOFT_SPACE_SCRATCH,
	SOFT_SPACE_SWIZZLED, /* scratch, where the device swizzles it */
};
struct soft_place {
	enum soft_space space;
	uint64_t at; /* address, or offset into LDS or the lane's scratch */
	int lane;    /* of the wave */
};
/* FLAT, GLOBAL and SCRATCH, but for ..._addtid. */
void soft_find_place(const struct soft_wave *w, const struct soft_uop *u,
		     int half, uint32_t lane, struct soft_place *p);

/* Which accesses are out of range, bits 125:124 of the descriptor. */
enum soft_oob {
	SOFT_OOB_INDEX_AND_OFFSET, /* index >= records, or beyond the stride */
	SOFT_OOB_INDEX,
	SOFT_OOB_NO_RECORDS, /* only if there are no records at all */
	SOFT_OOB_RAW,	     /* byte offset beyond the records */
};
/* What an instruction's descriptor says, the same for all lanes. */
struct soft_buffer {
	uint64_t base;
	uint32_t stride, records;
	uint32_t element; /* swizzle unit in bytes, 0: linear */
	uint32_t index_stride;
	uint32_t format; /* of typed accesses */
	uint8_t sel[4];
	bool add_tid;
	enum soft_oob oob;
	uint32_t soffset;
};
/* For MUBUF and MTBUF, of the wave's registers as they are now. */
void soft_buffer_init(struct soft_buffer *b, struct soft_wave *w,
		      const struct soft_uop *u);
/*
 * The address of `bytes` bytes, `skip` behind the beginning, of a lane's
 * access; false when the descriptor turns it away.
 */
bool soft_buffer_at(const struct soft_buffer *b, const struct soft_wave *w,
		    const struct soft_uop *u, int half, uint32_t lane,
		    uint32_t skip, uint32_t bytes, uint64_t *va);

/*
 * What the first n components occupy in memory; packed formats are never
 * split.  0: there is no such format.
 */
uint32_t soft_format_bytes(uint32_t format, int n);

#endif
