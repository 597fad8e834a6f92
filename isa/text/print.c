/*
 * isa/text/print.c - struct isa_inst to text in LLVM's syntax.
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/print_int.h"

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
		 (t->bits == 64 || (in->fmt == ISA_FMT_VOP3P &&
				    op->dwords == 8 && in->gen != ISA_GFX12)))
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
	case ISA_R_LDS_DIRECT:
		return "src_lds_direct";
	}
	return "src_scc";
}

static void put_vgpr(struct out *o, const struct isa_inst *in,
		     const struct isa_operand *op)
{
	add_char(o, 'v');
	add_range(o, op->reg, op->dwords);
	if (in->op == ISA_v_mov_b16 || in->op == ISA_v_swap_b16 ||
	    (o->true16 && isa_prints_half(in, op)))
		add_str(o, op->mods & ISA_M_HI ? ".h" : ".l");
	else if (in->fmt <= ISA_FMT_VOP2 && op->mods & ISA_M_HI)
		ADD(o, ".h");
}

/* Is this an integer that sources have as an inline constant? */
static bool is_small(int32_t v)
{
	return v >= -16 && v <= 64;
}

/* The inline constant that has these bits, or -1. */
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

/* How a literal is written. */
struct shown {
	int32_t small; /* the integer that it equals as an operand */
	int real;      /* the constant of reals[] that it equals, or -1 */
	uint32_t hex;
	enum isa_type type; /* which constants that is among */
	bool high;	    /* half of a 64-bit float: hex is no number */
};

/*
 * A literal prints as the constant that it equals in the operand's type, and
 * in hex otherwise; 16-bit types take its low half.
 */
static struct shown shown_literal(const struct isa_inst *in,
				  const struct isa_operand *op)
{
	const struct isa_type_info *t = isa_type_info(op->type);
	bool half = t->bits == 16 && t->count == 1 && !is_whole(in, op);
	uint32_t v = op->value;
	struct shown x = { v, -1, v, ISA_T_B32, false };
	uint64_t bits = v;

	if (op->type == ISA_T_MIX || in->op == ISA_v_ldexp_f16 ||
	    (half && t->kind == 'F')) {
		x.small = (int16_t)v;
		bits = x.hex = v & 0xffff;
		x.type = ISA_T_F16;
	} else if (half && t->kind == 'G') {
		x.small = (int16_t)v;
		bits = x.hex = v & 0xffff;
		x.type = ISA_T_BF16;
	} else if (half) {
		x.hex = v & 0xffff;
	} else if (t->bits == 16 && (t->kind == 'F' || t->kind == 'G') &&
		   !shares_literal(in)) {
		x.type = op->type;
	} else if (t->bits == 64 && t->kind == 'F') {
		x.small = v ? -17 : 0;
		x.high = true;
		bits = (uint64_t)v << 32;
		x.type = op->type;
	} else if (t->bits == 64) {
		x.small = v <= 64 ? (int32_t)v : -17;
		bits = 0;
	}
	x.real = real_of(x.type, bits);
	return x;
}

/*
 * What would be read as an inline constant, or with fewer bits, is marked, so
 * that the text assembles to the same bytes.
 */
