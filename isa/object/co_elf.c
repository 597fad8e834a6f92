/*
 * isa/object/co_elf.c - the ELF side of a code object: headers, segments,
 * symbols and the metadata note; co_reloc.c has the relocations.
 *
 * libelf walks the tables.  Before it does, the tables' own ranges are checked
 * here, so that a truncated file is called truncated.  Strings are looked up
 * here too: they then point into the caller's bytes and cost one pass.
 */
#include "isa/object/co_int.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES	   4096
#define NOTE_TYPE_METADATA 32 /* NT_AMDGPU_METADATA, MessagePack */

/* Is [off, off + n) inside [0, total)?  Overflow-proof. */
static bool is_inside(uint64_t off, uint64_t n, uint64_t total)
{
	return off <= total && n <= total - off;
}

const struct co_segment *co_segment_at(const struct co *co, uint64_t vaddr,
				       uint64_t n)
{
	for (uint32_t i = 0; i < co->n_segments; i++) {
		const struct co_segment *s = &co->segments[i];

		if (vaddr >= s->vaddr &&
		    is_inside(vaddr - s->vaddr, n, s->memsz))
			return s;
	}
	return NULL;
}

const uint8_t *co_file_bytes(const struct co *co, uint64_t vaddr, uint64_t n)
{
	const struct co_segment *s = co_segment_at(co, vaddr, n);

	if (!s || !is_inside(vaddr - s->vaddr, n, s->filesz))
		return NULL;
	return co->bytes + s->offset + (vaddr - s->vaddr);
}

/* ---- headers ------------------------------------------------------------ */

static bool check_table(const struct co *co, const char *what, uint64_t off,
			uint64_t count, uint64_t entry, uint64_t wanted,
			struct err *e)
{
	if (!count)
		return true;
	if (entry != wanted)
		return err_set(e, ERR_INPUT,
			       "%s headers of %" PRIu64
			       " bytes, expected %" PRIu64,
			       what, entry, wanted);
	if (!is_inside(off, count * entry, co->len))
		return err_set(e, ERR_INPUT,
			       "truncated: %" PRIu64 " %s headers at 0x%" PRIx64
			       " end past the file's %zu bytes",
			       count, what, off, co->len);
	return true;
}

static bool add_section(struct co_reader *r, size_t i, struct err *e)
{
	Elf_Scn *scn = elf_getscn(r->elf, i);
	GElf_Shdr *sh = &r->section[i];

	if (!scn || !gelf_getshdr(scn, sh))
		return err_set(e, ERR_INPUT, "section %zu: %s", i,
			       elf_errmsg(-1));
	if (sh->sh_type == SHT_NULL || sh->sh_type == SHT_NOBITS)
		return true;
	if (!is_inside(sh->sh_offset, sh->sh_size, r->co->len))
		return err_set(e, ERR_INPUT,
			       "section %zu: %" PRIu64 " bytes at 0x%" PRIx64
			       " end past the file's %zu bytes",
			       i, (uint64_t)sh->sh_size,
			       (uint64_t)sh->sh_offset, r->co->len);
	return true;
}

static bool read_sections(struct co_reader *r, struct err *e)
{
	size_t bytes;

	if (elf_getshdrnum(r->elf, &r->n_sections))
		return err_set(e, ERR_INPUT, "section headers: %s",
			       elf_errmsg(-1));
	if (r->n_sections > CO_MAX_SECTIONS)
		return err_set(e, ERR_INPUT, "%zu sections, limit %d",
			       r->n_sections, CO_MAX_SECTIONS);
	if (!size_mul(r->n_sections, sizeof(*r->section), &bytes))
		return err_set(e, ERR_INPUT, "too many sections");
	r->section = arena_alloc(&r->mem, bytes ? bytes : 1);
	for (size_t i = 0; i < r->n_sections; i++)
		if (!add_section(r, i, e))
			return false;
	return true;
}

