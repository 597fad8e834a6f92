/*
 * isa/object/co.c - parse a code object: identification, then the ELF tables
 * (co_elf.c), then the kernels, then what the metadata adds to them
 * (co_meta.c).
 */
#include "isa/object/co_int.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE_AMDGPU	 224
#define OSABI_AMDGPU_HSA 64
#define ENTRY_ALIGN	 256 /* COMPUTE_PGM_LO holds address >> 8 */

/* ---- identification ----------------------------------------------------- */

static bool check_ident(struct co *co, struct err *e)
{
	const uint8_t *id = co->bytes;
	static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";

	if (co->len >= sizeof(bundle) - 1 &&
	    !memcmp(id, bundle, sizeof(bundle) - 1))
		return err_set(e, ERR_UNSUPPORTED,
			       "an offload bundle: take one object out of it");
	if (co->len < SELFMAG || memcmp(id, ELFMAG, SELFMAG))
		return err_set(e, ERR_INPUT, "not an ELF file (%zu bytes)",
			       co->len);
	if (co->len < sizeof(Elf64_Ehdr))
		return err_set(e, ERR_INPUT,
			       "truncated: %zu bytes, an ELF header has %zu",
			       co->len, sizeof(Elf64_Ehdr));
	if (co->len > CO_MAX_FILE_BYTES)
		return err_set(e, ERR_INPUT, "%zu bytes, limit %" PRIu64,
			       co->len, CO_MAX_FILE_BYTES);
	if (id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB)
		return err_set(e, ERR_UNSUPPORTED,
			       "ELF class %u, data %u; AMD GPUs have 64-bit "
			       "little-endian files (2, 1)",
			       id[EI_CLASS], id[EI_DATA]);
	return true;
}

static bool check_target(struct co *co, struct err *e)
{
	Elf64_Ehdr h;

	memcpy(&h, co->bytes, sizeof(h));
	if (h.e_machine != MACHINE_AMDGPU)
		return err_set(e, ERR_UNSUPPORTED,
			       "ELF machine %u, expected %u (AMDGPU)",
			       h.e_machine, MACHINE_AMDGPU);
	if (h.e_ident[EI_OSABI] != OSABI_AMDGPU_HSA)
		return err_set(e, ERR_UNSUPPORTED,
			       "OS ABI %u, expected %u (HSA): compile for "
			       "amdgcn-amd-amdhsa",
			       h.e_ident[EI_OSABI], OSABI_AMDGPU_HSA);
	co->abi_version = h.e_ident[EI_ABIVERSION];
	co->version = co->abi_version + 2;
	if (co->version < 4 || co->version > 6)
		return err_set(
			e, ERR_UNSUPPORTED,
			"ABI version %d (code object v%d), expected 2, 3 "
			"or 4: compile with -mcode-object-version=5",
			co->abi_version, co->version);
	co->chip = co_chip_name(h.e_flags);
	if (!co->chip)
		return err_set(
			e, ERR_UNSUPPORTED,
			"chip number 0x%02x in e_flags 0x%08x is unknown",
			h.e_flags & 0xff, h.e_flags);
	return true;
}

/* ---- kernels ------------------------------------------------------------ */

/* Length of the name without ".kd", 0 for another symbol. */
static size_t kernel_name_len(const struct co_symbol *s)
{
	size_t n = strlen(s->name);

	return n > 3 && s->type != STT_FUNC && !strcmp(s->name + n - 3, ".kd") ?
		       n - 3 :
		       0;
}

/* Bytes from the entry to the end of the function or of the file's segment. */
static uint64_t code_size(const struct co *co, const struct co_kernel *k)
{
	const struct co_segment *seg = co_segment_at(co, k->entry_vaddr, 1);
	uint64_t room = seg->vaddr + seg->filesz - k->entry_vaddr;
	const struct co_symbol *s = co_symbol_find(co, k->name);

	return s && s->vaddr == k->entry_vaddr && s->size_bytes &&
			       s->size_bytes <= room ?
		       s->size_bytes :
		       room;
}

static bool set_entry(const struct co *co, struct co_kernel *k, struct err *e)
{
	const struct co_segment *seg;

	k->entry_vaddr = k->desc_vaddr + (uint64_t)k->desc.entry_offset;
	seg = co_segment_at(co, k->entry_vaddr, 4);
	k->code = co_file_bytes(co, k->entry_vaddr, 4);
	if (!seg || !(seg->flags & PF_X) || !k->code)
		return err_set(e, ERR_INPUT,
			       "kernel %s: the entry 0x%" PRIx64
			       " is not in an executable segment",
			       k->name, k->entry_vaddr);
	if (k->entry_vaddr % ENTRY_ALIGN)
		return err_set(e, ERR_INPUT,
			       "kernel %s: the entry 0x%" PRIx64
			       " is not aligned to %d bytes",
			       k->name, k->entry_vaddr, ENTRY_ALIGN);
	k->entry_off = k->entry_vaddr - co->span_vaddr;
	k->code_bytes = code_size(co, k);
	return true;
}

static bool add_kernel(struct co *co, struct co_kernel *k,
		       const struct co_symbol *s, size_t name_len,
		       struct err *e)
{
	const uint8_t *d = co_file_bytes(co, s->vaddr, CO_DESCRIPTOR_BYTES);
	char *name = arena_alloc(&co->mem, name_len + 1);

