/*
 * engine/cmd/serve/cmd_serve.c - t0-qwen3 serve: the loop that writes texts.
 *
 * One thread has the batch; handlers of connections (cmd_serve_http.c) give it
 * jobs and wait for their texts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/vec.h"
#include "base/panel/panel.h"
#include "engine/cmd/serve/cmd_serve.h"

bool serve_submit(struct server *s, struct job *j)
{
	bool fits;

	pthread_mutex_lock(&s->lock);
	fits = !s->closing && s->jobs < s->c->queue;
	if (fits) {
		struct job **at = &s->fresh;
		while (*at)
			at = &(*at)->next;
		*at = j;
		s->jobs++;
		s->requests++;
		j->going = j->n_choices;
		j->known = true;
		pthread_cond_signal(&s->work);
	} else {
		s->refused++;
	}
	pthread_mutex_unlock(&s->lock);
	return fits;
}

void serve_leave(struct server *s, struct job *j)
{
	pthread_mutex_lock(&s->lock);
	j->cancelled = j->cancelled || j->going;
	pthread_cond_signal(&s->work);
	while (j->known)
		pthread_cond_wait(&s->told, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* ---- texts ---- */

/* It ends before it is done. */
static void break_off(struct job *j, unsigned status, const char *why)
{
	j->broken = why;
	j->status = status;
}

/* A token with those that were likely. */
struct told {
	struct qwen_likely said, top[MOST_LIKELY];
};

static void add_word(struct choice *c, const struct told *t)
{
	const struct word w = { t->said, c->text.len + c->decoder.n_held };

	vec_push(&c->words, w);
	for (uint32_t i = 0; i < c->job->likely; i++)
		vec_push(&c->likely, t->top[i]);
}

/* Words whose text was cut are not told. */
static void cut_words(struct choice *c)
{
	while (c->words.n && c->words.v[c->words.n - 1].from >= c->text.len)
		c->words.n--;
}

/* Bytes of the text that no form is wanted of: those before its first call. */
static size_t free_length(const struct choice *c)
{
	const char *call = c->job->calls == CALLS_NONE || !c->text.data ?
				   NULL :
				   memmem(c->text.data, c->text.len,
					  QWEN_CALL_BEGIN,
					  strlen(QWEN_CALL_BEGIN));

	return call ? (size_t)(call - c->text.data) : c->text.len;
}

/* Cuts the text before the first stop string in what is new and free. */
static bool cut_stop(struct choice *c, size_t from)
{
	const struct job *j = c->job;
	const size_t end = j->n_stops ? free_length(c) : 0;
	const char *first = NULL;

	from = from > j->longest ? from - j->longest : 0;
	for (size_t i = 0; i < j->n_stops && from < end; i++) {
		const char *at = memmem(c->text.data + from, end - from,
					j->stop[i], strlen(j->stop[i]));
		if (at && (!first || at < first))
			first = at;
	}
	if (first)
		c->text.len = (size_t)(first - c->text.data);
	return first;
}

/* A text's vector, brought to length 1. */
static void hear_vector(struct choice *c, const double *vector)
{
	const uint32_t n = c->job->s->session.model.config.hidden;
	float *v = xcalloc(n, sizeof(*v));
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += vector[i] * vector[i];
	for (uint32_t i = 0; i < n && sum > 0; i++)
		v[i] = (float)(vector[i] / sqrt(sum));
	pthread_mutex_lock(&c->job->s->lock);
	if (isfinite(sum))
		c->finish = "stop";
	else
		break_off(c->job, 500, "the model's vectors are no numbers");
	c->vector = v;
	c->job->going -= isfinite(sum);
	pthread_mutex_unlock(&c->job->s->lock);
}

static bool hear_token(void *ctx, void *who, const struct qwen_news *news)
{
	struct server *s = ctx;
	struct choice *c = who;
	struct job *j = c->job;
	enum qwen_end end = news->end;
	bool is_text = end == QWEN_GOES_ON || end == QWEN_END_LENGTH ||
		       end == QWEN_END_WHOLE,
	     cut, more;
	struct told told = { .said.id = news->token };
	size_t from;

	if (end == QWEN_END_POOLED) {
		hear_vector(c, news->vector);
		return false;
	}
	if (is_text && j->logprobs)
		qwen_find_likely(news->logits, s->session.model.config.vocab,
				 &told.said, told.top, j->likely);
	pthread_mutex_lock(&s->lock);
	from = c->text.len;
	c->tokens += end != QWEN_END_BROKEN;
	if (is_text) {
		if (j->logprobs)
			add_word(c, &told);
		qwen_detokenize(&c->decoder, s->session.tok, news->token,
				&c->text);
	}
	if (end != QWEN_GOES_ON)
		qwen_detokenize_end(&c->decoder, &c->text);
	if (end == QWEN_END_BROKEN)
		break_off(j, 500, "the model's logits are no numbers");
	cut = cut_stop(c, from);
	if (cut)
		cut_words(c);
	if (cut || end == QWEN_END_STOP || end == QWEN_END_WHOLE)
		c->finish = "stop";
	else if (end != QWEN_GOES_ON)
		c->finish = "length";
	j->going -= c->finish != NULL;
	more = !j->cancelled && !c->finish;
	pthread_mutex_unlock(&s->lock);
	return more;
}

