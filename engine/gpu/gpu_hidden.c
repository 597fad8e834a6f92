/*
 * engine/gpu/gpu_hidden.c - what the layers made of tokens, for the host.
 *
 * Rows of activations are copied out; the last norm of so few is the host's.
 */
#include "engine/gpu/gpu_int.h"

static bool shown_grow(struct gpu_state *s, uint32_t n, struct err *e)
{
	const size_t row = s->g->m->config.hidden * sizeof(float);

	if (n <= s->cap_shown)
		return true;
	kfd_mem_free(s->g->card.dev, s->shown);
	s->shown = NULL;
	s->cap_shown = 0;
	if (!kfd_mem_alloc(s->g->card.dev, KFD_GTT, n * row,
			   "hidden states for the host", &s->shown, e))
		return false;
	s->cap_shown = n;
	return true;
}

bool gpu_hidden_put(struct gpu_state *s, const struct qwen_pass *p,
		    struct err *e)
{
	const uint32_t hidden = s->g->m->config.hidden;
	const uint64_t row = hidden * sizeof(float);

	if (!shown_grow(s, p->n_shown, e))
		return false;
	for (uint32_t r = 0; r < p->n_shown; r++) {
		struct gpu_args a = { .n = 0 };
		arg_va(&a, s->shown->va + r * row);
		arg_va(&a, s->x->va + p->shown[r] * row);
		arg_u32(&a, hidden);
		gpu_ends(s);
		if (!put_kernel(s, s->copy, &a, groups_of(s->copy, hidden), 1,
				e))
			return false;
	}
	return true;
}

void gpu_hidden_read(struct gpu_state *s, const struct qwen_pass *p)
{
	const struct qwen_model *m = s->g->m;
	const uint32_t hidden = m->config.hidden;

	for (uint32_t r = 0; r < p->n_shown; r++)
		m->kernels->rms_norm((const float *)s->shown->cpu +
					     (size_t)r * hidden,
				     m->norm, hidden, (float)m->config.norm_eps,
				     p->hidden + (size_t)r * hidden);
	s->counts.copies += p->n_shown;
	s->counts.copied_bytes += (uint64_t)p->n_shown * hidden * sizeof(float);
}
