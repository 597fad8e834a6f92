/*
 * isa/parse.c - one line of LLVM's syntax to struct isa_inst.
 *
 * The line is cut into a mnemonic, operands and modifiers once; then each form
 * that the mnemonic allows is tried, shortest first, until one takes all of
 * them.  A form is tried by filling the fields of its format slot by slot, the
 * inverse of isa/decode.c; the result is encoded and decoded again, so that
 * what the decoder refuses cannot be assembled.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/isa.h"

enum { MAX_ARGS = 16, MAX_MODS = 16 };

enum arg_kind {
	ARG_NONE,
	ARG_VGPR,
	ARG_SGPR,	/* also VCC, EXEC, M0, NULL, TTMP */
	ARG_SPECIAL,	/* src_scc, src_shared_base, ... */
	ARG_INT,
	ARG_FLOAT,
	ARG_OFF,
	ARG_LIST,	/* [v0, v1]: image addresses */
	ARG_WORD,	/* anything else: sendmsg(...), attr0.x, a label */
};

struct arg {
	enum arg_kind kind;
	uint16_t reg;
	uint8_t n;	/* registers */
	char half;	/* 'l' or 'h' of "v0.h", 0 without */
	bool neg, abs;
	bool minus;	/* the number itself was written with a minus */
	int64_t i;
	double d;
	const char *s;
	int len;
};

struct mod {
	const char *name, *value; /* value NULL without ':' */
	int name_len, value_len;
};

struct parser {
	const struct isa_target *t;
	isa_symbol_fn *symbol;
	void *ctx;
	struct arg arg[MAX_ARGS];
	int n_args;
	struct mod mod[MAX_MODS];
	int n_mods;
	const char *why;    /* of the form that came furthest */
	int why_rank;
	/* of the form being tried: */
	const struct isa_op_info *op;
	struct isa_inst *in;
	uint32_t mods_used; /* bit per mod[] */
};

/* ------------------------------------------------------------ lexing ---- */

static bool word_is(const char *s, int len, const char *word)
{
	return (int)strlen(word) == len && !memcmp(s, word, len);
}

