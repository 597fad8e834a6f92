/*
 * Texts of a batch are those that one sequence with a dense cache gives, for
 * random schedules: arrivals, cancels, few blocks or many, any budget; on the
 * processor and on a gfx1100 in software.  Some are JSON by a grammar, which
 * goes on where a text lost its blocks.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cpu/cpu.h"
#include "engine/gpu/gpu.h"
#include "engine/model/model.h"
#include "engine/serve/serve.h"
#include "engine/train/heads/heads.h"
#include "tests/speculate/eagle-folder.h"
#include "tests/tap.h"

enum {
	HIDDEN = 64,
	TEXTS = 24,
	MOST = 96,
	LENGTHS = 3,
	TYPES = 2,
	REQUESTS = 9
};
static const uint32_t chunks[LENGTHS] = { 16, 24, 5 };
static const enum qwen_weights caches[TYPES] = { QWEN_W_F32, QWEN_W_INT8 };

/* A request, and what a single run of it gives with pieces of each length. */
struct text {
	uint32_t ids[MOST], n, most;
	struct qwen_sampling how;
	bool json; /* that follows is an object, or its beginning */
	uint32_t out[TYPES][LENGTHS][MOST], n_out[TYPES][LENGTHS];
	double mean[TYPES][LENGTHS][HIDDEN]; /* vector of the prompt */
};

static struct text text[TEXTS];
static struct qwen_model model;
static struct qwen_grammar *json;
static struct qwen_lexicon *lexicon;
static char heads[64], eagle[64]; /* folders, for the model */

static uint32_t draw_below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)(random_next(seed) % n);
}

static bool is_stop(uint32_t id)
{
	for (uint32_t i = 0; i < model.config.n_stops; i++)
		if (model.config.stop[i] == id)
			return true;
	return false;
}

static bool forward_piece(struct qwen_state *s, const uint32_t *ids, uint32_t n)
{
	struct qwen_token t[MOST] = { 0 };
	struct err e = { 0 };

	for (uint32_t i = 0; i < n; i++)
		t[i] = (struct qwen_token){ .id = ids[i], .hidden = true };
	t[n - 1].logits = true;
	return qwen_forward(s, t, n, &e);
}

/* The next token of a text that is m's, or anything where that is NULL. */
static bool draw_single(const struct text *t, struct qwen_matcher *m,
			struct qwen_sampler *sampler, const float *logits,
			uint32_t left, uint32_t *id)
{
	const struct qwen_config *c = &model.config;
	float masked[1024];
	struct err e = { 0 };

	memcpy(masked, logits, c->vocab * sizeof(*masked));
	if (t->json)
		qwen_matcher_mask(m, left, masked, c->vocab, c->stop,
				  c->n_stops);
	return qwen_sample(sampler, masked, id, &e) &&
	       (!t->json || is_stop(*id) || qwen_matcher_take(m, *id));
}

static bool run_single(struct text *t, int type, int length)
{
	const uint32_t chunk = chunks[length];
	const struct qwen_shape shape = { 1,	MOST,
					  MOST, qwen_both(caches[type]),
					  NULL, 0 };
	struct qwen_sampler sampler;
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(&model, &shape, &e);
	struct qwen_matcher *m = qwen_matcher_new(json, lexicon);
	uint32_t n, id = 0, *out = t->out[type][length], n_out = 0;
	bool good =
		qwen_sampler_init(&sampler, &t->how, model.config.vocab, &e);

	memset(t->mean[type][length], 0, sizeof(t->mean[type][length]));
	for (uint32_t at = 0; at < t->n && good; at += n) {
		n = t->n - at < chunk ? t->n - at : chunk;
		good = forward_piece(s, t->ids + at, n);
		for (uint32_t i = 0; i < n * HIDDEN && good; i++)
			t->mean[type][length][i % HIDDEN] +=
				qwen_hidden(s, i / HIDDEN)[i % HIDDEN];
	}
	for (int i = 0; i < HIDDEN; i++)
		t->mean[type][length][i] /= t->n;
	for (uint32_t i = 0; i < t->n; i++)
		qwen_sampler_see(&sampler, t->ids[i]);
	while (good) {
		n = n_out || t->n % chunk == 1 || chunk == 1 ? 1 :
		    t->n % chunk			     ? t->n % chunk :
							       chunk;
		good = draw_single(t, m, &sampler, qwen_logits(s, n - 1),
				   t->most - n_out, &id);
		qwen_sampler_see(&sampler, id);
		out[n_out++] = id;
		if (!good || is_stop(id) || n_out == t->most ||
		    (t->json && qwen_matcher_is_whole(m)))
			break;
		good = forward_piece(s, &id, 1);
	}
	t->n_out[type][length] = n_out;
	qwen_matcher_free(m);
	qwen_sampler_fini(&sampler);
	qwen_state_free(s);
	return good;
}

