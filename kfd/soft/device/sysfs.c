/*
 * kfd/soft/device/sysfs.c - sysfs of the cards' PCI functions: identity, memory
 * use, clocks, hwmon and the DRM nodes, and the symbolic links by which
 * programs find them.
 *
 * topology.c has /sys/class/kfd, discovery.c the chip's blocks.  The same
 * tables answer read_file() and list_dir() of the driver and fill the tree of
 * real files that other programs are shown (soft_sysfs_export).
 *
 * In the tables {c} is the number of a card, {r} its render node's, {p} its PCI
 * address, {d} its folder, {u} its unique id, {i} its PCI device, {j} subsystem
 * and {v} revision, in capitals so its digits, and {w} and {W} its usual and
 * highest limit of power; what has one of them, or is below a card's folder, is
 * there for each card.
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

typedef void content(struct soft_card *c, const struct soft_sensors *s,
		     struct buf *out);

static uint64_t used_bytes(struct soft_card *c, bool host)
{
	uint64_t vram, gtt;

	soft_memory_usage(c, &vram, &gtt);
	return host ? gtt : vram;
}

static uint64_t number_of(struct soft_card *c, const struct soft_sensors *s,
			  enum number number)
{
	const struct soft_dev *d = c->dev;

	switch (number) {
	case NOT_A_NUMBER:
		break;
	case N_LOAD:
		return s->load_pct;
	case N_VRAM_TOTAL:
		return c->vram_bytes;
	case N_VRAM_USED:
		return used_bytes(c, false);
	case N_VISIBLE_TOTAL:
		return soft_visible_bytes(c);
	case N_VISIBLE_USED:
		return d->o.small_bar ? 0 : used_bytes(c, false);
	case N_GTT_TOTAL:
		return d->sys_limit;
	case N_GTT_USED:
		return used_bytes(c, true);
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
static void show_sclk(struct soft_card *c, const struct soft_sensors *s,
		      struct buf *out)
{
	const unsigned *ends = c->chip->sclk_mhz;
	const unsigned mhz[] = { ends[0], s->sclk_mhz, ends[1] };
	const bool between = s->sclk_mhz != ends[0] && s->sclk_mhz != ends[1];

	levels(out, between ? mhz : ends, between ? 3 : 2, s->sclk_mhz);
}

static void show_mclk(struct soft_card *c, const struct soft_sensors *s,
		      struct buf *out)
{
	levels(out, c->chip->mclk_mhz, ARRAY_SIZE(c->chip->mclk_mhz),
	       s->mclk_mhz);
}

/* The standard header of PCI configuration space. */
static void pci_config(struct soft_card *c, const struct soft_sensors *s,
		       struct buf *out)
{
	const struct isa_chip *chip = c->chip;
	const uint16_t words[128] = {
		SOFT_PCI_VENDOR,
		chip->device_id,
		0x0407,
		0x0010, /* command, status */
		chip->pci_rev,
		0x0300, /* VGA controller */
		[0x16] = SOFT_PCI_VENDOR,
		chip->subdevice_id,
	};

	(void)s;
	buf_add(out, words, sizeof(words));
}

/* --------------------------------------------------------------- files -- */

