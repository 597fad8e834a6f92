/*
 * MUBUF and MTBUF: addresses, ranges, formats.  Results worked out by hand
 * from RDNA3 ISA 9.  Atomics are in tests/exec/mem-flat.c.
 */
#include "tests/exec/wave.h"
#include "tests/tap.h"

struct desc {
	unsigned stride, swizzle, records, format, index_stride, add_tid, oob;
};

/* A descriptor of the data page in s[8:11], components in order. */
static void describe(struct bench *b, struct desc d)
{
	uint32_t *s = &b->wave[0].s[8];

	s[0] = (uint32_t)BENCH_DATA;
	s[1] = (uint32_t)(BENCH_DATA >> 32) | d.stride << 16 | d.swizzle << 30;
	s[2] = d.records;
	s[3] = 4 | 5 << 3 | 6 << 6 | 7 << 9 | d.format << 12 |
	       d.index_stride << 21 | d.add_tid << 23 | d.oob << 28;
}

static void start(struct bench *b)
{
	bench_init(b, 32, 1);
	bench_fill(b);
	b->wave[0].s[ISA_R_EXEC_LO] = 8;
	describe(b, (struct desc){ .records = BENCH_PAGE, .oob = 3 });
}

static void test_loads(void)
{
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	start(&b);
	v = b.wave[0].v[0];
	b.wave[0].s[4] = 32;
	v[0][3] = 5;
	b.mem->u8[41] = 0x92;
	v[20][3] = v[21][3] = v[22][3] = v[23][3] = 0xaaaabbbb;
	bench_text(&b,
		   "buffer_load_b32 v1, off, s[8:11], 0 offset:37\n"
		   "buffer_load_b64 v[2:3], v0, s[8:11], s4 offen\n"
		   "buffer_load_b96 v[4:6], v0, s[8:11], s4 offen offset:1\n"
		   "buffer_load_b128 v[8:11], off, s[8:11], 64 offset:4\n"
		   "buffer_load_u8 v12, off, s[8:11], 0 offset:41\n"
		   "buffer_load_i8 v13, off, s[8:11], 0 offset:41\n"
		   "buffer_load_u16 v14, off, s[8:11], 0 offset:40\n"
		   "buffer_load_i16 v15, off, s[8:11], 0 offset:40\n"
		   "buffer_load_d16_u8 v20, off, s[8:11], 0 offset:41\n"
		   "buffer_load_d16_b16 v21, off, s[8:11], 0 offset:40\n"
		   "buffer_load_d16_hi_i8 v22, off, s[8:11], 0 offset:41\n"
		   "buffer_load_d16_hi_b16 v23, off, s[8:11], 0 offset:40\n"
		   "buffer_gl0_inv\n"
		   "buffer_gl1_inv");
	is_u64(b.wave[0].state, SOFT_ENDED, "raw loads run");
	/* Bytes 37..40: 0x04, 0x0b, 0x12, 0x19. */
	is_u64(v[1][3], 0x19120b04, "buffer_load_b32, immediate offset");
	is_u64(v[2][3], 0x19120b04, "VGPR and SGPR offset");
	is_u64(v[6][3], pattern(46, 4), "buffer_load_b96");
	is_u64(v[11][3], pattern(80, 4), "buffer_load_b128, inline SOFFSET");
	is_u64(v[12][3], 0x92, "buffer_load_u8");
	is_u64(v[13][3], 0xffffff92, "buffer_load_i8");
	is_u64(v[14][3], 0x9219, "buffer_load_u16");
	is_u64(v[15][3], 0xffff9219, "buffer_load_i16");
	is_u64(v[20][3], 0xaaaa0092, "buffer_load_d16_u8");
	is_u64(v[21][3], 0xaaaa9219, "buffer_load_d16_b16");
	is_u64(v[22][3], 0xff92bbbb, "buffer_load_d16_hi_i8");
	is_u64(v[23][3], 0x9219bbbb, "buffer_load_d16_hi_b16");
	bench_fini(&b);
}

