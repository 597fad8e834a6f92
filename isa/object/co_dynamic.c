/*
 * isa/object/co_dynamic.c - what a loader reads: metadata note, symbols by
 * name, and places that depend on the load address.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/object/co_write_int.h"

static struct co_out *out_ranked(struct co_writer *w, enum co_rank rank)
{
	for (int i = 0; i < w->n_outs; i++)
		if (w->out[i].rank == rank)
			return &w->out[i];
	return NULL;
}

/* ----------------------------------------------------------------- note ----
 */

void co_note_plan(struct co_writer *w)
{
	static const char name[8] = "AMDGPU";
	const struct buf *m = &w->o->metadata;
	uint32_t head[3] = { 7, m->len, 32 /* NT_AMDGPU_METADATA */ };
	struct co_out *s;

	if (!m->len)
		return;
	s = co_out_add(w, ".note", SHT_NOTE, SHF_ALLOC, 4, RANK_NOTE);
	buf_add(&s->data, head, sizeof(head));
	buf_add(&s->data, name, sizeof(name));
	buf_add(&s->data, m->data, m->len);
	while (s->data.len % 4)
		buf_addc(&s->data, 0);
	s->size = s->data.len;
}

/* -------------------------------------------------------------- symbols ----
 */

/* Preemptible: at load time the name may bind to another object's symbol. */
static bool is_preemptible(const struct isa_symbol *s)
{
	return s->binding && !s->visibility;
}

static bool is_exported(const struct isa_symbol *s)
{
	return s->where != ISA_SYM_UNDEFINED && s->binding && *s->name &&
	       (s->visibility == 0 || s->visibility == 3);
}

static uint32_t gnu_hash(const char *s)
{
	uint32_t h = 5381;

	while (*s)
		h = h * 33 + (uint8_t)*s++;
	return h;
}

static uint32_t sysv_hash(const char *s)
{
	uint32_t h = 0;

	while (*s) {
		uint32_t g;

		h = (h << 4) + (uint8_t)*s++;
		g = h & 0xf0000000;
		h = (h ^ g >> 24) & ~g;
	}
	return h;
}

static uint32_t n_buckets(const struct co_writer *w)
{
	int hashed = w->n_dynsym - 1 - w->n_undefined;

	return hashed >= 8 ? hashed / 4 : 1;
}

/* 64-bit words of the Bloom filter: 12 bits per symbol, a power of two. */
static uint32_t bloom_words(const struct co_writer *w)
{
	uint32_t bits = 12 * (w->n_dynsym - 1 - w->n_undefined), n = 1;

	while (n <= bits / 64)
		n *= 2;
	return n;
}

static uint32_t bucket_of(const struct co_writer *w, int symbol)
{
	return gnu_hash(isa_symbol_at(w->o, symbol)->name) % n_buckets(w);
}

/* DT_GNU_HASH: symbols are sorted by bucket, stably. */
static void sort_by_bucket(struct co_writer *w)
{
	int first = 1 + w->n_undefined;
	int *sorted = xcalloc(w->n_dynsym, sizeof(*sorted)), n = 0;

	for (uint32_t b = 0; b < n_buckets(w); b++)
		for (int i = first; i < w->n_dynsym; i++)
			if (bucket_of(w, w->dynsym[i]) == b)
				sorted[n++] = w->dynsym[i];
	memcpy(w->dynsym + first, sorted, n * sizeof(*sorted));
	free(sorted);
}

/* Weak symbols of others are named even if nothing refers to them. */
static bool is_hoped_for(const struct isa_symbol *s)
{
	return s->where == ISA_SYM_UNDEFINED && s->binding == 2 && *s->name &&
	       (s->visibility == 0 || s->visibility == 3);
}

static void plan_symbols(struct co_writer *w, const bool *wanted)
{
	w->dynsym = xcalloc(w->o->n_symbols + 1, sizeof(*w->dynsym));
	w->n_dynsym = 1;
	for (int i = 1; i <= w->o->n_symbols; i++)
		if (wanted[i] || is_hoped_for(isa_symbol_at(w->o, i)))
			w->dynsym[w->n_dynsym++] = i;
	w->n_undefined = w->n_dynsym - 1;
	for (int i = 1; i <= w->o->n_symbols; i++)
		if (!wanted[i] && is_exported(isa_symbol_at(w->o, i)))
			w->dynsym[w->n_dynsym++] = i;
	sort_by_bucket(w);
}

