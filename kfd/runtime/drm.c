/*
 * kfd/runtime/drm.c - sensors and identity from the graphics driver.
 *
 * One INFO query or file after the other; each may be refused without harm to
 * the others.
 */
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xf86drm.h>

#include "isa/tables/tables.h"
#include "kfd/runtime/runtime.h"

#define INFO_REQUEST DRM_IOCTL_AMDGPU_INFO

/* ----------------------------------------------------------- queries --- */

/* An INFO query: false when it is not answered.  The rest of `q` is set. */
static bool query_info(struct kfd_dev *dev, struct drm_amdgpu_info *q,
		       uint32_t query, void *out, uint32_t size)
{
	int r;

	memset(out, 0, size);
	q->query = query;
	q->return_pointer = (uintptr_t)out;
	q->return_size = size;
	for (int tries = 0; tries < 100; tries++) {
		r = dev->d->ioctl(dev->d, dev->render_fd, INFO_REQUEST, q);
		if (r != -EINTR && r != -EAGAIN)
			return r >= 0;
	}
	return false;
}

static bool ask_simple(struct kfd_dev *dev, uint32_t query, void *out,
		       uint32_t size)
{
	struct drm_amdgpu_info q = { 0 };

	return query_info(dev, &q, query, out, size);
}

static double ask_u64(struct kfd_dev *dev, uint32_t query)
{
	uint64_t v;

	return ask_simple(dev, query, &v, sizeof(v)) ? (double)v : NAN;
}

static double ask_sensor(struct kfd_dev *dev, uint32_t type)
{
	struct drm_amdgpu_info q = { .sensor_info.type = type };
	uint32_t v;

	return query_info(dev, &q, AMDGPU_INFO_SENSOR, &v, sizeof(v)) ? v : NAN;
}

/* The first line of a file below the device's folder; "" if unreadable. */
static void read_line(struct kfd_dev *dev, const char *file, char *out,
		      size_t size)
{
	char path[256];
	struct buf b = { 0 };

	out[0] = '\0';
	snprintf(path, sizeof(path), "/sys/dev/char/226:%d/device/%s",
		 dev->info.node.render_minor, file);
	if (dev->d->read_file(dev->d, path, &b) >= 0 && b.len)
		snprintf(out, size, "%.*s", (int)strcspn(b.data, "\n"), b.data);
	buf_fini(&b);
}

static double read_number(struct kfd_dev *dev, const char *file)
{
	char line[64], *end;
	double v;

	read_line(dev, file, line, sizeof(line));
	v = strtod(line, &end);
	return end == line ? NAN : v;
}

/* The first name that begins with `start` in a folder of the device. */
static bool find_entry(struct kfd_dev *dev, const char *folder,
		       const char *start, char *out, size_t size)
{
	char path[256];
	struct buf b = { 0 };
	bool found = false;

	snprintf(path, sizeof(path), "/sys/dev/char/226:%d/device/%s",
		 dev->info.node.render_minor, folder);
	if (dev->d->list_dir(dev->d, path, &b) >= 0)
		for (char *p = b.data; p && *p && !found;) {
			const size_t n = strcspn(p, "\n");

			found = !strncmp(p, start, strlen(start));
			if (found)
				snprintf(out, size, "%.*s", (int)n, p);
			p += n + (p[n] == '\n');
		}
	buf_fini(&b);
	return found;
}

/* ------------------------------------------------------------- sensors -- */

#define COLUMN(field, name, unit, digits) \
	{ name, unit, digits, offsetof(struct kfd_sensors, field) }
const struct kfd_sensor_column kfd_sensor_columns[] = {
	COLUMN(sclk_mhz, "sclk", "MHz", 0),
	COLUMN(mclk_mhz, "mclk", "MHz", 0),
	COLUMN(load_pct, "load", "%", 0),
	COLUMN(power_w, "power", "W", 1),
	COLUMN(power_cap_w, "power_cap", "W", 0),
	COLUMN(edge_c, "edge", "C", 1),
	COLUMN(junction_c, "junction", "C", 1),
	COLUMN(memory_c, "memory", "C", 1),
	COLUMN(vddgfx_mv, "vddgfx", "mV", 0),
	COLUMN(fan_rpm, "fan", "rpm", 0),
	COLUMN(vram_used_bytes, "vram_used", "byte", 0),
	COLUMN(gtt_used_bytes, "gtt_used", "byte", 0),
	COLUMN(vram_lost, "vram_lost", "resets", 0),
	{ 0 },
};

