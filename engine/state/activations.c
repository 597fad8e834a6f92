/*
 * engine/state/activations.c - what the inputs of products are rounded to.
 */
#include <string.h>

#include "engine/state/state.h"

static const char *const name[] = { [QWEN_AS_AUTO] = "auto",
				    [QWEN_AS_F32] = "f32",
				    [QWEN_AS_BF16] = "bf16",
				    [QWEN_AS_F16] = "f16",
				    [QWEN_AS_INT8] = "int8" };

const char *qwen_activations_name(enum qwen_activations a)
{
	return name[a];
}

bool qwen_activations_parse(const char *s, enum qwen_activations *a,
			    struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		if (strcmp(name[i], s) == 0) {
			*a = (enum qwen_activations)i;
			return true;
		}
	return err_set(e, ERR_USAGE, "got activations \"%s\"; wanted auto, f32, "
		       "bf16, f16 or int8", s);
}
