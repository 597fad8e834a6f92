/* base/file.c: whole files in and out, stdout, clocks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

static char folder[] = "/tmp/t0-file-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

/* Written with stdio, so not by the code under test. */
static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

static const char *get(const char *path)
{
	static char text[4096];
	FILE *f = fopen(path, "r");

	if (!f)
		return NULL;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static int count_entries(void)
{
	int n = 0;
	DIR *d = opendir(folder);

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* "." and ".." */
}

static void test_read(void)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	put(in_folder("a"), "machine code");
	ok(file_read(in_folder("a"), 0, &b, &e), "a file is read");
	is_str(b.data, "machine code", "whole");
	ok(file_read(in_folder("a"), 12, &b, &e), "exactly the limit is fine");
	is_str(b.data, "machine codemachine code", "and is appended");
	ok(!file_read(in_folder("a"), 11, &b, &e), "one above is refused");
	has_str(e.msg, "/a: too large: 12 bytes; wanted at most 11",
		"and says how large");
	is_i64(e.code, ERR_INPUT, "as bad input");
	is_u64(b.len, 24, "and leaves the buffer as it was");
	is_str(b.data, "machine codemachine code", "and its bytes");

	ok(!file_read(in_folder("none"), 0, &b, &e), "no file is an error");
	has_str(e.msg, "/none: cannot open: No such file or directory",
		"and names it");
	ok(!file_read(folder, 0, &b, &e), "a folder is an error");
	has_str(e.msg, "Is a directory", "and says so");
	buf_reset(&b);
	put(in_folder("empty"), "");
	ok(file_read(in_folder("empty"), 0, &b, &e), "an empty file is read");
	is_str(b.data, "", "and is terminated");
	/* Such files say that they have no bytes. */
	ok(file_read("/proc/self/status", 0, &b, &e) && b.len > 100,
	   "a file of unknown size is read");
	buf_fini(&b);
}

/* Before a byte of it is read; what does not say its size, soon. */
static void test_read_large(void)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	int fd = open(in_folder("large"), O_WRONLY | O_CREAT, 0600);

	ok(!ftruncate(fd, (off_t)3 << 30), "a file of 3 GiB");
	close(fd);
	ok(!file_read(in_folder("large"), 0, &b, &e), "is refused");
	has_str(e.msg, "too large: 3221225472 bytes; wanted at most 1073741824",
		"with both sizes");
	is_u64(b.cap, 0, "and not read");
	unlink(in_folder("large"));
	ok(!file_read("/dev/zero", 0, &b, &e), "a device without end, too");
	has_str(e.msg, "/dev/zero: too large: over 67108864 bytes", "as soon");
	ok(!file_read("/dev/zero", 10, &b, &e), "with a limit of one's own");
	has_str(e.msg, "over 10 bytes", "sooner");
	is_u64(b.cap, 0, "and nothing of it is kept");
	buf_fini(&b);
}

/* The lines of the file, joined by '|', "!" behind one that is cut. */
static const char *lines_of(const char *path, size_t max_bytes, struct err *e)
{
	static struct buf all;
	struct file_lines l;
	size_t len;
	char *line;
	bool ok;

	buf_reset(&all);
	buf_adds(&all, "");
	if (!file_lines_open(&l, path, max_bytes, e))
		return NULL;
	while ((ok = file_lines_next(&l, &line, &len, e)) && line) {
		buf_printf(&all, "%s%s%s", all.len ? "|" : "", line,
			   l.cut ? "!" : "");
		is_u64(len, strlen(line), "line %u", (unsigned)l.line);
	}
	file_lines_close(&l);
	return ok ? all.data : NULL;
}

