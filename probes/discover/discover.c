/*
 * probes/discover/discover.c - the whole discovery: what runs, where, and what
 * is stored.
 *
 * Every verdict goes to the database as it comes, so that the next invocation
 * with the same inputs resumes a run that was killed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cmd.h"
#include "probes/common/common.h"
#include "probes/discover/discover.h"

struct discovery {
	const struct probe_opts *o;
	struct err *e;
	struct probe_slots slots;
	struct arena mem;
	const char **oracle;	       /* [slots.n]; NULL = not asked */
	struct probe_result *emulated; /* [slots.n]; NULL = not run */
	char device[KFD_SPEC_BYTES];   /* spec that children open */
	char chip[16];
	enum isa_gen gen;
	bool *stored; /* [slots.n] */
	int *todo;    /* slots to run, in this order */
	int n_todo;
	struct res_db *db;
	int64_t run;
	struct progress bar;
};

/* ---------------------------------------------------------- what it is -- */

static bool choose_slots(struct discovery *d)
{
	if (!probe_slots_init(&d->slots, d->gen, &d->o->encodings, d->e))
		return false;
	for (int i = 0; i < d->o->replace.n; i++)
		if (!probe_slot_replace(&d->slots, d->o->replace.v[i], d->e))
			return false;
	probe_slots_keep(&d->slots, d->o);
	d->stored = xcalloc((size_t)d->slots.n, sizeof(*d->stored));
	d->todo = xcalloc((size_t)d->slots.n, sizeof(*d->todo));
	return true;
}

static bool ask_oracle(struct discovery *d)
{
	bool asked = false;

	if (!strcmp(d->o->oracle, "none"))
		return true;
	d->oracle = xcalloc((size_t)d->slots.n, sizeof(*d->oracle));
	if (!probe_oracle(&d->slots, d->o->oracle, d->chip, d->oracle, &d->mem,
			  &asked, d->e))
		return false;
	if (!asked) {
		free(d->oracle);
		d->oracle = NULL;
		if (!d->o->quiet)
			fold_printf(stderr, 2,
				    "t0-probe: %s is not installed: its "
				    "column is n/a\n",
				    d->o->oracle);
	}
	return true;
}

/* Comparable runs have equal inputs. */
static void describe_inputs(const struct discovery *d, struct buf *b)
{
	const struct probe_opts *o = d->o;

	buf_adds(b, "{\"encodings\":[");
	for (int i = 0; i < o->encodings.n; i++)
		buf_printf(b, "%s\"%s\"", i ? "," : "", o->encodings.v[i]);
	buf_adds(b, "],\"replace\":[");
	for (int i = 0; i < o->replace.n; i++)
		buf_printf(b, "%s\"%s\"", i ? "," : "", o->replace.v[i]);
	buf_printf(b, "],\"seed\":%llu}", (unsigned long long)o->seed);
}

/* Open the device to see which it is; children open it for themselves. */
static bool look_at_device(struct discovery *d, struct res_device *rd)
{
	struct kfd_dev *dev;

	if (!kfd_open(&dev, d->o->device, d->e))
		return false;
	if (!d->o->quiet)
		fold_printf(stderr, 2, "t0-probe: device: %s\n",
			    kfd_info(dev)->why);
	snprintf(d->device, sizeof(d->device), "%s", kfd_info(dev)->spec);
	probe_device_row(kfd_info(dev), &d->mem, rd);
	snprintf(d->chip, sizeof(d->chip), "%s", kfd_info(dev)->gfx);
	const bool known = probe_gen_of(d->chip, &d->gen, d->e);
	kfd_close(dev);
	return known;
}

/* ------------------------------------------------------------ database -- */

static bool mark_stored(void *ctx, const struct res_slot *s)
{
	struct discovery *d = ctx;

	for (int i = 0; i < d->slots.n; i++)
		if (d->slots.v[i].opcode == s->opcode &&
		    !strcmp(d->slots.v[i].encoding, s->encoding))
			d->stored[i] = true;
	return true;
}

static bool begin_run(struct discovery *d, const struct res_device *rd)
{
	struct res_start start = { .tool = "t0-probe discover",
				   .argc = d->o->argc,
				   .argv = d->o->argv,
				   .seed = d->o->seed,
				   .shard = &d->o->shard };
	struct buf inputs = { 0 };
	bool good;

	describe_inputs(d, &inputs);
	start.inputs = inputs.data;
	good = res_host_self(d->db, &start.host, d->e) &&
	       res_build_self(d->db, &start.build, d->e) &&
	       res_device_id(d->db, rd, &start.device, d->e) &&
	       res_run_resume(d->db, &start, &d->run, d->e);
	if (good && !d->run)
		good = res_run_begin(d->db, &start, &d->run, d->e);
	else if (good)
		good = res_slot_each(d->db, d->run, mark_stored, d, d->e);
	buf_fini(&inputs);
	return good;
}

static bool store_slot(struct discovery *d, int i, const struct probe_result *r)
{
	struct arena mem = { 0 };
	struct res_slot row;
	bool good;

	probe_verdict_row(&d->slots.v[i], r, d->oracle ? d->oracle[i] : NULL,
			  d->emulated ? &d->emulated[i] : NULL, &mem, &row);
	good = res_slot_put(d->db, d->run, &row, d->e);
	arena_fini(&mem);
	return good;
}

/* ------------------------------------------------------------- running -- */

static bool on_done(void *ctx, int slot, const struct probe_result *r)
{
	struct discovery *d = ctx;

	if (!d->stored[slot])
		progress_step(&d->bar, 1);
	d->stored[slot] = true;
	return store_slot(d, slot, r);
}

