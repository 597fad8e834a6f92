/* base/cli.c: option tables, numbers. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/tap.h"

/* One of each type. */
static struct {
	bool quiet, verbose;
	const char *output;
	uint64_t size;
	int level;
	double scale;
	struct cli_list arg;
} v;

static const struct cli_opt options[] = {
	{ "quiet", 'q', CLI_FLAG, &v.quiet, NULL, "say less" },
	{ "verbose", 'v', CLI_FLAG, &v.verbose, NULL, "say more" },
	{ "output", 'o', CLI_STR, &v.output, "FILE", "write to FILE" },
	{ "size", 's', CLI_U64, &v.size, "BYTES", "how much" },
	{ "level", 0, CLI_INT, &v.level, "N", "how deep" },
	{ "scale-of-all-results", 0, CLI_F64, &v.scale, "X", "times X" },
	{ "arg", 'a', CLI_LIST, &v.arg, "TYPE:VALUE", "an argument" },
	{ "help", 'h', CLI_STOP, NULL, NULL, "end here" },
	{ 0 }
};
enum { MAX_ARGS = 16 };
static char *argv[MAX_ARGS + 1];
static int argc;
static struct cli_line line;
static struct err err;

/* Parses the words of `text`, which are split at blanks. */
static bool parse(const char *text)
{
	static char words[512];

	cli_list_fini(&v.arg);
	memset(&v, 0, sizeof(v));
	err = (struct err){ 0 };
	line = (struct cli_line){ .name = "t0-x", .opt = options };
	snprintf(words, sizeof(words), "t0-x %s", text);
	argc = 0;
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	return cli_parse(&line, argc, argv, &err);
}

