/*
 * The DRM side of the soft device: ioctls of the render and card nodes, the
 * files of the PCI function, and the tree that other programs are shown.
 * Values wanted are those of a real board with device id 0x744c.
 */
#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/soft/softdev.h"

static struct sd s;

/* AMDGPU_INFO: 0x20 bytes, pointer, size, query, then the query's own. */
struct info {
	uint64_t pointer;
	uint32_t size, query, arg[4];
};
#define INFO 0x40206445ul

static int ask(uint32_t query, uint32_t arg0, uint32_t arg1, void *out,
	       uint32_t size)
{
	struct info i = { sd_ptr(out), size, query, { arg0, arg1 } };

	return s.d->ioctl(s.d, s.drm, INFO, &i);
}

static uint32_t u32_at(const uint8_t *p, size_t at)
{
	uint32_t v;

	memcpy(&v, p + at, 4);
	return v;
}

static uint64_t u64_at(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, 8);
	return v;
}

static void test_version(void)
{
	struct {
		int32_t major, minor, patch, pad;
		uint64_t name_len, name, date_len, date, desc_len, desc;
	} v = { .name_len = 16 };
	char name[16] = "";

	v.name = sd_ptr(name);
	is_i64(s.d->ioctl(s.d, s.drm, 0xc0406400, &v), 0, "VERSION answers");
	is_i64(v.major, 3, "with major version 3");
	is_str(name, "amdgpu", "as amdgpu");
	is_u64(v.name_len, 6, "six bytes long");
	is_i64(s.d->ioctl(s.d, s.drm, 0xc0106455, &v), -EOPNOTSUPP,
	       "scheduling priorities are not there");
	is_i64(s.d->ioctl(s.d, s.kfd, 0xc0406400, &v), -ENOTTY,
	       "/dev/kfd knows no DRM ioctl");
}

static void test_device(void)
{
	uint8_t d[512];
	unsigned cus = 0;

	memset(d, 0xee, sizeof(d));
	is_i64(ask(0x16, 0, 0, d, 368), 0, "DEV_INFO answers");
	is_u64(d[368], 0xee, "no more than was asked for");
	is_u64(u32_at(d, 0), 0x744c, "device id");
	is_u64(u32_at(d, 12), 0xc8, "PCI revision of an XTX");
	is_u64(u32_at(d, 16), 145, "family of GC 11.0.0");
	is_u64(u32_at(d, 20), 6, "six shader engines");
	is_u64(u32_at(d, 28), 100000, "the counter runs at 100 MHz");
	is_u64(u64_at(d, 32), 2371000, "shader clock in kHz");
	is_u64(u32_at(d, 48), 96, "96 CUs");
	for (int i = 0; i < 16; i++)
		cus += (unsigned)__builtin_popcount(
			u32_at(d, 56 + 4 * (size_t)i));
	is_u64(cus, 96, "and as many bits in the bitmap");
	is_u64(u32_at(d, 56 + 8), 0xff, "engine 4 stands in row 0, column 2");
	is_u64(u32_at(d, 56 + 2 * 16 + 8), 0, "row 2 has no columns 2 and 3");
	is_u64(u32_at(d, 176), 9, "GDDR6");
	is_u64(u32_at(d, 180), 384, "384 bits wide");
	is_u64(u64_at(d, 336), 0xffff800000000000, "high addresses");
	is_i64(ask(0x16, 0, 0, d, 512), 0, "a longer DEV_INFO answers too");
	is_u64(u64_at(d, 368), 500000, "lowest shader clock behind it");
	is_u64(u64_at(d, 408), 100663296, "and the size of the MALL");
}

static void test_queries(void)
{
	uint8_t m[96];
	uint32_t v[4];
	struct sd_mem a = sd_alloc(&s, 1 << 20, VRAM_FLAGS);

	is_i64(ask(0, 0, 0, v, 4), 0, "ACCEL_WORKING answers");
	is_u64(v[0], 1, "with yes");
	is_i64(ask(0x19, 0, 0, m, 96), 0, "MEMORY answers");
	is_u64(u64_at(m, 0), 25753026560, "24 GB of VRAM");
	is_u64(u64_at(m, 8), 25681096704, "less is usable");
	is_u64(u64_at(m, 16), 1 << 20, "and a MiB is used");
	is_u64(u64_at(m, 32), 25753026560, "the host sees all of it");
	is_i64(ask(0x15, 0x263e, 1, v, 4), 0, "GB_ADDR_CONFIG can be read");
	is_u64(v[0], 0x545, "and has the board's value");
	is_i64(ask(0x15, 0x1234, 1, v, 4), -EINVAL, "others cannot");
	is_i64(ask(0x0e, 8, 0, v, 8), 0, "the MEC's firmware answers");
	is_u64(v[0], 494, "with its version");
	is_i64(ask(0x0e, 0x0a, 0, v, 8), -EINVAL,
	       "what is not known is refused, not 0");
	is_i64(ask(0x1d, 3, 0, v, 4), 0, "the temperature answers");
	ok(v[0] > 20000 && v[0] < 110000, "in thousandths of a degree");
	is_i64(ask(0x1d, 6, 0, v, 4), -EOPNOTSUPP,
	       "a discrete card has no VDDNB");
	is_i64(ask(0x1f, 0, 0, v, 4), 0, "VRAM_LOST_COUNTER answers");
	is_u64(v[0], 0, "nothing was lost");
	is_i64(ask(0x18, 0, 0, m, 8), 0, "NUM_EVICTIONS answers");
	is_i64(ask(0x77, 0, 0, v, 4), -EINVAL, "an unknown query is EINVAL");
	is_i64(ask(0, 0, 0, NULL, 4), -EINVAL, "no pointer is EINVAL");
	is_i64(ask(0, 0, 0, v, 0), -EINVAL, "no size is EINVAL");
	sd_free(&s, &a);
}

