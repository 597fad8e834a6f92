/*
 * results/cmd/cmd_calibrate.c - how often this machine cries wolf, and what it
 * can hear.
 *
 * Many fresh processes of one and the same program.  Dealing them to two sides
 * that do not differ gives the share of false verdicts; making one side slower
 * gives the least change that is found.  Nothing in here knows how compare
 * judges: it uses the same test on the same rows.
 */
#include "results/cmd/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "results/process/process.h"

enum { POOL = 300 }; /* processes of each kind and condition */

/* What is measured, each process in less than a second. */
static const struct kind {
	const char *name, *area;
	const char *metric; /* whose rows say what can be detected */
	const char *params; /* part of those rows' parameters; "": any */
	const char *command; /* %m: folder of a model, %d: the database */
} kinds[] = {
	{ "dispatch", "dispatch", "latency", "", "t0-probe dispatch --device soft" },
	{ "latency", "cost", "latency", "", "t0-probe latency --device host "
				"--quick --inst add" },
	{ "gemm", "gemm", "flops", "", "t0-tune --device host --measure --dtype f32 "
				   "--shapes 512x512x512 "
				   "--jobs 1 --samples 100" },
	{ "decode", "engine", "speed", "\"decode\"", "t0-qwen3 bench --model %m --prefill 64 "
				       "--decode 128 --samples 12 --threads 1" },
	{ "compile", "compile", "time", "", "t0-cc --kernel softmax --repeat 20 "
					"--db %d" },
	{ "soft", "tiers", "throughput", "", "t0-probe tiers --device soft" },
};

struct calibrating {
	struct show *s;
	const struct kind *kind;
	const char *condition;
	struct pieces pieces;
	struct pool pool;
	struct planted_verdict planted; /* no trials: not asked for */
};

/* ------------------------------------------------------------- the pool -- */

static int by_time(const void *p, const void *q)
{
	const struct piece *a = p, *b = q;
	int c = piece_order(a, b);

	return c ? c : (a->facts->start_ns > b->facts->start_ns) -
		       (a->facts->start_ns < b->facts->start_ns);
}

static int by_side(const void *p, const void *q)
{
	const struct piece *a = p, *b = q;
	int c = piece_order(a, b);

	c = c ? c : strcmp(a->facts->side, b->facts->side);
	return c ? c : by_time(p, q);
}

static bool is_principal(const struct kind *k, const struct piece *p)
{
	return !strcmp(p->metric, k->metric) && strstr(p->params, k->params);
}

/* A row that chance decides, of the first p->n processes that have it. */
static void add_row(struct calibrating *c, const struct piece *v, size_t n)
{
	struct pool *p = &c->pool;
	struct measured m;
	bool above = true;

	measured_init(&m, v, n);
	for (size_t i = 0; i < n; i++)
		above = above && v[i].value > 0;
	if (n >= p->n && !m.exact && above) {
		p->principal[p->rows] = is_principal(c->kind, v);
		p->value[p->rows] = xcalloc(p->n, sizeof(double));
		for (size_t i = 0; i < p->n; i++)
			p->value[p->rows][i] = log(m.value[i]);
		p->rows++;
	}
	measured_fini(&m);
}

static size_t row_len(const struct pieces *p, size_t from)
{
	size_t n = 1;

	while (from + n < p->n && !piece_order(&p->v[from], &p->v[from + n]))
		n++;
	return n;
}

/*
 * A busy neighbour keeps processes from measuring a row now and then: rows
 * that half of them have count, each as often as the rarest of these.
 */
static void choose_length(struct calibrating *c)
{
	size_t half = c->pool.n / 2;

	for (size_t i = 0, k; i < c->pieces.n; i += k) {
		k = row_len(&c->pieces, i);
		if (k >= half && k < c->pool.n)
			c->pool.n = k;
	}
}

static bool load_pool(struct calibrating *c, const struct series *x,
		      struct err *e)
{
	struct pool *p = &c->pool;

	if (!pieces_of_results(c->s->db, &c->pieces, e,
			       "r.series = ? AND r.state = 'complete'", "t",
			       x->name))
		return false;
	if (!c->pieces.n)
		return err_set(e, ERR_INPUT, "%s stored no results",
			       c->kind->name);
	qsort(c->pieces.v, c->pieces.n, sizeof(*c->pieces.v), by_time);
	p->value = xcalloc(c->pieces.n, sizeof(*p->value));
	p->principal = xcalloc(c->pieces.n, sizeof(*p->principal));
	choose_length(c);
	for (size_t i = 0, k; i < c->pieces.n; i += k) {
		k = row_len(&c->pieces, i);
		add_row(c, &c->pieces.v[i], k);
	}
	p->alpha = FAMILY_ALPHA / (double)(p->rows ? p->rows : 1);
	if (!p->rows || p->n < 2 * (size_t)c->s->o.side)
		return err_set(e, ERR_INPUT, "%s: no row that chance decides "
			       "was measured by %d processes", c->kind->name,
			       2 * c->s->o.side);
	return true;
}

