/*
 * isa/code/decode_image.c - operands of image instructions: how many registers
 * data and address take follows from name, dimension, dmask and options.
 */
#include <string.h>

#include "isa/code/decode_int.h"

/* Name suffix: is `part` ("_c") one of the words of the name? */
static bool name_has_part(const char *name, const char *part)
{
	size_t len = strlen(part);

	for (const char *p = name; (p = strstr(p, part)); p++)
		if (!p[len] || p[len] == '_')
			return true;
	return false;
}

/*
 * Address dwords of an image instruction: coordinates by dimension, and what
 * the name adds.  A16 halves coordinates, but not the operands beside them.
 */
static int image_addresses(const char *name, int dim, bool a16, bool nsa)
{
	static const uint8_t coords[] = { 1, 2, 3, 3, 2, 3, 3, 4 };
	static const uint8_t grads[] = { 2, 4, 6, 4, 2, 4, 4, 4 };
	/* Two 16-bit gradients a register, from a new one by direction. */
	static const uint8_t grads_16[] = { 2, 2, 4, 2, 2, 2, 2, 2 };
	bool sample = strstr(name, "sample") || strstr(name, "gather") ||
		      strstr(name, "get_lod");
	int n = coords[dim];

	if (strstr(name, "bvh"))
		return (strstr(name, "bvh64") ? 12 : 11) - (a16 ? 3 : 0);
	if (strstr(name, "get_resinfo"))
		return 1;
	n += strstr(name, "_mip") || strstr(name, "_cl") ||
	     name_has_part(name, "_l");
	if (a16)
		n = (n + 1) / 2;
	if (!sample)
		return n;
	if (name_has_part(name, "_d"))
		n += strstr(name, "_g16") ? grads_16[dim] : grads[dim];
	n += name_has_part(name, "_o") + name_has_part(name, "_c") +
	     name_has_part(name, "_b");
	return n > 12 && !nsa ? 16 : n;
}

static int image_data_dwords(const struct isa_inst *in, const char *name)
{
	int n = __builtin_popcount(in->f[ISA_F_DMASK]);

	if (strstr(name, "gather4") || strstr(name, "bvh"))
		n = 4;
	else if (strstr(name, "msaa_load"))
		n = 4;
	if (!n)
		n = 1;
	if (in->f[ISA_F_D16])
		n = (n + 1) / 2;
	return n + in->f[ISA_F_TFE];
}

struct isa_operand *isa_decode_append(struct isa_inst *in, int slot, int role,
				      int dwords)
{
	struct isa_operand *o = &in->opnd[in->n_opnd++];

	o->slot = slot;
	o->role = role;
	o->dwords = dwords;
	return o;
}

/* Registers of NSA address operand `i`; ray tracing groups vectors. */
static int nsa_width(const char *name, int i, int n_addr)
{
	static const uint8_t bvh[] = { 1, 1, 3, 3, 3 };

	if (strstr(name, "bvh"))
		return i || !strstr(name, "bvh64") ? bvh[i] : 2;
	return i == 4 ? n_addr - 4 : 1;
}

const char *isa_decode_image(struct decoder *d)
{
	struct isa_inst *in = d->in;
	const char *name = d->op->name;
	int n_addr = image_addresses(name, in->f[ISA_F_DIM],
				     in->f[ISA_F_A16], in->f[ISA_F_NSA]);
	uint32_t flags = d->op->flags;
	int role = flags & ISA_LOAD ? ISA_DST : ISA_SRC;
	const char *why;

	if (flags & ISA_ATOMIC && in->f[ISA_F_GLC])
		role |= ISA_DST;
	why = isa_decode_vgpr(isa_decode_append(in, ISA_SLOT_DATA, role,
						image_data_dwords(in, name)),
			      in->f[ISA_F_VDATA]);
	if (why)
		return why;
	if (in->f[ISA_F_NSA]) {
		/* Ray tracing in 16 bits packs its last two vectors. */
		int n = strstr(name, "bvh") ? 5 - (int)in->f[ISA_F_A16] :
			n_addr < 5	    ? n_addr : 5;

		for (int i = 0; i < n; i++) {
			int width = nsa_width(name, i, n_addr);
			uint32_t reg = i ? in->extra[0] >> (8 * (i - 1)) &
						       0xff :
					   in->f[ISA_F_ADDR];

			why = isa_decode_vgpr(isa_decode_append(in,
								ISA_SLOT_VADDR,
								ISA_SRC, width),
					      reg);
			if (why)
				return why;
		}
	} else {
		why = isa_decode_vgpr(
			isa_decode_append(in, ISA_SLOT_VADDR, ISA_SRC, n_addr),
			in->f[ISA_F_ADDR]);
		if (why)
			return why;
	}
	why = isa_decode_sgpr(isa_decode_append(in, ISA_SLOT_SRSRC, ISA_SRC,
						strstr(name, "bvh") ? 4 : 8),
			      in->f[ISA_F_SRSRC] * 4);
	if (why || !(flags & ISA_SAMPLER))
		return why;
	return isa_decode_sgpr(
		isa_decode_append(in, ISA_SLOT_SADDR, ISA_SRC, 4),
		in->f[ISA_F_SSAMP] * 4);
}
