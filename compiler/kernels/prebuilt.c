/*
 * compiler/kernels/prebuilt.c - the library's objects: which shapes are
 * compiled ahead, and where to look.
 */
#include "compiler/kernels/kernels.h"

static const enum dsl_type weights[] = { DSL_F32, DSL_F16, DSL_BF16, DSL_I8,
					 DSL_U8 };
/* Of elements the first three, of a cache all. */
static const enum dsl_type types[] = { DSL_F32, DSL_F16, DSL_BF16, DSL_I8 };
static const uint32_t heads[] = { 64, 128 };
static const uint32_t ratios[] = { 1, 2, 4, 8 };

/* Digit `*i` % n of a mixed-radix number, if the kernel depends on it. */
static uint32_t take_digit(uint32_t *i, bool used, uint32_t n)
{
	uint32_t d = used ? *i % n : 0;

	if (used)
		*i /= n;
	return d;
}

/* A cache is of the type of queries, unless these are f32. */
static bool is_usual(const struct kernel_entry *k, const struct kernel_shape *s)
{
	if (k->uses & KERNEL_TYPE && k->uses & KERNEL_CACHE &&
	    s->type != DSL_F32)
		return s->cache == s->type;
	if ((s->type == DSL_I8) != (s->to == DSL_I8))
		return false;
	if (k->uses & KERNEL_NARROW && s->weights == DSL_F32)
		return false;
	if (k->uses & KERNEL_TO)
		return (s->to == s->type) == !!(k->uses & KERNEL_WIDE);
	return true;
}

bool kernel_usual(const struct kernel_entry *k, uint32_t i,
		  struct kernel_shape *out)
{
	const uint32_t n_types = k->uses & KERNEL_BYTES ? 4 : 3;

	for (uint32_t all = 0;; all++) {
		uint32_t n = all;
		struct kernel_shape s = { 0 };

		s.type = types[take_digit(&n, k->uses & KERNEL_TYPE, n_types)];
		s.to = types[take_digit(&n, k->uses & KERNEL_TO, n_types)];
		s.weights =
			weights[take_digit(&n, k->uses & KERNEL_WEIGHTS, 5)];
		s.cache = types[take_digit(&n, k->uses & KERNEL_CACHE, 4)];
		s.head = heads[take_digit(&n, k->uses & KERNEL_HEAD, 2)];
		s.ratio = ratios[take_digit(&n, k->uses & KERNEL_RATIO, 4)];
		s.wide = take_digit(&n, k->uses & KERNEL_WIDE, 2);
		if (n)
			return false;
		if (is_usual(k, &s) && !i--) {
			*out = s;
			return kernel_shape_check(k, out, NULL);
		}
	}
}

struct work {
	const struct kernel_entry *k;
	const struct kernel_shape *s;
};

static struct ssa_func *build_request(const void *ctx, struct err *e)
{
	const struct work *w = ctx;

	return kernel_build(w->k, w->s, e);
}

/*
 * Inputs of several tokens are worth their registers: with fewer waves their
 * loads are all under way at once.
 */
void kernel_options(const struct kernel_shape *s, struct cc_options *o)
{
	static const uint32_t waves[KERNEL_MAX_TOKENS + 1] = { 0, 0, 10, 8, 6 };

	cc_options_init(o);
	o->waves = waves[s->tokens];
}

bool kernel_object(struct object_cache *j, const struct kernel_entry *k,
		   const struct kernel_shape *shape, const struct cc_options *o,
		   struct cache_object *out, struct err *e)
{
	struct kernel_shape s = *shape;
	struct cc_options standard;
	struct buf what = { 0 };
	bool good;

	if (!kernel_shape_check(k, &s, e))
		return false;
	kernel_options(&s, &standard);
	kernel_describe(k, &s, &what);
	const struct object_request r = { what.data, o ? o : &standard,
					  build_request,
					  &(struct work){ k, &s } };
	good = object_cache_get(j, &r, out, e);
	buf_fini(&what);
	return good;
}

/* ------------------------------------------------------------- the pack -- */

static bool pack_kernel(struct prebuilt_writer *w, const struct kernel_entry *k,
			const struct kernel_shape *s, struct err *e)
{
	struct buf what = { 0 };
	struct cc_object obj = { 0 };
	struct cc_options o;
	struct ssa_func *f = kernel_build(k, s, e);
	bool good;

	kernel_options(s, &o);
	kernel_describe(k, s, &what);
	good = f && cc_compile(f, &o, &obj, e);
	if (good)
		prebuilt_add(w, object_key_hash(what.data, &o), obj.bytes.data,
			     obj.bytes.len);
	else
		err_wrap(e, "%s", what.data);
	cc_object_fini(&obj);
	ssa_func_free(f);
	buf_fini(&what);
	return good;
}

bool kernel_pack(struct buf *out, struct err *e)
{
	struct prebuilt_writer w = { 0 };
	struct kernel_shape s;
	bool good = true;

	for (size_t k = 0; good && k < kernel_count; k++)
		for (uint32_t i = 0;
		     good && kernel_usual(&kernel_table[k], i, &s); i++)
			good = pack_kernel(&w, &kernel_table[k], &s, e);
	good = good && prebuilt_write(&w, out, e);
	prebuilt_writer_fini(&w);
	return good;
}
