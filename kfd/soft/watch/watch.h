/*
 * kfd/soft/watch - watching waves of the soft device, and timing: the manual.
 *
 * Both attach to a device of kfd_soft_new() before it is opened, and the device
 * owns them from then on; a device without them pays nothing.
 *
 * Watching (checks, profiles, traces, break points) looks at every instruction
 * before it is executed.  Watched waves run on their queue's thread alone:
 *
 *	struct soft_watch_options w = { .check = true };
 *	struct kfd_driver *d = kfd_soft_new(NULL, &e);
 *	soft_watch_attach(d, &w, &e) && kfd_open_on(&dev, d, "soft", ...)
 *	...
 *	soft_watch_findings(d, &text)		before the device is closed
 *
 * Timing: the soft device executes, but has no pipeline, so nothing in it costs
 * time.  A program that models time gives it a client:
 *
 *	static const struct soft_timing client = { &model, simulate };
 *	struct kfd_driver *d = kfd_soft_new(NULL, &e);
 *	soft_set_timing(d, &client, &e) && kfd_open_on(&dev, d, "soft", ...)
 *
 * From then on every dispatch calls simulate(&model, t, dispatch) on the
 * queue's thread, and nothing of the dispatch is executed but by it:
 *
 *	struct soft_run *r = soft_timed_start(t, index);   workgroup `index`
 *	soft_timed_look(t, r, wave, &inst)	what the wave executes next
 *	soft_timed_step(t, r, wave, cycle)	execute it, at this cycle
 *
 * The client decides which workgroups are resident and which wave goes on when
 * (a wave's instructions in order; waves in any order).  An instruction takes
 * effect as a whole when it is stepped: results of loads are in registers at
 * once, so what the model says of latency is about cycles only.  Barriers hold
 * by themselves: a wave that waits at one cannot be stepped until all have
 * arrived.
 *
 * Cycles are the shader's clock, counted from wherever the client likes, and
 * must not decrease for a wave.  The running wave reads them: SHADER_CYCLES is
 * the low 20 bits of the step's cycle, as on gfx11, and s_sendmsg_rtn
 * GET_REALTIME the same on the 100 MHz clock.  The completion signal's stamps
 * are as far apart as the cycles that soft_timed_clock() and soft_timed_end()
 * (or the last step) said; the signal completes when the host's clock has got
 * there, too, so that no stamp is of the future.  Nothing else is slowed down:
 * SDMA, PM4 timestamps and the time between dispatches remain the host's.
 *
 * The client may return at any time.  Workgroups that it has not started, or
 * not brought to their end, are then executed as without it, untimed: a model
 * of one WGP need not step what runs on the others.  After SOFT_TIMED_STOP it
 * has to return.  A dispatch of which no workgroup ends for 30 times
 * soft_options.deadline_ns of the host's time is a hang.  Dispatches of more
 * than 2^28 workgroups are executed without the client.
 *
 * Everything handed out belongs to the device.  struct soft_run lives until
 * its workgroup has ended, struct soft_timed until the client returns, decoded
 * instructions until the device is freed.  Calls come from the thread that
 * the client was called on; dispatches of several queues call it at the same
 * time.  Threads that wait for each other across queues must not: a client
 * that waits for another dispatch has to return instead.
 */
#ifndef T0_KFD_SOFT_WATCH_H
#define T0_KFD_SOFT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/trace/trace.h"
#include "kfd/driver.h"

/* ------------------------------------------------------ single_step.c ---- */

/* What to watch; all zero: nothing. */
struct soft_watch_options {
	bool check;	  /* the rules of soft_watch_findings() */
	bool profile;	  /* count instructions, see soft_watch_profile() */
	const char *trace; /* write a trace (isa/trace/trace.h) to this file */
	bool trace_one;	  /* of the workgroup below only */
	uint32_t trace_group[3];
	/*
	 * Show the registers of a wave when it comes to this instruction:
	 * "SYMBOL", "SYMBOL+OFFSET", or an address, in device memory or as the
	 * code object's file has it.  See soft_watch_dump().
	 */
	const char *stop;
	bool stop_one; /* of this wave only; else of the first 16 */
	uint32_t stop_group[3], stop_wave;
};

