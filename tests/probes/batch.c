/*
 * Slots that hang, fault or lose the device cost only themselves: each is put
 * in the place of an ordinary slot, in the middle of a batch.
 */
#include <string.h>

#include "probes/discover/discover.h"
#include "tests/tap.h"

struct seen {
	struct probe_slots slots;
	struct probe_result r[512];
	int times[512], n_idle, stop_after, n;
	_Atomic int stop;
};

static bool on_done(void *ctx, int slot, const struct probe_result *r)
{
	struct seen *s = ctx;

	s->r[slot] = *r;
	s->times[slot]++;
	if (++s->n == s->stop_after)
		s->stop = 1;
	return true;
}

static bool on_idle(void *ctx)
{
	((struct seen *)ctx)->n_idle++;
	return true;
}

/* Run all slots of one encoding, some replaced. */
static bool run(struct seen *s, const char *encoding, const char *const *swap,
		int n_swaps, int per_child, struct err *e)
{
	const char *names[] = { encoding };
	const struct cli_list l = { .v = names, .n = 1 };
	struct probe_batch_opts o = { .device = "soft",
				      .seed = 1,
				      .deadline_ns = 300000000,
				      .slots_per_child = per_child,
				      .idle = on_idle,
				      .done = on_done,
				      .ctx = s,
				      .stop = &s->stop };
	int todo[512];
	bool good;

	memset(s->r, 0, sizeof(s->r));
	memset(s->times, 0, sizeof(s->times));
	s->n = s->n_idle = s->stop = 0;
	if (!probe_slots_init(&s->slots, ISA_GFX11, &l, e))
		return false;
	for (int i = 0; i < n_swaps; i++)
		if (!probe_slot_replace(&s->slots, swap[i], e))
			return false;
	for (int i = 0; i < s->slots.n; i++)
		todo[i] = i;
	good = probe_batch(&s->slots, todo, s->slots.n, &o, e);
	return good;
}

static int count(const struct seen *s, enum res_slot_verdict v)
{
	int n = 0;

	for (int i = 0; i < s->slots.n; i++)
		n += s->times[i] && s->r[i].verdict == v;
	return n;
}

static struct seen plain, bad;

static void all_are_visited(void)
{
	struct err e = { 0 };

	if (!ok(run(&plain, "SOPC", NULL, 0, 50, &e), "a batch runs"))
		diag("%s", e.msg);
	is_i64(plain.n, 128, "every slot of SOPC is told of once");
	is_i64(plain.n_idle, 3, "128 slots in fifties make three children");
	is_i64(count(&plain, RES_SLOT_EXECUTES), 18,
	       "18 scalar comparisons execute");
	is_i64(count(&plain, RES_SLOT_ILLEGAL), 110, "the rest is illegal");
}

/* Only the swapped slots may differ from the plain run. */
static void others_are_same(const char *what, const int *swapped, int n)
{
	int wrong = 0;

	for (int i = 0; i < plain.slots.n; i++) {
		bool skip_it = false;

		for (int k = 0; k < n; k++)
			skip_it |= swapped[k] == i;
		if (!skip_it && (bad.r[i].verdict != plain.r[i].verdict ||
				 strcmp(bad.r[i].signature,
					plain.r[i].signature)))
			wrong++;
	}
	is_i64(wrong, 0, "%s: all other slots are as without it", what);
}

static void a_hang_costs_itself(void)
{
	/* s_branch to itself. */
	const char *swap[] = { "SOPC:5=0xbfa0ffff" };
	const int at[] = { 5 };
	struct err e = { 0 };

	ok(run(&bad, "SOPC", swap, 1, 256, &e), "endless loop: the batch ends");
	is_i64(bad.r[5].verdict, RES_SLOT_HANGS, "endless loop: it hangs");
	is_i64(bad.times[5], 1, "endless loop: told of once");
	is_i64(bad.n_idle, 2, "endless loop: asked again in its own process");
	others_are_same("endless loop", at, 1);
	probe_slots_fini(&bad.slots);
}

static void a_fault_costs_itself(void)
{
	/* flat_load_b32 v0, v[8:9]: no such address; v0 is loaded. */
	const char *swap[] = { "SOPC:0=0xdc500000,0x007c0008",
			       "SOPC:127=0xdc500000,0x007c0008",
			       "SOPC:64=0xbf900001" /* s_trap 1 */ };
	const int at[] = { 0, 64, 127 };
	struct err e = { 0 };

	ok(run(&bad, "SOPC", swap, 3, 256, &e), "wild load: the batch ends");
	is_i64(bad.r[0].verdict, RES_SLOT_FAULTS, "wild load, first: faults");
	has_str(bad.r[0].reason, "memory fault", "wild load: is told as such");
	is_i64(bad.r[127].verdict, RES_SLOT_FAULTS, "wild load, last: faults");
	is_i64(bad.r[64].verdict, RES_SLOT_FAULTS, "s_trap faults");
	others_are_same("wild load", at, 3);
	probe_slots_fini(&bad.slots);
}

static void ends_are_not_executions(void)
{
	/* s_endpgm where something else should be; also exec = 0. */
	const char *swap[] = { "SOPC:3=0xbfb00000", "SOPC:4=0xbefe0080" };
	struct err e = { 0 };

	ok(run(&bad, "SOPC", swap, 2, 256, &e), "early end: the batch ends");
	is_i64(bad.r[3].verdict, RES_SLOT_UNPROVEN,
	       "a kernel that ends without its second control proves nothing");
	is_i64(bad.r[4].verdict, RES_SLOT_EXECUTES,
	       "EXEC = 0 does not stop the epilogue");
	has_str(bad.r[4].signature, "exec_lo=00000000", "and is seen");
	probe_slots_fini(&bad.slots);
}

/* Lasting harm: s80.. hold the kernel's own pointers. */
static void control_guards(void)
{
	/* s_mov_b64 s[82:83], 0: then the results go to address 0. */
	const char *swap[] = { "SOPC:9=0xbed20180" };
	struct err e = { 0 };

	ok(run(&bad, "SOPC", swap, 1, 256, &e), "lost pointer: batch ends");
	ok(bad.r[9].verdict != RES_SLOT_EXECUTES,
	   "a slot that destroys the results is not said to execute");
	probe_slots_fini(&bad.slots);
}

static void stopping(void)
{
	struct err e = { 0 };

	bad.stop_after = 10;
	ok(!run(&bad, "SOPC", NULL, 0, 256, &e), "a stopped batch says so");
	is_i64(e.code, ERR_NONE, "without an error of its own");
	ok(bad.n >= 10 && bad.n < 128, "it stops in the middle");
	bad.stop_after = 0;
	probe_slots_fini(&bad.slots);
}

static void no_device(void)
{
	const struct probe_batch_opts o = { .device = "kfd:99",
					    .deadline_ns = 100000000,
					    .slots_per_child = 8,
					    .idle = on_idle,
					    .done = on_done,
					    .ctx = &bad };
	const int todo[] = { 0 };
	struct err e = { 0 };

	ok(!probe_batch(&plain.slots, todo, 1, &o, &e),
	   "a device that is not there stops the batch");
	has_str(e.msg, "no child process gets the device", "and is named");
}

int main(void)
{
	all_are_visited();
	a_hang_costs_itself();
	a_fault_costs_itself();
	ends_are_not_executions();
	control_guards();
	stopping();
	no_device();
	probe_slots_fini(&plain.slots);
	return plan_done();
}
