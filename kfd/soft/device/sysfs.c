/*
 * kfd/soft/device/sysfs.c - sysfs of the PCI function: identity, memory use,
 * clocks, hwmon and the DRM nodes, and the symbolic links by which programs
 * find it.
 *
 * topology.c has /sys/class/kfd, discovery.c the chip's blocks.  The same tables answer read_file()
 * and list_dir() of the driver and fill the tree of real files that other
 * programs are shown (soft_sysfs_export).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kfd/soft/device/dev.h"

#define KFD_DIR "/sys/devices/virtual/kfd/kfd"
#define DRIVER "/sys/bus/pci/drivers/amdgpu"
#define MODULE "/sys/module/amdgpu"
#define DISCOVERY SOFT_PCI_DIR "/ip_discovery" /* discovery.c */

/* ------------------------------------------------------------ contents -- */

/* What is a number: see number_of(). */
enum number {
	NOT_A_NUMBER,
	N_LOAD,
	N_VRAM_TOTAL,
	N_VRAM_USED,
	N_VISIBLE_TOTAL,
	N_VISIBLE_USED,
	N_GTT_TOTAL,
	N_GTT_USED,
	N_EDGE,
	N_JUNCTION,
	N_MEMORY,
	N_POWER,
	N_FAN,
	N_PWM,
	N_VDDGFX,
	N_SCLK_HZ,
	N_MCLK_HZ,
};

typedef void content(struct soft_dev *d, const struct soft_sensors *s,
		     struct buf *out);

static uint64_t used_bytes(struct soft_dev *d, bool host)
{
	uint64_t vram, gtt;

	soft_memory_usage(&d->card[0], &vram, &gtt);
	return host ? gtt : vram;
}

static uint64_t number_of(struct soft_dev *d, const struct soft_sensors *s,
			  enum number number)
{
	switch (number) {
	case NOT_A_NUMBER:
		break;
	case N_LOAD:
		return s->load_pct;
	case N_VRAM_TOTAL:
		return d->o.vram_bytes;
	case N_VRAM_USED:
		return used_bytes(d, false);
	case N_VISIBLE_TOTAL:
		return soft_visible_bytes(d);
	case N_VISIBLE_USED:
		return d->o.small_bar ? 0 : used_bytes(d, false);
	case N_GTT_TOTAL:
		return d->sys_limit;
	case N_GTT_USED:
		return used_bytes(d, true);
	case N_EDGE:
		return s->edge_mc;
	case N_JUNCTION:
		return s->junction_mc;
	case N_MEMORY:
		return s->memory_mc;
	case N_POWER:
		return s->power_uw;
	case N_FAN:
		return s->fan_rpm;
	case N_PWM:
		return s->fan_rpm * 255 / 3300;
	case N_VDDGFX:
		return s->vddgfx_mv;
	case N_SCLK_HZ:
		return s->sclk_mhz * 1000000ull;
	case N_MCLK_HZ:
		return s->mclk_mhz * 1000000ull;
	}
	BUG("number %d of sysfs", number);
}

/* "N: 500Mhz *": levels, the nearest one marked. */
static void levels(struct buf *out, const unsigned *mhz, size_t n, unsigned now)
{
	size_t near = 0;

	for (size_t i = 0; i < n; i++)
		if (abs((int)mhz[i] - (int)now) <
		    abs((int)mhz[near] - (int)now))
			near = i;
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%zu: %uMhz%s\n", i, mhz[i],
			   i == near ? " *" : "");
}

/* Two levels and, between them, where it is now. */
static void show_sclk(struct soft_dev *d, const struct soft_sensors *s,
		      struct buf *out)
{
	const unsigned mhz[] = { SOFT_SCLK_MIN_MHZ, s->sclk_mhz,
				 SOFT_SCLK_MAX_MHZ };
	const bool between = s->sclk_mhz != SOFT_SCLK_MIN_MHZ &&
			     s->sclk_mhz != SOFT_SCLK_MAX_MHZ;
	const unsigned ends[] = { SOFT_SCLK_MIN_MHZ, SOFT_SCLK_MAX_MHZ };

	(void)d;
	levels(out, between ? mhz : ends, between ? 3 : 2, s->sclk_mhz);
}

static void show_mclk(struct soft_dev *d, const struct soft_sensors *s,
		      struct buf *out)
{
	const unsigned mhz[] = { SOFT_MCLK_MIN_MHZ, 456, 772,
				 SOFT_MCLK_MAX_MHZ };

