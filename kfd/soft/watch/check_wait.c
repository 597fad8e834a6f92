/*
 * kfd/soft/watch/check_wait.c - hazards: registers that an outstanding load
 * will still write.
 *
 * The model is the one that programs have to assume (RDNA3 ISA 4.4), not the
 * emulator's, which finishes every instruction at once: vector loads return
 * in order, vector stores complete in order, LDS instructions in order,
 * scalar loads, messages and FLAT accesses to LDS in any order.  So after a
 * wait for n an instruction is certainly complete if n younger ones of its
 * kind were issued, and those that come in any order only after a wait for 0.
 *
 * Stores own no registers: gfx11 reads their data before anything later can
 * write the registers.
 */
#include <string.h>

#include "kfd/soft/watch/watch_int.h"

/* -------------------------------------------------------- completion ---- */

uint32_t check_done(const struct shadow_wave *sw, int cls)
{
	const struct outstanding *o = &sw->outstanding[cls];

	return o->n ? o->seq[o->first & COUNTER_MAX] : sw->seq;
}

static void retire_all(struct shadow_wave *sw)
{
	for (int c = 0; c < CLASS_COUNT; c++)
		sw->outstanding[c].n = 0;
	sw->n_owners = 0;
}

/* All but the youngest n of the class are complete. */
static void retire_class(struct shadow_wave *sw, int cls, uint32_t n)
{
	struct outstanding *o = &sw->outstanding[cls];
	int kept = 0;

	if (o->n <= n)
		return;
	o->first += o->n - n;
	o->n = n;
	const uint32_t done = check_done(sw, cls);
	for (int i = 0; i < sw->n_owners; i++) {
		struct owner p = sw->owner[i];

		if (p.seq < done)
			p.need &= (uint8_t)~(1 << cls);
		if (p.need)
			sw->owner[kept++] = p;
	}
	sw->n_owners = kept;
}

static void complete_lgkm(struct shadow_wave *sw, uint32_t n)
{
	retire_class(sw, CLASS_LDS, n);
	if (!n)
		retire_class(sw, CLASS_ANY, 0);
}

/* The SOPK waits add a register to their immediate; null reads 0. */
static uint32_t wait_count(const struct actor *a)
{
	const uint32_t *f = a->s->u.in.f;
	const uint32_t reg = f[ISA_F_SDST];

	return (f[ISA_F_SIMM16] & 63) +
	       (reg < ISA_R_NULL ? a->w->s[reg] & 63 : 0);
}

/* gfx12: a counter each, or two in one instruction. */
static void wait_split(struct shadow_wave *sw, enum isa_op op, uint32_t imm)
{
	const uint32_t n = imm & 63;

	switch (op) {
	case ISA_s_wait_loadcnt:
		retire_class(sw, CLASS_VM, n);
		return;
	case ISA_s_wait_storecnt:
		retire_class(sw, CLASS_VS, n);
		return;
	case ISA_s_wait_dscnt:
		complete_lgkm(sw, n);
		return;
	case ISA_s_wait_kmcnt:
		if (!(imm & 31))
			retire_class(sw, CLASS_KM, 0);
		return;
	case ISA_s_wait_loadcnt_dscnt:
		retire_class(sw, CLASS_VM, imm >> 8 & 63);
		complete_lgkm(sw, n);
		return;
	case ISA_s_wait_storecnt_dscnt:
		retire_class(sw, CLASS_VS, imm >> 8 & 63);
		complete_lgkm(sw, n);
		return;
	default:
		return;
	}
}

static void apply_wait(struct actor *a)
{
	struct shadow_wave *sw = a->sw;
	const struct isa_inst *in = &a->s->u.in;
	const struct isa_waits n = isa_waits_of(in->gen, in->f[ISA_F_SIMM16]);

	wait_split(sw, (enum isa_op)in->op, in->f[ISA_F_SIMM16]);

	switch (in->op) {
	case ISA_s_waitcnt:
		retire_class(sw, CLASS_VM, n.vm);
		complete_lgkm(sw, n.lgkm);
		return;
	case ISA_s_waitcnt_vscnt:
		retire_class(sw, CLASS_VS, wait_count(a));
		return;
	case ISA_s_waitcnt_vmcnt:
		retire_class(sw, CLASS_VM, wait_count(a));
		return;
	case ISA_s_waitcnt_lgkmcnt:
		complete_lgkm(sw, wait_count(a));
		return;
	case ISA_s_wait_idle:
	case ISA_s_endpgm:
		retire_all(sw);
		return;
	}
}