static void test_stores(void)
{
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	start(&b);
	v = b.wave[0].v[0];
	memset(b.mem->u8, 0, BENCH_PAGE);
	for (int i = 0; i < 4; i++)
		v[2 + i][3] = 0x11223344u + 0x11111111u * (unsigned)i;
	bench_text(&b, "buffer_store_b8 v2, off, s[8:11], 0\n"
		       "buffer_store_b16 v2, off, s[8:11], 0 offset:4\n"
		       "buffer_store_d16_hi_b8 v2, off, s[8:11], 0 offset:8\n"
		       "buffer_store_d16_hi_b16 v2, off, s[8:11], 0 offset:12\n"
		       "buffer_store_b32 v2, off, s[8:11], 0 offset:16\n"
		       "buffer_store_b64 v[2:3], off, s[8:11], 0 offset:24\n"
		       "buffer_store_b96 v[2:4], off, s[8:11], 0 offset:32\n"
		       "buffer_store_b128 v[2:5], off, s[8:11], 0 offset:4088");
	is_u64(b.mem->u32[0], 0x44, "buffer_store_b8");
	is_u64(b.mem->u32[1], 0x3344, "buffer_store_b16");
	is_u64(b.mem->u32[2], 0x22, "buffer_store_d16_hi_b8");
	is_u64(b.mem->u32[3], 0x1122, "buffer_store_d16_hi_b16");
	is_u64(b.mem->u32[4], 0x11223344, "buffer_store_b32");
	is_u64(b.mem->u32[7], 0x22334455, "buffer_store_b64");
	is_u64(b.mem->u32[10], 0x33445566, "buffer_store_b96");
	is_u64(b.mem->u32[1023], 0x22334455, "b128: what is inside");
	is_u64(b.mem->u8[BENCH_PAGE], (BENCH_PAGE * 7 + 1) & 0xff,
	       "... and nothing outside");
	bench_fini(&b);
}

/* One load of v0 = index, v1 = offset; returns the dword. */
static uint32_t load_at(struct bench *b, uint32_t index, uint32_t offset)
{
	struct soft_wave *w = &b->wave[0];

	w->v[0][0][3] = index;
	w->v[0][1][3] = offset;
	w->v[0][2][3] = 0xdeadbeef;
	bench_text(b, "buffer_load_b32 v2, v[0:1], s[8:11], 0 idxen offen");
	return w->v[0][2][3];
}

static void test_ranges(void)
{
	struct bench b;

	start(&b);
	describe(&b, (struct desc){ .stride = 16, .records = 10, .oob = 0 });
	is_u64(load_at(&b, 9, 12), pattern(156, 4), "oob 0: the last dword");
	is_u64(load_at(&b, 10, 0), 0, "oob 0: index beyond the records");
	is_u64(load_at(&b, 0, 13), 0, "oob 0: offset beyond the stride");
	describe(&b, (struct desc){ .stride = 16, .records = 10, .oob = 1 });
	is_u64(load_at(&b, 9, 20), pattern(164, 4), "oob 1: any offset");
	is_u64(load_at(&b, 10, 0), 0, "oob 1: index beyond the records");
	describe(&b, (struct desc){ .stride = 16, .records = 1, .oob = 2 });
	is_u64(load_at(&b, 20, 0), pattern(320, 4), "oob 2: anything goes");
	describe(&b, (struct desc){ .stride = 16, .records = 0, .oob = 2 });
	is_u64(load_at(&b, 0, 0), 0, "oob 2: but for no records");
	describe(&b, (struct desc){ .records = 64, .oob = 3 });
	is_u64(load_at(&b, 0, 60), pattern(60, 4), "oob 3: the last dword");
	is_u64(load_at(&b, 0, 61), 0, "oob 3: a dword half outside");
	is_u64(load_at(&b, 0, UINT32_MAX - 2), 0, "oob 3: no wrap");
	bench_fini(&b);
}

