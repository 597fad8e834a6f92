/*
 * Dispatch: checks, arguments, packets, and waiting for them.
 */
#include <string.h>

#include "kfd/runtime/print.h"

/*
 * Argument blocks share no cache line of the device (128 bytes), and the most
 * that a type asks for is 128 (double16).
 */
#define ARGS_ALIGN 128u

static uint64_t deadline_of(uint64_t deadline_ns)
{
	return deadline_ns ? deadline_ns : time_mono_ns() + KFD_DEADLINE_NS;
}

static struct slot *slot_of(struct kfd_queue *q, uint64_t id)
{
	return &q->slot[id & (q->opts.ring_packets - 1)];
}

static struct amd_signal *own_signal(struct kfd_queue *q, uint64_t id)
{
	return (struct amd_signal *)q->sigs->pub.cpu +
	       (id & (q->opts.ring_packets - 1));
}

/* ------------------------------------------------------------ checks --- */

static uint32_t at_least_1(uint32_t v)
{
	return v ? v : 1;
}

/* Dimensions in use: a packet must count one that only wg has, too. */
static unsigned dims(const struct kfd_launch *l)
{
	return l->grid[2] > 1 || l->wg[2] > 1 ? 3 :
	       l->grid[1] > 1 || l->wg[1] > 1 ? 2 :
						1;
}

static bool check_shape(const struct kfd_launch *l, struct err *e)
{
	const struct kfd_kernel *k = l->kernel;
	uint64_t items = 1;

	for (int i = 0; i < 3; i++) {
		uint32_t wg = at_least_1(l->wg[i]);
		items *= wg;
		if (wg > 1024 || items > 1024)
			break;
		if (k->reqd_wg[0] && wg != at_least_1(k->reqd_wg[i]))
			return err_set(e, ERR_USAGE,
				       "workgroup %ux%ux%u; the kernel is "
				       "compiled for exactly %ux%ux%u",
				       at_least_1(l->wg[0]),
				       at_least_1(l->wg[1]),
				       at_least_1(l->wg[2]), k->reqd_wg[0],
				       k->reqd_wg[1], k->reqd_wg[2]);
	}
	uint32_t max = k->max_wg && k->max_wg < 1024 ? k->max_wg : 1024;
	if (items > max)
		return err_set(e, ERR_USAGE,
			       "workgroup %ux%ux%u has more "
			       "than the %u work-items that %s allows",
			       at_least_1(l->wg[0]), at_least_1(l->wg[1]),
			       at_least_1(l->wg[2]), max,
			       max < 1024 ? "the kernel" : "the device");
	return true;
}

static bool check_lds(const struct kfd_info *info, const struct kfd_launch *l,
		      struct err *e)
{
	uint64_t lds = (uint64_t)l->kernel->lds_bytes + l->dyn_lds_bytes;

	if (lds > info->node.lds_bytes)
		return err_set(e, ERR_USAGE,
			       "%llu bytes of LDS (%u static, "
			       "%u dynamic); a workgroup has at most %u",
			       (unsigned long long)lds, l->kernel->lds_bytes,
			       l->dyn_lds_bytes, info->node.lds_bytes);
	return true;
}

/* Do all waves of a workgroup fit at once?  They must: barriers. */
static bool check_registers(const struct kfd_info *info,
			    const struct kfd_launch *l, struct err *e)
{
	const struct kfd_kernel *k = l->kernel;
	const uint32_t half = k->wave_size == 64 ? 2 : 1;
	const uint32_t step = info->vgpr_granule / half;
	const uint32_t items = at_least_1(l->wg[0]) * at_least_1(l->wg[1]) *
			       at_least_1(l->wg[2]);
	const uint32_t waves = (items + k->wave_size - 1) / k->wave_size;
	const uint32_t simds = info->node.simd_per_cu * (k->wgp_mode ? 2 : 1);
	const uint32_t per_simd = (waves + simds - 1) / simds;
	const uint32_t vgprs = (k->vgprs + step - 1) / step * step;

	if (per_simd > info->node.max_waves_per_simd ||
	    per_simd * vgprs > info->vgprs_per_simd / half)
		return err_set(e, ERR_USAGE,
			       "a workgroup of %u waves with %u "
			       "VGPRs needs %u on each of %u SIMDs, which "
			       "have %u; use a smaller workgroup",
			       waves, k->vgprs, per_simd * vgprs, simds,
			       info->vgprs_per_simd / half);
	return true;
}

