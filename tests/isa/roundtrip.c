/*
 * Any bytes: decoding reads nothing outside them, what decodes encodes to the
 * same bytes, and text is cut where its buffer ends.
 *
 * The input ends where an unmapped page begins, so a read too far crashes.
 */
#include <stdlib.h>

#include "isa/text/text.h"
#include "tests/isa/gen.h"
#include "tests/isa/guard.h"
#include "tests/tap.h"

enum { RANDOM_WORDS = 1500000, MADE = 1000000 };

struct result {
	uint64_t accepted, refused, changed, too_long, shorter_refused;
};

static void one(const struct isa_target *t, const uint8_t *code, size_t size,
		struct result *r)
{
	uint8_t out[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;

	if (isa_decode(t, code, size, &in)) {
		r->refused++;
		return;
	}
	r->accepted++;
	if (in.size_bytes > size)
		r->too_long++;
	if (isa_encode(&in, out) != in.size_bytes ||
	    memcmp(out, code, in.size_bytes))
		r->changed++;
}

static void check_result(const struct result *r, const char *what)
{
	diag("%s: %llu accepted, %llu refused", what,
	     (unsigned long long)r->accepted, (unsigned long long)r->refused);
	ok(r->accepted && r->refused, "%s: some decode, some do not", what);
	is_u64(r->changed, 0, "%s: encoding gives the bytes back", what);
	is_u64(r->too_long, 0, "%s: no instruction is longer than its input",
	       what);
}

/* Input of every size, at the end of a page. */
static void random_words(uint8_t *end, int wave, uint64_t seed)
{
	struct isa_target t = { .gen = ISA_GFX11, .wave = wave };
	struct isa_gen_state g = { .seed = seed, .gen = ISA_GFX11 };
	struct result r = { 0 };

	for (int i = 0; i < RANDOM_WORDS / 2; i++) {
		size_t size = gen_below(&g, ISA_MAX_SIZE_BYTES + 4);

		for (size_t k = 1; k <= size; k++)
			end[-(ptrdiff_t)k] = (uint8_t)(gen_u32(&g) >> 8);
		one(&t, end - size, size, &r);
	}
	check_result(&r, wave == 32 ? "random bytes, wave32" :
				      "random bytes, wave64");
}

static void made_instructions(uint8_t *end, int wave, uint64_t seed)
{
	struct isa_target t = { .gen = ISA_GFX11, .wave = wave };
	struct isa_gen_state g = { .seed = seed, .gen = ISA_GFX11 };
	struct result r = { 0 };

	for (int i = 0; i < MADE / 2; i++) {
		uint8_t *code = end - ISA_MAX_SIZE_BYTES;

		gen_inst(&g, code);
		one(&t, code, ISA_MAX_SIZE_BYTES, &r);
	}
	check_result(&r, wave == 32 ? "likely instructions, wave32" :
				      "likely instructions, wave64");
}

/* Every prefix of an instruction is refused, and its own size suffices. */
static void sizes(uint8_t *end, uint64_t seed)
{
	struct isa_target t = { .gen = ISA_GFX11, .wave = 32 };
	struct isa_gen_state g = { .seed = seed, .gen = ISA_GFX11 };
	int prefix = 0, exact = 0;

	for (int i = 0; i < 100000; i++) {
		uint8_t code[ISA_MAX_SIZE_BYTES];
		struct isa_inst in, again;

		gen_inst(&g, code);
		if (isa_decode(&t, code, sizeof(code), &in))
			continue;
		for (size_t n = 0; n <= in.size_bytes; n++) {
			memcpy(end - n, code, n);
			if (n < in.size_bytes)
				prefix += !isa_decode(&t, end - n, n, &again);
			else
				exact += isa_decode(&t, end - n, n, &again) ||
					 again.size_bytes != n;
		}
	}
	is_u64((uint64_t)prefix, 0, "a prefix of an instruction is none");
	is_u64((uint64_t)exact, 0, "an instruction needs no bytes behind it");
}

/* Text of every length: the same, cut, and nothing behind the end. */
static void text_sizes(uint64_t seed)
{
	struct isa_target t = { .gen = ISA_GFX11, .wave = 32 };
	struct isa_gen_state g = { .seed = seed, .gen = ISA_GFX11 };
	int wrong = 0, longest = 0, names = 0;

	for (int i = 0; i < 20000; i++) {
		uint8_t code[ISA_MAX_SIZE_BYTES];
		char full[ISA_TEXT_MAX], part[ISA_TEXT_MAX + 1];
		struct isa_inst in;
		int len, name_len;

		gen_inst(&g, code);
		if (isa_decode(&t, code, sizeof(code), &in))
			continue;
		len = isa_print(&t, &in, full, sizeof(full));
		longest = len > longest ? len : longest;
		wrong += len != (int)strlen(full);
		name_len = isa_print_name(&in, part, sizeof(part));
		names += name_len != (int)strlen(part) ||
			 (in.fmt != ISA_FMT_VOPD &&
			  strncmp(part, full, (size_t)name_len));
		wrong += isa_print(&t, &in, NULL, 0) != len;
		for (int size = 1; size <= len + 2; size += 1 + len / 8) {
			memset(part, '#', sizeof(part));
			wrong += isa_print(&t, &in, part, (size_t)size) != len;
			wrong += part[size] != '#';
			wrong += strncmp(part, full, (size_t)size - 1) != 0;
			wrong += (int)strlen(part) !=
				 (len < size ? len : size - 1);
		}
	}
	is_u64((uint64_t)wrong, 0, "text is cut where its buffer ends");
	is_u64((uint64_t)names, 0, "text begins with the name");
	diag("longest text: %d characters", longest);
	ok(longest < ISA_TEXT_MAX / 2, "ISA_TEXT_MAX is twice what is needed");
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20260702;
	uint8_t *end = guard_end(1);

	diag("seed %llu", (unsigned long long)seed);
	random_words(end, 32, seed);
	random_words(end, 64, seed + 1);
	made_instructions(end, 32, seed + 2);
	made_instructions(end, 64, seed + 3);
	sizes(end, seed + 4);
	text_sizes(seed + 5);
	return plan_done();
}
