/*
 * kfd/driver.h - the seam between T0's runtime and "the kernel".
 *
 * The runtime reaches a device only through these calls.  Two drivers exist:
 * kfd/linux/linux.c (thin wrappers over libc, real cards through /dev/kfd and
 * /dev/dri) and kfd/soft/ (a gfx1100 in software that answers the same ioctls
 * in this process).  Nothing above this line knows which one it talks to.
 *
 * Calls return 0 or a non-negative value on success and -errno on failure,
 * as the kernel's own entry points do; none of them prints.
 */
#ifndef T0_KFD_DRIVER_H
#define T0_KFD_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* What a driver may know of its last fault beyond the ABI; 0 = not known. */
struct kfd_driver_fault {
	uint64_t count;	   /* faults so far: a new one has a new count */
	bool unsupported;  /* "illegal" only because the driver lacks it */
	uint32_t queue_id; /* the kernel's number of the queue */
	uint64_t packet;
	uint64_t kernel_va; /* of the kernel descriptor */
	uint64_t pc, va;
	bool write;
	uint32_t workgroup[3], wave;
	int lane; /* -1 = scalar */
};

/* About device memory at `va`. */
struct kfd_note {
	enum { KFD_NOTE_MEMORY, KFD_NOTE_CODE, KFD_NOTE_GONE } kind;
	uint64_t va;
	uint64_t size_bytes; /* exactly as asked for */
	const char *name;
	const void *elf; /* KFD_NOTE_CODE: the file that was loaded there */
	size_t elf_bytes;
};

struct kfd_driver {
	const char *name; /* "kfd" or "soft" */
	/* Where its figures come from: "hardware", "emulated", "simulated". */
	const char *origin;

	/* open(2) of /dev/kfd or /dev/dri/renderD<N>: a handle or -errno. */
	int (*open)(struct kfd_driver *d, const char *path, int flags);
	int (*close)(struct kfd_driver *d, int fd);
	/* One attempt; -EINTR and -EAGAIN are the caller's to repeat. */
	int (*ioctl)(struct kfd_driver *d, int fd, unsigned long request,
		     void *arg);
	/* As mmap(2); returns MAP_FAILED and sets *err_no (positive). */
	void *(*mmap)(struct kfd_driver *d, void *addr, size_t size_bytes,
		      int prot, int flags, int fd, uint64_t offset,
		      int *err_no);
	int (*munmap)(struct kfd_driver *d, void *addr, size_t size_bytes);
	/*
	 * As mprotect(2).  Optional (NULL: the process's own will do): for a
	 * driver whose GPU uses the process's pages without the kernel.
	 */
	int (*mprotect)(struct kfd_driver *d, void *addr, size_t size_bytes,
			int prot);

	/* Append a whole (sysfs) file to *out: 0 or -errno. */
	int (*read_file)(struct kfd_driver *d, const char *path,
			 struct buf *out);
	/*
	 * Append the names in a folder to *out, each ended by '\n', without
	 * "." and "..", in any order: 0 or -errno.
	 */
	int (*list_dir)(struct kfd_driver *d, const char *path,
			struct buf *out);
	/* The 64-bit doorbell store (release order), and whatever wakes. */
	void (*ring)(struct kfd_driver *d, volatile uint64_t *doorbell,
		     uint64_t value);
	/*
	 * Optional (may be NULL): append what the driver knows about the last
	 * fault that the ABI cannot carry (instruction address and text, wave)
	 * to *out, without a newline; false when there was none.
	 */
	bool (*fault_text)(struct kfd_driver *d, struct buf *out);
	/*
	 * Optional (may be NULL): what the runtime knows and the ABI does not
	 * carry, for a driver that checks programs.  Nothing is kept.
	 */
	void (*note)(struct kfd_driver *d, const struct kfd_note *n);
	/* Optional: the same for machines. */
	bool (*fault)(struct kfd_driver *d, struct kfd_driver_fault *out);
	/* Frees the driver and everything it still holds. */
	void (*free)(struct kfd_driver *d);
};

/*
 * A file of the cards in software that no kernel has: by it who is started by
 * `t0-soft run` knows that figures are emulated.
 */
#define KFD_SOFT_MARK "/sys/module/amdgpu/t0_soft"
/* Its text where dispatches take a modelled time: figures are simulated. */
#define KFD_SOFT_SIMULATED "simulated"
/* The Linux kernel driver.  Never fails; opening the files may. */
struct kfd_driver *kfd_linux_new(void);

/*
 * The gfx1100 in software.  NULL and *e when the host cannot provide it
 * (no memory, no threads).  Behaviour options come from the environment only
 * through main() (see soft_options in kfd/soft/soft.h); NULL = defaults.
 */
struct soft_options;
struct kfd_driver *kfd_soft_new(const struct soft_options *o, struct err *e);

#endif
