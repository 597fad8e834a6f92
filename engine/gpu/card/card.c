/*
 * engine/gpu/card/card.c - a device, its kernels, and the choice of tiles.
 */
#include "engine/gpu/card/card.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/vec.h"
#include "results/db/results.h"

/* ---- kernels ---- */

static bool same_shape(const struct kernel_shape *a,
		       const struct kernel_shape *b)
{
	return a->type == b->type && a->to == b->to &&
	       a->weights == b->weights && a->group == b->group &&
	       a->cache == b->cache && a->head == b->head &&
	       a->wide == b->wide && a->ratio == b->ratio &&
	       a->tokens == b->tokens && a->paged == b->paged &&
	       a->turned == b->turned;
}

static bool code_load(struct gpu_card *g, const void *object, size_t bytes,
		      struct gpu_code *out, struct err *e)
{
	struct kfd_code *code;

	if (!kfd_code_load(g->dev, object, bytes, &code, e))
		return false;
	*out = (struct gpu_code){ .kernel = kfd_code_at(code, 0),
				  .object = object,
				  .object_bytes = bytes };
	snprintf(out->label, sizeof(out->label), "%s", out->kernel->name);
	return true;
}

/* Do its later groups see more keys? */
static bool is_causal(const struct kernel_entry *k)
{
	static const char *const name[] = {
		"attention",	   "attn_packed",  "attn_packed_dq",
		"attn_packed_dkv", "flash_packed", "flash_packed_dq",
		"flash_packed_dkv"
	};

	for (size_t i = 0; i < ARRAY_SIZE(name); i++)
		if (strcmp(k->name, name[i]) == 0)
			return true;
	return false;
}

static bool kernel_make(struct gpu_card *g, struct gpu_kernel *k, struct err *e)
{
	struct cc_options o;

	kernel_options(&k->shape, &o);
	o.chip = g->costs.chip;
	o.costs = &g->costs;
	if (!kernel_object(&g->objects, k->entry, &k->shape, &o, &k->object, e))
		return err_wrap(e, "kernel %s", k->entry->name);
	if (code_load(g, k->object.bytes, k->object.len, &k->code, e)) {
		k->code.uneven = is_causal(k->entry);
		return true;
	}
	cache_object_fini(&k->object);
	return err_wrap(e, "kernel %s", k->entry->name);
}

const struct gpu_kernel *gpu_kernel(struct gpu_card *g, const char *name,
				    const struct kernel_shape *shape,
				    struct err *e)
{
	struct gpu_kernel want = { .entry = kernel_find(name),
				   .shape = *shape };

	if (!want.entry)
		BUG("no kernel is called %s", name);
	if (!kernel_shape_check(want.entry, &want.shape, e))
		return NULL;
	for (size_t i = 0; i < g->n_kernels; i++)
		if (g->kernel[i]->entry == want.entry &&
		    same_shape(&g->kernel[i]->shape, &want.shape))
			return g->kernel[i];
	if (!kernel_make(g, &want, e))
		return NULL;
	VEC_GROW(g->kernel, g->n_kernels, 1, g->cap_kernels);
	g->kernel[g->n_kernels] = xmalloc(sizeof(want));
	*g->kernel[g->n_kernels] = want;
	return g->kernel[g->n_kernels++];
}

/* Without a database, or with one that knows nothing: false, and no error. */
static bool tiles_select(struct gpu_card *g, struct gpu_tiles *t, char *why,
			 size_t size)
{
	/* B is the weights, of which other layers' came before. */
	const struct tune_problem p = {
		t->op, t->m, t->n, t->k, 1, TUNE_COLD_B
	};
	struct tune_choice c;

	if (!g->selector || !tune_select(g->selector, &p, &c, NULL))
		return false;
	t->config = c.config;
	t->objects = c.code;
	snprintf(why, size, "%s", c.why);
	return true;
}

static bool tiles_load(struct gpu_card *g, struct gpu_tiles *t, const char *why,
		       struct err *e)
{
	bool good = true;

	for (int i = 0; good && i < t->objects.n; i++) {
		const struct buf *b = &t->objects.object[i].bytes;
		good = code_load(g, b->data, b->len, &t->code[i], e);
		if (!good)
			break;
		gemm_config_name(&t->config, t->code[i].label,
				 sizeof(t->code[i].label));
		snprintf(t->code[i].chosen, sizeof(t->code[i].chosen), "%s",
			 why);
	}
	if (!good)
		gemm_code_fini(&t->objects);
	return good;
}