/*
 * Swizzled: stride 16, elements of 4 bytes, 8 lanes to a block.  Index 11 is
 * lane 3 of block 1; offset 8 is element 2: (1 * 16 + 8) * 8 + 3 * 4 = 204.
 */
static void test_swizzle(void)
{
	struct bench b;

	start(&b);
	describe(&b, (struct desc){ .stride = 16,
				    .swizzle = 1,
				    .records = 64,
				    .index_stride = 0,
				    .oob = 1 });
	is_u64(load_at(&b, 11, 8), pattern(204, 4), "swizzle of 4 bytes by 8");
	/* Elements of 16, 32 to a block: (0 + 16) * 32 + 11 * 16 + 4 = 692. */
	describe(&b, (struct desc){ .stride = 32,
				    .swizzle = 3,
				    .records = 64,
				    .index_stride = 2,
				    .oob = 1 });
	is_u64(load_at(&b, 11, 20), pattern(692, 4),
	       "swizzle of 16 bytes by 32");
	/* The lane (3) is added to the index: (5 + 3) * 16 + 4 = 132. */
	describe(&b,
		 (struct desc){
			 .stride = 16, .add_tid = 1, .records = 64, .oob = 1 });
	is_u64(load_at(&b, 5, 4), pattern(132, 4), "ADD_TID adds the lane");
	bench_fini(&b);
}

/* ------------------------------------------------------------ formats ---- */

/*
 * Every format: 16 bytes of memory as four components.  Floats are given by
 * their bits.
 */
