/*
 * isa/object/co_write.c - addresses, patching and the ELF file.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "isa/object/co_write_int.h"

#define PAGE UINT64_C(0x1000)

static uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

/* ------------------------------------------------------------- sections ----
 */

static bool has_prefix(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return !strncmp(s, prefix, n) && (!s[n] || s[n] == '.');
}

/* The output section of an input section. */
static const char *out_name(const char *name)
{
	static const char *const merged[] = { ".text", ".rodata",
					      ".data.rel.ro", ".data", ".bss" };

	for (size_t i = 0; i < ARRAY_SIZE(merged); i++)
		if (has_prefix(name, merged[i]))
			return merged[i];
	return name;
}

static enum co_rank rank_of(const char *name, uint32_t type, uint32_t flags)
{
	if (flags & ISA_SHF_EXEC)
		return RANK_TEXT;
	if (!(flags & ISA_SHF_WRITE))
		return RANK_READ;
	if (!strcmp(name, ".data.rel.ro"))
		return RANK_RELRO;
	if (!strcmp(name, ".got"))
		return RANK_GOT;
	return type == ISA_SHT_NOBITS ? RANK_BSS : RANK_DATA;
}

struct co_out *co_out_add(struct co_writer *w, const char *name, uint32_t type,
			  uint32_t flags, uint64_t align, enum co_rank rank)
{
	struct co_out *s = &w->out[w->n_outs++];

	memset(s, 0, sizeof(*s));
	s->name = name;
	s->type = type;
	s->flags = flags;
	s->align = align;
	s->rank = rank;
	return s;
}

static struct co_out *out_for(struct co_writer *w, const struct isa_section *s)
{
	const char *name = out_name(s->name);

	for (int i = 0; i < w->n_outs; i++)
		if (!strcmp(w->out[i].name, name))
			return &w->out[i];
	return co_out_add(w, name, s->type,
			  s->flags & (SHF_WRITE | SHF_ALLOC | SHF_EXECINSTR),
			  s->align, rank_of(name, s->type, s->flags));
}

/* Each input section is appended to its output section. */
static bool place_inputs(struct co_writer *w, struct err *e)
{
	for (int i = 0; i < w->o->n_sections; i++) {
		const struct isa_section *s = &w->o->section[i];
		struct co_out *out;

		w->in[i].out = NULL;
		if (!(s->flags & ISA_SHF_ALLOC) || !s->size_bytes)
			continue;
		if (w->n_outs >= CO_MAX_SEGMENTS - 16)
			return err_set(e, ERR_INPUT,
				       "more than %d different sections",
				       CO_MAX_SEGMENTS - 16);
		out = out_for(w, s);
		if (out->type == SHT_NOBITS && s->type != ISA_SHT_NOBITS)
			return err_set(e, ERR_INPUT,
				       "section %s has bytes but goes to %s, "
				       "which has none",
				       s->name, out->name);
		w->in[i].out = out;
		w->in[i].offset = align_up(out->size, s->align);
		out->size = w->in[i].offset + s->size_bytes;
		if (out->align < s->align)
			out->align = s->align;
		if (out->size > CO_MAX_SPAN_BYTES)
			return err_set(e, ERR_INPUT, "section %s is too large",
				       out->name);
	}
	return true;
}

static void copy_inputs(struct co_writer *w)
{
	static const uint32_t s_nop = 0xbf800000;

	for (int i = 0; i < w->o->n_sections; i++) {
		const struct isa_section *s = &w->o->section[i];
		struct co_out *out = w->in[i].out;

		if (!out || out->type == SHT_NOBITS)
			continue;
		while (out->data.len < w->in[i].offset) {
			if (out->flags & SHF_EXECINSTR &&
			    !(out->data.len & 3) &&
			    w->in[i].offset - out->data.len >= 4)
				buf_add(&out->data, &s_nop, 4);
			else
				buf_addc(&out->data, 0);
		}
		buf_add(&out->data, s->data.data, s->data.len);
	}
}

/* --------------------------------------------------------------- layout ----
 */

static int by_rank(const void *a, const void *b)
{
	const struct co_out *x = *(struct co_out *const *)a;
	const struct co_out *y = *(struct co_out *const *)b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x < y ? -1 : 1;
}

/* Sections of one segment have the same permissions. */
static int segment_of(const struct co_out *s)
{
	switch (s->rank) {
	case RANK_TEXT:
		return 1;
	case RANK_RELRO:
	case RANK_DYNAMIC:
	case RANK_GOT:
	case RANK_PADDING:
		return 2;
	case RANK_DATA:
	case RANK_BSS:
		return 3;
	default:
		return 0;
	}
}