static void calibrating_fini(struct calibrating *c)
{
	for (size_t i = 0; i < c->pool.rows; i++)
		free(c->pool.value[i]);
	free(c->pool.value);
	free(c->pool.principal);
	pieces_fini(&c->pieces);
}

static bool store_calibration(struct calibrating *c, size_t side,
			      size_t trials, struct err *e)
{
	struct pool_verdict v = pool_judge(&c->pool, side, trials);
	struct res_db *db = c->s->db;
	int64_t host, build;
	char uuid[33];

	return res_uuid(uuid, e) && res_host_self(db, &host, e) &&
	       res_build_self(db, &build, e) && res_exec(db, e,
		"INSERT INTO calibrations(uuid, created_ns, host, build, kind, "
		"area, condition, processes, side, measures, alpha, trials, "
		"false_alarms, serial, serial_false, detectable, spread, "
		"drift, planted, planted_trials, planted_found, "
		"planted_passed) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
		"?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "tiiitttiiidiiiiddddiii", uuid, (int64_t)time_wall_ns(), host,
		build, c->kind->name, c->kind->area, c->condition,
		(int64_t)c->pool.n, (int64_t)side, (int64_t)c->pool.rows,
		FAMILY_ALPHA, (int64_t)trials, (int64_t)v.false_alarms,
		(int64_t)v.serial, (int64_t)v.serial_false, v.detectable,
		v.spread, v.drift, c->planted.trials ? c->planted.change : NAN,
		(int64_t)c->planted.trials, (int64_t)c->planted.found,
		(int64_t)c->planted.passed);
}

/* ------------------------------------------------------------- commands -- */

/* Beside this tool, as make leaves them and install puts them. */
static char *tool_beside(const char *name, struct err *e)
{
	struct buf path = { 0 };
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return program_find(name, e);
	self[len] = 0;
	buf_printf(&path, "%.*s/%s", (int)(strrchr(self, '/') - self), self,
		   name);
	char *found = program_find(path.data, e);
	buf_fini(&path);
	return found;
}

/* A model of random weights in the user's cache, made once. */
static bool model_folder(struct buf *path, struct err *e)
{
	char *folder = file_cache_folder("calibrate-model");
	char *tool = tool_beside("t0-qwen3", e);
	struct buf file = { 0 }, log = { 0 };
	bool ok = tool != NULL;

	buf_adds(path, folder ? folder : "/tmp/t0-calibrate-model");
	buf_printf(&file, "%s/config.json", path->data);
	buf_printf(&log, "%s/log", path->data);
	if (ok && access(file.data, R_OK)) {
		const char *argv[] = { tool, "make", "--quiet", "--model",
				       path->data, NULL };
		struct process p = { tool, argv, .log = log.data };
		ok = file_make_folders(path->data, e) && process_run(&p, e);
	}
	buf_fini(&file);
	buf_fini(&log);
	free(folder);
	free(tool);
	return ok || err_wrap(e, "making a model to measure");
}

/*
 * The words of the kind's command in `text`, a copy of it that they point into;
 * ends with NULL.
 */
static void split_command(const struct kind *k, char *text, const char *model,
			  const char *db, const char **word, size_t most)
{
	size_t n = 0;

	memcpy(text, k->command, strlen(k->command) + 1);
	for (char *w = strtok(text, " "); w && n + 1 < most;
	     w = strtok(NULL, " "))
		word[n++] = !strcmp(w, "%m") ? model :
			    !strcmp(w, "%d") ? db : w;
	word[n] = NULL;
}

/* The program of this name in the folder of those that lose 5 %. */
static char *planted_tool(const char *folder, const char *name, struct err *e)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%s", folder, name);
	char *found = program_find(path.data, e);
	buf_fini(&path);
	return found || err_wrap(e, "--planted") ? found : NULL;
}

/* `planted`: a folder, whose program then takes turns; NULL: none. */
static bool run_pool(struct calibrating *p, struct series *x,
		     const char *planted, struct err *e)
{
	bool busy = !strcmp(p->condition, "busy");
	struct buf model = { 0 };
	char text[256];
	const char *word[24];
	struct series_side side[] = { { .name = "a" }, { .name = "planted" } };
	pid_t neighbour = 0;
	bool ok = !strstr(p->kind->command, "%m") ||
		  model_folder(&model, e);

	split_command(p->kind, text, model.data, res_db_path(p->s->db), word,
		      ARRAY_SIZE(word));
	char *program = ok ? tool_beside(word[0], e) : NULL;
	char *other = program && planted ? planted_tool(planted, word[0], e) :
					   NULL;
	side[0].program = program;
	side[1].program = other;
	x->argv = word;
	x->side = side;
	x->n_sides = planted ? 2 : 1;
	x->label = p->condition;
	ok = program && (!planted || other) && (!busy || neighbour_start(&neighbour, e)) &&
	     series_run(x, e);
	neighbour_stop(neighbour);
	x->side = NULL;
	free(program);
	free(other);
	buf_fini(&model);
	return ok;
}

