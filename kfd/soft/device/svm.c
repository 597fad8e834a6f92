/*
 * kfd/soft/device/svm.c - SVM: ranges of the program's own memory that the GPU
 * uses at the program's addresses.
 *
 * The GPU cannot retry faults (XNACK is off), so that a range with access is
 * mapped when its attributes are set, in the pieces and with the rights that
 * the process has there.  Pages never move: a range's location and its VRAM
 * are accounts of where the kernel would have put them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/vec.h"
#include "kfd/soft/device/dev.h"

/* [start, end): what the process may do there. */
struct vma {
	uint64_t start, end;
	bool read, write, device;
};
typedef VEC(struct vma) vmas;

/* ---------------------------------------------- the process's memory -- */

/* The mappings that overlap [start, end), in their order. */
static bool vmas_read(uint64_t start, uint64_t end, vmas *out)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		uint64_t from, to;
		char how[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to,
			   how) != 3 || to <= start)
			continue;
		if (from >= end)
			break;
		vec_push(out, ((struct vma){
				      from, to, how[0] == 'r', how[1] == 'w',
				      strstr(line, " /memfd:t0-soft") }));
	}
	free(line);
	if (f)
		fclose(f);
	return f;
}

/* 0, or why there can be no SVM range, as svm_range_is_valid() of the kernel
 * has it: holes and mappings of a device are no memory. */
static int check_vmas(const vmas *v, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < v->n; i++) {
		if (v->v[i].start > start || v->v[i].device)
			return -EFAULT;
		start = v->v[i].end;
	}
	return start < end ? -EFAULT : 0;
}

/* ----------------------------------------------------------- the list -- */

/* Has card i access? */
static bool is_mapped(const struct soft_svm *s, unsigned i)
{
	return s->access[i] != KFD_SVM_ATTR_NO_ACCESS;
}

/* The first range that ends after va. */
static size_t range_after(const struct soft_dev *d, uint64_t va)
{
	size_t i = 0;

	while (i < d->svm.n && d->svm.v[i].start + d->svm.v[i].size <= va)
		i++;
	return i;
}

static void range_insert(struct soft_dev *d, size_t at, struct soft_svm s)
{
	vec_reserve(&d->svm, 1);
	memmove(&d->svm.v[at + 1], &d->svm.v[at],
		(d->svm.n - at) * sizeof(s));
	d->svm.v[at] = s;
	d->svm.n++;
}

/* No range goes across va after this; the map is left alone. */
static void range_split(struct soft_dev *d, uint64_t va)
{
	const size_t i = range_after(d, va);
	struct soft_svm tail;

	if (i == d->svm.n || d->svm.v[i].start >= va)
		return;
	tail = d->svm.v[i];
	tail.size -= va - tail.start;
	d->svm.v[i].size = va - tail.start;
	tail.start = va;
	range_insert(d, i + 1, tail);
}

/* Its pages are given back. */
static void range_uncharge(struct soft_dev *d, const struct soft_svm *s)
{
	d->sys_used -= s->size;
	if (s->location)
		soft_card_by_id(d, s->location)->vram_used -= s->size;
}

bool soft_svm_overlaps(const struct soft_dev *d, uint64_t va, uint64_t size)
{
	const size_t i = range_after(d, va);

	return i < d->svm.n && d->svm.v[i].start < va + size;
}

bool soft_svm_covers(struct soft_card *c, uint64_t va, uint64_t size)
{
	const struct soft_dev *d = c->dev;
	size_t i = range_after(d, va);

	for (uint64_t at = va; at < va + size; i++) {
		if (i == d->svm.n || d->svm.v[i].start > at ||
		    !is_mapped(&d->svm.v[i], c->index) ||
		    !(d->svm.v[i].flags & KFD_SVM_FLAG_ALWAYS_MAPPED))
			return false;
		at = d->svm.v[i].start + d->svm.v[i].size;
	}
	return true;
}

/* ------------------------------------------------------------ the map -- */

typedef VEC(struct soft_range) ranges;

