/*
 * engine/cmd/train/cmd_train_heads.c - t0-qwen3 train --medusa and --eagle:
 * heads of a model learn which tokens come behind the next one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/panel/panel.h"
#include "engine/cmd/train/cmd_train.h"
#include "engine/train/heads/heads.h"

struct lesson {
	struct qwen_school s; /* what is learnt from, and how */
	struct qwen_model m;
	bool loaded;
	struct train_trunk trunk;
	const struct kind *kind;
	struct train_medusa medusa;
	struct train_eagle eagle;
	struct tape *tape;		 /* of one of them */
	uint32_t n;			 /* heads, or tokens in a row */
	float *hidden;			 /* [rows * length][taps][hidden] */
	uint32_t *said;			 /* [rows * length]: by the model */
	uint32_t *target[QWEN_PROPOSED]; /* [rows * length] */
	struct train_heads_sum learnt, held;
};

/* ---- what learns ---- */

static uint32_t medusa_taps(const struct qwen_config *c, uint32_t tap[3])
{
	tap[0] = c->layers;
	return 1;
}

static struct tape *medusa_init(struct lesson *x, struct err *e)
{
	train_medusa_init(&x->medusa, &x->m, x->n, e);
	return x->medusa.tape;
}

static struct tensor *medusa_loss(struct lesson *x, size_t rows,
				  struct train_heads_sum *sum)
{
	return train_medusa_loss(&x->medusa, x->hidden, rows * x->s.how.length,
				 (const uint32_t *const *)x->target, sum);
}

static bool medusa_write(const struct lesson *x, struct err *e)
{
	return train_medusa_write(&x->medusa, x->s.into, x->s.c->model, e);
}

static uint32_t eagle_taps(const struct qwen_config *c, uint32_t tap[3])
{
	qwen_eagle_taps(c, tap);
	return 3;
}

static struct tape *eagle_init(struct lesson *x, struct err *e)
{
	train_eagle_init(&x->eagle, &x->m, x->n, x->s.how.length, x->s.c->seed,
			 e);
	return x->eagle.tape;
}

static struct tensor *eagle_loss(struct lesson *x, size_t rows,
				 struct train_heads_sum *sum)
{
	return train_eagle_loss(&x->eagle, x->hidden, x->s.ids, x->s.positions,
				rows, x->s.how.length,
				(const uint32_t *const *)x->target, sum);
}

static bool eagle_write(const struct lesson *x, struct err *e)
{
	return train_eagle_write(&x->eagle, x->s.into, x->s.c->model, e);
}

static const struct kind {
	const char *option;
	bool follows; /* it learns what the model says, not what the text has */
	uint32_t (*taps)(const struct qwen_config *c, uint32_t tap[3]);
	struct tape *(*init)(struct lesson *x, struct err *e);
	struct tensor *(*loss)(struct lesson *x, size_t rows,
			       struct train_heads_sum *sum);
	bool (*write)(const struct lesson *x, struct err *e);
} kinds[] = {
	{ "--medusa", false, medusa_taps, medusa_init, medusa_loss,
	  medusa_write },
	{ "--eagle", true, eagle_taps, eagle_init, eagle_loss, eagle_write },
};

/* ---- steps ---- */

/* Rows from `row` on: hidden states, targets, and the loss of all heads. */
static struct tensor *look_at(struct lesson *x, struct corpus_rows *rows,
			      uint64_t row, uint32_t n_rows,
			      struct train_heads_sum *sum, struct err *e)
{
	struct qwen_school *s = &x->s;
	const uint32_t length = s->how.length;
	const size_t n = (size_t)n_rows * length;

	for (uint32_t i = 0; i < n_rows; i++)
		corpus_row(rows, row + i, s->ids + i * length,
			   s->positions + i * length, s->targets + i * length);
	if (!train_trunk_run(&x->trunk, s->ids, s->positions, n, x->hidden,
			     x->kind->follows ? x->said : NULL, e))
		return NULL;
	for (size_t i = 0; i < n && x->kind->follows; i++)
		if (s->targets[i] != TRAIN_IGNORE)
			s->targets[i] = x->said[i];
	for (uint32_t i = 0; i < n_rows; i++)
		for (uint32_t h = 0; h < x->n; h++)
			train_heads_target(h, s->positions + i * length,
					   s->targets + i * length, length,
					   x->target[h] + i * length);
	return x->kind->loss(x, n_rows, sum);
}

static bool take_step(struct lesson *x, uint64_t step, struct err *e)
{
	const uint32_t rows = x->s.how.rows;
	struct tensor *loss;

	x->learnt = (struct train_heads_sum){ 0 };
	loss = look_at(x, &x->s.rows, step * rows, rows, &x->learnt, e);
	if (!tape_backward(loss) ||
	    !tape_update(x->tape, &x->s.rule, step, &x->s.norm))
		return false;
	if (!isfinite(x->s.norm))
		return err_set(e, ERR_DEVICE,
			       "step %llu: gradients are no numbers; wanted a "
			       "lower --rate or --clip",
			       (unsigned long long)step);
	x->s.place.step = step + 1;
	x->s.place.tokens += (uint64_t)rows * x->s.how.length;
	const double seconds = (double)(time_mono_ns() - x->s.begin_ns) * 1e-9;
	qwen_school_show(&x->s, (double)loss->data[0] / x->n,
			 (double)x->s.place.tokens / seconds);
	if (!x->s.c->cmd.quiet && !x->s.panel && isatty(STDERR_FILENO))
		fprintf(stderr, "\rstep %llu of %llu  loss %.4f   ",
			(unsigned long long)step + 1,
			(unsigned long long)x->s.rule.steps,
			(double)loss->data[0] / x->n);
	tape_clear(x->tape);
	return true;
}

