/*
 * isa/tables/errata.c - isa/tables/errata.def as an array.
 */
#include <string.h>

#include "base/base.h"
#include "isa/tables/tables.h"

static const struct isa_erratum errata[] = {
#define G10 (1u << ISA_GFX10_1 | 1u << ISA_GFX10_3)
#define G11 (1u << ISA_GFX11 | 1u << ISA_GFX11_5)
#define G12 (1u << ISA_GFX12)
#define E(gens, enc, op, what, name, why) \
	{ gens, #enc, op, ISA_OUTCOME_##what, name, why },
#include "isa/tables/errata.def"
#undef E
};

const struct isa_erratum *isa_erratum_at(enum isa_gen gen, const char *encoding,
					 int opcode)
{
	for (size_t i = 0; i < ARRAY_SIZE(errata); i++)
		if (errata[i].gens >> gen & 1 && errata[i].opcode == opcode &&
		    !strcmp(errata[i].encoding, encoding))
			return &errata[i];
	return NULL;
}
