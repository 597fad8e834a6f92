/*
 * The verifier on a few lines each: readers of a lane mask that is still in use
 * (LLVM's VALUMaskWriteHazard: a SALU or VALU instruction reads what the SALU
 * wrote), what s_setpc_b64 does with EXEC, and loads of half a register.
 */
#include <string.h>

#include "isa/verify/verify.h"
#include "tests/code.h"
#include "tests/tap.h"

#define USE   "v_cndmask_b32_e64 v1, v1, v2, s[2:3]; "
#define WRITE "s_mov_b64 s[2:3], 0; "
#define MASK  USE WRITE
#define VCC   "v_cndmask_b32_e32 v1, v1, v2, vcc; s_mov_b64 vcc, 0; "

/* A call from 0 of the function at 24, and what it begins with. */
#define CALL \
	"s_getpc_b64 s[6:7]; s_add_u32 s6, s6, 20; s_addc_u32 s7, s7, 0; " \
	"s_swappc_b64 s[30:31], s[6:7]; s_endpgm; s_nop 0; "
#define NARROW \
	"v_cmp_gt_u32_e32 vcc_lo, 7, v0; s_and_saveexec_b32 s9, vcc_lo; "
/* From 32, the function's third line, to 48. */
#define TAIL \
	"s_getpc_b64 s[6:7]; s_add_u32 s6, s6, 12; s_addc_u32 s7, s7, 0; " \
	"s_setpc_b64 s[6:7]; "

/* v1.l is there, v1.h is not. */
#define HALVES \
	"global_load_d16_b16 v1, v0, s[2:3]; " \
	"global_load_d16_hi_b16 v1, v0, s[4:5]; s_waitcnt vmcnt(1); "
#define LDS_HALVES \
	"ds_load_u16_d16 v1, v0; ds_load_u16_d16_hi v1, v0 offset:2; " \
	"s_waitcnt lgkmcnt(1); "
#define STORE_LOW "global_store_b16 v0, v1, s[6:7]"
#define STORE_HIGH "global_store_d16_hi_b16 v0, v1, s[6:7]"

/* Results in v1 of every kind of vector memory that waits on vmcnt. */
#define BUFFER "buffer_load_b32 v1, v0, s[8:11], 0 offen; "
#define GLOBAL "global_load_b32 v1, v0, s[2:3]; "
#define IMAGE  "image_load v1, v[6:7], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D; "
#define SIZE \
	"image_get_resinfo v1, v6, s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D; "
#define SAMPLE \
	"image_sample v1, v[6:7], s[8:15], s[16:19] dmask:0x1 " \
	"dim:SQ_RSRC_IMG_2D; "
#define MSAA \
	"image_msaa_load v[1:4], v[6:8], s[8:15] dmask:0x1 " \
	"dim:SQ_RSRC_IMG_2D_MSAA; "
#define RAY "image_bvh_intersect_ray v[1:4], v[10:20], s[8:11]; "
#define READ "v_mov_b32 v9, v1"