/*
 * A new segment starts on the next page in memory, but not in the file: its
 * address is the same as its offset, modulo the page.
 */
static void assign_addresses(struct co_writer *w)
{
	uint64_t off = sizeof(Elf64_Ehdr) + w->n_phdrs * sizeof(Elf64_Phdr);
	uint64_t addr = off;
	int segment = 0;

	for (int i = 0; i < w->n_outs; i++)
		w->order[i] = &w->out[i];
	qsort(w->order, w->n_outs, sizeof(*w->order), by_rank);
	for (int i = 0; i < w->n_outs; i++) {
		struct co_out *s = w->order[i];
		uint64_t at;

		s->number = i + 1;
		if (segment_of(s) != segment) {
			segment = segment_of(s);
			addr = align_up(addr, PAGE) + off % PAGE;
		}
		at = align_up(addr, s->align);
		off += at - addr;
		addr = at;
		if (s->rank == RANK_PADDING)
			s->size = align_up(addr, PAGE) - addr;
		s->addr = addr;
		s->off = off;
		addr += s->size;
		if (s->type != SHT_NOBITS)
			off += s->size;
	}
	w->file_end = off;
}

uint64_t co_symbol_addr(const struct co_writer *w, int symbol)
{
	const struct isa_symbol *s = isa_symbol_at(w->o, symbol);

	if (s->where == ISA_SYM_ABSOLUTE)
		return s->value;
	if (s->where == ISA_SYM_UNDEFINED || !w->in[s->section - 1].out)
		return 0;
	return w->in[s->section - 1].out->addr + w->in[s->section - 1].offset +
	       s->value;
}

/* ---------------------------------------------------------- relocations ----
 */

static uint64_t got_addr(const struct co_writer *w, int symbol)
{
	for (int i = 0; i < w->n_got; i++)
		if (w->got[i] == symbol)
			return w->got_out->addr + 8 * i;
	BUG("symbol %d has no GOT entry", symbol);
}

static bool out_of_range(const struct co_writer *w, const struct isa_reloc *r,
			 struct err *e)
{
	return err_set(e, ERR_INPUT,
		       "%s+0x%llx: the reference to '%s' does not reach it",
		       isa_section_at(w->o, r->section)->name,
		       (unsigned long long)r->offset,
		       isa_symbol_at(w->o, r->symbol)->name);
}

static bool apply_reloc(struct co_writer *w, const struct isa_reloc *r,
			struct err *e)
{
	struct co_out *out = w->in[r->section - 1].out;
	uint64_t at = w->in[r->section - 1].offset + r->offset;
	uint64_t s = co_symbol_addr(w, r->symbol), v;
	int64_t pc;
	int bytes = 4;

	if (r->type >= CO_RELOC_GOTPCREL && r->type <= CO_RELOC_GOTPCREL32_HI)
		s = got_addr(w, r->symbol);
	v = s + r->addend;
	pc = v - (out->addr + at);
	switch (r->type) {
	case CO_RELOC_ABS64:
		bytes = 8;
		break;
	case CO_RELOC_REL64:
		bytes = 8;
		v = pc;
		break;
	case CO_RELOC_ABS32_HI:
		v >>= 32;
		break;
	case CO_RELOC_REL32_HI:
	case CO_RELOC_GOTPCREL32_HI:
		v = pc >> 32;
		break;
	case CO_RELOC_REL16:
		pc -= 4;
		if (pc & 3 || pc < -4 * 0x8000 || pc > 4 * 0x7fff)
			return out_of_range(w, r, e);
		bytes = 2;
		v = pc / 4;
		break;
	case CO_RELOC_REL32:
	case CO_RELOC_GOTPCREL:
		if (pc != (int32_t)pc)
			return out_of_range(w, r, e);
		v = pc;
		break;
	case CO_RELOC_REL32_LO:
	case CO_RELOC_GOTPCREL32_LO:
		v = pc;
		break;
	}
	memcpy(out->data.data + at, &v, bytes);
	return true;
}

static bool apply_all(struct co_writer *w, struct err *e)
{
	for (size_t i = 0; i < w->o->n_relocs; i++) {
		const struct isa_reloc *r = &w->o->reloc[i];
		bool later = r->type == CO_RELOC_ABS64 &&
			     isa_symbol_at(w->o, r->symbol)->where !=
				     ISA_SYM_ABSOLUTE;

		/* The loader writes addresses, whatever stands there. */
		if (w->in[r->section - 1].out && !later &&
		    !apply_reloc(w, r, e))
			return false;
	}
	return true;
}

