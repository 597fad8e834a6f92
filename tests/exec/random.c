/*
 * Random programs over all encodings, run by the emulator in its fast and its
 * slow forms (tests/exec/soft-fuzz.h): 3,000, and 12,000 in the slow tests.
 * T0_FUZZ_SECONDS=600 runs so long, T0_SEED starts elsewhere, T0_FUZZ_SAVE=FILE
 * keeps the input that failed.
 */
#include <stdio.h>

#include "tests/exec/soft-fuzz.h"

enum { INSTS = 14, MORE = 60 };

static bool is_graphics(const uint8_t *code)
{
	struct isa_target t = { ISA_GFX11, 64, .lax = true };
	struct isa_inst in;

	if (isa_decode(&t, code, ISA_MAX_SIZE_BYTES, &in))
		return false;
	switch (in.fmt) {
	case ISA_FMT_MIMG:
	case ISA_FMT_EXP:
	case ISA_FMT_LDSDIR:
		return true;
	case ISA_FMT_VINTERP:
		return false;
	case ISA_FMT_SOPP: /* too often the end */
		return in.op == ISA_s_endpgm || in.op == ISA_s_trap ||
		       in.op == ISA_s_endpgm_saved ||
		       in.op == ISA_s_sendmsghalt;
	case ISA_FMT_SOP1: /* to where there is no code, mostly */
		return in.op == ISA_s_setpc_b64 || in.op == ISA_s_swappc_b64 ||
		       in.op == ISA_s_rfe_b64 ||
		       in.op == ISA_s_sendmsg_rtn_b32 ||
		       in.op == ISA_s_sendmsg_rtn_b64;
	}
	return isa_op_info((enum isa_op)in.op)->flags &
	       (ISA_GFX | ISA_GDSONLY);
}

/* Header and code; a loop around some of it, so that the fast form exists. */
static size_t random_input(struct isa_gen_state *g, uint8_t *data)
{
	static const uint32_t loop[] = { 0x80e28162, /* s_sub_u32 s98, s98, 1 */
					 0xbf078062, /* s_cmp_lg_u32 s98, 0 */
					 0xbfa20000 /* s_cbranch_scc1 0 */ };
	const uint32_t count = 0xb0620000 | (20 + gen_below(g, 20));
	uint32_t n = 1 + gen_below(g, gen_percent(g, 80) ? INSTS : MORE);
	struct isa_target t = { ISA_GFX11, 32, .lax = true };
	size_t at = FUZZ_HEAD;

	for (int i = 0; i < FUZZ_HEAD; i++)
		data[i] = (uint8_t)gen_u32(g);
	data[0] &= gen_percent(g, 60) ? 0xfd : 0xff;
	if (data[0] & 1)
		t.wave = 64;
	memcpy(data + at, &count, 4); /* s_movk_i32 s98, count */
	at += 4;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t code[ISA_MAX_SIZE_BYTES];
		struct isa_inst in;

		do
			gen_inst(g, code);
		while (isa_decode(&t, code, sizeof(code), &in) ||
		       is_graphics(code));
		memcpy(data + at, code, in.size_bytes);
		at += in.size_bytes;
	}
	memcpy(data + at, loop, sizeof(loop));
	data[at + 8] = 1; /* to the second instruction */
	return at + sizeof(loop);
}

static void save(const uint8_t *data, size_t size)
{
	const char *path = getenv("T0_FUZZ_SAVE");
	FILE *f = path ? fopen(path, "wb") : NULL;

	if (!f)
		return;
	fwrite(data, 1, size, f);
	fclose(f);
}

int main(void)
{
	const char *seconds = getenv("T0_FUZZ_SECONDS");
	const char *seed = getenv("T0_SEED");
	uint64_t end = time_mono_ns() +
		       (seconds ? strtoull(seconds, NULL, 10) : 0) * 1000000000;
	struct isa_gen_state g = { .seed = 20261122, .gen = ISA_GFX11 };
	struct soft_fuzz *z = soft_fuzz_new();
	uint64_t n = 0, ended = 0;
	uint64_t wanted = seconds ? UINT64_MAX : getenv("T0_SLOW") ? 12000 :
								     3000;
	uint64_t insts = 0;
	bool good = true;

	if (seed)
		g.seed = strtoull(seed, NULL, 0) | UINT64_C(1) << 62;
	diag("seed 0x%llx", (unsigned long long)g.seed);
	while (good && n < wanted && (!seconds || time_mono_ns() < end)) {
		uint8_t data[FUZZ_HEAD + (MORE + 4) * ISA_MAX_SIZE_BYTES];
		size_t size = random_input(&g, data);

		good = soft_fuzz_run(z, data, size);
		if (!good)
			save(data, size);
		ended += z[0].w[0].state == SOFT_ENDED;
		insts += z[0].w[0].n_insts;
		n++;
	}
	ok(good, "random programs do the same in all forms");
	ok(ended > n / 3, "most come to their end");
	diag("%llu programs, %llu instructions, %llu came to the end",
	     (unsigned long long)n, (unsigned long long)insts,
	     (unsigned long long)ended);
	free(z);
	return plan_done();
}
