/*
 * isa/text/parse_name.c - mnemonics to rows, by a hash table built once.
 */
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

enum { SLOTS = 8192, MAX_NAME = 63 };
_Static_assert(ISA_OP_COUNT < SLOTS / 4, "the hash table is too full");

/* Which generation's name of the row; ALIAS + i: the i-th alias of gfx12. */
enum whose { OWN, OLD, ALIAS };

/*
 * Rows by hash of their names, 0 = empty: gfx11's, gfx10_3's where it is
 * another, and gfx12's aliases.  Constant once `made`.
 */
static struct {
	uint16_t op;
	uint8_t len, whose; /* enum whose */
} table[SLOTS];
static pthread_once_t made = PTHREAD_ONCE_INIT;

/* Hash of the length and the first and last eight characters. */
static uint32_t mnemonic_hash(const char *s, int len)
{
	uint64_t first = 0, last = 0;

	if (len >= 8) {
		memcpy(&first, s, 8);
		memcpy(&last, s + len - 8, 8);
	} else {
		memcpy(&first, s, len);
	}
	first = (first ^ (uint64_t)len << 56) * UINT64_C(0x9e3779b97f4a7c15);
	last = (last ^ first >> 32) * UINT64_C(0xc2b2ae3d27d4eb4f);
	return (first ^ last) >> 40 & (SLOTS - 1);
}

static const char *name_of(enum isa_op op, int whose)
{
	return whose >= ALIAS ?
		       isa_aliases_gfx12[whose - ALIAS].name :
		       isa_op_name(whose == OLD ? ISA_GFX10_3 : ISA_GFX11, op);
}

static void table_add(enum isa_op op, int whose)
{
	const char *name = name_of(op, whose);
	uint32_t at = mnemonic_hash(name, strlen(name));

	while (table[at].op)
		at = (at + 1) % SLOTS;
	table[at].op = op;
	table[at].len = strlen(name);
	table[at].whose = whose;
}

static void build_table(void)
{
	for (int op = 1; op < ISA_OP_COUNT; op++) {
		table_add(op, OWN);
		if (name_of(op, OLD) != name_of(op, OWN))
			table_add(op, OLD);
	}
	for (int i = 0; isa_aliases_gfx12[i].op; i++)
		table_add(isa_aliases_gfx12[i].op, ALIAS + i);
}

/*
 * The row of this generation with this name, else the one that had it in
 * gfx10_3 or takes it beside its own, else one of another generation.  Loads to
 * LDS have the names of others and are told from them by a modifier.
 */
static enum isa_op find_row(enum isa_gen gen, const char *s, int len)
{
	enum isa_op other = ISA_OP_NONE, alias = ISA_OP_NONE;

	pthread_once(&made, build_table);
	for (uint32_t at = mnemonic_hash(s, len); table[at].op;
	     at = (at + 1) % SLOTS) {
		enum isa_op op = table[at].op;
		const char *name;

		if (table[at].len != len)
			continue;
		name = name_of(op, table[at].whose);
		if (memcmp(name, s, len) ||
		    (table[at].whose == OLD &&
		     isa_op_info(op)->flags & ISA_LDSDMA))
			continue;
		if (isa_opcode(gen, op, false) < 0)
			other = table[at].whose >= ALIAS ? other : op;
		else if (name == isa_op_name(gen, op))
			return op;
		else if (table[at].whose != OWN)
			alias = op;
	}
	return alias ? alias : other;
}

static bool cut_suffix(const char *s, int *len, const char *suffix, int n)
{
	if (*len <= n || memcmp(s + *len - n, suffix, n))
		return false;
	*len -= n;
	return true;
}

/* LLVM lowers the case of mnemonics, not of operands. */
static bool copy_lowercase(const char *s, int len, char *out)
{
	if (len > MAX_NAME)
		return false;
	for (int i = 0; i < len; i++)
		out[i] = s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 32 : s[i];
	return true;
}

static bool find_lower(enum isa_gen gen, const char *s, int len,
		       struct mnemonic *m)
{
	m->sdwa = gen < ISA_GFX11 && cut_suffix(s, &len, "_sdwa", 5);
	m->dpp = !m->sdwa && cut_suffix(s, &len, "_dpp", 4);
	m->e64 = cut_suffix(s, &len, "_e64", 4);
	m->e32 = !m->e64 && !m->dpp && !m->sdwa &&
		 cut_suffix(s, &len, "_e32", 4);
	m->op = find_row(gen, s, len);
	return m->op != ISA_OP_NONE;
}

bool isa_name_find(enum isa_gen gen, const char *s, int len, struct mnemonic *m)
{
	char name[MAX_NAME + 1];

	/* The common case: lower case already. */
	return find_lower(gen, s, len, m) ||
	       (copy_lowercase(s, len, name) && find_lower(gen, name, len, m));
}

int isa_name_dual(enum isa_gen gen, const char *s, int len, bool y)
{
	char name[MAX_NAME + 1];
	const char *dual;

	if (!copy_lowercase(s, len, name))
		return -1;
	cut_suffix(name, &len, "_e32", 4);
	for (int opcode = 0; opcode < 32; opcode++)
		if (isa_vopd_op_in(gen, opcode, y, &dual) &&
		    isa_word_is(name, len, dual))
			return opcode;
	return -1;
}

bool isa_name_is_dual(const char *s)
{
	return (s[0] | 32) == 'v' && s[1] == '_' && (s[2] | 32) == 'd' &&
	       !strncasecmp(s, "v_dual_", 7);
}
