/*
 * kfd/soft/device/drm/drm.c - DRM: the ioctls of the render and card nodes,
 * and the answers to queries.
 *
 * The answers are those of a real board with device id 0x744c, revision c8, and
 * for other chips what isa/tables/chips.def says in their place; usage and
 * sensors are this device's own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kfd/soft/device/drm/drm.h"

#define DRM_TYPE 'd'
/* Of the driver whose answers these are. */
#define DRM_MAJOR     3
#define DRM_MINOR     57
#define VRAM_RESERVED 71929856ull /* not usable */

/* The tail of DEV_INFO in newer kernels, after what libdrm 2.4.114 knows. */
struct device_info {
	struct drm_amdgpu_info_device base;
	uint64_t min_engine_clock, min_memory_clock; /* kHz */
	/* KiB each */
	uint32_t tcp_cache_size, num_sqc_per_wgp, sqc_data_cache_size,
		sqc_inst_cache_size, gl1c_cache_size, gl2c_cache_size;
	uint64_t mall_size; /* bytes */
	uint32_t enabled_rb_pipes_mask_hi, pad;
};
_Static_assert(sizeof(struct drm_amdgpu_info_device) == 368, "DEV_INFO");
_Static_assert(sizeof(struct drm_amdgpu_memory_info) == 96, "MEMORY");
_Static_assert(DRM_IOCTL_VERSION == 0xc0406400, "VERSION request");

/* ------------------------------------------------------------- answers -- */

/* What an INFO query returns: at most `size` bytes of any of these. */
union answer {
	struct device_info device;
	struct drm_amdgpu_memory_info memory;
	struct drm_amdgpu_info_vram_gtt vram_gtt;
	struct drm_amdgpu_info_gds gds;
	struct drm_amdgpu_info_hw_ip hw_ip;
	struct drm_amdgpu_info_firmware fw;
	uint32_t u32;
	uint64_t u64;
	uint32_t reg[16];
};

/* Engines above 3 stand in columns 2 and 3 of rows 0 and so on. */
static void cu_bitmap(const struct isa_chip *chip, uint32_t map[4][4])
{
	for (unsigned se = 0; se < chip->n_se; se++)
		for (unsigned sa = 0; sa < chip->sa_per_se; sa++)
			map[se % 4][se / 4 * 2 + sa] =
				(1u << chip->cus_per_sa) - 1;
}

static void device_info(const struct isa_chip *chip, union answer *a)
{
	const struct isa_gen_info *gen = isa_gen_info(chip->gen);
	struct drm_amdgpu_info_device *b = &a->device.base;

	*b = (struct drm_amdgpu_info_device){
		.device_id = chip->device_id,
		.external_rev = chip->external_rev,
		.pci_rev = chip->pci_rev,
		.family = chip->family,
		.num_shader_engines = chip->n_se,
		.num_shader_arrays_per_engine = chip->sa_per_se,
		.gpu_counter_freq = KFD_GPU_CLOCK_HZ / 1000,
		.max_engine_clock = chip->sclk_mhz[1] * 1000,
		.max_memory_clock = chip->mclk_mhz[3] * 1000,
		.cu_active_number = isa_chip_cus(chip),
		.enabled_rb_pipes_mask = (1u << chip->n_rb) - 1,
		.num_rb_pipes = chip->n_rb,
		.num_hw_gfx_contexts = 8,
		.virtual_address_offset = 0x200000,
		.virtual_address_max = 0x800000000000,
		.virtual_address_alignment = KFD_PAGE_BYTES,
		.pte_fragment_size = 2u << 20,
		.gart_page_size = KFD_PAGE_BYTES,
		.vram_type = chip->vram_type,
		.vram_bit_width = chip->vram_bits,
		.wave_front_size = 32,
		.num_shader_visible_vgprs = chip->vgprs,
		.num_cu_per_sh = chip->cus_per_sa,
		.num_tcc_blocks = chip->n_tcc,
		.high_va_offset = 0xffff800000000000,
		.high_va_max = 0xffffffffffe00000,
	};
	cu_bitmap(chip, b->cu_bitmap);
	memcpy(b->cu_ao_bitmap, b->cu_bitmap, sizeof(b->cu_bitmap));
	a->device.min_engine_clock = chip->sclk_mhz[0] * 1000;
	a->device.min_memory_clock = chip->mclk_mhz[0] * 1000;
	a->device.tcp_cache_size = gen->tcp_kib;
	a->device.num_sqc_per_wgp = 1;
	a->device.sqc_data_cache_size = gen->sqc_data_kib;
	a->device.sqc_inst_cache_size = gen->sqc_inst_kib;
	a->device.gl1c_cache_size = gen->gl1_kib;
	a->device.gl2c_cache_size = chip->l2_kib;
	a->device.mall_size = chip->mall_kib * 1024ull;
}

