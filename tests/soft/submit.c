/*
 * Buffers and command submission through the DRM nodes, on bare ioctls.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/soft/submit.h"

/* ------------------------------------------------------------- buffers -- */

static void test_buffers(void)
{
	struct gem g = { 0 };
	union drm_amdgpu_gem_mmap m = { .in = { 77, 0 } };
	struct drm_amdgpu_gem_create_in in;
	struct drm_amdgpu_gem_op op = { 0 };

	is_i64(create_gem(0, AMDGPU_GEM_DOMAIN_GTT, &g.handle), -EINVAL,
	       "a buffer of no bytes");
	is_i64(create_gem(4096, AMDGPU_GEM_DOMAIN_GDS, &g.handle), -EINVAL,
	       "a data share that the chip has not");
	is_i64(create_gem(1ull << 40, AMDGPU_GEM_DOMAIN_VRAM, &g.handle),
	       -ENOMEM, "more than there is");
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_MMAP, &m), -ENOENT,
	       "a handle that is none");
	is_i64(create_gem(5000, AMDGPU_GEM_DOMAIN_VRAM, &g.handle), 0,
	       "a buffer");
	op.handle = g.handle;
	op.value = sd_ptr(&in);
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_OP, &op), 0, "asked about");
	ok(in.bo_size == 8192 && in.domains == AMDGPU_GEM_DOMAIN_VRAM,
	   "is of whole pages of VRAM");
	is_i64(change_va(&g, AMDGPU_VA_OP_MAP, 0x1000, 0, 4096), -EINVAL,
	       "the lowest addresses are the kernel's");
	is_i64(change_va(&g, AMDGPU_VA_OP_MAP, VA + 1, 0, 4096), -EINVAL,
	       "parts of pages cannot be mapped");
	is_i64(change_va(&g, AMDGPU_VA_OP_MAP, VA, 4096, 8192), -EINVAL,
	       "nor more than there is");
	is_i64(change_va(&g, AMDGPU_VA_OP_MAP, VA, 4096, 4096), 0,
	       "but a page of it");
	is_i64(change_va(&g, AMDGPU_VA_OP_MAP, VA, 0, 4096), -EINVAL,
	       "where nothing else is");
	is_i64(change_va(&g, AMDGPU_VA_OP_UNMAP, VA + 4096, 0, 4096), -ENOENT,
	       "what is not mapped is not unmapped");
	is_i64(change_va(&g, AMDGPU_VA_OP_UNMAP, VA, 0, 4096), 0, "what is, is");
	is_i64(close_gem(g.handle), 0, "it is given back");
	is_i64(close_gem(g.handle), -EINVAL, "once");
}

static void test_share(void)
{
	struct gem g = new_gem(4096, AMDGPU_GEM_DOMAIN_VRAM, VA);
	struct drm_amdgpu_gem_metadata m = {
		.handle = g.handle, .op = AMDGPU_GEM_METADATA_OP_SET_METADATA,
		.data = { .tiling_info = 3, .data_size_bytes = 8,
			  .data = { 1, 2 } },
	};
	struct drm_prime_handle h = { .handle = g.handle,
				      .flags = O_CLOEXEC };
	uint32_t told[4] = { 0 };
	struct kfd_ioc_get_dmabuf_info info = { .metadata_ptr = sd_ptr(told),
						.metadata_size = 16 };
	struct kfd_ioc_import_dmabuf imp = { .gpu_id = SOFT_GPU_ID };
	uint32_t *there = sd_reserve(4096);

	g.p[5] = 55;
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_METADATA, &m), 0,
	       "notes about it");
	is_i64(call_drm(DRM_IOCTL_PRIME_HANDLE_TO_FD, &h), 0, "a file of it");
	info.dmabuf_fd = imp.dmabuf_fd = (uint32_t)h.fd;
	is_i64(sd_ioctl(&s, KFD_IOC_GET_DMABUF_INFO, &info), 0,
	       "KFD knows the file");
	ok(info.size == 4096 && info.metadata_size == 8 && told[0] == 1 &&
		   told[1] == 2 && info.flags & KFD_MEM_VRAM,
	   "its size, place and notes");
	imp.va_addr = sd_ptr(there);
	is_i64(sd_ioctl(&s, KFD_IOC_IMPORT_DMABUF, &imp), 0, "and takes it");
	is_i64(sd_map(&s, imp.handle, true), 0, "to the card's addresses");
	g.p[6] = 66;
	is_i64(close_gem(g.handle), 0, "whose maker lets it go");
	is_i64(call_drm(DRM_IOCTL_PRIME_FD_TO_HANDLE, &h), 0,
	       "another file takes it");
	g.handle = h.handle;
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_METADATA,
			&(struct drm_amdgpu_gem_metadata){
				.handle = h.handle,
				.op = AMDGPU_GEM_METADATA_OP_GET_METADATA }),
	       0, "and may ask for notes");
	close(h.fd);
	is_u64(g.p[5] + g.p[6], 121, "its bytes are what they were");
	sd_map(&s, imp.handle, false);
	sd_free_handle(&s, imp.handle);
	close_gem(h.handle);
}

