/*
 * faults.h - a file system for sqlite that fails when it is told to: the N-th
 * call of the one beneath, in the way that a disk, a quota or a network fails.
 *
 *	faults_install();		// before sqlite opens anything
 *	faults_arm(FAULT_FULL, 3);	// the 3rd write finds the disk full
 *	... faults_hit(), faults_calls() ...
 *	faults_arm(FAULT_NONE, 0);
 *
 * Nothing waits for the disk meanwhile: what is proven is the order of calls
 * and what their failure does, not what survives a power cut.
 */
#ifndef T0_TESTS_RESULTS_FAULTS_H
#define T0_TESTS_RESULTS_FAULTS_H

#include <sqlite3.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * FAULT(name, of which calls, the code they return, goes on failing, errno).
 * A short write leaves half of its bytes.
 */
#define FAULTS \
	FAULT(FULL, WRITE, SQLITE_FULL, true, ENOSPC) \
	FAULT(WRITE_ERROR, WRITE, SQLITE_IOERR_WRITE, false, EIO) \
	FAULT(SHORT_WRITE, WRITE, SQLITE_IOERR_WRITE, false, EFBIG) \
	FAULT(SYNC, SYNC, SQLITE_IOERR_FSYNC, false, EIO) \
	FAULT(SYNC_FOR_EVER, SYNC, SQLITE_IOERR_FSYNC, true, EIO) \
	FAULT(TRUNCATE, TRUNCATE, SQLITE_IOERR_TRUNCATE, false, EIO) \
	FAULT(READ, READ, SQLITE_IOERR_READ, false, EIO) \
	FAULT(SIZE, SIZE, SQLITE_IOERR_FSTAT, false, EIO) \
	FAULT(LOCK, LOCK, SQLITE_IOERR_LOCK, false, ENOLCK) \
	FAULT(BUSY, LOCK, SQLITE_BUSY, false, EAGAIN) \
	FAULT(SHM_LOCK, SHM_LOCK, SQLITE_IOERR_SHMLOCK, false, ENOLCK) \
	FAULT(SHM_BUSY, SHM_LOCK, SQLITE_BUSY, false, EAGAIN) \
	FAULT(MAP, MAP, SQLITE_IOERR_SHMMAP, false, ENOMEM) \
	FAULT(OPEN, OPEN, SQLITE_CANTOPEN, false, EMFILE) \
	FAULT(DELETE, DELETE, SQLITE_IOERR_DELETE, false, EIO)

enum fault_call {
	CALL_WRITE, CALL_SYNC, CALL_TRUNCATE, CALL_READ, CALL_SIZE, CALL_LOCK,
	CALL_SHM_LOCK, CALL_MAP, CALL_OPEN, CALL_DELETE
};
enum fault_kind {
	FAULT_NONE,
#define FAULT(name, ...) FAULT_##name,
	FAULTS
#undef FAULT
	FAULT_COUNT
};
static const struct fault_row {
	const char *name;
	enum fault_call call;
	int rc;
	bool persists;
	int error;
} fault_rows[FAULT_COUNT] = {
	{ .name = "none" },
#define FAULT(name, call, rc, persists, error) \
	{ #name, CALL_##call, rc, persists, error },
	FAULTS
#undef FAULT
};

static struct faults {
	sqlite3_vfs vfs, *real;
	enum fault_kind kind;
	unsigned at; /* the call of its kind that fails, from 1 */
	unsigned calls, hits;
} faults;

struct fault_file {
	sqlite3_file base;
	sqlite3_file *real; /* behind this struct */
};

static inline void faults_arm(enum fault_kind kind, unsigned at)
{
	faults.kind = kind;
	faults.at = at;
	faults.calls = faults.hits = 0;
}

/* SQLITE_OK, or the code with which this call fails. */
static inline int fault_of(enum fault_call call)
{
	const struct fault_row *r = &fault_rows[faults.kind];

	if (!faults.kind || r->call != call)
		return SQLITE_OK;
	faults.calls++;
	if (faults.calls != faults.at &&
	    !(r->persists && faults.calls > faults.at))
		return SQLITE_OK;
	faults.hits++;
	errno = r->error;
	return r->rc;
}

#define REAL(f) (((struct fault_file *)(f))->real)
#define PASS(f, method, ...) REAL(f)->pMethods->method(REAL(f), ##__VA_ARGS__)

static inline int fault_close(sqlite3_file *f)
{
	return PASS(f, xClose);
}

static inline int fault_read(sqlite3_file *f, void *to, int n,
			     sqlite3_int64 at)
{
	int rc = fault_of(CALL_READ);

	return rc ? rc : PASS(f, xRead, to, n, at);
}

static inline int fault_write(sqlite3_file *f, const void *from, int n,
			      sqlite3_int64 at)
{
	int rc = fault_of(CALL_WRITE);

	if (rc && faults.kind == FAULT_SHORT_WRITE)
		PASS(f, xWrite, from, n / 2, at);
	return rc ? rc : PASS(f, xWrite, from, n, at);
}

static inline int fault_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = fault_of(CALL_TRUNCATE);

	return rc ? rc : PASS(f, xTruncate, size);
}

