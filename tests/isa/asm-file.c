/*
 * Whole assembly files: labels, expressions, sections, data, directives, and
 * what is said about files that are wrong.  Bytes wanted are worked out by
 * hand.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/asm/asm.h"
#include "tests/tap.h"

static struct isa_object object;
static struct buf messages;

static bool assemble(const char *text)
{
	struct isa_asm_options options = { .messages = &messages };
	struct err e = { 0 };

	buf_reset(&messages);
	isa_object_init(&object);
	return isa_assemble(&object, "t.s", text, strlen(text), &options, &e);
}

/* The section's bytes in hex. */
static const char *bytes_of(const char *name)
{
	static char hex[1024];
	size_t n = 0;

	hex[0] = 0;
	for (int i = 0; i < object.n_sections; i++) {
		const struct isa_section *s = &object.section[i];

		if (strcmp(s->name, name))
			continue;
		for (n = 0; n < s->data.len && n < 500; n++)
			sprintf(hex + 2 * n, "%02x", (uint8_t)s->data.data[n]);
	}
	return hex;
}

static void is_section(const char *text, const char *section, const char *hex,
		       const char *name)
{
	bool good = assemble(text);

	if (!good)
		diag("%s", messages.len ? messages.data : "no message");
	is_str(good ? bytes_of(section) : "(refused)", hex, "%s", name);
	isa_object_fini(&object);
}

static void is_text(const char *text, const char *hex, const char *name)
{
	is_section(text, ".text", hex, name);
}

static void is_data(const char *text, const char *hex, const char *name)
{
	char with[1024];

	snprintf(with, sizeof(with), "\t.data\n%s", text);
	is_section(with, ".data", hex, name);
}

static void instructions(void)
{
	is_text("s_nop 0\n\ts_nop 1 ; comment\n  s_nop 2 // comment\n"
		"# comment\n/* s_nop 3\n s_nop 4 */ s_nop 5\n",
		"000080bf010080bf020080bf050080bf", "comments are skipped");
	is_text("s_nop 0\r\ns_nop 1\r\n", "000080bf010080bf",
		"carriage returns are skipped");
	is_text("s_nop 1", "010080bf", "the last line needs no newline");
	is_text("top: s_nop 0\n s_branch top\n", "000080bffeffa0bf",
		"a branch backwards counts from the next instruction");
	is_text(" s_branch end\n s_nop 0\nend:\n", "0100a0bf000080bf",
		"a branch forwards");
	is_text("1: s_nop 0\n s_branch 1b\n s_branch 1f\n1: s_nop 1\n"
		" s_branch 1b\n",
		"000080bffeffa0bf0000a0bf010080bffeffa0bf",
		"local labels are found before and behind");
	is_text(".set n, 3\n s_nop n\n n = n+1\n s_nop n*2\n",
		"030080bf080080bf", "symbols are numbers");
	is_text(".set k, 64\n s_mov_b32 s0, k\n .set k, 65\n s_mov_b32 s0, k\n",
		"c00080beff0080be41000000",
		"a number that is small is an inline constant");
	is_text("a: s_nop 0\nb: s_mov_b32 s0, b-a\n", "000080bf840080be",
		"a difference of labels is a number");
	is_text(" s_mov_b32 s0, c-d\nd: s_nop 0\nc:\n",
		"ff0080be04000000000080bf",
		"a difference of later labels is a literal");
	is_text(" s_nop .amdgcn.gfx_generation_number\n"
		" v_mov_b32 v7, 0\n s_nop .amdgcn.next_free_vgpr\n",
		"0b0080bf80020e7e080080bf", "the assembler's own numbers");
	is_text(" .amdgcn_target \"amdgpu11.00-amd-amdhsa-unknown-gfx1100\"\n"
		" s_nop 0\n", "000080bf", "the target as LLVM 22 has it");
	is_text("x = 4\n global_load_b32 v0, v[0:1], off offset:x*4\n",
		"100052dc00007c00", "a symbol in an offset");
}

