/*
 * kfd/soft/exec/image/image.h - image instructions (MIMG).
 *
 * Private to this folder, but for what mem.h declares.  What is executed is
 * what compute code uses: images of one, two and three dimensions and arrays,
 * without tiling (SW_LINEAR), and intersections of rays.  Everything else is
 * refused by a fault that names the instruction and says why.
 *
 * The descriptor is RDNA3 ISA 10.5, its swizzle mode in bits 120:116.  In
 * memory, as AMD's address library (addrlib, gfx11) lays linear surfaces out:
 * rows start at multiples of 256 bytes; a slice has all levels, the smallest
 * first, and level 0 last; slices of arrays and of volumes follow each other.
 * A level's extents are rounded down where they are limits, and up where they
 * make place.  Images of one level have the pitch that the descriptor names, if
 * it is at least the width.
 *
 * Where AMD publishes nothing, this is assumed: a store sends the component
 * that a load returns in place i back to where it came from, the first place
 * of several; an access out of range loads 0 in every component, and an atomic
 * there returns 0.
 */
#ifndef T0_KFD_SOFT_IMAGE_H
#define T0_KFD_SOFT_IMAGE_H

#include "kfd/soft/exec/mem.h"

enum image_type { /* bits 127:124 */
	IMAGE_1D = 8,
	IMAGE_2D = 9,
	IMAGE_3D = 10,
	IMAGE_1D_ARRAY = 12,
	IMAGE_2D_ARRAY = 13,
};

enum { IMAGE_LEVELS = 16 };

struct image {
	bool unbound; /* all zeros */
	uint64_t base;
	enum image_type type;
	uint32_t format, bytes; /* of a texel */
	uint32_t width, height, depth; /* of level 0 */
	uint32_t first_slice, n_slices; /* of the view; 0 slices: see depth */
	uint32_t base_level, last_level; /* of the view */
	uint8_t sel[4], border_order;
	uint64_t slice_bytes;
	uint64_t offset[IMAGE_LEVELS]; /* of levels in a slice */
	uint32_t pitch_bytes[IMAGE_LEVELS];
};

/* Where a texel is, in whole numbers; z is the slice of an array as well. */
struct texel {
	uint32_t x, y, z, level; /* level of the view */
};

enum { IMAGE_ADDRESSES = 16 };

/* ---------------------------------------------------------- image.c ---- */

/* The instruction's descriptor; false after refusing it. */
bool image_init(struct image *t, struct soft_wave *w, const struct soft_uop *u);

/* False after refusing it, always: the text says why. */
bool image_refuse(struct soft_wave *w, const struct soft_uop *u,
		  const char *fmt, ...) T0_PRINTF(3, 4);

/* How many coordinates the type has, the slice among them. */
int image_coordinates(enum image_type type);

/* Extents of a level: {x, y, z}, z of arrays the slices of the view. */
void image_extent(const struct image *t, uint32_t level, uint32_t extent[3]);

/* The address of a texel; false: it is out of range. */
bool image_find(const struct image *t, const struct texel *at, uint64_t *va);

/* The address registers of a lane, in order; those that it has not are 0. */
void image_registers(const struct soft_wave *w, const struct soft_uop *u,
		     int half, uint32_t lane,
		     uint32_t dword[IMAGE_ADDRESSES]);

/*
 * The n first address components of a lane: 32 bits each, or 16 each with A16.
 */
void image_addresses(const struct soft_wave *w, const struct soft_uop *u,
		     int half, uint32_t lane, int n, uint32_t *value);

/* The four components by DST_SEL, from those of the format. */
void image_select(const struct image *t, bool d16, const uint32_t in[4],
		  uint32_t out[4]);

/* Those that DMASK has, to the registers of one lane. */
void image_put(struct soft_wave *w, const struct soft_uop *u, int half,
	       uint32_t lane, const uint32_t value[4]);

/* ------------------------------------------------------------ ray.c ---- */

soft_handler image_ray_run;
/* As image_sample_refusal(), of intersections with rays. */
const char *image_ray_refusal(const struct isa_inst *in);

/* --------------------------------------------------------- sample.c ---- */

soft_handler image_sample_run;
/* Why this sampling instruction is not executed; NULL: it is. */
const char *image_sample_refusal(const struct isa_inst *in);

#endif
