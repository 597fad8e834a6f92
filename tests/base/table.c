/* base/table.c: text, JSON (read back by jansson), CSV. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

/* What the table prints; free() it. */
static char *printed(const struct table *t, enum table_format f)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct err e = { 0 };

	ok(table_print(t, f, out, &e), "printing works: %s", e.msg);
	fclose(out);
	return text;
}

static void is_printed(const struct table *t, enum table_format f,
		       const char *wanted, const char *name)
{
	char *got = printed(t, f);

	is_str(got, wanted, "%s", name);
	free(got);
}

static void fill(struct table *t)
{
	table_init(t, "name,#count,note");
	table_row(t);
	table_cell(t, 0, "%s", "v_add_f32");
	table_cell(t, 1, "%d", 7);
	table_cell(t, 2, "%s", "fast");
	table_row(t);
	table_cell(t, 0, "%s", "s_nop");
	table_cell(t, 1, "%.1f", 12345.5);
	table_row(t);
	table_cell(t, 2, "%s", "");
}

static void test_formats(void)
{
	struct table t;

	fill(&t);
	is_printed(&t, TABLE_TEXT,
		   "name         count  note\n"
		   "v_add_f32        7  fast\n"
		   "s_nop      12345.5  n/a\n"
		   "n/a            n/a  \n",
		   "text: words left, numbers right, n/a where not measured");
	is_printed(&t, TABLE_JSON,
		   "[\n"
		   "  {\"name\": \"v_add_f32\", \"count\": 7, "
		   "\"note\": \"fast\"},\n"
		   "  {\"name\": \"s_nop\", \"count\": 12345.5, "
		   "\"note\": null},\n"
		   "  {\"name\": null, \"count\": null, \"note\": \"\"}\n"
		   "]\n",
		   "JSON: numbers bare, null where not measured");
	is_printed(&t, TABLE_CSV,
		   "name,count,note\r\n"
		   "v_add_f32,7,fast\r\n"
		   "s_nop,12345.5,\r\n"
		   ",,\"\"\r\n",
		   "CSV: an empty field where not measured, \"\" where empty");
	table_fini(&t);
	ok(!t.row && !t.mem.head, "table_fini empties");
}

static void test_empty(void)
{
	struct table t;

	table_init(&t, "a,#b");
	is_printed(&t, TABLE_TEXT, "a  b\n", "no rows: the text has a head");
	is_printed(&t, TABLE_JSON, "[]\n", "no rows: JSON has no objects");
	is_printed(&t, TABLE_CSV, "a,b\r\n", "no rows: CSV has a head");
	table_fini(&t);
}