static struct drm_amdgpu_heap_info heap_info(uint64_t total, uint64_t lost,
					     uint64_t used)
{
	const uint64_t usable = total > lost ? total - lost : 0;

	return (struct drm_amdgpu_heap_info){ total, usable, used,
					      usable / 4 * 3 };
}

static void memory_info(struct soft_card *c, union answer *a)
{
	const struct soft_dev *d = c->dev;
	uint64_t vram, gtt;

	soft_memory_usage(c, &vram, &gtt);
	a->memory.vram = heap_info(c->vram_bytes, VRAM_RESERVED, vram);
	a->memory.cpu_accessible_vram = heap_info(soft_visible_bytes(c),
						  VRAM_RESERVED,
						  d->o.small_bar ? 0 : vram);
	a->memory.gtt = heap_info(d->sys_limit, 0, gtt);
}

static int answer_firmware(const struct drm_amdgpu_query_fw *q, union answer *a)
{
	static const struct {
		uint32_t type, version, feature;
	} t[] = {
		{ AMDGPU_INFO_FW_GFX_ME, 1486, 29 },
		{ AMDGPU_INFO_FW_GFX_PFP, 1525, 29 },
		{ AMDGPU_INFO_FW_GFX_MEC, 494, 29 },
		{ AMDGPU_INFO_FW_SDMA, 20, 0 },
		/* The chip has neither, which the kernel tells so. */
		{ AMDGPU_INFO_FW_UVD, 0, 0 },
		{ AMDGPU_INFO_FW_VCE, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		if (t[i].type == q->fw_type) {
			a->fw.ver = t[i].version;
			a->fw.feature = t[i].feature;
			return sizeof(a->fw);
		}
	return -EINVAL;
}

static int hw_ip(const struct isa_chip *chip, uint32_t type, union answer *a)
{
	const uint8_t *gfx = isa_gen_info(chip->gen)->gfx_ip;
	const struct {
		uint32_t major, minor, rings, align;
	} t[] = {
		[AMDGPU_HW_IP_GFX] = { gfx[0], gfx[1], 0x1, 32 },
		[AMDGPU_HW_IP_COMPUTE] = { gfx[0], gfx[1], 0xf, 32 },
		[AMDGPU_HW_IP_DMA] = { chip->sdma_ip[0], chip->sdma_ip[1],
				       (1u << chip->sdma_engines) - 1, 256 },
	};

	if (type >= AMDGPU_HW_IP_NUM)
		return -EINVAL;
	if (type < ARRAY_SIZE(t))
		a->hw_ip = (struct drm_amdgpu_info_hw_ip){
			.hw_ip_version_major = t[type].major,
			.hw_ip_version_minor = t[type].minor,
			.ib_start_alignment = t[type].align,
			.ib_size_alignment = 32,
			.available_rings = t[type].rings,
		};
	return sizeof(a->hw_ip);
}

static int answer_sensor(struct soft_card *c, uint32_t type, union answer *a)
{
	struct soft_sensors s;

	soft_sensors_read(c, &s);
	switch (type) {
	case AMDGPU_INFO_SENSOR_GFX_SCLK:
		a->u32 = s.sclk_mhz;
		break;
	case AMDGPU_INFO_SENSOR_GFX_MCLK:
		a->u32 = s.mclk_mhz;
		break;
	case AMDGPU_INFO_SENSOR_GPU_TEMP:
		a->u32 = s.edge_mc;
		break;
	case AMDGPU_INFO_SENSOR_GPU_LOAD:
		a->u32 = s.load_pct;
		break;
	case AMDGPU_INFO_SENSOR_GPU_AVG_POWER:
		a->u32 = (uint32_t)(s.power_uw / 1000000);
		break;
	case AMDGPU_INFO_SENSOR_VDDGFX:
		a->u32 = s.vddgfx_mv;
		break;
	case AMDGPU_INFO_SENSOR_STABLE_PSTATE_GFX_SCLK:
		a->u32 = c->chip->sclk_mhz[1] / 2;
		break;
	case AMDGPU_INFO_SENSOR_STABLE_PSTATE_GFX_MCLK:
		a->u32 = c->chip->mclk_mhz[3];
		break;
	default: /* no north bridge on a discrete card */
		return -EOPNOTSUPP;
	}
	return sizeof(a->u32);
}

/* Registers that the kernel lets programs read. */
static int answer_registers(struct soft_card *c, uint32_t at, uint32_t count,
			    union answer *a)
{
	const uint32_t addr_config = 0x263e, status = 0x2004;
	const uint32_t active = 0xa0000000; /* GUI and CP busy */

	if (count != 1 || (at != addr_config && at != status))
		return -EINVAL;
	pthread_mutex_lock(&c->load.lock);
	a->reg[0] = at == addr_config ? c->chip->addr_config :
		    c->load.running   ? active :
					0;
	pthread_mutex_unlock(&c->load.lock);
	return 4;
}

/* The size of the answer, or -errno. */
static int answer_query(struct soft_card *c, const struct drm_amdgpu_info *q,
			union answer *a)
{
	const struct soft_dev *d = c->dev;
	uint64_t vram, gtt;

	switch (q->query) {
	case AMDGPU_INFO_ACCEL_WORKING:
		a->u32 = 1;
		return sizeof(a->u32);
	case AMDGPU_INFO_HW_IP_INFO:
		return hw_ip(c->chip, q->query_hw_ip.type, a);
	case AMDGPU_INFO_HW_IP_COUNT:
		a->u32 = q->query_hw_ip.type <= AMDGPU_HW_IP_DMA;
		return q->query_hw_ip.type < AMDGPU_HW_IP_NUM ? 4 : -EINVAL;
	case AMDGPU_INFO_TIMESTAMP:
		a->u64 = soft_gpu_clock(c);
		return sizeof(a->u64);
	case AMDGPU_INFO_FW_VERSION:
		return answer_firmware(&q->query_fw, a);
	case AMDGPU_INFO_NUM_BYTES_MOVED:
	case AMDGPU_INFO_NUM_EVICTIONS:
	case AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS:
		return sizeof(a->u64); /* memory never moves here: 0 */
	case AMDGPU_INFO_VRAM_USAGE:
	case AMDGPU_INFO_VIS_VRAM_USAGE:
	case AMDGPU_INFO_GTT_USAGE:
		soft_memory_usage(c, &vram, &gtt);
		a->u64 = q->query == AMDGPU_INFO_GTT_USAGE ? gtt : vram;
		if (q->query == AMDGPU_INFO_VIS_VRAM_USAGE && d->o.small_bar)
			a->u64 = 0;
		return sizeof(a->u64);
	case AMDGPU_INFO_GDS_CONFIG:
		return sizeof(a->gds); /* none */
	case AMDGPU_INFO_VRAM_GTT:
		a->vram_gtt.vram_size =
			heap_info(c->vram_bytes, VRAM_RESERVED, 0)
				.usable_heap_size;
		a->vram_gtt.vram_cpu_accessible_size = soft_visible_bytes(c);
		a->vram_gtt.gtt_size = d->sys_limit;
		return sizeof(a->vram_gtt);
	case AMDGPU_INFO_READ_MMR_REG:
		return answer_registers(c, q->read_mmr_reg.dword_offset,
					q->read_mmr_reg.count, a);
	case AMDGPU_INFO_DEV_INFO:
		device_info(c->chip, a);
		return sizeof(a->device);
	case AMDGPU_INFO_MEMORY:
		memory_info(c, a);
		return sizeof(a->memory);
	case AMDGPU_INFO_SENSOR:
		return answer_sensor(c, q->sensor_info.type, a);
	case AMDGPU_INFO_VRAM_LOST_COUNTER:
		a->u32 = __atomic_load_n(&c->vram_lost, __ATOMIC_RELAXED);
		return sizeof(a->u32);
	default:
		return -EINVAL;
	}
}

static int ioc_info(struct soft_card *c, const struct drm_amdgpu_info *q)
{
	union answer a;
	int n;

	if (!q->return_size || !q->return_pointer)
		return -EINVAL;
	memset(&a, 0, sizeof(a));
	n = answer_query(c, q, &a);
	if (n < 0)
		return n;
	return soft_copy_out(q->return_pointer, &a,
			     (uint32_t)n < q->return_size ? (uint32_t)n :
							    q->return_size);
}

/* -------------------------------------------------------- all of DRM's -- */

/* Copy as much as fits and tell the whole length, as the kernel does. */
static int copy_text(char *to, __kernel_size_t *room, const char *s)
{
	const size_t n = strlen(s), fits = n < *room ? n : *room;

	*room = n;
	return to ? soft_copy_out((uintptr_t)to, s, fits) : 0;
}

static int ioc_version(struct drm_version *v)
{
	int ret;

	v->version_major = DRM_MAJOR;
	v->version_minor = DRM_MINOR;
	v->version_patchlevel = 0;
	ret = copy_text(v->name, &v->name_len, "amdgpu");
	if (!ret)
		ret = copy_text(v->date, &v->date_len, "20150101");
	if (!ret)
		ret = copy_text(v->desc, &v->desc_len, "AMD GPU");
	return ret;
}

static int ioc_cap(struct drm_get_cap *c)
{
	switch (c->capability) {
	case DRM_CAP_PRIME:
		c->value = DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT;
		return 0;
	case DRM_CAP_SYNCOBJ:
	case DRM_CAP_SYNCOBJ_TIMELINE:
		c->value = 1;
		return 0;
	default:
		return -EINVAL;
	}
}

/* The structures of the calls, all zero but for a start. */
union drm_arg {
	struct drm_amdgpu_info info;
	struct drm_version version;
	struct drm_get_cap cap;
	struct drm_unique unique;
	struct drm_auth auth;
	struct drm_client client;
	struct drm_gem_close close;
	struct drm_prime_handle prime;
	union drm_amdgpu_gem_create create;
	union drm_amdgpu_gem_mmap mmap;
	union drm_amdgpu_ctx ctx;
	union drm_amdgpu_bo_list list;
	union drm_amdgpu_cs cs;
	union drm_amdgpu_wait_cs wait;
	union drm_amdgpu_wait_fences fences;
	union drm_amdgpu_gem_wait_idle idle;
	struct drm_amdgpu_gem_va va;
	struct drm_amdgpu_gem_op op;
	struct drm_amdgpu_gem_metadata metadata;
	union drm_sync_arg sync;
	struct drm_syncobj_wait sync_wait;
	struct drm_syncobj_timeline_wait point_wait;
};

/* Calls of the card node only: who may drive the display. */
static int card_ioctl(const struct soft_card *c, unsigned nr, union drm_arg *a)
{
	char bus_id[32];

	switch (nr) {
	case _IOC_NR(DRM_IOCTL_GET_UNIQUE):
		snprintf(bus_id, sizeof(bus_id), "pci:0000:%02x:00.0",
			 SOFT_PCI_BUS(c->index));
		return copy_text(a->unique.unique, &a->unique.unique_len,
				 bus_id);
	case _IOC_NR(DRM_IOCTL_GET_MAGIC):
		a->auth.magic = 1;
		return 0;
	case _IOC_NR(DRM_IOCTL_AUTH_MAGIC):
	case _IOC_NR(DRM_IOCTL_SET_VERSION):
	case _IOC_NR(DRM_IOCTL_SET_CLIENT_CAP):
	case _IOC_NR(DRM_IOCTL_SET_MASTER):
	case _IOC_NR(DRM_IOCTL_DROP_MASTER):
		return 0;
	case _IOC_NR(DRM_IOCTL_GET_CLIENT):
		a->client.auth = 1;
		return 0;
	default:
		return -EINVAL;
	}
}

static int other_ioctl(const struct soft_file *f, unsigned nr,
		       union drm_arg *a)
{
	return f->node == SOFT_NODE_CARD ? card_ioctl(f->card, nr, a) : -EACCES;
}

#define AMDGPU_NR(name) (DRM_COMMAND_BASE + DRM_AMDGPU_##name)

/* Calls about what the file owns, with dev->lock held; -ENOTTY: another. */
static int owner_ioctl(struct soft_dev *d, const struct soft_file *f,
		       unsigned nr, union drm_arg *a)
{
	switch (nr) {
	case AMDGPU_NR(GEM_CREATE):
		return drm_gem_create(f, &a->create);
	case AMDGPU_NR(GEM_MMAP):
		return drm_gem_mmap(d, f, &a->mmap);
	case AMDGPU_NR(GEM_VA):
		return drm_gem_va(d, f, &a->va);
	case AMDGPU_NR(GEM_METADATA):
		return drm_gem_metadata(d, f, &a->metadata);
	case AMDGPU_NR(GEM_OP):
		return drm_gem_op(d, f, &a->op);
	case AMDGPU_NR(CTX):
		return drm_context(d, f, &a->ctx);
	case AMDGPU_NR(BO_LIST):
		return drm_bo_list(d, f, &a->list);
	case AMDGPU_NR(CS):
		return drm_submit(d, f, &a->cs);
	case _IOC_NR(DRM_IOCTL_GEM_CLOSE):
		return drm_gem_close(d, f, a->close.handle);
	case _IOC_NR(DRM_IOCTL_PRIME_HANDLE_TO_FD):
		return drm_prime_export(d, f, &a->prime);
	case _IOC_NR(DRM_IOCTL_PRIME_FD_TO_HANDLE):
		return drm_prime_import(d, f, &a->prime);
	default:
		return drm_sync_call(d, f, nr, &a->sync);
	}
}

/* The wait without points, as the one with them. */
static int wait_binary(struct soft_dev *d, const struct soft_file *f,
		       struct drm_syncobj_wait *a)
{
	struct drm_syncobj_timeline_wait w = {
		.handles = a->handles, .timeout_nsec = a->timeout_nsec,
		.count_handles = a->count_handles, .flags = a->flags,
		.first_signaled = a->first_signaled,
	};
	const int ret = drm_sync_wait(d, f, false, &w);

	a->first_signaled = w.first_signaled;
	return ret;
}

static int drm_call(struct soft_dev *d, const struct soft_file *f, unsigned nr,
		    union drm_arg *a)
{
	int ret;

	switch (nr) {
	case AMDGPU_NR(INFO):
		return ioc_info(f->card, &a->info);
	case _IOC_NR(DRM_IOCTL_VERSION):
		return ioc_version(&a->version);
	case _IOC_NR(DRM_IOCTL_GET_CAP):
		return ioc_cap(&a->cap);
	}
	/* What a file owns is of the process that opened it. */
	if (f->pid != getpid())
		return other_ioctl(f, nr, a);
	switch (nr) {
	case AMDGPU_NR(WAIT_CS):
		return drm_wait_submitted(d, f, &a->wait);
	case AMDGPU_NR(WAIT_FENCES):
		return drm_wait_fences(d, f, &a->fences);
	case AMDGPU_NR(GEM_WAIT_IDLE):
		return drm_wait_idle(d, f, &a->idle);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_WAIT):
		return wait_binary(d, f, &a->sync_wait);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT):
		return drm_sync_wait(d, f, true, &a->point_wait);
	}
	pthread_mutex_lock(&d->lock);
	ret = owner_ioctl(d, f, nr, a);
	pthread_mutex_unlock(&d->lock);
	if (ret != -ENOTTY)
		return ret;
	if (nr >= DRM_COMMAND_BASE && nr < DRM_COMMAND_END)
		return -EOPNOTSUPP;
	return other_ioctl(f, nr, a);
}

