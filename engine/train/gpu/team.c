/*
 * engine/train/gpu/team.c - devices that share the batches of a step add up
 * their gradients: data parallelism.
 *
 * Each sums its span of every gradient, and fetches the spans of the others.
 * Where devices cannot read each other's memory, gradients go through the
 * host's.
 */
#include "engine/train/gpu/gpu_int.h"

static uint64_t count_of(const struct train_graph *g, uint32_t i)
{
	return g->param[i].gradient == TRAIN_NONE ?
		       0 :
		       (uint64_t)g->param[i].rows * g->param[i].cols;
}

/* Bytes of gradients before number i, each at a multiple of 16. */
static uint64_t exchange_at(const struct train_graph *g, uint32_t i)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < i; k++)
		bytes += (count_of(g, k) * sizeof(float) + 15) / 16 * 16;
	return bytes;
}

/* Gradient i as others see it. */
static uint64_t shared_at(const struct train_gpu *s, uint32_t i)
{
	return s->exchange ? s->exchange->va + exchange_at(s->g, i) :
			     value_at(s, s->g->param[i].gradient);
}

static uint64_t own_at(const struct train_gpu *s, uint32_t i)
{
	return value_at(s, s->g->param[i].gradient);
}

static bool share_with(struct train_gpu *s, struct kfd_dev *peer, struct err *e)
{
	struct kfd_mem *m = s->exchange ? s->exchange : s->arena;

	return kfd_mem_share(m, s->card.dev, peer, e) &&
	       kfd_queue_share(s->queue, peer, e);
}

static bool join_one(struct train_gpu *s, enum kfd_domain domain, struct err *e)
{
	const uint64_t bytes = exchange_at(s->g, s->g->n_params);
	bool ok = domain != KFD_GTT ||
		  kfd_mem_alloc(s->card.dev, domain, bytes + 16,
				"gradients for others", &s->exchange, e);

	for (uint32_t i = 0; ok && i < s->devices; i++)
		ok = s->device[i] == s ||
		     share_with(s, s->device[i]->card.dev, e);
	return ok;
}

bool train_team_join(struct train_gpu *first, struct err *e)
{
	struct gpu_card *card[GPU_CARDS_MAX];
	bool ok = true;

	if (first->devices == 1)
		return true;
	for (uint32_t i = 0; i < first->devices; i++)
		card[i] = &first->device[i]->card;
	const enum kfd_domain domain = gpu_shared_domain(card, first->devices);
	for (uint32_t i = 0; ok && i < first->devices; i++)
		ok = join_one(first->device[i], domain, e);
	return ok;
}

/* Meetings take two each; a gradient goes out, is summed, and fetched. */
uint32_t train_team_packets(const struct train_gpu *s)
{
	return s->devices > 1 ? 6 + s->g->n_params * (s->devices + 2) : 0;
}

/* ---- meetings ---- */

/* What is put behind it, on every device, sees what all have written. */
static bool put_meeting(struct train_gpu *first, struct err *e)
{
	struct kfd_after on[GPU_CARDS_MAX];
	bool ok = true;
	int n = 0;

	for (uint32_t i = 0; i < first->devices; i++) {
		const struct train_gpu *s = first->device[i];
		if (s->marked)
			on[n++] = (struct kfd_after){ s->queue, s->mark };
	}
	for (uint32_t i = 0; ok && i < first->devices; i++)
		ok = kfd_after(first->device[i]->queue, on, n, e);
	return ok;
}

/* ---- sums ---- */

/* A span of `out` = the sum of those of n others. */
static bool put_sum(struct train_gpu *s, struct gpu_span span, uint64_t out,
		    const uint64_t *part, uint32_t n, struct err *e)
{
	const struct train_launch l = { .kernel = "sum_parts", .n = span.n };
	struct gpu_args a = { .n = 0 };

	if (!span.n)
		return true;
	gpu_sum_args(&a, span, out, part, n, 0);
	s->loud = true;
	return train_put_kernel(s, &l, &a, e);
}

static struct gpu_span span_of(const struct train_gpu *s, uint32_t number,
			       uint32_t i)
{
	return gpu_span_of(count_of(s->g, i), number, s->devices);
}

/* The device's gradient i goes to where others see it. */
static bool put_out(struct train_gpu *s, uint32_t i, struct err *e)
{
	const uint64_t own = own_at(s, i);

	return put_sum(s, (struct gpu_span){ 0, count_of(s->g, i) },
		       shared_at(s, i), &own, 1, e);
}

static bool put_own_span(struct train_gpu *s, uint32_t i, struct err *e)
{
	uint64_t part[GPU_CARDS_MAX];

	for (uint32_t r = 0; r < s->devices; r++)
		part[r] = shared_at(s->device[r], i);
	return put_sum(s, span_of(s, s->number, i),
		       shared_at(s, i), part, s->devices, e);
}

static bool fetch_spans(struct train_gpu *s, uint32_t i, struct err *e)
{
	bool ok = true;

	for (uint32_t r = 0; ok && r < s->devices; r++) {
		const uint64_t part = shared_at(s->device[r], i);
		if (part != own_at(s, i))
			ok = put_sum(s, span_of(s, r, i),
				     own_at(s, i), &part, 1, e);
	}
	return ok;
}

typedef bool put_fn(struct train_gpu *s, uint32_t i, struct err *e);

/* For every gradient of every device; then they meet. */
static bool put_all(struct train_gpu *first, put_fn *put, struct err *e)
{
	for (uint32_t d = 0; d < first->devices; d++) {
		struct train_gpu *s = first->device[d];
		for (uint32_t i = 0; i < s->g->n_params; i++)
			if (count_of(s->g, i) && !put(s, i, e))
				return false;
	}
	return put_meeting(first, e);
}

bool train_put_sums(struct train_gpu *s, struct err *e)
{
	/* Batches have been waited for: gradients are there. */
	return s->devices == 1 ||
	       ((!s->exchange || put_all(s, put_out, e)) &&
		put_all(s, put_own_span, e) && put_all(s, fetch_spans, e));
}
