/*
 * t0-run - run any kernel of any code object with arguments from the command
 * line, and show what it wrote.
 *
 * Everything that can be checked without a device is checked before one is
 * opened: the file, the kernel, the arguments against its metadata, the shape
 * of the launch.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "isa/co.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "kfd/value.h"

#define TOOL	 "t0-run"
#define MAX_ARGS 256

struct run {
	/* The command line. */
	bool list, json, csv, quiet, dry_run;
	const char *output, *device, *chip;
	uint64_t seed, repeat, print, stack_bytes;
	const char *grid_text, *block_text;
	double deadline_s;
	struct cli_list dump;
	struct soft_watch_options watch;
	const char *trace_group_text, *stop_wave_text;

	/* What it means. */
	const char *path, *kernel_name;
	uint32_t grid[3], block[3];
	struct operand arg[MAX_ARGS];
	int n_args;
	struct buf file;
	struct co co;
	const struct co_kernel *kernel;
	uint32_t lds_bytes; /* dynamic */

	/* The run. */
	struct kfd_dev *dev;
	struct kfd_driver *watched;    /* the device's, if it watches */
	struct kfd_mem *mem[MAX_ARGS]; /* of buffers */
	uint8_t *kernarg;	       /* explicit arguments */
	uint64_t *device_ns;	       /* [repeat] */
};

static const char notes[] =
	"\n"
	"Example: y = a * x + y over 1024 values, first eight of y printed:\n"
	"  t0-run saxpy.co saxpy f32:2 buf:1k:f32=iota out:1k:f32=1 u32:1024 \\\n"
	"         --grid 1024 --block 256\n"
	"Dynamic LDS and files:\n"
	"  t0-run scan.co scan buf:256:i32=file:in.bin 'out:256:i32>out.bin' lds:1k \\\n"
	"         --grid 256 --block 256\n"
	"Quote what has > or parentheses, or the shell takes them.\n"
	"\n"
	"On the soft device --check finds missing waits, races, values and memory\n"
	"that nobody wrote, accesses outside of buffers and misaligned ones, waves\n"
	"that miss a barrier, and matrix instructions with lanes switched off; it\n"
	"tells them on stderr.  T0_SOFT_CHECK=1 asks for it too.\n"
	"\n"
	"Exit status: 0 ran, 1 --check found something, 2 trouble (file, kernel, arguments), 3 the device\n"
	"faulted or the deadline passed, 77 no suitable device.\n";

/* ---- the command line --------------------------------------------------- */

static bool parse_shape(const char *text, const char *option, uint32_t out[3],
			struct err *e)
{
	char *copy = xstrdup(text), *save = NULL;
	bool good = true;
	int n = 0;

	out[0] = out[1] = out[2] = 1;
	for (char *s = strtok_r(copy, ",x", &save); s && good;
	     s = strtok_r(NULL, ",x", &save)) {
		uint64_t v = 0;

		good = n < 3 && cli_u64(s, &v, e) && v && v <= UINT32_MAX;
		if (good)
			out[n++] = (uint32_t)v;
	}
	free(copy);
	if (good && n)
		return true;
	return err_set(e, ERR_USAGE,
		       "--%s %s: expected X, X,Y or X,Y,Z of 1..2^32-1 "
		       "work-items",
		       option, text);
}

/* "INDEX=FILE" -> that operand's `save`. */
static bool parse_dump(struct run *r, const char *text, struct err *e)
{
	char *end;
	unsigned long i = strtoul(text, &end, 10);

	if (end == text || *end != '=' || !end[1])
		return err_set(e, ERR_USAGE,
			       "--dump %s: expected INDEX=FILE, arguments "
			       "counted from 0",
			       text);
	if (i >= (unsigned long)r->n_args || r->arg[i].kind != OPERAND_BUFFER)
		return err_set(e, ERR_USAGE,
			       "--dump %s: argument %lu is no buffer", text, i);
	free(r->arg[i].save);
	r->arg[i].save = xstrdup(end + 1);
	return true;
}

/* "X,Y,Z", as far as given, and what is behind it. */
static bool parse_group(const char *text, uint32_t out[3], const char **rest)
{
	char *end;

	for (int i = 0; i < 3; i++) {
		out[i] = (uint32_t)strtoul(text, &end, 10);
		if (end == text)
			return false;
		text = end;
		if (i == 2 || *text != ',')
			break;
		text++;
	}
	*rest = text;
	return true;
}

