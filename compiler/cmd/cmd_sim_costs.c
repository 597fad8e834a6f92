/*
 * compiler/cmd/cmd_sim_costs.c - t0-sim costs and import; costs to simulate
 * with.
 */
#include <string.h>
#include <unistd.h>

#include "compiler/cmd/cmd_sim.h"
#include "results/db/results.h"

static bool parse_origin(const struct sim_cmd *o, enum cost_origin *most,
			 struct err *e)
{
	for (int k = COST_DEFAULT; k <= COST_HARDWARE; k++)
		if (!strcmp(o->costs, cost_origin_name(k))) {
			*most = (enum cost_origin)k;
			return true;
		}
	return err_set(e, ERR_USAGE, "--costs %s: wanted hardware, published "
		       "or default", o->costs);
}

static bool check_chip(const char *chip, struct err *e)
{
	struct buf known = { 0 };

	if (!chip || isa_chip_find(chip))
		return true;
	for (size_t i = 0; isa_chip_at(i); i++)
		buf_printf(&known, "%s%s", i ? ", " : "", isa_chip_at(i)->name);
	err_set(e, ERR_USAGE, "--chip %s: wanted one of %s", chip, known.data);
	buf_fini(&known);
	return false;
}

bool sim_load_costs(const struct sim_cmd *o, bool makes_db,
		    struct cost_model *m, struct err *e)
{
	enum cost_origin most = COST_DEFAULT;

	if (!parse_origin(o, &most, e) || !check_chip(o->chip, e)) {
		cost_init(m, COST_CHIP); /* callers end it, whatever happens */
		return false;
	}
	if (!cost_open(m, o->chip ? o->chip : COST_CHIP, o->db, makes_db, most,
		       &o->set, e))
		return false;
	if (m->n_ignored)
		cmd_remark(&o->cmd, "warning: %d rows of area cost are no "
			   "costs that this build knows", m->n_ignored);
	return true;
}

bool sim_cmd_costs(struct cmd *c, struct err *e)
{
	const struct sim_cmd *o = (struct sim_cmd *)c;
	struct cost_model m;
	struct table t;
	char text[128];
	bool ok = sim_load_costs(o, false, &m, e);

	table_init(&t, COST_COLUMNS);
	cost_list(&m, &t);
	ok = ok && cmd_table(c, &t, e);
	cost_summary(&m, text, sizeof(text));
	if (ok)
		cmd_remark(c, "%s", text);
	table_fini(&t);
	cost_fini(&m);
	return ok;
}

bool sim_cmd_import(struct cmd *c, struct err *e)
{
	const struct sim_cmd *o = (struct sim_cmd *)c;
	struct cost_import done;
	struct res_db *db = res_open(o->db, RES_WRITE, e);
	bool ok = db && check_chip(o->chip, e) &&
		  cost_import(db, c->argv[0], o->chip, &done, e);

	if (ok)
		fprintf(c->out, "%d published costs taken, %d rows are none "
			"of ours\n", done.taken, done.skipped);
	res_close(db);
	return ok;
}
