/*
 * kfd - the runtime: one gfx11 device behind the KFD ABI.
 *
 *	struct kfd_dev *dev;
 *	kfd_open(&dev, spec, &e)		the device, or why not
 *	kfd_mem_alloc(dev, KFD_VRAM, ...)	memory both sides can see
 *	kfd_code_load(dev, bytes, n, ...)	a code object (ELF)
 *	kfd_code_kernel(code, "saxpy", ...)	a kernel of it
 *	kfd_queue_new(dev, NULL, &q, &e)	an AQL queue
 *	kfd_run(q, &launch, &timing, &e)	dispatch and wait
 *	kfd_close(dev)				everything back
 *
 * Whether a card or the gfx1100 in software is behind it is decided by
 * kfd_open() and said in kfd_info(); no function here behaves differently.
 *
 * Invariants
 *  - Completion is a signal reaching 0.  The queue's read pointer only says
 *    that a packet was fetched; it is used for nothing but ring space.
 *  - Every wait has an absolute deadline and watches the device's error
 *    events, so a fault or a hang ends it with ERR_DEVICE or ERR_TIMEOUT.
 *    Time in which the host stood still in the wait moves its deadline.
 *  - Every size that depends on the card comes from its topology.
 *  - An address that held code is never given to anything else while the
 *    device is open: instruction caches would serve the old bytes.
 *  - GPU address == CPU address for memory that has a CPU view.
 *
 * Failure.  A queue that rejected a packet or met an illegal instruction is
 * dead: kfd_queue_free() it and make another.  After a memory fault or a reset
 * the device is lost (kfd_lost()): every call says so until kfd_close();
 * opening it again is allowed, with a real card best in a fresh process.
 *
 * Threads.  Device functions (memory, code, queue_new/free) may be called from
 * any thread.  One queue, with its launches, belongs to one thread at a time.
 * After fork() the child may not use the device (ERR_USAGE says so).
 *
 * Ownership.  The device owns everything made from it; kfd_close() frees what
 * is left, so a tool may simply close.
 */
#ifndef T0_KFD_KFD_H
#define T0_KFD_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "kfd/driver.h"

struct co_arg; /* isa/object/object.h */
struct kfd_dev;
struct kfd_code;
struct kfd_queue;
struct kfd_formats; /* kfd/runtime/printf.h */

/* -------------------------------------------------------- topology.c ---- */

/* What sysfs says about one node (topology/nodes/N).  -1 and 0 as noted. */
struct kfd_node {
	int index;	     /* N */
	bool hidden;	     /* the device cgroup forbids reading it */
	uint32_t gpu_id;     /* 0 = a CPU node */
	uint32_t gfx_target; /* major*10000 + minor*100 + stepping */
	uint32_t simd_count, simd_per_cu, cu_count, max_waves_per_simd;
	uint32_t array_count, arrays_per_engine, engines; /* shader engines */
	uint32_t wave_size, lds_bytes, scratch_slots_cu;
	uint32_t num_xcc;
	uint32_t vendor_id, device_id, domain, location_id;
	int render_minor; /* -1 = not given */
	uint32_t capability, fw_version, sdma_fw_version;
	uint32_t clk_max_mhz; /* shader engine clock */
	uint64_t unique_id;
	uint64_t vram_bytes; /* sum of the VRAM banks */
	bool large_bar;	     /* the host sees all of VRAM */
	uint32_t vram_width_bits, mem_clk_max_mhz;
	uint32_t n_caches;
	/* Totals in KiB by kind, 0 = none listed; one instance each. */
	uint32_t l0_kib, l1i_kib, l1s_kib, gl1_kib, l2_kib, l3_kib;
	uint32_t link_max_mbps; /* link to the host, MB/s */
	char name[64];		/* sysfs name ("ip discovery" on gfx11) */
};
struct kfd_topology {
	struct kfd_node *node;
	int n_nodes;
	uint64_t generation;
};
/*
 * Read all nodes.  Unknown names are ignored, missing ones tolerated, hidden
 * nodes kept with `hidden` set.  Repeated until the generation stands still.
 */
