/*
 * kfd/soft/watch/check_mem.c - shadow memory: bounds, alignment, what was
 * written, and races.
 *
 * GPU memory is shadowed by page, from the first access of a dispatch to its
 * end.  A page that neither the host nor an earlier dispatch has touched has no
 * memory behind it yet: the kernel says so, and then each of its bytes is
 * uninitialised until the dispatch writes it.  All other pages count as
 * initialised.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kfd/soft/watch/watch_int.h"

/* 64 KiB of shadow each: 1 GiB in all. */
#define PAGES_MAX 16384u
#define PAGE_MASK (~(uint64_t)(KFD_PAGE_BYTES - 1))

/* ------------------------------------------------------------- pages ---- */

/* Has the page no memory yet?  Swapped-out ones are not zero. */
static bool is_untouched(const uint8_t *host)
{
	unsigned char there = 1;

	if ((uintptr_t)host % KFD_PAGE_BYTES ||
	    mincore((void *)(uintptr_t)host, KFD_PAGE_BYTES, &there) ||
	    there & 1)
		return false;
	for (size_t i = 0; i < KFD_PAGE_BYTES; i++)
		if (host[i])
			return false;
	return true;
}

/* The shadow of the page that holds `va`; NULL: not mapped, or no room. */
static struct shadow_page *page_at(struct actor *a, uint64_t va)
{
	const struct soft_env *env = a->w->group->env;
	struct memory_shadow *m = &a->t->mem;
	struct shadow_page *p;
	struct soft_range r;

	va &= PAGE_MASK;
	p = addr_table_get(&m->page, va);
	if (p || m->page.n == PAGES_MAX)
		return p;
	if (!env->find(env->ctx, va, &r) || va < r.va ||
	    va - r.va > r.size_bytes - KFD_PAGE_BYTES)
		return NULL;
	p = xcalloc(1, sizeof(*p));
	p->race = (struct race_cells){ p->cell, p->split };
	p->tracked = is_untouched(r.host + (va - r.va));
	addr_table_put(&m->page, va, p);
	return p;
}

void memory_reset(struct soft_watch *t)
{
	struct memory_shadow *m = &t->mem;

	for (size_t i = 0; i < m->page.n_slots; i++)
		free(m->page.slot[i].value);
	addr_table_fini(&m->page);
	hb_fini(m);
}

/* ---------------------------------------------------------- validity ---- */

/* Those of bits [from, end) that lie in the byte of bit `from`. */
static uint8_t mask_of(uint64_t from, uint64_t end)
{
	const uint64_t left = end - (from & ~7ull);

	return (uint8_t)((left < 8 ? (1u << left) - 1 : 0xff) & 0xff << from % 8);
}

static bool bits_set(const uint8_t *bits, uint64_t from, uint32_t n)
{
	const uint64_t end = from + n;

	for (uint64_t i = from; i < end; i = (i | 7) + 1)
		if (~bits[i / 8] & mask_of(i, end))
			return false;
	return true;
}

static void set_bits(uint8_t *bits, uint64_t from, uint32_t n, bool on)
{
	const uint64_t end = from + n;

	for (uint64_t i = from; i < end; i = (i | 7) + 1)
		if (on)
			bits[i / 8] |= mask_of(i, end);
		else
			bits[i / 8] &= (uint8_t)~mask_of(i, end);
}

/* The bits of LDS or scratch, and where they begin; NULL: out of bounds. */
static uint8_t *local_bits(const struct actor *a, const struct access *x,
			   uint64_t at, uint32_t n, uint64_t *from)
{
	const uint64_t lane_bytes = a->w->scratch_lane_bytes;

	*from = at;
	if (x->space == SOFT_SPACE_LDS)
		return at + n <= a->sh->l->lds_bytes ? a->sh->lds_valid : NULL;
	*from = (uint64_t)x->lane * lane_bytes + at;
	return at + n <= lane_bytes ? a->sw->scratch : NULL;
}

/* Bytes of [at, at + n) in the page of `at`. */
static uint32_t in_page(uint64_t at, uint32_t n)
{
	const uint64_t left = KFD_PAGE_BYTES - at % KFD_PAGE_BYTES;

	return left < n ? (uint32_t)left : n;
}

bool memory_valid(struct actor *a, const struct access *x, uint32_t first,
		  uint32_t n)
{
	uint64_t at = x->at + first, from;

	if (x->space != SOFT_SPACE_MEMORY) {
		const uint8_t *bits = local_bits(a, x, at, n, &from);

		return !bits || bits_set(bits, from, n);
	}
	while (n) {
		const uint32_t part = in_page(at, n);
		const struct shadow_page *p = page_at(a, at);

		if (p && p->tracked &&
		    !bits_set(p->valid, at % KFD_PAGE_BYTES, part))
			return false;
		at += part, n -= part;
	}
	return true;
}

