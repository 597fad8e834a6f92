/*
 * kfd/soft/device - the soft device from inside: the manual.
 *
 * Locks, in the order in which they may be taken:
 *   dev->lock   (mutex)   files, buffer objects, SVM ranges, queue table
 *   map.lock    (rwlock)  what the GPU can reach; threads that execute waves
 *                         or read packets hold it shared for a slice, MAP and
 *                         UNMAP hold it alone, so that no host pointer goes
 *                         stale in use.  A thread that holds it shared takes
 *                         neither dev->lock nor anything that waits.
 *   ev.lock     (mutex)   events and their waiters
 *   wake.lock, pool.lock, debug.lock, smi_lock, fault_lock, load.lock, those of
 *   the counters and of the rings of drm/: leaves
 */
#ifndef T0_KFD_SOFT_DEV_H
#define T0_KFD_SOFT_DEV_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/order.h"
#include "base/vec.h"
#include "kfd/abi.h"
#include "kfd/soft/exec/exec.h"
#include "kfd/soft/soft.h"

#define SOFT_WAVES_PER_CU 32u
#define SOFT_RENDER_MINOR 128u		    /* of the first card */
#define SOFT_PCI_BUS(i)	  (0x10u * (i) + 3) /* of card i */
#define SOFT_PCI_VENDOR	  0x1002u
#define SOFT_UNIQUE_ID	  0x7430736f66743030ull /* "t0soft00", and so on */
#define SOFT_GPUVM_BASE	  0x1000000ull
#define SOFT_GPUVM_LIMIT  0x7fffffffffffull
#define SOFT_LDS_BASE	  0x0001000000000000ull
#define SOFT_SCRATCH_BASE 0x0002000000000000ull
#define SOFT_USER_LIMIT	  0x800000000000ull /* 47-bit user space */
#define SOFT_QUEUES_MAX	  1024u
#define SOFT_GROUP_MAX	  1024u /* work-items */
#define SOFT_MAP_GATES	  32
#define SOFT_HOOKS_MAX	  4u
#define SOFT_BACK_MAX	  64
#define SOFT_SAID	  64

/* Which node a handle was opened on. */
enum soft_node { SOFT_NODE_KFD, SOFT_NODE_RENDER, SOFT_NODE_CARD };

struct soft_file {
	int fd; /* -1 = slot free */
	enum soft_node node;
	struct soft_card *card; /* NULL: of /dev/kfd */
	pid_t pid;   /* that opened it */
	uint64_t id; /* never reused, unlike fd */
};

/* A buffer object; `handle` = gpu_id << 32 | index in soft_dev.bo. */
struct soft_bo {
	struct soft_card *card; /* that it was made on */
	uint64_t va, size;
	uint32_t flags;	 /* KFD_MEM_* */
	uint64_t offset; /* in the memory file; ~0 for user pointers */
	uint8_t *host;	 /* own mapping, or the user's memory */
	uint32_t mapped; /* a bit per card: MAP_MEMORY_TO_GPU was done */
	bool gone;	 /* user pages were unmapped without telling */
	unsigned queue_refs[SOFT_CARDS_MAX]; /* of each card's queues */
	int file; /* exported or imported: it has a file of its own; else -1 */
	bool imported; /* somebody else pays for it */
	uint64_t drm_file; /* it is a DRM file's; 0: of /dev/kfd */
	/* What a DRM program wrote about it. */
	uint64_t tiling, metadata_flags;
	uint32_t metadata_bytes, metadata[64];
};

/* Host memory that the GPU uses in place; what the SVM ioctl said of it. */
struct soft_svm {
	uint64_t start, size;
	uint32_t flags; /* KFD_SVM_FLAG_* */
	uint32_t preferred, prefetch; /* KFD_SVM_LOCATION_* or a GPU */
	uint32_t location; /* where its pages are: 0 or the GPU's id */
	/* Of each card: KFD_SVM_ATTR_ACCESS and so on. */
	uint32_t access[SOFT_CARDS_MAX];
	uint8_t granularity;
};

/* An open descriptor of SMI_EVENTS. */
struct soft_smi {
	struct soft_card *card; /* whose events it tells */
	int fd;	       /* the device's end */
	uint64_t mask; /* what the program last wrote into its own */
};

/*
 * map.lock, of all cards' maps: a thread holds its own gate shared, or all of
 * them alone; one gate for all would travel between their caches with every
 * slice.
 */
struct soft_gate {
	pthread_rwlock_t lock;
	char apart[128 - sizeof(pthread_rwlock_t)];
};
/* What a card can reach, sorted by va, never overlapping. */
struct soft_map {
	struct soft_range *v;
	size_t n, cap;
	/* Atomic: grows when decoded code is stale, or a range that was found. */
	uint32_t code_epoch;
};

struct soft_event {
	bool auto_reset, signaled;
	uint32_t id, type;
	uint64_t age;
	union {
		struct kfd_memory_exception memory;
		struct kfd_hw_exception hw;
	};
	struct soft_waiter *waiters;
};
struct soft_events {
	pthread_mutex_t lock;
	uint32_t changes; /* a futex: counts what sleepers look at */
	/* [0, 4096): signal events by id; after them the others. */
	VEC(struct soft_event *) table; /* each lives on its own */
	uint64_t *page;	   /* the kernel's view of the event page */
	uint32_t page_bo;  /* index, 0 = the kernel's own page */
	uint64_t page_off; /* in the memory file, for mmap */
	unsigned sleeping; /* threads inside WAIT_EVENTS */
	bool ending;
};