bool kfd_topology_read(struct kfd_driver *d, struct kfd_topology *t,
		       struct err *e);
void kfd_topology_fini(struct kfd_topology *t);
#define KFD_SPEC_BYTES 128
/* "gfx1100" into out[16]; "n/a" for 0. */
void kfd_gfx_name(uint32_t gfx_target, char out[16]);
/* "Radeon RX 7900 XTX" or "gfx1100 (device 0x1234)" into out[64]. */
void kfd_board_name(const struct kfd_node *n, char out[64]);
/* "0000:03:00.0" into out[16]. */
void kfd_pci_name(const struct kfd_node *n, char out[16]);

/* ------------------------------------------------ device.c, select.c ---- */

struct kfd_info {
	char spec[KFD_SPEC_BYTES]; /* "soft", "soft*2:1", "kfd:0": opens it
				      again */
	char why[512];	    /* which it is, and why in a word; print it */
	const char *driver; /* "kfd" or "soft" */
	const char *origin; /* "hardware", "emulated" or "simulated" */
	char name[64];	    /* "Radeon RX 7900 XTX" */
	char gfx[16];	    /* "gfx1100" */
	char pci[16];	    /* "0000:03:00.0" */
	struct kfd_node node;
	uint32_t kfd_major, kfd_minor;
	uint32_t vgprs_per_simd; /* wave32 registers; granule below */
	uint32_t vgpr_granule;
	uint64_t tick_hz; /* of the timestamps in signals */
	uint64_t lds_base, scratch_base, gpuvm_base, gpuvm_limit;
	bool runtime_enabled; /* wave exceptions are reported */
	bool hdp_flush;	      /* the flush register could be mapped */
	char reason[400]; /* why no GPU was taken; "": one was, or asked for */
};

/*
 * Open a device.  spec:
 *	soft[:CHIP]	a card in software, a gfx1100 or another chip
 *	soft[:CHIP]*N	the first of a machine with N such cards, 1..8
 *	soft:A,soft:B	one of several chips; each part may have its *N
 *	soft*N:M	number M of them, or as below :gfx1100 and :0x<hex>
 *	kfd		the first gfx11 GPU that can be used
 *	kfd:N		GPU number N of `t0-device list`
 *	kfd:gfx1100	the first of that version
 *	kfd:0x<hex>	the one with that unique id: stays the same over boots
 *	NULL or ""	as kfd, else soft
 * After an '@' come the GPUs that are visible, as a list of numbers and
 * unique ids: "kfd@1,0x1234" sees two, and N of kfd:N then counts those in the
 * list's order.  Main passes --device or T0_DEVICE here, joined with
 * T0_VISIBLE_DEVICES by kfd_spec(), and prints info->why on stderr; with
 * T0_VERBOSE, which --verbose sets, it has the reason behind it.
 * An explicit choice that cannot be had is an error, never another device.
 * Further cards of the same machine are opened by kfd_open_peer().
 */
bool kfd_open(struct kfd_dev **dev, const char *spec, struct err *e);
/* "DEVICE@VISIBLE" into out[256]; either may be NULL or "".  Returns out. */
const char *kfd_spec(const char *device, const char *visible, char out[256]);
/*
 * That of a tool: its --device, else T0_DEVICE, with T0_VISIBLE_DEVICES, else
 * with ROCR_VISIBLE_DEVICES.
 */
const char *kfd_spec_asked(const char *option, char out[256]);
/* What --device says of itself. */
#define KFD_DEVICE_HELP \
	"soft[:CHIP][*N][:M] (N cards, the M-th), kfd or kfd:N (default: " \
	"$T0_DEVICE, else the first gfx11 GPU, else soft)"
/*
 * The same on a driver of the caller's, which the device then owns (freed on
 * failure too).  gpu: -1 = first gfx11 GPU, else as "kfd:N".  For soft options
 * and for tests.
 */
bool kfd_open_driver(struct kfd_dev **dev, struct kfd_driver *d, int gpu,
		     const char *why, struct err *e);