void memory_set_valid(struct actor *a, const struct access *x, uint32_t first,
		      uint32_t n, bool valid)
{
	uint64_t at = x->at + first, from;

	if (x->space != SOFT_SPACE_MEMORY) {
		uint8_t *bits = local_bits(a, x, at, n, &from);

		if (bits)
			set_bits(bits, from, n, valid);
		return;
	}
	while (n) {
		const uint32_t part = in_page(at, n);
		struct shadow_page *p = page_at(a, at);

		if (p && p->tracked)
			set_bits(p->valid, at % KFD_PAGE_BYTES, part, valid);
		at += part, n -= part;
	}
}

/* ------------------------------------------------ bounds, alignment ---- */

static const char *access_verb(const struct access *x)
{
	return x->atomic ? "atomic on" : x->write ? "writes" : "reads";
}

/* The end of LDS or of the lane's scratch. */
static void check_local_bounds(struct actor *a, const struct access *x)
{
	const bool lds = x->space == SOFT_SPACE_LDS;
	const uint64_t size = lds ? a->sh->lds_bytes :
				    a->sh->l->packet.private_segment_size;

	if (x->at + x->size_bytes <= size)
		return;
	check_report(a, CHECK_BOUNDS, x->lane, 0,
		     "%s %u bytes at offset 0x%llx of %s, which has %llu "
		     "bytes%s",
		     access_verb(x), x->size_bytes, (unsigned long long)x->at,
		     lds ? "LDS" : "scratch", (unsigned long long)size,
		     lds ? "" : " per lane");
}

/*
 * Memory after an allocation, up to the end of its last page, is mapped and
 * nobody's.  Compilers widen scalar loads that begin inside, for they cannot
 * fault; what they load beyond is only wrong if it is used.
 */
static void check_bounds(struct actor *a, const struct access *x)
{
	const struct watch_object *o;
	uint64_t over;

	if (x->space != SOFT_SPACE_MEMORY) {
		check_local_bounds(a, x);
		return;
	}
	o = watch_object_below(a->t, x->at);
	if (!o || x->at + x->size_bytes <= o->va + o->size_bytes ||
	    x->at >= ((o->va + o->size_bytes + KFD_PAGE_BYTES - 1) & PAGE_MASK))
		return;
	if (x->lane < 0 && x->at < o->va + o->size_bytes)
		return;
	over = x->at - o->va;
	check_report(a, CHECK_BOUNDS, x->lane, 0,
		     "%s %u bytes at 0x%llx, %llu bytes into '%s', which has "
		     "%llu bytes",
		     access_verb(x), x->size_bytes, (unsigned long long)x->at,
		     (unsigned long long)over, o->name,
		     (unsigned long long)o->size_bytes);
}

/*
 * Compute queues allow any address, so this is about mistakes: what is wider
 * than 4 bytes is a vector, whose elements may have 2 bytes in memory.
 */
static void check_align(struct actor *a, const struct access *x)
{
	const uint32_t elem = x->space == SOFT_SPACE_MEMORY ? 2 : 4;
	const uint32_t n = a->s->access.bytes && !x->atomic &&
				   x->size_bytes > 4 ? elem : x->size_bytes;

	if (!(n & (n - 1)) && !(x->at & (n - 1)))
		return;
	if (n & (n - 1))
		return; /* a typed access of three components */
	check_report(a, CHECK_ALIGN, x->lane, 0,
		     "%s %u bytes at 0x%llx%s, which is no multiple of %u",
		     access_verb(x), x->size_bytes, (unsigned long long)x->at,
		     x->space == SOFT_SPACE_MEMORY ? "" :
		     x->space == SOFT_SPACE_LDS	   ? " of LDS" :
						     " of scratch",
		     n);
}

/* ------------------------------------------------------------- races ---- */

/*
 * Does an LDS store leave what is there?  Compilers that replicate a value over
 * waves let all of them store it: in any order the bytes are the same.
 */
static bool stores_same(const struct actor *a, const struct access *x)
{
	const struct site *s = a->s;
	const uint32_t *f = s->u.in.f;
	const bool second = s->n_addr == 2 && x->part;
	const uint32_t reg = second ? f[ISA_F_DATA1] : f[ISA_F_DATA0];
	const int high = s->info->flags & ISA_HI ? 2 : 0;
	uint32_t data[4] = { 0 };

	if (s->kind != SITE_LDS || !s->is_store || x->atomic ||
	    x->at + x->size_bytes > a->sh->l->lds_bytes)
		return false;
	for (uint32_t i = 0; i < (x->size_bytes + 3u) / 4; i++)
		data[i] = a->w->v[x->lane / SOFT_LANES][reg + i]
				 [x->lane % SOFT_LANES];
	return !memcmp(a->w->group->lds + x->at, (uint8_t *)data + high,
		       x->size_bytes);
}

