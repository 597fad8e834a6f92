/*
 * Synchronisation objects of DRM, binary and with points, on bare ioctls; and
 * what Vulkan's drivers do besides: high addresses, sparse ones, dispatches.
 */
#include <pthread.h>
#include <unistd.h>

#include "tests/code.h"
#include "tests/soft/submit.h"

#define SOON_NS 30000000ull

static struct gem ib, out;

/* --------------------------------------------------------------- calls -- */

static uint32_t create_sync(uint32_t flags)
{
	struct drm_syncobj_create a = { 0, flags };
	const int ret = call_drm(DRM_IOCTL_SYNCOBJ_CREATE, &a);

	return ret ? 0 : a.handle;
}

static int destroy_sync(uint32_t handle)
{
	struct drm_syncobj_destroy a = { handle, 0 };

	return call_drm(DRM_IOCTL_SYNCOBJ_DESTROY, &a);
}

/* RESET and SIGNAL of one. */
static int change_sync(unsigned long request, uint32_t handle)
{
	struct drm_syncobj_array a = { sd_ptr(&handle), 1, 0 };

	return call_drm(request, &a);
}

static int wait_many(const uint32_t *handle, uint32_t n, uint32_t flags,
		     uint64_t ns, uint32_t *first)
{
	struct drm_syncobj_wait a = {
		.handles = sd_ptr(handle),
		.count_handles = n,
		.flags = flags,
		.timeout_nsec = (int64_t)(time_mono_ns() + ns),
	};
	const int ret = call_drm(DRM_IOCTL_SYNCOBJ_WAIT, &a);

	if (first)
		*first = a.first_signaled;
	return ret;
}

static int wait_sync(uint32_t handle, uint32_t flags, uint64_t ns)
{
	return wait_many(&handle, 1, flags, ns, NULL);
}

static int wait_point(uint32_t handle, uint64_t point, uint32_t flags,
		      uint64_t ns)
{
	struct drm_syncobj_timeline_wait a = {
		.handles = sd_ptr(&handle),
		.points = sd_ptr(&point),
		.count_handles = 1,
		.flags = flags,
		.timeout_nsec = (int64_t)(time_mono_ns() + ns),
	};

	return call_drm(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &a);
}

static int signal_point(uint32_t handle, uint64_t point)
{
	struct drm_syncobj_timeline_array a = { sd_ptr(&handle), sd_ptr(&point),
						1, 0 };

	return call_drm(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &a);
}

/* The point that is reached, or with a flag that is submitted; -1. */
static int64_t query_point(uint32_t handle, uint32_t flags)
{
	uint64_t point = 77;
	struct drm_syncobj_timeline_array a = { sd_ptr(&handle), sd_ptr(&point),
						1, flags };

	return call_drm(DRM_IOCTL_SYNCOBJ_QUERY, &a) ? -1 : (int64_t)point;
}

static int transfer_point(uint32_t from, uint64_t from_point, uint32_t to,
			  uint64_t to_point)
{
	struct drm_syncobj_transfer a = {
		from, to, from_point, to_point, 0, 0
	};

	return call_drm(DRM_IOCTL_SYNCOBJ_TRANSFER, &a);
}

/*
 * A submission to a ring of an engine that waits for *out == value, if that is
 * not 0, and then stores `mark` behind it; the chunk is about one object.
 */
static int submit_with(uint32_t ip, uint32_t slot, uint32_t value,
		       uint32_t mark, uint32_t chunk, uint32_t handle,
		       uint64_t point)
{
	const bool timeline = chunk == AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT ||
			      chunk == AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL;
	static struct drm_amdgpu_cs_chunk_syncobj data;
	uint32_t *p = ib.p + 64 * slot, n = 0;
	struct cs c;

	if (value)
		n = put_wait(p, out.va, value);
	n += put_write(p + n, out.va + 4 * mark, mark);
	data = (struct drm_amdgpu_cs_chunk_syncobj){ handle, 0, point };
	cs_begin(&c, ip, ib.va + 256 * slot, n);
	add_chunk(&c, chunk, &data, timeline ? sizeof(data) : 4);
	return submit_job(&c);
}

