/*
 * kfd/soft - the gfx1100 in software, its options and faults: the manual.
 *
 * kfd_soft_new() (kfd/driver.h) makes one machine with one RX 7900 XTX or
 * several, whose memory lies in a sparse file in this process, and whose packets
 * are run by threads of this process.  It obeys the kernel's rules: what the
 * kernel refuses, it refuses with the same errno, and what faults on the card
 * faults here, with the same event, while the process stays alive.
 *
 * State belongs to the process that opened /dev/kfd; closing the last handle
 * of /dev/kfd ends every queue and frees everything, so that a device that
 * was reset after a hang can be opened afresh.
 *
 * Not there: graphics.  Buffers and command submission through DRM are, for
 * the packets of compute.
 */
#ifndef T0_KFD_SOFT_SOFT_H
#define T0_KFD_SOFT_SOFT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "isa/tables/tables.h"
#include "kfd/driver.h"
#include "kfd/soft/exec/exec.h" /* enum soft_fault_kind */

#define SOFT_CARDS_MAX 8u
#define SOFT_CHIP      "gfx1100" /* of cards that are not said to be others */

/* All zero is the default device: what a 7900 XTX on Linux 6.12 shows. */
struct soft_options {
	unsigned threads;    /* that run workgroups; 0 = one per CPU */
	uint32_t kfd_minor;  /* KFD 1.N, 1..19; 0 = 17 */
	uint64_t vram_bytes; /* of each card; 0 = what its chip has */
	/* A dispatch of which no workgroup ends for so long is a hang; on a
	 * host that is busy with others it takes longer to say so. */
	uint64_t deadline_ns; /* 0 = 10 s */
	/* One thread, workgroups in order: the same run every time. */
	bool deterministic;
	unsigned cards; /* in the machine, 1..SOFT_CARDS_MAX; 0 = 1 */
	/* What each of them is; NULL: a gfx1100. */
	const struct isa_chip *chip[SOFT_CARDS_MAX];
	bool small_bar; /* VRAM is not visible to the host */
	int open_errno; /* of opening /dev/kfd; 0 = works */
	/* Node 1 is the processor's own graphics, a gfx1036 that nothing can
	 * be done with; the cards are nodes 2 and so on. */
	bool igpu_first;
	bool hidden_node; /* the last node is forbidden by the cgroup */
	/* LDS beyond the workgroup's is a fault; on the chip it reads 0. */
	bool lds_faults;
	/*
	 * Told of every refused call or packet and every fault, in one line
	 * without a newline, from any thread; equal lines once.  May be NULL.
	 */
	void (*report)(const char *line);
	/*
	 * A fault or a reset ended all queues, and the program has no event
	 * by which it could hear of it.  May be NULL.
	 */
	void (*unheard)(void);
	/*
	 * Around the sleep of a thread that waits for events, which a signal
	 * ends where its handler does not restart calls.  May be NULL.
	 */
	void (*sleeping)(bool asleep);
};

/* As the topology tree and apertures say: the first card's, and card i's. */
#define SOFT_GPU_ID 0xa37cu
#define SOFT_GPU_ID_OF(i) (SOFT_GPU_ID + 0x2b5u * (i))
#define SOFT_IGPU_ID	  0x1036u

/* Does a device's spec name the machine in software? */
bool soft_spec_is(const char *spec);
/*
 * "soft[:CHIP][*N]", or some of them with commas between: N cards (1) of each
 * chip (gfx1100) into *o.  *rest is what follows and chooses one of them, from
 * a ':' on, or "".
 */
bool soft_spec_parse(const char *spec, struct soft_options *o,
		     const char **rest, struct err *e);
/* Is there a device in software of this chip? */
bool soft_has_chip(const struct isa_chip *chip);

/*
 * The last fault, as exactly as the emulator knows it.  Fields that do not
 * apply to the kind are 0, and `lane` is -1.
 */
struct soft_fault {
	enum soft_fault_kind kind;
	uint64_t count; /* faults since the device was made */
	uint32_t queue_id;
	uint64_t packet;       /* AQL packet index in that queue */
	uint64_t kernel;       /* VA of the kernel descriptor */
	uint32_t workgroup[3]; /* id of the workgroup */
	uint32_t wave;	       /* index of the wave in its workgroup */
	int lane;	       /* -1: scalar, or unknown */
	uint64_t pc;	       /* VA of the instruction */
	uint32_t words[4];     /* its code, as far as it is known */
	unsigned n_words;
	uint64_t va; /* that could not be accessed */
	bool write;
	char text[640]; /* one line: what happened, and where */
};

/* The last fault of a soft device: false when there was none. */
bool soft_last_fault(struct kfd_driver *d, struct soft_fault *out);
/*
 * Write what the device shows in /sys, /proc and /dev as real files and links
 * below the folder `root`, which exists: for programs that are led there.
 */
bool soft_sysfs_export(struct kfd_driver *d, const char *root, struct err *e);
/* Does this file of the device change while it runs? */
bool soft_sysfs_live(struct kfd_driver *d, const char *path);

/*
 * What programs do behind the device's back, for who stands between them and
 * libc.  Descriptors that the device keeps for itself:
 */
bool kfd_soft_owns_fd(struct kfd_driver *d, int fd);
/* pthread_create() with all signals blocked but those of bad accesses. */
int soft_thread(pthread_t *t, void *(*fn)(void *), void *arg);
/*
 * What such a thread does first, or NULL: who answers a program's system calls
 * must know the device's own, which may be made with its locks held.  Set it
 * before there is a device.
 */
extern void (*soft_thread_begins)(void);
/*
 * Host pages got another mapping, or moved away: SVM ranges end there; user
 * pointers lead to what stands in their place, and with `gone` to nothing.
 */
void kfd_soft_remapped(struct kfd_driver *d, void *addr, size_t size_bytes,
		       bool gone);
/*
 * SIGSEGV and SIGBUS are the device's once a program gave it memory of its
 * own; it passes on what is none of its threads' doing.  sigaction() of the
 * program; false: it is to go the usual way.
 */
bool kfd_soft_sigaction(int sig, const struct sigaction *new,
			struct sigaction *old);

/* ------------------------------------------------------------ fault.c ---- */

/* "illegal instruction" and so on. */
const char *soft_fault_name(enum soft_fault_kind kind);

#endif
