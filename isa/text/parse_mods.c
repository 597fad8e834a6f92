/*
 * isa/text/parse_mods.c - modifiers to fields.
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

bool isa_put_field(struct parser *ps, enum isa_field field, uint64_t v)
{
	int width = isa_field_width(
		ps->in->layout ? ps->in->layout : ps->in->fmt, field);

	if (!width)
		return isa_refuse(ps, 1, "modifier not allowed here");
	if (v >> width)
		return isa_refuse(ps, 3, "value does not fit its field");
	ps->in->f[field] = v;
	return true;
}

bool isa_op_has_slot(const struct isa_op_info *op, int slot)
{
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == slot)
			return true;
	return false;
}

/* An integer, from the text or from the caller's symbols. */
static bool mod_number(struct parser *ps, const struct mod *m, int64_t *v)
{
	struct arg a = { .s = m->s, .len = m->len };

	*v = m->i;
	if (m->value == MD_WORD)
		return isa_word_value(ps, &a, ISA_SYM_VALUE, v);
	return m->value == MD_INT ||
	       isa_refuse(ps, 3, "this modifier's value is a number");
}

/* "[a,b,c]" of numbers below `limit`; the count, or -1. */
static int bracket_list(const struct mod *m, int limit, uint8_t out[8])
{
	const char *p = m->s + 1, *end = m->s + m->len - 1;
	int n = 0;

	if (m->value != MD_LIST)
		return -1;
	for (;;) {
		const char *start = p = isa_skip_space(p);
		int64_t v = isa_lex_digits(&p);

		p = isa_skip_space(p);
		if (v < 0 || (*p != ',' && p != end)) {
			while (p < end && *p != ',')
				p++;
			if (!isa_lex_int(start, p - start, &v))
				return -1;
		}
		if (v < 0 || v >= limit || n == 8)
			return -1;
		out[n++] = v;
		if (p == end)
			return n;
		p++;
	}
}

/* ------------------------------------------------------------- memory ---- */

static bool put_ds_offset(struct parser *ps, int64_t v)
{
	if (v < 0 || v > 0xffff)
		return isa_refuse(ps, 3, "offset does not fit 16 bits");
	ps->in->f[ISA_F_OFFSET0] = v & 0xff;
	ps->in->f[ISA_F_OFFSET1] = v >> 8;
	return true;
}

static bool put_flat_offset(struct parser *ps, int64_t v)
{
	bool flat = ps->in->fmt == ISA_FMT_FLAT;

	if (ps->t->gen < ISA_GFX11)
		return v < (flat ? 0 : -2048) || v > 2047 ?
			       isa_refuse(ps, 3,
					  flat ? "offset does not fit 11 bits" :
						 "offset does not fit 12 "
						 "signed bits") :
			       isa_put_field(ps, ISA_F_OFFSET, v & 0xfff);
	if (ps->t->gen == ISA_GFX12)
		return v < -(1 << 23) || v >= 1 << 23 ?
			       isa_refuse(ps, 3,
					  "offset does not fit 24 "
					  "signed bits") :
			       isa_put_field(ps, ISA_F_OFFSET, v & 0xffffff);
	if (v < (flat ? 0 : -4096) || v > 4095)
		return isa_refuse(ps, 3,
				  flat ? "offset does not fit 12 bits" :
					 "offset does not fit 13 signed bits");
	return isa_put_field(ps, ISA_F_OFFSET, v & 0x1fff);
}

bool isa_put_scalar_offset(struct parser *ps, int64_t v)
{
	int bits = ps->t->gen == ISA_GFX12 ? 24 : 21;
	int64_t limit = INT64_C(1) << (bits - 1);

	if (v < -limit || v >= limit)
		return isa_refuse(ps, 3,
				  bits == 24 ? "offset does not fit 24 bits" :
					       "offset does not fit 21 bits");
	return isa_put_field(ps, ISA_F_OFFSET, v & (2 * limit - 1));
}

