/*
 * Random instruction texts, whole and broken, through our assembler and
 * llvm-mc-19: same bytes, or both refuse.  Texts are what isa_print() writes
 * for random words; broken ones have operands exchanged, left out or added,
 * other modifiers, other suffixes.  Where the two are meant to differ is said
 * in isa/text/parse_int.h, and here with a bound on how often.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "isa/text/text.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum { TEXTS = 20000, BROKEN = 15000, LINE = 512, HEX = 48 };

struct line {
	char text[LINE];
	char ours[HEX], llvm[HEX]; /* "" = refused */
};

static char dir[] = "/tmp/t0-asm-XXXXXX";

/* ---- texts -------------------------------------------------------------- */

/*
 * Instructions that one of the two does not know, errata of the table, and the
 * one that marks lines.
 */
static bool is_known(const char *text)
{
	static const char *const unknown[] = {
		"v_illegal",	   "v_swap_b16",       "v_mov_b16_e64",
		"ordered_ps_done", "dot2acc_f32_bf16", "v_mov_b16",
		"s_ttracedata_imm",
	};

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		if (strstr(text, unknown[i]))
			return false;
	return !strstr(text, "/*");
}

static void random_text(struct isa_gen_state *g, const struct isa_target *t,
			char *text)
{
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;

	do {
		gen_inst(g, code);
		/* LLVM has no words for sources that are not used. */
		if (isa_decode(t, code, sizeof(code), &in) || in.has_unused)
			*text = 0;
		else
			isa_print(t, &in, text, LINE);
	} while (!*text || !is_known(text));
}

static const char *const operands[] = {
	"v0",	   "v255",	 "s0",	       "s105",	     "s[0:1]",
	"s[2:3]",  "v[2:3]",	 "v[0:3]",     "s[4:7]",     "vcc",
	"vcc_lo",  "exec_lo",	 "exec",       "m0",	     "off",
	"0",	   "1",		 "64",	       "65",	     "-16",
	"-17",	   "1.0",	 "0.5",	       "1.5",	     "0.15915494",
	"0x1234",  "0x12345678", "0x3f800000", "ttmp0",	     "ttmp[0:1]",
	"-v1",	   "|v1|",	 "-s1",	       "neg(1.0)",   "v[0:7]",
	"s[0:7]",  "v[254:255]", "s[104:105]", "v[255:256]", "s[1:2]",
	"[v1,v2]", "1+1",	 "(3)",
};

static const char *const modifiers[] = {
	"clamp",	"mul:2",
	"div:2",	"glc",
	"slc",		"dlc",
	"offset:4",	"offset:-4",
	"gds",		"tfe",
	"offen",	"idxen",
	"offset0:1",	"offset1:2",
	"dim:2D",	"dmask:1",
	"unorm",	"r128",
	"a16",		"lwe",
	"d16",		"quad_perm:[0,1,2,3]",
	"row_mirror",	"dpp8:[0,1,2,3,4,5,6,7]",
	"row_mask:0x3", "fi:1",
	"bound_ctrl:1", "wait_exp:1",
	"wait_vdst:1",	"row_shl:1",
	"done",		"row_en",
	"lds",		"noclamp",
	"neg_lo:[1,0]", "op_sel_hi:[0,0]",
};

static const char *const suffixes[] = { "", "_e32", "_e64", "_dpp",
					"_e64_dpp" };

#define PICK(g, array) (array)[gen_below((g), ARRAY_SIZE(array))]

/* The operand number `n` of the text: its range; false if there is none. */
static bool operand_at(char *text, int n, char **start, char **end)
{
	char *p = strchr(text, ' ');
	int depth = 0;

	while (p && n-- > 0) {
		for (p++; *p && (*p != ',' || depth); p++)
			depth += (*p == '[') - (*p == ']');
		if (!*p)
			return false;
	}
	if (!p)
		return false;
	*start = p + 1;
	for (p++; *p == ' '; p++)
		;
	for (; *p && ((*p != ',' && *p != ' ') || depth); p++)
		depth += (*p == '[') - (*p == ']');
	*end = p;
	return true;
}

