/*
 * autotune/cpu/gemm_bytes.c - products in tiles of 8-bit integers: sharing and
 * order of work.
 *
 * A panel of columns is packed for all k's.  Some groups of its k's stay in the
 * first cache while all rows go by; sums wait in C meanwhile.
 */
#include "autotune/cpu/gemm_int.h"

extern const struct cpu_bytes_kernels cpu_bytes_vnni_v4, cpu_bytes_vnni_vl,
	cpu_bytes_vnni_v3, cpu_bytes_v3, cpu_channel_vnni_v4,
	cpu_channel_vnni_vl, cpu_channel_vnni_v3, cpu_channel_v3;

const struct cpu_bytes_kernels *cpu_bytes_kernels(unsigned level,
						  enum cpu_gemm_type b_type)
{
	const bool channel = b_type == CPU_GEMM_CHANNEL8;

	if (level == CPU_LEVEL_VNNI)
		return channel ? &cpu_channel_vnni_v4 : &cpu_bytes_vnni_v4;
	if (level != CPU_LEVEL_AVX_VNNI)
		return channel ? &cpu_channel_v3 : &cpu_bytes_v3;
	if (cpu_has_avx_vnni())
		return channel ? &cpu_channel_vnni_v3 : &cpu_bytes_vnni_v3;
	return channel ? &cpu_channel_vnni_vl : &cpu_bytes_vnni_vl;
}

struct share {
	const struct cpu_gemm *g; /* the one at hand */
	const struct cpu_bytes_kernels *kernels;
	struct cpu_gemm_config how;
	size_t groups; /* of k's */
	size_t row0, row1, column0, column1;
	/* The scratch: */
	char *rows;   /* packed, row_bytes() each */
	float *pack;  /* a panel of columns */
	float *space; /* of packing */
	/* [rows][TILE_LD]: columns that fill no vector, sums that wait */
	float *tile;
};
#define TILE_LD (CPU_BYTES_VECS * 16)

static size_t size_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t width_of(const struct share *s)
{
	return s->how.vecs * s->kernels->lanes;
}

static size_t row_bytes(const struct share *s)
{
	return s->groups * s->kernels->row_step + s->kernels->row_end;
}

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Asks for stored columns [j, end) that are packed soon. */
static void fetch_columns(const struct share *s, size_t j, size_t end)
{
	enum { LINE_BYTES = 64 };
	const struct cpu_gemm_ints *m = s->g->b;

	for (; j < end; j++) {
		const uint8_t *p = m->q + j * m->q_row;
		size_t bytes = s->groups * m->q_group;
		for (size_t at = 0; at < bytes; at += LINE_BYTES)
			__builtin_prefetch(p + at, 0, 2);
	}
}

/*
 * The packed panel, columns j .. j + n: groups g0 .. of k's, of all rows.  Behind
 * it come columns up to `ahead`, which the last tiles of the first groups fetch.
 */
#define FETCHING_ROWS 128
static void run_panel(const struct share *s, size_t j, size_t n, size_t g0,
		      size_t ahead)
{
	const struct cpu_gemm *g = s->g;
	const struct cpu_bytes_kernels *kernels = s->kernels;
	const size_t lanes = kernels->lanes, width = round_up(n, lanes);
	const bool straight = width == n;
	/* Parts are added up in C, or as integers. */
	const bool adds = g0 && !kernels->exact;
	struct cpu_bytes_block b = {
		.groups = size_min(s->how.kc, s->groups - g0),
		.rows_ld_bytes = row_bytes(s),
		.columns = s->pack + g0 * kernels->column_step * width,
		.alpha = straight ? g->alpha : 1,
		.beta = adds ? 1 : straight ? g->beta : 0,
		.ldc = straight ? g->ldc : TILE_LD,
		.behind = s->groups - g0,
		.first = g0 == 0,
		.lds = TILE_LD,
	};

	b.last = b.groups == b.behind;

	const size_t most = size_min(FETCHING_ROWS, s->row1 - s->row0);
	size_t fetched = j + n;
	for (size_t i = s->row0, rows; i < s->row1; i += rows) {
		rows = size_min(s->how.rows, s->row1 - i);
		size_t left = s->row1 - i - rows;
		size_t fetch = ahead - size_min(ahead - j - n,
						(ahead - j - n) * left / most);
		fetch_columns(s, fetched, fetch);
		fetched = fetch;
		b.rows = s->rows + (i - s->row0) * b.rows_ld_bytes +
			 g0 * kernels->row_step;
		b.sums = s->tile + (i - s->row0) * TILE_LD;
		b.c = straight ? g->c + i * g->ldc + j : b.sums;
		kernels->tile[width / lanes - 1][rows - 1](&b);
	}
	if (!straight && b.last)
		kernels->merge(s->tile, TILE_LD, s->row1 - s->row0, n, g->alpha,
			       g->beta, g->c + s->row0 * g->ldc + j, g->ldc);
}

