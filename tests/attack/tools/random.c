/*
 * Random numbers of an attack, and hostile words.
 */
#include <string.h>

#include "tests/attack/tools/campaign.h"

uint64_t below(struct attack *a, uint64_t n)
{
	return random_next(&a->random) % n;
}

bool one_in(struct attack *a, unsigned n)
{
	return below(a, n) == 0;
}

uint64_t log_uniform(struct attack *a, uint64_t least, uint64_t most)
{
	uint64_t high = least;

	while (high < most && !one_in(a, 8))
		high += high / 4 + 1;
	if (high > most)
		high = most;
	return least + below(a, high - least + 1);
}

/* Absolute names only of what cannot be written, or swallows everything. */
static const char *const words[] = {
	/* numbers */
	"0", "1", "-1", "2", "3", "4", "7", "8", "16", "31", "32", "33", "63",
	"64", "65", "127", "128", "255", "256", "257", "1000", "1024", "4096",
	"65535", "65536", "65537", "16777216", "2147483647", "2147483648",
	"4294967295", "4294967296", "9223372036854775807",
	"9223372036854775808", "18446744073709551615", "18446744073709551616",
	"-2147483648", "-2147483649", "-9223372036854775808", "1e999", "1e-999",
	"-0", "0.0", "-0.0", "nan", "NaN", "-nan", "inf", "-inf", "0x", "0x10",
	"0xffffffffffffffff", "0x1p4", "1k", "1K", "1M", "1G", "16G",
	"17179869184G", "1kk", "k", "1T", " 1", "1 ", "+1", "1.5", ".5", "1.",
	"1e3", "1e-9", "1e6", "0b1", "007", "1_000", "1,000", "\xd9\xa1",
	/* lists, sweeps, shapes */
	"1,2,3", "1,,2", ",", "1,", ",1", "..", "1..", "..2", "1..2", "2..1",
	"1..1G*2", "1..10+0", "1..10*1", "0..10*2", "1..999999", "1..1M",
	"0..18446744073709551615", "1x1x1", "16x16x16", "64x64x64x2", "0x0x0",
	"-1x2x3", "1x1x1x1x1", "1x1", "x", "xx", "99999999999x1x1",
	"65536x65536x65536", "1,1,1", "0,0,0", "64,1,1", "1,1,1:0",
	"4294967295,4294967295,4294967295",
	/* arguments of kernels and the like */
	"f32:1", "u32:64", "u64:0", "buf:64:f32=iota", "buf:0", "buf:-1",
	"buf:1G", "buf:17179869184G", "buf:64:f32=random(1,nan,inf)",
	"buf:64:f32=iota(1", "buf:64:f64=iota(1e308,1e308)", "out:64:f32",
	"out:64>", "out:1:u8=file:", "ref:0", "ref:99", "ref:0+1G", "lds:1G",
	"bytes:", "bytes:0", "bytes:zz", "null", "VOP3:1", "SOPP:65535",
	"SOP1:0=1,2,3,4,5", "VOP3:", "alu=1", "valu.latency=-1",
	"valu.latency=1e308", "valu.latency=nan", "branch.taken=0",
	"clock=0", "=1", "name=", "0=out", "99=out",
	/* names that mean something somewhere */
	"soft", "soft*2:1", "soft:gfx1100*9", "soft*", "soft:", "kfd", "kfd:0",
	"kfd:-1", "kfd:99999999999", "sim", "host",
	"last", "baseline", "run:1", "run:0", "gfx1100", "gfx1103", "gfx1200",
	"gfx", "f32", "f16", "bf16", "i8", "int8", "int4", "none", "all",
	"true", "quick", "exhaustive", "nt", "tt", "swiglu,beta", "tiny",
	"0.6b", "32b", "cpu", "gpu", "hardware", "published", "default",
	"ssa:all", "final", "saxpy", "axpy", "v_add_f32", "1234567", "keep",
	"accept", "list", "show", "add", "retire", "HEAD", "HEAD~1..HEAD",
	/* punctuation, controls, and what is not UTF-8 */
	"", " ", "a", "-", "--", "---", "-h", "--help", "--version",
	"--help=scd", "--help=", "=", "a=b", "=b", "a=", "%s%n%s%s%s", "%99999d",
	"\033[31mred", "\xff\xfe", "\x9b" "31m", "\xc2\x9b" "31m", "\n", "a\nb",
	"t0-isa: all is well\nt0-isa: really", "\r", "a\rb", "\t", "\b\b\b",
	"\x7f", "\a", "'", "\"", "\\", "a'b\"c", "$HOME", "`false`", ";", "|",
	"*", "?", "[", "[a", "{", "(", ")", "((((((((", "<", ">", "&", "#",
	"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\xef\xbb\xbf",
	"\xe2\x80\xae" "abc", "\xf0\x9f\x92\xa9", "null", "NULL", "{}", "[]",
	"SELECT 1", "SELECT", "DROP TABLE runs", "SELECT 1; SELECT 2",
	"DELETE FROM runs", "PRAGMA writable_schema=1", "ATTACH 'x' AS y",
	"SELECT zeroblob(1000000000)", "SELECT char(27)||'[31m'",
	"SELECT 1 AS \"a\nb\"", "SELECT NULL, x'00ff', 9e999, ''",
	"' OR 1=1 --",
	/* files */
	".", "..", "./", "./.", "/dev/null", "/dev/full", "/dev/zero",
	"/dev/null/x", "/proc/self/mem", "/dev/stdin", "/dev/stdout",
	"/dev/fd/0", "/dev/fd/99", "/", "/proc/none/x", "no/such/file",
	"t0.db", "saxpy.co", "t0.db/", "saxpy.co/x", ":memory:",
	"file:t0.db?mode=memory", "file:t0.db?vfs=none", "saxpy.co:x",
};