/* The same with a spec as above, whose "kfd" or "soft" is not looked at. */
bool kfd_open_on(struct kfd_dev **dev, struct kfd_driver *d, const char *spec,
		 const char *why, struct err *e);
/*
 * Another GPU of the machine that `dev` belongs to: a process has one handle
 * of the driver and one event page, so further GPUs must be opened through the
 * first.  It belongs to `dev`, whose closing closes it.
 */
bool kfd_open_peer(struct kfd_dev **peer, struct kfd_dev *dev,
		   const char *spec, struct err *e);
/* Orderly teardown; continues after errors.  NULL is fine. */
void kfd_close(struct kfd_dev *dev);
/* As kfd_close(), and false with a list if the caller had left anything. */
bool kfd_close_check(struct kfd_dev *dev, struct err *e);
const struct kfd_info *kfd_info(const struct kfd_dev *dev);

/* Has the device been lost (fault, reset)?  Then *e says what happened. */
bool kfd_lost(struct kfd_dev *dev, struct err *e);

/* Device and host clocks read together (for timestamps in signals). */
struct kfd_clock {
	uint64_t gpu_ticks;
	uint64_t mono_raw_ns; /* CLOCK_MONOTONIC_RAW */
};
bool kfd_clock_read(struct kfd_dev *dev, struct kfd_clock *c, struct err *e);

/* Free VRAM in bytes; ERR_UNSUPPORTED before KFD 1.9. */
bool kfd_vram_available(struct kfd_dev *dev, uint64_t *bytes, struct err *e);

/*
 * How long the driver has kept this process's queues off the card so far, in
 * ms: other programs needed its memory, or the machine slept.  What was
 * measured while this grew is not to be trusted.  ERR_UNSUPPORTED where the
 * driver does not count.
 */
bool kfd_evicted(struct kfd_dev *dev, uint64_t *ms, struct err *e);

/* ----------------------------------------------------------- clock.c ---- */

/*
 * Host time (CLOCK_MONOTONIC_RAW, ns) of a device timestamp.  Both clocks are
 * read together when the device opens and again whenever the last reading is
 * over a second old; in between is a straight line.  After a jump of either
 * (suspend, reset) the calibration starts again, and stamps from before it are
 * refused (ERR_DEVICE).
 */
bool kfd_clock_ns(struct kfd_dev *dev, uint64_t ticks, uint64_t *mono_raw_ns,
		  struct err *e);
/* The device clock's rate as measured against the host's; nominal at first. */
double kfd_clock_hz(struct kfd_dev *dev);

/* ----------------------------------------------------------- fault.c ---- */

/* What went wrong on the device, for programs.  `struct err` has the text. */
enum kfd_fault_kind {
	KFD_FAULT_NONE,
	KFD_FAULT_ILLEGAL,     /* illegal instruction */
	KFD_FAULT_UNSUPPORTED, /* a legal one that this device lacks (soft) */
	KFD_FAULT_MEMORY,      /* page not present, read-only, no-execute */
	KFD_FAULT_APERTURE,    /* outside LDS, scratch and memory */
	KFD_FAULT_TRAP,	       /* s_trap, abort, floating-point exception */
	KFD_FAULT_PACKET,      /* the packet processor refused it */
	KFD_FAULT_HANG,	       /* passed its deadline; may still be running */
	KFD_FAULT_RESET,       /* the GPU was reset, by whomever */
	KFD_FAULT_ECC,	       /* uncorrectable memory error */
	KFD_FAULT_GONE,	       /* unplugged, or the driver gave it up */
};
enum kfd_domain {
	KFD_VRAM,	  /* device memory that the host sees (large BAR) */
	KFD_VRAM_PRIVATE, /* device memory without a CPU view: cpu == NULL */
	KFD_GTT,     /* host memory made by the driver, uncached on device */
	KFD_USERPTR, /* this process's own pages, registered */
};
#define KFD_BARRIER "(barrier)" /* what stands for a kernel in such a packet */
/* Fields that were not given are 0, false and "". */
struct kfd_fault {
	enum kfd_fault_kind kind;
	bool device_lost; /* else only the queue is dead, or (HANG) neither */
	bool memory_lost; /* what was in VRAM is gone */
	bool has_packet, has_va, write;
	unsigned queue;	  /* its number in messages */
	uint64_t packet;  /* of that queue: what kfd_submit() gave as ticket */
	char kernel[64];  /* name, or KFD_BARRIER */
	uint64_t pc;	  /* of the instruction */
	uint64_t va;	  /* that could not be accessed */
	struct {	  /* nearest allocation, when there is a va */
		char name[32];
		uint64_t va;
		size_t size_bytes;
		enum kfd_domain domain;
		bool freed;
		int64_t offset; /* of the faulting va; negative = before it */
	} near;
};
/* What ended the queue, or made its last wait fail; false = nothing did. */
bool kfd_queue_fault(struct kfd_queue *q, struct kfd_fault *out);
/* What the device was lost by; false = it is not lost. */
bool kfd_lost_fault(struct kfd_dev *dev, struct kfd_fault *out);
/* "memory fault" and so on. */
const char *kfd_fault_name(enum kfd_fault_kind kind);
/*
 * How often a reset has lost the contents of VRAM since boot: when it has
 * changed, everything in there is gone, whether or not an event told so.
 * ERR_UNSUPPORTED where the driver does not count.
 */
