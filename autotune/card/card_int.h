/*
 * card_int - what the files of autotune/card share.
 */
#ifndef T0_AUTOTUNE_CARD_INT_H
#define T0_AUTOTUNE_CARD_INT_H

#include <pthread.h>

#include "autotune/card/card.h"

/* -------------------------------------------------------- products.c ---- */

/*
 * Seconds of each product under each of the costs, [n_models][n_codes].  Of
 * *how the threads, `stop` and `quiet` count.
 */
bool card_simulate_all(const struct card_code *code, size_t n_codes,
		       const struct cost_model *m, size_t n_models,
		       const struct card_fit_how *how, double *seconds,
		       struct err *e);

/* ------------------------------------------------------------ rest.c ---- */

/* The kit's products, compiled. */
struct card_products {
	struct card_code *v; /* [n] */
	size_t n;
};
bool card_products_init(struct card_products *p, int most,
			const struct card_fit_how *how, struct err *e);
void card_products_fini(struct card_products *p);

/*
 * What the products say about card_rest(), from costs that are right in all
 * else: fills those rows of *f, its products and residual.
 */
bool card_fit_rest(struct card_fit *f, const struct card_data *d,
		   const struct card_products *p,
		   const struct card_fit_how *how, struct err *e);

/*
 * The logarithms of the times of all products with each of card_rest() at the
 * ends of its range, less those without: up[rest][n], down[rest][n].
 */
bool card_effects(const struct cost_model *m, const struct card_products *p,
		  const struct card_fit_how *how, double *up, double *down,
		  double *base, struct err *e);

#endif
