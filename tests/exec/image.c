/*
 * Image loads, stores, atomics and what an image says of itself: random
 * descriptors, coordinates and formats against a model of plain C, which knows
 * an image as rows of texels; and what is refused, by name.
 */
#include "tests/exec/picture.h"
#include "tests/tap.h"

enum { ROUNDS = 60, GUARD = 0xa5 };

/* ----------------------------------------------------------- programs ---- */

struct coords {
	uint32_t c[5]; /* and the level behind them */
};

static void start_bench(struct bench *b)
{
	bench_init(b, 32, 1);
	memset(b->mem->u8, GUARD, MEM);
	b->wave[0].s[ISA_R_EXEC_LO] = rnd(4) ? UINT32_MAX : 0x5a5af00f;
}

/* Coordinates near the image in every lane; mip counts as one. */
static void random_coords(const struct picture *p, struct coords *c,
			  bool mip)
{
	const unsigned limit[3] = { p->w, p->k->rows ? p->h : p->layers,
				    p->layers };

	for (int lane = 0; lane < 32; lane++) {
		for (unsigned i = 0; i < p->k->coords; i++)
			c[lane].c[i] = rnd(20) ? rnd(limit[i] + 1) :
						 0xffff - rnd(2);
		c[lane].c[p->k->coords] = mip ? rnd(3) : 0;
	}
}

enum address_form { SEQUENTIAL, SCATTERED, HALVES, FORMS };

/* Coordinates to registers from v32, and the operand that names them. */
static void put_coords(struct bench *b, const struct picture *p,
		       const struct coords *c, bool mip,
		       enum address_form form, char *text)
{
	uint32_t(*v)[SOFT_LANES] = b->wave[0].v[0];
	const unsigned n = p->k->coords + mip;
	const unsigned regs = form == HALVES ? (n + 1) / 2 : n;
	char *at = text;

	for (int lane = 0; lane < 32; lane++) {
		for (unsigned i = 0; i < regs; i++)
			v[32 + i][lane] = v[60 - 3 * i][lane] = 0;
		for (unsigned i = 0; i < n; i++)
			if (form == HALVES)
				v[32 + i / 2][lane] |= c[lane].c[i]
						       << (i & 1 ? 16 : 0);
			else if (form == SCATTERED)
				v[60 - 3 * i][lane] = c[lane].c[i];
			else
				v[32 + i][lane] = c[lane].c[i];
	}
	if (form != SCATTERED || regs == 1) {
		if (form == SCATTERED)
			memcpy(v[32], v[60], sizeof(v[32]));
		sprintf(text, regs > 1 ? "v[32:%u]" : "v32", 31 + regs);
		return;
	}
	at += sprintf(at, "[");
	for (unsigned i = 0; i < regs; i++)
		at += sprintf(at, "%sv%u", i ? ", " : "", 60 - 3 * i);
	sprintf(at, "]");
}

static const char *registers(unsigned first, unsigned n)
{
	static char text[20];

	sprintf(text, n > 1 ? "v[%u:%u]" : "v%u", first, first + n - 1);
	return text;
}

static bool is_active(const struct bench *b, int lane)
{
	return b->wave[0].s[ISA_R_EXEC_LO] >> lane & 1;
}

static bool has_ended(struct bench *b)
{
	if (b->wave[0].state == SOFT_ENDED)
		return true;
	diag("%s", b->wave[0].fault.text);
	return false;
}

/* "image_load_mip v[4:5], [v60, v57], s[8:15] dmask:0x5 dim:... a16" */
static void write_program(char *text, const char *name, unsigned n,
			  const char *address, unsigned mask,
			  const struct picture *p, enum address_form form,
			  const char *more)
{
	sprintf(text, "%s %s, %s, s[8:15] dmask:0x%x dim:%s%s%s", name,
		registers(4, n), address, mask, p->k->dim,
		form == HALVES ? " a16" : "", more);
}

static unsigned count(unsigned mask)
{
	return (unsigned)__builtin_popcount(mask);
}

