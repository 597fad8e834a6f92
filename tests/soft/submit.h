/*
 * submit.h - what the tests of DRM's buffers and submissions share: a device, a
 * context, and the shortest legal calls.
 *
 * The oracle is the uapi of amdgpu and what its kernel part answers (errnos of
 * amdgpu_gem.c, amdgpu_cs.c, amdgpu_ctx.c, drm_syncobj.c); packets are written
 * out as the hardware's manuals have them.
 */
#ifndef T0_TESTS_SOFT_SUBMIT_H
#define T0_TESTS_SOFT_SUBMIT_H

#include <amdgpu_drm.h>
#include <drm.h>

#include "tests/soft/softdev.h"

#define HEAD(op, body_dw) (0xc0000000u | ((body_dw)-1u) << 16 | (op) << 8)
#define VA		  0x400000ull /* where buffers are put */
#define RWX \
	(AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE | \
	 AMDGPU_VM_PAGE_EXECUTABLE)
#define FOREVER UINT64_MAX

static struct sd s;
static uint32_t ctx;

struct gem {
	uint32_t handle;
	uint32_t *p; /* on the host */
	uint64_t va, size;
};

static inline int call_drm(unsigned long request, void *arg)
{
	return s.d->ioctl(s.d, s.drm, request, arg);
}

static inline int create_gem(uint64_t size, uint64_t domain, uint32_t *handle)
{
	union drm_amdgpu_gem_create a = { .in = { size, 4096, domain, 0 } };
	const int ret = call_drm(DRM_IOCTL_AMDGPU_GEM_CREATE, &a);

	*handle = ret ? 0 : a.out.handle;
	return ret;
}

static inline int change_va(const struct gem *g, uint32_t op, uint64_t va,
			    uint64_t offset, uint64_t size)
{
	struct drm_amdgpu_gem_va a = {
		g->handle, 0, op, RWX, va, offset, size
	};

	return call_drm(DRM_IOCTL_AMDGPU_GEM_VA, &a);
}

static inline int close_gem(uint32_t handle)
{
	struct drm_gem_close a = { handle, 0 };

	return call_drm(DRM_IOCTL_GEM_CLOSE, &a);
}

/* A buffer that both see. */
static inline struct gem new_gem(uint64_t size, uint64_t domain, uint64_t va)
{
	struct gem g = { .va = va, .size = size };
	union drm_amdgpu_gem_mmap m;
	int err = 0;

	is_i64(create_gem(size, domain, &g.handle), 0, "a buffer");
	m.in.handle = g.handle;
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_MMAP, &m), 0, "can be mapped");
	g.p = s.d->mmap(s.d, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			s.drm, m.out.addr_ptr, &err);
	ok(g.p != MAP_FAILED, "and is");
	is_i64(change_va(&g, AMDGPU_VA_OP_MAP, va, 0, size), 0,
	       "the card has it at an address of ours");
	return g;
}

/* --------------------------------------------------------- submissions -- */

struct cs {
	struct drm_amdgpu_cs_chunk_ib ib;
	struct drm_amdgpu_cs_chunk_fence fence;
	struct drm_amdgpu_cs_chunk_dep dep;
	struct drm_amdgpu_cs_chunk chunk[3];
	uint64_t pointer[3];
	union drm_amdgpu_cs a;
};

static inline void add_chunk(struct cs *c, uint32_t id, const void *data,
			     uint32_t n)
{
	const uint32_t i = c->a.in.num_chunks++;

	c->chunk[i] = (struct drm_amdgpu_cs_chunk){ id, n / 4, sd_ptr(data) };
	c->pointer[i] = sd_ptr(&c->chunk[i]);
	c->a.in.chunks = sd_ptr(c->pointer);
	c->a.in.ctx_id = ctx;
}

/* `dwords` at va, to the ring 0 of this engine. */
static inline void cs_begin(struct cs *c, uint32_t ip, uint64_t va,
			    uint32_t dwords)
{
	memset(c, 0, sizeof(*c));
	c->ib = (struct drm_amdgpu_cs_chunk_ib){ .va_start = va,
						 .ib_bytes = dwords * 4,
						 .ip_type = ip };
	add_chunk(c, AMDGPU_CHUNK_ID_IB, &c->ib, sizeof(c->ib));
}

static inline int submit_job(struct cs *c)
{
	return call_drm(DRM_IOCTL_AMDGPU_CS, &c->a);
}

/* 0 done, 1 busy, -errno. */
static inline int wait_cs(uint32_t ip, uint64_t handle, uint64_t until)
{
	union drm_amdgpu_wait_cs a = { .in = { handle, until, ip, 0, 0, ctx } };
	const int ret = call_drm(DRM_IOCTL_AMDGPU_WAIT_CS, &a);

	return ret ? ret : (int)a.out.status;
}

static inline uint32_t put_write(uint32_t *dw, uint64_t va, uint32_t value)
{
	const uint32_t p[] = { HEAD(0x37, 4), 5u << 8, (uint32_t)va,
			       (uint32_t)(va >> 32), value };

	memcpy(dw, p, sizeof(p));
	return sizeof(p) / 4;
}

/* Until the dword at va is `value`. */
static inline uint32_t put_wait(uint32_t *dw, uint64_t va, uint32_t value)
{
	const uint32_t p[] = { HEAD(0x3c, 6),
			       3u | 1u << 4,
			       (uint32_t)va,
			       (uint32_t)(va >> 32),
			       value,
			       UINT32_MAX,
			       4 };

	memcpy(dw, p, sizeof(p));
	return sizeof(p) / 4;
}

static inline int call_ctx(uint32_t op, uint32_t id, union drm_amdgpu_ctx *a)
{
	*a = (union drm_amdgpu_ctx){ .in = { op, 0, id, 0 } };
	return call_drm(DRM_IOCTL_AMDGPU_CTX, a);
}

#endif
