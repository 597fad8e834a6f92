/*
 * SVM ranges and SMI events on the bare ABI.
 *
 * The oracle is the kernel's kfd_svm.c and kfd_smi_events.c of Linux 6.12:
 * default attributes, which types can be read, what ranges have in common,
 * EINVAL, EFAULT, EOVERFLOW and EADDRINUSE, and the formats of kfd_ioctl.h.
 * What the GPU reaches is seen by an SDMA engine's copies.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/soft/softdev.h"

#define LO(p) ((uint32_t)sd_ptr(p))
#define HI(p) ((uint32_t)(sd_ptr(p) >> 32))
#define UNDEFINED 0xffffffffu
#define PAGE 4096u

static struct sd s;

static int svm_call(uint32_t op, const void *p, uint64_t size,
		    struct kfd_svm_attr *attr, uint32_t n)
{
	struct {
		struct kfd_ioc_svm a;
		struct kfd_svm_attr attr[8];
	} v = { { sd_ptr(p), size, op, n }, { { 0 } } };
	int ret;

	memcpy(v.attr, attr, n * sizeof(*attr));
	ret = sd_ioctl(&s, KFD_IOC_SVM(n), &v);
	memcpy(attr, v.attr, n * sizeof(*attr));
	return ret;
}

static int svm_set(const void *p, uint64_t size, uint32_t type, uint32_t value)
{
	struct kfd_svm_attr a = { type, value };

	return svm_call(KFD_SVM_OP_SET, p, size, &a, 1);
}

static uint32_t svm_get(const void *p, uint64_t size, uint32_t type)
{
	struct kfd_svm_attr a = { type, SOFT_GPU_ID };

	if (svm_call(KFD_SVM_OP_GET, p, size, &a, 1))
		return 0xdead;
	return type == KFD_SVM_ATTR_ACCESS ? a.type : a.value;
}

static uint8_t *pages(unsigned n, int prot)
{
	return mmap(NULL, n * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Not by the C library alone: the device must learn of it. */
static void unmap_pages(void *p, uint64_t size)
{
	s.d->munmap(s.d, p, size);
}

/* ---------------------------------------------------- an SDMA engine -- */

static struct sd_queue q;
static uint64_t wptr;

static void start_engine(void)
{
	sd_queue_prepare(&s, &q, 64);
	q.a.type = KFD_QUEUE_SDMA;
	q.a.eop_addr = q.a.eop_size = 0;
	q.a.cwsr_addr = q.a.cwsr_size = q.a.ctl_stack_size = 0;
	if (sd_queue_create(&s, &q))
		exit(1);
	wptr = 0;
}

/* Copy 4 bytes by the engine: did it come through? */
static bool copy_word(const void *from, void *to)
{
	volatile uint32_t *fence = (uint32_t *)((uint8_t *)q.sig.p + 256);
	const uint32_t dw[] = { 1, 3, 0, LO(from), HI(from), LO(to), HI(to),
				5, LO(fence), HI(fence), 77 };

	*fence = 0;
	for (size_t i = 0; i < ARRAY_SIZE(dw); i++, wptr += 4)
		((volatile uint32_t *)q.ring)[wptr / 4 % 1024] = dw[i];
	__atomic_store_n(&q.q->write_dispatch_id, wptr, __ATOMIC_RELEASE);
	s.d->ring(s.d, q.doorbell, wptr);
	for (int i = 0; i < 5000 && *fence != 77; i++) {
		struct soft_fault f;

		usleep(1000);
		if (soft_last_fault(s.d, &f))
			break;
	}
	const bool came = *fence == 77;
	order_acquire();
	return came;
}

/* Each fault ends what the process has on the GPU: begin afresh. */
static void restart_device(void)
{
	sd_close(&s);
	s = sd_open(NULL);
	start_engine();
}

/* ------------------------------------------------------------ attributes */

