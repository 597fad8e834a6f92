/*
 * What is printed assembles to what was there: literals stay literals with all
 * their bits, also those that inline constants or 16 bits could say, in every
 * generation.  What lit() means is told by hand.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/text/text.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum { INSTRUCTIONS = 60000 };

struct count {
	uint64_t literals, marked, refused, shrunk, other;
};

static void check_one(const struct isa_target *t, const struct isa_inst *in,
		struct count *n)
{
	char text[ISA_TEXT_MAX];
	struct isa_inst back;
	uint64_t *kind;

	isa_print(t, in, text, sizeof(text));
	n->literals++;
	n->marked += strstr(text, "lit(") != NULL;
	if (isa_parse(t, text, NULL, NULL, &back)) {
		n->refused++;
		return;
	}
	if (back.size_bytes == in->size_bytes && back.literal == in->literal)
		return;
	kind = back.size_bytes < in->size_bytes ? &n->shrunk : &n->other;
	if (++*kind <= 5)
		diag("'%s': %d bytes, literal 0x%x; were %d, 0x%x", text,
		     back.size_bytes, back.literal, in->size_bytes,
		     in->literal);
}

static void check_generation(const char *chip, int wave, uint64_t seed)
{
	struct isa_gen_state g = { .seed = seed };
	struct isa_target t = { .wave = wave };
	struct count n = { 0 };

	if (!isa_chip_parse(chip, &t.gen))
		BUG("no chip %s", chip);
	g.gen = t.gen;
	for (int i = 0; i < INSTRUCTIONS; i++) {
		uint8_t code[ISA_MAX_SIZE_BYTES];
		struct isa_inst in;

		gen_inst(&g, code);
		if (!isa_decode(&t, code, sizeof(code), &in) && in.has_literal)
			check_one(&t, &in, &n);
	}
	diag("%s wave%d: %llu literals, %llu marked, %llu texts refused", chip,
	     wave, (unsigned long long)n.literals,
	     (unsigned long long)n.marked, (unsigned long long)n.refused);
	ok(n.marked > 100 && n.refused < n.literals / 4,
	   "%s wave%d: literals of both kinds", chip, wave);
	is_u64(n.shrunk, 0, "%s wave%d: none becomes an inline constant", chip,
	       wave);
	is_u64(n.other, 0, "%s wave%d: none becomes another", chip, wave);
}

/* The first dword has ff where the operand is a literal. */
static const struct {
	const char *text, *hex;
} lines[] = {
	{ "s_mov_b32 s0, lit(1)", "ff0080be01000000" },
	{ "s_mov_b32 s0, 1", "810080be" },
	{ "s_mov_b32 s0, lit(0x3f800000)", "ff0080be0000803f" },
	{ "s_mov_b32 s0, lit(1.0)", "ff0080be0000803f" },
	{ "s_mov_b32 s0, lit( 1 + 1 )", "ff0080be02000000" },
	{ "s_mov_b64 s[0:1], lit(1)", "ff0180be01000000" },
	{ "v_add_f32 v0, lit(-1), v1", "ff020006ffffffff" },
	{ "v_add_f16 v0, lit(1.0), v1", "ff020064003c0000" },
	{ "v_add_f16 v0, lit(0x12343c00), v1", "ff020064003c3412" },
	{ "v_add_f64 v[0:1], lit(1.0), v[2:3]", "000027d7ff0402000000f03f" },
	{ "v_add_f64 v[0:1], 0x3ff00000, v[2:3]", "000027d7f2040200" },
	{ "v_add_f64 v[0:1], lit(1), v[2:3]", "000027d7ff04020001000000" },
	{ "v_add_f32_e64 v0, |lit(1.0)|, v1", "000103d5ff0202000000803f" },
	{ "v_add_f32_e64 v0, neg(lit(1.0)), v1", "000003d5ff0202200000803f" },
	{ "v_fmamk_f32 v0, v1, lit(1.0), v2", "010500580000803f" },
	{ "v_dual_mov_b32 v0, lit(1) :: v_dual_mov_b32 v1, lit(1)",
	  "ff0010caff00000001000000" },
	{ "v_alignbit_b32 v0, v1, v2, v3 op_sel:[0,0,1,0]",
	  "002016d601050e04" },
	{ "v_alignbit_b32 v0, v1, v2, v3.h", "002016d601050e04" },
	{ "v_alignbyte_b32 v0, v1, v2, v3.l", "000017d601050e04" },
	{ "v_alignbit_b32 v0, v1, v2.h, v3", "" },
	{ "s_mov_b32 s0, src_execz", "" },
	{ "v_add_f32 v0, src_vccz, v1", "" },
	{ "v_add_f32_e64 v0, |src_vccz|, v1", "" },
	{ "s_mov_b32 s0, src_pops_exiting_wave_id", "" },
	{ "v_add_f32_dpp v0, lit(1), v1 row_mirror", "" },
	{ "s_mov_b32 s0, lit(1", "" },
	{ "s_mov_b32 s0, lit(s1)", "" },
	{ "s_mov_b32 lit(1), s0", "" },
};

/* Bytes whose text was once without what the bits say. */
static const struct {
	const char *chip, *hex, *text;
} printed[] = {
	{ "gfx1100", "002016d601050e04",
	  "v_alignbit_b32 v0, v1, v2, v3 op_sel:[0,0,1,0]" },
	{ "gfx1201", "052017d601050e04",
	  "v_alignbyte_b32 v5, v1, v2, v3 op_sel:[0,0,1,0]" },
	{ "gfx1100", "002016d6fa040e0401e40000",
	  "v_alignbit_b32_e64_dpp v0, v1, v2, v3 op_sel:[0,0,1,0] "
	  "quad_perm:[0,1,2,3] row_mask:0x0 bank_mask:0x0" },
};

static void check_texts(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(printed); i++) {
		struct isa_target t = { .wave = 32 };
		uint8_t code[ISA_MAX_SIZE_BYTES];
		char text[ISA_TEXT_MAX] = "(refused)";
		struct isa_inst in;
		unsigned byte;
		int n = 0;

		isa_chip_parse(printed[i].chip, &t.gen);
		for (; sscanf(printed[i].hex + 2 * n, "%2x", &byte) == 1; n++)
			code[n] = (uint8_t)byte;
		if (!isa_decode(&t, code, (size_t)n, &in))
			isa_print(&t, &in, text, sizeof(text));
		is_str(text, printed[i].text, "%s for %s", printed[i].hex,
		       printed[i].chip);
	}
}

static void by_hand(void)
{
	struct isa_target t = { ISA_GFX11, 32, false };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		uint8_t code[ISA_MAX_SIZE_BYTES];
		struct isa_inst in;
		char hex[64] = "";

		if (!isa_assemble_line(&t, lines[i].text, NULL, NULL, &in,
				       code))
			for (int k = 0; k < in.size_bytes; k++)
				sprintf(hex + 2 * k, "%02x", code[k]);
		is_str(hex, lines[i].hex, "%s", lines[i].text);
	}
}

int main(int argc, char **argv)
{
	static const char *const chips[] = { "gfx1010", "gfx1030", "gfx1100",
					     "gfx1151", "gfx1201" };
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20261123;

	by_hand();
	check_texts();
	diag("seed %llu", (unsigned long long)seed);
	for (size_t i = 0; i < ARRAY_SIZE(chips); i++)
		for (int wave = 32; wave <= 64; wave += 32)
			check_generation(chips[i], wave, seed + 2 * i + wave);
	return plan_done();
}
