/*
 * autotune/cpu/gemm.c - products in tiles: packing, sharing, order of work.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "autotune/cpu/gemm_int.h"

/*
 * One share of a product in the words of tiles: `rows` x `columns` sums of k
 * products.  Rows are of A and columns of B, or the other way about (swapped).
 */
struct share {
	const struct cpu_gemm *list; /* [n_list] of one A */
	size_t n_list;
	const struct cpu_gemm *g; /* the one at hand */
	const struct cpu_gemm_kernels *kernels;
	struct cpu_gemm_config how;
	bool swapped;
	struct cpu_gemm_source rows, columns; /* both from their first row */
	bool columns_turn;		  /* columns are stored [columns][k] */
	size_t row0, row1, column0, column1;
	size_t k; /* of all, in units, as all that count k's here */
	unsigned cut, cuts; /* of the rows */
	size_t step;	    /* kc is a multiple of it */
	bool keep; /* packed rows, for they meet several blocks of columns */
	/* Of the block that is packed: */
	size_t k0, depth, packed0, packed1;
	/* Columns of the next one that are still to be fetched ahead. */
	size_t ahead0, ahead1, ahead_k0;
	/* The scratch: */
	float *pack;  /* panels [depth][width] */
	float *lines; /* of how.rows, kc's; where they are kept, all, depth's */
	float *made;  /* [width or how.rows][odd_lines(MADE_K)] */
	float *tile;  /* [how.rows][tile_ld] */
	size_t tile_ld;
};

/* Rows [i, i + n) of a share and the k's [k0, k0 + k) that are next. */
struct panel {
	size_t i, n, k0, k;
	float beta;
};

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static size_t size_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t size_max(size_t a, size_t b)
{
	return a > b ? a : b;
}

void cpu_gemm_split(size_t n, size_t unit, unsigned part, unsigned parts,
		    size_t *from, size_t *to)
{
	size_t units = (n + unit - 1) / unit;

	*from = size_min(units * part / parts * unit, n);
	*to = size_min(units * (part + 1) / parts * unit, n);
}

static size_t width_of(const struct share *s)
{
	return s->how.vecs * s->kernels->lanes;
}

/* How many values `k` units from k0 on are. */
static size_t values_of(const struct share *s, size_t k0, size_t k)
{
	return size_min(k * s->kernels->unit, s->g->k - k0 * s->kernels->unit);
}

static size_t size_of(enum cpu_gemm_type type)
{
	return type == CPU_GEMM_F32 ? 4 : 2;
}

struct cpu_gemm_source cpu_gemm_source_at(const struct cpu_gemm_source *s,
					  size_t row, size_t column)
{
	return (struct cpu_gemm_source){ s->type,
					 (const char *)s->data +
					     (row * s->ld + column) *
						     size_of(s->type),
					 s->ld };
}

/* ---- scratch ---- */

#define HUGE_PAGE ((size_t)2 << 20)

void cpu_gemm_scratch_fini(struct cpu_gemm_scratch *s)
{
	free(s->data);
	*s = (struct cpu_gemm_scratch){ 0 };
}

void *cpu_gemm_scratch_get(struct cpu_gemm_scratch *s, size_t bytes)
{
	bytes = round_up(bytes, HUGE_PAGE);
	if (bytes > s->size_bytes) {
		cpu_gemm_scratch_fini(s);
		s->data = xaligned(HUGE_PAGE, bytes);
		s->size_bytes = bytes;
		/* Only faster: fewer misses of the page tables. */
		madvise(s->data, bytes, MADV_HUGEPAGE);
	}
	return s->data;
}

/* From a row and a unit of k's on; of what is stored by k, from that on. */
static struct cpu_gemm_source source_at(const struct share *s,
					const struct cpu_gemm_source *from,
					size_t row, size_t k0)
{
	return cpu_gemm_source_at(from, row, k0 * s->kernels->unit);
}

static struct cpu_gemm_source source_by_k(const struct share *s,
					  const struct cpu_gemm_source *from,
					  size_t k0, size_t column)
{
	return cpu_gemm_source_at(from, k0 * s->kernels->unit, column);
}

/* Rows of an odd number of cache lines do not meet in one set. */
static size_t odd_lines(size_t floats)
{
	return (round_up(floats, 16) / 16 | 1) * 16;
}

/* K's of values that a function makes at a time: they stay in a cache. */
#define MADE_K 128