/*
 * Sleeping packet processors wait here.  A sleeper announces itself before it
 * looks for work, so a doorbell store followed by a look at `parked` wakes it.
 */
struct soft_wake {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint32_t parked; /* atomic */
	uint64_t seq;	 /* grows with every wake-up */
};

/* How busy the card is, for the sensors (sensors.c). */
struct soft_load {
	pthread_mutex_t lock; /* a leaf */
	unsigned running;     /* kernels and copies in work */
	uint64_t since_ns, busy_ns;
	uint64_t step_ns, step_busy_ns; /* when the model was last moved on */
	double load;			/* 0..1 */
	double temp_c;
};
struct soft_sensors {
	unsigned load_pct, sclk_mhz, mclk_mhz, vddgfx_mv, fan_rpm;
	unsigned edge_mc, junction_mc, memory_mc; /* 1/1000 degree C */
	uint64_t power_uw;
};

/* What a thread that executes waves keeps for itself. */
struct soft_worker {
	struct {
		struct soft_code_cache *cache;
		uint32_t epoch; /* of the map when it was last stale */
	} code[SOFT_CARDS_MAX]; /* of each card */
	/* The deadline that half passed, and what this thread had computed. */
	uint64_t late_for_ns, late_at_ns;
};

enum soft_queue_bo {
	SOFT_BO_RING, SOFT_BO_RPTR, SOFT_BO_WPTR, SOFT_BO_EOP, SOFT_BO_CWSR,
	SOFT_BO_COUNT,
};
struct soft_queue {
	struct soft_dev *dev;
	struct soft_card *card; /* that it runs on */
	uint32_t id, type; /* KFD_QUEUE_* */
	uint64_t *doorbell;
	/* Of the ring; written under map.lock held alone. */
	uint64_t ring_base;
	uint32_t ring_bytes;
	uint64_t rptr_va, wptr_va, cwsr_va;
	uint32_t bo[SOFT_BO_COUNT]; /* referenced objects, 0 = none */
	pthread_t thread;
	uint32_t stop;	 /* atomic: being destroyed */
	uint32_t active; /* atomic: has a ring and a percentage */
	uint32_t suspended; /* atomic: by a debugger */
	uint32_t cwsr_bytes, ctl_stack_bytes;
	uint32_t cus;	     /* atomic: that its mask leaves to it */
	uint64_t exceptions; /* debug.lock: KFD_EC_MASK() of what happened */
	uint32_t dead;	 /* atomic: stopped by an error */
	/* The packet processor's own. */
	struct soft_worker worker;
	uint64_t doorbell_seen;
	bool armed; /* a doorbell came: packets may be waiting */
	uint64_t read_index;
	uint64_t began_index, began_ts; /* of the packet in work */
	bool again; /* it had to wait before */
	bool mute;  /* a hook's: its completion raises no interrupt */
	/*
	 * PM4 and SDMA queues: read_index and this count dwords and bytes.
	 * AQL queues have `pm4` too, for their vendor packets.
	 */
	uint64_t stream_end; /* packets are there up to here */
	struct soft_pm4 *pm4;
};

/* A debugger of the process, debug.c. */
struct soft_debug {
	pthread_mutex_t lock; /* a leaf: exceptions, of queues too */
	bool on;
	int fd; /* where a byte per exception goes */
	uint64_t enabled; /* exceptions that are wanted */
	uint64_t process; /* those of the process that happened */
	struct kfd_debug_runtime runtime;
	/* Atomic: exceptions that new waves trap on, MODE.EXCP_EN's bits. */
	uint32_t trap_mask, trap_replace, flags;
	/* With dev->lock: RUNTIME_ENABLE waits for the debugger. */
	unsigned may_run;
	pthread_cond_t changed;
};

struct soft_pool;
struct soft_hook;
struct soft_run;
struct soft_dispatch;

/* What one card has for itself; dev->lock, but where it says otherwise. */
struct soft_card {
	struct soft_dev *dev;
	unsigned index; /* in soft_dev.card */
	const struct isa_chip *chip;
	uint32_t gpu_id;
	uint64_t vm_file; /* id of the render file, 0 = VM not acquired */
	uint64_t vram_bytes, vram_used;
	uint64_t doorbell_off, mmio_off; /* in the memory file */
	uint64_t *doorbell;		 /* [1024], the card's view */
	uint32_t *mmio;
	struct soft_map map;
	struct soft_queue *gws; /* the queue that has the global wave sync */
	struct soft_traps traps; /* written under map.lock held alone */
	struct soft_counters *counters;
	struct soft_load load;
	uint32_t vram_lost; /* atomic: resets that lost VRAM */
	uint32_t evicted;   /* atomic: a page fault stopped its queues */
	uint32_t hung;	    /* atomic: reset; needs to be reopened */
	/* debug.lock: KFD_EC_MASK() of what happened, and of a page fault. */
	uint64_t exceptions;
	struct kfd_memory_exception fault;
};

