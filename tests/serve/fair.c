/*
 * Users of a batch are treated alike: who asks for much does not keep others
 * waiting.  Whatever each has asked for before, while two have more to come the
 * tokens that they get from then on differ by those of the texts that run.
 */
#include <stdlib.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "engine/serve/serve.h"
#include "tests/tap.h"

enum { USERS = 3, SEQUENCES = 2, TOKENS = 20, MOST = 40 };

/* A request, who asked for it, and when it came and ended, in steps. */
struct asked {
	uint32_t user, n, begun, ended;
	bool over;
};

struct run {
	struct qwen_batch *b;
	struct asked a[MOST];
	uint32_t n, step;
	uint32_t had[USERS], open[USERS]; /* tokens; requests */
};

static bool hear_token(void *ctx, void *who, const struct qwen_news *news)
{
	struct run *r = ctx;
	struct asked *a = who;

	if (!a->n++)
		a->begun = r->step;
	r->had[a->user]++;
	a->over = news->end != QWEN_GOES_ON;
	a->ended = r->step;
	r->open[a->user] -= a->over;
	return true;
}

static bool ask_texts(struct run *r, uint32_t user, uint32_t texts)
{
	struct err e = { 0 };
	bool good = true;

	for (uint32_t i = 0; i < texts && good; i++) {
		const uint32_t ids[] = { 10 + r->n, 3 + user };
		struct asked *a = &r->a[r->n++];
		const struct qwen_ask want = {
			.ids = ids,
			.n = 2,
			.tokens = TOKENS,
			.how = { .top_p = 1, .repetition_penalty = 1 },
			.user = 100 + user,
			.who = a
		};
		a->user = user;
		r->open[user]++;
		good = qwen_batch_add(r->b, &want, &e);
	}
	return good;
}

static bool step_batch(struct run *r)
{
	struct err e = { 0 };

	r->step++;
	return qwen_batch_step(r->b, hear_token, r, &e);
}

static struct run begin_run(struct qwen_model *m)
{
	const struct qwen_batch_shape shape = { .sequences = SEQUENCES,
						.positions = 64,
						.blocks = 32,
						.chunk = 16,
						.budget = 64,
						.cache =
							qwen_both(QWEN_W_F32) };
	struct err e = { 0 };

	m->config.n_stops = 0;
	return (struct run){ .b = qwen_batch_new(m, &shape, &e) };
}

/* Of two users with requests left, tokens since `from` differ by so many. */
static uint32_t worst_of(const struct run *r, const uint32_t *from)
{
	uint32_t worst = 0;

	for (uint32_t i = 0; i < USERS; i++)
		for (uint32_t k = 0; k < USERS; k++) {
			/* More than what runs is left of both. */
			if (r->open[i] <= SEQUENCES || r->open[k] <= SEQUENCES)
				continue;
			const uint32_t a = r->had[i] - from[i],
				       b = r->had[k] - from[k];
			worst = a > b && a - b > worst ? a - b : worst;
		}
	return worst;
}

/* One has asked for much and had some of it before the others come. */
static void test_shares(struct qwen_model *m)
{
	struct run r = begin_run(m);
	uint32_t worst = 0, at_once = 0, from[USERS];
	bool good = ask_texts(&r, 0, 16);

	while (r.had[0] < 3 * TOKENS && good)
		good = step_batch(&r);
	good = good && ask_texts(&r, 1, 8) && ask_texts(&r, 2, 8);
	for (int i = 0; i < USERS; i++)
		from[i] = r.had[i];
	while (r.open[0] + r.open[1] + r.open[2] && good) {
		const uint32_t now = worst_of(&r, from);
		good = step_batch(&r);
		worst = now > worst ? now : worst;
		at_once += r.had[1] && r.had[2] && r.open[0] > SEQUENCES;
	}
	ok(good, "three users get what they asked for");
	is_u64(r.had[0] + r.had[1] + r.had[2], r.n * TOKENS, "all of it");
	ok(at_once, "who comes later does not wait for all that was before");
	ok(worst <= SEQUENCES * TOKENS,
	   "meanwhile their shares differ by %u tokens, of texts of %d", worst,
	   TOKENS);
	qwen_batch_free(r.b);
}

/* Of one user the earliest request comes first. */
static void test_order(struct qwen_model *m)
{
	struct run r = begin_run(m);
	bool good = ask_texts(&r, 0, 9), in_order = true;

	while (r.open[0] && good)
		good = step_batch(&r);
	for (uint32_t i = 1; i < r.n; i++)
		in_order = in_order && r.a[i - 1].begun <= r.a[i].begun;
	ok(good && in_order, "requests of one user begin as they came");
	qwen_batch_free(r.b);
}

/* A single request behind many of another. */
static void test_single(struct qwen_model *m)
{
	struct run r = begin_run(m);
	uint32_t before = 0;
	bool good = ask_texts(&r, 0, 20) && step_batch(&r) &&
		    ask_texts(&r, 1, 1);

	while (r.open[0] + r.open[1] && good)
		good = step_batch(&r);
	for (uint32_t i = 0; i < 20; i++)
		before += r.a[i].ended < r.a[20].begun;
	ok(good && before <= SEQUENCES,
	   "%u of 20 texts of another end before a user's first token", before);
	qwen_batch_free(r.b);
}

int main(void)
{
	char dir[] = "/tmp/t0-fair-XXXXXX", command[64];
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 5 };
	const struct qwen_load load = { 0 };
	struct err e = { 0 };
	struct threads *threads = threads_new(1, &e);
	struct qwen_model m;

	if (!mkdtemp(dir) || !qwen_shape_find("tiny", &how.config, &e) ||
	    !qwen_synthetic_write(dir, &how, &e) ||
	    !qwen_model_load(&m, dir, &load, threads, &e))
		skip_all("no model: %s", e.msg);
	test_shares(&m);
	test_order(&m);
	test_single(&m);
	qwen_model_close(&m);
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ok(system(command) == 0, "the model is gone");
	return plan_done();
}
