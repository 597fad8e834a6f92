/*
 * isa/cmd/cmd_asm.c - t0-isa asm.
 */
#include <string.h>

#include "isa/asm/asm.h"
#include "isa/cmd/cmd.h"
#include "isa/object/object.h"
#include "isa/text/text.h"

/* ---------------------------------------------------------------- lines ----
 */

/* The line without its comment and the space before it. */
static size_t line_length(const char *p, size_t len)
{
	bool quote = false;

	if (memchr(p, ';', len) || memchr(p, '/', len))
		for (size_t i = 0; i < len; i++) {
			bool slashes = p[i] == '/' && i + 1 < len &&
				       p[i + 1] == '/';

			quote ^= p[i] == '"';
			if (!quote && (p[i] == ';' || slashes))
				len = i;
		}
	while (len && (p[len - 1] == '\r' || p[len - 1] == ' '))
		len--;
	return len;
}

static void answer(struct buf *out, const struct isa_target *t, char *text)
{
	char hex[2 * ISA_MAX_SIZE_BYTES + 1];
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	const char *why = isa_assemble_line(t, text, NULL, NULL, &in, code);
	int n = why ? 0 : in.size_bytes;

	if (why) {
		buf_adds(out, "error: ");
		buf_adds(out, why);
		buf_addc(out, '\n');
		return;
	}
	for (int i = 0; i < n; i++) {
		hex[2 * i] = "0123456789abcdef"[code[i] >> 4];
		hex[2 * i + 1] = "0123456789abcdef"[code[i] & 15];
	}
	hex[2 * n] = '\n';
	buf_add(out, hex, 2 * n + 1);
}

/* An answer for each line, errors included; always carries on. */
static bool asm_lines(const struct isa_cmd *c, struct buf *file, struct err *e)
{
	char *p = file->data, *end = p + file->len;
	struct buf out = { 0 };
	bool ok = true;

	while (ok && p < end) {
		char *nl = memchr(p, '\n', end - p);
		size_t len = (nl ? nl : end) - p;

		p[line_length(p, len)] = 0;
		answer(&out, &c->target, p);
		p += len + 1;
		if (out.len < 65536 && p < end)
			continue;
		if (fwrite(out.data, 1, out.len, c->out) != out.len)
			ok = err_set(e, ERR_IO, "writing the answers failed");
		buf_reset(&out);
	}
	buf_fini(&out);
	return ok;
}

/* --------------------------------------------------------------- objects ----
 */

static bool write_object(const struct isa_cmd *c, const char *path,
			 const struct buf *elf, struct err *e)
{
	struct buf name = { 0 };
	size_t len = strlen(path);
	bool ok;

	if (c->output)
		return file_write_unsynced(c->output, elf->data, elf->len,
					   e);
	if (!strcmp(path, "-"))
		return fwrite(elf->data, 1, elf->len, c->out) == elf->len ||
		       err_set(e, ERR_IO, "writing to stdout failed");
	if (len > 2 && !strcmp(path + len - 2, ".s"))
		len -= 2;
	buf_add(&name, path, len);
	buf_adds(&name, ".co");
	ok = file_write_unsynced(name.data, elf->data, elf->len, e);
	buf_fini(&name);
	return ok;
}

static bool asm_object(const struct isa_cmd *c, const char *path,
		       const struct buf *file, struct err *e)
{
	struct buf messages = { 0 }, elf = { 0 };
	struct isa_asm_options options = { c->chip, c->wave, c->version,
					   &messages };
	struct isa_object o;
	bool ok;

	isa_object_init(&o);
	ok = isa_assemble(&o, path, file->data ? file->data : "", file->len,
			  &options, e);
	if (!ok && messages.len) {
		fprintf(stderr, "%s\n", messages.data);
		err_set(e, ERR_INPUT, "%s is not assembled", path);
	}
	if (ok && (!co_write(&o, &elf, e)))
		ok = err_wrap(e, "%s", path);
	ok = ok && write_object(c, path, &elf, e);
	isa_object_fini(&o);
	buf_fini(&messages);
	buf_fini(&elf);
	return ok;
}

bool isa_cmd_asm(const struct isa_cmd *c, int n, char **path, struct err *e)
{
	bool ok = true;

	if (!n)
		return err_set(e, ERR_USAGE,
			       "asm: no file given; wanted FILE or - (stdin)");
	if (c->version && (c->version < 4 || c->version > 6))
		return err_set(
			e, ERR_USAGE,
			"--code-object-version: got %d, wanted 4, 5 or 6",
			c->version);
	if (c->output && n > 1 && !c->lines)
		return err_set(e, ERR_USAGE,
			       "asm: --output names one file, but %d are given",
			       n);
	for (int i = 0; ok && i < n; i++) {
		struct buf file = { 0 };

		ok = file_read(path[i], 0, &file, e) &&
		     (c->lines ? asm_lines(c, &file, e) :
				 asm_object(c, path[i], &file, e));
		buf_fini(&file);
	}
	return ok;
}
