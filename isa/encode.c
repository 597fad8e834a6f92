/*
 * isa/encode.c - struct isa_inst to bytes: the format's fields, then whatever
 * follows them (image address dword, DPP dword, literal).
 */
#include <string.h>

#include "isa/isa_int.h"

static int put(uint8_t *out, int at, uint32_t w)
{
	memcpy(out + at, &w, 4);
	return at + 4;
}

int isa_encode(const struct isa_inst *in, uint8_t *out)
{
	const struct isa_fmt_info *f =
		isa_fmt_info(in->layout ? in->layout : in->fmt);
	uint32_t w[3] = { f->bits };
	int at = 0;

	if (!f->dwords)
		return 0;
	for (int i = 0; i < f->n_fields; i++) {
		enum isa_field field = f->field[i].field;
		uint32_t v = in->f[field];
		int low = f->field[i].low;

		if (in->m0_is_124 && isa_int_is_scalar(field))
			v = isa_int_swap_m0(v);

		if (v >> f->field[i].width)
			return 0;
		w[low / 32] |= v << low % 32;
	}
	for (int i = 0; i < f->dwords; i++)
		at = put(out, at, w[i]);
	if (in->form != ISA_FORM_PLAIN ||
	    (in->fmt == ISA_FMT_MIMG && in->f[ISA_F_NSA]))
		at = put(out, at, in->extra[0]);
	if (in->has_literal)
		at = put(out, at, in->literal);
	return at;
}
