/*
 * isa/print.c - struct isa_inst to text in LLVM's syntax.
 *
 * Text is appended without looking at the room: no instruction's text comes
 * near ISA_TEXT_MAX (the longest, an image instruction with five addresses, is
 * below 300), so isa_print() writes into a buffer of that size and cuts.
 */
#include <string.h>

#include "base/base.h"
#include "isa/isa.h"
#include "isa/isa_int.h"

struct out {
	char *p; /* where the next character goes */
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

static void add_dec(struct out *o, uint32_t v)
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

static void add_int(struct out *o, int32_t v)
{
	if (v < 0)
		add_char(o, '-');
	add_dec(o, v < 0 ? -(uint32_t)v : (uint32_t)v);
}

static void add_hex(struct out *o, uint32_t v)
{
	int shift = v ? (31 - __builtin_clz(v)) & ~3 : 0;

	ADD(o, "0x");
	for (; shift >= 0; shift -= 4)
		add_char(o, "0123456789abcdef"[v >> shift & 15]);
}

/* Small numbers in decimal, as constants that an instruction has inline. */
static void add_imm(struct out *o, uint32_t v)
{
	if (v <= 64)
		add_dec(o, v);
	else
		add_hex(o, v);
}

enum name_kind { BUFFMT, HWREG, MSG, EXPTGT, DIM, INSTID, SKIP,
		 UCVERSION, KINDS };
enum { NAME_NUMBERS = 135 };

static const char *name_of(enum name_kind kind, uint32_t number)
{
	static const char *const names[KINDS][NAME_NUMBERS] = {
#define NAME(kind, number, name) [kind][number] = name,
#include "isa/names.def"
#undef NAME
	};

	return number < NAME_NUMBERS ? names[kind][number] : NULL;
}

/* ---------------------------------------------------------- operands ---- */

/* "5", or "[4:7]" for several registers. */
static void add_range(struct out *o, uint32_t reg, int n)
{
	if (n < 2) {
		add_dec(o, reg);
		return;
	}
	add_char(o, '[');
	add_dec(o, reg);
	add_char(o, ':');
	add_dec(o, reg + n - 1);
	add_char(o, ']');
}

static void put_sgpr(struct out *o, uint32_t reg, int n)
{
	static const char *const special[] = {
		[ISA_R_VCC_LO] = "vcc",	  [ISA_R_NULL] = "null",
		[ISA_R_M0] = "m0",	  [ISA_R_EXEC_LO] = "exec",
		[ISA_R_VCC_HI] = "vcc_hi", [ISA_R_EXEC_HI] = "exec_hi",
	};
	const char *file = "s";

	if (reg >= ISA_R_TTMP0 && reg < ISA_R_NULL) {
		file = "ttmp";
		reg -= ISA_R_TTMP0;
	} else if (reg >= ISA_R_VCC_LO && reg <= ISA_R_EXEC_HI) {
		bool pair = reg == ISA_R_VCC_LO || reg == ISA_R_EXEC_LO;

		add_str(o, special[reg]);
		add_if(o, pair && n < 2, "_lo");
		return;
	}
	add_str(o, file);
	add_range(o, reg, n);
}

enum { N_REAL = 9 };
static const char *const reals[N_REAL] = { "0.5",  "-0.5", "1.0",
					   "-1.0", "2.0",  "-2.0",
					   "4.0",  "-4.0", "0.15915494" };

/* 16-bit sources that are written like 32-bit ones. */
static bool is_whole(const struct isa_inst *in, const struct isa_operand *op)
{
	switch (in->op) {
	case ISA_v_ldexp_f16:
		return op->slot == ISA_SLOT_S1 && op->kind == ISA_K_INLINE;
	case ISA_v_cmp_class_f16:
	case ISA_v_cmpx_class_f16:
		return op->slot == ISA_SLOT_S1;
	default:
		return false;
	}
}

static void put_inline(struct out *o, const struct isa_inst *in,
		       const struct isa_operand *op)
{
	const struct isa_type_info *t = isa_type_info(op->type);

	if (op->reg < 240)
		add_int(o, op->reg <= 192 ? op->reg - 128 : 192 - op->reg);
	else if (op->reg == 248 &&
		 (t->bits == 64 || (in->fmt == ISA_FMT_VOP3P && op->dwords == 8)))
		ADD(o, "0.15915494309189532");
	else if (t->bits == 16 && t->count == 1 && t->kind != 'F' &&
		 t->kind != 'G' && !is_whole(in, op))
		add_hex(o, op->value);
	else
		add_str(o, reals[op->reg - 240]);
}

static const char *special_name(uint32_t reg)
{
	switch (reg) {
	case ISA_R_SHARED_BASE:
		return "src_shared_base";
	case ISA_R_SHARED_LIMIT:
		return "src_shared_limit";
	case ISA_R_PRIVATE_BASE:
		return "src_private_base";
	case ISA_R_PRIVATE_LIMIT:
		return "src_private_limit";
	case ISA_R_POPS_WAVE_ID:
		return "src_pops_exiting_wave_id";
	case ISA_R_VCCZ:
		return "src_vccz";
	case ISA_R_EXECZ:
		return "src_execz";
	}
	return "src_scc";
}

static void put_vgpr(struct out *o, const struct isa_inst *in,
		     const struct isa_operand *op)
{
	add_char(o, 'v');
	add_range(o, op->reg, op->dwords);
	if (in->op == ISA_v_mov_b16 || in->op == ISA_v_swap_b16)
		add_str(o, op->mods & ISA_M_HI ? ".h" : ".l");
	else if (in->fmt <= ISA_FMT_VOP2 && op->mods & ISA_M_HI)
		ADD(o, ".h");
}

/* Is this an integer that sources have as an inline constant? */
static bool is_small(int32_t v)
{
	return v >= -16 && v <= 64;
}

/* The real constant that looks like these bits, or -1. */
static int real_of(enum isa_type type, uint64_t bits)
{
	for (int i = 0; i < N_REAL; i++)
		if (isa_inline_value(240 + i, type) == bits)
			return i;
	return -1;
}

/* VOPD with a mandatory literal: the other half sees 32 bits of it. */
static bool shares_literal(const struct isa_inst *in)
{
	for (int i = 0; in->fmt == ISA_FMT_VOPD && i < in->n_opnd; i++)
		if (in->opnd[i].slot == ISA_SLOT_K)
			return true;
	return false;
}

/*
 * A literal prints as the constant that it equals in the operand's type, and
 * in hex otherwise; 16-bit types take its low half.
 */
static void put_literal(struct out *o, const struct isa_inst *in,
			const struct isa_operand *op)
{
	const struct isa_type_info *t = isa_type_info(op->type);
	bool half = t->bits == 16 && t->count == 1 && !is_whole(in, op);
	uint32_t v = op->value, shown = v;
	enum isa_type type = ISA_T_B32;
	int32_t small = v;
	uint64_t bits = v;
	int real;

	if (op->slot == ISA_SLOT_K && in->fmt != ISA_FMT_SOPK) {
		add_hex(o, v);
		return;
	}
	if (op->type == ISA_T_MIX || in->op == ISA_v_ldexp_f16 ||
	    (half && t->kind == 'F')) {
		small = (int16_t)v;
		bits = shown = v & 0xffff;
		type = ISA_T_F16;
	} else if (half && t->kind == 'G') {
		small = (int16_t)v;
		bits = v & 0xffff;
		type = ISA_T_BF16;
	} else if (half) {
		shown = v & 0xffff;
	} else if (t->bits == 16 && (t->kind == 'F' || t->kind == 'G') &&
		   !shares_literal(in)) {
		type = op->type;
	} else if (t->bits == 64 && t->kind == 'F') {
		small = v ? -17 : 0; /* it is the high half */
		bits = (uint64_t)v << 32;
		type = op->type;
	} else if (t->bits == 64) {
		small = v <= 64 ? (int32_t)v : -17;
		bits = 0;
	}
	real = real_of(type, bits);
	if (is_small(small))
		add_int(o, small);
	else if (real >= 0)
		add_str(o, reals[real]);
	else
		add_hex(o, shown);
}

static void put_plain(struct out *o, const struct isa_inst *in,
		      const struct isa_operand *op)
{
	switch (op->kind) {
	case ISA_K_VGPR:
		put_vgpr(o, in, op);
		break;
	case ISA_K_SGPR:
		put_sgpr(o, op->reg, op->dwords);
		break;
	case ISA_K_INLINE:
		put_inline(o, in, op);
		break;
	case ISA_K_LITERAL:
		put_literal(o, in, op);
		break;
	case ISA_K_SPECIAL:
		add_str(o, special_name(op->reg));
		break;
	case ISA_K_OFF:
		ADD(o, "off");
		break;
	default:
		add_imm(o, op->value);
	}
}

/* Packed formats name their modifiers at the end of the line. */
static bool mods_inline(const struct isa_inst *in)
{
	return in->fmt != ISA_FMT_VOP3P ||
	       isa_op_info(in->op)->opnd[1].type == ISA_T_MIX;
}

static void put_source(struct out *o, const struct isa_inst *in,
		       const struct isa_operand *op)
{
	bool neg = op->mods & ISA_M_NEG && mods_inline(in);
	bool abs = op->mods & ISA_M_ABS && mods_inline(in);
	bool word = neg && !abs && op->kind != ISA_K_VGPR &&
		    op->kind != ISA_K_SGPR && op->kind != ISA_K_SPECIAL;

	if (!neg && !abs) {
		put_plain(o, in, op);
		return;
	}
	add_str(o, word ? "neg(" : neg ? "-" : "");
	add_if(o, abs, "|");
	put_plain(o, in, op);
	add_if(o, abs, "|");
	add_if(o, word, ")");
}

/* -------------------------------------------------------- immediates ---- */

/* "name(value)", behind a space unless it is the first. */
static void put_count(struct out *o, bool *first, const char *name, uint32_t v)
{
	add_if(o, !*first, " ");
	*first = false;
	add_str(o, name);
	add_char(o, '(');
	add_dec(o, v);
	add_char(o, ')');
}

static void put_waitcnt(struct out *o, uint32_t v)
{
	uint32_t vm = v >> 10 & 63, lgkm = v >> 4 & 63, exp = v & 7;
	bool all = vm == 63 && lgkm == 63 && exp == 7;
	bool first = true;

	if (all || vm != 63)
		put_count(o, &first, "vmcnt", vm);
	if (all || exp != 7)
		put_count(o, &first, "expcnt", exp);
	if (all || lgkm != 63)
		put_count(o, &first, "lgkmcnt", lgkm);
}

static void put_depctr(struct out *o, uint32_t v)
{
	static const struct {
		const char *name;
		uint8_t low, width;
	} part[] = {
		{ "depctr_hold_cnt", 7, 1 }, { "depctr_sa_sdst", 0, 1 },
		{ "depctr_va_vdst", 12, 4 }, { "depctr_va_sdst", 9, 3 },
		{ "depctr_va_ssrc", 8, 1 },  { "depctr_va_vcc", 1, 1 },
		{ "depctr_vm_vsrc", 2, 3 },
	};
	uint32_t known = 0, at_default = 0;
	bool first = true;

	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		uint32_t max = (1u << part[i].width) - 1;

		known |= max << part[i].low;
		at_default += (v >> part[i].low & max) == max;
	}
	if (v & ~known) {
		add_hex(o, v);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		uint32_t max = (1u << part[i].width) - 1;
		uint32_t x = v >> part[i].low & max;

		if (x != max || at_default == ARRAY_SIZE(part))
			put_count(o, &first, part[i].name, x);
	}
}