static const struct format {
	unsigned number;
	const char *name;
	uint32_t mem[4];
	uint32_t want[4];
	bool back; /* a store of `want` gives `mem` again */
} formats[] = {
	/* clang-format off */
	{ 1, "8_UNORM", { 0xff }, { 0x3f800000, 0, 0, 0x3f800000 }, true },
	{ 1, "8_UNORM 0x33", { 0x33 }, { 0x3e4ccccd, 0, 0, 0x3f800000 }, true },
	{ 2, "8_SNORM", { 0x81 }, { 0xbf800000, 0, 0, 0x3f800000 }, true },
	{ 2, "8_SNORM -128", { 0x80 }, { 0xbf800000, 0, 0, 0x3f800000 },
	  false },
	{ 3, "8_USCALED", { 200 }, { 0x43480000, 0, 0, 0x3f800000 }, true },
	{ 4, "8_SSCALED", { 0xfe }, { 0xc0000000, 0, 0, 0x3f800000 }, true },
	{ 5, "8_UINT", { 0xfe }, { 0xfe, 0, 0, 1 }, true },
	{ 6, "8_SINT", { 0xfe }, { 0xfffffffe, 0, 0, 1 }, true },
	{ 7, "16_UNORM", { 0xffff }, { 0x3f800000, 0, 0, 0x3f800000 }, true },
	{ 8, "16_SNORM", { 0x8001 }, { 0xbf800000, 0, 0, 0x3f800000 }, true },
	{ 9, "16_USCALED", { 1000 }, { 0x447a0000, 0, 0, 0x3f800000 }, true },
	{ 10, "16_SSCALED", { 0xffff }, { 0xbf800000, 0, 0, 0x3f800000 },
	  true },
	{ 11, "16_UINT", { 0xffff }, { 0xffff, 0, 0, 1 }, true },
	{ 12, "16_SINT", { 0xffff }, { 0xffffffff, 0, 0, 1 }, true },
	{ 13, "16_FLOAT", { 0xc000 }, { 0xc0000000, 0, 0, 0x3f800000 }, true },
	{ 14, "8_8_UNORM", { 0xff00 }, { 0, 0x3f800000, 0, 0x3f800000 }, true },
	{ 18, "8_8_UINT", { 0x0201 }, { 1, 2, 0, 1 }, true },
	{ 19, "8_8_SINT", { 0xff01 }, { 1, 0xffffffff, 0, 1 }, true },
	{ 20, "32_UINT", { 0x80000001 }, { 0x80000001, 0, 0, 1 }, true },
	{ 21, "32_SINT", { 0x80000001 }, { 0x80000001, 0, 0, 1 }, true },
	{ 22, "32_FLOAT", { 0x7f800001 }, { 0x7f800001, 0, 0, 0x3f800000 },
	  true },
	{ 27, "16_16_UINT", { 0x00020001 }, { 1, 2, 0, 1 }, true },
	{ 29, "16_16_FLOAT", { 0x3c004000 },
	  { 0x40000000, 0x3f800000, 0, 0x3f800000 }, true },
	/* 11 bits: exponent 15 is 0x3c0, 16 is 0x400; 10 bits: 0x1e0, 0x200. */
	{ 30, "10_11_11_FLOAT", { 0x3c0 | 0x400 << 11 | UINT32_C(0x1e0) << 22 },
	  { 0x3f800000, 0x40000000, 0x3f800000, 0x3f800000 }, true },
	{ 31, "11_11_10_FLOAT", { 0x200 | 0x3c0 << 10 | UINT32_C(0x400) << 21 },
	  { 0x40000000, 0x3f800000, 0x40000000, 0x3f800000 }, true },
	{ 32, "10_10_10_2_UNORM", { 0xffc00001 },
	  { 0x3eaaaaab, 0, 0, 0x3f800000 }, true },
	{ 34, "10_10_10_2_UINT", { 3 | 1 << 2 | 2 << 12 | UINT32_C(5) << 22 },
	  { 3, 1, 2, 5 }, true },
	{ 36, "2_10_10_10_UNORM", { 0xc00003ff },
	  { 0x3f800000, 0, 0, 0x3f800000 }, true },
	{ 40, "2_10_10_10_UINT", { 1 | 2 << 10 | 3 << 20 | UINT32_C(2) << 30 },
	  { 1, 2, 3, 2 }, true },
	{ 41, "2_10_10_10_SINT", { 0x3ff | UINT32_C(3) << 30 },
	  { 0xffffffff, 0, 0, 0xffffffff }, true },
	{ 42, "8_8_8_8_UNORM", { 0xff0000ff },
	  { 0x3f800000, 0, 0, 0x3f800000 }, true },
	{ 46, "8_8_8_8_UINT", { 0x04030201 }, { 1, 2, 3, 4 }, true },
	{ 47, "8_8_8_8_SINT", { 0xff030201 }, { 1, 2, 3, 0xffffffff }, true },
	{ 48, "32_32_UINT", { 7, 8 }, { 7, 8, 0, 1 }, true },
	{ 50, "32_32_FLOAT", { 7, 8 }, { 7, 8, 0, 0x3f800000 }, true },
	{ 55, "16_16_16_16_UINT", { 0x20001, 0x40003 }, { 1, 2, 3, 4 }, true },
	{ 57, "16_16_16_16_FLOAT", { 0x3c003c00, 0x40003c00 },
	  { 0x3f800000, 0x3f800000, 0x3f800000, 0x40000000 }, true },
	{ 58, "32_32_32_UINT", { 1, 2, 3 }, { 1, 2, 3, 1 }, true },
	{ 61, "32_32_32_32_UINT", { 1, 2, 3, 4 }, { 1, 2, 3, 4 }, true },
	{ 63, "32_32_32_32_FLOAT", { 1, 2, 3, 4 }, { 1, 2, 3, 4 }, true },
	/* clang-format on */
};

