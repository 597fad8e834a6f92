/*
 * engine/speculate/speculate.c - a pass with proposals, and what of them is
 * taken.
 */
#include "engine/speculate/speculate.h"

void qwen_proposer_free(struct qwen_proposer *p)
{
	if (p)
		p->free(p);
}

bool qwen_speculation_init(struct qwen_speculation *s,
			   const struct qwen_model *m, uint32_t most,
			   struct err *e)
{
	uint32_t few = m->backend->few - 1;

	few = few < QWEN_PROPOSED ? few : QWEN_PROPOSED;
	if (!few)
		return err_set(e, ERR_USAGE,
			       "speculation with --backend %s: "
			       "several tokens of one pass are not known to "
			       "be those of passes of one there; wanted cpu",
			       m->backend->name);
	if (most > few)
		return err_set(e, ERR_USAGE,
			       "%u proposals at once; a pass of "
			       "--backend %s takes at most %u",
			       most, m->backend->name, few);
	qwen_pace_init(&s->pace, most ? most : few);
	return true;
}

/* None where that is likely to be slower. */
static bool ask_proposer(struct qwen_speculation *s,
			 const struct qwen_ids *text, uint32_t room,
			 struct qwen_proposal *out, struct err *e)
{
	uint32_t k;

	if (!s->proposer)
		return true;
	k = s->steady ? s->pace.most :
			qwen_pace_longest(&s->pace, s->proposer->kinds);
	k = k < room ? k : room;
	if (!k)
		return true;
	if (!s->proposer->propose(s->proposer, text, k, out, e))
		return false;
	k = s->steady ? k : qwen_pace_length(&s->pace, out->kind);
	out->n = out->n < k ? out->n : k;
	return true;
}

/* The last token and the proposals behind it. */
static bool run_pass(const struct qwen_speculation *s, uint32_t last,
		     const struct qwen_proposal *p, struct err *e)
{
	struct qwen_token t[QWEN_PROPOSED + 1];
	uint32_t parent[QWEN_PROPOSED + 1] = { QWEN_ROOT };

	for (uint32_t i = 0; i <= p->n; i++)
		t[i] = (struct qwen_token){ .id = i ? p->id[i - 1] : last,
					    .logits = true };
	for (uint32_t i = 0; i < p->n && p->tree; i++)
		parent[i + 1] = p->parent[i];
	return p->tree ? qwen_forward_tree(s->state, t, parent, p->n + 1, e) :
			 qwen_forward(s->state, t, p->n + 1, e);
}

/* The token of the pass that says `id` behind token i of it; 0: none does. */
static uint32_t follow_token(const struct qwen_proposal *p, uint32_t i,
			     uint32_t id)
{
	if (!p->tree)
		return i < p->n && p->id[i] == id ? i + 1 : 0;
	for (uint32_t k = i; k < p->n; k++)
		if (p->parent[k] == i && p->id[k] == id)
			return k + 1;
	return 0;
}

/*
 * Appends what the model says, as far as it says what was proposed; the state
 * holds that.
 */
static bool take_tokens(const struct qwen_speculation *s,
			const struct qwen_proposal *p, struct qwen_ids *text,
			struct err *e)
{
	const uint32_t vocab = s->sampler->vocab;
	uint32_t id, next, i = 0;

	for (;; i = next) {
		const float *logits = qwen_logits(s->state, i);
		if (!(i < p->n && p->odds ?
			      qwen_sample_proposed(s->sampler, logits, p->id[i],
						   p->odds + (size_t)i * vocab,
						   &id, e) :
			      qwen_sample(s->sampler, logits, &id, e)))
			return false;
		qwen_ids_add(text, id);
		qwen_sampler_see(s->sampler, id);
		next = follow_token(p, i, id);
		if (!next)
			break;
	}
	if (p->tree)
		qwen_state_take(s->state, i);
	else
		qwen_state_truncate(s->state, 0, (uint32_t)text->n - 1);
	return true;
}

/* Tokens of the longest path. */
static uint32_t depth_of(const struct qwen_proposal *p)
{
	uint32_t deep[QWEN_PROPOSED + 1] = { 0 }, most = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		deep[i + 1] = deep[p->tree ? p->parent[i] : i] + 1;
		most = deep[i + 1] > most ? deep[i + 1] : most;
	}
	return most;
}

bool qwen_speculation_begin(const struct qwen_speculation *s,
			    const struct qwen_ids *text, struct err *e)
{
	struct qwen_proposal p = { 0 };

	return !s->proposer ||
	       s->proposer->propose(s->proposer, text, 1, &p, e);
}

bool qwen_speculate(struct qwen_speculation *s, struct qwen_ids *text,
		    uint32_t room, struct err *e)
{
	const size_t before = text->n;
	struct qwen_proposal p = { 0 };

	const uint64_t begin = time_mono_ns();
	if (!ask_proposer(s, text, room - 1, &p, e))
		return false;
	const uint64_t asked = time_mono_ns();
	if (!run_pass(s, text->v[text->n - 1], &p, e) ||
	    !take_tokens(s, &p, text, e))
		return false;
	const uint32_t right = (uint32_t)(text->n - before) - 1;
	const double propose_s = (double)(asked - begin) * 1e-9;
	const double pass_s = (double)(time_mono_ns() - asked) * 1e-9;

	qwen_pace_see(&s->pace, p.kind, p.n, depth_of(&p), right, propose_s,
		      pass_s);
	s->counts.passes++;
	s->counts.tokens += right + 1;
	s->counts.tried += p.n > 0;
	s->counts.proposed += p.n;
	s->counts.right += right;
	s->counts.propose_s += propose_s;
	s->counts.pass_s += pass_s;
	return true;
}
