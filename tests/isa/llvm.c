/*
 * gfx1100 disassembly against llvm-mc 19, when it is installed: random
 * instructions of every encoding, in both wave sizes.  Without it,
 * tests/isa/vectors.c replays what was recorded.
 *
 * Differences that are meant are listed with their reasons in isa-llvm.h.  Any
 * other fails, and so does an entry of the list that nothing needs any more.
 *
 * By hand: tests/isa/llvm SEED COUNT [record]
 */
#include "tests/isa/llvm.h"

static bool depends_on_wave(const struct sample *s)
{
	struct isa_target t = { .gen = ISA_GFX11, .wave = 32 };
	char text[ISA_TEXT_MAX];
	struct isa_inst in;

	if (isa_decode(&t, s->code, sizeof(s->code), &in))
		return true;
	isa_print(&t, &in, text, sizeof(text));
	return strcmp(text, s->ours) != 0;
}

/*
 * tests/data/isa/gfx1100.tsv: what both say alike, one of every row, encoding
 * and form; in wave64 what is different there; some of what both refuse.
 */
static void record(const struct sample *s, int count, int wave)
{
	static uint8_t taken[ISA_OP_COUNT][4][3];
	int refusals = 0;

	for (int i = 0; i < count; i++) {
		const struct isa_inst *in = &s[i].in;
		int shape = in->fmt == ISA_FMT_VOPD ? 2 :
			    in->fmt >= ISA_FMT_VOP3 && is_promoted(in);

		if (!agrees(&s[i]) || (s[i].why && refusals++ > 150) ||
		    (!s[i].why && taken[in->op][shape][in->form]++) ||
		    (wave == 64 && !s[i].why && !depends_on_wave(&s[i])))
			continue;
		printf("%d\t", wave);
		for (int k = 0; k < s[i].size && (!s[i].why || k < 12); k++)
			printf("%02x", s[i].code[k]);
		printf("\t%s\n", s[i].why ? "-" : s[i].ours);
	}
	memset(taken, 0, sizeof(taken));
}

/* ------------------------------------------------------------- driver ---- */

struct tally {
	int equal, refused, meant, wrong;
};

static void run(const char *folder, int wave, uint64_t seed, int count,
		int show_max, bool *seen)
{
	struct isa_gen_state g = { .seed = seed, .gen = ISA_GFX11 };
	struct sample *s = xcalloc((size_t)count, sizeof(*s));
	struct tally sum[ISA_FMT_COUNT] = { { 0 } }, all = { 0 };

	fill(&g, wave, s, count);
	if (!ok(ask(folder, "gfx1100", wave, s, count),
		"llvm-mc-19 answers, wave%d", wave)) {
		free(s);
		return;
	}
	if (show_max < 0)
		record(s, count, wave);
	for (int i = 0; i < count; i++) {
		struct tally *t = &sum[s[i].in.fmt];

		if (agrees(&s[i])) {
			t->equal += !s[i].why;
			t->refused += s[i].why != NULL;
		} else if (is_meant(&s[i], seen)) {
			t->meant++;
		} else {
			t->wrong++;
			if (all.wrong++ < show_max)
				show(&s[i]);
		}
	}
	for (int f = 0; f < ISA_FMT_COUNT; f++)
		diag("wave%d %-8s equal %d, both refuse %d, meant %d, "
		     "unexplained %d",
		     wave, isa_fmt_info((enum isa_fmt)f)->name, sum[f].equal,
		     sum[f].refused, sum[f].meant, sum[f].wrong);
	is_u64((uint64_t)all.wrong, 0,
	       "%d instructions agree with LLVM 19, wave%d", count, wave);
	free(s);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20260701;
	int count = argc > 2 ? atoi(argv[2]) : 100000;
	char folder[] = "/tmp/t0-isa-llvm-XXXXXX";
	bool seen[N_REASONS] = { false };
	int show_max;

	if (system("llvm-mc-19 --version >/dev/null 2>&1"))
		skip_all("llvm-mc-19 is not installed; tests/isa/vectors has "
			 "what it said");
	if (!mkdtemp(folder))
		skip_all("no folder for temporary files");
	diag("seed %llu; tests/isa/llvm SEED COUNT runs others",
	     (unsigned long long)seed);
	show_max = argc > 3 ? -1 : argc > 1 ? 1000 : 20;
	run(folder, 32, seed, count, show_max, seen);
	run(folder, 64, seed + 1, count, show_max, seen);
	rmdir(folder);
	for (int i = 0; i < N_REASONS; i++)
		ok(seen[i], "still needed: %s", reasons[i]);
	return plan_done();
}
