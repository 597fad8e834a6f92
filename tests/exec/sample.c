/*
 * image_sample, _l and _lz: random images, samplers and coordinates against
 * the formulas of the OpenCL specification (8.2), in long double; and what is
 * refused, by name.
 */
#include <math.h>

#include "tests/exec/picture.h"
#include "tests/tap.h"

enum { ROUNDS = 600 };

static const struct format sampled[] = {
	{ 22, 1, 32, FLOATS }, { 42, 4, 8, UNORMS },  { 1, 1, 8, UNORMS },
	{ 23, 2, 16, UNORMS }, { 63, 4, 32, FLOATS }, { 46, 4, 8, UINTS },
};

struct sampler {
	unsigned clamp, border, mip, zfilter;
	bool linear, unnormalized, is_int;
};

static void put_sampler(struct bench *b, const struct sampler *s)
{
	uint32_t *d = &b->wave[0].s[16];

	memset(d, 0, 16);
	put_bits(d, 0, s->clamp | s->clamp << 3 | s->clamp << 6);
	put_bits(d, 15, s->unnormalized);
	put_bits(d, 44, 0xfff);
	put_bits(d, 84, s->linear);
	put_bits(d, 86, s->linear);
	put_bits(d, 88, s->zfilter);
	put_bits(d, 90, s->mip);
	put_bits(d, 126, s->border);
}

/* ------------------------------------------------------------- model ---- */

/* The texel that index i means, -1: the border. */
static int wrap_index(unsigned clamp, int i, int size)
{
	switch (clamp) {
	case 0:
		return ((i % size) + size) % size;
	case 1:
		while (i < 0 || i >= size)
			i = i < 0 ? -1 - i : 2 * size - 1 - i;
		return i;
	case 3:
		i = i < 0 ? -1 - i : i;
		return i < size ? i : size - 1;
	case 6:
		return i < 0 || i >= size ? -1 : i;
	default:
		return i < 0 ? 0 : i < size ? i : size - 1;
	}
}

static void read_texel(const struct picture *p, const uint8_t *mem,
		  const struct sampler *s, const int *i, unsigned level,
		  long double *out)
{
	uint32_t c[3] = { 0 }, v[4];
	unsigned n = 0;
	int at;

	c[n++] = (uint32_t)i[0];
	if (p->k->rows)
		c[n++] = (uint32_t)i[1];
	if (p->k->layers)
		c[n++] = (uint32_t)i[2];
	at = i[0] < 0 || i[1] < 0 || i[2] < 0 ? -1 : find(p, c, level);
	for (int k = 0; k < 4; k++)
		out[k] = s->border == 2 || (s->border == 1 && k == 3);
	if (at < 0)
		return;
	load(p, mem + at, v);
	for (int k = 0; k < 4; k++) {
		float f;

		memcpy(&f, &v[k], 4);
		out[k] = s->is_int ? (long double)v[k] : (long double)f;
	}
}

/* Interpolate along axis k, then along those before it. */
static void blend(const struct picture *p, const uint8_t *mem,
		  const struct sampler *s, const long double *at, int *i,
		  int k, unsigned level, long double *out)
{
	const int l = (int)(p->base + level);
	const unsigned sizes[3] = { at_least_1(p->w >> l),
				    p->k->rows ? at_least_1(p->h >> l) : 1,
				    at_least_1(p->layers >> l) };
	const bool deep = s->zfilter ? s->zfilter == 2 : s->linear;
	long double low[4], high[4], x;

	if (k < 0) {
		read_texel(p, mem, s, i, level, out);
		return;
	}
	i[k] = 0;
	if ((k == 1 && !p->k->rows) || (k == 2 && !p->k->layers)) {
		blend(p, mem, s, at, i, k - 1, level, out);
	} else if (k == 2 && p->k->array) {
		const long double n = p->layers - p->first, r = rintl(at[2]);

		i[2] = (int)(r < 0 ? 0 : r > n - 1 ? n - 1 : r);
		blend(p, mem, s, at, i, 1, level, out);
	} else {
		x = at[k] * (s->unnormalized ? 1 : sizes[k]);
		if (s->clamp == 3)
			x = fabsl(x);
		if (!(k == 2 ? deep : s->linear)) {
			i[k] = wrap_index(s->clamp, (int)floorl(x),
				       (int)sizes[k]);
			blend(p, mem, s, at, i, k - 1, level, out);
			return;
		}
		x -= 0.5L;
		i[k] = wrap_index(s->clamp, (int)floorl(x), (int)sizes[k]);
		blend(p, mem, s, at, i, k - 1, level, low);
		i[k] = wrap_index(s->clamp, (int)floorl(x) + 1, (int)sizes[k]);
		blend(p, mem, s, at, i, k - 1, level, high);
		x -= floorl(x);
		for (int j = 0; j < 4; j++)
			out[j] = low[j] + x * (high[j] - low[j]);
	}
}

