/*
 * The main of a fuzz target: runs it over files, then over changed ones.
 *
 *	fuzz-NAME [--seconds N | --inputs N] [--seed N] [--save DIR]
 *		[--keep DIR] PATH...
 *
 * PATHs are inputs or folders of inputs.  --save writes inputs that reach
 * something new into a folder, --keep copies the few of all PATHs that reach
 * as much as they all do.  The same seed gives the same inputs: a slower
 * machine only gets less far.
 *
 * The work is done in a child, which may die in any way: the input lies in
 * memory that the parent shares, and is written beside this program.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/vec.h"
#include "tests/attack/driver/driver.h"

enum { HANG_SECONDS = 30, HUNG = 70, LEAKED = 71 };

/* Of the address sanitizer. */
int __lsan_do_recoverable_leak_check(void);
size_t __sanitizer_get_current_allocated_bytes(void);
VISIBLE const char *__asan_default_options(void);

/* What does not fit the memory is refused, as outside. */
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* What the parent reads after the child's end. */
struct shared {
	uint8_t input[INPUT_MAX];
	size_t size;
	volatile uint64_t runs;
	uint64_t files, made, made_ns;
	uint32_t reached_by_files, reached, blocks;
	char path[512]; /* of the file that is being replayed */
};

struct fuzz {
	const char *name;
	struct shared *shared;
	VEC(struct input) corpus;
	size_t max;
	uint64_t seed, budget_ns, inputs;
	const char *save, *keep;
};

/* ---- files ---- */

static char folder[64];

const char *work_folder(void)
{
	return folder;
}

const char *input_file(const uint8_t *data, size_t size, const char *tail)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/input", folder);
	FILE *f = fopen(path, "wb");
	if (!f || (size && fwrite(data, size, 1, f) != 1) ||
	    (tail && fputs(tail, f) < 0) || fclose(f))
		BUG("%s: %s", path, strerror(errno));
	return path;
}

static bool make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/t0-attack-XXXXXX");
	return mkdtemp(folder) != NULL;
}

static int not_dots(const struct dirent *d)
{
	return strcmp(d->d_name, ".") && strcmp(d->d_name, "..");
}

