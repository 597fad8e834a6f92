/*
 * probes/discover/slots.c - the list of slots, and the words that stand for
 * each.
 *
 * Operands come from the format alone, so that a slot that no table knows is
 * run like any other.  The table is used for known rows only, and only to
 * leave fields zero that the row does not read (disassemblers insist on that)
 * and to aim jumps at the markers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "probes/discover/discover.h"

#define VGPR(n)	   (256u + (n))
#define INLINE_0   128u
#define MSG_INT	   1u	/* sendmsg(MSG_INTERRUPT) */
#define MSG_TIME   131u /* sendmsg(MSG_RTN_GET_REALTIME) */
#define SOME_IMM   0x7123u
#define BUF_UINT4  61u	/* BUF_FMT_32_32_32_32_UINT */
#define DUAL_MOV   8u	/* v_dual_mov_b32, the other half of a VOPD slot */
#define MAX_OPCODE 1024

/* An encoding as discovery counts it. */
struct family {
	const char *name;
	enum isa_fmt fmt;
	int n_opcodes;
};

static const struct family families[] = {
	{ "SOP1", ISA_FMT_SOP1, 256 },	   { "SOP2", ISA_FMT_SOP2, 128 },
	{ "SOPC", ISA_FMT_SOPC, 128 },	   { "SOPK", ISA_FMT_SOPK, 32 },
	{ "SOPP", ISA_FMT_SOPP, 128 },	   { "SMEM", ISA_FMT_SMEM, 256 },
	{ "VOP1", ISA_FMT_VOP1, 256 },	   { "VOP2", ISA_FMT_VOP2, 64 },
	{ "VOPC", ISA_FMT_VOPC, 256 },	   { "VOP3", ISA_FMT_VOP3, 1024 },
	{ "VOP3P", ISA_FMT_VOP3P, 128 },   { "VOPDX", ISA_FMT_VOPD, 16 },
	{ "VOPDY", ISA_FMT_VOPD, 32 },	   { "VINTERP", ISA_FMT_VINTERP, 128 },
	{ "LDSDIR", ISA_FMT_LDSDIR, 4 },   { "DS", ISA_FMT_DS, 256 },
	{ "FLAT", ISA_FMT_FLAT, 128 },	   { "SCRATCH", ISA_FMT_SCRATCH, 128 },
	{ "GLOBAL", ISA_FMT_GLOBAL, 128 }, { "SEG3", ISA_FMT_NONE, 128 },
	{ "MUBUF", ISA_FMT_MUBUF, 256 },   { "MTBUF", ISA_FMT_MTBUF, 16 },
	{ "MIMG", ISA_FMT_MIMG, 256 },	   { "MIMG_NSA", ISA_FMT_MIMG, 256 },
	{ "EXP", ISA_FMT_EXP, 1 },	   { "RESERVED", ISA_FMT_NONE, 512 },
};

static bool is_family(const struct family *f, const char *name)
{
	return !strcmp(f->name, name);
}

static enum isa_fmt format_of(uint32_t word)
{
	for (int f = 1; f < ISA_FMT_COUNT; f++)
		if ((word & isa_fmt_info(f)->mask) == isa_fmt_info(f)->bits)
			return f;
	return ISA_FMT_NONE;
}

/* Fields that are zero unless the row has an operand that reads them. */
static const struct {
	uint8_t field, first, last; /* range of enum isa_slot */
} optional[] = {
	{ ISA_F_ADDR, ISA_SLOT_VADDR, ISA_SLOT_VADDR },
	{ ISA_F_OFFEN, ISA_SLOT_VADDR, ISA_SLOT_VADDR },
	{ ISA_F_DATA0, ISA_SLOT_DATA, ISA_SLOT_DATA0 },
	{ ISA_F_DATA1, ISA_SLOT_DATA1, ISA_SLOT_DATA1 },
	{ ISA_F_SBASE, ISA_SLOT_SBASE, ISA_SLOT_SBASE },
	{ ISA_F_SRSRC, ISA_SLOT_SRSRC, ISA_SLOT_SRSRC },
	{ ISA_F_SOFFSET, ISA_SLOT_SOFF, ISA_SLOT_SOFF },
	{ ISA_F_SOFFSET, ISA_SLOT_SRSRC, ISA_SLOT_SRSRC },
	{ ISA_F_OFFSET1, ISA_SLOT_OFF2, ISA_SLOT_OFF2 },
	{ ISA_F_OFFSET1, ISA_SLOT_OFF16, ISA_SLOT_SWIZZLE },
	{ ISA_F_SSRC0, ISA_SLOT_MSG, ISA_SLOT_MSG },
	{ ISA_F_SRC2, ISA_SLOT_S2I, ISA_SLOT_S2I },
	{ ISA_F_SRC2, ISA_SLOT_CI, ISA_SLOT_CI },
};
/* The same for sources 0, 1 and 2. */
static const uint8_t sources[3][3] = {
	{ ISA_F_SRC0, ISA_F_SSRC0, ISA_F_SRC0 },
	{ ISA_F_SRC1, ISA_F_SSRC1, ISA_F_VSRC1 },
	{ ISA_F_SRC2, ISA_F_SRC2, ISA_F_SRC2 },
};