static bool add_segment(struct co *co, struct co_segment *seg, uint32_t index,
			const GElf_Phdr *ph, struct err *e)
{
	const struct co_segment *prev =
		co->n_segments ? &seg[co->n_segments - 1] : NULL;

	if (ph->p_filesz > ph->p_memsz)
		return err_set(
			e, ERR_INPUT,
			"segment %u: 0x%" PRIx64 " bytes in the file but "
			"0x%" PRIx64 " in memory",
			index, (uint64_t)ph->p_filesz, (uint64_t)ph->p_memsz);
	if (!is_inside(ph->p_offset, ph->p_filesz, co->len))
		return err_set(e, ERR_INPUT,
			       "truncated: segment %u, 0x%" PRIx64 " bytes at "
			       "0x%" PRIx64 ", ends past the file's %zu bytes",
			       index, (uint64_t)ph->p_filesz,
			       (uint64_t)ph->p_offset, co->len);
	if (ph->p_memsz > CO_MAX_SPAN_BYTES ||
	    ph->p_vaddr > UINT64_MAX - 2 * CO_MAX_SPAN_BYTES)
		return err_set(e, ERR_INPUT,
			       "segment %u: 0x%" PRIx64
			       " bytes at address 0x%" PRIx64
			       " are beyond the limit of 0x%" PRIx64
			       " bytes for an image",
			       index, (uint64_t)ph->p_memsz,
			       (uint64_t)ph->p_vaddr, CO_MAX_SPAN_BYTES);
	if (prev && ph->p_vaddr < prev->vaddr + prev->memsz)
		return err_set(
			e, ERR_INPUT,
			"segment %u at 0x%" PRIx64 " overlaps or precedes "
			"the one before it (0x%" PRIx64 "..0x%" PRIx64 ")",
			index, (uint64_t)ph->p_vaddr, prev->vaddr,
			prev->vaddr + prev->memsz);
	seg[co->n_segments++] = (struct co_segment){
		.vaddr = ph->p_vaddr,
		.offset = ph->p_offset,
		.filesz = ph->p_filesz,
		.memsz = ph->p_memsz,
		.flags = ph->p_flags,
	};
	return true;
}

static bool set_span(struct co *co, struct err *e)
{
	const struct co_segment *last = &co->segments[co->n_segments - 1];
	uint64_t mask = CO_PAGE_BYTES - 1, end;

	co->span_vaddr = co->segments[0].vaddr & ~mask;
	end = ((last->vaddr + last->memsz + mask) & ~mask) + CO_PAGE_BYTES;
	co->span_bytes = end - co->span_vaddr;
	if (co->span_bytes > CO_MAX_SPAN_BYTES)
		return err_set(e, ERR_INPUT,
			       "the image spans 0x%" PRIx64
			       " bytes, limit 0x%" PRIx64,
			       co->span_bytes, CO_MAX_SPAN_BYTES);
	return true;
}

static bool read_segments(struct co_reader *r, uint32_t n, struct err *e)
{
	struct co_segment *seg;
	GElf_Phdr ph;

	if (n > CO_MAX_SEGMENTS)
		return err_set(e, ERR_INPUT, "%u program headers, limit %d", n,
			       CO_MAX_SEGMENTS);
	seg = arena_alloc(&r->co->mem, (n + 1) * sizeof(*seg));
	r->co->segments = seg;
	for (uint32_t i = 0; i < n; i++) {
		if (!gelf_getphdr(r->elf, (int)i, &ph))
			return err_set(e, ERR_INPUT, "program header %u: %s", i,
				       elf_errmsg(-1));
		if (ph.p_type == PT_LOAD && ph.p_memsz &&
		    !add_segment(r->co, seg, i, &ph, e))
			return false;
	}
	if (!r->co->n_segments)
		return err_set(e, ERR_INPUT,
			       "no loadable segment (PT_LOAD): link the object "
			       "with ld.lld -shared");
	return set_span(r->co, e);
}

bool co_elf_open(struct co_reader *r, struct err *e)
{
	struct co *co = r->co;
	GElf_Ehdr eh;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return err_set(e, ERR_UNSUPPORTED, "libelf: %s",
			       elf_errmsg(-1));
	/* libelf takes char * but only reads what is opened this way. */
	r->elf = elf_memory((char *)(uintptr_t)co->bytes, co->len);
	if (!r->elf || !gelf_getehdr(r->elf, &eh))
		return err_set(e, ERR_INPUT, "ELF header: %s", elf_errmsg(-1));
	if (eh.e_type == ET_REL)
		return err_set(e, ERR_UNSUPPORTED,
			       "a relocatable object, not a linked one: link "
			       "it with ld.lld -shared");
	if (eh.e_type != ET_DYN)
		return err_set(e, ERR_INPUT,
			       "ELF type %u, expected %u (shared object)",
			       eh.e_type, ET_DYN);
	co->e_flags = eh.e_flags;
	return check_table(co, "program", eh.e_phoff, eh.e_phnum,
			   eh.e_phentsize, sizeof(Elf64_Phdr), e) &&
	       check_table(co, "section", eh.e_shoff, eh.e_shnum,
			   eh.e_shentsize, sizeof(Elf64_Shdr), e) &&
	       read_segments(r, eh.e_phnum, e) && read_sections(r, e);
}

