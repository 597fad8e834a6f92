/*
 * kfd/runtime/service.h - what running kernels ask of the host: text to print
 * (print.c) and hostcalls (hostcall.c).
 *
 * One service per queue, made with its first printing packet.  Only the files
 * of the queue call it; between calls it holds no lock and no thread.
 */
#ifndef T0_KFD_SERVICE_H
#define T0_KFD_SERVICE_H

#include "kfd/runtime/printf.h"
#include "kfd/runtime/runtime.h"

#define PRINT_BUFFERS 4 /* printing packets of a queue at a time */

struct printbuf {
	struct mem *mem;
	bool busy;			 /* a packet's that is not retired */
	const struct kfd_kernel *kernel; /* of that packet */
	bool filled, ring;		 /* with words for what way to print */
	uint64_t read;			 /* of a ring: dwords */
};
struct hostcall;
struct service {
	struct printbuf b[PRINT_BUFFERS];
	struct hostcall *hostcall;
	struct buf text;
	struct kfd_print_stats stats;
};

/* ---------------------------------------------------------- service.c ---- */

/*
 * What a packet of this kernel needs: its hidden arguments to q->print_va and
 * q->hostcall_va, and its buffer, if it prints.  False and *e when it cannot
 * be had; *busy: all buffers are taken, wait for the oldest packet.
 */
bool kfd_service_take(struct kfd_queue *q, const struct kfd_kernel *k,
		      struct printbuf **out, bool *busy, struct err *e);
/* The packet was not put after all.  NULL is fine. */
void kfd_service_drop(struct printbuf *b);
/* The packet is done: show all that it printed. */
void kfd_service_end(struct kfd_queue *q, struct printbuf *b);
/* Serve running kernels, and say what to expect of them. */
enum service_poll {
	SERVICE_IDLE,
	SERVICE_SOON, /* look again soon */
	SERVICE_MORE, /* there was something: look again at once */
};
enum service_poll kfd_service_poll(struct kfd_queue *q);
/* The device is done with the queue. */
void kfd_service_fini(struct kfd_queue *q);

/* ------------------------------------------------------------ print.c ---- */

/* *out NULL: all are taken. */
bool kfd_print_take(struct kfd_queue *q, const struct kfd_kernel *k,
		    struct printbuf **out, struct err *e);
/* Show what a running kernel has printed: was there anything? */
bool kfd_print_poll(struct kfd_queue *q, struct printbuf *b);
void kfd_print_end(struct kfd_queue *q, struct printbuf *b);
void kfd_print_text(struct kfd_queue *q, const char *text, size_t len);

/* --------------------------------------------------------- hostcall.c ---- */

/* The queue's hostcall buffer, made when it is first asked for; 0 and *e. */
uint64_t kfd_hostcall_va(struct kfd_queue *q, struct err *e);
/* Was there anything to answer? */
bool kfd_hostcall_poll(struct kfd_queue *q);
void kfd_hostcall_fini(struct kfd_queue *q);

#endif
