/*
 * t0-probe - what the machine does, found out by running it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "probes/discover/discover.h"
#include "probes/host/host.h"
#include "probes/micro/micro.h"
#include "probes/tiers/tiers.h"

#define DEADLINE_MS_DEFAULT 1000
#define DEADLINE_MS_MAX	    60000
#define BATCH_DEFAULT	    256
#define BATCH_MAX	    65536

static volatile int stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

struct options {
	struct probe_opts o;
	const char *slot;
	bool json, csv, list, dry_run;
};

static bool check(struct options *x, struct err *e)
{
	if (x->json && x->csv)
		return err_set(e, ERR_USAGE, "--json and --csv exclude each "
			       "other");
	if (!x->o.deadline_ms || x->o.deadline_ms > DEADLINE_MS_MAX)
		return err_set(e, ERR_USAGE, "--deadline-ms %llu: wanted 1..%d",
			       (unsigned long long)x->o.deadline_ms,
			       DEADLINE_MS_MAX);
	if (x->o.samples > PROBE_SAMPLES_MAX)
		return err_set(e, ERR_USAGE, "--samples %llu: wanted 1..%d",
			       (unsigned long long)x->o.samples,
			       PROBE_SAMPLES_MAX);
	if (!x->o.batch || x->o.batch > BATCH_MAX)
		return err_set(e, ERR_USAGE, "--batch %llu: wanted 1..%d",
			       (unsigned long long)x->o.batch, BATCH_MAX);
	x->o.format = x->json ? TABLE_JSON : x->csv ? TABLE_CSV : TABLE_TEXT;
	return true;
}

/* --list and --dry-run: the slots, and the words that would run. */
static bool list(const struct options *x, struct err *e)
{
	struct probe_slots s;
	struct table t;
	bool good;

	if (!probe_slots_init(&s, &x->o.encodings, e))
		return false;
	for (int i = 0; i < x->o.replace.n; i++)
		if (!probe_slot_replace(&s, x->o.replace.v[i], e)) {
			probe_slots_fini(&s);
			return false;
		}
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
		table_cell(&t, 4, "%s", v->graphics ? "no: graphics" :
					v->last ? "last" : "yes");
		buf_fini(&w);
	}
	good = probe_print_table(&x->o, &t, e);
	table_fini(&t);
	probe_slots_fini(&s);
	return good;
}

static bool print_slot(const struct options *x, struct probe_session *ps,
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
	good = probe_print_table(&x->o, &t, e);
	table_fini(&t);
	return good;
}

/* --slot: one slot, in this process, with every register that changed. */
static bool one_slot(const struct options *x, struct err *e)
{
	struct probe_slots s;
	struct probe_session *ps = NULL;
	const struct probe_slot *slot;
	struct probe_result r;
	bool good;

	if (!probe_slots_init(&s, NULL, e))
		return false;
	good = true;
	for (int i = 0; i < x->o.replace.n && good; i++)
		good = probe_slot_replace(&s, x->o.replace.v[i], e);
	slot = good ? probe_slot_parse(&s, x->slot, e) : NULL;
	if (slot && slot->graphics)
		err_set(e, ERR_UNSUPPORTED, "%s needs graphics state and is "
			"not run", slot->name);
	else if (slot)
		ps = probe_session_open(x->o.device, x->o.seed,
					x->o.deadline_ms * 1000000, e);
	good = ps && probe_session_run(ps, slot, &r, e) &&
	       print_slot(x, ps, slot, &r, e);
	probe_session_close(ps);
	probe_slots_fini(&s);
	return good;
}

static int discover(struct options *x, struct err *e)
{
	if (x->list || x->dry_run)
		return list(x, e) ? EXIT_YES : err_exit_code(e);
	if (x->slot)
		return one_slot(x, e) ? EXIT_YES : err_exit_code(e);
	return probe_discover(&x->o, e);
}

typedef int probe_fn(const struct probe_opts *o, struct err *e);

