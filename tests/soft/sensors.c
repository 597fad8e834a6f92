/*
 * drm.c of the runtime over the soft device: identity, sensors and their model,
 * and what becomes of figures that the kernel does not give.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "kfd/kfd.h"
#include "tests/code.h"
#include "tests/soft/softdev.h"

/* A driver in front of the soft one that refuses what `refuse` says. */
struct front {
	struct kfd_driver driver;
	struct kfd_driver *soft;
};
static bool no_drm, no_files;

/* A slow host's work is slow and no hang. */
#define DEADLINE_NS 200000000000u

static struct kfd_driver *soft_of(struct kfd_driver *d)
{
	return ((struct front *)d)->soft;
}

static int f_open(struct kfd_driver *d, const char *path, int flags)
{
	return soft_of(d)->open(soft_of(d), path, flags);
}

static int f_close(struct kfd_driver *d, int fd)
{
	return soft_of(d)->close(soft_of(d), fd);
}

static int f_ioctl(struct kfd_driver *d, int fd, unsigned long request,
		   void *arg)
{
	if (no_drm && (request >> 8 & 0xff) == 'd')
		return -EACCES;
	return soft_of(d)->ioctl(soft_of(d), fd, request, arg);
}

static void *f_mmap(struct kfd_driver *d, void *addr, size_t size, int prot,
		    int flags, int fd, uint64_t offset, int *err_no)
{
	return soft_of(d)->mmap(soft_of(d), addr, size, prot, flags, fd,
				offset, err_no);
}

static int f_munmap(struct kfd_driver *d, void *addr, size_t size)
{
	return soft_of(d)->munmap(soft_of(d), addr, size);
}

static int f_read(struct kfd_driver *d, const char *path, struct buf *out)
{
	if (no_files && strstr(path, "/device/"))
		return -ENOENT;
	return soft_of(d)->read_file(soft_of(d), path, out);
}

static int f_list(struct kfd_driver *d, const char *path, struct buf *out)
{
	if (no_files && strstr(path, "/device/"))
		return -ENOENT;
	return soft_of(d)->list_dir(soft_of(d), path, out);
}

static void f_ring(struct kfd_driver *d, volatile uint64_t *doorbell,
		   uint64_t value)
{
	soft_of(d)->ring(soft_of(d), doorbell, value);
}

static void f_free(struct kfd_driver *d)
{
	soft_of(d)->free(soft_of(d));
	free(d);
}

static struct kfd_driver *front_new(struct err *e)
{
	struct front *f = xcalloc(1, sizeof(*f));

	f->driver = (struct kfd_driver){
		.name = "soft", .origin = "emulated", .open = f_open,
		.close = f_close, .ioctl = f_ioctl, .mmap = f_mmap,
		.munmap = f_munmap, .read_file = f_read, .list_dir = f_list,
		.ring = f_ring, .free = f_free,
	};
	f->soft = kfd_soft_new(NULL, e);
	return &f->driver;
}

static void test_identity(struct kfd_dev *dev)
{
	struct err e = { 0 };
	struct kfd_drm d;
	int known = 0;

	if (!ok(kfd_drm_read(dev, &d, &e), "the DRM side answers"))
		return diag("%s", e.msg);
	is_str(d.name, "Radeon RX 7900 XTX", "name");
	is_str(d.name_source, "table", "which libdrm was not asked for");
	is_str(d.card, "/dev/dri/card0", "card node");
	is_str(d.render, "/dev/dri/renderD128", "render node");
	is_f64(d.device_id, 0x744c, "device id");
	is_f64(d.cu_active, 96, "CUs");
	is_f64(d.sclk_max_mhz, 2371, "clock");
	is_f64(d.vram_bytes, 25753026560.0, "VRAM");
	is_str(d.link_width, "16", "link");
	for (int i = 0; i < d.n_fw; i++) {
		known += d.fw[i].known;
		if (!strcmp(d.fw[i].name, "MEC"))
			is_u64(d.fw[i].version, 494, "MEC firmware");
		if (!strcmp(d.fw[i].name, "SMC"))
			ok(!d.fw[i].known, "SMC firmware is n/a");
	}
	is_i64(known, 4, "four of %d firmwares are given", d.n_fw);
}

static void test_boards(void)
{
	is_str(isa_board_name(0x744c, 0xc8, 96), "Radeon RX 7900 XTX",
	       "96 CUs are an XTX");
	is_str(isa_board_name(0x744c, 0xcc, 84), "Radeon RX 7900 XT",
	       "84 an XT");
	is_str(isa_board_name(0x744c, 0xc8, 80), "Radeon RX 7900 GRE",
	       "CUs count more than the revision");
	is_str(isa_board_name(0x744c, 0xce, 0), "Radeon RX 7900 GRE",
	       "which counts when they are not known");
	is_str(isa_board_name(0x744c, 0xc8, 17), NULL,
	       "a board that nobody knows has no name");
	is_str(isa_board_name(0x1234, 0, 96), NULL, "nor has another chip");
}