	memcpy(name, s->name, name_len);
	*k = (struct co_kernel){ .name = name,
				 .chip = co->chip,
				 .symbol = s->name,
				 .language = "",
				 .desc_vaddr = s->vaddr };
	if (!d)
		return err_set(
			e, ERR_INPUT,
			"kernel %s: no %d bytes of descriptor in the file "
			"at 0x%" PRIx64,
			name, CO_DESCRIPTOR_BYTES, s->vaddr);
	if (s->vaddr % CO_DESCRIPTOR_BYTES)
		return err_set(e, ERR_INPUT,
			       "kernel %s: the descriptor at 0x%" PRIx64
			       " is not aligned to %d bytes",
			       name, s->vaddr, CO_DESCRIPTOR_BYTES);
	co_descriptor_decode(d, &k->desc);
	if (k->desc.kernarg_bytes > CO_MAX_KERNARG_BYTES)
		return err_set(e, ERR_INPUT,
			       "kernel %s: %u bytes of arguments, limit %u",
			       name, k->desc.kernarg_bytes,
			       CO_MAX_KERNARG_BYTES);
	k->desc_off = s->vaddr - co->span_vaddr;
	k->wave_size = (uint32_t)co_descriptor_wave_size(&k->desc);
	return set_entry(co, k, e);
}

/* Symbols are sorted by name; ".kd" keeps kernels in that order too. */
static bool read_kernels(struct co_reader *r, struct err *e)
{
	struct co *co = r->co;
	uint32_t n = 0;

	for (uint32_t i = 0; i < co->n_symbols; i++)
		n += kernel_name_len(&co->symbols[i]) != 0;
	if (n > CO_MAX_KERNELS)
		return err_set(e, ERR_INPUT, "%u kernels, limit %d", n,
			       CO_MAX_KERNELS);
	r->kernel = arena_alloc(&co->mem, (n + 1) * sizeof(*r->kernel));
	co->kernels = r->kernel;
	for (uint32_t i = 0; i < co->n_symbols; i++) {
		const struct co_symbol *s = &co->symbols[i];
		size_t len = kernel_name_len(s);

		if (!len)
			continue;
		if (co->n_kernels &&
		    !strcmp(r->kernel[co->n_kernels - 1].symbol, s->name))
			return err_set(e, ERR_INPUT,
				       "symbol %s at two "
				       "addresses",
				       s->name);
		if (!add_kernel(co, &r->kernel[co->n_kernels], s, len, e))
			return false;
		co->n_kernels++;
	}
	return true;
}

/* ---- the whole ---------------------------------------------------------- */

static bool read_all(struct co_reader *r, struct err *e)
{
	const void *meta;
	size_t meta_len;

	return check_ident(r->co, e) && check_target(r->co, e) &&
	       co_elf_open(r, e) && co_elf_texts(r, e) &&
	       co_elf_symbols(r, e) && co_elf_relocs(r, e) &&
	       read_kernels(r, e) && co_elf_metadata(r, &meta, &meta_len, e) &&
	       (!meta || co_meta_read(r, meta, meta_len, e));
}

bool co_parse(struct co *co, const void *bytes, size_t len, struct err *e)
{
	struct co_reader r = { .co = co };
	bool ok;

	*co = (struct co){ .bytes = bytes, .len = len, .target = "" };
	ok = read_all(&r, e);
	if (r.elf)
		elf_end(r.elf);
	arena_fini(&r.mem);
	if (!ok)
		co_fini(co);
	return ok;
}

void co_fini(struct co *co)
{
	arena_fini(&co->mem);
	*co = (struct co){ .target = "" };
}

static int compare_name(const void *key, const void *elem)
{
	return strcmp(key, ((const struct co_symbol *)elem)->name);
}

const struct co_symbol *co_symbol_find(const struct co *co, const char *name)
{
	return bsearch(name, co->symbols, co->n_symbols, sizeof(*co->symbols),
		       compare_name);
}

const struct co_symbol *co_symbol_at(const struct co *co, uint64_t vaddr)
{
	const struct co_symbol *best = NULL;

	for (uint32_t i = 0; i < co->n_symbols; i++) {
		const struct co_symbol *s = &co->symbols[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->size_bytes &&
		    (!best || s->size_bytes < best->size_bytes))
			best = s;
	}
	return best;
}

const struct co_kernel *co_kernel_find(const struct co *co, const char *name)
{
	for (uint32_t i = 0; i < co->n_kernels; i++)
		if (!strcmp(co->kernels[i].name, name) ||
		    !strcmp(co->kernels[i].symbol, name))
			return &co->kernels[i];
	return NULL;
}

const struct co_kernel *co_kernel_require(const struct co *co, const char *name,
					  struct err *e)
{
	const struct co_kernel *k = co_kernel_find(co, name);
	struct buf list = { 0 };

	if (k)
		return k;
	for (uint32_t i = 0; i < co->n_kernels && list.len < 700; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", co->kernels[i].name);
	err_set(e, ERR_INPUT, "no kernel %s; the object has: %s", name,
		list.len ? list.data : "none");
	buf_fini(&list);
	return NULL;
}

const struct co_arg *co_user_arg(const struct co_kernel *k, int index)
{
	for (uint32_t i = 0; i < k->n_args; i++)
		if (!co_arg_is_hidden(&k->args[i]) && !index--)
			return &k->args[i];
	return NULL;
}

uint32_t co_explicit_bytes(const struct co_kernel *k)
{
	uint32_t end = 0;

	if (!k->has_metadata)
		return k->desc.kernarg_bytes;
	for (uint32_t i = 0; i < k->n_args; i++) {
		const struct co_arg *a = &k->args[i];

		if (!co_arg_is_hidden(a) && a->offset + a->size > end)
			end = a->offset + a->size;
	}
	return end;
}

/* Older compilers leave the descriptor's size 0. */
uint32_t co_kernarg_bytes(const struct co_kernel *k)
{
	uint32_t end = co_explicit_bytes(k);

	if (end < k->desc.kernarg_bytes)
		end = k->desc.kernarg_bytes;
	return end < k->kernarg_bytes ? k->kernarg_bytes : end;
}
