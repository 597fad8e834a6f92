/*
 * The host's GEMM against sums in double, element by element, for every level
 * of the instruction set, every tile and every path; what it may not touch; and
 * that shares do not change a bit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cpu/gemm.h"
#include "base/float.h"
#include "tests/tap.h"

static uint64_t seed = 1;

static size_t below(size_t n)
{
	return (size_t)(random_next(&seed) % n);
}

/* About normal: the sum of 4 uniform values, variance 1. */
static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (double)(random_next(&seed) >> 11) * 0x1p-53 - .5;
	return sum * 1.7320508;
}

/* A product with all its memory; gaps between rows hold `guard`. */
struct problem {
	struct cpu_gemm g;
	float *a, *c, *before;
	void *b;
	double *wide; /* B as doubles, [n][k] */
	bool rounds;  /* are A and B rounded to bf16 before? */
	size_t c_size;
};

static const float guard = 12345;

static void stored(void *p, enum cpu_gemm_type type, size_t i, double v,
		   double *back)
{
	static const int bits[3][2] = { { 8, 23 }, { 5, 10 }, { 8, 7 } };
	uint64_t u = float_bits(v, bits[type][0], bits[type][1]);

	if (type == CPU_GEMM_F32)
		memcpy((float *)p + i, &(uint32_t){ (uint32_t)u }, 4);
	else
		((uint16_t *)p)[i] = (uint16_t)u;
	*back = float_value(u, bits[type][0], bits[type][1]);
}

static void problem_init(struct problem *p, size_t m, size_t n, size_t k,
			 enum cpu_gemm_type type, bool by_n, float alpha,
			 float beta)
{
	size_t wide = by_n ? k : n, tall = by_n ? n : k;
	struct cpu_gemm *g = &p->g;

	*g = (struct cpu_gemm){ .m = m, .n = n, .k = k,
				.alpha = alpha, .beta = beta,
				.lda = k + below(5), .ldb = wide + below(5),
				.ldc = n + below(5), .b_type = type,
				.b_by_n = by_n };
	/* The last row has no gap behind it: sanitizers watch its end. */
	p->a = xmalloc((m ? (m - 1) * g->lda + k : 0) * 4 + 1);
	p->b = xmalloc((tall ? (tall - 1) * g->ldb + wide : 0) * 4 + 1);
	p->c_size = m ? (m - 1) * g->ldc + n : 0;
	p->rounds = false;
	p->c = xmalloc(p->c_size * 4 + 1);
	p->before = xmalloc(p->c_size * 4 + 1);
	p->wide = xcalloc(n * k + 1, sizeof(*p->wide));
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < k; j++)
			p->a[i * g->lda + j] = (float)normal();
	for (size_t i = 0; i < tall; i++)
		for (size_t j = 0; j < wide; j++)
			stored(p->b, type, i * g->ldb + j, normal(),
			       p->wide + (by_n ? i * k + j : j * k + i));
	for (size_t i = 0; i < p->c_size; i++)
		p->before[i] = i % g->ldc >= n ? guard :
			       beta == 0       ? NAN :
						 (float)normal();
	g->a = p->a;
	g->b = p->b;
	g->c = p->c;
}

static void problem_fini(struct problem *p)
{
	free(p->a);
	free(p->b);
	free(p->c);
	free(p->before);
	free(p->wide);
}

static double operand(const struct problem *p, double v)
{
	return p->rounds ? float_value(float_bits(v, 8, 7), 8, 7) : v;
}

/* One element in double, and the bound of its error. */
static double wanted(const struct problem *p, size_t i, size_t j, double *bound)
{
	const struct cpu_gemm *g = &p->g;
	double sum = 0, size = 0, old = 0;

	for (size_t k = 0; k < g->k; k++) {
		double v = operand(p, p->a[i * g->lda + k]) *
			   operand(p, p->wide[j * g->k + k]);
		sum += v;
		size += v * v;
	}
	if (g->beta != 0)
		old = (double)g->beta * p->before[i * g->ldc + j];
	/* The norm of the products times sqrt(k) eps, and 4 of it. */
	*bound = 0x1p-23 * (4 * fabs(g->alpha) * sqrt((double)g->k) *
			    sqrt(size) + 2 * fabs(old)) + 1e-37;
	return g->alpha * sum + old;
}

