/*
 * Several cards in one machine, on the bare ABI.
 *
 * The oracle is what Linux 6.12 publishes and does: kfd_topology.c for nodes
 * and links, kfd_chardev.c for partial MAP counts and apertures,
 * amdgpu_amdkfd_gpuvm.c for what a peer may map, kfd_events.c and
 * kfd_int_process_v11.c for whom a fault stops.
 */
#include <poll.h>
#include <unistd.h>

#include "tests/code.h"
#include "tests/soft/softdev.h"

#define LO(p) ((uint32_t)sd_ptr(p))
#define HI(p) ((uint32_t)(sd_ptr(p) >> 32))
#define TREE "/sys/class/kfd/kfd/topology/"
#define PAGE 4096u

/* ----------------------------------------------------------- topology -- */

/* The value of `name` in a properties file; ~0 when it has none. */
static uint64_t read_prop(struct kfd_driver *d, const char *path,
			  const char *name)
{
	struct buf b = { 0 };
	uint64_t v = UINT64_MAX;
	const char *at;
	char key[64];

	snprintf(key, sizeof(key), "\n%s ", name);
	buf_addc(&b, '\n');
	if (!d->read_file(d, path, &b)) {
		at = strstr(b.data, key);
		if (at)
			v = strtoull(at + strlen(key), NULL, 10);
	}
	buf_fini(&b);
	return v;
}

static uint64_t node_prop(struct kfd_driver *d, unsigned node, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), TREE "nodes/%u/properties", node);
	return read_prop(d, path, name);
}

static uint64_t link_prop(struct kfd_driver *d, unsigned node, const char *kind,
			  unsigned i, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), TREE "nodes/%u/%s/%u/properties", node,
		 kind, i);
	return read_prop(d, path, name);
}

static char *text_of(struct kfd_driver *d, const char *path, char out[256])
{
	struct buf b = { 0 };

	out[0] = '\0';
	if (!d->read_file(d, path, &b))
		snprintf(out, 256, "%.*s", (int)strcspn(b.data, "\n"), b.data);
	buf_fini(&b);
	return out;
}

/* Links of this kind of the node that lead to `to`. */
static unsigned links_to(struct kfd_driver *d, unsigned node, const char *kind,
			 unsigned to)
{
	char count[32];
	unsigned n = 0;

	snprintf(count, sizeof(count), "%s_count", kind);
	for (unsigned i = 0; i < node_prop(d, node, count); i++)
		n += link_prop(d, node, kind, i, "node_from") == node &&
		     link_prop(d, node, kind, i, "node_to") == to;
	return n;
}

static void test_links(struct kfd_driver *d, unsigned cards, bool small_bar)
{
	const char *what = small_bar ? "small BAR" : "large BAR";
	const unsigned wanted = !small_bar;
	bool host = true, peers = true, weights = true;

	for (unsigned a = 1; a <= cards; a++) {
		host &= links_to(d, a, "io_links", 0) == 1 &&
			links_to(d, 0, "io_links", a) == wanted;
		for (unsigned b = 1; b <= cards; b++)
			peers &= links_to(d, a, "p2p_links", b) ==
				 (a != b && wanted);
		for (unsigned i = 0; i + 1 < cards && wanted; i++)
			weights &= link_prop(d, a, "p2p_links", i, "weight") ==
				   40;
	}
	ok(host, "%u cards, %s: each has a link to the host, which has %s back",
	   cards, what, wanted ? "one" : "none");
	is_u64(node_prop(d, 0, "io_links_count"), wanted ? cards : 0,
	       "... so many has the host");
	ok(peers, "... each %s every other by a peer link",
	   wanted ? "reaches" : "does not reach");
	ok(weights, "... with the weights of both ways to the host");
	is_u64(link_prop(d, 1, "p2p_links", wanted ? cards - 1 : 0, "weight"),
	       UINT64_MAX, "... and no more");
}

