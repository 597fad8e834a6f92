/*
 * engine/grammar - texts that keep a form: the manual.
 *
 * A grammar (grammar.c) is rules over bytes; JSON and JSON schemas become one
 * (json.c, schema.c, nested.c, number.c), as do the calls of tools (tools.c).
 * A matcher (matcher.c) is a pushdown automaton of a grammar that goes through
 * one text; it says which tokens of a lexicon (lexicon.c) may come next.
 */
#ifndef T0_ENGINE_GRAMMAR_H
#define T0_ENGINE_GRAMMAR_H

#include <jansson.h>

#include "engine/text/text.h"

/* -------------------------------------------------------- grammar.c ---- */

/* Read only once it is made; threads may share it. */
struct qwen_grammar;
void qwen_grammar_free(struct qwen_grammar *g); /* NULL: nothing */
/* Bytes of the shortest text, and so tokens that always do. */
uint32_t qwen_grammar_least(const struct qwen_grammar *g);

/* --------------------------------------------------------- schema.c ---- */

/*
 * Texts are compact or indented JSON: a space, or a line break with up to 20
 * spaces, may stand where JSON lets it.  Numbers have at most 15 digits before
 * and behind the point, and an exponent of two.  What jansson does not read (a
 * lone surrogate, a zero byte) is never written.
 */

/* Any object. */
struct qwen_grammar *qwen_grammar_json(void);
/*
 * A value that satisfies a schema, of which is known: type; enum, const;
 * properties, required, additionalProperties; items, prefixItems, minItems,
 * maxItems; minLength, maxLength; of integers, minimum, maximum and the
 * exclusive ones; anyOf, allOf of one, $ref within the schema, recursive ones
 * too; annotations, which say nothing.  NULL, with ERR_UNSUPPORTED or
 * ERR_INPUT: another keyword, or nothing satisfies it.
 *
 * Properties come in the schema's order.  Others are written only where the
 * schema gives them one or there are no properties, and their names are ASCII.
 */
struct qwen_grammar *qwen_grammar_schema(json_t *schema, struct err *e);

/* ---------------------------------------------------------- tools.c ---- */

/* What stands around a call's name and arguments. */
#define QWEN_CALL_BEGIN	    "<tool_call>"
#define QWEN_CALL_NAME	    "\n{\"name\": \""
#define QWEN_CALL_ARGUMENTS "\", \"arguments\": "
#define QWEN_CALL_END	    "}\n</tool_call>"

struct qwen_tool {
	const char *name;   /* without what JSON escapes */
	json_t *parameters; /* a schema of objects, or NULL: any */
	bool strict;	    /* else any object, where it is not known */
};
/*
 * Calls of tool[n] as Qwen3's chat template has them, up to `most`, a line break
 * between two: of at least one (`must`), or behind any text that may also end
 * without.  NULL: a strict tool's parameters are not known.
 */
struct qwen_grammar *qwen_grammar_tools(const struct qwen_tool *tool, size_t n,
					bool must, uint32_t most,
					struct err *e);

/* -------------------------------------------------------- lexicon.c ---- */

/* Tokens by their bytes; threads may share it.  Special tokens are none. */
struct qwen_lexicon;
struct qwen_lexicon *qwen_lexicon_new(const struct qwen_tokenizer *t);
void qwen_lexicon_free(struct qwen_lexicon *l);

/* -------------------------------------------------------- matcher.c ---- */

/*
 * A text on its way.  States and their masks are kept, so that a state that was
 * there before costs O(vocabulary / 64) and another O(bytes of the lexicon), at
 * most.  Grammar and lexicon stay the caller's and outlive it.
 */
struct qwen_matcher;
struct qwen_matcher *qwen_matcher_new(const struct qwen_grammar *g,
				      const struct qwen_lexicon *l);
void qwen_matcher_free(struct qwen_matcher *m); /* NULL: nothing */
/*
 * Makes -infinity of the logits[vocab] of all tokens that may not come next,
 * stop[n_stops] included unless the text may end here.  `left` tokens may yet
 * come, this one too: none may that leaves too few to end the text, where each
 * byte is a token.  left is at least qwen_grammar_least() at the beginning.
 */
void qwen_matcher_mask(struct qwen_matcher *m, uint32_t left, float *logits,
		       uint32_t vocab, const uint32_t *stop, uint32_t n_stops);
/* Goes on by a token; false: it may not come. */
bool qwen_matcher_take(struct qwen_matcher *m, uint32_t id);
bool qwen_matcher_can_end(const struct qwen_matcher *m);
/* Is the text whole, so that nothing may follow? */
bool qwen_matcher_is_whole(const struct qwen_matcher *m);

#endif
