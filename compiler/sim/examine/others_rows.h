/*
 * foreign_rows - published figures of matrix products whose kernels can be
 * rebuilt, and what the simulator says about them.
 *
 * Read are CSV files with a header, columns by name in any order:
 *   source_doc, system, M, N, K, tile_m, tile_n, tile_k, split_k, wg_mode,
 *   other, tflops		a row per tile; `other` has "reliability=..."
 *   source, gpu, kernel, M, N, K, config, metric, value, unit, notes
 *
 * Rows are used by class:
 *   gemm	 random operands and a known tile ("reliability=good"), as
 *		 times; and tiles of 16 in K of "medium" ones in groups of two
 *		 configurations and more of one size by one author, as ratios:
 *		 the group's times are scaled so that its training rows fit in
 *		 the mean, for neither clock nor operands are known
 *   pairs	 one configuration by one author in CU and in WGP mode, whatever
 *		 its reliability: the ratio of the two times
 *   split	 split-K rows that are "medium" or better, as times without the
 *		 reduction, which their authors left out
 *   tiles	 the other "medium" rows with a tile, as times: constant or zero
 *		 operands, so the card's clock was higher than assumed
 * Of the second kind: the product's time, where kernel or config names a tile
 * MxNxK of Triton on this card, as gemm.
 */
#ifndef T0_SIM_FOREIGN_ROWS_H
#define T0_SIM_FOREIGN_ROWS_H

#include "compiler/sim/examine/others.h"

enum foreign_class {
	FOREIGN_GEMM,
	FOREIGN_PAIRS,
	FOREIGN_SPLIT,
	FOREIGN_TILES,
	FOREIGN_CLASSES
};

struct foreign_row {
	char system[48], key[512], group[256];
	int m, n, k, split_k;
	struct foreign_tile tile;
	enum foreign_class class;
	bool low;	    /* of use in pairs only */
	bool judges, ratio; /* only ratios within `group` mean something */
	double time_s, predicted_s; /* pairs: of WGP mode over CU mode */
	struct foreign_guess guess;
};

/* ---------------------------------------------------- foreign_rows.c ---- */

/*
 * Calls fn for every row of the file that can be predicted.  Rows that cannot
 * are counted on stderr, unless `quiet`.
 */
bool foreign_rows_run(const char *path, const struct cost_model *m, bool quiet,
		   void (*fn)(void *ctx, const struct foreign_row *row),
		    void *ctx,
		   struct err *e);

/* ------------------------------------------------------------ loops.c ---- */

/* A published rate of a plain loop: compiler/sim/examine/loops.def. */
struct loop_row {
	const char *name;
	double reference, predicted; /* operations a second */
};
/* Those of a file of the second kind; of others there are none. */
bool loop_rows_run(const char *path, const struct cost_model *m,
		   void (*fn)(void *ctx, const struct loop_row *row), void *ctx,
		   struct err *e);

#endif
