/*
 * kfd/soft/device/device.c - the machine: handles of /dev/kfd and the render
 * node, their mappings, and its construction and end.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cmd.h"
#include "base/vec.h"
#include "kfd/soft/device/dev.h"

static struct soft_dev *dev_of(struct kfd_driver *d)
{
	return (struct soft_dev *)d;
}

void (*soft_thread_begins)(void);

struct start {
	void *(*fn)(void *);
	void *arg;
};

static void *thread_main(void *arg)
{
	const struct start s = *(struct start *)arg;

	free(arg);
	if (soft_thread_begins)
		soft_thread_begins();
	return s.fn(s.arg);
}

int soft_thread(pthread_t *t, void *(*fn)(void *), void *arg)
{
	struct start *s = xmalloc(sizeof(*s));
	sigset_t all, old;
	int err;

	*s = (struct start){ fn, arg };

	sigfillset(&all);
	/* Blocked, those would end the program whoever catches them. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(t, NULL, thread_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		free(s);
	return err;
}

/* ------------------------------------------------------------ handles -- */

struct soft_file *soft_file_by_fd(struct soft_dev *d, int fd)
{
	for (size_t i = 0; fd >= 0 && i < d->n_files; i++)
		if (d->file[i].fd == fd)
			return &d->file[i];
	return NULL;
}

struct soft_card *soft_card_by_id(struct soft_dev *d, uint32_t gpu_id)
{
	for (unsigned i = 0; i < d->n_cards; i++)
		if (d->card[i].gpu_id == gpu_id)
			return &d->card[i];
	return NULL;
}

static struct soft_file *file_slot(struct soft_dev *d)
{
	for (size_t i = 0; i < d->n_files; i++)
		if (d->file[i].fd < 0)
			return &d->file[i];
	VEC_GROW(d->file, d->n_files, 1, d->cap_files);
	return &d->file[d->n_files++];
}

/* Which node is it, and of which card (NULL: of none)?  False: of nobody. */
static bool find_node(struct soft_dev *d, const char *path,
		      enum soft_node *node, struct soft_card **card)
{
	char own[32];

	*card = NULL;
	*node = SOFT_NODE_KFD;
	if (!strcmp(path, "/dev/kfd"))
		return true;
	for (unsigned i = 0; i < d->n_cards; i++) {
		*card = &d->card[i];
		*node = SOFT_NODE_RENDER;
		snprintf(own, sizeof(own), "/dev/dri/renderD%u",
			 SOFT_RENDER_MINOR + i);
		if (!strcmp(path, own))
			return true;
		*node = SOFT_NODE_CARD;
		snprintf(own, sizeof(own), "/dev/dri/card%u", i);
		if (!strcmp(path, own))
			return true;
	}
	return false;
}

