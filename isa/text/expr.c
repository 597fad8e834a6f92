/*
 * isa/text/expr.c - integer expressions: one token of lookahead, precedence
 * climbing.
 */
#include <ctype.h>
#include <string.h>

#include "isa/text/text.h"

/* Characters that names begin with, and those that they go on with. */
const unsigned char isa_name_class[256] = {
	['a' ... 'z'] = ISA_NAME | ISA_NAME_START,
	['A' ... 'Z'] = ISA_NAME | ISA_NAME_START,
	['_'] = ISA_NAME | ISA_NAME_START,
	['.'] = ISA_NAME | ISA_NAME_START,
	['$'] = ISA_NAME | ISA_NAME_START,
	['?'] = ISA_NAME | ISA_NAME_START,
	['0' ... '9'] = ISA_NAME,
	['@'] = ISA_NAME,
};

enum { MAX_DEPTH = 64 }; /* of parentheses and unary operators */

struct expr {
	const char *p;
	const struct isa_expr_env *env;
	int depth;
};

/* -------------------------------------------------------------- atoms ---- */

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* "0x1f", "0b101", "017", "10", each with an ignored suffix U, L, UL, ... */
static const char *parse_number(struct expr *x, int64_t *out)
{
	const char *p = x->p, *first;
	uint64_t v = 0;
	int base = 10;

	if (p[0] == '0' && (p[1] | 32) == 'x') {
		base = 16;
		p += 2;
	} else if (p[0] == '0' && (p[1] | 32) == 'b' &&
		   (p[2] == '0' || p[2] == '1')) {
		base = 2;
		p += 2;
	} else if (p[0] == '0') {
		base = 8;
	}
	first = p;
	for (int d; (d = digit_value(*p)) < base; p++) {
		uint64_t next = v * base + d;

		if (v > UINT64_MAX / base || next < v * base)
			return "number does not fit 64 bits";
		v = next;
	}
	if (p == first)
		return "digits missing";
	if (isdigit((unsigned char)*p))
		return "digit too large for the base";
	while ((*p | 32) == 'u' || (*p | 32) == 'l')
		p++;
	if (isa_is_name(*p))
		return "malformed number";
	x->p = p;
	*out = v;
	return NULL;
}

/* "1f" and "1b": the next and the last local label of that number. */
static int local_label(const char *p)
{
	int n = 0;

	while (isdigit((unsigned char)p[n]))
		n++;
	if ((p[n] != 'f' && p[n] != 'b') || isa_is_name(p[n + 1]))
		return 0;
	return n + 1;
}

static const char *parse_symbol(struct expr *x, int len, struct isa_value *v)
{
	const char *why = "undefined symbol";

	if (!x->env || !x->env->symbol)
		return "symbols are not allowed here";
	if (!x->env->symbol(x->env->ctx, x->p, len, v, &why))
		return why;
	x->p += len;
	return NULL;
}

static const char *parse_character(struct expr *x, struct isa_value *v)
{
	const char *p = x->p + 1;
	char c = *p++;

	if (c == '\\') {
		static const char escape[] = "nt\\'\"r0bf";
		static const char means[] = "\n\t\\'\"\r\0\b\f";
		const char *at = *p ? strchr(escape, *p) : NULL;

		if (!at)
			return "unknown escape in a character";
		c = means[at - escape];
		p++;
	}
	if (!c || c == '\n' || *p != '\'')
		return "a character ends with '";
	v->n = (unsigned char)c;
	x->p = p + 1;
	return NULL;
}

static const char *parse_binary(struct expr *x, int level, struct isa_value *v);

static void fold_value(struct expr *x, struct isa_value *v)
{
	if ((v->add || v->sub) && x->env && x->env->fold)
		x->env->fold(x->env->ctx, v);
}

static const char *parse_unary(struct expr *x, struct isa_value *v);

static const char *parse_prefixed(struct expr *x, struct isa_value *v)
{
	char op = *x->p++;
	const char *why;
	int add;

	if (x->depth++ > MAX_DEPTH)
		return "expression nested too deeply";
	why = parse_unary(x, v);
	x->depth--;
	if (why || op == '+')
		return why;
	fold_value(x, v);
	if (op == '-') {
		if (v->variant)
			return "a relocated symbol cannot be negated";
		v->n = -(uint64_t)v->n;
		add = v->add;
		v->add = v->sub;
		v->sub = add;
		return NULL;
	}
	if (v->add || v->sub)
		return "this operator needs numbers";
	v->n = op == '~' ? ~v->n : !v->n;
	return NULL;
}

static const char *parse_parentheses(struct expr *x, struct isa_value *v)
{
	const char *why;

	x->p++;
	if (x->depth++ > MAX_DEPTH)
		return "expression nested too deeply";
	why = parse_binary(x, 1, v);
	x->depth--;
	if (why)
		return why;
	x->p = isa_skip_space(x->p);
	if (*x->p != ')')
		return "')' missing";
	x->p++;
	return NULL;
}

/* instprefsize(BYTES), as LLVM 22 writes it: cache lines, what the field has. */
static const char *parse_prefetch(struct expr *x, struct isa_value *v)
{
	enum { LINE_BYTES = 128, MOST_LINES = 63 };
	const char *why = parse_parentheses(x, v);

	if (why)
		return why;
	fold_value(x, v);
	if (v->add || v->sub)
		return "instprefsize() needs a number";
	v->n = v->n < 0 ? 0 : v->n / LINE_BYTES + (v->n % LINE_BYTES != 0);
	v->n = v->n > MOST_LINES ? MOST_LINES : v->n;
	return NULL;
}

