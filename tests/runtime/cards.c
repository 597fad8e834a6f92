/*
 * Several GPUs through the runtime: those of "soft*2", opened as peers, with
 * kernels that reach both memories.  Expected values are computed here.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/kfd.h"
#include "tests/code.h"
#include "tests/tap.h"

#define WORDS (1u << 20) /* enough that the host sleeps meanwhile */

struct card {
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_mem *mem;
	const struct kfd_kernel *store, *increment;
};
struct store_args {
	uint64_t out;
	uint32_t add;
} __attribute__((packed));
struct increment_args {
	uint64_t out, in;
};

static struct err e;

static const struct kfd_kernel *
load_kernel(struct kfd_dev *dev, const char *name, uint32_t args_bytes)
{
	const struct code c = code_of("tests/runtime/kernels.s", name);
	const struct kfd_raw_desc d = { .name = name,
					.rsrc1 = 0x60af0000, /* 8 VGPRs */
					.rsrc2 = 0x84, /* 2 user SGPRs, id X */
					.properties = 0x408, /* wave32 */
					.kernarg_bytes = args_bytes };
	const struct kfd_kernel *k = NULL;

	if (!kfd_code_raw(dev, c.dw, c.size_bytes, &d, &k, &e))
		diag("%s", e.msg);
	return k;
}

static bool open_card(struct card *c)
{
	c->store = load_kernel(c->dev, "store", sizeof(struct store_args));
	c->increment =
		load_kernel(c->dev, "increment", sizeof(struct increment_args));
	return kfd_queue_new(c->dev, NULL, &c->q, &e) &&
	       kfd_mem_alloc(c->dev, KFD_VRAM, WORDS * 4, "words", &c->mem,
			     &e);
}

static bool run_kernel(struct card *c, const struct kfd_kernel *k,
		       const void *args, size_t bytes)
{
	const struct kfd_launch l = {
		.kernel = k, .grid = { WORDS }, .wg = { 32 }, .args = args,
		.args_bytes = bytes,
		.deadline_ns = time_mono_ns() + 20000000000u,
	};

	return kfd_run(c->q, &l, NULL, &e);
}

static bool run_store(struct card *c, uint64_t out, uint32_t add)
{
	const struct store_args a = { out, add };

	return run_kernel(c, c->store, &a, sizeof(a));
}

static bool run_increment(struct card *c, uint64_t out, uint64_t in)
{
	const struct increment_args a = { out, in };

	return run_kernel(c, c->increment, &a, sizeof(a));
}

static unsigned count_wrong(const struct kfd_mem *m, uint32_t first)
{
	const volatile uint32_t *p = m->cpu;
	unsigned n = 0;

	for (uint32_t i = 0; i < WORDS; i++)
		n += p[i] != first + i;
	return n;
}

static bool open_two(struct card *a, struct card *b)
{
	return ok(kfd_open(&a->dev, "soft*2", &e) &&
			  kfd_open_peer(&b->dev, a->dev, "soft:1", &e) &&
			  open_card(a) && open_card(b),
		  "two cards are opened (%s)", e.msg);
}

static void test_identity(const struct card *a, const struct card *b)
{
	is_str(kfd_info(a->dev)->spec, "soft*2:0", "one is known by its number");
	is_str(kfd_info(b->dev)->spec, "soft*2:1", "and the other");
	ok(strcmp(kfd_info(a->dev)->pci, kfd_info(b->dev)->pci) &&
	   kfd_info(a->dev)->node.unique_id !=
		   kfd_info(b->dev)->node.unique_id,
	   "they differ in address and unique id");
}

static void test_memory(struct card *a, struct card *b)
{
	ok(run_store(a, a->mem->va, 100) && run_store(b, b->mem->va, 9000),
	   "a kernel on each (%s)", e.msg);
	ok(!count_wrong(a->mem, 100) && !count_wrong(b->mem, 9000),
	   "stores to the card's own memory");
	ok(kfd_mem_share(a->mem, a->dev, b->dev, &e),
	   "the second may reach the first's (%s)", e.msg);
	ok(run_increment(b, b->mem->va, a->mem->va),
	   "its kernel reads there (%s)", e.msg);
	is_u64(count_wrong(b->mem, 101), 0, "what the first stored");
	ok(run_increment(b, a->mem->va, b->mem->va), "and writes (%s)", e.msg);
	is_u64(count_wrong(a->mem, 102), 0, "where the first's memory is");
	ok(run_increment(a, a->mem->va, a->mem->va), "which it reads (%s)",
	   e.msg);
	is_u64(count_wrong(a->mem, 103), 0, "as it is now");
}

/* Either way round, as the runtime's first GPU is the process's. */
static void test_fault(bool first)
{
	struct card a, b, *bad = first ? &a : &b, *good = first ? &b : &a;
	const char *which = first ? "first" : "second";

	e = (struct err){ 0 };
	if (!open_two(&a, &b))
		return;
	/* Not shared: the other card's memory is no memory. */
	ok(!run_store(bad, good->mem->va, 1) && e.code == ERR_DEVICE,
	   "a fault on the %s card", which);
	has_str(e.msg, "page not present", "is one of memory");
	ok(kfd_lost(bad->dev, NULL), "the %s card is lost", which);
	ok(!kfd_lost(good->dev, NULL), "the other is not");
	ok(run_store(good, good->mem->va, 7), "it runs on (%s)", e.msg);
	is_u64(count_wrong(good->mem, 7), 0, "and computes");
	ok(!run_store(bad, bad->mem->va, 7), "the %s does not", which);
	kfd_close(a.dev);
}

static void test_more(void)
{
	struct kfd_dev *dev, *peer;
	struct kfd_found *found;
	int n = 0, soft = 0;

	ok(kfd_open(&dev, "soft*3:2", &e), "the third of three (%s)", e.msg);
	ok(!kfd_open_peer(&peer, dev, "soft:2", &e) && e.code == ERR_BUSY,
	   "a card is not opened twice");
	ok(!kfd_open_peer(&peer, dev, "soft:3", &e) && e.code == ERR_NODEV,
	   "nor one that there is not");
	ok(kfd_open_peer(&peer, dev, "soft:0", &e), "the first beside it (%s)",
	   e.msg);
	kfd_close(dev);
	ok(kfd_list("soft*3", &found, &n, &e), "devices are listed (%s)",
	   e.msg);
	for (int i = 0; i < n; i++)
		soft += !strncmp(found[i].spec, "soft*3:", 7) &&
			found[i].usable;
	is_i64(soft, 3, "all cards are among them");
	free(found);
}

int main(void)
{
	struct card a = { 0 }, b = { 0 };

	if (open_two(&a, &b)) {
		test_identity(&a, &b);
		test_memory(&a, &b);
		kfd_close(a.dev);
	}
	test_fault(true);
	test_fault(false);
	test_more();
	return plan_done();
}
