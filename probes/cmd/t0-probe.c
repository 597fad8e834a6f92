/*
 * probes/cmd/t0-probe.c - what the machine does, found out by running it.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/cmd/cmd.h"
#include "probes/host/host.h"
#include "probes/micro/micro.h"
#include "probes/tiers/tiers.h"

#define SECOND	      UINT64_C(1000000000)
#define DEADLINE_MAX  (60 * SECOND)
#define BATCH_DEFAULT 256
#define BATCH_MAX     65536

static struct probe_cmd x = { .o = { .oracle = "llvm-mc-19",
				     .seed = 1,
				     .require = -1,
				     .deadline_ns = SECOND,
				     .batch = BATCH_DEFAULT } };

static bool check_options(struct cmd *c, struct err *e)
{
	struct probe_opts *o = &x.o;

	if (o->deadline_ns > DEADLINE_MAX)
		return err_set(e, ERR_USAGE, "--deadline %g: wanted at most "
			       "60 seconds for a slot",
			       (double)o->deadline_ns * 1e-9);
	if (o->samples > PROBE_SAMPLES_MAX)
		return err_set(e, ERR_USAGE, "--samples %llu: wanted 1..%d",
			       (unsigned long long)o->samples,
			       PROBE_SAMPLES_MAX);
	if (!o->batch || o->batch > BATCH_MAX)
		return err_set(e, ERR_USAGE, "--batch %llu: wanted 1..%d",
			       (unsigned long long)o->batch, BATCH_MAX);
	if (!res_shard_parse(x.shard, &o->shard, e))
		return false;
	o->format = c->format;
	o->format_out = c->output;
	o->quiet = c->quiet;
	o->argc = c->line_argc;
	o->argv = c->line_argv;
	o->stop = cmd_catch_signals(c);
	return true;
}

/* ---- where a command runs ---- */

/*
 * What each command does on a GPU and on the host; NULL = cannot be.  `timed`:
 * on the soft device with the simulator's clock, too.
 */
static const struct target {
	const char *command;
	int (*gpu)(const struct probe_opts *o, struct err *e);
	int (*host)(const struct probe_opts *o, struct err *e);
	bool timed, has_parts; /* that shards deal out */
} targets[] = {
	{ "discover", NULL, NULL, false, true }, /* takes more options than these */
	{ "tiers", probe_tiers, NULL, false, false },
	{ "dispatch", probe_dispatch, NULL, false, false },
	{ "latency", micro_latency, host_latency, true, true },
	{ "throughput", micro_throughput, host_throughput, true, true },
	{ "overlap", micro_overlap, host_overlap, true, false },
	{ "memory", micro_memory, host_memory, true, false },
	{ "lds", micro_lds, NULL, true, false },
	{ "branch", micro_branch, NULL, true, false },
	{ "fetch", micro_fetch, NULL, true, false },
	{ "waves", micro_waves, NULL, true, false },
	{ "clock", micro_clock, NULL, false, false },
};

static int run_on_target(const struct target *t, struct err *e)
{
	const bool host = x.o.device && !strcmp(x.o.device, "host");
	const bool sim = x.o.device && !strncmp(x.o.device, "sim", 3);
	char spec[256];

	if ((host && !t->host) || (sim && !t->timed)) {
		err_set(e, ERR_UNSUPPORTED, "%s does not run on %s; see --help",
			t->command, host ? "the host" : "the simulator");
		return EXIT_TROUBLE;
	}
	if (host)
		return t->host(&x.o, e);
	if (!sim)
		x.o.device = kfd_spec_asked(x.o.device, spec);
	return t->gpu ? t->gpu(&x.o, e) : probe_cmd_discover(&x, e);
}

/*
 * A command without parts is in one shard; there it is the only one of a work
 * of its own, elsewhere nothing is done.
 */
static bool whole_in_shard(const struct target *t)
{
	struct res_shard *s = &x.o.shard;

	if (t->has_parts || !s->count)
		return true;
	if (!probe_in_shard(&x.o, "t0-probe", t->command))
		return false;
	s->index = s->count = 1;
	return true;
}

