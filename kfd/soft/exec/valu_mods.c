/*
 * kfd/soft/exec/valu_mods.c - valu_mods.h as functions, for handlers.
 */
#include "kfd/soft/exec/valu_mods.h"

bool soft_flushes(enum isa_type type, uint32_t mode, bool output)
{
	return mods_flush(type, mode, output);
}

const uint32_t *soft_apply_mods(const struct isa_operand *o, int fmt,
				bool flush, const uint32_t *src, uint32_t *tmp)
{
	return mods_apply(o, fmt, flush, src, tmp);
}

void soft_finish_float(const struct isa_inst *in, enum isa_type type,
		       uint32_t mode, bool keep_denorms, uint32_t *d)
{
	mods_finish(in, type, mode, keep_denorms, d);
}