static void lay_out(struct share *s, struct cpu_gemm_scratch *scratch)
{
	size_t nc = round_up(s->how.nc, width_of(s));
	size_t pack = s->how.depth * nc;
	size_t rows = s->keep ? (s->row1 - s->row0) * s->how.depth :
				s->how.rows * s->how.kc;
	size_t made = size_max(s->how.rows, width_of(s)) * odd_lines(MADE_K);

	s->tile_ld = odd_lines(nc);
	size_t all = pack + rows + made + s->how.rows * s->tile_ld;

	s->pack = cpu_gemm_scratch_get(scratch, all * sizeof(float));
	s->lines = s->pack + pack;
	s->made = s->lines + rows;
	s->tile = s->made + made;
}

/* ---- blocks ---- */

/* Values [n][k] of B that a function makes, until they are packed. */
static struct cpu_gemm_source make_source(const struct share *s, size_t row,
					  size_t n, size_t k0, size_t k)
{
	struct cpu_gemm_source m = { CPU_GEMM_F32, s->made, odd_lines(MADE_K) };

	cpu_gemm_make(s->kernels, s->g, row, n, k0, k, s->made, m.ld);
	return m;
}

static void columns_made(const struct share *s, size_t j, size_t n, float *out)
{
	size_t width = round_up(n, s->kernels->lanes), unit = s->kernels->unit;
	size_t k0 = s->k0 * unit, depth = values_of(s, s->k0, s->depth);

	for (size_t at = 0; at < depth; at += MADE_K) {
		size_t k = size_min(MADE_K, depth - at);
		struct cpu_gemm_source from = make_source(s, j, n, k0 + at, k);
		s->kernels->pack_columns(&from, k, n, width,
					 out + at / unit * width);
	}
}

/* Packs columns [packed0, packed1) of this depth, a panel at a time. */
static void pack_panels(const struct share *s)
{
	size_t width = width_of(s), lanes = s->kernels->lanes;
	size_t k = values_of(s, s->k0, s->depth);

	for (size_t j = s->packed0; j < s->packed1; j += width) {
		size_t n = size_min(width, s->packed1 - j);
		float *out = s->pack + (j - s->packed0) * s->depth;
		if (s->columns.type >= CPU_GEMM_MADE) {
			columns_made(s, j, n, out);
			continue;
		}
		struct cpu_gemm_source from =
			s->columns_turn ?
				source_at(s, &s->columns, j, s->k0) :
				source_by_k(s, &s->columns, s->k0, j);
		if (s->columns_turn)
			s->kernels->pack_columns(&from, k, n,
						 round_up(n, lanes), out);
		else
			s->kernels->pack_rows(&from, k, n, round_up(n, lanes),
					      out);
	}
}

/* Where a panel's rows are packed. */
static float *lines_of(const struct share *s, const struct panel *p)
{
	return s->keep ? s->lines + (p->i - s->row0) * s->how.depth +
				 (p->k0 - s->k0) * p->n :
			 s->lines;
}

static void rows_made(const struct share *s, const struct panel *p)
{
	size_t unit = s->kernels->unit, all = values_of(s, p->k0, p->k);

	for (size_t at = 0; at < all; at += MADE_K) {
		size_t k = size_min(MADE_K, all - at);
		struct cpu_gemm_source from =
			make_source(s, p->i, p->n, p->k0 * unit + at, k);
		s->kernels->pack_lines(&from, p->n, k,
				       lines_of(s, p) + at / unit * p->n);
	}
}

/* Are they there from the first block of columns? */
static bool lines_kept(const struct share *s)
{
	return s->keep && s->packed0 > s->column0;
}

/* The rows where a tile reads them. */
static void rows_at(const struct share *s, const struct panel *p,
		    struct cpu_gemm_block *b)
{
	b->p = lines_of(s, p);
	b->k = p->k;
	if (lines_kept(s))
		return;
	if (s->rows.type >= CPU_GEMM_MADE) {
		rows_made(s, p);
	} else {
		struct cpu_gemm_source from =
			source_at(s, &s->rows, p->i, p->k0);
		s->kernels->pack_lines(&from, p->n, values_of(s, p->k0, p->k),
				       lines_of(s, p));
	}
}

