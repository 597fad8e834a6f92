/*
 * isa/text/parse_lex.c - operands: registers, lists of them, numbers,
 * expressions.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

bool isa_word_is(const char *s, int len, const char *word)
{
	return !strncmp(s, word, len) && !word[len];
}

bool isa_has_prefix(const char *s, int len, const char *prefix)
{
	int n = strlen(prefix);

	return len >= n && !memcmp(s, prefix, n);
}

int isa_lex_digits(const char **p)
{
	const char *s = *p;
	unsigned v = 0;

	if (*s < '0' || *s > '9')
		return -1;
	while (*s >= '0' && *s <= '9' && v < 100000)
		v = v * 10 + *s++ - '0';
	*p = s;
	return v;
}

bool isa_lex_int(const char *s, int len, int64_t *v)
{
	char text[64];
	const char *p = text;
	struct isa_value value;

	if (len <= 0 || len >= (int)sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = 0;
	if (isa_expr(&p, NULL, &value))
		return false;
	*v = value.n;
	return !*isa_skip_space(p);
}

/* ---------------------------------------------------------- registers ---- */

/* A register number in brackets: digits, or an expression. */
static int register_index(const char **p)
{
	struct isa_value v;
	const char *s = isa_skip_space(*p);
	int n = isa_lex_digits(&s);

	if (n >= 0 && (*s == ':' || *s == ']')) {
		*p = s;
		return n;
	}
	s = *p;
	if (isa_expr(&s, NULL, &v) || v.n < 0 || v.n > 1023)
		return -1;
	*p = isa_skip_space(s);
	return v.n;
}

/* The rest of a register range after its bracket: "0:3]", "0]". */
static const char *register_range(const char **p, int *lo, int *hi)
{
	*lo = *hi = register_index(p);
	if (*lo >= 0 && **p == ':') {
		++*p;
		*hi = register_index(p);
	}
	if (*lo < 0 || *hi < 0)
		return "malformed register index";
	if (**p != ']')
		return "']' missing behind the register index";
	++*p;
	return *hi < *lo ? "first register index above the second" : NULL;
}

/*
 * v0 v[0:1] v[0] s0 ttmp0.  NULL and a->kind set, NULL and no kind if it has
 * not that shape, or why not.
 */
static const char *lex_register(const char **at, struct arg *a)
{
	const char *p = *at, *why = NULL;
	int base = 0, limit = 256, lo, hi;
	uint8_t kind = ARG_VGPR;

	if (*p == 's') {
		kind = ARG_SGPR;
		limit = 106;
	} else if (*p == 't' && !strncmp(p, "ttmp", 4)) {
		kind = ARG_SGPR;
		base = ISA_R_TTMP0;
		limit = 16;
		p += 3;
	} else if (*p != 'v') {
		return NULL;
	}
	p++;
	if (*p == '[') {
		p++;
		why = register_range(&p, &lo, &hi);
		if (why)
			return why;
	} else {
		lo = hi = isa_lex_digits(&p);
		if (lo < 0)
			return NULL;
		if (*p == '.' && (p[1] == 'l' || p[1] == 'h') &&
		    !isa_is_name(p[2]) && kind == ARG_VGPR) {
			a->half = p[1];
			p += 2;
		} else if (isa_is_name(*p)) {
			return NULL;
		}
	}
	if (hi >= limit)
		return "register index out of range";
	if (hi - lo > 31)
		return "register tuple too long";
	a->kind = kind;
	a->reg = base + lo;
	a->n = hi - lo + 1;
	*at = p;
	return NULL;
}