bool kfd_vram_lost(struct kfd_dev *dev, uint32_t *count, struct err *e);

/* ------------------------------------------------------------ list.c ---- */

/* One device that could be opened, or why it cannot. */
struct kfd_found {
	char spec[KFD_SPEC_BYTES];
	const char *origin;
	struct kfd_node node;
	bool usable;
	char why_not[256]; /* empty when usable */
};
/* May /dev/kfd be opened?  If not, `e` says why, and what to do. */
bool kfd_is_here(struct err *e);
/*
 * All GPUs of /dev/kfd's topology, then those in software: as many as a spec
 * "soft*N" says, with another or NULL one.  free() *found.
 */
bool kfd_list(const char *spec, struct kfd_found **found, int *n,
	      struct err *e);
/*
 * The chip, "gfx1100", of what kfd_open() would take, which stays closed: on a
 * card a process can open it once only.
 */
bool kfd_find_chip(const char *spec, char gfx[16], struct err *e);
/* To what kfd_list() found, a row for each chip in software but gfx1100. */
bool kfd_list_chips(struct kfd_found **found, int *n, struct err *e);

/* ---------------------------------------------------------- memory.c ---- */

struct kfd_mem {
	uint64_t va;	   /* device address */
	void *cpu;	   /* the same address, or NULL */
	size_t size_bytes; /* as asked for; memory beyond it is not yours */
	enum kfd_domain domain;
	char name[32]; /* for fault reports */
};
/*
 * Contents are undefined.  `name` is copied and appears in fault
 * reports.  ERR_NOMEM says requested, available and total; nothing falls back
 * to another domain.  A page on either side is left unmapped, so that running
 * off an end faults.
 */
bool kfd_mem_alloc(struct kfd_dev *dev, enum kfd_domain domain,
		   size_t size_bytes, const char *name, struct kfd_mem **out,
		   struct err *e);
/* As kfd_code_unload(): what a late launch may still use is kept. */
void kfd_mem_free(struct kfd_dev *dev, struct kfd_mem *m); /* NULL is fine */
/* CPU writes to VRAM are made visible to the device (HDP flush). */
void kfd_mem_flush(struct kfd_dev *dev);
/* Bytes now allocated through kfd_mem_alloc() and by the runtime itself. */
uint64_t kfd_mem_live_bytes(struct kfd_dev *dev);
/*
 * Append "0x... is 64 bytes past the end of 'a' (VRAM, 0x...+4096)" to out:
 * the nearest live or recently freed allocation.
 */
void kfd_mem_describe(struct kfd_dev *dev, uint64_t va, struct buf *out);
/*
 * Let another GPU (kfd_open_peer) reach this memory at the same address, too.
 * VRAM needs a link that allows it; the driver says so if not.
 */