static void go_on(uint32_t value)
{
	__atomic_store_n(out.p, value, __ATOMIC_SEQ_CST);
}

/* -------------------------------------------------------------- binary -- */

static void test_caps(void)
{
	for (uint64_t cap = 0x13; cap < 0x15; cap++) {
		struct drm_get_cap a = { cap, 0 };

		is_i64(call_drm(DRM_IOCTL_GET_CAP, &a), 0, "a capability");
		is_u64(a.value, 1, "is there");
	}
}

static void test_binary(void)
{
	const uint32_t new = create_sync(0);
	const uint32_t done = create_sync(DRM_SYNCOBJ_CREATE_SIGNALED);
	const uint32_t both[2] = { new, done };
	uint32_t first = 9;

	ok(new && done && new != done, "two objects");
	is_u64(create_sync(2), 0, "unknown flags are refused");
	is_i64(wait_sync(done, 0, 0), 0, "one was signalled at once");
	is_i64(wait_sync(new, 0, SOON_NS), -EINVAL,
	       "a wait for what nobody submitted");
	is_i64(wait_sync(new, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, SOON_NS),
	       -ETIME, "or it waits until somebody does");
	is_i64(wait_many(both, 2, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, 0,
			 &first),
	       0, "any of two");
	is_u64(first, 1, "is the second");
	is_i64(wait_many(both, 2,
			 DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT |
				 DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL,
			 SOON_NS, NULL),
	       -ETIME, "both are not there");
	is_i64(change_sync(DRM_IOCTL_SYNCOBJ_SIGNAL, new), 0, "signalled");
	is_i64(wait_many(both, 2, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL, 0, NULL), 0,
	       "they are");
	is_i64(change_sync(DRM_IOCTL_SYNCOBJ_RESET, new), 0, "reset");
	is_i64(wait_sync(new, 0, 0), -EINVAL, "it has nothing again");
	is_i64(wait_sync(new, 64, 0), -EINVAL, "an unknown flag");
	is_i64(wait_many(both, 0, 0, 0, NULL), 0, "none is there at once");
	is_i64(wait_sync(999, 0, 0), -ENOENT, "a handle that is none");
	is_i64(change_sync(DRM_IOCTL_SYNCOBJ_RESET, 999), -ENOENT,
	       "nor can it be reset");
	is_i64(destroy_sync(new), 0, "given back");
	is_i64(destroy_sync(new), -EINVAL, "once");
	is_i64(destroy_sync(done), 0, "and the other");
}

/* What one ring does behind what another one has done. */
static void test_order(void)
{
	const uint32_t a = create_sync(0), b = create_sync(0);

	memset(out.p, 0, 4096);
	is_i64(submit_with(AMDGPU_HW_IP_COMPUTE, 0, 7, 1,
			   AMDGPU_CHUNK_ID_SYNCOBJ_IN, a, 0),
	       -EINVAL, "nothing begins behind nothing");
	is_i64(submit_with(AMDGPU_HW_IP_COMPUTE, 0, 7, 1,
			   AMDGPU_CHUNK_ID_SYNCOBJ_OUT, a, 0),
	       0, "a job whose end is an object's");
	is_i64(submit_with(AMDGPU_HW_IP_GFX, 1, 0, 2,
			   AMDGPU_CHUNK_ID_SYNCOBJ_IN, a, 0),
	       0, "one of another ring behind it");
	is_i64(submit_with(AMDGPU_HW_IP_GFX, 2, 0, 3,
			   AMDGPU_CHUNK_ID_SYNCOBJ_OUT, b, 0),
	       0, "and one behind that");
	is_i64(wait_sync(a, 0, SOON_NS), -ETIME, "the first has not ended");
	is_i64(wait_sync(b, 0, SOON_NS), -ETIME, "so the last has not");
	is_u64(out.p[2] + out.p[3], 0, "nor begun");
	go_on(7);
	is_i64(wait_sync(b, 0, 10000000000ull), 0, "they end");
	is_u64(out.p[1] + out.p[2] + out.p[3], 6, "all did their work");
	is_i64(submit_with(AMDGPU_HW_IP_GFX, 0, 0, 1,
			   AMDGPU_CHUNK_ID_SYNCOBJ_OUT, 999, 0),
	       -EINVAL, "an object that is not there");
	destroy_sync(a);
	destroy_sync(b);
}

