/*
 * isa/text/parse_sdwa.c - SDWA: the dword of register parts, the inverse
 * of isa/code/decode_sdwa.c, where its bits are explained.
 */
#include "base/base.h"
#include "isa/text/parse_int.h"

/* Whole registers; the rest of a destination is preserved. */
uint32_t isa_sdwa_default(enum isa_fmt fmt)
{
	uint32_t whole = ISA_SDWA_DWORD << 16;

	if (fmt != ISA_FMT_VOP1)
		whole |= ISA_SDWA_DWORD << 24;
	return fmt == ISA_FMT_VOPC ? whole :
				     whole | ISA_SDWA_DWORD << 8 | 2 << 11;
}

static void put_bits(struct parser *ps, int low, int width, uint32_t v)
{
	uint32_t mask = ((1u << width) - 1) << low;

	ps->in->extra[0] = (ps->in->extra[0] & ~mask) | v << low;
}

static int name_index(const struct mod *m, const char *const *name, int n)
{
	for (int i = 0; m->value == MD_WORD && i < n; i++)
		if (isa_word_is(m->s, m->len, name[i]))
			return i;
	return -1;
}

static bool put_part(struct parser *ps, const struct mod *m, int low)
{
	static const char *const parts[] = { "BYTE_0", "BYTE_1", "BYTE_2",
					     "BYTE_3", "WORD_0", "WORD_1",
					     "DWORD" };
	int i = name_index(m, parts, ARRAY_SIZE(parts));

	if (i < 0)
		return isa_refuse(ps, 3, "wanted BYTE_0 to BYTE_3, WORD_0, "
					 "WORD_1 or DWORD");
	put_bits(ps, low, 3, i);
	return true;
}

bool isa_put_sdwa_mod(struct parser *ps, const struct mod *m)
{
	static const char *const unused[] = { "UNUSED_PAD", "UNUSED_SEXT",
					      "UNUSED_PRESERVE" };
	enum isa_fmt fmt = ps->in->fmt;
	int i;

	if (ps->in->form != ISA_FORM_SDWA ||
	    (m->id == MD_SRC1_SEL && fmt == ISA_FMT_VOP1) ||
	    (m->id != MD_SRC0_SEL && m->id != MD_SRC1_SEL &&
	     fmt == ISA_FMT_VOPC))
		return isa_refuse(ps, 2, "modifier not allowed here");
	switch (m->id) {
	case MD_CLAMP:
		put_bits(ps, 13, 1, !m->no);
		return true;
	case MD_DST_SEL:
		return put_part(ps, m, 8);
	case MD_SRC0_SEL:
		return put_part(ps, m, 16);
	case MD_SRC1_SEL:
		return put_part(ps, m, 24);
	case MD_DST_UNUSED:
		i = name_index(m, unused, ARRAY_SIZE(unused));
		if (i < 0)
			return isa_refuse(ps, 3, "wanted UNUSED_PAD, "
						 "UNUSED_SEXT or "
						 "UNUSED_PRESERVE");
		put_bits(ps, 11, 2, i);
		return true;
	}
	i = isa_mod_omod(ps, m);
	if (i >= 0)
		put_bits(ps, 14, 2, i);
	return i >= 0;
}

bool isa_put_sdwa_source(struct parser *ps, const struct arg *a, int i,
			 const struct isa_operand_info *slot)
{
	int low = 16 + 8 * i;
	uint32_t v;

	if (!isa_put_source(ps, a, slot, true, &v))
		return false;
	if (a->sext)
		put_bits(ps, low + 3, 1, 1);
	put_bits(ps, low + 4, 2, a->neg | a->abs << 1);
	if (v < 256 && slot->slot >= ISA_SLOT_S0V &&
	    slot->slot <= ISA_SLOT_S2V)
		return isa_refuse(ps, 2, "this source must be a VGPR");
	if (v < 256) {
		put_bits(ps, low + 7, 1, 1);
		v = isa_swap_m0(v);
	}
	if (i)
		ps->in->f[ISA_F_VSRC1] = v & 0xff;
	else
		put_bits(ps, 0, 8, v & 0xff);
	return true;
}
