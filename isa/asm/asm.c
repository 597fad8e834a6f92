/*
 * isa/asm/asm.c - lines to instructions and directives.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/asm/asm_int.h"

enum { MAX_ERRORS = 20 };

/* ------------------------------------------------------------- errors ---- */

/* Source line `number`, as the file has it. */
static const char *original_line(const struct assembler *a, int number,
				 int *len)
{
	const char *p = a->original, *end = p + a->original_len, *nl;

	for (int i = 1; i < number && p < end; i++) {
		nl = memchr(p, '\n', end - p);
		p = nl ? nl + 1 : end;
	}
	nl = memchr(p, '\n', end - p);
	*len = (nl ? nl : end) - p;
	return p;
}

static void add_error(struct assembler *a, int line, int column,
		      const char *fmt, va_list ap)
{
	char text[256];
	const char *source;
	int len;

	if (a->n_errors++ >= MAX_ERRORS)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	source = original_line(a, line, &len);
	len = len > 160 ? 160 : len;
	buf_printf(&a->errors, "%s%s:%d", a->errors.len ? "\n" : "", a->file,
		   line);
	if (column >= 0)
		buf_printf(&a->errors, ":%d", column + 1);
	buf_printf(&a->errors, ": %s\n", text);
	for (int i = 0; i < len; i++)
		buf_addc(&a->errors, isprint((unsigned char)source[i]) ||
						     source[i] == '\t' ?
					     source[i] :
					     ' ');
	if (column < 0 || column > len)
		return;
	/* Tabs stay tabs, so that the caret is under its column. */
	buf_addc(&a->errors, '\n');
	for (int i = 0; i < column; i++)
		buf_addc(&a->errors, source[i] == '\t' ? '\t' : ' ');
	buf_addc(&a->errors, '^');
}

bool asm_error_at(struct assembler *a, int line, int column, const char *fmt,
		  ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_error(a, line, column, fmt, ap);
	va_end(ap);
	return false;
}

bool asm_error(struct assembler *a, const char *at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_error(a, a->line_no, at ? (int)(at - a->line) : -1, fmt, ap);
	va_end(ap);
	return false;
}

/* -------------------------------------------------------------- lines ---- */

int asm_name(const char *p)
{
	int n = 0;

	if (!isa_is_name_start(*p))
		return 0;
	while (isa_is_name(p[n]))
		n++;
	return n;
}

/* Characters that may start a comment, or a quotation that hides one. */
static const char special_chars[] = { ';', '/', '#', '"', '\'' };
_Static_assert(sizeof(special_chars) == ASM_N_SPECIAL, "one place for each");

/*
 * Is one of them before `end`?  Where each comes next is looked up once, and
 * again when it was passed, so that most lines need no look at all.
 */
static bool has_special(struct assembler *a, const char *end)
{
	bool found = false;

	for (int i = 0; i < ASM_N_SPECIAL; i++) {
		if (!a->special[i] || a->special[i] < a->next) {
			a->special[i] = memchr(a->next, special_chars[i],
					       a->end - a->next);
			if (!a->special[i])
				a->special[i] = a->end;
		}
		found |= a->special[i] < end;
	}
	return found;
}

/* The end of the string or character literal at p, or of its line. */
static const char *skip_quoted(const char *p, const char *end)
{
	char quote = *p++;

	for (; p < end && *p != '\n' && *p != quote; p++)
		if (*p == '\\' && p + 1 < end && p[1] != '\n')
			p++;
	return p < end && *p == quote ? p + 1 : p;
}

/* A block comment becomes spaces; its lines count. */
static const char *blank_comment(struct assembler *a, const char *p)
{
	const char *from = p, *end;

	end = memmem(p + 2, a->end - p - 2, "*/", 2);
	end = end ? end + 2 : a->end;
	for (; p < end; p++)
		a->more_lines += *p == '\n';
	for (; from < end; from++)
		buf_addc(&a->text, ' ');
	return end;
}

