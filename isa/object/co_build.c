/*
 * isa/object/co_build.c - compiled kernels to a code object: descriptors,
 * metadata and symbols, then the writer.
 */
#include <msgpack.h>
#include <string.h>

#include "isa/object/co_write_int.h"

/* ------------------------------------------------------------- metadata ----
 */

static const char *space_name(enum co_space space)
{
	static const char *const names[] = {
		[CO_SPACE_PRIVATE] = "private",	  [CO_SPACE_GLOBAL] = "global",
		[CO_SPACE_CONSTANT] = "constant", [CO_SPACE_LOCAL] = "local",
		[CO_SPACE_GENERIC] = "generic",	  [CO_SPACE_REGION] = "region",
	};

	return names[space];
}

static int append_bytes(void *out, const char *bytes, size_t n)
{
	buf_add(out, bytes, n);
	return 0;
}

void co_pack_init(msgpack_packer *pk, struct buf *out)
{
	msgpack_packer_init(pk, out, append_bytes);
}

void co_pack_string(msgpack_packer *pk, const char *s)
{
	size_t n = strlen(s);

	msgpack_pack_str(pk, n);
	msgpack_pack_str_body(pk, s, n);
}

void co_pack_bool(msgpack_packer *pk, bool v)
{
	if (v)
		msgpack_pack_true(pk);
	else
		msgpack_pack_false(pk);
}

static void pair_uint(msgpack_packer *pk, const char *key, uint64_t v)
{
	co_pack_string(pk, key);
	msgpack_pack_uint64(pk, v);
}

static void pair_string(msgpack_packer *pk, const char *key, const char *v)
{
	co_pack_string(pk, key);
	co_pack_string(pk, v);
}

static void pair_bool(msgpack_packer *pk, const char *key, bool v)
{
	co_pack_string(pk, key);
	co_pack_bool(pk, v);
}

/* Keys are in the order of their bytes. */
static void pack_arg(msgpack_packer *pk, const struct co_build_arg *a)
{
	msgpack_pack_map(pk, 3 + !!a->space + a->is_const + !!a->name +
				     !!a->type_name);
	if (a->space)
		pair_string(pk, ".address_space", space_name(a->space));
	if (a->is_const)
		pair_bool(pk, ".is_const", true);
	if (a->name)
		pair_string(pk, ".name", a->name);
	pair_uint(pk, ".offset", a->offset);
	pair_uint(pk, ".size", a->size);
	if (a->type_name)
		pair_string(pk, ".type_name", a->type_name);
	pair_string(pk, ".value_kind", co_arg_kind_name(a->kind));
}

static uint32_t flat_size(const struct co_build_kernel *k)
{
	return k->max_flat_workgroup_size ? k->max_flat_workgroup_size : 1024;
}

static void pack_kernel(msgpack_packer *pk, const struct co_build_kernel *k,
			int version)
{
	const struct co_descriptor *d = &k->desc;
	bool reqd = k->reqd_workgroup_size[0];
	struct buf symbol = { 0 };

	buf_printf(&symbol, "%s.kd", k->name);
	msgpack_pack_map(pk, 13 + reqd + 2 * (version >= 5));
	co_pack_string(pk, ".args");
	msgpack_pack_array(pk, k->n_args);
	for (int i = 0; i < k->n_args; i++)
		pack_arg(pk, &k->arg[i]);
	pair_uint(pk, ".group_segment_fixed_size", d->group_segment_bytes);
	pair_uint(pk, ".kernarg_segment_align", 8);
	pair_uint(pk, ".kernarg_segment_size", d->kernarg_bytes);
	pair_uint(pk, ".max_flat_workgroup_size", flat_size(k));
	pair_string(pk, ".name", k->name);
	pair_uint(pk, ".private_segment_fixed_size", d->private_segment_bytes);
	if (reqd) {
		co_pack_string(pk, ".reqd_workgroup_size");
		msgpack_pack_array(pk, 3);
		for (int i = 0; i < 3; i++)
			msgpack_pack_uint64(pk, k->reqd_workgroup_size[i]);
	}
	pair_uint(pk, ".sgpr_count", k->sgprs);
	pair_uint(pk, ".sgpr_spill_count", k->sgpr_spills);
	pair_string(pk, ".symbol", symbol.data);
	if (version >= 5)
		pair_bool(pk, ".uses_dynamic_stack",
			  d->properties & CO_PROP_DYNAMIC_STACK);
	pair_uint(pk, ".vgpr_count", k->vgprs);
	pair_uint(pk, ".vgpr_spill_count", k->vgpr_spills);
	pair_uint(pk, ".wavefront_size", k->wave);
	if (version >= 5)
		pair_uint(pk, ".workgroup_processor_mode", d->rsrc1 >> 29 & 1);
	buf_fini(&symbol);
}