static void test_format(const struct format *f)
{
	static const char load[] =
		"buffer_load_format_xyzw v[4:7], off, s[8:11], 0 offset:32";
	static const char store[] =
		"buffer_store_format_xyzw v[4:7], off, s[8:11], 0 offset:64";
	struct bench b;
	uint32_t(*v)[SOFT_LANES], got[4];

	start(&b);
	v = b.wave[0].v[0];
	describe(&b, (struct desc){ .format = f->number,
				    .oob = 3,
				    .records = BENCH_PAGE });
	memset(b.mem->u8, 0, BENCH_PAGE);
	memcpy(b.mem->u8 + 32, f->mem, sizeof(f->mem));
	bench_text(&b, load);
	for (int i = 0; i < 4; i++)
		got[i] = v[4 + i][3];
	is_mem(got, f->want, sizeof(got), "%s is loaded", f->name);
	bench_text(&b, store);
	if (f->back)
		is_mem(b.mem->u8 + 64, f->mem, sizeof(f->mem), "%s is stored",
		       f->name);
	bench_fini(&b);
}

static void test_typed(void)
{
	struct bench b;
	struct soft_wave *w;
	uint32_t(*v)[SOFT_LANES];

	start(&b);
	w = &b.wave[0];
	v = w->v[0];
	b.mem->u32[0] = 0x04030201;
	b.mem->u32[1] = 0x40003c00;
	describe(&b, (struct desc){
			     .format = 46, .oob = 3, .records = BENCH_PAGE });
	for (int i = 2; i < 40; i++)
		v[i][3] = 0xaaaabbbb;
	bench_text(
		&b,
		"buffer_load_format_x v2, off, s[8:11], 0\n"
		"buffer_load_format_xy v[3:4], off, s[8:11], 0\n"
		"buffer_load_d16_format_x v6, off, s[8:11], 0\n"
		"buffer_load_d16_format_xyz v[8:9], off, s[8:11], 0\n"
		"buffer_load_d16_format_xyzw v[10:11], off, s[8:11], 0\n"
		"buffer_load_d16_hi_format_x v12, off, s[8:11], 0\n"
		"tbuffer_load_format_xyz v[14:16], off, s[8:11], 0 format:[BUF_FMT_16_16_FLOAT] offset:4\n"
		"tbuffer_load_d16_format_xy v20, off, s[8:11], 0 format:[BUF_FMT_16_16_FLOAT] offset:4\n"
		"tbuffer_load_format_x v21, off, s[8:11], 0 format:[BUF_FMT_8_UINT] offset:1\n"
		"buffer_store_d16_format_xy v10, off, s[8:11], 0 offset:16\n"
		"buffer_store_d16_hi_format_x v12, off, s[8:11], 0 offset:20\n"
		"tbuffer_store_d16_format_xy v20, off, s[8:11], 0 format:[BUF_FMT_32_32_FLOAT] offset:24");
	is_u64(w->state, SOFT_ENDED, "typed accesses run");
	is_u64(v[2][3], 1, "format_x is the first component");
	is_u64(v[4][3], 2, "format_xy has the second");
	is_u64(v[5][3], 0xaaaabbbb, "... and no more");
	is_u64(v[6][3], 0xaaaa0001, "d16_format_x keeps the high half");
	is_u64(v[8][3], 0x00020001, "d16_format_xyz packs two");
	is_u64(v[9][3], 0xaaaa0003, "... and keeps the last half");
	is_u64(v[11][3], 0x00040003, "d16_format_xyzw packs four");
	is_u64(v[12][3], 0x0001bbbb, "d16_hi_format_x");
	is_u64(v[14][3], 0x3f800000, "MTBUF has a format of its own");
	is_u64(v[15][3], 0x40000000, "... of two components");
	is_u64(v[16][3], 0, "... a third is 0");
	is_u64(v[20][3], 0x40003c00, "halves stay halves in d16");
	is_u64(v[21][3], 2, "an address between dwords");
	is_u64(b.mem->u32[4] & 0xffff, 0x0201, "store_d16_format_xy");
	is_u64(b.mem->u8[18], (18 * 7 + 1) & 0xff, "... of two bytes");
	is_u64(b.mem->u8[20], 1, "store_d16_hi_format_x");
	is_u64(b.mem->u32[7], 0x40000000, "halves become floats in memory");
	/* Components from the descriptor: X = W, Y = 1, Z = 0, W = X. */
	w->s[11] = (w->s[11] & ~0xfffu) | 7 | 1 << 3 | 0 << 6 | 4 << 9;
	bench_text(
		&b,
		"buffer_load_format_xyzw v[4:7], off, s[8:11], 0\n"
		"buffer_load_format_xyzw v[24:27], off, s[8:11], 0 offset:4095");
	is_u64(v[4][3], 4, "DST_SEL_X = W");
	is_u64(v[5][3], 1, "DST_SEL_Y = 1");
	is_u64(v[6][3], 0, "DST_SEL_Z = 0");
	is_u64(v[7][3], 1, "DST_SEL_W = X");
	is_u64(v[25][3] | v[24][3], 0, "typed: all or nothing is in range");
	bench_text(&b, "buffer_load_b32 v[4:5], off, s[8:11], 0 tfe");
	is_u64(w->fault.kind, SOFT_FAULT_UNSUPPORTED, "TFE is not there");
	has_str(w->fault.text, "buffer_load_b32", "... by name");
	bench_fini(&b);
}