static void drop_folder(void)
{
	struct dirent **entry;
	int n = scandir(folder, &entry, not_dots, NULL);

	for (int i = 0; i < n; i++) {
		char path[sizeof(folder) + sizeof(entry[i]->d_name)];

		snprintf(path, sizeof(path), "%s/%s", folder,
			 entry[i]->d_name);
		unlink(path);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	rmdir(folder);
}

/* ---- one input ---- */

static struct shared *watched;

/* Every second of processor time; a slow machine's is as long. */
static void look_for_hang(int number)
{
	static uint64_t runs, seconds;

	(void)number;
	seconds = watched->runs == runs ? seconds + 1 : 0;
	runs = watched->runs;
	if (seconds >= HANG_SECONDS)
		_exit(HUNG);
}

static void watch_for_hang(struct shared *s)
{
	const struct itimerval second = { { 1, 0 }, { 1, 0 } };
	const struct sigaction act = { .sa_handler = look_for_hang,
				       .sa_flags = SA_RESTART };

	watched = s;
	sigaction(SIGPROF, &act, NULL);
	setitimer(ITIMER_PROF, &second, NULL);
}

/* The blocks that the input is the first to reach. */
static uint32_t run_once(struct fuzz *z, const struct input *in,
			 bool with_pairs, uint32_t *more)
{
	/* Exactly as long as the input, so that any overrun is seen. */
	uint8_t *copy = xmalloc(in->size);

	memcpy(copy, in->data, in->size);
	if (in->data != z->shared->input)
		memcpy(z->shared->input, in->data, in->size);
	z->shared->size = in->size;
	cover_start(with_pairs);
	LLVMFuzzerTestOneInput(copy, in->size);
	uint32_t new = cover_stop(more);
	free(copy);
	z->shared->runs++;
	return new;
}

/* What grows by an input twice more may be a leak, or a cache. */
static uint32_t run_input(struct fuzz *z, const struct input *in,
			  bool with_pairs, uint32_t *more)
{
	size_t before = __sanitizer_get_current_allocated_bytes();
	uint32_t new = run_once(z, in, with_pairs, more), none;

	for (int i = 0; i < 2; i++) {
		if (__sanitizer_get_current_allocated_bytes() <= before)
			return new;
		before = __sanitizer_get_current_allocated_bytes();
		run_once(z, in, false, &none);
	}
	if (__sanitizer_get_current_allocated_bytes() > before && __lsan_do_recoverable_leak_check())
		_exit(LEAKED);
	return new;
}

/* ---- the corpus ---- */

static void keep_input(struct fuzz *z, const void *data, size_t size,
		       const char *path)
{
	struct input in = { xmalloc(size), size, path ? xstrdup(path) : NULL };

	memcpy(in.data, data, size);
	vec_push(&z->corpus, in);
}

static bool read_input(struct fuzz *z, const char *path, struct err *e)
{
	struct buf b = { 0 };
	bool ok = file_read(path, INPUT_MAX, &b, e);

	if (ok)
		keep_input(z, b.len ? b.data : "", b.len, path);
	buf_fini(&b);
	return ok;
}

static int not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static bool read_path(struct fuzz *z, const char *path, struct err *e)
{
	struct dirent **entry;
	struct stat st;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return read_input(z, path, e);
	int n = scandir(path, &entry, not_hidden, alphasort);
	bool ok = n >= 0 || err_sys(e, ERR_IO, errno, "%s", path);
	for (int i = 0; i < n; i++) {
		struct buf file = { 0 };
		buf_printf(&file, "%s/%s", path, entry[i]->d_name);
		ok = ok && read_input(z, file.data, e);
		buf_fini(&file);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return ok;
}

static void drop_corpus(struct fuzz *z)
{
	for (size_t i = 0; i < z->corpus.n; i++) {
		free(z->corpus.v[i].data);
		free((char *)z->corpus.v[i].path);
	}
	vec_fini(&z->corpus);
}

/* Small ones first, so that large ones stay only for what they alone reach. */
static int by_size(const void *a, const void *b)
{
	const struct input *x = a, *y = b;

	return (x->size > y->size) - (x->size < y->size);
}

/* DIR/NAME-HASH, or DIR/HASH. */
static bool write_input(const char *to, const char *name,
			const struct input *in, struct buf *path,
			struct err *e)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < in->size; i++)
		hash = (hash ^ in->data[i]) * UINT64_C(0x100000001b3);
	buf_printf(path, "%s/%s%s%016llx", to, name, *name ? "-" : "",
		   (unsigned long long)hash);
	return file_write_unsynced(path->data, in->data, in->size, e);
}

static void save_input(const char *to, const struct input *in)
{
	struct buf path = { 0 };
	struct err e = { 0 };

	if (to && !write_input(to, "", in, &path, &e))
		fprintf(stderr, "%s\n", e.msg);
	buf_fini(&path);
}

/* ---- the child ---- */

static void replay(struct fuzz *z)
{
	struct shared *s = z->shared;
	uint32_t more;

	run_input(z, &(struct input){ .data = s->input }, false, &more);
	if (z->keep)
		qsort(z->corpus.v, z->corpus.n, sizeof(*z->corpus.v), by_size);
	for (size_t i = 0; i < z->corpus.n; i++) {
		const struct input *in = &z->corpus.v[i];

		snprintf(s->path, sizeof(s->path), "%s", in->path);
		if (run_input(z, in, false, &more) && z->keep)
			save_input(z->keep, in);
		s->files++;
		if (in->size * 2 > z->max)
			z->max = in->size < INPUT_MAX / 2 ? in->size * 2 :
							    INPUT_MAX;
	}
	*s->path = '\0';
	s->reached_by_files = s->reached = cover_reached();
	s->blocks = cover_blocks();
}

/* The newest are nearest to what was not reached yet. */
static const struct input *pick_input(struct fuzz *z)
{
	size_t n = z->corpus.n, i = random_next(&z->seed) % n;

	if (random_next(&z->seed) % 2)
		i = n - 1 - i % (n / 4 + 1);
	return &z->corpus.v[i];
}

enum { CHANGED_PER_BASE = 32 };

static void change_one(struct fuzz *z, const struct input *base)
{
	struct shared *s = z->shared;
	struct input in = { .data = s->input };
	uint32_t more;

	memcpy(s->input, base->data, base->size);
	in.size = s->size = mutate(&z->seed, s->input, base->size, z->max,
				   pick_input(z));
	uint32_t new = run_input(z, &in, false, &more);
	s->made++;
	if (!new && !more)
		return;
	keep_input(z, in.data, in.size, NULL);
	if (new)
		save_input(z->save, &in);
	s->reached = cover_reached();
}

