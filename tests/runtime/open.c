/*
 * Opening, memory, queue creation and teardown against a recording driver:
 * what a kernel would see.  Wanted values are written out from the ABI.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runtime/kfd-fake.h"
#include "tests/tap.h"

static struct kfd_dev *open_fake(struct fake *f, struct err *e)
{
	struct kfd_dev *dev;

	*e = (struct err){ 0 };
	kfd_open_driver(&dev, &f->drv, -1, "test", e);
	return dev;
}

/* Opens, expects failure; returns the message in e->msg. */
static void refuse(struct fake *f, enum err_code code, struct err *e,
		   const char *name)
{
	bool gone = false;

	f->gone = &gone;
	struct kfd_dev *dev = open_fake(f, e);
	ok(!dev && e->code == code, "%s: refused with the right class", name);
	diag("%s", e->msg);
	ok(gone, "%s: the driver was freed", name);
	kfd_close(dev);
}

static void test_order(void)
{
	struct fake *f = fake_new();
	struct err e;
	struct kfd_dev *dev = open_fake(f, &e);

	if (!ok(dev != NULL, "the device opens (%s)", e.msg))
		return;
	is_str(f->trace.data,
	       "open(/dev/kfd) VERSION open(/dev/dri/renderD129) "
	       "APERTURES APERTURES VM ALLOC MAP EVENT EVENT EVENT RUNTIME "
	       "ALLOC MAP CLOCKS ",
	       "the calls of opening come in the order of the ABI");
	is_u64(fake_call(f, KFD_NR_ACQUIRE_VM, 0)->vm.drm_fd, 200,
	       "ACQUIRE_VM has the render node");
	is_u64(fake_call(f, KFD_NR_ACQUIRE_VM, 0)->vm.gpu_id, FAKE_GPU,
	       "ACQUIRE_VM has the GPU id");
	struct fake_call *page = fake_call(f, KFD_NR_ALLOC_MEMORY_OF_GPU, 0);
	is_u64(page->alloc.flags, 0xd6000002, "the event page is GTT");
	is_u64(page->alloc.size, 0x8000, "the event page has 4096 slots");
	struct fake_call *ev = fake_call(f, KFD_NR_CREATE_EVENT, 0);
	is_u64(ev->event.event_type, 8, "the first event is MEMORY");
	is_u64(ev->event.event_page_offset, (uint64_t)FAKE_GPU << 32 | 1,
	       "the first event hands over the page");
	is_u64(ev->event.auto_reset, 1, "the memory event is seen once");
	ev = fake_call(f, KFD_NR_CREATE_EVENT, 1);
	is_u64(ev->event.event_type, 3, "the second event is HW_EXCEPTION");
	is_u64(ev->event.event_page_offset, 0, "later events pass no page");
	is_u64(fake_call(f, KFD_NR_RUNTIME_ENABLE, 0)->runtime.mode_mask, 1,
	       "RUNTIME_ENABLE has mode 1");
	is_u64(fake_call(f, KFD_NR_ALLOC_MEMORY_OF_GPU, 1)->alloc.flags,
	       0x94000010, "the flush register is MMIO_REMAP");
	is_u64(kfd_info(dev)->node.cu_count, 96, "96 CUs");
	is_str(kfd_info(dev)->name, "Radeon RX 7900 XTX", "the board's name");
	is_str(kfd_info(dev)->gfx, "gfx1100", "the chip's name");
	is_str(kfd_info(dev)->pci, "0000:03:00.0", "the PCI address");
	is_u64(kfd_info(dev)->node.unique_id, 12345678901234567890ull,
	       "a unique id above 2^63");
	is_u64(kfd_info(dev)->node.vram_bytes, 25753026560, "VRAM size");
	kfd_close(dev);
}