/* Strings that need care, and what a JSON reader must see. */
static const struct {
	const char *cell, *wanted;
} hard[] = {
	{ "say \"hi\"", "say \"hi\"" },
	{ "back\\slash", "back\\slash" },
	{ "line\nfeed\ttab\rreturn", "line\nfeed\ttab\rreturn" },
	{ "\001\037\177", "\001\037\177" },
	{ "\xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80",
	  "\xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80" },
	/* Malformed UTF-8: one U+FFFD for each byte. */
	{ "a\xff"
	  "b",
	  "a\xef\xbf\xbd"
	  "b" },
	{ "cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" }, /* overlong */
	{ "\xed\xa0\x80",
	  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* surrogate */
	{ "\xf4\x90\x80\x80",
	  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "</script>,;'", "</script>,;'" },
};

static void test_json_strings(void)
{
	struct table t;
	json_error_t je;

	table_init(&t, "say \"what\"");
	for (size_t i = 0; i < ARRAY_SIZE(hard); i++) {
		table_row(&t);
		table_cell(&t, 0, "%s", hard[i].cell);
	}
	char *text = printed(&t, TABLE_JSON);
	json_t *root = json_loads(text, 0, &je);
	if (ok(root != NULL, "jansson reads it"))
		for (size_t i = 0; i < ARRAY_SIZE(hard); i++)
			is_str(json_string_value(
				       json_object_get(json_array_get(root, i),
						       "say \"what\"")),
			       hard[i].wanted, "hard string %zu survives", i);
	else
		diag("line %d: %s", je.line, je.text);
	json_decref(root);
	free(text);
	table_fini(&t);
}

/* Which cells of a numeric column may be bare in JSON (RFC 8259, 6). */
static void test_json_numbers(void)
{
	static const struct {
		const char *cell;
		bool bare;
	} c[] = {
		{ "0", true },	    { "-0", true },
		{ "-12.50", true }, { "1e9", true },
		{ "1.5E-3", true }, { "18446744073709551615", true },
		{ "1e+2", true },   { "007", false },
		{ "+1", false },    { ".5", false },
		{ "1.", false },    { "0x10", false },
		{ "inf", false },   { "nan", false },
		{ "", false },	    { "-", false },
		{ "1e", false },    { "12 us", false },
		{ "1 ", false },    { "--1", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct table t;
		table_init(&t, "#x");
		table_row(&t);
		table_cell(&t, 0, "%s", c[i].cell);
		char *got = printed(&t, TABLE_JSON);
		char wanted[128];
		const char *quote = c[i].bare ? "" : "\"";
		snprintf(wanted, sizeof(wanted), "[\n  {\"x\": %s%s%s}\n]\n",
			 quote, c[i].cell, quote);
		is_str(got, wanted, "\"%s\" is %s", c[i].cell,
		       c[i].bare ? "a number" : "not a number");
		free(got);
		table_fini(&t);
	}
}

static void test_csv_quotes(void)
{
	struct table t;

	table_init(&t, "a,b");
	table_row(&t);
	table_cell(&t, 0, "%s", "x,y");
	table_cell(&t, 1, "%s", "say \"hi\"");
	table_row(&t);
	table_cell(&t, 0, "%s", "two\nlines");
	table_cell(&t, 1, "%s", "a\rb");
	is_printed(&t, TABLE_CSV,
		   "a,b\r\n"
		   "\"x,y\",\"say \"\"hi\"\"\"\r\n"
		   "\"two\nlines\",\"a\rb\"\r\n",
		   "CSV quotes commas, quotes and line ends");
	table_fini(&t);
}

static void test_text_strings(void)
{
	struct table t;

	table_init(&t, "a,b");
	table_row(&t);
	table_cell(&t, 0, "\xc2\xb5s");
	table_cell(&t, 1, "x");
	table_row(&t);
	table_cell(&t, 0, "two\nlines\033[31m");
	table_cell(&t, 1, "\xffy");
	is_printed(&t, TABLE_TEXT,
		   "a               b\n"
		   "\xc2\xb5s              x\n"
		   "two?lines?[31m  ?y\n",
		   "text counts characters and defuses control bytes");
	table_fini(&t);
}

static void test_many(void)
{
	struct table t;
	char text[2000];

	memset(text, 'z', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	table_init(&t, "#i,s");
	for (int i = 0; i < 5000; i++) {
		table_row(&t);
		table_cell(&t, 0, "%d", i);
	}
	table_cell(&t, 1, "%s", text);
	char *got = printed(&t, TABLE_JSON);
	json_t *root = json_loads(got, 0, NULL);
	is_u64(json_array_size(root), 5000, "five thousand rows");
	is_i64(json_integer_value(
		       json_object_get(json_array_get(root, 4321), "i")),
	       4321, "in their order");
	is_u64(json_string_length(
		       json_object_get(json_array_get(root, 4999), "s")),
	       1999, "a long cell is whole");
	json_decref(root);
	free(got);
	table_fini(&t);
}

/* A terminal hands over what it has, so read until `wanted` bytes or 5 s. */
static void read_some(int fd, char *text, size_t size, size_t wanted)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len < wanted && len < size - 1 && poll(&p, 1, 5000) == 1) {
		ssize_t n = read(fd, text + len, size - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = 0;
}

/* On a terminal of `columns`, what the table looks like. */
static void on_terminal(const struct table *t, int columns, const char *wanted)
{
	struct winsize size = { .ws_row = 24,
				.ws_col = (unsigned short)columns };
	int master, slave;

	if (openpty(&master, &slave, NULL, NULL, &size) != 0) {
		skip("no pseudo-terminal: %s", strerror(errno));
		return;
	}
	FILE *out = fdopen(slave, "w");
	ok(table_print(t, TABLE_TEXT, out, NULL), "prints on %d columns",
	   columns);
	char got[1024];
	read_some(master, got, sizeof(got), strlen(wanted));
	is_str(got, wanted, "a terminal of %d columns", columns);
	fclose(out);
	close(master);
}

static void test_terminal(void)
{
	struct table t;

	setenv("NO_COLOR", "1", 1);
	table_init(&t, "name,#n,what it is");
	table_row(&t);
	table_cell(&t, 0, "s_nop");
	table_cell(&t, 1, "12");
	table_cell(&t, 2, "waits for a number of cycles");
	on_terminal(&t, 80,
		    "name    n  what it is\r\n"
		    "s_nop  12  waits for a number of cycles\r\n");
	/* One row that a line has no room for becomes a list. */
	on_terminal(&t, 30,
		    "name        s_nop\r\n"
		    "n           12\r\n"
		    "what it is  waits for a number\r\n"
		    "            of cycles\r\n");
	table_row(&t);
	table_cell(&t, 0, "s_endpgm");
	table_cell(&t, 1, "48");
	table_cell(&t, 2, "end");
	/* Prose is folded, nothing is cut. */
	on_terminal(&t, 36,
		    "name       n  what it is\r\n"
		    "s_nop     12  waits for a number of\r\n"
		    "              cycles\r\n"
		    "s_endpgm  48  end\r\n");
	/* What is too wide even so continues below, with the names again. */
	on_terminal(&t, 15,
		    "name       n\r\n"
		    "s_nop     12\r\n"
		    "s_endpgm  48\r\n\r\n"
		    "name      what it is\r\n"
		    "s_nop     waits for a\r\n"
		    "          number of cycles\r\n"
		    "s_endpgm  end\r\n");
	table_fini(&t);
}

/* A column of one value, one without, and two that are too wide together. */
static void test_narrow_terminal(void)
{
	struct table t;

	table_init(&t, "case,origin,#lo,config");
	for (int i = 0; i < 2; i++) {
		table_row(&t);
		table_cell(&t, 0, "bf16_nn_%d", 256 << i);
		table_cell(&t, 1, "simulated");
		table_cell(&t, 3, "64x32x64_w4x1_b2_p%d", i);
	}
	on_terminal(&t, 80,
		    "case         origin     config\r\n"
		    "bf16_nn_256  simulated  64x32x64_w4x1_b2_p0\r\n"
		    "bf16_nn_512  simulated  64x32x64_w4x1_b2_p1\r\n");
	on_terminal(&t, 40,
		    "origin: simulated\r\n"
		    "case         config\r\n"
		    "bf16_nn_256  64x32x64_w4x1_b2_p0\r\n"
		    "bf16_nn_512  64x32x64_w4x1_b2_p1\r\n");
	is_printed(&t, TABLE_TEXT,
		   "case         origin      lo  config\n"
		   "bf16_nn_256  simulated  n/a  64x32x64_w4x1_b2_p0\n"
		   "bf16_nn_512  simulated  n/a  64x32x64_w4x1_b2_p1\n",
		   "what is no terminal gets everything");
	table_fini(&t);
}

/*
 * Below, rows have as many names as tell them apart, and those without a value
 * are left out.
 */
static void test_continued(void)
{
	struct table t;
	static const char *const rows[][4] = {
		{ "v_add_f32", "1", "five cycles each", NULL },
		{ "v_add_f32", "8", NULL, "2.5" },
		{ "v_rcp_f32", "1", NULL, "10" },
	};

	table_init(&t, "instruction,#waves,what is known of it,#cycles");
	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		table_row(&t);
		for (int i = 0; i < 4; i++)
			if (rows[r][i])
				table_cell(&t, i, "%s", rows[r][i]);
	}
	on_terminal(&t, 43,
		    "instruction  waves  what is known of it\r\n"
		    "v_add_f32        1  five cycles each\r\n"
		    "v_add_f32        8  n/a\r\n"
		    "v_rcp_f32        1  n/a\r\n\r\n"
		    "instruction  waves  cycles\r\n"
		    "v_add_f32        8     2.5\r\n"
		    "v_rcp_f32        1      10\r\n");
	table_fini(&t);
}

/* Names that leave little room fold prose into many lines, but a line fits. */
static void test_little_room(void)
{
	struct table t;

	table_init(&t, "name,said of it");
	for (int i = 0; i < 2; i++) {
		table_row(&t);
		table_cell(&t, 0, "a-name-of-twenty-two-%d", i);
		table_cell(&t, 1,
			   "prose of words, of which there are more than "
			   "there is room for behind such a name, %d of them",
			   i);
	}
	on_terminal(&t, 42,
		    "name                    said of it\r\n"
		    "a-name-of-twenty-two-0  prose of words, of\r\n"
		    "                        which there are\r\n"
		    "                        more than there is\r\n"
		    "                        room for behind\r\n"
		    "                        such a name, 0 of\r\n"
		    "                        them\r\n"
		    "a-name-of-twenty-two-1  prose of words, of\r\n"
		    "                        which there are\r\n"
		    "                        more than there is\r\n"
		    "                        room for behind\r\n"
		    "                        such a name, 1 of\r\n"
		    "                        them\r\n");
	table_fini(&t);
}

/* Messages are folded on a terminal, each line behind its own indentation. */
static void test_folding(void)
{
	static const struct {
		const char *text;
		size_t width, hang;
		const char *wanted;
	} rows[] = {
		{ "one two three", 7, 2, "one two\n  three" },
		{ "one two three", 0, 2, "one two three" },
		{ "a\n  bb cc dd\n", 7, 2, "a\n  bb cc\n    dd\n" },
		{ "unbreakable it is", 5, 0, "unbreakable\nit is" },
		{ "\xc2\xb5s \xc2\xb5s \xc2\xb5s", 5, 0,
		  "\xc2\xb5s \xc2\xb5s\n\xc2\xb5s" },
		{ "", 5, 2, "" },
		{ "\tone two three", 16, 2, "\tone two\n          three" },
		{ "ends on a blank ", 15, 2, "ends on a blank" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf out = { 0 };

		fold_text(&out, rows[i].text, rows[i].width, rows[i].hang);
		is_str(out.data ? out.data : "", rows[i].wanted,
		       "\"%s\" in %zu", rows[i].text, rows[i].width);
		buf_fini(&out);
	}
}

static void test_units(void)
{
	struct table t;
	const struct {
		double value;
		const char *unit, *wanted;
	} rows[] = {
		{ 5.741e-6, "s", "5.741 \xc2\xb5s" }, { 0.25, "s", "250 ms" },
		{ 3e-10, "s", "0.3 ns" },	      { 90, "s", "90 s" },
		{ 67108864, "B", "64 MiB" },	      { 1000, "B", "1000 B" },
		{ 9.6e11, "B/s", "960 GB/s" },	      { 0, "s", "0 s" },
		{ 1.229e14, "FLOP/s", "122.9 TFLOP/s" },
		{ -2.5e9, "Hz", "-2.5 GHz" },	      { 17, "cycle", "17 cycle" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf b = { 0 };

		unit_print(&b, rows[i].value, rows[i].unit);
		is_str(b.data, rows[i].wanted, "%g %s", rows[i].value,
		       rows[i].unit);
		buf_fini(&b);
	}
	table_init(&t, "case,~value,unit,~lo,#n");
	table_row(&t);
	table_cell(&t, 0, "a|b");
	table_cell(&t, 1, "5.741e-06");
	table_cell(&t, 2, "s");
	table_cell(&t, 3, "4.9e-07");
	table_cell(&t, 4, "30");
	is_printed(&t, TABLE_TEXT,
		   "case  value  unit    lo   n\n"
		   "a|b   5.741  \xc2\xb5s    0.49  30\n",
		   "text has units of the size of the value");
	is_printed(&t, TABLE_CSV, "case,value,unit,lo,n\r\n"
		   "a|b,5.741e-06,s,4.9e-07,30\r\n", "CSV has them as they are");
	is_printed(&t, TABLE_JSON, "[\n  {\"case\": \"a|b\", \"value\": "
		   "5.741e-06, \"unit\": \"s\", \"lo\": 4.9e-07, \"n\": 30}\n]\n",
		   "and so has JSON");
	is_printed(&t, TABLE_MARKDOWN,
		   "| case | value | unit | lo | n |\n"
		   "| --- | ---: | --- | ---: | ---: |\n"
		   "| a\\|b | 5.741 | \xc2\xb5s | 0.49 | 30 |\n",
		   "markdown is as text");
	table_fini(&t);
}

static void test_colours(void)
{
	struct table t;
	struct err e = { 0 };

	table_init(&t, "case,verdict");
	table_row(&t);
	table_cell(&t, 0, "x");
	table_cell(&t, 1, "regress: 7 %%");
	ok(paint_when("always", &e), "colours always");
	is_printed(&t, TABLE_TEXT,
		   "\033[1mcase\033[0m  \033[1mverdict\033[0m\n"
		   "x     \033[31mregress: 7 %\033[0m\n",
		   "a head is bold and a loss is red");
	is_printed(&t, TABLE_CSV, "case,verdict\r\nx,regress: 7 %\r\n",
		   "CSV is not");
	setenv("NO_COLOR", "1", 1);
	is_printed(&t, TABLE_TEXT, "case  verdict\nx     regress: 7 %\n",
		   "with NO_COLOR there are none");
	ok(paint_when("always", &e), "but --color=always overrules it");
	ok(paint_when("never", &e), "never");
	is_printed(&t, TABLE_TEXT, "case  verdict\nx     regress: 7 %\n",
		   "there are none");
	ok(!paint_when("often", &e), "no other word");
	table_fini(&t);
}

static void test_full_disk(void)
{
	struct err e = { 0 };
	struct table t;
	FILE *full = fopen("/dev/full", "w");

	fill(&t);
	ok(!table_print(&t, TABLE_TEXT, full, &e), "a full disk is an error");
	is_str(e.msg, "table: cannot write: No space left on device",
	       "and says so");
	fclose(full);
	table_fini(&t);
}

int main(void)
{
	test_formats();
	test_empty();
	test_json_strings();
	test_json_numbers();
	test_csv_quotes();
	test_text_strings();
	test_many();
	test_terminal();
	test_narrow_terminal();
	test_continued();
	test_little_room();
	test_folding();
	test_units();
	test_colours();
	test_full_disk();
	return plan_done();
}
