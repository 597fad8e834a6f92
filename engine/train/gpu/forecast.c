/*
 * engine/train/gpu/forecast.c - a step simulated, without a card and without
 * weights.
 *
 * The packets of a step, from the same code that puts them on a queue, go
 * through the pipeline simulator.  Its memory is laid out in the gfx1100 in
 * software, and nothing but positions is written there.
 */
#include <stdlib.h>

#include "engine/train/gpu/gpu_int.h"

static void fill_positions(const struct train_gpu *s)
{
	const struct train_graph *g = s->g;
	uint32_t *position = (uint32_t *)((char *)s->arena->cpu +
					  g->value[g->position].offset);

	for (uint32_t t = 0; t < g->rows * g->length; t++)
		position[t] = t % g->length;
}

/* Packets that were put are simulated, and forgotten. */
static bool simulate_list(struct train_gpu *s, const struct cost_model *m,
			  bool good, struct gpu_forecast *out, struct err *e)
{
	s->record->words = s->arena;
	s->record->footprint_bytes = s->g->bytes;
	good = good && gpu_record_simulate(s->record, m, out, e);
	gpu_record_fini(s->record);
	return good;
}

/* The first of a step writes gradients, others add to them. */
static bool put_batches(struct train_gpu *s, uint32_t batches, struct err *e)
{
	bool good = train_put_list(s, 0, s->g->n_ops, e);

	s->record->more = batches - 1;
	good = good &&
	       (batches == 1 || train_put_list(s, 0, s->g->n_ops, e));
	s->record->more = 0;
	return good;
}

static bool simulate_step(struct train_gpu *s, const struct train_rule *r,
			  uint32_t batches, const struct cost_model *m,
			  struct train_forecast *out, struct err *e)
{
	struct gpu_record record = { 0 };

	fill_positions(s);
	s->record = &record;
	s->scale = 1;
	bool good = simulate_list(s, m, put_batches(s, batches, e),
				  &out->batches, e) &&
		    simulate_list(s, m, train_put_update(s, r, 0, e),
				  &out->update, e);
	s->record = NULL;
	return good;
}

bool train_gpu_forecast(const struct train_graph *g, const struct train_rule *r,
			uint32_t batches, const struct cost_model *m,
			struct train_forecast *out, struct err *e)
{
	const struct train_gpu_how how = { .device = "soft" };
	struct train_gpu *s;
	uint32_t packets;

	*out = (struct train_forecast){ 0 };
	if (!train_gpu_open(&s, &how, e))
		return false;
	kfd_vram_available(s->card.dev, &out->room_bytes, NULL);
	bool good = train_run_begin(s, g, &packets, e);
	out->bytes = g->bytes + s->work_most;
	good = good && simulate_step(s, r, batches, m, out, e);
	train_run_end(s);
	train_gpu_close(s);
	if (!good)
		train_forecast_fini(out);
	return good;
}

void train_forecast_fini(struct train_forecast *f)
{
	free(f->batches.share);
	free(f->update.share);
	f->batches.share = f->update.share = NULL;
}
