/*
 * order - what the thread sanitizer cannot see of memory that two share.
 *
 * Host and device reach a shared buffer at addresses of their own, so an
 * atomic store at one of them and a load at the other order nothing for the
 * sanitizer, which knows addresses only.  A release before such a store and an
 * acquire behind such a load tell it; in other builds they are nothing.
 */
#ifndef T0_BASE_ORDER_H
#define T0_BASE_ORDER_H

#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *at);
void __tsan_release(void *at);
__attribute__((weak)) char order_shared; /* one of a program */

static inline void order_release(void)
{
	__tsan_release(&order_shared);
}

static inline void order_acquire(void)
{
	__tsan_acquire(&order_shared);
}
#else
static inline void order_release(void)
{
}

static inline void order_acquire(void)
{
}
#endif

#endif
