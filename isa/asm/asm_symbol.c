/*
 * isa/asm/asm_symbol.c - symbols: their values in expressions, and fixups,
 * which patch bytes once a forward reference is known.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/asm/asm_int.h"

enum { MAX_ALIASES = 32 }; /* of symbols set to symbols */

/* ----------------------------------------------------------- variables ---- */

static struct asm_variable *variable_of(struct assembler *a, int symbol)
{
	while (a->variable.n <= (size_t)symbol)
		vec_add(&a->variable);
	return &a->variable.v[symbol];
}

/* Variable (.set): replace the symbol by the expression it stands for. */
static bool expand_variable(struct assembler *a, struct isa_value *v, bool sub)
{
	for (int i = 0; i < MAX_ALIASES; i++) {
		int symbol = sub ? v->sub : v->add;
		const struct isa_value *is;

		if (!symbol || (size_t)symbol >= a->variable.n ||
		    !a->variable.v[symbol].set)
			return true;
		is = &a->variable.v[symbol].value;
		if (is->sub || is->variant)
			return false;
		v->n = sub ? (uint64_t)v->n - is->n : (uint64_t)v->n + is->n;
		*(sub ? &v->sub : &v->add) = is->add;
	}
	return false;
}

static bool is_place(const struct isa_symbol *s)
{
	return s->where == ISA_SYM_SECTION;
}

/* Replace symbols by numbers as far as they are known. */
static void fold_symbols(struct assembler *a, struct isa_value *v)
{
	const struct isa_symbol *add, *sub;

	expand_variable(a, v, false);
	expand_variable(a, v, true);
	if (v->variant || !v->add || !v->sub)
		return;
	add = isa_symbol_at(a->o, v->add);
	sub = isa_symbol_at(a->o, v->sub);
	if (v->add != v->sub &&
	    (!is_place(add) || !is_place(sub) || add->section != sub->section))
		return;
	v->n = (uint64_t)v->n + add->value - sub->value;
	v->add = v->sub = 0;
}

/* --------------------------------------------------------- expressions ---- */

static int variant_of(const char *s, int len)
{
	static const char *const names[] = {
		[VARIANT_ABS32_LO] = "abs32@lo",
		[VARIANT_ABS32_HI] = "abs32@hi",
		[VARIANT_REL32_LO] = "rel32@lo",
		[VARIANT_REL32_HI] = "rel32@hi",
		[VARIANT_REL64] = "rel64",
		[VARIANT_GOTPCREL] = "gotpcrel",
		[VARIANT_GOTPCREL32_LO] = "gotpcrel32@lo",
		[VARIANT_GOTPCREL32_HI] = "gotpcrel32@hi",
	};

	for (size_t i = 1; i < ARRAY_SIZE(names); i++)
		if (!strncmp(names[i], s, len) && !names[i][len])
			return i;
	return VARIANT_NONE;
}

/* Predefined symbols: numbers that the assembler provides. */
static bool builtin_symbol(struct assembler *a, const char *s, int len,
			   int64_t *n)
{
	const char *chip = a->o->chip + 3;
	size_t digits = strlen(chip);
	const struct {
		const char *name;
		int64_t value;
	} known[] = {
		{ "gfx_generation_number", atoi(chip) / 100 },
		{ "gfx_generation_minor", chip[digits - 2] - '0' },
		{ "gfx_generation_stepping", chip[digits - 1] - '0' },
		{ "next_free_vgpr", a->max_vgpr + 1 },
		{ "next_free_sgpr", a->max_sgpr + 1 },
	};

	if (len < 8 || memcmp(s, ".amdgcn.", 8))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strncmp(known[i].name, s + 8, len - 8) ||
		    known[i].name[len - 8])
			continue;
		*n = known[i].value;
		return true;
	}
	return false;
}

