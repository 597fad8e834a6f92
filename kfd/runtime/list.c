/*
 * kfd/runtime/list.c - which devices there are, and which of them this process
 * may open.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/runtime.h"
#include "kfd/soft/soft.h"

static struct kfd_found *found_add(struct kfd_found **found, int *n)
{
	*found = xrealloc(*found, (size_t)(*n + 1) * sizeof(**found));
	struct kfd_found *f = &(*found)[(*n)++];
	*f = (struct kfd_found){ 0 };
	return f;
}

/* Can it be opened?  Files only: no address space is made. */
static void probe_usable(struct kfd_driver *d, struct kfd_found *f)
{
	struct err e = { 0 };
	char path[64];
	int fd;

	if (f->node.hidden) {
		err_set(&e, ERR_PERM, "hidden by the device cgroup");
	} else if (!kfd_node_is_usable(&f->node)) {
		err_set(&e, ERR_UNSUPPORTED, "not gfx11");
	} else if (kfd_node_check(&f->node, &e) &&
		   (fd = kfd_file_open(d, KFD_PATH, &e)) >= 0) {
		d->close(d, fd);
		snprintf(path, sizeof(path), "/dev/dri/renderD%d",
			 f->node.render_minor);
		fd = kfd_file_open(d, path, &e);
		if (fd >= 0)
			d->close(d, fd);
	}
	f->usable = e.code == ERR_NONE;
	snprintf(f->why_not, sizeof(f->why_not), "%.255s", e.msg);
}

static void list_driver(struct kfd_driver *d, struct kfd_found **found, int *n)
{
	struct kfd_topology t;
	int number = 0;

	if (!kfd_topology_read(d, &t, NULL))
		return; /* no driver, no devices */
	for (int i = 0; i < t.n_nodes; i++) {
		if (!t.node[i].gpu_id && !t.node[i].hidden)
			continue;
		struct kfd_found *f = found_add(found, n);
		f->node = t.node[i];
		f->origin = d->origin;
		if (f->node.hidden)
			snprintf(f->spec, sizeof(f->spec), "(hidden)");
		else
			kfd_spec_name(d, &t, number++, f->spec);
		probe_usable(d, f);
	}
	kfd_topology_fini(&t);
}

bool kfd_is_here(struct err *e)
{
	struct kfd_driver *d = kfd_linux_new();
	const int fd = kfd_file_open(d, KFD_PATH, e);

	if (fd >= 0)
		d->close(d, fd);
	d->free(d);
	return fd >= 0;
}

bool kfd_list(const char *spec, struct kfd_found **found, int *n,
	      struct err *e)
{
	struct kfd_driver *linux_kfd, *soft;
	struct kfd_select sel = { 0 };

	*found = NULL;
	*n = 0;
	if (soft_spec_is(spec) && !kfd_select_parse(spec, &sel, e))
		return false;
	linux_kfd = kfd_linux_new();
	list_driver(linux_kfd, found, n);
	linux_kfd->free(linux_kfd);
	soft = kfd_soft_new(&sel.machine, e);
	if (!soft)
		return err_wrap(e, "the device in software");
	list_driver(soft, found, n);
	soft->free(soft);
	return true;
}

/* The first of the matching GPUs that can be opened; `d` is freed. */
static bool find_chip(struct kfd_driver *d, const struct kfd_select *sel,
		      char gfx[16], struct err *e)
{
	struct gpu gpu[GPUS_MAX];
	struct kfd_topology t;
	struct err first = { 0 };
	bool found = false;
	int n = 0;
	const int fd = kfd_file_open(d, KFD_PATH, &first);

	if (fd >= 0)
		d->close(d, fd);
	if (fd >= 0 && kfd_topology_read(d, &t, &first)) {
		if (!kfd_select_gpus(sel, &t, gpu, &n, &first))
			n = 0;
		for (int i = 0; i < n && !found; i++) {
			struct kfd_found f = { .node = *gpu[i].node };

			probe_usable(d, &f);
			found = f.usable;
			if (found)
				kfd_gfx_name(f.node.gfx_target, gfx);
			else if (!first.code)
				err_set(&first, ERR_NODEV, "%s", f.why_not);
		}
		kfd_topology_fini(&t);
	}
	d->free(d);
	if (!found && e)
		*e = first;
	return found;
}

bool kfd_find_chip(const char *spec, char gfx[16], struct err *e)
{
	struct kfd_select sel;
	struct kfd_driver *soft;

	if (!kfd_select_parse(spec, &sel, e))
		return false;
	if (!sel.soft && find_chip(kfd_linux_new(), &sel, gfx,
				   sel.any ? NULL : e))
		return true;
	if (!sel.soft && !sel.any)
		return err_wrap(e, "device %s", spec);
	if (sel.any || sel.by == SELECT_FIRST) { /* which nothing forbids */
		snprintf(gfx, 16, "%s", sel.machine.chip[0] ?
			 sel.machine.chip[0]->name : SOFT_CHIP);
		return true;
	}
	soft = kfd_soft_new(&sel.machine, e);
	return soft ? find_chip(soft, &sel, gfx, e) :
		      err_wrap(e, "the device in software");
}

bool kfd_list_chips(struct kfd_found **found, int *n, struct err *e)
{
	for (size_t i = 0; isa_chip_at(i); i++) {
		const struct soft_options o = { .chip = { isa_chip_at(i) } };
		struct kfd_driver *soft;

		if (!soft_has_chip(isa_chip_at(i)) ||
		    !strcmp(isa_chip_at(i)->name, SOFT_CHIP))
			continue;
		soft = kfd_soft_new(&o, e);
		if (!soft)
			return err_wrap(e, "the %s in software",
					o.chip[0]->name);
		list_driver(soft, found, n);
		soft->free(soft);
	}
	return true;
}
