/*
 * kfd/cmd/t0-device.c - which devices there are, and what is known of one.
 *
 * Everything the kernel says of it, and what its sensors read now or over time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cmd.h"
#include "base/panel/panel.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"

static struct {
	struct cmd cmd;
	const char *device;
	uint64_t count, interval_ms;
	bool tui;
} o = { .interval_ms = 1000 };

/* ---- list ---- */

enum {
	L_INDEX,
	L_DEVICE,
	L_NAME,
	L_GFX,
	L_CUS,
	L_VRAM,
	L_PCI,
	L_ORIGIN,
	L_USABLE,
	L_WHY
};

static void list_row(struct table *t, int i, const struct kfd_found *f)
{
	const struct kfd_node *n = &f->node;
	char name[64], gfx[16], pci[16];

	table_row(t);
	table_cell(t, L_INDEX, "%d", i);
	table_cell(t, L_DEVICE, "%s", f->spec);
	table_cell(t, L_ORIGIN, "%s", f->origin);
	table_cell(t, L_USABLE, "%s", f->usable ? "yes" : "no");
	if (!f->usable)
		table_cell(t, L_WHY, "%s", f->why_not);
	if (n->hidden)
		return;
	kfd_board_name(n, name);
	kfd_gfx_name(n->gfx_target, gfx);
	kfd_pci_name(n, pci);
	table_cell(t, L_NAME, "%s", name);
	table_cell(t, L_GFX, "%s", gfx);
	if (n->cu_count)
		table_cell(t, L_CUS, "%u", n->cu_count);
	if (n->vram_bytes)
		table_cell(t, L_VRAM, "%.1f", (double)n->vram_bytes * 1e-9);
	table_cell(t, L_PCI, "%s", pci);
}

static bool run_list(struct cmd *c, struct err *e)
{
	struct kfd_found *found;
	struct err none = { 0 };
	char spec[256];
	struct table t;
	int n;

	bool ok = kfd_list(kfd_spec_asked(o.device, spec), &found, &n, e);
	if (ok && !soft_spec_is(spec))
		ok = kfd_list_chips(&found, &n, e);
	table_init(&t, "#index,device,name,gfx,#CUs,#VRAM_GB,pci,origin,"
		       "usable,why_not");
	for (int i = 0; i < n; i++)
		list_row(&t, i, &found[i]);
	ok = ok && cmd_table(c, &t, e);
	if (ok && !kfd_is_here(&none))
		cmd_remark(c, "no device of the kernel's: %s", none.msg);
	table_fini(&t);
	free(found);
	return ok;
}

/* ---- info ---- */

/* A fact; a value of NULL is "n/a": the kernel does not give it. */
static void add_fact(struct table *t, const char *name, const char *unit,
		 const char *fmt, ...) T0_PRINTF(4, 5);
static void add_fact(struct table *t, const char *name, const char *unit,
		 const char *fmt, ...)
{
	char value[512];
	va_list ap;

	table_row(t);
	table_cell(t, 0, "%s", name);
	if (fmt) {
		va_start(ap, fmt);
		vsnprintf(value, sizeof(value), fmt, ap);
		va_end(ap);
		table_cell(t, 1, "%s", value);
	}
	table_cell(t, 2, "%s", unit ? unit : "");
}

/* Bytes as a reader counts them; programs get them all. */
static bool add_size(struct table *t, const char *name, const char *unit,
		     double v)
{
	const double bytes = !strcmp(unit, "byte") ? v :
			     !strcmp(unit, "KiB")  ? v * 1024 :
						     NAN;
	const char *scaled;

	if (isnan(bytes) || o.cmd.format == TABLE_JSON ||
	    o.cmd.format == TABLE_CSV)
		return false;
	const double by = unit_scale(bytes, "B", &scaled);

	add_fact(t, name, scaled, "%.4g", bytes * by);
	return true;
}

/* NAN means that the kernel does not say. */
static void add_figure(struct table *t, const char *name, const char *unit,
		   unsigned digits, double v)
{
	if (isnan(v))
		add_fact(t, name, unit, NULL);
	else if (!add_size(t, name, unit ? unit : "", v))
		add_fact(t, name, unit, "%.*f", (int)digits, v);
}

