/*
 * compiler/ssa/ssa_parse.c - the text form: parsing.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/ssa/ssa_int.h"

enum { MAX_ID = 1 << 20 };

/* Values and blocks are made where they are first named, by id. */
struct ids {
	void **v;
	uint32_t n, cap;
};

struct parser {
	const char *p; /* rest of the text */
	uint32_t line;
	struct ssa_func *f;
	struct ssa_block *block; /* being filled */
	struct ids value, blocks;
	struct err *e;
};

static bool fail_here(struct parser *s, const char *what)
{
	size_t n = strcspn(s->p, "\n");

	return err_set(s->e, ERR_INPUT, "line %u: %s at '%.*s'", s->line, what,
		       (int)(n > 40 ? 40 : n), s->p);
}

/* --------------------------------------------------------------- words -- */

static void skip_blank(struct parser *s)
{
	s->p += strspn(s->p, " \t\r");
	if (*s->p == ';')
		s->p += strcspn(s->p, "\n");
}

static bool accept_word(struct parser *s, const char *word)
{
	const size_t n = strlen(word);

	skip_blank(s);
	if (strncmp(s->p, word, n) ||
	    (isalnum((unsigned char)word[n - 1]) &&
	     (isalnum((unsigned char)s->p[n]) || s->p[n] == '_')))
		return false;
	s->p += n;
	return true;
}

/* A name of letters, digits, '_' and '.', as a copy of the function's. */
static char *parse_name(struct parser *s)
{
	skip_blank(s);
	size_t n = 0;

	while (isalnum((unsigned char)s->p[n]) ||
	       (s->p[n] && strchr("_.", s->p[n])))
		n++;
	char *copy = n ? arena_printf(s->f->arena, "%.*s", (int)n, s->p) : NULL;

	s->p += n;
	if (!copy)
		fail_here(s, "wanted a name");
	return copy;
}

static bool parse_number(struct parser *s, uint64_t max, uint64_t *out)
{
	char *end;

	skip_blank(s);
	if (!isdigit((unsigned char)*s->p))
		return fail_here(s, "wanted a number");
	*out = strtoull(s->p, &end, 0);
	if (*out > max)
		return fail_here(s, "the number is too large");
	s->p = end;
	return true;
}

static bool parse_u32(struct parser *s, uint32_t max, uint32_t *out)
{
	uint64_t v;

	if (!parse_number(s, max, &v))
		return false;
	*out = (uint32_t)v;
	return true;
}

static int find_name(const char *const *names, uint32_t n, const char *text)
{
	for (uint32_t k = 0; k < n; k++)
		if (!strcmp(names[k], text))
			return (int)k;
	return -1;
}

static bool type_of(const char *text, struct ssa_type *t)
{
	const char *x = strrchr(text, 'x');
	char kind[8];
	const size_t n = x ? (size_t)(x - text) : strlen(text);

	if (n >= sizeof(kind))
		return false;
	memcpy(kind, text, n);
	kind[n] = 0;
	const int k = find_name(ssa_kind_name, SSA_KINDS, kind);
	const int lanes = x ? atoi(x + 1) : 1;

	if (k <= SSA_VOID || lanes < 1 || lanes > SSA_MAX_LANES)
		return false;
	*t = ssa_type(k, (uint32_t)lanes);
	return true;
}

static bool parse_type(struct parser *s, struct ssa_type *t)
{
	const char *text = parse_name(s);

	return text && (type_of(text, t) || fail_here(s, "no such type"));
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10;
}

static const char *parse_string(struct parser *s)
{
	struct buf b = { 0 };

	if (!accept_word(s, "\"")) {
		fail_here(s, "wanted a string");
		return NULL;
	}
	buf_adds(&b, "");
	for (; *s->p && *s->p != '"' && *s->p != '\n'; s->p++) {
		if (*s->p != '\\') {
			buf_addc(&b, *s->p);
		} else if (s->p[1] == 'x' && isxdigit((unsigned char)s->p[2]) &&
			   isxdigit((unsigned char)s->p[3])) {
			buf_addc(&b, (char)(hex_digit(s->p[2]) << 4 |
					    hex_digit(s->p[3])));
			s->p += 3;
		} else if (s->p[1] && s->p[1] != '\n') {
			buf_addc(&b, *++s->p);
		}
	}
	char *copy = arena_strdup(s->f->arena, b.data ? b.data : "");

	buf_fini(&b);
	if (accept_word(s, "\""))
		return copy;
	fail_here(s, "the string does not end");
	return NULL;
}

