/*
 * engine/cmd/train/cmd_train_log.c - t0-qwen3 train: its log, rows and samples.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/train/cmd_train.h"
#include "results/db/results.h"

char *qwen_school_path(const struct qwen_school *s, const char *name)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%s", s->into, name);
	return path.data;
}

/* ---- log.csv ---- */

#define COLUMNS "step,tokens,loss,rate,norm,valid_loss,bits_per_byte\n"

/* All digits: rows of a run that went on are those of one that ran through. */
static bool log_write(const struct qwen_school *s, struct err *e)
{
	char *path = qwen_school_path(s, "log.csv");
	struct buf out = { 0 };

	buf_adds(&out, COLUMNS);
	for (size_t i = 0; i < s->log.n; i++) {
		const struct qwen_lesson *l = &s->log.v[i];
		buf_printf(&out, "%llu,%llu,%.17g,%.17g,%.17g,%.17g,%.17g\n",
			   (unsigned long long)l->step,
			   (unsigned long long)l->tokens, l->loss, l->rate,
			   l->norm, l->valid, l->bits_per_byte);
	}
	bool ok = file_write_atomic(path, out.data, out.len, e);
	buf_fini(&out);
	free(path);
	return ok;
}

bool qwen_log_add(struct qwen_school *s, const struct qwen_lesson *l,
		  struct err *e)
{
	vec_push(&s->log, *l);
	return log_write(s, e);
}

static bool line_read(const char *line, struct qwen_lesson *l)
{
	unsigned long long step, tokens;
	int n = sscanf(line, "%llu,%llu,%lf,%lf,%lf,%lf,%lf", &step, &tokens,
		       &l->loss, &l->rate, &l->norm, &l->valid,
		       &l->bits_per_byte);

	l->step = step;
	l->tokens = tokens;
	return n == 7;
}

/* Lines behind the checkpoint will be written again. */
bool qwen_log_read(struct qwen_school *s, struct err *e)
{
	char *path = qwen_school_path(s, "log.csv"), *line;
	struct file_lines l;
	struct qwen_lesson one;
	size_t n;

	if (access(path, F_OK) != 0) {
		free(path);
		return true;
	}
	bool ok = file_lines_open(&l, path, 4096, e);
	if (ok) {
		while ((ok = file_lines_next(&l, &line, &n, e)) && line) {
			if (l.line == 1)
				continue;
			if (!line_read(line, &one)) {
				ok = err_set(e, ERR_INPUT,
					     "%s:%llu: wanted " COLUMNS, path,
					     (unsigned long long)l.line);
				break;
			}
			if (one.step <= s->place.step)
				vec_push(&s->log, one);
		}
		file_lines_close(&l);
	}
	free(path);
	return ok;
}

bool qwen_log_best(struct qwen_cmd *c, const char *into, bool *done,
		   double *loss, struct err *e)
{
	struct qwen_school s = { .c = c,
				 .into = into,
				 .place.step = UINT64_MAX };
	bool ok = qwen_log_read(&s, e);

	*loss = NAN;
	for (size_t i = 0; i < s.log.n; i++)
		*loss = fmin(*loss, s.log.v[i].valid);
	*done = s.log.n && s.log.v[s.log.n - 1].step == c->steps &&
		!isnan(*loss);
	vec_fini(&s.log);
	return ok;
}

/* ---- rows ---- */

/* A sweep that goes on comes by runs that ended before. */
static bool has_rows(const struct qwen_school *s, const char *inputs, bool *out,
		     struct err *e)
{
	struct res_db *db = NULL;
	int64_t n = 0;
	bool ok = access(s->c->db, F_OK) ||
		  ((db = res_open(s->c->db, RES_READ, e)) &&
		   res_query_int(db, &n, e,
				 "SELECT count(*) FROM runs WHERE "
				 "tool = 't0-qwen3 train' AND inputs = ? AND "
				 "state = 'complete'",
				 "t", inputs));

	res_close(db);
	*out = n > 0;
	return ok;
}

static bool store_lesson(struct res_record *r, const char *name,
			 const struct qwen_lesson *l, struct err *e)
{
	char params[64];

	res_params(params, sizeof(params), "step:U", l->step);
	return res_record_case(r, "train", name, params, e) &&
	       res_record_exact(r, "loss", "nat", l->loss, RES_LOWER, e) &&
	       res_record_exact(r, "learning_rate", "1", l->rate, RES_LOWER,
				e) &&
	       (isnan(l->valid) || res_record_exact(r, "valid_loss", "nat",
						    l->valid, RES_LOWER, e)) &&
	       (isnan(l->bits_per_byte) ||
		res_record_exact(r, "bits_per_byte", "bit", l->bits_per_byte,
				 RES_LOWER, e));
}

bool qwen_log_store(const struct qwen_school *s, struct err *e)
{
	const char *name = qwen_cmd_name(s->into);
	char inputs[QWEN_INPUTS], about[RES_IDENTITY];
	struct res_record r = { 0 };

	if (!s->c->db)
		return true;
	res_identity(s->about.data, s->about.len, about);
	res_params(inputs, sizeof(inputs), "model:s run:s", name, about);
	const struct res_start run = { .tool = "t0-qwen3 train",
				       .inputs = inputs,
				       .seed = s->c->seed,
				       .argc = s->c->cmd.line_argc,
				       .argv = s->c->cmd.line_argv,
				       .whole = true };
	bool stored = false;
	if (s->c->sweep && !has_rows(s, inputs, &stored, e))
		return false;
	if (stored)
		return true;
	bool ok = res_record_begin(&r, s->c->db, &run, e);
	r.origin = RES_HARDWARE; /* this host has trained */
	for (size_t i = 0; ok && i < s->log.n; i++)
		ok = store_lesson(&r, name, &s->log.v[i], e);
	return res_record_end(&r, ok, e);
}

/* ---- samples ---- */

#define SAMPLED 40 /* tokens */

bool qwen_school_sample(const struct qwen_school *s, struct err *e)
{
	struct qwen_cmd as = { .cmd = s->c->cmd,
			       .model = s->into,
			       .prompt = s->c->prompt,
			       .chunk = s->c->length,
			       .threads = s->c->threads,
			       .stop = s->c->stop };
	struct qwen_detokenizer d = { .skip_special = true };
	struct qwen_state *st = NULL;
	struct qwen_ids ids = { 0 };
	struct qwen_session m;
	struct buf text = { 0 };

	if (!s->c->prompt || s->c->cmd.quiet)
		return true;
	as.cmd.quiet = true;
	if (!qwen_session_open(&m, &as, QWEN_WORDS, e))
		return false;
	bool ok = qwen_cmd_prompt(&as, &m, &ids, e);
	uint32_t room = s->config.max_positions;
	room = ok && ids.n + SAMPLED < room ? (uint32_t)ids.n + SAMPLED : room;
	if (ok && ids.n < room) {
		struct qwen_token t = { .best = true };
		ok = qwen_cmd_state(&as, &m, 1, room, &st, e);
		for (size_t i = 0; ok && i + 1 < room; i++) {
			t.id = i < ids.n ? ids.v[i] : qwen_argmax(st, 0);
			if (i >= ids.n)
				qwen_detokenize(&d, m.tok, t.id, &text);
			ok = qwen_forward(st, &t, 1, e);
		}
	}
	qwen_detokenize_end(&d, &text);
	if (ok)
		cmd_remark(&s->c->cmd, "%s%s", s->c->prompt,
			   text.data ? text.data : "");
	buf_fini(&text);
	qwen_ids_fini(&ids);
	qwen_state_free(st);
	qwen_session_close(&m);
	return ok;
}