static bool goes_on(struct fuzz *z, uint64_t start_ns)
{
	z->shared->made_ns = time_mono_ns() - start_ns;
	return z->shared->made < z->inputs || z->shared->made_ns < z->budget_ns;
}

static void make_inputs(struct fuzz *z)
{
	uint64_t start = time_mono_ns();
	uint32_t more;

	if (!z->corpus.n)
		keep_input(z, "", 0, NULL);
	while (goes_on(z, start)) {
		/* The corpus moves as it grows. */
		struct input base = *pick_input(z);

		run_input(z, &base, true, &more);
		for (int i = 0; i < CHANGED_PER_BASE && goes_on(z, start); i++)
			change_one(z, &base);
	}
}

static void run_child(struct fuzz *z)
{
	cover_init();
	watch_for_hang(z->shared);
	uint64_t start = time_mono_ns();
	replay(z);
	uint64_t took = time_mono_ns() - start;
	z->budget_ns -= took < z->budget_ns ? took : z->budget_ns;
	make_inputs(z);
	_exit(__lsan_do_recoverable_leak_check() ? LEAKED : 0);
}

/* ---- the parent ---- */

static void say_end(const struct fuzz *z, int status, const char *path)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	printf("%s: ", z->name);
	if (WIFSIGNALED(status))
		printf("died of signal %d", WTERMSIG(status));
	else if (code == HUNG)
		printf("no end after %d s", HANG_SECONDS);
	else if (code == LEAKED)
		printf("leaks memory");
	else
		printf("exited with %d", code);
	printf(" on %s\n", path);
}

static int report(const struct fuzz *z, int status, const char *program)
{
	const struct shared *s = z->shared;
	struct buf path = { 0 }, beside = { 0 };
	struct err e = { 0 };

	if (!status) {
		printf("%s: %llu files reach %u of %u blocks; %llu inputs in "
		       "%.1f s reach %u\n", z->name,
		       (unsigned long long)s->files, s->reached_by_files,
		       s->blocks, (unsigned long long)s->made,
		       s->made_ns * 1e-9, s->reached);
		return EXIT_YES;
	}
	if (*s->path) {
		say_end(z, status, s->path);
		return EXIT_NO;
	}
	buf_printf(&beside, "%.*s", (int)(strrchr(program, '/') - program),
		   program);
	if (!write_input(beside.data, z->name,
			 &(struct input){ z->shared->input, s->size, NULL },
			 &path, &e))
		fprintf(stderr, "%s\n", e.msg);
	say_end(z, status, path.data);
	buf_fini(&beside);
	buf_fini(&path);
	return EXIT_NO;
}

static bool read_arguments(struct fuzz *z, int argc, char **argv,
			   struct err *e)
{
	double seconds = 0;
	const struct cli_opt options[] = {
		{ "seconds", 0, CLI_F64, &seconds, "N", "" },
		{ "inputs", 0, CLI_U64, &z->inputs, "N", "" },
		{ "seed", 0, CLI_U64, &z->seed, "N", "" },
		{ "save", 0, CLI_STR, &z->save, "DIR", "" },
		{ "keep", 0, CLI_STR, &z->keep, "DIR", "" },
		{ 0 }
	};
	struct cli_line line = { .name = z->name, .opt = options };

	if (!cli_parse(&line, argc, argv, e))
		return false;
	z->budget_ns = (uint64_t)(seconds * 1e9);
	for (int i = line.first; i < argc; i++)
		if (!read_path(z, argv[i], e))
			return false;
	return true;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	struct fuzz z = { .name = name ? name + 1 : argv[0], .seed = 1,
			  .max = 4096 };
	struct err e = { 0 };
	int status = 0;

	if (!strncmp(z.name, "fuzz-", 5))
		z.name += 5;
	if (!read_arguments(&z, argc, argv, &e))
		return err_report(z.name, &e);
	z.shared = mmap(NULL, sizeof(*z.shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (z.shared == MAP_FAILED || !make_folder())
		return EXIT_TROUBLE;
	fflush(stdout);
	pid_t child = fork();
	if (!child)
		run_child(&z);
	drop_corpus(&z);
	bool ended = child > 0 && waitpid(child, &status, 0) == child;
	drop_folder();
	return !ended ? EXIT_TROUBLE : report(&z, status, argv[0]);
}
