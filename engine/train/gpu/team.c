/*
 * engine/train/gpu/team.c - devices that share the batches of a step add up
 * their gradients: data parallelism.
 */
#include "engine/train/gpu/gpu_int.h"

static bool has_gradient(const struct train_graph *g, uint32_t i)
{
	return g->param[i].gradient != TRAIN_NONE;
}

bool train_team_join(struct train_gpu *s, struct err *e)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < s->devices; i++) {
		struct kfd_dev *peer = s->device[i]->card.dev;
		ok = s->device[i] == s ||
		     (kfd_mem_share(s->arena, s->card.dev, peer, e) &&
		      kfd_queue_share(s->queue, peer, e));
	}
	return ok;
}

/* Meetings take two each; a gradient is summed once, and fetched. */
uint32_t train_team_packets(const struct train_gpu *s)
{
	return s->devices > 1 ? 6 + s->g->n_params * s->devices : 0;
}

/* ---- meetings ---- */

/* What is put behind it, on every device, sees what all have written. */
static bool put_meeting(struct train_gpu *s, struct err *e)
{
	struct kfd_after on[TRAIN_MOST];
	bool ok = true;
	int n = 0;

	for (uint32_t i = 0; i < s->devices; i++)
		if (s->device[i]->marked)
			on[n++] = (struct kfd_after){ s->device[i]->queue,
						      s->device[i]->mark };
	for (uint32_t i = 0; ok && i < s->devices; i++)
		ok = kfd_after(s->device[i]->queue, on, n, e);
	return ok;
}

/* ---- sums ---- */

/* Elements of one gradient that a device adds up. */
struct span {
	uint64_t from, n;
};

static struct span span_of(const struct train_gpu *s, uint32_t number,
			   uint64_t n)
{
	const uint64_t each = (n / s->devices + 3) & ~(uint64_t)3;
	const uint64_t from = number * each < n ? number * each : n;
	const uint64_t left = n - from;

	return (struct span){ from, number + 1 == s->devices || left < each ?
					    left :
					    each };
}

/* out = the sum of parts, of a span of the gradient. */
static bool put_sum(struct train_gpu *s, uint32_t gradient, struct span span,
		    struct train_gpu *const *part, uint32_t n, struct err *e)
{
	const uint64_t at = span.from * sizeof(float);
	const struct train_launch l = { .kernel = "sum_parts", .n = span.n };
	struct gpu_args a = { .n = 0 };

	arg_va(&a, value_at(s, gradient) + at);
	arg_va(&a, value_at(s, gradient) + at); /* nothing is cleared */
	for (uint32_t i = 0; i < KERNEL_MAX_PARTS; i++)
		arg_va(&a, value_at(part[i < n ? i : 0], gradient) + at);
	arg_u32(&a, n);
	arg_u32(&a, 0);
	arg_u32(&a, (uint32_t)span.n);
	s->loud = true;
	return train_put_kernel(s, &l, &a, e);
}

/* Every device's own span of every gradient; or those of the others. */
static bool put_spans(struct train_gpu *s, bool fetch, struct err *e)
{
	const struct train_graph *g = s->g;

	for (uint32_t i = 0; i < g->n_params; i++) {
		const uint64_t n =
			(uint64_t)g->param[i].rows * g->param[i].cols;

		for (uint32_t r = 0; has_gradient(g, i) && r < s->devices;
		     r++) {
			const struct span span = span_of(s, r, n);
			if (!span.n || fetch == (r == s->number))
				continue;
			if (!put_sum(s, g->param[i].gradient, span,
				     fetch ? &s->device[r] : s->device,
				     fetch ? 1 : s->devices, e))
				return false;
		}
	}
	return true;
}

bool train_put_sums(struct train_gpu *s, struct err *e)
{
	if (s->devices == 1)
		return true;
	/* Batches have been waited for: gradients are there. */
	for (int fetch = 0; fetch < 2; fetch++) {
		for (uint32_t i = 0; i < s->devices; i++)
			if (!put_spans(s->device[i], fetch, e))
				return false;
		if (!put_meeting(s, e))
			return false;
	}
	return true;
}
