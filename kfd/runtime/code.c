/*
 * kfd/runtime/code.c - code loading: whole code objects, and bare machine code
 * behind a kernel descriptor made here.
 *
 * Code lives in device memory; where the host cannot write that, the device
 * itself brings it there (copy.c).  Its addresses are never used again (kfd.h),
 * so nothing has to be invalidated.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/object/object.h"
#include "kfd/runtime/printf.h"
#include "kfd/runtime/runtime.h"

#define SLAB_BYTES  (1u << 20)
#define ENTRY_ALIGN 256u
/* Prefetch runs ahead of the last instruction by up to 63 lines of 128. */
#define TAIL_BYTES 256u
#define S_CODE_END 0xbf9f0000u /* SOPP opcode 31 */

struct kfd_code {
	struct kfd_dev *dev;
	struct kfd_code *prev, *next;
	struct mem *mem;   /* of a code object */
	struct slab *slab; /* of bare code */
	struct buf file;   /* the ELF: co points into it */
	struct co co;
	struct kfd_formats *formats; /* of printf, or NULL */
	struct kfd_kernel *kernel; /* [n_kernels] */
	int n_kernels;
	char *name; /* of bare code */
	bool raw;
};

static struct mem *code_mem(struct kfd_dev *dev, size_t bytes, const char *name,
			    struct err *e)
{
	struct mem *m = kfd_mem_new(dev,
				    dev->info.node.large_bar ?
					    MEM_FLAGS_VRAM :
					    MEM_FLAGS_PRIVATE,
				    bytes, name, e);
	if (m)
		m->holds_code = true;
	return m;
}

static struct kfd_code *code_new(struct kfd_dev *dev, int n_kernels)
{
	struct kfd_code *c = xcalloc(1, sizeof(*c));

	c->dev = dev;
	c->n_kernels = n_kernels;
	c->kernel = xcalloc((size_t)(n_kernels ? n_kernels : 1),
			    sizeof(*c->kernel));
	pthread_mutex_lock(&dev->lock);
	c->next = dev->codes;
	if (c->next)
		c->next->prev = c;
	dev->codes = c;
	pthread_mutex_unlock(&dev->lock);
	return c;
}

/* What the descriptor says, the same for both kinds of code. */
static void from_registers(struct kfd_kernel *k)
{
	k->wave_size = k->properties & AMD_PROP_WAVE32 ? 32 : 64;
	k->vgprs =
		(AMD_RSRC1_VGPRS(k->rsrc1) + 1) * (k->wave_size == 32 ? 8 : 4);
	k->wgp_mode = k->rsrc1 & AMD_RSRC1_WGP_MODE;
	k->dynamic_stack = k->properties & AMD_PROP_DYNAMIC_STACK;
}

/* ------------------------------------------------------ code objects --- */

/* How does the kernel print? */
static void find_print(struct kfd_kernel *k, const struct kfd_formats *f)
{
	for (uint32_t i = 0; i < k->n_args; i++) {
		const struct co_arg *a = &k->arg[i];

		k->hostcall |= a->kind == CO_ARG_HIDDEN_HOSTCALL_BUFFER;
		if (a->kind != CO_ARG_HIDDEN_PRINTF_BUFFER)
			continue;
		k->formats = f;
		k->printf_ring = !strcmp(a->name, KFD_PRINTF_RING_NAME);
	}
}