/* kfd-abi 7.1's table. */
static void test_queue_sizes(unsigned cus, unsigned arrays, uint64_t ctl,
			     uint64_t save, uint64_t area)
{
	struct fake *f = fake_new();
	struct kfd_queue *q;
	struct err e;

	fake_gpu(f, 1, FAKE_GPU, 110000, cus, arrays);
	struct kfd_dev *dev = open_fake(f, &e);
	if (!ok(dev && kfd_queue_new(dev, NULL, &q, &e),
		"%u CUs: a queue is made (%s)", cus, e.msg))
		return kfd_close(dev);
	const struct kfd_ioc_create_queue *a =
		&fake_call(f, KFD_NR_CREATE_QUEUE, 0)->queue;
	is_u64(fake_call(f, KFD_NR_CREATE_QUEUE, 0)->request, 0xc0604b02,
	       "%u CUs: the request code", cus);
	is_u64(a->ctl_stack_size, ctl, "%u CUs: control stack", cus);
	is_u64(a->cwsr_size, save, "%u CUs: context save size", cus);
	is_u64(a->eop_size, 4096, "%u CUs: EOP size", cus);
	is_u64(a->type, 2, "%u CUs: an AQL queue", cus);
	is_u64(a->percentage, 100, "%u CUs: percentage", cus);
	is_u64(a->priority, 7, "%u CUs: normal priority", cus);
	is_u64(a->ring_size, 256 * 64, "%u CUs: ring of 256 packets", cus);
	is_u64(a->rptr_addr - a->wptr_addr, 0x80 - 0x38,
	       "%u CUs: pointers in one amd_queue", cus);
	is_u64(a->rptr_addr % 4096, 0x80, "%u CUs: page-aligned queue", cus);
	uint64_t got_area = 0, got_ring = 0, got_page = 0, got_eop = 0;
	uint32_t eop_flags = 0;
	for (int i = 0; i < f->n_log; i++) {
		const struct kfd_ioc_alloc_memory *m = &f->log[i].alloc;
		if (f->log[i].nr != KFD_NR_ALLOC_MEMORY_OF_GPU)
			continue;
		if (m->va_addr == a->cwsr_addr)
			got_area = m->size;
		if (m->va_addr == a->ring_base)
			got_ring = m->size;
		if (m->va_addr == a->rptr_addr - 0x80)
			got_page = m->size;
		if (m->va_addr == a->eop_addr) {
			got_eop = m->size;
			eop_flags = m->flags;
		}
	}
	is_u64(got_area, area, "%u CUs: context save area, exactly", cus);
	is_u64(got_ring, 256 * 64, "%u CUs: ring buffer, exactly", cus);
	is_u64(got_page, 4096, "%u CUs: pointers on exactly a page", cus);
	is_u64(got_eop, 4096, "%u CUs: EOP buffer, exactly", cus);
	is_u64(eop_flags, 0xd0000001, "%u CUs: EOP in private VRAM", cus);
	is_u64(a->cwsr_addr % (2u << 20), 0, "%u CUs: area aligned", cus);
	const struct kfd_cwsr_header *h = (void *)(uintptr_t)a->cwsr_addr;
	is_u64(h->debug_offset, save, "%u CUs: debugger area offset", cus);
	is_u64(h->debug_size, 32ull * 32 * cus, "%u CUs: its size", cus);
	ok(h->err_payload_addr && h->err_event_id,
	   "%u CUs: the error word and event are announced", cus);
	const uint16_t *hdr = (void *)(uintptr_t)a->ring_base;
	bool invalid = true;
	for (int i = 0; i < 256; i++)
		invalid &= hdr[i * 32] == 1;
	ok(invalid, "%u CUs: all headers start INVALID", cus);
	const uint32_t *aq = (void *)(uintptr_t)(a->rptr_addr - 0x80);
	is_u64(aq[0x40 / 4], 0x10000, "%u CUs: LDS aperture", cus);
	is_u64(aq[0x44 / 4], 0x20000, "%u CUs: scratch aperture", cus);
	is_u64(aq[0x48 / 4], cus - 1, "%u CUs: max_cu_id", cus);
	is_u64(aq[0x4c / 4], 31, "%u CUs: max_wave_id", cus);
	is_u64(aq[0x88 / 4], 0x80, "%u CUs: read index offset", cus);
	kfd_close(dev);
}

