/*
 * The buffers that kernels print into, and their way to the program's text.
 *
 * A printing packet has a buffer of its own from when it is put until it is
 * retired.  Everything in it was written by a kernel: numbers from there are
 * compared with what can be before they are used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/print.h"

#define HEAD_BYTES 8u /* of a linear buffer: used, size */

static char *cpu(const struct printbuf *b)
{
	return b->mem->pub.cpu;
}

static struct kfd_printf_ring *ring(const struct printbuf *b)
{
	return (void *)cpu(b);
}

void kfd_print_text(struct kfd_queue *q, const char *text, size_t len)
{
	if (!len)
		return;
	if (q->opts.print)
		q->opts.print(q->opts.print_ctx, text, len);
	else
		fwrite(text, 1, len, stdout);
}

static void flush(struct kfd_queue *q)
{
	struct buf *t = &q->printer->text;

	kfd_print_text(q, t->data, t->len);
	buf_reset(t);
}

struct printer *kfd_printer(struct kfd_queue *q)
{
	if (!q->printer)
		q->printer = xcalloc(1, sizeof(*q->printer));
	return q->printer;
}

/* ------------------------------------------------------------ begin ---- */

/* Dwords of a ring in a buffer of so many bytes. */
static uint32_t ring_dwords(size_t bytes)
{
	const size_t room = (bytes - sizeof(struct kfd_printf_ring)) / 4 -
			    KFD_PRINTF_RECORD_DW;
	uint32_t n = 1;

	while (2u * n <= room && n < 1u << 28)
		n *= 2;
	return n;
}

/* Of n bytes, a multiple of 4. */
static void fill(void *at, uint32_t word, size_t n)
{
	uint32_t *dw = at;

	for (size_t i = 0; i < n / 4; i++)
		dw[i] = word;
}

/*
 * Rings are full of zeros, linear buffers of KFD_PRINTF_UNWRITTEN.  Whoever
 * has used a buffer leaves it so, behind the head.
 */
static void begin(struct kfd_queue *q, struct printbuf *b,
		  const struct kfd_kernel *k)
{
	if (!b->kernel || b->kernel->printf_ring != k->printf_ring)
		fill(cpu(b), k->printf_ring ? 0 : KFD_PRINTF_UNWRITTEN,
		     b->mem->bytes);
	b->busy = true;
	b->kernel = k;
	b->read = 0;
	if (k->printf_ring) {
		const uint32_t n = ring_dwords(b->mem->bytes);

		*ring(b) = (struct kfd_printf_ring){
			.limit = n,
			.mask = n - 1,
			.wait = q->opts.printf_wait,
		};
	} else {
		const uint32_t head[2] = { 0, (uint32_t)b->mem->bytes -
						      HEAD_BYTES };

		memcpy(cpu(b), head, sizeof(head));
	}
}

bool kfd_print_take(struct kfd_queue *q, const struct kfd_kernel *k,
		    struct printbuf **out, struct err *e)
{
	struct printer *p = kfd_printer(q);
	struct printbuf *b = p->b;

	*out = NULL;
	while (b < p->b + PRINT_BUFFERS && b->busy)
		b++;
	if (b == p->b + PRINT_BUFFERS)
		return true;
	if (!b->mem) {
		b->mem = kfd_mem_new(q->dev, MEM_FLAGS_GTT,
				     q->opts.printf_bytes, "printf", e);
		if (!b->mem)
			return false;
		b->kernel = NULL;
	}
	begin(q, b, k);
	*out = b;
	return true;
}

uint64_t kfd_print_va(const struct printbuf *b)
{
	return b->mem->pub.va;
}

/* ----------------------------------------------------------- records ---- */

static void damaged(struct kfd_queue *q, const struct printbuf *b)
{
	struct printer *p = q->printer;

	if (!p->stats.damaged++)
		buf_printf(&p->text, "[printf of kernel '%s': the buffer is "
			   "damaged]\n", b->kernel->name);
}

static void lost(struct kfd_queue *q, const struct printbuf *b, uint64_t n)
{
	struct printer *p = q->printer;

	p->stats.dropped += n;
	buf_printf(&p->text, "[printf of kernel '%s': %s%llu record%s lost, as "
		   "the buffer of %llu bytes was full]\n", b->kernel->name,
		   b->kernel->printf_ring ? "" : "at least ",
		   (unsigned long long)n, n == 1 ? "" : "s",
		   (unsigned long long)b->mem->bytes);
}

