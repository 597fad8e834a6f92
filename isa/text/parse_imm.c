/*
 * isa/text/parse_imm.c - immediates with a syntax of their own: messages,
 * hardware registers, wait counters, delays, versions and swizzles.
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

int isa_name_number(enum isa_name_kind kind, const char *s, int len)
{
	/* The first letters tell most names apart, and are cheap. */
	for (int i = 0; len > 0 && i < NAME_NUMBERS; i++) {
		const char *name = isa_number_name(kind, i);

		if (name && *name == *s && isa_word_is(s, len, name))
			return i;
	}
	return -1;
}

/* One argument of a call: its text without spaces around. */
struct part {
	const char *s;
	int len;
};

/* Cuts "name(a, b, c)" into its arguments; -1 if it is not such a call. */
static int call_parts(const char *s, int len, const char *name,
		      struct part out[], int max)
{
	const char *end = s + len;
	int n = 0;

	if (!isa_has_prefix(s, len, name))
		return -1;
	s = isa_skip_space(s + strlen(name));
	if (s >= end || *s != '(' || end[-1] != ')')
		return -1;
	end--;
	for (s++; n < max; s++) {
		const char *comma = memchr(s, ',', end - s);
		const char *stop = comma ? comma : end;

		s = isa_skip_space(s);
		out[n].s = s;
		out[n].len = stop > s ? stop - s : 0;
		while (out[n].len &&
		       (s[out[n].len - 1] == ' ' || s[out[n].len - 1] == '\t'))
			out[n].len--;
		n++;
		s = stop;
		if (!comma)
			return n;
	}
	return -1;
}

static bool fits_16(int64_t v)
{
	return v >= -0x8000 && v <= 0xffff;
}

/* A name behind its prefix, or a number; -1 if it is neither. */
static int64_t name_or_number(const struct part *p, enum isa_name_kind kind,
			      const char *prefix)
{
	int n = strlen(prefix);
	int64_t v;

	if (isa_has_prefix(p->s, p->len, prefix))
		return isa_name_number(kind, p->s + n, p->len - n);
	return isa_lex_int(p->s, p->len, &v) ? v : -1;
}

/* Register, offset and width of s_getreg and s_setreg. */
static bool put_bit_field(struct parser *ps, const int64_t v[3],
			  uint32_t *field)
{
	if (v[0] < 0 || v[0] > 63)
		return isa_refuse(ps, 3, "unknown hardware register");
	if (v[1] < 0 || v[1] > 31 || v[2] < 1 || v[2] > 32)
		return isa_refuse(ps, 3,
				  "a bit field has an offset of 0 to 31 "
				  "and a width of 1 to 32");
	*field = v[0] | v[1] << 6 | (v[2] - 1) << 11;
	return true;
}

/* "{id: 1, offset: 0, size: 32}" in any order, each with its default. */
static bool named_parts(const char *s, const char *end, int64_t v[3])
{
	static const char *const names[] = { "id", "offset", "size" };
	unsigned seen = 0;

	s = isa_skip_space(s + 1);
	if (s == end)
		return true;
	for (;;) {
		const char *stop = memchr(s, ',', end - s);
		const char *value = memchr(s, ':', end - s);
		int n = 0, which = -1;

		stop = stop ? stop : end;
		while (isa_is_name(s[n]))
			n++;
		for (int i = 0; i < 3; i++)
			if (isa_word_is(s, n, names[i]))
				which = i;
		if (which < 0 || seen >> which & 1 ||
		    isa_skip_space(s + n) != value || value > stop)
			return false;
		value = isa_skip_space(value + 1);
		for (n = stop - value; n > 0 && value[n - 1] == ' ';)
			n--;
		if (n < 1 || !isa_lex_int(value, n, &v[which]))
			return false;
		seen |= 1u << which;
		if (stop == end)
			return true;
		s = isa_skip_space(stop + 1);
	}
}

static bool parse_hwreg(struct parser *ps, const struct arg *a, uint32_t *field)
{
	struct part part[3];
	int64_t v[3] = { 0, 0, 32 };
	int n = call_parts(a->s, a->len, "hwreg", part, 3);

	if (a->kind == ARG_INT) {
		*field = a->i;
		return (a->i >= 0 && a->i <= 0xffff) ||
		       isa_refuse(ps, 3, "immediate does not fit 16 bits");
	}
	if (*a->s == '{') {
		if (!named_parts(a->s, a->s + a->len - 1, v))
			return isa_refuse(ps, 3,
					  "wanted {id: REGISTER, offset: "
					  "OFFSET, size: WIDTH}");
		return put_bit_field(ps, v, field);
	}
	if (n != 1 && n != 3)
		return isa_refuse(ps, 3,
				  "wanted hwreg(REGISTER) or "
				  "hwreg(REGISTER, OFFSET, WIDTH)");
	v[0] = name_or_number(&part[0], isa_hwreg_names(ps->t->gen),
			      "HW_REG_");
	if (*part[0].s == 'H' && !isa_hwreg_known(ps->t->gen, v[0]))
		v[0] = -1;
	for (int i = 1; i < n; i++)
		if (!isa_lex_int(part[i].s, part[i].len, &v[i]))
			v[i] = -1;
	return put_bit_field(ps, v, field);
}