static bool is_plain_write(const struct race_slot *r)
{
	return (r->flags & (RACE_WRITE | RACE_ATOMIC)) == RACE_WRITE;
}

static bool is_conflict(const struct actor *a, const struct race_slot *old,
			const struct race_slot *new)
{
	const uint8_t sync = RACE_ATOMIC | RACE_SYNC;

	if (!old->wave || old->wave == new->wave || !(old->mask & new->mask) ||
	    !((old->flags | new->flags) & RACE_WRITE))
		return false;
	if (old->flags & sync && new->flags & sync)
		return false;
	return !hb_before(a, old->wave - 1, old->cls, old->seq);
}

/* "by workgroup 0,0,0, wave 1, lane 5" */
static void describe_actor(const struct actor *a, const struct race_slot *r,
			   struct buf *out)
{
	const struct soft_launch *l = a->sh->l;
	const uint64_t g = (r->wave - 1) / l->waves_per_group;

	buf_printf(out, "by workgroup %u,%u,%u, wave %u",
		   (unsigned)(g % l->n_groups[0]),
		   (unsigned)(g / l->n_groups[0] % l->n_groups[1]),
		   (unsigned)(g / l->n_groups[0] / l->n_groups[1]),
		   (unsigned)((r->wave - 1) % l->waves_per_group));
	if (r->lane >= 0)
		buf_printf(out, ", lane %d", r->lane);
}

static const char *access_kind(uint8_t flags)
{
	return flags & RACE_ATOMIC ? "atomic access" :
	       flags & RACE_WRITE  ? "write" :
				     "read";
}

static void report_race(struct actor *a, const struct race_slot *old,
			const struct race_slot *new, const struct access *x,
			uint64_t at)
{
	const struct site *s = watch_site(a->t, old->site);
	const struct watch_object *o = NULL;
	struct buf text = { 0 };

	if (check_known(a->t, CHECK_RACE, a->s->pc, s->pc))
		return;
	if (x->space == SOFT_SPACE_MEMORY)
		o = watch_object_below(a->t, at);
	buf_printf(&text, "%s at 0x%llx", access_kind(new->flags),
		   (unsigned long long)at);
	if (o && at < o->va + o->size_bytes)
		buf_printf(&text, ", %llu bytes into '%s',",
			   (unsigned long long)(at - o->va), o->name);
	else if (x->space == SOFT_SPACE_LDS)
		buf_adds(&text, " of LDS");
	buf_printf(&text, " is not ordered with this %s ",
		   access_kind(old->flags));
	describe_actor(a, old, &text);
	buf_adds(&text, ":\n  ");
	check_where(a->t, s, &text);
	check_report(a, CHECK_RACE, x->lane, s->pc, "%s", text.data);
	buf_fini(&text);
}

/* Of this wave's earlier accesses the same one, which a new one replaces. */
static int find_own(const struct race_cell *c, const struct race_slot *new)
{
	int i = 0;

	while (i < RACE_SLOTS && !(c->slot[i].wave == new->wave &&
				   c->slot[i].flags == new->flags &&
				   !(c->slot[i].mask & ~new->mask)))
		i++;
	return i;
}

/* A free place, the last first, since it is the oldest; or any. */
static int find_place(const struct actor *a, const struct race_cell *c,
		      const struct race_slot *new)
{
	for (int i = RACE_SLOTS - 1; i >= 0; i--) {
		const struct race_slot *r = &c->slot[i];

		if (!r->wave || hb_before(a, r->wave - 1, r->cls, r->seq))
			return i;
	}
	return (int)(new->seq % RACE_SLOTS);
}

/*
 * Accesses are remembered with the last one first.  What is behind an earlier
 * read by the same instruction, that one was held against already; a write may
 * store something else this time.
 */
static void race_dword(struct actor *a, struct race_cell *c,
		       const struct race_slot *new, const struct access *x,
		       uint64_t at, bool same)
{
	const int own = find_own(c, new);
	const bool again = own < RACE_SLOTS &&
			   (new->flags & RACE_WRITE) == 0 &&
			   c->slot[own].site == new->site &&
			   c->slot[own].mask == new->mask;
	const int n = again ? own : RACE_SLOTS;
	int to;

	for (int i = 0; i < n; i++)
		if (is_conflict(a, &c->slot[i], new) &&
		    !(same && is_plain_write(&c->slot[i])) &&
		    !check_guess(a, &c->slot[i], new))
			report_race(a, &c->slot[i], new, x, at);
	to = own < RACE_SLOTS ? own : find_place(a, c, new);
	for (; to > 0; to--)
		c->slot[to] = c->slot[to - 1];
	c->slot[0] = *new;
}