/* One that there is, for any size. */
static struct gpu_tiles *tiles_of_any(struct gpu_card *g,
				      const struct gpu_tiles *want)
{
	for (size_t i = 0; i < g->n_tiles; i++) {
		struct gpu_tiles *t = g->tiles[i];

		if (t->any && !memcmp(&t->op, &want->op, sizeof(t->op)) &&
		    !memcmp(&t->config, &want->config, sizeof(t->config)))
			return t;
	}
	return NULL;
}

static const struct gpu_tiles *tiles_make(struct gpu_card *g,
					  struct gpu_tiles *want, bool any,
					  struct err *e)
{
	char why[240] = "default: suits every shape";
	struct cc_options o;
	struct gpu_tiles *t;

	want->any = any || !tiles_select(g, want, why, sizeof(why));
	if (want->any) {
		want->config = gemm_default_for(&want->op, want->m, want->n,
						want->k);
		want->config.even &= !any;
		t = tiles_of_any(g, want);
		if (t)
			return t;
		cc_options_init(&o);
		o.chip = g->costs.chip;
		o.costs = &g->costs;
		if (!gemm_object(&g->objects, &want->op, &want->config, &o,
				 &want->objects, e))
			return NULL;
	}
	if (!tiles_load(g, want, why, e))
		return NULL;
	t = xmalloc(sizeof(*t));
	*t = *want;
	VEC_GROW(g->tiles, g->n_tiles, 1, g->cap_tiles);
	return g->tiles[g->n_tiles++] = t;
}

const struct gpu_tiles *gpu_tiles(struct gpu_card *g, const struct gemm_op *op,
				  uint32_t m, uint32_t n, uint32_t k, bool any,
				  struct err *e)
{
	struct gpu_tiles want = { .op = *op, .m = m, .n = n, .k = k };
	const struct gpu_tiles *t;

	for (size_t i = 0; i < g->n_choices && !any; i++) {
		const struct gpu_choice *c = &g->choice[i];

		if (c->m == m && c->n == n && c->k == k &&
		    !memcmp(&c->op, op, sizeof(*op)))
			return c->tiles;
	}
	t = tiles_make(g, &want, any, e);
	if (!t || any)
		return t;
	VEC_GROW(g->choice, g->n_choices, 1, g->cap_choices);
	g->choice[g->n_choices++] = (struct gpu_choice){ *op, m, n, k, t };
	return t;
}

/*
 * What was measured and tuned, where there is a database: the one that is
 * named may be what this run is going to write.
 */
static bool selector_open(struct gpu_card *g, struct err *e)
{
	const char *chip = kfd_info(g->dev)->gfx;

	g->tune = (struct tune_opts){ .costs = &g->costs,
				      .objects = &g->objects };
	if (!cost_open(&g->costs, chip, NULL, true, COST_HARDWARE, NULL, e))
		return false;
	/* What was tuned is code of one chip. */
	if (access(res_path(NULL), F_OK) != 0 || strcmp(chip, TUNE_CHIP))
		return true;
	g->selector = tune_selector_open(&g->tune, e);
	return g->selector != NULL;
}

/* ---- the device ---- */

/* Where several are wanted, in software they are those of one machine. */
static const char *spec_for(const struct gpu_card_how *how, char *out,
			    size_t size)
{
	const char *spec = how->device ? how->device : "";
	const size_t kind = strcspn(spec, "@");
	/* Without a number of its own. */
	const bool soft = !strncmp(spec, "soft", 4) &&
			  (kind == 4 || !strncmp(spec + 4, ":gfx", 4)) &&
			  strcspn(spec, "*,@") == kind;

	if (how->cards < 2 || (kind && !soft) || (!kind && kfd_is_here(NULL)))
		return how->device;
	snprintf(out, size, "%.*s*%u%s", kind ? (int)kind : 4,
		 kind ? spec : "soft", how->cards, spec + kind);
	return out;
}

/* More than a machine has of them. */
#define MOST_NUMBERS 64

/* Those that cannot be opened are passed over: they are open, or no gfx11. */
static bool open_next(struct gpu_card *g, const struct gpu_card_how *how,
		      struct err *e)
{
	const struct kfd_info *first = kfd_info(how->first->dev);
	const char *visible = how->device ? strchr(how->device, '@') : NULL;
	struct err why = { 0 };
	char spec[300];