/* ----------------------------------------------------------------- file ----
 */

static void pad_to(struct buf *b, size_t base, uint64_t off)
{
	while (b->len - base < off)
		buf_addc(b, 0);
}

static int machine_flags(const char *chip, int version)
{
	for (int i = 0; i < 256; i++) {
		const char *name = co_chip_name(i);

		/* Generic chips count their versions, from 1. */
		if (name && !strcmp(name, chip))
			return i | (version == 6 && strstr(chip, "generic") ?
					    1 << 24 :
					    0);
	}
	return -1;
}

static void add_phdr(struct co_writer *w, uint32_t type, uint32_t flags,
		     uint64_t align, const struct co_out *first,
		     const struct co_out *last)
{
	Elf64_Phdr p = { .p_type = type, .p_flags = flags, .p_align = align };

	if (first) {
		const struct co_out *s = last;

		p.p_offset = first->off;
		p.p_vaddr = p.p_paddr = first->addr;
		p.p_memsz = last->addr + last->size - first->addr;
		/* Zeros at the end have no bytes in the file. */
		p.p_filesz = s->type == SHT_NOBITS ?
				     s->off - first->off :
				     s->off + s->size - first->off;
	}
	w->phdr[w->n_written++] = p;
}

/* The first and last section with these segment and rank limits. */
static bool segment_range(const struct co_writer *w, int segment,
			  struct co_out **first, struct co_out **last)
{
	*first = *last = NULL;
	for (int i = 0; i < w->n_outs; i++) {
		if (segment_of(w->order[i]) != segment)
			continue;
		*first = *first ? *first : w->order[i];
		*last = w->order[i];
	}
	return *first;
}

static struct co_out *find_out(const struct co_writer *w, const char *name)
{
	for (int i = 0; i < w->n_outs; i++)
		if (!strcmp(w->order[i]->name, name))
			return w->order[i];
	return NULL;
}

static void program_headers(struct co_writer *w)
{
	static const uint32_t rights[] = { PF_R, PF_R | PF_X, PF_R | PF_W,
					   PF_R | PF_W };
	struct co_out *first, *last;
	struct co_out *dynamic = find_out(w, ".dynamic");
	struct co_out *note = find_out(w, ".note");
	Elf64_Phdr *p = w->phdr;

	add_phdr(w, PT_PHDR, PF_R, 8, NULL, NULL);
	p->p_offset = p->p_vaddr = p->p_paddr = sizeof(Elf64_Ehdr);
	p->p_filesz = p->p_memsz = w->n_phdrs * sizeof(Elf64_Phdr);
	for (int i = 0; i < 4; i++) {
		if (!segment_range(w, i, &first, &last))
			continue;
		add_phdr(w, PT_LOAD, rights[i], PAGE, first, last);
		if (i)
			continue;
		/* The headers are loaded, too. */
		p = &w->phdr[w->n_written - 1];
		p->p_filesz = p->p_memsz = p->p_offset + p->p_filesz;
		p->p_offset = p->p_vaddr = p->p_paddr = 0;
	}
	add_phdr(w, PT_DYNAMIC, PF_R | PF_W, 8, dynamic, dynamic);
	segment_range(w, 2, &first, &last);
	add_phdr(w, PT_GNU_RELRO, PF_R, 1, first, last);
	add_phdr(w, PT_GNU_STACK, PF_R | PF_W, 0, NULL, NULL);
	if (note)
		add_phdr(w, PT_NOTE, PF_R, 4, note, note);
}

static void section_headers(struct co_writer *w, struct buf *out)
{
	Elf64_Shdr zero = { 0 };

	buf_add(out, &zero, sizeof(zero));
	for (int i = 0; i < w->n_outs; i++) {
		const struct co_out *s = w->order[i];
		Elf64_Shdr h = {
			.sh_name = s->name_offset,
			.sh_type = s->type,
			.sh_flags = s->flags,
			.sh_addr = s->addr,
			.sh_offset = s->off,
			.sh_size = s->size,
			.sh_link = s->link ? s->link->number : 0,
			.sh_info = s->info,
			.sh_addralign = s->align,
			.sh_entsize = s->entry_bytes,
		};

		buf_add(out, &h, sizeof(h));
	}
}

