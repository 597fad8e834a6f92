/*
 * engine/files/maps.c - files in memory: mapped, and in large pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"
#include "base/vec.h"
#include "engine/files/files_int.h"

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

static size_t large_pages(size_t size_bytes)
{
	return (size_bytes + QWEN_LARGE_PAGE - 1) / QWEN_LARGE_PAGE *
	       QWEN_LARGE_PAGE;
}

/* Addresses for n bytes, a multiple of large pages, from one's beginning. */
static char *room_new(size_t n, int protection)
{
	char *p = mmap(NULL, n + QWEN_LARGE_PAGE, protection,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	size_t before = large_pages((uintptr_t)p) - (uintptr_t)p;
	if (before)
		munmap(p, before);
	if (before < QWEN_LARGE_PAGE)
		munmap(p + before + n, QWEN_LARGE_PAGE - before);
	return p + before;
}

/* ---- mapped ---- */

static bool file_place(struct qwen_map *m)
{
	m->room_bytes = large_pages(m->size_bytes);
	m->base = room_new(m->room_bytes, PROT_NONE);
	if (!m->base)
		return false;
	if (mmap(m->base, m->size_bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED,
		 m->fd, 0) != MAP_FAILED)
		return true;
	munmap(m->base, m->room_bytes);
	return false;
}

const struct qwen_map *qwen_file_map(struct qwen_tensors *t, const char *path,
				     struct err *e)
{
	/* A pipe, which is refused below, would make it wait for a writer. */
	struct qwen_map m = {
		.path = path,
		.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
	};
	struct stat st;

	if (m.fd < 0) {
		err_sys(e, errno == EACCES ? ERR_PERM : ERR_IO, errno,
			"%s: cannot be opened", path);
		return NULL;
	}
	if (fstat(m.fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 8) {
		close(m.fd);
		err_set(e, ERR_INPUT, "%s: not a file of at least 8 bytes",
			path);
		return NULL;
	}
	m.size_bytes = (size_t)st.st_size;
	if (!file_place(&m)) {
		err_sys(e, ERR_NOMEM, errno, "%s: cannot be mapped", path);
		close(m.fd);
		return NULL;
	}
	VEC_GROW(t->map, t->n_maps, 1, t->cap_maps);
	t->map[t->n_maps++] = m;
	return &t->map[t->n_maps - 1];
}

void qwen_file_unmap(struct qwen_map *m)
{
	munmap(m->base, m->room_bytes);
	close(m->fd);
}

/* ---- large pages of the file system ---- */

/* Kilobytes of large pages that the mapping at `base` has now. */
static unsigned long large_kb(const void *base)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	bool here = false;
	unsigned long kb = 0, n;
	uintptr_t from, to;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from == (uintptr_t)base;
		else if (here && (sscanf(line, "FilePmdMapped: %lu", &n) == 1 ||
				  sscanf(line, "ShmemPmdMapped: %lu", &n) == 1))
			kb += n;
	}
	if (f)
		fclose(f);
	return kb;
}

/*
 * Large pages for these, as far as the kernel has them.  What others hold just
 * now it is asked for again.
 */
static void collapse_pages(char *p, size_t n)
{
	for (int tries = 0; tries < 8; tries++) {
		if (madvise(p, n, MADV_COLLAPSE) == 0 || errno != EAGAIN)
			return;
		usleep(1000u << tries);
	}
}

/* Are the file's first bytes in one, now that it is asked for? */
static bool file_has_large(const struct qwen_map *m)
{
	const volatile char *first = m->base;

	if (m->size_bytes < QWEN_LARGE_PAGE ||
	    madvise(m->base, m->size_bytes, MADV_HUGEPAGE) != 0)
		return false;
	(void)*first;
	collapse_pages(m->base, QWEN_LARGE_PAGE);
	return large_kb(m->base) != 0;
}

enum qwen_paging qwen_pages_choose(const struct qwen_tensors *t,
				   uint64_t memory_bytes)
{
	const struct qwen_map *most = NULL;
	uint64_t all = 0;

	for (size_t i = 0; i < t->n_maps; i++) {
		all += t->map[i].size_bytes;
		if (!most || t->map[i].size_bytes > most->size_bytes)
			most = &t->map[i];
	}
	if (all < 2 * QWEN_LARGE_PAGE)
		return QWEN_PAGES_FEW;
	if (file_has_large(most))
		return QWEN_PAGES_FILES;
	return memory_bytes / 2 >= all ? QWEN_PAGES_MEMORY : QWEN_PAGES_SMALL;
}

/* ---- large pages of memory ---- */

static bool bytes_read(const struct qwen_map *m, size_t from, size_t n,
		       char *to, struct err *e)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = pread(m->fd, to + at, n - at, (off_t)(from + at));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, ERR_IO, errno, "%s: cannot be read",
				       m->path);
		if (got == 0)
			return err_set(e, ERR_IO,
				       "%s: became shorter: it ends "
				       "at %zu and had %zu bytes",
				       m->path, from + at, m->size_bytes);
		at += (size_t)got;
	}
	return true;
}

/* Bytes from .. from + n - 1 of the room, large pages, become memory's. */
static bool pages_read(const struct qwen_map *m, size_t from, size_t n,
		       struct err *e)
{
	size_t there = m->size_bytes - from < n ? m->size_bytes - from : n;
	char *p = room_new(n, PROT_READ | PROT_WRITE);

