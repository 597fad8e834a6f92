/*
 * isa/tables/chips.c - isa/tables/chips.def and boards.def as arrays.
 */
#include <string.h>

#include "base/base.h"
#include "isa/tables/tables.h"

static const struct isa_gen_info generations[ISA_GEN_COUNT] = {
#define GENERATION(name, ...) [ISA_##name] = { __VA_ARGS__ },
#define CHIP(name, ...)
#include "isa/tables/chips.def"
#undef GENERATION
#undef CHIP
};

static const struct isa_chip chips[] = {
#define GENERATION(name, ...)
#define CHIP(n, ...) { .name = #n, __VA_ARGS__ },
#include "isa/tables/chips.def"
#undef GENERATION
#undef CHIP
};

static const struct board {
	uint32_t device_id, pci_rev, cu_count;
	const char *name;
} boards[] = {
#define BOARD(device, rev, cus, name) { device, rev, cus, name },
#include "isa/tables/boards.def"
#undef BOARD
};

const struct isa_gen_info *isa_gen_info(enum isa_gen gen)
{
	return &generations[gen < ISA_GEN_COUNT ? gen : ISA_GFX11];
}

const struct isa_chip *isa_chip_at(size_t i)
{
	return i < ARRAY_SIZE(chips) ? &chips[i] : NULL;
}

const struct isa_chip *isa_chip_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(chips); i++)
		if (!strcmp(chips[i].name, name))
			return &chips[i];
	return NULL;
}

const struct isa_chip *isa_chip_of_target(uint32_t gfx_target)
{
	for (size_t i = 0; i < ARRAY_SIZE(chips); i++)
		if (chips[i].gfx_target == gfx_target)
			return &chips[i];
	return NULL;
}

const struct isa_chip *isa_chip_of_code(const char *name)
{
	const struct isa_chip *c = isa_chip_find(name);

	for (size_t i = 0; !c && i < ARRAY_SIZE(chips); i++)
		if (chips[i].device_id &&
		    !strcmp(isa_gen_info(chips[i].gen)->generic, name))
			c = &chips[i];
	return c;
}

bool isa_chip_parse(const char *name, enum isa_gen *gen)
{
	const struct isa_chip *c = isa_chip_find(name);

	if (c)
		*gen = c->gen;
	return c;
}

const char *isa_board_name(uint32_t device_id, uint32_t pci_rev,
			   uint32_t cu_count)
{
	const char *by_rev = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(boards); i++) {
		if (boards[i].device_id != device_id)
			continue;
		if (cu_count && boards[i].cu_count == cu_count)
			return boards[i].name;
		if (pci_rev && boards[i].pci_rev == pci_rev)
			by_rev = boards[i].name;
	}
	return cu_count ? NULL : by_rev;
}
