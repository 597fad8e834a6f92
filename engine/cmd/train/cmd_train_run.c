/*
 * engine/cmd/train/cmd_train_run.c - t0-qwen3 train: the steps.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/train/cmd_train.h"

static size_t batch_tokens(const struct qwen_school *s)
{
	return (size_t)s->how.rows * s->how.length;
}

/* ---- batches ---- */

/* The rows of a step; returns how many targets they have. */
static uint64_t fetch_rows(struct qwen_school *s)
{
	uint64_t rows = s->c->accumulate * s->how.rows, targets = 0;

	for (uint64_t i = 0; i < rows; i++) {
		size_t at = (size_t)i * s->how.length;
		targets += corpus_row(&s->rows, s->place.row + i, s->ids + at,
				      s->positions + at, s->targets + at);
	}
	s->place.row += rows;
	return targets;
}

static void put_batch(const struct qwen_school *s, size_t at)
{
	size_t bytes = batch_tokens(s) * sizeof(uint32_t);

	memcpy(train_data(s->x, s->g.ids), s->ids + at, bytes);
	memcpy(train_data(s->x, s->g.position), s->positions + at, bytes);
	memcpy(train_data(s->x, s->g.target), s->targets + at, bytes);
}

/* Of the batch that ran last, in nats, summed. */
static double batch_loss(const struct qwen_school *s)
{
	const float *loss = train_data(s->x, s->g.loss);
	double sum = 0;

	for (size_t i = 0; i < batch_tokens(s); i++)
		sum += loss[i];
	return sum;
}

/* f16: says a step that overflowed. */
static void follow_scale(struct qwen_school *s)
{
	double was = s->place.loss_scale;

	if (!train_scale_follow(s->x, &s->rule, s->norm, &s->place))
		cmd_remark(&s->c->cmd,
			   "step %llu: skipped, f16 overflows with "
			   "the loss times %g; from now on times %g",
			   (unsigned long long)s->place.step, was,
			   s->place.loss_scale);
}

/* A step's batches, and their losses. */
struct step {
	struct qwen_school *s;
	double sum;
};

static void put_one(void *ctx, uint64_t i)
{
	const struct step *at = ctx;

	put_batch(at->s, (size_t)i * batch_tokens(at->s));
}

static void add_loss(void *ctx, uint64_t i)
{
	struct step *at = ctx;

	(void)i;
	at->sum += batch_loss(at->s);
}

static bool take_step(struct qwen_school *s, double *loss, struct err *e)
{
	uint64_t targets = fetch_rows(s);
	struct step at = { .s = s };
	const struct train_batches all = { s->c->accumulate, put_one, add_loss,
					   &at };

	train_scale(s->x, targets ? 1 / (float)targets : 0);
	if (!train_run_batches(s->x, &all, e))
		return false;
	*loss = targets ? at.sum / (double)targets : 0;
	if (!train_update(s->x, &s->rule, s->place.step, &s->norm, e))
		return false;
	follow_scale(s);
	s->broken = isfinite(s->norm) && isfinite(*loss) ? 0 : s->broken + 1;
	if (s->broken && s->g.type != QWEN_W_F16)
		cmd_remark(&s->c->cmd,
			   "step %llu: the loss is %g and the "
			   "gradients' length %g; nothing is learnt from it",
			   (unsigned long long)s->place.step, *loss, s->norm);
	s->place.step++;
	s->place.tokens += s->c->accumulate * batch_tokens(s);
	return s->broken < (s->g.type == QWEN_W_F16 ? 32 : 10) ||
	       err_set(e, ERR_DEVICE,
		       "%u steps in a row gave no numbers; "
		       "wanted a lower --rate, more --warmup or --clip",
		       s->broken);
}

/* ---- what is held out ---- */

/* Bytes of the text that targets stand for. */
static uint64_t target_bytes(const struct qwen_school *s, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		size_t bytes = 0;
		bool special = false;

		if (s->targets[i] != CORPUS_IGNORE &&
		    qwen_token_bytes(s->tok, s->targets[i], &bytes, &special) &&
		    !special)
			sum += bytes;
	}
	return sum;
}

/* *done: it was not stopped half-way. */
static bool look_at_held(struct qwen_school *s, struct qwen_lesson *l,
			 bool *done, struct err *e)
{
	uint64_t targets = 0, bytes = 0;
	size_t n = batch_tokens(s);
	double sum = 0;

	l->valid = l->bits_per_byte = NAN;
	*done = !s->held.c;
	if (*done)
		return true;
	for (uint64_t row = 0; row < s->held.n; row += s->how.rows) {
		if (*s->c->stop)
			return true;
		memset(s->targets, 0xff, n * sizeof(*s->targets));
		for (uint64_t i = 0; i < s->how.rows && row + i < s->held.n;
		     i++) {
			size_t at = (size_t)i * s->how.length;
			targets += corpus_row(&s->held, row + i, s->ids + at,
					      s->positions + at,
					      s->targets + at);
		}
		put_batch(s, 0);
		if (!train_run(s->x, 0, s->g.forward, e))
			return false;
		sum += batch_loss(s);
		bytes += target_bytes(s, n);
	}
	l->valid = sum / (double)targets;
	if (bytes)
		l->bits_per_byte = sum / log(2) / (double)bytes;
	*done = true;
	return true;
}

/* ---- what is said ---- */

/* Tokens a second, and the share of the multiply-adds of the processor. */
static double speed_of(const struct qwen_school *s, double *share)
{
	double seconds = (double)(time_mono_ns() - s->begin_ns) * 1e-9;
	double tokens = (double)(s->place.tokens - s->begin_tokens);

	*share = s->fma > 0 ?
			 train_flop(&s->g) * tokens / (double)batch_tokens(s) /
				 seconds / s->fma :
			 0;
	return tokens / seconds;
}