/* Below the PCI function unless absolute.  Ends of the values: '\n' added. */
static const struct file {
	const char *path, *text;
	content *fn; /* what changes while the device runs, or is not text */
	enum number number; /* what changes and is a number */
} files[] = {
	{ "vendor", .text = "0x1002" },
	{ "device", .text = "0x{i}" },
	{ "subsystem_vendor", .text = "0x1002" },
	{ "subsystem_device", .text = "0x{j}" },
	{ "revision", .text = "0x{v}" },
	{ "class", .text = "0x030000" },
	{ "irq", .text = "0" },
	{ "enable", .text = "1" },
	{ "boot_vga", .text = "0" },
	{ "numa_node", .text = "-1" },
	{ "local_cpulist", .text = "0" },
	{ "uevent",
	  .text = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:{I}\n"
		  "PCI_SUBSYS_ID=1002:{J}\nPCI_SLOT_NAME={p}\n"
		  "MODALIAS=pci:v00001002d0000{I}sv00001002sd0000{J}bc03sc00i00" },
	{ "resource", .text = "0x0000000000000000 0x0000000000000000 "
			      "0x0000000000000000" },
	{ "config", .fn = pci_config },
	{ "current_link_speed", .text = "16.0 GT/s PCIe" },
	{ "current_link_width", .text = "16" },
	{ "max_link_speed", .text = "16.0 GT/s PCIe" },
	{ "max_link_width", .text = "16" },
	{ "unique_id", .text = "{u}" },
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
	{ "drm/card{c}/dev", .text = "226:{c}" },
	{ "drm/card{c}/uevent",
	  .text = "MAJOR=226\nMINOR={c}\nDEVNAME=dri/card{c}\nDEVTYPE=drm_minor" },
	{ "drm/renderD{r}/dev", .text = "226:{r}" },
	{ "drm/renderD{r}/uevent",
	  .text = "MAJOR=226\nMINOR={r}\nDEVNAME=dri/renderD{r}\nDEVTYPE=drm_minor" },
	{ "hwmon/hwmon{c}/name", .text = "amdgpu" },
	{ "hwmon/hwmon{c}/temp1_input", .number = N_EDGE },
	{ "hwmon/hwmon{c}/temp1_label", .text = "edge" },
	{ "hwmon/hwmon{c}/temp1_crit", .text = "100000" },
	{ "hwmon/hwmon{c}/temp2_input", .number = N_JUNCTION },
	{ "hwmon/hwmon{c}/temp2_label", .text = "junction" },
	{ "hwmon/hwmon{c}/temp2_crit", .text = "110000" },
	{ "hwmon/hwmon{c}/temp3_input", .number = N_MEMORY },
	{ "hwmon/hwmon{c}/temp3_label", .text = "mem" },
	{ "hwmon/hwmon{c}/temp3_crit", .text = "108000" },
	{ "hwmon/hwmon{c}/power1_average", .number = N_POWER },
	{ "hwmon/hwmon{c}/power1_label", .text = "PPT" },
	{ "hwmon/hwmon{c}/power1_cap", .text = "{w}" },
	{ "hwmon/hwmon{c}/power1_cap_default", .text = "{w}" },
	{ "hwmon/hwmon{c}/power1_cap_max", .text = "{W}" },
	{ "hwmon/hwmon{c}/power1_cap_min", .text = "0" },
	{ "hwmon/hwmon{c}/fan1_input", .number = N_FAN },
	{ "hwmon/hwmon{c}/fan1_min", .text = "0" },
	{ "hwmon/hwmon{c}/fan1_max", .text = "3300" },
	{ "hwmon/hwmon{c}/pwm1", .number = N_PWM },
	{ "hwmon/hwmon{c}/pwm1_enable", .text = "2" },
	{ "hwmon/hwmon{c}/pwm1_min", .text = "0" },
	{ "hwmon/hwmon{c}/pwm1_max", .text = "255" },
	{ "hwmon/hwmon{c}/in0_input", .number = N_VDDGFX },
	{ "hwmon/hwmon{c}/in0_label", .text = "vddgfx" },
	{ "hwmon/hwmon{c}/freq1_input", .number = N_SCLK_HZ },
	{ "hwmon/hwmon{c}/freq1_label", .text = "sclk" },
	{ "hwmon/hwmon{c}/freq2_input", .number = N_MCLK_HZ },
	{ "hwmon/hwmon{c}/freq2_label", .text = "mclk" },
	{ KFD_DIR "/dev", .text = "511:0" },
	{ KFD_DIR "/uevent", .text = "MAJOR=511\nMINOR=0\nDEVNAME=kfd" },
	{ KFD_DIR "/proc/", .text = NULL }, /* a folder, empty */
	{ "ip_discovery/", .text = NULL }, /* discovery.c */
	{ MODULE "/initstate", .text = "live" },
	{ MODULE "/refcnt", .text = "1" },
	{ MODULE "/parameters/cwsr_enable", .text = "1" },
	{ MODULE "/parameters/emu_mode", .text = "0" },
	{ KFD_SOFT_MARK, .text = "1" },
	{ DRIVER "/bind", .text = "" },
	{ "/proc/modules",
	  .text = "amdgpu 11000000 1 - Live 0x0000000000000000" },
};

