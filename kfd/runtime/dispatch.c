/*
 * kfd/runtime/dispatch.c - launches: checks, arguments, and their packets.
 */
#include <string.h>

#include "isa/launch/launch.h"
#include "kfd/runtime/runtime.h"

/*
 * Argument blocks share no cache line of the device (128 bytes), and the most
 * that a type asks for is 128 (double16).
 */
#define ARGS_ALIGN 128u

/* ------------------------------------------------------------ checks --- */

static uint32_t at_least_1(uint32_t v)
{
	return v ? v : 1;
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

/* --------------------------------------------------------- arguments --- */

static void fill_args(struct kfd_queue *q, const struct kfd_launch *l, char *at)
{
	const struct kfd_kernel *k = l->kernel;
	const struct launch_dispatch d = {
		.grid = { l->grid[0], l->grid[1], l->grid[2] },
		.block = { l->wg[0], l->wg[1], l->wg[2] },
		.lds_bytes = l->dyn_lds_bytes,
		.print_va = q->print_va,
		.hostcall_va = q->hostcall_va,
		.queue_va = q->page->pub.va,
		.lds_base = q->dev->info.lds_base,
		.scratch_base = q->dev->info.scratch_base,
	};

	memset(at, 0, k->kernarg_bytes);
	if (l->args_bytes)
		memcpy(at, l->args, l->args_bytes);
	launch_hidden(&d, k->arg, k->n_args, at, k->kernarg_bytes);
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
	for (;; deadline_ns = kfd_deadline(deadline_ns)) {
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
		if (!kfd_ring_wait_oldest(q, kfd_deadline(deadline_ns), e))
			return err_wrap(e, "waiting for argument space");
	}
}

/* ----------------------------------------------------------- packets --- */

/*
 * A ring full of quiet packets could not be waited for: every quarter of the
 * ring one is not.
 */
static bool is_quiet(const struct kfd_queue *q, const struct kfd_launch *l)
{
	return l->quiet && !l->overlap && !l->done &&
	       (q->put & (q->opts.ring_packets / 4 - 1)) != 0;
}

static bool send_packet(struct kfd_queue *q, const struct kfd_launch *l,
			uint64_t deadline_ns, struct err *e)
{
	const struct kfd_kernel *k = l->kernel;
	const uint32_t private_bytes = k->private_bytes + l->stack_bytes;
	struct printbuf *print;
	uint64_t args = 0;

	if ((private_bytes && !kfd_queue_scratch(q, private_bytes, k->wave_size,
						 deadline_ns, e)) ||
	    !kfd_ring_reserve(q, deadline_ns, e) ||
	    !kfd_ring_take_print(q, k, deadline_ns, &print, e))
		return false;
	if (k->kernarg_bytes && !take_args(q, k, deadline_ns, &args, e)) {
		kfd_ring_drop_print(print);
		return false;
	}
	if (k->kernarg_bytes)
		fill_args(q, l, (char *)(uintptr_t)args);
	const bool quiet = is_quiet(q, l);
	struct aql_dispatch p = {
		.header = kfd_ring_header(q, AQL_KERNEL_DISPATCH, !l->overlap,
					  quiet),
		.setup = (uint16_t)launch_dimensions(l->grid, l->wg),
		.private_segment_size = private_bytes,
		.group_segment_size = k->lds_bytes + l->dyn_lds_bytes,
		.kernel_object = k->object_va,
		.kernarg_address = args,
	};
	for (int i = 0; i < 3; i++) {
		p.workgroup_size[i] = (uint16_t)at_least_1(l->wg[i]);
		p.grid_size[i] = at_least_1(l->grid[i]);
	}
	p.completion_signal = kfd_ring_arm(q, k->name, !quiet,
					   !quiet && !l->overlap, l->done);
	slot_of(q, q->put)->print = print;
	kfd_ring_publish(q, &p);
	return true;
}

bool kfd_put(struct kfd_queue *q, const struct kfd_launch *l, uint64_t *ticket,
	     struct err *e)
{
	if (!kfd_queue_usable(q, e) || !kfd_launch_check(q, l, e))
		return false;
	/* The clock is read only by those who wait: it costs as much as all
	 * the rest. */
	if (!send_packet(q, l, l->deadline_ns, e))
		return err_wrap(e, "kernel '%s'", l->kernel->name);
	if (ticket)
		*ticket = q->put - 1;
	return true;
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

	timed.deadline_ns = kfd_deadline(l->deadline_ns);
	if (!kfd_submit(q, &timed, &ticket, e) ||
	    !kfd_wait(q, ticket, timed.deadline_ns, t, e))
		return false;
	if (t)
		t->host_ns = time_mono_ns() - start;
	return true;
}
