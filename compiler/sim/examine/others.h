/*
 * foreign - matrix products of others, written from how their authors describe
 * them, to predict published figures whose code is not at hand.
 *
 * What is generated is the whole kernel as gfx1100 machine code: loads of a
 * tile into registers and from there into LDS, fragments back from LDS, matrix
 * products, pointers, barriers, and the stores of C, with an affine description
 * of every address (compiler/sim/sim.h).  A and B are bf16, C is f32.
 *
 * Two families:
 *   FOREIGN_TRITON  four waves in a square, A row-major and B with N contig.,
 *		  so that fragments of B are gathered by halves; one LDS buffer,
 *		  the next tile waits in registers; two barriers
 *   FOREIGN_T0	  a wave for 32 rows and the whole width, both operands with K
 *		  contiguous, two LDS buffers, one barrier, fragments of B one
 *		  after the other
 */
#ifndef T0_SIM_FOREIGN_H
#define T0_SIM_FOREIGN_H

#include "compiler/sim/sim.h"

enum foreign_family { FOREIGN_TRITON, FOREIGN_T0 };

struct foreign_tile {
	enum foreign_family family;
	int m, n, k;	/* of a workgroup; multiples of 16 */
	int vgprs;	/* of a wave, 0: what the code uses */
	bool cu_mode;
};

/* A product C[m][n] = sum over k; in `split` parts of k. */
struct foreign_shape {
	int m, n, k, split;
};

struct foreign_code {
	struct buf code, affine;
	int waves, vgprs;
	uint32_t lds_bytes;
	int wmmas; /* of a wave and step */
};

/* What a prediction consists of. */
struct foreign_guess {
	double gpu_s;	  /* on the GPU alone */
	double cycles;
	double clock_mhz;
	int groups, at_once;
	double rounds;
};

/* --------------------------------------------------------- foreign.c ---- */

/*
 * The kernel, whose loop makes `trips` + 1 rounds, for `groups` workgroups of
 * this shape.  false and *e for a tile that cannot be.
 */
bool foreign_generate(struct foreign_code *g, const struct foreign_tile *t,
		   const struct foreign_shape *s, int trips, int groups,
		   struct err *e);
void foreign_fini(struct foreign_code *g);

/* ------------------------------------------------- foreign_predict.c ---- */

/* Simulates what a WGP gets of it, and the tail. */
bool foreign_predict(const struct foreign_tile *t,
		     const struct foreign_shape *s,
		  const struct cost_model *m, struct foreign_guess *out,
		  struct err *e);

#endif
