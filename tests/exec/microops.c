/*
 * The fast forms of straight code, microops and host code, give what the
 * instructions one by one give: random loops run once in slices of many
 * instructions and once in slices of one, which never use a fast form;
 * registers, memory, LDS, faults and counters must agree.  What the instructions
 * themselves compute is tested elsewhere.
 *
 * T0_SEED chooses other loops, T0_SOFT_SIMD=v2 or v3 the code for processors
 * without AVX-512 or AVX2.
 */
#include <stdlib.h>

#include "isa/text/text.h"
#include "kfd/soft/exec/exec.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum {
	CODE_VA = 0x7f0000,
	MEM_BYTES = 65536, /* from address 0 on */
	LDS_BYTES = 8192,
	VGPRS = 256,
	COUNTER = 100, /* SGPR of the loop */
	BUDGET = 400,  /* instructions of a run */
	BODY = 5,      /* random instructions of a loop, at most */
	FEW = 12,      /* registers that most of them use */
	ADDRESSES = 40, /* VGPR pairs that hold addresses */
	BASE = 96,     /* SGPR pair that holds one */
	BUFFER = 88,   /* SGPRs of a buffer descriptor */
	FRAGMENTS = 64, /* VGPRs with halves, for matrix products */
	SUMS = 96,     /* VGPRs with floats, likewise */
	SCRATCH_BYTES = 512, /* of a lane */
};

struct machine {
	struct soft_env env;
	struct soft_group group;
	struct soft_wave w;
	_Alignas(64) uint32_t v[2][VGPRS][SOFT_LANES];
	uint8_t mem[MEM_BYTES], lds[LDS_BYTES];
	uint8_t scratch[2 * SOFT_LANES * SCRATCH_BYTES];
	uint8_t code[256];
	enum isa_gen gen;
};

static bool find(void *ctx, uint64_t va, struct soft_range *out)
{
	struct machine *m = ctx;

	if (va < MEM_BYTES)
		*out = (struct soft_range){ 0, MEM_BYTES, m->mem,
					    SOFT_MEM_READ | SOFT_MEM_WRITE };
	else if (va >= CODE_VA && va < CODE_VA + sizeof(m->code))
		*out = (struct soft_range){ CODE_VA, sizeof(m->code), m->code,
					    SOFT_MEM_READ | SOFT_MEM_EXEC };
	else
		return false;
	return true;
}

static uint64_t no_time(void *ctx)
{
	(void)ctx;
	return 0;
}

/* Pointers between its parts, which differ from copy to copy. */
static void connect(struct machine *m)
{
	m->env.ctx = m;
	m->env.gen = m->gen;
	m->env.swizzles_scratch = !isa_gen_info(m->gen)->own_scratch;
	m->env.find = find;
	m->env.realtime = no_time;
	m->group.env = &m->env;
	m->group.wave = &m->w;
	m->group.lds = m->lds;
	m->w.group = &m->group;
	m->w.v[0] = m->v[0];
	m->w.v[1] = m->v[1];
	m->w.scratch = m->scratch;
	m->w.scratch_lane_bytes = SCRATCH_BYTES;
}

/* ------------------------------------------------------- random state ---- */

static uint32_t random_word(struct isa_gen_state *g)
{
	static const uint32_t special[] = {
		0, 0x80000000, 0x7f800000, 0xffc00000, 0x7f800001, 0x3f800000,
		0x00800000, 0x007fffff, 1, ~0u, 0x7c007c00, 0x7e013c00,
		0x3ff00000, 0xfff00000, 0x03ff8001, 0x7f7fffff,
	};

	switch (gen_below(g, 4)) {
	case 0:
		return special[gen_below(g, ARRAY_SIZE(special))];
	case 1:
		return 0x3c003c00 + (gen_u32(g) & 0x83ff83ff);
	case 2:
		return (gen_u32(g) & 0x807fffff) +
		       (120 + gen_below(g, 16)) * 0x800000;
	}
	return gen_u32(g);
}