static void test_topology(unsigned cards)
{
	const struct soft_options o = { .cards = cards, .threads = 1 };
	struct kfd_driver *d = kfd_soft_new(&o, NULL);
	char path[128], text[256], seen[8][2][32];
	bool ids = true, alike = true, found = true;

	for (unsigned i = 0; i < cards; i++) {
		snprintf(path, sizeof(path), TREE "nodes/%u/gpu_id", i + 1);
		ids &= strtoul(text_of(d, path, text), NULL, 10) ==
		       SOFT_GPU_ID_OF(i);
		alike &= node_prop(d, i + 1, "simd_count") == 192 &&
			 node_prop(d, i + 1, "drm_render_minor") == 128 + i;
		snprintf(seen[i][0], 32, "%llx", (unsigned long long)
			 node_prop(d, i + 1, "unique_id"));
		snprintf(seen[i][1], 32, "0000:%02llx:00.0",
			 (unsigned long long)node_prop(d, i + 1, "location_id")
				 >> 8);
		for (unsigned k = 0; k < i; k++)
			ids &= strcmp(seen[i][0], seen[k][0]) &&
			       strcmp(seen[i][1], seen[k][1]);
		/* By the render node, by the address, by the card node. */
		snprintf(path, sizeof(path),
			 "/sys/class/drm/renderD%u/device/unique_id", 128 + i);
		found &= !strcmp(text_of(d, path, text), seen[i][0]);
		snprintf(path, sizeof(path),
			 "/sys/bus/pci/devices/%s/drm/card%u/dev", seen[i][1],
			 i);
		snprintf(text + 128, 128, "226:%u", i);
		found &= !strcmp(text_of(d, path, text), text + 128);
		snprintf(path, sizeof(path), "/sys/dev/char/226:%u/device/"
			 "ip_discovery/die/0/GC/0/major", i);
		found &= !strcmp(text_of(d, path, text), "11");
	}
	is_u64(strtoul(text_of(d, TREE "generation_id", text), NULL, 10),
	       cards + 1, "%u cards: the tree has grown with each", cards);
	ok(ids, "%u cards: ids, unique ids and addresses differ", cards);
	ok(alike, "... each is a 7900 XTX with a render node of its own");
	ok(found, "... sysfs leads to each by node, address and device number");
	snprintf(path, sizeof(path), TREE "nodes/%u/gpu_id", cards + 1);
	is_str(text_of(d, path, text), "", "... there is no node more");
	snprintf(path, sizeof(path), "/dev/dri/renderD%u", 128 + cards);
	is_i64(d->open(d, path, O_RDWR), -ENOENT, "... and no render node");
	test_links(d, cards, false);
	d->free(d);
}

static void test_small_bar(void)
{
	const struct soft_options o = { .cards = 3, .small_bar = true,
					.threads = 1 };
	struct kfd_driver *d = kfd_soft_new(&o, NULL);

	test_links(d, 3, true);
	d->free(d);
}

static void test_too_many(void)
{
	const struct soft_options o = { .cards = SOFT_CARDS_MAX + 1 };
	struct err e = { 0 };

	ok(!kfd_soft_new(&o, &e), "nine cards are refused");
	has_str(e.msg, "9 cards; wanted 1 to 8", "with what was wanted");
}

/* ----------------------------------------------------------- the calls -- */

static void test_apertures(struct sd *s)
{
	struct kfd_aperture ap[3] = { { 0 } };
	struct kfd_ioc_get_process_apertures_new a = { 0 };
	struct kfd_ioc_get_process_apertures old;

	is_i64(sd_ioctl(s, KFD_IOC_GET_PROCESS_APERTURES_NEW, &a), 0,
	       "apertures are counted");
	is_u64(a.num_of_nodes, 2, "of two cards");
	a.apertures_ptr = sd_ptr(ap);
	a.num_of_nodes = 1;
	sd_ioctl(s, KFD_IOC_GET_PROCESS_APERTURES_NEW, &a);
	ok(a.num_of_nodes == 1 && ap[0].gpu_id == SOFT_GPU_ID && !ap[1].gpu_id,
	   "room for one is filled with the first");
	a.num_of_nodes = 3;
	sd_ioctl(s, KFD_IOC_GET_PROCESS_APERTURES_NEW, &a);
	ok(a.num_of_nodes == 2 && ap[1].gpu_id == SOFT_GPU_ID_OF(1) &&
	   ap[1].gpuvm_base == ap[0].gpuvm_base,
	   "both have the same address space");
	sd_ioctl(s, KFD_IOC_GET_PROCESS_APERTURES, &old);
	is_u64(old.num_of_nodes, 2, "the old call tells both");
}

