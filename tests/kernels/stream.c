/*
 * Products of decoding with what stands around them, against double precision:
 * seven kinds of weights, shapes with tails, several tokens.
 */
#include "tests/ref/cache.h"
#include "tests/ref/streamed.h"

static struct cc_dev dev;

/* Tokens that a group takes. */
static uint32_t each = 1;
/* Heads are multiplied by Hadamard's matrix. */
static bool turned;

static bool opened(struct lib *l, const char *name, size_t kind,
		   enum dsl_type cache)
{
	struct cc_options o;
	struct err e = { 0 };

	*l = (struct lib){ .entry = kernel_find(name),
			   .shape = { .type = DSL_F32, .cache = cache,
				      .weights = kinds[kind].type,
				      .tokens = each, .turned = turned,
				      .span = span } };
	cc_test_options(&o);
	l->f = kernel_build(l->entry, &l->shape, &e);
	if (ok(l->f && cc_compile(l->f, &o, &l->obj, &e), "%s of %s for %u "
	       "compiles", name, kinds[kind].name, each))
		return true;
	diag("%s", e.msg);
	ssa_func_free(l->f);
	return false;
}

static void closed(struct lib *l, size_t kind, const struct tally *t)
{
	is_u64(t->wrong, 0, "%s of %s", l->entry->name, kinds[kind].name);
	is_u64(t->missed, 0, "%s of %s: mutants are noticed", l->entry->name,
	       kinds[kind].name);
	lib_close(l);
}

/* tokens, rows, n */
static const size_t shapes[][3] = {
	{ 1, 1, 32 }, { 1, 2, 64 }, { 1, 15, 96 }, { 2, 16, 128 },
	{ 3, 17, 160 }, { 1, 33, 512 }, { 1, 64, 1024 }, { 2, 5, 1056 },
	{ 1, 7, 2080 }, { 5, 40, 32 }, { 1, 130, 256 },
};

/* A case of a product y [tokens][rows], and what it is to be. */
struct stream_case {
	size_t tokens, rows, n;
	struct matrix m;
	struct arr x, y;
	struct num *want; /* [tokens][rows] */
	struct ssa_call c;
};

/* Its first arguments are y, the matrix of `stacked` times the rows, and x. */
static void case_new(struct stream_case *p, const size_t *shape, size_t kind,
		     size_t stacked, bool adds)
{
	*p = (struct stream_case){ .tokens = shape[0] * each,
				   .rows = shape[1], .n = shape[2] };
	p->m = matrix_random(kinds[kind].type, p->rows * stacked, p->n);
	p->x = arr_random(SSA_F32, p->tokens * p->n, 1, &seed);
	p->y = adds ? arr_random(SSA_F32, p->tokens * p->rows, 1, &seed) :
		      arr_stale(SSA_F32, p->tokens * p->rows);
	p->want = calloc(p->y.n, sizeof(*p->want));
	call_arr(&p->c, &p->y);
	call_matrix(&p->c, &p->m);
	call_arr(&p->c, &p->x);
}

/* Its last arguments are rows and n.  Frees the case. */
static void case_judge(struct stream_case *p, struct lib *l,
		       struct tally *all)
{
	call_u32(&p->c, (uint32_t)p->rows);
	call_u32(&p->c, (uint32_t)p->n);
	all->wrong += !lib_run(&dev, l, &p->c,
			       kernel_groups(l->entry, &l->shape, p->rows),
			       p->tokens / each);
	tally(all, &p->y, p->want);
	matrix_free(&p->m);
	free(p->x.bits);
	free(p->y.bits);
	free(p->want);
}

static void test_add(size_t kind)
{
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, "stream_add", kind, 0))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		struct stream_case p;

		if (shapes[s][2] % span)
			continue;
		case_new(&p, shapes[s], kind, 1, true);
		for (size_t i = 0; i < p.y.n; i++) {
			struct num *want = &p.want[i];
			double before = arr_get(&p.y, i);

			*want = product(&p.m, i % p.rows, &p.x, i / p.rows,
					NULL);
			want->v += before;
			want->tol += 0x1p-23 * fabs(before);
		}
		case_judge(&p, &l, &all);
	}
	closed(&l, kind, &all);
}