static void test_teardown(void)
{
	struct fake *f = fake_new();
	struct kfd_queue *q;
	struct kfd_mem *m;
	struct err e;
	bool gone = false;
	struct kfd_dev *dev = open_fake(f, &e);

	kfd_queue_new(dev, NULL, &q, &e);
	kfd_mem_alloc(dev, KFD_VRAM, 3 << 20, "big", &m, &e);
	is_u64(m->va % (2u << 20), 0, "3 MiB are aligned to 2 MiB");
	kfd_mem_free(dev, m);
	const char *tail = f->trace.data + f->trace.len - 11;
	is_str(tail, "UNMAP FREE ", "memory is unmapped, then freed");
	/* Errors on the way out are passed over. */
	f->inject.nr = KFD_NR_FREE_MEMORY_OF_GPU;
	f->inject.err = EBUSY;
	f->inject.times = 2;
	buf_reset(&f->trace);
	f->gone = &gone;
	kfd_queue_free(q, NULL);
	has_str(f->trace.data, "-QUEUE -EVENT -EVENT UNMAP UNMAP UNMAP FREE",
		"the queue goes before its memory, over errors");
	is_u64((uint64_t)f->live_bos, 4, "two buffers were refused");
	buf_reset(&f->trace);
	kfd_close(dev);
	ok(gone, "closing frees the driver");
}

static void test_nothing_left(void)
{
	struct fake *f = fake_new();
	struct kfd_queue *q;
	struct kfd_mem *m;
	struct err e;
	struct kfd_dev *dev = open_fake(f, &e);
	uint64_t before = kfd_mem_live_bytes(dev);
	int bos = f->live_bos;

	for (int i = 0; i < 20; i++) {
		kfd_queue_new(dev, NULL, &q, &e);
		kfd_mem_alloc(dev, i % 2 ? KFD_USERPTR : KFD_VRAM_PRIVATE,
			      12345, "x", &m, &e);
		kfd_queue_free(q, &e);
		kfd_mem_free(dev, m);
		f->n_queues = 0;
	}
	is_u64(kfd_mem_live_bytes(dev), before, "no bytes are left over");
	is_u64((uint64_t)f->live_bos, (uint64_t)bos, "no buffers either");
	kfd_close(dev);
}

static void test_user_pointer(void)
{
	struct fake *f = fake_new();
	struct kfd_mem *m;
	struct err e;
	struct kfd_dev *dev = open_fake(f, &e);

	f->n_log = 0;
	ok(kfd_mem_alloc(dev, KFD_USERPTR, 5000, "u", &m, &e), "host pages");
	const struct kfd_ioc_alloc_memory *a =
		&fake_call(f, KFD_NR_ALLOC_MEMORY_OF_GPU, 0)->alloc;
	is_u64(a->flags, 0xd4000004, "user pointer flags");
	is_u64(a->mmap_offset, a->va_addr, "the CPU address is passed");
	is_u64(a->size, 8192, "whole pages");
	memset(m->cpu, 1, 5000); /* must be there */
	f->n_log = 0;
	kfd_mem_alloc(dev, KFD_VRAM_PRIVATE, 4096, "p", &m, &e);
	ok(m && !m->cpu, "private VRAM has no CPU view");
	kfd_close(dev);
}

static void test_interrupts(void)
{
	struct fake *f = fake_new();
	struct kfd_queue *q;
	struct err e;

	f->eintr_every = 4; /* three of four fail */
	struct kfd_dev *dev = open_fake(f, &e);
	ok(dev && kfd_queue_new(dev, NULL, &q, &e),
	   "EINTR and EAGAIN on most calls are repeated (%s)", e.msg);
	kfd_close(dev);
}