static void test_defaults(void)
{
	uint8_t *p = pages(4, PROT_READ | PROT_WRITE);

	is_u64(svm_get(p, PAGE, KFD_SVM_ATTR_PREFERRED_LOC), UNDEFINED,
	       "no location is preferred by default");
	is_u64(svm_get(p, PAGE, KFD_SVM_ATTR_PREFETCH_LOC), UNDEFINED,
	       "nothing was prefetched");
	is_u64(svm_get(p, PAGE, KFD_SVM_ATTR_ACCESS), KFD_SVM_ATTR_NO_ACCESS,
	       "without XNACK no GPU has access");
	is_u64(svm_get(p, PAGE, KFD_SVM_ATTR_SET_FLAGS), 3,
	       "the host has access, coherently");
	is_u64(svm_get(p, PAGE, KFD_SVM_ATTR_CLR_FLAGS), ~3u,
	       "all other flags are clear");
	is_u64(svm_get(p, PAGE, KFD_SVM_ATTR_GRANULARITY), 9,
	       "the granularity is 2 MiB");
	is_i64(svm_set(p, PAGE, KFD_SVM_ATTR_GRANULARITY, 255), 0,
	       "a granularity above the largest is accepted");
	is_u64(svm_get(p, PAGE, KFD_SVM_ATTR_GRANULARITY), 63,
	       "and cut to it");
	unmap_pages(p, 4 * PAGE);
	p = pages(4, PROT_READ | PROT_WRITE);
	is_u64(svm_get(p, PAGE, KFD_SVM_ATTR_GRANULARITY), 9,
	       "memory that was unmapped is forgotten");
	unmap_pages(p, 4 * PAGE);
}

static void test_attributes(void)
{
	uint8_t *p = pages(4, PROT_READ | PROT_WRITE);
	const uint32_t how[] = { KFD_SVM_ATTR_ACCESS,
				 KFD_SVM_ATTR_ACCESS_IN_PLACE,
				 KFD_SVM_ATTR_NO_ACCESS };

	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		is_i64(svm_set(p, 4 * PAGE, how[i], SOFT_GPU_ID), 0,
		       "access %u is granted", how[i]);
		is_u64(svm_get(p, 4 * PAGE, KFD_SVM_ATTR_ACCESS), how[i],
		       "and told");
	}
	is_i64(svm_set(p, 2 * PAGE, KFD_SVM_ATTR_PREFERRED_LOC, SOFT_GPU_ID),
	       0, "half of a range is preferred on the GPU");
	is_u64(svm_get(p, 2 * PAGE, KFD_SVM_ATTR_PREFERRED_LOC), SOFT_GPU_ID,
	       "that half is");
	is_u64(svm_get(p + 2 * PAGE, PAGE, KFD_SVM_ATTR_PREFERRED_LOC),
	       UNDEFINED, "the other is not");
	is_u64(svm_get(p, 4 * PAGE, KFD_SVM_ATTR_PREFERRED_LOC), UNDEFINED,
	       "both have nothing in common");
	svm_set(p, PAGE, KFD_SVM_ATTR_SET_FLAGS, KFD_SVM_FLAG_GPU_RO);
	svm_set(p + PAGE, PAGE, KFD_SVM_ATTR_CLR_FLAGS,
		KFD_SVM_FLAG_COHERENT);
	is_u64(svm_get(p, 2 * PAGE, KFD_SVM_ATTR_SET_FLAGS), 1,
	       "flags that are set in all of it");
	is_u64(svm_get(p, 2 * PAGE, KFD_SVM_ATTR_CLR_FLAGS), ~0xbu,
	       "flags that are clear in all of it");
	unmap_pages(p, 4 * PAGE);
}

