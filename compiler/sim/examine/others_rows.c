/*
 * compiler/sim/examine/others_rows.c - published rows: read, choose, predict.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/examine/examine.h"

/* ---- the columns that matter ---- */

static const char *const columns[] = {
	"source_doc", "system", "M", "N", "K", "tile_m", "tile_n", "tile_k",
	"split_k", "wg_mode", "other", "tflops", "source", "gpu", "kernel",
	"config", "metric", "value", "unit",
};
enum { C_DOC, C_SYSTEM, C_M, C_N, C_K, C_TM, C_TN, C_TK, C_SPLIT, C_MODE,
       C_OTHER, C_TFLOPS, C_SOURCE, C_GPU, C_KERNEL, C_CONFIG, C_METRIC,
       C_VALUE, C_UNIT, C_COUNT };
_Static_assert(ARRAY_SIZE(columns) == C_COUNT, "a name per column");

struct reader {
	struct csv csv;
	int column[C_COUNT]; /* -1: the file has none */
};

static const char *cell_text(const struct reader *r, int column)
{
	return csv_cell(&r->csv, r->column[column]);
}

static void find_columns(struct reader *r)
{
	for (int k = 0; k < C_COUNT; k++)
		r->column[k] = csv_column(&r->csv, columns[k]);
}

static int cell_number(const struct reader *r, int column)
{
	return (int)strtol(cell_text(r, column), NULL, 10);
}

static bool take_shape(const struct reader *r, struct others_row *row)
{
	row->m = cell_number(r, C_M);
	row->n = cell_number(r, C_N);
	row->k = cell_number(r, C_K);
	return row->m > 0 && row->n > 0 && row->k > 0 && row->m <= 1 << 17 &&
	       row->n <= 1 << 17 && row->k <= 1 << 17;
}

static void set_time(struct others_row *row, double tflops)
{
	row->time_s = 2.0 * row->m * row->n * row->k / (tflops * 1e12);
}

static int vgprs_of(const char *text)
{
	const char *at = strstr(text, "VGPR=");

	return at ? (int)strtol(at + 5, NULL, 10) : 0;
}

static void make_key(const struct reader *r, struct others_row *row)
{
	size_t n = 0;

	for (int k = C_DOC; k <= C_MODE && n < sizeof(row->key); k++)
		n += (size_t)snprintf(row->key + n, sizeof(row->key) - n,
				      "%s%s", k ? "|" : "", cell_text(r, k));
	snprintf(row->source, sizeof(row->source), "%s", cell_text(r, C_DOC));
}

/* Rows with a column per part of the tile. */
static bool take_tile_row(const struct reader *r, struct others_row *row)
{
	const char *other = cell_text(r, C_OTHER);
	double tflops = strtod(cell_text(r, C_TFLOPS), NULL);
	bool good = strstr(other, "reliability=good");
	bool medium = strstr(other, "reliability=medium");
	bool low = strstr(other, "reliability=low-medium") &&
		   *cell_text(r, C_MODE);

	if (!take_shape(r, row) || !(tflops > 0) || !cell_number(r, C_TM) ||
	    (!good && !medium && !low))
		return false;
	snprintf(row->system, sizeof(row->system), "%s",
		 cell_text(r, C_SYSTEM));
	row->tile = (struct others_tile){
		.family = strcmp(row->system, "Triton") ? OTHERS_T0 :
							  OTHERS_TRITON,
		.m = cell_number(r, C_TM), .n = cell_number(r, C_TN),
		.k = cell_number(r, C_TK), .vgprs = vgprs_of(other),
		.cu_mode = !strcmp(cell_text(r, C_MODE), "cu"),
	};
	row->split_k = cell_number(r, C_SPLIT) > 1 ? cell_number(r, C_SPLIT) :
						     1;
	row->class = row->split_k > 1			   ? OTHERS_SPLIT :
		     good || (medium && row->tile.k == 16) ? OTHERS_GEMM :
							     OTHERS_TILES;
	row->low = low;
	set_time(row, tflops);
	make_key(r, row);
	return true;
}