static void model(const struct picture *p, const uint8_t *mem,
		  const struct sampler *s, const long double *at,
		  long double lod, long double *out)
{
	const long double last = p->last - p->base;
	long double other[4];
	int i[3] = { 0 };

	lod = !s->mip ? 0 : lod < 0 ? 0 : lod;
	lod = s->mip == 1 ? floorl(lod + 0.5L) : lod;
	lod = lod > last ? last : lod;
	blend(p, mem, s, at, i, 2, (unsigned)lod, out);
	if (lod == floorl(lod))
		return;
	blend(p, mem, s, at, i, 2, (unsigned)lod + 1, other);
	for (int k = 0; k < 4; k++)
		out[k] += (lod - floorl(lod)) * (other[k] - out[k]);
}

/* ------------------------------------------------------------- rounds ---- */

/* Powers of two, so that 1/256 of a texel is a coordinate of its own. */
static void random_sampled(struct picture *p, struct sampler *s)
{
	static const uint8_t clamps[] = { 0, 1, 2, 3, 6 };

	do {
		random_picture(p);
		p->f = &sampled[rnd(6)];
		p->pitch = 0;
		p->w = 1u << rnd(5);
		p->h = p->k->rows ? 1u << rnd(3) : 1;
		if (!p->k->array)
			p->layers = p->k->layers ? 1u << rnd(3) : 1;
	} while (slice_size(p) * p->layers > MEM);
	*s = (struct sampler){ .clamp = clamps[rnd(5)], .border = rnd(3),
			       .is_int = p->f->numbers == UINTS };
	s->unnormalized = s->clamp > 1 && rnd(2);
	if (s->unnormalized)
		p->last = p->base;
	s->linear = !s->is_int && rnd(2);
	s->mip = p->f->numbers == UINTS ? rnd(2) : rnd(3);
	s->zfilter = s->is_int ? rnd(2) : rnd(3);
}

static float random_place(const struct sampler *s, unsigned size)
{
	const int k = (int)rnd((size + 6) * 256) - 3 * 256;

	return (float)k / 256 / (s->unnormalized ? 1 : (float)size);
}

static bool is_close(const struct sampler *s, uint32_t got, long double want)
{
	float f;

	if (s->is_int)
		return got == (uint32_t)want;
	memcpy(&f, &got, 4);
	return fabsl(f - want) <= 4e-7L * (fabsl(want) + 0.01L);
}

