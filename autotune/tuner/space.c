/*
 * autotune/tuner/space.c - the space of configurations, ranked.
 */
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune.h"
#include "base/vec.h"
#include "isa/code/code.h"

/* Workgroups of stream-K: two of each WGP. */
#define STREAM_GROUPS 96

/* How many of the base get variants, and how many VGPRs may accumulate. */
enum { VARIED = 128, ACC_VGPRS = 160, WAVE_TILE = 128 };

static const uint16_t tiles[] = {
#define TILE(size) size,
#include "autotune/tuner/space.def"
};
static const uint16_t depths[] = {
#define DEPTH(k) k,
#include "autotune/tuner/space.def"
};
static const struct {
	uint8_t m, n;
} waves[] = {
#define WAVES(m, n) { m, n },
#include "autotune/tuner/space.def"
};
static const struct {
	uint8_t buffers, prefetch;
} flows[] = {
#define FLOW(buffers, prefetch) { buffers, prefetch },
#include "autotune/tuner/space.def"
};
static const uint16_t splits[] = {
	1,
#define SPLIT(parts) parts,
#include "autotune/tuner/space.def"
};

static void apply_variant(size_t which, struct gemm_config *c)
{
	size_t i = 0;

#define VARIANT(what, ...) \
	if (i++ == which) { __VA_ARGS__; }
#include "autotune/tuner/space.def"
}
static const size_t n_variants = 0
#define VARIANT(what, ...) + 1
#include "autotune/tuner/space.def"
	;

/* ---- what a workgroup takes ---- */

int tune_groups_at_once(const char *chip, const struct gemm_config *c,
			int vgprs, uint32_t lds_bytes)
{
	int waves_n = c->waves_m * c->waves_n;
	struct isa_resources need = {
		.wave = 32, .vgprs = vgprs, .lds_bytes = lds_bytes,
		.workgroup_size = waves_n * 32, .wgp_mode = !c->cu_mode,
	};
	struct isa_occupancy o;

	if (!waves_n || !isa_occupancy(chip, &need, &o))
		return 0;
	return o.workgroups * (c->cu_mode ? 2 : 1);
}

/*
 * What the code holds at once: accumulators, a column of fragments of A and
 * two of B, the tiles that wait in registers, and addresses.
 */
void tune_needs_guess(const char *chip, const struct tune_problem *p,
		      const struct gemm_config *c, struct tune_needs *out)
{
	int in = (int)tune_type_bytes(p->op.in);
	int wm = c->m / c->waves_m, wn = c->n / c->waves_n;
	int threads = c->waves_m * c->waves_n * 32;
	int b = c->b_direct ? 0 : (int)(c->n * tune_b_bytes(&p->op));
	int staged = (c->m * in + b) * c->k / (threads * 4);
	int row = c->k * in + 16; /* padded; swizzling saves that */

	out->vgprs = wm * wn / 32 + wm / 16 * 8 + 16 +
		     (c->prefetch ? c->prefetch : 1) * staged + 20;
	out->vgprs = out->vgprs < 256 ? out->vgprs : 256;
	if (c->lds == GEMM_LDS_SWIZZLE)
		row -= 16;
	out->lds_bytes = (uint32_t)((c->m + (c->b_direct ? 0 : c->n)) * row *
				    (c->buffers ? c->buffers : 1));
	out->groups = tune_groups_at_once(chip, c, out->vgprs,
					 out->lds_bytes);
}

/* ---- the list ---- */

struct listing {
	struct tune_space *s;
	const struct tune_problem *p;
	const struct cost_model *m;
	struct gemm_checker *checker;
};

static void reject_candidate(struct tune_candidate *c, const char *why)
{
	c->state = RES_TUNE_REJECTED;
	snprintf(c->reason, sizeof(c->reason), "%.110s", why);
}

/* What a band has more than there are rows of tiles begins for nothing. */
static bool band_is_full(const struct tune_problem *p,
			 const struct gemm_config *c, struct err *e)
{
	uint32_t rows = (p->m + c->m - 1) / c->m;

	return c->order <= rows || c->order < 2 ||
	       err_set(e, ERR_UNSUPPORTED, "bands of %u rows of tiles; there "
		       "are %u", c->order, rows);
}

/* Is it legal, as far as can be known before there is code?  And how good? */
static void add_candidate(struct listing *l, const struct gemm_config *config)
{
	const struct tune_problem *p = l->p;
	struct gemm_shape shape = tune_shape(p);
	struct tune_candidate *c;
	struct tune_needs needs;
	struct err e = { 0 };

	vec_push(l->s, (struct tune_candidate){ .config = *config,
						.limit = "" });
	c = &l->s->v[l->s->n - 1];
	if (!gemm_checker_check(l->checker, config, &e) ||
	    !gemm_fits(&p->op, config, &shape, &e) ||
	    !band_is_full(p, config, &e)) {
		reject_candidate(c, e.msg);
		return;
	}
	tune_needs_guess(l->m->chip, p, config, &needs);
	if (!needs.groups) {
		snprintf(c->reason, sizeof(c->reason), "no workgroup fits a "
			 "WGP: about %d VGPRs and %u bytes of LDS",
			 needs.vgprs, needs.lds_bytes);
		c->state = RES_TUNE_REJECTED;
		return;
	}
	tune_roofline(p, l->m, &needs, c);
	l->s->legal++;
}

