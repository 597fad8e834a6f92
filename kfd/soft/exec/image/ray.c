/*
 * kfd/soft/exec/image/ray.c - one ray against one node of a bounding volume
 * hierarchy: image_bvh_intersect_ray and image_bvh64_intersect_ray.
 *
 * RDNA3 ISA 10.9.  What a node holds and what is computed is public in AMD's
 * gpurt (its software path for RTIP 2.0, which gfx11 has), the packing of A16
 * in LLVM.  How often the hardware rounds is published nowhere; here boxes are
 * tested in floats, one rounding an operation, and triangles in doubles that
 * are rounded to floats at the end.  A pointer is the number of a node, in
 * units of 64 bytes, above its type in bits 2:0:
 *
 *	0..3  triangle: five corners of 12 bytes, of which the type names three,
 *	      and its id, the last dword
 *	4, 5  boxes of f16 or f32: four pointers, then least and largest corner
 *	      of each; behind those of f32 a byte of flags for each
 *	6, 7  not for the hardware, which returns all ones
 */
#include <math.h>
#include <string.h>

#include "base/float.h"
#include "kfd/soft/exec/image/image.h"

enum { TRIANGLES = 4, BOX_F16 = 4, BOX_F32 = 5, NODE_BYTES = 64 };
enum { BVH_TYPE = 8, NO_NODE = -1 };
enum heuristic { CLOSEST, LARGEST, MIDPOINT };

struct bvh {
	uint64_t base, last; /* the number of the last node */
	uint8_t heuristic, grow;
	bool sorts, has_flags, barycentric;
};

struct ray {
	uint64_t node; /* pointer, in bits 63:54 enum node_flag */
	float extent, origin[3], dir[3], inverse[3];
};

/* What of a hierarchy the ray is not for, if the descriptor has flags. */
enum node_flag {
	FORCE_OPAQUE = 1 << 0,
	FORCE_NON_OPAQUE = 1 << 1,
	DISABLE_CULL = 1 << 2,
	FLIP_FACES = 1 << 3,
	CULL_BACK = 1 << 4,
	CULL_FRONT = 1 << 5,
	CULL_OPAQUE = 1 << 6,
	CULL_NON_OPAQUE = 1 << 7,
	SKIP_TRIANGLES = 1 << 8,
	SKIP_PROCEDURAL = 1 << 9,
};

static unsigned flags_of(const struct ray *r)
{
	return (unsigned)(r->node >> 54);
}

/* ------------------------------------------------------------ operands ---- */

static bool read_descriptor(struct bvh *b, struct soft_wave *w,
			    const struct soft_uop *u)
{
	const uint32_t *d = &w->s[u->in.f[ISA_F_SRSRC] * 4];

	b->base = soft_canonical(((uint64_t)(d[1] & 0xff) << 32 | d[0]) << 8);
	b->last = (uint64_t)(d[3] & 0x3ff) << 32 | d[2];
	b->heuristic = d[1] >> 21 & 3;
	b->grow = d[1] >> 23 & 0xff;
	b->sorts = d[1] >> 31;
	b->has_flags = d[3] >> 23 & 1;
	b->barycentric = d[3] >> 24 & 1;
	if (d[3] >> 28 != BVH_TYPE)
		return image_refuse(w, u, "a descriptor of type %u (bits "
				    "127:124), wanted 8", d[3] >> 28);
	if (b->sorts && b->heuristic > MIDPOINT)
		return image_refuse(w, u, "box sorting heuristic 3 (bits "
				    "54:53) has no published meaning");
	return true;
}

static float half_value(uint32_t bits)
{
	return (float)float_value(bits & 0xffff, 5, 10);
}

/* Pointer, extent, origin, direction and its inverse, in this order. */
static void read_ray(struct ray *r, const struct soft_wave *w,
		     const struct soft_uop *u, const struct bvh *b, int half,
		     uint32_t lane)
{
	const bool wide = u->in.op == ISA_image_bvh64_intersect_ray;
	const bool a16 = u->in.f[ISA_F_A16];
	uint32_t v[IMAGE_ADDRESSES], *p = v;

	image_registers(w, u, half, lane, v);
	r->node = *p++;
	if (wide)
		r->node |= (uint64_t)*p++ << 32;
	if (!b->has_flags)
		r->node &= (UINT64_C(1) << 54) - 1;
	r->extent = f32_value(*p++);
	for (int i = 0; i < 3; i++)
		r->origin[i] = f32_value(*p++);
	for (int i = 0; i < 3; i++) {
		r->dir[i] = a16 ? half_value(p[i]) : f32_value(p[i]);
		r->inverse[i] = a16 ? half_value(p[i] >> 16) :
				      f32_value(p[3 + i]);
	}
}

