/*
 * probes/cmd/cmd_discover.c - t0-probe discover: all slots, a list, or one
 * slot.
 */
#include <string.h>

#include "probes/cmd/cmd.h"

/* --replace */
static bool replace_words(const struct probe_cmd *x, struct probe_slots *s,
			  struct err *e)
{
	for (int i = 0; i < x->o.replace.n; i++)
		if (!probe_slot_replace(s, x->o.replace.v[i], e))
			return false;
	return true;
}

/* Of the device that would run them. */
static bool find_gen(const struct probe_cmd *x, enum isa_gen *gen,
		     struct err *e)
{
	char gfx[16];

	return kfd_find_chip(x->o.device, gfx, e) && probe_gen_of(gfx, gen, e);
}

/* --list and --dry-run: the slots, and the words that would run. */
static bool list_slots(const struct probe_cmd *x, struct err *e)
{
	struct probe_slots s;
	enum isa_gen gen;
	struct table t;
	bool good;

	if (!find_gen(x, &gen, e) ||
	    !probe_slots_init(&s, gen, &x->o.encodings, e))
		return false;
	if (!replace_words(x, &s, e)) {
		probe_slots_fini(&s);
		return false;
	}
	probe_slots_keep(&s, &x->o);
	table_init(&t, "encoding,#opcode,name,words,runs");
	for (int i = 0; i < s.n; i++) {
		const struct probe_slot *v = &s.v[i];
		struct buf w = { 0 };

		for (int k = 0; k < v->n_words; k++)
			buf_printf(&w, "%s%08x", k ? " " : "", v->word[k]);
		table_row(&t);
		table_cell(&t, 0, "%s", v->encoding);
		table_cell(&t, 1, "%d", v->opcode);
		if (v->name)
			table_cell(&t, 2, "%s", v->name);
		table_cell(&t, 3, "%s", w.data);
		table_cell(&t, 4, "%s",
			   v->graphics ? "no: graphics" :
			   v->last     ? "last" :
					 "yes");
		buf_fini(&w);
	}
	good = probe_print_table(&x->o, &t, NULL, e);
	table_fini(&t);
	probe_slots_fini(&s);
	return good;
}

static bool print_slot(const struct probe_cmd *x, struct probe_session *ps,
		       const struct probe_slot *slot,
		       const struct probe_result *r, struct err *e)
{
	struct table t;
	bool good;

	if (!x->o.quiet)
		fprintf(stderr, "%s:%d %s %s %s%s\n", slot->encoding,
			slot->opcode, slot->name ? slot->name : "(unknown)",
			res_slot_verdict_name(r->verdict), r->reason,
			r->signature);
	if (r->verdict == RES_SLOT_EXECUTES && strcmp(r->signature, "ends"))
		probe_signature_table(probe_session_before(ps),
				      probe_session_after(ps), &t);
	else
		table_init(&t, "where,#lane,before,after");
	good = probe_print_table(&x->o, &t, NULL, e);
	table_fini(&t);
	return good;
}

/* --slot: one slot, in this process, with every register that changed. */
static bool run_slot(const struct probe_cmd *x, struct err *e)
{
	struct probe_slots s;
	struct probe_session *ps = NULL;
	const struct probe_slot *slot;
	struct probe_result r;
	enum isa_gen gen;
	bool good;

	if (!find_gen(x, &gen, e) || !probe_slots_init(&s, gen, NULL, e))
		return false;
	slot = replace_words(x, &s, e) ? probe_slot_parse(&s, x->slot, e) :
					 NULL;
	if (slot && slot->graphics)
		err_set(e, ERR_UNSUPPORTED,
			"%s needs graphics state and is "
			"not run",
			slot->name);
	else if (slot)
		ps = probe_session_open(x->o.device, x->o.seed,
					x->o.deadline_ns, e);
	good = ps && probe_session_run(ps, slot, &r, e) &&
	       print_slot(x, ps, slot, &r, e);
	probe_session_close(ps);
	probe_slots_fini(&s);
	return good;
}

int probe_cmd_discover(const struct probe_cmd *x, struct err *e)
{
	if (x->list)
		return list_slots(x, e) ? EXIT_YES : err_exit_code(e);
	if (x->slot)
		return run_slot(x, e) ? EXIT_YES : err_exit_code(e);
	return probe_discover(&x->o, e);
}