/* Many registers are good as addresses, or as the upper halves of some. */
static void random_plane(struct isa_gen_state *g, uint32_t *p)
{
	uint32_t kind = gen_below(g, 8), at = gen_below(g, 4096) * 4;
	bool odd = gen_percent(g, 10);

	for (uint32_t i = 0; i < SOFT_LANES; i++) {
		if (kind < 2)
			p[i] = 0;
		else if (kind == 2)
			p[i] = at + 4 * i + odd;
		else if (kind == 3)
			p[i] = at + 16 * i;
		else if (kind == 4)
			p[i] = gen_below(g, 8192) * 4;
		else
			p[i] = random_word(g);
	}
}

/*
 * In order by 2, 4, 8, 16 or 32, both rows of lanes maybe the same, and out of
 * order; the last may go too far.
 */
static void random_addresses(struct isa_gen_state *g,
			     uint32_t (*v)[SOFT_LANES])
{
	static const uint32_t steps[] = { 2, 4, 4, 8 };
	const uint32_t step = steps[gen_below(g, ARRAY_SIZE(steps))];
	const uint32_t lanes = gen_percent(g, 30) ? 16 : SOFT_LANES;

	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t i = 0; i < SOFT_LANES; i++) {
			v[ADDRESSES + 2 * k][i] = 1024 +
						  (step << k) * (i % lanes);
			v[ADDRESSES + 2 * k + 1][i] = 0;
			if (k == 3)
				v[ADDRESSES + 6][i] = gen_below(g, 2048) * 4;
		}
	if (gen_percent(g, 10))
		v[ADDRESSES + 6][gen_below(g, SOFT_LANES)] = gen_u32(g);
}

/* Small numbers; as bfloat16, too. */
static void random_matrices(struct isa_gen_state *g, uint32_t (*v)[SOFT_LANES])
{
	for (int r = FRAGMENTS; r < SUMS + 32; r++)
		for (int i = 0; i < SOFT_LANES; i++)
			v[r][i] = 0x3c003c00 + (gen_u32(g) & 0x81ff81ff);
}

/* As of scratch memory: a lane's dwords lie as far apart as there are lanes. */
static void scratch_buffer(struct isa_gen_state *g, uint32_t *s)
{
	s[0] = gen_below(g, 64) * 4;
	s[1] = (1 + gen_below(g, 3)) << 30;
	s[2] = gen_percent(g, 80) ? 1u << 20 : 0;
	s[3] = 0x814fac | gen_below(g, 4) << 21;
	s[3] |= (gen_percent(g, 80) ? 2 : gen_below(g, 4)) << 28;
}

/* Mostly raw and linear, of more or less than the addresses reach. */
static void random_buffer(struct isa_gen_state *g, uint32_t *s)
{
	static const uint32_t records[] = { 4096, 32768, 700, 0 };

	if (gen_percent(g, 40)) {
		scratch_buffer(g, s);
		return;
	}
	s[0] = gen_below(g, 64) * 4;
	s[1] = gen_percent(g, 90) ? 0 : gen_u32(g) & 0xffff0000;
	s[2] = records[gen_below(g, ARRAY_SIZE(records))];
	s[3] = gen_percent(g, 90) ? 3u << 28 : gen_u32(g);
}

