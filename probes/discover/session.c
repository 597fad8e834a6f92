/*
 * probes/discover/session.c - one slot on an open device.
 *
 * Opening runs a kernel around s_nop first.  It must end with both controls
 * right and nothing changed, or no verdict of this device would mean anything.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/discover/discover.h"

#define S_NOP_0 0xbf800000u

struct probe_session {
	char device[64];
	enum isa_gen gen;
	uint64_t seed, deadline_ns;
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_mem *in, *out, *mem;
	/* Two runs of a slot must agree: `again` is the second. */
	struct probe_state init, before, after, again;
};

const struct probe_state *probe_session_before(const struct probe_session *s)
{
	return &s->before;
}

const struct probe_state *probe_session_after(const struct probe_session *s)
{
	return &s->after;
}

/* ------------------------------------------------------------ buffers --- */

static void write_vgprs4(uint8_t *to, uint32_t (*v)[PROBE_LANES], int n)
{
	uint32_t *dw = (uint32_t *)to;

	for (int r = 0; r < n; r++)
		for (int l = 0; l < PROBE_LANES; l++)
			dw[r / 4 * 128 + l * 4 + r % 4] = v[r][l];
}

static void read_vgprs4(const uint8_t *from, uint32_t (*v)[PROBE_LANES], int n)
{
	const uint32_t *dw = (const uint32_t *)from;

	for (int r = 0; r < n; r++)
		for (int l = 0; l < PROBE_LANES; l++)
			v[r][l] = dw[r / 4 * 128 + l * 4 + r % 4];
}

static void write_input(struct probe_session *s)
{
	uint8_t *in = s->in->cpu;

	memcpy(in + PROBE_IN_SGPR, s->init.s, sizeof(s->init.s));
	memcpy(in + PROBE_IN_SGPR + sizeof(s->init.s), s->init.vcc, 8);
	memcpy(in + PROBE_IN_LDS, s->init.lds, sizeof(s->init.lds));
	write_vgprs4(in + PROBE_IN_VGPR, s->init.v, PROBE_VGPRS);
}

static void read_output(struct probe_session *s, struct probe_state *st)
{
	const uint8_t *out = s->out->cpu;
	uint32_t more[PROBE_LANES];
	const uint32_t *saved = more + PROBE_SGPRS - 32;

	memcpy(st->s, out + PROBE_OUT_S0, 4 * 32);
	memcpy(more, out + PROBE_OUT_S32, sizeof(more));
	memcpy(st->s + 32, more, 4 * (PROBE_SGPRS - 32));
	st->scc = saved[0];
	memcpy(st->exec, saved + 1, 8);
	memcpy(st->vcc, saved + 3, 8);
	st->m0 = saved[5];
	st->mode = saved[6];
	memcpy(st->lds, out + PROBE_OUT_LDS, sizeof(st->lds));
	read_vgprs4(out + PROBE_OUT_SCRATCH, st->scratch, PROBE_SCRATCH_DW);
	read_vgprs4(out + PROBE_OUT_VGPR, st->v, PROBE_VGPRS);
	memcpy(st->mem, s->mem->cpu, sizeof(st->mem));
}

static bool control_holds(const struct probe_session *s, bool after)
{
	const uint32_t *got = (const uint32_t *)((const uint8_t *)s->out->cpu +
						 (after ? PROBE_OUT_AFTER :
							  PROBE_OUT_BEFORE));

	for (uint32_t l = 0; l < PROBE_LANES; l++)
		if (got[l] != probe_control(after, l))
			return false;
	return true;
}

/* -------------------------------------------------------------- device -- */

bool probe_gen_of(const char *gfx, enum isa_gen *gen, struct err *e)
{
	if (isa_chip_parse(gfx, gen))
		return true;
	return err_set(e, ERR_NODEV,
		       "the device is %s, whose encodings are not "
		       "known; choose one with --device (soft is always there)",
		       gfx);
}

static void close_device(struct probe_session *s)
{
	kfd_close(s->dev);
	s->dev = NULL;
	s->q = NULL;
	s->in = s->out = s->mem = NULL;
}