/* The program's structure may be shorter or longer than ours. */
static int copy_and_call(struct soft_dev *d, const struct soft_file *f,
			 unsigned long request, void *arg)
{
	const unsigned nr = _IOC_NR(request), dir = _IOC_DIR(request);
	union drm_arg a;
	size_t size = _IOC_SIZE(request);
	int ret = 0;

	if (_IOC_TYPE(request) != DRM_TYPE)
		return -ENOTTY;
	memset(&a, 0, sizeof(a));
	if (size > sizeof(a))
		size = sizeof(a);
	if (dir & _IOC_WRITE)
		ret = soft_copy_in(&a, (uintptr_t)arg, size);
	if (!ret)
		ret = drm_call(d, f, nr, &a);
	if (dir & _IOC_READ && soft_copy_out((uintptr_t)arg, &a, size))
		ret = -EFAULT;
	return ret;
}

int soft_drm_ioctl(struct soft_dev *d, const struct soft_file *f,
		   unsigned long request, void *arg)
{
	const int ret = copy_and_call(d, f, request, arg);

	if (ret < 0 && ret != -ETIME)
		soft_explain_drm(d, request, arg, -ret);
	return ret;
}

/* ----------------------------------------------------------------- ends -- */

void soft_drm_init(struct soft_dev *d)
{
	d->drm = xcalloc(1, sizeof(*d->drm));
}

