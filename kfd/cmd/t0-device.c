/*
 * t0-device: which devices there are, everything the kernel says of one, and
 * what its sensors read now or over time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kfd/kfd.h"

static const char *device, *out_path;
static bool json, csv, quiet;
static uint64_t count, interval_ms = 1000;

static const struct cli_opt opts[] = {
	{ "device", 'd', CLI_STR, &device, "DEVICE",
	  "soft, kfd or kfd:N (default: T0_DEVICE, then the first gfx11 GPU, "
	  "then soft)" },
	{ "json", 0, CLI_FLAG, &json, NULL, "print JSON" },
	{ "csv", 0, CLI_FLAG, &csv, NULL, "print CSV" },
	{ "count", 'n', CLI_U64, &count, "N",
	  "watch: stop after N samples (default: go on)" },
	{ "interval-ms", 'i', CLI_U64, &interval_ms, "MS",
	  "watch: time between samples (default 1000)" },
	{ "output", 'o', CLI_STR, &out_path, "FILE",
	  "write there instead of stdout" },
	{ "quiet", 'q', CLI_FLAG, &quiet, NULL,
	  "do not say which device was chosen" },
	{ 0 },
};
static const struct cli_tool tool = {
	.name = "t0-device",
	.summary = "list the devices and show what is known of one",
	.usage = "list [options]\ninfo [options]\nsensors [options]\n"
		 "watch [options]",
	.opt = opts,
	.notes = "watch refreshes a table on a terminal; elsewhere it prints "
		 "a line per sample\n(with --json an object per line).  What "
		 "the kernel does not give is n/a.\n\n"
		 "Exit: 0 done, 2 trouble, 77 no device like the one asked "
		 "for.",
};

static bool emit(const struct table *t, struct err *e)
{
	const enum table_format f = json ? TABLE_JSON :
				    csv	 ? TABLE_CSV :
					   TABLE_TEXT;
	char *text = NULL;
	size_t len = 0;

	if (!out_path)
		return table_print(t, f, stdout, e) && stdout_check(e);
	FILE *mem = open_memstream(&text, &len);
	if (!mem)
		return err_set(e, ERR_NOMEM, "no memory for the output");
	bool ok = table_print(t, f, mem, e);
	if (fclose(mem) && ok)
		ok = err_set(e, ERR_NOMEM, "no memory for the output");
	ok = ok && file_write_atomic(out_path, text, len, e);
	free(text);
	return ok;
}

/* ------------------------------------------------------------- list --- */

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

static bool list(struct err *e)
{
	struct kfd_found *found;
	struct table t;
	int n;

	bool ok = kfd_list(&found, &n, e);
	table_init(&t, "#index,device,name,gfx,#CUs,#VRAM_GB,pci,origin,"
		       "usable,why_not");
	for (int i = 0; i < n; i++)
		list_row(&t, i, &found[i]);
	ok = ok && emit(&t, e);
	table_fini(&t);
	free(found);
	return ok;
}

/* ------------------------------------------------------------- info --- */

/* A fact; a value of NULL is "n/a": the kernel does not give it. */
static void fact(struct table *t, const char *name, const char *unit,
		 const char *fmt, ...) T0_PRINTF(4, 5);