static void test_lines(void)
{
	struct err e = { 0 };
	char *text = xcalloc(1, 300001);

	put(in_folder("l"), "one\n\nthree\n");
	is_str(lines_of(in_folder("l"), 5, &e), "one||three", "lines");
	ok(!lines_of(in_folder("l"), 4, &e), "one that is too long");
	has_str(e.msg, ": line 3: too long: over 4 bytes", "is named");
	put(in_folder("l"), "a\nb");
	is_str(lines_of(in_folder("l"), 9, &e), "a|b!", "a last line is cut");
	put(in_folder("l"), "");
	is_str(lines_of(in_folder("l"), 9, &e), "", "no lines");
	memset(text, 'x', 300000);
	text[2] = text[70000] = text[70001] = text[299999] = '\n';
	put(in_folder("l"), text);
	text[299999] = '\0';
	for (char *p = text; (p = strchr(p, '\n'));)
		*p = '|';
	is_str(lines_of(in_folder("l"), 300000, &e), text, "long lines");
	ok(!lines_of("/dev/zero", 1000, &e), "a line without end");
	has_str(e.msg, ": line 1: too long: over 1000 bytes", "is too long");
	ok(!lines_of(folder, 9, &e), "what cannot be read has no end");
	has_str(e.msg, "Is a directory", "but an error");
	ok(!lines_of(in_folder("none"), 9, &e), "nor has no file");
	free(text);
}

static void test_read_stdin(void)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	int keep = dup(STDIN_FILENO);
	int fd = open(in_folder("a"), O_RDONLY);

	dup2(fd, STDIN_FILENO);
	ok(file_read("-", 0, &b, &e), "- is stdin");
	is_str(b.data, "machine code", "and is read whole");
	dup2(keep, STDIN_FILENO);
	close(keep);
	close(fd);
	buf_fini(&b);
}

static void test_write(void)
{
	struct err e = { 0 };
	struct stat st;
	int entries = count_entries();

	umask(022);
	ok(file_write_atomic(in_folder("new"), "12345", 5, &e), "a new file");
	is_str(get(in_folder("new")), "12345", "has the bytes");
	stat(in_folder("new"), &st);
	is_u64(st.st_mode & 07777, 0644, "and ordinary permissions");
	chmod(in_folder("new"), 0600);
	ok(file_write_atomic(in_folder("new"), "67", 2, &e), "an old file");
	is_str(get(in_folder("new")), "67", "is replaced");
	stat(in_folder("new"), &st);
	is_u64(st.st_mode & 07777, 0600, "and keeps its permissions");
	ok(file_write_atomic(in_folder("zero"), "", 0, &e), "no bytes");
	is_str(get(in_folder("zero")), "", "make an empty file");

	if (symlink("new", in_folder("link")) != 0)
		diag("symlink: %s", strerror(errno));
	ok(file_write_atomic(in_folder("link"), "89", 2, &e), "through a link");
	is_str(get(in_folder("new")), "89", "the file is replaced");
	lstat(in_folder("link"), &st);
	ok(S_ISLNK(st.st_mode), "and the link stays");
	ok(file_write_unsynced(in_folder("new"), "10", 2, &e),
	   "without waiting for the disk");
	is_str(get(in_folder("new")), "10", "the file is replaced, too");
	ok(file_write_atomic("/dev/null", "x", 1, &e), "a device is written");
	lstat("/dev/null", &st);
	ok(S_ISCHR(st.st_mode), "and stays a device");
	is_i64(count_entries(), entries + 3, "no temporary file is left");
}

/* As /dev/stdout is when the output's file was deleted meanwhile. */
static void test_write_deleted(void)
{
	char name[64], link[64], to[64], got[8] = "";
	struct err e = { 0 };
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), "%s/gone", folder);
	snprintf(link, sizeof(link), "%s/to-gone", folder);
	fd = open(name, O_RDWR | O_CREAT, 0600);
	snprintf(to, sizeof(to), "/proc/self/fd/%d", fd);
	unlink(name);
	if (!ok(fd >= 0 && symlink(to, link) == 0, "a link to a deleted file"))
		return;
	ok(file_write_atomic(link, "here", 4, &e), "is written to: %s", e.msg);
	ok(lstat(link, &st) == 0 && S_ISLNK(st.st_mode), "and stays a link");
	ok(pread(fd, got, 4, 0) == 4 && !memcmp(got, "here", 4),
	   "what was written is in the file");
	close(fd);
	unlink(link);
}

