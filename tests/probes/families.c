/*
 * One instruction of every family, run by the probe on the soft device, must
 * change exactly what plain C computes from the initial state: the probe's
 * operands are fixed (discover.h), so the sources are known.
 */
#include <math.h>
#include <string.h>

#include "base/float.h"
#include "probes/discover/discover.h"
#include "tests/tap.h"

#define LANES	 PROBE_LANES
#define SLOT_MEMORY (PROBE_MEM_DW / 2) /* where the slot's pointer points */

static struct probe_slots slots;
static struct probe_session *session;
/* State before, state wanted; a check edits the latter. */
static struct probe_state was, want;

static bool run(const char *name)
{
	struct err e = { 0 };
	struct probe_result r;
	const struct probe_slot *slot = probe_slot_parse(&slots, name, &e);

	if (!slot || !probe_session_run(session, slot, &r, &e)) {
		diag("%s: %s", name, e.msg);
		return false;
	}
	was = *probe_session_before(session);
	want = was;
	if (r.verdict != RES_SLOT_EXECUTES)
		diag("%s: %s %s", name, res_slot_verdict_name(r.verdict),
		     r.reason);
	return r.verdict == RES_SLOT_EXECUTES;
}

/* Everything, not only what the instruction should have changed. */
static void is_wanted(const char *what)
{
	const struct probe_state *is = probe_session_after(session);
	struct table t;

	if (!ok(!memcmp(is, &want, sizeof(want)), "%s changes what it should, "
		"and nothing else", what)) {
		probe_signature_table(&want, is, &t);
		for (int i = 0; i < t.n_rows && i < 8; i++)
			diag("%s lane %s: wanted %s, got %s", t.row[i][0],
			     t.row[i][1] ? t.row[i][1] : "-", t.row[i][2],
			     t.row[i][3]);
		table_fini(&t);
	}
}

static uint32_t reverse(uint32_t u)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (u >> i & 1) << (31 - i);
	return r;
}

static uint32_t dot4(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (int i = 0; i < 32; i += 8)
		sum += (a >> i & 255) * (b >> i & 255);
	return sum;
}

static void scalar(void)
{
	if (ok(run("SOP1:4"), "s_brev_b32 executes")) {
		want.s[0] = reverse(was.s[16]);
		is_wanted("SOP1 s_brev_b32");
	}
	if (ok(run("SOP2:0"), "s_add_u32 executes")) {
		want.s[0] = was.s[16] + was.s[20];
		want.scc = want.s[0] < was.s[16];
		is_wanted("SOP2 s_add_u32");
	}
	if (ok(run("SOP2:45"), "s_mul_hi_u32 executes")) {
		want.s[0] = (uint32_t)((uint64_t)was.s[16] * was.s[20] >> 32);
		is_wanted("SOP2 s_mul_hi_u32");
	}
	if (ok(run("SOPC:8"), "s_cmp_gt_u32 executes")) {
		want.scc = was.s[16] > was.s[20];
		is_wanted("SOPC s_cmp_gt_u32");
	}
	if (ok(run("SOPC:11"), "s_cmp_le_u32 executes")) {
		want.scc = was.s[16] <= was.s[20];
		is_wanted("SOPC s_cmp_le_u32");
	}
	if (ok(run("SOPK:0"), "s_movk_i32 executes")) {
		want.s[0] = 0x7123;
		is_wanted("SOPK s_movk_i32");
	}
	if (ok(run("SOPK:16"), "s_mulk_i32 executes")) {
		want.s[0] = was.s[0] * 0x7123;
		is_wanted("SOPK s_mulk_i32");
	}
	if (ok(run("SOPP:32"), "s_branch executes")) {
		want.s[PROBE_S_MARK] = 0; /* jumped over */
		is_wanted("SOPP s_branch");
	}
	if (ok(run("SMEM:2"), "s_load_b128 executes")) {
		memcpy(want.s, was.mem + SLOT_MEMORY, 16);
		is_wanted("SMEM s_load_b128");
	}
}