static void kernel_init(struct kfd_kernel *k, struct kfd_code *c,
			const struct co_kernel *ck, uint64_t base)
{
	*k = (struct kfd_kernel){
		.name = ck->name,
		.code = c,
		.object_va = base + ck->desc_off,
		.entry_va = base + ck->entry_off,
		.lds_bytes = ck->desc.group_segment_bytes,
		.private_bytes = ck->desc.private_segment_bytes,
		.kernarg_bytes = co_kernarg_bytes(ck),
		.kernarg_align = 16,
		.explicit_bytes = co_explicit_bytes(ck),
		.rsrc1 = ck->desc.rsrc1,
		.rsrc2 = ck->desc.rsrc2,
		.rsrc3 = ck->desc.rsrc3,
		.properties = ck->desc.properties,
		.max_wg = 1024,
	};
	from_registers(k);
	if (!ck->has_metadata)
		return;
	k->arg = ck->args;
	k->n_args = ck->n_args;
	find_print(k, c->formats);
	if (ck->kernarg_align > k->kernarg_align)
		k->kernarg_align = ck->kernarg_align;
	if (ck->max_flat_workgroup_size)
		k->max_wg = ck->max_flat_workgroup_size;
	memcpy(k->reqd_wg, ck->reqd_workgroup_size, sizeof(k->reqd_wg));
}

static bool check_chip(const struct kfd_dev *dev, const struct co *co,
		       struct err *e)
{
	const char *gfx = dev->info.gfx;
	const struct isa_chip *chip = isa_chip_find(gfx);
	/* There are chips of gfx11 that the table does not have. */
	const enum isa_gen gen = chip ? chip->gen : ISA_GFX11;

	if (!strcmp(co->chip, gfx) ||
	    ((chip || !strncmp(gfx, "gfx11", 5)) &&
	     !strcmp(co->chip, isa_gen_info(gen)->generic)))
		return true;
	return err_set(e, ERR_INPUT,
		       "the code object is for %s, the device "
		       "is %s; compile it for that",
		       co->chip, gfx);
}

static bool place_image(struct kfd_code *c, struct err *e)
{
	const size_t n = (size_t)c->co.span_bytes;
	void *image;

	c->mem = code_mem(c->dev, n, "code object", e);
	if (!c->mem)
		return false;
	/* Built aside: relocations read, and reads of VRAM are slow. */
	image = xcalloc(1, n);
	bool ok = co_image_build(&c->co, image, n, c->mem->pub.va, e);
	if (ok)
		ok = kfd_write(c->dev, &c->mem->pub, 0, image, n, e);
	free(image);
	return ok;
}

static void note_code(const struct kfd_code *c)
{
	const struct kfd_note n = { .kind = KFD_NOTE_CODE,
				    .va = c->mem->pub.va,
				    .size_bytes = c->co.span_bytes,
				    .name = "code object",
				    .elf = c->file.data,
				    .elf_bytes = c->file.len };

	if (c->dev->d->note)
		c->dev->d->note(c->dev->d, &n);
}

bool kfd_code_load(struct kfd_dev *dev, const void *elf, size_t len_bytes,
		   struct kfd_code **out, struct err *e)
{
	struct buf file = { 0 };
	struct co co;

	*out = NULL;
	if (!kfd_dev_usable(dev, e))
		return false;
	buf_add(&file, elf, len_bytes);
	if (!co_parse(&co, file.data, file.len, e) ||
	    !check_chip(dev, &co, e)) {
		co_fini(&co);
		buf_fini(&file);
		return err_wrap(e, "code object");
	}
	struct kfd_code *c = code_new(dev, (int)co.n_kernels);
	c->file = file;
	c->co = co;
	if (!place_image(c, e)) {
		kfd_code_unload(c);
		return err_wrap(e, "loading the code object");
	}
	if (c->co.n_printf_formats)
		c->formats = kfd_formats_new(c->co.printf_formats,
					     c->co.n_printf_formats);
	for (int i = 0; i < c->n_kernels; i++)
		kernel_init(&c->kernel[i], c, &c->co.kernels[i],
			    c->mem->pub.va);
	note_code(c);
	*out = c;
	return true;
}

int kfd_code_count(const struct kfd_code *c)
{
	return c->n_kernels;
}

const struct kfd_kernel *kfd_code_at(const struct kfd_code *c, int i)
{
	return i >= 0 && i < c->n_kernels ? &c->kernel[i] : NULL;
}

