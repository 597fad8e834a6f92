/*
 * probes/tiers/tiers.c - t0-probe tiers: how far does this machine come?
 *
 * Each tier rests on those below: it runs only if they passed, and every check
 * stores its reason, also that of not having been run.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/common/common.h"
#include "probes/tiers/tiers.h"

static const char *const titles[] = {
	"driver and nodes",   "card visible",	 "runtime",
	"memory round trip",  "a kernel computes", "WMMA product",
	"bandwidth and FLOPS",
};

static bool add_check(struct tiers *t, const char *check,
		      enum res_answer answer, const char *reason)
{
	table_row(&t->table);
	table_cell(&t->table, 0, "%d", t->tier);
	table_cell(&t->table, 1, "%s", titles[t->tier]);
	table_cell(&t->table, 2, "%s", check);
	table_cell(&t->table, 3, "%s", res_answer_name(answer));
	table_cell(&t->table, 4, "%s", reason);
	if (t->n == TIERS_CHECKS_MAX)
		BUG("more than %d checks", TIERS_CHECKS_MAX);
	t->check[t->n++] = (struct tiers_check){
		.tier = t->tier,
		.name = arena_strdup(&t->mem, check),
		.answer = answer,
		.reason = arena_strdup(&t->mem, reason),
	};
	return answer == RES_PASS;
}

bool tiers_pass(struct tiers *t, const char *check, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return add_check(t, check, RES_PASS, text);
}

bool tiers_fail(struct tiers *t, const char *check, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return add_check(t, check, RES_FAIL, text);
}

bool tiers_verdict(struct tiers *t, const char *check, bool good,
		   const struct err *e, const char *reason)
{
	return add_check(t, check, good ? RES_PASS : RES_FAIL,
			 good ? reason : e->msg);
}

/* ------------------------------------------------------- tiers 0 to 2 --- */

static bool is_soft(const char *spec)
{
	return spec && !strncmp(spec, "soft", 4);
}

static bool tier_driver(struct tiers *t)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	int gpus = 0, hidden = 0;

	if (!kfd_list(NULL, &t->found, &t->n_found, &e))
		return tiers_fail(t, "nodes", "%s", e.msg);
	for (int i = 0; i < t->n_found; i++) {
		hidden += t->found[i].node.hidden;
		gpus += !is_soft(t->found[i].spec) && !t->found[i].node.hidden;
	}
	buf_printf(&text, "%d GPUs of /dev/kfd, %d hidden nodes; the gfx1100 "
		   "in software is built in", gpus, hidden);
	tiers_pass(t, "nodes", "%s", text.data);
	buf_fini(&text);
	return true;
}

/* Opening decides which one it is; that it can be opened is tier 2's. */
static bool tier_card(struct tiers *t)
{
	struct err e = { 0 };

	t->opened = kfd_open(&t->dev, t->o->device, &e);
	t->open_error = e;
	if (!t->opened && e.code == ERR_NODEV)
		return tiers_fail(t, "card", "%s", e.msg);
	if (!t->opened)
		return tiers_pass(t, "card", "there, but: %s", e.msg);
	const struct kfd_info *i = kfd_info(t->dev);
	t->emulated = strcmp(i->origin, "hardware") != 0;
	return tiers_pass(t, "card", "%s: %s, %s, %u CUs, %.1f GB, %s",
			  i->spec, i->name, i->pci, i->node.cu_count,
			  (double)i->node.vram_bytes * 1e-9,
			  i->node.large_bar ? "large BAR" : "small BAR");
}

static bool tier_runtime(struct tiers *t)
{
	struct kfd_clock c;
	struct err e = { 0 };
	char text[160];
	uint64_t left = 0;

	if (!t->opened)
		return tiers_fail(t, "open", "%s", t->open_error.msg);
	const struct kfd_info *i = kfd_info(t->dev);
	tiers_pass(t, "open", "KFD %u.%u, wave exceptions %s", i->kfd_major,
		   i->kfd_minor, i->runtime_enabled ? "reported" : "old style");
	bool good = kfd_queue_new(t->dev, NULL, &t->q, &e);
	good = tiers_verdict(t, "queue", good, &e, "an AQL queue is made");
	bool clock = kfd_clock_read(t->dev, &c, &e);
	snprintf(text, sizeof(text), "%.3f MHz", kfd_clock_hz(t->dev) * 1e-6);
	good = tiers_verdict(t, "clock", clock, &e, text) && good;
	if (kfd_vram_available(t->dev, &left, NULL))
		tiers_pass(t, "free memory", "%.2f of %.2f GB",
			   (double)left * 1e-9,
			   (double)i->node.vram_bytes * 1e-9);
	return good;
}

