/*
 * kfd/soft/watch/objects.c - allocations with their exact sizes, and code
 * objects with their symbols and lines, as the runtime's notes tell them.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/object/lines.h"
#include "kfd/soft/watch/watch_int.h"

/* Index of the first object above va. */
static size_t search_object(const struct soft_watch *t, uint64_t va)
{
	size_t lo = 0, hi = t->n_objects;

	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;

		if (t->object[mid].va <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void object_fini(struct watch_object *o)
{
	co_lines_free(o->lines);
	if (o->elf)
		co_fini(&o->co);
	free(o->elf);
}

static void forget_object(struct soft_watch *t, uint64_t va)
{
	const size_t i = search_object(t, va);

	if (!i || t->object[i - 1].va != va)
		return;
	object_fini(&t->object[i - 1]);
	memmove(&t->object[i - 1], &t->object[i],
		(t->n_objects - i) * sizeof(*t->object));
	t->n_objects--;
}

static void take_elf(struct watch_object *o, const struct kfd_note *n)
{
	o->is_code = true;
	o->elf = xmalloc(n->elf_bytes);
	memcpy(o->elf, n->elf, n->elf_bytes);
	o->elf_bytes = n->elf_bytes;
	if (!co_parse(&o->co, o->elf, o->elf_bytes, NULL)) {
		co_fini(&o->co);
		free(o->elf);
		o->elf = NULL;
		return;
	}
	o->lines = co_lines_new(o->elf, o->elf_bytes);
}

/* A note about code replaces the one about its memory. */
static void add_object(struct soft_watch *t, const struct kfd_note *n)
{
	struct watch_object o = { .va = n->va, .size_bytes = n->size_bytes };
	size_t i;

	snprintf(o.name, sizeof(o.name), "%s", n->name);
	if (n->kind == KFD_NOTE_CODE)
		take_elf(&o, n);
	VEC_GROW(t->object, t->n_objects, 1, t->cap_objects);
	i = search_object(t, n->va);
	memmove(&t->object[i + 1], &t->object[i],
		(t->n_objects - i) * sizeof(*t->object));
	t->object[i] = o;
	t->n_objects++;
}

void watch_note(struct soft_watch *t, const struct kfd_note *n)
{
	pthread_mutex_lock(&t->lock);
	forget_object(t, n->va);
	if (n->kind != KFD_NOTE_GONE)
		add_object(t, n);
	pthread_mutex_unlock(&t->lock);
}

void watch_objects_fini(struct soft_watch *t)
{
	for (size_t i = 0; i < t->n_objects; i++)
		object_fini(&t->object[i]);
	free(t->object);
}

const struct watch_object *watch_object_below(const struct soft_watch *t,
					      uint64_t va)
{
	const size_t i = search_object(t, va);

	return i ? &t->object[i - 1] : NULL;
}

const struct watch_object *watch_object_at(const struct soft_watch *t,
					   uint64_t va)
{
	const struct watch_object *o = watch_object_below(t, va);

	return o && va - o->va < o->size_bytes ? o : NULL;
}

/* ------------------------------------------------------------- names ---- */

static uint64_t vaddr_of(const struct watch_object *o, uint64_t va)
{
	return va - o->va + o->co.span_vaddr;
}

void watch_place(const struct soft_watch *t, uint64_t pc, struct buf *out)
{
	const struct watch_object *o = watch_object_at(t, pc);
	const struct co_symbol *s = NULL;
	const char *file;
	int line;

	if (o && o->elf)
		s = co_symbol_at(&o->co, vaddr_of(o, pc));
	if (!s) {
		buf_printf(out, "0x%" PRIx64, pc);
		return;
	}
	buf_printf(out, "%s+0x%" PRIx64 " (0x%" PRIx64, s->name,
		   vaddr_of(o, pc) - s->vaddr, pc);
	if (o->lines && co_lines_find(o->lines, vaddr_of(o, pc), &file, &line))
		buf_printf(out, ", %s:%d", file, line);
	buf_addc(out, ')');
}

const char *watch_kernel(const struct soft_watch *t, uint64_t va)
{
	const struct watch_object *o = watch_object_at(t, va);

	if (!o || !o->elf)
		return NULL;
	for (uint32_t i = 0; i < o->co.n_kernels; i++)
		if (o->co.kernels[i].desc_vaddr == vaddr_of(o, va))
			return o->co.kernels[i].name;
	return NULL;
}

/* The symbol's address on the device, 0 if no object has it. */
static uint64_t symbol_va(const struct soft_watch *t, const char *name)
{
	for (size_t i = 0; i < t->n_objects; i++) {
		const struct watch_object *o = &t->object[i];
		const struct co_symbol *s = NULL;

		if (o->elf)
			s = co_symbol_find(&o->co, name);
		if (s)
			return s->vaddr - o->co.span_vaddr + o->va;
	}
	return 0;
}

/* An address as the file has it: of the object whose code holds it. */
static uint64_t file_va(const struct soft_watch *t, uint64_t vaddr)
{
	for (size_t i = 0; i < t->n_objects; i++) {
		const struct watch_object *o = &t->object[i];

		if (o->elf && vaddr >= o->co.span_vaddr &&
		    vaddr - o->co.span_vaddr < o->co.span_bytes)
			return vaddr - o->co.span_vaddr + o->va;
	}
	return vaddr;
}

bool watch_resolve(const struct soft_watch *t, const char *text, uint64_t *va)
{
	const char *plus = strchr(text, '+');
	char name[128];
	uint64_t offset = 0;

	if (isdigit((unsigned char)*text)) {
		if (!cli_u64(text, va, NULL))
			return false;
		if (!watch_object_at(t, *va))
			*va = file_va(t, *va);
		return true;
	}
	if (plus && !cli_u64(plus + 1, &offset, NULL))
		return false;
	snprintf(name, sizeof(name), "%.*s",
		 plus ? (int)(plus - text) : (int)strlen(text), text);
	*va = symbol_va(t, name);
	if (!*va)
		return false;
	*va += offset;
	return true;
}
