/*
 * kfd/runtime/runtime.h - what the runtime's files share and nobody else needs.
 *
 * Locks: dev->lock guards the lists and pools of struct kfd_dev; a queue has
 * none (one thread at a time, kfd.h).  No ioctl that may block is made with
 * the lock held.
 */
#ifndef T0_KFD_RUNTIME_H
#define T0_KFD_RUNTIME_H

#include <pthread.h>

#include "base/order.h"
#include "kfd/abi.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"

#define ALIGN_UP(v, a) (((v) + (a)-1) & ~((uint64_t)(a)-1))

struct mem {
	struct kfd_mem pub; /* first: kfd_mem * and mem * are one address */
	struct mem *prev, *next; /* of dev->live */
	uint64_t handle;
	uint32_t flags;
	size_t bytes; /* whole pages */
	void *resv;   /* the reservation, guard pages included */
	size_t resv_bytes;
	bool has_bo, mapped;
	bool holds_code; /* keep the address reserved after free */
	uint32_t shared[7]; /* ids of other GPUs that have it mapped */
	unsigned n_shared;
};

struct freed { /* what fault reports remember of memory that is gone */
	uint64_t va;
	size_t size_bytes;
	enum kfd_domain domain;
	char name[32];
};
#define FREED_N 64

struct range { /* addresses kept reserved until close */
	void *at;
	size_t bytes;
	struct range *next;
};

struct slab { /* a block of bare kernels */
	struct mem *mem;
	size_t used;
	int users;   /* codes still loaded in it */
	bool closed; /* full: freed with its last user */
	struct slab *next;
};

struct sigblock { /* a page of signals */
	struct mem *mem;
	uint64_t used; /* a bit per signal */
	struct kfd_signal *handle[64];
	struct sigblock *next;
};

struct event {
	uint32_t id;
	uint32_t slot; /* of the event page; signal events only */
	uint64_t age;  /* as last seen, 0 = ages are not used */
	bool made;
};

/* What copies where the host cannot; addresses are the device's. */
struct copier_ops {
	bool (*direct)(struct kfd_dev *dev, uint64_t dst, uint64_t src,
		       size_t len_bytes, struct err *e);
	/* Exactly one of in and out is given. */
	bool (*staged)(struct kfd_dev *dev, uint64_t va, const char *in,
		       char *out, size_t len_bytes, struct err *e);
};
struct copier;	/* copier.c */
struct service; /* service.h */
struct printbuf;

struct kfd_dev {
	struct kfd_driver *d;
	struct kfd_info info;
	/* The first GPU that was opened, or itself; and what it opened. */
	struct kfd_dev *root, *peers, *next_peer;
	int kfd_fd, render_fd;
	uint32_t gpu_id;
	/* 1 here, 0 in a child of fork(): the page is wiped there. */
	volatile uint32_t *alive;
	pthread_mutex_t lock;

	struct mem *live;
	struct freed freed[FREED_N];
	unsigned n_freed; /* ever; the ring holds the last FREED_N */
	uint64_t live_bytes;
	struct range *kept;

	struct mem *event_page, *mmio;
	volatile uint32_t *hdp;
	struct event memory_event, hw_event, signal_event;
	void *doorbells;

	struct sigblock *signals;
	struct slab *slabs;
	struct kfd_code *codes;
	struct kfd_queue *queues;
	unsigned n_queues_made;

	struct kfd_pool *pools;
	pthread_mutex_t pools_lock; /* before a pool's, before dev->lock */
	/* The opener's: what gives back idle memory, and what copies. */
	bool (*reclaim)(struct kfd_dev *dev);
	const struct copier_ops *copier_ops;
	struct copier *copier;
	pthread_mutex_t copy_lock; /* around whole copies */

	struct kfd_clock clock[2]; /* the line of kfd_clock_ns() */
	uint64_t clock_read_ns;	   /* when clock[1] was read; 0 = never */
	uint64_t clock_floor;	   /* stamps to here are from before a jump */

	unsigned n_late; /* the root's, atomic: queues with `late` set */

