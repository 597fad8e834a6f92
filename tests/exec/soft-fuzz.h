/*
 * soft-fuzz - any bytes as a program for the emulator: what decodes runs on a
 * workgroup of one or two waves, in small memory, three times: as code of the
 * host, as microops, and one instruction at a time; registers, memory, LDS,
 * scratch, faults and counters must agree.
 *
 *	soft_fuzz_run(&z, data, size_bytes);	// false after diagnostics
 *
 * The first bytes of an input choose wave size, number of waves, MODE and the
 * seed of the registers; the rest is code.  It is tamed, so that much of it
 * runs: branches go to instructions of the program, memory instructions use
 * registers that hold addresses at first, and at most BUDGET instructions run.
 */
#ifndef T0_TESTS_SOFT_FUZZ_H
#define T0_TESTS_SOFT_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/text/text.h"
#include "kfd/soft/exec/exec.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum {
	FUZZ_HEAD = 12,	   /* flags, waves, MODE (4), seed (6) */
	FUZZ_CODE = 1024,  /* bytes at most */
	FUZZ_INSTS = 200,  /* at most */
	FUZZ_BUDGET = 600, /* executed by a wave, at most */
	FUZZ_WAVES = 2,
	FUZZ_VGPRS = 96,
	FUZZ_MEM = 16384,  /* from address 0 on */
	FUZZ_CONST = 4096, /* behind it, read only */
	FUZZ_LDS = 2048,
	FUZZ_LANE = 64, /* bytes of scratch */
	FUZZ_ADDRESSES = 64, /* VGPR pairs that hold addresses */
	FUZZ_BASE = 64,	   /* SGPR pairs that do, and */
	FUZZ_BUFFER = 80,  /* descriptors of buffers */
	FUZZ_SMALL = 96,   /* a small number */
	FUZZ_FORMS = SOFT_HOST_CODE + 1,
};

#define FUZZ_CODE_VA	UINT64_C(0x7f0000)
#define FUZZ_SHARED_VA	UINT64_C(0x1000000000000)
#define FUZZ_PRIVATE_VA UINT64_C(0x2000000000000)

struct soft_fuzz {
	struct soft_env env;
	struct soft_group group;
	struct soft_wave w[FUZZ_WAVES];
	_Alignas(64) uint32_t v[FUZZ_WAVES][2][FUZZ_VGPRS][SOFT_LANES];
	uint8_t mem[FUZZ_MEM + FUZZ_CONST], lds[FUZZ_LDS];
	uint8_t scratch[FUZZ_WAVES][64 * FUZZ_LANE];
	uint8_t code[FUZZ_CODE + ISA_MAX_SIZE_BYTES];
	int code_bytes;
};

static inline bool fuzz_find(void *ctx, uint64_t va, struct soft_range *out)
{
	struct soft_fuzz *z = ctx;

	if (va < FUZZ_MEM)
		*out = (struct soft_range){ 0, FUZZ_MEM, z->mem,
					    SOFT_MEM_READ | SOFT_MEM_WRITE };
	else if (va < FUZZ_MEM + FUZZ_CONST)
		*out = (struct soft_range){ FUZZ_MEM, FUZZ_CONST,
					    z->mem + FUZZ_MEM, SOFT_MEM_READ };
	else if (va >= FUZZ_CODE_VA &&
		 va < FUZZ_CODE_VA + (uint64_t)z->code_bytes)
		*out = (struct soft_range){ FUZZ_CODE_VA,
					    (uint64_t)z->code_bytes, z->code,
					    SOFT_MEM_READ | SOFT_MEM_EXEC };
	else
		return false;
	return true;
}

static inline uint64_t fuzz_time(void *ctx)
{
	(void)ctx;
	return 0;
}

/* Pointers between its parts, which differ from copy to copy. */
static inline void fuzz_connect(struct soft_fuzz *z)
{
	z->env = (struct soft_env){
		.gen = ISA_GFX11, .ctx = z, .find = fuzz_find, .realtime = fuzz_time,
		.shared_base = FUZZ_SHARED_VA,
		.shared_limit = FUZZ_SHARED_VA + UINT32_MAX,
		.private_base = FUZZ_PRIVATE_VA,
		.private_limit = FUZZ_PRIVATE_VA + UINT32_MAX,
	};
	z->group.env = &z->env;
	z->group.wave = z->w;
	z->group.lds = z->lds;
	for (int i = 0; i < FUZZ_WAVES; i++) {
		z->w[i].group = &z->group;
		z->w[i].v[0] = z->v[i][0];
		z->w[i].v[1] = z->v[i][1];
		z->w[i].scratch = z->scratch[i];
	}
}