static void put_delay(struct out *o, uint32_t v)
{
	static const struct {
		const char *name;
		enum name_kind kind;
		uint8_t low, width;
	} part[] = { { "instid0", INSTID, 0, 4 },
		     { "instskip", SKIP, 4, 3 },
		     { "instid1", INSTID, 7, 4 } };
	static const char *const bad[] = {
		[INSTID] = "/* invalid instid value */",
		[SKIP] = "/* invalid instskip value */",
	};
	const char *sep = "";

	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		uint32_t x = v >> part[i].low & ((1u << part[i].width) - 1);
		const char *name = name_of(part[i].kind, x);

		if (!x)
			continue;
		add_str(o, sep);
		add_str(o, part[i].name);
		add_char(o, '(');
		add_str(o, name ? name : bad[part[i].kind]);
		add_char(o, ')');
		sep = " | ";
	}
	if (!*sep)
		add_char(o, '0');
}

static void put_msg(struct out *o, uint32_t v)
{
	const char *name = name_of(MSG, v);

	if (v > 0xff) {
		add_dec(o, v);
		return;
	}
	if (name) {
		ADD(o, "sendmsg(MSG_");
		add_str(o, name);
		add_char(o, ')');
	} else {
		ADD(o, "sendmsg(");
		add_dec(o, v);
		ADD(o, ", 0, 0)");
	}
}