/* -------------------------------------------------------- submissions -- */

static void test_compute(struct gem *ib, struct gem *out)
{
	struct cs c;
	uint32_t n;

	n = put_write(ib->p, out->va, 0x1234);
	n += put_write(ib->p + n, out->va + 4, 0x5678);
	cs_begin(&c, AMDGPU_HW_IP_COMPUTE, ib->va, n);
	is_i64(submit_job(&c), 0, "packets for a compute ring");
	is_u64(c.a.out.handle, 1, "its first");
	is_i64(wait_cs(AMDGPU_HW_IP_COMPUTE, 1, FOREVER), 0, "are done");
	ok(out->p[0] == 0x1234 && out->p[1] == 0x5678, "and did it");
	cs_begin(&c, AMDGPU_HW_IP_GFX, ib->va, n);
	out->p[0] = 0;
	is_i64(submit_job(&c), 0, "the same for the graphics ring");
	is_i64(wait_cs(AMDGPU_HW_IP_GFX, FOREVER, FOREVER), 0, "up to the last");
	is_u64(out->p[0], 0x1234, "which runs them, too");
}

/* SDMA: a write of one dword, a trap and a NOP. */
static void test_dma(struct gem *ib, struct gem *out)
{
	const uint32_t p[] = { 2, (uint32_t)out->va,
			       (uint32_t)(out->va >> 32), 0, 0xd3a, 0, 0, 0 };
	struct cs c;

	memcpy(ib->p, p, sizeof(p));
	cs_begin(&c, AMDGPU_HW_IP_DMA, ib->va, 8);
	is_i64(submit_job(&c), 0, "packets for an SDMA ring");
	is_i64(wait_cs(AMDGPU_HW_IP_DMA, c.a.out.handle, FOREVER), 0,
	       "are done");
	is_u64(out->p[0], 0xd3a, "and did it");
}

