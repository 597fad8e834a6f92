/*
 * t0-device: which devices there are, and everything the kernel says of one.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/kfd.h"

static const char *device, *out_path;
static bool json, csv, quiet;

static const struct cli_opt opts[] = {
	{ "device", 'd', CLI_STR, &device, "DEVICE",
	  "soft, kfd or kfd:N (default: T0_DEVICE, then the first gfx11 GPU, "
	  "then soft)" },
	{ "json", 0, CLI_FLAG, &json, NULL, "print JSON" },
	{ "csv", 0, CLI_FLAG, &csv, NULL, "print CSV" },
	{ "output", 'o', CLI_STR, &out_path, "FILE",
	  "write there instead of stdout" },
	{ "quiet", 'q', CLI_FLAG, &quiet, NULL,
	  "do not say which device was chosen" },
	{ 0 },
};
static const struct cli_tool tool = {
	.name = "t0-device",
	.summary = "list the devices and show what is known of one",
	.usage = "list [options]\ninfo [options]",
	.opt = opts,
	.notes = "Exit: 0 done, 2 trouble, 77 no device like the one asked "
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

static bool info(struct err *e)
{
	struct kfd_dev *dev;
	struct table t;

	if (!kfd_open(&dev, device, e))
		return false;
	if (!quiet)
		fprintf(stderr, "t0-device: device: %s\n", kfd_info(dev)->why);
	table_init(&t, "fact,value,unit");
	identity_facts(&t, kfd_info(dev));
	shape_facts(&t, kfd_info(dev));
	memory_facts(&t, &kfd_info(dev)->node);
	runtime_facts(&t, dev);
	bool ok = emit(&t, e);
	table_fini(&t);
	kfd_close(dev);
	return ok;
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	bool done = false, ok;
	int first;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		return err_report(tool.name, &e);
	if (done)
		return EXIT_YES;
	if (!device)
		device = getenv("T0_DEVICE");
	if (json && csv)
		ok = err_set(&e, ERR_USAGE, "--json and --csv: choose one");
	else if (argc - first != 1)
		ok = err_set(&e, ERR_USAGE,
			     "%d operands; wanted one of list, "
			     "info",
			     argc - first);
	else if (!strcmp(argv[first], "list"))
		ok = list(&e);
	else if (!strcmp(argv[first], "info"))
		ok = info(&e);
	else
		ok = err_set(&e, ERR_USAGE, "\"%s\": wanted list or info",
			     argv[first]);
	return ok ? EXIT_YES : err_report(tool.name, &e);
}
