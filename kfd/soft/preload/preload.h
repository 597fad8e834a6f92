/*
 * kfd/soft/preload/preload.h - inside libt0-soft-preload.so, the adapter
 * through which any dynamically linked program sees the gfx1100 in software.
 *
 * `t0-soft run` makes a folder (T0_SOFT_ROOT) with the device's part of /sys,
 * /proc and /dev as real files, and starts the program with this library in
 * LD_PRELOAD.  hooks.c takes the place of libc's file functions: paths of the
 * device lead into that folder, and ioctl and mmap on its nodes lead to a soft
 * device inside the program (device.c), made when it is first needed.
 * lookup.c sees to it that dlsym() finds the hooks, too.
 *
 * A node's descriptor is a descriptor of its empty file in the folder, and is
 * recognised by that file's inode: so it survives dup, fork, exec and closing
 * without a table.  State belongs to the process that opened a node first: a
 * forked child gets EBADF until it opens the node itself.
 *
 * Calls made by the device itself, on a thread that is `inside`, pass through
 * the hooks untouched.
 */
#ifndef T0_KFD_PRELOAD_PRELOAD_H
#define T0_KFD_PRELOAD_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "kfd/soft/soft.h"

/* /dev/kfd, then the render nodes and the card nodes of all cards. */
enum pl_node {
	PL_KFD,
	PL_RENDER,
	PL_CARD = PL_RENDER + SOFT_CARDS_MAX,
	PL_NODES = PL_CARD + SOFT_CARDS_MAX,
	PL_NONE = PL_NODES,
};

extern __thread bool pl_inside;

/* --------------------------------------------- hooks.c and lookup.c ---- */

/* A hook and the name of the function that it hides, in section pl_hooks. */
struct pl_hook {
	const char *name;
	void *fn;
};

/* ----------------------------------------------------------- paths.c ---- */

#define PL_PATH 4096
/* The folder's path, "" when T0_SOFT_ROOT is not set (then no hook acts). */
const char *pl_root(void);
/* `path` if it is none of the device's, else where it leads, in `out`. */
const char *pl_path(const char *path, char out[PL_PATH]);
/* The same for anybody's thread: no thread-local variables. */
const char *pl_lead(const char *path, char *out, size_t room);
/* What the program should see instead of a path in the folder. */
void pl_strip(char *path);
/* "/dev/kfd" and so on, whether the machine has the card or not. */
void pl_node_path(enum pl_node node, char out[32]);
enum pl_node pl_node_of_inode(dev_t dev, ino_t ino);
enum pl_node pl_node_of_fd(int fd);
dev_t pl_node_rdev(enum pl_node node);
/* The file of a node looks like the node. */
void pl_show_stat(struct stat *st);
void pl_show_statx(struct statx *sx);

/* ---------------------------------------------------------- device.c ---- */

/* Who adds to a new device; set before there is one.  NULL: nobody. */
extern bool (*pl_made)(struct kfd_driver *d, const struct isa_chip *chip,
		       struct err *e);

/*
 * The path (in the folder) is about to be opened: make the device for a node,
 * bring a file that changes up to date.  0 or an errno.
 */
int pl_opening(const char *path);
/* A path that is none of the device's was opened: is it a node all the same? */
int pl_opened(int fd);
int pl_ioctl(enum pl_node node, unsigned long request, void *arg);
void *pl_mmap(enum pl_node node, void *addr, size_t size, int prot, int flags,
	      off_t offset);
int pl_munmap(void *addr, size_t size);
int pl_mprotect(void *addr, size_t size, int prot);
/* The pages got another mapping, or moved away (`gone`). */
void pl_remapped(void *addr, size_t size, bool gone);
/* Is this descriptor the device's own, which the program knows nothing of? */
bool pl_owns_fd(int fd);

/* ---------------------------------------------------------- faults.c ---- */

/* Adds the rules of $T0_SOFT_INJECT that are for this process. */
bool pl_inject(struct kfd_driver *d, struct err *e);

#endif
