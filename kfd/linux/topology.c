/*
 * kfd/linux/topology.c - topology: the kernel's description of the machine,
 * from sysfs.
 *
 * Files are "name value" lines.  Only names that we know are taken, a missing
 * one stays 0, and a node that the device cgroup hides is kept as hidden.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/tables/tables.h"
#include "kfd/kfd.h"

static const char *const roots[] = {
	"/sys/devices/virtual/kfd/kfd/topology",
	"/sys/class/kfd/kfd/topology",
};

/* All nodes are read again while the generation moves, this often. */
#define SNAPSHOT_TRIES 8
#define NODES_MAX      256
#define CACHES_MAX     65536

struct reader {
	struct kfd_driver *d;
	const char *root;
	struct buf text; /* the file read last */
	struct buf path;
};

/* 0 or -errno; the text is in r->text. */
static int reader_file(struct reader *r, const char *fmt, ...) T0_PRINTF(2, 3);
static int reader_file(struct reader *r, const char *fmt, ...)
{
	char tail[192];
	va_list ap;
	int n;

	va_start(ap, fmt);
	vsnprintf(tail, sizeof(tail), fmt, ap);
	va_end(ap);
	buf_reset(&r->path);
	buf_printf(&r->path, "%s/%s", r->root, tail);
	buf_reset(&r->text);
	do
		n = r->d->read_file(r->d, r->path.data, &r->text);
	while (n == -EINTR);
	if (n == 0)
		buf_add(&r->text, "", 0); /* an empty file has text too */
	return n;
}

