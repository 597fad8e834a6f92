/*
 * isa/text/parse_check.c - what the decoder accepts but text may not say.
 *
 * Machine code can name more scalar registers than an instruction can read,
 * or registers of one bank for both halves of a VOPD; the decoder shows such
 * code as it is.  Writing it is an error.
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

/* ------------------------------------------------------- constant bus ---- */

/* Distinct scalar values that vector operands read. */
struct bus {
	uint16_t reg[ISA_MAX_OPND + 1];
	uint8_t dwords[ISA_MAX_OPND + 1];
	int n;
	int literal_dwords; /* of the operand that has the literal, 0 = none */
};

static void bus_add(struct bus *b, uint16_t reg, int dwords)
{
	for (int i = 0; i < b->n; i++)
		if (b->reg[i] == reg && b->dwords[i] == dwords)
			return;
	b->reg[b->n] = reg;
	b->dwords[b->n++] = dwords;
}

static bool is_vop3_word(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VOP3SD ||
	       in->fmt == ISA_FMT_VOP3P;
}

/* A 64-bit shift has one way in, everything else two (RDNA3 ISA 7.1). */
static int bus_limit(enum isa_op op)
{
	return op == ISA_v_lshlrev_b64 || op == ISA_v_lshlrev_b64__vop2 ||
			       op == ISA_v_lshrrev_b64 ||
			       op == ISA_v_ashrrev_i64 ?
		       1 :
		       2;
}

static const char *check_bus(const struct parser *ps)
{
	const struct isa_inst *in = ps->in;
	struct bus b = { .n = 0 };
	int literals = 0;

	if (!isa_fmt_is_valu(in->fmt))
		return NULL;
	if (in->op == ISA_v_div_fmas_f32 || in->op == ISA_v_div_fmas_f64)
		bus_add(&b, ISA_R_VCC_LO, 2);
	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];
		int bits = isa_type_info(o->type)->bits;

		if (!(o->role & ISA_SRC))
			continue;
		/* VCC that is not written counts beside vcc_lo that is. */
		if (o->kind == ISA_K_SPECIAL && o->reg != ISA_R_LDS_DIRECT)
			bus_add(&b, o->reg, 0);
		if (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL)
			bus_add(&b, o->reg,
				o->slot == ISA_SLOT_CI && !is_vop3_word(in) ?
					2 :
					o->dwords);
		/* Literals of two widths count twice. */
		if (o->kind == ISA_K_LITERAL) {
			int dwords = bits == 64 ? 2 : 1;

			literals += dwords != b.literal_dwords;
			b.literal_dwords = dwords;
		}
	}
	if (b.n + literals > bus_limit(in->op))
		return "too many scalar values for one instruction";
	return NULL;
}

/* --------------------------------------------------------------- VOPD ---- */

/*
 * The VGPR that half X or Y reads through port 0, 1 or 2, -1 if there is none.
 * What fmac and dot2acc add to is their third source, and fmamk has its
 * literal where others have the second.
 */
static int dual_vgpr(const struct isa_inst *in, bool y, int port)
{
	int i = y ? in->n_opnd_x : 0, end = y ? in->n_opnd : in->n_opnd_x;
	bool mk = (y ? in->op_y : in->op) == ISA_v_fmamk_f32;

	for (; i < end; i++) {
		const struct isa_operand *o = &in->opnd[i];
		int at = -1;

		if (o->slot == ISA_SLOT_S0)
			at = 0;
		else if (o->slot == ISA_SLOT_S1)
			at = mk ? 2 : 1;
		else if (o->slot == ISA_SLOT_D && o->role & ISA_SRC)
			at = 2;
		if (at == port)
			return o->kind == ISA_K_VGPR ? o->reg : -1;
	}
	return -1;
}

