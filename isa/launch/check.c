/*
 * isa/launch/check.c - what a command line gave, against the kernel's metadata.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "isa/launch/launch_int.h"

/* ---- arguments ---- */

static void describe_args(const struct co_kernel *k, struct buf *out)
{
	const struct co_arg *a;

	for (int i = 0; (a = co_user_arg(k, i)); i++) {
		buf_printf(out, "\n  %d: ", i);
		operand_wanted(a, out);
	}
}

/* Does the kernel end in `missing` pointers that no source named? */
static bool lacks_scratch(const struct co_kernel *k, int given)
{
	const struct co_arg *a = co_user_arg(k, given);
	int missing = (int)k->n_user_args - given;

	for (int i = given; a; a = co_user_arg(k, ++i))
		if (a->kind != CO_ARG_GLOBAL_BUFFER || *a->name ||
		    *a->type_name)
			return false;
	return missing == 1 || missing == 2;
}

static bool check_count(const struct launch_plan *l, struct err *e)
{
	const struct co_kernel *k = l->kernel;
	struct buf list = { 0 };

	if (!k->has_metadata || (uint32_t)l->n_args == k->n_user_args)
		return true;
	describe_args(k, &list);
	if (l->triton.n_scratch)
		buf_printf(&list, "\nThe last %d are Triton's own and may be "
			   "left out", l->triton.n_scratch);
	else if (lacks_scratch(k, l->n_args))
		buf_adds(&list, "\nIf Triton made it, the last pointers are its "
			 "own: its JSON beside the object, or null for each");
	err_set(e, ERR_USAGE, "kernel %s takes %u argument%s, got %d%s%s",
		k->name, k->n_user_args, k->n_user_args == 1 ? "" : "s",
		l->n_args, list.len ? "; it wants" : "",
		list.len ? list.data : "");
	buf_fini(&list);
	return false;
}

static bool check_arg(const struct launch_plan *l, int i, struct err *e)
{
	const struct operand *o = &l->arg[i];
	const struct co_arg *a = co_user_arg(l->kernel, i);
	struct buf want = { 0 };

	if (o->kind == OPERAND_REF &&
	    (o->ref >= l->n_args || l->arg[o->ref].kind != OPERAND_BUFFER ||
	     o->ref_offset >= l->arg[o->ref].size_bytes))
		return err_set(e, ERR_USAGE,
			       "argument %d '%s': argument %d is no buffer "
			       "with a byte at %" PRIu64,
			       i, o->text, o->ref, o->ref_offset);
	if (!a || operand_fits(o, a))
		return true;
	operand_wanted(a, &want);
	err_set(e, ERR_USAGE,
		"kernel %s: argument %d is '%s' (%zu bytes%s), "
		"wanted %s",
		l->kernel->name, i, o->text,
		o->kind == OPERAND_VALUE ? o->size_bytes : 8,
		o->kind == OPERAND_VALUE && o->size_bytes == a->size ?
			"; x32: or bytes: passes bits as they are" :
			"",
		want.data);
	buf_fini(&want);
	return false;
}

static bool parse_shape(const char *text, const char *option, uint32_t out[3],
			struct err *e)
{
	char *copy = xstrdup(text), *save = NULL;
	bool good = true;
	int n = 0;

	out[0] = out[1] = out[2] = 1;
	for (char *s = strtok_r(copy, ",x", &save); s && good;
	     s = strtok_r(NULL, ",x", &save)) {
		uint64_t v = 0;

		good = n < 3 && cli_u64(s, &v, e) && v && v <= UINT32_MAX;
		if (good)
			out[n++] = (uint32_t)v;
	}
	free(copy);
	if (good && n)
		return true;
	return err_set(e, ERR_USAGE,
		       "--%s %s: expected X, X,Y or X,Y,Z of 1..2^32-1 "
		       "work-items",
		       option, text);
}

/* Block and grid: as given, else what the kernel demands, else one wave. */
static bool set_shape(struct launch_plan *l, struct err *e)
{
	const uint32_t *reqd = l->kernel->reqd_workgroup_size;

	l->block[1] = l->block[2] = 1;
	if (l->block_text) {
		if (!parse_shape(l->block_text, "block", l->block, e))
			return false;
	} else if (reqd[0]) {
		memcpy(l->block, reqd, sizeof(l->block));
	} else {
		l->block[0] = l->triton.items ? l->triton.items
					      : l->kernel->wave_size;
	}
	if (!l->grid_text) {
		memcpy(l->grid, l->block, sizeof(l->grid));
		return true;
	}
	return parse_shape(l->grid_text, "grid", l->grid, e);
}

