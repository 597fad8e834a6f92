/*
 * engine/speculate - several tokens of a text from one pass: the manual.
 *
 * A proposer says which tokens may follow.  One pass computes what the model
 * says behind each of them, and those are taken that it would have said itself;
 * what follows the last of them comes from the same pass.  The cache is cut to
 * what was taken.
 *
 * What is said does not change.  Passes are of as few tokens as give each the
 * bits that it has alone (struct qwen_backend, `few`).  Where a proposal was
 * chosen, not drawn, the next token is drawn as ever and compared with it: the
 * same tokens as one by one, whatever the temperature.  Where it was drawn from
 * odds q, it is taken with probability min(1, p / q), else the token is drawn
 * from what p has more than q: other tokens, of the same distribution.
 *
 * Proposals may be a tree, several candidates for a place: what is drawn there
 * is looked up among them.
 *
 * How many are proposed follows what passes cost and how often proposals are
 * right (pace.c).  One thread at a time.
 */
#ifndef T0_ENGINE_SPECULATE_H
#define T0_ENGINE_SPECULATE_H

#include "engine/state/state.h"
#include "engine/text/text.h"

/* ------------------------------------------------------ the proposers ---- */

enum {
	QWEN_PROPOSED = 7, /* tokens at once, at most */
	QWEN_KINDS = 4	   /* of proposals */
};

struct qwen_proposal {
	uint32_t id[QWEN_PROPOSED], n;
	/*
	 * A tree: token i follows the text's last one where parent[i] is 0,
	 * else token parent[i] - 1, in the order of qwen_forward_tree();
	 * siblings differ.  None was drawn.
	 */
	bool tree;
	uint32_t parent[QWEN_PROPOSED];
	/* Below the proposer's `kinds`: those of one kind are right about as
	 * often. */
	uint32_t kind;
	/*
	 * [n][vocab], each of sum 1: what they were drawn from; the proposer's,
	 * until it is asked again.  NULL: each was chosen.
	 */
	const double *odds;
};

struct qwen_proposer {
	const char *name;
	uint32_t kinds; /* of its proposals */
	/*
	 * Or NULL: the next text is another one, of whose positions those
	 * before `from` were not computed by the state that it follows.
	 */
	void (*begin)(struct qwen_proposer *p, uint32_t from);
	/*
	 * At most k > 0 tokens that may follow the text, or none; the text only
	 * grows from call to call.  An error is one of the backend's.
	 */
	bool (*propose)(struct qwen_proposer *p, const struct qwen_ids *text,
			uint32_t k, struct qwen_proposal *out, struct err *e);
	void (*free)(struct qwen_proposer *p);
};
void qwen_proposer_free(struct qwen_proposer *p); /* may be NULL */

/* ---------------------------------------------------------- lookup.c ---- */

/*
 * What followed the last tokens of the text where they stood before: those of 4
 * tokens if there are such, else of 3, 2 or the last one; the latest place.
 */
struct qwen_proposer *qwen_lookup_new(void);
/*
 * The last token of the vocabulary over and over, which is hardly ever right:
 * what speculation costs that does not pay.
 */
struct qwen_proposer *qwen_wrong_new(uint32_t vocab);

/* ----------------------------------------------------------- draft.c ---- */

/*
 * What a smaller model says: its likeliest tokens, or with a temperature those
 * that it draws as the large one does.  `draft` outlives the proposer and has
 * the large model's vocabulary; shape->sequences is 1.
 */
struct qwen_proposer *qwen_draft_new(const struct qwen_model *draft,
				     const struct qwen_shape *shape,
				     const struct qwen_sampling *how,
				     struct err *e);

/* ---------------------------------------------------------- medusa.c ---- */

/*
 * Heads that each say one token more from what leaves the model's last layer,
 * as published: a folder with config.json ("medusa_num_heads",
 * "medusa_num_layers") and medusa_lm_head.safetensors, where head I has
 *
 *	I.J.linear.weight [hidden][hidden], I.J.linear.bias [hidden]
 *		x + silu(W x + b), for J below the layers L
 *	I.L.weight [vocab][hidden]
 *
 * Head 0 says the token behind the one that the model says.  `m` outlives them.
 */