	for (int i = 0; i < MOST_NUMBERS; i++) {
		why = (struct err){ 0 };
		snprintf(spec, sizeof(spec), "%s:%d%s", first->driver, i,
			 visible ? visible : "");
		if (kfd_open_peer(&g->dev, how->first->dev, spec, &why))
			return true;
	}
	return err_set(e, ERR_NODEV, "%u devices are wanted of %s, which has "
		       "fewer that can be used (see t0-device list; in "
		       "software, soft*%u has them)", how->cards, first->spec,
		       how->cards);
}

static bool device_open(struct gpu_card *g, const struct gpu_card_how *how,
			struct err *e)
{
	char spec[300];

	if (how->first)
		return open_next(g, how, e);
	return how->driver ? kfd_open_driver(&g->dev, how->driver, -1,
					     "chosen by its caller", e) :
			     kfd_open(&g->dev, spec_for(how, spec,
							sizeof(spec)), e);
}

bool gpu_card_open(struct gpu_card *g, const struct gpu_card_how *how,
		   struct err *e)
{
	*g = (struct gpu_card){ 0 };
	object_cache_init(&g->objects, how->warn, how->ctx);
	return device_open(g, how, e) && selector_open(g, e);
}

/* The driver knows: it maps the memory, or says that there is no link. */
static bool is_linked(struct gpu_card *from, struct gpu_card *to)
{
	struct kfd_mem *m;
	bool ok = kfd_mem_alloc(from->dev, KFD_VRAM_PRIVATE, 4096, "link", &m,
				NULL);

	if (ok) {
		ok = kfd_mem_share(m, from->dev, to->dev, NULL);
		kfd_mem_free(from->dev, m);
	}
	return ok;
}

enum kfd_domain gpu_shared_domain(struct gpu_card *const *card, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n; k++)
			if (k != i && !is_linked(card[i], card[k]))
				return KFD_GTT;
	return KFD_VRAM_PRIVATE;
}

/* How long one is waited for before the others are looked at. */
#define TURN_NS 20000000ull

/* Did the queue's wait end at a packet that waits for other queues? */
static bool only_waits(struct kfd_queue *q)
{
	struct kfd_fault f;

	return kfd_queue_fault(q, &f) && !strcmp(f.kernel, KFD_BARRIER);
}

/* Whose error says most: one that waits for another says nothing. */
struct verdict {
	struct err e;
	bool waits;
};

static void keep_error(struct verdict *kept, const struct verdict *one,
		       uint32_t i, uint32_t n)
{
	if (kept->e.code && (one->waits || !kept->waits))
		return;
	*kept = *one;
	err_wrap(&kept->e, "device %u of %u", i, n);
}

bool gpu_wait_all(const struct kfd_after *on, uint32_t n, uint64_t deadline_ns,
		  struct err *e)
{
	bool done[GPU_CARDS_MAX] = { false }, last = false;
	struct verdict why = { 0 };
	uint32_t left = n;

	if (n == 1)
		return kfd_wait(on->queue, on->ticket, deadline_ns, NULL, e);
	while (left && !last && (!why.e.code || why.e.code == ERR_TIMEOUT)) {
		last = time_mono_ns() >= deadline_ns;
		for (uint32_t i = 0; i < n; i++) {
			struct verdict one = { 0 };
			if (done[i])
				continue;
			done[i] = kfd_wait(on[i].queue, on[i].ticket,
					   time_mono_ns() + TURN_NS, NULL,
					   &one.e);
			left -= done[i];
			if (done[i] || (!last && one.e.code == ERR_TIMEOUT))
				continue;
			one.waits = only_waits(on[i].queue);
			keep_error(&why, &one, i, n);
		}
	}
	if (left && e)
		*e = why.e;
	return !left;
}

void gpu_card_close(struct gpu_card *g)
{
	kfd_close(g->dev);
	for (size_t i = 0; i < g->n_kernels; i++) {
		cache_object_fini(&g->kernel[i]->object);
		free(g->kernel[i]);
	}
	for (size_t i = 0; i < g->n_tiles; i++) {
		gemm_code_fini(&g->tiles[i]->objects);
		free(g->tiles[i]);
	}
	object_cache_fini(&g->objects);
	tune_selector_close(g->selector);
	cost_fini(&g->costs);
	free(g->kernel);
	free(g->tiles);
	free(g->choice);
	*g = (struct gpu_card){ 0 };
}
