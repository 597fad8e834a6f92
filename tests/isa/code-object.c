/*
 * Code objects: what the reader says about prebuilt files, against values
 * worked out by hand from tests/data/kernels/relocs.s, the ELF layout that
 * the linker printed and the descriptor layout of the ABI.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/object/object.h"
#include "tests/tap.h"

#define KERNELS "tests/data/kernels/"
#define BASE	UINT64_C(0x7fab12340000)

static struct buf read_kernels(const char *path)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	if (!file_read(path, 0, &b, &e))
		ok(false, "%s: %s", path, e.msg);
	return b;
}

static uint64_t u64_at(const uint8_t *image, uint64_t at)
{
	uint64_t v;

	memcpy(&v, image + at, sizeof(v));
	return v;
}

static void patch(struct buf *b, size_t at, const void *bytes, size_t n)
{
	if (at + n <= b->len)
		memcpy(b->data + at, bytes, n);
}

static void test_relocs(void)
{
	struct buf b = read_kernels(KERNELS "relocs.co");
	struct err e = { 0 };
	struct co co;
	uint8_t *image;

	if (!ok(co_parse(&co, b.data, b.len, &e), "relocs.co parses"))
		diag("%s", e.msg);
	is_str(co.chip, "gfx1100", "the chip is read from e_flags");
	is_u64((uint64_t)co.version, 5, "ABI version 3 is code object v5");
	is_u64(co.n_segments, 4, "four loadable segments");
	is_u64(co.segments[3].vaddr, 0x34b8, "the data segment's address");
	is_u64(co.segments[3].offset, 0x4b8, "and its place in the file");
	/* Up to 0x34e8, whole pages, one more for the prefetch. */
	is_u64(co.span_bytes, 0x5000, "the image has a page behind its end");
	is_u64(co.n_relocs, 4, "four relocations");
	ok(!co.has_metadata, "an object without metadata says so");
	is_u64(co.n_kernels, 1, "its kernel is found by the symbol k.kd");
	is_str(co.kernels[0].name, "k", "and named without .kd");
	is_u64(co.kernels[0].desc_off, 0x380, "descriptor offset");
	is_u64(co.kernels[0].entry_off, 0x1400, "entry offset");
	is_u64(co.kernels[0].code_bytes, 4, "one s_endpgm of code");
	is_mem(co.kernels[0].code, "\0\0\xb0\xbf", 4, "which is bfb00000");
	is_u64(co.kernels[0].desc.kernarg_bytes, 8, "kernarg_size 8");
	is_u64(co.kernels[0].wave_size, 32, "wave32 from the descriptor");
	is_u64((uint64_t)co_descriptor_vgprs(&co.kernels[0].desc), 8,
	       "one VGPR is allocated as eight");
	ok(co_symbol_find(&co, "there")->vaddr == 0x34e0, "symbols by name");
	is_str(co_symbol_at(&co, 0x34e7)->name, "there", "and by address");
	ok(!co_symbol_at(&co, 0x34e8), "but not past their end");

	image = xmalloc(co.span_bytes);
	ok(co_image_build(&co, image, co.span_bytes, BASE, &e), "it builds");
	is_u64(u64_at(image, 0x34b8), BASE + 0x34e0, "ABS64");
	is_u64(u64_at(image, 0x34c0), BASE + 0x34f0, "ABS64 with an addend");
	is_u64(u64_at(image, 0x34c8), 0, "an undefined weak symbol is 0");
	is_u64(u64_at(image, 0x34d0), BASE + 0x34b8, "RELATIVE64");
	is_u64(u64_at(image, 0x34d8), 0, "an unrelocated word stands");
	is_u64(u64_at(image, 0x34e0), 0x1122334455667788, "data is copied");
	is_u64(u64_at(image, 0x4ff8), 0, "the page behind is zero");
	ok(!co_image_build(&co, image, co.span_bytes - 1, BASE, &e),
	   "too little memory is refused");
	free(image);
	co_fini(&co);
	buf_fini(&b);
}