static void test_no_permission(void)
{
	struct fake *f = fake_new();
	struct err e;

	f->kfd_err = EACCES;
	refuse(f, ERR_PERM, &e, "EACCES on /dev/kfd");
	has_str(e.msg, "/dev/kfd", "the message names the file");
	has_str(e.msg, "group", "the message names the group");
	has_str(e.msg, "usermod -aG", "the message has the remedy");
	f = fake_new();
	f->render_err = EACCES;
	refuse(f, ERR_PERM, &e, "EACCES on the render node");
	has_str(e.msg, "/dev/dri/renderD129", "it names the render node");
	f = fake_new();
	f->kfd_err = ENOENT;
	refuse(f, ERR_NODEV, &e, "no /dev/kfd");
	is_u64((uint64_t)err_exit_code(&e), 77, "no device exits 77");
	f = fake_new();
	f->open_again = 5;
	struct kfd_dev *dev = open_fake(f, &e);
	ok(dev != NULL, "EAGAIN while a reset goes on is waited for");
	kfd_close(dev);
}

static void test_versions(void)
{
	static const unsigned minors[] = { 1, 8, 9, 12, 13, 14, 17, 19 };
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct fake *f = fake_new();
		uint64_t left = 0;

		f->minor = minors[i];
		struct kfd_dev *dev = open_fake(f, &e);
		ok(dev != NULL, "KFD 1.%u opens", minors[i]);
		is_u64((uint64_t)fake_count(f, KFD_NR_RUNTIME_ENABLE),
		       minors[i] >= 13, "KFD 1.%u: RUNTIME_ENABLE", minors[i]);
		ok(kfd_vram_available(dev, &left, &e) == (minors[i] >= 9),
		   "KFD 1.%u: AVAILABLE_MEMORY", minors[i]);
		kfd_close(dev);
	}
	struct fake *f = fake_new();
	f->major = 2;
	refuse(f, ERR_UNSUPPORTED, &e, "KFD 2.17");
	has_str(e.msg, "2.17", "the message has the version");
}

static void test_nodes(void)
{
	struct fake *f = fake_new();
	struct err e;
	struct kfd_dev *dev;

	/* An iGPU first, a node that the cgroup hides, then the card. */
	fake_gpu(f, 1, 4242, 100306, 2, 1);
	fake_file_err(f, "nodes/2/gpu_id", EPERM);
	fake_gpu(f, 10, FAKE_GPU, 110000, 84, 12);
	dev = open_fake(f, &e);
	ok(dev && kfd_info(dev)->node.index == 10,
	   "the first gfx11 GPU is taken, not the first GPU (%s)", e.msg);
	is_str(kfd_info(dev)->spec, "kfd:1", "its spec counts GPUs");
	is_str(kfd_info(dev)->name, "Radeon RX 7900 XT", "84 CUs: an XT");
	kfd_close(dev);

	f = fake_new();
	fake_gpu(f, 1, 4242, 100306, 2, 1);
	refuse(f, ERR_NODEV, &e, "only a gfx1036");
	has_str(e.msg, "gfx1036", "the message says what there is");

	f = fake_new();
	fake_file(f, "nodes/1/properties",
		  "gfx_target_version 110000\nsimd_count 192\n"
		  "drm_render_minor 129\n");
	refuse(f, ERR_INPUT, &e, "a node without simd_per_cu");
	has_str(e.msg, "simd_per_cu", "the message names the key");

	f = fake_new(); /* optional keys and files are missing */
	fake_file(f, "nodes/1/properties",
		  "gfx_target_version 110000\nsimd_count 192\nsimd_per_cu 2\n"
		  "array_count 12\nsimd_arrays_per_engine 2\n"
		  "max_waves_per_simd 16\nlds_size_in_kb 64\n"
		  "drm_render_minor 129");
	dev = open_fake(f, &e);
	ok(dev && kfd_info(dev)->node.num_xcc == 1,
	   "num_xcc may be missing (%s)", e.msg);
	kfd_close(dev);

	f = fake_new();
	f->generation_moves = 2;
	dev = open_fake(f, &e);
	ok(dev != NULL, "a moving topology is read again (%s)", e.msg);
	kfd_close(dev);
	f = fake_new();
	f->generation_moves = 1000;
	refuse(f, ERR_BUSY, &e, "a topology that never stands still");
}

