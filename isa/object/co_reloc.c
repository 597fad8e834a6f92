/*
 * isa/object/co_reloc.c - relocations of a code object, as the loader sees
 * them.
 */
#include "isa/object/co_int.h"

#include <elf.h>
#include <inttypes.h>

/* Bytes that a relocation writes; -1 for a type that no linked file has. */
static int reloc_bytes(uint32_t type)
{
	switch (type) {
	case CO_RELOC_NONE:
		return 0;
	case CO_RELOC_ABS32_LO:
	case CO_RELOC_ABS32_HI:
	case CO_RELOC_REL32:
	case CO_RELOC_ABS32:
	case CO_RELOC_REL32_LO:
	case CO_RELOC_REL32_HI:
		return 4;
	case CO_RELOC_ABS64:
	case CO_RELOC_REL64:
	case CO_RELOC_RELATIVE64:
		return 8;
	}
	return -1;
}

static bool reloc_symbol(struct co_reader *r, struct co_reloc *out,
			 uint64_t symtab, uint64_t index, struct err *e)
{
	Elf_Data *d;
	GElf_Sym s;
	size_t n;

	out->symbol = "";
	if (!index)
		return true;
	if (symtab >= r->n_sections || !co_elf_is_symtab(&r->section[symtab]))
		return err_set(e, ERR_INPUT,
			       "relocation at 0x%" PRIx64 ": section %" PRIu64
			       " is no symbol table",
			       out->vaddr, symtab);
	if (!co_elf_table(r, symtab, sizeof(Elf64_Sym), &d, &n, e))
		return false;
	if (index >= n || !gelf_getsym(d, (int)index, &s))
		return err_set(e, ERR_INPUT,
			       "relocation at 0x%" PRIx64 ": symbol %" PRIu64
			       " of %zu",
			       out->vaddr, index, n);
	out->symbol = co_elf_string(r, r->section[symtab].sh_link, s.st_name);
	if (!out->symbol)
		return err_set(e, ERR_INPUT,
			       "relocation at 0x%" PRIx64 ": its symbol's name "
			       "is no proper string",
			       out->vaddr);
	out->symbol_vaddr = s.st_value;
	out->absolute = s.st_shndx == SHN_ABS;
	out->undefined = s.st_shndx == SHN_UNDEF;
	if (out->undefined && GELF_ST_BIND(s.st_info) == STB_WEAK) {
		out->undefined = false; /* resolves to address 0 */
		out->absolute = true;
		out->symbol_vaddr = 0;
	}
	return true;
}

static bool add_reloc(struct co_reader *r, struct co_reloc *out,
		      uint64_t symtab, const GElf_Rela *ra, struct err *e)
{
	struct co *co = r->co;
	uint32_t type = (uint32_t)GELF_R_TYPE(ra->r_info);
	int bytes = reloc_bytes(type);

	if (bytes < 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "relocation type %u at 0x%" PRIx64
			       " (known: 0-6, 10, 11, 13)",
			       type, (uint64_t)ra->r_offset);
	if (bytes && !co_segment_at(co, ra->r_offset, (uint64_t)bytes))
		return err_set(e, ERR_INPUT,
			       "relocation of %d bytes at 0x%" PRIx64
			       " is outside the loaded segments",
			       bytes, (uint64_t)ra->r_offset);
	*out = (struct co_reloc){ .vaddr = ra->r_offset,
				  .type = type,
				  .addend = ra->r_addend };
	co->n_relocs++;
	return reloc_symbol(r, out, symtab, GELF_R_SYM(ra->r_info), e);
}

static bool read_rela(struct co_reader *r, struct co_reloc *out, size_t sec,
		      struct err *e)
{
	Elf_Data *d;
	size_t n;

	if (!co_elf_table(r, sec, sizeof(Elf64_Rela), &d, &n, e))
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Rela ra;

		if (!gelf_getrela(d, (int)i, &ra))
			return err_set(e, ERR_INPUT, "relocation %zu: %s", i,
				       elf_errmsg(-1));
		if (!add_reloc(r, &out[r->co->n_relocs],
			       r->section[sec].sh_link, &ra, e))
			return false;
	}
	return true;
}

/* Only what the dynamic loader sees: relocations of debug data stay. */
static bool is_dynamic(const GElf_Shdr *sh, uint32_t type)
{
	return sh->sh_type == type && (sh->sh_flags & SHF_ALLOC);
}

bool co_elf_relocs(struct co_reader *r, struct err *e)
{
	struct co_reloc *out;
	uint64_t room = 0;

	for (size_t i = 0; i < r->n_sections; i++) {
		const GElf_Shdr *sh = &r->section[i];

		if (is_dynamic(sh, SHT_REL) || is_dynamic(sh, 19 /* RELR */))
			return err_set(
				e, ERR_UNSUPPORTED,
				"section %zu: relocations without addends "
				"(SHT_REL, SHT_RELR); link with RELA",
				i);
		if (is_dynamic(sh, SHT_RELA))
			room += sh->sh_size / sizeof(Elf64_Rela);
	}
	if (room > CO_MAX_RELOCS)
		return err_set(e, ERR_INPUT,
			       "%" PRIu64 " relocations, limit "
			       "%d",
			       room, CO_MAX_RELOCS);
	out = arena_alloc(&r->co->mem, (room + 1) * sizeof(*out));
	r->co->relocs = out;
	for (size_t i = 0; i < r->n_sections; i++)
		if (is_dynamic(&r->section[i], SHT_RELA) &&
		    !read_rela(r, out, i, e))
			return false;
	return true;
}
