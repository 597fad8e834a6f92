/*
 * vec - growing arrays of any type.
 *
 * A vector is a struct with the members `v` (the elements), `n` (how many) and
 * `cap` (for how many there is memory): VEC(TYPE), or a struct of one's own
 * that has them.  All zero is the empty vector.
 *
 *	VEC(struct edge) out = { 0 };
 *
 *	vec_push(&out, ((struct edge){ from, to }));
 *	vec_add(&out)->from = from;
 *	for (size_t i = 0; i < out.n; i++)
 *		visit(&out.v[i]);
 *	vec_fini(&out);
 *
 * The vector owns its memory, but nothing that elements point to.  Growing
 * moves the elements: keep indices, not pointers.  Capacity doubles, so n
 * elements cost O(n).  `n` and `cap` may be of any integer type; a count that
 * overflows it, or a size that overflows size_t, ends the process as running
 * out of memory does.  Macros in lower case evaluate their arguments once.
 */
#ifndef T0_BASE_VEC_H
#define T0_BASE_VEC_H

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define VEC(type)              \
	struct {               \
		type *v;       \
		size_t n, cap; \
	}

/* Appends a copy of one element, which may be one of the vector's own. */
#define vec_push(vec, ...)                                       \
	do {                                                     \
		__typeof__(vec) push_to_ = (vec);                \
		__typeof__(*push_to_->v) push_it_ = __VA_ARGS__; \
		vec_reserve(push_to_, 1);                        \
		push_to_->v[push_to_->n++] = push_it_;           \
	} while (0)

/* Appends an element of zeroes: its address, valid until the vector grows. */
#define vec_add(vec)                                                     \
	({                                                               \
		__typeof__(vec) add_to_ = (vec);                         \
		vec_reserve(add_to_, 1);                                 \
		memset(&add_to_->v[add_to_->n], 0, sizeof(*add_to_->v)); \
		&add_to_->v[add_to_->n++];                               \
	})

/* Memory for `more` elements behind the last: adding them moves nothing. */
#define vec_reserve(vec, more)                                    \
	do {                                                      \
		__typeof__(vec) grow_ = (vec);                    \
		VEC_GROW(grow_->v, grow_->n, (more), grow_->cap); \
	} while (0)

/* Frees: the vector is empty and may be used again. */
#define vec_fini(vec)                          \
	do {                                   \
		__typeof__(vec) fini_ = (vec); \
		free(fini_->v);                \
		fini_->v = NULL;               \
		fini_->n = fini_->cap = 0;     \
	} while (0)

/*
 * The same for an array whose pointer, count and capacity are variables or
 * members of other names: memory in `array` for `more` elements behind the
 * first `count`, of which the array may still lack some.  Evaluates its
 * arguments more than once.
 */
#define VEC_GROW(array, count, more, cap)                            \
	do {                                                         \
		size_t need_;                                        \
		if (size_add((count), (more), &need_) &&             \
		    need_ <= (size_t)(cap))                          \
			break;                                       \
		(cap) = vec_capacity((cap), (count), (more),         \
				     sizeof(cap), sizeof(*(array))); \
		(array) = xrealloc((array), (cap) * sizeof(*(array))); \
	} while (0)

/*
 * mem.c: the capacity that `n` and `more` elements of `size_bytes` need, at
 * least twice `cap`; it fits a signed integer of `cap_bytes`, and its bytes a
 * size_t.  For arrays that grow together.
 */
size_t vec_capacity(size_t cap, size_t n, size_t more, size_t cap_bytes,
		    size_t size_bytes);

#endif
