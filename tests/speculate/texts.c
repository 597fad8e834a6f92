/*
 * Speculation changes no token: greedy, and drawn where proposals are chosen,
 * texts are those of a token a pass, for every proposer and type of weights, on
 * a model that has learnt something.  What is slower than that is bounded, on a
 * clock of the test's own.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/speculate/speculate.h"
#include "engine/train/heads/heads.h"
#include "tests/speculate/eagle-folder.h"
#include "tests/tap.h"

enum { PROMPT = 48, TOKENS = 24, POSITIONS = PROMPT + TOKENS, BY = 5 };
static const char *const names[BY] = { "lookup", "draft", "wrong", "medusa",
				       "eagle" };

static struct threads *threads;
static char heads[64], eagle[64]; /* of the model at hand */

static uint32_t draw_below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(random_next(seed) % n);
}

/* The prompt and TOKENS more; `s` has neither state nor sampler. */
static bool write_text(struct qwen_speculation *s, struct qwen_state *state,
		       const struct qwen_sampling *how, uint32_t vocab,
		       const struct qwen_ids *prompt, struct qwen_ids *text)
{
	struct qwen_token t[PROMPT] = { 0 };
	const uint32_t n = (uint32_t)prompt->n;
	struct qwen_sampler sampler;
	struct err e = { 0 };
	uint32_t id;
	bool good = qwen_sampler_init(&sampler, how, vocab, &e);

	text->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		qwen_ids_add(text, prompt->v[i]);
		qwen_sampler_see(&sampler, prompt->v[i]);
		t[i] = (struct qwen_token){ .id = prompt->v[i],
					    .logits = i + 1 == n };
	}
	qwen_state_truncate(state, 0, 0);
	s->state = state;
	s->sampler = &sampler;
	good = good && qwen_forward(state, t, n, &e) &&
	       qwen_sample(&sampler, qwen_logits(state, n - 1), &id, &e) &&
	       qwen_speculation_begin(s, text, &e);
	if (good) {
		qwen_ids_add(text, id);
		qwen_sampler_see(&sampler, id);
	}
	while (good && text->n < n + TOKENS)
		good = qwen_speculate(s, text, (uint32_t)(n + TOKENS - text->n),
				      &e);
	if (!good)
		diag("%s", e.msg);
	qwen_sampler_fini(&sampler);
	return good;
}

/* ---- the same tokens ---- */

struct job {
	const struct qwen_model *m, *draft;
	const struct qwen_ids *corpus;
	struct qwen_state *state;
	uint64_t seed;
	uint64_t right[BY], proposed[BY];
};

static struct qwen_proposer *proposer_new(const struct job *j, int by,
					  const struct qwen_sampling *how)
{
	const struct qwen_shape shape = { 1,	  POSITIONS,
					  PROMPT, qwen_both(QWEN_W_F16),
					  NULL,	  0 };
	struct err e = { 0 };

	return by == 4 ?
		       qwen_eagle_new(eagle, j->m, POSITIONS, j->state, 0, &e) :
	       by == 3 ? qwen_medusa_new(heads, j->m, true, j->state, 0, &e) :
	       by == 0 ? qwen_lookup_new() :
	       by == 1 ? qwen_draft_new(j->draft, &shape, how, &e) :
			 qwen_wrong_new(j->m->config.vocab);
}

/* A piece of the corpus, its beginning repeated now and then. */
static void prompt_draw(struct job *j, struct qwen_ids *prompt)
{
	const uint32_t n = 1 + draw_below(&j->seed, PROMPT);
	const uint32_t from = draw_below(&j->seed, (uint32_t)j->corpus->n - n);
	const uint32_t period = draw_below(&j->seed, 3) ? n : n / 3 + 1;

	prompt->n = 0;
	for (uint32_t i = 0; i < n; i++)
		qwen_ids_add(prompt, j->corpus->v[from + i % period]);
}

