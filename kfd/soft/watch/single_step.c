/*
 * kfd/soft/watch/single_step.c - single stepping: the run loop of watched
 * waves, and their decoded sites.
 *
 * Every instruction is decoded here a second time, once per address, shown to
 * the watchers, and then executed by soft_wave_run(), one at a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "kfd/soft/watch/watch_int.h"

#define DUMPS_MAX 16

/* ------------------------------------------------------------- sites ---- */

/* The code at the wave's pc: its bytes, or 0 when it has none. */
static size_t fetch_code(struct soft_wave *w, uint8_t code[ISA_MAX_SIZE_BYTES])
{
	const struct soft_env *env = w->group->env;
	struct soft_range r;
	uint64_t n;

	if (!env->find(env->ctx, w->pc, &r) || !(r.flags & SOFT_MEM_EXEC))
		return 0;
	n = r.size_bytes - (w->pc - r.va);
	if (n > ISA_MAX_SIZE_BYTES)
		n = ISA_MAX_SIZE_BYTES;
	memcpy(code, r.host + (w->pc - r.va), n);
	return n;
}

static struct site *site_new(struct soft_watch *t, const struct soft_wave *w,
			     const uint8_t *code, size_t n)
{
	const bool wide = w->wave_size == 64;
	const struct isa_target target = { w->group->env->gen,
					   w->wave_size, true };
	struct site *s = xcalloc(1, sizeof(*s));

	if (isa_decode(&target, code, n, &s->u.in)) {
		free(s);
		return NULL;
	}
	soft_unify(&s->u.in);
	soft_extend_offset(&s->u.in);
	s->pc = w->pc;
	s->wide = wide;
	memcpy(s->code, code, s->u.in.size_bytes);
	watch_site_init(s, &target);
	VEC_GROW(t->site, t->n_sites, 2, t->cap_sites);
	s->id = (uint32_t)++t->n_sites;
	t->site[s->id] = s;
	return s;
}

/*
 * The site at the wave's pc, NULL when there is no instruction.  After memory
 * was mapped or unmapped the bytes are compared with those decoded.
 */
static struct site *site_at(struct soft_watch *t, struct soft_wave *w)
{
	const bool wide = w->wave_size == 64;
	struct site *s = addr_table_get(&t->at, w->pc | wide);
	uint8_t code[ISA_MAX_SIZE_BYTES];
	size_t n;

	if (s && s->epoch == t->epoch)
		return s;
	n = fetch_code(w, code);
	if (s && n >= s->u.in.size_bytes &&
	    !memcmp(code, s->code, s->u.in.size_bytes)) {
		s->epoch = t->epoch;
		return s;
	}
	s = n ? site_new(t, w, code, n) : NULL;
	if (!s)
		return NULL;
	s->epoch = t->epoch;
	addr_table_put(&t->at, w->pc | wide, s);
	return s;
}

static void sites_free(struct soft_watch *t)
{
	for (size_t i = 1; i <= t->n_sites; i++)
		free(t->site[i]);
	free(t->site);
	addr_table_fini(&t->at);
}

/* ---------------------------------------------------------- one wave ---- */

static bool is_group(const struct soft_wave *w, const uint32_t id[3])
{
	return !memcmp(w->group->id, id, sizeof(w->group->id));
}

static bool is_traced(const struct soft_watch *t, const struct soft_wave *w)
{
	return t->trace && (!t->o.trace_one || is_group(w, t->o.trace_group));
}

/* Show the registers if this is where the user wants to see them. */
static void stop_at(struct soft_watch *t, struct soft_wave *w,
		    const struct site *s)
{
	const uint32_t *g = w->group->id;

	if (t->n_dumps == DUMPS_MAX)
		return;
	if (t->o.stop_one && (!is_group(w, t->o.stop_group) ||
			      w->index != (int)t->o.stop_wave))
		return;
	t->n_dumps++;
	buf_printf(&t->dump, "workgroup %u,%u,%u, wave %d before ", g[0], g[1],
		   g[2], w->index);
	check_where(t, s, &t->dump);
	buf_addc(&t->dump, '\n');
	dump_wave(w, &t->dump);
}