/* --------------------------------------------------------------- state ---- */

static inline uint32_t fuzz_word(struct isa_gen_state *g)
{
	static const uint32_t special[] = {
		0,	    1,		0x80000000, 0x7f800000, 0xffc00000,
		0x7f800001, 0x3f800000, 0x00800000, 0x007fffff, 0xffffffff,
		0x7c007c00, 0x7e013c00, 0x3ff00000, 0xfff00000, 0x03ff8001,
	};

	switch (gen_below(g, 4)) {
	case 0:
		return special[gen_below(g, ARRAY_SIZE(special))];
	case 1:
		return gen_below(g, FUZZ_MEM / 4) * 4;
	case 2:
		return (gen_u32(g) & 0x807fffff) +
		       (120 + gen_below(g, 16)) * 0x800000;
	}
	return gen_u32(g);
}

/* Pairs of registers from FUZZ_ADDRESSES on, each of another kind of memory. */
static inline void fuzz_addresses(struct isa_gen_state *g,
				  uint32_t (*v)[SOFT_LANES])
{
	for (uint32_t k = 0; k < 8; k++) {
		uint32_t *low = v[FUZZ_ADDRESSES + 2 * k];
		uint32_t *high = v[FUZZ_ADDRESSES + 2 * k + 1];
		uint32_t at = gen_below(g, FUZZ_LDS / 32) * 8;
		bool odd = gen_percent(g, 20);
		const uint32_t step = 4u << k << gen_percent(g, 30);

		for (uint32_t i = 0; i < SOFT_LANES; i++) {
			low[i] = k < 3 ? at + step * i :
				 k < 7 ? gen_below(g, FUZZ_LDS / 16) * 8 :
				 odd   ? gen_below(g, FUZZ_MEM + FUZZ_CONST) :
					 gen_below(g, FUZZ_MEM / 8) * 8;
			high[i] = k == 3 ? FUZZ_SHARED_VA >> 32 :
				  k == 4 ? FUZZ_PRIVATE_VA >> 32 :
					   0;
			if (k == 4)
				low[i] %= FUZZ_LANE / 2;
		}
	}
}

static inline void fuzz_scalars(struct isa_gen_state *g, struct soft_wave *w)
{
	for (int i = 0; i < 128; i++)
		w->s[i] = fuzz_word(g);
	w->s[ISA_R_NULL] = 0;
	for (int i = FUZZ_BASE; i < FUZZ_BUFFER; i += 2) {
		w->s[i] = gen_below(g, FUZZ_MEM / 2) & ~3u;
		w->s[i + 1] = 0;
	}
	for (int i = FUZZ_BUFFER; i < FUZZ_BUFFER + 16; i += 4) {
		w->s[i] = gen_below(g, 256) * 4;
		w->s[i + 1] = gen_percent(g, 50) ? gen_below(g, 17) << 16 : 0;
		w->s[i + 2] = gen_below(g, FUZZ_MEM);
		w->s[i + 3] = gen_u32(g) & 0xbfffffff;
		if (gen_percent(g, 60)) /* raw, plain order of components */
			w->s[i + 3] = 0x31016fac;
	}
	w->s[FUZZ_SMALL] = gen_below(g, 5) * 8;
	for (int h = 0; h < 2; h++)
		w->s[ISA_R_EXEC_LO + h] = gen_percent(g, 70) ? ~0u : gen_u32(g);
	w->s[ISA_R_M0] = gen_percent(g, 80) ? gen_below(g, 64) : gen_u32(g);
	w->scc = gen_u32(g) & 1;
}

