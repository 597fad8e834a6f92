/*
 * image_bvh_intersect_ray and image_bvh64_intersect_ray, with 16-bit directions
 * too, by a model in long double: boxes of both sizes in every order, triangles
 * of all four types in both return modes, flags of pointers.  Where the model
 * comes near an edge, so that rounding decides, another ray is taken.
 */
#include <math.h>
#include <stdio.h>

#include "base/float.h"
#include "tests/exec/wave.h"
#include "tests/tap.h"

enum { RAYS = 60, NODE = 64, NONE = -1 };
enum { CLOSEST, LARGEST, MIDPOINT };

static uint64_t seed = 0x4a15eed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static uint16_t half_of(float f)
{
	_Float16 h = (_Float16)f;
	uint16_t u;

	memcpy(&u, &h, 2);
	return u;
}

/* A number that a half has exactly, from -8 to 8. */
static float coordinate(void)
{
	return (float)((int)random_below(1024) - 512) / 64;
}

/* ---------------------------------------------------------------- rays ---- */

struct ray {
	float extent, origin[3], dir[3], inverse[3];
};

struct scene {
	bool wide, a16, sorts, has_flags, barycentric;
	unsigned heuristic, grow;
	uint32_t flags; /* bits 63:54 of the pointer */
	uint64_t last;	/* number of the last node */
	unsigned type;	/* of the descriptor */
};

static struct ray random_ray(void)
{
	struct ray r = { .extent = (float)random_below(64) / 2 };

	for (int i = 0; i < 3; i++) {
		r.origin[i] = coordinate();
		do
			r.dir[i] = coordinate();
		while (r.dir[i] == 0);
		r.inverse[i] = (float)(_Float16)(1 / r.dir[i]);
	}
	return r;
}

static void put_descriptor(struct bench *b, const struct scene *s)
{
	uint32_t *d = &b->wave[0].s[8];

	d[0] = (uint32_t)(BENCH_DATA >> 8);
	d[1] = (uint32_t)(BENCH_DATA >> 40) | s->heuristic << 21 |
	       s->grow << 23 | (uint32_t)s->sorts << 31;
	d[2] = (uint32_t)s->last;
	d[3] = (uint32_t)(s->last >> 32) | (uint32_t)s->has_flags << 23 |
	       (uint32_t)s->barycentric << 24 | s->type << 28;
}

static void put_ray(struct bench *b, const struct scene *s, const struct ray *r,
		    uint32_t node, int lane)
{
	uint32_t v[12];
	int n = 0;

	v[n++] = node;
	if (s->wide)
		v[n++] = s->flags << 22;
	v[n++] = f32_bits(r->extent);
	for (int i = 0; i < 3; i++)
		v[n++] = f32_bits(r->origin[i]);
	for (int i = 0; i < 3; i++)
		v[n++] = s->a16 ? half_of(r->dir[i]) |
					  (uint32_t)half_of(r->inverse[i]) << 16 :
				  f32_bits(r->dir[i]);
	for (int i = 0; i < 3 && !s->a16; i++)
		v[n++] = f32_bits(r->inverse[i]);
	for (int i = 0; i < n; i++)
		b->wave[0].v[0][32 + i][lane] = v[i];
}

static const char *text_of(const struct scene *s)
{
	static const char *const text[2][2] = {
		{ "image_bvh_intersect_ray v[4:7], v[32:42], s[8:11]",
		  "image_bvh_intersect_ray v[4:7], v[32:39], s[8:11] a16" },
		{ "image_bvh64_intersect_ray v[4:7], v[32:43], s[8:11]",
		  "image_bvh64_intersect_ray v[4:7], v[32:40], s[8:11] a16" },
	};

	return text[s->wide][s->a16];
}

/* --------------------------------------------------------------- boxes ---- */

struct node {
	uint32_t child[4];
	float box[4][6];
	uint8_t flags[4];
};

static void put_node(struct bench *b, const struct node *n, bool f16,
		     unsigned number)
{
	uint8_t *at = b->mem->u8 + number * NODE;

	memcpy(at, n->child, 16);
	for (int i = 0; i < 24; i++) {
		const float f = n->box[i / 6][i % 6];
		const uint16_t h = half_of(f);

		if (f16)
			memcpy(at + 16 + 2 * i, &h, 2);
		else
			memcpy(at + 16 + 4 * i, &f, 4);
	}
	if (!f16)
		memcpy(at + 112, n->flags, 4);
}

struct span {
	long double enter, leave, key;
	uint32_t child;
};