/* --------------------------------------------------------------- boxes ---- */

struct box {
	uint32_t child;
	float corner[2][3];
	uint8_t flags; /* what is all there is below: enum box_flag */
	/* Where the ray is inside: clamped to what counts, and all of it. */
	float enter, leave, enter_all, leave_all, key;
};

enum box_flag {
	ONLY_OPAQUE = 1,
	ONLY_NON_OPAQUE = 2,
	ONLY_TRIANGLES = 4,
	ONLY_PROCEDURAL = 8,
};

static void unpack_boxes(const uint8_t *mem, bool f16, struct box box[4])
{
	for (int i = 0; i < 4; i++) {
		memset(&box[i], 0, sizeof(box[i]));
		memcpy(&box[i].child, mem + 4 * i, 4);
		for (int k = 0; k < 6; k++) {
			const int n = 6 * i + k;
			uint16_t h;

			if (f16) {
				memcpy(&h, mem + 16 + 2 * n, 2);
				box[i].corner[k / 3][k % 3] = half_value(h);
			} else {
				memcpy(&box[i].corner[k / 3][k % 3],
				       mem + 16 + 4 * n, 4);
			}
		}
		if (!f16)
			box[i].flags = mem[112 + i];
	}
}

/* Nothing below it is for the ray. */
static bool is_culled(const struct box *b, unsigned f)
{
	const bool opaque = (b->flags & ONLY_OPAQUE || f & FORCE_OPAQUE) &&
			    !(f & FORCE_NON_OPAQUE);
	const bool other =
		(b->flags & ONLY_NON_OPAQUE || f & FORCE_NON_OPAQUE) &&
		!(f & FORCE_OPAQUE);

	return (opaque && f & CULL_OPAQUE) || (other && f & CULL_NON_OPAQUE) ||
	       (b->flags & ONLY_TRIANGLES && f & SKIP_TRIANGLES) ||
	       (b->flags & ONLY_PROCEDURAL && f & SKIP_PROCEDURAL);
}

static void enter_box(struct box *b, const struct ray *r)
{
	float near[3], far[3];

	for (int i = 0; i < 3; i++) {
		const bool forward = r->inverse[i] >= 0;
		const float low =
			(b->corner[0][i] - r->origin[i]) * r->inverse[i];
		const float high =
			(b->corner[1][i] - r->origin[i]) * r->inverse[i];

		near[i] = forward ? low : high;
		far[i] = forward ? high : low;
	}
	b->enter_all = fmaxf(fmaxf(near[0], near[1]), near[2]);
	b->leave_all = fminf(fminf(far[0], far[1]), far[2]);
	b->enter = fmaxf(b->enter_all, 0);
	b->leave = fminf(b->leave_all, r->extent);
	/* What has no numbers is not there. */
	if (isnan(b->enter_all) || isnan(b->leave_all)) {
		b->enter = INFINITY;
		b->leave = -INFINITY;
	}
	b->enter_all = isnan(b->enter_all) ? 0 : b->enter_all;
	b->leave_all = isnan(b->leave_all) ? INFINITY : b->leave_all;
}

static float sort_key(const struct box *b, uint8_t heuristic)
{
	return heuristic == LARGEST  ? b->enter - b->leave :
	       heuristic == MIDPOINT ? b->enter_all + b->leave_all :
				       b->enter;
}

/* Smaller keys first, no node last. */
static void order_boxes(struct box *a, struct box *b)
{
	const bool later = b->child != (uint32_t)NO_NODE && b->key < a->key;
	const struct box t = *a;

	if (!later && a->child != (uint32_t)NO_NODE)
		return;
	*a = *b;
	*b = t;
}