bool kfd_mem_share(struct kfd_mem *m, struct kfd_dev *owner,
		   struct kfd_dev *peer, struct err *e);

/* ------------------------------------------------------------ pool.c ---- */

/*
 * Data buffers kept for use again: a device call less, and no cost of mapping
 * in a measurement.  Sizes are rounded up to one of four steps per power of
 * two.  Memory that ever held code never gets in here (see Invariants).
 * Contents are what the last user left.  A device that runs out of memory
 * empties its pools before it says so.
 */
struct kfd_pool;
struct kfd_pool_stats {
	uint64_t gets, hits, puts, trimmed;
	uint64_t used, used_bytes; /* buffers with callers now */
	uint64_t idle, idle_bytes; /* waiting to be used again */
	uint64_t peak_bytes;	   /* used and idle */
};
/* keep_bytes: more than that is not kept idle; 0 = 256 MiB. */
struct kfd_pool *kfd_pool_new(struct kfd_dev *dev, enum kfd_domain domain,
			      uint64_t keep_bytes);
bool kfd_pool_get(struct kfd_pool *p, size_t size_bytes, const char *name,
		  struct kfd_mem **out, struct err *e);
/* The device must be done with it.  NULL is fine. */
void kfd_pool_put(struct kfd_pool *p, struct kfd_mem *m);
void kfd_pool_trim(struct kfd_pool *p); /* give back all that is idle */
void kfd_pool_stats(struct kfd_pool *p, struct kfd_pool_stats *out);
/* false and *e if buffers are still out (they are freed all the same). */
bool kfd_pool_free(struct kfd_pool *p, struct err *e);

/* ------------------------------------------------------------ copy.c ---- */

/*
 * Copies between any two places, whichever side can see them: by the host
 * where both have a CPU view, else by a kernel of ours on a queue of the
 * device's own, through a staging buffer where host memory is involved.
 * They return when the bytes are there.  Kernels of other queues that touch
 * the memory must have been waited for.
 */
bool kfd_copy(struct kfd_dev *dev, struct kfd_mem *dst, size_t dst_off,
	      const struct kfd_mem *src, size_t src_off, size_t len_bytes,
	      struct err *e);
bool kfd_write(struct kfd_dev *dev, struct kfd_mem *dst, size_t dst_off,
	       const void *src, size_t len_bytes, struct err *e);
bool kfd_read(struct kfd_dev *dev, void *dst, const struct kfd_mem *src,
	      size_t src_off, size_t len_bytes, struct err *e);

/* ------------------------------------------------------------ lock.c ---- */

/*
 * One program at a time measures on a GPU: a lock on its render node, which
 * only those can take who may use the GPU.  The kernel drops it when its holder
 * dies, however.
 * The gfx1100 in software is each process's own: its lock is free at once.
 */
struct kfd_lock {
	int fd; /* -1 = nothing is locked */
	char path[256];
};
struct kfd_lock_opts {
	const char *dir;       /* of the render node; NULL = /dev/dri */
	uint64_t timeout_ns;   /* 0 = do not wait */
	/* Called once when it has to wait: who holds it (may be NULL). */
	void (*waiting)(void *ctx, const char *holder);
	void *ctx;
};
/* ERR_BUSY says who held it when the time was over. */
bool kfd_lock_take(const struct kfd_info *info, const struct kfd_lock_opts *o,
		   struct kfd_lock *out, struct err *e);
void kfd_lock_drop(struct kfd_lock *l);

/* ---------------------------------------------------------- signal.c ---- */

/*
 * A signal in device-visible memory.  Packets decrement it when they complete.
 * Most callers need none: every packet has its own, named by the ticket.
 */
struct kfd_signal {
	uint64_t va;
	struct kfd_dev *dev;
};
bool kfd_signal_new(struct kfd_dev *dev, int64_t value, struct kfd_signal **out,
		    struct err *e);