/* gfx10_3: sendmsg(MSG_GS, GS_OP_EMIT, 1). */
static bool message_gfx10(struct parser *ps, const struct part *part, int n,
			  uint32_t *field)
{
	int64_t v[3] = { name_or_number(&part[0], MSG10, "MSG_"), 0, 0 };
	bool named = isa_is_name_start(*part[0].s);
	bool gs = v[0] == 2 || v[0] == 3, sys = v[0] == 15;

	if (n > 1)
		v[1] = gs ? name_or_number(&part[1], GSOP10, "GS_OP_") :
			    name_or_number(&part[1], SYSOP10, "SYSMSG_OP_");
	if (n > 2 && !isa_lex_int(part[2].s, part[2].len, &v[2]))
		v[2] = -1;
	if (v[0] < 0 || v[0] > 15)
		return isa_refuse(ps, 3, "unknown message");
	if (v[1] < 0 || v[1] > 7 || v[2] < 0 || v[2] > 3)
		return isa_refuse(ps, 3, "unknown operation or stream of a "
					 "message");
	if (named && ((!gs && !sys && n > 1) || ((gs || sys) && n < 2) ||
		      (sys && n > 2) || (n > 2 && !v[1])))
		return isa_refuse(ps, 3, "this message has not this operation "
					 "or stream");
	*field = v[0] | v[1] << 4 | v[2] << 8;
	return true;
}

/*
 * gfx11 messages have neither operation nor stream; they may be written as
 * zero where the message is a number.
 */
static bool parse_message(struct parser *ps, const struct arg *a,
			  uint32_t *field)
{
	struct part part[3];
	int n = call_parts(a->s, a->len, "sendmsg", part, 3);
	int64_t id, zero;

	if (a->kind == ARG_INT) {
		*field = a->i;
		return (a->i >= 0 && a->i <= 0xffff) ||
		       isa_refuse(ps, 3, "immediate does not fit 16 bits");
	}
	if (n < 1)
		return isa_refuse(ps, 3, "wanted sendmsg(MESSAGE)");
	if (ps->t->gen < ISA_GFX11)
		return message_gfx10(ps, part, n, field);
	id = name_or_number(&part[0], ps->t->gen == ISA_GFX12 ? MSG12 : MSG,
			    "MSG_");
	if (id < 0 || id > 0xff)
		return isa_refuse(ps, 3, "unknown message");
	if (n > 1 && isa_is_name_start(*part[0].s))
		return isa_refuse(ps, 3, "messages have no operations here");
	for (int i = 1; i < n; i++)
		if (!isa_lex_int(part[i].s, part[i].len, &zero) || zero)
			return isa_refuse(ps, 3,
					  "message operation and stream must "
					  "be 0");
	*field = id;
	return true;
}

/* "UC_VERSION_GFX11|UC_VERSION_W32_BIT": a version and its flags. */
static bool parse_version(struct parser *ps, const struct arg *a, uint32_t *v)
{
	const char *p = a->s, *end = p + a->len;

	static const struct {
		const char *name;
		uint16_t bit;
	} flag[] = {
		{ "UC_VERSION_W64_BIT", 0x2000 },
		{ "UC_VERSION_W32_BIT", 0x4000 },
		{ "UC_VERSION_MDP_BIT", 0x8000 },
	};
	*v = 0;
	for (;;) {
		struct part word;
		int64_t n;

		while (p < end && *p == '(')
			p++;
		word.s = p;
		while (p < end && isa_is_name(*p))
			p++;
		word.len = p - word.s;
		n = isa_name_number(UCVERSION, word.s, word.len);
		for (size_t i = 0; i < ARRAY_SIZE(flag); i++)
			if (isa_word_is(word.s, word.len, flag[i].name))
				n = flag[i].bit;
		if (n < 0 && !(isa_lex_int(word.s, word.len, &n) && n >= 0 &&
			       n <= 0xffff))
			return isa_refuse(ps, 3, "unknown microcode version");
		*v |= n;
		while (p < end && (*p == ' ' || *p == ')'))
			p++;
		if (p >= end)
			return true;
		if (*p != '|')
			return isa_refuse(ps, 3, "wanted '|' between flags");
		p = isa_skip_space(p + 1);
	}
}