static uint64_t available_bytes(struct sd *s)
{
	struct kfd_ioc_available_memory a = { .gpu_id = s->gpu };

	sd_ioctl(s, KFD_IOC_AVAILABLE_MEMORY, &a);
	return a.available;
}

static void test_vram(struct sd *a, struct sd *b)
{
	struct sd_mem m = sd_alloc(a, 48u << 20, VRAM_FLAGS), n;
	struct kfd_ioc_free_memory f = { m.handle ^ (uint64_t)(a->gpu ^ b->gpu)
								  << 32 };
	char text[256];

	is_u64(available_bytes(b) - available_bytes(a), 48u << 20,
	       "memory of one card is none of the other's");
	is_str(text_of(a->d, TREE "nodes/1/mem_banks/0/used_memory", text),
	       "50331648", "sysfs says of which");
	is_str(text_of(a->d, TREE "nodes/2/mem_banks/0/used_memory", text),
	       "0", "and of which not");
	is_i64(sd_try_alloc(a, 32u << 20, VRAM_FLAGS, true, &n), -ENOMEM,
	       "the first has no more");
	is_i64(sd_try_alloc(b, 32u << 20, VRAM_FLAGS, true, &n), 0,
	       "the second has");
	is_i64(sd_ioctl(a, KFD_IOC_FREE_MEMORY_OF_GPU, &f), -EINVAL,
	       "an object is its own card's");
	sd_free(b, &n);
	sd_free(a, &m);
}

/* Map on the cards named: the ioctl's result, and how many followed. */
static int map_on(struct sd *s, uint64_t handle, const uint32_t *ids,
		  uint32_t n, uint32_t *done)
{
	struct kfd_ioc_map_memory a = { handle, sd_ptr(ids), n, *done };
	const int ret = sd_ioctl(s, KFD_IOC_MAP_MEMORY_TO_GPU, &a);

	*done = a.n_success;
	return ret;
}

/* Before the second card's VM is acquired. */
static void test_map_counts(struct sd *a)
{
	const uint32_t ids[] = { SOFT_GPU_ID, SOFT_GPU_ID_OF(1), 77 };
	struct kfd_ioc_acquire_vm wrong = { (uint32_t)a->drm, ids[1] };
	struct sd_mem m;
	uint32_t n = 0;
	struct sd b;

	sd_try_alloc(a, PAGE, VRAM_FLAGS, false, &m);
	is_i64(sd_ioctl(a, KFD_IOC_ACQUIRE_VM, &wrong), -EINVAL,
	       "a VM is acquired with the card's own render node");
	is_i64(map_on(a, m.handle, ids, 2, &n), -ENODEV,
	       "a card without a VM maps nothing");
	is_u64(n, 1, "the one before it did");
	b = sd_card(a, 1);
	is_i64(map_on(a, m.handle, ids, 3, &n), -EINVAL,
	       "going on from there: no card 77");
	is_u64(n, 2, "two have mapped it now");
	is_i64(sd_free_handle(a, m.handle), -EBUSY, "mapped on both");
	sd_map(a, m.handle, false);
	is_i64(sd_free_handle(a, m.handle), -EBUSY, "still mapped on one");
	is_i64(sd_map(a, m.handle, false), -EINVAL,
	       "where it is not mapped it is not unmapped");
	sd_map(&b, m.handle, false);
	is_i64(sd_free_handle(a, m.handle), 0, "on none: it goes");
	a->d->close(a->d, b.drm);
}

static void test_peers_small_bar(void)
{
	const struct soft_options o = { .cards = 2, .small_bar = true };
	struct sd a = sd_open(&o), b = sd_card(&a, 1);
	struct sd_mem vram = { 0 }, gtt = sd_alloc(&a, PAGE, GTT_FLAGS);

	sd_try_alloc(&a, PAGE, VRAM_FLAGS & ~KFD_MEM_PUBLIC, true, &vram);
	is_i64(sd_map(&b, vram.handle, true), -EINVAL,
	       "small BAR: no peer reaches the memory of a card");
	is_i64(sd_map(&b, gtt.handle, true), 0, "it does the host's");
	sd_close(&a);
}