typedef uint32_t fields[ISA_F_COUNT];

/* Which of those fields the row reads. */
static void find_read_fields(const struct isa_op_info *op,
			     bool used[ISA_F_COUNT])
{
	for (int i = 0; i < op->n_opnd; i++) {
		const unsigned slot = op->opnd[i].slot;

		for (size_t k = 0; k < ARRAY_SIZE(optional); k++)
			if (slot >= optional[k].first &&
			    slot <= optional[k].last)
				used[optional[k].field] = true;
		if (slot >= ISA_SLOT_S0 && slot <= ISA_SLOT_S2S)
			for (int k = 0; k < 3; k++)
				used[sources[(slot - ISA_SLOT_S0) % 3][k]] =
					true;
	}
}

static bool has_slot(const struct isa_op_info *op, enum isa_slot slot)
{
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == slot)
			return true;
	return false;
}

/* ------------------------------------------------ operands by format ---- */

static void fill_scalar(const struct probe_slot *s, fields f)
{
	f[ISA_F_SSRC0] = PROBE_S_SRC0;
	f[ISA_F_SSRC1] = PROBE_S_SRC1;
	switch (s->fmt) {
	case ISA_FMT_SOP1:
		/* Whatever is or may be a jump goes to the second marker. */
		if (!s->op || isa_op_info(s->op)->pipe == ISA_PIPE_BRANCH)
			f[ISA_F_SSRC0] = PROBE_S_NEXT;
		else if (isa_op_info(s->op)->pipe == ISA_PIPE_MSG)
			f[ISA_F_SSRC0] = MSG_TIME;
		break;
	case ISA_FMT_SOPK:
		/* Bit 0 of the MODE register, or a jump over one dword. */
		f[ISA_F_SIMM16] = 1;
		if (s->op && isa_op_info(s->op)->pipe == ISA_PIPE_SALU &&
		    !has_slot(isa_op_info(s->op), ISA_SLOT_HWREG))
			f[ISA_F_SIMM16] = SOME_IMM;
		if (s->op && isa_op_info(s->op)->pipe == ISA_PIPE_SPECIAL)
			f[ISA_F_SDST] = s->op == ISA_s_version ? 0 : ISA_R_NULL;
		break;
	case ISA_FMT_SOPP:
		if (s->op && (isa_op_info(s->op)->pipe == ISA_PIPE_BRANCH))
			f[ISA_F_SIMM16] = !(isa_op_info(s->op)->flags &
					    ISA_END);
		if (s->op && isa_op_info(s->op)->pipe == ISA_PIPE_MSG)
			f[ISA_F_SIMM16] = MSG_INT;
		if (s->op == ISA_s_trap || s->op == ISA_s_round_mode)
			f[ISA_F_SIMM16] = 1;
		break;
	case ISA_FMT_SMEM:
		f[ISA_F_SBASE] = PROBE_S_RSRC / 2;
		f[ISA_F_SOFFSET] = ISA_R_NULL;
		break;
	default:
		break;
	}
}

/* Sources that must be scalar, and masks. */
static void scalar_sources(const struct isa_op_info *op, fields f)
{
	for (int i = 0; i < op->n_opnd; i++) {
		const int slot = op->opnd[i].slot;

		if (slot == ISA_SLOT_S0S)
			f[ISA_F_SRC0] = PROBE_S_SRC0;
		else if (slot == ISA_SLOT_S1S)
			f[ISA_F_SRC1] = PROBE_S_SRC1;
		else if (slot == ISA_SLOT_S2S || slot == ISA_SLOT_CI)
			f[ISA_F_SRC2] = PROBE_S_SRC1;
	}
}

