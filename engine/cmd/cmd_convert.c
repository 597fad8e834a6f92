/*
 * engine/cmd/cmd_convert.c - t0-qwen3 convert: between folders and GGUF files.
 */
#include "engine/cmd/cmd.h"

bool qwen_cmd_convert(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct qwen_conversion how = { .from = r->argv[0],
				       .to = r->argv[1],
				       .typed = c->type != NULL,
				       .stop = c->stop };
	struct progress bar;
	bool current;

	if (c->type && !qwen_weights_parse(c->type, &how.type, e))
		return false;
	c->model = how.from;
	how.threads = threads_new((unsigned)c->threads, e);
	if (!how.threads)
		return false;
	progress_init(&bar, "tensors", 0, r->quiet);
	how.progress = &bar;
	how.current = &current;
	bool ok = qwen_model_convert(&how, e);
	progress_fini(&bar);
	threads_free(how.threads);
	if (ok && current)
		cmd_remark(r,
			   "%s is newer than %s, and of these types: "
			   "nothing to do",
			   how.to, how.from);
	return ok;
}