/* A buffer that waits keeps its ring busy, and what depends on it. */
static void test_waits(struct gem *ib, struct gem *out)
{
	struct drm_amdgpu_fence f = { .ctx_id = ctx,
				      .ip_type = AMDGPU_HW_IP_COMPUTE };
	union drm_amdgpu_wait_fences w = { .in = { sd_ptr(&f), 1, 1, 0 } };
	union drm_amdgpu_gem_wait_idle idle = { .in = { ib->handle, 0, 0 } };
	uint64_t first;
	struct cs c, later;
	uint32_t n;

	memset(out->p, 0, 4096);
	n = put_wait(ib->p, out->va, 7);
	n += put_write(ib->p + n, out->va + 4, 8);
	cs_begin(&c, AMDGPU_HW_IP_COMPUTE, ib->va, n);
	c.fence = (struct drm_amdgpu_cs_chunk_fence){ out->handle, 64 };
	add_chunk(&c, AMDGPU_CHUNK_ID_FENCE, &c.fence, sizeof(c.fence));
	is_i64(submit_job(&c), 0, "a buffer that waits");
	f.seq_no = first = c.a.out.handle;
	put_write(ib->p + 64, out->va + 8, 9);
	cs_begin(&later, AMDGPU_HW_IP_DMA, ib->va + 1024, 1);
	ib->p[256] = 0;
	later.dep = (struct drm_amdgpu_cs_chunk_dep){
		AMDGPU_HW_IP_COMPUTE, 0, 0, ctx, first };
	add_chunk(&later, AMDGPU_CHUNK_ID_DEPENDENCIES, &later.dep,
		  sizeof(later.dep));
	is_i64(submit_job(&later), 0, "another ring's that depends on it");
	is_i64(wait_cs(AMDGPU_HW_IP_COMPUTE, first,
		       time_mono_ns() + 30000000), 1, "is not done in time");
	is_i64(wait_cs(AMDGPU_HW_IP_DMA, later.a.out.handle,
		       time_mono_ns() + 30000000), 1, "nor is that");
	is_i64(call_drm(DRM_IOCTL_AMDGPU_WAIT_FENCES, &w), 0, "all fences");
	is_u64(w.out.status, 0, "are not there");
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, &idle), 0,
	       "the buffer");
	is_u64(idle.out.status, 1, "is busy");
	__atomic_store_n(out->p, 7, __ATOMIC_SEQ_CST);
	is_i64(wait_cs(AMDGPU_HW_IP_DMA, later.a.out.handle, FOREVER), 0,
	       "both are done when what was waited for comes");
	is_u64(out->p[1], 8, "what stood behind the wait happened");
	is_u64(*(uint64_t *)(out->p + 16), first, "the fence is written");
	w.in = (struct drm_amdgpu_wait_fences_in){ sd_ptr(&f), 1, 0,
						   time_mono_ns() };
	is_i64(call_drm(DRM_IOCTL_AMDGPU_WAIT_FENCES, &w), 0, "any fence");
	is_u64(w.out.status, 1, "is there");
	idle.in = (struct drm_amdgpu_gem_wait_idle_in){ ib->handle, 0,
							FOREVER };
	call_drm(DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, &idle);
	ok(!idle.out.status && idle.out.domain == AMDGPU_GEM_DOMAIN_GTT,
	   "the buffer is idle");
}

/* Of several fences the one that is there, wherever it stands. */
static void test_any(struct gem *ib, struct gem *out)
{
	struct drm_amdgpu_fence f[2] = {
		{ .ctx_id = ctx, .ip_type = AMDGPU_HW_IP_COMPUTE },
		{ .ctx_id = ctx, .ip_type = AMDGPU_HW_IP_GFX,
		  .seq_no = FOREVER },
	};
	union drm_amdgpu_wait_fences w = { .in = { sd_ptr(f), 1, 0, 0 } };
	struct cs c;

	out->p[0] = 0;
	cs_begin(&c, AMDGPU_HW_IP_COMPUTE, ib->va,
		 put_wait(ib->p, out->va, 7));
	is_i64(submit_job(&c), 0, "a buffer that waits, again");
	f[0].seq_no = c.a.out.handle;
	is_i64(call_drm(DRM_IOCTL_AMDGPU_WAIT_FENCES, &w), 0,
	       "its fence alone");
	ok(!w.out.status && w.out.first_signaled == UINT32_MAX,
	   "is not there, nor any");
	w.in = (struct drm_amdgpu_wait_fences_in){ sd_ptr(f), 2, 0, 0 };
	is_i64(call_drm(DRM_IOCTL_AMDGPU_WAIT_FENCES, &w), 0,
	       "with that of an idle ring behind it");
	ok(w.out.status && w.out.first_signaled == 1,
	   "the second one is there, at once");
	out->p[0] = 7;
	is_i64(wait_cs(AMDGPU_HW_IP_COMPUTE, f[0].seq_no, FOREVER), 0,
	       "then the first comes");
}

