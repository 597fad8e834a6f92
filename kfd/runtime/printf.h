/*
 * kfd/runtime/printf.h - what kernels print: the device's side and the host's.
 *
 * Three ways lead from a kernel to text, by the kernel's own metadata:
 *
 *  - the ring below: for our compiler.  A record costs the kernel one atomic
 *    add, one comparison and its stores.  The kernel has a hidden argument of
 *    value_kind "hidden_printf_buffer" and name KFD_PRINTF_RING_NAME;
 *  - a linear buffer: what clang makes of OpenCL's printf, the same
 *    value_kind without that name.  Two words, bytes used and bytes in all,
 *    then records of a format number and the arguments.  The kernel takes room
 *    by compare and swap, and prints nothing more when it is full;
 *  - hostcall: what clang makes of HIP's printf; the wave waits for the host
 *    at every step (hostcall.c).
 *
 * Formats stand in the code object's metadata, not in memory.  An entry of
 * the list `amdhsa.printf` is "ID:N:BYTES1:...:BYTESN:FORMAT": a record with
 * number ID (1..65535) has N arguments of so many bytes each, without
 * gaps; FORMAT as in C, with newline as \n and colon as \72.
 * A %s argument is its characters with a NUL, filled up to BYTES.
 *
 * Runtime: every printing packet gets a buffer of kfd_queue_opts.printf_bytes
 * of its own, so text comes out by packets, in their order; a record is never
 * torn, and none is overwritten before it was read.  What a packet has printed
 * is shown when it is known to be complete (kfd_wait() and whatever else looks
 * at the queue); rings are read, and hostcalls answered, also while somebody
 * waits for the queue.  What did not fit is counted and said in the text.
 *
 * The ring.  Positions are dwords since the kernel began, 64 bits, and never
 * wrap; dword `pos` lies at data[pos & mask].  A record is never split:
 * after data[mask] is room for the rest of the last one.  The host keeps
 * everything between what it has read and `limit` zero.  A lane prints so:
 *
 *	n = 1 + dwords of its arguments
 *	pos = atomic_add(&r->head, n)
 *	while (pos + n > r->limit)		device scope, not cached
 *		if (!r->wait) {
 *			atomic_add(&r->dropped, 1)
 *			goto out
 *		}
 *	data = r->data + (pos & r->mask)
 *	data[1..n-1] = the arguments
 *	s_waitcnt_vscnt null, 0			arguments before their mark
 *	data[0] = KFD_PRINTF_WRITTEN | n << 16 | ID
 *   out:
 *
 * Lanes may each do this, or one of them for all (an add of n times the
 * lanes).  A zero dword where the host expects a record is one that is not
 * written yet, or, once the kernel has ended, reserved room that was not used.
 */
#ifndef T0_KFD_PRINTF_H
#define T0_KFD_PRINTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define KFD_PRINTF_RING_NAME "t0_printf_ring"
#define KFD_PRINTF_WRITTEN 0x80000000u
/* What the host fills linear buffers with. */
#define KFD_PRINTF_UNWRITTEN 0xb5c3a1d7u
#define KFD_PRINTF_RECORD_DW 1024u /* at most, its first dword included */

struct kfd_printf_ring {
	uint64_t head;	  /* taken so far: the device adds */
	uint64_t limit;	  /* records must end by here: the host moves it */
	uint32_t mask;	  /* dwords of the ring, a power of two, less 1 */
	uint32_t wait;	  /* not 0: wait for room instead of dropping */
	uint32_t dropped; /* records that found no room: the device adds 1 */
	uint32_t unused[9];
	uint32_t data[];  /* [mask + 1 + KFD_PRINTF_RECORD_DW] */
};

/* ---------------------------------------------------------- printf.c ---- */

/* The formats of a code object. */
struct kfd_formats;
/* Entries that are malformed are left out. */
struct kfd_formats *kfd_formats_new(const char *const *entry, uint32_t n);
void kfd_formats_free(struct kfd_formats *f);
/* The largest record, its number included; 0: there are no formats. */
uint32_t kfd_formats_record_bytes(const struct kfd_formats *f);
/* Bytes of a record of format `id`, its number included; 0: unknown. */
uint32_t kfd_formats_bytes(const struct kfd_formats *f, uint32_t id);

/*
 * Append the text of a record, whose arguments are len bytes at args; false
 * when the number is unknown.  Arguments that are missing or cut off show as
 * "(missing)"; widths and precisions beyond 512 count as 512.  No format and
 * no argument makes it read or write elsewhere.
 */
bool kfd_format_record(const struct kfd_formats *f, uint32_t id,
		       const void *args, size_t len, struct buf *out);
/*
 * The same for arguments as hostcalls pass them: 64 bits each, doubles for
 * every floating type, and strings in place, filled up to 8 bytes.
 */
void kfd_format_words(const char *format, const void *args, size_t len,
		      struct buf *out);

#endif
