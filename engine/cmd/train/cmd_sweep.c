/*
 * engine/cmd/train/cmd_sweep.c - t0-qwen3 train --sweep: many runs, and which
 * of them is best.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/train/cmd_train.h"
#include "results/db/results.h"

enum { SWEEP_BYTES = 1 << 20, SWEEP_POINTS = 100000 };

/* A line of the file: an option and its values, words of the file's text. */
struct axis {
	char *option;
	VEC(char *) value;
};

struct point {
	char *name;   /* its folder: "rate=1e-3,seed=2" */
	size_t group; /* of points that differ by their seeds only */
	bool done;
	double loss; /* the least that it has held out; NAN: not done */
};

struct sweep {
	struct qwen_cmd *c;
	const char *into;
	struct res_shard shard;
	struct buf text;       /* of the file */
	VEC(struct axis) axes; /* the last runs fastest */
	VEC(struct point) points;
};

/* Options of train that a sweep may vary: how a model learns, not from what. */
static const char *const may_vary[] = {
	"accumulate",	"average",  "beta1",	 "beta2",     "clip",
	"cooldown",	"decay",    "ffn",	 "head-dim",  "heads",
	"hidden",	"kv-heads", "layers",	 "length",    "lora",
	"lora-targets", "momentum", "optimizer", "precision", "rate",
	"rate-end",	"rows",	    "schedule",	 "seed",      "steps",
	"vocab",	"warmup",
};

/* ---- the file ---- */

static bool check_option(const struct sweep *s, const struct axis *a, int line,
			 struct err *e)
{
	struct cmd_near near = { .name = a->option };

	for (size_t i = 0; i < ARRAY_SIZE(may_vary); i++) {
		if (strcmp(may_vary[i], a->option) == 0)
			return true;
		cmd_near_try(&near, may_vary[i]);
	}
	return err_set(
		e, ERR_INPUT, "%s:%d: %s: wanted %s", s->c->sweep, line,
		a->option,
		near.meant ? near.meant :
			     "an option of how a model learns, such as rate or "
			     "optimizer");
}

/* Whether the words of a line make an axis. */
static bool check_axis(const struct sweep *s, const struct axis *a, int line,
		       struct err *e)
{
	const char *file = s->c->sweep;

	if (!check_option(s, a, line, e))
		return false;
	for (size_t i = 0; i + 1 < s->axes.n; i++)
		if (strcmp(s->axes.v[i].option, a->option) == 0)
			return err_set(e, ERR_INPUT,
				       "%s:%d: %s: there is a "
				       "line of it already",
				       file, line, a->option);
	for (size_t i = 0; i < a->value.n; i++)
		if (strpbrk(a->value.v[i], "/=") || *a->value.v[i] == '-')
			return err_set(e, ERR_INPUT,
				       "%s:%d: %s: wanted a "
				       "value without '/' and '=', which would "
				       "be part of a folder's name",
				       file, line, a->value.v[i]);
	return a->value.n ||
	       err_set(e, ERR_INPUT, "%s:%d: %s: wanted its values behind it",
		       file, line, a->option);
}

static bool read_file(struct sweep *s, struct err *e)
{
	char *rest, *words;
	int line = 1;

	if (!file_read(s->c->sweep, SWEEP_BYTES, &s->text, e))
		return false;
	buf_addc(&s->text, '\n');
	for (char *at = s->text.data; *at; at = rest, line++) {
		rest = at + strcspn(at, "\n");
		*rest++ = 0;
		at[strcspn(at, "#")] = 0;
		char *word = strtok_r(at, " \t\r", &words);
		if (!word)
			continue;
		struct axis *a = vec_add(&s->axes);
		*a = (struct axis){ .option = word };
		while ((word = strtok_r(NULL, " \t\r", &words)))
			vec_push(&a->value, word);
		if (!check_axis(s, a, line, e))
			return false;
	}
	return s->axes.n ||
	       err_set(e, ERR_INPUT, "%s: no line such as \"rate 1e-3 2e-3\"",
		       s->c->sweep);
}

/* ---- the points ---- */

/* How many points lie between two values of an axis. */
static size_t stride_of(const struct sweep *s, size_t axis)
{
	size_t n = 1;

	for (size_t i = s->axes.n - 1; i > axis; i--)
		n *= s->axes.v[i].value.n;
	return n;
}

static size_t index_at(const struct sweep *s, size_t point, size_t axis)
{
	return point / stride_of(s, axis) % s->axes.v[axis].value.n;
}

static bool is_seed(const struct axis *a)
{
	return strcmp(a->option, "seed") == 0;
}

