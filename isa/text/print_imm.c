/*
 * isa/text/print_imm.c - immediates with a meaning: wait counts, delays,
 * messages, hardware registers, versions, swizzles, and names of numbers.
 */
#include "base/base.h"
#include "isa/text/print_int.h"

const char *isa_number_name(enum isa_name_kind kind, uint32_t number)
{
	static const char *const names[NAME_KINDS][NAME_NUMBERS] = {
#define NAME(kind, number, name) [kind][number] = name,
#include "isa/tables/names.def"
#undef NAME
	};

	return number < NAME_NUMBERS ? names[kind][number] : NULL;
}

/* "name(value)", after a space unless it is the first. */
static void put_count(struct out *o, bool *first, const char *name, uint32_t v)
{
	add_if(o, !*first, " ");
	*first = false;
	add_str(o, name);
	add_char(o, '(');
	add_dec(o, v);
	add_char(o, ')');
}

static void put_waitcnt(struct out *o, const struct isa_inst *in, uint32_t v)
{
	const struct isa_waits w = isa_waits_of(in->gen, v);
	const bool all = w.vm == ISA_WAITS_VM && w.lgkm == ISA_WAITS_LGKM &&
			 w.exp == ISA_WAITS_EXP;
	bool first = true;

	if (all || w.vm != ISA_WAITS_VM)
		put_count(o, &first, "vmcnt", w.vm);
	if (all || w.exp != ISA_WAITS_EXP)
		put_count(o, &first, "expcnt", w.exp);
	if (all || w.lgkm != ISA_WAITS_LGKM)
		put_count(o, &first, "lgkmcnt", w.lgkm);
}

const struct imm_item isa_delay_items[DELAY_ITEMS] = {
	{ "instid0", 0, 4, INSTID },
	{ "instskip", 4, 3, SKIP },
	{ "instid1", 7, 4, INSTID },
};
const struct imm_item isa_depctr_items[DEPCTR_ITEMS] = {
	{ "depctr_hold_cnt", 7, 1, -1 }, { "depctr_sa_sdst", 0, 1, -1 },
	{ "depctr_va_vdst", 12, 4, -1 }, { "depctr_va_sdst", 9, 3, -1 },
	{ "depctr_va_ssrc", 8, 1, -1 },	 { "depctr_va_vcc", 1, 1, -1 },
	{ "depctr_vm_vsrc", 2, 3, -1 },
};

static void put_depctr(struct out *o, const struct isa_inst *in, uint32_t v)
{
	const struct imm_item *part = isa_depctr_items;
	const int from = isa_depctr_first(in->gen);
	uint32_t known = 0;
	int at_default = from;
	bool first = true;

	for (int i = from; i < DEPCTR_ITEMS; i++) {
		uint32_t max = (1u << part[i].width) - 1;

		known |= max << part[i].low;
		at_default += (v >> part[i].low & max) == max;
	}
	if (v & ~known) {
		add_hex(o, v);
		return;
	}
	for (int i = from; i < DEPCTR_ITEMS; i++) {
		uint32_t max = (1u << part[i].width) - 1;
		uint32_t x = v >> part[i].low & max;

		if (x != max || at_default == DEPCTR_ITEMS)
			put_count(o, &first, part[i].name, x);
	}
}

static void put_delay(struct out *o, uint32_t v)
{
	const struct imm_item *part = isa_delay_items;
	static const char *const bad[] = {
		[INSTID] = "/* invalid instid value */",
		[SKIP] = "/* invalid instskip value */",
	};
	const char *sep = "";

	for (int i = 0; i < DELAY_ITEMS; i++) {
		uint32_t x = v >> part[i].low & ((1u << part[i].width) - 1);
		const char *name = isa_number_name(part[i].names, x);

		if (!x)
			continue;
		add_str(o, sep);
		add_str(o, part[i].name);
		add_char(o, '(');
		add_str(o, name ? name : bad[part[i].names]);
		add_char(o, ')');
		sep = " | ";
	}
	if (!*sep)
		add_char(o, '0');
}

/*
 * gfx10_3: the message in bits 0 to 3, an operation in 4 to 6 and a stream in 8
 * and 9, which three messages have.
 */
static void put_msg10(struct out *o, uint32_t v)
{
	uint32_t id = v & 15, op = v >> 4 & 7, stream = v >> 8 & 3;
	const char *name = isa_number_name(MSG10, id), *op_name = NULL;
	bool gs = id == 2 || id == 3, sys = id == 15;

	if (v & ~0x37fu) {
		add_dec(o, v);
		return;
	}
	if (gs && (op || id == 3) && (op || !stream))
		op_name = isa_number_name(GSOP10, op);
	else if (sys && !stream)
		op_name = isa_number_name(SYSOP10, op);
	ADD(o, "sendmsg(");
	if (name && (op_name || (!gs && !sys && !op && !stream))) {
		ADD(o, "MSG_");
		add_str(o, name);
		add_if(o, op_name, gs ? ", GS_OP_" : ", SYSMSG_OP_");
		add_if(o, op_name, op_name);
		if (gs && op) {
			ADD(o, ", ");
			add_dec(o, stream);
		}
	} else {
		add_dec(o, id);
		ADD(o, ", ");
		add_dec(o, op);
		ADD(o, ", ");
		add_dec(o, stream);
	}
	add_char(o, ')');
}

static void put_msg(struct out *o, const struct isa_inst *in, uint32_t v)
{
	const char *name =
		isa_number_name(in->gen == ISA_GFX12 ? MSG12 : MSG, v);

	if (in->gen < ISA_GFX11) {
		put_msg10(o, v);
		return;
	}
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

static void put_hwreg(struct out *o, const struct isa_inst *in, uint32_t v)
{
	uint32_t id = v & 63, low = v >> 6 & 31, size = (v >> 11 & 31) + 1;
	const char *name = isa_hwreg_known(in->gen, id) ?
				   isa_number_name(isa_hwreg_names(in->gen),
						   id) :
				   NULL;

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
	const char *name = isa_number_name(UCVERSION, v & 0xff);
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
	case ISA_s_barrier_wait:
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

void isa_print_swizzle(struct out *o, uint32_t v)
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

void isa_print_immediate(struct out *o, const struct isa_inst *in,
			 const struct isa_operand *op)
{
	switch (op->slot) {
	case ISA_SLOT_IMM:
		put_imm(o, in, op->value);
		break;
	case ISA_SLOT_REL:
		add_dec(o, op->value & 0xffff);
		break;
	case ISA_SLOT_MSG:
		put_msg(o, in, op->value);
		break;
	case ISA_SLOT_HWREG:
		put_hwreg(o, in, op->value);
		break;
	case ISA_SLOT_WAITCNT:
		put_waitcnt(o, in, op->value);
		break;
	case ISA_SLOT_DELAY:
		put_delay(o, op->value);
		break;
	case ISA_SLOT_DEPCTR:
		put_depctr(o, in, op->value);
		break;
	case ISA_SLOT_ATTR:
		ADD(o, "attr");
		add_dec(o, op->value >> 2);
		add_char(o, '.');
		add_char(o, "xyzw"[op->value & 3]);
		break;
	}
}
