/*
 * autotune/tuner/compile.c - configurations compiled once.
 */
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"

enum { BUILDING, READY, REFUSED };
enum { SPILLS_MOST = 32 };

struct code_entry {
	struct gemm_op op;
	struct gemm_config config;
	int state;
	struct gemm_code code;
	struct err why;
	struct code_entry *next;
};

struct code_cache {
	const struct tune_opts *o;
	pthread_mutex_t lock;
	pthread_cond_t built;
	struct code_entry *first;
};

struct code_cache *code_cache_new(const struct tune_opts *o)
{
	struct code_cache *c = xcalloc(1, sizeof(*c));

	c->o = o;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->built, NULL);
	return c;
}

void code_cache_free(struct code_cache *c)
{
	while (c && c->first) {
		struct code_entry *x = c->first;

		c->first = x->next;
		gemm_code_fini(&x->code);
		free(x);
	}
	if (c) {
		pthread_mutex_destroy(&c->lock);
		pthread_cond_destroy(&c->built);
	}
	free(c);
}

/* With the lock held; *is_new: the caller has to build it. */
static struct code_entry *find_entry(struct code_cache *c,
				     const struct gemm_op *op,
				     const struct gemm_config *config,
				     bool *is_new)
{
	struct code_entry *x = c->first;

	while (x && (memcmp(&x->op, op, sizeof(*op)) ||
		     memcmp(&x->config, config, sizeof(*config))))
		x = x->next;
	*is_new = !x;
	if (!x) {
		x = xcalloc(1, sizeof(*x));
		x->op = *op;
		x->config = *config;
		x->next = c->first;
		c->first = x;
	}
	return x;
}

static void build_entry(struct code_cache *c, struct code_entry *x)
{
	struct cc_options o;

	cc_options_init(&o);
	o.costs = c->o->costs;
	o.chip = c->o->costs->chip;
	bool good = (c->o->compile ? c->o->compile : gemm_compile)(
		&x->op, &x->config, &o, &x->code, &x->why);

	pthread_mutex_lock(&c->lock);
	x->state = good ? READY : REFUSED;
	pthread_cond_broadcast(&c->built);
	pthread_mutex_unlock(&c->lock);
}

const struct gemm_code *code_get(struct code_cache *c,
				 const struct gemm_op *op,
				 const struct gemm_config *config,
				 struct err *e)
{
	bool is_new;

	pthread_mutex_lock(&c->lock);
	struct code_entry *x = find_entry(c, op, config, &is_new);
	if (is_new) {
		pthread_mutex_unlock(&c->lock);
		build_entry(c, x);
		pthread_mutex_lock(&c->lock);
	}
	while (x->state == BUILDING)
		pthread_cond_wait(&c->built, &c->lock);
	pthread_mutex_unlock(&c->lock);
	if (x->state == REFUSED && e)
		*e = x->why;
	return x->state == READY ? &x->code : NULL;
}

bool code_is_usable(const char *chip, const struct gemm_config *c,
		    const struct gemm_code *code, struct err *e)
{
	const struct cc_stats *s = &code->object[0].stats;

	/* A few outside the loop cost little; the simulator sees which. */
	if (s->spills > SPILLS_MOST)
		return err_set(e, ERR_UNSUPPORTED, "spills: %u registers go to "
			       "memory (%u bytes a lane)", s->spills,
			       s->scratch_bytes);
	if (!tune_groups_at_once(chip, c, (int)s->vgprs, s->lds_bytes))
		return err_set(e, ERR_UNSUPPORTED, "no workgroup fits a WGP: "
			       "%u VGPRs, %u bytes of LDS", s->vgprs,
			       s->lds_bytes);
	return true;
}
