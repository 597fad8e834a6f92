/* The coherence detector: its self-test, its limits, and that it can fail. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/text.h"
#include "tests/tap.h"

static void test_limits(void)
{
	struct qwen_limits l;
	struct err e = { 0 };

	qwen_limits_init(&l);
	is_f64(l.v[QWEN_LIMIT_min_tokens], 1, "a default");
	ok(qwen_limits_parse(&l, "# none\n\nmin_tokens 5 # more\n"
				 "top_share 0.25\n", &e),
	   "a file of limits is read");
	is_f64(l.v[QWEN_LIMIT_min_tokens], 5, "one is replaced");
	is_f64(l.v[QWEN_LIMIT_top_share], 0.25, "and another");
	ok(!qwen_limits_parse(&l, "a 1", &e), "an unknown name is refused");
	has_str(e.msg, "line 1: there is no limit \"a\"", "with its line");
	ok(!qwen_limits_parse(&l, "\nmin_tokens x", &e), "a word is refused");
	has_str(e.msg, "line 2", "with its line");
	ok(!qwen_limits_parse(&l, "min_tokens nan", &e), "NaN is refused");
	ok(!qwen_limits_load(&l, "/nonexistent", &e) && e.code == ERR_IO,
	   "a file that is not there is trouble, not a pass");
}

static struct qwen_tokenizer *bytes(void)
{
	struct buf v = { 0 };
	struct err e = { 0 };
	unsigned next = 256;

	buf_adds(&v, "{");
	for (unsigned b = 0; b < 256; b++) {
		bool itself = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
		buf_printf(&v, "%s\"\\u%04x\":%u", b ? "," : "",
			   itself ? b : next++, b);
	}
	buf_adds(&v, "}");
	struct qwen_source s = { .vocab = v.data, .merges = "",
				 .added = "[{\"id\":300,\"content\":\"<e>\","
					  "\"special\":true}]" };
	struct qwen_tokenizer *t = qwen_tokenizer_parse(&s, &e);
	buf_fini(&v);
	return t;
}

static struct qwen_coherence look(const struct qwen_tokenizer *t,
				  const uint32_t *id, size_t n)
{
	uint32_t stop = 300;
	struct qwen_stream s = { id, n, &stop, 1, false };
	struct qwen_coherence c;
	struct qwen_limits l;

	qwen_limits_init(&l);
	qwen_coherence_check(&c, &s, t, &l);
	return c;
}

/* What is found where, in streams whose values are known by construction. */
static void test_values(const struct qwen_tokenizer *t)
{
	uint32_t id[200];

	for (uint32_t i = 0; i < 200; i++)
		id[i] = i;
	struct qwen_coherence c = look(t, id, 200);
	ok(c.passed, "200 different tokens pass");
	is_f64(c.value[QWEN_LIMIT_unique_share], 1, "all unique");
	is_f64(c.value[QWEN_LIMIT_top_share], 1. / 128, "none frequent");
	is_f64(c.value[QWEN_LIMIT_repeated_share], 0, "no 4-gram twice");
	is_u64(c.period, 0, "no loop");

	for (uint32_t i = 100; i < 170; i++)
		id[i] = 7 * (i % 7);
	c = look(t, id, 200);
	ok(!c.passed && c.broken[QWEN_LIMIT_loop_tokens], "a loop is found");
	is_u64(c.period, 7, "with its period");
	is_u64(c.loop_at, 100, "and its place");
	is_f64(c.value[QWEN_LIMIT_loop_tokens], 70, "and its length");
	is_f64(c.value[QWEN_LIMIT_loop_rounds], 10, "and its rounds");

	c = look(t, id, 20);
	ok(isnan(c.value[QWEN_LIMIT_unique_share]) && c.passed,
	   "20 tokens are too few to judge shares");
	uint32_t end = 300;
	c = look(t, &end, 1);
	ok(!c.passed && c.broken[QWEN_LIMIT_min_tokens],
	   "an immediate end is found");
	c = look(t, &end, 0);
	ok(!c.passed, "so is nothing at all");
	end = 299;
	c = look(t, &end, 1);
	ok(c.broken[QWEN_LIMIT_special_tokens],
	   "an id that no token has is no text");
}

/* Every length of stream and every period, built from the definition. */
static void test_periods(const struct qwen_tokenizer *t)
{
	uint32_t id[512], x = 1;
	unsigned missed = 0, wrong = 0;

	for (uint32_t p = 1; p <= QWEN_LONGEST_PERIOD; p++) {
		size_t n = 0;
		while (n < 100)
			id[n++] = (x = x * 69069 + 1) >> 25;
		for (size_t i = 0; i < 4 * p + 48; i++)
			id[n++] = 130 + (uint32_t)(i % p);
		struct qwen_coherence c = look(t, id, n);
		missed += c.passed;
		wrong += c.period != p;
	}
	is_u64(missed, 0, "a loop of any period from 1 to 64 is found");
	is_u64(wrong, 0, "as that period, not as a multiple");
}

int main(void)
{
	struct err e = { 0 };

	if (!ok(qwen_coherence_selftest(&e), "the self-test passes"))
		diag("%s", e.msg);
	test_limits();
	struct qwen_tokenizer *t = bytes();
	if (ok(t != NULL, "a tokenizer")) {
		test_values(t);
		test_periods(t);
	}
	qwen_tokenizer_free(t);
	return plan_done();
}
