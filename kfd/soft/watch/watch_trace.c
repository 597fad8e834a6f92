/*
 * kfd/soft/watch/watch_trace.c - from watched waves to a trace file
 * (isa/trace/trace.h).
 */
#include <stdio.h>
#include <string.h>

#include "kfd/soft/watch/watch_int.h"

#define CODE_MAX (1u << 20) /* of code that no code object describes */

/* The code that the dispatch may execute: its object's, or what is mapped. */
static void find_code(const struct soft_watch *t, const struct soft_launch *l,
		      struct trace_dispatch *d)
{
	const struct watch_object *o = watch_object_at(t, l->entry);
	struct soft_range r;

	d->code_va = l->entry;
	if (!l->env.find(l->env.ctx, l->entry, &r))
		return;
	d->code = r.host + (l->entry - r.va);
	d->code_bytes = r.size_bytes - (l->entry - r.va);
	if (o && o->is_code && o->va >= r.va) {
		d->code_va = o->va;
		d->code = r.host + (o->va - r.va);
		d->code_bytes = o->size_bytes;
	} else if (d->code_bytes > CODE_MAX) {
		d->code_bytes = CODE_MAX;
	}
}

void watch_trace_dispatch(struct soft_watch *t, const struct soft_launch *l)
{
	const char *name = watch_kernel(t, l->packet.kernel_object);
	struct trace_dispatch d = {
		.number = t->n_dispatches,
		.entry_va = l->entry,
		.wave_size = l->wave_size,
		.lds_bytes = l->packet.group_segment_size,
		.scratch_bytes = l->packet.private_segment_size,
		.vgprs = l->n_vgprs,
	};

	snprintf(d.kernel, sizeof(d.kernel), "%s", name ? name : "");
	for (int i = 0; i < 3; i++) {
		d.n_groups[i] = l->n_groups[i];
		d.group_size[i] = l->packet.workgroup_size[i];
	}
	find_code(t, l, &d);
	trace_put_dispatch(t->trace, &d);
}

struct trace_access watch_trace_access(const struct access *x, uint8_t *kind,
				       uint32_t *bytes)
{
	*bytes = x->size_bytes;
	*kind = (uint8_t)(x->space | (x->write ? TRACE_WRITE : 0) |
			  (x->atomic ? TRACE_ATOMIC : 0));
	return (struct trace_access){ x->lane, x->at };
}

void watch_trace_inst(struct soft_watch *t, const struct soft_wave *w,
		      const struct site *s)
{
	struct trace_event *ev = &t->event;

	memcpy(ev->group, w->group->id, sizeof(ev->group));
	ev->wave = (uint32_t)w->index;
	ev->pc = s->pc;
	ev->exec = soft_exec(w, 0);
	if (w->wave_size == 64)
		ev->exec |= (uint64_t)soft_exec(w, 1) << 32;
	ev->n_accesses = (uint32_t)t->n_accesses;
	for (int i = 0; i < t->n_accesses; i++)
		ev->access[i] = watch_trace_access(&t->access[i], &ev->kind,
						   &ev->access_bytes);
	trace_put_inst(t->trace, ev, s->u.in.size_bytes);
	if (s->info->flags & ISA_END)
		trace_put_end(t->trace, ev->group, ev->wave);
}
