/*
 * kfd/soft/device/queue_props.c - what a program may ask of a queue that it
 * has: fewer CUs, global wave sync, and where its waves were saved.
 *
 * A CU mask is a number of CUs here: it limits how many workgroups of the
 * queue are on the card at a time.  Waves are never moved out of the executor,
 * so that the save area of a queue is always empty.
 */
#include <errno.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

#define MASK_MAX_BITS 1024u

/* CUs in pairs of a WGP, of those that the card has. */
static int count_cus(const struct isa_chip *chip, const uint32_t *mask,
		     uint32_t bits, uint32_t *cus)
{
	*cus = 0;
	for (uint32_t i = 0; i < bits; i += 2) {
		const uint32_t pair = mask[i / 32] >> i % 32 & 3;

		if (pair == 1 || pair == 2)
			return -EINVAL;
		if (i < isa_chip_cus(chip) && pair)
			*cus += 2;
	}
	return 0;
}

int soft_ioc_set_cu_mask(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_set_cu_mask *a = arg;
	uint32_t mask[MASK_MAX_BITS / 32], bits = a->num_cu_mask, cus;
	struct soft_queue *q;
	int ret;

	if (!bits || bits % 32)
		return -EINVAL;
	if (bits > MASK_MAX_BITS)
		bits = MASK_MAX_BITS;
	if (soft_copy_in(mask, a->cu_mask_ptr, bits / 8))
		return -EFAULT;
	q = soft_queue_by_id(d, a->queue_id);
	if (!q)
		return -EFAULT; /* as the kernel says it */
	ret = count_cus(q->card->chip, mask, bits, &cus);
	if (!ret)
		__atomic_store_n(&q->cus, cus, __ATOMIC_RELAXED);
	return ret;
}

int soft_ioc_queue_gws(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_alloc_queue_gws *a = arg;
	struct soft_queue *q = soft_queue_by_id(d, a->queue_id);
	int ret = 0;

	if (!q)
		return -EINVAL;
	/* One queue of a process may have it. */
	if (a->num_gws && q->card->gws)
		ret = -EBUSY;
	else if (!a->num_gws && !q->card->gws)
		ret = -EINVAL;
	else
		q->card->gws = a->num_gws ? q : NULL;
	a->first_gws = 0;
	return ret;
}

int soft_ioc_wave_state(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_queue_wave_state *a = arg;
	const struct soft_queue *q = soft_queue_by_id(d, a->queue_id);
	uint32_t state[4];

	if (!q)
		return -EFAULT;
	if ((q->type != KFD_QUEUE_COMPUTE && q->type != KFD_QUEUE_COMPUTE_AQL) ||
	    (__atomic_load_n(&q->active, __ATOMIC_ACQUIRE) &&
	     !__atomic_load_n(&q->suspended, __ATOMIC_ACQUIRE)))
		return -EINVAL;
	a->ctl_stack_used_size = a->save_area_used_size = 0;
	/* The stack grows down from here, and the waves' state up. */
	state[0] = state[2] = q->ctl_stack_bytes;
	state[1] = state[3] = 0;
	return soft_copy_out(a->ctl_stack_address, state, sizeof(state));
}