/*
 * What each command does on a GPU and on the host; NULL = cannot be.  `timed`:
 * on the soft device with the simulator's clock, too.
 */
static const struct verb {
	const char *name;
	probe_fn *gpu, *host;
	bool timed;
} verbs[] = {
	{ "discover", NULL, NULL, false }, /* takes more options than these */
	{ "tiers", probe_tiers, NULL, false },
	{ "dispatch", probe_dispatch, NULL, false },
	{ "latency", micro_latency, host_latency, true },
	{ "throughput", micro_throughput, host_throughput, true },
	{ "overlap", micro_overlap, host_overlap, true },
	{ "memory", micro_memory, host_memory, true },
	{ "lds", micro_lds, NULL, true },
	{ "branch", micro_branch, NULL, true },
	{ "fetch", micro_fetch, NULL, true },
	{ "waves", micro_waves, NULL, true },
};

static const struct verb *verb_find(const char *name, struct err *e)
{
	struct buf all = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!strcmp(verbs[i].name, name)) {
			buf_fini(&all);
			return &verbs[i];
		}
		buf_printf(&all, "%s'%s'", i ? " or " : "", verbs[i].name);
	}
	err_set(e, ERR_USAGE, "wanted the command %s%s%s; see --help",
		all.data, *name ? ", got " : "", name);
	buf_fini(&all);
	return NULL;
}

static int run(struct options *x, int argc, char **argv, int first,
	       struct err *e)
{
	const struct verb *v = verb_find(first + 1 == argc ? argv[first] : "",
					 e);
	const bool host = x->o.device && !strcmp(x->o.device, "host");
	const bool sim = x->o.device && !strcmp(x->o.device, "sim");
	char spec[256];

	if (!v || !check(x, e))
		return EXIT_TROUBLE;
	if ((host && !v->host) || (sim && !v->timed)) {
		err_set(e, ERR_UNSUPPORTED, "%s does not run on %s; see --help",
			v->name, host ? "the host" : "the simulator");
		return EXIT_TROUBLE;
	}
	if (host)
		return v->host(&x->o, e);
	if (sim)
		return v->gpu(&x->o, e);
	x->o.device = kfd_spec(x->o.device, getenv("T0_VISIBLE_DEVICES"),
			       spec);
	return v->gpu ? v->gpu(&x->o, e) : discover(x, e);
}

static const char notes[] =
	"discover runs every opcode slot of every encoding in a kernel of its "
	"own and stores the verdicts.  A run that was killed is gone on with "
	"by the same command.\n"
	"tiers says how far the device comes: 0 driver, 1 card, 2 runtime, 3 "
	"memory, 4 kernels, 5 WMMA, 6 speed.  dispatch measures what a launch "
	"costs.\n"
	"\n"
	"latency measures chains of dependent instructions, throughput "
	"independent ones, in core cycles, by the difference of two "
	"unrollings; --inst takes any vector or scalar ALU instruction.  "
	"memory: caches and memory by working set.  overlap: which pairs run "
	"at the same time.  lds: by width and stride.  branch: jumps and "
	"barriers.  fetch: by size of the code.  waves: by waves per SIMD.  "
	"The first four run on the host, too.  All check what the code "
	"computed, and store medians with samples: as `hardware` from a card "
	"or the host, as `simulated` from --device sim.  What a card says "
	"becomes the compiler's cost (t0-results costs).\n"
	"Exit: 0 done (differences are findings), 1 a wrong result, 2 trouble, "
	"3 device lost, 77 no device.\n";