static void add_text(struct table *t, const char *name, const char *s)
{
	add_fact(t, name, NULL, *s ? "%s" : NULL, s);
}

/* 0 means that sysfs has no such line. */
static void add_number(struct table *t, const char *name, const char *unit,
		   uint64_t v)
{
	if (!v)
		add_fact(t, name, unit, NULL);
	else if (!add_size(t, name, unit ? unit : "", (double)v))
		add_fact(t, name, unit, "%llu", (unsigned long long)v);
}

static void add_hex(struct table *t, const char *name, uint64_t v)
{
	if (v)
		add_fact(t, name, NULL, "0x%llx", (unsigned long long)v);
	else
		add_fact(t, name, NULL, NULL);
}

static void shape_facts(struct table *t, const struct kfd_info *info)
{
	const struct kfd_node *n = &info->node;

	add_number(t, "compute units", NULL, n->cu_count);
	add_number(t, "SIMDs", NULL, n->simd_count);
	add_number(t, "SIMDs per CU", NULL, n->simd_per_cu);
	add_number(t, "shader engines", NULL, n->engines);
	add_number(t, "shader arrays", NULL, n->array_count);
	add_number(t, "waves per SIMD", NULL, n->max_waves_per_simd);
	add_number(t, "wave size", "lanes", n->wave_size);
	add_number(t, "VGPRs per SIMD", "wave32", info->vgprs_per_simd);
	add_number(t, "VGPR granule", "wave32", info->vgpr_granule);
	add_number(t, "LDS per workgroup", "byte", n->lds_bytes);
	add_number(t, "scratch slots per CU", "waves", n->scratch_slots_cu);
	add_number(t, "max shader clock", "MHz", n->clk_max_mhz);
}

static void memory_facts(struct table *t, const struct kfd_node *n)
{
	add_number(t, "VRAM", "byte", n->vram_bytes);
	if (n->vram_bytes)
		add_fact(t, "VRAM seen by host", NULL, "%s",
		     n->large_bar ? "all (large BAR)" : "no (small BAR)");
	add_number(t, "VRAM width", "bit", n->vram_width_bits);
	add_number(t, "max memory clock", "MHz", n->mem_clk_max_mhz);
	add_number(t, "L0 vector cache", "KiB", n->l0_kib);
	add_number(t, "scalar cache", "KiB", n->l1s_kib);
	add_number(t, "instruction cache", "KiB", n->l1i_kib);
	add_number(t, "L1 (GL1)", "KiB", n->gl1_kib);
	add_number(t, "L2", "KiB", n->l2_kib);
	add_number(t, "L3 (MALL)", "KiB", n->l3_kib);
	add_number(t, "caches listed", NULL, n->n_caches);
	add_number(t, "link to host", "MB/s", n->link_max_mbps);
}

static void identity_facts(struct table *t, const struct kfd_info *info)
{
	const struct kfd_node *n = &info->node;

	add_fact(t, "device", NULL, "%s", info->spec);
	add_fact(t, "name", NULL, "%s", info->name);
	add_fact(t, "gfx", NULL, "%s", info->gfx);
	add_fact(t, "driver", NULL, "%s", info->driver);
	add_fact(t, "origin of figures", NULL, "%s", info->origin);
	add_fact(t, "KFD version", NULL, "%u.%u", info->kfd_major,
		 info->kfd_minor);
	add_fact(t, "topology node", NULL, "%d", n->index);
	add_number(t, "GPU id", NULL, n->gpu_id);
	add_hex(t, "vendor", n->vendor_id);
	add_hex(t, "device id", n->device_id);
	add_fact(t, "pci", NULL, "%s", info->pci);
	add_fact(t, "render node", NULL, "/dev/dri/renderD%d", n->render_minor);
	add_hex(t, "unique id", n->unique_id);
	add_hex(t, "capability", n->capability);
	/* Low ten bits: what other tools print as the MEC version. */
	add_number(t, "MEC firmware", NULL, n->fw_version & 0x3ff);
	add_number(t, "SDMA firmware", NULL, n->sdma_fw_version);
}