/* s_cmpk_lt_u32 and its like compare with a number that is not negative. */
static bool is_unsigned(const struct isa_op_info *op)
{
	if (op == isa_op_info(ISA_s_endpgm))
		return true;
	return op->n_opnd == 2 && op->opnd[0].slot == ISA_SLOT_DIN &&
	       op->opnd[0].type == ISA_T_U32;
}

static bool put_number(struct parser *ps, const struct arg *a, int slot)
{
	int64_t i = a->i;

	if (a->kind == ARG_WORD &&
	    !isa_word_value(
		    ps, a,
		    slot == ISA_SLOT_REL ? ISA_SYM_BRANCH : ISA_SYM_VALUE, &i))
		return false;
	if (a->kind != ARG_INT && a->kind != ARG_WORD)
		return isa_refuse(ps, 2, "wanted an immediate");
	if (!fits_16(i) || (i < 0 && is_unsigned(ps->op)))
		return isa_refuse(ps, 3,
				  slot == ISA_SLOT_REL ?
					  "branch target out of range" :
					  "immediate does not fit 16 "
					  "bits");
	return isa_put_field(ps, ISA_F_SIMM16, i & 0xffff);
}

bool isa_put_imm(struct parser *ps, const struct arg *a, int slot)
{
	uint32_t v = 0;

	switch (slot) {
	case ISA_SLOT_MSG:
		return parse_message(ps, a, &v) &&
		       isa_put_field(ps,
				     ps->in->fmt == ISA_FMT_SOP1 ? ISA_F_SSRC0 :
								   ISA_F_SIMM16,
				     v);
	case ISA_SLOT_HWREG:
		return parse_hwreg(ps, a, &v) &&
		       isa_put_field(ps, ISA_F_SIMM16, v);
	}
	if (ps->in->op == ISA_s_version && a->kind == ARG_WORD)
		return parse_version(ps, a, &v) &&
		       isa_put_field(ps, ISA_F_SIMM16, v);
	return put_number(ps, a, slot);
}

/* ----------------------------------------------------------- counters ---- */

/* "name(value)" items in a row. */
struct syntax {
	const struct imm_item *item;
	int n;
	const char *separators; /* one may stand between two items */
	bool separator_needed, once;
	uint32_t initial;
};

static const struct imm_item waitcnt_items[] = {
	{ "vmcnt", 10, 6, -1 },
	{ "lgkmcnt", 4, 6, -1 },
	{ "expcnt", 0, 3, -1 },
};

static const struct syntax waitcnt = { waitcnt_items, ARRAY_SIZE(waitcnt_items),
				       "&,",	      false,
				       false,	      0xfff7 };
static const struct syntax delay = {
	isa_delay_items, DELAY_ITEMS, "|", true, false, 0
};
static const struct syntax depctr = {
	isa_depctr_items, DEPCTR_ITEMS, "&,", false, true, 0xff9f
};
static const struct syntax depctr_gfx10_1 = {
	isa_depctr_items + 1, DEPCTR_ITEMS - 1, "&,", false, true, 0xff1f
};

static const struct syntax *syntax_of(const struct isa_op_info *op,
				      enum isa_gen gen)
{
	if (op->n_opnd != 1)
		return NULL;
	switch (op->opnd[0].slot) {
	case ISA_SLOT_WAITCNT:
		return &waitcnt;
	case ISA_SLOT_DELAY:
		return &delay;
	case ISA_SLOT_DEPCTR:
		return isa_depctr_first(gen) ? &depctr_gfx10_1 : &depctr;
	}
	return NULL;
}

bool isa_imm_takes_line(const struct isa_op_info *op)
{
	return syntax_of(op, ISA_GFX11) != NULL;
}