/* Do they ask for anything? */
bool soft_watch_wanted(const struct soft_watch_options *o);
/*
 * Watch this device, if anything is wanted.  False when *d is another driver's,
 * a program has already opened it, it is watched already, or the trace file
 * cannot be made.
 */
bool soft_watch_attach(struct kfd_driver *d, const struct soft_watch_options *o,
		       struct err *e);

/*
 * Checked mode (soft_watch_options.check) finds what a card hides, whatever
 * the timing of this run was:
 *
 *   hazard         a register is read or written while a load that will write
 *                  it is outstanding: no s_waitcnt covers it
 *   race           two waves access the same bytes, one of them writes, and
 *                  neither a barrier (reached after the accesses were waited
 *                  for) nor an atomic orders them; atomic against plain too.
 *                  Not: LDS stores of what is there, and the load that a loop
 *                  of compare and exchange begins with
 *   uninitialised  a register, LDS or memory that nobody wrote decides an
 *                  address, a branch, EXEC, or what is stored to memory
 *   bounds         an access outside of what was allocated, be the page
 *                  mapped or not; LDS beyond what the dispatch asked for
 *   alignment      an address that is no multiple of the access's size (for
 *                  wider ones of 4, in memory of 2)
 *   barrier        a wave ended while others wait at a barrier.  The card
 *                  lets the others go on, as waves that ended do not count;
 *                  the program hardly meant it
 *   wmma           a WMMA instruction with lanes switched off
 *
 * Appends the findings, a paragraph each, and returns how often the rules
 * were broken.  Findings of the same rule, at the same pair of instructions,
 * are one paragraph with a count.
 */
uint64_t soft_watch_findings(struct kfd_driver *d, struct buf *out);
/* Executed instructions by class and by address, disassembled. */
void soft_watch_profile(struct kfd_driver *d, struct buf *out);
/* Registers at soft_watch_options.stop; false if no wave came there. */
bool soft_watch_dump(struct kfd_driver *d, struct buf *out);
/* Write the trace out; false and *e when a write failed.  No more after it. */
bool soft_watch_trace_end(struct kfd_driver *d, struct err *e);

/* ------------------------------------------------------------ timed.c ---- */

struct isa_inst;   /* isa/code/code.h */
struct soft_timed; /* a dispatch in work */
struct soft_run;   /* a workgroup that is resident */

/* What is dispatched.  */
struct soft_timed_dispatch {
	uint64_t number;      /* on this device, from 1 on */
	const char *kernel;   /* its name; "" when no note named it */
	uint64_t kernel_va;   /* of the descriptor; 0: from PM4 */
	uint64_t entry_va;    /* of the first instruction */
	uint64_t kernarg_va;  /* of the arguments; 0: from PM4 */
	uint32_t queue_id;
	uint32_t n_groups[3]; /* workgroups, in x y z */
	uint32_t group_size[3]; /* work-items of a full one */
	uint64_t total;	      /* workgroups; index = x + nx * (y + ny * z) */
	uint32_t wave_size;   /* 32 or 64 */
	uint32_t waves_per_group; /* of a full workgroup */
	uint32_t vgprs;	      /* of a wave, as allocated */
	uint32_t lds_bytes;   /* of a workgroup, as asked for */
	uint32_t scratch_bytes; /* of a lane */
	bool wgp_mode;	      /* a workgroup may use both CUs of a WGP */
	uint32_t max_resident; /* workgroups that may be started at a time */
	/*
	 * On the device's clock: when the packet was taken up, and when the
	 * dispatch before it on the queue ended, if it was waiting by then (0:
	 * it was not, or there was none).
	 */
	uint64_t taken_ticks, after_ticks;
};