static void look_at_inst(struct soft_watch *t, struct soft_run *r,
			 struct soft_wave *w, struct site *s, uint64_t stop_pc)
{
	struct shadow *sh = r->watched;
	struct actor a = { t, sh, w, &sh->wave[w->index], s };

	s->count++;
	for (int h = 0; h < soft_halves(w); h++)
		s->lanes += (unsigned)__builtin_popcount(soft_exec(w, h));
	t->n_accesses = 0;
	if (s->kind != SITE_ALU && (t->o.check || is_traced(t, w)))
		watch_find_accesses(t, w, s);
	if (s->pc == stop_pc)
		stop_at(t, w, s);
	if (is_traced(t, w))
		watch_trace_inst(t, w, s);
	if (t->o.check)
		check_instruction(&a);
	t->n_invalidated += s->u.in.op == ISA_s_icache_inv;
}

/* Cards differ in what stands at an address. */
static void epoch_update(struct soft_watch *t, const struct soft_wave *w)
{
	const struct soft_card *c = w->group->env->ctx;
	const uint32_t epoch = __atomic_load_n(&c->map.code_epoch,
					       __ATOMIC_RELAXED);

	t->epoch = (epoch + t->n_invalidated) * SOFT_CARDS_MAX + c->index;
}

static void run_wave(struct soft_hook *h, struct soft_run *r,
		     struct soft_wave *w, uint64_t max_insts)
{
	struct soft_watch *t = (struct soft_watch *)h;
	uint64_t stop_pc = 0;

	pthread_mutex_lock(&t->lock);
	epoch_update(t, w);
	if (t->o.stop && !watch_resolve(t, t->o.stop, &stop_pc))
		stop_pc = 0;
	for (; max_insts && w->state == SOFT_READY; max_insts--) {
		struct site *s = site_at(t, w);

		if (s)
			look_at_inst(t, r, w, s, stop_pc);
		soft_wave_run(w, 1);
	}
	pthread_mutex_unlock(&t->lock);
}

static void fill_inst(const struct soft_watch *t, const struct soft_wave *w,
		      const struct site *s, struct soft_timed_inst *out)
{
	out->pc = s->pc;
	out->in = &s->u.in;
	out->id = s->id;
	out->exec = soft_exec(w, 0);
	if (w->wave_size == 64)
		out->exec |= (uint64_t)soft_exec(w, 1) << 32;
	out->kind = 0;
	out->access_bytes = 0;
	out->n_accesses = (uint32_t)t->n_accesses;
	for (int i = 0; i < t->n_accesses; i++)
		out->access[i] = watch_trace_access(&t->access[i], &out->kind,
						    &out->access_bytes);
}

bool watch_look(struct soft_watch *t, struct soft_wave *w,
		struct soft_timed_inst *out)
{
	const struct site *s;

	pthread_mutex_lock(&t->lock);
	epoch_update(t, w);
	s = site_at(t, w);
	if (s) {
		t->n_accesses = 0;
		if (s->kind != SITE_ALU)
			watch_find_accesses(t, w, s);
		fill_inst(t, w, s, out);
		t->n_invalidated += s->u.in.op == ISA_s_icache_inv;
	}
	pthread_mutex_unlock(&t->lock);
	return s;
}

void watch_kernel_name(struct soft_watch *t, uint64_t va, char out[128])
{
	const char *name;

	pthread_mutex_lock(&t->lock);
	name = watch_kernel(t, va);
	snprintf(out, 128, "%s", name ? name : "");
	pthread_mutex_unlock(&t->lock);
}

/* -------------------------------------------- dispatches, workgroups ---- */

