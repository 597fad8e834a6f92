/*
 * isa/object/co_debug.c - line tables: which source line machine code comes
 * from.
 *
 * The smallest DWARF 5 that readers accept: a compile unit without children
 * in .debug_info, its abbreviation, and the line program.  Strings stand in
 * place, so no string section is needed.
 */
#include <string.h>

#include "isa/object/co_write_int.h"

/* DWARF 5 constants. */
enum {
	DW_TAG_compile_unit = 0x11,
	DW_AT_name = 0x03,
	DW_AT_stmt_list = 0x10,
	DW_AT_low_pc = 0x11,
	DW_AT_high_pc = 0x12,
	DW_FORM_addr = 0x01,
	DW_FORM_data8 = 0x07,
	DW_FORM_string = 0x08,
	DW_FORM_data1 = 0x0b,
	DW_FORM_sec_offset = 0x17,
	DW_UT_compile = 0x01,
	DW_LNCT_path = 0x01,
	DW_LNCT_directory_index = 0x02,
	DW_LNS_copy = 1,
	DW_LNS_advance_pc = 2,
	DW_LNS_advance_line = 3,
	DW_LNE_end_sequence = 1,
	DW_LNE_set_address = 2,
};

static void put_bytes(struct buf *b, uint64_t v, size_t bytes)
{
	buf_add(b, &v, bytes);
}

static void put_uleb(struct buf *b, uint64_t v)
{
	do {
		buf_addc(b, (char)((v & 127) | (v > 127 ? 128 : 0)));
		v >>= 7;
	} while (v);
}

static void put_sleb(struct buf *b, int64_t v)
{
	bool more = true;

	while (more) {
		uint8_t byte = v & 127;

		v >>= 7;
		more = !((v == 0 && !(byte & 64)) || (v == -1 && byte & 64));
		buf_addc(b, (char)(byte | (more ? 128 : 0)));
	}
}

static void put_string(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s) + 1);
}

/* Unit length (DWARF): the size of what follows it. */
static void close_length(struct buf *b, size_t at)
{
	uint32_t n = (uint32_t)(b->len - at - 4);

	memcpy(b->data + at, &n, 4);
}

static void put_address(struct isa_object *o, int section, struct buf *b,
			int symbol)
{
	struct isa_reloc r = { .section = section,
			       .offset = b->len,
			       .type = CO_RELOC_ABS64,
			       .symbol = symbol };

	isa_object_reloc(o, &r);
	put_bytes(b, 0, 8);
}

static struct isa_section *debug_section(struct isa_object *o, const char *name,
					 int *number)
{
	struct isa_section *s;

	*number = isa_object_section(o, name, (int)strlen(name),
				     ISA_SHT_PROGBITS, ISA_SHF_KEEP);
	s = isa_section_at(o, *number);
	s->align = 1;
	return s;
}

static void put_abbreviations(struct isa_object *o)
{
	static const uint8_t bytes[] = {
		1, DW_TAG_compile_unit, 0,
		DW_AT_name, DW_FORM_string,
		DW_AT_stmt_list, DW_FORM_sec_offset,
		DW_AT_low_pc, DW_FORM_addr,
		DW_AT_high_pc, DW_FORM_data8,
		0, 0, 0,
	};
	int number;
	struct isa_section *s = debug_section(o, ".debug_abbrev", &number);

	if (!s->data.len)
		buf_add(&s->data, bytes, sizeof(bytes));
	s->size_bytes = s->data.len;
}

static void put_compile_unit(struct isa_object *o,
			     const struct co_build_kernel *k, int symbol,
			     size_t lines_at)
{
	int number;
	struct isa_section *s = debug_section(o, ".debug_info", &number);
	struct buf *b = &s->data;
	size_t at = b->len;

	put_bytes(b, 0, 4);
	put_bytes(b, 5, 2);
	put_bytes(b, DW_UT_compile, 1);
	put_bytes(b, 8, 1); /* address size */
	put_bytes(b, 0, 4); /* abbreviations */
	put_uleb(b, 1);
	put_string(b, k->source);
	put_bytes(b, lines_at, 4);
	put_address(o, number, b, symbol);
	put_bytes(b, k->code_bytes, 8);
	close_length(b, at);
	s->size_bytes = b->len;
}

static void line_header(struct buf *b, const char *source)
{
	static const uint8_t operands[] = {
		0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
	};
	size_t at;

	put_bytes(b, 5, 2);
	put_bytes(b, 8, 1);
	put_bytes(b, 0, 1);
	at = b->len;
	put_bytes(b, 0, 4);
	put_bytes(b, 4, 1); /* bytes that addresses are multiples of */
	put_bytes(b, 1, 1);
	put_bytes(b, 1, 1);   /* rows are statements */
	put_bytes(b, 251, 1); /* line base -5 */
	put_bytes(b, 14, 1);
	put_bytes(b, 1 + sizeof(operands), 1);
	buf_add(b, operands, sizeof(operands));
	put_bytes(b, 1, 1); /* directories: a path each */
	put_uleb(b, DW_LNCT_path);
	put_uleb(b, DW_FORM_string);
	put_uleb(b, 1);
	put_string(b, ".");
	put_bytes(b, 2, 1); /* files: path and directory */
	put_uleb(b, DW_LNCT_path);
	put_uleb(b, DW_FORM_string);
	put_uleb(b, DW_LNCT_directory_index);
	put_uleb(b, DW_FORM_data1);
	put_uleb(b, 2);
	/* Number 1 is the one that rows start with; 0 is the unit's. */
	for (int i = 0; i < 2; i++) {
		put_string(b, source);
		put_bytes(b, 0, 1);
	}
	close_length(b, at);
}

static void line_program(struct isa_object *o, int number, struct buf *b,
			 const struct co_build_kernel *k, int symbol)
{
	uint32_t at = 0;
	int64_t line = 1;

	put_bytes(b, 0, 1);
	put_uleb(b, 9);
	put_bytes(b, DW_LNE_set_address, 1);
	put_address(o, number, b, symbol);
	for (size_t i = 0; i < k->n_lines; i++) {
		put_bytes(b, DW_LNS_advance_pc, 1);
		put_uleb(b, (k->line[i].offset - at) / 4);
		put_bytes(b, DW_LNS_advance_line, 1);
		put_sleb(b, (int64_t)k->line[i].line - line);
		put_bytes(b, DW_LNS_copy, 1);
		at = k->line[i].offset;
		line = k->line[i].line;
	}
	put_bytes(b, DW_LNS_advance_pc, 1);
	put_uleb(b, (k->code_bytes - at) / 4);
	put_bytes(b, 0, 1);
	put_uleb(b, 1);
	put_bytes(b, DW_LNE_end_sequence, 1);
}

void co_debug_lines(struct isa_object *o, const struct co_build_kernel *k,
		    int symbol)
{
	struct isa_section *s;
	size_t at;
	int number;

	if (!k->source || !k->n_lines)
		return;
	put_abbreviations(o);
	s = debug_section(o, ".debug_line", &number);
	at = s->data.len;
	put_bytes(&s->data, 0, 4);
	line_header(&s->data, k->source);
	line_program(o, number, &s->data, k, symbol);
	close_length(&s->data, at);
	s->size_bytes = s->data.len;
	put_compile_unit(o, k, symbol, at);
}
