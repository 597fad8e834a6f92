/*
 * autotune/card/observe.c - what a card of given costs would have measured.
 *
 * The probes are those that run on a card; their rows go into a database of
 * their own, which is read as a card's is.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autotune/card/card.h"
#include "probes/micro/micro.h"

static const _Atomic int never;

/* Which probes give the points of which area. */
static const struct command {
	const char *area, *like; /* of the point's name; "": any */
	int (*run)(const struct probe_opts *o, struct err *e);
} commands[] = {
	{ "cost", ".latency", micro_latency },
	{ "cost", "branch.taken", micro_latency },
	{ "cost", ".issue", micro_throughput },
	{ "cost", "mem.", micro_memory },
	{ "memory", "", micro_memory },
	{ "lds", "", micro_lds },
	{ "branch", "", micro_branch },
};

static bool is_given_by(const struct card_point *p, const struct command *c)
{
	return !strcmp(p->area, c->area) && strstr(p->name, c->like);
}

static bool is_wanted(const struct card_list *l, const bool *which,
		      const struct command *c)
{
	for (int i = 0; i < l->n; i++)
		if (is_given_by(&l->v[i], c) && (!which || which[i]))
			return true;
	return false;
}

static bool run_commands(const struct probe_opts *o, const struct card_list *l,
			 const bool *which, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		bool again = false;

		for (size_t k = 0; k < i; k++)
			again |= commands[k].run == commands[i].run &&
				 is_wanted(l, which, &commands[k]);
		if (again || !is_wanted(l, which, &commands[i]))
			continue;
		if (commands[i].run(o, e) != EXIT_YES)
			return err_wrap(e, "simulating the probes");
		if (*o->stop)
			return err_set(e, ERR_STOPPED, "not at its end");
	}
	return true;
}

bool card_observe(const struct cost_model *m, const bool *which,
		  struct card_data *out, const _Atomic int *stop,
		  struct err *e)
{
	char name[] = "t0-sim", *argv[] = { name, NULL }, path[PATH_MAX];
	struct buf dir = { 0 };
	struct card_list list;
	const struct probe_opts o = {
		.device = "sim", .db = path, .seed = 1, .quiet = true,
		.format_out = "/dev/null", .costs = m, .levels = true,
		.samples = 1, .argc = 1, .argv = argv,
		.stop = stop ? stop : &never,
	};
	struct res_db *db = NULL;

	if (!scratch_folder(&dir, scratch_place(scratch_memory()), "card", e)) {
		buf_fini(&dir);
		return false;
	}
	snprintf(path, sizeof(path), "%s/t0.db", dir.data);
	card_list_init(&list);
	bool ok = run_commands(&o, &list, which, e);

	*out = (struct card_data){ 0 };
	/* Without a probe that is wanted there is no database. */
	if (ok && !access(path, F_OK)) {
		db = res_open(path, RES_READ, e);
		ok = db && card_read_db(out, db, e);
	}
	res_close(db);
	res_remove(path);
	rmdir(dir.data);
	buf_fini(&dir);
	return ok;
}