static void put_hwreg(struct out *o, uint32_t v)
{
	uint32_t id = v & 63, low = v >> 6 & 31, size = (v >> 11 & 31) + 1;
	const char *name = name_of(HWREG, id);

	ADD(o, "hwreg(");
	add_if(o, name, "HW_REG_");
	if (name)
		add_str(o, name);
	else
		add_dec(o, id);
	if (low || size != 32) {
		ADD(o, ", ");
		add_dec(o, low);
		ADD(o, ", ");
		add_dec(o, size);
	}
	add_char(o, ')');
}

/* A microcode version and its bits, as an expression. */
static void put_version(struct out *o, uint32_t v)
{
	static const char *const bit[] = { "UC_VERSION_W64_BIT",
					   "UC_VERSION_W32_BIT",
					   "UC_VERSION_MDP_BIT" };
	const char *name = name_of(UCVERSION, v & 0xff);
	int n = __builtin_popcount(v >> 13);

	if (v & 0x1f00) {
		add_hex(o, v);
		return;
	}
	for (int i = 1; i < n; i++)
		add_char(o, '(');
	if (name)
		add_str(o, name);
	else
		add_dec(o, v & 0xff);
	for (int i = 0; i < 3; i++) {
		if (!(v >> (13 + i) & 1))
			continue;
		add_char(o, '|');
		add_str(o, bit[i]);
		add_if(o, --n > 0, ")");
	}
}

