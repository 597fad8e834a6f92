/*
 * compiler/sim/machine_address.c - addresses of the lanes of a memory
 * instruction.
 */
#include <string.h>

#include "compiler/sim/machine.h"
#include "compiler/sim/sim_int.h"

/* Bytes of one access of a lane: by the row's types, not by registers. */
static uint32_t data_bytes(const struct isa_inst *in)
{
	static const uint8_t order[] = { ISA_SLOT_D, ISA_SLOT_DATA,
					 ISA_SLOT_DATA0, ISA_SLOT_DATAG,
					 ISA_SLOT_SDATA, ISA_SLOT_DG };
	const struct isa_op_info *op = isa_op_info(in->op);
	bool two = strstr(op->name, "_2addr") != NULL;

	for (size_t k = 0; k < ARRAY_SIZE(order); k++)
		for (int i = 0; i < op->n_opnd; i++) {
			const struct isa_type_info *t =
				isa_type_info(op->opnd[i].type);
			uint32_t bytes = t->bits * (uint32_t)t->count / 8;

			/* Two loads share a destination of both. */
			if (op->opnd[i].slot == order[k])
				return two && order[k] == ISA_SLOT_D
					       ? bytes / 2 : bytes;
		}
	return 4;
}

static void add_access(struct machine_code *c, struct sim_step *out, int lane,
		       uint64_t at)
{
	if (out->n_accesses == TRACE_ACCESSES_MAX)
		return;
	c->access[out->n_accesses].lane = (int16_t)lane;
	c->access[out->n_accesses++].at = at;
}

static const uint32_t *lanes_of_vgpr(const struct machine_code *c,
				     const struct machine *m, int reg)
{
	return m->v + reg * c->wave_size;
}

static bool known_vgpr(const struct machine_code *c, const struct machine *m,
		       int reg, int n)
{
	return machine_knows_v(m, reg, n) && reg + n <= c->vgprs;
}

/* FLAT, GLOBAL and SCRATCH. */
static bool flat_addresses(struct machine_code *c, const struct machine *m,
			   const struct isa_inst *in, struct sim_step *out)
{
	const struct isa_operand *v = sim_operand(in, ISA_SLOT_VADDR);
	const struct isa_operand *s = sim_operand(in, ISA_SLOT_SADDR);
	const struct isa_operand *off = sim_operand(in, ISA_SLOT_OFF13);
	bool has_v = v && v->kind == ISA_K_VGPR;
	bool has_s = s && s->kind == ISA_K_SGPR && s->reg < ISA_R_NULL;
	bool wide = has_v && v->dwords > 1, far = has_s && s->dwords > 1;
	uint64_t base = off ? (uint64_t)(int64_t)(int32_t)off->value : 0;

	if ((has_v && !known_vgpr(c, m, v->reg, wide ? 2 : 1)) ||
	    (has_s && !machine_knows_s(m, s->reg, far ? 2 : 1)))
		return false;
	if (has_s)
		base += m->s[s->reg] |
			(far ? (uint64_t)m->s[s->reg + 1] << 32 : 0);
	for (int l = 0; l < c->wave_size; l++) {
		uint64_t at = base;

		if (!(out->exec >> l & 1))
			continue;
		if (has_v)
			at += lanes_of_vgpr(c, m, v->reg)[l];
		if (wide)
			at += (uint64_t)lanes_of_vgpr(c, m, v->reg + 1)[l]
			      << 32;
		add_access(c, out, l, at);
	}
	return true;
}

static bool read_soffset(const struct machine *m, const struct isa_inst *in,
			 uint32_t *value)
{
	const struct isa_operand *s = sim_operand(in, ISA_SLOT_SOFFSET);

	*value = 0;
	if (!s || (s->kind == ISA_K_SGPR && s->reg == ISA_R_NULL))
		return true;
	*value = s->kind == ISA_K_SGPR ? m->s[s->reg] : s->value;
	return s->kind != ISA_K_SGPR || machine_knows_s(m, s->reg, 1);
}

/*
 * Untyped buffers without swizzling.  What lies outside is not fetched
 * (RDNA3 ISA 9.4).
 */
static bool buffer_addresses(struct machine_code *c, const struct machine *m,
			     const struct isa_inst *in, struct sim_step *out)
{
	int d = (int)in->f[ISA_F_SRSRC] * 4, v = (int)in->f[ISA_F_ADDR];
	bool idx = in->f[ISA_F_IDXEN], off = in->f[ISA_F_OFFEN];
	uint32_t so;

	if (!machine_knows_s(m, d, 4) || !read_soffset(m, in, &so) ||
	    ((idx || off) && !known_vgpr(c, m, v, idx + off)) ||
	    m->s[d + 1] >> 30 || m->s[d + 3] >> 23 & 1)
		return false;
	uint64_t base = m->s[d] | (uint64_t)(m->s[d + 1] & 0xffff) << 32;
	uint64_t stride = m->s[d + 1] >> 16 & 0x3fff, records = m->s[d + 2];
	bool raw = (m->s[d + 3] >> 28 & 3) == 3;

	for (int l = 0; l < c->wave_size; l++) {
		uint64_t i = idx ? lanes_of_vgpr(c, m, v)[l] : 0;
		uint64_t o = in->f[ISA_F_OFFSET] +
			     (off ? lanes_of_vgpr(c, m, v + idx)[l] : 0);

		if (!(out->exec >> l & 1) ||
		    (raw || !stride ? i * stride + o + so >= records
				    : i >= records))
			continue;
		add_access(c, out, l, base + so + i * stride + o);
	}
	return true;
}