static void record(struct kfd_queue *q, const struct printbuf *b, uint32_t id,
		   const void *args, size_t len)
{
	if (kfd_format_record(b->kernel->formats, id, args, len,
			      &q->printer->text))
		q->printer->stats.records++;
	else
		damaged(q, b);
	if (q->printer->text.len > 65536)
		flush(q);
}

/* A whole linear buffer: its kernel has ended. */
static void drain_linear(struct kfd_queue *q, struct printbuf *b)
{
	const struct kfd_formats *f = b->kernel->formats;
	const uint32_t cap = (uint32_t)b->mem->bytes - HEAD_BYTES;
	uint32_t used, at = 0, id, n;
	char *data = cpu(b) + HEAD_BYTES;

	memcpy(&used, cpu(b), 4);
	if (used > cap) {
		damaged(q, b);
		used = cap;
	}
	for (; used - at >= 4; at += n) {
		memcpy(&id, data + at, 4);
		n = kfd_formats_bytes(f, id);
		if (!n || n > used - at) {
			damaged(q, b);
			break;
		}
		record(q, b, id, data + at + 4, n - 4);
	}
	/* Whoever finds no room goes without a trace. */
	if (cap - HEAD_BYTES - used < kfd_formats_record_bytes(f))
		lost(q, b, 1);
	fill(data, KFD_PRINTF_UNWRITTEN, used);
}

/*
 * What of a ring can be read.  While its kernel runs, up to the first record
 * that is not written; once it has ended, all.  True: there was something.
 */
static bool drain_ring(struct kfd_queue *q, struct printbuf *b, bool ended)
{
	struct kfd_printf_ring *r = ring(b);
	const uint64_t size = ring_dwords(b->mem->bytes);
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
	const uint64_t before = b->read;

	/* Nothing was ever written behind the limit. */
	if (head > before + size)
		head = before + size;
	while (b->read < head) {
		uint32_t *at = &r->data[b->read & (size - 1)];
		const uint32_t word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		const uint32_t n = word >> 16 & 0x7fff;

		if (!(word & KFD_PRINTF_WRITTEN)) {
			if (!ended)
				break;
			if (word)
				damaged(q, b);
			*at = 0;
			b->read++;
			continue;
		}
		if (!n || n > KFD_PRINTF_RECORD_DW || n > head - b->read) {
			damaged(q, b);
			*at = 0;
			b->read++;
			continue;
		}
		record(q, b, word & 0xffff, at + 1, 4 * (n - 1));
		memset(at, 0, 4 * n);
		b->read += n;
	}
	if (b->read != before)
		__atomic_store_n(&r->limit, b->read + size, __ATOMIC_RELEASE);
	return b->read != before;
}

void kfd_print_end(struct kfd_queue *q, struct printbuf *b)
{
	if (b->kernel->printf_ring) {
		drain_ring(q, b, true);
		if (ring(b)->dropped)
			lost(q, b, ring(b)->dropped);
		/* What a broken kernel may have left anywhere. */
		if (q->printer->stats.damaged)
			memset(cpu(b), 0, b->mem->bytes);
	} else {
		drain_linear(q, b);
	}
	flush(q);
	b->busy = false;
}

void kfd_print_drop(struct printbuf *b)
{
	if (b)
		b->busy = false;
}

enum print_poll kfd_print_poll(struct kfd_queue *q)
{
	struct printer *p = q->printer;
	enum print_poll any = PRINT_NONE;

	if (!p)
		return any;
	/* Only the oldest packet's: text comes by packets. */
	if (q->done < q->put) {
		struct slot *s = &q->slot[q->done & (q->opts.ring_packets - 1)];

		if (s->print && s->print->kernel->printf_ring) {
			any = drain_ring(q, s->print, false) ? PRINT_MORE :
							       PRINT_MAYBE;
			flush(q);
		}
	}
	if (p->hostcall && kfd_hostcall_poll(q))
		any = PRINT_MORE;
	else if (p->hostcall && !any)
		any = PRINT_MAYBE;
	return any;
}

/* -------------------------------------------------------------- end ---- */

void kfd_print_fini(struct kfd_queue *q)
{
	struct printer *p = q->printer;

	if (!p)
		return;
	for (int i = 0; i < PRINT_BUFFERS; i++) {
		if (p->b[i].busy)
			kfd_print_end(q, &p->b[i]);
		kfd_mem_delete(q->dev, p->b[i].mem, NULL);
	}
	kfd_hostcall_fini(q);
	buf_fini(&p->text);
	free(p);
	q->printer = NULL;
}

void kfd_queue_print_stats(const struct kfd_queue *q,
			   struct kfd_print_stats *out)
{
	*out = q->printer ? q->printer->stats : (struct kfd_print_stats){ 0 };
}
