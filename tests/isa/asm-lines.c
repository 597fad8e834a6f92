/*
 * One line of text to machine code: recorded vectors, what a line may look
 * like, and what is said about lines that are none.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "isa/text/text.h"
#include "tests/tap.h"

static const struct isa_target wave32 = { ISA_GFX11, 32, false };
static const struct isa_target wave64 = { ISA_GFX11, 64, false };

/* Hex bytes in memory order, or "-". */
static const char *assemble(const struct isa_target *t, const char *text,
			    char hex[2 * ISA_MAX_SIZE_BYTES + 1])
{
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	int n;

	if (isa_parse(t, text, NULL, NULL, &in))
		return strcpy(hex, "-");
	n = isa_encode(&in, code);
	for (int i = 0; i < n; i++)
		sprintf(hex + 2 * i, "%02x", code[i]);
	return hex;
}

/* ---- recorded ----------------------------------------------------------- */

struct score {
	int lines, wrong, differences;
};

static void check_vector(const struct isa_target *t, char *line,
			 struct score *s)
{
	char hex[2 * ISA_MAX_SIZE_BYTES + 1];
	bool differs = *line == '!';
	char *want = line + differs, *text = strchr(want, '\t');

	if (*line == '#' || !text)
		return;
	*text++ = 0;
	s->lines++;
	s->differences += differs;
	assemble(t, text, hex);
	if (!strcmp(hex, want) != differs)
		return;
	s->wrong++;
	diag("'%s': got %s, wanted %s%s", text, hex, differs ? "not " : "",
	     want);
}

static void recorded(const struct isa_target *t, const char *path, int at_least)
{
	struct buf file = { 0 };
	struct err e = { 0 };
	struct score s = { 0 };

	if (!ok(file_read(path, 0, &file, &e), "%s is there", path)) {
		diag("%s", e.msg);
		return;
	}
	for (char *p = strtok(file.data, "\n"); p; p = strtok(NULL, "\n"))
		check_vector(t, p, &s);
	ok(s.lines >= at_least, "%s has %d texts or more", path, at_least);
	is_i64(s.wrong, 0, "wave%d: %d recorded texts, %d known differences",
	       t->wave, s.lines, s.differences);
	buf_fini(&file);
}

/* ---- by hand ------------------------------------------------------------ */

/*
 * Worked out from the encodings of RDNA3 ISA chapter 15: VOP2 is
 * op(6) vdst(8) vsrc1(8) src0(9) from bit 30 down, VGPRs are 256 and up in
 * src0, v_add_f32 is 3; SOPP is 0xbf8 op(7) simm16.
 */
static const struct {
	const char *text, *hex;
} by_hand[] = {
	{ "v_add_f32 v1, v2, v3", "02070206" },
	{ "v_add_f32_e32 v1, v2, v3", "02070206" },
	{ "V_ADD_F32 v1, v2, v3", "02070206" },
	{ "\tv_add_f32\tv1 ,  v2,v3 ", "02070206" },
	{ "v_add_f32 v1 v2 v3", "02070206" },
	{ "v_add_f32 v[1], v[1+1], v[0x3]", "02070206" },
	{ "v_add_f32 v1, 1.0, v3", "f2060206" },
	{ "v_add_f32 v1, 0x3f800000, v3", "f2060206" },
	{ "v_add_f32 v1, 64, v3", "c0060206" },
	{ "v_add_f32 v1, 1<<6, v3", "c0060206" },
	{ "v_add_f32 v1, (60+4)*1, v3", "c0060206" },
	{ "v_add_f32 v1, 65, v3", "ff06020641000000" },
	{ "v_add_f32 v1, -16, v3", "d0060206" },
	{ "v_add_f32 v1, 1.5, v3", "ff0602060000c03f" },
	{ "s_nop 0", "000080bf" },
	{ "s_nop 1+2*4", "090080bf" },
	{ "s_endpgm", "0000b0bf" },
	{ "s_branch -1", "ffffa0bf" },
};

static void hand(void)
{
	char hex[2 * ISA_MAX_SIZE_BYTES + 1];

	for (size_t i = 0; i < ARRAY_SIZE(by_hand); i++)
		is_str(assemble(&wave32, by_hand[i].text, hex), by_hand[i].hex,
		       "'%s' is assembled", by_hand[i].text);
}

