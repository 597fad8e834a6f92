/* The soft device's memory: allocation, accounting, mapping, SVM. */
#include "tests/soft/softdev.h"

/* One ALLOC with everything right except what the caller changes. */
static int alloc(struct sd *s, struct kfd_ioc_alloc_memory a)
{
	if (!a.gpu_id)
		a.gpu_id = SOFT_GPU_ID;
	return sd_ioctl(s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a);
}

/* Addresses are looked at when an object is mapped, not before. */
static void test_addresses(struct sd *s)
{
	static const struct {
		uint64_t va, size;
		const char *what;
	} t[] = {
		{ 0, 4096, "no address" },
		{ 0x10000008, 4096, "an unaligned address" },
		{ 0x1000, 4096, "an address below the aperture" },
		{ 0x7fffffffe000, 16384, "a range that leaves the aperture" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct kfd_ioc_alloc_memory a = { .va_addr = t[i].va,
						  .size = t[i].size,
						  .gpu_id = SOFT_GPU_ID,
						  .flags = VRAM_FLAGS };

		is_i64(sd_ioctl(s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a), 0,
		       "%s: memory can be had", t[i].what);
		is_i64(sd_map(s, a.handle, true), -EINVAL,
		       "%s: but not mapped", t[i].what);
		is_i64(sd_free_handle(s, a.handle), 0, "%s: it is freed",
		       t[i].what);
	}
}

static void test_refusals(struct sd *s)
{
	const uint64_t va = sd_ptr(sd_reserve(1 << 20));
	uint8_t *user = sd_reserve(8192);

	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .flags = VRAM_FLAGS }),
	       -EINVAL, "size 0 is EINVAL");
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .size = 4096, .gpu_id = 7,
			     .flags = VRAM_FLAGS }),
	       -EINVAL, "an unknown GPU is EINVAL");
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .size = 4096,
			     .flags = KFD_MEM_WRITABLE }),
	       -EINVAL, "no placement is EINVAL");
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .size = 4096,
			     .flags = KFD_MEM_VRAM | KFD_MEM_GTT }),
	       -EINVAL, "two placements are EINVAL");
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .size = 4096,
			     .flags = KFD_MEM_DOORBELL | KFD_MEM_WRITABLE }),
	       -EINVAL, "doorbells of 4096 bytes are EINVAL");
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .size = 8192,
			     .flags = KFD_MEM_MMIO_REMAP | KFD_MEM_WRITABLE }),
	       -EINVAL, "an MMIO page of 8192 bytes is EINVAL");
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .size = 4096,
			     .mmap_offset = va + 16,
			     .flags = KFD_MEM_USERPTR }),
	       -EINVAL, "an unaligned user pointer is EINVAL");
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .size = 8192,
			     .mmap_offset = sd_ptr(user),
			     .flags = KFD_MEM_USERPTR }),
	       -EFAULT, "user memory that cannot be read is EFAULT");
	munmap(user, 8192);
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = va, .size = 8192,
			     .mmap_offset = sd_ptr(user),
			     .flags = KFD_MEM_USERPTR }),
	       -EFAULT, "user memory that is not there is EFAULT");
	is_i64(alloc(s, (struct kfd_ioc_alloc_memory){
			     .va_addr = 0x10000000, .size = 1ull << 45,
			     .flags = GTT_FLAGS }),
	       -ENOMEM, "more system memory than the host has is ENOMEM");
	munmap((void *)(uintptr_t)va, 1 << 20);
}

static void test_small_bar(void)
{
	const struct soft_options o = { .small_bar = true };
	struct sd s = sd_open(&o);
	struct sd_mem m;

	is_i64(sd_try_alloc(&s, 4096, VRAM_FLAGS, true, &m), -EINVAL,
	       "host-visible VRAM on a small BAR is EINVAL");
	is_i64(sd_try_alloc(&s, 4096, VRAM_FLAGS & ~KFD_MEM_PUBLIC, true, &m),
	       0, "hidden VRAM works there");
	sd_free(&s, &m);
	sd_close(&s);
}

static uint64_t available(struct sd *s)
{
	struct kfd_ioc_available_memory a = { .gpu_id = SOFT_GPU_ID };

	sd_ioctl(s, KFD_IOC_AVAILABLE_MEMORY, &a);
	return a.available;
}

