/*
 * isa/cmd/cmd_dis.c - t0-isa dis.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "isa/cmd/cmd.h"
#include "isa/object/object.h"
#include "isa/text/text.h"

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool isa_parse_hex(const char *s, size_t len, struct buf *out, struct err *e)
{
	for (size_t i = 0; i < len;) {
		int hi, lo;

		if (isspace((unsigned char)s[i]) || strchr(",[]", s[i])) {
			i++;
			continue;
		}
		if (s[i] == '0' && i + 1 < len && (s[i + 1] | 32) == 'x') {
			i += 2;
			continue;
		}
		hi = hex_digit((unsigned char)s[i]);
		lo = i + 1 < len ? hex_digit((unsigned char)s[i + 1]) : -1;
		if (hi < 0 || lo < 0)
			return err_set(e, ERR_INPUT,
				       "hex input, character %zu: got '%.*s', "
				       "wanted two hex digits per byte",
				       i + 1, len - i < 8 ? (int)(len - i) : 8,
				       s + i);
		buf_addc(out, hi << 4 | lo);
		i += 2;
	}
	return true;
}

static char *add_hex(char *p, uint64_t v, int digits)
{
	for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

static char *add_bytes(char *p, const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p = add_hex(p, code[i], 2);
	return p;
}

/* "<tab>text, padded // address: bytes". */
static void print_line(FILE *out, const char *text, size_t len, uint64_t addr,
		       const uint8_t *code, size_t n)
{
	enum { COLUMN = 58 };
	char line[ISA_TEXT_MAX + 2 * ISA_MAX_SIZE_BYTES + 40], *p = line;

	*p++ = '\t';
	memcpy(p, text, len);
	p += len;
	if (len < COLUMN) {
		memset(p, ' ', COLUMN - len);
		p += COLUMN - len;
	}
	memcpy(p, " // ", 4);
	p = add_hex(p + 4, addr, 12);
	*p++ = ':';
	*p++ = ' ';
	p = add_bytes(p, code, n);
	*p++ = '\n';
	fwrite_unlocked(line, 1, (size_t)(p - line), out);
}

static void add_row(struct table *table, const char *kernel, uint64_t addr,
		    const uint8_t *code, size_t n, const char *text)
{
	char hex[2 * ISA_MAX_SIZE_BYTES + 1];

	*add_bytes(hex, code, n) = 0;
	table_row(table);
	if (kernel)
		table_cell(table, 0, "%s", kernel);
	table_cell(table, 1, "%llu", (unsigned long long)addr);
	table_cell(table, 2, "%s", hex);
	table_cell(table, 3, "%s", text);
}

/* One instruction: its text, or ".long" and the reason; its size in bytes. */
static size_t dis_one(const struct isa_cmd *o, const struct isa_target *t,
		  const uint8_t *code, size_t size, uint64_t addr,
		  struct table *table, const char *kernel)
{
	char text[ISA_TEXT_MAX];
	struct isa_inst in;
	const char *why = isa_decode(t, code, size, &in);
	size_t n = why ? (size < 4 ? size : 4) : in.size_bytes;
	int len;

	if (!why) {
		len = isa_print(t, &in, text, sizeof(text));
	} else if (n == 4) {
		uint32_t w;

		memcpy(&w, code, 4);
		len = snprintf(text, sizeof(text), ".long 0x%08x // %s", w,
			       why);
	} else {
		len = snprintf(text, sizeof(text), ".byte // %s", why);
	}
	if (o->cmd.format != TABLE_TEXT)
		add_row(table, kernel, addr, code, n, text);
	else
		print_line(o->cmd.out, text, (size_t)len, addr, code, n);
	return n;
}

static void dis_range(const struct isa_cmd *o, const uint8_t *code,
		      size_t size, uint64_t addr, int wave,
		      struct table *table, const char *kernel)
{
	struct isa_target t = o->target;

	t.wave = wave;
	for (size_t at = 0; at < size;)
		at += dis_one(o, &t, code + at, size - at, addr + at, table,
			  kernel);
}