/* Some begin alike, for blocks and longer. */
static bool make_texts(void)
{
	uint64_t seed = 99;
	bool good = true;

	for (int i = 0; i < TEXTS; i++) {
		struct text *t = &text[i];
		uint32_t like = i ? draw_below(&seed, (uint32_t)i) : 0;
		t->json = i % 5 == 2;
		t->most = 2 + draw_below(&seed, 23);
		t->n = 1 + draw_below(&seed, MOST - t->most);
		for (uint32_t j = 0; j < t->n; j++)
			t->ids[j] = draw_below(&seed, model.config.vocab);
		if (i % 4)
			memcpy(t->ids, text[like].ids,
			       draw_below(&seed, t->n) * sizeof(*t->ids));
		t->how = (struct qwen_sampling){ .temperature = i % 3,
						 .top_p = 1,
						 .repetition_penalty = 1.1,
						 .seed = (uint64_t)i };
		for (int j = 0; j < TYPES * LENGTHS; j++)
			good = run_single(t, j / LENGTHS, j % LENGTHS) && good;
	}
	return good;
}

/* One request of a schedule. */
struct asked {
	const uint32_t *want;
	const double *mean;	   /* wanted instead, or NULL */
	uint32_t want_n, n, leave; /* after so many tokens; 0: never */
	bool over, wrong;
};

static bool hear_token(void *ctx, void *who, const struct qwen_news *news)
{
	const enum qwen_end end = news->end;
	struct asked *a = who;

	(void)ctx;
	if (a->mean) {
		a->wrong = end != QWEN_END_POOLED ||
			   memcmp(a->mean, news->vector,
				  HIDDEN * sizeof(*a->mean));
		a->over = true;
		return true;
	}
	if (a->over || a->n == a->want_n || a->want[a->n] != news->token)
		a->wrong = true;
	else
		a->n++;
	a->over = end != QWEN_GOES_ON || a->n == a->leave || a->wrong;
	if (end != QWEN_GOES_ON && a->n != a->want_n)
		a->wrong = true;
	return a->n != a->leave && !a->wrong;
}

enum { LOOKUP, DRAFT, MEDUSA, EAGLE, KINDS };
static const char *const kinds[KINDS] = { "lookup", "draft", "medusa",
					  "eagle" };

struct sum {
	uint64_t preempted, found, proposed[KINDS], right[KINDS];
};

/* The model is its own draft. */
static struct qwen_proposer *proposer_new(void *ctx, struct qwen_state *state,
					  uint32_t sequence, struct err *e)
{
	const struct qwen_shape shape = { 1,	MOST,
					  MOST, qwen_both(QWEN_W_F32),
					  NULL, 0 };
	const struct qwen_sampling greedy = { .top_p = 1,
					      .repetition_penalty = 1 };
	const int *kind = ctx;

	return *kind == DRAFT  ? qwen_draft_new(&model, &shape, &greedy, e) :
	       *kind == MEDUSA ? qwen_medusa_new(heads, &model, false, state,
						 sequence, e) :
	       *kind == EAGLE  ? qwen_eagle_new(eagle, &model, MOST, state,
						sequence, e) :
				 qwen_lookup_new();
}