static void test_clocks(struct sd *a, struct sd *b)
{
	struct kfd_ioc_get_clock_counters x = { .gpu_id = a->gpu },
					  y = { .gpu_id = b->gpu }, z = x;

	sd_ioctl(a, KFD_IOC_GET_CLOCK_COUNTERS, &x);
	sd_ioctl(a, KFD_IOC_GET_CLOCK_COUNTERS, &y);
	sd_ioctl(a, KFD_IOC_GET_CLOCK_COUNTERS, &z);
	ok(x.gpu_clock <= z.gpu_clock &&
	   (y.gpu_clock < x.gpu_clock || y.gpu_clock > z.gpu_clock),
	   "each card counts from its own start");
}

/* ---------------------------------------------------------- the engines -- */

struct engine {
	struct sd *card;
	struct sd_queue q;
	struct sd_mem mem; /* for the fence */
	uint64_t wptr;
	uint32_t fence;
};

static struct engine engine_new(struct sd *card)
{
	struct engine e = { .card = card };

	sd_queue_prepare(card, &e.q, 64);
	e.q.a.type = KFD_QUEUE_SDMA;
	e.q.a.eop_addr = e.q.a.eop_size = 0;
	e.q.a.cwsr_addr = e.q.a.cwsr_size = e.q.a.ctl_stack_size = 0;
	e.mem = sd_alloc(card, PAGE, GTT_FLAGS);
	if (sd_queue_create(card, &e.q))
		BUG("no SDMA queue");
	return e;
}

static void engine_put(struct engine *e, const uint32_t *dw, size_t n)
{
	for (size_t i = 0; i < n; i++, e->wptr += 4)
		((uint32_t *)(void *)e->q.ring)[e->wptr / 4 % 1024] = dw[i];
}

/* A copy and a fence; true: the fence came within the time. */
static bool engine_copy(struct engine *e, const void *from, const void *to,
			uint32_t bytes, unsigned ms)
{
	const uint32_t dw[] = { 1, bytes - 1, 0, LO(from), HI(from), LO(to),
				HI(to), 5, LO(e->mem.p), HI(e->mem.p),
				++e->fence };
	const uint64_t end = time_mono_ns() + ms * 1000000ull;

	engine_put(e, dw, ARRAY_SIZE(dw));
	__atomic_store_n(&e->q.q->write_dispatch_id, e->wptr, __ATOMIC_RELEASE);
	e->card->d->ring(e->card->d, e->q.doorbell, e->wptr);
	while (__atomic_load_n((uint32_t *)e->mem.p, __ATOMIC_ACQUIRE) !=
	       e->fence)
		if (time_mono_ns() > end)
			return false;
	return true;
}

static void test_queues(struct sd *a, struct sd *b)
{
	struct engine ea = engine_new(a), eb = engine_new(b);
	struct sd_queue mixed;
	struct aql_barrier p;
	struct sd_queue qa = sd_queue(a, 64), qb = sd_queue(b, 64);
	struct sd_mem sa = sd_alloc(a, PAGE, GTT_FLAGS),
		      sb = sd_alloc(b, PAGE, GTT_FLAGS);
	struct amd_signal *da = sa.p, *db = sb.p;

	ok(qa.a.queue_id != qb.a.queue_id,
	   "queues have numbers of the process");
	is_u64(qb.a.doorbell_offset >> 46 & 0xffff, b->gpu,
	       "and the doorbells of their card");
	da->kind = db->kind = AMD_SIGNAL_USER;
	da->value = db->value = 1;
	p = sd_barrier(AQL_BARRIER_AND, da);
	sd_submit(a, &qa, &p);
	p = sd_barrier(AQL_BARRIER_AND, db);
	sd_submit(b, &qb, &p);
	ok(sd_wait_value(da, 0, 5000) && sd_wait_value(db, 0, 5000),
	   "both process packets");
	sd_queue_prepare(a, &mixed, 64);
	mixed.a.gpu_id = b->gpu;
	is_i64(sd_queue_create(b, &mixed), -EINVAL,
	       "a queue's buffers are mapped on its own card");
	sd_queue_destroy(a, &qa);
	sd_queue_destroy(b, &qb);
	sd_queue_destroy(a, &ea.q);
	sd_queue_destroy(b, &eb.q);
}

