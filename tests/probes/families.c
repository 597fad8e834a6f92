/*
 * One instruction of every family, run by the probe on soft devices, must
 * change exactly what plain C computes from the initial state: the probe's
 * operands are fixed (discover.h), so the sources are known.
 */
#include <math.h>
#include <string.h>

#include "base/float.h"
#include "probes/discover/discover.h"
#include "tests/tap.h"

#define LANES	    PROBE_LANES
#define SLOT_MEMORY (PROBE_MEM_DW / 2) /* where the slot's pointer points */

static struct probe_slots slots;
static struct probe_session *session;
/* State before, state wanted; a check edits the latter. */
static struct probe_state was, want;

/* "a|b": generations name an instruction differently. */
static bool is_named(const char *name, const char *names)
{
	const size_t n = strlen(name);

	for (const char *at = names; at; at = strchr(at, '|')) {
		at += *at == '|';
		if (!strncmp(at, name, n) && (!at[n] || at[n] == '|'))
			return true;
	}
	return false;
}

static const struct probe_slot *find_slot(const char *encoding,
					  const char *names)
{
	for (int i = 0; i < slots.n; i++)
		if (!strcmp(slots.v[i].encoding, encoding) && slots.v[i].name &&
		    is_named(slots.v[i].name, names))
			return &slots.v[i];
	return NULL;
}

static bool run_family(const char *encoding, const char *names)
{
	const struct probe_slot *slot = find_slot(encoding, names);
	struct err e = { 0 };
	struct probe_result r;

	if (!slot || !probe_session_run(session, slot, &r, &e)) {
		diag("%s %s: %s", encoding, names, slot ? e.msg : "no slot");
		return false;
	}
	was = *probe_session_before(session);
	want = was;
	if (r.verdict != RES_SLOT_EXECUTES)
		diag("%s: %s %s", names, res_slot_verdict_name(r.verdict),
		     r.reason);
	return r.verdict == RES_SLOT_EXECUTES;
}