static const char *check_dual(const struct isa_inst *in)
{
	static const struct {
		uint8_t banks;
		const char *why;
	} port[] = {
		{ 4, "the first sources of both halves are in one VGPR bank "
		     "(number mod 4)" },
		{ 4, "the second sources of both halves are in one VGPR bank "
		     "(number mod 4)" },
		{ 2, "the third sources of both halves are in one VGPR bank "
		     "(number mod 2)" },
	};

	/* Two moves of gfx12 may read one bank. */
	if (in->gen == ISA_GFX12 && in->op == ISA_v_mov_b32 &&
	    in->op_y == ISA_v_mov_b32)
		return NULL;
	for (int i = 0; in->fmt == ISA_FMT_VOPD && i < 3; i++) {
		int x = dual_vgpr(in, false, i), y = dual_vgpr(in, true, i);

		if (x >= 0 && y >= 0 && x % port[i].banks == y % port[i].banks)
			return port[i].why;
	}
	return NULL;
}

/* ------------------------------------------------------------- memory ---- */

static const char *check_scalar_memory(const struct parser *ps)
{
	const struct isa_inst *in = ps->in;

	if (in->fmt == ISA_FMT_SMEM && in->gen != ISA_GFX12 &&
	    in->f[ISA_F_OFFSET] >> 20 && strstr(ps->op->name, "_buffer"))
		return "a buffer offset is 0 to 0xfffff";
	return NULL;
}

static const char *check_buffer(const struct parser *ps)
{
	const struct isa_inst *in = ps->in;

	if (in->fmt == ISA_FMT_MUBUF && in->f[ISA_F_TFE] &&
	    ps->op->flags & ISA_STORE)
		return "tfe means nothing to a store";
	return NULL;
}

/* --------------------------------------------------------------- image ---- */

/* What is written has the widths that the decoder computes. */
static const char *check_image_widths(const struct parser *ps)
{
	const struct isa_inst *in = ps->in;
	const struct arg *a = &ps->arg[1];
	struct arg data;
	int n = 0;

	isa_lex_tuple(ps, &ps->arg[0], &data);
	if (data.n != in->opnd[0].dwords)
		return "data registers do not match dmask, d16 and tfe";
	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];
		const struct arg *one = a;

		if (o->slot != ISA_SLOT_VADDR)
			continue;
		if (a->kind == ARG_LIST) {
			if (n >= a->list_n)
				return "too few image addresses for dim and "
				       "a16";
			one = &ps->list[a->list + n];
		}
		n++;
		/* Eight stand for five to seven, which had no type once. */
		if (one->n != o->dwords &&
		    !(one->n == 8 && a->kind != ARG_LIST && o->dwords >= 5 &&
		      o->dwords <= 7))
			return "address registers do not match dim and a16";
	}
	if (a->kind == ARG_LIST && n != a->list_n)
		return "too many image addresses for dim and a16";
	return NULL;
}

static bool atomic_dmask(const struct isa_inst *in, const char *name)
{
	uint32_t dmask = in->f[ISA_F_DMASK];

	if (dmask == (strstr(name, "cmpswap") ? 1 : 15))
		return in->f[ISA_F_TFE];
	return dmask == 1 || dmask == 3 || dmask == 15;
}

/*
 * Where coordinates stand beside other addresses there are three at most; but
 * in a row of four or eight there is room for a fourth.
 */
static bool has_dim(const struct parser *ps, const struct isa_inst *in,
		    const char *name)
{
	bool beside = ps->op->flags & ISA_SAMPLER || strstr(name, "_mip");

	if (in->f[ISA_F_DIM] != 7 || in->f[ISA_F_A16] || !beside ||
	    strstr(name, "_d_") || !strcmp(name + strlen(name) - 2, "_d"))
		return true;
	return !in->f[ISA_F_NSA] &&
	       (in->opnd[1].dwords == 4 || in->opnd[1].dwords == 8);
}