/* A product of the norm, of picked tokens or with gate and up. */
static void test_norm(const char *name, size_t kind, bool pair)
{
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, name, kind, 0))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shapes); s++) {
		struct stream_case p;

		if (shapes[s][2] % span)
			continue;
		case_new(&p, shapes[s], kind, pair ? 2 : 1, false);
		struct arr gain = arr_random(SSA_F32, p.n, 2, &seed);
		struct arr pick = arr_new(SSA_I32, p.tokens);
		for (size_t t = 0; t < p.tokens; t++)
			arr_set(&pick, t, (double)(p.tokens - 1 - t));
		for (size_t i = 0; i < p.y.n; i++) {
			size_t t = i / p.rows, r = i % p.rows;

			p.want[i] = product(&p.m, r, &p.x,
					    pair ? t : p.tokens - 1 - t, &gain);
			if (pair)
				p.want[i] = gated(p.want[i],
						  product(&p.m, p.rows + r,
							  &p.x, t, &gain));
		}
		call_arr(&p.c, &gain);
		call_f32(&p.c, (float)EPS);
		if (!pair)
			call_arr(&p.c, &pick);
		case_judge(&p, &l, &all);
		free(gain.bits);
		free(pick.bits);
	}
	closed(&l, kind, &all);
}

/* A case of stream_heads, and what its result is to be. */
struct heads {
	size_t tokens, heads, kv, d, n, positions, sequences;
	struct matrix m;
	struct arr q, key, value, x, gain, q_gain, k_gain, cosine, sine;
	struct arr position, sequence;
	struct num *q_want, *key_want, *value_want;
};

/* Vectors of STALE. */
static struct arr cache_stale(enum ssa_kind kind, size_t n, uint32_t d)
{
	struct arr a = kind == ARR_U4 ? arr_new(kind, n) : arr_stale(kind, n);

	if (kind == ARR_U4)
		memset(a.bits, (int)STALE, n * arr_bytes(&a));
	for (size_t at = 0; cache_is_scaled(kind) && at < n;
	     at += cache_row_of(kind, d))
		for (uint32_t i = 0; i < d; i++) {
			if (kind == SSA_I8)
				arr_set(&a, at + i, 1);
			else
				cache_set_code(&a, at, i, 9);
			cache_set_scale(&a, at, d, i, (float)STALE);
		}
	return a;
}

static void heads_new(struct heads *h, enum dsl_type weights,
		      enum ssa_kind cache)
{
	size_t half = h->d / 2, all = h->heads + 2 * h->kv;
	size_t vectors = h->sequences * h->kv * h->positions;
	size_t kept = vectors * h->d;
	size_t row = cache_row_of(cache, (uint32_t)h->d);

	h->m = matrix_random(weights, all * h->d, h->n);
	h->q = arr_stale(SSA_F32, h->tokens * h->heads * h->d);
	h->key = cache_stale(cache, vectors * row, (uint32_t)h->d);
	h->value = cache_stale(cache, vectors * row, (uint32_t)h->d);
	h->x = arr_random(SSA_F32, h->tokens * h->n, 1, &seed);
	h->gain = arr_random(SSA_F32, h->n, 2, &seed);
	h->q_gain = arr_random(SSA_F32, h->d, 2, &seed);
	h->k_gain = arr_random(SSA_F32, h->d, 2, &seed);
	h->cosine = arr_random(SSA_F32, h->positions * half, 1, &seed);
	h->sine = arr_random(SSA_F32, h->positions * half, 1, &seed);
	h->position = arr_new(SSA_I32, h->tokens);
	h->sequence = arr_new(SSA_I32, h->tokens);
	for (size_t t = 0; t < h->tokens; t++) {
		arr_set(&h->position, t,
			(double)((t / h->sequences + 1) % h->positions));
		arr_set(&h->sequence, t, (double)(t % h->sequences));
	}
	h->q_want = calloc(h->q.n, sizeof(*h->q_want));
	h->key_want = calloc(kept, sizeof(*h->key_want));
	h->value_want = calloc(kept, sizeof(*h->value_want));
	const double stale = cache == ARR_F8 ? f8_value(f8_nearest(STALE)) :
					       STALE;
	for (size_t i = 0; i < kept; i++)
		h->key_want[i].v = h->value_want[i].v = stale;
}