static void test_memory_errors(void)
{
	struct fake *f = fake_new();
	struct kfd_mem *m;
	struct err e;
	struct kfd_dev *dev = open_fake(f, &e);
	const int bos = f->live_bos;

	f->inject.nr = KFD_NR_ALLOC_MEMORY_OF_GPU;
	f->inject.err = ENOMEM;
	f->inject.times = 1;
	ok(!kfd_mem_alloc(dev, KFD_VRAM, 2000000, "big", &m, &e) &&
		   e.code == ERR_NOMEM,
	   "VRAM out of memory is ERR_NOMEM");
	has_str(e.msg, "2002944", "it says what was asked for");
	has_str(e.msg, "1000000", "it says what is available");
	has_str(e.msg, "25753026560", "it says what there is");
	f->inject.times = 1;
	ok(!kfd_mem_alloc(dev, KFD_GTT, 4096, "g", &m, &e),
	   "GTT out of memory fails too");
	has_str(e.msg, "system memory", "it names the driver's limit");
	e = (struct err){ 0 };
	f->map_no_success = true;
	ok(!kfd_mem_alloc(dev, KFD_VRAM, 4096, "m", &m, &e),
	   "a MAP that mapped nothing fails");
	f->map_no_success = false;
	is_u64((uint64_t)f->live_bos, (uint64_t)bos, "failures leave nothing");
	ok(!kfd_mem_alloc(dev, KFD_VRAM, 0, "z", &m, &e) &&
		   !kfd_mem_alloc(dev, KFD_VRAM, SIZE_MAX, "z", &m, &e),
	   "0 and absurd sizes are refused");
	kfd_close(dev);

	f = fake_new();
	fake_file(f, "nodes/1/mem_banks/0/properties",
		  "heap_type 2\nsize_in_bytes 25753026560\n");
	dev = open_fake(f, &e);
	ok(!kfd_mem_alloc(dev, KFD_VRAM, 4096, "v", &m, &e) &&
		   e.code == ERR_UNSUPPORTED,
	   "small BAR: host-visible VRAM refused");
	has_str(e.msg, "Resizable BAR", "with the remedy");
	kfd_close(dev);
}

static void test_describe(void)
{
	struct fake *f = fake_new();
	struct kfd_mem *a, *b;
	struct buf out = { 0 };
	struct err e;
	struct kfd_dev *dev = open_fake(f, &e);

	kfd_mem_alloc(dev, KFD_VRAM, 1000, "alpha", &a, &e);
	kfd_mem_describe(dev, a->va + 10, &out);
	has_str(out.data, "10 bytes into 'alpha' (VRAM", "inside");
	buf_reset(&out);
	kfd_mem_describe(dev, a->va + 1000, &out);
	has_str(out.data, " 0 bytes past the end of 'alpha'", "just past");
	buf_reset(&out);
	kfd_mem_describe(dev, a->va - 1, &out);
	has_str(out.data, " 1 bytes before 'alpha'", "just before");
	buf_reset(&out);
	kfd_mem_alloc(dev, KFD_GTT, 8 << 20, "beta", &b, &e);
	uint64_t mid = b->va + (4 << 20);
	kfd_mem_free(dev, b);
	kfd_mem_describe(dev, mid, &out);
	has_str(out.data, "into freed 'beta' (GTT", "freed memory is named");
	buf_fini(&out);
	kfd_close(dev);
}

