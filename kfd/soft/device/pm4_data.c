/*
 * kfd/soft/device/pm4_data.c - PM4 packets that move data, wait for it, or
 * choose by it which packets follow.
 */
#include <string.h>

#include "kfd/soft/device/pm4.h"

/* Where the words of WRITE_DATA and COPY_DATA come from and go to. */
enum {
	SEL_REGISTER = 0,
	SEL_MEMORY_GRBM = 1,
	SEL_L2 = 2,
	SEL_COUNTER = 4, /* a register of a performance counter */
	SEL_IMMEDIATE = 5, /* as a source */
	SEL_MEMORY = 5,	   /* as a destination */
	SEL_CLOCK = 9,
};

static bool is_memory(uint32_t sel, bool source)
{
	return sel == SEL_L2 || sel == SEL_MEMORY_GRBM ||
	       (!source && sel == SEL_MEMORY);
}

static bool is_register(uint32_t sel)
{
	return sel == SEL_REGISTER || sel == SEL_COUNTER;
}

/* One word to where a packet says; false: refused. */
static bool store_word(struct soft_queue *q, struct soft_pm4 *p, uint32_t sel,
		       uint64_t at, uint32_t value, const char *what)
{
	uint32_t *to;

	if (is_register(sel))
		return pm4_register_write(q, p, (uint32_t)at & 0x3ffff, value);
	to = soft_cp_at(q, at, 4, SOFT_MEM_WRITE, what);
	if (to)
		__atomic_store_n(to, value, __ATOMIC_RELEASE);
	return to;
}

enum soft_done pm4_write_data(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t dst = p->dw[0] >> 8 & 0xf, same = p->dw[0] >> 16 & 1;
	const uint32_t step = dst == SEL_REGISTER ? 1 : 4;
	uint64_t at;

	if (p->n_dw < 4)
		return pm4_refuse(q, "it has no data; accepted: 4 dwords or "
				     "more");
	if (dst != SEL_REGISTER && !is_memory(dst, false))
		return pm4_refuse(q, "dst_sel %u; accepted: 0 (a register), "
				     "1, 2 and 5 (memory)", dst);
	at = pm4_address(p->dw[1], p->dw[2], step);
	for (uint32_t i = 3; i < p->n_dw; i++) {
		if (!store_word(q, p, dst, at, p->dw[i],
				"destination of WRITE_DATA"))
			return SOFT_REFUSED;
		at += same ? 0 : step;
	}
	soft_wake_all(q->dev); /* somebody may wait for it */
	return SOFT_DONE;
}

/* Word i of COPY_DATA's source; false: refused. */
static bool load_word(struct soft_queue *q, struct soft_pm4 *p, uint32_t sel,
		      uint32_t i, uint32_t *value)
{
	const uint64_t at = pm4_address(p->dw[1], p->dw[2], 4);
	const uint64_t now = soft_gpu_clock(q->card);
	const uint32_t *from;

	switch (sel) {
	case SEL_REGISTER:
	case SEL_COUNTER:
		return pm4_register_read(q, p, (p->dw[1] & 0x3ffff) + i, value);
	case SEL_IMMEDIATE:
		*value = p->dw[1 + i];
		return true;
	case SEL_CLOCK:
		*value = (uint32_t)(now >> i * 32);
		return true;
	default:
		from = soft_cp_at(q, at + i * 4, 4, SOFT_MEM_READ,
				  "source of COPY_DATA");
		if (from)
			*value = __atomic_load_n(from, __ATOMIC_ACQUIRE);
		return from;
	}
}