static void fact(struct table *t, const char *name, const char *unit,
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

/* NAN means that the kernel does not say. */
static void figure(struct table *t, const char *name, const char *unit,
		   unsigned digits, double v)
{
	if (isnan(v))
		fact(t, name, unit, NULL);
	else
		fact(t, name, unit, "%.*f", (int)digits, v);
}

static void text(struct table *t, const char *name, const char *s)
{
	fact(t, name, NULL, *s ? "%s" : NULL, s);
}

/* 0 means that sysfs has no such line. */
static void number(struct table *t, const char *name, const char *unit,
		   uint64_t v)
{
	if (v)
		fact(t, name, unit, "%llu", (unsigned long long)v);
	else
		fact(t, name, unit, NULL);
}

static void hex(struct table *t, const char *name, uint64_t v)
{
	if (v)
		fact(t, name, NULL, "0x%llx", (unsigned long long)v);
	else
		fact(t, name, NULL, NULL);
}

static void shape_facts(struct table *t, const struct kfd_info *info)
{
	const struct kfd_node *n = &info->node;

	number(t, "compute units", NULL, n->cu_count);
	number(t, "SIMDs", NULL, n->simd_count);
	number(t, "SIMDs per CU", NULL, n->simd_per_cu);
	number(t, "shader engines", NULL, n->engines);
	number(t, "shader arrays", NULL, n->array_count);
	number(t, "waves per SIMD", NULL, n->max_waves_per_simd);
	number(t, "wave size", "lanes", n->wave_size);
	number(t, "VGPRs per SIMD", "wave32", info->vgprs_per_simd);
	number(t, "VGPR granule", "wave32", info->vgpr_granule);
	number(t, "LDS per workgroup", "byte", n->lds_bytes);
	number(t, "scratch slots per CU", "waves", n->scratch_slots_cu);
	number(t, "max shader clock", "MHz", n->clk_max_mhz);
}

static void memory_facts(struct table *t, const struct kfd_node *n)
{
	number(t, "VRAM", "byte", n->vram_bytes);
	if (n->vram_bytes)
		fact(t, "VRAM seen by host", NULL, "%s",
		     n->large_bar ? "all (large BAR)" : "no (small BAR)");
	number(t, "VRAM width", "bit", n->vram_width_bits);
	number(t, "max memory clock", "MHz", n->mem_clk_max_mhz);
	number(t, "L0 vector cache", "KiB", n->l0_kib);
	number(t, "scalar cache", "KiB", n->l1s_kib);
	number(t, "instruction cache", "KiB", n->l1i_kib);
	number(t, "L1 (GL1)", "KiB", n->gl1_kib);
	number(t, "L2", "KiB", n->l2_kib);
	number(t, "L3 (MALL)", "KiB", n->l3_kib);
	number(t, "caches listed", NULL, n->n_caches);
	number(t, "link to host", "MB/s", n->link_max_mbps);
}

static void identity_facts(struct table *t, const struct kfd_info *info)
{
	const struct kfd_node *n = &info->node;

	fact(t, "device", NULL, "%s", info->spec);
	fact(t, "name", NULL, "%s", info->name);
	fact(t, "gfx", NULL, "%s", info->gfx);
	fact(t, "driver", NULL, "%s", info->driver);
	fact(t, "origin of figures", NULL, "%s", info->origin);
	fact(t, "KFD version", NULL, "%u.%u", info->kfd_major, info->kfd_minor);
	fact(t, "topology node", NULL, "%d", n->index);
	number(t, "GPU id", NULL, n->gpu_id);
	hex(t, "vendor", n->vendor_id);
	hex(t, "device id", n->device_id);
	fact(t, "pci", NULL, "%s", info->pci);
	fact(t, "render node", NULL, "/dev/dri/renderD%d", n->render_minor);
	hex(t, "unique id", n->unique_id);
	hex(t, "capability", n->capability);
	/* Low ten bits: what other tools print as the MEC version. */
	number(t, "MEC firmware", NULL, n->fw_version & 0x3ff);
	number(t, "SDMA firmware", NULL, n->sdma_fw_version);
}

static void runtime_facts(struct table *t, struct kfd_dev *dev)
{
	const struct kfd_info *info = kfd_info(dev);
	struct kfd_clock c;
	uint64_t left;

	number(t, "timestamp rate", "Hz", info->tick_hz);
	if (kfd_clock_read(dev, &c, NULL))
		fact(t, "device clock", "tick", "%llu",
		     (unsigned long long)c.gpu_ticks);
	else
		fact(t, "device clock", "tick", NULL);
	if (kfd_vram_available(dev, &left, NULL))
		fact(t, "VRAM available", "byte", "%llu",
		     (unsigned long long)left);
	else
		fact(t, "VRAM available", "byte", NULL);
	hex(t, "LDS aperture", info->lds_base);
	hex(t, "scratch aperture", info->scratch_base);
	hex(t, "GPU VM from", info->gpuvm_base);
	hex(t, "GPU VM to", info->gpuvm_limit);
	fact(t, "wave exceptions", NULL, "%s",
	     info->runtime_enabled ? "reported" : "by queue only");
	fact(t, "HDP flush register", NULL, "%s",
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
	text(t, "CU bitmap", b.len ? b.data : "");
	figure(t, "CUs in bitmap", NULL, 0, d->has_cu_bitmap ? on : NAN);
	buf_fini(&b);
}

static void drm_facts(struct table *t, const struct kfd_drm *d)
{
	text(t, "marketing name", d->name);
	text(t, "name comes from", d->name_source);
	fact(t, "DRM version", NULL, isnan(d->drm_major) ? NULL : "%.0f.%.0f",
	     d->drm_major, d->drm_minor);
	text(t, "card node", d->card);
	fact(t, "PCI revision", NULL, isnan(d->pci_rev) ? NULL : "0x%02x",
	     isnan(d->pci_rev) ? 0u : (unsigned)d->pci_rev);
	figure(t, "active CUs", NULL, 0, d->cu_active);
	cu_bitmap_fact(t, d);
	figure(t, "max shader clock (DRM)", "MHz", 0, d->sclk_max_mhz);
	figure(t, "max memory clock (DRM)", "MHz", 0, d->mclk_max_mhz);
	figure(t, "counter clock", "kHz", 0, d->counter_khz);
	figure(t, "render backends", NULL, 0, d->render_backends);
	figure(t, "VRAM (DRM)", "byte", 0, d->vram_bytes);
	figure(t, "VRAM usable", "byte", 0, d->vram_usable_bytes);
	figure(t, "VRAM in the host's window", "byte", 0, d->visible_bytes);
	figure(t, "GTT", "byte", 0, d->gtt_bytes);
	text(t, "VBIOS", d->vbios);
	text(t, "link speed", d->link_speed);
	text(t, "link width", d->link_width);
	text(t, "performance level", d->perf_level);
	for (int i = 0; i < d->n_fw; i++) {
		char name[48];

		snprintf(name, sizeof(name), "firmware %s", d->fw[i].name);
		fact(t, name, NULL, d->fw[i].known ? "%u (feature %u)" : NULL,
		     d->fw[i].version, d->fw[i].feature);
	}
}

static void sensor_facts(struct table *t, const struct kfd_sensors *s)
{
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++)
		figure(t, c->name, c->unit, c->digits, kfd_sensor_value(s, c));
}

static bool open_device(struct kfd_dev **dev, struct err *e)
{
	if (!kfd_open(dev, device, e))
		return false;
	if (!quiet)
		fprintf(stderr, "t0-device: device: %s\n",
			kfd_info(*dev)->why);
	return true;
}

static bool info(struct err *e)
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
	bool ok = emit(&t, e);
	table_fini(&t);
	kfd_close(dev);
	return ok;
}