/* ----------------------------------------------------------- hazards ---- */

/* Counters in the words of s_waitcnt, or of the chip. */
static const char *counter_names(const struct isa_inst *in, uint8_t need)
{
	const bool lgkm = need & (1 << CLASS_LDS | 1 << CLASS_ANY);

	if (need & 1 << CLASS_KM)
		return "kmcnt";
	if (isa_gen_info(in->gen)->split_counters)
		return !(need & 1 << CLASS_VM) ? "dscnt" :
		       lgkm		       ? "loadcnt and dscnt" :
						 "loadcnt";
	if (!(need & 1 << CLASS_VM))
		return "lgkmcnt";
	return lgkm ? "vmcnt and lgkmcnt" : "vmcnt";
}

/*
 * May this instruction write a register that p will write before?  Yes if
 * both return in the same order.
 */
static bool same_order(const struct site *s, const struct owner *p)
{
	/* With a sampler, or without (LLVM, SIInsertWaitcnts). */
	const bool vm = s->kind == SITE_FLAT || s->kind == SITE_BUFFER ||
			s->kind == SITE_IMAGE;

	if (p->need == 1 << CLASS_VM)
		return vm && (s->is_load || s->returns) &&
		       !((s->info->flags ^ p->site->info->flags) & ISA_SAMPLER);
	if (p->need == 1 << CLASS_LDS)
		return s->kind == SITE_LDS || s->kind == SITE_LANES;
	return false;
}

static void report_hazard(struct actor *a, const struct owner *p, int reg,
			  bool reads)
{
	struct buf other = { 0 };

	check_where(a->t, p->site, &other);
	check_report(a, CHECK_HAZARD, -1, p->site->pc,
		     "%s %c%d, which a load has yet to write: no s_waitcnt for "
		     "%s lies between\n  outstanding: %s",
		     reads ? "reads" : "writes",
		     p->file == ISA_K_VGPR ? 'v' : 's', reg,
		     counter_names(&a->s->u.in, p->need), other.data);
	buf_fini(&other);
}

/* Does the use overlap the registers that p owns?  The first, or -1. */
static int first_overlap(const struct owner *p, int file, int reg, int count)
{
	const int from = reg > p->reg ? reg : p->reg;
	const int end = reg + count < p->reg + p->count ? reg + count :
							  p->reg + p->count;

	return p->file == file && from < end ? from : -1;
}

/* A load of half a register keeps the other half: no real read. */
static bool is_merging(const struct site *s, int role)
{
	return s->is_load && role & ISA_DST;
}

void check_hazards(struct actor *a)
{
	const struct isa_use *u = &a->s->use;
	struct shadow_wave *sw = a->sw;

	for (int i = 0; i < sw->n_owners; i++) {
		struct owner *p = &sw->owner[i];

		for (int k = 0; k < u->n && p->file; k++) {
			const bool reads = u->reg[k].role & ISA_SRC;
			const int reg = first_overlap(p, u->reg[k].file,
						      u->reg[k].reg,
						      u->reg[k].count);

			if (reg < 0 || !(p->halves & u->reg[k].halves) ||
			    (same_order(a->s, p) &&
			     (!reads || is_merging(a->s, u->reg[k].role))))
				continue;
			report_hazard(a, p, reg, reads);
			p->file = 0; /* reported once */
		}
	}
	apply_wait(a);
}

/* ------------------------------------------------------------- issue ---- */

/* The registers that a load will write; none for stores. */
static void own_registers(struct owner *p)
{
	const struct isa_use *u = &p->site->use;

	for (int i = 0; i < u->n; i++) {
		if (!(u->reg[i].role & ISA_DST))
			continue;
		p->file = u->reg[i].file;
		p->reg = u->reg[i].reg;
		p->count = u->reg[i].count;
		p->halves = u->reg[i].halves;
		return;
	}
}

uint32_t check_issue(struct actor *a, uint8_t classes)
{
	struct shadow_wave *sw = a->sw;
	struct owner p = { .site = a->s, .seq = sw->seq, .need = classes };

	for (int c = 0; c < CLASS_COUNT; c++) {
		struct outstanding *o = &sw->outstanding[c];

		if (!(classes & 1 << c))
			continue;
		retire_class(sw, c, COUNTER_MAX - 1);
		o->seq[(o->first + o->n++) & COUNTER_MAX] = sw->seq;
	}
	own_registers(&p);
	if (p.file)
		sw->owner[sw->n_owners++] = p;
	return sw->seq++;
}