bool kfd_code_kernel(struct kfd_code *c, const char *name,
		     const struct kfd_kernel **out, struct err *e)
{
	const struct co_kernel *ck;

	*out = NULL;
	if (c->raw) {
		if (!strcmp(name, c->name))
			*out = c->kernel;
		return *out || err_set(e, ERR_USAGE,
				       "no kernel '%s': the "
				       "only one is '%s'",
				       name, c->name);
	}
	ck = co_kernel_require(&c->co, name, e);
	if (ck)
		*out = &c->kernel[ck - c->co.kernels];
	return ck != NULL;
}

/* --------------------------------------------------------- bare code --- */

/* With dev->lock held: full and unused slabs go, their addresses stay. */
static struct mem *slab_release(struct kfd_dev *dev, struct slab *s)
{
	if (s->users || !s->closed)
		return NULL;
	struct slab **at = &dev->slabs;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	struct mem *m = s->mem;
	free(s);
	return m;
}

/*
 * A place in a slab.  The lock is not held across kfd_mem_new(): two threads
 * may each make a slab, which costs memory and nothing else.
 */
static struct slab *slab_take(struct kfd_dev *dev, size_t bytes, size_t *at,
			      struct err *e)
{
	struct slab *s;
	struct mem *dead = NULL, *m = NULL;

	for (;;) {
		pthread_mutex_lock(&dev->lock);
		if (m) {
			s = xcalloc(1, sizeof(*s));
			s->mem = m;
			s->next = dev->slabs;
			dev->slabs = s;
		}
		s = dev->slabs;
		if (s && !s->closed && s->mem->bytes - s->used >= bytes) {
			*at = s->used;
			s->used += bytes;
			s->users++;
			pthread_mutex_unlock(&dev->lock);
			return s;
		}
		if (s) {
			s->closed = true;
			dead = slab_release(dev, s);
		}
		pthread_mutex_unlock(&dev->lock);
		kfd_mem_delete(dev, dead, NULL);
		dead = NULL;
		m = code_mem(dev, bytes > SLAB_BYTES ? bytes : SLAB_BYTES,
			     "bare code", e);
		if (!m)
			return NULL;
	}
}

static void slab_give(struct kfd_dev *dev, struct slab *s)
{
	pthread_mutex_lock(&dev->lock);
	s->users--;
	struct mem *dead = slab_release(dev, s);
	pthread_mutex_unlock(&dev->lock);
	kfd_mem_delete(dev, dead, NULL);
}

static void write_raw(char *at, const void *code, size_t len_bytes,
		      size_t total, const struct kfd_raw_desc *d)
{
	const uint32_t end = S_CODE_END;
	struct amd_kernel_descriptor kd = {
		.group_segment_fixed_size = d->lds_bytes,
		.private_segment_fixed_size = d->private_bytes,
		.kernarg_size = d->kernarg_bytes,
		.kernel_code_entry_byte_offset = ENTRY_ALIGN,
		.compute_pgm_rsrc1 = d->rsrc1,
		.compute_pgm_rsrc2 = d->rsrc2,
		.compute_pgm_rsrc3 = d->rsrc3,
		.kernel_code_properties = d->properties,
	};

	memset(at, 0, ENTRY_ALIGN);
	memcpy(at, &kd, sizeof(kd));
	memcpy(at + ENTRY_ALIGN, code, len_bytes);
	for (size_t i = ENTRY_ALIGN + len_bytes; i < total; i += 4)
		memcpy(at + i, &end, 4);
}

static bool check_raw(struct kfd_dev *dev, size_t len_bytes, struct err *e)
{
	if (!kfd_dev_usable(dev, e))
		return false;
	if (!len_bytes || len_bytes % 4 || len_bytes > (16u << 20))
		return err_set(e, ERR_USAGE,
			       "%zu bytes of code; wanted whole "
			       "dwords, up to 16 MiB",
			       len_bytes);
	return true;
}

static size_t raw_bytes(size_t len_bytes)
{
	return ALIGN_UP(ENTRY_ALIGN + len_bytes + TAIL_BYTES, ENTRY_ALIGN);
}