struct soft_dev {
	struct kfd_driver driver; /* first: the handle is the driver */
	struct soft_options o;
	pid_t pid; /* threads exist only in this process */
	struct soft_card card[SOFT_CARDS_MAX];
	unsigned n_cards; /* of them in the machine */

	pthread_mutex_t lock;
	struct soft_file *file;
	size_t n_files, cap_files;
	uint64_t next_file_id;
	unsigned kfd_opens;
	uint32_t runtime_enabled; /* atomic */

	int memfd;
	uint64_t memfd_end;
	struct soft_bo **bo; /* [0] is never used */
	size_t n_bo, cap_bo;
	uint64_t sys_used, sys_limit;
	VEC(struct soft_svm) svm; /* sorted, without overlaps */
	pthread_mutex_t smi_lock; /* a leaf */
	VEC(struct soft_smi) smi;
	struct soft_gate gate[SOFT_MAP_GATES];

	struct soft_events ev;
	struct soft_queue *queue[SOFT_QUEUES_MAX];
	unsigned n_queues;
	struct soft_debug debug;
	struct soft_wake wake;
	struct soft_pool *pool;
	struct soft_drm *drm;
	uint32_t rung; /* atomic: doorbells come through ring() */

	pthread_mutex_t fault_lock;
	struct soft_fault fault;
	uint64_t said[SOFT_SAID]; /* hashes of the last lines reported */
	unsigned n_said;
	struct soft_hook *hook[SOFT_HOOKS_MAX];
	unsigned n_hooks; /* atomic: grows while others look */
	/* Atomic: all queues are evicted until then; for so long they were. */
	uint64_t paused_until_ns, evicted_ns;
};

/* ---------------------------------------------------------- device.c ---- */

/* NULL: not one of ours.  Under the lock. */
struct soft_file *soft_file_by_fd(struct soft_dev *d, int fd);
/* The card that the topology calls so, or NULL. */
struct soft_card *soft_card_by_id(struct soft_dev *d, uint32_t gpu_id);

/* ----------------------------------------------------------- ioctl.c ---- */

/* 100 MHz ticks since the card's own start. */
uint64_t soft_gpu_clock(const struct soft_card *c);
struct kfd_aperture soft_aperture(const struct soft_card *c);
/* An ioctl on /dev/kfd: 0 or -errno. */
int soft_kfd_ioctl(struct soft_dev *d, unsigned long request, void *arg);

/* -------------------------------------------------------- topology.c ---- */

/* What the topology says of the GPU, in the debugger's structure. */
void soft_gpu_identity(const struct soft_card *c,
		       struct kfd_device_snapshot *out);
int soft_topology_read(struct soft_dev *d, const char *path, struct buf *out);
int soft_topology_list(struct soft_dev *d, const char *path, struct buf *out);

/* --------------------------------------------------------- sensors.c ---- */

void soft_load_init(struct soft_card *c);
void soft_load_fini(struct soft_card *c);
/* Around everything that keeps the card busy. */
void soft_load_begin(struct soft_card *c);
void soft_load_end(struct soft_card *c);
void soft_sensors_read(struct soft_card *c, struct soft_sensors *out);

/* ----------------------------------------------------------- sysfs.c ---- */

/* The files of the PCI function, its DRM nodes and hwmon: 0 or -errno. */
int soft_sysfs_read(struct soft_dev *d, const char *path, struct buf *out);
int soft_sysfs_list(struct soft_dev *d, const char *path, struct buf *out);

/* ------------------------------------------------------- discovery.c ---- */

/* Of a path below ip_discovery, "" or with a slash first: 0 or -errno. */
int soft_discovery_read(const struct isa_chip *chip, const char *path,
			struct buf *out);
int soft_discovery_list(const struct isa_chip *chip, const char *path,
			struct buf *out);
/* Is it the name of a block?  Then a link to the folder *hw_id beside it. */
bool soft_discovery_link(const struct isa_chip *chip, const char *path,
			 unsigned *hw_id);

/* -------------------------------------------------------------- drm/ ---- */

void soft_drm_init(struct soft_dev *d);
/* The rings end, while what they reach is there. */
void soft_drm_fini(struct soft_dev *d);
/* A DRM ioctl on a render or card node: 0 or -errno. */
int soft_drm_ioctl(struct soft_dev *d, const struct soft_file *f,
		   unsigned long request, void *arg);
/* Is there a buffer in a card's addresses there?  dev->lock held. */
bool soft_drm_overlaps(const struct soft_dev *d, uint64_t va, uint64_t size);
/* The file is closed: its buffers and contexts go. */
void soft_drm_close(struct soft_dev *d, const struct soft_file *f);

/* ---------------------------------------------------------- memory.c ---- */