/* Addresses of DRM's buffers are taken for ranges of host memory. */
static void test_svm(void)
{
	void *p = sd_reserve(4096);
	struct gem g = new_gem(4096, AMDGPU_GEM_DOMAIN_GTT, sd_ptr(p));
	struct {
		struct kfd_ioc_svm a;
		struct kfd_svm_attr attr;
	} v = { { sd_ptr(p), 4096, KFD_SVM_OP_SET, 1 },
		{ KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID } };

	ok(mmap(p, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p,
	   "host memory where the card has a buffer");
	is_i64(sd_ioctl(&s, KFD_IOC_SVM(1), &v), -EADDRINUSE,
	       "becomes no range of the card");
	is_i64(close_gem(g.handle), 0, "until that is gone");
	is_i64(sd_ioctl(&s, KFD_IOC_SVM(1), &v), 0, "then it does");
	s.d->munmap(s.d, p, 4096);
}

/* Buffers go although the ring uses them, and their fences with them. */
static void test_stuck(struct gem *ib, struct gem *out)
{
	struct gem fence = new_gem(4096, AMDGPU_GEM_DOMAIN_GTT, VA + 0x30000);
	struct gem next[8]; /* of which one is where the fence was */
	const int drm_fd = s.drm;
	uint32_t used = 0, handle;
	struct cs c;

	out->p[0] = 0;
	cs_begin(&c, AMDGPU_HW_IP_COMPUTE, ib->va,
		 put_wait(ib->p, out->va, 7));
	c.fence = (struct drm_amdgpu_cs_chunk_fence){ fence.handle, 64 };
	add_chunk(&c, AMDGPU_CHUNK_ID_FENCE, &c.fence, sizeof(c.fence));
	is_i64(submit_job(&c), 0, "a buffer that waits, with a fence");
	is_i64(close_gem(fence.handle), 0, "whose memory is given back");
	for (int i = 0; i < 8; i++)
		next[i] = new_gem(4096, AMDGPU_GEM_DOMAIN_GTT,
				  VA + 0x30000 + 4096u * (unsigned)i);
	/* One second for all, not for each. */
	s.drm = s.d->open(s.d, "/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 400; i++)
		create_gem(4096, AMDGPU_GEM_DOMAIN_GTT, &handle);
	is_i64(s.d->close(s.d, s.drm), 0, "a file with many is closed");
	s.drm = drm_fd;
	out->p[0] = 7;
	is_i64(wait_cs(AMDGPU_HW_IP_COMPUTE, c.a.out.handle, FOREVER), 0,
	       "it is done");
	for (int i = 0; i < 8; i++) {
		used |= next[i].p[16];
		close_gem(next[i].handle);
	}
	is_u64(used, 0, "and writes no fence to who has the memory now");
}

static void test_refused(struct gem *ib)
{
	union drm_amdgpu_bo_list list = { .in = { 0 } };
	struct drm_amdgpu_bo_list_entry e = { 77, 0 };
	uint32_t made;
	struct cs c;

	cs_begin(&c, AMDGPU_HW_IP_COMPUTE, ib->va, 4);
	c.a.in.ctx_id = 99;
	is_i64(submit_job(&c), -EINVAL, "a context that is not there");
	cs_begin(&c, AMDGPU_HW_IP_UVD, ib->va, 4);
	is_i64(submit_job(&c), -EINVAL, "an engine that is not there");
	cs_begin(&c, AMDGPU_HW_IP_GFX, ib->va, 4);
	c.ib.ring = 1;
	is_i64(submit_job(&c), -EINVAL, "a second graphics ring");
	cs_begin(&c, AMDGPU_HW_IP_GFX, ib->va, 4);
	c.dep = (struct drm_amdgpu_cs_chunk_dep){ AMDGPU_HW_IP_GFX, 0, 0, ctx,
						  0 };
	add_chunk(&c, AMDGPU_CHUNK_ID_DEPENDENCIES, &c.dep, sizeof(c.dep));
	c.chunk[1].length_dw = 0x40000001;
	is_i64(submit_job(&c), -EINVAL, "4 GiB of dependencies");
	cs_begin(&c, AMDGPU_HW_IP_GFX, ib->va, 4);
	c.a.in.chunks = 16;
	is_i64(submit_job(&c), -EFAULT, "a bad pointer");
	cs_begin(&c, AMDGPU_HW_IP_GFX, ib->va, 4);
	c.a.in.bo_list_handle = 99;
	is_i64(submit_job(&c), -ENOENT, "a list that is not there");
	is_i64(wait_cs(AMDGPU_HW_IP_COMPUTE, 1000, 0), -EINVAL,
	       "a wait for what was not submitted");
	list.in.bo_number = 1;
	list.in.bo_info_size = sizeof(e);
	list.in.bo_info_ptr = sd_ptr(&e);
	is_i64(call_drm(DRM_IOCTL_AMDGPU_BO_LIST, &list), -ENOENT,
	       "a list of what is not there");
	e.bo_handle = ib->handle;
	is_i64(call_drm(DRM_IOCTL_AMDGPU_BO_LIST, &list), 0, "a list");
	made = list.out.list_handle;
	memset(ib->p, 0, 16);
	cs_begin(&c, AMDGPU_HW_IP_DMA, ib->va, 4);
	c.a.in.bo_list_handle = made;
	is_i64(submit_job(&c), 0, "is taken");
	wait_cs(AMDGPU_HW_IP_DMA, FOREVER, FOREVER);
	list.in = (struct drm_amdgpu_bo_list_in){
		AMDGPU_BO_LIST_OP_DESTROY, made, 0, 0, 0 };
	is_i64(call_drm(DRM_IOCTL_AMDGPU_BO_LIST, &list), 0, "and given back");
}

/* A child has the descriptor, but neither what it owns nor its threads. */
static void test_fork(void)
{
	const pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(wait_cs(AMDGPU_HW_IP_DMA, 1, FOREVER) != -EACCES);
	waitpid(child, &status, 0);
	is_i64(status, 0, "a child that waits for its parent's is refused");
}

/* What no engine knows resets the card, and its contexts are lost. */
static void test_reset(struct gem *ib)
{
	union drm_amdgpu_ctx a;
	struct cs c;

	call_ctx(AMDGPU_CTX_OP_QUERY_STATE2, ctx, &a);
	is_u64(a.out.state.flags, 0, "no reset so far");
	ib->p[0] = HEAD(0x2d, 2); /* DRAW_INDEX_AUTO */
	cs_begin(&c, AMDGPU_HW_IP_GFX, ib->va, 3);
	is_i64(submit_job(&c), 0, "a draw is taken");
	is_i64(wait_cs(AMDGPU_HW_IP_GFX, c.a.out.handle, FOREVER), 0,
	       "and over, by a reset");
	call_ctx(AMDGPU_CTX_OP_QUERY_STATE2, ctx, &a);
	is_u64(a.out.state.flags, AMDGPU_CTX_QUERY2_FLAGS_RESET |
					  AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST,
	       "as the context says");
	is_i64(submit_job(&c), -EINVAL, "(its structure was overwritten)");
	cs_begin(&c, AMDGPU_HW_IP_GFX, ib->va, 3);
	is_i64(submit_job(&c), -ECANCELED, "which takes no more");
	is_i64(call_ctx(AMDGPU_CTX_OP_FREE_CTX, ctx, &a), 0,
	       "it is given back");
	is_i64(call_ctx(AMDGPU_CTX_OP_FREE_CTX, ctx, &a), -EINVAL, "once");
}

int main(void)
{
	const struct soft_options o = { .threads = 1 };
	union drm_amdgpu_ctx a;
	struct gem ib, out;

	s = sd_open(&o);
	is_i64(call_ctx(AMDGPU_CTX_OP_ALLOC_CTX, 0, &a), 0, "a context");
	ctx = a.out.alloc.ctx_id;
	test_buffers();
	test_share();
	ib = new_gem(4096, AMDGPU_GEM_DOMAIN_GTT, VA + 0x10000);
	out = new_gem(4096, AMDGPU_GEM_DOMAIN_VRAM, VA + 0x20000);
	test_compute(&ib, &out);
	test_dma(&ib, &out);
	test_waits(&ib, &out);
	test_any(&ib, &out);
	test_svm();
	test_stuck(&ib, &out);
	test_refused(&ib);
	test_fork();
	test_reset(&ib);
	s.d->close(s.d, s.drm);
	s.drm = s.d->open(s.d, "/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	is_i64(close_gem(ib.handle), -EINVAL,
	       "buffers go with the file that made them");
	sd_close(&s);
	return plan_done();
}
