/*
 * kfd/runtime/copier.c - copies by the device, for memory that the host
 * cannot see (small BAR, private VRAM) or reads slowly (any VRAM: a BAR read is
 * a bus round trip).
 *
 * The queue, its kernels and the staging buffer are made at the first copy
 * that needs them.  The kernels lie in host memory, since code for private
 * VRAM is itself brought there by them.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/runtime.h"

#define STAGING_BYTES ((size_t)4 << 20)
#define LAUNCH_BYTES  ((size_t)256 << 20) /* of one launch, far from 4 GiB */
#define DEADLINE_NS   60000000000ull

/* 16 bytes per lane; s[0:1] = { source, destination }, 256 lanes a group. */
static const uint32_t copy16_code[] = {
	0xf4080100, 0xf8000000, /* s_load_b128 s[4:7], s[0:1], 0x0 */
	0x360000ff, 0x000003ff, /* v_and_b32 v0, 0x3ff, v0 */
	0xd6460001, 0x04011002, /* v_lshl_add_u32 v1, s2, 8, v0 */
	0x30020284,		/* v_lshlrev_b32 v1, 4, v1 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0xdc5e0000, 0x02040001, /* global_load_b128 v[2:5], v1, s[4:5] */
	0xbf8903f7,		/* s_waitcnt vmcnt(0) */
	0xdc760000, 0x00060201, /* global_store_b128 v1, v[2:5], s[6:7] */
	0xbfb00000,		/* s_endpgm */
};
/* The same with 1 byte per lane, for ends and odd distances. */
static const uint32_t copy1_code[] = {
	0xf4080100, 0xf8000000, /* s_load_b128 s[4:7], s[0:1], 0x0 */
	0x360000ff, 0x000003ff, /* v_and_b32 v0, 0x3ff, v0 */
	0xd6460001, 0x04011002, /* v_lshl_add_u32 v1, s2, 8, v0 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0xdc420000, 0x02040001, /* global_load_u8 v2, v1, s[4:5] */
	0xbf8903f7,		/* s_waitcnt vmcnt(0) */
	0xdc620000, 0x00060201, /* global_store_b8 v1, v2, s[6:7] */
	0xbfb00000,		/* s_endpgm */
};
/* The same two of gfx10, where work-items have no number but their own in v0. */
static const uint32_t copy16_gfx10[] = {
	0xf4080100, 0xfa000000, /* s_load_dwordx4 s[4:7], s[0:1], 0x0 */
	0xd7460001, 0x04011002, /* v_lshl_add_u32 v1, s2, 8, v0 */
	0x34020284,		/* v_lshlrev_b32 v1, 4, v1 */
	0xbf8cc07f,		/* s_waitcnt lgkmcnt(0) */
	0xdc388000, 0x02040001, /* global_load_dwordx4 v[2:5], v1, s[4:5] */
	0xbf8c3f70,		/* s_waitcnt vmcnt(0) */
	0xdc788000, 0x00060201, /* global_store_dwordx4 v1, v[2:5], s[6:7] */
	0xbf810000,		/* s_endpgm */
};
static const uint32_t copy1_gfx10[] = {
	0xf4080100, 0xfa000000, /* s_load_dwordx4 s[4:7], s[0:1], 0x0 */
	0xd7460001, 0x04011002, /* v_lshl_add_u32 v1, s2, 8, v0 */
	0xbf8cc07f,		/* s_waitcnt lgkmcnt(0) */
	0xdc208000, 0x02040001, /* global_load_ubyte v2, v1, s[4:5] */
	0xbf8c3f70,		/* s_waitcnt vmcnt(0) */
	0xdc608000, 0x00060201, /* global_store_byte v1, v2, s[6:7] */
	0xbf810000,		/* s_endpgm */
};
/* The same two of gfx12, where TTMP9 has the group's id. */
static const uint32_t copy16_gfx12[] = {
	0xf4004100, 0xf8000000, /* s_load_b128 s[4:7], s[0:1], 0x0 */
	0x360000ff, 0x000003ff, /* v_and_b32 v0, 0x3ff, v0 */
	0xd6460001, 0x04011075, /* v_lshl_add_u32 v1, ttmp9, 8, v0 */
	0x30020284,		/* v_lshlrev_b32 v1, 4, v1 */
	0xbfc70000,		/* s_wait_kmcnt 0x0 */
	/* global_load_b128 v[2:5], v1, s[4:5] */
	0xee05c004, 0x00000002, 0x00000001,
	0xbfc00000,		/* s_wait_loadcnt 0x0 */
	/* global_store_b128 v1, v[2:5], s[6:7] */
	0xee074006, 0x01000000, 0x00000001,
	0xbfb00000,		/* s_endpgm */
};
static const uint32_t copy1_gfx12[] = {
	0xf4004100, 0xf8000000, /* s_load_b128 s[4:7], s[0:1], 0x0 */
	0x360000ff, 0x000003ff, /* v_and_b32 v0, 0x3ff, v0 */
	0xd6460001, 0x04011075, /* v_lshl_add_u32 v1, ttmp9, 8, v0 */
	0xbfc70000,		/* s_wait_kmcnt 0x0 */
	/* global_load_u8 v2, v1, s[4:5] */
	0xee040004, 0x00000002, 0x00000001,
	0xbfc00000,		/* s_wait_loadcnt 0x0 */
	/* global_store_b8 v1, v2, s[6:7] */
	0xee060006, 0x01000000, 0x00000001,
	0xbfb00000,		/* s_endpgm */
};