static inline void fuzz_state(struct soft_fuzz *z, const uint8_t *head)
{
	struct isa_gen_state g = { .seed = 1, .gen = ISA_GFX11 };
	uint32_t mode;

	memcpy(&g.seed, head + 6, 6);
	g.seed |= UINT64_C(1) << 60;
	memcpy(&mode, head + 2, 4);
	memset(z->w, 0, sizeof(z->w));
	z->group = (struct soft_group){ .lds_size_bytes = FUZZ_LDS,
					.n_waves = 1 + (head[1] & 1) };
	for (int i = 0; i < z->group.n_waves; i++) {
		struct soft_wave *w = &z->w[i];

		for (int h = 0; h < 2; h++) {
			for (int r = 0; r < FUZZ_VGPRS; r++)
				for (int l = 0; l < SOFT_LANES; l++)
					z->v[i][h][r][l] = fuzz_word(&g);
			fuzz_addresses(&g, z->v[i][h]);
		}
		fuzz_scalars(&g, w);
		w->mode = head[0] & 2 ? mode & 0x8003ff : 0x3f0;
		w->wave_size = head[0] & 1 ? 64 : 32;
		if (w->wave_size == 32)
			w->s[ISA_R_EXEC_HI] = 0;
		w->n_vgprs = FUZZ_VGPRS;
		w->index = i;
		w->pc = FUZZ_CODE_VA;
		w->scratch_lane_bytes = FUZZ_LANE;
		w->scratch_va = UINT64_C(0x7f1234500000);
	}
	for (size_t i = 0; i < sizeof(z->mem); i++)
		z->mem[i] = (uint8_t)(i * 167 >> 3);
	memset(z->lds, 0x3c, sizeof(z->lds));
	memset(z->scratch, 0x5a, sizeof(z->scratch));
}

/* ---------------------------------------------------------------- code ---- */

/* Are all its operands single halves?  Bit 7 of a register then means one. */
static inline bool fuzz_halves(const struct isa_inst *in)
{
	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_type_info *t = isa_type_info(
			(enum isa_type)in->opnd[i].type);

		if (t->bits != 16 || t->count != 1)
			return false;
	}
	return in->fmt == ISA_FMT_VOP1 || in->fmt == ISA_FMT_VOP2;
}

/* Vector registers that exist. */
static inline void fuzz_registers(struct isa_inst *in)
{
	static const uint8_t vgpr[] = {
		ISA_F_VDST,  ISA_F_VSRC1, ISA_F_VSRC1Y, ISA_F_VDSTY,
		ISA_F_DATA0, ISA_F_DATA1, ISA_F_VDATA,
	};
	static const uint8_t source[] = { ISA_F_SRC0, ISA_F_SRC1, ISA_F_SRC2,
					  ISA_F_SRC0Y };
	uint32_t mask = fuzz_halves(in) ? 0x9f : 0x1f;

	for (size_t i = 0; i < ARRAY_SIZE(vgpr); i++)
		if (vgpr[i] != ISA_F_VDST || !in->n_opnd ||
		    in->opnd[0].kind == ISA_K_VGPR)
			in->f[vgpr[i]] &= mask;
	for (size_t i = 0; i < ARRAY_SIZE(source); i++)
		if (in->f[source[i]] >= 256)
			in->f[source[i]] = 256 + (in->f[source[i]] & mask);
}

/* Addresses that were set up, near what they point to. */
static inline void fuzz_memory(struct isa_inst *in)
{
	uint32_t k = in->f[ISA_F_ADDR] & 7;

	switch (in->fmt) {
	case ISA_FMT_SMEM:
		in->f[ISA_F_SBASE] =
			isa_op_info((enum isa_op)in->op)->opnd[1].type ==
					ISA_T_B128 ?
				FUZZ_BUFFER / 2 + (in->f[ISA_F_SBASE] & 3) * 2 :
				FUZZ_BASE / 2 + (in->f[ISA_F_SBASE] & 7);
		in->f[ISA_F_OFFSET] &= 0xffc;
		in->f[ISA_F_SOFFSET] = ISA_R_NULL;
		break;
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_DS:
		if (in->fmt == ISA_FMT_GLOBAL && (k == 3 || k == 4))
			k = 5;
		if (in->fmt == ISA_FMT_SCRATCH)
			k = 4;
		in->f[ISA_F_ADDR] = FUZZ_ADDRESSES + k * 2;
		if (in->f[ISA_F_SADDR] != ISA_R_NULL)
			in->f[ISA_F_SADDR] =
				in->fmt == ISA_FMT_SCRATCH ?
					FUZZ_SMALL :
					FUZZ_BASE +
						(in->f[ISA_F_SADDR] & 7) * 2;
		in->f[ISA_F_OFFSET] &= in->fmt == ISA_FMT_SCRATCH ? 0x18 : 0xf8;
		in->f[ISA_F_OFFSET0] &= 0xf8;
		in->f[ISA_F_OFFSET1] &= 3;
		in->f[ISA_F_GDS] = 0;
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		in->f[ISA_F_SRSRC] = FUZZ_BUFFER / 4 + (in->f[ISA_F_SRSRC] & 3);
		in->f[ISA_F_ADDR] = FUZZ_ADDRESSES + k * 2;
		in->f[ISA_F_SOFFSET] = 128 + (in->f[ISA_F_SOFFSET] & 28);
		in->f[ISA_F_OFFSET] &= 0xfc;
		in->f[ISA_F_TFE] = 0;
		break;
	}
}

