/*
 * kfd/soft/exec/fast/native_table.h - native.def as a table.
 *
 * Private to native_find.c, which chooses a microop's row, and native_rows.c,
 * which makes code of it.
 */
#ifndef T0_KFD_SOFT_NATIVE_TABLE_H
#define T0_KFD_SOFT_NATIVE_TABLE_H

#include "kfd/soft/exec/fast/native.h"

enum check {
	NONE, NAN_RESULT, ORDERED, LEAST, MOST, PAIRS, VNNI, VBMI, POPCNT,
	HALF, HALF_NAN, HALF_SOURCE,
};

/* What a step names: vregs, then constants. */
enum name {
	A, B, C, A_HIGH, B_HIGH, C_HIGH, T, U, V, T_HIGH, W, X, Y, Z, K_FIRST,
#define K(name, value) K_##name = K_FIRST + SOFT_NATIVE_##name,
#define Q(name, value) K(name, value)
#define F(name, ...)   K(name, )
#include "kfd/soft/exec/fast/constants.def"
#undef F
#undef Q
#undef K
};

enum mask { IN = 1, M, N };

enum step_kind {
	END, PLAIN, MASKED, WHERE_N, FINDS, FINDS_IN_N, ODD_LANES, ODD_IN_LANES,
	ODD_PARTS, MAKES, MAKES_IN, JOINS,
};

struct step {
	uint8_t kind, op, d, s1;
	uint16_t s2;
	uint8_t imm;
};

struct row {
	enum check check;
	const struct step *step; /* END is the last one */
};

#define NAN		       NAN_RESULT
#define DO(op, d, s1, s2)      DOI(op, d, s1, s2, 0)
#define OP1(op, d, s)	       DOI(op, d, 0, s, 0)
#define OP1I(op, d, s, imm)    DOI(op, d, 0, s, imm)
#define DOI(op, d, s1, s2, imm) { PLAIN, SOFT_HOST_##op, d, s1, s2, imm },
#define IF_IN(op, d, s1, s2)   { MASKED, SOFT_HOST_##op, d, s1, s2, 0 },
#define IF_N(op, d, s1, s2)    { WHERE_N, SOFT_HOST_##op, d, s1, s2, 0 },
#define FIND(op, s1, s2, imm)  { FINDS, SOFT_HOST_##op, N, s1, s2, imm },
#define FIND_IN_N(op, s1, s2, imm) \
	{ FINDS_IN_N, SOFT_HOST_##op, N, s1, s2, imm },
#define ODD(op, s1, s2, imm)   { ODD_LANES, SOFT_HOST_##op, N, s1, s2, imm },
#define ODD_IN(op, s1, s2, imm) \
	{ ODD_IN_LANES, SOFT_HOST_##op, N, s1, s2, imm },
#define ODD_ANY(op, s1, s2, imm) \
	{ ODD_PARTS, SOFT_HOST_##op, N, s1, s2, imm },
#define TEST(op, m, s1, s2, relation) \
	{ MAKES, SOFT_HOST_##op, m, s1, s2, relation },
#define TEST_IN(op, m, s1, s2, relation) \
	{ MAKES_IN, SOFT_HOST_##op, m, s1, s2, relation },
#define EITHER(m, n) { JOINS, 0, m, m, n, 0 },
#define STEPS(...)   (const struct step[]){ __VA_ARGS__ { END, 0, 0, 0, 0, 0 } }

/* --------------------------------------------------------- native_find.c ---- */

/* The row of a microop that is no preparation, NULL: none. */
const struct row *soft_native_find(const struct soft_microop *m, uint32_t mode);

static inline bool soft_row_is_half(const struct row *r)
{
	return r->check >= HALF;
}

/* What steps are about. */
struct soft_steps_use {
	uint32_t names; /* bits: those read; free ones but U and V, too */
	uint32_t kinds; /* bits */
	bool result;
};
struct soft_steps_use soft_steps_use(const struct step *s);

/* Do they make a mask, read one, find something odd? */
#define SOFT_MAKES (1u << MAKES | 1u << MAKES_IN | 1u << JOINS)
#define SOFT_READS (1u << MASKED | 1u << MAKES_IN | 1u << ODD_IN_LANES)
#define SOFT_ODD   (1u << ODD_LANES | 1u << ODD_IN_LANES | 1u << ODD_PARTS)

/* The operand that a microop's result goes to. */
const struct isa_operand *soft_native_result(const struct soft_microop *m);
/* Is the result clamped? */
bool soft_native_clamps(const struct soft_microop *m);
/* Do f32 denormals become zeros, before and after, where MODE[7:0] is `mode`? */
bool soft_native_flushes(const struct soft_microop *m, uint32_t mode);

#endif