static void test_accounting(void)
{
	const struct soft_options o = { .vram_bytes = 1 << 20 };
	struct sd s = sd_open(&o);
	struct sd_mem a, b, c;

	is_u64(available(&s), 1 << 20, "all VRAM is available at first");
	is_i64(sd_try_alloc(&s, 3 << 18, VRAM_FLAGS, true, &a), 0,
	       "768 KiB of 1 MiB");
	is_u64(available(&s), 1 << 18, "256 KiB are left");
	is_i64(sd_try_alloc(&s, (1 << 18) + 1, VRAM_FLAGS, true, &b), -ENOMEM,
	       "one byte more than that is ENOMEM");
	is_u64(available(&s), 1 << 18, "a refusal takes nothing");
	is_i64(sd_try_alloc(&s, 1 << 18, GTT_FLAGS, true, &c), 0,
	       "GTT is no VRAM");
	is_i64(sd_try_alloc(&s, 1 << 18, VRAM_FLAGS, true, &b), 0,
	       "exactly the rest works");
	is_u64(available(&s), 0, "then it is full");
	sd_free(&s, &a);
	is_u64(available(&s), 3 << 18, "FREE gives it back");
	sd_free(&s, &b);
	sd_free(&s, &c);
	sd_close(&s);
}

static void test_mapping(struct sd *s)
{
	struct sd_mem m, other;
	uint32_t gpu[2] = { SOFT_GPU_ID, 4 };
	struct kfd_ioc_map_memory a = { .device_ids_array_ptr = sd_ptr(gpu) };
	struct kfd_ioc_alloc_memory al = { .size = 4096,
					   .gpu_id = SOFT_GPU_ID,
					   .flags = VRAM_FLAGS };

	sd_try_alloc(s, 8192, VRAM_FLAGS, false, &m);
	is_u64(m.handle >> 32, SOFT_GPU_ID, "a handle names its GPU");
	a.handle = m.handle;
	is_i64(sd_ioctl(s, KFD_IOC_MAP_MEMORY_TO_GPU, &a), -EINVAL,
	       "mapping to no device is EINVAL");
	a.n_devices = 2;
	is_i64(sd_ioctl(s, KFD_IOC_MAP_MEMORY_TO_GPU, &a), -EINVAL,
	       "an unknown device in the list is EINVAL");
	is_u64(a.n_success, 1, "and the ones before it were mapped");
	a.n_devices = 1;
	a.n_success = 2;
	is_i64(sd_ioctl(s, KFD_IOC_MAP_MEMORY_TO_GPU, &a), -EINVAL,
	       "more successes than devices are EINVAL");
	is_i64(sd_map(s, m.handle, true), 0, "mapping twice is harmless");
	is_i64(sd_map(s, 12345, true), -EINVAL, "an unknown handle is EINVAL");
	is_i64(sd_free_handle(s, m.handle), -EBUSY,
	       "FREE while mapped is EBUSY");
	al.va_addr = sd_ptr(m.p) + 4096;
	sd_ioctl(s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &al);
	is_i64(sd_map(s, al.handle, true), -EINVAL,
	       "two objects at one address are EINVAL");
	is_i64(sd_free_handle(s, al.handle + (1ull << 32)), -EINVAL,
	       "a handle under another GPU's id is EINVAL");
	is_i64(sd_free_handle(s, al.handle), 0, "the second can be freed");
	is_i64(sd_free(s, &m), 0, "UNMAP, then FREE");
	is_i64(sd_free_handle(s, m.handle), -EINVAL, "FREE twice is EINVAL");
	other = sd_alloc(s, 4096, VRAM_FLAGS);
	is_i64(sd_free(s, &other), 0, "another object comes and goes");
}

