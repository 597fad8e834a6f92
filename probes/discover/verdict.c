/*
 * probes/discover/verdict.c - observation against table, errata, oracle and
 * emulation.
 */
#include <string.h>

#include "isa/tables/tables.h"
#include "probes/discover/discover.h"

static enum res_slot_verdict table_verdict(const struct probe_slot *slot)
{
	return slot->op ? RES_SLOT_EXECUTES : RES_SLOT_ILLEGAL;
}

static bool outcome_is(enum isa_outcome o, enum res_slot_verdict v)
{
	static const enum res_slot_verdict as[] = {
		[ISA_OUTCOME_EXECUTES] = RES_SLOT_EXECUTES,
		[ISA_OUTCOME_ILLEGAL] = RES_SLOT_ILLEGAL,
		[ISA_OUTCOME_FAULTS] = RES_SLOT_FAULTS,
		[ISA_OUTCOME_HANGS] = RES_SLOT_HANGS,
	};

	return o == ISA_OUTCOME_ANY || v == RES_SLOT_UNPROVEN || as[o] == v;
}

/* "v_add_f32_e32" is "v_add_f32". */
static bool same_name(const char *oracle, const char *name)
{
	static const char *const suffix[] = { "_e32", "_e64" };
	const size_t n = strlen(name);

	if (!strcmp(oracle, name))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++)
		if (!strncmp(oracle, name, n) && !strcmp(oracle + n, suffix[i]))
			return true;
	return false;
}

static void add_part(struct buf *b, const char *fmt, const char *a,
		     const char *c)
{
	if (b->len)
		buf_adds(b, "; ");
	if (c)
		buf_printf(b, "%s %s, %s", fmt, a, c);
	else
		buf_printf(b, "%s %s", fmt, a);
}

static void against_table(const struct probe_slot *slot,
			  const struct probe_result *r, struct buf *b)
{
	if (slot->graphics || r->unsupported)
		return;
	if (r->verdict == RES_SLOT_UNPROVEN)
		add_part(b, "not judged:", r->reason, NULL);
	else if (r->verdict != table_verdict(slot))
		add_part(b,
			 slot->op ? "the table knows it, the device:" :
				    "the table does not know it, the device:",
			 res_slot_verdict_name(r->verdict),
			 *r->reason ? r->reason : NULL);
}

static void against_oracle(const struct probe_slot *slot, const char *oracle,
			   struct buf *b)
{
	/* Of encodings that the table leaves out it alone has a name. */
	if (!oracle || (slot->graphics && !slot->op))
		return;
	if (slot->op && !*oracle)
		add_part(b, "the disassembler refuses", slot->name, NULL);
	else if (*oracle && (!slot->name || !same_name(oracle, slot->name)))
		add_part(b, "the disassembler calls it", oracle, NULL);
}

static void against_emulation(const struct probe_result *r,
			      const struct probe_result *emulated,
			      struct res_slot *row, struct buf *b)
{
	row->emulated_ok = -1;
	if (!emulated || emulated->unsupported ||
	    emulated->verdict != RES_SLOT_EXECUTES ||
	    r->verdict != RES_SLOT_EXECUTES)
		return;
	row->emulated_ok = !strcmp(r->signature, emulated->signature);
	if (!row->emulated_ok)
		add_part(b, "the emulation gives", emulated->signature, NULL);
}

void probe_verdict_row(const struct probe_slot *slot,
		       const struct probe_result *r, const char *oracle,
		       const struct probe_result *emulated, struct arena *mem,
		       struct res_slot *row)
{
	const struct isa_erratum *x =
		isa_erratum_at(slot->gen, slot->encoding, slot->opcode);
	struct buf b = { 0 };

	*row = (struct res_slot){
		.encoding = slot->encoding,
		.opcode = slot->opcode,
		.form = "",
		.mnemonic = slot->name,
		.verdict = r->verdict,
		.signature = *r->signature ? r->signature : NULL,
		.reason = *r->reason ? r->reason : NULL,
		.expected = slot->graphics ?
				    "decode-only" :
				    res_slot_verdict_name(table_verdict(slot)),
		.oracle = oracle,
	};
	against_table(slot, r, &b);
	against_oracle(slot, oracle, &b);
	against_emulation(r, emulated, row, &b);
	if (b.len) {
		row->difference = arena_strdup(mem, b.data);
		/* An erratum that says something else explains nothing. */
		if (x && outcome_is(x->outcome, r->verdict) &&
		    row->emulated_ok != 0)
			row->errata = x->reason;
	}
	buf_fini(&b);
}
