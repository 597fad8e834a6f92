/*
 * lines - source lines of the instructions of a code object, by the line table
 * that it may have (DWARF .debug_line).
 */
#ifndef T0_ISA_LINES_H
#define T0_ISA_LINES_H

#include "base/base.h"

/* ------------------------------------------------------- co_lines.c ---- */

struct co_lines;

/* That of an ELF in memory, which has to stay; NULL: it has none. */
struct co_lines *co_lines_new(const uint8_t *elf, size_t elf_bytes);
void co_lines_free(struct co_lines *l);
/* "file.cl" and line of the instruction at this address of the file. */
bool co_lines_find(const struct co_lines *l, uint64_t vaddr, const char **file,
		   int *line);

#endif