/* ---- strings ------------------------------------------------------------ */

/* Bytes of the UTF-8 character at s, 0 when it is none or a control one. */
static size_t utf8_len(const uint8_t *s, size_t n)
{
	/* The first byte's fixed bits, and the least code point by length. */
	static const uint32_t least[5] = { 0, 0x20, 0xa0, 0x800, 0x10000 };
	size_t len = s[0] < 0x80     ? 1 :
		     s[0] >> 5 == 6  ? 2 :
		     s[0] >> 4 == 14 ? 3 :
		     s[0] >> 3 == 30 ? 4 :
				       0;
	uint32_t c;

	if (!len || len > n)
		return 0;
	c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[len] || c == 0x7f || c > 0x10ffff || c >> 11 == 0x1b)
		return 0;
	return len;
}

bool co_text_ok(const void *text, size_t n)
{
	const uint8_t *s = text;

	while (n) {
		size_t len = utf8_len(s, n);

		if (!len)
			return false;
		s += len;
		n -= len;
	}
	return true;
}

const char *co_elf_string(const struct co_reader *r, uint64_t sec,
			  uint64_t off)
{
	const GElf_Shdr *sh;
	const char *s, *end;
	size_t room;

	if (sec >= r->n_sections)
		return NULL;
	sh = &r->section[sec];
	if (sh->sh_type != SHT_STRTAB || off >= sh->sh_size)
		return NULL;
	s = (const char *)r->co->bytes + sh->sh_offset + off;
	room = sh->sh_size - off;
	if (room > NAME_MAX_BYTES)
		room = NAME_MAX_BYTES;
	end = memchr(s, '\0', room);
	return end && co_text_ok(s, (size_t)(end - s)) ? s : NULL;
}

/* Code, or what compilers and their users call data; .got is among it. */
static bool is_listed(const GElf_Shdr *sh, const char *name)
{
	if (!sh->sh_size || sh->sh_flags & SHF_TLS ||
	    !(sh->sh_flags & (SHF_EXECINSTR | SHF_ALLOC)))
		return false;
	return sh->sh_type == SHT_PROGBITS ||
	       (sh->sh_type == SHT_NOBITS && name &&
		strcmp(name, ".relro_padding"));
}

static bool add_text(struct co *co, struct co_text *t, const char *name,
		     const GElf_Shdr *sh)
{
	*t = (struct co_text){
		.name = name,
		.vaddr = sh->sh_addr,
		.size_bytes = sh->sh_size,
		.align = sh->sh_addralign,
		.writable = sh->sh_flags & SHF_WRITE,
	};
	if (sh->sh_type == SHT_NOBITS)
		return sh->sh_addr >= co->span_vaddr &&
		       is_inside(sh->sh_addr - co->span_vaddr, sh->sh_size,
				 co->span_bytes);
	t->data = co_file_bytes(co, sh->sh_addr, sh->sh_size);
	return t->data;
}

bool co_elf_texts(struct co_reader *r, struct err *e)
{
	struct co_text *t, *other;
	size_t shstrndx;

	if (!r->n_sections)
		return true;
	if (elf_getshdrstrndx(r->elf, &shstrndx))
		return err_set(e, ERR_INPUT, "section names: %s",
			       elf_errmsg(-1));
	t = arena_alloc(&r->co->mem, r->n_sections * sizeof(*t));
	other = arena_alloc(&r->co->mem, r->n_sections * sizeof(*other));
	r->co->texts = t;
	r->co->datas = other;
	for (size_t i = 0; i < r->n_sections; i++) {
		const GElf_Shdr *sh = &r->section[i];
		bool code = sh->sh_flags & SHF_EXECINSTR &&
			    sh->sh_type == SHT_PROGBITS;
		const char *name = co_elf_string(r, shstrndx, sh->sh_name);

		if (!is_listed(sh, name))
			continue;
		if (!name || !add_text(r->co,
				       code ? &t[r->co->n_texts++] :
					      &other[r->co->n_datas++],
				       name, sh))
			return err_set(e, ERR_INPUT, "section %zu: %s", i,
				       name ? "outside the loaded segments" :
					      "its name is no proper string");
	}
	return true;
}

