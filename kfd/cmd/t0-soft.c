/*
 * kfd/cmd/t0-soft.c - run any program on the gfx1100 in software.
 *
 * As if the card were in this machine: /dev/kfd, /dev/dri and the card's files
 * in /sys.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cmd.h"
#include "kfd/soft/inject/inject.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/timed/timed.h"

#define LIBRARY "libt0-soft-preload.so"
#define TIMED	"libt0-soft-timed.so"
#define LOADER "soft-trap"

#define NOT_SAID UINT64_MAX

static struct {
	struct cmd cmd;
	uint64_t threads, minor, vram, cards;
	const char *log, *costs, *device;
	struct soft_options machine;
	struct cli_list inject;
	bool small_bar, trap;
} o = { .minor = 14, .cards = NOT_SAID };

/* ---- the folder ---- */

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_tree(const char *root)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* What separates the paths in LD_PRELOAD cannot be part of one. */
static bool is_separable(const char *path)
{
	return !strpbrk(path, " :");
}

/* A private folder that holds what the cards show, or NULL and *e. */
static char *make_tree(struct err *e)
{
	struct soft_options options = o.machine;
	struct kfd_driver *d;
	const char *place = scratch_place(scratch_memory());
	struct buf b = { 0 };
	bool ok;

	if (!is_separable(place))
		place = scratch_memory();
	if (!scratch_folder(&b, place, "soft", e)) {
		buf_fini(&b);
		return NULL;
	}
	options.threads = 1;
	options.kfd_minor = (uint32_t)o.minor;
	options.vram_bytes = o.vram;
	options.small_bar = o.small_bar;
	d = kfd_soft_new(&options, e);
	ok = d && soft_sysfs_export(d, b.data, e);
	if (d)
		d->free(d);
	if (ok)
		return b.data;
	remove_tree(b.data);
	buf_fini(&b);
	return NULL;
}

/* ---- environment ---- */

/* Our part: beside this program, or where `make install` puts it. */
static bool find_part(const char *name, char out[4096], struct err *e)
{
	static const char *const places[] = { "", "../lib/t0/" };
	char self[2048] = "";
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash = n > 0 ? strrchr(self, '/') : NULL;

	if (slash)
		slash[1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(out, 4096, "%s%s%s", self, places[i], name);
		if (!access(out, R_OK))
			return true;
	}
	return err_set(e, ERR_IO, "%s%s: not there; this build has no adapter "
		       "(sanitizer builds have none: use build/rel/t0-soft; "
		       "that of --trap wants a static libc)", self, name);
}

/* The options as our parts read them. */
static void print_options(struct buf *b)
{
	buf_printf(b, "threads=%u,kfd_minor=%u,vram=%llu,small_bar=%d",
		   (unsigned)o.threads, (unsigned)o.minor,
		   (unsigned long long)o.vram, o.small_bar);
	for (unsigned i = 0; i < o.machine.cards; i++)
		buf_printf(b, ",chip=%s",
			   o.machine.chip[i] ? o.machine.chip[i]->name :
					       SOFT_CHIP);
}