static int dynsym_number(const struct co_writer *w, int symbol)
{
	for (int i = 1; i < w->n_dynsym; i++)
		if (w->dynsym[i] == symbol)
			return i;
	return 0;
}

static Elf64_Sym elf_symbol(const struct co_writer *w, int symbol, bool local)
{
	const struct isa_symbol *s = isa_symbol_at(w->o, symbol);
	Elf64_Sym sym = {
		.st_info =
			ELF64_ST_INFO(local ? STB_LOCAL : s->binding, s->type),
		.st_other = s->visibility,
		.st_value = co_symbol_addr(w, symbol),
		.st_size = s->size_bytes,
	};

	if (s->where == ISA_SYM_UNDEFINED)
		sym.st_info = ELF64_ST_INFO(
			s->binding ? s->binding : STB_GLOBAL, s->type);
	else if (s->where == ISA_SYM_ABSOLUTE)
		sym.st_shndx = SHN_ABS;
	else if (w->in[s->section - 1].out)
		sym.st_shndx = w->in[s->section - 1].out->number;
	return sym;
}

/* ---------------------------------------------------------- relocations ----
 */

static bool refers_got(const struct isa_reloc *r)
{
	return r->type >= CO_RELOC_GOTPCREL &&
	       r->type <= CO_RELOC_GOTPCREL32_HI;
}

static void add_rela(struct co_writer *w, int section, uint64_t offset,
		     int symbol, int64_t addend)
{
	const struct isa_symbol *s = isa_symbol_at(w->o, symbol);
	bool relative = s->where == ISA_SYM_SECTION && !is_preemptible(s);
	struct co_rela r = { section, offset, symbol, addend, relative };

	/* A number, or nothing (a weak symbol of our own), is the same
	 * wherever the image lies. */
	if (s->where == ISA_SYM_ABSOLUTE && !is_preemptible(s))
		return;
	w->rela[w->n_rela++] = r;
	w->n_relative += relative;
}

static void add_got(struct co_writer *w, int symbol)
{
	for (int i = 0; i < w->n_got; i++)
		if (w->got[i] == symbol)
			return;
	w->got[w->n_got++] = symbol;
}

static bool plan_reloc(struct co_writer *w, const struct isa_reloc *r,
		       bool *wanted, struct err *e)
{
	const struct isa_section *in = isa_section_at(w->o, r->section);
	const struct isa_symbol *s = isa_symbol_at(w->o, r->symbol);
	bool absolute = s->where == ISA_SYM_ABSOLUTE;

	if (s->where == ISA_SYM_UNDEFINED) {
		if (s->binding != 2)
			return err_set(e, ERR_INPUT,
				       "undefined symbol '%s', used in %s at "
				       "offset 0x%llx",
				       s->name, in->name,
				       (unsigned long long)r->offset);
		wanted[r->symbol] = true;
	}
	if (s->where == ISA_SYM_SECTION && !w->in[s->section - 1].out &&
	    isa_section_at(w->o, s->section)->size_bytes)
		return err_set(e, ERR_INPUT,
			       "'%s' lies in section %s, which is not loaded",
			       s->name, isa_section_at(w->o, s->section)->name);
	if (refers_got(r))
		add_got(w, r->symbol);
	switch (r->type) {
	case CO_RELOC_ABS64:
		if (absolute)
			return true;
		if (!(in->flags & ISA_SHF_WRITE))
			return err_set(e, ERR_INPUT,
				       "section %s holds the address of '%s', "
				       "but is read-only; addresses belong in "
				       ".data or .data.rel.ro",
				       in->name, s->name);
		add_rela(w, r->section, r->offset, r->symbol, r->addend);
		return true;
	case CO_RELOC_ABS32:
	case CO_RELOC_ABS32_LO:
	case CO_RELOC_ABS32_HI:
		return absolute ||
		       err_set(e, ERR_INPUT,
			       "%s+0x%llx wants the fixed address of '%s', "
			       "but the code object can be loaded anywhere",
			       in->name, (unsigned long long)r->offset,
			       s->name);
	}
	return true;
}

