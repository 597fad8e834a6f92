/*
 * kfd/cmd/cmd_run_show.c - what there is to run, and what a job has written, as text, CSV or JSON.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/sim.h"
#include "kfd/cmd/job.h"

bool kfd_job_list(const struct kfd_job *r, struct err *e)
{
	struct table t = { 0 };
	bool good;

	table_init(&t, "kernel,#argument,kind,type,name,#offset,#bytes,#vgprs,"
		       "#lds,#scratch,#wave,#max block");
	for (uint32_t i = 0; i < r->l.co.n_kernels; i++) {
		const struct co_kernel *k = &r->l.co.kernels[i];
		const struct co_arg *a;
		int n = 0;

		if (r->l.kernel_name && k != r->l.kernel)
			continue;
		do {
			a = co_user_arg(k, n);
			table_row(&t);
			table_cell(&t, 0, "%s", k->name);
			table_cell(&t, 7, "%d", co_descriptor_vgprs(&k->desc));
			table_cell(&t, 8, "%u", k->desc.group_segment_bytes);
			table_cell(&t, 9, "%u", k->desc.private_segment_bytes);
			table_cell(&t, 10, "%u", k->wave_size);
			if (k->max_flat_workgroup_size)
				table_cell(&t, 11, "%u",
					   k->max_flat_workgroup_size);
			if (!a)
				continue;
			table_cell(&t, 1, "%d", n);
			table_cell(&t, 2, "%s", a->kind_name);
			table_cell(&t, 3, "%s", a->type_name);
			table_cell(&t, 4, "%s", a->name);
			table_cell(&t, 5, "%u", a->offset);
			table_cell(&t, 6, "%u", a->size);
		} while (co_user_arg(k, ++n));
	}
	good = cmd_table(&r->cmd, &t, e);
	table_fini(&t);
	return good;
}

static bool save_buffers(const struct kfd_job *r, struct err *e)
{
	for (int i = 0; i < r->l.n_args; i++)
		if (r->l.arg[i].save &&
		    !file_write_atomic(r->l.arg[i].save, r->mem[i]->cpu,
				       r->l.arg[i].size_bytes, e))
			return false;
	return true;
}

static size_t shown_count(const struct kfd_job *r, int i)
{
	const struct operand *o = &r->l.arg[i];

	if (!o->is_out)
		return 0;
	return o->count < r->print ? o->count : r->print;
}

static const uint8_t *element_at(const struct kfd_job *r, int i, size_t n)
{
	return (const uint8_t *)r->mem[i]->cpu + n * r->l.arg[i].type->size_bytes;
}

static void text_simulated(const struct kfd_job *r, struct buf *out)
{
	const char *chip = kfd_info(r->dev)->gfx;
	const struct sim_range *x = sim_range(SIM_RANGE_TIMES, chip);

	if (r->simulated_s <= 0)
		return;
	buf_adds(out, "simulated device time ");
	unit_print(out, r->simulated_s, "s");
	if (!x) {
		buf_printf(out, ", how far it is off on a %s is not known\n",
			   chip);
		return;
	}
	buf_adds(out, ", 80 % range ");
	unit_print(out, r->simulated_s * x->least, "s");
	buf_adds(out, " to ");
	unit_print(out, r->simulated_s * x->most, "s");
	buf_addc(out, '\n');
}

/* What a clock of this machine read is no time of a card. */
static void text_time(const struct kfd_job *r, struct buf *out)
{
	const char *origin = kfd_info(r->dev)->origin;

	buf_adds(out, !strcmp(origin, "hardware")  ? "device time " :
		      !strcmp(origin, "simulated") ?
			      "device time by the simulator's clock " :
			      "wall clock of the emulator ");
	unit_print(out, (double)kfd_job_median_ns(r) * 1e-9, "s");
	buf_printf(out, " (median of %" PRIu64 ")\n", r->n_done);
	text_simulated(r, out);
}

static void text_result(const struct kfd_job *r, struct buf *out)
{
	const struct kfd_info *info = kfd_info(r->dev);

	buf_printf(out, "%s on %s (%s): grid %u,%u,%u block %u,%u,%u\n",
		   r->l.kernel->name, info->gfx, info->origin, r->l.grid[0],
		   r->l.grid[1], r->l.grid[2], r->l.block[0], r->l.block[1],
		   r->l.block[2]);
	text_time(r, out);
	for (int i = 0; i < r->l.n_args; i++) {
		const struct co_arg *a = co_user_arg(r->l.kernel, i);
		size_t n = shown_count(r, i);

		if (!n)
			continue;
		buf_printf(out, "argument %d%s%s: %zu of %zu %s\n", i,
			   a && *a->name ? " " : "", a ? a->name : "", n,
			   r->l.arg[i].count, r->l.arg[i].type->name);
		for (size_t j = 0; j < n; j++) {
			if (j % 8 == 0)
				buf_printf(out, "%8zu:", j);
			buf_addc(out, ' ');
			value_print(r->l.arg[i].type, element_at(r, i, j), out);
			if (j % 8 == 7 || j + 1 == n)
				buf_addc(out, '\n');
		}
	}
}