/* Fields have two blanks between: as many as are less than `width` columns. */
static void keep_fields(struct buf *text, size_t width)
{
	while (text->len >= width) {
		size_t at = text->len;

		while (at > 1 && memcmp(text->data + at - 2, "  ", 2) != 0)
			at--;
		if (at <= 1)
			return;
		text->len = at - 2;
		text->data[text->len] = '\0';
	}
}

static void say_step(const struct qwen_school *s, double loss, bool line)
{
	double share, speed = speed_of(s, &share);
	uint64_t done = s->place.step - s->begin_step;
	uint64_t left = s->rule.steps - s->place.step;
	double seconds = (double)(time_mono_ns() - s->begin_ns) * 1e-9 /
			 (double)(done ? done : 1) * (double)left;
	char scale[96] = "";

	if (s->g.type == QWEN_W_F16)
		snprintf(scale, sizeof(scale),
			 "  loss times %g, %llu steps "
			 "skipped",
			 s->place.loss_scale,
			 (unsigned long long)s->place.skipped);
	qwen_school_show(s, loss, speed);
	if (s->c->cmd.quiet || (!line && !isatty(STDERR_FILENO)))
		return;
	char limit[48] = "";

	if (s->fma > 0)
		snprintf(limit, sizeof(limit), "%.0f %% of the FMA limit  ",
			 100 * share);
	struct buf text = { 0 };
	const size_t width = terminal_width(stderr);

	buf_printf(&text,
		   "step %llu of %llu  loss %.4f  %.0f s left  %.0f tok/s  %s"
		   "gradients %.3g  rate %.3g%s",
		   (unsigned long long)s->place.step,
		   (unsigned long long)s->rule.steps, loss, seconds, speed,
		   limit, s->norm, train_rate(&s->rule, s->place.step - 1),
		   scale);
	/* What is drawn again has one line of the terminal: the last ones go.
	 */
	if (width)
		keep_fields(&text, width);
	fprintf(stderr, "%s%s%s%s", width ? "\r" : "", text.data,
		width ? "\033[K" : "", line ? "\n" : "");
	buf_fini(&text);
}

/* ---- on the way ---- */

static bool save_place(struct qwen_school *s, struct err *e)
{
	char *path = qwen_school_path(s, "checkpoint");
	bool ok =
		train_checkpoint_write(s->x, path, s->about.data, &s->place, e);

	free(path);
	return ok;
}

static bool write_adapters(const struct qwen_school *s, struct err *e)
{
	char *dir = qwen_school_path(s, "adapter");
	bool ok = train_adapters_write(s->x, dir, s->c->model, e);

	free(dir);
	return ok;
}

/*
 * Looks at what is held out; the best so far becomes the folder's model.
 * *done: it was not stopped half-way, which must be done again.
 */
static bool take_stock(struct qwen_school *s, double loss, bool *done,
		       struct err *e)
{
	struct qwen_lesson l = {
		.step = s->place.step,
		.tokens = s->place.tokens,
		.loss = s->place.loss_sum / (double)s->place.loss_steps,
		.rate = train_rate(&s->rule, s->place.step - 1),
		.norm = s->norm,
	};
	double fma = s->peak ? qwen_roofline_fma(s->peak) : 0;

	s->fma = fma > s->fma ? fma : s->fma;
	say_step(s, loss, true);
	if (!look_at_held(s, &l, done, e))
		return false;
	if (!*done)
		return true;
	s->place.loss_sum = 0;
	s->place.loss_steps = 0;
	if (!qwen_log_add(s, &l, e))
		return false;
	qwen_school_show_held(s, &l);
	if (!isnan(l.valid))
		cmd_remark(&s->c->cmd,
			   "held out: loss %.4f, %.4f bits per "
			   "byte",
			   l.valid, l.bits_per_byte);
	if (!isnan(l.valid) && !(l.valid < s->place.best))
		return true;
	s->place.best = isnan(l.valid) ? INFINITY : l.valid;
	s->place.best_step = s->place.step;
	return train_write(s->x, s->into, s->how.average, e) &&
	       (!s->how.rank || write_adapters(s, e)) &&
	       qwen_school_sample(s, e);
}

static bool is_due(uint64_t step, uint64_t every, uint64_t steps)
{
	return step == steps || (every && step % every == 0);
}

bool qwen_school_run(struct qwen_school *s, struct err *e)
{
	bool ok = true, whole = s->place.step >= s->rule.steps;

	s->begin_ns = time_mono_ns();
	s->begin_step = s->place.step;
	s->begin_tokens = s->place.tokens;
	while (ok && !whole && !*s->c->stop) {
		double loss;

		ok = take_step(s, &loss, e);
		if (!ok)
			break;
		if (isfinite(loss)) {
			s->place.loss_sum += loss;
			s->place.loss_steps++;
		}
		say_step(s, loss, false);
		bool done = true;
		if (ok &&
		    is_due(s->place.step, s->c->eval_every, s->rule.steps))
			ok = take_stock(s, loss, &done, e);
		if (ok && done &&
		    (*s->c->stop ||
		     is_due(s->place.step, s->c->save_every, s->rule.steps)))
			whole = (ok = save_place(s, e)) &&
				s->place.step == s->rule.steps;
	}
	if (!ok || whole)
		return ok;
	return err_set(e, ERR_STOPPED,
		       s->c->sweep ? "the same command goes on" :
				     "the same command with --resume goes on");
}
