/* base/mem.c: checked sizes, growing buffers, arenas. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

static void test_sizes(void)
{
	size_t out = 42;

	ok(size_add(SIZE_MAX - 5, 5, &out), "the largest sum fits");
	is_u64(out, UINT64_MAX, "and is 2^64-1");
	out = 42;
	ok(!size_add(SIZE_MAX - 5, 6, &out), "one more does not");
	is_u64(out, 42, "a sum that overflows leaves the result alone");
	/* 2^64 - 1 = 4294967295 * 4294967297 */
	ok(size_mul(4294967295u, 4294967297u, &out), "the largest product");
	is_u64(out, UINT64_MAX, "of 2^32-1 and 2^32+1 is 2^64-1");
	out = 42;
	ok(!size_mul((size_t)1 << 32, (size_t)1 << 32, &out),
	   "2^32 * 2^32 overflows");
	is_u64(out, 42, "a product that overflows leaves the result alone");
	ok(size_mul(SIZE_MAX, 0, &out) && out == 0, "nothing of anything is 0");
}

static void test_buf(void)
{
	struct buf b = { 0 };

	buf_reset(&b);
	is_u64(b.len, 0, "an empty buffer can be reset");
	buf_add(&b, NULL, 0);
	is_str(b.data, "", "adding nothing terminates the buffer");
	buf_adds(&b, "wave");
	buf_addc(&b, '3');
	buf_printf(&b, "%d %s", 2, "lanes");
	is_str(b.data, "wave32 lanes", "pieces are joined");
	is_u64(b.len, 12, "the length has no NUL");
	buf_add(&b, "\0x", 2);
	is_mem(b.data, "wave32 lanes\0x", 15, "NULs may be inside");

	buf_reset(&b);
	for (int i = 0; i < 100000; i++)
		buf_printf(&b, "%05d", i);
	is_u64(b.len, 500000, "half a megabyte in small pieces");
	ok(memcmp(b.data + 5 * 98765, "98765", 5) == 0,
	   "a piece in the middle is where it belongs");
	is_u64(strlen(b.data), 500000, "the end is terminated");

	char *big = xmalloc(200001);
	memset(big, 'y', 200000);
	big[200000] = '\0';
	buf_reset(&b);
	buf_printf(&b, "<%s>", big);
	is_u64(b.len, 200002, "a long piece is formatted whole");
	free(big);
	buf_fini(&b);
	ok(!b.data && !b.len && !b.cap, "buf_fini empties");
	buf_adds(&b, "again");
	is_str(b.data, "again", "a finished buffer may be used again");
	buf_reset(&b);
	buf_add_html(&b, "<a href=\"x&y\">");
	is_str(b.data, "&lt;a href=&quot;x&amp;y&quot;>", "text of HTML");
	buf_fini(&b);
}

static bool all_zero(const char *p, size_t n)
{
	while (n && *p == 0) {
		p++;
		n--;
	}
	return n == 0;
}

static void test_arena(void)
{
	struct arena a = { 0 };
	bool aligned = true, zeroed = true, apart = true;
	char *before = NULL;
	size_t size_before = 0;

	/* Sizes around the block size come in too, and dirty what they get. */
	for (size_t i = 0; i < 3000; i++) {
		size_t size = i % 100 == 99 ? 60000 + i : i % 71;
		char *p = arena_alloc(&a, size);
		aligned = aligned && (uintptr_t)p % 16 == 0;
		zeroed = zeroed && all_zero(p, size);
		memset(p, 0xa5, size);
		if (before && size_before)
			apart = apart && (unsigned char)before[0] == 0xa5 &&
				(unsigned char)before[size_before - 1] == 0xa5;
		memset(p, 0x5a, size);
		if (before)
			memset(before, 0xa5, size_before);
		before = p;
		size_before = size;
		memset(before, 0xa5, size_before);
	}
	ok(aligned, "every allocation is aligned to 16 bytes");
	ok(zeroed, "every allocation is zeroed");
	ok(apart, "no allocation overlaps the one before");
	char *s = arena_strdup(&a, "s_endpgm");
	is_str(s, "s_endpgm", "a string is copied");
	is_str(arena_printf(&a, "v%d:%s", 7, s), "v7:s_endpgm",
	       "a string is formatted");
	arena_fini(&a);
	ok(!a.head, "arena_fini empties");
	arena_fini(&a);
	ok(arena_alloc(&a, 1) != NULL, "a finished arena may be used again");
	arena_fini(&a);
}

/* A size nobody has.  Not a constant, or the compiler warns. */
static volatile size_t huge = SIZE_MAX / 4;

static void want_malloc(void)
{
	xmalloc(huge);
}

static void want_calloc(void)
{
	xcalloc(huge, 16);
}

static void want_bug(void)
{
	BUG("queue %d lost", 5);
}

/* How a child that runs `f` ends: its wait status; stderr goes into `text`. */
static int in_child(void (*f)(void), char *text, size_t size)
{
	int fd[2];

	fflush(stdout);
	if (pipe(fd) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fd[1], STDERR_FILENO);
		close(fd[0]);
		close(fd[1]);
		f();
		_exit(0);
	}
	close(fd[1]);
	size_t len = 0;
	ssize_t n;
	while ((n = read(fd[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fd[0]);
	int status;
	waitpid(pid, &status, 0);
	return status;
}

static void test_endings(void)
{
	char text[8192];
	int status = in_child(want_malloc, text, sizeof(text));

	ok(WIFEXITED(status) && WEXITSTATUS(status) == 2,
	   "out of memory exits 2");
	has_str(text, "out of memory: 4611686018427387903 bytes",
		"and says how much was wanted");
	status = in_child(want_calloc, text, sizeof(text));
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 2,
	   "n * size that overflows exits 2");
	has_str(text, "out of memory", "and does not allocate too little");
	has_str(text, "wanted by tests/base/mem.c:", "and names who wanted it");
	status = in_child(want_bug, text, sizeof(text));
	ok(!WIFEXITED(status) || WEXITSTATUS(status) > 3, "BUG aborts");
	has_str(text, "queue 5 lost", "and says why");
	has_str(text, "tests/base/mem.c:", "and where");
}

int main(void)
{
	test_sizes();
	test_buf();
	test_arena();
	test_endings();
	return plan_done();
}