static void data(void)
{
	is_data(".byte 1, -1, 'a', 0xff\n", "01ff61ff", ".byte");
	is_data(".short 0x1234\n .2byte -1\n", "3412ffff", ".short");
	is_data(".long 1+2*3, (1<<4)|1, ~0, !0, 7%4, -7/2\n",
		"0700000011000000ffffffff0100000003000000fdffffff",
		"expressions have precedence");
	is_data(".byte instprefsize(0), instprefsize(1), instprefsize (128)\n"
		".byte instprefsize(129), (instprefsize(1<<20)<<4&1008)>>4\n",
		"000101023f", "instprefsize() counts lines of 128 bytes");
	is_data(".long 1==1, 1<2, 2<>2\n", "ffffffffffffffff00000000",
		"true is -1");
	is_data(".quad 0x0123456789abcdef\n", "efcdab8967452301", ".quad");
	is_data(".quad b-a\na: .byte 1,2,3\nb:\n", "0300000000000000010203",
		"a difference of later labels in data");
	is_data("a: .long . - a, . - a\n", "0000000004000000",
		"'.' is where the item stands");
	is_data(".float 1.5\n .double -2.0\n", "0000c03f00000000000000c0",
		".float and .double");
	is_data(".ascii \"a\\n\\x41\\101\\\"\"\n .asciz \"b\", \"c\"\n",
		"610a41412262006300", "strings and their escapes");
	is_data(".zero 3\n .space 2, 0xaa\n .skip 1\n", "000000aaaa00",
		".zero, .space and .skip");
	is_data(".fill 2, 4, 0x01020304\n .fill 3\n", "0403020104030201000000",
		".fill");
	is_data(".byte 1\n .p2align 2\n .byte 2\n .balign 8, 0xff\n",
		"0100000002ffffff", "padding in data");
	is_data(".byte 1\n .balign 4, 0, 2\n .byte 2\n", "0102",
		"padding of more than the most is left out");
	is_text(".byte 1\n .p2align 3\n s_endpgm\n", "01000000000080bf0000b0bf",
		"padding in code is s_nop");
	is_text("s_nop 0\n .p2alignl 4, 0xbf9f0000\n",
		"000080bf00009fbf00009fbf00009fbf", ".p2alignl");
}

static void sections(void)
{
	is_section(".text\n s_nop 0\n .rodata\n .byte 7\n .text\n s_nop 1\n",
		   ".text", "000080bf010080bf", "sections are continued");
	is_section(".section .rodata.x,\"a\",@progbits\n .byte 7\n .previous\n"
		   " s_nop 0\n",
		   ".rodata.x", "07", ".section and .previous");
	ok(assemble(
		   ".bss\nx: .zero 100\n .globl x\n .hidden x\n .type x,@object"
		   "\n .size x, 100\n") &&
		   isa_section_at(&object, 2)->size_bytes == 100,
	   ".bss has a size but no bytes");
	is_u64(isa_symbol_at(&object, isa_object_find(&object, "x", 1))
		       ->size_bytes,
	       100, "a symbol has its size");
	is_u64(isa_symbol_at(&object, isa_object_find(&object, "x", 1))
		       ->visibility,
	       2, "a symbol is hidden");
	isa_object_fini(&object);
}

/* Type, offset, addend of relocation `i`. */
static void is_reloc(size_t i, uint32_t type, uint64_t offset, int64_t addend,
		     const char *name)
{
	const struct isa_reloc *r = &object.reloc[i];

	if (!ok(i < object.n_relocs, "%s: there is one", name))
		return;
	is_u64(r->type, type, "%s: type", name);
	is_u64(r->offset, offset, "%s: offset", name);
	is_i64(r->addend, addend, "%s: addend", name);
}

static void relocations(void)
{
	ok(assemble("s_getpc_b64 s[0:1]\n"
		    "s_add_u32 s0, s0, t@rel32@lo+4\n"
		    "s_addc_u32 s1, s1, t@rel32@hi+12\n"
		    ".data\nt: .quad t+8\n .long u - .\n"),
	   "a file with relocations");
	is_u64(object.n_relocs, 4, "there are four");
	is_reloc(0, CO_RELOC_REL32_LO, 8, 4, "@rel32@lo");
	is_reloc(1, CO_RELOC_REL32_HI, 16, 12, "@rel32@hi");
	is_reloc(2, CO_RELOC_ABS64, 0, 8, "an address");
	is_reloc(3, CO_RELOC_REL32, 8, 0, "a distance");
	isa_object_fini(&object);
}

