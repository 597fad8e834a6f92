/*
 * compiler/backend/emit.c - machine code and the code object around it.
 *
 * An instruction is encoded by way of its text: the parser of isa/ knows which
 * operands an encoding takes, chooses the shortest, and refuses what the
 * hardware would not understand.  Program control (waits, branches, hints) has
 * one field, which is encoded directly.
 */
#include <string.h>

#include "compiler/backend/backend_int.h"
#include "isa/object/object.h"
#include "isa/text/text.h"

static bool any_symbol(void *ctx, const char *s, int len,
		       enum isa_symbol_use use, int64_t *value)
{
	(void)ctx;
	(void)s;
	(void)len;
	(void)use;
	*value = 0;
	return true;
}

/* Program control is SIMM16 and no more; branches are patched later. */
static bool encode_control(const struct isa_target *t,
			   const struct mir_inst *i, struct isa_inst *in)
{
	const struct mir_opnd *last = i->n_opnd ? &i->o[i->n_opnd - 1] : NULL;
	const enum isa_fmt fmt = mir_info(i)->fmt;

	if ((fmt != ISA_FMT_SOPP || (last && last->kind == MIR_WORD)) &&
	    (fmt != ISA_FMT_SOPK || last->kind != MIR_SIMM16))
		return false;
	*in = (struct isa_inst){ .op = i->op, .fmt = (uint8_t)fmt,
				 .m0_is_124 = t->gen < ISA_GFX11 };
	in->f[ISA_F_OP] = (uint32_t)isa_opcode(t->gen, i->op, false);
	if (fmt == ISA_FMT_SOPK)
		in->f[ISA_F_SDST] = i->o[0].reg;
	if (last && last->kind != MIR_LABEL)
		in->f[ISA_F_SIMM16] = last->imm;
	return true;
}

static const char *parse_text(const struct mir_func *m,
			      const struct isa_target *t,
			      const struct mir_inst *i, struct buf *text,
			      struct isa_inst *in)
{
	buf_reset(text);
	mir_print_inst(m, i, text);
	return isa_parse(t, text->data, any_symbol, NULL, in);
}

static bool encode_one(struct mir_func *m, const struct isa_target *t,
		       struct mir_inst *i, struct buf *text, struct buf *code,
		       struct err *e)
{
	uint8_t bytes[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	const char *why = NULL;
	int n;

	if (!encode_control(t, i, &in))
		why = parse_text(m, t, i, text, &in);
	n = why ? 0 : isa_encode(&in, bytes);
	if (!n) {
		buf_reset(text);
		mir_print_inst(m, i, text);
		return err_set(e, ERR_UNSUPPORTED,
			       "kernel %s, line %u: '%s' cannot be encoded: %s",
			       m->name, i->line, text->data,
			       why ? why : "a value does not fit");
	}
	i->addr = (uint32_t)code->len;
	buf_add(code, bytes, (size_t)n);
	return true;
}

/* Dwords from behind a branch to its target. */
static int64_t branch_dwords(const struct mir_inst *i, const struct mir_opnd *to)
{
	return ((int64_t)to->label->addr - (i->addr + 4)) / 4;
}

/*
 * A branch that the chip would take elsewhere, by its offset, gets another;
 * false: there is none.
 */
static bool move_bad_branch(struct mir_func *m)
{
	const struct mir_opnd none = mir_simm16(0);

	if (!(isa_gen_info(m->gen)->hazards & ISA_HZ_BRANCH_3F))
		return false;
	MIR_EACH_INST(m, i)
		for (int k = 0; k < i->n_opnd; k++)
			if (i->o[k].kind == MIR_LABEL &&
			    branch_dwords(i, &i->o[k]) == 0x3f) {
				mir_after(i, mir_inst(m, ISA_s_nop, &none, 1));
				return true;
			}
	return false;
}

static bool patch_branches(struct mir_func *m, struct mir_inst *i,
			   struct buf *code, struct err *e)
{
	for (int k = 0; k < i->n_opnd; k++) {
		int64_t dwords;
		int16_t words;

		if (i->o[k].kind != MIR_LABEL)
			continue;
		dwords = branch_dwords(i, &i->o[k]);
		if (dwords != (int16_t)dwords)
			return err_set(e, ERR_UNSUPPORTED,
				       "kernel %s: a branch over %lld bytes; "
				       "at most 128 KiB; unroll less",
				       m->name, (long long)dwords * 4);
		words = (int16_t)dwords;
		memcpy(code->data + i->addr, &words, 2);
	}
	return true;
}

/* From `begin` on. */
static bool encode_all(struct mir_func *m, const struct isa_target *t,
		       size_t begin, struct buf *code, struct err *e)
{
	struct buf text = { 0 };
	bool good = true;

	code->len = begin;
	for (uint32_t b = 0; b < m->n_order; b++) {
		m->order[b]->addr = (uint32_t)code->len;
		for (struct mir_inst *i = m->order[b]->first; good && i;
		     i = i->next)
			good = encode_one(m, t, i, &text, code, e);
	}
	buf_fini(&text);
	return good;
}

bool mir_encode(struct mir_func *m, const char *chip, struct buf *code,
		struct err *e)
{
	struct isa_target t = { .wave = m->wave };
	const size_t begin = code->len;
	bool good;