static void *submit_late(void *handle)
{
	usleep(20000);
	return submit_with(AMDGPU_HW_IP_COMPUTE, 0, 0, 1,
			   AMDGPU_CHUNK_ID_SYNCOBJ_OUT, *(uint32_t *)handle,
			   0) ?
		       handle :
		       NULL;
}

static void test_late(void)
{
	uint32_t a = create_sync(0);
	pthread_t t;
	void *bad = NULL;

	pthread_create(&t, NULL, submit_late, &a);
	is_i64(wait_sync(a, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT,
			 10000000000ull),
	       0, "a wait ends that began before the submission");
	pthread_join(t, &bad);
	ok(!bad, "which was taken");
	destroy_sync(a);
}

/* ------------------------------------------------------------ timeline -- */

static void test_timeline(void)
{
	const uint32_t a = create_sync(0), b = create_sync(0);
	const uint32_t available = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE;
	const uint32_t submitted = DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED;

	memset(out.p, 0, 4096);
	is_i64(query_point(a, 0), 0, "a line begins at 0");
	is_i64(signal_point(a, 3), 0, "the host sets a point");
	is_i64(query_point(a, 0), 3, "which is reached");
	is_i64(wait_point(a, 2, 0, 0), 0, "and those before it");
	is_i64(wait_point(a, 4, 0, 0), -EINVAL, "the next is not there");
	is_i64(submit_with(AMDGPU_HW_IP_COMPUTE, 0, 5, 1,
			   AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, a, 5),
	       0, "a job reaches point 5");
	is_i64(query_point(a, 0), 3, "not yet");
	is_i64(query_point(a, submitted), 5, "but it is submitted");
	is_i64(wait_point(a, 4, available, 0), 0, "so it will come");
	is_i64(wait_point(a, 4, 0, SOON_NS), -ETIME, "it has not come");
	is_i64(submit_with(AMDGPU_HW_IP_GFX, 1, 0, 2,
			   AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, a, 4),
	       0, "another job is behind point 4");
	is_i64(signal_point(a, 9), 0, "a later point of the host");
	is_i64(query_point(a, 0), 3, "is not reached before that");
	is_i64(transfer_point(a, 9, b, 0), 0, "another object gets its fence");
	is_i64(wait_sync(b, 0, SOON_NS), -ETIME,
	       "which stands for those before it");
	is_i64(transfer_point(a, 3, b, 0), 0, "that of a point that is past");
	is_i64(wait_sync(b, 0, 0), 0, "is there");
	is_i64(transfer_point(a, 9, b, 4), 0, "as a point of its own");
	is_i64(query_point(b, 0), 0, "it is not reached, either");
	is_i64(transfer_point(a, 5, b, 0), 0, "and that of point 5");
	is_i64(wait_sync(b, 0, SOON_NS), -ETIME, "which is not");
	is_i64(transfer_point(a, 10, b, 1), -EINVAL, "there is no point 10");
	is_u64(out.p[2], 0, "the job behind it has not begun");
	go_on(5);
	is_i64(wait_point(a, 9, 0, 10000000000ull), 0, "then all come");
	is_i64(query_point(a, 0), 9, "up to the last");
	is_i64(wait_sync(b, 0, 10000000000ull), 0, "the other one's, too");
	is_i64(transfer_point(a, 0, b, 2), 0, "a point made of a fence");
	is_i64(query_point(b, 0), 2, "is reached");
	is_i64(change_sync(DRM_IOCTL_SYNCOBJ_RESET, a), 0, "reset");
	is_i64(query_point(a, 0), 0, "it begins anew");
	destroy_sync(a);
	destroy_sync(b);
}