/* Is a below b beyond doubt?  *doubt if not even that is certain. */
static bool is_below(long double a, long double b, bool *doubt)
{
	*doubt |= fabsl(a - b) <= 1e-4L * (1 + fabsl(a) + fabsl(b));
	return a < b;
}

static struct span box_span(const struct scene *s, const struct node *n, int i,
			    const struct ray *r, bool *doubt)
{
	long double in = -INFINITY, out = INFINITY;
	struct span p = { .child = n->child[i] };

	for (int k = 0; k < 3; k++) {
		long double t = ((long double)n->box[i][k] - r->origin[k]) *
				r->inverse[k];
		long double u = ((long double)n->box[i][3 + k] - r->origin[k]) *
				r->inverse[k];

		in = fmaxl(in, r->inverse[k] < 0 ? u : t);
		out = fminl(out, r->inverse[k] < 0 ? t : u);
	}
	p.enter = in < 0 ? 0 : in;
	p.leave = out > r->extent ? r->extent : out;
	p.key = s->heuristic == LARGEST	 ? p.enter - p.leave :
		s->heuristic == MIDPOINT ? in + out :
					   p.enter;
	if (is_below(p.leave, p.enter, doubt))
		p.child = (uint32_t)NONE;
	return p;
}

/* The model; false: too near to an edge. */
static bool model_boxes(const struct scene *s, const struct node *n,
			const struct ray *r, uint32_t want[4])
{
	struct span p[4];
	bool doubt = false;
	int left = 0;

	for (int i = 0; i < 4; i++) {
		p[i] = box_span(s, n, i, r, &doubt);
		want[i] = s->sorts ? (uint32_t)NONE : p[i].child;
	}
	while (s->sorts) {
		int best = NONE;

		for (int i = 0; i < 4; i++)
			if (p[i].child != (uint32_t)NONE &&
			    (best == NONE ||
			     is_below(p[i].key, p[best].key, &doubt)))
				best = i;
		if (best == NONE)
			break;
		want[left++] = p[best].child;
		p[best].child = (uint32_t)NONE;
	}
	return !doubt;
}

static void random_node(struct node *n)
{
	memset(n, 0, sizeof(*n));
	for (int i = 0; i < 4; i++) {
		n->child[i] = random_below(10) ? 8 * (i + 5) + random_below(6) :
						 (uint32_t)NONE;
		for (int k = 0; k < 3; k++) {
			n->box[i][k] = coordinate();
			n->box[i][3 + k] =
				n->box[i][k] + (float)random_below(256) / 16;
		}
	}
}

static bool check_boxes(bool wide, bool a16, bool f16, int order)
{
	const struct scene s = {
		.wide = wide, .a16 = a16, .sorts = order >= 0,
		.heuristic = order < 0 ? 0 : (unsigned)order, .last = 9,
		.type = 8,
	};
	uint32_t want[32][4];
	struct node n;
	struct bench b;
	int bad = 0;

	bench_init(&b, 32, 1);
	put_descriptor(&b, &s);
	random_node(&n);
	put_node(&b, &n, f16, 3);
	for (int lane = 0; lane < 32; lane++) {
		struct ray r;

		do
			r = random_ray();
		while (!model_boxes(&s, &n, &r, want[lane]));
		put_ray(&b, &s, &r, 3 << 3 | (f16 ? 4 : 5), lane);
	}
	bench_text(&b, text_of(&s));
	for (int i = 0; i < 128; i++)
		bad += b.wave[0].v[0][4 + i % 4][i / 4] != want[i / 4][i % 4];
	bench_fini(&b);
	return !bad;
}

static void test_boxes(void)
{
	static const char *const orders[] = { "in their order", "closest first",
					      "largest first",
					      "closest middle first" };

	for (int form = 0; form < 8; form++)
		for (int order = -1; order <= MIDPOINT; order++) {
			int bad = 0;

			for (int i = 0; i < RAYS; i++)
				bad += !check_boxes(form & 1, form & 2,
						    form & 4, order);
			is_u64((uint64_t)bad, 0, "%s boxes%s%s, %s",
			       form & 4 ? "f16" : "f32",
			       form & 1 ? ", 64-bit pointers" : "",
			       form & 2 ? ", a16" : "", orders[order + 1]);
		}
}

/* ----------------------------------------------------------- triangles ---- */

/* v[j]: corners of type t, by the place in the node. */
static const int corner[4][3] = {
	{ 0, 1, 2 }, { 1, 3, 2 }, { 2, 3, 4 }, { 2, 4, 0 },
};

struct model {
	long double t, weight[3], by;
	bool found;
};