static const char *skip_space(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* The end of a token: space or comma outside brackets, bars and quotes. */
static const char *token_end(const char *p, bool at_space)
{
	int depth = 0;
	bool quote = false;

	for (; *p; p++) {
		if (*p == '"')
			quote = !quote;
		if (quote)
			continue;
		if (*p == '[' || *p == '(')
			depth++;
		else if (*p == ']' || *p == ')')
			depth--;
		else if (!depth && (*p == ',' ||
				    (at_space && (*p == ' ' || *p == '\t'))))
			break;
	}
	return p;
}

static const struct {
	const char *name;
	uint8_t reg, n;
} special_regs[] = {
	{ "vcc", ISA_R_VCC_LO, 2 },	{ "vcc_lo", ISA_R_VCC_LO, 1 },
	{ "vcc_hi", ISA_R_VCC_HI, 1 },	{ "exec", ISA_R_EXEC_LO, 2 },
	{ "exec_lo", ISA_R_EXEC_LO, 1 }, { "exec_hi", ISA_R_EXEC_HI, 1 },
	{ "m0", ISA_R_M0, 1 },		{ "null", ISA_R_NULL, 0 },
}, special_sources[] = {
	{ "src_shared_base", ISA_R_SHARED_BASE, 0 },
	{ "src_shared_limit", ISA_R_SHARED_LIMIT, 0 },
	{ "src_private_base", ISA_R_PRIVATE_BASE, 0 },
	{ "src_private_limit", ISA_R_PRIVATE_LIMIT, 0 },
	{ "src_pops_exiting_wave_id", ISA_R_POPS_WAVE_ID, 0 },
	{ "src_vccz", ISA_R_VCCZ, 0 },	{ "src_execz", ISA_R_EXECZ, 0 },
	{ "src_scc", ISA_R_SCC, 0 },	{ "scc", ISA_R_SCC, 0 },
	{ "src_lds_direct", ISA_R_LDS_DIRECT, 0 },
	{ "lds_direct", ISA_R_LDS_DIRECT, 0 },
};

/* Decimal digits from *p; -1 if there are none. */
static int digits(const char **p, const char *end)
{
	int v = 0;

	if (*p >= end || !isdigit((unsigned char)**p))
		return -1;
	while (*p < end && isdigit((unsigned char)**p) && v < 100000)
		v = v * 10 + *(*p)++ - '0';
	return v;
}

/* v0 v[0:1] v[0] s0 ttmp0 ... ; false: not of that shape. */
static bool lex_register(struct arg *a, const char *p, const char *end)
{
	int base = 0, limit = 256, lo, hi;

	if (*p == 'v') {
		a->kind = ARG_VGPR;
		p++;
	} else if (*p == 's') {
		a->kind = ARG_SGPR;
		limit = 106;
		p++;
	} else if (end - p > 4 && !memcmp(p, "ttmp", 4)) {
		a->kind = ARG_SGPR;
		base = ISA_R_TTMP0;
		limit = 16;
		p += 4;
	} else {
		return false;
	}
	if (p < end && *p == '[') {
		p = skip_space(p + 1);
		lo = hi = digits(&p, end);
		p = skip_space(p);
		if (p < end && *p == ':') {
			p = skip_space(p + 1);
			hi = digits(&p, end);
			p = skip_space(p);
		}
		if (p >= end || *p++ != ']')
			return false;
	} else {
		lo = hi = digits(&p, end);
		if (end - p == 2 && *p == '.' && (p[1] == 'l' || p[1] == 'h')) {
			a->half = p[1];
			p += 2;
		}
	}
	if (p != end || lo < 0 || hi < lo || hi >= limit || hi - lo > 31)
		return false;
	a->reg = base + lo;
	a->n = hi - lo + 1;
	return true;
}

static bool lex_named(struct arg *a, const char *p, int len)
{
	for (size_t i = 0; i < ARRAY_SIZE(special_regs); i++) {
		if (!word_is(p, len, special_regs[i].name))
			continue;
		a->kind = ARG_SGPR;
		a->reg = special_regs[i].reg;
		a->n = special_regs[i].n;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(special_sources); i++) {
		if (!word_is(p, len, special_sources[i].name))
			continue;
		a->kind = ARG_SPECIAL;
		a->reg = special_sources[i].reg;
		return true;
	}
	if (word_is(p, len, "off")) {
		a->kind = ARG_OFF;
		return true;
	}
	return false;
}

static bool lex_number(struct arg *a, const char *p, const char *end)
{
	char text[64], *stop;
	size_t len = end - p;
	bool minus = *p == '-';
	bool hex;

	if (!len || len >= sizeof(text) ||
	    !(isdigit((unsigned char)p[minus]) || p[minus] == '.'))
		return false;
	memcpy(text, p, len);
	text[len] = 0;
	hex = len > 2u + minus && (text[minus + 1] | 32) == 'x';
	a->minus = minus;
	if (!hex && strpbrk(text, ".eE")) {
		a->kind = ARG_FLOAT;
		a->d = strtod(text, &stop);
	} else {
		a->kind = ARG_INT;
		a->i = (int64_t)strtoull(text + minus, &stop, 0);
		if (minus)
			a->i = -a->i;
	}
	return stop == text + len;
}

static void lex_arg(struct arg *a, const char *p, const char *end)
{
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	memset(a, 0, sizeof(*a));
	if (end - p > 5 && !memcmp(p, "neg(", 4) && end[-1] == ')') {
		a->neg = true;
		p += 4;
		end--;
	} else if (end - p > 1 && *p == '-' && !isdigit((unsigned char)p[1]) &&
		   p[1] != '.') {
		a->neg = true;
		p++;
	}
	if (end - p > 2 && *p == '|' && end[-1] == '|') {
		a->abs = true;
		p++;
		end--;
	} else if (end - p > 5 && !memcmp(p, "abs(", 4) && end[-1] == ')') {
		a->abs = true;
		p += 4;
		end--;
	}
	a->s = p;
	a->len = end - p;
	if (p >= end)
		return;
	if (lex_register(a, p, end) || lex_named(a, p, end - p))
		return;
	a->kind = ARG_NONE;
	if (lex_number(a, p, end))
		return;
	a->kind = *p == '[' ? ARG_LIST : ARG_WORD;
}

static void lex_mod(struct mod *m, const char *p, const char *end)
{
	const char *colon = memchr(p, ':', end - p);

	m->name = p;
	m->name_len = (colon ? colon : end) - p;
	m->value = colon ? colon + 1 : NULL;
	m->value_len = colon ? end - colon - 1 : 0;
}

/*
 * "a, b, c mod:1 flag": commas separate operands; what follows the last
 * operand after a space is a modifier.  A line may consist of modifiers only.
 */
static const char *lex_line(struct parser *ps, const char *p)
{
	ps->n_args = ps->n_mods = 0;
	p = skip_space(p);
	while (*p) {
		const char *end = token_end(p, true);
		const char *next = skip_space(end);

		if (ps->n_args >= MAX_ARGS)
			return "too many operands";
		/* -v0, -|v0| and so on are one token; " | " joins delays. */
		if (*next == '|') {
			end = token_end(p, false);
			next = skip_space(end);
		}
		lex_arg(&ps->arg[ps->n_args++], p, end);
		p = next;
		if (*p == ',') {
			p = skip_space(p + 1);
			if (!*p)
				return "operand missing after ','";
			continue;
		}
		while (*p) {
			if (ps->n_mods >= MAX_MODS)
				return "too many modifiers";
			end = token_end(p, true);
			if (*end == ',' || end == p)
				return "unexpected ','";
			lex_mod(&ps->mod[ps->n_mods++], p, end);
			p = skip_space(end);
		}
	}
	return NULL;
}

/* --------------------------------------------------------- constants ---- */

static uint32_t f32_bits(double d)
{
	float f = d;
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

static uint64_t f64_bits(double d)
{
	uint64_t u;

	memcpy(&u, &d, 8);
	return u;
}

/* Round to nearest even, as the hardware's literals are written. */
static uint32_t f16_bits(double d)
{
	uint64_t u = f64_bits(d);
	uint32_t sign = u >> 48 & 0x8000;
	int e = (int)(u >> 52 & 0x7ff) - 1023 + 15;
	uint64_t m = (u & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
	int shift = 42;

	if (e >= 31)
		return sign | 0x7c00;
	if (e < 1) {
		shift += 1 - e;
		e = 0;
		if (shift > 54)
			return sign;
	}
	m += (UINT64_C(1) << (shift - 1)) - 1 + (m >> shift & 1);
	m >>= shift;
	/* A normal number's hidden bit adds one to the exponent field. */
	return sign | ((e ? (uint32_t)(e - 1) << 10 : 0) + (uint32_t)m);
}

static uint32_t bf16_bits(double d)
{
	uint32_t u = f32_bits(d);

	return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* The bits of a floating-point token for an operand of this type. */
static uint64_t float_value(double d, enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);

	if (t->bits == 64 && t->kind == 'F')
		return f64_bits(d);
	if (t->kind == 'G')
		return bf16_bits(d);
	if (t->bits == 16 && (t->kind == 'F' || t->count == 1))
		return f16_bits(d);
	return f32_bits(d);
}

/* The source field value of an inline constant, or -1. */
static int inline_field(const struct arg *a, enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);
	bool half = t->bits == 16 && t->count == 1;
	uint64_t mask = t->bits == 64 ? ~UINT64_C(0) :
			half	      ? 0xffff :
					0xffffffff;
	uint64_t v = a->kind == ARG_FLOAT ? float_value(a->d, type) :
					    (uint64_t)a->i;
	int64_t n = t->bits == 64 ? (int64_t)v :
		    half	  ? (int16_t)v :
				    (int32_t)v;

	/* The number must be one of the operand's width, of either sign. */
	if (a->kind == ARG_INT && v & ~mask && (int64_t)v != n)
		return -1;
	if (n >= -16 && n <= 64)
		return n >= 0 ? 128 + n : 192 - n;
	if (half && t->kind != 'F' && t->kind != 'G' && a->kind == ARG_INT)
		return -1;
	for (int f = 240; f <= 248; f++)
		if (((isa_inline_value(f, type) ^ v) & mask) == 0)
			return f;
	return -1;
}

/* ------------------------------------------------------ filling a form ---- */

static bool refuse(struct parser *ps, int rank, const char *why)
{
	if (rank >= ps->why_rank) {
		ps->why = why;
		ps->why_rank = rank;
	}
	return false;
}

static bool set_literal(struct parser *ps, uint32_t v)
{
	struct isa_inst *in = ps->in;

	if (in->has_literal && in->literal != v)
		return refuse(ps, 3, "only one unique literal is allowed");
	in->has_literal = true;
	in->literal = v;
	return true;
}

/* A word is a symbol or an expression over one: ask the caller. */
static bool word_value(struct parser *ps, const struct arg *a,
		       enum isa_symbol_use use, int64_t *v)
{
	if (!ps->symbol)
		return refuse(ps, 2, "unknown operand");
	if (!ps->symbol(ps->ctx, a->s, a->len, use, v))
		return refuse(ps, 2, "undefined symbol or malformed expression");
	return true;
}

static bool literal_value(struct parser *ps, const struct arg *a,
			  enum isa_type type, uint32_t *out)
{
	const struct isa_type_info *t = isa_type_info(type);
	uint64_t v;

	if (a->kind == ARG_WORD) {
		int64_t w = 0;

		if (!word_value(ps, a, ISA_SYM_LITERAL, &w))
			return false;
		*out = w;
		return true;
	}
	v = a->kind == ARG_FLOAT ? float_value(a->d, type) : (uint64_t)a->i;
	if (t->bits == 64 && t->kind == 'F' && a->kind == ARG_FLOAT) {
		*out = v >> 32;
		return true;
	}
	if (a->kind == ARG_INT && a->i != (int64_t)(int32_t)v &&
	    v >> 32)
		return refuse(ps, 3, "literal does not fit 32 bits");
	if (t->bits == 16 && t->count == 1 && a->kind == ARG_INT &&
	    (a->i > 0xffff || a->i < -0x8000))
		return refuse(ps, 3, "literal does not fit 16 bits");
	*out = t->bits == 16 && t->count == 1 ? v & 0xffff : v;
	return true;
}

/* "v1.h" in the 32-bit encodings: bit 7 of the register field. */
static uint32_t vgpr_field(struct parser *ps, const struct arg *a, bool e32)
{
	(void)ps;
	return a->reg | (e32 && a->half == 'h' ? 0x80u : 0);
}

static int dwords_of(struct parser *ps, enum isa_type type)
{
	return isa_type_dwords(type, ps->t->wave);
}

static bool is_e32_fmt(enum isa_fmt f)
{
	return f == ISA_FMT_VOP1 || f == ISA_FMT_VOP2 || f == ISA_FMT_VOPC;
}

static bool width_ok(struct parser *ps, const struct arg *a, int want)
{
	if (a->reg == ISA_R_NULL && a->kind == ARG_SGPR)
		return true;
	return a->n == want || refuse(ps, 2, "wrong register width");
}

/* An 8- or 9-bit source field. */
static bool source_field(struct parser *ps, const struct arg *a,
			 enum isa_type type, bool vgprs, uint32_t *field)
{
	int f;
	uint32_t lit;

	switch (a->kind) {
	case ARG_VGPR:
		if (!vgprs)
			return refuse(ps, 2, "VGPR not allowed here");
		if (!width_ok(ps, a, dwords_of(ps, type)))
			return false;
		*field = 256 + vgpr_field(ps, a, is_e32_fmt(ps->in->fmt));
		return true;
	case ARG_SGPR:
		if (!width_ok(ps, a, dwords_of(ps, type)))
			return false;
		/* fall through */
	case ARG_SPECIAL:
		*field = a->reg;
		return true;
	case ARG_INT:
	case ARG_FLOAT:
		f = inline_field(a, type);
		if (f >= 0) {
			*field = f;
			return true;
		}
		/* fall through */
	case ARG_WORD:
		if (ps->op->flags & ISA_NOLIT)
			return refuse(ps, 3, "literal not allowed here");
		*field = ISA_R_LITERAL;
		return literal_value(ps, a, type, &lit) &&
		       set_literal(ps, lit);
	default:
		return refuse(ps, 2, "unexpected operand");
	}
}

static bool scalar_register(struct parser *ps, const struct arg *a, int dwords,
			    uint32_t *field)
{
	if (a->kind != ARG_SGPR)
		return refuse(ps, 2, "wanted a scalar register");
	if (!width_ok(ps, a, dwords))
		return false;
	*field = a->reg;
	return true;
}

static bool vgpr_register(struct parser *ps, const struct arg *a, int dwords,
			  uint32_t *field)
{
	if (a->kind != ARG_VGPR)
		return refuse(ps, 2, "wanted a VGPR");
	if (!width_ok(ps, a, dwords))
		return false;
	*field = vgpr_field(ps, a, is_e32_fmt(ps->in->fmt));
	return true;
}

/* ---------------------------------------------------- named immediates ---- */

enum name_kind { BUFFMT, HWREG, MSG, EXPTGT, DIM, INSTID, SKIP, UCVERSION };

/* The number of a name, given without its prefix; -1 if it has none. */
static int number_of(enum name_kind kind, const char *s, int len)
{
	static const struct {
		uint8_t kind, number;
		const char *name;
	} names[] = {
#define NAME(kind, number, name) { kind, number, name },
#include "isa/names.def"
#undef NAME
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].kind == kind && word_is(s, len, names[i].name))
			return names[i].number;
	return -1;
}

static bool has_prefix(const char *s, int len, const char *prefix)
{
	int n = strlen(prefix);

	return len >= n && !memcmp(s, prefix, n);
}

/* A whole token as a number: decimal, hexadecimal, octal or binary. */
static bool number(const char *s, int len, int64_t *v)
{
	struct arg a = { 0 };

	if (len <= 0 || !lex_number(&a, s, s + len) || a.kind != ARG_INT)
		return false;
	*v = a.i;
	return true;
}

/* Cuts "name(a, b, c)" into its arguments; -1 if it is not such a call. */
static int call_args(const char *s, int len, const char *name,
		     struct arg out[], int max)
{
	const char *end = s + len;
	int n = 0;

	if (!has_prefix(s, len, name))
		return -1;
	s = skip_space(s + strlen(name));
	if (s >= end || *s != '(' || end[-1] != ')')
		return -1;
	end--;
	for (s++; s <= end && n < max;) {
		const char *comma = memchr(s, ',', end - s);
		const char *stop = comma ? comma : end;

		lex_arg(&out[n++], skip_space(s), stop);
		s = stop + 1;
	}
	return s > end ? n : -1;
}

static bool fits_16(int64_t v)
{
	return v >= -0x8000 && v <= 0xffff;
}

static bool parse_hwreg(const struct arg *a, uint32_t *field)
{
	struct arg part[3];
	int64_t v[3] = { 0, 0, 32 };
	int n;

	if (a->kind == ARG_INT) {
		*field = a->i & 0xffff;
		return fits_16(a->i);
	}
	n = call_args(a->s, a->len, "hwreg", part, 3);
	if (n != 1 && n != 3)
		return false;
	if (has_prefix(part[0].s, part[0].len, "HW_REG_"))
		v[0] = number_of(HWREG, part[0].s + 7, part[0].len - 7);
	else if (part[0].kind == ARG_INT)
		v[0] = part[0].i;
	else
		return false;
	for (int i = 1; i < n; i++) {
		if (part[i].kind != ARG_INT)
			return false;
		v[i] = part[i].i;
	}
	if (v[0] < 0 || v[0] > 63 || v[1] < 0 || v[1] > 31 || v[2] < 1 ||
	    v[2] > 32)
		return false;
	*field = v[0] | v[1] << 6 | (v[2] - 1) << 11;
	return true;
}

static bool parse_message(const struct arg *a, uint32_t *field)
{
	struct arg part[3];
	int n, id;

	if (a->kind == ARG_INT) {
		*field = a->i & 0xffff;
		return fits_16(a->i);
	}
	n = call_args(a->s, a->len, "sendmsg", part, 3);
	if (n < 1)
		return false;
	if (has_prefix(part[0].s, part[0].len, "MSG_"))
		id = number_of(MSG, part[0].s + 4, part[0].len - 4);
	else
		id = part[0].kind == ARG_INT ? part[0].i : -1;
	/* gfx11 has neither operations nor streams: they are zero. */
	for (int i = 1; i < n; i++)
		if (part[i].kind != ARG_INT || part[i].i)
			return false;
	*field = id;
	return id >= 0 && id <= 0xff;
}

/* "name(value)" items in a row, with separators that may be of any kind. */
struct part {
	const char *name;
	uint8_t low, width;
	int8_t names; /* enum name_kind of its values, -1: numbers */
};

static bool parse_parts(const char *s, const struct part *part, int n_parts,
			uint32_t initial, uint32_t *field)
{
	uint32_t v = initial;
	bool any = false;

	for (;;) {
		const char *open, *close;
		int64_t x = -1;
		int i;

		while (*s && strchr(" \t,&|", *s))
			s++;
		if (!*s)
			break;
		open = strchr(s, '(');
		close = open ? strchr(open, ')') : NULL;
		if (!close)
			return false;
		for (i = 0; i < n_parts; i++)
			if (word_is(s, open - s, part[i].name))
				break;
		if (i == n_parts)
			return false;
		if (part[i].names >= 0)
			x = number_of(part[i].names, open + 1,
				      close - open - 1);
		else if (!number(open + 1, close - open - 1, &x))
			return false;
		if (x < 0 || x >> part[i].width)
			return false;
		v &= ~(((1u << part[i].width) - 1) << part[i].low);
		v |= (uint32_t)x << part[i].low;
		any = true;
		s = close + 1;
	}
	*field = v;
	return any;
}

static const struct part waitcnt_parts[] = {
	{ "vmcnt", 10, 6, -1 },
	{ "lgkmcnt", 4, 6, -1 },
	{ "expcnt", 0, 3, -1 },
};
static const struct part delay_parts[] = {
	{ "instid0", 0, 4, INSTID },
	{ "instskip", 4, 3, SKIP },
	{ "instid1", 7, 4, INSTID },
};
static const struct part depctr_parts[] = {
	{ "depctr_hold_cnt", 7, 1, -1 }, { "depctr_sa_sdst", 0, 1, -1 },
	{ "depctr_va_vdst", 12, 4, -1 }, { "depctr_va_sdst", 9, 3, -1 },
	{ "depctr_va_ssrc", 8, 1, -1 },	 { "depctr_va_vcc", 1, 1, -1 },
	{ "depctr_vm_vsrc", 2, 3, -1 },
};

/* These three take the rest of the line, however it is separated. */
static bool whole_line(struct parser *ps, int slot, uint32_t *field)
{
	const char *s = ps->arg[0].s;
	bool ok;

	if (ps->n_args == 1 && !ps->n_mods && ps->arg[0].kind == ARG_INT) {
		*field = ps->arg[0].i & 0xffff;
		return fits_16(ps->arg[0].i) ||
		       refuse(ps, 3, "immediate does not fit 16 bits");
	}
	if (slot == ISA_SLOT_WAITCNT)
		ok = parse_parts(s, waitcnt_parts, ARRAY_SIZE(waitcnt_parts),
				 0xfff7, field);
	else if (slot == ISA_SLOT_DELAY)
		ok = parse_parts(s, delay_parts, ARRAY_SIZE(delay_parts), 0,
				 field);
	else
		ok = parse_parts(s, depctr_parts, ARRAY_SIZE(depctr_parts),
				 0xff9f, field);
	ps->mods_used = ~0u;
	ps->n_args = 1;
	return ok || refuse(ps, 3, "malformed counter list");
}

/* ---------------------------------------------------------- modifiers ---- */

static int n_sources(const struct isa_op_info *op)
{
	int n = 0;

	for (int i = 0; i < op->n_opnd; i++)
		n += op->opnd[i].slot >= ISA_SLOT_S0 &&
		     op->opnd[i].slot <= ISA_SLOT_S2I;
	return n;
}

/* "[a,b,c]" of numbers below `limit`; the count, or -1. */
static int bracket_list(const struct mod *m, int limit, uint8_t out[8])
{
	const char *p = m->value, *end = p + m->value_len;
	int n = 0;

	if (!p || end - p < 3 || *p != '[' || end[-1] != ']')
		return -1;
	for (p++, end--; p < end && n < 8;) {
		int v;

		p = skip_space(p);
		v = digits(&p, end);
		p = skip_space(p);
		if (v < 0 || v >= limit || (p < end && *p != ','))
			return -1;
		out[n++] = v;
		p++;
	}
	return p >= end ? n : -1;
}

static bool mod_number(const struct mod *m, int64_t *v)
{
	return m->value && number(m->value, m->value_len, v);
}

/* Modifiers that are just a field: a flag, or name:number. */
static const struct {
	const char *name;
	uint8_t field;
	bool number;
} field_mods[] = {
	{ "glc", ISA_F_GLC, false },	 { "slc", ISA_F_SLC, false },
	{ "dlc", ISA_F_DLC, false },	 { "gds", ISA_F_GDS, false },
	{ "tfe", ISA_F_TFE, false },	 { "lwe", ISA_F_LWE, false },
	{ "offen", ISA_F_OFFEN, false }, { "idxen", ISA_F_IDXEN, false },
	{ "unorm", ISA_F_UNORM, false }, { "r128", ISA_F_R128, false },
	{ "a16", ISA_F_A16, false },	 { "d16", ISA_F_D16, false },
	{ "clamp", ISA_F_CLAMP, false }, { "done", ISA_F_DONE, false },
	{ "row_en", ISA_F_ROW, false },	 { "dmask", ISA_F_DMASK, true },
	{ "wait_exp", ISA_F_WAITEXP, true },
	{ "wait_vdst", ISA_F_WAITVDST, true },
};

static bool put_field(struct parser *ps, enum isa_field field, uint64_t v)
{
	const struct isa_fmt_info *f = isa_fmt_info(ps->in->fmt);

	for (int i = 0; i < f->n_fields; i++) {
		if (f->field[i].field != field)
			continue;
		if (v >> f->field[i].width)
			return refuse(ps, 3, "value does not fit its field");
		ps->in->f[field] = v;
		return true;
	}
	return refuse(ps, 1, "modifier not allowed here");
}

static bool op_has_slot(const struct isa_op_info *op, int slot)
{
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == slot)
			return true;
	return false;
}