/* ----------------------------------------------------- values and blocks -- */

static void **id_slot(struct ids *ids, uint32_t id)
{
	while (ids->n <= id)
		vec_add(ids);
	return &ids->v[id];
}

static bool parse_value(struct parser *s, struct ssa_inst **out)
{
	uint32_t id;

	if (!accept_word(s, "%"))
		return fail_here(s, "wanted a value");
	if (!parse_u32(s, MAX_ID, &id))
		return false;
	void **slot = id_slot(&s->value, id);

	if (!*slot) {
		*slot = arena_alloc(s->f->arena, sizeof(**out));
		((struct ssa_inst *)*slot)->id = id;
	}
	*out = *slot;
	return true;
}

static bool parse_block(struct parser *s, struct ssa_block **out)
{
	uint32_t id;

	skip_blank(s);
	if (*s->p != 'b')
		return fail_here(s, "wanted a block");
	s->p++;
	if (!parse_u32(s, MAX_ID, &id))
		return false;
	void **slot = id_slot(&s->blocks, id);

	if (!*slot) {
		struct ssa_block *b = arena_alloc(s->f->arena, sizeof(*b));

		b->id = id;
		*slot = b;
	}
	*out = *slot;
	return true;
}

/* "%1, %2, ..."; 64 is more than any operation takes. */
static bool parse_values(struct parser *s, uint32_t *n, struct ssa_inst ***out)
{
	struct ssa_inst *v[64];

	*n = 0;
	do {
		if (*n == ARRAY_SIZE(v))
			return fail_here(s, "too many values");
		if (!parse_value(s, &v[(*n)++]))
			return false;
		skip_blank(s);
		/* A comma before a block belongs to the branch. */
	} while (s->p[0] == ',' && s->p[1 + strspn(s->p + 1, " \t")] == '%' &&
		 accept_word(s, ","));
	*out = arena_alloc(s->f->arena, *n * sizeof(**out));
	memcpy(*out, v, *n * sizeof(*v));
	return true;
}

static bool parse_edge(struct parser *s, struct ssa_edge *e)
{
	if (!parse_block(s, &e->to))
		return false;
	if (!accept_word(s, "("))
		return true;
	return parse_values(s, &e->n_args, &e->arg) &&
	       (accept_word(s, ")") || fail_here(s, "wanted )"));
}

/* -------------------------------------------------------- instructions -- */

static bool parse_flag(struct parser *s, struct ssa_inst *i)
{
	for (uint32_t k = 0; k < SSA_FLAG_BITS; k++)
		if (accept_word(s, ssa_flag_name[k])) {
			i->flags |= (uint16_t)(1u << k);
			return true;
		}
	return fail_here(s, "wanted a flag");
}

static bool parse_align(struct parser *s, struct ssa_inst *i)
{
	uint32_t bytes;

	if (!parse_u32(s, 1 << 16, &bytes))
		return false;
	if (!bytes || bytes & (bytes - 1))
		return fail_here(s, "wanted a power of two before");
	i->align = (uint8_t)__builtin_ctz(bytes);
	return true;
}

static bool parse_offset(struct parser *s, struct ssa_inst *i)
{
	char *end;
	const long v = strtol(s->p, &end, 0);

	if (end == s->p || v < INT32_MIN || v > INT32_MAX)
		return fail_here(s, "wanted an offset");
	i->off = (int32_t)v;
	s->p = end;
	return true;
}

