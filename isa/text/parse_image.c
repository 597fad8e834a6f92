/*
 * isa/text/parse_image.c - operands of image and export instructions, whose
 * number and widths follow from modifiers.
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

/* The registers' widths are checked after decoding, which computes them. */
static bool put_address_list(struct parser *ps, const struct arg *a)
{
	const struct arg *one = &ps->list[a->list];
	struct isa_inst *in = ps->in;

	if (a->list_n > 5)
		return isa_refuse(ps, 3, "more than five image addresses");
	for (int i = 0; i < a->list_n; i++) {
		if (one[i].kind != ARG_VGPR)
			return isa_refuse(ps, 3, "image addresses are VGPRs");
		if (i)
			in->extra[0] |= (uint32_t)one[i].reg << (8 * (i - 1));
	}
	in->f[ISA_F_NSA] = 1;
	return isa_put_field(ps, ISA_F_ADDR, one[0].reg);
}

static bool put_address(struct parser *ps, const struct arg *a)
{
	if (a->kind == ARG_VGPR)
		return isa_put_field(ps, ISA_F_ADDR, a->reg);
	if (a->kind != ARG_LIST)
		return isa_refuse(ps, 2, "wanted image addresses");
	/* "[v0]" is one register. */
	if (a->list_n == 1)
		return isa_put_field(ps, ISA_F_ADDR, ps->list[a->list].reg);
	return put_address_list(ps, a);
}

bool isa_put_image(struct parser *ps)
{
	bool sampler = ps->op->flags & ISA_SAMPLER;
	const struct arg *a = ps->arg;
	struct arg data;

	if (ps->n_args != (sampler ? 4 : 3))
		return isa_refuse(ps, 2, "wrong number of operands");
	for (int i = 0; i < ps->n_args; i++)
		if (a[i].neg || a[i].abs)
			return isa_refuse(ps, 3,
					  "neg and abs not allowed here");
	isa_lex_tuple(ps, &a[0], &data);
	if (data.kind != ARG_VGPR)
		return isa_refuse(ps, 2, "wanted a VGPR");
	return isa_put_field(ps, ISA_F_VDATA, data.reg) &&
	       put_address(ps, &a[1]) &&
	       isa_put_tuple(ps, &a[2], strstr(ps->op->name, "bvh") ? 4 : 8,
			     ISA_F_SRSRC, 4) &&
	       (!sampler || isa_put_tuple(ps, &a[3], 4, ISA_F_SSAMP, 4));
}

/* "exp TARGET v0, v1, off, off" */
bool isa_put_export(struct parser *ps)
{
	static const uint8_t field[4] = { ISA_F_VSRC0, ISA_F_VSRC1, ISA_F_VSRC2,
					  ISA_F_VSRC3 };
	const struct arg *a = ps->arg;
	int target;

	if (ps->n_args != 5)
		return isa_refuse(ps, 2, "wanted a target and four sources");
	target = a->kind == ARG_WORD ? isa_name_number(EXPTGT, a->s, a->len) :
				       -1;
	if (target < 0)
		return isa_refuse(ps, 3, "unknown export target");
	ps->in->f[ISA_F_TARGET] = target;
	for (int i = 0; i < 4; i++) {
		a++;
		if (a->kind == ARG_OFF)
			continue;
		if (a->kind != ARG_VGPR || a->n != 1 || a->neg || a->abs)
			return isa_refuse(ps, 2, "wanted a VGPR or off");
		ps->in->f[field[i]] = a->reg;
		ps->in->f[ISA_F_EN] |= 1u << i;
	}
	return true;
}