static bool put_offset(struct parser *ps, const struct mod *m)
{
	const struct isa_op_info *op = ps->op;
	bool two = op_has_slot(op, ISA_SLOT_OFF2);
	bool lds = ps->in->fmt == ISA_FMT_DS;
	int64_t v;

	if (word_is(m->name, m->name_len, "offset0") ||
	    word_is(m->name, m->name_len, "offset1"))
		return two && mod_number(m, &v) ?
			       put_field(ps, m->name[6] == '0' ?
						     ISA_F_OFFSET0 :
						     ISA_F_OFFSET1, v) :
			       refuse(ps, 2, "offset0 and offset1 not allowed");
	if (!mod_number(m, &v)) {
		struct arg a = { .s = m->value, .len = m->value_len };

		if (!m->value || !word_value(ps, &a, ISA_SYM_VALUE, &v))
			return refuse(ps, 3, "malformed offset");
	}
	if (two)
		return refuse(ps, 2, "wanted offset0 and offset1");
	if (lds) {
		if (v < 0 || v > 0xffff)
			return refuse(ps, 3, "offset does not fit 16 bits");
		ps->in->f[ISA_F_OFFSET0] = v & 0xff;
		ps->in->f[ISA_F_OFFSET1] = v >> 8;
		return true;
	}
	if (op_has_slot(op, ISA_SLOT_SOFF)) {
		if (v < -(1 << 20) || v >= 1 << 20)
			return refuse(ps, 3, "offset does not fit 21 bits");
		return put_field(ps, ISA_F_OFFSET, v & 0x1fffff);
	}
	if (op_has_slot(op, ISA_SLOT_OFF13)) {
		bool flat = ps->in->fmt == ISA_FMT_FLAT;

		if (v < (flat ? 0 : -4096) || v > 4095)
			return refuse(ps, 3, "offset does not fit 13 bits");
		return put_field(ps, ISA_F_OFFSET, v & 0x1fff);
	}
	return v < 0 ? refuse(ps, 3, "offset is negative") :
		       put_field(ps, ISA_F_OFFSET, v);
}