static bool wave_is_possible(const struct gemm_config *c)
{
	int wm = c->m / c->waves_m, wn = c->n / c->waves_n;

	return c->m % (16 * c->waves_m) == 0 && c->n % (16 * c->waves_n) == 0 &&
	       wm <= WAVE_TILE && wn <= WAVE_TILE && wm * wn / 32 <= ACC_VGPRS;
}

/* A tile twice as large as the problem only computes zeros. */
static bool is_oversized(const struct tune_problem *p,
			 const struct gemm_config *c)
{
	return (c->m > 16 && c->m >= 2 * p->m) ||
	       (c->n > 16 && c->n >= 2 * tune_columns(p));
}

/* Do tiles divide the problem?  Then gemm_fits() has the last word. */
static bool is_even(const struct tune_problem *p, const struct gemm_config *c)
{
	struct gemm_shape s = tune_shape(p);
	struct gemm_config even = *c;

	even.even = true;
	return gemm_fits(&p->op, &even, &s, NULL);
}

static uint64_t tiles_of(const struct tune_problem *p,
			 const struct gemm_config *c)
{
	return (uint64_t)((p->m + c->m - 1) / c->m) *
	       ((tune_columns(p) + c->n - 1) / c->n) * p->batch;
}

static void add_splits(struct listing *l, struct gemm_config c)
{
	const struct tune_problem *p = l->p;
	double busy = 4 * cost_value(l->m, COST_N_WGP);

	for (size_t i = 0; i < ARRAY_SIZE(splits); i++) {
		c.split = splits[i];
		if (i && ((double)tiles_of(p, &c) * splits[i - 1] >= busy ||
			  p->k < 2u * c.k * splits[i]))
			break;
		c.even = is_even(p, &c);
		add_candidate(l, &c);
	}
}

static void add_flows(struct listing *l, struct gemm_config c)
{
	for (size_t f = 0; f < ARRAY_SIZE(flows); f++) {
		c.buffers = flows[f].buffers;
		c.prefetch = flows[f].prefetch;
		add_splits(l, c);
	}
}

static void add_tile(struct listing *l, uint16_t tm, uint16_t tn)
{
	for (size_t k = 0; k < ARRAY_SIZE(depths); k++)
		for (size_t w = 0; w < ARRAY_SIZE(waves); w++) {
			struct gemm_config c = {
				.m = tm, .n = tn, .k = depths[k],
				.waves_m = waves[w].m, .waves_n = waves[w].n,
				.unroll = 1, .split = 1,
			};
			if (wave_is_possible(&c) && !is_oversized(l->p, &c))
				add_flows(l, c);
		}
}

static int by_estimate(const void *a, const void *b)
{
	const struct tune_candidate *x = a, *y = b;

	if (x->state != y->state)
		return x->state == RES_TUNE_RANKED ? -1 : 1;
	if (x->estimate_s != y->estimate_s)
		return x->estimate_s < y->estimate_s ? -1 : 1;
	return memcmp(&x->config, &y->config, sizeof(x->config));
}

static int by_config(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct gemm_config));
}

/* Of the best ones, which the list begins with; each new one once. */
static void add_variants(struct listing *l)
{
	const struct tune_space *s = l->s;
	const size_t base = s->n, n = s->legal < VARIED ? s->legal : VARIED;
	VEC(struct gemm_config) old = { 0 }, new = { 0 };

	for (size_t i = 0; i < base; i++)
		vec_push(&old, s->v[i].config);
	qsort(old.v, old.n, sizeof(*old.v), by_config);
	for (size_t i = 0; i < n; i++)
		for (size_t v = 0; v < n_variants; v++) {
			struct gemm_config c = s->v[i].config;

			apply_variant(v, &c);
			if (c.even && !is_even(l->p, &c))
				c.even = false;
			if (!bsearch(&c, old.v, old.n, sizeof(c), by_config))
				vec_push(&new, c);
		}
	if (new.n)
		qsort(new.v, new.n, sizeof(*new.v), by_config);
	for (size_t i = 0; i < new.n; i++)
		if (!i || by_config(&new.v[i - 1], &new.v[i]))
			add_candidate(l, &new.v[i]);
	vec_fini(&old);
	vec_fini(&new);
}

void tune_space_init(struct tune_space *s, const struct tune_problem *p,
		     const struct cost_model *m)
{
	struct listing l = { s, p, m, gemm_checker_new(&p->op) };

	*s = (struct tune_space){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(tiles); i++)
		for (size_t j = 0; j < ARRAY_SIZE(tiles); j++)
			add_tile(&l, tiles[i], tiles[j]);
	if (s->n) {
		qsort(s->v, s->n, sizeof(*s->v), by_estimate);
		add_variants(&l);
		qsort(s->v, s->n, sizeof(*s->v), by_estimate);
	}
	gemm_checker_free(l.checker);
}

void tune_space_fini(struct tune_space *s)
{
	free(s->v);
	*s = (struct tune_space){ 0 };
}
