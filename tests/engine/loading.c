/* Weights in memory: mapped, in large pages, read at once or meanwhile. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"
#include "engine/model/model.h"
#include "tests/tap.h"

enum { ROWS = 3000, COLS = 1024 }; /* of f16: 6 MB */

static char folder[64] = "/tmp/t0-loading-XXXXXX";

static uint16_t value_of(size_t i)
{
	return (uint16_t)(i * 40503 >> 3);
}

static const void *values_make(void *ctx, size_t i, struct err *e)
{
	uint16_t *v = ctx;

	(void)i;
	(void)e;
	for (size_t k = 0; k < (size_t)ROWS * COLS; k++)
		v[k] = value_of(k);
	return v;
}

/* A file of one tensor in `dir`. */
static char *file_make(const char *dir)
{
	const struct qwen_tensor t = { .name = "x",
				       .dtype = QWEN_F16,
				       .n_dims = 2,
				       .shape = { ROWS, COLS } };
	uint16_t *v = xmalloc(sizeof(*v) * ROWS * COLS);
	struct buf path = { 0 };
	struct err e = { 0 };

	buf_printf(&path, "%s/x.safetensors", dir);
	if (!qwen_tensors_write(path.data, &t, 1, values_make, v, &e))
		diag("%s", e.msg);
	free(v);
	return path.data;
}

static bool is_right(const struct qwen_tensors *t)
{
	const struct qwen_tensor *x = qwen_tensor_find(t, "x");
	const uint16_t *v = x->data;

	for (size_t i = 0; i < x->count; i++)
		if (v[i] != value_of(i))
			return false;
	return true;
}

/* Kilobytes of `what` in the mappings that begin in the file's addresses. */
static unsigned long smaps_kb(const struct qwen_map *m, const char *what)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	const uintptr_t first = (uintptr_t)m->base;
	char line[512], key[64];
	unsigned long kb = 0, n;
	uintptr_t from, to;
	bool here = false;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from >= first && from < first + m->room_bytes;
		else if (here && sscanf(line, "%63[^:]: %lu", key, &n) == 2 &&
			 strcmp(key, what) == 0)
			kb += n;
	}
	if (f)
		fclose(f);
	return kb;
}

static void test_choice(const char *path)
{
	struct qwen_tensors t;
	struct err e = { 0 };

	ok(qwen_tensors_open_file(&t, path, &e), "a file is mapped");
	is_u64((uintptr_t)t.map->base % QWEN_LARGE_PAGE, 0,
	       "from a large page's beginning");
	is_u64((uintptr_t)qwen_tensor_find(&t, "x")->data % 64, 0,
	       "its data from that of a cache line");
	is_u64(smaps_kb(t.map, "AnonHugePages"), 0,
	       "without memory of its own");
	enum qwen_paging little = qwen_pages_choose(&t, 12000000),
			 enough = qwen_pages_choose(&t, 12 << 20);
	if (little == QWEN_PAGES_FILES) {
		skip("the file system gives large pages");
	} else {
		is_u64(little, QWEN_PAGES_SMALL,
		       "it stays so in memory of "
		       "less than twice as much");
		is_u64(enough, QWEN_PAGES_MEMORY, "is copied in more");
	}
	qwen_tensors_close(&t);
}

static void test_read(const char *path)
{
	struct err e = { 0 };
	struct threads *threads = threads_new(3, &e);
	struct qwen_tensors t;
	const _Atomic int stop = 1;

	qwen_tensors_open_file(&t, path, &e);
	ok(!qwen_maps_read(&t, threads, NULL, &stop, &e) &&
		   e.code == ERR_STOPPED,
	   "reading is stopped");
	ok(is_right(&t), "what is mapped stays");
	e = (struct err){ 0 };
	if (!ok(qwen_maps_read(&t, threads, NULL, NULL, &e), "all is read"))
		diag("%s", e.msg);
	ok(is_right(&t), "to the same bytes in the same place");
	is_u64(smaps_kb(t.map, "Rss") >= 6000, 1, "into memory");
	if (access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0)
		is_u64(smaps_kb(t.map, "AnonHugePages"), 6144,
		       "in large pages");
	else
		skip("this kernel has no large pages");
	qwen_tensors_close(&t);
	threads_free(threads);
}

