/*
 * co_int - what the files of the code object reader share.
 */
#ifndef T0_ISA_CO_INT_H
#define T0_ISA_CO_INT_H

#include <gelf.h>

#include "isa/object/object.h"

/* State of one co_parse(), freed when it returns. */
struct co_reader {
	struct co *co;
	Elf *elf;
	GElf_Shdr *section; /* [n_sections], by section number, checked */
	size_t n_sections;
	struct co_kernel *kernel; /* co->kernels, while they are filled */
	uint32_t n_args;	  /* of all kernels read so far */
	uint64_t note_bytes; /* looked at so far, all note segments together */
	struct arena mem;
};

/* ----------------------------------------------------------- co_elf.c ---- */

/* Section headers with their ranges checked, and the segments. */
bool co_elf_open(struct co_reader *r, struct err *e);
bool co_elf_texts(struct co_reader *r, struct err *e);
bool co_elf_symbols(struct co_reader *r, struct err *e);
/*
 * The metadata: *data stays NULL when no note holds it.  Points into the
 * caller's bytes.
 */
bool co_elf_metadata(struct co_reader *r, const void **data, size_t *len,
		     struct err *e);

/*
 * May this be printed?  UTF-8 without control characters: names reach
 * terminals and JSON.
 */
bool co_text_ok(const void *text, size_t n);

/*
 * The string at `off` of string table section `sec`; NULL when it is not a
 * proper one.
 */
const char *co_elf_string(const struct co_reader *r, uint64_t sec,
			  uint64_t off);
/* Number of entries of a table section; its data in *d. */
bool co_elf_table(struct co_reader *r, size_t sec, size_t entry, Elf_Data **d,
		  size_t *n, struct err *e);
bool co_elf_is_symtab(const GElf_Shdr *sh);

/* The segment that holds all of vaddr..vaddr + n, or NULL. */
const struct co_segment *co_segment_at(const struct co *co, uint64_t vaddr,
				       uint64_t n);
/* The same n bytes in the file, or NULL when they are not all there. */
const uint8_t *co_file_bytes(const struct co *co, uint64_t vaddr, uint64_t n);

/* --------------------------------------------------------- co_reloc.c ---- */

bool co_elf_relocs(struct co_reader *r, struct err *e);

/* ---------------------------------------------------------- co_meta.c ---- */

/* Fill r->kernel[] from the MessagePack document. */
bool co_meta_read(struct co_reader *r, const void *data, size_t len,
		  struct err *e);

#endif