/* The largest error in bounds; guards that changed count as infinite. */
static double worst(const struct problem *p)
{
	const struct cpu_gemm *g = &p->g;
	double most = 0, bound;

	for (size_t at = 0; at < p->c_size; at++) {
		size_t i = at / g->ldc, j = at % g->ldc;
		if (j >= g->n) {
			if (p->c[at] != guard)
				return INFINITY;
			continue;
		}
		double error = fabs(p->c[at] - wanted(p, i, j, &bound));
		if (!(error <= most * bound))
			most = error / bound;
		if (isnan(most))
			return INFINITY;
	}
	return most;
}

static void run(struct problem *p, unsigned parts)
{
	struct cpu_gemm_scratch s = { 0 };

	memcpy(p->c, p->before, p->c_size * 4);
	for (unsigned i = parts; i-- > 0;)
		cpu_gemm_part(&p->g, &s, i, parts);
	cpu_gemm_scratch_fini(&s);
}

static const char *const paths[] = { "auto", "dot", "normal", "swapped" };

/* A random product under `c`; says what was wrong. */
static bool good(const struct cpu_gemm_config *c, size_t most)
{
	static const float scales[] = { 1, 0, .5f, -2 };
	bool by_n = c->path != CPU_GEMM_SWAPPED ? below(2) : true;
	struct problem p;
	double w;

	problem_init(&p, below(c->path == CPU_GEMM_DOT ? 33 : most),
		     below(most), below(most), (enum cpu_gemm_type)below(3),
		     by_n, below(3) ? 1 : scales[below(4)], scales[below(4)]);
	p.g.config = c;
	p.rounds = c->level == CPU_LEVEL_BF16;
	p.g.a_as = p.rounds ? CPU_GEMM_BF16 : CPU_GEMM_F32;
	run(&p, 1 + (unsigned)below(5));
	w = worst(&p);
	if (!(w <= 1))
		diag("v%d %s %dx%d kc %d nc %d: %zu x %zu x %zu, %s "
		     "[%s], alpha %g, beta %g: %g bounds", c->level,
		     paths[c->path], c->rows, c->vecs, c->kc, c->nc,
		     p.g.m, p.g.n, p.g.k, cpu_gemm_type_name(p.g.b_type),
		     by_n ? "n][k" : "k][n", p.g.alpha, p.g.beta, w);
	problem_fini(&p);
	return w <= 1;
}

/* Every tile size of a level, by rows and by columns, whole and with edges. */
static void every_tile(unsigned level)
{
	unsigned tiles = 0, right = 0;

	for (unsigned v = 1; v <= CPU_GEMM_VECS_MAX; v++)
		for (unsigned r = 1; r <= cpu_gemm_rows_max(level, CPU_GEMM_F32, v); r++)
			for (int path = 2; path < CPU_GEMM_PATHS; path++) {
				struct cpu_gemm_config c = {
					(enum cpu_gemm_path)path,
					(uint8_t)level, (uint8_t)r, (uint8_t)v,
					(uint16_t)(16 + below(4) * 16),
					(uint16_t)(1 + below(100)), 0, 0
				};
				c.depth = (uint16_t)(c.kc *
						     (1 + below(3)));
				for (int i = 0; i < 4; i++, tiles++)
					right += good(&c, i ? 90 : 20);
			}
	is_u64(right, tiles, "v%u: all tiles are right", level);
}

/* A configuration of the level behind v4. */
static struct cpu_gemm_config amx_config(enum cpu_gemm_path path,
					 unsigned rows, unsigned vecs)
{
	return (struct cpu_gemm_config){ .path = path, .level = 5,
					 .rows = (uint8_t)rows,
					 .vecs = (uint8_t)vecs,
					 .kc = 32, .nc = 60, .depth = 64 };
}

static void every_amx_tile(void)
{
	unsigned tiles = 0, right = 0;

	for (unsigned v = 1; v <= 2; v++)
		for (unsigned r = 16; r <= 32; r += 16)
			for (int path = 2; path < CPU_GEMM_PATHS; path++)
				for (int i = 0; i < 40; i++, tiles++) {
					enum cpu_gemm_path on = path;
					struct cpu_gemm_config c =
						amx_config(on, r, v);
					c.nc = (uint16_t)(1 + below(100));
					c.depth = 32;
					c.depth += (uint16_t)(below(5) * 32);
					right += good(&c, i % 8 ? 150 : 20);
				}
	is_u64(right, tiles, "AMX: all tiles are right");
}

