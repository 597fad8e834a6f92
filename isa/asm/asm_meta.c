/*
 * isa/asm/asm_meta.c - .amdgpu_metadata: YAML to MessagePack.
 *
 * libyaml reads the block.  What type a scalar has is not YAML's but LLVM's
 * rule, as our note is to equal LLVM's byte for byte: a number in any of C's
 * bases, a boolean, a float, else a string, quoted or not; a tag of !str, !int,
 * !bool, !float or !nil says which.  Keys are scalars, too; members are
 * written in the order of their keys' types, then values.  Three differences
 * are meant: LLVM 19 writes floats and empty strings as nil, it overlooks a
 * second document, which is an error here, and refuses an argument named n or
 * y, which is a string here.
 */
#include <ctype.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "isa/asm/asm_int.h"
#include "isa/object/object.h"

enum { MAX_NEST = 32 };

/* Scalars stand in the order in which LLVM sorts keys. */
enum node_kind {
	NODE_INT, /* with a minus sign */
	NODE_UINT,
	NODE_NIL,
	NODE_BOOL,
	NODE_FLOAT,
	NODE_STRING,
	NODE_LIST,
	NODE_MAP,
};

struct node {
	enum node_kind kind;
	const char *s;
	size_t len_bytes;
	uint64_t n; /* NODE_INT: the bits of an int64_t */
	double f;
	struct node *key; /* of a map's member */
	int n_kids;
	struct node *kid, *last, *next;
};

struct yaml {
	struct assembler *a;
	int first_line; /* of the block */
	struct arena mem;
	struct buf text;
	yaml_parser_t parser;
	yaml_event_t event; /* current */
	bool has_event;
	int depth;
};

static struct node *node_new(struct yaml *y, enum node_kind kind)
{
	struct node *n = arena_alloc(&y->mem, sizeof(*n));

	n->kind = kind;
	return n;
}

static void node_add(struct node *to, struct node *n)
{
	*(to->last ? &to->last->next : &to->kid) = n;
	to->last = n;
	to->n_kids++;
}

static struct node *yaml_error_at(struct yaml *y, const yaml_mark_t *at,
				  const char *what)
{
	asm_error_at(y->a, y->first_line + (int)at->line, (int)at->column,
		     "metadata: %s", what);
	return NULL;
}

/* An error at the current event. */
static struct node *yaml_error(struct yaml *y, const char *what)
{
	return yaml_error_at(y, &y->event.start_mark, what);
}

static bool next_event(struct yaml *y)
{
	if (y->has_event)
		yaml_event_delete(&y->event);
	y->has_event = yaml_parser_parse(&y->parser, &y->event);
	if (y->has_event)
		return true;
	if (y->parser.error == YAML_MEMORY_ERROR)
		mem_ran_out(y->text.len, MEM_HERE);
	yaml_error_at(y, &y->parser.problem_mark, y->parser.problem);
	return false;
}

/* -------------------------------------------------------------- scalars ----
 */

/* A number with its prefix: 0x, 0b, 0o or 0 before octal digits. */
static bool read_number(const char *s, uint64_t *out)
{
	int base = 10, digit;

	if (s[0] == '0' && s[1]) {
		int letter = tolower((unsigned char)s[1]);

		base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
		s += base != 8 || s[1] == 'o' ? 2 : 1;
	}
	if (!*s)
		return false;
	for (*out = 0; *s; s++) {
		digit = isdigit((unsigned char)*s) ? *s - '0' :
			isalpha((unsigned char)*s) ?
						     tolower(*s) - 'a' + 10 :
						     99;
		if (digit >= base || __builtin_mul_overflow(*out, base, out) ||
		    __builtin_add_overflow(*out, digit, out))
			return false;
	}
	return true;
}

static bool read_int(struct node *n)
{
	if (read_number(n->s, &n->n)) {
		n->kind = NODE_UINT;
		return true;
	}
	if (*n->s != '-' || !read_number(n->s + 1, &n->n) ||
	    n->n > (uint64_t)1 << 63)
		return false;
	n->n = -n->n;
	n->kind = NODE_INT;
	return true;
}

static bool read_bool(struct node *n)
{
	static const char *const words[] = { "n",     "N",    "no",    "No",
					     "NO",    "off",  "Off",   "OFF",
					     "false", "False", "FALSE", "y",
					     "Y",     "yes",  "Yes",   "YES",
					     "on",    "On",   "ON",    "true",
					     "True",  "TRUE" };
	enum { FIRST_TRUE = 11 };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(n->s, words[i])) {
			n->kind = NODE_BOOL;
			n->n = i >= FIRST_TRUE;
			return true;
		}
	return false;
}