static const char *check_image(const struct parser *ps)
{
	const struct isa_inst *in = ps->in;
	const char *name = ps->op->name;
	uint32_t dmask = in->f[ISA_F_DMASK];
	bool bvh;

	if (in->fmt != ISA_FMT_MIMG)
		return NULL;
	bvh = strstr(name, "bvh");
	if (!bvh) {
		if (!isa_has_mod(ps, MD_DIM))
			return "dim is missing";
		if ((strstr(name, "gather4") || strstr(name, "msaa")) &&
		    __builtin_popcount(dmask) != 1)
			return "this instruction wants one bit in dmask";
		if (strstr(name, "gather4") && in->f[ISA_F_TFE] &&
		    in->f[ISA_F_D16])
			return "gather4 has not both tfe and d16";
		if (strstr(name, "atomic") && !atomic_dmask(in, name))
			return "an atomic's dmask is 1 or 3, of compare and "
			       "swap 3 or 15";
		if (!has_dim(ps, in, name))
			return "this instruction has not this dim";
		if (strstr(name, "msaa") && in->f[ISA_F_DIM] < 6)
			return "this instruction wants a multisampled dim";
	}
	for (int i = 0; bvh && i < ps->n_mods; i++)
		if (ps->mod[i].id != MD_A16)
			return "modifier not allowed here";
	return check_image_widths(ps);
}

/* ---------------------------------------------------------------- all ---- */

/* The hint NT_RETURN is the number that means something else to the system. */
static const char *check_hint(const struct parser *ps)
{
	const uint32_t *f = ps->in->f;

	return ps->op->flags & ISA_ATOMIC && f[ISA_F_GLC] && f[ISA_F_TH] == 1 &&
			       f[ISA_F_SCOPE] == 3 ?
		       "th:TH_ATOMIC_NT_RETURN wants a scope below SCOPE_SYS" :
		       NULL;
}

static const char *check_special(const struct parser *ps)
{
	const struct isa_inst *in = ps->in;

	switch (in->op) {
	case ISA_s_barrier_signal:
	case ISA_s_barrier_signal_isfirst:
	case ISA_s_get_barrier_state:
	case ISA_s_barrier_init:
	case ISA_s_barrier_join:
	case ISA_s_wakeup_barrier:
		if ((in->f[ISA_F_SSRC0] < 128 || in->f[ISA_F_SSRC0] > 208) &&
		    in->f[ISA_F_SSRC0] != ISA_R_M0)
			return "a barrier is named by m0 or a constant";
		break;
	case ISA_s_waitcnt_vscnt:
	case ISA_s_waitcnt_vmcnt:
	case ISA_s_waitcnt_expcnt:
	case ISA_s_waitcnt_lgkmcnt:
		if (in->f[ISA_F_SDST] != ISA_R_NULL && in->gen >= ISA_GFX11)
			return "the register of this wait must be null";
		break;
	case ISA_v_writelane_b32:
		if (in->f[ISA_F_SRC1] == ISA_R_LITERAL)
			return "the lane cannot be a literal";
		break;
	case ISA_v_permlane16_b32:
	case ISA_v_permlanex16_b32:
		if (in->f[ISA_F_OPSEL] & ~3u)
			return "op_sel has two bits here: fetch-inactive and "
			       "bound-control";
		break;
	}
	return NULL;
}

/* Operations that take their operands the other way round. */
static bool is_reversed(const struct isa_op_info *op)
{
	return strstr(op->name, "rev_") && op->fmt != ISA_FMT_VOP1;
}

/* gfx10_3's value of LDS is the first source, and not of every instruction. */
static const char *check_lds_direct(const struct parser *ps)
{
	const struct isa_inst *in = ps->in;

	for (int i = 0; in->gen < ISA_GFX11 && i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->kind != ISA_K_SPECIAL || o->reg != ISA_R_LDS_DIRECT)
			continue;
		if (is_reversed(ps->op) || in->form == ISA_FORM_SDWA)
			return "src_lds_direct not allowed here";
		if (o->slot != ISA_SLOT_S0)
			return "src_lds_direct is a first source only";
	}
	return NULL;
}

const char *isa_parse_check(const struct parser *ps)
{
	const char *why = check_bus(ps);

	if (!why)
		why = check_lds_direct(ps);
	if (!why)
		why = check_dual(ps->in);
	if (!why)
		why = check_scalar_memory(ps);
	if (!why)
		why = check_buffer(ps);
	if (!why)
		why = check_image(ps);
	if (!why)
		why = check_hint(ps);
	return why ? why : check_special(ps);
}