/* VRAM that the host can map, bytes. */
static inline uint64_t soft_visible_bytes(const struct soft_card *c)
{
	const uint64_t window = 256u << 20; /* the usual small BAR */

	return c->dev->o.small_bar && window < c->vram_bytes ? window :
							       c->vram_bytes;
}
/* What a CU of the card is made of. */
static inline const struct isa_gen_info *soft_gen(const struct soft_card *c)
{
	return isa_gen_info(c->chip->gen);
}
/* Bytes in use: of its VRAM, and of host memory given to GPUs. */
void soft_memory_usage(struct soft_card *c, uint64_t *vram, uint64_t *gtt);
bool soft_memory_init(struct soft_dev *d, struct err *e);
void soft_memory_fini(struct soft_dev *d);
void soft_memory_end(struct soft_dev *d); /* the process closed it */
/* Room in the memory file and the device's view of it; 0 or -errno. */
int soft_memory_carve(struct soft_dev *d, uint64_t size, uint64_t *offset,
		      void **host);
void soft_memory_drop(struct soft_dev *d, uint64_t offset, uint64_t size,
		      void *host);
/* dev->lock held.  NULL = no such handle. */
struct soft_bo *soft_bo_by_handle(struct soft_dev *d, uint64_t handle);
/* What the card has mapped at exactly [va, va + size), or 0; lock held. */
uint32_t soft_bo_exact(struct soft_card *c, uint64_t va, uint64_t size);
/* Does an object that any card has mapped lie anywhere in there? */
bool soft_bo_overlaps(const struct soft_dev *d, uint64_t va, uint64_t size);
/* mmap of a buffer object through the render node: its file, or -errno. */
int soft_bo_mmap(struct soft_dev *d, uint64_t *offset, uint64_t size);
/* A new object's slot and its handle. */
uint64_t soft_bo_add(struct soft_dev *d, struct soft_bo *b);
/* The process unmapped host pages: the GPU loses them too; else than `gone`,
 * others are in their place, where user pointers lead. */
void soft_host_unmapped(struct soft_dev *d, uint64_t addr, uint64_t size,
			bool gone);

/* A DRM file's object, in memory of its own: 0 and its handle, or -errno. */
int soft_bo_new(struct soft_card *c, uint64_t size, uint32_t flags,
		uint64_t drm_file, uint64_t *handle);
/* By its index in soft_dev.bo. */
void soft_bo_delete(struct soft_dev *d, size_t i);

int soft_ioc_alloc(struct soft_dev *d, void *arg);
int soft_ioc_free(struct soft_dev *d, void *arg);
int soft_ioc_map(struct soft_dev *d, void *arg);
int soft_ioc_unmap(struct soft_dev *d, void *arg);
int soft_ioc_available(struct soft_dev *d, void *arg);

/* ---------------------------------------------------------- dmabuf.c ---- */

/* All with dev->lock held. */
/* A descriptor of its file, or -errno. */
int soft_bo_export(struct soft_dev *d, struct soft_bo *b, bool cloexec);
int soft_bo_import(struct soft_card *c, int from, uint64_t va,
		   uint64_t *handle);
int soft_ioc_export_dmabuf(struct soft_dev *d, void *arg);
int soft_ioc_import_dmabuf(struct soft_dev *d, void *arg);
int soft_ioc_dmabuf_info(struct soft_dev *d, void *arg);

/* ------------------------------------------------------------- svm.c ---- */

/* All with dev->lock held. */
int soft_ioc_svm(struct soft_dev *d, void *arg);
bool soft_svm_overlaps(const struct soft_dev *d, uint64_t va, uint64_t size);
/* Has the card all of it mapped for good?  As a queue's save area has to be. */
bool soft_svm_covers(struct soft_card *c, uint64_t va, uint64_t size);
/* The process unmapped it: no range remains there. */
void soft_svm_unmapped(struct soft_dev *d, uint64_t va, uint64_t size);
/* mprotect(), which the GPU sees at the same moment: 0 or -errno. */
int soft_svm_mprotect(struct soft_dev *d, void *addr, size_t size, int prot);
void soft_svm_end(struct soft_dev *d);

/* ------------------------------------------------------------- smi.c ---- */

uint64_t soft_boot_ns(void); /* the clock of its lines */
int soft_ioc_smi_events(struct soft_dev *d, void *arg);
/* A line "EVENT ..." to all that asked for it of this card. */
void soft_smi_event(struct soft_card *c, enum kfd_smi event,
		    const char *fmt, ...) T0_PRINTF(3, 4);
void soft_smi_end(struct soft_dev *d);

/* ------------------------------------------------------------- map.c ---- */

/* The maps of all cards. */
void soft_map_init(struct soft_dev *d);
void soft_map_fini(struct soft_dev *d);
/* dev->lock held.  Insert only where it is free. */
bool soft_map_is_free(const struct soft_map *m, uint64_t va, uint64_t size);
void soft_map_insert(struct soft_card *c, const struct soft_range *r);
void soft_map_remove(struct soft_card *c, uint64_t va);
/* At once: instead of all ranges that begin in [lo, hi), these. */
void soft_map_replace(struct soft_card *c, uint64_t lo, uint64_t hi,
		      const struct soft_range *r, size_t n);
/* The same with the maps held alone. */
void soft_map_replace_held(struct soft_card *c, uint64_t lo, uint64_t hi,
			   const struct soft_range *r, size_t n);
/* soft_env.find over the card's map; ctx is the card.  Slice held. */
bool soft_map_find(void *ctx, uint64_t va, struct soft_range *out);
/* Host pointer of [va, va + size) for `need` (SOFT_MEM_*), or NULL. */
void *soft_map_at(struct soft_card *c, uint64_t va, uint64_t size,
		  uint32_t need);
