/*
 * isa/cmd/cmd_asm.c - t0-isa asm.
 */
#include <string.h>

#include "isa/asm/asm.h"
#include "isa/cmd/cmd.h"
#include "isa/object/object.h"
#include "isa/text/text.h"

/* ---- lines ---- */

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

static void add_answer(struct buf *out, const struct isa_target *t, char *text)
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
static void asm_lines(const struct isa_cmd *o, struct buf *file,
		      struct buf *out)
{
	char *p = file->data, *end = p + file->len;

	while (p < end) {
		char *nl = memchr(p, '\n', end - p);
		size_t len = (nl ? nl : end) - p;

		p[line_length(p, len)] = 0;
		add_answer(out, &o->target, p);
		p += len + 1;
		if (o->cmd.output || out->len < 65536)
			continue;
		fwrite(out->data, 1, out->len, stdout);
		buf_reset(out);
	}
}

/* ---- objects ---- */

static bool write_object(const struct cmd *c, const char *path,
			 const struct buf *elf, struct err *e)
{
	struct buf name = { 0 };
	size_t len = strlen(path);
	bool ok;

	if (c->output)
		return file_write_unsynced(c->output, elf->data, elf->len,
					   e);
	if (!strcmp(path, "-"))
		return fwrite(elf->data, 1, elf->len, stdout) == elf->len ||
		       err_set(e, ERR_IO, "writing to stdout failed");
	if (len > 2 && !strcmp(path + len - 2, ".s"))
		len -= 2;
	buf_add(&name, path, len);
	buf_adds(&name, ".co");
	ok = file_write_unsynced(name.data, elf->data, elf->len, e);
	buf_fini(&name);
	return ok;
}

static bool asm_object(const struct isa_cmd *o, const char *path,
		       const struct buf *file, struct err *e)
{
	struct buf messages = { 0 }, elf = { 0 };
	struct isa_asm_options options = { o->chip, o->wave, o->version,
					   &messages };
	struct isa_object object;
	bool ok;

	isa_object_init(&object);
	ok = isa_assemble(&object, path, file->data ? file->data : "",
			  file->len, &options, e);
	if (!ok && messages.len) {
		fprintf(stderr, "%s\n", messages.data);
		err_set(e, ERR_INPUT, "%s is not assembled", path);
	}
	if (ok && !co_write(&object, &elf, e))
		ok = err_wrap(e, "%s", path);
	ok = ok && write_object(&o->cmd, path, &elf, e);
	isa_object_fini(&object);
	buf_fini(&messages);
	buf_fini(&elf);
	return ok;
}

bool isa_cmd_asm(struct cmd *c, struct err *e)
{
	const struct isa_cmd *o = (struct isa_cmd *)c;
	struct buf lines = { 0 };
	bool ok = true;

	if (o->version && (o->version < 4 || o->version > 6))
		return err_set(
			e, ERR_USAGE,
			"--code-object-version: got %d, wanted 4, 5 or 6",
			o->version);
	if (c->output && c->argc > 1 && !o->lines)
		return err_set(e, ERR_USAGE,
			       "asm: --output names one file, but %d are given",
			       c->argc);
	for (int i = 0; ok && i < c->argc; i++) {
		struct buf file = { 0 };

		ok = file_read(c->argv[i], 0, &file, e);
		if (ok && o->lines)
			asm_lines(o, &file, &lines);
		else if (ok)
			ok = asm_object(o, c->argv[i], &file, e);
		buf_fini(&file);
	}
	if (o->lines && c->output)
		ok = ok && file_write_unsynced(c->output, lines.data, lines.len,
					       e);
	else if (lines.len)
		fwrite(lines.data, 1, lines.len, stdout);
	buf_fini(&lines);
	return ok;
}
