/*
 * probes/discover/slots.c - the list of slots of a generation.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "probes/discover/discover_int.h"

#define RESERVED_TOPS 512 /* bits 31..23 of a word */

/* An encoding as discovery counts it; the table leaves ISA_FMT_NONE out. */
struct family {
	const char *name;
	enum isa_fmt fmt;
};

static const struct family families[] = {
	{ "SOP1", ISA_FMT_SOP1 },     { "SOP2", ISA_FMT_SOP2 },
	{ "SOPC", ISA_FMT_SOPC },     { "SOPK", ISA_FMT_SOPK },
	{ "SOPP", ISA_FMT_SOPP },     { "SMEM", ISA_FMT_SMEM },
	{ "VOP1", ISA_FMT_VOP1 },     { "VOP2", ISA_FMT_VOP2 },
	{ "VOPC", ISA_FMT_VOPC },     { "VOP3", ISA_FMT_VOP3 },
	{ "VOP3P", ISA_FMT_VOP3P },   { "VOPDX", ISA_FMT_VOPD },
	{ "VOPDY", ISA_FMT_VOPD },    { "VINTERP", ISA_FMT_VINTERP },
	{ "LDSDIR", ISA_FMT_LDSDIR }, { "DS", ISA_FMT_DS },
	{ "FLAT", ISA_FMT_FLAT },     { "SCRATCH", ISA_FMT_SCRATCH },
	{ "GLOBAL", ISA_FMT_GLOBAL }, { "SEG3", ISA_FMT_NONE },
	{ "MUBUF", ISA_FMT_MUBUF },   { "MTBUF", ISA_FMT_MTBUF },
	{ "MIMG", ISA_FMT_MIMG },     { "MIMG_NSA", ISA_FMT_MIMG },
	{ "EXP", ISA_FMT_EXP },	      { "VINTRP", ISA_FMT_NONE },
	{ "VIMAGE", ISA_FMT_NONE },   { "VSAMPLE", ISA_FMT_NONE },
	{ "RESERVED", ISA_FMT_NONE },
};

/*
 * Encodings of graphics that the tables leave out of a generation (RDNA2 ISA
 * 13, RDNA4 ISA 15): their slots are listed, not run.  The opcode is `bits`
 * wide from bit `low` on, and may have one more, its highest, at `high`.
 */
#define GEN(name) (1u << ISA_##name)
#define GFX10	  (GEN(GFX10_1) | GEN(GFX10_3))
static const struct left_out {
	unsigned gens; /* GEN() */
	const char *name;
	uint32_t mask, word;
	uint8_t low, bits, dwords;
	int8_t high; /* or -1 */
} left_out[] = {
	{ GFX10, "VINTRP", 0xfc000000, 0xc8000000, 16, 2, 1, -1 },
	{ GFX10, "MIMG", 0xfc000000, 0xf0000000, 18, 7, 2, 0 },
	{ GFX10, "EXP", 0xfc000000, 0xf8000000, 0, 0, 2, -1 },
	{ GEN(GFX12), "VINTERP", 0xff000000, 0xcd000000, 16, 7, 2, -1 },
	{ GEN(GFX12), "VIMAGE", 0xfc000000, 0xd0000000, 14, 8, 3, -1 },
	{ GEN(GFX12), "VSAMPLE", 0xfc000000, 0xe4000000, 14, 8, 3, -1 },
	{ GEN(GFX12), "EXP", 0xfc000000, 0xf8000000, 0, 0, 2, -1 },
};

static bool is_family(const struct family *f, const char *name)
{
	return !strcmp(f->name, name);
}

static const struct left_out *find_left_out(enum isa_gen gen, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		if (left_out[i].gens >> gen & 1 &&
		    !strcmp(left_out[i].name, name))
			return &left_out[i];
	return NULL;
}

static bool is_left_out(enum isa_gen gen, uint32_t word)
{
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		if (left_out[i].gens >> gen & 1 &&
		    (word & left_out[i].mask) == left_out[i].word)
			return true;
	return false;
}

/* How many opcodes the words of an encoding have room for. */
static int count_opcodes(enum isa_gen gen, const struct family *fam)
{
	const struct left_out *out = find_left_out(gen, fam->name);
	const enum isa_fmt fmt = is_family(fam, "SEG3") ? ISA_FMT_FLAT :
							  fam->fmt;

	if (out)
		return 1 << (out->bits + (out->high >= 0));
	if (is_family(fam, "RESERVED"))
		return RESERVED_TOPS;
	if (is_family(fam, "VOPDY"))
		return 1 << isa_field_width(ISA_FMT_VOPD, ISA_F_OPY);
	return fmt ? 1 << isa_opcode_bits(isa_layout(gen, fmt)) : 0;
}

/* ------------------------------------------------------------- rows ----- */

static void find_table_row(struct probe_slot *s)
{
	const uint32_t flags = isa_op_info(s->op)->flags;

	if (s->fmt != ISA_FMT_VOPD)
		s->name = isa_op_name(s->gen, s->op);
	s->graphics = flags & ISA_GFX;
	s->last = flags & (ISA_END | ISA_GDSONLY) ||
		  isa_op_info(s->op)->pipe == ISA_PIPE_MSG ||
		  s->op == ISA_s_sethalt || s->op == ISA_s_trap;
}