static void pack_metadata(struct isa_object *o, const struct co_build_kernel *k,
			  int n_kernels)
{
	struct buf target = { 0 };
	msgpack_packer packer, *pk = &packer;
	int n_printf = 0;

	co_pack_init(pk, &o->metadata);
	buf_printf(&target, "amdgcn-amd-amdhsa--%s", o->chip);
	for (int i = 0; i < n_kernels; i++)
		n_printf += k[i].n_printf;
	msgpack_pack_map(pk, 3 + !!n_printf + !!k[0].costs);
	co_pack_string(pk, "amdhsa.kernels");
	msgpack_pack_array(pk, n_kernels);
	for (int i = 0; i < n_kernels; i++)
		pack_kernel(pk, &k[i], o->version);
	if (n_printf) {
		co_pack_string(pk, "amdhsa.printf");
		msgpack_pack_array(pk, n_printf);
		for (int i = 0; i < n_kernels; i++)
			for (int j = 0; j < k[i].n_printf; j++)
				co_pack_string(pk, k[i].printf[j]);
	}
	pair_string(pk, "amdhsa.target", target.data);
	co_pack_string(pk, "amdhsa.version");
	msgpack_pack_array(pk, 2);
	msgpack_pack_uint64(pk, 1);
	msgpack_pack_uint64(pk, o->version == 4 ? 1 : 2);
	if (k[0].costs)
		pair_string(pk, "t0.costs", k[0].costs);
	buf_fini(&target);
}

/* -------------------------------------------------------------- kernels ----
 */

void co_build_descriptor(struct co_descriptor *d)
{
	memset(d, 0, sizeof(*d));
	/* Keep denormals of every type, clamp NaN to 0, IEEE minimum and
	 * maximum, workgroups over both CUs, memory in order. */
	d->rsrc1 = 3u << 16 | 3u << 18 | 1u << 21 | 1u << 23 | 1u << 29 |
		   1u << 30;
	d->rsrc2 = 1u << 7;
	d->properties = CO_PROP_KERNARG_SEGMENT_PTR;
}

static unsigned user_sgprs(const struct co_descriptor *d)
{
	static const struct {
		uint16_t property;
		uint8_t sgprs;
	} use[] = {
		{ CO_PROP_DISPATCH_PTR, 2 },	     { CO_PROP_QUEUE_PTR, 2 },
		{ CO_PROP_KERNARG_SEGMENT_PTR, 2 },  { CO_PROP_DISPATCH_ID, 2 },
		{ CO_PROP_PRIVATE_SEGMENT_SIZE, 1 },
	};
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(use); i++)
		n += d->properties & use[i].property ? use[i].sgprs : 0;
	return n;
}

static void descriptor_words(const struct co_build_kernel *k,
			     uint32_t word[CO_DESCRIPTOR_BYTES / 4])
{
	const struct co_descriptor *d = &k->desc;
	uint32_t unit = k->wave == 32 ? 8 : 4;
	uint32_t blocks = ((k->vgprs ? k->vgprs : 1) + unit - 1) / unit - 1;
	uint32_t sgprs = d->rsrc2 >> 1 & 31;

	memset(word, 0, CO_DESCRIPTOR_BYTES);
	word[0] = d->group_segment_bytes;
	word[1] = d->private_segment_bytes;
	word[2] = d->kernarg_bytes;
	word[11] = d->rsrc3;
	word[12] = (d->rsrc1 & ~63u) | blocks;
	word[13] = d->rsrc2 | (sgprs ? 0 : user_sgprs(d) << 1);
	word[14] = d->properties & (0xffffu & ~CO_PROP_WAVEFRONT_SIZE32);
	if (k->wave == 32)
		word[14] |= CO_PROP_WAVEFRONT_SIZE32;
}

