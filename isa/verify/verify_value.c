/*
 * isa/verify/verify_value.c - unique nodes for values, and their arithmetic.
 *
 * Node 0 is "no value".  Linear nodes keep their terms in descending order of
 * the root's number, so equal sums are equal nodes whatever instructions
 * computed them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/verify/verify_int.h"

enum { MAX_TERMS = 16 };

void val_init(struct values *s)
{
	memset(s, 0, sizeof(*s));
	s->n_hash = 4096;
	s->hash = xcalloc(s->n_hash, sizeof(*s->hash));
	vec_reserve(s, 1024);
	vec_add(s);
}

void val_fini(struct values *s)
{
	free(s->v);
	free(s->hash);
}

static uint32_t hash_of(const struct value *x)
{
	uint64_t h = x->kind | x->neg << 4 | x->flags << 8;

	h = (h ^ x->a) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 29 ^ x->b) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 32 ^ x->imm) * UINT64_C(0x94d049bb133111eb);
	return h >> 32;
}

static void grow_hash(struct values *s)
{
	free(s->hash);
	s->n_hash *= 4;
	s->hash = xcalloc(s->n_hash, sizeof(*s->hash));
	for (uint32_t i = 1; i < s->n; i++) {
		uint32_t h = hash_of(&s->v[i]) & (s->n_hash - 1);

		s->v[i].next = s->hash[h];
		s->hash[h] = i;
	}
}

static uint32_t intern_value(struct values *s, const struct value *x)
{
	uint32_t h = hash_of(x) & (s->n_hash - 1);

	for (uint32_t i = s->hash[h]; i; i = s->v[i].next) {
		const struct value *y = &s->v[i];

		if (y->kind == x->kind && y->a == x->a && y->b == x->b &&
		    y->imm == x->imm && y->neg == x->neg &&
		    y->flags == x->flags)
			return i;
	}
	vec_push(s, *x);
	s->v[s->n - 1].next = s->hash[h];
	s->hash[h] = s->n - 1;
	if (s->n > 2 * s->n_hash)
		grow_hash(s);
	return s->n - 1;
}

uint32_t val_const(struct values *s, uint32_t value)
{
	return intern_value(s, &(struct value){ .kind = VAL_CONST,
						.imm = value,
						.lo = value,
						.hi = value });
}

bool val_is_const(const struct values *s, uint32_t x, uint32_t *value)
{
	if (s->v[x].kind != VAL_CONST || !x)
		return false;
	*value = s->v[x].imm;
	return true;
}

uint32_t val_entry(struct values *s, int func, int reg)
{
	struct value x = {
		.kind = VAL_ENTRY, .a = func, .imm = reg, .hi = UINT32_MAX
	};

	/* v0 holds the work-item id in a kernel, anything in a callee. */
	if (func)
		x.flags = VF_DARK;
	else if (reg == R_VGPR)
		x.flags = VF_LANE;
	return intern_value(s, &x);
}

uint32_t val_insn(struct values *s, int insn, int dword, int flags)
{
	return intern_value(s, &(struct value){ .kind = VAL_INSN,
						.a = insn,
						.b = dword,
						.flags = flags,
						.hi = UINT32_MAX });
}

uint32_t val_phi(struct values *s, int block, int reg)
{
	return intern_value(s, &(struct value){ .kind = VAL_PHI,
						.a = block,
						.b = reg,
						.flags = VF_VARY,
						.hi = UINT32_MAX });
}

uint32_t val_expr(struct values *s, uint32_t op, uint32_t a, uint32_t b,
		  int flags)
{
	return intern_value(s, &(struct value){ .kind = VAL_EXPR,
						.imm = op,
						.a = a,
						.b = b,
						.flags = flags,
						.hi = UINT32_MAX });
}

uint32_t val_bound(struct values *s, uint32_t x, uint32_t lo, uint32_t hi)
{
	if (s->v[x].kind != VAL_CONST) {
		if (lo > s->v[x].lo)
			s->v[x].lo = lo;
		if (hi < s->v[x].hi)
			s->v[x].hi = hi;
	}
	return x;
}

uint32_t val_zeros(const struct values *s, uint32_t x)
{
	uint32_t low = 32;

	for (; s->v[x].kind == VAL_LIN; x = s->v[x].b) {
		uint32_t z = (uint32_t)__builtin_ctz(s->v[x].imm) +
			     s->v[s->v[x].a].zeros;

		low = z < low ? z : low;
	}
	if (s->v[x].kind != VAL_CONST)
		return s->v[x].zeros < low ? s->v[x].zeros : low;
	return s->v[x].imm && (uint32_t)__builtin_ctz(s->v[x].imm) < low ?
		       (uint32_t)__builtin_ctz(s->v[x].imm) :
		       low;
}

/* coef * root + rest, the root being larger than those of the rest. */
static uint32_t linear_term(struct values *s, uint32_t coef, uint32_t root,
			    uint32_t rest)
{
	struct value x = { .kind = VAL_LIN, .imm = coef, .a = root, .b = rest };
	const struct value *r = &s->v[root], *t = &s->v[rest];
	int64_t k = (int32_t)coef, lo, hi;

	if (!coef)
		return rest;
	if (coef == 1 && t->kind == VAL_CONST && !t->imm)
		return root;
	x.flags = r->flags | t->flags;
	lo = k * (k < 0 ? r->hi : r->lo);
	hi = k * (k < 0 ? r->lo : r->hi);
	/* A negative constant stands for a subtraction. */
	if (t->kind == VAL_CONST) {
		lo += (int32_t)t->imm;
		hi += (int32_t)t->imm;
	} else {
		lo += t->lo;
		hi += t->hi;
	}
	if (lo < 0 || hi > UINT32_MAX) {
		lo = 0;
		hi = UINT32_MAX;
	}
	x.lo = lo;
	x.hi = hi;
	return intern_value(s, &x);
}