static void fill_vector(const struct probe_slot *s, fields f)
{
	f[ISA_F_SRC0] = VGPR(PROBE_V_SRC0);
	f[ISA_F_SRC1] = VGPR(PROBE_V_SRC1);
	f[ISA_F_SRC2] = VGPR(PROBE_V_SRC2);
	f[ISA_F_VSRC1] = PROBE_V_SRC1;
	if (s->fmt == ISA_FMT_VOP3P) {
		f[ISA_F_OPSEL_HI] = 3;
		f[ISA_F_OPSEL_HI2] = 1;
	} else if (s->fmt == ISA_FMT_VOPD) {
		/* Banks and destination parity as RDNA3 ISA 7.6 wants them. */
		const bool y = !strcmp(s->encoding, "VOPDY");

		f[ISA_F_OP] = y ? DUAL_MOV : (uint32_t)s->opcode;
		f[ISA_F_OPY] = y ? (uint32_t)s->opcode : DUAL_MOV;
		f[ISA_F_SRC0Y] = VGPR(PROBE_V_SRC0 + 1);
		if (y)
			f[ISA_F_VSRC1Y] = PROBE_V_SRC1 + 1;
		f[ISA_F_VSRC1] = y ? 0 : PROBE_V_SRC1;
	} else if (s->op && s->fmt == ISA_FMT_VOP3) {
		scalar_sources(isa_op_info(s->op), f);
		if (isa_op_info(s->op)->flags & ISA_WEXEC)
			f[ISA_F_VDST] = ISA_R_EXEC_LO;
	}
}

static void fill_memory(const struct probe_slot *s, fields f)
{
	f[ISA_F_DATA0] = PROBE_V_SRC0;
	f[ISA_F_DATA1] = PROBE_V_SRC1;
	f[ISA_F_SADDR] = ISA_R_NULL;
	f[ISA_F_ADDR] = PROBE_V_OFFSET;
	f[ISA_F_SRSRC] = PROBE_S_RSRC / 4;
	switch (s->fmt) {
	case ISA_FMT_DS:
		f[ISA_F_ADDR] = PROBE_V_LDS;
		f[ISA_F_OFFSET1] = 1;
		f[ISA_F_GDS] = s->op &&
			       isa_op_info(s->op)->flags & ISA_GDSONLY;
		break;
	case ISA_FMT_FLAT:
		f[ISA_F_ADDR] = PROBE_V_ADDR;
		break;
	case ISA_FMT_GLOBAL:
		f[ISA_F_SADDR] = PROBE_S_RSRC;
		break;
	case ISA_FMT_SCRATCH:
		f[ISA_F_ADDR] = PROBE_V_SCRATCH;
		f[ISA_F_SVE] = 1;
		break;
	case ISA_FMT_MTBUF:
		f[ISA_F_FORMAT] = BUF_UINT4;
		/* fallthrough */
	case ISA_FMT_MUBUF:
		f[ISA_F_SOFFSET] = INLINE_0;
		f[ISA_F_OFFEN] = 1;
		break;
	case ISA_FMT_MIMG:
		f[ISA_F_DMASK] = 1;
		f[ISA_F_NSA] = !strcmp(s->encoding, "MIMG_NSA");
		break;
	default:
		break;
	}
	/* Atomics give the old value back. */
	if (s->op && (has_slot(isa_op_info(s->op), ISA_SLOT_DG) ||
		      has_slot(isa_op_info(s->op), ISA_SLOT_DATAG)))
		f[ISA_F_GLC] = 1;
}

/* Fields that a known row does not read become zero. */
static void zero_unused(const struct probe_slot *s, fields f)
{
	bool used[ISA_F_COUNT] = { false };

	find_read_fields(isa_op_info(s->op), used);
	if (s->fmt == ISA_FMT_VOPD) {
		/* Two rows share the word; the moving half has one source. */
		if (!used[ISA_F_VSRC1])
			f[ISA_F_VSRC1] = f[ISA_F_VSRC1Y] = 0;
		return;
	}
	for (size_t k = 0; k < ARRAY_SIZE(optional); k++)
		if (!used[optional[k].field])
			f[optional[k].field] = 0;
	for (int i = 0; i < 9; i++)
		if (!used[sources[i / 3][i % 3]])
			f[sources[i / 3][i % 3]] = 0;
	if (s->fmt == ISA_FMT_SCRATCH && !f[ISA_F_ADDR])
		f[ISA_F_SVE] = 0;
}

static void encode_slot(struct probe_slot *s, const fields f)
{
	const struct isa_fmt_info *info = isa_fmt_info(s->fmt);
	uint64_t w = info->bits;

	for (int i = 0; i < info->n_fields; i++) {
		const uint64_t max = (1ull << info->field[i].width) - 1;

		w |= (f[info->field[i].field] & max) << info->field[i].low;
	}
	s->n_words = info->dwords;
	s->word[0] = (uint32_t)w;
	s->word[1] = (uint32_t)(w >> 32);
	if (s->fmt == ISA_FMT_MIMG && f[ISA_F_NSA])
		s->word[s->n_words++] = 0;
}

