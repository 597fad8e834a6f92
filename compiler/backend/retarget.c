/*
 * compiler/backend/retarget.c - from gfx11's instructions, which all passes before
 * speak of, to those of the chip.
 *
 * Most chips have them all.  gfx12 has some under another name, a barrier in two
 * parts, one invalidation for all caches, and scopes instead of cache bits (RDNA4
 * ISA 16; LLVM's memory model for gfx12).
 */
#include <string.h>

#include "compiler/backend/backend_int.h"

static const struct {
	uint16_t from, to;
} gfx12[] = {
#define SAME(a, b) { ISA_##a, ISA_##b },
	SAME(s_add_u32, s_add_co_u32)
	SAME(s_sub_u32, s_sub_co_u32)
	SAME(s_add_i32, s_add_co_i32)
	SAME(s_sub_i32, s_sub_co_i32)
	SAME(s_addc_u32, s_add_co_ci_u32)
	SAME(s_subb_u32, s_sub_co_ci_u32)
	SAME(s_addk_i32, s_addk_co_i32)
	SAME(v_min_f32, v_min_num_f32)
	SAME(v_max_f32, v_max_num_f32)
	SAME(v_min_f16, v_min_num_f16)
	SAME(v_max_f16, v_max_num_f16)
	SAME(v_min_f64, v_min_num_f64)
	SAME(v_max_f64, v_max_num_f64)
	SAME(v_min3_f32, v_min3_num_f32)
	SAME(v_max3_f32, v_max3_num_f32)
	SAME(v_med3_f32, v_med3_num_f32)
	SAME(v_min3_f16, v_min3_num_f16)
	SAME(v_max3_f16, v_max3_num_f16)
	SAME(v_med3_f16, v_med3_num_f16)
	SAME(v_minmax_f32, v_minmax_num_f32)
	SAME(v_maxmin_f32, v_maxmin_num_f32)
	SAME(v_minmax_f16, v_minmax_num_f16)
	SAME(v_maxmin_f16, v_maxmin_num_f16)
	SAME(v_pk_min_f16, v_pk_min_num_f16)
	SAME(v_pk_max_f16, v_pk_max_num_f16)
	SAME(v_add_f64, v_add_f64__vop2)
	SAME(v_mul_f64, v_mul_f64__vop2)
	SAME(v_lshlrev_b64, v_lshlrev_b64__vop2)
	SAME(v_mad_u64_u32, v_mad_co_u64_u32)
	SAME(v_mad_i64_i32, v_mad_co_i64_i32)
	SAME(ds_min_f32, ds_min_num_f32)
	SAME(ds_max_f32, ds_max_num_f32)
	SAME(ds_min_rtn_f32, ds_min_num_rtn_f32)
	SAME(ds_max_rtn_f32, ds_max_num_rtn_f32)
	SAME(ds_min_f64, ds_min_num_f64)
	SAME(ds_max_f64, ds_max_num_f64)
	SAME(ds_min_rtn_f64, ds_min_num_rtn_f64)
	SAME(ds_max_rtn_f64, ds_max_num_rtn_f64)
	SAME(global_atomic_min_f32, global_atomic_min_num_f32)
	SAME(global_atomic_max_f32, global_atomic_max_num_f32)
	SAME(buffer_gl0_inv, global_inv)
	SAME(buffer_gl1_inv, global_inv)
#undef SAME
};

static int op_on_gfx12(int op)
{
	for (size_t i = 0; i < ARRAY_SIZE(gfx12); i++)
		if (gfx12[i].from == op)
			return gfx12[i].to;
	return op;
}

/* Volatile accesses are for the device, streams are used once. */
static const char *policy_on_gfx12(const struct mir_inst *i)
{
	static const struct {
		const char *from, *to;
	} policy[] = {
		{ " glc dlc", " scope:SCOPE_DEV" },
		{ " dlc", " scope:SCOPE_DEV" },
		{ " slc dlc", " th:TH_LOAD_NT" },
		{ " glc slc dlc", " th:TH_STORE_NT" },
		{ " glc", " th:TH_ATOMIC_RETURN" },
	};

	if (i->op == ISA_buffer_gl0_inv || i->op == ISA_buffer_gl1_inv)
		return " scope:SCOPE_DEV";
	for (size_t k = 0; mir_is_vmem(i) && k < ARRAY_SIZE(policy); k++)
		if (!strcmp(i->tail, policy[k].from))
			return policy[k].to;
	return i->tail;
}

static void split_barrier(struct mir_func *m, struct mir_inst *i)
{
	const struct mir_opnd all = mir_word("-1");
	struct mir_inst *signal = mir_insert(m, i, ISA_s_barrier_signal, &all, 1);

	signal->flags |= i->flags;
	i->op = ISA_s_barrier_wait;
	i->n_opnd = 1;
	i->o[0] = mir_simm16(0xffff);
}

void mir_retarget(struct mir_func *m)
{
	if (!isa_gen_info(m->gen)->split_counters)
		return;
	MIR_EACH_INST(m, i) {
		if (i->op == ISA_s_barrier) {
			split_barrier(m, i);
			continue;
		}
		i->tail = policy_on_gfx12(i);
		i->op = (uint16_t)op_on_gfx12(i->op);
	}
}