static void nap_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* Keep the card busy for a while; the highest load seen, the last reading. */
static bool busy(struct kfd_dev *dev, double *load, struct kfd_sensors *hot)
{
	const struct code code = code_of("tests/soft/sensors.s", "busy");
	const struct kfd_raw_desc desc = { .rsrc1 = 0xc0000,
					   .rsrc2 = 1u << 7,
					   .properties = 1u << 10 };
	const struct kfd_kernel *k;
	struct kfd_queue *q;
	struct err e = { 0 };
	const uint64_t deadline = time_mono_ns() + DEADLINE_NS;
	uint64_t ticket = 0, before, end;
	bool good = kfd_code_raw(dev, code.dw, code.size_bytes, &desc, &k,
				 &e) &&
		    kfd_queue_new(dev, NULL, &q, &e);

	if (!good) {
		diag("%s", e.msg);
		return false;
	}
	end = time_mono_ns() + 600000000u;
	while (good && time_mono_ns() < end) {
		struct kfd_launch l = { .kernel = k, .grid = { 128, 1, 1 },
					.wg = { 32, 1, 1 },
					.deadline_ns = deadline };

		/* One is always waiting, whatever keeps this thread. */
		before = ticket;
		good = kfd_submit(q, &l, &ticket, &e) &&
		       (ticket < 4 || kfd_wait(q, before - 2, deadline, NULL, &e));
		nap_ms(5);
		if (kfd_sensors_read(dev, hot) && hot->load_pct > *load)
			*load = hot->load_pct;
	}
	good = good && kfd_drain(q, deadline, &e);
	if (!good)
		diag("%s", e.msg);
	kfd_queue_free(q, NULL);
	kfd_code_unload(k->code);
	return good;
}

static void test_sensors(struct kfd_dev *dev)
{
	struct kfd_sensors cold, hot, later;
	struct kfd_mem *m;
	double load = 0, each_us;
	uint64_t t;

	ok(kfd_sensors_read(dev, &cold), "sensors answer");
	is_f64(cold.sclk_mhz, 500, "idle: lowest shader clock");
	is_f64(cold.mclk_mhz, 96, "idle: lowest memory clock");
	is_f64(cold.load_pct, 0, "idle: no load");
	is_f64(cold.power_w, 18, "idle: 18 W");
	is_f64(cold.edge_c, 26.8, "idle: 25 C and 0.1 K per W");
	ok(cold.junction_c > cold.edge_c, "the hot spot is hotter");
	is_f64(cold.power_cap_w, 355, "board power");
	is_f64(cold.fan_rpm, 0, "the fan stands, which is 0 and not n/a");
	is_f64(cold.vram_lost, 0, "VRAM was never lost");
	ok(busy(dev, &load, &hot), "kernels run");
	ok(load > 0 && load <= 100, "under load: %.0f %%", load);
	ok(hot.edge_c > cold.edge_c, "it gets warmer: %.1f C", hot.edge_c);
	nap_ms(1000);
	kfd_sensors_read(dev, &later);
	ok(later.load_pct < 5, "and load goes down again: %.0f %%",
	   later.load_pct);
	ok(later.edge_c > cold.edge_c, "heat goes slower");
	/* This thread's own time: whoever else runs does not count. */
	t = time_thread_ns();
	for (int i = 0; i < 100; i++)
		kfd_sensors_read(dev, &later);
	each_us = (double)(time_thread_ns() - t) / 100e3;
	ok(each_us < 5000, "a reading takes %.0f us", each_us);
	ok(kfd_mem_alloc(dev, KFD_VRAM, 1 << 20, "a", &m, NULL), "a MiB");
	kfd_sensors_read(dev, &hot);
	is_f64(hot.vram_used_bytes - later.vram_used_bytes, 1 << 20,
	       "VRAM use grows by it");
	kfd_mem_free(dev, m);
}

static void test_missing(struct kfd_dev *dev)
{
	struct kfd_sensors s;
	struct err e = { 0 };
	struct kfd_drm d;
	int given = 0;

	no_drm = true;
	ok(kfd_sensors_read(dev, &s), "files alone give something");
	ok(isnan(s.sclk_mhz) && isnan(s.vram_lost), "clocks are n/a, not 0");
	ok(s.power_w >= 18 && s.power_w < 25, "power comes from hwmon");
	ok(!kfd_drm_read(dev, &d, &e), "identity needs the ioctls");
	has_str(e.msg, "/dev/dri/renderD128", "and says which node is silent");
	no_drm = false;
	no_files = true;
	ok(kfd_sensors_read(dev, &s), "ioctls alone give something");
	ok(s.power_w >= 18 && s.power_w < 25,
	   "power then comes from the driver's sensor");
	ok(!isnan(s.edge_c) && isnan(s.junction_c) && isnan(s.fan_rpm),
	   "edge too, junction and fan are n/a");
	ok(kfd_drm_read(dev, &d, &e), "identity is there");
	is_str(d.vbios, "", "without what files say");
	is_str(d.card, "", "and without the card node");
	no_drm = true;
	ok(!kfd_sensors_read(dev, &s), "nothing at all is told");
	for (const struct kfd_sensor_column *c = kfd_sensor_columns; c->name;
	     c++)
		given += !isnan(kfd_sensor_value(&s, c));
	is_i64(given, 0, "and every figure is n/a");
	no_drm = no_files = false;
}

int main(void)
{
	struct err e = { 0 };
	struct kfd_dev *dev;

	if (!kfd_open_driver(&dev, front_new(&e), -1, "test", &e)) {
		diag("%s", e.msg);
		return 1;
	}
	test_boards();
	test_identity(dev);
	test_sensors(dev);
	test_missing(dev);
	kfd_close(dev);
	return plan_done();
}
