/*
 * Code objects that T0 writes, from assembly and from a compiler's kernels,
 * as its own reader sees them; descriptors against values worked out by hand
 * from the layout in the AMDGPU code object documentation.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/asm/asm.h"
#include "isa/object/object.h"
#include "tests/tap.h"

static struct buf elf;

static bool object_of(const char *text, struct co *co)
{
	struct isa_asm_options options = { 0 };
	struct isa_object o;
	struct err e = { 0 };
	bool good;

	buf_reset(&elf);
	isa_object_init(&o);
	good = isa_assemble(&o, "t.s", text, strlen(text), &options, &e) &&
	       co_write(&o, &elf, &e) && co_parse(co, elf.data, elf.len, &e);
	if (!good)
		diag("%s", e.msg);
	isa_object_fini(&o);
	return good;
}

#define KERNEL(directives) \
	".globl k\n.type k,@function\n.p2align 8\nk: s_endpgm\n" \
	".size k, 4\n.rodata\n.amdhsa_kernel k\n" \
	".amdhsa_next_free_vgpr 1\n.amdhsa_next_free_sgpr 1\n" directives \
	".end_amdhsa_kernel\n"

static void defaults(void)
{
	struct co co;

	if (!ok(object_of(KERNEL(""), &co), "a kernel with defaults"))
		return;
	is_u64(co.n_kernels, 1, "there is one kernel");
	/* f16/64 denormals, DX10 clamp, IEEE, WGP, memory ordered. */
	is_u64(co.kernels[0].desc.rsrc1, 0x60ac0000, "rsrc1");
	is_u64(co.kernels[0].desc.rsrc2, 0x80, "rsrc2: workgroup id x");
	is_u64(co.kernels[0].desc.properties, 0x400, "wave32");
	is_u64(co.kernels[0].code_bytes, 4, "the code has its size");
	is_u64(co.kernels[0].entry_vaddr % 256, 0, "the entry is aligned");
	is_str(co.chip, "gfx1100", "the chip");
	is_i64(co.version, 5, "the version");
	ok(!co.has_metadata, "there is no metadata");
	co_fini(&co);
}

/* One directive, and the word that it makes different. */
static const struct {
	const char *directive;
	int word; /* of the descriptor: 32 bits each */
	uint32_t value;
} directives[] = {
	{ "group_segment_fixed_size 1024", 0, 1024 },
	{ "private_segment_fixed_size 16", 1, 16 },
	{ "kernarg_size 40", 2, 40 },
	{ "user_sgpr_dispatch_ptr 1", 14, 0x402 },
	{ "user_sgpr_dispatch_ptr 1", 13, 0x84 },
	{ "user_sgpr_queue_ptr 1", 14, 0x404 },
	{ "user_sgpr_kernarg_segment_ptr 1", 14, 0x408 },
	{ "user_sgpr_kernarg_segment_ptr 1", 13, 0x84 },
	{ "user_sgpr_dispatch_id 1", 14, 0x410 },
	{ "user_sgpr_private_segment_size 1", 13, 0x82 },
	{ "user_sgpr_count 15", 13, 0x9e },
	{ "uses_dynamic_stack 1", 14, 0xc00 },
	{ "enable_private_segment 1", 13, 0x81 },
	{ "system_sgpr_workgroup_id_x 0", 13, 0 },
	{ "system_sgpr_workgroup_id_y 1", 13, 0x180 },
	{ "system_sgpr_workgroup_id_z 1", 13, 0x280 },
	{ "system_sgpr_workgroup_info 1", 13, 0x480 },
	{ "system_vgpr_workitem_id 2", 13, 0x1080 },
	{ "reserve_vcc 0", 12, 0x60ac0000 },
	{ "float_round_mode_32 1", 12, 0x60ac1000 },
	{ "float_round_mode_16_64 3", 12, 0x60acc000 },
	{ "float_denorm_mode_32 3", 12, 0x60af0000 },
	{ "float_denorm_mode_16_64 0", 12, 0x60a00000 },
	{ "dx10_clamp 0", 12, 0x608c0000 },
	{ "ieee_mode 0", 12, 0x602c0000 },
	{ "fp16_overflow 1", 12, 0x64ac0000 },
	{ "workgroup_processor_mode 0", 12, 0x40ac0000 },
	{ "memory_ordered 0", 12, 0x20ac0000 },
	{ "forward_progress 1", 12, 0xe0ac0000 },
	{ "inst_pref_size 3", 11, 0x30 },
	{ "exception_fp_ieee_invalid_op 1", 13, 0x01000080 },
	{ "exception_fp_denorm_src 1", 13, 0x02000080 },
	{ "exception_fp_ieee_div_zero 1", 13, 0x04000080 },
	{ "exception_fp_ieee_overflow 1", 13, 0x08000080 },
	{ "exception_fp_ieee_underflow 1", 13, 0x10000080 },
	{ "exception_fp_ieee_inexact 1", 13, 0x20000080 },
	{ "exception_int_div_zero 1", 13, 0x40000080 },
};

