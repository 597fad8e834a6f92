/*
 * tests/ref/late_image.c - the late executor: images of two dimensions.
 *
 * Linear ones of one level (RDNA3 ISA 10.1 to 10.6): texels are loaded, stored,
 * and sampled at level 0 with coordinates from 0 to 1 that stop at the edge.
 * Of a sample, the texels are taken when it is performed, each as it is then.
 */
#include "tests/ref/late_int.h"

#include <math.h>
#include <string.h>

#include "base/float.h"

enum numbers { UNORM, UINT, FLOAT };

/* Formats by their number: components of as many bits each. */
static const struct format {
	unsigned number, n, bits;
	enum numbers numbers;
} formats[] = {
	{ 1, 1, 8, UNORM },  { 5, 1, 8, UINT },	   { 20, 1, 32, UINT },
	{ 22, 1, 32, FLOAT }, { 42, 4, 8, UNORM }, { 46, 4, 8, UINT },
	{ 61, 4, 32, UINT }, { 63, 4, 32, FLOAT },
};

enum { TYPE_2D = 9, DIM_2D = 1, CLAMP_TO_EDGE = 2 };

struct picture {
	const struct format *f;
	uint64_t base;
	uint32_t width, height, row_bytes;
	uint8_t sel[4];
};

bool late_is_image(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_MIMG;
}

static uint32_t read_field(const uint32_t *d, int high, int low)
{
	uint32_t v = 0;

	for (int i = high; i >= low; i--)
		v = v << 1 | (d[i / 32] >> i % 32 & 1);
	return v;
}

static bool read_descriptor(const uint32_t *d, struct picture *p)
{
	const uint32_t number = read_field(d, 59, 52);

	p->f = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].number == number)
			p->f = &formats[i];
	if (!p->f || read_field(d, 127, 124) != TYPE_2D ||
	    read_field(d, 120, 116) || read_field(d, 115, 108) ||
	    read_field(d, 51, 48))
		return false;
	p->base = (uint64_t)read_field(d, 39, 0 + 32) << 40 | (uint64_t)d[0]
								      << 8;
	p->width = read_field(d, 75, 62) + 1;
	p->height = read_field(d, 91, 78) + 1;
	p->row_bytes = p->width * p->f->n * p->f->bits / 8;
	p->row_bytes = (p->row_bytes + 255) / 256 * 256;
	if (read_field(d, 141, 128) >= p->width)
		p->row_bytes = (read_field(d, 141, 128) + 1) * p->f->n *
			       p->f->bits / 8;
	for (int i = 0; i < 4; i++)
		p->sel[i] = (uint8_t)read_field(d, 98 + 3 * i, 96 + 3 * i);
	return true;
}

static uint32_t read_vgpr(const struct late_wave *w, int reg, int lane)
{
	return w->s.v[lane / 32][reg & 255][lane % 32];
}

/* The two coordinates of a lane. */
static void read_coordinates(const struct late_wave *w,
			     const struct isa_inst *in, int lane, uint32_t c[2])
{
	int k = 0;

	for (int i = 0; i < in->n_opnd; i++)
		for (int j = 0; in->opnd[i].slot == ISA_SLOT_VADDR && k < 2 &&
				j < in->opnd[i].dwords;
		     j++)
			c[k++] = read_vgpr(w, in->opnd[i].reg + j, lane);
}

static uint64_t texel_at(const struct picture *p, uint32_t x, uint32_t y)
{
	return p->base + (uint64_t)y * p->row_bytes +
	       (uint64_t)x * p->f->n * p->f->bits / 8;
}

/* --------------------------------------------------------------- texels ---- */

/* A texel's four components as registers have them. */
static void unpack_texel(const struct picture *p, const uint32_t *texel,
			 uint32_t out[4])
{
	const uint32_t one = p->f->numbers == UINT ? 1 : f32_bits(1);
	uint32_t in[4] = { 0 };

	for (unsigned i = 0; i < p->f->n; i++)
		in[i] = p->f->bits == 32 ? texel[i] : texel[0] >> 8 * i & 255;
	for (unsigned i = 0; i < p->f->n && p->f->numbers == UNORM; i++)
		in[i] = f32_bits((float)in[i] / 255);
	for (int i = 0; i < 4; i++)
		out[i] = p->sel[i] >= 4 ? in[p->sel[i] - 4] :
			 p->sel[i] == 1 ? one :
					  0;
}

static uint32_t pack_component(const struct picture *p, uint32_t u)
{
	const float f = f32_value(u);

	if (p->f->numbers != UNORM)
		return p->f->bits == 8 && u > 255 ? 255 : u;
	return !(f > 0) ? 0 : f >= 1 ? 255 : (uint32_t)rintf(f * 255);
}