static bool put_select(struct parser *ps, const struct mod *m)
{
	struct isa_inst *in = ps->in;
	int n = n_sources(ps->op);
	bool packed = in->fmt == ISA_FMT_VOP3P;
	bool dst = word_is(m->name, m->name_len, "op_sel") && !packed;
	uint8_t v[8];
	uint32_t bits = 0;
	int got = bracket_list(m, 2, v);

	/* The destination's bit may be left out. */
	if (got != n && !(dst && got == n + 1))
		return refuse(ps, 3, "wrong number of selectors");
	for (int i = 0; i < got; i++)
		bits |= (uint32_t)v[i] << (dst && i == n ? 3 : i);
	if (word_is(m->name, m->name_len, "op_sel"))
		return put_field(ps, ISA_F_OPSEL, bits);
	if (!packed)
		return refuse(ps, 1, "modifier not allowed here");
	if (word_is(m->name, m->name_len, "neg_lo"))
		return put_field(ps, ISA_F_NEG, bits);
	if (word_is(m->name, m->name_len, "neg_hi"))
		return put_field(ps, ISA_F_NEG_HI, bits);
	in->f[ISA_F_OPSEL_HI] = bits & 3;
	if (n == 3)
		in->f[ISA_F_OPSEL_HI2] = bits >> 2;
	return true;
}

static bool put_omod(struct parser *ps, const struct mod *m)
{
	bool mul = word_is(m->name, m->name_len, "mul");
	int64_t v;
	int field = -1;

	if (mod_number(m, &v)) {
		if (v == 1)
			field = 0;
		else if (mul && (v == 2 || v == 4))
			field = v / 2;
		else if (!mul && v == 2)
			field = 3;
	}
	if (field < 0)
		return refuse(ps, 3, "wanted mul:2, mul:4 or div:2");
	return ps->op->flags & ISA_OMOD ?
		       put_field(ps, ISA_F_OMOD, field) :
		       refuse(ps, 2, "output modifier not allowed here");
}

static bool put_format(struct parser *ps, const struct mod *m)
{
	int64_t v = -1;
	const char *s = m->value;
	int len = m->value_len;

	if (!mod_number(m, &v) && s && len > 10 && *s == '[' &&
	    has_prefix(s + 1, len - 1, "BUF_FMT_"))
		v = number_of(BUFFMT, s + 9, len - 10);
	return v < 0 ? refuse(ps, 3, "unknown buffer format") :
		       put_field(ps, ISA_F_FORMAT, v);
}

static bool put_dim(struct parser *ps, const struct mod *m)
{
	const char *s = m->value;
	int len = m->value_len, v = -1;

	if (s && has_prefix(s, len, "SQ_RSRC_IMG_")) {
		s += 12;
		len -= 12;
	}
	if (s)
		v = number_of(DIM, s, len);
	return v < 0 ? refuse(ps, 3, "unknown image dimension") :
		       put_field(ps, ISA_F_DIM, v);
}

static bool put_swizzle(struct parser *ps, const struct mod *m)
{
	struct arg part[5];
	int64_t v;
	int n;

	if (mod_number(m, &v))
		goto set;
	n = m->value ? call_args(m->value, m->value_len, "swizzle", part, 5) :
		       -1;
	if (n < 2)
		return refuse(ps, 3, "malformed swizzle");
	for (int i = 1; i < n; i++)
		if (part[i].kind != ARG_INT && part[0].len != 12)
			return refuse(ps, 3, "malformed swizzle");
	if (word_is(part[0].s, part[0].len, "QUAD_PERM") && n == 5) {
		v = 0x8000;
		for (int i = 0; i < 4; i++) {
			if (part[i + 1].i & ~INT64_C(3))
				return refuse(ps, 3, "lane out of range");
			v |= part[i + 1].i << (2 * i);
		}
	} else if (word_is(part[0].s, part[0].len, "SWAP") && n == 2 &&
		   part[1].i > 0 && part[1].i <= 16 &&
		   !(part[1].i & (part[1].i - 1))) {
		v = part[1].i << 10 | 31;
	} else if (word_is(part[0].s, part[0].len, "REVERSE") && n == 2 &&
		   part[1].i > 1 && part[1].i <= 32 &&
		   !(part[1].i & (part[1].i - 1))) {
		v = (part[1].i - 1) << 10 | 31;
	} else if (word_is(part[0].s, part[0].len, "BROADCAST") && n == 3 &&
		   part[1].i > 1 && part[1].i <= 32 &&
		   !(part[1].i & (part[1].i - 1)) && part[2].i >= 0 &&
		   part[2].i < part[1].i) {
		v = (32 - part[1].i) | part[2].i << 5;
	} else if (word_is(part[0].s, part[0].len, "BITMASK_PERM") && n == 2 &&
		   part[1].len == 7 && part[1].s[0] == '"') {
		uint32_t and = 0, or = 0, xor = 0;

		for (int i = 0; i < 5; i++) {
			char c = part[1].s[1 + i];
			uint32_t bit = 1u << (4 - i);

			if (!strchr("01pi", c))
				return refuse(ps, 3, "malformed mask");
			and |= c == 'p' || c == 'i' ? bit : 0;
			or |= c == '1' ? bit : 0;
			xor |= c == 'i' ? bit : 0;
		}
		v = and | or << 5 | xor << 10;
	} else {
		return refuse(ps, 3, "unknown swizzle");
	}
set:
	if (v < 0 || v > 0xffff)
		return refuse(ps, 3, "offset does not fit 16 bits");
	ps->in->f[ISA_F_OFFSET0] = v & 0xff;
	ps->in->f[ISA_F_OFFSET1] = v >> 8;
	return true;
}

/* DPP16 controls: name and value to the 9-bit field, -1 if it is none. */
static int dpp_control(const struct mod *m)
{
	static const struct {
		const char *name;
		int16_t base;
		int8_t first, last;
	} row[] = {
		{ "row_shl", 0x100, 1, 15 },   { "row_shr", 0x110, 1, 15 },
		{ "row_ror", 0x120, 1, 15 },   { "row_share", 0x150, 0, 15 },
		{ "row_xmask", 0x160, 0, 15 },
	};
	uint8_t lane[8];
	int64_t v;

	if (word_is(m->name, m->name_len, "row_mirror"))
		return m->value ? -1 : 0x140;
	if (word_is(m->name, m->name_len, "row_half_mirror"))
		return m->value ? -1 : 0x141;
	if (word_is(m->name, m->name_len, "quad_perm"))
		return bracket_list(m, 4, lane) == 4 ?
			       lane[0] | lane[1] << 2 | lane[2] << 4 |
				       lane[3] << 6 :
			       -1;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (word_is(m->name, m->name_len, row[i].name) &&
		    mod_number(m, &v) && v >= row[i].first && v <= row[i].last)
			return row[i].base + v;
	return -1;
}

