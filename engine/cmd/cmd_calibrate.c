/*
 * engine/cmd/cmd_calibrate.c - t0-qwen3 quantize --calibrate: the text that a
 * model's integers are fitted to.
 */
#include "engine/cmd/cmd_quantize.h"

/* Tokens that are looked at: more say hardly more. */
enum { MOST = 16384 };

bool qwen_calibrate_session(const struct qwen_cmd *c, struct qwen_session *s,
			    enum qwen_weights to, struct err *e)
{
	struct qwen_cmd as = *c;
	struct qwen_ids ids = { 0 };
	struct progress bar;

	as.prompt = as.messages = as.ids = NULL;
	as.prompt_file = c->calibrate;
	as.chat = as.no_think = false;
	as.system = as.tools = NULL;
	if (!qwen_cmd_prompt(&as, s, &ids, e))
		return false;
	progress_init(&bar, "fitting layers", s->model.config.layers,
		      c->cmd.quiet);
	const struct qwen_calibration how = {
		.type = to,
		.ids = ids.v,
		.n = ids.n < MOST ? ids.n : MOST,
		.progress = &bar,
		.stop = c->stop,
	};
	bool ok = qwen_model_calibrate(&s->model, &how, e);
	progress_fini(&bar);
	qwen_ids_fini(&ids);
	return ok || err_wrap(e, "--calibrate %s", c->calibrate);
}
