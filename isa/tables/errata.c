/*
 * isa/tables/errata.c - isa/tables/errata.def as an array.
 */
#include <string.h>

#include "base/base.h"
#include "isa/tables/tables.h"

static const struct isa_erratum errata[] = {
#define E(enc, op, what, name, why) { #enc, op, ISA_OUTCOME_##what, name, why },
#include "isa/tables/errata.def"
#undef E
};

const struct isa_erratum *isa_erratum_at(const char *encoding, int opcode)
{
	for (size_t i = 0; i < ARRAY_SIZE(errata); i++)
		if (errata[i].opcode == opcode &&
		    !strcmp(errata[i].encoding, encoding))
			return &errata[i];
	return NULL;
}