/* One prompt with every proposer; `drawn`: not greedy. */
static bool is_same_text(struct job *j, const struct qwen_ids *prompt,
			 bool drawn)
{
	const struct qwen_sampling how = {
		.temperature = drawn ? 0.7 : 0,
		.top_k = 40,
		.top_p = 0.95,
		.repetition_penalty = draw_below(&j->seed, 4) ? 1 : 1.2,
		.seed = j->seed
	};
	const uint32_t vocab = j->m->config.vocab;
	struct qwen_ids plain = { 0 }, text = { 0 };
	struct qwen_speculation one = { 0 };
	struct err e = { 0 };
	bool good = write_text(&one, j->state, &how, vocab, prompt, &plain);

	for (int by = 0; by < BY && good; by++) {
		struct qwen_speculation s = { 0 };
		if (drawn && by == 1) /* of a distribution: other tokens */
			continue;
		good = qwen_speculation_init(
			&s, j->m, draw_below(&j->seed, QWEN_PROPOSED + 1), &e);
		s.steady = draw_below(&j->seed, 4);
		s.proposer = proposer_new(j, by, &how);
		good = good &&
		       write_text(&s, j->state, &how, vocab, prompt, &text);
		good = good && text.n == plain.n &&
		       !memcmp(text.v, plain.v, text.n * sizeof(*text.v));
		if (!good)
			diag("%s, %zu tokens of prompt%s", names[by], prompt->n,
			     drawn ? ", drawn" : "");
		j->proposed[by] += s.counts.proposed;
		j->right[by] += s.counts.right;
		qwen_proposer_free(s.proposer);
	}
	qwen_ids_fini(&plain);
	qwen_ids_fini(&text);
	return good;
}

/* `learnt`: the layer of EAGLE, too. */
static void test_same(const char *name, const struct qwen_model *m,
		      const struct qwen_model *draft,
		      const struct qwen_ids *corpus, bool learnt)
{
	const struct qwen_shape shape = { 1,	  POSITIONS,
					  PROMPT, qwen_both(QWEN_W_F16),
					  NULL,	  0 };
	/* Of five four are greedy. */
	const uint32_t wanted = getenv("T0_SLOW") ? 1250 : 50;
	struct job j = { .m = m, .draft = draft, .corpus = corpus, .seed = 17 };
	struct qwen_ids prompt = { 0 };
	struct err e = { 0 };
	uint32_t n = 0;

	j.state = qwen_state_new(m, &shape, &e);
	while (n < wanted) {
		prompt_draw(&j, &prompt);
		if (!is_same_text(&j, &prompt, n % 5 == 4))
			break;
		n++;
	}
	is_u64(n, wanted, "%s: prompts with the same tokens", name);
	for (int by = 0; by < BY; by++)
		diag("%s: of %s %llu of %llu proposals right", name, names[by],
		     (unsigned long long)j.right[by],
		     (unsigned long long)j.proposed[by]);
	ok(j.right[0] > 0 && j.right[1] > 0 && j.proposed[2] > 0,
	   "%s: some of lookup and draft are taken", name);
	ok(j.proposed[3] > 0 && j.proposed[4] > 0, "%s: heads propose", name);
	ok(!learnt || (j.right[3] > 0 && j.right[4] > 0),
	   "%s: and are right now and then, where they have learnt", name);
	ok(j.right[2] * 20 <= j.proposed[2], "%s: those of wrong hardly ever",
	   name);
	qwen_state_free(j.state);
	qwen_ids_fini(&prompt);
}

/* ---- models ---- */

static bool load_as(struct qwen_model *m, const char *path, bool convert,
		    enum qwen_weights type)
{
	const struct qwen_load how = { .convert = convert, .weights = type };
	struct err e = { 0 };

	return ok(qwen_model_load(m, path, &how, threads, &e), "%s as %s: %s",
		  path, qwen_weights_name(type), e.msg);
}