static void every_dot(unsigned level)
{
	struct cpu_gemm_config c = { .path = CPU_GEMM_DOT,
				     .level = (uint8_t)level,
				     .ahead_bytes = 512 };
	unsigned right = 0;

	for (int i = 0; i < 90; i++)
		right += good(&c, i % 9 ? 150 : 2500);
	is_u64(right, 90, "v%u: products with few rows are right", level);
}

/* Shapes of the engine with the configuration that it gets. */
static void defaults(void)
{
	static const size_t shape[][3] = { { 1, 1024, 1024 }, { 5, 96, 3072 },
					   { 16, 77, 1024 }, { 17, 130, 1024 },
					   { 128, 96, 1030 },
					   { 200, 200, 200 }, { 0, 5, 5 },
					   { 5, 0, 5 }, { 5, 5, 0 },
					   { 1, 1, 1 }, { 33, 1, 2000 } };

	for (size_t i = 0; i < ARRAY_SIZE(shape); i++)
		for (int type = 0; type < 6; type++) {
			const size_t *s = shape[i];
			struct problem p;
			problem_init(&p, s[0], s[1], s[2],
				     (enum cpu_gemm_type)(type / 2), type & 1,
				     1, i == 3 ? 1 : 0);
			run(&p, 1);
			double w = worst(&p);
			ok(w <= 1, "%zu x %zu x %zu, %s [%s]: %.2g bounds",
			   s[0], s[1], s[2], cpu_gemm_type_name(type / 2),
			   type & 1 ? "n][k" : "k][n", w);
			problem_fini(&p);
		}
}

static void shares(void)
{
	const struct cpu_gemm_config dot = { .path = CPU_GEMM_DOT,
					     .level = (uint8_t)cpu_level("") };

	for (int i = 0; i < 12; i++) {
		struct problem p;
		problem_init(&p, i < 8 ? 1 + (size_t)i : 150, 333, 600,
			     CPU_GEMM_BF16, i & 1, 1, .5f);
		if (i < 8)
			p.g.config = &dot;
		run(&p, 1);
		float *one = xmalloc(p.c_size * 4);
		memcpy(one, p.c, p.c_size * 4);
		run(&p, 2 + (unsigned)i);
		is_mem(p.c, one, p.c_size * 4, "%zu rows, [%s]: %d shares, "
		       "the same bits", p.g.m, i & 1 ? "n][k" : "k][n", 2 + i);
		free(one);
		problem_fini(&p);
	}
}

/* Products of one A in one call, of all types, in any number of shares. */
static void lists(size_t m, unsigned parts)
{
	struct problem p[3];
	struct cpu_gemm g[3];
	struct cpu_gemm_scratch s = { 0 };
	double most = 0;

	for (int i = 0; i < 3; i++) {
		problem_init(&p[i], m, 40 + below(200), 500,
			     (enum cpu_gemm_type)i, true, 1, .5f);
		if (i) {
			free(p[i].a);
			p[i].a = p[0].a;
			p[i].g.a = p[0].g.a;
			p[i].g.lda = p[0].g.lda;
		}
		memcpy(p[i].c, p[i].before, p[i].c_size * 4);
		g[i] = p[i].g;
	}
	for (unsigned i = parts; i-- > 0;)
		cpu_gemm_list_part(g, 3, &s, i, parts);
	for (int i = 0; i < 3; i++) {
		most = fmax(most, worst(&p[i]));
		p[i].a = i ? NULL : p[i].a;
	}
	ok(most <= 1, "%zu rows: three products of one A, %u shares: %g bounds",
	   m, parts, most);
	for (int i = 0; i < 3; i++)
		problem_fini(&p[i]);
	cpu_gemm_scratch_fini(&s);
}

/* A B [n][k] that is f32 after all, handed out by a function. */
struct maker {
	const struct cpu_gemm *g;
	size_t bad;
};