void kfd_signal_free(struct kfd_signal *s);
int64_t kfd_signal_value(const struct kfd_signal *s);	  /* acquire */
void kfd_signal_set(struct kfd_signal *s, int64_t value); /* release */
/* Wait on the host until value <= 0.  deadline: CLOCK_MONOTONIC, absolute. */
bool kfd_signal_wait(struct kfd_signal *s, uint64_t deadline_ns, struct err *e);

/* ------------------------------------------------------------ code.c ---- */

struct kfd_kernel {
	const char *name;	/* without ".kd" */
	struct kfd_code *code;	/* its owner */
	uint64_t object_va;	/* of the kernel descriptor */
	uint64_t entry_va;	/* of the first instruction */
	uint32_t lds_bytes;	/* static */
	uint32_t private_bytes; /* scratch per lane */
	uint32_t kernarg_bytes; /* whole segment, hidden arguments included */
	uint32_t kernarg_align;
	uint32_t explicit_bytes; /* what the caller passes */
	uint32_t rsrc1, rsrc2, rsrc3;
	uint16_t properties;
	uint32_t vgprs;	    /* per wave, as encoded in rsrc1 */
	uint32_t wave_size; /* 32 or 64 */
	bool wgp_mode, dynamic_stack;
	uint32_t max_wg;	  /* work-items; 1024 when not given */
	uint32_t reqd_wg[3];	  /* 0 = free */
	const struct co_arg *arg; /* explicit and hidden, by offset; or NULL */
	uint32_t n_args;
	/* What it prints with (kfd/runtime/printf.h); NULL: it does not. */
	const struct kfd_formats *formats;
	bool printf_ring; /* by our ring; else as clang's OpenCL does */
	bool hostcall;	  /* may call the host, as clang's HIP does */
};
/*
 * Load any code object for this device (an ELF in memory, not kept).  A
 * malformed or foreign one is ERR_INPUT with the reason.
 */
bool kfd_code_load(struct kfd_dev *dev, const void *elf, size_t len_bytes,
		   struct kfd_code **out, struct err *e);
/* By name, with or without ".kd"; an unknown one lists those there are. */
bool kfd_code_kernel(struct kfd_code *c, const char *name,
		     const struct kfd_kernel **out, struct err *e);
int kfd_code_count(const struct kfd_code *c);
const struct kfd_kernel *kfd_code_at(const struct kfd_code *c, int i);
/*
 * No launch of it may be outstanding, but for one that missed its deadline:
 * kfd_close() unloads it then.  NULL is fine.
 */
void kfd_code_unload(struct kfd_code *c);

/*
 * Bare machine code: `code` is placed after a kernel descriptor made from
 * `desc`, followed by s_code_end padding.  Cheap: thousands share a block.
 * Free with kfd_code_unload(kernel->code).
 */
struct kfd_raw_desc {
	const char *name; /* copied; NULL = "raw" */
	uint32_t rsrc1, rsrc2, rsrc3;
	uint16_t properties; /* bit 10 = wave32, bit 3 = kernarg pointer */
	uint32_t kernarg_bytes, lds_bytes, private_bytes;
};
bool kfd_code_raw(struct kfd_dev *dev, const void *code, size_t len_bytes,
		  const struct kfd_raw_desc *desc,
		  const struct kfd_kernel **out, struct err *e);

/* ----------------------------------------------------------- queue.c ---- */

struct kfd_queue_opts {
	uint32_t ring_packets;	/* power of two, 64..131072; 0 = 256 */
	uint32_t kernarg_bytes; /* ring for arguments; 0 = 256 KiB */
	uint32_t priority;	/* 0..15; 0 = normal (7) */
	uint64_t spin_ns;	/* busy wait before sleeping; 0 = 50 us */
	/*
	 * What kernels print (kfd/runtime/printf.h) goes to `print`, on the
	 * thread that waits for them or puts others; NULL: to stdout.  Each
	 * printing packet has a buffer of printf_bytes (0 = 1 MiB).  Kernels of
	 * our compiler wait for room in theirs with printf_wait, for as long as
	 * somebody waits for them, instead of dropping what does not fit.
	 */
	void (*print)(void *ctx, const char *text, size_t len);
	void *print_ctx;
	uint32_t printf_bytes;
	bool printf_wait;
	/*
	 * Or NULL: once it is set, waits for the queue end with ERR_STOPPED,
	 * but for what completes within a second.
	 */
	const _Atomic int *stop;
};
bool kfd_queue_new(struct kfd_dev *dev, const struct kfd_queue_opts *o,
		   struct kfd_queue **out, struct err *e);