	if (!isa_chip_parse(chip, &t.gen))
		return err_set(e, ERR_UNSUPPORTED, "chip '%s' is not known",
			       chip);
	do
		good = encode_all(m, &t, begin, code, e);
	while (good && (mir_insert_hops(m) || move_bad_branch(m)));
	for (uint32_t b = 0; b < m->n_order; b++)
		for (struct mir_inst *i = m->order[b]->first; good && i;
		     i = i->next)
			good = patch_branches(m, i, code, e);
	return good;
}

/* -------------------------------------------------------------- object ---- */

static const char *type_name(struct arena *a, struct ssa_type t)
{
	static const char *const name[SSA_KINDS] = {
		[SSA_I1] = "bool",   [SSA_I8] = "i8",	  [SSA_I16] = "i16",
		[SSA_I32] = "i32",   [SSA_I64] = "i64",  [SSA_F16] = "f16",
		[SSA_BF16] = "bf16", [SSA_F32] = "f32",  [SSA_F64] = "f64",
		[SSA_PTR] = "ptr",   [SSA_LDS] = "lds",  [SSA_VOID] = "void",
	};

	if (t.n > 1)
		return arena_printf(a, "%sx%u", name[t.kind], t.n);
	return name[t.kind];
}

static int build_args(const struct cc_kernel *k, struct co_build_arg *out)
{
	static const enum co_arg_kind hidden[] = {
		CO_ARG_HIDDEN_BLOCK_COUNT_X, CO_ARG_HIDDEN_BLOCK_COUNT_Y,
		CO_ARG_HIDDEN_BLOCK_COUNT_Z
	};
	int n = 0;

	for (uint32_t a = 0; a < k->f->n_args; a++, n++) {
		const struct ssa_arg *x = &k->f->arg[a];
		bool ptr = x->type.kind == SSA_PTR;

		out[n] = (struct co_build_arg){
			.name = x->name,
			.type_name =
				ptr ? arena_printf(k->m->arena, "%s*",
						   type_name(k->m->arena,
							     x->elem)) :
				      type_name(k->m->arena, x->type),
			.kind = ptr ? CO_ARG_GLOBAL_BUFFER : CO_ARG_BY_VALUE,
			.space = ptr ? CO_SPACE_GLOBAL : CO_SPACE_NONE,
			.offset = x->offset,
			.size = ssa_type_bytes(x->type),
			.is_const = ptr && x->readonly,
		};
		if (!strcmp(x->name, SSA_PRINTF_RING))
			out[n].kind = CO_ARG_HIDDEN_PRINTF_BUFFER;
	}
	for (uint32_t d = 0; k->hidden && d < 3; d++, n++)
		out[n] = (struct co_build_arg){
			.kind = hidden[d],
			.offset = k->hidden_offset + 4 * d,
			.size = 4,
		};
	return n;
}

/* DX10_CLAMP and IEEE; gfx12 has neither, and other things in their place. */
static bool has_clamp_bit(const struct cc_kernel *k)
{
	return k->m->gen != ISA_GFX12;
}

/* rsrc2: group ids and work-item ids; gfx11's bits (RDNA3 ABI). */
static void fill_descriptor(const struct cc_kernel *k, struct co_descriptor *d)
{
	uint32_t ids = 1, dims = 0;

	for (uint32_t g = 1; g < 3; g++) {
		ids += k->groups >> g & 1;
		if (k->f->group[g] > 1)
			dims = g;
	}
	const bool own = isa_gen_info(k->m->gen)->own_scratch;

	d->rsrc2 = (k->m->scratch_bytes ? 1u : 0) | (16 - ids) << 1 |
		   (k->groups | 1) << 7 | dims << 11;
	/* Round to nearest, all denormals, clamp NaN, no IEEE mode. */
	d->rsrc1 = 0xfu << 16 | (has_clamp_bit(k) ? 1u << 21 : 0) |
		   (k->wgp ? 1u : 0) << 29 | 1u << 30;
	d->properties = CO_PROP_KERNARG_SEGMENT_PTR;
	if (k->m->scratch_bytes && !own)
		d->properties |= CO_PROP_FLAT_SCRATCH_INIT;
	d->group_segment_bytes = k->m->lds_bytes;
	d->private_segment_bytes = (k->m->scratch_bytes + 15) / 16 * 16;
	d->kernarg_bytes = k->hidden_offset + (k->hidden ? 12 : 0);
}

/* Lines that the instruction prefetch runs ahead, of 128 bytes. */
static uint32_t prefetch_field(size_t code_bytes)
{
	size_t lines = (code_bytes + 127) / 128;

	return (uint32_t)(lines > 63 ? 63 : lines) << 4;
}

/* A row where the line changes; 0 goes on with the last one. */
static size_t build_lines(const struct cc_kernel *k, struct co_build_line *out)
{
	uint32_t line = 0;
	size_t n = 0;

	MIR_EACH_INST(k->m, i) {
		if (!i->line || i->line == line)
			continue;
		line = i->line;
		out[n++] = (struct co_build_line){ i->addr, line };
	}
	return n;
}

/* All of it but the code; `arg` has room for SSA_MAX_ARGS + 3. */
static struct co_build_kernel describe_kernel(const struct cc_kernel *k,
					      struct co_build_arg *arg)
{
	struct co_build_kernel b = {
		.name = k->f->name,
		.wave = k->m->wave,
		.vgprs = k->m->vgprs,
		.sgprs = k->m->sgprs < 16 ? 16 : k->m->sgprs,
		.vgpr_spills = k->m->vgpr_spills,
		.sgpr_spills = k->m->sgpr_spills,
		.max_flat_workgroup_size = 1,
		.arg = arg,
		.n_args = build_args(k, arg),
		.source = k->f->file,
		.costs = k->costs,
		.printf = k->f->format,
		.n_printf = (int)k->f->n_formats,
	};