/* Program-control immediates that are numbers rather than bit patterns. */
static bool number_imm(enum isa_op op)
{
	switch (op) {
	case ISA_s_nop:
	case ISA_s_sethalt:
	case ISA_s_setkill:
	case ISA_s_sleep:
	case ISA_s_setprio:
	case ISA_s_trap:
	case ISA_s_denorm_mode:
	case ISA_s_incperflevel:
	case ISA_s_decperflevel:
		return true;
	default:
		return false;
	}
}

static void put_imm(struct out *o, const struct isa_inst *in, uint32_t v)
{
	if (in->op == ISA_s_version)
		put_version(o, v);
	else if (in->op == ISA_s_endpgm)
		add_dec(o, v);
	else if (number_imm(in->op))
		add_imm(o, v);
	else
		add_hex(o, v);
}

static void put_swizzle(struct out *o, uint32_t v)
{
	uint32_t and = v & 31, or = v >> 5 & 31, xor = v >> 10 & 31;
	uint32_t group = 32 - and;

	if (!v)
		return;
	ADD(o, " offset:");
	if ((v & 0xff00) == 0x8000) {
		ADD(o, "swizzle(QUAD_PERM");
		for (int i = 0; i < 8; i += 2) {
			add_char(o, ',');
			add_dec(o, v >> i & 3);
		}
	} else if (v & 0x8000) {
		add_dec(o, v);
		return;
	} else if (and == 31 && !or && __builtin_popcount(xor) == 1) {
		ADD(o, "swizzle(SWAP,");
		add_dec(o, xor);
	} else if (and == 31 && !or && xor && !(xor & (xor + 1))) {
		ADD(o, "swizzle(REVERSE,");
		add_dec(o, xor + 1);
	} else if (group > 1 && !(group & (group - 1)) && or < group && !xor) {
		ADD(o, "swizzle(BROADCAST,");
		add_dec(o, group);
		add_char(o, ',');
		add_dec(o, or);
	} else {
		ADD(o, "swizzle(BITMASK_PERM,\"");
		for (int i = 4; i >= 0; i--) {
			uint32_t p0 = or >> i & 1, p1 = (and | or) >> i & 1;

			p0 ^= xor >> i & 1;
			p1 ^= xor >> i & 1;
			add_char(o, p0 == p1 ? "01"[p0] : p0 ? 'i' : 'p');
		}
		add_char(o, '"');
	}
	add_char(o, ')');
}