static void random_state(struct isa_gen_state *g, struct machine *m, int size)
{
	struct soft_wave *w = &m->w;

	memset(w, 0, sizeof(*w));
	for (int h = 0; h < 2; h++)
		for (int r = 0; r < VGPRS; r++)
			random_plane(g, m->v[h][r]);
	for (int h = 0; h < 2; h++) {
		random_addresses(g, m->v[h]);
		random_matrices(g, m->v[h]);
	}
	for (size_t i = 0; i < sizeof(m->mem); i++)
		m->mem[i] = (uint8_t)(i * 167 >> 3);
	memset(m->lds, 0x3c, sizeof(m->lds));
	memset(m->scratch, 0x3d, sizeof(m->scratch));
	for (int i = 0; i < 128; i++)
		w->s[i] = gen_percent(g, 50) ? gen_below(g, 64) * 4 :
					       random_word(g);
	w->s[ISA_R_NULL] = 0;
	w->s[COUNTER] = 60;
	w->s[BASE] = gen_below(g, 64) * 4;
	w->s[BASE + 1] = 0;
	random_buffer(g, &w->s[BUFFER]);
	for (int h = 0; h < 2; h++)
		w->s[ISA_R_EXEC_LO + h] = gen_percent(g, 70) ? ~0u :
					  gen_percent(g, 90) ? gen_u32(g) :
							       0;
	w->mode = 0x3f0;
	if (gen_percent(g, 20))
		w->mode = 0x3c0; /* floats flush */
	else if (gen_percent(g, 20))
		w->mode = gen_u32(g) & 0x8003ff;
	w->wave_size = size;
	w->n_vgprs = gen_percent(g, 90) ? VGPRS : 192;
	w->pc = CODE_VA;
	m->group.lds_size_bytes = LDS_BYTES;
	m->group.n_waves = 1;
}

/* -------------------------------------------------------- random loops ---- */

static bool is_memory(const struct isa_inst *in)
{
	switch (in->fmt) {
	case ISA_FMT_GLOBAL:
	case ISA_FMT_FLAT:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_DS:
		return true;
	}
	return false;
}

/* Two runs have different times. */
static bool wanted(const struct isa_inst *in)
{
	if (in->op == ISA_s_memtime || in->op == ISA_s_memrealtime)
		return false;
	switch (in->fmt) {
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOP1:
	case ISA_FMT_SMEM:
		return true;
	}
	return is_memory(in) || gen_is_vop(in->fmt);
}

/* Few registers, so that instructions depend on each other. */
static void crowd(struct isa_gen_state *g, struct isa_inst *in)
{
	static const uint8_t vgpr[] = {
		ISA_F_VDST,  ISA_F_VSRC1, ISA_F_VSRC1Y, ISA_F_VDSTY,
		ISA_F_DATA0, ISA_F_DATA1,
	};
	static const uint8_t source[] = { ISA_F_SRC0, ISA_F_SRC1, ISA_F_SRC2,
					  ISA_F_SRC0Y };

	for (size_t i = 0; i < ARRAY_SIZE(vgpr); i++)
		in->f[vgpr[i]] %= FEW;
	for (size_t i = 0; i < ARRAY_SIZE(source); i++)
		if (in->f[source[i]] >= 256)
			in->f[source[i]] = 256 + in->f[source[i]] % FEW;
	if (!is_memory(in))
		return;
	in->f[ISA_F_ADDR] = ADDRESSES + 2 * gen_below(g, 4);
	in->f[ISA_F_OFFSET] &= 0xff;
	in->f[ISA_F_OFFSET1] &= 0xf;
	if (in->fmt == ISA_FMT_GLOBAL || in->fmt == ISA_FMT_SCRATCH)
		in->f[ISA_F_SADDR] = gen_percent(g, 50) ? BASE : ISA_R_NULL;
	if (in->fmt != ISA_FMT_MUBUF)
		return;
	in->f[ISA_F_SRSRC] = BUFFER / 4;
	in->f[ISA_F_VDATA] %= FEW;
	in->f[ISA_F_IDXEN] = gen_percent(g, 10);
	if (gen_percent(g, 80))
		in->f[ISA_F_SOFFSET] = ISA_R_NULL;
}

