/*
 * engine/cmd/serve/cmd_load_plan.c - which requests come when.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/cmd/serve/cmd_load.h"

/* More than any server's context. */
enum { MOST_WORDS = 1 << 20 };

void load_run_free(struct load_run *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->v[i].prompt);
		vec_fini(&r->v[i].gaps);
		buf_fini(&r->v[i].text);
	}
	free(r->v);
	*r = (struct load_run){ 0 };
}

/* Short words, as most are one token each. */
static char *words_make(uint64_t n, uint64_t *state)
{
	static const char *const words[] = {
		"the", "of",   "and", "to",   "in",   "a",     "is",   "that",
		"for", "it",   "as",  "was",  "with", "be",    "by",   "on",
		"not", "he",   "his", "but",  "at",   "are",   "this", "have",
		"had", "from", "or",  "they", "an",   "which", "one",  "we",
	};
	struct buf b = { 0 };

	for (uint64_t i = 0; i < n; i++)
		buf_printf(&b, "%s%s", i ? " " : "",
			   words[random_next(state) % ARRAY_SIZE(words)]);
	return b.data;
}

static char *prompt_make(const struct load_plan *p, uint64_t words,
			 uint64_t *state)
{
	return p->text ? xstrdup(p->text) : words_make(words, state);
}

void load_plan_chance(struct load_run *out, const struct load_plan *p,
		      double rate)
{
	uint64_t state = p->seed, words = p->words_seed;
	double at = 0;

	out->n = p->requests;
	out->v = xcalloc(out->n, sizeof(*out->v));
	for (size_t i = 0; i < out->n; i++) {
		/* In (0, 1], so that the logarithm is finite. */
		double u = ldexp((double)(random_next(&state) >> 11) + 1, -53);
		at -= log(u) / rate;
		out->v[i].at = at;
		out->v[i].tokens = p->tokens;
		out->v[i].seed = p->words_seed + i;
		out->v[i].prompt = prompt_make(p, p->words, &words);
	}
}

/* ---- traces ---- */

struct requests {
	struct load_request *v;
	size_t n, cap;
};

static bool count_read(const json_t *line, const char *name, uint64_t most,
		       uint64_t *out, struct err *e)
{
	const json_t *j = json_object_get(line, name);

	if (!j)
		return true;
	if (!json_is_integer(j) || json_integer_value(j) < 1 ||
	    json_integer_value(j) > (json_int_t)most)
		return err_set(e, ERR_INPUT,
			       "\"%s\": wanted a number from 1 "
			       "to %llu",
			       name, (unsigned long long)most);
	*out = (uint64_t)json_integer_value(j);
	return true;
}

static bool line_read(struct requests *all, const struct load_plan *p,
		      const json_t *line, uint64_t *state, struct err *e)
{
	const json_t *time = json_object_get(line, "timestamp");
	const json_t *prompt = json_object_get(line, "prompt");
	uint64_t words = p->words, tokens = p->tokens;
	double at = json_number_value(time) / 1000;

	if (!json_is_number(time) || !(at >= 0))
		return err_set(e, ERR_INPUT,
			       "wanted {\"timestamp\": "
			       "milliseconds, ...}");
	if (all->n && at < all->v[all->n - 1].at)
		return err_set(e, ERR_INPUT,
			       "\"timestamp\" %g comes before "
			       "the one of the line above",
			       at * 1000);
	if (prompt && !json_is_string(prompt))
		return err_set(e, ERR_INPUT, "\"prompt\": wanted a text");
	if (!count_read(line, "input_length", MOST_WORDS, &words, e) ||
	    !count_read(line, "output_length", UINT32_MAX / 2, &tokens, e))
		return false;
	vec_push(all,
		 ((struct load_request){
			 .at = at,
			 .tokens = (uint32_t)tokens,
			 .seed = p->words_seed + all->n,
			 .prompt = prompt ? xstrdup(json_string_value(prompt)) :
					    prompt_make(p, words, state) }));
	return true;
}

bool load_plan_trace(struct load_run *out, const struct load_plan *p,
		     const char *path, struct err *e)
{
	struct requests all = { 0 };
	struct file_lines l;
	uint64_t state = p->words_seed;
	char *text;
	size_t len;
	bool ok;

	if (!file_lines_open(&l, path, 1 << 26, e))
		return false;
	while ((ok = file_lines_next(&l, &text, &len, e)) && text) {
		json_error_t bad;
		json_t *line;
		if (!text[strspn(text, " \t\r")])
			continue;
		line = json_loadb(text, len, 0, &bad);
		ok = line ? line_read(&all, p, line, &state, e) :
			    err_set(e, ERR_INPUT, "%s", bad.text);
		json_decref(line);
		if (!ok) {
			err_wrap(e, "%s:%llu", path,
				 (unsigned long long)l.line);
			break;
		}
	}
	file_lines_close(&l);
	if (ok && !all.n)
		ok = err_set(e, ERR_INPUT, "%s: has no line", path);
	*out = (struct load_run){ all.v, all.n };
	if (!ok)
		load_run_free(out);
	return ok;
}
