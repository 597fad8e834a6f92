/*
 * results/cmd/commits.c - builds of commits, measured in turns and judged.
 */
#include "results/cmd/commits.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"

/* ------------------------------------------------------- what is measured -- */

/* Sqlite's text of the command that measured a case last; NULL: no run did. */
static bool find_command(struct show *s, const char *name, struct buf *out,
			 struct err *e)
{
	struct table t;

	table_init(&t, "argv");
	bool ok = res_query(s->db, &t, 0, e, "SELECT argv FROM v_runs WHERE "
			    "run = (SELECT max(run) FROM v_results WHERE "
			    "area || '/' || name = ?)", "t", name);
	if (ok && t.n_rows)
		buf_adds(out, t.row[0][0]);
	table_fini(&t);
	return ok;
}

/* Without --db: a process finds its database in T0_DB. */
static void drop_database(wordexp_t *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->we_wordc; i++) {
		char *word = w->we_wordv[i];
		size_t drop = !strcmp(word, "--db") ? 2 :
			      !strncmp(word, "--db=", 5);
		for (size_t k = 0; k < drop && i + k < w->we_wordc; k++)
			free(w->we_wordv[i + k]);
		if (drop)
			i += drop - 1;
		else
			w->we_wordv[n++] = word;
	}
	w->we_wordv[n] = NULL;
	w->we_wordc = n;
}

static bool take_stored(struct commits *c, const char *text, struct err *e)
{
	if (wordexp(text, &c->stored, WRDE_NOCMD | WRDE_UNDEF) ||
	    !c->stored.we_wordc)
		return err_set(e, ERR_INPUT, "the run was made by \"%s\", "
			       "which cannot be read as a command; give it "
			       "behind --", text);
	drop_database(&c->stored);
	c->words = (const char *const *)c->stored.we_wordv;
	return true;
}

static bool choose_words(struct commits *c, const char *const *words,
			 struct err *e)
{
	struct buf text = { 0 };
	bool ok;

	if (!words[0])
		return err_set(e, ERR_USAGE, "wanted a command or cases behind "
			       "--, such as -- build/rel/t0-probe latency, or "
			       "-- cost/v_add_f32");
	c->words = words;
	ok = find_command(c->s, words[0], &text, e);
	if (ok && text.len) {
		c->cases = words;
		ok = take_stored(c, text.data, e);
		if (ok)
			cmd_remark(&c->s->cmd, "measuring with %s", text.data);
	}
	buf_fini(&text);
	return ok;
}

bool commits_open(struct commits *c, struct show *s,
		  const char *const *words, struct err *e)
{
	*c = (struct commits){ .s = s, .shard = c->shard };
	cmd_catch_signals(&s->cmd);
	bool ok = choose_words(c, words, e) &&
		  calibrations_load(s->db, &c->known, e) &&
		  trees_open(&c->trees, s, e);
	if (!ok)
		commits_close(c);
	return ok;
}

void commits_close(struct commits *c)
{
	if (c->trees.repository)
		trees_close(&c->trees, c->s->o.keep || *c->s->cmd.stop);
	calibrations_fini(&c->known);
	wordfree(&c->stored);
	*c = (struct commits){ 0 };
}

/* ---------------------------------------------------------- candidates -- */

/* The program in the tree: by its path there, or by its name. */
static void program_path(const struct commits *c, const struct tree *tree,
			 struct buf *out)
{
	const char *word = c->words[0], *slash = strrchr(word, '/');

	if (slash && *word != '/')
		buf_printf(out, "%s/%s", tree->path.data, word);
	else
		buf_printf(out, "%s/build/rel/%s", tree->path.data,
			   slash ? slash + 1 : word);
}

bool candidate_build(const struct commits *c, struct candidate *k,
		     const char *commit, const char *patch, struct err *e)
{
	if (!trees_build(&c->trees, commit, patch, &k->tree, e))
		return false;
	if (!k->tree.built)
		return true;
	program_path(c, &k->tree, &k->program);
	if (access(k->program.data, X_OK))
		return err_set(e, ERR_INPUT, "%s: no such program in the tree "
			       "of %s; wanted one that it builds, by its path "
			       "there, such as build/rel/t0-probe",
			       c->words[0], k->tree.name);
	buf_adds(&k->key, k->tree.key);
	k->side = (struct series_side){ .name = k->tree.name,
					.program = k->program.data,
					.dir = k->tree.path.data,
					.key = k->key.data };
	return tree_code(&k->tree, k->program.data, k->code, e);
}

void candidate_fini(struct candidate *k)
{
	tree_fini(&k->tree);
	buf_fini(&k->program);
	buf_fini(&k->key);
	pieces_fini(&k->pieces);
}

/* ------------------------------------------------------------ measured -- */

static bool is_case(const struct commits *c, const struct piece *p)
{
	struct buf name = { 0 };
	bool found = !c->cases;

	buf_printf(&name, "%s/%s", p->area, p->name);
	if (!res_shard_has(&c->shard, name.data)) {
		buf_fini(&name);
		return false;
	}
	for (const char *const *k = c->cases; k && *k && !found; k++)
		found = !strcmp(*k, name.data);
	buf_fini(&name);
	return found;
}

static bool load_side(const struct commits *c, struct series *x, size_t i,
		      struct candidate *k, struct err *e)
{
	char spec[24];
	int64_t run;
	size_t n = 0;

	if (!series_first_run(x, i, &run, e))
		return false;
	snprintf(spec, sizeof(spec), "%lld", (long long)run);
	pieces_fini(&k->pieces);
	if (!side_load(c->s, spec, &k->pieces, e))
		return err_wrap(e, "%s", k->tree.name);
	for (size_t j = 0; j < k->pieces.n; j++)
		if (is_case(c, &k->pieces.v[j]))
			k->pieces.v[n++] = k->pieces.v[j];
	k->pieces.n = n;
	return n || c->shard.count ||
	       err_set(e, ERR_INPUT, "%s measures no %s in %s",
			    c->words[0], c->cases[0], k->tree.name);
}

bool commits_measure(const struct commits *c, struct series *x,
		     struct candidate *const *k, size_t n, struct err *e)
{
	VEC(struct series_side) side = { 0 };

	for (size_t i = 0; i < n; i++)
		vec_push(&side, k[i]->side);
	x->s = c->s;
	x->argv = c->words;
	x->shard = &c->shard;
	x->side = side.v;
	x->n_sides = n;
	x->foreign = true;
	bool ok = series_run(x, e);
	for (size_t i = 0; ok && i < n; i++)
		ok = load_side(c, x, i, k[i], e);
	/* The caller's, whose sides outlive this. */
	for (size_t i = 0; i < n && x->failed; i++)
		if (x->failed == &side.v[i]) {
			x->failed = &k[i]->side;
			break;
		}
	x->side = NULL;
	vec_fini(&side);
	return ok;
}

bool commits_judge(const struct commits *c, const struct candidate *a,
		   const struct candidate *b, double alpha, struct pairs *out,
		   struct err *e)
{
	*out = (struct pairs){ 0 };
	if (!pairs_make(out, &a->pieces, &b->pieces, &c->s->o.allow, e))
		return false;
	pairs_judge(out, alpha, &c->known);
	return true;
}
