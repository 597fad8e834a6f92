/*
 * The other generations against llvm-mc 19, when it is installed: random
 * instructions of every encoding are disassembled by both, and what both
 * print alike is assembled by both.  Recorded answers (tests/data/isa/gens.tsv:
 * chip, wave, bytes, text) of what gfx11 has not run everywhere.
 *
 * With T0_SLOW five times as many.  By hand: tests/isa/generations CHIP SEED COUNT
 * [record]
 */
#include "tests/isa/llvm.h"

struct chip {
	const char *name;
	enum isa_gen gen;
	int count; /* of instructions, per wave size */
};

enum { SLOW_COUNT = 25000 }; /* with T0_SLOW */

static const struct chip chips[] = {
	{ "gfx1010", ISA_GFX10_1, 8000 },
	{ "gfx1030", ISA_GFX10_3, 12000 },
	{ "gfx1150", ISA_GFX11_5, 10000 },
	{ "gfx1201", ISA_GFX12, 10000 },
};

/*
 * Images, exports and interpolation of gfx10_3 and gfx12 are not in the table,
 * and LLVM 19 has not every three of gfx12's trap registers.
 */
static bool graphics_meant(const struct chip *c, const struct sample *s)
{
	if (c->gen != ISA_GFX12 && c->gen >= ISA_GFX11)
		return false;
	if (!s->why)
		return strstr(s->ours, "ttmp[") &&
		       strstr(s->theirs, "operand has 'SReg_96");
	if (!strncmp(s->theirs, "exp ", 4))
		return true;
	return !strncmp(s->theirs, "image_", 6) ||
	       !strncmp(s->theirs, "export", 6) ||
	       !strncmp(s->theirs, "v_interp_", 9);
}

/* ---------------------------------------------------------- assembler ---- */

/*
 * One text per line; "" where llvm-mc refused.  `chip` need not be the one
 * whose texts they are.
 */
static bool assemble(const char *folder, const char *chip, int wave,
		     const struct sample *s, int n, char (*hex)[48])
{
	char in[256], out[256], err[256], line[1024];
	struct buf cmd = { 0 };
	int *bad = xcalloc((size_t)n, sizeof(*bad)), row, at = 0;
	bool good;
	FILE *f;

	snprintf(in, sizeof(in), "%s/in", folder);
	snprintf(out, sizeof(out), "%s/out", folder);
	snprintf(err, sizeof(err), "%s/err", folder);
	f = fopen(in, "w");
	for (int i = 0; f && i < n; i++)
		fprintf(f, "%s\n", agrees(&s[i]) && !s[i].why ? s[i].ours : "");
	good = f && !fclose(f);
	buf_printf(&cmd,
		   "timeout 60 llvm-mc-19 --show-encoding "
		   "-triple=amdgcn-amd-amdhsa -mcpu=%s -mattr=%s %s >%s 2>%s",
		   chip,
		   wave == 64 ? "+wavefrontsize64,-wavefrontsize32" :
				"+wavefrontsize32,-wavefrontsize64",
		   in, out, err);
	good = good && system(cmd.data) >= 0;
	buf_fini(&cmd);
	f = fopen(err, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, ": error: ") &&
		    sscanf(line, "%*[^:]:%d:", &row) == 1 && row <= n)
			bad[row - 1] = 1;
	good = f && !fclose(f) && good;
	f = fopen(out, "r");
	while (f && fgets(line, sizeof(line), f)) {
		const char *p = strstr(line, "encoding: [");
		int k = 0;

		if (!p)
			continue;
		while (at < n && (bad[at] || s[at].why || !agrees(&s[at])))
			at++;
		if (at >= n)
			break;
		for (p = strchr(p, '['); *p && *p != ']' && k < 44; p += 5)
			k += snprintf(hex[at] + k, 48 - (size_t)k, "%.2s",
				      p + 3);
		at++;
	}
	good = f && !fclose(f) && good;
	unlink(in);
	unlink(out);
	unlink(err);
	free(bad);
	return good;
}

