/*
 * Host products with integers against sums in double: INT8, INT4 and CHANNEL8
 * as stored, B that is made, every unit that multiplies bytes and those that do
 * not.
 *
 * Some operands are whole multiples of each group's scale, so that nothing is
 * rounded but sums in f32; others are normal, and may err by half a step of a
 * 127th of their group's largest value.
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

static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (double)(random_next(&seed) >> 11) * 0x1p-53 - .5;
	return sum * 1.7320508;
}

enum { GROUP = 32 };

struct problem {
	struct cpu_gemm g;
	struct cpu_gemm_ints ints;
	float *a, *c, *before, *made;
	uint8_t *q;
	uint16_t *scale;
	double *wide; /* B [n][k] */
	size_t c_size;
	bool whole; /* are operands multiples of scales? */
};

static void make(const void *b, size_t row, size_t n, size_t k0, size_t k,
		 float *out, size_t ldo)
{
	const struct problem *p = b;

	for (size_t i = 0; i < n; i++)
		memcpy(out + i * ldo, p->made + (row + i) * p->g.k + k0, k * 4);
}

/* So many k's share a scale. */
static size_t group_of(const struct cpu_gemm *g)
{
	return g->b_type == CPU_GEMM_CHANNEL8 ? g->k : GROUP;
}

/* A value of a group whose largest is 127 times its scale, if it is whole. */
static double draw(const struct problem *p, size_t k, double scale)
{
	if (!p->whole)
		return normal() * scale;
	return scale *
	       (k % group_of(&p->g) == 0 ? 127 : (double)below(255) - 127);
}

static void store_scale(uint8_t *at, enum cpu_gemm_type type, uint16_t half)
{
	const float f = (float)float_value(half, 5, 10);

	if (type == CPU_GEMM_CHANNEL8)
		memcpy(at, &f, sizeof(f));
	else
		memcpy(at, &half, sizeof(half));
}

static void fill_b(struct problem *p)
{
	const struct cpu_gemm *g = &p->g;
	bool four = g->b_type == CPU_GEMM_INT4;
	double scale = 1;

	for (size_t i = 0; i < g->n * g->k; i++) {
		size_t row = i / g->k, k = i % g->k, group = k / GROUP;
		uint8_t *at = p->q + row * p->ints.q_row +
			      group * p->ints.q_group;
		int v = four ? (int)below(16) - 8 : (int)below(256) - 128;
		if (k % group_of(g) == 0) {
			uint16_t h = (uint16_t)float_bits(
				ldexp(1 + (double)below(8) / 8,
				      (int)below(8) - 8), 5, 10);
			scale = float_value(h, 5, 10);
			store_scale((uint8_t *)p->scale +
					    row * p->ints.scale_row +
					    group * p->ints.scale_group,
				    g->b_type, h);
		}
		if (g->b_type == CPU_GEMM_MADE) {
			p->made[i] = (float)draw(p, k, scale);
			p->wide[i] = p->made[i];
			continue;
		}
		p->wide[i] = v * scale;
		if (!four)
			at[k % GROUP] = (uint8_t)v;
		else if (k % GROUP < 16)
			at[k % 16] = (uint8_t)(v + 8);
		else
			at[k % 16] |= (uint8_t)((v + 8) << 4);
	}
}

