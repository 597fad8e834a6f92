/*
 * compiler/sim/examine/others.c - the code of tiled matrix products.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/examine/examine.h"
#include "isa/text/text.h"

enum { FRAG = 8, /* VGPRs of a 16 x 16 fragment of bf16, and of C in f32 */
       LDS_PAD = 16 };

struct emit {
	struct others_code *g;
	const struct others_tile *t;
	const struct others_shape *s;
	int wm, wn;	 /* of a wave */
	int loads_a, loads_b; /* b128 of a lane and tile */
	int acc, frag_a, frag_b, stage, addr; /* first registers */
	struct sim_sharing share_a, share_b;
	struct err *e;
	bool ok;
};

/* One instruction; its offset. */
T0_PRINTF(2, 3)
static size_t emit_line(struct emit *x, const char *fmt, ...)
{
	struct isa_target t = { ISA_GFX11, 32, false };
	size_t at = x->g->code.len;
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	const char *why = isa_assemble_line(&t, text, NULL, NULL, &in, code);
	if (why) {
		x->ok = x->ok && err_set(x->e, ERR_UNSUPPORTED, "a tile of "
					 "%dx%dx%d: %s: %s", x->t->m, x->t->n,
					 x->t->k, text, why);
		return at;
	}
	buf_add(&x->g->code, code, in.size_bytes);
	return at;
}

static int thread_count(const struct emit *x)
{
	return x->g->waves * 32;
}

/* ---- global memory ---- */

struct operand {
	int rows;      /* of the tile in memory order */
	int row_bytes; /* of the tile */
	int64_t pitch; /* of the matrix */
	int64_t step;  /* from tile to tile */
	int64_t base;
	struct sim_sharing share;
	int sgpr, addr;
};

/* Lanes in a row of the tile, 16 bytes each. */
static void load_tile(struct emit *x, const struct operand *o, int stage, int n)
{
	int fold = o->row_bytes / 16, threads_n = thread_count(x);

	for (int j = 0; j < n; j++) {
		size_t at =
			emit_line(x, "global_load_b128 v[%d:%d], v%d, s[%d:%d]",
				  stage + 4 * j, stage + 4 * j + 3, o->addr,
				  o->sgpr, o->sgpr + 1);

		buf_printf(&x->g->affine, "at %zu base=%lld lane=16 fold=%d "
			   "row=%lld wave=%lld group=%lld step=%lld share=%d "
			   "near=%d\n",
			   at, (long long)(o->base + (int64_t)j * threads_n /
					   fold * o->pitch),
			   fold, (long long)o->pitch,
			   (long long)(32 / fold * o->pitch +
				       32 % fold * 16),
			   (long long)(o->pitch * 4096), (long long)o->step,
			   (int)fmax(1, o->share.gpu),
			   (int)fmax(1, o->share.array));
	}
}

static struct operand operand_a(const struct emit *x)
{
	return (struct operand){
		.rows = x->t->m, .row_bytes = x->t->k * 2,
		.pitch = (int64_t)x->s->k * 2, .step = x->t->k * 2,
		.base = INT64_C(1) << 40, .share = x->share_a, .sgpr = 4,
		.addr = x->addr,
	};
}

static struct operand operand_b(const struct emit *x)
{
	struct operand o = {
		.rows = x->t->n, .row_bytes = x->t->k * 2,
		.pitch = (int64_t)x->s->k * 2, .step = x->t->k * 2,
		.base = INT64_C(1) << 41, .share = x->share_b, .sgpr = 6,
		.addr = x->addr + 1,
	};

	if (x->t->family == OTHERS_TRITON) {
		o.rows = x->t->k;
		o.row_bytes = x->t->n * 2;
		o.pitch = (int64_t)x->s->n * 2;
		o.step = x->t->k * o.pitch;
	}
	return o;
}

/*
 * Triton's programs keep a 64-bit pointer per lane and load and add to each;
 * three pairs of registers stand for all of them.
 */
static void next_pointers(struct emit *x)
{
	for (int j = 0; j < x->loads_a + x->loads_b; j++) {
		int p = x->addr + 6 + j % 3 * 2;

		emit_line(x, "v_add_co_u32 v%d, vcc_lo, v%d, s%d", p, p,
			  j < x->loads_a ? 8 : 10);
		emit_line(x, "v_add_co_ci_u32 v%d, vcc_lo, 0, v%d, vcc_lo",
			  p + 1, p + 1);
	}
}

