/*
 * isa/print.c - struct isa_inst to text in LLVM's syntax.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "isa/isa.h"

/* Text that never overruns, and knows the length it wanted. */
struct out {
	char *buf;
	size_t size, len;
};

static void put(struct out *o, const char *fmt, ...) T0_PRINTF(2, 3);
static void put(struct out *o, const char *fmt, ...)
{
	size_t room = o->len < o->size ? o->size - o->len : 0;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(room ? o->buf + o->len : NULL, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		o->len += n;
}

enum name_kind { BUFFMT, HWREG, MSG, EXPTGT, DIM, INSTID, SKIP };

static const char *name_of(enum name_kind kind, uint32_t number)
{
	static const struct {
		uint8_t kind, number;
		const char *name;
	} names[] = {
#define NAME(kind, number, name) { kind, number, name },
#include "isa/names.def"
#undef NAME
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].kind == kind && names[i].number == number)
			return names[i].name;
	return NULL;
}

/* ---------------------------------------------------------- operands ---- */

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

		put(o, "%s%s", special[reg], pair && n < 2 ? "_lo" : "");
		return;
	}
	if (n < 2)
		put(o, "%s%u", file, reg);
	else
		put(o, "%s[%u:%u]", file, reg, reg + n - 1);
}

static void put_inline(struct out *o, const struct isa_operand *op)
{
	static const char *const real[] = { "0.5",  "-0.5", "1.0",
					    "-1.0", "2.0",  "-2.0",
					    "4.0",  "-4.0", "0.15915494" };
	const struct isa_type_info *t = isa_type_info(op->type);

	if (op->reg < 240)
		put(o, "%d", op->reg <= 192 ? op->reg - 128 : 192 - op->reg);
	else if (t->bits == 64 && op->reg == 248)
		put(o, "0.15915494309189532");
	else if (t->bits == 16 && t->count == 1 && t->kind != 'F' &&
		 t->kind != 'G')
		put(o, "0x%x", op->value);
	else
		put(o, "%s", real[op->reg - 240]);
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
	if (op->dwords > 1)
		put(o, "v[%u:%u]", op->reg, op->reg + op->dwords - 1);
	else if (in->fmt <= ISA_FMT_VOP2 && op->mods & ISA_M_HI)
		put(o, "v%u.h", op->reg);
	else if (in->op == ISA_v_mov_b16 || in->op == ISA_v_swap_b16)
		put(o, "v%u.%c", op->reg, op->mods & ISA_M_HI ? 'h' : 'l');
	else
		put(o, "v%u", op->reg);
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
		put_inline(o, op);
		break;
	case ISA_K_LITERAL:
		put(o, "0x%x", op->value);
		break;
	case ISA_K_SPECIAL:
		put(o, "%s", special_name(op->reg));
		break;
	case ISA_K_OFF:
		put(o, "off");
		break;
	default:
		put(o, "%u", op->value);
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

	put(o, "%s%s", word ? "neg(" : neg ? "-" : "", abs ? "|" : "");
	put_plain(o, in, op);
	put(o, "%s%s", abs ? "|" : "", word ? ")" : "");
}

/* -------------------------------------------------------- immediates ---- */

static void put_waitcnt(struct out *o, uint32_t v)
{
	uint32_t vm = v >> 10 & 63, lgkm = v >> 4 & 63, exp = v & 7;
	bool all = vm == 63 && lgkm == 63 && exp == 7;
	const char *sep = "";

	if (all || vm != 63) {
		put(o, "vmcnt(%u)", vm);
		sep = " ";
	}
	if (all || exp != 7) {
		put(o, "%sexpcnt(%u)", sep, exp);
		sep = " ";
	}
	if (all || lgkm != 63)
		put(o, "%slgkmcnt(%u)", sep, lgkm);
}