static struct asm_local *local_of(struct assembler *a, int number)
{
	for (size_t i = 0; i < a->local.n; i++)
		if (a->local.v[i].number == number)
			return &a->local.v[i];
	vec_push(&a->local, (struct asm_local){ .number = number });
	return &a->local.v[a->local.n - 1];
}

/* "1b", "1f" */
static bool local_symbol(struct assembler *a, const char *s, int len,
			 struct isa_value *v, const char **why)
{
	struct asm_local *l = local_of(a, atoi(s));

	if (s[len - 1] == 'b') {
		*why = "no such local label before";
		v->add = l->last;
		return l->last;
	}
	if (!l->next)
		l->next = isa_object_anonymous(a->o);
	v->add = l->next;
	return true;
}

static void place_here(struct assembler *a, int symbol)
{
	struct isa_symbol *s = isa_symbol_at(a->o, symbol);

	s->where = ISA_SYM_SECTION;
	s->section = a->section;
	s->value = asm_here(a)->size_bytes;
}

static bool expr_symbol(void *ctx, const char *s, int len, struct isa_value *v,
			const char **why)
{
	struct assembler *a = ctx;
	const char *variant = memchr(s, '@', len);
	int n = variant ? variant - s : len;

	if (*s >= '0' && *s <= '9')
		return local_symbol(a, s, len, v, why);
	if (len == 1 && *s == '.') {
		v->add = isa_object_anonymous(a->o);
		place_here(a, v->add);
		return true;
	}
	if (builtin_symbol(a, s, len, &v->n))
		return true;
	if (variant) {
		v->variant = variant_of(variant + 1, len - n - 1);
		*why = "unknown way to refer to a symbol behind '@'";
		if (!v->variant)
			return false;
	}
	v->add = isa_object_symbol(a->o, s, n);
	if (!v->variant) {
		const struct asm_variable *var = variable_of(a, v->add);

		if (var->set)
			*v = var->value;
	}
	return true;
}

static void expr_fold(void *ctx, struct isa_value *v)
{
	fold_symbols(ctx, v);
}

static const struct isa_expr_env *symbol_env(struct assembler *a,
					     struct isa_expr_env *env)
{
	env->symbol = expr_symbol;
	env->fold = expr_fold;
	env->ctx = a;
	return env;
}

bool asm_value(struct assembler *a, const char **p, struct isa_value *v)
{
	struct isa_expr_env env;
	const char *why;

	*p = isa_skip_space(*p);
	why = isa_expr(p, symbol_env(a, &env), v);
	if (why)
		return asm_error(a, *p, "%s", why);
	fold_symbols(a, v);
	return true;
}

bool asm_number(struct assembler *a, const char **p, int64_t *n)
{
	const char *at = isa_skip_space(*p);
	struct isa_value v;

	if (!asm_value(a, p, &v))
		return false;
	if (v.add || v.sub)
		return asm_error(a, at, "this must be a number by now");
	*n = v.n;
	return true;
}

bool asm_instruction_symbol(void *ctx, const char *s, int len,
			    enum isa_symbol_use use, int64_t *value)
{
	struct assembler *a = ctx;
	struct isa_expr_env env;
	struct isa_value v;
	const char *p;

	buf_reset(&a->scratch);
	buf_add(&a->scratch, s, len);
	p = a->scratch.data;
	if (isa_expr(&p, symbol_env(a, &env), &v) || *p)
		return false;
	fold_symbols(a, &v);
	*value = v.n;
	if (!v.add && !v.sub)
		return true;
	if (use == ISA_SYM_INLINE || use == ISA_SYM_VALUE ||
	    (use == ISA_SYM_BRANCH && (v.n || v.sub)))
		return false;
	a->has_pending = true;
	memset(&a->pending, 0, sizeof(a->pending));
	a->pending.kind = use == ISA_SYM_BRANCH ? FIX_BRANCH : FIX_LITERAL;
	a->pending.value = v;
	*value = 0;
	return true;
}

