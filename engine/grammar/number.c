/*
 * engine/grammar/number.c - integers of a range.
 */
#include "engine/grammar/grammar_int.h"

/*
 * Numbers of n digits each, from the text `least` to the text `most`: those
 * with the first digit of one of them go on as a narrower range, those between
 * with any digits.
 */
static uint32_t add_digits(struct qwen_grammar *g, const char *least,
			   const char *most, size_t n)
{
	static const char nines[] = "999999999999999",
			  zeros[] = "000000000000000";
	uint32_t r = grammar_add_rule(g);
	const char low[] = { least[0], '\0' }, high[] = { most[0], '\0' };

	if (!n) {
		grammar_add(g, r, "");
	} else if (!memcmp(least, zeros, n) && !memcmp(most, nines, n)) {
		grammar_add(g, r, "%c%r", "0-9",
			    add_digits(g, zeros, nines, n - 1));
	} else if (*least == *most) {
		grammar_add(g, r, "%c%r", low,
			    add_digits(g, least + 1, most + 1, n - 1));
	} else {
		const char between[] = { (char)(*least + 1), '-',
					 (char)(*most - 1), '\0' };
		grammar_add(g, r, "%c%r", low,
			    add_digits(g, least + 1, nines, n - 1));
		if (*most - *least > 1)
			grammar_add(g, r, "%c%r", between,
				    add_digits(g, zeros, nines, n - 1));
		grammar_add(g, r, "%c%r", high,
			    add_digits(g, zeros, most + 1, n - 1));
	}
	return r;
}

/* Numbers that are not negative, a length at a time. */
static void add_positive(struct qwen_grammar *g, uint32_t rule,
			 const char *sign, int64_t least, int64_t most)
{
	int64_t power = 10;

	for (int64_t from = least; from <= most; power *= 10) {
		char low[24], high[24];
		int64_t to = power - 1 < most ? power - 1 : most;
		if (from >= power)
			continue;
		int n = snprintf(low, sizeof(low), "%lld", (long long)from);
		snprintf(high, sizeof(high), "%lld", (long long)to);
		struct seq s = { 0 };
		seq_add_text(g, &s, sign, strlen(sign));
		seq_add_rule(&s, add_digits(g, low, high, (size_t)n));
		grammar_add_seq(g, rule, &s);
		from = to + 1;
	}
}

uint32_t integer_add_range(struct qwen_grammar *g, int64_t least, int64_t most)
{
	uint32_t r = grammar_add_rule(g);

	if (least < 0)
		add_positive(g, r, "-", most < 0 ? -most : 1, -least);
	if (most >= 0)
		add_positive(g, r, "", least > 0 ? least : 0, most);
	return r;
}