static bool check_sample(void)
{
	struct sampler s;
	struct picture p;
	struct bench b;
	const int which = (int)rnd(3);
	uint32_t(*v)[SOFT_LANES];
	long double at[32][3] = { 0 }, lod[32] = { 0 };
	unsigned n = 0;
	char text[160];
	bool good;

	random_sampled(&p, &s);
	if (which == 0)
		p.last = p.base;
	bench_init(&b, 32, 1);
	v = b.wave[0].v[0];
	for (unsigned i = 0; i + texel_bytes(&p) <= MEM; i += texel_bytes(&p))
		random_texel(&p, b.mem->u8 + i);
	describe(&b, &p);
	put_sampler(&b, &s);
	for (int lane = 0; lane < 32; lane++) {
		/* 1/256 of the smallest level's texel is exact in all. */
		const unsigned sizes[3] = { at_least_1(p.w >> p.last),
					    at_least_1(p.h >> p.last),
					    at_least_1(p.layers >> p.last) };

		n = 0;
		for (int k = 0; k < 3; k++) {
			float f = random_place(&s, sizes[k]);

			if ((k == 1 && !p.k->rows) || (k == 2 && !p.k->layers))
				continue;
			if (k == 2 && p.k->array)
				f = (float)rnd(400) / 100 - 0.997f;
			at[lane][k] = f;
			memcpy(&v[32 + n++][lane], &f, 4);
		}
		if (which == 1) {
			const float f = ((float)rnd(900) - 60) / 256;

			lod[lane] = f;
			memcpy(&v[32 + n++][lane], &f, 4);
		}
	}
	sprintf(text, n > 1 ? "%s v[4:7], v[32:%u], s[8:15], s[16:19] "
			      "dmask:0xf dim:%s" :
			      "%s v[4:7], v%u, s[8:15], s[16:19] dmask:0xf "
			      "dim:%s",
		which == 0 ? "image_sample" :
		which == 1 ? "image_sample_l" : "image_sample_lz",
		31 + n, p.k->dim);
	bench_text(&b, text);
	good = b.wave[0].state == SOFT_ENDED;
	if (!good)
		diag("%s: %s", text, b.wave[0].fault.text);
	for (int lane = 0; lane < 32 && good; lane++) {
		long double want[4];

		model(&p, b.mem->u8, &s, at[lane], lod[lane], want);
		for (int k = 0; k < 4 && good; k++) {
			good = is_close(&s, v[4 + k][lane], want[k]);
			if (!good)
				diag("%s: lane %d component %d: got 0x%x, "
				     "wanted %Lg (clamp %u linear %d mip %u z "
				     "%u type %u)", text, lane, k,
				     v[4 + k][lane], want[k], s.clamp,
				     s.linear, s.mip, s.zfilter, p.k->type);
		}
	}
	bench_fini(&b);
	return good;
}

/* -------------------------------------------------------- single cases ---- */

static struct picture plain_picture(const struct format *f)
{
	return (struct picture){ .k = &kinds[1], .f = f, .w = 4, .h = 2,
				 .layers = 1, .levels = 1,
				 .sel = { 4, 5, 6, 7 } };
}

static uint32_t bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

/* A coordinate just below a texel's end is the next, unless truncated. */
static void test_rounding(void)
{
	const struct picture p = plain_picture(&sampled[5]);
	const struct sampler s = { .clamp = 2, .unnormalized = true };
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	bench_init(&b, 32, 1);
	v = b.wave[0].v[0];
	pattern_put(b.mem->u8, 16);
	describe(&b, &p);
	put_sampler(&b, &s);
	v[32][0] = bits(0.9985f);
	bench_text(&b, "image_sample_lz v4, v[32:33], s[8:15], s[16:19] "
		       "dmask:0x1 dim:SQ_RSRC_IMG_2D\n"
		       "s_bitset1_b32 s16, 27\n"
		       "image_sample_lz v5, v[32:33], s[8:15], s[16:19] "
		       "dmask:0x1 dim:SQ_RSRC_IMG_2D\n"
		       "v_mov_b32 v34, 0x3c004000\n"
		       "image_sample_lz v6, v34, s[8:15], s[16:19] dmask:0x1 "
		       "dim:SQ_RSRC_IMG_2D a16\n"
		       "image_sample_lz v[8:9], v34, s[8:15], s[16:19] "
		       "dmask:0x7 dim:SQ_RSRC_IMG_2D a16 d16");
	is_u64(b.wave[0].state, SOFT_ENDED, "rounding runs");
	is_u64(v[4][0], pattern(4, 1), "0.9985 is texel 1");
	is_u64(v[5][0], pattern(0, 1), "... and 0 with TRUNC_COORD");
	is_u64(v[6][0], 0, "a16: row 1, column 2");
	memcpy(b.mem->u8 + 256 + 8, "\x09\x08\x07\x06", 4);
	bench_go(&b);
	bench_load_text(&b, "image_sample_lz v[8:9], v34, s[8:15], s[16:19] "
			    "dmask:0x7 dim:SQ_RSRC_IMG_2D a16 d16");
	bench_go(&b);
	is_u64(v[8][0], 0x00080009, "d16: two to a register");
	is_u64(v[9][0] & 0xffff, 7, "... and the third");
	bench_fini(&b);
}