/* Of shared fragments and few sums; sometimes a sum replaces a fragment. */
static int random_product(struct isa_gen_state *g, int size, uint8_t *to)
{
	static const struct product {
		const char *name, *mods;
		int dwords;  /* of a fragment */
		bool halves; /* gfx12 has two sums in a register */
	} types[] = {
		{ "f32_16x16x16_f16", "", 8, false },
		{ "f32_16x16x16_bf16", "", 8, false },
		{ "f16_16x16x16_f16", "", 8, true },
		{ "bf16_16x16x16_bf16", "", 8, true },
		{ "i32_16x16x16_iu8", "", 4, false },
		{ "i32_16x16x16_iu8", "neg_lo:[1,0,0]", 4, false },
		{ "i32_16x16x16_iu8", "neg_lo:[1,1,0] clamp", 4, false },
		{ "i32_16x16x16_iu4", "", 2, false },
		{ "i32_16x16x16_iu4", "neg_lo:[0,1,0]", 2, false },
		/* The others have one generation only. */
		{ "f16_16x16x16_f16", "op_sel:[0,0,1]", 8, true },
		{ "f32_16x16x16_fp8_fp8", "", 4, false },
		{ "f32_16x16x16_fp8_bf8", "", 4, false },
		{ "f32_16x16x16_bf8_fp8", "neg_lo:[0,0,1]", 4, false },
	};
	enum { GFX11_ONLY = 9 };
	const bool gfx12 = g->gen == ISA_GFX12;
	struct isa_target t = { g->gen, size, .lax = true };
	const uint32_t k = gfx12 ? gen_below(g, ARRAY_SIZE(types) - 1) :
				   gen_below(g, GFX11_ONLY + 1);
	const struct product *type = &types[k + (gfx12 && k >= GFX11_ONLY)];
	int n = 8 * 32 / size, a = FRAGMENTS + 8 * (int)gen_below(g, 3);
	int b = FRAGMENTS + 8 * (int)gen_below(g, 3), m = type->dwords - 1;
	int c = SUMS + 8 * (int)gen_below(g, 2);
	int d = gen_percent(g, 80) ? c : FRAGMENTS + (int)gen_below(g, 16);
	struct isa_inst in;
	char text[120];

	if (gfx12) {
		n /= 1 + type->halves;
		m = (m + 1) * 16 / size - 1;
		m = m < 0 ? 0 : m;
	}
	snprintf(text, sizeof(text),
		 "v_wmma_%s v[%d:%d], v[%d:%d], v[%d:%d], v[%d:%d] %s",
		 type->name, d, d + n - 1, a, a + m, b, b + m, c, c + n - 1,
		 type->mods);
	if (isa_parse(&t, text, NULL, NULL, &in))
		BUG("%s: %s", text, isa_parse(&t, text, NULL, NULL, &in));
	return isa_encode(&in, to);
}

static int random_inst(struct isa_gen_state *g, int size, uint8_t *to)
{
	struct isa_target t = { g->gen, size, .lax = true };
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;

	if (g->gen >= ISA_GFX11 && gen_percent(g, 8))
		return random_product(g, size, to);
	for (;;) {
		if (g->gen >= ISA_GFX11 && size == 32 && gen_percent(g, 10))
			gen_vopd(g, code);
		else
			gen_inst(g, code);
		if (isa_decode(&t, code, sizeof(code), &in) || !wanted(&in) ||
		    (is_memory(&in) && gen_percent(g, 50)))
			continue;
		if (gen_percent(g, 90))
			crowd(g, &in);
		if (isa_encode(&in, code) &&
		    !isa_decode(&t, code, sizeof(code), &in))
			break;
	}
	memcpy(to, code, in.size_bytes);
	return in.size_bytes;
}

