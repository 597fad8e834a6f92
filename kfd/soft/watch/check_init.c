/*
 * kfd/soft/watch/check_init.c - uninitialised values: from registers and
 * memory that nobody wrote, through arithmetic, to where they decide
 * something.
 *
 * A value may be undefined as long as nothing depends on it; compilers rely
 * on that.  So an instruction makes its result undefined if one of its sources
 * is, and only what reaches an address, a branch, EXEC or GPU memory is a
 * finding.  Vector registers are tracked by lane, scalar ones by bit, since
 * lane masks are built from parts.  Where the exact rule would need single bits
 * of lanes (16-bit halves), the value counts as initialised.
 */
#include <string.h>

#include "kfd/soft/watch/watch_int.h"

/* ------------------------------------------------------------- start ---- */

static int count_bits(uint32_t v)
{
	return __builtin_popcount(v);
}

/* SGPRs that the packet processor fills, by the descriptor's properties. */
static int user_sgprs(uint32_t props)
{
	return (props & AMD_PROP_PRIVATE_SEGMENT_BUFFER ? 4 : 0) +
	       2 * count_bits(props &
			      (AMD_PROP_DISPATCH_PTR | AMD_PROP_QUEUE_PTR |
			       AMD_PROP_KERNARG_PTR | AMD_PROP_DISPATCH_ID |
			       AMD_PROP_FLAT_SCRATCH_INIT)) +
	       (props & AMD_PROP_PRIVATE_SEGMENT_SIZE ? 1 : 0);
}

void init_wave(struct shadow *sh, struct shadow_wave *sw, struct soft_wave *w)
{
	const struct amd_kernel_descriptor *kd = &sh->l->kd;
	const struct isa_gen_info *gen = soft_gen(sh->l->q->card);
	const uint32_t rsrc2 = kd->compute_pgm_rsrc2;
	const uint32_t behind = gen->own_scratch ? 0 :
						   AMD_RSRC2_PRIVATE_SEGMENT;
	const uint32_t vgprs = gen->packed_ids ? 0 :
						 AMD_RSRC2_WORKITEM_ID(rsrc2);
	const int ids = count_bits(rsrc2 & (AMD_RSRC2_WORKGROUP_ID_X |
					    AMD_RSRC2_WORKGROUP_ID_Y |
					    AMD_RSRC2_WORKGROUP_ID_Z |
					    AMD_RSRC2_WORKGROUP_INFO | behind));
	const int first = (int)AMD_RSRC2_USER_SGPRS(rsrc2);

	(void)w;
	for (int i = 0; i < user_sgprs(kd->kernel_code_properties); i++)
		sw->sgpr[i] = UINT32_MAX;
	for (int i = first; i < first + ids; i++)
		sw->sgpr[i] = UINT32_MAX;
	for (int i = ISA_R_TTMP0; i <= ISA_R_NULL; i++)
		sw->sgpr[i] = UINT32_MAX;
	sw->sgpr[ISA_R_EXEC_LO] = sw->sgpr[ISA_R_EXEC_HI] = UINT32_MAX;
	for (uint32_t i = 0; i <= vgprs; i++)
		sw->vgpr[0][i] = sw->vgpr[1][i] = UINT32_MAX;
	for (uint16_t i = 0; i < 256; i++)
		sw->vorigin[i] =
			(struct origin){ .kind = ORIGIN_VGPR, .reg = i };
	for (uint16_t i = 0; i < 128; i++)
		sw->sorigin[i] =
			(struct origin){ .kind = ORIGIN_SGPR, .reg = i };
	sw->scc_origin.kind = ORIGIN_SGPR;
	sw->scc_origin.reg = ISA_R_SCC;
}

/* ------------------------------------------------------------- sinks ---- */

static void print_origin(const struct actor *a, const struct origin *o,
			 struct buf *out)
{
	switch (o->kind) {
	case ORIGIN_VGPR:
		buf_printf(out, "v%u, which nobody wrote", o->reg);
		return;
	case ORIGIN_SGPR:
		if (o->reg == ISA_R_SCC)
			buf_adds(out, "SCC, which nobody wrote");
		else if (o->reg == ISA_R_VCC_LO || o->reg == ISA_R_VCC_HI)
			buf_adds(out, "VCC, which nobody wrote");
		else if (o->reg == ISA_R_M0)
			buf_adds(out, "M0, which nobody wrote");
		else
			buf_printf(out, "s%u, which nobody wrote", o->reg);
		return;
	case ORIGIN_LOAD:
		buf_printf(out,
			   "memory at 0x%llx%s, which nobody wrote, "
			   "loaded by:\n  ",
			   (unsigned long long)o->at,
			   o->space == SOFT_SPACE_LDS	  ? " of LDS" :
			   o->space == SOFT_SPACE_SCRATCH ? " of scratch" :
							    "");
		check_where(a->t, o->site, out);
		return;
	case ORIGIN_NONE:
		break;
	}
	buf_adds(out, "a value that is not initialised");
}