/* What the GPU sees of the range: -EFAULT if some of it cannot be read. */
static int range_pieces(const struct soft_svm *s, const vmas *v, ranges *out)
{
	const uint64_t end = s->start + s->size;

	for (size_t i = 0; i < v->n; i++) {
		const struct vma *m = &v->v[i];
		struct soft_range r = { .flags = SOFT_MEM_READ };

		if (m->end <= s->start || m->start >= end)
			continue;
		if (!m->read)
			return -EFAULT;
		r.va = m->start > s->start ? m->start : s->start;
		r.size_bytes = (m->end < end ? m->end : end) - r.va;
		r.host = (void *)(uintptr_t)r.va;
		if (m->write && !(s->flags & KFD_SVM_FLAG_GPU_RO))
			r.flags |= SOFT_MEM_WRITE;
		if (s->flags & KFD_SVM_FLAG_GPU_EXEC)
			r.flags |= SOFT_MEM_EXEC;
		if (out->n && out->v[out->n - 1].flags == r.flags &&
		    out->v[out->n - 1].va + out->v[out->n - 1].size_bytes ==
			    r.va)
			out->v[out->n - 1].size_bytes += r.size_bytes;
		else
			vec_push(out, r);
	}
	return 0;
}

/*
 * Bring the card's map of [lo, hi), which no range and no piece of the map
 * goes across, to what the ranges say.
 */
static int map_card_held(struct soft_card *c, uint64_t lo, uint64_t hi,
			 const vmas *v)
{
	const struct soft_dev *d = c->dev;
	ranges all = { 0 };
	int ret = 0;

	for (size_t i = range_after(d, lo);
	     i < d->svm.n && d->svm.v[i].start < hi; i++) {
		const size_t n = all.n;
		const uint64_t size = n ? all.v[n - 1].size_bytes : 0;
		const int r = is_mapped(&d->svm.v[i], c->index) ?
				      range_pieces(&d->svm.v[i], v, &all) :
				      0;

		if (!r)
			continue;
		ret = r;
		all.n = n; /* nothing of it is mapped */
		if (n)
			all.v[n - 1].size_bytes = size;
	}
	soft_map_replace_held(c, lo, hi, all.v, all.n);
	vec_fini(&all);
	return ret;
}

static int map_ranges_held(struct soft_dev *d, uint64_t lo, uint64_t hi,
			   const vmas *v)
{
	int ret = 0;

	for (unsigned i = 0; i < d->n_cards; i++) {
		const int r = map_card_held(&d->card[i], lo, hi, v);

		ret = r ? r : ret;
	}
	return ret;
}

static int map_ranges(struct soft_dev *d, uint64_t lo, uint64_t hi,
		      const vmas *v)
{
	int ret;

	soft_map_hold_alone(d);
	ret = map_ranges_held(d, lo, hi, v);
	soft_map_release_alone(d);
	return ret;
}

/* Whole pieces of the card's map, which may go across ranges. */
static void widen_by_map(struct soft_card *c, uint64_t *lo, uint64_t *hi)
{
	struct soft_range r;

	if (soft_svm_overlaps(c->dev, *lo, 1) && soft_map_find(c, *lo, &r) &&
	    r.va < *lo)
		*lo = r.va;
	if (soft_svm_overlaps(c->dev, *hi - 1, 1) &&
	    soft_map_find(c, *hi - 1, &r) && r.va + r.size_bytes > *hi)
		*hi = r.va + r.size_bytes;
}

/* Whole ranges and whole pieces of the maps. */
static void widen_span(struct soft_dev *d, uint64_t *lo, uint64_t *hi)
{
	uint64_t from, to;

	do {
		const size_t i = range_after(d, *lo),
			     k = range_after(d, *hi - 1);

		from = *lo, to = *hi;
		if (i < d->svm.n && d->svm.v[i].start < *lo)
			*lo = d->svm.v[i].start;
		if (k < d->svm.n && d->svm.v[k].start < *hi)
			*hi = d->svm.v[k].start + d->svm.v[k].size;
		for (unsigned c = 0; c < d->n_cards; c++)
			widen_by_map(&d->card[c], lo, hi);
	} while (from != *lo || to != *hi);
}

static void tell_unmapped(struct soft_dev *d, const struct soft_svm *s)
{
	for (unsigned i = 0; i < d->n_cards; i++)
		if (is_mapped(s, i))
			soft_smi_event(&d->card[i], KFD_SMI_UNMAP_FROM_GPU,
				       "%" PRIu64 " -%d @%" PRIx64 "(%" PRIx64
				       ") %x %d\n", soft_boot_ns(),
				       (int)d->pid, s->start / KFD_PAGE_BYTES,
				       s->size / KFD_PAGE_BYTES,
				       d->card[i].gpu_id,
				       KFD_SMI_UNMAP_FROM_CPU);
}