static void run_columns(const struct share *s)
{
	const bool stored = s->g->b_type != CPU_GEMM_MADE;

	for (size_t j = s->column0, n; j < s->column1; j += n) {
		n = size_min(width_of(s), s->column1 - j);
		size_t ahead = stored ? size_min(j + n + width_of(s),
						 s->column1) :
					j + n;
		s->kernels->pack_columns(s->g, j, n, s->groups, s->pack,
					 s->space);
		for (size_t g0 = 0; g0 < s->groups; g0 += s->how.kc)
			run_panel(s, j, n, g0, g0 ? j + n : ahead);
	}
}

/* In products of a value: to pack one of B, and to round one of A. */
#define PACK  12
#define ROUND 40

static void lay_out(struct share *s, struct cpu_gemm_scratch *scratch)
{
	const size_t rows = s->row1 - s->row0, lanes = s->kernels->lanes;
	size_t rows_words = round_up(rows * row_bytes(s) / sizeof(float), 16);
	size_t pack = (s->groups * s->kernels->column_step +
		       s->kernels->column_end) * width_of(s);
	size_t space = lanes * s->groups * (CPU_BYTES_COLUMN + 8) + 64;
	float *p = cpu_gemm_scratch_get(scratch, (rows_words + pack + space +
						  rows * TILE_LD) *
							 sizeof(float));

	s->rows = (char *)p;
	s->pack = p + rows_words;
	s->space = s->pack + pack;
	s->tile = s->space + round_up(space, 16);
}

void cpu_bytes_part(const struct cpu_gemm *g, size_t n,
		    const struct cpu_gemm_config *how,
		    struct cpu_gemm_scratch *scratch, unsigned part,
		    unsigned parts)
{
	struct share s = { .g = g,
			   .kernels = cpu_bytes_kernels(how->level, g->b_type),
			   .how = *how,
			   .groups = (g->k + CPU_BYTES_GROUP - 1) /
				     CPU_BYTES_GROUP };
	size_t columns = 0;

	for (size_t i = 0; i < n; i++) {
		columns += g[i].n;
		if (cpu_bytes_kernels(how->level, g[i].b_type) != s.kernels)
			BUG("a list of products by channels and by groups");
	}
	const struct cpu_gemm_shares shares = {
		.rows = g->m,
		.columns = columns,
		.width = width_of(&s),
		.lanes = s.kernels->lanes,
		.most = SIZE_MAX / 2, /* A stays rounded */
		.column_cost = PACK,
		.row_cost = ROUND
	};
	const unsigned cuts = cpu_gemm_cuts(&shares, parts);
	cpu_gemm_split(g->m, how->rows, part % cuts, cuts, &s.row0, &s.row1);
	if (s.row0 == s.row1)
		return;
	lay_out(&s, scratch);
	s.kernels->pack_rows(g->a + s.row0 * g->lda, g->lda, s.row1 - s.row0,
			     g->k, s.rows);
	for (size_t i = 0; i < n; i++) {
		s.g = &g[i];
		cpu_gemm_split(g[i].n, width_of(&s), part / cuts, parts / cuts,
			       &s.column0, &s.column1);
		run_columns(&s);
	}
}