void check_uninit(struct actor *a, int lane, const char *what,
		  const struct origin *o)
{
	struct buf from = { 0 };

	print_origin(a, o, &from);
	check_report(a, CHECK_UNINIT, lane,
		     o->site ? o->site->pc : (uint64_t)o->kind << 16 | o->reg,
		     "%s depends on %s", what, from.data);
	buf_fini(&from);
}

/* Vector registers that decide something, in the active lanes. */
static void sink_vgpr(struct actor *a, int reg, int n, const char *what)
{
	for (int r = reg; r < reg + n && r < 256; r++)
		for (int h = 0; h < soft_halves(a->w); h++) {
			uint32_t *m = &a->sw->vgpr[h][r];
			const uint32_t bad = soft_exec(a->w, h) & ~*m;

			if (!bad)
				continue;
			check_uninit(a, h * SOFT_LANES + __builtin_ctz(bad),
				     what, &a->sw->vorigin[r]);
			*m |= bad;
		}
}

static void sink_sgpr(struct actor *a, int reg, int n, const char *what)
{
	for (int r = reg; r < reg + n && r < 128; r++) {
		if (a->sw->sgpr[r] == UINT32_MAX)
			continue;
		check_uninit(a, -1, what, &a->sw->sorigin[r]);
		a->sw->sgpr[r] = UINT32_MAX;
	}
}

/* The registers that make up a memory instruction's address. */
static void sink_address(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];

		switch (o->slot) {
		case ISA_SLOT_SBASE:
		case ISA_SLOT_SOFF:
		case ISA_SLOT_SADDR:
		case ISA_SLOT_SRSRC:
		case ISA_SLOT_SOFFSET:
		case ISA_SLOT_VADDR:
			break;
		default:
			if (o->kind != ISA_K_VGPR || a->s->kind != SITE_LDS ||
			    o->role & ISA_DST || o->reg != in->f[ISA_F_ADDR] ||
			    i > 1)
				continue;
		}
		if (o->kind == ISA_K_VGPR)
			sink_vgpr(a, o->reg, o->dwords, "the address");
		else if (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL)
			sink_sgpr(a, o->reg, o->dwords, "the address");
	}
}

static void sink_branch(struct actor *a)
{
	const int n = soft_halves(a->w);
	struct shadow_wave *sw = a->sw;

	switch (a->s->u.in.op) {
	case ISA_s_cbranch_scc0:
	case ISA_s_cbranch_scc1:
		if (!sw->scc)
			check_uninit(a, -1, "the branch", &sw->scc_origin);
		sw->scc = true;
		return;
	case ISA_s_cbranch_vccz:
	case ISA_s_cbranch_vccnz:
		sink_sgpr(a, ISA_R_VCC_LO, n, "the branch");
		return;
	case ISA_s_setpc_b64:
		sink_sgpr(a, a->s->u.in.opnd[0].reg, 2, "the branch");
		return;
	case ISA_s_swappc_b64:
		sink_sgpr(a, a->s->u.in.opnd[1].reg, 2, "the branch");
		return;
	}
}

void check_values(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;
	const uint32_t *f = in->f;

	switch (a->s->kind) {
	case SITE_SMEM:
	case SITE_FLAT:
	case SITE_BUFFER:
	case SITE_LDS:
		sink_address(a);
		return;
	case SITE_LANES:
		if (in->op == ISA_ds_swizzle_b32)
			check_permute(a, (int)f[ISA_F_ADDR], (int)f[ISA_F_VDST],
				      -1);
		else
			check_permute(a, (int)f[ISA_F_DATA0],
				      (int)f[ISA_F_VDST], (int)f[ISA_F_ADDR]);
		return;
	case SITE_IMAGE: /* what nobody wrote in memory is not seen */
	case SITE_ALU:
		break;
	}
	switch (in->fmt) {
	case ISA_FMT_SOPP:
		sink_branch(a);
		return;
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
		sink_branch(a);
		check_scalar(a);
		return;
	case ISA_FMT_SMEM:
	case ISA_FMT_DS:
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		return;
	}
	check_vector(a);
}