static void test_shared(void)
{
	struct drm_syncobj_handle h = { .handle = create_sync(0) };

	is_i64(call_drm(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &h), -EOPNOTSUPP,
	       "objects stay in their process");
	destroy_sync(h.handle);
}

/* Jobs enough that fences are passed and forgotten. */
static void test_many(void)
{
	const uint32_t a = create_sync(0);
	int bad = 0;

	memset(out.p, 0, 4096);
	for (uint32_t i = 1; i <= 500; i++)
		bad += submit_with(AMDGPU_HW_IP_COMPUTE, i % 8, 0, 1 + i % 8,
				   AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, a,
				   i) != 0;
	is_i64(bad, 0, "500 points");
	is_i64(wait_point(a, 500, 0, 10000000000ull), 0, "are all reached");
	is_i64(query_point(a, 0), 500, "up to the last");
	destroy_sync(a);
}

/* ------------------------------------------------------ high addresses -- */

#define HIGH 0xffff800000000000ull

/* A program at a high address, started by a ring of DRM. */
static void test_dispatch(uint32_t ip)
{
	struct gem code = new_gem(4096, AMDGPU_GEM_DOMAIN_VRAM, HIGH);
	struct gem high = new_gem(4096, AMDGPU_GEM_DOMAIN_VRAM, HIGH + 0x10000);
	static const char *const text =
		"s_load_b32 s2, s[0:1], 0x40; v_lshlrev_b32 v1, 2, v0; "
		"s_waitcnt lgkmcnt(0); v_add_nc_u32 v0, s2, v0; "
		"global_store_b32 v1, v0, s[0:1]; s_endpgm";
	const uint32_t lo = (uint32_t)high.va, hi = (uint32_t)(high.va >> 32);
	const uint32_t p[] = {
		HEAD(0x76, 3),
		0x20c,
		(uint32_t)(code.va >> 8),
		(uint32_t)(code.va >> 40) & 0xff,
		HEAD(0x76, 3),
		0x212,
		0,
		2u << 1,
		HEAD(0x76, 4),
		0x207,
		8,
		1,
		1,
		HEAD(0x76, 3),
		0x240,
		lo,
		hi,
		HEAD(0x15, 4),
		1,
		1,
		1,
		1u | 1u << 2 | 1u << 15,
	};
	struct cs c;

	code_lines(text, 32, code.p, 1024);
	high.p[16] = 100;
	memcpy(ib.p, p, sizeof(p));
	cs_begin(&c, ip, ib.va, sizeof(p) / 4);
	is_i64(submit_job(&c), 0, "a dispatch");
	is_i64(wait_cs(ip, c.a.out.handle, FOREVER), 0, "is done");
	for (uint32_t i = 0; i < 8; i++)
		is_u64(high.p[i], 100 + i, "work-item %u", i);
	close_gem(high.handle);
	close_gem(code.handle);
}

