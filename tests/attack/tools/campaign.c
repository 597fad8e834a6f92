/*
 * The campaign: attacks by seed and number, dealt to workers, told as TAP.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"
#include "tests/tap.h"

const struct family families[] = {
	{ "known", "command lines whose answer is known", 12, attack_known },
	{ "lines", "command lines of any kind", 20, attack_lines },
	{ "files", "damaged files", 24, attack_files },
	{ "specials", "what is no file in place of one", 7, attack_specials },
	{ "environ", "environments", 7, attack_environ },
	{ "streams", "standard streams that are closed, full or gone", 8,
	  attack_streams },
	{ "limits", "limits of memory, files, stack and processes", 7,
	  attack_limits },
	{ "signals", "signals at any time", 6, attack_signals },
	{ "killed", "killed writers, and the same again", 3, attack_killed },
	{ "shared", "two or three on one database", 2, attack_shared },
	{ "disk", "a disk that fills up", 4, attack_disk },
};
const size_t n_families = ARRAY_SIZE(families);

enum { MOST_FAMILIES = 32, TOLD = 40 };

/* What workers share. */
struct shared {
	atomic_ullong next, done[MOST_FAMILIES], failed[MOST_FAMILIES];
	atomic_bool stop;
};

struct plan {
	uint64_t first, count;
	double seconds; /* begin none after that; 0: all of count */
	unsigned workers;
	bool keep;
	struct shared *shared;
	uint64_t start_ns;
};

/* ---- one attack ---- */

static const struct family *choose_family(struct attack *a)
{
	unsigned all = 0;

	for (size_t i = 0; i < n_families; i++)
		all += families[i].weight;
	uint64_t at = below(a, all);
	const struct family *f = families;
	while (at >= f->weight)
		at -= f++->weight;
	return f;
}

/* Memory and disk of the machine are not what is attacked. */
static void limit_usual(struct attack *a)
{
	limit_set(a, RLIMIT_CORE, 0);
	/* The software device has a sparse file of its memory's size. */
	limit_set(a, RLIMIT_FSIZE, UINT64_C(32) << 30);
	if (!a->c->sanitized)
		limit_set(a, RLIMIT_AS, UINT64_C(12) << 30);
}

static void print_word(const char *s)
{
	fputc(' ', stderr);
	fputs(*s && !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"
			      "STUVWXYZ0123456789.,:=_/-")] ? "" : "$'", stderr);
	const bool plain = *s && !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEF"
			"GHIJKLMNOPQRSTUVWXYZ0123456789.,:=_/-")];
	for (size_t n = 0; *s && n < 300; s++, n++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			fprintf(stderr, "\\x%02x", (unsigned char)*s);
		else if (*s == '\'' || *s == '\\')
			fprintf(stderr, "\\%c", *s);
		else
			fputc(*s, stderr);
	fputs(*s ? "..." : plain ? "" : "'", stderr);
}

static void tell_fault(const struct attack *a)
{
	fprintf(stderr, "# attack %ju (%s): %s\n#  ", (uintmax_t)a->number,
		a->family->name, a->fault.data);
	for (size_t i = 0; i < a->environ.n; i++)
		if (i >= 7)
			print_word(a->environ.v[i]);
	print_word(a->tool ? a->tool : "-");
	for (size_t i = 0; i < a->words.n; i++)
		print_word(a->words.v[i]);
	for (int i = 0; i < 3; i++)
		if (a->stream[i])
			fprintf(stderr, " [stream %d: %d]", i, a->stream[i]);
	for (int i = 0; i < a->n_limits; i++)
		if (a->limits[i].value && a->limits[i].value < UINT64_C(12) << 30)
			fprintf(stderr, " [limit %d: %ju]", a->limits[i].which,
				(uintmax_t)a->limits[i].value);
	if (a->signal)
		fprintf(stderr, " [signal %d after %ju us]", a->signal,
			(uintmax_t)a->signal_us);
	fprintf(stderr, "\n#   again: %s --seed %ju --first %ju --count 1 "
		"--keep\n", a->c->program, (uintmax_t)a->c->seed,
		(uintmax_t)a->number);
}

