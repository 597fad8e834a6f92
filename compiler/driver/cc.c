/*
 * compiler/driver/cc.c - runs the stages of the compiler in order.
 */
#include "compiler/driver/cc.h"

#include <string.h>

#include "compiler/backend/backend.h"
#include "compiler/cost/cost.h"
#include "compiler/isel/select.h"
#include "compiler/opt/pass.h"
#include "isa/code/code.h"
#include "isa/object/object.h"
#include "isa/verify/verify.h"

void cc_options_init(struct cc_options *o)
{
	*o = (struct cc_options){ .chip = "gfx1100", .level = 3 };
}

void cc_object_fini(struct cc_object *obj)
{
	buf_fini(&obj->bytes);
}

/* One compilation. */
struct unit {
	const struct cc_options *o;
	struct ssa_func *f;
	struct mir_func m;
	struct arena mem;
	struct cc_kernel k;
	const struct cost_model *costs; /* the options', or: */
	struct cost_model standard;
	char origins[COST_ORIGINS];
	struct buf code;
	bool wgp;
	struct err *e;
};

static void dump_mir(struct unit *u, const char *stage)
{
	struct buf text = { 0 };

	if (!u->o->dump)
		return;
	mir_print(&u->m, &text);
	u->o->dump(u->o->dump_ctx, stage, text.data ? text.data : "");
	buf_fini(&text);
}

static void dump_ssa(void *ctx, const char *pass, const struct ssa_func *f)
{
	struct unit *u = ctx;
	struct buf text = { 0 }, name = { 0 };

	buf_printf(&name, "ssa:%s", pass);
	ssa_print(f, &text);
	u->o->dump(u->o->dump_ctx, name.data, text.data);
	buf_fini(&text);
	buf_fini(&name);
}

/* ------------------------------------------------------------- stages ---- */

static bool check_options(const struct ssa_func *f, const struct cc_options *o,
			  struct err *e)
{
	enum isa_gen gen;
	uint64_t size = 1;

	if (!isa_chip_find(o->chip) || !isa_chip_parse(o->chip, &gen))
		return err_set(e, ERR_UNSUPPORTED,
			       "kernel %s: no code for chip '%s'; wanted one "
			       "of gfx1010, gfx1030 to gfx1036, gfx1100 to "
			       "gfx1103, gfx1150, gfx1151, gfx1200 or gfx1201",
			       f->name, o->chip);
	if (o->wgp && o->cu)
		return err_set(e, ERR_USAGE, "kernel %s: WGP mode and CU mode; "
			       "wanted one of them", f->name);
	if (o->level < 0 || o->level > 3 || o->max_vgprs > 256)
		return err_set(e, ERR_USAGE,
			       "kernel %s: level %d and at most %u VGPRs; "
			       "wanted 0 to 3, and at most 256",
			       f->name, o->level, o->max_vgprs);
	for (int d = 0; d < 3; d++)
		size *= f->group[d] ? f->group[d] : 1;
	if (size > 1024)
		return err_set(e, ERR_UNSUPPORTED,
			       "kernel %s: %llu work-items in a group; at most "
			       "1024",
			       f->name, (unsigned long long)size);
	if (f->wave != 32 && f->wave != 64)
		return err_set(e, ERR_UNSUPPORTED,
			       "kernel %s: waves of %u lanes; wanted 32 or 64",
			       f->name, f->wave);
	return true;
}

/*
 * Over both CUs of a WGP the waves of few groups are spread evenly; in one CU
 * they are nearer to what they share.  So groups stay in one that share LDS or
 * barriers and are small: two waves on each SIMD and fewer.
 */
static bool prefers_cu_mode(const struct ssa_func *f)
{
	if (f->group[0] * f->group[1] * f->group[2] > 4 * f->wave)
		return false;
	for (const struct ssa_block *b = f->first; b; b = b->next)
		for (const struct ssa_inst *i = b->first; i; i = i->next)
			if (i->op == SSA_barrier || i->op == SSA_lds)
				return true;
	return false;
}

static bool optimize_ssa(struct unit *u)
{
	if (!ssa_check(u->f, u->e))
		return false;
	if (!ssa_optimize(u->f, u->o->level, u->o->dump ? dump_ssa : NULL, u,
			  u->e))
		return false;
	if (!sel_legalize(u->f, u->e))
		return false;
	ssa_analyse(u->f);
	ssa_uniform(u->f);
	u->wgp = !u->o->cu && (u->o->wgp || !prefers_cu_mode(u->f));
	return true;
}

static bool check_lds(struct unit *u)
{
	if (u->m.lds_bytes <= 65536)
		return true;
	return err_set(u->e, ERR_UNSUPPORTED,
		       "kernel %s needs %u bytes of LDS; a workgroup has "
		       "65536",
		       u->f->name, u->m.lds_bytes);
}

