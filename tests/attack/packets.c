/*
 * Fuzz target: what programs write into the rings of the software device.  The
 * first byte chooses AQL packets, PM4 or SDMA; the rest is the ring's content.
 * A queue takes packets on this thread until it stops, waits, or has seen as
 * many as the ring holds.  Memory that packets can reach lies at MEM_VA, the
 * first half of it a copy of the input.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/device/dev.h"
#include "tests/attack/driver/driver.h"
#include "tests/soft/softdev.h"

enum { RING_BYTES = 4096, MEM_BYTES = 1 << 16 };
#define MEM_VA UINT64_C(0x200000000000)

struct bench {
	struct sd s;
	struct soft_dev *dev;
	struct sd_queue buffers;
	uint8_t *mem;
};

/* As sd_try_alloc(), but where inputs can know it. */
static uint8_t *fixed_memory(struct sd *s)
{
	struct kfd_ioc_alloc_memory a = { .size = MEM_BYTES, .va_addr = MEM_VA,
					  .gpu_id = SOFT_GPU_ID,
					  .flags = GTT_FLAGS };
	int err = 0;

	if (sd_ioctl(s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a) ||
	    s->d->mmap(s->d, (void *)MEM_VA, MEM_BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED_NOREPLACE, s->drm, a.mmap_offset,
		       &err) == MAP_FAILED ||
	    sd_map(s, a.handle, true))
		BUG("no memory at %#llx", (unsigned long long)MEM_VA);
	return (uint8_t *)MEM_VA;
}

static struct bench *bench_once(void)
{
	static const struct soft_options o = { .threads = 1,
					       .deadline_ns = 20000000 };
	static struct bench *b;

	if (b)
		return b;
	b = xcalloc(1, sizeof(*b));
	b->s = sd_open(&o);
	b->dev = (struct soft_dev *)b->s.d;
	sd_queue_prepare(&b->s, &b->buffers, RING_BYTES / 64);
	b->mem = fixed_memory(&b->s);
	return b;
}

/* A queue without a thread, over the bench's buffers. */
static void queue_init(struct soft_queue *q, struct bench *b, uint32_t type)
{
	static uint64_t doorbell;

	*q = (struct soft_queue){
		.dev = b->dev, .card = &b->dev->card[0], .id = 1,
		.type = type, .doorbell = &doorbell,
		.ring_base = b->buffers.a.ring_base, .ring_bytes = RING_BYTES,
		.rptr_va = b->buffers.a.rptr_addr,
		.wptr_va = b->buffers.a.wptr_addr,
		.cwsr_va = b->buffers.a.cwsr_addr, .active = 1,
		.doorbell_seen = UINT64_MAX, .began_index = UINT64_MAX,
	};
	doorbell = type == KFD_QUEUE_COMPUTE_AQL ? RING_BYTES / 64 - 1 :
		   type == KFD_QUEUE_COMPUTE	 ? RING_BYTES / 4 :
						   RING_BYTES;
}

static enum soft_done take_packet(struct soft_queue *q)
{
	if (q->type == KFD_QUEUE_COMPUTE_AQL)
		return soft_packet_ready(q) ? soft_packet_run(q) :
					      SOFT_REFUSED;
	if (!soft_stream_ready(q))
		return SOFT_REFUSED;
	return q->type == KFD_QUEUE_COMPUTE ? soft_pm4_run(q) :
					      soft_sdma_run(q);
}

static void reset_bench(struct bench *b, const uint8_t *data, size_t size)
{
	struct amd_queue *q = b->buffers.q;

	memset(b->mem, 0, MEM_BYTES);
	memcpy(b->mem, data, size < MEM_BYTES / 2 ? size : MEM_BYTES / 2);
	memset(b->buffers.ring, 0, RING_BYTES);
	memcpy(b->buffers.ring, data, size < RING_BYTES ? size : RING_BYTES);
	q->read_dispatch_id = 0;
	q->write_dispatch_id = 0;
	b->dev->card[0].evicted = b->dev->card[0].hung = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t types[] = { KFD_QUEUE_COMPUTE_AQL,
					  KFD_QUEUE_COMPUTE, KFD_QUEUE_SDMA };
	struct bench *b = bench_once();
	struct soft_queue q;

	if (size < 2)
		return 0;
	reset_bench(b, data + 1, size - 1);
	queue_init(&q, b, types[*data % ARRAY_SIZE(types)]);
	for (int i = 0; i < RING_BYTES / 4; i++) {
		uint64_t before = q.read_index;
		bool inside = q.pm4;

		if (soft_queue_go(&q) != SOFT_GO ||
		    take_packet(&q) != SOFT_DONE)
			break;
		if (q.read_index == before && !inside && !q.pm4)
			BUG("a packet is done, and the queue stands still");
	}
	soft_worker_fini(&q.worker);
	soft_pm4_free(&q);
	return 0;
}