enum soft_done pm4_copy_data(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t src = p->dw[0] & 0xf, dst = p->dw[0] >> 8 & 0xf;
	const uint32_t n = p->dw[0] >> 16 & 1 ? 2 : 1;
	const uint32_t step = is_register(dst) ? 1 : 4;
	uint32_t v[2];

	if (p->n_dw < 5)
		return pm4_refuse(q, "%u dwords; accepted: 5", p->n_dw);
	if (!is_register(src) && src != SEL_IMMEDIATE && src != SEL_CLOCK &&
	    !is_memory(src, true))
		return pm4_refuse(q, "src_sel %u; accepted: 0 (a register), 1 "
				     "and 2 (memory), 4 (a counter), 5 "
				     "(immediate), 9 (the clock)", src);
	if (!is_register(dst) && !is_memory(dst, false))
		return pm4_refuse(q, "dst_sel %u; accepted: 0 (a register), "
				     "4 (of a counter), 1, 2 and 5 (memory)",
				  dst);
	for (uint32_t i = 0; i < n; i++)
		if (!load_word(q, p, src, i, &v[i]))
			return SOFT_REFUSED;
	/* A program that polls the clock must not see half of it. */
	if (n == 2 && src == SEL_CLOCK) {
		const uint64_t now = soft_gpu_clock(q->card);

		v[0] = (uint32_t)now;
		v[1] = (uint32_t)(now >> 32);
	}
	for (uint32_t i = 0; i < n; i++)
		if (!store_word(q, p, dst,
				pm4_address(p->dw[3], p->dw[4], step) +
					i * step,
				v[i], "destination of COPY_DATA"))
			return SOFT_REFUSED;
	soft_wake_all(q->dev);
	return SOFT_DONE;
}

/* The command's bits: source and destination are registers, or stay put. */
#define DMA_SAS (1u << 26)
#define DMA_DAS (1u << 27)
#define DMA_SAIC (1u << 28)
#define DMA_DAIC (1u << 29)

/* What is only read, into a cache: it has to be there. */
static enum soft_done prefetch_memory(struct soft_queue *q, uint64_t from,
				      uint32_t n)
{
	for (uint64_t left = n, there; left; left -= there, from += there) {
		there = left;
		if (!soft_cp_reach(q, from, &there, SOFT_MEM_READ,
				   "source of DMA_DATA"))
			return SOFT_REFUSED;
	}
	return SOFT_DONE;
}

#define DMA_NOWHERE 2 /* dst_sel */

enum soft_done pm4_dma_data(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t src = p->dw[0] >> 29 & 3, dst = p->dw[0] >> 20 & 3;
	const uint32_t command = p->dw[5], n = command & 0x3ffffff;
	uint64_t from = pm4_address(p->dw[1], p->dw[2], 1),
		 to = pm4_address(p->dw[3], p->dw[4], 1);

	if (p->n_dw < 6)
		return pm4_refuse(q, "%u dwords; accepted: 6", p->n_dw);
	if (src == 1 || dst == 1 ||
	    command & (DMA_SAS | DMA_DAS | DMA_SAIC | DMA_DAIC))
		return pm4_refuse(q, "src_sel %u, dst_sel %u, command 0x%x; "
				     "accepted: from memory (0, 3) or data "
				     "(2) to memory (0, 3) or nowhere (2), "
				     "addresses that grow", src, dst, command);
	if (dst == DMA_NOWHERE)
		return src == 2 ? SOFT_DONE : prefetch_memory(q, from, n);
	if (src == 2 && (n | to) & 3)
		return pm4_refuse(q, "%u bytes of data to 0x%llx; accepted: "
				     "whole dwords", n,
				  (unsigned long long)to);
	for (uint32_t left = n, k; left; left -= k) {
		uint64_t reach = left, there = left;
		const uint8_t *s = NULL;
		uint8_t *d = soft_cp_reach(q, to, &reach, SOFT_MEM_WRITE,
					   "destination of DMA_DATA");

		if (d && src != 2)
			s = soft_cp_reach(q, from, &there, SOFT_MEM_READ,
					  "source of DMA_DATA");
		if (!d || (src != 2 && !s))
			return SOFT_REFUSED;
		k = (uint32_t)(reach < there ? reach : there);
		if (s)
			memmove(d, s, k);
		else
			for (uint32_t i = 0; i < k; i += 4)
				memcpy(d + i, &p->dw[1], 4);
		from += k;
		to += k;
	}
	soft_wake_all(q->dev);
	return SOFT_DONE;
}

enum soft_done pm4_atomic_mem(struct soft_queue *q, struct soft_pm4 *p)
{
	/* Codes of 64 more return nothing, which is all the same here. */
	const unsigned code = p->dw[0] & 0x3f, command = p->dw[0] >> 8 & 0xf;
	const uint64_t src = pm4_address(p->dw[3], p->dw[4], 1),
		       cmp = pm4_address(p->dw[5], p->dw[6], 1);
	uint64_t old;
	void *at;