static void put_depctr(struct out *o, uint32_t v)
{
	static const struct {
		const char *name;
		uint8_t low, width;
	} part[] = {
		{ "hold_cnt", 7, 1 }, { "sa_sdst", 0, 1 }, { "va_vdst", 12, 4 },
		{ "va_sdst", 9, 3 },  { "va_ssrc", 8, 1 }, { "va_vcc", 1, 1 },
		{ "vm_vsrc", 2, 3 },
	};
	uint32_t known = 0, at_default = 0;
	const char *sep = "";

	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		uint32_t max = (1u << part[i].width) - 1;

		known |= max << part[i].low;
		at_default += (v >> part[i].low & max) == max;
	}
	if (v & ~known) {
		put(o, "0x%x", v);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		uint32_t max = (1u << part[i].width) - 1;
		uint32_t x = v >> part[i].low & max;

		if (x == max && at_default < ARRAY_SIZE(part))
			continue;
		put(o, "%sdepctr_%s(%u)", sep, part[i].name, x);
		sep = " ";
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
	static const char *const bad[] = { [INSTID] = "instid",
					   [SKIP] = "instskip" };
	const char *sep = "";

	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		uint32_t x = v >> part[i].low & ((1u << part[i].width) - 1);
		const char *name = name_of(part[i].kind, x);

		if (!x)
			continue;
		if (name)
			put(o, "%s%s(%s)", sep, part[i].name, name);
		else
			put(o, "%s%s(/* invalid %s value */)", sep,
			    part[i].name, bad[part[i].kind]);
		sep = " | ";
	}
	if (!*sep)
		put(o, "0");
}

static void put_msg(struct out *o, uint32_t v)
{
	const char *name = name_of(MSG, v);

	if (v > 0xff)
		put(o, "%u", v);
	else if (name)
		put(o, "sendmsg(MSG_%s)", name);
	else
		put(o, "sendmsg(%u, 0, 0)", v);
}

static void put_hwreg(struct out *o, uint32_t v)
{
	uint32_t id = v & 63, low = v >> 6 & 31, size = (v >> 11 & 31) + 1;
	const char *name = name_of(HWREG, id);

	put(o, "hwreg(");
	if (name)
		put(o, "HW_REG_%s", name);
	else
		put(o, "%u", id);
	if (low || size != 32)
		put(o, ", %u, %u", low, size);
	put(o, ")");
}

static void put_version(struct out *o, uint32_t v)
{
	static const char *const bit[] = { "UC_VERSION_W64_BIT",
					   "UC_VERSION_W32_BIT",
					   "UC_VERSION_MDP_BIT" };

	if (v & 0x1fff & ~0xffu) {
		put(o, "0x%x", v);
		return;
	}
	put(o, "%u", v & 0xff);
	for (int i = 0; i < 3; i++)
		if (v >> (13 + i) & 1)
			put(o, "|%s", bit[i]);
}

/* Program-control immediates that LLVM prints in decimal. */
static bool decimal_imm(enum isa_op op)
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
		put(o, "%u", v);
	else
		put(o, decimal_imm(in->op) ? "%u" : "0x%x", v);
}

static void put_swizzle(struct out *o, uint32_t v)
{
	uint32_t and = v & 31, or = v >> 5 & 31, xor = v >> 10 & 31;
	uint32_t group = 32 - and;

	if (!v)
		return;
	put(o, " offset:");
	if ((v & 0xff00) == 0x8000) {
		put(o, "swizzle(QUAD_PERM,%u,%u,%u,%u)", v & 3, v >> 2 & 3,
		    v >> 4 & 3, v >> 6 & 3);
	} else if (v & 0x8000) {
		put(o, "%u", v);
	} else if (and == 31 && !or && __builtin_popcount(xor) == 1) {
		put(o, "swizzle(SWAP,%u)", xor);
	} else if (and == 31 && !or && xor && !(xor & (xor + 1))) {
		put(o, "swizzle(REVERSE,%u)", xor + 1);
	} else if (group > 1 && !(group & (group - 1)) && or < group && !xor) {
		put(o, "swizzle(BROADCAST,%u,%u)", group, or);
	} else {
		put(o, "swizzle(BITMASK_PERM,\"");
		for (int i = 4; i >= 0; i--) {
			uint32_t p0 = or >> i & 1, p1 = (and | or) >> i & 1;

			p0 ^= xor >> i & 1;
			p1 ^= xor >> i & 1;
			put(o, "%c", p0 == p1 ? "01"[p0] : p0 ? 'i' : 'p');
		}
		put(o, "\")");
	}
}

