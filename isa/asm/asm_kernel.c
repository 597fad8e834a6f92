/*
 * isa/asm/asm_kernel.c - .amdhsa_kernel ... .end_amdhsa_kernel: the 64-byte
 * kernel descriptor, filled from named values.
 *
 * Layout and defaults are those of the AMDGPU code object documentation
 * (kernel descriptor for gfx10 and later); counts of registers are given as
 * needed and stored in units of the descriptor.
 */
#include <stdio.h>
#include <string.h>

#include "isa/asm/asm_int.h"

/* Where a directive's value goes: bits of a 32-bit word, or a whole one. */
enum word {
	W_GROUP, /* bytes 0..3 */
	W_PRIVATE,
	W_KERNARG,
	W_RSRC1,
	W_RSRC2,
	W_RSRC3,
	W_PROPS,      /* 16 bits */
	W_USER_SGPRS, /* as RSRC2, checked against what is enabled */
	W_NEXT_VGPR,
	W_NEXT_SGPR,
	W_RESERVE, /* accepted: scalar registers are not allocated */
	W_COUNT
};

enum when { ANY, BEFORE_GFX11, GFX11_ON, BEFORE_GFX12, GFX12_ON };

static const struct field {
	const char *name; /* without .amdhsa_ */
	uint8_t word, low, width, when;
	uint8_t user_sgprs; /* that enabling it takes */
} fields[] = {
	{ "group_segment_fixed_size", W_GROUP, 0, 32, ANY, 0 },
	{ "private_segment_fixed_size", W_PRIVATE, 0, 32, ANY, 0 },
	{ "kernarg_size", W_KERNARG, 0, 32, ANY, 0 },
	{ "user_sgpr_count", W_USER_SGPRS, 1, 5, ANY, 0 },
	{ "user_sgpr_private_segment_buffer", W_PROPS, 0, 1, BEFORE_GFX11, 4 },
	{ "user_sgpr_dispatch_ptr", W_PROPS, 1, 1, ANY, 2 },
	{ "user_sgpr_queue_ptr", W_PROPS, 2, 1, ANY, 2 },
	{ "user_sgpr_kernarg_segment_ptr", W_PROPS, 3, 1, ANY, 2 },
	{ "user_sgpr_dispatch_id", W_PROPS, 4, 1, ANY, 2 },
	{ "user_sgpr_flat_scratch_init", W_PROPS, 5, 1, BEFORE_GFX11, 2 },
	{ "user_sgpr_private_segment_size", W_PROPS, 6, 1, ANY, 1 },
	{ "wavefront_size32", W_PROPS, 10, 1, ANY, 0 },
	{ "uses_dynamic_stack", W_PROPS, 11, 1, ANY, 0 },
	{ "enable_private_segment", W_RSRC2, 0, 1, GFX11_ON, 0 },
	{ "system_sgpr_private_segment_wavefront_offset", W_RSRC2, 0, 1,
	  BEFORE_GFX11, 0 },
	{ "system_sgpr_workgroup_id_x", W_RSRC2, 7, 1, ANY, 0 },
	{ "system_sgpr_workgroup_id_y", W_RSRC2, 8, 1, ANY, 0 },
	{ "system_sgpr_workgroup_id_z", W_RSRC2, 9, 1, ANY, 0 },
	{ "system_sgpr_workgroup_info", W_RSRC2, 10, 1, ANY, 0 },
	{ "system_vgpr_workitem_id", W_RSRC2, 11, 2, ANY, 0 },
	{ "next_free_vgpr", W_NEXT_VGPR, 0, 32, ANY, 0 },
	{ "next_free_sgpr", W_NEXT_SGPR, 0, 32, ANY, 0 },
	{ "reserve_vcc", W_RESERVE, 0, 1, ANY, 0 },
	{ "reserve_flat_scratch", W_RESERVE, 0, 1, BEFORE_GFX11, 0 },
	{ "reserve_xnack_mask", W_RESERVE, 0, 1, ANY, 0 },
	{ "float_round_mode_32", W_RSRC1, 12, 2, ANY, 0 },
	{ "float_round_mode_16_64", W_RSRC1, 14, 2, ANY, 0 },
	{ "float_denorm_mode_32", W_RSRC1, 16, 2, ANY, 0 },
	{ "float_denorm_mode_16_64", W_RSRC1, 18, 2, ANY, 0 },
	{ "dx10_clamp", W_RSRC1, 21, 1, BEFORE_GFX12, 0 },
	{ "ieee_mode", W_RSRC1, 23, 1, BEFORE_GFX12, 0 },
	{ "fp16_overflow", W_RSRC1, 26, 1, ANY, 0 },
	{ "round_robin_scheduling", W_RSRC1, 21, 1, GFX12_ON, 0 },
	{ "workgroup_processor_mode", W_RSRC1, 29, 1, ANY, 0 },
	{ "memory_ordered", W_RSRC1, 30, 1, ANY, 0 },
	{ "forward_progress", W_RSRC1, 31, 1, ANY, 0 },
	{ "shared_vgpr_count", W_RSRC3, 0, 4, BEFORE_GFX12, 0 },
	{ "inst_pref_size", W_RSRC3, 4, 6, GFX11_ON, 0 },
	{ "exception_fp_ieee_invalid_op", W_RSRC2, 24, 1, ANY, 0 },
	{ "exception_fp_denorm_src", W_RSRC2, 25, 1, ANY, 0 },
	{ "exception_fp_ieee_div_zero", W_RSRC2, 26, 1, ANY, 0 },
	{ "exception_fp_ieee_overflow", W_RSRC2, 27, 1, ANY, 0 },
	{ "exception_fp_ieee_underflow", W_RSRC2, 28, 1, ANY, 0 },
	{ "exception_fp_ieee_inexact", W_RSRC2, 29, 1, ANY, 0 },
	{ "exception_int_div_zero", W_RSRC2, 30, 1, ANY, 0 },
};
_Static_assert(ARRAY_SIZE(fields) <= 64, "one bit of `seen` each");

