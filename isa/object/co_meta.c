/*
 * isa/object/co_meta.c - the metadata of a code object: a MessagePack map in a
 * note.
 *
 * The map is `amdhsa.version`, `amdhsa.target`, `amdhsa.kernels` (one map per
 * kernel, its arguments in `.args`).  msgpack-c unpacks it.  That library
 * reserves memory for as many elements as a header claims, so the claims are
 * checked against the bytes that are there before it sees them.
 */
#include "isa/object/co_int.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16 /* compilers use 4 */

static const char *const kind_name[CO_ARG_N] = {
	[CO_ARG_BY_VALUE] = "by_value",
	[CO_ARG_GLOBAL_BUFFER] = "global_buffer",
	[CO_ARG_DYNAMIC_SHARED_POINTER] = "dynamic_shared_pointer",
	[CO_ARG_SAMPLER] = "sampler",
	[CO_ARG_IMAGE] = "image",
	[CO_ARG_PIPE] = "pipe",
	[CO_ARG_QUEUE] = "queue",
	[CO_ARG_HIDDEN_GLOBAL_OFFSET_X] = "hidden_global_offset_x",
	[CO_ARG_HIDDEN_GLOBAL_OFFSET_Y] = "hidden_global_offset_y",
	[CO_ARG_HIDDEN_GLOBAL_OFFSET_Z] = "hidden_global_offset_z",
	[CO_ARG_HIDDEN_NONE] = "hidden_none",
	[CO_ARG_HIDDEN_BLOCK_COUNT_X] = "hidden_block_count_x",
	[CO_ARG_HIDDEN_BLOCK_COUNT_Y] = "hidden_block_count_y",
	[CO_ARG_HIDDEN_BLOCK_COUNT_Z] = "hidden_block_count_z",
	[CO_ARG_HIDDEN_GROUP_SIZE_X] = "hidden_group_size_x",
	[CO_ARG_HIDDEN_GROUP_SIZE_Y] = "hidden_group_size_y",
	[CO_ARG_HIDDEN_GROUP_SIZE_Z] = "hidden_group_size_z",
	[CO_ARG_HIDDEN_REMAINDER_X] = "hidden_remainder_x",
	[CO_ARG_HIDDEN_REMAINDER_Y] = "hidden_remainder_y",
	[CO_ARG_HIDDEN_REMAINDER_Z] = "hidden_remainder_z",
	[CO_ARG_HIDDEN_GRID_DIMS] = "hidden_grid_dims",
	[CO_ARG_HIDDEN_PRINTF_BUFFER] = "hidden_printf_buffer",
	[CO_ARG_HIDDEN_HOSTCALL_BUFFER] = "hidden_hostcall_buffer",
	[CO_ARG_HIDDEN_MULTIGRID_SYNC_ARG] = "hidden_multigrid_sync_arg",
	[CO_ARG_HIDDEN_HEAP_V1] = "hidden_heap_v1",
	[CO_ARG_HIDDEN_DEFAULT_QUEUE] = "hidden_default_queue",
	[CO_ARG_HIDDEN_COMPLETION_ACTION] = "hidden_completion_action",
	[CO_ARG_HIDDEN_DYNAMIC_LDS_SIZE] = "hidden_dynamic_lds_size",
	[CO_ARG_HIDDEN_PRIVATE_BASE] = "hidden_private_base",
	[CO_ARG_HIDDEN_SHARED_BASE] = "hidden_shared_base",
	[CO_ARG_HIDDEN_QUEUE_PTR] = "hidden_queue_ptr",
	[CO_ARG_UNKNOWN] = "unknown",
};

static const char *const space_name[] = {
	[CO_SPACE_PRIVATE] = "private",	  [CO_SPACE_GLOBAL] = "global",
	[CO_SPACE_CONSTANT] = "constant", [CO_SPACE_LOCAL] = "local",
	[CO_SPACE_GENERIC] = "generic",	  [CO_SPACE_REGION] = "region",
};

const char *co_arg_kind_name(enum co_arg_kind kind)
{
	return kind >= 0 && kind < CO_ARG_N ? kind_name[kind] : "unknown";
}

bool co_arg_is_hidden(const struct co_arg *a)
{
	return !strncmp(a->kind_name, "hidden_", 7);
}

/* ---- the check before unpacking ----------------------------------------- */

struct mp {
	const uint8_t *p;
	size_t len, at;
};