static void replace(char *text, char *start, char *end, const char *with)
{
	char rest[LINE];
	size_t room;

	snprintf(rest, sizeof(rest), "%s", end);
	room = LINE - (size_t)(start - text);
	snprintf(start, room, "%s%s", with, rest);
}

static void change_suffix(struct isa_gen_state *g, char *text)
{
	char *end = strchr(text, ' '), *start;

	if (!end)
		return;
	start = end;
	for (size_t i = 1; i < ARRAY_SIZE(suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if ((size_t)(end - text) > n &&
		    !strncmp(end - n, suffixes[i], n))
			start = end - n;
	}
	replace(text, start, end, PICK(g, suffixes));
}

static void break_text(struct isa_gen_state *g, char *text)
{
	uint32_t how = gen_below(g, 100);
	char *start, *end;
	char with[64];

	if (how < 25) {
		size_t n = strlen(text);

		snprintf(text + n, LINE - n, " %s", PICK(g, modifiers));
	} else if (how < 40) {
		change_suffix(g, text);
	} else if (operand_at(text, gen_below(g, 5), &start, &end)) {
		snprintf(with, sizeof(with),
			 how < 85 ? " %s" :
			 how < 93 ? " %s, v1" :
				    "",
			 PICK(g, operands));
		replace(text, start, end, with);
	}
}

/* ---- assembling --------------------------------------------------------- */

static void ours(const struct isa_target *t, struct line *l)
{
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	int n;

	if (isa_parse(t, l->text, NULL, NULL, &in))
		return;
	n = isa_encode(&in, code);
	for (int i = 0; i < n; i++)
		sprintf(l->ours + 2 * i, "%02x", code[i]);
}

/* "...encoding: [0x01,0x02]" */
static void copy_hex(const char *p, char *out)
{
	int n = 0;

	for (; *p && *p != ']' && n < HEX - 3; p++)
		if (p[0] == '0' && p[1] == 'x') {
			out[n++] = p[2];
			out[n++] = p[3];
			p += 3;
		}
	out[n] = 0;
}

/*
 * Refused lines leave nothing on stdout, so each line follows a mark: the
 * instruction s_ttracedata_imm with the line's number.
 */
static void read_answers(FILE *f, struct line *line, int n)
{
	static const char mark[] = "s_ttracedata_imm ";
	char text[1024];
	int at = -1;

	while (fgets(text, sizeof(text), f)) {
		char *hex = strstr(text, "encoding: ["), *m;

		if (!hex)
			continue;
		m = strstr(text, mark);
		if (m && strtol(m + sizeof(mark) - 1, NULL, 0) ==
				 ((at + 1) & 0xffff)) {
			at++;
			continue;
		}
		if (at >= 0 && at < n && !line[at].llvm[0])
			copy_hex(hex, line[at].llvm);
	}
}

static bool llvm(int wave, struct line *line, int n)
{
	struct buf in = { 0 }, command = { 0 };
	struct err e = { 0 };
	char path[64];
	FILE *f;

	for (int i = 0; i < n; i++)
		buf_printf(&in, "s_ttracedata_imm %d\n%s\n", i & 0xffff,
			   line[i].text);
	snprintf(path, sizeof(path), "%s/in.s", dir);
	if (!file_write_atomic(path, in.data, in.len, &e)) {
		diag("%s", e.msg);
		return false;
	}
	buf_printf(&command,
		   "timeout 60 llvm-mc-19 -triple=amdgcn-amd-amdhsa "
		   "-mcpu=gfx1100 %s -show-encoding %s 2>/dev/null",
		   wave == 64 ? "-mattr=+wavefrontsize64,-wavefrontsize32" : "",
		   path);
	f = popen(command.data, "r");
	if (f) {
		read_answers(f, line, n);
		pclose(f);
	}
	unlink(path);
	buf_fini(&in);
	buf_fini(&command);
	return f;
}

/* ---- verdicts ----------------------------------------------------------- */

struct verdict {
	int both, refused, ours_only, llvm_only, other, excused;
};

static bool has_any(const char *text, const char *const *part)
{
	for (; *part; part++)
		if (strstr(text, *part))
			return true;
	return false;
}

/* Where the two are meant to differ, see isa/text/parse_int.h. */
static bool is_excused(const struct line *l)
{
	static const char *const ours[] = {
		".l",	    ".h",	 "op_sel:",
		"format:[", "neg(0x",	 "|0x",
		"_e32 |",   "_e32 neg(", "lit(", NULL
	};
	static const char *const theirs[] = { " off", "s_setreg_imm32",
					      "noclamp", "lit(", NULL };

	return has_any(l->text, l->llvm[0] ? theirs : ours);
}

static void judge(const struct line *l, struct verdict *v)
{
	int *kind;

	if (!strcmp(l->ours, l->llvm)) {
		*(l->ours[0] ? &v->both : &v->refused) += 1;
		return;
	}
	if (is_excused(l)) {
		v->excused++;
		return;
	}
	kind = !l->llvm[0] ? &v->ours_only :
	       !l->ours[0] ? &v->llvm_only :
			     &v->other;
	if (++*kind <= 10)
		diag("'%s': ours %s, LLVM's %s", l->text,
		     l->ours[0] ? l->ours : "none",
		     l->llvm[0] ? l->llvm : "none");
}

static struct verdict compare(int wave, struct line *line, int n)
{
	struct isa_target t = { ISA_GFX11, wave, false };
	struct verdict v = { 0 };

	for (int i = 0; i < n; i++)
		ours(&t, &line[i]);
	if (llvm(wave, line, n))
		for (int i = 0; i < n; i++)
			judge(&line[i], &v);
	diag("wave%d: %d equal, %d refused by both, %d meant to differ, "
	     "%d only ours, %d only LLVM's, %d other bytes",
	     wave, v.both, v.refused, v.excused, v.ours_only, v.llvm_only,
	     v.other);
	return v;
}

static void whole(int wave, struct isa_gen_state *g, struct line *line)
{
	struct isa_target t = { ISA_GFX11, wave, false };
	struct verdict v;

	memset(line, 0, TEXTS * sizeof(*line));
	for (int i = 0; i < TEXTS; i++)
		random_text(g, &t, line[i].text);
	v = compare(wave, line, TEXTS);
	ok(v.both > TEXTS * 8 / 10, "wave%d: most texts are assembled", wave);
	is_i64(v.other, 0, "wave%d: never to other bytes", wave);
	is_i64(v.ours_only, 0, "wave%d: what LLVM refuses is refused", wave);
	is_i64(v.llvm_only, 0, "wave%d: what LLVM accepts is accepted", wave);
}

static void broken(int wave, struct isa_gen_state *g, struct line *line)
{
	struct isa_target t = { ISA_GFX11, wave, false };
	struct verdict v;

	memset(line, 0, BROKEN * sizeof(*line));
	for (int i = 0; i < BROKEN; i++) {
		random_text(g, &t, line[i].text);
		break_text(g, line[i].text);
	}
	v = compare(wave, line, BROKEN);
	ok(v.refused > BROKEN / 3, "wave%d: broken texts are refused", wave);
	is_i64(v.other, 0, "wave%d: broken texts have no other bytes", wave);
	is_i64(v.ours_only, 0, "wave%d: broken texts LLVM refuses are refused",
	       wave);
	/* Immediates that LLVM cuts, and src_scc as a destination. */
	ok(v.llvm_only < BROKEN / 100, "wave%d: few are refused by us only",
	   wave);
}

int main(void)
{
	const char *given = getenv("T0_SEED");
	struct isa_gen_state g = { .gen = ISA_GFX11,
				   .seed = given ? strtoull(given, NULL, 0) :
						   11 };
	struct line *line;

	if (system("command -v llvm-mc-19 >/dev/null 2>&1"))
		skip_all("llvm-mc-19 is not installed; recorded vectors run "
			 "in tests/isa/asm-lines");
	if (!mkdtemp(dir))
		skip_all("no temporary folder");
	diag("T0_SEED=%llu", (unsigned long long)g.seed);
	line = xcalloc(TEXTS, sizeof(*line));
	for (int wave = 32; wave <= 64; wave += 32) {
		whole(wave, &g, line);
		broken(wave, &g, line);
	}
	free(line);
	rmdir(dir);
	return plan_done();
}