void soft_drm_close(struct soft_dev *d, const struct soft_file *f)
{
	struct soft_drm *m = d->drm;

	drm_gem_close_all(d, f);
	drm_sync_close(d, f);
	for (size_t i = m->ctx.n; i-- > 0;)
		if (m->ctx.v[i].file == f->id)
			m->ctx.v[i] = m->ctx.v[--m->ctx.n];
	for (size_t i = m->list.n; i-- > 0;)
		if (m->list.v[i].file == f->id)
			m->list.v[i] = m->list.v[--m->list.n];
}

void soft_drm_fini(struct soft_dev *d)
{
	struct drm_ring **r = &d->drm->ring[0][0][0];

	const size_t n = SOFT_CARDS_MAX * DRM_IPS * DRM_RINGS;

	for (size_t i = 0; i < n; i++)
		if (r[i])
			drm_ring_stop(r[i]);
	for (size_t i = 0; i < n; i++) {
		if (r[i])
			drm_ring_free(r[i]);
		r[i] = NULL;
	}
	for (size_t i = 0; i < d->n_files; i++)
		if (d->file[i].fd >= 0 && d->file[i].node != SOFT_NODE_KFD)
			soft_drm_close(d, &d->file[i]);
	vec_fini(&d->drm->map);
	vec_fini(&d->drm->ctx);
	vec_fini(&d->drm->list);
	vec_fini(&d->drm->sync);
	free(d->drm);
}