/* Big-endian number of n bytes. */
static bool mp_number(struct mp *m, unsigned n, uint64_t *out)
{
	if (m->len - m->at < n)
		return false;
	*out = 0;
	while (n--)
		*out = *out << 8 | m->p[m->at++];
	return true;
}

static bool mp_skip(struct mp *m, uint64_t n)
{
	if (n > m->len - m->at)
		return false;
	m->at += (size_t)n;
	return true;
}

/*
 * What follows a MessagePack head byte: a length field, bytes that follow it
 * at once, or elements.  `payload` is bytes on top of the length.
 */
struct mp_head {
	uint8_t first, last;
	uint8_t length_bytes; /* size of the length field, 0 = in the head */
	uint8_t payload;
	uint8_t mask;	  /* of the length in the head */
	uint8_t elements; /* elements per unit of length; 0 = bytes */
};

static const struct mp_head mp_heads[] = {
	/* first last  len pay mask  elements */
	{ 0x00, 0x7f, 0, 0, 0x00, 0 }, /* positive fixint */
	{ 0x80, 0x8f, 0, 0, 0x0f, 2 }, /* fixmap */
	{ 0x90, 0x9f, 0, 0, 0x0f, 1 }, /* fixarray */
	{ 0xa0, 0xbf, 0, 0, 0x1f, 0 }, /* fixstr */
	{ 0xc0, 0xc0, 0, 0, 0x00, 0 }, /* nil */
	{ 0xc2, 0xc3, 0, 0, 0x00, 0 }, /* false, true */
	{ 0xc4, 0xc4, 1, 0, 0x00, 0 }, /* bin 8, 16, 32 */
	{ 0xc5, 0xc5, 2, 0, 0x00, 0 },
	{ 0xc6, 0xc6, 4, 0, 0x00, 0 },
	{ 0xca, 0xca, 0, 4, 0x00, 0 }, /* float 32, 64 */
	{ 0xcb, 0xcb, 0, 8, 0x00, 0 },
	{ 0xcc, 0xcc, 0, 1, 0x00, 0 }, /* uint 8, 16, 32, 64 */
	{ 0xcd, 0xcd, 0, 2, 0x00, 0 },
	{ 0xce, 0xce, 0, 4, 0x00, 0 },
	{ 0xcf, 0xcf, 0, 8, 0x00, 0 },
	{ 0xd0, 0xd0, 0, 1, 0x00, 0 }, /* int 8, 16, 32, 64 */
	{ 0xd1, 0xd1, 0, 2, 0x00, 0 },
	{ 0xd2, 0xd2, 0, 4, 0x00, 0 },
	{ 0xd3, 0xd3, 0, 8, 0x00, 0 },
	{ 0xd9, 0xd9, 1, 0, 0x00, 0 }, /* str 8, 16, 32 */
	{ 0xda, 0xda, 2, 0, 0x00, 0 },
	{ 0xdb, 0xdb, 4, 0, 0x00, 0 },
	{ 0xdc, 0xdc, 2, 0, 0x00, 1 }, /* array 16, 32 */
	{ 0xdd, 0xdd, 4, 0, 0x00, 1 },
	{ 0xde, 0xde, 2, 0, 0x00, 2 }, /* map 16, 32 */
	{ 0xdf, 0xdf, 4, 0, 0x00, 2 },
	{ 0xe0, 0xff, 0, 0, 0x00, 0 }, /* negative fixint */
};

static const struct mp_head *mp_find_head(uint8_t byte)
{
	for (size_t i = 0; i < ARRAY_SIZE(mp_heads); i++)
		if (byte >= mp_heads[i].first && byte <= mp_heads[i].last)
			return &mp_heads[i];
	return NULL; /* ext types (0xc1, 0xc7..) are refused */
}

/* One head and its own bytes; *elements follow it. */
static bool mp_one(struct mp *m, uint64_t *elements)
{
	const struct mp_head *h;
	uint64_t n, byte;

	if (!mp_number(m, 1, &byte))
		return false;
	h = mp_find_head((uint8_t)byte);
	if (!h)
		return false;
	n = byte & h->mask;
	if (h->length_bytes && !mp_number(m, h->length_bytes, &n))
		return false;
	*elements = n * h->elements;
	/* Every element has one byte at least. */
	return h->elements ? *elements <= m->len - m->at :
			     mp_skip(m, n + h->payload);
}