struct qwen_medusa {
	const struct qwen_model *m;
	uint32_t n, blocks; /* heads; residual blocks of each */
	struct qwen_tensors tensors;
	struct arena mem;
	struct qwen_medusa_head {
		struct qwen_matrix *linear; /* [blocks] */
		const float **bias;	    /* [blocks][hidden] */
		struct qwen_matrix out;
	} * head;      /* [n] */
	float *x, *y;  /* [n][hidden] */
	float *logits; /* [n][vocab] */
};
#define QWEN_MEDUSA_BLOCKS 8 /* at most */
#define QWEN_MEDUSA_RANKS  3
/* ERR_INPUT: what is missing, or of another shape than the model wants. */
bool qwen_medusa_open(struct qwen_medusa *h, const char *dir,
		      const struct qwen_model *m, struct err *e);
void qwen_medusa_close(struct qwen_medusa *h);
/* The first n heads' logits of a position's hidden [hidden], not normalized. */
void qwen_medusa_run(struct qwen_medusa *h, const float *hidden, uint32_t n);
/*
 * A tree: of the paths through each head's QWEN_MEDUSA_RANKS likeliest tokens
 * the likeliest k tokens, were heads independent; or without `tree` the first k
 * heads' likeliest, one after the other.  The heads of `dir` follow a sequence
 * of the state, which is empty and outlives the proposer.
 */
struct qwen_proposer *qwen_medusa_new(const char *dir,
				      const struct qwen_model *m, bool tree,
				      struct qwen_state *state,
				      uint32_t sequence, struct err *e);

/* ----------------------------------------------------------- eagle.c ---- */

/*
 * EAGLE-3: one layer that goes on with the model's hidden states, as published:
 * a folder with config.json (sizes as Llama has them, "draft_vocab_size") and
 * model.safetensors, H the hidden size, Q and KV the widths of all heads:
 *
 *	fc.weight [H][3 H]	what enters the model's layers 2, half and third
 *				from the last, side by side
 *	midlayer.input_layernorm, .hidden_norm, .post_attention_layernorm [H]
 *	midlayer.self_attn.q_proj, .k_proj, .v_proj [Q or KV][2 H]	of the
 *				token's embedding and the hidden state, normed
 *	midlayer.self_attn.o_proj [H][Q], midlayer.mlp.gate_proj, .up_proj,
 *	.down_proj, norm [H], lm_head [draft vocabulary][H]
 *	d2t [draft vocabulary] I64	how far behind a token's number the
 *				model's number is
 *	t2d [vocabulary] BOOL	does the draft have it
 *	embed_tokens.weight	or else the model's
 *
 * `m` outlives it.
 */
struct qwen_eagle {
	const struct qwen_model *m;
	struct qwen_config config; /* of its layer */
	uint32_t vocab, positions;
	uint32_t first; /* entries before it are not there; the caller's */
	uint32_t tap[3];
	struct qwen_tensors tensors;
	struct arena mem;
	struct qwen_matrix fc, q, k, v, o, gate, up, down, out, embed;
	float *embed_norm, *hidden_norm, *ffn_norm, *norm;
	uint32_t *token; /* [vocab]: of the model; NULL: the same */
	/* of up to QWEN_FEW entries; x is what comes out */
	float *x, *h, *qs, *as, *gates, *ups;
	float *keys, *values; /* [positions][kv_heads][head_dim] */
	float *score, *cosine, *sine;
	float *logits; /* [vocab]: of the latest word */
};
/* Which of a model's layers it sees the entries of. */
void qwen_eagle_taps(const struct qwen_config *c, uint32_t tap[3]);
/* ERR_INPUT: what is missing, or of another shape than the model wants. */
bool qwen_eagle_open(struct qwen_eagle *h, const char *dir,
		     const struct qwen_model *m, uint32_t positions,
		     struct err *e);
void qwen_eagle_close(struct qwen_eagle *h);
/*
 * Entries from .. from + n - 1, n at least 1, of the model's hidden states
 * [n][3][hidden] and the tokens behind them; returns what comes out of the last
 * one [hidden].
 */
const float *qwen_eagle_read(struct qwen_eagle *h, const float *hidden,
			     const uint32_t *id, uint32_t from, uint32_t n);