	uint64_t faults_seen; /* kfd_driver_fault.count */
	bool counts_lost;
	uint32_t vram_lost; /* as it was at the open */
	int lost; /* atomic; then what follows is set and stays */
	struct err lost_err;
	struct kfd_fault lost_fault;
};

static inline bool signal_done(const struct amd_signal *s)
{
	const bool done = __atomic_load_n(&s->value, __ATOMIC_ACQUIRE) <= 0;

	if (done)
		order_acquire();
	return done;
}

struct slot {	     /* what the host knows of one packet in the ring */
	uint64_t id; /* packet number */
	struct amd_signal *sig; /* completes it */
	const char *what;	/* kernel name or "barrier" */
	bool loud;		/* interrupts when complete */
	bool ends; /* when it is, all before it are, and the host sees them */
	uint64_t args_end;	/* of the argument ring, after its block */
	struct printbuf *print; /* that it prints into, or NULL */
};

struct kfd_queue {
	struct kfd_dev *dev;
	struct kfd_queue *prev, *next;
	struct kfd_queue_opts opts;
	unsigned number; /* for messages */
	uint32_t id;	 /* the kernel's */
	bool made;
	struct mem *page, *ring, *eop, *cwsr, *args, *scratch, *sigs;
	struct event done_event, err_event;
	struct amd_queue *aq;		/* in page */
	struct amd_signal *inactive;	/* in page */
	volatile uint64_t *err_payload; /* in page */
	volatile uint64_t *doorbell;
	struct slot *slot;	       /* [ring_packets] */
	uint64_t put;		       /* packets written */
	uint64_t rung;		       /* of them, announced */
	uint64_t done;		       /* all before it are complete */
	uint64_t seen;		       /* the host sees what these wrote */
	bool chained;		       /* the last one written was quiet */
	uint64_t args_head, args_tail; /* bytes ever taken, given back */
	uint32_t scratch_wave_bytes;
	struct service *service;	/* NULL: nothing has printed yet */
	uint64_t print_va, hostcall_va; /* of the launch in work */
	bool dead;
	bool late; /* a deadline was missed, and its kernel may still run */
	struct err dead_err;
	struct kfd_fault fault; /* of dead_err, or of the last wait */
};

static inline struct slot *slot_of(const struct kfd_queue *q, uint64_t id)
{
	return &q->slot[id & (q->opts.ring_packets - 1)];
}

/* Offsets in the one-page BO of a queue; amd_queue is at 0. */
enum { PAGE_ERR_PAYLOAD = 0x200, PAGE_INACTIVE = 0x240 };

#define KFD_PATH "/dev/kfd"

/* ioctl.c */
/* A handle of a device file, or -1 and *e with the remedy. */
int kfd_file_open(struct kfd_driver *d, const char *path, struct err *e);
/* One ioctl, repeated over EINTR and EAGAIN (at most 10 s): 0 or -errno. */
int kfd_dev_ioctl(struct kfd_dev *dev, unsigned long request, void *arg);
/*
 * Turn -errno of an ioctl into an error with remedy: "NAME (what): reason".
 * Always false.
 */
bool kfd_dev_ioctl_err(struct kfd_dev *dev, unsigned long request,
		       int neg_errno, struct err *e, const char *fmt, ...)
	T0_PRINTF(5, 6);

/* open.c */
/* The spec of the topology's GPU of that number, on this driver. */
void kfd_spec_name(const struct kfd_driver *d, const struct kfd_topology *t,
		   int number, char out[KFD_SPEC_BYTES]);
/* Has the node all that sizes of queues are computed from? */
bool kfd_node_check(const struct kfd_node *n, struct err *e);

/* device.c */
/* May this process use it, and is it still there? */
bool kfd_dev_usable(struct kfd_dev *dev, struct err *e);
/* Mark as lost with *why (the first reason stays); always false, *e set. */
bool kfd_dev_lose(struct kfd_dev *dev, const struct err *why,
		  const struct kfd_fault *f, struct err *e);