static struct isa_symbol *define_symbol(struct isa_object *o, const char *name,
					int section, uint64_t at, uint64_t size,
					int type, int *number)
{
	struct isa_symbol *s;

	*number = isa_object_symbol(o, name, strlen(name));
	s = isa_symbol_at(o, *number);
	s->where = ISA_SYM_SECTION;
	s->section = section;
	s->value = at;
	s->size_bytes = size;
	s->type = type;
	s->binding = 1;
	s->visibility = 3;
	return s;
}

static void section_append(struct isa_section *s, const void *data, size_t len)
{
	buf_add(&s->data, data, len);
	s->size_bytes = s->data.len;
}

/* Kernels are aligned to 256 bytes; s_code_end fills the gaps. */
static void pad_text(struct isa_section *s)
{
	static const uint32_t s_code_end = 0xbf9f0000;

	while (s->data.len % 256)
		section_append(s, &s_code_end, 4);
}

static bool check_kernel(const struct isa_object *o,
			 const struct co_build_kernel *k, struct err *e)
{
	if (!k->name || !*k->name)
		return err_set(e, ERR_USAGE, "a kernel has no name");
	if (isa_object_find(o, k->name, strlen(k->name)))
		return err_set(e, ERR_USAGE, "two kernels are named '%s'",
			       k->name);
	if (!k->code_bytes || k->code_bytes % 4)
		return err_set(e, ERR_USAGE,
			       "kernel %s has %zu bytes of code; wanted a "
			       "multiple of 4",
			       k->name, k->code_bytes);
	if ((k->wave != 32 && k->wave != 64) || k->vgprs > 256)
		return err_set(e, ERR_USAGE,
			       "kernel %s: wave %d and %u VGPRs; wanted 32 or "
			       "64, and at most 256",
			       k->name, k->wave, k->vgprs);
	return true;
}

static bool add_kernel(struct isa_object *o, int text, int rodata,
		       const struct co_build_kernel *k, struct err *e)
{
	struct isa_section *t = isa_section_at(o, text);
	struct isa_section *r = isa_section_at(o, rodata);
	uint32_t word[CO_DESCRIPTOR_BYTES / 4];
	struct isa_reloc entry = { .section = rodata,
				   .offset = r->data.len + 16,
				   .type = CO_RELOC_REL64,
				   .addend = 16 };
	struct buf kd = { 0 };
	int number;

	if (!check_kernel(o, k, e))
		return false;
	pad_text(t);
	define_symbol(o, k->name, text, t->data.len, k->code_bytes, 2,
		      &entry.symbol);
	section_append(t, k->code, k->code_bytes);
	buf_printf(&kd, "%s.kd", k->name);
	define_symbol(o, kd.data, rodata, r->data.len, CO_DESCRIPTOR_BYTES, 1,
		      &number);
	buf_fini(&kd);
	descriptor_words(k, word);
	section_append(r, word, sizeof(word));
	isa_object_reloc(o, &entry);
	co_debug_lines(o, k, entry.symbol);
	return true;
}

/* The prefetcher runs past the last instruction. */
static void end_text(struct isa_section *s)
{
	static const uint32_t s_code_end = 0xbf9f0000;

	pad_text(s);
	for (int i = 0; i < 64; i++)
		section_append(s, &s_code_end, 4);
}

bool co_build(const char *chip, int version, const struct co_build_kernel *k,
	      int n_kernels, struct buf *out, struct err *e)
{
	struct isa_object o;
	int text, rodata;
	bool ok = true;

	if (version < 4 || version > 6)
		return err_set(e, ERR_USAGE,
			       "code object version %d; wanted 4, 5 or 6",
			       version);
	isa_object_init(&o);
	o.chip = chip;
	o.version = version;
	text = isa_object_section(&o, ".text", 5, ISA_SHT_PROGBITS,
				  ISA_SHF_ALLOC | ISA_SHF_EXEC);
	rodata = isa_object_section(&o, ".rodata", 7, ISA_SHT_PROGBITS,
				    ISA_SHF_ALLOC);
	isa_section_at(&o, text)->align = 256;
	isa_section_at(&o, rodata)->align = 64;
	for (int i = 0; ok && i < n_kernels; i++)
		ok = add_kernel(&o, text, rodata, &k[i], e);
	if (ok) {
		end_text(isa_section_at(&o, text));
		pack_metadata(&o, k, n_kernels);
		ok = co_write(&o, out, e);
	}
	isa_object_fini(&o);
	return ok;
}
