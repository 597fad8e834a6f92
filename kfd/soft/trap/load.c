/*
 * kfd/soft/trap/load.c - the program in our own process: its segments, those of
 * its dynamic linker if it wants one, and the stack as the kernel makes it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <unistd.h>

#include "base/base.h"
#include "kfd/soft/trap/trap.h"

#define PAGE 4096ull
#define PROGRAM_HEADERS 64
#define WHY 256

struct image {
	uint64_t base, entry, headers; /* addresses */
	unsigned n_headers;
	char linker[512]; /* "" = none */
};

static uint64_t page_down(uint64_t x)
{
	return x & ~(PAGE - 1);
}

static uint64_t page_up(uint64_t x)
{
	return page_down(x + PAGE - 1);
}

static int protection(uint32_t flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

/* Address space for all segments; MAP_FAILED where somebody is. */
static bool reserve_span(const Elf64_Ehdr *h, const Elf64_Phdr *p,
			 struct image *im)
{
	uint64_t first = ~0ull, end = 0;
	const bool fixed = h->e_type == ET_EXEC;
	void *at;

	for (int i = 0; i < h->e_phnum; i++) {
		if (p[i].p_type != PT_LOAD)
			continue;
		first = page_down(p[i].p_vaddr) < first ?
				page_down(p[i].p_vaddr) : first;
		end = p[i].p_vaddr + p[i].p_memsz > end ?
			      p[i].p_vaddr + p[i].p_memsz : end;
	}
	if (first >= end)
		return false;
	at = mmap(fixed ? (void *)(uintptr_t)first : NULL,
		  page_up(end) - first, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			  (fixed ? MAP_FIXED_NOREPLACE : 0),
		  -1, 0);
	im->base = fixed ? 0 : (uintptr_t)at - first;
	return at != MAP_FAILED;
}

static bool map_segment(int fd, const Elf64_Phdr *p, uint64_t base)
{
	const uint64_t start = base + page_down(p->p_vaddr);
	const uint64_t lead = p->p_vaddr & (PAGE - 1);
	const uint64_t file_end = base + p->p_vaddr + p->p_filesz;
	const uint64_t end = base + p->p_vaddr + p->p_memsz;
	const int prot = protection(p->p_flags);

	if (p->p_filesz &&
	    mmap((void *)(uintptr_t)start, p->p_filesz + lead, prot,
		 MAP_PRIVATE | MAP_FIXED, fd,
		 (off_t)(p->p_offset - lead)) == MAP_FAILED)
		return false;
	if (end <= file_end)
		return true;
	if (p->p_filesz && prot & PROT_WRITE)
		memset((void *)(uintptr_t)file_end, 0,
		       page_up(file_end) - file_end);
	const uint64_t rest = p->p_filesz ? page_up(file_end) : start;

	return end <= rest ||
	       mmap((void *)(uintptr_t)rest, page_up(end) - rest, prot,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		       MAP_FAILED;
}

/* Map the file; false with a line in `why`. */
static bool map_image(const char *path, struct image *im, char why[WHY])
{
	Elf64_Phdr p[PROGRAM_HEADERS];
	Elf64_Ehdr h;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = false;

	*im = (struct image){ 0 };
	if (fd < 0) {
		snprintf(why, WHY, "%.200s: %s", path, strerror(errno));
		return false;
	}
	snprintf(why, WHY, "%.150s: no ELF program of x86-64 that can be "
		 "mapped beside the loader", path);
	if (read(fd, &h, sizeof(h)) != sizeof(h) ||
	    memcmp(h.e_ident, ELFMAG "\2", SELFMAG + 1) ||
	    h.e_machine != EM_X86_64 || h.e_phnum > PROGRAM_HEADERS ||
	    h.e_phentsize != sizeof(*p) ||
	    pread(fd, p, h.e_phnum * sizeof(*p), (off_t)h.e_phoff) !=
		    (ssize_t)(h.e_phnum * sizeof(*p)) ||
	    !reserve_span(&h, p, im))
		goto out;
	im->entry = im->base + h.e_entry;
	im->n_headers = h.e_phnum;
	for (int i = 0; i < h.e_phnum; i++) {
		if (p[i].p_type == PT_LOAD &&
		    !map_segment(fd, &p[i], im->base))
			goto out;
		if (p[i].p_type == PT_LOAD && h.e_phoff >= p[i].p_offset &&
		    h.e_phoff < p[i].p_offset + p[i].p_filesz)
			im->headers = im->base + p[i].p_vaddr + h.e_phoff -
				      p[i].p_offset;
		if (p[i].p_type == PT_INTERP &&
		    (p[i].p_filesz >= sizeof(im->linker) ||
		     pread(fd, im->linker, p[i].p_filesz,
			   (off_t)p[i].p_offset) != (ssize_t)p[i].p_filesz))
			goto out;
	}
	ok = true;
out:
	close(fd);
	return ok;
}

/* What of the kernel's vector is about the program. */
static uint64_t auxiliary(const Elf64_auxv_t *a, const struct image *program,
			  uint64_t linker_base)
{
	switch (a->a_type) {
	case AT_PHDR:
		return program->headers;
	case AT_PHNUM:
		return program->n_headers;
	case AT_ENTRY:
		return program->entry;
	case AT_BASE:
		return linker_base;
	case AT_EXECFN:
		return (uintptr_t)trap.arg[TRAP_PROGRAM];
	}
	return a->a_un.a_val;
}

/* This thread is the program's now: no thread pointer, no area of ours. */
static void leave_libc(void)
{
	const uint64_t area = (uintptr_t)__builtin_thread_pointer() +
			      (uint64_t)__rseq_offset;

	/* 1 = unregister; the signature of x86-64. */
	if (trap_raw(SYS_rseq, area, 32, 1, 0x53053053, 0, 0))
		trap_raw(SYS_rseq, area, __rseq_size, 1, 0x53053053, 0, 0);
	trap_raw(SYS_set_robust_list, 0, 24, 0, 0, 0, 0);
	trap_raw(SYS_set_tid_address, 0, 0, 0, 0, 0, 0);
	trap_raw(SYS_arch_prctl, 0x1002 /* ARCH_SET_FS */, 0, 0, 0, 0, 0);
}

/* argc, argv, NULL, envp, NULL, auxv: where the kernel left the strings. */
static uint64_t *fill_stack(char **argv, char **envp, const struct image *im,
			    uint64_t linker_base, size_t *n_words)
{
	size_t argc = 0, envc = 0, n_aux = 0, n = 0;
	const Elf64_auxv_t *aux;
	uint64_t *w;

	while (argv[argc])
		argc++;
	while (envp[envc])
		envc++;
	aux = (const Elf64_auxv_t *)(envp + envc + 1);
	while (aux[n_aux++].a_type != AT_NULL)
		;
	w = calloc(argc + envc + 4 + 2 * n_aux, sizeof(*w));
	if (!w)
		return NULL;
	w[n++] = argc;
	for (size_t i = 0; i <= argc; i++)
		w[n++] = (uintptr_t)argv[i];
	for (size_t i = 0; i <= envc; i++)
		w[n++] = (uintptr_t)envp[i];
	for (size_t i = 0; i < n_aux; i++) {
		w[n++] = aux[i].a_type;
		w[n++] = auxiliary(&aux[i], im, linker_base);
	}
	*n_words = n;
	return w;
}

/* Copy the words below our own frame, and go. */
static void __attribute__((noreturn)) jump(const uint64_t *words, size_t n,
					   uint64_t entry)
{
	uint64_t to = (uintptr_t)__builtin_frame_address(0) - (64u << 10) -
		      n * 8;

	to &= ~15ull;
	__asm__ volatile("mov	%0, %%rdi\n\t"
			 "mov	%0, %%rsp\n\t"
			 "cld\n\t"
			 "rep movsq\n\t"
			 "xor	%%edx, %%edx\n\t"
			 "xor	%%ebp, %%ebp\n\t"
			 "jmp	*%%rax"
			 :
			 : "r"(to), "S"(words), "c"(n), "a"(entry)
			 : "rdi", "memory");
	__builtin_unreachable();
}

void trap_load(const char *path, char **argv, char **envp, char why[256])
{
	struct image program, linker = { 0 };
	uint64_t *words;
	size_t n;

	if (!map_image(path, &program, why) ||
	    (program.linker[0] && !map_image(program.linker, &linker, why)))
		return;
	words = fill_stack(argv, envp, &program, linker.base, &n);
	if (!words || !trap_filter()) {
		snprintf(why, WHY, "the kernel refuses a seccomp filter: %s",
			 strerror(errno));
		return;
	}
	leave_libc();
	jump(words, n, program.linker[0] ? linker.entry : program.entry);
}