/* --------------------------------------------------------- definitions ---- */

bool asm_label(struct assembler *a, const char *name, int len)
{
	int symbol = isa_object_symbol(a->o, name, len);

	if (len == 1 && *name == '.')
		return asm_error(a, name, "'.' cannot be a label");
	if (variable_of(a, symbol)->set ||
	    isa_symbol_at(a->o, symbol)->where != ISA_SYM_UNDEFINED)
		return asm_error(a, name, "symbol '%.*s' is already defined",
				 len, name);
	place_here(a, symbol);
	return true;
}

bool asm_local_label(struct assembler *a, int number)
{
	struct asm_local *l = local_of(a, number);

	if (!l->next)
		l->next = isa_object_anonymous(a->o);
	l->last = l->next;
	l->next = 0;
	place_here(a, l->last);
	return true;
}

bool asm_set(struct assembler *a, const char *name, int len,
	     const struct isa_value *v, bool again)
{
	int symbol = isa_object_symbol(a->o, name, len);
	struct asm_variable *var = variable_of(a, symbol);

	if (isa_symbol_at(a->o, symbol)->where != ISA_SYM_UNDEFINED ||
	    (var->set && !again))
		return asm_error(a, name, "symbol '%.*s' is already defined",
				 len, name);
	if (v->add == symbol || v->sub == symbol)
		return asm_error(a, name, "symbol '%.*s' is set to itself", len,
				 name);
	var->set = true;
	var->value = *v;
	return true;
}

/* ------------------------------------------------------------ patching ---- */

static void patch_bytes(struct assembler *a, const struct asm_fixup *f,
			int bytes, uint64_t v)
{
	struct isa_section *s = isa_section_at(a->o, f->section);

	memcpy(s->data.data + f->offset, &v, bytes);
}

static bool fix_error(struct assembler *a, const struct asm_fixup *f,
		      const char *what)
{
	return asm_error_at(a, f->line, f->column, "%s", what);
}

static bool fix_number(struct assembler *a, const struct asm_fixup *f,
		       int bytes, int64_t v)
{
	int bits = 8 * bytes;

	if (bytes < 8 &&
	    (v < -(INT64_C(1) << (bits - 1)) || v >= INT64_C(1) << bits))
		return fix_error(a, f, "the value does not fit");
	patch_bytes(a, f, bytes, v);
	return true;
}

static uint32_t reloc_type(const struct asm_fixup *f, int bytes)
{
	static const uint8_t by_variant[] = {
		[VARIANT_ABS32_LO] = CO_RELOC_ABS32_LO,
		[VARIANT_ABS32_HI] = CO_RELOC_ABS32_HI,
		[VARIANT_REL32_LO] = CO_RELOC_REL32_LO,
		[VARIANT_REL32_HI] = CO_RELOC_REL32_HI,
		[VARIANT_REL64] = CO_RELOC_REL64,
		[VARIANT_GOTPCREL] = CO_RELOC_GOTPCREL,
		[VARIANT_GOTPCREL32_LO] = CO_RELOC_GOTPCREL32_LO,
		[VARIANT_GOTPCREL32_HI] = CO_RELOC_GOTPCREL32_HI,
	};

	if (f->value.variant)
		return (f->value.variant == VARIANT_REL64) == (bytes == 8) ?
			       by_variant[f->value.variant] :
			       0;
	if (f->kind == FIX_LITERAL)
		return CO_RELOC_REL32;
	return bytes == 8 ? CO_RELOC_ABS64 : bytes == 4 ? CO_RELOC_ABS32 : 0;
}