static bool check_args(const struct kfd_launch *l, struct err *e)
{
	const struct kfd_kernel *k = l->kernel;

	if (l->args_bytes != k->explicit_bytes)
		return err_set(e, ERR_USAGE,
			       "%zu bytes of arguments; the "
			       "kernel takes %u",
			       l->args_bytes, k->explicit_bytes);
	if (l->args_bytes && !l->args)
		return err_set(e, ERR_USAGE,
			       "no arguments; the kernel takes "
			       "%u bytes",
			       k->explicit_bytes);
	if (k->dynamic_stack && !l->stack_bytes)
		return err_set(e, ERR_USAGE,
			       "the kernel's stack has no fixed "
			       "size: the launch must give one");
	return true;
}

bool kfd_launch_check(struct kfd_queue *q, const struct kfd_launch *l,
		      struct err *e)
{
	const struct kfd_info *info = &q->dev->info;

	if (!l->kernel)
		return err_set(e, ERR_USAGE, "a launch without a kernel");
	if (check_shape(l, e) && check_lds(info, l, e) &&
	    check_registers(info, l, e) && check_args(l, e))
		return true;
	return err_wrap(e, "kernel '%s'", l->kernel->name);
}

/* ----------------------------------------------------------- waiting --- */

/* The first packet from `id` on that interrupts; `put` when there is none. */
static uint64_t loud_from(struct kfd_queue *q, uint64_t id)
{
	while (id < q->put && !slot_of(q, id)->loud)
		id++;
	return id;
}

/* The same of those that end a chain. */
static uint64_t end_from(struct kfd_queue *q, uint64_t id)
{
	while (id < q->put && !slot_of(q, id)->ends)
		id++;
	return id;
}

static bool wait_slot(struct kfd_queue *q, uint64_t id, uint64_t deadline_ns,
		      struct err *e)
{
	struct amd_signal *sig = slot_of(q, id)->sig;
	struct event other = q->dev->signal_event;

	kfd_flush(q);
	return kfd_event_wait(q->dev, q, sig,
			      sig == own_signal(q, id) ? &q->done_event :
							 &other,
			      q->opts.spin_ns, deadline_ns, e);
}

/* Until the oldest packet, at least, is done; there must be one. */
static bool wait_oldest(struct kfd_queue *q, uint64_t deadline_ns,
			struct err *e)
{
	uint64_t id = loud_from(q, q->done);

	if (id == q->put)
		id = q->put - 1;
	if (!wait_slot(q, id, deadline_ns, e))
		return false;
	kfd_queue_retire(q);
	return true;
}

static void read_timing(struct kfd_queue *q, uint64_t id, struct kfd_timing *t)
{
	const struct slot *s = slot_of(q, id);
	const double hz = kfd_clock_hz(q->dev);

	t->start_ticks = t->end_ticks = t->device_ns = t->start_ns = 0;
	if (s->id != id)
		return; /* the slot has moved on */
	uint64_t start = s->sig->start_ts, end = s->sig->end_ts;
	if (!start || end < start)
		return; /* not given, or the clock was reset in between */
	t->start_ticks = start;
	t->end_ticks = end;
	t->device_ns = (uint64_t)((double)(end - start) * 1e9 / hz);
	/* A clock that cannot be read costs the host time, not the duration. */
	if (!kfd_clock_ns(q->dev, start, &t->start_ns, NULL))
		t->start_ns = 0;
}

/* A quiet packet is waited for through the one that ends its chain. */
static bool wait_quiet(struct kfd_queue *q, uint64_t id, uint64_t deadline_ns,
		       struct err *e)
{
	uint64_t end = end_from(q, id < q->done ? q->done : id);

	if (end == q->put && !kfd_barrier(q, NULL, 0, &end, e))
		return false;
	return wait_slot(q, end, deadline_ns, e);
}

static bool is_over(struct kfd_queue *q, uint64_t ticket)
{
	const struct slot *s = slot_of(q, ticket);

	return ticket < q->seen ||
	       (s->id == ticket && s->loud && signal_done(s->sig));
}

bool kfd_wait(struct kfd_queue *q, uint64_t ticket, uint64_t deadline_ns,
	      struct kfd_timing *t, struct err *e)
{
	if (ticket >= q->put)
		return err_set(e, ERR_USAGE,
			       "packet %llu was never put into "
			       "queue %u",
			       (unsigned long long)ticket, q->number);
	kfd_queue_retire(q);
	if (!is_over(q, ticket)) {
		deadline_ns = deadline_of(deadline_ns);
		if (!kfd_queue_usable(q, e))
			return false;
		if (ticket >= q->done && slot_of(q, ticket)->loud ?
			    !wait_slot(q, ticket, deadline_ns, e) :
			    !wait_quiet(q, ticket, deadline_ns, e))
			return false;
		kfd_queue_retire(q);
	}
	if (t)
		read_timing(q, ticket, t);
	return true;
}

