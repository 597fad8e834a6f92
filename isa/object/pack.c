/*
 * isa/object/pack.c - MessagePack's bytes: a tag, then big-endian numbers.
 */
#include <string.h>

#include "isa/object/pack.h"

static void big_endian(struct buf *b, uint64_t v, int bytes)
{
	while (bytes--)
		buf_addc(b, v >> (8 * bytes));
}

/* Smallest form: `small` below `limit`, else the 8-, 16- or 32-bit one. */
static void size(struct buf *b, uint32_t n, uint32_t limit, int small, int c8,
		 int c16, int c32)
{
	if (n < limit) {
		buf_addc(b, small | n);
	} else if (c8 && n < 0x100) {
		buf_addc(b, c8);
		buf_addc(b, n);
	} else if (n < 0x10000) {
		buf_addc(b, c16);
		big_endian(b, n, 2);
	} else {
		buf_addc(b, c32);
		big_endian(b, n, 4);
	}
}

void isa_pack_uint(struct buf *b, uint64_t n)
{
	if (n >> 32 == 0) {
		size(b, n, 0x80, 0, 0xcc, 0xcd, 0xce);
		return;
	}
	buf_addc(b, 0xcf);
	big_endian(b, n, 8);
}

void isa_pack_int(struct buf *b, int64_t n)
{
	buf_addc(b, 0xd3);
	big_endian(b, n, 8);
}

void isa_pack_bool(struct buf *b, bool v)
{
	buf_addc(b, v ? 0xc3 : 0xc2);
}

void isa_pack_string(struct buf *b, const char *s)
{
	size_t n = strlen(s);

	size(b, n, 32, 0xa0, 0xd9, 0xda, 0xdb);
	buf_add(b, s, n);
}

void isa_pack_list(struct buf *b, uint32_t n)
{
	size(b, n, 16, 0x90, 0, 0xdc, 0xdd);
}

void isa_pack_map(struct buf *b, uint32_t n)
{
	size(b, n, 16, 0x80, 0, 0xde, 0xdf);
}
