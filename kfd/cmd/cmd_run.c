/*
 * kfd/cmd/cmd_run.c - a job on its device: buffers, arguments, launches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/cmd/job.h"

static bool make_buffers(struct kfd_job *r, struct err *e)
{
	for (int i = 0; i < r->n_args; i++) {
		struct operand *o = &r->arg[i];
		char name[32];

		if (o->kind != OPERAND_BUFFER)
			continue;
		snprintf(name, sizeof(name), "argument %d", i);
		if (!kfd_mem_alloc(r->dev, KFD_VRAM, o->size_bytes, name,
				   &r->mem[i], e))
			return false;
		if (!o->untouched)
			memcpy(r->mem[i]->cpu, o->data, o->size_bytes);
	}
	kfd_mem_flush(r->dev);
	return true;
}

/* The bytes that go into the kernarg segment; *n of them. */
static const void *arg_bytes(struct kfd_job *r, int i, uint32_t pointee_align,
			     uint64_t *store, size_t *n)
{
	const struct operand *o = &r->arg[i];
	uint32_t align = pointee_align ? pointee_align : 16;

	*n = 8;
	switch (o->kind) {
	case OPERAND_VALUE:
		*n = o->size_bytes;
		return o->data;
	case OPERAND_BUFFER:
		*store = r->mem[i]->va;
		break;
	case OPERAND_REF:
		*store = r->mem[o->ref]->va + o->ref_offset;
		break;
	case OPERAND_LDS: /* behind the kernel's own LDS */
		*n = 4;
		*store = r->kernel->desc.group_segment_bytes + r->lds_bytes;
		*store = (*store + align - 1) / align * align;
		r->lds_bytes = (uint32_t)(*store + o->size_bytes) -
			       r->kernel->desc.group_segment_bytes;
		break;
	}
	return store;
}

/*
 * By the metadata's offsets; without metadata one after the other, each
 * aligned to its size.
 */
static bool lay_out(struct kfd_job *r, const struct kfd_kernel *k,
		    struct err *e)
{
	size_t end = 0, n;
	uint64_t store;

	r->kernarg = xcalloc(1, k->explicit_bytes + 1);
	for (int i = 0; i < r->n_args; i++) {
		const struct co_arg *a = co_user_arg(r->kernel, i);
		const void *p =
			arg_bytes(r, i, a ? a->pointee_align : 0, &store, &n);
		size_t align = n > 8 ? 16 : n > 4 ? 8 : n > 2 ? 4 : n;
		size_t at = a ? a->offset : (end + align - 1) / align * align;

		end = at + n;
		if (end > k->explicit_bytes)
			return err_set(
				e, ERR_USAGE,
				"kernel %s: argument %d '%s' ends at byte "
				"%zu of %u",
				k->name, i, r->arg[i].text, end,
				k->explicit_bytes);
		memcpy(r->kernarg + at, p, n);
	}
	return true;
}

static bool launch_all(struct kfd_job *r, const struct kfd_kernel *k,
		       struct kfd_queue *q, struct err *e)
{
	struct kfd_launch l = {
		.kernel = k,
		.dyn_lds_bytes = r->lds_bytes + (uint32_t)r->more_lds_bytes,
		.stack_bytes = (uint32_t)r->stack_bytes,
		.args = r->kernarg,
		.args_bytes = k->explicit_bytes,
	};
	struct progress bar;
	bool good = true;

	memcpy(l.grid, r->grid, sizeof(l.grid));
	memcpy(l.wg, r->block, sizeof(l.wg));
	r->device_ns = xcalloc(r->repeat, sizeof(*r->device_ns));
	progress_init(&bar, k->name, r->repeat, r->cmd.quiet || r->repeat < 2);
	for (uint64_t i = 0; i < r->repeat && good && !*r->cmd.stop; i++) {
		struct kfd_timing t = { 0 };

		l.deadline_ns = time_mono_ns() + r->deadline_ns;
		good = kfd_run(q, &l, &t, e);
		r->device_ns[r->n_done] = t.device_ns;
		r->n_done += good;
		progress_step(&bar, 1);
	}
	progress_fini(&bar);
	return good && (r->n_done || err_set(e, ERR_STOPPED, "before the first "
					     "dispatch"));
}

/* What kernels print goes beside results that a program is to read. */
static void to_stderr(void *ctx, const char *text, size_t len)
{
	(void)ctx;
	fwrite(text, 1, len, stderr);
}

bool kfd_job_run(struct kfd_job *r, struct err *e)
{
	const struct kfd_queue_opts o = {
		.print = r->cmd.format != TABLE_TEXT ? to_stderr : NULL,
		.printf_wait = true,
		.stop = r->cmd.stop,
	};
	const struct kfd_kernel *k;
	struct kfd_code *code;
	struct kfd_queue *q;

	return kfd_code_load(r->dev, r->co.bytes, r->co.len, &code, e) &&
	       kfd_code_kernel(code, r->kernel->name, &k, e) &&
	       make_buffers(r, e) && lay_out(r, k, e) &&
	       kfd_queue_new(r->dev, &o, &q, e) && launch_all(r, k, q, e);
}

void kfd_job_fini(struct kfd_job *r)
{
	kfd_close(r->dev);
	for (int i = 0; i < r->n_args; i++)
		operand_fini(&r->arg[i]);
	free(r->kernarg);
	free(r->device_ns);
	co_fini(&r->co);
	buf_fini(&r->file);
	cli_list_fini(&r->dump);
}