/* Stores keep to what the format can hold. */
static void test_clamping(void)
{
	struct bench b;
	uint32_t(*v)[SOFT_LANES];

	start(&b);
	v = b.wave[0].v[0];
	v[2][3] = 0x40000000; /* 2.0 */
	v[3][3] = 0xc0000000; /* -2.0 */
	v[4][3] = 0x7fc00000; /* NaN */
	v[5][3] = 300;
	v[6][3] = (uint32_t)-300;
	bench_text(
		&b,
		"tbuffer_store_format_xyz v[2:4], off, s[8:11], 0 format:[BUF_FMT_8_8_8_8_UNORM]\n"
		"tbuffer_store_format_xyz v[2:4], off, s[8:11], 0 format:[BUF_FMT_8_8_8_8_SNORM] offset:4\n"
		"tbuffer_store_format_xy v[5:6], off, s[8:11], 0 format:[BUF_FMT_8_8_UINT] offset:8\n"
		"tbuffer_store_format_xy v[5:6], off, s[8:11], 0 format:[BUF_FMT_8_8_SINT] offset:10");
	is_u64(b.mem->u32[0] & 0xffffff, 0x0000ff,
	       "UNORM: 2 -> 1, -2, NaN -> 0");
	is_u64(b.mem->u32[1] & 0xffffff, 0x00817f, "SNORM: 2 -> 1, -2 -> -1");
	is_u64(b.mem->u32[2], 0x807fffff, "UINT and SINT saturate");
	bench_fini(&b);
}

static void test_to_lds(void)
{
	struct bench b;

	start(&b);
	b.wave[0].s[ISA_R_M0] = 0x200;
	b.mem->u8[16] = 0x92;
	bench_text(&b, "buffer_load_lds_b32 off, s[8:11], 0 offset:8\n"
		       "buffer_load_lds_i8 off, s[8:11], 0 offset:16");
	is_mem(b.group.lds + 0x208 + 12, b.mem->u8 + 8, 4,
	       "buffer_load_lds_b32: M0 + offset + 4 * lane");
	is_mem(b.group.lds + 0x210 + 12, "\x92\xff\xff\xff", 4,
	       "buffer_load_lds_i8 extends the sign");
	bench_fini(&b);
}

int main(void)
{
	test_loads();
	test_stores();
	test_ranges();
	test_swizzle();
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		test_format(&formats[i]);
	test_typed();
	test_clamping();
	test_to_lds();
	return plan_done();
}
