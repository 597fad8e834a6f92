/*
 * kfd/runtime/hostcall.c - hostcalls: how HIP's printf asks the host (ockl of
 * ROCm 5.2 and later).
 *
 * A wave pops a packet off the stack of free ones, fills a header and 8 words
 * for each lane, pushes it onto the stack of ready ones, rings a signal, and
 * waits until the host has cleared bit 0 of the header's control word; then it
 * reads the answer and gives the packet back.  There are as many packets as
 * the device has waves, as the device does not wait for a free one.
 *
 * Service 2 is printf.  Word 0 of a lane is a descriptor: bit 0 begins a
 * message, bit 1 ends it, bits 7:5 count the words that follow, bits 63:8 are
 * the message's number, which the host gives when it begins.  The words of all
 * parts together are: a word of flags (bit 0: to stderr), the format as a
 * string, the arguments (kfd_format_words()).  The answer to the last part is
 * the number of characters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "kfd/runtime/service.h"

#define SERVICE_PRINTF 2u
#define CONTROL_READY  1u
#define LANES 64
#define MESSAGE_MAX (1u << 20) /* bytes */
#define MESSAGES_MAX (1u << 20) /* at a time */
#define OPEN_MAX (256u << 20)	/* bytes of all that are not complete */

enum descriptor { DESC_BEGIN = 1, DESC_END = 2 };
#define DESC_LEN(d) ((unsigned)((d) >> 5 & 7))
#define DESC_ID_SHIFT 8

struct hc_header {
	uint64_t next, active;
	uint32_t service, control;
};
struct hc_payload {
	uint64_t lane[LANES][8];
};
struct hc_buffer { /* as the device library has it */
	uint64_t headers, payloads, bell;
	uint64_t free_stack, ready_stack;
	uint64_t index_mask;
};

struct message {
	struct buf words;
	bool open;
};

struct hostcall {
	struct mem *mem;
	uint64_t n_packets; /* a power of two */
	struct hc_buffer *b;
	struct hc_header *header;
	struct hc_payload *payload;
	struct kfd_signal *bell;
	VEC(struct message) message; /* by the descriptor's number */
	VEC(uint32_t) unused;	     /* numbers of those that are not open */
	size_t open_bytes;
};

/* -------------------------------------------------------------- begin ---- */

static uint64_t count_packets(const struct kfd_node *n)
{
	const uint64_t waves = (uint64_t)n->simd_count * n->max_waves_per_simd;
	uint64_t p = 64;

	while (p < waves)
		p *= 2;
	return p;
}

/* Pointers are an index and, above it, a tag that is never 0. */
static void link_packets(struct hostcall *h)
{
	const uint64_t tag = h->n_packets;

	h->header[0].next = 0;
	for (uint64_t i = 1; i < h->n_packets; i++)
		h->header[i].next = tag | (i - 1);
	h->b->free_stack = tag | (h->n_packets - 1);
	h->b->index_mask = h->n_packets - 1;
}

static bool make_buffer(struct kfd_queue *q, struct hostcall *h, struct err *e)
{
	const uint64_t n = count_packets(&q->dev->info.node);
	struct amd_signal *bell;
	char *at;

	h->n_packets = n;
	h->mem = kfd_mem_new(q->dev, MEM_FLAGS_GTT,
			     4096 + n * (sizeof(struct hc_header) +
					 sizeof(struct hc_payload)),
			     "hostcall", e);
	if (!h->mem || !kfd_signal_new(q->dev, 0, &h->bell, e))
		return false;
	at = h->mem->pub.cpu;
	h->b = (void *)at;
	h->header = (void *)(at + 4096);
	h->payload = (void *)(at + 4096 + n * sizeof(struct hc_header));
	*h->b = (struct hc_buffer){ (uintptr_t)h->header,
				    (uintptr_t)h->payload, h->bell->va, 0, 0,
				    0 };
	link_packets(h);
	/* Ringing it wakes the thread that waits for the queue. */
	bell = kfd_signal_hw(h->bell);
	bell->event_mailbox_ptr = kfd_event_mailbox(q->dev, &q->done_event);
	bell->event_id = q->done_event.id;
	return true;
}

uint64_t kfd_hostcall_va(struct kfd_queue *q, struct err *e)
{
	struct service *p = q->service;

	if (!p->hostcall) {
		p->hostcall = xcalloc(1, sizeof(*p->hostcall));
		if (!make_buffer(q, p->hostcall, e)) {
			kfd_hostcall_fini(q);
			return 0;
		}
	}
	return p->hostcall->mem->pub.va;
}

void kfd_hostcall_fini(struct kfd_queue *q)
{
	struct hostcall *h = q->service->hostcall;

	if (!h)
		return;
	kfd_signal_free(h->bell);
	kfd_mem_delete(q->dev, h->mem, NULL);
	for (size_t i = 0; i < h->message.n; i++)
		buf_fini(&h->message.v[i].words);
	vec_fini(&h->message);
	vec_fini(&h->unused);
	free(h);
	q->service->hostcall = NULL;
}

