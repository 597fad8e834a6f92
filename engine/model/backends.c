/*
 * engine/model/backends.c - the table of backends.
 */
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/gpu/gpu.h"
#include "engine/model/model.h"

static const struct qwen_backend *const backend[] = { &qwen_cpu, &qwen_gpu };

const struct qwen_backend *qwen_backend_find(const char *name, struct err *e)
{
	struct buf all = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(backend); i++)
		if (!name || strcmp(backend[i]->name, name) == 0)
			return backend[i];
	for (size_t i = 0; i < ARRAY_SIZE(backend); i++)
		buf_printf(&all, "%s%s", i ? ", " : "", backend[i]->name);
	err_set(e, ERR_UNSUPPORTED, "got backend \"%s\"; this build has %s",
		name, all.data);
	buf_fini(&all);
	return NULL;
}
