/*
 * co_write_int - what the parts of the code object writer share.
 *
 * co_write.c    layout, patching, file
 * co_debug.c    line tables
 * co_dynamic.c  note, symbol tables, hash tables, load-time relocations
 */
#ifndef T0_ISA_CO_WRITE_INT_H
#define T0_ISA_CO_WRITE_INT_H

#include <elf.h>

#include "isa/object/object.h"

/* The order of sections in the file. */
enum co_rank {
	RANK_NOTE,
	RANK_DYNSYM,
	RANK_GNU_HASH,
	RANK_HASH,
	RANK_DYNSTR,
	RANK_RELA,
	RANK_READ,
	RANK_TEXT,
	RANK_RELRO,
	RANK_DYNAMIC,
	RANK_GOT,
	RANK_PADDING,
	RANK_DATA,
	RANK_BSS,
	RANK_UNLOADED,
};

/* A section of the file. */
struct co_out {
	const char *name;
	uint32_t type, flags, info, entry_bytes, name_offset;
	uint64_t align, size, addr, off;
	enum co_rank rank;
	int number; /* in the section table */
	struct co_out *link;
	struct buf data;
};

/* Where an input section went. */
struct co_in {
	struct co_out *out; /* NULL: dropped */
	uint64_t offset;
};

/* A relocation for the loader. */
struct co_rela {
	int section; /* 0: the GOT */
	uint64_t offset;
	int symbol;
	int64_t addend;
	bool relative; /* to the load address: no symbol */
};

struct co_writer {
	struct isa_object *o;
	struct co_in *in; /* [o->n_sections] */
	struct co_out out[CO_MAX_SEGMENTS];
	struct co_out *order[CO_MAX_SEGMENTS];
	int n_outs, n_loaded;
	Elf64_Phdr phdr[10];
	int n_phdrs, n_written;
	uint64_t file_end;
	int *got, n_got; /* symbols with an entry */
	struct co_out *got_out, *names;
	int *dynsym, n_dynsym; /* symbols, in the order of .dynsym; [0] = 0 */
	int n_undefined;       /* of them, which come first */
	struct co_rela *rela;
	int n_rela, n_relative;
};

/* -------------------------------------------------------- co_write.c ---- */

struct co_out *co_out_add(struct co_writer *w, const char *name, uint32_t type,
			  uint32_t flags, uint64_t align, enum co_rank rank);
uint64_t co_symbol_addr(const struct co_writer *w, int symbol);

/* ------------------------------------------------------ co_dynamic.c ---- */

/* The metadata as a note: the first section. */
void co_note_plan(struct co_writer *w);
/* Sections that the loader reads, with their sizes. */
bool co_dynamic_plan(struct co_writer *w, struct err *e);
/* Their contents, once addresses are known. */
void co_dynamic_fill(struct co_writer *w);
/* .symtab and .strtab. */
void co_symbol_table(struct co_writer *w);

/* -------------------------------------------------------- co_debug.c ---- */

/* The kernel's line table (DWARF 5); `symbol` is its code. */
void co_debug_lines(struct isa_object *o, const struct co_build_kernel *k,
		    int symbol);

#endif