	if (!p)
		return err_set(e, ERR_NOMEM,
			       "%s: no memory for %zu bytes of "
			       "it",
			       m->path, n);
	madvise(p, n, MADV_HUGEPAGE);
	bool ok = bytes_read(m, from, there, p, e);
	if (ok && (mprotect(p, n, PROT_READ) != 0 ||
		   mremap(p, n, n, MREMAP_MAYMOVE | MREMAP_FIXED,
			  (char *)m->base + from) == MAP_FAILED))
		ok = err_sys(e, ERR_NOMEM, errno, "%s: cannot be moved",
			     m->path);
	if (!ok)
		munmap(p, n);
	return ok;
}

/* All files as pieces, one after another: which one is piece i? */
#define PIECE_BYTES (8 * QWEN_LARGE_PAGE)
struct piece {
	const struct qwen_map *m; /* NULL: there is none */
	size_t from, n;
};

static size_t pieces_of(const struct qwen_map *m)
{
	return (m->room_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
}

static struct piece piece_at(const struct qwen_map *m, size_t maps, size_t i)
{
	for (; maps; i -= pieces_of(m), m++, maps--) {
		if (i >= pieces_of(m))
			continue;
		size_t from = i * PIECE_BYTES, left = m->room_bytes - from;
		return (struct piece){ m, from,
				       left < PIECE_BYTES ? left :
							    PIECE_BYTES };
	}
	return (struct piece){ 0 };
}

struct reading {
	const struct qwen_tensors *t;
	size_t pieces;
	struct progress *progress; /* or NULL */
	const _Atomic int *stop;
	_Atomic size_t done;
	size_t drawn; /* of them, by the first thread */
	_Atomic bool failed;
	struct err *e; /* of the first that failed */
};

static void reading_note(struct reading *r, unsigned thread)
{
	size_t done = ++r->done;

	/* A bar is one thread's. */
	if (thread == 0 && r->progress) {
		progress_step(r->progress, done - r->drawn);
		r->drawn = done;
	}
}

static void pieces_read(void *ctx, struct threads *t, unsigned thread)
{
	struct reading *r = ctx;
	struct threads_deal d;
	struct err mine = { 0 };
	size_t from, to;

	threads_deal(&d, t, thread, r->pieces, 1);
	while (threads_take(&d, &from, &to))
		for (size_t i = from; i < to && !r->failed; i++) {
			struct piece p = piece_at(r->t->map, r->t->n_maps, i);
			bool ok = r->stop && *r->stop ?
					  err_set(&mine, ERR_STOPPED,
						  "%zu of %zu pieces "
						  "of the weights were read",
						  (size_t)r->done, r->pieces) :
					  pages_read(p.m, p.from, p.n, &mine);
			if (ok)
				reading_note(r, thread);
			else if (!atomic_exchange(&r->failed, true))
				*r->e = mine;
		}
}

bool qwen_maps_read(const struct qwen_tensors *t, struct threads *threads,
		    struct progress *progress,
		    const _Atomic int *stop, struct err *e)
{
	struct err none = { 0 };
	struct reading r = {
		.t = t, .progress = progress, .stop = stop, .e = e ? e : &none
	};

	for (size_t i = 0; i < t->n_maps; i++) {
		r.pieces += pieces_of(&t->map[i]);
		posix_fadvise(t->map[i].fd, 0, 0, POSIX_FADV_WILLNEED);
	}
	if (progress) {
		progress->total = r.pieces;
		progress->done = 0;
	}
	threads_run(threads, pieces_read, &r);
	return !r.failed;
}

/* ---- meanwhile ---- */

struct qwen_settling {
	const struct qwen_map *map;
	size_t n_maps;
	enum qwen_paging how;
	pthread_t thread;
	bool joined;
	_Atomic bool stop;
};

static void *settle_maps(void *ctx)
{
	struct qwen_settling *s = ctx;
	struct piece p;
	bool ok = true;

	for (size_t i = 0; ok && !s->stop; i++) {
		p = piece_at(s->map, s->n_maps, i);
		if (!p.m)
			break;
		if (s->how == QWEN_PAGES_MEMORY)
			ok = pages_read(p.m, p.from, p.n, NULL);
		else
			collapse_pages((char *)p.m->base + p.from, p.n);
	}
	return NULL;
}

struct qwen_settling *qwen_maps_settle(const struct qwen_tensors *t,
				       enum qwen_paging how)
{
	struct qwen_settling *s = xcalloc(1, sizeof(*s));

	*s = (struct qwen_settling){ .map = t->map,
				     .n_maps = t->n_maps,
				     .how = how };
	if ((how == QWEN_PAGES_FILES || how == QWEN_PAGES_MEMORY) &&
	    pthread_create(&s->thread, NULL, settle_maps, s) == 0)
		return s;
	free(s);
	return NULL;
}

void qwen_settling_wait(struct qwen_settling *s)
{
	if (s && !s->joined)
		pthread_join(s->thread, NULL);
	if (s)
		s->joined = true;
}

void qwen_settling_end(struct qwen_settling *s)
{
	if (s)
		s->stop = true;
	qwen_settling_wait(s);
	free(s);
}