static bool on_idle(void *ctx)
{
	struct discovery *d = ctx;

	return res_batch_commit(d->db, d->e);
}

static bool on_emulated(void *ctx, int slot, const struct probe_result *r)
{
	struct discovery *d = ctx;

	d->emulated[slot] = *r;
	return true;
}

static bool keep_going(void *ctx)
{
	(void)ctx;
	return true;
}

static struct probe_batch_opts batch_opts(struct discovery *d)
{
	return (struct probe_batch_opts){
		.device = d->device,
		.seed = d->o->seed,
		.deadline_ns = d->o->deadline_ns,
		.slots_per_child = (int)d->o->batch,
		.idle = on_idle,
		.done = on_done,
		.ctx = d,
		.stop = d->o->stop,
	};
}

/* Ordinary slots first; those that may hang or end the wave last. */
static void order_slots(struct discovery *d)
{
	for (int last = 0; last < 2; last++)
		for (int i = 0; i < d->slots.n; i++)
			if (!d->stored[i] && !d->slots.v[i].graphics &&
			    d->slots.v[i].last == last)
				d->todo[d->n_todo++] = i;
}

static bool second_opinion(struct discovery *d)
{
	struct probe_batch_opts o = batch_opts(d);
	char device[32];

	d->emulated = xcalloc((size_t)d->slots.n, sizeof(*d->emulated));
	for (int i = 0; i < d->slots.n; i++)
		d->emulated[i].verdict = RES_SLOT_UNPROVEN;
	snprintf(device, sizeof(device), "soft:%s", d->chip);
	o.device = device;
	o.idle = keep_going;
	o.done = on_emulated;
	return probe_batch(&d->slots, d->todo, d->n_todo, &o, d->e);
}

static bool store_graphics(struct discovery *d)
{
	const struct probe_result r = { .verdict = RES_SLOT_UNPROVEN,
					.reason = "graphics only: not run" };

	for (int i = 0; i < d->slots.n; i++)
		if (d->slots.v[i].graphics && !d->stored[i] &&
		    !store_slot(d, i, &r))
			return false;
	return true;
}

static bool run_slots(struct discovery *d, bool hardware)
{
	struct probe_batch_opts o = batch_opts(d);
	bool good;

	order_slots(d);
	if (d->n_todo < d->slots.n && !d->o->quiet)
		for (int i = 0; i < d->slots.n; i++)
			if (d->stored[i]) {
				fold_printf(stderr, 2,
					    "t0-probe: going on with run "
					    "%lld: %d slots to do\n",
					    (long long)d->run, d->n_todo);
				break;
			}
	if ((hardware || d->o->second_opinion) && !second_opinion(d))
		return false;
	progress_init(&d->bar, "slots", (uint64_t)d->n_todo, d->o->quiet);
	res_batch_begin(d->db);
	good = store_graphics(d) &&
	       probe_batch(&d->slots, d->todo, d->n_todo, &o, d->e);
	progress_fini(&d->bar);
	if (good)
		return res_batch_end(d->db, d->e);
	/* What is there is kept, and the first error is the one to tell. */
	(void)res_batch_end(d->db, NULL);
	return false;
}

/* ------------------------------------------------------------- the end -- */

static bool print_report(struct discovery *d)
{
	const struct probe_opts *o = d->o;
	FILE *out = stdout;
	bool good;

	if (o->format_out) {
		out = fopen(o->format_out, "w");
		if (!out)
			return err_set(d->e, ERR_IO, "%s: cannot be written",
				       o->format_out);
	}
	if (o->format != TABLE_TEXT)
		good = probe_report_slots(d->db, d->run, o->format, out, d->e);
	else
		good = probe_report(d->db, d->run, out, d->e) &&
		       probe_report_changes(d->db, d->run, out, d->e);
	if (o->format_out && fclose(out) && good)
		good = err_set(d->e, ERR_IO, "%s: cannot be written",
			       o->format_out);
	return good && stdout_check(d->e);
}

static int finish_run(struct discovery *d, bool good)
{
	if (good) {
		good = res_run_finish(d->db, d->run, RES_COMPLETE, EXIT_YES,
				      NULL, d->e) &&
		       print_report(d);
		return good ? EXIT_YES : err_exit_code(d->e);
	}
	if (probe_stopped(d->o))
		err_set(d->e, ERR_STOPPED,
			"the same command goes on with run "
			"%lld",
			(long long)d->run);
	const int code = probe_stopped(d->o) ? cmd_stop_status(*d->o->stop) :
					       err_exit_code(d->e);
	(void)res_run_finish(d->db, d->run,
			     probe_stopped(d->o) ? RES_INTERRUPTED : RES_FAILED,
			     code, d->e->msg, NULL);
	return code;
}

static int discover_slots(struct discovery *d)
{
	struct res_device rd;

	/* The database before the work: what cannot be kept is not begun. */
	d->db = res_open(d->o->db, RES_WRITE, d->e);
	if (!d->db || !look_at_device(d, &rd) || !choose_slots(d) ||
	    !ask_oracle(d) || !begin_run(d, &rd))
		return err_exit_code(d->e);
	return finish_run(d, run_slots(d, rd.origin == RES_HARDWARE));
}

int probe_discover(const struct probe_opts *o, struct err *e)
{
	struct discovery d = { .o = o, .e = e };
	const int code = discover_slots(&d);

	res_close(d.db);
	free(d.emulated);
	free(d.oracle);
	free(d.stored);
	free(d.todo);
	arena_fini(&d.mem);
	probe_slots_fini(&d.slots);
	return code;
}
