/*
 * print_int - appending text, shared by the files of the printer.
 *
 * Appending checks no bounds: no instruction's text comes near
 * ISA_TEXT_MAX (the longest, an image instruction with five addresses, is
 * below 300), so isa_print() gives a buffer of that size and cuts.
 */
#ifndef T0_ISA_PRINT_INT_H
#define T0_ISA_PRINT_INT_H

#include "isa/text/text.h"

struct out {
	char *p; /* where the next character goes */
	bool true16; /* isa_print_true16() */
};

static inline void add_char(struct out *o, char c)
{
	*o->p++ = c;
}

static inline void add_bytes(struct out *o, const char *s, size_t n)
{
	memcpy(o->p, s, n);
	o->p += n;
}

/* A string constant: its length is known when this is compiled. */
#define ADD(o, text) add_bytes((o), text, sizeof(text) - 1)

static inline void add_str(struct out *o, const char *s)
{
	add_bytes(o, s, strlen(s));
}

static inline void add_if(struct out *o, bool yes, const char *s)
{
	if (yes)
		add_str(o, s);
}

static inline void add_dec(struct out *o, uint32_t v)
{
	char digit[10];
	int n = 0;

	if (v < 10) {
		add_char(o, '0' + v);
		return;
	}
	do
		digit[n++] = '0' + v % 10;
	while (v /= 10);
	while (n)
		add_char(o, digit[--n]);
}

static inline void add_int(struct out *o, int32_t v)
{
	if (v < 0)
		add_char(o, '-');
	add_dec(o, v < 0 ? -(uint32_t)v : (uint32_t)v);
}

static inline void add_hex(struct out *o, uint32_t v)
{
	int shift = v ? (31 - __builtin_clz(v)) & ~3 : 0;

	ADD(o, "0x");
	for (; shift >= 0; shift -= 4)
		add_char(o, "0123456789abcdef"[v >> shift & 15]);
}

/* Small numbers in decimal, as constants that an instruction has inline. */
static inline void add_imm(struct out *o, uint32_t v)
{
	if (v <= 64)
		add_dec(o, v);
	else
		add_hex(o, v);
}

/* Is it half of a VGPR, which the text may name? */
static inline bool isa_prints_half(const struct isa_inst *in,
				   const struct isa_operand *op)
{
	const bool shift = op->slot == ISA_SLOT_S2 && isa_inst_is_align(in);

	return op->kind == ISA_K_VGPR && in->gen >= ISA_GFX11 &&
	       (isa_fmt_is_e32(in->fmt) || in->fmt == ISA_FMT_VOP3) &&
	       (isa_type_is_half(op->type) || shift);
}

/* ------------------------------------------------------- print_imm.c ---- */

/* Kinds of isa/tables/names.def. */
enum isa_name_kind {
	BUFFMT,
	HWREG,
	MSG,
	EXPTGT,
	DIM,
	INSTID,
	SKIP,
	UCVERSION,
	HWREG12,
	MSG12,
	BUFFMT10,
	HWREG10,
	MSG10,
	GSOP10,
	SYSOP10,
	NAME_KINDS
};
enum { NAME_NUMBERS = 136 };

/* The name of a number, or NULL. */
const char *isa_number_name(enum isa_name_kind kind, uint32_t number);

/* An item "name(value)" of s_waitcnt, s_delay_alu, s_waitcnt_depctr. */
struct imm_item {
	const char *name;
	uint8_t low, width; /* bits of the immediate */
	int8_t names;	    /* enum isa_name_kind of its values, -1: numbers */
};
enum { DELAY_ITEMS = 3, DEPCTR_ITEMS = 7 };
/* Names of hardware registers, and does the generation have this one? */
static inline enum isa_name_kind isa_hwreg_names(enum isa_gen gen)
{
	return gen == ISA_GFX12 ? HWREG12 :
	       gen < ISA_GFX11	? HWREG10 :
				  HWREG;
}
static inline bool isa_hwreg_known(enum isa_gen gen, int64_t id)
{
	/* XNACK_MASK is gfx10_1's, SHADER_CYCLES gfx10_3's. */
	return !(gen == ISA_GFX10_1 && id == 29) &&
	       !(gen == ISA_GFX10_3 && id == 22);
}
/* The first item of s_waitcnt_depctr that it has: hold_cnt came with gfx10_3. */
static inline int isa_depctr_first(enum isa_gen gen)
{
	return gen == ISA_GFX10_1;
}
extern const struct imm_item isa_delay_items[DELAY_ITEMS];
extern const struct imm_item isa_depctr_items[DEPCTR_ITEMS];

/* Operands that are immediates with a meaning. */
void isa_print_immediate(struct out *o, const struct isa_inst *in,
			   const struct isa_operand *op);
void isa_print_swizzle(struct out *o, uint32_t v);

/* ------------------------------------------------------ print_mods.c ---- */

/* Packed formats name neg and abs at the end of the line. */
bool isa_prints_mods_inline(const struct isa_inst *in);
/* What stands after the operands, by encoding. */
void isa_print_options(struct out *o, const struct isa_inst *in);

#endif