/* Temporal hints by number; loads, stores and atomics name them differently. */
static int hint_number(const char *s, int len, uint32_t flags)
{
	static const struct {
		const char *name;
		uint8_t n;
	} shared[] = { { "RT", 0 },	{ "NT", 1 },	{ "HT", 2 },
		       { "BYPASS", 3 }, { "NT_RT", 4 }, { "RT_NT", 5 },
		       { "NT_HT", 6 } },
	  atomic[] = { { "RT", 0 },	   { "RT_RETURN", 1 },
		       { "RETURN", 1 },	   { "NT", 2 },
		       { "NT_RETURN", 3 }, { "CASCADE_RT", 4 },
		       { "CASCADE_NT", 6 } };
	const char *kind = flags & ISA_ATOMIC ? "TH_ATOMIC_" :
			   flags & ISA_STORE  ? "TH_STORE_" :
						"TH_LOAD_";
	int n = strlen(kind);

	if (!isa_has_prefix(s, len, kind))
		return -1;
	s += n;
	len -= n;
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		if (flags & ISA_ATOMIC ? isa_word_is(s, len, atomic[i].name) :
					 isa_word_is(s, len, shared[i].name))
			return flags & ISA_ATOMIC ? atomic[i].n : shared[i].n;
	if (flags & ISA_STORE)
		return isa_word_is(s, len, "RT_WB") ? 3 :
		       isa_word_is(s, len, "NT_WB") ? 7 :
						      -1;
	return isa_word_is(s, len, "LU") && !(flags & ISA_ATOMIC) ? 3 : -1;
}

static bool put_hint(struct parser *ps, const struct mod *m)
{
	int64_t v = -1;

	if (m->value == MD_WORD)
		v = hint_number(m->s, m->len, ps->op->flags);
	if (v < 0)
		return isa_refuse(ps, 3, "unknown temporal hint");
	ps->in->f[ISA_F_GLC] = v & 1;
	return isa_put_field(ps, ISA_F_TH, v >> 1);
}

static bool put_scope(struct parser *ps, const struct mod *m)
{
	static const char *const name[] = { "SCOPE_CU", "SCOPE_SE", "SCOPE_DEV",
					    "SCOPE_SYS" };
	int64_t v = 4;

	if (m->value != MD_WORD && !mod_number(ps, m, &v))
		return false;
	for (int i = 0; m->value == MD_WORD && i < 4; i++)
		if (isa_word_is(m->s, m->len, name[i]))
			v = i;
	return v < 0 || v > 3 ? isa_refuse(ps, 3, "unknown scope") :
				isa_put_field(ps, ISA_F_SCOPE, v);
}

/* The byte of an 8-bit float, or the key of a sparse matrix product. */
static bool put_number_select(struct parser *ps, const struct mod *m)
{
	struct isa_inst *in = ps->in;
	bool key = m->id == MD_INDEX_KEY;
	int64_t v;

	if (!mod_number(ps, m, &v))
		return false;
	if (v < 0 || v > 3)
		return isa_refuse(ps, 3, "wanted 0 to 3");
	if (key ? !isa_inst_is_swmmac(in) :
		  isa_inst_byte_sel(in) < 0 || in->fmt != ISA_FMT_VOP3)
		return isa_refuse(ps, 1, "modifier not allowed here");
	if (key)
		in->f[ISA_F_OPSEL] = v;
	else if (ps->op->fmt == ISA_FMT_VOP1)
		in->f[ISA_F_OPSEL] = (v & 1) << 1 | v >> 1;
	else
		in->f[ISA_F_OPSEL] = v << 2;
	return true;
}

static bool put_offset(struct parser *ps, const struct mod *m)
{
	const struct isa_op_info *op = ps->op;
	int64_t v;

	if (isa_op_has_slot(op, ISA_SLOT_OFF2))
		return isa_refuse(ps, 2, "wanted offset0 and offset1");
	if (isa_op_has_slot(op, ISA_SLOT_SWIZZLE) && m->value == MD_WORD &&
	    isa_has_prefix(m->s, m->len, "swizzle"))
		return isa_parse_swizzle(m->s, m->len, &v) ?
			       put_ds_offset(ps, v) :
			       isa_refuse(ps, 3, "malformed swizzle");
	if (!mod_number(ps, m, &v))
		return false;
	if (ps->in->fmt == ISA_FMT_DS)
		return put_ds_offset(ps, v);
	if (ps->in->fmt == ISA_FMT_SMEM) {
		/* An immediate operand is the offset already. */
		if (ps->n_args && ps->arg[ps->n_args - 1].kind != ARG_SGPR)
			return isa_refuse(ps, 2, "two offsets");
		return isa_put_scalar_offset(ps, v);
	}
	if (isa_op_has_slot(op, ISA_SLOT_OFF13))
		return put_flat_offset(ps, v);
	if (ps->t->gen == ISA_GFX12)
		return put_flat_offset(ps, v);
	return v < 0 ? isa_refuse(ps, 3, "offset is negative") :
		       isa_put_field(ps, ISA_F_OFFSET, v);
}

