/*
 * compiler/dsl/load_source.c - kernels of FILE.c: the host's C compiler,
 * dlopen(), and the table of the file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/dsl/dsl.h"

/* ------------------------------------------------------------- headers -- */

/* `up` folders above that of this program, then `below`. */
static char *beside_program(int up, const char *below)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct buf b = { 0 };

	self[n > 0 ? n : 0] = 0;
	for (int i = 0; i <= up; i++) {
		char *slash = strrchr(self, '/');
		if (slash)
			*slash = 0;
	}
	buf_printf(&b, "%s%s", self, below);
	return b.data;
}

static bool has_headers(const char *folder)
{
	struct buf b = { 0 };
	bool there;

	buf_printf(&b, "%s/compiler/dsl/dsl.h", folder);
	there = access(b.data, R_OK) == 0;
	buf_fini(&b);
	return there;
}

/* The folder that "compiler/dsl/dsl.h" lies in; the caller's. */
static char *include_folder(struct err *e)
{
	char *built = beside_program(2, "");
	char *installed = beside_program(1, "/include/t0");
	char *use = has_headers(built) ? built : installed;

	if (!has_headers(use)) {
		err_set(e, ERR_IO,
			"compiler/dsl/dsl.h is neither in %s nor in %s; "
			"`make install` puts it there",
			built, installed);
		use = NULL;
	}
	if (use != built)
		free(built);
	if (use != installed)
		free(installed);
	return use;
}

/* ------------------------------------------------------------ compiling -- */

/*
 * The shell takes $CC and $CFLAGS apart, as make does.  DSL_FILE makes the
 * header define the file's table.
 */
static bool run_compiler(const char *path, const char *include,
			 const char *out, struct err *e)
{
	static const char script[] =
		"cc=${CC:-cc}\n"
		"command -v ${cc%% *} >/dev/null || exit 127\n"
		"exec $cc -std=gnu11 -shared -fPIC -DDSL_FILE $CFLAGS \"$@\"\n";
	struct buf file = { 0 };

	buf_printf(&file, "%s%s", *path == '-' ? "./" : "", path);
	const char *const argv[] = { "sh", "-c", script, "sh", "-I", include,
				     "-o", out, file.data, NULL };
	const char *cc = getenv("CC");
	int status = 0, failed;
	pid_t child;

	failed = posix_spawn(&child, "/bin/sh", NULL, NULL, (char **)argv,
			     environ);
	buf_fini(&file);
	if (failed)
		return err_sys(e, ERR_IO, failed, "/bin/sh: cannot run");
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(e, ERR_IO, "there is no C compiler '%s'; CC "
			       "names another", cc && *cc ? cc : "cc");
	return err_set(e, ERR_INPUT, "%s: the C compiler failed; its messages "
		       "are above", path);
}

static bool load_object(struct cc_source *s, const char *object, struct err *e)
{
	const struct dsl_kernel *(*table)(size_t *n);

	s->handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
	if (!s->handle)
		return err_set(e, ERR_INPUT, "%s: %s", s->path, dlerror());
	*(void **)&table = dlsym(s->handle, "dsl_kernels_of_file");
	if (table)
		s->kernel = table(&s->n_kernels);
	if (s->n_kernels)
		return true;
	return err_set(e, ERR_INPUT, "%s: no kernel; wanted %s", s->path,
		       table ? "T0_KERNEL(name) { ... }" :
			       "#include \"compiler/dsl/dsl.h\"");
}

bool cc_source_open(struct cc_source *s, const char *path, struct err *e)
{
	char *include = include_folder(e);
	struct buf dir = { 0 }, object = { 0 };
	bool good = false;

	*s = (struct cc_source){ .path = path };
	if (!include)
		goto out;
	if (access(path, R_OK)) {
		err_sys(e, ERR_IO, errno, "%s: cannot read", path);
		goto out;
	}
	if (!scratch_folder(&dir, NULL, "cc", e))
		goto out;
	buf_printf(&object, "%s/kernels.so", dir.data);
	good = run_compiler(path, include, object.data, e) &&
	       load_object(s, object.data, e);
	unlink(object.data);
	rmdir(dir.data);
	if (!good)
		cc_source_close(s);
out:
	free(include);
	buf_fini(&dir);
	buf_fini(&object);
	return good;
}

void cc_source_close(struct cc_source *s)
{
	if (s->handle)
		dlclose(s->handle);
	*s = (struct cc_source){ 0 };
}

const struct dsl_kernel *cc_source_find(const struct cc_source *s,
					const char *name)
{
	for (size_t i = 0; i < s->n_kernels; i++)
		if (!strcmp(s->kernel[i].name, name))
			return &s->kernel[i];
	return NULL;
}

/* ------------------------------------------------------------- building -- */

/* Behind a message "PATH:LINE: ..." that line of the source. */
static void show_line(const char *path, struct err *e)
{
	size_t n = strlen(path), used;
	struct buf text = { 0 };
	unsigned long line;
	const char *at;

	if (strncmp(e->msg, path, n) || e->msg[n] != ':')
		return;
	line = strtoul(e->msg + n + 1, NULL, 10);
	if (!line || !file_read(path, 0, &text, NULL))
		return;
	at = text.data;
	for (unsigned long i = 1; at && i < line; i++) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	used = strlen(e->msg);
	if (at)
		snprintf(e->msg + used, sizeof(e->msg) - used, "\n%5lu | %.*s",
			 line, (int)strcspn(at, "\n"), at);
	buf_fini(&text);
}

struct ssa_func *cc_source_build(const struct cc_source *s,
				 const struct dsl_kernel *k, struct err *e)
{
	struct ssa_func *f = k->build(e);

	if (f)
		return f;
	if (!e->code)
		err_set(e, ERR_INPUT, "%s:%u: %s gave neither a kernel nor an "
			"error; wanted return dsl_finish(k, e)", s->path,
			k->line, k->name);
	show_line(s->path, e);
	return NULL;
}