static bool open_device(struct probe_session *s, struct err *e)
{
	/* Host memory: what was stored is seen even when the kernel died. */
	return kfd_open(&s->dev, s->device, e) &&
	       probe_gen_of(kfd_info(s->dev)->gfx, &s->gen, e) &&
	       kfd_queue_new(s->dev, NULL, &s->q, e) &&
	       kfd_mem_alloc(s->dev, KFD_GTT, PROBE_IN_BYTES, "probe input",
			     &s->in, e) &&
	       kfd_mem_alloc(s->dev, KFD_GTT, PROBE_OUT_BYTES, "probe output",
			     &s->out, e) &&
	       kfd_mem_alloc(s->dev, KFD_GTT, 4 * PROBE_MEM_DW, "probe memory",
			     &s->mem, e);
}

enum ending { ENDED, STOPPED };

/* Launch and wait; STOPPED leaves the reason in *why. */
static enum ending launch_kernel(struct probe_session *s,
				 const struct kfd_kernel *k, struct err *why)
{
	const uint64_t ptr[2] = { s->in->va, s->out->va };
	const struct kfd_launch l = {
		.kernel = k,
		.grid = { PROBE_LANES, 1, 1 },
		.wg = { PROBE_LANES, 1, 1 },
		.args = ptr,
		.args_bytes = sizeof(ptr),
		.deadline_ns = time_mono_ns() + s->deadline_ns,
	};

	memset(s->out->cpu, 0, PROBE_OUT_BYTES);
	memcpy(s->mem->cpu, s->init.mem, sizeof(s->init.mem));
	return kfd_run(s->q, &l, NULL, why) ? ENDED : STOPPED;
}