static inline void fuzz_tame(struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info((enum isa_op)in->op);

	fuzz_registers(in);
	fuzz_memory(in);
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == ISA_SLOT_HWREG &&
		    !(in->f[ISA_F_SIMM16] & 0x3c)) /* mostly MODE */
			in->f[ISA_F_SIMM16] = (in->f[ISA_F_SIMM16] & ~63u) | 1;
}

static inline bool fuzz_branches(const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info((enum isa_op)in->op);

	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == ISA_SLOT_REL)
			return true;
	return false;
}

/* What decodes of the bytes, tamed, and s_endpgm. */
static inline void fuzz_code(struct soft_fuzz *z, int wave, const uint8_t *data,
			     size_t size)
{
	const struct isa_target t = { ISA_GFX11, wave, .lax = true };
	const uint32_t endpgm = 0xbfb00000;
	uint16_t start[FUZZ_INSTS + 1];
	struct isa_inst in;
	int n = 0, at = 0;

	memset(z->code, 0, sizeof(z->code));
	for (size_t i = 0; i + 4 <= size && n < FUZZ_INSTS;) {
		uint8_t code[ISA_MAX_SIZE_BYTES] = { 0 };

		memcpy(code, data + i,
		       size - i < sizeof(code) ? size - i : sizeof(code));
		if (isa_decode(&t, code, sizeof(code), &in)) {
			i += 4;
			continue;
		}
		i += in.size_bytes;
		fuzz_tame(&in);
		if (!isa_encode(&in, code) ||
		    isa_decode(&t, code, sizeof(code), &in) ||
		    at + in.size_bytes > FUZZ_CODE - 4)
			continue;
		memcpy(z->code + at, code, in.size_bytes);
		start[n++] = (uint16_t)at;
		at += in.size_bytes;
	}
	memcpy(z->code + at, &endpgm, 4);
	start[n] = (uint16_t)at;
	z->code_bytes = at + 4;
	for (int i = 0; i < n; i++) {
		uint32_t word;
		int to;

		isa_decode(&t, z->code + start[i], ISA_MAX_SIZE_BYTES, &in);
		if (!fuzz_branches(&in))
			continue;
		memcpy(&word, z->code + start[i], 4);
		to = start[(word & 0xffff) % (unsigned)(n + 1)];
		word = (word & 0xffff0000) |
		       ((uint32_t)((to - start[i] - 4) / 4) & 0xffff);
		memcpy(z->code + start[i], &word, 4);
	}
}

/* ----------------------------------------------------------------- run ---- */

/* Waves take turns from barrier to barrier, so that both runs interleave so. */
static inline void fuzz_go(struct soft_fuzz *z, uint64_t slice,
			   enum soft_form most)
{
	bool again = true;

	fuzz_connect(z);
	z->group.code = soft_code_cache_new();
	soft_code_cache_limit(z->group.code, most);
	while (again) {
		again = false;
		for (int i = 0; i < z->group.n_waves; i++) {
			struct soft_wave *w = &z->w[i];

			while (w->state == SOFT_READY &&
			       w->n_insts < FUZZ_BUDGET) {
				uint64_t left = FUZZ_BUDGET - w->n_insts;

				soft_wave_run(w, slice < left ? slice : left);
			}
		}
		for (int i = 0; i < z->group.n_waves; i++)
			if (z->w[i].state == SOFT_AT_BARRIER) {
				z->w[i].state = SOFT_READY;
				again = true;
			}
	}
	soft_code_cache_free(z->group.code);
}