/* ---------------------------------------------------------- modifiers ---- */

static void put_list(struct out *o, const char *name, uint32_t bits, int n)
{
	put(o, " %s:[", name);
	for (int i = 0; i < n; i++)
		put(o, "%s%u", i ? "," : "", bits >> i & 1);
	put(o, "]");
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
	bool mix = !(!mods_inline(in));

	if (f[ISA_F_OPSEL])
		put_list(o, "op_sel", f[ISA_F_OPSEL], n);
	if (hi != (mix ? 0 : all))
		put_list(o, "op_sel_hi", hi, n);
	if (mix)
		return;
	if (f[ISA_F_NEG])
		put_list(o, "neg_lo", f[ISA_F_NEG], n);
	if (f[ISA_F_NEG_HI])
		put_list(o, "neg_hi", f[ISA_F_NEG_HI], n);
}

static void put_vop3(struct out *o, const struct isa_inst *in)
{
	static const char *const omod[] = { "", " mul:2", " mul:4", " div:2" };
	uint32_t opsel = in->f[ISA_F_OPSEL];

	if (in->fmt == ISA_FMT_VOP3 && opsel) {
		int n = n_sources(in);

		/* The destination's bit is the last one printed. */
		put_list(o, "op_sel",
			 (opsel & ((1u << n) - 1)) | opsel >> 3 << n, n + 1);
	}
	if (in->fmt == ISA_FMT_VOP3P)
		put_packed(o, in);
	if (in->f[ISA_F_CLAMP])
		put(o, " clamp");
	if (in->fmt == ISA_FMT_VINTERP) {
		if (opsel)
			put_list(o, "op_sel", opsel, 4);
		put(o, " wait_exp:%u", in->f[ISA_F_WAITEXP]);
	}
	put(o, "%s", omod[in->f[ISA_F_OMOD]]);
}

static void put_dpp16(struct out *o, const struct isa_dpp *d)
{
	static const char *const shift[] = { "shl", "shr", "ror" };
	uint32_t c = d->ctrl, n = c & 15;

	if (c < 0x100)
		put(o, " quad_perm:[%u,%u,%u,%u]", c & 3, c >> 2 & 3,
		    c >> 4 & 3, c >> 6 & 3);
	else if (c < 0x130 && n)
		put(o, " row_%s:%u", shift[(c >> 4) - 0x10], n);
	else if (c == 0x140)
		put(o, " row_mirror");
	else if (c == 0x141)
		put(o, " row_half_mirror");
	else if (c >> 4 == 0x15)
		put(o, " row_share:%u", n);
	else if (c >> 4 == 0x16)
		put(o, " row_xmask:%u", n);
	else
		put(o, " /* Invalid dpp_ctrl value */");
	put(o, " row_mask:0x%x bank_mask:0x%x", d->row_mask, d->bank_mask);
	if (d->bound_ctrl)
		put(o, " bound_ctrl:1");
}

static void put_dpp(struct out *o, const struct isa_inst *in)
{
	const struct isa_dpp *d = &in->dpp;

	if (in->form == ISA_FORM_PLAIN)
		return;
	if (in->form == ISA_FORM_DPP16) {
		put_dpp16(o, d);
	} else {
		put(o, " dpp8:[");
		for (int i = 0; i < 8; i++)
			put(o, "%s%u", i ? "," : "", d->sel >> (3 * i) & 7);
		put(o, "]");
	}
	if (d->fi)
		put(o, " fi:1");
}