/* Begin and end a slice in which ranges and host pointers stay valid. */
void soft_map_hold(struct soft_dev *d);
void soft_map_release(struct soft_dev *d);
/* The same, to change them. */
void soft_map_hold_alone(struct soft_dev *d);
void soft_map_release_alone(struct soft_dev *d);

/* ---------------------------------------------------------- events.c ---- */

void soft_events_init(struct soft_dev *d);
void soft_events_fini(struct soft_dev *d);
void soft_events_end(struct soft_dev *d); /* wakes waiters with EIO */
int soft_ioc_create_event(struct soft_dev *d, void *arg);
int soft_ioc_destroy_event(struct soft_dev *d, void *arg);
int soft_ioc_set_event(struct soft_dev *d, void *arg);
int soft_ioc_reset_event(struct soft_dev *d, void *arg);
int soft_ioc_wait_events(struct soft_dev *d, void *arg);
/* The interrupt: what the kernel does when the GPU signals event `id`. */
void soft_event_interrupt(struct soft_dev *d, uint32_t id);
/* False: the program has no event of that type. */
bool soft_event_memory(struct soft_dev *d,
		       const struct kfd_memory_exception *m);
bool soft_event_hw(struct soft_dev *d, const struct kfd_hw_exception *h);

/* ----------------------------------------------------------- queue.c ---- */

int soft_ioc_create_queue(struct soft_dev *d, void *arg);
int soft_ioc_destroy_queue(struct soft_dev *d, void *arg);
int soft_ioc_update_queue(struct soft_dev *d, void *arg);
void soft_queues_end(struct soft_dev *d);
/* dev->lock held.  NULL: no such queue. */
struct soft_queue *soft_queue_by_id(struct soft_dev *d, uint32_t id);

/* ----------------------------------------------------- queue_props.c ---- */

int soft_ioc_set_cu_mask(struct soft_dev *d, void *arg);
int soft_ioc_queue_gws(struct soft_dev *d, void *arg);
int soft_ioc_wave_state(struct soft_dev *d, void *arg);

/* ----------------------------------------------------------- debug.c ---- */

void soft_debug_init(struct soft_dev *d);
void soft_debug_fini(struct soft_dev *d);
void soft_debug_end(struct soft_dev *d); /* dev->lock held */
int soft_ioc_dbg_trap(struct soft_dev *d, void *arg);
int soft_ioc_runtime_enable(struct soft_dev *d, void *arg);
/* An exception of the queue: true when a debugger takes it. */
bool soft_debug_queue(struct soft_queue *q, enum kfd_ec ec);
/* The same of the card: a page fault. */
bool soft_debug_fault(struct soft_card *c,
		      const struct kfd_memory_exception *m);

/* "AQL", "PM4" or "SDMA". */
const char *soft_queue_name(const struct soft_queue *q);
/* May this queue's packets and waves go on? */
enum soft_go { SOFT_GO, SOFT_PAUSE, SOFT_STOP };
enum soft_go soft_queue_go(const struct soft_queue *q);

void soft_wake_init(struct soft_dev *d);
void soft_wake_fini(struct soft_dev *d);
void soft_wake_all(struct soft_dev *d);
/* Announce; then look for work; then sleep or not. */
uint64_t soft_wake_announce(struct soft_dev *d);
void soft_wake_sleep(struct soft_dev *d, uint64_t announced, uint64_t ns);
void soft_wake_cancel(struct soft_dev *d);

/* ---------------------------------------------------------- packet.c ---- */

enum soft_done {
	SOFT_DONE,    /* the packet is finished, take the next one */
	SOFT_LATER,   /* it waits for something: come back */
	SOFT_REFUSED, /* the queue stopped */
};
/* Is there a packet to run at q->read_index? */
bool soft_packet_ready(struct soft_queue *q);
enum soft_done soft_packet_run(struct soft_queue *q);

/* These with a slice held. */

/* The CP cannot reach va: a page fault. */
void soft_cp_fault(struct soft_queue *q, uint64_t va, uint32_t need,
		   const char *what);
/* Host pointer for the CP's own access; NULL after raising a page fault. */
void *soft_cp_at(struct soft_queue *q, uint64_t va, uint64_t size,
		 uint32_t need, const char *what);
/* The same of [va, va + *n), or of as much as lies in one piece: *n. */
uint8_t *soft_cp_reach(struct soft_queue *q, uint64_t va, uint64_t *n,
		       uint32_t need, const char *what);
/* The queue's amd_queue structure, or NULL after a page fault. */
struct amd_queue *soft_cp_queue(struct soft_queue *q, uint64_t *va);
/* Let the slot go: header INVALID, read_dispatch_id one further. */
void soft_packet_retire(struct soft_queue *q);
/* Timestamps, value, mailbox and interrupt of a completion signal. */
void soft_packet_complete(struct soft_queue *q, uint64_t signal,
			  uint64_t end_ts);
/* The queue stops at this packet. */
enum soft_done soft_packet_refuse(struct soft_queue *q, enum kfd_ec ec,
				  uint32_t inactive, uint64_t kernel,
				  const char *fmt, ...) T0_PRINTF(5, 6);

