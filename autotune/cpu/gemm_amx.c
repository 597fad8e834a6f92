/*
 * autotune/cpu/gemm_amx.c - products in tiles of AMX: detection, packing,
 * order of work.
 */
#include <cpuid.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "autotune/cpu/gemm_int.h"

/* ---- is there AMX? ---- */

enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* arch_prctl(2) */
#define TILE_STATE 0x60000u			      /* of XCR0 */
#define AMX_BF16   (1u << 22)			      /* of leaf 7, EDX */
#define AMX_TILE   (1u << 24)

/* Linux keeps a process's tiles only once it was asked to. */
static bool request_tiles(void)
{
	unsigned a, b, c, d, low, high;

	if (cpu_level("") < 4 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
	    !(d & AMX_BF16) || !(d & AMX_TILE))
		return false;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (low & TILE_STATE) == TILE_STATE &&
	       syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool cpu_has_amx(void)
{
	enum { UNKNOWN, NO, YES };
	static _Atomic int known;
	int has = atomic_load_explicit(&known, memory_order_relaxed);

	if (has == UNKNOWN) {
		has = request_tiles() ? YES : NO;
		atomic_store_explicit(&known, has, memory_order_relaxed);
	}
	return has == YES;
}

/* ---- a share of a product ---- */

struct share {
	const struct cpu_gemm *list; /* [n_list] of one A */
	size_t n_list;
	const struct cpu_gemm *g; /* the one at hand */
	const struct cpu_gemm_kernels *kernels;
	const struct cpu_amx_kernels *amx;
	struct cpu_gemm_config how;
	bool swapped;
	struct cpu_gemm_source rows, columns;
	bool columns_turn; /* columns are stored [columns][k] */
	unsigned row_parts, column_parts;
	size_t row0, row1, column0, column1;
	unsigned cut, cuts; /* of the rows */
	/* Of the block that is packed: */
	size_t k0, depth, packed0, packed1;
	/* The scratch: */
	char *pack;  /* panels of columns */
	char *strip; /* rows */
	float *made; /* [rows or columns of a tile][made_ld]: before packing */
	size_t made_ld;
	float *sums; /* all of a strip's or, in several depths, of all strips */
	struct cpu_gemm_scratch again;
};

/* Rows of one strip; columns of one tile. */
struct at {
	size_t row, rows, column, columns;
};

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static size_t size_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* `n` in as few parts of at most `most` as it takes; multiples of `unit`. */
static size_t even_part(size_t n, size_t most, size_t unit)
{
	size_t parts = (n + most - 1) / most;

	return round_up((n + parts - 1) / parts, unit);
}

static size_t width_of(const struct share *s)
{
	return s->how.vecs * 16u;
}

/* Rows of an odd number of cache lines do not meet in one set. */
static size_t odd_lines(size_t floats)
{
	return (round_up(floats, 16) / 16 | 1) * 16;
}

static bool is_last(const struct share *s)
{
	return s->k0 + s->depth == s->g->k;
}

/* ---- what the unit cannot do ---- */

/*
 * Sums that are not finite are made again without AMX: an infinity has no
 * parts, and 0 * infinity of two parts is no reason for a NaN.  All k at once,
 * so that bits do not depend on the block.
 */
static void make_again(struct share *s, const struct at *a, float *sums)
{
	const struct cpu_gemm_config plain = {
		.path = CPU_GEMM_NORMAL, .level = 4, .rows = 12, .vecs = 2,
		.kc = 512, .nc = 64, .depth = 512,
	};
	struct cpu_gemm g = *s->g;
	float c[CPU_AMX_ROWS_MAX * CPU_AMX_COLUMNS_MAX], *made = NULL;
	size_t i0 = s->swapped ? a->column : a->row;
	size_t j0 = s->swapped ? a->row : a->column;
	size_t tiles = (a->columns + 15) / 16;

	g.m = s->swapped ? a->columns : a->rows;
	g.n = s->swapped ? a->rows : a->columns;
	g.a += i0 * g.lda;
	if (g.b_type >= CPU_GEMM_MADE) {
		made = xmalloc(g.n * g.k * sizeof(*made));
		cpu_gemm_make(s->kernels, &g, j0, g.n, 0, g.k, made, g.k);
		g.b_type = CPU_GEMM_F32;
		g.b = made;
		g.ldb = g.k;
	} else {
		g.b = cpu_gemm_source_at(
			      &(struct cpu_gemm_source){ g.b_type, g.b, g.ldb },
			      g.b_by_n ? j0 : 0, g.b_by_n ? 0 : j0)
			      .data;
	}
	g.alpha = 1;
	g.beta = 0;
	g.c = c;
	g.ldc = g.n;
	g.config = &plain;
	cpu_gemm_part(&g, &s->again, 0, 1);
	free(made);
	for (size_t i = 0; i < a->rows; i++)
		for (size_t j = 0; j < a->columns; j++) {
			float *x = sums + (i / 16 * tiles + j / 16) * 256 +
				   i % 16 * 16 + j % 16;
			if (!isfinite(*x))
				*x = s->swapped ? c[j * g.ldc + i] :
						  c[i * g.ldc + j];
		}
}

/* ---- blocks ---- */

/* Rows or columns [i, i + n) of this depth, as they can be packed. */
static struct cpu_gemm_source source_of(const struct share *s,
					const struct cpu_gemm_source *from,
					size_t i, size_t n)
{
	if (from->type < CPU_GEMM_MADE)
		return cpu_gemm_source_at(from, i, s->k0);
	cpu_gemm_make(s->kernels, s->g, i, n, s->k0, s->depth, s->made,
		      s->made_ld);
	return (struct cpu_gemm_source){ CPU_GEMM_F32, s->made, s->made_ld };
}

static void pack_columns(const struct share *s)
{
	size_t width = width_of(s), n;
	struct cpu_gemm_source from;
	char *out = s->pack;

	if (!s->columns_turn) {
		from = cpu_gemm_source_at(&s->columns, s->k0, s->packed0);
		s->amx->pack_paired(&from, s->column_parts, s->depth,
				    s->packed1 - s->packed0, s->how.vecs, out);
		return;
	}
	for (size_t j = s->packed0; j < s->packed1; j += n) {
		n = size_min(width, s->packed1 - j);
		from = source_of(s, &s->columns, j, n);
		s->amx->pack_turned(&from, s->column_parts, s->depth, n, out);
		out += cpu_amx_bytes(s->column_parts, n, s->depth);
	}
}

/* Sums of a tile to C, where they belong. */
static void put_sums(const struct share *s, const struct at *a,
		     const float *sums)
{
	const struct cpu_gemm *g = s->g;

	for (size_t i = 0; i < a->rows; i += 16)
		for (size_t j = 0; j < a->columns; j += 16, sums += 256) {
			size_t rows = size_min(16, a->rows - i);
			size_t columns = size_min(16, a->columns - j);
			size_t r = a->row + i, c = a->column + j;
			if (s->swapped)
				s->kernels->turn(sums, 16, rows, columns,
						 g->alpha, g->beta,
						 g->c + c * g->ldc + r, g->ldc);
			else
				s->kernels->merge(sums, 16, rows, columns,
						  g->alpha, g->beta,
						  g->c + r * g->ldc + c,
						  g->ldc);
		}
}

/* What the tile at column j fetches ahead of the strip that comes next. */
static void ahead_at(const struct share *s, size_t next, size_t j,
		     struct cpu_amx_block *b)
{
	size_t rows = size_min(s->how.rows, s->row1 - next),
	       width = width_of(s);
	size_t tiles = (s->packed1 - s->packed0 + width - 1) / width;
	size_t t = (j - s->packed0) / width, size;

	b->ahead_rows = 0;
	if (next >= s->row1 || s->rows.type >= CPU_GEMM_MADE)
		return;
	size = s->rows.type == CPU_GEMM_F32 ? 4 : 2;
	next += rows * t / tiles;
	b->ahead_rows = rows * (t + 1) / tiles - rows * t / tiles;
	b->ahead = cpu_gemm_source_at(&s->rows, next, s->k0).data;
	b->ahead_ld_bytes = s->rows.ld * size;
	b->ahead_step_bytes = CPU_AMX_K * size;
}

static void run_strip(struct share *s, size_t row, size_t rows, float *sums)
{
	struct cpu_gemm_source from = source_of(s, &s->rows, row, rows);
	size_t width = width_of(s), tiles = (rows + 15) / 16;
	struct at a = { .row = row, .rows = rows };
	struct cpu_amx_block b = { .rows = s->strip, .columns = s->pack,
				   .k = s->depth, .first = s->k0 == 0,
				   .sums = sums };
	bool one = b.first && is_last(s);

	s->amx->pack_rows(&from, s->row_parts, rows, s->depth, s->strip);
	for (a.column = s->packed0; a.column < s->packed1; a.column += width) {
		a.columns = size_min(width, s->packed1 - a.column);
		size_t wide = (a.columns + 15) / 16;
		ahead_at(s, row + rows, a.column, &b);
		s->amx->tile[s->row_parts - 1][s->column_parts - 1][tiles - 1]
			    [wide - 1](&b);
		if (is_last(s)) {
			if (!s->amx->finite(b.sums, tiles * wide * 256))
				make_again(s, &a, b.sums);
			put_sums(s, &a, b.sums);
		}
		b.columns +=
			cpu_amx_bytes(s->column_parts, a.columns, s->depth);
		b.sums += one ? 0 : tiles * wide * 256;
	}
}

/* The rows of product i that are this share's. */
static void rows_of(struct share *s, size_t i)
{
	const struct cpu_gemm *g = &s->list[i];

	s->g = g;
	s->rows =
		s->swapped ?
			(struct cpu_gemm_source){ g->b_type, g->b, g->ldb } :
			(struct cpu_gemm_source){ CPU_GEMM_F32, g->a, g->lda };
	s->row_parts = cpu_amx_parts(s->rows.type, g->coarse);
	cpu_gemm_split(s->swapped ? g->n : g->m, s->how.rows, s->cut, s->cuts,
		       &s->row0, &s->row1);
}

/* All rows against the packed columns. */
static void run_block(struct share *s)
{
	size_t height = s->how.rows;
	float *sums = s->sums;

	pack_columns(s);
	for (size_t l = 0; l < s->n_list; l++) {
		rows_of(s, l);
		for (size_t i = s->row0; i < s->row1; i += height) {
			size_t n = size_min(height, s->row1 - i);
			run_strip(s, i, n, sums);
			if (s->depth < s->g->k)
				sums += round_up(n, 16) *
					round_up(s->packed1 - s->packed0, 16);
		}
	}
}

static void lay_out(struct share *s, size_t nc, size_t depth,
		    struct cpu_gemm_scratch *scratch)
{
	size_t height = s->how.rows, width = width_of(s), rows = 0;
	size_t pack = cpu_amx_bytes(s->column_parts, nc, depth), strip = 0;
	size_t made = s->columns.type >= CPU_GEMM_MADE;

	for (size_t i = 0; i < s->n_list; i++) {
		rows_of(s, i);
		size_t bytes = cpu_amx_bytes(s->row_parts, height, depth);
		strip = bytes > strip ? bytes : strip;
		rows += round_up(s->row1 - s->row0, height);
		made = made || s->rows.type >= CPU_GEMM_MADE;
	}
	size_t sums = depth < s->g->k ? rows * nc : height * width;
	s->made_ld = odd_lines(depth);
	made = made ? (height > width ? height : width) * s->made_ld : 0;
	s->pack = cpu_gemm_scratch_get(scratch,
				       pack + strip + (sums + made) * 4);
	s->strip = s->pack + pack;
	s->sums = (float *)(s->strip + strip);
	s->made = s->sums + sums;
}

static void run_blocks(struct share *s, struct cpu_gemm_scratch *scratch)
{
	size_t width = width_of(s);

	if (s->column0 == s->column1)
		return;
	size_t nc = even_part(s->column1 - s->column0,
			      round_up(s->how.nc, width), width);
	size_t deep = even_part(s->g->k, round_up(s->how.depth, CPU_AMX_K),
				CPU_AMX_K);

	lay_out(s, nc, deep, scratch);
	for (size_t j = s->column0; j < s->column1; j += nc) {
		s->packed0 = j;
		s->packed1 = size_min(j + nc, s->column1);
		for (s->k0 = 0; s->k0 < s->g->k; s->k0 += deep) {
			s->depth = size_min(deep, s->g->k - s->k0);
			run_block(s);
		}
	}
}

/* ---- shares ---- */

/*
 * How long a share of so many rows and columns takes, per k, in products of a
 * tile, of which one is 512 per value and part.  To pack a value costs as much
 * as PACK of these for each part.
 */
#define PACK 60

static size_t split_cost(const struct share *s, size_t rows, size_t columns)
{
	size_t few = size_min(s->row_parts, s->column_parts);
	size_t again = (columns + s->how.nc - 1) / s->how.nc;
	/* Not those of parts that are both small. */
	size_t products = s->row_parts * s->column_parts - few * (few - 1) / 2;

	return products * round_up(rows, 16) * round_up(columns, 16) +
	       PACK * (rows * s->row_parts * again + columns * s->column_parts);
}

/* In how many parts to cut the rows; the rest are cuts of the columns. */
static unsigned cuts_of_rows(const struct share *s, size_t rows, size_t columns,
			     unsigned parts)
{
	size_t best = SIZE_MAX;
	unsigned cuts = 1;

	for (unsigned n = 1; n <= parts; n++) {
		if (parts % n)
			continue;
		size_t c = split_cost(
			s, round_up((rows + n - 1) / n, s->how.rows),
			round_up((columns + parts / n - 1) / (parts / n),
				 width_of(s)));
		if (c < best) {
			best = c;
			cuts = n;
		}
	}
	return cuts;
}

void cpu_amx_part(const struct cpu_gemm *g, size_t n,
		  const struct cpu_gemm_config *how,
		  struct cpu_gemm_scratch *scratch, unsigned part,
		  unsigned parts)
{
	bool swapped = how->path == CPU_GEMM_SWAPPED, coarse = true;
	size_t rows = 0, columns = swapped ? g->m : g->n;
	struct share s = { .list = g,
			   .n_list = n,
			   .g = g,
			   .kernels = cpu_gemm_kernels(how->level),
			   .amx = &cpu_amx_kernels,
			   .how = *how,
			   .swapped = swapped,
			   .columns = { g->b_type, g->b, g->ldb },
			   .columns_turn = swapped || g->b_by_n };

	if (swapped)
		s.columns =
			(struct cpu_gemm_source){ CPU_GEMM_F32, g->a, g->lda };
	for (size_t i = 0; i < n; i++) {
		rows += swapped ? g[i].n : g->m;
		coarse = coarse && g[i].coarse;
	}
	s.row_parts =
		cpu_amx_parts(swapped ? g->b_type : CPU_GEMM_F32, coarse);
	s.column_parts = cpu_amx_parts(s.columns.type, coarse);
	s.cuts = cuts_of_rows(&s, rows, columns, parts);
	s.cut = part % s.cuts;
	cpu_gemm_split(columns, width_of(&s), part / s.cuts, parts / s.cuts,
		       &s.column0, &s.column1);
	s.amx->begin();
	run_blocks(&s, scratch);
	s.amx->end();
	cpu_gemm_scratch_fini(&s.again);
}

/* ---- the yardstick ---- */

double cpu_amx_flop(uint64_t rounds)
{
	if (!cpu_has_amx())
		return 0;
	cpu_amx_kernels.begin();
	double flop = cpu_amx_kernels.spin(rounds);
	cpu_amx_kernels.end();
	return flop;
}