static const struct {
	const char *name;
	uint8_t len, kind, reg, n;
} named[] = {
#define NAMED(name, kind, reg, n) \
	{ \
		name, sizeof(name) - 1, kind, reg, n \
	}
	NAMED("off", ARG_OFF, 0, 0),
	NAMED("vcc_lo", ARG_SGPR, ISA_R_VCC_LO, 1),
	NAMED("exec_lo", ARG_SGPR, ISA_R_EXEC_LO, 1),
	NAMED("vcc", ARG_SGPR, ISA_R_VCC_LO, 2),
	NAMED("null", ARG_SGPR, ISA_R_NULL, 0),
	NAMED("m0", ARG_SGPR, ISA_R_M0, 1),
	NAMED("exec", ARG_SGPR, ISA_R_EXEC_LO, 2),
	NAMED("vcc_hi", ARG_SGPR, ISA_R_VCC_HI, 1),
	NAMED("exec_hi", ARG_SGPR, ISA_R_EXEC_HI, 1),
	NAMED("src_scc", ARG_SPECIAL, ISA_R_SCC, 0),
	NAMED("scc", ARG_SPECIAL, ISA_R_SCC, 0),
	NAMED("src_shared_base", ARG_SPECIAL, ISA_R_SHARED_BASE, 0),
	NAMED("shared_base", ARG_SPECIAL, ISA_R_SHARED_BASE, 0),
	NAMED("src_shared_limit", ARG_SPECIAL, ISA_R_SHARED_LIMIT, 0),
	NAMED("shared_limit", ARG_SPECIAL, ISA_R_SHARED_LIMIT, 0),
	NAMED("src_private_base", ARG_SPECIAL, ISA_R_PRIVATE_BASE, 0),
	NAMED("private_base", ARG_SPECIAL, ISA_R_PRIVATE_BASE, 0),
	NAMED("src_private_limit", ARG_SPECIAL, ISA_R_PRIVATE_LIMIT, 0),
	NAMED("private_limit", ARG_SPECIAL, ISA_R_PRIVATE_LIMIT, 0),
	NAMED("src_vccz", ARG_SPECIAL, ISA_R_VCCZ, 0),
	NAMED("vccz", ARG_SPECIAL, ISA_R_VCCZ, 0),
	NAMED("src_execz", ARG_SPECIAL, ISA_R_EXECZ, 0),
	NAMED("execz", ARG_SPECIAL, ISA_R_EXECZ, 0),
	NAMED("src_pops_exiting_wave_id", ARG_SPECIAL, ISA_R_POPS_WAVE_ID, 0),
	NAMED("pops_exiting_wave_id", ARG_SPECIAL, ISA_R_POPS_WAVE_ID, 0),
	NAMED("src_lds_direct", ARG_SPECIAL, ISA_R_LDS_DIRECT, 0),
#undef NAMED
};

static bool lex_named(struct arg *a, const char *p, int len)
{
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		if (named[i].len != len || memcmp(p, named[i].name, len))
			continue;
		a->kind = named[i].kind;
		a->reg = named[i].reg;
		a->n = named[i].n;
		return true;
	}
	return false;
}

/* The rest of an address list after its bracket: "v0, v[2:3]]". */
static const char *lex_list(struct parser *ps, const char **at, struct arg *a)
{
	const char *p = *at, *why;

	a->kind = ARG_LIST;
	a->list = ps->n_list;
	for (;;) {
		struct arg *one = &ps->list[ps->n_list];

		if (ps->n_list == MAX_LIST)
			return "too many registers in a list";
		memset(one, 0, sizeof(*one));
		p = isa_skip_space(p);
		why = lex_register(&p, one);
		if (why)
			return why;
		if (!one->kind) {
			int len = 0;

			while (isa_is_name(p[len]))
				len++;
			if (!lex_named(one, p, len) || one->kind != ARG_SGPR)
				return "wanted a register";
			p += len;
		}
		ps->n_list++;
		a->list_n++;
		p = isa_skip_space(p);
		if (*p == ']')
			break;
		if (*p++ != ',')
			return "',' or ']' missing in a register list";
	}
	*at = p + 1;
	return NULL;
}

void isa_lex_tuple(const struct parser *ps, const struct arg *a,
		   struct arg *out)
{
	const struct arg *first = &ps->list[a->list];

	*out = *a;
	if (a->kind != ARG_LIST)
		return;
	for (int i = 0; i < a->list_n; i++)
		if (first[i].kind != first->kind || first[i].n != 1 ||
		    first[i].reg != first->reg + i || first[i].half)
			return;
	out->kind = first->kind;
	out->reg = first->reg;
	out->n = a->list_n;
}

/* ------------------------------------------------------------ numbers ---- */

