/*
 * probes/micro/micro_cost.c - t0-probe latency and throughput on a GPU.
 *
 * Every result is stored for its mnemonic and, for the instruction that stands
 * for a class, under the row of compiler/cost/cost.def that it measures: so a
 * card's figure becomes the compiler's cost, and the simulator's figure can be
 * compared with the cost that it was given.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "probes/micro/micro.h"

#define COLUMNS                                                          \
	"instruction,#cycles,#lo,#hi,#n,#clock_mhz,row,#cost,#off_percent," \
	"values,rejected"

static const char *row_of(const struct micro_probe *p)
{
	return p->stream ? p->inst->interval : p->inst->latency;
}

static void add_row(struct micro_probe *p)
{
	struct micro_device *d = p->d;
	const struct probe_series *s = &p->series;
	const struct res_interval r = probe_series_median(s);
	struct table *t = &d->table;

	table_row(t);
	table_cell(t, 0, "%s", p->inst->name);
	if (s->n) {
		table_cell(t, 1, "%.3f", r.value);
		if (!isnan(r.lo)) {
			table_cell(t, 2, "%.3f", r.lo);
			table_cell(t, 3, "%.3f", r.hi);
		}
		table_cell(t, 4, "%zu", s->n);
		table_cell(t, 5, "%.0f", p->clock_hz * 1e-6);
	}
	if (*row_of(p)) {
		const double cost = cost_value(&d->costs,
					       cost_row_find(row_of(p)));
		table_cell(t, 6, "%s", row_of(p));
		table_cell(t, 7, "%g", cost);
		if (s->n)
			table_cell(t, 8, "%.1f", 100 * (r.value / cost - 1));
	}
	table_cell(t, 9, "%s", !p->has_values ? "not compared" :
			       p->right	      ? "right" :
						"wrong");
	probe_rejects_add(&d->rejects, s, t);
	d->wrong += !p->right;
}

/* Under the mnemonic; what stands behind a space is its form. */
static bool store_cost(struct micro_probe *p, struct err *e)
{
	const char *form = strchr(p->inst->name, ' ');
	const int len = form ? (int)(form - p->inst->name) :
			       (int)strlen(p->inst->name);
	char name[64], params[64] = "{}";

	snprintf(name, sizeof(name), "%.*s", len, p->inst->name);
	if (form)
		res_params(params, sizeof(params), "form:s", form + 1);
	if (!micro_probe_store(p, "cost", name, params,
			       p->stream ? "interval" : "latency", "cycle", 1,
			       e))
		return false;
	if (!*row_of(p))
		return true;
	return micro_probe_store(p, "cost", row_of(p), "{}", "value",
				 cost_row_info(cost_row_find(row_of(p)))->unit,
				 1, e);
}

struct list {
	struct micro_probe *v;
	size_t n, cap;
};

static bool add_probe(struct list *l, struct micro_device *d,
		      const struct micro_inst *i, bool stream, struct err *e)
{
	if (!*(stream ? i->stream : i->chain))
		return true;
	return micro_inst_probe(vec_add(l), d, i, stream, 1, e);
}

/* Those of micro_inst.def that begin so; else the instruction itself. */
static bool choose_insts(struct list *l, struct micro_device *d, bool stream,
			 struct err *e)
{
	const char *want = d->o->inst;
	size_t n;
	const struct micro_inst *v = micro_insts(&n);
	bool good = true;

	bool known = false;

	for (size_t i = 0; i < n && good; i++) {
		if (want && strncmp(v[i].name, want, strlen(want)))
			continue;
		known = true;
		if (probe_in_shard(d->o, "cost", v[i].name) &&
		    micro_inst_on(&v[i], kfd_info(d->dev)->gfx))
			good = add_probe(l, d, &v[i], stream, e);
	}
	if (!good || l->n || (known && d->o->shard.count) ||
	    !probe_in_shard(d->o, "cost", want))
		return good;
	const struct micro_inst *made = micro_inst_make(want, &d->run.mem, e);
	if (!made || !add_probe(l, d, made, stream, e))
		return false;
	return l->n ||
	       err_set(e, ERR_UNSUPPORTED, "--inst %s: no source is as wide as "
		       "the result, so there is no chain; try throughput",
		       want);
}

/* Series point into themselves once the list has stopped growing. */
static void link_series(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		l->v[i].series.ctx = &l->v[i];
}

static int cost_run(const struct probe_opts *o, bool stream, struct err *e)
{
	struct micro_device d;
	struct list l = { 0 };
	bool good = micro_device_open(&d, o, stream ? "throughput" : "latency",
				      COLUMNS, e) &&
		    choose_insts(&l, &d, stream, e);

	link_series(&l);
	/* A shard may have none. */
	good = good && (!l.n || micro_probe_run(l.v, l.n, e));
	for (size_t i = 0; i < l.n && good; i++) {
		add_row(&l.v[i]);
		good = store_cost(&l.v[i], e);
	}
	for (size_t i = 0; i < l.n; i++)
		micro_probe_fini(&l.v[i]);
	free(l.v);
	return micro_device_close(&d, good, e);
}

int micro_latency(const struct probe_opts *o, struct err *e)
{
	return cost_run(o, false, e);
}

int micro_throughput(const struct probe_opts *o, struct err *e)
{
	return cost_run(o, true, e);
}