/* The line at a->next with comments and quotes; returns where it ends. */
static const char *careful_line(struct assembler *a)
{
	const char *p = a->next, *end = a->end, *nl;
	bool blank = true;

	while (p < end && *p != '\n') {
		bool pair = *p == '/' && p + 1 < end;

		if (*p == ';' || (*p == '#' && blank) ||
		    (pair && p[1] == '/')) {
			nl = memchr(p, '\n', end - p);
			return nl ? nl : end;
		}
		if (pair && p[1] == '*') {
			p = blank_comment(a, p);
		} else if (*p == '"' || *p == '\'') {
			const char *from = p;

			p = skip_quoted(p, end);
			buf_add(&a->text, from, p - from);
			blank = false;
		} else {
			blank &= *p == ' ' || *p == '\t';
			buf_addc(&a->text, *p++);
		}
	}
	return p;
}

bool asm_next_line(struct assembler *a, bool raw)
{
	const char *nl;

	if (a->next >= a->end)
		return false;
	a->line_no += 1 + a->more_lines;
	a->more_lines = 0;
	nl = memchr(a->next, '\n', a->end - a->next);
	if (!nl)
		nl = a->end;
	buf_reset(&a->text);
	buf_add(&a->text, "", 0); /* so that there is a NUL, at least */
	if (raw || !has_special(a, nl))
		buf_add(&a->text, a->next, nl - a->next);
	else
		nl = careful_line(a);
	if (a->text.len && a->text.data[a->text.len - 1] == '\r')
		a->text.data[a->text.len - 1] = 0;
	a->line = a->text.data;
	a->next = nl < a->end ? nl + 1 : nl;
	return true;
}

/* --------------------------------------------------------------- bytes ---- */

bool asm_emit(struct assembler *a, const void *data, size_t len_bytes)
{
	struct isa_section *s = asm_here(a);

	if (s->type == ISA_SHT_NOBITS)
		return asm_error(a, NULL, "section %s has no bytes of its own",
				 s->name);
	buf_add(&s->data, data, len_bytes);
	s->size_bytes += len_bytes;
	return true;
}

bool asm_emit_fill(struct assembler *a, uint64_t n_bytes, uint8_t byte)
{
	struct isa_section *s = asm_here(a);

	if (n_bytes > CO_MAX_SPAN_BYTES)
		return asm_error(a, NULL, "%llu bytes are too many",
				 (unsigned long long)n_bytes);
	s->size_bytes += n_bytes;
	if (s->type == ISA_SHT_NOBITS)
		return !byte ||
		       asm_error(a, NULL, "section %s holds zeros only",
				 s->name);
	for (uint64_t i = 0; i < n_bytes; i++)
		buf_addc(&s->data, byte);
	return true;
}

void asm_fixup(struct assembler *a, const struct asm_fixup *f)
{
	vec_push(&a->fixup, *f);
}

/* ---------------------------------------------------------- statements ---- */

/* For .amdgcn.next_free_vgpr and _sgpr. */
static void note_registers(struct assembler *a, const struct isa_inst *in)
{
	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];
		int last = o->reg + (o->dwords ? o->dwords : 1) - 1;

		if (o->kind == ISA_K_VGPR && last > a->max_vgpr)
			a->max_vgpr = last;
		else if (o->kind == ISA_K_SGPR && last < ISA_R_VCC_LO &&
			 last > a->max_sgpr)
			a->max_sgpr = last;
	}
}

static bool read_instruction(struct assembler *a, const char *p)
{
	struct isa_inst in;
	uint8_t code[ISA_MAX_SIZE_BYTES];
	const char *why;

	a->has_pending = false;
	why = isa_assemble_line(&a->t, p, asm_instruction_symbol, a, &in, code);
	if (why)
		return asm_error(a, p, "%s", why);
	if (a->has_pending) {
		struct asm_fixup *f = &a->pending;

		f->section = a->section;
		f->line = a->line_no;
		f->column = p - a->line;
		f->offset = asm_here(a)->size_bytes +
			    (f->kind == FIX_LITERAL ? in.size_bytes - 4 : 0);
		asm_fixup(a, f);
	}
	note_registers(a, &in);
	if (asm_here(a)->align < 4)
		asm_here(a)->align = 4;
	return asm_emit(a, code, in.size_bytes);
}