/* symbol + n, or symbol + n - (a place in the fixup's section). */
static bool fix_relocation(struct assembler *a, const struct asm_fixup *f,
			   int bytes)
{
	struct isa_reloc r = { .section = f->section,
			       .offset = f->offset,
			       .symbol = f->value.add,
			       .addend = f->value.n };
	const struct isa_symbol *sub;

	if (!f->value.add)
		return fix_error(a, f, "a symbol cannot stand after '-' alone");
	r.type = reloc_type(f, bytes);
	if (f->value.sub) {
		sub = isa_symbol_at(a->o, f->value.sub);
		if (!is_place(sub) || sub->section != f->section ||
		    f->value.variant || (bytes != 4 && bytes != 8))
			return fix_error(a, f,
					 "the difference of these "
					 "symbols is not known");
		r.type = bytes == 8 ? CO_RELOC_REL64 : CO_RELOC_REL32;
		r.addend += f->offset - sub->value;
	}
	if (!r.type)
		return fix_error(a, f, "no relocation has this size");
	isa_object_reloc(a->o, &r);
	return true;
}

static bool fix_branch(struct assembler *a, const struct asm_fixup *f)
{
	const struct isa_symbol *to = isa_symbol_at(a->o, f->value.add);
	int64_t distance;

	if (!f->value.add) {
		distance = 4 * f->value.n;
	} else if (is_place(to) && to->section == f->section) {
		distance = to->value + f->value.n - f->offset - 4;
	} else {
		struct isa_reloc r = { f->section, f->offset, CO_RELOC_REL16,
				       f->value.add, f->value.n };

		isa_object_reloc(a->o, &r);
		return true;
	}
	if (distance & 3)
		return fix_error(a, f,
				 "branch target is not a multiple of "
				 "four bytes away");
	if (distance < -4 * 0x8000 || distance > 4 * 0x7fff)
		return fix_error(a, f, "branch target is out of range");
	patch_bytes(a, f, 2, distance / 4);
	return true;
}

static bool check_defined(struct assembler *a, const struct asm_fixup *f,
			  int symbol)
{
	const struct isa_symbol *s;

	if (!symbol)
		return true;
	s = isa_symbol_at(a->o, symbol);
	if (s->where != ISA_SYM_UNDEFINED ||
	    (*s->name && strncmp(s->name, ".L", 2)))
		return true;
	return asm_error_at(a, f->line, f->column, "undefined label%s%s",
			    *s->name ? " " : "", s->name);
}

static bool resolve_fixup(struct assembler *a, struct asm_fixup *f)
{
	int bytes = f->kind == FIX_LITERAL ? 4 : f->bytes;
	struct isa_value *v = &f->value;

	fold_symbols(a, v);
	if (!check_defined(a, f, v->add) || !check_defined(a, f, v->sub))
		return false;
	if (f->kind == FIX_BRANCH)
		return fix_branch(a, f);
	if (f->kind == FIX_SIZE) {
		if (v->add || v->sub)
			return fix_error(a, f, "a size must be a number");
		isa_symbol_at(a->o, f->section)->size_bytes = v->n;
		return true;
	}
	if (v->add || v->sub)
		return fix_relocation(a, f, bytes);
	return fix_number(a, f, bytes, v->n);
}

/* Symbols that were set become places or numbers. */
static void define_variables(struct assembler *a)
{
	for (int i = 1; i <= a->o->n_symbols; i++) {
		struct isa_symbol *s = isa_symbol_at(a->o, i);
		struct isa_value v;

		if ((size_t)i >= a->variable.n || !a->variable.v[i].set)
			continue;
		v = a->variable.v[i].value;
		fold_symbols(a, &v);
		if (v.sub || v.variant)
			continue;
		s->where = v.add ? isa_symbol_at(a->o, v.add)->where :
				   ISA_SYM_ABSOLUTE;
		s->section = v.add ? isa_symbol_at(a->o, v.add)->section : 0;
		s->value =
			v.n + (v.add ? isa_symbol_at(a->o, v.add)->value : 0);
	}
}

void asm_resolve(struct assembler *a)
{
	for (size_t i = 0; i < a->fixup.n; i++)
		resolve_fixup(a, &a->fixup.v[i]);
	define_variables(a);
}
