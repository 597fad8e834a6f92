/*
 * kfd/soft/device/pm4_registers.c - the registers that packets can read and
 * write: those of the shader, and the few others that compute programs use.
 *
 * A register that does nothing here is not taken silently: a program that
 * sets up a profiler must not believe that it runs.
 */
#include "kfd/soft/device/pm4.h"

/* Dword offsets; the names are those of AMD's register headers. */
enum {
	BIF_BX_PF0_GPU_HDP_FLUSH_REQ = 0xe26,
	BIF_BX_PF0_GPU_HDP_FLUSH_DONE = 0xe27,
	GB_ADDR_CONFIG = 0x263e,
	SCRATCH_REG0 = 0xc040,
	GRBM_GFX_INDEX = 0xc200,
};
#define ACCEPTED "accepted: COMPUTE_* (0x2c00..0x2fff), SCRATCH_REG0..7 " \
		 "(0xc040..0xc047), GRBM_GFX_INDEX (0xc200), "		 \
		 "CP_PERFMON_CNTL (0xd808), SQ_ and SQG_PERFCOUNTER* "	 \
		 "(0xd1c0.., 0xd9c0..), "				 \
		 "GPU_HDP_FLUSH_REQ and _DONE (0xe26, 0xe27)"

/* Where a register that holds what was written is kept, or NULL. */
static uint32_t *find_register(struct soft_pm4 *p, uint32_t at)
{
	if (at >= PM4_SH_BASE && at - PM4_SH_BASE < PM4_SH_COUNT)
		return &p->sh[at - PM4_SH_BASE];
	if (at >= SCRATCH_REG0 && at - SCRATCH_REG0 < PM4_SCRATCH_COUNT)
		return &p->scratch[at - SCRATCH_REG0];
	return at == GRBM_GFX_INDEX ? &p->grbm_index : NULL;
}

bool pm4_register_read(struct soft_queue *q, struct soft_pm4 *p, uint32_t at,
		       uint32_t *value)
{
	const uint32_t *r = find_register(p, at);
	const char *why;

	if (soft_counters_have(at)) {
		why = soft_counters_read(q->card, at, p->grbm_index, value);
		if (why)
			pm4_refuse(q, "it reads register 0x%x: %s", at, why);
		return !why;
	}
	if (r)
		*value = *r;
	else if (at == BIF_BX_PF0_GPU_HDP_FLUSH_DONE)
		*value = p->hdp_done;
	else if (at == BIF_BX_PF0_GPU_HDP_FLUSH_REQ)
		*value = 0; /* nothing is pending */
	else if (at == GB_ADDR_CONFIG)
		*value = q->card->chip->addr_config;
	else {
		pm4_refuse(q, "it reads register 0x%x, which is not there; "
			      ACCEPTED, at);
		return false;
	}
	return true;
}

bool pm4_register_write(struct soft_queue *q, struct soft_pm4 *p, uint32_t at,
			uint32_t value)
{
	uint32_t *r = find_register(p, at);
	const char *why;

	if (soft_counters_have(at)) {
		why = soft_counters_write(q->card, at, value);
		if (why)
			pm4_refuse(q, "it writes 0x%x to register 0x%x: %s",
				   value, at, why);
		return !why;
	}
	if (r) {
		*r = value;
	} else if (at == BIF_BX_PF0_GPU_HDP_FLUSH_REQ) {
		/* The host's stores reach memory by themselves: it is done. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		p->hdp_done = value;
	} else {
		pm4_refuse(q, "it writes register 0x%x, which is not there; "
			      ACCEPTED, at);
		return false;
	}
	return true;
}
