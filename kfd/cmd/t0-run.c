/*
 * kfd/cmd/t0-run.c - run any kernel of any code object.
 *
 * Its arguments come from the command line; what it wrote is shown.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/cmd/job.h"

static const char notes[] =
	"\n"
	"Example: y = a * x + y over 1024 values, first eight of y printed:\n"
	"  t0-run saxpy.co saxpy f32:2 buf:1k:f32=iota out:1k:f32=1 \\\n"
	"         u32:1024 --grid 1024 --block 256\n"
	"Dynamic LDS and files:\n"
	"  t0-run scan.co scan buf:256:i32=file:in.bin \\\n"
	"         'out:256:i32>out.bin' lds:1k --grid 256 --block 256\n"
	"Quote what has > or parentheses, or the shell takes them.\n"
	"\n"
	"On the soft device --check finds missing waits, races, values and\n"
	"memory that nobody wrote, accesses outside of buffers and misaligned\n"
	"ones, waves that miss a barrier, and matrix instructions with lanes\n"
	"switched off; it tells them on stderr.  T0_SOFT_CHECK=1 asks for it\n"
	"too.\n"
	"\n"
	"Exit status: 0 ran, 1 --check found something, 2 trouble (file,\n"
	"kernel, arguments), 3 the device faulted or the deadline passed, 77\n"
	"no suitable device.\n";

/* ---- the command line ---- */

/* "INDEX=FILE" -> that operand's `save`. */
static bool parse_dump(struct kfd_job *r, const char *text, struct err *e)
{
	char *end;
	unsigned long i = strtoul(text, &end, 10);

	if (end == text || *end != '=' || !end[1])
		return err_set(e, ERR_USAGE,
			       "--dump %s: expected INDEX=FILE, arguments "
			       "counted from 0",
			       text);
	if (i >= (unsigned long)r->l.n_args ||
	    r->l.arg[i].kind != OPERAND_BUFFER)
		return err_set(e, ERR_USAGE,
			       "--dump %s: argument %lu is no buffer", text, i);
	free(r->l.arg[i].save);
	r->l.arg[i].save = xstrdup(end + 1);
	return true;
}

/* "X,Y,Z", as far as given, and what is behind it. */
static bool parse_group(const char *text, uint32_t out[3], const char **rest)
{
	char *end;

	for (int i = 0; i < 3; i++) {
		out[i] = (uint32_t)strtoul(text, &end, 10);
		if (end == text)
			return false;
		text = end;
		if (i == 2 || *text != ',')
			break;
		text++;
	}
	*rest = text;
	return true;
}

static bool parse_watch(struct kfd_job *r, struct err *e)
{
	struct soft_watch_options *o = &r->watch;
	const char *rest = "", *check = getenv("T0_SOFT_CHECK");

	if (check && *check && strcmp(check, "0") != 0 &&
	    (!r->device || soft_spec_is(r->device)))
		o->check = true;
	if (r->trace_group_text) {
		o->trace_one = true;
		if (!o->trace || !parse_group(r->trace_group_text,
					      o->trace_group, &rest) || *rest)
			return err_set(e, ERR_USAGE,
				       "--trace-group %s: expected X,Y,Z of a "
				       "workgroup, with --trace",
				       r->trace_group_text);
	}
	if (r->stop_wave_text) {
		char *end = NULL;

		o->stop_one = true;
		if (o->stop && parse_group(r->stop_wave_text, o->stop_group,
					   &rest) && *rest == ':')
			o->stop_wave = (uint32_t)strtoul(rest + 1, &end, 10);
		if (!end || *end || end == rest + 1)
			return err_set(e, ERR_USAGE,
				       "--dump-wave %s: expected X,Y,Z:WAVE, "
				       "with --break", r->stop_wave_text);
	}
	if ((o->profile || o->stop) && r->cmd.format != TABLE_TEXT)
		return err_set(e, ERR_USAGE,
			       "--profile and --break print text, not --%s",
			       r->cmd.json ? "json" : "csv");
	return true;
}

static bool parse_operands(struct kfd_job *r, struct err *e)
{
	if (!launch_parse(&r->l, r->cmd.argc, r->cmd.argv, e))
		return false;
	for (int i = 0; i < r->dump.n; i++)
		if (!parse_dump(r, r->dump.v[i], e))
			return false;
	if (!r->repeat || r->repeat > 1000000)
		return err_set(e, ERR_USAGE,
			       "--repeat %" PRIu64 ": expected 1..1000000",
			       r->repeat);
	return parse_watch(r, e);
}

/* ---- the whole ---- */

/* Only the gfx1100 in software can be watched. */
static bool open_watched(struct kfd_job *r, const char *spec, struct err *e)
{
	struct soft_options o = {
		.deadline_ns = r->deadline_ns,
		.lds_faults = true,
	};
	const char *rest;

	if (!spec || !*spec)
		spec = "soft";
	if (!soft_spec_is(spec))
		return err_set(e, ERR_USAGE,
			       "device %s cannot be watched: --check, --trace, "
			       "--profile and --break need --device soft",
			       spec);
	if (!soft_spec_parse(spec, &o, &rest, e))
		return false;
	r->watched = kfd_soft_new(&o, e);
	if (!r->watched)
		return err_wrap(e, "the gfx1100 in software");
	if (!soft_watch_attach(r->watched, &r->watch, e)) {
		r->watched->free(r->watched);
		r->watched = NULL;
		return err_wrap(e, "the gfx1100 in software");
	}
	if (kfd_open_on(&r->dev, r->watched, spec, "it can be watched", e))
		return true;
	r->watched = NULL; /* freed */
	return false;
}

