/*
 * What the parser fills in is, to the last bit, what the decoder finds in the
 * bytes: text of random instructions of every generation as printed, with a
 * character or two changed, and read as another generation's, so that rare
 * forms come up.
 */
#include <stdlib.h>

#include "isa/text/text.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum { INSTRUCTIONS = 8000, CHANGES = 6 };

struct count {
	uint64_t accepted, refused, different;
};

static void in_one(const struct isa_target *t, const char *text,
		   struct count *n)
{
	uint8_t code[ISA_MAX_SIZE_BYTES], again[ISA_MAX_SIZE_BYTES];
	struct isa_inst in, back;
	const char *why = isa_assemble_line(t, text, NULL, NULL, &in, code);

	if (why) {
		n->refused++;
		return;
	}
	n->accepted++;
	why = isa_decode(t, code, in.size_bytes, &back);
	if (!why && !memcmp(&in, &back, sizeof(in)) &&
	    isa_encode(&in, again) == in.size_bytes &&
	    !memcmp(code, again, in.size_bytes))
		return;
	if (n->different++ < 5)
		diag("'%s': %s", text,
		     why ? why : "the decoder finds something else");
}

static void one(const struct isa_target *t, const char *text, struct count *n)
{
	struct isa_target other = *t;

	in_one(t, text, n);
	for (int gen = 0; gen < ISA_GEN_COUNT; gen++) {
		other.gen = gen;
		if (gen != (int)t->gen)
			in_one(&other, text, n);
	}
}

/* Another character of those that instructions are made of. */
static void change(struct isa_gen_state *g, char *text)
{
	static const char some[] = "0123456789abcdesvx_[]:,-|. ";
	size_t at = gen_below(g, (uint32_t)strlen(text));

	text[at] = some[gen_below(g, sizeof(some) - 1)];
}

static void generation(const char *chip, int wave, uint64_t seed)
{
	struct isa_gen_state g = { .seed = seed };
	struct isa_target t = { .wave = wave };
	struct count n = { 0 };

	if (!isa_chip_parse(chip, &t.gen))
		BUG("no chip %s", chip);
	g.gen = t.gen;
	for (int i = 0; i < INSTRUCTIONS;) {
		char text[ISA_TEXT_MAX], changed[ISA_TEXT_MAX];
		uint8_t code[ISA_MAX_SIZE_BYTES];
		struct isa_inst in;

		gen_inst(&g, code);
		if (isa_decode(&t, code, sizeof(code), &in))
			continue;
		i++;
		isa_print(&t, &in, text, sizeof(text));
		one(&t, text, &n);
		for (int k = 0; k < CHANGES; k++) {
			strcpy(changed, text);
			change(&g, changed);
			if (k & 1)
				change(&g, changed);
			one(&t, changed, &n);
		}
	}
	diag("%s wave%d: %llu accepted, %llu refused", chip, wave,
	     (unsigned long long)n.accepted, (unsigned long long)n.refused);
	ok(n.accepted > INSTRUCTIONS / 2 && n.refused > INSTRUCTIONS,
	   "%s wave%d: text of both kinds", chip, wave);
	is_u64(n.different, 0, "%s wave%d: parser and decoder agree", chip,
	       wave);
}

int main(int argc, char **argv)
{
	static const char *const chips[] = { "gfx1010", "gfx1030", "gfx1100",
					     "gfx1151", "gfx1201" };
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261121;

	diag("seed %llu", (unsigned long long)seed);
	for (size_t i = 0; i < ARRAY_SIZE(chips); i++)
		for (int wave = 32; wave <= 64; wave += 32)
			generation(chips[i], wave, seed + 2 * i + wave);
	return plan_done();
}