static void test_open_failures(void)
{
	/* Whatever fails on the way, nothing stays open or mapped. */
	static const unsigned nrs[] = {
		KFD_NR_GET_VERSION,	  KFD_NR_GET_PROCESS_APERTURES_NEW,
		KFD_NR_ACQUIRE_VM,	  KFD_NR_ALLOC_MEMORY_OF_GPU,
		KFD_NR_MAP_MEMORY_TO_GPU, KFD_NR_CREATE_EVENT,
		KFD_NR_RUNTIME_ENABLE
	};
	for (size_t i = 0; i < ARRAY_SIZE(nrs); i++) {
		struct fake *f = fake_new();
		struct err e;

		f->inject.nr = nrs[i];
		f->inject.err = EINVAL;
		f->inject.times = 1;
		refuse(f, ERR_IO, &e, fake_name(nrs[i]));
		has_str(e.msg, "/dev/kfd", "%s: the file is named",
			fake_name(nrs[i]));
	}
	struct fake *f = fake_new();
	struct err e;
	f->inject.nr = KFD_NR_CREATE_QUEUE;
	f->inject.err = EINVAL;
	f->inject.times = 1;
	struct kfd_dev *dev = open_fake(f, &e);
	struct kfd_queue *q;
	int bos = f->live_bos;
	ok(!kfd_queue_new(dev, NULL, &q, &e), "CREATE_QUEUE may fail");
	is_u64((uint64_t)f->live_bos, (uint64_t)bos, "and leaves nothing");
	kfd_close(dev);
}

static void test_fork(void)
{
	struct fake *f = fake_new();
	struct err e;
	struct kfd_dev *dev = open_fake(f, &e);
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct kfd_queue *q;
		bool right = !kfd_queue_new(dev, NULL, &q, &e) &&
			     e.code == ERR_USAGE && strstr(e.msg, "fork");
		kfd_close(dev);
		_exit(right ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	   "a child of fork() is told to open its own");
	kfd_close(dev);
}

static void test_spec(void)
{
	struct kfd_dev *dev;
	struct err e = { 0 };

	ok(!kfd_open(&dev, "kdf", &e) && e.code == ERR_USAGE,
	   "an unknown device word is a usage error");
	ok(!kfd_open(&dev, "kfd:x", &e) && e.code == ERR_USAGE,
	   "so is a bad number");
	if (!access("/dev/kfd", F_OK)) {
		skip("this host has /dev/kfd");
		skip("this host has /dev/kfd");
		skip("this host has /dev/kfd");
		return;
	}
	e = (struct err){ 0 };
	ok(!kfd_open(&dev, "kfd", &e) && e.code == ERR_NODEV,
	   "an explicit kfd without /dev/kfd fails");
	has_str(e.msg, "/dev/kfd", "naming the file");
	has_str(e.msg, "found no GPU", "and the reason");
}

int main(void)
{
	test_order();
	test_queue_sizes(96, 12, 0xa000, 0x2bea000, 0x2c02000);
	test_queue_sizes(84, 12, 0x8000, 0x266c000, 0x2681000);
	test_queue_sizes(80, 12, 0x8000, 0x2498000, 0x24ac000);
	struct kfd_cwsr igpu = kfd_cwsr_sizes(2, 100306, 1);
	is_u64(igpu.ctl_stack_bytes, 0x1000, "2 CUs: control stack");
	is_u64(igpu.cwsr_bytes, 0xab000, "2 CUs: context save size");
	is_u64(igpu.area_bytes, 0xac000, "2 CUs: area");
	test_teardown();
	test_nothing_left();
	test_user_pointer();
	test_interrupts();
	test_no_permission();
	test_versions();
	test_nodes();
	test_memory_errors();
	test_describe();
	test_open_failures();
	test_fork();
	test_spec();
	return plan_done();
}
