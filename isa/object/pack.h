/*
 * pack - MessagePack, as far as code object metadata need it.
 *
 * Values are appended in their smallest form.  A map of n is followed by n
 * keys with a value each, a list by n values.
 */
#ifndef T0_ISA_PACK_H
#define T0_ISA_PACK_H

#include "base/base.h"

void isa_pack_uint(struct buf *b, uint64_t n);
void isa_pack_int(struct buf *b, int64_t n); /* always nine bytes */
void isa_pack_bool(struct buf *b, bool v);
void isa_pack_string(struct buf *b, const char *s);
void isa_pack_list(struct buf *b, uint32_t n);
void isa_pack_map(struct buf *b, uint32_t n);

#endif
