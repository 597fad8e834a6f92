/*
 * kfd/cmd/cmd_run.c - a job on its device: buffers, arguments, launches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/cmd/job.h"

static bool make_buffers(struct kfd_job *r, uint64_t va[LAUNCH_ARGS_MAX],
			 struct err *e)
{
	for (int i = 0; i < r->l.n_args; i++) {
		struct operand *o = &r->l.arg[i];
		char name[32];

		if (o->kind != OPERAND_BUFFER)
			continue;
		snprintf(name, sizeof(name), "argument %d", i);
		if (!kfd_mem_alloc(r->dev, KFD_VRAM, o->size_bytes, name,
				   &r->mem[i], e))
			return false;
		va[i] = r->mem[i]->va;
		if (!o->untouched)
			memcpy(r->mem[i]->cpu, o->data, o->size_bytes);
	}
	kfd_mem_flush(r->dev);
	return true;
}

static bool launch_all(struct kfd_job *r, const struct kfd_kernel *k,
		       struct kfd_queue *q, struct err *e)
{
	struct kfd_launch l = {
		.kernel = k,
		.dyn_lds_bytes = r->l.lds_bytes,
		.stack_bytes = (uint32_t)r->l.stack_bytes,
		.args = r->l.kernarg,
		.args_bytes = r->l.explicit_bytes,
	};
	struct progress bar;
	bool good = true;

	memcpy(l.grid, r->l.grid, sizeof(l.grid));
	memcpy(l.wg, r->l.block, sizeof(l.wg));
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
	uint64_t va[LAUNCH_ARGS_MAX] = { 0 };

	return kfd_code_load(r->dev, r->l.co.bytes, r->l.co.len, &code, e) &&
	       kfd_code_kernel(code, r->l.kernel->name, &k, e) &&
	       make_buffers(r, va, e) && launch_arguments(&r->l, va, e) &&
	       kfd_queue_new(r->dev, &o, &q, e) && launch_all(r, k, q, e);
}

void kfd_job_fini(struct kfd_job *r)
{
	kfd_close(r->dev);
	launch_fini(&r->l);
	free(r->device_ns);
	cli_list_fini(&r->dump);
}