static bool lds_addresses(struct machine_code *c, const struct machine *m,
			  const struct isa_inst *in, struct sim_step *out)
{
	const struct isa_operand *v = sim_operand(in, ISA_SLOT_VADDR);
	const char *name = isa_op_info(in->op)->name;
	bool two = strstr(name, "_2addr") != NULL;
	bool src2 = strstr(name, "_src2_") != NULL;
	uint32_t unit =
		out->access_bytes * (strstr(name, "_stride64") ? 64 : 1);
	uint32_t first = in->f[ISA_F_OFFSET0], second = in->f[ISA_F_OFFSET1];

	if (!v || v->kind != ISA_K_VGPR || !known_vgpr(c, m, v->reg, 1))
		return false;
	for (int l = 0; l < c->wave_size; l++) {
		uint32_t at = lanes_of_vgpr(c, m, v->reg)[l];

		if (!(out->exec >> l & 1))
			continue;
		if (src2) {
			const struct isa_src2 places =
				isa_lds_src2(at, first | second << 8);
			add_access(c, out, l, places.a);
			add_access(c, out, l, places.b);
			continue;
		}
		add_access(c, out, l,
			   at + (two ? first * unit : first | second << 8));
		if (two)
			add_access(c, out, l, at + second * unit);
	}
	return true;
}

bool machine_scalar_address(const struct machine *m, const struct isa_inst *in,
			    uint64_t *va)
{
	int base = (int)in->f[ISA_F_SBASE] * 2;
	uint32_t so = in->f[ISA_F_SOFFSET];
	bool buffer = strstr(isa_op_info(in->op)->name, "buffer") != NULL;
	/* Signed; how wide depends on the generation. */
	int shift = 32 - isa_field_width(in->layout, ISA_F_OFFSET);

	if (!machine_knows_s(m, base, 2) ||
	    (so != ISA_R_NULL && !machine_knows_s(m, (int)so, 1)))
		return false;
	*va = (m->s[base] & ~UINT32_C(3)) |
	      (uint64_t)(m->s[base + 1] & (buffer ? 0xffff : UINT32_MAX)) << 32;
	*va += (uint64_t)(int64_t)((int32_t)(in->f[ISA_F_OFFSET] << shift) >>
				   shift & ~3);
	if (so != ISA_R_NULL)
		*va += m->s[so] & ~UINT32_C(3);
	return true;
}

/* The LDS instructions that only permute lanes touch no memory. */
static bool is_permute(enum isa_op op)
{
	return op == ISA_ds_permute_b32 || op == ISA_ds_bpermute_b32 ||
	       op == ISA_ds_swizzle_b32 || op == ISA_ds_nop;
}

static bool find_addresses(struct machine_code *c, const struct machine *m,
			   const struct isa_inst *in, struct sim_step *out)
{
	uint64_t va;

	switch (in->fmt) {
	case ISA_FMT_SMEM:
		if (!machine_scalar_address(m, in, &va))
			return false;
		add_access(c, out, -1, va);
		return true;
	case ISA_FMT_DS:
		return lds_addresses(c, m, in, out);
	case ISA_FMT_FLAT: case ISA_FMT_GLOBAL: case ISA_FMT_SCRATCH:
		return flat_addresses(c, m, in, out);
	case ISA_FMT_MUBUF:
		return buffer_addresses(c, m, in, out);
	default:
		return false;
	}
}

void machine_access(struct machine_code *c, const struct machine *m,
		    const struct isa_inst *in, struct sim_step *out)
{
	const struct isa_op_info *op = isa_op_info(in->op);

	if (!(op->flags & (ISA_LOAD | ISA_STORE | ISA_ATOMIC)) ||
	    is_permute(in->op) ||
	    !machine_knows_s(m, ISA_R_EXEC_LO, c->wave_size / 32))
		return;
	out->kind = in->fmt == ISA_FMT_DS	 ? TRACE_LDS
		    : in->fmt == ISA_FMT_SCRATCH ? TRACE_SCRATCH
						 : TRACE_MEMORY;
	if (op->flags & (ISA_STORE | ISA_ATOMIC))
		out->kind |= TRACE_WRITE;
	if (op->flags & ISA_ATOMIC)
		out->kind |= TRACE_ATOMIC;
	out->access_bytes = in->fmt == ISA_FMT_SMEM ? in->opnd[0].dwords * 4u
						    : data_bytes(in);
	out->access = c->access;
	if (!find_addresses(c, m, in, out)) {
		out->n_accesses = 0;
		c->unknown++;
	} else if (!out->n_accesses) {
		out->exec = 0; /* all lanes outside their buffer */
	}
}
