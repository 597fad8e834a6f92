/*
 * norm-ref - gradients of RMSNorm in double precision, for tests of kernels.
 */
#ifndef T0_TESTS_NORM_REF_H
#define T0_TESTS_NORM_REF_H

#include "tests/kernels/kernel-run.h"

/* Gradients by their formulas, with the size of what is added up in them. */
static inline void norm_back_want(const struct arr *x, const struct arr *w,
			   const struct arr *g, size_t rows, size_t n,
			   double *dx, double *dx_tol, double *dw,
			   double *dw_tol)
{
	for (size_t r = 0; r < rows; r++) {
		double sum = 0, dot = 0, size = 0;

		for (size_t i = 0; i < n; i++) {
			double xi = arr_get(x, r * n + i);
			double p = xi * arr_get(w, i) * arr_get(g, r * n + i);
			sum += xi * xi;
			dot += p;
			size += fabs(p);
		}
		double s = 1 / sqrt(sum / (double)n + (double)1e-6f);
		double rel = 0x1p-23 * (6 + sqrt(n));
		for (size_t i = 0; i < n; i++) {
			size_t at = r * n + i;
			double a = s * arr_get(w, i) * arr_get(g, at);
			double b = s * s * s * arr_get(x, at) / (double)n;
			double c = arr_get(g, at) * arr_get(x, at) * s;
			dx[at] = a - b * dot;
			dx_tol[at] = rel * (fabs(a) + fabs(b) * size) +
				     step_of(SSA_F32);
			dw[i] += c;
			dw_tol[i] += rel * fabs(c);
		}
	}
	for (size_t i = 0; i < n; i++)
		dw_tol[i] *= 1 + sqrt(rows) / 4;
}

#endif
