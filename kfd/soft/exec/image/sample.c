/*
 * kfd/soft/exec/image/sample.c - images through a sampler.
 *
 * What compute code uses: the level is 0, or given, or there is only one.
 * RDNA3 ISA 10.3, 10.4, 10.6.  AMD publishes no arithmetic of filters; this is
 * assumed:
 *
 *  - a coordinate times the size is rounded to f32, then to the nearest 1/256
 *    of a texel, or down with TRUNC_COORD; a NaN is 0;
 *  - fractions, of levels too, have 8 bits, and the weighted sum is exact until
 *    it is rounded to f32 once;
 *  - a level above 0 is minified; the slice of an array is the nearest, the
 *    even one of two, inside of the view;
 *  - to nearest even is how a result becomes 16 bits.
 */
#include <math.h>
#include <string.h>

#include "base/float.h"
#include "kfd/soft/exec/image/image.h"

enum clamp { WRAP, MIRROR, CLAMP, MIRROR_ONCE, BORDER = 6 };
enum filter { POINT, LINEAR };

struct sampler {
	uint8_t clamp[3]; /* enum clamp */
	bool unnormalized, trunc;
	float min_lod, max_lod;
	uint8_t mag, min;   /* enum filter, of x and y */
	uint8_t z, mip;	    /* 0: as x and y, none; 1: point; 2: linear */
	uint8_t border;
	bool biased;
};

/* ------------------------------------------------------------ sampler ---- */

static bool check_sampler(struct soft_wave *w, const struct soft_uop *u,
			  const uint32_t *d, const struct sampler *s)
{
	for (int i = 0; i < 3; i++)
		if (s->clamp[i] > MIRROR_ONCE && s->clamp[i] != BORDER)
			return image_refuse(w, u, "clamp mode %u of a sampler",
					    s->clamp[i]);
	if (s->mag > LINEAR || s->min > LINEAR || s->z > 2 || s->mip > 2)
		return image_refuse(w, u, "an anisotropic sampler");
	if (d[0] >> 29 & 3)
		return image_refuse(w, u, "filter mode %u (bits 30:29) of a "
				    "sampler, wanted 0, blend",
				    d[0] >> 29 & 3);
	if (d[0] >> 19 & 3)
		return image_refuse(w, u, "a sampler for motion compensation "
				    "or sRGB (bits 20:19)");
	if (s->border == 3)
		return image_refuse(w, u, "a border color in a register");
	if (s->unnormalized && (s->clamp[0] < CLAMP || s->clamp[1] < CLAMP))
		return image_refuse(w, u, "unnormalized coordinates that wrap");
	return true;
}

static bool sampler_init(struct sampler *s, struct soft_wave *w,
			 const struct soft_uop *u)
{
	const uint32_t *d = &w->s[u->in.f[ISA_F_SSAMP] * 4];

	for (int i = 0; i < 3; i++)
		s->clamp[i] = d[0] >> 3 * i & 7;
	s->unnormalized = (d[0] >> 15 & 1) || u->in.f[ISA_F_UNORM];
	s->trunc = d[0] >> 27 & 1;
	s->min_lod = (float)(d[1] & 0xfff) / 256;
	s->max_lod = (float)(d[1] >> 12 & 0xfff) / 256;
	s->biased = d[2] & 0xfffff;
	s->mag = d[2] >> 20 & 3;
	s->min = d[2] >> 22 & 3;
	s->z = d[2] >> 24 & 3;
	s->mip = d[2] >> 26 & 3;
	s->border = d[3] >> 30;
	return check_sampler(w, u, d, s);
}

static bool is_integer(const struct image *t)
{
	return soft_format_one(t->format, false) == 1;
}

/* What depends on both, and on the instruction. */
static bool check_both(struct soft_wave *w, const struct soft_uop *u,
		       const struct image *t, const struct sampler *s)
{
	const bool linear = s->mag || s->min || s->z == 2 || s->mip == 2;

	if (t->unbound)
		return true;
	if (is_integer(t) && linear)
		return image_refuse(w, u, "a linear filter of integers");
	if (u->in.op == ISA_image_sample && t->last_level > t->base_level)
		return image_refuse(w, u, "a level that follows from the "
				    "lanes of a quad");
	if (u->in.op == ISA_image_sample && s->mag != s->min)
		return image_refuse(w, u, "a filter that follows from the "
				    "lanes of a quad");
	if (u->in.op == ISA_image_sample_lz && s->min_lod > 0)
		return image_refuse(w, u, "MIN_LOD of a sampler");
	if (u->in.op == ISA_image_sample_l && s->biased)
		return image_refuse(w, u, "LOD_BIAS of a sampler");
	return true;
}

/* ------------------------------------------------------- coordinates ---- */

/* Texels of one axis, -1 beyond the border, and the second one's weight. */
struct axis {
	int64_t i[2];
	uint32_t weight; /* of 256 */
	bool linear;
};

static int64_t modulo(int64_t a, int64_t n)
{
	return a % n < 0 ? a % n + n : a % n;
}

