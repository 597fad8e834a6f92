/*
 * parse_int - what the parts of isa_parse() share.
 *
 * parse.c       the line, the forms that are tried, the entry
 * parse_lex.c   text to operands (struct arg)
 * parse_line.c  text to operands and modifiers (struct mod)
 * parse_name.c  mnemonics
 * parse_const.c numbers and literals in operands
 * parse_imm.c   messages, hardware registers, counters, swizzles
 * parse_mods.c  modifiers to fields
 * parse_source.c sources of arithmetic to fields
 * parse_slots.c all other operands to fields
 * parse_image.c operands of images and exports
 * parse_vopd.c  the halves of dual-issue instructions
 * parse_sdwa.c  parts of registers, gfx10_3 only
 * parse_check.c rules of text that machine code does not know
 *
 * Accepted and refused is what LLVM 19 accepts and refuses, but for:
 * - v1.l, v1.h and op_sel of 16-bit operands in VOP3: LLVM wants a mode for
 *   them, gfx11 has them always;
 * - unused_src1:N, unused_src2:N, for which LLVM has no words;
 * - format:[NAME] before a buffer's offset, which LLVM 19 misreads;
 * - immediates, offsets and masks too large for their field, which LLVM cuts
 *   without a word, and other nonsense that it assembles (src_scc as a
 *   destination, abs of interpolation, a float in s_setreg_imm32_b32, null
 *   for off): refused here.
 *
 * Functions that return bool set the parser's reason (isa_refuse()) before
 * they return false.
 */
#ifndef T0_ISA_PARSE_INT_H
#define T0_ISA_PARSE_INT_H

#include "isa/text/print_int.h"
#include "isa/text/text.h"

enum { MAX_ARGS = 12, MAX_MODS = 16, MAX_LIST = 32 };

enum arg_kind {
	ARG_NONE,
	ARG_VGPR,
	ARG_SGPR,    /* also VCC, EXEC, M0, NULL, TTMP */
	ARG_SPECIAL, /* src_scc, src_shared_base, ... */
	ARG_INT,
	ARG_FLOAT,
	ARG_OFF,
	ARG_LIST, /* [v0, v1]: image addresses */
	ARG_WORD, /* sendmsg(...), attr0.x, an expression over symbols */
};

struct arg {
	uint8_t kind; /* enum arg_kind */
	uint8_t n;    /* registers */
	uint16_t reg;
	uint8_t list, list_n; /* ARG_LIST: from parser.list[list] */
	char half;	      /* 'l' or 'h' of "v0.h", 0 without */
	bool neg, abs, sext;
	bool lit; /* "lit(1)": a literal even where it could be inline */
	int len; /* of the text, without neg and abs */
	const char *s;
	union {
		int64_t i;
		double d;
	};
};

/* Modifiers by name, in the order in which a line must have them. */
enum mod_id {
	MD_UNKNOWN,
#define MOD(id, name, rank, flag) MD_##id,
#include "isa/tables/mods.def"
	MD_COUNT
};

enum mod_value { MD_NO_VALUE, MD_INT, MD_LIST, MD_WORD };

struct mod {
	uint8_t id;    /* enum mod_id */
	uint8_t value; /* enum mod_value */
	bool no;       /* "noglc" */
	int len;
	const char *s; /* the value's text */
	int64_t i;
};

struct parser {
	const struct isa_target *t;
	isa_symbol_fn *symbol;
	void *ctx;
	const struct isa_op_info *op;
	struct isa_inst *in;
	uint8_t *code; /* ISA_MAX_SIZE_BYTES, of the form that was tried last */
	const char *why; /* of the form that came furthest */
	int why_rank;
	uint8_t vaddr_n; /* registers of the address operand */
	uint8_t n_args, n_mods, n_list;
	struct arg arg[MAX_ARGS];
	struct mod mod[MAX_MODS];
	struct arg list[MAX_LIST];
};

/* Remember `why` if the form came as far as `rank`; returns false. */
bool isa_refuse(struct parser *ps, int rank, const char *why);

/*
 * The fields are complete: encode them, and let the decoder and the rules of
 * text judge them.
 */
bool isa_finish(struct parser *ps);

/* ------------------------------------------------------- parse_lex.c ---- */

bool isa_word_is(const char *s, int len, const char *word);
bool isa_has_prefix(const char *s, int len, const char *prefix);
/* One operand; moves *p past it. */
const char *isa_lex_arg(struct parser *ps, const char **p, struct arg *a);
/*
 * A number or an expression at *p; `primary`: up to the first operator, as
 * between bars.
 */
const char *isa_lex_expression(const char **p, struct arg *a, bool primary);
/* A plain register, as most operands are: "v0", "s[0:1]". */
static inline bool isa_lex_is_register(const char *p)
{
	return (*p == 'v' || *p == 's') &&
	       ((p[1] >= '0' && p[1] <= '9') || p[1] == '[');
}
/* Does '(' follow a name of `len` characters?  The end of its ')', or NULL. */
bool isa_lex_call_follows(const char *p, int len);
const char *isa_lex_call_end(const char *p);
/* Decimal digits at *p; -1 if there are none. */
int isa_lex_digits(const char **p);
/* The whole text s[0..len) as an integer expression without symbols. */
bool isa_lex_int(const char *s, int len, int64_t *v);
/* A list of consecutive registers becomes one operand; others stay. */
void isa_lex_tuple(const struct parser *ps, const struct arg *a,
		   struct arg *out);