/* `rows` rows of what is to be packed, from a row and a unit of k's on. */
static void ahead_of(const struct share *s, struct cpu_gemm_block *b,
		     const struct cpu_gemm_source *from, size_t row, size_t k0,
		     size_t rows)
{
	size_t size = size_of(from->type);

	b->ahead_rows = (unsigned)rows;
	b->ahead = source_at(s, from, row, k0).data;
	b->ahead_ld_bytes = from->ld * size;
	b->ahead_shift = (unsigned)__builtin_ctzl(size * s->kernels->unit);
}

/* Rows that a tile fetches ahead, where the tiles of a panel are enough. */
#define AHEAD_ROWS 3

/*
 * What the tile at column j fetches ahead: the rows that come next, then
 * columns of the block that is packed next.
 */
static void ahead_at(struct share *s, const struct panel *next, size_t j,
		     struct cpu_gemm_block *b)
{
	const size_t width = width_of(s);
	const size_t tiles = (s->packed1 - s->packed0 + width - 1) / width;
	const size_t some = size_max(AHEAD_ROWS, (next->n + tiles - 1) / tiles);
	const size_t row = (j - s->packed0) / width * some;

	b->ahead = (const char *)b->p;
	b->ahead_rows = 0;
	b->ahead_shift = 2;
	if (row < next->n) {
		if (lines_kept(s)) {
			b->ahead_rows = (unsigned)some;
			b->ahead_ld_bytes = next->k * sizeof(float);
			b->ahead = (const char *)lines_of(s, next) +
				   row * b->ahead_ld_bytes;
		} else if (s->rows.type < CPU_GEMM_MADE)
			ahead_of(s, b, &s->rows, next->i + row, next->k0, some);
	} else if (s->ahead0 < s->ahead1) {
		ahead_of(s, b, &s->columns, s->ahead0, s->ahead_k0, some);
		s->ahead0 += some;
	}
}

/* One tile: the rows of p times columns [j, j + m), m at most its width. */
static void run_tile(const struct share *s, const struct panel *p,
		     struct cpu_gemm_block *b, size_t j, size_t m)
{
	const struct cpu_gemm *g = s->g;
	size_t lanes = s->kernels->lanes, width = round_up(m, lanes);
	bool straight = !s->swapped && width == m;

	b->q = s->pack + (j - s->packed0) * s->depth + (p->k0 - s->k0) * width;
	b->alpha = straight ? g->alpha : 1;
	b->beta = straight ? p->beta : p->k0 > s->k0;
	b->c = straight ? g->c + p->i * g->ldc + j : s->tile + (j - s->packed0);
	b->ldc = straight ? g->ldc : s->tile_ld;
	s->kernels->tile[width / lanes - 1][p->n - 1](b);
}

/* Sums that were not made in C go there: all, or those of the last tile. */
static void merge_sums(const struct share *s, const struct panel *p)
{
	const struct cpu_gemm *g = s->g;
	size_t columns = s->packed1 - s->packed0;
	size_t last = (columns - 1) / width_of(s) * width_of(s);
	float beta = s->k0 ? 1 : g->beta;

	if (s->swapped)
		s->kernels->turn(s->tile, s->tile_ld, p->n, columns, g->alpha,
				 beta, g->c + s->packed0 * g->ldc + p->i,
				 g->ldc);
	else if (columns % s->kernels->lanes)
		s->kernels->merge(s->tile + last, s->tile_ld, p->n,
				  columns - last, g->alpha, beta,
				  g->c + p->i * g->ldc + s->packed0 + last,
				  g->ldc);
}

/* The t-th panel; the k's of its rows come one after the other. */
static struct panel panel_at(const struct share *s, size_t t)
{
	size_t rows = s->row1 - s->row0, kc = s->how.kc;
	size_t panels = (rows + s->how.rows - 1) / s->how.rows;
	size_t steps = (s->depth + kc - 1) / kc, p = t / steps;
	struct panel out = { .k0 = s->k0 + t % steps * kc };

	if (p >= panels)
		return out;
	out.i = s->row0 + rows * p / panels;
	out.n = s->row0 + rows * (p + 1) / panels - out.i;
	out.k = size_min(kc, s->k0 + s->depth - out.k0);
	out.beta = out.k0 ? 1 : s->g->beta;
	return out;
}