/* Links; the first that begins a path is followed. */
static const struct link {
	const char *path, *to;
} links[] = {
	{ "/sys/class/kfd/kfd", KFD_DIR },
	{ "/sys/class/drm/card{c}", "{d}/drm/card{c}" },
	{ "/sys/class/drm/renderD{r}", "{d}/drm/renderD{r}" },
	{ "/sys/dev/char/226:{c}", "{d}/drm/card{c}" },
	{ "/sys/dev/char/226:{r}", "{d}/drm/renderD{r}" },
	{ "/sys/class/hwmon/hwmon{c}", "{d}/hwmon/hwmon{c}" },
	{ "/sys/bus/pci/devices/{p}", "{d}" },
	{ "{d}/drm/card{c}/device", "{d}" },
	{ "{d}/drm/card{c}/subsystem", "/sys/class/drm" },
	{ "{d}/drm/renderD{r}/device", "{d}" },
	{ "{d}/drm/renderD{r}/subsystem", "/sys/class/drm" },
	{ "{d}/hwmon/hwmon{c}/device", "{d}" },
	{ "{d}/subsystem", "/sys/bus/pci" },
	{ "{d}/driver", DRIVER },
	{ DRIVER "/module", MODULE },
};

/* The rest of `path` below the folder `dir`, or NULL. */
static const char *path_below(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/') ?
		       path + n : NULL;
}

/* ------------------------------------------------------ rows, per card -- */

/* What "{field}" stands for. */
static void put_field(const struct soft_card *c, char field, char *at,
		      size_t room)
{
	const struct isa_chip *chip = c->chip;
	const unsigned i = c->index;

	switch (field) {
	case 'c':
		snprintf(at, room, "%u", i);
		break;
	case 'r':
		snprintf(at, room, "%u", SOFT_RENDER_MINOR + i);
		break;
	case 'p':
		snprintf(at, room, "0000:%02x:00.0", SOFT_PCI_BUS(i));
		break;
	case 'u':
		snprintf(at, room, "%llx", SOFT_UNIQUE_ID + i);
		break;
	case 'i':
	case 'j':
		snprintf(at, room, "%04x",
			 field == 'i' ? chip->device_id : chip->subdevice_id);
		break;
	case 'I':
	case 'J':
		snprintf(at, room, "%04X",
			 field == 'I' ? chip->device_id : chip->subdevice_id);
		break;
	case 'v':
		snprintf(at, room, "%02x", chip->pci_rev);
		break;
	case 'w':
	case 'W':
		snprintf(at, room, "%" PRIu64,
			 field == 'w' ? chip->power_cap_uw :
					chip->power_max_uw);
		break;
	default:
		snprintf(at, room,
			 "/sys/devices/pci0000:00/"
			 "0000:00:01.0/0000:%02x:00.0",
			 SOFT_PCI_BUS(i));
	}
}

/* out[TEXT] = `text` with what stands in braces as it is for the card. */
#define TEXT 320
static void expand_text(const struct soft_card *c, const char *text,
			char out[TEXT])
{
	size_t n = 0;

	for (; *text && n < TEXT - 1; text++) {
		char *at = out + n;
		const size_t room = TEXT - n;

		if (*text != '{') {
			out[n++] = *text;
			continue;
		}
		put_field(c, text[1], at, room);
		n += strlen(at);
		text += 2;
	}
	out[n] = '\0';
}

/* A file or a link: a row of its table, and the card that it is of. */
struct place {
	size_t next_row;
	unsigned next_card;
	const struct file *file;
	struct soft_card *card;
	char path[TEXT], to[TEXT];
};

/* The place of the row, or of the card, that comes next; all zero: the first. */
static bool next_place(struct soft_dev *d, struct place *p, size_t rows,
		       bool per_card, size_t *row)
{
	if (p->next_row == rows)
		return false;
	*row = p->next_row;
	p->card = &d->card[p->next_card];
	if (!per_card || ++p->next_card == d->n_cards) {
		p->next_card = 0;
		p->next_row++;
	}
	return true;
}

