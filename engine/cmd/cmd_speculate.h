/* cmd_speculate - speculation as the options of generate and bench ask for it.
 */
#ifndef T0_ENGINE_CMD_SPECULATE_H
#define T0_ENGINE_CMD_SPECULATE_H

#include "engine/cmd/cmd.h"
#include "engine/speculate/speculate.h"

struct qwen_guess {
	struct qwen_speculation s; /* state and sampler are the caller's */
	struct qwen_model draft;
	bool loaded;
};
/* As --speculate has it, or the option that implies it; NULL: a token a pass.
 */
const char *qwen_guess_name(const struct qwen_cmd *c);
/*
 * For texts of at most so many positions, in sequence 0 of the state, which is
 * empty; without the options a token a pass.
 * Whether it succeeds or not, qwen_guess_close() ends it.
 */
bool qwen_guess_open(struct qwen_guess *g, const struct qwen_cmd *c,
		     const struct qwen_session *s, struct qwen_state *state,
		     uint32_t positions, const struct qwen_sampling *how,
		     struct err *e);
void qwen_guess_close(struct qwen_guess *g);

/* Who proposes for many texts, in the sequences of one state. */
struct qwen_guesses {
	const struct qwen_cmd *c;
	const struct qwen_session *s;
	const struct qwen_guess_kind *kind;
	uint32_t positions; /* of a text, at most */
	struct qwen_model draft;
	bool loaded;
};
/*
 * How many tokens may be proposed at once; 0: the options do not ask for it.
 * Whether it succeeds or not, qwen_guesses_close() ends it, behind the last
 * proposer.
 */
bool qwen_guesses_open(struct qwen_guesses *g, const struct qwen_cmd *c,
		       const struct qwen_session *s, uint32_t positions,
		       uint32_t *most, struct err *e);
/* As struct qwen_batch_shape wants it; ctx: what was opened. */
struct qwen_proposer *qwen_guesses_new(void *ctx, struct qwen_state *state,
				       uint32_t sequence, struct err *e);
void qwen_guesses_close(struct qwen_guesses *g);

#endif