/* Exactly one well-formed value of limited depth? */
static bool mp_check(const void *data, size_t len, size_t *at)
{
	struct mp m = { data, len, 0 };
	uint64_t left[MAX_DEPTH] = { 1 }, n;
	int depth = 0;

	while (depth >= 0) {
		*at = m.at;
		if (!left[depth]) {
			depth--;
			continue;
		}
		left[depth]--;
		if (!mp_one(&m, &n) || (n && depth + 1 == MAX_DEPTH))
			return false;
		if (n)
			left[++depth] = n;
	}
	return m.at == len;
}

/* ---- reading ------------------------------------------------------------ */

static bool str_is(const msgpack_object *o, const char *s)
{
	return o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(s) &&
	       !memcmp(o->via.str.ptr, s, o->via.str.size);
}

/* The value of a key, NULL when it is absent. */
static const msgpack_object *map_get(const msgpack_object *map, const char *key)
{
	for (uint32_t i = 0; i < map->via.map.size; i++)
		if (str_is(&map->via.map.ptr[i].key, key))
			return &map->via.map.ptr[i].val;
	return NULL;
}

/* Which map is being read, for messages. */
struct place {
	struct arena *mem;
	const msgpack_object *map;
	const char *what;
};

static char *copy_str(struct arena *mem, const msgpack_object *v)
{
	char *s = arena_alloc(mem, (size_t)v->via.str.size + 1);

	memcpy(s, v->via.str.ptr, v->via.str.size);
	return s;
}

/* Copy of a string; "" when absent. */
static bool get_str(const struct place *p, const char *key, const char **out,
		    struct err *e)
{
	const msgpack_object *v = map_get(p->map, key);

	*out = "";
	if (!v)
		return true;
	if (v->type != MSGPACK_OBJECT_STR ||
	    !co_text_ok(v->via.str.ptr, v->via.str.size))
		return err_set(e, ERR_INPUT,
			       "metadata: %s: %s is no string of printable "
			       "UTF-8",
			       p->what, key);
	*out = copy_str(p->mem, v);
	return true;
}

/* 0 when absent. */
static bool get_u32(const struct place *p, const char *key, uint32_t max,
		    uint32_t *out, struct err *e)
{
	const msgpack_object *v = map_get(p->map, key);

	*out = 0;
	if (!v)
		return true;
	if (v->type != MSGPACK_OBJECT_POSITIVE_INTEGER || v->via.u64 > max)
		return err_set(e, ERR_INPUT,
			       "metadata: %s: %s is no number of 0..%u",
			       p->what, key, max);
	*out = (uint32_t)v->via.u64;
	return true;
}

/* false when absent; compilers write true or 1. */
static bool get_bool(const struct place *p, const char *key)
{
	const msgpack_object *v = map_get(p->map, key);

	return v &&
	       ((v->type == MSGPACK_OBJECT_BOOLEAN && v->via.boolean) ||
		(v->type == MSGPACK_OBJECT_POSITIVE_INTEGER && v->via.u64));
}

static bool get_u32s(const struct place *p, const char *key, uint32_t *out,
		     uint32_t n, struct err *e)
{
	const msgpack_object *v = map_get(p->map, key);

	if (!v)
		return true;
	if (v->type != MSGPACK_OBJECT_ARRAY || v->via.array.size != n)
		return err_set(e, ERR_INPUT,
			       "metadata: %s: %s is no array of %u numbers",
			       p->what, key, n);
	for (uint32_t i = 0; i < n; i++) {
		const msgpack_object *o = &v->via.array.ptr[i];

		if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		    o->via.u64 > UINT32_MAX)
			return err_set(e, ERR_INPUT,
				       "metadata: %s: %s[%u] is no number of "
				       "0..2^32-1",
				       p->what, key, i);
		out[i] = (uint32_t)o->via.u64;
	}
	return true;
}

/* An array of maps of at most `max`; NULL when absent (then *n is 0). */
static bool get_maps(const struct place *p, const char *key, uint32_t max,
		     const msgpack_object **out, uint32_t *n, struct err *e)
{
	const msgpack_object *v = map_get(p->map, key);

	*out = NULL;
	*n = 0;
	if (!v)
		return true;
	if (v->type != MSGPACK_OBJECT_ARRAY || v->via.array.size > max)
		return err_set(e, ERR_INPUT,
			       "metadata: %s: %s is no array of at most %u",
			       p->what, key, max);
	for (uint32_t i = 0; i < v->via.array.size; i++)
		if (v->via.array.ptr[i].type != MSGPACK_OBJECT_MAP)
			return err_set(e, ERR_INPUT,
				       "metadata: %s: %s[%u] is no map",
				       p->what, key, i);
	*out = v->via.array.ptr;
	*n = v->via.array.size;
	return true;
}