static void test_refused(const char *text, const struct picture *p,
			 const struct sampler *s, unsigned bit,
			 const char *name, const char *why)
{
	struct bench b;

	bench_init(&b, 32, 1);
	describe(&b, p);
	put_sampler(&b, s);
	if (bit)
		put_bits(&b.wave[0].s[16], bit, 1);
	bench_text(&b, text);
	is_u64(b.wave[0].fault.kind, SOFT_FAULT_UNSUPPORTED, "%s: refused, %s",
	       name, why);
	has_str(b.wave[0].fault.text, name, "... by name");
	has_str(b.wave[0].fault.text, why, "... and why");
	bench_fini(&b);
}

#define OF(name, address) \
	name " v[4:7], " address ", s[8:15], s[16:19] dmask:0xf " \
	     "dim:SQ_RSRC_IMG_2D"
#define LZ OF("image_sample_lz", "v[32:33]")

static void test_refusals(void)
{
	struct picture p = plain_picture(&sampled[1]), q = p;
	struct sampler s = { .clamp = 2 }, x = s;

	test_refused(OF("image_sample_b", "v[32:34]"), &p, &s, 0,
		     "image_sample_b", "only image_sample");
	test_refused(OF("image_sample_c_lz", "v[32:34]"), &p, &s, 0,
		     "image_sample_c_lz", "only image_sample");
	test_refused("image_gather4_lz v[4:7], v[32:33], s[8:15], s[16:19] "
		     "dmask:0x1 dim:SQ_RSRC_IMG_2D", &p, &s, 0,
		     "image_gather4_lz", "only image_sample");
	test_refused("image_get_lod v[4:5], v[32:33], s[8:15], s[16:19] "
		     "dmask:0x3 dim:SQ_RSRC_IMG_2D", &p, &s, 0,
		     "image_get_lod", "only image_sample");
	q.levels = 2, q.last = 1;
	test_refused(OF("image_sample", "v[32:33]"), &q, &s, 0,
		     "image_sample", "level that follows");
	test_refused(OF("image_sample", "v[32:33]"), &p, &s, 86,
		     "image_sample", "filter that follows");
	test_refused(LZ, &p, &s, 85, "image_sample_lz", "anisotropic");
	test_refused(LZ, &p, &s, 29, "image_sample_lz", "filter mode 1");
	test_refused(LZ, &p, &s, 20, "image_sample_lz", "sRGB");
	test_refused(LZ, &p, &s, 32, "image_sample_lz", "MIN_LOD");
	test_refused(OF("image_sample_l", "v[32:34]"), &p, &s, 64,
		     "image_sample_l", "LOD_BIAS");
	x.clamp = 4;
	test_refused(LZ, &p, &x, 0, "image_sample_lz", "clamp mode 4");
	x = s, x.border = 3;
	test_refused(LZ, &p, &x, 0, "image_sample_lz", "border color");
	x = s, x.clamp = 0, x.unnormalized = true;
	test_refused(LZ, &p, &x, 0, "image_sample_lz", "wrap");
	q = plain_picture(&sampled[5]), x = s, x.linear = true;
	test_refused(LZ, &q, &x, 0, "image_sample_lz", "integers");
}

int main(void)
{
	int bad = 0;

	diag("seed 0x%llx", (unsigned long long)seed);
	for (int i = 0; i < ROUNDS; i++)
		bad += !check_sample();
	is_u64((uint64_t)bad, 0, "%d random samplers", ROUNDS);
	test_rounding();
	test_refusals();
	return plan_done();
}