	(void)d;
	levels(out, mhz, ARRAY_SIZE(mhz), s->mclk_mhz);
}

/* The standard header of PCI configuration space. */
static void pci_config(struct soft_dev *d, const struct soft_sensors *s,
		       struct buf *out)
{
	uint8_t c[256] = {
		0x02, 0x10, 0x4c, 0x74, /* vendor, device */
		0x07, 0x04, 0x10, 0x00, /* command, status */
		SOFT_PCI_REV, 0x00, 0x00, 0x03, /* revision, VGA controller */
	};

	(void)d, (void)s;
	c[0x2c] = 0x02, c[0x2d] = 0x10, c[0x2e] = 0x3b, c[0x2f] = 0x0e;
	buf_add(out, c, sizeof(c));
}

/* --------------------------------------------------------------- files -- */

/* Below the PCI function unless absolute.  Ends of the values: '\n' added. */
static const struct file {
	const char *path, *text;
	content *fn; /* what changes while the device runs, or is not text */
	enum number number; /* what changes and is a number */
} files[] = {
	{ "vendor", .text = "0x1002" },
	{ "device", .text = "0x744c" },
	{ "subsystem_vendor", .text = "0x1002" },
	{ "subsystem_device", .text = "0x0e3b" },
	{ "revision", .text = "0xc8" },
	{ "class", .text = "0x030000" },
	{ "irq", .text = "0" },
	{ "enable", .text = "1" },
	{ "boot_vga", .text = "0" },
	{ "numa_node", .text = "-1" },
	{ "local_cpulist", .text = "0" },
	{ "uevent",
	  .text = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\n"
		  "PCI_SUBSYS_ID=1002:0E3B\nPCI_SLOT_NAME=0000:03:00.0\n"
		  "MODALIAS=pci:v00001002d0000744Csv00001002sd00000E3Bbc03sc00i00" },
	{ "resource", .text = "0x0000000000000000 0x0000000000000000 "
			      "0x0000000000000000" },
	{ "config", .fn = pci_config },
	{ "current_link_speed", .text = "16.0 GT/s PCIe" },
	{ "current_link_width", .text = "16" },
	{ "max_link_speed", .text = "16.0 GT/s PCIe" },
	{ "max_link_width", .text = "16" },
	{ "unique_id", .text = "7430736f66743030" },
	{ "vbios_version", .text = "T0-SOFT-0000" },
	{ "pcie_replay_count", .text = "0" },
	{ "gpu_busy_percent", .number = N_LOAD },
	{ "mem_info_vram_total", .number = N_VRAM_TOTAL },
	{ "mem_info_vram_used", .number = N_VRAM_USED },
	{ "mem_info_vis_vram_total", .number = N_VISIBLE_TOTAL },
	{ "mem_info_vis_vram_used", .number = N_VISIBLE_USED },
	{ "mem_info_gtt_total", .number = N_GTT_TOTAL },
	{ "mem_info_gtt_used", .number = N_GTT_USED },
	{ "pp_dpm_sclk", .fn = show_sclk },
	{ "pp_dpm_mclk", .fn = show_mclk },
	{ "pp_dpm_pcie", .text = "0: 2.5GT/s, x1\n1: 16.0GT/s, x16 *" },
	{ "power_dpm_force_performance_level", .text = "auto" },
	{ "power_dpm_state", .text = "performance" },
	{ "fw_version/me_fw_version", .text = "0x000005ce" },
	{ "fw_version/pfp_fw_version", .text = "0x000005f5" },
	{ "fw_version/mec_fw_version", .text = "0x000001ee" },
	{ "fw_version/sdma_fw_version", .text = "0x00000014" },
	{ "drm/card0/dev", .text = "226:0" },
	{ "drm/card0/uevent",
	  .text = "MAJOR=226\nMINOR=0\nDEVNAME=dri/card0\nDEVTYPE=drm_minor" },
	{ "drm/renderD128/dev", .text = "226:128" },
	{ "drm/renderD128/uevent",
	  .text = "MAJOR=226\nMINOR=128\nDEVNAME=dri/renderD128\nDEVTYPE=drm_minor" },
	{ "hwmon/hwmon0/name", .text = "amdgpu" },
	{ "hwmon/hwmon0/temp1_input", .number = N_EDGE },
	{ "hwmon/hwmon0/temp1_label", .text = "edge" },
	{ "hwmon/hwmon0/temp1_crit", .text = "100000" },
	{ "hwmon/hwmon0/temp2_input", .number = N_JUNCTION },
	{ "hwmon/hwmon0/temp2_label", .text = "junction" },
	{ "hwmon/hwmon0/temp2_crit", .text = "110000" },
	{ "hwmon/hwmon0/temp3_input", .number = N_MEMORY },
	{ "hwmon/hwmon0/temp3_label", .text = "mem" },
	{ "hwmon/hwmon0/temp3_crit", .text = "108000" },
	{ "hwmon/hwmon0/power1_average", .number = N_POWER },
	{ "hwmon/hwmon0/power1_label", .text = "PPT" },
	{ "hwmon/hwmon0/power1_cap", .text = "355000000" },
	{ "hwmon/hwmon0/power1_cap_default", .text = "355000000" },
	{ "hwmon/hwmon0/power1_cap_max", .text = "408000000" },
	{ "hwmon/hwmon0/power1_cap_min", .text = "0" },
	{ "hwmon/hwmon0/fan1_input", .number = N_FAN },
	{ "hwmon/hwmon0/fan1_min", .text = "0" },
	{ "hwmon/hwmon0/fan1_max", .text = "3300" },
	{ "hwmon/hwmon0/pwm1", .number = N_PWM },
	{ "hwmon/hwmon0/pwm1_enable", .text = "2" },
	{ "hwmon/hwmon0/pwm1_min", .text = "0" },
	{ "hwmon/hwmon0/pwm1_max", .text = "255" },
	{ "hwmon/hwmon0/in0_input", .number = N_VDDGFX },
	{ "hwmon/hwmon0/in0_label", .text = "vddgfx" },
	{ "hwmon/hwmon0/freq1_input", .number = N_SCLK_HZ },
	{ "hwmon/hwmon0/freq1_label", .text = "sclk" },
	{ "hwmon/hwmon0/freq2_input", .number = N_MCLK_HZ },
	{ "hwmon/hwmon0/freq2_label", .text = "mclk" },
	{ KFD_DIR "/dev", .text = "511:0" },
	{ KFD_DIR "/uevent", .text = "MAJOR=511\nMINOR=0\nDEVNAME=kfd" },
	{ KFD_DIR "/proc/", .text = NULL }, /* a folder, empty */
	{ DISCOVERY "/", .text = NULL },
	{ MODULE "/initstate", .text = "live" },
	{ MODULE "/refcnt", .text = "1" },
	{ DRIVER "/bind", .text = "" },
	{ "/proc/modules",
	  .text = "amdgpu 11000000 1 - Live 0x0000000000000000" },
};