struct lin {
	uint32_t root, coef, rest;
};

static struct lin open_lin(struct values *s, uint32_t x)
{
	const struct value *v = &s->v[x];

	if (v->kind == VAL_CONST)
		return (struct lin){ 0, 0, x };
	if (v->kind == VAL_LIN)
		return (struct lin){ v->a, v->imm, v->b };
	return (struct lin){ x, 1, val_const(s, 0) };
}

static int count_terms(const struct values *s, uint32_t x)
{
	int n = 0;

	for (; s->v[x].kind == VAL_LIN; x = s->v[x].b)
		n++;
	return n;
}

static uint32_t add_terms(struct values *s, uint32_t a, uint32_t b)
{
	struct lin x = open_lin(s, a), y = open_lin(s, b);

	if (!x.root && !y.root)
		return val_const(s, s->v[a].imm + s->v[b].imm);
	if (x.root == y.root)
		return linear_term(s, x.coef + y.coef, x.root,
				   add_terms(s, x.rest, y.rest));
	if (x.root > y.root)
		return linear_term(s, x.coef, x.root, add_terms(s, x.rest, b));
	return linear_term(s, y.coef, y.root, add_terms(s, a, y.rest));
}

uint32_t val_add(struct values *s, uint32_t a, uint32_t b)
{
	if (count_terms(s, a) + count_terms(s, b) > MAX_TERMS)
		return val_expr(s, ISA_v_add_nc_u32, a, b,
				s->v[a].flags | s->v[b].flags);
	return add_terms(s, a, b);
}

uint32_t val_scale(struct values *s, uint32_t x, uint32_t k)
{
	struct lin l = open_lin(s, x);

	if (!l.root)
		return val_const(s, s->v[x].imm * k);
	return linear_term(s, l.coef * k, l.root, val_scale(s, l.rest, k));
}

uint32_t val_split(const struct values *s, uint32_t x, uint32_t *rest)
{
	*rest = 0;
	if (s->v[x].kind == VAL_CONST)
		return s->v[x].imm;
	*rest = x;
	while (s->v[x].kind == VAL_LIN)
		x = s->v[x].b;
	return s->v[x].kind == VAL_CONST ? s->v[x].imm : 0;
}

/* ---------------------------------------------------------- constant & ---- */

/* Upper bound of x & k for lo <= x <= hi: hi, less a bit that k lacks. */
static uint32_t and_max(uint32_t lo, uint32_t hi, uint32_t k)
{
	uint32_t best = hi & k;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
		uint32_t x = (hi & ~bit) | (bit - 1);

		if (hi & bit && x >= lo && (x & k) > best)
			best = x & k;
	}
	return best;
}

/* The smallest: lo, or more by a bit that lets all below it be 0. */
static uint32_t and_min(uint32_t lo, uint32_t hi, uint32_t k)
{
	uint32_t best = lo & k;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
		uint32_t x = (lo | bit) & -bit;

		if (!(lo & bit) && x <= hi && (x & k) < best)
			best = x & k;
	}
	return best;
}

uint32_t val_and(struct values *s, uint32_t x, uint32_t k)
{
	const uint32_t zeros = val_zeros(s, x);
	const uint32_t lo = s->v[x].lo, hi = s->v[x].hi;
	uint32_t y, z;

	if (s->v[x].kind == VAL_CONST)
		return val_const(s, s->v[x].imm & k);
	k &= zeros < 32 ? UINT32_MAX << zeros : 0;
	if (!k)
		return val_const(s, 0);
	/* Every bit that x may have. */
	if (!(~k & UINT32_MAX >> (hi ? __builtin_clz(hi) : 31) &
	      UINT32_MAX << zeros))
		return x;
	y = val_expr(s, ISA_v_and_b32, x, val_const(s, k), s->v[x].flags);
	val_bound(s, y, and_min(lo, hi, k), and_max(lo, hi, k));
	z = (uint32_t)__builtin_ctz(k);
	if (z > s->v[y].zeros)
		s->v[y].zeros = (uint8_t)z;
	return y;
}

/* ------------------------------------------------------------- strides ---- */

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

uint32_t val_stride(const struct values *s, uint32_t x, int flags)
{
	uint32_t g = 0;

	for (; s->v[x].kind == VAL_LIN; x = s->v[x].b) {
		const struct value *root = &s->v[s->v[x].a];
		int32_t k = s->v[x].imm;

		if ((root->flags & flags) == flags)
			g = gcd(g, (k < 0 ? -(uint32_t)k : (uint32_t)k)
					   << root->zeros);
	}
	if (s->v[x].kind != VAL_CONST && (s->v[x].flags & flags) == flags)
		g = gcd(g, 1u << s->v[x].zeros);
	return g;
}

/* -------------------------------------------------------------- masks ---- */

uint32_t val_mask(struct values *s, uint32_t parent, uint32_t cond, bool neg)
{
	return intern_value(s, &(struct value){ .kind = VAL_MASK,
						.a = parent,
						.b = cond,
						.neg = neg,
						.hi = UINT32_MAX });
}

uint32_t val_high(struct values *s, uint32_t mask)
{
	if (s->v[mask].kind == VAL_CONST)
		return val_const(s, (int32_t)s->v[mask].imm >> 31);
	return intern_value(s, &(struct value){ .kind = VAL_HIGH,
						.a = mask,
						.flags = s->v[mask].flags,
						.hi = UINT32_MAX });
}

bool val_narrower(const struct values *s, uint32_t x, uint32_t of)
{
	while (s->v[x].kind == VAL_MASK) {
		x = s->v[x].a;
		if (x == of)
			return true;
	}
	return false;
}
