/*
 * The files of a model from anywhere: safetensors, configurations, tokenizers,
 * conversations.  What is accepted must be usable: every byte of every tensor
 * lies in the file, and every text can be encoded and decoded.  The first byte
 * chooses the kind of file.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/files/files.h"
#include "engine/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly as long as declared, so that sanitizers see the end. */
static char *copy_of(const uint8_t *data, size_t size, bool text)
{
	char *copy = xmalloc(size + text);

	memcpy(copy, data, size);
	if (text)
		copy[size] = '\0';
	return copy;
}

static void tensors(const uint8_t *data, size_t size)
{
	char *copy = copy_of(data, size, false);
	struct qwen_tensors t;
	struct err e = { 0 };

	/* As aligned as a mapped file. */
	if (qwen_tensors_parse(&t, "fuzz", copy, size, &e)) {
		for (size_t i = 0; i < t.n_tensors; i++) {
			const struct qwen_tensor *x = &t.tensor[i];
			volatile char sum = 0;
			for (size_t k = 0; k < x->size_bytes; k++)
				sum ^= ((const char *)x->data)[k];
			if (qwen_tensor_find(&t, x->name) != x)
				abort();
		}
		qwen_tensors_close(&t);
	}
	free(copy);
}

static void config(const uint8_t *data, size_t size)
{
	char *text = copy_of(data, size, true);
	struct qwen_config c;
	struct err e = { 0 };

	if (qwen_config_parse(&c, text, text, &e) &&
	    (!c.layers || c.heads % c.kv_heads || c.head_dim % 2))
		abort();
	free(text);
}

static void tokenizer(const uint8_t *data, size_t size)
{
	char *text = copy_of(data, size, true);
	struct qwen_source s = { .json = text };
	struct err e = { 0 };
	struct qwen_tokenizer *t = qwen_tokenizer_parse(&s, &e);

	if (t) {
		struct qwen_encoder *x = qwen_encoder_new(t);
		size_t some = size < 256 ? size : 256;
		struct qwen_ids ids = { 0 };
		struct qwen_detokenizer d = { 0 };
		struct buf back = { 0 };
		if (!qwen_encode(x, text, some, QWEN_PLAIN | QWEN_NO_NFC, &ids,
				 &e))
			abort();
		for (size_t i = 0; i < ids.n; i++)
			qwen_detokenize(&d, t, ids.v[i], &back);
		qwen_detokenize_end(&d, &back);
		if (back.len != some || memcmp(back.data, text, some) != 0)
			abort();
		buf_fini(&back);
		qwen_ids_fini(&ids);
		qwen_encoder_free(x);
	}
	qwen_tokenizer_free(t);
	free(text);
}

static void chat(const uint8_t *data, size_t size)
{
	char *text = copy_of(data, size, true);
	struct buf out = { 0 };
	struct qwen_limits l;
	struct err e = { 0 };

	qwen_chat(text, text, QWEN_CHAT_PROMPT, &out, &e);
	qwen_limits_parse(&l, text, &e);
	buf_fini(&out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const kind[])(const uint8_t *data, size_t size) = {
		tensors, config, tokenizer, chat
	};

	if (size > 1 && size < 65536)
		kind[*data % 4](data + 1, size - 1);
	return 0;
}
