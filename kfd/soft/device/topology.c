/*
 * kfd/soft/device/topology.c - the topology tree of sysfs: node 0 is the host,
 * then come the processor's graphics where there are any, and the cards.
 *
 * Files are lines of "name decimal", generated at every read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kfd/soft/device/dev.h"

#define SIMD_ID_BASE 2147488032u
#define IGPU_MEMORY_BYTES (512ull << 20) /* of the host's */
#define LINK_ENABLED 1u
#define LINK_NON_COHERENT 2u

struct prop {
	const char *name;
	uint64_t value;
};

static const char *const roots[] = {
	"/sys/devices/virtual/kfd/kfd/topology",
	"/sys/class/kfd/kfd/topology",
};

static void put_props(struct buf *out, const struct prop *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s %" PRIu64 "\n", p[i].name, p[i].value);
}

static uint64_t host_cpus(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (uint64_t)n : 1;
}

static uint64_t host_memory_bytes(void)
{
	const long n = sysconf(_SC_PHYS_PAGES);

	return n > 0 ? (uint64_t)n * KFD_PAGE_BYTES : 0;
}

static uint64_t count_simds(const struct soft_card *c)
{
	return soft_gen(c)->simds_per_cu * isa_chip_cus(c->chip);
}

/* The kernel numbers the SIMDs of all cards. */
static uint64_t simd_id_base(const struct soft_card *c)
{
	uint64_t base = SIMD_ID_BASE;

	for (unsigned i = 0; i < c->index; i++)
		base += count_simds(&c->dev->card[i]);
	return base;
}

/* -------------------------------------------------------------- nodes -- */

/* What a node is. */
enum kind { HOST, GPU, IGPU };
struct node {
	enum kind kind;
	unsigned index;		/* N of nodes/N */
	struct soft_card *card; /* of a GPU */
};

static unsigned node_count(const struct soft_dev *d)
{
	return 1u + d->o.igpu_first + d->n_cards;
}

static struct node node_at(struct soft_dev *d, unsigned index)
{
	const unsigned first = 1u + d->o.igpu_first;

	if (index >= first)
		return (struct node){ GPU, index, &d->card[index - first] };
	return (struct node){ index ? IGPU : HOST, index, NULL };
}

static unsigned card_node(const struct soft_card *c)
{
	return 1u + c->dev->o.igpu_first + c->index;
}

/* Cards that can reach this one: through its BAR, if that shows all. */
static unsigned count_peers(const struct soft_card *c)
{
	return c->dev->o.small_bar ? 0 : c->dev->n_cards - 1;
}

/* The node that the card's i-th link to a card leads to. */
static unsigned peer_node(const struct soft_card *c, unsigned i)
{
	const unsigned first = card_node(c) - c->index;

	return first + i + (i >= c->index);
}

/* The host reaches what has a BAR that shows all of its memory. */
static unsigned count_host_links(const struct soft_dev *d)
{
	return d->o.igpu_first + (d->o.small_bar ? 0 : d->n_cards);
}

/* ------------------------------------------------------------- caches -- */

/* The instances of a kind. */
struct cache {
	unsigned count;
	unsigned cus; /* that share one */
	unsigned level, size_kib, line, type;
};
#define CACHE_KINDS 6

/* Those of a chip, in the order of their numbers; returns how many. */
static unsigned list_caches(const struct isa_chip *chip,
			    struct cache out[CACHE_KINDS])
{
	const struct isa_gen_info *g = isa_gen_info(chip->gen);
	const unsigned cus = isa_chip_cus(chip), line = g->line_bytes;
	const unsigned per_sa = chip->cus_per_sa;
	/* type bits: 0 data, 1 instruction, 3 SIMD */
	const struct cache all[CACHE_KINDS] = {
		{ cus, 1, 1, g->tcp_kib, line, 9 },
		{ cus / 2, 2, 1, g->sqc_inst_kib, 64, 10 },
		{ cus / 2, 2, 1, g->sqc_data_kib, 64, 9 },
		/* GL1, one per shader array */
		{ cus / per_sa, per_sa, 1, g->gl1_kib, line, 9 },
		{ 1, cus, 2, chip->l2_kib, line, 9 },
		{ 1, cus, 3, chip->mall_kib, line, 9 },
	};
	unsigned n = 0, k = 0;

