/*
 * isa/text/parse_line.c - the text after a mnemonic to operands and modifiers.
 *
 * Commas separate but are optional, as in LLVM: an operand ends where no
 * operator follows.  A modifier's name is a modifier, wherever it stands.
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

/* ---------------------------------------------------------- modifiers ---- */

static const struct {
	const char *name;
	uint8_t len, flag;
} mod_names[MD_COUNT] = {
#define MOD(id, name, rank, flag) [MD_##id] = { name, sizeof(name) - 1, flag },
#include "isa/tables/mods.def"
};

static const uint8_t mod_rank[MD_COUNT] = {
#define MOD(id, name, rank, flag) [MD_##id] = rank,
#include "isa/tables/mods.def"
};

static enum mod_id mod_named(const char *s, int len, bool flag)
{
	/* No modifier starts with these letters: rejects most names early. */
	const uint32_t first =
#define MOD(id, name, rank, flag) 1u << (name[0] & 31) |
#include "isa/tables/mods.def"
		0;

	if (!(first >> (*s & 31) & 1))
		return MD_UNKNOWN;
	for (int i = 1; i < MD_COUNT; i++)
		if (mod_names[i].len == len && mod_names[i].name[0] == *s &&
		    !mod_names[i].flag == !flag &&
		    !memcmp(mod_names[i].name, s, len))
			return i;
	return MD_UNKNOWN;
}

static const char *mod_list_end(const char *p)
{
	while (*p && *p != ']' && *p != '\n')
		p++;
	return *p == ']' ? p + 1 : NULL;
}

static const char *lex_mod_value(const char **at, struct mod *m)
{
	struct arg a = { 0 };
	const char *p = *at, *why;

	m->s = p;
	if (*p == '[') {
		m->value = MD_LIST;
		*at = mod_list_end(p);
		if (!*at)
			return "']' missing";
	} else if (m->id == MD_DIM) {
		m->value = MD_WORD;
		while (isa_is_name(**at))
			++*at;
	} else if (!strncmp(p, "swizzle", 7) && isa_lex_call_follows(p, 7)) {
		m->value = MD_WORD;
		*at = isa_lex_call_end(p);
		if (!*at)
			return "')' missing";
	} else {
		why = isa_lex_expression(at, &a, false);
		if (why)
			return why;
		if (a.kind == ARG_FLOAT)
			return "a modifier's value is an integer";
		m->value = a.kind == ARG_INT ? MD_INT : MD_WORD;
		m->i = a.i;
	}
	m->len = *at - p;
	return NULL;
}

/* A modifier at *p?  Then it is added and *p moves. */
static const char *lex_mod(struct parser *ps, const char **p, bool *found)
{
	struct mod *m = &ps->mod[ps->n_mods];
	const char *end = *p, *colon;
	int len;

	*found = false;
	while (isa_is_name(*end))
		end++;
	len = end - *p;
	colon = isa_skip_space(end);
	memset(m, 0, sizeof(*m));
	if (*colon == ':' && colon[1] != ':') {
		m->id = mod_named(*p, len, false);
		*p = isa_skip_space(colon + 1);
	} else {
		m->id = mod_named(*p, len, true);
		if (!m->id && len > 4 && !memcmp(*p, "no", 2)) {
			m->id = mod_named(*p + 2, len - 2, true);
			m->no = m->id;
			if (m->id && mod_names[m->id].flag == 2)
				return "unknown modifier";
		}
		if (!m->id)
			return NULL;
		*p = end;
		colon = NULL;
	}
	if (!m->id)
		return "unknown modifier";
	if (ps->n_mods == MAX_MODS - 1)
		return "too many modifiers";
	*found = true;
	ps->n_mods++;
	return colon ? lex_mod_value(p, m) : NULL;
}

static bool is_cache_bit(int id)
{
	return id == MD_GLC || id == MD_SLC || id == MD_DLC || id == MD_TH ||
	       id == MD_SCOPE;
}

/* Each at most once, and in the order that LLVM wants. */
static const char *check_order(struct parser *ps)
{
	bool interp = ps->op && ps->op->fmt == ISA_FMT_VINTERP;
	int last = -1;
	uint64_t seen = 0;

	for (int i = 0; i < ps->n_mods; i++) {
		int id = ps->mod[i].id, rank;

		if (seen >> id & 1)
			return "modifier given twice";
		seen |= UINT64_C(1) << id;
		rank = mod_rank[id];
		/* Interpolation has op_sel after clamp. */
		if (interp && id == MD_OP_SEL)
			rank = mod_rank[MD_CLAMP] + 1;
		if (rank < last || (rank == last && !is_cache_bit(id)))
			return "modifiers out of order";
		last = rank;
	}
	return NULL;
}

const char *isa_lex_line(struct parser *ps, const char *p)
{
	const char *why;
	bool found;

	ps->n_args = ps->n_mods = ps->n_list = 0;
	for (p = isa_skip_space(p); *p;) {
		/* The common case: a register is never a modifier. */
		if (isa_is_name_start(*p) && !isa_lex_is_register(p)) {
			why = lex_mod(ps, &p, &found);
			if (why)
				return why;
			if (found)
				goto next;
		}
		if (ps->n_mods && ps->mod[ps->n_mods - 1].id != MD_FORMAT)
			return "an operand behind a modifier";
		if (ps->n_args == MAX_ARGS)
			return "too many operands";
		why = isa_lex_arg(ps, &p, &ps->arg[ps->n_args]);
		if (why)
			return why;
		ps->n_args++;
next:
		p = isa_skip_space(p);
		if (*p == ',')
			p = isa_skip_space(p + 1);
	}
	return check_order(ps);
}
