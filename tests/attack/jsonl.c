/*
 * Texts and conversations as JSON lines from anywhere.  What is accepted is
 * documents of the model's tokens, each with its end, and a conversation has
 * its learnt tokens between marks.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/corpus/corpus.h"
#include "tests/attack/driver/driver.h"

enum { VOCAB = 300 };

static struct qwen_tokenizer *tok;
static uint32_t end, turn_end;

static void make_tokenizer(void)
{
	static const char text[] = "user assistant system role content the "
				   "the the text text tool tool";
	struct buf json = { 0 };
	struct err e = { 0 };

	if (!qwen_bpe_train(text, sizeof(text) - 1, VOCAB, &json, &e))
		BUG("%s", e.msg);
	buf_addc(&json, '\0');
	tok = qwen_tokenizer_parse(&(struct qwen_source){ .json = json.data },
				   &e);
	buf_fini(&json);
	if (!tok)
		BUG("%s", e.msg);
	end = (uint32_t)qwen_token_find(tok, "<|endoftext|>");
	turn_end = (uint32_t)qwen_token_find(tok, "<|im_end|>");
}

static void documents_check(const struct corpus *c)
{
	struct qwen_detokenizer d = { 0 };
	struct buf text = { 0 };

	if (c->n && c->token[c->n - 1] != end)
		abort();
	for (size_t i = 0; i < c->n; i++) {
		if (c->token[i] >= VOCAB)
			abort();
		qwen_detokenize(&d, tok, c->token[i], &text);
		/* Behind a turn that is skipped nothing is learnt at once. */
		if (c->skipped && i + 1 < c->n && c->skipped[i] &&
		    c->token[i] == turn_end && !c->skipped[i + 1] &&
		    c->token[i + 1] != end)
			abort();
	}
	qwen_detokenize_end(&d, &text);
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *input = input_file(data, size, NULL);
	struct corpus c = { 0 };
	struct err e = { 0 };
	char path[128];

	if (!tok)
		make_tokenizer();
	c.end = end;
	snprintf(path, sizeof(path), "%s.jsonl", input);
	if (rename(input, path) != 0)
		BUG("%s", path);
	if (corpus_add(&c, path, tok, VOCAB, &e))
		documents_check(&c);
	else if (!e.msg[0])
		BUG("refused without a reason");
	corpus_fini(&c);
	return 0;
}
