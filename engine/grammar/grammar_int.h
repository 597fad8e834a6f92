/*
 * engine/grammar/grammar_int.h - rules, for who makes and follows them.
 */
#ifndef T0_ENGINE_GRAMMAR_INT_H
#define T0_ENGINE_GRAMMAR_INT_H

#include "base/vec.h"
#include "engine/grammar/grammar.h"

/* Which bytes. */
struct byte_set {
	uint64_t bit[4];
};

enum elem_kind { ELEM_END, ELEM_BYTES, ELEM_RULE };
struct elem {
	enum elem_kind kind;
	uint32_t of; /* set or rule */
};

/* A sequence of elements that becomes an alternative. */
struct seq {
	VEC(struct elem) elem;
};

/*
 * Rule r is any of its alternatives, a list; each is elements from `first` on,
 * to an END.
 */
struct alternative {
	uint32_t first, next;
};
#define NO_ALTERNATIVE UINT32_MAX
#define NO_END	       (UINT32_MAX / 4) /* a length that is never reached */

struct qwen_grammar {
	VEC(struct elem) elem;
	VEC(struct alternative) alternative;
	VEC(uint32_t) rule; /* first alternative */
	VEC(struct byte_set) set;
	uint32_t start;
	uint8_t alike[256]; /* bytes of one number are in the same sets */
	uint32_t n_alike;
	uint32_t *least; /* [elem]: bytes from there to its END, at least */
};

static inline bool set_has(const struct byte_set *s, unsigned char c)
{
	return s->bit[c / 64] >> c % 64 & 1;
}

/* ---- grammar.c: making one ---- */

uint32_t grammar_add_rule(struct qwen_grammar *g); /* without alternatives */
/* Adds the sequence to the rule's alternatives, and empties it. */
void grammar_add_seq(struct qwen_grammar *g, uint32_t rule, struct seq *s);
void seq_add_rule(struct seq *s, uint32_t rule);
void seq_add_text(struct qwen_grammar *g, struct seq *s, const char *text,
		  size_t n);
/*
 * One byte of a class: "a-z_" with ranges, a "^" before it meaning all others;
 * a "-" stands first.
 */
void seq_add_class(struct qwen_grammar *g, struct seq *s, const char *class);
/* All by a format: %r a rule, %c a class, other bytes stand for themselves. */
void grammar_add(struct qwen_grammar *g, uint32_t rule, const char *form, ...);
/* `rule`, from `least` to `most` times; UINT32_MAX: without end. */
uint32_t grammar_repeat(struct qwen_grammar *g, uint32_t rule, uint32_t least,
			uint32_t most);
/* Nothing is added after that.  False: no text is in it. */
bool grammar_finish(struct qwen_grammar *g, uint32_t start);

/* ---- json.c: rules of JSON ---- */

struct json_rules {
	uint32_t space, character, string, integer, number, value, object,
		array;
};
void json_add_rules(struct qwen_grammar *g, struct json_rules *r);

/* ---- number.c ---- */

/* Integers from `least` to `most`, of at most 15 digits. */
uint32_t integer_add_range(struct qwen_grammar *g, int64_t least, int64_t most);
#define MOST_INTEGER 999999999999999

/* ---- schema.c ---- */

/* A schema that is being made rules of. */
struct maker {
	struct qwen_grammar *g;
	const struct json_rules *json;
	json_t *root;
	VEC(struct made {
		const json_t *schema;
		uint32_t rule;
	})
	made; /* or begun: a recursive one finds its rule */
	struct err *e;
};
/* Of a repetition, and elements of a grammar that is not refused, at most. */
enum { MOST_TIMES = 4096, MOST_ELEMENTS = 1 << 18 };

/* Sets the error: the keyword is `got`.  Returns false. */
bool schema_refuse(struct maker *m, const char *keyword, json_t *got,
		   const char *wanted);
/* A count in *n, where there is one. */
bool schema_read_times(struct maker *m, json_t *schema, const char *name,
		       uint32_t *n);
/* The value as it is written. */
void schema_add_literal(struct maker *m, struct seq *s, json_t *value);
/* The rule of a schema within the root; a recursive one is not whole yet. */
bool schema_make_rule(struct maker *m, json_t *schema, uint32_t *rule);

/* ---- nested.c: alternatives of the rule ---- */

bool schema_add_array(struct maker *m, json_t *schema, uint32_t rule);
bool schema_add_object(struct maker *m, json_t *schema, uint32_t rule);

/* ---- schema.c, for all ---- */

/* Of a value that satisfies the schema; false: see qwen_grammar_schema(). */
bool schema_add_rule(struct qwen_grammar *g, const struct json_rules *json,
		     json_t *schema, uint32_t *rule, struct err *e);

#endif
