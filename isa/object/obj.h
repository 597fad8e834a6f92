/*
 * obj - a relocatable object in memory: what the assembler makes and the code
 * object writer links.
 *
 * Sections hold bytes; symbols are places in them or numbers; relocations
 * patch bytes once all addresses are known (co_write.h).  Numbers of sections
 * and symbols start at 1; 0 means none.
 *
 * Ownership: everything belongs to the object and goes with
 * isa_object_fini().  Zero-initialise, then isa_object_init().
 */
#ifndef T0_ISA_OBJ_H
#define T0_ISA_OBJ_H

#include "base/base.h"

/* Section flags and types, as in ELF. */
#define ISA_SHF_WRITE	 1u
#define ISA_SHF_ALLOC	 2u
#define ISA_SHF_EXEC	 4u
#define ISA_SHF_MERGE	 0x10u
#define ISA_SHF_STRINGS	 0x20u
/* Ours: not loaded, but kept in the code object, with addresses filled in. */
#define ISA_SHF_KEEP	 0x80000000u
#define ISA_SHT_PROGBITS 1u
#define ISA_SHT_NOTE	 7u
#define ISA_SHT_NOBITS	 8u

struct isa_section {
	const char *name;
	uint32_t type, flags;
	uint32_t entry_bytes; /* of mergeable sections */
	uint64_t align;	      /* power of two */
	struct buf data;      /* NOBITS: empty */
	uint64_t size_bytes;  /* == data.len unless NOBITS */
};

enum isa_symbol_where {
	ISA_SYM_UNDEFINED,
	ISA_SYM_ABSOLUTE,
	ISA_SYM_SECTION,
};

struct isa_symbol {
	const char *name;   /* "" for anonymous labels */
	uint8_t where;	    /* enum isa_symbol_where */
	uint8_t binding;    /* 0 local, 1 global, 2 weak */
	uint8_t type;	    /* 0 none, 1 object, 2 function */
	uint8_t visibility; /* 0 default, 1 internal, 2 hidden, 3 protected */
	int section;
	uint64_t value; /* offset in the section, or the number */
	uint64_t size_bytes;
};

/* ELF relocation types of machine 224 that an assembler makes. */
enum isa_reloc_type {
	ISA_REL_ABS32_LO = 1,
	ISA_REL_ABS32_HI = 2,
	ISA_REL_ABS64 = 3,
	ISA_REL_REL32 = 4,
	ISA_REL_REL64 = 5,
	ISA_REL_ABS32 = 6,
	ISA_REL_GOTPCREL = 7,
	ISA_REL_GOTPCREL32_LO = 8,
	ISA_REL_GOTPCREL32_HI = 9,
	ISA_REL_REL32_LO = 10,
	ISA_REL_REL32_HI = 11,
	ISA_REL_REL16 = 14, /* dwords, of branches */
};

struct isa_reloc {
	int section; /* whose bytes are patched */
	uint64_t offset;
	uint32_t type; /* enum isa_reloc_type */
	int symbol;
	int64_t addend;
};

struct isa_object {
	const char *chip;	     /* "gfx1100" */
	int version;		     /* code object version 4, 5 or 6 */
	struct isa_section *section; /* [n_sections], number 1 is [0] */
	int n_sections, cap_sections;
	struct isa_symbol *symbol; /* [n_symbols], number 1 is [0] */
	int n_symbols, cap_symbols;
	struct isa_reloc *reloc;
	size_t n_relocs, cap_relocs;
	int *hash; /* [cap_hash] symbol numbers by name, 0 = empty */
	size_t cap_hash;
	struct buf metadata; /* MessagePack of the note; empty: no note */
	struct arena mem;    /* names */
};

/* ------------------------------------------------------------- obj.c ---- */

void isa_object_init(struct isa_object *o);
void isa_object_fini(struct isa_object *o);

/* The section of that name, added with these properties if it is new. */
int isa_object_section(struct isa_object *o, const char *name, int len,
		       uint32_t type, uint32_t flags);
static inline struct isa_section *isa_section_at(const struct isa_object *o,
						 int number)
{
	return &o->section[number - 1];
}
static inline struct isa_symbol *isa_symbol_at(const struct isa_object *o,
					       int number)
{
	return &o->symbol[number - 1];
}
/* The symbol of that name, undefined and local if it is new. */
int isa_object_symbol(struct isa_object *o, const char *name, int len);
/* The same, 0 if there is none. */
int isa_object_find(const struct isa_object *o, const char *name, int len);
/* A symbol without a name. */
int isa_object_anonymous(struct isa_object *o);
void isa_object_reloc(struct isa_object *o, const struct isa_reloc *r);

#endif
