/*
 * engine/grammar/grammar.c - rules over bytes.
 */
#include <stdarg.h>

#include "engine/grammar/grammar_int.h"

void qwen_grammar_free(struct qwen_grammar *g)
{
	if (!g)
		return;
	vec_fini(&g->elem);
	vec_fini(&g->alternative);
	vec_fini(&g->rule);
	vec_fini(&g->set);
	free(g->least);
	free(g);
}

uint32_t grammar_add_rule(struct qwen_grammar *g)
{
	vec_push(&g->rule, NO_ALTERNATIVE);
	return (uint32_t)g->rule.n - 1;
}

void grammar_add_seq(struct qwen_grammar *g, uint32_t rule, struct seq *s)
{
	const struct alternative a = { (uint32_t)g->elem.n, g->rule.v[rule] };

	for (size_t i = 0; i < s->elem.n; i++)
		vec_push(&g->elem, s->elem.v[i]);
	vec_push(&g->elem, ((struct elem){ ELEM_END, 0 }));
	g->rule.v[rule] = (uint32_t)g->alternative.n;
	vec_push(&g->alternative, a);
	vec_fini(&s->elem);
	*s = (struct seq){ 0 };
}

void seq_add_rule(struct seq *s, uint32_t rule)
{
	vec_push(&s->elem, ((struct elem){ ELEM_RULE, rule }));
}

static void add_set(struct qwen_grammar *g, struct seq *s,
		    const struct byte_set *set)
{
	uint32_t i = 0;

	while (i < g->set.n && memcmp(&g->set.v[i], set, sizeof(*set)))
		i++;
	if (i == g->set.n)
		vec_push(&g->set, *set);
	vec_push(&s->elem, ((struct elem){ ELEM_BYTES, i }));
}

void seq_add_text(struct qwen_grammar *g, struct seq *s, const char *text,
		  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct byte_set set = { { 0 } };
		unsigned char c = (unsigned char)text[i];
		set.bit[c / 64] |= 1ull << c % 64;
		add_set(g, s, &set);
	}
}

void seq_add_class(struct qwen_grammar *g, struct seq *s, const char *class)
{
	const bool others = *class == '^';
	const unsigned char *at = (const unsigned char *)class + others;
	struct byte_set set = { { 0 } };

	while (*at) {
		const unsigned from = at[0], to = at[1] == '-' ? at[2] : at[0];
		for (unsigned c = from; c <= to; c++)
			set.bit[c / 64] |= 1ull << c % 64;
		at += at[1] == '-' ? 3 : 1;
	}
	for (int i = 0; i < 4 && others; i++)
		set.bit[i] = ~set.bit[i];
	add_set(g, s, &set);
}

void grammar_add(struct qwen_grammar *g, uint32_t rule, const char *form, ...)
{
	struct seq s = { 0 };
	va_list ap;

	va_start(ap, form);
	for (; *form; form++) {
		if (*form != '%') {
			seq_add_text(g, &s, form, 1);
		} else if (*++form == 'r') {
			seq_add_rule(&s, va_arg(ap, uint32_t));
		} else {
			seq_add_class(g, &s, va_arg(ap, const char *));
		}
	}
	va_end(ap);
	grammar_add_seq(g, rule, &s);
}

uint32_t grammar_repeat(struct qwen_grammar *g, uint32_t rule, uint32_t least,
			uint32_t most)
{
	const uint32_t end = most == UINT32_MAX ? least : most;
	uint32_t next = grammar_add_rule(g);

	grammar_add(g, next, "");
	if (most == UINT32_MAX)
		grammar_add(g, next, "%r%r", rule, next);
	for (uint32_t i = end; i-- > 0;) {
		uint32_t r = grammar_add_rule(g);
		if (i >= least)
			grammar_add(g, r, "");
		grammar_add(g, r, "%r%r", rule, next);
		next = r;
	}
	return next;
}

/* ---- what is known of a whole grammar ---- */

/* Splits the bytes of every number by whether they are in the set. */
static void find_alike(struct qwen_grammar *g)
{
	memset(g->alike, 0, sizeof(g->alike));
	g->n_alike = 1;
	for (size_t i = 0; i < g->set.n; i++) {
		uint32_t to[2][256], n = 0;
		memset(to, 0xff, sizeof(to));
		for (unsigned c = 0; c < 256; c++) {
			bool in = set_has(&g->set.v[i], (unsigned char)c);
			uint32_t *t = &to[in][g->alike[c]];
			if (*t == UINT32_MAX)
				*t = n++;
			g->alike[c] = (uint8_t)*t;
		}
		g->n_alike = n;
	}
}

static uint32_t least_of_rule(const struct qwen_grammar *g, uint32_t rule)
{
	uint32_t least = NO_END;

	for (uint32_t a = g->rule.v[rule]; a != NO_ALTERNATIVE;
	     a = g->alternative.v[a].next) {
		uint32_t n = g->least[g->alternative.v[a].first];
		least = n < least ? n : least;
	}
	return least;
}

/* Of every alternative, the earliest first; did one become shorter? */
static bool find_least_once(struct qwen_grammar *g)
{
	bool changed = false;

	for (size_t a = 0; a < g->alternative.n; a++) {
		uint32_t first = g->alternative.v[a].first, i = first, n = 0;
		while (g->elem.v[i].kind != ELEM_END)
			i++;
		g->least[i] = 0;
		while (i-- > first) {
			const struct elem *x = &g->elem.v[i];
			n += x->kind == ELEM_BYTES ? 1 :
						     least_of_rule(g, x->of);
			n = n < NO_END ? n : NO_END;
			changed |= n < g->least[i];
			g->least[i] = n;
		}
	}
	return changed;
}

bool grammar_finish(struct qwen_grammar *g, uint32_t start)
{
	g->start = start;
	find_alike(g);
	g->least = xcalloc(g->elem.n, sizeof(*g->least));
	for (size_t i = 0; i < g->elem.n; i++)
		g->least[i] = NO_END;
	while (find_least_once(g))
		;
	return qwen_grammar_least(g) < NO_END;
}

uint32_t qwen_grammar_least(const struct qwen_grammar *g)
{
	return least_of_rule(g, g->start);
}