static bool make_slot(const struct family *fam, int opcode,
		      struct probe_slot *s)
{
	const bool vopdy = is_family(fam, "VOPDY");

	s->fmt = fam->fmt;
	if (fam->fmt == ISA_FMT_VOPD)
		s->op = isa_vopd_op_in(s->gen, opcode, vopdy, &s->name);
	else
		s->op = isa_op_at(s->gen, fam->fmt, opcode);
	if (s->op)
		find_table_row(s);
	else
		s->last = fam->fmt == ISA_FMT_SOPP || fam->fmt == ISA_FMT_SOPK;
	probe_slot_write(s);
	return isa_format_of(s->gen, s->word[0]) == fam->fmt;
}

/* Words that no format claims. */
static bool make_reserved(int top, struct probe_slot *s)
{
	s->n_words = 2;
	s->word[0] = (uint32_t)top << 23;
	return top & 0x100 && !isa_format_of(s->gen, s->word[0]) &&
	       !is_left_out(s->gen, s->word[0]);
}

/* Flat segment 3, where a field says it: 0 is FLAT, 1 SCRATCH, 2 GLOBAL. */
static bool make_seg3(int opcode, struct probe_slot *s)
{
	const struct family flat = { "FLAT", ISA_FMT_FLAT };
	const uint32_t both =
		isa_fmt_info(isa_layout(s->gen, ISA_FMT_SCRATCH))->bits |
		isa_fmt_info(isa_layout(s->gen, ISA_FMT_GLOBAL))->bits;
	const char *name = s->encoding;

	make_slot(&flat, opcode, s);
	s->encoding = name;
	s->fmt = ISA_FMT_NONE;
	s->op = ISA_OP_NONE;
	s->name = NULL;
	s->graphics = s->last = false;
	s->word[0] |= both;
	return !isa_fmt_has(isa_layout(s->gen, ISA_FMT_FLAT), ISA_F_SCOPE);
}

static void make_left_out(const struct left_out *out, int opcode,
			  struct probe_slot *s)
{
	const uint32_t op = (uint32_t)opcode;

	s->graphics = true;
	s->n_words = out->dwords;
	s->word[0] = out->word | (op & ((1u << out->bits) - 1)) << out->low;
	if (out->high >= 0)
		s->word[0] |= op >> out->bits << out->high;
}

static bool make_any(const struct family *fam, int opcode, struct probe_slot *s)
{
	const struct left_out *out = find_left_out(s->gen, fam->name);

	s->encoding = fam->name;
	s->opcode = opcode;
	if (out) {
		make_left_out(out, opcode, s);
		return true;
	}
	if (is_family(fam, "RESERVED"))
		return make_reserved(opcode, s);
	if (is_family(fam, "SEG3"))
		return make_seg3(opcode, s);
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
			err_set(e, ERR_USAGE,
				"'%s' is no encoding; there are"
				"%s",
				l->v[i], all.data);
		buf_fini(&all);
		if (!known)
			return false;
	}
	return true;
}

bool probe_slots_init(struct probe_slots *s, enum isa_gen gen,
		      const struct cli_list *encodings, struct err *e)
{
	int cap = 0;

	*s = (struct probe_slots){ 0 };
	if (!check_names(encodings, e))
		return false;
	for (size_t k = 0; k < ARRAY_SIZE(families); k++) {
		if (!is_wanted(&families[k], encodings))
			continue;
		const int n = count_opcodes(gen, &families[k]);

		for (int op = 0; op < n; op++) {
			VEC_GROW(s->v, s->n, 1, cap);
			s->v[s->n] = (struct probe_slot){ .gen = gen };
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
		err_set(e, ERR_USAGE,
			"slot '%.*s': wanted ENCODING:OPCODE, "
			"such as VOP2:3",
			(int)len, text);
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

bool probe_slot_replace(struct probe_slots *s, const char *text, struct err *e)
{
	const char *eq = strchr(text, '=');
	struct probe_slot *slot;
	uint64_t *v = NULL;
	size_t n = 0;

	if (!eq)
		return err_set(e, ERR_USAGE,
			       "replacement '%s': wanted "
			       "ENCODING:OPCODE=WORD[,WORD...]",
			       text);
	slot = find_slot(s, text, (size_t)(eq - text), e);
	if (!slot)
		return false;
	if (!cli_sweep(eq + 1, &v, &n, e))
		return err_wrap(e, "replacement '%s'", text);
	if (n > PROBE_WORDS_MAX) {
		free(v);
		return err_set(e, ERR_USAGE,
			       "replacement '%s': %zu words, at "
			       "most %d fit",
			       text, n, PROBE_WORDS_MAX);
	}
	slot->n_words = (int)n;
	for (size_t i = 0; i < n; i++)
		slot->word[i] = (uint32_t)v[i];
	free(v);
	return true;
}