static void test_write_fails(void)
{
	struct err e = { 0 };
	int entries = count_entries();

	ok(!file_write_atomic(in_folder("no/such"), "x", 1, &e),
	   "a folder that is not there is an error");
	has_str(e.msg, "/no/such: cannot create", "that names the file");
	has_str(e.msg, "No such file or directory", "and the reason");
	ok(!file_write_atomic(folder, "x", 1, &e), "a folder is no file");
	ok(!file_write_atomic("/dev/full", "x", 1, &e), "a full device");
	has_str(e.msg, "No space left", "says so");
	is_i64(count_entries(), entries, "no temporary file is left");
}

/* A file size limit fails a write halfway, as a full disk does. */
static void test_full_disk(void)
{
	struct err e = { 0 };
	struct rlimit old, small = { 0 };
	static char big[65536];
	int entries;

	put(in_folder("kept"), "the old contents");
	entries = count_entries();
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_cur = 4096;
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	bool done = file_write_atomic(in_folder("kept"), big, sizeof(big), &e);
	setrlimit(RLIMIT_FSIZE, &old);
	ok(!done, "a disk that fills up is an error");
	has_str(e.msg, "/kept: cannot write: File too large", "that says so");
	is_i64(e.code, ERR_IO, "of the kind input/output");
	is_str(get(in_folder("kept")), "the old contents",
	       "the old file is untouched");
	is_i64(count_entries(), entries, "and no half of a file is left");
}

/* As another user, whom permissions bind even if the tests run as root. */
static void test_no_permission(void)
{
	chmod(folder, 0755);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = { 0 };
		bool other = geteuid() != 0 || seteuid(65534) == 0;
		if (!other || access(folder, W_OK) == 0)
			chmod(folder, 0555);
		bool done = file_write_atomic(in_folder("p"), "x", 1, &e);
		bool said = !done && e.code == ERR_PERM &&
			    strstr(e.msg, "Permission denied");
		e = (struct err){ 0 };
		_exit(!(said && !file_check_writable(in_folder("p"), &e) &&
			e.code == ERR_PERM));
	}
	int status;
	waitpid(pid, &status, 0);
	if (geteuid() != 0)
		chmod(folder, 0755);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	   "a folder that may not be written is a permission error");
}

static void test_stdout(void)
{
	struct err e = { 0 };

	ok(stdout_check(&e), "stdout is fine");
	int keep = dup(STDOUT_FILENO);
	int full = open("/dev/full", O_WRONLY);
	fflush(stdout);
	dup2(full, STDOUT_FILENO);
	printf("lost");
	bool done = stdout_check(&e);
	dup2(keep, STDOUT_FILENO);
	clearerr(stdout);
	close(keep);
	close(full);
	ok(!done, "stdout on a full disk is an error");
	is_str(e.msg, "stdout: cannot write: No space left on device",
	       "and says so");
	is_i64(err_exit_code(&e), 2, "and exits 2");
}

static void test_clocks(void)
{
	uint64_t a = time_mono_ns();
	struct timespec pause = { .tv_nsec = 2000000 };

	nanosleep(&pause, NULL);
	uint64_t b = time_mono_ns();
	ok(b - a >= 2000000 && b - a < 60000000000u,
	   "two milliseconds take at least two million nanoseconds");
	uint64_t wall = time_wall_ns() / 1000000000;
	uint64_t now = (uint64_t)time(NULL);
	ok(wall <= now && now - wall <= 2, "the wall clock is that of time()");
}