/* --------------------------------------------------------- refusal.c ---- */

/* A line for who runs the device, unless it was one of the last ones. */
void soft_report(struct soft_dev *d, const char *fmt, ...) T0_PRINTF(2, 3);
/*
 * Report why the ioctl failed with err_no: the field, its value, and what would
 * be accepted, as far as the structure shows it.
 */
void soft_explain_ioctl(struct soft_dev *d, unsigned long request,
			const void *arg, int err_no);
void soft_explain_drm(struct soft_dev *d, unsigned long request,
		      const void *arg, int err_no);

/* ----------------------------------------------------------- guard.c ---- */

/* From now on accesses that fail are caught. */
void soft_guard_take(void);
/* An access to memory that the program gave, and took away again. */
struct soft_lost {
	uint64_t va;
	bool write;
};
/*
 * fn(arg) with a slice held; false when an access in it failed, and it was
 * left there and then: it must hold no lock while it makes one.
 */
bool soft_guarded(const struct soft_card *c, void (*fn)(void *arg), void *arg,
		  struct soft_lost *lost);
/* fn(q, arg) guarded, in a slice of its own; SOFT_REFUSED after a fault. */
enum soft_done soft_cp_step(struct soft_queue *q,
			    enum soft_done (*fn)(struct soft_queue *q,
						 void *arg),
			    void *arg);
/* To and from what a program's ioctl points at: 0 or -EFAULT. */
int soft_copy_in(void *to, uint64_t from, size_t n);
int soft_copy_out(uint64_t to, const void *from, size_t n);

/* ----------------------------------------------------------- fault.c ---- */

/* The driver's fault_text: the last fault's line. */
bool soft_fault_text(struct kfd_driver *drv, struct buf *out);
/* The driver's `fault`: the same as numbers. */
bool soft_fault_report(struct kfd_driver *drv, struct kfd_driver_fault *out);

/* The runtime hears of these exceptions (KFD_EC_MASK()), from a debugger. */
void soft_runtime_error(struct soft_queue *q, uint64_t mask);

/* All with a slice held. */

/*
 * Tell the program that `q` stopped: the error payload and event when it
 * asked for wave exceptions, else the queue's inactive signal.
 */
void soft_queue_error(struct soft_queue *q, enum kfd_ec ec, uint32_t inactive,
		      struct soft_fault *f);
/* MEMORY event at f->va; all queues of the card are evicted for good. */
void soft_page_fault(struct soft_queue *q, struct soft_fault *f, bool execute);
/* The card is reset after a hang: HW_EXCEPTION event, its queues stop. */
void soft_gpu_reset(struct soft_queue *q, struct soft_fault *f);
/*
 * What a trap handler said in M0 by its interrupt: the queue's doorbell and
 * exceptions (KFD_EC_MASK()) for the debugger or the runtime.  False: it is the
 * number of an event.
 */
bool soft_trap_interrupt(struct soft_queue *q, uint32_t m0);
/* Store `code` in the queue's inactive signal; false = it has none. */
bool soft_queue_inactive(struct soft_queue *q, uint32_t code);

/* ---------------------------------------------------------- launch.c ---- */

/* What PM4 gives in registers, AQL in the descriptor and the queue. */
struct soft_regs {
	uint64_t entry; /* VA of the first instruction */
	uint32_t rsrc1, rsrc2, rsrc3;
	bool wave32;
	uint64_t scratch_va;
	uint32_t tmpring; /* AMD_TMPRING_* */
	uint32_t user[16];
};
/*
 * Run a dispatch to its end: the packet at q->read_index, which is then
 * retired and completed; or, with `regs`, one that a PM4 packet started.
 */
enum soft_done soft_dispatch(struct soft_queue *q, const struct aql_dispatch *p,
			     const struct soft_regs *regs);

/* ------------------------------------------------------------- pm4.c ---- */

/* Has a doorbell announced more than was read?  For PM4 and SDMA. */
bool soft_stream_ready(struct soft_queue *q);
/* The next packet of a PM4 queue. */
enum soft_done soft_pm4_run(struct soft_queue *q);
/* All of an indirect buffer; SOFT_LATER: call again with the same. */
enum soft_done soft_pm4_buffer(struct soft_queue *q, uint64_t va,
			       uint32_t n_dw);
void soft_pm4_free(struct soft_queue *q);
/* What PM4 packets wrote to COMPUTE_PERFCOUNT_ENABLE. */
bool soft_pm4_counts(const struct soft_queue *q);
/* The wait functions of PM4 and SDMA: 0 always, < <= == != >= >. */
bool soft_compare(unsigned function, uint64_t value, uint64_t reference);

/* -------------------------------------------------------- counters.c ---- */

void soft_counters_init(struct soft_card *c);
void soft_counters_fini(struct soft_card *c);
/* Do they count what this queue starts?  `enabled`: COMPUTE_PERFCOUNT_ENABLE */
bool soft_counters_on(struct soft_card *c, bool enabled);
/* The workgroup has ended. */
void soft_counters_add(struct soft_card *c, const struct soft_run *r);
/*
 * Their registers, by dword offset: NULL, or why not.  A counter is that of the
 * WGP which GRBM_GFX_INDEX chooses.
 */
