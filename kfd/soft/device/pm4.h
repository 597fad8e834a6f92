/*
 * kfd/soft/device/pm4.h - inside the PM4 engine: its state, and how its files
 * share the packets.
 *
 *	pm4.c            fetching, indirect buffers, dispatches, the table
 *	pm4_data.c       packets that move data, wait and compute
 *	pm4_registers.c  the registers that packets reach
 */
#ifndef T0_KFD_SOFT_DEVICE_PM4_H
#define T0_KFD_SOFT_DEVICE_PM4_H

#include "kfd/soft/device/dev.h"

#define PM4_BODY_MAX_DW 0x4000u
#define PM4_IB_DEPTH 2 /* a buffer may call one more */

/* Registers of the shader, as dword offsets from PM4_SH_BASE. */
#define PM4_SH_BASE 0x2c00u
#define PM4_SH_COUNT 0x400u
#define PM4_UCONFIG_BASE 0xc000u
#define PM4_SCRATCH_COUNT 8u

struct soft_pm4 {
	uint32_t sh[PM4_SH_COUNT];
	/* Others that hold what was written: see pm4_registers.c. */
	uint32_t scratch[PM4_SCRATCH_COUNT], grbm_index, hdp_done;
	/* Where the next packet stands; [0] is the outermost buffer. */
	struct {
		uint64_t va;
		uint32_t left_dw;
	} ib[PM4_IB_DEPTH];
	unsigned depth; /* 0: in the ring */
	bool begun;	/* of an AQL packet's buffer */
	uint32_t skip_dw; /* to be passed over: a condition did not hold */
	uint32_t h;	/* the packet in work, and its body */
	uint32_t n_dw, dw[PM4_BODY_MAX_DW];
	/* A dispatch that it starts once the map is released. */
	bool dispatch;
	struct soft_regs regs;
	struct aql_dispatch launch;
};

typedef enum soft_done pm4_packet(struct soft_queue *q, struct soft_pm4 *p);

/* -------------------------------------------------------------- pm4.c ---- */

enum soft_done pm4_refuse(struct soft_queue *q, const char *fmt, ...)
	T0_PRINTF(2, 3);

/* ------------------------------------------------------- pm4_registers.c ---- */

/* By dword offset in the register space; false: refused, by name. */
bool pm4_register_read(struct soft_queue *q, struct soft_pm4 *p, uint32_t at,
		       uint32_t *value);
bool pm4_register_write(struct soft_queue *q, struct soft_pm4 *p, uint32_t at,
			uint32_t value);

/* ------------------------------------------------------------ pm4_data.c ---- */

pm4_packet pm4_write_data, pm4_copy_data, pm4_dma_data, pm4_atomic_mem,
	pm4_wait_reg_mem, pm4_wait_reg_mem64, pm4_release_mem, pm4_cond_exec,
	pm4_pred_exec, pm4_set_sh_reg, pm4_set_uconfig_reg;

/* 48 address bits of two dwords, `align` ones at the bottom cut off. */
static inline uint64_t pm4_address(uint32_t lo, uint32_t hi, uint32_t align)
{
	return (uint64_t)hi << 32 | (lo & ~(align - 1));
}

#endif