	for (int d = 0; d < 3; d++) {
		b.reqd_workgroup_size[d] = k->f->group[d] ? k->f->group[d] : 1;
		b.max_flat_workgroup_size *= b.reqd_workgroup_size[d];
	}
	fill_descriptor(k, &b.desc);
	return b;
}

bool cc_object_build(const struct cc_kernel *k, const struct buf *code,
		     struct buf *out, struct err *e)
{
	struct co_build_arg arg[SSA_MAX_ARGS + 3];
	struct co_build_kernel b = describe_kernel(k, arg);
	struct co_build_line *line = arena_alloc(
		k->m->arena, (code->len / 4 + 1) * sizeof(*line));

	b.code = code->data;
	b.code_bytes = code->len;
	if (k->m->gen >= ISA_GFX11)
		b.desc.rsrc3 = prefetch_field(code->len);
	b.line = line;
	b.n_lines = build_lines(k, line);
	return co_build(k->chip, 5, &b, 1, out, e);
}

/* ------------------------------------------------------------ assembly ---- */

static void print_descriptor(const struct cc_kernel *k,
			     const struct co_build_kernel *x, struct buf *b)
{
	const struct co_descriptor *d = &x->desc;

	buf_printf(b, "\t.section .rodata,\"a\",@progbits\n\t.p2align 6\n"
		      "\t.amdhsa_kernel %s\n", x->name);
#define LINE(name, value) \
	buf_printf(b, "\t\t.amdhsa_" name " %u\n", (unsigned)(value))
	LINE("group_segment_fixed_size", d->group_segment_bytes);
	LINE("private_segment_fixed_size", d->private_segment_bytes);
	LINE("kernarg_size", d->kernarg_bytes);
	LINE("user_sgpr_count", d->rsrc2 >> 1 & 31);
	LINE("user_sgpr_kernarg_segment_ptr", 1);
	LINE("wavefront_size32", x->wave == 32);
	if (isa_gen_info(k->m->gen)->own_scratch) {
		LINE("enable_private_segment", d->rsrc2 & 1);
	} else {
		LINE("user_sgpr_flat_scratch_init", d->rsrc2 & 1);
		LINE("system_sgpr_private_segment_wavefront_offset",
		     d->rsrc2 & 1);
	}
	LINE("system_sgpr_workgroup_id_x", 1);
	LINE("system_sgpr_workgroup_id_y", k->groups >> 1 & 1);
	LINE("system_sgpr_workgroup_id_z", k->groups >> 2 & 1);
	LINE("system_vgpr_workitem_id", d->rsrc2 >> 11 & 3);
	LINE("next_free_vgpr", x->vgprs ? x->vgprs : 1);
	LINE("next_free_sgpr", x->sgprs);
	LINE("float_denorm_mode_32", 3);
	LINE("float_denorm_mode_16_64", 3);
	if (has_clamp_bit(k)) {
		LINE("dx10_clamp", 1);
		LINE("ieee_mode", 0);
	}
	LINE("workgroup_processor_mode", k->wgp);
	LINE("memory_ordered", 1);
#undef LINE
	buf_adds(b, "\t.end_amdhsa_kernel\n");
}

static void print_metadata(const struct cc_kernel *k,
			   const struct co_build_kernel *x, struct buf *b)
{
	const struct co_descriptor *d = &x->desc;

	buf_adds(b, "\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .args:");
	buf_adds(b, x->n_args ? "\n" : " []\n");
	for (int i = 0; i < x->n_args; i++) {
		const struct co_build_arg *a = &x->arg[i];

		buf_printf(b, "      - .offset: %u\n        .size: %u\n",
			   a->offset, a->size);
		if (a->name)
			buf_printf(b, "        .name: %s\n", a->name);
		if (a->space == CO_SPACE_GLOBAL)
			buf_adds(b, "        .address_space: global\n");
		buf_printf(b, "        .value_kind: %s\n",
			   co_arg_kind_name(a->kind));
	}
	buf_printf(b, "    .group_segment_fixed_size: %u\n"
		      "    .kernarg_segment_align: 8\n"
		      "    .kernarg_segment_size: %u\n",
		   d->group_segment_bytes, d->kernarg_bytes);
	buf_printf(b, "    .max_flat_workgroup_size: %u\n    .name: %s\n"
		      "    .private_segment_fixed_size: %u\n",
		   x->max_flat_workgroup_size, x->name,
		   d->private_segment_bytes);
	buf_printf(b, "    .sgpr_count: %u\n    .sgpr_spill_count: %u\n"
		      "    .symbol: %s.kd\n    .vgpr_count: %u\n",
		   x->sgprs, x->sgpr_spills, x->name, x->vgprs);
	buf_printf(b, "    .vgpr_spill_count: %u\n    .wavefront_size: %d\n",
		   x->vgpr_spills, x->wave);
	for (int i = 0; i < x->n_printf; i++)
		buf_printf(b, "%s  - '%s'\n", i ? "" : "amdhsa.printf:\n",
			   x->printf[i]);
	buf_printf(b, "amdhsa.target: amdgcn-amd-amdhsa--%s\n"
		      "amdhsa.version:\n  - 1\n  - 2\n"
		      "t0.costs: '%s'\n...\n"
		      "\t.end_amdgpu_metadata\n", k->chip, k->costs);
}

void cc_assembly_build(const struct cc_kernel *k, struct buf *out)
{
	struct co_build_arg arg[SSA_MAX_ARGS + 3];
	const struct co_build_kernel x = describe_kernel(k, arg);
	uint32_t line = 0;

	buf_printf(out, "\t.amdgcn_target \"amdgcn-amd-amdhsa--%s\"\n"
			"\t.amdhsa_code_object_version 5\n\t.text\n"
			"\t.globl %s\n\t.p2align 8\n"
			"\t.type %s,@function\n%s:\n",
		   k->chip, k->f->name, k->f->name, k->f->name);
	for (uint32_t b = 0; b < k->m->n_order; b++) {
		buf_printf(out, "BB%u:\n", k->m->order[b]->id);
		for (struct mir_inst *i = k->m->order[b]->first; i;
		     i = i->next) {
			if (i->line && i->line != line)
				buf_printf(out, "\t; line %u\n", i->line);
			line = i->line;
			buf_addc(out, '\t');
			mir_print_inst(k->m, i, out);
			buf_addc(out, '\n');
		}
	}
	buf_printf(out, ".Lend:\n\t.size %s, .Lend-%s\n", k->f->name,
		   k->f->name);
	print_descriptor(k, &x, out);
	print_metadata(k, &x, out);
}
