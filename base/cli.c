#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

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
	if (w->n == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 16;
		w->v = xrealloc(w->v, w->cap * sizeof(*w->v));
	}
	w->v[w->n++] = value;
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

/* What every tool has, behind its own table. */
static const struct cli_opt common[] = {
	{ "help", 'h', CLI_FLAG, NULL, NULL,
	  "show this help (=scd, =bash: manual page, shell completion)" },
	{ "version", 0, CLI_FLAG, NULL, NULL, "show the version and commit" },
	{ 0 }
};

/* The i-th option of the tool, then the common ones, then NULL. */
static const struct cli_opt *option_at(const struct cli_tool *tool, size_t i)
{
	size_t own = 0;

	while (tool->opt && tool->opt[own].name)
		own++;
	if (i < own)
		return &tool->opt[i];
	i -= own;
	return i < ARRAY_SIZE(common) - 1 ? &common[i] : NULL;
}

static const struct cli_opt *find_long(const struct cli_tool *tool,
				       const char *name, size_t len)
{
	const struct cli_opt *o;

	for (size_t i = 0; (o = option_at(tool, i)); i++)
		if (strlen(o->name) == len && strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

static const struct cli_opt *find_letter(const struct cli_tool *tool, char c)
{
	const struct cli_opt *o;

	for (size_t i = 0; (o = option_at(tool, i)); i++)
		if (o->letter && o->letter == c)
			return o;
	return NULL;
}

/* Levenshtein distance of two option names, which are short. */
static size_t edit_distance(const char *a, size_t a_len, const char *b)
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

static bool unknown_option(const struct cli_tool *tool, const char *name,
			   size_t len, struct err *e)
{
	const struct cli_opt *o, *best = NULL;
	size_t best_distance = len / 3 + 2;

	for (size_t i = 0; (o = option_at(tool, i)); i++) {
		size_t distance = edit_distance(name, len, o->name);
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
		       (int)len, name, tool->name);
}

/* ---- --help, the manual page, completion ---- */

/* "-o, --output=FILE" */
static void option_text(const struct cli_opt *o, struct buf *out)
{
	if (o->letter)
		buf_printf(out, "-%c, ", o->letter);
	buf_printf(out, "--%s", o->name);
	if (o->arg)
		buf_printf(out, "=%s", o->arg);
}

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

/* Bytes of the first line of `s`; one beyond `room` ends between words. */
static size_t line_length(const char *s, size_t room)
{
	size_t len = strcspn(s, "\n"), n = room;

	if (len <= room)
		return len;
	while (n && s[n] != ' ')
		n--;
	return n ? n : strcspn(s, " \n");
}

/*
 * Calls `line` for every line of `text`, folded to `room`; the blanks between
 * two sentences all go where they are folded.
 */
static void each_line(const char *text, size_t room,
		      void (*line)(const struct cli_tool *, const char *, int),
		      const struct cli_tool *tool)
{
	for (const char *s = text; s && *s;) {
		size_t len = line_length(s, room), end = len;

		while (end && s[end - 1] == ' ')
			end--;
		line(tool, s, (int)end);
		s += len;
		s += *s == '\n' ? 1 : strspn(s, " ");
	}
}

static void help_usage(const struct cli_tool *tool, const char *s, int len)
{
	printf("  %s %.*s\n", tool->name, len, s);
}

/* Behind the name of an option, which the first line follows. */
static void help_option(const struct cli_tool *tool, const char *s, int len)
{
	(void)tool;
	printf("%.*s\n%*s", len, s, s[len] ? HELP_COLUMN : 0, "");
}

static void help_note(const struct cli_tool *tool, const char *s, int len)
{
	(void)tool;
	printf("%.*s\n", len, s);
}

static void print_help(const struct cli_tool *tool)
{
	const struct cli_opt *o;
	struct buf text = { 0 };

	printf("%s - %s\n\nUsage:\n", tool->name, tool->summary);
	each_line(tool->usage, SIZE_MAX, help_usage, tool);
	printf("\nOptions:\n");
	for (size_t i = 0; (o = option_at(tool, i)); i++) {
		buf_reset(&text);
		buf_adds(&text, o->letter ? "  " : "      ");
		option_text(o, &text);
		if (text.len + 2 > HELP_COLUMN)
			printf("%s\n%*s", text.data, HELP_COLUMN, "");
		else
			printf("%-*s", HELP_COLUMN, text.data);
		each_line(o->help, HELP_WIDTH - HELP_COLUMN, help_option, tool);
	}
	buf_fini(&text);
	if (tool->notes)
		putchar('\n');
	each_line(tool->notes, HELP_WIDTH, help_note, tool);
}

/* scdoc gives meaning to punctuation; behind a backslash it has none. */
static void print_scd(const char *s, int len)
{
	for (; len > 0; s++, len--) {
		if (ispunct((unsigned char)*s))
			putchar('\\');
		putchar(*s);
	}
}

static void scd_usage(const struct cli_tool *tool, const char *s, int len)
{
	printf("%s*%s* ", s == tool->usage ? "" : "++\n", tool->name);
	print_scd(s, len);
}

/* As it stands, but for backslashes. */
static void scd_literal(const struct cli_tool *tool, const char *s, int len)
{
	(void)tool;
	for (; len > 0; s++, len--)
		printf(*s == '\\' ? "\\\\" : "%c", *s);
	putchar('\n');
}

/* The parts of a manual page that the tables know, as scdoc source. */
static void print_manual(const struct cli_tool *tool)
{
	const struct cli_opt *o;
	struct buf text = { 0 };

	printf("%s(1) \"\" \"T0 %s\"\n\n# NAME\n\n%s - ", tool->name,
	       T0_VERSION, tool->name);
	print_scd(tool->summary, (int)strlen(tool->summary));
	printf("\n\n# SYNOPSIS\n\n");
	each_line(tool->usage, SIZE_MAX, scd_usage, tool);
	printf("\n\n# OPTIONS\n\n");
	for (size_t i = 0; (o = option_at(tool, i)); i++) {
		buf_reset(&text);
		option_text(o, &text);
		putchar('*');
		print_scd(text.data, (int)text.len);
		printf("*\n\t");
		print_scd(o->help, (int)strlen(o->help));
		printf("\n\n");
	}
	buf_fini(&text);
	if (tool->notes) {
		printf("# NOTES\n\n```\n");
		each_line(tool->notes, HELP_WIDTH, scd_literal, tool);
		printf("```\n");
	}
}

static void print_completion(const struct cli_tool *tool)
{
	const struct cli_opt *o;

	printf("complete -o default -W '");
	for (size_t i = 0; (o = option_at(tool, i)); i++)
		printf("%s--%s%s", i ? " " : "", o->name, o->arg ? "=" : "");
	printf("' %s\n", tool->name);
}

static bool print_common(const struct cli_tool *tool, const char *name,
			 const char *value, struct err *e)
{
	if (strcmp(name, "version") == 0)
		printf("%s %s (%s)\n", tool->name, T0_VERSION, t0_commit());
	else if (!value)
		print_help(tool);
	else if (strcmp(value, "scd") == 0)
		print_manual(tool);
	else if (strcmp(value, "bash") == 0)
		print_completion(tool);
	else
		return err_set(e, ERR_USAGE,
			       "--help=%s: wanted scd or bash, or nothing",
			       value);
	return stdout_check(e);
}

/* ---- parsing ---- */

/* Where parsing stands.  `option` and `operand` share argc + 1 entries each. */
struct parser {
	const struct cli_tool *tool;
	char **argv;
	int argc, at;
	char **option, **operand;
	int n_options, n_operands;
	bool done; /* --help or --version was printed */
};

static void list_add(struct cli_list *l, const char *value)
{
	l->v = xrealloc(l->v, ((size_t)l->n + 1) * sizeof(*l->v));
	l->v[l->n++] = value;
}

static bool store(const struct cli_opt *o, const char *value, struct err *e)
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
	case CLI_LIST:
		list_add(o->dst, value);
		return true;
	}
	BUG("option --%s: type %d", o->name, o->type);
}

