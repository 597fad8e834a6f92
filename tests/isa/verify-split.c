/*
 * The verifier on gfx12: each kind of memory instruction has a counter of its
 * own, and only a wait for that one, or for two, will do.
 */
#include <string.h>

#include "isa/asm/asm.h"
#include "isa/verify/verify.h"
#include "tests/tap.h"

static const struct {
	const char *text;
	const char *wanted; /* part of the first finding, NULL: none */
} cases[] = {
	{ "global_load_b32 v1, v0, s[4:5]\n"
	  "v_mov_b32 v2, v1\n",
	  "loadcnt(0)" },
	{ "global_load_b32 v1, v0, s[4:5]\n"
	  "s_wait_loadcnt 0x0\n"
	  "v_mov_b32 v2, v1\n",
	  NULL },
	{ "global_load_b32 v1, v0, s[4:5]\n"
	  "s_wait_dscnt 0x0\n"
	  "s_wait_kmcnt 0x0\n"
	  "s_wait_storecnt 0x0\n"
	  "v_mov_b32 v2, v1\n",
	  "loadcnt(0)" },
	{ "global_load_b32 v1, v0, s[4:5]\n"
	  "global_load_b32 v2, v0, s[4:5] offset:4\n"
	  "s_wait_loadcnt 0x1\n"
	  "v_mov_b32 v3, v1\n",
	  NULL },
	{ "global_load_b32 v1, v0, s[4:5]\n"
	  "global_load_b32 v2, v0, s[4:5] offset:4\n"
	  "s_wait_loadcnt 0x1\n"
	  "v_mov_b32 v3, v2\n",
	  "loadcnt(0)" },
	{ "ds_load_b32 v1, v0\n"
	  "v_mov_b32 v2, v1\n",
	  "dscnt(0)" },
	{ "ds_load_b32 v1, v0\n"
	  "global_load_b32 v2, v0, s[4:5]\n"
	  "s_wait_loadcnt_dscnt 0x0\n"
	  "v_add_nc_u32 v3, v1, v2\n",
	  NULL },
	{ "ds_load_b32 v1, v0\n"
	  "global_load_b32 v2, v0, s[4:5]\n"
	  "s_wait_loadcnt_dscnt 0x100\n"
	  "v_add_nc_u32 v3, v1, v2\n",
	  "loadcnt(0)" },
	{ "s_load_b32 s6, s[0:1], 0x0\n"
	  "s_add_co_u32 s7, s6, 1\n",
	  "kmcnt(0)" },
	{ "s_load_b32 s6, s[0:1], 0x0\n"
	  "s_wait_dscnt 0x0\n"
	  "s_add_co_u32 s7, s6, 1\n",
	  "kmcnt(0)" },
	{ "s_load_b32 s6, s[0:1], 0x0\n"
	  "s_wait_kmcnt 0x0\n"
	  "s_add_co_u32 s7, s6, 1\n",
	  NULL },
	{ "s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME)\n"
	  "s_wait_loadcnt 0x0\n"
	  "s_mov_b32 s8, s6\n",
	  "kmcnt(0)" },
	{ "v_wmma_f32_16x16x16_f16 v[8:15], v[0:3], v[4:7], v[8:15]\n"
	  "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[4:7], v[16:23]\n",
	  "matrix" },
};

static bool assemble_text(const char *text, uint32_t *code, size_t *n)
{
	struct isa_asm_options options = { .chip = "gfx1201", .wave = 32 };
	struct isa_object o;
	struct err e = { 0 };
	char all[1024];

	snprintf(all, sizeof(all), "%ss_endpgm\n", text);
	isa_object_init(&o);
	if (!isa_assemble(&o, "text", all, strlen(all), &options, &e)) {
		diag("%s", e.msg);
		return false;
	}
	*n = isa_section_at(&o, 1)->data.len;
	memcpy(code, isa_section_at(&o, 1)->data.data, *n);
	isa_object_fini(&o);
	return true;
}

int main(void)
{
	const struct isa_target t = { .gen = ISA_GFX12, .wave = 32 };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct verify_report r = { 0 };
		struct verify_input in;
		struct err e = { 0 };
		uint32_t code[64];
		size_t n = 0;
		bool good = assemble_text(cases[i].text, code, &n);

		verify_input_raw(&in, t, code, n);
		good = good && isa_verify(&in, &r, &e) &&
		       !cases[i].wanted == !r.n &&
		       (!r.n || strstr(r.v[0].what, cases[i].wanted));
		if (!ok(good, "case %zu: %s", i + 1,
			cases[i].wanted ? cases[i].wanted : "is right"))
			diag("%s%s", cases[i].text,
			     r.n ? r.v[0].what : "nothing found");
		verify_report_fini(&r);
	}
	return plan_done();
}