/*
 * Stops the queue, outstanding packets included, and frees it.  A kernel that
 * hangs is killed by the kernel driver; false and *e if that failed (the queue
 * is gone for us all the same).  NULL is fine.
 */
bool kfd_queue_free(struct kfd_queue *q, struct err *e);

/* ----------------------------------------------------------- print.c ---- */

/* What the kernels of a queue have printed so far. */
struct kfd_print_stats {
	uint64_t records;
	uint64_t dropped; /* did not fit; of clang's kernels at least these */
	uint64_t damaged; /* no kernel that keeps to the rules leaves these */
};
void kfd_queue_print_stats(const struct kfd_queue *q,
			   struct kfd_print_stats *out);

/* -------------------------------------------------------- dispatch.c ---- */

#define KFD_DEADLINE_NS 10000000000ull /* the default, from the call on */

struct kfd_launch {
	const struct kfd_kernel *kernel;
	uint32_t grid[3]; /* work-items; 0 counts as 1 */
	uint32_t wg[3];	  /* work-items per workgroup; 0 counts as 1 */
	uint32_t dyn_lds_bytes;
	uint32_t stack_bytes; /* for kernels with a dynamic stack */
	const void *args;     /* explicit arguments, laid out; copied */
	size_t args_bytes;    /* == kernel->explicit_bytes */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, absolute; 0 = default */
	/*
	 * Complete this signal (decrement) instead of the packet's own; keep it
	 * until kfd_wait() of the ticket has returned.
	 */
	struct kfd_signal *done;
	bool overlap; /* may start before earlier packets have finished */
	/*
	 * One of a chain that the next packet without it ends: no interrupt,
	 * and caches are kept from one to the next.  The host neither writes
	 * what the chain reads nor reads what it writes until then.  To wait
	 * for a quiet packet itself may take a packet more.
	 */
	bool quiet;
};
struct kfd_timing {
	uint64_t start_ticks, end_ticks; /* device clock; 0 = not given */
	uint64_t device_ns;		 /* end - start; 0 = not given */
	uint64_t start_ns;		 /* CLOCK_MONOTONIC_RAW; 0: not given */
	uint64_t host_ns;		 /* kfd_run(): submit to return */
};

/* Check the launch against the kernel and the device, without sending it. */
bool kfd_launch_check(struct kfd_queue *q, const struct kfd_launch *l,
		      struct err *e);
/* Dispatch and wait: submit + wait. */
bool kfd_run(struct kfd_queue *q, const struct kfd_launch *l,
	     struct kfd_timing *t, struct err *e);
/*
 * Put a dispatch packet into the ring.  Blocks, up to the launch's deadline,
 * while ring or argument space is taken; grows scratch first when the kernel
 * needs more (waits until the queue is idle).  *ticket = packet number.
 * kfd_submit() rings the doorbell; kfd_put() leaves that to kfd_flush().
 */
bool kfd_submit(struct kfd_queue *q, const struct kfd_launch *l,
		uint64_t *ticket, struct err *e);
bool kfd_put(struct kfd_queue *q, const struct kfd_launch *l, uint64_t *ticket,
	     struct err *e);
void kfd_flush(struct kfd_queue *q);
/*
 * A barrier-and packet: packets after it start when all signals (at most 5)
 * are 0 and all earlier packets are done.  Rings the doorbell.
 */
bool kfd_barrier(struct kfd_queue *q, struct kfd_signal *const *dep, int n_deps,
		 uint64_t *ticket, struct err *e);
/*
 * Packets that are put behind it start when the named ones of other queues, of
 * GPUs of the same process, are done, and see what these wrote where they may
 * reach it (kfd_mem_share()).  A named packet is not quiet, its queue was
 * shared with this queue's GPU, and nothing is put into the ring's place of it
 * until what waits here is done.
 */