/* Entry `at`, of what came out of the one before and of a token behind it. */
void qwen_eagle_guess(struct qwen_eagle *h, uint32_t id, uint32_t at);
/* The likeliest token behind the latest entry's. */
uint32_t qwen_eagle_say(struct qwen_eagle *h);
/*
 * The likeliest tokens, one after the other, of texts of so many positions.  It
 * follows a sequence of the state, which is empty and outlives the proposer.
 */
struct qwen_proposer *
qwen_eagle_new(const char *dir, const struct qwen_model *m, uint32_t positions,
	       struct qwen_state *state, uint32_t sequence, struct err *e);

/* ------------------------------------------------------------ pace.c ---- */

/*
 * How many tokens to propose.
 *
 * Of each length it knows the seconds of a pass, of each kind how often a
 * proposal was right whose predecessors were; it takes the length with the most
 * tokens a second.  Beside that it keeps an account, in seconds against one
 * token a pass: what speculation won, less what it lost, and a fiftieth of all
 * time.  Who would be below zero if the next proposals were all wrong does
 * not propose.  So proposals that are always wrong cost little more than that
 * fiftieth, and it is what looks again whether speculation pays by now.
 */
struct qwen_pace {
	uint32_t most;
	double pass[QWEN_PROPOSED + 1];	  /* seconds, of so many; 0: unknown */
	double propose;			  /* seconds, of one */
	uint32_t deep[QWEN_PROPOSED + 1]; /* tokens of a path of so many */
	double right[QWEN_KINDS];
	double account;
	uint32_t warm;	    /* passes of the beginning, without proposals */
	uint32_t since_one; /* passes since the last without proposals */
};
void qwen_pace_init(struct qwen_pace *p, uint32_t most);
/*
 * What is known of seconds, after another measurement: an exponential average,
 * in which what disturbs the machine for a while counts no more than twice.
 */
void qwen_pace_average(double *known_s, double now_s);
/* The chance that a proposal is right behind right ones, after `taken` of n. */
void qwen_pace_learn(double *right, uint32_t n, uint32_t taken);
/* Tokens of a pass with n proposals, each right with this chance: one at least. */
double qwen_pace_tokens(double right, uint32_t n);
/* How many of a kind, 0 .. most. */
uint32_t qwen_pace_length(const struct qwen_pace *p, uint32_t kind);
/* The longest of so many kinds. */
uint32_t qwen_pace_longest(const struct qwen_pace *p, uint32_t kinds);
/*
 * A pass that took `right` of n proposals, whose longest path has `deep` of
 * them, and its seconds.
 */
void qwen_pace_see(struct qwen_pace *p, uint32_t kind, uint32_t n,
		   uint32_t deep, uint32_t right, double propose_s,
		   double pass_s);

/* ------------------------------------------------------- speculate.c ---- */

struct qwen_speculation {
	struct qwen_state *state;     /* sequence 0 of it; the caller's */
	struct qwen_sampler *sampler; /* the caller's */
	/* The caller's; NULL: a token a pass. */
	struct qwen_proposer *proposer;
	struct qwen_pace pace;
	bool steady; /* as many as can be, whatever they cost */
	struct qwen_speculated {
		uint64_t passes, tokens;
		uint64_t tried; /* passes with proposals */
		uint64_t proposed, right;
		double propose_s, pass_s;
	} counts;
};
/*
 * `most` tokens at once, at most; 0: as many as a pass of the model's backend
 * takes.  ERR_USAGE: that takes none, or fewer.
 */
bool qwen_speculation_init(struct qwen_speculation *s,
			   const struct qwen_model *m, uint32_t most,
			   struct err *e);
/* The proposer reads a text that begins, as its prompt: that takes time. */
bool qwen_speculation_begin(const struct qwen_speculation *s,
			    const struct qwen_ids *text, struct err *e);
/*
 * One pass: 1 .. room tokens that follow are appended to the text, and the
 * sampler has seen them.  Before, the state holds all of the text but its last
 * token, and so it does after.  A state of `text->n + room` positions is
 * enough.
 */
bool qwen_speculate(struct qwen_speculation *s, struct qwen_ids *text,
		    uint32_t room, struct err *e);

#endif
