/* base/cli.c: sweeps. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/tap.h"

static void test_values(void)
{
	/* Wanted values are written out by hand. */
	static const struct {
		const char *text, *wanted;
	} c[] = {
		{ "5", "5" },
		{ "1,2,4", "1 2 4" },
		{ "3..7", "3 4 5 6 7" },
		{ "7..7", "7" },
		{ "0..10+4", "0 4 8" },
		{ "0..8+4", "0 4 8" },
		{ "5..6+10", "5" },
		{ "1..32*2", "1 2 4 8 16 32" },
		{ "3..100*3", "3 9 27 81" },
		{ "1k..4k*2", "1024 2048 4096" },
		{ "0..1k+512", "0 512 1024" },
		{ "0x10..0x12", "16 17 18" },
		{ "64,1..3,100..120+10", "64 1 2 3 100 110 120" },
		{ "2,2,1", "2 2 1" },
		/* The last step would pass 2^64. */
		{ "18446744073709551613..18446744073709551615+2",
		  "18446744073709551613 18446744073709551615" },
		{ "18446744073709551614..18446744073709551615+2",
		  "18446744073709551614" },
		{ "6148914691236517205..18446744073709551615*3",
		  "6148914691236517205 18446744073709551615" },
		{ "9223372036854775808..18446744073709551615*2",
		  "9223372036854775808" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct err e = { 0 };
		struct buf got = { 0 };
		uint64_t *v = NULL;
		size_t n = 0;

		ok(cli_sweep(c[i].text, &v, &n, &e), "%s parses: %s", c[i].text,
		   e.msg);
		for (size_t k = 0; k < n; k++)
			buf_printf(&got, "%s%ju", k ? " " : "",
				   (uintmax_t)v[k]);
		is_str(got.data, c[i].wanted, "the values of %s", c[i].text);
		buf_fini(&got);
		free(v);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *text, *part;
	} c[] = {
		{ "", "sweep \"\": \"\" is not a number" },
		{ "1,", "sweep \"1,\": \"\" is not a number" },
		{ ",1", "is not a number" },
		{ "1,,2", "is not a number" },
		{ "1..", "is not a number" },
		{ "..5", "is not a number" },
		{ "1...5", "is not a number" },
		{ "1..5+", "is not a number" },
		{ "1..5+x", "\"x\" is not a number" },
		{ "1..5+1+1", "\"1+1\" is not a number" },
		{ "1..5-1", "\"5-1\" is not a number" },
		{ "5+1", "\"5+1\" is not a number" },
		{ "9..3", "runs backwards: 9 is above 3" },
		{ "1..5+0", "wanted a step of at least 1" },
		{ "1..5*1", "a factor of at least 2" },
		{ "1..5*0", "a factor of at least 2" },
		{ "0..8*2", "a start of at least 1" },
		{ "18446744073709551616", "is too large" },
		{ "0..1000000", "more than 1000000 values" },
		{ "0..18446744073709551615", "more than 1000000 values" },
		{ "1..600000,1..600000", "more than 1000000 values" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct err e = { 0 };
		uint64_t *v = NULL;
		size_t n = 42;

		ok(!cli_sweep(c[i].text, &v, &n, &e), "\"%s\" is refused",
		   c[i].text);
		has_str(e.msg, c[i].part, "the message for \"%s\"", c[i].text);
		ok(!v && n == 42, "\"%s\" leaves the results alone", c[i].text);
		is_i64(err_exit_code(&e), 2, "\"%s\" exits 2", c[i].text);
	}
}

int main(void)
{
	uint64_t *v = NULL;
	size_t n = 0;

	test_values();
	test_refused();
	ok(cli_sweep("1..1000000", &v, &n, NULL), "a million values are fine");
	is_u64(n, 1000000, "all million are there");
	is_u64(v ? v[999999] : 0, 1000000, "the last one is right");
	free(v);
	return plan_done();
}