	if (p->n_dw < 8)
		return pm4_refuse(q, "%u dwords; accepted: 8", p->n_dw);
	if (!soft_cp_atomic_known(code) || command > 1)
		return pm4_refuse(q, "atomic %u, command %u; accepted: 7, 8 "
				     "and 15..25, 32 more for 64 bits, once "
				     "(0) or until it compares equal (1)",
				  code, command);
	at = soft_cp_at(q, pm4_address(p->dw[1], p->dw[2], 1),
			soft_cp_atomic_bytes(code),
			SOFT_MEM_READ | SOFT_MEM_WRITE,
			"operand of ATOMIC_MEM");
	if (!at)
		return SOFT_REFUSED;
	old = soft_cp_atomic(at, code, src, cmp);
	soft_wake_all(q->dev);
	if (command == 1 &&
	    old != (soft_cp_atomic_bytes(code) == 8 ? cmp : (uint32_t)cmp))
		return SOFT_LATER;
	return SOFT_DONE;
}

/* --------------------------------------------------------------- waits -- */

#define WAIT_FUNCTION(control) ((control) & 7)
#define WAIT_IN_MEMORY(control) ((control) >> 4 & 3)
#define WAIT_OPERATION(control) ((control) >> 6 & 3)

/* Nothing changes a register of this queue while it waits for one. */
static enum soft_done wait_register(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t control = p->dw[0], mask = p->dw[4];
	const bool request = WAIT_OPERATION(control) == 1;
	const uint32_t at = p->dw[request ? 2 : 1] & 0x3ffff;
	uint32_t value;

	if (request &&
	    !pm4_register_write(q, p, p->dw[1] & 0x3ffff, p->dw[3]))
		return SOFT_REFUSED;
	if (!pm4_register_read(q, p, at, &value))
		return SOFT_REFUSED;
	if (soft_compare(WAIT_FUNCTION(control), value & mask, p->dw[3]))
		return SOFT_DONE;
	return pm4_refuse(q, "register 0x%x is 0x%x and stays so: the wait "
			     "(function %u, reference 0x%x, mask 0x%x) would "
			     "not end", at, value, WAIT_FUNCTION(control),
			  p->dw[3], mask);
}

enum soft_done pm4_wait_reg_mem(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t control = p->dw[0], operation = WAIT_OPERATION(control);
	const uint32_t *at;

	if (p->n_dw < 6)
		return pm4_refuse(q, "%u dwords; accepted: 6", p->n_dw);
	if (operation > 1 || WAIT_IN_MEMORY(control) > 1 ||
	    (operation && WAIT_IN_MEMORY(control)))
		return pm4_refuse(q, "mem_space %u, operation %u; accepted: "
				     "memory (1) or a register (0) with "
				     "operation 0, or a register that is "
				     "written first (0, 1)",
				  WAIT_IN_MEMORY(control), operation);
	if (!WAIT_IN_MEMORY(control))
		return wait_register(q, p);
	at = soft_cp_at(q, pm4_address(p->dw[1], p->dw[2], 4), 4,
			SOFT_MEM_READ, "word of WAIT_REG_MEM");
	if (!at)
		return SOFT_REFUSED;
	return soft_compare(WAIT_FUNCTION(control),
			    __atomic_load_n(at, __ATOMIC_SEQ_CST) & p->dw[4],
			    p->dw[3]) ? SOFT_DONE : SOFT_LATER;
}

enum soft_done pm4_wait_reg_mem64(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t control = p->dw[0];
	const uint64_t *at;

	if (p->n_dw < 8)
		return pm4_refuse(q, "%u dwords; accepted: 8", p->n_dw);
	if (WAIT_IN_MEMORY(control) != 1 || WAIT_OPERATION(control))
		return pm4_refuse(q, "mem_space %u, operation %u; accepted: "
				     "memory (1), operation 0",
				  WAIT_IN_MEMORY(control),
				  WAIT_OPERATION(control));
	at = soft_cp_at(q, pm4_address(p->dw[1], p->dw[2], 8), 8,
			SOFT_MEM_READ, "word of WAIT_REG_MEM64");
	if (!at)
		return SOFT_REFUSED;
	return soft_compare(WAIT_FUNCTION(control),
			    __atomic_load_n(at, __ATOMIC_SEQ_CST) &
				    pm4_address(p->dw[5], p->dw[6], 1),
			    pm4_address(p->dw[3], p->dw[4], 1)) ?
		       SOFT_DONE : SOFT_LATER;
}