	for (unsigned i = 0; i < CACHE_KINDS; i++)
		if (all[i].size_kib) {
			out[k++] = all[i];
			n += all[i].count;
		}
	return n;
}

static unsigned count_caches(const struct soft_card *c)
{
	struct cache caches[CACHE_KINDS];

	return list_caches(c->chip, caches);
}

static void put_cache(struct buf *out, const struct soft_card *card,
		      unsigned index)
{
	const unsigned cus = isa_chip_cus(card->chip);
	struct cache caches[CACHE_KINDS];
	const struct cache *c = caches;

	list_caches(card->chip, caches);
	while (index >= c->count)
		index -= c++->count;
	put_props(out,
		  (const struct prop[]){
			  { "processor_id_low",
			    simd_id_base(card) + 2ull * index * c->cus },
			  { "level", c->level },
			  { "size", c->size_kib },
			  { "cache_line_size", c->line },
			  { "cache_lines_per_tag", 1 },
			  { "association", 16 },
			  { "latency", 0 },
			  { "type", c->type },
		  },
		  8);
	buf_adds(out, "sibling_map ");
	for (unsigned i = 0; i < cus; i++)
		buf_printf(out, "%s%d", i ? "," : "",
			   i >= index * c->cus && i < (index + 1) * c->cus);
	buf_addc(out, '\n');
}

/* --------------------------------------------------------- properties -- */

static void put_cpu(const struct soft_dev *d, struct buf *out)
{
	const struct prop p[] = {
		{ "cpu_cores_count", host_cpus() },
		{ "simd_count", 0 },
		{ "mem_banks_count", 1 },
		{ "caches_count", 0 },
		{ "io_links_count", count_host_links(d) },
		{ "p2p_links_count", 0 },
		{ "cpu_core_id_base", 0 },
		{ "simd_id_base", 0 },
		{ "max_waves_per_simd", 0 },
		{ "lds_size_in_kb", 0 },
		{ "gds_size_in_kb", 0 },
		{ "num_gws", 0 },
		{ "wave_front_size", 0 },
		{ "array_count", 0 },
		{ "simd_arrays_per_engine", 0 },
		{ "cu_per_simd_array", 0 },
		{ "simd_per_cu", 0 },
		{ "max_slots_scratch_cu", 0 },
		{ "gfx_target_version", 0 },
		{ "vendor_id", 0 },
		{ "device_id", 0 },
		{ "location_id", 0 },
		{ "domain", 0 },
		{ "drm_render_minor", 0 },
		{ "hive_id", 0 },
		{ "num_sdma_engines", 0 },
		{ "num_sdma_xgmi_engines", 0 },
		{ "num_sdma_queues_per_engine", 0 },
		{ "num_cp_queues", 0 },
		{ "max_engine_clk_ccompute", 3000 },
	};

	put_props(out, p, ARRAY_SIZE(p));
}

