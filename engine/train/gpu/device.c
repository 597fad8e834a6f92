/*
 * engine/train/gpu/device.c - a run on a device: memory, and the chain of
 * packets.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/train/gpu/gpu_int.h"

/* ---- packets ---- */

#define WORK_ALIGN 256

void train_work_begin(struct train_gpu *s)
{
	s->work_used = 0;
}

uint64_t train_work_take(struct train_gpu *s, size_t bytes)
{
	size_t at = s->work_used;

	s->work_used += (bytes + WORK_ALIGN - 1) / WORK_ALIGN * WORK_ALIGN;
	if (s->work_used > s->work_most)
		s->work_most = s->work_used;
	return (s->work ? s->work->va : 0) + at;
}

bool train_put_packet(struct train_gpu *s, const struct gpu_code *c,
		      const struct kfd_launch *l, struct err *e)
{
	struct kfd_launch x = *l;

	s->packets++;
	if (s->record)
		gpu_record_launch(s->record, c, l);
	if (!s->queue)
		return true;
	x.quiet = true;
	x.deadline_ns = s->deadline_ns;
	return kfd_put(s->queue, &x, &s->ticket, e);
}

bool train_put_kernel(struct train_gpu *s, const struct train_launch *l,
		      const struct gpu_args *a, struct err *e)
{
	const struct gpu_kernel *k =
		gpu_kernel(&s->card, l->kernel, &l->shape, e);

	if (!k)
		return false;
	const struct kfd_launch x = kernel_launch(k, a, groups_of(k, l->n), 1);
	return train_put_packet(s, &k->code, &x, e);
}

/* ---- lists ---- */

/*
 * A card does a step of the largest model in a second or two; the gfx1100 in
 * software takes what the host takes.
 */
static uint64_t find_deadline(const struct train_gpu *s)
{
	bool emulated = strcmp(kfd_info(s->card.dev)->origin, "hardware") != 0;

	return time_mono_ns() + (emulated ? 360 : 6) * KFD_DEADLINE_NS;
}

static void begin_list(struct train_gpu *s)
{
	s->packets = 0;
	s->deadline_ns = find_deadline(s);
	kfd_mem_flush(s->card.dev);
}

/* The doorbell, and the wait; also where not all could be put. */
static bool end_list(struct train_gpu *s, bool good, struct err *e)
{
	if (!s->packets)
		return good;
	kfd_flush(s->queue);
	return kfd_wait(s->queue, s->ticket, s->deadline_ns, NULL,
			good ? e : NULL) &&
	       good;
}

bool train_put_list(struct train_gpu *s, uint32_t from, uint32_t to,
		    struct err *e)
{
	for (uint32_t i = from; i < to; i++) {
		const struct train_op *op = &s->g->op[i];

		train_work_begin(s);
		if (!train_put_operation(s, op, e))
			return err_wrap(e, "operation %u, %s", i,
					train_kind_name(op->kind));
	}
	return true;
}

static bool run_list(void *ctx, uint32_t from, uint32_t to, float scale,
		     struct err *e)
{
	struct train_gpu *s = ctx;

	s->scale = scale;
	begin_list(s);
	return end_list(s, train_put_list(s, from, to, e), e);
}

static bool run_update(void *ctx, const struct train_rule *r, uint64_t step,
		       double *norm, struct err *e)
{
	struct train_gpu *s = ctx;

	begin_list(s);
	if (!end_list(s, train_put_update(s, r, step, e), e))
		return false;
	*norm = *(const float *)s->norm->cpu;
	return true;
}

/* ---- a run ---- */

static bool has_bf16(const struct train_graph *g)
{
	for (uint32_t i = 0; i < g->n_params; i++)
		if (g->value[g->param[i].weight].width == 2)
			return true;
	return false;
}

static bool check_graph(const struct train_gpu *s, const struct train_graph *g,
			struct err *e)
{
	if (s->g)
		return err_set(e, ERR_BUSY, "the device has a run already");
	if (g->config.head_dim > KERNEL_MAX_HEAD)
		return err_set(e, ERR_UNSUPPORTED,
			       "heads of %u elements; the "
			       "gfx1100 backend has up to %d",
			       g->config.head_dim, KERNEL_MAX_HEAD);
	if (g->type == QWEN_W_F16)
		return err_set(e, ERR_UNSUPPORTED, "f16 on a gfx1100; wanted "
			       "f32 or bf16");
	if (g->n_params && g->muon[0] != TRAIN_NONE)
		return err_set(e, ERR_UNSUPPORTED,
			       "the optimizer muon on a "
			       "gfx1100; wanted adamw or sgd");
	return true;
}