static bool next_file(struct soft_dev *d, struct place *p)
{
	const bool of_card = p->next_row < ARRAY_SIZE(files) &&
			     files[p->next_row].path[0] != '/';
	char text[TEXT];
	size_t row;

	if (!next_place(d, p, ARRAY_SIZE(files), of_card, &row))
		return false;
	p->file = &files[row];
	snprintf(text, sizeof(text), "%s%s", of_card ? "{d}/" : "",
		 p->file->path);
	expand_text(p->card, text, p->path);
	return true;
}

static bool next_link(struct soft_dev *d, struct place *p)
{
	const bool of_card = p->next_row < ARRAY_SIZE(links) &&
			     strchr(links[p->next_row].path, '{');
	size_t row;

	if (!next_place(d, p, ARRAY_SIZE(links), of_card, &row))
		return false;
	expand_text(p->card, links[row].path, p->path);
	expand_text(p->card, links[row].to, p->to);
	return true;
}

/* Follow one link in `path`; false: there is none, or it gets too long. */
static bool follow_link(struct soft_dev *d, char *path, size_t size,
			bool *too_long)
{
	struct place p = { 0 };

	while (next_link(d, &p)) {
		const char *rest = path_below(path, p.path);
		char next[512];

		if (!rest)
			continue;
		*too_long = (size_t)snprintf(next, sizeof(next), "%s%s", p.to,
					     rest) >= sizeof(next) ||
			    strlen(next) >= size;
		if (!*too_long)
			memcpy(path, next, strlen(next) + 1);
		return !*too_long;
	}
	return false;
}

/* Follow the links in `path` into out[size]; false if it gets too long. */
static bool resolve_links(struct soft_dev *d, const char *path, char *out,
			  size_t size)
{
	bool too_long = false;

	if (snprintf(out, size, "%s", path) >= (int)size)
		return false;
	for (int hops = 0; hops < 16; hops++)
		if (!follow_link(d, out, size, &too_long))
			break;
	return !too_long;
}

/* What is below a card's ip_discovery (discovery.c), or NULL. */
static const char *below_discovery(const struct soft_dev *d, const char *path,
				   const struct isa_chip **chip)
{
	const char *rest = NULL;
	char dir[TEXT];

	for (unsigned i = 0; i < d->n_cards && !rest; i++) {
		expand_text(&d->card[i], "{d}/ip_discovery", dir);
		rest = path_below(path, dir);
		*chip = d->card[i].chip;
	}
	return rest;
}

static void file_text(struct soft_card *c, const struct file *f,
		      struct buf *out)
{
	struct soft_sensors s;
	char text[TEXT];

	if (f->text) {
		expand_text(c, f->text, text);
		buf_adds(out, text);
		buf_addc(out, '\n');
		return;
	}
	soft_sensors_read(c, &s);
	if (f->number)
		buf_printf(out, "%" PRIu64 "\n", number_of(c, &s, f->number));
	else if (f->fn)
		f->fn(c, &s, out);
}

/* ------------------------------------------------- reading and listing -- */

