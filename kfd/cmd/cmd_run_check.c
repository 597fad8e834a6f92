/*
 * kfd/cmd/cmd_run_check.c - a job's file and kernel, and its command line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/cmd/job.h"

/* ---- the file ---- */

static bool load_file(struct kfd_job *r, struct err *e)
{
	const void *object;
	size_t len;

	if (!file_read(r->path, CO_MAX_FILE_BYTES, &r->file, e))
		return false;
	if (!co_unbundle(r->file.data, r->file.len, r->chip, &object, &len,
			 e) ||
	    !co_parse(&r->co, object, len, e))
		return err_wrap(e, "%s", r->path);
	return true;
}

bool kfd_job_load(struct kfd_job *r, struct err *e)
{
	if (!load_file(r, e))
		return false;
	if (!r->kernel_name)
		return true;
	r->kernel = co_kernel_require(&r->co, r->kernel_name, e);
	return r->kernel || err_wrap(e, "%s", r->path);
}

bool kfd_job_list(const struct kfd_job *r, struct err *e)
{
	struct table t = { 0 };
	bool good;

	table_init(&t, "kernel,#argument,kind,type,name,#offset,#bytes,#vgprs,"
		       "#lds,#scratch,#wave,#max block");
	for (uint32_t i = 0; i < r->co.n_kernels; i++) {
		const struct co_kernel *k = &r->co.kernels[i];
		const struct co_arg *a;
		int n = 0;

		if (r->kernel_name && k != r->kernel)
			continue;
		do {
			a = co_user_arg(k, n);
			table_row(&t);
			table_cell(&t, 0, "%s", k->name);
			table_cell(&t, 7, "%d", co_descriptor_vgprs(&k->desc));
			table_cell(&t, 8, "%u", k->desc.group_segment_bytes);
			table_cell(&t, 9, "%u", k->desc.private_segment_bytes);
			table_cell(&t, 10, "%u", k->wave_size);
			if (k->max_flat_workgroup_size)
				table_cell(&t, 11, "%u",
					   k->max_flat_workgroup_size);
			if (!a)
				continue;
			table_cell(&t, 1, "%d", n);
			table_cell(&t, 2, "%s", a->kind_name);
			table_cell(&t, 3, "%s", a->type_name);
			table_cell(&t, 4, "%s", a->name);
			table_cell(&t, 5, "%u", a->offset);
			table_cell(&t, 6, "%u", a->size);
		} while (co_user_arg(k, ++n));
	}
	good = cmd_table(&r->cmd, &t, e);
	table_fini(&t);
	return good;
}

/* ---- checks ---- */

static void describe_args(const struct co_kernel *k, struct buf *out)
{
	const struct co_arg *a;

	for (int i = 0; (a = co_user_arg(k, i)); i++) {
		buf_printf(out, "\n  %d: ", i);
		operand_wanted(a, out);
	}
}

static bool check_count(const struct kfd_job *r, struct err *e)
{
	const struct co_kernel *k = r->kernel;
	struct buf list = { 0 };

	if (!k->has_metadata || (uint32_t)r->n_args == k->n_user_args)
		return true;
	describe_args(k, &list);
	err_set(e, ERR_USAGE, "kernel %s takes %u argument%s, got %d%s%s",
		k->name, k->n_user_args, k->n_user_args == 1 ? "" : "s",
		r->n_args, list.len ? "; it wants" : "",
		list.len ? list.data : "");
	buf_fini(&list);
	return false;
}

static bool check_arg(const struct kfd_job *r, int i, struct err *e)
{
	const struct operand *o = &r->arg[i];
	const struct co_arg *a = co_user_arg(r->kernel, i);
	struct buf want = { 0 };

	if (o->kind == OPERAND_REF &&
	    (o->ref >= r->n_args || r->arg[o->ref].kind != OPERAND_BUFFER ||
	     o->ref_offset >= r->arg[o->ref].size_bytes))
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
		r->kernel->name, i, o->text,
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
static bool set_shape(struct kfd_job *r, struct err *e)
{
	const uint32_t *reqd = r->kernel->reqd_workgroup_size;

	if (r->block_text) {
		if (!parse_shape(r->block_text, "block", r->block, e))
			return false;
	} else if (reqd[0]) {
		memcpy(r->block, reqd, sizeof(r->block));
	} else {
		r->block[0] = r->kernel->wave_size;
		r->block[1] = r->block[2] = 1;
	}
	if (!r->grid_text) {
		memcpy(r->grid, r->block, sizeof(r->grid));
		return true;
	}
	return parse_shape(r->grid_text, "grid", r->grid, e);
}

static bool check_shape(const struct kfd_job *r, struct err *e)
{
	const struct co_kernel *k = r->kernel;
	const uint32_t *reqd = k->reqd_workgroup_size, *b = r->block;
	uint32_t max = k->max_flat_workgroup_size ? k->max_flat_workgroup_size :
						    1024;

	if (reqd[0] && memcmp(reqd, b, sizeof(r->block)))
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

bool kfd_job_check(struct kfd_job *r, struct err *e)
{
	if (!check_count(r, e) || !set_shape(r, e) || !check_shape(r, e))
		return false;
	for (int i = 0; i < r->n_args; i++)
		if (!check_arg(r, i, e))
			return false;
	return true;
}