static inline int fault_sync(sqlite3_file *f, int flags)
{
	(void)f, (void)flags;
	return fault_of(CALL_SYNC);
}

static inline int fault_size(sqlite3_file *f, sqlite3_int64 *size)
{
	int rc = fault_of(CALL_SIZE);

	return rc ? rc : PASS(f, xFileSize, size);
}

static inline int fault_lock(sqlite3_file *f, int level)
{
	int rc = fault_of(CALL_LOCK);

	return rc ? rc : PASS(f, xLock, level);
}

static inline int fault_unlock(sqlite3_file *f, int level)
{
	return PASS(f, xUnlock, level);
}

static inline int fault_reserved(sqlite3_file *f, int *out)
{
	return PASS(f, xCheckReservedLock, out);
}

static inline int fault_control(sqlite3_file *f, int op, void *arg)
{
	return PASS(f, xFileControl, op, arg);
}

static inline int fault_sector(sqlite3_file *f)
{
	return PASS(f, xSectorSize);
}

static inline int fault_character(sqlite3_file *f)
{
	return PASS(f, xDeviceCharacteristics);
}

static inline int fault_shm_map(sqlite3_file *f, int page, int size,
				int extend, void volatile **out)
{
	int rc = fault_of(CALL_MAP);

	*out = NULL;
	return rc ? rc : PASS(f, xShmMap, page, size, extend, out);
}

static inline int fault_shm_lock(sqlite3_file *f, int first, int n, int flags)
{
	/* Letting go never fails. */
	int rc = flags & SQLITE_SHM_LOCK ? fault_of(CALL_SHM_LOCK) : 0;

	return rc ? rc : PASS(f, xShmLock, first, n, flags);
}

static inline void fault_shm_barrier(sqlite3_file *f)
{
	PASS(f, xShmBarrier);
}

static inline int fault_shm_unmap(sqlite3_file *f, int drop)
{
	return PASS(f, xShmUnmap, drop);
}

static const sqlite3_io_methods fault_methods = {
	.iVersion = 2, .xClose = fault_close, .xRead = fault_read,
	.xWrite = fault_write, .xTruncate = fault_truncate,
	.xSync = fault_sync, .xFileSize = fault_size, .xLock = fault_lock,
	.xUnlock = fault_unlock, .xCheckReservedLock = fault_reserved,
	.xFileControl = fault_control, .xSectorSize = fault_sector,
	.xDeviceCharacteristics = fault_character, .xShmMap = fault_shm_map,
	.xShmLock = fault_shm_lock, .xShmBarrier = fault_shm_barrier,
	.xShmUnmap = fault_shm_unmap,
};

static inline int fault_open(sqlite3_vfs *v, const char *name, sqlite3_file *f,
			     int flags, int *out_flags)
{
	struct fault_file *x = (struct fault_file *)f;
	int rc = fault_of(CALL_OPEN);

	(void)v;
	memset(x, 0, sizeof(*x));
	x->real = (sqlite3_file *)(x + 1);
	if (!rc)
		rc = faults.real->xOpen(faults.real, name, x->real, flags,
					out_flags);
	if (!rc)
		x->base.pMethods = &fault_methods;
	return rc;
}

static inline int fault_delete(sqlite3_vfs *v, const char *name, int sync)
{
	int rc = fault_of(CALL_DELETE);

	(void)v, (void)sync;
	return rc ? rc : faults.real->xDelete(faults.real, name, 0);
}

/* Of the thread's last failure, as the real one: errno. */
static inline int fault_last_error(sqlite3_vfs *v, int n, char *text)
{
	(void)v;
	if (faults.hits)
		return fault_rows[faults.kind].error;
	return faults.real->xGetLastError(faults.real, n, text);
}

/* The default file system from here on. */
static inline void faults_install(void)
{
	faults.real = sqlite3_vfs_find(NULL);
	faults.vfs = *faults.real;
	faults.vfs.zName = "faults";
	faults.vfs.szOsFile += sizeof(struct fault_file);
	faults.vfs.xOpen = fault_open;
	faults.vfs.xDelete = fault_delete;
	faults.vfs.xGetLastError = fault_last_error;
	if (sqlite3_vfs_register(&faults.vfs, 1) != SQLITE_OK)
		abort();
}

#endif
