/* The soft device's sysfs tree: a host and a 7900 XTX, as sysfs shows them. */
#include "tests/soft/softdev.h"

#define TREE "/sys/devices/virtual/kfd/kfd/topology/"

static struct kfd_driver *d;

/* The value of `name` in a properties file; ~0 when it has none. */
static uint64_t prop(const char *path, const char *name)
{
	struct buf b = { 0 };
	char key[64];
	uint64_t v = UINT64_MAX;
	const char *at;

	snprintf(key, sizeof(key), "\n%s ", name);
	buf_addc(&b, '\n');
	if (!d->read_file(d, path, &b)) {
		at = strstr(b.data, key);
		if (at)
			v = strtoull(at + strlen(key), NULL, 10);
	}
	buf_fini(&b);
	return v;
}

static int read_error(const char *path)
{
	struct buf b = { 0 };
	const int ret = d->read_file(d, path, &b);

	buf_fini(&b);
	return ret;
}

static unsigned names(const char *path)
{
	struct buf b = { 0 };
	unsigned n = 0;

	if (d->list_dir(d, path, &b))
		n = UINT32_MAX;
	for (size_t i = 0; i < b.len; i++)
		n += b.data[i] == '\n';
	buf_fini(&b);
	return n;
}

static void test_nodes(void)
{
	static const struct {
		const char *name;
		uint64_t value;
	} gpu[] = {
		{ "simd_count", 192 },
		{ "simd_per_cu", 2 },
		{ "array_count", 12 },
		{ "simd_arrays_per_engine", 2 },
		{ "gfx_target_version", 110000 },
		{ "device_id", 29772 },
		{ "vendor_id", 4098 },
		{ "drm_render_minor", 128 },
		{ "capability", 671588992 },
		{ "caches_count", 206 },
		{ "max_waves_per_simd", 16 },
		{ "lds_size_in_kb", 64 },
		{ "local_mem_size", 0 },
		{ "num_xcc", 1 },
		{ "simd_id_base", 2147488032 },
		{ "fw_version", 2140 },
	};

	is_u64(names(TREE "nodes"), 2, "there are two nodes");
	is_u64(names("/sys/class/kfd/kfd/topology/nodes"), 2,
	       "also through /sys/class");
	for (size_t i = 0; i < ARRAY_SIZE(gpu); i++)
		is_u64(prop(TREE "nodes/1/properties", gpu[i].name),
		       gpu[i].value, "the GPU has %s", gpu[i].name);
	is_u64(prop(TREE "nodes/0/properties", "simd_count"), 0,
	       "node 0 is no GPU");
	ok(prop(TREE "nodes/0/properties", "cpu_cores_count") >= 1,
	   "but has processors");
}

static void test_banks(void)
{
	const char *vram = TREE "nodes/1/mem_banks/0/properties";
	const char *link = TREE "nodes/1/io_links/0/properties";

	is_u64(prop(vram, "heap_type"), 1, "VRAM is visible to the host");
	is_u64(prop(vram, "size_in_bytes"), 25753026560,
	       "and 24 GiB less some");
	is_u64(prop(vram, "width"), 384, "on 384 bits");
	is_u64(prop(TREE "nodes/0/mem_banks/0/properties", "heap_type"), 0,
	       "the host's memory is heap 0");
	is_u64(prop(link, "type"), 2, "the GPU is linked by PCIe");
	ok(prop(link, "node_from") == 1 && prop(link, "node_to") == 0 &&
	   prop(link, "weight") == 20, "directly to node 0");
	is_u64(prop(TREE "nodes/0/io_links/0/properties", "node_to"), 1,
	       "and the host back to it");
}

/* 96 + 48 + 48 + 12 + 1 + 1 caches, each kind with its size. */
static void test_caches(void)
{
	unsigned n[4] = { 0 }, instruction = 0, gl1 = 0, shared = 0;
	char path[128];

	is_u64(names(TREE "nodes/1/caches"), 206, "206 caches are listed");
	for (unsigned i = 0; i < 206; i++) {
		uint64_t level, size;

		snprintf(path, sizeof(path),
			 TREE "nodes/1/caches/%u/properties", i);
		level = prop(path, "level");
		size = prop(path, "size");
		n[level & 3]++;
		instruction += prop(path, "type") == 10;
		gl1 += level == 1 && size == 256;
		shared += (level == 2 && size == 6144) ||
			  (level == 3 && size == 98304);
	}
	ok(n[1] == 204 && n[2] == 1 && n[3] == 1,
	   "204 of level 1, one L2, one L3");
	is_u64(instruction, 48, "48 instruction caches");
	is_u64(gl1, 12, "12 caches of 256 KiB");
	is_u64(shared, 2, "L2 has 6 MiB and L3 96 MiB");
}

static void test_paths(void)
{
	struct buf b = { 0 };

	is_i64(read_error("/etc/passwd"), -ENOENT,
	       "files outside the tree are not there");
	is_i64(read_error(TREE "nodes/2/gpu_id"), -ENOENT, "nor node 2");
	is_i64(read_error(TREE "nodes/1/caches/206/properties"), -ENOENT,
	       "nor cache 206");
	is_i64(read_error(TREE "nodes/1/../1/gpu_id"), -ENOENT,
	       "nor ways around");
	is_i64(read_error(TREE "nodes/1"), -EISDIR, "a folder is no file");
	is_i64(d->list_dir(d, TREE "generation_id", &b), -ENOTDIR,
	       "a file is no folder");
	is_u64(names(TREE "nodes/1/caches/3"), 1, "a cache has properties");
	ok(!d->read_file(d, TREE "nodes/1/gpu_id", &b) &&
	   strtoul(b.data, NULL, 10) == SOFT_GPU_ID,
	   "gpu_id is the one of the apertures");
	buf_fini(&b);
	ok(!d->read_file(d, TREE "nodes/0/gpu_id", &b) &&
	   !strcmp(b.data, "0\n"), "the host's is 0");
	buf_fini(&b);
}

int main(void)
{
	const struct soft_options small = { .small_bar = true };
	struct err e = { 0 };

	d = kfd_soft_new(NULL, &e);
	if (!ok(d, "the soft device is there without opening it"))
		return plan_done();
	test_nodes();
	test_banks();
	test_caches();
	test_paths();
	d->free(d);
	d = kfd_soft_new(&small, &e);
	is_u64(prop(TREE "nodes/1/mem_banks/0/properties", "heap_type"), 2,
	       "a small BAR makes VRAM private");
	d->free(d);
	return plan_done();
}