bool kfd_drain(struct kfd_queue *q, uint64_t deadline_ns, struct err *e)
{
	deadline_ns = deadline_of(deadline_ns);
	kfd_queue_retire(q);
	if (q->seen < q->put && !kfd_queue_usable(q, e))
		return false;
	if (q->chained && !kfd_barrier(q, NULL, 0, NULL, e))
		return false;
	while (q->done < q->put)
		if (!wait_oldest(q, deadline_ns, e))
			return false;
	return true;
}

/* --------------------------------------------------------- arguments --- */

static void hidden(const struct kfd_queue *q, const struct kfd_launch *l,
		   const struct co_arg *a, char *at)
{
	const struct kfd_info *info = &q->dev->info;
	const uint32_t grid[3] = { at_least_1(l->grid[0]),
				   at_least_1(l->grid[1]),
				   at_least_1(l->grid[2]) };
	const uint32_t wg[3] = { at_least_1(l->wg[0]), at_least_1(l->wg[1]),
				 at_least_1(l->wg[2]) };
	uint64_t v;
	unsigned i;

	switch (a->kind) {
	case CO_ARG_HIDDEN_BLOCK_COUNT_X:
	case CO_ARG_HIDDEN_BLOCK_COUNT_Y:
	case CO_ARG_HIDDEN_BLOCK_COUNT_Z:
		i = a->kind - CO_ARG_HIDDEN_BLOCK_COUNT_X;
		v = grid[i] / wg[i];
		break;
	case CO_ARG_HIDDEN_GROUP_SIZE_X:
	case CO_ARG_HIDDEN_GROUP_SIZE_Y:
	case CO_ARG_HIDDEN_GROUP_SIZE_Z:
		v = wg[a->kind - CO_ARG_HIDDEN_GROUP_SIZE_X];
		break;
	case CO_ARG_HIDDEN_REMAINDER_X:
	case CO_ARG_HIDDEN_REMAINDER_Y:
	case CO_ARG_HIDDEN_REMAINDER_Z:
		i = a->kind - CO_ARG_HIDDEN_REMAINDER_X;
		v = grid[i] % wg[i];
		break;
	case CO_ARG_HIDDEN_GRID_DIMS:
		v = dims(l);
		break;
	case CO_ARG_HIDDEN_DYNAMIC_LDS_SIZE:
		v = l->dyn_lds_bytes;
		break;
	case CO_ARG_HIDDEN_PRIVATE_BASE:
		v = info->scratch_base >> 32;
		break;
	case CO_ARG_HIDDEN_SHARED_BASE:
		v = info->lds_base >> 32;
		break;
	case CO_ARG_HIDDEN_PRINTF_BUFFER:
		v = q->print_va;
		break;
	case CO_ARG_HIDDEN_HOSTCALL_BUFFER:
		v = q->hostcall_va;
		break;
	case CO_ARG_HIDDEN_QUEUE_PTR:
		v = q->page->pub.va;
		break;
	default:
		return; /* no service behind it: stays 0 */
	}
	memcpy(at, &v, a->size < 8 ? a->size : 8);
}

static void fill_args(struct kfd_queue *q, const struct kfd_launch *l, char *at)
{
	const struct kfd_kernel *k = l->kernel;

	memset(at, 0, k->kernarg_bytes);
	if (l->args_bytes)
		memcpy(at, l->args, l->args_bytes);
	for (uint32_t i = 0; i < k->n_args; i++) {
		const struct co_arg *a = &k->arg[i];
		if (co_arg_is_hidden(a) &&
		    (uint64_t)a->offset + a->size <= k->kernarg_bytes)
			hidden(q, l, a, at + a->offset);
	}
}