static bool is_same_state(const struct probe_state *a,
			  const struct probe_state *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool load_slot(struct probe_session *s, const struct probe_slot *slot,
		      const struct kfd_kernel **k, uint64_t *pc, struct err *e)
{
	struct probe_kernel code;
	struct kfd_raw_desc desc = probe_kernel_desc(slot->gen, slot->name);
	bool good;

	probe_kernel_init(&code, slot);
	good = kfd_code_raw(s->dev, code.code.data, code.code.len, &desc, k, e);
	if (good) {
		const uint64_t next = (*k)->entry_va + code.marks_at + 4;

		*pc = (*k)->entry_va + code.slot_at;
		s->before = s->init;
		s->before.s[PROBE_S_NEXT] = (uint32_t)next;
		s->before.s[PROBE_S_NEXT + 1] = (uint32_t)(next >> 32);
		for (int i = 0; i < PROBE_MARKERS; i++)
			s->before.s[PROBE_S_MARK + i] = 1;
	}
	probe_kernel_fini(&code);
	return good;
}

static bool check_device(struct probe_session *s, struct err *e)
{
	const struct probe_slot nop = { .gen = s->gen,
					.encoding = "control",
					.n_words = 1,
					.name = "control",
					.word = { S_NOP_0 } };
	const struct kfd_kernel *k;
	char what[320];
	uint64_t pc;

	if (!load_slot(s, &nop, &k, &pc, e))
		return false;
	if (launch_kernel(s, k, e) != ENDED)
		return err_wrap(e, "the control kernel did not end");
	kfd_code_unload(k->code);
	if (!control_holds(s, false) || !control_holds(s, true))
		return err_set(e, ERR_DEVICE,
			       "the control kernel computed "
			       "wrong values: no verdict of this device would "
			       "mean anything");
	read_output(s, &s->after);
	s->init.mode = s->before.mode = s->after.mode;
	if (is_same_state(&s->before, &s->after))
		return true;
	probe_signature(&s->before, &s->after, &s->after, pc, what,
			sizeof(what));
	return err_set(e, ERR_DEVICE,
		       "the control kernel (s_nop) changed %s: "
		       "no verdict of this device would mean anything",
		       what);
}

static bool reopen_device(struct probe_session *s, struct err *e)
{
	close_device(s);
	if (!open_device(s, e))
		return false;
	probe_state_init(&s->init, s->gen, s->seed, s->mem->va);
	write_input(s);
	return check_device(s, e);
}

struct probe_session *probe_session_open(const char *device, uint64_t seed,
					 uint64_t deadline_ns, struct err *e)
{
	struct probe_session *s = xcalloc(1, sizeof(*s));

	snprintf(s->device, sizeof(s->device), "%s", device ? device : "");
	s->seed = seed;
	s->deadline_ns = deadline_ns;
	if (reopen_device(s, e))
		return s;
	probe_session_close(s);
	return NULL;
}

void probe_session_close(struct probe_session *s)
{
	if (s)
		close_device(s);
	free(s);
}

/* ------------------------------------------------------------ verdicts -- */

/* After a fault: a live queue again, on a fresh device where it was lost. */
static bool recover_device(struct probe_session *s, bool *fresh, struct err *e)
{
	*fresh = kfd_lost(s->dev, NULL);
	if (!*fresh) {
		(void)kfd_queue_free(s->q, NULL);
		s->q = NULL;
		if (kfd_queue_new(s->dev, NULL, &s->q, NULL))
			return true;
		*fresh = true;
	}
	return reopen_device(s, e);
}

static void judge_stop(struct probe_session *s, const struct err *why,
		       struct probe_result *r)
{
	struct kfd_fault f = { 0 };
	const char *what;

	(void)kfd_queue_fault(s->q, &f);
	what = kfd_fault_name(f.kind);
	switch (f.kind) {
	case KFD_FAULT_UNSUPPORTED:
		r->verdict = RES_SLOT_UNPROVEN;
		r->unsupported = true;
		break;
	case KFD_FAULT_ILLEGAL:
		r->verdict = RES_SLOT_ILLEGAL;
		break;
	case KFD_FAULT_HANG:
	case KFD_FAULT_RESET:
		r->verdict = RES_SLOT_HANGS;
		what = "did not end by its deadline";
		break;
	case KFD_FAULT_NONE: /* it was never sent */
		r->verdict = RES_SLOT_UNPROVEN;
		what = why->msg;
		break;
	default:
		r->verdict = RES_SLOT_FAULTS;
	}
	snprintf(r->reason, sizeof(r->reason), "%.255s", what);
}

static void set_unproven(struct probe_result *r, const char *why)
{
	r->verdict = RES_SLOT_UNPROVEN;
	snprintf(r->reason, sizeof(r->reason), "%s", why);
}

static bool ends_program(const struct probe_slot *slot)
{
	return slot->op && isa_op_info(slot->op)->flags & ISA_END;
}

bool probe_session_check(struct probe_session *s, struct err *e)
{
	return check_device(s, e);
}

/* It ended: what do the controls say? */
static void judge_end(const struct probe_session *s,
		      const struct probe_slot *slot, struct probe_result *r)
{
	if (control_holds(s, true)) {
		r->verdict = RES_SLOT_EXECUTES;
	} else if (ends_program(slot)) {
		r->verdict = RES_SLOT_EXECUTES;
		snprintf(r->signature, sizeof(r->signature), "ends");
	} else {
		set_unproven(r, "the kernel ended without its second control");
	}
}

bool probe_session_run(struct probe_session *s, const struct probe_slot *slot,
		       struct probe_result *r, struct err *e)
{
	const struct kfd_kernel *k;
	struct err why = { 0 };
	bool fresh = false;
	uint64_t pc;

	memset(r, 0, sizeof(*r));
	if (!load_slot(s, slot, &k, &pc, e))
		return false;
	for (int run = 0; run < 2; run++) {
		if (launch_kernel(s, k, &why) != ENDED) {
			judge_stop(s, &why, r);
			break;
		}
		judge_end(s, slot, r);
		if (r->verdict != RES_SLOT_EXECUTES || *r->signature)
			break;
		read_output(s, run ? &s->again : &s->after);
	}
	/* Nothing is known of a slot that was not even reached. */
	if (!control_holds(s, false)) {
		r->signature[0] = 0;
		set_unproven(r, "the first control is missing");
	}
	if (r->verdict == RES_SLOT_EXECUTES && !*r->signature)
		probe_signature(&s->before, &s->after, &s->again, pc,
				r->signature, sizeof(r->signature));
	if (why.code && !recover_device(s, &fresh, e))
		return err_wrap(e, "after %s:%d", slot->encoding, slot->opcode);
	if (!fresh)
		kfd_code_unload(k->code);
	return true;
}