/* The slower program beside the other: a fifth of the pool's processes each. */
static bool try_planted(struct calibrating *c, const char *folder,
			struct err *e)
{
	const struct show_opts *o = &c->s->o;
	struct series x = { .s = c->s, .processes = (size_t)o->processes / 5 };
	struct pieces p = { 0 };

	if (x.processes < 2 * (size_t)o->side)
		x.processes = 2 * (size_t)o->side;
	bool ok = run_pool(c, &x, folder, e) &&
		  pieces_of_results(c->s->db, &p, e, "r.series = ? AND "
				    "r.state = 'complete'", "t", x.name);
	if (ok) {
		size_t n = 0;
		for (size_t i = 0; i < p.n; i++)
			if (is_principal(c->kind, &p.v[i]))
				p.v[n++] = p.v[i];
		p.n = n;
		qsort(p.v, p.n, sizeof(*p.v), by_side);
		c->planted = pool_judge_planted(&p, (size_t)o->side,
						(size_t)o->trials / 4 + 1,
						c->pool.alpha);
	}
	pieces_fini(&p);
	return ok;
}

static bool calibrate(struct show *s, const struct kind *kind,
		      const char *condition, struct err *e)
{
	size_t side = (size_t)s->o.side;
	struct series x = { .s = s, .processes = (size_t)s->o.processes };
	struct calibrating c = { .s = s, .kind = kind, .condition = condition,
				 .pool = { .n = x.processes, .seed = 1 } };

	cmd_remark(&s->cmd, "%s, %s", kind->name, condition);
	bool ok = run_pool(&c, &x, NULL, e) && load_pool(&c, &x, e) &&
		  (!s->o.planted || try_planted(&c, s->o.planted, e)) &&
		  store_calibration(&c, side, (size_t)s->o.trials, e);
	calibrating_fini(&c);
	return ok || err_wrap(e, "calibrating %s, %s", kind->name, condition);
}

static const struct kind *find_kind(const char *name, struct err *e)
{
	struct buf all = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		buf_printf(&all, "%s%s", i ? ", " : "", kinds[i].name);
	err_set(e, ERR_USAGE, "no kind \"%s\"; wanted %s", name, all.data);
	buf_fini(&all);
	return NULL;
}

static const char columns[] =
	"kind,condition,calibrated,#processes,#side,#rows,#trials,#false,"
	"#serial,#serial false,#detectable,#spread,#drift,#planted,"
	"#trials of it,#found,#passed";

static bool print_calibrations(struct show *s, struct err *e)
{
	struct calibrations known = { 0 };
	struct table t;
	bool ok = calibrations_load(s->db, &known, e);
	table_init(&t, columns);
	for (size_t i = 0; ok && i < known.n; i++) {
		const struct calibration *k = &known.v[i];
		const int64_t count[] = { k->processes, k->side, k->measures,
					  k->trials, k->false_alarms,
					  k->serial, k->serial_false };
		const double share[] = { k->detectable, k->spread, k->drift,
					 k->planted };
		const int64_t planted[] = { k->planted_trials,
					    k->planted_found,
					    k->planted_passed };
		table_row(&t);
		table_cell(&t, 0, "%s", k->kind);
		table_cell(&t, 1, "%s", k->condition);
		table_cell(&t, 2, "%s", k->created);
		for (int c = 0; c < 7; c++)
			table_cell(&t, 3 + c, "%lld", (long long)count[c]);
		for (int c = 0; c < 4; c++)
			if (isfinite(share[c]))
				table_cell(&t, 10 + c, "%.3g", share[c]);
		for (int c = 0; c < 3 && k->planted_trials; c++)
			table_cell(&t, 14 + c, "%lld", (long long)planted[c]);
	}
	ok = ok && cmd_table(&s->cmd, &t, e);
	table_fini(&t);
	calibrations_fini(&known);
	return ok;
}

static bool check_numbers(const struct show_opts *o, struct err *e)
{
	if (o->side < 4 || o->side % 2 || o->trials < 1 ||
	    o->processes < 2 * o->side)
		return err_set(e, ERR_USAGE, "--side %d, --processes %d, "
			       "--trials %d: wanted an even side of at least "
			       "4, a pool of two sides, and a trial", o->side,
			       o->processes, o->trials);
	return true;
}

bool res_cmd_calibrate(struct cmd *c, struct err *e)
{
	static const char *const conditions[] = { "quiet", "busy" };
	struct show *s = (struct show *)c;

	s->o.processes = s->o.processes ? s->o.processes : POOL;
	bool ok = check_numbers(&s->o, e);

	for (size_t i = 0; ok && i < ARRAY_SIZE(conditions); i++) {
		if (s->o.condition && strcmp(s->o.condition, conditions[i]))
			continue;
		for (int k = 0; ok && k < c->argc; k++) {
			const struct kind *kind = find_kind(c->argv[k], e);
			ok = kind && calibrate(s, kind, conditions[i], e);
		}
		for (size_t k = 0; ok && !c->argc && k < ARRAY_SIZE(kinds); k++)
			ok = calibrate(s, &kinds[k], conditions[i], e);
	}
	return ok && print_calibrations(s, e);
}