static bool put_offset2(struct parser *ps, const struct mod *m)
{
	int64_t v;

	if (!isa_op_has_slot(ps->op, ISA_SLOT_OFF2))
		return isa_refuse(ps, 2, "offset0 and offset1 not allowed");
	return mod_number(ps, m, &v) &&
	       isa_put_field(
		       ps, m->id == MD_OFFSET0 ? ISA_F_OFFSET0 : ISA_F_OFFSET1,
		       v);
}

/* A name of `list`, and what follows its comma; false without a name. */
static bool next_name(const char **list, const char *end, const char **name,
		      int *len)
{
	const char *comma = memchr(*list, ',', end - *list);
	const char *stop = comma ? comma : end;

	*name = isa_skip_space(*list);
	while (stop > *name && (stop[-1] == ' ' || stop[-1] == '\t'))
		stop--;
	*len = stop - *name;
	*list = comma ? comma + 1 : NULL;
	return *len > 0;
}

/*
 * "BUF_FMT_8_UINT", or its halves as older generations had them, in any order:
 * "BUF_DATA_FORMAT_8, BUF_NUM_FORMAT_UINT".  One may be left out.  -1 if there
 * is no such format.
 */
static int format_of(const struct parser *ps, const char *list, int list_len)
{
	static const char data[] = "BUF_DATA_FORMAT_", num[] = "BUF_NUM_FORMAT_";
	enum isa_name_kind kind =
		ps->t->gen < ISA_GFX11 ? BUFFMT10 : BUFFMT;
	const char *end = list + list_len, *name, *d = "8", *n = "UNORM";
	int len, d_len = 0, n_len = 0;
	char whole[64];

	while (list) {
		if (!next_name(&list, end, &name, &len))
			return -1;
		if (!d_len && !n_len && !list &&
		    isa_has_prefix(name, len, "BUF_FMT_"))
			return isa_name_number(kind, name + 8, len - 8);
		if (!d_len && isa_has_prefix(name, len, data)) {
			d = name + strlen(data);
			d_len = len - strlen(data);
		} else if (!n_len && isa_has_prefix(name, len, num)) {
			n = name + strlen(num);
			n_len = len - strlen(num);
		} else {
			return -1;
		}
	}
	len = snprintf(whole, sizeof(whole), "%.*s_%.*s", d_len ? d_len : 1, d,
		       n_len ? n_len : 5, n);
	if (isa_word_is(whole, len, "INVALID_UNORM"))
		len = 7;
	return len < (int)sizeof(whole) ? isa_name_number(kind, whole, len) :
					  -1;
}

static bool put_format(struct parser *ps, const struct mod *m)
{
	int64_t v = -1;

	if (m->value == MD_LIST)
		v = format_of(ps, m->s + 1, m->len - 2);
	else if (m->value != MD_LIST && !mod_number(ps, m, &v))
		return false;
	return v < 0 ? isa_refuse(ps, 3, "unknown buffer format") :
		       isa_put_field(ps, ISA_F_FORMAT, v);
}

static bool put_dim(struct parser *ps, const struct mod *m)
{
	const char *s = m->s;
	int len = m->len, v;

	if (isa_has_prefix(s, len, "SQ_RSRC_IMG_")) {
		s += 12;
		len -= 12;
	}
	v = isa_name_number(DIM, s, len);
	return v < 0 ? isa_refuse(ps, 3, "unknown image dimension") :
		       isa_put_field(ps, ISA_F_DIM, v);
}

/* -------------------------------------------------------- vector math ---- */

static bool is_mix(const struct isa_op_info *op)
{
	return op->n_opnd > 1 && op->opnd[1].type == ISA_T_MIX;
}