static bool is_dpp_mod(const struct mod *m)
{
	static const char *const name[] = { "dpp8", "quad_perm", "row_shl",
					    "row_shr", "row_ror", "row_share",
					    "row_xmask", "row_mirror",
					    "row_half_mirror" };

	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		if (word_is(m->name, m->name_len, name[i]))
			return true;
	return false;
}

static bool put_dpp(struct parser *ps, const struct mod *m)
{
	struct isa_inst *in = ps->in;
	int64_t v;
	int c;

	if (word_is(m->name, m->name_len, "dpp8")) {
		uint8_t lane[8];

		if (bracket_list(m, 8, lane) != 8)
			return refuse(ps, 3, "dpp8 wants eight lanes 0..7");
		for (int i = 0; i < 8; i++)
			in->extra[0] |= (uint32_t)lane[i] << (8 + 3 * i);
		return true;
	}
	c = dpp_control(m);
	if (c >= 0) {
		in->extra[0] = (in->extra[0] & ~0x1ff00u) | (uint32_t)c << 8;
		return true;
	}
	if (!mod_number(m, &v))
		return refuse(ps, 3, "malformed DPP modifier");
	if (word_is(m->name, m->name_len, "row_mask") && v >= 0 && v < 16)
		in->extra[0] = (in->extra[0] & 0x0fffffff) | (uint32_t)v << 28;
	else if (word_is(m->name, m->name_len, "bank_mask") && v >= 0 &&
		 v < 16)
		in->extra[0] = (in->extra[0] & 0xf0ffffff) | (uint32_t)v << 24;
	else if (word_is(m->name, m->name_len, "bound_ctrl") && v >= 0 &&
		 v < 2)
		in->extra[0] |= (uint32_t)v << 19;
	else if (word_is(m->name, m->name_len, "fi") && v >= 0 && v < 2) {
		if (in->form == ISA_FORM_DPP8)
			in->f[ISA_F_SRC0] = 233 + v;
		else
			in->extra[0] |= (uint32_t)v << 18;
	} else {
		return refuse(ps, 3, "malformed DPP modifier");
	}
	return true;
}

static bool is_dpp_tail(const struct mod *m)
{
	static const char *const name[] = { "row_mask", "bank_mask",
					    "bound_ctrl", "fi" };

	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		if (word_is(m->name, m->name_len, name[i]))
			return true;
	return is_dpp_mod(m);
}

static bool put_mod(struct parser *ps, const struct mod *m)
{
	static const struct {
		const char *name;
		bool (*put)(struct parser *ps, const struct mod *m);
	} other[] = {
		{ "offset", put_offset },    { "offset0", put_offset },
		{ "offset1", put_offset },   { "op_sel", put_select },
		{ "op_sel_hi", put_select }, { "neg_lo", put_select },
		{ "neg_hi", put_select },    { "mul", put_omod },
		{ "div", put_omod },	     { "format", put_format },
		{ "dim", put_dim },
	};
	int64_t v = 1;

	if (is_dpp_tail(m))
		return ps->in->form != ISA_FORM_PLAIN ?
			       put_dpp(ps, m) :
			       refuse(ps, 1, "DPP modifier not allowed here");
	if (op_has_slot(ps->op, ISA_SLOT_SWIZZLE) &&
	    word_is(m->name, m->name_len, "offset"))
		return put_swizzle(ps, m);
	for (size_t i = 0; i < ARRAY_SIZE(field_mods); i++) {
		if (!word_is(m->name, m->name_len, field_mods[i].name))
			continue;
		if (field_mods[i].number != (m->value != NULL) ||
		    (m->value && !mod_number(m, &v)))
			return refuse(ps, 3, "malformed modifier");
		if (field_mods[i].field == ISA_F_CLAMP &&
		    !(ps->op->flags & ISA_CLAMP))
			return refuse(ps, 2, "clamp not allowed here");
		return put_field(ps, field_mods[i].field, v);
	}
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		if (word_is(m->name, m->name_len, other[i].name))
			return other[i].put(ps, m);
	return refuse(ps, 1, "unknown modifier");
}

/* ------------------------------------------------------------- slots ---- */

/* Source modifiers of operand `i`, and the half that it names. */
static bool put_source_mods(struct parser *ps, const struct arg *a, int i,
			    const struct isa_operand_info *slot)
{
	static const uint16_t allowed[] = { ISA_MOD0, ISA_MOD1, ISA_MOD2 };
	struct isa_inst *in = ps->in;
	bool mix = slot->type == ISA_T_MIX;
	bool vop3 = in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VOP3SD ||
		    in->fmt == ISA_FMT_VINTERP || (mix && in->fmt == ISA_FMT_VOP3P);

	if (a->half == 'h' && in->fmt == ISA_FMT_VOP3)
		in->f[ISA_F_OPSEL] |= 1u << i;
	if (!a->neg && !a->abs)
		return true;
	if (!mix && !(ps->op->flags & allowed[i]))
		return refuse(ps, 2, "source modifier not allowed here");
	if (vop3) {
		in->f[ISA_F_NEG] |= (uint32_t)a->neg << i;
		if (a->abs && !isa_fmt_has(in->fmt, ISA_F_ABS) && !mix)
			return refuse(ps, 2, "abs not allowed here");
		in->f[mix ? ISA_F_NEG_HI : ISA_F_ABS] |= (uint32_t)a->abs << i;
		return true;
	}
	if (in->form == ISA_FORM_DPP16 && i < 2) {
		in->extra[0] |= (uint32_t)a->neg << (20 + 2 * i) |
				(uint32_t)a->abs << (21 + 2 * i);
		return true;
	}
	return refuse(ps, 1, "source modifier not allowed in this encoding");
}

static bool put_source(struct parser *ps, const struct arg *a, int i,
		       const struct isa_operand_info *slot, char only)
{
	static const uint8_t field[3] = { ISA_F_SRC0, ISA_F_SRC1, ISA_F_SRC2 };
	struct isa_inst *in = ps->in;
	uint32_t v = 0;

	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPC)
		return source_field(ps, a, slot->type, false, &v) &&
		       put_field(ps, i ? ISA_F_SSRC1 : ISA_F_SSRC0, v);
	if (!put_source_mods(ps, a, i, slot))
		return false;
	if (i == 1 && is_e32_fmt(in->fmt)) {
		if (!vgpr_register(ps, a, dwords_of(ps, slot->type), &v))
			return refuse(ps, 1, "this encoding wants a VGPR");
		return put_field(ps, ISA_F_VSRC1, v);
	}
	if (i == 0 && in->form != ISA_FORM_PLAIN) {
		if (!vgpr_register(ps, a, dwords_of(ps, slot->type), &v))
			return false;
		in->extra[0] |= v;
		return true;
	}
	if (!source_field(ps, a, slot->type, only != 'S', &v))
		return false;
	if (only == 'V' && v < 256 && v != ISA_R_LDS_DIRECT)
		return refuse(ps, 2, "this source must be a VGPR");
	return put_field(ps, field[i], v);
}

static bool put_destination(struct parser *ps, const struct arg *a,
			    const struct isa_operand_info *slot)
{
	struct isa_inst *in = ps->in;
	int n = dwords_of(ps, slot->type);
	uint32_t v;

	if (a->neg || a->abs)
		return refuse(ps, 3, "a destination has no modifiers");
	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPK)
		return scalar_register(ps, a, n, &v) &&
		       put_field(ps, ISA_F_SDST, v);
	if (in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF)
		return vgpr_register(ps, a, n + (int)in->f[ISA_F_TFE], &v) &&
		       put_field(ps, ISA_F_VDATA, v);
	if (!vgpr_register(ps, a, n, &v))
		return false;
	if (a->half == 'h' && in->fmt == ISA_FMT_VOP3)
		in->f[ISA_F_OPSEL] |= 8;
	return put_field(ps, ISA_F_VDST, v);
}

/* VCC by name in the 32-bit encodings, any scalar register in VOP3. */
static bool put_mask(struct parser *ps, const struct arg *a,
		     enum isa_field field, bool source)
{
	uint32_t v;

	if (source && (a->kind == ARG_INT || a->kind == ARG_FLOAT))
		return is_e32_fmt(ps->in->fmt) ?
			       refuse(ps, 1, "this encoding wants vcc") :
			       source_field(ps, a, ISA_T_MASK, false, &v) &&
				       v != ISA_R_LITERAL &&
				       put_field(ps, field, v);
	if (!scalar_register(ps, a, ps->t->wave / 32, &v))
		return false;
	if (is_e32_fmt(ps->in->fmt))
		return v == ISA_R_VCC_LO ||
		       refuse(ps, 1, "this encoding wants vcc");
	return put_field(ps, field, v);
}

