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