#define PCI "/sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0"

static const char *file(const char *path)
{
	static struct buf b;
	int ret;

	buf_reset(&b);
	ret = s.d->read_file(s.d, path, &b);
	return ret ? strerror(-ret) : b.len ? b.data : "";
}

static void test_files(void)
{
	struct buf b = { 0 };

	is_str(file(PCI "/device"), "0x744c\n", "the PCI function's device id");
	is_str(file("/sys/class/drm/card0/device/vendor"), "0x1002\n",
	       "links are followed");
	is_str(file("/sys/dev/char/226:128/device/hwmon/hwmon0/name"),
	       "amdgpu\n", "from the render node to hwmon");
	is_str(file("/sys/class/drm/card0/device/mem_info_vram_total"),
	       "25753026560\n", "VRAM in bytes");
	has_str(file(PCI "/pp_dpm_sclk"), "0: 500Mhz *",
		"idle, the lowest shader clock is marked");
	is_str(file(PCI "/nothing"), "No such file or directory",
	       "other files are not there");
	is_str(file(PCI "/hwmon"), "Is a directory", "folders are no files");
	is_i64(s.d->list_dir(s.d, "/sys/dev/char/226:128/device/drm", &b), 0,
	       "the DRM folder is listed");
	is_str(b.data, "card0\nrenderD128\n", "with both nodes, once each");
	buf_reset(&b);
	is_i64(s.d->list_dir(s.d, PCI "/vendor", &b), -ENOTDIR,
	       "a file is no folder");
	is_i64(s.d->list_dir(s.d, "/sys/nothing", &b), -ENOENT,
	       "nor is what does not exist");
	buf_fini(&b);
}

/* Every file of the tree is what the driver says, links included. */
static unsigned compare(const char *root, const char *path, unsigned *n)
{
	char at[PATH_MAX], next[1024];
	struct dirent *de;
	unsigned bad = 0;
	DIR *dir;

	snprintf(at, sizeof(at), "%s%s", root, path);
	dir = opendir(at);
	if (!dir) {
		struct buf real = { 0 }, said = { 0 };

		++*n;
		bad = !file_read(at, 0, &real, NULL) ||
		      s.d->read_file(s.d, path, &said) ||
		      real.len != said.len ||
		      (real.len && memcmp(real.data, said.data, real.len));
		/* These may have gone on. */
		if (bad && soft_sysfs_live(s.d, path))
			bad = 0;
		if (bad)
			diag("%s differs", path);
		buf_fini(&real);
		buf_fini(&said);
		return bad;
	}
	while ((de = readdir(dir))) {
		struct stat st;

		if (de->d_name[0] == '.')
			continue;
		snprintf(next, sizeof(next), "%.700s/%.255s", path, de->d_name);
		snprintf(at, sizeof(at), "%s%s", root, next);
		if (lstat(at, &st) || !S_ISLNK(st.st_mode))
			bad += compare(root, next, n);
		else if (stat(at, &st))
			bad++, diag("%s leads nowhere", next);
	}
	closedir(dir);
	return bad;
}

static void test_export(void)
{
	char root[] = "/tmp/t0-test-XXXXXX", cmd[64], at[256], link[256];
	struct err e = { 0 };
	unsigned n = 0;
	ssize_t len;

	if (!ok(mkdtemp(root), "a folder is made"))
		return;
	ok(soft_sysfs_export(s.d, root, &e), "the tree is written");
	is_u64(compare(root, "/sys", &n), 0,
	       "its files are what the driver says, and links lead to files");
	ok(n > 280, "%u files were compared, 206 of them caches", n);
	snprintf(at, sizeof(at), "%s/sys/dev/char/226:128", root);
	len = readlink(at, link, sizeof(link) - 1);
	link[len > 0 ? len : 0] = '\0';
	is_str(link, "../../devices/pci0000:00/0000:00:01.0/0000:03:00.0/drm/"
		     "renderD128", "links are relative");
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", root);
	ok(!system(cmd), "the tree is removed");
	ok(!soft_sysfs_export(s.d, "/proc/nothing", &e),
	   "a folder that cannot be written is an error");
	has_str(e.msg, "/proc/nothing", "that names it");
}

static void test_small_bar(void)
{
	const struct soft_options o = { .threads = 1, .small_bar = true };
	struct sd t = sd_open(&o), keep = s;
	uint8_t m[96];

	s = t;
	is_i64(ask(0x19, 0, 0, m, 96), 0, "MEMORY with a small BAR");
	is_u64(u64_at(m, 0), 25753026560, "all of VRAM is there");
	is_u64(u64_at(m, 32), 256 << 20, "the host sees 256 MiB");
	s = keep;
	sd_close(&t);
}

/* Less memory than the kernel keeps for itself. */
static void test_no_vram(void)
{
	const struct soft_options o = { .threads = 1, .vram_bytes = 32 << 20 };
	struct sd t = sd_open(&o), keep = s;
	uint8_t m[24];

	s = t;
	is_i64(ask(0x14, 0, 0, m, 24), 0, "VRAM_GTT of a card of 32 MiB");
	is_u64(u64_at(m, 0), 0, "programs get none of it");
	s = keep;
	sd_close(&t);
}

int main(void)
{
	const struct soft_options o = { .threads = 1 };

	s = sd_open(&o);
	test_version();
	test_device();
	test_queries();
	test_files();
	test_export();
	test_small_bar();
	test_no_vram();
	sd_close(&s);
	return plan_done();
}