static void runtime_facts(struct table *t, struct kfd_dev *dev)
{
	const struct kfd_info *info = kfd_info(dev);
	struct kfd_clock c;
	uint64_t left;

	add_number(t, "timestamp rate", "Hz", info->tick_hz);
	if (kfd_clock_read(dev, &c, NULL))
		add_fact(t, "device clock", "tick", "%llu",
		     (unsigned long long)c.gpu_ticks);
	else
		add_fact(t, "device clock", "tick", NULL);
	if (kfd_vram_available(dev, &left, NULL))
		add_number(t, "VRAM available", "byte", left);
	else
		add_fact(t, "VRAM available", "byte", NULL);
	add_hex(t, "LDS aperture", info->lds_base);
	add_hex(t, "scratch aperture", info->scratch_base);
	add_hex(t, "GPU VM from", info->gpuvm_base);
	add_hex(t, "GPU VM to", info->gpuvm_limit);
	add_fact(t, "wave exceptions", NULL, "%s",
	     info->runtime_enabled ? "reported" : "by queue only");
	add_fact(t, "HDP flush register", NULL, "%s",
	     info->hdp_flush ? "mapped" : "not mapped");
}

static void cu_bitmap_fact(struct table *t, const struct kfd_drm *d)
{
	struct buf b = { 0 };
	unsigned on = 0;

	/* Engines beyond the fourth continue in columns 2 and 3. */
	for (unsigned se = 0; d->has_cu_bitmap && se < 8; se++)
		for (unsigned sa = 0; sa < 2; sa++) {
			const uint32_t v =
				d->cu_bitmap[se % 4][sa + se / 4 * 2];

			on += (unsigned)__builtin_popcount(v);
			if (se < d->engines)
				buf_printf(&b, "%s%02x", b.len ? " " : "", v);
		}
	add_text(t, "CU bitmap", b.len ? b.data : "");
	add_figure(t, "CUs in bitmap", NULL, 0, d->has_cu_bitmap ? on : NAN);
	buf_fini(&b);
}

static void drm_facts(struct table *t, const struct kfd_drm *d)
{
	add_text(t, "marketing name", d->name);
	add_text(t, "name comes from", d->name_source);
	add_fact(t, "DRM version", NULL,
		 isnan(d->drm_major) ? NULL : "%.0f.%.0f", d->drm_major,
		 d->drm_minor);
	add_text(t, "card node", d->card);
	add_fact(t, "PCI revision", NULL, isnan(d->pci_rev) ? NULL : "0x%02x",
	     isnan(d->pci_rev) ? 0u : (unsigned)d->pci_rev);
	add_figure(t, "active CUs", NULL, 0, d->cu_active);
	cu_bitmap_fact(t, d);
	add_figure(t, "max shader clock (DRM)", "MHz", 0, d->sclk_max_mhz);
	add_figure(t, "max memory clock (DRM)", "MHz", 0, d->mclk_max_mhz);
	add_figure(t, "counter clock", "kHz", 0, d->counter_khz);
	add_figure(t, "render backends", NULL, 0, d->render_backends);
	add_figure(t, "VRAM (DRM)", "byte", 0, d->vram_bytes);
	add_figure(t, "VRAM usable", "byte", 0, d->vram_usable_bytes);
	add_figure(t, "VRAM in the host's window", "byte", 0, d->visible_bytes);
	add_figure(t, "GTT", "byte", 0, d->gtt_bytes);
	add_text(t, "VBIOS", d->vbios);
	add_text(t, "link speed", d->link_speed);
	add_text(t, "link width", d->link_width);
	add_text(t, "performance level", d->perf_level);
	for (int i = 0; i < d->n_fw; i++) {
		char name[48];

		snprintf(name, sizeof(name), "firmware %s", d->fw[i].name);
		add_fact(t, name, NULL,
			 d->fw[i].known ? "%u (feature %u)" : NULL,
			 d->fw[i].version, d->fw[i].feature);
	}
}

static void sensor_facts(struct table *t, const struct kfd_sensors *s)
{
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++)
		add_figure(t, c->name, c->unit, c->digits,
			   kfd_sensor_value(s, c));
}