/* Links; the first that begins a path is followed. */
static const struct link {
	const char *path, *to;
} links[] = {
	{ "/sys/class/kfd/kfd", KFD_DIR },
	{ "/sys/class/drm/card0", SOFT_PCI_DIR "/drm/card0" },
	{ "/sys/class/drm/renderD128", SOFT_PCI_DIR "/drm/renderD128" },
	{ "/sys/dev/char/226:0", SOFT_PCI_DIR "/drm/card0" },
	{ "/sys/dev/char/226:128", SOFT_PCI_DIR "/drm/renderD128" },
	{ "/sys/class/hwmon/hwmon0", SOFT_PCI_DIR "/hwmon/hwmon0" },
	{ "/sys/bus/pci/devices/0000:03:00.0", SOFT_PCI_DIR },
	{ SOFT_PCI_DIR "/drm/card0/device", SOFT_PCI_DIR },
	{ SOFT_PCI_DIR "/drm/card0/subsystem", "/sys/class/drm" },
	{ SOFT_PCI_DIR "/drm/renderD128/device", SOFT_PCI_DIR },
	{ SOFT_PCI_DIR "/drm/renderD128/subsystem", "/sys/class/drm" },
	{ SOFT_PCI_DIR "/hwmon/hwmon0/device", SOFT_PCI_DIR },
	{ SOFT_PCI_DIR "/subsystem", "/sys/bus/pci" },
	{ SOFT_PCI_DIR "/driver", DRIVER },
	{ DRIVER "/module", MODULE },
};

