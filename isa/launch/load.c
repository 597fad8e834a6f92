/*
 * isa/launch/load.c - from a command line to a kernel of an object.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "isa/launch/launch_int.h"

void launch_remark(struct launch_plan *l, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_printf(&l->remarks, "%s%s", l->remarks.len ? "\n" : "", line);
}

bool launch_parse(struct launch_plan *l, int argc, char *const *argv,
		  struct err *e)
{
	int at = 1;

	if (argc < 1)
		return err_set(e, ERR_USAGE, "expected FILE, its KERNEL and "
			       "arguments; --help says how to give them");
	l->path = argv[0];
	if (argc > 1 && !operand_is(argv[1]))
		l->kernel_name = argv[at++];
	if (argc - at > LAUNCH_ARGS_MAX - (int)ARRAY_SIZE(l->triton.scratch_bytes))
		return err_set(e, ERR_USAGE, "%d arguments, limit %d",
			       argc - at, LAUNCH_ARGS_MAX);
	for (; at < argc; at++, l->n_args++)
		if (!operand_parse(&l->arg[l->n_args], argv[at],
				   l->seed + (uint64_t)l->n_args, e))
			return false;
	if (l->stack_bytes > 1 << 20)
		return err_set(e, ERR_USAGE, "--stack %llu: expected at most "
			       "1M", (unsigned long long)l->stack_bytes);
	if (l->more_lds_bytes != LAUNCH_UNSET && l->more_lds_bytes > 65536)
		return err_set(e, ERR_USAGE, "--lds %llu: expected at most 64K",
			       (unsigned long long)l->more_lds_bytes);
	return true;
}

static bool load_object(struct launch_plan *l, struct err *e)
{
	const void *object;
	size_t len;

	if (!file_read(l->path, CO_MAX_FILE_BYTES, &l->file, e))
		return false;
	if (!co_unbundle(l->file.data, l->file.len, l->chip, &object, &len,
			 e) ||
	    !co_parse(&l->co, object, len, e))
		return err_wrap(e, "%s", l->path);
	return true;
}

static bool find_kernel(struct launch_plan *l, struct err *e)
{
	const char *name = l->kernel_name;

	if (!name && l->triton.kernel)
		name = l->triton.kernel;
	if (!name && l->co.n_kernels == 1)
		name = l->co.kernels[0].name;
	if (name)
		l->kernel = co_kernel_require(&l->co, name, e);
	else
		err_set(e, ERR_USAGE, "which of its %u kernels?  Expected FILE "
			"KERNEL; t0-run --list FILE shows them",
			l->co.n_kernels);
	return l->kernel || err_wrap(e, "%s", l->path);
}

bool launch_load(struct launch_plan *l, bool any, struct err *e)
{
	if (!load_object(l, e))
		return false;
	if (any)
		return !l->kernel_name || find_kernel(l, e);
	return triton_read(l, e) && find_kernel(l, e);
}

void launch_fini(struct launch_plan *l)
{
	for (int i = 0; i < l->n_args; i++)
		operand_fini(&l->arg[i]);
	l->n_args = 0;
	free(l->kernarg);
	l->kernarg = NULL;
	free(l->triton.path);
	free(l->triton.kernel);
	l->triton = (struct launch_triton){ 0 };
	co_fini(&l->co);
	buf_fini(&l->file);
	buf_fini(&l->remarks);
}