double kfd_sensor_value(const struct kfd_sensors *s,
			const struct kfd_sensor_column *c)
{
	double v;

	memcpy(&v, (const char *)s + c->offset, sizeof(v));
	return v;
}

static double prefer_number(double a, double b)
{
	return isnan(a) ? b : a;
}

/* Temperatures have labels: their numbers differ between boards. */
static void read_temperatures(struct kfd_dev *dev, const char *hwmon,
			      struct kfd_sensors *s)
{
	const struct {
		const char *label;
		double *to;
	} t[] = { { "edge", &s->edge_c },
		  { "junction", &s->junction_c },
		  { "mem", &s->memory_c } };
	char file[128], label[32];

	for (int i = 1; i <= 3; i++) {
		snprintf(file, sizeof(file), "hwmon/%s/temp%d_label", hwmon, i);
		read_line(dev, file, label, sizeof(label));
		snprintf(file, sizeof(file), "hwmon/%s/temp%d_input", hwmon, i);
		for (size_t k = 0; k < ARRAY_SIZE(t); k++)
			if (!strcmp(label, t[k].label))
				*t[k].to = read_number(dev, file) / 1000;
	}
}

static double read_hwmon(struct kfd_dev *dev, const char *hwmon,
			 const char *name, double unit)
{
	char file[128];

	snprintf(file, sizeof(file), "hwmon/%s/%s", hwmon, name);
	return read_number(dev, file) / unit;
}

bool kfd_sensors_read(struct kfd_dev *dev, struct kfd_sensors *s)
{
	char hwmon[32];
	uint32_t lost;
	bool any = false;

	s->time_ns = time_mono_ns();
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++)
		*(double *)((char *)s + c->offset) = NAN;
	if (find_entry(dev, "hwmon", "hwmon", hwmon, sizeof(hwmon))) {
		read_temperatures(dev, hwmon, s);
		/* Which of the two there is depends on board and kernel. */
		s->power_w = read_hwmon(dev, hwmon, "power1_average", 1e6);
		if (isnan(s->power_w))
			s->power_w = read_hwmon(dev, hwmon, "power1_input",
						1e6);
		s->power_cap_w = read_hwmon(dev, hwmon, "power1_cap", 1e6);
		s->fan_rpm = read_hwmon(dev, hwmon, "fan1_input", 1);
	}
	s->sclk_mhz = ask_sensor(dev, AMDGPU_INFO_SENSOR_GFX_SCLK);
	s->mclk_mhz = ask_sensor(dev, AMDGPU_INFO_SENSOR_GFX_MCLK);
	s->load_pct =
		prefer_number(ask_sensor(dev, AMDGPU_INFO_SENSOR_GPU_LOAD),
			      read_number(dev, "gpu_busy_percent"));
	s->vddgfx_mv = ask_sensor(dev, AMDGPU_INFO_SENSOR_VDDGFX);
	if (isnan(s->edge_c))
		s->edge_c = ask_sensor(dev, AMDGPU_INFO_SENSOR_GPU_TEMP) / 1000;
	if (isnan(s->power_w))
		s->power_w = ask_sensor(dev, AMDGPU_INFO_SENSOR_GPU_AVG_POWER);
	s->vram_used_bytes = ask_u64(dev, AMDGPU_INFO_VRAM_USAGE);
	s->gtt_used_bytes = ask_u64(dev, AMDGPU_INFO_GTT_USAGE);
	if (ask_simple(dev, AMDGPU_INFO_VRAM_LOST_COUNTER, &lost, sizeof(lost)))
		s->vram_lost = lost;
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++)
		any |= !isnan(kfd_sensor_value(s, c));
	return any;
}