/* The rest of `path` below the folder `dir`, or NULL. */
static const char *path_below(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/') ?
		       path + n : NULL;
}

/* Follow the links in `path` into out[size]; false if it gets too long. */
static bool resolve_links(const char *path, char *out, size_t size)
{
	char next[512];

	if (snprintf(out, size, "%s", path) >= (int)size)
		return false;
	for (size_t i = 0, hops = 0; i < ARRAY_SIZE(links) && hops < 16; i++) {
		const char *rest = path_below(out, links[i].path);

		if (!rest)
			continue;
		if (snprintf(next, sizeof(next), "%s%s", links[i].to, rest) >=
			    (int)sizeof(next) ||
		    strlen(next) >= size)
			return false;
		memcpy(out, next, strlen(next) + 1);
		i = (size_t)-1;
		hops++;
	}
	return true;
}

static void file_path(const struct file *f, char out[256])
{
	if (f->path[0] == '/')
		snprintf(out, 256, "%s", f->path);
	else
		snprintf(out, 256, SOFT_PCI_DIR "/%s", f->path);
}

static void file_text(struct soft_dev *d, const struct file *f, struct buf *out)
{
	struct soft_sensors s;

	if (f->text) {
		buf_adds(out, f->text);
		buf_addc(out, '\n');
		return;
	}
	soft_sensors_read(&d->card[0], &s);
	if (f->number)
		buf_printf(out, "%" PRIu64 "\n", number_of(d, &s, f->number));
	else if (f->fn)
		f->fn(d, &s, out);
}

int soft_sysfs_read(struct soft_dev *d, const char *path, struct buf *out)
{
	char at[512], mine[256];
	int ret = -ENOENT;

	if (!resolve_links(path, at, sizeof(at)))
		return -ENAMETOOLONG;
	if (strcmp(path, at) && path_below(at, KFD_DIR "/topology"))
		return soft_topology_read(d, at, out);
	if (path_below(at, DISCOVERY))
		return soft_discovery_read(path_below(at, DISCOVERY), out);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		file_path(&files[i], mine);
		if (!strcmp(at, mine)) {
			file_text(d, &files[i], out);
			return 0;
		}
		if (path_below(mine, at))
			ret = -EISDIR;
	}
	return ret;
}

/* The next part of `path` below `dir`, once, as a line of *out. */
static bool list_part(const char *path, const char *dir, struct buf *out)
{
	const char *rest = path_below(path, dir);
	char line[256];
	size_t n;

	if (!rest || rest[0] != '/' || !rest[1])
		return rest;
	n = strcspn(++rest, "/");
	snprintf(line, sizeof(line), "\n%.*s\n", (int)n, rest);
	/* A line begins after the newline of the one before. */
	if (out->len && (!strncmp(out->data, line + 1, n + 1) ||
			 strstr(out->data, line)))
		return true;
	buf_adds(out, line + 1);
	return true;
}

int soft_sysfs_list(struct soft_dev *d, const char *path, struct buf *out)
{
	struct buf names = { 0 };
	char at[512], mine[256];
	bool found = false;
	int ret;

	if (!resolve_links(path, at, sizeof(at)))
		return -ENAMETOOLONG;
	if (strcmp(path, at) && path_below(at, KFD_DIR "/topology"))
		return soft_topology_list(d, at, out);
	if (path_below(at, DISCOVERY))
		return soft_discovery_list(path_below(at, DISCOVERY), out);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		file_path(&files[i], mine);
		found |= list_part(mine, at, &names);
	}
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		found |= list_part(links[i].path, at, &names);
	if (!strcmp(at, KFD_DIR))
		buf_adds(&names, "topology\n");
	ret = names.len ? 0 : found ? -ENOTDIR : -ENOENT;
	if (!strcmp(at, KFD_DIR "/proc"))
		ret = 0;
	if (!ret && names.len)
		buf_add(out, names.data, names.len);
	buf_fini(&names);
	return ret;
}

bool soft_sysfs_live(const char *path)
{
	char at[512], mine[256];

	if (!resolve_links(path, at, sizeof(at)))
		return false;
	if (path_below(at, KFD_DIR "/topology"))
		return strstr(at, "/used_memory");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		file_path(&files[i], mine);
		if ((files[i].fn || files[i].number) &&
		    !strcmp(at, mine))
			return true;
	}
	return false;
}

/* -------------------------------------------------------------- export -- */