static bool put_vaddr(struct parser *ps, const struct arg *a)
{
	struct isa_inst *in = ps->in;
	uint32_t v;
	int n = 1;

	switch (in->fmt) {
	case ISA_FMT_FLAT:
		n = 2;
		break;
	case ISA_FMT_GLOBAL:
		/* The scalar address that follows decides; 64 bits without. */
		if (a->kind != ARG_VGPR || a->n > 2)
			return refuse(ps, 2, "wanted a VGPR address");
		n = a->n;
		break;
	case ISA_FMT_SCRATCH:
		in->f[ISA_F_SVE] = a->kind == ARG_VGPR;
		if (a->kind == ARG_OFF)
			return true;
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		n = in->f[ISA_F_IDXEN] + in->f[ISA_F_OFFEN];
		if (a->kind == ARG_OFF && !n)
			return true;
		if (!n)
			return refuse(ps, 2,
				      "a buffer address wants idxen or offen");
		break;
	default:
		break;
	}
	return vgpr_register(ps, a, n, &v) && put_field(ps, ISA_F_ADDR, v);
}

static bool put_saddr(struct parser *ps, const struct arg *a)
{
	struct isa_inst *in = ps->in;
	bool scratch = in->fmt == ISA_FMT_SCRATCH;
	uint32_t v = ISA_R_NULL;

	if (a->kind != ARG_OFF &&
	    !scalar_register(ps, a, scratch ? 1 : 2, &v))
		return false;
	if (in->fmt == ISA_FMT_GLOBAL && ps->arg[0].kind) {
		/* vaddr is 64 bits wide exactly when there is no saddr. */
		bool wide = false;

		for (int i = 0; i < ps->op->n_opnd; i++)
			wide |= ps->op->opnd[i].slot == ISA_SLOT_VADDR;
		if (wide && (in->extra[1] == 2) != (v == ISA_R_NULL))
			return refuse(ps, 3,
				      "a global address is v[n:n+1], off "
				      "or vn, s[n:n+1]");
	}
	return put_field(ps, ISA_F_SADDR, v);
}

static bool put_data(struct parser *ps, const struct arg *a,
		     const struct isa_operand_info *slot)
{
	struct isa_inst *in = ps->in;
	bool buffer = in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF;
	int n = dwords_of(ps, slot->type);
	uint32_t v;

	if (buffer)
		n += in->f[ISA_F_TFE];
	return vgpr_register(ps, a, n, &v) &&
	       put_field(ps, buffer ? ISA_F_VDATA : ISA_F_DATA0, v);
}

/* "s4", "null" or an immediate; "s4 offset:16" has both. */
static bool put_soff(struct parser *ps, const struct arg *a)
{
	uint32_t v;
	int64_t i = a->i;

	if (a->kind == ARG_SGPR)
		return scalar_register(ps, a, 1, &v) &&
		       put_field(ps, ISA_F_SOFFSET, v);
	if (a->kind == ARG_WORD && !word_value(ps, a, ISA_SYM_VALUE, &i))
		return false;
	if (a->kind != ARG_INT && a->kind != ARG_WORD)
		return refuse(ps, 2, "wanted an offset");
	if (i < -(1 << 20) || i >= 1 << 20)
		return refuse(ps, 3, "offset does not fit 21 bits");
	return put_field(ps, ISA_F_SOFFSET, ISA_R_NULL) &&
	       put_field(ps, ISA_F_OFFSET, i & 0x1fffff);
}

static bool put_soffset(struct parser *ps, const struct arg *a)
{
	uint32_t v;

	if (a->kind == ARG_FLOAT || a->kind == ARG_WORD ||
	    (a->kind == ARG_INT && inline_field(a, ISA_T_B32) < 0))
		return refuse(ps, 3, "wanted a register or inline constant");
	return source_field(ps, a, ISA_T_B32, false, &v) &&
	       put_field(ps, ISA_F_SOFFSET, v);
}

static bool put_simm16(struct parser *ps, const struct arg *a, int slot)
{
	struct isa_inst *in = ps->in;
	uint32_t v = 0;
	int64_t i;

	switch (slot) {
	case ISA_SLOT_MSG:
		if (!parse_message(a, &v))
			return refuse(ps, 3, "malformed message");
		return put_field(ps, in->fmt == ISA_FMT_SOP1 ? ISA_F_SSRC0 :
							       ISA_F_SIMM16,
				 v);
	case ISA_SLOT_HWREG:
		if (!parse_hwreg(a, &v))
			return refuse(ps, 3, "malformed hardware register");
		return put_field(ps, ISA_F_SIMM16, v);
	}
	i = a->i;
	if (a->kind == ARG_WORD &&
	    !word_value(ps, a, slot == ISA_SLOT_REL ? ISA_SYM_BRANCH :
						      ISA_SYM_VALUE,
			&i))
		return false;
	if (a->kind != ARG_INT && a->kind != ARG_WORD)
		return refuse(ps, 2, "wanted an immediate");
	if (!fits_16(i))
		return refuse(ps, 3, "immediate does not fit 16 bits");
	return put_field(ps, ISA_F_SIMM16, i & 0xffff);
}

static bool put_literal(struct parser *ps, const struct arg *a,
			const struct isa_operand_info *slot)
{
	uint32_t v;

	if (a->kind != ARG_INT && a->kind != ARG_FLOAT && a->kind != ARG_WORD)
		return refuse(ps, 2, "wanted a literal");
	return literal_value(ps, a, slot->type, &v) && set_literal(ps, v);
}

static bool put_attr(struct parser *ps, const struct arg *a)
{
	const char *p = a->s, *end = p + a->len;
	int n, chan;

	if (!has_prefix(p, a->len, "attr"))
		return refuse(ps, 2, "wanted attrN.x");
	p += 4;
	n = digits(&p, end);
	if (n < 0 || n > 63 || end - p != 2 || *p != '.' ||
	    !strchr("xyzw", p[1]))
		return refuse(ps, 3, "wanted attr0.x to attr63.w");
	chan = strchr("xyzw", p[1]) - "xyzw";
	return put_field(ps, ISA_F_ATTR, n) &&
	       put_field(ps, ISA_F_ATTRCHAN, chan);
}

/* The types of slots whose width is a register tuple of their own. */
static bool put_tuple(struct parser *ps, const struct arg *a, int dwords,
		      enum isa_field field, int unit)
{
	uint32_t v;

	if (!scalar_register(ps, a, dwords, &v))
		return false;
	if (v % unit)
		return refuse(ps, 3, "misaligned scalar register tuple");
	return put_field(ps, field, v / unit);
}

static bool put_slot(struct parser *ps, const struct arg *a,
		     const struct isa_operand_info *slot)
{
	int n = dwords_of(ps, slot->type);
	struct isa_inst *in = ps->in;
	uint32_t v;

	switch (slot->slot) {
	case ISA_SLOT_D:
		return put_destination(ps, a, slot);
	case ISA_SLOT_DS:
		return scalar_register(ps, a, n, &v) &&
		       put_field(ps, ISA_F_VDST, v);
	case ISA_SLOT_CO:
		return put_mask(ps, a, ISA_F_SDST, false);
	case ISA_SLOT_CD:
		return put_mask(ps, a, ISA_F_VDST, false);
	case ISA_SLOT_CI:
		return put_mask(ps, a, ISA_F_SRC2, true);
	case ISA_SLOT_S0:
	case ISA_SLOT_S1:
	case ISA_SLOT_S2:
		return put_source(ps, a, slot->slot - ISA_SLOT_S0, slot, 0);
	case ISA_SLOT_S0V:
	case ISA_SLOT_S1V:
	case ISA_SLOT_S2V:
		return put_source(ps, a, slot->slot - ISA_SLOT_S0V, slot, 'V');
	case ISA_SLOT_S0S:
	case ISA_SLOT_S1S:
	case ISA_SLOT_S2S:
		return put_source(ps, a, slot->slot - ISA_SLOT_S0S, slot, 'S');
	case ISA_SLOT_S2I:
		return put_source(ps, a, 2, slot, 'I');
	case ISA_SLOT_K:
		return put_literal(ps, a, slot);
	case ISA_SLOT_DIN:
		return scalar_register(ps, a, n, &v) &&
		       put_field(ps, ISA_F_SDST, v);
	case ISA_SLOT_IMM:
	case ISA_SLOT_REL:
	case ISA_SLOT_MSG:
	case ISA_SLOT_HWREG:
		return put_simm16(ps, a, slot->slot);
	case ISA_SLOT_SDATA:
		return scalar_register(ps, a, n, &v) &&
		       put_field(ps, ISA_F_SDATA, v);
	case ISA_SLOT_SDIMM:
		return a->kind == ARG_INT ?
			       put_field(ps, ISA_F_SDATA, a->i) :
			       refuse(ps, 2, "wanted an immediate");
	case ISA_SLOT_SBASE:
		return put_tuple(ps, a, n, ISA_F_SBASE, 2);
	case ISA_SLOT_SOFF:
		return put_soff(ps, a);
	case ISA_SLOT_VADDR:
		in->extra[1] = a->n;
		return put_vaddr(ps, a);
	case ISA_SLOT_DATA:
	case ISA_SLOT_DATA0:
	case ISA_SLOT_DATAG:
		return put_data(ps, a, slot);
	case ISA_SLOT_DATA1:
		return vgpr_register(ps, a, n, &v) &&
		       put_field(ps, ISA_F_DATA1, v);
	case ISA_SLOT_DG:
		return vgpr_register(ps, a, n, &v) &&
		       put_field(ps, ISA_F_VDST, v);
	case ISA_SLOT_SADDR:
		return put_saddr(ps, a);
	case ISA_SLOT_SRSRC:
		return put_tuple(ps, a, 4, ISA_F_SRSRC, 4);
	case ISA_SLOT_SOFFSET:
		return put_soffset(ps, a);
	case ISA_SLOT_ATTR:
		return put_attr(ps, a);
	}
	return refuse(ps, 1, "operand not understood");
}