static bool check_shape(const struct launch_plan *l, struct err *e)
{
	const struct co_kernel *k = l->kernel;
	const uint32_t *reqd = k->reqd_workgroup_size, *b = l->block;
	uint32_t max = k->max_flat_workgroup_size ? k->max_flat_workgroup_size :
						    1024;

	if (reqd[0] && memcmp(reqd, b, sizeof(l->block)))
		return err_set(
			e, ERR_USAGE,
			"kernel %s: --block %u,%u,%u, but it was compiled "
			"for %u,%u,%u",
			k->name, b[0], b[1], b[2], reqd[0], reqd[1], reqd[2]);
	/* Each below 2^32 and the first two checked: no overflow of 64 bits. */
	if ((uint64_t)b[0] * b[1] > max || (uint64_t)b[0] * b[1] * b[2] > max)
		return err_set(
			e, ERR_USAGE,
			"kernel %s: --block %u,%u,%u has more work-items "
			"than its limit of %u",
			k->name, b[0], b[1], b[2], max);
	return true;
}

/* ---- LDS ---- */

/* Arguments that are places in LDS, behind the kernel's own, then --lds. */
static void place_lds(struct launch_plan *l)
{
	const uint32_t own = l->kernel->desc.group_segment_bytes;
	uint32_t end = own;

	for (int i = 0; i < l->n_args; i++) {
		const struct co_arg *a = co_user_arg(l->kernel, i);
		uint32_t align = a && a->pointee_align ? a->pointee_align : 16;

		if (l->arg[i].kind != OPERAND_LDS)
			continue;
		l->arg[i].lds_at = (end + align - 1) / align * align;
		end = l->arg[i].lds_at + (uint32_t)l->arg[i].size_bytes;
	}
	l->lds_bytes = end - own + (l->more_lds_bytes == LAUNCH_UNSET ?
				    l->triton.lds_bytes :
				    (uint32_t)l->more_lds_bytes);
}

/* ---- what nothing here serves ---- */

static void say_unserved(struct launch_plan *l)
{
	static const enum co_arg_kind kinds[] = {
		CO_ARG_HIDDEN_MULTIGRID_SYNC_ARG, CO_ARG_HIDDEN_HEAP_V1,
		CO_ARG_HIDDEN_DEFAULT_QUEUE, CO_ARG_HIDDEN_COMPLETION_ACTION,
	};
	const char *before = "";
	struct buf list = { 0 };

	for (uint32_t i = 0; i < l->kernel->n_args; i++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			if (l->kernel->args[i].kind == kinds[k]) {
				buf_printf(&list, "%s%s", before,
					   co_arg_kind_name(kinds[k]));
				before = ", ";
			}
	if (list.len)
		launch_remark(l, "kernel %s asks for %s, which nothing here "
			      "serves: 0 is passed", l->kernel->name,
			      list.data);
	buf_fini(&list);
}

/* ---- the whole ---- */

uint64_t launch_groups(const struct launch_plan *l, uint32_t n[3])
{
	uint64_t all = 1;

	for (int i = 0; i < 3; i++) {
		n[i] = (uint32_t)(((uint64_t)l->grid[i] + l->block[i] - 1) /
				  l->block[i]);
		if (__builtin_mul_overflow(all, n[i], &all))
			all = UINT64_MAX;
	}
	return all;
}

bool launch_shape(struct launch_plan *l, struct err *e)
{
	if (!set_shape(l, e) || !check_shape(l, e))
		return false;
	place_lds(l);
	return true;
}

bool launch_check(struct launch_plan *l, struct err *e)
{
	if (!set_shape(l, e) || !triton_add_scratch(l, e) ||
	    !check_count(l, e) || !launch_shape(l, e))
		return false;
	for (int i = 0; i < l->n_args; i++)
		if (!check_arg(l, i, e))
			return false;
	say_unserved(l);
	return true;
}
