/*
 * isa/verify/verify_report.c - findings as text and as a table.
 */
#include <string.h>

#include "isa/verify/verify.h"

static bool set_allow(struct verify_input *in, const struct cli_list *allow,
		      struct err *e)
{
	for (int i = 0; allow && i < allow->n; i++) {
		enum verify_rule rule = verify_rule_find(allow->v[i]);
		struct buf names = { 0 };

		if (rule != VERIFY_RULE_COUNT) {
			in->allow[rule] = true;
			continue;
		}
		for (int k = 0; k < VERIFY_RULE_COUNT; k++)
			buf_printf(&names, "%s%s", k ? ", " : "",
				   verify_rule_name(k));
		err_set(e, ERR_USAGE,
			"--allow: no rule is named '%s'; wanted "
			"one of %s",
			allow->v[i], names.data);
		buf_fini(&names);
		return false;
	}
	return true;
}

static void path_text(const struct verify_finding *f, struct buf *out)
{
	/* The two ends of a long path say where; the middle is the same loop.
	 */
	enum { ENDS = 8 };

	buf_reset(out);
	for (int i = 0; i < f->n_path; i++) {
		if (i == ENDS && f->n_path > 2 * ENDS + 1) {
			buf_printf(out, "... %d more ... ",
				   f->n_path - 2 * ENDS);
			i = f->n_path - ENDS;
		}
		buf_printf(out, "0x%llx%s%s%s",
			   (unsigned long long)f->path[i].addr,
			   *f->path[i].how ? " " : "", f->path[i].how,
			   i + 1 < f->n_path ? ", " : "");
	}
	if (!out->len)
		buf_adds(out, "");
}

static void show_row(struct table *t, const char *kernel,
		     const struct verify_finding *f, const char *path)
{
	table_row(t);
	if (kernel)
		table_cell(t, 0, "%s", kernel);
	table_cell(t, 1, "%s", verify_rule_name(f->rule));
	table_cell(t, 2, "%llu", (unsigned long long)f->addr);
	table_cell(t, 3, "%s", f->text);
	table_cell(t, 4, "%s", f->what);
	table_cell(t, 5, "%s", path);
	table_cell(t, 6, "%s", verify_rule_remedy(f->rule));
}

enum { HANG = 2 }; /* of what a terminal has no room for */

static void show_text(FILE *out, const struct verify_finding *f,
		      const char *path)
{
	fold_printf(out, HANG, "0x%llx: %s: %s\n", (unsigned long long)f->addr,
		    verify_rule_name(f->rule), verify_rule_summary(f->rule));
	fold_printf(out, HANG, "\t%s\n\t%s\n", f->text, f->what);
	if (*path)
		fold_printf(out, HANG, "\tpath: %s\n", path);
	fold_printf(out, HANG, "\tremedy: %s\n", verify_rule_remedy(f->rule));
}

static bool show_one(struct verify_show *show, struct verify_input *in,
		     const char *kernel, struct err *e)
{
	struct verify_report r = { 0 };
	struct buf path = { 0 };

	if (!set_allow(in, show->allow, e) || !isa_verify(in, &r, e))
		return false;
	if (!show->table)
		fold_printf(show->out, HANG,
			    "%s: %d finding%s in %d instructions and %d "
			    "blocks%s\n",
			    kernel ? kernel : "code", r.n, r.n == 1 ? "" : "s",
			    r.n_insns, r.n_blocks,
			    r.lds_of_launch ?
				    "; its LDS depends on the launch" :
				    "");
	for (int i = 0; i < r.n; i++) {
		path_text(&r.v[i], &path);
		if (show->table)
			show_row(show->table, kernel, &r.v[i], path.data);
		else
			show_text(show->out, &r.v[i], path.data);
	}
	show->found += r.n;
	buf_fini(&path);
	bool ok = !show->verified ||
		  show->verified(show->ctx, kernel ? kernel : "code", &r, e);
	verify_report_fini(&r);
	return ok;
}

bool verify_show_code(struct verify_show *show, struct isa_target target,
		      const void *code, size_t size_bytes, struct err *e)
{
	struct verify_input in;

	verify_input_raw(&in, target, code, size_bytes);
	return show_one(show, &in, NULL, e);
}

static bool show_kernel(struct verify_show *show, const struct co *co,
			const struct co_kernel *k, struct err *e)
{
	struct verify_input in;
	bool ok;

	if (!verify_input_kernel(&in, co, k, e))
		return false;
	if (show->wave)
		in.target.wave = show->wave;
	/* Of others' objects: Triton declares none and adds it at launch. */
	if (!k->desc.group_segment_bytes)
		in.lds_bytes = -1;
	ok = !show->chip || isa_chip_parse(show->chip, &in.target.gen) ||
	     err_set(e, ERR_USAGE, "--chip: '%s' is not known", show->chip);
	ok = ok && show_one(show, &in, k->name, e);
	verify_input_fini(&in);
	return ok || err_wrap(e, "kernel %s", k->name);
}

bool verify_show_object(struct verify_show *show, const void *bytes, size_t len,
			struct err *e)
{
	const struct co_kernel *only = NULL;
	struct co co;
	bool ok = true;

	if (!co_unbundle(bytes, len, show->chip, &bytes, &len, e) ||
	    !co_parse(&co, bytes, len, e))
		return false;
	if (show->kernel) {
		only = co_kernel_require(&co, show->kernel, e);
		ok = only != NULL;
	}
	if (ok && !co.n_kernels)
		ok = err_set(e, ERR_INPUT, "no kernel is described, so nothing "
			     "can be verified; wanted a linked code object, "
			     "or bare machine code with --raw");
	for (uint32_t i = 0; ok && i < co.n_kernels; i++)
		if (!only || only == &co.kernels[i])
			ok = show_kernel(show, &co, &co.kernels[i], e);
	co_fini(&co);
	return ok;
}