/* Everything, not only what the instruction should have changed. */
static void is_wanted(const char *what)
{
	const struct probe_state *is = probe_session_after(session);
	struct table t;

	if (!ok(!memcmp(is, &want, sizeof(want)),
		"%s changes what it should, "
		"and nothing else",
		what)) {
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
	if (ok(run_family("SOP1", "s_brev_b32"), "s_brev_b32 executes")) {
		want.s[0] = reverse(was.s[16]);
		is_wanted("SOP1 s_brev_b32");
	}
	if (ok(run_family("SOP2", "s_add_u32|s_add_co_u32"),
	       "s_add_u32 executes")) {
		want.s[0] = was.s[16] + was.s[20];
		want.scc = want.s[0] < was.s[16];
		is_wanted("SOP2 s_add_u32");
	}
	if (ok(run_family("SOP2", "s_mul_hi_u32"), "s_mul_hi_u32 executes")) {
		want.s[0] = (uint32_t)((uint64_t)was.s[16] * was.s[20] >> 32);
		is_wanted("SOP2 s_mul_hi_u32");
	}
	if (ok(run_family("SOPC", "s_cmp_gt_u32"), "s_cmp_gt_u32 executes")) {
		want.scc = was.s[16] > was.s[20];
		is_wanted("SOPC s_cmp_gt_u32");
	}
	if (ok(run_family("SOPC", "s_cmp_le_u32"), "s_cmp_le_u32 executes")) {
		want.scc = was.s[16] <= was.s[20];
		is_wanted("SOPC s_cmp_le_u32");
	}
	if (ok(run_family("SOPK", "s_movk_i32"), "s_movk_i32 executes")) {
		want.s[0] = 0x7123;
		is_wanted("SOPK s_movk_i32");
	}
	if (ok(run_family("SOPK", "s_mulk_i32"), "s_mulk_i32 executes")) {
		want.s[0] = was.s[0] * 0x7123;
		is_wanted("SOPK s_mulk_i32");
	}
	if (ok(run_family("SOPP", "s_branch"), "s_branch executes")) {
		want.s[PROBE_S_MARK] = 0; /* jumped over */
		is_wanted("SOPP s_branch");
	}
	if (ok(run_family("SMEM", "s_load_b128|s_load_dwordx4"),
	       "s_load_b128 executes")) {
		memcpy(want.s, was.mem + SLOT_MEMORY, 16);
		is_wanted("SMEM s_load_b128");
	}
}

static void vector(void)
{
	if (ok(run_family("VOP1", "v_cvt_f32_i32"), "v_cvt_f32_i32 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] = f32_bits((float)(int32_t)was.v[8][l]);
		is_wanted("VOP1 v_cvt_f32_i32");
	}
	if (ok(run_family("VOP2", "v_add_f32"), "v_add_f32 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] = f32_bits(f32_value(was.v[8][l]) +
						f32_value(was.v[16][l]));
		is_wanted("VOP2 v_add_f32");
	}
	if (ok(run_family("VOP2", "v_fmac_f32"), "v_fmac_f32 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] = f32_bits(fmaf(f32_value(was.v[8][l]),
						     f32_value(was.v[16][l]),
						     f32_value(was.v[0][l])));
		is_wanted("VOP2 v_fmac_f32");
	}
	if (ok(run_family("VOPC", "v_cmp_lt_f32"), "v_cmp_lt_f32 executes")) {
		want.vcc[0] = 0;
		for (int l = 0; l < LANES; l++)
			want.vcc[0] |= (uint32_t)(f32_value(was.v[8][l]) <
						  f32_value(was.v[16][l]))
				       << l;
		is_wanted("VOPC v_cmp_lt_f32");
	}
	if (ok(run_family("VOP3", "v_add3_u32"), "v_add3_u32 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] =
				was.v[8][l] + was.v[16][l] + was.v[24][l];
		is_wanted("VOP3 v_add3_u32");
	}
	if (ok(run_family("VOP3", "v_max_i32"), "v_max_i32_e64 executes")) {
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
	if (ok(run_family("VOP3", "v_mad_u64_u32|v_mad_co_u64_u32"),
	       "v_mad_u64_u32 executes")) {
		want.s[0] = 0;
		for (int l = 0; l < LANES; l++) {
			const uint64_t c = was.v[24][l] | (uint64_t)was.v[25][l]
								  << 32;
			const uint64_t d =
				(uint64_t)was.v[8][l] * was.v[16][l] + c;

			want.v[0][l] = (uint32_t)d;
			want.v[1][l] = (uint32_t)(d >> 32);
			want.s[0] |= (uint32_t)(d < c) << l;
		}
		is_wanted("VOP3SD v_mad_u64_u32");
	}
	if (ok(run_family("VOP3P", "v_pk_add_u16"), "v_pk_add_u16 executes")) {
		for (int l = 0; l < LANES; l++) {
			const uint32_t a = was.v[8][l], b = was.v[16][l];

			want.v[0][l] = ((a & 0xffff0000) + (b & 0xffff0000)) |
				       ((a + b) & 0xffff);
		}
		is_wanted("VOP3P v_pk_add_u16");
	}
	if (ok(run_family("VOP3P", "v_dot4_u32_u8"),
	       "v_dot4_u32_u8 executes")) {
		for (int l = 0; l < LANES; l++)
			want.v[0][l] =
				dot4(was.v[8][l], was.v[16][l]) + was.v[24][l];
		is_wanted("VOP3P v_dot4_u32_u8");
	}
}

static void dual(void)
{
	if (ok(run_family("VOPDX", "v_dual_add_f32"),
	       "v_dual_add_f32 executes")) {
		for (int l = 0; l < LANES; l++) {
			want.v[0][l] = f32_bits(f32_value(was.v[8][l]) +
						f32_value(was.v[16][l]));
			want.v[1][l] = was.v[9][l];
		}
		is_wanted("VOPD v_dual_add_f32 :: v_dual_mov_b32");
	}
	if (ok(run_family("VOPDY", "v_dual_and_b32"),
	       "v_dual_and_b32 executes")) {
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
	if (!ok(run_family("VOP3P", "v_wmma_i32_16x16x16_iu8"),
		"v_wmma_i32_16x16x16_iu8 executes"))
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
	if (ok(run_family("DS", "ds_add_rtn_u32"), "ds_add_rtn_u32 executes")) {
		for (int l = 0; l < LANES; l++) {
			const int at = (16 * l + 256) / 4;

			want.v[0][l] = was.lds[at];
			want.lds[at] += was.v[8][l];
		}
		is_wanted("DS ds_add_rtn_u32");
	}
	if (ok(run_family("FLAT", "flat_load_b64|flat_load_dwordx2"),
	       "flat_load_b64 executes")) {
		for (int l = 0; l < LANES; l++) {
			want.v[0][l] = was.mem[SLOT_MEMORY + 16 * l];
			want.v[1][l] = was.mem[SLOT_MEMORY + 16 * l + 1];
		}
		is_wanted("FLAT flat_load_b64");
	}
	if (ok(run_family("GLOBAL", "global_atomic_add_u32|global_atomic_add"),
	       "global_atomic_add_u32 executes")) {
		for (int l = 0; l < LANES; l++) {
			want.v[0][l] = was.mem[SLOT_MEMORY + 16 * l];
			want.mem[SLOT_MEMORY + 16 * l] += was.v[8][l];
		}
		is_wanted("GLOBAL global_atomic_add_u32 glc");
	}
	if (ok(run_family("SCRATCH", "scratch_store_b64|scratch_store_dwordx2"),
	       "scratch_store_b64 executes")) {
		memcpy(want.scratch[0], was.v[8], sizeof(was.v[8]));
		memcpy(want.scratch[1], was.v[9], sizeof(was.v[9]));
		is_wanted("SCRATCH scratch_store_b64");
	}
	if (ok(run_family("MUBUF", "buffer_store_b128|buffer_store_dwordx4"),
	       "buffer_store_b128 executes")) {
		for (int l = 0; l < LANES; l++)
			for (int i = 0; i < 4; i++)
				want.mem[SLOT_MEMORY + 16 * l + i] =
					was.v[i][l];
		is_wanted("MUBUF buffer_store_b128");
	}
	if (ok(run_family("MTBUF", "tbuffer_load_format_xyzw"),
	       "tbuffer_load_format_xyzw executes")) {
		for (int l = 0; l < LANES; l++)
			for (int i = 0; i < 4; i++)
				want.v[i][l] =
					was.mem[SLOT_MEMORY + 16 * l + i];
		is_wanted("MTBUF tbuffer_load_format_xyzw, 4 x uint");
	}
}

static void test_chip(enum isa_gen gen, const char *device)
{
	struct err e = { 0 };

	diag("%s", device);
	ok(probe_slots_init(&slots, gen, NULL, &e), "the slots are listed");
	session = probe_session_open(device, 7, 5000000000ull, &e);
	if (!ok(session, "the control kernel runs"))
		diag("%s", e.msg);
	if (session) {
		scalar();
		vector();
		wide();
		memories();
	}
	if (session && gen >= ISA_GFX11)
		dual();
	/* gfx12 deals matrices otherwise: tests/chips/gfx12/matrix.c. */
	if (session && (gen == ISA_GFX11 || gen == ISA_GFX11_5))
		wmma();
	probe_session_close(session);
	probe_slots_fini(&slots);
}

int main(void)
{
	test_chip(ISA_GFX11, "soft");
	test_chip(ISA_GFX10_3, "soft:gfx1030");
	test_chip(ISA_GFX11_5, "soft:gfx1151");
	test_chip(ISA_GFX12, "soft:gfx1201");
	return plan_done();
}