static int64_t place_index(enum clamp mode, int64_t i, int64_t size)
{
	switch (mode) {
	case WRAP:
		return modulo(i, size);
	case MIRROR:
		i = modulo(i, 2 * size);
		return i < size ? i : 2 * size - 1 - i;
	case BORDER:
		return i < 0 || i >= size ? -1 : i;
	default:
		return i < 0 ? 0 : i >= size ? size - 1 : i;
	}
}

static struct axis find_axis(const struct sampler *s, int k, float c,
			     uint32_t size, bool linear)
{
	const enum clamp mode = (enum clamp)s->clamp[k];
	const double far = 0x1p40;
	double at = s->unnormalized ? c : (float)(c * (float)size);
	struct axis a = { .linear = linear };
	int64_t fixed;

	if (isnan(at) || (isinf(at) && mode <= MIRROR))
		at = 0;
	if (mode <= MIRROR)
		at = fmod(at, 2.0 * size);
	if (mode == MIRROR_ONCE)
		at = fabs(at);
	at = at > far ? far : at < -far ? -far : at;
	fixed = (int64_t)floor(at * 256 + (s->trunc ? 0 : 0.5));
	if (linear)
		fixed -= 128;
	a.weight = linear ? (uint32_t)(fixed & 255) : 0;
	for (int j = 0; j < 2; j++)
		a.i[j] = place_index(mode, (fixed >> 8) + j, size);
	return a;
}

static uint32_t nearest_slice(float c, uint32_t n)
{
	const float r = rintf(c);

	return !(r > 0) ? 0 : r >= (float)n ? n - 1 : (uint32_t)r;
}

static float half_value(uint32_t bits)
{
	const uint16_t u = (uint16_t)bits;
	_Float16 h;

	memcpy(&h, &u, sizeof(h));
	return (float)h;
}

/* ------------------------------------------------------------ filters ---- */

/* The border's color, as if it had been in memory. */
static void put_border(const struct image *t, const struct sampler *s,
		       uint32_t out[4])
{
	static const uint8_t order[8][4] = { { 0, 1, 2, 3 }, { 0, 3, 1, 2 },
					     { 3, 2, 1, 0 }, { 3, 0, 1, 2 },
					     { 2, 1, 0, 3 }, { 1, 0, 3, 2 },
					     { 0, 1, 2, 3 }, { 0, 1, 2, 3 } };
	const uint32_t one = soft_format_one(t->format, false);
	const uint32_t color[4] = { s->border == 2 ? one : 0,
				    s->border == 2 ? one : 0,
				    s->border == 2 ? one : 0,
				    s->border ? one : 0 };

	for (int i = 0; i < 4; i++)
		out[i] = color[order[t->border_order][i]];
}

/* One texel's components as the format has them. */
static bool fetch_texel(struct soft_wave *w, const struct image *t,
			const struct sampler *s, const int64_t i[3],
			uint32_t level, int lane, uint32_t out[4])
{
	const struct texel at = { (uint32_t)i[0], (uint32_t)i[1],
				  (uint32_t)i[2], level };
	uint8_t mem[16] = { 0 };
	uint64_t va;

	if (i[0] < 0 || i[1] < 0 || i[2] < 0 || !image_find(t, &at, &va)) {
		put_border(t, s, out);
		return true;
	}
	if (!soft_load(w, va, mem, t->bytes, lane))
		return false;
	soft_format_load(t->format, false, mem, out);
	return true;
}

/* The sum of up to eight texels of one level, `share` of it, to sum[]. */
static bool add_level(struct soft_wave *w, const struct image *t,
		      const struct sampler *s, const struct axis a[3],
		      uint32_t level, int lane, double share, double sum[4])
{
	for (int n = 0; n < 8; n++) {
		double weight = share;
		int64_t i[3];
		uint32_t v[4];

		for (int k = 0; k < 3; k++) {
			const int second = n >> k & 1;

			i[k] = a[k].i[second];
			weight *= second ? a[k].weight / 256.0 :
					   (256 - a[k].weight) / 256.0;
		}
		if (weight == 0)
			continue;
		if (!fetch_texel(w, t, s, i, level, lane, v))
			return false;
		for (int k = 0; k < 4; k++)
			sum[k] += weight * (double)f32_value(v[k]);
	}
	return true;
}

/* Where c[] lies in a level, along each axis. */
static void find_axes(const struct image *t, const struct sampler *s,
		      const float c[3], uint32_t level, bool linear,
		      struct axis a[3])
{
	const bool rows = t->type != IMAGE_1D && t->type != IMAGE_1D_ARRAY;
	const bool deep = s->z ? s->z == 2 : linear;
	uint32_t extent[3];

	image_extent(t, level, extent);
	a[0] = find_axis(s, 0, c[0], extent[0], linear);
	a[1] = (struct axis){ .i = { 0, 0 } };
	if (rows)
		a[1] = find_axis(s, 1, c[1], extent[1], linear);
	if (t->type == IMAGE_3D)
		a[2] = find_axis(s, 2, c[2], extent[2], deep);
	else
		a[2] = (struct axis){ .i = { nearest_slice(c[2], extent[2]) } };
}