/* The value between parentheses; "vmcnt_sat(99)" is cut to what fits. */
static const char *item_value(const struct imm_item *it, bool sat,
			      const char *s, int len, uint32_t *out)
{
	int64_t v, max = (1 << it->width) - 1;

	while (len && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	if (it->names >= 0) {
		v = isa_name_number(it->names, s, len);
		if (v < 0)
			return "unknown name in parentheses";
	} else if (!isa_lex_int(s, len, &v)) {
		return "wanted a number in parentheses";
	}
	if (sat && v > max)
		v = max;
	if (v < 0 || v > max)
		return "value too large for its counter";
	*out = v;
	return NULL;
}

static const char *find_item(const struct syntax *x, const char *s, int len,
			     bool *sat, const struct imm_item **out)
{
	*sat = x == &waitcnt && len > 4 && !memcmp(s + len - 4, "_sat", 4);
	if (*sat)
		len -= 4;
	for (int i = 0; i < x->n; i++) {
		if (!isa_word_is(s, len, x->item[i].name))
			continue;
		*out = &x->item[i];
		return NULL;
	}
	return "unknown counter";
}

static const char *parse_items(const char *s, const struct syntax *x,
			       uint32_t *field)
{
	uint32_t seen = 0;

	*field = x->initial;
	for (;;) {
		const char *name = s, *why, *close;
		const struct imm_item *it;
		uint32_t v, mask;
		bool sat;

		while (isa_is_name(*s))
			s++;
		why = find_item(x, name, s - name, &sat, &it);
		if (why)
			return why;
		s = isa_skip_space(s);
		close = *s == '(' ? strchr(s, ')') : NULL;
		if (!close)
			return "wanted COUNTER(VALUE)";
		s = isa_skip_space(s + 1);
		why = s > close ? "value missing" :
				  item_value(it, sat, s, close - s, &v);
		if (why)
			return why;
		mask = ((1u << it->width) - 1) << it->low;
		if (x->once && seen & mask)
			return "counter given twice";
		/* A delay given twice is both: LLVM combines the bits. */
		*field = (*field & (x == &delay ? ~0u : ~mask)) | v << it->low;
		seen |= mask;
		s = isa_skip_space(close + 1);
		if (!*s)
			return NULL;
		if (strchr(x->separators, *s))
			s = isa_skip_space(s + 1);
		else if (x->separator_needed)
			return "wanted '|' between delays";
	}
}

bool isa_put_line(struct parser *ps, const char *s)
{
	const struct syntax *x = syntax_of(ps->op, ps->t->gen);
	uint32_t v = 0;
	const char *why = NULL, *p = s = isa_skip_space(s);

	while (isa_is_name(*p))
		p++;
	if (!*s)
		return isa_refuse(ps, 2, "too few operands");
	if (isa_is_name_start(*s) && *isa_skip_space(p) == '(') {
		why = parse_items(s, x, &v);
	} else {
		why = isa_lex_line(ps, s);
		if (!why && (ps->n_args != 1 || ps->n_mods))
			why = "wanted counters or one immediate";
		if (!why)
			return put_number(ps, &ps->arg[0], ISA_SLOT_IMM);
	}
	if (x == &waitcnt) /* its items are given as gfx11 has them */
		v = isa_waits_encode(ps->t->gen, isa_waits_of(ISA_GFX11, v));
	return why ? isa_refuse(ps, 3, why) :
		     isa_put_field(ps, ISA_F_SIMM16, v);
}

/* ------------------------------------------------------------ swizzle ---- */

static bool is_power_of_2(int64_t v, int64_t low, int64_t high)
{
	return v >= low && v <= high && !(v & (v - 1));
}

/* "01pip": constant, preserved and inverted bits of the lane, high first. */
static bool bitmask_perm(const struct part *p, int64_t *v)
{
	uint32_t and = 0, or = 0, xor = 0;

	if (p->len != 7 || p->s[0] != '"' || p->s[6] != '"')
		return false;
	for (int i = 0; i < 5; i++) {
		char c = p->s[1 + i];
		uint32_t bit = 1u << (4 - i);

		if (c != '0' && c != '1' && c != 'p' && c != 'i')
			return false;
		and |= c == 'p' || c == 'i' ? bit : 0;
		or |= c == '1' ? bit : 0;
		xor |= c == 'i' ? bit : 0;
	}
	*v = and | or << 5 | xor << 10;
	return true;
}

bool isa_parse_swizzle(const char *s, int len, int64_t *v)
{
	struct part p[5];
	int n = call_parts(s, len, "swizzle", p, 5);
	int64_t x[5] = { 0 };

	if (n < 2)
		return false;
	if (isa_word_is(p[0].s, p[0].len, "BITMASK_PERM"))
		return n == 2 && bitmask_perm(&p[1], v);
	for (int i = 1; i < n; i++)
		if (!isa_lex_int(p[i].s, p[i].len, &x[i]))
			return false;
	if (isa_word_is(p[0].s, p[0].len, "QUAD_PERM")) {
		if (n != 5 || (x[1] | x[2] | x[3] | x[4]) & ~INT64_C(3))
			return false;
		*v = 0x8000 | x[1] | x[2] << 2 | x[3] << 4 | x[4] << 6;
		return true;
	}
	if (isa_word_is(p[0].s, p[0].len, "SWAP")) {
		if (n != 2 || !is_power_of_2(x[1], 1, 16))
			return false;
		*v = x[1] << 10 | 31;
		return true;
	}
	if (isa_word_is(p[0].s, p[0].len, "REVERSE")) {
		if (n != 2 || !is_power_of_2(x[1], 2, 32))
			return false;
		*v = (x[1] - 1) << 10 | 31;
		return true;
	}
	if (isa_word_is(p[0].s, p[0].len, "BROADCAST")) {
		if (n != 3 || !is_power_of_2(x[1], 2, 32) || x[2] < 0 ||
		    x[2] >= x[1])
			return false;
		*v = (32 - x[1]) | x[2] << 5;
		return true;
	}
	return false;
}