/* Medusa's as they begin, and a layer of EAGLE of random weights. */
static bool write_heads(const char *dir)
{
	struct eagle_folder f = { .hidden = HIDDEN,
				  .vocab = model.config.vocab,
				  .draft = model.config.vocab / 2 };
	struct train_medusa blank;
	struct err e = { 0 };
	bool good;

	snprintf(heads, sizeof(heads), "%s/heads", dir);
	snprintf(eagle, sizeof(eagle), "%s/eagle", dir);
	train_medusa_init(&blank, &model, 3, &e);
	good = train_medusa_write(&blank, heads, dir, &e) &&
	       eagle_folder_write(&f, eagle, 7);
	train_medusa_fini(&blank);
	eagle_folder_free(&f);
	return good;
}

static bool run_schedule(uint64_t seed, struct sum *sum)
{
	int type = (int)draw_below(&seed, 4) ? 0 : 1,
	    length = (int)draw_below(&seed, 3), kind = (int)(seed % KINDS);
	const struct qwen_batch_shape shape = {
		.sequences = 1 + draw_below(&seed, 12),
		.positions = MOST,
		.blocks = MOST / QWEN_BLOCK + 2 + draw_below(&seed, 20),
		.chunk = chunks[length],
		.budget = draw_below(&seed, 60),
		.cache = qwen_both(caches[type]),
		.speculate = model.backend->few == 1 ?
				     0 :
				     draw_below(&seed, QWEN_PROPOSED + 1),
		.proposer_new = kind == LOOKUP ? NULL : proposer_new,
		.proposer_ctx = &kind,
		.steady = seed % 3,
	};
	struct asked a[REQUESTS] = { 0 };
	struct qwen_batch_counts c;
	struct err e = { 0 };
	struct qwen_batch *b = qwen_batch_new(&model, &shape, &e);
	uint32_t n = 0, steps = 0;
	bool good = b != NULL;

	do {
		while (n < REQUESTS && draw_below(&seed, 3)) {
			const struct text *t = &text[draw_below(&seed, TEXTS)];
			struct qwen_ask ask = { .ids = t->ids,
						.n = t->n,
						.tokens = t->most,
						.how = t->how,
						.user = draw_below(&seed, 3),
						.who = &a[n] };
			if (t->json) {
				ask.grammar = json;
				ask.lexicon = lexicon;
			}
			if (!draw_below(&seed, 6)) {
				a[n].mean = t->mean[type][length];
				ask.pool = QWEN_POOL_MEAN;
				ask.tokens = 0;
				ask.grammar = NULL;
			}
			a[n].want = t->out[type][length];
			a[n].want_n = t->n_out[type][length];
			a[n].leave = draw_below(&seed, 5) ?
					     0 :
					     1 + draw_below(&seed, 9);
			good = good && qwen_batch_add(b, &ask, &e);
			n++;
		}
		if (n && !draw_below(&seed, 40)) {
			uint32_t i = draw_below(&seed, n);
			qwen_batch_cancel(b, &a[i]);
			a[i].over = true;
		}
		good = good && qwen_batch_step(b, hear_token, NULL, &e);
		qwen_batch_count(b, &c);
	} while (good && (n < REQUESTS || c.running + c.waiting) &&
		 ++steps < 5000);
	for (uint32_t i = 0; i < n; i++)
		good = good && a[i].over && !a[i].wrong;
	if (!good || c.blocks_left != shape.blocks)
		diag("%s, %u steps, %u of %u blocks left", e.msg, steps,
		     c.blocks_left, shape.blocks);
	sum->preempted += c.preempted;
	sum->found += c.found_tokens;
	sum->proposed[kind] += c.proposed;
	sum->right[kind] += c.right;
	good = good && c.blocks_left == shape.blocks;
	qwen_batch_free(b);
	return good;
}

