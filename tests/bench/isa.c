/*
 * How fast instructions are decoded, encoded and printed, on one processor:
 * the median and the extremes of several passes over the same random words
 * that decode for gfx1100, wave32.  Then, when llvm-objdump-19 is installed,
 * whole processes on the same code object, in turns: t0-isa dis beside it.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "isa/text/text.h"
#include "results/stats/stats.h"
#include "tests/bench/rows.h"
#include "tests/isa/gen.h"

enum { INSTS = 20000, PASSES = 15, WORD_BYTES = 20 };

static const struct isa_target target = { ISA_GFX11, 32, false };

struct sample {
	uint8_t code[INSTS][WORD_BYTES];
	struct isa_inst in[INSTS];
	size_t sink; /* of what was computed, so that it must be */
};

/* xorshift64* by Vigna; any fixed seed will do. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

static void fill(struct sample *s, uint64_t seed)
{
	for (size_t n = 0; n < INSTS;) {
		for (size_t i = 0; i < WORD_BYTES; i += 4) {
			uint32_t word = (uint32_t)(next_random(&seed) >> 32);
			memcpy(s->code[n] + i, &word, sizeof(word));
		}
		n += !isa_decode(&target, s->code[n], WORD_BYTES, &s->in[n]);
	}
}

static void decode(struct sample *s)
{
	for (size_t n = 0; n < INSTS; n++) {
		struct isa_inst in;
		isa_decode(&target, s->code[n], WORD_BYTES, &in);
		s->sink += in.op;
	}
}

static void encode(struct sample *s)
{
	for (size_t n = 0; n < INSTS; n++) {
		uint8_t out[ISA_MAX_SIZE_BYTES];
		s->sink += (size_t)isa_encode(&s->in[n], out);
	}
}

static void print(struct sample *s)
{
	for (size_t n = 0; n < INSTS; n++) {
		char text[ISA_TEXT_MAX];
		s->sink += (size_t)isa_print(&target, &s->in[n], text,
					     sizeof(text));
	}
}

static void measure(struct bench_rows *r, struct table *t, const char *what,
		    void (*f)(struct sample *), struct sample *s)
{
	const unsigned passes = bench_rounds(PASSES);
	double ns[PASSES];

	f(s); /* warms the caches */
	for (unsigned i = 0; i < passes; i++) {
		uint64_t start = time_mono_ns();
		f(s);
		ns[i] = (double)(time_mono_ns() - start) / INSTS;
	}
	double *sorted = res_sorted(ns, passes);
	bench_case(r, what, NULL);
	table_row(t);
	table_cell(t, 0, "%s", what);
	table_cell(t, 1, "%.1f", bench_time(r, ns, passes, 1e-9));
	table_cell(t, 2, "%.1f", sorted[0]);
	table_cell(t, 3, "%.1f", sorted[passes - 1]);
	table_cell(t, 4, "%u", passes);
	free(sorted);
}

/* ---------------------------------------------------- whole processes ---- */

enum { OBJECT_INSTS = 400000, PAIRS = 7, CODE_VADDR = 0x1000000 };

/* .rodata, with the descriptor, has its offset as its address. */
static void point(const char *names, Elf64_Sym *sym, size_t n, size_t size,
		  struct buf *b)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = names + sym[i].st_name;
		uint64_t entry = CODE_VADDR - sym[i].st_value;

		if (!strcmp(name, "saxpy")) {
			sym[i].st_value = CODE_VADDR;
			sym[i].st_size = size;
		} else if (!strcmp(name, "saxpy.kd")) {
			/* kernel_code_entry_byte_offset, and where it lies */
			memcpy(b->data + sym[i].st_value + 16, &entry, 8);
		}
	}
}

/*
 * tests/data/kernels/saxpy.co, but its kernel is `code`, which goes to the end
 * of the file and to an address of its own.
 */
static bool object_with(const struct buf *code, struct buf *b, struct err *e)
{
	Elf64_Ehdr *eh;
	Elf64_Shdr *sh;
	Elf64_Phdr *ph;
	size_t at;

	if (!file_read("tests/data/kernels/saxpy.co", 0, b, e))
		return false;
	while (b->len % 4096)
		buf_addc(b, 0);
	at = b->len;
	buf_add(b, code->data, code->len);
	eh = (Elf64_Ehdr *)b->data;
	sh = (Elf64_Shdr *)(b->data + eh->e_shoff);
	ph = (Elf64_Phdr *)(b->data + eh->e_phoff);
	for (int i = 0; i < eh->e_shnum; i++)
		if (sh[i].sh_type == SHT_SYMTAB || sh[i].sh_type == SHT_DYNSYM)
			point(b->data + sh[sh[i].sh_link].sh_offset,
			      (Elf64_Sym *)(b->data + sh[i].sh_offset),
			      sh[i].sh_size / sizeof(Elf64_Sym), code->len, b);
		else if (sh[i].sh_flags & SHF_EXECINSTR) {
			sh[i].sh_offset = at;
			sh[i].sh_addr = CODE_VADDR;
			sh[i].sh_size = code->len;
		}
	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_X))
			continue;
		ph[i].p_offset = at;
		ph[i].p_vaddr = ph[i].p_paddr = CODE_VADDR;
		ph[i].p_filesz = ph[i].p_memsz = code->len;
		/* Segments come in the order of their addresses. */
		if (i + 1 < eh->e_phnum && ph[i + 1].p_type == PT_LOAD) {
			Elf64_Phdr last = ph[i];

			ph[i] = ph[i + 1];
			ph[i + 1] = last;
		}
	}
	return true;
}

