/*
 * engine/grammar/json.c - the rules of JSON.
 */
#include "engine/grammar/grammar_int.h"

/* Most digits of a part of a number, and blanks behind a line break. */
enum { DIGITS = 15, BLANKS = 20 };

#define HEX  "0-9a-fA-F"
#define TAIL "\x80-\xbf"

/* One character of a string: well-formed UTF-8 or an escape (RFC 3629, 8259).
 */
static uint32_t add_character(struct qwen_grammar *g)
{
	uint32_t r = grammar_add_rule(g);

	grammar_add(g, r, "%c", " !#-[]-\x7f");
	grammar_add(g, r, "%c%c", "\xc2-\xdf", TAIL);
	grammar_add(g, r, "%c%c%c", "\xe0", "\xa0-\xbf", TAIL);
	grammar_add(g, r, "%c%c%c", "\xe1-\xec\xee\xef", TAIL, TAIL);
	grammar_add(g, r, "%c%c%c", "\xed", "\x80-\x9f", TAIL);
	grammar_add(g, r, "%c%c%c%c", "\xf0", "\x90-\xbf", TAIL, TAIL);
	grammar_add(g, r, "%c%c%c%c", "\xf1-\xf3", TAIL, TAIL, TAIL);
	grammar_add(g, r, "%c%c%c%c", "\xf4", "\x80-\x8f", TAIL, TAIL);
	grammar_add(g, r, "\\%c", "\"\\/bfnrt");
	/* Neither zero nor a surrogate. */
	grammar_add(g, r, "\\u%c%c%c%c", "1-9a-cA-CefEF", HEX, HEX, HEX);
	grammar_add(g, r, "\\u%c%c%c%c", "dD", "0-7", HEX, HEX);
	grammar_add(g, r, "\\u0%c%c%c", "1-9a-fA-F", HEX, HEX);
	grammar_add(g, r, "\\u00%c%c", "1-9a-fA-F", HEX);
	grammar_add(g, r, "\\u000%c", "1-9a-fA-F");
	return r;
}

static uint32_t add_space(struct qwen_grammar *g)
{
	uint32_t r = grammar_add_rule(g), blank = grammar_add_rule(g);

	grammar_add(g, blank, " ");
	grammar_add(g, r, "");
	grammar_add(g, r, " ");
	grammar_add(g, r, "\n%r", grammar_repeat(g, blank, 0, BLANKS));
	return r;
}

static void add_numbers(struct qwen_grammar *g, struct json_rules *j)
{
	uint32_t digit = grammar_add_rule(g), fraction = grammar_add_rule(g),
		 exponent = grammar_add_rule(g);

	grammar_add(g, digit, "%c", "0-9");
	j->integer = integer_add_range(g, -(int64_t)MOST_INTEGER, MOST_INTEGER);
	grammar_add(g, j->integer, "-0");
	grammar_add(g, fraction, "");
	grammar_add(g, fraction, ".%r", grammar_repeat(g, digit, 1, DIGITS));
	grammar_add(g, exponent, "");
	grammar_add(g, exponent, "%c%r", "eE", grammar_repeat(g, digit, 1, 2));
	grammar_add(g, exponent, "%c%c%r", "eE", "-+",
		    grammar_repeat(g, digit, 1, 2));
	j->number = grammar_add_rule(g);
	grammar_add(g, j->number, "%r%r%r", j->integer, fraction, exponent);
}

void json_add_rules(struct qwen_grammar *g, struct json_rules *j)
{
	const uint32_t value = grammar_add_rule(g),
		       object = grammar_add_rule(g),
		       array = grammar_add_rule(g),
		       string = grammar_add_rule(g), pair = grammar_add_rule(g),
		       pairs = grammar_add_rule(g),
		       values = grammar_add_rule(g), space = add_space(g);

	j->value = value;
	j->object = object;
	j->array = array;
	j->string = string;
	j->space = space;
	j->character = add_character(g);
	add_numbers(g, j);
	grammar_add(g, string, "\"%r\"",
		    grammar_repeat(g, j->character, 0, UINT32_MAX));
	grammar_add(g, pair, "%r%r:%r%r", string, space, space, value);
	grammar_add(g, object, "{%r}", space);
	grammar_add(g, object, "{%r%r%r", space, pair, pairs);
	grammar_add(g, pairs, "%r}", space);
	grammar_add(g, pairs, "%r,%r%r%r", space, space, pair, pairs);
	grammar_add(g, array, "[%r]", space);
	grammar_add(g, array, "[%r%r%r", space, value, values);
	grammar_add(g, values, "%r]", space);
	grammar_add(g, values, "%r,%r%r%r", space, space, value, values);
	grammar_add(g, value, "%r", object);
	grammar_add(g, value, "%r", array);
	grammar_add(g, value, "%r", string);
	grammar_add(g, value, "%r", j->number);
	grammar_add(g, value, "true");
	grammar_add(g, value, "false");
	grammar_add(g, value, "null");
}

struct qwen_grammar *qwen_grammar_json(void)
{
	struct qwen_grammar *g = xcalloc(1, sizeof(*g));
	struct json_rules j;

	json_add_rules(g, &j);
	if (!grammar_finish(g, j.object))
		BUG("the rules of JSON have no end");
	return g;
}