struct copy_code {
	const uint32_t *dw;
	size_t bytes;
};
static const struct {
	unsigned major; /* of gfx targets; the first is for all others, too */
	struct copy_code copy16, copy1;
} codes[] = {
#define CODE(name) { name, sizeof(name) }
	{ 11, CODE(copy16_code), CODE(copy1_code) },
	{ 10, CODE(copy16_gfx10), CODE(copy1_gfx10) },
	{ 12, CODE(copy16_gfx12), CODE(copy1_gfx12) },
#undef CODE
};

/* The row of the device's chip. */
static size_t code_row(const struct kfd_dev *dev)
{
	size_t i = ARRAY_SIZE(codes) - 1;

	while (i && codes[i].major != dev->info.node.gfx_target / 10000)
		i--;
	return i;
}

struct copier {
	struct kfd_queue *q;
	const struct kfd_kernel *copy16, *copy1;
	struct mem *staging;
};

/* With copy_lock held. */
static void copier_free(struct kfd_dev *dev)
{
	struct copier *c = dev->copier;

	if (!c)
		return;
	dev->copier = NULL;
	kfd_queue_free(c->q, NULL);
	if (c->copy16)
		kfd_code_unload(c->copy16->code);
	if (c->copy1)
		kfd_code_unload(c->copy1->code);
	kfd_mem_delete(dev, c->staging, NULL);
	free(c);
}

void kfd_copier_fini(struct kfd_dev *dev)
{
	pthread_mutex_lock(&dev->copy_lock);
	copier_free(dev);
	pthread_mutex_unlock(&dev->copy_lock);
}