static int find_name(const char *const *names, int n, const char *s)
{
	for (int i = 0; i < n; i++)
		if (names[i] && !strcmp(names[i], s))
			return i;
	return -1;
}

/* What an argument cannot be placed without. */
static bool has_place(const struct place *p, struct err *e)
{
	static const char *const needed[] = { ".offset", ".size",
					      ".value_kind" };

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!map_get(p->map, needed[i]))
			return err_set(e, ERR_INPUT, "metadata: %s: no %s",
				       p->what, needed[i]);
	return true;
}

static bool read_arg(const struct place *p, struct co_arg *a, struct err *e)
{
	const char *space;
	int i;

	if (!has_place(p, e))
		return false;
	if (!get_str(p, ".name", &a->name, e) ||
	    !get_str(p, ".type_name", &a->type_name, e) ||
	    !get_str(p, ".value_kind", &a->kind_name, e) ||
	    !get_str(p, ".address_space", &space, e) ||
	    !get_u32(p, ".offset", CO_MAX_KERNARG_BYTES, &a->offset, e) ||
	    !get_u32(p, ".size", CO_MAX_KERNARG_BYTES, &a->size, e) ||
	    !get_u32(p, ".pointee_align", 1u << 30, &a->pointee_align, e))
		return false;
	i = find_name(kind_name, CO_ARG_UNKNOWN, a->kind_name);
	a->kind = i < 0 ? CO_ARG_UNKNOWN : (enum co_arg_kind)i;
	i = find_name(space_name, ARRAY_SIZE(space_name), space);
	a->space = i < 0 ? CO_SPACE_NONE : (enum co_space)i;
	a->is_const = get_bool(p, ".is_const");
	a->is_restrict = get_bool(p, ".is_restrict");
	a->is_volatile = get_bool(p, ".is_volatile");
	return true;
}

static bool read_args(struct co_reader *r, const struct place *p,
		      struct co_kernel *k, struct err *e)
{
	const msgpack_object *maps;
	struct co_arg *args;
	uint32_t end = 0;

	if (!get_maps(p, ".args", CO_MAX_ARGS - r->n_args, &maps, &k->n_args,
		      e))
		return false;
	r->n_args += k->n_args;
	args = arena_alloc(p->mem, (k->n_args + 1) * sizeof(*args));
	k->args = args;
	for (uint32_t i = 0; i < k->n_args; i++) {
		struct co_arg *a = &args[i];
		struct place at = *p;

		at.map = &maps[i];
		if (!read_arg(&at, a, e))
			return err_wrap(e, "argument %u", i);
		if (a->offset < end || a->offset + a->size > k->kernarg_bytes)
			return err_set(
				e, ERR_INPUT,
				"metadata: %s: argument %u, %u bytes at "
				"%u, overlaps the one before it or leaves "
				"the %u bytes of arguments",
				p->what, i, a->size, a->offset,
				k->kernarg_bytes);
		end = a->offset + a->size;
		k->n_user_args += !co_arg_is_hidden(a);
	}
	return true;
}

static bool read_numbers(const struct place *p, struct co_kernel *k,
			 struct err *e)
{
	const struct {
		const char *key;
		uint32_t max, *out;
	} field[] = {
		{ ".kernarg_segment_size", CO_MAX_KERNARG_BYTES,
		  &k->kernarg_bytes },
		{ ".kernarg_segment_align", 4096, &k->kernarg_align },
		{ ".group_segment_fixed_size", UINT32_MAX,
		  &k->group_segment_bytes },
		{ ".private_segment_fixed_size", UINT32_MAX,
		  &k->private_segment_bytes },
		{ ".wavefront_size", 64, &k->wave_size },
		{ ".sgpr_count", 65536, &k->sgpr_count },
		{ ".vgpr_count", 65536, &k->vgpr_count },
		{ ".sgpr_spill_count", UINT32_MAX, &k->sgpr_spills },
		{ ".vgpr_spill_count", UINT32_MAX, &k->vgpr_spills },
		{ ".max_flat_workgroup_size", UINT32_MAX,
		  &k->max_flat_workgroup_size },
	};

	for (size_t i = 0; i < ARRAY_SIZE(field); i++)
		if (!get_u32(p, field[i].key, field[i].max, field[i].out, e))
			return false;
	if (!k->wave_size)
		k->wave_size = (uint32_t)co_descriptor_wave_size(&k->desc);
	if (k->wave_size != (uint32_t)co_descriptor_wave_size(&k->desc))
		return err_set(e, ERR_INPUT,
			       "metadata: %s: waves of %u lanes, but the "
			       "descriptor says %d",
			       p->what, k->wave_size,
			       co_descriptor_wave_size(&k->desc));
	return get_u32s(p, ".reqd_workgroup_size", k->reqd_workgroup_size, 3,
			e) &&
	       get_u32s(p, ".language_version", k->language_version, 2, e);
}

