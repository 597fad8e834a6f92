/*
 * engine/cmd/cmd_calibrate.c - t0-qwen3 quantize --calibrate and --bits:
 * integers that are fitted to a text, of types that are chosen by it.
 */
#include <stdlib.h>

#include "engine/cmd/cmd_quantize.h"

/* Tokens that are looked at: more say hardly more. */
enum { MOST = 16384 };

static bool text_read(const struct qwen_cmd *c, const struct qwen_session *s,
		      struct qwen_ids *ids, struct err *e)
{
	struct qwen_cmd as = *c;

	as.prompt = as.messages = as.ids = NULL;
	as.prompt_file = c->calibrate;
	as.chat = as.no_think = false;
	as.system = as.tools = NULL;
	if (!qwen_cmd_prompt(&as, s, ids, e))
		return false;
	ids->n = ids->n < MOST ? ids->n : MOST;
	return true;
}

static bool types_choose(const struct qwen_cmd *c, struct qwen_session *s,
			 const struct qwen_ids *ids, double bits, bool own,
			 enum qwen_weights *types, struct err *e)
{
	struct progress bar;

	progress_init(&bar, "trying matrices", qwen_matrix_count(&s->model),
		      c->cmd.quiet);
	const struct qwen_budget how = { .bits = bits,
					 .own = own,
					 .ids = ids->v,
					 .n = ids->n,
					 .progress = &bar,
					 .stop = c->stop };
	bool ok = qwen_budget_spend(&s->model, &how, types, e);
	progress_fini(&bar);
	return ok;
}

static bool layers_fit(const struct qwen_cmd *c, struct qwen_session *s,
		       struct qwen_calibration *how, struct err *e)
{
	struct progress bar;

	progress_init(&bar, "fitting layers", s->model.config.layers,
		      c->cmd.quiet);
	how->progress = &bar;
	how->stop = c->stop;
	bool ok = qwen_model_calibrate(&s->model, how, e);
	progress_fini(&bar);
	return ok;
}

bool qwen_calibrate_session(const struct qwen_cmd *c, struct qwen_session *s,
			    enum qwen_weights to, double bits, bool own,
			    struct err *e)
{
	enum qwen_weights *types = NULL;
	struct qwen_ids ids = { 0 };
	bool ok = text_read(c, s, &ids, e);

	if (ok && bits > 0) {
		types = xcalloc(qwen_matrix_count(&s->model), sizeof(*types));
		ok = types_choose(c, s, &ids, bits, own, types, e);
	}
	struct qwen_calibration how = {
		.type = to, .types = types, .ids = ids.v, .n = ids.n
	};
	ok = ok && layers_fit(c, s, &how, e);
	free(types);
	qwen_ids_fini(&ids);
	return ok || err_wrap(e, "--calibrate %s", c->calibrate);
}

bool qwen_fitted_write(const struct qwen_cmd *c, enum qwen_weights to,
		       double bits, const char *path, struct err *e)
{
	struct qwen_cmd as = *c;
	struct qwen_session s;

	as.weights = NULL;
	if (!qwen_session_open(&s, &as, QWEN_WORDS, e))
		return false;
	const struct qwen_conversion how = { .from = c->model,
					     .to = path,
					     .made = &s.model,
					     .threads = s.threads,
					     .stop = c->stop };
	bool ok = qwen_calibrate_session(c, &s, to, bits, false, e) &&
		  qwen_model_convert(&how, e);
	qwen_session_close(&s);
	return ok;
}