static void dispatch_begin(struct soft_hook *h, const struct soft_launch *l)
{
	struct soft_watch *t = (struct soft_watch *)h;

	pthread_mutex_lock(&t->lock);
	t->n_dispatches++;
	memory_reset(t);
	if (t->trace)
		watch_trace_dispatch(t, l);
	pthread_mutex_unlock(&t->lock);
}

static void dispatch_end(struct soft_hook *h)
{
	struct soft_watch *t = (struct soft_watch *)h;

	pthread_mutex_lock(&t->lock);
	memory_reset(t);
	pthread_mutex_unlock(&t->lock);
}

static struct shadow *shadow_new(const struct soft_launch *l)
{
	struct shadow *sh = xcalloc(1, sizeof(*sh));

	sh->wave = xcalloc(l->waves_per_group, sizeof(*sh->wave));
	sh->lds_valid = xcalloc(1, l->lds_bytes / 8 + 1);
	sh->lds_race.cell =
		xcalloc(lds_blocks(l) * RACE_BLOCK, sizeof(*sh->lds_race.cell));
	sh->lds_race.split = xcalloc(1, lds_blocks(l) / 8 + 1);
	for (uint32_t i = 0; i < l->waves_per_group; i++)
		sh->wave[i].scratch = xcalloc(1, l->scratch_wave_bytes / 8 + 1);
	return sh;
}

static void group_free(struct soft_hook *h, struct soft_run *r)
{
	struct shadow *sh = r->watched;

	(void)h;
	if (!sh)
		return;
	for (uint32_t i = 0; i < sh->l->waves_per_group; i++) {
		free(sh->wave[i].scratch);
		clocks_fini(&sh->wave[i].known);
		clocks_fini(&sh->wave[i].acquired);
	}
	free(sh->wave);
	free(sh->lds_valid);
	free(sh->lds_race.cell);
	free(sh->lds_race.split);
	free(sh);
	r->watched = NULL;
}

static void group_start(struct soft_hook *h, struct soft_run *r,
			const struct soft_launch *l)
{
	struct soft_watch *t = (struct soft_watch *)h;
	struct shadow *sh;

	pthread_mutex_lock(&t->lock);
	if (!r->watched)
		r->watched = shadow_new(l);
	sh = r->watched;
	sh->l = l;
	sh->run = r;
	sh->index = r->index;
	sh->n_waves = r->g.n_waves;
	sh->lds_bytes = l->packet.group_segment_size;
	if (t->o.check)
		check_group_start(t, sh);
	pthread_mutex_unlock(&t->lock);
}

static void barrier_opens(struct soft_hook *h, struct soft_run *r)
{
	struct soft_watch *t = (struct soft_watch *)h;

	pthread_mutex_lock(&t->lock);
	if (t->o.check)
		check_barrier(t, r->watched);
	if (is_traced(t, r->g.wave))
		trace_put_barrier(t->trace, r->g.id);
	pthread_mutex_unlock(&t->lock);
}

/* --------------------------------------------------------- the watch ---- */

static void watch_hook_free(struct soft_hook *h)
{
	watch_free((struct soft_watch *)h);
}

static void take_note(struct soft_hook *h, const struct kfd_note *n)
{
	watch_note((struct soft_watch *)h, n);
}

static const struct soft_hook_ops watch_ops = {
	.note = take_note,
	.free = watch_hook_free,
	.begin = dispatch_begin,
	.end = dispatch_end,
	.group_start = group_start,
	.group_free = group_free,
	.run_wave = run_wave,
	.barrier = barrier_opens,
};

struct soft_watch *watch_new(const struct soft_watch_options *o,
			     struct err *e)
{
	struct soft_watch *t = xcalloc(1, sizeof(*t));

	t->hook.ops = &watch_ops;
	t->o = *o;
	if (o->trace) {
		t->trace = trace_create(o->trace, e);
		if (!t->trace) {
			free(t);
			return NULL;
		}
	}
	pthread_mutex_init(&t->lock, NULL);
	t->lane_plane = xcalloc(2 * 256, sizeof(*t->lane_plane));
	return t;
}