/* ---- symbols ------------------------------------------------------------ */

static bool sym_is_loaded(const struct co_reader *r, const GElf_Sym *s)
{
	int type = GELF_ST_TYPE(s->st_info);

	return type <= STT_FUNC && s->st_shndx != SHN_UNDEF &&
	       s->st_shndx < r->n_sections &&
	       (r->section[s->st_shndx].sh_flags & SHF_ALLOC);
}

static bool add_symbol(struct co_reader *r, struct co_symbol *out,
		       uint64_t strtab, const GElf_Sym *s, struct err *e)
{
	struct co *co = r->co;
	const char *name = co_elf_string(r, strtab, s->st_name);
	uint64_t off = s->st_value - co->span_vaddr;

	if (!name)
		return err_set(e, ERR_INPUT,
			       "a symbol's name at 0x%x of section %" PRIu64
			       " is no proper string",
			       s->st_name, strtab);
	if (!*name)
		return true;
	if (s->st_value < co->span_vaddr ||
	    !is_inside(off, s->st_size, co->span_bytes))
		return err_set(e, ERR_INPUT,
			       "symbol %s: 0x%" PRIx64 " bytes at 0x%" PRIx64
			       " are outside the image",
			       name, (uint64_t)s->st_size,
			       (uint64_t)s->st_value);
	out[co->n_symbols++] = (struct co_symbol){
		.name = name,
		.vaddr = s->st_value,
		.size_bytes = s->st_size,
		.type = GELF_ST_TYPE(s->st_info),
		.binding = GELF_ST_BIND(s->st_info),
		.visibility = GELF_ST_VISIBILITY(s->st_other),
	};
	return true;
}

bool co_elf_table(struct co_reader *r, size_t sec, size_t entry,
		  Elf_Data **d, size_t *n, struct err *e)
{
	const GElf_Shdr *sh = &r->section[sec];

	*n = 0;
	*d = NULL;
	if (!sh->sh_size)
		return true;
	if (sh->sh_entsize != entry || sh->sh_size % entry)
		return err_set(e, ERR_INPUT,
			       "section %zu: %" PRIu64
			       " bytes in entries of %" PRIu64
			       ", expected entries of %zu",
			       sec, (uint64_t)sh->sh_size,
			       (uint64_t)sh->sh_entsize, entry);
	*d = elf_getdata(elf_getscn(r->elf, sec), NULL);
	if (!*d || !(*d)->d_buf || (*d)->d_size < sh->sh_size)
		return err_set(e, ERR_INPUT, "section %zu: %s", sec,
			       elf_errmsg(-1));
	*n = sh->sh_size / entry;
	return true;
}

static bool add_undefined(struct co_reader *r, const char **out, size_t sec,
			  const GElf_Sym *s, struct err *e)
{
	const char *name =
		co_elf_string(r, r->section[sec].sh_link, s->st_name);

	if (!name)
		return err_set(e, ERR_INPUT,
			       "the name of an undefined symbol, at 0x%x, is "
			       "no proper string",
			       s->st_name);
	if (*name)
		out[r->co->n_undefined++] = name;
	return true;
}

static bool read_symtab(struct co_reader *r, struct co_symbol *out,
			const char **undefined, size_t sec, struct err *e)
{
	Elf_Data *d;
	size_t n;

	if (!co_elf_table(r, sec, sizeof(Elf64_Sym), &d, &n, e))
		return false;
	for (size_t i = 1; i < n; i++) {
		GElf_Sym s;

		if (!gelf_getsym(d, (int)i, &s))
			return err_set(e, ERR_INPUT, "symbol %zu: %s", i,
				       elf_errmsg(-1));
		if (sym_is_loaded(r, &s) &&
		    !add_symbol(r, out, r->section[sec].sh_link, &s, e))
			return false;
		if (r->section[sec].sh_type == SHT_DYNSYM &&
		    s.st_shndx == SHN_UNDEF &&
		    !add_undefined(r, undefined, sec, &s, e))
			return false;
	}
	return true;
}

