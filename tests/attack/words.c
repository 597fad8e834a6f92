/*
 * Fuzz target: what a user writes on a command line.  The first byte chooses
 * the grammar, lines are words.  What is accepted must, printed, be accepted
 * again and mean the same; what is refused has a reason.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cpu_tune/cpu_tune.h"
#include "autotune/tuner/tune.h"
#include "compiler/gemm/gemm.h"
#include "isa/launch/launch.h"
#include "probes/discover/discover.h"
#include "tests/attack/driver/driver.h"

enum { WORDS = 8, TEXT = 512 };

static void check_answer(bool accepted, const struct err *e)
{
	if (!accepted && (e->code == ERR_NONE || !e->msg[0]))
		BUG("refused without a reason");
}

/* Numbers of more digits would fill memory and time, as their user asked. */
static bool is_modest(const char *s)
{
	for (; *s; s++)
		if (strspn(s, "0123456789") > 4 || strchr("kKMGxX*", *s) ||
		    !strncmp(s, "file", 4))
			return false;
	return true;
}

static void parse_sweep(char **word)
{
	struct err e = { 0 };
	uint64_t *v = NULL, number;
	size_t n = 0;

	bool good = cli_sweep(word[0], &v, &n, &e);
	check_answer(good, &e);
	if (good && (!n || n > 1000000))
		BUG("a sweep of %zu", n);
	free(v);
	memset(&e, 0, sizeof(e));
	check_answer(cli_u64(word[1], &number, &e), &e);
}

static void problem(char **word)
{
	struct tune_problems l = { 0 };
	struct gemm_op op;
	struct err e = { 0 };

	bool good = tune_op_parse(*word[0] ? word[0] : NULL,
				  *word[1] ? word[1] : NULL, word[2], &op, &e);
	check_answer(good, &e);
	if (!good)
		return;
	memset(&e, 0, sizeof(e));
	check_answer(tune_problems_shapes(&l, &op, word[3], &e), &e);
	memset(&e, 0, sizeof(e));
	if (is_modest(word[4]))
		check_answer(tune_problems_sizes(&l, &op, word[4], &e), &e);
	for (size_t i = 0; i < l.n; i++)
		if (!l.v[i].m || !l.v[i].n || !l.v[i].k || !l.v[i].batch)
			BUG("an empty product");
	tune_problems_fini(&l);
}

static void parse_tiles(char **word)
{
	struct gemm_config c, again;
	struct gemm_op op, same;
	struct err e = { 0 };
	char name[TEXT], back[TEXT];

	bool good = gemm_config_parse(word[0], &c, &e);
	check_answer(good, &e);
	if (good) {
		gemm_config_name(&c, name, sizeof(name));
		if (!gemm_config_parse(name, &again, &e))
			BUG("'%s' is refused: %s", name, e.msg);
		gemm_config_name(&again, back, sizeof(back));
		if (strcmp(name, back))
			BUG("'%s' is read as '%s'", name, back);
	}
	memset(&e, 0, sizeof(e));
	good = gemm_op_parse(word[1], &op, &e);
	check_answer(good, &e);
	if (good) {
		gemm_op_name(&op, name, sizeof(name));
		if (!gemm_op_parse(name, &same, &e))
			BUG("'%s' is refused: %s", name, e.msg);
		gemm_op_name(&same, back, sizeof(back));
		if (strcmp(name, back))
			BUG("'%s' is read as '%s'", name, back);
	}
}

static void host_tiles(char **word)
{
	struct cpu_gemm_config c;
	struct err e = { 0 };

	check_answer(cpu_gemm_config_parse(word[0], &c, &e), &e);
}

static void parse_value(char **word)
{
	const struct value_type *t = value_type_find(word[0], strlen(word[0]));
	uint8_t bytes[8], again[8];
	struct buf text = { 0 };
	struct err e = { 0 };

	if (!t)
		return;
	bool good = value_parse(t, word[1], bytes, &e);
	check_answer(good, &e);
	if (good) {
		value_print(t, bytes, &text);
		if (!value_parse(t, text.data, again, &e) ||
		    memcmp(bytes, again, t->size_bytes))
			BUG("%s '%s' does not read back", t->name, text.data);
	}
	buf_fini(&text);
	if (is_modest(word[2])) {
		uint8_t *room = xmalloc(64 * t->size_bytes);

		memset(&e, 0, sizeof(e));
		check_answer(value_fill(t, room, 64, word[2], 1, &e), &e);
		free(room);
	}
}

static void operand(char **word)
{
	const struct co_arg arg = { .size = 8, .name = "x",
				    .type_name = "float*" };
	struct operand o = { 0 };
	struct err e = { 0 };

	if (!is_modest(word[0]))
		return;
	bool good = operand_parse(&o, word[0], 1, &e);
	check_answer(good, &e);
	if (good)
		operand_fits(&o, &arg);
	operand_fini(&o);
}

static void options(char **word)
{
	struct cli_list list = { 0 };
	const char *text = NULL;
	uint64_t number = 0, seconds = 0;
	double real = 0;
	bool flag = false;
	int integer = 0;
	const struct cli_opt o[] = {
		{ "flag", 'f', CLI_FLAG, &flag, NULL, "" },
		{ "text", 't', CLI_STR, &text, "S", "" },
		{ "number", 'n', CLI_U64, &number, "N", "" },
		{ "integer", 'i', CLI_INT, &integer, "N", "" },
		{ "real", 'r', CLI_F64, &real, "N", "" },
		{ "seconds", 's', CLI_SECONDS, &seconds, "N", "" },
		{ "list", 'l', CLI_LIST, &list, "S", "" },
		{ "help", 'h', CLI_STOP, NULL, NULL, "" },
		{ 0 }
	};
	struct cli_line line = { .name = "fuzz", .opt = o };
	char *argv[WORDS + 2] = { (char *)"fuzz" };
	struct err e = { 0 };

	memcpy(argv + 1, word, WORDS * sizeof(*argv));
	bool good = cli_parse(&line, WORDS + 1, argv, &e);
	check_answer(good, &e);
	if (good && !line.stop && (line.first < 1 || line.first > WORDS + 1))
		BUG("the first operand is %d", line.first);
	cli_list_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const grammar[])(char **word) = {
		parse_sweep, problem, parse_tiles, host_tiles, parse_value, operand, options
	};
	char *word[WORDS + 1] = { 0 };

	if (size < 1 || size > TEXT)
		return 0;
	/* Each in memory of its own, so that a sanitizer sees where it ends. */
	const char *at = (const char *)data + 1, *end = (const char *)data + size;
	for (int i = 0; i < WORDS; i++) {
		const char *nl = memchr(at, '\n', end - at);
		size_t n = (nl ? nl : end) - at;

		word[i] = strndup(at, n);
		at += n + (nl != NULL);
	}
	grammar[*data % ARRAY_SIZE(grammar)](word);
	for (int i = 0; i < WORDS; i++)
		free(word[i]);
	return 0;
}
