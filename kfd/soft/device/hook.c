/*
 * kfd/soft/device/hook.c - hooks: what is attached to the device, and asking
 * it.
 *
 * Without a hook each question is one load of the number of hooks.
 */
#include "kfd/soft/device/dev.h"

/* The i-th hook, or NULL after the last. */
static struct soft_hook *hook_at(const struct soft_dev *d, unsigned i)
{
	return i < __atomic_load_n(&d->n_hooks, __ATOMIC_ACQUIRE) ? d->hook[i] :
								    NULL;
}

struct soft_hook *soft_hook_attach(struct soft_dev *d, struct soft_hook *h)
{
	struct soft_hook *there;

	pthread_mutex_lock(&d->lock);
	there = soft_hook_find(d, h->ops);
	if (!there) {
		if (d->n_hooks == SOFT_HOOKS_MAX)
			BUG("more than %u hooks", SOFT_HOOKS_MAX);
		d->hook[d->n_hooks] = there = h;
		__atomic_store_n(&d->n_hooks, d->n_hooks + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&d->lock);
	return there;
}

struct soft_hook *soft_hook_find(const struct soft_dev *d,
				 const struct soft_hook_ops *ops)
{
	struct soft_hook *h;

	for (unsigned i = 0; (h = hook_at(d, i)); i++)
		if (h->ops == ops)
			return h;
	return NULL;
}

struct soft_hook *soft_hook_watcher(const struct soft_dev *d)
{
	struct soft_hook *h;

	for (unsigned i = 0; (h = hook_at(d, i)); i++)
		if (h->ops->run_wave)
			return h;
	return NULL;
}

/* The last one first: it may use those that were there before. */
void soft_hooks_free(struct soft_dev *d)
{
	while (d->n_hooks) {
		struct soft_hook *h = d->hook[--d->n_hooks];

		h->ops->free(h);
	}
}

/* ------------------------------------------------------------- asking -- */

int soft_hooks_call(struct soft_dev *d, const struct soft_call *c)
{
	struct soft_hook *h;
	int ret = 0;

	for (unsigned i = 0; !ret && (h = hook_at(d, i)); i++)
		if (h->ops->call)
			ret = h->ops->call(h, c);
	return ret;
}

void soft_hooks_closing(struct soft_dev *d)
{
	struct soft_hook *h;

	for (unsigned i = 0; (h = hook_at(d, i)); i++)
		if (h->ops->closing)
			h->ops->closing(h);
}

void soft_hooks_note(struct kfd_driver *drv, const struct kfd_note *n)
{
	struct soft_hook *h;

	for (unsigned i = 0; (h = hook_at((struct soft_dev *)drv, i)); i++)
		if (h->ops->note)
			h->ops->note(h, n);
}

bool soft_hooks_before_packet(struct soft_queue *q)
{
	struct soft_hook *h;
	bool run = true;

	for (unsigned i = 0; run && (h = hook_at(q->dev, i)); i++)
		if (h->ops->before_packet)
			run = h->ops->before_packet(h, q);
	return run;
}

void soft_hooks_run_dispatch(struct soft_dispatch *dp)
{
	struct soft_hook *h;

	for (unsigned i = 0; (h = hook_at(dp->l.q->dev, i)); i++)
		if (h->ops->run_dispatch)
			h->ops->run_dispatch(h, dp);
}
