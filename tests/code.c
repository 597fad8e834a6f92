/*
 * tests/code.c - assembly text of tests to machine code (tests/code.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/asm/asm.h"
#include "tests/code.h"

enum { MAX_FILES = 64 };

/* Files that were read, until the process ends. */
static struct source {
	char path[64];
	struct isa_object o;
} sources[MAX_FILES];
static int n_sources;

static _Noreturn void bail_out(const char *path, const char *why)
{
	printf("Bail out! %s: %s\n", path, why);
	exit(2);
}

static void assemble(struct isa_object *o, const char *path, const char *text,
		     size_t len, const char *chip, int wave)
{
	struct isa_asm_options options = { .chip = chip, .wave = wave };
	struct err e = { 0 };

	isa_object_init(o);
	if (!isa_assemble(o, path, text, len, &options, &e))
		bail_out(path, e.msg);
}

static const struct isa_object *source_of(const char *path)
{
	struct buf text = { 0 };
	struct source *s;
	struct err e = { 0 };

	for (s = sources; s < sources + n_sources; s++)
		if (!strcmp(s->path, path))
			return &s->o;
	if (n_sources == MAX_FILES || snprintf(s->path, sizeof(s->path), "%s",
					       path) >= (int)sizeof(s->path))
		bail_out(path, "tests/code.c has no room for it");
	if (!file_read(path, 0, &text, &e))
		bail_out(path, e.msg);
	n_sources++;
	assemble(&s->o, path, text.data, text.len, "gfx1100",
		 strstr(path, "wave64") ? 64 : 32);
	buf_fini(&text);
	return &s->o;
}

static struct code part(const struct isa_object *o, uint64_t from, uint64_t to)
{
	const char *text = isa_section_at(o, 1)->data.data;

	return (struct code){ (const uint32_t *)(const void *)(text + from),
			      (to - from) / 4, to - from };
}

struct code code_file(const char *path)
{
	const struct isa_object *o = source_of(path);

	return part(o, 0, isa_section_at(o, 1)->data.len);
}

struct code code_of(const char *path, const char *label)
{
	const struct isa_object *o = source_of(path);
	int number = isa_object_find(o, label, (int)strlen(label));
	uint64_t from, to = isa_section_at(o, 1)->data.len;

	if (!number)
		bail_out(path, label);
	from = isa_symbol_at(o, number)->value;
	for (int i = 1; i <= o->n_symbols; i++) {
		const struct isa_symbol *s = isa_symbol_at(o, i);

		if (s->name[0] && s->name[0] != '.' && s->value > from &&
		    s->value < to)
			to = s->value;
	}
	return part(o, from, to);
}

size_t code_lines_of(const char *chip, const char *text, int wave, uint32_t *dw,
		     size_t max)
{
	struct isa_object o = { 0 };
	char lines[2048];
	size_t n;

	/* ';' begins a comment. */
	snprintf(lines, sizeof(lines), "%s", text);
	for (char *p = lines; (p = strchr(p, ';'));)
		*p = '\n';
	assemble(&o, text, lines, strlen(lines), chip, wave);
	n = isa_section_at(&o, 1)->data.len / 4;
	if (n > max)
		bail_out(text, "too many instructions");
	memcpy(dw, isa_section_at(&o, 1)->data.data, n * 4);
	isa_object_fini(&o);
	return n;
}

size_t code_lines(const char *text, int wave, uint32_t *dw, size_t max)
{
	return code_lines_of("gfx1100", text, wave, dw, max);
}