/* ---- the loop ---- */

struct known {
	struct job **v;
	size_t n, cap;
};

static void add_choices(struct server *s, struct job *j)
{
	for (uint32_t i = 0; i < j->n_choices; i++) {
		const struct qwen_ids *ids = &j->prompts.v[i / j->n];
		struct qwen_ask ask = {
			.ids = ids->v,
			.n = (uint32_t)ids->n,
			.tokens = j->most,
			.grammar = j->grammar,
			.lexicon = s->lexicon,
			.pool = j->most ? QWEN_POOL_NONE : s->pool,
			.how = j->how,
			.user = j->user,
			.who = &j->choice[i],
		};
		ask.how.seed += i;
		if (!qwen_batch_add(s->batch, &ask, &j->refused)) {
			break_off(j, 400, j->refused.msg);
			j->cancelled = true;
			return;
		}
	}
}

/* Jobs that are over, or that nobody wants: the loop forgets them. */
static void forget_jobs(struct server *s, struct known *k)
{
	uint64_t now = time_mono_ns();
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++) {
		struct job *j = k->v[i];
		if (j->going && now > j->deadline_ns)
			break_off(j, 503,
				  "the request took longer than "
				  "the server allows (--timeout)");
		if (j->going && !j->cancelled && !j->broken) {
			k->v[n++] = j;
			continue;
		}
		for (uint32_t c = 0; c < j->n_choices; c++)
			qwen_batch_cancel(s->batch, &j->choice[c]);
		*(j->going ? &s->cancelled : &s->finished) += 1;
		s->jobs--;
		j->known = false;
	}
	k->n = n;
	qwen_batch_count(s->batch, &s->counts);
	pthread_cond_broadcast(&s->told);
}

/* Under the lock: takes what is new; waits where there is nothing to do. */
static void take_fresh(struct server *s, struct known *k)
{
	struct timespec until;

	if (!s->fresh && !k->n) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 50000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&s->work, &s->lock, &until);
	}
	for (struct job *j; (j = s->fresh);) {
		s->fresh = j->next;
		vec_push(k, j);
		add_choices(s, j);
	}
}

/* Ends those that are left; they are told so. */
static void drop_all(struct server *s, struct known *k, const char *why)
{
	pthread_mutex_lock(&s->lock);
	take_fresh(s, k);
	for (size_t i = 0; i < k->n; i++)
		if (k->v[i]->going) {
			break_off(k->v[i], 503, why);
			s->dropped++;
		}
	forget_jobs(s, k);
	pthread_mutex_unlock(&s->lock);
}

/* Until a signal, and then until all is written or the grace is over. */
static bool serve_loop(struct server *s, struct err *e)
{
	struct known k = { 0 };
	struct serve_shown shown = { 0 };
	uint64_t end_ns = UINT64_MAX;
	bool good = true;

	while (good && time_mono_ns() < end_ns) {
		pthread_mutex_lock(&s->lock);
		if (*s->c->stop && !s->closing) {
			s->closing = true;
			end_ns = time_mono_ns() + s->c->grace * 1000000000;
		}
		take_fresh(s, &k);
		forget_jobs(s, &k);
		serve_cut_peers(s);
		serve_show(s, s->panel, &shown);
		pthread_mutex_unlock(&s->lock);
		if (s->closing && !k.n)
			break;
		if (k.n)
			good = qwen_batch_step(s->batch, hear_token, s, e);
	}
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_mutex_unlock(&s->lock);
	drop_all(s, &k, "the server ends");
	vec_fini(&k);
	return good;
}

/* ---- the command ---- */

static bool key_read(struct server *s, struct err *e)
{
	struct buf b = { 0 };

	if (!s->c->key_file)
		return true;
	if (!file_read(s->c->key_file, 4096, &b, e))
		return false;
	buf_addc(&b, '\0');
	b.data[strcspn(b.data, "\r\n")] = '\0';
	s->key = b.data;
	return *s->key || err_set(e, ERR_INPUT,
				  "%s: the first line is empty; "
				  "wanted the key that clients send",
				  s->c->key_file);
}