static bool put_packed_select(struct parser *ps, enum mod_id id, uint32_t bits)
{
	struct isa_inst *in = ps->in;

	if ((id == MD_OP_SEL || id == MD_OP_SEL_HI) &&
	    isa_inst_has_whole_matrix(in))
		return isa_refuse(ps, 3, "op_sel not allowed here");
	if ((id == MD_NEG_LO || id == MD_NEG_HI) && is_mix(ps->op))
		return isa_refuse(ps, 3, "write neg and abs at the operand");
	switch (id) {
	case MD_OP_SEL:
		return isa_put_field(ps, ISA_F_OPSEL, bits);
	case MD_NEG_LO:
		return isa_put_field(ps, ISA_F_NEG, bits);
	case MD_NEG_HI:
		return isa_put_field(ps, ISA_F_NEG_HI, bits);
	default:
		in->f[ISA_F_OPSEL_HI] = bits & 3;
		if (isa_op_sources(ps->op) == 3)
			in->f[ISA_F_OPSEL_HI2] = bits >> 2;
		return true;
	}
}

static bool selects_halves(const struct isa_op_info *op)
{
	if (op->flags & ISA_OPSEL)
		return true;
	for (int i = 0; i < op->n_opnd; i++)
		if (isa_type_is_half(op->opnd[i].type))
			return true;
	return false;
}

/*
 * A bit per source; VOP3 has one more for the destination.  Bits may be left
 * out at the end, and stand for nothing beyond the operands.
 */
static bool put_select(struct parser *ps, const struct mod *m)
{
	enum isa_fmt fmt = ps->in->fmt;
	/* The addend of fmac is a source, too. */
	int n = isa_op_sources(ps->op) +
		(ps->op->fmt == ISA_FMT_VOP2 && ps->op->flags & ISA_RD);
	uint8_t v[8];
	uint32_t bits = 0;
	int got = bracket_list(m, 2, v);

	if (got < 1 || got > 4)
		return isa_refuse(ps, 3, "wanted one to four selectors 0 or 1");
	if (fmt == ISA_FMT_VOP3P) {
		for (int i = 0; i < got; i++)
			bits |= (uint32_t)v[i] << i;
		if (bits >> n)
			return isa_refuse(ps, 3,
					  "selector of a source that "
					  "does not exist");
		return put_packed_select(ps, m->id, bits);
	}
	if (m->id != MD_OP_SEL ||
	    !(selects_halves(ps->op) || isa_inst_is_align(ps->in)) ||
	    (ps->in->op == ISA_v_fmac_f16 && ps->t->gen < ISA_GFX11))
		return isa_refuse(ps, 1, "modifier not allowed here");
	for (int i = 0; i < got; i++)
		bits |= (uint32_t)v[i] << (i == n ? 3 : i);
	if (bits & 3 && (ps->in->op == ISA_v_dot2_f16_f16 ||
			 ps->in->op == ISA_v_dot2_bf16_bf16))
		return isa_refuse(ps, 3,
				  "sources 0 and 1 of this instruction are "
				  "whole registers");
	if (got > n + 1 && v[n + 1])
		return isa_refuse(ps, 3,
				  "selector of a source that does not "
				  "exist");
	return isa_put_field(ps, ISA_F_OPSEL, bits);
}

int isa_mod_omod(struct parser *ps, const struct mod *m)
{
	bool mul = m->id == MD_MUL;
	int64_t v;

	if (!mod_number(ps, m, &v))
		return -1;
	if (v == 1)
		return 0;
	if (mul && (v == 2 || v == 4))
		return v / 2;
	if (!mul && v == 2)
		return 3;
	isa_refuse(ps, 3, "wanted mul:2, mul:4 or div:2");
	return -1;
}

static bool put_omod(struct parser *ps, const struct mod *m)
{
	int field = isa_mod_omod(ps, m);

	if (field < 0)
		return false;
	return ps->op->flags & ISA_OMOD ?
		       isa_put_field(ps, ISA_F_OMOD, field) :
		       isa_refuse(ps, 2, "output modifier not allowed here");
}

/* ---------------------------------------------------------------- DPP ---- */

