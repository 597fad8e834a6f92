/*
 * kfd/soft/timing.h - let a simulator decide when the soft device's waves run.
 *
 * The soft device executes, but has no pipeline: nothing in it costs time.  A
 * program that models time gives it a client before the device is opened:
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
#ifndef T0_KFD_SOFT_TIMING_H
#define T0_KFD_SOFT_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "isa/trace/trace.h"
#include "kfd/driver.h"

struct isa_inst;   /* isa/code/code.h */
struct soft_timed; /* a dispatch in work */
struct soft_run;   /* a workgroup that is resident */

/* What is dispatched.  */
struct soft_timed_dispatch {
	uint64_t number;      /* on this device, from 1 on */
	const char *kernel;   /* its name; "" when the device was not told */
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
	 * As in a trace (isa/trace/trace.h), but for the addresses of memory: the
	 * buffers there are when the dispatch begins lie one behind the other
	 * from 2^40 on, by handle, and all else in the page at 2^32.  What
	 * evicts what from a cache so is the same in every run, wherever the
	 * host has put them.
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

/* ------------------------------------------------------------ timed.c ---- */

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