static bool select_insts(struct unit *u)
{
	struct sel s = { .f = u->f, .m = &u->m, .e = u->e,
			 .wgp = u->wgp };

	mir_init(&u->m, &u->mem, u->f->name, (int)u->f->wave);
	u->m.gen = isa_chip_find(u->o->chip)->gen;
	u->m.lacks = u->costs->lacks;
	if (!sel_run(&s))
		return false;
	u->k = (struct cc_kernel){ .f = u->f, .m = &u->m,
				   .chip = u->o->chip, .wgp = u->wgp,
				   .hidden = s.uses_hidden,
				   .costs = u->origins,
				   .hidden_offset = s.hidden };
	for (int d = 0; d < 3; d++)
		if (s.group_id[d].kind != MIR_NONE)
			u->k.groups |= 1u << d;
	mir_dce(&u->m);
	dump_mir(u, "select");
	return check_lds(u);
}

/* A group that has many waves leaves each of them few registers. */
static uint32_t most_vgprs(const struct unit *u)
{
	const struct isa_chip *chip = isa_chip_find(u->o->chip);
	const uint32_t halves = u->m.wave == 64 ? 2 : 1;
	const uint32_t granule = isa_chip_granule(chip) / halves;
	const uint32_t simds = isa_gen_info(chip->gen)->simds_per_cu *
			       (u->wgp ? 2 : 1);
	uint32_t items = 1, waves, fit;

	for (int d = 0; d < 3; d++)
		items *= u->f->group[d] ? u->f->group[d] : 1;
	waves = (items + u->f->wave - 1) / u->f->wave;
	waves = (waves + simds - 1) / simds;
	fit = chip->vgprs / halves / waves / granule * granule;
	return !u->o->max_vgprs || fit < u->o->max_vgprs ?
		       (fit < 256 ? fit : 256) : u->o->max_vgprs;
}

static void schedule_insts(struct unit *u)
{
	struct sched_options s = { .costs = u->costs,
				   .chip = isa_chip_find(u->o->chip),
				   .max_vgprs = most_vgprs(u),
				   .waves = u->o->waves,
				   .enough = u->f->waves };

	if (!u->o->level)
		return;
	mir_schedule(&u->m, &s);
	dump_mir(u, "schedule");
}

static bool allocate_registers(struct unit *u)
{
	struct alloc_limits l = { .vgprs = most_vgprs(u), .sgprs = 104 };

	mir_coalesce(&u->m);
	dump_mir(u, "coalesce");
	if (!mir_allocate(&u->m, &l, u->e))
		return false;
	dump_mir(u, "allocate");
	return true;
}

/* What the passes could not do without. */
static bool check_lacking(struct unit *u)
{
	MIR_EACH_INST(&u->m, i)
		if (mir_lacks(&u->m, i->op))
			return err_set(u->e, ERR_UNSUPPORTED, "%s:%u: kernel %s "
				       "needs %s, which was found to be %s; "
				       "compile for another device, or with "
				       "another --db",
				       u->f->file ? u->f->file : u->f->name,
				       i->line, u->f->name,
				       isa_op_info((enum isa_op)i->op)->name,
				       u->m.lacks && u->m.lacks[i->op] ?
					       u->m.lacks[i->op] :
					       "of other generations");
	return true;
}

static bool finish_code(struct unit *u)
{
	mir_expand_pseudos(&u->m);
	mir_shrink_encoding(&u->m);
	mir_drop_skips(&u->m);
	mir_place_blocks(&u->m, u->o->level > 0);
	if (u->o->level > 0) {
		mir_merge_exec_masks(&u->m);
		mir_dealloc_vgprs(&u->m);
	}
	mir_retarget(&u->m);
	if (u->o->level > 1)
		mir_form_vopd(&u->m);
	mir_begin_scratch(&u->m);
	mir_insert_waitcnt(&u->m);
	mir_resolve_hazards(&u->m);
	if (u->o->level > 0) {
		mir_insert_clauses(&u->m);
		mir_insert_delay_alu(&u->m, u->costs);
	}
	dump_mir(u, "final");
	return check_lacking(u) && mir_encode(&u->m, u->o->chip, &u->code, u->e);
}

static bool compile_unit(struct unit *u)
{
	if (!optimize_ssa(u) || !select_insts(u))
		return false;
	schedule_insts(u);
	return allocate_registers(u) && finish_code(u);
}

/* ------------------------------------------------------- verification ---- */

static uint32_t line_at(const struct mir_func *m, uint64_t off)
{
	MIR_EACH_INST(m, i)
		if (i->addr == off)
			return i->line;
	return 0;
}

