/*
 * probes/discover/discover_int.h - shared by the files of discovery.
 */
#ifndef T0_PROBES_DISCOVER_INT_H
#define T0_PROBES_DISCOVER_INT_H

#include "probes/discover/discover.h"

/* BUF_FMT_32_32_32_32_UINT, by isa/tables/names.def. */
static inline uint32_t probe_buffer_format(enum isa_gen gen)
{
	return gen < ISA_GFX11 ? 75 : 61;
}

/* ------------------------------------------------------ slot_words.c ---- */

/* The words of a slot, by its generation, format, opcode and row. */
void probe_slot_write(struct probe_slot *s);

#endif