static void load_next(struct emit *x)
{
	struct operand a = operand_a(x), b = operand_b(x);

	load_tile(x, &a, x->stage, x->loads_a);
	load_tile(x, &b, x->stage + 4 * x->loads_a, x->loads_b);
	if (x->t->family == OTHERS_TRITON)
		next_pointers(x);
	for (int k = 4; k <= 6; k += 2) {
		emit_line(x, "s_add_u32 s%d, s%d, s%d", k, k, k + 4);
		emit_line(x, "s_addc_u32 s%d, s%d, 0", k + 1, k + 1);
	}
}

/* ---- LDS ---- */

/*
 * Bytes of a row of K in LDS.  T0 swizzles instead of padding (16 KB are
 * published for 128x128x16, 24 KB for 128x64x32, 32 KB for 128x128x32).
 */
static int lds_pitch(const struct emit *x)
{
	return x->t->k * 2 + (x->t->family == OTHERS_TRITON ? LDS_PAD : 0);
}

/* From lane to lane of a fragment; swizzled rows fill the banks as if dense. */
static int fragment_lane(const struct emit *x)
{
	return x->t->family == OTHERS_TRITON ? lds_pitch(x) : 16;
}

static void store_part(struct emit *x, int stage, int n, int row_bytes,
		       int pitch, int base, int addr)
{
	int fold = row_bytes / 16, per = thread_count(x) / fold;

	for (int j = 0; j < n; j++) {
		size_t at = emit_line(x, "ds_store_b128 v%d, v[%d:%d]", addr,
				      stage + 4 * j, stage + 4 * j + 3);

		buf_printf(&x->g->affine, "at %zu base=%d lane=16 fold=%d "
			   "row=%d wave=%d\n", at, base + j * per * pitch,
			   fold, pitch, 32 / fold * pitch + 32 % fold * 16);
	}
}

static int lds_b(const struct emit *x)
{
	return x->t->m * lds_pitch(x);
}

static void store_tile(struct emit *x)
{
	bool gather = x->t->family == OTHERS_TRITON;
	int pitch = lds_pitch(x);

	store_part(x, x->stage, x->loads_a, x->t->k * 2, pitch, 0,
		   x->addr + 2);
	if (gather)
		store_part(x, x->stage + 4 * x->loads_a, x->loads_b,
			   x->t->n * 2, x->t->n * 2, lds_b(x), x->addr + 3);
	else
		store_part(x, x->stage + 4 * x->loads_a, x->loads_b,
			   x->t->k * 2, pitch, lds_b(x), x->addr + 3);
}

/* A fragment whose K is contiguous: lane l reads row l % 16. */
static void load_fragment(struct emit *x, int reg, int base, int wave, int addr)
{
	for (int half = 0; half < 2; half++) {
		size_t at = emit_line(x, "ds_load_b128 v[%d:%d], v%d offset:%d",
				      reg + 4 * half, reg + 4 * half + 3, addr,
				      16 * half);

		buf_printf(&x->g->affine, "at %zu base=%d lane=%d fold=16 "
			   "wave=%d\n", at, base + 16 * half,
			   fragment_lane(x), wave);
	}
}

/* One whose K is not: a half word per lane and row of K. */
static void gather_fragment(struct emit *x, int reg, int base)
{
	for (int k = 0; k < 16; k++) {
		size_t at = emit_line(x, "ds_load_u16_d16%s v%d, v%d offset:%d",
				      k & 1 ? "_hi" : "", reg + k / 2,
				      x->addr + 5, k * x->t->n * 2);

		buf_printf(&x->g->affine, "at %zu base=%d lane=2 fold=16\n",
			   at, base + k * x->t->n * 2);
	}
}

static void emit_product(struct emit *x, int i, int j, int a, int b)
{
	int c = x->acc + FRAG * (i * (x->wn / 16) + j);

	emit_line(x,
		  "v_wmma_f32_16x16x16_bf16 v[%d:%d], v[%d:%d], v[%d:%d], "
		  "v[%d:%d]",
		  c, c + 7, a, a + 7, b, b + 7, c, c + 7);
	x->g->wmmas++;
}

/* All fragments first, then the products as they arrive. */
static void slice_triton(struct emit *x, int k16)
{
	int rows = x->wm / 16, cols = x->wn / 16;

	for (int i = 0; i < rows; i++)
		load_fragment(x, x->frag_a + FRAG * i,
			      i * 16 * lds_pitch(x) + k16 * 32,
			      x->wm * lds_pitch(x) / 2, x->addr + 4);
	for (int j = 0; j < cols; j++)
		gather_fragment(x, x->frag_b + FRAG * j,
				lds_b(x) + k16 * 16 * x->t->n * 2 + j * 32);
	for (int j = 0; j < cols; j++) {
		int left = (cols - 1 - j) * 16;

		emit_line(x, "s_waitcnt lgkmcnt(%d)", left > 63 ? 63 : left);
		for (int i = 0; i < rows; i++)
			emit_product(x, i, j, x->frag_a + FRAG * i,
				     x->frag_b + FRAG * j);
	}
}

