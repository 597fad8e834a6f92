/*
 * isa/asm/asm_directive.c - directives: a table of names, a function for each
 * kind.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/asm/asm_int.h"

/* --------------------------------------------------------------- input ---- */

bool dir_done(struct directive *d)
{
	d->p = isa_skip_space(d->p);
	return !*d->p || asm_error(d->a, d->p, "unexpected text");
}

bool dir_comma(struct directive *d)
{
	d->p = isa_skip_space(d->p);
	if (*d->p != ',')
		return false;
	d->p = isa_skip_space(d->p + 1);
	return true;
}

static bool want_comma(struct directive *d)
{
	return dir_comma(d) || asm_error(d->a, d->p, "wanted ','");
}

/* A name, also in quotes. */
static bool read_name(struct directive *d, const char **s, int *len)
{
	const char *p = d->p = isa_skip_space(d->p);

	*s = p;
	*len = asm_name(p);
	if (*p == '"') {
		const char *end = strchr(p + 1, '"');

		if (!end || end == p + 1)
			return asm_error(d->a, p, "wanted a name in quotes");
		*s = p + 1;
		*len = end - p - 1;
		d->p = end + 1;
		return true;
	}
	if (!*len)
		return asm_error(d->a, p, "wanted a name");
	d->p = p + *len;
	return true;
}

bool dir_number(struct directive *d, int64_t low, int64_t high,
		      int64_t *v)
{
	const char *at = d->p;

	if (!asm_number(d->a, &d->p, v))
		return false;
	if (*v < low || *v > high)
		return asm_error(d->a, at, "%lld is out of range %lld to %lld",
				 (long long)*v, (long long)low,
				 (long long)high);
	return true;
}

/* ------------------------------------------------------------- sections ----
 */

static bool enter_section(struct assembler *a, int section)
{
	a->previous = a->section;
	a->section = section;
	return true;
}

static bool known_section(struct directive *d)
{
	static const struct {
		const char *name;
		uint32_t type, flags;
	} known[] = {
		{ ".text", ISA_SHT_PROGBITS, ISA_SHF_ALLOC | ISA_SHF_EXEC },
		{ ".data", ISA_SHT_PROGBITS, ISA_SHF_ALLOC | ISA_SHF_WRITE },
		{ ".bss", ISA_SHT_NOBITS, ISA_SHF_ALLOC | ISA_SHF_WRITE },
		{ ".rodata", ISA_SHT_PROGBITS, ISA_SHF_ALLOC },
	};
	const char *s = known[d->arg].name;

	return dir_done(d) &&
	       enter_section(d->a, isa_object_section(d->a->o, s, strlen(s),
						      known[d->arg].type,
						      known[d->arg].flags));
}

static bool section_flags(struct directive *d, uint32_t *flags)
{
	static const struct {
		char letter;
		uint32_t flag;
	} letters[] = {
		{ 'a', ISA_SHF_ALLOC },
		{ 'w', ISA_SHF_WRITE },
		{ 'x', ISA_SHF_EXEC },
		{ 'M', ISA_SHF_MERGE },
		{ 'S', ISA_SHF_STRINGS },
		{ 'e', 0 },
		{ 'R', 0 },
	};
	const char *p = d->p;

	if (*p != '"')
		return asm_error(d->a, p, "wanted section flags in quotes");
	for (p++; *p && *p != '"'; p++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(letters) && letters[i].letter != *p)
			i++;
		if (i == ARRAY_SIZE(letters))
			return asm_error(d->a, p, "unknown section flag '%c'",
					 *p);
		*flags |= letters[i].flag;
	}
	if (!*p)
		return asm_error(d->a, d->p, "'\"' missing");
	d->p = p + 1;
	return true;
}

static bool section_type(struct directive *d, uint32_t *type)
{
	const char *at = d->p, *s;
	int len;

	if (*d->p == '@' || *d->p == '%')
		d->p++;
	if (!read_name(d, &s, &len))
		return false;
	if (!strncmp(s, "nobits", len) && len == 6)
		*type = ISA_SHT_NOBITS;
	else if (!strncmp(s, "note", len) && len == 4)
		*type = ISA_SHT_NOTE;
	else if (strncmp(s, "progbits", len) || len != 8)
		return asm_error(d->a, at,
				 "section type '%.*s' is not known; "
				 "wanted progbits, nobits or note",
				 len, s);
	return true;
}

/* Well-known sections: properties that their names imply. */
static void default_flags(const char *s, int len, uint32_t *type,
			  uint32_t *flags)
{
	*type = ISA_SHT_PROGBITS;
	if (!strncmp(s, ".text", 5))
		*flags = ISA_SHF_ALLOC | ISA_SHF_EXEC;
	else if (!strncmp(s, ".rodata", 7))
		*flags = ISA_SHF_ALLOC;
	else if (!strncmp(s, ".data", 5))
		*flags = ISA_SHF_ALLOC | ISA_SHF_WRITE;
	else if (!strncmp(s, ".bss", 4))
		*flags = ISA_SHF_ALLOC | ISA_SHF_WRITE;
	if (len >= 4 && !strncmp(s, ".bss", 4))
		*type = ISA_SHT_NOBITS;
}

