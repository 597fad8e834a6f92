/*
 * kfd/soft/exec/gfx12/transpose.c - global loads of gfx12 that are more than
 * one value a lane: matrices that are transposed on their way, and blocks.
 *
 * RDNA4 ISA 11.7 and 10.4.  A wave holds 16 x 16 elements, of 16 bits (tr_b128)
 * or 8 (tr_b64): lane l has elements of row l % 16, those from 8 * (l / 16) on,
 * and in a wave64, of half as many a lane, from 8 * (l / 16 % 2) + 4 * (l / 32)
 * on, as rows of a result are.  The transposed one is written so.
 */
#include "kfd/soft/exec/gfx12/matrix.h"
#include "kfd/soft/exec/mem.h"

enum { BLOCK_DWORDS = 32 };

static int first_of(int lane)
{
	return 8 * (lane / 16 % 2) + 4 * (lane / 32);
}

static void run_load_tr(struct soft_wave *w, const struct soft_uop *u)
{
	const int bytes = u->in.op == ISA_global_load_tr_b128 ? 2 : 1;
	const int n = 256 / w->wave_size; /* elements of a lane */
	uint16_t tile[WMMA_N][WMMA_N] = { 0 };

	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			uint8_t value[16];
			struct soft_place p;

			soft_find_place(w, u, h, lane, &p);
			if (!soft_load(w, p.at, value, (uint32_t)(n * bytes),
				       p.lane))
				return;
			for (int e = 0; e < n; e++)
				memcpy(&tile[p.lane % 16][first_of(p.lane) + e],
				       &value[e * bytes], (size_t)bytes);
		}
	}
	for (int h = 0; h < soft_halves(w); h++) {
		FOR_LANES(lane, soft_exec(w, h))
		{
			const int l = h * SOFT_LANES + (int)lane;
			uint8_t value[16];

			for (int e = 0; e < n; e++)
				memcpy(&value[e * bytes],
				       &tile[first_of(l) + e][l % 16],
				       (size_t)bytes);
			for (int i = 0; i < n * bytes / 4; i++)
				memcpy(&w->v[h][u->in.f[ISA_F_VDST] +
						(unsigned)i][lane],
				       &value[4 * i], 4);
		}
	}
}

/* Registers and dwords whose bits are set in M0. */
static void run_block(struct soft_wave *w, const struct soft_uop *u)
{
	const bool store = isa_op_info(u->in.op)->flags & ISA_STORE;
	const uint32_t reg = u->in.f[store ? ISA_F_DATA0 : ISA_F_VDST];
	const struct soft_access one = { .bytes = 4 };
	struct soft_place p;

	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
	for (uint32_t i = 0; i < BLOCK_DWORDS; i++) {
		if (!(w->s[ISA_R_M0] >> i & 1))
			continue;
		soft_find_place(w, u, h, lane, &p);
		p.at += 4 * i;
		if (!soft_move_lane(w, &p, &one, &w->v[h][reg + i][lane],
				    store))
			return;
	}
}

soft_handler *soft_gfx12_vmem_handler(const struct isa_inst *in,
				      const void **op)
{
	static const struct soft_access block = { .bytes = 4 * BLOCK_DWORDS };
	static const struct soft_access tr16 = { .bytes = 16 },
					tr8 = { .bytes = 8 };

	switch (in->op) {
	case ISA_global_load_tr_b128:
		*op = &tr16;
		return run_load_tr;
	case ISA_global_load_tr_b64:
		*op = &tr8;
		return run_load_tr;
	case ISA_global_load_block:
	case ISA_global_store_block:
	case ISA_scratch_load_block:
	case ISA_scratch_store_block:
		*op = &block;
		return run_block;
	}
	return NULL;
}