static void test_addresses(void)
{
	struct gem g = new_gem(8192, AMDGPU_GEM_DOMAIN_GTT, HIGH + 0x40000);
	const struct gem none = { 0 };
	struct drm_amdgpu_gem_va a = {
		0, 0,	   AMDGPU_VA_OP_MAP, AMDGPU_VM_PAGE_PRT, HIGH + 0x80000,
		0, 1 << 20
	};

	is_i64(change_va(&g, AMDGPU_VA_OP_MAP, 0x800000000000, 0, 4096),
	       -EINVAL, "between low and high addresses is nothing");
	is_i64(change_va(&g, AMDGPU_VA_OP_MAP, (uint64_t)-4096, 0, 8192),
	       -EINVAL, "nor behind the last");
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_VA, &a), 0,
	       "addresses without memory");
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_VA, &a), -EINVAL, "once");
	is_i64(change_va(&none, AMDGPU_VA_OP_CLEAR, HIGH + 0x40000, 0, 4096),
	       -EINVAL, "a part of a mapping cannot go");
	is_i64(change_va(&none, AMDGPU_VA_OP_CLEAR, HIGH + 0x40000, 0,
			 0x200000),
	       0, "all of two can");
	is_i64(change_va(&g, AMDGPU_VA_OP_UNMAP, HIGH + 0x40000, 0, 8192),
	       -ENOENT, "then they are gone");
	is_i64(call_drm(DRM_IOCTL_AMDGPU_GEM_VA, &a), 0,
	       "and the addresses free");
	close_gem(g.handle);
}

/* COPY_DATA of a dword without memory. */
static void test_nothing(void)
{
	const uint64_t va = HIGH + 0x80000 + 0x1234;
	const uint32_t p[] = { HEAD(0x40, 5),	 1u | 5u << 8,
			       (uint32_t)va,	 (uint32_t)(va >> 32),
			       (uint32_t)out.va, (uint32_t)(out.va >> 32) };
	struct cs c;

	memcpy(ib.p, p, sizeof(p));
	out.p[0] = 77;
	cs_begin(&c, AMDGPU_HW_IP_COMPUTE, ib.va, sizeof(p) / 4);
	is_i64(submit_job(&c), 0, "a read of it");
	is_i64(wait_cs(AMDGPU_HW_IP_COMPUTE, c.a.out.handle, FOREVER), 0,
	       "is done");
	is_u64(out.p[0], 0, "and gives 0");
}

/* DMA_DATA to nowhere loads a cache: nothing happens, but it is no error. */
static void test_prefetch(void)
{
	const uint32_t p[] = { HEAD(0x50, 6),
			       3u << 29 | 2u << 20,
			       (uint32_t)out.va,
			       (uint32_t)(out.va >> 32),
			       0,
			       0,
			       1u << 31 | 0x220 };
	uint32_t n = sizeof(p) / 4;
	struct cs c;

	memcpy(ib.p, p, sizeof(p));
	n += put_write(ib.p + n, out.va, 5);
	cs_begin(&c, AMDGPU_HW_IP_COMPUTE, ib.va, n);
	is_i64(submit_job(&c), 0, "a prefetch");
	is_i64(wait_cs(AMDGPU_HW_IP_COMPUTE, c.a.out.handle, FOREVER), 0,
	       "is done");
	is_u64(out.p[0], 5, "and what stands behind it");
}

int main(void)
{
	const struct soft_options o = { .threads = 1 };
	union drm_amdgpu_ctx a;

	s = sd_open(&o);
	is_i64(call_ctx(AMDGPU_CTX_OP_ALLOC_CTX, 0, &a), 0, "a context");
	ctx = a.out.alloc.ctx_id;
	ib = new_gem(4096, AMDGPU_GEM_DOMAIN_GTT, VA + 0x10000);
	out = new_gem(4096, AMDGPU_GEM_DOMAIN_VRAM, VA + 0x20000);
	test_caps();
	test_binary();
	test_order();
	test_late();
	test_timeline();
	test_shared();
	test_many();
	test_dispatch(AMDGPU_HW_IP_COMPUTE);
	test_dispatch(AMDGPU_HW_IP_GFX);
	test_addresses();
	test_nothing();
	test_prefetch();
	/* Objects and mappings that are left go with the file. */
	create_sync(0);
	sd_close(&s);
	return plan_done();
}