/* As in the text of an object that was linked before. */
static bool has_own_got(const struct co_writer *w)
{
	for (int i = 0; i < w->n_outs; i++)
		if (w->out[i].rank == RANK_GOT)
			return true;
	return false;
}

static bool plan_relocs(struct co_writer *w, bool *wanted, struct err *e)
{
	w->rela = xcalloc(2 * w->o->n_relocs + 1, sizeof(*w->rela));
	w->got = xcalloc(w->o->n_relocs + 1, sizeof(*w->got));
	for (size_t i = 0; i < w->o->n_relocs; i++) {
		const struct isa_reloc *r = &w->o->reloc[i];

		if (w->in[r->section - 1].out && !plan_reloc(w, r, wanted, e))
			return false;
	}
	if (w->n_got && has_own_got(w))
		return err_set(e, ERR_INPUT,
			       "a section .got of the program's own, and "
			       "references to '%s' that need one, too",
			       isa_symbol_at(w->o, w->got[0])->name);
	for (int i = 0; i < w->n_got; i++)
		add_rela(w, 0, 8 * i, w->got[i], 0);
	return true;
}

/* ----------------------------------------------------------------- plan ----
 */

static size_t names_size(const struct co_writer *w)
{
	size_t n = 1;

	for (int i = 1; i < w->n_dynsym; i++)
		n += strlen(isa_symbol_at(w->o, w->dynsym[i])->name) + 1;
	return n;
}

static void plan_sections(struct co_writer *w)
{
	struct co_out *sym, *gnu, *hash, *str, *dyn;
	int hashed = w->n_dynsym - 1 - w->n_undefined;

	sym = co_out_add(w, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 8, RANK_DYNSYM);
	sym->size = w->n_dynsym * sizeof(Elf64_Sym);
	sym->entry_bytes = sizeof(Elf64_Sym);
	sym->info = 1;
	gnu = co_out_add(w, ".gnu.hash", SHT_GNU_HASH, SHF_ALLOC, 8,
			 RANK_GNU_HASH);
	gnu->size = 16 + 8 * bloom_words(w) + 4 * n_buckets(w) + 4 * hashed;
	hash = co_out_add(w, ".hash", SHT_HASH, SHF_ALLOC, 4, RANK_HASH);
	hash->size = 4 * (2 + 2 * w->n_dynsym);
	hash->entry_bytes = 4;
	str = co_out_add(w, ".dynstr", SHT_STRTAB, SHF_ALLOC, 1, RANK_DYNSTR);
	str->size = names_size(w);
	sym->link = str;
	gnu->link = hash->link = sym;
	if (w->n_rela) {
		struct co_out *rela = co_out_add(w, ".rela.dyn", SHT_RELA,
						 SHF_ALLOC, 8, RANK_RELA);

		rela->size = w->n_rela * sizeof(Elf64_Rela);
		rela->entry_bytes = sizeof(Elf64_Rela);
		rela->link = sym;
	}
	dyn = co_out_add(w, ".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, 8,
			 RANK_DYNAMIC);
	dyn->size =
		(7 + (w->n_rela ? 3 + !!w->n_relative : 0)) * sizeof(Elf64_Dyn);
	dyn->entry_bytes = sizeof(Elf64_Dyn);
	dyn->link = str;
	if (w->n_got) {
		w->got_out = co_out_add(w, ".got", SHT_PROGBITS,
					SHF_ALLOC | SHF_WRITE, 8, RANK_GOT);
		w->got_out->size = 8 * w->n_got;
	}
	co_out_add(w, ".relro_padding", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 1,
		   RANK_PADDING);
}

