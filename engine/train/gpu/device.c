/*
 * engine/train/gpu/device.c - a run on a device: memory, and the chain of
 * packets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
	if (s->work && s->work_used > s->work_most)
		BUG("%zu bytes of a workspace of %zu", s->work_used,
		    s->work_most);
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
	x.quiet = !s->loud;
	s->loud = false;
	x.deadline_ns = s->deadline_ns;
	if (!kfd_put(s->queue, &x, &s->ticket, e))
		return false;
	s->marked |= !x.quiet;
	s->mark = x.quiet ? s->mark : s->ticket;
	return true;
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
	s->marked = false;
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

/* ---- a copy for the host, where it does not see the device's memory ---- */

static bool move_bytes(struct train_gpu *s, size_t at, size_t n, bool back,
		       struct err *e)
{
	if (!s->mirror)
		return true;
	return back ? kfd_read(s->card.dev, s->mirror + at, s->arena, at, n,
			       e) :
		      kfd_write(s->card.dev, s->arena, at, s->mirror + at, n,
				e);
}

static bool move_value(struct train_gpu *s, uint32_t value, bool back,
		       struct err *e)
{
	const struct train_value *v = &s->g->value[value];

	return move_bytes(s, v->offset, v->rows * v->cols * v->width, back, e);
}

static bool send_kept(void *ctx, struct err *e)
{
	struct train_gpu *s = ctx;
	bool ok = true;

	for (uint32_t i = 0; ok && i < s->devices; i++)
		ok = move_bytes(s->device[i], 0, s->g->kept, false, e);
	return ok;
}

static bool fetch_kept(void *ctx, struct err *e)
{
	struct train_gpu *s = ctx;

	return move_bytes(s, 0, s->g->kept, true, e);
}

/* The batch; graphs of tests may have none. */
static bool send_batch(struct train_gpu *s, struct err *e)
{
	const struct train_graph *g = s->g;

	return move_value(s, g->ids, false, e) &&
	       move_value(s, g->position, false, e) &&
	       move_value(s, g->target, false, e);
}

static uint32_t count_lanes(const void *ctx)
{
	return ((const struct train_gpu *)ctx)->devices;
}

/* A failure leaves nothing that runs. */
static bool begin_run(void *ctx, uint32_t lane, uint32_t from, uint32_t to,
		      float scale, struct err *e)
{
	struct train_gpu *s = ((struct train_gpu *)ctx)->device[lane];

	s->scale = scale;
	if (!send_batch(s, e))
		return false;
	begin_list(s);
	if (!train_put_list(s, from, to, e))
		return end_list(s, false, NULL);
	if (s->packets)
		kfd_flush(s->queue);
	return true;
}

static bool end_run(void *ctx, uint32_t lane, struct err *e)
{
	struct train_gpu *s = ((struct train_gpu *)ctx)->device[lane];

	return end_list(s, true, e) && move_value(s, s->g->loss, true, e);
}

static bool run_list(void *ctx, uint32_t from, uint32_t to, float scale,
		     struct err *e)
{
	return begin_run(ctx, 0, from, to, scale, e) && end_run(ctx, 0, e);
}

/* As end_list(), of devices that wait for each other. */
static bool end_all(struct train_gpu *s, bool good, struct err *e)
{
	struct kfd_after all[GPU_CARDS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->devices; i++)
		if (s->device[i]->packets)
			all[n++] = (struct kfd_after){ s->device[i]->queue,
						       s->device[i]->ticket };
	return (!n || gpu_wait_all(all, n, s->deadline_ns, good ? e : NULL)) &&
	       good;
}

/* All have the same sums, and make the same step of them. */
static bool run_update(void *ctx, const struct train_rule *r, uint64_t step,
		       float loss_scale, double *norm, struct err *e)
{
	struct train_gpu *s = ctx;
	bool ok = true;

	for (uint32_t i = 0; i < s->devices; i++)
		begin_list(s->device[i]);
	ok = train_put_sums(s, e);
	for (uint32_t i = 0; i < s->devices; i++) {
		struct train_gpu *one = s->device[i];
		one->loss_scale = loss_scale;
		ok = ok && train_put_update(one, r, step, e);
		if (one->packets)
			kfd_flush(one->queue);
	}
	ok = end_all(s, ok, e);
	for (uint32_t i = 0; i < s->devices; i++)
		train_step_begin(s->device[i]);
	*norm = ok ? *(const float *)s->norm->cpu : 0;
	return ok;
}

/* ---- a run ---- */

static enum dsl_type half_of(const struct train_graph *g)
{
	for (uint32_t i = 0; i < g->n_params; i++)
		if (g->value[g->param[i].weight].width == 2)
			return g->type == QWEN_W_F16 ? DSL_F16 : DSL_BF16;
	return DSL_F32;
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
	return true;
}