static void remove_folder(void)
{
	static const char *const names[] = { "a",    "empty", "new",
					     "zero", "link",  "kept",
					     "l" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(in_folder(names[i]));
	if (rmdir(folder) != 0)
		diag("%s: %s", folder, strerror(errno));
}

static void test_writable(void)
{
	static const struct {
		const char *path;
		bool may;
	} c[] = {
		{ "/dev/null", true },
		{ "none", true },
		{ "/no/such", false },
		{ "/dev", false },
	};
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		ok(file_check_writable(c[i].path, &e) == c[i].may,
		   "%s can%s be written", c[i].path, c[i].may ? "" : "not");
	has_str(e.msg, "/dev: cannot be written: Is a directory",
		"the last is named");
	ok(file_check_writable(in_folder("new"), NULL), "a new file");
	put(in_folder("new"), "old");
	ok(file_check_writable(in_folder("new"), NULL), "an old one");
	is_str(get(in_folder("new")), "old", "which is as it was");
	unlink(in_folder("new"));
}

/* ---- named pipes ---- */

static void on_signal(int sig)
{
	(void)sig;
}

static bool read_pipe(struct err *e)
{
	struct buf b = { 0 };
	const bool got = file_read(in_folder("pipe"), 0, &b, e) && b.data &&
			 strcmp(b.data, "words") == 0;

	buf_fini(&b);
	return got;
}

static bool write_pipe(struct err *e)
{
	return file_write_atomic(in_folder("pipe"), "words", 5, e);
}

/*
 * In a child whose signals are caught as the tools catch them: 0 it did its
 * work, 1 it was stopped, 2 it has trouble.
 */
static pid_t start_on_pipe(bool (*work)(struct err *e))
{
	const struct sigaction sa = { .sa_handler = on_signal,
				      .sa_flags = SA_RESTART };
	struct err e = { 0 };

	fflush(NULL);
	pid_t pid = fork();
	if (pid)
		return pid;
	sigaction(SIGTERM, &sa, NULL);
	_exit(work(&e) ? 0 : e.code == ERR_STOPPED ? 1 : 2);
}

/* Signals do not wait for the other end; -1: it does not end. */
static int stop_on_pipe(bool (*work)(struct err *e))
{
	pid_t pid = start_on_pipe(work);
	int status = 0;

	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	for (int i = 0; i < 1000; i++) {
		kill(pid, SIGTERM);
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

static void test_pipes(void)
{
	int status = -1;

	ok(mkfifo(in_folder("pipe"), 0600) == 0, "a named pipe");
	is_i64(stop_on_pipe(read_pipe), 1,
	       "that nobody writes into is left at a signal");
	is_i64(stop_on_pipe(write_pipe), 1, "so is one that nobody reads");
	pid_t reader = start_on_pipe(read_pipe);
	pid_t writer = start_on_pipe(write_pipe);
	ok(waitpid(writer, &status, 0) == writer && status == 0,
	   "a reader that comes is written to");
	ok(waitpid(reader, &status, 0) == reader && status == 0,
	   "and reads what was written");
	unlink(in_folder("pipe"));
}

/* Files for a while lie where the user says, and are no one else's. */
static void test_scratch(void)
{
	struct buf dir = { 0 }, file = { 0 }, none = { 0 };
	struct err e = { 0 };
	struct stat st = { 0 };

	setenv("TMPDIR", folder, 1);
	ok(scratch_folder(&dir, NULL, "test", &e) &&
	   !strncmp(dir.data, folder, strlen(folder)) &&
	   strstr(dir.data, "/t0-test-") && stat(dir.data, &st) == 0 &&
	   (st.st_mode & 07777) == 0700, "a folder for a while, mode 0700");
	const int fd = scratch_file(&file, "test", &e);
	ok(fd >= 0 && !strncmp(file.data, folder, strlen(folder)) &&
	   fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0600,
	   "and a file, mode 0600");
	ok(close(fd) == 0 && unlink(file.data) == 0 && rmdir(dir.data) == 0,
	   "both go");
	setenv("TMPDIR", in_folder("none"), 1);
	ok(!scratch_folder(&none, NULL, "test", &e) &&
	   strstr(e.msg, in_folder("none")) && strstr(e.msg, "TMPDIR"),
	   "a place that is not there is named, with the remedy");
	setenv("TMPDIR", "here", 1);
	is_str(scratch_place("/else"), "/else", "a path from here is no place");
	unsetenv("TMPDIR");
	is_str(scratch_place("/else"), "/else", "nor is none");
	buf_fini(&dir);
	buf_fini(&file);
	buf_fini(&none);
}

int main(void)
{
	signal(SIGXFSZ, SIG_IGN);
	if (!mkdtemp(folder))
		skip_all("cannot make %s", folder);
	test_read();
	test_read_large();
	test_lines();
	test_read_stdin();
	test_write();
	test_write_deleted();
	test_write_fails();
	test_full_disk();
	test_no_permission();
	test_writable();
	test_pipes();
	test_scratch();
	test_stdout();
	test_clocks();
	remove_folder();
	return plan_done();
}