bool co_dynamic_plan(struct co_writer *w, struct err *e)
{
	bool *wanted = xcalloc(w->o->n_symbols + 1, sizeof(*wanted));
	bool ok = plan_relocs(w, wanted, e);

	if (ok) {
		plan_symbols(w, wanted);
		plan_sections(w);
	}
	free(wanted);
	return ok;
}

/* ----------------------------------------------------------------- fill ----
 */

static void put_u32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, 4);
}

static void fill_symbols(struct co_writer *w)
{
	struct co_out *sym = out_ranked(w, RANK_DYNSYM);
	struct co_out *str = out_ranked(w, RANK_DYNSTR);
	Elf64_Sym none = { 0 };

	buf_add(&sym->data, &none, sizeof(none));
	buf_addc(&str->data, 0);
	for (int i = 1; i < w->n_dynsym; i++) {
		const char *name = isa_symbol_at(w->o, w->dynsym[i])->name;
		Elf64_Sym s = elf_symbol(w, w->dynsym[i], false);

		s.st_name = str->data.len;
		buf_add(&sym->data, &s, sizeof(s));
		buf_add(&str->data, name, strlen(name) + 1);
	}
}

static void fill_gnu_hash(struct co_writer *w)
{
	enum { SHIFT = 26 };
	struct buf *b = &out_ranked(w, RANK_GNU_HASH)->data;
	int first = 1 + w->n_undefined, n = w->n_dynsym;
	uint32_t words = bloom_words(w), buckets = n_buckets(w);
	uint64_t *bloom = xcalloc(words, sizeof(*bloom));
	int at = first;

	put_u32(b, buckets);
	put_u32(b, first);
	put_u32(b, words);
	put_u32(b, SHIFT);
	for (int i = first; i < n; i++) {
		uint32_t h = gnu_hash(isa_symbol_at(w->o, w->dynsym[i])->name);

		bloom[h / 64 & (words - 1)] |= UINT64_C(1) << (h & 63) |
					       UINT64_C(1) << (h >> SHIFT & 63);
	}
	buf_add(b, bloom, words * sizeof(*bloom));
	free(bloom);
	for (uint32_t k = 0; k < buckets; k++) {
		int start = at;

		while (at < n && bucket_of(w, w->dynsym[at]) == k)
			at++;
		put_u32(b, at > start ? start : 0);
	}
	/* The last symbol of a bucket has bit 0 set. */
	for (int i = first; i < n; i++) {
		uint32_t h = gnu_hash(isa_symbol_at(w->o, w->dynsym[i])->name);
		bool last = i + 1 == n || bucket_of(w, w->dynsym[i + 1]) !=
						  bucket_of(w, w->dynsym[i]);

		put_u32(b, (h & ~1u) | last);
	}
}

static void fill_hash(struct co_writer *w)
{
	struct buf *b = &out_ranked(w, RANK_HASH)->data;
	int n = w->n_dynsym;
	uint32_t *bucket = xcalloc(2 * n, sizeof(*bucket));
	uint32_t *chain = bucket + n;

	for (int i = 1; i < n; i++) {
		const char *name = isa_symbol_at(w->o, w->dynsym[i])->name;
		uint32_t h = sysv_hash(name) % n;

		chain[i] = bucket[h];
		bucket[h] = i;
	}
	put_u32(b, n);
	put_u32(b, n);
	buf_add(b, bucket, 2 * n * sizeof(*bucket));
	free(bucket);
}

static uint64_t rela_place(const struct co_writer *w, const struct co_rela *r)
{
	if (!r->section)
		return w->got_out->addr + r->offset;
	return w->in[r->section - 1].out->addr + w->in[r->section - 1].offset +
	       r->offset;
}

/* Relative ones first: DT_RELACOUNT is their number. */
static void fill_rela(struct co_writer *w)
{
	struct co_out *out = out_ranked(w, RANK_RELA);

	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < w->n_rela; i++) {
			const struct co_rela *r = &w->rela[i];
			Elf64_Rela e = { .r_offset = rela_place(w, r),
					 .r_addend = r->addend };

			if (r->relative != !pass)
				continue;
			if (r->relative) {
				e.r_info = CO_RELOC_RELATIVE64;
				e.r_addend += co_symbol_addr(w, r->symbol);
			} else {
				e.r_info = ELF64_R_INFO(
					(uint64_t)dynsym_number(w, r->symbol),
					CO_RELOC_ABS64);
			}
			buf_add(&out->data, &e, sizeof(e));
		}
}