/* ISA_SHF_KEEP: debugging sections, relocated here, never loaded. */
static void keep_sections(struct co_writer *w)
{
	for (int i = 0; i < w->o->n_sections; i++) {
		const struct isa_section *s = &w->o->section[i];
		struct co_out *out;

		if (!(s->flags & ISA_SHF_KEEP))
			continue;
		out = co_out_add(w, s->name, s->type, 0, 1, RANK_UNLOADED);
		buf_add(&out->data, s->data.data, s->data.len);
		for (size_t k = 0; k < w->o->n_relocs; k++) {
			const struct isa_reloc *r = &w->o->reloc[k];
			uint64_t v;

			if (r->section != i + 1 || r->type != CO_RELOC_ABS64)
				continue;
			v = co_symbol_addr(w, r->symbol) +
			    (uint64_t)r->addend;
			memcpy(out->data.data + r->offset, &v, 8);
		}
	}
}

/* Sections that are not loaded: debugging, symbols and names. */
static void add_unloaded(struct co_writer *w)
{
	struct co_out *names =
		co_out_add(w, ".shstrtab", SHT_STRTAB, 0, 1, RANK_UNLOADED);
	uint64_t off = w->file_end;

	keep_sections(w);
	co_symbol_table(w);
	buf_addc(&names->data, 0);
	for (int i = 0; i < w->n_outs; i++) {
		struct co_out *s = &w->out[i];

		s->name_offset = names->data.len;
		buf_add(&names->data, s->name, strlen(s->name) + 1);
	}
	for (int i = 0; i < w->n_outs; i++) {
		struct co_out *s = &w->out[i];

		if (s->rank != RANK_UNLOADED)
			continue;
		w->order[w->n_loaded++] = s;
		s->number = w->n_loaded;
		off = align_up(off, s->align);
		s->off = off;
		s->size = s->data.len;
		off += s->size;
	}
	w->names = names;
	w->file_end = align_up(off, 8);
}

static bool write_file(struct co_writer *w, struct buf *out, struct err *e)
{
	size_t base = out->len;
	int flags = machine_flags(w->o->chip, w->o->version);
	Elf64_Ehdr h = {
		.e_type = ET_DYN,
		.e_machine = 224,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(h),
		.e_shoff = w->file_end,
		.e_flags = flags,
		.e_ehsize = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = w->n_phdrs,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = w->n_outs + 1,
		.e_shstrndx = w->names->number,
	};

	if (flags < 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "%s has no number in code objects", w->o->chip);
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	h.e_ident[EI_OSABI] = 64;
	h.e_ident[EI_ABIVERSION] = w->o->version - 2;
	buf_add(out, &h, sizeof(h));
	buf_add(out, w->phdr, w->n_phdrs * sizeof(*w->phdr));
	for (int i = 0; i < w->n_outs; i++) {
		if (w->order[i]->type == SHT_NOBITS)
			continue;
		pad_to(out, base, w->order[i]->off);
		buf_add(out, w->order[i]->data.data, w->order[i]->data.len);
	}
	pad_to(out, base, w->file_end);
	section_headers(w, out);
	return true;
}

static int count_phdrs(const struct co_writer *w)
{
	bool segment[4] = { true, false, true, false };
	int n = 4; /* PHDR, DYNAMIC, RELRO, STACK */

	for (int i = 0; i < w->n_outs; i++)
		segment[segment_of(&w->out[i])] = true;
	for (int i = 0; i < 4; i++)
		n += segment[i];
	return n + (w->o->metadata.len != 0);
}

static bool link_object(struct co_writer *w, struct buf *out, struct err *e)
{
	/* First: notes that the text has, too, follow the metadata's. */
	co_note_plan(w);
	if (!place_inputs(w, e) || !co_dynamic_plan(w, e))
		return false;
	copy_inputs(w);
	w->n_phdrs = count_phdrs(w);
	assign_addresses(w);
	w->n_loaded = w->n_outs;
	co_dynamic_fill(w);
	if (!apply_all(w, e))
		return false;
	program_headers(w);
	add_unloaded(w);
	return write_file(w, out, e);
}

bool co_write(struct isa_object *o, struct buf *out, struct err *e)
{
	struct co_writer *w = xcalloc(1, sizeof(*w));
	size_t base = out->len;
	bool ok;

	w->o = o;
	w->in = xcalloc(o->n_sections + 1, sizeof(*w->in));
	ok = link_object(w, out, e);
	if (!ok)
		out->len = base;
	for (int i = 0; i < w->n_outs; i++)
		buf_fini(&w->out[i].data);
	free(w->in);
	free(w->got);
	free(w->dynsym);
	free(w->rela);
	free(w);
	return ok;
}