int soft_sysfs_read(struct soft_dev *d, const char *path, struct buf *out)
{
	const struct isa_chip *chip;
	struct place p = { 0 };
	const char *block;
	int ret = -ENOENT;
	char at[512];

	if (!resolve_links(d, path, at, sizeof(at)))
		return -ENAMETOOLONG;
	if (strcmp(path, at) && path_below(at, KFD_DIR "/topology"))
		return soft_topology_read(d, at, out);
	block = below_discovery(d, at, &chip);
	if (block)
		return soft_discovery_read(chip, block, out);
	while (next_file(d, &p)) {
		if (!strcmp(at, p.path)) {
			file_text(p.card, p.file, out);
			return 0;
		}
		if (path_below(p.path, at))
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
	struct place file = { 0 }, link = { 0 };
	const struct isa_chip *chip;
	struct buf names = { 0 };
	const char *block;
	bool found = false;
	char at[512];
	int ret;

	if (!resolve_links(d, path, at, sizeof(at)))
		return -ENAMETOOLONG;
	if (strcmp(path, at) && path_below(at, KFD_DIR "/topology"))
		return soft_topology_list(d, at, out);
	block = below_discovery(d, at, &chip);
	if (block)
		return soft_discovery_list(chip, block, out);
	while (next_file(d, &file))
		found |= list_part(file.path, at, &names);
	while (next_link(d, &link))
		found |= list_part(link.path, at, &names);
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

bool soft_sysfs_live(struct kfd_driver *drv, const char *path)
{
	struct soft_dev *d = (struct soft_dev *)drv;
	struct place p = { 0 };
	char at[512];

	if (!resolve_links(d, path, at, sizeof(at)))
		return false;
	if (path_below(at, KFD_DIR "/topology"))
		return strstr(at, "/used_memory");
	while (next_file(d, &p))
		if ((p.file->fn || p.file->number) && !strcmp(at, p.path))
			return true;
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
static bool write_link(const char *root, const char *path, const char *target,
		       struct err *e)
{
	char at[1024], to[512] = "";
	size_t same = 0;

	for (size_t i = 0; path[i] && path[i] == target[i]; i++)
		if (path[i] == '/')
			same = i;
	for (const char *p = path + same + 1; (p = strchr(p, '/')); p++)
		strcat(to, "../");
	if (target[same])
		strcat(to, target + same + 1);
	snprintf(at, sizeof(at), "%s%s", root, path);
	if (!make_parents(at, e))
		return false;
	if (symlink(to[0] ? to : ".", at))
		return err_sys(e, ERR_IO, errno, "%s: symlink", at);
	return true;
}

/* A link that discovery.c has made, if it is one. */
static bool write_block_link(const struct soft_dev *d, const char *root,
			     const char *path, bool *good, struct err *e)
{
	const struct isa_chip *chip;
	const char *rest = below_discovery(d, path, &chip);
	char to[512];
	unsigned hw_id;

	if (!rest || !soft_discovery_link(chip, rest, &hw_id))
		return false;
	snprintf(to, sizeof(to), "%.*s/%u",
		 (int)(strrchr(path, '/') - path), path, hw_id);
	*good = write_link(root, path, to, e);
	return true;
}

/* Copy what is below `path`, folder by folder. */
static bool write_tree(struct soft_dev *d, const char *root, const char *path,
		       struct err *e)
{
	struct buf b = { 0 };
	char *save, at[512];
	bool good = true;

	if (write_block_link(d, root, path, &good, e))
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

/* The nodes are files by which the programs' calls are known. */
static bool write_nodes(const struct soft_card *c, const char *root,
			struct err *e)
{
	static const char *const nodes[] = { "/dev/dri/card{c}",
					     "/dev/dri/renderD{r}" };
	char path[TEXT];
	bool good = true;

	for (size_t i = 0; good && i < ARRAY_SIZE(nodes); i++) {
		expand_text(c, nodes[i], path);
		good = write_file(root, path, &(struct buf){ 0 }, e);
	}
	return good;
}

/* A folder has a slash at the end. */
static bool write_place(const struct place *p, const char *root, struct err *e)
{
	struct buf b = { 0 };
	char at[1024];
	bool good;

	if (p->path[strlen(p->path) - 1] == '/') {
		snprintf(at, sizeof(at), "%s%s", root, p->path);
		return make_parents(at, e);
	}
	file_text(p->card, p->file, &b);
	good = write_file(root, p->path, &b, e);
	buf_fini(&b);
	return good;
}

bool soft_sysfs_export(struct kfd_driver *drv, const char *root, struct err *e)
{
	struct soft_dev *d = (struct soft_dev *)drv;
	struct place file = { 0 }, link = { 0 };
	bool good = write_tree(d, root, KFD_DIR "/topology", e) &&
		    write_file(root, "/dev/kfd", &(struct buf){ 0 }, e);
	char path[TEXT];

	for (unsigned i = 0; good && i < d->n_cards; i++) {
		expand_text(&d->card[i], "{d}/ip_discovery", path);
		good = write_tree(d, root, path, e) &&
		       write_nodes(&d->card[i], root, e);
	}
	while (good && next_file(d, &file))
		good = write_place(&file, root, e);
	while (good && next_link(d, &link))
		good = write_link(root, link.path, link.to, e);
	return good;
}