static bool check_load(void)
{
	static const unsigned any[] = { 0, 1, 4, 5, 6, 7 };
	struct coords c[32];
	struct picture p;
	struct bench b;
	const bool mip = rnd(2);
	const unsigned mask = 1 + rnd(15);
	const enum address_form form = (enum address_form)rnd(FORMS);
	char text[200], address[80];
	bool good;

	random_picture(&p);
	for (int i = 0; i < 4 && rnd(2); i++)
		p.sel[i] = any[rnd(6)];
	start_bench(&b);
	for (unsigned i = 0; i + texel_bytes(&p) <= MEM; i += texel_bytes(&p))
		random_texel(&p, b.mem->u8 + i);
	describe(&b, &p);
	random_coords(&p, c, mip);
	put_coords(&b, &p, c, mip, form, address);
	for (int r = 4; r < 9; r++)
		for (int lane = 0; lane < 32; lane++)
			b.wave[0].v[0][r][lane] = 0xdead0000u + (uint32_t)r;
	write_program(text, mip ? "image_load_mip" : "image_load", count(mask),
		      address, mask, &p, form, "");
	bench_text(&b, text);
	good = has_ended(&b);
	for (int lane = 0; lane < 32 && good; lane++) {
		const int at = find(&p, c[lane].c, c[lane].c[p.k->coords]);
		uint32_t want[4] = { 0 };
		unsigned r = 4;

		if (at >= 0)
			load(&p, b.mem->u8 + at, want);
		for (int i = 0; i < 4; i++)
			if (mask >> i & 1) {
				good &= b.wave[0].v[0][r][lane] ==
					(is_active(&b, lane) ? want[i] :
							       0xdead0000u + r);
				r++;
			}
		good &= b.wave[0].v[0][r][lane] == 0xdead0000u + r;
		if (!good)
			diag("%s, lane %d: type %u format %u at %d", text,
			     lane, p.k->type, p.f->number, at);
	}
	bench_fini(&b);
	return good;
}

/* Every byte of memory is compared, and what lies between texels. */
static bool check_store(void)
{
	struct coords c[32];
	struct picture p;
	struct bench b;
	uint8_t want[MEM], texel[32][16] = { 0 };
	const bool mip = rnd(2);
	const enum address_form form = (enum address_form)rnd(FORMS);
	char text[200], address[80];
	bool good;

	random_picture(&p);
	start_bench(&b);
	memcpy(want, b.mem->u8, MEM);
	describe(&b, &p);
	random_coords(&p, c, mip);
	put_coords(&b, &p, c, mip, form, address);
	for (int lane = 0; lane < 32; lane++) {
		const int at = find(&p, c[lane].c, c[lane].c[p.k->coords]);
		uint32_t v[4];

		random_texel(&p, texel[lane]);
		load(&p, texel[lane], v);
		for (int i = 0; i < 4; i++)
			b.wave[0].v[0][4 + i][lane] = v[i];
		if (at >= 0 && is_active(&b, lane))
			memcpy(want + at, texel[lane], texel_bytes(&p));
	}
	write_program(text, mip ? "image_store_mip" : "image_store", 4,
		      address, 15, &p, form, "");
	bench_text(&b, text);
	good = has_ended(&b) && !memcmp(want, b.mem->u8, MEM);
	if (!good)
		diag("%s: type %u format %u", text, p.k->type, p.f->number);
	bench_fini(&b);
	return good;
}

/* ----------------------------------------------------------- atomics ---- */

