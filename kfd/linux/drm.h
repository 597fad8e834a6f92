/*
 * kfd/linux/drm.h - what the graphics side of the driver says of a device: identity,
 * memory use, firmware, and sensors.
 *
 * All of it comes through the device's driver seam (DRM ioctls on the render
 * node, files of sysfs), so that a card and the gfx1100 in software are read
 * by the same code.  On a card libdrm_amdgpu adds its marketing name.
 *
 * What the kernel does not give is NAN (numbers), "" (text) or false: print it
 * as n/a, store it as NULL, never as 0.  A figure may be missing on one board
 * and kernel and there on the next.
 */
#ifndef T0_KFD_DRM_H
#define T0_KFD_DRM_H

#include <stdbool.h>
#include <stdint.h>

#include "kfd/kfd.h"

/* ----------------------------------------------------------- sensors ---- */

struct kfd_sensors {
	uint64_t time_ns; /* CLOCK_MONOTONIC, when reading began */
	double sclk_mhz, mclk_mhz;
	double load_pct;
	double power_w, power_cap_w;
	double edge_c, junction_c, memory_c;
	double vddgfx_mv, fan_rpm;
	double vram_used_bytes, gtt_used_bytes;
	/*
	 * Grows with every reset that lost the contents of VRAM: a change
	 * between two readings says so, whoever caused the reset.
	 */
	double vram_lost;
};
/*
 * One reading.  Cheap enough to be made before and after each measurement
 * (some microseconds in software, below a millisecond on a card); nothing is
 * left open.  false when nothing at all could be read.  Thread-safe.
 */
bool kfd_sensors_read(struct kfd_dev *dev, struct kfd_sensors *out);

/* The figures by name, for tables and databases: NULL ends it. */
struct kfd_sensor_column {
	const char *name; /* "sclk" */
	const char *unit; /* "MHz" */
	unsigned digits;  /* behind the point */
	size_t offset;	  /* of the double in struct kfd_sensors */
};
extern const struct kfd_sensor_column kfd_sensor_columns[];
double kfd_sensor_value(const struct kfd_sensors *s,
			const struct kfd_sensor_column *c);

/* ---------------------------------------------------------- identity ---- */

#define KFD_FIRMWARE_MAX 20
struct kfd_firmware {
	const char *name; /* "MEC" */
	bool known;
	uint32_t version, feature;
};
struct kfd_drm {
	char name[64];		 /* "Radeon RX 7900 XTX" */
	const char *name_source; /* "libdrm", "table" or "topology" */
	char card[32], render[32]; /* "/dev/dri/card0"; "" = not there */
	char vbios[64], link_speed[32], link_width[16], perf_level[32];
	double drm_major, drm_minor; /* of the kernel's interface */
	double device_id, pci_rev, external_rev, family;
	double engines, arrays_per_engine, cu_active;
	bool has_cu_bitmap;
	uint32_t cu_bitmap[4][4]; /* [engine % 4][array, + 2 from 4 on] */
	double sclk_max_mhz, mclk_max_mhz, counter_khz;
	double render_backends;
	double vram_bytes, vram_usable_bytes, visible_bytes, gtt_bytes;
	struct kfd_firmware fw[KFD_FIRMWARE_MAX]; /* n_fw of them asked for */
	int n_fw;
};
/* false and *e when the render node answers no question at all. */
bool kfd_drm_read(struct kfd_dev *dev, struct kfd_drm *out, struct err *e);

/*
 * The board by what tells boards apart, or NULL: several share a device id.
 * pci_rev or cu_count may be 0 = not known.
 */
const char *kfd_drm_board(uint32_t device_id, uint32_t pci_rev,
			  uint32_t cu_count);

#endif