static void problem_init(struct problem *p, size_t m, size_t n, size_t k,
			 enum cpu_gemm_type type, bool whole, float alpha,
			 float beta)
{
	size_t bytes = type == CPU_GEMM_INT4 ? GROUP / 2 : GROUP;
	size_t groups = (k + GROUP - 1) / GROUP;
	/* The scale in front of its integers. */
	bool blocks = below(2) && type != CPU_GEMM_CHANNEL8;

	*p = (struct problem){
		.g = { .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta,
		       .lda = k + below(5), .ldc = n + below(5),
		       .b_type = type, .b_by_n = true,
		       .a_as = CPU_GEMM_INT8, .make = make },
		.whole = whole,
	};
	p->q = xmalloc(n * groups * (bytes + 2) + 1);
	p->scale = blocks ? (uint16_t *)(void *)p->q :
			    xmalloc(n * groups * 4 + 1);
	p->ints = (struct cpu_gemm_ints){ p->q, (uint8_t *)p->scale,
					  groups * bytes, bytes, groups * 2,
					  2 };
	if (blocks)
		p->ints = (struct cpu_gemm_ints){
			p->q + 2, p->q, groups * (bytes + 2), bytes + 2,
			groups * (bytes + 2), bytes + 2
		};
	if (type == CPU_GEMM_CHANNEL8)
		p->ints = (struct cpu_gemm_ints){ p->q, (uint8_t *)p->scale,
						  groups * bytes, bytes, 4, 0 };
	p->made = xcalloc(n * k + 1, sizeof(float));
	p->wide = xcalloc(n * k + 1, sizeof(double));
	p->a = xcalloc(m * p->g.lda + 1, sizeof(float));
	p->c_size = m ? (m - 1) * p->g.ldc + n : 0;
	p->c = xmalloc(p->c_size * 4 + 4);
	p->before = xmalloc(p->c_size * 4 + 4);
	struct problem at = *p;
	if (blocks) { /* fill_b() finds integers behind the first scale */
		at.q = p->q + 2;
	}
	fill_b(&at);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < k; j++)
			p->a[i * p->g.lda + j] = (float)draw(
				p, j,
				ldexp(1, (int)((i + j / group_of(&p->g)) % 9) -
						 4));
	for (size_t i = 0; i < p->c_size; i++)
		p->before[i] = beta == 0 ? NAN : (float)normal();
	p->g.a = p->a;
	p->g.b = type == CPU_GEMM_MADE ? (void *)p : (void *)&p->ints;
	p->g.c = p->c;
}

static void problem_fini(struct problem *p)
{
	if ((uint8_t *)p->scale != p->q)
		free(p->scale);
	free(p->q);
	free(p->a);
	free(p->c);
	free(p->before);
	free(p->made);
	free(p->wide);
}

/* Half a step of the groups of x, over all that a row is multiplied with. */
static double half_steps(const double *x, const double *other, size_t k,
			 size_t group)
{
	double sum = 0;

	for (size_t g = 0; g < k; g += group) {
		double most = 0, size = 0;
		for (size_t i = g; i < k && i < g + group; i++) {
			most = fmax(most, fabs(x[i]));
			size += fabs(other[i]);
		}
		sum += most / 254 * size * 1.001;
	}
	return sum;
}

/* The largest error in bounds. */
static double worst(const struct problem *p, bool rounds)
{
	const struct cpu_gemm *g = &p->g;
	double *a = xcalloc(g->k + 1, sizeof(*a)), most = 0;

	for (size_t i = 0; i < g->m; i++) {
		for (size_t k = 0; k < g->k; k++)
			a[k] = p->a[i * g->lda + k];
		for (size_t j = 0; j < g->n; j++) {
			const double *b = p->wide + j * g->k;
			double sum = 0, size = 0, old = 0, bound;
			for (size_t k = 0; k < g->k; k++) {
				sum += a[k] * b[k];
				size += a[k] * b[k] * a[k] * b[k];
			}
			bound = 0x1p-23 * 8 * sqrt((double)g->k * size);
			if (rounds && !p->whole)
				bound += half_steps(a, b, g->k, group_of(g));
			if (rounds && !p->whole && g->b_type == CPU_GEMM_MADE)
				bound += 1.01 * half_steps(b, a, g->k, GROUP);
			if (g->beta != 0)
				old = (double)g->beta *
				      p->before[i * g->ldc + j];
			bound = bound * fabs(g->alpha) +
				0x1p-22 * fabs(old) + 1e-37;
			double error = fabs(p->c[i * g->ldc + j] -
					    (g->alpha * sum + old)) / bound;
			most = error > most || isnan(error) ? error : most;
		}
	}
	free(a);
	return isnan(most) ? INFINITY : most;
}

static void run(struct problem *p, unsigned parts)
{
	struct cpu_gemm_scratch s = { 0 };

	memcpy(p->c, p->before, p->c_size * 4);
	for (unsigned i = parts; i-- > 0;)
		cpu_gemm_part(&p->g, &s, i, parts);
	cpu_gemm_scratch_fini(&s);
}