static void csv_result(const struct kfd_job *r, struct buf *out)
{
	buf_adds(out, "argument,type,index,value\r\n");
	for (int i = 0; i < r->l.n_args; i++)
		for (size_t j = 0; j < shown_count(r, i); j++) {
			buf_printf(out, "%d,%s,%zu,", i, r->l.arg[i].type->name,
				   j);
			value_print(r->l.arg[i].type, element_at(r, i, j), out);
			buf_adds(out, "\r\n");
		}
}

/* JSON has no NaN, no infinity, and readers that round integers: strings. */
static json_t *json_value(const struct value_type *t, const void *bytes)
{
	struct buf text = { 0 };
	json_t *v;
	double f;

	if (value_f64(t, bytes, &f) && t->class == VALUE_FLOAT)
		return json_real(f);
	if (t->size_bytes <= 4 &&
	    (t->class == VALUE_SIGNED || t->class == VALUE_UNSIGNED))
		return json_integer((json_int_t)f);
	value_print(t, bytes, &text);
	v = json_string(text.data);
	buf_fini(&text);
	return v;
}

static json_t *json_buffer(const struct kfd_job *r, int i)
{
	const struct co_arg *a = co_user_arg(r->l.kernel, i);
	json_t *values = json_array();

	for (size_t j = 0; j < shown_count(r, i); j++)
		json_array_append_new(values, json_value(r->l.arg[i].type,
							 element_at(r, i, j)));
	return json_pack("{s:i, s:s, s:s, s:I, s:o}", "argument", i, "name",
			 a ? a->name : "", "type", r->l.arg[i].type->name,
			 "count", (json_int_t)r->l.arg[i].count, "values",
			 values);
}

static void json_result(const struct kfd_job *r, struct buf *out)
{
	const struct kfd_info *info = kfd_info(r->dev);
	const struct sim_range *x = sim_range(SIM_RANGE_TIMES, info->gfx);
	json_t *times = json_array(), *buffers = json_array(), *root;
	char *text;

	for (uint64_t i = 0; i < r->n_done; i++)
		json_array_append_new(
			times, json_integer((json_int_t)r->device_ns[i]));
	for (int i = 0; i < r->l.n_args; i++)
		if (r->l.arg[i].is_out)
			json_array_append_new(buffers, json_buffer(r, i));
	root = json_pack("{s:s, s:s, s:s, s:s, s:[iii], s:[iii], s:o, s:o}",
			 "kernel", r->l.kernel->name, "device", info->spec,
			 "chip", info->gfx, "origin", info->origin, "grid",
			 r->l.grid[0], r->l.grid[1], r->l.grid[2], "block",
			 r->l.block[0], r->l.block[1], r->l.block[2], "device_ns",
			 times, "buffers", buffers);
	if (r->simulated_s > 0)
		json_object_set_new(root, "simulated_s",
				    json_real(r->simulated_s));
	if (r->simulated_s > 0 && x)
		json_object_set_new(root, "simulated_range_s", json_pack(
			"[ff]", r->simulated_s * x->least,
			r->simulated_s * x->most));
	text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
	if (!text)
		BUG("jansson refuses our own values");
	buf_printf(out, "%s\n", text);
	free(text);
	json_decref(root);
}

bool kfd_job_show(const struct kfd_job *r, struct err *e)
{
	struct buf text = { 0 };
	bool good;

	if (r->cmd.json)
		json_result(r, &text);
	else if (r->cmd.csv)
		csv_result(r, &text);
	else
		text_result(r, &text);
	if (r->watched && r->watch.profile) {
		buf_addc(&text, '\n');
		soft_watch_profile(r->watched, &text);
	}
	good = save_buffers(r, e);
	if (good && r->cmd.format == TABLE_TEXT)
		fold_printf(r->cmd.out, 2, "%s", text.data);
	else if (good)
		fwrite(text.data, 1, text.len, r->cmd.out);
	buf_fini(&text);
	return good;
}