/* Instructions on which both agree, so that both do the same work. */
static bool make_object(const char *path, struct err *e)
{
	struct isa_gen_state g = { .seed = 20260704, .gen = ISA_GFX11 };
	struct buf code = { 0 }, object = { 0 };
	bool good;

	for (int n = 0; n < OBJECT_INSTS;) {
		uint8_t word[ISA_MAX_SIZE_BYTES];
		struct isa_inst in;

		gen_inst(&g, word);
		if (isa_decode(&target, word, sizeof(word), &in) ||
		    in.fmt == ISA_FMT_MIMG)
			continue;
		buf_add(&code, word, in.size_bytes);
		n++;
	}
	good = object_with(&code, &object, e) &&
	       file_write_atomic(path, object.data, object.len, e);
	buf_fini(&code);
	buf_fini(&object);
	return good;
}

static double seconds(const char *command)
{
	uint64_t start = time_mono_ns();

	if (system(command))
		return -1;
	return (double)(time_mono_ns() - start) * 1e-9;
}

/* Seconds of both in turns. */
static void report_pair(struct bench_rows *r, struct table *t,
			const double *ours, const double *theirs, unsigned n)
{
	double ratio[PAIRS];
	char params[64];

	for (unsigned i = 0; i < n; i++)
		ratio[i] = theirs[i] / ours[i];
	double *sorted = res_sorted(ratio, n);
	res_params(params, sizeof(params), "insts:u", OBJECT_INSTS);
	table_row(t);
	table_cell(t, 0, "%d instructions", OBJECT_INSTS);
	bench_case(r, "llvm-objdump-19 -d", params);
	table_cell(t, 2, "%.3f", bench_time(r, theirs, n, 1));
	bench_case(r, "t0-isa dis", params);
	table_cell(t, 1, "%.3f", bench_time(r, ours, n, 1));
	table_cell(t, 3, "%.1f", bench_ratio(r, "llvm-objdump-19 -d",
					     RES_HIGHER, ratio, n));
	table_cell(t, 4, "%.1f", sorted[0]);
	table_cell(t, 5, "%.1f", sorted[n - 1]);
	table_cell(t, 6, "%u", n);
	free(sorted);
}

static bool compare(struct bench_rows *r, struct table *t, const char *tool,
		    const char *path, struct err *e)
{
	const unsigned n = bench_rounds(PAIRS);
	double ours[PAIRS], theirs[PAIRS];
	char a[512], b[512];

	snprintf(a, sizeof(a), "%s dis %s >/dev/null", tool, path);
	snprintf(b, sizeof(b), "llvm-objdump-19 -d '%s' >/dev/null 2>&1", path);
	for (unsigned i = 0; i < n; i++) {
		ours[i] = seconds(a);
		theirs[i] = seconds(b);
		if (ours[i] < 0 || theirs[i] < 0)
			return err_set(e, ERR_INPUT, "this command failed: %s",
				       ours[i] < 0 ? a : b);
	}
	report_pair(r, t, ours, theirs, n);
	return true;
}

static bool processes(struct bench_rows *r, const char *self, struct err *e)
{
	char path[] = "/tmp/t0-bench-isa-XXXXXX", tool[400];
	const char *slash = strrchr(self, '/');
	struct table t;
	bool good;
	int fd;

	/* build/MODE/tests/bench/isa: the tool is two folders up. */
	snprintf(tool, sizeof(tool), "%.*s/../../t0-isa",
		 slash ? (int)(slash - self) : 1, slash ? self : ".");
	if (access(tool, X_OK))
		return err_sys(e, ERR_INPUT, errno, "%s", tool);
	if (system("llvm-objdump-19 --version >/dev/null 2>&1")) {
		printf("isa: SKIPPED the comparison: llvm-objdump-19 is not "
		       "installed\n");
		return true;
	}
	fd = mkstemp(path);
	if (fd < 0)
		return err_set(e, ERR_IO, "no temporary file");
	close(fd);
	table_init(&t, "disassemble a file,#t0-isa s,#llvm-objdump-19 s,"
		       "#ratio,#min,#max,#n");
	good = make_object(path, e) && compare(r, &t, tool, path, e) &&
	       table_print(&t, TABLE_TEXT, stdout, e);
	table_fini(&t);
	unlink(path);
	return good;
}

int main(int argc, char **argv)
{
	struct sample *s = xcalloc(1, sizeof(*s));
	struct bench_rows r;
	struct err e = { 0 };
	struct table t;
	bool done;

	bench_open(&r, "isa", argc, argv);
	fill(s, 20260701);
	table_init(&t, "isa,#median ns,#min ns,#max ns,#n");
	measure(&r, &t, "decode", decode, s);
	measure(&r, &t, "encode", encode, s);
	measure(&r, &t, "print", print, s);
	done = table_print(&t, TABLE_TEXT, stdout, &e);
	table_fini(&t);
	free(s);
	done = done && processes(&r, argc ? argv[0] : "", &e);
	return bench_close(&r, done, &e);
}
