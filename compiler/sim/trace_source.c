/*
 * compiler/sim/trace_source.c - waves that a trace file recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/sim.h"

enum { WGPS = 48 }; /* a group in so many lands on the simulated one */

struct recorded_step {
	uint64_t pc, exec;
	uint32_t access_bytes, n_accesses;
	size_t first; /* access */
	uint8_t kind;
};

struct recorded {
	struct recorded_step *step;
	size_t n, cap, at;
	struct trace_access *access;
	size_t n_access, cap_access;
};

struct trace_waves {
	struct trace_dispatch d;
	uint8_t *code;
	struct recorded *wave; /* [n_waves] */
	int *group_at;	       /* [n_grid] ours + 1; 0: not seen, -1: out */
	int most, every;       /* take so many groups, one in so many */
	uint32_t n_grid;
};

/* ---- reading ---- */

static uint32_t linear_index(const struct trace_dispatch *d,
			     const uint32_t g[3])
{
	return (g[2] * d->n_groups[1] + g[1]) * d->n_groups[0] + g[0];
}

static bool grid_size(const struct trace_dispatch *d, uint32_t *n,
		      struct err *e)
{
	uint64_t k = (uint64_t)d->n_groups[0] * d->n_groups[1];

	k = k <= UINT32_MAX ? k * d->n_groups[2] : 0;
	*n = (uint32_t)k;
	return (k && k <= 1u << 24) ||
	       err_set(e, ERR_INPUT, "trace: a grid of %u x %u x %u workgroups",
		       d->n_groups[0], d->n_groups[1], d->n_groups[2]);
}

static bool begin_dispatch(struct sim_source *s, struct trace_waves *t,
			   const struct trace_dispatch *d, struct err *e)
{
	uint64_t items = (uint64_t)d->group_size[0] * d->group_size[1] *
			 d->group_size[2];

	if (!grid_size(d, &t->n_grid, e))
		return false;
	if (!items || items > 1024 || (d->wave_size != 32 &&
				       d->wave_size != 64))
		return err_set(e, ERR_INPUT, "trace: workgroups of %llu "
			       "work-items in waves of %u",
			       (unsigned long long)items, d->wave_size);
	t->d = *d;
	t->code = xmalloc(d->code_bytes + 1);
	memcpy(t->code, d->code, d->code_bytes);
	s->code = t->code;
	s->code_va = d->code_va;
	s->code_bytes = d->code_bytes;
	s->wave_size = (int)d->wave_size;
	s->waves_per_group = (int)((items + d->wave_size - 1) / d->wave_size);
	s->lds_bytes = d->lds_bytes;
	s->vgprs = (int)d->vgprs;
	t->group_at = xcalloc(t->n_grid, sizeof(*t->group_at));
	return true;
}

static void record_step(struct recorded *w, const struct trace_event *ev)
{
	VEC_GROW(w->step, w->n, 1, w->cap);
	VEC_GROW(w->access, w->n_access, ev->n_accesses, w->cap_access);
	w->step[w->n++] = (struct recorded_step){
		.pc = ev->pc, .exec = ev->exec, .kind = ev->kind,
		.access_bytes = ev->access_bytes,
		.n_accesses = ev->n_accesses, .first = w->n_access,
	};
	for (uint32_t i = 0; i < ev->n_accesses; i++)
		w->access[w->n_access++] = ev->access[i];
}

/* A group that the trace has: 1 + its number here, or -1. */
static int choose_group(struct sim_source *s, struct trace_waves *t, uint32_t g)
{
	size_t n = (size_t)s->waves_per_group;

	if (g % (uint32_t)t->every || (t->most && s->n_groups == t->most))
		return -1;
	t->wave = xrealloc(t->wave, ((size_t)s->n_groups + 1) * n *
			   sizeof(*t->wave));
	memset(t->wave + (size_t)s->n_groups * n, 0, n * sizeof(*t->wave));
	return ++s->n_groups;
}

static bool add_inst(struct sim_source *s, struct trace_waves *t,
		     const struct trace_event *ev, struct err *e)
{
	uint32_t g = linear_index(&t->d, ev->group);

	if (g >= t->n_grid || ev->wave >= (uint32_t)s->waves_per_group)
		return err_set(e, ERR_INPUT, "trace: workgroup %u,%u,%u wave "
			       "%u is not of the dispatch", ev->group[0],
			       ev->group[1], ev->group[2], ev->wave);
	if (!t->group_at[g])
		t->group_at[g] = choose_group(s, t, g);
	if (t->group_at[g] > 0)
		record_step(&t->wave[(t->group_at[g] - 1) * s->waves_per_group +
				     (int)ev->wave],
			    ev);
	return true;
}

/* The number of the last dispatch; 0 and *e without one. */
static uint64_t last_dispatch(const void *bytes, size_t len, struct err *e)
{
	struct trace_reader r;
	struct trace_event *ev = xmalloc(sizeof(*ev));
	uint64_t last = 0;

	if (trace_reader_init(&r, bytes, len, e)) {
		while (trace_next(&r, ev, e))
			if (ev->type == TRACE_DISPATCH)
				last = ev->dispatch.number;
		if (!last && !e->code)
			err_set(e, ERR_INPUT, "trace: no dispatch in it");
	}
	free(ev);
	return e->code ? 0 : last;
}