static void each_directive(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(directives); i++) {
		char text[1024];
		uint32_t word = ~0u;
		struct co co;

		snprintf(text, sizeof(text), KERNEL(".amdhsa_%s\n"),
			 directives[i].directive);
		if (object_of(text, &co)) {
			const uint8_t *d = co.bytes + co.kernels[0].desc_vaddr;

			memcpy(&word, d + 4 * directives[i].word, 4);
			co_fini(&co);
		}
		is_u64(word, directives[i].value, ".amdhsa_%s in word %d",
		       directives[i].directive, directives[i].word);
	}
}

static void granules(void)
{
	static const struct {
		int vgprs, wave;
		uint32_t
			blocks; /* (v + 7) / 8 - 1, in wave64 (v + 3) / 4 - 1 */
	} v[] = { { 0, 32, 0 }, { 8, 32, 0 }, { 9, 32, 1 },   { 256, 32, 31 },
		  { 4, 64, 0 }, { 5, 64, 1 }, { 256, 64, 63 } };

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		char text[1024];
		struct co co;
		uint32_t got = ~0u;

		snprintf(text, sizeof(text),
			 "k: s_endpgm\n.globl k\n.rodata\n.amdhsa_kernel k\n"
			 ".amdhsa_next_free_vgpr %d\n"
			 ".amdhsa_next_free_sgpr 1\n"
			 ".amdhsa_wavefront_size32 %d\n.end_amdhsa_kernel\n"
			 ".text\n.p2align 8\n",
			 v[i].vgprs, v[i].wave == 32);
		if (object_of(text, &co)) {
			got = co.kernels[0].desc.rsrc1 & 63;
			co_fini(&co);
		}
		is_u64(got, v[i].blocks, "wave%d: %d VGPRs in the descriptor",
		       v[i].wave, v[i].vgprs);
	}
}

static void loads(void)
{
	struct co co;
	uint8_t *image;
	uint64_t value;
	struct err e = { 0 };

	if (!ok(object_of(KERNEL("") ".data\n.globl there\n.hidden there\n"
				     ".p2align 3\nthere: .quad there+16\n"
				     ".weak maybe\n.quad maybe\n",
			  &co),
		"an object with addresses in its data"))
		return;
	image = xmalloc(co.span_bytes);
	ok(co_image_build(&co, image, co.span_bytes, 0x100000, &e),
	   "its image is built");
	for (uint32_t i = 0; i < co.n_relocs; i++) {
		memcpy(&value, image + co.relocs[i].vaddr - co.span_vaddr, 8);
		if (co.relocs[i].type == CO_RELOC_RELATIVE64)
			is_u64(value,
			       0x100000 + co.relocs[i].vaddr - co.span_vaddr +
				       16,
			       "an address moves with the image");
		else
			is_u64(value, 0, "a weak symbol of nobody is 0");
	}
	is_u64(co.n_relocs, 2, "there are two relocations");
	free(image);
	co_fini(&co);
}

/* ---- from a compiler ---------------------------------------------------- */

static const uint32_t code[] = { 0xbf800000, 0xbfb00000 };