static int wave_of(const struct isa_cmd *o, const struct co_kernel *k)
{
	return o->wave ? o->wave : co_descriptor_wave_size(&k->desc);
}

static bool dis_object(const struct isa_cmd *o, const struct buf *file,
		       struct table *table, struct err *e)
{
	const struct co_kernel *only = NULL;
	struct isa_cmd mine = *o;
	struct co co;
	const void *bytes;
	size_t len;
	bool ok = true;

	if (!co_unbundle(file->data, file->len, o->chip ? o->chip : "gfx1100",
			 &bytes, &len, e) ||
	    !co_parse(&co, bytes, len, e))
		return false;
	if (!o->chip && !isa_chip_parse(co.chip, &mine.target.gen))
		ok = err_set(e, ERR_UNSUPPORTED,
			     "the object is for %s, which T0 does not know; "
			     "--chip NAME reads it as another",
			     co.chip);
	if (ok && o->kernel) {
		only = co_kernel_require(&co, o->kernel, e);
		ok = only != NULL;
	}
	for (uint32_t i = 0; ok && i < co.n_kernels; i++) {
		const struct co_kernel *k = &co.kernels[i];

		if (only && only != k)
			continue;
		if (o->cmd.format == TABLE_TEXT)
			fprintf(o->cmd.out, "%s%s: // %s, wave%d\n",
				i ? "\n" : "", k->name, co.chip, wave_of(o, k));
		dis_range(&mine, k->code, k->code_bytes, k->entry_vaddr,
			  wave_of(o, k), table, k->name);
	}
	co_fini(&co);
	return ok;
}

/* --lines: an answer for each line, errors included; always carries on. */
static void dis_lines(const struct isa_cmd *o, const struct buf *file)
{
	const char *p = file->data, *end = p + file->len;
	struct buf bytes = { 0 };

	flockfile(o->cmd.out);
	while (p < end) {
		const char *nl = memchr(p, '\n', end - p);
		size_t len = (nl ? nl : end) - p;
		struct err e = { 0 };
		struct isa_inst in;
		char text[ISA_TEXT_MAX];
		const char *why;

		buf_reset(&bytes);
		if (!isa_parse_hex(p, len, &bytes, &e)) {
			fprintf(o->cmd.out, "error: %s\n", e.msg);
		} else {
			why = isa_decode(&o->target, bytes.data, bytes.len,
					 &in);
			if (!why && in.size_bytes != bytes.len)
				why = "bytes left over";
			if (!why)
				isa_print(&o->target, &in, text, sizeof(text));
			if (why)
				fputs_unlocked("error: ", o->cmd.out);
			fputs_unlocked(why ? why : text, o->cmd.out);
			putc_unlocked('\n', o->cmd.out);
		}
		p += len + 1;
	}
	funlockfile(o->cmd.out);
	buf_fini(&bytes);
}

static bool dis_file(const struct isa_cmd *o, const char *path,
		     struct table *table, struct err *e)
{
	struct buf file = { 0 }, bytes = { 0 };
	bool ok = file_read(path, 0, &file, e);

	if (!ok)
		return false;
	if (o->lines) {
		dis_lines(o, &file);
	} else if (o->hex) {
		ok = isa_parse_hex(file.data, file.len, &bytes, e);
		if (ok)
			dis_range(o, (uint8_t *)bytes.data, bytes.len, 0,
				  o->target.wave, table, NULL);
	} else if (o->raw) {
		dis_range(o, (uint8_t *)file.data, file.len, 0, o->target.wave,
			  table, NULL);
	} else {
		ok = dis_object(o, &file, table, e);
	}
	if (!ok)
		err_wrap(e, "%s", path);
	buf_fini(&file);
	buf_fini(&bytes);
	return ok;
}

bool isa_cmd_dis(struct cmd *c, struct err *e)
{
	struct table table;
	bool ok = true;

	table_init(&table, "kernel,#address,bytes,text");
	for (int i = 0; ok && i < c->argc; i++)
		ok = dis_file((struct isa_cmd *)c, c->argv[i], &table, e);
	if (ok && c->format != TABLE_TEXT)
		ok = cmd_table(c, &table, e);
	table_fini(&table);
	return ok;
}
