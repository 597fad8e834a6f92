/*
 * Memory and printf of the reference interpreter.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"

enum { MAX_BYTES = SSA_MAX_LANES * 8 };

void interp_get(const struct interp_wave *w, const struct ssa_inst *i,
		uint64_t lane, void *bytes)
{
	const uint32_t size = ssa_type_bytes(i->type);

	for (uint32_t k = 0; k * 8 < size; k++)
		memcpy((uint8_t *)bytes + k * 8, interp_word(w, i, k, lane),
		       size - k * 8 < 8 ? size - k * 8 : 8);
}

void interp_put(struct interp_wave *w, const struct ssa_inst *i, uint64_t lane,
		const void *bytes)
{
	const uint32_t size = ssa_type_bytes(i->type);

	for (uint32_t k = 0; k * 8 < size; k++) {
		uint64_t *to = interp_word(w, i, k, lane);

		*to = 0;
		memcpy(to, (const uint8_t *)bytes + k * 8,
		       size - k * 8 < 8 ? size - k * 8 : 8);
	}
}

/* -------------------------------------------------------------- places -- */

/* Is [p, p + size) in a range?  Most accesses are where the last one was. */
static bool in_ranges(struct interp *m, uint64_t p, uint32_t size)
{
	for (size_t k = 0; k < m->run->n_ranges; k++) {
		const size_t n = (m->last_range + k) % m->run->n_ranges;
		const struct ssa_range *r = &m->run->range[n];
		const uint64_t base = (uint64_t)(uintptr_t)r->base;

		if (p >= base && p - base <= r->size_bytes &&
		    size <= r->size_bytes - (p - base)) {
			m->last_range = n;
			return true;
		}
	}
	return false;
}

/* Where the access of a lane goes, as a host pointer; NULL after an error. */
static void *place(const struct interp_wave *w, const struct ssa_inst *i,
		   uint64_t lane, uint32_t size)
{
	const uint64_t off = interp_arg(w, i, 1, lane);
	const bool lds = i->arg[0]->type.kind == SSA_LDS;
	const uint64_t sum = interp_arg(w, i, 0, lane) + off;
	const uint64_t p = (lds ? (uint32_t)sum : sum) +
			   (uint64_t)(int64_t)i->off;

	if (p & (((uint64_t)1 << i->align) - 1)) {
		interp_fail(w, i, lane, "address 0x%llx is no multiple of %u",
			    (unsigned long long)p, 1u << i->align);
		return NULL;
	}
	if (lds) {
		if (p < w->m->lds_bytes && size <= w->m->lds_bytes - p)
			return w->m->lds + p;
		interp_fail(w, i, lane, "%u bytes at %lld of %u bytes of LDS",
			    size, (long long)p, w->m->lds_bytes);
		return NULL;
	}
	if (in_ranges(w->m, p, size))
		return (void *)(uintptr_t)p;
	interp_fail(w, i, lane, "%u bytes at 0x%llx are outside of all buffers "
		    "(offset %llu)", size, (unsigned long long)p,
		    (unsigned long long)off);
	return NULL;
}

/* ------------------------------------------------------------ accesses -- */

static void read_modify_write(struct interp_wave *w, const struct ssa_inst *i,
			      uint64_t lane, void *p)
{
	const uint32_t size = ssa_type_bytes(i->type);
	const uint64_t value = interp_arg(w, i, 2, lane);
	uint64_t old = 0, new;

	memcpy(&old, p, size);
	if (i->op == SSA_cmpxchg)
		new = old == value ? interp_arg(w, i, 3, lane) : old;
	else
		new = ssa_eval_rmw(i->sub, i->type, old, value);
	memcpy(p, &new, size);
	*interp_word(w, i, 0, lane) = old;
}

static bool access_lane(struct interp_wave *w, const struct ssa_inst *i,
			uint64_t lane, const struct ssa_inst *mask)
{
	uint8_t bytes[MAX_BYTES] = { 0 };
	const struct ssa_inst *moved = i->op == SSA_store ? i->arg[2] : i;
	const uint32_t size = ssa_type_bytes(moved->type);

	if (mask && !*interp_word(w, mask, 0, lane)) {
		if (i->op != SSA_store)
			interp_put(w, i, lane, bytes);
		return true;
	}
	void *p = place(w, i, lane, size);

	if (!p)
		return false;
	if (i->op == SSA_store) {
		interp_get(w, moved, lane, bytes);
		memcpy(p, bytes, size);
	} else if (i->op == SSA_load) {
		memcpy(bytes, p, size);
		interp_put(w, i, lane, bytes);
	} else {
		read_modify_write(w, i, lane, p);
	}
	return true;
}

bool interp_access(struct interp_wave *w, const struct ssa_inst *i)
{
	const uint32_t fixed = i->op == SSA_load    ? 2 :
			       i->op == SSA_cmpxchg ? 4 :
						      3;
	const struct ssa_inst *mask = i->n_args > fixed ? i->arg[fixed] : NULL;

	INTERP_EACH(lane, w->mask)
		if (!access_lane(w, i, lane, mask))
			return false;
	return true;
}

/* -------------------------------------------------------------- printf -- */

/* One conversion, "%-5.2lf" without its length: as C would print the value. */
static void convert(struct buf *out, const char *spec, size_t n,
		    enum ssa_kind kind, uint64_t bits)
{
	const char how = spec[n - 1];
	char fmt[32];
	size_t len = 0;

	for (size_t k = 0; k < n - 1 && len < sizeof(fmt) - 4; k++)
		if (!strchr("hlzjt", spec[k]))
			fmt[len++] = spec[k];
	if (strchr("diuxXoc", how)) {
		fmt[len++] = 'l';
		fmt[len++] = 'l';
	}
	fmt[len++] = how;
	fmt[len] = 0;
	char text[128] = "";
	const bool is_signed = how == 'd' || how == 'i';

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (strchr("diuxXo", how))
		snprintf(text, sizeof(text), fmt,
			 is_signed ? (long long)ssa_bits_to_s(kind, bits) :
				     (long long)bits);
	else if (strchr("aAeEfFgG", how))
		snprintf(text, sizeof(text), fmt, ssa_bits_to_f64(kind, bits));
	else if (how == 'p')
		snprintf(text, sizeof(text), fmt, (void *)(uintptr_t)bits);
	else
		text[0] = (char)bits; /* c */
#pragma GCC diagnostic pop
	buf_adds(out, text);
}

static void print_lane(struct interp_wave *w, const struct ssa_inst *i,
		       uint64_t lane, struct buf *out)
{
	const char *p = w->m->f->format[i->imm];
	uint32_t k = 0;

	while (*p) {
		if (*p != '%' || p[1] == '%') {
			buf_addc(out, *p);
			p += 1 + (*p == '%');
			continue;
		}
		const size_t n = strcspn(p, "diuxXocaAeEfFgGp") + 1;

		if (k == i->n_args || !p[n - 1])
			break;
		convert(out, p, n, i->arg[k]->type.kind,
			interp_arg(w, i, k, lane));
		k++;
		p += n;
	}
}

void interp_printf(struct interp_wave *w, const struct ssa_inst *i)
{
	if (w->m->run->printed)
		INTERP_EACH(lane, w->mask)
			print_lane(w, i, lane, w->m->run->printed);
}