static const char *parse_unary(struct expr *x, struct isa_value *v)
{
	int len = 0;

	x->p = isa_skip_space(x->p);
	memset(v, 0, sizeof(*v));
	if (isdigit((unsigned char)*x->p)) {
		len = local_label(x->p);
		return len ? parse_symbol(x, len, v) : parse_number(x, &v->n);
	}
	switch (*x->p) {
	case '-':
	case '+':
	case '~':
	case '!':
		return parse_prefixed(x, v);
	case '\'':
		return parse_character(x, v);
	case '(':
		return parse_parentheses(x, v);
	}
	if (!isa_is_name_start(*x->p))
		return "expression missing";
	while (isa_is_name(x->p[len]))
		len++;
	if (len == 12 && !strncmp(x->p, "instprefsize", 12) &&
	    *isa_skip_space(x->p + len) == '(') {
		x->p = isa_skip_space(x->p + len);
		return parse_prefetch(x, v);
	}
	return parse_symbol(x, len, v);
}

/* ---------------------------------------------------------- operators ---- */

/* One code per operator: two-character ones are both characters. */
#define OP2(a, b) ((a) << 8 | (b))

/* The operator at p, its length and precedence; 0 if there is none. */
static int operator_at(const char *p, int *len, int *level)
{
	static const struct {
		char text[3];
		uint8_t level;
	} ops[] = {
		{ "||", 1 }, { "&&", 2 }, { "==", 3 }, { "!=", 3 }, { "<>", 3 },
		{ "<=", 3 }, { ">=", 3 }, { "<<", 6 }, { ">>", 6 }, { "<", 3 },
		{ ">", 3 },  { "+", 4 },  { "-", 4 },  { "|", 5 },  { "^", 5 },
		{ "&", 5 },  { "*", 6 },  { "/", 6 },  { "%", 6 },
	};

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		const char *t = ops[i].text;

		if (p[0] != t[0] || (t[1] && p[1] != t[1]))
			continue;
		*len = t[1] ? 2 : 1;
		*level = ops[i].level;
		return t[1] ? OP2(t[0], t[1]) : t[0];
	}
	return 0;
}

static bool compare_numbers(int op, int64_t a, int64_t b)
{
	switch (op) {
	case OP2('=', '='):
		return a == b;
	case OP2('<', '='):
		return a <= b;
	case OP2('>', '='):
		return a >= b;
	case '<':
		return a < b;
	case '>':
		return a > b;
	}
	return a != b;
}

static const char *eval_numbers(int op, uint64_t a, uint64_t b, int64_t *out)
{
	switch (op) {
	case OP2('|', '|'):
		*out = a || b;
		return NULL;
	case OP2('&', '&'):
		*out = a && b;
		return NULL;
	case OP2('<', '<'):
		*out = b < 64 ? a << b : 0;
		return NULL;
	case OP2('>', '>'):
		*out = b < 64 ? a >> b : 0;
		return NULL;
	case '|':
		*out = a | b;
		return NULL;
	case '^':
		*out = a ^ b;
		return NULL;
	case '&':
		*out = a & b;
		return NULL;
	case '*':
		*out = a * b;
		return NULL;
	case '/':
	case '%':
		if (!b)
			return "division by zero";
		if (b == UINT64_MAX)
			*out = op == '/' ? -a : 0;
		else
			*out = op == '/' ? (int64_t)a / (int64_t)b :
					   (int64_t)a % (int64_t)b;
		return NULL;
	}
	*out = -(int64_t)compare_numbers(op, a, b);
	return NULL;
}

/* a += b or a -= b, symbols included. */
static const char *add_values(struct expr *x, int op, struct isa_value *a,
			      struct isa_value *b)
{
	int add = op == '+' ? b->add : b->sub;
	int sub = op == '+' ? b->sub : b->add;

	if (op == '-' && b->variant)
		return "a relocated symbol cannot be subtracted";
	if ((a->add && add) || (a->sub && sub)) {
		fold_value(x, a);
		fold_value(x, b);
		add = op == '+' ? b->add : b->sub;
		sub = op == '+' ? b->sub : b->add;
	}
	if ((a->add && add) || (a->sub && sub))
		return "more than one symbol is added or subtracted";
	a->n = op == '+' ? (uint64_t)a->n + b->n : (uint64_t)a->n - b->n;
	a->variant |= b->variant;
	a->add = a->add ? a->add : add;
	a->sub = a->sub ? a->sub : sub;
	if (a->add && a->add == a->sub && !a->variant)
		a->add = a->sub = 0;
	return NULL;
}

static const char *parse_binary(struct expr *x, int level, struct isa_value *v)
{
	const char *why = parse_unary(x, v);

	while (!why) {
		struct isa_value right;
		const char *at = x->p;
		int len, prec, op;

		x->p = isa_skip_space(x->p);
		op = operator_at(x->p, &len, &prec);
		if (!op || prec < level) {
			x->p = at;
			return NULL;
		}
		x->p += len;
		why = parse_binary(x, prec + 1, &right);
		if (why)
			return why;
		if (op == '+' || op == '-') {
			why = add_values(x, op, v, &right);
			continue;
		}
		fold_value(x, v);
		fold_value(x, &right);
		if (v->add || v->sub || right.add || right.sub)
			return "this operator needs numbers";
		why = eval_numbers(op, v->n, right.n, &v->n);
	}
	return why;
}

const char *isa_expr(const char **p, const struct isa_expr_env *env,
		     struct isa_value *out)
{
	struct expr x = { .p = *p, .env = env };
	const char *why = parse_binary(&x, 1, out);

	*p = x.p;
	return why;
}

const char *isa_expr_primary(const char **p, const struct isa_expr_env *env,
			     struct isa_value *out)
{
	struct expr x = { .p = *p, .env = env };
	const char *why = parse_unary(&x, out);

	*p = x.p;
	return why;
}