/* After n bytes of the body: 60 times all of it. */
static void close_loop(struct machine *m, uint32_t n)
{
	static const uint32_t count[] = {
		0x80e48164, /* s_sub_u32 s100, s100, 1 */
		0xbf078064, /* s_cmp_lg_u32 s100, 0 */
	};
	const bool gfx10 = m->gen < ISA_GFX11;
	uint32_t branch = gfx10 ? 0xbf850000 : 0xbfa20000; /* s_cbranch_scc1 */
	const uint32_t end = gfx10 ? 0xbf810000 : 0xbfb00000; /* s_endpgm */

	memcpy(m->code + n, count, sizeof(count));
	n += sizeof(count);
	branch |= (0 - (n / 4 + 1)) & 0xffff;
	memcpy(m->code + n, &branch, 4);
	memcpy(m->code + n + 4, &end, 4);
}

static void random_code(struct isa_gen_state *g, struct machine *m, int size)
{
	uint32_t n = 0, k = 1 + gen_below(g, BODY);

	memset(m->code, 0, sizeof(m->code));
	while (k--)
		n += (uint32_t)random_inst(g, size, m->code + n);
	close_loop(m, n);
}

/* What random loops find once in a long while. */
static const struct {
	enum isa_gen gen;
	const char *text; /* a line for each instruction */
} rare[] = {
	{ ISA_GFX11,
	  "v_ashrrev_i16_e64_dpp v4, v5, v126 row_shr:15 row_mask:0x6 "
	  "bank_mask:0xd bound_ctrl:1" }, /* v126: see rare_code() */
	{ ISA_GFX11, "v_cndmask_b32_e64_dpp v4, v5, v6, exec_lo row_shr:3 "
		     "row_mask:0xf bank_mask:0xf" },
	{ ISA_GFX11, "v_cmp_lt_u32_e64_dpp exec_lo, v5, v6 row_shr:3 "
		     "row_mask:0xf bank_mask:0xf" },
	{ ISA_GFX11, "ds_load_2addr_b32 v[40:41], v40 offset0:1 offset1:3" },
	{ ISA_GFX11, "ds_store_2addr_b32 v40, v1, v2 offset0:1 offset1:2" },
	{ ISA_GFX11, "global_load_b128 v[40:43], v40, s[96:97]" },
	{ ISA_GFX11, "v_wmma_i32_16x16x16_iu8 v[97:104], v[64:67], v[72:75], "
		     "v[96:103]" },
	{ ISA_GFX11, "global_load_b128 v[0:3], v44, s[96:97] offset:16" },
	{ ISA_GFX11, "global_load_u16 v2, v[40:41], off offset:6" },
	{ ISA_GFX11, "global_load_u16 v40, v40, s[96:97]" },
	/* By turns a line and none. */
	{ ISA_GFX11, "global_load_u16 v2, v40, s[96:97]\n"
		     "v_xor_b32_e32 v40, v40, v46" },
	{ ISA_GFX11, "global_load_d16_b16 v41, v[40:41], off" },
	{ ISA_GFX11, "global_load_d16_hi_b16 v2, v[40:41], off" },
	{ ISA_GFX11, "global_load_d16_hi_b16 v3, v40, s[96:97] offset:2" },
	{ ISA_GFX11, "buffer_load_b32 v2, off, s[88:91], s96 offset:8" },
	{ ISA_GFX10_3, "buffer_load_dword v2, off, s[88:91], s96 offset:8" },
	{ ISA_GFX10_3, "buffer_store_dword v2, off, s[88:91], s96 offset:12" },
	{ ISA_GFX10_3, "buffer_load_ushort v2, v40, s[88:91], 0 offen offset:3" },
	{ ISA_GFX10_3, "buffer_store_byte v2, v40, s[88:91], s96 offen" },
	{ ISA_GFX10_3, "buffer_store_dwordx2 v[2:3], off, s[88:91], s96" },
	{ ISA_GFX10_3, "v_dot4_i32_i8 v4, v5, v6, v7" },
	{ ISA_GFX10_3, "v_dot8_i32_i4 v4, v5, v6, v7" },
	{ ISA_GFX10_3, "v_dot4c_i32_i8 v4, v5, v6" },
	{ ISA_GFX10_3, "scratch_load_dwordx3 v[0:2], v40, off" },
	{ ISA_GFX10_3, "scratch_load_dwordx4 v[38:41], v40, off offset:4" },
	{ ISA_GFX10_3, "scratch_store_dwordx4 off, v[0:3], s96 offset:4" },
	{ ISA_GFX10_3, "scratch_load_short_d16_hi v2, off, s96 offset:3" },
	{ ISA_GFX12, "s_add_co_u32 s4, s4, s6" },
	{ ISA_GFX12, "s_sub_co_i32 s4, s4, s6" },
	{ ISA_GFX12, "s_add_co_ci_u32 s4, s4, s6" },
	{ ISA_GFX12, "s_sub_co_ci_u32 s4, s4, s6" },
	{ ISA_GFX12, "s_add_nc_u64 s[4:5], s[4:5], s[6:7]" },
	{ ISA_GFX12, "s_sub_nc_u64 s[4:5], s[4:5], s[6:7]" },
};