static bool open_device(struct kfd_dev **dev, struct err *e)
{
	char spec[256];

	if (!kfd_open(dev, kfd_spec_asked(o.device, spec), e))
		return false;
	cmd_remark(&o.cmd, "device: %s", kfd_info(*dev)->why);
	return true;
}

static bool run_info(struct cmd *c, struct err *e)
{
	struct kfd_dev *dev;
	struct kfd_sensors s;
	struct kfd_drm d;
	struct table t;

	if (!open_device(&dev, e))
		return false;
	table_init(&t, "fact,value,unit");
	identity_facts(&t, kfd_info(dev));
	shape_facts(&t, kfd_info(dev));
	memory_facts(&t, &kfd_info(dev)->node);
	runtime_facts(&t, dev);
	/* Neither is needed to compute: without them the rest still counts. */
	if (kfd_drm_read(dev, &d, NULL))
		drm_facts(&t, &d);
	if (kfd_sensors_read(dev, &s))
		sensor_facts(&t, &s);
	bool ok = cmd_table(c, &t, e);
	table_fini(&t);
	kfd_close(dev);
	return ok;
}

/* ---- sensors ---- */

static bool read_sensors(struct kfd_dev *dev, struct kfd_sensors *s,
			 struct err *e)
{
	return kfd_sensors_read(dev, s) ||
	       err_set(e, ERR_UNSUPPORTED, "%s gives no sensor at all; "
		       "is %s an amdgpu card?", kfd_info(dev)->spec,
		       kfd_info(dev)->pci);
}

static bool run_sensors(struct cmd *c, struct err *e)
{
	struct kfd_dev *dev;
	struct kfd_sensors s;
	struct table t;

	if (!open_device(&dev, e))
		return false;
	table_init(&t, "sensor,#value,unit");
	bool ok = read_sensors(dev, &s, e);
	if (ok)
		sensor_facts(&t, &s);
	ok = ok && cmd_table(c, &t, e);
	table_fini(&t);
	kfd_close(dev);
	return ok;
}

/* ---- watch ---- */

static int column_width(const struct kfd_sensor_column *c)
{
	const int name = (int)strlen(c->name),
		  value = c->unit[0] == 'b' ? 11 : 5;

	return 2 + (name > value ? name : value);
}

/* One sample as a line: NAN is n/a, an empty field, or null. */
static void sample_line(FILE *f, const struct kfd_sensors *s, uint64_t start)
{
	const bool json = o.cmd.json, csv = o.cmd.csv;
	const double time_s = (double)(s->time_ns - start) * 1e-9;

	fprintf(f, json ? "{\"time_s\":%.3f" : csv ? "%.3f" : "%8.1f", time_s);
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++) {
		const double v = kfd_sensor_value(s, c);

		if (json)
			fprintf(f, ",\"%s\":", c->name);
		else if (csv)
			fputc(',', f);
		if (!isnan(v))
			fprintf(f, "%*.*f", json || csv ? 0 : column_width(c),
				(int)c->digits, v);
		else if (!csv)
			fprintf(f, "%*s", json ? 0 : column_width(c),
				json ? "null" : "n/a");
	}
	fputs(json ? "}\n" : "\n", f);
}

static void sample_head(FILE *f)
{
	const bool csv = o.cmd.csv;

	if (o.cmd.json)
		return;
	fprintf(f, csv ? "time_s" : "%8s", "time_s");
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++)
		fprintf(f, csv ? ",%*s" : "%*s", csv ? 0 : column_width(c),
			c->name);
	fputc('\n', f);
}

/* On a terminal: the table of `sensors`, over the one before. */
static bool redraw_table(const struct kfd_sensors *s, bool first, struct err *e)
{
	struct table t;

	table_init(&t, "sensor,#value,unit");
	sensor_facts(&t, s);
	if (!first)
		printf("\033[%dA\033[J", t.n_rows + 1);
	const bool ok = table_print(&t, TABLE_TEXT, stdout, e);
	table_fini(&t);
	return ok;
}

static void show_sample(struct panel *p, const struct kfd_sensors *s, uint64_t n)
{
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++) {
		const double v = kfd_sensor_value(s, c);
		char title[64];

		if (isnan(v))
			continue;
		panel_set(p, c->name, "%.*f %s", (int)c->digits, v, c->unit);
		snprintf(title, sizeof(title), "%s (%s)", c->name, c->unit);
		if (!strcmp(c->name, "power"))
			panel_point(p, title, v);
	}
	panel_progress(p, n, o.count);
}

