/*
 * engine/text/hfq.c - the tokenizer of hipfire's files: tokenizer.json, or the
 * lists of the GGUF file that one was made of.
 */
#include "engine/text/text.h"
#include "engine/text/text_int.h"

bool qwen_hfq_tokenizer(struct qwen_hfq *h, struct buf *out, struct err *e)
{
	struct qwen_gguf g;

	if (qwen_hfq_text(h, "tokenizer.json", out))
		return true;
	if (!qwen_hfq_keys(h, &g, e))
		return err_wrap(e, "neither a tokenizer nor lists of tokens");
	bool ok = qwen_gguf_tokenizer(&g, out, e);
	qwen_gguf_close(&g);
	return ok;
}

struct qwen_tokenizer *qwen_hfq_tokenizer_load(const char *path, struct err *e)
{
	struct qwen_tokenizer *t = NULL;
	struct buf json = { 0 };
	struct qwen_hfq h;

	if (!qwen_hfq_open(&h, path, e))
		return NULL;
	if (qwen_hfq_tokenizer(&h, &json, e))
		t = qwen_tokenizer_of_text(&json, e);
	if (!t)
		err_wrap(e, "%s", path);
	buf_fini(&json);
	qwen_hfq_close(&h);
	return t;
}
