/*
 * kfd/runtime/signal.c - the caller's signals, allocated by the page.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/runtime.h"

struct signal {
	struct kfd_signal pub;
	struct sigblock *block;
	unsigned index;
	struct event event; /* shared with all signals; the age is its own */
};

struct amd_signal *kfd_signal_hw(const struct kfd_signal *s)
{
	return (struct amd_signal *)(uintptr_t)s->va;
}

static struct sigblock *block_new(struct kfd_dev *dev, struct err *e)
{
	struct mem *m =
		kfd_mem_new(dev, MEM_FLAGS_GTT, KFD_PAGE_BYTES, "signals", e);
	if (!m)
		return NULL;
	struct sigblock *b = xcalloc(1, sizeof(*b));
	b->mem = m;
	return b;
}

/* The first block with a free place, or NULL. */
static struct sigblock *block_find(struct kfd_dev *dev)
{
	struct sigblock *b = dev->signals;

	while (b && b->used == UINT64_MAX)
		b = b->next;
	return b;
}

static void block_take(struct sigblock *b, struct signal *s)
{
	s->block = b;
	s->index = (unsigned)__builtin_ctzll(~b->used);
	b->used |= 1ull << s->index;
	b->handle[s->index] = &s->pub;
}

static void signal_init(struct signal *s, struct kfd_dev *dev, int64_t value)
{
	struct amd_signal *hw;

	s->pub.dev = dev;
	s->pub.va = s->block->mem->pub.va +
		    (uint64_t)s->index * sizeof(struct amd_signal);
	s->event = dev->signal_event;
	hw = kfd_signal_hw(&s->pub);
	*hw = (struct amd_signal){
		.kind = AMD_SIGNAL_USER,
		.event_mailbox_ptr = kfd_event_mailbox(dev, &s->event),
		.event_id = s->event.id,
	};
	kfd_signal_set(&s->pub, value);
}

bool kfd_signal_new(struct kfd_dev *dev, int64_t value, struct kfd_signal **out,
		    struct err *e)
{
	*out = NULL;
	if (!kfd_dev_usable(dev, e))
		return false;
	struct signal *s = xcalloc(1, sizeof(*s));
	pthread_mutex_lock(&dev->lock);
	struct sigblock *b = block_find(dev);
	if (b)
		block_take(b, s);
	pthread_mutex_unlock(&dev->lock);
	if (!b) {
		b = block_new(dev, e);
		if (!b) {
			free(s);
			return false;
		}
		block_take(b, s);
		pthread_mutex_lock(&dev->lock);
		b->next = dev->signals;
		dev->signals = b;
		pthread_mutex_unlock(&dev->lock);
	}
	signal_init(s, dev, value);
	*out = &s->pub;
	return true;
}

void kfd_signal_free(struct kfd_signal *pub)
{
	struct signal *s = (struct signal *)pub;

	if (!s)
		return;
	pthread_mutex_lock(&pub->dev->lock);
	s->block->used &= ~(1ull << s->index);
	s->block->handle[s->index] = NULL;
	pthread_mutex_unlock(&pub->dev->lock);
	free(s);
}

int64_t kfd_signal_value(const struct kfd_signal *s)
{
	const int64_t value = __atomic_load_n(&kfd_signal_hw(s)->value,
					      __ATOMIC_ACQUIRE);

	order_acquire();
	return value;
}

void kfd_signal_set(struct kfd_signal *s, int64_t value)
{
	__atomic_store_n(&kfd_signal_hw(s)->value, value, __ATOMIC_RELEASE);
}

bool kfd_signal_wait(struct kfd_signal *pub, uint64_t deadline_ns,
		     struct err *e)
{
	const struct kfd_wait w = { .sig = kfd_signal_hw(pub),
				    .ev = &((struct signal *)pub)->event,
				    .spin_ns = 50000,
				    .deadline_ns = deadline_ns };

	return kfd_dev_usable(pub->dev, e) && kfd_event_wait(pub->dev, &w, e);
}

void kfd_signals_fini(struct kfd_dev *dev)
{
	for (struct sigblock *b = dev->signals, *next; b; b = next) {
		next = b->next;
		for (unsigned i = 0; i < ARRAY_SIZE(b->handle); i++)
			free(b->handle[i]);
		kfd_mem_delete(dev, b->mem, NULL);
		free(b);
	}
	dev->signals = NULL;
}