/* What was watched, to stderr, also after a fault: false if rules broke. */
static bool show_watched(struct kfd_job *r, bool *good, struct err *e)
{
	struct buf text = { 0 };
	uint64_t n;

	if (!r->watched)
		return true;
	if (r->watch.stop && !soft_watch_dump(r->watched, &text))
		buf_printf(&text, "t0-run: no wave came to %s\n",
			   r->watch.stop);
	n = soft_watch_findings(r->watched, &text);
	if (text.len)
		fold_printf(stderr, 2, "%s", text.data);
	if (n)
		fold_printf(stderr, 2,
			    "t0-run: --check: %" PRIu64 " finding%s\n", n,
			    n == 1 ? "" : "s");
	buf_fini(&text);
	if (!soft_watch_trace_end(r->watched, *good ? e : NULL))
		*good = false;
	return !n;
}

static bool open_device(struct kfd_job *r, struct err *e)
{
	char seen[256];
	const char *spec = kfd_spec_asked(r->device, seen);

	if (soft_watch_wanted(&r->watch) ? !open_watched(r, spec, e) :
					!kfd_open(&r->dev, spec, e))
		return false;
	cmd_remark(&r->cmd, "device: %s", kfd_info(r->dev)->why);
	return true;
}

static bool run_job(struct kfd_job *r, struct err *e)
{
	const bool runs = !r->list && !r->dry_run;

	if (!parse_operands(r, e) || (runs && !open_device(r, e)))
		return false;
	if (runs && !r->l.chip)
		r->l.chip = kfd_info(r->dev)->gfx;
	if (!launch_load(&r->l, r->list, e))
		return false;
	if (r->list)
		return kfd_job_list(r, e);
	bool good = launch_check(&r->l, e);
	if (r->l.remarks.len)
		cmd_remark(&r->cmd, "%s", r->l.remarks.data);
	if (!good || r->dry_run)
		return good;
	if (!kfd_job_run(r, e))
		return false;
	kfd_job_simulate(r);
	return kfd_job_show(r, e);
}

static bool run_kernel(struct cmd *c, struct err *e)
{
	struct kfd_job *r = (struct kfd_job *)c;
	cmd_catch_signals(c);
	bool good = run_job(r, e), clean = show_watched(r, &good, e);

	kfd_job_fini(r);
	c->status = clean ? EXIT_YES : EXIT_NO;
	return good;
}

/* ---- options ---- */

static struct kfd_job job = {
	.repeat = 1, .print = 8, .deadline_ns = UINT64_C(10000000000),
	.l = LAUNCH_DEFAULTS,
};

static const struct cmd_spec commands[] = {
	{ NULL, "FILE [KERNEL] [ARGUMENT...]\n--list FILE [KERNEL]", NULL,
	  run_kernel, 0, CMD_MANY, .flags = CMD_TABLE | CMD_QUIET },
	{ 0 },
};
static const struct cli_opt options[] = {
	{ "list", 'l', CLI_FLAG, &job.list, NULL,
	  "show the kernels of FILE and their arguments" },
	LAUNCH_OPTIONS(job.l),
	LAUNCH_CHIP_OPTION(job.l),
	{ "print", 'p', CLI_U64, &job.print, "N",
	  "values shown of each out: buffer (default 8)" },
	{ "dump", 'd', CLI_LIST, &job.dump, "I=FILE",
	  "write the memory of argument I to FILE" },
	{ "check", 'c', CLI_FLAG, &job.watch.check, NULL,
	  "find missing waits, races, uninitialised values and more" },
	{ "profile", 0, CLI_FLAG, &job.watch.profile, NULL,
	  "count executed instructions by class and address" },
	{ "trace", 0, CLI_STR, &job.watch.trace, "FILE",
	  "write all instructions and memory addresses to FILE" },
	{ "trace-group", 0, CLI_STR, &job.trace_group_text, "X,Y,Z",
	  "trace only this workgroup" },
	{ "break", 0, CLI_STR, &job.watch.stop, "ADDRESS|SYMBOL+OFFSET",
	  "show the registers of waves that come there" },
	{ "dump-wave", 0, CLI_STR, &job.stop_wave_text, "X,Y,Z:WAVE",
	  "only this wave of this workgroup (default: the first 16)" },
	{ "repeat", 'r', CLI_U64, &job.repeat, "N",
	  "dispatch N times; buffers keep what the last one wrote" },
	{ "deadline", 't', CLI_SECONDS, &job.deadline_ns, "SECONDS",
	  "give a dispatch up after this long (default 10)" },
	{ "device", 0, CLI_STR, &job.device, "DEVICE", KFD_DEVICE_HELP },
	{ "seed", 0, CLI_U64, &job.l.seed, "N", LAUNCH_SEED_HELP },
	{ "dry-run", 'n', CLI_FLAG, &job.dry_run, NULL,
	  "check everything, run nothing" },
	{ 0 }
};

int main(int argc, char **argv)
{
	char *help = xmalloc(strlen(operand_help) + sizeof(notes));
	const struct cmd_tool tool = {
		.name = "t0-run",
		.summary = "run a kernel of a code object and show what it "
			   "wrote",
		.commands = commands,
		.options = options,
		.notes = help,
	};

	strcpy(help, operand_help);
	strcat(help, notes);
	const int status = cmd_main(&job.cmd, &tool, argc, argv);
	free(help);
	return status;
}