static void test_peer_copies(struct sd *a, struct sd *b)
{
	const uint32_t both[] = { a->gpu, b->gpu };
	struct sd_mem ma = sd_alloc(a, 1u << 20, VRAM_FLAGS),
		      mb = sd_alloc(b, 1u << 20, VRAM_FLAGS);
	struct engine ea = engine_new(a), eb = engine_new(b);
	uint32_t n = 1, *from = ma.p, *to = mb.p, bad = 0;

	for (uint32_t i = 0; i < 1u << 18; i++)
		from[i] = i * 2654435761u;
	is_i64(map_on(a, ma.handle, both, 2, &n), 0,
	       "memory of one card is mapped on the other");
	ok(engine_copy(&eb, from, to, 1u << 20, 5000),
	   "whose engine copies it");
	for (uint32_t i = 0; i < 1u << 18; i++)
		bad += to[i] != i * 2654435761u;
	is_u64(bad, 0, "every word");
	memset(to, 0x5a, 1u << 20);
	n = 0;
	is_i64(map_on(b, mb.handle, both, 2, &n), 0, "and the other way");
	ok(engine_copy(&ea, to, from, 1u << 20, 5000) &&
	   from[1000] == 0x5a5a5a5a, "the first one's engine writes it back");
	sd_queue_destroy(a, &ea.q);
	sd_queue_destroy(b, &eb.q);
}

/* ------------------------------------------------ one address, two codes -- */

#define WORDS (1u << 16)

/* A card with a kernel of tests/runtime/kernels.s at an address given. */
struct runner {
	struct sd *card;
	struct sd_queue q;
	struct sd_mem arg, out, in, sig;
	struct aql_dispatch p;
};

static void put_code(struct sd *card, void *at, const char *label)
{
	const struct code c = code_of("tests/runtime/kernels.s", label);
	struct kfd_ioc_alloc_memory a = { .va_addr = sd_ptr(at), .size = PAGE,
					  .gpu_id = card->gpu,
					  .flags = VRAM_FLAGS };
	struct amd_kernel_descriptor *kd;
	int err = 0;

	if (sd_ioctl(card, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a) ||
	    sd_map(card, a.handle, true))
		BUG("no memory for code");
	kd = card->d->mmap(card->d, NULL, PAGE, PROT_READ | PROT_WRITE,
			   MAP_SHARED, card->drm, a.mmap_offset, &err);
	memset(kd, 0, sizeof(*kd));
	memcpy((uint8_t *)kd + 256, c.dw, c.size_bytes);
	kd->kernel_code_entry_byte_offset = 256;
	kd->kernel_code_properties = AMD_PROP_WAVE32 | AMD_PROP_KERNARG_PTR;
	kd->compute_pgm_rsrc1 = 0x60af0000;
	kd->compute_pgm_rsrc2 = 0x84; /* 2 user SGPRs, group id X */
}

static struct runner runner_new(struct sd *card, void *at, const char *label,
				bool reads)
{
	struct runner r = { .card = card, .q = sd_queue(card, 64) };
	uint64_t *arg;

	put_code(card, at, label);
	r.arg = sd_alloc(card, PAGE, GTT_FLAGS);
	r.out = sd_alloc(card, WORDS * 4, VRAM_FLAGS);
	r.in = sd_alloc(card, WORDS * 4, VRAM_FLAGS);
	r.sig = sd_alloc(card, PAGE, GTT_FLAGS);
	arg = r.arg.p;
	arg[0] = sd_ptr(r.out.p);
	arg[1] = reads ? sd_ptr(r.in.p) : 7;
	((struct amd_signal *)r.sig.p)->kind = AMD_SIGNAL_USER;
	r.p = (struct aql_dispatch){
		.header = AQL_HEADER(AQL_KERNEL_DISPATCH, 1, 2, 2),
		.setup = 1,
		.workgroup_size = { 32, 1, 1 },
		.grid_size = { WORDS, 1, 1 },
		.kernel_object = sd_ptr(at),
		.kernarg_address = sd_ptr(arg),
		.completion_signal = sd_ptr(r.sig.p),
	};
	return r;
}

