/*
 * isa/object/co_lines.c - source lines of code objects, by elfutils' libdw.
 */
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/object/lines.h"

/* A row of the line table: from this address up to the next row's. */
struct row {
	uint64_t vaddr;
	int line;
	bool end; /* of a sequence: what follows has no line */
	const char *file;
};

struct co_lines {
	Elf *elf;
	Dwarf *dwarf; /* owns the file names */
	struct row *row; /* sorted by address */
	size_t n, cap;
};

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static void add_rows(struct co_lines *l, Dwarf_Lines *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *x = dwarf_onesrcline(table, i);
		struct row r = { 0 };
		Dwarf_Addr va;

		if (!x || dwarf_lineaddr(x, &va) || dwarf_lineno(x, &r.line) ||
		    dwarf_lineendsequence(x, &r.end))
			continue;
		r.vaddr = va;
		r.file = base_name(dwarf_linesrc(x, NULL, NULL));
		VEC_GROW(l->row, l->n, 1, l->cap);
		l->row[l->n++] = r;
	}
}

/* Where two rows have one address, the end of a sequence comes first. */
static int by_vaddr(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (int)y->end - (int)x->end;
}

static void read_units(struct co_lines *l)
{
	Dwarf_Off at = 0, next;
	size_t header;

	while (!dwarf_nextcu(l->dwarf, at, &next, &header, NULL, NULL, NULL)) {
		Dwarf_Die die;
		Dwarf_Lines *table;
		size_t n;

		if (dwarf_offdie(l->dwarf, at + header, &die) &&
		    !dwarf_getsrclines(&die, &table, &n))
			add_rows(l, table, n);
		at = next;
	}
	if (l->n)
		qsort(l->row, l->n, sizeof(*l->row), by_vaddr);
}

struct co_lines *co_lines_new(const uint8_t *elf, size_t elf_bytes)
{
	struct co_lines *l = xcalloc(1, sizeof(*l));

	elf_version(EV_CURRENT);
	l->elf = elf_memory((char *)(uintptr_t)elf, elf_bytes);
	if (l->elf)
		l->dwarf = dwarf_begin_elf(l->elf, DWARF_C_READ, NULL);
	if (l->dwarf)
		read_units(l);
	if (l->n)
		return l;
	co_lines_free(l);
	return NULL;
}

void co_lines_free(struct co_lines *l)
{
	if (!l)
		return;
	if (l->dwarf)
		dwarf_end(l->dwarf);
	if (l->elf)
		elf_end(l->elf);
	free(l->row);
	free(l);
}

bool co_lines_find(const struct co_lines *l, uint64_t vaddr, const char **file,
		int *line)
{
	size_t lo = 0, hi = l->n;

	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;

		if (l->row[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || l->row[lo - 1].end || !l->row[lo - 1].file)
		return false;
	*file = l->row[lo - 1].file;
	*line = l->row[lo - 1].line;
	return true;
}