/* A panel is drawn meanwhile, and listens. */
static void nap_until(uint64_t due, struct panel *p)
{
	for (uint64_t now; !*o.cmd.stop && (now = time_mono_ns()) < due;) {
		const uint64_t slice = p ? 100000000u : due - now;
		const uint64_t rest = due - now < slice ? due - now : slice;
		const struct timespec nap = { (time_t)(rest / 1000000000u),
					      (long)(rest % 1000000000u) };

		panel_draw(p);
		if (nanosleep(&nap, NULL))
			return;
	}
}

static bool watch_loop(struct kfd_dev *dev, FILE *f, bool terminal,
		       struct panel *p, struct err *e)
{
	const uint64_t start = time_mono_ns();
	struct kfd_sensors s;

	if (!terminal)
		sample_head(f);
	for (uint64_t n = 0; !o.count || n < o.count; n++) {
		const uint64_t due = start + n * o.interval_ms * 1000000u;

		if (n)
			nap_until(due, p);
		if (*o.cmd.stop)
			break;
		if (!read_sensors(dev, &s, e))
			return false;
		show_sample(p, &s, n + 1);
		panel_draw(p);
		if (terminal && !redraw_table(&s, n == 0, e))
			return false;
		if (!terminal)
			sample_line(f, &s, start);
		/* Each sample is there as soon as it is taken. */
		if (fflush(f))
			return err_sys(e, ERR_IO, errno, "%s",
				       o.cmd.output ? o.cmd.output : "stdout");
	}
	return true;
}

static bool run_watch(struct cmd *c, struct err *e)
{
	bool terminal = c->out == stdout && c->format == TABLE_TEXT &&
			isatty(1);
	struct panel *p = NULL;
	struct kfd_dev *dev;

	if (o.interval_ms > 86400000)
		return err_set(e, ERR_USAGE, "--interval-ms %llu: wanted at "
			       "most a day", (unsigned long long)o.interval_ms);
	cmd_catch_signals(c);
	if (!open_device(&dev, e))
		return false;
	if (o.tui)
		p = panel_open("t0-device", kfd_info(dev)->name);
	terminal = terminal && !p;
	bool ok = watch_loop(dev, c->out, terminal, p, e);
	panel_close(p);
	kfd_close(dev);
	return ok;
}

/* ---- commands and options ---- */

static const struct cmd_spec commands[] = {
	{ "list", NULL, "the devices", run_list, 0, 0, .flags = CMD_TABLE },
	{ "info", NULL, "everything the kernel says of a device", run_info,
	  0, 0, .flags = CMD_TABLE | CMD_QUIET },
	{ "sensors", NULL, "what its sensors read now", run_sensors, 0, 0,
	  .flags = CMD_TABLE | CMD_QUIET },
	{ "watch", NULL, "what its sensors read over time", run_watch, 0, 0,
	  .flags = CMD_TABLE | CMD_QUIET | CMD_STREAM,
	  .notes = "It refreshes a table on a terminal; elsewhere it prints a "
		   "line per sample (with --json an object per line)." },
	{ 0 },
};
static const struct cli_opt options[] = {
	{ "device", 'd', CLI_STR, &o.device, "DEVICE", KFD_DEVICE_HELP },
	CLI_OF("watch"),
	{ "count", 'n', CLI_U64, &o.count, "N",
	  "stop after N samples (default: go on)" },
	{ "interval-ms", 'i', CLI_U64, &o.interval_ms, "MS",
	  "time between samples (default 1000)" },
	{ "tui", 0, CLI_FLAG, &o.tui, NULL,
	  "full screen on a terminal: sensors, and power as a curve" },
	{ 0 },
};

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-device",
		.summary = "list the devices and show what is known of one",
		.commands = commands,
		.options = options,
		.notes = "What the kernel does not give is n/a.\n\n"
			 "Exit: 0 done, 2 trouble, 77 no device like the one "
			 "asked for.",
	};

	return cmd_main(&o.cmd, &tool, argc, argv);
}