/* The point's name; `seeds`: with its seed. */
static char *name_of(const struct sweep *s, size_t point, bool seeds)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < s->axes.n; i++) {
		const struct axis *a = &s->axes.v[i];
		if (seeds || !is_seed(a))
			buf_printf(&b, "%s%s=%s", b.len ? "," : "", a->option,
				   a->value.v[index_at(s, point, i)]);
	}
	if (!b.len)
		buf_adds(&b, "all seeds");
	return b.data;
}

/* The first of the points that differ from this one by their seeds only. */
static size_t group_of(const struct sweep *s, size_t point)
{
	for (size_t i = 0; i < s->axes.n; i++)
		if (is_seed(&s->axes.v[i]))
			return point - index_at(s, point, i) * stride_of(s, i);
	return point;
}

static bool list_points(struct sweep *s, struct err *e)
{
	size_t n = 1;

	for (size_t i = 0; i < s->axes.n; i++)
		if (!size_mul(n, s->axes.v[i].value.n, &n) || n > SWEEP_POINTS)
			return err_set(e, ERR_INPUT,
				       "%s: wanted at most %d "
				       "runs",
				       s->c->sweep, SWEEP_POINTS);
	for (size_t i = 0; i < n; i++) {
		struct point *p = vec_add(&s->points);
		*p = (struct point){ .name = name_of(s, i, true),
				     .group = group_of(s, i),
				     .loss = NAN };
		if (strlen(p->name) > NAME_MAX)
			return err_set(e, ERR_INPUT,
				       "%s: \"%s\" would be a "
				       "folder's name; wanted at most %d bytes",
				       s->c->sweep, p->name, NAME_MAX);
	}
	return true;
}

/* ---- their runs ---- */

/* As if the command line had said so. */
static bool set_options(const struct sweep *s, size_t point, struct err *e)
{
	struct cli_line l = { .name = "t0-qwen3 train",
			      .opt = s->c->cmd.tool->options };
	const size_t n = s->axes.n;
	char **words = xcalloc(2 * n + 2, sizeof(*words));

	words[0] = s->c->cmd.line_argv[0];
	for (size_t i = 0; i < n; i++) {
		struct buf b = { 0 };
		const struct axis *a = &s->axes.v[i];

		buf_printf(&b, "--%s", a->option);
		words[1 + 2 * i] = b.data;
		words[2 + 2 * i] = a->value.v[index_at(s, point, i)];
	}
	bool ok = cli_parse(&l, (int)(2 * n + 1), words, e) ||
		  err_wrap(e, "%s", s->c->sweep);
	for (size_t i = 0; i < n; i++)
		free(words[1 + 2 * i]);
	free(words);
	return ok;
}

/* Learns at a point, unless another shard does; looks what there is. */
static bool visit_point(struct sweep *s, size_t i, bool learn, struct err *e)
{
	struct point *p = &s->points.v[i];
	const struct qwen_cmd before = *s->c;
	struct buf into = { 0 };

	buf_printf(&into, "%s/%s", s->into, p->name);
	bool ok = set_options(s, i, e);
	if (ok && learn) {
		cmd_remark(&s->c->cmd, "run %zu of %zu: %s", i + 1, s->points.n,
			   p->name);
		s->c->resume = true;
		ok = qwen_school_teach(s->c, into.data, NULL, e) ||
		     err_wrap(e, "%s", p->name);
	}
	ok = ok && qwen_log_best(s->c, into.data, &p->done, &p->loss, e);
	*s->c = before;
	buf_fini(&into);
	return ok;
}

/* A value that cannot be is found before a run, not behind some hours. */
static bool check_points(const struct sweep *s, struct err *e)
{
	const struct qwen_cmd before = *s->c;
	bool ok = true;

	for (size_t i = 0; ok && i < s->points.n; i++) {
		ok = set_options(s, i, e);
		*s->c = before;
	}
	return ok;
}

static bool visit_all(struct sweep *s, struct err *e)
{
	for (size_t i = 0; i < s->points.n; i++)
		if (res_shard_has(&s->shard, s->points.v[i].name) &&
		    !visit_point(s, i, true, e))
			return false;
	for (size_t i = 0; i < s->points.n; i++)
		if (!visit_point(s, i, false, e))
			return false;
	return true;
}

/* ---- the best ---- */

/* Over the seeds of one choice of all others. */
struct verdict {
	size_t first; /* its first point */
	size_t least; /* that with the least loss */
	size_t n, missing;
	double mean, error; /* error: of the mean; NAN for one seed */
};