bool soft_counters_have(uint32_t at);
const char *soft_counters_write(struct soft_card *c, uint32_t at,
				uint32_t value);
const char *soft_counters_read(struct soft_card *c, uint32_t at,
			       uint32_t grbm_index, uint32_t *value);

/* ------------------------------------------------------------ sdma.c ---- */

/*
 * The atomics of both engines, by the code that their packets have: of 4 or 8
 * bytes at `at`, which is aligned.  Returns what was there.
 */
bool soft_cp_atomic_known(unsigned code);
uint32_t soft_cp_atomic_bytes(unsigned code);
uint64_t soft_cp_atomic(void *at, unsigned code, uint64_t src, uint64_t cmp);
/* The next packet of an SDMA queue. */
enum soft_done soft_sdma_run(struct soft_queue *q);

/* ----------------------------------------------------------- group.c ---- */

/* A dispatch as the launcher works it out from packet and descriptor. */
struct soft_launch {
	struct soft_queue *q;
	struct aql_dispatch packet;
	struct amd_kernel_descriptor kd;
	const struct soft_regs *regs; /* NULL: an AQL dispatch */
	uint64_t packet_va, queue_va;
	uint64_t entry; /* VA of the first instruction */
	uint32_t n_groups[3];
	uint64_t total;	       /* workgroups */
	uint32_t max_resident; /* of them at a time */
	uint32_t n_vgprs_allocated; /* of a lane, by the card's granule */
	uint32_t wave_size, waves_per_group, n_vgprs, lds_bytes;
	uint64_t scratch_va; /* of wave slot 0 */
	uint32_t scratch_wave_bytes;
	uint32_t scratch_descriptor[4];
	struct soft_env env;
	uint32_t trap_mask, trap_keep; /* MODE.EXCP_EN: set; left as it is */
	bool counted; /* by the card's performance counters */
};
/* launch_check.c: check packet and descriptor and fill the rest; slice held. */
enum soft_done soft_launch_check(struct soft_queue *q, struct soft_launch *l);

struct soft_run { /* a workgroup in execution */
	struct soft_group g;
	struct soft_run *next;
	uint32_t slot; /* of residency: chooses its scratch */
	uint32_t mode; /* of its waves when they start */
	bool fresh;    /* soft_run_start(index) is still to be done */
	uint64_t counts[SOFT_COUNT_COUNT]; /* of this workgroup */
	uint64_t index;
	void *memory;
	void *watched; /* the watcher's */
};
struct soft_run *soft_run_new(const struct soft_launch *l, uint32_t slot);
void soft_run_free(struct soft_run *r);
/* Set up the registers of workgroup r->index (x fastest), which starts now. */
void soft_run_start(struct soft_run *r, const struct soft_launch *l,
		    uint64_t clock);

/* ----------------------------------------------------------- pool.c ---- */

/*
 * Threads that help with dispatches.  A queue's own thread always works on
 * its dispatch, so that every queue makes progress; the pool's threads join
 * wherever work is left.
 */
struct soft_job {
	/* One turn of work; false = nothing for a helper at the moment. */
	bool (*turn)(void *arg, struct soft_worker *w);
	void *arg;
	struct soft_job *next;
	unsigned helpers; /* inside turn() */
	bool offered;	  /* wants helpers */
};
/* NULL when the threads cannot be started. */
struct soft_pool *soft_pool_new(unsigned helpers);
void soft_pool_free(struct soft_pool *p);
void soft_pool_add(struct soft_pool *p, struct soft_job *j);
/* There is work for helpers (again). */
void soft_pool_offer(struct soft_pool *p, struct soft_job *j);
/* Withdraw the job and wait until no helper is inside it. */
void soft_pool_remove(struct soft_pool *p, struct soft_job *j);
void soft_worker_fini(struct soft_worker *w);

/* ---------------------------------------------------------- launch.c ---- */

/*
 * A dispatch in work.  Workgroups come from soft_dispatch_take() and go back by
 * soft_dispatch_put(), both with `lock` held; whoever has one is alone with it.
 */
/* Workgroups [next, end). */
struct soft_indices {
	uint64_t next, end;
};

struct soft_dispatch {
	struct soft_launch l;
	struct soft_hook *watcher; /* NULL: waves run unwatched */
	uint64_t patience_ns; /* how far each workgroup's end moves deadline */
	uint64_t end_ts;      /* for the completion signal; 0: now */
	uint8_t *started;     /* a bit per workgroup of the client's, or NULL */
	struct soft_job job;
	/* All threads write what follows: as few cache lines as will do. */
	_Alignas(64) uint64_t deadline_ns;
	pthread_mutex_t lock; /* guards what follows */
	uint64_t next, ended;
	struct soft_run *waiting, **waiting_end; /* set aside, oldest first */
	struct soft_run *halted; /* by their trap handler */
	struct soft_run *spare; /* memory to use again */
	uint32_t resident;
	/*
	 * Workgroups that end soon are taken some at a time, to be run one
	 * after the other; if one of them does not end soon after all, the
	 * others are given back.
	 */
	uint32_t batch; /* so many, as the last ones took that long */
	uint32_t n_back;
	bool failed;
	struct soft_indices back[SOFT_BACK_MAX];
	pthread_cond_t changed;
};