/* ------------------------------------------------------------- rows ----- */

static void find_table_row(struct probe_slot *s)
{
	const uint32_t flags = isa_op_info(s->op)->flags;

	if (s->fmt != ISA_FMT_VOPD)
		s->name = isa_op_info(s->op)->name;
	s->graphics = flags & ISA_GFX;
	s->last = flags & (ISA_END | ISA_GDSONLY) ||
		  isa_op_info(s->op)->pipe == ISA_PIPE_MSG ||
		  s->op == ISA_s_sethalt || s->op == ISA_s_trap;
}

static bool make_slot(const struct family *fam, int opcode,
		      struct probe_slot *s)
{
	const bool vopdy = is_family(fam, "VOPDY");
	fields f = { [ISA_F_OP] = (uint32_t)opcode };

	*s = (struct probe_slot){ .encoding = fam->name, .opcode = opcode,
				  .fmt = fam->fmt };
	if (fam->fmt == ISA_FMT_VOPD)
		s->op = isa_vopd_op(opcode, vopdy, &s->name);
	else
		s->op = isa_op_at(ISA_GFX11, fam->fmt, opcode);
	if (s->op)
		find_table_row(s);
	else
		s->last = fam->fmt == ISA_FMT_SOPP || fam->fmt == ISA_FMT_SOPK;
	if (isa_fmt_has(fam->fmt, ISA_F_VDST) ||
	    isa_fmt_has(fam->fmt, ISA_F_VDATA) ||
	    isa_fmt_has(fam->fmt, ISA_F_VSRC1)) {
		fill_vector(s, f);
		fill_memory(s, f);
	} else {
		fill_scalar(s, f);
	}
	if (s->op)
		zero_unused(s, f);
	encode_slot(s, f);
	return format_of(s->word[0]) == fam->fmt;
}

/* Bits 31..23 of a word that no format claims. */
static bool make_reserved(const struct family *fam, int top,
			  struct probe_slot *s)
{
	*s = (struct probe_slot){ .encoding = fam->name,
				  .opcode = top,
				  .n_words = 2,
				  .word = { (uint32_t)top << 23 } };
	return top & 0x100 && !format_of(s->word[0]);
}

/* Flat segment 3: 0 is FLAT, 1 SCRATCH, 2 GLOBAL. */
static bool make_seg3(const struct family *fam, int opcode,
		      struct probe_slot *s)
{
	const struct family flat = { "FLAT", ISA_FMT_FLAT, 128 };

	make_slot(&flat, opcode, s);
	s->encoding = fam->name;
	s->fmt = ISA_FMT_NONE;
	s->op = ISA_OP_NONE;
	s->name = NULL;
	s->graphics = s->last = false;
	s->word[0] |= 3u << 16;
	return true;
}

static bool make_any(const struct family *fam, int opcode,
		     struct probe_slot *s)
{
	if (is_family(fam, "RESERVED"))
		return make_reserved(fam, opcode, s);
	if (is_family(fam, "SEG3"))
		return make_seg3(fam, opcode, s);
	return make_slot(fam, opcode, s);
}

static bool is_wanted(const struct family *fam, const struct cli_list *l)
{
	for (int i = 0; l && i < l->n; i++)
		if (!strcasecmp(l->v[i], fam->name))
			return true;
	return !l || !l->n;
}

static bool check_names(const struct cli_list *l, struct err *e)
{
	for (int i = 0; l && i < l->n; i++) {
		struct buf all = { 0 };
		bool known = false;

		for (size_t k = 0; k < ARRAY_SIZE(families); k++) {
			buf_printf(&all, " %s", families[k].name);
			known |= !strcasecmp(l->v[i], families[k].name);
		}
		if (!known)
			err_set(e, ERR_USAGE, "'%s' is no encoding; there are"
				"%s", l->v[i], all.data);
		buf_fini(&all);
		if (!known)
			return false;
	}
	return true;
}

bool probe_slots_init(struct probe_slots *s, const struct cli_list *encodings,
		      struct err *e)
{
	int cap = 0;

	*s = (struct probe_slots){ 0 };
	if (!check_names(encodings, e))
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(families); k++) {
		if (!is_wanted(&families[k], encodings))
			continue;
		for (int op = 0; op < families[k].n_opcodes; op++) {
			VEC_GROW(s->v, s->n, 1, cap);
			if (make_any(&families[k], op, &s->v[s->n]))
				s->n++;
		}
	}
	return true;
}

