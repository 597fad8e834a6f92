/*
 * isa/launch/arguments.c - the kernarg segment: what the caller gives, and
 * what the runtime adds (LLVM, AMDGPUUsage, "Code Object V5 Metadata").
 */
#include <stdlib.h>
#include <string.h>

#include "isa/launch/launch.h"

/* The bytes of an argument; *n of them. */
static const void *arg_bytes(const struct launch_plan *l, int i,
			     const uint64_t *va, uint64_t *store, size_t *n)
{
	const struct operand *o = &l->arg[i];

	*n = 8;
	switch (o->kind) {
	case OPERAND_VALUE:
		*n = o->size_bytes;
		return o->data;
	case OPERAND_BUFFER:
		*store = va[i];
		break;
	case OPERAND_REF:
		*store = va[o->ref] + o->ref_offset;
		break;
	case OPERAND_LDS:
		*n = 4;
		*store = o->lds_at;
		break;
	}
	return store;
}

bool launch_arguments(struct launch_plan *l, const uint64_t *va,
		      struct err *e)
{
	size_t end = 0, n;
	uint64_t store;

	l->explicit_bytes = co_explicit_bytes(l->kernel);
	l->kernarg_bytes = co_kernarg_bytes(l->kernel);
	free(l->kernarg);
	l->kernarg = xcalloc(1, l->kernarg_bytes + 1);
	for (int i = 0; i < l->n_args; i++) {
		const struct co_arg *a = co_user_arg(l->kernel, i);
		const void *p = arg_bytes(l, i, va, &store, &n);
		size_t align = n > 8 ? 16 : n > 4 ? 8 : n > 2 ? 4 : n;
		size_t at = a ? a->offset : (end + align - 1) / align * align;

		end = at + n;
		if (end > l->explicit_bytes)
			return err_set(e, ERR_USAGE, "kernel %s: argument %d "
				       "'%s' ends at byte %zu of %u",
				       l->kernel->name, i, l->arg[i].text, end,
				       l->explicit_bytes);
		memcpy(l->kernarg + at, p, n);
	}
	return true;
}

/* ---- hidden ones ---- */

static uint32_t at_least_1(uint32_t v)
{
	return v ? v : 1;
}

unsigned launch_dimensions(const uint32_t grid[3], const uint32_t block[3])
{
	return grid[2] > 1 || block[2] > 1 ? 3 :
	       grid[1] > 1 || block[1] > 1 ? 2 :
					     1;
}

static uint64_t hidden_value(const struct launch_dispatch *d,
			     enum co_arg_kind kind)
{
	int i;

	switch (kind) {
	case CO_ARG_HIDDEN_BLOCK_COUNT_X:
	case CO_ARG_HIDDEN_BLOCK_COUNT_Y:
	case CO_ARG_HIDDEN_BLOCK_COUNT_Z: /* whole ones */
		i = (int)kind - CO_ARG_HIDDEN_BLOCK_COUNT_X;
		return at_least_1(d->grid[i]) / at_least_1(d->block[i]);
	case CO_ARG_HIDDEN_GROUP_SIZE_X:
	case CO_ARG_HIDDEN_GROUP_SIZE_Y:
	case CO_ARG_HIDDEN_GROUP_SIZE_Z:
		return at_least_1(d->block[kind - CO_ARG_HIDDEN_GROUP_SIZE_X]);
	case CO_ARG_HIDDEN_REMAINDER_X:
	case CO_ARG_HIDDEN_REMAINDER_Y:
	case CO_ARG_HIDDEN_REMAINDER_Z: /* 0: no partial one */
		i = (int)kind - CO_ARG_HIDDEN_REMAINDER_X;
		return at_least_1(d->grid[i]) % at_least_1(d->block[i]);
	case CO_ARG_HIDDEN_GRID_DIMS:
		return launch_dimensions(d->grid, d->block);
	case CO_ARG_HIDDEN_DYNAMIC_LDS_SIZE:
		return d->lds_bytes;
	case CO_ARG_HIDDEN_PRIVATE_BASE:
		return d->scratch_base >> 32;
	case CO_ARG_HIDDEN_SHARED_BASE:
		return d->lds_base >> 32;
	case CO_ARG_HIDDEN_PRINTF_BUFFER:
		return d->print_va;
	case CO_ARG_HIDDEN_HOSTCALL_BUFFER:
		return d->hostcall_va;
	case CO_ARG_HIDDEN_QUEUE_PTR:
		return d->queue_va;
	default: /* offsets are 0; nothing serves the others */
		return 0;
	}
}

void launch_hidden(const struct launch_dispatch *d, const struct co_arg *arg,
		   uint32_t n, void *kernarg, size_t bytes)
{
	for (const struct co_arg *a = arg; a < arg + n; a++) {
		if (!co_arg_is_hidden(a) ||
		    (uint64_t)a->offset + a->size > bytes)
			continue;
		const uint64_t v = hidden_value(d, a->kind);

		memcpy((char *)kernarg + a->offset, &v,
		       a->size < 8 ? a->size : 8);
	}
}