/* ---------------------------------------------------------- sensors --- */

static bool read_sensors(struct kfd_dev *dev, struct kfd_sensors *s,
			 struct err *e)
{
	return kfd_sensors_read(dev, s) ||
	       err_set(e, ERR_UNSUPPORTED, "%s gives no sensor at all; "
		       "is %s an amdgpu card?", kfd_info(dev)->spec,
		       kfd_info(dev)->pci);
}

static bool sensors(struct err *e)
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
	ok = ok && emit(&t, e);
	table_fini(&t);
	kfd_close(dev);
	return ok;
}

/* ------------------------------------------------------------ watch --- */

static int width(const struct kfd_sensor_column *c)
{
	const int name = (int)strlen(c->name),
		  value = c->unit[0] == 'b' ? 11 : 5;

	return 2 + (name > value ? name : value);
}

/* One sample as a line: NAN is n/a, an empty field, or null. */
static void sample_line(FILE *f, const struct kfd_sensors *s, uint64_t start)
{
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
			fprintf(f, "%*.*f", json || csv ? 0 : width(c),
				(int)c->digits, v);
		else if (!csv)
			fprintf(f, "%*s", json ? 0 : width(c),
				json ? "null" : "n/a");
	}
	fputs(json ? "}\n" : "\n", f);
}