void probe_slots_keep(struct probe_slots *s, const struct probe_opts *o)
{
	int n = 0;

	for (int i = 0; i < s->n; i++) {
		char opcode[16];
		snprintf(opcode, sizeof(opcode), "%d", s->v[i].opcode);
		if (probe_in_shard(o, s->v[i].encoding, opcode))
			s->v[n++] = s->v[i];
	}
	s->n = n;
}

void probe_slots_fini(struct probe_slots *s)
{
	free(s->v);
	*s = (struct probe_slots){ 0 };
}

/* ------------------------------------------------------------- names ---- */

static struct probe_slot *find_slot(const struct probe_slots *s,
				    const char *text, size_t len, struct err *e)
{
	const char *colon = memchr(text, ':', len);
	char number[24] = "";
	uint64_t op;

	if (colon)
		snprintf(number, sizeof(number), "%.*s",
			 (int)(len - (colon + 1 - text)), colon + 1);
	if (!colon || !cli_u64(number, &op, NULL)) {
		err_set(e, ERR_USAGE, "slot '%.*s': wanted ENCODING:OPCODE, "
			"such as VOP2:3", (int)len, text);
		return NULL;
	}
	for (int i = 0; i < s->n; i++)
		if ((uint64_t)s->v[i].opcode == op &&
		    strlen(s->v[i].encoding) == (size_t)(colon - text) &&
		    !strncasecmp(s->v[i].encoding, text,
				 (size_t)(colon - text)))
			return &s->v[i];
	err_set(e, ERR_USAGE, "slot '%.*s': there is none; --list shows all",
		(int)len, text);
	return NULL;
}

const struct probe_slot *probe_slot_parse(const struct probe_slots *s,
					  const char *text, struct err *e)
{
	return find_slot(s, text, strlen(text), e);
}

bool probe_slot_replace(struct probe_slots *s, const char *text,
			struct err *e)
{
	const char *eq = strchr(text, '=');
	struct probe_slot *slot;
	uint64_t *v = NULL;
	size_t n = 0;

	if (!eq)
		return err_set(e, ERR_USAGE, "replacement '%s': wanted "
			       "ENCODING:OPCODE=WORD[,WORD...]", text);
	slot = find_slot(s, text, (size_t)(eq - text), e);
	if (!slot)
		return false;
	if (!cli_sweep(eq + 1, &v, &n, e))
		return err_wrap(e, "replacement '%s'", text);
	if (n > PROBE_WORDS_MAX) {
		free(v);
		return err_set(e, ERR_USAGE, "replacement '%s': %zu words, at "
			       "most %d fit", text, n, PROBE_WORDS_MAX);
	}
	slot->n_words = (int)n;
	for (size_t i = 0; i < n; i++)
		slot->word[i] = (uint32_t)v[i];
	free(v);
	return true;
}

/* ---------------------------------------------------------- variants ---- */

#define IMAGE_VARIANTS 32

static int image_variant(const struct probe_slot *s, int i, uint32_t *word)
{
	if (i > IMAGE_VARIANTS)
		return 0;
	if (i == IMAGE_VARIANTS) { /* ray queries: UNORM, R128, DMASK 15 */
		word[0] = s->word[0] | 0x8f80u;
		return s->n_words;
	}
	i--;
	/* DIM in bits 4..2, DMASK in 11..8, A16 is bit 16. */
	word[0] = (s->word[0] & ~0x10f1cu) | (uint32_t)(i & 7) << 2 |
		  (i & 8 ? 0xfu : 1u) << 8 | (i & 16 ? 1u << 16 : 0);
	return s->n_words;
}

int probe_slot_variant(const struct probe_slot *s, int i,
		       uint32_t word[PROBE_WORDS_MAX])
{
	memcpy(word, s->word, sizeof(s->word));
	if (i == 0)
		return s->n_words;
	if (s->fmt == ISA_FMT_MIMG)
		return image_variant(s, i, word);
	if (i > 1 || s->op)
		return 0;
	/* The opcode alone, every operand zero. */
	if (s->fmt) {
		struct probe_slot zero = *s;
		fields f = { [ISA_F_OP] = (uint32_t)s->opcode };

		if (s->fmt == ISA_FMT_VOPD)
			return 0;
		encode_slot(&zero, f);
		memcpy(word, zero.word, sizeof(zero.word));
	} else {
		word[1] = 0;
	}
	return s->n_words;
}