static void put_cache(struct out *o, const struct isa_inst *in)
{
	put(o, "%s%s%s", in->f[ISA_F_GLC] ? " glc" : "",
	    in->f[ISA_F_SLC] ? " slc" : "", in->f[ISA_F_DLC] ? " dlc" : "");
}

static void put_memory(struct out *o, const struct isa_inst *in)
{
	const uint32_t *f = in->f;

	put_cache(o, in);
	if (in->fmt != ISA_FMT_MIMG) {
		put(o, "%s%s", f[ISA_F_TFE] ? " tfe" : "",
		    f[ISA_F_GDS] ? " gds" : "");
		return;
	}
	put(o, "%s%s%s%s%s",
	    f[ISA_F_R128] && in->op != ISA_image_bvh_intersect_ray &&
			    in->op != ISA_image_bvh64_intersect_ray ?
		    " r128" :
		    "",
	    f[ISA_F_A16] ? " a16" : "", f[ISA_F_TFE] ? " tfe" : "",
	    f[ISA_F_LWE] ? " lwe" : "", f[ISA_F_D16] ? " d16" : "");
}

static void put_image(struct out *o, const struct isa_inst *in)
{
	const uint32_t *f = in->f;

	/* Ray tracing has no sampling options. */
	if (in->fmt != ISA_FMT_MIMG || in->op == ISA_image_bvh_intersect_ray ||
	    in->op == ISA_image_bvh64_intersect_ray)
		return;
	if (f[ISA_F_DMASK])
		put(o, " dmask:0x%x", f[ISA_F_DMASK]);
	put(o, " dim:SQ_RSRC_IMG_%s%s", name_of(DIM, f[ISA_F_DIM]),
	    f[ISA_F_UNORM] ? " unorm" : "");
}

static void put_export(struct out *o, const struct isa_inst *in)
{
	if (in->fmt == ISA_FMT_EXP)
		put(o, "%s%s", in->f[ISA_F_DONE] ? " done" : "",
		    in->f[ISA_F_ROW] ? " row_en" : "");
	if (in->fmt == ISA_FMT_LDSDIR)
		put(o, " wait_vdst:%u", in->f[ISA_F_WAITVDST]);
}

/* ------------------------------------------------------- instruction ---- */

/* Scalar memory: "soffset", "immediate", or "soffset offset:immediate". */
static void put_soff(struct out *o, const struct isa_inst *in,
		     const struct isa_operand *op)
{
	int32_t imm = (int32_t)(in->f[ISA_F_OFFSET] << 11) >> 11;
	const char *sign = imm < 0 ? "-" : "";

	if (op->kind == ISA_K_OFF && imm) {
		put(o, "%s0x%x", sign, imm < 0 ? -imm : imm);
		return;
	}
	put_sgpr(o, in->f[ISA_F_SOFFSET], 1);
	if (imm)
		put(o, " offset:%s0x%x", sign, imm < 0 ? -imm : imm);
}

/* Operands that are suffixes: they follow without a comma. */
static bool put_suffix(struct out *o, const struct isa_inst *in,
		       const struct isa_operand *op)
{
	const uint32_t *f = in->f;
	const char *name;

	switch (op->slot) {
	case ISA_SLOT_OFF12:
		put(o, "%s%s", f[ISA_F_IDXEN] ? " idxen" : "",
		    f[ISA_F_OFFEN] ? " offen" : "");
		/* fall through */
	case ISA_SLOT_OFF13:
	case ISA_SLOT_OFF16:
		if (op->value)
			put(o, " offset:%d", (int32_t)op->value);
		return true;
	case ISA_SLOT_OFF2:
		if (f[ISA_F_OFFSET0])
			put(o, " offset0:%u", f[ISA_F_OFFSET0]);
		if (f[ISA_F_OFFSET1])
			put(o, " offset1:%u", f[ISA_F_OFFSET1]);
		return true;
	case ISA_SLOT_SWIZZLE:
		put_swizzle(o, op->value);
		return true;
	case ISA_SLOT_FORMAT:
		name = name_of(BUFFMT, op->value);
		if (!name)
			put(o, " format:%u", op->value);
		else if (op->value != 1) /* 8_UNORM goes without saying */
			put(o, " format:[BUF_FMT_%s]", name);
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
		put(o, "%d", (int32_t)op->value);
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
		put(o, "attr%u.%c", op->value >> 2, "xyzw"[op->value & 3]);
		break;
	default:
		put_source(o, in, op);
	}
}