/* An instruction that a wave is about to execute. */
struct soft_timed_inst {
	uint64_t pc;
	const struct isa_inst *in;
	/*
	 * A number of this instruction at this address, small, from 1 on, for
	 * tables: the same whenever it is executed, another when the code
	 * there has changed.
	 */
	uint32_t id;
	uint64_t exec;
	/*
	 * As in a trace (isa/trace/trace.h), but for the addresses of memory:
	 * the buffers there are when the dispatch begins lie one after the
	 * other from 2^40 on, by handle, and all else in the page at 2^32.
	 * What evicts what from a cache so is the same in every run, wherever
	 * the host has put them.
	 */
	uint8_t kind; /* enum trace_kind, when there are accesses */
	uint32_t access_bytes;
	uint32_t n_accesses;
	struct trace_access access[TRACE_ACCESSES_MAX];
};

enum soft_timed_state {
	SOFT_TIMED_READY,
	SOFT_TIMED_BARRIER, /* waits at a barrier */
	SOFT_TIMED_END,
	SOFT_TIMED_STOP, /* a fault, or the queue was stopped: return */
};

/* What a step led to. */
struct soft_timed_step {
	enum soft_timed_state state; /* of the wave */
	/* The workgroup's barrier opened: all its waves are READY or ended. */
	bool barrier_opened;
	bool group_ended; /* the workgroup's last wave: *r is gone */
};

/* The client. */
struct soft_timing {
	void *ctx;
	void (*run)(void *ctx, struct soft_timed *t,
		    const struct soft_timed_dispatch *d);
};

/*
 * Give the soft device a client, which is copied; NULL takes it away.  False
 * when *d is another driver's or a program has already opened it.
 */
bool soft_set_timing(struct kfd_driver *d, const struct soft_timing *client,
		     struct err *e);

/*
 * The dispatch began at this cycle, and so many cycles are a microsecond;
 * before the first step.  Else it is cycle 0, and the highest clock of the
 * topology.
 */
void soft_timed_clock(struct soft_timed *t, uint64_t first_cycle,
		      double clk_mhz);
/* The dispatch ended at this cycle; else at that of the latest step. */
void soft_timed_end(struct soft_timed *t, uint64_t cycle);
/*
 * It began at this tick of the device's clock, else at taken_ticks; before the
 * first step.  Packets that wait for each other need not be as far apart as the
 * host that emulates them is slow.
 */
void soft_timed_begin(struct soft_timed *t, uint64_t ticks);
/*
 * The code around an address, as far as it lies in the same buffer: `most`
 * bytes before and behind it.  NULL: no buffer is there.  Until the client
 * returns.
 */
const uint8_t *soft_timed_code(struct soft_timed *t, uint64_t va, uint64_t most,
			       uint64_t *from_va, size_t *bytes);

/*
 * Make workgroup `index` resident.  NULL: it was started before or there is
 * no such one, or max_resident are resident, or the queue was stopped.
 */
struct soft_run *soft_timed_start(struct soft_timed *t, uint64_t index);
/* Its waves, from 0 on; the last workgroups may have fewer than others. */
int soft_timed_waves(const struct soft_run *r);
void soft_timed_group_id(const struct soft_run *r, uint32_t id[3]);
/*
 * The wave's next instruction, with the addresses that its registers make of
 * it now.  False: the wave is not READY, or there is no instruction, and the
 * next step will be the fault.
 */
bool soft_timed_look(struct soft_timed *t, struct soft_run *r, int wave,
		     struct soft_timed_inst *out);
/* Execute it.  A wave that is not READY stays as it is. */
struct soft_timed_step soft_timed_step(struct soft_timed *t,
				       struct soft_run *r, int wave,
				       uint64_t cycle);

#endif