/* -------------------------------------------------------------- lanes ---- */

/* Coordinates x, y, z (or slice), and the level. */
static void read_coordinates(const struct soft_wave *w,
			     const struct soft_uop *u, const struct image *t,
			     int half, uint32_t lane, float c[3], float *lod)
{
	const int n = image_coordinates(t->type);
	const bool has_lod = u->in.op == ISA_image_sample_l;
	uint32_t v[5] = { 0 };
	float f[5] = { 0 };

	image_addresses(w, u, half, lane, n + has_lod, v);
	for (int i = 0; i < n + has_lod; i++)
		f[i] = u->in.f[ISA_F_A16] ? half_value(v[i]) : f32_value(v[i]);
	c[0] = f[0];
	c[1] = t->type == IMAGE_1D_ARRAY || n < 2 ? 0 : f[1];
	c[2] = t->type == IMAGE_1D_ARRAY ? f[1] : n == 3 ? f[2] : 0;
	*lod = has_lod ? f[n] : 0;
}

/* The level in 1/256, limited as the sampler and the view call for. */
static uint32_t limit_level(const struct image *t, const struct sampler *s,
			    const struct soft_uop *u, float lod)
{
	const uint32_t last = (t->last_level - t->base_level) * 256;
	uint32_t fixed;

	if (u->in.op != ISA_image_sample_l)
		return 0;
	lod = !(lod > s->min_lod) ? s->min_lod : lod;
	lod = lod > s->max_lod ? s->max_lod : lod;
	fixed = (uint32_t)floorf(lod * 256 + 0.5f);
	if (s->mip == 1)
		fixed = (fixed + 128) & ~255u;
	return fixed > last ? last : fixed;
}

static bool sample_blend(struct soft_wave *w, const struct image *t,
			  const struct sampler *s, const float c[3],
			  uint32_t lod, bool linear, int lane, uint32_t out[4])
{
	double sum[4] = { 0 };

	for (uint32_t i = 0; i < 2; i++) {
		const double share = i ? (lod & 255) / 256.0 :
					 (256 - (lod & 255)) / 256.0;
		struct axis a[3];

		if (share == 0)
			continue;
		find_axes(t, s, c, lod / 256 + i, linear, a);
		if (!add_level(w, t, s, a, lod / 256 + i, lane, share, sum))
			return false;
	}
	for (int i = 0; i < 4; i++)
		out[i] = f32_bits((float)sum[i]);
	return true;
}

static bool sample_point(struct soft_wave *w, const struct image *t,
			 const struct sampler *s, const float c[3],
			 uint32_t lod, int lane, uint32_t out[4])
{
	struct axis a[3];

	find_axes(t, s, c, lod / 256, false, a);
	return fetch_texel(w, t, s,
			   (int64_t[3]){ a[0].i[0], a[1].i[0], a[2].i[0] },
			   lod / 256, lane, out);
}

/* Floats lose denormals (RDNA3 ISA 10.4); 16 bits of what has them. */
static uint32_t finish_component(const struct image *t, bool d16, uint32_t v)
{
	_Float16 h;
	uint16_t bits;

	if (is_integer(t))
		return d16 ? v & 0xffff : v;
	v &= v & 0x7f800000 ? ~0u : 0x80000000;
	if (!d16)
		return v;
	h = (_Float16)f32_value(v);
	memcpy(&bits, &h, sizeof(bits));
	return bits;
}

static bool sample_lane(struct soft_wave *w, const struct soft_uop *u,
			const struct image *t, const struct sampler *s,
			int half, uint32_t lane)
{
	const int l = half * SOFT_LANES + (int)lane;
	uint32_t all[4] = { 0 }, value[4] = { 0 }, level;
	float c[3], lod;
	bool linear;

	if (t->unbound) {
		image_put(w, u, half, lane, value);
		return true;
	}
	read_coordinates(w, u, t, half, lane, c, &lod);
	linear = lod > 0 ? s->min : s->mag;
	level = s->mip ? limit_level(t, s, u, lod) : 0;
	if (linear || s->z == 2 || level & 255 ?
		    !sample_blend(w, t, s, c, level, linear, l, all) :
		    !sample_point(w, t, s, c, level, l, all))
		return false;
	for (int i = 0; i < 4; i++)
		all[i] = finish_component(t, u->in.f[ISA_F_D16], all[i]);
	image_select(t, u->in.f[ISA_F_D16], all, value);
	image_put(w, u, half, lane, value);
	return true;
}

void image_sample_run(struct soft_wave *w, const struct soft_uop *u)
{
	struct image t;
	struct sampler s;

	if (!image_init(&t, w, u) || !sampler_init(&s, w, u) ||
	    !check_both(w, u, &t, &s))
		return;
	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
	if (!sample_lane(w, u, &t, &s, h, lane))
		return;
}

const char *image_sample_refusal(const struct isa_inst *in)
{
	switch (in->op) {
	case ISA_image_sample:
	case ISA_image_sample_l:
	case ISA_image_sample_lz:
		return NULL;
	}
	return ": of sampling, only image_sample, image_sample_l and "
	       "image_sample_lz are";
}
