/*
 * isa/cmd/cmd_meta.c - t0-isa meta.
 *
 * What a kernel needs, what it consists of, and how many waves of it fit.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/cmd/cmd.h"
#include "isa/code/code.h"
#include "isa/object/object.h"

static const char *const pipe_names[ISA_PIPE_COUNT] = {
	[ISA_PIPE_SALU] = "salu",	[ISA_PIPE_SMEM] = "smem",
	[ISA_PIPE_VALU] = "valu",	[ISA_PIPE_VALU64] = "valu64",
	[ISA_PIPE_QUARTER] = "quarter", [ISA_PIPE_TRANS] = "trans",
	[ISA_PIPE_TRANS64] = "trans64", [ISA_PIPE_DOUBLE] = "double",
	[ISA_PIPE_WMMA] = "wmma",	[ISA_PIPE_LDS] = "lds_op",
	[ISA_PIPE_LDSDIR] = "ldsdir",	[ISA_PIPE_FLAT] = "flat",
	[ISA_PIPE_VMEM] = "vmem",	[ISA_PIPE_EXPORT] = "export",
	[ISA_PIPE_BRANCH] = "branch",	[ISA_PIPE_MSG] = "message",
	[ISA_PIPE_SPECIAL] = "special",
};

/* Everything about one kernel. */
struct kernel_facts {
	const struct co_kernel *k;
	int wave, vgprs, workgroup_size;
	bool wgp_mode, has_occupancy;
	struct isa_occupancy occ;
	uint32_t mix[ISA_PIPE_COUNT];
	uint32_t instructions, dual, undecoded;
};

/* Pipes of the instructions; a dual-issue pair is one, in both pipes. */
static void count_pipes(const struct isa_target *t, struct kernel_facts *f)
{
	const struct co_kernel *k = f->k;
	struct isa_inst in;

	for (uint64_t at = 0; at + 4 <= k->code_bytes;) {
		if (isa_decode(t, k->code + at, k->code_bytes - at, &in)) {
			f->undecoded++;
			at += 4;
			continue;
		}
		f->instructions++;
		f->mix[isa_op_info(in.op)->pipe]++;
		if (in.op_y) {
			f->dual++;
			f->mix[isa_op_info(in.op_y)->pipe]++;
		}
		at += in.size_bytes;
	}
}

static void examine_kernel(const char *chip, enum isa_gen gen,
		    const struct co_kernel *k, struct kernel_facts *f)
{
	struct isa_target t = { .gen = gen };
	struct isa_resources r;

	memset(f, 0, sizeof(*f));
	f->k = k;
	f->wave = t.wave = co_descriptor_wave_size(&k->desc);
	f->vgprs = co_descriptor_vgprs(&k->desc);
	f->wgp_mode = k->desc.rsrc1 >> 29 & 1;
	f->workgroup_size = k->max_flat_workgroup_size;
	if (k->reqd_workgroup_size[0])
		f->workgroup_size = k->reqd_workgroup_size[0] *
				    k->reqd_workgroup_size[1] *
				    k->reqd_workgroup_size[2];
	r = (struct isa_resources){
		f->wave, f->vgprs, k->desc.group_segment_bytes,
		f->workgroup_size ? f->workgroup_size : 1024, f->wgp_mode
	};
	f->has_occupancy = isa_occupancy(chip, &r, &f->occ);
	count_pipes(&t, f);
}

/* ---- output ---- */

#define NUMBER(v) "%lld", (long long)(v)

/* One row per kernel; columns of unknown things stay empty. */
static void add_row(struct table *t, const struct kernel_facts *f)
{
	const struct co_kernel *k = f->k;
	int col = 0;

	table_row(t);
	table_cell(t, col++, "%s", k->name);
	table_cell(t, col++, NUMBER(f->wave));
	table_cell(t, col++,
		   NUMBER(k->has_metadata ? (int)k->vgpr_count : f->vgprs));
	if (k->has_metadata)
		table_cell(t, col, NUMBER(k->sgpr_count));
	col++;
	table_cell(t, col++, NUMBER(k->desc.group_segment_bytes));
	table_cell(t, col++, NUMBER(k->desc.private_segment_bytes));
	if (k->has_metadata) {
		table_cell(t, col, NUMBER(k->vgpr_spills));
		table_cell(t, col + 1, NUMBER(k->sgpr_spills));
	}
	col += 2;
	table_cell(t, col++, NUMBER(k->desc.kernarg_bytes));
	if (f->workgroup_size)
		table_cell(t, col, NUMBER(f->workgroup_size));
	col++;
	table_cell(t, col++, f->wgp_mode ? "wgp" : "cu");
	table_cell(t, col++, NUMBER(k->code_bytes));
	table_cell(t, col++, NUMBER(f->instructions));
	table_cell(t, col++, NUMBER(f->dual));
	if (f->has_occupancy) {
		table_cell(t, col, NUMBER(f->occ.waves));
		table_cell(t, col + 1, "%s", f->occ.limit);
		table_cell(t, col + 2, NUMBER(f->occ.vgprs_allocated));
		table_cell(t, col + 3, NUMBER(f->occ.workgroups));
	}
	col += 4;
	for (int p = 0; p < ISA_PIPE_COUNT; p++)
		table_cell(t, col++, NUMBER(f->mix[p]));
}