static void test_meanwhile(const char *path)
{
	struct qwen_tensors t;
	struct err e = { 0 };
	bool right = true;

	qwen_tensors_open_file(&t, path, &e);
	struct qwen_settling *s = qwen_maps_settle(&t, QWEN_PAGES_MEMORY);
	ok(s, "a thread reads meanwhile");
	for (int i = 0; i < 5; i++)
		right &= is_right(&t);
	ok(right, "whoever reads sees the same numbers");
	qwen_settling_wait(s);
	is_u64(smaps_kb(t.map, "AnonHugePages") >= 2048 && is_right(&t), 1,
	       "in the end they are in large pages");
	qwen_settling_end(s);
	qwen_tensors_close(&t);

	qwen_tensors_open_file(&t, path, &e);
	qwen_settling_end(qwen_maps_settle(&t, QWEN_PAGES_MEMORY));
	ok(is_right(&t), "one that is ended early leaves them right");
	qwen_tensors_close(&t);
	ok(!qwen_maps_settle(&t, QWEN_PAGES_FEW) &&
		   !qwen_maps_settle(&t, QWEN_PAGES_SMALL),
	   "none is where none helps");
	qwen_settling_wait(NULL);
	qwen_settling_end(NULL);
}

/* Somebody has hold of pages of a file, for a moment: they lie in a pipe. */
struct holder {
	int pipe[2];
	pthread_t thread;
};

static void *let_go(void *arg)
{
	struct holder *h = arg;

	usleep(3000);
	close(h->pipe[0]);
	close(h->pipe[1]);
	return NULL;
}

/* One of every large page but the first. */
static void hold_pages(struct holder *h, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const off_t size = lseek(fd, 0, SEEK_END);

	if (pipe2(h->pipe, O_CLOEXEC) != 0)
		BUG("no pipe");
	for (off_t at = QWEN_LARGE_PAGE; at + 4096 < size; at += QWEN_LARGE_PAGE) {
		off_t from = at;
		if (splice(fd, &from, h->pipe[1], NULL, 4096, 0) != 4096)
			BUG("no page to hold");
	}
	close(fd);
	if (pthread_create(&h->thread, NULL, let_go, h) != 0)
		BUG("no thread");
}

/* A file system of memory gives large pages where the kernel allows it. */
static void test_large_files(void)
{
	struct holder h;
	char dir[] = "/dev/shm/t0-loading-XXXXXX";
	struct qwen_tensors t;
	struct err e = { 0 };

	if (!mkdtemp(dir)) {
		skip("no /dev/shm");
		return;
	}
	char *path = file_make(dir);
	qwen_tensors_open_file(&t, path, &e);
	if (qwen_pages_choose(&t, 0) != QWEN_PAGES_FILES) {
		skip("/dev/shm has no large pages");
	} else {
		hold_pages(&h, path);
		struct qwen_settling *s =
			qwen_maps_settle(&t, QWEN_PAGES_FILES);
		qwen_settling_wait(s);
		pthread_join(h.thread, NULL);
		is_u64(smaps_kb(t.map, "ShmemPmdMapped") >= 4096, 1,
		       "the file system's large pages are taken");
		is_u64(smaps_kb(t.map, "AnonHugePages"), 0, "and not copied");
		ok(is_right(&t), "with the same bytes");
		qwen_settling_end(s);
	}
	qwen_tensors_close(&t);
	unlink(path);
	rmdir(dir);
	free(path);
}

static void test_shorter(const char *path)
{
	struct err e = { 0 };
	struct threads *threads = threads_new(1, &e);
	struct qwen_tensors t;

	qwen_tensors_open_file(&t, path, &e);
	ok(truncate(path, 5 << 20) == 0, "a file becomes shorter");
	ok(!qwen_maps_read(&t, threads, NULL, NULL, &e) && e.code == ERR_IO,
	   "then it is not read");
	has_str(e.msg, "became shorter: it ends at 5242880", "and it is said");
	qwen_tensors_close(&t);
	threads_free(threads);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 2;
	char *path = file_make(folder);

	test_choice(path);
	test_read(path);
	test_meanwhile(path);
	test_large_files();
	test_shorter(path);
	unlink(path);
	rmdir(folder);
	free(path);
	return plan_done();
}