static void test_refusals(void)
{
	uint8_t *p = pages(4, PROT_READ | PROT_WRITE);
	struct sd_mem bo = sd_alloc(&s, PAGE, GTT_FLAGS);
	const uint32_t ungettable[] = { KFD_SVM_ATTR_ACCESS_IN_PLACE,
					KFD_SVM_ATTR_NO_ACCESS, 8 };
	struct kfd_svm_attr a = { 0, 0 };

	is_i64(svm_set(p, PAGE, KFD_SVM_ATTR_PREFETCH_LOC, UNDEFINED), -EINVAL,
	       "there is no undefined prefetch");
	is_i64(svm_set(p, PAGE, KFD_SVM_ATTR_PREFERRED_LOC, 0x1234), -EINVAL,
	       "a location that is no GPU");
	is_i64(svm_set(p, PAGE, KFD_SVM_ATTR_ACCESS, 0), -EINVAL,
	       "access for the host");
	is_i64(svm_set(p, PAGE, 8, 0), -EINVAL, "an unknown attribute");
	for (size_t i = 0; i < ARRAY_SIZE(ungettable); i++) {
		a.type = ungettable[i];
		is_i64(svm_call(KFD_SVM_OP_GET, p, PAGE, &a, 1), -EINVAL,
		       "attribute %u cannot be read", a.type);
	}
	a = (struct kfd_svm_attr){ KFD_SVM_ATTR_ACCESS, 0x1234 };
	is_i64(svm_call(KFD_SVM_OP_GET, p, PAGE, &a, 1), -EINVAL,
	       "access of what is no GPU");
	is_i64(svm_call(2, p, PAGE, &a, 0), -EINVAL, "an unknown operation");
	is_i64(svm_set(NULL, PAGE, KFD_SVM_ATTR_GRANULARITY, 0), -EINVAL,
	       "address 0");
	is_i64(svm_set((void *)-4096, 2 * PAGE, KFD_SVM_ATTR_GRANULARITY, 0),
	       -EOVERFLOW, "a range around the end");
	is_i64(svm_set(bo.p, PAGE, KFD_SVM_ATTR_GRANULARITY, 0), -EFAULT,
	       "memory of the device is none of the program's");
	munmap(p + PAGE, PAGE);
	is_i64(svm_set(p, 4 * PAGE, KFD_SVM_ATTR_GRANULARITY, 0), -EFAULT,
	       "a hole in the range");
	a.type = KFD_SVM_ATTR_GRANULARITY;
	is_i64(svm_call(KFD_SVM_OP_GET, p, 4 * PAGE, &a, 1), -EFAULT,
	       "reading it, too");
	munmap(p, 4 * PAGE);
	p = pages(1, PROT_NONE);
	is_i64(svm_set(p, PAGE, KFD_SVM_ATTR_GRANULARITY, 3), 0,
	       "reserved addresses can have attributes");
	is_i64(svm_set(p, PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID), -EFAULT,
	       "but no GPU can reach them");
	unmap_pages(p, PAGE);
	sd_free(&s, &bo);
}

/* ---------------------------------------------------------- what it does */

static void test_access(void)
{
	uint32_t *p = (void *)pages(8, PROT_READ | PROT_WRITE), *x = p + 6144;

	p[0] = 11;
	p[1024] = 12;
	svm_set(p, 8 * PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID);
	ok(copy_word(p, x) && *x == 11,
	   "access is enough: no flag has to keep the range mapped");
	svm_set(p + 1024, PAGE, KFD_SVM_ATTR_GRANULARITY, 1);
	ok(copy_word(p + 1024, x) && *x == 12,
	   "splitting a range leaves all of it mapped");
	svm_set(p + 1024, PAGE, KFD_SVM_ATTR_PREFETCH_LOC, SOFT_GPU_ID);
	ok(copy_word(p + 1024, x + 1) && x[1] == 12 && p[1024] == 12,
	   "a prefetch moves nothing out of sight");
	unmap_pages(p + 2048, PAGE);
	ok(copy_word(p, x + 2) && x[2] == 11,
	   "what is left of a partly unmapped range remains");
	ok(!copy_word(p + 2048, x), "what was unmapped is gone");
	restart_device();
	svm_set(p, 2 * PAGE, KFD_SVM_ATTR_ACCESS_IN_PLACE, SOFT_GPU_ID);
	svm_set(x, PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID);
	ok(copy_word(p, x + 3) && x[3] == 11, "access in place works");
	svm_set(p, PAGE, KFD_SVM_ATTR_NO_ACCESS, SOFT_GPU_ID);
	ok(!copy_word(p, x), "no access is none");
	restart_device();
	svm_set(p, PAGE, KFD_SVM_ATTR_SET_FLAGS, KFD_SVM_FLAG_GPU_RO);
	svm_set(p, PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID);
	svm_set(x, PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID);
	ok(copy_word(p, x + 4) && x[4] == 11, "a read-only range is read");
	ok(!copy_word(x, p), "but not written");
	restart_device();
	mprotect(p + 1024, PAGE, PROT_READ);
	svm_set(p, 2 * PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID);
	svm_set(p, PAGE, KFD_SVM_ATTR_CLR_FLAGS, KFD_SVM_FLAG_GPU_RO);
	ok(copy_word(p + 1024, p) && p[0] == 12,
	   "what the process may only read is read");
	ok(!copy_word(p, p + 1024), "and not written by the GPU either");
	restart_device();
	mprotect(p + 1024, PAGE, PROT_READ | PROT_WRITE);
	svm_set(p, 2 * PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID);
	is_i64(s.d->mprotect(s.d, p, PAGE, PROT_READ), 0,
	       "rights are taken from a range that is mapped");
	ok(copy_word(p, p + 1024), "it is still read");
	ok(!copy_word(p + 1024, p), "but no longer written");
	restart_device();
	svm_set(p, 2 * PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID);
	s.d->mprotect(s.d, p, PAGE, PROT_READ | PROT_WRITE);
	p[1024] = 13;
	ok(copy_word(p + 1024, p) && p[0] == 13, "until they are given back");
	is_i64(s.d->mprotect(s.d, (void *)16, PAGE, PROT_READ), -EINVAL,
	       "other mistakes are those of the process");
	unmap_pages(p, 8 * PAGE);
}

