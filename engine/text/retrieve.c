/*
 * engine/text/retrieve.c - what models that search are asked, as published with
 * them.
 */
#include <string.h>

#include "engine/text/text.h"

/* Between texts of ours and those of a user nothing merges into one token. */
static const char judge_before[] =
	"<|im_start|>system\nJudge whether the Document meets the requirements "
	"based on the Query and the Instruct provided. Note that the answer "
	"can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
static const char judge_behind[] = "<|im_end|>\n<|im_start|>assistant\n"
				   "<think>\n\n</think>\n\n";

bool qwen_search_end(const struct qwen_tokenizer *t, uint32_t vocab,
		     uint32_t *end, struct err *e)
{
	const int64_t id = qwen_token_find(t, QWEN_SEARCH_END);

	if (id < 0 || id >= vocab)
		return err_set(e, ERR_INPUT,
			       "its tokenizer has no token " QWEN_SEARCH_END
			       ", which ends each text");
	*end = (uint32_t)id;
	return true;
}

bool qwen_search_encode(struct qwen_encoder *x, const char *instruction,
			const char *text, size_t len_bytes, unsigned flags,
			uint32_t end, struct qwen_ids *ids, struct err *e)
{
	struct buf all = { 0 };

	if (instruction)
		buf_printf(&all, "Instruct: %s\nQuery:", instruction);
	buf_add(&all, text, len_bytes);
	bool ok = qwen_encode(x, all.data ? all.data : "", all.len, flags, ids,
			      e);
	qwen_ids_add(ids, end);
	buf_fini(&all);
	return ok;
}

bool qwen_judge_encode(struct qwen_encoder *x, const char *instruction,
		       const char *query, const char *document,
		       size_t len_bytes, unsigned flags, struct qwen_ids *ids,
		       struct err *e)
{
	struct buf all = { 0 };

	buf_printf(&all,
		   "<Instruct>: %s\n<Query>: %s\n<Document>: ", instruction,
		   query);
	buf_add(&all, document, len_bytes);
	bool ok =
		qwen_encode(x, judge_before, strlen(judge_before), 0, ids, e) &&
		qwen_encode(x, all.data, all.len, flags, ids, e) &&
		qwen_encode(x, judge_behind, strlen(judge_behind), 0, ids, e);
	buf_fini(&all);
	return ok;
}

static bool word_find(struct qwen_encoder *x, const char *word, uint32_t *id,
		      struct err *e)
{
	struct qwen_ids ids = { 0 };
	bool ok = qwen_encode(x, word, strlen(word), 0, &ids, e);

	if (ok && ids.n != 1)
		ok = err_set(e, ERR_INPUT,
			     "\"%s\" is %zu tokens; a model that "
			     "judges has it as one",
			     word, ids.n);
	*id = ok ? ids.v[0] : 0;
	qwen_ids_fini(&ids);
	return ok;
}

bool qwen_judge_words(struct qwen_encoder *x, uint32_t *yes, uint32_t *no,
		      struct err *e)
{
	return word_find(x, "yes", yes, e) && word_find(x, "no", no, e);
}