static bool test_boxes(struct soft_wave *w, const struct bvh *b,
		       const struct ray *r, uint64_t va, bool f16, int lane,
		       uint32_t out[4])
{
	static const uint8_t network[][2] = {
		{ 0, 2 }, { 1, 3 }, { 0, 1 }, { 2, 3 }, { 1, 2 },
	};
	const float grown = 1 + (float)b->grow * 0x1p-24f;
	uint8_t mem[2 * NODE_BYTES];
	struct box box[4];

	if (!soft_load(w, va, mem, f16 ? NODE_BYTES : 2 * NODE_BYTES, lane))
		return false;
	unpack_boxes(mem, f16, box);
	for (int i = 0; i < 4; i++) {
		enter_box(&box[i], r);
		box[i].key = sort_key(&box[i], b->heuristic);
		if (!(box[i].enter <= box[i].leave * grown) ||
		    (b->has_flags && is_culled(&box[i], flags_of(r))))
			box[i].child = (uint32_t)NO_NODE;
	}
	for (size_t i = 0; b->sorts && i < ARRAY_SIZE(network); i++)
		order_boxes(&box[network[i][0]], &box[network[i][1]]);
	for (int i = 0; i < 4; i++)
		out[i] = box[i].child;
	return true;
}

/* ----------------------------------------------------------- triangles ---- */

struct vec {
	double v[3];
};

static struct vec minus(struct vec a, struct vec b)
{
	return (struct vec){ { a.v[0] - b.v[0], a.v[1] - b.v[1],
			       a.v[2] - b.v[2] } };
}

static struct vec cross(struct vec a, struct vec b)
{
	return (struct vec){ { a.v[1] * b.v[2] - a.v[2] * b.v[1],
			       a.v[2] * b.v[0] - a.v[0] * b.v[2],
			       a.v[0] * b.v[1] - a.v[1] * b.v[0] } };
}

static double dot(struct vec a, struct vec b)
{
	return a.v[0] * b.v[0] + a.v[1] * b.v[1] + a.v[2] * b.v[2];
}

static struct vec from_floats(const float *f)
{
	return (struct vec){ { f[0], f[1], f[2] } };
}

/* Distance and two of the weights of corners, over one denominator. */
struct hit {
	double t, by, weight[2];
	bool found;
};

/* Moeller and Trumbore, "Fast, Minimum Storage Ray-Triangle Intersection". */
static struct hit meet_triangle(const struct ray *r, const struct vec v[3])
{
	const struct vec e1 = minus(v[1], v[0]), e2 = minus(v[2], v[0]);
	const struct vec e3 = minus(from_floats(r->origin), v[0]);
	const struct vec dir = from_floats(r->dir);
	const struct vec s1 = cross(dir, e2), s2 = cross(e3, e1);
	struct hit h = { dot(e2, s2), dot(s1, e1),
			 { dot(e3, s1), dot(dir, s2) }, true };
	const double t = h.t / h.by, i = h.weight[0] / h.by;
	const double j = h.weight[1] / h.by;

	if (i < 0 || i > 1 || j < 0 || i + j > 1 || t < 0)
		h = (struct hit){ INFINITY, 1, { 0, 0 }, false };
	return h;
}

/* Bits of a triangle's byte of the id. */
enum {
	ID_SIDES = 0x10,
	ID_FLIP = 0x20,
	ID_PROCEDURAL = 0x40,
	ID_OPAQUE = 0x80,
	CORNERS = 5,
	NODE_ID = 60,
};

static bool is_face_culled(const struct hit *h, unsigned f)
{
	return f & (h->by >= 0 ? CULL_FRONT : CULL_BACK) || f & SKIP_TRIANGLES;
}

/* The flags of the pointer, and those of the triangle. */
static void cull_triangle(struct hit *h, unsigned f, unsigned id)
{
	const bool opaque = f & FORCE_OPAQUE || (!(f & FORCE_NON_OPAQUE) &&
						 id & ID_OPAQUE);

	if (f & FLIP_FACES) {
		h->t = -h->t;
		h->by = -h->by;
	}
	if (is_face_culled(h, f) ||
	    f & (opaque ? CULL_OPAQUE : CULL_NON_OPAQUE))
		*h = (struct hit){ INFINITY, 1, { 0, 0 }, false };
}