/* ----------------------------------------------------------- messages ---- */

/* What no sound kernel sends; said once. */
static void note_damage(struct kfd_queue *q, const char *what, uint64_t got)
{
	char text[160];
	int n;

	if (q->service->stats.damaged++)
		return;
	n = snprintf(text, sizeof(text), "[hostcall of a kernel: %s (%llu); "
		     "it is left out, and so are others like it]\n", what,
		     (unsigned long long)got);
	kfd_print_text(q, text, (size_t)n);
}

/* A number for a new message; message.n when there are too many. */
static size_t open_message(struct hostcall *h)
{
	size_t i = h->message.n;

	if (h->unused.n)
		i = h->unused.v[--h->unused.n];
	else if (i < MESSAGES_MAX)
		vec_add(&h->message);
	if (i < h->message.n)
		h->message.v[i].open = true;
	return i;
}

static void close_message(struct hostcall *h, size_t i)
{
	struct message *m = &h->message.v[i];

	h->open_bytes -= m->words.len;
	m->open = false;
	/* What was long is not kept. */
	if (m->words.len > 4096)
		buf_fini(&m->words);
	else
		buf_reset(&m->words);
	vec_push(&h->unused, (uint32_t)i);
}

/* Flags, format, arguments to text: its length. */
static uint64_t print_message(struct kfd_queue *q, const struct buf *m)
{
	struct service *p = q->service;
	const char *format = m->data + 8;
	uint64_t flags;
	size_t len;

	len = m->len > 8 ? strnlen(format, m->len - 8) : 0;
	if (m->len <= 8 || len == m->len - 8) {
		note_damage(q, "a message of so many bytes has no format that "
			       "ends", m->len);
		return 0;
	}
	memcpy(&flags, m->data, 8);
	len = (len + 8) / 8 * 8;
	if (len > m->len - 8)
		len = m->len - 8;
	buf_reset(&p->text);
	kfd_format_words(format, format + len, m->len - 8 - len, &p->text);
	len = p->text.len;
	if (flags & 1)
		fwrite(p->text.data ? p->text.data : "", 1, len, stderr);
	else
		kfd_print_text(q, p->text.data, len);
	buf_reset(&p->text);
	p->stats.records++;
	return len;
}

static void take_part(struct kfd_queue *q, uint64_t w[8])
{
	struct hostcall *h = q->service->hostcall;
	const uint64_t desc = w[0];
	size_t id = (size_t)(desc >> DESC_ID_SHIFT);

	if (desc & DESC_BEGIN)
		id = open_message(h);
	if (id >= h->message.n || !h->message.v[id].open) {
		note_damage(q, "there is no such message, or no room for one",
			    id);
		return;
	}
	if (h->message.v[id].words.len < MESSAGE_MAX &&
	    h->open_bytes < OPEN_MAX) {
		buf_add(&h->message.v[id].words, &w[1], 8 * DESC_LEN(desc));
		h->open_bytes += 8 * DESC_LEN(desc);
	}
	if (desc & DESC_END) {
		w[0] = print_message(q, &h->message.v[id].words);
		close_message(h, id);
	} else {
		/* The lane continues with this, without the begin bit. */
		w[0] = (desc & 0xfe) | (uint64_t)id << DESC_ID_SHIFT;
	}
}

/* ------------------------------------------------------------ service ---- */

static void answer_packet(struct kfd_queue *q, struct hc_header *head,
			  struct hc_payload *pay)
{
	if (head->service != SERVICE_PRINTF) {
		note_damage(q, "a service that there is not; printf is 2",
			    head->service);
		memset(pay, 0, sizeof(*pay));
		return;
	}
	for (int i = 0; i < LANES; i++)
		if (head->active >> i & 1)
			take_part(q, pay->lane[i]);
}

bool kfd_hostcall_poll(struct kfd_queue *q)
{
	struct hostcall *h = q->service->hostcall;
	uint64_t at = __atomic_exchange_n(&h->b->ready_stack, 0,
					  __ATOMIC_ACQUIRE);
	uint64_t left = h->n_packets;

	/* A broken kernel may have tied the stack into a ring. */
	for (; at && left; left--) {
		const uint64_t i = at & (h->n_packets - 1);
		struct hc_header *head = &h->header[i];

		/* Once it is answered, the packet is the wave's again. */
		at = __atomic_load_n(&head->next, __ATOMIC_RELAXED);
		answer_packet(q, head, &h->payload[i]);
		__atomic_and_fetch(&head->control, ~CONTROL_READY,
				   __ATOMIC_RELEASE);
	}
	return left < h->n_packets;
}