/* DPP16 controls: modifier and value to the 9-bit field, -1 if out of range. */
static int dpp_control(struct parser *ps, const struct mod *m)
{
	static const struct {
		uint8_t id, first, last;
		int16_t base;
	} row[] = {
		{ MD_ROW_SHL, 1, 15, 0x100 },	{ MD_ROW_SHR, 1, 15, 0x110 },
		{ MD_ROW_ROR, 1, 15, 0x120 },	{ MD_ROW_SHARE, 0, 15, 0x150 },
		{ MD_ROW_XMASK, 0, 15, 0x160 },
	};
	uint8_t l[8];
	int64_t v;

	if (m->id == MD_ROW_MIRROR)
		return 0x140;
	if (m->id == MD_ROW_HALF_MIRROR)
		return 0x141;
	if (m->id == MD_QUAD_PERM)
		return bracket_list(m, 4, l) == 4 ?
			       l[0] | l[1] << 2 | l[2] << 4 | l[3] << 6 :
			       -1;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (m->id == row[i].id && mod_number(ps, m, &v) &&
		    v >= row[i].first && v <= row[i].last)
			return row[i].base + v;
	return -1;
}

static bool put_dpp8(struct parser *ps, const struct mod *m)
{
	uint8_t lane[8];

	if (bracket_list(m, 8, lane) != 8)
		return isa_refuse(ps, 3, "dpp8 wants eight lanes 0..7");
	for (int i = 0; i < 8; i++)
		ps->in->extra[0] |= (uint32_t)lane[i] << (8 + 3 * i);
	return true;
}

/* row_mask, bank_mask, bound_ctrl, fi. */
static bool put_dpp_tail(struct parser *ps, const struct mod *m)
{
	struct isa_inst *in = ps->in;
	bool mask = m->id == MD_ROW_MASK || m->id == MD_BANK_MASK;
	int shift = m->id == MD_ROW_MASK  ? 28 :
		    m->id == MD_BANK_MASK ? 24 :
		    m->id == MD_FI	  ? 18 :
					    19;
	uint32_t max = mask ? 15 : 1;
	int64_t v;

	if (!mod_number(ps, m, &v))
		return false;
	if (v < 0 || v > max)
		return isa_refuse(ps, 3,
				  mask ? "a DPP mask is 0 to 15" :
					 "wanted 0 or 1");
	if (in->form == ISA_FORM_DPP8) {
		if (m->id != MD_FI)
			return isa_refuse(ps, 3, "dpp8 has no such modifier");
		in->f[ISA_F_SRC0] = 233 + v;
		return true;
	}
	in->extra[0] = (in->extra[0] & ~(max << shift)) | (uint32_t)v << shift;
	return true;
}

static bool is_dpp_control(const struct mod *m)
{
	return m->id >= MD_DPP8 && m->id <= MD_ROW_HALF_MIRROR;
}

static bool is_sdwa(const struct mod *m)
{
	return m->id >= MD_DST_SEL && m->id <= MD_SRC1_SEL;
}

bool isa_has_mod(const struct parser *ps, enum mod_id id)
{
	for (int i = 0; i < ps->n_mods; i++)
		if (ps->mod[i].id == id)
			return true;
	return false;
}

enum isa_form isa_mods_form(const struct parser *ps)
{
	for (int i = ps->n_mods - 1; i >= 0; i--)
		if (is_sdwa(&ps->mod[i]))
			return ISA_FORM_SDWA;
		else if (is_dpp_control(&ps->mod[i]))
			return ps->mod[i].id == MD_DPP8 ? ISA_FORM_DPP8 :
							  ISA_FORM_DPP16;
	return ISA_FORM_PLAIN;
}

static bool put_dpp(struct parser *ps, const struct mod *m)
{
	int c;

	if (ps->in->form == ISA_FORM_PLAIN)
		return isa_refuse(ps, 1, "DPP modifier not allowed here");
	if (m->id == MD_DPP8)
		return put_dpp8(ps, m);
	if (!is_dpp_control(m))
		return put_dpp_tail(ps, m);
	c = dpp_control(ps, m);
	if (c < 0)
		return isa_refuse(ps, 3, "DPP control out of range");
	ps->in->extra[0] = (ps->in->extra[0] & ~0x1ff00u) | (uint32_t)c << 8;
	return true;
}

/* ---------------------------------------------------------------- all ---- */