static uint64_t apply(const char *name, uint64_t m, uint64_t a, uint64_t cmp,
		      int bits)
{
	const uint64_t all = bits == 64 ? UINT64_MAX : UINT32_MAX;
	const int64_t sm = bits == 64 ? (int64_t)m : (int32_t)m;
	const int64_t sa = bits == 64 ? (int64_t)a : (int32_t)a;

	switch (name[0] * 256 + name[1]) {
	case 'a' * 256 + 'd':
		return (m + a) & all;
	case 's' * 256 + 'u':
		return (m - a) & all;
	case 's' * 256 + 'w':
		return a;
	case 'c' * 256 + 'm':
		return m == cmp ? a : m;
	case 's' * 256 + 'm':
		return (name[2] == 'i' ? sa < sm : sa > sm) ? a : m;
	case 'u' * 256 + 'm':
		return (name[2] == 'i' ? a < m : a > m) ? a : m;
	case 'a' * 256 + 'n':
		return m & a;
	case 'o' * 256 + 'r':
		return m | a;
	case 'x' * 256 + 'o':
		return m ^ a;
	case 'i' * 256 + 'n':
		return m >= a ? 0 : m + 1;
	default:
		return !m || m > a ? a : m - 1;
	}
}

static bool check_atomic(const char *name)
{
	static const struct format f32 = { 20, 1, 32, UINTS };
	static const struct format f64 = { 48, 2, 32, UINTS };
	struct coords c[32];
	struct picture p;
	struct bench b;
	const bool wide = rnd(2), two = name[0] == 'c', back = rnd(2);
	const unsigned dwords = (1u + wide) << two;
	uint8_t want[MEM];
	char text[200], address[80], insn[40];
	bool good;

	random_picture(&p);
	p.f = wide ? &f64 : &f32;
	p.w = 1 + rnd(8), p.h = p.k->rows ? 1 + rnd(2) : 1;
	p.levels = 1, p.base = p.last = p.pitch = 0;
	start_bench(&b);
	for (int i = 0; i < MEM; i++)
		b.mem->u8[i] = (uint8_t)(rnd(3) ? 0 : rnd(256));
	memcpy(want, b.mem->u8, MEM);
	describe(&b, &p);
	random_coords(&p, c, false);
	put_coords(&b, &p, c, false, SEQUENTIAL, address);
	for (int i = 0; i < 4; i++)
		for (int lane = 0; lane < 32; lane++)
			b.wave[0].v[0][4 + i][lane] = rnd(3) ? rnd(4) :
							       rnd(~0u);
	uint32_t old[4][32];

	for (int i = 0; i < 4; i++)
		memcpy(old[i], b.wave[0].v[0][4 + i], sizeof(old[i]));
	sprintf(insn, "image_atomic_%s", name);
	write_program(text, insn, dwords, address, (1u << dwords) - 1, &p,
		      SEQUENTIAL, back ? " glc" : "");
	bench_text(&b, text);
	good = has_ended(&b);
	for (int lane = 0; lane < 32 && good; lane++) {
		const int at = find(&p, c[lane].c, 0), size = wide ? 8 : 4;
		const int k = wide ? 2 : 1;
		uint64_t m = 0, a = old[0][lane], cmp = old[k][lane], got;

		if (wide) {
			a |= (uint64_t)old[1][lane] << 32;
			cmp |= (uint64_t)old[3][lane] << 32;
		}
		if (!is_active(&b, lane))
			continue;
		if (at >= 0) {
			uint64_t r;

			memcpy(&m, want + at, (size_t)size);
			r = apply(name, m, a, cmp, size * 8);
			memcpy(want + at, &r, (size_t)size);
		}
		got = b.wave[0].v[0][4][lane];
		if (wide)
			got |= (uint64_t)b.wave[0].v[0][5][lane] << 32;
		good = got == (back ? m : a);
	}
	good = good && !memcmp(want, b.mem->u8, MEM);
	if (!good)
		diag("%s", text);
	bench_fini(&b);
	return good;
}

/* -------------------------------------------------------- single cases ---- */

static const struct format rgba8 = { 42, 4, 8, UNORMS };
static const struct format rgba_u8 = { 46, 4, 8, UINTS };
static const struct format r32 = { 20, 1, 32, UINTS };