struct kfd_after {
	struct kfd_queue *queue;
	uint64_t ticket;
};
bool kfd_after(struct kfd_queue *q, const struct kfd_after *on, int n,
	       struct err *e);
/* Lets another GPU (kfd_open_peer) wait for this queue's packets. */
bool kfd_queue_share(struct kfd_queue *q, struct kfd_dev *peer, struct err *e);
/*
 * Wait for a packet.  deadline_ns as in kfd_launch.  Timing may be NULL; its
 * stamps are 0 once ring_packets further packets were put.  On ERR_TIMEOUT the
 * packet may still run: free the queue, or wait again.
 */
bool kfd_wait(struct kfd_queue *q, uint64_t ticket, uint64_t deadline_ns,
	      struct kfd_timing *t, struct err *e);
/* Wait until all packets are done. */
bool kfd_drain(struct kfd_queue *q, uint64_t deadline_ns, struct err *e);

/* ------------------------------------------------------------- drm.c ---- */

/*
 * What the graphics side of the driver says of a device, through the device's
 * driver seam (DRM ioctls on the render node, files of sysfs), so that a card
 * and the gfx1100 in software are read by the same code.  On a card
 * libdrm_amdgpu adds its marketing name.
 *
 * What the kernel does not give is NAN (numbers), "" (text) or false: print it
 * as n/a, store it as NULL, never as 0.  A figure may be missing on one board
 * and kernel and there on the next.
 */
struct kfd_sensors {
	uint64_t time_ns; /* CLOCK_MONOTONIC, when reading began */
	double sclk_mhz, mclk_mhz;
	double load_pct;
	double power_w, power_cap_w;
	double edge_c, junction_c, memory_c;
	double vddgfx_mv, fan_rpm;
	double vram_used_bytes, gtt_used_bytes;
	/*
	 * Grows with every reset that lost the contents of VRAM: a change
	 * between two readings says so, whoever caused the reset.
	 */
	double vram_lost;
};
/*
 * One reading.  Cheap enough to be made before and after each measurement
 * (some microseconds in software, below a millisecond on a card); nothing is
 * left open.  false when nothing at all could be read.  Thread-safe.
 */
bool kfd_sensors_read(struct kfd_dev *dev, struct kfd_sensors *out);

/* The figures by name, for tables and databases: NULL ends it. */
struct kfd_sensor_column {
	const char *name; /* "sclk" */
	const char *unit; /* "MHz" */
	unsigned digits;  /* after the point */
	size_t offset;	  /* of the double in struct kfd_sensors */
};
extern const struct kfd_sensor_column kfd_sensor_columns[];
double kfd_sensor_value(const struct kfd_sensors *s,
			const struct kfd_sensor_column *c);

#define KFD_FIRMWARE_MAX 20
struct kfd_firmware {
	const char *name; /* "MEC" */
	bool known;
	uint32_t version, feature;
};
struct kfd_drm {
	char name[64];		   /* "Radeon RX 7900 XTX" */
	const char *name_source;   /* "libdrm", "table" or "topology" */
	char card[32], render[32]; /* "/dev/dri/card0"; "" = not there */
	char vbios[64], link_speed[32], link_width[16], perf_level[32];
	double drm_major, drm_minor; /* of the kernel's interface */
	double device_id, pci_rev, external_rev, family;
	double engines, arrays_per_engine, cu_active;
	bool has_cu_bitmap;
	uint32_t cu_bitmap[4][4]; /* [engine % 4][array, + 2 from 4 on] */
	double sclk_max_mhz, mclk_max_mhz, counter_khz;
	double render_backends;
	double vram_bytes, vram_usable_bytes, visible_bytes, gtt_bytes;
	struct kfd_firmware fw[KFD_FIRMWARE_MAX]; /* n_fw of them asked for */
	int n_fw;
};
/* false and *e when the render node answers no question at all. */
bool kfd_drm_read(struct kfd_dev *dev, struct kfd_drm *out, struct err *e);

#endif