static bool parse_watch(struct run *r, struct err *e)
{
	struct soft_watch_options *o = &r->watch;
	const char *rest = "", *check = getenv("T0_SOFT_CHECK");

	if (check && *check && strcmp(check, "0") != 0 &&
	    (!r->device || !strcmp(r->device, "soft")))
		o->check = true;
	if (r->trace_group_text) {
		o->trace_one = true;
		if (!o->trace || !parse_group(r->trace_group_text,
					      o->trace_group, &rest) || *rest)
			return err_set(e, ERR_USAGE,
				       "--trace-group %s: expected X,Y,Z of a "
				       "workgroup, with --trace",
				       r->trace_group_text);
	}
	if (r->stop_wave_text) {
		char *end = NULL;

		o->stop_one = true;
		if (o->stop && parse_group(r->stop_wave_text, o->stop_group,
					   &rest) && *rest == ':')
			o->stop_wave = (uint32_t)strtoul(rest + 1, &end, 10);
		if (!end || *end || end == rest + 1)
			return err_set(e, ERR_USAGE,
				       "--dump-wave %s: expected X,Y,Z:WAVE, "
				       "with --break", r->stop_wave_text);
	}
	if ((o->profile || o->stop) && (r->json || r->csv))
		return err_set(e, ERR_USAGE,
			       "--profile and --break print text, not --%s",
			       r->json ? "json" : "csv");
	return true;
}

static bool parse_operands(struct run *r, int argc, char **argv, struct err *e)
{
	if (argc < 1 || (argc < 2 && !r->list))
		return err_set(e, ERR_USAGE,
			       "expected FILE and KERNEL; --list FILE shows "
			       "what a file has, --help how to give arguments");
	r->path = argv[0];
	r->kernel_name = argc > 1 ? argv[1] : NULL;
	if (argc - 2 > MAX_ARGS)
		return err_set(e, ERR_USAGE, "%d arguments, limit %d", argc - 2,
			       MAX_ARGS);
	for (int i = 2; i < argc; i++, r->n_args++)
		if (!operand_parse(&r->arg[r->n_args], argv[i],
				   r->seed + (uint64_t)r->n_args, e))
			return false;
	for (int i = 0; i < r->dump.n; i++)
		if (!parse_dump(r, r->dump.v[i], e))
			return false;
	if (!r->repeat || r->repeat > 1000000)
		return err_set(e, ERR_USAGE,
			       "--repeat %" PRIu64 ": expected 1..1000000",
			       r->repeat);
	if (r->stack_bytes > 1 << 20)
		return err_set(e, ERR_USAGE,
			       "--stack %" PRIu64 ": expected at most 1M",
			       r->stack_bytes);
	if (!(r->deadline_s > 0 && r->deadline_s <= 1e6))
		return err_set(e, ERR_USAGE,
			       "--deadline %g: expected seconds above 0",
			       r->deadline_s);
	return parse_watch(r, e);
}

/* ---- the file ----------------------------------------------------------- */

static bool load_file(struct run *r, struct err *e)
{
	const void *object;
	size_t len;

	if (!file_read(r->path, CO_MAX_FILE_BYTES, &r->file, e))
		return false;
	if (!co_unbundle(r->file.data, r->file.len, r->chip, &object, &len,
			 e) ||
	    !co_parse(&r->co, object, len, e))
		return err_wrap(e, "%s", r->path);
	return true;
}

static void describe_args(const struct co_kernel *k, struct buf *out)
{
	const struct co_arg *a;

	for (int i = 0; (a = co_user_arg(k, i)); i++) {
		buf_printf(out, "\n  %d: ", i);
		operand_wanted(a, out);
	}
}