static bool copier_make(struct kfd_dev *dev, struct err *e)
{
	static const struct kfd_queue_opts small = { .ring_packets = 64,
						     .kernarg_bytes = 65536 };
	struct kfd_raw_desc d = {
		.rsrc1 = 0x60af0000, /* 8 VGPRs, WGP mode, as for all */
		.rsrc2 = 0x84,	     /* 2 user SGPRs, group id X */
		.properties = 0x408, /* wave32, kernarg pointer */
		.kernarg_bytes = 16,
	};
	const struct copy_code *copy16 = &codes[code_row(dev)].copy16;
	const struct copy_code *copy1 = &codes[code_row(dev)].copy1;
	struct copier *c = dev->copier;

	/* A dead queue is replaced; kfd_copy() after a hang must work. */
	if (c && !c->q->dead)
		return true;
	copier_free(dev);
	c = dev->copier = xcalloc(1, sizeof(*c));
	d.name = "(copy)";
	if (kfd_queue_new(dev, &small, &c->q, e) &&
	    kfd_code_raw_host(dev, copy16->dw, copy16->bytes, &d, &c->copy16,
			      e) &&
	    kfd_code_raw_host(dev, copy1->dw, copy1->bytes, &d, &c->copy1,
			      e) &&
	    (c->staging = kfd_mem_new(dev, MEM_FLAGS_GTT, STAGING_BYTES,
				      "copy staging", e)))
		return true;
	copier_free(dev);
	return false;
}

static bool launch_copy(struct copier *c, const struct kfd_kernel *k,
			uint64_t dst, uint64_t src, size_t items, struct err *e)
{
	const uint64_t args[2] = { src, dst };
	const struct kfd_launch l = {
		.kernel = k,
		.grid = { (uint32_t)items },
		.wg = { 256 },
		.args = args,
		.args_bytes = sizeof(args),
		.deadline_ns = time_mono_ns() + DEADLINE_NS,
	};

	return !items || kfd_submit(c->q, &l, NULL, e);
}

/* At most LAUNCH_BYTES; does not wait. */
static bool copy_part(struct copier *c, uint64_t dst, uint64_t src, size_t n,
		      struct err *e)
{
	size_t head = -src & 15, body;

	if ((dst ^ src) & 15)
		return launch_copy(c, c->copy1, dst, src, n, e);
	if (head > n)
		head = n;
	body = (n - head) / 16 * 16;
	return launch_copy(c, c->copy1, dst, src, head, e) &&
	       launch_copy(c, c->copy16, dst + head, src + head, body / 16,
			   e) &&
	       launch_copy(c, c->copy1, dst + head + body, src + head + body,
			   n - head - body, e);
}

/* With copy_lock held: by the device, between addresses it can reach. */
static bool by_device(struct kfd_dev *dev, uint64_t dst, uint64_t src, size_t n,
		      struct err *e)
{
	if (!copier_make(dev, e))
		return err_wrap(e, "making the copy queue");
	for (size_t at = 0; at < n;) {
		size_t now = n - at < LAUNCH_BYTES ? n - at : LAUNCH_BYTES;

		if (!copy_part(dev->copier, dst + at, src + at, now, e) ||
		    !kfd_drain(dev->copier->q, time_mono_ns() + DEADLINE_NS, e))
			return false;
		at += now;
	}
	return true;
}

/* Through the staging buffer; exactly one of in and out is given. */
static bool copy_staged(struct kfd_dev *dev, uint64_t va, const char *in,
			char *out, size_t n, struct err *e)
{
	bool good = true;

	pthread_mutex_lock(&dev->copy_lock);
	for (size_t at = 0; at < n && good;) {
		const size_t now = n - at < STAGING_BYTES ? n - at :
							    STAGING_BYTES;

		good = copier_make(dev, e);
		if (!good)
			break;
		struct kfd_mem *s = &dev->copier->staging->pub;
		if (in)
			memcpy(s->cpu, in + at, now);
		good = in ? by_device(dev, va + at, s->va, now, e) :
			    by_device(dev, s->va, va + at, now, e);
		if (good && out)
			memcpy(out + at, s->cpu, now);
		at += now;
	}
	pthread_mutex_unlock(&dev->copy_lock);
	return good;
}

static bool copy_direct(struct kfd_dev *dev, uint64_t dst, uint64_t src,
			size_t n, struct err *e)
{
	bool good;

	pthread_mutex_lock(&dev->copy_lock);
	good = by_device(dev, dst, src, n, e);
	pthread_mutex_unlock(&dev->copy_lock);
	return good;
}

const struct copier_ops kfd_copier_ops = { copy_direct, copy_staged };