/* .section name[, "flags"[, @type[, entry size]]] */
static bool dir_section(struct directive *d)
{
	uint32_t type, flags = 0;
	int64_t entry = 0;
	const char *s, *p;
	int len, number;

	d->p = p = isa_skip_space(d->p);
	if (*p == '"') {
		if (!read_name(d, &s, &len))
			return false;
	} else {
		while (*p && !strchr(" \t,", *p))
			p++;
		s = d->p;
		len = p - s;
		d->p = p;
	}
	if (!len)
		return asm_error(d->a, d->p, "wanted a section name");
	default_flags(s, len, &type, &flags);
	if (dir_comma(d)) {
		flags = 0;
		if (!section_flags(d, &flags) ||
		    (dir_comma(d) && !section_type(d, &type)) ||
		    (dir_comma(d) && !dir_number(d, 1, 65536, &entry)))
			return false;
	}
	number = isa_object_section(d->a->o, s, len, type, flags);
	isa_section_at(d->a->o, number)->entry_bytes = entry;
	return dir_done(d) && enter_section(d->a, number);
}

static bool dir_previous(struct directive *d)
{
	return dir_done(d) && enter_section(d->a, d->a->previous);
}

/* --------------------------------------------------------------- symbols ----
 */

enum { BIND_GLOBAL = 1, BIND_WEAK, BIND_LOCAL, VISIBLE = 16 };

/* arg: a binding, or VISIBLE + a visibility. */
static bool dir_binding(struct directive *d)
{
	do {
		struct isa_symbol *sym;
		const char *s;
		int len;

		if (!read_name(d, &s, &len))
			return false;
		sym = isa_symbol_at(d->a->o,
				    isa_object_symbol(d->a->o, s, len));
		if (d->arg >= VISIBLE)
			sym->visibility = d->arg - VISIBLE;
		else
			sym->binding = d->arg == BIND_LOCAL ? 0 : d->arg;
	} while (dir_comma(d));
	return dir_done(d);
}

/* .type name, @function */
static bool dir_type(struct directive *d)
{
	static const struct {
		const char *name;
		uint8_t type;
	} types[] = { { "notype", 0 },	   { "object", 1 },
		      { "function", 2 },   { "STT_NOTYPE", 0 },
		      { "STT_OBJECT", 1 }, { "STT_FUNC", 2 } };
	const char *s, *t;
	int len, t_len;

	if (!read_name(d, &s, &len))
		return false;
	dir_comma(d);
	if (*d->p == '@' || *d->p == '%')
		d->p++;
	if (!read_name(d, &t, &t_len))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strncmp(types[i].name, t, t_len) || types[i].name[t_len])
			continue;
		isa_symbol_at(d->a->o, isa_object_symbol(d->a->o, s, len))
			->type = types[i].type;
		return dir_done(d);
	}
	return asm_error(d->a, t, "wanted @function, @object or @notype");
}

/* .size name, expression */
static bool dir_size(struct directive *d)
{
	struct asm_fixup f = { .kind = FIX_SIZE, .line = d->a->line_no };
	const char *s;
	int len;

	if (!read_name(d, &s, &len) || !want_comma(d))
		return false;
	f.column = d->p - d->a->line;
	f.section = isa_object_symbol(d->a->o, s, len);
	if (!asm_value(d->a, &d->p, &f.value) || !dir_done(d))
		return false;
	asm_fixup(d->a, &f);
	return true;
}

/* .set name, expression; arg: may be set again */
static bool dir_set(struct directive *d)
{
	struct isa_value v;
	const char *s;
	int len;

	return read_name(d, &s, &len) && want_comma(d) &&
	       asm_value(d->a, &d->p, &v) && dir_done(d) &&
	       asm_set(d->a, s, len, &v, d->arg);
}

/* ---------------------------------------------------------------- target ----
 */

/*
 * "amdgcn-amd-amdhsa--gfx1100", or "amdgpu11.00-amd-amdhsa-unknown-gfx1100" as
 * LLVM 22 writes it: what is behind the fourth part; NULL: another system.
 */
static const char *target_chip(const char *s, int len)
{
	static const char system[] = "-amd-amdhsa-";
	const char *end = s + len, *p = memchr(s, '-', (size_t)len);

	if (!p || (strncmp(s, "amdgcn-", 7) && strncmp(s, "amdgpu", 6)) ||
	    end - p < (int)sizeof(system) - 1 ||
	    strncmp(p, system, sizeof(system) - 1))
		return NULL;
	p += sizeof(system) - 1;
	if (end - p >= 8 && !strncmp(p, "unknown-", 8))
		return p + 8;
	return p + (p < end && *p == '-');
}