static bool list_kernels(const struct run *r, FILE *out, struct err *e)
{
	struct table t = { 0 };
	bool good;

	table_init(&t, "kernel,#argument,kind,type,name,#offset,#bytes,#vgprs,"
		       "#lds,#scratch,#wave,#max block");
	for (uint32_t i = 0; i < r->co.n_kernels; i++) {
		const struct co_kernel *k = &r->co.kernels[i];
		const struct co_arg *a;
		int n = 0;

		if (r->kernel_name && k != r->kernel)
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
	good = table_print(&t,
			   r->json ? TABLE_JSON :
			   r->csv  ? TABLE_CSV :
				     TABLE_TEXT,
			   out, e);
	table_fini(&t);
	return good;
}

/* ---- checks ------------------------------------------------------------- */

static bool check_count(const struct run *r, struct err *e)
{
	const struct co_kernel *k = r->kernel;
	struct buf list = { 0 };

	if (!k->has_metadata || (uint32_t)r->n_args == k->n_user_args)
		return true;
	describe_args(k, &list);
	err_set(e, ERR_USAGE, "kernel %s takes %u argument%s, got %d%s%s",
		k->name, k->n_user_args, k->n_user_args == 1 ? "" : "s",
		r->n_args, list.len ? "; it wants" : "",
		list.len ? list.data : "");
	buf_fini(&list);
	return false;
}

static bool check_arg(const struct run *r, int i, struct err *e)
{
	const struct operand *o = &r->arg[i];
	const struct co_arg *a = co_user_arg(r->kernel, i);
	struct buf want = { 0 };

	if (o->kind == OPERAND_REF &&
	    (o->ref >= r->n_args || r->arg[o->ref].kind != OPERAND_BUFFER ||
	     o->ref_offset >= r->arg[o->ref].size_bytes))
		return err_set(e, ERR_USAGE,
			       "argument %d '%s': argument %d is no buffer "
			       "with a byte at %" PRIu64,
			       i, o->text, o->ref, o->ref_offset);
	if (!a || operand_fits(o, a))
		return true;
	operand_wanted(a, &want);
	err_set(e, ERR_USAGE,
		"kernel %s: argument %d is '%s' (%zu bytes%s), "
		"wanted %s",
		r->kernel->name, i, o->text,
		o->kind == OPERAND_VALUE ? o->size_bytes : 8,
		o->kind == OPERAND_VALUE && o->size_bytes == a->size ?
			"; x32: or bytes: passes bits as they are" :
			"",
		want.data);
	buf_fini(&want);
	return false;
}

/* Block and grid: as given, else what the kernel demands, else one wave. */
static bool set_shape(struct run *r, struct err *e)
{
	const uint32_t *reqd = r->kernel->reqd_workgroup_size;

	if (r->block_text) {
		if (!parse_shape(r->block_text, "block", r->block, e))
			return false;
	} else if (reqd[0]) {
		memcpy(r->block, reqd, sizeof(r->block));
	} else {
		r->block[0] = r->kernel->wave_size;
		r->block[1] = r->block[2] = 1;
	}
	if (!r->grid_text) {
		memcpy(r->grid, r->block, sizeof(r->grid));
		return true;
	}
	return parse_shape(r->grid_text, "grid", r->grid, e);
}

static bool check_shape(const struct run *r, struct err *e)
{
	const struct co_kernel *k = r->kernel;
	const uint32_t *reqd = k->reqd_workgroup_size, *b = r->block;
	uint32_t max = k->max_flat_workgroup_size ? k->max_flat_workgroup_size :
						    1024;

	if (reqd[0] && memcmp(reqd, b, sizeof(r->block)))
		return err_set(
			e, ERR_USAGE,
			"kernel %s: --block %u,%u,%u, but it was compiled "
			"for %u,%u,%u",
			k->name, b[0], b[1], b[2], reqd[0], reqd[1], reqd[2]);
	/* Each below 2^32 and the first two checked: no overflow of 64 bits. */
	if ((uint64_t)b[0] * b[1] > max || (uint64_t)b[0] * b[1] * b[2] > max)
		return err_set(
			e, ERR_USAGE,
			"kernel %s: --block %u,%u,%u has more work-items "
			"than its limit of %u",
			k->name, b[0], b[1], b[2], max);
	return true;
}

static bool check_launch(struct run *r, struct err *e)
{
	if (!check_count(r, e) || !set_shape(r, e) || !check_shape(r, e))
		return false;
	for (int i = 0; i < r->n_args; i++)
		if (!check_arg(r, i, e))
			return false;
	return true;
}

/* ---- the run ------------------------------------------------------------ */

static bool make_buffers(struct run *r, struct err *e)
{
	for (int i = 0; i < r->n_args; i++) {
		struct operand *o = &r->arg[i];
		char name[32];

		if (o->kind != OPERAND_BUFFER)
			continue;
		snprintf(name, sizeof(name), "argument %d", i);
		if (!kfd_mem_alloc(r->dev, KFD_VRAM, o->size_bytes, name,
				   &r->mem[i], e))
			return false;
		if (!o->untouched)
			memcpy(r->mem[i]->cpu, o->data, o->size_bytes);
	}
	kfd_mem_flush(r->dev);
	return true;
}

/* The bytes that go into the kernarg segment; *n of them. */
static const void *arg_bytes(struct run *r, int i, uint32_t pointee_align,
			     uint64_t *store, size_t *n)
{
	const struct operand *o = &r->arg[i];
	uint32_t align = pointee_align ? pointee_align : 16;

	*n = 8;
	switch (o->kind) {
	case OPERAND_VALUE:
		*n = o->size_bytes;
		return o->data;
	case OPERAND_BUFFER:
		*store = r->mem[i]->va;
		break;
	case OPERAND_REF:
		*store = r->mem[o->ref]->va + o->ref_offset;
		break;
	case OPERAND_LDS: /* behind the kernel's own LDS */
		*n = 4;
		*store = r->kernel->desc.group_segment_bytes + r->lds_bytes;
		*store = (*store + align - 1) / align * align;
		r->lds_bytes = (uint32_t)(*store + o->size_bytes) -
			       r->kernel->desc.group_segment_bytes;
		break;
	}
	return store;
}

/*
 * By the metadata's offsets; without metadata one after the other, each
 * aligned to its size.
 */
static bool lay_out(struct run *r, const struct kfd_kernel *k, struct err *e)
{
	size_t end = 0, n;
	uint64_t store;

	r->kernarg = xcalloc(1, k->explicit_bytes + 1);
	for (int i = 0; i < r->n_args; i++) {
		const struct co_arg *a = co_user_arg(r->kernel, i);
		const void *p =
			arg_bytes(r, i, a ? a->pointee_align : 0, &store, &n);
		size_t align = n > 8 ? 16 : n > 4 ? 8 : n > 2 ? 4 : n;
		size_t at = a ? a->offset : (end + align - 1) / align * align;

		end = at + n;
		if (end > k->explicit_bytes)
			return err_set(
				e, ERR_USAGE,
				"kernel %s: argument %d '%s' ends at byte "
				"%zu of %u",
				k->name, i, r->arg[i].text, end,
				k->explicit_bytes);
		memcpy(r->kernarg + at, p, n);
	}
	return true;
}

static bool launch_all(struct run *r, const struct kfd_kernel *k,
		       struct kfd_queue *q, struct err *e)
{
	struct kfd_launch l = {
		.kernel = k,
		.dyn_lds_bytes = r->lds_bytes,
		.stack_bytes = (uint32_t)r->stack_bytes,
		.args = r->kernarg,
		.args_bytes = k->explicit_bytes,
	};
	struct progress bar;
	bool good = true;

	memcpy(l.grid, r->grid, sizeof(l.grid));
	memcpy(l.wg, r->block, sizeof(l.wg));
	r->device_ns = xcalloc(r->repeat, sizeof(*r->device_ns));
	progress_init(&bar, k->name, r->repeat, r->quiet || r->repeat < 2);
	for (uint64_t i = 0; i < r->repeat && good; i++) {
		struct kfd_timing t = { 0 };

		l.deadline_ns =
			time_mono_ns() + (uint64_t)(r->deadline_s * 1e9);
		good = kfd_run(q, &l, &t, e);
		r->device_ns[i] = t.device_ns;
		progress_step(&bar, 1);
	}
	progress_fini(&bar);
	return good;
}

static bool run_on_device(struct run *r, struct err *e)
{
	const struct kfd_kernel *k;
	struct kfd_code *code;
	struct kfd_queue *q;

	return kfd_code_load(r->dev, r->co.bytes, r->co.len, &code, e) &&
	       kfd_code_kernel(code, r->kernel->name, &k, e) &&
	       make_buffers(r, e) && lay_out(r, k, e) &&
	       kfd_queue_new(r->dev, NULL, &q, e) && launch_all(r, k, q, e);
}

/* ---- the result --------------------------------------------------------- */

static bool save_buffers(const struct run *r, struct err *e)
{
	for (int i = 0; i < r->n_args; i++)
		if (r->arg[i].save &&
		    !file_write_atomic(r->arg[i].save, r->mem[i]->cpu,
				       r->arg[i].size_bytes, e))
			return false;
	return true;
}

static size_t shown(const struct run *r, int i)
{
	const struct operand *o = &r->arg[i];

	if (!o->is_out)
		return 0;
	return o->count < r->print ? o->count : r->print;
}

static const uint8_t *element(const struct run *r, int i, size_t n)
{
	return (const uint8_t *)r->mem[i]->cpu + n * r->arg[i].type->size_bytes;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Middle of the sorted times (lower one of two). */
static uint64_t median_ns(const struct run *r)
{
	uint64_t *sorted = xmalloc(r->repeat * sizeof(*sorted)), m;

	memcpy(sorted, r->device_ns, r->repeat * sizeof(*sorted));
	qsort(sorted, r->repeat, sizeof(*sorted), compare_u64);
	m = sorted[(r->repeat - 1) / 2];
	free(sorted);
	return m;
}

static void text_result(const struct run *r, struct buf *out)
{
	const struct kfd_info *info = kfd_info(r->dev);

	buf_printf(out, "%s on %s (%s): grid %u,%u,%u block %u,%u,%u\n",
		   r->kernel->name, info->gfx, info->origin, r->grid[0],
		   r->grid[1], r->grid[2], r->block[0], r->block[1],
		   r->block[2]);
	buf_printf(out,
		   "device time %" PRIu64 " ns (%s, median of %" PRIu64 ")\n",
		   median_ns(r), info->origin, r->repeat);
	for (int i = 0; i < r->n_args; i++) {
		const struct co_arg *a = co_user_arg(r->kernel, i);
		size_t n = shown(r, i);

		if (!n)
			continue;
		buf_printf(out, "argument %d%s%s: %zu of %zu %s\n", i,
			   a && *a->name ? " " : "", a ? a->name : "", n,
			   r->arg[i].count, r->arg[i].type->name);
		for (size_t j = 0; j < n; j++) {
			if (j % 8 == 0)
				buf_printf(out, "%8zu:", j);
			buf_addc(out, ' ');
			value_print(r->arg[i].type, element(r, i, j), out);
			if (j % 8 == 7 || j + 1 == n)
				buf_addc(out, '\n');
		}
	}
}

static void csv_result(const struct run *r, struct buf *out)
{
	buf_adds(out, "argument,type,index,value\r\n");
	for (int i = 0; i < r->n_args; i++)
		for (size_t j = 0; j < shown(r, i); j++) {
			buf_printf(out, "%d,%s,%zu,", i, r->arg[i].type->name,
				   j);
			value_print(r->arg[i].type, element(r, i, j), out);
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

static json_t *json_buffer(const struct run *r, int i)
{
	const struct co_arg *a = co_user_arg(r->kernel, i);
	json_t *values = json_array();

	for (size_t j = 0; j < shown(r, i); j++)
		json_array_append_new(
			values, json_value(r->arg[i].type, element(r, i, j)));
	return json_pack("{s:i, s:s, s:s, s:I, s:o}", "argument", i, "name",
			 a ? a->name : "", "type", r->arg[i].type->name,
			 "count", (json_int_t)r->arg[i].count, "values",
			 values);
}

static void json_result(const struct run *r, struct buf *out)
{
	const struct kfd_info *info = kfd_info(r->dev);
	json_t *times = json_array(), *buffers = json_array(), *root;
	char *text;

	for (uint64_t i = 0; i < r->repeat; i++)
		json_array_append_new(
			times, json_integer((json_int_t)r->device_ns[i]));
	for (int i = 0; i < r->n_args; i++)
		if (r->arg[i].is_out)
			json_array_append_new(buffers, json_buffer(r, i));
	root = json_pack("{s:s, s:s, s:s, s:s, s:[iii], s:[iii], s:o, s:o}",
			 "kernel", r->kernel->name, "device", info->spec,
			 "chip", info->gfx, "origin", info->origin, "grid",
			 r->grid[0], r->grid[1], r->grid[2], "block",
			 r->block[0], r->block[1], r->block[2], "device_ns",
			 times, "buffers", buffers);
	text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
	if (!text)
		BUG("jansson refuses our own values");
	buf_printf(out, "%s\n", text);
	free(text);
	json_decref(root);
}

static bool write_out(const struct run *r, const struct buf *text,
		      struct err *e)
{
	if (r->output)
		return file_write_atomic(r->output, text->data, text->len, e);
	fwrite(text->data, 1, text->len, stdout);
	return stdout_check(e);
}

static bool show_result(const struct run *r, struct err *e)
{
	struct buf text = { 0 };
	bool good;

	if (r->json)
		json_result(r, &text);
	else if (r->csv)
		csv_result(r, &text);
	else
		text_result(r, &text);
	if (r->watched && r->watch.profile) {
		buf_addc(&text, '\n');
		soft_watch_profile(r->watched, &text);
	}
	good = save_buffers(r, e) && write_out(r, &text, e);
	buf_fini(&text);
	return good;
}

/* ---- the whole ---------------------------------------------------------- */

static bool show_list(const struct run *r, struct err *e)
{
	struct buf text = { 0 };
	char *data = NULL;
	size_t len = 0;
	FILE *mem;
	bool good;

	if (!r->output)
		return list_kernels(r, stdout, e) && stdout_check(e);
	mem = open_memstream(&data, &len);
	if (!mem)
		return err_set(e, ERR_NOMEM, "no memory for the list");
	good = list_kernels(r, mem, e);
	fclose(mem);
	buf_add(&text, data, len);
	good = good && write_out(r, &text, e);
	buf_fini(&text);
	free(data);
	return good;
}

static bool wants_watch(const struct run *r)
{
	const struct soft_watch_options *o = &r->watch;

	return o->check || o->profile || o->trace || o->stop;
}

/* Only the gfx1100 in software can be watched. */
static bool open_watched(struct run *r, const char *spec, struct err *e)
{
	const struct soft_options o = {
		.watch = r->watch,
		.deadline_ns = (uint64_t)(r->deadline_s * 1e9),
	};

	if (spec && *spec && strcmp(spec, "soft") != 0)
		return err_set(e, ERR_USAGE,
			       "device %s cannot be watched: --check, --trace, "
			       "--profile and --break need --device soft", spec);
	r->watched = kfd_soft_new(&o, e);
	if (!r->watched)
		return err_wrap(e, "the gfx1100 in software");
	if (kfd_open_driver(&r->dev, r->watched, -1, "it can be watched", e))
		return true;
	r->watched = NULL; /* freed */
	return false;
}

/* What was watched, to stderr, also after a fault: false if rules broke. */
static bool show_watched(struct run *r, bool *good, struct err *e)
{
	struct buf text = { 0 };
	uint64_t n;

	if (!r->watched)
		return true;
	if (r->watch.stop && !soft_watch_dump(r->watched, &text))
		buf_printf(&text, TOOL ": no wave came to %s\n", r->watch.stop);
	n = soft_watch_findings(r->watched, &text);
	if (text.len)
		fputs(text.data, stderr);
	if (n)
		fprintf(stderr, TOOL ": --check: %" PRIu64 " finding%s\n", n,
			n == 1 ? "" : "s");
	buf_fini(&text);
	if (!soft_watch_trace_end(r->watched, *good ? e : NULL))
		*good = false;
	return !n;
}

static bool work(struct run *r, struct err *e)
{
	char seen[256];
	const char *spec = kfd_spec(r->device ? r->device : getenv("T0_DEVICE"),
				    getenv("T0_VISIBLE_DEVICES"), seen);

	if (!load_file(r, e))
		return false;
	if (r->kernel_name) {
		r->kernel = co_kernel_require(&r->co, r->kernel_name, e);
		if (!r->kernel)
			return err_wrap(e, "%s", r->path);
	}
	if (r->list)
		return show_list(r, e);
	if (!check_launch(r, e))
		return false;
	if (r->dry_run)
		return true;
	if (wants_watch(r) ? !open_watched(r, spec, e) :
			     !kfd_open(&r->dev, spec, e))
		return false;
	if (!r->quiet)
		fprintf(stderr, TOOL ": device: %s\n", kfd_info(r->dev)->why);
	return run_on_device(r, e) && show_result(r, e);
}

static void run_fini(struct run *r)
{
	kfd_close(r->dev);
	for (int i = 0; i < r->n_args; i++)
		operand_fini(&r->arg[i]);
	free(r->kernarg);
	free(r->device_ns);
	co_fini(&r->co);
	buf_fini(&r->file);
	cli_list_fini(&r->dump);
}

int main(int argc, char **argv)
{
	static struct run r = {
		.repeat = 1, .print = 8, .deadline_s = 10, .chip = "gfx1100"
	};
	const struct cli_opt opt[] = {
		{ "list", 'l', CLI_FLAG, &r.list, NULL,
		  "show the kernels of FILE and their arguments" },
		{ "grid", 'g', CLI_STR, &r.grid_text, "X,Y,Z",
		  "work-items in all (default: one block)" },
		{ "block", 'b', CLI_STR, &r.block_text, "X,Y,Z",
		  "work-items per workgroup (default: what the kernel was "
		  "compiled for, else one wave)" },
		{ "print", 'p', CLI_U64, &r.print, "N",
		  "values shown of each out: buffer (default 8)" },
		{ "dump", 'd', CLI_LIST, &r.dump, "I=FILE",
		  "write the memory of argument I to FILE" },
		{ "check", 'c', CLI_FLAG, &r.watch.check, NULL,
		  "find missing waits, races, uninitialised values and more" },
		{ "profile", 0, CLI_FLAG, &r.watch.profile, NULL,
		  "count executed instructions by class and address" },
		{ "trace", 0, CLI_STR, &r.watch.trace, "FILE",
		  "write all instructions and memory addresses to FILE" },
		{ "trace-group", 0, CLI_STR, &r.trace_group_text, "X,Y,Z",
		  "trace only this workgroup" },
		{ "break", 0, CLI_STR, &r.watch.stop, "ADDRESS|SYMBOL+OFFSET",
		  "show the registers of waves that come there" },
		{ "dump-wave", 0, CLI_STR, &r.stop_wave_text, "X,Y,Z:WAVE",
		  "only this wave of this workgroup (default: the first 16)" },
		{ "repeat", 'r', CLI_U64, &r.repeat, "N",
		  "dispatch N times; buffers keep what the last one wrote" },
		{ "stack", 0, CLI_U64, &r.stack_bytes, "BYTES",
		  "scratch of a work-item for calls, besides the kernel's own "
		  "(kernels with a dynamic stack need it)" },
		{ "deadline", 't', CLI_F64, &r.deadline_s, "SECONDS",
		  "give a dispatch up after this long (default 10)" },
		{ "chip", 0, CLI_STR, &r.chip, "GFX",
		  "object to take out of an offload bundle (default gfx1100)" },
		{ "device", 0, CLI_STR, &r.device, "DEVICE",
		  "soft, kfd or kfd:N (default: $T0_DEVICE, else the first "
		  "gfx11 GPU, else soft)" },
		{ "seed", 0, CLI_U64, &r.seed, "N",
		  "of random without a seed; argument I uses N + I" },
		{ "json", 0, CLI_FLAG, &r.json, NULL, "print JSON" },
		{ "csv", 0, CLI_FLAG, &r.csv, NULL, "print CSV" },
		{ "output", 'o', CLI_STR, &r.output, "FILE", "print to FILE" },
		{ "dry-run", 'n', CLI_FLAG, &r.dry_run, NULL,
		  "check everything, run nothing" },
		{ "quiet", 'q', CLI_FLAG, &r.quiet, NULL,
		  "no device line and no progress on stderr" },
		{ 0 }
	};
	char *help = xmalloc(strlen(operand_help) + sizeof(notes));
	const struct cli_tool tool = {
		TOOL,
		"run a kernel of a code object and show what it wrote",
		"[options] FILE KERNEL [ARGUMENT...]\n--list FILE [KERNEL]",
		opt,
		help,
	};
	struct err e = { 0 };
	bool done = false, good, clean;
	int first;

	strcpy(help, operand_help);
	strcat(help, notes);
	good = cli_parse(&tool, argc, argv, &first, &done, &e);
	if (good && !done)
		good = parse_operands(&r, argc - first, argv + first, &e) &&
		       work(&r, &e);
	clean = show_watched(&r, &good, &e);
	run_fini(&r);
	free(help);
	if (!good)
		return err_report(TOOL, &e);
	return clean ? EXIT_YES : EXIT_NO;
}
