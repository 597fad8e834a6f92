/*
 * compiler/kernels/kernels.c - the table of the library, shapes and grids.
 */
#include <string.h>

#include "compiler/kernels/kernels_int.h"

enum { /* as the table's rows call them */
	TYPE = KERNEL_TYPE, TO = KERNEL_TO, CACHE = KERNEL_CACHE,
	HEAD = KERNEL_HEAD, RATIO = KERNEL_RATIO, WIDE = KERNEL_WIDE,
	WEIGHTS = KERNEL_WEIGHTS, BYTES = KERNEL_BYTES, TOKENS = KERNEL_TOKENS,
	NARROW = KERNEL_NARROW, PAGED = KERNEL_PAGED, TURNED = KERNEL_TURNED
};

#define BUILDER(name, file) \
	static const char name##_file[] = "compiler/kernels/" file;
#define K(...)
#include "compiler/kernels/kernels.def"

const struct kernel_entry kernel_table[] = {
#define BUILDER(name, file)
#define K(name, builder, per, group, uses, what) \
	{ #name, what, build_##builder, builder##_file, KERNEL_##per, group, \
	  uses },
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

/* What is not given, and what the kernel does not depend on. */
static void fill_in(const struct kernel_entry *k, struct kernel_shape *s)
{
	const enum dsl_type given = s->type ? s->type : DSL_F32;

	s->type = k->uses & KERNEL_TYPE ? given : DSL_F32;
	if (!s->to || !(k->uses & KERNEL_TO))
		s->to = given;
	if (!s->weights || !(k->uses & KERNEL_WEIGHTS))
		s->weights = k->uses & KERNEL_NARROW ? DSL_BF16 : given;
	if (!s->span || !(k->uses & KERNEL_WEIGHTS))
		s->span = 32;
	if (!s->cache || !(k->uses & KERNEL_CACHE))
		s->cache = given;
	if (!s->head || !(k->uses & KERNEL_HEAD))
		s->head = 128;
	if (!s->ratio || !(k->uses & KERNEL_RATIO))
		s->ratio = 1;
	if (!s->tokens || !(k->uses & KERNEL_TOKENS))
		s->tokens = 1;
	s->wide = s->wide && k->uses & KERNEL_WIDE;
	s->paged = s->paged && k->uses & KERNEL_PAGED;
	s->turned = s->turned && k->uses & KERNEL_TURNED;
	s->group = s->group ? s->group : k->group;
}

bool kernel_shape_check(const struct kernel_entry *k, struct kernel_shape *s,
			struct err *e)
{
	fill_in(k, s);
	if (s->group < 32 || s->group > 1024 || s->group & (s->group - 1))
		return err_set(e, ERR_USAGE, "%s: groups of %u work-items; "
			       "wanted a power of two from 32 to 1024",
			       k->name, s->group);
	const bool bytes = k->uses & KERNEL_BYTES && s->type == DSL_I8 &&
			   s->to == DSL_I8;
	if (!bytes && (!is_float(s->type) || !is_float(s->to)))
		return err_set(e, ERR_USAGE, "%s: elements of type %d; wanted "
			       "f32, f16 or bf16%s", k->name,
			       !is_float(s->type) ? s->type : s->to,
			       k->uses & KERNEL_BYTES ? ", or i8 to i8" : "");
	if (!is_float(s->cache) && s->cache != DSL_I8 && s->cache != DSL_U8 &&
	    s->cache != DSL_U32)
		return err_set(e, ERR_USAGE, "%s: a cache of type %d; wanted "
			       "f32, f16, bf16, i8, u8 or u32", k->name,
			       s->cache);
	if ((s->cache == DSL_I8 || s->cache == DSL_U32) &&
	    s->head % KERNEL_CACHE_GROUP)
		return err_set(e, ERR_USAGE, "%s: heads of %u elements in a "
			       "cache of %s; wanted a multiple of %d", k->name,
			       s->head, kernel_type_name(s->cache),
			       KERNEL_CACHE_GROUP);
	if (s->turned && (s->head % 32 || s->head & (s->head - 1)))
		return err_set(e, ERR_USAGE, "%s: heads of %u elements are not "
			       "turned; wanted 32, 64, 128 or 256", k->name,
			       s->head);
	const bool own = s->weights == DSL_U32 || s->weights == DSL_I16;
	if (!is_float(s->weights) && s->weights != DSL_I8 &&
	    s->weights != DSL_U8 && !own)
		return err_set(e, ERR_USAGE, "%s: weights of type %d; wanted "
			       "f32, f16, bf16, i8, u8, u32 or i16", k->name,
			       s->weights);
	if (k->uses & KERNEL_NARROW && (s->weights == DSL_F32 || own))
		return err_set(e, ERR_USAGE, "%s: weights of %s; wanted f16, "
			       "bf16, i8 or u8", k->name,
			       kernel_type_name(s->weights));
	if (s->span < 32 || s->span > 256 || s->span & (s->span - 1) ||
	    (s->span > 32 && !own))
		return err_set(e, ERR_USAGE, "%s: %u columns share a scale; "
			       "wanted 32, of u32 and i16 to 256", k->name,
			       s->span);
	if (k->per == KERNEL_TILE && s->group != k->group)
		return err_set(e, ERR_USAGE, "%s: groups of %u work-items; "
			       "wanted %u", k->name, s->group, k->group);
	if (s->head > KERNEL_MAX_HEAD)
		return err_set(e, ERR_USAGE, "%s: heads of %u elements; wanted "
			       "1 to %d", k->name, s->head, KERNEL_MAX_HEAD);
	if (s->tokens > KERNEL_MAX_TOKENS)
		return err_set(e, ERR_USAGE, "%s: %u tokens in a group; wanted "
			       "1 to %d", k->name, s->tokens,
			       KERNEL_MAX_TOKENS);
	if (s->ratio > KERNEL_MAX_RATIO)
		return err_set(e, ERR_USAGE, "%s: %u heads in a group; wanted "
			       "1 to %d", k->name, s->ratio, KERNEL_MAX_RATIO);
	return true;
}

const char *kernel_type_name(enum dsl_type t)
{
	return t == DSL_F16 ? "f16" : t == DSL_BF16 ? "bf16" :
	       t == DSL_I8  ? "i8"  : t == DSL_U8   ? "u8"   :
	       t == DSL_U32 ? "u32" : t == DSL_I16 ? "i16" : "f32";
}

void kernel_describe(const struct kernel_entry *k,
		     const struct kernel_shape *shape, struct buf *out)
{
	struct kernel_shape s = *shape;

	fill_in(k, &s);
	buf_adds(out, k->name);
	if (k->uses & KERNEL_TYPE)
		buf_printf(out, " type=%s", kernel_type_name(s.type));
	if (k->uses & KERNEL_TO)
		buf_printf(out, " to=%s", kernel_type_name(s.to));
	if (k->uses & KERNEL_WEIGHTS)
		buf_printf(out, " weights=%s", kernel_type_name(s.weights));
	if (s.span > 32)
		buf_printf(out, " span=%u", s.span);
	if (k->uses & KERNEL_CACHE)
		buf_printf(out, " cache=%s", kernel_type_name(s.cache));
	if (k->uses & KERNEL_HEAD)
		buf_printf(out, " head=%u", s.head);
	if (k->uses & KERNEL_RATIO)
		buf_printf(out, " ratio=%u", s.ratio);
	if (s.tokens > 1)
		buf_printf(out, " tokens=%u", s.tokens);
	if (s.wide)
		buf_adds(out, " wide");
	if (s.paged)
		buf_adds(out, " paged");
	if (s.turned)
		buf_adds(out, " turned");
	buf_printf(out, " group=%u", s.group);
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

struct ssa_func *kernel_build(const struct kernel_entry *entry,
			      const struct kernel_shape *shape, struct err *e)
{
	const struct dsl_at at = { .file = entry->file };
	struct kernel_shape s = *shape;

	if (!kernel_shape_check(entry, &s, e))
		return NULL;
	struct dsl *k = dsl_new(at, entry->name, s.group, 1, 1);
	entry->body(k, &s);
	return dsl_finish(k, e);
}