static void run_attack(struct campaign *c, struct plan *p, uint64_t number)
{
	uint64_t mix = c->seed ^ number << 20;
	struct attack a = { .c = c, .number = number };

	a.random = random_next(&mix) ^ number;
	a.family = choose_family(&a);
	snprintf(a.folder, sizeof(a.folder), "%s/%ju", c->room,
		 (uintmax_t)number);
	mkdir(a.folder, 0777);
	chmod(a.folder, 0777);
	environ_usual(&a);
	limit_usual(&a);
	a.family->run(&a);
	size_t f = (size_t)(a.family - families);
	atomic_fetch_add(&p->shared->done[f], 1);
	if (a.fault.len && atomic_fetch_add(&p->shared->failed[f], 1) < TOLD)
		tell_fault(&a);
	if (a.fault.len && p->keep)
		fprintf(stderr, "#   its files: %s\n", a.folder);
	else
		remove_tree(a.folder);
	vec_fini(&a.words);
	vec_fini(&a.inputs);
	vec_fini(&a.outputs);
	vec_fini(&a.environ);
	buf_fini(&a.fault);
	arena_fini(&a.mem);
}

/* ---- workers ---- */

static bool time_left(const struct plan *p)
{
	return p->seconds <= 0 ||
	       (double)(time_mono_ns() - p->start_ns) * 1e-9 < p->seconds;
}

/* A file system of two megabytes that nobody else sees; only root can. */
static void mount_disk(struct campaign *c)
{
	snprintf(c->disk, sizeof(c->disk), "%s/disk", c->room);
	mkdir(c->disk, 0777);
	if (unshare(CLONE_NEWNS) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("none", c->disk, "tmpfs", 0, "size=2m,mode=777") == 0)
		return;
	*c->disk = '\0';
}

static _Noreturn void work(struct campaign *c, struct plan *p, unsigned i)
{
	snprintf(c->room, sizeof(c->room), "%s/w%u", c->scratch, i);
	mkdir(c->room, 0777);
	chmod(c->room, 0777);
	mount_disk(c);
	while (time_left(p) && !atomic_load(&p->shared->stop)) {
		uint64_t n = atomic_fetch_add(&p->shared->next, 1);

		if (n >= p->count)
			break;
		run_attack(c, p, p->first + n);
	}
	_exit(0);
}

static void run_all(struct campaign *c, struct plan *p)
{
	p->start_ns = time_mono_ns();
	fflush(NULL);
	for (unsigned i = 0; i < p->workers; i++)
		if (fork() == 0)
			work(c, p, i);
	for (unsigned i = 0; i < p->workers; i++) {
		int status;

		if (wait(&status) > 0 && status)
			ok(false, "a worker ends with 0x%x", (unsigned)status);
	}
}

/* ---- what is told ---- */

/* Has every command a recipe, and every recipe a command? */
static void check_recipes(const struct campaign *c)
{
	for (size_t t = 0; t < c->tools.n; t++) {
		const struct tool_row *tool = &c->tools.v[t];
		struct buf missing = { 0 };

		for (size_t i = 0; i < tool->commands.n; i++) {
			const char *name = tool->commands.v[i].name;
			size_t len = strlen(name), n = 0;

			for (size_t r = 0; r < n_recipes; r++)
				n += !strcmp(recipes[r].tool, tool->name) &&
				     !strncmp(recipes[r].line, name, len);
			if (!n)
				buf_printf(&missing, " %s", name);
		}
		ok(!missing.len, "%s: every command has a recipe%s%s",
		   tool->name, missing.len ? ", but not" : "",
		   missing.len ? missing.data : "");
		buf_fini(&missing);
	}
}