static bool report_findings(struct unit *u, const struct verify_report *r,
			    uint64_t entry)
{
	const struct verify_finding *f = r->v;

	if (!r->n)
		return true;
	return err_set(u->e, ERR_UNSUPPORTED,
		       "%s:%u: kernel %s does not pass the verifier: %s at "
		       "0x%llx: %s: %s (%d in all); please report it",
		       u->f->file ? u->f->file : u->f->name,
		       line_at(&u->m, f->addr - entry), u->f->name,
		       verify_rule_name(f->rule),
		       (unsigned long long)(f->addr - entry), f->text, f->what,
		       r->n);
}

static bool verify_object(struct unit *u, const struct buf *bytes)
{
	struct verify_report r = { 0 };
	struct verify_input in;
	struct co co;
	bool good;

	if (u->o->no_verify)
		return true;
	if (!co_parse(&co, bytes->data, bytes->len, u->e))
		return false;
	good = verify_input_kernel(&in, &co, &co.kernels[0], u->e);
	if (good) {
		good = isa_verify(&in, &r, u->e) &&
		       report_findings(u, &r, co.kernels[0].entry_vaddr);
		verify_report_fini(&r);
		verify_input_fini(&in);
	}
	co_fini(&co);
	return good;
}

/* --------------------------------------------------------- statistics ---- */

static void count_inst(struct cc_stats *s, const struct mir_inst *i)
{
	s->insts++;
	s->vopd += i->pair != NULL;
	if (mir_pipe(i) == ISA_PIPE_WMMA)
		s->wmma++;
	else if (mir_is_valu(i))
		s->valu++;
	else if (mir_is_salu(i))
		s->salu++;
	else if (mir_is_vmem(i))
		s->vmem++;
	else if (mir_is_smem(i))
		s->smem++;
	else if (mir_is_ds(i))
		s->lds++;
	else if (mir_is_branch(i))
		s->branches++;
	else if (i->op == ISA_s_waitcnt || i->op == ISA_s_waitcnt_vscnt)
		s->waits++;
}

static void fill_stats(const struct unit *u, struct cc_stats *s)
{
	struct isa_resources r = { .wave = u->m.wave,
				   .vgprs = (int)u->m.vgprs,
				   .lds_bytes = u->m.lds_bytes,
				   .workgroup_size = 1,
				   .wgp_mode = u->wgp };
	struct isa_occupancy occ;

	memset(s, 0, sizeof(*s));
	s->vgprs = u->m.vgprs;
	s->sgprs = u->m.sgprs;
	s->lds_bytes = u->m.lds_bytes;
	s->scratch_bytes = u->m.scratch_bytes;
	s->spills = u->m.vgpr_spills + u->m.sgpr_spills;
	s->code_bytes = (uint32_t)u->code.len;
	for (int d = 0; d < 3; d++)
		r.workgroup_size *= u->f->group[d] ? (int)u->f->group[d] : 1;
	if (isa_occupancy(u->o->chip, &r, &occ))
		s->waves_per_simd = (uint32_t)occ.waves;
	MIR_EACH_INST(&u->m, i)
		count_inst(s, i);
}

/* --------------------------------------------------------------- entry ---- */

static void unit_init(struct unit *u, const struct ssa_func *f,
		      const struct cc_options *o, struct err *e)
{
	*u = (struct unit){ .o = o, .e = e };
	cost_init(&u->standard, o->chip);
	u->costs = o->costs ? o->costs : &u->standard;
	cost_origins(u->costs, u->origins);
	u->f = ssa_func_copy(f);
}

static void unit_fini(struct unit *u)
{
	mir_fini(&u->m);
	buf_fini(&u->code);
	arena_fini(&u->mem);
	cost_fini(&u->standard);
	ssa_func_free(u->f);
}

bool cc_compile(const struct ssa_func *f, const struct cc_options *o,
		struct cc_object *out, struct err *e)
{
	struct unit u;
	bool good;

	memset(out, 0, sizeof(*out));
	if (!check_options(f, o, e))
		return false;
	unit_init(&u, f, o, e);
	good = compile_unit(&u) &&
	       cc_object_build(&u.k, &u.code, &out->bytes, e) &&
	       verify_object(&u, &out->bytes);
	if (good)
		fill_stats(&u, &out->stats);
	else
		cc_object_fini(out);
	unit_fini(&u);
	return good;
}

bool cc_assembly(const struct ssa_func *f, const struct cc_options *o,
		 struct buf *out, struct err *e)
{
	struct unit u;
	bool good;

	if (!check_options(f, o, e))
		return false;
	unit_init(&u, f, o, e);
	good = compile_unit(&u);
	if (good)
		cc_assembly_build(&u.k, out);
	unit_fini(&u);
	return good;
}