static long double det(const long double m[3][3])
{
	long double d = 0;

	for (int i = 0; i < 3; i++)
		d += m[0][i] * (m[1][(i + 1) % 3] * m[2][(i + 2) % 3] -
				m[1][(i + 2) % 3] * m[2][(i + 1) % 3]);
	return d;
}

/*
 * origin + t dir = v0 + i (v1 - v0) + j (v2 - v0), by Cramer's rule; the
 * denominator is that of the columns -dir, v1 - v0, v2 - v0.
 */
static struct model model_triangle(const float node[5][3], unsigned type,
				   const struct ray *r, bool *doubt)
{
	long double m[4][3], x[4];
	struct model h = { 0 };

	for (int k = 0; k < 3; k++) {
		const long double v0 = node[corner[type][0]][k];

		m[0][k] = -(long double)r->dir[k];
		m[1][k] = node[corner[type][1]][k] - v0;
		m[2][k] = node[corner[type][2]][k] - v0;
		m[3][k] = r->origin[k] - v0;
	}
	for (int i = 0; i < 4; i++) {
		long double c[3][3];

		memcpy(c, m, sizeof(c));
		if (i < 3)
			memcpy(c[i], m[3], sizeof(c[i]));
		x[i] = det((const long double(*)[3])c);
	}
	h.by = x[3];
	h.t = x[0];
	h.weight[1] = x[1];
	h.weight[2] = x[2];
	h.weight[0] = h.by - x[1] - x[2];
	h.found = true;
	*doubt |= fabsl(h.by) < 1e-3L;
	for (int i = 0; i < 3; i++)
		h.found &= !is_below(h.weight[i] / h.by, 0, doubt);
	h.found &= !is_below(h.t / h.by, 0, doubt);
	return h;
}

static bool is_near(uint32_t got, long double want)
{
	const float f = f32_value(got);

	return (isinf(f) && isinf(want)) ||
	       fabsl(f - want) <= 1e-5L * (1 + fabsl(want));
}

/* Corners of I and J, and what flags do to the hit: 0 nothing. */
enum effect { KEPT, FLIPPED, CULLED };

static bool is_right(const struct scene *s, const struct model *h,
		     enum effect effect, unsigned byte, uint32_t id,
		     const uint32_t got[4])
{
	const bool found = h->found && effect != CULLED;
	const int sign = effect == FLIPPED ? -1 : 1;
	const long double t = found ? sign * h->t : sign * INFINITY;
	const long double by = found ? sign * h->by : sign;

	if (!is_near(got[0], t) || !is_near(got[1], by))
		return false;
	if (!s->barycentric)
		return got[2] == id && got[3] == found;
	return is_near(got[2], found ? h->weight[byte & 3] : 0) &&
	       is_near(got[3], found ? h->weight[byte >> 2 & 3] : 0);
}

static bool check_triangle(struct scene s, unsigned type)
{
	static const unsigned orders[] = { 1 | 2 << 2, 2 | 0 << 2, 0 | 1 << 2 };
	const unsigned byte = orders[random_below(3)];
	const uint32_t id = byte << 8 * type;
	struct model want[32];
	float node[5][3];
	struct bench b;
	int bad = 0;

	bench_init(&b, 32, 1);
	put_descriptor(&b, &s);
	for (int i = 0; i < 15; i++)
		node[i / 3][i % 3] = coordinate();
	memcpy(b.mem->u8 + 7 * NODE, node, sizeof(node));
	memcpy(b.mem->u8 + 7 * NODE + 60, &id, 4);
	for (int lane = 0; lane < 32; lane++) {
		struct ray r;
		bool doubt;

		do {
			doubt = false;
			r = random_ray();
			want[lane] = model_triangle(
				(const float(*)[3])node, type, &r, &doubt);
			/* Many rays miss; of four that do, one is enough. */
		} while (doubt || (!want[lane].found && random_below(4)));
		put_ray(&b, &s, &r, 7 << 3 | type, lane);
	}
	bench_text(&b, text_of(&s));
	for (int lane = 0; lane < 32; lane++) {
		uint32_t got[4];

		for (int i = 0; i < 4; i++)
			got[i] = b.wave[0].v[0][4 + i][lane];
		bad += !is_right(&s, &want[lane], KEPT, byte, id, got);
	}
	bench_fini(&b);
	return !bad;
}

static void test_triangles(void)
{
	for (int form = 0; form < 8; form++)
		for (unsigned type = 0; type < 4; type++) {
			int bad = 0;

			for (int i = 0; i < RAYS / 4; i++)
				bad += !check_triangle(
					(struct scene){
						.wide = form & 1,
						.a16 = form & 2,
						.barycentric = form & 4,
						.last = 20, .type = 8 },
					type);
			is_u64((uint64_t)bad, 0, "triangles %u%s%s%s", type,
			       form & 1 ? ", 64-bit pointers" : "",
			       form & 2 ? ", a16" : "",
			       form & 4 ? ", weights" : ", id");
		}
}

