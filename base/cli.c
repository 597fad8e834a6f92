/*
 * base/cli.c - numbers, sweeps and options of a command line.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cmd_int.h"
#include "base/vec.h"

void cli_list_fini(struct cli_list *l)
{
	free(l->v);
	*l = (struct cli_list){ 0 };
}

/* ---- numbers ---- */

/* Bits to shift for a suffix, -1 if `s` is none. */
static int suffix_bits(const char *s)
{
	if (*s == '\0')
		return 0;
	if (s[1] != '\0')
		return -1;
	switch (*s) {
	case 'k':
	case 'K':
		return 10;
	case 'M':
		return 20;
	case 'G':
		return 30;
	default:
		return -1;
	}
}

static bool bad_number(const char *s, const char *wanted, struct err *e)
{
	return err_set(e, ERR_USAGE, "\"%s\" is not a number: wanted %s", s,
		       wanted);
}

bool cli_u64(const char *s, uint64_t *out, struct err *e)
{
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	const char *digits = hex ? s + 2 : s;
	static const char wanted[] =
		"decimal or 0x... digits, and k, M or G for a power of two";

	if (!(hex ? isxdigit((unsigned char)*digits) :
		    isdigit((unsigned char)*digits)))
		return bad_number(s, wanted, e);
	char *end;
	errno = 0;
	unsigned long long value = strtoull(digits, &end, hex ? 16 : 10);
	int bits = suffix_bits(end);
	if (bits < 0)
		return bad_number(s, wanted, e);
	if (errno == ERANGE || value > UINT64_MAX >> bits)
		return err_set(e, ERR_USAGE,
			       "\"%s\" is too large: at most 2^64-1", s);
	*out = (uint64_t)value << bits;
	return true;
}

static bool parse_int(const char *s, int *out, struct err *e)
{
	bool negative = *s == '-';
	uint64_t value;

	if (!cli_u64(s + negative, &value, NULL))
		return bad_number(s, "an integer such as -3 or 0x10", e);
	if (value > (uint64_t)INT_MAX + negative)
		return err_set(e, ERR_USAGE, "\"%s\" is out of range: %d..%d",
			       s, INT_MIN, INT_MAX);
	*out = negative ? (int)-(int64_t)value : (int)value;
	return true;
}

static bool parse_f64(const char *s, double *out, struct err *e)
{
	char *end;
	double value = strtod(s, &end);

	if (end == s || *end || isspace((unsigned char)*s) || !isfinite(value))
		return bad_number(s, "a finite number such as 0.5 or 1e-3", e);
	*out = value;
	return true;
}

static bool parse_seconds(const char *s, uint64_t *out_ns, struct err *e)
{
	double seconds;

	if (!parse_f64(s, &seconds, e))
		return false;
	if (!(seconds >= 1e-9 && seconds <= 1e6))
		return err_set(e, ERR_USAGE, "\"%s\" is out of range: wanted "
			       "seconds, above 0 and up to 1e6", s);
	*out_ns = (uint64_t)(seconds * 1e9);
	return true;
}

/* ---- sweeps ---- */

enum { SWEEP_MAX = 1000000 };

struct sweep {
	uint64_t *v;
	size_t n, cap;
	const char *text; /* the whole sweep, for messages */
};

static bool sweep_add(struct sweep *w, uint64_t value, struct err *e)
{
	if (w->n == SWEEP_MAX)
		return err_set(e, ERR_USAGE,
			       "sweep \"%s\": more than %d values", w->text,
			       SWEEP_MAX);
	vec_push(w, value);
	return true;
}

