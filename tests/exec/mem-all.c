/*
 * No scalar or memory instruction of gfx1100 is without a handler, but for
 * graphics and the global data share.
 */
#include "kfd/soft/exec/exec.h"
#include "kfd/soft/exec/mem.h"
#include "tests/tap.h"

static soft_handler *find(const struct isa_inst *in)
{
	const void *op;

	switch (in->fmt) {
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
	case ISA_FMT_SOPP:
		return soft_control_handler(in) ? soft_control_handler(in) :
						  soft_salu_handler(in, &op);
	case ISA_FMT_SMEM:
		return soft_smem_handler(in, &op);
	case ISA_FMT_DS:
		return soft_lds_handler(in, &op);
	}
	return soft_vmem_handler(in, &op);
}

static bool mine(int fmt)
{
	switch (fmt) {
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
	case ISA_FMT_SOPP:
	case ISA_FMT_SMEM:
	case ISA_FMT_DS:
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		return true;
	}
	return false;
}

int main(void)
{
	int n = 0;

	for (int i = 1; i < ISA_OP_COUNT; i++) {
		const struct isa_op_info *op = isa_op_info((enum isa_op)i);
		struct isa_inst in = { .op = (uint16_t)i, .fmt = op->fmt };
		bool none = op->flags & (ISA_GFX | ISA_GDSONLY);

		if (!mine(op->fmt) || op->opcode[ISA_GFX11] < 0)
			continue;
		in.f[ISA_F_GDS] = !!(op->flags & ISA_GDSONLY);
		ok(!find(&in) == none, "%s is %s", op->name,
		   none ? "refused" : "executed");
		n++;
	}
	ok(n > 500, "%d instructions were looked at", n);
	return plan_done();
}