static struct picture plain_picture(const struct format *f)
{
	return (struct picture){ .k = &kinds[1], .f = f, .w = 5, .h = 3,
				 .layers = 1, .levels = 1,
				 .sel = { 4, 5, 6, 7 } };
}

static void test_halves(void)
{
	const struct picture p = plain_picture(&rgba8);
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	start_bench(&b);
	b.wave[0].s[ISA_R_EXEC_LO] = 1;
	v = b.wave[0].v[0];
	describe(&b, &p);
	memcpy(b.mem->u8 + 256 + 8, "\xff\x00\x33\xff", 4);
	v[32][0] = 2, v[33][0] = 1;
	for (int i = 4; i < 10; i++)
		v[i][0] = 0xaaaabbbb;
	bench_text(&b, "image_load v[4:5], v[32:33], s[8:15] dmask:0xf "
		       "dim:SQ_RSRC_IMG_2D d16\n"
		       "image_load v6, v[32:33], s[8:15] dmask:0x4 "
		       "dim:SQ_RSRC_IMG_2D d16\n"
		       "image_load v[8:9], v[32:33], s[8:15] dmask:0xd "
		       "dim:SQ_RSRC_IMG_2D d16");
	ok(has_ended(&b), "d16 loads run");
	is_u64(v[4][0], 0x00003c00, "d16: x 1.0, y 0");
	is_u64(v[5][0], 0x3c003266, "d16: z 0.2, w 1.0");
	is_u64(v[6][0], 0xaaaa3266, "d16: one component keeps the other half");
	is_u64(v[8][0], 0x32663c00, "d16: chosen components are packed");
	is_u64(v[9][0], 0xaaaa3c00, "... the last alone");
	v[4][0] = 0x3c000000, v[5][0] = 0x00003c00;
	v[32][0] = 0;
	bench_text(&b, "image_store v[4:5], v[32:33], s[8:15] dmask:0xf "
		       "dim:SQ_RSRC_IMG_2D d16");
	is_u64(b.mem->u32[64], 0x00ffff00, "d16 store");
	bench_fini(&b);
}

static void test_stores(void)
{
	struct picture p = plain_picture(&rgba_u8);
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	start_bench(&b);
	b.wave[0].s[ISA_R_EXEC_LO] = 1;
	v = b.wave[0].v[0];
	v[4][0] = 1, v[5][0] = 2, v[6][0] = 3, v[7][0] = 4;
	describe(&b, &p);
	bench_text(&b, "image_store v[4:5], v[32:33], s[8:15] dmask:0x9 "
		       "dim:SQ_RSRC_IMG_2D");
	is_u64(b.mem->u32[0], 0x02000001, "a store has 0 for what dmask lacks");
	p.sel[0] = 6, p.sel[2] = 4; /* BGRA */
	describe(&b, &p);
	bench_text(&b, "image_store v[4:7], v[32:33], s[8:15] dmask:0xf "
		       "dim:SQ_RSRC_IMG_2D\n"
		       "image_load v[8:11], v[32:33], s[8:15] dmask:0xf "
		       "dim:SQ_RSRC_IMG_2D");
	is_u64(b.mem->u32[0], 0x04010203, "a store goes by DST_SEL");
	is_u64(v[8][0] | v[9][0] << 8 | v[10][0] << 16 | v[11][0] << 24,
	       0x04030201, "... and comes back by it");
	memset(&b.wave[0].s[8], 0, 32);
	v[8][0] = v[9][0] = 7;
	bench_text(&b, "image_load v[8:9], v[32:33], s[8:15] dmask:0x3 "
		       "dim:SQ_RSRC_IMG_2D\n"
		       "image_store v[4:7], v[32:33], s[8:15] dmask:0xf "
		       "dim:SQ_RSRC_IMG_2D\n"
		       "image_get_resinfo v[12:15], v32, s[8:15] dmask:0xf "
		       "dim:SQ_RSRC_IMG_2D");
	ok(has_ended(&b), "an unbound image can be named");
	is_u64(v[8][0] | v[9][0] | v[12][0] | v[15][0], 0, "... and is 0");
	is_u64(b.mem->u32[0], 0x04010203, "... and not written");
	bench_fini(&b);
}