/* A block of the argument ring; waits for packets that still hold it. */
static bool take_args(struct kfd_queue *q, const struct kfd_kernel *k,
		      uint64_t deadline_ns, uint64_t *va, struct err *e)
{
	const uint64_t size = q->opts.kernarg_bytes & ~(ARGS_ALIGN - 1);
	const uint64_t need = ALIGN_UP(k->kernarg_bytes, ARGS_ALIGN);

	if (k->kernarg_align > ARGS_ALIGN)
		return err_set(e, ERR_UNSUPPORTED,
			       "arguments aligned to %u "
			       "bytes; at most %u are done",
			       k->kernarg_align, ARGS_ALIGN);
	if (need > size)
		return err_set(e, ERR_USAGE,
			       "%llu bytes of arguments; the "
			       "queue's ring has %llu (kernarg_bytes)",
			       (unsigned long long)need,
			       (unsigned long long)size);
	for (;; deadline_ns = deadline_of(deadline_ns)) {
		if (q->done == q->put) /* empty: start over at the bottom */
			q->args_head = q->args_tail =
				(q->args_head + size - 1) / size * size;
		uint64_t pos = q->args_head % size;
		uint64_t skip = pos + need > size ? size - pos : 0;
		if (q->args_head + skip + need - q->args_tail <= size) {
			*va = q->args->pub.va + (pos + skip) % size;
			q->args_head += skip + need;
			return true;
		}
		if (!wait_oldest(q, deadline_of(deadline_ns), e))
			return err_wrap(e, "waiting for argument space");
	}
}

/* ----------------------------------------------------------- packets --- */

static bool take_slot(struct kfd_queue *q, uint64_t deadline_ns, struct err *e)
{
	kfd_queue_retire(q);
	if (q->put - q->done < q->opts.ring_packets)
		return true;
	deadline_ns = deadline_of(deadline_ns);
	while (q->put - q->done >= q->opts.ring_packets)
		if (!wait_oldest(q, deadline_ns, e))
			return err_wrap(e, "waiting for space in the ring");
	return true;
}

/* Set up the slot's signal; returns the VA for the packet. */
static uint64_t arm(struct kfd_queue *q, const char *what, bool loud,
		    bool ends, struct kfd_signal *done)
{
	struct slot *s = slot_of(q, q->put);
	struct amd_signal *own = own_signal(q, q->put);

	*s = (struct slot){ .id = q->put,
			    .sig = done ? kfd_signal_hw(done) : own,
			    .what = what,
			    .loud = loud,
			    .ends = ends,
			    .args_end = q->args_head };
	if (!done) {
		own->kind = AMD_SIGNAL_USER;
		own->event_mailbox_ptr =
			loud ? kfd_event_mailbox(q->dev, &q->done_event) : 0;
		own->event_id = loud ? q->done_event.id : 0;
		own->start_ts = own->end_ts = 0;
		__atomic_store_n(&own->value, 1, __ATOMIC_RELEASE);
	}
	return (uintptr_t)s->sig;
}

/* Bytes 4..63 first; the header makes the packet the device's. */
static void publish(struct kfd_queue *q, const void *packet)
{
	char *at = (char *)q->ring->pub.cpu +
		   (q->put & (q->opts.ring_packets - 1)) * AQL_PACKET_BYTES;
	uint32_t first;

	memcpy(&first, packet, 4);
	memcpy(at + 4, (const char *)packet + 4, AQL_PACKET_BYTES - 4);
	__atomic_store_n((uint32_t *)(void *)at, first, __ATOMIC_RELEASE);
	q->put++;
	__atomic_store_n(&q->aq->write_dispatch_id, q->put, __ATOMIC_RELEASE);
}

/*
 * A ring full of quiet packets could not be waited for: every quarter of the
 * ring one is not.
 */
static bool is_quiet(const struct kfd_queue *q, const struct kfd_launch *l)
{
	return l->quiet && !l->overlap && !l->done &&
	       (q->put & (q->opts.ring_packets / 4 - 1)) != 0;
}

/*
 * Within a chain it is enough that the device sees what packets before wrote:
 * a fence to the host empties L2, too.
 */
static uint16_t header(struct kfd_queue *q, enum aql_type type, bool barrier,
		       bool quiet)
{
	const bool chained = q->chained;

	q->chained = quiet;
	return AQL_HEADER(type, barrier,
			  chained ? AQL_SCOPE_AGENT : AQL_SCOPE_SYSTEM,
			  quiet ? AQL_SCOPE_AGENT : AQL_SCOPE_SYSTEM);
}

/* Where the kernel prints; waits for packets that hold all the buffers. */
static bool take_print(struct kfd_queue *q, const struct kfd_kernel *k,
		       uint64_t deadline_ns, struct printbuf **out,
		       struct err *e)
{
	*out = NULL;
	q->print_va = q->hostcall_va = 0;
	if (k->hostcall) {
		q->hostcall_va = kfd_hostcall_va(q, e);
		if (!q->hostcall_va)
			return false;
	}
	if (!k->formats)
		return true;
	for (;; deadline_ns = deadline_of(deadline_ns)) {
		if (!kfd_print_take(q, k, out, e))
			return false;
		if (*out)
			break;
		if (!wait_oldest(q, deadline_of(deadline_ns), e))
			return err_wrap(e, "waiting for a printf buffer");
	}
	q->print_va = kfd_print_va(*out);
	return true;
}