/* ------------------------------------------------------------ identity -- */

/* On a card libdrm knows more names than we do. */
static bool libdrm_name(struct kfd_dev *dev, struct kfd_drm *out)
{
	/* What libdrm says of chips that its table does not have. */
	static const char *const generic[] = { "AMD Radeon Graphics",
					       "AMD Radeon (TM) Graphics" };
	amdgpu_device_handle h;
	uint32_t major, minor;
	const char *name;
	bool found;

	if (strcmp(dev->d->name, "kfd") ||
	    amdgpu_device_initialize(dev->render_fd, &major, &minor, &h))
		return false;
	name = amdgpu_get_marketing_name(h);
	found = name && *name;
	for (size_t i = 0; found && i < ARRAY_SIZE(generic); i++)
		found = strcmp(name, generic[i]);
	if (found)
		snprintf(out->name, sizeof(out->name), "%s", name);
	amdgpu_device_deinitialize(h);
	return found;
}

/* Its other nodes and its revision, from libdrm's list of devices. */
static void libdrm_nodes(struct kfd_dev *dev, struct kfd_drm *out)
{
	drmDevicePtr list[64];
	const int n = strcmp(dev->d->name, "kfd") ?
			      0 :
			      drmGetDevices2(DRM_DEVICE_GET_PCI_REVISION, list,
					     ARRAY_SIZE(list));

	for (int i = 0; i < n; i++) {
		const drmDevicePtr d = list[i];

		if (!(d->available_nodes & 1 << DRM_NODE_RENDER) ||
		    strcmp(d->nodes[DRM_NODE_RENDER], out->render))
			continue;
		if (d->available_nodes & 1 << DRM_NODE_PRIMARY)
			snprintf(out->card, sizeof(out->card), "%s",
				 d->nodes[DRM_NODE_PRIMARY]);
		if (isnan(out->pci_rev) && d->bustype == DRM_BUS_PCI &&
		    d->deviceinfo.pci->revision_id != 0xff)
			out->pci_rev = d->deviceinfo.pci->revision_id;
	}
	if (n > 0)
		drmFreeDevices(list, n);
}

static void read_name(struct kfd_dev *dev, struct kfd_drm *out)
{
	const char *board =
		isa_board_name(dev->info.node.device_id,
			       isnan(out->pci_rev) ? 0 : (uint32_t)out->pci_rev,
			       dev->info.node.cu_count);

	out->name_source = "libdrm";
	if (libdrm_name(dev, out))
		return;
	out->name_source = board ? "table" : "topology";
	snprintf(out->name, sizeof(out->name), "%s",
		 board ? board : dev->info.name);
}

static void read_device(struct kfd_dev *dev, struct kfd_drm *out)
{
	struct drm_amdgpu_info_device d;

	if (!ask_simple(dev, AMDGPU_INFO_DEV_INFO, &d, sizeof(d)))
		return;
	out->device_id = d.device_id;
	out->pci_rev = d.pci_rev;
	out->external_rev = d.external_rev;
	out->family = d.family;
	out->engines = d.num_shader_engines;
	out->arrays_per_engine = d.num_shader_arrays_per_engine;
	out->cu_active = d.cu_active_number;
	out->has_cu_bitmap = true;
	memcpy(out->cu_bitmap, d.cu_bitmap, sizeof(out->cu_bitmap));
	out->sclk_max_mhz = (double)d.max_engine_clock / 1000;
	out->mclk_max_mhz = (double)d.max_memory_clock / 1000;
	out->counter_khz = d.gpu_counter_freq;
	out->render_backends = d.num_rb_pipes;
}

static void read_memory(struct kfd_dev *dev, struct kfd_drm *out)
{
	struct drm_amdgpu_memory_info m;

	if (!ask_simple(dev, AMDGPU_INFO_MEMORY, &m, sizeof(m)))
		return;
	out->vram_bytes = (double)m.vram.total_heap_size;
	out->vram_usable_bytes = (double)m.vram.usable_heap_size;
	out->visible_bytes = (double)m.cpu_accessible_vram.total_heap_size;
	out->gtt_bytes = (double)m.gtt.total_heap_size;
}