/*
 * The third relocation of relocs.co (file offset 0x318) stands at 0x34b8 and
 * means symbol `there` (0x34e0), addend 0.  Each type in turn:
 */
static void test_reloc_types(void)
{
	static const struct {
		uint32_t type;
		uint64_t wanted; /* the 8 bytes at the place; data is 0 */
		const char *name;
	} t[] = {
		{ 0, 0, "NONE" },
		{ 1, (BASE + 0x34e0) & 0xffffffff, "ABS32_LO" },
		{ 2, 0x7fab, "ABS32_HI" },
		{ 3, BASE + 0x34e0, "ABS64" },
		{ 4, 0x28, "REL32" },
		{ 5, 0x28, "REL64" },
		{ 6, (BASE + 0x34e0) & 0xffffffff, "ABS32" },
		{ 10, 0x28, "REL32_LO" },
		{ 11, 0, "REL32_HI" },
	};
	struct buf b = read_kernels(KERNELS "relocs.co");

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		uint8_t image[0x5000];
		struct err e = { 0 };
		struct co co;

		patch(&b, 0x2e8 + 2 * 24 + 8, &t[i].type, 4);
		if (ok(co_parse(&co, b.data, b.len, &e) &&
			       co_image_build(&co, image, sizeof(image), BASE,
					      &e),
		       "relocation type %u builds", t[i].type))
			is_u64(u64_at(image, 0x34b8), t[i].wanted,
			       "%s has the right value", t[i].name);
		co_fini(&co);
	}
	buf_fini(&b);
}

static void test_undefined(void)
{
	struct buf b = read_kernels("tests/corpus/co/good-reloc-undefined");
	uint8_t image[0x5000];
	struct err e = { 0 };
	struct co co;

	ok(co_parse(&co, b.data, b.len, &e),
	   "a file with an undefined symbol can be looked at");
	ok(!co_image_build(&co, image, sizeof(image), BASE, &e),
	   "but not loaded");
	has_str(e.msg, "undefined symbol maybe", "and the symbol is named");
	co_fini(&co);
	buf_fini(&b);
}

static void test_metadata(void)
{
	struct buf b = read_kernels(KERNELS "saxpy.co");
	const struct co_kernel *k;
	struct err e = { 0 };
	struct co co;

	ok(co_parse(&co, b.data, b.len, &e), "saxpy.co parses");
	is_str(co.target, "amdgcn-amd-amdhsa--gfx1100", "target");
	k = co_kernel_require(&co, "saxpy.kd", &e);
	if (!ok(k != NULL, "a kernel is found with .kd too"))
		return;
	ok(k->has_metadata, "it has metadata");
	is_u64(k->n_user_args, 4, "saxpy takes four arguments");
	ok(k->n_args > 4, "and hidden ones");
	is_str(k->args[0].type_name, "float", "argument 0 is a float");
	is_str(k->args[0].name, "a", "called a");
	ok(k->args[0].kind == CO_ARG_BY_VALUE, "by value");
	is_u64(k->args[1].offset, 8, "argument 1 is aligned to 8");
	ok(k->args[1].kind == CO_ARG_GLOBAL_BUFFER, "a buffer");
	ok(k->args[1].space == CO_SPACE_GLOBAL, "in global memory");
	ok(k->args[1].is_const && !k->args[2].is_const,
	   "const is known of x and not of y");
	is_u64(k->args[3].offset, 24, "argument 3 is behind two pointers");
	ok(!co_arg_is_hidden(&k->args[3]) && co_arg_is_hidden(&k->args[4]),
	   "hidden arguments are told apart");
	/* Implicit arguments take 256 bytes behind the explicit 28, at 32. */
	is_u64(k->kernarg_bytes, 288, "28 bytes, to 32, and 256 hidden");
	is_u64(k->max_flat_workgroup_size, 256, "OpenCL's default of 256");
	is_str(k->language, "OpenCL C", "language");
	ok(!co_kernel_require(&co, "saxp", &e), "no part of a name matches");
	has_str(e.msg, "no kernel saxp; the object has: saxpy",
		"and the error lists what there is");
	co_fini(&co);
	buf_fini(&b);
}