static void make(const void *b, size_t row, size_t n, size_t k0, size_t k,
		 float *out, size_t ldo)
{
	struct maker *m = (struct maker *)(uintptr_t)b;
	const float *from = m->g->b;

	m->bad += k0 % CPU_GEMM_MADE_STEP ||
		  (k % CPU_GEMM_MADE_STEP && k0 + k != m->g->k) ||
		  row + n > m->g->n || k0 + k > m->g->k;
	for (size_t i = 0; i < n && !m->bad; i++)
		memcpy(out + i * ldo, from + (row + i) * m->g->ldb + k0, k * 4);
}

static void made(enum cpu_gemm_path path, unsigned level)
{
	struct cpu_gemm_config c = { .path = path, .level = (uint8_t)level,
				     .rows = 4, .vecs = 2, .kc = 64,
				     .depth = 128, .nc = 60 };
	if (level == 5)
		c = amx_config(path, 32, 2);
	struct problem p;

	problem_init(&p, 50, 77, 331, CPU_GEMM_F32, true, 1, .5f);
	p.g.config = &c;
	p.rounds = level == CPU_LEVEL_BF16;
	p.g.a_as = p.rounds ? CPU_GEMM_BF16 : CPU_GEMM_F32;
	struct cpu_gemm g = p.g;
	struct maker m = { &g, 0 };
	p.g.b_type = CPU_GEMM_MADE;
	p.g.make = make;
	p.g.b = &m;
	run(&p, 3);
	is_u64(m.bad, 0, "v%u %s: rows are asked for in whole steps", level,
	       paths[path]);
	ok(worst(&p) <= 1, "v%u %s: a B that is made: %g bounds", level,
	   paths[path], worst(&p));
	problem_fini(&p);
}

/* NaN and infinity of one operand reach their row or column, nothing else. */
static void special(enum cpu_gemm_path path, unsigned level, bool in_b)
{
	struct cpu_gemm_config c;
	size_t wrong = 0;
	struct problem p;

	problem_init(&p, 20, 50, 40, CPU_GEMM_F32, true, 1, 0);
	if (level == 5) {
		c = amx_config(path, 32, 2);
	} else {
		setenv("T0_HOST_SIMD", "v4", 1);
		cpu_gemm_default(&p.g, &c);
		unsetenv("T0_HOST_SIMD");
		c.path = path;
		c.level = (uint8_t)level;
		p.g.a_as = level == CPU_LEVEL_BF16 ? CPU_GEMM_BF16 :
						     CPU_GEMM_F32;
	}
	p.g.config = &c;
	if (in_b)
		((float *)p.b)[33 * p.g.ldb + 39] = NAN;
	else
		p.a[7 * p.g.lda + 39] = INFINITY;
	run(&p, 1);
	for (size_t i = 0; i < 20; i++)
		for (size_t j = 0; j < 50; j++) {
			float v = p.c[i * p.g.ldc + j];
			wrong += in_b ? (j == 33) != !!isnan(v) :
					(i == 7) != !!isinf(v);
		}
	is_u64(wrong, 0, "%s%s: %s stays in its %s", paths[path],
	       level == 5 ? " AMX" : level == 6 ? " BF16" : "",
	       in_b ? "NaN" : "infinity", in_b ? "column" : "row");
	problem_fini(&p);
}

static void scalars(void)
{
	struct problem p;

	problem_init(&p, 9, 9, 9, CPU_GEMM_F32, false, 0, 2);
	p.a[0] = NAN;
	run(&p, 2);
	is_f64(p.c[0], 2 * (double)p.before[0], "alpha = 0 does not read A");
	p.g.alpha = 1;
	p.g.beta = 0;
	p.g.k = 0;
	p.before[3] = NAN;
	run(&p, 2);
	is_f64(p.c[3], 0, "an empty sum with beta = 0 is 0");
	problem_fini(&p);
}

static void threads(void)
{
	struct cpu_gemm_scratch s[3] = { { 0 } };
	struct err e = { 0 };
	struct threads *t = threads_new(3, &e);
	struct problem p;

	problem_init(&p, 100, 100, 100, CPU_GEMM_F32, true, 1, 1);
	memcpy(p.c, p.before, p.c_size * 4);
	cpu_gemm(&p.g, s, t);
	ok(worst(&p) <= 1, "a pool of threads does all shares");
	memcpy(p.c, p.before, p.c_size * 4);
	cpu_gemm(&p.g, s, NULL);
	ok(worst(&p) <= 1, "and so does one without a pool");
	for (int i = 0; i < 3; i++)
		cpu_gemm_scratch_fini(&s[i]);
	threads_free(t);
	problem_fini(&p);
}