/* Rows with a text: "Triton 128x128x32". */
static bool take_text_row(const struct reader *r, struct others_row *row)
{
	const char *text = cell_text(r, C_KERNEL);
	double value = strtod(cell_text(r, C_VALUE), NULL);

	if (strncmp(text, "Triton ", 7) ||
	    sscanf(text + 7, "%dx%dx%d", &row->tile.m, &row->tile.n,
		   &row->tile.k) != 3 ||
	    !strstr(cell_text(r, C_GPU), "7900 XTX") ||
	    strcmp(cell_text(r, C_UNIT), "TFLOPS") || !(value > 0) ||
	    !take_shape(r, row))
		return false;
	snprintf(row->system, sizeof(row->system), "Triton");
	row->split_k = 1;
	set_time(row, value);
	snprintf(row->source, sizeof(row->source), "%s",
		 strstr(cell_text(r, C_SOURCE), "triton_rocblas_results.csv") ?
			 "benchmarks/triton_rocblas_results.csv (2026-03-31)" :
			 cell_text(r, C_SOURCE));
	snprintf(row->key, sizeof(row->key), "%s|Triton|%d|%d|%d|%d|%d|%d||",
		 row->source, row->m, row->n, row->k, row->tile.m, row->tile.n,
		 row->tile.k);
	return true;
}

/* ---- choosing and predicting ---- */

struct list {
	struct others_row *v;
	int n, cap;
};

static bool same_tile(const struct others_row *a, const struct others_row *b)
{
	return a->tile.m == b->tile.m && a->tile.n == b->tile.n &&
	       a->tile.k == b->tile.k && a->split_k == b->split_k &&
	       a->tile.vgprs == b->tile.vgprs && a->m == b->m && a->n == b->n &&
	       a->k == b->k && !strcmp(a->source, b->source) &&
	       !strcmp(a->system, b->system);
}

/* The row of the other mode behind a WGP row, of the same author. */
static const struct others_row *find_partner(const struct list *l, int i)
{
	if (l->v[i].tile.cu_mode)
		return NULL;
	for (int k = 0; k < l->n; k++)
		if (l->v[k].class != OTHERS_PAIRS && l->v[k].tile.cu_mode &&
		    same_tile(&l->v[k], &l->v[i]))
			return &l->v[k];
	return NULL;
}

/* Rows of both modes become one more each: their ratio. */
static void add_pairs(struct list *l)
{
	for (int i = 0, n = l->n; i < n; i++) {
		const struct others_row *cu = find_partner(l, i);

		if (!cu || l->v[i].class == OTHERS_SPLIT)
			continue;
		struct others_row row = l->v[i];

		row.class = OTHERS_PAIRS;
		row.low = false;
		row.time_s /= cu->time_s;
		vec_push(l, row);
	}
}

/* Pairs alone make use of low ones. */
static void drop_low(struct list *l)
{
	int kept = 0;

	for (int i = 0; i < l->n; i++)
		if (!l->v[i].low)
			l->v[kept++] = l->v[i];
	l->n = kept;
}

static bool same_code(const struct others_row *a, const struct others_row *b)
{
	return !memcmp(&a->tile, &b->tile, sizeof(a->tile)) && a->m == b->m &&
	       a->n == b->n && a->k == b->k && a->split_k == b->split_k;
}

/*
 * As the authors timed.  Triton's are launches in a row from Python; a card
 * that is idle for more than half of that does not raise its clock.  T0's
 * tables say that packets were queued, yet every small product of theirs, by
 * whichever generator, takes what T0 gives for one packet and the wait for it.
 */
double others_row_time(const struct others_row *row,
		       const struct cost_model *m)
{
	double cycles = row->guess.cycles, idle_s = others_idle(&row->tile, m);
	double gpu_s = cycles / (cost_clock(m, cycles, idle_s) * 1e6);

	if (row->class == OTHERS_PAIRS)
		return row->predicted_s;
	if (row->tile.family == OTHERS_TRITON && gpu_s < idle_s)
		gpu_s = cycles / (cost_value(m, COST_CLOCK_TINY) * 1e6);
	return gpu_s + idle_s;
}

/* Predict row i, or take over what an equal one before it got. */
static bool predict_row(struct list *l, int i, const struct cost_model *m,
			struct err *e)
{
	struct others_row *row = &l->v[i];
	struct others_shape s = { row->m, row->n, row->k, row->split_k };