struct kernel {
	struct assembler *a;
	uint64_t word[W_COUNT];
	uint64_t seen; /* bit i: fields[i] was given */
	unsigned user_sgprs;
};

static bool is_given(const struct kernel *k, enum word w)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].word == w && k->seen >> i & 1)
			return true;
	return false;
}

static void put_field(struct kernel *k, const struct field *f, uint64_t v)
{
	uint64_t mask = (UINT64_C(1) << f->width) - 1;

	k->word[f->word] &= ~(mask << f->low);
	k->word[f->word] |= v << f->low;
}

static void set_defaults(struct kernel *k)
{
	bool gfx12 = k->a->t.gen == ISA_GFX12;

	k->word[W_RSRC1] = 3u << 18 | 1u << 29 | 1u << 30;
	if (!gfx12)
		k->word[W_RSRC1] |= 1u << 21 | 1u << 23;
	k->word[W_RSRC2] = 1u << 7;
	if (k->a->t.wave == 32)
		k->word[W_PROPS] = CO_PROP_WAVEFRONT_SIZE32;
}

static bool field_exists(enum isa_gen gen, const struct field *f)
{
	switch (f->when) {
	case BEFORE_GFX11:
		return gen < ISA_GFX11;
	case GFX11_ON:
		return gen >= ISA_GFX11;
	case BEFORE_GFX12:
		return gen != ISA_GFX12;
	case GFX12_ON:
		return gen == ISA_GFX12;
	}
	return true;
}

static bool read_field(struct kernel *k, const char *at, size_t i,
		       const char *p)
{
	const struct field *f = &fields[i];
	struct assembler *a = k->a;
	int64_t v;

	if (!field_exists(a->t.gen, f))
		return asm_error(a, at, "%s has no .amdhsa_%s", a->o->chip,
				 f->name);
	if (k->seen >> i & 1)
		return asm_error(a, at, ".amdhsa_%s given twice", f->name);
	k->seen |= UINT64_C(1) << i;
	p = isa_skip_space(p);
	at = p;
	if (!asm_number(a, &p, &v))
		return false;
	if (*isa_skip_space(p))
		return asm_error(a, p, "unexpected text behind the value");
	if (v < 0 || (uint64_t)v >> f->width)
		return asm_error(a, at, "%lld does not fit %u bits",
				 (long long)v, f->width);
	k->user_sgprs += v ? f->user_sgprs : 0;
	put_field(k, f, v);
	return true;
}