void soft_svm_unmapped(struct soft_dev *d, uint64_t va, uint64_t size)
{
	const uint64_t end = va + size;
	uint64_t lo = va, hi = end;
	vmas v = { 0 };
	size_t i, n;

	if (!size || !soft_svm_overlaps(d, va, size))
		return;
	widen_span(d, &lo, &hi);
	range_split(d, va);
	range_split(d, end);
	for (i = n = range_after(d, va);
	     n < d->svm.n && d->svm.v[n].start < end; n++) {
		range_uncharge(d, &d->svm.v[n]);
		tell_unmapped(d, &d->svm.v[n]);
	}
	memmove(&d->svm.v[i], &d->svm.v[n],
		(d->svm.n - n) * sizeof(*d->svm.v));
	d->svm.n -= n - i;
	if (vmas_read(lo, hi, &v))
		map_ranges(d, lo, hi, &v);
	vec_fini(&v);
}

int soft_svm_mprotect(struct soft_dev *d, void *addr, size_t size, int prot)
{
	uint64_t lo = (uintptr_t)addr, hi = lo + size;
	vmas v = { 0 };
	int ret;

	if (!size || hi < lo || !soft_svm_overlaps(d, lo, size))
		return mprotect(addr, size, prot) ? -errno : 0;
	widen_span(d, &lo, &hi);
	soft_map_hold_alone(d);
	ret = mprotect(addr, size, prot) ? -errno : 0;
	if (vmas_read(lo, hi, &v))
		map_ranges_held(d, lo, hi, &v);
	soft_map_release_alone(d);
	vec_fini(&v);
	return ret;
}

void soft_svm_end(struct soft_dev *d)
{
	for (size_t i = 0; i < d->svm.n; i++) {
		const struct soft_svm *s = &d->svm.v[i];

		range_uncharge(d, s);
		for (unsigned c = 0; c < d->n_cards; c++)
			soft_map_replace(&d->card[c], s->start,
					 s->start + s->size, NULL, 0);
	}
	d->svm.n = 0;
}

/* ------------------------------------------------------ set attributes -- */

static int check_attrs(struct soft_dev *d, const struct kfd_svm_attr *a,
		       uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t v = a[i].value;
		bool good = soft_card_by_id(d, v);

		switch (a[i].type) {
		case KFD_SVM_ATTR_PREFERRED_LOC:
			good |= v == KFD_SVM_LOCATION_UNDEFINED;
			/* fallthrough */
		case KFD_SVM_ATTR_PREFETCH_LOC:
			good |= v == KFD_SVM_LOCATION_SYSMEM;
			break;
		case KFD_SVM_ATTR_ACCESS:
		case KFD_SVM_ATTR_ACCESS_IN_PLACE:
		case KFD_SVM_ATTR_NO_ACCESS:
			break;
		case KFD_SVM_ATTR_SET_FLAGS:
		case KFD_SVM_ATTR_CLR_FLAGS:
		case KFD_SVM_ATTR_GRANULARITY:
			good = true;
			break;
		default:
			return -EINVAL;
		}
		if (!good)
			return -EINVAL;
	}
	return 0;
}

static void apply_attrs(struct soft_dev *d, struct soft_svm *s,
			const struct kfd_svm_attr *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t v = a[i].value;

		switch (a[i].type) {
		case KFD_SVM_ATTR_PREFERRED_LOC:
			s->preferred = v;
			break;
		case KFD_SVM_ATTR_PREFETCH_LOC:
			s->prefetch = v;
			break;
		case KFD_SVM_ATTR_SET_FLAGS:
			s->flags |= v;
			break;
		case KFD_SVM_ATTR_CLR_FLAGS:
			s->flags &= ~v;
			break;
		case KFD_SVM_ATTR_GRANULARITY:
			s->granularity = (uint8_t)(v < KFD_SVM_GRANULARITY_MAX ?
						   v : KFD_SVM_GRANULARITY_MAX);
			break;
		default:
			s->access[soft_card_by_id(d, v)->index] = a[i].type;
		}
	}
}

