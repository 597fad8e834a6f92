/*
 * isa/encode.c - struct isa_inst to bytes: the format's fields, then whatever
 * follows them (image address dword, DPP dword, literal).
 */
#include <string.h>

#include "isa/isa.h"

static int put(uint8_t *out, int at, uint32_t w)
{
	memcpy(out + at, &w, 4);
	return at + 4;
}

int isa_encode(const struct isa_inst *in, uint8_t *out)
{
	const struct isa_fmt_info *f = isa_fmt_info(in->fmt);
	uint64_t w = f->bits;
	int at;

	if (!f->dwords)
		return 0;
	for (int i = 0; i < f->n_fields; i++) {
		uint64_t v = in->f[f->field[i].field];

		if (v >> f->field[i].width)
			return 0;
		w |= v << f->field[i].low;
	}
	at = put(out, 0, w);
	if (f->dwords == 2)
		at = put(out, at, w >> 32);
	if (in->form != ISA_FORM_PLAIN ||
	    (in->fmt == ISA_FMT_MIMG && in->f[ISA_F_NSA]))
		at = put(out, at, in->extra[0]);
	if (in->has_literal)
		at = put(out, at, in->literal);
	return at;
}