/* Make the folders that lead to `path`. */
static bool make_parents(const char *path, struct err *e)
{
	char at[1024];

	snprintf(at, sizeof(at), "%s", path);
	for (char *p = at + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(at, 0755) && errno != EEXIST)
			return err_sys(e, ERR_IO, errno, "%s: mkdir", at);
		*p = '/';
	}
	return true;
}

static bool write_file(const char *root, const char *path, const struct buf *b,
		       struct err *e)
{
	char at[1024];
	FILE *f;

	snprintf(at, sizeof(at), "%s%s", root, path);
	if (!make_parents(at, e))
		return false;
	f = fopen(at, "w");
	if (!f)
		return err_sys(e, ERR_IO, errno, "%s", at);
	if (b->len)
		fwrite(b->data, 1, b->len, f);
	if (ferror(f) | fclose(f))
		return err_sys(e, ERR_IO, errno, "%s", at);
	return true;
}

/* Links lead upwards and down again, so that they stay below the root. */
static bool write_link(const char *root, const struct link *l, struct err *e)
{
	char at[1024], to[512] = "";
	size_t same = 0;

	for (size_t i = 0; l->path[i] && l->path[i] == l->to[i]; i++)
		if (l->path[i] == '/')
			same = i;
	for (const char *p = l->path + same + 1; (p = strchr(p, '/')); p++)
		strcat(to, "../");
	if (l->to[same])
		strcat(to, l->to + same + 1);
	snprintf(at, sizeof(at), "%s%s", root, l->path);
	if (!make_parents(at, e))
		return false;
	if (symlink(to[0] ? to : ".", at))
		return err_sys(e, ERR_IO, errno, "%s: symlink", at);
	return true;
}

/* A link that discovery.c has made, if it is one. */
static bool write_block_link(const char *root, const char *path, bool *good,
			     struct err *e)
{
	const char *rest = path_below(path, DISCOVERY);
	char to[512];
	unsigned hw_id;

	if (!rest || !soft_discovery_link(rest, &hw_id))
		return false;
	snprintf(to, sizeof(to), "%.*s/%u",
		 (int)(strrchr(path, '/') - path), path, hw_id);
	*good = write_link(root, &(struct link){ path, to }, e);
	return true;
}

/* Copy what is below `path`, folder by folder. */
static bool write_tree(struct soft_dev *d, const char *root, const char *path,
		       struct err *e)
{
	struct buf b = { 0 };
	char *save, at[512];
	bool good = true;

	if (write_block_link(root, path, &good, e))
		return good;
	if (!soft_topology_read(d, path, &b)) {
		good = write_file(root, path, &b, e);
		buf_fini(&b);
		return good;
	}
	snprintf(at, sizeof(at), "%s%s/", root, path);
	good = make_parents(at, e);
	soft_topology_list(d, path, &b);
	for (char *name = b.len ? strtok_r(b.data, "\n", &save) : NULL;
	     name && good; name = strtok_r(NULL, "\n", &save)) {
		snprintf(at, sizeof(at), "%s/%s", path, name);
		good = write_tree(d, root, at, e);
	}
	buf_fini(&b);
	return good;
}

bool soft_sysfs_export(struct kfd_driver *drv, const char *root, struct err *e)
{
	static const char *const nodes[] = { "/dev/kfd", "/dev/dri/card0",
					     "/dev/dri/renderD128" };
	struct soft_dev *d = (struct soft_dev *)drv;
	bool good = write_tree(d, root, KFD_DIR "/topology", e) &&
		    write_tree(d, root, DISCOVERY, e);
	char path[512];

	for (size_t i = 0; good && i < ARRAY_SIZE(files); i++) {
		struct buf b = { 0 };

		file_path(&files[i], path);
		if (path[strlen(path) - 1] == '/') {
			char at[1024];

			snprintf(at, sizeof(at), "%s%s", root, path);
			good = make_parents(at, e);
			continue;
		}
		file_text(d, &files[i], &b);
		good = write_file(root, path, &b, e);
		buf_fini(&b);
	}
	for (size_t i = 0; good && i < ARRAY_SIZE(links); i++)
		good = write_link(root, &links[i], e);
	for (size_t i = 0; good && i < ARRAY_SIZE(nodes); i++)
		good = write_file(root, nodes[i], &(struct buf){ 0 }, e);
	return good;
}