/* Of every card; what differs is filled in by gpu_prop(). */
static const struct prop gpu_props[] = {
	{ "cpu_cores_count", 0 },
	{ "simd_count", 0 },
	{ "mem_banks_count", 1 },
	{ "caches_count", 0 },
	{ "io_links_count", 1 },
	{ "p2p_links_count", 0 },
	{ "cpu_core_id_base", 0 },
	{ "simd_id_base", 0 },
	{ "max_waves_per_simd", 0 },
	{ "lds_size_in_kb", 0 },
	{ "gds_size_in_kb", 0 },
	{ "num_gws", 64 },
	{ "wave_front_size", 32 },
	{ "array_count", 0 },
	{ "simd_arrays_per_engine", 0 },
	{ "cu_per_simd_array", 0 },
	{ "simd_per_cu", 0 },
	{ "max_slots_scratch_cu", SOFT_WAVES_PER_CU },
	{ "gfx_target_version", 0 },
	{ "vendor_id", SOFT_PCI_VENDOR },
	{ "device_id", 0 },
	{ "location_id", 0 },
	{ "domain", 0 },
	{ "drm_render_minor", 0 },
	{ "hive_id", 0 },
	{ "num_sdma_engines", 0 },
	{ "num_sdma_xgmi_engines", 0 },
	{ "num_sdma_queues_per_engine", 6 },
	{ "num_cp_queues", 8 },
	{ "max_engine_clk_fcompute", 0 },
	{ "local_mem_size", 0 },
	{ "fw_version", 2140 },
	{ "capability", 0x2807a280 },
	{ "debug_prop", 0x5d7 },
	{ "sdma_fw_version", 20 },
	{ "unique_id", 0 },
	{ "num_xcc", 1 },
	{ "max_engine_clk_ccompute", 3000 },
};

/* The card's own value of a property. */
static uint64_t card_prop(const struct soft_card *c, const struct prop *p)
{
	const struct isa_chip *chip = c->chip;
	const struct isa_gen_info *g = soft_gen(c);
	const struct prop own[] = {
		{ "p2p_links_count", count_peers(c) },
		{ "simd_count", count_simds(c) },
		{ "caches_count", count_caches(c) },
		{ "max_waves_per_simd", g->waves_per_simd },
		{ "lds_size_in_kb", g->lds_bytes / 1024 },
		{ "array_count", chip->n_se * chip->sa_per_se },
		{ "simd_arrays_per_engine", chip->sa_per_se },
		{ "cu_per_simd_array", chip->cus_per_sa },
		{ "simd_per_cu", g->simds_per_cu },
		{ "gfx_target_version", chip->gfx_target },
		{ "device_id", chip->device_id },
		{ "num_sdma_engines", chip->sdma_engines },
		{ "max_engine_clk_fcompute", chip->sclk_mhz[1] },
		{ "simd_id_base", simd_id_base(c) },
		{ "location_id", SOFT_PCI_BUS(c->index) << 8 },
		{ "drm_render_minor", SOFT_RENDER_MINOR + c->index },
		{ "unique_id", SOFT_UNIQUE_ID + c->index },
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strcmp(p->name, own[i].name))
			return own[i].value;
	return p->value;
}

static void put_gpu(const struct soft_card *c, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(gpu_props); i++)
		put_props(out, &(struct prop){ gpu_props[i].name,
					       card_prop(c, &gpu_props[i]) },
			  1);
}

static uint32_t gpu_prop(const struct soft_card *c, const char *name)
{
	size_t i = 0;

	while (strcmp(gpu_props[i].name, name))
		if (++i == ARRAY_SIZE(gpu_props))
			BUG("the GPU has no property %s", name);
	return (uint32_t)card_prop(c, &gpu_props[i]);
}

void soft_gpu_identity(const struct soft_card *c,
		       struct kfd_device_snapshot *out)
{
	out->location_id = gpu_prop(c, "location_id");
	out->vendor_id = gpu_prop(c, "vendor_id");
	out->device_id = gpu_prop(c, "device_id");
	out->revision_id = c->chip->pci_rev;
	out->subsystem_vendor_id = SOFT_PCI_VENDOR;
	out->subsystem_device_id = c->chip->subdevice_id;
	out->fw_version = gpu_prop(c, "fw_version");
	out->gfx_target_version = gpu_prop(c, "gfx_target_version");
	out->simd_count = gpu_prop(c, "simd_count");
	out->max_waves_per_simd = gpu_prop(c, "max_waves_per_simd");
	out->array_count = gpu_prop(c, "array_count");
	out->simd_arrays_per_engine = gpu_prop(c, "simd_arrays_per_engine");
	out->num_xcc = gpu_prop(c, "num_xcc");
	out->capability = gpu_prop(c, "capability");
	out->debug_prop = gpu_prop(c, "debug_prop");
}