/* Tokens of the file that the model has learnt from. */
static bool corpus_read(const char *learnt, struct qwen_ids *ids)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	char path[PATH_MAX];
	struct qwen_tokenizer *tok = qwen_tokenizer_load(learnt, &e);
	struct qwen_encoder *x = tok ? qwen_encoder_new(tok) : NULL;
	bool good;

	snprintf(path, sizeof(path), "%s/text", learnt);
	good = x && file_read(path, 0, &text, &e) &&
	       qwen_encode(x, text.data, text.len, QWEN_PLAIN, ids, &e);
	qwen_encoder_free(x);
	qwen_tokenizer_free(tok);
	buf_fini(&text);
	return good;
}

static bool eagle_write(const struct qwen_model *m)
{
	struct eagle_folder f = { .hidden = m->config.hidden,
				  .vocab = m->config.vocab,
				  .draft = m->config.vocab / 2 };
	const bool good = eagle_folder_write(&f, eagle, 7);

	eagle_folder_free(&f);
	return good;
}

static void test_learnt(const char *learnt)
{
	static const enum qwen_weights types[] = { QWEN_W_F32, QWEN_W_BF16,
						   QWEN_W_INT8, QWEN_W_INT4 };
	struct qwen_ids corpus = { 0 };
	struct qwen_model m, draft;

	if (!ok(corpus_read(learnt, &corpus), "what was learnt is read") ||
	    !load_as(&draft, learnt, true, QWEN_W_INT4))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (!load_as(&m, learnt, true, types[i]))
			continue;
		test_same(qwen_weights_name(types[i]), &m, &draft, &corpus,
			  true);
		qwen_model_close(&m);
	}
	qwen_model_close(&draft);
	qwen_ids_fini(&corpus);
}

/* Rows of whole blocks of 256 are of a model of random weights. */
static void test_blocks(const char *dir)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 5 };
	char model[64], file[64];
	struct qwen_conversion to = { .from = model,
				      .to = file,
				      .typed = true,
				      .type = QWEN_W_Q4_K,
				      .threads = threads };
	struct qwen_ids corpus = { 0 };
	struct qwen_model m, draft;
	struct err e = { 0 };
	uint64_t seed = 3;

	snprintf(model, sizeof(model), "%s/model", dir);
	snprintf(file, sizeof(file), "%s/model.gguf", dir);
	qwen_shape_find("tiny", &how.config, &e);
	how.config.hidden = how.config.ffn = 256;
	how.config.heads = 8;
	how.config.vocab = 300;
	ok(qwen_synthetic_write(model, &how, &e) && qwen_model_convert(&to, &e),
	   "a model of q4_k: %s", e.msg);
	for (int i = 0; i < 3000; i++)
		qwen_ids_add(&corpus, draw_below(&seed, 300));
	if (load_as(&m, file, false, QWEN_W_Q4_K) &&
	    load_as(&draft, model, true, QWEN_W_INT8)) {
		struct train_medusa blank;
		train_medusa_init(&blank, &draft, 2, &e);
		ok(m.layer[0].q.type == QWEN_W_Q4_K &&
			   train_medusa_write(&blank, heads, model, &e) &&
			   eagle_write(&draft),
		   "it is of q4_k, with heads");
		train_medusa_fini(&blank);
		test_same("q4_k", &m, &draft, &corpus, false);
		qwen_model_close(&m);
		qwen_model_close(&draft);
	}
	qwen_ids_fini(&corpus);
}

/* ---- what it costs ---- */

/*
 * Seconds of `tokens` tokens, where a pass of n proposals takes 1 + n * more,
 * each proposal `ask` before that, and each is right with a probability.
 */
static double run_clock(uint32_t tokens, double more, double ask, double chance,
			uint64_t seed)
{
	struct qwen_pace p;
	double all = 0;

	qwen_pace_init(&p, QWEN_PROPOSED);
	for (uint32_t said = 0; said < tokens;) {
		const uint32_t n = qwen_pace_longest(&p, 1);
		/* A machine that is not alone. */
		const double noise = 0.9 + 0.2 * draw_below(&seed, 1000) / 1e3;
		uint32_t right = 0;
		while (right < n &&
		       (double)draw_below(&seed, 1000) < 1000 * chance)
			right++;
		qwen_pace_see(&p, 0, n, n, right, ask * n,
			      noise * (1 + n * more));
		all += ask * n + 1 + n * more;
		said += right + 1;
	}
	return all;
}

