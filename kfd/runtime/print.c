/*
 * kfd/runtime/print.c - printf buffers: from what a kernel wrote to the
 * program's text.
 *
 * A printing packet has a buffer of its own from when it is put until it is
 * retired.  Its contents were written by a kernel: numbers from there are
 * checked before they are used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/service.h"

#define HEAD_BYTES 8u /* of a linear buffer: used, size */

static char *host_view(const struct printbuf *b)
{
	return b->mem->pub.cpu;
}

static struct kfd_printf_ring *ring_of(const struct printbuf *b)
{
	return (void *)host_view(b);
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

static void flush_text(struct kfd_queue *q)
{
	struct buf *t = &q->service->text;

	kfd_print_text(q, t->data, t->len);
	buf_reset(t);
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
static void fill_words(void *at, uint32_t word, size_t n)
{
	uint32_t *dw = at;

	for (size_t i = 0; i < n / 4; i++)
		dw[i] = word;
}

/*
 * Rings are full of zeros, linear buffers of KFD_PRINTF_UNWRITTEN.  A
 * used buffer is left so, after its head.
 */
static void start_buffer(struct kfd_queue *q, struct printbuf *b,
			 const struct kfd_kernel *k)
{
	if (!b->filled || b->ring != k->printf_ring)
		fill_words(host_view(b),
			   k->printf_ring ? 0 : KFD_PRINTF_UNWRITTEN,
			   b->mem->bytes);
	b->filled = b->busy = true;
	b->ring = k->printf_ring;
	b->kernel = k;
	b->read = 0;
	if (k->printf_ring) {
		const uint32_t n = ring_dwords(b->mem->bytes);

		*ring_of(b) = (struct kfd_printf_ring){
			.limit = n,
			.mask = n - 1,
			.wait = q->opts.printf_wait,
		};
	} else {
		const uint32_t head[2] = { 0, (uint32_t)b->mem->bytes -
						      HEAD_BYTES };

		memcpy(host_view(b), head, sizeof(head));
	}
}

bool kfd_print_take(struct kfd_queue *q, const struct kfd_kernel *k,
		    struct printbuf **out, struct err *e)
{
	struct service *p = q->service;
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
		b->filled = false;
	}
	start_buffer(q, b, k);
	*out = b;
	return true;
}

/* ----------------------------------------------------------- records ---- */

static void note_damage(struct kfd_queue *q, const struct printbuf *b)
{
	struct service *p = q->service;

	if (!p->stats.damaged++)
		buf_printf(&p->text, "[printf of kernel '%s': the buffer is "
			   "damaged]\n", b->kernel->name);
}

static void note_loss(struct kfd_queue *q, const struct printbuf *b, uint64_t n)
{
	struct service *p = q->service;

	p->stats.dropped += n;
	buf_printf(&p->text, "[printf of kernel '%s': %s%llu record%s lost, as "
		   "the buffer of %llu bytes was full]\n", b->kernel->name,
		   b->kernel->printf_ring ? "" : "at least ",
		   (unsigned long long)n, n == 1 ? "" : "s",
		   (unsigned long long)b->mem->bytes);
}

static void take_record(struct kfd_queue *q, const struct printbuf *b,
			uint32_t id, const void *args, size_t len)
{
	if (kfd_format_record(b->kernel->formats, id, args, len,
			      &q->service->text))
		q->service->stats.records++;
	else
		note_damage(q, b);
	if (q->service->text.len > 65536)
		flush_text(q);
}

/* A whole linear buffer: its kernel has ended. */
static void drain_linear(struct kfd_queue *q, struct printbuf *b)
{
	const struct kfd_formats *f = b->kernel->formats;
	const uint32_t cap = (uint32_t)b->mem->bytes - HEAD_BYTES;
	uint32_t used, at = 0, id, n;
	char *data = host_view(b) + HEAD_BYTES;

	memcpy(&used, host_view(b), 4);
	if (used > cap) {
		note_damage(q, b);
		used = cap;
	}
	for (; used - at >= 4; at += n) {
		memcpy(&id, data + at, 4);
		n = kfd_formats_bytes(f, id);
		if (!n || n > used - at) {
			note_damage(q, b);
			break;
		}
		take_record(q, b, id, data + at + 4, n - 4);
	}
	/* A record that finds no room leaves no trace. */
	if (cap - HEAD_BYTES - used < kfd_formats_record_bytes(f))
		note_loss(q, b, 1);
	fill_words(data, KFD_PRINTF_UNWRITTEN, used);
}

/*
 * What of a ring can be read.  While its kernel runs, up to the first record
 * that is not written; once it has ended, all.  True: there was something.
 */
static bool drain_ring(struct kfd_queue *q, struct printbuf *b, bool ended)
{
	struct kfd_printf_ring *r = ring_of(b);
	const uint64_t size = ring_dwords(b->mem->bytes);
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
	const uint64_t before = b->read;

	/* Nothing was ever written past the limit. */
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
				note_damage(q, b);
			*at = 0;
			b->read++;
			continue;
		}
		if (!n || n > KFD_PRINTF_RECORD_DW || n > head - b->read) {
			note_damage(q, b);
			*at = 0;
			b->read++;
			continue;
		}
		take_record(q, b, word & 0xffff, at + 1, 4 * (n - 1));
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
		if (ring_of(b)->dropped)
			note_loss(q, b, ring_of(b)->dropped);
		/* What a broken kernel may have left anywhere. */
		if (q->service->stats.damaged)
			memset(host_view(b), 0, b->mem->bytes);
	} else {
		drain_linear(q, b);
	}
	flush_text(q);
	b->busy = false;
}

bool kfd_print_poll(struct kfd_queue *q, struct printbuf *b)
{
	const bool any = drain_ring(q, b, false);

	flush_text(q);
	return any;
}
