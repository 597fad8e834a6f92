/*
 * engine/cpu/cpu_engram.c - what a table of runs of words adds to a layer.
 *
 * Rows depend on the text alone: they are on their way to the cache while the
 * layers before compute.
 */
#include <math.h>

#include "engine/cpu/cpu_int.h"

void cpu_engram_fetch(const struct worker *w)
{
	const struct qwen_matrix *table = &w->s->m->engram;
	const size_t bytes =
		table->rows ? qwen_matrix_bytes(table) / table->rows : 0;
	const char *data = table->data;
	size_t i, to;

	threads_part(w->t, w->thread, bytes ? w->s->p->n : 0, 1, &i, &to);
	for (i *= QWEN_ORDERS, to *= QWEN_ORDERS; i < to; i++)
		for (size_t at = 0; at < bytes; at += 64)
			__builtin_prefetch(data + w->s->p->gram[i] * bytes +
					   at);
}

void cpu_engram_add(struct worker *w)
{
	const struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_kernels *k = s->m->kernels;
	const float root = sqrtf((float)c->hidden);
	float *e = w->h, *row = w->row;
	size_t i, to;

	threads_part(w->t, w->thread, s->p->n, 1, &i, &to);
	for (; i < to; i++) {
		const uint32_t *gram = s->p->gram + i * QWEN_ORDERS;
		float *x = s->x + i * c->hidden;

		qwen_matrix_row(k, &s->m->engram, gram[0], e);
		for (uint32_t o = 1; o < QWEN_ORDERS; o++) {
			qwen_matrix_row(k, &s->m->engram, gram[o], row);
			k->axpy(1, row, e, c->hidden);
		}
		k->rms_norm(x, s->m->engram_gate, c->hidden, (float)c->norm_eps,
			    row);
		k->axpy(1 / (1 + expf(-k->dot(row, e, c->hidden) / root)), e, x,
			c->hidden);
	}
	threads_barrier(w->t);
}
