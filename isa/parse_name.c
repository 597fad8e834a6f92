/*
 * isa/parse_name.c - mnemonics to rows, by a hash table that is made once.
 */
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "isa/parse.h"

enum { SLOTS = 4096, MAX_NAME = 63 };
_Static_assert(ISA_OP_COUNT < SLOTS / 2, "the hash table is too full");

/* Rows by hash of their name, 0 = empty.  Constant once `made`. */
static uint16_t table[SLOTS];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static uint32_t hash(const char *s, int len)
{
	uint32_t h = 2166136261u;

	for (int i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 16777619u;
	return (h ^ h >> 13) % SLOTS;
}

static void make(void)
{
	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const char *name = isa_op_info(op)->name;
		uint32_t at = hash(name, strlen(name));

		while (table[at])
			at = (at + 1) % SLOTS;
		table[at] = op;
	}
}

/* The row of this generation, or else one of another. */
static enum isa_op find(enum isa_gen gen, const char *s, int len)
{
	enum isa_op other = ISA_OP_NONE;

	pthread_once(&made, make);
	for (uint32_t at = hash(s, len); table[at]; at = (at + 1) % SLOTS) {
		const char *name = isa_op_info(table[at])->name;

		if (strncmp(name, s, len) || name[len])
			continue;
		if (isa_opcode(gen, table[at], false) >= 0)
			return table[at];
		other = table[at];
	}
	return other;
}

static bool cut(const char *s, int *len, const char *suffix, int n)
{
	if (*len <= n || memcmp(s + *len - n, suffix, n))
		return false;
	*len -= n;
	return true;
}

/* LLVM lowers the case of mnemonics, not of operands. */
static bool lower(const char *s, int len, char *out)
{
	if (len > MAX_NAME)
		return false;
	for (int i = 0; i < len; i++)
		out[i] = s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 32 : s[i];
	return true;
}

bool isa_name_find(enum isa_gen gen, const char *s, int len, struct mnemonic *m)
{
	char name[MAX_NAME + 1];

	memset(m, 0, sizeof(*m));
	if (!lower(s, len, name))
		return false;
	m->dpp = cut(name, &len, "_dpp", 4);
	m->e64 = cut(name, &len, "_e64", 4);
	if (!m->e64 && !m->dpp)
		m->e32 = cut(name, &len, "_e32", 4);
	m->op = find(gen, name, len);
	return m->op != ISA_OP_NONE;
}

int isa_name_dual(enum isa_gen gen, const char *s, int len, bool y)
{
	char name[MAX_NAME + 1];
	const char *dual;

	if (!lower(s, len, name))
		return -1;
	cut(name, &len, "_e32", 4);
	for (int opcode = 0; opcode < 32; opcode++)
		if (isa_vopd_op_in(gen, opcode, y, &dual) &&
		    isa_word_is(name, len, dual))
			return opcode;
	return -1;
}

bool isa_name_is_dual(const char *s)
{
	return !strncasecmp(s, "v_dual_", 7);
}