static void heads_free(struct heads *h)
{
	struct arr *all[] = { &h->q, &h->key, &h->value, &h->x, &h->gain,
			      &h->q_gain, &h->k_gain, &h->cosine, &h->sine,
			      &h->position, &h->sequence };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]->bits);
	matrix_free(&h->m);
	free(h->q_want);
	free(h->key_want);
	free(h->value_want);
}

static void round_to(const struct arr *a, struct num *x, size_t n)
{
	double v[256], tol[256];

	for (size_t i = 0; i < n; i++) {
		v[i] = x[i].v;
		tol[i] = x[i].tol;
	}
	if (turned)
		vector_turn(v, tol, (uint32_t)n);
	vector_round(a->kind, v, (uint32_t)n, tol);
	for (size_t i = 0; i < n; i++)
		x[i] = (struct num){ .v = v[i], .tol = tol[i] };
}

/* One head of one token. */
static void head_want(struct heads *h, size_t t, size_t head)
{
	size_t d = h->d, half = d / 2;
	size_t p = (size_t)arr_get(&h->position, t);
	size_t seq = (size_t)arr_get(&h->sequence, t);
	bool is_q = head < h->heads, is_k = !is_q && head < h->heads + h->kv;
	size_t kv = is_q ? 0 : (head - h->heads) % h->kv;
	size_t at = ((seq * h->kv + kv) * h->positions + p) * d;
	const struct arr *gain = is_q ? &h->q_gain : &h->k_gain;
	struct num v[256], *out = is_q ? h->q_want + (t * h->heads + head) * d :
				  is_k ? h->key_want + at : h->value_want + at;
	double squares = 0, tol = 0;

	for (size_t i = 0; i < d; i++) {
		v[i] = product(&h->m, head * d + i, &h->x, t, &h->gain);
		squares += v[i].v * v[i].v;
		tol += 2 * fabs(v[i].v) * v[i].tol;
	}
	if (!is_q && !is_k) {
		memcpy(out, v, d * sizeof(*v));
		round_to(&h->value, out, d);
		return;
	}
	double rms = sqrt(squares / d + (float)EPS);
	double slack = tol / (squares + 1e-30) + 0x1p-21;
	for (size_t i = 0; i < d; i++) {
		double g = arr_get(gain, i) / rms;
		v[i].tol = (v[i].tol + slack * fabs(v[i].v)) * fabs(g);
		v[i].v *= g;
	}
	for (size_t i = 0; i < half; i++) {
		double c = arr_get(&h->cosine, p * half + i);
		double s = arr_get(&h->sine, p * half + i);
		struct num a = v[i], b = v[i + half];
		out[i].v = a.v * c - b.v * s;
		out[i + half].v = b.v * c + a.v * s;
		out[i].tol = a.tol * fabs(c) + b.tol * fabs(s) +
			     0x1p-22 * (fabs(a.v * c) + fabs(b.v * s));
		out[i + half].tol = b.tol * fabs(c) + a.tol * fabs(s) +
				    0x1p-22 * (fabs(b.v * c) + fabs(a.v * s));
	}
	round_to(is_q ? &h->q : &h->key, out, d);
}