/* --------------------------------------------------------------- flags ---- */

enum {
	FORCE_OPAQUE = 1, FORCE_NON_OPAQUE = 2, NO_CULL = 4, FLIP = 8,
	CULL_BACK = 16, CULL_FRONT = 32, CULL_OPAQUE = 64,
	CULL_NON_OPAQUE = 128, SKIP_TRIANGLES = 256, SKIP_PROCEDURAL = 512,
};

/* The ray goes down the z axis onto a triangle that turns either way. */
static void test_triangle_flags(void)
{
	static const struct {
		uint32_t flags;
		bool opaque, back;
		enum effect effect;
		const char *what;
	} row[] = {
		{ 0, false, false, KEPT, "no flag" },
		{ CULL_BACK, false, false, KEPT, "a front" },
		{ CULL_BACK, false, true, CULLED, "a back is culled" },
		{ CULL_FRONT, false, false, CULLED, "a front is culled" },
		{ CULL_FRONT, false, true, KEPT, "a back" },
		{ FLIP, false, false, FLIPPED, "faces are flipped" },
		{ FLIP | CULL_BACK, false, false, CULLED, "and culled then" },
		{ FLIP | CULL_FRONT, false, false, FLIPPED, "or not" },
		{ CULL_OPAQUE, true, false, CULLED, "opaque" },
		{ CULL_OPAQUE, false, false, KEPT, "not opaque" },
		{ CULL_NON_OPAQUE, false, false, CULLED, "not opaque, culled" },
		{ CULL_OPAQUE | FORCE_OPAQUE, false, false, CULLED,
		  "made opaque" },
		{ CULL_OPAQUE | FORCE_NON_OPAQUE, true, false, KEPT,
		  "made not opaque" },
		{ SKIP_TRIANGLES, false, false, CULLED, "no triangles" },
		{ SKIP_PROCEDURAL, false, false, KEPT, "others are skipped" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		const struct scene s = { .wide = true, .has_flags = true,
					 .barycentric = true, .last = 20,
					 .flags = row[i].flags, .type = 8 };
		struct ray r = { .extent = 9, .origin = { 1, 1, 5 },
				 .dir = { 0, 0, -1 },
				 .inverse = { INFINITY, INFINITY, -1 } };
		float node[5][3] = { { 0, 0, 0 }, { 4, 0, 0 }, { 0, 4, 0 } };
		const unsigned byte = 1 | 2 << 2;
		const uint32_t id = byte | (row[i].opaque ? 0x80 : 0);
		bool doubt = false;
		struct model h;
		struct bench b;
		uint32_t got[4];

		if (row[i].back)
			node[1][0] = 0, node[1][1] = 4, node[2][0] = 4,
			node[2][1] = 0;
		h = model_triangle((const float(*)[3])node, 0, &r, &doubt);
		bench_init(&b, 32, 1);
		put_descriptor(&b, &s);
		memcpy(b.mem->u8, node, sizeof(node));
		memcpy(b.mem->u8 + 60, &id, 4);
		put_ray(&b, &s, &r, 0, 0);
		b.wave[0].s[ISA_R_EXEC_LO] = 1;
		bench_text(&b, text_of(&s));
		for (int k = 0; k < 4; k++)
			got[k] = b.wave[0].v[0][4 + k][0];
		ok(h.found && is_right(&s, &h, row[i].effect, byte, id, got),
		   "flags of a triangle: %s", row[i].what);
		bench_fini(&b);
	}
}

static void test_box_flags(void)
{
	static const struct {
		uint32_t flags;
		uint8_t of[4], stays;
	} row[] = {
		{ 0, { 1, 2, 4, 8 }, 15 },
		{ CULL_OPAQUE, { 1, 2, 4, 0 }, 14 },
		{ CULL_NON_OPAQUE, { 1, 2, 4, 3 }, 5 },
		{ SKIP_TRIANGLES, { 4, 8, 5, 0 }, 10 },
		{ SKIP_PROCEDURAL, { 4, 8, 9, 0 }, 9 },
		{ CULL_OPAQUE | FORCE_OPAQUE, { 1, 2, 4, 0 }, 0 },
		{ CULL_OPAQUE | FORCE_NON_OPAQUE, { 1, 2, 4, 0 }, 15 },
	};
	const struct ray r = { .extent = 9, .origin = { 0, 0, 5 },
			       .dir = { 0.5, 0.5, -1 },
			       .inverse = { 2, 2, -1 } };

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		for (int on = 0; on < 2; on++) {
			const struct scene s = { .wide = true, .has_flags = on,
						 .flags = row[i].flags,
						 .last = 9, .type = 8 };
			struct node n;
			struct bench b;
			unsigned stays = 0;

			for (int k = 0; k < 4; k++) {
				n.child[k] = 8 * (unsigned)k;
				n.flags[k] = row[i].of[k];
				for (int c = 0; c < 6; c++)
					n.box[k][c] = c < 3 ? -9 : 9;
			}
			bench_init(&b, 32, 1);
			put_descriptor(&b, &s);
			put_node(&b, &n, false, 0);
			put_ray(&b, &s, &r, 5, 0);
			b.wave[0].s[ISA_R_EXEC_LO] = 1;
			bench_text(&b, text_of(&s));
			for (int k = 0; k < 4; k++)
				stays |= (b.wave[0].v[0][4 + k][0] == 8u * k)
					 << k;
			is_u64(stays, on ? row[i].stays : 15,
			       "flags 0x%x of boxes%s", row[i].flags,
			       on ? "" : ", which the descriptor leaves out");
			bench_fini(&b);
		}
}

/* --------------------------------------------------------------- edges ---- */

/* One lane; what is in its registers then, or the fault's text. */
static void run_one(const struct scene *s, const struct node *n,
		    const struct ray *r, uint32_t pointer, uint32_t got[4],
		    char *fault)
{
	struct bench b;

	bench_init(&b, 32, 1);
	put_descriptor(&b, s);
	put_node(&b, n, false, 0);
	put_ray(&b, s, r, pointer, 0);
	b.wave[0].s[ISA_R_EXEC_LO] = 1;
	bench_text(&b, text_of(s));
	for (int k = 0; k < 4; k++)
		got[k] = b.wave[0].v[0][4 + k][0];
	snprintf(fault, 160, "%s", b.wave[0].fault.text);
	bench_fini(&b);
}

static void test_edges(void)
{
	static const struct ray r = { .extent = 9, .origin = { 0, 0, 0 },
				      .dir = { 1, 0.5, 0.5 },
				      .inverse = { 1, 2, 2 } };
	const float least = 1 + 0x1p-22f;
	struct scene s = { .last = 1, .type = 8 };
	struct node n = {
		.child = { 8, 16, 24, (uint32_t)NONE },
		.box = { { least, -9, -9, 1, 9, 9 },
			 { NAN, NAN, NAN, NAN, NAN, NAN },
			 { 9.5f, -9, -9, 20, 9, 9 },
			 { -9, -9, -9, 9, 9, 9 } },
	};
	uint32_t got[4];
	char fault[160];

	for (unsigned grow = 0; grow < 8; grow += 6) {
		s.grow = grow;
		run_one(&s, &n, &r, 5, got, fault);
		is_u64(got[0], grow ? 8 : (uint32_t)NONE,
		       "2^-22 too late, grown by %u 2^-24", grow);
	}
	is_u64(got[1], (uint32_t)NONE, "no numbers, no box");
	is_u64(got[2], (uint32_t)NONE, "behind the ray's extent");
	is_u64(got[3], (uint32_t)NONE, "no child");
	s.sorts = true;
	run_one(&s, &n, &r, 5, got, fault);
	is_u64(got[0], 8, "the hit comes first");
	for (unsigned type = 6; type < 8; type++) {
		run_one(&s, &n, &r, type, got, fault);
		ok(got[0] == ~0u && got[1] == ~0u && got[2] == ~0u &&
			   got[3] == ~0u,
		   "a node of type %u is for the program", type);
	}
	run_one(&s, &n, &r, 1 << 3 | 5, got, fault);
	ok(strstr(fault, "node 1 of a hierarchy of 2"), "beyond the last: %s",
	   fault);
	s.heuristic = 3;
	run_one(&s, &n, &r, 5, got, fault);
	ok(strstr(fault, "heuristic 3"), "%s", fault);
	s.type = 9;
	run_one(&s, &n, &r, 5, got, fault);
	ok(strstr(fault, "type 9"), "%s", fault);
	s = (struct scene){ .last = 1, .type = 8, .wide = true,
			    .has_flags = true, .flags = NO_CULL | CULL_BACK };
	run_one(&s, &n, &r, 0, got, fault);
	ok(strstr(fault, "cull faces and not to"), "%s", fault);
}

int main(void)
{
	diag("seed 0x%llx", (unsigned long long)seed);
	test_boxes();
	test_triangles();
	test_triangle_flags();
	test_box_flags();
	test_edges();
	return plan_done();
}