static void test_reqd_size(void)
{
	struct buf b = read_kernels(KERNELS "transpose.co");
	const struct co_kernel *k;
	struct err e = { 0 };
	struct co co;

	ok(co_parse(&co, b.data, b.len, &e), "transpose.co parses");
	k = co_kernel_find(&co, "transpose");
	if (!ok(k != NULL, "it has transpose"))
		return;
	is_u64(k->reqd_workgroup_size[0], 16, "required X");
	is_u64(k->reqd_workgroup_size[1], 16, "required Y");
	is_u64(k->reqd_workgroup_size[2], 1, "required Z");
	/* 16 rows of 17 floats */
	is_u64(k->desc.group_segment_bytes, 16 * 17 * 4, "LDS of the tile");
	co_fini(&co);
	buf_fini(&b);
}

/* The example of the ABI notes: 53 VGPRs, wave32, 15 user SGPRs, scratch. */
static void test_descriptor(void)
{
	uint8_t bytes[CO_DESCRIPTOR_BYTES] = {
		[0] = 0x00,  [1] = 0x04,  [4] = 164,   [8] = 24,    [16] = 0x80,
		[17] = 0xff, [18] = 0xff, [19] = 0xff, [20] = 0xff, [21] = 0xff,
		[22] = 0xff, [23] = 0xff, [44] = 0x70, [48] = 0x86, [50] = 0xaf,
		[51] = 0x60, [52] = 0x9f, [56] = 0x08, [57] = 0x04,
	};
	struct co_descriptor d;

	co_descriptor_decode(bytes, &d);
	is_u64(d.group_segment_bytes, 1024, "group segment");
	is_u64(d.private_segment_bytes, 164, "private segment");
	is_i64(d.entry_offset, -128, "the entry may lie before");
	is_u64(d.rsrc1, 0x60af0086, "rsrc1");
	is_u64(d.rsrc2, 0x9f, "rsrc2");
	is_u64(d.rsrc3, 0x70, "rsrc3");
	is_u64((uint64_t)co_descriptor_vgprs(&d), 56, "53 VGPRs are 56");
	is_u64((uint64_t)co_descriptor_user_sgprs(&d), 15, "user SGPRs");
	is_u64((uint64_t)co_descriptor_wave_size(&d), 32, "wave32");
	d.properties &= (uint16_t)~CO_PROP_WAVEFRONT_SIZE32;
	is_u64((uint64_t)co_descriptor_vgprs(&d), 28, "wave64: granules of 4");
}

static void test_bundle(void)
{
	struct buf b = read_kernels("tests/corpus/co/good-bundle");
	struct err e = { 0 };
	const void *out;
	size_t len;

	ok(co_unbundle(b.data, b.len, "gfx1100", &out, &len, &e) &&
		   (const char *)out == b.data + 256 && len == b.len - 256,
	   "the gfx1100 entry of a bundle is found");
	ok(!co_unbundle(b.data, b.len, "gfx110", &out, &len, &e),
	   "gfx110 is not gfx1100");
	has_str(e.msg, "hipv4-amdgcn-amd-amdhsa--gfx1100",
		"and the error lists the entries");
	ok(co_unbundle("\177ELF", 4, "gfx1100", &out, &len, &e) && len == 4,
	   "what is no bundle passes through");
	buf_fini(&b);
}

int main(void)
{
	test_relocs();
	test_reloc_types();
	test_undefined();
	test_metadata();
	test_reqd_size();
	test_descriptor();
	test_bundle();
	is_str(co_chip_name(0x41), "gfx1100", "chip 0x41");
	is_str(co_chip_name(0x54000154), "gfx11-generic",
	       "feature bits do not matter for the name");
	ok(!co_chip_name(0x49), "reserved chip numbers have no name");
	return plan_done();
}