/* All rows against the packed columns, in panels as even as they come. */
static void multiply_panels(struct share *s)
{
	size_t width = width_of(s);
	struct panel p = panel_at(s, 0), next;
	struct cpu_gemm_block b;

	for (size_t t = 1; p.n; t++, p = next) {
		next = panel_at(s, t);
		rows_at(s, &p, &b);
		for (size_t j = s->packed0; j < s->packed1; j += width) {
			ahead_at(s, &next, j, &b);
			run_tile(s, &p, &b, j, size_min(width, s->packed1 - j));
		}
		if (p.k0 + p.k == s->k0 + s->depth)
			merge_sums(s, &p);
	}
}

/* `n` in as few parts of at most `most` as it takes; multiples of `unit`. */
static size_t even_part(size_t n, size_t most, size_t unit)
{
	size_t parts = (n + most - 1) / most;

	return round_up((n + parts - 1) / parts, unit);
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
	cpu_gemm_split(s->swapped ? g->n : g->m, 1, s->cut, s->cuts, &s->row0,
		       &s->row1);
}

/* Says what comes after columns j .. of this depth. */
static void ahead_init(struct share *s, size_t j, size_t nc, size_t deep)
{
	bool again = j + nc >= s->column1;

	s->ahead0 = again ? s->column0 : j + nc;
	s->ahead_k0 = again ? s->k0 + deep : s->k0;
	s->ahead1 = size_min(s->ahead0 + nc, s->column1);
	if (!s->columns_turn || s->columns.type >= CPU_GEMM_MADE ||
	    s->ahead_k0 >= s->k)
		s->ahead1 = 0;
}

static void run_tiles(struct share *s, struct cpu_gemm_scratch *scratch)
{
	size_t columns = s->column1 - s->column0, width = width_of(s);

	if (!columns)
		return;
	size_t nc = even_part(columns, round_up(s->how.nc, width), width);
	/* As many steps as kc asks for, but even ones. */
	s->how.kc = (uint16_t)even_part(s->k, s->how.kc, s->step);
	size_t deep = s->how.depth / s->how.kc * s->how.kc;
	s->keep = columns > nc && s->n_list == 1;
	if (s->keep)
		rows_of(s, 0);
	lay_out(s, scratch);
	for (s->k0 = 0; s->k0 < s->k; s->k0 += deep) {
		s->depth = size_min(deep, s->k - s->k0);
		for (size_t j = s->column0; j < s->column1; j += nc) {
			s->packed0 = j;
			s->packed1 = size_min(j + nc, s->column1);
			pack_panels(s);
			ahead_init(s, j, nc, deep);
			for (size_t i = 0; i < s->n_list; i++) {
				rows_of(s, i);
				multiply_panels(s);
			}
		}
	}
}

/* ---- shares ---- */

unsigned cpu_gemm_cuts(const struct cpu_gemm_shares *s, unsigned parts)
{
	const size_t panels = (s->columns + s->width - 1) / s->width;
	size_t best = SIZE_MAX;
	unsigned cuts = 1;

	for (unsigned n = 1; n <= parts; n++) {
		if (parts % n)
			continue;
		size_t r = (s->rows + n - 1) / n;
		size_t c = (panels + parts / n - 1) / (parts / n) * s->width;
		/* The last ones are computed in as few vectors as they take. */
		c = size_min(c, round_up(s->columns, s->lanes));
		size_t times = (c + s->most - 1) / s->most;
		size_t cost = r * c + c * s->column_cost +
			      r * s->row_cost * times;
		if (cost < best) {
			best = cost;
			cuts = n;
		}
	}
	return cuts;
}

/* In products of a value: to pack one of B, and to copy one of A. */
#define PACK 10
#define COPY 3