/* ---------------------------------------------------------- modifiers ---- */

/* " name:" is given; "[0,1,1]" follows, bit 0 first. */
static void put_list(struct out *o, const char *name, uint32_t bits, int n)
{
	add_str(o, name);
	for (int i = 0; i < n; i++) {
		add_char(o, i ? ',' : '[');
		add_char(o, '0' + (bits >> i & 1));
	}
	add_char(o, ']');
}

static int n_sources(const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	int n = 0;

	for (int i = 0; i < op->n_opnd; i++)
		n += op->opnd[i].slot >= ISA_SLOT_S0 &&
		     op->opnd[i].slot <= ISA_SLOT_S2I;
	return n;
}

static void put_packed(struct out *o, const struct isa_inst *in)
{
	const uint32_t *f = in->f;
	int n = n_sources(in);
	uint32_t all = (1u << n) - 1;
	uint32_t hi = (f[ISA_F_OPSEL_HI] | f[ISA_F_OPSEL_HI2] << 2) & all;
	bool mix = mods_inline(in);

	if (f[ISA_F_OPSEL])
		put_list(o, " op_sel:", f[ISA_F_OPSEL], n);
	if (hi != (mix ? 0 : all) && !isa_int_whole_matrix(in))
		put_list(o, " op_sel_hi:", hi, n);
	if (mix)
		return;
	if (f[ISA_F_NEG])
		put_list(o, " neg_lo:", f[ISA_F_NEG], n);
	if (f[ISA_F_NEG_HI])
		put_list(o, " neg_hi:", f[ISA_F_NEG_HI], n);
}

/*
 * op_sel of the sources, then of a vector destination; one that is also read
 * counts as the third source.
 */
static void put_opsel(struct out *o, const struct isa_inst *in)
{
	uint32_t bits = isa_int_opsel(in);
	int n = isa_op_info(in->op)->flags & ISA_RD ? 3 : n_sources(in);
	bool to_vgpr = in->opnd[0].slot == ISA_SLOT_D &&
		       isa_op_info(in->op)->opnd[0].slot == ISA_SLOT_D;

	if (!bits)
		return;
	if (in->op == ISA_v_permlane16_b32 || in->op == ISA_v_permlanex16_b32)
		put_list(o, " op_sel:", bits, 2);
	else if (to_vgpr)
		put_list(o, " op_sel:",
			 (bits & ((1u << n) - 1)) | bits >> 3 << n, n + 1);
	else
		put_list(o, " op_sel:", bits, n);
}

static void put_vop3(struct out *o, const struct isa_inst *in)
{
	static const char *const omod[] = { "", " mul:2", " mul:4", " div:2" };

	if (in->fmt == ISA_FMT_VOP3)
		put_opsel(o, in);
	if (in->fmt == ISA_FMT_VOP3P)
		put_packed(o, in);
	if (in->f[ISA_F_CLAMP])
		ADD(o, " clamp");
	if (in->fmt == ISA_FMT_VINTERP) {
		put_opsel(o, in);
		ADD(o, " wait_exp:");
		add_dec(o, in->f[ISA_F_WAITEXP]);
	}
	add_str(o, omod[in->f[ISA_F_OMOD]]);
}