static void test_packed(void)
{
	static const struct format rgba16 = { 57, 4, 16, FLOATS };
	const struct picture p = plain_picture(&rgba16);
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	start_bench(&b);
	b.wave[0].s[ISA_R_EXEC_LO] = 1;
	v = b.wave[0].v[0];
	v[32][0] = 4, v[33][0] = 2, v[34][0] = 0;
	describe(&b, &p);
	b.mem->u32[128 + 8] = 0x12345678, b.mem->u32[128 + 9] = 0x9abcdef0;
	bench_text(&b, "image_load_pck v[4:5], v[32:33], s[8:15] dmask:0x3 "
		       "dim:SQ_RSRC_IMG_2D\n"
		       "v_mov_b32 v32, 0\n"
		       "image_store_mip_pck v[4:5], v[32:34], s[8:15] "
		       "dmask:0x3 dim:SQ_RSRC_IMG_2D");
	ok(has_ended(&b), "packed accesses run");
	is_u64(v[4][0], 0x12345678, "image_load_pck does not convert");
	is_u64(b.mem->u32[129], 0x9abcdef0, "nor does image_store_mip_pck");
	bench_fini(&b);
}

static void test_info(void)
{
	struct picture p = { .k = &kinds[4], .f = &rgba8, .w = 20, .h = 9,
			     .layers = 6, .first = 2, .levels = 4, .base = 1,
			     .last = 2, .sel = { 4, 5, 6, 7 } };
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	start_bench(&b);
	b.wave[0].s[ISA_R_EXEC_LO] = 1;
	v = b.wave[0].v[0];
	v[32][0] = 1;
	describe(&b, &p);
	bench_text(&b, "image_get_resinfo v[4:7], v32, s[8:15] dmask:0xf "
		       "dim:SQ_RSRC_IMG_2D_ARRAY\n"
		       "image_get_resinfo v8, v32, s[8:15] dmask:0x8 "
		       "dim:SQ_RSRC_IMG_2D_ARRAY");
	ok(has_ended(&b), "image_get_resinfo runs");
	is_u64(v[4][0], 5, "width of the view's level 1, the image's 2");
	is_u64(v[5][0], 2, "height");
	is_u64(v[6][0], 4, "slices of the view");
	is_u64(v[7][0], 2, "levels of the view");
	is_u64(v[8][0], 2, "dmask chooses");
	p.k = &kinds[2], p.first = 0;
	describe(&b, &p);
	bench_text(&b, "image_get_resinfo v[4:6], v32, s[8:15] dmask:0x7 "
		       "dim:SQ_RSRC_IMG_3D");
	is_u64(v[6][0], 1, "depth of level 2, of 6");
	bench_fini(&b);
}

/* ------------------------------------------------------------ refusals ---- */

static void test_refused(const char *text, const struct picture *p,
			 const char *name, const char *why)
{
	struct bench b;

	start_bench(&b);
	describe(&b, p);
	bench_text(&b, text);
	is_u64(b.wave[0].fault.kind, SOFT_FAULT_UNSUPPORTED, "%s: refused",
	       text);
	has_str(b.wave[0].fault.text, name, "... by name");
	has_str(b.wave[0].fault.text, why, "... and why");
	bench_fini(&b);
}

#define LOAD2 "image_load v4, v[32:33], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D"

