/*
 * kfd/soft/exec/fast/native_values.c - which ymm register has which value.
 *
 * Registers are given away while code is written, once for each place in it:
 * what has not been needed for longest goes home.
 */
#include <stdlib.h>

#include "kfd/soft/exec/fast/native_host.h"

static struct soft_ymm_operand home_operand(struct soft_host_mem m)
{
	return (struct soft_ymm_operand){ SOFT_NOWHERE, m };
}

_Static_assert(SOFT_VALUES *SOFT_VALUE_BYTES <= SOFT_NATIVE_HOMES_BYTES,
	       "every value has a home");

static struct soft_host_mem own_home(int v)
{
	return (struct soft_host_mem){ SOFT_R8, SOFT_NATIVE_HOMES +
							v * SOFT_VALUE_BYTES };
}

static void put_down(struct soft_ymm *y, int reg)
{
	if (y->what[reg] != SOFT_NOWHERE)
		y->where[y->what[reg]] = SOFT_NOWHERE;
	y->what[reg] = SOFT_NOWHERE;
}

/* Where a register's value is from now on found, too. */
static void send_home(struct soft_code *code, int reg)
{
	struct soft_ymm *y = code->ymm;
	const int v = y->what[reg];

	if (v == SOFT_NOWHERE || y->at_home[v])
		return;
	y->home[v] = own_home(v);
	y->at_home[v] = true;
	soft_host_vex(code, HOST_OF(STORED), reg, 0, home_operand(y->home[v]),
		      0);
}

/* The first that has nothing, or what was not needed for longest. */
int soft_value_free(struct soft_code *code)
{
	struct soft_ymm *y = code->ymm;
	int best = SOFT_NOWHERE;

	for (int i = 0; i < SOFT_YMMS; i++) {
		if (y->last[i] == y->now)
			continue;
		if (best == SOFT_NOWHERE || y->last[i] < y->last[best])
			best = i;
		if (y->what[i] == SOFT_NOWHERE) {
			best = i;
			break;
		}
	}
	if (best == SOFT_NOWHERE)
		BUG("an instruction needs more than %d registers", SOFT_YMMS);
	send_home(code, best);
	put_down(y, best);
	y->last[best] = y->now;
	return best;
}

void soft_value_release(struct soft_code *code, int reg)
{
	code->ymm->last[reg] = 0;
}

void soft_value_keep(struct soft_code *code, int reg)
{
	code->ymm->last[reg] = code->ymm->now;
}

void soft_value_bind(struct soft_code *code, int v, int reg)
{
	struct soft_ymm *y = code->ymm;

	soft_value_forget(code, v);
	put_down(y, reg);
	y->what[reg] = (int8_t)v;
	y->where[v] = (int8_t)reg;
	y->last[reg] = y->now;
}

int soft_value_get(struct soft_code *code, int v)
{
	struct soft_ymm *y = code->ymm;
	int reg = y->where[v];

	if (reg == SOFT_NOWHERE) {
		reg = soft_value_free(code);
		if (y->at_home[v])
			soft_host_vex(code, HOST_OF(MOVD), reg, 0,
				      home_operand(y->home[v]), 0);
		y->what[reg] = (int8_t)v;
		y->where[v] = (int8_t)reg;
	}
	y->last[reg] = y->now;
	return reg;
}

int soft_value_change(struct soft_code *code, int v)
{
	int reg = soft_value_get(code, v);

	code->ymm->at_home[v] = false;
	return reg;
}

struct soft_ymm_operand soft_value_source(struct soft_code *code, int v)
{
	const struct soft_ymm *y = code->ymm;

	if (y->where[v] == SOFT_NOWHERE && y->at_home[v])
		return home_operand(y->home[v]);
	return (struct soft_ymm_operand){ .reg = soft_value_get(code, v) };
}

int soft_value_set(struct soft_code *code, int v)
{
	struct soft_ymm *y = code->ymm;
	int reg = y->where[v];

	if (reg == SOFT_NOWHERE)
		reg = soft_value_free(code);
	soft_value_bind(code, v, reg);
	return reg;
}

bool soft_value_is_set(const struct soft_code *code, int v)
{
	return code->ymm->where[v] != SOFT_NOWHERE || code->ymm->at_home[v];
}

/* VGPRs, temporaries and constants stay where they are. */
static bool may_be_home(struct soft_host_mem m)
{
	return m.base == SOFT_RAX || m.base == SOFT_R9 || m.base == SOFT_R8 ||
	       m.base == SOFT_RIP;
}

bool soft_value_is_at(struct soft_code *code, int v, struct soft_host_mem m)
{
	struct soft_ymm *y = code->ymm;

	if (!may_be_home(m))
		return false;
	soft_value_forget(code, v);
	y->home[v] = m;
	y->at_home[v] = true;
	return true;
}

/* Others that equal what is there now are fetched. */
void soft_value_stores(struct soft_code *code, int v, struct soft_host_mem m)
{
	struct soft_ymm *y = code->ymm;

	for (int i = 0; i < SOFT_VALUES; i++)
		if (i != v && y->at_home[i] && y->home[i].base == m.base &&
		    y->home[i].offset == m.offset)
			soft_value_change(code, i);
}

void soft_value_stored(struct soft_code *code, int v, struct soft_host_mem m)
{
	if (!may_be_home(m))
		return;
	code->ymm->home[v] = m;
	code->ymm->at_home[v] = true;
}

void soft_value_forget(struct soft_code *code, int v)
{
	struct soft_ymm *y = code->ymm;

	if (y->where[v] != SOFT_NOWHERE)
		y->what[y->where[v]] = SOFT_NOWHERE;
	y->where[v] = SOFT_NOWHERE;
	y->at_home[v] = false;
}

void soft_value_begin(struct soft_code *code)
{
	code->ymm->now++;
}

/* ------------------------------------------------- for those above it ---- */

void soft_host_reset(struct soft_code *code)
{
	if (!code->ymm)
		return;
	*code->ymm = (struct soft_ymm){ .now = 1 };
	memset(code->ymm->where, SOFT_NOWHERE, sizeof(code->ymm->where));
	memset(code->ymm->what, SOFT_NOWHERE, sizeof(code->ymm->what));
}

void soft_host_forget(struct soft_code *code, int z)
{
	for (int h = 0; code->ymm && h < 2; h++)
		soft_value_forget(code, soft_zmm_value(z, h));
}

void soft_host_forget_mask(struct soft_code *code, int k)
{
	for (int h = 0; code->ymm && h < 2; h++)
		soft_value_forget(code, soft_mask_value(k, h));
}

void soft_host_settle(struct soft_code *code)
{
	for (int i = 0; code->ymm && i < SOFT_YMMS; i++) {
		send_home(code, i);
		put_down(code->ymm, i);
	}
}

struct soft_ymm *soft_host_save(const struct soft_code *code)
{
	struct soft_ymm *saved;

	if (!code->ymm)
		return NULL;
	saved = xcalloc(1, sizeof(*saved));
	*saved = *code->ymm;
	return saved;
}

void soft_host_restore(struct soft_code *code, struct soft_ymm *saved)
{
	if (saved)
		*code->ymm = *saved;
	free(saved);
}