/* The end of a floating-point number at p, NULL if it is none. */
static const char *float_end(const char *p)
{
	const char *s = p;
	bool hex = s[0] == '0' && (s[1] | 32) == 'x';
	bool dot = false, power = false;
	int digits = 0;

	if (hex)
		s += 2;
	for (; hex ? isxdigit((unsigned char)*s) : isdigit((unsigned char)*s);
	     s++)
		digits++;
	if (*s == '.') {
		dot = true;
		s++;
		for (; hex ? isxdigit((unsigned char)*s) :
			     isdigit((unsigned char)*s);
		     s++)
			digits++;
	}
	if (digits && (*s | 32) == (hex ? 'p' : 'e')) {
		const char *e = s + 1 + (s[1] == '-' || s[1] == '+');

		if (!isdigit((unsigned char)*e))
			return NULL;
		power = true;
		for (s = e; isdigit((unsigned char)*s); s++)
			;
	}
	if (!digits || !(hex ? power : dot || power) || isa_is_name(*s))
		return NULL;
	return s;
}

static bool lex_float(const char **at, struct arg *a)
{
	const char *p = *at;
	bool minus = *p == '-';
	const char *end;

	if (minus)
		p = isa_skip_space(p + 1);
	end = float_end(p);
	if (!end)
		return false;
	a->kind = ARG_FLOAT;
	a->d = strtod(p, NULL);
	if (minus)
		a->d = -a->d;
	*at = end;
	return true;
}

/* Any symbol: the caller of isa_parse() is asked for its value later. */
static bool some_symbol(void *ctx, const char *s, int len, struct isa_value *v,
			const char **why)
{
	bool *seen = ctx;

	(void)s;
	(void)len;
	(void)why;
	(void)v;
	*seen = true;
	return true;
}

/* The matching ')' of a call "name(...)", NULL if there is none. */
const char *isa_lex_call_end(const char *p)
{
	int depth = 0;

	for (; *p; p++) {
		if (*p == '"') {
			p = strchr(p + 1, '"');
			if (!p)
				return NULL;
		} else if (*p == '(') {
			depth++;
		} else if (*p == ')' && !--depth) {
			return p + 1;
		}
	}
	return NULL;
}

/* Plain numbers, the common case. */
static bool lex_plain_int(const char **at, struct arg *a)
{
	const char *p = *at;
	bool minus = *p == '-';
	uint64_t v = 0;
	int n = 0;

	p += minus;
	if (*p == '0' && p[1] == 'x') {
		for (p += 2; n < 16 && isxdigit((unsigned char)*p); p++, n++)
			v = v << 4 |
			    (*p <= '9' ? *p - '0' : (*p | 32) - 'a' + 10);
	} else if (*p != '0' || !isa_is_name(p[1])) {
		for (; n < 18 && *p >= '0' && *p <= '9'; p++, n++)
			v = v * 10 + *p - '0';
	}
	if (!n || (*p && *p != ','))
		return false;
	a->kind = ARG_INT;
	a->i = minus ? -v : v;
	*at = p;
	return true;
}

/* `primary`: up to the first operator, as between bars. */
const char *isa_lex_expression(const char **at, struct arg *a, bool primary)
{
	bool symbols = false;
	struct isa_expr_env env = { .symbol = some_symbol, .ctx = &symbols };
	struct isa_value v;
	const char *why;

	if (!primary && lex_plain_int(at, a))
		return NULL;
	if (lex_float(at, a))
		return NULL;
	why = primary ? isa_expr_primary(at, &env, &v) : isa_expr(at, &env, &v);
	if (why)
		return why;
	a->kind = symbols ? ARG_WORD : ARG_INT;
	a->i = v.n;
	return NULL;
}

/* ----------------------------------------------------------- operands ---- */

/* A name, and not a number such as ".5". */
static bool is_name_at(const char *p)
{
	return isa_is_name_start(*p) &&
	       !(*p == '.' && isdigit((unsigned char)p[1]));
}

bool isa_lex_call_follows(const char *p, int len)
{
	return *isa_skip_space(p + len) == '(';
}