/* first, then x + step or x * step for as long as it is <= last */
static bool sweep_range(struct sweep *w, uint64_t first, uint64_t last,
			uint64_t step, bool times, struct err *e)
{
	if (first > last)
		return err_set(e, ERR_USAGE,
			       "sweep \"%s\": runs backwards: %ju is above %ju",
			       w->text, (uintmax_t)first, (uintmax_t)last);
	if (times ? step < 2 || first == 0 : step == 0)
		return err_set(e, ERR_USAGE, "sweep \"%s\": never ends: %s",
			       w->text,
			       times ? "wanted a start of at least 1 and a "
				       "factor of at least 2" :
				       "wanted a step of at least 1");
	for (uint64_t x = first;;) {
		if (!sweep_add(w, x, e))
			return false;
		if (times ? x > last / step : last - x < step)
			return true;
		x = times ? x * step : x + step;
	}
}

static bool sweep_number(const struct sweep *w, const char *s, uint64_t *out,
			 struct err *e)
{
	return cli_u64(s, out, e) || err_wrap(e, "sweep \"%s\"", w->text);
}

/* One item: "a", "a..b", "a..b+s" or "a..b*f".  Cuts `item` up. */
static bool sweep_item(struct sweep *w, char *item, struct err *e)
{
	char *dots = strstr(item, "..");
	uint64_t first, last, step = 1;
	bool times = false;

	if (dots)
		*dots = '\0';
	if (!sweep_number(w, item, &first, e))
		return false;
	if (!dots)
		return sweep_add(w, first, e);
	char *op = strpbrk(dots + 2, "+*");
	if (op) {
		times = *op == '*';
		*op = '\0';
		if (!sweep_number(w, op + 1, &step, e))
			return false;
	}
	if (!sweep_number(w, dots + 2, &last, e))
		return false;
	return sweep_range(w, first, last, step, times, e);
}

bool cli_sweep(const char *s, uint64_t **out, size_t *n, struct err *e)
{
	struct sweep w = { .text = s };
	char *copy = xstrdup(s);
	bool done = true;

	for (char *item = copy; done && item;) {
		char *comma = strchr(item, ',');
		if (comma)
			*comma = '\0';
		done = sweep_item(&w, item, e);
		item = comma ? comma + 1 : NULL;
	}
	free(copy);
	if (!done) {
		free(w.v);
		return false;
	}
	*out = w.v;
	*n = w.n;
	return true;
}

/* ---- the option table ---- */