	for (int k = 0; k < i; k++)
		if (l->v[k].class != OTHERS_PAIRS && same_code(&l->v[k], row)) {
			row->guess = l->v[k].guess;
			row->predicted_s = l->v[k].predicted_s;
			return true;
		}
	if (!others_predict(&row->tile, &s, m, &row->guess, e))
		return false;
	row->predicted_s = others_row_time(row, m);
	return true;
}

static void read_rows(struct reader *r, struct list *l, int *skipped)
{
	bool tiles = r->column[C_TM] >= 0;

	while (csv_next(&r->csv)) {
		struct others_row row = { 0 };

		if (tiles ? take_tile_row(r, &row) : take_text_row(r, &row))
			vec_push(l, row);
		else
			++*skipped;
	}
}

/* Both modes of a pair; what a row of the same code got is not looked for. */
static bool predict_pair(struct others_row *row, const struct cost_model *m,
			 struct err *e)
{
	struct others_shape s = { row->m, row->n, row->k, row->split_k };
	struct others_tile cu = row->tile;
	struct others_guess other;

	cu.cu_mode = true;
	if (!others_predict(&row->tile, &s, m, &row->guess, e) ||
	    !others_predict(&cu, &s, m, &other, e))
		return false;
	row->predicted_s = row->guess.gpu_s / other.gpu_s;
	return true;
}

static bool predict_all(struct list *l, const struct cost_model *m, bool quiet,
			const _Atomic int *stop, int *skipped, struct err *e)
{
	int kept = 0;

	for (int i = 0; i < l->n; i++) {
		struct err why = { 0 };

		if (stop && *stop)
			return err_set(e, ERR_STOPPED, "%d of %d rows were "
				       "predicted, nothing is stored", i, l->n);
		l->v[kept] = l->v[i];
		if (l->v[kept].class == OTHERS_PAIRS ?
			    predict_pair(&l->v[kept], m, &why) :
			    predict_row(l, kept, m, &why)) {
			kept++;
			continue;
		}
		if (why.code != ERR_UNSUPPORTED) {
			*e = why;
			return false;
		}
		if (!quiet)
			fold_printf(stderr, 2, "t0-sim: %s: left out: %s\n",
				    l->v[i].key, why.msg);
		++*skipped;
	}
	l->n = kept;
	return true;
}

static bool predict_file(struct buf *b, const char *path,
			 const struct cost_model *m, bool quiet,
			 const _Atomic int *stop, struct list *l, int *skipped,
			 struct err *e)
{
	struct reader r = { .csv = { .at = b->data } };

	if (!b->len || !csv_next(&r.csv))
		return err_set(e, ERR_INPUT, "%s: is empty; wanted a header "
			       "and rows", path);
	find_columns(&r);
	if (r.column[C_M] < 0 || (r.column[C_TM] < 0 && r.column[C_KERNEL] < 0))
		return err_set(
			e, ERR_INPUT,
			"%s: wanted columns M, N, K and "
			"tile_m or kernel (compiler/sim/examine/examine.h)",
			path);
	read_rows(&r, l, skipped);
	int all = l->n;
	add_pairs(l);
	drop_low(l);
	*skipped += all - l->n;
	return predict_all(l, m, quiet, stop, skipped, e);
}

bool others_rows_run(const char *path, const struct cost_model *m, bool quiet,
		     const _Atomic int *stop,
		     void (*fn)(void *ctx, const struct others_row *row),
		     void *ctx, struct err *e)
{
	struct buf b = { 0 };
	struct list l = { 0 };
	int skipped = 0;
	bool ok = file_read(path, 64 << 20, &b, e) &&
		  predict_file(&b, path, m, quiet, stop, &l, &skipped, e);

	if (ok && skipped && !quiet)
		fold_printf(
			stderr, 2,
			"t0-sim: %s: %d rows used, %d left out (no "
			"tile, not said to be reliable, or nothing to compare "
			"with)\n",
			path, l.n, skipped);
	for (int i = 0; ok && i < l.n; i++)
		fn(ctx, &l.v[i]);
	free(l.v);
	buf_fini(&b);
	return ok;
}