static void hex_of(const uint8_t *code, int n, char *out)
{
	*out = 0;
	for (int i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", code[i]);
}

/* Texts that LLVM 19 prints and does not read back, or reads otherwise. */
static bool text_differs(const struct sample *s, const char *mine,
			 const char *theirs)
{
	/* It reads lit(1) as 1. */
	if (strstr(s->ours, "lit("))
		return true;
	/* Its tables have no form with so few addresses. */
	if (*mine && !*theirs && s->in.fmt == ISA_FMT_MIMG)
		return true;
	/* 1 / (2 pi) as addend of a bf16 matrix. */
	if (*mine && !*theirs && s->in.fmt == ISA_FMT_VOP3P &&
	    strstr(s->ours, "bf16") && strstr(s->ours, ", 0.15915494"))
		return true;
	/* A negated literal of 64 bits: it prints what it does not read. */
	if (*mine && !*theirs && strstr(s->ours, "0x"))
		return strstr(s->ours, "neg(0x") || strstr(s->ours, "|0x");
	/* 0xfff0 to 0xffff as 16 bits are -16 to -1, which are inline. */
	if (*mine && *theirs && strstr(s->ours, "0xfff"))
		return strlen(theirs) == strlen(mine) + 8;
	switch (s->in.op) {
	case ISA_s_barrier_signal: /* registers are taken for constants */
	case ISA_s_barrier_signal_isfirst:
	case ISA_s_get_barrier_state:
	case ISA_s_barrier_init:
	case ISA_s_barrier_join:
	case ISA_s_wakeup_barrier:
		return !*mine;
	case ISA_s_version: /* numbers without a name */
	case ISA_s_setreg_imm32_b32: /* 1.0 as 32 bits becomes 0 */
		return true;
	}
	/* It drops the literal of an instruction with DPP. */
	return !*mine && *theirs && s->in.form != ISA_FORM_PLAIN &&
	       (s->in.has_literal || strstr(s->ours, "0x"));
}

/* ------------------------------------------------------------ crossing ---- */

/* Nonsense that LLVM 19 assembles where a generation's text has no meaning. */
static bool cross_meant(enum isa_gen gen, const struct sample *s,
			const char *mine, const char *theirs)
{
	/* It prints what it does not read, see text_differs(). */
	if (*mine && !*theirs)
		return text_differs(s, mine, theirs) ||
		       s->in.op == ISA_s_endpgm_ordered_ps_done;
	if (*mine)
		return s->in.op == ISA_s_setreg_imm32_b32 ||
		       strstr(s->ours, "lit(");
	/* Sources that gfx11 removed, it misses behind neg and abs. */
	if (strstr(s->ours, "|src_") || strstr(s->ours, "-src_"))
		return true;
	if ((gen < ISA_GFX11 || gen == ISA_GFX12) &&
	    (s->in.fmt == ISA_FMT_MIMG || s->in.fmt == ISA_FMT_EXP ||
	     s->in.fmt == ISA_FMT_VINTERP))
		return true; /* graphics are not in the table */
	/*
	 * Scalar offsets and what probes are for, cut to seven bits and five.
	 */
	if (gen == ISA_GFX12 &&
	    (strstr(s->ours, "src_scc") || strstr(s->ours, "s_atc_probe")))
		return true;
	/* Offsets of gfx12, of which it keeps the low 12 bits. */
	if (s->in.fmt == ISA_FMT_MUBUF || s->in.fmt == ISA_FMT_MTBUF)
		return s->in.gen == ISA_GFX12 && s->in.f[ISA_F_OFFSET] >> 12;
	/* Numbers of messages with an operation, without a meaning on gfx11. */
	return strstr(s->ours, "sendmsg(") || strstr(s->ours, " null, ") ||
	       text_differs(s, mine, theirs);
}

/*
 * What both print alike of `c`, assembled for `other`, which may be `c` itself:
 * the same bytes, or both refuse.
 */
static void compare_bytes(const char *folder, const struct chip *c,
			  const char *other, int wave, const struct sample *s,
			  int n, int show_max)
{
	const bool same = strcmp(c->name, other) == 0;
	struct isa_target t = { .wave = wave };
	char (*hex)[48] = xcalloc((size_t)n, sizeof(*hex));
	int equal = 0, refused = 0, meant = 0, wrong = 0;

	ok(isa_chip_parse(other, &t.gen) &&
	   assemble(folder, other, wave, s, n, hex),
	   "%s wave%d: llvm-mc-19 assembles texts of %s", other, wave, c->name);
	for (int i = 0; i < n; i++) {
		uint8_t code[ISA_MAX_SIZE_BYTES];
		struct isa_inst in;
		char mine[48] = "";
		const char *why;

		if (s[i].why || !agrees(&s[i]))
			continue;
		why = isa_parse(&t, s[i].ours, NULL, NULL, &in);
		if (!why)
			hex_of(code, isa_encode(&in, code), mine);
		if (!strcmp(mine, hex[i])) {
			equal += !why;
			refused += why != NULL;
		} else if (same ? text_differs(&s[i], mine, hex[i]) :
				  cross_meant(t.gen, &s[i], mine, hex[i])) {
			meant++;
		} else if (wrong++ < show_max) {
			diag("%s: ours %s; llvm-mc-19 %s", s[i].ours,
			     why ? why : mine, *hex[i] ? hex[i] : "refuses");
		}
	}
	diag("%s for %s wave%d: assembled alike %d, both refuse %d, meant %d",
	     c->name, other, wave, equal, refused, meant);
	is_u64((uint64_t)wrong, 0, "texts of %s for %s, wave%d: the same bytes "
	       "or refused by both", c->name, other, wave);
	free(hex);
}

/* --------------------------------------------------------- recordings ---- */

/* One of every row, encoding and form that gfx11 reads otherwise. */
static void record(const struct chip *c, int wave, const struct sample *s,
		   int n)
{
	static uint8_t taken[ISA_OP_COUNT][2][4];
	struct isa_target t = { .gen = ISA_GFX11, .wave = wave };

	memset(taken, 0, sizeof(taken));
	for (int i = 0; i < n; i++) {
		const struct isa_inst *in = &s[i].in;
		bool promoted = in->fmt != isa_op_info(in->op)->fmt;
		char text[ISA_TEXT_MAX], hex[48];
		struct isa_inst other;

		if (s[i].why || !agrees(&s[i]))
			continue;
		if (!isa_decode(&t, s[i].code, ISA_MAX_SIZE_BYTES, &other)) {
			isa_print(&t, &other, text, sizeof(text));
			if (!strcmp(text, s[i].ours))
				continue;
		}
		if (taken[in->op][promoted][in->form]++)
			continue;
		hex_of(s[i].code, s[i].size, hex);
		printf("%s\t%d\t%s\t%s\n", c->name, wave, hex, s[i].ours);
	}
}

static bool replay_line(char *line)
{
	char *chip = strtok(line, "\t"), *wave = strtok(NULL, "\t"),
	     *hex = strtok(NULL, "\t"), *text = strtok(NULL, "\n");
	uint8_t code[ISA_MAX_SIZE_BYTES], again[ISA_MAX_SIZE_BYTES];
	struct isa_target t = { .wave = wave ? atoi(wave) : 0 };
	char ours[ISA_TEXT_MAX];
	struct isa_inst in;
	unsigned byte;
	int n = 0;

	if (!text || !isa_chip_parse(chip, &t.gen))
		return false;
	for (; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		code[n] = (uint8_t)byte;
	if (isa_decode(&t, code, (size_t)n, &in))
		return false;
	isa_print(&t, &in, ours, sizeof(ours));
	return !strcmp(ours, text) && isa_encode(&in, again) == n &&
	       !memcmp(code, again, (size_t)n);
}

static void replay(void)
{
	FILE *f = fopen("tests/data/isa/gens.tsv", "r");
	char line[1024], copy[1024];
	int n = 0, wrong = 0;

	while (f && fgets(line, sizeof(line), f)) {
		strcpy(copy, line);
		n++;
		if (!replay_line(line) && wrong++ < 20)
			diag("not as recorded: %s", copy);
	}
	ok(f && n > 50, "there are recorded instructions");
	is_u64((uint64_t)wrong, 0, "%d recorded instructions are read alike",
	       n);
	if (f)
		fclose(f);
}

static void compare(const char *folder, const struct chip *c, int wave,
		    uint64_t seed, int count, int show_max)
{
	struct isa_gen_state g = { .seed = seed, .gen = c->gen };
	struct sample *s = xcalloc((size_t)count, sizeof(*s));
	bool seen[N_REASONS] = { false };
	static const char *const others[] = { "gfx1030", "gfx1100",
						"gfx1201" };
	int equal = 0, refused = 0, meant = 0, wrong = 0;

	fill(&g, wave, s, count);
	ok(ask(folder, c->name, wave, s, count), "%s wave%d: llvm-mc-19 "
	   "answers", c->name, wave);
	if (show_max < 0)
		record(c, wave, s, count);
	for (int i = 0; i < count; i++) {
		if (agrees(&s[i])) {
			equal += !s[i].why;
			refused += s[i].why != NULL;
		} else if (is_meant(&s[i], seen) || graphics_meant(c, &s[i])) {
			meant++;
		} else if (wrong++ < show_max) {
			show(&s[i]);
		}
	}
	diag("%s wave%d: equal %d, both refuse %d, meant %d, unexplained %d",
	     c->name, wave, equal, refused, meant, wrong);
	is_u64((uint64_t)wrong, 0, "%s wave%d: %d instructions disassemble "
	       "as LLVM 19 has them", c->name, wave, count);
	compare_bytes(folder, c, c->name, wave, s, count, show_max);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcmp(others[i], c->name))
			compare_bytes(folder, c, others[i], wave, s, count / 2,
				      show_max);
	free(s);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20260702;
	char folder[] = "/tmp/t0-isa-gens-XXXXXX";

	if (argc == 1)
		replay();
	if (system("llvm-mc-19 --version >/dev/null 2>&1")) {
		diag("llvm-mc-19 is not installed: nothing else to compare");
		return plan_done();
	}
	if (!ok(mkdtemp(folder) != NULL, "a folder for temporary files"))
		return plan_done();
	diag("seed %llu; tests/isa/generations CHIP SEED COUNT runs others",
	     (unsigned long long)seed);
	for (size_t i = 0; i < ARRAY_SIZE(chips); i++) {
		int n = argc > 3	  ? atoi(argv[3]) :
			getenv("T0_SLOW") ? SLOW_COUNT :
					    chips[i].count;
		int show_max = argc > 4 ? -1 : argc > 1 ? 200 : 20;

		if (argc > 1 && strcmp(argv[1], chips[i].name))
			continue;
		compare(folder, &chips[i], 32, seed, n, show_max);
		compare(folder, &chips[i], 64, seed + 1, n, show_max);
	}
	rmdir(folder);
	return plan_done();
}
