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

static bool is_float(enum dsl_type t)
{
	return t == DSL_F32 || t == DSL_F16 || t == DSL_BF16;
}

static bool heads_check(const struct kernel_entry *k, struct kernel_shape *s,
			struct err *e)
{
	s->cache = s->cache ? s->cache : s->type;
	s->head = s->head ? s->head : 128;
	s->ratio = s->ratio ? s->ratio : 1;
	if (!is_float(s->cache))
		return err_set(e, ERR_USAGE, "%s: a cache of type %d; wanted "
			       "f32, f16 or bf16", k->name, s->cache);
	if (s->head > KERNEL_MAX_HEAD)
		return err_set(e, ERR_USAGE, "%s: heads of %u elements; wanted "
			       "1 to %d", k->name, s->head, KERNEL_MAX_HEAD);
	if (s->ratio > KERNEL_MAX_RATIO)
		return err_set(e, ERR_USAGE, "%s: %u heads in a group; wanted "
			       "1 to %d", k->name, s->ratio, KERNEL_MAX_RATIO);
	return true;
}

bool kernel_shape_check(const struct kernel_entry *k, struct kernel_shape *s,
			struct err *e)
{
	s->type = s->type ? s->type : DSL_F32;
	s->to = s->to ? s->to : s->type;
	s->weights = s->weights ? s->weights : s->type;
	s->group = s->group ? s->group : k->group;
	if (s->group < 32 || s->group > 1024 || s->group & (s->group - 1))
		return err_set(e, ERR_USAGE, "%s: groups of %u work-items; "
			       "wanted a power of two from 32 to 1024",
			       k->name, s->group);
	if (!is_float(s->type) || !is_float(s->to))
		return err_set(e, ERR_USAGE, "%s: elements of type %d; wanted "
			       "f32, f16 or bf16", k->name, s->type);
	if (!is_float(s->weights) && s->weights != DSL_I8 &&
	    s->weights != DSL_U8)
		return err_set(e, ERR_USAGE, "%s: weights of type %d; wanted "
			       "f32, f16, bf16, i8 or u8", k->name,
			       s->weights);
	if (k->per == KERNEL_TILE && s->group != k->group)
		return err_set(e, ERR_USAGE, "%s: groups of %u work-items; "
			       "wanted %u", k->name, s->group, k->group);
	return heads_check(k, s, e);
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
	case KERNEL_STREAM:
		each = group / 32 * KERNEL_STREAM_ROWS;
		break;
	case KERNEL_STREAM_PAIR:
		each = group / 32 * KERNEL_STREAM_ROWS / 2;
		break;
	case KERNEL_ROW:
	case KERNEL_GRID:
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