static void put_literal(struct out *o, const struct isa_inst *in,
			const struct isa_operand *op)
{
	struct shown x = shown_literal(in, op);
	bool small = is_small(x.small), cut = x.hex != op->value, mark;

	if (op->slot == ISA_SLOT_K && in->fmt != ISA_FMT_SOPK) {
		mark = cut;
		small = false;
		x.real = -1;
	} else {
		mark = op->slot != ISA_SLOT_K &&
		       (small || x.real >= 0 || cut ||
			(x.high && is_small(op->value)));
	}
	add_if(o, mark, "lit(");
	if (!cut && small)
		add_int(o, x.small);
	else if (!cut && x.real >= 0)
		add_str(o, reals[x.real]);
	else
		add_hex(o, op->value);
	add_if(o, mark, ")");
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

static void put_source(struct out *o, const struct isa_inst *in,
		       const struct isa_operand *op)
{
	bool neg = op->mods & ISA_M_NEG && isa_prints_mods_inline(in);
	bool abs = op->mods & ISA_M_ABS && isa_prints_mods_inline(in);
	bool sext = op->mods & ISA_M_SEXT;
	bool word = neg && !abs && op->kind != ISA_K_VGPR &&
		    op->kind != ISA_K_SGPR && op->kind != ISA_K_SPECIAL;

	if (!neg && !abs) {
		add_if(o, sext, "sext(");
		put_plain(o, in, op);
		add_if(o, sext, ")");
		return;
	}
	add_str(o, word ? "neg(" : neg ? "-" : "");
	add_if(o, abs, "|");
	put_plain(o, in, op);
	add_if(o, abs, "|");
	add_if(o, word, ")");
}

/* ------------------------------------------------------- instruction ---- */

/* Scalar memory: "soffset", "immediate", or "soffset offset:immediate". */
static void put_soff(struct out *o, const struct isa_inst *in,
		     const struct isa_operand *op)
{
	int shift = in->gen == ISA_GFX12 ? 8 : 11;
	bool always = false;
	int32_t imm = (int32_t)(in->f[ISA_F_OFFSET] << shift) >> shift;

	if (in->gen == ISA_GFX12 && op->kind == ISA_K_OFF && !imm) {
		ADD(o, "0x0");
		return;
	}
	if (op->kind != ISA_K_OFF || !imm) {
		put_sgpr(o, in->f[ISA_F_SOFFSET], 1);
		always = in->gen == ISA_GFX12;
		add_if(o, imm || always, " offset:");
	}
	add_if(o, imm < 0, "-");
	if (imm || always)
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
		isa_print_swizzle(o, op->value);
		return true;
	case ISA_SLOT_FORMAT:
		name = isa_number_name(
			in->gen < ISA_GFX11 ? BUFFMT10 : BUFFMT, op->value);
		if (!name) {
			put_number(o, " format:", op->value);
		} else if (op->value != 1) { /* 8_UNORM is the default */
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
	case ISA_SLOT_SOFFI:
		add_if(o, (int32_t)op->value < 0, "-");
		add_hex(o, (int32_t)op->value < 0 ? -op->value : op->value);
		break;
	case ISA_SLOT_IMM:
	case ISA_SLOT_REL:
	case ISA_SLOT_MSG:
	case ISA_SLOT_HWREG:
	case ISA_SLOT_WAITCNT:
	case ISA_SLOT_DELAY:
	case ISA_SLOT_DEPCTR:
	case ISA_SLOT_ATTR:
		isa_print_immediate(o, in, op);
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
	bool sdwa = in->form == ISA_FORM_SDWA;
	bool dpp = in->form != ISA_FORM_PLAIN && !sdwa;

	add_str(o, isa_op_name(in->gen, in->op));
	if (!op->n_opnd) /* v_nop, v_pipeflush */
		return;
	if (in->fmt == op->fmt) {
		if (dpp && in->fmt >= ISA_FMT_VOP3 && in->fmt <= ISA_FMT_VOP3P)
			ADD(o, "_e64");
		else if (sdwa)
			ADD(o, "_sdwa");
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

	isa_vopd_op_in(in->gen, in->f[ISA_F_OP], false, &x);
	isa_vopd_op_in(in->gen, in->f[ISA_F_OPY], true, &y);
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
		const char *name = isa_number_name(EXPTGT, in->f[ISA_F_TARGET]);

		add_str(o, name ? " " : " invalid_target_");
		if (name)
			add_str(o, name);
		else
			add_dec(o, in->f[ISA_F_TARGET]);
	}
	put_operands(o, in, 0, in->n_opnd);
	isa_print_options(o, in);
}

/* Copy what was written at `text`, as far as it fits. */
static int copy_truncated(const char *text, const char *end, char *out,
			  size_t size)
{
	size_t len = end - text;

	if (text != out && size) {
		size_t n = len < size ? len : size - 1;

		memcpy(out, text, n);
		out[n] = 0;
	}
	return len;
}

static int print_text(const struct isa_inst *in, bool true16, char *out,
		      size_t size)
{
	char room[ISA_TEXT_MAX];
	char *text = size < sizeof(room) ? room : out;
	struct out o = { text, true16 };

	put_inst(&o, in);
	*o.p = 0;
	return copy_truncated(text, o.p, out, size);
}

int isa_print(const struct isa_target *t, const struct isa_inst *in, char *out,
	      size_t size)
{
	(void)t;
	return print_text(in, false, out, size);
}

int isa_print_true16(const struct isa_inst *in, char *out, size_t size)
{
	return print_text(in, true, out, size);
}

int isa_print_name(const struct isa_inst *in, char *out, size_t size)
{
	char room[ISA_TEXT_MAX];
	struct out o = { room, false };

	if (in->fmt == ISA_FMT_VOPD)
		put_vopd(&o, in, false);
	else
		put_name(&o, in);
	return copy_truncated(room, o.p, out, size);
}