/* A fragment of B while the products of the one before run. */
static void slice_t0(struct emit *x, int k16)
{
	int rows = x->wm / 16, cols = x->wn / 16, pitch = lds_pitch(x);

	for (int i = 0; i < rows; i++)
		load_fragment(x, x->frag_a + FRAG * i,
			      i * 16 * pitch + k16 * 32, x->wm * pitch,
			      x->addr + 4);
	load_fragment(x, x->frag_b, lds_b(x) + k16 * 32, 0, x->addr + 5);
	for (int j = 0; j < cols; j++) {
		if (j + 1 < cols)
			load_fragment(x, x->frag_b + (j + 1) % 2 * FRAG,
				      lds_b(x) + (j + 1) * 16 * pitch +
					      k16 * 32,
				      0, x->addr + 5);
		emit_line(x, "s_waitcnt lgkmcnt(%d)", j + 1 < cols ? 2 : 0);
		for (int i = 0; i < rows; i++)
			emit_product(x, i, j, x->frag_a + FRAG * i,
				     x->frag_b + j % 2 * FRAG);
	}
}

static void emit_slices(struct emit *x)
{
	for (int k = 0; k < x->t->k / 16; k++)
		if (x->t->family == OTHERS_TRITON)
			slice_triton(x, k);
		else
			slice_t0(x, k);
}

/* ---- the kernel ---- */

/* The other LDS buffer: four addresses change. */
static void other_buffer(struct emit *x)
{
	for (int k = 2; k < 6; k++)
		emit_line(x, "v_xor_b32 v%d, 0x4000, v%d", x->addr + k,
			  x->addr + k);
}

static void emit_loop(struct emit *x, int trips)
{
	size_t top = x->g->code.len, end;
	bool one = x->t->family == OTHERS_TRITON;

	load_next(x);
	emit_slices(x);
	if (one)
		emit_line(x, "s_barrier"); /* all have read the only buffer */
	else
		other_buffer(x);
	emit_line(x, "s_waitcnt vmcnt(0)");
	store_tile(x);
	emit_line(x, "s_waitcnt lgkmcnt(0)");
	emit_line(x, "s_barrier");
	emit_line(x, "s_add_u32 s2, s2, 1");
	emit_line(x, "s_cmp_lt_u32 s2, s3");
	end = emit_line(x, "s_cbranch_scc1 %d",
			-(int)((x->g->code.len - top) / 4 + 1));
	if (trips > 0)
		buf_printf(&x->g->affine, "loop %zu %d\n", end, trips);
}

/* A dword per lane and register: 16 columns of two rows. */
static void store_c(struct emit *x)
{
	int n = x->wm / 16 * (x->wn / 16) * FRAG;
	int64_t pitch = (int64_t)x->s->n * 4;

	for (int k = 0; k < n; k++) {
		size_t at = emit_line(x, "global_store_b32 v%d, v%d, s[12:13]",
				      x->addr, x->acc + k);
		int frag = k / FRAG, row = k % FRAG * 2 +
			   frag / (x->wn / 16) * 16;

		buf_printf(&x->g->affine, "at %zu base=%lld lane=4 fold=16 "
			   "row=%lld wave=%lld group=%lld\n", at,
			   (long long)((INT64_C(1) << 42) + row * pitch +
				       frag % (x->wn / 16) * 64),
			   (long long)pitch, (long long)(x->wm * pitch),
			   (long long)(x->t->n * 4 + pitch * x->t->m));
	}
	emit_line(x, "s_endpgm");
}

static void emit_kernel(struct emit *x, int trips)
{
	emit_line(x, "s_load_b512 s[4:19], s[0:1], null");
	emit_line(x, "v_lshlrev_b32 v%d, 4, v0", x->addr);
	for (int k = 1; k < 12; k++)
		emit_line(x, "v_mov_b32 v%d, v%d", x->addr + k, x->addr);
	emit_line(x, "s_waitcnt lgkmcnt(0)");
	load_next(x);
	for (int k = 0; k < x->wm / 16 * (x->wn / 16) * FRAG; k++)
		emit_line(x, "v_mov_b32 v%d, 0", x->acc + k);
	emit_line(x, "s_waitcnt vmcnt(0)");
	store_tile(x);
	emit_line(x, "s_waitcnt lgkmcnt(0)");
	emit_line(x, "s_barrier");
	emit_loop(x, trips);
	x->g->wmmas = 0;
	emit_slices(x);
	store_c(x);
}