static const char *const long_pieces[] = {
	"a", "1", "%s", "(", "[", "{\"a\":", "-", "../", "\xff", "\n", "1,",
	"0", "x", "\xf0\x9f\x92\xa9", ".",
};

static char *long_word(struct attack *a)
{
	const char *piece = long_pieces[below(a, ARRAY_SIZE(long_pieces))];
	size_t len = log_uniform(a, 60, 100000), one = strlen(piece);
	char *s = arena_alloc(&a->mem, len + one + 1);

	for (size_t at = 0; at < len; at += one)
		memcpy(s + at, piece, one);
	return s;
}

char *hostile_word(struct attack *a)
{
	if (one_in(a, 25))
		return long_word(a);
	const char *word = words[below(a, ARRAY_SIZE(words))];
	/* Whom nothing stops writes into no root folder. */
	if (!a->c->drop && !strcmp(word, "/"))
		word = "/proc/none";
	return arena_strdup(&a->mem, word);
}

char *bent_word(struct attack *a, const char *word)
{
	size_t len = strlen(word), at = len ? below(a, len + 1) : 0;

	switch (below(a, 7)) {
	case 0: /* cut */
		return arena_printf(&a->mem, "%.*s", (int)at, word);
	case 1: /* something in it */
		return arena_printf(&a->mem, "%.*s%s%s", (int)at, word,
				    hostile_word(a), word + at);
	case 2: /* twice */
		return arena_printf(&a->mem, "%s%s", word, word);
	case 3: /* another byte */
	case 4: {
		char *s = arena_strdup(&a->mem, word);

		if (len)
			s[below(a, len)] = (char)(1 + below(a, 255));
		return s;
	}
	case 5: { /* another value behind the last = or : */
		const char *mark = strpbrk(word, "=:");
		int keep = mark ? (int)(mark + 1 - word) : 0;

		return arena_printf(&a->mem, "%.*s%s", keep, word,
				    hostile_word(a));
	}
	default:
		return hostile_word(a);
	}
}
