/*
 * isa/text/print_mods.c - modifiers after the operands: op_sel and its like,
 * DPP, cache bits, options of images and exports.
 */
#include "base/base.h"
#include "isa/text/print_int.h"

/* Packed formats name their modifiers at the end of the line. */
bool isa_prints_mods_inline(const struct isa_inst *in)
{
	return in->fmt != ISA_FMT_VOP3P ||
	       isa_op_info(in->op)->opnd[1].type == ISA_T_MIX;
}

/* The list after " name:": "[0,1,1]", bit 0 first. */
static void put_list(struct out *o, const char *name, uint32_t bits, int n)
{
	add_str(o, name);
	for (int i = 0; i < n; i++) {
		add_char(o, i ? ',' : '[');
		add_char(o, '0' + (bits >> i & 1));
	}
	add_char(o, ']');
}

static void put_packed(struct out *o, const struct isa_inst *in)
{
	const uint32_t *f = in->f;
	int n = isa_op_sources(isa_op_info(in->op));
	uint32_t all = (1u << n) - 1;
	uint32_t hi = (f[ISA_F_OPSEL_HI] | f[ISA_F_OPSEL_HI2] << 2) & all;
	bool mix = isa_prints_mods_inline(in);

	if (isa_inst_has_fixed_mods(in)) {
		if (f[ISA_F_OPSEL]) {
			ADD(o, " index_key:");
			add_dec(o, f[ISA_F_OPSEL]);
		}
		hi = all;
	} else if (f[ISA_F_OPSEL])
		put_list(o, " op_sel:", f[ISA_F_OPSEL], n);
	if (hi != (mix ? 0 : all) && !isa_inst_has_whole_matrix(in))
		put_list(o, " op_sel_hi:", hi, n);
	if (mix)
		return;
	if (f[ISA_F_NEG])
		put_list(o, " neg_lo:", f[ISA_F_NEG], n);
	if (f[ISA_F_NEG_HI])
		put_list(o, " neg_hi:", f[ISA_F_NEG_HI], n);
}

/* The op_sel bits that no register's name says. */
static uint32_t unnamed_halves(const struct isa_inst *in, uint32_t bits)
{
	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *op = &in->opnd[i];

		if (!isa_prints_half(in, op))
			continue;
		if (op->role & ISA_DST)
			bits &= ~8u;
		else if (op->slot >= ISA_SLOT_S0 && op->slot <= ISA_SLOT_S2)
			bits &= ~(1u << (op->slot - ISA_SLOT_S0));
		else if (op->slot >= ISA_SLOT_S0V && op->slot <= ISA_SLOT_S2V)
			bits &= ~(1u << (op->slot - ISA_SLOT_S0V));
	}
	return bits;
}

/*
 * op_sel of the sources, then of a vector destination; one that is also read
 * counts as the third source.
 */
static void put_opsel(struct out *o, const struct isa_inst *in)
{
	uint32_t bits = isa_inst_opsel(in);
	const struct isa_op_info *op = isa_op_info(in->op);
	int n = op->flags & ISA_RD && op->fmt != ISA_FMT_VOP3 ?
			3 :
			isa_op_sources(op);
	int byte = isa_inst_byte_sel(in);
	bool to_vgpr = in->opnd[0].slot == ISA_SLOT_D &&
		       op->opnd[0].slot == ISA_SLOT_D;

	if (o->true16)
		bits = unnamed_halves(in, bits);
	if (byte > 0) {
		ADD(o, " byte_sel:");
		add_dec(o, byte);
	}
	if (!bits || byte >= 0)
		return;
	if (in->op == ISA_v_permlane16_b32 ||
	    in->op == ISA_v_permlanex16_b32 ||
	    in->op == ISA_v_permlane16_var_b32 ||
	    in->op == ISA_v_permlanex16_var_b32)
		put_list(o, " op_sel:", bits, 2);
	else if (to_vgpr)
		put_list(o, " op_sel:",
			 (bits & ((1u << n) - 1)) | bits >> 3 << n, n + 1);
	else
		put_list(o, " op_sel:", bits, n);
}

static const char *const omods[] = { "", " mul:2", " mul:4", " div:2" };