static bool parse_tail(struct parser *s, struct ssa_inst *i)
{
	for (;;) {
		skip_blank(s);
		bool good;

		if (!*s->p || *s->p == '\n')
			return true;
		if (*s->p == '+' || *s->p == '-')
			good = parse_offset(s, i);
		else if (accept_word(s, "!"))
			good = parse_u32(s, UINT32_MAX, &i->line);
		else if (accept_word(s, "align"))
			good = parse_align(s, i);
		else
			good = parse_flag(s, i);
		if (!good)
			return false;
	}
}

/* "icmp.slt": the operation, and sub. */
static bool op_name(struct parser *s, uint16_t *op, uint8_t *sub)
{
	char *text = parse_name(s);

	if (!text)
		return false;
	char *dot = strchr(text, '.');

	if (dot)
		*dot++ = 0;
	for (*op = 0; *op < SSA_OPS; ++*op)
		if (!strcmp(ssa_op_info(*op)->name, text))
			break;
	if (*op == SSA_OPS || *op == SSA_param)
		return fail_here(s, "no such operation before");
	uint32_t n;
	const char *const *names = ssa_sub_names(*op, &n);
	const int k = names && dot ? find_name(names, n, dot) : -1;

	if ((names != NULL) != (dot != NULL) || (names && k < 0))
		return fail_here(s, "wrong kind of the operation before");
	*sub = (uint8_t)(k < 0 ? 0 : k);
	return true;
}

static bool parse_edges(struct parser *s, struct ssa_inst *i)
{
	for (uint32_t k = 0; k < ssa_n_edges(i); k++) {
		if (i->op == SSA_branch && !accept_word(s, ","))
			return fail_here(s, "wanted two blocks");
		if (!parse_edge(s, &i->edge[k]))
			return false;
	}
	if (i->op == SSA_branch && accept_word(s, "merge"))
		return parse_block(s, &i->merge);
	return true;
}

static bool parse_inst(struct parser *s)
{
	struct ssa_inst *i;
	uint16_t op = 0;
	uint8_t sub = 0;

	skip_blank(s);
	const bool has_result = *s->p == '%';

	if (!s->block)
		return fail_here(s, "an instruction before the first block");
	if (has_result) {
		if (!parse_value(s, &i))
			return false;
		if (i->block)
			return fail_here(s,
					 "the value before is defined twice");
		if (!accept_word(s, "="))
			return fail_here(s, "wanted =");
	} else {
		i = arena_alloc(s->f->arena, sizeof(*i));
		i->id = UINT32_MAX; /* numbered at the end */
	}
	if (!op_name(s, &op, &sub))
		return false;
	i->op = op;
	i->sub = sub;
	ssa_append(s->block, i);
	if (has_result && !parse_type(s, &i->type))
		return false;
	skip_blank(s);
	if (*s->p == '%' && !parse_values(s, &i->n_args, &i->arg))
		return false;
	if (ssa_op_has_imm(op) && !parse_number(s, UINT64_MAX, &i->imm))
		return false;
	return parse_edges(s, i) && parse_tail(s, i);
}

static bool parse_param(struct parser *s, struct ssa_block *b)
{
	struct ssa_inst *v;
	struct ssa_type t;

	if (!parse_value(s, &v))
		return false;
	if (v->block)
		return fail_here(s, "the value before is defined twice");
	if (!parse_type(s, &t))
		return false;
	struct ssa_inst *p = ssa_block_param(s->f, b, t);

	/* The value may have been named already: it takes the place. */
	const uint32_t id = v->id;

	*v = *p;
	v->id = id;
	b->param[b->n_params - 1] = v;
	return true;
}

static bool block_start(struct parser *s)
{
	struct ssa_block *b;

	if (!parse_block(s, &b))
		return false;
	if (b->first || b->n_params || b->prev || b == s->f->first)
		return fail_here(s, "the block before is defined twice");
	b->prev = s->f->last;
	*(s->f->last ? &s->f->last->next : &s->f->first) = b;
	s->f->last = s->block = b;
	if (accept_word(s, "(")) {
		do
			if (!parse_param(s, b))
				return false;
		while (accept_word(s, ","));
		if (!accept_word(s, ")"))
			return fail_here(s, "wanted )");
	}
	return accept_word(s, ":") || fail_here(s, "wanted :");
}