static int symbol_order(const void *pa, const void *pb)
{
	const struct co_symbol *a = pa, *b = pb;
	int c = strcmp(a->name, b->name);

	if (c)
		return c;
	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	/* Global before local, so that the first of equals is the public one.
	 */
	return (b->binding != STB_LOCAL) - (a->binding != STB_LOCAL);
}

/* .symtab repeats what .dynsym has. */
static void drop_repeated(struct co *co, struct co_symbol *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < co->n_symbols; i++)
		if (!kept || strcmp(s[kept - 1].name, s[i].name) ||
		    s[kept - 1].vaddr != s[i].vaddr)
			s[kept++] = s[i];
	co->n_symbols = kept;
}

bool co_elf_is_symtab(const GElf_Shdr *sh)
{
	return sh->sh_type == SHT_DYNSYM || sh->sh_type == SHT_SYMTAB;
}

bool co_elf_symbols(struct co_reader *r, struct err *e)
{
	struct co_symbol *s;
	const char **undefined;
	uint64_t room = 0;

	for (size_t i = 0; i < r->n_sections; i++)
		if (co_elf_is_symtab(&r->section[i]))
			room += r->section[i].sh_size / sizeof(Elf64_Sym);
	if (room > CO_MAX_SYMBOLS)
		return err_set(e, ERR_INPUT, "%" PRIu64 " symbols, limit %d",
			       room, CO_MAX_SYMBOLS);
	s = arena_alloc(&r->co->mem, (room + 1) * sizeof(*s));
	r->co->symbols = s;
	undefined = arena_alloc(&r->co->mem, (room + 1) * sizeof(*undefined));
	r->co->undefined = undefined;
	for (size_t i = 0; i < r->n_sections; i++)
		if (co_elf_is_symtab(&r->section[i]) &&
		    !read_symtab(r, s, undefined, i, e))
			return false;
	qsort(s, r->co->n_symbols, sizeof(*s), symbol_order);
	drop_repeated(r->co, s);
	return true;
}

/* ---- the metadata note -------------------------------------------------- */

static bool scan_notes(struct co_reader *r, uint64_t off, uint64_t size,
		       const void **data, size_t *len, struct err *e)
{
	Elf_Data *d;
	size_t at = 0, name, desc;
	GElf_Nhdr nh;

	if (!size)
		return true;
	r->note_bytes += size;
	if (!is_inside(off, size, r->co->len) ||
	    r->note_bytes > CO_MAX_NOTE_BYTES)
		return err_set(
			e, ERR_INPUT,
			"notes of 0x%" PRIx64 " bytes at 0x%" PRIx64
			": past the end of the file or over the limit of "
			"0x%x bytes",
			size, off, CO_MAX_NOTE_BYTES);
	d = elf_getdata_rawchunk(r->elf, (int64_t)off, size, ELF_T_NHDR);
	if (!d)
		return err_set(e, ERR_INPUT, "notes: %s", elf_errmsg(-1));
	while (at < d->d_size) {
		const char *base = d->d_buf;

		at = gelf_getnote(d, at, &nh, &name, &desc);
		if (!at)
			return err_set(e, ERR_INPUT,
				       "a note at 0x%" PRIx64 "..0x%" PRIx64
				       " is malformed",
				       off, off + size);
		if (nh.n_type != NOTE_TYPE_METADATA || nh.n_namesz != 7 ||
		    memcmp(base + name, "AMDGPU", 7))
			continue;
		*data = r->co->bytes + off + desc;
		*len = nh.n_descsz;
		if (at < size) {
			r->co->notes = r->co->bytes + off + at;
			r->co->notes_bytes = size - at;
		}
		return true;
	}
	return true;
}

bool co_elf_metadata(struct co_reader *r, const void **data, size_t *len,
		     struct err *e)
{
	size_t n = 0;

	*data = NULL;
	elf_getphdrnum(r->elf, &n);
	for (size_t i = 0; i < n && !*data; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(r->elf, (int)i, &ph) && ph.p_type == PT_NOTE &&
		    !scan_notes(r, ph.p_offset, ph.p_filesz, data, len, e))
			return false;
	}
	for (size_t i = 0; i < r->n_sections && !*data; i++) {
		const GElf_Shdr *sh = &r->section[i];

		if (sh->sh_type == SHT_NOTE &&
		    !scan_notes(r, sh->sh_offset, sh->sh_size, data, len, e))
			return false;
	}
	return true;
}