static void put_vop3(struct out *o, const struct isa_inst *in)
{
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
	add_str(o, omods[in->f[ISA_F_OMOD]]);
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

static void put_part(struct out *o, const char *name, int part)
{
	static const char *const parts[] = { "BYTE_0", "BYTE_1", "BYTE_2",
					     "BYTE_3", "WORD_0", "WORD_1",
					     "DWORD" };

	add_str(o, name);
	add_str(o, parts[part]);
}

static void put_sdwa(struct out *o, const struct isa_inst *in)
{
	static const char *const unused[] = { "PAD", "SEXT", "PRESERVE" };
	const struct isa_sdwa *s = &in->sdwa;

	add_if(o, s->clamp, " clamp");
	add_str(o, omods[s->omod]);
	if (in->fmt != ISA_FMT_VOPC) {
		put_part(o, " dst_sel:", s->dst_sel);
		ADD(o, " dst_unused:UNUSED_");
		add_str(o, unused[s->dst_unused]);
	}
	put_part(o, " src0_sel:", s->sel[0]);
	if (in->fmt != ISA_FMT_VOP1)
		put_part(o, " src1_sel:", s->sel[1]);
}

static void put_dpp(struct out *o, const struct isa_inst *in)
{
	const struct isa_dpp *d = &in->dpp;

	if (in->form == ISA_FORM_PLAIN)
		return;
	if (in->form == ISA_FORM_SDWA) {
		put_sdwa(o, in);
		return;
	}
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

/* Temporal hint and scope of gfx12; 0 is the default of both. */
static void put_temporal(struct out *o, const struct isa_inst *in)
{
	static const char *const hint[] = {
		"", "NT", "HT", NULL, "NT_RT", "RT_NT", "NT_HT", "NT_WB"
	};
	static const char *const scope[] = { "", " scope:SCOPE_SE",
					     " scope:SCOPE_DEV",
					     " scope:SCOPE_SYS" };
	uint32_t flags = isa_op_info(in->op)->flags, s = in->f[ISA_F_SCOPE];
	uint32_t th = in->f[ISA_F_GLC] | in->f[ISA_F_TH] << 1;
	bool store = flags & ISA_STORE;

	if (in->fmt == ISA_FMT_SMEM && !(flags & ISA_LOAD))
		return;

	if (!th) {
		add_str(o, scope[s]);
		return;
	}
	ADD(o, " th:");
	if (flags & ISA_ATOMIC && th >= 4 && s < 2) {
		ADD(o, "TH_ATOMIC_");
		add_hex(o, th);
	} else if (flags & ISA_ATOMIC) {
		ADD(o, "TH_ATOMIC_");
		if (th >= 4)
			add_str(o, th & 2 ? "CASCADE_NT" : "CASCADE_RT");
		else
			add_str(o, th == 1 ? "RETURN" :
				   th == 2 ? "NT" : "NT_RETURN");
	} else if (!store && th == 7) {
		add_hex(o, th);
	} else {
		add_str(o, store ? "TH_STORE_" : "TH_LOAD_");
		add_str(o, hint[th] ? hint[th] :
			   s == 3   ? "BYPASS" :
			   store    ? "RT_WB" : "LU");
	}
	add_str(o, scope[s]);
}

static void put_cache(struct out *o, const struct isa_inst *in)
{
	if (in->gen == ISA_GFX12) {
		put_temporal(o, in);
		return;
	}
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
	add_str(o, isa_number_name(DIM, f[ISA_F_DIM]));
	add_if(o, f[ISA_F_UNORM], " unorm");
	put_cache(o, in);
	add_if(o, f[ISA_F_R128], " r128");
	add_if(o, f[ISA_F_A16], " a16");
	add_if(o, f[ISA_F_TFE], " tfe");
	add_if(o, f[ISA_F_LWE], " lwe");
	add_if(o, f[ISA_F_D16], " d16");
}

/* Sources that the row does not have; the chip does not look at them. */
static void put_unused(struct out *o, const struct isa_inst *in)
{
	const unsigned has = isa_op_source_fields(isa_op_info(in->op));

	if (in->f[ISA_F_SRC1] && !(has & 2)) {
		ADD(o, " unused_src1:");
		add_dec(o, in->f[ISA_F_SRC1]);
	}
	if (in->f[ISA_F_SRC2] && !(has & 4)) {
		ADD(o, " unused_src2:");
		add_dec(o, in->f[ISA_F_SRC2]);
	}
}

/* Modifiers after the operands, by encoding. */
void isa_print_options(struct out *o, const struct isa_inst *in)
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
		if (in->has_unused)
			put_unused(o, in);
		break;
	case ISA_FMT_MIMG:
		put_image(o, in);
		break;
	case ISA_FMT_EXP:
		add_if(o, f[ISA_F_DONE], " done");
		add_if(o, f[ISA_F_ROW], " row_en");
		break;
	case ISA_FMT_LDSDIR:
		add_str(o, in->gen == ISA_GFX12 ? " wait_va_vdst:" :
						  " wait_vdst:");
		add_dec(o, f[ISA_F_WAITVDST]);
		if (in->gen == ISA_GFX12) {
			ADD(o, " wait_vm_vsrc:");
			add_dec(o, f[ISA_F_WAITVSRC]);
		}
		break;
	case ISA_FMT_SMEM:
		/* Probes and clocks of gfx10 ignore the bits. */
		if (in->gen < ISA_GFX11 &&
		    !(isa_op_info(in->op)->flags &
		      (ISA_LOAD | ISA_STORE | ISA_ATOMIC)))
			break;
		/* fall through */
	case ISA_FMT_DS:
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		if (!isa_op_info(in->op)->n_opnd && in->gen != ISA_GFX12)
			break;
		put_cache(o, in);
		add_if(o, f[ISA_F_TFE], " tfe");
		add_if(o, f[ISA_F_GDS], " gds");
		/* In gfx11 the mnemonic says it. */
		add_if(o, in->gen < ISA_GFX11 && in->fmt != ISA_FMT_MTBUF &&
			       f[ISA_F_OPHI], " lds");
		break;
	}
}