static bool read_float(struct node *n)
{
	char *end;

	n->f = strtod(n->s, &end);
	if (*end || end == n->s)
		return false;
	n->kind = NODE_FLOAT;
	return true;
}

static const struct {
	const char *tag;
	bool (*read)(struct node *n);
	const char *refusal;
} types[] = {
	{ "!int", read_int, "no whole number of 64 bits" },
	{ "!bool", read_bool, "neither true nor false" },
	{ "!float", read_float, "no number" },
};

/* "KEY:" with nothing behind it is an empty list. */
static bool is_missing(const yaml_event_t *e)
{
	return !e->data.scalar.length && !e->data.scalar.tag &&
	       e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* The current event, a scalar. */
static struct node *read_scalar(struct yaml *y)
{
	struct node *n = node_new(y, NODE_STRING);
	const char *tag = (const char *)y->event.data.scalar.tag;
	char *copy;
	bool any = !tag || !strcmp(tag, YAML_STR_TAG) || !strcmp(tag, "!");

	n->len_bytes = y->event.data.scalar.length;
	copy = arena_alloc(&y->mem, n->len_bytes + 1);
	memcpy(copy, y->event.data.scalar.value, n->len_bytes);
	n->s = copy;
	if (is_missing(&y->event)) {
		n->kind = NODE_LIST;
		return n;
	}
	if (tag && !strcmp(tag, "!nil")) {
		n->kind = NODE_NIL;
		return n;
	}
	if (strlen(copy) == n->len_bytes) /* no NUL is quoted */
		for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
			bool wanted = tag && !strcmp(tag, types[i].tag);

			if ((any || wanted) && types[i].read(n))
				return n;
			if (wanted)
				return yaml_error(y, types[i].refusal);
		}
	return n;
}

/* ---------------------------------------------------- maps and lists ---- */

static struct node *read_node(struct yaml *y);

static int by_key(const void *a, const void *b)
{
	const struct node *x = (*(struct node *const *)a)->key;
	const struct node *y = (*(struct node *const *)b)->key;
	size_t shorter = x->len_bytes < y->len_bytes ? x->len_bytes :
						       y->len_bytes;
	int order;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	switch (x->kind) {
	case NODE_INT:
		return ((int64_t)x->n > (int64_t)y->n) -
		       ((int64_t)x->n < (int64_t)y->n);
	case NODE_UINT:
	case NODE_BOOL:
		return (x->n > y->n) - (x->n < y->n);
	case NODE_FLOAT:
		return (x->f > y->f) - (x->f < y->f);
	case NODE_STRING:
		order = memcmp(x->s, y->s, shorter);
		return order ? order :
			       (x->len_bytes > y->len_bytes) -
				       (x->len_bytes < y->len_bytes);
	default:
		return 0;
	}
}

static struct node *read_list(struct yaml *y)
{
	struct node *list = node_new(y, NODE_LIST), *one;

	for (;;) {
		if (!next_event(y))
			return NULL;
		if (y->event.type == YAML_SEQUENCE_END_EVENT)
			return list;
		one = read_node(y);
		if (!one)
			return NULL;
		node_add(list, one);
	}
}

/* What LLVM takes for no string here, it refuses. */
static bool is_text(const struct node *key)
{
	static const char *const keys[] = {
		".access",	  ".actual_access",
		".address_space", ".device_enqueue_symbol",
		".kind",	  ".language",
		".name",	  ".symbol",
		".type_name",	  ".value_kind",
		".vec_type_hint", "amdhsa.target",
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(key->s, keys[i]))
			return true;
	return false;
}

static struct node *read_member(struct yaml *y, const struct node *map)
{
	struct node *key, *value;

	if (y->event.type != YAML_SCALAR_EVENT)
		return yaml_error(y, "a key is no scalar");
	key = read_scalar(y);
	if (!key)
		return NULL;
	for (const struct node *k = map->kid; k; k = k->next) {
		struct node now = { .key = key };
		const struct node *x = k, *z = &now;

		if (!by_key(&x, &z))
			return yaml_error(y, "a key is given twice");
	}
	value = next_event(y) ? read_node(y) : NULL;
	if (!value)
		return NULL;
	value->key = key;
	if (value->s && is_text(key))
		value->kind = NODE_STRING;
	return value;
}

static struct node *read_map(struct yaml *y)
{
	struct node *map = node_new(y, NODE_MAP), *one;