/* What is said; a part of it is enough. */
static const struct {
	const char *text, *why;
} bad[] = {
	{ "", "no instruction" },
	{ "v_foo v0", "unknown instruction" },
	{ "v_add_f32 v0, v1", "too few operands" },
	{ "v_add_f32 v0, v1, v2, v3", "too many operands" },
	{ "v_add_f32 v0, v1, v256", "out of range" },
	{ "v_add_f32 v0, v1, v[2:3]", "wrong register width" },
	{ "v_add_f32 v0, v1, v2 clamp clamp", "given twice" },
	{ "v_add_f32 v0, v1, v2 mul:2 clamp", "out of order" },
	{ "v_add_f32 v0, v1, v2 mul:3", "mul:2, mul:4 or div:2" },
	{ "v_add_f32 v0, v1, v2 foo:3", "unknown modifier" },
	{ "v_add_f32 v0, |v1, v2", "'|' missing" },
	{ "v_add_f32 v0, neg(v1, v2", "')' missing" },
	{ "v_fma_f32 v0, s1, s2, s3", "too many scalar values" },
	{ "v_fma_f32 v0, 77, 78, v0", "one unique literal" },
	{ "s_mov_b64 s[1:2], 0", "misaligned" },
	{ "s_mov_b32 s0, 0x100000000", "does not fit 32 bits" },
	{ "s_mov_b32 s0, 1/0", "division by zero" },
	{ "s_load_b32 s0, s[0:1], 0x100000", "does not fit 21 bits" },
	{ "global_load_b32 v0, v1, off", "v[n:n+1], off" },
	{ "buffer_load_b32 v0, v1, s[0:3], 0", "idxen or offen" },
	{ "ds_load_b32 v0, v1 offset:65536", "does not fit 16 bits" },
	{ "s_waitcnt vmcnt(64)", "too large" },
	{ "s_waitcnt foo(1)", "unknown counter" },
	{ "s_delay_alu instid0(FOO)", "unknown name" },
	{ "s_sendmsg sendmsg(MSG_FOO)", "unknown message" },
	{ "s_getreg_b32 s0, hwreg(HW_REG_FOO)", "unknown hardware register" },
	{ "exp mrt9 v0, v1, v2, v3", "unknown export target" },
	{ "image_load v0, v[0:1], s[0:7] dmask:1", "dim is missing" },
	{ "image_load v0, v[0:2], s[0:7] dmask:1 dim:2D", "do not match dim" },
	{ "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v2, v2", "even" },
	{ "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v5", "bank" },
	{ "v_add_f32_dpp v0, v1, v2", "DPP control is missing" },
	{ "v_mov_b32 v0, v1 row_shl:16", "out of range" },
	{ "v_cvt_f32_f16_e32 v0, v200", "above v127" },
};

static void refused(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct isa_inst in;

		has_str(isa_parse(&wave32, bad[i].text, NULL, NULL, &in),
			bad[i].why, "'%s' is refused with a reason",
			bad[i].text);
	}
}

/* Text cut anywhere is refused or another instruction, never a crash. */
static void truncated(void)
{
	static const char text[] =
		"image_sample_d v[0:3], [v0, v1, v[2:3]], s[0:7], s[8:11] "
		"dmask:0xf dim:SQ_RSRC_IMG_2D unorm glc";
	char hex[2 * ISA_MAX_SIZE_BYTES + 1];
	int refusals = 0;

	for (size_t n = 0; n < sizeof(text); n++) {
		/* Of its own, so that a sanitizer sees where it ends. */
		char *copy = strndup(text, n);

		refusals += !strcmp(assemble(&wave32, copy, hex), "-");
		free(copy);
	}
	ok(refusals > 50, "cut lines are refused");
}

int main(void)
{
	recorded(&wave32, "tests/data/asm/gfx1100-wave32.txt", 3000);
	recorded(&wave64, "tests/data/asm/gfx1100-wave64.txt", 1400);
	hand();
	refused();
	truncated();
	return plan_done();
}