static bool heads_run(struct lib *l, struct heads *h)
{
	struct ssa_call c = { 0 };
	const struct arr *first[] = { &h->q, &h->key, &h->value };
	const struct arr *then[] = { &h->q_gain, &h->k_gain, &h->cosine,
				     &h->sine, &h->position, &h->sequence };
	const size_t row = cache_row_of(h->key.kind, (uint32_t)h->d);
	const size_t head = row * h->positions;
	const size_t size[] = { h->heads, h->kv, h->d, h->n, row, head };

	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		call_arr(&c, first[i]);
	call_matrix(&c, &h->m);
	call_arr(&c, &h->x);
	call_arr(&c, &h->gain);
	call_f32(&c, (float)EPS);
	for (size_t i = 0; i < ARRAY_SIZE(then); i++)
		call_arr(&c, then[i]);
	for (size_t i = 0; i < ARRAY_SIZE(size); i++)
		call_u32(&c, (uint32_t)size[i]);
	c.arg[c.n_args++] = head * h->kv;
	return lib_run(&dev, l, &c, h->heads + 2 * h->kv, h->tokens / each);
}

static void tally_cache(struct tally *t, const struct arr *got, size_t d,
			const struct num *want)
{
	struct arr x = cache_numbers(got, (uint32_t)d, (uint8_t)(int)STALE,
				     &t->wrong);

	tally(t, &x, want);
	free(x.bits);
}

static void test_heads(size_t kind, enum dsl_type cache)
{
	/* tokens, heads, kv, d, n, positions, sequences */
	static const size_t shape[][7] = {
		{ 1, 1, 1, 2, 32, 1, 1 }, { 1, 2, 1, 4, 64, 3, 1 },
		{ 2, 2, 2, 6, 96, 7, 2 }, { 1, 4, 2, 16, 128, 9, 1 },
		{ 3, 3, 1, 30, 32, 8, 3 }, { 1, 2, 1, 64, 160, 33, 1 },
		{ 1, 2, 1, 80, 64, 4, 1 }, { 2, 4, 2, 128, 64, 5, 1 },
		{ 1, 1, 1, 130, 96, 6, 1 }, { 1, 1, 1, 256, 64, 2, 1 },
		{ 4, 2, 1, 32, 256, 64, 2 }, { 2, 1, 2, 96, 64, 3, 2 },
	};
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, "stream_heads", kind, cache))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		const size_t *p = shape[s];
		if ((cache_is_scaled(kind_of(cache)) && p[3] % 32) ||
		    (turned && (p[3] < 32 || p[3] & (p[3] - 1))) ||
		    (each > 1 && p[0] * each > p[5] * p[6]))
			continue; /* two tokens would be at one place */
		if (p[4] % span)
			continue;
		struct heads h = { .tokens = p[0] * each, .heads = p[1],
				   .kv = p[2], .d = p[3], .n = p[4],
				   .positions = p[5], .sequences = p[6] };
		heads_new(&h, kinds[kind].type, kind_of(cache));
		for (size_t t = 0; t < h.tokens; t++)
			for (size_t i = 0; i < h.heads + 2 * h.kv; i++)
				head_want(&h, t, i);
		all.wrong += !heads_run(&l, &h);
		tally(&all, &h.q, h.q_want);
		tally_cache(&all, &h.key, h.d, h.key_want);
		tally_cache(&all, &h.value, h.d, h.value_want);
		heads_free(&h);
	}
	closed(&l, kind, &all);
}