/* The operands, joined by blanks. */
static const char *operands(void)
{
	static char text[512];

	text[0] = '\0';
	for (int i = line.first; i < argc; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%s", i > line.first ? " " : "", argv[i]);
	return text;
}

static void test_types(void)
{
	ok(parse("--quiet --output=f.json --size 4k --level=-3 "
		 "--scale-of-all-results 2.5e-1 --arg=u32:1 --arg f32:2"),
	   "every type parses: %s", err.msg);
	ok(v.quiet, "a flag is set");
	ok(!v.verbose, "a flag not given is not set");
	is_str(v.output, "f.json", "--option=value");
	is_u64(v.size, 4096, "--option value");
	is_i64(v.level, -3, "an int may be negative");
	is_f64(v.scale, 0.25, "a double");
	is_i64(v.arg.n, 2, "a list collects");
	is_str(v.arg.v[0], "u32:1", "the first of the list");
	is_str(v.arg.v[1], "f32:2", "the second of the list");
	is_i64(line.first, argc, "no operands");
	ok(!line.stop, "nothing stops it");
}

static void test_short(void)
{
	ok(parse("-qv -o out -s0x10 -a1 -a 2"), "letters parse: %s", err.msg);
	ok(v.quiet && v.verbose, "flags share a dash");
	is_str(v.output, "out", "-o FILE");
	is_u64(v.size, 16, "-sVALUE");
	is_i64(v.arg.n, 2, "letters of a list");
	ok(parse("-qofile"), "a flag and an argument share a dash");
	is_str(v.output, "file", "-qoFILE");
	ok(parse("-o --quiet"), "an argument may begin with a dash");
	is_str(v.output, "--quiet", "and is not an option then");
	ok(parse("--output= x"), "an argument may be empty");
	is_str(v.output, "", "--option= is the empty string");
	is_str(operands(), "x", "and takes nothing else");
	ok(parse("--output=a=b"), "an argument may have an equals sign");
	is_str(v.output, "a=b", "only the first one divides");
}

static void test_operands(void)
{
	ok(parse("one -q two --size 5 three"), "options between operands");
	is_str(operands(), "one two three", "operands keep their order");
	is_u64(v.size, 5, "and options keep their arguments");
	ok(parse("a -- -q --nonsense b"), "-- ends the options");
	is_str(operands(), "a -q --nonsense b", "what follows are operands");
	ok(!v.quiet, "and not options");
	ok(parse("- -q"), "a lone dash is an operand");
	is_str(operands(), "-", "it names stdin");
	ok(parse(""), "nothing at all is fine");
	is_i64(line.first, 1, "the first operand is the end of argv");
	ok(parse("--"), "-- alone is fine");
	is_str(operands(), "", "and is no operand");
}

static void test_errors(void)
{
	static const struct {
		const char *line, *message;
	} c[] = {
		{ "--outptu=x", "unknown option --outptu: did you mean "
				"--output?" },
		{ "--quite", "unknown option --quite: did you mean --quiet?" },
		{ "--hlep", "unknown option --hlep: did you mean --help?" },
		{ "--zzzzzz", "unknown option --zzzzzz: see t0-x --help" },
		{ "--out", "unknown option --out: see t0-x --help" },
		{ "-x", "unknown option -x: see t0-x --help" },
		{ "-qx", "unknown option -x: see t0-x --help" },
		{ "--size", "option --size needs an argument: --size=BYTES" },
		{ "-o", "option --output needs an argument: --output=FILE" },
		{ "--quiet=1", "option --quiet takes no argument, got \"1\"" },
		{ "--size=1x", "option --size: \"1x\" is not a number: wanted "
			       "decimal or 0x... digits, and k, M or G for a "
			       "power of two" },
		{ "--level=3.5", "option --level: \"3.5\" is not a number: "
				 "wanted an integer such as -3 or 0x10" },
		{ "--level=2147483648", "option --level: \"2147483648\" is out "
					"of range: -2147483648..2147483647" },
		{ "--scale-of-all-results=inf",
		  "option --scale-of-all-results: \"inf\" is not a number: "
		  "wanted a finite number such as 0.5 or 1e-3" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		ok(!parse(c[i].line), "%s is refused", c[i].line);
		is_str(err.msg, c[i].message, "the message for %s", c[i].line);
		is_i64(err_exit_code(&err), 2, "%s exits 2", c[i].line);
	}
	ok(!parse("--siz=1") && !strcmp(line.unknown, "siz=1"),
	   "what is refused is told");
	ok(!parse("-qx") && line.unknown_letter == 'x', "so is a letter");
	ok(parse("--level=2147483647") && v.level == INT_MAX, "INT_MAX fits");
	ok(parse("--level=-2147483648") && v.level == INT_MIN, "INT_MIN fits");
	ok(!parse("--level=-2147483649"), "INT_MIN - 1 does not");
	ok(!parse("--level=--3"), "two signs are no number");
	ok(!parse("--scale-of-all-results=1.5x"), "no rest behind a double");
	ok(!parse("--scale-of-all-results="), "a double is not empty");
	ok(!parse("--scale-of-all-results=nan"), "NaN is no argument");
}

static void test_numbers(void)
{
	static const struct {
		const char *text;
		uint64_t wanted;
	} good[] = {
		{ "0", 0 },
		{ "010", 10 }, /* never octal */
		{ "18446744073709551615", UINT64_MAX },
		{ "0xFFFFffffFFFFffff", UINT64_MAX },
		{ "0X1f", 31 },
		{ "1k", 1024 },
		{ "3K", 3072 },
		{ "2M", 2097152 },
		{ "1G", 1073741824 },
		{ "0x10k", 16384 },
		{ "17179869183G", 18446744072635809792u },
	};
	static const char *const bad[] = {
		"",
		" 1",
		"1 ",
		"-1",
		"+1",
		"1m",
		"k",
		"0x",
		"0xg",
		"1kk",
		"1.",
		"1e3",
		"ten",
		"0x-1",
		"1,000",
		"18446744073709551616",
		"17179869184G",
		"0x10000000000000000",
	};
	uint64_t got;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		got = 42;
		ok(cli_u64(good[i].text, &got, NULL), "\"%s\" is a number",
		   good[i].text);
		is_u64(got, good[i].wanted, "the value of \"%s\"",
		       good[i].text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		got = 42;
		ok(!cli_u64(bad[i], &got, NULL), "\"%s\" is no number", bad[i]);
		is_u64(got, 42, "\"%s\" leaves the result alone", bad[i]);
	}
}

static void test_stop(void)
{
	ok(parse("a -q --help --nonsense"), "--help ends parsing: %s", err.msg);
	is_str(line.stop->name, "help", "and is told");
	ok(!line.stop_value, "without a value");
	ok(v.quiet, "what stands before it counts");
	ok(parse("--help=scd --nonsense"), "it may have a value");
	is_str(line.stop_value, "scd", "which is told, too");
	ok(parse("-qh --nonsense") && line.stop, "its letter does the same");
}

int main(void)
{
	test_types();
	test_short();
	test_operands();
	test_errors();
	test_numbers();
	test_stop();
	cli_list_fini(&v.arg);
	return plan_done();
}
