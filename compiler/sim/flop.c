/*
 * compiler/sim/flop.c - the arithmetic of what was simulated.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/sim.h"
#include "isa/code/code.h"

/* Operations of a lane by the mnemonic's prefix; the first that fits counts. */
static const struct {
	const char *prefix;
	int flop;
} table[] = {
	{ "v_dot2_f", 4 }, { "v_dot2acc_f", 4 }, { "v_dot2c_f", 4 },
	{ "v_dot4_", 8 },  { "v_dot8_", 16 },	 { "v_pk_fma", 4 },
	{ "v_pk_add_f", 2 }, { "v_pk_mul_f", 2 }, { "v_fma", 2 },
	{ "v_div_fmas", 2 }, { "v_add_f", 1 },	 { "v_sub_f", 1 },
	{ "v_subrev_f", 1 }, { "v_mul_f", 1 },	 { "v_mul_dx9", 1 },
	{ "v_rcp_f", 1 },  { "v_rsq_f", 1 },	 { "v_sqrt_f", 1 },
	{ "v_exp_f", 1 },  { "v_log_f", 1 },	 { "v_sin_f", 1 },
	{ "v_cos_f", 1 },
};

static int lane_flop(uint16_t op)
{
	const char *name = op == ISA_OP_NONE ? "" : isa_op_info(op)->name;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!strncmp(name, table[i].prefix, strlen(table[i].prefix)))
			return table[i].flop;
	return 0;
}

/*
 * A wave's matrix product, whichever its width: v_wmma_f32_16x16x16_f16, and
 * v_swmmac_f32_16x16x32_f16, which multiplies half of its K.
 */
static double matrix_flop(const char *name)
{
	const char *sizes = strstr(name, "_16x16x");
	const double k = sizes ? strtod(sizes + 7, NULL) : 0;

	return 2 * 16 * 16 * k / (strncmp(name, "v_swmmac", 8) ? 1 : 2);
}

double sim_flop(const struct sim_result *r)
{
	double sum = 0;

	for (int i = 0; i < r->n_lines; i++) {
		const struct sim_line *l = &r->line[i];
		const struct isa_op_info *op = isa_op_info(l->in.op);
		const char *name = op->name;
		double each = op->pipe == ISA_PIPE_WMMA ? matrix_flop(name) :
			      r->wave_size * (lane_flop(l->in.op) +
					      lane_flop(l->in.op_y));

		sum += each * (double)l->issues;
	}
	return sum;
}