/* Controls without a number, and those that gfx10 removed. */
static const char *dpp_name(uint32_t ctrl)
{
	switch (ctrl) {
	case 0x130:
		return " /* wave_shl is not supported starting from GFX10 */";
	case 0x134:
		return " /* wave_rol is not supported starting from GFX10 */";
	case 0x138:
		return " /* wave_shr is not supported starting from GFX10 */";
	case 0x13c:
		return " /* wave_ror is not supported starting from GFX10 */";
	case 0x140:
		return " row_mirror";
	case 0x141:
		return " row_half_mirror";
	case 0x142:
	case 0x143:
		return " /* row_bcast is not supported starting from GFX10 */";
	}
	return " /* Invalid dpp_ctrl value */";
}

static void put_dpp16(struct out *o, const struct isa_dpp *d)
{
	static const char *const shift[] = { " row_shl:", " row_shr:",
					     " row_ror:" };
	uint32_t c = d->ctrl, n = c & 15;
	const char *name = NULL;

	if (c < 0x130 && c >= 0x100 && n)
		name = shift[(c >> 4) - 0x10];
	else if (c >> 4 == 0x15)
		name = " row_share:";
	else if (c >> 4 == 0x16)
		name = " row_xmask:";
	if (name) {
		add_str(o, name);
		add_dec(o, n);
	} else if (c < 0x100) {
		ADD(o, " quad_perm:");
		for (int i = 0; i < 8; i += 2) {
			add_char(o, i ? ',' : '[');
			add_char(o, '0' + (c >> i & 3));
		}
		add_char(o, ']');
	} else {
		add_str(o, dpp_name(c));
	}
	ADD(o, " row_mask:");
	add_hex(o, d->row_mask);
	ADD(o, " bank_mask:");
	add_hex(o, d->bank_mask);
	add_if(o, d->bound_ctrl, " bound_ctrl:1");
}

static void put_dpp(struct out *o, const struct isa_inst *in)
{
	const struct isa_dpp *d = &in->dpp;

	if (in->form == ISA_FORM_PLAIN)
		return;
	if (in->form == ISA_FORM_DPP16) {
		put_dpp16(o, d);
	} else {
		ADD(o, " dpp8:");
		for (int i = 0; i < 8; i++) {
			add_char(o, i ? ',' : '[');
			add_char(o, '0' + (d->sel >> (3 * i) & 7));
		}
		add_char(o, ']');
	}
	add_if(o, d->fi, " fi:1");
}

static void put_cache(struct out *o, const struct isa_inst *in)
{
	add_if(o, in->f[ISA_F_GLC], " glc");
	add_if(o, in->f[ISA_F_SLC], " slc");
	add_if(o, in->f[ISA_F_DLC], " dlc");
}

static bool is_ray_tracing(const struct isa_inst *in)
{
	return in->op == ISA_image_bvh_intersect_ray ||
	       in->op == ISA_image_bvh64_intersect_ray;
}

static void put_image(struct out *o, const struct isa_inst *in)
{
	const uint32_t *f = in->f;

	if (is_ray_tracing(in)) {
		add_if(o, f[ISA_F_A16], " a16");
		return;
	}
	if (f[ISA_F_DMASK]) {
		ADD(o, " dmask:");
		add_hex(o, f[ISA_F_DMASK]);
	}
	ADD(o, " dim:SQ_RSRC_IMG_");
	add_str(o, name_of(DIM, f[ISA_F_DIM]));
	add_if(o, f[ISA_F_UNORM], " unorm");
	put_cache(o, in);
	add_if(o, f[ISA_F_R128], " r128");
	add_if(o, f[ISA_F_A16], " a16");
	add_if(o, f[ISA_F_TFE], " tfe");
	add_if(o, f[ISA_F_LWE], " lwe");
	add_if(o, f[ISA_F_D16], " d16");
}