int main(int argc, char **argv)
{
	struct options x = { .o = { .device = getenv("T0_DEVICE"),
				    .oracle = "llvm-mc-19",
				    .seed = 1,
				    .require = -1,
				    .deadline_ms = DEADLINE_MS_DEFAULT,
				    .batch = BATCH_DEFAULT,
				    .argc = argc,
				    .argv = argv,
				    .stop = &stop } };
	const struct cli_opt opt[] = {
		{ "device", 0, CLI_STR, &x.o.device, "SPEC",
		  "soft, kfd, kfd:N, sim for the soft device with the "
		  "simulator's clock, or host for this processor; default: "
		  "$T0_DEVICE, else the first gfx11 GPU, else soft" },
		{ "db", 0, CLI_STR, &x.o.db, "FILE",
		  "database; default: $T0_DB, else t0.db" },
		{ "encoding", 0, CLI_LIST, &x.o.encodings, "NAME",
		  "only this encoding (may be repeated)" },
		{ "slot", 0, CLI_STR, &x.slot, "ENC:OP",
		  "run one slot and print every register that it changed; "
		  "stores nothing" },
		{ "replace", 0, CLI_LIST, &x.o.replace, "ENC:OP=W[,W...]",
		  "run these instruction words in a slot's place" },
		{ "oracle", 0, CLI_STR, &x.o.oracle, "CMD",
		  "disassembler to compare with; none = do not (llvm-mc-19)" },
		{ "second-opinion", 0, CLI_FLAG, &x.o.second_opinion, NULL,
		  "run the slots on the soft device, too, and compare what "
		  "they change; always done on hardware" },
		{ "batch", 0, CLI_U64, &x.o.batch, "N",
		  "slots per child process (256)" },
		{ "deadline-ms", 0, CLI_U64, &x.o.deadline_ms, "N",
		  "how long one slot may run (1000)" },
		{ "seed", 0, CLI_U64, &x.o.seed, "N",
		  "of the initial register and memory values (1)" },
		{ "list", 0, CLI_FLAG, &x.list, NULL,
		  "list the slots and their words" },
		{ "dry-run", 0, CLI_FLAG, &x.dry_run, NULL, "same as --list" },
		{ "json", 0, CLI_FLAG, &x.json, NULL, "every slot as JSON" },
		{ "csv", 0, CLI_FLAG, &x.csv, NULL, "every slot as CSV" },
		{ "output", 'o', CLI_STR, &x.o.format_out, "FILE",
		  "write the result there instead of to stdout" },
		{ "quick", 0, CLI_FLAG, &x.o.quick, NULL,
		  "fewer samples (dispatch and all costs)" },
		{ "samples", 0, CLI_U64, &x.o.samples, "N",
		  "costs: samples per metric, at most 101" },
		{ "set", 0, CLI_LIST, &x.o.set, "NAME=VALUE",
		  "sim: change a cost of the simulator (compiler/cost/cost.def)" },
		{ "inst", 0, CLI_STR, &x.o.inst, "NAME",
		  "costs: only instructions whose names begin so" },
		{ "max-bytes", 0, CLI_U64, &x.o.max_bytes, "N",
		  "memory: largest working set" },
		{ "require", 0, CLI_INT, &x.o.require, "TIER",
		  "tiers: exit 1 if this one was not reached" },
		{ "quiet", 'q', CLI_FLAG, &x.o.quiet, NULL,
		  "no progress and no notes on stderr" },
		{ 0 },
	};
	const struct cli_tool tool = {
		.name = "t0-probe",
		.summary = "find out what the machine does by running it",
		.usage = "discover [options]\n"
			 "tiers [--require TIER] [options]\n"
			 "dispatch [--quick] [options]\n"
			 "latency|throughput [--inst NAME] [options]\n"
			 "memory|overlap [options]\n"
			 "lds|branch|fetch|waves [options]",
		.opt = opt,
		.notes = notes,
	};
	struct err e = { 0 };
	bool done;
	int first, code;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		code = EXIT_TROUBLE;
	else if (done)
		code = EXIT_YES;
	else {
		const struct sigaction sa = { .sa_handler = on_signal };

		sigaction(SIGINT, &sa, NULL);
		sigaction(SIGTERM, &sa, NULL);
		code = run(&x, argc, argv, first, &e);
	}
	cli_list_fini(&x.o.encodings);
	cli_list_fini(&x.o.replace);
	cli_list_fini(&x.o.set);
	if (code)
		err_report("t0-probe", &e);
	return code;
}
