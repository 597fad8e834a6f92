/*
 * isa/asm/asm_meta.c - .amdgpu_metadata: YAML to MessagePack.
 *
 * The subset of YAML that compilers write: block maps and lists by indentation,
 * "[a, b]" and "{}" , plain, 'single' and "double" quoted scalars.  Plain
 * integers and true/false are values, everything else is a string.  Keys are
 * written in the order of their bytes.
 */
#include <ctype.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/asm/asm_int.h"
#include "isa/object/object.h"

enum { MAX_NEST = 32 };

enum node_kind { NODE_STRING, NODE_INT, NODE_BOOL, NODE_MAP, NODE_LIST };

struct node {
	enum node_kind kind;
	const char *key; /* of a map's member */
	const char *s;
	uint64_t n;
	bool negative; /* NODE_INT: n is the bits of an int64_t */
	int n_kids;
	struct node *kid, *last, *next;
};

/* One line: where its text begins, and what it is. */
struct yline {
	char *text;
	int indent, number;
};

struct yaml {
	struct assembler *a;
	struct arena mem;
	struct yline *line;
	int n, cap, at;
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

static struct node *yaml_error(struct yaml *y, const char *what)
{
	int at = y->at < y->n ? y->at : y->n - 1;

	asm_error_at(y->a, at >= 0 ? y->line[at].number : y->a->line_no, -1,
		     "metadata: %s", what);
	return NULL;
}

/* -------------------------------------------------------------- scalars ----
 */

static struct node *parse_plain(struct yaml *y, const char *s, size_t len)
{
	struct node *n = node_new(y, NODE_STRING);
	char *copy = arena_alloc(&y->mem, len + 1), *end;
	bool minus = *s == '-';

	memcpy(copy, s, len);
	n->s = copy;
	if (!strcmp(copy, "true") || !strcmp(copy, "false")) {
		n->kind = NODE_BOOL;
		n->n = *copy == 't';
	} else if (isdigit((unsigned char)copy[minus])) {
		n->n = strtoull(copy, &end, 0);
		n->negative = minus;
		if (!*end)
			n->kind = NODE_INT;
	}
	return n;
}

/* A quoted scalar at *p. */
static struct node *parse_quoted(struct yaml *y, const char **p)
{
	struct node *n = node_new(y, NODE_STRING);
	char quote = *(*p)++;
	char *out = arena_alloc(&y->mem, strlen(*p) + 1);

	n->s = out;
	for (; **p; ++*p) {
		if (**p == quote && quote == '\'' && (*p)[1] == quote)
			++*p;
		else if (**p == quote)
			break;
		else if (**p == '\\' && quote == '"' && (*p)[1])
			++*p;
		*out++ = **p;
	}
	if (**p != quote)
		return yaml_error(y, "a quote is not closed");
	++*p;
	return n;
}

static struct node *parse_flow(struct yaml *y, const char **p);

/* Flow list: "[a, b]" after its bracket.  Flow maps are empty ones only. */
static struct node *parse_flow_list(struct yaml *y, const char **p)
{
	struct node *list = node_new(y, NODE_LIST), *one;

	*p = isa_skip_space(*p);
	if (**p == ']') {
		++*p;
		return list;
	}
	for (;;) {
		one = parse_flow(y, p);
		if (!one)
			return NULL;
		node_add(list, one);
		*p = isa_skip_space(*p);
		if (**p == ']') {
			++*p;
			return list;
		}
		if (**p != ',')
			return yaml_error(y, "',' or ']' missing");
		*p = isa_skip_space(*p + 1);
	}
}

static struct node *parse_flow(struct yaml *y, const char **p)
{
	struct node *n;
	const char *s = *p;

	if (**p == '\'' || **p == '"')
		return parse_quoted(y, p);
	if (**p == '[') {
		if (++y->depth > MAX_NEST)
			return yaml_error(y, "nested too deeply");
		++*p;
		n = parse_flow_list(y, p);
		y->depth--;
		return n;
	}
	while (*s && !strchr(",[]{}", *s))
		s++;
	if (s == *p)
		return yaml_error(y, "value missing");
	n = parse_plain(y, *p, s - *p);
	*p = s;
	return n;
}

/* Tag: "!str x" makes a string of a scalar that looks like a number. */
static const char *skip_tag(const char *s, bool *string)
{
	const char *end = s;

	*string = false;
	if (*s != '!')
		return s;
	while (*end && *end != ' ')
		end++;
	*string = end - s >= 4 && !memcmp(end - 4, "!str", 4);
	return isa_skip_space(end);
}

/* The rest of a line as a value. */
static struct node *parse_scalar(struct yaml *y, const char *s)
{
	bool string;
	size_t len = strlen(s = skip_tag(s, &string));
	struct node *n;

	while (len && isspace((unsigned char)s[len - 1]))
		len--;
	if (len == 2 && s[0] == '{' && s[1] == '}')
		return node_new(y, NODE_MAP);
	if (*s != '\'' && *s != '"' && *s != '[') {
		n = parse_plain(y, s, len);
		n->kind = string ? NODE_STRING : n->kind;
		return n;
	}
	n = parse_flow(y, &s);
	if (n && *isa_skip_space(s))
		return yaml_error(y, "unexpected text behind a value");
	return n;
}

/* --------------------------------------------------------------- blocks ----
 */

static struct node *parse_block(struct yaml *y, int indent);

/* List item "- x": the dash counts as indentation of the rest of the line. */
static void cut_dash(struct yline *l)
{
	char *p = l->text + 1;

	while (*p == ' ')
		p++;
	l->indent += p - l->text;
	l->text = p;
}

static bool is_dash(const struct yline *l)
{
	return l->text[0] == '-' && (!l->text[1] || l->text[1] == ' ');
}

static struct node *parse_block_list(struct yaml *y, int indent)
{
	struct node *list = node_new(y, NODE_LIST), *one;

