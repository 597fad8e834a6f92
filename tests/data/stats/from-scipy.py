# Makes from-scipy.tsv: python3 from-scipy.py >from-scipy.tsv
# Columns: what, first sample, second sample ("-" = none), what scipy says.
import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(2)


def num(x):
    return " ".join("%.17g" % v for v in np.atleast_1d(x))


def line(what, a, b, out):
    print(what, num(a), "-" if b is None else num(b), num(out), sep="\t")


def u_of(a, b, axis=-1):
    ranks = stats.rankdata(np.concatenate((a, b), axis=axis), axis=axis)
    n = a.shape[axis]
    return ranks[..., :n].sum(axis=-1) - n * (n + 1) / 2


print("# from-scipy.py, scipy %s, numpy %s, default_rng(2)"
      % (scipy.__version__, np.__version__))

# Every way to deal the samples out anew: the exact distribution with ties.
for m, n, levels in ((4, 4, 3), (5, 4, 2), (6, 6, 4), (6, 7, 3), (8, 6, 5),
                     (8, 8, 6), (9, 7, 2), (10, 6, 9), (3, 12, 4), (9, 9, 30)):
    a = np.floor(rng.normal(levels, levels / 3, m))
    b = np.floor(rng.normal(levels * 1.2, levels / 3, n))
    r = stats.permutation_test((a, b), u_of, permutation_type="independent",
                               n_resamples=np.inf, vectorized=True,
                               alternative="two-sided")
    line("mann-whitney", a, b, (u_of(a, b), r.pvalue, 1))
    d = np.subtract.outer(b, a)
    line("shift-value", a, b, np.median(d))
for m, n in ((6, 6), (10, 10), (25, 8), (30, 30)):
    a, b = rng.normal(10, 1, m), rng.normal(10.4, 1, n)
    r = stats.mannwhitneyu(a, b, method="exact")
    line("mann-whitney", a, b, (r.statistic, r.pvalue, 1))
for m, n in ((61, 7), (40, 41), (100, 100)):
    a = np.round(rng.normal(10, 2, m), 1)
    b = np.round(rng.normal(10.4, 2, n), 1)
    r = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=True)
    line("mann-whitney", a, b, (r.statistic, r.pvalue, 0))
for n in (6, 8, 10, 11, 20, 33, 77, 300):
    x = rng.lognormal(0, 1, n)
    ci = stats.quantile_test(x, q=np.median(x), p=0.5).confidence_interval(0.95)
    line("median", x, None, (np.median(x), ci.low, ci.high))
    line("mad", x, None, stats.median_abs_deviation(x))
    line("relative-mad", x, None,
         stats.median_abs_deviation(x) / np.median(x))
    line("geomean", x, None, stats.gmean(x))
    q1, q3 = np.quantile(x, (0.25, 0.75))
    lo, hi = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
    line("outliers", x, None, (lo, hi, np.sum((x < lo) | (x > hi))))