static void vector(void)
{
	if (ok(run("VOP1:5"), "v_cvt_f32_i32 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] = f32_bits((float)(int32_t)was.v[8][l]);
		is_wanted("VOP1 v_cvt_f32_i32");
	}
	if (ok(run("VOP2:3"), "v_add_f32 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] = f32_bits(f32_value(was.v[8][l]) +
					   f32_value(was.v[16][l]));
		is_wanted("VOP2 v_add_f32");
	}
	if (ok(run("VOP2:43"), "v_fmac_f32 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] = f32_bits(fmaf(f32_value(was.v[8][l]),
						f32_value(was.v[16][l]),
						f32_value(was.v[0][l])));
		is_wanted("VOP2 v_fmac_f32");
	}
	if (ok(run("VOPC:17"), "v_cmp_lt_f32 executes")) {
		want.vcc[0] = 0;
		for (int l = 0; l < LANES; l++)
			want.vcc[0] |= (uint32_t)(f32_value(was.v[8][l]) <
						  f32_value(was.v[16][l])) << l;
		is_wanted("VOPC v_cmp_lt_f32");
	}
	if (ok(run("VOP3:597"), "v_add3_u32 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] = was.v[8][l] + was.v[16][l] +
				       was.v[24][l];
		is_wanted("VOP3 v_add3_u32");
	}
	if (ok(run("VOP3:274"), "v_max_i32_e64 executes")) {
		for (int l = 0; l < LANES; l++) {
			const int32_t a = (int32_t)was.v[8][l];
			const int32_t b = (int32_t)was.v[16][l];

			want.v[0][l] = (uint32_t)(a > b ? a : b);
		}
		is_wanted("VOP3 v_max_i32_e64");
	}
}

static void wide(void)
{
	if (ok(run("VOP3:766"), "v_mad_u64_u32 executes")) {
		want.s[0] = 0;
		for (int l = 0; l < LANES; l++) {
			const uint64_t c = was.v[24][l] |
					   (uint64_t)was.v[25][l] << 32;
			const uint64_t d = (uint64_t)was.v[8][l] *
						   was.v[16][l] + c;

			want.v[0][l] = (uint32_t)d;
			want.v[1][l] = (uint32_t)(d >> 32);
			want.s[0] |= (uint32_t)(d < c) << l;
		}
		is_wanted("VOP3SD v_mad_u64_u32");
	}
	if (ok(run("VOP3P:10"), "v_pk_add_u16 executes")) {
		for (int l = 0; l < LANES; l++) {
			const uint32_t a = was.v[8][l], b = was.v[16][l];

			want.v[0][l] = ((a & 0xffff0000) + (b & 0xffff0000)) |
				       ((a + b) & 0xffff);
		}
		is_wanted("VOP3P v_pk_add_u16");
	}
	if (ok(run("VOP3P:23"), "v_dot4_u32_u8 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] = dot4(was.v[8][l], was.v[16][l]) +
				       was.v[24][l];
		is_wanted("VOP3P v_dot4_u32_u8");
	}
	if (ok(run("VOPDX:4"), "v_dual_add_f32 executes")) {
		for (int l = 0; l < LANES; l++) {
			want.v[0][l] = f32_bits(f32_value(was.v[8][l]) +
					   f32_value(was.v[16][l]));
			want.v[1][l] = was.v[9][l];
		}
		is_wanted("VOPD v_dual_add_f32 :: v_dual_mov_b32");
	}
	if (ok(run("VOPDY:18"), "v_dual_and_b32 executes")) {
		for (int l = 0; l < LANES; l++) {
			want.v[0][l] = was.v[8][l];
			want.v[1][l] = was.v[9][l] & was.v[17][l];
		}
		is_wanted("VOPD v_dual_mov_b32 :: v_dual_and_b32");
	}
}

/* D[2j + (lane >> 4)][lane & 15] += sum A[row][k] * B[k][column]. */
static void wmma(void)
{
	if (!ok(run("VOP3P:68"), "v_wmma_i32_16x16x16_iu8 executes"))
		return;
	for (int l = 0; l < LANES; l++)
		for (int j = 0; j < 8; j++) {
			const int row = 2 * j + (l >> 4), col = l & 15;
			uint32_t d = was.v[24 + j][l];

			for (int k = 0; k < 4; k++)
				d += dot4(was.v[8 + k][row],
					  was.v[16 + k][col]);
			want.v[j][l] = d;
		}
	is_wanted("WMMA v_wmma_i32_16x16x16_iu8");
}

static void memories(void)
{
	if (ok(run("DS:32"), "ds_add_rtn_u32 executes")) {
		for (int l = 0; l < LANES; l++) {
			const int at = (16 * l + 256) / 4;

			want.v[0][l] = was.lds[at];
			want.lds[at] += was.v[8][l];
		}
		is_wanted("DS ds_add_rtn_u32");
	}
	if (ok(run("FLAT:21"), "flat_load_b64 executes")) {
		for (int l = 0; l < LANES; l++) {
			want.v[0][l] = was.mem[SLOT_MEMORY + 16 * l];
			want.v[1][l] = was.mem[SLOT_MEMORY + 16 * l + 1];
		}
		is_wanted("FLAT flat_load_b64");
	}
	if (ok(run("GLOBAL:53"), "global_atomic_add_u32 executes")) {
		for (int l = 0; l < LANES; l++) {
			want.v[0][l] = was.mem[SLOT_MEMORY + 16 * l];
			want.mem[SLOT_MEMORY + 16 * l] += was.v[8][l];
		}
		is_wanted("GLOBAL global_atomic_add_u32 glc");
	}
	if (ok(run("SCRATCH:27"), "scratch_store_b64 executes")) {
		memcpy(want.scratch[0], was.v[8], sizeof(was.v[8]));
		memcpy(want.scratch[1], was.v[9], sizeof(was.v[9]));
		is_wanted("SCRATCH scratch_store_b64");
	}
	if (ok(run("MUBUF:29"), "buffer_store_b128 executes")) {
		for (int l = 0; l < LANES; l++)
			for (int i = 0; i < 4; i++)
				want.mem[SLOT_MEMORY + 16 * l + i] = was.v[i][l];
		is_wanted("MUBUF buffer_store_b128");
	}
	if (ok(run("MTBUF:3"), "tbuffer_load_format_xyzw executes")) {
		for (int l = 0; l < LANES; l++)
			for (int i = 0; i < 4; i++)
				want.v[i][l] = was.mem[SLOT_MEMORY + 16 * l + i];
		is_wanted("MTBUF tbuffer_load_format_xyzw, 4 x uint");
	}
}

int main(void)
{
	struct err e = { 0 };

	ok(probe_slots_init(&slots, NULL, &e), "the slots are listed");
	session = probe_session_open("soft", 7, 5000000000ull, &e);
	if (!ok(session, "the control kernel runs"))
		diag("%s", e.msg);
	if (session) {
		scalar();
		vector();
		wide();
		wmma();
		memories();
	}
	probe_session_close(session);
	probe_slots_fini(&slots);
	return plan_done();
}