/* Modifiers that are just a field: a flag, or name:number. */
static const uint8_t field_of[MD_COUNT] = {
	[MD_GLC] = ISA_F_GLC,
	[MD_SLC] = ISA_F_SLC,
	[MD_DLC] = ISA_F_DLC,
	[MD_GDS] = ISA_F_GDS,
	[MD_TFE] = ISA_F_TFE,
	[MD_LWE] = ISA_F_LWE,
	[MD_OFFEN] = ISA_F_OFFEN,
	[MD_IDXEN] = ISA_F_IDXEN,
	[MD_UNORM] = ISA_F_UNORM,
	[MD_R128] = ISA_F_R128,
	[MD_A16] = ISA_F_A16,
	[MD_D16] = ISA_F_D16,
	[MD_CLAMP] = ISA_F_CLAMP,
	[MD_DONE] = ISA_F_DONE,
	[MD_ROW_EN] = ISA_F_ROW,
	[MD_DMASK] = ISA_F_DMASK,
	[MD_WAIT_EXP] = ISA_F_WAITEXP,
	[MD_WAIT_VDST] = ISA_F_WAITVDST,
	[MD_WAIT_VA_VDST] = ISA_F_WAITVDST,
	[MD_WAIT_VM_VSRC] = ISA_F_WAITVSRC,
};

static bool put_unused(struct parser *ps, const struct mod *m)
{
	const bool third = m->id == MD_UNUSED_SRC2;
	int64_t v;

	if (isa_op_source_fields(ps->op) & (third ? 4 : 2))
		return isa_refuse(ps, 3, "the instruction has this source");
	return mod_number(ps, m, &v) &&
	       isa_put_field(ps, third ? ISA_F_SRC2 : ISA_F_SRC1, v);
}

static bool put_mod(struct parser *ps, const struct mod *m)
{
	int64_t v = !m->no;

	if (m->id == MD_LDS) /* it chose the row */
		return !m->no || isa_refuse(ps, 3, "lds not allowed here");
	if (is_sdwa(m) || (ps->in->form == ISA_FORM_SDWA &&
			   (m->id == MD_CLAMP || m->id == MD_MUL ||
			    m->id == MD_DIV)))
		return isa_put_sdwa_mod(ps, m);
	if (ps->t->gen == ISA_GFX12 &&
	    (m->id == MD_GLC || m->id == MD_SLC || m->id == MD_DLC))
		return isa_refuse(ps, 2, "gfx12 has th and scope instead");
	if (field_of[m->id]) {
		if (m->value != MD_NO_VALUE && !mod_number(ps, m, &v))
			return false;
		if (m->id == MD_CLAMP && !(ps->op->flags & ISA_CLAMP))
			return isa_refuse(ps, 2, "clamp not allowed here");
		return isa_put_field(ps, field_of[m->id], v);
	}
	switch (m->id) {
	case MD_OFFSET:
		return put_offset(ps, m);
	case MD_OFFSET0:
	case MD_OFFSET1:
		return put_offset2(ps, m);
	case MD_OP_SEL:
	case MD_OP_SEL_HI:
	case MD_NEG_LO:
	case MD_NEG_HI:
		return put_select(ps, m);
	case MD_MUL:
	case MD_DIV:
		return put_omod(ps, m);
	case MD_FORMAT:
		return put_format(ps, m);
	case MD_DIM:
		return put_dim(ps, m);
	case MD_TH:
		return put_hint(ps, m);
	case MD_SCOPE:
		return put_scope(ps, m);
	case MD_UNUSED_SRC1:
	case MD_UNUSED_SRC2:
		return put_unused(ps, m);
	case MD_BYTE_SEL:
	case MD_INDEX_KEY:
		return put_number_select(ps, m);
	}
	return put_dpp(ps, m);
}

bool isa_put_mods(struct parser *ps)
{
	for (int i = 0; i < ps->n_mods; i++) {
		const struct mod *m = &ps->mod[i];

		/* Cache control takes a scope only. */
		if (!ps->op->n_opnd && m->id != MD_TH && m->id != MD_SCOPE)
			return isa_refuse(ps, 2, "modifier not allowed here");
		if (!put_mod(ps, m))
			return false;
	}
	return true;
}