/* -------------------------------------------------------------- header -- */

static bool parse_kernel(struct parser *s)
{
	s->f->name = parse_name(s);
	if (!s->f->name)
		return false;
	if (accept_word(s, "group"))
		for (int k = 0; k < 3; k++)
			if (!parse_u32(s, 1024, &s->f->group[k]))
				return false;
	if (accept_word(s, "wave") && !parse_u32(s, 64, &s->f->wave))
		return false;
	return !accept_word(s, "waves") || parse_u32(s, 16, &s->f->waves);
}

static bool parse_arg(struct parser *s)
{
	const char *n = parse_name(s);
	struct ssa_type t;

	if (!n || !parse_type(s, &t))
		return false;
	if (s->f->n_args == SSA_MAX_ARGS)
		return fail_here(s, "too many arguments");
	const uint32_t k = ssa_arg_add(s->f, n, t);
	struct ssa_arg *a = &s->f->arg[k];

	skip_blank(s);
	a->noalias = accept_word(s, "noalias");
	a->readonly = accept_word(s, "readonly");
	if (!a->noalias && !a->readonly && isalpha((unsigned char)*s->p)) {
		if (!parse_type(s, &a->elem))
			return false;
		a->noalias = accept_word(s, "noalias");
		a->readonly = accept_word(s, "readonly");
	}
	return true;
}

static bool parse_lds(struct parser *s)
{
	const char *n = parse_name(s);
	uint32_t size, bytes = 16;

	if (!n || !parse_u32(s, 1 << 20, &size))
		return false;
	if (accept_word(s, "align") && !parse_u32(s, 1 << 16, &bytes))
		return false;
	ssa_lds_add(s->f, n, size, bytes);
	return true;
}

static bool parse_line(struct parser *s)
{
	skip_blank(s);
	if (!*s->p || *s->p == '\n')
		return true;
	if (s->p[0] == 'b' && isdigit((unsigned char)s->p[1]))
		return block_start(s);
	if (!s->block) {
		if (accept_word(s, "kernel"))
			return parse_kernel(s);
		if (accept_word(s, "arg"))
			return parse_arg(s);
		if (accept_word(s, "lds"))
			return parse_lds(s);
		if (accept_word(s, "file"))
			return (s->f->file = parse_string(s)) != NULL;
		if (accept_word(s, "format")) {
			const char *text = parse_string(s);

			if (text)
				ssa_format_add(s->f, text);
			return text;
		}
	}
	return parse_inst(s);
}

/* ----------------------------------------------------------------- end -- */

static bool all_defined(struct parser *s)
{
	for (uint32_t k = 0; k < s->value.n; k++) {
		const struct ssa_inst *v = s->value.v[k];

		if (v && !v->block)
			return err_set(s->e, ERR_INPUT,
				       "%%%u is used and not defined", k);
		if (v)
			s->f->n_insts = k + 1;
	}
	for (uint32_t k = 0; k < s->blocks.n; k++) {
		const struct ssa_block *b = s->blocks.v[k];

		if (b && !b->prev && b != s->f->first)
			return err_set(s->e, ERR_INPUT,
				       "b%u is used and not defined", k);
		if (b)
			s->f->n_blocks = k + 1;
	}
	return true;
}

static void number_the_rest(struct ssa_func *f)
{
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if (i->id == UINT32_MAX)
				i->id = f->n_insts++;
}

static bool parse_all(struct parser *s)
{
	for (s->line = 1; *s->p; s->line++) {
		if (!parse_line(s))
			return false;
		skip_blank(s);
		if (*s->p && *s->p != '\n')
			return fail_here(s, "too much");
		s->p += *s->p == '\n';
	}
	return all_defined(s);
}

struct ssa_func *ssa_parse(const char *text, struct err *e)
{
	struct parser s = { .p = text, .f = ssa_func_new("kernel"), .e = e };
	const bool good = parse_all(&s);

	free(s.value.v);
	free(s.blocks.v);
	if (!good) {
		ssa_func_free(s.f);
		return NULL;
	}
	number_the_rest(s.f);
	return s.f;
}