static int by_mean(const void *a, const void *b)
{
	const struct verdict *x = a, *y = b;

	if (!x->missing != !y->missing)
		return x->missing ? 1 : -1;
	if (x->mean != y->mean)
		return x->mean < y->mean ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

static struct verdict judge(const struct sweep *s, size_t first)
{
	struct verdict v = { .first = first, .least = first, .error = NAN };
	const struct point *p = s->points.v;
	double sum = 0, squares = 0;

	for (size_t i = first; i < s->points.n; i++) {
		if (p[i].group != first)
			continue;
		v.missing += !p[i].done;
		v.n++;
		sum += p[i].loss;
		if (p[i].loss < p[v.least].loss)
			v.least = i;
	}
	v.mean = sum / (double)v.n;
	for (size_t i = first; i < s->points.n; i++)
		if (p[i].group == first)
			squares += (p[i].loss - v.mean) * (p[i].loss - v.mean);
	if (v.n > 1)
		v.error = sqrt(squares / (double)(v.n - 1) / (double)v.n);
	return v;
}

/*
 * The rule: of the choices whose mean lies within one standard error of the
 * least, the file's first, so that of equals the one that its author put first
 * is taken (Breiman et al., Classification and Regression Trees, 1984, 3.4.3).
 * `v` is sorted; the place of the best in it.
 */
static size_t choose(const struct verdict *v, size_t n)
{
	const double most = v[0].mean + (isnan(v[0].error) ? 0 : v[0].error);
	size_t best = 0;

	for (size_t i = 0; i < n && v[i].mean <= most; i++)
		if (v[i].first < v[best].first)
			best = i;
	return best;
}

/* INTO/best, which `generate --model` takes. */
static bool link_best(const struct sweep *s, const char *name, struct err *e)
{
	struct buf at = { 0 }, fresh = { 0 };

	buf_printf(&at, "%s/best", s->into);
	buf_printf(&fresh, "%s/best.%d", s->into, (int)getpid());
	bool ok = (symlink(name, fresh.data) == 0 &&
		   rename(fresh.data, at.data) == 0) ||
		  err_sys(e, ERR_IO, errno, "%s", at.data);
	unlink(fresh.data);
	buf_fini(&at);
	buf_fini(&fresh);
	return ok;
}

static bool print_verdicts(const struct sweep *s, const struct verdict *v,
			   size_t n, size_t best, struct err *e)
{
	struct table t;

	table_init(&t, "choice,#seeds,#valid_loss,#standard_error,folder,"
		       "verdict");
	for (size_t i = 0; i < n; i++) {
		char *name = name_of(s, v[i].first, false);
		table_row(&t);
		table_cell(&t, 0, "%s", name);
		table_cell(&t, 1, "%zu", v[i].n);
		if (!v[i].missing)
			table_cell(&t, 2, "%.6f", v[i].mean);
		if (!v[i].missing && !isnan(v[i].error))
			table_cell(&t, 3, "%.6f", v[i].error);
		table_cell(&t, 4, "%s", s->points.v[v[i].least].name);
		table_cell(&t, 5, "%s",
			   i == best	? "best" :
			   v[i].missing ? "unfinished" :
					  "");
		free(name);
	}
	bool ok = cmd_table(&s->c->cmd, &t, e);
	table_fini(&t);
	return ok;
}

static bool report(const struct sweep *s, struct err *e)
{
	VEC(struct verdict) v = { 0 };
	size_t missing = 0, best = SIZE_MAX;
	bool ok = true;

	for (size_t i = 0; i < s->points.n; i++)
		if (s->points.v[i].group == i) {
			vec_push(&v, judge(s, i));
			missing += v.v[v.n - 1].missing;
		}
	qsort(v.v, v.n, sizeof(*v.v), by_mean);
	if (missing) {
		cmd_remark(&s->c->cmd,
			   "%zu of %zu runs are not in %s yet; "
			   "the best is known when the other shards have ended",
			   missing, s->points.n, s->into);
	} else {
		best = choose(v.v, v.n);
		ok = link_best(s, s->points.v[v.v[best].least].name, e);
	}
	ok = ok && print_verdicts(s, v.v, v.n, best, e);
	vec_fini(&v);
	return ok;
}

bool qwen_sweep_run(struct qwen_cmd *c, const char *into, struct err *e)
{
	struct sweep s = { .c = c, .into = into };
	bool ok = res_shard_parse(c->shard, &s.shard, e);

	if (!c->db)
		c->db = getenv("T0_DB");
	if (ok && !c->valid.n && !(c->valid_share > 0))
		ok = err_set(e, ERR_USAGE,
			     "--sweep chooses by what is held "
			     "out; wanted --valid, or --valid-share above 0");
	ok = ok && read_file(&s, e) && list_points(&s, e) &&
	     check_points(&s, e) && file_make_folders(into, e) &&
	     visit_all(&s, e) && report(&s, e);
	for (size_t i = 0; i < s.axes.n; i++)
		vec_fini(&s.axes.v[i].value);
	for (size_t i = 0; i < s.points.n; i++)
		free(s.points.v[i].name);
	vec_fini(&s.axes);
	vec_fini(&s.points);
	buf_fini(&s.text);
	return ok;
}