/* .amdgcn_target "amdgcn-amd-amdhsa--gfx1100" */
static bool dir_target(struct directive *d)
{
	const char *at = d->p, *s, *p;
	struct assembler *a = d->a;
	enum isa_gen gen;
	char chip[32];
	int len;

	if (!read_name(d, &s, &len) || !dir_done(d))
		return false;
	p = target_chip(s, len);
	if (!p)
		return asm_error(a, at, "the target is not amdgcn-amd-amdhsa");
	len -= p - s;
	if (len >= (int)sizeof(chip))
		len = sizeof(chip) - 1;
	memcpy(chip, p, len);
	chip[len] = 0;
	chip[strcspn(chip, ":")] = 0;
	if (a->options.chip)
		return !strcmp(a->options.chip, chip) ||
		       asm_error(a, at, "the file is for %s, asked for is %s",
				 chip, a->options.chip);
	if (!isa_chip_parse(chip, &gen) || !isa_gen_known(gen))
		return asm_error(a, at, "instructions of %s are not known",
				 chip);
	a->t.gen = gen;
	a->o->chip = arena_strdup(&a->o->mem, chip);
	return true;
}

static bool dir_version(struct directive *d)
{
	int64_t v;

	if (!dir_number(d, 4, 6, &v) || !dir_done(d))
		return false;
	if (!d->a->options.version)
		d->a->o->version = v;
	return true;
}

static bool dir_kernel(struct directive *d)
{
	return asm_kernel(d->a, d->p);
}

static bool dir_metadata(struct directive *d)
{
	return dir_done(d) && asm_metadata(d->a);
}

/* Debug information and the compiler's name: the object has none. */
static bool dir_ignore(struct directive *d)
{
	(void)d;
	return true;
}

/* ----------------------------------------------------------------- table ----
 */

static const struct {
	const char *name;
	bool (*fn)(struct directive *d);
	int arg;
} directives[] = {
	{ ".long", dir_data, 4 },
	{ ".byte", dir_data, 1 },
	{ ".short", dir_data, 2 },
	{ ".quad", dir_data, 8 },
	{ ".4byte", dir_data, 4 },
	{ ".int", dir_data, 4 },
	{ ".2byte", dir_data, 2 },
	{ ".hword", dir_data, 2 },
	{ ".value", dir_data, 2 },
	{ ".8byte", dir_data, 8 },
	{ ".float", dir_floats, 4 },
	{ ".single", dir_floats, 4 },
	{ ".double", dir_floats, 8 },
	{ ".ascii", dir_strings, 0 },
	{ ".asciz", dir_strings, 1 },
	{ ".string", dir_strings, 1 },
	{ ".zero", dir_space, 0 },
	{ ".skip", dir_space, 0 },
	{ ".space", dir_space, 0 },
	{ ".fill", dir_fill, 0 },
	{ ".p2align", dir_align, 8 | 1 },
	{ ".p2alignw", dir_align, 8 | 2 },
	{ ".p2alignl", dir_align, 8 | 4 },
	{ ".align", dir_align, 1 },
	{ ".balign", dir_align, 1 },
	{ ".balignw", dir_align, 2 },
	{ ".balignl", dir_align, 4 },
	{ ".text", known_section, 0 },
	{ ".data", known_section, 1 },
	{ ".bss", known_section, 2 },
	{ ".rodata", known_section, 3 },
	{ ".section", dir_section, 0 },
	{ ".previous", dir_previous, 0 },
	{ ".globl", dir_binding, BIND_GLOBAL },
	{ ".global", dir_binding, BIND_GLOBAL },
	{ ".weak", dir_binding, BIND_WEAK },
	{ ".local", dir_binding, BIND_LOCAL },
	{ ".hidden", dir_binding, VISIBLE + 2 },
	{ ".internal", dir_binding, VISIBLE + 1 },
	{ ".protected", dir_binding, VISIBLE + 3 },
	{ ".type", dir_type, 0 },
	{ ".size", dir_size, 0 },
	{ ".set", dir_set, 1 },
	{ ".equ", dir_set, 1 },
	{ ".equiv", dir_set, 0 },
	{ ".amdgcn_target", dir_target, 0 },
	{ ".amdhsa_code_object_version", dir_version, 0 },
	{ ".amdhsa_kernel", dir_kernel, 0 },
	{ ".amdgpu_metadata", dir_metadata, 0 },
	{ ".ident", dir_ignore, 0 },
	{ ".addrsig", dir_ignore, 0 },
	{ ".addrsig_sym", dir_ignore, 0 },
	{ ".file", dir_ignore, 0 },
	{ ".loc", dir_ignore, 0 },
};

bool asm_directive(struct assembler *a, const char *word, int len,
		   const char *p)
{
	struct directive d = { a, p, 0 };

	if (len > 5 && !memcmp(word, ".cfi_", 5))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(directives); i++) {
		if (strncmp(directives[i].name, word, len) ||
		    directives[i].name[len])
			continue;
		d.arg = directives[i].arg;
		return directives[i].fn(&d);
	}
	return asm_error(a, word, "unknown directive %.*s", len, word);
}
