/*
 * isa/object/obj.c - sections, symbols and relocations in growing arrays.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/vec.h"
#include "isa/object/object.h"

void isa_object_init(struct isa_object *o)
{
	memset(o, 0, sizeof(*o));
	o->chip = "gfx1100";
	o->version = 5;
	o->cap_hash = 256;
	o->hash = xcalloc(o->cap_hash, sizeof(*o->hash));
}

void isa_object_fini(struct isa_object *o)
{
	for (int i = 0; i < o->n_sections; i++)
		buf_fini(&o->section[i].data);
	free(o->section);
	free(o->symbol);
	free(o->reloc);
	free(o->hash);
	buf_fini(&o->metadata);
	arena_fini(&o->mem);
	memset(o, 0, sizeof(*o));
}

static char *copy_name(struct isa_object *o, const char *s, int len)
{
	char *p = arena_alloc(&o->mem, len + 1);

	memcpy(p, s, len);
	return p;
}

int isa_object_section(struct isa_object *o, const char *name, int len,
		       uint32_t type, uint32_t flags)
{
	struct isa_section *s;

	for (int i = 0; i < o->n_sections; i++)
		if (!strncmp(o->section[i].name, name, len) &&
		    !o->section[i].name[len])
			return i + 1;
	VEC_GROW(o->section, o->n_sections, 1, o->cap_sections);
	s = &o->section[o->n_sections++];
	memset(s, 0, sizeof(*s));
	s->name = copy_name(o, name, len);
	s->type = type;
	s->flags = flags;
	s->align = 1;
	return o->n_sections;
}

/* ------------------------------------------------------------ symbols ---- */

/* Hash slot: the one that holds the name, or the empty one for it. */
static size_t slot_of(const struct isa_object *o, const char *name, int len)
{
	size_t at = XXH3_64bits(name, (size_t)len) & (o->cap_hash - 1);

	for (; o->hash[at]; at = (at + 1) & (o->cap_hash - 1)) {
		const char *s = isa_symbol_at(o, o->hash[at])->name;

		if (!strncmp(s, name, len) && !s[len])
			break;
	}
	return at;
}

static void grow_hash(struct isa_object *o)
{
	free(o->hash);
	o->cap_hash *= 2;
	o->hash = xcalloc(o->cap_hash, sizeof(*o->hash));
	for (int i = 1; i <= o->n_symbols; i++) {
		const char *name = isa_symbol_at(o, i)->name;

		if (*name)
			o->hash[slot_of(o, name, strlen(name))] = i;
	}
}

int isa_object_anonymous(struct isa_object *o)
{
	struct isa_symbol *s;

	VEC_GROW(o->symbol, o->n_symbols, 1, o->cap_symbols);
	s = &o->symbol[o->n_symbols++];
	memset(s, 0, sizeof(*s));
	s->name = "";
	return o->n_symbols;
}

int isa_object_find(const struct isa_object *o, const char *name, int len)
{
	return o->hash[slot_of(o, name, len)];
}

int isa_object_symbol(struct isa_object *o, const char *name, int len)
{
	size_t at = slot_of(o, name, len);
	int n = o->hash[at];

	if (n)
		return n;
	if ((size_t)o->n_symbols * 2 >= o->cap_hash) {
		grow_hash(o);
		at = slot_of(o, name, len);
	}
	n = isa_object_anonymous(o);
	isa_symbol_at(o, n)->name = copy_name(o, name, len);
	o->hash[at] = n;
	return n;
}

void isa_object_reloc(struct isa_object *o, const struct isa_reloc *r)
{
	VEC_GROW(o->reloc, o->n_relocs, 1, o->cap_relocs);
	o->reloc[o->n_relocs++] = *r;
}