static bool good(const struct cpu_gemm_config *c, enum cpu_gemm_type type,
		 bool whole)
{
	static const float scales[] = { 1, 0, .5f, -2 };
	size_t k = type == CPU_GEMM_MADE ? 1 + below(300) : GROUP * (1 + below(9));
	bool rounds = cpu_gemm_is_bytes(c->level);
	struct problem p;

	problem_init(&p, below(40), below(120), k, type, whole,
		     below(3) ? 1 : scales[below(4)], scales[below(4)]);
	p.g.config = c;
	run(&p, 1 + (unsigned)below(5));
	double w = worst(&p, rounds);
	if (!(w <= 1))
		diag("%s, %s, %ux%u kc %u: %zu x %zu x %zu, %s, alpha %g, beta "
		     "%g: %g bounds", cpu_gemm_unit(c->level),
		     whole ? "whole" : "normal", c->rows, c->vecs, c->kc,
		     p.g.m, p.g.n, p.g.k, cpu_gemm_type_name(type), p.g.alpha, p.g.beta, w);
	problem_fini(&p);
	return w <= 1;
}

/* Every tile of a unit for a type. */
static void test_tiles(unsigned level, enum cpu_gemm_type type)
{
	unsigned tiles = 0, right = 0;

	for (unsigned v = 1; v <= CPU_GEMM_VECS_MAX; v++)
		for (unsigned r = cpu_gemm_rows_max(level, type, v); r; r--)
			for (int i = 0; i < 4; i++, tiles++) {
				uint16_t kc = (uint16_t)(1 + below(7));
				struct cpu_gemm_config c = {
					CPU_GEMM_NORMAL, (uint8_t)level,
					(uint8_t)r, (uint8_t)v, kc, 1, kc, 0
				};
				right += good(&c, type, i & 1);
			}
	ok(tiles > 0 && right == tiles, "%s, %s: %u of %u tiles are right",
	   cpu_gemm_unit(level), cpu_gemm_type_name(type), right, tiles);
}

/* Integers where A must not be rounded. */
static void test_plain(unsigned level)
{
	struct cpu_gemm_config c = { CPU_GEMM_NORMAL, (uint8_t)level, 4, 2, 64,
				     60, 128, 0 };
	enum { EACH = 8 };
	unsigned right = 0, all = 0;

	for (int type = CPU_GEMM_INT8; type < CPU_GEMM_TYPES; type++)
		for (int i = 0; i < EACH; i++, all++) {
			c.path = i & 1 ? CPU_GEMM_NORMAL : CPU_GEMM_SWAPPED;
			right += good(&c, (enum cpu_gemm_type)type, false);
		}
	is_u64(right, all, "%s: integers as f32", cpu_gemm_unit(level));
}

/* Shares, and lists, change no bit. */
static void test_shares(unsigned level, enum cpu_gemm_type type)
{
	struct cpu_gemm_scratch s = { 0 };
	struct cpu_gemm_config c;
	struct problem p[2];
	struct cpu_gemm g[2];
	unsigned same = 0;

	problem_init(&p[0], 37, 333, 640, type, false, 1, .5f);
	problem_init(&p[1], 37, 50, 640, type, false, 1, .5f);
	cpu_gemm_default(&p[0].g, &c);
	c.level = (uint8_t)level;
	c.rows = (uint8_t)cpu_gemm_rows_max(level, type, c.vecs = 2);
	p[0].g.config = &c;
	run(&p[0], 1);
	float *one = xmalloc(p[0].c_size * 4);
	memcpy(one, p[0].c, p[0].c_size * 4);
	for (unsigned n = 2; n <= 9; n++) {
		run(&p[0], n);
		same += !memcmp(one, p[0].c, p[0].c_size * 4);
		memcpy(p[0].c, p[0].before, p[0].c_size * 4);
		g[0] = p[0].g;
		g[1] = p[1].g;
		g[1].a = g[0].a;
		g[1].lda = g[0].lda;
		for (unsigned i = 0; i < n; i++)
			cpu_gemm_list_part(g, 2, &s, i, n);
		same += !memcmp(one, p[0].c, p[0].c_size * 4);
	}
	is_u64(same, 16, "%s, %s: shares change no bit", cpu_gemm_unit(level),
	       cpu_gemm_type_name(type));
	cpu_gemm_scratch_fini(&s);
	free(one);
	problem_fini(&p[0]);
	problem_fini(&p[1]);
}