static void runner_start(struct runner *r)
{
	memset(r->out.p, 0xee, WORDS * 4);
	((struct amd_signal *)r->sig.p)->value = 1;
	sd_submit(r->card, &r->q, &r->p);
}

/* Words that are not first + i, or all if it does not end. */
static unsigned runner_wrong(struct runner *r, uint32_t first, uint32_t step)
{
	const uint32_t *out = r->out.p;
	unsigned n = 0;

	if (!sd_wait_value(r->sig.p, 0, 10000))
		return WORDS;
	for (uint32_t i = 0; i < WORDS; i++)
		n += out[i] != first + i * step;
	return n;
}

/* Threads of the host work for both cards, and keep decoded code. */
static void test_same_address(void)
{
	const struct soft_options o = { .cards = 2, .threads = 3 };
	struct sd a = sd_open(&o), b = sd_card(&a, 1);
	void *at = sd_reserve(PAGE);
	struct runner ra = runner_new(&a, at, "store", false),
		      rb = runner_new(&b, at, "increment", true);
	unsigned bad = 0;

	memset(rb.in.p, 0, WORDS * 4);
	for (int i = 0; i < 20; i++) {
		runner_start(&ra);
		runner_start(&rb);
		bad += runner_wrong(&ra, 7, 1) + runner_wrong(&rb, 1, 0);
		runner_start(&ra);
		bad += runner_wrong(&ra, 7, 1);
		runner_start(&rb);
		bad += runner_wrong(&rb, 1, 0);
	}
	is_u64(bad, 0, "two cards run what each has at one address");
	sd_queue_destroy(&a, &ra.q);
	sd_queue_destroy(&b, &rb.q);
	sd_close(&a);
}

/* ---------------------------------------------------- faults and resets -- */

static int smi_open(struct sd *s)
{
	struct kfd_ioc_smi_events a = { s->gpu, 0 };
	const uint64_t all = UINT32_MAX;

	if (sd_ioctl(s, KFD_IOC_SMI_EVENTS, &a) ||
	    write((int)a.anon_fd, &all, sizeof(all)) != sizeof(all))
		return -1;
	return (int)a.anon_fd;
}

/* What the monitor was told, as one text. */
static const char *smi_text(int fd, char out[512])
{
	const ssize_t n = read(fd, out, 511);

	out[n > 0 ? n : 0] = '\0';
	return out;
}

/* The kernel evicts what runs on the node of the fault, and nothing else. */
static void test_fault_on_one(void)
{
	const struct soft_options o = { .cards = 2 };
	struct sd a = sd_open(&o), b = sd_card(&a, 1);
	struct engine ea = engine_new(&a), ea2 = engine_new(&a),
		      eb = engine_new(&b);
	struct sd_mem ma = sd_alloc(&a, PAGE, VRAM_FLAGS),
		      mb = sd_alloc(&b, PAGE, VRAM_FLAGS);
	const int smi_a = smi_open(&a), smi_b = smi_open(&b);
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	uint32_t result;
	char text[512];

	sd_event(&a, KFD_EVENT_MEMORY, false, 0, &e);
	d.event_id = e.event_id;
	/* Not mapped on the first card, though the process has it. */
	ok(!engine_copy(&ea, mb.p, ma.p, 64, 50),
	   "a card does not reach what is mapped on another only");
	sd_wait_event(&a, &d, 5000, &result);
	is_u64(result, KFD_WAIT_COMPLETE, "a memory event tells of it");
	ok(d.memory.gpu_id == a.gpu && d.memory.va == sd_ptr(mb.p) &&
	   d.memory.not_present, "by card and address");
	ok(!engine_copy(&ea2, ma.p, ma.p, 64, 50),
	   "the card's other queues are evicted");
	ok(engine_copy(&eb, mb.p, mb.p, 64, 5000),
	   "the other card runs on");
	ok(*smi_text(smi_a, text), "the first card's monitor is told");
	is_str(smi_text(smi_b, text), "", "the second's is not");
	sd_close(&a);
}