static const struct {
	const char *text, *message;
} wrong[] = {
	{ " s_nop 0\n v_foo v0\n",
	  "t.s:2:2: unknown instruction\n v_foo v0\n ^" },
	{ " .long 1, )\n", "t.s:1:11: expression missing" },
	{ " .byte 256\n", "256 does not fit 8 bits" },
	{ " .foo\n", "unknown directive .foo" },
	{ "a:\na:\n", "t.s:2:1: symbol 'a' is already defined" },
	{ " s_branch .Lx\n", "undefined label .Lx" },
	{ " s_branch 1b\n", "undefined symbol" },
	{ " s_branch 1f\n", "undefined label" },
	{ " .p2align 40\n", "out of range" },
	{ " .balign 3\n", "power of two" },
	{ " .ascii \"abc\n", "'\"' missing" },
	{ " .ascii \"\\q\"\n", "unknown escape" },
	{ " .section .x,\"q\"\n", "unknown section flag 'q'" },
	{ " .type x, @foo\n", "wanted @function" },
	{ " .set x\n", "wanted ','" },
	{ " .set x, x+1\n", "set to itself" },
	{ " .zero y\n", "must be a number by now" },
	{ " .zero -1\n", "out of range" },
	{ " .fill 1, 9\n", "out of range" },
	{ " .bss\n .byte 1\n", "has no bytes of its own" },
	{ " .byte x\n", "no relocation has this size" },
	{ " .long x-y\n", "not known" },
	{ " .long x@foo\n", "unknown way to refer" },
	{ " .amdgcn_target \"x86\"\n", "not amdgcn-amd-amdhsa" },
	{ " .amdgcn_target \"amdgcn-amd-amdhsa--gfx906\"\n", "gfx906" },
	{ " .amdgcn_target \"amdgpu11.00-amd-amdhsa-unknown-gfx906\"\n",
	  "gfx906" },
	{ " .amdgcn_target \"amdgpu11.00-amd-amdpal--gfx1100\"\n",
	  "not amdgcn-amd-amdhsa" },
	{ " .amdgcn_target \"amdgcn\"\n", "not amdgcn-amd-amdhsa" },
	{ " .byte instprefsize(x)\n", "instprefsize() needs a number" },
	{ " .byte instprefsize(1\n", "')' missing" },
	{ " .amdhsa_code_object_version 3\n", "out of range 4 to 6" },
	{ " .amdhsa_kernel k\n", ".end_amdhsa_kernel is missing" },
	{ " .amdhsa_kernel k\n .amdhsa_foo 1\n .end_amdhsa_kernel\n",
	  "unknown directive .amdhsa_foo" },
	{ " .amdhsa_kernel k\n .end_amdhsa_kernel\n",
	  ".amdhsa_next_free_vgpr is missing" },
	{ " .amdhsa_kernel k\n .amdhsa_next_free_vgpr 1\n"
	  " .amdhsa_next_free_vgpr 1\n .end_amdhsa_kernel\n",
	  "t.s:3:2: .amdhsa_next_free_vgpr given twice" },
	{ " .amdhsa_kernel k\n .amdhsa_ieee_mode 2\n .end_amdhsa_kernel\n",
	  "2 does not fit 1 bits" },
	{ " .amdgpu_metadata\n", ".end_amdgpu_metadata is missing" },
	{ " .amdgpu_metadata\n .end_amdgpu_metadata\n", "metadata is empty" },
	{ " .amdgpu_metadata\na: [1\n .end_amdgpu_metadata\n",
	  "t.s:3:1: metadata: did not find expected ',' or ']'" },
	{ " .amdgpu_metadata\na: 1\n  b: 2\n .end_amdgpu_metadata\n",
	  "t.s:3:4: metadata: mapping values are not allowed" },
	{ " .amdgpu_metadata\na: 1\na: 2\n .end_amdgpu_metadata\n",
	  "t.s:3:1: metadata: a key is given twice" },
	{ " .amdgpu_metadata\n{a: 1, a: 2}\n .end_amdgpu_metadata\n",
	  "given twice" },
	{ " .amdgpu_metadata\na: 'x\n .end_amdgpu_metadata\n",
	  "unexpected end of stream" },
	{ " .amdgpu_metadata\na: {[1]: 2}\n .end_amdgpu_metadata\n",
	  "a key is no scalar" },
	{ " .amdgpu_metadata\na: &x 1\nb: *x\n .end_amdgpu_metadata\n",
	  "aliases are not understood" },
	{ " .amdgpu_metadata\na: !int x\n .end_amdgpu_metadata\n",
	  "no whole number" },
	{ " .amdgpu_metadata\na: 1\n---\nb: 1\n .end_amdgpu_metadata\n",
	  "more than one document" },
	{ " .amdgpu_metadata\n- 1\n .end_amdgpu_metadata\n", "wanted a map" },
};

static void mistakes(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		bool good = assemble(wrong[i].text);

		has_str(good	     ? "(accepted)" :
			messages.len ? messages.data :
				       "",
			wrong[i].message, "mistake %zu is found", i + 1);
		isa_object_fini(&object);
	}
	ok(!assemble(" foo\n bar\n baz\n"), "three mistakes");
	has_str(messages.data, "t.s:1:", "the first is told");
	has_str(messages.data, "t.s:3:", "so is the last");
	isa_object_fini(&object);
}

/* A file cut anywhere is assembled or refused with a message. */
static void truncated(void)
{
	static const char text[] =
		"\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n"
		"k:\ts_endpgm\n\t.rodata\n\t.amdhsa_kernel k\n"
		"\t.amdhsa_next_free_vgpr 1\n\t.amdhsa_next_free_sgpr 1\n"
		"\t.end_amdhsa_kernel\n\t.amdgpu_metadata\n---\n"
		"amdhsa.kernels:\n  - .name: k\n    .args:\n      - .size: 4\n"
		"amdhsa.version: [1, 2]\n...\n\t.end_amdgpu_metadata\n";
	int silent = 0;

	for (size_t n = 0; n < sizeof(text); n++) {
		char *copy = strndup(text, n);

		if (!assemble(copy) && !messages.len)
			silent++;
		isa_object_fini(&object);
		free(copy);
	}
	is_i64(silent, 0, "no cut file is refused without a word");
}

int main(void)
{
	instructions();
	data();
	sections();
	relocations();
	mistakes();
	truncated();
	buf_fini(&messages);
	return plan_done();
}