static void split_waves(struct emit *x)
{
	if (x->t->family == OTHERS_T0) {
		x->wm = x->t->m < 32 ? x->t->m : 32;
		x->wn = x->t->n;
		x->g->waves = x->t->m / x->wm;
	} else {
		x->wm = x->t->m / 2;
		x->wn = x->t->n / 2;
		x->g->waves = 4;
	}
}

static void place_registers(struct emit *x)
{
	int rows = x->wm / 16, cols = x->wn / 16;
	int b = x->t->family == OTHERS_TRITON ? cols : 2;

	x->acc = 0;
	x->frag_a = x->acc + rows * cols * FRAG;
	x->frag_b = x->frag_a + rows * FRAG;
	x->stage = x->frag_b + b * FRAG;
	x->addr = x->stage + 4 * (x->loads_a + x->loads_b);
	x->g->vgprs = x->addr + 6;
	if (x->t->family == OTHERS_TRITON) /* and the pointers of all loads */
		x->g->vgprs += 2 * (x->loads_a + x->loads_b);
	if (x->g->vgprs > 256)
		x->g->vgprs = 256;
	if (x->t->vgprs)
		x->g->vgprs = x->t->vgprs;
}

static bool is_possible(const struct emit *x)
{
	const struct others_tile *t = x->t;
	int bytes = thread_count(x) * 16;

	return t->m % x->wm == 0 && t->n % 16 == 0 && t->k % 16 == 0 &&
	       x->wm % 16 == 0 && x->wn % 16 == 0 && x->g->waves >= 1 &&
	       x->g->waves <= 32 && t->m * t->k * 2 % bytes == 0 &&
	       t->n * t->k * 2 % bytes == 0 && t->k <= 128;
}

/*
 * Workgroups go round robin over the shader arrays: of those at work, which
 * of one array have the same rows of A, and which the same columns of B?
 */
static void find_near(struct emit *x, int at_once)
{
	int cols = (x->s->n + x->t->n - 1) / x->t->n;
	int rows = (x->s->m + x->t->m - 1) / x->t->m;
	int arrays = (int)cost_row_info(COST_N_ARRAY)->value, n = 0;
	bool *seen_a = xcalloc((size_t)rows * (size_t)x->s->split, 1);
	bool *seen_b = xcalloc((size_t)cols * (size_t)x->s->split, 1);
	int a = 0, b = 0;

	for (int g = 0; g < at_once; g += arrays, n++) {
		int part = g / (rows * cols), tile = g % (rows * cols);
		bool *row = &seen_a[part * rows + tile / cols];
		bool *col = &seen_b[part * cols + tile % cols];

		a += !*row;
		b += !*col;
		*row = *col = true;
	}
	x->share_a.array = (double)n / a;
	x->share_b.array = (double)n / b;
	free(seen_a);
	free(seen_b);
}

bool others_generate(struct others_code *g, const struct others_tile *t,
		     const struct others_shape *s, int trips, int groups,
		     struct err *e)
{
	struct emit x = { .g = g, .t = t, .s = s, .e = e, .ok = true };

	memset(g, 0, sizeof(*g));
	if (t->m < 16 || t->n < 16 || t->k < 16 || t->m > 512 || t->n > 512)
		return err_set(e, ERR_UNSUPPORTED, "a tile of %dx%dx%d",
			       t->m, t->n, t->k);
	split_waves(&x);
	if (!is_possible(&x))
		return err_set(e, ERR_UNSUPPORTED, "a tile of %dx%dx%d: its "
			       "rows are not shared out evenly among %d waves",
			       t->m, t->n, t->k, g->waves);
	x.loads_a = t->m * t->k * 2 / (thread_count(&x) * 16);
	x.loads_b = t->n * t->k * 2 / (thread_count(&x) * 16);
	place_registers(&x);
	/* Neighbours in the grid run at the same time. */
	double at_once = fmin(cost_row_info(COST_N_WGP)->value * groups,
			      ceil((double)s->m / t->m) *
			      ceil((double)s->n / t->n) * s->split);
	x.share_b.gpu = at_once / ceil((double)s->n / t->n) / s->split;
	x.share_a.gpu = fmin(ceil((double)s->n / t->n), at_once);
	find_near(&x, (int)at_once);
	g->lds_bytes = (uint32_t)(lds_b(&x) + (t->family == OTHERS_TRITON ?
						       t->k * t->n * 2 :
						       t->n * lds_pitch(&x)));
	g->lds_bytes *= t->family == OTHERS_T0 ? 2 : 1;
	buf_printf(&g->affine, "waves %d\ngroups %d\n", g->waves, groups);
	emit_kernel(&x, trips);
	return x.ok;
}

void others_fini(struct others_code *g)
{
	buf_fini(&g->code);
	buf_fini(&g->affine);
}