static bool look_at_held(struct lesson *x, struct err *e)
{
	if (!x->s.held.c)
		return true;
	for (uint64_t row = 0; row < x->s.held.n && !*x->s.c->stop; row++) {
		if (!look_at(x, &x->s.held, row, 1, &x->held, e))
			return false;
		tape_clear(x->tape);
	}
	if (*x->s.c->stop) /* a part of it is another text */
		x->held = (struct train_heads_sum){ 0 };
	return true;
}

static bool print_heads(const struct lesson *x, struct err *e)
{
	struct table t;

	table_init(&t, "#head,#loss,#valid_loss,#right");
	for (uint32_t h = 0; h < x->n; h++) {
		const struct train_heads_sum *a = &x->learnt, *b = &x->held;
		table_row(&t);
		table_cell(&t, 0, "%u", h);
		if (a->targets[h])
			table_cell(&t, 1, "%.6f",
				   a->loss[h] / (double)a->targets[h]);
		if (!b->targets[h])
			continue;
		table_cell(&t, 2, "%.6f", b->loss[h] / (double)b->targets[h]);
		table_cell(&t, 3, "%.4f",
			   (double)b->right[h] / (double)b->targets[h]);
	}
	bool ok = cmd_table(&x->s.c->cmd, &t, e);
	table_fini(&t);
	return ok;
}

static bool options_check(const struct lesson *x, uint64_t n, struct err *e)
{
	const struct qwen_cmd *c = x->s.c;
	const char *option = x->kind->option;

	if (c->medusa && c->eagle)
		return err_set(
			e, ERR_USAGE,
			"--medusa with --eagle; wanted one of both: each "
			"has a folder of its own");
	if (n > QWEN_PROPOSED)
		return err_set(e, ERR_USAGE, "%s %llu: wanted 1 to %d", option,
			       (unsigned long long)n, QWEN_PROPOSED);
	if (!c->model)
		return err_set(e, ERR_USAGE,
			       "%s without --model: heads belong to a "
			       "model that has learnt",
			       option);
	if (c->sweep || c->resume || c->lora || c->accumulate > 1 ||
	    (c->backend && strcmp(c->backend, "cpu") != 0) ||
	    strcmp(c->precision, "f32") != 0)
		return err_set(e, ERR_USAGE,
			       "%s with --sweep, --resume, --lora, "
			       "--accumulate, --precision or --backend: heads "
			       "learn in one run, in f32 on the processor",
			       option);
	return c->data.n ||
	       err_set(e, ERR_USAGE, "--data names nothing to learn from");
}

static bool lesson_open(struct lesson *x, struct err *e)
{
	struct qwen_school *s = &x->s;
	const struct qwen_load how = { .stop = s->c->stop };
	const uint64_t wanted = s->c->eagle ? s->c->eagle : s->c->medusa;
	uint32_t tap[3], taps;

	x->kind = &kinds[s->c->eagle > 0];
	if (!options_check(x, wanted, e) || !qwen_school_how(s, e) ||
	    !qwen_school_folder(s, e) ||
	    !(s->tok = qwen_tokenizer_load(s->c->model, e)) ||
	    !qwen_school_config(s, e) || !qwen_school_corpus(s, e))
		return false;
	x->n = (uint32_t)wanted;
	s->threads = threads_new((unsigned)s->c->threads, e);
	if (!s->threads)
		return false;
	x->loaded = qwen_model_load(&x->m, s->c->model, &how, s->threads, e);
	if (!x->loaded)
		return false;
	taps = x->kind->taps(&x->m.config, tap);
	if (!train_trunk_init(&x->trunk, &x->m, s->how.length, tap, taps, e))
		return false;
	const size_t n = (size_t)s->how.rows * s->how.length;
	s->ids = xcalloc(n, sizeof(*s->ids));
	s->positions = xcalloc(n, sizeof(*s->positions));
	s->targets = xcalloc(n, sizeof(*s->targets));
	x->hidden = xcalloc(n * taps * x->m.config.hidden, sizeof(*x->hidden));
	x->said = xcalloc(n, sizeof(*x->said));
	for (uint32_t h = 0; h < x->n; h++)
		x->target[h] = xcalloc(n, sizeof(*x->target[h]));
	x->tape = x->kind->init(x, e);
	return true;
}

static void lesson_close(struct lesson *x)
{
	train_medusa_fini(&x->medusa);
	train_eagle_fini(&x->eagle);
	train_trunk_fini(&x->trunk);
	if (x->loaded)
		qwen_model_close(&x->m);
	for (int h = 0; h < QWEN_PROPOSED; h++)
		free(x->target[h]);
	free(x->hidden);
	free(x->said);
	qwen_school_close(&x->s);
}

bool qwen_heads_teach(struct qwen_cmd *c, const char *into, struct err *e)
{
	struct lesson x = { .s = { .c = c, .into = into } };
	bool ok = lesson_open(&x, e);
	uint64_t step = 0;

	if (ok && c->tui)
		x.s.panel = panel_open("t0-qwen3 train", into);
	x.s.begin_ns = time_mono_ns();
	for (; ok && step < x.s.rule.steps && !*c->stop; step++)
		ok = take_step(&x, step, e);
	panel_close(x.s.panel);
	ok = ok && look_at_held(&x, e) && x.kind->write(&x, e) &&
	     print_heads(&x, e);
	const bool early = ok && *c->stop;
	if (ok && early)
		ok = err_set(e, ERR_STOPPED,
			     "%s has heads of %llu of %llu steps", into,
			     (unsigned long long)step,
			     (unsigned long long)x.s.rule.steps);
	lesson_close(&x);
	return ok;
}