/* An engine that reads nonsense hangs, and its card is reset. */
static void test_reset_of_one(void)
{
	const struct soft_options o = { .cards = 2 };
	struct sd a = sd_open(&o), b = sd_card(&a, 1);
	struct engine ea = engine_new(&a), eb = engine_new(&b);
	struct sd_mem mb = sd_alloc(&b, PAGE, VRAM_FLAGS);
	struct kfd_ioc_create_event e;
	struct kfd_event_data d = { 0 };
	struct sd_queue more;
	uint32_t result;

	sd_event(&a, KFD_EVENT_HW_EXCEPTION, false, 0, &e);
	d.event_id = e.event_id;
	engine_put(&ea, (const uint32_t[]){ 0xee }, 1);
	ok(!engine_copy(&ea, mb.p, mb.p, 64, 50), "an engine hangs");
	sd_wait_event(&a, &d, 5000, &result);
	ok(result == KFD_WAIT_COMPLETE && d.hw.gpu_id == a.gpu,
	   "its card is reset");
	ok(engine_copy(&eb, mb.p, mb.p, 64, 5000), "the other runs on");
	sd_queue_prepare(&a, &more, 64);
	is_i64(sd_queue_create(&a, &more), -EIO,
	       "the card that was reset takes no queue");
	sd_queue_prepare(&b, &more, 64);
	is_i64(sd_queue_create(&b, &more), 0, "the other does");
	sd_close(&a);
}

/* ------------------------------------------------------------- debugger -- */

static void test_debugger(void)
{
	const struct soft_options o = { .cards = 2 };
	struct sd a = sd_open(&o), b = sd_card(&a, 1);
	struct engine eb = engine_new(&b);
	struct sd_mem ma = sd_alloc(&a, PAGE, VRAM_FLAGS);
	struct kfd_device_snapshot snap[3] = { { 0 } };
	struct kfd_debug_runtime info;
	struct kfd_ioc_dbg_trap t = { .pid = (uint32_t)getpid(),
				      .op = KFD_DBG_ENABLE };
	const uint64_t bit = KFD_EC_MASK(KFD_EC_DEVICE_MEMORY_VIOLATION);
	int pipe_fd[2];

	(void)!pipe(pipe_fd);
	t.enable.exception_mask = bit;
	t.enable.rinfo_ptr = sd_ptr(&info);
	t.enable.rinfo_size = sizeof(info);
	t.enable.dbg_fd = (uint32_t)pipe_fd[1];
	is_i64(sd_ioctl(&a, KFD_IOC_DBG_TRAP, &t), 0, "a debugger attaches");
	ok(!engine_copy(&eb, ma.p, eb.mem.p, 64, 50),
	   "the second card has a page fault");
	t.op = KFD_DBG_QUERY_DEBUG_EVENT;
	t.event = (__typeof__(t.event)){ 0 };
	is_i64(sd_ioctl(&a, KFD_IOC_DBG_TRAP, &t), 0, "there is an event");
	ok(t.event.gpu_id == b.gpu && t.event.exception_mask == bit,
	   "of that card");
	t.op = KFD_DBG_GET_DEVICE_SNAPSHOT;
	t.snapshot = (__typeof__(t.snapshot)){ 0, sd_ptr(snap), 3,
					       sizeof(*snap) };
	sd_ioctl(&a, KFD_IOC_DBG_TRAP, &t);
	ok(t.snapshot.count == 2 && snap[0].gpu_id == a.gpu &&
	   snap[1].gpu_id == b.gpu && !snap[2].gpu_id,
	   "snapshots show both cards");
	ok(!snap[0].exception_status && snap[1].exception_status == bit,
	   "one of them with the exception");
	ok(snap[0].location_id == 0x300 && snap[1].location_id != 0x300,
	   "at their own places");
	sd_close(&a);
}

/* ------------------------------------------------------ dma-buf and SVM -- */