static bool run_probe(struct cmd *c, struct err *e)
{
	const struct target *t = targets;

	while (strcmp(t->command, c->spec->name))
		t++;
	if (!whole_in_shard(t))
		return true;
	if (!x.o.device)
		x.o.device = getenv("T0_DEVICE");
	c->status = run_on_target(t, e);
	if (c->status != EXIT_NO)
		return c->status == EXIT_YES;
	/* The answer is no, and *e says why. */
	err_report(c->tool->name, e);
	*e = (struct err){ 0 };
	return true;
}

/* ---- commands and options ---- */

#define PROBE(name, summary)                                        \
	{ name, NULL, summary, run_probe, 0, 0,                     \
	  .flags = CMD_TABLE | CMD_QUIET | CMD_OWN_OUTPUT }

static const struct cmd_spec commands[] = {
	PROBE("discover", "run every opcode slot of every encoding"),
	PROBE("tiers", "how far the device comes, from driver to speed"),
	PROBE("dispatch", "what a launch costs"),
	PROBE("latency", "chains of dependent instructions"),
	PROBE("throughput", "independent instructions"),
	PROBE("overlap", "which pairs run at the same time"),
	PROBE("memory", "caches and memory by working set"),
	PROBE("lds", "LDS by width and stride"),
	PROBE("branch", "jumps and barriers"),
	PROBE("fetch", "instruction fetch by size of the code"),
	PROBE("waves", "speed by waves per SIMD"),
	PROBE("clock", "the shader clock under load"),
	{ 0 },
};

#define COSTS "latency throughput overlap memory lds branch fetch waves clock"

static const struct cli_opt options[] = {
	{ "device", 0, CLI_STR, &x.o.device, "SPEC",
	  "soft[:CHIP], soft*N:M, kfd, kfd:N, sim[:CHIP] for the soft device "
	  "with the simulator's clock, or host for this processor; default: "
	  "$T0_DEVICE, else the first gfx11 GPU, else soft" },
	{ "db", 0, CLI_STR, &x.o.db, "FILE", RES_DB_HELP },
	{ "seed", 0, CLI_U64, &x.o.seed, "N",
	  "of the initial register and memory values (1)" },
	{ "shard", 0, CLI_STR, &x.shard, "I/N", RES_SHARD_HELP },
	CLI_OF("discover"),
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
	{ "deadline", 0, CLI_SECONDS, &x.o.deadline_ns, "SECONDS",
	  "how long one slot may run (1)" },
	{ "list", 0, CLI_FLAG, &x.list, NULL,
	  "list the slots and their words" },
	{ "dry-run", 0, CLI_FLAG, &x.list, NULL, "same as --list" },
	CLI_OF("tiers"),
	{ "require", 0, CLI_INT, &x.o.require, "TIER",
	  "exit 1 if this one was not reached" },
	CLI_OF("dispatch " COSTS),
	{ "quick", 0, CLI_FLAG, &x.o.quick, NULL, "fewer samples" },
	CLI_OF(COSTS),
	{ "samples", 0, CLI_U64, &x.o.samples, "N",
	  "samples per metric, at most 101" },
	{ "set", 0, CLI_LIST, &x.o.set, "NAME=VALUE",
	  "sim: change a cost of the simulator (compiler/cost/cost.def)" },
	{ "inst", 0, CLI_STR, &x.o.inst, "NAME",
	  "only instructions whose names begin so" },
	CLI_OF("memory"),
	{ "max-bytes", 0, CLI_U64, &x.o.max_bytes, "N",
	  "largest working set" },
	{ 0 },
};

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
	"clock: the shader clock by the share of the time under load.  "
	"The first four run on the host, too.  All check what the code "
	"computed, and store medians with samples: as `hardware` from a card "
	"or the host, as `simulated` from --device sim.  What a card says "
	"becomes the compiler's cost (t0-results costs).\n"
	"Exit: 0 done (differences are findings), 1 a wrong result, 2 trouble, "
	"3 device lost, 77 no device.\n";

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-probe",
		.summary = "find out what the machine does by running it",
		.commands = commands,
		.options = options,
		.notes = notes,
		.check = check_options,
	};

	return cmd_main(&x.cmd, &tool, argc, argv);
}