	for (;;) {
		if (!next_event(y))
			return NULL;
		if (y->event.type == YAML_MAPPING_END_EVENT)
			return map;
		one = read_member(y, map);
		if (!one)
			return NULL;
		node_add(map, one);
	}
}

/* What the current event begins. */
static struct node *read_node(struct yaml *y)
{
	struct node *n;

	if (y->event.type == YAML_SCALAR_EVENT)
		return read_scalar(y);
	if (y->event.type == YAML_ALIAS_EVENT)
		return yaml_error(y, "aliases are not understood");
	if (y->depth++ >= MAX_NEST)
		return yaml_error(y, "nested too deeply");
	n = y->event.type == YAML_MAPPING_START_EVENT ? read_map(y) :
							 read_list(y);
	y->depth--;
	return n;
}

/* ---------------------------------------------------------- MessagePack ----
 */

static void pack_node(msgpack_packer *pk, const struct node *n);

static void pack_map(msgpack_packer *pk, const struct node *map)
{
	struct node **sorted = xcalloc(map->n_kids + 1, sizeof(*sorted));
	int n = 0;

	for (struct node *k = map->kid; k; k = k->next)
		sorted[n++] = k;
	qsort(sorted, n, sizeof(*sorted), by_key);
	msgpack_pack_map(pk, n);
	for (int i = 0; i < n; i++) {
		pack_node(pk, sorted[i]->key);
		pack_node(pk, sorted[i]);
	}
	free(sorted);
}

static void pack_float(msgpack_packer *pk, double f)
{
	if ((float)f == f)
		msgpack_pack_float(pk, (float)f);
	else
		msgpack_pack_double(pk, f);
}

static void pack_node(msgpack_packer *pk, const struct node *n)
{
	switch (n->kind) {
	case NODE_STRING:
		msgpack_pack_str(pk, n->len_bytes);
		msgpack_pack_str_body(pk, n->s, n->len_bytes);
		break;
	case NODE_BOOL:
		co_pack_bool(pk, n->n);
		break;
	case NODE_NIL:
		msgpack_pack_nil(pk);
		break;
	case NODE_INT:
		msgpack_pack_int64(pk, (int64_t)n->n);
		break;
	case NODE_UINT:
		msgpack_pack_uint64(pk, n->n);
		break;
	case NODE_FLOAT:
		pack_float(pk, n->f);
		break;
	case NODE_LIST:
		msgpack_pack_array(pk, n->n_kids);
		for (struct node *k = n->kid; k; k = k->next)
			pack_node(pk, k);
		break;
	case NODE_MAP:
		pack_map(pk, n);
		break;
	}
}

/* ----------------------------------------------------------------- block ----
 */

/* The block's only document. */
static struct node *read_document(struct yaml *y)
{
	struct node *n;

	if (!next_event(y) || !next_event(y))
		return NULL;
	if (y->event.type == YAML_STREAM_END_EVENT)
		return yaml_error(y, "the metadata is empty");
	if (!next_event(y))
		return NULL;
	if (y->event.type != YAML_MAPPING_START_EVENT)
		return yaml_error(y, "wanted a map");
	n = read_node(y);
	if (!n || !next_event(y) || !next_event(y))
		return NULL;
	return y->event.type == YAML_STREAM_END_EVENT ?
		       n :
		       yaml_error(y, "more than one document");
}

static bool convert_block(struct yaml *y)
{
	msgpack_packer pk;
	struct node *n;

	if (!yaml_parser_initialize(&y->parser))
		mem_ran_out(sizeof(y->parser), MEM_HERE);
	yaml_parser_set_encoding(&y->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&y->parser,
				     (const unsigned char *)y->text.data,
				     y->text.len);
	n = read_document(y);
	if (n) {
		buf_reset(&y->a->o->metadata);
		co_pack_init(&pk, &y->a->o->metadata);
		pack_node(&pk, n);
	}
	if (y->has_event)
		yaml_event_delete(&y->event);
	yaml_parser_delete(&y->parser);
	return n;
}

bool asm_metadata(struct assembler *a)
{
	struct yaml y = { .a = a, .first_line = a->line_no + 1 };
	bool ok = false;

	buf_add(&y.text, "", 0);
	for (;;) {
		if (!asm_next_line(a, true)) {
			asm_error_at(a, y.first_line - 1, -1,
				     ".end_amdgpu_metadata is missing");
			break;
		}
		if (!strncmp(isa_skip_space(a->line), ".end_amdgpu_metadata",
			     20)) {
			ok = convert_block(&y);
			break;
		}
		buf_printf(&y.text, "%s\n", a->line);
	}
	buf_fini(&y.text);
	arena_fini(&y.mem);
	return ok;
}