/* DPP with a scalar second source can be decoded, but not be written. */
static void rare_code(struct machine *m, const char *text)
{
	struct isa_target t = { m->gen, 32, .lax = true };
	char all[256], *rest = all, *line;
	struct isa_inst in;
	uint32_t n = 0;

	snprintf(all, sizeof(all), "%s", text);
	memset(m->code, 0, sizeof(m->code));
	while ((line = strsep(&rest, "\n"))) {
		if (isa_parse(&t, line, NULL, NULL, &in))
			BUG("%s: %s", line,
			    isa_parse(&t, line, NULL, NULL, &in));
		if (in.f[ISA_F_SRC1] == 256 + ISA_R_EXEC_LO)
			in.f[ISA_F_SRC1] = ISA_R_EXEC_LO;
		n += (uint32_t)isa_encode(&in, m->code + n);
	}
	close_loop(m, n);
}

/* ------------------------------------------------------------ compare ---- */

static bool same_fault(const struct soft_wave *a, const struct soft_wave *b)
{
	return a->fault.kind == b->fault.kind && a->fault.pc == b->fault.pc &&
	       a->fault.va == b->fault.va && a->fault.lane == b->fault.lane &&
	       !strcmp(a->fault.text, b->fault.text);
}

static const char *differ(const struct machine *a, const struct machine *b)
{
	if (a->w.state != b->w.state || !same_fault(&a->w, &b->w))
		return "the state or fault";
	if (a->w.pc != b->w.pc || a->w.n_insts != b->w.n_insts)
		return "PC or the number of instructions";
	if (memcmp(a->w.s, b->w.s, sizeof(a->w.s)) || a->w.scc != b->w.scc)
		return "a scalar register";
	if (a->w.mode != b->w.mode || a->w.trapsts != b->w.trapsts)
		return "MODE or TRAPSTS";
	if (memcmp(a->v, b->v, sizeof(a->v)))
		return "a vector register";
	if (memcmp(a->mem, b->mem, sizeof(a->mem)))
		return "memory";
	if (memcmp(a->lds, b->lds, sizeof(a->lds)))
		return "LDS";
	if (memcmp(a->scratch, b->scratch, sizeof(a->scratch)))
		return "scratch";
	return NULL;
}

static void run_wave(struct machine *m, uint64_t slice, enum soft_form most)
{
	connect(m);
	m->group.code = soft_code_cache_new();
	soft_code_cache_limit(m->group.code, most);
	while (m->w.state == SOFT_READY && m->w.n_insts < BUDGET)
		soft_wave_run(&m->w, slice < BUDGET - m->w.n_insts ?
					     slice : BUDGET - m->w.n_insts);
	soft_code_cache_free(m->group.code);
}