/* `value` is what stood after "=" or the letter, NULL if nothing did. */
static bool take(struct parser *p, const struct cli_opt *o, char *value,
		 struct err *e)
{
	if (!o->dst) {
		p->done = true;
		return print_common(p->tool, o->name, value, e);
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
	return store(o, value, e) || err_wrap(e, "option --%s", o->name);
}

static bool take_long(struct parser *p, char *name, struct err *e)
{
	size_t len = strcspn(name, "=");
	const struct cli_opt *o = find_long(p->tool, name, len);

	if (!o)
		return unknown_option(p->tool, name, len, e);
	return take(p, o, name[len] ? name + len + 1 : NULL, e);
}

/* "-q", "-qv", "-oFILE", "-o FILE" */
static bool take_letters(struct parser *p, char *s, struct err *e)
{
	for (; *s && !p->done; s++) {
		const struct cli_opt *o = find_letter(p->tool, *s);
		if (!o)
			return err_set(e, ERR_USAGE,
				       "unknown option -%c: see %s --help", *s,
				       p->tool->name);
		bool flag = o->type == CLI_FLAG;
		if (!take(p, o, !flag && s[1] ? s + 1 : NULL, e))
			return false;
		if (!flag)
			break;
	}
	return true;
}

static bool take_all(struct parser *p, struct err *e)
{
	while (p->at < p->argc && !p->done) {
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

bool cli_parse(const struct cli_tool *tool, int argc, char **argv, int *first,
	       bool *done, struct err *e)
{
	size_t n = (size_t)argc + 1;
	struct parser p = { .tool = tool, .argv = argv, .argc = argc, .at = 1 };

	p.option = xcalloc(n, sizeof(*p.option));
	p.operand = xcalloc(n, sizeof(*p.operand));
	bool good = take_all(&p, e);
	if (good) {
		*first = 1 + p.n_options;
		*done = p.done;
		for (int i = 0; i < p.n_options; i++)
			argv[1 + i] = p.option[i];
		for (int i = 0; i < p.n_operands; i++)
			argv[*first + i] = p.operand[i];
	}
	free(p.option);
	free(p.operand);
	return good;
}
