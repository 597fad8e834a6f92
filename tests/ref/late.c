/*
 * tests/ref/late.c - the grid: workgroups one after the other, their waves in
 * the order of the run, each as far as barriers let it.
 */
#include "tests/ref/late_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Instructions after which a wave that spins lets others go on. */
#define PATIENCE 40000

bool late_fail(const struct late_wave *w, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(w->group->grid->e, ERR_DEVICE,
		       "%s+0x%llx, workgroup %u,%u,%u: %s",
		       w->group->grid->run->kernel->name,
		       (unsigned long long)(w->pc -
					    w->group->grid->run->code_va -
					    w->group->grid->run->kernel
						    ->entry_off),
		       w->group->id[0], w->group->id[1], w->group->id[2],
		       text);
}

uint8_t *late_bytes(const struct late_run *r, uint64_t va, size_t n)
{
	for (int i = 0; i < r->n_memory; i++) {
		const struct late_memory *m = &r->memory[i];

		if (va >= m->va && va - m->va <= m->size_bytes &&
		    n <= m->size_bytes - (va - m->va))
			return m->host + (va - m->va);
	}
	return NULL;
}

/* ------------------------------------------------------ initial state ---- */

static uint32_t *put_address(uint32_t *s, uint64_t va)
{
	s[0] = (uint32_t)va;
	s[1] = (uint32_t)(va >> 32);
	return s + 2;
}

/* RDNA3 ISA 3.10 and LLVM's AMDGPUUsage, "initial kernel execution state". */
static void set_scalars(struct late_wave *w, const struct late_run *r)
{
	const struct co_descriptor *d = &r->kernel->desc;
	uint32_t *s = w->s.s;

	if (d->properties & CO_PROP_DISPATCH_PTR)
		s = put_address(s, r->packet_va);
	if (d->properties & CO_PROP_QUEUE_PTR)
		s = put_address(s, 0);
	if (d->properties & CO_PROP_KERNARG_SEGMENT_PTR)
		s = put_address(s, r->kernarg_va);
	if (d->properties & CO_PROP_DISPATCH_ID)
		s = put_address(s, 0);
	if (d->properties & CO_PROP_PRIVATE_SEGMENT_SIZE)
		*s = r->scratch_bytes;
	s = w->s.s + co_descriptor_user_sgprs(d);
	for (int i = 0; i < 3; i++)
		if (d->rsrc2 >> (7 + i) & 1)
			*s++ = w->group->id[i];
	w->mode = d->rsrc1 >> 12 & 0xff;
	w->mode |= (d->rsrc1 >> 21 & 1) << 8 | (d->rsrc1 >> 23 & 1) << 9;
}

static void start_wave(struct late_wave *w, struct late_group *g, int index,
		       const uint32_t size[3])
{
	const struct late_run *r = g->grid->run;
	const int total = (int)(size[0] * size[1] * size[2]);

	w->group = g;
	w->lanes = co_descriptor_wave_size(&r->kernel->desc);
	w->pc = r->code_va + r->kernel->entry_off;
	w->scratch = xcalloc((size_t)w->lanes, r->scratch_bytes + 1);
	/* What nobody wrote is the same in every run, and no address. */
	memset(w->s.v, 0xa5, sizeof(w->s.v));
	for (int i = 0; i < 106; i++)
		w->s.s[i] = 0xa5a5a5a5;
	set_scalars(w, r);
	for (int lane = 0; lane < w->lanes; lane++) {
		const uint32_t n = (uint32_t)(index * w->lanes + lane);

		if ((int)n >= total)
			break;
		w->s.s[ISA_R_EXEC_LO + lane / 32] |= 1u << lane % 32;
		w->s.v[lane / 32][0][lane % 32] =
			n % size[0] | n / size[0] % size[1] << 10 |
			n / size[0] / size[1] << 20;
	}
}

/* ------------------------------------------------------------ running ---- */

static uint64_t next_random(struct late_grid *g)
{
	g->seed ^= g->seed << 13;
	g->seed ^= g->seed >> 7;
	g->seed ^= g->seed << 17;
	return g->seed >> 11;
}

/* The wave that goes on; NULL: none can. */
static struct late_wave *choose_wave(struct late_group *g, int *turn)
{
	const enum late_order order = g->grid->run->order;
	const bool down = order == LATE_DOWN ||
			  (order == LATE_FLIP && g->grid->down);
	int from = order == LATE_MIXED ?
			   (int)(next_random(g->grid) % (uint64_t)g->n_waves) :
			   *turn;

	for (int i = 0; i < g->n_waves; i++) {
		const int k = (from + i) % g->n_waves;
		const int n = down ? g->n_waves - 1 - k : k;

		if (g->wave[n].state == LATE_READY)
			return &g->wave[n];
	}
	return NULL;
}

