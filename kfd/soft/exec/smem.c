/*
 * kfd/soft/exec/smem.c - scalar memory.
 *
 * Loads into SGPRs, and the cache invalidations, which have nothing to
 * invalidate.  RDNA3 ISA 8.
 */
#include <string.h>

#include "kfd/soft/exec/mem.h"

struct row {
	uint8_t dwords;
	uint8_t bytes; /* of what is less than a dword */
	bool is_signed;
};

uint64_t soft_scalar_offset(const struct soft_wave *w,
			    const struct soft_uop *u)
{
	int32_t imm = (int32_t)u->in.f[ISA_F_OFFSET];
	uint32_t reg = u->in.f[ISA_F_SOFFSET];
	uint32_t soff = reg == ISA_R_NULL ? 0 : w->s[reg];

	return (uint64_t)(int64_t)(imm & ~3) + (soff & ~3u);
}

void soft_put_sgprs(struct soft_wave *w, const struct soft_uop *u,
		    const uint32_t *value, int dwords)
{
	int reg = u->in.opnd[0].reg;

	if (!soft_is_writable(w, reg))
		return;
	memcpy(&w->s[reg], value, (size_t)dwords * 4);
}

static void run_load(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	int base = (int)u->in.f[ISA_F_SBASE] * 2;
	uint64_t va = (w->s[base] & ~3u) | (uint64_t)w->s[base + 1] << 32;
	uint32_t value[16];

	va += soft_scalar_offset(w, u);
	if (soft_load(w, va, value, r->dwords * 4u, -1))
		soft_put_sgprs(w, u, value, r->dwords);
}

/*
 * Bytes and words (gfx12): all bits of the address count, but that words are
 * aligned.
 */
static uint64_t part_offset(struct soft_wave *w, const struct soft_uop *u)
{
	const uint32_t reg = u->in.f[ISA_F_SOFFSET];

	return (uint64_t)(int64_t)(int32_t)u->in.f[ISA_F_OFFSET] +
	       (reg == ISA_R_NULL ? 0 : w->s[reg]);
}

static void put_part(struct soft_wave *w, const struct soft_uop *u, uint32_t v)
{
	const struct row *r = u->op;
	const struct soft_access a = { .bytes = r->bytes,
				       .is_signed = r->is_signed };

	v = soft_extend(&a, v);
	soft_put_sgprs(w, u, &v, 1);
}

static void run_load_part(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	const int base = (int)u->in.f[ISA_F_SBASE] * 2;
	const uint64_t va = (w->s[base] | (uint64_t)w->s[base + 1] << 32) +
			    part_offset(w, u);
	uint32_t value = 0;

	if (soft_load(w, va & ~(uint64_t)(r->bytes - 1), &value, r->bytes, -1))
		put_part(w, u, value);
}

/*
 * Only base, stride and num_records of the descriptor count: every dword that
 * is not inside reads 0.
 */
static void run_buffer_load(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	const uint32_t *desc = &w->s[u->in.f[ISA_F_SBASE] * 2];
	uint64_t base = soft_canonical((desc[0] & ~3u) |
				       (uint64_t)(desc[1] & 0xffff) << 32);
	uint64_t stride = desc[1] >> 16 & 0x3fff;
	uint64_t size = desc[2] * (stride ? stride : 1);
	uint64_t at = soft_scalar_offset(w, u);
	uint32_t value[16] = { 0 };

	for (int i = 0; i < r->dwords; i++, at += 4)
		if (at < size && size - at >= 4 &&
		    !soft_load(w, base + at, &value[i], 4, -1))
			return;
	soft_put_sgprs(w, u, value, r->dwords);
}

/* gfx10's clocks: where nobody models a pipeline, one cycle per instruction. */
static void run_memtime(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_now *now = w->group->env->now;

	soft_write_scalar(w, &u->in.opnd[0],
			  now ? now->cycle : w->start_clock + w->n_insts);
}

static void run_memrealtime(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_env *env = w->group->env;

	soft_write_scalar(w, &u->in.opnd[0],
			  env->now ? env->now->realtime :
				     env->realtime(env->ctx));
}

static void run_buffer_load_part(struct soft_wave *w, const struct soft_uop *u)
{
	const struct row *r = u->op;
	const uint32_t *desc = &w->s[u->in.f[ISA_F_SBASE] * 2];
	const uint64_t base =
		soft_canonical(desc[0] | (uint64_t)(desc[1] & 0xffff) << 32);
	const uint64_t stride = desc[1] >> 16 & 0x3fff;
	const uint64_t size = desc[2] * (stride ? stride : 1);
	const uint64_t at = part_offset(w, u) & ~(uint64_t)(r->bytes - 1);
	uint32_t value = 0;

	if (at < size && size - at >= r->bytes &&
	    !soft_load(w, base + at, &value, r->bytes, -1))
		return;
	put_part(w, u, value);
}

static const struct {
	soft_handler *fn;
	struct row row;
} table[ISA_OP_COUNT] = {
/* A row of s_load and one of s_buffer_load, of n dwords. */
#define LOADS(bits, n)                                            \
	[ISA_s_load_b##bits] = { run_load, { .dwords = n } },     \
	[ISA_s_buffer_load_b##bits] = { run_buffer_load, { .dwords = n } },
#define PART(name, n, sign)                                           \
	[ISA_s_load_##name] = { run_load_part,                        \
				{ .bytes = n, .is_signed = sign } },  \
	[ISA_s_buffer_load_##name] = { run_buffer_load_part,          \
				       { .bytes = n, .is_signed = sign } },
	LOADS(32, 1)
	LOADS(64, 2)
	LOADS(96, 3)
	LOADS(128, 4)
	LOADS(256, 8)
	LOADS(512, 16)
	PART(u8, 1, false)
	PART(i8, 1, true)
	PART(u16, 2, false)
	PART(i16, 2, true)
	[ISA_s_memtime] = { run_memtime, { 0 } },
	[ISA_s_memrealtime] = { run_memrealtime, { 0 } },
	[ISA_s_dcache_wb] = { soft_run_nothing, { 0 } },
	[ISA_s_dcache_discard] = { soft_run_nothing, { 0 } },
	[ISA_s_dcache_discard_x2] = { soft_run_nothing, { 0 } },
	[ISA_s_gl1_inv] = { soft_run_nothing, { 0 } },
	[ISA_s_dcache_inv] = { soft_run_nothing, { 0 } },
	/* They look up a translation and report to nobody. */
	[ISA_s_atc_probe] = { soft_run_nothing, { 0 } },
	[ISA_s_atc_probe_buffer] = { soft_run_nothing, { 0 } },
	/* Nothing is cached here, and nothing that is not there faults. */
	[ISA_s_prefetch_inst] = { soft_run_nothing, { 0 } },
	[ISA_s_prefetch_inst_pc_rel] = { soft_run_nothing, { 0 } },
	[ISA_s_prefetch_data] = { soft_run_nothing, { 0 } },
	[ISA_s_buffer_prefetch_data] = { soft_run_nothing, { 0 } },
	[ISA_s_prefetch_data_pc_rel] = { soft_run_nothing, { 0 } },
};

int soft_smem_dwords(const struct soft_uop *u)
{
	const struct row *r = u->op;

	return u->fn == run_load ? r->dwords : 0;
}

soft_handler *soft_smem_handler(const struct isa_inst *in, const void **op)
{
	*op = &table[in->op].row;
	return table[in->op].fn ? table[in->op].fn :
				  soft_scalar_store_handler(in, op);
}