static void test_cpu_map(struct sd *s)
{
	struct kfd_ioc_alloc_memory a = { .va_addr = 0x10000000, .size = 8192,
					  .gpu_id = SOFT_GPU_ID,
					  .flags = KFD_MEM_VRAM };
	int err = 0;
	void *p;
	struct sd_mem m = sd_alloc(s, 1 << 16, VRAM_FLAGS);
	uint32_t *w = m.p;
	const uint64_t off = KFD_MMAP_OFFSET(KFD_MMAP_TYPE_DOORBELL,
					     SOFT_GPU_ID);

	is_u64(w[100], 0, "fresh VRAM is zero");
	w[100] = 77;
	is_u64(w[100], 77, "and can be written");
	sd_free(s, &m);

	sd_ioctl(s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a);
	ok(a.mmap_offset >= 1ull << 32 && a.mmap_offset % 4096 == 0,
	   "mmap cookies are page-aligned and above 4 GiB");
	p = s->d->mmap(s->d, NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED,
		       s->drm, a.mmap_offset, &err);
	ok(p != MAP_FAILED, "VRAM that is not asked for as visible maps, too");
	s->d->munmap(s->d, p, 8192);
	p = s->d->mmap(s->d, NULL, 8192, PROT_NONE, MAP_SHARED, s->drm,
		       a.mmap_offset, &err);
	ok(p != MAP_FAILED, "and its address can be reserved");
	s->d->munmap(s->d, p, 8192);
	p = s->d->mmap(s->d, NULL, 16384, PROT_NONE, MAP_SHARED, s->drm,
		       a.mmap_offset, &err);
	ok(p == MAP_FAILED && err == EINVAL, "not beyond its end");
	p = s->d->mmap(s->d, NULL, 4096, PROT_READ, MAP_SHARED, s->drm, 0,
		       &err);
	ok(p == MAP_FAILED && err == EINVAL, "nor without a cookie");
	sd_free_handle(s, a.handle);

	p = s->d->mmap(s->d, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
		       s->kfd, off, &err);
	ok(p == MAP_FAILED && err == EINVAL, "half a doorbell slice is EINVAL");
	p = s->d->mmap(s->d, NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED,
		       s->kfd, off, &err);
	ok(p != MAP_FAILED, "the whole slice maps");
	s->d->munmap(s->d, p, 8192);
	p = s->d->mmap(s->d, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
		       s->kfd, KFD_MMAP_OFFSET(0, SOFT_GPU_ID), &err);
	ok(p != MAP_FAILED, "the MMIO page maps");
	s->d->munmap(s->d, p, 4096);
}

static int svm_set(struct sd *s, uint64_t start, uint64_t size, uint32_t set)
{
	struct {
		struct kfd_ioc_svm a;
		struct kfd_svm_attr attr[6];
	} v = { { start, size, KFD_SVM_OP_SET, 6 },
		{ { KFD_SVM_ATTR_PREFETCH_LOC, SOFT_GPU_ID },
		  { KFD_SVM_ATTR_PREFERRED_LOC, 0 },
		  { KFD_SVM_ATTR_CLR_FLAGS, ~set },
		  { KFD_SVM_ATTR_SET_FLAGS, set },
		  { KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID },
		  { KFD_SVM_ATTR_GRANULARITY, 0xff } } };

	return sd_ioctl(s, KFD_IOC_SVM(6), &v);
}

static void test_svm(struct sd *s)
{
	const uint64_t size = 1 << 20;
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioc_alloc_memory a = { .va_addr = sd_ptr(p), .size = 4096,
					  .flags = VRAM_FLAGS };
	struct kfd_ioc_svm get = { sd_ptr(p), size, KFD_SVM_OP_GET, 0 };
	struct kfd_ioc_svm cut = { sd_ptr(p), size, KFD_SVM_OP_SET, 1000 };

	is_i64(svm_set(s, sd_ptr(p), size, 0x51), 0,
	       "a range is registered as the thunk does for CWSR");
	is_i64(svm_set(s, sd_ptr(p), size, 0x51), 0, "and again");
	is_i64(svm_set(s, sd_ptr(p) + 8, size, 0x51), -EINVAL,
	       "an unaligned range is EINVAL");
	is_i64(svm_set(s, sd_ptr(p), 0, 0x51), -EINVAL, "size 0 is EINVAL");
	is_i64(sd_ioctl(s, KFD_IOC_SVM(0), &cut), -EINVAL,
	       "more attributes than were passed are EINVAL");
	is_i64(sd_ioctl(s, KFD_IOC_SVM(0), &get), 0,
	       "no attribute is read, and that is no mistake");
	is_i64(alloc(s, a), -EADDRINUSE,
	       "an object over an SVM range is EADDRINUSE");
	a.va_addr = 0x20000000;
	a.mmap_offset = sd_ptr(p);
	a.flags = KFD_MEM_USERPTR;
	is_i64(alloc(s, a), -EADDRINUSE,
	       "a user pointer into an SVM range too");
	s->d->munmap(s->d, p, size);
	a.va_addr = sd_ptr(p);
	a.flags = VRAM_FLAGS;
	is_i64(alloc(s, a), 0, "munmap ends the range");
}

int main(void)
{
	struct sd s = sd_open(NULL);

	test_addresses(&s);
	test_refusals(&s);
	test_small_bar();
	test_accounting();
	test_mapping(&s);
	test_cpu_map(&s);
	test_svm(&s);
	sd_close(&s);
	return plan_done();
}