static void refused(void)
{
	static const struct cpu_gemm_config config[] = {
		{ CPU_GEMM_SWAPPED, 2, 4, 2, 64, 64, 64, 0 },
		{ CPU_GEMM_NORMAL, 2, 7, 2, 64, 64, 64, 0 },
		{ CPU_GEMM_NORMAL, 2, 4, 2, 63, 64, 63, 0 },
		{ CPU_GEMM_NORMAL, 2, 4, 2, 2048, 64, 2048, 0 },
		{ CPU_GEMM_NORMAL, 2, 4, 2, 64, 0, 64, 0 },
		{ CPU_GEMM_NORMAL, 2, 4, 2, 64, 64, 96, 0 },
		{ CPU_GEMM_NORMAL, 5, 4, 2, 64, 64, 64, 0 },
		{ CPU_GEMM_AUTO, 2, 4, 2, 64, 64, 64, 0 },
		{ CPU_GEMM_DOT, 2, 4, 2, 64, 64, 64, 0 },
		/* Made, from here on. */
		{ CPU_GEMM_DOT, 2, 4, 2, 64, 64, 64, 0 },
		{ CPU_GEMM_NORMAL, 2, 4, 2, 48, 64, 48, 0 },
	};
	struct cpu_gemm g = { .m = 40, .n = 8, .k = 8 };
	const char *why;

	for (size_t i = 0; i < ARRAY_SIZE(config); i++) {
		g.b_by_n = config[i].path == CPU_GEMM_DOT;
		g.b_by_n |= i > 8;
		g.b_type = i > 8 ? CPU_GEMM_MADE : CPU_GEMM_F32;
		bool legal = cpu_gemm_legal(&g, &config[i], &why);
		ok(!legal, "refused: %s (%zu)", why ? why : "nothing", i);
	}
}

static void level_config(struct problem *p, unsigned level,
			 struct cpu_gemm_config *c)
{
	setenv("T0_HOST_SIMD", "v4", 1);
	cpu_gemm_default(&p->g, c);
	unsetenv("T0_HOST_SIMD");
	c->path = CPU_GEMM_NORMAL;
	c->level = (uint8_t)level;
	c->rows = c->vecs = 2;
	p->rounds = level == CPU_LEVEL_BF16;
	p->g.a_as = p->rounds ? CPU_GEMM_BF16 : CPU_GEMM_F32;
	p->g.config = c;
}

/*
 * Operands of all sizes, and sums of which almost nothing is left: the error is
 * within what rounding each product explains.
 */
static void ranges(unsigned level)
{
	struct cpu_gemm_config c;
	struct problem p;

	problem_init(&p, 30, 40, 200, CPU_GEMM_F32, true, 1, 0);
	level_config(&p, level, &c);
	for (size_t i = 0; i < 30; i++)
		for (size_t k = 0; k < 200; k++) {
			float *a = p.a + i * p.g.lda + k;
			*a = k % 2 ? -a[-1] :
				     ldexpf(*a, (int)below(81) - 40);
		}
	for (size_t j = 0; j < 40; j++)
		for (size_t k = 1; k < 200; k += 2) {
			float *b = (float *)p.b + j * p.g.ldb + k;
			*b = b[-1] * (1 + (float)below(2) * 0x1p-20f);
			p.wide[j * 200 + k] = *b;
		}
	run(&p, 2);
	double w = worst(&p);
	ok(w <= 1, "%s: wide ranges and cancellation: %.2g bounds",
	   cpu_gemm_unit(level), w);
	problem_fini(&p);
}

/* Values below 2^-126 count, but for AVX-512 BF16, where they are 0. */
static void denormals(unsigned level)
{
	struct cpu_gemm_config c;
	size_t zeros = 0;
	struct problem p;

	problem_init(&p, 30, 40, 200, CPU_GEMM_F32, true, 1, 0);
	level_config(&p, level, &c);
	for (size_t i = 0; i < 30 * p.g.lda && i < 29 * p.g.lda + 200; i++)
		p.a[i] = ldexpf(p.a[i], -135);
	for (size_t i = 0; i < 40; i++)
		for (size_t k = 0; k < 200; k++) {
			float *b = (float *)p.b + i * p.g.ldb + k;
			*b = ldexpf(*b, 60);
			p.wide[i * 200 + k] = *b;
		}
	run(&p, 2);
	for (size_t i = 0; i < 30; i++)
		for (size_t j = 0; j < 40; j++)
			zeros += p.c[i * p.g.ldc + j] == 0;
	if (level == CPU_LEVEL_BF16)
		is_u64(zeros, 30 * 40, "AVX-512 BF16: denormals are 0");
	else
		ok(worst(&p) <= 1, "%s: denormals count: %.2g bounds",
		   cpu_gemm_unit(level), worst(&p));
	problem_fini(&p);
}

