/*
 * engine/cmd/train/cmd_train_medusa.c - t0-qwen3 train --medusa: heads of a
 * model learn which tokens come behind the next one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/train/cmd_train.h"
#include "engine/train/heads/heads.h"

struct lesson {
	struct qwen_school s; /* what is learnt from, and how */
	struct qwen_model m;
	bool loaded;
	struct train_trunk trunk;
	struct train_medusa heads;
	float *hidden;			 /* [rows * length][hidden] */
	uint32_t *target[QWEN_PROPOSED]; /* [rows * length] */
	struct train_medusa_sum learnt, held;
};

/* Rows from `row` on: hidden states, targets, and the loss of all heads. */
static struct tensor *look_at(struct lesson *x, struct corpus_rows *rows,
			      uint64_t row, uint32_t n_rows,
			      struct train_medusa_sum *sum, struct err *e)
{
	struct qwen_school *s = &x->s;
	const uint32_t length = s->how.length;
	const size_t n = (size_t)n_rows * length;

	for (uint32_t i = 0; i < n_rows; i++) {
		const size_t at = (size_t)i * length;
		corpus_row(rows, row + i, s->ids + at, s->positions + at,
			   s->targets + at);
		for (uint32_t h = 0; h < x->heads.n; h++)
			train_medusa_target(h, s->positions + at,
					    s->targets + at, length,
					    x->target[h] + at);
	}
	if (!train_trunk_run(&x->trunk, s->ids, s->positions, n, x->hidden, e))
		return NULL;
	return train_medusa_loss(&x->heads, x->hidden, n,
				 (const uint32_t *const *)x->target, sum);
}

static bool take_step(struct lesson *x, uint64_t step, struct err *e)
{
	const uint32_t rows = x->s.how.rows;
	struct tensor *loss;

	x->learnt = (struct train_medusa_sum){ 0 };
	loss = look_at(x, &x->s.rows, step * rows, rows, &x->learnt, e);
	if (!tape_backward(loss) ||
	    !tape_update(x->heads.tape, &x->s.rule, step, &x->s.norm))
		return false;
	if (!isfinite(x->s.norm))
		return err_set(e, ERR_DEVICE,
			       "step %llu: gradients are no numbers; wanted a "
			       "lower --rate or --clip",
			       (unsigned long long)step);
	if (!x->s.c->cmd.quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\rstep %llu of %llu  loss %.4f   ",
			(unsigned long long)step + 1,
			(unsigned long long)x->s.rule.steps,
			(double)loss->data[0] / x->heads.n);
	tape_clear(x->heads.tape);
	return true;
}

static bool look_at_held(struct lesson *x, struct err *e)
{
	if (!x->s.held.c)
		return true;
	for (uint64_t row = 0; row < x->s.held.n; row++) {
		if (!look_at(x, &x->s.held, row, 1, &x->held, e))
			return false;
		tape_clear(x->heads.tape);
	}
	return true;
}

static bool print_heads(const struct lesson *x, struct err *e)
{
	struct table t;

	table_init(&t, "#head,#loss,#valid_loss,#right");
	for (uint32_t h = 0; h < x->heads.n; h++) {
		const struct train_medusa_sum *a = &x->learnt, *b = &x->held;
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

static bool options_check(const struct qwen_cmd *c, struct err *e)
{
	if (c->medusa > QWEN_PROPOSED)
		return err_set(e, ERR_USAGE, "--medusa %llu: wanted 1 to %d",
			       (unsigned long long)c->medusa, QWEN_PROPOSED);
	if (!c->model)
		return err_set(e, ERR_USAGE,
			       "--medusa without --model: heads belong to a "
			       "model that has learnt");
	if (c->sweep || c->resume || c->lora || c->accumulate > 1 ||
	    (c->backend && strcmp(c->backend, "cpu") != 0) ||
	    strcmp(c->precision, "f32") != 0)
		return err_set(e, ERR_USAGE,
			       "--medusa with --sweep, --resume, --lora, "
			       "--accumulate, --precision or --backend: heads "
			       "learn in one run, in f32 on the processor");
	return c->data.n ||
	       err_set(e, ERR_USAGE, "--data names nothing to learn from");
}

static bool lesson_open(struct lesson *x, struct err *e)
{
	struct qwen_school *s = &x->s;
	const struct qwen_load how = { .stop = s->c->stop };

	if (!options_check(s->c, e) || !qwen_school_how(s, e) ||
	    !(s->tok = qwen_tokenizer_load(s->c->model, e)) ||
	    !qwen_school_config(s, e) || !qwen_school_corpus(s, e))
		return false;
	s->threads = threads_new((unsigned)s->c->threads, e);
	if (!s->threads)
		return false;
	x->loaded = qwen_model_load(&x->m, s->c->model, &how, s->threads, e);
	if (!x->loaded || !train_trunk_init(&x->trunk, &x->m, s->how.length,
					    &x->m.config.layers, 1, e))
		return false;
	const size_t n = (size_t)s->how.rows * s->how.length;
	s->ids = xcalloc(n, sizeof(*s->ids));
	s->positions = xcalloc(n, sizeof(*s->positions));
	s->targets = xcalloc(n, sizeof(*s->targets));
	x->hidden = xcalloc(n * x->m.config.hidden, sizeof(*x->hidden));
	for (uint64_t h = 0; h < s->c->medusa; h++)
		x->target[h] = xcalloc(n, sizeof(*x->target[h]));
	train_medusa_init(&x->heads, &x->m, (uint32_t)s->c->medusa, e);
	return true;
}

static void lesson_close(struct lesson *x)
{
	train_medusa_fini(&x->heads);
	train_trunk_fini(&x->trunk);
	if (x->loaded)
		qwen_model_close(&x->m);
	for (int h = 0; h < QWEN_PROPOSED; h++)
		free(x->target[h]);
	free(x->hidden);
	qwen_school_close(&x->s);
}

bool qwen_medusa_teach(struct qwen_cmd *c, const char *into, struct err *e)
{
	struct lesson x = { .s = { .c = c, .into = into } };
	bool ok = lesson_open(&x, e);
	uint64_t step = 0;

	for (; ok && step < x.s.rule.steps && !*c->stop; step++)
		ok = take_step(&x, step, e);
	const bool early = ok && step < x.s.rule.steps;
	ok = ok && (early || look_at_held(&x, e)) &&
	     train_medusa_write(&x.heads, into, c->model, e) &&
	     print_heads(&x, e);
	if (ok && early)
		ok = err_set(e, ERR_STOPPED,
			     "%s has heads of %llu of %llu steps", into,
			     (unsigned long long)step,
			     (unsigned long long)x.s.rule.steps);
	lesson_close(&x);
	return ok;
}
