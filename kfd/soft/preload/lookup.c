/*
 * kfd/soft/preload/lookup.c - dlsym() and dlvsym(): who asks for a function of
 * libc by name gets the hook that stands in its place.
 *
 * A program that opens libc by itself and looks its functions up there, as
 * Python's ctypes does, would pass the hooks otherwise.  All other questions
 * go on to the dynamic linker by a jump: its answer to RTLD_NEXT depends on
 * who seems to have called.  Where the linker's own functions are is read from
 * the tables of the loaded objects, as asking it would lead here again.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kfd/soft/preload/preload.h"

typedef void *look_up(void *handle, const char *name, const char *version);

/* The linker's own, for the jumps below. */
look_up *pl_linker_dlsym, *pl_linker_dlvsym;

/* Where libc lies. */
static uintptr_t libc_start, libc_end;

/* What follows HOOK() in the other files, one entry each. */
extern const struct pl_hook __start_pl_hooks[], __stop_pl_hooks[];

/* ------------------------------------------------- an object's symbols -- */

struct object {
	uintptr_t base;
	const Elf64_Sym *symbol;
	const char *text;
	const uint32_t *hash; /* DT_GNU_HASH */
};

static bool open_object(const struct dl_phdr_info *info, struct object *o)
{
	const Elf64_Dyn *d = NULL;

	*o = (struct object){ .base = info->dlpi_addr };
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(o->base +
					   info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		const void *p = (const void *)d->d_un.d_ptr;

		if (d->d_tag == DT_SYMTAB)
			o->symbol = p;
		else if (d->d_tag == DT_STRTAB)
			o->text = p;
		else if (d->d_tag == DT_GNU_HASH)
			o->hash = p;
	}
	return o->symbol && o->text && o->hash;
}

/* The table: sizes, a filter, the buckets, and their chains of hashes. */
static look_up *find_symbol(const struct object *o, const char *name)
{
	const uint32_t n_buckets = o->hash[0], first = o->hash[1],
		       n_filter = o->hash[2];
	const uint32_t *bucket = o->hash + 4 + n_filter * 2,
		       *chain = bucket + n_buckets;
	uint32_t h = 5381, at;

	for (const char *p = name; *p; p++)
		h = h * 33 + (unsigned char)*p;
	at = n_buckets ? bucket[h % n_buckets] : 0;
	for (; at >= first && at; at++) {
		const Elf64_Sym *s = &o->symbol[at];

		if ((chain[at - first] | 1) == (h | 1) && s->st_value &&
		    !strcmp(o->text + s->st_name, name))
			return (look_up *)(o->base + s->st_value);
		if (chain[at - first] & 1)
			break;
	}
	return NULL;
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* libc has them since 2.34, libdl before. */
static int look_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const bool libc = ends_with(info->dlpi_name, "/libc.so.6");
	struct object o;

	(void)size, (void)arg;
	if ((!libc && !ends_with(info->dlpi_name, "/libdl.so.2")) ||
	    !open_object(info, &o))
		return 0;
	for (int i = 0; libc && i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];
		const uintptr_t start = o.base + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		if (!libc_start || start < libc_start)
			libc_start = start;
		if (start + p->p_memsz > libc_end)
			libc_end = start + p->p_memsz;
	}
	if (!pl_linker_dlsym)
		pl_linker_dlsym = find_symbol(&o, "dlsym");
	if (!pl_linker_dlvsym)
		pl_linker_dlvsym = find_symbol(&o, "dlvsym");
	return 0;
}

/* ------------------------------------------------------------ the hooks -- */

/* The hook that answers, or NULL: ask the linker. */
static void *find_hook(void *handle, const char *name, const char *version)
{
	static int known;
	uintptr_t p;

	/* Threads that come at the same time find the same. */
	if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
		dl_iterate_phdr(look_at_object, NULL);
		__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
	}
	/* In the order of loading, the hooks come before libc. */
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !name)
		return NULL;
	for (const struct pl_hook *h = __start_pl_hooks; h < __stop_pl_hooks;
	     h++) {
		if (strcmp(h->name, name))
			continue;
		p = (uintptr_t)(version ? pl_linker_dlvsym : pl_linker_dlsym)(
			handle, name, version);
		/* The program's own function of that name stays. */
		return p >= libc_start && p < libc_end ? h->fn : NULL;
	}
	return NULL;
}

/* Called from the assembly below only. */
void *pl_find_dlsym(void *handle, const char *name);
void *pl_find_dlvsym(void *handle, const char *name, const char *version);

void *pl_find_dlsym(void *handle, const char *name)
{
	return find_hook(handle, name, NULL);
}

void *pl_find_dlvsym(void *handle, const char *name, const char *version)
{
	return find_hook(handle, name, version);
}

#define LOOK_UP(name)                             \
	__asm__(".text\n"                         \
		".globl " name "\n"               \
		".type " name ", @function\n"     \
		name ":\n"                        \
		"	push	%rdi\n"           \
		"	push	%rsi\n"           \
		"	push	%rdx\n"           \
		"	call	pl_find_" name "\n" \
		"	pop	%rdx\n"           \
		"	pop	%rsi\n"           \
		"	pop	%rdi\n"           \
		"	test	%rax, %rax\n"     \
		"	jz	1f\n"             \
		"	ret\n"                    \
		"1:	jmp	*pl_linker_" name "(%rip)\n" \
		".size " name ", . - " name "\n")
LOOK_UP("dlsym");
LOOK_UP("dlvsym");

/* Whoever asks for these two gets them from here, too. */
#define ENTRY(name)                                              \
	static const struct pl_hook entry_##name                 \
		__attribute__((section("pl_hooks"), used)) = {   \
			#name, (void *)(uintptr_t)name           \
		}
ENTRY(dlsym);
ENTRY(dlvsym);