static void tell_families(const struct plan *p)
{
	unsigned long long all = 0;

	for (size_t i = 0; i < n_families; i++) {
		unsigned long long done = p->shared->done[i];
		unsigned long long failed = p->shared->failed[i];

		all += done;
		ok(!failed, "%s: %llu attacks, %s; %llu of them win",
		   families[i].name, done, families[i].what, failed);
	}
	diag("%llu attacks in %.0f s", all,
	     (double)(time_mono_ns() - p->start_ns) * 1e-9);
}

/* ---- begin ---- */

static uint64_t number_of(const char *option, const char *s)
{
	uint64_t v = 0;
	struct err e = { 0 };

	if (!s || !cli_u64(s, &v, &e)) {
		fprintf(stderr, "campaign: %s: wanted a number\n", option);
		exit(2);
	}
	return v;
}

static void read_line(int argc, char **argv, struct campaign *c, struct plan *p)
{
	for (int i = 1; i < argc; i++) {
		const char *o = argv[i];

		if (!strcmp(o, "--keep")) {
			p->keep = true;
			continue;
		}
		uint64_t v = number_of(o, argv[++i]);
		if (!strcmp(o, "--seed"))
			c->seed = v;
		else if (!strcmp(o, "--first"))
			p->first = v;
		else if (!strcmp(o, "--count"))
			p->count = v, p->seconds = 0;
		else if (!strcmp(o, "--seconds"))
			p->seconds = (double)v;
		else if (!strcmp(o, "--jobs"))
			p->workers = (unsigned)v;
		else {
			fprintf(stderr, "campaign: %s: wanted --seed, --first, "
				"--count, --seconds, --jobs, --keep\n", o);
			exit(2);
		}
	}
}

static char *folder_of(const char *name, const char *otherwise)
{
	const char *s = getenv(name);
	char *path = realpath(s ? s : otherwise, NULL);

	if (!path)
		skip_all("no folder %s; $%s names it", s ? s : otherwise, name);
	return path;
}

/* Can nobody read the tools and write the scratch folder? */
static bool can_drop(const struct campaign *c)
{
	char line[512];

	if (geteuid())
		return false;
	snprintf(line, sizeof(line), "%s/t0-isa", c->build);
	pid_t pid = fork();
	if (pid == 0) {
		if (setgid(65534) || setuid(65534) || access(line, X_OK) ||
		    access(c->scratch, X_OK))
			_exit(1);
		_exit(0);
	}
	int status = 1;
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
	struct campaign c = { .program = argv[0], .seed = 1 };
	struct plan p = { .count = UINT64_MAX };
	struct err e = { 0 };
	char path[PATH_MAX + 32];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	p.workers = cores > 0 ? (unsigned)cores : 1;
	p.seconds = getenv("T0_SLOW") ? 600 : 20;
	read_line(argc, argv, &c, &p);
	c.build = folder_of("T0_BUILD", "build/rel");
	c.source = folder_of("T0_SRC", ".");
	snprintf(path, sizeof(path), "%s/libt0-soft-preload.so", c.build);
	c.sanitized = access(path, F_OK) != 0;
	const char *tmp = getenv("TMPDIR");
	snprintf(c.scratch, sizeof(c.scratch), "%s/t0-attack-XXXXXX",
		 tmp && strlen(tmp) <= 30 ? tmp : access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(c.scratch) || chmod(c.scratch, 0755)) {
		fprintf(stderr, "campaign: %s: %s\n", c.scratch,
			strerror(errno));
		return 2;
	}
	c.drop = can_drop(&c);
	p.shared = mmap(NULL, sizeof(*p.shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	diag("seed %ju, %s", (uintmax_t)c.seed, c.scratch);
	if (ok(p.shared != MAP_FAILED && tables_read(&c, &e) &&
	       seeds_make(&c, &e), "tools tell what they can: %s", e.msg)) {
		check_recipes(&c);
		run_all(&c, &p);
		tell_families(&p);
	}
	if (!p.keep)
		remove_tree(c.scratch);
	tables_free(&c);
	arena_fini(&c.mem);
	free(c.build);
	free(c.source);
	return plan_done();
}