static void share_init(struct share *s, const struct cpu_gemm *g, size_t n,
		       const struct cpu_gemm_config *how, unsigned part,
		       unsigned parts)
{
	bool swapped = how->path == CPU_GEMM_SWAPPED;
	size_t rows = 0, columns = swapped ? g->m : g->n;

	*s = (struct share){ .list = g,
			     .n_list = n,
			     .g = g,
			     .kernels = cpu_gemm_kernels(how->level),
			     .how = *how,
			     .swapped = swapped,
			     .columns = { g->b_type, g->b, g->ldb },
			     .columns_turn = swapped || g->b_by_n };
	if (swapped)
		s->columns =
			(struct cpu_gemm_source){ CPU_GEMM_F32, g->a, g->lda };
	s->k = (g->k + s->kernels->unit - 1) / s->kernels->unit;
	s->step = 16;
	for (size_t i = 0; i < n; i++) {
		rows += swapped ? g[i].n : g->m;
		if (g[i].b_type >= CPU_GEMM_MADE)
			s->step = CPU_GEMM_MADE_STEP;
	}
	const struct cpu_gemm_shares shares = { .rows = rows,
						.columns = columns,
						.width = width_of(s),
						.lanes = s->kernels->lanes,
						.most = s->how.nc,
						.column_cost = PACK,
						.row_cost = COPY };
	s->cuts = cpu_gemm_cuts(&shares, parts);
	s->cut = part % s->cuts;
	cpu_gemm_split(columns, width_of(s), part / s->cuts, parts / s->cuts,
		       &s->column0, &s->column1);
}

/* C = beta * C, rows of this part. */
static void scale_rows(const struct cpu_gemm *g, unsigned part, unsigned parts)
{
	size_t from, to;

	cpu_gemm_split(g->m, 1, part, parts, &from, &to);
	for (size_t i = from; i < to; i++)
		for (size_t j = 0; j < g->n; j++) {
			float *c = g->c + i * g->ldc + j;
			*c = g->beta == 0 ? 0 : g->beta * *c;
		}
}

/* What all products of a list are done with. */
static void choose_config(const struct cpu_gemm *g, size_t n,
			  struct cpu_gemm_config *how)
{
	struct cpu_gemm all = *g;
	const char *why;

	for (size_t i = 1; i < n; i++)
		all.n += g[i].n;
	if (g->config)
		*how = *g->config;
	else
		cpu_gemm_default(&all, how);
	for (size_t i = 0; i < n; i++)
		if (!cpu_gemm_legal(&g[i], how, &why))
			BUG("%zu x %zu x %zu on the host: %s", g[i].m, g[i].n,
			    g[i].k, why);
}

/* The share of products of a list for which the columns are the same. */
static void share_do(const struct cpu_gemm *g, size_t n,
		     const struct cpu_gemm_config *how,
		     struct cpu_gemm_scratch *s, unsigned part, unsigned parts)
{
	struct share share;
	size_t from, to;

	if (how->level == CPU_AMX_LEVEL) {
		cpu_amx_part(g, n, how, s, part, parts);
		return;
	}
	if (how->path == CPU_GEMM_DOT) {
		const struct cpu_gemm_kernels *k = cpu_gemm_kernels(how->level);
		cpu_gemm_split(g->n, g->b_by_n ? 4 : 16, part, parts, &from,
			       &to);
		(g->b_by_n ? k->dot : k->sweep)(g, from, to, how->ahead_bytes);
		return;
	}
	share_init(&share, g, n, how, part, parts);
	run_tiles(&share, s);
}

void cpu_gemm_list_part(const struct cpu_gemm *g, size_t n,
			struct cpu_gemm_scratch *s, unsigned part,
			unsigned parts)
{
	struct cpu_gemm_config how;

	if (g->k == 0 || g->alpha == 0) {
		for (size_t i = 0; i < n; i++)
			scale_rows(&g[i], part, parts);
		return;
	}
	choose_config(g, n, &how);
	if (cpu_gemm_is_bytes(how.level))
		cpu_bytes_part(g, n, &how, s, part, parts);
	else if (how.path == CPU_GEMM_SWAPPED)
		share_do(g, n, &how, s, part, parts);
	else
		for (size_t i = 0; i < n; i++)
			share_do(&g[i], 1, &how, s, part, parts);
}

void cpu_gemm_part(const struct cpu_gemm *g, struct cpu_gemm_scratch *s,
		   unsigned part, unsigned parts)
{
	cpu_gemm_list_part(g, 1, s, part, parts);
}

struct all {
	const struct cpu_gemm *g;
	struct cpu_gemm_scratch *scratch;
};

static void one_thread(void *ctx, struct threads *t, unsigned thread)
{
	struct all *a = ctx;

	cpu_gemm_part(a->g, &a->scratch[thread], thread, threads_count(t));
}

void cpu_gemm(const struct cpu_gemm *g, struct cpu_gemm_scratch *s,
	      struct threads *t)
{
	if (t)
		threads_run(t, one_thread, &(struct all){ g, s });
	else
		cpu_gemm_part(g, s, 0, 1);
}