/* Which unit a product is done with, and by what T0_HOST_SIMD lets it. */
static void test_names(void)
{
	static const struct {
		const char *simd;
		unsigned level;
	} test[] = { { "v4+bf16", CPU_LEVEL_BF16 }, { "v4", 4 },
		     { "v4+vnni", 4 }, { "v3+bf16", 3 }, { "v3", 3 } };
	struct cpu_gemm g = { .m = 64, .n = 64, .k = 64, .lda = 64, .ldb = 64,
			      .ldc = 64, .b_type = CPU_GEMM_BF16,
			      .b_by_n = true, .a_as = CPU_GEMM_BF16 };
	struct cpu_gemm_config c;

	for (size_t i = 0; i < ARRAY_SIZE(test); i++) {
		setenv("T0_HOST_SIMD", test[i].simd, 1);
		cpu_gemm_default(&g, &c);
		is_u64(c.level, test[i].level, "T0_HOST_SIMD=%s takes %s",
		       test[i].simd, cpu_gemm_unit(test[i].level));
	}
	unsetenv("T0_HOST_SIMD");
	g.a_as = CPU_GEMM_F32;
	cpu_gemm_default(&g, &c);
	ok(c.level != CPU_LEVEL_BF16, "A that must stay as it is, does");
	c.level = CPU_LEVEL_BF16;
	const char *why;
	bool legal = cpu_gemm_legal(&g, &c, &why);
	ok(!legal, "and may not be rounded: %s", why ? why : "nothing");
}

static void test_bf16(void)
{
	every_tile(CPU_LEVEL_BF16);
	for (int path = CPU_GEMM_NORMAL; path < CPU_GEMM_PATHS; path++) {
		made((enum cpu_gemm_path)path, CPU_LEVEL_BF16);
		special((enum cpu_gemm_path)path, CPU_LEVEL_BF16, false);
		special((enum cpu_gemm_path)path, CPU_LEVEL_BF16, true);
	}
	test_names();
}

int main(void)
{
	const char *s = getenv("T0_SEED");

	seed = s ? strtoull(s, NULL, 0) : 1;
	diag("T0_SEED=%llu", (unsigned long long)seed);
	for (unsigned level = 2; (int)level <= cpu_level(""); level++) {
		every_tile(level);
		every_dot(level);
	}
	for (unsigned level = 2; (int)level <= cpu_level(""); level++) {
		made(CPU_GEMM_NORMAL, level);
		made(CPU_GEMM_SWAPPED, level);
	}
	if (cpu_has_amx()) {
		every_amx_tile();
		for (int path = 2; path < CPU_GEMM_PATHS; path++) {
			made((enum cpu_gemm_path)path, 5);
			special((enum cpu_gemm_path)path, 5, false);
			special((enum cpu_gemm_path)path, 5, true);
		}
	} else {
		skip("no AMX here: none of its tiles was tried");
	}
	for (unsigned level = 2; level <= CPU_LEVEL_BF16; level++)
		if (level != CPU_LEVEL_AMX && cpu_gemm_has(level)) {
			ranges(level);
			denormals(level);
		}
	if (cpu_gemm_has(CPU_LEVEL_BF16))
		test_bf16();
	else
		skip("no AVX-512 BF16 here: none of its tiles was tried");
	defaults();
	shares();
	for (size_t m = 4; m < 300; m *= 3)
		lists(m, 1 + (unsigned)below(5));
	for (int path = CPU_GEMM_DOT; path < CPU_GEMM_PATHS; path++) {
		const unsigned level = (unsigned)cpu_level("");

		special((enum cpu_gemm_path)path, level, false);
		special((enum cpu_gemm_path)path, level, true);
	}
	scalars();
	threads();
	refused();
	return plan_done();
}