static void raw_kernel(struct kfd_code *c, const struct kfd_raw_desc *desc,
		       uint64_t va)
{
	c->raw = true;
	*c->kernel = (struct kfd_kernel){
		.name = c->name,
		.code = c,
		.object_va = va,
		.entry_va = va + ENTRY_ALIGN,
		.lds_bytes = desc->lds_bytes,
		.private_bytes = desc->private_bytes,
		.kernarg_bytes = desc->kernarg_bytes,
		.kernarg_align = 16,
		.explicit_bytes = desc->kernarg_bytes,
		.rsrc1 = desc->rsrc1,
		.rsrc2 = desc->rsrc2,
		.rsrc3 = desc->rsrc3,
		.properties = desc->properties,
		.max_wg = 1024,
	};
	from_registers(c->kernel);
}

bool kfd_code_raw(struct kfd_dev *dev, const void *code, size_t len_bytes,
		  const struct kfd_raw_desc *desc,
		  const struct kfd_kernel **out, struct err *e)
{
	const size_t total = raw_bytes(len_bytes);
	size_t at;

	*out = NULL;
	if (!check_raw(dev, len_bytes, e))
		return false;
	struct slab *s = slab_take(dev, total, &at, e);
	if (!s)
		return false;
	char *image = xmalloc(total);
	write_raw(image, code, len_bytes, total, desc);
	bool good = kfd_write(dev, &s->mem->pub, at, image, total, e);
	free(image);
	if (!good) {
		slab_give(dev, s);
		return false;
	}
	struct kfd_code *c = code_new(dev, 1);
	c->slab = s;
	c->name = xstrdup(desc->name ? desc->name : "raw");
	raw_kernel(c, desc, s->mem->pub.va + at);
	*out = c->kernel;
	return true;
}

bool kfd_code_raw_host(struct kfd_dev *dev, const void *code, size_t len_bytes,
		       const struct kfd_raw_desc *desc,
		       const struct kfd_kernel **out, struct err *e)
{
	const size_t total = raw_bytes(len_bytes);
	struct mem *m;

	*out = NULL;
	if (!check_raw(dev, len_bytes, e))
		return false;
	m = kfd_mem_new(dev, MEM_FLAGS_GTT, total, desc->name, e);
	if (!m)
		return false;
	m->holds_code = true;
	write_raw(m->pub.cpu, code, len_bytes, total, desc);
	struct kfd_code *c = code_new(dev, 1);
	c->mem = m;
	c->name = xstrdup(desc->name);
	raw_kernel(c, desc, m->pub.va);
	*out = c->kernel;
	return true;
}

const char *kfd_code_name_at(struct kfd_dev *dev, uint64_t va)
{
	for (const struct kfd_code *c = dev->codes; c; c = c->next)
		for (int i = 0; i < c->n_kernels; i++)
			if (c->kernel[i].object_va == va)
				return c->kernel[i].name;
	return NULL;
}

/* ---------------------------------------------------------- the end ---- */

static void code_delete(struct kfd_code *c)
{
	struct kfd_dev *dev = c->dev;

	pthread_mutex_lock(&dev->lock);
	if (c->prev)
		c->prev->next = c->next;
	else
		dev->codes = c->next;
	if (c->next)
		c->next->prev = c->prev;
	pthread_mutex_unlock(&dev->lock);
	kfd_mem_delete(dev, c->mem, NULL);
	if (c->slab)
		slab_give(dev, c->slab);
	else if (!c->raw)
		co_fini(&c->co);
	buf_fini(&c->file);
	kfd_formats_free(c->formats);
	free(c->kernel);
	free(c->name);
	free(c);
}

void kfd_code_unload(struct kfd_code *c)
{
	if (c && *c->dev->alive && !kfd_is_late(c->dev))
		code_delete(c);
}

void kfd_codes_fini(struct kfd_dev *dev)
{
	while (dev->codes)
		code_delete(dev->codes);
	for (struct slab *s = dev->slabs, *next; s; s = next) {
		next = s->next;
		kfd_mem_delete(dev, s->mem, NULL);
		free(s);
	}
	dev->slabs = NULL;
}