static int soft_open(struct kfd_driver *drv, const char *path, int flags)
{
	struct soft_dev *d = dev_of(drv);
	struct soft_file *f;
	struct soft_card *card;
	enum soft_node node;
	int fd;

	(void)flags; /* O_RDWR | O_CLOEXEC is the only sensible choice */
	if (!find_node(d, path, &node, &card))
		return -ENOENT;
	if (node == SOFT_NODE_KFD && d->o.open_errno)
		return -d->o.open_errno;
	fd = soft_hooks_call(
		d, &(struct soft_call){ .kind = SOFT_CALL_OPEN, .path = path });
	if (fd)
		return fd;
	/* A real descriptor: its number collides with no other file. */
	fd = fcntl(d->memfd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	pthread_mutex_lock(&d->lock);
	f = file_slot(d);
	*f = (struct soft_file){
		.fd = fd, .node = node, .card = card, .pid = getpid(),
		.id = ++d->next_file_id,
	};
	d->kfd_opens += node == SOFT_NODE_KFD && f->pid == d->pid;
	pthread_mutex_unlock(&d->lock);
	return fd;
}

/* What the kernel does when the process lets go of /dev/kfd. */
static void process_end(struct soft_dev *d)
{
	soft_queues_end(d);
	soft_events_end(d);
	pthread_mutex_lock(&d->lock);
	soft_memory_end(d);
	soft_smi_end(d);
	soft_debug_end(d);
	memset(&d->debug.runtime, 0, sizeof(d->debug.runtime));
	/* The rings of DRM go on. */
	soft_map_hold_alone(d);
	for (unsigned i = 0; i < d->n_cards; i++)
		d->card[i].traps = (struct soft_traps){ 0 };
	soft_map_release_alone(d);
	for (unsigned i = 0; i < d->n_cards; i++) {
		d->card[i].vm_file = 0;
		__atomic_store_n(&d->card[i].evicted, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&d->card[i].hung, 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&d->runtime_enabled, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->lock);
}

static int soft_close(struct kfd_driver *drv, int fd)
{
	struct soft_dev *d = dev_of(drv);
	struct soft_file *f;
	bool last = false;

	pthread_mutex_lock(&d->lock);
	f = soft_file_by_fd(d, fd);
	if (f) {
		if (f->node == SOFT_NODE_KFD && f->pid == d->pid &&
		    getpid() == d->pid)
			last = --d->kfd_opens == 0;
		if (f->node != SOFT_NODE_KFD && f->pid == d->pid &&
		    getpid() == d->pid)
			soft_drm_close(d, f);
		f->fd = -1;
	}
	pthread_mutex_unlock(&d->lock);
	if (!f)
		return -EBADF;
	if (last) {
		soft_hooks_closing(d);
		process_end(d);
	}
	close(fd);
	return 0;
}

static int soft_ioctl(struct kfd_driver *drv, int fd, unsigned long request,
		      void *arg)
{
	struct soft_dev *d = dev_of(drv);
	const struct soft_file *f;
	struct soft_file file = { 0 };
	bool mine = false;

	pthread_mutex_lock(&d->lock);
	f = soft_file_by_fd(d, fd);
	if (f) {
		file = *f;
		mine = f->pid == d->pid && getpid() == d->pid;
	}
	pthread_mutex_unlock(&d->lock);
	/* The state is the opener's: a forked child must open its own. */
	if (!f || (file.node == SOFT_NODE_KFD && !mine))
		return -EBADF;
	return file.node == SOFT_NODE_KFD ?
		       soft_kfd_ioctl(d, request, arg) :
		       soft_drm_ioctl(d, &file, request, arg);
}

/* --------------------------------------------------------------- mmap -- */

/* Where an mmap of /dev/kfd leads in the memory file. */
static int kfd_mmap_offset(struct soft_dev *d, uint64_t offset, uint64_t size,
			   uint64_t *out)
{
	const unsigned type = (unsigned)(offset >> KFD_MMAP_TYPE_SHIFT);
	const struct soft_card *c = soft_card_by_id(
		d, offset >> KFD_MMAP_GPU_ID_SHIFT & 0xffff);

	if (type == KFD_MMAP_TYPE_DOORBELL) {
		if (!c || size != KFD_DOORBELL_SLICE_BYTES)
			return -EINVAL;
		*out = c->doorbell_off;
	} else if (type == KFD_MMAP_TYPE_MMIO) {
		if (!c || size != KFD_MMIO_REMAP_BYTES)
			return -EINVAL;
		*out = c->mmio_off;
	} else if (type == KFD_MMAP_TYPE_EVENTS) {
		if (!d->ev.page || d->ev.page_bo ||
		    size != KFD_EVENT_PAGE_BYTES)
			return -EINVAL;
		*out = d->ev.page_off;
	} else {
		return -EINVAL;
	}
	return 0;
}

/*
 * Addresses that a process reserves for buffers, one behind the other.  Where
 * buffers lie decides which lines of a cache they share, so that what the
 * simulator says of a process must not depend on where Linux would put them,
 * which is random.  Where a place is taken, Linux chooses.
 */
#define PLACES_BEGIN (UINT64_C(1) << 45)
#define PLACES_END   (UINT64_C(5) << 44)
#define PLACE_ALIGN  (UINT64_C(2) << 20) /* the largest fragment */

static void *next_place(size_t size_bytes)
{
	static uint64_t next = PLACES_BEGIN;
	const uint64_t size = (size_bytes + PLACE_ALIGN - 1) &
			      ~(PLACE_ALIGN - 1);

	if (size_bytes > PLACES_END - PLACES_BEGIN ||
	    __atomic_load_n(&next, __ATOMIC_RELAXED) > PLACES_END - size)
		return NULL;
	return (void *)(uintptr_t)__atomic_fetch_add(&next, size,
						     __ATOMIC_RELAXED);
}

static void *soft_mmap(struct kfd_driver *drv, void *addr, size_t size_bytes,
		       int prot, int flags, int fd, uint64_t offset,
		       int *err_no)
{
	struct soft_dev *d = dev_of(drv);
	const struct soft_file *f;
	unsigned type = 0;
	int ret = 0, file = fd;
	bool on_kfd;
	void *p;

	pthread_mutex_lock(&d->lock);
	f = soft_file_by_fd(d, fd);
	on_kfd = f && f->node == SOFT_NODE_KFD;
	if (on_kfd)
		type = (unsigned)(offset >> KFD_MMAP_TYPE_SHIFT);
	if (f && f->pid != getpid())
		ret = -EBADF;
	else if (f && !on_kfd)
		ret = soft_bo_mmap(d, &offset, size_bytes);
	else if (f)
		ret = kfd_mmap_offset(d, offset, size_bytes, &offset);
	pthread_mutex_unlock(&d->lock);
	if (f && ret >= 0) {
		file = on_kfd ? d->memfd : ret;
		ret = soft_hooks_call(
			d, &(struct soft_call){ .kind = SOFT_CALL_MMAP,
						.nr = type });
	}
	if (ret < 0) {
		*err_no = -ret;
		return MAP_FAILED;
	}
	if (!addr && prot == PROT_NONE && flags & MAP_ANONYMOUS)
		addr = next_place(size_bytes);
	p = mmap(addr, size_bytes, prot, flags, file, (off_t)offset);
	if (p == MAP_FAILED)
		*err_no = errno;
	else if (on_kfd) /* a child has no doorbells of its parent's */
		madvise(p, size_bytes, MADV_DONTFORK);
	return p;
}

void kfd_soft_remapped(struct kfd_driver *drv, void *addr, size_t size_bytes,
		       bool gone)
{
	struct soft_dev *d = dev_of(drv);
	const uint64_t at = (uintptr_t)addr;
	const uint64_t size = (size_bytes + KFD_PAGE_BYTES - 1) &
			      ~(uint64_t)(KFD_PAGE_BYTES - 1);

	/* What the kernel will refuse takes nothing away. */
	if (getpid() != d->pid || at % KFD_PAGE_BYTES || !size ||
	    size > SOFT_USER_LIMIT || at > SOFT_USER_LIMIT - size)
		return;
	pthread_mutex_lock(&d->lock);
	soft_host_unmapped(d, at, size, gone);
	pthread_mutex_unlock(&d->lock);
}

bool kfd_soft_owns_fd(struct kfd_driver *drv, int fd)
{
	struct soft_dev *d = dev_of(drv);
	bool owns;

	pthread_mutex_lock(&d->lock);
	owns = fd == d->memfd || fd == d->debug.fd || soft_file_by_fd(d, fd);
	for (size_t i = 1; i < d->n_bo && !owns; i++)
		owns = d->bo[i] && d->bo[i]->file == fd;
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_lock(&d->smi_lock);
	for (size_t i = 0; i < d->smi.n && !owns; i++)
		owns = d->smi.v[i].fd == fd;
	pthread_mutex_unlock(&d->smi_lock);
	return owns && fd >= 0;
}

static int soft_munmap(struct kfd_driver *drv, void *addr, size_t size_bytes)
{
	kfd_soft_remapped(drv, addr, size_bytes, true);
	return munmap(addr, size_bytes) ? -errno : 0;
}

static int soft_mprotect(struct kfd_driver *drv, void *addr, size_t size_bytes,
			 int prot)
{
	struct soft_dev *d = dev_of(drv);
	int ret;

	if (getpid() != d->pid)
		return mprotect(addr, size_bytes, prot) ? -errno : 0;
	pthread_mutex_lock(&d->lock);
	ret = soft_svm_mprotect(d, addr, size_bytes, prot);
	pthread_mutex_unlock(&d->lock);
	return ret;
}

/* ---------------------------------------------------- the driver table -- */

static int soft_read_file(struct kfd_driver *drv, const char *path,
			  struct buf *out)
{
	return soft_topology_read(dev_of(drv), path, out);
}

static int soft_list_dir(struct kfd_driver *drv, const char *path,
			 struct buf *out)
{
	return soft_topology_list(dev_of(drv), path, out);
}

static void soft_ring(struct kfd_driver *drv, volatile uint64_t *doorbell,
		      uint64_t value)
{
	struct soft_dev *d = dev_of(drv);

	order_release();
	/* Ordered before the look at `parked` in soft_wake_all(). */
	__atomic_store_n(doorbell, value, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&d->rung, __ATOMIC_RELAXED))
		__atomic_store_n(&d->rung, 1, __ATOMIC_RELAXED);
	soft_wake_all(d);
}

static void soft_free(struct kfd_driver *drv)
{
	struct soft_dev *d = dev_of(drv);

	for (size_t i = 0; i < d->n_files; i++)
		if (d->file[i].fd >= 0)
			close(d->file[i].fd);
	/* A forked child has neither the threads nor their locks in order. */
	if (getpid() != d->pid)
		return;
	process_end(d);
	soft_drm_fini(d);
	free(d->file);
	soft_pool_free(d->pool);
	soft_hooks_free(d);
	soft_wake_fini(d);
	soft_events_fini(d);
	soft_debug_fini(d);
	soft_memory_fini(d);
	for (unsigned i = 0; i < d->n_cards; i++) {
		soft_load_fini(&d->card[i]);
		soft_counters_fini(&d->card[i]);
	}
	pthread_mutex_destroy(&d->fault_lock);
	pthread_mutex_destroy(&d->smi_lock);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static const struct kfd_driver soft_driver = {
	.name = "soft",
	.origin = "emulated",
	.open = soft_open,
	.close = soft_close,
	.ioctl = soft_ioctl,
	.mmap = soft_mmap,
	.munmap = soft_munmap,
	.mprotect = soft_mprotect,
	.read_file = soft_read_file,
	.list_dir = soft_list_dir,
	.ring = soft_ring,
	.fault_text = soft_fault_text,
	.fault = soft_fault_report,
	.note = soft_hooks_note,
	.free = soft_free,
};

/* ------------------------------------------------------- the machine -- */

bool soft_spec_is(const char *spec)
{
	const char *rest = spec && !strncmp(spec, "soft", 4) ? spec + 4 : "?";

	return !*rest || strchr(":*@,", *rest);
}

bool soft_has_chip(const struct isa_chip *chip)
{
	return chip->device_id && soft_executes(chip->gen);
}

/* "there is no gfx1104 in software; ...": false. */
static bool no_chip(const char *spec, const char *name, struct err *e)
{
	struct buf all = { 0 };
	struct cmd_near near = { .name = name };

	for (size_t i = 0; isa_chip_at(i); i++)
		if (soft_has_chip(isa_chip_at(i))) {
			buf_printf(&all, "%s%s", all.len ? ", " : "",
				   isa_chip_at(i)->name);
			cmd_near_try(&near, isa_chip_at(i)->name);
		}
	err_set(e, ERR_USAGE,
		"device \"%s\": there is no %s in software; "
		"there is %s%s%s%s",
		spec, name, all.data, near.meant ? "; did you mean " : "",
		near.meant ? near.meant : "", near.meant ? "?" : "");
	buf_fini(&all);
	return false;
}

/* "*N"; *p is then what follows it. */
static bool parse_count(const char *spec, const char **p, unsigned *n,
			struct err *e)
{
	char *end;
	const char *digits = *p + 1;

	*n = 1;
	if (**p != '*')
		return true;
	const unsigned long v = strtoul(digits, &end, 10);
	if (*digits < '0' || *digits > '9' || (*end && !strchr(":,", *end)) ||
	    !v || v > SOFT_CARDS_MAX)
		return err_set(
			e, ERR_USAGE,
			"device \"%s\": wanted the number of cards, 1..%u, "
			"after the *",
			spec, SOFT_CARDS_MAX);
	*n = (unsigned)v;
	*p = end;
	return true;
}

/* "[:CHIP][*N]": its cards behind those that *o has. */
static bool parse_part(const char *spec, const char **p, struct soft_options *o,
		       struct err *e)
{
	const struct isa_chip *chip = NULL;
	unsigned n;

	if (!strncmp(*p, ":gfx", 4)) {
		const size_t len = strcspn(++*p, "*:,");
		char name[32];

		snprintf(name, sizeof(name), "%.*s", (int)len, *p);
		chip = isa_chip_find(name);
		if (!chip || !soft_has_chip(chip))
			return no_chip(spec, name, e);
		*p += len;
	}
	if (!parse_count(spec, p, &n, e))
		return false;
	if (n > SOFT_CARDS_MAX - o->cards)
		return err_set(e, ERR_USAGE,
			       "device \"%s\": %u cards; wanted "
			       "1 to %u",
			       spec, o->cards + n, SOFT_CARDS_MAX);
	for (; n; n--)
		o->chip[o->cards++] = chip;
	return true;
}

bool soft_spec_parse(const char *spec, struct soft_options *o,
		     const char **rest, struct err *e)
{
	const char *p = spec + strlen("soft");

	o->cards = 0;
	while (parse_part(spec, &p, o, e)) {
		*rest = p;
		if (*p != ',')
			return true;
		if (strncmp(++p, "soft", 4))
			return err_set(e, ERR_USAGE,
				       "device \"%s\": wanted "
				       "another soft[:CHIP][*N] after the "
				       "comma",
				       spec);
		p += strlen("soft");
	}
	return false;
}

static struct soft_options options_resolve(const struct soft_options *o)
{
	struct soft_options r = { 0 };

	if (o)
		r = *o;
	if (!r.threads) {
		const long n = sysconf(_SC_NPROCESSORS_ONLN);

		r.threads = n > 0 ? (unsigned)n : 1;
	}
	if (r.deterministic)
		r.threads = 1;
	if (!r.kfd_minor)
		r.kfd_minor = KFD_MINOR_SDMA_ENGINE_ID;
	for (unsigned i = 0; i < SOFT_CARDS_MAX; i++)
		if (!r.chip[i])
			r.chip[i] = isa_chip_find(SOFT_CHIP);
	if (!r.cards)
		r.cards = 1;
	if (!r.deadline_ns)
		r.deadline_ns = 10000000000u;
	return r;
}

struct kfd_driver *kfd_soft_new(const struct soft_options *o, struct err *e)
{
	const struct soft_options r = options_resolve(o);
	struct soft_dev *d;

	if (r.cards > SOFT_CARDS_MAX) {
		err_set(e, ERR_USAGE, "soft device: %u cards; wanted 1 to %u",
			r.cards, SOFT_CARDS_MAX);
		return NULL;
	}
	d = xcalloc(1, sizeof(*d));
	d->driver = soft_driver;
	d->o = r;
	d->pid = getpid();
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->fault_lock, NULL);
	pthread_mutex_init(&d->smi_lock, NULL);
	for (; d->n_cards < d->o.cards; d->n_cards++) {
		struct soft_card *c = &d->card[d->n_cards];

		c->dev = d;
		c->index = d->n_cards;
		c->chip = r.chip[c->index];
		c->vram_bytes = r.vram_bytes ? r.vram_bytes :
					       c->chip->vram_bytes;
		c->gpu_id = SOFT_GPU_ID_OF(c->index);
		soft_load_init(c);
		soft_counters_init(c);
	}
	soft_wake_init(d);
	soft_events_init(d);
	soft_debug_init(d);
	soft_drm_init(d);
	if (!soft_memory_init(d, e)) {
		err_wrap(e, "soft device");
		goto fail;
	}
	d->pool = soft_pool_new(d->o.threads - 1);
	if (!d->pool) {
		err_set(e, ERR_NOMEM,
			"soft device: cannot start %u threads; ask for fewer "
			"or raise the process limit (ulimit -u)",
			d->o.threads);
		goto fail;
	}
	return &d->driver;
fail:
	soft_free(&d->driver);
	return NULL;
}