static const struct {
	const char *name;
	int wave;
	const char *text;
	int rule; /* enum verify_rule, -1: no finding */
} cases[] = {
	{ "a mask read by the VALU", 64, MASK "v_mov_b32 v3, s2",
	  VERIFY_HZ_MASK },
	{ "a mask read by the SALU", 64, MASK "s_add_u32 s4, s2, 0",
	  VERIFY_HZ_MASK },
	{ "its high half", 64, MASK "s_mov_b32 s4, s3", VERIFY_HZ_MASK },
	{ "a mask read with one operand", 64, MASK "s_not_b64 s[4:5], s[2:3]",
	  VERIFY_HZ_MASK },
	{ "a mask compared", 64, MASK "s_cmp_eq_u64 s[2:3], 0",
	  VERIFY_HZ_MASK },
	{ "a mask read with a 16-bit constant", 64, MASK "s_cmpk_eq_u32 s2, 5",
	  VERIFY_HZ_MASK },
	{ "a register half of which is a mask", 64, MASK "s_addk_i32 s3, 5",
	  VERIFY_HZ_MASK },
	{ "VCC tested by a branch", 64, VCC "s_cbranch_vccz 0",
	  VERIFY_HZ_MASK },
	{ "VCC read by the SALU", 64, VCC "s_mov_b32 s4, vcc_hi",
	  VERIFY_HZ_MASK },
	{ "EXEC as a source between clears nothing", 64,
	  USE "v_mov_b32 v3, exec_lo; " WRITE "s_mov_b32 s4, s2",
	  VERIFY_HZ_MASK },
	{ "a wait for the SALU", 64,
	  MASK "s_waitcnt_depctr 0xfffe; s_mov_b32 s4, s2", -1 },
	{ "another scalar in between", 64,
	  "s_mov_b32 s8, 0; " USE "v_mov_b32 v3, s8; " WRITE
	  "s_mov_b32 s4, s2",
	  -1 },
	{ "VCC without its name in between", 64,
	  "s_mov_b64 vcc, 0; " USE "v_div_fmas_f32 v3, v1, v1, v1; " WRITE
	  "s_mov_b32 s4, s2",
	  -1 },
	{ "a register that is no mask", 64, MASK "s_mov_b32 s4, s6", -1 },
	{ "wave32 has no such hazard", 32,
	  "v_cndmask_b32_e64 v1, v1, v2, s2; s_mov_b32 s2, 0; "
	  "s_add_u32 s4, s2, 0",
	  -1 },
	{ "a return with lanes off", 32, CALL NARROW "s_setpc_b64 s[30:31]",
	  VERIFY_EXEC_LOST },
	{ "a return by a copy of the address", 32,
	  CALL "s_mov_b64 s[10:11], s[30:31]; " NARROW "s_setpc_b64 s[10:11]",
	  VERIFY_EXEC_LOST },
	{ "a tail call whose callee restores EXEC", 32,
	  CALL NARROW TAIL "s_mov_b32 exec_lo, s9; s_setpc_b64 s[30:31]", -1 },
	{ "a tail call whose callee restores nothing", 32,
	  CALL NARROW TAIL "v_mov_b32 v1, 0; s_setpc_b64 s[30:31]",
	  VERIFY_EXEC_LOST },
	{ "a half that is there", 32, HALVES STORE_LOW, -1 },
	{ "a half that is still loaded", 32, HALVES STORE_HIGH,
	  VERIFY_WAIT_VM },
	{ "both halves", 32, HALVES "v_mov_b32 v2, v1", VERIFY_WAIT_VM },
	{ "arithmetic on the half that is there", 32,
	  HALVES "v_add_f16_e32 v2, v1, v1", -1 },
	{ "arithmetic on the other one", 32,
	  HALVES "v_add_f16_e64 v2, v1, v1 op_sel:[1,0,0]", VERIFY_WAIT_VM },
	{ "packed arithmetic", 32, HALVES "v_pk_add_f16 v2, v1, v1",
	  VERIFY_WAIT_VM },
	{ "the low half as f32", 32,
	  HALVES "v_fma_mix_f32 v2, v1, v0, v0 op_sel_hi:[1,0,0]", -1 },
	{ "the high half as f32", 32,
	  HALVES "v_fma_mix_f32 v2, v1, v0, v0 op_sel:[1,0,0] "
		 "op_sel_hi:[1,0,0]",
	  VERIFY_WAIT_VM },
	{ "the register as f32", 32, HALVES "v_fma_mix_f32 v2, v1, v0, v0",
	  VERIFY_WAIT_VM },
	{ "the low half written", 32, HALVES "v_cvt_f16_f32_e32 v1, v0", -1 },
	{ "the high half written", 32, HALVES "v_fma_mixhi_f16 v1, v0, v0, v0",
	  VERIFY_WAIT_VM },
	{ "the register written", 32, HALVES "v_mov_b32 v1, 0",
	  VERIFY_WAIT_VM },
	{ "a load that extends", 32,
	  "global_load_u16 v1, v0, s[2:3]; " STORE_HIGH, VERIFY_WAIT_VM },
	{ "half of a wider load", 32,
	  "global_load_b32 v1, v0, s[2:3]; " STORE_LOW, VERIFY_WAIT_VM },
	{ "halves from LDS", 32, LDS_HALVES "ds_store_b16 v0, v1", -1 },
	{ "the half that LDS still loads", 32,
	  LDS_HALVES "ds_store_b16_d16_hi v0, v1", VERIFY_WAIT_LGKM },
	{ "a byte of it", 32, LDS_HALVES "ds_store_b8_d16_hi v0, v1",
	  VERIFY_WAIT_LGKM },
	{ "loads of every sort keep order", 32,
	  BUFFER GLOBAL IMAGE SIZE BUFFER "s_waitcnt vmcnt(0); " READ, -1 },
	{ "samples keep order", 32,
	  SAMPLE MSAA SAMPLE "s_waitcnt vmcnt(0); " READ, -1 },
	{ "rays keep order", 32, RAY RAY "s_waitcnt vmcnt(0); " READ, -1 },
	{ "a load over a sample", 32, SAMPLE GLOBAL, VERIFY_WAIT_VM },
	{ "a sample over a load of an image", 32, IMAGE SAMPLE,
	  VERIFY_WAIT_VM },
	{ "a load of an image over one of samples", 32, MSAA IMAGE,
	  VERIFY_WAIT_VM },
	{ "a load over a ray", 32, RAY BUFFER, VERIFY_WAIT_VM },
	{ "a ray over a sample", 32, SAMPLE RAY, VERIFY_WAIT_VM },
	{ "a sample, waited for, and a load", 32,
	  SAMPLE "s_waitcnt vmcnt(0); " GLOBAL, -1 },
	{ "the count is of all kinds", 32,
	  SAMPLE "global_load_b32 v5, v0, s[2:3]; s_waitcnt vmcnt(1); " READ,
	  -1 },
	{ "and no wait is too long for it", 32,
	  SAMPLE "global_load_b32 v5, v0, s[2:3]; s_waitcnt vmcnt(2); " READ,
	  VERIFY_WAIT_VM },
	{ "an image is still loaded", 32, IMAGE READ, VERIFY_WAIT_VM },
	{ "a ray is still on its way", 32, RAY READ, VERIFY_WAIT_VM },
	{ "lanes with a descriptor each, in turn", 32,
	  "s_mov_b32 s20, exec_lo; v_readfirstlane_b32 s8, v5; "
	  "v_cmp_eq_u32_e32 vcc_lo, s8, v5; s_and_saveexec_b32 s21, vcc_lo; "
	  SAMPLE "s_xor_b32 exec_lo, exec_lo, s21; s_cbranch_execnz -10; "
	  "s_mov_b32 exec_lo, s20; s_waitcnt vmcnt(0); " READ,
	  -1 },
	{ "and without the wait behind", 32,
	  "s_mov_b32 s20, exec_lo; v_readfirstlane_b32 s8, v5; "
	  "v_cmp_eq_u32_e32 vcc_lo, s8, v5; s_and_saveexec_b32 s21, vcc_lo; "
	  SAMPLE "s_xor_b32 exec_lo, exec_lo, s21; s_cbranch_execnz -10; "
	  "s_mov_b32 exec_lo, s20; " READ,
	  VERIFY_WAIT_VM },
	{ "a tail call to an address from memory", 32,
	  CALL "s_load_b64 s[16:17], s[0:1], 0x0; s_waitcnt lgkmcnt(0); "
	  NARROW "s_setpc_b64 s[16:17]",
	  -1 },
};