/* Slots that no operand stands for: modifiers, or absent by encoding. */
static bool slot_is_silent(const struct parser *ps, int slot)
{
	switch (slot) {
	case ISA_SLOT_OFF2:
	case ISA_SLOT_OFF12:
	case ISA_SLOT_OFF13:
	case ISA_SLOT_OFF16:
	case ISA_SLOT_SWIZZLE:
	case ISA_SLOT_FORMAT:
		return true;
	case ISA_SLOT_DG:
		return !ps->in->f[ISA_F_GLC];
	case ISA_SLOT_SADDR:
		return ps->in->fmt == ISA_FMT_FLAT;
	}
	return false;
}

/* ------------------------------------------------------------- images ---- */

static bool put_image_address(struct parser *ps, const struct arg *a)
{
	struct isa_inst *in = ps->in;
	const char *p = a->s + 1, *end = a->s + a->len - 1;
	uint32_t reg[5] = { 0 };
	int n = 0;

	if (a->kind == ARG_VGPR)
		return put_field(ps, ISA_F_ADDR, a->reg);
	if (a->kind != ARG_LIST || a->s[a->len - 1] != ']')
		return refuse(ps, 2, "wanted image addresses");
	while (p < end) {
		const char *stop = token_end(p, false);
		struct arg one;

		if (stop > end)
			stop = end;
		lex_arg(&one, skip_space(p), stop);
		if (one.kind != ARG_VGPR || n == 5)
			return refuse(ps, 3, "malformed image address list");
		reg[n++] = one.reg;
		p = stop + 1;
	}
	in->f[ISA_F_NSA] = 1;
	for (int i = 1; i < n; i++)
		in->extra[0] |= reg[i] << (8 * (i - 1));
	return put_field(ps, ISA_F_ADDR, reg[0]);
}

static bool put_image(struct parser *ps)
{
	bool sampler = ps->op->flags & ISA_SAMPLER;
	const struct arg *a = ps->arg;

	if (ps->n_args != (sampler ? 4 : 3))
		return refuse(ps, 2, "wrong number of operands");
	if (a[0].kind != ARG_VGPR)
		return refuse(ps, 2, "wanted a VGPR");
	return put_field(ps, ISA_F_VDATA, a[0].reg) &&
	       put_image_address(ps, &a[1]) &&
	       put_tuple(ps, &a[2], a[2].n, ISA_F_SRSRC, 4) &&
	       (!sampler || put_tuple(ps, &a[3], 4, ISA_F_SSAMP, 4));
}

/* "exp TARGET v0, v1, off, off": the target is not followed by a comma. */
static bool put_export(struct parser *ps)
{
	static const uint8_t field[4] = { ISA_F_VSRC0, ISA_F_VSRC1, ISA_F_VSRC2,
					  ISA_F_VSRC3 };
	const char *p = ps->arg[0].s, *end = token_end(p, true);
	int target = number_of(EXPTGT, p, end - p);
	const char *why;

	if (target < 0)
		return refuse(ps, 3, "unknown export target");
	why = lex_line(ps, end);
	if (why)
		return refuse(ps, 3, why);
	if (ps->n_args != 4)
		return refuse(ps, 2, "wanted four sources");
	ps->in->f[ISA_F_TARGET] = target;
	for (int i = 0; i < 4; i++) {
		if (ps->arg[i].kind == ARG_OFF)
			continue;
		if (ps->arg[i].kind != ARG_VGPR)
			return refuse(ps, 2, "wanted a VGPR or off");
		ps->in->f[field[i]] = ps->arg[i].reg;
		ps->in->f[ISA_F_EN] |= 1u << i;
	}
	return true;
}

/* -------------------------------------------------------------- forms ---- */

static void defaults(struct parser *ps)
{
	struct isa_inst *in = ps->in;

	if (in->form == ISA_FORM_DPP16) {
		in->f[ISA_F_SRC0] = 250;
		in->extra[0] = 0xff000000;
	} else if (in->form == ISA_FORM_DPP8) {
		in->f[ISA_F_SRC0] = 233;
	}
	if (in->fmt == ISA_FMT_VOP3P &&
	    !(ps->op->n_opnd > 1 && ps->op->opnd[1].type == ISA_T_MIX)) {
		in->f[ISA_F_OPSEL_HI] = 3;
		in->f[ISA_F_OPSEL_HI2] = 1;
	}
	if (in->fmt == ISA_FMT_SMEM && ps->op->n_opnd)
		in->f[ISA_F_SOFFSET] = ISA_R_NULL;
	if (in->fmt == ISA_FMT_FLAT)
		in->f[ISA_F_SADDR] = ISA_R_NULL;
	if (in->fmt == ISA_FMT_MTBUF)
		in->f[ISA_F_FORMAT] = 1;
	/* v_cmpx names its destination in VOP3, ray tracing its options. */
	if (in->fmt == ISA_FMT_VOP3 && ps->op->fmt == ISA_FMT_VOPC &&
	    ps->op->flags & ISA_WEXEC)
		in->f[ISA_F_VDST] = ISA_R_EXEC_LO;
	if (in->op == ISA_image_bvh_intersect_ray ||
	    in->op == ISA_image_bvh64_intersect_ray) {
		in->f[ISA_F_DMASK] = 15;
		in->f[ISA_F_UNORM] = 1;
		in->f[ISA_F_R128] = 1;
	}
}

/* A flag or "name:value" that lexing took for an operand. */
static bool looks_like_mod(const struct arg *a)
{
	static const char *const flag[] = {
		"glc",	 "slc",	   "dlc",    "gds",  "tfe",	   "lwe",
		"offen", "idxen",  "unorm",  "r128", "a16",	   "d16",
		"clamp", "row_en", "done",
	};
	const char *p = a->s;

	if (a->kind != ARG_WORD || a->neg || a->abs)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(flag); i++)
		if (word_is(p, a->len, flag[i]))
			return true;
	while (p < a->s + a->len && (isalnum((unsigned char)*p) || *p == '_'))
		p++;
	return p < a->s + a->len && *p == ':';
}

static bool apply_mods(struct parser *ps)
{
	for (int i = 0; i < ps->n_mods; i++)
		if (!(ps->mods_used >> i & 1) && !put_mod(ps, &ps->mod[i]))
			return false;
	return true;
}

static bool is_whole_line(int slot)
{
	return slot == ISA_SLOT_WAITCNT || slot == ISA_SLOT_DELAY ||
	       slot == ISA_SLOT_DEPCTR;
}

static bool put_operands(struct parser *ps)
{
	const struct isa_op_info *op = ps->op;
	int at = 0;

	if (op->n_opnd && op->opnd[0].slot == ISA_SLOT_IMAGE)
		return put_image(ps);
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_operand_info *slot = &op->opnd[i];

		if (slot_is_silent(ps, slot->slot))
			continue;
		if (at >= ps->n_args) {
			/* s_endpgm needs no number. */
			if (ps->in->op == ISA_s_endpgm)
				continue;
			return refuse(ps, 2, "too few operands");
		}
		if (!put_slot(ps, &ps->arg[at], slot))
			return false;
		at++;
	}
	return at == ps->n_args || refuse(ps, 2, "too many operands");
}

