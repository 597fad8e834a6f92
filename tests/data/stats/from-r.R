# Makes from-r.tsv: Rscript --vanilla from-r.R >from-r.tsv
# Columns: what, first sample, second sample ("-" = none), what R says.
# Only R's own stats package computes here; t0's definitions are in stats.h.
num <- function(x) paste(sprintf("%.17g", x), collapse = " ")
row <- function(what, a, b, out)
	cat(what, num(a), if (is.null(b)) "-" else num(b), num(out),
	    sep = "\t", fill = FALSE)
line <- function(...) { row(...); cat("\n") }

cat("# from-r.R, ", R.version.string, ", set.seed(1)\n", sep = "")
set.seed(1)
one <- function(x) {
	n <- length(x)
	k <- qbinom(0.025, n, 0.5)
	s <- sort(x)
	line("median", x, NULL, c(median(x), s[k], s[n + 1 - k]))
	line("mad", x, NULL, mad(x, constant = 1))
	for (q in c(0, 0.01, 0.25, 0.5, 0.9, 0.99, 1))
		line("quantile", x, q, quantile(x, q, type = 7, names = FALSE))
}
for (n in c(6, 7, 8, 9, 10, 15, 16, 25, 50, 101, 250))
	one(rnorm(n, 100, 1))
one(rlnorm(40))
one(round(rnorm(30, 10, 2)))
one(c(-3, -1, -1, 0, 0, 0, 5, 1e6))
for (n in c(1200, 1700, 2000)) {
	x <- round(rnorm(n, 50, 10), 1)
	s <- sort(x)
	k <- qbinom(0.025, n, 0.5)
	line("median", x, NULL, c(median(x), s[k], s[n + 1 - k]))
}

# Without ties: the exact distribution, for the test and the interval.
exact <- function(a, b) {
	t <- wilcox.test(a, b, exact = TRUE)
	line("mann-whitney", a, b, c(t$statistic, t$p.value, 1))
	t <- wilcox.test(b, a, exact = TRUE, conf.int = TRUE)
	line("shift", a, b, c(t$estimate, t$conf.int))
	t <- wilcox.test(log(b), log(a), exact = TRUE, conf.int = TRUE)
	line("ratio", a, b, exp(c(t$estimate, t$conf.int)))
}
for (m in c(4, 5, 6, 10, 13, 20, 30))
	for (n in c(4, 6, 7, 10, 30))
		if (m + n <= 60)
			exact(rnorm(m, 100, 1), rnorm(n, 100.5, 1.5))
exact(rlnorm(11), rlnorm(12))

# Larger, with and without ties: normal approximation, corrected for both.
normal <- function(a, b) {
	t <- wilcox.test(a, b, exact = FALSE, correct = TRUE)
	line("mann-whitney", a, b, c(t$statistic, t$p.value, 0))
	d <- sort(outer(b, a, "-"))
	mn <- length(d)
	k <- floor(mn / 2 - qnorm(0.975) *
		   sqrt(mn * (length(a) + length(b) + 1) / 12))
	line("shift", a, b, c(median(d), d[k], d[mn + 1 - k]))
}
normal(rnorm(31, 5), rnorm(30, 5.2))
normal(rnorm(50, 100), rnorm(50, 100.5))
normal(rnorm(90, 100), rnorm(70, 100.1))
normal(round(rnorm(64, 20, 3)), round(rnorm(55, 21, 3)))
normal(round(rexp(61, 0.2)), round(rexp(62, 0.3)))