static uint64_t available(void)
{
	struct kfd_ioc_available_memory a = { .gpu_id = SOFT_GPU_ID };

	sd_ioctl(&s, KFD_IOC_AVAILABLE_MEMORY, &a);
	return a.available;
}

static void test_smi(void)
{
	struct kfd_ioc_smi_events a = { .gpu_id = 7 };
	const uint64_t want = 1ull << (KFD_SMI_MIGRATE_START - 1) |
			      1ull << (KFD_SMI_MIGRATE_END - 1) |
			      1ull << (KFD_SMI_UNMAP_FROM_GPU - 1) |
			      1ull << (KFD_SMI_VMFAULT - 1);
	uint8_t *p = pages(4, PROT_READ | PROT_WRITE);
	const uint64_t before = available();
	char text[512] = "", wanted[200];
	struct pollfd f;
	long long ns[3];
	ssize_t n;

	is_i64(sd_ioctl(&s, KFD_IOC_SMI_EVENTS, &a), -EINVAL,
	       "SMI events of a GPU that is not there");
	a.gpu_id = SOFT_GPU_ID;
	is_i64(sd_ioctl(&s, KFD_IOC_SMI_EVENTS, &a), 0, "SMI events");
	f = (struct pollfd){ .fd = (int)a.anon_fd, .events = POLLIN };
	svm_set(p, 4 * PAGE, KFD_SVM_ATTR_PREFETCH_LOC, SOFT_GPU_ID);
	is_i64(poll(&f, 1, 0), 0, "nothing comes that was not asked for");
	n = read(f.fd, text, 1);
	ok(n < 0 && errno == EAGAIN, "reading nothing is EAGAIN");
	is_u64(before - available(), 4 * PAGE,
	       "what is prefetched takes room in VRAM");
	is_i64(write(f.fd, &want, sizeof(want)), 8, "a mask is written");
	svm_set(p, 4 * PAGE, KFD_SVM_ATTR_PREFETCH_LOC, 0);
	is_u64(available(), before, "and gives it back");
	svm_set(p, 4 * PAGE, KFD_SVM_ATTR_ACCESS, SOFT_GPU_ID);
	unmap_pages(p, 4 * PAGE);
	is_i64(poll(&f, 1, 0), 1, "lines are there");
	n = read(f.fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	ok(sscanf(text, "5 %lld %*[^\n]\n6 %lld %*[^\n]\nb %lld", &ns[0],
		  &ns[1], &ns[2]) == 3 &&
		   ns[0] <= ns[1] && ns[1] <= ns[2],
	   "a migration began and ended, a range went, in this order");
	snprintf(wanted, sizeof(wanted),
		 "5 %lld -%d @%lx(4) %x->0 0:ffffffff 0\n"
		 "6 %lld -%d @%lx(4) %x->0 0\n"
		 "b %lld -%d @%lx(4) %x 2\n",
		 ns[0], getpid(), sd_ptr(p) / PAGE, SOFT_GPU_ID, ns[1],
		 getpid(), sd_ptr(p) / PAGE, SOFT_GPU_ID, ns[2], getpid(),
		 sd_ptr(p) / PAGE, SOFT_GPU_ID);
	is_str(text, wanted, "in the kernel's words");
	copy_word(p, q.sig.p);
	n = read(f.fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	snprintf(wanted, sizeof(wanted), "1 %x:%s\n", (unsigned)getpid(),
		 program_invocation_short_name);
	is_str(text, wanted, "a fault names the process");
	close(f.fd);
	restart_device();
}

int main(void)
{
	s = sd_open(NULL);
	start_engine();
	test_defaults();
	test_attributes();
	test_refusals();
	test_access();
	test_smi();
	sd_close(&s);
	return plan_done();
}