/*
 * While any queue is late, what a kernel may use is not freed but left to
 * kfd_close(): freed under a kernel it would be a page fault, and the device
 * lost.
 */
void kfd_set_late(struct kfd_queue *q, bool late);
bool kfd_is_late(struct kfd_dev *dev);

/* select.c */
#define GPUS_MAX 64
struct kfd_select { /* a parsed spec */
	bool soft, any; /* any: nothing said, so soft will do, too */
	struct soft_options machine; /* in software: its cards */
	enum {
		SELECT_FIRST, /* the first gfx11 that can be used */
		SELECT_NUMBER,
		SELECT_UID,
		SELECT_GFX
	} by;
	int number;
	uint64_t uid;
	char gfx[16];
	char visible[192]; /* list of numbers and ids; "" = all */
};
struct gpu {
	const struct kfd_node *node;
	int number; /* N of kfd:N without a filter */
};
bool kfd_node_is_usable(const struct kfd_node *n);
bool kfd_select_parse(const char *spec, struct kfd_select *sel, struct err *e);
/* Those that match, in the order in which to try them; out[GPUS_MAX]. */
bool kfd_select_gpus(const struct kfd_select *sel, const struct kfd_topology *t,
		     struct gpu *out, int *n_out, struct err *e);

/* clock.c */
bool kfd_clock_calibrate(struct kfd_dev *dev, struct err *e);

/* fault.c */
/*
 * Complete a fault of which kind, va and flags are known.  q: the queue whose
 * thread this is, or NULL.
 */
void kfd_fault_fill(struct kfd_dev *dev, struct kfd_queue *q,
		    struct kfd_fault *f);
/* The oldest packet that is not complete; the queue's own thread only. */
uint64_t kfd_queue_oldest(const struct kfd_queue *q);
/* "kernel 'saxpy', packet 3 of queue 0" or "queue 0 (no packet outstanding)".
 */
void kfd_queue_describe(const struct kfd_queue *q, struct buf *out);
/* The same of what faulted. */
void kfd_fault_describe(const struct kfd_fault *f, struct kfd_queue *q,
			struct buf *out);
/* Has VRAM been lost since the open?  Then the device is, too: false. */
bool kfd_vram_check(struct kfd_dev *dev, struct kfd_queue *q, struct err *e);

/* pool.c */
/* Did the pools have anything to give back? */
bool kfd_pools_trim(struct kfd_dev *dev);
void kfd_pools_fini(struct kfd_dev *dev);

/* copier.c */
extern const struct copier_ops kfd_copier_ops;
void kfd_copier_fini(struct kfd_dev *dev);

/* memory.c */
/* As kfd_mem_alloc() with the ABI's flags. */
struct mem *kfd_mem_new(struct kfd_dev *dev, uint32_t flags, size_t bytes,
			const char *name, struct err *e);
/* NULL is fine.  false and *e when the kernel refused; it is gone anyway. */
bool kfd_mem_delete(struct kfd_dev *dev, struct mem *m, struct err *e);
void kfd_mem_forget(struct kfd_dev *dev); /* the kept ranges, at close */
void kfd_mem_rename(struct kfd_dev *dev, struct kfd_mem *m, const char *name,
		    size_t size_bytes);
/* Fill f->near with the allocation nearest to va. */
void kfd_mem_nearest(struct kfd_dev *dev, uint64_t va, struct kfd_fault *f);
/* Flags by purpose, as the vendor's runtime passes them (kfd-abi 4.1). */
#define MEM_FLAGS_GTT	  0xd6000002u /* coherent, uncached, executable */
#define MEM_FLAGS_USER	  0xd4000004u /* coherent, executable */
#define MEM_FLAGS_VRAM	  0xf0000001u /* host-visible, executable */
#define MEM_FLAGS_PRIVATE 0xd0000001u /* executable */
#define MEM_FLAGS_SCRATCH 0x90000001u
#define MEM_FLAGS_MMIO	  0x94000010u