static bool read_field_line(struct kernel *k, const char *p, int len)
{
	static const char prefix[] = ".amdhsa_";
	const int n = sizeof(prefix) - 1;

	if (len > n && !memcmp(p, prefix, n))
		for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
			if (!strncmp(fields[i].name, p + n, len - n) &&
			    !fields[i].name[len - n])
				return read_field(k, p, i, p + len);
	return asm_error(k->a, p, "unknown directive %.*s in .amdhsa_kernel",
			 len, p);
}

/* --------------------------------------------------------------- checks ----
 */

static bool user_sgprs(struct kernel *k)
{
	unsigned count = k->word[W_USER_SGPRS] >> 1;

	if (!is_given(k, W_USER_SGPRS))
		count = k->user_sgprs;
	if (count < k->user_sgprs)
		return asm_error(k->a, NULL,
				 ".amdhsa_user_sgpr_count is %u, but %u are "
				 "enabled",
				 count, k->user_sgprs);
	k->word[W_RSRC2] |= count << 1;
	return true;
}

/* VGPRs in units of 8 in wave32, 4 in wave64, minus one. */
static bool put_register_counts(struct kernel *k)
{
	bool wave32 = k->word[W_PROPS] & CO_PROP_WAVEFRONT_SIZE32;
	unsigned unit = wave32 ? 8 : 4;
	uint64_t n = k->word[W_NEXT_VGPR], blocks;
	unsigned shared = k->word[W_RSRC3] & 15;

	if (!is_given(k, W_NEXT_VGPR) || !is_given(k, W_NEXT_SGPR))
		return asm_error(k->a, NULL, ".amdhsa_next_free_%s is missing",
				 is_given(k, W_NEXT_VGPR) ? "sgpr" : "vgpr");
	if (n > 512)
		return asm_error(
			k->a, NULL,
			".amdhsa_next_free_vgpr is %llu; there are 256 "
			"VGPRs",
			(unsigned long long)n);
	blocks = ((n ? n : 1) + unit - 1) / unit - 1;
	if (shared && wave32)
		return asm_error(k->a, NULL,
				 "shared VGPRs exist in wave64 "
				 "only");
	if (blocks + 2 * shared > 63)
		return asm_error(k->a, NULL,
				 "more VGPRs than the descriptor "
				 "can hold");
	k->word[W_RSRC1] |= blocks;
	return true;
}

static bool check_wave(struct kernel *k)
{
	int wave = k->word[W_PROPS] & CO_PROP_WAVEFRONT_SIZE32 ? 32 : 64;

	return wave == k->a->t.wave ||
	       asm_error(k->a, NULL,
			 "this kernel is for wave%d, the file is read as "
			 "wave%d",
			 wave, k->a->t.wave);
}

/* --------------------------------------------------------------- output ----
 */

/* The descriptor's symbol takes binding and visibility from the kernel's. */
static int descriptor_symbol(struct assembler *a, const char *name, int len,
			     int *code)
{
	struct isa_symbol *kd, *k;
	struct buf b = { 0 };
	int number;

	buf_add(&b, name, len);
	buf_adds(&b, ".kd");
	number = isa_object_symbol(a->o, b.data, b.len);
	buf_fini(&b);
	*code = isa_object_symbol(a->o, name, len);
	kd = isa_symbol_at(a->o, number);
	k = isa_symbol_at(a->o, *code);
	kd->binding = k->binding;
	kd->visibility = k->visibility;
	kd->type = 1;
	kd->size_bytes = CO_DESCRIPTOR_BYTES;
	/* The code itself is found through the descriptor only. */
	if (!k->visibility)
		k->visibility = 3;
	return number;
}