static struct soft_svm default_range(uint64_t start, uint64_t size)
{
	struct soft_svm s = {
		.start = start, .size = size,
		.flags = KFD_SVM_FLAG_HOST_ACCESS | KFD_SVM_FLAG_COHERENT,
		.preferred = KFD_SVM_LOCATION_UNDEFINED,
		.prefetch = KFD_SVM_LOCATION_UNDEFINED,
		.granularity = KFD_SVM_GRANULARITY_DEFAULT,
	};

	for (size_t i = 0; i < ARRAY_SIZE(s.access); i++)
		s.access[i] = KFD_SVM_ATTR_NO_ACCESS;
	return s;
}

/* Ranges with default attributes wherever [start, end) has none. */
static int fill_gaps(struct soft_dev *d, uint64_t start, uint64_t end)
{
	for (size_t i = range_after(d, start); start < end; i++) {
		const uint64_t to = i < d->svm.n && d->svm.v[i].start < end ?
					    d->svm.v[i].start : end;

		if (start < to) {
			if (d->sys_used > d->sys_limit ||
			    to - start > d->sys_limit - d->sys_used)
				return -ENOMEM;
			d->sys_used += to - start;
			range_insert(d, i, default_range(start, to - start));
		}
		start = d->svm.v[i].start + d->svm.v[i].size;
	}
	return 0;
}

/* Account for the move between a card and the host, either to or from. */
static void move_range(struct soft_card *c, struct soft_svm *s, uint32_t to)
{
	const struct soft_dev *d = c->dev;
	const uint64_t at = s->start / KFD_PAGE_BYTES,
		       n = s->size / KFD_PAGE_BYTES;
	const uint32_t from = s->location;

	soft_smi_event(c, KFD_SMI_MIGRATE_START,
		       "%" PRIu64 " -%d @%" PRIx64 "(%" PRIx64
		       ") %x->%x %x:%x %d\n", soft_boot_ns(), (int)d->pid, at,
		       n, from, to, s->prefetch, s->preferred,
		       KFD_SMI_MIGRATE_PREFETCH);
	if (from)
		c->vram_used -= s->size;
	else
		c->vram_used += s->size;
	s->location = to;
	soft_smi_event(c, KFD_SMI_MIGRATE_END,
		       "%" PRIu64 " -%d @%" PRIx64 "(%" PRIx64
		       ") %x->%x %d\n", soft_boot_ns(), (int)d->pid, at, n,
		       from, to, KFD_SMI_MIGRATE_PREFETCH);
}

/*
 * Account for the prefetch; without room in VRAM the pages stay.  Between two
 * cards they go by the host's memory.
 */
static void migrate_range(struct soft_dev *d, struct soft_svm *s)
{
	const uint32_t to = s->prefetch;
	struct soft_card *from = soft_card_by_id(d, s->location),
			 *c = soft_card_by_id(d, to);

	if (to == KFD_SVM_LOCATION_UNDEFINED || to == s->location)
		return;
	if (c && s->size > c->vram_bytes - c->vram_used)
		return;
	if (from)
		move_range(from, s, 0);
	if (c)
		move_range(c, s, to);
}

/* By a buffer of KFD or DRM. */
static bool is_taken(const struct soft_dev *d, uint64_t start, uint64_t size)
{
	return soft_bo_overlaps(d, start, size) ||
	       soft_drm_overlaps(d, start, size);
}

static int set_attrs(struct soft_dev *d, const struct kfd_ioc_svm *a,
		     const struct kfd_svm_attr *attr)
{
	const uint64_t start = a->start_addr, end = start + a->size;
	uint64_t lo = start, hi = end;
	vmas v = { 0 };
	int ret;

	ret = check_attrs(d, attr, a->nattr);
	if (ret)
		return ret;
	widen_span(d, &lo, &hi);
	ret = vmas_read(lo, hi, &v) ? 0 : -ENOMEM;
	if (!ret) {
		vmas asked = { 0 };

		ret = vmas_read(start, end, &asked) ?
			      check_vmas(&asked, start, end) : -ENOMEM;
		vec_fini(&asked);
	}
	if (!ret && is_taken(d, start, a->size))
		ret = -EADDRINUSE;
	if (!ret) {
		soft_guard_take();
		range_split(d, start);
		range_split(d, end);
		ret = fill_gaps(d, start, end);
	}
	for (size_t i = range_after(d, start);
	     !ret && i < d->svm.n && d->svm.v[i].start < end; i++) {
		apply_attrs(d, &d->svm.v[i], attr, a->nattr);
		migrate_range(d, &d->svm.v[i]);
	}
	if (!ret)
		ret = map_ranges(d, lo, hi, &v);
	vec_fini(&v);
	return ret;
}

