/*
 * GGUF files from anywhere.  What is accepted must be usable: every number,
 * every string and every byte of every tensor lies in the file and is found
 * again by its name, a model has sizes that fit together, and a tokenizer
 * tokens with bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/files/files.h"
#include "engine/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void value_read(const struct qwen_gguf *g,
		       const struct qwen_gguf_value *v)
{
	const uint8_t *at = NULL;
	const char *text;
	size_t len, n = 0;
	volatile char sum = 0;
	int64_t whole;
	double real;

	while (qwen_gguf_text(v, &at, &text, &len)) {
		for (size_t i = 0; i < len; i++)
			sum ^= text[i];
		n++;
	}
	if (v->type == QWEN_GGUF_STRING && n != v->n)
		abort();
	for (uint64_t i = 0; i < v->n && i < 64; i++) {
		qwen_gguf_int(v, i, &whole);
		qwen_gguf_real(v, i, &real);
	}
	if (qwen_gguf_int(v, v->n, &whole) || qwen_gguf_find(g, v->key) != v)
		abort();
}

static void model_read(const struct qwen_gguf *g)
{
	struct qwen_config c;
	struct err e = { 0 };
	struct buf json = { 0 };

	if (qwen_gguf_config(&c, g, &e) &&
	    (!c.layers || c.heads % c.kv_heads || c.head_dim % 2))
		abort();
	if (qwen_gguf_tokenizer(g, &json, &e)) {
		buf_addc(&json, '\0');
		struct qwen_source s = { .json = json.data };
		struct qwen_tokenizer *t = qwen_tokenizer_parse(&s, &e);
		struct qwen_encoder *x = t ? qwen_encoder_new(t) : NULL;
		struct qwen_ids ids = { 0 };
		if (x && (!qwen_encode(x, "It's a text", 11, QWEN_PLAIN, &ids,
				       &e) || !ids.n))
			abort();
		qwen_ids_fini(&ids);
		qwen_encoder_free(x);
		qwen_tokenizer_free(t);
	}
	buf_fini(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = xmalloc(size ? size : 1); /* sanitizers see its end */
	struct qwen_gguf g;
	struct err e = { 0 };

	memcpy(copy, data, size);
	if (qwen_gguf_parse(&g, "fuzz", copy, size, &e)) {
		for (size_t i = 0; i < g.n_values; i++)
			value_read(&g, &g.value[i]);
		for (size_t i = 0; i < g.t.n_tensors; i++) {
			const struct qwen_tensor *x = &g.t.tensor[i];
			volatile uint8_t sum = 0;
			for (size_t k = 0; k < x->size_bytes; k++)
				sum ^= ((const uint8_t *)x->data)[k];
			if (qwen_tensor_find(&g.t, x->name) != x)
				abort();
		}
		model_read(&g);
		qwen_gguf_close(&g);
	}
	free(copy);
	return 0;
}