static void test_dmabuf(struct sd *a, struct sd *b)
{
	struct sd_mem m = sd_alloc(a, 64u << 10, VRAM_FLAGS), to;
	struct kfd_ioc_export_dmabuf x = { m.handle, O_CLOEXEC, 0 };
	struct kfd_ioc_get_dmabuf_info info = { 0 };
	struct kfd_ioc_import_dmabuf i = { .gpu_id = b->gpu };
	struct engine e = engine_new(b);
	void *va = sd_reserve(64u << 10);
	const uint64_t before = available_bytes(b);

	memset(m.p, 0x77, m.size);
	is_i64(sd_ioctl(a, KFD_IOC_EXPORT_DMABUF, &x), 0,
	       "one card's memory is exported");
	info.dmabuf_fd = i.dmabuf_fd = x.dmabuf_fd;
	sd_ioctl(b, KFD_IOC_GET_DMABUF_INFO, &info);
	is_u64(info.gpu_id, a->gpu, "the file says whose it is");
	i.va_addr = sd_ptr(va);
	is_i64(sd_ioctl(b, KFD_IOC_IMPORT_DMABUF, &i), 0,
	       "and imported to the other");
	is_u64(i.handle >> 32, b->gpu, "which then has an object of its own");
	is_u64(available_bytes(b), before, "that takes no memory there");
	is_i64(sd_map(b, i.handle, true), 0, "it is mapped");
	to = sd_alloc(b, PAGE, GTT_FLAGS);
	ok(engine_copy(&e, va, to.p, PAGE, 5000) &&
	   ((uint8_t *)to.p)[4095] == 0x77, "the pages are the same");
	sd_queue_destroy(b, &e.q);
	close((int)x.dmabuf_fd);
}

static int call_svm(struct sd *s, uint32_t op, void *p,
		    struct kfd_svm_attr *attr, uint32_t n)
{
	struct {
		struct kfd_ioc_svm a;
		struct kfd_svm_attr attr[4];
	} v = { { sd_ptr(p), 4 * PAGE, op, n }, { { 0 } } };
	int ret;

	memcpy(v.attr, attr, n * sizeof(*attr));
	ret = sd_ioctl(s, KFD_IOC_SVM(n), &v);
	memcpy(attr, v.attr, n * sizeof(*attr));
	return ret;
}

static void test_svm(struct sd *a, struct sd *b)
{
	void *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_svm_attr set[] = { { KFD_SVM_ATTR_ACCESS, b->gpu } },
			    get[] = { { KFD_SVM_ATTR_ACCESS, a->gpu },
				      { KFD_SVM_ATTR_ACCESS, b->gpu } },
			    move[] = { { KFD_SVM_ATTR_PREFETCH_LOC, a->gpu } };
	struct engine eb = engine_new(b);
	const uint64_t fa = available_bytes(a), fb = available_bytes(b);

	memset(p, 0x21, 4 * PAGE);
	is_i64(call_svm(a, KFD_SVM_OP_SET, p, set, 1), 0,
	       "one card is given access to the program's memory");
	call_svm(a, KFD_SVM_OP_GET, p, get, 2);
	ok(get[0].type == KFD_SVM_ATTR_NO_ACCESS &&
	   get[1].type == KFD_SVM_ATTR_ACCESS, "the other has none");
	ok(engine_copy(&eb, p, (uint8_t *)p + PAGE, PAGE, 5000),
	   "it copies there");
	call_svm(a, KFD_SVM_OP_SET, p, move, 1);
	ok(fa - available_bytes(a) == 4 * PAGE && available_bytes(b) == fb,
	   "a prefetch takes the memory of the card it names");
	move[0].value = b->gpu;
	call_svm(a, KFD_SVM_OP_SET, p, move, 1);
	ok(available_bytes(a) == fa && fb - available_bytes(b) == 4 * PAGE,
	   "and gives it back for another's");
	sd_queue_destroy(b, &eb.q);
	a->d->munmap(a->d, p, 4 * PAGE);
	is_u64(available_bytes(b), fb, "unmapped, it is free");
}

static void test_two(void)
{
	const struct soft_options o = { .cards = 2, .vram_bytes = 64u << 20 };
	struct sd a = sd_open(&o), b;

	test_apertures(&a);
	test_map_counts(&a);
	sd_close(&a);
	a = sd_open(&o);
	b = sd_card(&a, 1);
	test_vram(&a, &b);
	test_clocks(&a, &b);
	test_queues(&a, &b);
	test_peer_copies(&a, &b);
	test_dmabuf(&a, &b);
	test_svm(&a, &b);
	sd_close(&a);
}

int main(void)
{
	test_topology(1);
	test_topology(2);
	test_topology(8);
	test_small_bar();
	test_too_many();
	test_two();
	test_peers_small_bar();
	test_fault_on_one();
	test_reset_of_one();
	test_debugger();
	test_same_address();
	return plan_done();
}