static void test_special(unsigned level, enum cpu_gemm_type type)
{
	struct cpu_gemm_config c = { CPU_GEMM_NORMAL, (uint8_t)level, 2, 2, 4,
				     1, 4, 0 };
	struct problem p;
	size_t wrong = 0;

	/* 16 groups are rounded together: the last of 33 is alone. */
	problem_init(&p, 11, 40, 96, type, false, 1, 0);
	p.g.config = &c;
	p.a[2 * p.g.lda + 40] = NAN;
	p.a[5 * p.g.lda + 95] = -INFINITY;
	p.a[10 * p.g.lda + 64] = INFINITY;
	run(&p, 1);
	for (size_t i = 0; i < 11; i++)
		for (size_t j = 0; j < 40; j++)
			wrong += (i == 2 || i == 5 || i == 10) ==
				 (isfinite(p.c[i * p.g.ldc + j]) != 0);
	is_u64(wrong, 0, "%s, %s: what is no number stays in its row, and "
	       "shows", cpu_gemm_unit(level), cpu_gemm_type_name(type));
	problem_fini(&p);
}

/* As many k's as sums of a whole row may have, all of them the largest. */
static void test_longest(unsigned level)
{
	const size_t k = CPU_GEMM_CHANNEL_K;
	struct cpu_gemm_config c = { CPU_GEMM_NORMAL, (uint8_t)level, 2, 1, 96,
				     1, 96, 0 };
	struct problem p;
	const char *why;
	unsigned right = 0;

	problem_init(&p, 2, 2, k, CPU_GEMM_CHANNEL8, true, 1, 0);
	for (size_t i = 0; i < k; i++) {
		p.a[i] = 127;
		p.a[p.g.lda + i] = -127;
		p.q[i] = 127;
		p.q[k + i] = (uint8_t)-128;
	}
	for (int i = 0; i < 2; i++)
		((float *)(void *)p.scale)[i] = 1;
	p.g.config = &c;
	run(&p, 1);
	/* All are whole and have a float. */
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			right += p.c[(size_t)i * p.g.ldc + (size_t)j] ==
				 (i == j ? 1.f : -1.f) * 127 *
					 (j ? 128 : 127) * (float)k;
	is_u64(right, 4, "%s: %zu of the largest", cpu_gemm_unit(level), k);
	p.g.k += GROUP;
	ok(!cpu_gemm_legal(&p.g, &c, &why) && strstr(why, "k is too large"),
	   "and no more");
	p.g.config = NULL;
	cpu_gemm_default(&p.g, &c);
	ok(!cpu_gemm_is_bytes(c.level), "which become f32");
	p.g.k -= GROUP;
	problem_fini(&p);
}

static void test_names(void)
{
	static const struct {
		const char *simd;
		unsigned level;
	} test[] = { { "v4+vnni", CPU_LEVEL_VNNI },
		     { "v3+vnni", CPU_LEVEL_AVX_VNNI },
		     { "v4", CPU_LEVEL_BYTES }, { "v3", CPU_LEVEL_BYTES },
		     { "v2", 2 } };
	struct cpu_gemm g = { .m = 64, .n = 64, .k = 64, .lda = 64, .ldc = 64,
			      .b_type = CPU_GEMM_INT8, .b_by_n = true,
			      .a_as = CPU_GEMM_INT8 };
	struct cpu_gemm_config c;

	for (size_t i = 0; i < ARRAY_SIZE(test); i++) {
		if (!cpu_gemm_has(test[i].level)) {
			skip("no %s here", cpu_gemm_unit(test[i].level));
			continue;
		}
		setenv("T0_HOST_SIMD", test[i].simd, 1);
		cpu_gemm_default(&g, &c);
		is_u64(c.level, test[i].level, "T0_HOST_SIMD=%s takes %s",
		       test[i].simd, cpu_gemm_unit(test[i].level));
	}
	unsetenv("T0_HOST_SIMD");
}

int main(void)
{
	const char *s = getenv("T0_SEED");

	seed = s ? strtoull(s, NULL, 0) : 1;
	diag("T0_SEED=%llu", (unsigned long long)seed);
	for (unsigned level = 2; (int)level <= cpu_level(""); level++)
		test_plain(level);
	for (unsigned level = CPU_LEVEL_VNNI; level < CPU_LEVELS; level++) {
		if (!cpu_gemm_has(level)) {
			skip("no %s here", cpu_gemm_unit(level));
			continue;
		}
		for (int i = CPU_GEMM_MADE; i < CPU_GEMM_TYPES; i++) {
			const enum cpu_gemm_type type = (enum cpu_gemm_type)i;
			test_tiles(level, type);
			test_shares(level, type);
			if (type != CPU_GEMM_MADE)
				test_special(level, type);
		}
		test_longest(level);
	}
	test_names();
	return plan_done();
}