void watch_free(struct soft_watch *t)
{
	if (t->trace)
		trace_finish(t->trace, NULL);
	memory_reset(t);
	sites_free(t);
	watch_objects_fini(t);
	for (size_t i = 0; i < t->n_reports; i++)
		free(t->report[i].text);
	free(t->report);
	free(t->lane_plane);
	buf_fini(&t->dump);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

struct soft_watch *watch_find(const struct soft_dev *d)
{
	return (struct soft_watch *)soft_hook_find(d, &watch_ops);
}

bool watch_can_attach(struct kfd_driver *drv, const char *what, struct err *e)
{
	struct soft_dev *d = (struct soft_dev *)drv;
	bool opened;

	if (strcmp(drv->name, "soft"))
		return err_set(e, ERR_USAGE, "%s needs the soft device, not "
			       "\"%s\"", what, drv->name);
	pthread_mutex_lock(&d->lock);
	opened = d->kfd_opens;
	pthread_mutex_unlock(&d->lock);
	return !opened ||
	       err_set(e, ERR_USAGE, "soft device: %s has to be set before "
		       "the device is opened", what);
}

bool soft_watch_wanted(const struct soft_watch_options *o)
{
	return o->check || o->profile || o->trace || o->stop;
}

bool soft_watch_attach(struct kfd_driver *drv,
		       const struct soft_watch_options *o, struct err *e)
{
	struct soft_dev *d = (struct soft_dev *)drv;
	struct soft_watch *t;

	if (!soft_watch_wanted(o))
		return true;
	if (!watch_can_attach(drv, "what is watched", e))
		return false;
	if (watch_find(d))
		return err_set(e, ERR_USAGE, "soft device: it is watched "
			       "already");
	t = watch_new(o, e);
	if (!t)
		return false;
	soft_hook_attach(d, &t->hook);
	return true;
}

/* ----------------------------------------------------------- answers ---- */

static struct soft_watch *watch_of(struct kfd_driver *d)
{
	return watch_find((struct soft_dev *)d);
}

static int by_pc(const void *a, const void *b)
{
	const struct report *x = a, *y = b;

	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return (x->pc > y->pc) - (x->pc < y->pc);
}

uint64_t soft_watch_findings(struct kfd_driver *d, struct buf *out)
{
	struct soft_watch *t = watch_of(d);
	uint64_t n;

	if (!t)
		return 0;
	pthread_mutex_lock(&t->lock);
	if (t->n_reports)
		qsort(t->report, t->n_reports, sizeof(*t->report), by_pc);
	for (size_t i = 0; i < t->n_reports; i++) {
		const struct report *r = &t->report[i];

		buf_adds(out, r->text);
		if (r->count > 1)
			buf_printf(out, "  seen %llu times\n",
				   (unsigned long long)r->count);
	}
	n = t->n_findings;
	pthread_mutex_unlock(&t->lock);
	return n;
}

void soft_watch_profile(struct kfd_driver *d, struct buf *out)
{
	struct soft_watch *t = watch_of(d);

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	profile_print(t, out);
	pthread_mutex_unlock(&t->lock);
}

bool soft_watch_dump(struct kfd_driver *d, struct buf *out)
{
	struct soft_watch *t = watch_of(d);
	bool any;

	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	any = t->n_dumps;
	if (any)
		buf_add(out, t->dump.data, t->dump.len);
	pthread_mutex_unlock(&t->lock);
	return any;
}

bool soft_watch_trace_end(struct kfd_driver *d, struct err *e)
{
	struct soft_watch *t = watch_of(d);
	bool good = true;

	if (!t)
		return true;
	pthread_mutex_lock(&t->lock);
	if (t->trace)
		good = trace_finish(t->trace, e);
	t->trace = NULL;
	pthread_mutex_unlock(&t->lock);
	return good;
}