static bool emit_descriptor(struct kernel *k, const char *name, int len)
{
	struct assembler *a = k->a;
	struct asm_fixup f = { .kind = FIX_DATA,
			       .bytes = 8,
			       .section = a->section,
			       .line = a->line_no };
	uint32_t d[CO_DESCRIPTOR_BYTES / 4] = {
		[0] = k->word[W_GROUP],	  [1] = k->word[W_PRIVATE],
		[2] = k->word[W_KERNARG], [11] = k->word[W_RSRC3],
		[12] = k->word[W_RSRC1],  [13] = k->word[W_RSRC2],
		[14] = k->word[W_PROPS],
	};
	int kd = descriptor_symbol(a, name, len, &f.value.add);
	struct isa_symbol *s = isa_symbol_at(a->o, kd);

	if (s->where != ISA_SYM_UNDEFINED)
		return asm_error(a, NULL, "%s is already defined", s->name);
	s->where = ISA_SYM_SECTION;
	s->section = a->section;
	s->value = asm_here(a)->size_bytes;
	/* The code, from the descriptor. */
	f.offset = s->value + 16;
	f.value.sub = kd;
	asm_fixup(a, &f);
	if (asm_here(a)->align < 64)
		asm_here(a)->align = 64;
	return asm_emit(a, d, sizeof(d));
}

bool asm_kernel(struct assembler *a, const char *p)
{
	struct kernel k = { .a = a };
	const char *name = arena_strdup(&a->o->mem, p); /* p's line goes */
	int len = asm_name(p), first = a->line_no, errors = a->n_errors;

	if (!len || *isa_skip_space(p + len))
		return asm_error(a, p, "wanted .amdhsa_kernel NAME");
	set_defaults(&k);
	for (;;) {
		int n;

		if (!asm_next_line(a, false))
			return asm_error_at(a, first, -1,
					    ".end_amdhsa_kernel is missing");
		p = isa_skip_space(a->line);
		n = asm_name(p);
		if (!*p)
			continue;
		if (n == 18 && !memcmp(p, ".end_amdhsa_kernel", 18))
			break;
		read_field_line(&k, p, n);
	}
	return a->n_errors == errors && user_sgprs(&k) &&
	       put_register_counts(&k) && check_wave(&k) &&
	       emit_descriptor(&k, name, len);
}

/* ------------------------------------------------------------ printing ----
 */

/* Is every bit that is set one of a field's? */
static bool has_fields(enum isa_gen gen, const uint64_t word[W_COUNT])
{
	uint64_t known[W_COUNT] = { [W_RSRC1] = 63, [W_RSRC2] = 31 << 1 };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct field *f = &fields[i];

		if (field_exists(gen, f))
			known[f->word] |= ((UINT64_C(1) << f->width) - 1)
					  << f->low;
	}
	for (int w = W_GROUP; w <= W_PROPS; w++)
		if (word[w] & ~known[w])
			return false;
	return true;
}

bool isa_print_descriptor(FILE *out, enum isa_gen gen, const char *name,
			  const struct co_descriptor *d)
{
	unsigned unit = d->properties & CO_PROP_WAVEFRONT_SIZE32 ? 8 : 4;
	const uint64_t word[W_COUNT] = {
		[W_GROUP] = d->group_segment_bytes,
		[W_PRIVATE] = d->private_segment_bytes,
		[W_KERNARG] = d->kernarg_bytes,
		[W_RSRC1] = d->rsrc1,
		[W_RSRC2] = d->rsrc2,
		[W_RSRC3] = d->rsrc3,
		[W_PROPS] = d->properties,
		[W_USER_SGPRS] = d->rsrc2,
		[W_NEXT_VGPR] = ((d->rsrc1 & 63) + 1) * unit,
		[W_NEXT_SGPR] = 1,
	};

	if (!has_fields(gen, word))
		return false;
	fprintf(out, "\t.amdhsa_kernel %s\n", name);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct field *f = &fields[i];
		uint64_t v = word[f->word] >> f->low;

		if (f->word != W_RESERVE && field_exists(gen, f))
			fprintf(out, "\t\t.amdhsa_%s %llu\n", f->name,
				(unsigned long long)(v &
						     ((UINT64_C(1) << f->width) -
						      1)));
	}
	fprintf(out, "\t.end_amdhsa_kernel\n");
	return true;
}
