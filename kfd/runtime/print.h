/*
 * kfd/runtime/print.h - what kernels print; private to print.c, hostcall.c and the
 * files of queues and dispatches.
 */
#ifndef T0_KFD_PRINT_H
#define T0_KFD_PRINT_H

#include "kfd/runtime/printf.h"
#include "kfd/runtime/runtime.h"

#define PRINT_BUFFERS 4 /* printing packets of a queue at a time */

struct printbuf {
	struct mem *mem;
	bool busy; /* a packet's that is not retired */
	const struct kfd_kernel *kernel; /* the last one, too; NULL: none */
	uint64_t read; /* of a ring: dwords */
};
struct hostcall;
struct printer { /* of a queue, from its first printing packet on */
	struct printbuf b[PRINT_BUFFERS];
	struct hostcall *hostcall;
	struct buf text;
	struct kfd_print_stats stats;
};

/* ------------------------------------------------------------ print.c ---- */

struct printer *kfd_printer(struct kfd_queue *q);
/* *out NULL: all are taken, wait for the oldest packet. */
bool kfd_print_take(struct kfd_queue *q, const struct kfd_kernel *k,
		    struct printbuf **out, struct err *e);
uint64_t kfd_print_va(const struct printbuf *b);
/* The packet was not put after all.  NULL is fine. */
void kfd_print_drop(struct printbuf *b);
/* The packet is done: show all of it. */
void kfd_print_end(struct kfd_queue *q, struct printbuf *b);
/* Serve running kernels, and say what to expect of them. */
enum print_poll {
	PRINT_NONE,
	PRINT_MAYBE, /* look again soon */
	PRINT_MORE,  /* there was something: look again at once */
};
enum print_poll kfd_print_poll(struct kfd_queue *q);
void kfd_print_text(struct kfd_queue *q, const char *text, size_t len);
/* The device is done with the queue. */
void kfd_print_fini(struct kfd_queue *q);

/* --------------------------------------------------------- hostcall.c ---- */

/* The queue's hostcall buffer, made when it is first asked for; 0 and *e. */
uint64_t kfd_hostcall_va(struct kfd_queue *q, struct err *e);
/* Was there anything to answer? */
bool kfd_hostcall_poll(struct kfd_queue *q);
void kfd_hostcall_fini(struct kfd_queue *q);

#endif