static void two_kernels(int version)
{
	static const struct co_build_arg args[] = {
		{ "x", "float*", CO_ARG_GLOBAL_BUFFER, CO_SPACE_GLOBAL, 0, 8,
		  true },
		{ "n", "uint", CO_ARG_BY_VALUE, CO_SPACE_NONE, 8, 4, false },
	};
	struct co_build_kernel k[2] = {
		{ .name = "first",
		  .code = code,
		  .code_bytes = 8,
		  .wave = 32,
		  .vgprs = 25,
		  .sgprs = 18,
		  .arg = args,
		  .n_args = 2,
		  .vgpr_spills = 3 },
		{ .name = "second",
		  .code = code + 1,
		  .code_bytes = 4,
		  .wave = 64,
		  .vgprs = 5,
		  .max_flat_workgroup_size = 256,
		  .reqd_workgroup_size = { 16, 4, 1 } },
	};
	struct buf out = { 0 };
	struct err e = { 0 };
	const struct co_kernel *f, *s;
	struct co co;

	for (int i = 0; i < 2; i++)
		co_build_descriptor(&k[i].desc);
	k[0].desc.kernarg_bytes = 12;
	k[0].desc.group_segment_bytes = 2048;
	if (!ok(co_build("gfx1101", version, k, 2, &out, &e) &&
			co_parse(&co, out.data, out.len, &e),
		"version %d: two kernels", version)) {
		diag("%s", e.msg);
		buf_fini(&out);
		return;
	}
	f = co_kernel_find(&co, "first");
	s = co_kernel_find(&co, "second");
	is_str(co.chip, "gfx1101", "version %d: chip", version);
	is_i64(co.version, version, "version %d: version", version);
	is_mem(f->code, code, 8, "version %d: code", version);
	is_u64(s->code_bytes, 4, "version %d: code of the second", version);
	is_u64(f->desc.rsrc1 & 63, 3, "version %d: 25 VGPRs", version);
	is_u64(s->desc.rsrc1 & 63, 1, "version %d: 5 in wave64", version);
	is_i64(co_descriptor_user_sgprs(&f->desc), 2, "version %d: user SGPRs",
	       version);
	is_i64(co_descriptor_wave_size(&s->desc), 64, "version %d: wave64",
	       version);
	is_u64(f->n_args, 2, "version %d: arguments", version);
	is_str(f->args[0].name, "x", "version %d: a name", version);
	is_str(f->args[0].type_name, "float*", "version %d: a type", version);
	ok(f->args[0].is_const, "version %d: const", version);
	is_u64(f->args[1].offset, 8, "version %d: an offset", version);
	is_u64(f->group_segment_bytes, 2048, "version %d: LDS", version);
	is_u64(f->vgpr_spills, 3, "version %d: spills", version);
	is_u64(f->max_flat_workgroup_size, 1024, "version %d: default size",
	       version);
	is_u64(s->reqd_workgroup_size[1], 4, "version %d: required size",
	       version);
	co_fini(&co);
	buf_fini(&out);
}

static void bad_kernels(void)
{
	struct co_build_kernel k = {
		.name = "k", .code = code, .code_bytes = 8, .wave = 32
	};
	struct co_build_kernel two[2] = { k, k };
	struct buf out = { 0 };
	struct err e = { 0 };

	ok(!co_build("gfx1100", 5, two, 2, &out, &e), "one name twice");
	has_str(e.msg, "two kernels are named 'k'", "is said");
	ok(!co_build("gfx1100", 7, &k, 1, &out, &e), "version 7");
	ok(!co_build("gfx9999", 5, &k, 1, &out, &e), "an unknown chip");
	k.code_bytes = 6;
	ok(!co_build("gfx1100", 5, &k, 1, &out, &e), "six bytes of code");
	k.code_bytes = 8;
	k.wave = 16;
	ok(!co_build("gfx1100", 5, &k, 1, &out, &e), "wave16");
	is_u64(out.len, 0, "nothing is written");
	buf_fini(&out);
}

int main(void)
{
	defaults();
	each_directive();
	granules();
	loads();
	for (int version = 4; version <= 6; version++)
		two_kernels(version);
	bad_kernels();
	buf_fini(&elf);
	return plan_done();
}