/* A Raphael processor's graphics: 2 CUs, no memory of its own. */
static void put_igpu(struct buf *out)
{
	static const struct prop p[] = {
		{ "cpu_cores_count", 0 },
		{ "simd_count", 4 },
		{ "mem_banks_count", 1 },
		{ "caches_count", 0 },
		{ "io_links_count", 1 },
		{ "max_waves_per_simd", 16 },
		{ "lds_size_in_kb", 64 },
		{ "wave_front_size", 32 },
		{ "array_count", 1 },
		{ "simd_arrays_per_engine", 1 },
		{ "cu_per_simd_array", 2 },
		{ "simd_per_cu", 2 },
		{ "max_slots_scratch_cu", 32 },
		{ "gfx_target_version", 100306 },
		{ "vendor_id", 0x1002 },
		{ "device_id", 0x164e },
		{ "location_id", 0x1500 },
		{ "domain", 0 },
		{ "drm_render_minor", SOFT_RENDER_MINOR + SOFT_CARDS_MAX },
		{ "capability", 0x2807a280 },
		{ "num_xcc", 1 },
	};

	put_props(out, p, ARRAY_SIZE(p));
}

static void put_bank(const struct soft_dev *d, struct buf *out,
		     const struct node *node)
{
	const struct soft_card *c = node->card;
	const struct {
		uint64_t heap, bytes, width, mhz;
	} t[] = {
		[HOST] = { 0, host_memory_bytes(), 64, 2400 },
		[GPU] = { d->o.small_bar ? 2 : 1, c ? c->vram_bytes : 0,
			  c ? c->chip->vram_bits : 0,
			  c ? c->chip->mclk_mhz[3] : 0 },
		[IGPU] = { 1, IGPU_MEMORY_BYTES, 128, 2400 },
	};
	const struct prop p[] = {
		{ "heap_type", t[node->kind].heap },
		{ "size_in_bytes", t[node->kind].bytes },
		{ "flags", 0 },
		{ "width", t[node->kind].width },
		{ "mem_clk_max", t[node->kind].mhz },
	};

	put_props(out, p, ARRAY_SIZE(p));
}

/*
 * PCIe, 4.0 x16.  Between two GPUs it is the way through the host, with the
 * weights of both halves.  Only GPU to host is coherent.  The kernel copies a
 * link between GPUs from one of its halves, and tells the engines of a new
 * card's only afterwards: not of what comes from an older one.
 */
static void put_link(struct soft_dev *d, struct buf *out, unsigned from,
		     unsigned to)
{
	/* Those of the GPU; the processor's graphics are given two, too. */
	const struct soft_card *c = node_at(d, from ? from : to).card;
	const uint64_t engines = (1u << (c ? c->chip->sdma_engines : 2)) - 1;
	const bool peers = from && to;
	const struct prop p[] = {
		{ "type", 2 },
		{ "version_major", 0 },
		{ "version_minor", 0 },
		{ "node_from", from },
		{ "node_to", to },
		{ "weight", peers ? 40 : 20 },
		{ "min_latency", 0 },
		{ "max_latency", 0 },
		{ "min_bandwidth", 312 },
		{ "max_bandwidth", 31504 }, /* MB/s */
		{ "recommended_transfer_size", 0 },
		{ "recommended_sdma_engine_id_mask",
		  peers && from < to ? 0 : engines },
		{ "flags", to ? LINK_ENABLED | LINK_NON_COHERENT :
				LINK_ENABLED },
	};

	put_props(out, p, ARRAY_SIZE(p));
}

