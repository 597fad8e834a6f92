/*
 * kfd/runtime/pool.c - pools of idle buffers.
 *
 * A pool's buffers stay mapped while they are idle, so a kernel that still
 * uses one that was given back harms nobody but the pool's next user.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/runtime.h"

#define KEEP_BYTES   (256ull << 20)
#define CLASS_MIN    4096u
#define CLASSES	     160 /* four steps for each of 40 powers of two */
#define IDLE_NAME    "(idle in a pool)"

struct pooled {
	struct kfd_mem *mem;
	unsigned class;
	struct pooled *next;
};

struct kfd_pool {
	struct kfd_dev *dev;
	struct kfd_pool *next; /* of dev->pools */
	pthread_mutex_t lock;
	enum kfd_domain domain;
	uint64_t keep_bytes;
	struct pooled *idle[CLASSES];
	struct pooled *used;
	struct kfd_pool_stats st;
};

/* Sizes 4, 5, 6, 7 times 2^k: at most a quarter is wasted. */
static size_t class_bytes(unsigned class)
{
	return (size_t)(4 + class % 4) << (class / 4 + 10);
}

static unsigned class_of(size_t size_bytes)
{
	unsigned c = 0;

	while (c + 1 < CLASSES && class_bytes(c) < size_bytes)
		c++;
	return c;
}

struct kfd_pool *kfd_pool_new(struct kfd_dev *dev, enum kfd_domain domain,
			      uint64_t keep_bytes)
{
	struct kfd_pool *p = xcalloc(1, sizeof(*p));

	p->dev = dev;
	p->domain = domain;
	p->keep_bytes = keep_bytes ? keep_bytes : KEEP_BYTES;
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_lock(&dev->pools_lock);
	p->next = dev->pools;
	dev->pools = p;
	pthread_mutex_unlock(&dev->pools_lock);
	return p;
}

static struct pooled *take_idle(struct kfd_pool *p, unsigned class)
{
	pthread_mutex_lock(&p->lock);
	struct pooled *b = p->idle[class];
	p->st.gets++;
	if (b) {
		p->idle[class] = b->next;
		p->st.hits++;
		p->st.idle--;
		p->st.idle_bytes -= class_bytes(class);
	}
	pthread_mutex_unlock(&p->lock);
	return b;
}

static void hand_out(struct kfd_pool *p, struct pooled *b)
{
	pthread_mutex_lock(&p->lock);
	b->next = p->used;
	p->used = b;
	p->st.used++;
	p->st.used_bytes += class_bytes(b->class);
	if (p->st.used_bytes + p->st.idle_bytes > p->st.peak_bytes)
		p->st.peak_bytes = p->st.used_bytes + p->st.idle_bytes;
	pthread_mutex_unlock(&p->lock);
}

bool kfd_pool_get(struct kfd_pool *p, size_t size_bytes, const char *name,
		  struct kfd_mem **out, struct err *e)
{
	const unsigned class = class_of(size_bytes);
	struct pooled *b;

	*out = NULL;
	if (!kfd_dev_usable(p->dev, e))
		return false;
	if (!size_bytes || class_bytes(class) < size_bytes)
		return err_set(e, ERR_USAGE, "'%s': %zu bytes from a pool",
			       name, size_bytes);
	b = take_idle(p, class);
	if (!b) {
		struct kfd_mem *m;

		if (!kfd_mem_alloc(p->dev, p->domain, class_bytes(class), name,
				   &m, e))
			return false;
		b = xcalloc(1, sizeof(*b));
		b->mem = m;
		b->class = class;
	}
	kfd_mem_rename(p->dev, b->mem, name, size_bytes);
	hand_out(p, b);
	*out = b->mem;
	return true;
}

void kfd_pool_put(struct kfd_pool *p, struct kfd_mem *m)
{
	struct pooled **at, *b;

	if (!m)
		return;
	pthread_mutex_lock(&p->lock);
	for (at = &p->used; *at && (*at)->mem != m;)
		at = &(*at)->next;
	b = *at;
	if (!b)
		BUG("'%s' is not of this pool", m->name);
	*at = b->next;
	const size_t bytes = class_bytes(b->class);
	p->st.puts++;
	p->st.used--;
	p->st.used_bytes -= bytes;
	const bool keep = p->st.idle_bytes + bytes <= p->keep_bytes &&
			  !((struct mem *)m)->holds_code;
	if (keep) {
		kfd_mem_rename(p->dev, m, IDLE_NAME, bytes);
		b->next = p->idle[b->class];
		p->idle[b->class] = b;
		p->st.idle++;
		p->st.idle_bytes += bytes;
	}
	pthread_mutex_unlock(&p->lock);
	if (!keep) {
		kfd_mem_free(p->dev, m);
		free(b);
	}
}

static void free_list(struct kfd_pool *p, struct pooled *b)
{
	for (struct pooled *next; b; b = next) {
		next = b->next;
		kfd_mem_free(p->dev, b->mem);
		free(b);
	}
}

void kfd_pool_trim(struct kfd_pool *p)
{
	for (unsigned c = 0; c < CLASSES; c++) {
		pthread_mutex_lock(&p->lock);
		struct pooled *list = p->idle[c];
		p->idle[c] = NULL;
		for (struct pooled *b = list; b; b = b->next) {
			p->st.idle--;
			p->st.idle_bytes -= class_bytes(c);
			p->st.trimmed++;
		}
		pthread_mutex_unlock(&p->lock);
		free_list(p, list);
	}
}

void kfd_pool_stats(struct kfd_pool *p, struct kfd_pool_stats *out)
{
	pthread_mutex_lock(&p->lock);
	*out = p->st;
	pthread_mutex_unlock(&p->lock);
}

bool kfd_pool_free(struct kfd_pool *p, struct err *e)
{
	struct kfd_dev *dev = p->dev;
	struct kfd_pool **at;
	bool clean = !p->used;

	pthread_mutex_lock(&dev->pools_lock);
	for (at = &dev->pools; *at && *at != p;)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
	pthread_mutex_unlock(&dev->pools_lock);
	if (!clean)
		err_set(e, ERR_USAGE,
			"%llu buffers (%llu bytes) of the pool were not given "
			"back, among them '%s'",
			(unsigned long long)p->st.used,
			(unsigned long long)p->st.used_bytes,
			p->used->mem->name);
	kfd_pool_trim(p);
	free_list(p, p->used);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return clean;
}

bool kfd_pools_trim(struct kfd_dev *dev)
{
	const uint64_t before = kfd_mem_live_bytes(dev);

	pthread_mutex_lock(&dev->pools_lock);
	for (struct kfd_pool *p = dev->pools; p; p = p->next)
		kfd_pool_trim(p);
	pthread_mutex_unlock(&dev->pools_lock);
	return kfd_mem_live_bytes(dev) < before;
}

void kfd_pools_fini(struct kfd_dev *dev)
{
	while (dev->pools)
		kfd_pool_free(dev->pools, NULL);
}