/* What the packets of a step need: counted, and kernels made for them. */
static bool count_packets(struct train_gpu *s, uint32_t *most, struct err *e)
{
	struct train_rule r;

	train_rule_init(&r);
	if (s->g->n_params && s->g->muon[0] != TRAIN_NONE)
		r.method = TRAIN_MUON;
	*most = 0;
	for (int batch = 0; batch < 2; batch++) { /* the first, and later */
		s->packets = 0;
		if (!train_put_list(s, 0, s->g->n_ops, e))
			return false;
		*most = s->packets > *most ? s->packets : *most;
	}
	train_step_begin(s);
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

	enum kfd_domain domain = kfd_info(dev)->node.large_bar &&
						 s->devices == 1 ?
					 KFD_VRAM :
					 KFD_VRAM_PRIVATE;

	return is_room(s, e) &&
	       kfd_mem_alloc(dev, domain, s->g->bytes + 1, "training step",
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
	s->half = half_of(g);
	train_find_storage(s);
	train_find_whole(s);
	s->work_most = 0;
	s->loss_scale = 1;
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
	kfd_mem_free(s->card.dev, s->exchange);
	if (s->mirror && !s->number)
		munmap(s->mirror, s->g->bytes + 1);
	s->mirror = NULL;
	s->queue = NULL;
	s->arena = s->work = s->norm = s->exchange = NULL;
	free(s->narrow);
	free(s->whole);
	free(s->fresh);
	s->narrow = s->whole = s->fresh = NULL;
	s->g = NULL;
}

static bool open_run(void *ctx, const struct train_graph *g, char **arena,
		     struct err *e)
{
	struct train_gpu *s = ctx;
	uint32_t packets;

	for (uint32_t i = 0; i < s->devices; i++)
		if (!train_run_begin(s->device[i], g, &packets, e) ||
		    !queue_new(s->device[i],
			       packets + train_team_packets(s->device[i]), e))
			return false;
	if (!train_team_join(s, e))
		return false;
	if (s->arena->cpu) {
		memset(s->arena->cpu, 0, g->bytes);
		*arena = s->arena->cpu;
		return true;
	}
	*arena = mmap(NULL, g->bytes + 1, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (*arena == MAP_FAILED)
		return err_sys(e, ERR_NOMEM, errno, "%zu bytes of memory for "
			       "what the device has", g->bytes);
	for (uint32_t i = 0; i < s->devices; i++)
		s->device[i]->mirror = *arena;
	return true;
}

static void close_run(void *ctx)
{
	struct train_gpu *s = ctx;

	for (uint32_t i = s->devices; i--;)
		train_run_end(s->device[i]);
}

/* ---- the device ---- */

static const struct train_device train_gpu_device = {
	.open = open_run,
	.close = close_run,
	.send = send_kept,
	.fetch = fetch_kept,
	.run = run_list,
	.lanes = count_lanes,
	.begin = begin_run,
	.end = end_run,
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

static bool device_open(struct train_gpu *first,
			const struct train_gpu_how *how, struct err *e)
{
	struct train_gpu *s = first->devices ? xcalloc(1, sizeof(*s)) : first;
	const struct gpu_card_how card = {
		.device = how->device, .driver = how->driver,
		.cards = how->devices, .first = s == first ? NULL : &first->card,
		.warn = how->warn, .ctx = how->ctx,
	};

	s->number = first->devices;
	first->device[first->devices++] = s;
	return gpu_card_open(&s->card, &card, e);
}

bool train_gpu_open(struct train_gpu **out, const struct train_gpu_how *how,
		    struct err *e)
{
	const uint32_t n = how->devices ? how->devices : 1;
	struct train_gpu *s = *out = NULL;
	bool ok = true;

	if (n > GPU_CARDS_MAX)
		return err_set(e, ERR_USAGE, "%u devices; wanted 1 to %d", n,
			       GPU_CARDS_MAX);
	s = xcalloc(1, sizeof(*s));
	while (ok && s->devices < n)
		ok = device_open(s, how, e);
	for (uint32_t i = 1; i < s->devices; i++) {
		memcpy(s->device[i]->device, s->device, sizeof(s->device));
		s->device[i]->devices = s->devices;
	}
	if (ok) {
		*out = s;
		return true;
	}
	train_gpu_close(s);
	return false;
}

/* The others were opened through the first. */
void train_gpu_close(struct train_gpu *s)
{
	if (!s)
		return;
	while (s->devices > 1) {
		struct train_gpu *one = s->device[--s->devices];
		gpu_card_close(&one->card);
		free(one);
	}
	gpu_card_close(&s->card);
	free(s);
}