/* --------------------------------------------------------------- tree -- */

/* What stands below the root; NULL when `path` is not in the tree. */
static const char *below_root(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		const size_t n = strlen(roots[i]);

		if (!strncmp(path, roots[i], n) &&
		    (!path[n] || path[n] == '/')) {
			path += n;
			while (*path == '/')
				path++;
			return path;
		}
	}
	return NULL;
}

/* "nodes/N/rest": which it is, and *rest after its slash; false if not that. */
static bool find_node(struct soft_dev *d, const char *p, struct node *node,
		      const char **rest)
{
	const int n = strncmp(p, "nodes/", 6) ? -1 : p[6] - '0';

	if (n < 0 || n >= (int)node_count(d) || (p[7] && p[7] != '/'))
		return false;
	*rest = p[7] ? p + 8 : p + 7;
	*node = node_at(d, (unsigned)n);
	return true;
}

/* How many entries a folder of numbered ones has; UINT32_MAX: no such folder. */
static unsigned count_entries(const struct soft_dev *d, const struct node *node,
			      const char *folder, size_t len)
{
	const struct {
		const char *name;
		unsigned n[3];
	} t[] = {
		{ "mem_banks", { 1, 1, 1 } },
		{ "caches",
		  { 0, node->card ? count_caches(node->card) : 0, 0 } },
		{ "io_links", { count_host_links(d), 1, 1 } },
		{ "p2p_links", { 0, node->card ? count_peers(node->card) : 0,
				 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		if (strlen(t[i].name) == len &&
		    !strncmp(t[i].name, folder, len))
			return t[i].n[node->kind];
	return UINT32_MAX;
}

/* "caches/17/properties" and its like: 0 or -errno. */
static int read_entry(struct soft_dev *d, const struct node *node,
		      const char *rest, struct buf *out)
{
	const char *slash = strchr(rest, '/');
	unsigned long i;
	unsigned n;
	char *end;

	if (!slash)
		return -ENOENT;
	n = count_entries(d, node, rest, (size_t)(slash - rest));
	if (n == UINT32_MAX || slash[1] < '0' || slash[1] > '9')
		return -ENOENT;
	i = strtoul(slash + 1, &end, 10);
	if (i >= n)
		return -ENOENT;
	if (!strcmp(end, "/used_memory") && !strncmp(rest, "mem_banks/", 10)) {
		buf_printf(out, "%" PRIu64 "\n",
			   node->card ? node->card->vram_used : 0);
		return 0;
	}
	if (strcmp(end, "/properties"))
		return *end ? -ENOENT : -EISDIR;
	if (rest[0] == 'm')
		put_bank(d, out, node);
	else if (rest[0] == 'c')
		put_cache(out, node->card, (unsigned)i);
	else if (rest[0] == 'p')
		put_link(d, out, node->index,
			 peer_node(node->card, (unsigned)i));
	else /* the host's lead to all that follow it */
		put_link(d, out, node->index,
			 node->index ? 0 : (unsigned)i + 1);
	return 0;
}

static int read_node(struct soft_dev *d, const struct node *node,
		     const char *rest, struct buf *out)
{
	static const uint32_t no_card[] = { [HOST] = 0, [IGPU] = SOFT_IGPU_ID };
	const bool props = !strcmp(rest, "properties");

	if (!*rest ||
	    count_entries(d, node, rest, strlen(rest)) != UINT32_MAX)
		return -EISDIR;
	if (d->o.hidden_node && node->index == node_count(d) - 1)
		return -EPERM;
	if (!strcmp(rest, "gpu_id"))
		buf_printf(out, "%u\n", node->card ? node->card->gpu_id :
						     no_card[node->kind]);
	else if (!strcmp(rest, "name"))
		buf_adds(out, node->index ? "ip discovery\n" : "\n");
	else if (props && node->kind == GPU)
		put_gpu(node->card, out);
	else if (props && node->kind == IGPU)
		put_igpu(out);
	else if (props)
		put_cpu(d, out);
	else
		return read_entry(d, node, rest, out);
	return 0;
}

static int read_tree(struct soft_dev *d, const char *p, struct buf *out)
{
	const char *rest;
	struct node node;

	if (!*p || !strcmp(p, "nodes"))
		return -EISDIR;
	if (!strcmp(p, "generation_id")) {
		/* It grew with every node, and never changes. */
		buf_printf(out, "%u\n", node_count(d));
		return 0;
	}
	if (!strcmp(p, "system_properties")) {
		buf_adds(out, "platform_oem 0\nplatform_id 0\n"
			      "platform_rev 0\n");
		return 0;
	}
	return find_node(d, p, &node, &rest) ?
		       read_node(d, &node, rest, out) : -ENOENT;
}

/* Statistics of this process, the one that the device has, on a card. */
static bool is_evicted(const struct soft_dev *d, const char *path)
{
	bool found = false;
	char own[96];

	for (unsigned i = 0; d->kfd_opens && i < d->n_cards && !found; i++) {
		snprintf(own, sizeof(own), "/sys/class/kfd/kfd/proc/%d/"
			 "stats_%u/evicted_ms", (int)d->pid,
			 d->card[i].gpu_id);
		found = !strcmp(path, own);
	}
	return found;
}

int soft_topology_read(struct soft_dev *d, const char *path, struct buf *out)
{
	const char *p = below_root(path);
	bool evicted;
	int ret;

	pthread_mutex_lock(&d->lock);
	evicted = is_evicted(d, path);
	pthread_mutex_unlock(&d->lock);
	if (evicted) {
		buf_printf(out, "%" PRIu64 "\n",
			   __atomic_load_n(&d->evicted_ns, __ATOMIC_RELAXED) /
				   1000000);
		return 0;
	}
	if (!p)
		return soft_sysfs_read(d, path, out);
	pthread_mutex_lock(&d->lock);
	ret = read_tree(d, p, out);
	pthread_mutex_unlock(&d->lock);
	return ret;
}

static int list_node(const struct soft_dev *d, const struct node *node,
		     const char *rest, struct buf *out)
{
	const char *slash = strchr(rest, '/');
	const size_t len = slash ? (size_t)(slash - rest) : strlen(rest);
	const unsigned n = count_entries(d, node, rest, len);
	unsigned long i;
	char *end;

	if (!*rest) {
		buf_adds(out, "gpu_id\nname\nproperties\nmem_banks\ncaches\n"
			      "io_links\np2p_links\n");
		return 0;
	}
	if (n == UINT32_MAX)
		return -ENOENT;
	if (!slash) {
		for (i = 0; i < n; i++)
			buf_printf(out, "%lu\n", i);
		return 0;
	}
	i = strtoul(slash + 1, &end, 10);
	if (end == slash + 1 || *end || i >= n)
		return -ENOENT;
	buf_adds(out, "properties\n");
	if (rest[0] == 'm')
		buf_adds(out, "used_memory\n");
	return 0;
}

int soft_topology_list(struct soft_dev *d, const char *path, struct buf *out)
{
	const char *p = below_root(path), *rest;
	struct buf file = { 0 };
	struct node node;
	int ret;

	if (!p)
		return soft_sysfs_list(d, path, out);
	ret = soft_topology_read(d, path, &file);
	buf_fini(&file);
	if (!ret)
		return -ENOTDIR;
	if (!*p) {
		buf_adds(out, "generation_id\nsystem_properties\nnodes\n");
		return 0;
	}
	if (!strcmp(p, "nodes")) {
		for (unsigned i = 0; i < node_count(d); i++)
			buf_printf(out, "%u\n", i);
		return 0;
	}
	return find_node(d, p, &node, &rest) ?
		       list_node(d, &node, rest, out) : -ENOENT;
}