/* ------------------------------------------------------ parse_line.c ---- */

/* Operands and modifiers up to the end of the text; NULL or why not. */
const char *isa_lex_line(struct parser *ps, const char *p);

/* ------------------------------------------------------ parse_name.c ---- */

/* A mnemonic: the row, and what its suffix asks for. */
struct mnemonic {
	uint16_t op; /* enum isa_op */
	bool e32, e64, dpp, sdwa;
};
/* s[0..len) in any case; false if there is no such instruction. */
bool isa_name_find(enum isa_gen gen, const char *s, int len,
		   struct mnemonic *m);
/* Does the text start with the name of a VOPD half? */
bool isa_name_is_dual(const char *s);
/* The VOPD opcode of s[0..len) as half X or Y, -1 if it is none. */
int isa_name_dual(enum isa_gen gen, const char *s, int len, bool y);

/* ----------------------------------------------------- parse_const.c ---- */

/* The source field of an inline constant, or -1. */
int isa_const_inline(const struct arg *a, enum isa_type type);
/* The literal's 32 bits. */
bool isa_const_literal(struct parser *ps, const struct arg *a,
		       const struct isa_operand_info *slot, uint32_t *out);
/* Spend the instruction's only literal on `v`. */
bool isa_set_literal(struct parser *ps, uint32_t v);
/* The value of an ARG_WORD, by asking the caller of isa_parse(). */
bool isa_word_value(struct parser *ps, const struct arg *a,
		    enum isa_symbol_use use, int64_t *v);

/* ------------------------------------------------------- parse_imm.c ---- */

/* The number of a name, given without its prefix; -1 if it has none. */
int isa_name_number(enum isa_name_kind kind, const char *s, int len);
/* SIMM16 or SSRC0 of an operand that is a single immediate. */
bool isa_put_imm(struct parser *ps, const struct arg *a, int slot);
/* Rows whose operand is the rest of the line: s_waitcnt and its like. */
bool isa_imm_takes_line(const struct isa_op_info *op);
bool isa_put_line(struct parser *ps, const char *s);
/* "swizzle(...)" to the offset of ds_swizzle_b32; false if malformed. */
bool isa_parse_swizzle(const char *s, int len, int64_t *v);

/* ------------------------------------------------------ parse_mods.c ---- */

/* The immediate offset of scalar memory. */
bool isa_put_scalar_offset(struct parser *ps, int64_t v);
bool isa_put_field(struct parser *ps, enum isa_field field, uint64_t v);
/* The number of mul:2, mul:4 or div:2; -1 if it is none of them. */
int isa_mod_omod(struct parser *ps, const struct mod *m);
/* Does the line have this modifier? */
bool isa_has_mod(const struct parser *ps, enum mod_id id);
/* Apply all modifiers to the form. */
bool isa_put_mods(struct parser *ps);
/* The DPP form that the modifiers ask for. */
enum isa_form isa_mods_form(const struct parser *ps);
bool isa_op_has_slot(const struct isa_op_info *op, int slot);

/* ---------------------------------------------------- parse_source.c ---- */

/* Registers of an operand of this slot. */
static inline int isa_want_dwords(const struct parser *ps,
				  const struct isa_operand_info *slot)
{
	return isa_slot_dwords(ps->t, ps->op, slot);
}
/* Does the register tuple have this width, and the alignment it requires? */
bool isa_width_ok(struct parser *ps, const struct arg *a, int want);
/*
 * Source `i` of arithmetic.  `only`: 'V' a VGPR, 'S' a scalar, 'I' a VGPR or
 * inline constant, 0 anything.
 */
bool isa_put_alu_source(struct parser *ps, const struct arg *a, int i,
			const struct isa_operand_info *slot, char only);
bool isa_put_vgpr(struct parser *ps, const struct arg *a, int dwords,
		  enum isa_type type, uint32_t *field);
/* An 8- or 9-bit source field. */
bool isa_put_source(struct parser *ps, const struct arg *a,
		    const struct isa_operand_info *slot, bool vgprs,
		    uint32_t *field);

/* ----------------------------------------------------- parse_slots.c ---- */

bool isa_put_operands(struct parser *ps);
/* A register tuple whose field counts in units of `unit` registers. */
bool isa_put_tuple(struct parser *ps, const struct arg *a, int dwords,
		   enum isa_field field, int unit);

/* ----------------------------------------------------- parse_image.c ---- */

bool isa_put_image(struct parser *ps);
bool isa_put_export(struct parser *ps);

/* ------------------------------------------------------ parse_vopd.c ---- */

bool isa_parse_vopd(struct parser *ps, const char *text, const char *second);

/* ------------------------------------------------------ parse_sdwa.c ---- */

/* The SDWA dword of a line that gives no selects. */
uint32_t isa_sdwa_default(enum isa_fmt fmt);
/* clamp, output modifiers, and the parts of registers. */
bool isa_put_sdwa_mod(struct parser *ps, const struct mod *m);
/* Source 0 or 1. */
bool isa_put_sdwa_source(struct parser *ps, const struct arg *a, int i,
			 const struct isa_operand_info *slot);

/* ----------------------------------------------------- parse_check.c ---- */

/* What the decoder accepts but text may not say; NULL or why. */
const char *isa_parse_check(const struct parser *ps);

#endif