static bool read_dispatch(struct sim_source *s, struct trace_waves *t,
			  const void *bytes, size_t len, uint64_t number,
			  struct err *e)
{
	struct trace_event *ev = xmalloc(sizeof(*ev));
	struct trace_reader r;
	bool ours = false, found = false;
	bool ok = trace_reader_init(&r, bytes, len, e);

	while (ok && trace_next(&r, ev, e)) {
		if (ev->type == TRACE_DISPATCH) {
			ours = ev->dispatch.number == number;
			found |= ours;
			ok = !ours || begin_dispatch(s, t, &ev->dispatch, e);
		} else if (ev->type == TRACE_INST && ours) {
			ok = add_inst(s, t, ev, e);
		}
	}
	free(ev);
	ok = ok && !e->code;
	if (ok && !found)
		return err_set(e, ERR_INPUT, "trace: no dispatch %llu in it",
			       (unsigned long long)number);
	return ok;
}

/* ---- replay ---- */

static bool trace_pc(struct sim_source *s, int wave, uint64_t *pc)
{
	const struct trace_waves *t = s->ctx;
	const struct recorded *w = &t->wave[wave];

	if (w->at == w->n)
		return false;
	*pc = w->step[w->at].pc;
	return true;
}

static bool trace_step(struct sim_source *s, int wave, uint64_t cycle,
		       struct sim_step *out, struct err *e)
{
	const struct trace_waves *t = s->ctx;
	struct recorded *w = &t->wave[wave];
	const struct recorded_step *st = &w->step[w->at++];

	(void)cycle;
	(void)e;
	*out = (struct sim_step){
		.exec = st->exec, .kind = st->kind,
		.access_bytes = st->access_bytes,
		.n_accesses = st->n_accesses, .access = w->access + st->first,
	};
	return true;
}

/* How often, up to `most`, it goes back from `branch`; *last is the step. */
static uint64_t count_back_jumps(const struct recorded *w, uint64_t branch,
				 uint64_t most, size_t *last)
{
	uint64_t n = 0;
	bool back = w->step[w->at].pc == branch;

	*last = w->at;
	for (size_t i = w->at + back; i < w->n && n < most; i++) {
		if (w->step[i].pc == branch) {
			*last = i;
			n += back;
			back = true;
		} else if (i && w->step[i - 1].pc == branch &&
			   w->step[i].pc > branch) {
			break;
		}
	}
	return n;
}

static bool trace_trips(struct sim_source *s, int wave, uint64_t pc,
			uint64_t *left, struct err *e)
{
	const struct trace_waves *t = s->ctx;
	size_t last;

	(void)e;
	*left = count_back_jumps(&t->wave[wave], pc, UINT64_MAX, &last);
	return true;
}

static bool trace_jump(struct sim_source *s, int wave, uint64_t most,
		       uint64_t *taken, struct err *e)
{
	struct trace_waves *t = s->ctx;
	struct recorded *w = &t->wave[wave];

	(void)e;
	*taken = count_back_jumps(w, w->step[w->at].pc, most, &w->at);
	return true;
}

static struct trace_waves *new_waves(struct sim_source *s, int most, int every)
{
	struct trace_waves *t = xcalloc(1, sizeof(*t));

	t->most = most;
	t->every = every;
	s->ctx = t;
	s->n_groups = 0;
	s->pc = trace_pc;
	s->step = trace_step;
	s->trips = trace_trips;
	s->jump = trace_jump;
	return t;
}

/* The groups of one WGP are one in 48; a trace may hold others only. */
bool sim_trace_open(struct sim_source *s, const void *bytes, size_t len,
		    uint64_t number, int max_groups, struct err *e)
{
	s->ctx = NULL;
	if (!number)
		number = last_dispatch(bytes, len, e);
	for (int try = 0; number && try < 2; try++) {
		bool all = max_groups || try;
		struct trace_waves *t = new_waves(s, try ? 1 : max_groups,
						  all ? 1 : WGPS);

		if (!read_dispatch(s, t, bytes, len, number, e))
			break;
		if (s->n_groups)
			return true;
		sim_trace_close(s);
	}
	sim_trace_close(s);
	return e->code ? false
		       : err_set(e, ERR_INPUT, "trace: dispatch %llu executed "
				 "nothing", (unsigned long long)number);
}

uint64_t sim_trace_groups(const struct sim_source *s)
{
	const struct trace_waves *t = s->ctx;

	return t->n_grid;
}

const char *sim_trace_kernel(const struct sim_source *s)
{
	const struct trace_waves *t = s->ctx;

	return t->d.kernel;
}

void sim_trace_close(struct sim_source *s)
{
	struct trace_waves *t = s->ctx;

	if (!t)
		return;
	for (int i = 0; t->wave && i < s->n_groups * s->waves_per_group; i++) {
		free(t->wave[i].step);
		free(t->wave[i].access);
	}
	free(t->wave);
	free(t->group_at);
	free(t->code);
	free(t);
	s->ctx = NULL;
}
