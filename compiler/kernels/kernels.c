#include <string.h>

#include "compiler/kernels/build.h"

const struct kernel_entry kernel_table[] = {
#define K(name, builder, per, group, what) \
	{ #name, what, kernel_##builder, KERNEL_##per, group },
#include "compiler/kernels/kernels.def"
};
const size_t kernel_count = ARRAY_SIZE(kernel_table);

const struct kernel_entry *kernel_find(const char *name)
{
	for (size_t i = 0; i < kernel_count; i++)
		if (strcmp(kernel_table[i].name, name) == 0)
			return &kernel_table[i];
	return NULL;
}

bool kernel_shape_check(const struct kernel_entry *k, struct kernel_shape *s,
			struct err *e)
{
	s->type = s->type ? s->type : DSL_F32;
	s->to = s->to ? s->to : s->type;
	s->group = s->group ? s->group : k->group;
	if (s->group < 32 || s->group > 1024 || s->group & (s->group - 1))
		return err_set(e, ERR_USAGE, "%s: groups of %u work-items; "
			       "wanted a power of two from 32 to 1024",
			       k->name, s->group);
	if ((s->type != DSL_F32 && s->type != DSL_F16 && s->type != DSL_BF16) ||
	    (s->to != DSL_F32 && s->to != DSL_F16 && s->to != DSL_BF16))
		return err_set(e, ERR_USAGE, "%s: elements of type %d; wanted "
			       "f32, f16 or bf16", k->name, s->type);
	if (k->per == KERNEL_TILE && s->group != k->group)
		return err_set(e, ERR_USAGE, "%s: groups of %u work-items; "
			       "wanted %u", k->name, s->group, k->group);
	return true;
}

uint64_t kernel_groups(const struct kernel_entry *k,
		       const struct kernel_shape *s, uint64_t n)
{
	uint64_t group = s->group ? s->group : k->group;
	uint64_t each = 1;

	switch (k->per) {
	case KERNEL_ELEMENTS:
		each = group * KERNEL_VECTOR;
		break;
	case KERNEL_TILE:
		each = KERNEL_TILE_SIZE;
		break;
	case KERNEL_WAVE_ROW:
		each = group / 32;
		break;
	case KERNEL_ROW:
		break;
	}
	return (n + each - 1) / each;
}

struct dsl *kernel_begin(struct dsl_at at, const struct kernel_entry *entry,
			 const struct kernel_shape *shape,
			 struct kernel_shape *s, struct err *e)
{
	*s = *shape;
	return kernel_shape_check(entry, s, e) ?
		       dsl_new(at, entry->name, s->group, 1, 1) : NULL;
}
