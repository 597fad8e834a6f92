/*
 * kfd/runtime/copy.c - copies between any two places, by whom they cost least.
 *
 * The host copies what it can see; all else is the copier's that the opener of
 * the device has registered.
 */
#include <string.h>

#include "kfd/runtime/runtime.h"

#define SMALL_BYTES 4096u  /* the host is quicker than a launch */
#define SLOW_BYTES  65536u /* of VRAM that the host had better not read */

static bool fits_inside(const struct kfd_mem *m, size_t off, size_t n,
			const char *verb, struct err *e)
{
	if (off <= m->size_bytes && n <= m->size_bytes - off)
		return true;
	return err_set(e, ERR_USAGE,
		       "%s %zu bytes at offset %zu of '%s', which "
		       "has %zu",
		       verb, n, off, m->name, m->size_bytes);
}

bool kfd_copy(struct kfd_dev *dev, struct kfd_mem *dst, size_t dst_off,
	      const struct kfd_mem *src, size_t src_off, size_t n,
	      struct err *e)
{
	const uint64_t to = dst->va + dst_off, from = src->va + src_off;

	if (!kfd_dev_usable(dev, e) ||
	    !fits_inside(dst, dst_off, n, "copying to", e) ||
	    !fits_inside(src, src_off, n, "copying from", e))
		return false;
	if (to < from + n && from < to + n && n)
		return err_set(e, ERR_USAGE, "copying %zu bytes inside '%s': "
			       "the two places overlap", n, dst->name);
	if (dst->cpu && src->cpu &&
	    (n < SMALL_BYTES || src->domain != KFD_VRAM)) {
		memcpy((char *)dst->cpu + dst_off, (char *)src->cpu + src_off,
		       n);
		kfd_mem_flush(dev);
		return true;
	}
	kfd_mem_flush(dev);
	return dev->copier_ops->direct(dev, to, from, n, e) ||
	       err_wrap(e, "copying from '%s' to '%s'", src->name, dst->name);
}

bool kfd_write(struct kfd_dev *dev, struct kfd_mem *dst, size_t dst_off,
	       const void *src, size_t n, struct err *e)
{
	if (!kfd_dev_usable(dev, e) ||
	    !fits_inside(dst, dst_off, n, "writing", e))
		return false;
	if (dst->cpu) {
		memcpy((char *)dst->cpu + dst_off, src, n);
		kfd_mem_flush(dev);
		return true;
	}
	return dev->copier_ops->staged(dev, dst->va + dst_off, src, NULL, n,
				       e) ||
	       err_wrap(e, "writing '%s'", dst->name);
}

bool kfd_read(struct kfd_dev *dev, void *dst, const struct kfd_mem *src,
	      size_t src_off, size_t n, struct err *e)
{
	if (!kfd_dev_usable(dev, e) ||
	    !fits_inside(src, src_off, n, "reading", e))
		return false;
	if (src->cpu && (src->domain != KFD_VRAM || n < SLOW_BYTES)) {
		memcpy(dst, (char *)src->cpu + src_off, n);
		return true;
	}
	return dev->copier_ops->staged(dev, src->va + src_off, NULL, dst, n,
				       e) ||
	       err_wrap(e, "reading '%s'", src->name);
}