/* event.c */
bool kfd_events_init(struct kfd_dev *dev, struct err *e);
void kfd_events_fini(struct kfd_dev *dev);
bool kfd_event_new(struct kfd_dev *dev, uint32_t type, struct event *ev,
		   struct err *e);
void kfd_event_delete(struct kfd_dev *dev, struct event *ev);
/* VA of the mailbox of a signal event. */
uint64_t kfd_event_mailbox(struct kfd_dev *dev, const struct event *ev);
/* A wait until sig->value <= 0, an error, or the deadline. */
struct kfd_wait {
	const struct amd_signal *sig;
	struct event *ev;    /* that sig raises */
	struct kfd_queue *q; /* whose errors end it, too; NULL: the device's */
	/*
	 * Look after the queue, before each sleep; false and *e on an error.
	 * *sleep_ms: at most so long, 0: look again at once.  NULL: no queue.
	 */
	bool (*poll)(struct kfd_queue *q, uint32_t *sleep_ms, struct err *e);
	uint64_t spin_ns, deadline_ns;
};
bool kfd_event_wait(struct kfd_dev *dev, const struct kfd_wait *w,
		    struct err *e);
/* Ask for the device's errors alone, for up to timeout_ms; false and *e. */
bool kfd_events_poll(struct kfd_dev *dev, struct kfd_queue *q,
		     uint32_t timeout_ms, struct err *e);

/* signal.c */
struct amd_signal *kfd_signal_hw(const struct kfd_signal *s);
void kfd_signals_fini(struct kfd_dev *dev);

/* code.c */
void kfd_codes_fini(struct kfd_dev *dev);
/* kfd_code_raw() into host memory of its own: for the copy kernels. */
bool kfd_code_raw_host(struct kfd_dev *dev, const void *code, size_t len_bytes,
		       const struct kfd_raw_desc *desc,
		       const struct kfd_kernel **out, struct err *e);
/* With dev->lock held: the kernel with its descriptor at va, or NULL. */
const char *kfd_code_name_at(struct kfd_dev *dev, uint64_t va);

/* queue_error.c */
/* Has the queue met an error?  Then it is dead, *e says why: false. */
bool kfd_queue_usable(struct kfd_queue *q, struct err *e);
/* Looks at the error words that the device writes; false as above. */
bool kfd_queue_poll(struct kfd_queue *q, struct err *e);

/* ring.c */
/* Retire what has completed. */
void kfd_queue_retire(struct kfd_queue *q);
/* Wait until the oldest packet, at least, is done; there must be one. */
bool kfd_ring_wait_oldest(struct kfd_queue *q, uint64_t deadline_ns,
			  struct err *e);
/* Room for a packet; waits for one. */
bool kfd_ring_reserve(struct kfd_queue *q, uint64_t deadline_ns, struct err *e);
/* The buffer that a packet of this kernel prints into, or NULL; waits. */
bool kfd_ring_take_print(struct kfd_queue *q, const struct kfd_kernel *k,
			 uint64_t deadline_ns, struct printbuf **out,
			 struct err *e);
void kfd_ring_drop_print(struct printbuf *b);
/* Header of the next packet, with its fences. */
uint16_t kfd_ring_header(struct kfd_queue *q, enum aql_type type, bool barrier,
			 bool quiet);
/* Set up the slot of the next packet; returns the VA of its signal. */
uint64_t kfd_ring_arm(struct kfd_queue *q, const char *what, bool loud,
		      bool ends, struct kfd_signal *done);
/* Make it the device's; kfd_flush() rings the doorbell. */
void kfd_ring_publish(struct kfd_queue *q, const void *packet);
/* An absolute time: deadline_ns, or for 0 the default from now on. */
uint64_t kfd_deadline(uint64_t deadline_ns);

/* queue.c */
/* Make sure of scratch for waves of `lanes`; drains the queue to grow it. */
bool kfd_queue_scratch(struct kfd_queue *q, uint32_t private_bytes,
		       uint32_t lanes, uint64_t deadline_ns, struct err *e);

#endif