static void put_operands(struct out *o, const struct isa_inst *in, int from,
			 int to)
{
	const char *sep = " ";

	for (int i = from; i < to; i++) {
		const struct isa_operand *op = &in->opnd[i];

		if (put_suffix(o, in, op))
			continue;
		put(o, "%s", sep);
		if (in->fmt == ISA_FMT_MIMG && in->f[ISA_F_NSA] &&
		    op->slot == ISA_SLOT_VADDR) {
			bool first = in->opnd[i - 1].slot != ISA_SLOT_VADDR;
			bool last = in->opnd[i + 1].slot != ISA_SLOT_VADDR;

			put(o, "%s", first ? "[" : "");
			put_operand(o, in, op);
			put(o, "%s", last ? "]" : "");
		} else {
			put_operand(o, in, op);
		}
		sep = ", ";
	}
}

static void put_name(struct out *o, const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	bool vop3 = in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VOP3SD ||
		    in->fmt == ISA_FMT_VOP3P;
	bool dpp = in->form != ISA_FORM_PLAIN;
	bool native = op->fmt == ISA_FMT_VOP3 || op->fmt == ISA_FMT_VOP3SD ||
		      op->fmt == ISA_FMT_VOP3P;

	put(o, "%s", op->name);
	if (!op->n_opnd) /* v_nop, v_pipeflush */
		return;
	if (vop3 && (!native || dpp))
		put(o, "_e64");
	if (dpp)
		put(o, "_dpp");
	else if (!vop3 && op->flags & ISA_E64)
		put(o, "_e32");
}

static void put_vopd(struct out *o, const struct isa_inst *in)
{
	const char *x = "", *y = "";

	isa_vopd_op(in->f[ISA_F_OP], false, &x);
	isa_vopd_op(in->f[ISA_F_OPY], true, &y);
	put(o, "%s", x);
	put_operands(o, in, 0, in->n_opnd_x);
	put(o, " :: %s", y);
	put_operands(o, in, in->n_opnd_x, in->n_opnd);
}

static void put_inst(struct out *o, const struct isa_inst *in)
{
	if (in->fmt == ISA_FMT_VOPD) {
		put_vopd(o, in);
		return;
	}
	put_name(o, in);
	if (in->fmt == ISA_FMT_EXP) {
		const char *name = name_of(EXPTGT, in->f[ISA_F_TARGET]);

		if (name)
			put(o, " %s", name);
		else
			put(o, " invalid_target_%u", in->f[ISA_F_TARGET]);
	}
	put_operands(o, in, 0, in->n_opnd);
	put_image(o, in);
	put_vop3(o, in);
	put_dpp(o, in);
	put_memory(o, in);
	put_export(o, in);
}

int isa_print(const struct isa_target *t, const struct isa_inst *in, char *out,
	      size_t size)
{
	struct out o = { out, size, 0 };

	(void)t;
	if (size)
		out[0] = 0;
	put_inst(&o, in);
	return o.len;
}

int isa_print_name(const struct isa_inst *in, char *out, size_t size)
{
	struct out o = { out, size, 0 };

	if (in->fmt == ISA_FMT_VOPD) {
		const char *x = "", *y = "";

		isa_vopd_op(in->f[ISA_F_OP], false, &x);
		isa_vopd_op(in->f[ISA_F_OPY], true, &y);
		put(&o, "%s :: %s", x, y);
	} else {
		put_name(&o, in);
	}
	return o.len;
}
