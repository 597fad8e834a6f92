/*
 * HFQ files from anywhere.  What is accepted must be usable: every byte of every
 * tensor lies in the file and rows are read, a model has sizes that fit
 * together, and texts and lists come out.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/text/text.h"
#include "engine/weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tensors_read(const struct qwen_tensors *t)
{
	for (size_t i = 0; i < t->n_tensors; i++) {
		const struct qwen_tensor *x = &t->tensor[i];
		volatile uint8_t sum = 0;

		for (size_t k = 0; k < x->size_bytes; k++)
			sum ^= ((const uint8_t *)x->data)[k];
		if (qwen_tensor_find(t, x->name) != x)
			abort();
		if (x->n_dims != 2 || !qwen_dtype_is_packed(x->dtype) ||
		    !x->count)
			continue;
		float *row = xcalloc(x->shape[1], sizeof(*row));
		qwen_packed_row(x, x->shape[0] - 1, row);
		free(row);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = xmalloc(size ? size : 1); /* sanitizers see its end */
	struct qwen_config c;
	struct buf text = { 0 };
	struct qwen_hfq h;
	struct err e = { 0 };

	memcpy(copy, data, size);
	if (qwen_hfq_parse(&h, "fuzz", copy, size, &e)) {
		tensors_read(&h.t);
		if (qwen_hfq_config(&c, &h, &e) &&
		    (!c.layers || c.heads % c.kv_heads || c.head_dim % 2))
			abort();
		qwen_hfq_text(&h, "tokenizer_config.json", &text);
		buf_reset(&text);
		qwen_hfq_tokenizer(&h, &text, &e);
		qwen_hfq_close(&h);
	}
	buf_fini(&text);
	free(copy);
	return 0;
}
