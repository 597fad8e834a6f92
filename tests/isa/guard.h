/*
 * guard - input that ends where memory does, for parsers: a read behind its end
 * faults.
 */
#ifndef T0_TESTS_GUARD_H
#define T0_TESTS_GUARD_H

#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

/* The end of at least `size_bytes` of zeros; they are never unmapped. */
static inline uint8_t *guard_end(size_t size_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (size_bytes + page - 1) / page * page;
	uint8_t *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + room, page, PROT_NONE))
		BUG("no memory for the input");
	return p + room;
}

#endif