static bool send(struct kfd_queue *q, const struct kfd_launch *l,
		 uint64_t deadline_ns, struct err *e)
{
	const struct kfd_kernel *k = l->kernel;
	const uint32_t private_bytes = k->private_bytes + l->stack_bytes;
	struct printbuf *print;
	uint64_t args = 0;

	if ((private_bytes && !kfd_queue_scratch(q, private_bytes, k->wave_size,
						 deadline_ns, e)) ||
	    !take_slot(q, deadline_ns, e) ||
	    !take_print(q, k, deadline_ns, &print, e))
		return false;
	if (k->kernarg_bytes && !take_args(q, k, deadline_ns, &args, e)) {
		kfd_print_drop(print);
		return false;
	}
	if (k->kernarg_bytes)
		fill_args(q, l, (char *)(uintptr_t)args);
	const bool quiet = is_quiet(q, l);
	struct aql_dispatch p = {
		.header = header(q, AQL_KERNEL_DISPATCH, !l->overlap, quiet),
		.setup = (uint16_t)dims(l),
		.private_segment_size = private_bytes,
		.group_segment_size = k->lds_bytes + l->dyn_lds_bytes,
		.kernel_object = k->object_va,
		.kernarg_address = args,
	};
	for (int i = 0; i < 3; i++) {
		p.workgroup_size[i] = (uint16_t)at_least_1(l->wg[i]);
		p.grid_size[i] = at_least_1(l->grid[i]);
	}
	p.completion_signal = arm(q, k->name, !quiet, !quiet && !l->overlap,
				  l->done);
	slot_of(q, q->put)->print = print;
	publish(q, &p);
	return true;
}

bool kfd_put(struct kfd_queue *q, const struct kfd_launch *l, uint64_t *ticket,
	     struct err *e)
{
	if (!kfd_queue_usable(q, e) || !kfd_launch_check(q, l, e))
		return false;
	/* The clock is read only by those who wait: it costs as much as all
	 * the rest. */
	if (!send(q, l, l->deadline_ns, e))
		return err_wrap(e, "kernel '%s'", l->kernel->name);
	if (ticket)
		*ticket = q->put - 1;
	return true;
}

void kfd_flush(struct kfd_queue *q)
{
	if (q->rung == q->put)
		return;
	q->rung = q->put;
	/* The doorbell takes the index of the last packet, not the count. */
	q->dev->d->ring(q->dev->d, q->doorbell, q->put - 1);
}

bool kfd_submit(struct kfd_queue *q, const struct kfd_launch *l,
		uint64_t *ticket, struct err *e)
{
	if (!kfd_put(q, l, ticket, e))
		return false;
	kfd_flush(q);
	return true;
}

bool kfd_run(struct kfd_queue *q, const struct kfd_launch *l,
	     struct kfd_timing *t, struct err *e)
{
	const uint64_t start = time_mono_ns();
	struct kfd_launch timed = *l;
	uint64_t ticket;

	timed.deadline_ns = deadline_of(l->deadline_ns);
	if (!kfd_submit(q, &timed, &ticket, e) ||
	    !kfd_wait(q, ticket, timed.deadline_ns, t, e))
		return false;
	if (t)
		t->host_ns = time_mono_ns() - start;
	return true;
}

bool kfd_barrier(struct kfd_queue *q, struct kfd_signal *const *dep, int n_deps,
		 uint64_t *ticket, struct err *e)
{
	struct aql_barrier p = { 0 };

	if (n_deps < 0 || n_deps > 5)
		return err_set(e, ERR_USAGE,
			       "a barrier on %d signals; wanted "
			       "at most 5",
			       n_deps);
	if (!kfd_queue_usable(q, e) || !take_slot(q, 0, e))
		return false;
	for (int i = 0; i < n_deps; i++)
		p.dep_signal[i] = dep[i]->va;
	p.header = header(q, AQL_BARRIER_AND, true, false);
	p.completion_signal = arm(q, "(barrier)", true, true, NULL);
	publish(q, &p);
	kfd_flush(q);
	if (ticket)
		*ticket = q->put - 1;
	return true;
}