/* A register, a name, a number or an expression, without modifiers. */
static const char *lex_plain(struct parser *ps, const char **at, struct arg *a,
			     bool primary)
{
	const char *p = *at, *why;
	int len = 0;

	a->s = p;
	why = lex_register(at, a);
	if (why)
		return why;
	if (!a->kind && *p == '[') {
		++*at;
		why = lex_list(ps, at, a);
	} else if (*p == '{') {
		const char *end = strchr(p, '}');

		a->kind = ARG_WORD;
		if (!end)
			return "'}' missing";
		*at = end + 1;
	} else if (!a->kind && is_name_at(p)) {
		while (isa_is_name(p[len]))
			len++;
		if (lex_named(a, p, len)) {
			*at = p + len;
		} else if (isa_lex_call_follows(p, len)) {
			a->kind = ARG_WORD;
			*at = isa_lex_call_end(p);
			if (!*at)
				return "')' missing";
		} else {
			why = isa_lex_expression(at, a, primary);
		}
	} else if (!a->kind) {
		why = isa_lex_expression(at, a, primary);
	}
	a->len = *at - p;
	return why;
}

/* Skips "neg(" or "abs(" at *p. */
static bool lex_call(const char **p, const char *name)
{
	const char *s;

	size_t n = strlen(name);

	if (strncmp(*p, name, n) || isa_is_name((*p)[n]))
		return false;
	s = isa_skip_space(*p + n);
	if (*s != '(')
		return false;
	*p = isa_skip_space(s + 1);
	return true;
}

static const char *close_with(const char **p, char c, const char *why)
{
	*p = isa_skip_space(*p);
	if (**p != c)
		return why;
	++*p;
	return NULL;
}

/* Unary minus is a modifier, except of a number. */
static bool minus_is_neg(const char *p)
{
	p = isa_skip_space(p + 1);
	return *p == '|' || *p == '[' || *p == '-' || is_name_at(p);
}

/* A minus that negates an operand, not one that begins an expression. */
static bool lex_minus(const char **p)
{
	const char *s = isa_skip_space(*p + 1);
	struct arg probe = { 0 };
	int len = 0;

	while (isa_is_name(s[len]))
		len++;
	lex_register(&s, &probe);
	if (!probe.kind && *s != '|' && *s != '[' &&
	    !lex_named(&probe, s, len) && !isa_lex_call_follows(s, len))
		return false;
	*p = isa_skip_space(*p + 1);
	return true;
}

/* An operand without neg and abs: "lit(1)", or plain. */
static const char *lex_value(struct parser *ps, const char **p, struct arg *a,
			     bool primary)
{
	const char *why;

	if (**p != 'l' || !lex_call(p, "lit"))
		return lex_plain(ps, p, a, primary);
	a->lit = true;
	a->s = *p;
	why = isa_lex_expression(p, a, false);
	a->len = *p - a->s;
	return why ? why : close_with(p, ')', "')' missing behind lit(");
}

const char *isa_lex_arg(struct parser *ps, const char **p, struct arg *a)
{
	bool call_neg = false, call_abs = false, bar = false;
	const char *why;

	memset(a, 0, sizeof(*a));
	if (isa_lex_is_register(*p)) {
		a->s = *p;
		why = lex_register(p, a);
		a->len = *p - a->s;
		if (why || a->kind)
			return why;
	}
	if (**p == 's' && lex_call(p, "sext")) {
		a->sext = true;
		why = lex_plain(ps, p, a, false);
		return why ? why :
			     close_with(p, ')', "')' missing behind sext(");
	}
	if (**p == 'n')
		a->neg = call_neg = lex_call(p, "neg");
	if (**p == '-' && minus_is_neg(*p)) {
		if (call_neg || *isa_skip_space(*p + 1) == '-')
			return "only one minus may stand before an operand";
		a->neg = lex_minus(p);
	}
	if (**p == 'a')
		a->abs = call_abs = lex_call(p, "abs");
	if (**p == '|' && !call_abs) {
		a->abs = bar = true;
		*p = isa_skip_space(*p + 1);
	}
	why = lex_value(ps, p, a, bar);
	if (!why && bar)
		why = close_with(p, '|', "'|' missing");
	if (!why && call_abs)
		why = close_with(p, ')', "')' missing behind abs(");
	if (!why && call_neg)
		why = close_with(p, ')', "')' missing behind neg(");
	return why;
}