const struct cli_opt *cli_find_long(const struct cli_opt *table,
				    const char *name, size_t len)
{
	for (const struct cli_opt *o = table; len && o->name; o++)
		if (strlen(o->name) == len && strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

const struct cli_opt *cli_find_letter(const struct cli_opt *table, char c)
{
	for (const struct cli_opt *o = table; o->name; o++)
		if (o->letter && o->letter == c)
			return o;
	return NULL;
}

size_t cli_near(size_t len)
{
	return len / 3 + 2;
}

size_t cli_distance(const char *a, size_t a_len, const char *b)
{
	enum { LONGEST = 64 };
	size_t row[LONGEST + 1];
	size_t b_len = strlen(b);

	if (a_len > LONGEST || b_len > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b_len];
}

static bool unknown_option(struct cli_line *l, const char *name, size_t len,
			   struct err *e)
{
	const struct cli_opt *best = NULL;
	size_t best_distance = cli_near(len);

	l->unknown = name;
	for (const struct cli_opt *o = l->opt; o->name; o++) {
		size_t distance = cli_distance(name, len, o->name);
		if (distance < best_distance) {
			best = o;
			best_distance = distance;
		}
	}
	if (best)
		return err_set(e, ERR_USAGE,
			       "unknown option --%.*s: did you mean --%s?",
			       (int)len, name, best->name);
	return err_set(e, ERR_USAGE, "unknown option --%.*s: see %s --help",
		       (int)len, name, l->name);
}

/* ---- parsing ---- */

/* Where parsing stands.  `option` and `operand` share argc + 1 entries each. */
struct parser {
	struct cli_line *line;
	char **argv;
	int argc, at;
	char **option, **operand;
	int n_options, n_operands;
};

static void list_add(struct cli_list *l, const char *value)
{
	l->v = xrealloc(l->v, ((size_t)l->n + 1) * sizeof(*l->v));
	l->v[l->n++] = value;
}

static bool store_value(const struct cli_opt *o, const char *value,
			struct err *e)
{
	switch (o->type) {
	case CLI_FLAG:
		*(bool *)o->dst = true;
		return true;
	case CLI_STR:
		*(const char **)o->dst = value;
		return true;
	case CLI_U64:
		return cli_u64(value, o->dst, e);
	case CLI_INT:
		return parse_int(value, o->dst, e);
	case CLI_F64:
		return parse_f64(value, o->dst, e);
	case CLI_SECONDS:
		return parse_seconds(value, o->dst, e);
	case CLI_LIST:
		list_add(o->dst, value);
		return true;
	case CLI_STOP:
	case CLI_GROUP:
		break;
	}
	BUG("option --%s: type %d", o->name, o->type);
}

/* `value` is what stood after "=" or the letter, NULL if nothing did. */
static bool take_option(struct parser *p, const struct cli_opt *o, char *value,
		 struct err *e)
{
	if (o->type == CLI_STOP) {
		p->line->stop = o;
		p->line->stop_value = value;
		return true;
	}
	if (o->type == CLI_FLAG && value)
		return err_set(e, ERR_USAGE,
			       "option --%s takes no argument, got \"%s\"",
			       o->name, value);
	if (o->type != CLI_FLAG && !value) {
		if (p->at == p->argc)
			return err_set(e, ERR_USAGE,
				       "option --%s needs an argument: --%s=%s",
				       o->name, o->name,
				       o->arg ? o->arg : "VALUE");
		value = p->argv[p->at++];
		p->option[p->n_options++] = value;
	}
	return store_value(o, value, e) || err_wrap(e, "option --%s", o->name);
}

static bool take_long(struct parser *p, char *name, struct err *e)
{
	size_t len = strcspn(name, "=");
	const struct cli_opt *o = cli_find_long(p->line->opt, name, len);

	if (!o)
		return unknown_option(p->line, name, len, e);
	return take_option(p, o, name[len] ? name + len + 1 : NULL, e);
}

/* "-q", "-qv", "-oFILE", "-o FILE" */
static bool take_letters(struct parser *p, char *s, struct err *e)
{
	for (; *s && !p->line->stop; s++) {
		const struct cli_opt *o = cli_find_letter(p->line->opt, *s);
		if (!o) {
			p->line->unknown_letter = *s;
			return err_set(e, ERR_USAGE,
				       "unknown option -%c: see %s --help", *s,
				       p->line->name);
		}
		bool flag = o->type == CLI_FLAG || o->type == CLI_STOP;
		if (!take_option(p, o, !flag && s[1] ? s + 1 : NULL, e))
			return false;
		if (!flag)
			break;
	}
	return true;
}

static bool take_all(struct parser *p, struct err *e)
{
	while (p->at < p->argc && !p->line->stop) {
		char *arg = p->argv[p->at++];
		if (arg[0] != '-' || arg[1] == '\0') {
			p->operand[p->n_operands++] = arg;
			continue;
		}
		p->option[p->n_options++] = arg;
		if (strcmp(arg, "--") == 0)
			break;
		if (!(arg[1] == '-' ? take_long(p, arg + 2, e) :
				      take_letters(p, arg + 1, e)))
			return false;
	}
	while (p->at < p->argc)
		p->operand[p->n_operands++] = p->argv[p->at++];
	return true;
}

bool cli_parse(struct cli_line *l, int argc, char **argv, struct err *e)
{
	size_t n = (size_t)argc + 1;
	struct parser p = { .line = l, .argv = argv, .argc = argc, .at = 1 };

	p.option = xcalloc(n, sizeof(*p.option));
	p.operand = xcalloc(n, sizeof(*p.operand));
	bool good = take_all(&p, e);
	if (good) {
		l->first = 1 + p.n_options;
		for (int i = 0; i < p.n_options; i++)
			argv[1 + i] = p.option[i];
		for (int i = 0; i < p.n_operands; i++)
			argv[l->first + i] = p.operand[i];
	}
	free(p.option);
	free(p.operand);
	return good;
}