static void print_code(const struct machine *m, int size)
{
	struct isa_target t = { m->gen, size, .lax = true };
	struct isa_inst in;
	char text[ISA_TEXT_MAX];

	for (size_t at = 0; at < sizeof(m->code) - ISA_MAX_SIZE_BYTES;
	     at += in.size_bytes) {
		if (isa_decode(&t, m->code + at, ISA_MAX_SIZE_BYTES, &in))
			break;
		isa_print(&t, &in, text, sizeof(text));
		diag("%s", text);
		if (in.op == ISA_s_endpgm)
			break;
	}
}

static void print_vector(const struct machine *a, const struct machine *b)
{
	for (int h = 0; h < 2; h++)
		for (int r = 0; r < VGPRS; r++)
			for (int i = 0; i < SOFT_LANES; i++)
				if (a->v[h][r][i] != b->v[h][r][i]) {
					diag("v%d, lane %d: fast %08x, slow "
					     "%08x", r, h * 32 + i,
					     a->v[h][r][i], b->v[h][r][i]);
					return;
				}
}

/* `text`: the loop's body, NULL: a random one. */
static bool one(struct isa_gen_state *g, struct machine *fast,
		struct machine *slow, int size, const char *text, bool *ended)
{
	const char *what;

	fast->gen = g->gen;
	random_state(g, fast, size);
	if (text)
		rare_code(fast, text);
	else
		random_code(g, fast, size);
	memcpy(slow, fast, sizeof(*slow));
	run_wave(fast, 97 + gen_below(g, 200),
		 gen_percent(g, 50) ? SOFT_HOST_CODE : SOFT_MICROOPS);
	run_wave(slow, 1, SOFT_HANDLERS);
	what = differ(fast, slow);
	*ended = fast->w.state != SOFT_FAULTED;
	if (!what)
		return true;
	diag("wave%d, MODE %x: %s differs; fault \"%s\", \"%s\"", size,
	     fast->w.mode, what, fast->w.fault.text, slow->w.fault.text);
	diag("insts %d %d, pc %x %x", (int)fast->w.n_insts,
	     (int)slow->w.n_insts, (int)fast->w.pc, (int)slow->w.pc);
	print_code(fast, size);
	print_vector(fast, slow);
	return false;
}

/* `n` random loops of a generation's code. */
static void test_random(const char *name, struct isa_gen_state *g,
			struct machine *m, int n)
{
	int good = 0, ran = 0;

	for (int i = 0; i < n && good >= i - 4; i++) {
		bool ended;

		good += one(g, &m[0], &m[1], i & 1 ? 64 : 32, NULL, &ended);
		ran += ended;
	}
	is_u64(good, n, "%s: random loops do the same in all forms", name);
	ok(ran > n / 3, "%s: %d of %d ran without a fault", name, ran, n);
}

int main(void)
{
	static const struct {
		const char *name;
		enum isa_gen gen;
		int part; /* of the loops */
	} other[] = { { "gfx1030", ISA_GFX10_3, 4 },
		      { "gfx1151", ISA_GFX11_5, 8 },
		      { "gfx1201", ISA_GFX12, 2 } };
	const int n = getenv("T0_SLOW") ? 40000 : 3000;
	const char *seed = getenv("T0_SEED");
	struct isa_gen_state g = { .seed = seed ? strtoull(seed, NULL, 0) :
						  20261121,
				   .gen = ISA_GFX11 };
	struct machine *m = aligned_alloc(64, 2 * sizeof(*m));

	memset(m, 0, 2 * sizeof(*m));
	diag("seed %llu", (unsigned long long)g.seed);
	test_random("gfx1100", &g, m, n);
	for (size_t i = 0; i < ARRAY_SIZE(rare); i++) {
		bool ended, same = true;

		g.gen = rare[i].gen;
		for (int k = 0; k < 60; k++)
			same &= one(&g, &m[0], &m[1], 32, rare[i].text, &ended);
		ok(same, "%.*s", (int)strcspn(rare[i].text, "\n"),
		   rare[i].text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		g.gen = other[i].gen;
		test_random(other[i].name, &g, m, n / other[i].part);
	}
	free(m);
	return plan_done();
}