/* The value of a "name value" line in r->text, or `missing`. */
static uint64_t find_value(const struct reader *r, const char *name,
			   uint64_t missing)
{
	size_t len = strlen(name);

	for (const char *p = r->text.data; p && *p;) {
		if (!strncmp(p, name, len) && p[len] == ' ')
			return strtoull(p + len + 1, NULL, 10);
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	return missing;
}

static uint32_t find_value32(const struct reader *r, const char *name)
{
	uint64_t v = find_value(r, name, 0);
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static void parse_properties(const struct reader *r, struct kfd_node *n)
{
	uint64_t minor = find_value(r, "drm_render_minor", 0);

	n->simd_count = find_value32(r, "simd_count");
	n->simd_per_cu = find_value32(r, "simd_per_cu");
	n->num_xcc = find_value32(r, "num_xcc");
	if (!n->num_xcc)
		n->num_xcc = 1;
	n->max_waves_per_simd = find_value32(r, "max_waves_per_simd");
	n->array_count = find_value32(r, "array_count");
	n->arrays_per_engine = find_value32(r, "simd_arrays_per_engine");
	n->wave_size = find_value32(r, "wave_front_size");
	n->lds_bytes = find_value32(r, "lds_size_in_kb") * 1024u;
	n->scratch_slots_cu = find_value32(r, "max_slots_scratch_cu");
	n->gfx_target = find_value32(r, "gfx_target_version");
	n->vendor_id = find_value32(r, "vendor_id");
	n->device_id = find_value32(r, "device_id");
	n->domain = find_value32(r, "domain");
	n->location_id = find_value32(r, "location_id");
	n->render_minor = minor >= 128 && minor < 4096 ? (int)minor : -1;
	n->capability = find_value32(r, "capability");
	n->fw_version = find_value32(r, "fw_version");
	n->sdma_fw_version = find_value32(r, "sdma_fw_version");
	n->clk_max_mhz = find_value32(r, "max_engine_clk_fcompute");
	n->unique_id = find_value(r, "unique_id", 0);
	if (n->simd_per_cu)
		n->cu_count = n->simd_count / n->simd_per_cu / n->num_xcc;
	if (n->arrays_per_engine)
		n->engines = n->array_count / n->arrays_per_engine;
}

/*
 * "11.0.0" in HSA_OVERRIDE_GFX_VERSION_<node>, else HSA_OVERRIDE_GFX_VERSION,
 * as the vendor's runtime has it: code for that version runs on the GPU.
 */
static void override_version(struct kfd_node *n)
{
	unsigned major, minor, step;
	char name[48], rest;
	const char *v;

	snprintf(name, sizeof(name), "HSA_OVERRIDE_GFX_VERSION_%d", n->index);
	v = getenv(name);
	if (!v)
		v = getenv("HSA_OVERRIDE_GFX_VERSION");
	if (v && sscanf(v, "%u.%u.%u%c", &major, &minor, &step, &rest) == 3 &&
	    major <= 63 && minor <= 99 && step <= 99)
		n->gfx_target = major * 10000 + minor * 100 + step;
}

enum { HEAP_VRAM_PUBLIC = 1, HEAP_VRAM_PRIVATE = 2 };

static void read_banks(struct reader *r, struct kfd_node *n)
{
	bool any_private = false, any_public = false;

	for (int i = 0; i < 64; i++) {
		if (reader_file(r, "nodes/%d/mem_banks/%d/properties", n->index,
				i))
			break;
		uint64_t type = find_value(r, "heap_type", 0);
		if (type != HEAP_VRAM_PUBLIC && type != HEAP_VRAM_PRIVATE)
			continue;
		any_public |= type == HEAP_VRAM_PUBLIC;
		any_private |= type == HEAP_VRAM_PRIVATE;
		n->vram_bytes += find_value(r, "size_in_bytes", 0);
		n->vram_width_bits = find_value32(r, "width");
		n->mem_clk_max_mhz = find_value32(r, "mem_clk_max");
	}
	n->large_bar = any_public && !any_private;
}

/* CUs behind a cache: "sibling_map 1,1,0,0,...". */
static int count_siblings(const struct reader *r)
{
	const char *p = strstr(r->text.data, "sibling_map ");
	int n = 0;

	for (; p && *p && *p != '\n'; p++)
		n += *p == '1';
	return n;
}

/* type: bit 0 data, 1 instruction, 2 CPU, 3 SIMD. */
static void add_cache(const struct reader *r, struct kfd_node *n)
{
	uint32_t kib = find_value32(r, "size"), type = find_value32(r, "type");

	switch (find_value32(r, "level")) {
	case 1:
		/*
		 * Level 1 holds four kinds: instructions' and scalars' of
		 * two CUs, the vectors' of one, as large as the scalars' before
		 * gfx11, and the GL1 of an array.
		 */
		if (type & 2)
			n->l1i_kib = kib;
		else if (kib >= 128)
			n->gl1_kib = kib;
		else if (kib <= 16 && count_siblings(r) > 1)
			n->l1s_kib = kib;
		else if (kib > n->l0_kib)
			n->l0_kib = kib;
		break;
	case 2:
		n->l2_kib = kib;
		break;
	case 3:
		n->l3_kib = kib;
		break;
	}
}

static void read_caches(struct reader *r, struct kfd_node *n)
{
	for (int i = 0; i < CACHES_MAX; i++) {
		if (reader_file(r, "nodes/%d/caches/%d/properties", n->index,
				i))
			break;
		n->n_caches++;
		add_cache(r, n);
	}
}

static void read_links(struct reader *r, struct kfd_node *n)
{
	for (int i = 0; i < NODES_MAX; i++) {
		if (reader_file(r, "nodes/%d/io_links/%d/properties", n->index,
				i))
			break;
		uint32_t mbps = find_value32(r, "max_bandwidth");
		if (mbps > n->link_max_mbps)
			n->link_max_mbps = mbps;
	}
}

/* 0 or -errno.  Forbidden nodes are not an error. */
static int read_node(struct reader *r, struct kfd_node *n)
{
	int err = reader_file(r, "nodes/%d/gpu_id", n->index);

	n->render_minor = -1;
	if (!err) {
		n->gpu_id = (uint32_t)strtoul(r->text.data, NULL, 10);
		err = reader_file(r, "nodes/%d/properties", n->index);
	}
	if (err == -EPERM || err == -EACCES) {
		n->hidden = true;
		return 0;
	}
	if (err)
		return err;
	parse_properties(r, n);
	if (n->gfx_target && strcmp(r->d->name, "soft"))
		override_version(n);
	if (!reader_file(r, "nodes/%d/name", n->index)) {
		size_t len = strcspn(r->text.data, "\n");
		snprintf(n->name, sizeof(n->name), "%.*s",
			 len < 63 ? (int)len : 63, r->text.data);
	}
	read_banks(r, n);
	read_links(r, n);
	if (n->gpu_id)
		read_caches(r, n);
	return 0;
}

static int compare_node(const void *a, const void *b)
{
	const struct kfd_node *x = a, *y = b;
	return (x->index > y->index) - (x->index < y->index);
}

/* The folder names under nodes/, ascending.  0 or -errno. */
static int list_nodes(struct reader *r, struct kfd_topology *t)
{
	struct buf names = { 0 };
	int err;

	buf_reset(&r->path);
	buf_printf(&r->path, "%s/nodes", r->root);
	err = r->d->list_dir(r->d, r->path.data, &names);
	for (char *p = names.data; !err && p && *p;) {
		char *end;
		long index = strtol(p, &end, 10);
		if (end > p && *end == '\n' && index >= 0 &&
		    t->n_nodes < NODES_MAX) {
			t->node = xrealloc(t->node, (size_t)(t->n_nodes + 1) *
							    sizeof(*t->node));
			t->node[t->n_nodes++] =
				(struct kfd_node){ .index = (int)index };
		}
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	buf_fini(&names);
	if (t->n_nodes)
		qsort(t->node, (size_t)t->n_nodes, sizeof(*t->node),
		      compare_node);
	return err;
}

/* UINT64_MAX when there is none (it then counts as standing still). */
static uint64_t read_generation(struct reader *r)
{
	if (reader_file(r, "generation_id"))
		return UINT64_MAX;
	return strtoull(r->text.data, NULL, 10);
}

static int take_snapshot(struct reader *r, struct kfd_topology *t)
{
	int err = list_nodes(r, t);

	for (int i = 0; !err && i < t->n_nodes; i++)
		err = read_node(r, &t->node[i]);
	return err;
}

bool kfd_topology_read(struct kfd_driver *d, struct kfd_topology *t,
		       struct err *e)
{
	struct reader r = { .d = d };
	int err = -ENOENT;
	bool still = false;

	*t = (struct kfd_topology){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(roots) && err == -ENOENT; i++) {
		r.root = roots[i];
		for (int n = 0; n < SNAPSHOT_TRIES && !still; n++) {
			kfd_topology_fini(t);
			t->generation = read_generation(&r);
			err = take_snapshot(&r, t);
			if (err == -ENOENT && n == 0 && !t->n_nodes)
				break;
			/* A file that went away: the generation has moved. */
			still = !err && read_generation(&r) == t->generation;
		}
	}
	if (err)
		err_sys(e, err == -EACCES || err == -EPERM ? ERR_PERM : ERR_IO,
			-err, "%s (topology of the GPUs)",
			r.path.data ? r.path.data : r.root);
	else if (!still)
		err_set(e, ERR_BUSY,
			"%s: generation_id changed in each of %d readings; "
			"devices come and go, try again",
			r.root, SNAPSHOT_TRIES);
	buf_fini(&r.text);
	buf_fini(&r.path);
	if (!still)
		kfd_topology_fini(t);
	return still;
}

void kfd_topology_fini(struct kfd_topology *t)
{
	free(t->node);
	*t = (struct kfd_topology){ 0 };
}

void kfd_gfx_name(uint32_t gfx_target, char out[16])
{
	if (!gfx_target) {
		snprintf(out, 16, "n/a");
		return;
	}
	/* Stepping is one hex digit: 90010 is gfx90a. */
	snprintf(out, 16, "gfx%u%u%x", gfx_target / 10000 % 100,
		 gfx_target / 100 % 100, gfx_target % 100);
}

void kfd_board_name(const struct kfd_node *n, char out[64])
{
	const char *board = isa_board_name(n->device_id, 0, n->cu_count);
	char gfx[16];

	kfd_gfx_name(n->gfx_target, gfx);
	if (board)
		snprintf(out, 64, "%s", board);
	else
		snprintf(out, 64, "%s (device 0x%04x)", gfx,
			 n->device_id & 0xffff);
}

void kfd_pci_name(const struct kfd_node *n, char out[16])
{
	snprintf(out, 16, "%04x:%02x:%02x.%x", n->domain & 0xffff,
		 n->location_id >> 8 & 0xff, n->location_id >> 3 & 0x1f,
		 n->location_id & 7);
}