	while (y->at < y->n && y->line[y->at].indent == indent &&
	       is_dash(&y->line[y->at])) {
		cut_dash(&y->line[y->at]);
		if (!*y->line[y->at].text && ++y->at == y->n)
			return yaml_error(y, "value missing behind '-'");
		one = parse_block(y, y->line[y->at].indent);
		if (!one)
			return NULL;
		node_add(list, one);
	}
	return list;
}

/* The ':' that ends a key, NULL if the line has no key. */
static char *key_end(char *p)
{
	char quote = *p == '\'' || *p == '"' ? *p : 0;

	if (quote) {
		p = strchr(p + 1, quote);
		if (!p)
			return NULL;
		p++;
	}
	for (; *p; p++)
		if (*p == ':' && (!p[1] || p[1] == ' '))
			return p;
	return NULL;
}

static struct node *parse_member(struct yaml *y, int indent)
{
	struct yline *l = &y->line[y->at];
	char *colon = key_end(l->text), *p;
	struct node *n, *key;

	if (!colon)
		return yaml_error(y, "wanted KEY: VALUE");
	*colon = 0;
	key = parse_scalar(y, l->text);
	if (!key)
		return NULL;
	for (p = colon + 1; *p == ' ';)
		p++;
	y->at++;
	if (*p) {
		y->at--;
		n = parse_scalar(y, p);
		y->at++;
	} else if (y->at < y->n && (y->line[y->at].indent > indent ||
				    (y->line[y->at].indent == indent &&
				     is_dash(&y->line[y->at])))) {
		n = parse_block(y, y->line[y->at].indent);
	} else {
		n = parse_plain(y, "", 0);
	}
	if (n)
		n->key = key->s;
	return n;
}

static struct node *parse_block_map(struct yaml *y, int indent)
{
	struct node *map = node_new(y, NODE_MAP), *one;

	while (y->at < y->n && y->line[y->at].indent == indent &&
	       !is_dash(&y->line[y->at])) {
		one = parse_member(y, indent);
		if (!one)
			return NULL;
		for (struct node *k = map->kid; k; k = k->next)
			if (!strcmp(k->key, one->key))
				return yaml_error(y, "a key is given twice");
		node_add(map, one);
	}
	return map;
}

static struct node *parse_block(struct yaml *y, int indent)
{
	struct yline *l = &y->line[y->at];
	struct node *n;

	if (y->depth++ >= MAX_NEST)
		return yaml_error(y, "nested too deeply");
	if (is_dash(l)) {
		n = parse_block_list(y, indent);
	} else if (key_end(l->text)) {
		n = parse_block_map(y, indent);
	} else {
		n = parse_scalar(y, l->text);
		y->at++;
	}
	y->depth--;
	return n;
}

/* ---------------------------------------------------------- MessagePack ----
 */

static void pack_node(msgpack_packer *pk, struct node *n);

static int by_key(const void *a, const void *b)
{
	return strcmp((*(struct node *const *)a)->key,
		      (*(struct node *const *)b)->key);
}

static void pack_map(msgpack_packer *pk, struct node *map)
{
	struct node **sorted = xcalloc(map->n_kids + 1, sizeof(*sorted));
	int n = 0;

	for (struct node *k = map->kid; k; k = k->next)
		sorted[n++] = k;
	qsort(sorted, n, sizeof(*sorted), by_key);
	msgpack_pack_map(pk, n);
	for (int i = 0; i < n; i++) {
		co_pack_string(pk, sorted[i]->key);
		pack_node(pk, sorted[i]);
	}
	free(sorted);
}

static void pack_node(msgpack_packer *pk, struct node *n)
{
	switch (n->kind) {
	case NODE_STRING:
		co_pack_string(pk, n->s);
		break;
	case NODE_BOOL:
		co_pack_bool(pk, n->n);
		break;
	case NODE_INT:
		if (n->negative)
			msgpack_pack_fix_int64(pk, n->n);
		else
			msgpack_pack_uint64(pk, n->n);
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

static void add_line(struct yaml *y, char *text)
{
	struct yline l = { text, 0, y->a->line_no };

	while (*l.text == ' ')
		l.text++;
	l.indent = l.text - text;
	if (!*l.text || *l.text == '#' || !strcmp(l.text, "---") ||
	    !strcmp(l.text, "..."))
		return;
	VEC_GROW(y->line, y->n, 1, y->cap);
	y->line[y->n++] = l;
}

static bool convert_block(struct yaml *y)
{
	msgpack_packer pk;
	struct node *n;

	if (!y->n)
		return asm_error(y->a, NULL, "the metadata is empty");
	n = parse_block(y, y->line[0].indent);
	if (!n)
		return false;
	if (y->at < y->n)
		return yaml_error(y, "wrong indentation") != NULL;
	if (n->kind != NODE_MAP)
		return yaml_error(y, "wanted a map") != NULL;
	buf_reset(&y->a->o->metadata);
	co_pack_init(&pk, &y->a->o->metadata);
	pack_node(&pk, n);
	return true;
}

bool asm_metadata(struct assembler *a)
{
	struct yaml y = { .a = a };
	int first = a->line_no;
	bool ok = false;

	for (;;) {
		if (!asm_next_line(a, true)) {
			asm_error_at(a, first, -1,
				     ".end_amdgpu_metadata is missing");
			break;
		}
		if (!strncmp(isa_skip_space(a->line), ".end_amdgpu_metadata",
			     20)) {
			ok = convert_block(&y);
			break;
		}
		add_line(&y, arena_strdup(&y.mem, a->line));
	}
	free(y.line);
	arena_fini(&y.mem);
	return ok;
}