/* All that are left have arrived. */
static bool open_barrier(struct late_group *g)
{
	bool any = false;

	for (int i = 0; i < g->n_waves; i++)
		if (g->wave[i].state == LATE_AT_BARRIER) {
			g->wave[i].state = LATE_READY;
			any = true;
		}
	g->grid->down = !g->grid->down;
	return any;
}

/* What a wave that ends leaves behind: its stores. */
static void leave_ops(struct late_wave *w)
{
	struct late_grid *g = w->group->grid;

	for (int i = 0; i < w->n_ops; i++) {
		if (w->op[i]->stores && !w->op[i]->performed &&
		    w->op[i]->space == LATE_MEMORY) {
			VEC_GROW(g->left, g->n_left, 1, g->cap_left);
			g->left[g->n_left++] = w->op[i];
		} else {
			free(w->op[i]);
		}
	}
	w->n_ops = 0;
}

static bool land_left(struct late_wave *any, struct late_grid *g)
{
	bool good = true;

	for (int i = 0; i < g->n_left; i++) {
		good = good && late_perform(any, g->left[i]);
		free(g->left[i]);
	}
	g->n_left = 0;
	return good;
}

/* One wave until it stops, waits, or others shall have a turn. */
static bool run_turn(struct late_wave *w, int *turn)
{
	struct late_grid *g = w->group->grid;
	struct late_run *r = g->run;
	uint64_t left = r->order == LATE_MIXED ? 1 + next_random(g) % 64 :
						 PATIENCE;

	for (; w->state == LATE_READY && left; left--) {
		if (r->max_steps && r->steps >= r->max_steps)
			return late_fail(w, "no end after %llu instructions",
					 (unsigned long long)r->steps);
		r->steps++;
		if (!late_step(w))
			return false;
	}
	if (w->state == LATE_ENDED)
		leave_ops(w);
	if (w->state != LATE_READY || r->order == LATE_MIXED)
		return true;
	/* It may spin on what another one has to store. */
	++*turn;
	return land_left(w, g);
}

static bool run_group(struct late_group *g)
{
	struct late_wave *w;
	int turn = 0;

	do {
		while ((w = choose_wave(g, &turn)))
			if (!run_turn(w, &turn))
				return false;
	} while (open_barrier(g));
	return true;
}

static bool run_one(struct late_grid *grid, uint64_t index)
{
	const struct late_run *r = grid->run;
	struct late_group g = { .grid = grid };
	uint32_t n[3], size[3];
	bool good;

	for (int i = 0; i < 3; i++)
		n[i] = (r->grid[i] + r->block[i] - 1) / r->block[i];
	g.id[0] = (uint32_t)(index % n[0]);
	g.id[1] = (uint32_t)(index / n[0] % n[1]);
	g.id[2] = (uint32_t)(index / n[0] / n[1]);
	for (int i = 0; i < 3; i++) {
		size[i] = r->grid[i] - g.id[i] * r->block[i];
		size[i] = size[i] > r->block[i] ? r->block[i] : size[i];
	}
	const uint32_t lanes =
		(uint32_t)co_descriptor_wave_size(&r->kernel->desc);

	g.n_waves = (int)((size[0] * size[1] * size[2] + lanes - 1) / lanes);
	g.wave = xcalloc((size_t)g.n_waves, sizeof(*g.wave));
	g.lds = xmalloc(r->lds_bytes + 1);
	memset(g.lds, 0xa5, r->lds_bytes + 1);
	for (int i = 0; i < g.n_waves; i++)
		start_wave(&g.wave[i], &g, i, size);
	good = run_group(&g);
	if (good && index + 1 == (uint64_t)n[0] * n[1] * n[2])
		good = land_left(&g.wave[0], grid);
	for (int i = 0; i < g.n_waves; i++) {
		for (int k = 0; k < g.wave[i].n_ops; k++)
			free(g.wave[i].op[k]);
		free(g.wave[i].op);
		free(g.wave[i].scratch);
	}
	free(g.wave);
	free(g.lds);
	return good;
}

bool late_run(struct late_run *r, struct err *e)
{
	struct late_grid g = { .run = r, .e = e, .seed = 0x5eed1a7e };
	uint64_t total = 1;
	bool good = true;

	for (int i = 0; i < 3; i++)
		total *= (r->grid[i] + r->block[i] - 1) / r->block[i];
	g.inst = xcalloc(r->code_bytes / 4 + 1, sizeof(*g.inst));
	r->steps = 0;
	for (uint64_t i = 0; i < total && good; i++)
		good = run_one(&g, i);
	for (int i = 0; i < g.n_left; i++)
		free(g.left[i]);
	free(g.left);
	for (uint64_t i = 0; i < r->code_bytes / 4; i++)
		free(g.inst[i]);
	free(g.inst);
	return good;
}