/* The loader writes the addresses, but not the numbers. */
static void fill_got(struct co_writer *w)
{
	for (int i = 0; i < w->n_got; i++) {
		const struct isa_symbol *s = isa_symbol_at(w->o, w->got[i]);
		uint64_t v = s->where == ISA_SYM_ABSOLUTE ? s->value : 0;

		buf_add(&w->got_out->data, &v, 8);
	}
}

static void add_dyn(struct buf *b, int64_t tag, uint64_t value)
{
	Elf64_Dyn d = { .d_tag = tag, .d_un.d_val = value };

	buf_add(b, &d, sizeof(d));
}

static void fill_dynamic(struct co_writer *w)
{
	struct buf *b = &out_ranked(w, RANK_DYNAMIC)->data;
	struct co_out *rela = out_ranked(w, RANK_RELA);

	if (rela) {
		add_dyn(b, DT_RELA, rela->addr);
		add_dyn(b, DT_RELASZ, rela->size);
		add_dyn(b, DT_RELAENT, sizeof(Elf64_Rela));
		if (w->n_relative)
			add_dyn(b, DT_RELACOUNT, w->n_relative);
	}
	add_dyn(b, DT_SYMTAB, out_ranked(w, RANK_DYNSYM)->addr);
	add_dyn(b, DT_SYMENT, sizeof(Elf64_Sym));
	add_dyn(b, DT_STRTAB, out_ranked(w, RANK_DYNSTR)->addr);
	add_dyn(b, DT_STRSZ, out_ranked(w, RANK_DYNSTR)->size);
	add_dyn(b, DT_GNU_HASH, out_ranked(w, RANK_GNU_HASH)->addr);
	add_dyn(b, DT_HASH, out_ranked(w, RANK_HASH)->addr);
	add_dyn(b, DT_NULL, 0);
}

void co_dynamic_fill(struct co_writer *w)
{
	fill_symbols(w);
	fill_gnu_hash(w);
	fill_hash(w);
	if (w->n_rela)
		fill_rela(w);
	fill_got(w);
	fill_dynamic(w);
}

/* --------------------------------------------------------- symbol table ----
 */

static bool is_kept(const struct co_writer *w, const struct isa_symbol *s)
{
	if (!*s->name || !strncmp(s->name, ".L", 2))
		return false;
	if (s->where == ISA_SYM_SECTION)
		return w->in[s->section - 1].out != NULL;
	return s->where == ISA_SYM_ABSOLUTE || s->binding == 2;
}

/* Hidden symbols are local in a file that is linked. */
static bool is_local(const struct isa_symbol *s)
{
	return !s->binding || s->visibility == 1 || s->visibility == 2;
}

void co_symbol_table(struct co_writer *w)
{
	struct co_out *sym =
		co_out_add(w, ".symtab", SHT_SYMTAB, 0, 8, RANK_UNLOADED);
	struct co_out *str =
		co_out_add(w, ".strtab", SHT_STRTAB, 0, 1, RANK_UNLOADED);
	Elf64_Sym none = { 0 };

	sym->entry_bytes = sizeof(none);
	sym->link = str;
	buf_add(&sym->data, &none, sizeof(none));
	buf_addc(&str->data, 0);
	for (int global = 0; global < 2; global++) {
		for (int i = 1; i <= w->o->n_symbols; i++) {
			const struct isa_symbol *s = isa_symbol_at(w->o, i);
			Elf64_Sym e;

			if (!is_kept(w, s) || is_local(s) == global)
				continue;
			e = elf_symbol(w, i, !global);
			e.st_name = str->data.len;
			buf_add(&sym->data, &e, sizeof(e));
			buf_add(&str->data, s->name, strlen(s->name) + 1);
		}
		if (!global)
			sym->info = sym->data.len / sizeof(none);
	}
}