/* What stands behind the operands, by encoding. */
static void put_options(struct out *o, const struct isa_inst *in)
{
	const uint32_t *f = in->f;

	switch (in->fmt) {
	case ISA_FMT_VOP1:
	case ISA_FMT_VOP2:
	case ISA_FMT_VOPC:
		put_dpp(o, in);
		break;
	case ISA_FMT_VOP3:
	case ISA_FMT_VOP3SD:
	case ISA_FMT_VOP3P:
	case ISA_FMT_VINTERP:
		put_vop3(o, in);
		put_dpp(o, in);
		break;
	case ISA_FMT_MIMG:
		put_image(o, in);
		break;
	case ISA_FMT_EXP:
		add_if(o, f[ISA_F_DONE], " done");
		add_if(o, f[ISA_F_ROW], " row_en");
		break;
	case ISA_FMT_LDSDIR:
		ADD(o, " wait_vdst:");
		add_dec(o, f[ISA_F_WAITVDST]);
		break;
	case ISA_FMT_SMEM:
	case ISA_FMT_DS:
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		if (!isa_op_info(in->op)->n_opnd)
			break;
		put_cache(o, in);
		add_if(o, f[ISA_F_TFE], " tfe");
		add_if(o, f[ISA_F_GDS], " gds");
		break;
	}
}

/* ------------------------------------------------------- instruction ---- */

/* Scalar memory: "soffset", "immediate", or "soffset offset:immediate". */
static void put_soff(struct out *o, const struct isa_inst *in,
		     const struct isa_operand *op)
{
	int32_t imm = (int32_t)(in->f[ISA_F_OFFSET] << 11) >> 11;

	if (op->kind != ISA_K_OFF || !imm) {
		put_sgpr(o, in->f[ISA_F_SOFFSET], 1);
		add_if(o, imm, " offset:");
	}
	add_if(o, imm < 0, "-");
	if (imm)
		add_hex(o, imm < 0 ? -imm : imm);
}

static void put_number(struct out *o, const char *name, int32_t v)
{
	if (!v)
		return;
	add_str(o, name);
	add_int(o, v);
}

/* Operands that are suffixes: they follow without a comma. */
static bool put_suffix(struct out *o, const struct isa_inst *in,
		       const struct isa_operand *op)
{
	const uint32_t *f = in->f;
	const char *name;

	switch (op->slot) {
	case ISA_SLOT_OFF12:
		add_if(o, f[ISA_F_IDXEN], " idxen");
		add_if(o, f[ISA_F_OFFEN], " offen");
		/* fall through */
	case ISA_SLOT_OFF13:
	case ISA_SLOT_OFF16:
		put_number(o, " offset:", (int32_t)op->value);
		return true;
	case ISA_SLOT_OFF2:
		put_number(o, " offset0:", f[ISA_F_OFFSET0]);
		put_number(o, " offset1:", f[ISA_F_OFFSET1]);
		return true;
	case ISA_SLOT_SWIZZLE:
		put_swizzle(o, op->value);
		return true;
	case ISA_SLOT_FORMAT:
		name = name_of(BUFFMT, op->value);
		if (!name) {
			put_number(o, " format:", op->value);
		} else if (op->value != 1) { /* 8_UNORM goes without saying */
			ADD(o, " format:[BUF_FMT_");
			add_str(o, name);
			add_char(o, ']');
		}
		return true;
	case ISA_SLOT_DG:
		return !f[ISA_F_GLC];
	case ISA_SLOT_SADDR:
		return in->fmt == ISA_FMT_FLAT;
	case ISA_SLOT_CI:
		return in->fmt == ISA_FMT_VOPD;
	case ISA_SLOT_IMM:
		/* s_endpgm 0 is printed without its number. */
		return in->op == ISA_s_endpgm && !op->value;
	}
	return false;
}

static void put_operand(struct out *o, const struct isa_inst *in,
			const struct isa_operand *op)
{
	switch (op->slot) {
	case ISA_SLOT_SOFF:
		put_soff(o, in, op);
		break;
	case ISA_SLOT_IMM:
		put_imm(o, in, op->value);
		break;
	case ISA_SLOT_REL:
		add_dec(o, op->value & 0xffff);
		break;
	case ISA_SLOT_MSG:
		put_msg(o, op->value);
		break;
	case ISA_SLOT_HWREG:
		put_hwreg(o, op->value);
		break;
	case ISA_SLOT_WAITCNT:
		put_waitcnt(o, op->value);
		break;
	case ISA_SLOT_DELAY:
		put_delay(o, op->value);
		break;
	case ISA_SLOT_DEPCTR:
		put_depctr(o, op->value);
		break;
	case ISA_SLOT_ATTR:
		ADD(o, "attr");
		add_dec(o, op->value >> 2);
		add_char(o, '.');
		add_char(o, "xyzw"[op->value & 3]);
		break;
	default:
		put_source(o, in, op);
	}
}