/* "name = value" */
static bool read_assignment(struct assembler *a, const char *p, int len)
{
	const char *s = isa_skip_space(p + len) + 1;
	struct isa_value v;

	if (*s == '=')
		s++;
	if (!asm_value(a, &s, &v))
		return false;
	if (*isa_skip_space(s))
		return asm_error(a, s, "unexpected text behind the value");
	return asm_set(a, p, len, &v, true);
}

/* Labels at *p: moves past them, to a name of *name_len characters. */
static bool read_labels(struct assembler *a, const char **p, int *name_len)
{
	for (;;) {
		const char *s = *p = isa_skip_space(*p), *colon;
		bool local = isdigit((unsigned char)*s);
		int len = *name_len = asm_name(s);

		while (local && isdigit((unsigned char)s[len]))
			len++;
		colon = isa_skip_space(s + len);
		if (!len || *colon != ':' || colon[1] == ':')
			return true;
		*p = colon + 1;
		if (local ? !asm_local_label(a, atoi(s)) :
			    !asm_label(a, s, len))
			return false;
	}
}

static bool read_statement(struct assembler *a)
{
	const char *p = a->line;
	int len;

	if (!read_labels(a, &p, &len))
		return false;
	if (!*p)
		return true;
	if (len && *isa_skip_space(p + len) == '=')
		return read_assignment(a, p, len);
	if (*p == '.' && len)
		return asm_directive(a, p, len, isa_skip_space(p + len));
	return read_instruction(a, p);
}

/* ---------------------------------------------------------------- file ---- */

/* A descriptor for 64 lanes says how to read the code before it. */
static int wave_of(const char *text, size_t len)
{
	static const char key[] = ".amdhsa_wavefront_size32";
	const char *p = text, *end = text + len;

	while ((p = memmem(p, end - p, key, sizeof(key) - 1))) {
		p += sizeof(key) - 1;
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (p < end && *p == '0')
			return 64;
	}
	return 32;
}

static bool set_target(struct assembler *a, struct err *e)
{
	const char *chip = a->options.chip ? a->options.chip : a->o->chip;

	if (!isa_chip_parse(chip, &a->t.gen) || !isa_gen_known(a->t.gen))
		return err_set(e, ERR_UNSUPPORTED,
			       "%s: instructions of %s are not known", a->file,
			       chip);
	a->o->chip = arena_strdup(&a->o->mem, chip);
	if (a->options.version)
		a->o->version = a->options.version;
	return true;
}

static void assembler_fini(struct assembler *a)
{
	buf_fini(&a->text);
	vec_fini(&a->fixup);
	vec_fini(&a->variable);
	vec_fini(&a->local);
	buf_fini(&a->errors);
	buf_fini(&a->scratch);
}

bool isa_assemble(struct isa_object *o, const char *name, const char *text,
		  size_t len, const struct isa_asm_options *options,
		  struct err *e)
{
	struct assembler a = { .o = o,
			       .file = name,
			       .options = *options,
			       .original = text,
			       .original_len = len,
			       .max_vgpr = -1,
			       .max_sgpr = -1 };
	bool ok = false;

	if (memchr(text, 0, len))
		return err_set(e, ERR_INPUT,
			       "%s: a NUL byte: this is no assembly text",
			       name);
	a.t.wave = options->wave ? options->wave : wave_of(text, len);
	if (!set_target(&a, e))
		return false;
	a.next = text;
	a.end = text + len;
	a.section = a.previous = isa_object_section(
		o, ".text", 5, ISA_SHT_PROGBITS, ISA_SHF_ALLOC | ISA_SHF_EXEC);
	while (a.n_errors < MAX_ERRORS && asm_next_line(&a, false))
		read_statement(&a);
	if (!a.n_errors)
		asm_resolve(&a);
	ok = !a.n_errors;
	if (options->messages && a.errors.len)
		buf_add(options->messages, a.errors.data, a.errors.len);
	if (!ok)
		err_set(e, ERR_INPUT, "%s", a.errors.data);
	assembler_fini(&a);
	return ok;
}