/* What working on a workgroup led to. */
enum soft_turn {
	SOFT_TURN_ENDED,
	SOFT_TURN_MORE,
	SOFT_TURN_FAILED,
	SOFT_TURN_HALTED, /* no wave can go on, and none ever will */
};

/* Lock held: memory for workgroup `index`, whose start is still to be done. */
struct soft_run *soft_dispatch_take(struct soft_dispatch *dp, uint64_t index);
/* Lock held: SOFT_TURN_MORE sets it aside, and SOFT_TURN_HALTED for good. */
void soft_dispatch_put(struct soft_dispatch *dp, struct soft_run *r,
		       enum soft_turn t);
/* If it is fresh: set up its registers, and what watches it. */
void soft_dispatch_start(struct soft_dispatch *dp, struct soft_run *r,
			 uint64_t clock);
/* Run one wave for up to n instructions: false when the dispatch is over. */
bool soft_dispatch_slice(struct soft_dispatch *dp, struct soft_run *r,
			 struct soft_wave *w, struct soft_worker *k,
			 uint64_t n);
/* Count the waves; true: the barrier opened, as all that live had arrived. */
bool soft_dispatch_barrier(struct soft_dispatch *dp, struct soft_run *r);
/* Has the dispatch passed its deadline?  Then *r is what hangs; asked by *k. */
bool soft_dispatch_hangs(struct soft_dispatch *dp, const struct soft_run *r,
			 struct soft_worker *k);
/* Sleep while the queue is paused. */
void soft_dispatch_pause(struct soft_dispatch *dp);

/* ------------------------------------------------------------ hook.c ---- */

/* A call of the driver, for hooks. */
struct soft_call {
	enum {
		SOFT_CALL_OPEN,
		SOFT_CALL_IOCTL, /* of /dev/kfd; not made yet */
		SOFT_CALL_DONE,	 /* the same, when it has succeeded */
		SOFT_CALL_MMAP,	 /* it will succeed */
	} kind;
	unsigned nr;	  /* KFD_NR_* or KFD_MMAP_TYPE_* */
	const char *path; /* of SOFT_CALL_OPEN */
	void *arg;	  /* of SOFT_CALL_DONE */
};

/*
 * Hooks: how rooms above the device take part in what it does.  watch/ looks
 * at waves and runs dispatches by a model of time, inject/ makes calls and
 * packets fail.  The device knows none of them; it asks those attached, in
 * the order in which they were.  Entries that are NULL are not asked.
 */
struct soft_hook_ops {
	/* 0, or the -errno with which the call is to fail. */
	int (*call)(struct soft_hook *h, const struct soft_call *c);
	/* The last handle of /dev/kfd is about to go. */
	void (*closing)(struct soft_hook *h);
	void (*note)(struct soft_hook *h, const struct kfd_note *n);
	/* Of the packet at q->read_index; false: it is not to be run now. */
	bool (*before_packet)(struct soft_hook *h, struct soft_queue *q);
	/* Run what it likes of the dispatch; the device runs the rest. */
	void (*run_dispatch)(struct soft_hook *h, struct soft_dispatch *dp);
	/* With the device; no thread of it is left. */
	void (*free)(struct soft_hook *h);

	/*
	 * The watcher's, all or none of them; one hook may have them.  Its
	 * workgroups stay on the queue's own thread.
	 */
	void (*begin)(struct soft_hook *h, const struct soft_launch *l);
	void (*end)(struct soft_hook *h);
	/* The workgroup's registers are set up. */
	void (*group_start)(struct soft_hook *h, struct soft_run *r,
			    const struct soft_launch *l);
	void (*group_free)(struct soft_hook *h, struct soft_run *r);
	/* In the place of soft_wave_run(), with a slice held. */
	void (*run_wave)(struct soft_hook *h, struct soft_run *r,
			 struct soft_wave *w, uint64_t max_insts);
	/* All that live have arrived: the barrier is about to open. */
	void (*barrier)(struct soft_hook *h, struct soft_run *r);
};
/* The first member of what a room attaches, which the device then owns. */
struct soft_hook {
	const struct soft_hook_ops *ops;
};
/*
 * Attach it, at any time.  Returns the hook with these ops: h, or the one that
 * another thread had attached before, and h remains the caller's.
 */
struct soft_hook *soft_hook_attach(struct soft_dev *d, struct soft_hook *h);
/* The attached hook with these ops, or NULL. */
struct soft_hook *soft_hook_find(const struct soft_dev *d,
				 const struct soft_hook_ops *ops);
/* The hook that watches waves, or NULL. */
struct soft_hook *soft_hook_watcher(const struct soft_dev *d);
void soft_hooks_free(struct soft_dev *d);

/* Ask all that are attached, as the entry of the same name says. */
int soft_hooks_call(struct soft_dev *d, const struct soft_call *c);
void soft_hooks_closing(struct soft_dev *d);
void soft_hooks_note(struct kfd_driver *drv, const struct kfd_note *n);
bool soft_hooks_before_packet(struct soft_queue *q);
void soft_hooks_run_dispatch(struct soft_dispatch *dp);

#endif