static void put_operands(struct out *o, const struct isa_inst *in, int from,
			 int to)
{
	bool nsa = in->fmt == ISA_FMT_MIMG && in->f[ISA_F_NSA];
	bool first = true;

	for (int i = from; i < to; i++) {
		const struct isa_operand *op = &in->opnd[i];
		bool address = nsa && op->slot == ISA_SLOT_VADDR;

		if (put_suffix(o, in, op))
			continue;
		if (!first)
			add_char(o, ',');
		add_char(o, ' ');
		first = false;
		add_if(o, address && op[-1].slot != ISA_SLOT_VADDR, "[");
		put_operand(o, in, op);
		add_if(o, address && op[1].slot != ISA_SLOT_VADDR, "]");
	}
}

static void put_name(struct out *o, const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	bool dpp = in->form != ISA_FORM_PLAIN;

	add_str(o, op->name);
	if (!op->n_opnd) /* v_nop, v_pipeflush */
		return;
	if (in->fmt == op->fmt) {
		if (dpp && in->fmt >= ISA_FMT_VOP3 && in->fmt <= ISA_FMT_VOP3P)
			ADD(o, "_e64");
		else if (!dpp && op->flags & ISA_E64)
			ADD(o, "_e32");
	} else {
		ADD(o, "_e64");
	}
	/* VOPC has no _dpp in its name. */
	if (dpp && in->fmt != ISA_FMT_VOPC)
		ADD(o, "_dpp");
	/* LLVM's names of these end in a space. */
	if (in->fmt == ISA_FMT_MIMG && in->f[ISA_F_NSA] &&
	    op->flags & ISA_SAMPLER)
		add_char(o, ' ');
}

static void put_vopd(struct out *o, const struct isa_inst *in, bool operands)
{
	const char *x = "", *y = "";

	isa_vopd_op(in->f[ISA_F_OP], false, &x);
	isa_vopd_op(in->f[ISA_F_OPY], true, &y);
	add_str(o, x);
	if (operands)
		put_operands(o, in, 0, in->n_opnd_x);
	ADD(o, " :: ");
	add_str(o, y);
	if (operands)
		put_operands(o, in, in->n_opnd_x, in->n_opnd);
}

static void put_inst(struct out *o, const struct isa_inst *in)
{
	if (in->fmt == ISA_FMT_VOPD) {
		put_vopd(o, in, true);
		return;
	}
	put_name(o, in);
	if (in->fmt == ISA_FMT_EXP) {
		const char *name = name_of(EXPTGT, in->f[ISA_F_TARGET]);

		add_str(o, name ? " " : " invalid_target_");
		if (name)
			add_str(o, name);
		else
			add_dec(o, in->f[ISA_F_TARGET]);
	}
	put_operands(o, in, 0, in->n_opnd);
	put_options(o, in);
}

/* Copy what was written at `text`, as far as it fits. */
static int cut(const char *text, const char *end, char *out, size_t size)
{
	size_t len = end - text;

	if (text != out && size) {
		size_t n = len < size ? len : size - 1;

		memcpy(out, text, n);
		out[n] = 0;
	}
	return len;
}

int isa_print(const struct isa_target *t, const struct isa_inst *in, char *out,
	      size_t size)
{
	char room[ISA_TEXT_MAX];
	char *text = size < sizeof(room) ? room : out;
	struct out o = { text };

	(void)t;
	put_inst(&o, in);
	*o.p = 0;
	return cut(text, o.p, out, size);
}

int isa_print_name(const struct isa_inst *in, char *out, size_t size)
{
	char room[ISA_TEXT_MAX];
	struct out o = { room };

	if (in->fmt == ISA_FMT_VOPD)
		put_vopd(&o, in, false);
	else
		put_name(&o, in);
	return cut(room, o.p, out, size);
}