static void test_embed(size_t kind)
{
	static const size_t size[] = { 32, 64, 96, 160, 256, 1024 };
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, "stream_embed", kind, 0))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(size); s++) {
		size_t n = size[s], rows = 9, tokens = 5;
		if (n % span)
			continue;
		static const int32_t ids[] = { 8, 0, 9, -1, 3 };
		struct matrix m = matrix_random(kinds[kind].type, rows, n);
		struct arr id = arr_new(SSA_I32, tokens);
		struct arr x = arr_stale(SSA_F32, tokens * n);
		struct num *want = calloc(x.n, sizeof(*want));
		struct ssa_call c = { 0 };
		for (size_t t = 0; t < tokens; t++) {
			arr_set(&id, t, ids[t]);
			for (size_t i = 0; i < n; i++)
				if (ids[t] >= 0 && ids[t] < (int32_t)rows)
					want[t * n + i].v = (float)
						m.v[(size_t)ids[t] * n + i];
		}
		call_arr(&c, &x);
		call_matrix(&c, &m);
		call_arr(&c, &id);
		call_u32(&c, (uint32_t)rows);
		call_u32(&c, (uint32_t)n);
		all.wrong += !lib_run(&dev, &l, &c, tokens, 1);
		tally(&all, &x, want);
		matrix_free(&m);
		free(id.bits);
		free(x.bits);
		free(want);
	}
	closed(&l, kind, &all);
}

/* Weights as f16: exact but for that rounding. */
static void test_widen(size_t kind)
{
	static const size_t shape[][2] = { { 1, 32 }, { 3, 96 }, { 9, 160 },
					   { 5, 256 }, { 2, 2080 }, { 1, 4096 } };
	struct tally all = { 0 };
	struct lib l;

	if (!opened(&l, "stream_widen", kind, 0))
		return;
	for (size_t s = 0; s < ARRAY_SIZE(shape); s++) {
		const size_t rows = shape[s][0], n = shape[s][1];
		if (n % span)
			continue;
		struct matrix m = matrix_random(kinds[kind].type, rows, n);
		struct arr out = arr_stale(SSA_F16, rows * n);
		struct num *want = calloc(out.n, sizeof(*want));
		struct ssa_call c = { 0 };
		for (size_t i = 0; i < out.n; i++) {
			want[i].v = m.v[i];
			want[i].tol = 0x1p-11 * fabs(m.v[i]) + 0x1p-25;
		}
		call_arr(&c, &out);
		call_matrix(&c, &m);
		call_u32(&c, (uint32_t)rows);
		call_u32(&c, (uint32_t)n);
		all.wrong += !lib_run(&dev, &l, &c, rows, 1);
		tally(&all, &out, want);
		matrix_free(&m);
		free(out.bits);
		free(want);
	}
	closed(&l, kind, &all);
}

/* Codes of 6 and 3 bits whose scales are of more columns. */
static void test_spans(void)
{
	static const struct {
		uint32_t span, kind;
	} wide[] = { { 64, INT6 }, { 128, INT6 }, { 256, INT3 }, { 64, INT3 } };

	for (size_t i = 0; i < ARRAY_SIZE(wide); i++) {
		span = wide[i].span;
		test_add(wide[i].kind);
		test_norm("stream_norm", wide[i].kind, false);
		test_norm("stream_swiglu", wide[i].kind, true);
		test_heads(wide[i].kind, DSL_F16);
		test_embed(wide[i].kind);
		test_widen(wide[i].kind);
	}
	span = 32;
}

int main(void)
{
	static const enum dsl_type cache[] = { DSL_F32, DSL_F16, DSL_BF16 };

	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		test_add(k);
		test_norm("stream_norm", k, false);
		test_norm("stream_swiglu", k, true);
		test_heads(k, cache[k % 3]);
		test_heads(k, k % 2 ? DSL_U8 : DSL_I8);
		test_embed(k);
		test_widen(k);
	}
	test_spans();
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (k % 2 && !getenv("T0_SLOW"))
			continue;
		each = k == 4 ? 4 : 2 + k % 3;
		test_add(k);
		test_norm("stream_norm", k, false);
		test_norm("stream_swiglu", k, true);
		test_heads(k, cache[k % 3]);
	}
	each = 1;
	for (size_t k = 2; k < ARRAY_SIZE(kinds); k++)
		test_heads(k, DSL_U32);
	turned = true;
	test_heads(0, DSL_F32);
	test_heads(4, DSL_U32);
	each = 2;
	test_heads(4, DSL_U32);
	cc_dev_close(&dev);
	return plan_done();
}