/* ------------------------------------------------------ get attributes -- */

/* What all ranges in [start, end) have in common. */
static struct soft_svm common_attrs(const struct soft_dev *d, uint64_t start,
				    uint64_t end, uint32_t *flags_or)
{
	size_t i = range_after(d, start);
	struct soft_svm c = default_range(start, end - start);

	if (i < d->svm.n && d->svm.v[i].start < end)
		c = d->svm.v[i];
	*flags_or = c.flags;
	for (; i < d->svm.n && d->svm.v[i].start < end; i++) {
		const struct soft_svm *s = &d->svm.v[i];

		if (s->preferred != c.preferred)
			c.preferred = KFD_SVM_LOCATION_UNDEFINED;
		if (s->prefetch != c.prefetch)
			c.prefetch = KFD_SVM_LOCATION_UNDEFINED;
		for (unsigned k = 0; k < d->n_cards; k++)
			if (s->access[k] != c.access[k])
				c.access[k] = KFD_SVM_ATTR_NO_ACCESS;
		if (s->granularity < c.granularity)
			c.granularity = s->granularity;
		c.flags &= s->flags;
		*flags_or |= s->flags;
	}
	return c;
}

static bool can_get(uint32_t type)
{
	return type == KFD_SVM_ATTR_PREFERRED_LOC ||
	       type == KFD_SVM_ATTR_PREFETCH_LOC ||
	       type == KFD_SVM_ATTR_ACCESS || type == KFD_SVM_ATTR_SET_FLAGS ||
	       type == KFD_SVM_ATTR_CLR_FLAGS ||
	       type == KFD_SVM_ATTR_GRANULARITY;
}

static int get_attrs(struct soft_dev *d, const struct kfd_ioc_svm *a,
		     struct kfd_svm_attr *attr)
{
	const uint64_t start = a->start_addr, end = start + a->size;
	uint32_t flags_or;
	struct soft_svm c;
	vmas v = { 0 };
	int ret;

	ret = vmas_read(start, end, &v) ? check_vmas(&v, start, end) : -ENOMEM;
	vec_fini(&v);
	if (!ret && is_taken(d, start, a->size))
		ret = -EADDRINUSE;
	for (uint32_t i = 0; !ret && i < a->nattr; i++)
		if (!can_get(attr[i].type))
			ret = -EINVAL;
	if (ret)
		return ret;
	c = common_attrs(d, start, end, &flags_or);
	for (uint32_t i = 0; i < a->nattr; i++) {
		const struct soft_card *card =
			soft_card_by_id(d, attr[i].value);

		if (attr[i].type == KFD_SVM_ATTR_PREFERRED_LOC)
			attr[i].value = c.preferred;
		else if (attr[i].type == KFD_SVM_ATTR_PREFETCH_LOC)
			attr[i].value = c.prefetch;
		else if (attr[i].type == KFD_SVM_ATTR_SET_FLAGS)
			attr[i].value = c.flags;
		else if (attr[i].type == KFD_SVM_ATTR_CLR_FLAGS)
			attr[i].value = ~flags_or;
		else if (attr[i].type == KFD_SVM_ATTR_GRANULARITY)
			attr[i].value = c.granularity;
		else if (card)
			attr[i].type = c.access[card->index];
		else
			return -EINVAL;
	}
	return 0;
}

static bool has_vm(const struct soft_dev *d)
{
	for (unsigned i = 0; i < d->n_cards; i++)
		if (d->card[i].vm_file)
			return true;
	return false;
}

int soft_ioc_svm(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_svm *a = arg;
	struct kfd_svm_attr *attr = (void *)((char *)arg + sizeof(*a));

	if (a->start_addr % KFD_PAGE_BYTES || a->size % KFD_PAGE_BYTES ||
	    !a->start_addr || !a->size)
		return -EINVAL;
	if (a->start_addr + a->size < a->start_addr)
		return -EOVERFLOW;
	if (!has_vm(d))
		return -EINVAL;
	if (a->op == KFD_SVM_OP_SET)
		return set_attrs(d, a, attr);
	return a->op == KFD_SVM_OP_GET ? get_attrs(d, a, attr) : -EINVAL;
}