/* A variable that our parts read, or none of that name. */
static void set_variable(const char *name, const char *value)
{
	if (value && *value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* The library by a path that LD_PRELOAD can hold. */
static bool make_separable(char library[4096], const char *root,
			   struct err *e)
{
	struct buf link = { 0 };
	bool ok = true;

	if (!is_separable(library)) {
		buf_printf(&link, "%s/%s", root, strrchr(library, '/') + 1);
		ok = !symlink(library, link.data) ||
		     err_sys(e, ERR_IO, errno, "%s", link.data);
		snprintf(library, 4096, "%s", link.data);
	}
	buf_fini(&link);
	return ok;
}

static void set_environment(const char *library, const char *root)
{
	const char *old = getenv("LD_PRELOAD");
	struct buf b = { 0 }, rules = { 0 };

	buf_printf(&b, "%s%s%s", library, old && *old ? ":" : "",
		   old ? old : "");
	setenv("LD_PRELOAD", b.data, 1);
	setenv("T0_SOFT_ROOT", root, 1);
	for (int i = 0; i < o.inject.n; i++)
		buf_printf(&rules, "%s%s", i ? "," : "", o.inject.v[i]);
	set_variable("T0_SOFT_LOG", o.log);
	set_variable("T0_SOFT_COSTS", o.costs);
	set_variable("T0_SOFT_INJECT", rules.data);
	buf_fini(&rules);
	buf_reset(&b);
	print_options(&b);
	setenv("T0_SOFT_OPTIONS", b.data, 1);
	buf_fini(&b);
}

/* The loader's command line (kfd/soft/trap/trap.h); free() it. */
static char **loader_line(char **argv, const char *root, const char *path,
			  const char *options)
{
	const char *first[] = { LOADER, root, options, o.log ? o.log : "",
				path };
	size_t n = 0;
	char **line;

	while (argv[n])
		n++;
	line = xcalloc(ARRAY_SIZE(first) + n + 1, sizeof(*line));
	memcpy(line, first, sizeof(first));
	memcpy(line + ARRAY_SIZE(first), argv, n * sizeof(*line));
	return line;
}

/* ---- the program ---- */

/*
 * Is it an ELF program that the dynamic linker never sees?  The linker itself
 * looks so, too, but programs may be run through it.
 */
static bool is_static(const char *path)
{
	const char *slash = strrchr(path, '/');
	Elf64_Ehdr h;
	Elf64_Phdr p;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool dynamic = false, elf;

	elf = fd >= 0 && read(fd, &h, sizeof(h)) == sizeof(h) &&
	      !memcmp(h.e_ident, ELFMAG, SELFMAG);
	for (int i = 0; elf && i < h.e_phnum; i++)
		if (pread(fd, &p, sizeof(p),
			  (off_t)(h.e_phoff + (unsigned)i * sizeof(p))) ==
			    sizeof(p) && p.p_type == PT_INTERP)
			dynamic = true;
	if (fd >= 0)
		close(fd);
	return elf && !dynamic && strncmp(slash ? slash + 1 : path, "ld-", 3);
}

/* Where PATH leads for this name; false when nowhere. */
static bool find_program(const char *name, char out[4096])
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(out, 4096, "%s", name) < 4096 &&
		       !access(out, X_OK);
	for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
		const int n = (int)strcspn(p, ":");

		snprintf(out, 4096, "%.*s/%s", n, p, name);
		if (n && !access(out, X_OK))
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

static volatile sig_atomic_t child;

static volatile sig_atomic_t overdue;

/* Whoever ends us means the program, and so does --deadline. */
static void pass_on(int sig)
{
	overdue |= sig == SIGALRM;
	if (child)
		kill((pid_t)child, sig == SIGALRM ? SIGTERM : sig);
}

static bool run_child(char **argv, const char *path, int *status,
		      struct err *e)
{
	static const int passed[] = { SIGTERM, SIGHUP, SIGALRM };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction pass = { .sa_handler = pass_on };
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return err_sys(e, ERR_NOMEM, errno, "fork");
	if (!pid) {
		execv(path, argv);
		fprintf(stderr, "t0-soft: %s: %s\n", path, strerror(errno));
		_exit(EXIT_TROUBLE);
	}
	child = pid;
	/* From the terminal these reach the program by themselves. */
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGQUIT, &ignore, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		sigaction(passed[i], &pass, NULL);
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, ERR_IO, errno, "waitpid");
	return true;
}

/* Where it lies from every folder that the program may go to. */
static bool open_log(struct err *e)
{
	static char path[PATH_MAX];
	FILE *f;

	if (!o.log)
		return true;
	f = fopen(o.log, "a");
	if (!f || !realpath(o.log, path)) {
		if (f)
			fclose(f);
		return err_sys(e, ERR_IO, errno, "--log %s", o.log);
	}
	fclose(f);
	o.log = path;
	return true;
}

/* Says in the folder that figures are those of a simulator. */
static bool mark_simulated(const char *root, struct err *e)
{
	struct buf path = { 0 };
	FILE *f;

	buf_printf(&path, "%s%s", root, KFD_SOFT_MARK);
	f = fopen(path.data, "w");
	bool ok = f && fputs(KFD_SOFT_SIMULATED "\n", f) >= 0;

	if (f && fclose(f))
		ok = false;
	if (!ok)
		err_sys(e, ERR_IO, errno, "%s", path.data);
	buf_fini(&path);
	return ok;
}

/* Into o.machine: those of --device, or --cards of the usual chip. */
static bool choose_cards(struct err *e)
{
	const char *rest = "";

	if (o.device && o.cards != NOT_SAID)
		return err_set(e, ERR_USAGE,
			       "--device and --cards do not go "
			       "together; wanted --device %s*%llu",
			       o.device, (unsigned long long)o.cards);
	if (o.cards != NOT_SAID && (!o.cards || o.cards > SOFT_CARDS_MAX))
		return err_set(e, ERR_USAGE, "--cards %llu: wanted 1..%u",
			       (unsigned long long)o.cards, SOFT_CARDS_MAX);
	o.machine.cards = o.cards != NOT_SAID ? (unsigned)o.cards : 1;
	if (!o.device)
		return true;
	if (!soft_spec_is(o.device))
		return err_set(e, ERR_USAGE,
			       "--device %s: wanted "
			       "soft[:CHIP][*N]",
			       o.device);
	if (!soft_spec_parse(o.device, &o.machine, &rest, e))
		return false;
	return !*rest || err_set(e, ERR_USAGE,
				 "--device %s: the program "
				 "chooses among the cards; wanted no '%s'",
				 o.device, rest);
}

/* What --costs names is understood, and lies where all processes find it. */
static bool check_costs(struct err *e)
{
	static char path[PATH_MAX];
	const struct isa_chip *const *chip = o.machine.chip;
	struct cost_model m;

	if (!o.costs)
		return true;
	if (o.trap)
		return err_set(e, ERR_USAGE, "--costs and --trap do not go "
			       "together");
	for (unsigned i = 1; i < o.machine.cards; i++)
		if (chip[i] != chip[0])
			return err_set(e, ERR_USAGE, "--costs is of one chip; "
				       "--device has several");
	cost_init(&m, chip[0] ? chip[0]->name : SOFT_CHIP);
	bool ok = soft_model_read(&m, o.costs, e);
	cost_fini(&m);
	if (ok && !realpath(o.costs, path))
		ok = err_sys(e, ERR_IO, errno, "--costs %s", o.costs);
	o.costs = path;
	return ok;
}

static bool check_rules(struct err *e)
{
	struct soft_inject unused;
	unsigned long process;

	for (int i = 0; i < o.inject.n; i++)
		if (!soft_inject_parse(o.inject.v[i], &unused, &process, e))
			return false;
	return !o.inject.n || !o.trap ||
	       err_set(e, ERR_USAGE, "--inject and --trap do not go together");
}

static bool run_program(struct cmd *c, struct err *e)
{
	char part[4096], path[4096], *root, **line = NULL;
	struct buf options = { 0 };
	int status = 0;
	bool ok;

	if (!find_program(c->argv[0], path))
		return err_set(e, ERR_USAGE, "%s: no such program", c->argv[0]);
	if (o.minor > 19)
		return err_set(e, ERR_USAGE, "--kfd-minor %llu: wanted 1..19",
			       (unsigned long long)o.minor);
	if (!choose_cards(e))
		return false;
	if (is_static(path) && !o.trap)
		cmd_remark(c, "warning: %s is linked statically: it will not "
			   "see the device without --trap", path);
	if (!check_rules(e) || !check_costs(e) ||
	    !find_part(o.trap ? LOADER : o.costs ? TIMED : LIBRARY, part, e))
		return false;
	if (!open_log(e))
		return false;
	root = make_tree(e);
	if (!root)
		return false;
	if ((o.costs && !mark_simulated(root, e)) ||
	    (!o.trap && !make_separable(part, root, e))) {
		remove_tree(root);
		free(root);
		return false;
	}
	print_options(&options);
	if (o.trap)
		line = loader_line(c->argv, root, path, options.data);
	else
		set_environment(part, root);
	ok = run_child(line ? line : c->argv, line ? part : path, &status, e);
	free(line);
	buf_fini(&options);
	remove_tree(root);
	free(root);
	if (ok && overdue)
		return err_set(e, ERR_TIMEOUT, "%s: ended by --deadline",
			       c->argv[0]);
	c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
					  WEXITSTATUS(status);
	return ok;
}

static const struct cmd_spec commands[] = {
	{ "run", "-- PROGRAM [ARGUMENT...]", "run a program", run_program, 1,
	  CMD_MANY, .flags = CMD_QUIET },
	{ 0 },
};
static const struct cli_opt options[] = {
	{ "threads", 't', CLI_U64, &o.threads, "N",
	  "threads that run workgroups (default: one per processor)" },
	{ "kfd-minor", 0, CLI_U64, &o.minor, "N",
	  "speak KFD version 1.N, 1..19 (default 14; from 17 on the kernel "
	  "refuses the queues of libhsakmt 5.2.3)" },
	{ "device", 0, CLI_STR, &o.device, "SPEC",
	  "the machine: soft[:CHIP][*N], or some of them with commas between "
	  "(default soft: a gfx1100)" },
	{ "cards", 'c', CLI_U64, &o.cards, "N",
	  "cards in the machine, 1..8 (default 1)" },
	{ "vram", 0, CLI_U64, &o.vram, "BYTES",
	  "VRAM of each card (default: what its chip has)" },
	{ "log", 0, CLI_STR, &o.log, "FILE",
	  "append what the device refuses to FILE, not to standard error" },
	{ "trap", 0, CLI_FLAG, &o.trap, NULL,
	  "for programs that are linked statically or make system calls "
	  "themselves: load them beside the device and trap their calls" },
	{ "costs", 0, CLI_STR, &o.costs, "FILE",
	  "a card of these costs: lines NAME=VALUE over those of `t0-sim "
	  "costs`; dispatches take the time that the simulator says" },
	{ "inject", 0, CLI_LIST, &o.inject, "WHAT@PROCESS.PACKET",
	  "fault, illegal, memory, refuse, hang, reset or slow at this packet "
	  "of the process that is the PROCESS-th to open the device; may be "
	  "repeated" },
	{ "small-bar", 0, CLI_FLAG, &o.small_bar, NULL,
	  "the host sees none of the VRAM that programs allocate" },
	{ 0 },
};

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-soft",
		.summary = "run a program on the gfx1100 in software",
		.commands = commands,
		.options = options,
		.notes = "The program is started with a library in LD_PRELOAD "
			 "that shows it RX 7900 XTX cards in software: /dev/kfd, "
			 "/dev/dri and /sys.  Its figures are emulated, with "
			 "--costs simulated.  "
			 "Programs that are linked statically or make system "
			 "calls themselves want --trap.  "
			 "Each process has a device of its own.\n\n"
			 "Exit: the program's status, 128 + N when signal N "
			 "ended it, 2 trouble.",
	};

	return cmd_main(&o.cmd, &tool, argc, argv);
}