static inline bool fuzz_same_fault(const struct soft_wave *a,
				   const struct soft_wave *b)
{
	return a->fault.kind == b->fault.kind && a->fault.pc == b->fault.pc &&
	       a->fault.va == b->fault.va && a->fault.lane == b->fault.lane &&
	       !strcmp(a->fault.text, b->fault.text);
}

static inline const char *fuzz_differ(const struct soft_fuzz *a,
				      const struct soft_fuzz *b)
{
	for (int i = 0; i < a->group.n_waves; i++) {
		const struct soft_wave *x = &a->w[i], *y = &b->w[i];

		if (x->state != y->state || !fuzz_same_fault(x, y))
			return "the state or fault";
		if (x->pc != y->pc || x->n_insts != y->n_insts)
			return "PC or the number of instructions";
		if (memcmp(x->s, y->s, sizeof(x->s)) || x->scc != y->scc)
			return "a scalar register";
		if (x->mode != y->mode || x->trapsts != y->trapsts)
			return "MODE or TRAPSTS";
	}
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

static inline void fuzz_print(const struct soft_fuzz *z)
{
	const struct isa_target t = { ISA_GFX11, z->w[0].wave_size,
				      .lax = true };
	char text[ISA_TEXT_MAX];
	struct isa_inst in;

	for (int at = 0; at < z->code_bytes; at += in.size_bytes) {
		if (isa_decode(&t, z->code + at, ISA_MAX_SIZE_BYTES, &in))
			break;
		isa_print(&t, &in, text, sizeof(text));
		diag("%4x: %s", at, text);
	}
}

static inline void fuzz_explain(const struct soft_fuzz *a,
				const struct soft_fuzz *b, const char *what)
{
	diag("%s differs (fast, slow):", what);
	for (int i = 0; i < a->group.n_waves; i++) {
		const struct soft_wave *x = &a->w[i], *y = &b->w[i];

		diag("wave %d of %d lanes, MODE 0x%x: pc 0x%llx 0x%llx, %llu "
		     "%llu instructions, fault \"%s\" \"%s\"", i, x->wave_size,
		     x->mode, (unsigned long long)x->pc,
		     (unsigned long long)y->pc, (unsigned long long)x->n_insts,
		     (unsigned long long)y->n_insts, x->fault.text,
		     y->fault.text);
		for (int r = 0; r < 128; r++)
			if (x->s[r] != y->s[r])
				diag("s%d: 0x%08x 0x%08x", r, x->s[r], y->s[r]);
		for (int k = 0; k < 64 * FUZZ_VGPRS; k++) {
			int h = k / 32 % 2, r = k / 64, l = k % 32;

			if (a->v[i][h][r][l] == b->v[i][h][r][l])
				continue;
			diag("v%d lane %d: 0x%08x 0x%08x", r, 32 * h + l,
			     a->v[i][h][r][l], b->v[i][h][r][l]);
			break;
		}
	}
	fuzz_print(a);
}

/* z: one of each, [enum soft_form]. */
static inline bool soft_fuzz_run(struct soft_fuzz *z, const uint8_t *data,
				 size_t size)
{
	uint8_t head[FUZZ_HEAD] = { 0 };
	const char *what;

	memcpy(head, data, size < FUZZ_HEAD ? size : FUZZ_HEAD);
	size -= size < FUZZ_HEAD ? size : FUZZ_HEAD;
	fuzz_state(&z[0], head);
	fuzz_code(&z[0], z[0].w[0].wave_size, data + FUZZ_HEAD, size);
	for (int i = 1; i < FUZZ_FORMS; i++)
		memcpy(&z[i], &z[0], sizeof(*z));
	fuzz_go(&z[SOFT_HANDLERS], 1, SOFT_HANDLERS);
	for (int i = SOFT_MICROOPS; i < FUZZ_FORMS; i++) {
		fuzz_go(&z[i], 100 + head[0], (enum soft_form)i);
		what = fuzz_differ(&z[i], &z[SOFT_HANDLERS]);
		if (!what)
			continue;
		fuzz_explain(&z[i], &z[SOFT_HANDLERS], what);
		diag("by %s", i == SOFT_MICROOPS ? "microops" : "host code");
		return false;
	}
	return true;
}

static inline struct soft_fuzz *soft_fuzz_new(void)
{
	struct soft_fuzz *z = aligned_alloc(64, FUZZ_FORMS * sizeof(*z));

	memset(z, 0, FUZZ_FORMS * sizeof(*z));
	return z;
}

#endif
