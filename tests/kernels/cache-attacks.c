/*
 * The cache of objects under attack: links, pipes, folders and other kernels
 * in the place of entries, folders that others can write to.  The kernel is
 * always the right one, and nothing outside the folder is read or changed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/kernels/kernels.h"
#include "tests/tap.h"

static char folder[] = "/tmp/t0-cache-attacks-XXXXXX";
static const struct kernel_shape shape = { .type = DSL_F32, .group = 64 };
static const struct kernel_shape other = { .type = DSL_F32, .group = 32 };
static struct buf right; /* the object of `shape` */

struct heard {
	int times;
	char text[1400];
};

static void hear(void *ctx, const char *text)
{
	struct heard *h = ctx;

	h->times++;
	snprintf(h->text, sizeof(h->text), "%s", text);
}

/* The object and where it came from; false if it is not the right one. */
static bool fetch_kernel(const struct kernel_shape *s, struct heard *h,
		  enum object_from *from)
{
	struct cache_object obj = { 0 };
	struct object_cache c;
	struct err e = { 0 };
	bool good;

	object_cache_init(&c, hear, h);
	good = kernel_object(&c, kernel_find("softmax"), s, NULL, &obj, &e);
	if (!good)
		diag("%s", e.msg);
	*from = obj.from;
	if (s == &shape && !right.len)
		buf_add(&right, obj.bytes, obj.len);
	else if (s == &shape)
		good = good && obj.len == right.len &&
		       !memcmp(obj.bytes, right.data, obj.len);
	cache_object_fini(&obj);
	object_cache_fini(&c);
	return good;
}

/* What a command prints first, without its newline; the caller's. */
static char *first_line(const char *fmt, const char *a)
{
	char command[700], line[600] = "";
	FILE *p;

	snprintf(command, sizeof(command), fmt, a);
	p = popen(command, "r");
	if (p && fgets(line, sizeof(line), p))
		line[strcspn(line, "\n")] = 0;
	if (p)
		pclose(p);
	return strdup(line);
}

/* ------------------------------------------------------ bad entries ---- */

static char outside[400], other_entry[600];

static void put_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		diag("%s cannot be written", path);
}

static void as_link(const char *path)
{
	unlink(path);
	(void)!symlink(outside, path);
}

/* To a sound entry, which the key alone would let pass. */
static void as_link_to_entry(const char *path)
{
	char to[700];

	snprintf(to, sizeof(to), "%s.moved", path);
	rename(path, to);
	(void)!symlink(to, path);
}

static void as_loop(const char *path)
{
	unlink(path);
	(void)!symlink(path, path);
}

static void as_pipe(const char *path)
{
	unlink(path);
	mkfifo(path, 0600);
}

static void as_device(const char *path)
{
	unlink(path);
	(void)!symlink("/dev/zero", path);
}

static void as_other_kernel(const char *path)
{
	unlink(path);
	(void)!link(other_entry, path);
}

static void as_huge(const char *path)
{
	(void)!truncate(path, 1ll << 40);
}

static void as_shared(const char *path)
{
	chmod(path, 0666);
}

static void as_folder(const char *path)
{
	unlink(path);
	mkdir(path, 0700);
}

static const struct {
	const char *name;
	void (*place)(const char *path);
	bool stays; /* what stands there cannot be replaced */
} attacks[] = {
	{ "a link outside", as_link, false },
	{ "a link to an entry", as_link_to_entry, false },
	{ "a link to itself", as_loop, false },
	{ "a pipe", as_pipe, false },
	{ "a link to a device", as_device, false },
	{ "another kernel", as_other_kernel, false },
	{ "a huge file", as_huge, false },
	{ "a file that others can write", as_shared, false },
	{ "a folder", as_folder, true },
};

static void test_entries(const char *entry)
{
	struct stat s;

	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
		const char *name = attacks[i].name;
		struct heard h = { 0 };
		enum object_from from;
		char *text;

		alarm(60); /* a pipe must not be waited for */
		attacks[i].place(entry);
		ok(fetch_kernel(&shape, &h, &from), "%s: the right kernel", name);
		is_i64(from, OBJECT_COMPILED, "%s: it is compiled", name);
		is_i64(h.times, attacks[i].stays, "%s: what cannot be mended "
		       "is said", name);
		text = first_line("cat %s", outside);
		is_str(text, "not ours", "%s: the file outside is as it was",
		       name);
		free(text);
		if (attacks[i].stays)
			rmdir(entry);
		ok(fetch_kernel(&shape, &h, &from), "%s: and then", name);
		ok(!lstat(entry, &s) && S_ISREG(s.st_mode) && s.st_size < 1 << 20,
		   "%s: the entry is a plain file", name);
		chmod(entry, 0600);
		fetch_kernel(&shape, &h, &from);
		ok(fetch_kernel(&shape, &h, &from) && from == OBJECT_CACHED,
		   "%s: the cache is as before", name);
	}
	alarm(0);
}

/* ------------------------------------------------------ bad folders ---- */

static void expect_refused(const char *why, const char *word)
{
	struct heard h = { 0 };
	enum object_from from;

	ok(fetch_kernel(&shape, &h, &from), "%s: the right kernel", why);
	is_i64(from, OBJECT_COMPILED, "%s: it is compiled", why);
	is_i64(h.times, 1, "%s: said once", why);
	has_str(h.text, word, "%s: by name", why);
	has_str(h.text, "T0_CACHE", "%s: with a remedy", why);
}

static void test_folders(const char *build)
{
	struct heard h = { 0 };
	enum object_from from;

	chmod(build, 0777);
	expect_refused("a build's folder for everyone", "mode 0777");
	chmod(build, 0700);
	chmod(folder, 0777);
	expect_refused("a root for everyone", "mode 0777");
	chmod(folder, 01777);
	expect_refused("a root as /tmp is", "mode 1777");
	chmod(folder, 0700);
	if (geteuid()) {
		diag("SKIPPED: only root can give files away");
		skip_some(5, "only root can give files away");
	} else {
		(void)!chown(folder, 12345, 12345);
		expect_refused("a root of someone else", "user 12345");
		(void)!chown(folder, 0, 0);
	}
	ok(fetch_kernel(&shape, &h, &from) && from == OBJECT_CACHED,
	   "mended, the cache is used again");
}

int main(void)
{
	struct heard h = { 0 };
	enum object_from from;
	char *build, *entry, *second;

	if (!mkdtemp(folder))
		return 2;
	setenv("T0_CACHE", folder, 1);
	fetch_kernel(&shape, &h, &from);
	entry = first_line("ls %s/*/*.co", folder);
	fetch_kernel(&other, &h, &from);
	second = first_line("ls -t %s/*/*.co | head -2", folder);
	if (!strcmp(second, entry)) {
		free(second);
		second = first_line("ls %s/*/*.co | tail -1", folder);
	}
	snprintf(other_entry, sizeof(other_entry), "%s", second);
	ok(strcmp(entry, other_entry), "two kernels have two entries");
	build = strdup(entry);
	*strrchr(build, '/') = 0;
	snprintf(outside, sizeof(outside), "%s/outside", folder);
	put_text(outside, "not ours\n");
	test_entries(entry);
	test_folders(build);
	free(first_line("rm -r %s", folder));
	free(build);
	free(entry);
	free(second);
	buf_fini(&right);
	return plan_done();
}
