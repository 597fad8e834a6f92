/*
 * Command lines that work, and what they do when nobody attacks them.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/attack/tools/campaign.h"

const struct recipe recipes[] = {
#define RECIPE(tool, status, flags, line) { tool, status, flags, line },
#include "tests/attack/tools/recipes.def"
#undef RECIPE
};
const size_t n_recipes = ARRAY_SIZE(recipes);

/* Slow ones are taken every sixteenth time. */
const struct recipe *recipe_any(struct attack *a, unsigned with,
				unsigned without)
{
	for (;;) {
		const struct recipe *r = &recipes[below(a, n_recipes)];

		if ((r->flags & with) != with || r->flags & without ||
		    (r->flags & PRELOADS && a->c->sanitized))
			continue;
		if (!(r->flags & SLOW) || one_in(a, 16))
			return r;
	}
}

/* The file name that begins at `s`. */
static char *file_name(struct attack *a, const char *s)
{
	return arena_printf(&a->mem, "%.*s", (int)strspn(s,
		"abcdefghijklmnopqrstuvwxyz0123456789._-"), s);
}

static void take_word(struct attack *a, char *word)
{
	char *out = word;

	for (const char *s = word; *s; s++) {
		const bool inside = s > word && isalnum((unsigned char)s[-1]);

		if ((*s == '@' || *s == '%') && !inside) {
			char *name = file_name(a, s + 1);

			if (*s == '%')
				vec_push(&a->outputs, name);
			else
				vec_push(&a->inputs, name);
			continue;
		}
		*out++ = *s == '~' ? ' ' : *s;
	}
	*out = '\0';
	vec_push(&a->words, word);
}

void recipe_take(struct attack *a, const struct recipe *r)
{
	char *line = arena_strdup(&a->mem, r->line), *rest = NULL;

	a->recipe = r;
	a->tool = r->tool;
	for (char *w = strtok_r(line, " ", &rest); w;
	     w = strtok_r(NULL, " ", &rest))
		take_word(a, w);
	for (size_t i = 0; i < a->inputs.n; i++)
		if (!seed_copy(a, a->inputs.v[i]))
			fault(a, "the campaign cannot copy %s",
			      a->inputs.v[i]);
}

/* ---- without an attack ---- */

static void add_files(struct attack *a, struct buf *out)
{
	for (size_t i = 0; i < a->outputs.n; i++) {
		char path[512];
		struct err e = { 0 };

		snprintf(path, sizeof(path), "%s/%s", a->folder,
			 a->outputs.v[i]);
		file_read(path, 0, out, &e);
		buf_addc(out, '\0');
	}
}

static void make_reference(struct attack *a, struct reference *r)
{
	struct attack calm = {
		.c = a->c, .family = a->family, .number = a->number,
	};
	struct outcome o;

	snprintf(calm.folder, sizeof(calm.folder), "%s/calm", a->c->room);
	mkdir(calm.folder, 0777);
	chmod(calm.folder, 0777);
	environ_usual(&calm);
	recipe_take(&calm, a->recipe);
	const int64_t before = db_runs(&calm);
	launch(&calm, &o);
	judge_exact(&calm, &o, a->recipe->status, NULL);
	r->works = !calm.fault.len;
	if (!r->works)
		fault(a, "without an attack: %s", calm.fault.data);
	r->status = o.status;
	r->seconds = o.seconds;
	r->runs = db_runs(&calm) - (before > 0 ? before : 0);
	buf_add(&r->out, o.out.data, o.out.len);
	add_files(&calm, &r->files);
	r->known = true;
	outcome_fini(&o);
	remove_tree(calm.folder);
	vec_fini(&calm.environ);
	vec_fini(&calm.words);
	vec_fini(&calm.inputs);
	vec_fini(&calm.outputs);
	buf_fini(&calm.fault);
	arena_fini(&calm.mem);
}

const struct reference *recipe_reference(struct attack *a)
{
	static struct reference all[ARRAY_SIZE(recipes)];
	struct reference *r = &all[a->recipe - recipes];

	if (!r->known)
		make_reference(a, r);
	return r;
}