static void test_refuses(void)
{
	const struct qwen_batch_shape guesses = { .sequences = 2,
						  .positions = 64,
						  .blocks = 5,
						  .chunk = 16,
						  .budget = 16,
						  .speculate =
							  QWEN_PROPOSED + 1 };
	const struct qwen_batch_shape shape = { .sequences = 2,
						.positions = 64,
						.blocks = 5,
						.chunk = 16,
						.budget = 16,
						.cache =
							qwen_both(QWEN_W_F32) };
	const uint32_t ids[70] = { 0 }, high = model.config.vocab;
	struct err e = { 0 };
	struct qwen_batch *b = qwen_batch_new(&model, &shape, &e);
	struct qwen_ask ask = {
		.ids = ids,
		.n = 60,
		.tokens = 5,
		.how = { .top_p = 1, .repetition_penalty = 1 },
	};

	ok(!qwen_batch_new(&model, &guesses, &e) && e.code == ERR_USAGE,
	   "more proposals than a pass takes are refused");
	e = (struct err){ 0 };
	ok(!qwen_batch_add(b, &ask, &e) && e.code == ERR_USAGE,
	   "a text longer than the context is refused");
	ask.n = 0;
	ok(!qwen_batch_add(b, &ask, &e), "and one without tokens");
	ask.ids = &high;
	ask.n = 1;
	ok(!qwen_batch_add(b, &ask, &e), "and one of unknown tokens");
	ask.ids = ids;
	ask.how.temperature = -1;
	ok(!qwen_batch_add(b, &ask, &e), "and a temperature below 0");
	qwen_batch_free(b);
}

/* Schedules of a backend, of which `seed` is the first. */
static void test_backend(const char *dir, const struct qwen_load *load,
			 struct threads *threads, uint64_t seed, uint64_t all)
{
	struct err e = { 0 };
	struct sum sum = { 0 };
	uint64_t good = 0;

	if (!ok(qwen_model_load(&model, dir, load, threads, &e),
		"a model on %s", load->backend->name)) {
		diag("%s", e.msg);
		return;
	}
	ok(make_texts() && write_heads(dir), "single runs");
	while (good < all && run_schedule(seed + good, &sum))
		good++;
	is_u64(good, all, "schedules whose texts are all right");
	diag("%llu preemptions, %llu tokens found in the cache",
	     (unsigned long long)sum.preempted, (unsigned long long)sum.found);
	ok(sum.preempted > all / 10 && sum.found > all,
	   "some lost their blocks, and some found their beginning");
	for (int i = 0; i < KINDS && load->backend == &qwen_cpu; i++) {
		diag("%s: %llu of %llu proposals right", kinds[i],
		     (unsigned long long)sum.right[i],
		     (unsigned long long)sum.proposed[i]);
		/* A layer that has learnt nothing knows nothing. */
		ok((sum.right[i] > 0 || i == EAGLE) &&
			   sum.proposed[i] > sum.right[i] + all / 4,
		   "%s: some proposals were right, some wrong", kinds[i]);
	}
	test_refuses();
	qwen_model_close(&model);
}

int main(void)
{
	char dir[] = "/tmp/t0-batch-XXXXXX", command[64];
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 3 };
	struct qwen_load load = { .backend = &qwen_cpu };
	struct err e = { 0 };
	struct threads *threads = threads_new(1, &e);
	struct qwen_tokenizer *tok;
	const bool slow = getenv("T0_SLOW");

	if (!mkdtemp(dir) || !qwen_shape_find("tiny", &how.config, &e) ||
	    !qwen_synthetic_write(dir, &how, &e))
		skip_all("no model: %s", e.msg);
	is_u64(how.config.hidden, HIDDEN, "the model is as wide as thought");
	tok = qwen_tokenizer_load(dir, &e);
	lexicon = qwen_lexicon_new(tok);
	json = qwen_grammar_json();
	/* The processor's model has an Engram, which needs to know the text. */
	how.config.engram = (struct qwen_engram){ 61, 1 };
	ok(qwen_synthetic_write(dir, &how, &e), "and has a table: %s", e.msg);
	test_backend(dir, &load, threads, 1, slow ? 10000 : 100);
	how.config.engram.rows = 0;
	ok(qwen_synthetic_write(dir, &how, &e), "and none: %s", e.msg);
	load.backend = &qwen_gpu;
	load.device = "soft";
	test_backend(dir, &load, threads, 1, slow ? 2000 : 20);
	qwen_grammar_free(json);
	qwen_lexicon_free(lexicon);
	qwen_tokenizer_free(tok);
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the model is gone");
	return plan_done();
}