static int compare_symbol(const void *key, const void *elem)
{
	return strcmp(key, ((const struct co_kernel *)elem)->symbol);
}

static bool read_kernel(struct co_reader *r, const msgpack_object *map,
			struct err *e)
{
	struct place p = { &r->co->mem, map, "a kernel" };
	struct co_kernel *k;
	const char *symbol, *name;

	if (!get_str(&p, ".symbol", &symbol, e) ||
	    !get_str(&p, ".name", &name, e))
		return false;
	k = bsearch(symbol, r->kernel, r->co->n_kernels, sizeof(*k),
		    compare_symbol);
	if (!k)
		return err_set(
			e, ERR_INPUT,
			"metadata: kernel %s (symbol %s): the file has no "
			"such symbol",
			*name ? name : "without a name",
			*symbol ? symbol : "missing");
	p.what = k->name;
	if (k->has_metadata)
		return err_set(e, ERR_INPUT, "metadata: kernel %s twice",
			       k->name);
	k->has_metadata = true;
	k->uses_dynamic_stack = get_bool(&p, ".uses_dynamic_stack");
	k->workgroup_processor_mode = get_bool(&p, ".workgroup_processor_mode");
	return get_str(&p, ".language", &k->language, e) &&
	       read_numbers(&p, k, e) && read_args(r, &p, k, e);
}

/* Formats may hold any byte but NUL, so these are not looked at. */
static bool read_formats(const struct place *p, struct co *co, struct err *e)
{
	const msgpack_object *v = map_get(p->map, "amdhsa.printf");
	const char **out;

	if (!v)
		return true;
	if (v->type != MSGPACK_OBJECT_ARRAY ||
	    v->via.array.size > CO_MAX_FORMATS)
		return err_set(e, ERR_INPUT,
			       "metadata: amdhsa.printf is no array of at most "
			       "%u", CO_MAX_FORMATS);
	out = arena_alloc(p->mem, (v->via.array.size + 1) * sizeof(*out));
	for (uint32_t i = 0; i < v->via.array.size; i++) {
		const msgpack_object *o = &v->via.array.ptr[i];

		if (o->type != MSGPACK_OBJECT_STR)
			return err_set(e, ERR_INPUT,
				       "metadata: amdhsa.printf[%u] is no "
				       "string", i);
		out[i] = copy_str(p->mem, o);
	}
	co->printf_formats = out;
	co->n_printf_formats = v->via.array.size;
	return true;
}

static bool read_root(struct co_reader *r, const msgpack_object *root,
		      struct err *e)
{
	struct place p = { &r->co->mem, root, "the object" };
	const msgpack_object *maps;
	uint32_t n;

	if (root->type != MSGPACK_OBJECT_MAP)
		return err_set(e, ERR_INPUT, "metadata: not a map");
	if (!get_str(&p, "amdhsa.target", &r->co->target, e) ||
	    !get_str(&p, "t0.costs", &r->co->costs, e) ||
	    !read_formats(&p, r->co, e) ||
	    !get_maps(&p, "amdhsa.kernels", CO_MAX_KERNELS, &maps, &n, e))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!read_kernel(r, &maps[i], e))
			return false;
	r->co->has_metadata = true;
	return true;
}

bool co_meta_read(struct co_reader *r, const void *data, size_t len,
		  struct err *e)
{
	msgpack_unpacked u;
	size_t at = 0;
	bool ok;

	if (!mp_check(data, len, &at))
		return err_set(e, ERR_INPUT,
			       "metadata: malformed MessagePack at byte %zu of "
			       "%zu (or nested deeper than %d)",
			       at, len, MAX_DEPTH);
	msgpack_unpacked_init(&u);
	at = 0;
	if (msgpack_unpack_next(&u, data, len, &at) != MSGPACK_UNPACK_SUCCESS)
		ok = err_set(e, ERR_INPUT,
			     "metadata: MessagePack stops at byte %zu of %zu",
			     at, len);
	else
		ok = read_root(r, &u.data, e);
	msgpack_unpacked_destroy(&u);
	r->co->metadata = data;
	r->co->metadata_bytes = len;
	return ok;
}
