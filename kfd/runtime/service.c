/*
 * kfd/runtime/service.c - what running kernels ask of the host: the queue's
 * view.
 */
#include <stdlib.h>

#include "kfd/runtime/service.h"

bool kfd_service_take(struct kfd_queue *q, const struct kfd_kernel *k,
		      struct printbuf **out, bool *busy, struct err *e)
{
	*out = NULL;
	*busy = false;
	q->print_va = q->hostcall_va = 0;
	if (!k->hostcall && !k->formats)
		return true;
	if (!q->service)
		q->service = xcalloc(1, sizeof(*q->service));
	if (k->hostcall) {
		q->hostcall_va = kfd_hostcall_va(q, e);
		if (!q->hostcall_va)
			return false;
	}
	if (!k->formats)
		return true;
	if (!kfd_print_take(q, k, out, e))
		return false;
	*busy = !*out;
	if (*out)
		q->print_va = (*out)->mem->pub.va;
	return true;
}

void kfd_service_drop(struct printbuf *b)
{
	if (b)
		b->busy = false;
}

void kfd_service_end(struct kfd_queue *q, struct printbuf *b)
{
	kfd_print_end(q, b);
	b->busy = false;
}

enum service_poll kfd_service_poll(struct kfd_queue *q)
{
	enum service_poll any = SERVICE_IDLE;
	const struct slot *s;

	if (!q->service)
		return any;
	/* Only the oldest packet's: text comes by packets. */
	s = q->done < q->put ? slot_of(q, q->done) : NULL;
	if (s && s->print && s->print->kernel->printf_ring)
		any = kfd_print_poll(q, s->print) ? SERVICE_MORE : SERVICE_SOON;
	if (q->service->hostcall && kfd_hostcall_poll(q))
		any = SERVICE_MORE;
	else if (q->service->hostcall && !any)
		any = SERVICE_SOON;
	return any;
}

void kfd_service_fini(struct kfd_queue *q)
{
	struct service *p = q->service;

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
	q->service = NULL;
}

void kfd_queue_print_stats(const struct kfd_queue *q,
			   struct kfd_print_stats *out)
{
	*out = q->service ? q->service->stats : (struct kfd_print_stats){ 0 };
}