static bool refuse_flags(struct soft_wave *w, const struct soft_uop *u,
			 unsigned f, unsigned id)
{
	if (id & (ID_SIDES | ID_FLIP | ID_PROCEDURAL))
		return image_refuse(w, u, "bits 6:4 of a triangle's id, 0x%02x, "
				    "with pointer flags", id);
	if (f & DISABLE_CULL && f & (CULL_BACK | CULL_FRONT))
		return image_refuse(w, u, "a pointer with flags to cull faces "
				    "and not to (bits 59:56)");
	return true;
}

/* I and J are weights of the corners that the id says. */
static void write_hit(const struct hit *h, bool barycentric, unsigned byte,
		      uint32_t id, uint32_t out[4])
{
	const double weight[4] = { h->by - h->weight[0] - h->weight[1],
				   h->weight[0], h->weight[1], 0 };

	out[0] = f32_bits((float)h->t);
	out[1] = f32_bits((float)h->by);
	out[2] = !barycentric ? id :
		 h->found     ? f32_bits((float)weight[byte & 3]) :
				0;
	out[3] = !barycentric ? h->found :
		 h->found     ? f32_bits((float)weight[byte >> 2 & 3]) :
				0;
}

static bool test_triangle(struct soft_wave *w, const struct soft_uop *u,
			  const struct bvh *b, const struct ray *r, uint64_t va,
			  int lane, uint32_t out[4])
{
	static const uint8_t corners[TRIANGLES][3] = {
		{ 0, 1, 2 }, { 1, 3, 2 }, { 2, 3, 4 }, { 2, 4, 0 },
	};
	const unsigned type = r->node & 7;
	uint8_t mem[NODE_BYTES];
	float at[CORNERS][3];
	struct vec v[3];
	struct hit h;
	uint32_t id;
	unsigned byte;

	if (!soft_load(w, va, mem, NODE_BYTES, lane))
		return false;
	memcpy(at, mem, sizeof(at));
	memcpy(&id, mem + NODE_ID, 4);
	byte = id >> 8 * type & 0xff;
	if (b->has_flags && !refuse_flags(w, u, flags_of(r), byte))
		return false;
	for (int i = 0; i < 3; i++)
		v[i] = from_floats(at[corners[type][i]]);
	h = meet_triangle(r, v);
	if (b->has_flags)
		cull_triangle(&h, flags_of(r), byte);
	write_hit(&h, b->barycentric, byte, id, out);
	return true;
}

/* --------------------------------------------------------------- lanes ---- */

static bool test_lane(struct soft_wave *w, const struct soft_uop *u,
		      const struct bvh *b, int half, uint32_t lane)
{
	const int n = half * SOFT_LANES + (int)lane;
	uint32_t out[4] = { ~0u, ~0u, ~0u, ~0u };
	struct ray r;
	uint64_t number, va;
	unsigned type;

	read_ray(&r, w, u, b, half, lane);
	type = r.node & 7;
	number = (r.node & ((UINT64_C(1) << 54) - 1)) >> 3;
	va = b->base + number * NODE_BYTES;
	if (type <= BOX_F32 && number + (type == BOX_F32) > b->last)
		return image_refuse(w, u, "node %llu of a hierarchy of %llu; "
				    "what that returns is not published",
				    (unsigned long long)number,
				    (unsigned long long)b->last + 1);
	if (type == BOX_F16 || type == BOX_F32) {
		if (!test_boxes(w, b, &r, va, type == BOX_F16, n, out))
			return false;
	} else if (type < TRIANGLES) {
		if (!test_triangle(w, u, b, &r, va, n, out))
			return false;
	}
	image_put(w, u, half, lane, out);
	return true;
}

void image_ray_run(struct soft_wave *w, const struct soft_uop *u)
{
	struct bvh b;

	if (!read_descriptor(&b, w, u))
		return;
	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
	if (!test_lane(w, u, &b, h, lane))
		return;
}

const char *image_ray_refusal(const struct isa_inst *in)
{
	if (in->f[ISA_F_DMASK] != 15 || in->f[ISA_F_D16] || in->f[ISA_F_TFE] ||
	    in->f[ISA_F_LWE] || !in->f[ISA_F_R128] || !in->f[ISA_F_UNORM] ||
	    in->f[ISA_F_DIM])
		return ": of a ray, the manual wants dmask:0xf, unorm, r128, "
		       "dim 0, and no d16, tfe or lwe";
	return NULL;
}