static void read_firmware(struct kfd_dev *dev, struct kfd_drm *out)
{
	/* Those after TOC are newer than some libdrm headers. */
	static const struct {
		uint32_t type;
		const char *name;
	} t[] = {
		{ AMDGPU_INFO_FW_GFX_ME, "ME" },
		{ AMDGPU_INFO_FW_GFX_PFP, "PFP" },
		{ AMDGPU_INFO_FW_GFX_CE, "CE" },
		{ AMDGPU_INFO_FW_GFX_RLC, "RLC" },
		{ AMDGPU_INFO_FW_GFX_MEC, "MEC" },
		{ AMDGPU_INFO_FW_SDMA, "SDMA" },
		{ AMDGPU_INFO_FW_SMC, "SMC" },
		{ 0x1a, "MES" },
		{ 0x19, "MES KIQ" },
		{ 0x1b, "IMU" },
		{ AMDGPU_INFO_FW_SOS, "SOS" },
		{ AMDGPU_INFO_FW_ASD, "ASD" },
		{ AMDGPU_INFO_FW_VCN, "VCN" },
		{ AMDGPU_INFO_FW_DMCUB, "DMCUB" },
		{ AMDGPU_INFO_FW_TOC, "TOC" },
	};
	struct drm_amdgpu_info_firmware fw;

	_Static_assert(ARRAY_SIZE(t) <= KFD_FIRMWARE_MAX, "fw[]");
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct drm_amdgpu_info q = { .query_fw.fw_type = t[i].type };
		struct kfd_firmware *f = &out->fw[out->n_fw++];

		f->name = t[i].name;
		/* Version 0: the kernel knows the kind, this card has none. */
		f->known = query_info(dev, &q, AMDGPU_INFO_FW_VERSION, &fw,
				      sizeof(fw)) &&
			   fw.ver;
		f->version = fw.ver;
		f->feature = fw.feature;
	}
}

static void read_files(struct kfd_dev *dev, struct kfd_drm *out)
{
	char card[20];

	snprintf(out->render, sizeof(out->render), "/dev/dri/renderD%d",
		 dev->info.node.render_minor);
	if (find_entry(dev, "drm", "card", card, sizeof(card)))
		snprintf(out->card, sizeof(out->card), "/dev/dri/%s", card);
	read_line(dev, "vbios_version", out->vbios, sizeof(out->vbios));
	read_line(dev, "current_link_speed", out->link_speed,
		  sizeof(out->link_speed));
	read_line(dev, "current_link_width", out->link_width,
		  sizeof(out->link_width));
	read_line(dev, "power_dpm_force_performance_level", out->perf_level,
		  sizeof(out->perf_level));
}

bool kfd_drm_read(struct kfd_dev *dev, struct kfd_drm *out, struct err *e)
{
	struct drm_version v = { 0 };

	*out = (struct kfd_drm){
		.drm_major = NAN, .drm_minor = NAN, .device_id = NAN,
		.pci_rev = NAN, .external_rev = NAN, .family = NAN,
		.engines = NAN, .arrays_per_engine = NAN, .cu_active = NAN,
		.sclk_max_mhz = NAN, .mclk_max_mhz = NAN, .counter_khz = NAN,
		.render_backends = NAN, .vram_bytes = NAN,
		.vram_usable_bytes = NAN, .visible_bytes = NAN,
		.gtt_bytes = NAN,
	};
	read_files(dev, out);
	if (dev->d->ioctl(dev->d, dev->render_fd, DRM_IOCTL_VERSION, &v) < 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "%s answers no DRM ioctl: is it the render node "
			       "of an amdgpu card?", out->render);
	out->drm_major = v.version_major;
	out->drm_minor = v.version_minor;
	read_device(dev, out);
	libdrm_nodes(dev, out);
	read_name(dev, out);
	read_memory(dev, out);
	read_firmware(dev, out);
	return true;
}