static void test_pace(void)
{
	static const double more[] = { 0.02, 0.1, 0.3, 1 }, asks[] = { 0, 0.2 };
	double worst = 0, worst_short = 0;

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		for (size_t k = 0; k < ARRAY_SIZE(asks); k++) {
			double t = run_clock(1000, more[i], asks[k], 0, i);
			double s = run_clock(128, more[i], asks[k], 0, i);
			worst = fmax(worst, t / 1000 - 1);
			worst_short = fmax(worst_short, s / 128 - 1);
		}
	diag("always wrong: %.1f %% of 1000 tokens, %.1f %% of 128",
	     100 * worst, 100 * worst_short);
	ok(worst <= 0.05, "proposals that are all wrong cost 5 %% at most");
	ok(worst_short <= 0.05, "of a short text, too");
	/* Of 7 right ones a pass gives 8 tokens in 1.7. */
	const double most = 1000 / 8.0 * 1.7;
	const double good = run_clock(1000, 0.1, 0, 1, 1);
	diag("always right: %.0f, at best %.0f", good, most);
	ok(good <= 1.15 * most, "proposals that are all right give nearly all");
	ok(run_clock(1000, 0.1, 0, 0.7, 1) < 600, "and most of them much");
	ok(run_clock(1000, 1, 0.1, 0.5, 1) <= 1050,
	   "where passes cost as much as their tokens it stays off");
}

static void test_refuses(const struct qwen_model *m)
{
	struct qwen_backend one = *m->backend;
	struct qwen_model other = *m;
	struct qwen_speculation s = { 0 };
	struct err e = { 0 };

	ok(!qwen_speculation_init(&s, m, QWEN_PROPOSED + 1, &e) &&
		   e.code == ERR_USAGE,
	   "more at once than a pass takes are refused");
	one.few = 1;
	other.backend = &one;
	e = (struct err){ 0 };
	ok(!qwen_speculation_init(&s, &other, 0, &e), "and a backend of one");
	has_str(e.msg, "wanted cpu", "which says what there is");
}

int main(void)
{
	char dir[] = "/tmp/t0-speculate-XXXXXX", command[2048], learnt[512];
	const char *build = getenv("T0_BUILD");
	struct err e = { 0 };
	struct qwen_model m;

	threads = threads_new(1, &e);
	snprintf(learnt, sizeof(learnt), "%s/learnt", build ? build : "");
	if (!build || !threads || !mkdtemp(dir))
		skip_all("T0_BUILD is not set");
	test_pace();
	ok(system("sh -c '. tests/tap.sh; . tests/engine/learnt.sh; "
		  "learnt_model' >/dev/null") == 0,
	   "a model that has learnt something");
	snprintf(heads, sizeof(heads), "%s/heads", dir);
	snprintf(eagle, sizeof(eagle), "%s/eagle", dir);
	snprintf(command, sizeof(command),
		 "%s/t0-qwen3 train -q --medusa 3 --model %s --data %s/text "
		 "--length 128 --steps 40 --rate 0.003 %s >/dev/null",
		 build, learnt, learnt, heads);
	ok(system(command) == 0, "its heads learn");
	snprintf(command, sizeof(command),
		 "%s/t0-qwen3 train -q --eagle 2 --model %s --data %s/text "
		 "--length 64 --rows 4 --steps 40 --rate 0.003 %s >/dev/null",
		 build, learnt, learnt, eagle);
	ok(system(command) == 0, "and a layer of EAGLE");
	test_learnt(learnt);
	test_blocks(dir);
	if (load_as(&m, learnt, false, QWEN_W_F32)) {
		test_refuses(&m);
		qwen_model_close(&m);
	}
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the models are gone");
	return plan_done();
}