static void test_refusals(void)
{
	static const struct format etc[] = { { 60, 3, 32, FLOATS },
					     { 66, 4, 8, UNORMS },
					     { 109, 1, 64, UNORMS } };
	struct picture p = plain_picture(&rgba8), q = p;

	q.mode = 27;
	test_refused(LOAD2, &q, "image_load", "swizzle mode 27");
	for (int i = 0; i < 3; i++) {
		q = plain_picture(&etc[i]);
		test_refused(LOAD2, &q, "image_load", "image format");
	}
	q = p, q.k = &kinds[4];
	test_refused(LOAD2, &q, "image_load", "type 13");
	q = p, q.pitch = 33;
	test_refused(LOAD2, &q, "image_load", "pitch of 132 bytes");
	q = p, q.last = 1;
	test_refused(LOAD2, &q, "image_load", "levels 0 to 1 of 1");
	test_refused("image_load v[4:5], v[32:33], s[8:15] dmask:0x1 "
		     "dim:SQ_RSRC_IMG_2D tfe", &p, "image_load", "tfe");
	test_refused("image_load v4, v[32:34], s[8:15] dmask:0x1 "
		     "dim:SQ_RSRC_IMG_CUBE", &p, "image_load", "cubes");
	test_refused("image_msaa_load v[4:7], v[32:34], s[8:15] dmask:0x1 "
		     "dim:SQ_RSRC_IMG_2D_MSAA", &p, "image_msaa_load",
		     "multisampled");
	test_refused("image_load_pck_sgn v4, v[32:33], s[8:15] dmask:0x1 "
		     "dim:SQ_RSRC_IMG_2D", &p, "image_load_pck_sgn",
		     "sign-extends");
	test_refused("image_load_pck v[4:5], v[32:33], s[8:15] dmask:0x3 "
		     "dim:SQ_RSRC_IMG_2D", &p, "image_load_pck", "dmask 0x3");
	test_refused("image_atomic_add v[4:5], v[32:33], s[8:15] dmask:0x3 "
		     "dim:SQ_RSRC_IMG_2D", &p, "image_atomic_add", "dmask 0x3");
	test_refused("image_store v4, v[32:33], s[8:15] dmask:0x4 "
		     "dim:SQ_RSRC_IMG_2D d16", &p, "image_store", "dmask");
	test_refused("image_bvh_intersect_ray v[4:7], v[32:42], s[8:11]", &p,
		     "image_bvh_intersect_ray", "type 9");
	q = plain_picture(&r32), q.k = &kinds[3];
	test_refused("image_get_resinfo v4, v32, s[8:15] dmask:0x1 "
		     "dim:SQ_RSRC_IMG_1D_ARRAY", &q, "image_get_resinfo",
		     "1D array");
}

/* A texel of memory that is not there is a fault, as for buffers. */
static void test_fault(void)
{
	struct picture p = plain_picture(&r32);
	struct bench b;

	start_bench(&b);
	p.h = 100;
	describe(&b, &p);
	for (int lane = 0; lane < 32; lane++)
		b.wave[0].v[0][33][lane] = 99;
	bench_text(&b, LOAD2);
	is_u64(b.wave[0].fault.kind, SOFT_FAULT_MEMORY, "not mapped");
	is_u64(b.wave[0].fault.va, BENCH_DATA + 99 * 256, "... and where");
	bench_fini(&b);
}

int main(void)
{
	static const char *const atomics[] = { "swap", "cmpswap", "add", "sub",
					       "smin", "umin",	  "smax", "umax",
					       "and",  "or",	  "xor",  "inc",
					       "dec" };
	int bad = 0;

	diag("seed 0x%llx", (unsigned long long)seed);
	for (int i = 0; i < 8 * ROUNDS; i++)
		bad += !check_load();
	is_u64((uint64_t)bad, 0, "%d random loads", 8 * ROUNDS);
	bad = 0;
	for (int i = 0; i < 4 * ROUNDS; i++)
		bad += !check_store();
	is_u64((uint64_t)bad, 0, "%d random stores", 4 * ROUNDS);
	for (int k = 0; k < 13; k++) {
		bad = 0;
		for (int i = 0; i < ROUNDS / 2; i++)
			bad += !check_atomic(atomics[k]);
		is_u64((uint64_t)bad, 0, "image_atomic_%s", atomics[k]);
	}
	test_halves();
	test_stores();
	test_packed();
	test_info();
	test_refusals();
	test_fault();
	return plan_done();
}