static void sample_head(FILE *f)
{
	if (json)
		return;
	fprintf(f, csv ? "time_s" : "%8s", "time_s");
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++)
		fprintf(f, csv ? ",%*s" : "%*s", csv ? 0 : width(c), c->name);
	fputc('\n', f);
}

/* On a terminal: the table of `sensors`, over the one before. */
static bool redraw(const struct kfd_sensors *s, bool first, struct err *e)
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

static bool watch_loop(struct kfd_dev *dev, FILE *f, bool terminal,
		       struct err *e)
{
	const uint64_t start = time_mono_ns();
	struct kfd_sensors s;

	if (!terminal)
		sample_head(f);
	for (uint64_t n = 0; !count || n < count; n++) {
		const uint64_t due = start + n * interval_ms * 1000000u;
		const uint64_t now = time_mono_ns();
		const uint64_t rest = n && due > now ? due - now : 0;
		const struct timespec nap = { (time_t)(rest / 1000000000u),
					      (long)(rest % 1000000000u) };

		nanosleep(&nap, NULL);
		if (!read_sensors(dev, &s, e))
			return false;
		if (terminal && !redraw(&s, n == 0, e))
			return false;
		if (!terminal)
			sample_line(f, &s, start);
		/* Each sample is there as soon as it is taken. */
		if (fflush(f))
			return err_sys(e, ERR_IO, errno, "%s",
				       out_path ? out_path : "stdout");
	}
	return true;
}

static bool watch(struct err *e)
{
	FILE *f = out_path ? fopen(out_path, "w") : stdout;
	struct kfd_dev *dev;

	if (!f)
		return err_sys(e, ERR_IO, errno, "%s", out_path);
	bool ok = open_device(&dev, e);
	if (ok) {
		ok = watch_loop(dev, f,
				!out_path && !json && !csv && isatty(1), e);
		kfd_close(dev);
	}
	if (out_path && fclose(f) && ok)
		ok = err_sys(e, ERR_IO, errno, "%s", out_path);
	return ok;
}

static bool run(const char *verb, struct err *e)
{
	static const struct {
		const char *name;
		bool (*fn)(struct err *e);
	} verbs[] = {
		{ "list", list },
		{ "info", info },
		{ "sensors", sensors },
		{ "watch", watch },
	};

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verb, verbs[i].name))
			return verbs[i].fn(e);
	return err_set(e, ERR_USAGE, "\"%s\": wanted list, info, sensors or "
		       "watch", verb);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	bool done = false, ok;
	char spec[256];
	int first;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		return err_report(tool.name, &e);
	if (done)
		return EXIT_YES;
	if (!device)
		device = getenv("T0_DEVICE");
	device = kfd_spec(device, getenv("T0_VISIBLE_DEVICES"), spec);
	if (json && csv)
		ok = err_set(&e, ERR_USAGE, "--json and --csv: choose one");
	else if (argc - first != 1)
		ok = err_set(&e, ERR_USAGE,
			     "%d operands; wanted one of list, info, sensors, "
			     "watch", argc - first);
	else if (interval_ms > 86400000)
		ok = err_set(&e, ERR_USAGE, "--interval-ms %llu: wanted at "
			     "most a day", (unsigned long long)interval_ms);
	else
		ok = run(argv[first], &e);
	return ok ? EXIT_YES : err_report(tool.name, &e);
}
