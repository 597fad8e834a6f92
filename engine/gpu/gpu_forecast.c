/*
 * engine/gpu/gpu_forecast.c - a pass simulated, without a card and without
 * weights.
 *
 * The packets of a pass, from the same code that puts them on a queue, go
 * through the pipeline simulator one by one.  A model of the right sizes is
 * laid out in the memory of the chip in software, and nothing is written
 * there.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/gpu/gpu_int.h"

/* ---- one pass, recorded ---- */

static bool pass_put(struct gpu_run *run, const struct gpu_question *q,
		     struct err *e)
{
	const uint32_t n = q->sequences * q->tokens;
	struct qwen_token *token = xcalloc(n, sizeof(*token));
	uint32_t *position = xcalloc(n, sizeof(*position));
	uint32_t *wanted = xcalloc(q->sequences, sizeof(*wanted));
	struct qwen_pass p = { .token = token, .position = position, .n = n,
			       .wanted = wanted, .n_wanted = q->sequences };

	for (uint32_t i = 0; i < n; i++) {
		token[i].sequence = i / q->tokens;
		position[i] = q->positions - q->tokens + i % q->tokens;
	}
	for (uint32_t i = 0; i < q->sequences; i++) {
		wanted[i] = (i + 1) * q->tokens - 1;
		token[wanted[i]].best = true;
	}
	bool good = gpu_put_pass(run, &p, e);
	free(token);
	free(position);
	free(wanted);
	return good;
}

/* Experts as a router that is fair would deal them, and pairs by expert. */
struct deal {
	int32_t *expert, *order, *tile; /* as on the device */
};

static void deal_free(struct deal *d)
{
	free(d->expert);
	free(d->order);
	free(d->tile);
}

/* Of n tokens; token i uses those that follow on i's. */
static struct deal deal_experts(const struct gpu_state *s, uint32_t n,
				struct gpu_known known[GPU_KNOWN_MAX])
{
	const struct qwen_config *c = &s->g->m->config;
	const uint32_t pairs = n * c->experts.used;
	const uint32_t tiles = c->experts.n ? gpu_expert_tiles(c, n) : 0;
	struct deal d = { xcalloc(pairs + 1, sizeof(*d.expert)),
			  xcalloc(pairs + 1, sizeof(*d.order)),
			  xcalloc(tiles * 3 + 1, sizeof(*d.tile)) };
	uint32_t at = 0;
	int32_t *t = d.tile;

	if (!c->experts.n)
		return d;
	for (uint32_t i = 0; i < pairs; i++)
		d.expert[i] = (int32_t)(i % c->experts.n);
	for (uint32_t x = 0; x < c->experts.n; x++)
		for (uint32_t i = x, k = 0; i < pairs; i += c->experts.n, k++) {
			if (k % KERNEL_EXPERT_TILE == 0) {
				t += k || at ? 3 : 0;
				t[0] = (int32_t)x;
				t[1] = (int32_t)at;
			}
			t[2]++;
			d.order[at++] = (int32_t)i;
		}
	known[0] = (struct gpu_known){ s->expert->va, d.expert, pairs * 4 };
	if (!s->order)
		return d;
	known[1] = (struct gpu_known){ s->order->va, d.order, pairs * 4 };
	known[2] = (struct gpu_known){ s->tile->va, d.tile, tiles * 12 };
	return d;
}

/* Blocks of no order, as those of many texts are. */
static uint32_t *blocks_deal(struct gpu_run *run, const struct qwen_shape *s)
{
	const uint32_t each = s->blocks / s->sequences;
	uint32_t *block = xcalloc(s->blocks, sizeof(*block)), step = 7919;

	while (s->blocks && s->blocks % step == 0)
		step += 2;
	for (uint32_t i = 0; i < s->blocks; i++)
		block[i] = (uint32_t)((uint64_t)i * step % s->blocks);
	for (uint32_t i = 0; s->blocks && i < s->sequences; i++)
		gpu_map(run, i, block + i * each);
	return block;
}

static bool model_place(struct qwen_model *m, const struct qwen_config *c,
			const struct gpu_question *q, const char *chip,
			struct err *e)
{
	char device[32];
	const struct qwen_load how = { .device = device,
				       .devices = q->devices };

	snprintf(device, sizeof(device), "soft:%s", chip);
	qwen_model_outline(m, c, q->weights);
	m->backend = &qwen_gpu;
	return gpu_open(m, &how, 1, e);
}

bool gpu_forecast(const struct qwen_config *c, const struct gpu_question *q,
		  const struct cost_model *m, struct gpu_forecast *out,
		  struct err *e)
{
	const struct qwen_shape shape = {
		.sequences = q->sequences, .positions = q->positions,
		.max_tokens = q->sequences * q->tokens, .cache = q->cache,
		.blocks = q->paged ? q->sequences * ((q->positions - 1) /
						     QWEN_BLOCK + 1) : 0,
	};
	const uint32_t devices = q->devices ? q->devices : 1;
	struct gpu_record r = { 0 };
	struct qwen_model model;
	struct gpu_run run = { 0 };
	struct deal deal = { 0 };
	bool good;

	*out = (struct gpu_forecast){ 0 };
	good = model_place(&model, c, q, m->chip, e) &&
	       gpu_run_make(&run, &model, &shape, e);
	if (good) {
		run.rank[0]->record = &r;
		uint32_t *block = blocks_deal(&run, &shape);
		r.words = run.rank[0]->words;
		deal = deal_experts(run.rank[0], shape.max_tokens, r.known);
		r.table = run.rank[0]->table;
		r.footprint_bytes = model.token_bytes / devices +
				    gpu_cache_bytes(&run);
		good = pass_put(&run, q, e);
		free(block);
	}
	good = good && gpu_record_simulate(&r, m, out, e);
	out->weight_bytes = model.token_bytes / devices;
	out->meetings = run.meetings;
	out->links_s = (double)run.meetings * 1e-9 *
			       cost_value(m, COST_LINK_LAT) +
		       (double)run.linked_bytes / cost_value(m, COST_LINK_BW);
	gpu_record_fini(&r);
	gpu_run_fini(&run);
	deal_free(&deal);
	qwen_model_close(&model);
	return good;
}