static void init_table(struct table *t)
{
	struct buf b = { 0 };

	buf_adds(&b, "kernel,#wave,#vgprs,#sgprs,#lds,#scratch,#vgpr_spills,"
		     "#sgpr_spills,#kernarg,#workgroup_size,mode,#code_bytes,"
		     "#instructions,#dual,#occupancy,limit,#vgprs_allocated,"
		     "#workgroups");
	for (int p = 0; p < ISA_PIPE_COUNT; p++)
		buf_printf(&b, ",#%s", pipe_names[p]);
	table_init(t, b.data);
	buf_fini(&b);
}

static void print_line(FILE *out, const char *name, const char *fmt, ...)
	T0_PRINTF(3, 4);
static void print_line(FILE *out, const char *name, const char *fmt, ...)
{
	va_list ap;

	char *text = NULL;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		mem_ran_out(strlen(fmt), MEM_HERE);
	va_end(ap);
	fold_printf(out, 13, "  %-12s %s\n", name, text);
	free(text);
}

static void print_mix(FILE *out, const struct kernel_facts *f)
{
	struct buf b = { 0 };

	for (int p = 0; p < ISA_PIPE_COUNT; p++)
		if (f->mix[p])
			buf_printf(&b, "%s%s %u", b.len ? ", " : "",
				   pipe_names[p], f->mix[p]);
	if (f->dual)
		buf_printf(&b, "; %u pairs", f->dual);
	if (f->undecoded)
		buf_printf(&b, "; %u words are no instructions", f->undecoded);
	print_line(out, "mix", "%s", b.len ? b.data : "");
	buf_fini(&b);
}

static void print_occupancy(FILE *out, const char *chip,
			    const struct kernel_facts *f)
{
	const struct isa_occupancy *o = &f->occ;

	if (!f->has_occupancy) {
		print_line(out, "occupancy", "n/a for %s", chip);
		return;
	}
	print_line(out, "occupancy",
		   "%d of %d waves per SIMD on %s, limited by %s", o->waves,
		   o->by_slots, chip, o->limit);
	print_line(out, "",
		   "vgprs %d, lds %d, workgroups %d; %d workgroups "
		   "of %d fit a %s",
		   o->by_vgprs, o->by_lds, o->by_workgroups, o->workgroups,
		   f->workgroup_size ? f->workgroup_size : 1024,
		   f->wgp_mode ? "WGP" : "CU");
}

static void print_kernel(FILE *out, const char *chip,
			 const struct kernel_facts *f)
{
	const struct co_kernel *k = f->k;

	fprintf(out, "%s: wave%d, %s mode\n", k->name, f->wave,
		f->wgp_mode ? "WGP" : "CU");
	if (k->has_metadata) {
		print_line(out, "vgprs", "%u used, %d allocated, %u spilled",
			   k->vgpr_count, f->occ.vgprs_allocated,
			   k->vgpr_spills);
		print_line(out, "sgprs", "%u used, %u spilled", k->sgpr_count,
			   k->sgpr_spills);
	} else {
		print_line(out, "vgprs", "%d, %d allocated", f->vgprs,
			   f->occ.vgprs_allocated);
		print_line(out, "sgprs", "n/a: there is no metadata");
	}
	print_line(out, "lds", "%u bytes", k->desc.group_segment_bytes);
	print_line(out, "scratch", "%u bytes per work-item",
		   k->desc.private_segment_bytes);
	print_line(out, "kernarg", "%u bytes", k->desc.kernarg_bytes);
	print_line(out, "code", "%llu bytes, %u instructions",
		   (unsigned long long)k->code_bytes, f->instructions);
	print_mix(out, f);
	print_occupancy(out, chip, f);
}

/* ---- files ---- */

static bool meta_object(const struct isa_cmd *c, const struct co *co,
			struct table *table, struct err *e)
{
	const char *name = c->chip ? c->chip : co->chip;
	const struct isa_chip *chip = isa_chip_of_code(name);
	const struct co_kernel *only = NULL;

	if (!chip || !isa_gen_known(chip->gen))
		return err_set(e, ERR_UNSUPPORTED,
			       "the object is for %s, which T0 does not know; "
			       "--chip NAME reads it as another",
			       name);
	if (c->kernel) {
		only = co_kernel_require(co, c->kernel, e);
		if (!only)
			return false;
	}
	for (uint32_t i = 0; i < co->n_kernels; i++) {
		struct kernel_facts f;

		if (only && only != &co->kernels[i])
			continue;
		examine_kernel(chip->name, chip->gen, &co->kernels[i], &f);
		if (c->cmd.format != TABLE_TEXT)
			add_row(table, &f);
		else
			print_kernel(c->cmd.out, chip->name, &f);
	}
	return true;
}

static bool meta_file(const struct isa_cmd *c, const char *path,
		      struct table *table, struct err *e)
{
	struct buf file = { 0 };
	const void *bytes;
	struct co co;
	size_t len;
	bool ok = file_read(path, 0, &file, e);

	if (!ok)
		return false;
	ok = co_unbundle(file.data, file.len, c->chip, &bytes, &len, e) &&
	     co_parse(&co, bytes, len, e);
	if (ok) {
		ok = meta_object(c, &co, table, e);
		co_fini(&co);
	}
	if (!ok)
		err_wrap(e, "%s", path);
	buf_fini(&file);
	return ok;
}

bool isa_cmd_meta(struct cmd *c, struct err *e)
{
	struct table table;
	bool ok = true;

	init_table(&table);
	for (int i = 0; ok && i < c->argc; i++)
		ok = meta_file((struct isa_cmd *)c, c->argv[i], &table, e);
	if (ok && c->format != TABLE_TEXT)
		ok = cmd_table(c, &table, e);
	table_fini(&table);
	return ok;
}