/* ------------------------------------------------- the end of the pipe -- */

/* data_sel and int_sel of RELEASE_MEM */
enum { DATA_NONE, DATA_32, DATA_64, DATA_CLOCK };
enum { INT_NONE, INT_ONLY, INT_CONFIRMED, INT_DATA, INT_ALWAYS };

enum soft_done pm4_release_mem(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t data = p->dw[1] >> 29, irq = p->dw[1] >> 24 & 7;
	const uint64_t va = pm4_address(p->dw[2], p->dw[3], 4);
	const uint64_t value = data == DATA_CLOCK ?
				       soft_gpu_clock(q->card) :
				       pm4_address(p->dw[4], p->dw[5], 1);
	void *to = NULL;

	if (p->n_dw < 7)
		return pm4_refuse(q, "%u dwords; accepted: 7", p->n_dw);
	if (data > DATA_CLOCK || irq > INT_ALWAYS)
		return pm4_refuse(q, "data_sel %u, int_sel %u; accepted: "
				     "data_sel 0..3 (none, 32 and 64 bits, "
				     "the clock), int_sel 0..4", data, irq);
	if (data != DATA_NONE) {
		to = soft_cp_at(q, va, data == DATA_32 ? 4 : 8, SOFT_MEM_WRITE,
				"destination of RELEASE_MEM");
		if (!to)
			return SOFT_REFUSED;
	}
	order_release();
	if (data == DATA_32)
		__atomic_store_n((uint32_t *)to, (uint32_t)value,
				 __ATOMIC_SEQ_CST);
	else if (to)
		__atomic_store_n((uint64_t *)to, value, __ATOMIC_SEQ_CST);
	if (irq == INT_ONLY || irq == INT_CONFIRMED || irq == INT_ALWAYS)
		soft_event_interrupt(q->dev, p->dw[6]);
	soft_wake_all(q->dev);
	return SOFT_DONE;
}

/* ----------------------------------------------------------- conditions -- */

enum soft_done pm4_cond_exec(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t *at;

	if (p->n_dw < 4)
		return pm4_refuse(q, "%u dwords; accepted: 4", p->n_dw);
	at = soft_cp_at(q, pm4_address(p->dw[0], p->dw[1], 4), 4,
			SOFT_MEM_READ, "condition of COND_EXEC");
	if (!at)
		return SOFT_REFUSED;
	if (!__atomic_load_n(at, __ATOMIC_ACQUIRE))
		p->skip_dw = p->dw[3] & 0x3fff;
	return SOFT_DONE;
}

/* For the parts of one card that share a ring; there is one part here. */
enum soft_done pm4_pred_exec(struct soft_queue *q, struct soft_pm4 *p)
{
	if (p->n_dw < 1)
		return pm4_refuse(q, "no dword; accepted: 1");
	if (!(p->dw[0] >> 24 & 1))
		p->skip_dw = p->dw[0] & 0x3fff;
	return SOFT_DONE;
}

/* ----------------------------------------------------------- registers -- */

enum soft_done pm4_set_sh_reg(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t at = p->dw[0] & 0xffff;

	if (p->n_dw < 2 || at + p->n_dw - 1 > PM4_SH_COUNT)
		return pm4_refuse(q, "offset 0x%x, %u values; accepted: 1 or "
				     "more within 0x400", at, p->n_dw - 1);
	memcpy(&p->sh[at], &p->dw[1], (p->n_dw - 1) * 4);
	return SOFT_DONE;
}

enum soft_done pm4_set_uconfig_reg(struct soft_queue *q, struct soft_pm4 *p)
{
	const uint32_t at = PM4_UCONFIG_BASE + (p->dw[0] & 0xffff);

	if (p->n_dw < 2)
		return pm4_refuse(q, "no value; accepted: 1 or more");
	for (uint32_t i = 1; i < p->n_dw; i++)
		if (!pm4_register_write(q, p, at + i - 1, p->dw[i]))
			return SOFT_REFUSED;
	return SOFT_DONE;
}
