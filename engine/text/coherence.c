/*
 * engine/text/coherence.c - checks of generated text: loops, shares, limits.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/text.h"

enum side { LEAST, MOST };

static const struct {
	const char *name, *what;
	double value;
	enum side side;
} limit[] = {
#define LIMIT(name, value, side, what) { #name, what, value, side },
#include "engine/text/coherence.def"
};

void qwen_limits_init(struct qwen_limits *l)
{
	for (int i = 0; i < QWEN_LIMITS; i++)
		l->v[i] = limit[i].value;
}

const char *qwen_limit_name(enum qwen_limit i)
{
	return limit[i].name;
}

const char *qwen_limit_what(enum qwen_limit i)
{
	return limit[i].what;
}

/* ---- limits from a file ---- */

static bool line_read(struct qwen_limits *l, const char *s, struct err *e)
{
	char name[64];
	double v;
	int end = 0;

	if (sscanf(s, " %n%63s", &end, name) < 1 || s[end] == '#')
		return true;
	end = 0;
	if (sscanf(s, " %63s %lf %n", name, &v, &end) < 2 ||
	    (s[end] && s[end] != '#') || !isfinite(v))
		return err_set(e, ERR_INPUT, "\"%s\": wanted a name and a "
			       "number", s);
	for (int i = 0; i < QWEN_LIMITS; i++)
		if (strcmp(limit[i].name, name) == 0) {
			l->v[i] = v;
			return true;
		}
	struct buf all = { 0 };
	for (int i = 0; i < QWEN_LIMITS; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", limit[i].name);
	err_set(e, ERR_INPUT, "there is no limit \"%s\"; there are %s", name,
		all.data);
	buf_fini(&all);
	return false;
}

bool qwen_limits_parse(struct qwen_limits *l, const char *text, struct err *e)
{
	char line[256];

	qwen_limits_init(l);
	for (int n = 1; *text; n++) {
		size_t len = strcspn(text, "\n");
		if (len >= sizeof(line))
			return err_set(e, ERR_INPUT, "line %d is longer than "
				       "%zu bytes", n, sizeof(line) - 1);
		memcpy(line, text, len);
		line[len] = '\0';
		if (!line_read(l, line, e))
			return err_wrap(e, "line %d", n);
		text += len + (text[len] == '\n');
	}
	return true;
}

bool qwen_limits_load(struct qwen_limits *l, const char *path, struct err *e)
{
	struct buf b = { 0 };

	if (!file_read(path, 1 << 20, &b, e))
		return false;
	buf_addc(&b, '\0');
	bool ok = qwen_limits_parse(l, b.data, e) || err_wrap(e, "%s", path);
	buf_fini(&b);
	return ok;
}

/* ---- counting ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Distinct values of v[n], and how often the most frequent one stands there. */
static size_t count_distinct(uint64_t *v, size_t n, size_t *most)
{
	size_t kinds = 0, run = 0;

	qsort(v, n, sizeof(*v), by_value);
	*most = 0;
	for (size_t i = 0; i < n; i++) {
		run = i && v[i] == v[i - 1] ? run + 1 : 1;
		kinds += run == 1;
		if (run > *most)
			*most = run;
	}
	return kinds;
}

/* Of one window: the least unique and the greatest top share so far. */
static void window_judge(struct qwen_coherence *c, const uint32_t *id, size_t n)
{
	uint64_t v[QWEN_JUDGED_TOKENS];
	size_t most;

	for (size_t i = 0; i < n; i++)
		v[i] = id[i];
	size_t kinds = count_distinct(v, n, &most);
	c->value[QWEN_LIMIT_unique_share] =
		fmin(c->value[QWEN_LIMIT_unique_share],
		     (double)kinds / (double)n);
	c->value[QWEN_LIMIT_top_share] = fmax(c->value[QWEN_LIMIT_top_share],
					      (double)most / (double)n);
}

static void windows_judge(struct qwen_coherence *c, const uint32_t *id,
			  size_t n)
{
	size_t size = n < QWEN_JUDGED_TOKENS ? n : QWEN_JUDGED_TOKENS;

	if (n < QWEN_LEAST_JUDGED)
		return;
	window_judge(c, id, size);
	window_judge(c, id + n - size, size);
}

/*
 * The longest stretch in which every token equals the one `period` before it,
 * of those that go round more often than is allowed; of several periods the
 * shortest, for a loop of 3 is one of 6, too.
 */
static void loops_judge(struct qwen_coherence *c, const uint32_t *id, size_t n,
			const struct qwen_limits *l)
{
	c->value[QWEN_LIMIT_loop_tokens] = c->value[QWEN_LIMIT_loop_rounds] = 0;
	for (uint32_t p = 1; p <= QWEN_LONGEST_PERIOD; p++) {
		size_t run = 0;
		for (size_t i = p; i < n; i++) {
			run = id[i] == id[i - p] ? run + 1 : 0;
			double tokens = run ? (double)(run + p) : 0;
			double rounds = tokens / p;
			if (rounds <= l->v[QWEN_LIMIT_loop_rounds] ||
			    tokens <= c->value[QWEN_LIMIT_loop_tokens])
				continue;
			c->value[QWEN_LIMIT_loop_tokens] = tokens;
			c->value[QWEN_LIMIT_loop_rounds] = rounds;
			c->loop_at = i + 1 - (run + p);
			c->period = p;
		}
	}
}

static void repeats_judge(struct qwen_coherence *c, const uint32_t *id,
			  size_t n)
{
	size_t grams = n - 3, most;

	if (n < QWEN_LEAST_JUDGED)
		return;
	uint64_t *v = xcalloc(grams, sizeof(*v));
	for (size_t i = 0; i < grams; i++)
		for (size_t k = 0; k < 4; k++)
			v[i] = (v[i] ^ id[i + k]) * 0x9e3779b97f4a7c15 +
			       (v[i] >> 31);
	c->value[QWEN_LIMIT_repeated_share] =
		1 - (double)count_distinct(v, grams, &most) / (double)grams;
	free(v);
}

/* ---- what the tokens mean ---- */

static bool is_stop(const struct qwen_stream *s, uint32_t id)
{
	for (size_t i = 0; i < s->n_stops; i++)
		if (s->stop[i] == id)
			return true;
	return false;
}

static double share_of_specials(const uint32_t *id, size_t n,
				const struct qwen_tokenizer *t)
{
	double count = 0;
	bool special;
	size_t len;

	for (size_t i = 0; i < n; i++)
		count += !qwen_token_bytes(t, id[i], &len, &special) || special;
	return count;
}

/* The text of id[from..to). */
static void text_of(const uint32_t *id, size_t from, size_t to,
		    const struct qwen_tokenizer *t, struct buf *out)
{
	size_t len;

	buf_reset(out);
	for (; from < to; from++) {
		const char *s = qwen_token_bytes(t, id[from], &len, NULL);
		if (s)
			buf_add(out, s, len);
	}
	buf_addc(out, '\0');
}

/* Index of the first `token` in id[from..n), or n. */
static size_t index_of(const uint32_t *id, size_t from, size_t n, int64_t token)
{
	while (from < n && id[from] != token)
		from++;
	return from;
}

static double empty_thoughts(const uint32_t *id, size_t n,
			     const struct qwen_tokenizer *t)
{
	int64_t open = qwen_token_find(t, "<think>");
	int64_t close = qwen_token_find(t, "</think>");
	struct buf text = { 0 };
	double count = 0;

	for (size_t at = 0, end; at < n; at = end) {
		at = index_of(id, at, n, open);
		end = index_of(id, at, n, close);
		if (end == n)
			break;
		text_of(id, at + 1, end, t, &text);
		count += text.data[strspn(text.data, " \t\r\n")] == '\0';
	}
	buf_fini(&text);
	return count;
}

static bool is_call(const char *text)
{
	json_t *j = json_loads(text, 0, NULL);
	bool good = json_is_string(json_object_get(j, "name")) &&
		    json_is_object(json_object_get(j, "arguments"));

	json_decref(j);
	return good;
}

/* A call that is not closed is no call either. */
static double bad_calls(const uint32_t *id, size_t n,
			const struct qwen_tokenizer *t)
{
	int64_t open = qwen_token_find(t, "<tool_call>");
	int64_t close = qwen_token_find(t, "</tool_call>");
	struct buf text = { 0 };
	double count = 0;

	for (size_t at = 0, end; (at = index_of(id, at, n, open)) < n;
	     at = end) {
		end = index_of(id, at, n, close);
		text_of(id, at + 1, end, t, &text);
		count += end == n || !is_call(text.data);
	}
	buf_fini(&text);
	return count;
}

/* ---- the verdict ---- */

static void apply_limits(struct qwen_coherence *c, const struct qwen_limits *l)
{
	c->passed = true;
	for (int i = 0; i < QWEN_LIMITS; i++) {
		double v = c->value[i];
		c->broken[i] = limit[i].side == LEAST ? v < l->v[i] :
							v > l->v[i];
	}
	/* A loop is long and goes round often. */
	bool loop = c->broken[QWEN_LIMIT_loop_tokens] &&
		    c->broken[QWEN_LIMIT_loop_rounds];
	c->broken[QWEN_LIMIT_loop_tokens] = loop;
	c->broken[QWEN_LIMIT_loop_rounds] = loop;
	for (int i = 0; i < QWEN_LIMITS; i++)
		c->passed &= !c->broken[i];
}

void qwen_coherence_check(struct qwen_coherence *c, const struct qwen_stream *s,
			  const struct qwen_tokenizer *t,
			  const struct qwen_limits *l)
{
	size_t n = s->n;

	*c = (struct qwen_coherence){ 0 };
	for (int i = 0; i < QWEN_LIMITS; i++)
		c->value[i] = NAN;
	if (n && is_stop(s, s->id[n - 1]))
		n--;
	c->value[QWEN_LIMIT_min_tokens] = (double)n;
	windows_judge(c, s->id, n);
	loops_judge(c, s->id, n, l);
	repeats_judge(c, s->id, n);
	c->value[QWEN_LIMIT_special_tokens] = share_of_specials(s->id, n, t);
	c->value[QWEN_LIMIT_empty_think] =
		s->thinking ? empty_thoughts(s->id, n, t) : 0;
	c->value[QWEN_LIMIT_bad_tool_calls] = bad_calls(s->id, n, t);
	apply_limits(c, l);
}