static void verify_lines(const char *name, int wave, const char *text, int rule)
{
	char all[512];
	uint32_t code[64];
	size_t n;
	struct isa_target t = { .gen = ISA_GFX11, .wave = wave };
	struct verify_report r = { 0 };
	struct verify_input in;
	struct err e = { 0 };

	snprintf(all, sizeof(all), "%s; s_endpgm", text);
	n = code_lines(all, wave, code, 64);
	verify_input_raw(&in, t, code, n * 4);
	for (int i = 0; i < VERIFY_RULE_COUNT; i++)
		in.allow[i] = i != VERIFY_HZ_MASK && i != VERIFY_EXEC_LOST &&
			      i != VERIFY_NO_CODE && i != VERIFY_WAIT_VM &&
			      i != VERIFY_WAIT_LGKM;
	if (!ok(isa_verify(&in, &r, &e), "%s: is verified", name))
		diag("%s", e.msg);
	is_str(r.n ? verify_rule_name(r.v[0].rule) : "none",
	       rule < 0 ? "none" : verify_rule_name(rule), "%s", name);
	if (rule < 0 && r.n)
		diag("0x%llx: %s", (unsigned long long)r.v[0].addr,
		     r.v[0].text);
	verify_report_fini(&r);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		verify_lines(cases[i].name, cases[i].wave, cases[i].text,
			     cases[i].rule);
	return plan_done();
}