/* What a store sends: components go back to where loads have them from. */
static void pack_texel(const struct late_wave *w, const struct isa_inst *in,
		       const struct picture *p, int lane, uint32_t *texel)
{
	uint32_t v[4] = { 0 };
	int n = 0;

	for (int i = 0; i < 4; i++)
		if (in->f[ISA_F_DMASK] >> i & 1)
			v[i] = read_vgpr(w, (int)in->f[ISA_F_VDATA] + n++,
					 lane);
	memset(texel, 0, 16);
	for (int i = 3; i >= 0; i--) {
		const int to = p->sel[i] - 4;

		if (to < 0 || to >= (int)p->f->n)
			continue;
		if (p->f->bits == 32)
			texel[to] = v[i];
		else
			texel[0] = (texel[0] & ~(255u << 8 * to)) |
				   pack_component(p, v[i]) << 8 * to;
	}
}

/* ---------------------------------------------------------------- issue ---- */

/* One axis of a linear filter: the texels, and the weight of the second. */
static float split_axis(float c, uint32_t size, bool linear, uint32_t at[2])
{
	const float place = c * (float)size - (linear ? 0.5f : 0);
	const float first = floorf(place);

	for (int i = 0; i < 2; i++) {
		const float x = first + (float)i;

		at[i] = x < 0 ? 0 :
			x > (float)(size - 1) ? size - 1 :
						(uint32_t)x;
	}
	return linear ? place - first : 0;
}

static void place_sample(const struct picture *p, struct late_op *op, int lane,
			 const uint32_t c[2])
{
	uint32_t x[2], y[2];
	float u, v;

	u = split_axis(f32_value(c[0]), p->width, op->linear, x);
	v = split_axis(f32_value(c[1]), p->height, op->linear, y);
	for (int i = 0; i < 4; i++) {
		op->at[lane][i] = texel_at(p, x[i & 1], y[i >> 1]);
		op->weight[lane][i] = (i & 1 ? u : 1 - u) *
				      (i >> 1 ? v : 1 - v);
	}
}

static bool read_sampler(const struct late_wave *w, const struct isa_inst *in,
			 struct late_op *op)
{
	const uint32_t *d = &w->s.s[in->f[ISA_F_SSAMP] * 4];

	op->linear = d[2] >> 20 & 3;
	return (d[0] & 63) == (CLAMP_TO_EDGE | CLAMP_TO_EDGE << 3) &&
	       !(d[0] >> 15 & 1) && (d[2] >> 20 & 3) == (d[2] >> 22 & 3) &&
	       (d[2] >> 20 & 3) < 2;
}

bool late_issue_image(struct late_wave *w, const struct isa_inst *in,
		      struct late_op *op)
{
	const bool store = in->op == ISA_image_store;
	const bool sample = in->op == ISA_image_sample ||
			    in->op == ISA_image_sample_lz;
	struct picture p;

	if ((!store && !sample && in->op != ISA_image_load) ||
	    in->f[ISA_F_DIM] != DIM_2D || in->f[ISA_F_A16] ||
	    in->f[ISA_F_D16] ||
	    !read_descriptor(&w->s.s[in->f[ISA_F_SRSRC] * 4], &p) ||
	    (sample && !read_sampler(w, in, op)))
		return false;
	memcpy(op->descriptor, &w->s.s[in->f[ISA_F_SRSRC] * 4],
	       sizeof(op->descriptor));
	op->loads = !store;
	op->stores = store;
	op->need = store ? LATE_VS : LATE_VM;
	op->n_parts = sample ? 4 : 1;
	op->part_bytes = p.f->n * p.f->bits / 8;
	for (int i = 0; i < w->lanes; i++) {
		uint32_t c[2] = { 0 };

		if (!(op->exec >> i & 1))
			continue;
		read_coordinates(w, in, i, c);
		if (sample) {
			place_sample(&p, op, i, c);
			continue;
		}
		op->outside[i] = c[0] >= p.width || c[1] >= p.height;
		if (!op->outside[i])
			op->at[i][0] = texel_at(&p, c[0], c[1]);
		if (store)
			pack_texel(w, in, &p, i, op->data[i]);
	}
	return true;
}

/* -------------------------------------------------------------- deliver ---- */

void late_deliver_image(struct late_wave *w, const struct late_op *op, int lane)
{
	const struct isa_inst *in = op->in;
	const uint32_t words = (op->part_bytes + 3) / 4;
	uint32_t v[4] = { 0 };
	struct picture p;
	int n = 0;

	read_descriptor(op->descriptor, &p);
	if (!op->outside[lane])
		unpack_texel(&p, op->data[lane], v);
	for (int i = 0; i < 4 && op->n_parts == 4; i++) {
		float sum = 0;

		for (unsigned k = 0; k < 4; k++) {
			uint32_t one[4];

			unpack_texel(&p, &op->data[lane][k * words], one);
			sum += op->weight[lane][k] * f32_value(one[i]);
		}
		if (p.f->numbers != UINT)
			v[i] = f32_bits(sum);
	}
	for (int i = 0; i < 4; i++)
		if (in->f[ISA_F_DMASK] >> i & 1)
			w->s.v[lane / 32][(in->f[ISA_F_VDATA] + (uint32_t)n++) &
					  255][lane % 32] = v[i];
}
