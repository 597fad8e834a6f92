/*
 * probes/micro/micro_kernel.c - the kernel around the loops, as text and
 * assembled.
 *
 * Registers: s[0:1] kernel arguments, s[4:5] results of this wave, s[6:7]
 * data, s8 iterations, s9 repetitions, s10 loop counter, s11 iterations of
 * warming up, s12 repetition, s13 wave, s14 to s23 readings (s18 and s19 one
 * of 64 bits); v0 lane, v1 four times the lane, v2 to v5 scratch.
 */
#include <string.h>

#include "probes/micro/micro.h"

static const char prologue[] =
	"s_load_b128 s[4:7], s[0:1], 0x0\n"
	"s_load_b64 s[8:9], s[0:1], 0x10\n"
	"s_load_b32 s11, s[0:1], 0x18\n"
	"v_and_b32 v0, 0x3ff, v0\n"
	"v_lshrrev_b32 v2, 5, v0\n"
	"v_readfirstlane_b32 s13, v2\n"
	"v_and_b32 v0, 31, v0\n"
	"v_lshlrev_b32 v1, 2, v0\n"
	"s_lshl_b32 s3, s13, 12\n"
	"s_waitcnt lgkmcnt(0)\n"
	"s_add_u32 s4, s4, s3\n"
	"s_addc_u32 s5, s5, 0\n"
	"s_mov_b32 s12, 0\n";

/*
 * The last wait is for the vector ALU: gfx11.0 does not hold back a reader of
 * a transcendental result (LLVM: VALUTransUseHazard).
 */
static const char wait_all[] = "s_waitcnt vmcnt(0) lgkmcnt(0) expcnt(0)\n"
			       "s_waitcnt_vscnt null, 0x0\n"
			       "s_waitcnt_depctr 0xfff\n";

#define REALTIME(reg)                                              \
	"s_sendmsg_rtn_b64 " reg ", sendmsg(MSG_RTN_GET_REALTIME)\n" \
	"s_waitcnt lgkmcnt(0)\n"

/* v4 = 64 * repetition; the readings of s14..s23 lie there. */
static const char store_times[] =
	"s_lshl_b32 s3, s12, 6\n"
	"v_mov_b32 v10, s3\n"
	"v_mov_b32 v6, s14\n"
	"v_mov_b32 v7, s15\n"
	"v_mov_b32 v8, s16\n"
	"v_mov_b32 v9, s17\n"
	"global_store_b128 v10, v[6:9], s[4:5]\n"
	"v_mov_b32 v6, s20\n"
	"v_mov_b32 v7, s21\n"
	"v_mov_b32 v8, s22\n"
	"v_mov_b32 v9, s23\n"
	"global_store_b128 v10, v[6:9], s[4:5] offset:16\n";

static void store_value(struct buf *b, const char *reg, int at)
{
	if (!reg)
		return;
	buf_printf(b, "v_mov_b32 v6, %s\n"
		   "global_store_b32 v1, v6, s[4:5] offset:%d\n", reg, at);
}

/* gfx10_1 has a counter of 64 bits, which is read as memory is. */
static void read_counter(struct buf *b, enum isa_gen gen, int reg)
{
	if (gen == ISA_GFX10_1)
		buf_printf(b,
			   "s_memtime s[18:19]\ns_waitcnt lgkmcnt(0)\n"
			   "s_and_b32 s%d, s18, 0xfffff\n",
			   reg);
	else
		buf_printf(b,
			   "s_getreg_b32 s%d, "
			   "hwreg(HW_REG_SHADER_CYCLES, 0, 20)\n",
			   reg);
}

/* One loop between readings of the counter into s14 + 2 * which and + 1. */
static void timed_loop(struct buf *b, enum isa_gen gen,
		       const struct micro_text *t, int which)
{
	const int values = MICRO_VALUES_AT + which * 2 * 4 * MICRO_LANES;

	if (t->init)
		buf_adds(b, t->init);
	buf_adds(b, wait_all);
	if (t->waves > 1)
		buf_adds(b, "s_barrier\n");
	if (!which)
		buf_adds(b, REALTIME("s[20:21]"));
	read_counter(b, gen, 14 + 2 * which);
	buf_printf(b, "s_mov_b32 s10, s8\n.Lloop%d:\n%s", which,
		   t->loop[which]);
	buf_printf(b, "s_sub_u32 s10, s10, 1\ns_cmp_lg_u32 s10, 0\n"
		   "s_cbranch_scc1 .Lloop%d\n", which);
	if (t->wait)
		buf_adds(b, t->wait);
	if (t->waves > 1)
		buf_adds(b, "s_waitcnt lgkmcnt(0)\ns_barrier\n");
	read_counter(b, gen, 15 + 2 * which);
	if (which)
		buf_adds(b, REALTIME("s[22:23]"));
	buf_adds(b, wait_all);
	store_value(b, t->lo, values);
	store_value(b, t->hi, values + 4 * MICRO_LANES);
}

static void write_text(struct buf *b, enum isa_gen gen,
		       const struct micro_text *t)
{
	buf_adds(b, prologue);
	if (t->setup)
		buf_adds(b, t->setup);
	buf_adds(b, ".Lrepeat:\n");
	timed_loop(b, gen, t, 0);
	timed_loop(b, gen, t, 1);
	buf_adds(b, store_times);
	buf_adds(b, "s_add_u32 s12, s12, 1\ns_cmp_lg_u32 s12, s9\n"
		    "s_cbranch_scc1 .Lrepeat\ns_endpgm\n");
}

bool micro_kernel_assemble(const char *chip, const struct micro_text *t,
			   struct buf *code, struct err *e)
{
	const struct isa_chip *c = isa_chip_find(chip);
	struct buf text = { 0 };

	if (c && isa_gen_info(c->gen)->ids_in_ttmp)
		buf_adds(&text, "s_mov_b32 s15, ttmp9\n");
	write_text(&text, c ? c->gen : ISA_GFX11, t);
	const bool good = probe_assemble(chip, text.data, code, e);
	buf_fini(&text);
	return good;
}

void micro_expand(struct buf *out, const char *text, int reg)
{
	for (; *text; text++) {
		const char *next = "deqh";
		static const int add[] = { 0, 1, 3, 7 };
		const char *which = *text == '%' ? strchr(next, text[1]) : NULL;

		if (which && text[1]) {
			buf_printf(out, "%d", reg + add[which - next]);
			text++;
		} else {
			buf_addc(out, *text);
		}
	}
	buf_addc(out, '\n');
}