/* What the packets of a step need: counted, and kernels made for them. */
static bool count_packets(struct train_gpu *s, uint32_t *most, struct err *e)
{
	struct train_rule r;

	train_rule_init(&r);
	s->packets = 0;
	if (!train_put_list(s, 0, s->g->n_ops, e))
		return false;
	*most = s->packets;
	s->packets = 0;
	if (!train_put_update(s, &r, 0, e))
		return false;
	*most = s->packets > *most ? s->packets : *most;
	return true;
}

static bool is_room(const struct train_gpu *s, struct err *e)
{
	uint64_t room, want = s->g->bytes + s->work_most;

	return !kfd_vram_available(s->card.dev, &room, NULL) || want <= room ||
	       err_set(e, ERR_NOMEM,
		       "a step needs %llu bytes of device "
		       "memory: %zu kept, %zu of activations, %zu of "
		       "workspace; %llu are free; wanted a smaller batch, more "
		       "that is made again (--recompute), or a smaller model",
		       (unsigned long long)want, s->g->kept, s->g->passing,
		       s->work_most, (unsigned long long)room);
}

#define MOST_PACKETS 131072

static bool memory_new(struct train_gpu *s, struct err *e)
{
	struct kfd_dev *dev = s->card.dev;

	return is_room(s, e) &&
	       kfd_mem_alloc(dev, KFD_VRAM, s->g->bytes + 1, "training step",
			     &s->arena, e) &&
	       kfd_mem_alloc(dev, KFD_VRAM_PRIVATE, s->work_most + 1,
			     "workspace", &s->work, e) &&
	       kfd_mem_alloc(dev, KFD_GTT, 2 * sizeof(float), "norm", &s->norm,
			     e);
}

static bool queue_new(struct train_gpu *s, uint32_t packets, struct err *e)
{
	struct kfd_queue_opts o = { .ring_packets = 64 };

	while (o.ring_packets < packets + 8 && o.ring_packets < MOST_PACKETS)
		o.ring_packets *= 2;
	if (o.ring_packets < packets + 8)
		return err_set(e, ERR_UNSUPPORTED,
			       "a step of %u packets; a "
			       "queue has %d",
			       packets, MOST_PACKETS);
	o.kernarg_bytes = o.ring_packets * 512;
	return kfd_queue_new(s->card.dev, &o, &s->queue, e);
}

bool train_run_begin(struct train_gpu *s, const struct train_graph *g,
		     uint32_t *packets, struct err *e)
{
	if (!check_graph(s, g, e))
		return false;
	s->g = g;
	s->bf16 = has_bf16(g);
	train_find_storage(s);
	s->work_most = 0;
	/* Before kernels are chosen for what has no room anyway. */
	return is_room(s, e) && count_packets(s, packets, e) &&
	       memory_new(s, e);
}

void train_run_end(struct train_gpu *s)
{
	kfd_queue_free(s->queue, NULL);
	kfd_mem_free(s->card.dev, s->arena);
	kfd_mem_free(s->card.dev, s->work);
	kfd_mem_free(s->card.dev, s->norm);
	s->queue = NULL;
	s->arena = s->work = s->norm = NULL;
	free(s->narrow);
	s->narrow = NULL;
	s->g = NULL;
}

static bool open_run(void *ctx, const struct train_graph *g, char **arena,
		     struct err *e)
{
	struct train_gpu *s = ctx;
	uint32_t packets;

	if (!train_run_begin(s, g, &packets, e) || !queue_new(s, packets, e))
		return false;
	memset(s->arena->cpu, 0, g->bytes);
	*arena = s->arena->cpu;
	return true;
}

static void close_run(void *ctx)
{
	train_run_end(ctx);
}

/* ---- the device ---- */

static const struct train_device train_gpu_device = {
	.open = open_run,
	.close = close_run,
	.run = run_list,
	.update = run_update,
};

void train_gpu_backend(struct train_gpu *s, struct train_backend *b)
{
	*b = (struct train_backend){ .name = "gpu",
				     .ctx = s,
				     .device = &train_gpu_device };
}

uint32_t train_gpu_packets(const struct train_gpu *s)
{
	return s->packets;
}

bool train_gpu_open(struct train_gpu **out, const struct train_gpu_how *how,
		    struct err *e)
{
	struct train_gpu *s = *out = xcalloc(1, sizeof(*s));

	if (gpu_card_open(&s->card,
			  &(struct gpu_card_how){ .device = how->device,
						  .driver = how->driver,
						  .warn = how->warn,
						  .ctx = how->ctx },
			  e))
		return true;
	train_gpu_close(s);
	*out = NULL;
	return false;
}

void train_gpu_close(struct train_gpu *s)
{
	if (!s)
		return;
	gpu_card_close(&s->card);
	free(s);
}