/* Try one encoding of ps->op. */
static bool try_form(struct parser *ps, enum isa_fmt fmt, enum isa_form form)
{
	struct isa_inst *in = ps->in;
	bool vop3 = fmt == ISA_FMT_VOP3 || fmt == ISA_FMT_VOP3SD;
	int opcode = isa_opcode(ps->t->gen, in->op, vop3);
	uint8_t code[ISA_MAX_SIZE_BYTES];
	uint32_t v;
	uint16_t op = in->op;
	const char *why;
	int n;

	memset(in, 0, sizeof(*in));
	in->op = op;
	in->fmt = fmt;
	in->form = form;
	ps->mods_used = 0;
	if (opcode < 0)
		return refuse(ps, 1, "not an instruction of this generation");
	in->f[ISA_F_OP] = opcode;
	defaults(ps);
	if (ps->op->n_opnd == 1 && is_whole_line(ps->op->opnd[0].slot)) {
		if (!ps->n_args)
			return refuse(ps, 2, "too few operands");
		if (!whole_line(ps, ps->op->opnd[0].slot, &v))
			return false;
		in->f[ISA_F_SIMM16] = v;
	} else if (fmt == ISA_FMT_EXP) {
		if (!ps->n_args || !put_export(ps) || !apply_mods(ps))
			return false;
	} else if (!apply_mods(ps) || !put_operands(ps)) {
		return false;
	}
	in->extra[1] = 0;
	n = isa_encode(in, code);
	why = n ? isa_decode(ps->t, code, n, in) : "a value does not fit";
	return !why || refuse(ps, 4, why);
}

/* v_add_f32_e64_dpp: the row, and what the suffix asks for. */
struct wanted {
	enum isa_op op;
	bool e32, e64, dpp;
};

static bool cut(const char *s, int *len, const char *suffix)
{
	int n = strlen(suffix);

	if (*len <= n || memcmp(s + *len - n, suffix, n))
		return false;
	*len -= n;
	return true;
}

static bool find_op(const char *s, int len, struct wanted *w)
{
	char name[64];

	memset(w, 0, sizeof(*w));
	if (len >= (int)sizeof(name))
		return false;
	w->dpp = cut(s, &len, "_dpp8") || cut(s, &len, "_dpp");
	w->e64 = cut(s, &len, "_e64");
	if (!w->e64 && !w->dpp)
		w->e32 = cut(s, &len, "_e32");
	memcpy(name, s, len);
	name[len] = 0;
	w->op = isa_op_find(name);
	return w->op != ISA_OP_NONE;
}

static bool try_all(struct parser *ps, const struct wanted *w)
{
	const struct isa_op_info *op = ps->op;
	enum isa_form form = ISA_FORM_PLAIN;
	enum isa_fmt wide = op->fmt;
	bool native = !is_e32_fmt(op->fmt);

	for (int i = 0; i < ps->n_mods; i++)
		if (is_dpp_mod(&ps->mod[i]))
			form = word_is(ps->mod[i].name, ps->mod[i].name_len,
				       "dpp8") ?
				       ISA_FORM_DPP8 :
				       ISA_FORM_DPP16;
	if (w->dpp && form == ISA_FORM_PLAIN)
		return refuse(ps, 3, "a DPP control is missing");
	if (native) {
		if (w->e32 || (w->e64 && op->fmt != ISA_FMT_VOP3 &&
			       op->fmt != ISA_FMT_VOP3SD &&
			       op->fmt != ISA_FMT_VOP3P))
			return refuse(ps, 3, "no such encoding");
		ps->in->op = w->op;
		return try_form(ps, op->fmt, form);
	}
	wide = ISA_FMT_VOP3;
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == ISA_SLOT_CO)
			wide = ISA_FMT_VOP3SD;
	ps->in->op = w->op;
	if (!w->e64 && try_form(ps, op->fmt, form))
		return true;
	ps->in->op = w->op;
	if (w->e32)
		return false;
	if (!(op->flags & ISA_E64))
		return refuse(ps, 2, "no VOP3 encoding");
	return try_form(ps, wide, form);
}

/* ---------------------------------------------------------------- VOPD ---- */

/* One half: its operands go to the fields of X or Y. */
static bool put_half(struct parser *ps, const char *name, int len,
		     const char *line, bool y)
{
	struct isa_inst *in = ps->in;
	enum isa_op op = ISA_OP_NONE;
	const char *why, *dual;
	int opcode;
	int at = 0;
	uint32_t v;

	for (opcode = 0; opcode < 32; opcode++) {
		op = isa_vopd_op(opcode, y, &dual);
		if (op && word_is(name, len, dual))
			break;
	}
	if (opcode == 32)
		return refuse(ps, 3, "not an instruction of this half of VOPD");
	why = lex_line(ps, line);
	if (why || ps->n_mods)
		return refuse(ps, 3, why ? why : "VOPD has no modifiers");
	in->f[y ? ISA_F_OPY : ISA_F_OP] = opcode;
	ps->op = isa_op_info(op);
	for (int i = 0; i < ps->op->n_opnd; i++) {
		const struct isa_operand_info *slot = &ps->op->opnd[i];
		const struct arg *a = &ps->arg[at];

		if (slot->slot == ISA_SLOT_CI) {
			/* vcc is implied, but may be written. */
			at += at < ps->n_args;
			continue;
		}
		if (at >= ps->n_args)
			return refuse(ps, 2, "too few operands");
		at++;
		if (a->neg || a->abs)
			return refuse(ps, 3, "VOPD has no source modifiers");
		switch (slot->slot) {
		case ISA_SLOT_D:
			if (!vgpr_register(ps, a, 1, &v))
				return false;
			if (!y)
				in->f[ISA_F_VDST] = v;
			else if ((v & 1) == (in->f[ISA_F_VDST] & 1))
				return refuse(ps, 4,
					      "one destination must be even, "
					      "the other odd");
			else
				in->f[ISA_F_VDSTY] = v >> 1;
			break;
		case ISA_SLOT_S0:
			if (!source_field(ps, a, slot->type, true, &v))
				return false;
			in->f[y ? ISA_F_SRC0Y : ISA_F_SRC0] = v;
			break;
		case ISA_SLOT_S1:
			if (!vgpr_register(ps, a, 1, &v))
				return false;
			in->f[y ? ISA_F_VSRC1Y : ISA_F_VSRC1] = v;
			break;
		default:
			if (!put_literal(ps, a, slot))
				return false;
		}
	}
	return at == ps->n_args || refuse(ps, 2, "too many operands");
}

static bool try_vopd(struct parser *ps, const char *text, const char *second)
{
	struct isa_inst *in = ps->in;
	uint8_t code[ISA_MAX_SIZE_BYTES];
	const char *x_end = token_end(text, true), *y = skip_space(second + 2);
	const char *y_end = token_end(y, true);
	char first[ISA_TEXT_MAX];
	size_t len = second - x_end;
	const char *why;
	int n;

	if (len >= sizeof(first))
		return refuse(ps, 4, "line too long");
	memcpy(first, x_end, len);
	first[len] = 0;
	memset(in, 0, sizeof(*in));
	in->fmt = ISA_FMT_VOPD;
	if (!put_half(ps, text, x_end - text, first, false) ||
	    !put_half(ps, y, y_end - y, y_end, true))
		return false;
	n = isa_encode(in, code);
	why = n ? isa_decode(ps->t, code, n, in) : "a value does not fit";
	return !why || refuse(ps, 4, why);
}

/* --------------------------------------------------------------- entry ---- */

/* Modifiers that stand where operands do ("buffer_gl0_inv glc"). */
static void move_mods(struct parser *ps)
{
	while (ps->n_args && ps->n_mods < MAX_MODS &&
	       looks_like_mod(&ps->arg[ps->n_args - 1])) {
		const struct arg *a = &ps->arg[--ps->n_args];

		lex_mod(&ps->mod[ps->n_mods++], a->s, a->s + a->len);
	}
	/* "v0, v1, format:22, 0" has one in the middle. */
	for (int i = 0; i < ps->n_args && ps->n_mods < MAX_MODS; i++) {
		const struct arg *a = &ps->arg[i];

		if (!looks_like_mod(a) || !has_prefix(a->s, a->len, "format"))
			continue;
		lex_mod(&ps->mod[ps->n_mods++], a->s, a->s + a->len);
		memmove(&ps->arg[i], &ps->arg[i + 1],
			(ps->n_args - i - 1) * sizeof(*a));
		ps->n_args--;
	}
}

const char *isa_parse(const struct isa_target *t, const char *text,
		      isa_symbol_fn *symbol, void *ctx, struct isa_inst *in)
{
	struct parser ps = { .t = t, .symbol = symbol, .ctx = ctx, .in = in };
	const char *end, *second, *why;
	struct wanted w;

	text = skip_space(text);
	end = text;
	while (isalnum((unsigned char)*end) || *end == '_')
		end++;
	if (!isa_gen_known(t->gen))
		return "this generation's encodings are not known";
	if (end == text)
		return "no instruction";
	second = strstr(end, "::");
	if (second)
		return try_vopd(&ps, text, second) ? NULL : ps.why;
	if (!find_op(text, end - text, &w))
		return "unknown instruction";
	ps.op = isa_op_info(w.op);
	why = lex_line(&ps, end);
	/* Counter lists and exports have separators of their own. */
	if (!(ps.op->n_opnd == 1 && is_whole_line(ps.op->opnd[0].slot)) &&
	    ps.op->fmt != ISA_FMT_EXP) {
		if (why)
			return why;
		move_mods(&ps);
	}
	return try_all(&ps, &w) ? NULL : ps.why;
}