/* What an option of numbers may be. */
static bool options_check(const struct qwen_cmd *c, struct err *e)
{
	const struct qwen_option all[] = {
		{ "sequences", c->sequences, 1, 1024 },
		{ "context", c->context, 1, UINT32_MAX / 2 },
		{ "chunk", c->chunk, 1, 1 << 20 },
		{ "tokens", c->tokens, 1, UINT32_MAX / 2 },
		{ "blocks", c->blocks, 0, UINT32_MAX / 2 },
		{ "port", c->port, 0, 65535 },
		{ "queue", c->queue, 1, 1 << 20 },
		{ "max-body", c->max_body, 1, UINT32_MAX },
		{ "timeout", c->timeout, 1, 1000000 },
		{ "receive", c->receive, 1, 1000000 },
		{ "grace", c->grace, 0, 1000000 },
	};

	return qwen_options_check(all, ARRAY_SIZE(all), e);
}

/* Once the tokenizer is there. */
static bool pooling_read(struct server *s, struct err *e)
{
	const char *how = s->c->pooling;
	const bool mean = !strcmp(how, "mean"), end = !strcmp(how, "end");

	s->pool = mean ? QWEN_POOL_MEAN : QWEN_POOL_LAST;
	if (!mean && !end && strcmp(how, "last"))
		return err_set(e, ERR_USAGE,
			       "--pooling %s; wanted last, mean or end", how);
	s->ends_texts = end;
	return !end ||
	       qwen_search_end(s->session.tok, s->session.model.config.vocab,
			       &s->text_end, e) ||
	       err_wrap(e, "--pooling end: %s", s->c->model);
}

static bool batch_open(struct server *s, struct err *e)
{
	struct qwen_cmd *c = s->c;
	const struct qwen_config *m = &s->session.model.config;
	struct qwen_batch_shape shape = { .cache = qwen_both(QWEN_W_F16) };

	if (c->context > m->max_positions)
		c->context = m->max_positions;
	shape.sequences = (uint32_t)c->sequences;
	shape.positions = (uint32_t)c->context;
	shape.chunk = shape.budget = (uint32_t)c->chunk;
	shape.blocks = c->blocks ? (uint32_t)c->blocks :
				   shape.sequences *
					   (shape.positions / QWEN_BLOCK + 2);
	if ((c->cache && !qwen_kinds_parse(c->cache, &shape.cache, e)) ||
	    !qwen_guesses_open(&s->guesses, c, &s->session, shape.positions,
			       &shape.speculate, e))
		return false;
	shape.proposer_new = qwen_guesses_new;
	shape.proposer_ctx = &s->guesses;
	s->batch = qwen_batch_new(&s->session.model, &shape, e);
	if (s->batch)
		qwen_batch_count(s->batch, &s->counts);
	return s->batch != NULL;
}

static bool serve_run(struct server *s, struct err *e)
{
	uint16_t port = (uint16_t)s->c->port;
	struct MHD_Daemon *d = serve_listen(s, &port, e);
	bool good;

	if (!d)
		return false;
	fprintf(s->c->cmd.out, "listening on http://%s:%u\n", s->c->bind, port);
	fflush(s->c->cmd.out);
	if (s->c->tui)
		s->panel = panel_open("t0-qwen3 serve", s->c->model);
	if (s->panel)
		panel_set(s->panel, "listening on", "http://%s:%u", s->c->bind,
			  port);
	good = serve_loop(s, e);
	panel_close(s->panel);
	serve_close(s, d, 5);
	cmd_remark(&s->c->cmd,
		   "%llu requests finished, %llu cancelled, %llu "
		   "refused, %llu dropped at the end",
		   (unsigned long long)s->finished,
		   (unsigned long long)(s->cancelled - s->dropped),
		   (unsigned long long)s->refused,
		   (unsigned long long)s->dropped);
	return good;
}

bool qwen_cmd_serve(struct cmd *r, struct err *e)
{
	struct server s = { .c = (struct qwen_cmd *)r,
			    .lock = PTHREAD_MUTEX_INITIALIZER,
			    .work = PTHREAD_COND_INITIALIZER,
			    .told = PTHREAD_COND_INITIALIZER };
	bool good;

	if (!options_check(s.c, e) ||
	    !qwen_session_open(&s.session, s.c, QWEN_WORDS, e))
		return false;
	s.lexicon = qwen_lexicon_new(s.session.tok);
	good = pooling_read(&s, e) && key_read(&s, e) && batch_open(&s, e) &&
	       serve_run(&s, e);
	qwen_batch_free(s.batch);
	qwen_guesses_close(&s.guesses);
	qwen_lexicon_free(s.lexicon);
	free(s.key);
	qwen_session_close(&s.session);
	return good;
}
