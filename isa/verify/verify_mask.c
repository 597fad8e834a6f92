/*
 * isa/verify/verify_mask.c - boolean arithmetic on lane masks.
 *
 * Narrowing EXEC makes a subset of it, and the operations by which
 * compilers restore EXEC lead back to the very node that was narrowed.
 */
#include "isa/verify/verify_int.h"

static bool is_lanes(const struct values *s, uint32_t exec, uint32_t x)
{
	return x == exec || s->v[x].kind == VAL_MASK;
}

static bool are_siblings(const struct values *s, uint32_t a, uint32_t b)
{
	const struct value *x = &s->v[a], *y = &s->v[b];

	return x->kind == VAL_MASK && y->kind == VAL_MASK && x->a == y->a &&
	       x->b == y->b && x->neg != y->neg;
}

static uint32_t mask_and(struct values *s, uint32_t exec, uint32_t a,
			 uint32_t b)
{
	uint32_t k;

	if (a == b || val_narrower(s, a, b))
		return a;
	if (val_narrower(s, b, a))
		return b;
	if (val_is_const(s, a, &k) && (!k || k == UINT32_MAX))
		return k ? b : a;
	if (val_is_const(s, b, &k) && (!k || k == UINT32_MAX))
		return k ? a : b;
	if (is_lanes(s, exec, a) && (a == exec || !is_lanes(s, exec, b)))
		return val_mask(s, a, b, false);
	if (is_lanes(s, exec, b))
		return val_mask(s, b, a, false);
	return 0;
}

static uint32_t mask_or(struct values *s, uint32_t a, uint32_t b)
{
	uint32_t k;

	if (a == b || val_narrower(s, b, a))
		return a;
	if (val_narrower(s, a, b))
		return b;
	if (are_siblings(s, a, b))
		return s->v[a].a;
	if (val_is_const(s, a, &k) && (!k || k == UINT32_MAX))
		return k ? a : b;
	if (val_is_const(s, b, &k) && (!k || k == UINT32_MAX))
		return k ? b : a;
	return 0;
}

/* a & ~b */
static uint32_t mask_without(struct values *s, uint32_t exec, uint32_t a,
			     uint32_t b)
{
	const struct value *y = &s->v[b];
	uint32_t k;

	if (a == b)
		return val_const(s, 0);
	if (are_siblings(s, a, b))
		return a;
	if (y->kind == VAL_MASK && y->a == a)
		return val_mask(s, a, y->b, !y->neg);
	if (val_is_const(s, b, &k) && !k)
		return a;
	if (val_is_const(s, a, &k) && !k)
		return a;
	return is_lanes(s, exec, a) ? val_mask(s, a, b, true) : 0;
}

static uint32_t mask_xor(struct values *s, uint32_t exec, uint32_t a,
			 uint32_t b)
{
	uint32_t k;

	if (val_narrower(s, b, a))
		return mask_without(s, exec, a, b);
	if (val_narrower(s, a, b))
		return mask_without(s, exec, b, a);
	if (are_siblings(s, a, b))
		return s->v[a].a;
	if (val_is_const(s, a, &k) && !k)
		return b;
	if (val_is_const(s, b, &k) && !k)
		return a;
	return 0;
}

uint32_t val_logic(struct values *s, uint32_t exec, enum isa_op op, uint32_t a,
		   uint32_t b)
{
	switch (op) {
	case ISA_s_and_b32:
	case ISA_s_and_b64:
	case ISA_s_and_saveexec_b32:
	case ISA_s_and_saveexec_b64:
		return mask_and(s, exec, a, b);
	case ISA_s_or_b32:
	case ISA_s_or_b64:
	case ISA_s_or_saveexec_b32:
	case ISA_s_or_saveexec_b64:
		return mask_or(s, a, b);
	case ISA_s_xor_b32:
	case ISA_s_xor_b64:
	case ISA_s_xor_saveexec_b32:
	case ISA_s_xor_saveexec_b64:
		return mask_xor(s, exec, a, b);
	case ISA_s_and_not1_b32:
	case ISA_s_and_not1_b64:
	case ISA_s_and_not1_saveexec_b32:
	case ISA_s_and_not1_saveexec_b64:
	case ISA_s_and_not1_wrexec_b32:
	case ISA_s_and_not1_wrexec_b64:
		return mask_without(s, exec, a, b);
	case ISA_s_and_not0_saveexec_b32:
	case ISA_s_and_not0_saveexec_b64:
	case ISA_s_and_not0_wrexec_b32:
	case ISA_s_and_not0_wrexec_b64:
		return mask_without(s, exec, b, a);
	default:
		return 0;
	}
}