/* ------------------------------------------------------------- the run -- */

static bool (*const tier_fn[])(struct tiers *) = {
	tier_driver,	tier_card,	tier_runtime, tiers_memory,
	tiers_kernel, tiers_wmma, tiers_speed,
};
_Static_assert(ARRAY_SIZE(tier_fn) == ARRAY_SIZE(titles), "one each");

static void run_tiers(struct tiers *t)
{
	bool go = true;

	t->reached = -1;
	for (t->tier = 0; t->tier < (int)ARRAY_SIZE(tier_fn); t->tier++) {
		char why[64];

		const bool stopped = probe_stopped(t->o);

		if (go && !stopped && tier_fn[t->tier](t)) {
			t->reached = t->tier;
			continue;
		}
		if (go && !stopped) {
			go = false;
			continue;
		}
		if (stopped)
			snprintf(why, sizeof(why), "not run: asked to end");
		else
			snprintf(why, sizeof(why),
				 "not run: tier %d did not pass",
				 t->reached + 1);
		add_check(t, "all", RES_NODATA, why);
	}
}

static bool store_checks(struct tiers *t, struct probe_run *r, struct err *e)
{
	bool good = true;

	for (int i = 0; i < t->n && good; i++) {
		char name[96];

		snprintf(name, sizeof(name), "tier %d: %s", t->check[i].tier,
			 t->check[i].name);
		good = probe_run_verdict(r, "tiers", name, t->check[i].answer,
					 t->check[i].reason, e);
	}
	for (int i = 0; i < t->n_speeds && good; i++) {
		r->before = t->speed[i].before;
		r->after = t->speed[i].after;
		good = probe_run_samples(r, "tiers", t->speed[i].name, NULL,
					 t->speed[i].metric, t->speed[i].unit,
					 RES_HIGHER, t->speed[i].v,
					 t->speed[i].n, e);
	}
	return good;
}

/* The one line that everybody wants to know. */
static void print_conclusion(struct tiers *t, struct buf *out)
{
	const int last = (int)ARRAY_SIZE(tier_fn) - 1;

	buf_printf(out, "device: %s; ",
		   t->opened ? kfd_info(t->dev)->why : "none");
	if (t->opened && *kfd_info(t->dev)->reason)
		buf_printf(out, "no usable gfx11 GPU: %s; ",
			   kfd_info(t->dev)->reason);
	if (t->reached < 0)
		buf_adds(out, "no tier reached");
	else
		buf_printf(out, "tier %d of %d reached (%s)%s", t->reached,
			   last, titles[t->reached],
			   t->emulated ? ", emulated" : "");
}

int probe_tiers(const struct probe_opts *o, struct err *e)
{
	struct tiers *t = xcalloc(1, sizeof(*t));
	struct probe_run r = { .db = res_open(o->db, RES_WRITE, e) };
	struct buf text = { 0 };
	int code = EXIT_YES;
	bool good = r.db;

	t->o = o;
	table_init(&t->table, "#tier,name,check,answer,reason");
	if (good) {
		run_tiers(t);
		print_conclusion(t, &text);
		if (o->require >= 0 && t->reached < o->require)
			code = EXIT_NO;
		good = probe_run_begin(&r, o, "t0-probe tiers",
				       t->opened ? kfd_info(t->dev) : NULL,
				       NULL, e) &&
		       store_checks(t, &r, e);
	}
	kfd_close(t->dev);
	good = probe_run_end(&r, o, good, code, e) &&
	       probe_print_table(o, &t->table, NULL, e);
	if (good && o->format == TABLE_TEXT && !o->format_out)
		fold_printf(stdout, 2, "%s\n", text.data);
	if (good && code)
		err_set(e, ERR_NODEV, "tier %d was required; %s", o->require,
			text.data);
	buf_fini(&text);
	table_fini(&t->table);
	arena_fini(&t->mem);
	free(t->found);
	free(t);
	return good ? code : err_exit_code(e);
}