/* The cells of a place, and which it has; NULL: it has none. */
static struct race_cells *cells_at(struct actor *a, const struct access *x,
				   uint64_t at, uint32_t *index)
{
	struct shadow_page *p;

	*index = (uint32_t)(at / 4);
	if (x->space == SOFT_SPACE_LDS)
		return at < a->sh->l->lds_bytes ? &a->sh->lds_race : NULL;
	*index = at % KFD_PAGE_BYTES / 4;
	p = page_at(a, at);
	return p ? &p->race : NULL;
}

/* Its four dwords are remembered one by one from now on. */
static void split_block(struct race_cells *c, uint32_t block)
{
	struct race_cell *four = &c->cell[block * RACE_BLOCK];

	if (c->split[block / 8] >> block % 8 & 1)
		return;
	c->split[block / 8] |= (uint8_t)(1u << block % 8);
	for (int i = 1; i < RACE_BLOCK; i++)
		four[i] = four[0];
}

/* The part of a block from `at` on; how many bytes that is. */
static uint32_t race_block(struct actor *a, struct race_slot *new,
			   const struct access *x, uint64_t at, uint32_t left,
			   bool same)
{
	const uint32_t room = 16 - at % 16, n = left < room ? left : room;
	uint32_t first, block;
	struct race_cells *c = cells_at(a, x, at, &first);

	if (!c)
		return n;
	block = first / RACE_BLOCK;
	new->mask = 0xf;
	if (n == 16 && !(c->split[block / 8] >> block % 8 & 1)) {
		race_dword(a, &c->cell[first], new, x, at, same);
		return n;
	}
	split_block(c, block);
	for (uint64_t i = at; i < at + n; i = (i | 3) + 1) {
		const uint64_t end = (i | 3) + 1,
			       last = end < at + n ? end : at + n;

		new->mask = (uint8_t)(((1u << (last - i)) - 1) << (i & 3));
		race_dword(a, &c->cell[first + (i / 4 - at / 4)], new, x, i,
			   same);
	}
	return n;
}

/* The class under which the access will be known to be complete. */
static uint8_t class_of(const struct actor *a, const struct access *x)
{
	if (x->lane < 0)
		return check_scalar_class(a);
	if (x->space == SOFT_SPACE_LDS)
		return a->s->kind == SITE_LDS ? CLASS_LDS : CLASS_ANY;
	return a->s->is_load || a->s->returns ? CLASS_VM : CLASS_VS;
}

static uint8_t flags_of(const struct actor *a, const struct access *x)
{
	const struct isa_inst *in = &a->s->u.in;
	const bool coherent = in->gen == ISA_GFX12 ? in->f[ISA_F_SCOPE] :
						     in->f[ISA_F_GLC];
	const bool glc = a->s->kind != SITE_LDS && x->lane >= 0 && coherent;

	return (uint8_t)((x->write ? RACE_WRITE : 0) |
			 (x->atomic ? RACE_ATOMIC : 0) |
			 ((!x->write && glc) ||
			  (x->write && !x->atomic && a->sw->released) ?
				  RACE_SYNC : 0));
}

static void check_race(struct actor *a, const struct access *x, uint32_t seq)
{
	struct race_slot new = { .wave = a->sw->number + 1,
				 .seq = seq,
				 .site = a->s->id,
				 .lane = x->lane,
				 .cls = class_of(a, x),
				 .flags = flags_of(a, x) };
	const bool same = stores_same(a, x);

	for (uint32_t i = 0; i < x->size_bytes;)
		i += race_block(a, &new, x, x->at + i, x->size_bytes - i, same);
	if (new.flags & (RACE_ATOMIC | RACE_SYNC)) {
		const uint64_t group = UINT64_C(1) << 63 | a->sh->index << 16;

		hb_atomic(a, x->space == SOFT_SPACE_LDS ? x->at | group : x->at,
			  !x->write || a->s->returns, x->write);
	}
}

void check_memory(struct actor *a, uint32_t seq)
{
	for (int i = 0; i < a->t->n_accesses; i++) {
		const struct access *x = &a->t->access[i];

		check_bounds(a, x);
		check_align(a, x);
		if (x->space != SOFT_SPACE_SCRATCH)
			check_race(a, x, seq);
	}
}
