/*
 * isa/code/encode.c - struct isa_inst to bytes: the format's fields, then
 * whatever follows them (image address dwords, DPP dword, literal).
 */
#include <string.h>

#include "isa/code/decode_int.h"

static int put_dword(uint8_t *out, int at, uint32_t w)
{
	memcpy(out + at, &w, 4);
	return at + 4;
}

/* The format's words from the fields; false if a value does not fit. */
static bool insert_fields(const struct isa_inst *in, int layout, uint32_t *w)
{
	const bool swap = in->m0_is_124;
	uint32_t v, lost = 0;

	switch (layout) {
#define FORMAT(name, dwords, mask, bits) \
	case ISA_FMT_##name:             \
		w[0] = (bits);
#define LAYOUT(name, gen, fmt, dwords, mask, bits) \
	case ISA_FMT_##name:                       \
		w[0] = (bits);
#define FIELD(fmt, field, low, width) \
	v = in->f[ISA_F_##field]; \
	if (is_scalar_field(ISA_F_##field) && swap) \
		v = isa_swap_m0(v); \
	lost |= v >> (width); \
	w[(low) / 32] |= v << (low) % 32;
#define END_FORMAT(name) break;
#include "isa/tables/formats.def"
	}
	return !lost;
}

int isa_encode(const struct isa_inst *in, uint8_t *out)
{
	int layout = in->layout ? in->layout : in->fmt;
	const struct isa_fmt_info *f = isa_fmt_info(layout);
	uint32_t w[3] = { 0 };
	int at = 0;

	if (!f->dwords || !insert_fields(in, layout, w))
		return 0;
	for (int i = 0; i < f->dwords; i++)
		at = put_dword(out, at, w[i]);
	if (in->form != ISA_FORM_PLAIN ||
	    (in->fmt == ISA_FMT_MIMG && in->f[ISA_F_NSA]))
		at = put_dword(out, at, in->extra[0]);
	if (in->has_literal)
		at = put_dword(out, at, in->literal);
	return at;
}
